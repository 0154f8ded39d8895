"""Statements that work row by row (softmax, normalisation): temporaries are made inside the row loop of their consumer.

`m(i)`, `e(i,j)`, `s(i)` of a softmax are computed at `O[i]`: a row is read from memory once and stays in cache, and every row is
a task.
A temporary moves only where nothing is computed twice: each visit of the loop asks for elements that no other visit asks for.

Where tasks are blocks of rows (products), what a block needs of temporaries is computed in it if these are larger than the second
cache: `S(i,j) +=! Q(i,d) * K(j,d)`, its maxima and exponentials, for the rows of `Y(i,d) +=! E(i,j) * V(j,d)` that a task computes.
Then memory is for some rows of `S`, and grows as `Y` does.

A single row is taken in pieces: statements on single elements, each of which reads what others made of the same element, share one
loop over pieces of a few vectors. What they keep is a piece, so a chain of them goes through memory once. What is read elsewhere,
or is a result, is written there, too. So are rows of elements of two to four values, as complex numbers are: a piece that is kept
has planes of them.

Measured with AVX-512 (Zen 5), one thread, 500,000 `float`, the derivative of five steps of z^2 + c, 20 statements with two
results: 2.2 ms with a loop for each that is not inlined; in pieces of 2, 4, 8 and 32 vectors 0.25, 0.22, 0.35 and 0.41 ms. Of
complex numbers the call takes 1.1 and 0.37 ms, the derivative 4.8 and 0.9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import IndexVar, Read
from tc_jupyter.program.integers import index_names
from tc_jupyter.ranges import MANY, Facts, SizeExpr, constant, exactly, fact_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.infer_bound import StageBounds, SymbolicBounds, infer_symbolic, variable
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import IterVar, Split, Stage, StageGraph
from tc_jupyter.schedule.target import Target

from . import pixels
from .form import Form, formed
from .reduction import short_rows
from .streaming import lanes_of


def fuse_rows(schedule: Schedule, _: Target, facts: Facts) -> Schedule:
    """Attach every temporary to the outermost, or outermost long, loop of its last consumer, where that computes nothing twice."""
    apart = short_rows(schedule, facts)
    bounds = infer_symbolic(schedule.graph)
    for name in (name for name in reversed(schedule.stages) if name not in apart):
        stage = schedule.graph.stage(name)
        if name not in schedule.graph.outputs and stage.attach.kind == "root" and not stage.relations:
            schedule, bounds = _attached(schedule, bounds, stage)
    return schedule


def _attached(schedule: Schedule, bounds: SymbolicBounds, stage: Stage) -> tuple[Schedule, SymbolicBounds]:
    """The schedule with a temporary attached, or as it was, and its bounds."""
    graph = schedule.graph
    family = graph.stages_on(stage.target)
    users = graph.consumers(family[0].name)
    if not users or family[0].name != stage.name:
        return schedule, bounds
    place = graph.runs_in(users[-1].name)
    loops = graph.stage(place).leaves
    if graph.stage(place).relations or len(loops) < 2 or graph.stage(place).kind(loops[0]) != "output":
        return schedule, bounds
    # the steps of a block are loops of several statements, and what they read is made before
    if graph.stage(place).statement.block and any(user.name != place for user in users):
        return schedule, bounds
    # the elements of a single row are tasks if each is a sum of its own
    sums = bool(stage.statement.reduction_indices and _long_loops(stage))
    first_long = _long_loops(graph.stage(place))[:1] if sums else ()
    for loop in dict.fromkeys((*first_long, loops[0])):
        try:
            moved = schedule.compute_at(stage.name, place, loop)
        except CompileError:
            continue
        found = bounds.moved(moved.graph, stage.name)
        asked = [found[member.name] for member in family]
        if any(each.exact and _computed_once(each, variable(place, loop), 1) for each in asked):
            return moved, found
    return schedule, bounds


def _long_loops(stage: Stage) -> tuple[str, ...]:
    """The output loops of more than one iteration."""
    single = {root.name for root in stage.roots if root.extent == constant(1)}
    return tuple(leaf for leaf in stage.leaves if stage.kind(leaf) == "output" and leaf not in single)


def _computed_once(bounds: StageBounds, loop: str, step: int) -> bool:
    """Whether the iterations of `loop` ask for disjoint parts of the tensor: a dimension follows the loop, `step` elements each."""
    return any(_follows(low, loop, step) and _is_within(extent, step) for low, extent in bounds.box)


def _follows(low: SizeExpr, loop: str, step: int) -> bool:
    """Whether a position moves by `step` with every iteration of `loop`."""
    return low.substitute({loop: constant(1)}) - low.substitute({loop: constant(0)}) == constant(step)


def _is_within(extent: SizeExpr, step: int) -> bool:
    """Whether so many elements are all that large sizes ask for in a first iteration."""
    first = fact_of(extent, dict.fromkeys(extent.names, exactly(MANY)) | dict.fromkeys(extent.indices, exactly(0)))
    return first is not None and first.typical <= step


def fuse_pieces(schedule: Schedule, target: Target, facts: Facts, apart: Collection[str]) -> Schedule:
    """Let statements on the elements of rows, which read each other's values, share one loop over pieces of a row.

    Args:
        facts: of the sizes of a call.
        apart: stages that have loops of their own.
    """
    found = {name: _elements_of(schedule, name, target, facts) for name in schedule.stages if name not in apart}
    known = {name: each for name, each in found.items() if each is not None}
    for chain in _chains(schedule.graph, known):
        if any(len(known[name].rows) == 1 or known[name].values for name in chain):
            schedule = _in_pieces(schedule, {name: known[name] for name in chain}, target)
    return schedule


@dataclass(frozen=True, slots=True)
class _Elements:
    """The indices of the elements of a stage, the last one along a row, and of the few values of each."""

    rows: tuple[IterVar, ...]
    values: tuple[str, ...]

    @property
    def row(self) -> str:
        """The index along a row."""
        return self.rows[-1].name

    def is_here(self, read: Read) -> bool:
        """Whether a read is of the same element."""
        rows = tuple(IndexVar(each.name) for each in self.rows)
        names = {each.name for each in self.rows}
        return read.indices[: len(rows)] == rows and not any(
            names & index_names(at) for at in read.indices[len(rows) :]
        )


def _elements_of(schedule: Schedule, name: str, target: Target, facts: Facts) -> _Elements | None:
    """The elements of a stage at root that gives each of them its value, or its few values, once; `None` for other stages."""
    graph, stage = schedule.graph, schedule.graph.stage(name)
    statement = stage.statement
    hosts = any(each.attach.stage == name for each in graph.stages)
    free = stage.attach.kind == "root" and not hosts and not stage.relations and not stage.annotations
    plain = statement.operator == "=" and not (
        statement.order or statement.block or statement.left or statement.filters
    )
    if not (free and plain and stage.roots and len(graph.stages_on(stage.target)) == 1):
        return None
    if pixels.mixes_values(schedule, stage, target, facts):
        return _Elements(stage.roots[:-1], (stage.roots[-1].name,))
    return _Elements(stage.roots, ())


def _chains(graph: StageGraph, known: Mapping[str, _Elements]) -> list[list[str]]:
    """Those that are connected by what they read of each other, in order; at least two each."""
    chains: list[list[str]] = []
    for name in known:
        joined = [chain for chain in chains if any(_reads_same(graph, known, other, name) for other in chain)]
        chains = [chain for chain in chains if chain not in joined]
        chains.append([*(each for chain in joined for each in chain), name])
    return [[name for name in known if name in chain] for chain in chains if len(chain) > 1]


def _reads_same(graph: StageGraph, known: Mapping[str, _Elements], early: str, late: str) -> bool:
    """Whether a stage over the same rows reads, of what another one makes, the same element and no other."""
    target = graph.stage(early).target
    reads = [read for read in graph.stage(late).statement.reads() if read.tensor == target]
    ranges = [[row.dom for row in known[name].rows] for name in (early, late)]
    return ranges[0] == ranges[1] and bool(reads) and all(map(known[late].is_here, reads))


def _in_pieces(schedule: Schedule, chain: Mapping[str, _Elements], target: Target) -> Schedule:
    """The stages of a chain in one loop, as far as their order allows; as it was if none can be computed there.

    What stands between the first one that is kept and another one that reads it is kept, too, where that lets more share the loop.
    """
    kept = _kept(schedule.graph, [*chain])
    found, count = _together(schedule, chain, kept, target)
    if count < len(chain):
        names = [*chain]
        other, more = _together(schedule, chain, names[names.index(kept[0]) :], target)
        found, count = (other, more) if more > count else (found, count)
    return found if count > 1 else schedule


def _together(
    schedule: Schedule, chain: Mapping[str, _Elements], kept: list[str], target: Target
) -> tuple[Schedule, int]:
    """The stages of a chain in the loop of the first one that is kept, and how many share it."""
    graph, (first, *others) = schedule.graph, kept
    lanes = max(1, min(lanes_of(schedule, graph.stage(name), target) for name in chain))
    found = schedule.split(first, chain[first].row, tuning.ABREAST * lanes)
    place = f"{chain[first].row}.outer"
    inside = [first]
    for name in others:
        try:
            found = found.split(name, chain[name].row, tuning.ABREAST * lanes).compute_with(name, first, place)
            inside.append(name)
        except CompileError:
            continue
    for name in reversed([each for each in chain if each not in kept]):
        try:
            found = found.compute_at(name, first, place)
            inside.append(name)
        except CompileError:
            continue
    for name in inside:
        found = _with_values(found, name, chain[name], lanes, name in kept)
    return found.parallel(first, *(row.name for row in chain[first].rows[:-1]), place), len(inside)


def _with_values(schedule: Schedule, name: str, elements: _Elements, lanes: int, whole: bool) -> Schedule:
    """The values of an element one after the other, in vectors over elements; those of a piece that is kept in planes."""
    rank, values = len(elements.rows), elements.values
    if not values:
        return schedule
    if not whole:
        schedule = schedule.storage(name, layout=tuple((place, 0) for place in (rank, *range(rank))))
    inner = f"{elements.row}.inner" if whole else elements.row
    return formed(schedule, name, Form({inner: lanes}, (), (f"{inner}.outer",), values, f"{inner}.inner"))


def _kept(graph: StageGraph, chain: list[str]) -> list[str]:
    """The stages of a chain that write whole rows: results, what is read elsewhere, and what reads them: it runs behind."""
    kept: list[str] = []
    for name in chain:
        asked = name in graph.outputs or any(user.name not in chain for user in graph.consumers(name))
        if asked or any(user.name == name for other in kept for user in graph.consumers(other)):
            kept.append(name)
    return kept or chain[-1:]


def fuse_blocks(schedule: Schedule, target: Target, facts: Facts) -> Schedule:
    """Compute large temporaries, and what stands between, for a block of rows in the task that alone uses these.

    To the tasks of each nest, from the last one back, those are attached that it alone uses, if one of them is large. Nothing is
    computed twice, what is inside them included: panels that tasks of columns pack for all rows stay with these.
    """
    if not any(_is_large(schedule, name, target, facts) for name in schedule.stages):
        return schedule
    for place in reversed(schedule.stages):
        steps = _blocks(schedule.graph.stage(place), target, facts)
        if not steps or schedule.graph.stage(place).attach.kind != "root":
            continue
        moved, bounds, pays = schedule, infer_symbolic(schedule.graph), False
        block = schedule.graph.stage(place).statement.block
        for name in reversed(schedule.stages[: schedule.graph.position(place)]):
            if name in schedule.graph.outputs or not _is_used_inside(moved.graph, name, place):
                continue
            if block and schedule.graph.stage(name).statement.block != block:
                continue  # of all steps, what they read is more than a cache holds
            try:
                tried = moved.compute_at(name, place, next(reversed(steps)))
            except CompileError:
                continue
            found = bounds.moved(tried.graph, name)
            family = [each for each in schedule.stages if name in (each, *dict(schedule.graph.attach_path(each)))]
            loops = [(variable(place, loop), step) for loop, step in steps.items()]
            if all(_computed_once(found[each], *loop) for each in family for loop in loops):
                in_rows = not _follows(found[name].box[-1][0], *loops[-1])
                pays |= in_rows and _is_large(schedule, name, target, facts)
                moved, bounds = tried, found
        schedule = moved if pays else schedule
    return schedule


def _is_large(schedule: Schedule, name: str, target: Target, facts: Facts) -> bool:
    """Whether a stage makes a temporary that the second cache does not hold."""
    stage = schedule.graph.stage(name)
    if name in schedule.graph.outputs or stage.attach.kind != "root":
        return False
    lengths = [fact_of(root.extent, facts) for root in stage.roots if root.kind == "output"]
    nbytes = schedule.graph.program.tensor(stage.target).dtype.bytes
    return nbytes * prod(MANY if each is None else each.typical for each in lengths) > target.l2_bytes


def _is_used_inside(graph: StageGraph, name: str, place: str) -> bool:
    """Whether a stage has loops of its own, and all that read it belong to the nest of `place`."""
    nests = [{user.name, *dict(graph.attach_path(user.name))} for user in graph.consumers(name)]
    return graph.stage(name).attach.kind == "root" and all(place in each for each in nests)


def _blocks(stage: Stage, target: Target, facts: Facts) -> dict[str, int]:
    """The loops that are tasks, with the elements of each, if an inner one is a block and all together occupy the threads."""
    splits = {each.outer: each for each in stage.relations if isinstance(each, Split)}
    steps: dict[str, int] = {}
    tasks = 1
    for leaf in stage.leaves:
        if stage.annotation(leaf) != "parallel":
            break
        split = splits.get(leaf)
        step = 1 if split is None else split.factor
        if step is None:
            return {}
        steps[leaf] = step
        root = next((each for each in stage.roots if each.name == (leaf if split is None else split.parent)), None)
        length = None if root is None else fact_of(root.extent, facts)
        tasks *= -(-(1 if length is None else length.least) // step)
    return steps if steps and max(steps.values()) > 1 and tasks >= target.threads else {}
