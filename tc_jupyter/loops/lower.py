"""The only way from schedules to loops: one kernel per stage at root, with everything attached inside it.

Loops run over the boxes of `infer_bound`, with exact extents at tails (`min(factor, extent - factor*outer)`); a guard is left only
where an extent cannot say it (a fused axis over a split one, a GPU axis whose launch must be uniform). Origins are subtracted here:
element 0 of a buffer is the first element of its box.

Worked example: `o(i) +=! A(i,j) * B(j)` on its default schedule becomes the kernel shown in `ir.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from math import prod

from tc_jupyter.diagnostics import NO_SPAN, CompileError, Diagnostic, SourceText, render, shown_line
from tc_jupyter.diagnostics.codes import DEVICE_LIMIT
from tc_jupyter.program import (
    FOLD_LEFT,
    FOLD_RIGHT,
    Binary,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Statement,
    Tensor,
    at_part,
    children,
    folded_where,
    identity_of,
    keeps,
    rebuild,
    rewrite,
    walk,
    with_operands,
)
from tc_jupyter.ranges import (
    Choice,
    Datum,
    Extremum,
    FloorDiv,
    Name,
    Opaque,
    Scope,
    SizeExpr,
    constant,
    floor_div,
    from_expr,
    index,
    interval,
    keeps_its_form,
    maximum,
    minimum,
    mod,
    nonnegative,
    to_expr,
)
from tc_jupyter.schedule import (
    GPU_AXES,
    STEPS,
    THREAD_AXES,
    ExactSets,
    MatrixStep,
    Skew,
    Split,
    Stage,
    StageBounds,
    StageGraph,
    SymbolicBounds,
    Tile,
    Window,
    constant_extent,
    decided_at,
    first_reduction,
    is_copy,
    loop_extent,
    on_front,
    open_constraints,
    operands,
    proved_copied,
    proved_inside,
    root_of,
    scope_of,
    steps_kept,
    total_dimensions,
    variable,
    view_shift,
    waiting_loop,
    window_of,
    with_safe_padding,
)

from .ir import (
    SPARE,
    Allocate,
    Barrier,
    Block,
    Buffer,
    Check,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    expressions,
    walk_statements,
)
from .register_tails import split_tails
from .rewrite import with_blocks, with_body
from .simplify import simplify_expr

MOST_FOLDED = 1 << 10
"""Elements that a fold keeps in registers or on the stack until they are complete."""
MOST_IN_REGISTERS = 16
"""Elements that a thread of a GPU keeps in registers."""
MOST_FIXED = 1 << 24
"""Elements of a dimension up to which storage in a loop has a constant extent; what may be larger follows the sizes of a call."""


@dataclass(frozen=True, slots=True)
class PointCheck:
    """A subscript to be checked at each point (kind POINTWISE), in logical terms of a statement."""

    statement: str
    condition: Expr
    values: tuple[Expr, ...]
    number: int


def lower(bounds: SymbolicBounds, checks: Iterable[PointCheck] = ()) -> tuple[Kernel, ...]:
    """The kernels of a scheduled program, in order of execution.

    Args:
        bounds: from `infer_symbolic`.
        checks: subscripts to be checked at each point; a check that fails skips its statement at that point.

    Returns:
        One kernel per stage at root. Temporaries at root are buffers of scope `global`, which the launcher allocates.

    Raises:
        CompileError: TC503, the ends of packed tiles must be zero, and a copy does not fill one tile after the other.
    """
    return tuple([make() for make in lower_later(bounds, checks)])


def lower_later(bounds: SymbolicBounds, checks: Iterable[PointCheck] = ()) -> tuple[Callable[[], Kernel], ...]:
    """As `lower`, with a function for each kernel that makes it: one can be printed before the next one is made."""
    checks = tuple(checks)
    bounds = with_safe_padding(bounds, frozenset(check.statement for check in checks))
    sets = ExactSets(bounds)

    def make(number: int, root: Stage) -> Kernel:
        return split_tails(_Nest(bounds, root, checks, sets).kernel(number))

    return tuple([partial(make, number, root) for number, root in enumerate(bounds.graph.roots)])


@dataclass(slots=True)
class _Place:
    """The storage of a tensor inside a kernel: its buffer, the logical index of element 0, tiles of a packed layout, a window in
    shared memory, whose elements lie in a ring, and the dimensions over steps of a block with how many of them there are.
    """

    buffer: Buffer
    base: tuple[SizeExpr, ...]
    layout: tuple[tuple[int, int], ...] | None = None
    ring: Window | None = None
    steps: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class _Nest:
    """Builds the loops of one kernel."""

    bounds: SymbolicBounds
    root: Stage
    checks: tuple[PointCheck, ...]
    sets: ExactSets
    names: dict[str, str] = field(default_factory=dict)
    places: dict[str, _Place] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    windows: dict[str, Window | None] = field(default_factory=dict)
    starts: dict[str, SizeExpr] = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)

    @property
    def graph(self) -> StageGraph:
        return self.bounds.graph

    def window(self, stage: Stage) -> Window | None:
        """The window of a stage that keeps elements between visits; it must compute all of its box."""
        if stage.name not in self.windows:
            found = window_of(self.bounds, stage)
            self.windows[stage.name] = found if found is not None and self.sets.guard(stage.name) is None else None
        return self.windows[stage.name]

    # --- the kernel --------------------------------------------------------------------------------------------------

    def kernel(self, number: int) -> Kernel:
        self.scope = scope_of(self.graph)
        members = [stage for stage in self.graph.stages if self._belongs(stage)]
        self._name_loops(members)
        self._start_loops(members)
        body = self._produce((self.root,))
        used = _used_buffers(body)
        buffers = tuple(
            self._argument(name) for name in self._arguments() if name in used and not self._is_scalar(name)
        )
        return Kernel(
            f"{_identifier(self.graph.program.name)}_{number}_{_identifier(self.root.name)}",
            buffers,
            self._sizes(body, buffers),
            self._scalars(body, buffers),
            body,
            tuple(dict.fromkeys(stage.evaluates for stage in members if stage.evaluates)),
            sum(isinstance(stmt, Check) for stmt in walk_statements(body)),
            most=self.graph.most,
            ordered=any(stage.statement.order for stage in members),
        )

    def _belongs(self, stage: Stage) -> bool:
        return self.graph.root(stage).name == self.root.name

    def _name_loops(self, members: list[Stage]) -> None:
        """Give every loop a name of its own in the kernel: the leaf's name where it is free."""
        taken = set(self.graph.program.sizes)
        for stage in sorted(members, key=lambda stage: len(self.graph.attach_path(stage.name))):
            shared = self._shared_leaves(stage)
            for depth, leaf in enumerate(stage.leaves):
                if depth < len(shared):
                    self.names[variable(stage.name, leaf)] = self.names[variable(stage.attach.stage, shared[depth])]
                    continue
                name = leaf if leaf not in taken else f"{stage.name}.{leaf}"
                taken.add(name)
                self.names[variable(stage.name, leaf)] = name

    def _start_loops(self, members: list[Stage]) -> None:
        """Let loops along a wavefront count as the loop does that it takes its values from: subscripts are simple then."""
        for stage in members:
            related = self.bounds[stage.name].lineage
            for relation in stage.relations if stage.attach.kind != "with" else ():
                if not isinstance(relation, Skew) or stage.annotation(relation.place) not in (None, "parallel"):
                    continue
                if relation.place not in stage.leaves or any(
                    each.attach.kind == "with" for each in self.graph.attached(stage.name)
                ):
                    continue
                first, _ = on_front(relation, related.extents, related.values[relation.front])
                inside = stage.leaves[stage.leaves.index(relation.place) :]
                if not first.indices & {variable(stage.name, leaf) for leaf in inside}:
                    self.starts[variable(stage.name, relation.place)] = first

    def _shared_leaves(self, stage: Stage) -> tuple[str, ...]:
        """The leaves of the other stage whose loops this one shares (`compute_with`)."""
        if stage.attach.kind != "with":
            return ()
        other = self.graph.stage(stage.attach.stage)
        return other.leaves[: other.leaves.index(stage.attach.axis) + 1]

    def _arguments(self) -> tuple[str, ...]:
        program = self.graph.program
        owners = [t.name for t in program.tensors if t.view_of is None]
        order = [*program.parameters, *(self.graph.storage_name(result) for result in program.results), *owners]
        return tuple(dict.fromkeys(order))

    def _argument(self, name: str) -> Buffer:
        buffer = self.place(name).buffer
        role = self.written.get(name, "input")
        return replace(buffer, role=role) if buffer.scope in ("argument", "global") else buffer

    def _sizes(self, body: Block, buffers: tuple[Buffer, ...]) -> tuple[str, ...]:
        found = {node.name for expr in _all_expressions(body, buffers) for node in walk(expr) if isinstance(node, Size)}
        order = [*self.graph.program.sizes, *sorted(found)]
        return tuple(name for name in dict.fromkeys(order) if name in found)

    def _scalars(self, body: Block, buffers: tuple[Buffer, ...]) -> tuple[tuple[str, DType], ...]:
        local = {stmt.buffer.name for stmt in walk_statements(body) if isinstance(stmt, Allocate)}
        known = {buffer.name for buffer in buffers} | local
        found = {
            node.tensor: node.dtype
            for expr in _all_expressions(body, buffers)
            for node in walk(expr)
            if isinstance(node, Read) and not node.indices and node.tensor not in known
        }
        return tuple((name, found[name]) for name in self.graph.program.parameters if name in found)

    # --- storage -----------------------------------------------------------------------------------------------------

    def place(self, tensor: str) -> _Place:
        """Where the elements of a storage tensor are; arguments and temporaries at root are placed on first use."""
        if tensor not in self.places:
            self.places[tensor] = self._root_place(self.graph.program.tensor(tensor))
        return self.places[tensor]

    def _root_place(self, tensor: Tensor) -> _Place:
        results = {self.graph.storage_name(result) for result in self.graph.program.results}
        if tensor.kind == "input" or tensor.name in results:
            box = self.graph.boxes[tensor.name]
            shape = tuple(self.expr(extent) for extent in box.shape)
            return _Place(Buffer(tensor.name, tensor.dtype, shape, strided=True), box.origin)
        stage = self.graph.stages_on(tensor.name)[0]
        bounds = self.bounds[stage.name]
        extents = [extent for _, extent in bounds.box]
        steps = steps_kept(self.graph, tensor.name)
        for dimension, count in steps:
            extents[dimension] = constant(count)
        place = self._allocation(tensor, stage, bounds, "global", extents)
        return replace(place, steps=steps)

    def _allocation(
        self, tensor: Tensor, stage: Stage, bounds: StageBounds, scope: str, extents: list[SizeExpr]
    ) -> _Place:
        storage, window = stage.storage, self.window(stage)
        if window is not None:
            extents[window.dimension] = constant(window.room)
        ring = window if window is not None and window.room > window.length else None
        shape = _packed_shape(extents, storage.layout)
        if storage.pad and shape:
            shape = [*shape[:-1], shape[-1] + storage.pad]
        buffer = Buffer(
            tensor.name,
            tensor.dtype,
            tuple(self.expr(extent) for extent in shape),
            scope,
            align=64,
            swizzle=storage.swizzle,
            stages=storage.double if scope == "shared" else 1,
        )
        return _Place(buffer, tuple(low for low, _ in bounds.box), storage.layout, ring)

    def _attached_place(self, stage: Stage) -> _Place:
        """Storage at the attach point, large enough for every visit."""
        bounds = self.bounds[stage.name]
        whole = self.graph.boxes[self._storage(stage.target)].shape
        extents = [self.largest(extent, stage, most) for (_, extent), most in zip(bounds.box, whole, strict=True)]
        scope = self.graph.scope(stage)
        tensor = self.graph.program.tensor(self._storage(stage.target))
        place = self._allocation(tensor, stage, bounds, scope, extents)
        return replace(place, buffer=replace(place.buffer, threads=1)) if scope == "threads" else place

    def largest(self, extent: SizeExpr, stage: Stage, whole: SizeExpr) -> SizeExpr:
        """The largest value of an extent over all visits; a constant where there is one of at most `MOST_FIXED`.

        A range that ends at an `int32` scalar has a limit too, but one that nobody wants to allocate. `whole`, the extent in the
        tensor, is the answer where the loops have none.
        """
        most = extent.limits[1]
        if most is None or most > MOST_FIXED:
            most = self.sets.largest(stage, extent) if extent.indices else None
        if most is not None and most <= MOST_FIXED:
            return constant(max(0, most))
        for consumer, leaf in self.graph.attach_path(stage.name):
            name = variable(consumer, leaf)
            if name in extent.indices:
                last = self.bounds[consumer].lineage.extents[leaf] - 1
                high = interval(extent, {name: (constant(0), last)}).upper
                if high is None:
                    return whole
                extent = high
        return extent

    def certain(self, extent: SizeExpr, stage: Stage) -> SizeExpr:
        """The constant that an extent has in every iteration of the loops around the stage: `min(N - i, 1)` is 1 where `i < N`."""
        most = extent.limits[1]
        if extent.is_constant or most is None:
            return extent
        low: SizeExpr | None = extent
        for consumer, leaf in self.graph.attach_path(stage.name):
            last = self.bounds[consumer].lineage.extents[leaf] - 1
            low = interval(low, {variable(consumer, leaf): (constant(0), last)}).lower
            if low is None:
                return extent
        return constant(most) if nonnegative(low - most) else extent

    def _storage(self, tensor: str) -> str:
        return self.graph.storage_name(tensor)

    def positions(self, tensor: str, logical: list[SizeExpr]) -> tuple[Expr, ...]:
        """Storage indices of an element: origin subtracted, packed layout applied."""
        place = self.place(tensor)
        local = [value - base for value, base in zip(logical, place.base, strict=True)]
        if place.ring is not None:
            ring = place.ring
            local[ring.dimension] = mod(local[ring.dimension] + ring.loop * ring.step, ring.room)
        for dimension, count in place.steps:
            local[dimension] = mod(local[dimension], constant(count))
        return tuple(self.expr(value) for value in _packed(local, place.layout))

    # --- expressions -------------------------------------------------------------------------------------------------

    def expr(self, value: SizeExpr, as_one: bool = False) -> Expr:
        """A size expression over symbolic loop variables as an expression over the kernel's loop variables; see `loop_expr`."""
        return rewrite(loop_expr(self._counted(value), as_one), self._rename)

    def _counted(self, value: SizeExpr) -> SizeExpr:
        """A value where loops along wavefronts count from their first one on, which may depend on those around them."""
        starts = {name: first for name, first in self.starts.items() if name in value.indices}
        return value.substitute({name: index(name) - self._counted(first) for name, first in starts.items()})

    def _rename(self, expr: Expr) -> Expr | None:
        if isinstance(expr, IndexVar) and expr.name in self.names:
            return IndexVar(self.names[expr.name], expr.span)
        return None

    def value(self, expr: Expr, values: Mapping[str, SizeExpr]) -> Expr:
        """A statement's expression with indices replaced by loop variables and tensors by buffers."""
        match expr:
            case Read(indices=()) if self._is_scalar(expr.tensor):
                return expr
            case Read():
                return self._read(expr, values)
            case IndexVar():
                return self.expr(values[expr.name]) if expr.name in values else expr
            case Size():
                return self.expr(self.scope.sizes[expr.name]) if expr.name in self.scope.sizes else expr
            case _:
                return rebuild(expr, tuple(self.value(child, values) for child in children(expr)))

    def _is_scalar(self, tensor: str) -> bool:
        found = self.graph.program.tensor(tensor)
        return found.kind == "input" and found.rank == 0

    def _read(self, read: Read, values: Mapping[str, SizeExpr]) -> Expr:
        storage = self._storage(read.tensor)
        place = self.place(storage)
        shift = view_shift(self.graph, read.tensor)
        scope = replace(self.scope, indices=values)
        converted = [self._affine(subscript, scope) for subscript in read.indices]
        if all(value is not None for value in converted):
            logical = [value + s for value, s in zip(converted, shift, strict=True) if value is not None]
            return Read(place.buffer.name, self.positions(storage, logical), read.dtype, read.span)
        positions = [
            self._subtract(self.value(subscript, values), base - s)
            for subscript, base, s in zip(read.indices, place.base, shift, strict=True)
        ]
        if place.ring is not None:
            ring = place.ring
            moved = Binary("+", positions[ring.dimension], self.expr(ring.loop * ring.step), DType.INT64)
            positions[ring.dimension] = Binary("%", moved, to_expr(constant(ring.room)), DType.INT64)
        for dimension, count in place.steps:
            positions[dimension] = Binary("%", positions[dimension], to_expr(constant(count)), DType.INT64)
        return Read(place.buffer.name, _packed_expr(positions, place.layout), read.dtype, read.span)

    def _affine(self, subscript: Expr, scope: Scope) -> SizeExpr | None:
        """The subscript as a size expression, or `None` where it depends on data, a size may be 0, or another form may wrap around.

        Size expressions are simplified for sizes of 1 and more: `max(N - 1, 0)` is `N - 1` there.
        """
        on_data = any(isinstance(node, Read) and not self._is_scalar(node.tensor) for node in walk(subscript))
        if self.bounds.whole or on_data or keeps_its_form(subscript):
            return None
        value = from_expr(subscript, scope)
        return None if any(isinstance(atom, Datum | Choice | Opaque) for atom in value.atoms()) else value

    def _subtract(self, value: Expr, base: SizeExpr) -> Expr:
        return value if base == constant(0) else Binary("-", value, self.expr(base), DType.INT64)

    # --- loops -------------------------------------------------------------------------------------------------------

    def _produce(self, family: tuple[Stage, ...]) -> Block:
        """The loops of the stages that write one tensor, one after the other."""
        return Block(tuple(self._stage(stage) for stage in family))

    def _stage(self, stage: Stage) -> Block:
        loops = _StageLoops(self, stage, self.bounds[stage.name])
        return Block(loops.build(len(self._shared_leaves(stage))).body, shown_line(stage.statement.text))

    def attached(self, stage: Stage, leaf: str) -> list[tuple[Stage, ...]]:
        """Families of stages computed at a leaf, in program order."""
        families: list[tuple[Stage, ...]] = []
        seen: set[str] = set()
        for each in self.graph.stages:
            if each.attach.kind == "at" and (each.attach.stage, each.attach.axis) == (stage.name, leaf):
                storage = self._storage(each.target)
                if storage not in seen:
                    seen.add(storage)
                    families.append(self.graph.stages_on(each.target))
        return families

    def around(self, stage: Stage, leaf: str, block: Block) -> Block:
        """Add what is computed at `leaf` before, and what shares the loop after, the rest of its body."""
        families = self.attached(stage, leaf)
        for family in families:
            self.places[self._storage(family[0].target)] = self._attached_place(family[0])
        produced = self._with_barriers(families, self._is_repeated(stage, stage.leaves.index(leaf) + 1))
        with_it = [
            each
            for each in self.graph.stages
            if each.attach.kind == "with" and (each.attach.stage, each.attach.axis) == (stage.name, leaf)
        ]
        steps = stage.statement.steps if stage.attach.kind == "root" else ()
        waits = leaf in {name for name, _ in steps[-1:]} and self._has_threads((stage, *with_it))
        if waits or leaf == waiting_loop(stage):
            block = with_body(block, (*block.body, Barrier()))
        if not families and not with_it:
            return block
        beside: tuple[Stmt, ...] = tuple(self._stage(each) for each in with_it)
        if waits:
            beside = tuple(part for each in beside for part in (each, Barrier()))
        moved = tuple(stmt for family in families for stmt in self._moved_on(family[0]))
        result: Block = Block((*produced, block, *beside, *moved))
        for family in reversed(families):
            place = self.places[self._storage(family[0].target)]
            if place.buffer.scope != "global" and self.window(family[0]) is None:  # which are there before the loop
                result = Block((Allocate(place.buffer, result),))
        return result

    def _has_threads(self, stages: Iterable[Stage]) -> bool:
        """Whether the threads of a block share what stages make."""
        return any(kind in THREAD_AXES for each in stages for _, kind in each.annotations)

    def _moved_on(self, stage: Stage) -> tuple[Stmt, ...]:
        """The kept elements of a window in registers move to where the next visit expects them."""
        window, place = self.window(stage), self.places[self._storage(stage.target)]
        if window is None or place.ring is not None:
            return ()
        buffer, at = place.buffer, window.dimension
        names = [f"{buffer.name}.{n}" for n in range(len(buffer.shape))]
        here: list[Expr] = [IndexVar(name) for name in names]
        there = [*here]
        there[at] = Binary("+", here[at], to_expr(constant(window.step)), DType.INT64)
        body = Block((Store(buffer.name, tuple(here), Read(buffer.name, tuple(there), buffer.dtype)),))
        extents = [extent for _, extent in self.bounds[stage.name].box]  # of this visit: there may be room for more
        extents[at] -= constant(window.step)
        lengths = [self.expr(self.certain(extent, stage)) for extent in extents]
        order = [*(n for n in range(len(names)) if n != at), at]  # an element is read before it is overwritten
        for number in reversed(order):
            body = Block((For(names[number], to_expr(constant(0)), lengths[number], body, "unroll"),))
        return (replace(body, comment="the window moves on"),)

    def kept_between(self, stage: Stage, leaf: str, block: Block) -> Block:
        """The loop over `leaf` with what windows keep from one iteration to the next around it."""
        rolling = [family[0] for family in self.attached(stage, leaf) if self.window(family[0]) is not None]
        depth = stage.leaves.index(leaf)
        shared = [each for each in rolling if self.graph.scope(each) == "shared"]
        if shared and self._is_repeated(stage, depth):
            block = Block((Barrier(), *block.body))
        for each in reversed(rolling):
            block = Block((Allocate(self.places[self._storage(each.target)].buffer, block),))
        return block

    def _is_repeated(self, stage: Stage, depth: int) -> bool:
        """Whether a thread passes a place inside `depth` loops several times: one of them is not bound to blocks or threads."""
        around = [(stage.name, each) for each in stage.leaves[:depth]]
        loops = (*around, *self.graph.attach_path(stage.name))
        return any(self.graph.stage(name).annotation(each) not in GPU_AXES for name, each in loops)

    def _with_barriers(self, families: list[tuple[Stage, ...]], repeated: bool) -> list[Stmt]:
        """What is computed at one leaf. Shared memory is free again, before it is written, when all threads are here, and full,
        before it is read, when all have written.
        """
        produced: list[Stmt] = []
        open_tensors: set[str] = set()
        started = not repeated
        for family in families:
            is_shared = self.graph.scope(family[0]) in ("shared", "global")
            is_ring = is_shared and self.window(family[0]) is not None  # what is new has a place that nobody reads
            if (is_shared and not is_ring and not started) or open_tensors & self._reads_inside(family):
                produced.append(Barrier())
                open_tensors.clear()
            produced.append(self._produce(family))
            if is_shared:
                started = started or not is_ring
                open_tensors.add(self._storage(family[0].target))
        return [*produced, Barrier()] if open_tensors else produced

    def _reads_inside(self, family: tuple[Stage, ...]) -> set[str]:
        """Storage that a family and everything computed inside its loops reads."""
        members = {stage.name for stage in family}
        inside = [
            stage
            for stage in self.graph.stages
            if stage.name in members or any(place in members for place, _ in self.graph.attach_path(stage.name))
        ]
        return {tensor for stage in inside for tensor in self.graph.reads(stage)}


