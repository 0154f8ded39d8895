"""The rounds: program -> range of every index, shape and origin of every tensor.

Worked example: `A(i) +=! B(i+k) * K(k)` with `B(N)`, `K(M)`: round 1 looks at the bounds of `K(k)`, which contain one open
index, and finds `0 <= k < M`; round 2 looks at those of `B(i+k)` and finds `0 <= i < N - M + 1`.

Source: `docs/ranges.md`, 'The rounds'; Tensor Comprehensions documentation, "Range Inference".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Label, Severity, Span, codes, nearest
from tc_jupyter.diagnostics.values import shown_tensor
from tc_jupyter.diagnostics.work import TooMuchWork, bounded_extent, spend, too_much, uncounted
from tc_jupyter.program import (
    TC_FUNCTIONS,
    Binary,
    Cast,
    Expr,
    Index,
    IndexVar,
    Program,
    Read,
    Size,
    Statement,
    Tensor,
    conjuncts,
    int64,
    walk,
)
from tc_jupyter.syntax import library_names

from .accesses import Access, Bound, accesses, as_written, bounds_of, discharge, write_access
from .convert import Scope, from_expr
from .display import range_text, to_python
from .interval import Box, Limit, interval, solve
from .size_expr import (
    ZERO,
    Atom,
    Name,
    Product,
    SizeExpr,
    constant,
    floor_div,
    has_data,
    index,
    is_known_at_call,
    maximum,
    minimum,
    nonnegative,
    scalar,
    size,
)

LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class IndexRange:
    """`lower <= index < upper`, both `None` while unknown.

    Attributes:
        kind: `output` or `reduction`.
        source: `where`, `inferred`, `target` (taken from the box of the tensor that is updated, or from the next statement on it
            where this one writes a literal), or `open`.
        round: number of the round that found it, 0 for `where` and `target`.
        because: the bounds that shaped it.
        exact: no larger range is possible given the earlier rounds.
        needs: what must be >= 0 for it to be meant: step, dilation and padding of a window.
        ends: where it begins and ends (excluded) at each point, if that differs; `lower` and `upper` are the least and the largest.
    """

    statement: str
    index: str
    lower: SizeExpr | None
    upper: SizeExpr | None
    kind: str
    source: Literal["where", "inferred", "target", "open"]
    round: int = 0
    because: tuple[Bound, ...] = ()
    exact: bool = True
    span: Span = field(default=Span(0, 0), compare=False)
    needs: tuple[SizeExpr, ...] = ()
    ends: tuple[SizeExpr, SizeExpr] | None = None

    @property
    def text(self) -> str:
        """`0 <= i < N - K + 1`."""
        if self.ends is not None:
            return range_text(self.index, *self.ends)
        if self.lower is None or self.upper is None:
            return f"? <= {self.index} < ?"
        return range_text(self.index, self.lower, self.upper)

    @property
    def extent(self) -> SizeExpr:
        """Number of values; raises `ValueError` while unknown."""
        if self.lower is None or self.upper is None:
            raise ValueError(f"the range of {self.index} is not known")
        return self.upper - self.lower

    def changed(self, change: Callable[[SizeExpr], SizeExpr]) -> IndexRange:
        """The range after a change of its ends."""
        lower, upper = (None if end is None else change(end) for end in (self.lower, self.upper))
        ends = None if self.ends is None else (change(self.ends[0]), change(self.ends[1]))
        return replace(self, lower=lower, upper=upper, ends=ends)

    @property
    def ends_on_data(self) -> bool:
        """Whether elements say where it begins or ends."""
        return self.ends is not None and any(map(has_data, self.ends))

    @property
    def reasons(self) -> tuple[str, ...]:
        """One line per access dimension that shaped the index: `0 <= i + k < N  (B)`."""
        return tuple(because_lines(self.because))


def is_literal(statement: Statement) -> bool:
    """Whether the value is made of literals alone: the first statement on a target may then take its ranges from the next one."""
    parts = (item for expr in (*statement.parts, *statement.exists, *statement.conditions) for item in walk(expr))
    return not any(isinstance(item, IndexVar | Read | Size) for item in parts)


def because_lines(bounds: tuple[Bound, ...]) -> list[str]:
    """The bounds as lines, both sides of a dimension joined, with all tensors that say the same: `0 <= t < T  (X, Cos)`."""
    groups: dict[tuple[int, int], list[Bound]] = {}
    for bound in bounds:
        groups.setdefault((id(bound.access), bound.dimension), []).append(bound)
    saying: dict[str, dict[str, None]] = {}
    for group in groups.values():
        saying.setdefault(_joined(group), {})[group[0].access.tensor] = None
    return [f"{line}  ({', '.join(tensors)})" for line, tensors in saying.items()]


def _joined(group: list[Bound]) -> str:
    sides = {bound.side: bound for bound in group}
    if len(sides) == 2:
        e = to_python(group[0].access.index[group[0].dimension])
        return f"{to_python(sides['lower'].limit)} <= {e} < {to_python(sides['upper'].limit)}"
    return group[0].text


@dataclass(frozen=True, slots=True)
class Shaped:
    """One step of a round: `bound` put `limit` on `index`."""

    index: str
    bound: Bound
    limit: Limit


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a statement: what was learned, and which indices got their ranges. `fallback`: discharged bounds took part."""

    number: int
    learned: tuple[Shaped, ...]
    resolved: tuple[str, ...]
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class Ranges:
    """What inference found.

    Attributes:
        indices: ranges of each statement, in the order of `Statement.indices`.
        boxes: boxes of the tensors whose ranges are all known.
        accesses, bounds, rounds: per statement; `bounds` ends with those of the write of a later statement.
        divisors: per statement (and under `""` for given boxes), expressions that must not be 0 at the call.
        sizes: meaning of every size name, also of extents of computed tensors (`T.0`).
        scope: names for `from_expr`, without indices.
        at_points: the statements with an access that each point has to look at, once `preconditions` has found them.
    """

    program: Program
    indices: Mapping[str, tuple[IndexRange, ...]]
    boxes: Mapping[str, Box]
    accesses: Mapping[str, tuple[Access, ...]]
    bounds: Mapping[str, tuple[Bound, ...]]
    rounds: Mapping[str, tuple[Round, ...]]
    divisors: Mapping[str, tuple[SizeExpr, ...]]
    sizes: Mapping[str, SizeExpr]
    scope: Scope
    diagnostics: tuple[Diagnostic, ...]
    at_points: frozenset[str] = frozenset()

    def range(self, statement: str, index: str) -> IndexRange:
        """The range of an index of a statement; raises `KeyError`."""
        for found in self.indices[statement]:
            if found.index == index:
                return found
        raise KeyError(index)

    def points(self, statement: str) -> tuple[IndexRange, ...]:
        """The ranges of the indices that the points of a statement have: all but those of computed dimensions."""
        return tuple(found for found in self.indices[statement] if not self.is_computed(found))

    def around(self, statement: str, begins: bool) -> tuple[IndexRange, ...]:
        """The ranges that have a value wherever an access takes place, one of each point or one that `begins`."""
        points = self.points(statement)
        return tuple(found for found in points if found.kind == "output") if begins else points

    def is_computed(self, found: IndexRange) -> bool:
        """Whether an index is that of a dimension whose subscript is computed, so that nobody has written it."""
        return found.index in self.program.statement(found.statement).computed_indices

    def written(self, statement: str) -> tuple[IndexRange, ...]:
        """The ranges of the indices that stand in the text: all but that of the two parts of a complex number."""
        found = self.indices.get(statement, ())
        outputs = self.program.statement(statement).output_indices if found else ()
        target = self.program.tensor(self.program.statement(statement).target) if found else None
        if target is None or not target.pairs:
            return found
        hidden = {index.name for index in outputs[target.written_rank :]}
        return tuple(each for each in found if each.index not in hidden)

    def is_complete(self, statement: str) -> bool:
        """Whether all ranges of the statement are known."""
        return all(r.lower is not None for r in self.indices[statement])

    def statement_box(self, statement: str) -> Box:
        """The ranges of a statement as a box; raises `ValueError` while one is unknown."""
        bounds: list[tuple[SizeExpr, SizeExpr]] = []
        for r in self.indices[statement]:
            if r.lower is None or r.upper is None:
                raise ValueError(f"the range of {r.index} is not known")
            bounds.append((r.lower, r.upper))
        return Box(tuple(bounds))

    def changed(self, change: Callable[[SizeExpr], SizeExpr]) -> Ranges:
        """The ranges, boxes and extents after a change of their expressions; what they rest on stays as it was."""
        indices = {name: tuple(r.changed(change) for r in found) for name, found in self.indices.items()}
        boxes = {name: Box(tuple((change(a), change(b)) for a, b in box.bounds)) for name, box in self.boxes.items()}
        return replace(self, indices=indices, boxes=boxes, sizes={name: change(e) for name, e in self.sizes.items()})

    def index_scope(self, statement: Statement) -> Scope:
        """Names for `from_expr` inside a statement."""
        return _index_scope(self.scope, statement)


