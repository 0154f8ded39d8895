"""Products with few rows or few columns: a warp per long row, which computes all the few results at once.

    for i                       # blockIdx.x, threadIdx.y: a row of the long operand per warp
      C.rf[8] = 0               # registers: the partial sums of each thread for all the few
      for k.outer               # threadIdx.x along k: both operands in whole sectors
        a = A(i, k)
        for j < 8: C.rf[j] += a * B(j, k)
      for j < 8: C(i, j) = sum over the threads of C.rf[j]       # shuffles

Tiles in shared memory would be nearly empty, and the long operand is read once anyway. It must lie along the sum; what lies along
its other index has a thread per element (`pointwise.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.ranges import from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import WARP, Target
from tc_jupyter.schedule.templates.contraction import epilogue_of
from tc_jupyter.schedule.templates.stages import added

from . import shared_sums, side_by_side
from .product import extent_of, roles_of
from .reduction import bind_rows


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule of a product with few rows or columns; `None` for others."""
    stage = schedule.graph.stage(name)
    roles = roles_of(stage)
    if roles is None or len(stage.statement.reduction_indices) != 1:
        return None
    lengths = {axis: extent_of(stage, axis, sizes) for axis in (roles.row, roles.column)}
    few = min(lengths, key=lambda axis: lengths[axis] or tuning.FEW + 1)
    long = roles.column if few == roles.row else roles.row
    length, operand = lengths[few], _operand(stage, long, few, roles.inner)
    if length is None or length > tuning.FEW or not operand:
        return None
    rows = shared_sums.results_of(stage, sizes) // max(1, length)
    steps = shared_sums.extents(stage, "reduction", sizes)[roles.inner]
    counts = (WARP,) if rows >= tuning.WARPS * target.multiprocessors else (WARP, tuning.THREADS)
    sums = shared_sums.Sums(rows, steps, shared_sums.bytes_of_step(stage))
    share = shared_sums.shares(sums, target, lambda count: count in counts)
    if share.length is None:
        return _scheduled(schedule, name, long, few, roles.inner, operand, max(1, length), share.threads)
    schedule, part = shared_sums.in_parts(schedule, name, roles.inner, share.length)
    inner = f"{roles.inner}.inner"
    schedule = _scheduled(schedule, part, long, few, inner, operand, max(1, length), share.threads)
    return side_by_side.summed(schedule, name, epilogue_of(schedule, name), target, sizes)


def _operand(stage: Stage, long: str, few: str, inner: str) -> str:
    """The one tensor that is read along `long`, if it lies along the sum; else empty."""
    reads = [read for read in stage.statement.reads() if read.indices]
    found = [
        read.tensor
        for read in reads
        if any(step_of(from_expr(index), long) != 0 for index in read.indices)
        and all(step_of(from_expr(index), few) == 0 for index in read.indices)
        and step_of(from_expr(read.indices[-1]), inner) == 1
    ]
    longs = [read for read in reads if any(step_of(from_expr(index), long) != 0 for index in read.indices)]
    return found[0] if len(found) == len(longs) == 1 else ""


def _scheduled(
    schedule: Schedule, name: str, long: str, few: str, inner: str, operand: str, count: int, threads: int
) -> Schedule:
    stage = schedule.graph.stage(name)
    outputs = [index.name for index in stage.statement.output_indices]
    rest = [index for index in outputs if index not in (long, few)]
    thread = f"{inner}.inner"
    schedule = schedule.split(name, inner, threads)
    schedule, partial = added(schedule, schedule.rfactor(name, thread))
    schedule = schedule.split(name, few, count)
    schedule = schedule.reorder(name, *rest, long, f"{few}.outer", f"{few}.inner", thread)
    schedule = schedule.unroll(name, f"{few}.inner").bind(name, thread, "threadIdx.x")
    schedule = bind_rows(schedule, name, [*rest, long], threads)
    schedule = schedule.compute_at(partial, name, f"{few}.outer")
    rank = schedule.graph.program.tensor(partial).rank
    schedule = schedule.storage(partial, "threads", layout=((0, threads), *((d, 0) for d in range(rank))))
    schedule = schedule.split(partial, few, count)
    leaves = (thread, *rest, long, f"{few}.outer", f"{inner}.outer", f"{few}.inner")
    schedule = schedule.reorder(partial, *leaves).unroll(partial, f"{few}.inner").bind(partial, thread, "threadIdx.x")
    schedule, copy = added(schedule, schedule.cache_read(operand, partial))
    return schedule.compute_at(copy, partial, f"{inner}.outer").storage(copy, "local")
