"""Where every loop runs and what every stage must compute: TVM's InferBound pass on stages, before any loop exists.

Consumers are visited before their producers. For each stage: the full range if it writes a result, else what its consumers ask
for (`requests`: leaves of the consumer -> roots (`pass_up`) -> elements of the tensor), united (`gather`); then the derived axes
(`pass_down`). Here the sets are boxes whose ends are symbolic expressions of sizes and of the loops around the stage: what the
loops are generated from, `exact` where the box is known to be what is needed. Boxes only: ends that move with other indices are cut
by `loops.loop_ends`. `exact_sets.py` has the same phases on integer sets; with `tvm=True` TVM's rules apply, and `phases.py` shows
both step by step.

Worked example: `D(i,j) = C(i,j) * 2`, `split(D[j], 8)`, C attached at `j.outer`. `i` is on the attach path,
hence a point; `j.inner` is not, hence relaxed to `[0, 8)`; so C needs `[i, i + 1) x [8*j.outer, 8*j.outer + 8)`.

Source: TVM, "InferBound Pass".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, Select, children, conjuncts, negated, walk
from tc_jupyter.program.integers import index_names
from tc_jupyter.ranges import (
    Condition,
    Extremum,
    Name,
    Scope,
    SizeExpr,
    choose,
    constant,
    floor_div,
    from_expr,
    interval,
    maximum,
    minimum,
    mod,
    nonnegative,
    of_atom,
)

from .lineage import Domain, Lineage, bounded, counted, default_domain, lineage, on_front, tile_start
from .stage import GPU_AXES, THREAD_AXES, Fuse, Skew, Split, Stage, StageGraph, children_of

Interval = tuple[SizeExpr, SizeExpr]
"""Smallest and largest value, both included."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one access of one consumer asks of a tensor, per dimension; `None` for a whole dimension (phase 3).

    `inside`: the access is proved to stay inside the tensor. Conditions that are checked at the call do not count: they are not
    checked for a statement without points.
    """

    consumer: str
    read: Read
    box: tuple[Interval | None, ...]
    exact: bool
    inside: bool


@dataclass(frozen=True, slots=True)
class StageBounds:
    """The symbolic bounds of one stage.

    Attributes:
        domain: minimum and extent of every root, in terms of sizes and of the loops on the attach path.
        requests: what the consumers ask for; empty for results and for stages that compute everything.
        lineage: values and extents of all axes.
        box: minimum and extent per dimension of what is stored: the union over all stages on the tensor.
        exact: the box is known to hold nothing that is not asked for.
    """

    stage: Stage
    domain: Domain
    requests: tuple[Request, ...]
    lineage: Lineage
    box: tuple[tuple[SizeExpr, SizeExpr], ...]
    exact: bool


class SymbolicBounds(Mapping[str, StageBounds]):
    """`StageBounds` of every stage, by name, found when they are asked for: first those of the stages that they follow from.

    Attributes:
        graph: what they belong to (inlined stages have been substituted).
        tvm, whole: see `infer_symbolic`.
    """

    def __init__(
        self, graph: StageGraph, tvm: bool = False, whole: bool = False, known: Mapping[str, StageBounds] | None = None
    ) -> None:
        self.graph = graph
        self.tvm = tvm
        self.whole = whole
        self._found = dict(known or {})
        self._reads: dict[str, tuple[_StorageRead, ...]] = {}

    def __getitem__(self, stage: str) -> StageBounds:
        waiting = [] if stage in self._found else [self.graph.stage(stage)]
        while waiting:  # a chain of temporaries may be longer than Python's calls are deep
            before = [each for each in self._before(waiting[-1]) if each.name not in self._found]
            waiting += before
            if not before and (last := waiting.pop()).name not in self._found:
                self._found |= _family_bounds(self, last)
        return self._found[stage]

    def __iter__(self) -> Iterator[str]:
        return (stage.name for stage in self.graph.stages)

    def __len__(self) -> int:
        return len(self.graph.stages)

    def moved(self, graph: StageGraph, stage: str) -> SymbolicBounds:
        """The bounds after a stage without tiles was attached elsewhere: what runs after it computes what it did before."""
        for each in self._before(self.graph.stage(stage)):
            self[each.name]  # found here, it is found once for all places that are tried
        last = self.graph.position(self.graph.stages_on(self.graph.stage(stage).target)[-1].name)
        kept = {name: found for name, found in self._found.items() if self.graph.position(name) > last}
        return SymbolicBounds(graph, self.tvm, self.whole, kept)

    def is_asked(self, stage: Stage) -> bool:
        """Whether a stage computes only what its consumers ask for."""
        return not self.whole and not self.graph.computes_all(stage.name)

    def reads_of(self, consumer: Stage) -> tuple[_StorageRead, ...]:
        """The reads of a stage."""
        if consumer.name not in self._reads:
            self._reads[consumer.name] = _storage_reads(self.graph, consumer)
        return self._reads[consumer.name]

    def _before(self, stage: Stage) -> Iterator[Stage]:
        """The stages from whose bounds those of a stage follow: its consumers, and those whose loops are around them."""
        if self.is_asked(stage):
            for user in self.graph.consumers(self.graph.stages_on(stage.target)[0].name):
                yield user
                yield from (self.graph.stage(owner) for owner, _ in self.graph.attach_path(user.name))


def variable(stage: str, leaf: str) -> str:
    """The name of a loop variable in symbolic bounds: unique in the graph."""
    return f"{stage}[{leaf}]"


def infer_symbolic(graph: StageGraph, tvm: bool = False, whole: bool = False) -> SymbolicBounds:
    """The bounds of all stages; those of a stage follow from its consumers and are never changed afterwards.

    Args:
        graph: without inlined stages (`inline.inject_inline`).
        tvm: use TVM's rule where a fused axis is split: both parts fall back to their whole ranges.
        whole: every stage computes all its elements. What is asked for is known for sizes of 1 and more only; with a size of 0 a
            consumer without points would still seem to ask for something.
    """
    return SymbolicBounds(graph, tvm, whole)


def _family_bounds(bounds: SymbolicBounds, stage: Stage) -> dict[str, StageBounds]:
    """Bounds of all stages that write one tensor: they run together and share the storage."""
    graph, tvm = bounds.graph, bounds.tvm
    family = graph.stages_on(stage.target)
    whole = _whole_box(graph, stage)
    requests: tuple[Request, ...] = ()
    box, exact = whole, True
    if bounds.is_asked(stage):
        users = graph.consumers(family[0].name)
        requests = tuple(request for user in users for request in requests_of(bounds, stage, user))
        if requests:
            box, exact = gather(requests, whole, clip=not (tvm or _tests_positions(graph, stage)))
            if tvm:
                box = tuple(_tvm_clip(here, all_of) for here, all_of in zip(box, whole, strict=True))
            parts = _components(family)
            if parts:  # they are combined together, whichever are read
                box, exact = tuple(whole[n] if n in parts else here for n, here in enumerate(box)), False
    result: dict[str, StageBounds] = {}
    for member in family:
        domain = default_domain(member)
        outputs = [root for root in member.roots if root.kind == "output"]
        shift = view_shift(graph, member.target)
        if requests:
            # a statement of `%%sac` may write only a part of the tensor's box, even the first one
            fills = all(domain[root.name] == ends for root, ends in zip(outputs, whole, strict=True))
            for root, (first, extent), far in zip(outputs, box, shift, strict=True):
                low = first - far
                inside = fills and member is family[0] and all(request.inside for request in requests)
                if not (tvm or inside or _tests_positions(graph, member)):
                    low, extent = _clip(low, extent, *domain[root.name])
                domain[root.name] = (
                    low,
                    _whole_tiles(graph, member, root.name, extent) if is_padded(member, root.name) else extent,
                )
        if member.storage.padded:
            ends = (domain[root.name] for root in outputs)
            box = tuple((low + far, extent) for (low, extent), far in zip(ends, shift, strict=True))
            if member.storage.whole:
                domain |= _whole_reductions(member, domain)
        related = lineage(member, domain, lambda leaf, name=member.name: variable(name, leaf))
        result[member.name] = StageBounds(member, domain, requests, related, box, exact)
    return result


def _components(family: Sequence[Stage]) -> set[int]:
    """The dimension over the components of a fold, if one of these stages is such a fold."""
    found = ((each.statement.part, each.statement.output_indices) for each in family if each.statement.part)
    return {number for part, indices in found for number, index in enumerate(indices) if index.name == part}


def is_padded(stage: Stage, root: str) -> bool:
    """Whether an output of a stage is computed up to whole tiles."""
    return stage.storage.padded and (not stage.storage.clamped or root in stage.storage.clamped)


def _tests_positions(graph: StageGraph, stage: Stage) -> bool:
    """A padded copy into shared memory tests every position, so that its tile may reach beyond the tensor and keeps its size.

    So does a fragment, and a copy in registers, which are parts of such a tile.
    """
    if stage.storage.scope != "register" or stage.statement.operator != "=":
        return stage.storage.padded and stage.storage.scope in ("shared", "fragment")
    sources = [graph.stages_on(read.tensor) for read in stage.statement.reads()]
    tiles = (each.storage.padded and each.storage.scope == "shared" for found in sources for each in found)
    return stage.storage.padded and all(sources) and all(tiles)


def _whole_box(graph: StageGraph, stage: Stage) -> tuple[tuple[SizeExpr, SizeExpr], ...]:
    box = graph.boxes[graph.storage_name(stage.target)]
    return tuple((low, high - low) for low, high in box.bounds)


def extent_between(low: SizeExpr, high: SizeExpr) -> SizeExpr:
    """`high + 1 - low` with `low` moved into a `min` or `max` of `high`, so that `min(4*o + 3, N - 1)` gives `min(4, N - 4*o)`."""
    return _moved_in(high + 1 - low)


def _moved_in(total: SizeExpr) -> SizeExpr:
    """`min(a, b) + c` as `min(a + c, b + c)`, inner ones too, if there is one `min` or `max`."""
    kind, parts = _extremum_of(total)
    return (minimum if kind == "min" else maximum)(*map(_moved_in, parts)) if kind else total


def _clip(low: SizeExpr, extent: SizeExpr, dom_low: SizeExpr, dom_extent: SizeExpr) -> tuple[SizeExpr, SizeExpr]:
    """The part of `[low, low + extent)` inside the default range."""
    high, dom_high = low + extent, dom_low + dom_extent
    if (low, extent) == (dom_low, dom_extent):
        return low, extent
    new_low = low if nonnegative(low - dom_low) else dom_low if nonnegative(dom_low - low) else maximum(low, dom_low)
    new_high = (
        high if nonnegative(dom_high - high) else dom_high if nonnegative(high - dom_high) else minimum(high, dom_high)
    )
    return new_low, extent_between(new_low, new_high - 1)


def _tvm_clip(box: tuple[SizeExpr, SizeExpr], whole: tuple[SizeExpr, SizeExpr]) -> tuple[SizeExpr, SizeExpr]:
    """A dimension of TVM's box: the whole one where both ends are proved to lie beyond it, else as it was asked for.

    Tails are computed as the rest is, under a test of every element.

    Source: TVM, `ComputeOp::PropBoundToInputs` (the "relaxed form of intersection").
    """
    (low, extent), (first, length) = box, whole
    beyond = nonnegative(first - low) and nonnegative(low + extent - first - length)
    return whole if beyond else box


def _whole_tiles(graph: StageGraph, stage: Stage, root: str, extent: SizeExpr) -> SizeExpr:
    """What a padded stage computes at the edge as well: the largest extent, up to a multiple of the factor that splits it.

    An extent without a largest value is rounded up itself, unless a masked stage computes the tiles: it would test every element.
    A stage whose reads then leave what is allocated is not padded in the end (`padding.with_safe_padding`).
    """
    most = extent.limits[1]
    factor = next((each.factor for each in stage.relations if isinstance(each, Split) and each.parent == root), None)
    if most is None:
        if factor is None or stage.storage.masked or any(each.storage.masked for each in graph.attached(stage.name)):
            return extent
        return floor_div(extent + (factor - 1), constant(factor)) * constant(factor)
    return constant(-(-most // factor) * factor if factor else most)


def _whole_reductions(stage: Stage, domain: Domain) -> dict[str, tuple[SizeExpr, SizeExpr]]:
    """Split reductions up to a multiple of their factor: what is added beyond the end is zero."""
    found: dict[str, tuple[SizeExpr, SizeExpr]] = {}
    for relation in stage.relations:
        if isinstance(relation, Split) and relation.factor is not None and relation.parent in domain:
            low, extent = domain[relation.parent]
            if stage.kind(relation.parent) == "reduction":
                factor = constant(relation.factor)
                found[relation.parent] = (low, floor_div(extent + factor - 1, factor) * factor)
    return found


# --- phases 1 to 3 ---------------------------------------------------------------------------------------------------


def requests_of(bounds: SymbolicBounds, producer: Stage, consumer: Stage) -> tuple[Request, ...]:
    """What `consumer` reads of `producer`'s tensor during one visit of the producer (phases 1 to 3, one request per read)."""
    graph = bounds.graph
    storage = graph.storage_name(producer.target)
    around = frozenset(variable(*loop) for loop in path_points(graph, producer))
    same = {name: point for name, point in _shared_points(bounds, consumer).items() if point.indices <= around}
    path = around | same.keys()
    roots = pass_up(consumer, bounds[consumer.name], path, bounds.tvm)
    box = {name: ends for name, (ends, _) in roots.items()}
    joint = all(exact for _, exact in roots.values())
    found: dict[tuple[Read, tuple[Expr, ...]], Request] = {}
    mine = [each for each in bounds.reads_of(consumer) if each.storage == storage]
    for each in mine:
        read, key = each.read, (each.read, each.conditions)
        if key not in found:
            parts = bool(path) and not bounds.tvm
            there = _where_all_hold(graph, each.conditions, box) if parts else box
            ends, exact = _access_box(graph, read, there)
            relaxed = [_relax(graph, end, consumer, bounds, path) for end in ends]
            if same:
                relaxed = [end and (end[0].substitute(same), end[1].substitute(same)) for end in relaxed]
                ends = [end and (end[0].substitute(same), end[1].substitute(same)) for end in ends]
            # a box whose ends are not reached may reach beyond the elements that are read
            sure = exact and relaxed == ends and not consumer.storage.padded
            inside = sure and _proved_inside(graph, consumer, read)
            sharp = exact and joint and _independent(read) and not each.conditions
            found[key] = Request(consumer.name, read, tuple(relaxed), sharp, inside)
    return tuple(replace(found[each.read, each.conditions], read=each.read) for each in mine)