def _index_scope(scope: Scope, statement: Statement) -> Scope:
    indices = {item.name: index(item.name, position) for position, item in enumerate(statement.indices)}
    return replace(scope, indices=indices, divisors=[])


def infer_ranges(program: Program) -> Ranges:
    """Ranges, boxes and what they rest on, for a checked program; never raises for a mistake of the program.

    Source: `docs/ranges.md`, 'One statement, step by step'.
    """
    state = _statements(program)
    for tensor in program.tensors:
        if tensor.box is not None and tensor.name not in state.boxes:
            with state.within_limits(tensor.span):
                state.give_box(tensor.name, tensor.box)
    with state.within_limits(program.span):
        state.check_constants()
    state.divisors[""] = tuple(dict.fromkeys(state.scope.divisors or ()))
    return Ranges(
        program,
        state.indices,
        state.boxes,
        state.accesses,
        state.bounds,
        state.rounds,
        state.divisors,
        state.sizes,
        replace(state.scope, divisors=None),
        tuple(sorted(state.diagnostics, key=lambda d: d.span)),
    )


MOST_PASSES = 8
"""How often the statements are gone through while ranges of literals are found in later statements; one pass is the rule."""

STEPS_PER_STATEMENT = 150  # to solve its bounds, to look for its preconditions, and to say them


def _statements(program: Program) -> _Inference:
    """The state after all statements, whose first one on a target may write a literal and wait for the next one's ranges."""
    given: dict[str, Box] = {}
    for number in range(MOST_PASSES):
        with uncounted():  # what the signature says is known of any program
            state = _Inference(program, given)
        for statement in program.statements:
            with state.within_limits(statement.span):
                spend(STEPS_PER_STATEMENT)
                state.infer(statement)
            if statement.name not in state.indices:
                state.leave_out(statement)
            state.look_back(statement)
        if not state.learned or number == MOST_PASSES - 1:
            return state
        given |= state.learned
    raise AssertionError("the last pass returns")


def signature_scope(program: Program) -> tuple[dict[str, SizeExpr], dict[str, SizeExpr]]:
    """Sizes and integer scalars of the signature."""
    sizes = {name: size(name, position) for position, name in enumerate(program.sizes)}
    count = len(sizes)
    scalars = {
        tensor.name: scalar(tensor.name, tensor.dtype, count + position)
        for position, tensor in enumerate(program.tensors)
        if tensor.kind == "input" and tensor.rank == 0 and tensor.dtype.is_integer
    }
    return sizes, scalars


