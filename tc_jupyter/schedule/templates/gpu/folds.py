"""Folds, whose combining function somebody has written, on a GPU: the threads of a warp share the rows of a block.

    for n.outer             # blockIdx.x: some rows
      for t < 32            # threadIdx.x: every 32nd element of each of them
        for n.inner: L.rf[t, n.inner] = fold over m.outer of X[n, 32*m.outer + t]      # in shared memory
      for n.inner           # threadIdx.x: the partial results of a row, in order
        L[n] = fold over t of L.rf[t, n.inner]

No instruction combines such values across threads. Few results of long reductions are made in parts of fixed length, whatever the
device is, so results are reproducible. Folds of columns are left to the general form, in which every column has a thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.ranges import facts_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.target import WARP, Target
from tc_jupyter.schedule.templates.folds import is_fold
from tc_jupyter.schedule.templates.reduction import is_across, is_to_few, partial_results
from tc_jupyter.schedule.templates.stages import added, fused

from .limits import fits_shared
from .reduction import lies_across, reads_in_a_row


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule of a fold of rows, or to few results; `None` for other statements, and where parts do not fit."""
    del target
    stage = schedule.graph.stage(name)
    if not is_fold(stage) or not schedule.graph.is_free(name) or not stage.statement.reduction_indices:
        return None
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    along = stage.statement.reduction_indices[-1].name
    if outputs and not (is_to_few(stage, facts_of(sizes)) and not is_across(stage)):
        in_rows = reads_in_a_row(stage, along) and not lies_across(stage)
        found = _in_warps(schedule, name, along, outputs) if in_rows else None
    else:
        schedule, parts = partial_results(schedule, name)
        leaves = schedule.leaves(parts)
        rows = [leaf for leaf in leaves if schedule.graph.stage(parts).kind(leaf) == "output"]
        found = _in_warps(schedule, parts, leaves[-1], rows)
    return found if found is not None and fits_shared(found) else None


def _in_warps(schedule: Schedule, name: str, along: str, rows: list[str]) -> Schedule:
    """Some rows for each block, whose threads share them one after the other."""
    schedule = schedule.split(name, along, WARP)
    schedule, own = added(schedule, schedule.rfactor(name, f"{along}.inner"))
    lane = f"{along}.inner"
    inside = [leaf for leaf in schedule.leaves(own) if leaf not in (lane, *rows)]
    schedule = schedule.reorder(own, lane, *rows, *inside)
    *outer, row = rows
    if outer:
        schedule, (block,) = fused(schedule, name, outer)
        schedule = schedule.bind(name, block, "blockIdx.y")
    schedule = schedule.split(name, row, tuning.WARPS)
    schedule = schedule.bind(name, f"{row}.outer", "blockIdx.x").bind(name, f"{row}.inner", "threadIdx.x")
    schedule = schedule.compute_at(own, name, f"{row}.outer").storage(own, "shared")
    return schedule.bind(own, lane, "threadIdx.x")


__all__ = ["default"]
