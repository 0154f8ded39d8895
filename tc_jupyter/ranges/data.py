"""Checks that need the data: scans of index tensors, and subscripts that are looked at point by point.

The items are plain data with expressions, so that an engine may run them on its device; `check_data` runs them on NumPy arrays.

Worked example: `A(i) = B(C(i))` has one `DataCheck`: the smallest and largest element of `C` over `0 <= i < I` must satisfy
`0 <= min(C)` and `max(C) < J`.

Source: `docs/ranges.md`, 'Preconditions' and 'At the call'.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, starmap
from typing import Any, TypeAlias, assert_never

import numpy as np

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Label, Span, codes
from tc_jupyter.program import (
    NO_POSITION,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Program,
    Read,
    Select,
    Size,
    Statement,
    Unary,
    bits,
    random_numbers,
    walk,
)
from tc_jupyter.program.integers import has_read, index_names

from .accesses import Access, guards_of, needed_names, write_access
from .convert import Scope, from_expr, to_expr
from .display import condition_text, written_tensor
from .inference import IndexRange, Ranges
from .interval import interval
from .left_sides import is_injective, written_by
from .preconditions import (
    Precondition,
    Preconditions,
    c_division,
    in_the_text,
    index_limits,
    remainder_help,
    zero_outside,
)
from .search import used_names
from .size_expr import Datum, Name, SizeExpr, choose, constant, has_data, nonnegative, on_sizes

_NONE: Mapping[str, int] = {}
CHUNK = 1 << 20  # points evaluated at a time, to bound the memory of a check


@dataclass(frozen=True, slots=True)
class PointCheck:
    """`lower <= index < upper` at every point of a statement where all `guards` hold.

    Attributes:
        index, lower, upper: `int64` expressions; `index` in logical coordinates of `tensor`.
        guards: conditions with the polarity they must have; evaluated in order, each only where the earlier ones hold.
        ranges: ranges of the indices that occur, in the order of the statement.
        origins: logical index of element 0 of every computed tensor that is read.
        active: all must be >= 1 for the check to matter: the extents of the statement's loops; 1 where the guards on sizes hold.
        writes: the subscript stands on the left side.
        ends: where the ranges of indices begin and end, if elements or other indices say it at each point.
        kind: `subscript`; or `end`, of the range of the index `tensor`; or `position`, which there is if a point took part.
        enough: a check of an index tensor that, where it passes, leaves nothing to see at points.
        remedy: what else to do than to correct the data; or empty.
    """

    statement: str
    tensor: str
    dimension: int
    text: str
    index: Expr
    lower: Expr
    upper: Expr
    guards: tuple[tuple[Expr, bool], ...]
    ranges: tuple[IndexRange, ...]
    origins: Mapping[str, tuple[SizeExpr, ...]]
    sizes: Mapping[str, SizeExpr]
    active: tuple[SizeExpr, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    writes: bool = False
    ends: Mapping[str, tuple[Expr, Expr]] = field(default_factory=dict[str, tuple[Expr, Expr]])
    kind: str = "subscript"
    enough: DataCheck | None = None
    remedy: str = ""

    @property
    def lower_moves(self) -> bool:
        """Whether the lower limit is that of a point."""
        return any(isinstance(node, IndexVar | Read) for node in walk(self.lower))

    def is_proved(self, constants: Mapping[str, int]) -> bool:
        """Whether it holds at every point, whatever the guards say, where some sizes are numbers.

        A schedule may take a statement apart where that is so (`schedule.subscripts.is_inside`): no loop may have all of the
        indices of the check then.
        """
        room = self.room(constants)
        return room is not None and all(map(nonnegative, room))

    def room(self, constants: Mapping[str, int] = _NONE) -> tuple[SizeExpr, SizeExpr] | None:
        """How far from both limits the subscript stays, whatever guards say; `None` where sizes do not say it."""
        if self.kind != "subscript" or self.lower_moves:
            return None
        known = {name: constant(value) for name, value in constants.items()}
        box: dict[str, tuple[SizeExpr, SizeExpr]] = {}
        for each in self.ranges:
            if each.lower is None or each.upper is None:
                return None
            box[each.index] = (each.lower.substitute(known), each.upper.substitute(known) - 1)
        scope = Scope(self.sizes, wraps=has_read(self.index))
        index, lower, upper = (from_expr(e, scope).substitute(known) for e in (self.index, self.lower, self.upper))
        found = interval(index, box)
        if found.lower is None or found.upper is None:
            return None
        return found.lower - lower, upper - 1 - found.upper


@dataclass(frozen=True, slots=True)
class EndCheck:
    """An end of a range that elements say: looked at before anything is written.

    Attributes:
        rows: the tensor whose elements, all in turn, are where ranges begin and end, as in `Ptr(i):Ptr(i + 1)`; that of an end says
            all: it rises from `within` to `within`.
    """

    points: PointCheck
    rows: str | None = None
    within: tuple[SizeExpr, SizeExpr] | None = None

    @property
    def statement(self) -> str:
        """The name of the statement."""
        return self.points.statement

    def limits(self, values: Mapping[str, int]) -> tuple[tuple[str, int, int, bool], ...] | None:
        """What a scan of the rows has to find, nothing for their beginnings; `None` where points have to be looked at."""
        if self.rows is None or self.within is None:
            return None if self.rows is None else ()
        low, high = self.within
        return ((self.rows, low.evaluate(values), high.evaluate(values), True),)


@dataclass(frozen=True, slots=True)
class DataCheck:
    """Conditions on the smallest and largest element of a part of an index tensor.

    Attributes:
        tensor: the index tensor.
        region: one half-open interval per dimension, in logical coordinates of the index tensor.
        storage: the same, counted from its element 0.
        conditions: each must be >= 0; names are sizes, scalars, `min(C)` and `max(C)`.
        exact: the region is exactly what the statement reads, so a failing scan is a failure; otherwise `points` decides.
        points: the exact check of the subscripts, used where a scan fails.
    """

    statement: str
    tensor: str
    dtype: DType
    region: tuple[tuple[SizeExpr, SizeExpr], ...]
    storage: tuple[tuple[SizeExpr, SizeExpr], ...]
    conditions: tuple[SizeExpr, ...]
    exact: bool
    points: PointCheck
    span: Span = field(default=NO_SPAN, compare=False)

    def is_active(self, values: Mapping[str, int]) -> bool:
        """Whether all loops of the statement are non-empty and sizes do not leave the access out."""
        return all(extent.evaluate(values) >= 1 for extent in self.points.active)

    def region_at(self, values: Mapping[str, int]) -> tuple[slice, ...]:
        """The part to scan for given sizes, counted from element 0."""
        return tuple(
            slice(max(lower.evaluate(values), 0), max(upper.evaluate(values), 0)) for lower, upper in self.storage
        )

    def holds(self, values: Mapping[str, int], low: float, high: float) -> bool:
        """Whether the conditions hold for the smallest and largest element; NaN never passes."""
        if math.isnan(low) or math.isnan(high):
            return False
        known = {**values, f"min({self.tensor})": _truncated(low), f"max({self.tensor})": _truncated(high)}
        return all(condition.evaluate(known) >= 0 for condition in self.conditions)

    def limits(self, values: Mapping[str, int]) -> tuple[int, int] | None:
        """The smallest and the largest element that may be, if the conditions are limits of single elements.

        Worked example: `min(I) >= 0` and `V - 1 - 2*max(I) >= 0` are 0 and `(V - 1) // 2`.
        """
        (lowest, highest), ends = DType.INT64.limits, {f"min({self.tensor})": 1, f"max({self.tensor})": -1}
        least, most = lowest, highest
        for condition in self.conditions:
            own = [
                item
                for item in condition.terms.items()
                if {getattr(atom, "name", "") for atom in item[0]} & ends.keys()
            ]
            if len(own) != 1 or len(own[0][0]) != 1:
                return None
            (product, weight), rest = own[0], condition - SizeExpr(dict(own), 0)
            if ends[getattr(product[0], "name", "")] * weight < 0 or not rest.names <= values.keys():
                return None
            number = rest.evaluate(values)  # weight * x + number >= 0
            least, most = (
                (max(least, -(number // weight)), most) if weight > 0 else (least, min(most, number // -weight))
            )
        return (least, most) if lowest <= least and most <= highest and least <= highest and most >= lowest else None


@dataclass(frozen=True, slots=True)
class UniqueCheck:
    """No two points of a statement have the same left side, or points have left no element out (`covers`), or both.

    Attributes:
        points: what a check of the first subscript looks at; its indices are those of all points.
        subscripts: of the left side, in logical coordinates of the target.
        box: of the target.
        unique: whether two points with one element are a failure (TC617).
        covers: whether an element without a point is one (TC222).
        others: the other statements that write the target before it is read; their points count where `covers` is asked.
        short: what is enough if it holds: rows that all points of the other dimensions have alike are left out of it.
    """

    points: PointCheck
    subscripts: tuple[Expr, ...]
    box: tuple[tuple[SizeExpr, SizeExpr], ...]
    unique: bool
    covers: bool
    others: tuple[UniqueCheck, ...] = ()
    short: UniqueCheck | None = None

    @property
    def statement(self) -> str:
        """The name of the statement."""
        return self.points.statement


AnyCheck: TypeAlias = DataCheck | PointCheck | UniqueCheck | EndCheck


def _truncated(value: float) -> int:
    """Toward zero, saturating at 64 bits as the conversion in an index does."""
    if math.isinf(value):
        return 2**63 - 1 if value > 0 else -(2**63)
    return int(value)


# --- making the checks -----------------------------------------------------------------------------------------------------


def data_checks(program: Program, ranges: Ranges, found: Preconditions) -> tuple[AnyCheck, ...]:
    """All checks on data, in the order of the statements; both sides of a dimension are one check."""
    groups: dict[tuple[int, int, str], list[Precondition]] = {}
    for item in found.items:
        if item.bound is not None and item.kind in ("DATA", "POINTWISE"):
            groups.setdefault((id(item.bound.access), item.bound.dimension, item.kind), []).append(item)
    checks: list[AnyCheck] = []
    for group in groups.values():
        bound = group[0].bound
        if bound is None:
            continue
        statement = program.statement(group[0].statement)
        point = point_check(statement, ranges, bound.access, bound.dimension)
        datum = group[0].datum
        if datum is None or any(item.datum != datum for item in group):
            checks.append(point)
        elif group[0].kind == "DATA":
            checks.append(_data_check(ranges, group, datum, point))
        else:
            checks.append(replace(point, enough=_data_check(ranges, group, datum, point)))
    ends = (check for statement in program.statements for check in _end_checks(statement, ranges))
    return (*ends, *checks, *_unique_checks(program, ranges), *_position_checks(program, ranges))


def _end_checks(statement: Statement, ranges: Ranges) -> Iterator[EndCheck]:
    """Of each range that elements end: `lower <= begin`, and `begin <= end <= upper`."""
    if not ranges.is_complete(statement.name):
        return
    around = guards_of(statement, ranges.index_scope(statement))
    for index, r in zip(statement.indices, ranges.indices[statement.name], strict=True):
        if index.ends is None or not r.ends_on_data or r.lower is None or r.upper is None:
            continue
        begin, end = index.ends
        first = statement.inside.index(Binary("<=", begin, IndexVar(r.index), DType.BOOL))
        guards = around[first][0]
        behind, rows = to_expr(r.upper + 1), _rows(statement, ranges, begin, end)
        for place, lower in ((begin, to_expr(r.lower)), (end, begin)):
            read = Read(r.index, (place,), DType.INT64, place.span)
            access = Access(r.index, (), read, guards, span=place.span)
            points = replace(_points(statement, ranges, access, place, lower, behind), kind="end")
            yield EndCheck(points, rows, (r.lower, r.upper) if place is end else None)


def _rows(statement: Statement, ranges: Ranges, begin: Expr, end: Expr) -> str | None:
    """The argument of one dimension whose elements, all in turn, are the ends of ranges: `Ptr(i)` and `Ptr(i + 1)` for all `i`."""
    scope = ranges.index_scope(statement)
    (first, last) = (each.operand if isinstance(each, Cast) else each for each in (begin, end))
    if (
        not isinstance(first, Read)
        or not isinstance(last, Read)
        or first.tensor != last.tensor
        or len(last.indices) != 1
    ):
        return None
    low, high = from_expr(first.indices[0], scope), from_expr(last.indices[0], scope)
    box = ranges.boxes[first.tensor].bounds[0]
    rows = [r for r in ranges.indices[statement.name] if low == scope.indices[r.index] and r.ends is None]
    is_input = first.tensor in ranges.program.parameters
    if high - low != 1 or not is_input or len(rows) != 1 or (rows[0].lower, rows[0].upper) != (box[0], box[1] - 1):
        return None
    return first.tensor


def _position_checks(program: Program, ranges: Ranges) -> Iterator[PointCheck]:
    """Whether a point took part, where conditions may leave all of them out: there is no position otherwise."""
    for statement in program.statements:
        value = statement.value
        if not statement.needs_points or statement.operator != "=" or not ranges.is_complete(statement.name):
            continue
        position = next(node for node in walk(value) if isinstance(node, Read))
        access = Access(statement.target, (), position, span=statement.left_span)
        low, none = Const(DType.INT64.limits[0], DType.INT64), Const(NO_POSITION, DType.INT64)
        yield replace(_points(statement, ranges, access, position, low, none), kind="position")


def _unique_checks(program: Program, ranges: Ranges) -> Iterator[UniqueCheck]:
    """What each call looks at for left sides that are said to be unique, and for elements that nothing may write."""
    for statement in program.statements:
        if not statement.computed or statement.operator != "=" or not ranges.is_complete(statement.name):
            continue
        unique = statement.unique and not is_injective(ranges, statement)
        written = written_by(program, ranges, statement.target)
        together = () if written is None or written.proved else written.statements
        covers = next((each for each in reversed(together) if each.computed), None) is statement
        if unique or covers:
            others = (each for each in together if covers and each is not statement)
            found = tuple(_unique_check(ranges, each, False, True) for each in others)
            check = replace(_unique_check(ranges, statement, unique, covers), others=found)
            yield replace(check, short=None if found else _without_rows(check))


def _without_rows(check: UniqueCheck) -> UniqueCheck | None:
    """A check without the dimensions whose subscript is an index that goes through all of them, and stands nowhere else.

    Worked example: of `Y(i, P(d))` the places `P(d)` of all `d`.
    """
    points, parts = check.points, [*check.subscripts, *(guard for guard, _ in check.points.guards)]
    used = Counter(name for part in parts for name in index_names(part))
    ends = frozenset[str]().union(*(used_names(pair) for pair in points.ends.values()), points.ends)
    rows = {
        r.index
        for r, subscript, bounds in product(points.ranges, check.subscripts, check.box)
        if subscript == IndexVar(r.index)
        and used[r.index] == 1
        and r.index not in ends
        and (r.lower, r.upper) == bounds
    }
    kept = [pair for pair in zip(check.subscripts, check.box, strict=True) if not index_names(pair[0]) & rows]
    if not rows or not kept:
        return None
    ranges = tuple(r for r in points.ranges if r.index not in rows)
    subscripts, box = zip(*kept, strict=True)
    return replace(check, points=replace(points, ranges=ranges), subscripts=subscripts, box=box)


def _unique_check(ranges: Ranges, statement: Statement, unique: bool, covers: bool) -> UniqueCheck:
    access = write_access(statement, ranges.index_scope(statement))
    points = replace(point_check(statement, ranges, access, 0), ranges=ranges.points(statement.name))
    return UniqueCheck(points, access.read.indices, ranges.boxes[statement.target].bounds, unique, covers)


def checks_at_zero(program: Program, ranges: Ranges, found: Preconditions) -> dict[tuple[int, int], PointCheck]:
    """Checks for calls with a size of 0: of accesses that were proved for sizes of 1 and more, and depend on arguments' elements.

    Returns:
        identity of the access, dimension -> check.
    """
    checks: dict[tuple[int, int], PointCheck] = {}
    for item in found.items:
        if item.bound is None or item.kind in ("DATA", "POINTWISE"):
            continue
        access, dimension = item.bound.access, item.bound.dimension
        if not depends_on_data(access, dimension):
            continue
        parts = [access.read.indices[dimension], *(guard.condition for guard in access.guards)]
        read = {node.tensor for part in parts for node in walk(part) if isinstance(node, Read)}
        if read <= set(program.parameters):
            checks[id(access), dimension] = point_check(program.statement(item.statement), ranges, access, dimension)
    return checks


def depends_on_data(access: Access, dimension: int) -> bool:
    """Whether elements of tensors decide where an access is in a dimension, or whether it takes place."""
    return has_data(access.index[dimension]) or any(guard.is_on_data for guard in access.guards)


def point_check(statement: Statement, ranges: Ranges, access: Access, dimension: int) -> PointCheck:
    """The check of one subscript at every point."""
    lower, upper = ranges.boxes[access.tensor].bounds[dimension]
    index = access.read.indices[dimension]
    found = _points(statement, ranges, access, index, to_expr(lower), to_expr(upper))
    text = c_division(ranges.program, access) or in_the_text(access.text, access.index, access.read.span, ranges)
    active = (*(r.extent for r in ranges.around(statement.name, access.begins)), *found.active)
    writes = all(access is not other for other in ranges.accesses[statement.name])
    tensor, parts = written_tensor(access.tensor, ranges.program), access.tensor_parts
    remedy = _remedy(statement, ranges, access, dimension, writes)
    return replace(
        found, tensor=tensor, dimension=dimension - parts, text=text, active=active, writes=writes, remedy=remedy
    )


def _remedy(statement: Statement, ranges: Ranges, access: Access, dimension: int, writes: bool) -> str:
    """What may be written for points at which there is no such element."""
    remainder = remainder_help(ranges.program, access, dimension)
    if remainder is not None and remainder[1] is not None:
        return remainder[1].title
    if ranges.program.language == "sac":
        return "limit the index with `max` and `min`"
    zero = None if writes else zero_outside(ranges, statement, access)
    return "leave such points out by a condition behind `where`" if zero is None else f"write `{zero}`"


def _points(statement: Statement, ranges: Ranges, access: Access, index: Expr, lower: Expr, upper: Expr) -> PointCheck:
    """`lower <= index < upper` at the points at which an access is made, of the indices that say so."""
    guards = tuple((guard.condition, guard.polarity) for guard in access.guards)
    ends = {each.name: each.ends for each in statement.indices if each.ends is not None}
    names = needed_names([index, lower, *(guard for guard, _ in guards)], ends)
    points = [r for r in ranges.points(statement.name) if r.index in names]
    points.sort(key=lambda r: _rank(r.index, ends))
    return PointCheck(
        statement.name,
        access.tensor,
        0,
        access.tensor,
        index,
        lower,
        upper,
        guards,
        tuple(points),
        {name: b.origin for name, b in ranges.boxes.items() if any(lower != 0 for lower in b.origin)},
        ranges.sizes,
        (*(r.extent for r in points), choose(on_sizes(access.condition), constant(1), constant(0))),
        access.span,
        ends={name: pair for name, pair in ends.items() if name in names},
    )


def _rank(name: str, ends: Mapping[str, tuple[Expr, Expr]]) -> int:
    """How many ranges have to be known before that of an index."""
    return 1 + max((_rank(each, ends) for each in used_names(ends[name])), default=0) if name in ends else 0


def _data_check(ranges: Ranges, group: list[Precondition], datum: Datum, points: PointCheck) -> DataCheck:
    box = index_limits(ranges.indices[points.statement])
    whole = ranges.boxes.get(datum.tensor)
    region: list[tuple[SizeExpr, SizeExpr]] = []
    exact = not points.guards
    seen: set[str] = set()
    for dimension, e in enumerate(datum.index):
        ends = interval(e, box)
        nested = any(isinstance(atom, Datum) for atom in e.atoms())
        if (nested or ends.lower is None or ends.upper is None) and whole is not None:
            region.append(whole.bounds[dimension])
            exact = False
        elif ends.lower is not None and ends.upper is not None:
            region.append((ends.lower, ends.upper + 1))
            exact = exact and is_plain(e) and not e.indices & seen
            seen |= e.indices
    origin = whole.origin if whole is not None else ()
    storage = tuple((low - start, high - start) for (low, high), start in zip(region, origin, strict=False))
    conditions = tuple(dict.fromkeys(c for item in group for c in item.conditions))
    return DataCheck(
        points.statement,
        datum.tensor,
        datum.dtype,
        tuple(region),
        storage,
        conditions,
        exact,
        points,
        points.span,
    )


def is_plain(e: SizeExpr) -> bool:
    """Whether every value between the smallest and the largest is taken: one index with weight 1 or -1, or none."""
    moving = [(mono, c) for mono, c in e.terms.items() if SizeExpr({mono: c}, 0).indices]
    if not moving:
        return True
    mono, c = moving[0]
    return len(moving) == 1 and len(mono) == 1 and isinstance(mono[0], Name) and c in (1, -1)


# --- running them ------------------------------------------------------------------------------------------------------------


def check_data(item: AnyCheck, arrays: Mapping[str, Any], values: Mapping[str, int]) -> Diagnostic | None:
    """Run one check on NumPy arrays.

    Args:
        arrays: every tensor that the check reads, counted from element 0; rank-0 tensors may be numbers.
        values: sizes and integer scalars by name.

    Returns:
        TC604 for the first failing position, TC617 or TC222 for a left side, or `None`.
    """
    if isinstance(item, UniqueCheck):
        return _check_places(item, arrays, values)
    point = item if isinstance(item, PointCheck) else item.points
    if any(extent.evaluate(values) < 1 for extent in point.active):
        return None
    if isinstance(item, DataCheck):
        part = np.asarray(arrays[item.tensor])[item.region_at(values)]
        if part.size == 0 or item.holds(values, *extremes_of(part)):
            return None
    return _first_failure(point, arrays, values)


def _check_places(item: UniqueCheck, arrays: Mapping[str, Any], values: Mapping[str, int]) -> Diagnostic | None:
    """Mark the element of every point; those outside of the target have a check of their own."""
    if item.short is not None and _check_places(item.short, arrays, values) is None:
        return None
    box = [(low.evaluate(values), high.evaluate(values)) for low, high in item.box]
    shape = tuple(max(high - low, 0) for low, high in box)
    seen = np.zeros(math.prod(shape), bool)
    last = np.empty(seen.size if item.unique else 0, np.int32)
    for _, places in _placed(item, arrays, values, box):
        inside = places[places >= 0]
        if item.unique:
            numbers = np.arange(len(inside), dtype=last.dtype)
            last[inside] = numbers  # of several points of one element only one finds its number there
            again = inside[seen[inside] | (last[inside] != numbers)]
            if again.size:
                return _not_unique(item, arrays, values, box, int(again.min()))
        seen[inside] = True
    for other in item.others:
        for _, places in _placed(other, arrays, values, box):
            seen[places[places >= 0]] = True
    if item.covers and not seen.all():
        place = np.unravel_index(int(np.argmin(seen)), shape)
        where = ", ".join(str(int(at) + low) for at, (low, _) in zip(place, box, strict=True))
        message = f"no statement writes `{item.points.tensor}({where})`"
        return Diagnostic(codes.UNWRITTEN_ELEMENT, item.points.span, message, "", (), "give all of them a value first")
    return None


def _placed(
    item: UniqueCheck, arrays: Mapping[str, Any], values: Mapping[str, int], box: Sequence[tuple[int, int]]
) -> Iterator[tuple[dict[str, np.ndarray[Any, Any]], np.ndarray[Any, Any]]]:
    """Points, some at a time, and the number of the element of each; -1 outside."""
    if any(r.extent.evaluate(values) < 1 for r in item.points.ranges):
        return
    known = _Evaluator(item.points, arrays, values)
    for grids, shape in _chunks(item.points, known):
        known.grids = grids
        number, inside = np.zeros(shape, np.int64), _mask(item.points, known, shape)
        for subscript, (low, high) in zip(item.subscripts, box, strict=True):
            at = np.broadcast_to(np.asarray(_to_integer(known.evaluate(subscript))), shape)
            inside &= (at >= low) & (at < high)
            number = number * max(high - low, 0) + np.where(inside, at - low, 0)
        yield grids, np.where(inside, number, -1).reshape(-1)


def _not_unique(
    item: UniqueCheck,
    arrays: Mapping[str, Any],
    values: Mapping[str, int],
    box: Sequence[tuple[int, int]],
    element: int,
) -> Diagnostic:
    """TC617 with the first two points of an element."""
    found: list[str] = []
    for grids, places in _placed(item, arrays, values, box):
        for place in np.flatnonzero(places == element)[: 2 - len(found)]:
            point = _point_at(grids, int(place))
            found.append(", ".join(f"{name} = {number}" for name, number in point.items()))
        if len(found) == 2:
            break
    position = np.unravel_index(element, tuple(high - low for low, high in box))
    where = ", ".join(str(int(at) + low) for at, (low, _) in zip(position, box, strict=True))
    message = f"`{item.points.tensor}({where})` is written twice: for `{found[0]}` and for `{found[1]}`"
    help_text = "combine the values, as with `+=!`, where elements may be the same"
    return Diagnostic(codes.NOT_UNIQUE, item.points.span, message, "not unique", (), help_text)


def extremes_of(part: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Smallest and largest element as Python numbers; NaN if there is one."""
    if part.dtype.kind not in "iub":
        part = part.astype(np.float64)
    return part.min().item(), part.max().item()


