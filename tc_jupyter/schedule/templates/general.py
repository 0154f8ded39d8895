"""Any statement: output loops in parallel on a CPU; blocks and threads over the output indices on a GPU."""

from __future__ import annotations

from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.target import Target

from .stages import fused


def default(schedule: Schedule, stage: str, target: Target, _: object) -> Schedule:
    """Distribute the output loops of one stage at root; reduction loops stay inside."""
    if schedule.graph.stage(stage).attach.kind != "root":
        return schedule
    return _gpu(schedule, stage) if target.kind == "cuda" else _cpu(schedule, stage)


def _outputs(schedule: Schedule, stage: str) -> tuple[str, ...]:
    found = schedule.graph.stage(stage)
    return tuple(leaf for leaf in found.leaves if found.kind(leaf) == "output")


def _cpu(schedule: Schedule, stage: str) -> Schedule:
    """All output loops but the innermost are tasks; the innermost too if it is the only one, or if other stages run in it.

    The only loop of a statement on single elements is taken in parts, so that the compiler finds its vectors.
    """
    outputs = _outputs(schedule, stage)
    inside = any(each.attach.axis in outputs[-1:] for each in schedule.graph.attached(stage))
    if len(outputs) == 1 and not inside and schedule.graph.stage(stage).statement.operator == "=":
        schedule = schedule.split(stage, outputs[0], tuning.PIECE)
        return schedule.parallel(stage, f"{outputs[0]}.outer")
    return schedule.parallel(stage, *(outputs if inside else outputs[:-1] or outputs))


def _gpu(schedule: Schedule, stage: str) -> Schedule:
    """`threadIdx.x` along the last output index (neighbours in memory), blocks over all others."""
    outputs = _outputs(schedule, stage)
    if not outputs:
        return schedule
    *outer, last = outputs
    if not outer:
        schedule = schedule.split(stage, last, tuning.THREADS)
        return schedule.bind(stage, f"{last}.outer", "blockIdx.x").bind(stage, f"{last}.inner", "threadIdx.x")
    rows = 8
    second = outer.pop()
    schedule, outer = fused(schedule, stage, outer)
    schedule = schedule.split(stage, last, tuning.THREADS // rows).split(stage, second, rows)
    order = (*outer, f"{second}.outer", f"{last}.outer", f"{second}.inner", f"{last}.inner")
    schedule = schedule.reorder(stage, *order)
    for leaf in outer:
        schedule = schedule.bind(stage, leaf, "blockIdx.z")
    schedule = schedule.bind(stage, f"{second}.outer", "blockIdx.y").bind(stage, f"{last}.outer", "blockIdx.x")
    return schedule.bind(stage, f"{second}.inner", "threadIdx.y").bind(stage, f"{last}.inner", "threadIdx.x")
