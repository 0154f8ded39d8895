"""Reductions: the threads of a block share the reduction loop of a result, or many blocks do.

    for k.inner < 256   # threadIdx.x
      S.rf = 0
      for k.outer: S.rf += f(256*k.outer + k.inner)
    S = sum of S.rf over the threads       # shuffles

Loops along dimensions that lie side by side in memory become one first, which is read in vectors. How many threads share a row, and
whether blocks have parts of it that a second kernel combines, says `shared_sums`. A reduction to one number has parts of fixed
length.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.program import IndexVar, walk
from tc_jupyter.ranges import constant, from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, constant_extent
from tc_jupyter.schedule.target import VECTOR_BYTES, WARP, Target
from tc_jupyter.schedule.templates.contraction import epilogue_of
from tc_jupyter.schedule.templates.stages import added, fused

from . import shared_sums, side_by_side
from .side_by_side import is_sum


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule of a reduction at root; `None` for other statements and for reductions that are not read in a row."""
    stage = schedule.graph.stage(name)
    if not is_sum(stage) or lies_across(stage):
        return side_by_side.default(schedule, name, target, sizes)
    if not stage.statement.output_indices:
        return _to_one(schedule, name)
    if not reads_in_a_row(stage, stage.statement.reduction_indices[-1].name):
        return side_by_side.default(schedule, name, target, sizes)
    rows = [root.name for root in stage.roots if root.kind == "output"]
    share, lanes = shares_of(stage, target, sizes), lanes_of(stage)
    schedule, index = in_one_loop(schedule, name)
    outer = next(leaf for leaf in schedule.leaves(name) if schedule.graph.stage(name).kind(leaf) == "reduction")
    length = share.length
    if outer != index and length is not None:  # a part is some steps of the outermost loop
        steps = shared_sums.extents(stage, "reduction", sizes)
        length = max(1, length * steps[outer] // shared_sums.steps_of(stage, sizes))
        length = length if length < steps[outer] else None
    if length is None:
        return bind_rows(across_threads(schedule, name, index, share.threads, lanes), name, rows, share.threads)
    schedule, part = shared_sums.in_parts(schedule, name, outer, length)
    index = f"{index}.inner" if outer == index else index
    schedule = across_threads(schedule, part, index, share.threads, lanes)
    schedule = bind_rows(schedule, part, [f"{outer}.outer", *rows], share.threads)
    return side_by_side.summed(schedule, name, epilogue_of(schedule, name), target, sizes)


def reads_in_a_row(stage: Stage, index: str) -> bool:
    """Whether some read is contiguous along `index`."""
    reads = [read for read in stage.statement.reads() if read.indices]
    return any(step_of(from_expr(read.indices[-1]), index) == 1 for read in reads)


def lies_across(stage: Stage) -> bool:
    """Whether something that the reduction moves along lies contiguous along the results: rows that are gathered, columns."""
    sums = {IndexVar(index.name) for index in stage.statement.reduction_indices}
    outputs = [index.name for index in stage.statement.output_indices]
    moved = [
        read for read in stage.statement.reads() if any(node in sums for index in read.indices for node in walk(index))
    ]
    return any(step_of(from_expr(read.indices[-1]), index) == 1 for read in moved for index in outputs)


def shares_of(stage: Stage, target: Target, sizes: Mapping[str, int]) -> shared_sums.Shares:
    """Threads that share a row: a warp if it is known to be short, else a block, of more threads where there are few rows."""
    root = stage.root(stage.statement.reduction_indices[-1].name)
    if not root.extent.names <= sizes.keys():
        return shared_sums.Shares(tuning.THREADS, None)
    steps = shared_sums.steps_of(stage, sizes)
    if steps <= tuning.THREADS:
        return shared_sums.Shares(WARP, None)
    sums = shared_sums.Sums(shared_sums.results_of(stage, sizes), steps, shared_sums.bytes_of_step(stage))
    return shared_sums.shares(sums, target, lambda count: count in (tuning.THREADS, tuning.BLOCKS[-1]))


def in_one_loop(schedule: Schedule, name: str) -> tuple[Schedule, str]:
    """As many of the last reduction loops as run along dimensions side by side in memory, as one; also that loop."""
    stage = schedule.graph.stage(name)
    names = [index.name for index in stage.statement.reduction_indices]
    runs = (names[first:] for first in range(len(names)) if lies_in_a_row(schedule, stage, names[first:]))
    schedule, (loop,) = fused(schedule, name, next(runs, names[-1:]))
    return schedule, loop


def lies_in_a_row(schedule: Schedule, stage: Stage, names: list[str]) -> bool:
    """Whether every access that these indices move is at all of them, as whole dimensions side by side."""
    boxes, wanted = schedule.graph.boxes, tuple(IndexVar(name) for name in names)
    ranges = [stage.root(name).dom for name in names]
    outputs = tuple(IndexVar(index.name) for index in stage.statement.output_indices)
    accesses = [(read.tensor, read.indices) for read in stage.statement.reads() if read.indices]
    for tensor, indices in (*accesses, (stage.target, outputs)):
        moved = [place for place, index in enumerate(indices) if any(node in wanted for node in walk(index))]
        if not moved:
            continue
        first, bounds = moved[0], boxes[schedule.graph.storage_name(tensor)].bounds
        whole = [bounds[place] == dom for place, dom in zip(moved[1:], ranges[1:], strict=False)]
        if indices[first : first + len(names)] != wanted or len(moved) != len(names) or not all(whole):
            return False
    return all(low == constant(0) for low, _ in ranges)


def _shareable(length: int) -> int:
    """The most threads that can share so many elements: a multiple of 32, or a power of two below."""
    return length // 32 * 32 if length >= 32 else 1 << max(0, length.bit_length() - 1)


def across_threads(schedule: Schedule, name: str, index: str, threads: int, lanes: int = 1) -> Schedule:
    """`threads` threads with partial results of the loop over `index`; every `threads`-th vector is one thread's.

    Raises:
        CompileError: TC410, the loop is too short to be shared.
    """
    stage = schedule.graph.stage(name)
    length = constant_extent(stage, index)
    threads = threads if length is None else min(threads, _shareable(length))
    others = [leaf for leaf in stage.leaves if stage.kind(leaf) == "reduction" and leaf != index]
    schedule, thread = schedule.split(name, index, threads * lanes), f"{index}.inner"
    if lanes > 1:
        schedule, thread = schedule.split(name, thread, lanes), f"{thread}.outer"
    schedule, partial = added(schedule, schedule.rfactor(name, thread))
    outputs = [leaf for leaf in schedule.leaves(name) if leaf != thread]
    schedule = schedule.reorder(name, *outputs, thread)
    schedule = schedule.bind(name, thread, "threadIdx.x").compute_at(partial, name, thread)
    along = [f"{index}.outer", *([f"{index}.inner.inner"] if lanes > 1 else [])]
    rest = [leaf for leaf in schedule.leaves(partial) if leaf not in (*others, *along)]
    schedule = schedule.reorder(partial, *rest, *others, *along).storage(partial, "local")
    return schedule.vectorize(partial, along[-1]) if lanes > 1 else schedule


def lanes_of(stage: Stage) -> int:
    """Elements of a vector along a row, if all that is read along it begins with the row, which may have any length."""
    last = IndexVar(stage.statement.reduction_indices[-1].name)
    reads = [read for read in stage.statement.reads() if any(last in walk(index) for index in read.indices)]
    plain = all(read.indices[-1] == last and not any(last in walk(i) for i in read.indices[:-1]) for read in reads)
    if not reads or not plain or constant_extent(stage, last.name) is not None:
        return 1
    return max(1, VECTOR_BYTES // max(read.dtype.bytes for read in reads))


def bind_rows(schedule: Schedule, name: str, rows: list[str], threads: int) -> Schedule:
    """One row per block, or eight rows of a warp each; loops over rows become one, the innermost of warps excepted.

    A row of a warp has the last row index in parts of eight: what is known of a part of a fused loop is too little for registers.
    """
    outer, row = (rows, "") if threads > WARP else (rows[:-1], rows[-1])
    schedule, outer = fused(schedule, name, outer)
    for leaf in outer:
        schedule = schedule.bind(name, leaf, "blockIdx.y" if row else "blockIdx.x")
    if not row:
        return schedule
    schedule = schedule.split(name, row, tuning.WARPS).bind(name, f"{row}.outer", "blockIdx.x")
    return schedule.bind(name, f"{row}.inner", "threadIdx.y")


def _to_one(schedule: Schedule, name: str) -> Schedule:
    """Partial results of chunks by blocks, combined by one block."""
    stage = schedule.graph.stage(name)
    reductions = [index.name for index in stage.statement.reduction_indices]
    lanes = lanes_of(stage)
    schedule, index = in_one_loop(schedule, name)
    if schedule.leaves(name) == (index,):
        schedule = schedule.split(name, index, tuning.PART)
        leaf, inner = f"{index}.outer", f"{index}.inner"
    else:
        leaf, inner = reductions[0], index
    schedule, partial = added(schedule, schedule.rfactor(name, leaf))
    schedule = across_threads(schedule, partial, inner, tuning.THREADS, lanes).bind(partial, leaf, "blockIdx.x")
    return across_threads(schedule, name, leaf, tuning.THREADS)