def _shared_points(bounds: SymbolicBounds, consumer: Stage) -> dict[str, SizeExpr]:
    """The variables of a stage, and of those around it, that count a loop of another one (`compute_with`), with those of that."""
    graph, found = bounds.graph, dict[str, SizeExpr]()
    for name in (consumer.name, *dict.fromkeys(owner for owner, _ in graph.attach_path(consumer.name))):
        stage = graph.stage(name)
        if stage.attach.kind == "with":
            first = graph.stage(stage.attach.stage)
            shared = first.leaves[: first.leaves.index(stage.attach.axis) + 1]
            for mine, theirs in zip(stage.leaves, shared, strict=False):
                found[variable(name, mine)] = bounds[first.name].lineage.leaf(theirs)
    return found


def _where_all_hold(
    graph: StageGraph, conditions: tuple[Expr, ...], box: Mapping[str, Interval]
) -> Mapping[str, Interval]:
    """The ranges of indices without what comparisons of one index with another leave out, where something is left for sure.

    Worked example: for `j <= i` and `i` in `[64*o, 64*o + 63]` the last `j` is `64*o + 63`.
    """
    for gap in gaps_of(graph, conditions):
        parts = {name: gap.linear_in(name) or (constant(0), gap) for name in gap.indices & box.keys()}
        if {weight for weight, _ in parts.values()} != {constant(1), constant(-1)}:
            continue
        for name, (weight, rest) in parts.items():
            low, high = box[name]
            end = interval(rest * -weight.offset, box)
            if weight == constant(-1):
                high = high if end.upper is None else minimum(high, end.upper)
            else:
                low = low if end.lower is None else maximum(low, end.lower)
            if nonnegative(high - low):
                box = {**box, name: (low, high)}
    return box


