"""Statements whose points have an order: its loops stay as they are, tasks and vectors run over the indices that nothing moves in.

    for rows that do not touch each other:   parallel
      for steps:                             one after the other
        for neighbours in memory:            vectors

Where every index moves, those without an order are inside of the steps, in vectors and threads. Two indices with an order are gone
through by wavefronts. On a CPU these are tiles, unless a row has vectors, which are as fast as memory. On a GPU they are points, in
the threads of one block.

Worked example: `Y(c, i) = X(c, i) - a*(Y(c, i-1) else 0) along i`: `c` is outside, in tasks; `i` is inside.
"""

from __future__ import annotations

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Call, IndexVar, walk
from tc_jupyter.ranges import Facts, goes_over_lanes
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.orders import moving
from tc_jupyter.schedule.running import running_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import GRID_AXES, Stage, StageGraph
from tc_jupyter.schedule.target import Target

from . import contraction
from .stages import fused


def is_ordered(stage: Stage) -> bool:
    """Whether the points of a stage have an order."""
    return bool(stage.statement.order)


def in_blocks(schedule: Schedule) -> Schedule:
    """Running operations of one index on a GPU in blocks that run at one time, each in a thread."""
    for name in schedule.stages:
        stage = schedule.graph.stage(name)
        alone = schedule.graph.is_free(name) and not stage.statement.block  # whose steps stay in order
        found = running_of(schedule.graph, stage) if alone else None
        if found is not None and len(stage.roots) == 1:
            axis = found.axis.name
            schedule = schedule.prefix(name, tuning.THREADS).split(name, axis, tuning.THREADS)
            schedule = schedule.split(name, f"{axis}.outer", tuning.ORDERED_THREADS)
            schedule = schedule.bind(name, f"{axis}.outer.outer", "blockIdx.x")
            schedule = schedule.bind(name, f"{axis}.outer.inner", "threadIdx.x")
    return schedule


