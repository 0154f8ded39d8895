"""Statements whose points have an order: its loops stay as they are, tasks and vectors run over the indices that nothing moves in.

    for rows that do not touch each other:   parallel
      for steps:                             one after the other
        for neighbours in memory:            vectors

Where every index moves, those without an order are inside of the steps, in vectors and threads. So are the sums of a step: its
vectors lie along the results, in tiles with some rows where a product has them, or else along what is summed. Two indices with an
order are gone through by wavefronts. On a CPU these are tiles, unless a row has vectors, which are as fast as memory. On a GPU they
are points, in the threads of one block.

Worked example: `Y(c, i) = X(c, i) - a*(Y(c, i-1) else 0) along i`: `c` is outside, in tasks; `i` is inside.
"""

from __future__ import annotations

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Binary, Call, IndexVar, points_of, positions, walk
from tc_jupyter.program.integers import index_names
from tc_jupyter.ranges import Facts, exactly, goes_over_lanes
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.orders import moving
from tc_jupyter.schedule.running import running_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import GRID_AXES, Stage, StageGraph
from tc_jupyter.schedule.target import Target

from . import contraction, scatter
from .form import Form, formed
from .register_tiles import small_tile
from .stages import fused
from .streaming import is_mostly_streaming, lanes_of


def is_ordered(stage: Stage) -> bool:
    """Whether the points of a stage have an order."""
    return bool(stage.statement.order)


def in_blocks(schedule: Schedule, *_: object) -> Schedule:
    """Running operations of one index on a GPU in blocks that run at one time, each in a thread."""
    for name in schedule.stages:
        stage = schedule.graph.stage(name)
        alone = schedule.graph.is_free(name) and not stage.statement.block  # whose steps stay in order
        found = running_of(schedule.graph, stage) if alone else None
        if found is not None and len(stage.roots) == 1:
            axis = found.axis.name
            splits = {axis: tuning.THREADS, f"{axis}.outer": tuning.ORDERED_THREADS}
            bound = {f"{axis}.outer.outer": "blockIdx.x", f"{axis}.outer.inner": "threadIdx.x"}
            schedule = formed(schedule.prefix(name, tuning.THREADS), name, Form(splits, bound=bound))
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
    if target.kind == "cpu" and stage.statement.reduction_indices:
        return _reduced(schedule, stage, free, target, facts)
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
    splits = {last: _lanes(schedule, stage, target) * tuning.ABREAST}
    outer = [*(leaf for leaf in beside if leaf != last), f"{last}.outer"]
    return formed(schedule, name, Form(splits, outer[:1], (*steps, *outer), vector=f"{last}.inner"))


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


def _reduced(schedule: Schedule, stage: Stage, free: list[str], target: Target, facts: Facts) -> Schedule:
    """Sums in steps: the loops of a step have vectors, and those around the steps, or else in them, are tasks.

    Measured with AVX-512, one thread, over loops in order: 100 steps of 200 states to 200 (Viterbi) 27 ms before, 0.66 since; 20
    products of a matrix of 200 x 200 with a vector 0.82 and 0.08 ms; a triangular system of 500 0.10 and 0.023 ms, with 64 right
    sides and 100 rows 0.26 and 0.017 ms; 50 products of 32 x 32 0.38 and 0.09 ms.
    """
    name, order = stage.name, {step for step, _ in stage.statement.order}
    steps = [leaf for leaf in stage.leaves if leaf in order and leaf not in free]
    try:
        changed = _sums_in_vectors(schedule, stage, steps, free, target, facts)
    except CompileError:
        changed = schedule  # an element of the same step is read
    if changed is schedule:
        rest = [leaf for leaf in stage.leaves if leaf not in free]
        return schedule.reorder(name, *free, *rest).parallel(name, *(free[:-1] or free)) if free else schedule
    stage = changed.graph.stage(name)
    around = stage.leaves[: stage.leaves.index(steps[0])]
    inside = stage.leaves[stage.leaves.index(steps[-1]) + 1 :]
    tasks = around or [leaf for leaf in inside[:1] if stage.kind(leaf) == "output"]
    return changed.parallel(name, *tasks)