def gaps_of(graph: StageGraph, conditions: tuple[Expr, ...]) -> Iterator[SizeExpr]:
    """What conditions say is not negative: the distances of what their comparisons compare, where no element decides."""
    for condition in (part for each in conditions for part in conjuncts(each)):
        if not isinstance(condition, Binary) or condition.op not in ("<", "<=", ">", ">="):
            continue
        sides = condition.left, condition.right
        if any(side.dtype is not DType.INT64 or is_computed(graph, side) for side in sides):
            continue
        small, large = (from_expr(side, scope_of(graph)) for side in sides)
        yield (large - small) * (1 if condition.op[0] == "<" else -1) - (len(condition.op) == 1)


@dataclass(frozen=True, slots=True)
class _StorageRead:
    """A read, the tensor whose elements it reads, and the conditions under which it is evaluated."""

    read: Read
    storage: str
    conditions: tuple[Expr, ...]


def _storage_reads(graph: StageGraph, consumer: Stage) -> tuple[_StorageRead, ...]:
    conditions = _conditions_of(consumer.statement.value)
    return tuple(
        _StorageRead(read, graph.storage_name(read.tensor), conditions.get(id(read), ()))
        for read in consumer.statement.reads()
    )


def _proved_inside(graph: StageGraph, consumer: Stage, read: Read) -> bool:
    """Whether a read stays inside its tensor for all values of the consumer's indices and all sizes."""
    box = {root.name: (root.dom[0], root.dom[1] - 1) for root in consumer.roots}
    ends, _ = _access_box(graph, read, box)
    tensor = graph.boxes[graph.storage_name(read.tensor)]
    return all(
        end is not None and nonnegative(end[0] - low) and nonnegative(high - 1 - end[1])
        for end, (low, high) in zip(ends, tensor.bounds, strict=True)
    )


