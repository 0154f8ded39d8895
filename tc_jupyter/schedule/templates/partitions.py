"""Boxes of one tensor that are parts of the same rows (an inner region and its border): one pass over the memory on a CPU.

The first and the last elements of many rows, written on their own, load and store a whole cache line for each element, a second
time. Here the boxes share all loops but the innermost, so that a row is written from end to end while it is in cache.
"""

from __future__ import annotations

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage


def fuse_boxes(schedule: Schedule, *_: object) -> Schedule:
    """Let every box of a tensor share the loops over its rows with the first box that has the same rows."""
    for name in schedule.stages:
        late = schedule.graph.stage(name)
        for other in schedule.stages[: schedule.stages.index(name)]:
            early = schedule.graph.stage(other)
            if _same_rows(early, late):
                schedule = _shared(schedule, late, early)
                break
    return schedule


def _same_rows(early: Stage, late: Stage) -> bool:
    if early.target != late.target or any(stage.attach.kind != "root" for stage in (early, late)):
        return False
    if any(stage.statement.operator != "=" for stage in (early, late)):
        return False
    rows, others = ([root.dom for root in stage.roots[:-1]] for stage in (early, late))
    return bool(rows) and rows == others


def _shared(schedule: Schedule, late: Stage, early: Stage) -> Schedule:
    """All loops over rows shared; none where the two do not have the same loops, or an order would change."""
    loops = [root.name for root in early.roots[:-1]]
    if list(early.leaves[: len(loops)]) != loops:
        return schedule
    try:
        return schedule.compute_with(late.name, early.name, loops[-1])
    except CompileError:
        return schedule
