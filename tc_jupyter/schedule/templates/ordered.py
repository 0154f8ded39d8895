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
from tc_jupyter.schedule.orders import moving
from tc_jupyter.schedule.running import running_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import GRID_AXES, Stage, StageGraph
from tc_jupyter.schedule.target import Target

from . import contraction, general


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
            schedule = schedule.prefix(name, THREAD_BLOCK).split(name, axis, THREAD_BLOCK)
            schedule = schedule.split(name, f"{axis}.outer", THREADS)
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
    schedule = schedule.split(name, last, _lanes(schedule, stage, target) * VECTORS)
    outer = [*(leaf for leaf in beside if leaf != last), f"{last}.outer"]
    schedule = schedule.reorder(name, *steps, *outer, f"{last}.inner").vectorize(name, f"{last}.inner")
    return schedule.parallel(name, outer[0])


def _of_one_block(schedule: Schedule, name: str, axes: list[str]) -> Schedule:
    """Axes inside of steps in the threads of one block, which wait for each other after every step."""
    while len(axes) > 1:
        schedule = schedule.fuse(name, axes[0], axes[1])
        axes = [f"{axes[0]}.{axes[1]}.fused", *axes[2:]]
    schedule = schedule.split(name, axes[0], general.THREADS)
    return schedule.bind(name, f"{axes[0]}.inner", "threadIdx.x")


def _tiles(schedule: Schedule, name: str, outer: str, inner: str) -> Schedule:
    """Tiles on anti-diagonals as tasks."""
    schedule = schedule.tile(name, outer, inner, TILE, TILE).skew(name, f"{outer}.outer", f"{inner}.outer")
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
    for factor in range(1, STEEPEST + 1):
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
    for leaf in outer:
        schedule = schedule.parallel(stage.name, leaf)
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
    while len(free) > 1:
        schedule = schedule.fuse(stage.name, free[0], free[1])
        free = [f"{free[0]}.{free[1]}.fused", *free[2:]]
    schedule = schedule.split(stage.name, free[0], general.THREADS)
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
        for leaf in free[:-1] or free:
            schedule = schedule.parallel(name, leaf)
        return schedule
    schedule = schedule.split(name, last, ROW * lanes if _is_light(stage) else lanes * VECTORS)
    outer = [*(leaf for leaf in free if leaf != last), f"{last}.outer"]
    schedule = schedule.reorder(name, *outer, *rest, f"{last}.inner")
    for leaf in outer:
        schedule = schedule.parallel(name, leaf)
    return schedule.vectorize(name, f"{last}.inner")


def _is_light(stage: Stage) -> bool:
    """Whether memory takes longer than the values, so that whole rows are taken, one behind the other."""
    return not any(isinstance(node, Call) for node in walk(stage.statement.value))


ROW = 512
"""Vectors of a row that one task takes, where values are little work: of `float` 32 kB. Measured with AVX-512, one thread,
running sums over columns, over the time of a copy: 1024 x 1024 by 64 columns 3.2, by 256 1.8, by 1024 and more 1.3; 4096 x 8192
by 64 2.8, by 1024 1.6, by 4096 1.4, by 8192 0.87. What is read next lies in another page of memory in all but the last."""
TILE = 64
"""Rows and columns of a tile on an anti-diagonal. Measured with AVX-512, 1024 x 1024 `double`, a root per element, least time of 9
on a busy machine, over the loops as they are written, one thread and two: 64 x 64 0.71 and 0.39, 32 x 256 0.98 and 0.52, 64 x 256
0.96 and 0.52. Edit distances of 2048, whose rows have vectors: 128 x 1024 1.04 and 1.06."""
STEEPEST = 3
"""Columns by which a front moves from row to row, at most."""
VECTORS = 4
"""Vectors of neighbours that go through the steps together."""
THREAD_BLOCK = 256
"""Elements of a block on a GPU, which one thread goes through."""
THREADS = 64
"""Threads of a block, each of which goes through the steps of a row of its own."""


def _gpu(schedule: Schedule, name: str, free: list[str], rest: list[str]) -> Schedule:
    schedule = schedule.reorder(name, *free, *rest) if rest else schedule
    while len(free) > 1:
        schedule = schedule.fuse(name, free[0], free[1])
        free = [f"{free[0]}.{free[1]}.fused", *free[2:]]
    schedule = schedule.split(name, free[0], THREADS)
    return schedule.bind(name, f"{free[0]}.outer", "blockIdx.x").bind(name, f"{free[0]}.inner", "threadIdx.x")