def _conditions_of(expr: Expr) -> dict[int, tuple[Expr, ...]]:
    """The conditions that hold wherever a part is evaluated: below a branch of `? :` or the right side of `&&` or `||`, by `id`."""
    found: dict[int, tuple[Expr, ...]] = {}
    waiting: list[tuple[Expr, tuple[Expr, ...]]] = [(expr, ())]
    while waiting:
        node, here = waiting.pop()
        known = found.get(id(node))
        found[id(node)] = here if known is None else tuple(each for each in known if each in here)
        match node:
            case Select(condition=condition):
                waiting += [(condition, here), (node.then, (*here, condition))]
                waiting.append((node.otherwise, (*here, negated(condition))))
            case Binary(op="&&" | "||"):
                right = node.left if node.op == "&&" else negated(node.left)
                waiting += [(node.left, here), (node.right, (*here, right))]
            case _:
                waiting += [(child, here) for child in children(node)]
    return found


def _independent(read: Read) -> bool:
    """Whether no index occurs in two dimensions: then the box of the dimensions holds only elements that are read."""
    used = [index_names(i) for i in read.indices]
    dense = all(_unit_steps(i) for i in read.indices)
    return dense and sum(map(len, used)) == len(frozenset().union(*used))


def _unit_steps(subscript: Expr) -> bool:
    """Whether a subscript passes over no value: an index plus something, or a constant."""
    names = [node for node in walk(subscript) if isinstance(node, IndexVar)]
    sums = all(not isinstance(node, Binary) or node.op in ("+", "-") for node in walk(subscript))
    return not names or sums