@dataclass(slots=True)
class _StageLoops:
    """Builds the loops of one stage, from its leaves."""

    nest: _Nest
    stage: Stage
    bounds: StageBounds
    accumulator: Buffer | None = None
    together: Buffer | None = None
    fragment: Sequence[SizeExpr] = ()
    decided: tuple[tuple[SizeExpr, SizeExpr], ...] = ()

    @property
    def statement(self) -> Statement:
        return self.stage.statement

    def build(self, start: int) -> Block:
        """All loops from leaf `start` inwards; outer ones are shared with another stage."""
        self._mark_written()
        return self._loops(start, frozenset(self.stage.leaves[:start]))

    def _mark_written(self) -> None:
        nest, statement = self.nest, self.statement
        storage = nest.graph.storage_name(statement.target)
        reads = any(nest.graph.storage_name(read.tensor) == storage for read in _reads_of_points(statement))
        present = (statement.accumulate and not statement.initialize) or reads
        if storage not in nest.written:
            nest.written[storage] = "inout" if present else "output"

    # --- order of loops ----------------------------------------------------------------------------------------------

    @property
    def _first_reduction(self) -> int:
        return min(first_reduction(self.stage), self._step_depth)

    @property
    def _is_reduction(self) -> bool:
        return self.statement.operator != "="

    def _loops(self, depth: int, placed: frozenset[str]) -> Block:
        leaves = self.stage.leaves
        if depth == self._first_reduction and self._is_reduction and self.accumulator is None:
            return self._reduction(depth, placed)
        if depth == len(leaves):
            return self._store()
        return self._loop(leaves[depth], depth, placed, lambda: self._loops(depth + 1, placed | {leaves[depth]}))

    def _loop(self, leaf: str, depth: int, placed: frozenset[str], body: object) -> Block:
        assert callable(body)
        tests = [
            each
            for each in decided_at(self.nest.graph, self.stage, self.bounds.lineage, leaf)
            if each not in self.decided
        ]
        self.decided = (*self.decided, *tests)
        inner = body()
        assert isinstance(inner, Block)
        exists = _joined("&&", [self._below(*each) for each in tests])
        zeros, before = self._zeros_in_tile(leaf, inner), Block(())
        if zeros is not None and exists is None and self.stage.annotation(leaf) is None and self._is_added_up:
            before = self._in_last(self._for(leaf, placed, Block((zeros,))))
        elif zeros is not None:
            inner = Block((zeros, *inner.body))
        inner = self.nest.around(self.stage, leaf, inner)
        loop = self._for(leaf, placed, inner if exists is None else Block((If(exists, inner),)))
        loop = self.nest.kept_between(self.stage, leaf, Block((*before.body, *loop.body)))
        return self._zeros_behind(leaf, placed, loop)

    def _in_last(self, loop: Block) -> Block:
        """The last iteration of a loop; what is tested inside must be false for the one before the first, if there is none."""
        (stmt,) = loop.body
        assert isinstance(stmt, For)
        end = Binary("+", stmt.min, stmt.extent, DType.INT64)
        return Block(
            (replace(stmt, min=Binary("-", end, to_expr(constant(1)), DType.INT64), extent=to_expr(constant(1))),)
        )

    @property
    def _is_added_up(self) -> bool:
        """Whether a sum reads the ends of tiles of this copy."""
        return any(user.storage.whole for user in self.nest.graph.consumers(self.stage.name))

    def _zeros_in_tile(self, leaf: str, body: Block) -> Stmt | None:
        """One tile of a packed copy, filled with zeros if it is not full.

        Whole tiles are computed with, and what happens to be in memory may be a denormal number: those are slow.
        """
        split = self._split_of(leaf)
        dimension = None if split is None else self._dimension_of(split.parent)
        tile = 1 if dimension is None else self._tile_of(dimension)
        if split is None or tile == 1 or split.factor != tile:
            return None
        if not self._fills_its_room:
            if self._is_added_up and is_copy(self.statement) and self.nest.graph.scope(self.stage) != "shared":
                raise _across_tiles(self.stage)
            return None
        var, whole = self.nest.names[variable(self.stage.name, split.inner)], to_expr(constant(tile))
        rest = next((each.extent for each in walk_statements(body) if isinstance(each, For) and each.var == var), None)
        users = self.nest.graph.consumers(self.stage.name)
        added_up = any(user.storage.whole or user.tensorize is not None for user in users)
        if rest is None and added_up:
            raise _across_tiles(self.stage)
        if rest is None or isinstance(rest, Const):  # a copy that walks across tiles fills none
            return None
        zeros = replace(_zeros(body, var, whole), comment="" if added_up else SPARE)
        return If(Binary("<", rest, whole, DType.BOOL), zeros)

    def _zeros_behind(self, leaf: str, placed: frozenset[str], loop: Block) -> Block:
        """The loop along a row of a copy with room behind it, and zeros there."""
        split, pad = self._split_of(leaf), self.stage.storage.pad
        if not pad or split is None or self._dimension_of(split.parent) != self._row or not self._fills_its_room:
            return loop
        if self.stage.annotation(leaf) is not None or not self._is_one_row(leaf, split, placed):
            return loop
        low, extent = self.bounds.box[self._row]
        place = low + extent + self.bounds.lineage.leaf(split.inner)
        name, where = self._target({**self.bounds.lineage.values, split.parent: place})
        dtype = self.nest.graph.program.tensor(self.nest.graph.storage_name(self.statement.target)).dtype
        zero = self._put(name, where, identity_of("+", dtype.compute), None)
        var = self.nest.names[variable(self.stage.name, split.inner)]
        zeros: Stmt = For(var, to_expr(constant(0)), to_expr(constant(pad)), Block((zero,)), "vectorize")
        if not nonnegative(extent):  # where a result is empty, what it needs may be less than nothing
            there = Binary(">=", self.nest.expr(extent), to_expr(constant(0)), DType.BOOL)
            zeros = If(there, Block((zeros,)))
        return Block((*loop.body, zeros))

    @property
    def _row(self) -> int:
        """The dimension along which rows lie in memory."""
        layout, rank = self.stage.storage.layout, len(self.statement.output_indices)
        return layout[-1][0] if layout else rank - 1

    def _is_one_row(self, leaf: str, split: Split, placed: frozenset[str]) -> bool:
        """Whether the loop over `leaf` runs along one row: the loops around it say which, and the inner loop is inside."""
        values, outputs = self.bounds.lineage.values, self.statement.output_indices
        names = {name for index in outputs if index.name != split.parent for name in values[index.name].indices}
        own = {variable(self.stage.name, each) for each in self.stage.leaves}
        around = {variable(self.stage.name, each) for each in placed - {leaf}}
        return names & own <= around and split.inner not in placed

    def _split_of(self, leaf: str) -> Split | None:
        """The split that made a leaf the outer of two loops."""
        splits = (each for each in self.stage.relations if isinstance(each, Split) and each.outer == leaf)
        return next((each for each in splits if each.inner in self.stage.leaves), None)

    def _dimension_of(self, index: str) -> int | None:
        names = [each.name for each in self.statement.output_indices]
        return names.index(index) if index in names else None

    def _tile_of(self, dimension: int) -> int:
        """How many elements of a dimension lie in a tile of the layout."""
        return prod(size for number, size in self.stage.storage.layout or () if number == dimension and size)

    @property
    def _fills_its_room(self) -> bool:
        """Whether this copies into memory of a processor whose tiles or rows are longer than what is copied, and are read whole.

        Rows with room behind them may also be computed.
        """
        if all(user.storage.clamped and not user.storage.whole for user in self.nest.graph.consumers(self.stage.name)):
            return False
        around = {self.stage.name, *(name for name, _ in self.nest.graph.attach_path(self.stage.name))}
        axes = {kind for name in around for _, kind in self.nest.graph.stage(name).annotations}
        inside = self.nest.graph.scope(self.stage) in ("global", "local")
        first = self.nest.graph.stages_on(self.stage.target)[0].name == self.stage.name  # others may have written there
        plain = self.statement.operator == "=" and not self.statement.reduction_indices
        fills = is_copy(self.statement) or (self.stage.storage.pad > 0 and plain)
        return first and fills and inside and not axes & set(GPU_AXES)

    def _below(self, value: SizeExpr, limit: SizeExpr) -> Expr:
        return Binary("<", self.nest.expr(value), self.nest.expr(limit), DType.BOOL)

    def _for(self, leaf: str, placed: frozenset[str], body: Block) -> Block:
        extent = loop_extent(self.stage, self.bounds.lineage, leaf, placed)
        # the registers of a fragment and of a window need constant indices
        repeats = (self._is_in_fragments and leaf in self._inner_outputs()) or self._is_private_window
        kind = self.stage.annotation(leaf) or ("unroll" if repeats else "serial")
        name, tail = variable(self.stage.name, leaf), self.stage.tail(leaf) or ""
        var = self.nest.names[name]
        if name in self.nest.starts:
            first, length = (self.nest.expr(each) for each in (self.nest.starts[name], extent))
            return Block((For(var, first, length, body, kind, leaf, tail=tail),))
        start = constant(0)
        window = self.nest.window(self.stage)
        if window is not None and leaf == window.axis and not self._is_private_window:
            start = minimum(window.loop, constant(1)) * window.kept
        length = self.nest.certain(extent - start, self.stage)
        count = self.nest.expr(length, as_one=tail == "shift")  # a vector of `min(N - 1, 8)` has 8 lanes
        return Block((For(var, self.nest.expr(start), count, body, kind, leaf, tail=tail),))

    @property
    def _is_private_window(self) -> bool:
        window = self.nest.window(self.stage)
        return window is not None and window.room == window.length

    def _is_new(self) -> Expr | None:
        """Whether no visit before has computed the present element of a window, where no loop says it."""
        window = self.nest.window(self.stage)
        if window is None or not self._is_private_window:
            return None
        first = Binary("==", self.nest.expr(window.loop), to_expr(constant(0)), DType.BOOL)
        here = self.nest.expr(self.bounds.lineage.leaf(window.axis))
        return Binary("||", first, Binary(">=", here, to_expr(constant(window.kept)), DType.BOOL), DType.BOOL)

    def _guard(self, reductions: bool) -> Expr | None:
        """What no loop extent guarantees, as one condition."""
        found = open_constraints(self.stage, self.bounds.lineage, reductions)
        tests = [self._below(*each) for each in found if each not in self.decided]
        rest = (self._needed(), self._is_new())
        return _joined("&&", [*tests, *(each for each in rest if each is not None)])

    def _finish(self, value: Expr) -> Stmt:
        """The complete result of the present element becomes it, or is combined onto it."""
        return self._put_result(value, None if self.statement.initialize else self.statement.operator)

    def _put_result(self, value: Expr, operator: str | None) -> Stmt:
        """A store to the element; one that combines, if that is there: conditions may leave out all points of one that is not.

        They are a part of the value, which changes nothing where they do not hold; but the element would be read and written.
        """
        stmt = self._put(*self._target(), value, operator)
        statement, base = self.statement, self.nest.graph.base
        written = next((each for each in base.statements if each.name in (self.stage.name, self.stage.evaluates)), None)
        if statement.operator == "=" or statement.initialize or written is None or not written.conditions:
            return stmt
        tests: list[Expr] = []
        outputs = (root for root in self.stage.roots if root.kind == "output")
        for root, (low, high) in zip(outputs, self.nest.graph.boxes[statement.target].bounds, strict=True):
            here, (first, end) = self.bounds.lineage.values[root.name], root.dom
            tests += [] if nonnegative(first - low) else [self._below(low - 1, here)]
            tests += [] if nonnegative(high - end) else [self._below(here, high)]
        test = _joined("&&", tests)
        return stmt if test is None else If(test, Block((stmt,)))

    def _needed(self) -> Expr | None:
        """Whether somebody needs the element at the present point, where the box of the stage holds others too."""
        pieces = self.nest.sets.guard(self.stage.name)
        if pieces is None:
            return None
        alternatives: list[Expr] = []
        for piece in pieces:
            tests: list[Expr] = []
            for e, is_equality in piece:
                here = self.nest.expr(e.substitute(self.bounds.lineage.values))
                tests.append(Binary("==" if is_equality else ">=", here, to_expr(constant(0)), DType.BOOL))
            alternatives.append(_joined("&&", tests) or Const(True, DType.BOOL))
        return _joined("||", alternatives) or Const(False, DType.BOOL)

    # --- stores ------------------------------------------------------------------------------------------------------

    def _target(self, values: Mapping[str, SizeExpr] | None = None) -> tuple[str, tuple[Expr, ...]]:
        """Buffer and position of the element at the present point, or where the indices have `values`."""
        nest, here = self.nest, values or self.bounds.lineage.values
        storage = nest.graph.storage_name(self.statement.target)
        shift = view_shift(nest.graph, self.statement.target)
        logical = [here[index.name] + s for index, s in zip(self.statement.output_indices, shift, strict=True)]
        return nest.place(storage).buffer.name, nest.positions(storage, logical)

    def _store(self) -> Block:
        statement = self.statement
        if statement.combine is not None:
            return self._guarded(self._checked(self._folded()), reductions=True)
        value = self._point_value()
        operator = statement.operator if self._is_reduction else None
        if keeps(statement):
            assert isinstance(value, Select)
            there = If(value.condition, Block((self._put(*self._target(), value.then, None),)))
            return self._guarded(self._checked(there), reductions=True)
        if self.accumulator is not None:
            stmt: Stmt = self._put(self.accumulator.name, self._inner_positions(), value, operator)
        else:
            stmt = self._put_result(value, operator)
        return self._guarded(self._checked(stmt), reductions=True)

    def _point_value(self) -> Expr:
        """The statement's value at the present point; zeros where there is nothing.

        A padded copy into shared memory copies more than there is, and a masked stage reads beyond the ends of rows.
        """
        storage, values = self.stage.storage, self.bounds.lineage.values
        if storage.clamped:
            ends = {root.name: root.dom[1] - 1 for root in self.stage.roots if root.name in storage.clamped}
            values = {**values, **{name: minimum(values[name], end) for name, end in ends.items()}}
        value = self.nest.value(self.statement.value, values)
        reads = [read for read in self.statement.reads() if read.indices]
        if storage.padded and storage.scope == "shared":
            return self._or_zero(reads[0], value) if is_copy(self.statement) else self._or_zero_outside(value)
        if storage.padded and storage.masked:
            found = {self.nest.value(read, values): read for read in reads}
            return rewrite(value, lambda e: self._or_zero(found[e], e) if e in found else None)
        return value

    def _or_zero_outside(self, value: Expr) -> Expr:
        """A value, or zero where what is copied has no element: the expression of an inlined tensor reads there what it likes."""
        nest, values, tests = self.nest, self.bounds.lineage.values, list[Expr]()
        box = nest.graph.boxes[self.statement.target].bounds
        proved = proved_copied(nest.bounds, self.stage)
        for own, (low, high), (starts, ends) in zip(self.statement.output_indices, box, proved, strict=True):
            tests += [] if starts else [self._below(low - 1, values[own.name])]
            tests += [] if ends else [self._below(values[own.name], high)]
        inside = _joined("&&", tests)
        return value if inside is None else Select(inside, value, identity_of("+", value.dtype), value.dtype)

    def _or_zero(self, read: Read, value: Expr) -> Expr:
        """A value, or zero where it is not proved, and not true, that the element that `read` reads at the present point exists."""
        nest, values = self.nest, self.bounds.lineage.values
        place = nest.place(nest.graph.storage_name(read.tensor))
        shift = view_shift(nest.graph, read.tensor)
        tests: list[Expr] = []
        proved = proved_inside(nest.bounds, self.stage, read)
        if all(starts and ends for starts, ends in proved):
            return value
        for subscript, by, base, extent, (starts, ends) in zip(
            read.indices, shift, place.base, place.buffer.shape, proved, strict=True
        ):
            position = from_expr(subscript, scope_of(nest.graph)).substitute(values) + by - base
            if not starts:
                tests.append(Binary(">=", nest.expr(position), to_expr(constant(0)), DType.BOOL))
            if not ends:
                tests.append(Binary("<", nest.expr(position), extent, DType.BOOL))
        inside = _joined("&&", tests)
        return value if inside is None else Select(inside, value, identity_of("+", value.dtype), value.dtype)

    # --- folds -------------------------------------------------------------------------------------------------------

    def _fold(self, depth: int, placed: frozenset[str]) -> Block:
        """A user's function: start from the identity, or from what is there, then combine, in registers where these are few.

        allocate local T.sum[components]
        T.sum[...] = identity
        for m: T.sum[...] = combine(T.sum[...], value)
        T[...] = T.sum[...]
        """
        statement, nest = self.statement, self.nest
        dtype = nest.graph.program.tensor(nest.graph.storage_name(statement.target)).dtype.compute
        inner = [constant_extent(self.stage, leaf) for leaf in self._own_outputs]
        components = (self._components,) if statement.part else ()
        on_gpu = any(kind in GPU_AXES for _, kind in self.stage.annotations)
        most = MOST_IN_REGISTERS if on_gpu else MOST_FOLDED
        if None not in inner and prod(each or 1 for each in inner) <= most:
            shape = tuple(to_expr(constant(each or 1)) for each in (*components, *inner))
            self.accumulator = Buffer(f"{statement.name}.sum", dtype, shape, "local")
        beside = tuple(to_expr(constant(constant_extent(self.stage, leaf) or 1)) for leaf in self._beside)
        if statement.part:
            shape = (to_expr(constant(self._components)), *beside)
            self.together = Buffer(f"{statement.name}.new", dtype, shape, "local")
        kept, together = self.accumulator, self.together
        start: list[Block] = []
        if statement.initialize or kept is not None:
            start.append(self._over_outputs(depth, placed, self._for_components(self._start_of)))
        body = [*start, self._combine(depth, placed)]
        if kept is not None:
            body.append(self._over_outputs(depth, placed, self._for_components(self._end_of)))
        self.accumulator = self.together = None
        block = Block(tuple(body))
        for buffer in (kept, together):
            block = block if buffer is None else Block((Allocate(buffer, block),))
        return block

    @property
    def _components(self) -> int:
        """The number of components that a fold combines together."""
        return self.bounds.lineage.extents[self.statement.part].constant if self.statement.part else 1

    @property
    def _own_outputs(self) -> tuple[str, ...]:
        """The loops over results inside the reduction whose iterations one thread does."""
        return tuple(leaf for leaf in self._inner_outputs() if self.stage.annotation(leaf) not in GPU_AXES)

    @property
    def _beside(self) -> tuple[str, ...]:
        """The loops over results whose iterations are computed side by side."""
        return tuple(leaf for leaf in self._inner_outputs() if self.stage.annotation(leaf) == "vectorize")

    def _for_components(self, store: Callable[[int], Stmt]) -> Stmt:
        return Block(tuple(store(k) for k in range(self._components)))

    def _values_at(self, component: int) -> Mapping[str, SizeExpr]:
        """The statement's indices at the present point, for one component."""
        values, part = self.bounds.lineage.values, self.statement.part
        if not part:
            return values
        here = {variable(self.stage.name, part): constant(component)}
        return {root: value.substitute(here) for root, value in values.items()}

    def _of_component(self, expr: Expr, component: int) -> Expr:
        """An expression of a fold for one component."""
        return at_part(expr, self.statement.part, component) if self.statement.part else expr

    def _place(self, component: int) -> tuple[str, tuple[Expr, ...], DType]:
        """Where one component of what is combined is kept, and its type."""
        if self.accumulator is not None:
            first = (to_expr(constant(component)),) if self.statement.part else ()
            here = (self.nest.expr(self.bounds.lineage.leaf(leaf)) for leaf in self._own_outputs)
            return self.accumulator.name, (*first, *here), self.accumulator.dtype
        return self._stored(component)

    def _stored(self, component: int) -> tuple[str, tuple[Expr, ...], DType]:
        """The element of the target for one component, and its type."""
        name, where = self._target(self._values_at(component))
        return name, where, self.nest.place(self.nest.graph.storage_name(self.statement.target)).buffer.dtype

    def _start_of(self, component: int) -> Stmt:
        name, where, _ = self._place(component)
        if self.statement.initialize:
            assert self.statement.identity is not None
            value = self._of_component(self.statement.identity, component)
        else:
            value = _computed(Read(*self._stored(component)))
        return self._put(name, where, value, None)

    def _end_of(self, component: int) -> Stmt:
        name, where, _ = self._stored(component)
        return self._put(name, where, Read(*self._place(component)), None)

    def _folded(self) -> Stmt:
        """A user's function of the present content and the value of a point (`Statement.combine`), all components together."""
        statement = self.statement
        assert statement.combine is not None
        test = folded_where(statement)
        value = statement.value.then if test is not None and isinstance(statement.value, Select) else statement.value
        condition = None if test is None else self.nest.value(test, self.bounds.lineage.values)
        places = [self._place(k) for k in range(self._components)]
        left = [_computed(Read(*place)) for place in places]
        right = [self.nest.value(self._of_component(value, k), self._values_at(k)) for k in range(self._components)]
        sides = {FOLD_LEFT: left, FOLD_RIGHT: right}

        def of(component: int) -> Expr:
            function = self._of_component(statement.combine or value, component)
            new = with_operands(function, lambda side, k: sides[side][k])
            return new if condition is None or not self._beside else Select(condition, new, left[component], new.dtype)

        stores: list[Stmt] = []
        if self.together is None:
            name, where, _ = places[0]
            stores.append(self._put(name, where, of(0), None))
        else:
            lanes = tuple(self.nest.expr(self.bounds.lineage.leaf(leaf)) for leaf in self._beside)
            new = [
                (self.together.name, (to_expr(constant(k)), *lanes), self.together.dtype)
                for k in range(self._components)
            ]
            stores += [self._put(name, where, of(k), None) for k, (name, where, _) in enumerate(new)]
            stores += [
                self._put(place[0], place[1], Read(*each), None) for place, each in zip(places, new, strict=True)
            ]
        block = Block(tuple(stores))
        return block if condition is None or self._beside else If(condition, block)

    def _put(self, buffer: str, where: tuple[Expr, ...], value: Expr, operator: str | None) -> Store:
        return Store(
            buffer,
            where,
            value,
            operator,
            streaming=operator is None and self._is_final(buffer),
            statement=self.statement.name,
            span=self.statement.span,
        )

    def _is_final(self, buffer: str) -> bool:
        """Whether this is the last that happens to a result: it goes to memory and is not read again."""
        graph = self.nest.graph
        family = graph.stages_on(self.stage.target)
        written = buffer == graph.storage_name(self.stage.target) and self.nest.place(buffer).buffer.scope == "argument"
        reads = any(read.tensor == self.stage.target for read in self.statement.reads())
        plain = self.statement.operator == "=" and not reads
        return written and plain and family[-1].name == self.stage.name and not graph.consumers(family[0].name)

    def _checked(self, stmt: Stmt) -> Stmt:
        for check in self.nest.checks:
            if check.statement == self.stage.evaluates:
                for condition, shown in self._conditions_of(check):
                    stmt = Check(condition, check.number, shown, Block((stmt,)))
        return stmt

    def _conditions_of(self, check: PointCheck) -> Iterable[tuple[Expr, tuple[Expr, ...]]]:
        """What must hold at the present point, and what is shown else: of a fold, for every component that asks for something."""
        found: dict[Expr, tuple[Expr, ...]] = {}
        for k in range(self._components):
            condition, *shown = (self._at_point(self._of_component(e, k)) for e in (check.condition, *check.values))
            found.setdefault(simplify_expr(condition) if self.statement.part else condition, tuple(shown))
        return [each for each in found.items() if each[0] != Const(True, DType.BOOL)]

    def _at_point(self, expr: Expr) -> Expr:
        """An expression of the statement as written, at the present point of the loops."""
        moved = dict(self.stage.positions)
        here = rewrite(expr, lambda e: moved.get(e.name) if isinstance(e, IndexVar) else None)
        return self.nest.value(here, self.bounds.lineage.values)

    def _guarded(self, stmt: Stmt, reductions: bool) -> Block:
        guard = self._guard(reductions)
        return Block((stmt,)) if guard is None else Block((If(guard, Block((stmt,))),))

    # --- reductions --------------------------------------------------------------------------------------------------

    def _reduction(self, depth: int, placed: frozenset[str]) -> Block:
        """Start from the identity, then combine: around the loops from the first reduction leaf inwards."""
        target = self.nest.graph.program.tensor(self.nest.graph.storage_name(self.statement.target))
        if self.statement.combine is not None:
            return self._fold(depth, placed)
        if self._is_cross_thread(depth):
            return self._across_threads(depth, placed)
        if self._is_in_fragments:
            return self._in_fragments(depth, placed)
        if target.dtype.compute is not target.dtype:
            return self._rounded_once(depth, placed, target)
        if not self.statement.initialize:
            return self._combine(depth, placed)
        name, where = self._target()
        start = self._put(name, where, identity_of(self.statement.operator, target.dtype.compute), None)
        return Block((self._over_outputs(depth, placed, start), self._combine(depth, placed)))

    def _is_cross_thread(self, depth: int) -> bool:
        """Whether threads share the loop; one without iterations has nothing to share."""
        leaves = self.stage.leaves
        if depth == len(leaves) or self.stage.annotation(leaves[depth]) not in GPU_AXES:
            return False
        return self.bounds.lineage.extents[leaves[depth]] != constant(0)

    def _across_threads(self, depth: int, placed: frozenset[str]) -> Block:
        """The threads along a reduction leaf bound to them have a value each, which one operation combines for all.

        for t in 0:32   # threadIdx.x
          mine[t] = value or identity
        total = mine[0] op ... op mine[31]
        target op= total
        """
        leaf = self.stage.leaves[depth]
        nest, statement = self.nest, self.statement
        extent = nest.expr(loop_extent(self.stage, self.bounds.lineage, leaf, placed))
        storage = nest.graph.storage_name(statement.target)
        compute = nest.graph.program.tensor(storage).dtype.compute
        mine = Buffer(f"{self.stage.name}.mine", compute, (extent,), "threads", threads=1)
        total = Buffer(f"{self.stage.name}.total", compute, (), "local")
        value = nest.value(statement.value, self.bounds.lineage.values)
        guard = self._guard(reductions=True)
        if guard is not None:
            value = Select(guard, value, identity_of(statement.operator, compute), compute)
        here = nest.expr(self.bounds.lineage.leaf(leaf))
        each = nest.around(self.stage, leaf, Block((self._put(mine.name, (here,), value, None),)))
        var = nest.names[variable(self.stage.name, leaf)]
        kind = self.stage.annotation(leaf) or ""
        loop = For(var, to_expr(constant(0)), extent, each, kind, leaf)
        assert isinstance(extent, Const)
        combine = Intrinsic(
            "reduce_threads",
            (Read(total.name, (), compute), Read(mine.name, (to_expr(constant(0)),), compute)),
            (("op", statement.operator), ("threads", int(extent.value)), ("axis", 0)),
            statement.name,
            statement.span,
        )
        finish = self._guarded(self._finish(Read(total.name, (), compute)), reductions=False)
        return Block((Allocate(mine, Block((loop, Allocate(total, Block((combine, *finish.body)))))),))

    def _combine(self, depth: int, placed: frozenset[str]) -> Block:
        if depth == self._step_depth and self._step is not None and not self._is_checked:
            return self._matrix_step(placed)
        return self._combine_here(depth, placed)

    def _combine_here(self, depth: int, placed: frozenset[str]) -> Block:
        leaves = self.stage.leaves
        if depth == len(leaves):
            return self._store()
        return self._loop(leaves[depth], depth, placed, lambda: self._combine(depth + 1, placed | {leaves[depth]}))

    def _inner_outputs(self) -> tuple[str, ...]:
        return tuple(leaf for leaf in self.stage.leaves[self._first_reduction :] if self.stage.kind(leaf) == "output")

    def _inner_positions(self) -> tuple[Expr, ...]:
        return tuple(self.nest.expr(self.bounds.lineage.leaf(leaf)) for leaf in self._inner_outputs())

    def _over_outputs(self, depth: int, placed: frozenset[str], stmt: Stmt) -> Block:
        """The output loops inside the first reduction loop, around one store."""
        inner = self._inner_outputs()
        block = self._guarded(stmt, reductions=False)
        for number in range(len(inner) - 1, -1, -1):
            block = self._for(inner[number], placed | set(inner[:number]), block)
        return block

    def _rounded_once(self, depth: int, placed: frozenset[str], target: Tensor) -> Block:
        """16-bit sums are kept in `float32` until they are complete."""
        compute = target.dtype.compute
        related = self.bounds.lineage
        most = maximum(*self.nest.graph.boxes[self.nest.graph.storage_name(self.stage.target)].shape, 1)
        shape = tuple(
            self.nest.expr(self.nest.largest(related.extents[leaf], self.stage, most)) for leaf in self._inner_outputs()
        )
        name = f"{self.statement.name}.sum"
        self.accumulator = Buffer(name, compute, shape, "local")
        where = self._inner_positions()
        start = self._put(name, where, identity_of(self.statement.operator, compute), None)
        total = Read(name, where, compute)
        body = Block(
            (
                self._over_outputs(depth, placed, start),
                self._combine(depth, placed),
                self._over_outputs(depth, placed, self._finish(total)),
            )
        )
        buffer, self.accumulator = self.accumulator, None
        return Block((Allocate(buffer, body),))

    # --- matrix steps ------------------------------------------------------------------------------------------------

    @property
    def _step(self) -> MatrixStep | None:
        return None if self.stage.tensorize is None else STEPS[self.stage.tensorize.intrinsic]

    @property
    def _step_axes(self) -> tuple[str, ...]:
        return () if self.stage.tensorize is None else self.stage.tensorize.axes

    @property
    def _step_depth(self) -> int:
        """How many loops stand around the intrinsic of a tensorized stage; around everything else all of them do."""
        return len(self.stage.leaves) - len(self._step_axes)

    @property
    def _is_checked(self) -> bool:
        """Whether subscripts of the stage are checked at each point: then no point can be left to an intrinsic."""
        return any(check.statement == self.stage.evaluates for check in self.nest.checks)

    def _matrix_step(self, placed: frozenset[str]) -> Block:
        """The intrinsic where its whole tile exists, else the loops that it stands for.

        if N - 16*j.outer >= 16:
          fma_6x16_f32(C.cache, A, B)
        else:
          for i.inner, for j.inner: C.cache[...] += ...
        """
        tests = self._whole_tile(placed) if self._is_aligned() else None
        here = self._intrinsic()
        rest = self._tile_rest(placed) if self._is_in_fragments else self._combine_here(self._step_depth, placed)
        if tests is None:
            return rest
        whole = _joined("&&", tests)
        return here if whole is None else Block((If(whole, here, rest),))

    @property
    def _is_in_fragments(self) -> bool:
        """Whether the sums are spread over the registers of a warp."""
        return self._step is not None and self._step.unit == "warp" and not self._is_checked

    def _is_aligned(self) -> bool:
        """Whether a step never reads across two tiles of a packed operand, as where a sum begins in the middle of one."""
        nest, step, values = self.nest, self._step, self._tile_values()
        assert step is not None
        sizes = dict(zip(step.axes, step.sizes, strict=True))
        found = operands(nest.graph, self.stage, self._step_axes, step)
        assert not isinstance(found, str), found
        for tile in found:
            place = nest.place(nest.graph.storage_name(tile.read.tensor))
            shift = view_shift(nest.graph, tile.read.tensor)
            for axis, number in tile.dimensions.items():
                dimension, length = place.layout[number] if place.layout else (number, 0)
                subscript = from_expr(tile.read.indices[dimension], scope_of(nest.graph)).substitute(values)
                position, size = subscript + shift[dimension] - place.base[dimension], constant(sizes[axis])
                if length and floor_div(position, size) * size != position:
                    return False
        return True

    def _whole_tile(self, placed: frozenset[str]) -> list[Expr] | None:
        """Tests that say that all points of the tile at hand exist; `None` if no test can."""
        assert self._step is not None
        related, axes = self.bounds.lineage, self._step_axes
        tests: list[Expr] = []
        for number, (axis, size) in enumerate(zip(axes, self._step.sizes, strict=True)):
            extent = loop_extent(self.stage, related, axis, placed | set(axes[:number]))
            extent = extent.substitute({variable(self.stage.name, other): constant(0) for other in axes[:number]})
            if not nonnegative(extent - size):
                tests.append(Binary(">=", self.nest.expr(extent), to_expr(constant(size)), DType.BOOL))
        for value, limit in open_constraints(self.stage, related, reductions=True):
            last = self._at_tile(value, last=True)
            if last is None:
                return None
            tests.append(Binary("<", self.nest.expr(last), self.nest.expr(limit), DType.BOOL))
        return tests

    def _at_tile(self, value: SizeExpr, last: bool = False) -> SizeExpr | None:
        """A value at the first (or last) point of the tile; `None` if it does not grow steadily along its axes."""
        assert self._step is not None
        names = {variable(self.stage.name, axis): n for axis, n in zip(self._step_axes, self._step.sizes, strict=True)}
        first = value.substitute({name: constant(0) for name in names})
        if not last:
            return first
        total = first
        for name, size in names.items():
            one = value.substitute({other: constant(1 if other == name else 0) for other in names}) - first
            if not nonnegative(one):
                return None
            total = total + one * (size - 1)
        return total if value.substitute({name: constant(n - 1) for name, n in names.items()}) == total else None

    def _tile_values(self) -> dict[str, SizeExpr]:
        """The statement's indices at the first point of the tile."""
        names = {variable(self.stage.name, axis): constant(0) for axis in self._step_axes}
        return {root: value.substitute(names) for root, value in self.bounds.lineage.values.items()}

    def _intrinsic(self) -> Block:
        """The intrinsic on the tiles that begin at the present point of the loops around it."""
        nest, step = self.nest, self._step
        assert step is not None
        found = operands(nest.graph, self.stage, self._step_axes, step)
        assert not isinstance(found, str), found
        values = self._tile_values()
        tiles = [nest.value(tile.read, values) for tile in found]
        left, right = (tile for tile in tiles if isinstance(tile, Read))
        if self._is_in_fragments:
            return self._warp_step(step, (left, right), found)
        total, dimensions = self._total_tile(values)
        attributes = [("total", _dimensions_text(dimensions, step))]
        attributes += [("left", _dimensions_text(found[0].dimensions, step))]
        attributes += [("right", _dimensions_text(found[1].dimensions, step))]
        return Block(
            (Intrinsic(step.name, (total, left, right), tuple(attributes), self.statement.name, self.statement.span),)
        )

    def _total_tile(self, values: Mapping[str, SizeExpr]) -> tuple[Read, Mapping[str, int]]:
        """First element of the sums of a tile, and the dimensions that it moves along."""
        nest, axes = self.nest, self._step_axes
        first = {variable(self.stage.name, axis): constant(0) for axis in axes}
        if self.accumulator is not None:
            leaves = self._inner_outputs()
            where = tuple(nest.expr(self.bounds.lineage.leaf(leaf).substitute(first)) for leaf in leaves)
            kinds = zip(self._step.axes, axes, strict=True) if self._step is not None else ()
            places = {kind: leaves.index(axis) for kind, axis in kinds if kind != "reduction"}
            return Read(self.accumulator.name, where, self.accumulator.dtype), places
        assert self._step is not None
        dimensions = total_dimensions(nest.graph, self.stage, axes, self._step)
        assert dimensions is not None
        name, where = self._target(values)
        return Read(name, where, nest.place(nest.graph.storage_name(self.statement.target)).buffer.dtype), dimensions

    # --- steps of a warp ---------------------------------------------------------------------------------------------

    def _in_fragments(self, depth: int, placed: frozenset[str]) -> Block:
        """Sums in the registers of a warp until they are complete.

        allocate fragment S[rows, columns]
        S[...] = 0
        for k.outer: mma(S, A, B)
        C[...] = S[...]
        """
        assert self._step is not None
        name, total = f"{self.statement.name}.sum", self._step.total
        zero = {variable(self.stage.name, leaf): constant(0) for leaf in self._inner_outputs()}
        self.fragment = [value - value.substitute(zero) for value in self._tile_roots()]
        shape = tuple(self.nest.expr(constant(self._most(value) + 1)) for value in self.fragment)
        self.accumulator = Buffer(name, total, shape, "fragment")
        where = self._fragment_positions()
        start = Block((self._put(name, where, identity_of("+", total), None),))
        end = self._guarded(self._finish(Read(name, where, total)), reductions=False)
        sums = (
            self._over_tiles(start, placed, whole=True),
            self._combine(depth, placed),
            self._over_tiles(end, placed),
        )
        buffer, self.accumulator = self.accumulator, None
        return Block((Allocate(buffer, Block(sums)),))

    def _tile_roots(self) -> list[SizeExpr]:
        """Values of the indices along the rows and the columns of the step."""
        names = [root_of(self.stage, axis) for axis in self._step_axes[:2]]
        return [self.bounds.lineage.values[name] for name in names if name is not None]

    def _most(self, value: SizeExpr) -> int:
        """The largest value over the loops inside the reduction."""
        lengths = {leaf: constant_extent(self.stage, leaf) or 1 for leaf in self._inner_outputs()}
        last = {variable(self.stage.name, leaf): constant(length - 1) for leaf, length in lengths.items()}
        return value.substitute(last).constant

    def _fragment_positions(self, first: bool = False) -> tuple[Expr, ...]:
        """Row and column in the fragment: of the present point, or of the tile's first."""
        zero = {variable(self.stage.name, axis): constant(0) for axis in self._step_axes[:2]} if first else {}
        return tuple(self.nest.expr(value.substitute(zero)) for value in self.fragment)

    def _over_tiles(self, block: Block, placed: frozenset[str], whole: bool = False) -> Block:
        """Loops over all elements of the fragment around one store; those that do not exist are left out unless `whole`."""
        leaves = self._inner_outputs()
        rows, columns = self._step_axes[:2]
        inner = block if whole else self._existing(block, leaves, placed)
        inner = self._for_tile(rows, "fragment.row", self._for_tile(columns, "fragment.column", inner))
        for leaf in reversed([leaf for leaf in leaves if leaf not in (rows, columns)]):
            inner = self._for_tile(leaf, "unroll", inner)
        return inner

    def _existing(self, block: Block, leaves: Sequence[str], placed: frozenset[str]) -> Block:
        """`block` where the loops over `leaves`, which all have their full length, would have an iteration."""
        tests: list[Expr] = []
        for number, leaf in enumerate(leaves):
            extent = loop_extent(self.stage, self.bounds.lineage, leaf, placed | set(leaves[:number]))
            if not nonnegative(extent - (constant_extent(self.stage, leaf) or 1)):
                here = self.nest.expr(self.bounds.lineage.leaf(leaf))
                tests.append(Binary("<", here, self.nest.expr(extent), DType.BOOL))
        test = _joined("&&", tests)
        return block if test is None else Block((If(test, block),))

    def _for_tile(self, leaf: str, kind: str, body: Block) -> Block:
        var = self.nest.names[variable(self.stage.name, leaf)]
        extent = to_expr(constant(constant_extent(self.stage, leaf) or 1))
        return Block((For(var, to_expr(constant(0)), extent, body, kind, leaf),))

    def _tile_rest(self, placed: frozenset[str]) -> Block:
        """A tile of which only a part exists: element by element, each in the thread that holds its sum."""
        assert self.accumulator is not None
        rows, columns, inner = self._step_axes
        values = self.bounds.lineage.values
        value = self.nest.value(self.statement.value, values)
        add = self._guarded(self._put(self.accumulator.name, self._fragment_positions(), value, "+"), reductions=True)
        steps = self._for(inner, placed | {rows, columns}, add)
        here = self._existing(steps, (rows, columns), placed)
        return self._for_tile(rows, "fragment.row", self._for_tile(columns, "fragment.column", here))

    def _warp_step(self, step: MatrixStep, tiles: tuple[Read, Read], found: tuple[Tile, Tile]) -> Block:
        """Load both operands into registers and multiply them."""
        assert self.accumulator is not None
        rows, columns, depth = step.extents
        zero = to_expr(constant(0))
        about = (self.statement.name, self.statement.span)
        body: tuple[Stmt, ...] = ()
        fragments: list[Buffer] = []
        for name, tile, side, shape in (
            ("left", tiles[0], found[0], (rows, depth)),
            ("right", tiles[1], found[1], (depth, columns)),
        ):
            extents = tuple(to_expr(constant(extent)) for extent in shape)
            fragment = Buffer(f"{self.statement.name}.{name}", tile.dtype, extents, "fragment")
            first, second = ("row", "reduction") if name == "left" else ("reduction", "column")
            load = "ldmatrix" if side.dimensions[first] < side.dimensions[second] else "ldmatrix_trans"
            size = (("rows", shape[0]), ("columns", shape[1]))
            body = (*body, Intrinsic(load, (Read(fragment.name, (zero, zero), tile.dtype), tile), size, *about))
            fragments.append(fragment)
        left, right = (Read(each.name, (zero, zero), each.dtype) for each in fragments)
        total = Read(self.accumulator.name, self._fragment_positions(first=True), step.total)
        block = Block((*body, Intrinsic(step.name, (total, left, right), (), *about)))
        for fragment in fragments:
            block = Block((Allocate(fragment, block),))
        return block