def default(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    """The loops of a statement with an order, for tiles by what is known of sizes; `None` for others."""
    stage = schedule.graph.stage(name)
    if not is_ordered(stage) or stage.attach.kind != "root":
        return None
    if stage.statement.block:
        return _block(schedule, stage, target, facts)
    free = [root.name for root in stage.roots if root.kind == "output" and root.name not in moving(stage)]
    rest = [leaf for leaf in stage.leaves if leaf not in free]
    if not free:
        return _moving(schedule, stage, target)
    return _gpu(schedule, name, free, rest) if target.kind == "cuda" else _cpu(schedule, stage, free, rest, target)


def _moving(schedule: Schedule, stage: Stage, target: Target) -> Schedule:
    """The loops of a statement that reads at other values of every index."""
    steps = [name for name, _ in stage.statement.order]
    beside = [root.name for root in stage.roots if root.name not in steps]
    if stage.statement.left or any(root.kind != "output" for root in stage.roots):
        return schedule
    try:
        if beside:
            return _beside(schedule, stage, steps, beside, target)
        if len(steps) == 2:
            if target.kind == "cuda":
                return _fronts(schedule, stage, steps)
            return schedule if _has_vectors(schedule.graph, stage) else _tiles(schedule, stage.name, *steps)
    except CompileError:
        pass  # an element of a later column is read, which a later tile, or none of the fronts before, has made
    return schedule


def _beside(schedule: Schedule, stage: Stage, steps: list[str], beside: list[str], target: Target) -> Schedule:
    """Inside of the steps, whatever has no order is done at one time."""
    name, last = stage.name, stage.statement.output_indices[-1].name
    if target.kind == "cuda":
        return _of_one_block(schedule, name, beside)
    if last not in beside:
        return schedule
    schedule = schedule.split(name, last, _lanes(schedule, stage, target) * tuning.ABREAST)
    outer = [*(leaf for leaf in beside if leaf != last), f"{last}.outer"]
    schedule = schedule.reorder(name, *steps, *outer, f"{last}.inner").vectorize(name, f"{last}.inner")
    return schedule.parallel(name, outer[0])


def _of_one_block(schedule: Schedule, name: str, axes: list[str]) -> Schedule:
    """Axes inside of steps in the threads of one block, which wait for each other after every step."""
    schedule, axes = fused(schedule, name, axes)
    schedule = schedule.split(name, axes[0], tuning.THREADS)
    return schedule.bind(name, f"{axes[0]}.inner", "threadIdx.x")


def _tiles(schedule: Schedule, name: str, outer: str, inner: str) -> Schedule:
    """Tiles on anti-diagonals as tasks."""
    schedule = schedule.tile(name, outer, inner, tuning.EDGE, tuning.EDGE).skew(
        name, f"{outer}.outer", f"{inner}.outer"
    )
    return schedule.parallel(name, f"{outer}.outer.place")


def _has_vectors(graph: StageGraph, stage: Stage) -> bool:
    """Whether a row is a recurrence that goes from lane to lane (`codegen.llvm.carried`), or reads nothing of itself."""
    if goes_over_lanes(graph.program, stage.statement) is not None:
        return True
    outputs = stage.statement.output_indices
    row = [IndexVar(index.name) for index in outputs[:-1]]
    alone = not any(list(read.indices[:-1]) == row for read in stage.statement.self_reads)
    return stage.statement.order[-1][0] == outputs[-1].name and alone


def _fronts(schedule: Schedule, stage: Stage, steps: list[str]) -> Schedule:
    """Wavefronts of points, the steepest of which are tried last."""
    for factor in range(1, tuning.VERSIONS):
        try:
            skewed = schedule.skew(stage.name, steps[0], steps[1], factor)
            return _of_one_block(skewed, stage.name, [f"{steps[0]}.place"])
        except CompileError:
            continue
    return schedule


def _block(schedule: Schedule, stage: Stage, target: Target, facts: Facts) -> Schedule:
    """The loops of a block: tasks over the indices around that of the step, vectors over neighbours inside of it."""
    members = [each for each in schedule.graph.stages if each.statement.block == stage.statement.block]
    step = stage.statement.order[0][0]
    outer = stage.leaves[: stage.leaves.index(step)]
    if target.kind == "cuda":
        for leaf, axis in zip(outer, GRID_AXES, strict=False):
            schedule = schedule.bind(stage.name, leaf, axis)
        for each in members:
            schedule = _in_threads(schedule, each, {*outer, *(name for name, _ in stage.statement.steps)})
        return schedule
    for each in members:
        schedule = contraction.in_steps(schedule, each.name, target, facts)
    leaves = schedule.graph.stage(stage.name).leaves
    outer = leaves[: leaves.index(step)]
    schedule = schedule.parallel(stage.name, *outer)
    for each in members:
        schedule = _in_vectors(schedule, schedule.graph.stage(each.name), target)
        schedule = schedule if outer else _in_tasks(schedule, each.name, step)
    return schedule


def _in_tasks(schedule: Schedule, name: str, step: str) -> Schedule:
    """Tasks over the first index inside of the step, of a statement on single elements, if the step is the outermost loop."""
    stage = schedule.graph.stage(name)
    if stage.leaves[:1] != (step,) or len(stage.leaves) == 1 or stage.statement.left:
        return schedule
    inside, steps = stage.leaves[1], {each for each, _ in (*stage.statement.order, *stage.statement.steps)}
    if stage.kind(inside) != "output" or inside in steps or stage.annotation(inside):
        return schedule
    return schedule.parallel(name, inside)


def _in_threads(schedule: Schedule, stage: Stage, shared: set[str]) -> Schedule:
    """The threads of one block over the elements of a step; between statements they wait for each other."""
    own = {name for name, _ in stage.statement.order}
    free = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output" and leaf not in shared | own]
    if not free or stage.statement.left or own - shared:
        return schedule
    schedule, free = fused(schedule, stage.name, free)
    schedule = schedule.split(stage.name, free[0], tuning.THREADS)
    return schedule.bind(stage.name, f"{free[0]}.inner", "threadIdx.x")


def _in_vectors(schedule: Schedule, stage: Stage, target: Target) -> Schedule:
    """Vectors over the last index of a statement of a block, if it is on single elements and that index is no step."""
    statement, last = stage.statement, stage.statement.output_indices[-1].name
    if statement.left or statement.reduction_indices or last in {name for name, _ in statement.order}:
        return schedule
    if last not in stage.leaves:
        return schedule  # of a tile
    schedule = schedule.split(stage.name, last, _lanes(schedule, stage, target))
    return schedule.vectorize(stage.name, f"{last}.inner")


def _lanes(schedule: Schedule, stage: Stage, target: Target) -> int:
    return max(1, target.vector_bits // schedule.graph.program.tensor(stage.target).dtype.compute.bits)


def _cpu(schedule: Schedule, stage: Stage, free: list[str], rest: list[str], target: Target) -> Schedule:
    name, last = stage.name, stage.statement.output_indices[-1].name
    lanes = _lanes(schedule, stage, target)
    if last not in free or stage.statement.reduction_indices:
        schedule = schedule.reorder(name, *free, *rest) if rest else schedule
        schedule = schedule.parallel(name, *(free[:-1] or free))
        return schedule
    schedule = schedule.split(name, last, tuning.ROW_VECTORS * lanes if _is_light(stage) else lanes * tuning.ABREAST)
    outer = [*(leaf for leaf in free if leaf != last), f"{last}.outer"]
    schedule = schedule.reorder(name, *outer, *rest, f"{last}.inner")
    schedule = schedule.parallel(name, *outer)
    return schedule.vectorize(name, f"{last}.inner")


def _is_light(stage: Stage) -> bool:
    """Whether memory takes longer than the values, so that whole rows are taken, one behind the other."""
    return not any(isinstance(node, Call) for node in walk(stage.statement.value))


def _gpu(schedule: Schedule, name: str, free: list[str], rest: list[str]) -> Schedule:
    schedule = schedule.reorder(name, *free, *rest) if rest else schedule
    schedule, free = fused(schedule, name, free)
    schedule = schedule.split(name, free[0], tuning.ORDERED_THREADS)
    return schedule.bind(name, f"{free[0]}.outer", "blockIdx.x").bind(name, f"{free[0]}.inner", "threadIdx.x")