def path_points(graph: StageGraph, producer: Stage) -> tuple[tuple[str, str], ...]:
    """The loops on the attach path that are points for the producer's storage: thread axes and memory scopes.

    Shared storage is read by all threads of the block, so loops bound to `threadIdx` are relaxed; for storage that is spread over
    the threads, those bound to `threadIdx.x`; global storage is read by all blocks (and by all tasks of a CPU), so those bound to
    `blockIdx` are relaxed as well.

    A thread axis that a loop further in is bound to again is the same thread there: the loop outside is no loop of its own.

    Source: TVM, "InferBound Pass", phase 1 (`NeedRelax` by the rank of thread and storage).
    """
    relaxed = relaxed_axes(graph, producer)
    points: list[tuple[str, str]] = []
    inside: set[str | None] = set()
    for owner, leaf in graph.attach_path(producer.name):
        axis = graph.stage(owner).annotation(leaf)
        if axis not in relaxed and axis not in inside:
            points.append((owner, leaf))
        inside |= {axis} & set(THREAD_AXES)
    return tuple(points)


def relaxed_axes(graph: StageGraph, producer: Stage) -> tuple[str, ...]:
    """The kinds of loops whose iterations all see the producer's storage; see `path_points`."""
    scopes = {"shared": THREAD_AXES, "threads": THREAD_AXES[:1], "global": (*GPU_AXES, "parallel")}
    return scopes.get(graph.scope(producer), ())


@dataclass(frozen=True, slots=True)
class AxisStep:
    """One axis on the way from leaves to roots.

    Attributes:
        ends: smallest and largest value, counted from 0 (roots: from their minimum).
        exact: the interval holds nothing else.
        case: `point` (a leaf on the path), `whole` (all leaves below are relaxed, the range is the whole one), `affine` (a split:
            `outer * factor + inner`), `rows` and `columns` (a fuse: what a run of positions touches), `skewed` (what
            fronts touch), or `fallback` (TVM's rule for a fused axis that is no point: the whole range).
    """

    ends: Interval
    exact: bool
    case: str


