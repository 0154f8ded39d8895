"""Reductions to few results on a CPU: partial results of fixed chunks, made in parallel, then combined in chunk order.

The chunk size does not depend on the number of threads, so results are reproducible.
"""

from __future__ import annotations

from tc_jupyter.ranges import constant
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.target import Target

CHUNK = 64
"""Iterations of the outermost reduction loop per partial result, if there are inner ones."""
LONG_CHUNK = 1 << 13
"""Iterations per partial result of a single reduction loop: a part of a row that stays in the first cache."""


def default(schedule: Schedule, name: str, target: Target) -> Schedule | None:
    """Partial results along the outermost reduction loop of a result of one element; `None` for other statements."""
    del target
    stage = schedule.graph.stage(name)
    statement = stage.statement
    single = all(root.dom[1] - root.dom[0] == constant(1) for root in stage.roots if root.kind == "output")
    if not single or not statement.reduction_indices or statement.combine is not None:
        return None
    if not statement.initialize and not statement.accumulate:
        return None
    first = statement.reduction_indices[0].name
    chunk = CHUNK if len(statement.reduction_indices) > 1 else LONG_CHUNK
    schedule = schedule.split(name, first, chunk).rfactor(name, f"{first}.outer")
    partial = next(stage for stage in reversed(schedule.stages) if stage.startswith(f"{name}.rf"))
    outer = f"{first}.outer"
    inside = [leaf for leaf in schedule.leaves(partial) if leaf != outer]
    return schedule.reorder(partial, outer, *inside).parallel(partial, outer)
