"""What every stage must compute, as integer sets: the phases of InferBound without boxes, for all sizes at once.

The formula of `infer_bound`, need(P), on sets of the set library:

    need(P) = union over consumers C and reads a of P in C of a(need(C) joined with leaves_to_roots(C)),
              every loop that is not on P's attach path projected out

Worked example: `i, j` of `C` over 4 x 4 fused and split by 3, B attached at the outer loop `o`. `need(B)` is
`{ [o] -> [i, j] : 3*o <= 4*i + j < 3*o + 3 }` inside 4 x 4: three elements per visit, which no box can say.

A product of a size with a loop (a fused axis whose inner extent is a size) is no integer set: the answer is then the box of
`infer_bound.py`, `exact=False`, and a reason. The same holds without the set library and where data decide what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tc_jupyter.program import Binary, Expr, Read, Select, Size, children, walk
from tc_jupyter.program.integers import reads_elements
from tc_jupyter.ranges import (
    Answer,
    Condition,
    IntegerMap,
    IntegerSet,
    Scope,
    SizeExpr,
    Unknown,
    floor_div,
    from_expr,
    index,
    mod,
    to_condition,
)

from .extents import loop_extent
from .infer_bound import SymbolicBounds, path_points, scope_of, variable, view_shift
from .lineage import Lineage, on_front, steps_to
from .stage import Fuse, IterVar, Split, Stage, StageGraph, children_of
from .visits import Enumeration, TooManyPoints

Alternative = tuple[SizeExpr, ...]
"""One AND of constraints `e >= 0`."""
Piece = tuple[tuple[SizeExpr, bool], ...]
"""One AND of constraints: `(e, True)` says `e == 0`, `(e, False)` says `e >= 0`."""

NOMINAL = 13
"""Value of every size where the set and the box are compared: a prime, larger than most factors of examples."""
WORTH = 0.75
MOST_PIECES = 4
MOST_TESTS = 12


@dataclass(frozen=True, slots=True, eq=False)
class ExactNeed:
    """What a stage must compute.

    Attributes:
        stage: its name.
        path: the loops that make a visit, outermost first, by the names of `variable`.
        dims: names of the dimensions of the tensor.
        mapping: visit -> needed elements (logical indices); sizes are parameters. `None` where neither the set nor its box is one.
        exact: the map is what is needed, not only a box around it.
        reason: why it is not, else empty.
        needs_numbers: it would be exact at given sizes (TC409).
    """

    stage: str
    path: tuple[str, ...]
    dims: tuple[str, ...]
    mapping: IntegerMap | None
    exact: bool
    reason: str = ""
    needs_numbers: bool = False


PointsOf: TypeAlias = Callable[[Stage], IntegerSet]
"""The points of a stage: those that are needed, or those that its loops compute."""


@dataclass(slots=True)
class ExactSets:
    """The exact needs of all stages of a graph, made on demand and kept."""

    bounds: SymbolicBounds
    found: dict[str, ExactNeed] = field(default_factory=dict)
    guards: dict[str, tuple[Piece, ...] | None] = field(default_factory=dict)
    around: dict[tuple[str, str], dict[int, tuple[Condition, ...]]] = field(default_factory=dict)

    @property
    def graph(self) -> StageGraph:
        """The graph that the bounds belong to."""
        return self.bounds.graph

    def need(self, name: str) -> ExactNeed:
        """The need of one stage; those of its consumers are made first."""
        if name not in self.found:
            self.found[name] = self._need(self.graph.stage(name))
        return self.found[name]

    def is_box(self, name: str) -> bool:
        """Whether the box that loops are generated from is known to hold nothing that is not needed."""
        bounds, need = self.bounds[name], self.need(name)
        if bounds.stage.storage.padded or not need.exact or need.mapping is None:
            return False
        try:
            box = self.box(bounds.stage, need.path, need.dims)
            return box.is_subset(need.mapping.wrapped()) is Answer.YES
        except Unknown:
            return False

    def guard(self, name: str) -> tuple[Piece, ...] | None:
        """What a point of the stage's box must satisfy to be needed, as an OR of ANDs; `None` where no test pays, or all of the box
        is known to be needed.

        A test pays where at most `WORTH` of the box is needed at `NOMINAL` sizes, and only where it is short and the loops are not
        vectors or intrinsics, which it would break. Elements are named by the stage's roots, loops around it as in `variable`.

        What consumers and later statements on the tensor compute without need counts as needed: nothing unwritten is loaded.
        """
        if name not in self.guards:
            self.guards[name] = None if self.bounds[name].exact else self._guard(self.bounds[name].stage)
        return self.guards[name]

    def _guard(self, stage: Stage) -> tuple[Piece, ...] | None:
        if stage.storage.padded or stage.tensorize is not None or _has_vectors(stage) or not self._users(stage):
            return None
        if stage.statement.part:
            return None
        family = self.graph.stages_on(stage.target)
        if any(self.guard(later.name) is None for later in family[family.index(stage) + 1 :]):
            return None
        need = self.need(stage.name)
        if not need.exact or need.mapping is None:
            return None
        try:
            needed = self._set(stage, need.path, need.dims, self._runs)
            box = self._context(stage, need.path, need.dims)
            if box.is_subset(needed) is Answer.YES or not self._pays(stage, needed):
                return None
            pieces = needed.simplified(box).pieces()
        except (Unknown, TooManyPoints):
            return None
        if len(pieces) > MOST_PIECES or sum(map(len, pieces)) > MOST_TESTS:
            return None
        roots = {dim: index(root.name) for dim, root in zip(need.dims, _outputs(stage), strict=True)}
        return tuple(tuple((e.substitute(roots), equal) for e, equal in piece) for piece in pieces)

    def _runs(self, user: Stage) -> IntegerSet:
        """The points at which the loops of a stage compute, needed or not; raises `Unknown`."""
        need = self.need(user.name)
        if self.guard(user.name) is None:
            return self._with_reductions(user, need.dims, self.box(user, need.path, need.dims))
        return self._with_reductions(user, need.dims, self._set(user, need.path, need.dims, self._runs))

    def largest(self, stage: Stage, extent: SizeExpr) -> int | None:
        """The largest value of an extent over all visits and sizes; `None` where there is none, or it is not known."""
        path = tuple(variable(*loop) for loop in self.path(stage))
        try:
            values = IntegerSet.build((*path, "extent"), self._visits(stage), [index("extent") - extent])
            hull = values.project_out(path).hull()
        except Unknown:
            return None
        return 0 if hull is None else max(0, hull[0][1] - 1)

    def _context(self, stage: Stage, path: tuple[str, ...], dims: tuple[str, ...]) -> IntegerSet:
        """What holds inside the loops: the box, or where its ends are choices, all visits and the whole tensor."""
        try:
            return self.box(stage, path, dims)
        except Unknown:
            constraints = self._visits(stage)
            for name, (low, high) in zip(dims, self._ranges(stage), strict=True):
                constraints += [index(name) - low, high - 1 - index(name)]
            return IntegerSet.build((*path, *dims), constraints)

    def _pays(self, stage: Stage, needed: IntegerSet) -> bool:
        """Whether the boxes have clearly more points than the set at nominal sizes."""
        values = {name: NOMINAL for name in self._names(stage)}
        counts = Enumeration(self.bounds, values).box_counts(self.path(stage), self._loop_box(stage))
        return needed.count(values) <= WORTH * sum(counts)

    def _names(self, stage: Stage) -> frozenset[str]:
        ends = [end for pair in (*self._ranges(stage), *self._loop_box(stage)) for end in pair]
        ends += [self.bounds[name].lineage.extents[leaf] for name, leaf in self.path(stage)]
        return frozenset(self.graph.program.sizes).union(*(end.names - end.indices for end in ends))

    # --- one stage ---------------------------------------------------------------------------------------------------

    def path(self, stage: Stage) -> tuple[tuple[str, str], ...]:
        """The loops of a visit, outermost first; empty for stages that compute everything."""
        return tuple(reversed(path_points(self.graph, stage))) if self._users(stage) else ()

    def _users(self, stage: Stage) -> tuple[Stage, ...]:
        graph = self.graph
        if graph.computes_all(stage.name):
            return ()
        return graph.consumers(graph.stages_on(stage.target)[0].name)

    def _need(self, stage: Stage) -> ExactNeed:
        path = tuple(variable(*loop) for loop in self.path(stage))
        dims = tuple(f"{stage.name}.{k}" for k in range(len(self._ranges(stage))))
        try:
            return ExactNeed(stage.name, path, dims, self._set(stage, path, dims, self.points).as_map(path), True)
        except Unknown as unknown:
            reason, numbers = unknown.reason, not unknown.is_skipped and not isinstance(unknown, _OnData)
        try:
            box = self.box(stage, path, dims).as_map(path)
        except Unknown:
            box = None
        return ExactNeed(stage.name, path, dims, box, False, reason, numbers)

    def box(self, stage: Stage, path: tuple[str, ...], dims: tuple[str, ...]) -> IntegerSet:
        """The box that loops are generated from, over all visits; raises `Unknown`."""
        constraints = self._visits(stage)
        for name, (low, extent) in zip(dims, self._loop_box(stage), strict=True):
            constraints += [index(name) - low, low + extent - 1 - index(name)]
        return IntegerSet.build((*path, *dims), constraints)

    def _loop_box(self, stage: Stage) -> list[tuple[SizeExpr, SizeExpr]]:
        domain = self.bounds[stage.name].domain
        return [domain[root.name] for root in stage.roots if root.kind == "output"]

    def _visits(self, stage: Stage) -> list[SizeExpr]:
        """Every loop of the path inside its range."""
        constraints: list[SizeExpr] = []
        path = self.path(stage)
        for depth, (name, leaf) in enumerate(path):
            owner = self.graph.stage(name)
            placed = frozenset(axis for other, axis in path[:depth] if other == name)
            extent = loop_extent(owner, self.bounds[name].lineage, leaf, placed)
            loop = index(variable(name, leaf))
            constraints += [loop, extent - 1 - loop]
        return constraints

    def _ranges(self, stage: Stage) -> list[tuple[SizeExpr, SizeExpr]]:
        return [root.dom for root in stage.roots if root.kind == "output"]

    def _set(self, stage: Stage, path: tuple[str, ...], dims: tuple[str, ...], points_of: PointsOf) -> IntegerSet:
        """Pairs (visit, element that consumers read at their points); raises `Unknown` where they are no integer set."""
        inside: list[SizeExpr] = []
        for name, (low, high) in zip(dims, self._ranges(stage), strict=True):
            inside += [index(name) - low, high - 1 - index(name)]
        users = self._users(stage)
        if not users:
            return IntegerSet.build((*path, *dims), inside)
        total = IntegerSet.empty((*path, *dims))
        for user in users:
            for read in self._different_reads(user):
                if self.graph.storage_name(read.tensor) == self.graph.storage_name(stage.target):
                    total = self._request(stage, user, read, path, dims, points_of).union(total)
        return total.constrain(inside).coalesced()

    # --- one read of one consumer ------------------------------------------------------------------------------------

    def points(self, user: Stage) -> IntegerSet:
        """The points at which a stage runs: its visit, then its roots.

        Raises:
            Unknown: its need is not known exactly.
        """
        need = self.need(user.name)
        if not need.exact or need.mapping is None:
            raise Unknown(need.reason, not need.needs_numbers)
        return self._with_reductions(user, need.dims, need.mapping.wrapped())

    def _with_reductions(self, user: Stage, elements: tuple[str, ...], computed: IntegerSet) -> IntegerSet:
        """The points of a stage that computes these elements."""
        names = {dim: root_dim(user, root.name) for dim, root in zip(elements, _outputs(user), strict=True)}
        known = computed.rename(names)
        reductions = [root for root in user.roots if root.kind == "reduction"]
        dims = (*known.dims, *(root_dim(user, root.name) for root in reductions))
        constraints: list[SizeExpr] = []
        for root in reductions:
            here = index(root_dim(user, root.name))
            constraints += [here - root.dom[0], root.dom[1] - 1 - here]
        own = {root.name: index(root_dim(user, root.name)) for root in user.roots}
        constraints += [limit.substitute(own) - 1 - value.substitute(own) for value, limit in user.limits]
        return known.embedded(dims).constrain(constraints)

    def leaf_values(self, user: Stage, wanted: frozenset[str]) -> dict[str, SizeExpr]:
        """The leaves `wanted` of a stage in terms of its roots and its visit, counted from 0.

        Raises:
            Unknown: a fused axis whose inner extent is no number.
        """
        bounds = self.bounds[user.name]
        starts = {name: steps_to(user, bounds.domain, name, index(root_dim(user, name))) for name in bounds.domain}
        return axis_values(user, bounds.lineage, starts, wanted)

    def loop_values(self, user: Stage, path: tuple[str, ...]) -> dict[str, SizeExpr]:
        """The loops `path` at a point of a stage: its own leaves from its roots, the loops around it as they are."""
        leaves = frozenset(leaf for leaf in user.leaves if variable(user.name, leaf) in path)
        shared: dict[str, str] = {}
        if user.attach.kind == "with":
            other = self.graph.stage(user.attach.stage)
            depth = other.leaves.index(user.attach.axis) + 1
            pairs = zip(other.leaves[:depth], user.leaves, strict=False)
            shared = {variable(other.name, theirs): mine for theirs, mine in pairs}
            leaves |= frozenset(mine for theirs, mine in shared.items() if theirs in path)
        own = self.leaf_values(user, leaves)
        values = {variable(user.name, leaf): value for leaf, value in own.items()}
        values |= {theirs: own[mine] for theirs, mine in shared.items() if theirs in path}
        return {name: values.get(name, index(name)) for name in path}

    def element(self, user: Stage, read: Read) -> list[SizeExpr] | None:
        """The element that `read` reads at a point, in coordinates of the storage; `None` where data decide."""
        if any(map(reads_elements, read.indices)):
            return None
        shift = view_shift(self.graph, read.tensor)
        scope = self._scope(user)
        return [from_expr(s, scope) + by for s, by in zip(read.indices, shift, strict=True)]

    def _scope(self, user: Stage, mark: str = "") -> Scope:
        own = {root.name: index(mark + root_dim(user, root.name)) for root in user.roots}
        return Scope(sizes=scope_of(self.graph).sizes, indices=own)

    def reached(self, user: Stage, read: Read, mark: str = "") -> tuple[Alternative, ...]:
        """Under which constraints on its roots the stage evaluates `read`; conditions on data count as true.

        Args:
            mark: what the names of its roots begin with.
        """
        return alternatives(self._conditions(user, mark)[id(read)])

    def _conditions(self, user: Stage, mark: str = "") -> dict[int, tuple[Condition, ...]]:
        if (user.name, mark) not in self.around:
            self.around[user.name, mark] = conditions_around(user.statement.value, self._scope(user, mark))
        return self.around[user.name, mark]

    def _different_reads(self, user: Stage) -> Iterable[Read]:
        """The reads of a stage, without those that read the same under the same conditions as another."""
        around = self._conditions(user)
        return {(read, around[id(read)]): read for read in user.statement.reads()}.values()

    def _request(
        self, stage: Stage, user: Stage, read: Read, path: tuple[str, ...], dims: tuple[str, ...], points_of: PointsOf
    ) -> IntegerSet:
        element = self.element(user, read)
        if element is None:
            raise _OnData(f"where `{user.name}` reads depends on data")
        points = points_of(user)
        loops = self.loop_values(user, path)
        # a loop that the consumer's own storage is shared over is any of its values
        free = [name for name in path if loops[name] == index(name) and name not in points.dims]
        fresh = {name: f"at {name}" for name in path}
        equalities = [index(fresh[name]) - loops[name] for name in path if name not in free]
        own = view_shift(self.graph, stage.target)  # its indices count from its own first element
        equalities += [index(name) + by - value for name, by, value in zip(dims, own, element, strict=True)]
        total = IntegerSet.empty((*path, *dims))
        for holds in self.reached(user, read):
            part = points.apply(IntegerMap.build(points.dims, (*fresh.values(), *dims), holds, equalities))
            total = part.rename({new: name for name, new in fresh.items()}).union(total)
        return total.constrain(self._visits(stage)) if free else total


class _OnData(Unknown):
    """Elements of tensors decide what is read."""


def axis_values(
    stage: Stage, related: Lineage, starts: Mapping[str, SizeExpr], wanted: frozenset[str]
) -> dict[str, SizeExpr]:
    """The axes `wanted` in terms of the roots, counted from 0; `starts` has the roots so.

    Raises:
        Unknown: a fused axis whose inner extent is no number, or a last tile that begins earlier: its points are in two tiles.
    """
    values = dict(starts)
    for relation in stage.relations:
        if not stage.below(children_of(relation)) & wanted:
            continue
        if isinstance(relation, Split):
            if relation.tail == "shift":
                raise Unknown(f"the last tile of `{relation.parent}` of `{stage.name}` begins inside the one before it")
            factor = related.factors[relation.parent]
            values[relation.outer] = floor_div(values[relation.parent], factor)
            values[relation.inner] = mod(values[relation.parent], factor)
        elif isinstance(relation, Fuse):
            row = related.extents[relation.inner]
            if not row.is_constant:
                raise Unknown(f"`{relation.inner}` of `{stage.name}` is fused, and its extent is no number")
            values[relation.fused] = values[relation.outer] * row + values[relation.inner]
        else:
            front = values[relation.outer] * relation.factor + values[relation.inner]
            values[relation.front] = front
            values[relation.place] = values[relation.outer] - on_front(relation, related.extents, front)[0]
    return {axis: values[axis] for axis in wanted}


def root_dim(stage: Stage, root: str) -> str:
    """The name of a root in a set of points."""
    return f"{stage.name}:{root}"


def _outputs(stage: Stage) -> tuple[IterVar, ...]:
    return tuple(root for root in stage.roots if root.kind == "output")


def _has_vectors(stage: Stage) -> bool:
    return any(kind in ("vectorize", "unroll") for _, kind in stage.annotations)


# --- conditions ------------------------------------------------------------------------------------------------------


def conditions_around(expr: Expr, scope: Scope) -> dict[int, tuple[Condition, ...]]:
    """The conditions (`? :`, `&&`, `||`) under which each read is evaluated, by its identity; those on data are left out.

    What stands in several places is evaluated under the conditions of the first one.
    """
    found: dict[int, tuple[Condition, ...]] = {}

    def visit(part: Expr, known: tuple[Condition, ...]) -> None:
        if isinstance(part, Read):
            found.setdefault(id(part), known)
        match part:
            case Select():
                visit(part.condition, known)
                holds, fails = _both_ways(part.condition, scope)
                visit(part.then, (*known, *holds))
                visit(part.otherwise, (*known, *fails))
            case Binary(op="&&" | "||"):
                visit(part.left, known)
                visit(part.right, (*known, *_both_ways(part.left, scope)[part.op == "||"]))
            case _:
                for child in children(part):
                    visit(child, known)

    visit(expr, ())
    return found


def _both_ways(condition: Expr, scope: Scope) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """What holds where a condition does, and where it does not."""
    if _on_data(condition):
        return (), ()
    here = to_condition(condition, scope)
    return (here,), (here.negated(),)


def _on_data(condition: Expr) -> bool:
    return any(
        isinstance(node, Read) or (node.dtype.is_float and not isinstance(node, Size)) for node in walk(condition)
    )


def alternatives(conditions: tuple[Condition, ...]) -> tuple[Alternative, ...]:
    """An AND of conditions as an OR of ANDs of `e >= 0`; what is unknown counts as true."""
    total: tuple[Alternative, ...] = ((),)
    for condition in conditions:
        total = tuple((*left, *right) for left in total for right in condition.alternatives()[0])
    return total


__all__ = ["ExactNeed", "ExactSets", "alternatives", "axis_values", "conditions_around", "root_dim"]