def pass_up(
    stage: Stage, bounds: StageBounds, path: frozenset[str], tvm: bool = False
) -> dict[str, tuple[Interval, bool]]:
    """From leaves to roots (phases 1 and 2): a leaf on `path` is a point, any other is relaxed to its whole range.

    Returns:
        Per root its interval in terms of the loops on the path, and whether it is exact.
    """
    steps = _PassUp(stage, bounds, path, tvm)
    return {root.name: (steps.root(root.name).ends, steps.root(root.name).exact) for root in stage.roots}


def pass_up_steps(stage: Stage, bounds: StageBounds, path: frozenset[str], tvm: bool = False) -> dict[str, AxisStep]:
    """As `pass_up`, for every axis, with the rule that applied."""
    steps = _PassUp(stage, bounds, path, tvm)
    roots = {root.name for root in stage.roots}
    return {axis: steps.root(axis) if axis in roots else steps.step(axis) for axis in stage.axes}


@dataclass(slots=True)
class _PassUp:
    """Carries sets from the leaves of a stage to its roots."""

    stage: Stage
    bounds: StageBounds
    path: frozenset[str]
    tvm: bool
    found: dict[str, AxisStep] = field(default_factory=dict)

    def root(self, name: str) -> AxisStep:
        """The interval of a root, from its minimum on."""
        step = self.step(name)
        ends = [counted(self.stage, self.bounds.domain, name, end) for end in step.ends]
        first, last = reversed(ends) if self.stage.runs_down(name) else ends
        return AxisStep((first, last), step.exact, step.case)

    def step(self, axis: str) -> AxisStep:
        """The interval of an axis counted from 0."""
        if axis not in self.found:
            self.found[axis] = self._step(axis)
        return self.found[axis]

    def _step(self, axis: str) -> AxisStep:
        related = self.bounds.lineage
        whole = (constant(0), related.extents[axis] - 1)
        if not self._leaves_below(axis) & self.path:
            return AxisStep(whole, True, "whole")
        for relation in self.stage.relations:
            if isinstance(relation, Split) and relation.parent == axis:
                return self._split(relation)
            if isinstance(relation, Fuse) and axis in (relation.outer, relation.inner):
                fused = self.step(relation.fused)
                if self.tvm and fused.ends[0] != fused.ends[1]:
                    return AxisStep(whole, False, "fallback")
                ends, exact = _unfuse(
                    (fused.ends, fused.exact), related.extents[relation.inner], axis == relation.outer
                )
                return AxisStep(ends, exact, "rows" if axis == relation.outer else "columns")
            if isinstance(relation, Skew) and axis in (relation.outer, relation.inner):
                return AxisStep(whole, False, "fallback") if self.tvm else self._skewed(relation, axis)
        point = bounded(variable(self.stage.name, axis), related.extents[axis])
        return AxisStep((point, point), True, "point")

    def _split(self, relation: Split) -> AxisStep:
        related = self.bounds.lineage
        factor, extent = related.factors[relation.parent], related.extents[relation.parent]
        outer, inner = self.step(relation.outer), self.step(relation.inner)
        (outer_low, outer_high), (inner_low, inner_high) = outer.ends, inner.ends
        low, start = (tile_start(relation, factor, extent, end) for end in outer.ends)
        ends_inside = mod(extent, factor) == constant(0)
        if inner_low == constant(0) and inner_high == related.extents[relation.inner] - 1:
            # the end of the parent limits it below, more simply than `min(factor, extent)` here
            inner_high = (minimum(factor, extent) if relation.tail == "shift" else factor) - 1
            ends_inside = ends_inside or relation.tail == "shift"
        high = start + inner_high
        if self.tvm:
            return AxisStep((low + inner_low, high), outer.exact and inner.exact, "affine")
        high = high if ends_inside else minimum(high, extent - 1)
        dense = outer_low == outer_high or inner_high - inner_low == factor - 1
        exact = outer.exact and inner.exact and dense
        return AxisStep((low + inner_low, high), exact, "affine")

    def _skewed(self, relation: Skew, axis: str) -> AxisStep:
        """The outer loop from its first to its last value on the fronts; the inner one is what is left of them."""
        related, factor = self.bounds.lineage, relation.factor
        front, place = self.step(relation.front), self.step(relation.place)
        (early, late), (low, high) = front.ends, place.ends
        first, _ = on_front(relation, related.extents, early)
        start, end = on_front(relation, related.extents, late)
        is_whole = high == related.extents[relation.place] - 1
        outer = (
            first + low,
            end - 1 if is_whole else start + high if early == late else minimum(start + high, end - 1),
        )
        exact = front.exact and place.exact and early == late and low == high
        if axis == relation.outer:
            return AxisStep(outer, exact, "skewed")
        inner = (early - factor * outer[1], late - factor * outer[0])
        if early != late:
            inner = (maximum(constant(0), inner[0]), minimum(related.extents[axis] - 1, inner[1]))
        return AxisStep(inner, exact, "skewed")

    def _leaves_below(self, axis: str) -> frozenset[str]:
        """The loop variables of the leaves that an axis has become."""
        below = self.stage.below((axis,))
        return frozenset(variable(self.stage.name, leaf) for leaf in self.stage.leaves if leaf in below)


