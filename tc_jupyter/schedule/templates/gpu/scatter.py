"""Statements whose points say which element they belong to, on a GPU: histograms, and left sides with `=`.

    for i.outer             # blockIdx.x: parts of the points
      for t < 32            # threadIdx.x: a histogram of its own in shared memory, one bank for each thread
        H.rf.rf[.., t] = 0
        for i: H.rf.rf[X(i), t] += 1
      for at: H.rf[i.outer, at] = sum of H.rf.rf[at, t]
    for at: H[at] = sum of H.rf[i.outer, at]        # the second kernel

No two threads combine into one element, and the parts do not depend on the device: results are reproducible. With `=` each point
has an element of its own, so points are threads. Targets that do not fit are left to the other templates, where every element looks
for its points.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.program import keeps
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import GRID_AXES, Stage
from tc_jupyter.schedule.target import WARP, Target
from tc_jupyter.schedule.templates.scatter import asked, elements_of, placed, placed_by_data
from tc_jupyter.schedule.templates.stages import added, fused


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule of such a statement; `None` for others, and for targets that are large or not known."""
    del sizes
    stage = schedule.graph.stage(name)
    chosen = placed(stage.statement)
    if not chosen or not schedule.graph.is_free(name):
        return None
    points = [index.name for index in stage.statement.reduction_indices]
    if keeps(stage.statement):
        return _points_as_threads(schedule, stage, points)
    elements = elements_of(stage)
    bytes_each = schedule.graph.program.tensor(stage.target).dtype.compute.bytes
    fits = elements is not None and 0 < elements * bytes_each * WARP <= target.shared_bytes
    if not fits or asked(stage.statement) or not placed_by_data(stage.statement) or not stage.statement.initialize:
        return None
    return _in_shared_memory(schedule, stage, points)


def _points_as_threads(schedule: Schedule, stage: Stage, points: list[str]) -> Schedule:
    around = asked(stage.statement)
    outputs = [index.name for index in stage.statement.output_indices if index.name not in around]
    points = [*around, *points]
    schedule = schedule.reorder(stage.name, *points, *outputs)
    schedule, points = fused(schedule, stage.name, points)
    schedule = schedule.split(stage.name, points[0], tuning.THREADS)
    schedule = schedule.bind(stage.name, f"{points[0]}.outer", "blockIdx.x")
    return schedule.bind(stage.name, f"{points[0]}.inner", "threadIdx.x")


def _in_shared_memory(schedule: Schedule, stage: Stage, points: list[str]) -> Schedule:
    name, first = stage.name, points[0]
    elements = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    part, inside = f"{first}.outer", [f"{first}.inner", *points[1:]]
    schedule = schedule.split(name, first, tuning.PART if len(points) == 1 else tuning.PART_LINES)
    schedule, parts = added(schedule, schedule.rfactor(name, part))
    last, thread = inside[-1], f"{inside[-1]}.inner"
    schedule = schedule.split(parts, last, WARP)
    schedule, own = added(schedule, schedule.rfactor(parts, thread))
    *outer, row = elements
    schedule = schedule.reorder(parts, part, *elements, thread).split(parts, row, WARP)
    schedule = schedule.bind(parts, part, "blockIdx.x").bind(parts, f"{row}.inner", "threadIdx.x")
    inner = [*inside[:-1], f"{last}.outer"]
    rank = schedule.graph.program.tensor(own).rank
    layout = (*((dimension, 0) for dimension in range(1, rank)), (0, 0))
    schedule = schedule.compute_at(own, parts, part).storage(own, "shared", layout=layout)
    schedule = schedule.reorder(own, thread, part, *inner, *elements).bind(own, thread, "threadIdx.x")
    schedule = schedule.reorder(name, *elements, part).split(name, row, WARP)
    for leaf, axis in zip((f"{row}.outer", *reversed(outer)), GRID_AXES, strict=False):
        schedule = schedule.bind(name, leaf, axis)
    return schedule.bind(name, f"{row}.inner", "threadIdx.x")


__all__ = ["default"]
