"""Integer sets and maps by name: proofs, exact regions, order tests, scanning. The door of the set library (isl through `islpy`).

Dimensions and parameters are names; every name of an expression that is no dimension is a parameter. A product of sizes, or a
division by a size, is one opaque parameter. Sets are built from objects, never from text. Every thread has its own context, a
set that comes from another thread is copied first. Every operation has a limit.

Answers are `Answer` values; operations that make sets raise `Unknown` when the library is absent, the limit is reached, or an
expression is not quasi-affine. Nothing else in the package depends on the library for its results (`docs/ranges.md`, 'Exact sets').

Worked example: `IntegerSet.build(("i",), [index("i"), size("N") - 1 - index("i")])` is `0 <= i < N`;
with `{"N": 3}` it has 3 points.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, TypeVar, assert_never

from tc_jupyter.diagnostics.work import WORK, spend
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Select, Size, Unary, int64

from .convert import from_expr, to_condition, to_expr
from .display import DIGIT_MARK, to_python
from .interval import Box
from .size_expr import (
    Extremum,
    FloorDiv,
    Limits,
    Mod,
    Monomial,
    Name,
    SizeExpr,
    constant,
    expanded,
    floor_div,
    index,
    maximum,
    minimum,
    of_atom,
    size,
)

OPERATIONS = 100_000
DIMENSIONS = 64
"""Those of a set. What the library counts as one operation takes longer the more there are: with 150, one query took 8 s."""
QUERY = 1_000
"""Steps that a query counts as: most take a millisecond."""
T = TypeVar("T")


class Answer(Enum):
    """The answer to a question about all sizes."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


NESTED = 6
"""Quotients inside of each other: each takes the library several times as long, and its limit of operations counts none."""