def _unfuse(fused: tuple[Interval, bool], row: SizeExpr, outer: bool) -> tuple[Interval, bool]:
    """The rows (`outer`) or the columns that a run of fused positions touches; exact when it stays in one row or covers rows."""
    (low, high), exact = fused
    first, last = floor_div(low, row), floor_div(high, row)
    if outer:
        return (first, last), exact
    column = mod(low, row)
    if first == last:
        return (column, column + (high - low)), exact
    if column == constant(0) and mod(high + 1, row) == constant(0):
        return (constant(0), row - 1), exact
    # a run inside one row has its own columns, a longer one touches all
    same = Condition("==", (last - first,))
    return (choose(same, column, constant(0)), choose(same, mod(high, row), row - 1)), False


def _access_box(graph: StageGraph, read: Read, box: Mapping[str, Interval]) -> tuple[list[Interval | None], bool]:
    """Interval of each subscript of a read, in the coordinates of the storage; `None` where data decide."""
    shift = view_shift(graph, read.tensor)
    ends: list[Interval | None] = []
    exact = True
    scope = scope_of(graph)
    for dimension, subscript in enumerate(read.indices):
        if is_computed(graph, subscript):
            ends.append(None)
            exact = False
            continue
        found = interval(from_expr(subscript, scope), box)
        low, high = found.lower, found.upper
        if low is None or high is None:
            ends.append(None)
            exact = False
        else:
            ends.append((low + shift[dimension], high + shift[dimension]))
            exact = exact and found.exact
    return ends, exact


def is_computed(graph: StageGraph, subscript: Expr) -> bool:
    """Whether elements, or numbers that statements compute, say what a subscript is: nobody knows before."""
    known = graph.base.integer_scalars
    return any(isinstance(node, Read) and (node.indices or node.tensor not in known) for node in walk(subscript))


def view_shift(graph: StageGraph, tensor: str) -> tuple[SizeExpr, ...]:
    """What to add to an index of `tensor` to get the logical index in the tensor that owns the elements."""
    shift = tuple(constant(0) for _ in range(graph.program.tensor(tensor).rank))
    while (owner := graph.program.tensor(tensor).view_of) is not None:
        here, there = graph.boxes[tensor], graph.boxes[owner]
        shift = tuple(s + b[0] - a[0] for s, a, b in zip(shift, here.bounds, there.bounds, strict=True))
        tensor = owner
    return shift


def limited(most: tuple[tuple[str, int], ...]) -> dict[str, SizeExpr]:
    """Sizes with their largest values: what is made of them has limits too."""
    return {name: of_atom(Name("size", name, (1, largest))) for name, largest in most}


def scope_of(graph: StageGraph) -> Scope:
    """The extents `T.k` of computed tensors as expressions of the sizes."""
    return Scope(sizes={**limited(graph.most), **graph.extents})


def _relax(
    graph: StageGraph,
    ends: Interval | None,
    consumer: Stage,
    found: Mapping[str, StageBounds],
    path: frozenset[str],
) -> Interval | None:
    """Replace the loops around the consumer that are not around the producer by their ranges, innermost first."""
    if ends is None:
        return None
    low, high = ends
    for stage_name, leaf in graph.attach_path(consumer.name):
        name = variable(stage_name, leaf)
        if name in path or name not in low.indices | high.indices:
            continue
        last = found[stage_name].lineage.extents[leaf] - 1
        box = {name: (constant(0), last)}
        bottom, top = interval(low, box).lower, interval(high, box).upper
        if bottom is None or top is None:
            return None
        low, high = bottom, top
    return low, high