class _Inference:
    """The state while statements are handled in text order; statements never change what earlier ones found."""

    def __init__(self, program: Program, given: Mapping[str, Box]) -> None:
        self.program = program
        self.given = given
        # ranges of literals that a later statement has to complete, and those that one has completed
        self.waiting: dict[str, tuple[IndexRange, ...]] = {}
        self.learned: dict[str, Box] = {}
        self.tensors = {tensor.name: tensor for tensor in program.tensors}
        self.views: dict[str, list[str]] = {}
        for tensor in program.tensors:
            if tensor.view_of:
                self.views.setdefault(tensor.view_of, []).append(tensor.name)
        self.sizes, scalars = signature_scope(program)
        pairs = frozenset(tensor.name for tensor in program.tensors if tensor.pairs)
        brackets = "[]" if program.language == "sac" else "()"
        self.scope = Scope(self.sizes, scalars, {}, [], brackets, pairs=pairs)
        self.boxes: dict[str, Box] = {}
        self.written: set[str] = set()  # by the statements so far, also where ranges stayed unknown
        self.indices: dict[str, tuple[IndexRange, ...]] = {}
        self.accesses: dict[str, tuple[Access, ...]] = {}
        self.bounds: dict[str, tuple[Bound, ...]] = {}
        self.rounds: dict[str, tuple[Round, ...]] = {}
        self.divisors: dict[str, tuple[SizeExpr, ...]] = {}
        self.diagnostics: list[Diagnostic] = []
        self.gave_up = False
        for tensor in program.tensors:
            if tensor.dims is not None:
                pairs = tensor.box or tuple((int64(0), dim) for dim in tensor.dims)
                self.give_box(tensor.name, pairs)

    def set_box(self, name: str, box: Box) -> None:
        """Set the box of a tensor and of its views, which have its shape and start at 0."""
        shape = box.shape
        for extent in shape:
            bounded_extent(extent.depth)
        left = [(name, box)]
        while left:
            each, own = left.pop()
            self.boxes[each] = own
            for dimension, (extent, first) in enumerate(zip(shape, own.origin, strict=True)):
                self.sizes[f"{each}.{dimension}"] = extent
                self.sizes[f"{each}.first{dimension}"] = first
            left += [(view, self.seen(view, shape)) for view in self.views.get(each, ())]

    def seen(self, view: str, shape: tuple[SizeExpr, ...]) -> Box:
        """The box of a view: it starts at 0, or where the parameter does for which it is passed."""
        given = self.tensors[view].box
        starts = [ZERO] * len(shape) if given is None else [from_expr(start, self.scope) for start, _ in given]
        return Box(tuple((start, start + extent) for start, extent in zip(starts, shape, strict=True)))

    def give_box(self, name: str, given: tuple[tuple[Expr, Expr], ...]) -> None:
        bounds = tuple((from_expr(lower, self.scope), from_expr(upper, self.scope)) for lower, upper in given)
        self.set_box(name, Box(bounds))

    @contextmanager
    def within_limits(self, span: Span) -> Generator[None]:
        """Tell once what is too much work (TC508); what it was for stays unknown."""
        try:
            yield
        except TooMuchWork as problem:
            if not self.gave_up:
                self.diagnostics.append(too_much(problem, span))
            self.gave_up = True

    def leave_out(self, statement: Statement) -> None:
        """A statement of which nothing is known."""
        name = statement.name
        self.written.add(statement.target)
        self.indices[name] = tuple(_unknown(name, item) for item in statement.indices)
        self.accesses[name], self.bounds[name], self.rounds[name], self.divisors[name] = (), (), (), ()

    def infer(self, statement: Statement) -> None:
        target = self.tensors[statement.target]
        if target.box is not None and target.name not in self.boxes:
            self.give_box(target.name, target.box)
        solver = self.solved(statement)
        if statement.order and target.name not in self.boxes and solver.is_complete:
            self.set_box(target.name, solver.written_box)
            solver = self.solved(statement)  # which knows now what the statement may read of what it makes
        self.diagnostics.extend(solver.diagnostics)
        self.report_unknown(statement, target)
        if statement.target not in self.boxes and statement.target not in self.written and solver.is_complete:
            self.set_box(statement.target, solver.written_box)
            if statement.computed:
                solver.add_write(self.boxes[statement.target])
        elif statement.target in self.boxes and solver.is_complete:
            solver.add_write(self.boxes[statement.target])
        elif statement.target in self.waiting and solver.is_complete:
            self.complete(statement.target, solver.ranges)
        elif statement.target not in self.written and is_literal(statement):
            self.waiting[statement.target] = tuple(solver.ranges)
        name = statement.name
        self.written.add(statement.target)
        self.indices[name] = tuple(solver.ranges)
        self.accesses[name] = solver.accesses
        self.bounds[name] = tuple(solver.bounds)
        self.rounds[name] = tuple(solver.rounds)
        self.divisors[name] = tuple(dict.fromkeys(solver.scope.divisors or ()))

    def look_back(self, last: Statement) -> None:
        """After the last statement of a block, it is known of all of them what they read of what later ones make."""
        members = [each for each in self.program.statements if last.block and each.block == last.block]
        if not members or members[-1] is not last:
            return
        for each in members:
            if not any(read.tensor in each.ahead and read.tensor != each.target for read in each.reads()):
                continue
            with self.within_limits(each.span):
                solver = self.solved(each)
                if each.target in self.boxes and solver.is_complete:
                    solver.add_write(self.boxes[each.target])
                    self.accesses[each.name], self.bounds[each.name] = solver.accesses, tuple(solver.bounds)

    def solved(self, statement: Statement) -> _Rounds:
        """The rounds of a statement, with what is known so far."""
        others = list[Statement]()
        if statement.computed:
            others = [each for each in self.program.statements if each.target == statement.target and each.computed]
        later = self.given.get(statement.target)
        scope = _index_scope(self.scope, statement)
        solver = _Rounds(statement, scope, self.boxes, later, others)
        solver.run()
        return solver

    def report_unknown(self, statement: Statement, target: Tensor) -> None:
        """TC306, where the number of a bound is what the last 64 bits make of another one."""
        ranges = [(end, item.span) for item in statement.indices for end in item.where or ()]
        shape = [(end, target.span) for end in chain(*(target.box or ()))]
        for ends in (ranges, shape):
            unknown = [(end, span) for end, span in ends if not is_known_at_call(from_expr(end, self.scope))]
            for end, span in unknown:
                self.diagnostics.append(unknown_at_call(end.span if end.span.end else span))
            if unknown:
                return

    def complete(self, target: str, later: Sequence[IndexRange]) -> None:
        """Give a literal that waits the ranges of this statement where it has none of its own."""
        own = self.waiting.pop(target)
        ranges = (other if r.lower is None else r for r, other in zip(own, later, strict=False))
        self.learned[target] = Box(
            tuple((r.lower, r.upper) for r in ranges if r.lower is not None and r.upper is not None)
        )
        self.set_box(target, self.learned[target])

    def check_constants(self) -> None:
        """TC502: constants beyond 64 bits."""
        for tensor in self.program.tensors:
            box = self.boxes.get(tensor.name)
            if box is None:
                continue
            count = 1
            for extent in box.shape:
                count *= extent.offset if extent.is_constant else 1
            if count > LARGEST:
                shown = shown_tensor(tensor.name, self.program.source, tensor.span)
                message = f"{shown} has more than 2^63 - 1 elements"
                self.diagnostics.append(
                    Diagnostic(codes.TOO_LARGE, tensor.span, message, "too large", help="use smaller constant extents")
                )


def _residue(e: SizeExpr) -> tuple[int, int] | None:
    """Period and residue of `2*i + 1`: 2 and 1; `None` for what is no such number."""
    names = e.indices
    split = e.linear_in(next(iter(names))) if len(names) == 1 else None
    if split is None or not split[0].is_constant or not split[1].is_constant or split[0].offset < 2:
        return None
    return split[0].offset, split[1].offset % split[0].offset


def _unknown(statement: str, item: Index) -> IndexRange:
    return IndexRange(statement, item.name, None, None, item.kind, "open", exact=False, span=item.span)