class Unknown(Exception):
    """The library is absent, its limit is reached, or an expression is not quasi-affine; `reason` says which."""

    def __init__(self, reason: str, is_skipped: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_skipped = is_skipped  # another machine, or a higher limit, could answer


class _Local(threading.local):
    context: Any = None
    limit: int = OPERATIONS


_LOCAL = _Local()


@cache
def _library() -> Any:
    try:
        import islpy  # noqa: PLC0415 (optional: no wheel on every platform)
    except ImportError:
        return None
    return islpy


def available() -> bool:
    """Whether the set library is installed."""
    return _library() is not None


def _isl() -> Any:
    library = _library()
    if library is None:
        raise Unknown("the set library is not installed", True)
    return library


def _context() -> Any:
    if _LOCAL.context is None:
        _LOCAL.context = _isl().Context()
    return _LOCAL.context


def _integer(number: int) -> Any:
    """A number of any length in isl."""
    isl, context = _isl(), _context()
    return isl.Val.int_from_si(context, number) if -(1 << 63) <= number < 1 << 63 else isl.Val(str(number), context)


@contextmanager
def operation_limit(operations: int) -> Generator[None]:
    """Another limit for the queries inside, on this thread; 0 is none."""
    before, _LOCAL.limit = _LOCAL.limit, operations
    try:
        yield
    finally:
        _LOCAL.limit = before


def _limited(query: Callable[[], T]) -> T:
    """Run a query of the library under the operation limit.

    Not every function of the library reports the limit: `count_val` gives a number that is none, `to_str` gives `None`. So the
    limit is looked at after every query, whatever came out of it.
    """
    context = _context()
    if WORK.limited and WORK.left < QUERY:
        raise Unknown(_EXHAUSTED, True)
    spend(QUERY)
    context.set_max_operations(_LOCAL.limit)
    context.reset_operations()
    try:
        result = query()
    except Unknown:
        raise
    except Exception:
        if _is_exhausted():
            raise Unknown(_EXHAUSTED, True) from None
        raise
    else:
        if _is_exhausted():
            raise Unknown(_EXHAUSTED, True)
        return result
    finally:
        context.set_max_operations(0)
        context.reset_operations()


_EXHAUSTED = "the limit of the set library is reached"


def _is_exhausted() -> bool:
    """Whether this thread's context refuses further operations: making a number is one."""
    isl = _isl()
    try:
        isl.Val.int_from_si(_context(), 0)
    except isl.Error:
        return True
    return False


# --- expressions -> the library ----------------------------------------------------------------------------------------


class _Builder:
    """Affine functions over dimensions and parameters, for one space."""

    def __init__(self, dims: Sequence[str], exprs: Iterable[SizeExpr]) -> None:
        self.dims = tuple(dims)
        self.places = {name: place for place, name in enumerate(self.dims)}
        self.params: dict[str, int] = {}
        self.symbols: dict[str, SizeExpr] = {}
        self.opaque: set[str] = set()
        self.limits: dict[str, Limits] = {}
        self.exprs = [expanded(e) for e in exprs]
        for e in self.exprs:
            self._collect(e)
        isl = _isl()
        self.space = isl.Space.set_alloc(_context(), len(self.params), len(self.dims))
        for name, place in self.params.items():
            self.space = self.space.set_dim_name(isl.dim_type.param, place, _accepted(name))
        self.local = isl.LocalSpace.from_space(self.space)

    def _param(self, name: str, limits: Limits) -> None:
        if name not in self.params:
            self.params[name] = len(self.params)
            self.limits[name] = limits

    def _collect(self, e: SizeExpr, depth: int = 0) -> None:
        if depth > NESTED:
            raise Unknown(f"quotients are nested {depth} deep", True)
        for mono in e.terms:
            atom = mono[0]
            if len(mono) == 1 and isinstance(atom, Name):
                if atom.name not in self.places:
                    self._param(atom.name, atom.limits)
                    self.symbols.setdefault(atom.name, of_atom(atom))
            elif (
                len(mono) == 1
                and isinstance(atom, FloorDiv | Mod)
                and atom.divisor.is_constant
                and atom.divisor.offset > 0
            ):
                self._collect(atom.numerator, depth + 1)
            elif len(mono) == 1 and isinstance(atom, Extremum):
                for argument in atom.arguments:
                    self._collect(argument, depth)
            else:
                self._collect_opaque(mono)

    def _collect_opaque(self, mono: Monomial) -> None:
        """A monomial of parameters is one parameter; with a dimension inside it is not quasi-affine."""
        e = SizeExpr({mono: 1}, 0)
        if e.indices or e.names & self.places.keys() or not e.names:
            raise Unknown(f"{to_python(e)} is not quasi-affine")
        name = _opaque_name(e)
        self.symbols[name] = e
        self.opaque.add(name)
        self._param(name, e.limits)

    def constraint(self, e: SizeExpr, equality: bool) -> Any:
        """The constraint `e >= 0` or `e == 0`, for a plain sum of names; `None` for anything else."""
        isl = _isl()
        if not all(len(mono) == 1 and isinstance(mono[0], Name) for mono in e.terms):
            return None
        made = isl.Constraint.alloc_equality(self.local) if equality else isl.Constraint.alloc_inequality(self.local)
        for mono, c in e.terms.items():
            atom = mono[0]
            if isinstance(atom, Name):
                place = self.places.get(atom.name)
                kind = isl.dim_type.param if place is None else isl.dim_type.set
                made = made.set_coefficient_val(kind, self.params[atom.name] if place is None else place, _integer(c))
        return made.set_constant_val(_integer(e.offset))

    def function(self, e: SizeExpr) -> Any:
        """`e` as a piecewise affine function."""
        isl = _isl()
        total = isl.PwAff.from_aff(isl.Aff.val_on_domain(self.local, _integer(e.offset)))
        for mono, c in e.terms.items():
            term = self._atom(mono)
            total = total.add(term if c == 1 else term.scale_val(_integer(c)))
        return total

    def _atom(self, mono: Monomial) -> Any:
        atom = mono[0]
        if len(mono) == 1:
            match atom:
                case Name():
                    return self._variable(atom.name)
                case FloorDiv() if atom.divisor.is_constant and atom.divisor.offset > 0:
                    divisor = _integer(atom.divisor.offset)
                    return self.function(atom.numerator).scale_down_val(divisor).floor()
                case Mod() if atom.divisor.is_constant and atom.divisor.offset > 0:
                    return self.function(atom.numerator).mod_val(_integer(atom.divisor.offset))
                case Extremum():
                    functions = [self.function(argument) for argument in atom.arguments]
                    result = functions[0]
                    for other in functions[1:]:
                        result = result.min(other) if atom.kind == "min" else result.max(other)
                    return result
                case _:
                    pass
        return self._variable(_opaque_name(SizeExpr({mono: 1}, 0)))

    def _variable(self, name: str) -> Any:
        isl = _isl()
        place = self.places.get(name)
        kind = isl.dim_type.param if place is None else isl.dim_type.set
        place = self.params[name] if place is None else place
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(self.local, kind, place))

    def build(self, count: int, context_limits: bool) -> Any:
        """The set where the first `count` expressions are >= 0 and the others are 0."""
        isl = _isl()
        result = isl.Set.universe(self.space)
        for place, e in enumerate(self.exprs):
            equality = place >= count
            if e.is_constant and (e.offset < 0 or (equality and e.offset != 0)):
                # the library does not look at a constraint without variables in a space without dimensions
                return isl.Set.empty(self.space)
            made = self.constraint(e, equality)
            if made is not None:
                result = result.add_constraint(made)
            else:
                function = self.function(e)
                result = result.intersect(function.zero_set() if equality else function.nonneg_set())
        for name, (low, high) in self.limits.items():
            if context_limits or name in self.opaque:
                variable = SizeExpr({(Name("size", name, (None, None)),): 1}, 0)
                if low is not None:
                    result = result.add_constraint(self.constraint(variable - low, False))
                if high is not None:
                    result = result.add_constraint(self.constraint(high - variable, False))
        return result


def _opaque_name(e: SizeExpr) -> str:
    """A name that no size has, and that does not start with a digit, which the library refuses."""
    return f"[{to_python(e)}]"


def _copied(value: Any, read: Callable[[Any, str], Any]) -> Any:
    """A set or map of another thread in the context of this one."""
    isl = _isl()
    count = value.dim(isl.dim_type.param)
    names = [value.get_dim_name(isl.dim_type.param, place) for place in range(count)]
    try:
        for place in range(count):
            value = value.set_dim_name(isl.dim_type.param, place, f"p{place}")
        text = value.to_str()
    except isl.Error:
        text = None
    if text is None:  # its thread is in a query that reached the limit
        raise Unknown(_EXHAUSTED, True)
    value = read(_context(), text)
    for place, name in enumerate(names):
        here = value.find_dim_by_name(isl.dim_type.param, f"p{place}")
        if here >= 0:
            value = value.set_dim_name(isl.dim_type.param, here, name)
    return value