# --- phase 4 ---------------------------------------------------------------------------------------------------------


def gather(
    requests: tuple[Request, ...], whole: tuple[tuple[SizeExpr, SizeExpr], ...], clip: bool = True
) -> tuple[tuple[tuple[SizeExpr, SizeExpr], ...], bool]:
    """The smallest box that covers all requests, inside the tensor's box unless `clip` is false (phase 4, GatherBound).

    Returns:
        Minimum and extent per dimension, and whether the box holds only what one of the requests asks for.
    """
    box: list[tuple[SizeExpr, SizeExpr]] = []
    exact = all(request.exact for request in requests)
    for dimension, (dom_low, dom_extent) in enumerate(whole):
        ends = [request.box[dimension] for request in requests]
        lows = [end[0] for end in ends if end is not None]
        highs = [end[1] for end in ends if end is not None]
        if len(lows) < len(ends):
            box.append((dom_low, dom_extent))
            exact = False
            continue
        low, high = _outermost(lows, minimum), _outermost(highs, maximum)
        exact = exact and len(set(lows)) == 1 and len(set(highs)) == 1
        extent = extent_between(low, high)
        inside = not clip or all(request.inside for request in requests)
        box.append((low, extent) if inside else _clip(low, extent, dom_low, dom_extent))
    return tuple(box), exact


def _outermost(values: list[SizeExpr], pick: Callable[..., SizeExpr]) -> SizeExpr:
    """The smallest or largest of some ends, those left out that are never beyond another one."""
    kept: list[SizeExpr] = []
    for value in dict.fromkeys(values):
        if not any(_is_beyond(each, value, pick) for each in kept):
            kept = [*(each for each in kept if not _is_beyond(value, each, pick)), value]
    return pick(*kept)


def _is_beyond(one: SizeExpr, other: SizeExpr, pick: Callable[..., SizeExpr]) -> bool:
    return _not_above(one, other) if pick is minimum else _not_above(other, one)


def _not_above(low: SizeExpr, high: SizeExpr) -> bool:
    """Whether one value is proved not to be above another one, as `max(i - 1, 0)` and `max(i, 0)`."""
    if nonnegative(high - low):
        return True
    for value, other, every in ((low, high, "max"), (high, low, "min")):
        kind, parts = _extremum_of(value)
        if kind:
            pairs = ((part, other) if value is low else (other, part) for part in parts)
            if (all if kind == every else any)(_not_above(*pair) for pair in pairs):
                return True
    return False


def _extremum_of(value: SizeExpr) -> tuple[str, tuple[SizeExpr, ...]]:
    """`min` or `max` and of what, where a value is that of some others; else nothing."""
    found = [(mono, c) for mono, c in value.ordered() if len(mono) == 1 and isinstance(mono[0], Extremum)]
    if len(found) != 1 or abs(found[0][1]) != 1:
        return "", ()
    (atom,), sign = found[0]
    assert isinstance(atom, Extremum)
    rest = value - of_atom(atom) * sign
    return "min" if (atom.kind == "min") == (sign > 0) else "max", tuple(each * sign + rest for each in atom.arguments)


def pass_down(stage: Stage, related: Lineage) -> dict[str, tuple[SizeExpr, SizeExpr]]:
    """Minimum and extent of every axis with exact tails: the inner part of a split has `min(factor, extent - factor*outer)`."""
    result: dict[str, tuple[SizeExpr, SizeExpr]] = {}
    for axis in stage.axes:
        result[axis] = (constant(0), related.extents[axis])
    for relation in stage.relations:
        if isinstance(relation, Split) and mod(
            related.extents[relation.parent], related.factors[relation.parent]
        ) != constant(0):
            factor, extent = related.factors[relation.parent], related.extents[relation.parent]
            outer = related.values[relation.outer]
            rest = extent if relation.tail == "shift" else extent - factor * outer
            result[relation.inner] = (constant(0), minimum(factor, rest))
        if isinstance(relation, Skew):
            first, end = on_front(relation, related.extents, related.values[relation.front])
            result[relation.place] = (constant(0), end - first)
    return result


__all__ = [
    "AxisStep",
    "Interval",
    "Request",
    "StageBounds",
    "SymbolicBounds",
    "children_of",
    "gather",
    "infer_symbolic",
    "pass_down",
    "pass_up",
    "pass_up_steps",
    "path_points",
    "relaxed_axes",
    "requests_of",
    "scope_of",
    "variable",
    "view_shift",
]
