"""Any statement: output loops in parallel on a CPU; blocks and threads over the output indices on a GPU."""

from __future__ import annotations

from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.target import Target

from .form import Form, formed
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
        bound = {f"{last}.outer": "blockIdx.x", f"{last}.inner": "threadIdx.x"}
        return formed(schedule, stage, Form({last: tuning.THREADS}, bound=bound))
    rows = 8
    second = outer.pop()
    schedule, outer = fused(schedule, stage, outer)
    bound = dict.fromkeys(outer, "blockIdx.z") | {f"{second}.outer": "blockIdx.y", f"{last}.outer": "blockIdx.x"}
    bound |= {f"{second}.inner": "threadIdx.y", f"{last}.inner": "threadIdx.x"}
    return formed(schedule, stage, Form({last: tuning.THREADS // rows, second: rows}, bound=bound))