def _accepted(name: str) -> str:
    """A name of a parameter that the library takes: none starts with a digit."""
    return DIGIT_MARK + name if name[0].isdigit() else name


def _as_written(name: str) -> str:
    """The name without the mark of `_accepted`."""
    return name.removeprefix(DIGIT_MARK)


def _params(value: Any) -> tuple[str, ...]:
    kind = _isl().dim_type.param
    return tuple(_as_written(value.get_dim_name(kind, place)) for place in range(value.dim(kind)))


def _with_params_fixed(value: Any, values: Mapping[str, int], symbols: Mapping[str, SizeExpr]) -> Any:
    isl = _isl()
    for place, name in enumerate(_params(value)):
        number = values.get(name)
        if number is None and name in symbols and symbols[name].names <= values.keys():
            number = symbols[name].evaluate(values)
        if number is not None:
            value = value.fix_val(isl.dim_type.param, place, _integer(number))
    return value


def _answer(query: Callable[[], bool]) -> Answer:
    try:
        return Answer.YES if _limited(query) else Answer.NO
    except Unknown:
        return Answer.UNKNOWN


# --- sets ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class IntegerSet:
    """A set of integer points with named dimensions. Immutable; operations with another set match dimensions by position.

    Attributes:
        dims: names of the dimensions.
        raw: the object of the library.
        symbols: what the parameters stand for, by name; a product of sizes is one parameter.
    """

    dims: tuple[str, ...]
    raw: Any
    symbols: Mapping[str, SizeExpr] = field(default_factory=dict)
    owner: int = field(default_factory=threading.get_ident)

    @staticmethod
    def build(
        dims: Sequence[str],
        constraints: Iterable[SizeExpr] = (),
        equalities: Iterable[SizeExpr] = (),
        limits: bool = False,
    ) -> IntegerSet:
        """The points where all `constraints` are >= 0 and all `equalities` are 0.

        Args:
            limits: also put the limits of sizes (>= 1) and scalars (their types) on the parameters.
        """
        inequalities = list(constraints)
        builder = _Builder(dims, [*inequalities, *equalities])
        if len(builder.dims) > DIMENSIONS:
            raise Unknown(_EXHAUSTED, True)
        return IntegerSet(builder.dims, _limited(lambda: builder.build(len(inequalities), limits)), builder.symbols)

    @staticmethod
    def from_box(dims: Sequence[str], box: Box) -> IntegerSet:
        """The points of a box."""
        constraints: list[SizeExpr] = []
        for name, (lower, upper) in zip(dims, box.bounds, strict=True):
            constraints += [index(name) - lower, upper - 1 - index(name)]
        return IntegerSet.build(dims, constraints)

    @staticmethod
    def empty(dims: Sequence[str]) -> IntegerSet:
        """No points."""
        return IntegerSet.build(dims, [constant(-1)])

    def here(self) -> Any:
        """The object of the library, in the context of this thread."""
        if self.owner == threading.get_ident():
            return self.raw
        return _copied(self.raw, _isl().Set.read_from_str)

    def _with(
        self, raw: Any, dims: tuple[str, ...] | None = None, other: Mapping[str, SizeExpr] | None = None
    ) -> IntegerSet:
        symbols = {**self.symbols, **other} if other else self.symbols
        return IntegerSet(self.dims if dims is None else dims, raw, symbols)

    @property
    def params(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return _params(self.raw)

    @property
    def has_opaque(self) -> bool:
        """Whether a parameter stands for more than a name, so that some of its values are impossible."""
        return any(e.names != frozenset({name}) for name, e in self.symbols.items())

    def intersect(self, other: IntegerSet) -> IntegerSet:
        """The points of both."""
        return self._with(_limited(lambda: self.here().intersect(other.here())), None, other.symbols)

    def union(self, other: IntegerSet) -> IntegerSet:
        """The points of either."""
        return self._with(_limited(lambda: self.here().union(other.here()).coalesce()), None, other.symbols)

    def subtract(self, other: IntegerSet) -> IntegerSet:
        """The points that are not in `other`."""
        return self._with(_limited(lambda: self.here().subtract(other.here()).coalesce()), None, other.symbols)

    def project_out(self, names: Iterable[str]) -> IntegerSet:
        """The set without the dimensions `names`: there is some value for them."""
        gone = set(names)
        kind = _isl().dim_type.set

        def query() -> Any:
            raw = self.here()
            for place in reversed(range(len(self.dims))):
                if self.dims[place] in gone:
                    raw = raw.project_out(kind, place, 1)
            return raw

        return self._with(_limited(query), tuple(name for name in self.dims if name not in gone))

    def rename(self, names: Mapping[str, str]) -> IntegerSet:
        """The set with other names for its dimensions."""
        return self._with(self.here(), tuple(names.get(name, name) for name in self.dims))

    def fix(self, values: Mapping[str, int]) -> IntegerSet:
        """The set for given values of parameters and dimensions; the dimensions stay, with one value."""
        isl = _isl()

        def query() -> Any:
            raw = _with_params_fixed(self.here(), values, self.symbols)
            for place, name in enumerate(self.dims):
                if name in values:
                    raw = raw.fix_val(isl.dim_type.set, place, _integer(values[name]))
            return raw

        return self._with(_limited(query))

    def constrain(self, constraints: Iterable[SizeExpr], equalities: Iterable[SizeExpr] = ()) -> IntegerSet:
        """The points where further `constraints` are >= 0 and `equalities` are 0."""
        return self.intersect(IntegerSet.build(self.dims, constraints, equalities))

    def as_map(self, inputs: Sequence[str]) -> IntegerMap:
        """The pairs `(first dimensions, the others)`; `inputs` are the first dimensions. The inverse of `IntegerMap.wrapped`."""
        isl, count = _isl(), len(inputs)
        if self.dims[:count] != tuple(inputs):
            raise ValueError(f"{tuple(inputs)} are not the first of {self.dims}")
        raw = isl.Map.from_range(self.here()).move_dims(isl.dim_type.in_, 0, isl.dim_type.out, 0, count)
        return IntegerMap(self.dims[:count], self.dims[count:], raw, self.symbols)

    def embedded(self, dims: Sequence[str], at: int = 0) -> IntegerSet:
        """The set in the space of `dims`, its own dimensions at `at` and after; the others are free."""
        kind, after = _isl().dim_type.set, len(dims) - at - len(self.dims)

        def query() -> Any:
            raw = self.here().insert_dims(kind, len(self.dims), after)
            return raw.insert_dims(kind, 0, at)

        return self._with(_limited(query), tuple(dims))

    def apply(self, mapping: IntegerMap) -> IntegerSet:
        """The image under a map; dimensions match by position."""
        raw = _limited(lambda: self.here().apply(mapping.here()))
        return self._with(raw, mapping.outputs, mapping.symbols)

    def coalesced(self) -> IntegerSet:
        """The same set in fewer pieces where possible."""
        return self._with(_limited(lambda: self.here().coalesce()))

    def simplified(self, context: IntegerSet) -> IntegerSet:
        """A simpler set with the same points inside `context`."""
        return self._with(_limited(lambda: self.here().gist(context.here()).coalesce()))

    # questions

    def is_empty(self) -> Answer:
        """Whether there is no point, for any value of the parameters."""
        return _answer(lambda: self.here().is_empty())

    def equals(self, other: IntegerSet) -> Answer:
        """Whether both have the same points for all values of the parameters."""
        return _answer(lambda: self.here().is_equal(other.here()))

    def is_subset(self, other: IntegerSet) -> Answer:
        """Whether every point is one of `other`, for all values of the parameters."""
        return _answer(lambda: self.here().is_subset(other.here()))

    def count(self, values: Mapping[str, int] | None = None) -> int:
        """Number of points for given parameters; raises `Unknown` if the set is infinite or the limit is reached."""
        fixed = self.fix(values or {})

        def query() -> int:
            raw = _bounded(fixed.here())
            return int(raw.count_val().to_python())

        return _limited(query)

    def points(self, values: Mapping[str, int] | None = None) -> list[tuple[int, ...]]:
        """All points for given parameters, in lexicographic order."""
        fixed = self.fix(values or {})
        kind = _isl().dim_type.set
        found: list[Any] = []

        def query() -> list[tuple[int, ...]]:
            # the coordinates are read afterwards: the library prints and forgets what is raised inside
            _bounded(fixed.here()).foreach_point(found.append)
            return sorted(
                tuple(int(point.get_coordinate_val(kind, place).to_python()) for place in range(len(self.dims)))
                for point in found
            )

        return _limited(query)

    def sample(self) -> dict[str, int] | None:
        """One point with values for all dimensions and parameters (a witness), or `None` for the empty set."""
        isl = _isl()

        def query() -> dict[str, int] | None:
            raw = self.here()
            point = raw.sample_point()
            if point.is_void():
                return None
            result: dict[str, int] = {}
            for kind, names in ((isl.dim_type.param, _params(raw)), (isl.dim_type.set, self.dims)):
                for place, name in enumerate(names):
                    result[name] = int(point.get_coordinate_val(kind, place).to_python())
            return result

        return _limited(query)

    def smallest(self) -> dict[str, int] | None:
        """A witness with small numbers: parameters first, then dimensions, each as small as possible, not negative if possible."""
        isl = _isl()

        def query() -> dict[str, int] | None:
            raw = self.here()
            names = _params(raw)
            flat = raw.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, len(names))
            corner = flat
            for place in range(len(names) + len(self.dims)):
                bounded = corner.lower_bound_val(isl.dim_type.set, place, _integer(0))
                if not bounded.is_empty():
                    corner = bounded
            point = corner.lexmin().sample_point()
            if point.is_void():
                return None
            all_names = (*names, *self.dims)
            return {
                name: int(point.get_coordinate_val(isl.dim_type.set, place).to_python())
                for place, name in enumerate(all_names)
            }

        return _limited(query)

    def hull(self, values: Mapping[str, int] | None = None) -> tuple[tuple[int, int], ...] | None:
        """Smallest box around the set for given parameters, half-open, or `None` for the empty set."""
        fixed = self.fix(values or {})

        def query() -> tuple[tuple[int, int], ...] | None:
            raw = fixed.here().project_out_all_params()
            if raw.is_empty():
                return None
            bounds: list[tuple[int, int]] = []
            for place in range(len(self.dims)):
                low, high = raw.dim_min_val(place), raw.dim_max_val(place)
                if not (low.is_int() and high.is_int()):
                    raise Unknown("the set is unbounded")
                bounds.append((int(low.to_python()), int(high.to_python()) + 1))
            return tuple(bounds)

        return _limited(query)

    def _single(self, function: Any) -> SizeExpr | None:
        """The expression of a piecewise function: one piece, or the `min` or `max` of all its pieces."""
        function = function.coalesce()
        parts = [_aff_expr(aff, self.symbols) for _, aff in function.get_pieces()]
        if len(parts) <= 1:
            return parts[0] if parts else None
        for candidate in (minimum(*parts), maximum(*parts)):
            builder = _Builder((), [candidate])
            if function.ne_set(builder.function(builder.exprs[0]).project_domain_on_params()).is_empty():
                return candidate
        return None

    def boxes(
        self, values: Mapping[str, int] | None = None, most: int = 4096
    ) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Disjoint half-open boxes that cover exactly the points, for given parameters.

        Raises:
            Unknown: more than `most` points, where that many boxes could be needed, and no short cut applies.
        """
        hull = self.hull(values)
        if hull is None:
            return ()
        volume = 1
        for low, high in hull:
            volume *= high - low
        if self.count(values) == volume:
            return (hull,)
        points = self.points(values) if volume <= most * 64 else None
        if points is None:
            raise Unknown("too many points for boxes")
        return _as_boxes(points)

    def pieces(self) -> tuple[tuple[tuple[SizeExpr, bool], ...], ...]:
        """The set as OR of ANDs of constraints `(e, is_equality)`; divisions appear as floors.

        Raises:
            Unknown: a piece has an existential variable without a formula.
        """
        return _limited(lambda: _pieces(self.here(), self.dims, self.symbols))


def _bounded(raw: Any) -> Any:
    raw = raw.project_out_all_params()
    if not raw.is_bounded():
        raise Unknown("the set is infinite")
    return raw


def _as_boxes(points: list[tuple[int, ...]]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Runs along the last dimension, then equal runs merged along the others, outermost last."""
    rank = len(points[0])
    boxes: list[tuple[tuple[int, int], ...]] = [tuple((x, x + 1) for x in point) for point in points]
    for axis in reversed(range(rank)):
        boxes.sort(key=lambda box: (box[:axis], box[axis + 1 :], box[axis]))
        merged: list[tuple[tuple[int, int], ...]] = []
        for box in boxes:
            last = merged[-1] if merged else None
            if (
                last is not None
                and last[axis][1] == box[axis][0]
                and last[:axis] == box[:axis]
                and last[axis + 1 :] == box[axis + 1 :]
            ):
                merged[-1] = (*last[:axis], (last[axis][0], box[axis][1]), *last[axis + 1 :])
            else:
                merged.append(box)
        boxes = merged
    return tuple(sorted(boxes))