def _computed(read: Read) -> Expr:
    """An element in the type that it is computed with."""
    return read if read.dtype.compute is read.dtype else Cast(read, read.dtype.compute)


def _dimensions_text(dimensions: Mapping[str, int], step: MatrixStep) -> str:
    """`row=1 reduction=0`: the dimension of an operand along which each axis of a step moves it."""
    return " ".join(f"{axis}={dimensions[axis]}" for axis in step.axes if axis in dimensions)


def _joined(op: str, parts: Sequence[Expr]) -> Expr | None:
    """All parts with one logical operator; `None` if there is none."""
    return reduce(lambda a, b: Binary(op, a, b, DType.BOOL), parts) if parts else None


def loop_expr(value: SizeExpr, as_one: bool = False) -> Expr:
    """As `to_expr`, but written as one writes loop bounds: `min(4, N - 4*o)` and not `-max(4*o - N, -4)`.

    Args:
        as_one: also `min(N - 1, 8)` and not `min(N, 9) - 1`.
    """
    value = value.substitute({name: constant(number) for name, number in _fixed(value).items()})
    terms = value.ordered()
    if len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][1] in ((1, -1) if as_one else (-1,)):
        (atom,), sign = terms[0]
        if isinstance(atom, Extremum):
            kind = atom.kind if sign > 0 else "min" if atom.kind == "max" else "max"
            parts = [loop_expr(value.offset + argument * sign) for argument in atom.arguments]
            return reduce(lambda a, b: Binary(kind, a, b, DType.INT64), parts)
        if isinstance(atom, FloorDiv) and sign < 0 and value.offset == 0:
            top = loop_expr(atom.divisor - 1 - atom.numerator)
            return Binary("//", top, to_expr(atom.divisor), DType.INT64)
    return to_expr(value)