def _first_failure(point: PointCheck, arrays: Mapping[str, Any], values: Mapping[str, int]) -> Diagnostic | None:
    known = _Evaluator(point, arrays, values)
    upper = int(known.number(point.upper))
    for grids, shape in _chunks(point, known):
        known.grids = grids
        lower = np.asarray(known.evaluate(point.lower))
        mask = _mask(point, known, shape)
        if not mask.any():
            continue
        raw = known.evaluate(_unconverted(point.index))
        index = np.broadcast_to(np.asarray(_to_integer(raw)), shape)
        wrong = mask & ((index < lower) | (index >= upper) | np.broadcast_to(np.isnan(raw), shape))
        if wrong.any():
            place = int(np.argmax(wrong))
            value, least = (np.broadcast_to(np.asarray(each), shape).reshape(-1)[place].item() for each in (raw, lower))
            return failure(point, _point_at(grids, place), value, least, upper)
    return None


def _mask(point: PointCheck, known: _Evaluator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Where all guards hold."""
    mask = np.ones(shape, bool)
    for guard, polarity in point.guards:
        truth = np.broadcast_to(np.asarray(known.evaluate(guard), bool), shape)
        mask &= truth if polarity else ~truth
    return mask


def _point_at(grids: Mapping[str, np.ndarray[Any, Any]], place: int) -> dict[str, int]:
    """The indices of one of the points."""
    every = np.broadcast_arrays(*grids.values())
    return {name: int(grid.reshape(-1)[place]) for name, grid in zip(grids, every, strict=True)}


def _unconverted(expr: Expr) -> Expr:
    """A floating index without its conversion, so that NaN is seen."""
    return expr.operand if isinstance(expr, Cast) and isinstance(expr.operand, Read) else expr


def _to_integer(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            bounded = np.clip(np.nan_to_num(np.trunc(array.astype(np.float64)), nan=0.0), -(2.0**62), 2.0**62)
        return bounded.astype(np.int64)
    if array.dtype == np.uint64:
        return np.minimum(array, np.uint64(2**63 - 1)).astype(np.int64)
    return array.astype(np.int64)


def failure(point: PointCheck, at: Mapping[str, int], value: float, lower: int, upper: int) -> Diagnostic:
    """TC604 with the position and the value."""
    where = ", ".join(f"{name} = {number}" for name, number in at.items())
    if point.kind != "subscript":
        return _no_range(point, where, value, lower, upper)
    extent = f"{lower} to {upper - 1}" if upper > lower else "no elements"
    message = (
        f"`{point.text}` leaves `{point.tensor}`: index {value} in dimension {point.dimension}, but it has {extent}"
    )
    if lower <= value < upper:  # what NaN was converted to
        message = f"`{point.text}`: the index in dimension {point.dimension} is NaN"
    labels = tuple(Label(r.span, f"`{r.text}`") for r in point.ranges if r.span.end)
    is_nan = lower <= value < upper
    help_text = _first(where, "correct the data" + (f", or {point.remedy}" if point.remedy and not is_nan else ""))
    shown = "NaN" if is_nan else value
    return Diagnostic(codes.INDEX_OUT_OF_RANGE, point.span, message, f"is {shown} here", labels, help_text)


def _first(where: str, cure: str) -> str:
    """Where a check fails first, and what to do."""
    return f"first at {where}; {cure}" if where else cure


def _no_range(point: PointCheck, where: str, value: float, lower: int, upper: int) -> Diagnostic:
    """TC604 for an end of a range, or where no point takes part in a position."""
    help_text = _first(where, "correct the data")
    if point.kind == "position":
        help_text = _first(where, "`(c ? x : -inf)` in the place of `x where c` leaves no point out (`argmin`: `inf`)")
        if where.startswith("at"):  # of groups, whose elements nobody has given an index
            help_text = (
                f"first for `{point.tensor}({', '.join(part.rpartition(' ')[2] for part in where.split(', '))})`"
            )
        message = f"there is no position in `{point.tensor}`: an element has no points"
        return Diagnostic(codes.INDEX_OUT_OF_RANGE, point.span, message, "no point", (), help_text)
    message = f"the range of `{point.tensor}` ends before it starts: it starts at {lower} and ends at {value}"
    if not point.lower_moves or lower <= value:
        message = f"the range of `{point.tensor}` ends outside: {value} is not between {lower} and {upper - 1}"
    return Diagnostic(codes.INDEX_OUT_OF_RANGE, point.span, message, f"is {value} here", (), help_text)


def _chunks(point: PointCheck, known: _Evaluator) -> Iterator[tuple[dict[str, np.ndarray[Any, Any]], tuple[int, ...]]]:
    """Grids of index values in the order of the points, no more than `CHUNK` points at a time: open ones, or, where ranges differ
    from point to point, lists of points.
    """
    ranges, values = point.ranges, known.values
    if any(r.index in point.ends for r in ranges):
        for grids in _listed(point, known, ranges, {}):
            yield grids, (len(next(iter(grids.values()))),)
        return
    ends = [
        (r.lower.evaluate(values), r.upper.evaluate(values))
        for r in ranges
        if r.lower is not None and r.upper is not None
    ]
    if not ends:
        yield {}, ()
        return
    points = [math.prod(high - low for low, high in ends[number + 1 :]) for number in range(len(ends))]
    cut = next(number for number, inside in enumerate(points) if inside <= CHUNK)
    step = max(1, CHUNK // max(points[cut], 1))
    first, last = ends[cut]
    for *outer, start in product(*starmap(range, ends[:cut]), range(first, last, step)):
        parts = [*((at, at + 1) for at in outer), (start, min(start + step, last)), *ends[cut + 1 :]]
        axes = [np.arange(low, high, dtype=np.int64) for low, high in parts]
        named = {r.index: grid for r, grid in zip(ranges, np.ix_(*axes), strict=True)}
        yield named, tuple(len(axis) for axis in axes)


def _listed(
    point: PointCheck, known: _Evaluator, ranges: Sequence[IndexRange], at: dict[str, np.ndarray[Any, Any]]
) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """The points of ranges whose ends others decide, behind points of these."""
    if not ranges:
        yield at
        return
    r, rest = ranges[0], ranges[1:]
    known.grids = at
    count = len(next(iter(at.values()))) if at else 1
    pair = point.ends.get(r.index) or (to_expr(r.lower or constant(0)), to_expr(r.upper or constant(0)))
    low, high = (np.broadcast_to(np.asarray(known.evaluate(end), np.int64), (count,)) for end in pair)
    until = np.cumsum(np.maximum(high - low, 0))
    total = int(until[-1]) if count else 0
    for start in range(0, total, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, total))
        rows = np.searchsorted(until, numbers, side="right")
        here = high[rows] - (until[rows] - numbers)
        yield from _listed(point, known, rest, {**{name: grid[rows] for name, grid in at.items()}, r.index: here})


_FUNCTIONS = {
    "fabs": "abs",
    "ceil": "ceil",
    "floor": "floor",
    "trunc": "trunc",
    "abs": "abs",
    "sign": "sign",
    "rounded": "positive",
    "round": "rint",
}


class _Evaluator:
    """Values of expressions on grids of index values, in NumPy. Elements outside a tensor are clipped: a guard excludes them."""

    def __init__(self, point: PointCheck, arrays: Mapping[str, Any], values: Mapping[str, int]) -> None:
        self.arrays = arrays
        self.values = values
        self.sizes = point.sizes
        self.origins = {name: [e.evaluate(values) for e in origin] for name, origin in point.origins.items()}
        self.grids: dict[str, np.ndarray[Any, Any]] = {}

    def number(self, expr: Expr) -> Any:
        """The value of an expression without indices."""
        return self.evaluate(expr)

    def evaluate(self, expr: Expr) -> Any:
        match expr:
            case Const():
                return np.asarray(expr.value, _numpy_type(expr.dtype))
            case Size():
                found = self.sizes.get(expr.name)
                return self.values[expr.name] if found is None else found.evaluate(self.values)
            case IndexVar():
                return self.grids[expr.name]
            case Read():
                return self.element(expr)
            case Unary():
                operand = np.asarray(self.evaluate(expr.operand))
                return ~operand.astype(bool) if expr.op == "!" else -operand
            case Binary():
                return self.binary(expr)
            case Select():
                condition = np.asarray(self.evaluate(expr.condition), bool)
                return np.where(condition, self.evaluate(expr.then), self.evaluate(expr.otherwise))
            case Cast():
                return _converted(self.evaluate(expr.operand), expr.dtype)
            case Call():
                return _call(expr.function, [self.evaluate(a) for a in expr.arguments])
        assert_never(expr)

    def element(self, expr: Read) -> Any:
        array = np.asarray(self.arrays.get(expr.tensor, self.values.get(expr.tensor, 0)))
        if not expr.indices:
            return array
        origin = self.origins.get(expr.tensor, [0] * len(expr.indices))
        places: list[Any] = []
        for axis, (i, start) in enumerate(zip(expr.indices, origin, strict=True)):
            place = np.asarray(_to_integer(self.evaluate(i))) - start
            places.append(np.clip(place, 0, max(array.shape[axis] - 1, 0)))
        if 0 in array.shape:
            return np.zeros(np.broadcast_shapes(*(p.shape for p in places)), array.dtype)
        return array[tuple(places)]

    def binary(self, expr: Binary) -> Any:
        left, right = np.asarray(self.evaluate(expr.left)), np.asarray(self.evaluate(expr.right))
        with np.errstate(all="ignore"):
            match expr.op:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "/":
                    return left / right
                case "//":
                    return np.where(right == 0, 0, left // np.where(right == 0, 1, right))
                case "%":
                    if expr.dtype.is_float:
                        return left - right * np.floor(left / right)
                    return np.where(right == 0, 0, left % np.where(right == 0, 1, right))
                case "min":
                    return np.minimum(left, right)
                case "max":
                    return np.maximum(left, right)
                case "&&":
                    return left.astype(bool) & right.astype(bool)
                case "||":
                    return left.astype(bool) | right.astype(bool)
                case _:
                    return _compared(expr.op, left, right)


def _compared(op: str, left: Any, right: Any) -> Any:
    match op:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "==":
            return left == right
        case _:
            return left != right


def _numpy_type(dtype: DType) -> Any:
    return np.float32 if dtype is DType.BFLOAT16 else np.dtype(dtype.value)


def _converted(value: Any, dtype: DType) -> Any:
    array = np.asarray(value)
    if dtype.is_integer and array.dtype.kind == "f":
        bottom, top = dtype.limits
        return np.clip(_to_integer(array), max(bottom, -(2**62)), min(top, 2**62)).astype(_numpy_type(dtype))
    if dtype is DType.BOOL:
        return array != 0
    with np.errstate(all="ignore"):
        return array.astype(_numpy_type(dtype))


def _call(name: str, arguments: list[Any]) -> Any:
    if name in random_numbers.WORDS:
        return random_numbers.word(name, *arguments).astype(np.uint32)
    if name in bits.OPERATORS:
        return bits.on_arrays(name, *arguments)
    if name == "popcount":
        return bits.counts(*arguments)
    function = getattr(np, _FUNCTIONS.get(name, name), None)
    if function is None:
        scalar = getattr(math, name, None)
        if scalar is None:
            raise KeyError(f"{name} has no NumPy form")
        function = np.vectorize(scalar, otypes=[np.float64])
    with np.errstate(all="ignore"):
        return function(*arguments)


def numbered(text: str, values: Mapping[str, int]) -> str:
    """A condition with numbers in place of names: `I + K <= J + 1` becomes `3 + 4 <= 5 + 1`."""

    def number(match: re.Match[str]) -> str:
        value = values.get(match.group(0))
        return match.group(0) if value is None else str(value) if value >= 0 else f"({value})"

    return re.sub(r"(?<![\w.])\d*[A-Za-z_]\w*(?:\.\d+)?(?!\w|\()", number, text)


def condition_numbers(condition: SizeExpr, values: Mapping[str, int]) -> str:
    """The text of a condition with its numbers."""
    return numbered(condition_text(condition), values)
