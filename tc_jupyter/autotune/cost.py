"""A rough order of candidates before anything is timed: work divided by the lanes and threads that a schedule uses.

Worked example: of two schedules of a matrix product, one with a parallel and a vectorised loop is estimated `threads * lanes` times
cheaper than the plain nest, so it is timed first.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.ranges import constant
from tc_jupyter.schedule import Schedule, Target, infer_symbolic
from tc_jupyter.schedule.inline import inject_inline

_STRIP = 0.02
"""Cost of starting one loop, in operations: short inner loops are a little dearer."""


def estimate(schedule: Schedule, sizes: Mapping[str, int], target: Target) -> float:
    """Operations of a schedule at given sizes per lane and thread; only good for comparing schedules of one program.

    Args:
        sizes: all sizes of the program.
    """
    bounds = infer_symbolic(inject_inline(schedule.graph))
    known = {name: constant(value) for name, value in sizes.items()}
    lanes = max(1, target.vector_bits // 32)
    total = 0.0
    for stage in bounds.graph.stages:
        points = 1.0
        for root in stage.roots:
            extent = root.extent.substitute(known)
            points *= max(1, extent.constant) if extent.is_constant else 64
        kinds = {note for _, note in stage.annotations}
        around = {
            note
            for name, leaf in bounds.graph.attach_path(stage.name)
            for note in [bounds.graph.stage(name).annotation(leaf)]
        }
        speed = (lanes if "vectorize" in kinds or stage.tensorize is not None else 1) * (
            target.threads if "parallel" in kinds | around else 1
        )
        total += points * (1 + _STRIP * len(stage.leaves)) / speed
    return total