def _fixed(value: SizeExpr) -> dict[str, int]:
    """The variables of loops with a single iteration that are added to a value, with their numbers."""
    found: dict[str, int] = {}
    for mono, _ in value.ordered():
        match mono:
            case (Name(kind="index", name=name, limits=(int(low), int(high))),) if low == high:
                found[name] = low
            case _:
                pass
    return found


# --- packed layouts --------------------------------------------------------------------------------------------------


def _tile_inside(layout: tuple[tuple[int, int], ...], place: int) -> int:
    """Elements of its dimension that one position at `place` of a layout stands for: all tiles inside it together."""
    dimension, tile = layout[place]
    return prod(t for d, t in (layout[place + 1 :] if tile else layout) if d == dimension and t)


def _across_tiles(stage: Stage) -> CompileError:
    """A copy that does not fill one tile after the other leaves no place for the zeros that are added up there."""
    message = f"the copy `{stage.name}` walks across the tiles of its layout, whose ends must be zero"
    found = Diagnostic(
        DEVICE_LIMIT, NO_SPAN, message, help=f"leave the loops inside of a tile of `{stage.name}` innermost"
    )
    source = SourceText("")
    return CompileError((found,), source, render((found,), source))


def _zeros(block: Block, var: str, whole: Expr) -> Block:
    """The loops of a copy, with `whole` iterations of one of them, that store zeros."""

    def rule(stmt: Stmt) -> Stmt:
        match stmt:
            case Store():
                return replace(stmt, value=identity_of("+", stmt.value.dtype))
            case For() if stmt.var == var:
                return with_blocks(replace(stmt, extent=whole), inside)
            case _:
                return with_blocks(stmt, inside)

    def inside(inner: Block) -> Block:
        return replace(inner, body=tuple(rule(stmt) for stmt in inner.body))

    return inside(block)