@dataclass(frozen=True, slots=True)
class Window:
    """The number of places of a window over an array with a border, what they need, and the bounds that say so."""

    extent: SizeExpr
    needs: tuple[SizeExpr, ...]
    bounds: tuple[Bound, ...]


class _Rounds:
    """Ranges of one statement: bounds, guards, rounds, then the range of the target."""

    def __init__(
        self,
        statement: Statement,
        scope: Scope,
        boxes: Mapping[str, Box],
        later: Box | None,
        others: Sequence[Statement] = (),
    ) -> None:
        self.statement = statement
        self.others = others
        self.later = later
        self.scope = scope
        self.boxes = boxes
        self.diagnostics: list[Diagnostic] = []
        self.rounds: list[Round] = []
        self.box: dict[str, tuple[SizeExpr, SizeExpr]] = {}  # resolved indices, both ends included
        self.found: dict[str, IndexRange] = {}
        self.limits: dict[str, list[Shaped]] = {}
        self.used: set[int] = set()
        self.looked: set[int] = set()
        self.accesses: tuple[Access, ...] = accesses(statement, scope)
        self.bounds: list[Bound] = []
        self.blind: set[str] = set()  # indices of accesses to tensors whose box is unknown
        ends = {item.name: item.ends for item in statement.indices if item.ends is not None}
        self.ends = {name: (from_expr(low, scope), from_expr(high, scope)) for name, (low, high) in ends.items()}
        # ranges that follow once those of other indices are known; where elements decide, what is indexed says how far they reach
        self.moving = {name: pair for name, pair in self.ends.items() if not any(map(has_data, pair))}

    @property
    def ranges(self) -> list[IndexRange]:
        return [self.found[item.name] for item in self.statement.indices]

    @property
    def is_complete(self) -> bool:
        return all(r.lower is not None for r in self.found.values())

    @property
    def written_box(self) -> Box:
        """The ranges of the output indices."""
        outputs = self.ranges[: len(self.statement.output_indices)]
        return Box(tuple((r.lower, r.upper) for r in outputs if r.lower is not None and r.upper is not None))

    def is_own(self, access: Access) -> bool:
        """Whether an access reads what the statement itself makes, which shapes nothing."""
        return self.statement.is_made(access.tensor)

    def run(self) -> None:
        self.take_where()
        self.take_moving()
        self.make_bounds()
        open_indices = [
            item.name for item in self.statement.indices if item.name not in self.found and item.name not in self.moving
        ]
        fallback = False
        number = 0
        while open_indices:
            number += 1
            self.look(open_indices, fallback)
            done = [name for name in open_indices if self.try_resolve(name, number)]
            learned = tuple(s for name in done for s in self.limits[name])
            if done:
                self.rounds.append(Round(number, learned, tuple(done), fallback))
                open_indices = [name for name in open_indices if name not in done]
                self.take_moving()
            elif fallback:
                break
            else:
                fallback, number = True, number - 1
        self.take_windows(open_indices)
        self.take_target([name for name in open_indices if name not in self.found])
        self.take_moving()
        for name in self.moving:
            item = next(item for item in self.statement.indices if item.name == name)
            self.found[name] = replace(_unknown(self.statement.name, item), ends=self.ends[name])
        self.take_hull()
        self.finish_bounds()
        self.report()

    def take_windows(self, open_indices: list[str]) -> None:
        """Windows over an array with a border: `s*i + d*k - p` lets `i` run as over one that is longer by `p` at both ends."""
        for name in open_indices:
            found = [w for access in self.accesses if (w := self.window(access, name, open_indices)) is not None]
            item = next(item for item in self.statement.indices if item.name == name)
            if not found or any(other.extent != found[0].extent for other in found) or item.kind != "output":
                continue
            first = found[0]
            self.found[name] = IndexRange(
                self.statement.name, name, ZERO, first.extent, item.kind, "inferred", len(self.rounds) + 1, first.bounds,
                span=item.span, needs=tuple(dict.fromkeys(need for each in found for need in each.needs)),
            )  # fmt: skip
            self.box[name] = (ZERO, first.extent - 1)

    def window(self, access: Access, name: str, open_indices: list[str]) -> Window | None:
        """What an access with `else` behind it says of an open index."""
        bounds = [b for b in self.bounds if b.access is access and b.side == "lower" and name in b.expr.indices]
        box, border = self.boxes.get(access.tensor), access.read.border
        if self.is_own(access) or box is None or border is None or not border.window or len(bounds) != 1:
            return None
        parts = [self.window_parts(e - low, open_indices) for e, low in zip(access.index, box.origin, strict=True)]
        own = parts[bounds[0].dimension]
        if own is None or own[0] != name or not any(part and part[3] for part in parts):
            return None
        _, step, _, inner, dilation, padding = own
        span = (dilation * (self.box[inner][1]) if inner else ZERO) + 1
        extent = floor_div(box.shape[bounds[0].dimension] + padding * 2 - span, step) + 1
        needs = [e for e in (step - 1, dilation - 1, padding) if not nonnegative(e)]
        if any(nonnegative(-e - 1) for e in needs):
            return None
        return Window(
            extent, tuple(needs), tuple(b for b in self.bounds if b.access is access and name in b.expr.indices)
        )

    def window_parts(
        self, e: SizeExpr, open_indices: list[str]
    ) -> tuple[str, SizeExpr, SizeExpr, str, SizeExpr, SizeExpr] | None:
        """`s*i + d*k - p` as `i`, `s`, the rest, `k`, `d`, `p`, where `i` alone is open; `k` may be absent."""
        outer = [name for name in open_indices if name in e.indices]
        others = [name for name in e.indices if name not in outer]
        if len(outer) != 1 or len(others) > 1 or has_data(e):
            return None
        split = e.linear_in(outer[0])
        inner = split and (split[1].linear_in(others[0]) if others else (constant(1), split[1]))
        if split is None or inner is None or split[0].indices or inner[0].indices or inner[1].indices:
            return None
        if others and self.box.get(others[0], (None,))[0] != 0:
            return None
        weights = (split[0], inner[0], inner[1])
        if any(set(weight.names) - set(self.scope.scalars or ()) for weight in weights):
            return None
        return outer[0], split[0], split[1], others[0] if others else "", inner[0], -inner[1]

    def take_where(self) -> None:
        for item in self.statement.indices:
            if item.where is None:
                continue
            lower, upper = (from_expr(end, self.scope) for end in item.where)
            self.found[item.name] = IndexRange(
                self.statement.name, item.name, lower, upper, item.kind, "where", span=item.span
            )
            self.box[item.name] = (lower, upper - 1)

    def take_moving(self) -> None:
        """Ranges whose ends other indices decide, once these have theirs: from the least beginning to the largest end."""
        more = True
        while more:
            more = False
            for name, (lower, upper) in list(self.moving.items()):
                if not lower.indices | upper.indices <= self.box.keys():
                    continue
                first, last = interval(lower, self.box).lower, interval(upper, self.box).upper
                del self.moving[name]
                item = next(item for item in self.statement.indices if item.name == name)
                if first is None or last is None or first.indices | last.indices:
                    self.found[name] = replace(_unknown(self.statement.name, item), ends=self.ends[name])
                    continue
                more = True
                last = last if nonnegative(last - first) else maximum(first, last)
                self.found[name] = IndexRange(
                    self.statement.name, name, first, last, item.kind, "where", span=item.span, ends=self.ends[name]
                )
                self.box[name] = (first, last - 1)

    def make_bounds(self) -> None:
        where_box = dict(self.box)
        for access in self.accesses:
            box = self.boxes.get(access.tensor)
            if box is None and self.is_own(access):
                continue  # no element is made yet
            if box is None or len(box.bounds) != len(access.index) + (access.tensor in self.scope.pairs):
                for e in access.index:
                    self.blind |= e.indices
                continue
            for bound in bounds_of(access, box):
                if access.guards and discharge(bound, where_box):
                    bound = replace(bound, discharged=True)
                self.bounds.append(bound)

    def look(self, open_indices: list[str], fallback: bool) -> None:
        """Solve every bound with exactly one open index."""
        frozen = frozenset((*open_indices, *self.moving))
        for number, bound in enumerate(self.bounds):
            if number in self.looked or (bound.discharged and not fallback) or bound.access.is_border(bound.dimension):
                continue
            if self.is_own(bound.access):
                continue
            here = bound.expr.indices & frozen
            if len(here) != 1 or here & self.moving.keys():
                continue
            self.looked.add(number)
            (name,) = here
            limit = solve(bound.expr, name, self.box, self.scope.divisors)
            if limit is not None:
                self.used.add(number)
                self.limits.setdefault(name, []).append(Shaped(name, bound, limit))

    def try_resolve(self, name: str, number: int) -> bool:
        shaped = self.limits.get(name, [])
        lows = [s.limit.value for s in shaped if s.limit.side == "lower"]
        highs = [s.limit.value for s in shaped if s.limit.side == "upper"]
        if not lows or not highs:
            return False
        item = next(item for item in self.statement.indices if item.name == name)
        lower, upper = maximum(*lows), minimum(*highs) + 1
        because = tuple(replace(s.bound, used=True) for s in shaped)
        exact = all(s.limit.exact for s in shaped)
        self.found[name] = IndexRange(
            self.statement.name,
            name,
            lower,
            upper,
            item.kind,
            "inferred",
            number,
            because,
            exact,
            item.span,
            ends=self.ends.get(name),
        )
        self.box[name] = (lower, upper - 1)
        return True

    def take_target(self, open_indices: list[str]) -> None:
        box = self.boxes.get(self.statement.target, self.later)
        open_names = set(open_indices)
        for dimension, item in enumerate(self.statement.indices):
            if item.name not in open_names:
                continue
            if box is not None and item.kind == "output":
                lower, upper = box.bounds[dimension]
                self.found[item.name] = IndexRange(
                    self.statement.name, item.name, lower, upper, item.kind, "target", span=item.span
                )
                self.box[item.name] = (lower, upper - 1)
            elif (
                (beside := self.beside_border(item)) is not None
                and beside.lower is not None
                and beside.upper is not None
            ):
                self.found[item.name] = beside
                self.box[item.name] = (beside.lower, beside.upper - 1)
            else:
                self.found[item.name] = replace(_unknown(self.statement.name, item), ends=self.ends.get(item.name))

    def beside_border(self, item: Index) -> IndexRange | None:
        """The range of an index that stands alone in reads with `else`: that of the dimension, beside what is no such index."""
        bounds = [b for b in self.bounds if item.name in b.expr.indices and not self.is_own(b.access)]
        if not bounds or item.name in self.blind:
            return None
        for bound in bounds:
            access, border = bound.access, bound.access.read.border
            alone = [e == index(name) and name not in self.box for e in access.index for name in sorted(e.indices)[:1]]
            is_alone = access.index[bound.dimension] == index(item.name)
            if border is None or not border.window or not is_alone or sum(alone) == len(access.index):
                return None
        ends = {self.boxes[b.access.tensor].bounds[b.dimension] for b in bounds}
        if len(ends) != 1:
            return None
        ((lower, upper),) = ends
        because = tuple(replace(bound, used=True) for bound in bounds)
        return IndexRange(
            self.statement.name,
            item.name,
            lower,
            upper,
            item.kind,
            "inferred",
            len(self.rounds) + 1,
            because,
            span=item.span,
        )

    def take_hull(self) -> None:
        """Dimensions whose subscripts are expressions, of a target that nothing has written yet: all values of these."""
        for item, subscript in self.statement.computed:
            if self.found[item.name].lower is not None:
                continue
            e = from_expr(subscript, self.scope)
            ends = interval(e, self.box)
            if ends.lower is not None and ends.upper is not None and not ends.lower.indices | ends.upper.indices:
                lower, upper = self.whole_period(item, e, ends.lower, ends.upper + 1)
                self.found[item.name] = IndexRange(
                    self.statement.name, item.name, lower, upper, item.kind, "inferred", 0, span=item.span
                )
                self.box[item.name] = (lower, upper - 1)

    def whole_period(self, item: Index, e: SizeExpr, lower: SizeExpr, upper: SizeExpr) -> tuple[SizeExpr, SizeExpr]:
        """The ends of `2*i`, rounded to `0` and `2*N` where statements on the target write `2*i` and `2*i + 1`."""
        own = _residue(e)
        if own is None:
            return lower, upper
        period, residue = own
        number = self.statement.output_indices.index(item)
        residues = {residue}
        for other in self.others:
            if len(other.left) > number and (
                found := _residue(from_expr(other.left[number], _index_scope(self.scope, other)))
            ):
                residues |= {found[1]} if found[0] == period else set()
        if len(residues) < period:
            return lower, upper
        return lower - residue, upper - 1 - residue + period

    def finish_bounds(self) -> None:
        """Mark the bounds that shaped a range; a limit of an index that stayed open shaped nothing."""
        for number in self.used:
            bound = self.bounds[number]
            shaped = [name for name, items in self.limits.items() if any(s.bound is bound for s in items)]
            if any(self.found[name].source == "inferred" for name in shaped):
                self.bounds[number] = replace(bound, used=True)

    def add_write(self, box: Box) -> None:
        self.bounds.extend(_always_begun(self.statement, bounds_of(write_access(self.statement, self.scope), box)))

    # --- messages ------------------------------------------------------------------------------------------------------

    def report(self) -> None:
        for item in self.statement.indices:
            found = self.found[item.name]
            if found.lower is not None and found.upper is not None:
                self.report_negative(item, found)
            if not found.exact and found.source == "inferred":
                self.report_inexact(item, found)
        self.report_open([item for item in self.statement.indices if self.found[item.name].source == "open"])

    def report_negative(self, item: Index, found: IndexRange) -> None:
        if found.lower is None or found.upper is None or not nonnegative(found.lower - found.upper - 1):
            return
        if item.name in self.statement.computed_indices:
            target = self.statement.target
            message = f"nothing says how large `{target}` is: its subscript has no value for any size"
            help = "state its extent in the result list"
            self.diagnostics.append(Diagnostic(codes.NEGATIVE_RANGE, item.span, message, "", (), help))
            return
        message = f"the range of `{item.name}` ends before it starts: `{found.text}`"
        labels = tuple(Label(b.access.span, f"needs `{b.text}`") for b in found.because)
        help_text = (
            "swap the two bounds" if found.source == "where" else "give the range: `where " + _where(item.name) + "`"
        )
        fix = None
        if item.where is not None and item.where[0].span.end and item.where[1].span.end:
            source = (item.where[0].span, item.where[1].span)
            fix = Fix(
                "swap the bounds",
                (Edit(source[0], to_python(found.upper)), Edit(source[1], to_python(found.lower))),
            )
        self.diagnostics.append(
            Diagnostic(codes.NEGATIVE_RANGE, item.span, message, "negative for all sizes", labels, help_text, fix)
        )

    def report_inexact(self, item: Index, found: IndexRange) -> None:
        bound = next(s.bound for s in self.limits[item.name] if not s.limit.exact)
        message = (
            f"the largest range of `{item.name}` is not certain: another index of `{bound.access.text}` grows and falls"
        )
        help_text = f"give the range: `where {item.name} in {to_python_or(found.lower)}:{to_python_or(found.upper)}`"
        self.diagnostics.append(
            Diagnostic(codes.NOT_OBVIOUS, bound.access.span, message, f"`{bound.text}`", (), help_text)
        )

    def report_open(self, items: list[Index]) -> None:
        open_names = {item.name for item in items}
        together: list[Index] = []
        unshaped: dict[tuple[Span, str], list[tuple[Index, Bound, str]]] = {}
        told = False
        places = {item.name for item, _ in self.statement.computed}  # which no text shows: `2*i` of `Y(2*i)`
        for item in items:
            if item.name in self.blind or (item.name in places and open_names - places):
                continue  # the tensor it indexes, or the index that it is made of, has a message of its own
            where_used = [b for b in self.bounds if item.name in b.expr.indices]
            if item.ends is not None:
                self.report_ends(item, open_names)
                continue
            if self.report_condition(item):
                told = True
                continue
            if not where_used:
                self.report_never(item)
            elif all(len(b.expr.indices & open_names) > 1 and not has_data(b.expr) for b in where_used):
                together.append(item)
            elif (found := self.unshaped(item, where_used)) is not None:
                reason, text = found
                unshaped.setdefault((where_used[0].access.span, reason), []).append((item, where_used[0], text))
        for (_, reason), group in unshaped.items():
            self.report_unshaped(reason, group)
        if together and not told:  # an index that was told of may be all that they wait for
            self.report_together(together)

    def report_ends(self, item: Index, open_names: set[str]) -> None:
        """TC340, where a range that differs from point to point has no least beginning or no largest end."""
        lower, upper = self.ends[item.name]
        if (lower.indices | upper.indices) & (open_names | self.blind):
            return  # these have messages of their own
        if has_data(lower) or has_data(upper):
            message = f"elements say where `{item.name}` begins and ends, and nothing says how far it may run"
            help_text = f"say what it indexes: `where ..., exists X({item.name})`"
        else:
            message = f"how far `{item.name}` runs at most is not found: its ends are no sums of indices"
            help_text = f"limit it, as in `where {item.name} in 0:min(..., N)`"
        self.diagnostics.append(
            Diagnostic(codes.UNLIMITED_RANGE, item.span, message, f"`{self.found[item.name].text}`", (), help_text)
        )

    def report_condition(self, item: Index) -> bool:
        """TC105, where a condition was meant to give an index its range: `where k < 3`."""
        compared = [
            (each, op, limit)
            for each in self.statement.filters
            for part in conjuncts(each)
            for op, limit in _compared(part, item.name)
        ]
        if not compared:
            return False
        condition = compared[0][0]
        ends = [limit for _, op, limit in compared if op in ("<", "<=")]
        fix = None
        if len(compared) == 1 and ends:
            last = from_expr(ends[0], self.scope) + (1 if compared[0][1] == "<=" else 0)
            text = f"{item.name} in 0:{as_written(last)}"
            fix = Fix(f"write `{text}`", (Edit(condition.span, text),))
        message = "a range is written `k in a:b` or `k = [a, b[`"
        help_text = f"a condition leaves points out; how far `{item.name}` runs is said by a range"
        self.diagnostics.append(Diagnostic(codes.RANGE_BRACKETS, condition.span, message, "", (), help_text, fix))
        return True

    def report_together(self, items: list[Index]) -> None:
        names = ", ".join(f"`{item.name}`" for item in items)
        bound = next(b for b in self.bounds if items[0].name in b.expr.indices)
        needed = self.enough_of(items)
        message = f"the ranges of {names} are ambiguous: they occur only together"
        labels = tuple(
            Label(a.span, f"`{a.text}` mixes {names}")
            for a in self.accesses
            if any(len(e.indices & {i.name for i in items}) > 1 for e in a.index)
        )[1:]
        some = "range of one" if len(needed) == 1 else f"ranges of {len(needed)}"
        help_text = f"give the {some} of them, as in `where {', '.join(_where(name) for name in needed)}`"
        if factor := self.factor_among(items):
            help_text = f"if `{factor}` is a number, make it a parameter, as in `int32 {factor}`; else {help_text}"
        label = f"in `{bound.access.text}` more than one range is unknown"
        self.diagnostics.append(
            Diagnostic(codes.UNRESOLVED_RANGE, bound.access.span, message, label, labels, help_text)
        )

    def enough_of(self, items: list[Index]) -> list[str]:
        """Indices whose ranges give those of all others, the last ones if there is a choice: `q` of `X(y + q)`."""
        deciding = [b for b in self.bounds if not (b.access.is_border(b.dimension) or has_data(b.expr))]
        together = [b.expr.indices & {item.name for item in items} for b in deciding]
        missing, chosen = [item.name for item in items], list[str]()
        while missing:
            chosen.insert(0, missing.pop())
            while alone := {name for each in together if len(left := each & set(missing)) == 1 for name in left}:
                missing = [name for name in missing if name not in alone]
        return chosen

    def factor_among(self, items: list[Index]) -> str | None:
        """An index on the right alone that multiplies another one, as a step does: `S` in `X(S*t + k)`."""
        for item in items:
            splits = (
                e.linear_in(item.name) for access in self.accesses for e in access.index if item.name in e.indices
            )
            if item.kind == "reduction" and any(split is not None and split[0].indices for split in splits):
                return item.name
        return None

    def report_never(self, item: Index) -> None:
        names = {*self.boxes, *(i.name for i in self.statement.indices), *self.scope.sizes} - {item.name}
        names = {name for name in names if "." not in name}
        close = nearest(item.name, sorted(names))
        if item.kind == "output" and close not in {each.name for each in self.statement.indices}:
            close = None  # on the left side stand indices
        read = self.element_of(close) if close else None
        hint = f"did you mean `{read or close}`? if not, " if close else ""
        made = next((read.tensor for read in self.reads_at(item.name)), None)
        only, label = "nothing", "used in no subscript"
        if made is not None:  # what is made in order says nothing about it
            only, label = f"only `{made}`, which is made here", f"used in no subscript but those of `{made}`"
        message = f"`{item.name}` indexes {only}, so its range is unknown"
        end = next((size for size in self.scope.sizes if "." not in size), None)
        help_text = f"{hint}give its range, as in `where {_where(item.name, end)}`"
        if item.kind == "reduction" and not close:
            help_text += ", or make it a parameter, as in `float " + item.name + "`"
        fix = self.renamed(item, read or close) if close and (read or close in self.scope.sizes) else None
        if (end := self.end_of(item)) is not None:
            help_text, fix = f"give its range: `where {item.name} in 0:{end}`", None
            if sum(each.source == "open" for each in self.found.values()) == 1:  # two clauses would stand at one place
                fix = added_clause(self.statement, f"{item.name} in 0:{end}")
        if (other := self.meant_by(item)) is not None:
            help_text = f"did you mean `{item.name}` in the place of `{other.name}`?"
            fix = self.renamed(other, item.name)
        if (number := library_names.CONSTANTS.get(item.name)) is not None:
            help_text, fix = f"the number is written out: `{number}`", self.renamed(item, number)
        elif item.name in TC_FUNCTIONS:
            help_text = f"`{item.name}` is a function, whose argument stands in parentheses: `{item.name}(x)`"
        self.diagnostics.append(Diagnostic(codes.NEVER_INDEXES, item.span, message, label, (), help_text, fix))

    def element_of(self, tensor: str) -> str | None:
        """The element of a tensor at the left-side indices; `None` where it has more or fewer dimensions."""
        left = [each.name for each in self.statement.indices if each.kind == "output"]
        box = self.boxes.get(tensor)
        return f"{tensor}({', '.join(left)})" if box is not None and 0 < len(box.bounds) == len(left) else None

    def end_of(self, item: Index) -> str | None:
        """The size or integer argument that is named as an index on the left is, but for case: `T` for `t`; else the only size."""
        sizes = [name for name in self.scope.sizes if "." not in name]
        ends = [
            name
            for name in {*sizes, *(self.scope.scalars or ())}
            if name != item.name and name.lower() == item.name.lower()
        ]
        ends = ends or sizes
        return ends[0] if len(ends) == 1 and item.kind == "output" else None

    def reads_at(self, name: str) -> Iterator[Read]:
        """The reads of the statement with an index in a subscript."""
        for read in walk(self.statement.value):
            if isinstance(read, Read) and any(IndexVar(name) in set(walk(at)) for at in read.indices):
                yield read

    def meant_by(self, item: Index) -> Index | None:
        """The index that stands on the right alone where this one, on the left, is read nowhere: `k` in `Y(i) = X(k)`."""
        read = {name for bound in self.bounds for name in bound.expr.indices}
        others = [each for each in self.statement.indices if each.kind == "reduction" and each.name in read]
        unread = [each for each in self.statement.indices if each.kind != "reduction" and each.name not in read]
        if self.statement.operator != "=" or item not in unread or len(unread) != len(others):
            return None
        return others[unread.index(item)]

    def renamed(self, item: Index, name: str) -> Fix | None:
        """Write another name wherever an index stands; `None` where it stands on the left, too."""
        statement = self.statement
        parts = (statement.value, *statement.exists, *statement.conditions)
        nodes = (node for expr in parts for node in walk(expr))
        spans = dict.fromkeys(node.span for node in nodes if isinstance(node, IndexVar) and node.name == item.name)
        inside = all(statement.span.start <= span.start and span.end <= statement.span.end for span in spans)
        if item.kind != "reduction" or not inside:
            return None
        return Fix(f"replace it by `{name}`", tuple(Edit(span, name) for span in spans))

    def unshaped(self, item: Index, where_used: list[Bound]) -> tuple[str, str] | None:
        """Why the range of an index is not found, and the clause to write; `None` where that is told otherwise."""
        limits = self.limits.get(item.name, [])
        if not limits and all(b.access.is_border(b.dimension) for b in where_used):
            reason = f"`{where_used[0].access.text}` may be read anywhere, also beyond the ends"
            return reason, self.whole(item, where_used)
        if not limits and (found := next((b for b in where_used if _float_index(b) is not None), None)) is not None:
            self.report_float(item, found)
            return None
        if limits:
            side = "above" if limits[0].limit.side == "lower" else "below"
            return f"it is bounded on one side only, nothing limits it from {side}", _where(item.name)
        if any(has_data(b.expr) for b in where_used):
            return "values of tensors never decide how far a loop runs", _where(item.name)
        if scalars := _scalar_factors(where_used[0].expr, item.name):
            names = " and ".join(f"`{name}`" for name in scalars)
            are = "is an integer scalar and no size" if len(scalars) == 1 else "are integer scalars and no sizes"
            end = _end_of_multiples(where_used, item.name, scalars[0])
            reason = f"its factor {names} {are}; only an index times a number or a size decides how far a loop runs"
            return reason, f"{item.name} in 0:{end}" if end else _where(item.name)
        reason = "only sums of index times number or size, and integer division, decide how far a loop runs"
        return reason, _where(item.name)

    def whole(self, item: Index, where_used: list[Bound]) -> str:
        """The clause that lets an index run over the dimension in which it moves."""
        for bound in where_used:
            e, box = bound.access.index[bound.dimension], self.boxes[bound.access.tensor]
            low, high = box.bounds[bound.dimension]
            split = e.linear_in(item.name)
            plain = split is None or split[0] == 1
            if plain and low == 0:
                end = as_written(high)
                return (
                    f"{item.name} in 0:{end if end in self.scope.sizes else f'{bound.access.tensor}.{bound.dimension}'}"
                )
            if plain:
                return f"{item.name} in {as_written(low)}:{as_written(high)}"
        return _where(item.name)

    def report_unshaped(self, reason: str, group: list[tuple[Index, Bound, str]]) -> None:
        """TC303, once for all indices of an access that share a reason."""
        bound = group[0][1]
        names = " and ".join(f"`{item.name}`" for item, _, _ in group)
        message = f"the range of {names} cannot be inferred: {reason}"
        if len(group) > 1:
            message = f"the ranges of {names} cannot be inferred: {reason.replace('its factor', 'their factor', 1)}"
        clauses = ", ".join(dict.fromkeys(text for _, _, text in group))
        is_example = any(text == _where(item.name) for item, _, text in group)
        means = ", as in" if is_example else ":"
        help_text = f"give {'its range' if len(group) == 1 else 'their ranges'}{means} `where {clauses}`"
        label, fix = f"`{bound.access.text}` only has to stay inside", None
        if bound.access.is_border(bound.dimension):
            label = f"`{bound.access.text}` may be outside"
            fix = None if is_example else added_clause(self.statement, clauses)
        self.diagnostics.append(Diagnostic(codes.UNSHAPED_RANGE, bound.access.span, message, label, (), help_text, fix))

    def report_float(self, item: Index, bound: Bound) -> None:
        """TC231 as an error: a floating index decides no range."""
        float_index = _float_index(bound)
        assert float_index is not None
        code = replace(codes.FLOAT_INDEX, severity=Severity.ERROR)
        message = f"the index is `{float_index.dtype.value}`, and a float decides no range, here that of `{item.name}`"
        help_text = f"write an index of integers, or give the range, as in `where {_where(item.name)}`"
        self.diagnostics.append(Diagnostic(code, float_index.span, message, "a floating index", (), help_text))


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _compared(condition: Expr, name: str) -> list[tuple[str, Expr]]:
    """How a condition compares an index alone with what has no index and no element in it."""
    if not isinstance(condition, Binary) or condition.op not in _TURNED:
        return []
    sides = ((condition.left, condition.op, condition.right), (condition.right, _TURNED[condition.op], condition.left))
    return [
        (op, limit)
        for here, op, limit in sides
        if isinstance(here, IndexVar)
        and here.name == name
        and not any(isinstance(node, IndexVar) or (isinstance(node, Read) and node.indices) for node in walk(limit))
    ]


