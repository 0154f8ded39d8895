"""Several steps of a block at a time: a tile of the last one is made from the first, and what is between stays in a cache.

    for g in 0:ceil(n/2)
      for tiles [a, b) of i
        for i in a - 1 : b + 1: V.step1(g, i) = f(V(g - 1, i - 1), V(g - 1, i), V(g - 1, i + 1))
        for i in a : b:         V(g, i) = f(V.step1(g, i - 1), V.step1(g, i), V.step1(g, i + 1))

Every step but the last one of a group is a stage of its own, computed at the loops over tiles. So bounds inference grows its region
by what the later steps read, and what tiles compute twice is in `s.bounds`. Behind the last step a stage passes on what it reads.

Where steps read around a border (`wrap`), the new stages go on beyond both ends, modulo the extent: the region of a tile is one box
then. `U(wrap(i - 1))` at `i` is the element `i - 1` of such a stage, and every other index `i` is `i % N` there.

Source: Krishnamoorthy et al., "Effective automatic parallelization of stencil computations", PLDI 2007 (overlapped tiling);
Ragan-Kelley et al., "Halide", PLDI 2013, whose bounds inference this is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import codes
from tc_jupyter.program import (
    Binary,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Statement,
    Tensor,
    children,
    conjuncts,
    identity_of,
    int64,
    rebuild,
)
from tc_jupyter.program.integers import all_of, has_read, index_names
from tc_jupyter.program.typing import cast
from tc_jupyter.ranges import (
    Box,
    Name,
    Scope,
    SizeExpr,
    constant,
    from_expr,
    index,
    interval,
    mod,
    nonnegative,
    of_atom,
    to_expr,
)

from .infer_bound import gaps_of, is_computed, scope_of
from .legality import Problem
from .lineage import ceil_div
from .orders import steps_kept
from .stage import Attach, IterVar, Split, Stage, StageGraph, fresh_name, taken_names

MOST_STEPS = 64
"""Steps of a group, at most: each of them is a stage, whose bounds follow from those of the next one."""


@dataclass(frozen=True, slots=True)
class _Block:
    """The statements whose steps are taken together.

    Attributes:
        members: their stages, in order.
        step: the index that the steps are.
        way: 1, or -1 where they count down.
        places: the dimension of each target that is the step.
        states: the targets that a later step reads, or somebody when the loop has ended.
        wrapped: the dimensions along which the last element is beside the first one, each with its extent.
        reach: by how many elements a step reads beyond its own along these, at most.
    """

    members: tuple[Stage, ...]
    step: str
    way: int
    places: dict[str, int]
    states: frozenset[str]
    wrapped: dict[int, SizeExpr]
    reach: int

    @property
    def domain(self) -> tuple[SizeExpr, SizeExpr]:
        return self.members[0].root(self.step).dom


def time_tiled(graph: StageGraph, stage: Stage, steps: int, tile: Sequence[int]) -> StageGraph | Problem:
    """The graph in which so many steps of the block of a stage are made tile by tile, or why they cannot be.

    Args:
        tile: iterations of a tile along the loops inside of the steps; 0 leaves one whole.
    """
    found = _block_of(graph, stage)
    if isinstance(found, Problem):
        return found
    problem = _tile_problem(found, tile)
    return problem or _Tiling(graph, found, steps, tuple(tile)).graph_after()


# --- what steps are --------------------------------------------------------------------------------------------------


def _block_of(graph: StageGraph, stage: Stage) -> _Block | Problem:
    """The block of a stage, if its steps may be taken together."""
    name, block = stage.name, stage.statement.block
    if not block:
        return _no(f"`{name}` is no statement of a block, whose steps keep no more than the next one needs")
    members = tuple(each for each in graph.stages if each.statement.block == block)
    if not all(_is_as_written(graph, each, members[0]) for each in members):
        return _no(f"the loops of `{name}`, or of another statement of its block, are moved already")
    if len(stage.statement.steps) != 1:
        return _no(f"the block of `{name}` has several steps")
    ((step, way),) = stage.statement.steps
    for each in members:
        problem = _statement_problem(graph, each, step)
        if problem is not None:
            return problem
    places = {each.target: [item.name for item in each.statement.output_indices].index(step) for each in members}
    before = _read_before(graph, members, places, step, way)
    if isinstance(before, Problem):
        return before
    states = frozenset(before) | _read_behind(graph, members)
    for each in members:
        if each.target in states and not steps_kept(graph, each.target):
            return _no(f"steps of `{each.target}` other than the last one are needed when the loop has ended")
        if each.target in states and each.statement.reduction_indices:
            text = f"`{each.name}` reduces onto a state, which has a value behind the last step"
            return _no(text, "reduce into a tensor of one step, and copy that")
    wrapped, reach = _wrapped(graph, members, places)
    return _Block(members, step, way, places, states, wrapped, reach)


def _is_as_written(graph: StageGraph, stage: Stage, first: Stage) -> bool:
    alone = all(each.attach.kind == "with" and each.statement.block for each in graph.attached(stage.name))
    placed = stage.attach.kind == "root" if stage is first else stage.attach.stage == first.name
    return alone and placed and not (stage.relations or stage.annotations or stage.limits or stage.tensorize)


def _statement_problem(graph: StageGraph, stage: Stage, step: str) -> Problem | None:
    """What a statement does that no tile can do by itself."""
    statement, name = stage.statement, stage.name
    inside = [index for index, _ in statement.order if index != step]
    if inside:
        order = f"the points of `{name}` have an order along `{inside[0]}`, too, inside of a step"
        return Problem(codes.ILLEGAL_ORDER, order, "tiles have no order; leave its steps one by one")
    if len(graph.stages_on(stage.target)) > 1 or statement.left or statement.operator == "fold" or statement.exists:
        return _no(f"`{stage.target}` is not made by one plain statement")
    for root in stage.roots:
        if step in (root.dom[0].indices | root.dom[1].indices):
            return _no(f"the range of `{root.name}` in `{name}` changes with `{step}`")
    for read in statement.reads():
        if any(is_computed(graph, at) for at in read.indices) or any(map(has_read, statement.conditions)):
            witness = f"data decide where `{name}` reads `{_text(read)}`, so that a tile may need any element"
            return Problem(codes.ILLEGAL_ORDER, witness, "leave its steps one by one")
    return None


def _read_before(
    graph: StageGraph, members: Sequence[Stage], places: dict[str, int], step: str, way: int
) -> set[str] | Problem:
    """The targets that a step reads of the one before; a problem where it reads others."""
    found: set[str] = set()
    early: set[str] = set()
    for each in members:
        for read in each.statement.reads():
            if read.tensor not in places:
                if graph.storage_name(read.tensor) in places:
                    return _no(f"`{each.name}` reads a view of `{graph.storage_name(read.tensor)}`")
                continue
            by = (index(step) - from_expr(read.indices[places[read.tensor]], Scope(indices={step: index(step)}))) * way
            if by == constant(1):
                found.add(read.tensor)
            elif by != constant(0) or read.tensor not in early:
                witness = f"`{each.name}` reads `{_text(read)}`, which is not of its own step, or of the one before"
                return Problem(codes.ILLEGAL_ORDER, witness, "leave its steps one by one")
        early.add(each.target)
    return found


def _read_behind(graph: StageGraph, members: Sequence[Stage]) -> frozenset[str]:
    """The targets that somebody reads when the loop has ended."""
    names, own = {each.target for each in members}, {each.name for each in members}
    results = {graph.storage_name(name) for name in graph.program.results}
    reads = {
        graph.storage_name(tensor) for each in graph.stages if each.name not in own for tensor in graph.reads(each)
    }
    return frozenset(names & (reads | results))


def _tile_problem(block: _Block, tile: Sequence[int]) -> Problem | None:
    """Why tiles of one state are not those of the others."""
    shapes = {
        tuple(root.dom for root in _inner(each, block.step)) for each in block.members if each.target in block.states
    }
    if len(shapes) > 1:
        return _no("the states of the block have different ranges, and one tile is for all of them")
    (shape,) = shapes or {()}
    if len(tile) > len(shape):
        return Problem(
            codes.BAD_FACTOR, f"a tile of {len(tile)} loops, where a step has {len(shape)}", "one number for each loop"
        )
    return None


def _inner(stage: Stage, step: str) -> list[IterVar]:
    """The output loops of a step."""
    inside = stage.leaves[stage.leaves.index(step) + 1 :]
    return [stage.root(leaf) for leaf in inside if stage.kind(leaf) == "output"]


def _wrapped(graph: StageGraph, members: Sequence[Stage], places: dict[str, int]) -> tuple[dict[int, SizeExpr], int]:
    """The dimensions whose ends are neighbours for all reads of the block, and how far these go in one step."""
    rank = len(members[0].statement.output_indices)
    if any(len(each.statement.output_indices) != rank for each in members) or len(set(places.values())) > 1:
        return {}, 0
    found: dict[int, SizeExpr] = {}
    most = 0
    for dimension in set(range(rank)) - set(places.values()):
        ends = {each.root(each.statement.output_indices[dimension].name).dom for each in members}
        if len(ends) > 1 or (ends := next(iter(ends)))[0] != constant(0):
            continue
        moves = [
            _move(read.indices[dimension], each.statement.output_indices[dimension].name, ends[1], graph)
            for each in members
            for read in each.statement.reads()
            if read.tensor in places
        ]
        known = [each for each in moves if each is not None]
        if len(known) == len(moves) and any(around for _, around in known):
            found[dimension] = ends[1]
            most = max(most, *(abs(by) for by, _ in known))
    return found, most * len(members)


def _move(at: Expr, own: str, extent: SizeExpr, graph: StageGraph) -> tuple[int, bool] | None:
    """By how much a subscript differs from an index, and whether it is taken modulo an extent."""
    around = isinstance(at, Binary) and at.op == "%" and from_expr(at.right, scope_of(graph)) == extent
    inner = at.left if isinstance(at, Binary) and around else at
    by = from_expr(inner, Scope(indices={own: index(own)})) - index(own)
    return (by.offset, around) if by.is_constant else None


def _text(read: Read) -> str:
    """The read as it was written, if somebody wrote it so."""
    return read.border.text if read.border is not None else f"{read.tensor}(...)"


def _no(message: str, help: str = "leave its steps one by one") -> Problem:
    return Problem(codes.BAD_ATTACH, message, help)


# --- the new stages --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Tiling:
    """Makes the stages of a group of steps."""

    graph: StageGraph
    block: _Block
    steps: int
    tile: tuple[int, ...]

    def graph_after(self) -> StageGraph:
        block, graph = self.block, self.graph
        names = self._names()
        chain = [
            self._between(member, step, names)
            for step in range(1, self.steps + 1)
            for member in block.members
            if (member.target, step) in names
        ]
        stored = [self._stored(member, names) for member in block.members if member.target in block.states]
        first = stored[0]
        place = first.leaves[first.leaves.index(block.step) + len(self._tiles(first))]
        stored = [first, *(replace(each, attach=Attach("with", first.name, place)) for each in stored[1:])]
        chain = [replace(each, attach=Attach("at", first.name, place)) for each in chain]
        boxes, tensors = dict(graph.boxes), list(graph.program.tensors)
        for each in stored:
            boxes[each.target] = self._box(each)
        for each in chain:
            boxes[each.target] = self._box(each)
            if all(tensor.name != each.target for tensor in tensors):
                outputs = len(each.statement.output_indices)
                tensors.append(Tensor(each.target, self._type_of(each), outputs, "temporary"))
        after = {each.name for each in block.members}
        others = [each for each in graph.stages if each.name not in after]
        at = sum(1 for each in graph.stages[: graph.position(block.members[0].name)] if each.name not in after)
        read = [self._reader(each) for each in others]
        stages = (*read[:at], *chain, *stored, *read[at:])
        program = replace(graph.program, tensors=tuple(tensors))
        return replace(graph, program=program, boxes=boxes).with_stages(stages)

    # --- what there is ---

    @property
    def count(self) -> SizeExpr:
        """How many steps there are."""
        low, high = self.block.domain
        return high - low

    @property
    def extents(self) -> dict[str, Expr]:
        """How many steps there are, and the first one, as targets have them."""
        return {
            name: to_expr(self.graph.extents[name])
            for target, place in self.block.places.items()
            for name in (f"{target}.{place}", f"{target}.first{place}")
        }

    @property
    def groups(self) -> tuple[SizeExpr, SizeExpr]:
        return constant(0), ceil_div(self.count, constant(self.steps))

    def _names(self) -> dict[tuple[str, int], str]:
        """What every target is called in each step; the last step of a state that no other statement reads is the state itself."""
        names: dict[tuple[str, int], str] = {}
        taken = taken_names(self.graph)
        for member in self.block.members:
            for step in range(1, self.steps + 1):
                last = step == self.steps
                if last and member.target not in self.block.states:
                    names[member.target, step] = member.target
                elif not last or self._read_in_step(member.target):
                    names[member.target, step] = fresh_name(f"{member.target}.step{step}", taken)
                    taken.add(names[member.target, step])
        return names

    def _read_in_step(self, target: str) -> bool:
        place, step = self.block.places[target], self.block.step
        reads = (read for each in self.block.members for read in each.statement.reads() if read.tensor == target)
        return any(from_expr(read.indices[place]) == index(step) for read in reads)

    def _type_of(self, stage: Stage) -> DType:
        """The type of the target that a stage makes steps of."""
        return self.graph.program.tensor(self.graph.stage(stage.evaluates).target).dtype

    def _box(self, stage: Stage) -> Box:
        return Box(tuple(root.dom for root in stage.roots if root.kind == "output"))

    def _tiles(self, stage: Stage) -> dict[str, int]:
        """The loops of a step that are cut into tiles, and the iterations of one."""
        roots = [root.name for root in _inner(self.graph.stage(stage.evaluates), self.block.step)]
        return {name: factor for name, factor in zip(roots, self.tile, strict=False) if factor}

    # --- stages ---

    def _between(self, member: Stage, step: int, names: dict[tuple[str, int], str]) -> Stage:
        """One step of a group, of the elements that the later ones need."""
        name = names[member.target, step]
        statement, around = member.statement, self._dimensions(member)
        beyond = self.block.reach * (self.steps - step + 1)
        roots = tuple(
            replace(root, dom=(root.dom[0] - beyond, root.dom[1] + beyond)) if root.name in around else root
            for root in self._roots(member)
        )
        made = replace(
            self._statement(member, roots, self._value(member, step, names, around)),
            name=name,
            target=name,
            initialize=statement.operator != "=",
            order=(),
            block="",
            text=f"{name}: step {step} of {self.steps}, {statement.text}",
        )
        leaves = tuple(root.name for root in roots)
        first = (self.block.step, *(leaf for leaf in leaves if leaf != self.block.step))
        return Stage(made, roots, leaves=first, evaluates=member.evaluates, storage=member.storage)

    def _stored(self, member: Stage, names: dict[tuple[str, int], str]) -> Stage:
        """What is kept of a state for the next group: its last step."""
        roots, name = self._roots(member), names.get((member.target, self.steps))
        if name is None:
            value = self._value(member, self.steps, names, {})
        else:
            outputs = tuple(IndexVar(index.name) for index in member.statement.output_indices)
            value = cast(Read(name, outputs, self._type_of(member)), member.statement.value.dtype)
        tiles = self._tiles(member)
        made = replace(self._statement(member, roots, value), order=((self.block.step, 1),))
        outside, inside = _cut(member.leaves, self.block.step)
        leaves = (
            *outside,
            *(f"{leaf}.outer" for leaf in inside if leaf in tiles),
            *(f"{leaf}.inner" if leaf in tiles else leaf for leaf in inside),
        )
        relations = tuple(Split(leaf, f"{leaf}.outer", f"{leaf}.inner", factor) for leaf, factor in tiles.items())
        return replace(member, statement=made, roots=roots, leaves=leaves, relations=relations, attach=Attach())

    def _roots(self, member: Stage) -> tuple[IterVar, ...]:
        """The indices of a statement, with groups in the place of steps."""
        return tuple(replace(r, dom=self.groups) if r.name == self.block.step else r for r in member.roots)

    def _statement(self, member: Stage, roots: Sequence[IterVar], value: Expr) -> Statement:
        ends = {root.name: (to_expr(root.dom[0]), to_expr(root.dom[1])) for root in roots}
        indices = tuple(replace(each, where=ends[each.name]) for each in member.statement.indices)
        return replace(member.statement, indices=indices, value=value, ahead=(), filters=())

    def _dimensions(self, member: Stage) -> dict[str, SizeExpr]:
        """The indices that go on beyond both ends, with the extents that they are taken modulo."""
        outputs = member.statement.output_indices
        return {outputs[dimension].name: extent for dimension, extent in self.block.wrapped.items()}

    # --- values ---

    def _value(self, member: Stage, step: int, names: dict[tuple[str, int], str], around: dict[str, SizeExpr]) -> Expr:
        """The value of a statement in one step of a group."""
        made = _Step(self, step, names, around)
        value = made.expr(member.statement.value)
        if step == 1 or self._is_whole():
            return value
        if member.target in self.block.states:
            outputs = [IndexVar(each.name) for each in member.statement.output_indices]
            outputs[self.block.places[member.target]] = IndexVar(self.block.step)
            stays = Read(names[member.target, step - 1], tuple(outputs), self._type_of(member))
            return Select(self._is_there(step), value, cast(stays, value.dtype), value.dtype)
        if not self._follows_steps(member):
            return value
        nothing = identity_of(member.statement.operator if member.statement.operator != "=" else "+", value.dtype)
        return Select(self._is_there(step), value, nothing, value.dtype)

    def _is_there(self, step: int) -> Expr:
        """Whether a group has so many steps."""
        left = self.count - (self._taken() * self.steps + step)
        return Binary(">=", to_expr(left), int64(0), DType.BOOL)

    def _follows_steps(self, member: Stage) -> bool:
        """Whether a statement reads elements, of other tensors than those of the block, that have to do with the step."""
        others = (read for read in member.statement.reads() if read.tensor not in self.block.places)
        return any(self.block.step in index_names(at) for read in others for at in read.indices)

    def _is_whole(self) -> bool:
        return mod(self.count, constant(self.steps)) == constant(0)

    def _taken(self) -> SizeExpr:
        return of_atom(Name("index", self.block.step, (0, None)))

    def now(self, step: int) -> SizeExpr:
        """The step of the text that is one of a group."""
        low, high = self.block.domain
        taken = self._taken() * self.steps + (step - 1)
        return low + taken if self.block.way > 0 else high - 1 - taken

    def _reader(self, stage: Stage) -> Stage:
        """A stage that reads the last step of a state: that of the last group."""
        places, extents = self.block.places, self.extents

        def rule(node: Expr) -> Expr | None:
            match node:
                case Size() if node.name in extents:
                    return extents[node.name]
                case Read() if node.tensor in places:
                    place = places[node.tensor]
                    last = to_expr(self.groups[1] - 1)
                    return replace(node, indices=(*node.indices[:place], last, *node.indices[place + 1 :]), border=None)
                case _:
                    return None

        return replace(stage, statement=stage.statement.mapped(lambda expr: _rewritten(expr, rule)))


@dataclass(slots=True)
class _Step:
    """Puts the expressions of one step of a group in the place of those of the text."""

    tiling: _Tiling
    step: int
    names: dict[tuple[str, int], str]
    around: dict[str, SizeExpr]

    def expr(self, expr: Expr) -> Expr:
        return _rewritten(expr, self.rule)

    def rule(self, node: Expr) -> Expr | None:
        match node:
            case Read() if node.tensor in self.tiling.block.places:
                return self._state(node)
            case Size() if node.name in self.tiling.extents:
                return self.tiling.extents[node.name]
            case IndexVar() if node.name == self.tiling.block.step:
                return to_expr(self.tiling.now(self.step))
            case IndexVar() if node.name in self.around:
                return Binary("%", node, to_expr(self.around[node.name]), DType.INT64)
            case Binary(op="%"):
                return self._modulo(node)
            case Select():
                return self._chosen(node)
            case _:
                return None

    def _modulo(self, node: Binary) -> Expr | None:
        """`(i + 1) % N`, not `(i % N + 1) % N`."""
        for name, extent in self.around.items():
            moved = _move(node, name, extent, self.tiling.graph)
            if moved is not None and moved[1]:
                return node
        return None

    def _chosen(self, node: Select) -> Expr | None:
        """A choice without tests that hold in this step of all groups: whether there is a step before."""
        parts = conjuncts(node.condition)
        rest = [part for part in parts if not self._holds(part)]
        if len(rest) == len(parts):
            return None
        if not rest:
            return self.expr(node.then)
        test = all_of(rest)
        return self.expr(replace(node, condition=test))

    def _holds(self, test: Expr) -> bool:
        """Whether a comparison is true in this step of each group that has it."""
        step, (low, high) = self.tiling.block.step, self.tiling.block.domain
        gaps = list(gaps_of(self.tiling.graph, (test,)))
        if not gaps or gaps[0].indices - {step}:
            return False
        taken = self.step - 1
        ends = (low + taken, high - 1) if self.tiling.block.way > 0 else (low, high - 1 - taken)
        least = interval(gaps[0], {step: ends}).lower
        return least is not None and nonnegative(least)

    def _state(self, read: Read) -> Expr:
        """An element of this step, of the one before it in the group, or of the last one of the group before."""
        block = self.tiling.block
        place = block.places[read.tensor]
        same = from_expr(read.indices[place]) == index(block.step)
        step = self.step if same else self.step - 1
        name = self.names[read.tensor, step] if step else read.tensor
        group: Expr = IndexVar(block.step)
        if not step:
            group = Binary("-", group, int64(1), DType.INT64)
        indices = [
            group if k == place else self._beyond(at) if step and k in block.wrapped else self.expr(at)
            for k, at in enumerate(read.indices)
        ]
        return replace(read, tensor=name, indices=tuple(indices), border=None)

    def _beyond(self, at: Expr) -> Expr:
        """A subscript without its remainder: a stage of a group goes on beyond the ends of a dimension."""
        return at.left if isinstance(at, Binary) and at.op == "%" else at


def _rewritten(expr: Expr, rule: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with what a rule says of a node in its place, from the outside inwards."""
    new = rule(expr)
    if new is not None:
        return new
    below = children(expr)
    return rebuild(expr, tuple(_rewritten(child, rule) for child in below)) if below else expr


def _cut(leaves: tuple[str, ...], step: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The loops down to the steps, and those inside."""
    at = leaves.index(step) + 1
    return leaves[:at], leaves[at:]


__all__ = ["MOST_STEPS", "time_tiled"]