def _packed_shape(extents: list[SizeExpr], layout: tuple[tuple[int, int], ...] | None) -> list[SizeExpr]:
    if layout is None:
        return extents
    insides = [_tile_inside(layout, place) for place in range(len(layout))]
    return [
        constant(tile) if tile else floor_div(extents[d] + inside - 1, inside)
        for (d, tile), inside in zip(layout, insides, strict=True)
    ]


def _packed(local: list[SizeExpr], layout: tuple[tuple[int, int], ...] | None) -> list[SizeExpr]:
    if layout is None:
        return local
    parts = [floor_div(local[d], _tile_inside(layout, place)) for place, (d, _) in enumerate(layout)]
    return [mod(part, tile) if tile else part for part, (_, tile) in zip(parts, layout, strict=True)]


def _packed_expr(local: list[Expr], layout: tuple[tuple[int, int], ...] | None) -> tuple[Expr, ...]:
    if layout is None:
        return tuple(local)

    def part(op: str, value: Expr, by: int) -> Expr:
        return value if by == 1 and op == "//" else Binary(op, value, to_expr(constant(by)), DType.INT64)

    parts = [part("//", local[d], _tile_inside(layout, place)) for place, (d, _) in enumerate(layout)]
    return tuple(part("%", each, tile) if tile else each for each, (_, tile) in zip(parts, layout, strict=True))