def added_clause(statement: Statement, text: str) -> Fix:
    """Add a clause to a statement as it stands in the text, where an order may follow those that it has."""
    code = re.sub(r"#[^\n]*", lambda comment: " " * len(comment[0]), statement.text)
    clauses = re.search(r"\bwhere\b(.*?)\s*(\balong\b|\Z)", code, re.DOTALL)
    at = statement.span.end if clauses is None or not clauses[2] else statement.span.start + clauses.end(1)
    return Fix(f"add `where {text}`", (Edit(Span(at, at), f" where {text}" if clauses is None else f", {text}"),))


def _float_index(bound: Bound) -> Expr | None:
    """The subscript of a bound, if it is a float that is cut off."""
    subscript = bound.access.read.indices[bound.dimension]
    return subscript.operand if isinstance(subscript, Cast) and subscript.operand.dtype.is_float else None


def _scalar_factors(e: SizeExpr, name: str) -> list[str]:
    """The integer scalars that stand as factors beside an index."""
    found: dict[str, None] = {}
    for mono in e.terms:
        atoms = [atom for each in mono for atom in _factors(each)]
        if any(isinstance(atom, Name) and (atom.kind, atom.name) == ("index", name) for atom in atoms):
            found |= {atom.name: None for atom in atoms if isinstance(atom, Name) and atom.kind == "scalar"}
    return list(found)


