"""Whether a kernel keeps to what a block of threads has."""

from __future__ import annotations

from math import prod

from tc_jupyter.schedule.infer_bound import infer_symbolic
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.rolling import window_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.target import STATIC_SHARED_BYTES


def fits_shared(schedule: Schedule) -> bool:
    """Whether everything in shared memory has a constant size, and all of it in one kernel fits."""
    bounds = infer_symbolic(inject_inline(schedule.graph))
    used: dict[str, int] = {}
    for stage in bounds.graph.stages:
        if stage.storage.scope == "shared":
            extents = [extent.limits[1] for _, extent in bounds[stage.name].box]
            if any(extent is None for extent in extents):
                return False
            root = bounds.graph.runs_in(stage.name)
            size = bounds.graph.program.tensor(stage.target).dtype.bytes
            lengths = [extent or 0 for extent in extents]
            window = window_of(bounds, stage)
            if window is not None:
                lengths[window.dimension] = window.room
            last = stage.storage.layout[-1][0] if stage.storage.layout else len(lengths) - 1
            lengths[last] += stage.storage.pad
            used[root] = used.get(root, 0) + size * prod(lengths) * stage.storage.double
    return all(total <= STATIC_SHARED_BYTES for total in used.values())