# --- what a kernel uses ----------------------------------------------------------------------------------------------


def _reads_of_points(statement: Statement) -> Iterator[Read]:
    """The reads of a statement but for what it keeps."""
    value = statement.value
    parts = (value.condition, value.then) if keeps(statement) and isinstance(value, Select) else (value,)
    return (node for part in parts for node in walk(part) if isinstance(node, Read))


def _all_expressions(body: Block, buffers: tuple[Buffer, ...]) -> list[Expr]:
    found = [extent for buffer in buffers for extent in buffer.shape]
    for stmt in walk_statements(body):
        found += expressions(stmt)
    return found


def _used_buffers(body: Block) -> set[str]:
    local = {stmt.buffer.name for stmt in walk_statements(body) if isinstance(stmt, Allocate)}
    stored = {stmt.buffer for stmt in walk_statements(body) if isinstance(stmt, Store)}
    moved = {op.tensor for stmt in walk_statements(body) if isinstance(stmt, Intrinsic) for op in stmt.operands}
    read = {n.tensor for e in _all_expressions(body, ()) for n in walk(e) if isinstance(n, Read)}
    return (stored | moved | read) - local


def _identifier(name: str) -> str:
    clean = "".join(char if char.isascii() and char.isalnum() else "_" for char in name)
    return clean if clean and not clean[0].isdigit() else f"_{clean}"


__all__ = ["PointCheck", "lower"]
