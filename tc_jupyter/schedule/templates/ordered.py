"""Statements whose points have an order: its loops stay as they are, tasks and vectors run over the indices that nothing moves in.

    for rows that do not touch each other:   parallel
      for steps:                             one after the other
        for neighbours in memory:            vectors

Worked example: `Y(c, i) = X(c, i) - a*(Y(c, i-1) else 0) along i`: `c` is outside, in tasks; `i` is inside.
"""

from __future__ import annotations

from tc_jupyter.program import Call, walk
from tc_jupyter.schedule.orders import moving
from tc_jupyter.schedule.running import running_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import GRID_AXES, Stage
from tc_jupyter.schedule.target import Target

from . import general


def is_ordered(stage: Stage) -> bool:
    """Whether the points of a stage have an order."""
    return bool(stage.statement.order)


def in_blocks(schedule: Schedule) -> Schedule:
    """Running operations of one index on a GPU in blocks that run at one time, each in a thread."""
    for name in schedule.stages:
        found = running_of(schedule.graph, schedule.graph.stage(name)) if schedule.graph.is_free(name) else None
        if found is not None and len(schedule.graph.stage(name).roots) == 1:
            axis = found.axis.name
            schedule = schedule.prefix(name, THREAD_BLOCK).split(name, axis, THREAD_BLOCK)
            schedule = schedule.split(name, f"{axis}.outer", THREADS)
            schedule = schedule.bind(name, f"{axis}.outer.outer", "blockIdx.x")
            schedule = schedule.bind(name, f"{axis}.outer.inner", "threadIdx.x")
    return schedule


def default(schedule: Schedule, name: str, target: Target) -> Schedule | None:
    """The loops of a statement with an order; `None` for others."""
    stage = schedule.graph.stage(name)
    if not is_ordered(stage) or stage.attach.kind != "root":
        return None
    if stage.statement.block:
        return _block(schedule, stage, target)
    free = [root.name for root in stage.roots if root.kind == "output" and root.name not in moving(stage)]
    rest = [leaf for leaf in stage.leaves if leaf not in free]
    if not free:
        return schedule
    return _gpu(schedule, name, free, rest) if target.kind == "cuda" else _cpu(schedule, stage, free, rest, target)


def _block(schedule: Schedule, stage: Stage, target: Target) -> Schedule:
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
    for leaf in outer:
        schedule = schedule.parallel(stage.name, leaf)
    for each in members:
        schedule = _in_vectors(schedule, each, target)
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