def _aff_expr(aff: Any, symbols: Mapping[str, SizeExpr], dims: Sequence[str] = ()) -> SizeExpr:
    """The expression of an affine function of the library, divisions included."""
    isl = _isl()
    denominator = int(aff.get_denominator_val().to_python())
    total = _scaled_coefficient(aff.get_constant_val(), denominator)
    value = constant(total)
    for kind, count in (
        (isl.dim_type.param, aff.dim(isl.dim_type.param)),
        (isl.dim_type.in_, aff.dim(isl.dim_type.in_)),
    ):
        for place in range(count):
            c = _scaled_coefficient(aff.get_coefficient_val(kind, place), denominator)
            if c:
                if kind == isl.dim_type.param:
                    name = _as_written(aff.get_dim_name(isl.dim_type.param, place))
                    variable = symbols.get(name) or size(name)
                else:
                    variable = index(dims[place])
                value = value + variable * c
    for place in range(aff.dim(isl.dim_type.div)):
        c = _scaled_coefficient(aff.get_coefficient_val(isl.dim_type.div, place), denominator)
        if c:
            inner = aff.get_div(place)
            value = value + _floor_expr(inner, symbols, dims) * c
    return value if denominator == 1 else floor_div(value, denominator)


def _floor_expr(aff: Any, symbols: Mapping[str, SizeExpr], dims: Sequence[str]) -> SizeExpr:
    """`floor(aff)` of a rational affine function; `get_div` gives the argument of the floor."""
    return _aff_expr(aff, symbols, dims)


