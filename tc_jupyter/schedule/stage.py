"""Stages and the relations between their loops: the data model of TVM's schedules ("InferBound Pass", Schedule, Stage, IterVar).

One statement is one stage. Its root axes are the statement's indices; `split`, `fuse` and `skew` derive axes; those of which no
other is derived are its leaves, ordered from the outermost loop inwards. Relations carry the minimum of their parent
(TVM's third relation, rebase, is not needed for that reason), so derived axes start at 0.

Worked example: `C(i,j) +=! A(i,k) * B(k,j)` after `split("C", "i", 16)` has roots `i, j, k`, one `Split("i", "i.outer", "i.inner",
16)` and leaves `i.outer, i.inner, j, k`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from tc_jupyter.program import Binary, Expr, IndexVar, Program, Size, Statement, int64, rewrite, with_condition
from tc_jupyter.program.integers import plus
from tc_jupyter.ranges import Box, Ranges, SizeExpr

from .left_sides import with_plain_left_sides

GRID_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREAD_AXES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
GPU_AXES = (*GRID_AXES, *THREAD_AXES)
ANNOTATIONS = ("parallel", "vectorize", "unroll", *GPU_AXES)
SCOPES = ("auto", "global", "shared", "local", "register", "threads", "fragment")
TAILS = ("short", "guard", "shift", "mask")
"""What a split may say of its last, partial tile; `primitives.split` says what each means."""


@dataclass(frozen=True, slots=True)
class IterVar:
    """A root axis.

    Attributes:
        kind: `output` (data-parallel) or `reduction`.
        dom: lower end and upper end (excluded) of the default range, from range inference.
    """

    name: str
    kind: str
    dom: tuple[SizeExpr, SizeExpr]

    @property
    def extent(self) -> SizeExpr:
        """Number of its values, for all sizes."""
        return self.dom[1] - self.dom[0]


@dataclass(frozen=True, slots=True)
class Split:
    """`parent = parent.min + factor * outer + inner`, `0 <= inner < factor`.

    With `nparts` the factor is `ceil(extent of parent / nparts)`; exactly one of the two is given. With the tail `shift` the last
    tile begins earlier (`lineage.tile_start`).
    """

    parent: str
    outer: str
    inner: str
    factor: int | None
    nparts: int | None = None
    tail: str | None = None


@dataclass(frozen=True, slots=True)
class Fuse:
    """`fused = (outer - outer.min) * inner.extent + (inner - inner.min)`."""

    outer: str
    inner: str
    fused: str


@dataclass(frozen=True, slots=True)
class Skew:
    """`front = factor*outer + inner`, and `place`, which counts the values of `outer` on one front from its first one."""

    outer: str
    inner: str
    factor: int
    front: str
    place: str


Relation: TypeAlias = Split | Fuse | Skew


@dataclass(frozen=True, slots=True)
class Attach:
    """Where a stage runs: `root`, `inline`, `at` a leaf of another stage, or `with` it (sharing its loops down to the leaf)."""

    kind: str = "root"
    stage: str = ""
    axis: str = ""


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the elements of a stage live: the arguments of `primitives.storage`, which says what they are."""

    scope: str = "auto"
    layout: tuple[tuple[int, int], ...] | None = None
    padded: bool = False
    clamped: tuple[str, ...] = ()
    masked: bool = False
    whole: bool = False
    pad: int = 0
    swizzle: tuple[int, int] | None = None
    double: int = 1
    rolling: bool = False


@dataclass(frozen=True, slots=True)
class Tensorize:
    """The leaves from `axes` on are one intrinsic."""

    axes: tuple[str, ...]
    intrinsic: str