def _sums_in_vectors(
    schedule: Schedule, stage: Stage, steps: list[str], free: list[str], target: Target, facts: Facts
) -> Schedule:
    """The loops of sums with vectors along the results, or else along what is summed; as they are if there can be none.

    Args:
        free: the loops that go around the steps.
    """
    name, statement = stage.name, stage.statement
    if statement.left or statement.combine is not None or positions(statement.value):
        return schedule
    last, lanes = statement.output_indices[-1].name, lanes_of(schedule, stage, target)
    sums = [leaf for leaf in stage.leaves if stage.kind(leaf) != "output"]
    results = [leaf for leaf in stage.leaves if leaf not in (*steps, *free, *sums)]
    chosen = [leaf for leaf in results if leaf in scatter.placed(statement)]
    if chosen and not scatter.finds_points(statement, sums[-1]):
        # each point has one element: the loops over points are outside
        rest = [leaf for leaf in results if leaf not in chosen]
        return schedule.reorder(name, *free, *steps, *sums, *chosen, *rest)
    if last in (*free, *results) and _has_lanes(stage, last):
        return _tiled(schedule, stage, (free, steps, results, sums), target, facts)
    extents = {leaf: contraction.extent_of(stage, leaf, facts) for leaf in sums}
    long = [leaf for leaf, extent in extents.items() if extent is None or extent.typical >= lanes]
    along = next((leaf for leaf in reversed(long) if _has_lanes(stage, leaf)), None)
    if along is None:
        return schedule
    extent, others = extents[along], [leaf for leaf in sums if leaf != along]
    vectors = tuning.ABREAST if extent is None else min(tuning.ABREAST, -(-extent.typical // lanes))
    order = (*free, *steps, *results, *others, f"{along}.outer")
    return formed(schedule, name, Form({along: lanes * vectors}, (), order, vector=f"{along}.inner"))


def _has_lanes(stage: Stage, leaf: str) -> bool:
    """Whether neighbours along a loop lie behind each other in memory, and an equality does not leave one of them."""
    conditions, _ = points_of(stage.statement.value, stage.statement.operator)
    single = any(isinstance(each, Binary) and each.op == "==" and leaf in index_names(each) for each in conditions)
    return not single and is_mostly_streaming(stage, leaf)


def _tiled(schedule: Schedule, stage: Stage, loops: tuple[list[str], ...], target: Target, facts: Facts) -> Schedule:
    """Sums in register tiles along the results, with some rows if these read the same columns.

    Args:
        loops: those around the steps, the steps, those of other results, and those of the sums.
    """
    name, last = stage.name, stage.statement.output_indices[-1].name
    free, steps, results, sums = loops
    roles = contraction.roles_in_steps(stage)
    row = roles.row if roles is not None and roles.row in (*free, *results) else None
    unknown = exactly(tuning.TOLD_APART)
    rows = exactly(1) if row is None else contraction.extent_of(stage, row, facts) or unknown
    columns = contraction.extent_of(stage, last, facts) or unknown
    tile = small_tile(target, target.vector_bits // lanes_of(schedule, stage, target), rows, columns)
    splits = {last: tile.columns} | ({} if row is None else {row: tile.rows})
    unrolled = [] if row is None else [f"{row}.inner"]
    free, results = ([f"{leaf}.outer" if leaf in (row, last) else leaf for leaf in each] for each in (free, results))
    return formed(schedule, name, Form(splits, (), (*free, *steps, *results, *sums), unrolled, f"{last}.inner"))


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
        schedule = _in_vectors(schedule, schedule.graph.stage(each.name), step, target, facts)
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


def _in_vectors(schedule: Schedule, stage: Stage, step: str, target: Target, facts: Facts) -> Schedule:
    """Vectors over the last index of a statement of a block, or over what it sums, if it is on single elements."""
    statement, last = stage.statement, stage.statement.output_indices[-1].name
    if statement.left or stage.relations:
        return schedule  # as it is put elsewhere, or of a tile
    if statement.reduction_indices:
        around = [*stage.leaves[: stage.leaves.index(step) + 1], *(name for name, _ in statement.order)]
        try:
            return _sums_in_vectors(schedule, stage, list(dict.fromkeys(around)), [], target, facts)
        except CompileError:
            return schedule  # an element of the same step is read
    if last in {name for name, _ in statement.order}:
        return schedule
    schedule = schedule.split(stage.name, last, _lanes(schedule, stage, target))
    return schedule.vectorize(stage.name, f"{last}.inner")


def _lanes(schedule: Schedule, stage: Stage, target: Target) -> int:
    return max(1, target.vector_bits // schedule.graph.program.tensor(stage.target).dtype.compute.bits)


def _cpu(schedule: Schedule, stage: Stage, free: list[str], rest: list[str], target: Target) -> Schedule:
    name, last = stage.name, stage.statement.output_indices[-1].name
    lanes = _lanes(schedule, stage, target)
    if last not in free:
        return formed(schedule, name, Form(tasks=free[:-1] or free, order=(*free, *rest)))
    # where no function is called memory takes longer than the values, so whole rows are taken, one behind the other
    slow = any(isinstance(node, Call) for node in walk(stage.statement.value))
    splits = {last: lanes * (tuning.ABREAST if slow else tuning.ROW_VECTORS)}
    outer = [*(leaf for leaf in free if leaf != last), f"{last}.outer"]
    return formed(schedule, name, Form(splits, outer, rest, vector=f"{last}.inner"))


def _gpu(schedule: Schedule, name: str, free: list[str], rest: list[str]) -> Schedule:
    schedule = schedule.reorder(name, *free, *rest) if rest else schedule
    schedule, free = fused(schedule, name, free)
    schedule = schedule.split(name, free[0], tuning.ORDERED_THREADS)
    return schedule.bind(name, f"{free[0]}.outer", "blockIdx.x").bind(name, f"{free[0]}.inner", "threadIdx.x")