def _scaled_coefficient(value: Any, denominator: int) -> int:
    scaled = value.mul(_integer(denominator))
    return int(scaled.to_python())


def _pieces(
    raw: Any, dims: tuple[str, ...], symbols: Mapping[str, SizeExpr]
) -> tuple[tuple[tuple[SizeExpr, bool], ...], ...]:
    isl = _isl()
    result: list[tuple[tuple[SizeExpr, bool], ...]] = []
    for basic in raw.compute_divs().coalesce().get_basic_sets():
        constraints: list[tuple[SizeExpr, bool]] = []
        for made in basic.get_constraints():
            e = _constraint_expr(made, dims, symbols, isl)
            constraints.append((e, made.is_equality()))
        result.append(tuple(constraints))
    return tuple(result)


def _constraint_expr(made: Any, dims: tuple[str, ...], symbols: Mapping[str, SizeExpr], isl: Any) -> SizeExpr:
    value = constant(int(made.get_constant_val().to_python()))
    for place in range(made.dim(isl.dim_type.param)):
        c = int(made.get_coefficient_val(isl.dim_type.param, place).to_python())
        if c:
            name = _as_written(made.get_dim_name(isl.dim_type.param, place))
            value = value + (symbols.get(name) or size(name)) * c
    for place in range(made.dim(isl.dim_type.set)):
        c = int(made.get_coefficient_val(isl.dim_type.set, place).to_python())
        if c:
            value = value + index(dims[place]) * c
    for place in range(made.dim(isl.dim_type.div)):
        c = int(made.get_coefficient_val(isl.dim_type.div, place).to_python())
        if c:
            try:
                inner = made.get_div(place)
            except isl.Error:  # it has none
                inner = None
            if inner is None or inner.is_nan():
                raise Unknown("a variable without a formula")
            value = value + _aff_expr(inner, symbols, dims) * c
    return value