@dataclass(frozen=True, slots=True)
class Stage:
    """One statement and its loops.

    Attributes:
        roots: the statement's indices: output axes in left-side order, then reduction axes.
        leaves: names of the loops, outermost first. The components of a fold, which are combined together, have no loop.
        annotations: (leaf, annotation) pairs, see `ANNOTATIONS`.
        limits: `value < limit` in terms of the roots: points outside do not exist (the tail of a split that `rfactor` has made
            an index of its own).
        evaluates: the statement of the program as written whose value this stage computes; empty for copies and combinations.
        positions: where `rfactor` has replaced that statement's indices: name and expression of the present ones.
    """

    statement: Statement
    roots: tuple[IterVar, ...]
    relations: tuple[Relation, ...] = ()
    leaves: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    attach: Attach = Attach()
    storage: Storage = Storage()
    tensorize: Tensorize | None = None
    limits: tuple[tuple[SizeExpr, SizeExpr], ...] = ()
    evaluates: str = ""
    positions: tuple[tuple[str, Expr], ...] = ()

    @property
    def name(self) -> str:
        """The name of its statement."""
        return self.statement.name

    @property
    def target(self) -> str:
        """The tensor that it writes."""
        return self.statement.target

    @property
    def axes(self) -> tuple[str, ...]:
        """All axes: roots, then derived ones in order of creation."""
        derived = (name for relation in self.relations for name in children_of(relation))
        return (*(root.name for root in self.roots), *derived)

    def root(self, name: str) -> IterVar:
        """The root axis of that name; raises `KeyError`."""
        for root in self.roots:
            if root.name == name:
                return root
        raise KeyError(name)

    def kind(self, axis: str) -> str:
        """`output` or `reduction`: derived axes take the kind of their parents."""
        for root in self.roots:
            if root.name == axis:
                return root.kind
        for relation in self.relations:
            if axis in children_of(relation):
                return self.kind(relation.parent if isinstance(relation, Split) else relation.outer)
        raise KeyError(axis)

    def below(self, axes: Collection[str]) -> frozenset[str]:
        """These axes, and all that are derived of them."""
        found = set(axes)
        for relation in self.relations:
            if found & set(parents_of(relation)):
                found |= set(children_of(relation))
        return frozenset(found)

    def tail(self, axis: str) -> str | None:
        """What was said of partial tiles that the loop over an axis runs through, if anything was."""
        for relation in self.relations:
            if axis in children_of(relation):
                said = relation.tail if isinstance(relation, Split) and axis == relation.inner else None
                return said or next(filter(None, map(self.tail, parents_of(relation))), None)
        return None

    def runs_down(self, root: str) -> bool:
        """Whether the loop of a root counts from its last value downwards."""
        return (root, -1) in self.statement.order

    def annotation(self, leaf: str) -> str | None:
        """The annotation of a leaf, if any."""
        for name, kind in self.annotations:
            if name == leaf:
                return kind
        return None


def children_of(relation: Relation) -> tuple[str, ...]:
    """The axes that a relation derives."""
    match relation:
        case Split():
            return (relation.outer, relation.inner)
        case Fuse():
            return (relation.fused,)
        case Skew():
            return (relation.front, relation.place)


def parents_of(relation: Relation) -> tuple[str, ...]:
    """The axes that a relation consumes."""
    match relation:
        case Split():
            return (relation.parent,)
        case Fuse() | Skew():
            return (relation.outer, relation.inner)