def _factors(atom: Atom) -> list[Atom]:
    if isinstance(atom, Product):
        return [part for factor in atom.factors for mono in factor.terms for each in mono for part in _factors(each)]
    return [atom]


def _end_of_multiples(bounds: list[Bound], name: str, scalar_name: str) -> str | None:
    """Where `i` ends in `X(s*i + 1)`, an integer scalar times the index plus a number: after the last step inside."""
    for bound in bounds:
        e = bound.access.index[bound.dimension]
        if (
            bound.side == "upper"
            and set(e.names) == {name, scalar_name}
            and len(e.terms) == 1
            and set(e.terms.values()) == {1}
        ):
            return f"({as_written(bound.limit - 1 - e.offset)})/{scalar_name} + 1"
    return None


def _always_begun(statement: Statement, found: Iterable[Bound]) -> Iterator[Bound]:
    """What a statement needs of its target; a reduction that begins anew does so also where conditions leave all points out."""
    bounds = list(found)
    if statement.operator == "=" or not statement.initialize or not bounds:
        yield from bounds
        return
    computed = statement.computed_indices
    everywhere = replace(bounds[0].access, guards=(), begins=True)
    for bound in bounds:
        plain = statement.output_indices[bound.dimension].name not in computed
        yield replace(bound, access=everywhere) if plain else bound


def unknown_at_call(span: Span) -> Diagnostic:
    """TC306 for a bound."""
    message = "the bound of a range compares what may wrap around in its type, or is converted to `uint64`"
    help_text = "compare numbers that cannot wrap, `s > 0` in the place of `s * s > 0`, and convert to `int64`"
    return Diagnostic(codes.WHERE_NOT_SIZE, span, message, help=help_text)


def _where(name: str, end: str | None = None) -> str:
    """An example of a range; it compiles, whatever the index indexes."""
    return f"{name} in 0:{end or 8}"


def to_python_or(e: SizeExpr | None) -> str:
    """The text of a bound, `...` while unknown."""
    return "..." if e is None else to_python(e)