# --- maps ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class IntegerMap:
    """A relation between integer points with named inputs and outputs. Operations match dimensions by position."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    raw: Any
    symbols: Mapping[str, SizeExpr] = field(default_factory=dict)
    owner: int = field(default_factory=threading.get_ident)

    @staticmethod
    def build(
        inputs: Sequence[str],
        outputs: Sequence[str],
        constraints: Iterable[SizeExpr] = (),
        equalities: Iterable[SizeExpr] = (),
        limits: bool = False,
    ) -> IntegerMap:
        """The pairs where all `constraints` are >= 0 and all `equalities` are 0; inputs and outputs have different names."""
        names = (*inputs, *outputs)
        if len(set(names)) != len(names):
            raise ValueError(f"a name stands on both sides: {names}")
        inequalities = list(constraints)
        builder = _Builder(names, [*inequalities, *equalities])
        flat = _limited(lambda: builder.build(len(inequalities), limits))
        isl = _isl()
        raw = isl.Map.from_range(flat).move_dims(isl.dim_type.in_, 0, isl.dim_type.out, 0, len(inputs))
        return IntegerMap(tuple(inputs), tuple(outputs), raw, builder.symbols)

    @staticmethod
    def from_exprs(
        inputs: Sequence[str], exprs: Sequence[SizeExpr], outputs: Sequence[str] | None = None
    ) -> IntegerMap:
        """The function that maps the inputs to the values of `exprs`."""
        names = tuple(outputs) if outputs is not None else tuple(f"out {place}" for place in range(len(exprs)))
        equalities = [index(name) - e for name, e in zip(names, exprs, strict=True)]
        return IntegerMap.build(inputs, names, (), equalities)

    @staticmethod
    def identity(inputs: Sequence[str], outputs: Sequence[str]) -> IntegerMap:
        """Every point to itself."""
        return IntegerMap.build(
            inputs, outputs, (), [index(a) - index(b) for a, b in zip(inputs, outputs, strict=True)]
        )

    @staticmethod
    def before(inputs: Sequence[str], outputs: Sequence[str], strict: bool = True) -> IntegerMap:
        """Pairs `(a, b)` with `a` lexicographically before `b` (or equal, if not `strict`)."""
        isl = _isl()
        space = isl.Space.set_alloc(_context(), 0, len(inputs))
        raw = isl.Map.lex_lt(space) if strict else isl.Map.lex_le(space)
        return IntegerMap(tuple(inputs), tuple(outputs), raw)

    def here(self) -> Any:
        """The object of the library, in the context of this thread."""
        if self.owner == threading.get_ident():
            return self.raw
        return _copied(self.raw, _isl().Map.read_from_str)

    def _with(
        self,
        raw: Any,
        inputs: tuple[str, ...] | None = None,
        outputs: tuple[str, ...] | None = None,
        other: Mapping[str, SizeExpr] | None = None,
    ) -> IntegerMap:
        symbols = {**self.symbols, **other} if other else self.symbols
        inputs = self.inputs if inputs is None else inputs
        return IntegerMap(inputs, self.outputs if outputs is None else outputs, raw, symbols)

    @property
    def params(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return _params(self.raw)

    def then(self, other: IntegerMap) -> IntegerMap:
        """First this map, then `other`."""
        raw = _limited(lambda: self.here().apply_range(other.here()))
        return self._with(raw, None, other.outputs, other.symbols)

    def reverse(self) -> IntegerMap:
        """The pairs the other way round."""
        return self._with(self.here().reverse(), self.outputs, self.inputs)

    def union(self, other: IntegerMap) -> IntegerMap:
        """The pairs of either."""
        return self._with(_limited(lambda: self.here().union(other.here()).coalesce()), other=other.symbols)

    def intersect(self, other: IntegerMap) -> IntegerMap:
        """The pairs of both."""
        return self._with(_limited(lambda: self.here().intersect(other.here())), other=other.symbols)

    def subtract(self, other: IntegerMap) -> IntegerMap:
        """The pairs that are not in `other`."""
        return self._with(_limited(lambda: self.here().subtract(other.here())), other=other.symbols)

    def constrain(self, constraints: Iterable[SizeExpr], equalities: Iterable[SizeExpr] = ()) -> IntegerMap:
        """The pairs where further `constraints` are >= 0 and `equalities` are 0."""
        return self.intersect(IntegerMap.build(self.inputs, self.outputs, constraints, equalities))

    def domain(self) -> IntegerSet:
        """The first points."""
        return IntegerSet(self.inputs, _limited(lambda: self.here().domain()), self.symbols)

    def range(self) -> IntegerSet:
        """The second points."""
        return IntegerSet(self.outputs, _limited(lambda: self.here().range()), self.symbols)

    def wrapped(self) -> IntegerSet:
        """The pairs as points with all dimensions, inputs first."""
        isl = _isl()

        def query() -> Any:
            raw = self.here().move_dims(isl.dim_type.out, 0, isl.dim_type.in_, 0, len(self.inputs))
            return raw.range()

        return IntegerSet((*self.inputs, *self.outputs), _limited(query), self.symbols)

    def project_out(self, names: Iterable[str]) -> IntegerMap:
        """The map without the inputs and outputs `names`: there is some value for them."""
        isl, gone = _isl(), set(names)

        def query() -> Any:
            raw = self.here()
            for kind, dims in ((isl.dim_type.in_, self.inputs), (isl.dim_type.out, self.outputs)):
                for place in reversed(range(len(dims))):
                    if dims[place] in gone:
                        raw = raw.project_out(kind, place, 1)
            return raw

        inputs = tuple(name for name in self.inputs if name not in gone)
        return self._with(_limited(query), inputs, tuple(name for name in self.outputs if name not in gone))

    def rename(self, names: Mapping[str, str]) -> IntegerMap:
        """The map with other names for its dimensions."""
        inputs = tuple(names.get(name, name) for name in self.inputs)
        return self._with(self.here(), inputs, tuple(names.get(name, name) for name in self.outputs))

    def fix(self, values: Mapping[str, int]) -> IntegerMap:
        """The map for given values of parameters, inputs and outputs; the dimensions stay, with one value."""
        isl = _isl()

        def query() -> Any:
            raw = _with_params_fixed(self.here(), values, self.symbols)
            for kind, dims in ((isl.dim_type.in_, self.inputs), (isl.dim_type.out, self.outputs)):
                for place, name in enumerate(dims):
                    if name in values:
                        raw = raw.fix_val(kind, place, _integer(values[name]))
            return raw

        return self._with(_limited(query))

    def image(self, point: Mapping[str, int]) -> IntegerSet:
        """The second points that belong to one first point (values by input name; parameters may be given as well)."""
        return self.fix(point).range()

    def is_empty(self) -> Answer:
        """Whether there is no pair, for any value of the parameters."""
        return _answer(lambda: self.here().is_empty())

    def equals(self, other: IntegerMap) -> Answer:
        """Whether both have the same pairs for all values of the parameters."""
        return _answer(lambda: self.here().is_equal(other.here()))

    def is_subset(self, other: IntegerMap) -> Answer:
        """Whether every pair is one of `other`."""
        return _answer(lambda: self.here().is_subset(other.here()))

    def is_injective(self) -> Answer:
        """Whether different inputs have different outputs."""
        return _answer(lambda: self.here().is_injective())

    def is_single_valued(self) -> Answer:
        """Whether every input has at most one output."""
        return _answer(lambda: self.here().is_single_valued())

    def sample(self) -> dict[str, int] | None:
        """One pair with small numbers, or `None`."""
        return self.wrapped().smallest()


# --- proofs --------------------------------------------------------------------------------------------------------------


def prove(context: Iterable[SizeExpr], condition: SizeExpr, dims: Iterable[str] = ()) -> Answer:
    """Whether `condition >= 0` wherever all of `context` are >= 0 (sizes >= 1, scalars in their types).

    YES: it holds everywhere. NO: it fails at some point. UNKNOWN: not decided (also "library absent").
    """
    return decide(context, condition, dims)[0]


def decide(context: Iterable[SizeExpr], condition: SizeExpr, dims: Iterable[str] = ()) -> tuple[Answer, bool]:
    """The answer of `prove`, and whether it is unknown only because the library is absent or its limit was reached."""
    try:
        violated = IntegerSet.build(tuple(dims), [*context, -condition - 1], (), True)
        empty = _limited(lambda: bool(violated.here().is_empty()))
    except Unknown as unknown:
        return Answer.UNKNOWN, unknown.is_skipped
    if empty:
        return Answer.YES, False
    # the counter-example may contradict what an opaque parameter stands for
    return Answer.UNKNOWN if violated.has_opaque else Answer.NO, False


# --- scanning ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScanFor:
    """`for variable in range(lower, upper, step): body`; `lower` and `upper` (excluded) are `int64` expressions."""

    variable: str
    lower: Expr
    upper: Expr
    step: int
    body: tuple[Scan, ...]


@dataclass(frozen=True, slots=True)
class ScanIf:
    """`if condition: then else: otherwise`."""

    condition: Expr
    then: tuple[Scan, ...]
    otherwise: tuple[Scan, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanPoint:
    """One point; an `int64` expression per dimension of the set."""

    coordinates: tuple[Expr, ...]


Scan: TypeAlias = ScanFor | ScanIf | ScanPoint


def scan(points: IntegerSet, prefix: str = "") -> tuple[Scan, ...]:
    """Loops that visit every point of the set once, in lexicographic order; parameters are `Size` expressions.

    Loop variables are named after the dimensions, with `prefix` in front.

    Raises:
        Unknown: library absent, or its limit reached.
    """
    isl = _isl()

    def query() -> tuple[Scan, ...]:
        raw = points.here()
        names = _params(raw)
        for place in range(len(names)):
            raw = raw.set_dim_name(isl.dim_type.param, place, f"p{place}")
        raw = raw.set_tuple_name("S")
        build = isl.AstBuild.from_context(isl.Set.universe(raw.get_space().params()))
        ids = isl.IdList.alloc(_context(), len(points.dims))
        for place in range(len(points.dims)):
            ids = ids.add(isl.Id(f"c{place}", context=_context()))
        build = build.set_iterators(ids)
        schedule = isl.UnionMap.from_map(
            isl.Map.identity(raw.get_space().map_from_set()).reset_tuple_id(isl.dim_type.out)
        )
        schedule = schedule.intersect_domain(isl.UnionSet.from_set(raw))
        variables: dict[str, Expr] = {f"p{place}": Size(name) for place, name in enumerate(names)}
        for name, e in points.symbols.items():
            if name in names:
                variables[f"p{names.index(name)}"] = to_expr(e)
        for place, name in enumerate(points.dims):
            variables[f"c{place}"] = IndexVar(prefix + name)
        return _scan_node(build.node_from_schedule_map(schedule), variables)

    return _limited(query)


def _scan_node(node: Any, variables: Mapping[str, Expr]) -> tuple[Scan, ...]:
    kinds = _isl().ast_node_type
    kind = node.get_type()
    if kind == kinds.block:
        children = node.block_get_children()
        return tuple(
            part for place in range(children.n_ast_node()) for part in _scan_node(children.get_at(place), variables)
        )
    if kind == kinds.for_:
        return _scan_for(node, variables)
    if kind == kinds.if_:
        then = _scan_node(node.if_get_then_node(), variables)
        otherwise = _scan_node(node.if_get_else_node(), variables) if node.if_has_else_node() else ()
        return (ScanIf(_scan_expr(node.if_get_cond(), variables), then, otherwise),)
    call = node.user_get_expr()
    count = call.get_op_n_arg()
    return (ScanPoint(tuple(_scan_expr(call.get_op_arg(place), variables) for place in range(1, count))),)


def _scan_for(node: Any, variables: Mapping[str, Expr]) -> tuple[Scan, ...]:
    name = node.for_get_iterator().get_id().get_name()
    variable = variables[name]
    lower = _scan_expr(node.for_get_init(), variables)
    shown = variable.name if isinstance(variable, IndexVar) else name
    body = _scan_node(node.for_get_body(), variables)
    if node.for_is_degenerate():
        return (ScanFor(shown, lower, Binary("+", lower, int64(1), DType.INT64), 1, body),)
    step = _scan_expr(node.for_get_inc(), variables)
    condition = node.for_get_cond()
    upper = _scan_expr(condition.get_op_arg(1), variables)
    if condition.get_op_type() == _isl().ast_expr_op_type.le:
        upper = Binary("+", upper, int64(1), DType.INT64)
    if not isinstance(step, Const):
        raise Unknown("a loop with a symbolic step")
    return (ScanFor(shown, lower, upper, int(step.value), body),)


_SCAN_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "//",
    "fdiv_q": "//",
    "pdiv_q": "//",
    "pdiv_r": "%",
    "zdiv_r": "%",
    "min": "min",
    "max": "max",
}
_SCAN_CONDITIONS = {"and_": "&&", "and_then": "&&", "or_": "||", "or_else": "||"}
_SCAN_COMPARISONS = {"eq": "==", "le": "<=", "lt": "<", "ge": ">=", "gt": ">"}


def _scan_expr(expr: Any, variables: Mapping[str, Expr]) -> Expr:
    isl = _isl()
    kind = expr.get_type()
    if kind == isl.ast_expr_type.int:
        return int64(int(expr.get_val().to_python()))
    if kind == isl.ast_expr_type.id:
        return variables[expr.get_id().get_name()]
    operator = expr.get_op_type().name
    operands = [_scan_expr(expr.get_op_arg(place), variables) for place in range(expr.get_op_n_arg())]
    if operator == "minus":
        return Unary("-", operands[0], DType.INT64)
    if operator in ("cond", "select"):
        return Select(operands[0], operands[1], operands[2], DType.INT64)
    for table, dtype in (
        (_SCAN_OPERATORS, DType.INT64),
        (_SCAN_CONDITIONS, DType.BOOL),
        (_SCAN_COMPARISONS, DType.BOOL),
    ):
        if operator in table:
            result = operands[0]
            for other in operands[1:]:
                result = Binary(table[operator], result, other, dtype)
            return result
    raise Unknown(f"the operator {operator} in generated loops")


def scanned(loops: tuple[Scan, ...], values: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """The points that the loops visit for given numbers, for display and tests."""
    for node in loops:
        match node:
            case ScanPoint():
                yield tuple(from_expr(e).evaluate(values) for e in node.coordinates)
            case ScanIf():
                chosen = node.then if to_condition(node.condition).evaluate(values) else node.otherwise
                yield from scanned(chosen, values)
            case ScanFor():
                lower, upper = from_expr(node.lower).evaluate(values), from_expr(node.upper).evaluate(values)
                for value in range(lower, upper, node.step):
                    yield from scanned(node.body, {**values, node.variable: value})
            case _:
                assert_never(node)