@dataclass(frozen=True)
class StageGraph:
    """The stages of a program in order of execution, and the program that they compute.

    Attributes:
        program: with the tensors and statements that `cache_read`, `cache_write` and `rfactor` have added.
        boxes: box of every tensor.
        stages: one per statement, in program order (producers first).
        base: the program as written.
        most: sizes that no call exceeds: (name, number).
        unchecked: steps follow of which only the last graph is looked at (`Schedule.together`).
        at_points: the statements of the program as written with an access that each point has to look at.
    """

    program: Program
    boxes: Mapping[str, Box] = field(hash=False)
    stages: tuple[Stage, ...]
    base: Program
    most: tuple[tuple[str, int], ...] = ()
    unchecked: bool = field(default=False, compare=False)
    at_points: frozenset[str] = frozenset()

    def stage(self, name: str) -> Stage:
        """The stage of that name; raises `KeyError`."""
        return self.stages[self.position(name)]

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the stages that write a result."""
        results = {self.storage_name(name) for name in self.program.results}
        return tuple(stage.name for stage in self.stages if self.storage_name(stage.target) in results)

    @cached_property
    def roots(self) -> tuple[Stage, ...]:
        """The stages of which each is a kernel, with what is attached to it, in order of execution."""
        return tuple(stage for stage in self.stages if stage.attach.kind == "root")

    def root(self, stage: Stage) -> Stage:
        """The stage in whose kernel a stage is computed."""
        path = self.attach_path(stage.name)
        return self.stage(path[-1][0]) if path else stage

    def storage_name(self, tensor: str) -> str:
        """The tensor whose elements these are: itself, or what it is a view of."""
        return self._owners.get(tensor, tensor)

    @cached_property
    def _owners(self) -> dict[str, str]:
        """Every view and whose elements it has."""
        found: dict[str, str] = {}
        for view in self.program.tensors:
            tensor = view
            while tensor.view_of is not None:
                tensor = self.program.tensor(tensor.view_of)
            if tensor is not view:
                found[view.name] = tensor.name
        return found

    def stages_on(self, tensor: str) -> tuple[Stage, ...]:
        """All stages that write the storage of `tensor`, in order."""
        return tuple(self._writers.get(self.storage_name(tensor), ()))

    def reads(self, stage: Stage) -> tuple[str, ...]:
        """Storage names of the tensors that a stage reads (its own target too, if it does), in order of occurrence.

        What its points look at, before they read or write, are the elements that decide in the statement as written, also where the
        stage reads copies of them.
        """
        found = stage.statement.tensors_read
        if stage.evaluates in self.at_points:
            found += self.base.statement(stage.evaluates).tensors_that_decide
        return tuple(dict.fromkeys(map(self.storage_name, found)))

    def consumers(self, name: str) -> tuple[Stage, ...]:
        """The later stages that read what `name` writes, stages on the same tensor excluded."""
        storage, first = self.storage_name(self.stage(name).target), self.position(name)
        return tuple(
            stage
            for stage in self._readers.get(storage, ())
            if self.position(stage.name) > first and self.storage_name(stage.target) != storage
        )

    def position(self, name: str) -> int:
        """Place of a stage in program order; raises `KeyError`."""
        return self._positions[name]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {stage.name: number for number, stage in reversed(tuple(enumerate(self.stages)))}

    @cached_property
    def _writers(self) -> dict[str, list[Stage]]:
        """The stages on every storage, in order."""
        found: dict[str, list[Stage]] = {}
        for stage in self.stages:
            found.setdefault(self.storage_name(stage.target), []).append(stage)
        return found

    @cached_property
    def _readers(self) -> dict[str, list[Stage]]:
        """The stages that read every storage, in order."""
        found: dict[str, list[Stage]] = {}
        for stage in self.stages:
            for storage in self.reads(stage):
                found.setdefault(storage, []).append(stage)
        return found

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The stages whose loops others share."""
        return frozenset(stage.attach.stage for stage in self.stages if stage.attach.kind == "with")

    @cached_property
    def extents(self) -> Mapping[str, SizeExpr]:
        """The extents `T.k` of all tensors, and their first indices `T.firstk`, as expressions of the sizes."""
        ends = [(name, k, *pair) for name, box in self.boxes.items() for k, pair in enumerate(box.bounds)]
        extents = {f"{name}.{k}": high - low for name, k, low, high in ends}
        return extents | {f"{name}.first{k}": low for name, k, low, _ in ends}

    def is_interleaved(self, name: str) -> bool:
        """Whether a later statement writes the stage's tensor again after somebody has read it."""
        family = self.stages_on(self.stage(name).target)
        last = self.position(family[-1].name)
        return any(self.position(user.name) < last for user in self.consumers(family[0].name))

    def computes_all(self, name: str) -> bool:
        """Whether a stage computes every element, whatever is read: results, stages that share loops, and those that say so."""
        stage = self.stage(name)
        shared = any(each.name in self._shared for each in self.stages_on(stage.target))
        says_so = stage.attach.kind == "root" and stage.storage.scope == "global"
        if any(each.statement.order for each in self.stages_on(stage.target)):
            return True  # what is asked for needs what comes before it
        return name in self.outputs or stage.attach.kind == "with" or shared or says_so or self.is_interleaved(name)

    def runs_in(self, name: str) -> str:
        """The stage at root in whose loops a stage runs: itself, or the end of its attach path."""
        path = self.attach_path(name)
        return path[-1][0] if path else name

    def scope(self, stage: Stage) -> str:
        """Where the elements of a stage live; `auto` is decided by where it runs."""
        if stage.storage.scope != "auto":
            return stage.storage.scope
        return "local" if stage.attach.kind == "at" else "global"

    def replace_stage(self, new: Stage) -> StageGraph:
        """The graph with one stage exchanged; the program's statement follows."""
        return self.with_stages(tuple(new if stage.name == new.name else stage for stage in self.stages))

    def with_stages(self, stages: tuple[Stage, ...]) -> StageGraph:
        """The graph with other stages; the program's statements follow."""
        statements = tuple(stage.statement for stage in stages)
        return replace(self, stages=stages, program=replace(self.program, statements=statements))

    def attached(self, name: str) -> Iterator[Stage]:
        """The stages attached directly at or with a leaf of `name`, in program order."""
        return (stage for stage in self.stages if stage.attach.stage == name)

    def is_free(self, name: str) -> bool:
        """Whether a stage is still as it was written: at root, without moves and notes, and nothing runs in its loops."""
        stage = self.stage(name)
        plain = stage.attach.kind == "root" and not stage.relations and not stage.annotations
        return plain and not any(True for _ in self.attached(name))

    def attach_path(self, name: str) -> tuple[tuple[str, str], ...]:
        """The loops around a stage, innermost first, as (stage, leaf) (TVM: CreateAttachPath)."""
        found = self._paths.get(name)
        if found is None:
            stage = self.stage(name)
            found = () if stage.attach.kind not in ("at", "with") else self._path_in(stage.attach)
            self._paths[name] = found
        return found

    def _path_in(self, attach: Attach) -> tuple[tuple[str, str], ...]:
        consumer = self.stage(attach.stage)
        around = consumer.leaves[: consumer.leaves.index(attach.axis) + 1]
        return (*((consumer.name, leaf) for leaf in reversed(around)), *self.attach_path(consumer.name))

    @cached_property
    def _paths(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """The loops around the stages that were asked for."""
        return {}


def stage_graph(program: Program, ranges: Ranges) -> StageGraph:
    """The default graph: every stage at root, its leaves are its roots; those of a block share its loop."""
    stages: list[Stage] = []
    first: dict[str, Attach] = {}
    known = replace(program, statements=tuple(_at_known_firsts(each, ranges) for each in program.statements))
    apart = independent_in_blocks(known, ranges)
    for statement in with_plain_left_sides(known, ranges):
        names = {index.name for index in statement.indices}
        roots = tuple(
            IterVar(found.index, found.kind, (found.lower, found.upper))
            for found in ranges.indices[statement.name]
            if found.lower is not None and found.upper is not None and found.index in names
        )
        leaves = _in_order(statement, roots)
        outside = apart.get(statement.block, ())
        leaves = (*outside, *(leaf for leaf in leaves if leaf not in outside))
        attach = first.get(statement.block, Attach())
        stages.append(Stage(with_condition(statement), roots, leaves=leaves, evaluates=statement.name, attach=attach))
        if statement.block and leaves:
            first.setdefault(
                statement.block, Attach("with", statement.name, leaves[len(outside) + len(statement.steps) - 1])
            )
    graph = StageGraph(program, dict(ranges.boxes), (), program, at_points=ranges.at_points)
    return graph.with_stages(tuple(stages))


def _at_known_firsts(statement: Statement, ranges: Ranges) -> Statement:
    """A statement of a block with known first indices as numbers: `P(n + P.first1)` is `P(n)`, where `P` begins at 0."""
    lows = ((f"{name}.first{k}", low) for name, box in ranges.boxes.items() for k, (low, _) in enumerate(box.bounds))
    firsts = {name: low.constant for name, low in lows if low.is_constant} if statement.block else {}

    def rule(node: Expr) -> Expr | None:
        if isinstance(node, Binary) and node.op == "+" and isinstance(node.right, Size) and node.right.name in firsts:
            return plus(node.left, int64(firsts[node.right.name]))
        return None

    return statement.mapped(lambda each: rewrite(each, rule)) if firsts else statement


def independent_in_blocks(program: Program, ranges: Ranges) -> dict[str, tuple[str, ...]]:
    """The indices of each block in which no statement reads anything of other values: their loops are around that of the step.

    The last index of a statement, along which elements are neighbours, stays inside.
    """
    found: dict[str, tuple[str, ...]] = {}
    for block in dict.fromkeys(statement.block for statement in program.statements if statement.block):
        members = [statement for statement in program.statements if statement.block == block]
        names = [item.name for item in members[0].output_indices]
        free = [name for name in names if all(_is_apart(name, members, each, ranges) for each in members)]
        found[block] = tuple(free)
    return found


def _is_apart(name: str, members: Sequence[Statement], statement: Statement, ranges: Ranges) -> bool:
    """Whether an index of a block is one of a statement, too, which reads of the block only elements at the same value."""
    outputs = [item.name for item in statement.output_indices]
    if name not in outputs[:-1] or statement.left or any(name == each for each, _ in statement.order):
        return False
    domains = [
        (found.lower, found.upper)
        for each in (members[0], statement)
        for found in ranges.indices[each.name]
        if found.index == name
    ]
    made = [(each.target, [item.name for item in each.output_indices]) for each in members]
    places = {target: names.index(name) for target, names in made if name in names}
    reads = [read for read in statement.reads() if read.tensor in {target for target, _ in made}]
    own = (read.tensor in places and read.indices[places[read.tensor]] == IndexVar(name) for read in reads)
    return len(set(domains)) == 1 and all(own)


def _in_order(statement: Statement, roots: tuple[IterVar, ...]) -> tuple[str, ...]:
    """The loops of a statement: those over points are outside where its left side says which element each of them belongs to.

    Those that have an order are outermost, as they are written.
    """
    order = sorted(roots, key=lambda root: root.kind == "output") if statement.computed else roots
    first = [name for name, _ in statement.order]
    return (*first, *(root.name for root in order if root.name not in (*first, statement.part)))


def constant_extent(stage: Stage, axis: str) -> int | None:
    """Largest number of iterations of an axis if it does not depend on sizes, else `None`."""
    for root in stage.roots:
        if root.name == axis:
            extent = root.extent
            return extent.constant if extent.is_constant else None
    for relation in stage.relations:
        if isinstance(relation, Split) and axis in (relation.outer, relation.inner):
            parent = constant_extent(stage, relation.parent)
            if relation.factor is not None:
                if axis == relation.inner:
                    return relation.factor if parent is None else min(relation.factor, parent)
                return None if parent is None else -(-parent // relation.factor)
            assert relation.nparts is not None
            if axis == relation.outer:
                return relation.nparts if parent is None else min(relation.nparts, parent)
            return None if parent is None else -(-parent // relation.nparts)
        if isinstance(relation, Fuse) and axis == relation.fused:
            outer, inner = constant_extent(stage, relation.outer), constant_extent(stage, relation.inner)
            return None if outer is None or inner is None else outer * inner
        if isinstance(relation, Skew) and axis in (relation.front, relation.place):
            outer, inner = constant_extent(stage, relation.outer), constant_extent(stage, relation.inner)
            if outer is None or inner is None:
                return None
            is_front = axis == relation.front
            return relation.factor * (outer - 1) + inner if is_front else min(outer, -(-inner // relation.factor))
    return None


def taken_names(graph: StageGraph) -> set[str]:
    """The names that a new stage must not have."""
    return {stage.name for stage in graph.stages} | {tensor.name for tensor in graph.program.tensors}


def fresh_name(name: str, taken: Collection[str]) -> str:
    """A name for a new stage: this one, or its first version that is not taken."""
    versions = (f"{name}#{n}" for n in range(2, len(taken) + 3))
    return next(each for each in (name, *versions) if each not in taken)
