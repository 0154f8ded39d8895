"""Statements on single elements, stencils and gathers: 16 bytes per thread where memory is read in a row.

    for rows:     blockIdx.x, 8 along threadIdx.y
      for columns: blockIdx.y, 32 threads of one vector along threadIdx.x

A statement with one index has blocks of 256 threads with two vectors each. The last vector of a row may be shorter; it is written
element by element.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.program import Expr
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, constant_extent
from tc_jupyter.schedule.target import VECTOR_BYTES, Target
from tc_jupyter.schedule.templates.contraction import PIXEL
from tc_jupyter.schedule.templates.form import Form, formed
from tc_jupyter.schedule.templates.pixels import needs_values_apart
from tc_jupyter.schedule.templates.stages import fused
from tc_jupyter.schedule.templates.streaming import steps_along


def lanes_of(schedule: Schedule, stage: Stage, index: str) -> int:
    """Elements per thread: a vector of the widest type that is read or written, if all reads are in a row and start with it."""
    statement, program = stage.statement, schedule.graph.program
    tensors = [program.tensor(read.tensor) for read in statement.reads() if read.indices]
    widest = max(tensor.dtype.bytes for tensor in (*tensors, program.tensor(stage.target)))
    steps = steps_along(stage, index)
    if statement.operator != "=" or not all(step in (0, 1) and not others for step, others in steps):
        return 1
    if _is_shifted(stage):
        return 1
    return max(1, VECTOR_BYTES // widest)


def _is_shifted(stage: Stage) -> bool:
    """Whether a tensor is read at several places: vectors of a stencil would not be aligned."""
    seen: dict[str, set[tuple[Expr, ...]]] = {}
    for read in stage.statement.reads():
        if read.indices:
            seen.setdefault(read.tensor, set()).add(read.indices)
    return any(len(places) > 1 for places in seen.values())


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """Blocks, threads and vectors over the output indices; `None` for a result without indices."""
    del target, sizes
    stage = schedule.graph.stage(name)
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    if not outputs or stage.statement.combine is not None:
        return None
    if _has_few_values(stage, outputs):
        return _by_places(schedule, name, outputs)
    lanes = lanes_of(schedule, stage, outputs[-1])
    return _flat(schedule, name, outputs[0], lanes) if len(outputs) == 1 else _grid(schedule, name, outputs, lanes)


def _flat(schedule: Schedule, name: str, index: str, lanes: int) -> Schedule:
    block, thread, lane = f"{index}.outer", f"{index}.inner", None
    if schedule.graph.stage(name).statement.reduction_indices:
        return formed(schedule, name, Form({index: tuning.THREADS}, bound={block: "blockIdx.x", thread: "threadIdx.x"}))
    splits = {index: tuning.THREADS * lanes * tuning.IN_FLIGHT, thread: tuning.THREADS * lanes}
    vectors, thread = f"{thread}.outer", f"{thread}.inner"
    if lanes > 1:
        splits[thread] = lanes
        thread, lane = f"{thread}.outer", f"{thread}.inner"
    bound = {block: "blockIdx.x", thread: "threadIdx.x"}
    return formed(schedule, name, Form(splits, order=(vectors,), vector=lane, bound=bound))


def _has_few_values(stage: Stage, outputs: list[str]) -> bool:
    """Whether elements have a few values, which are not those of the operands one by one: complex numbers, points, colours."""
    few = len(outputs) > 1 and constant_extent(stage, outputs[-1]) in PIXEL
    return few and stage.statement.operator == "=" and needs_values_apart(stage.statement)


def _by_places(schedule: Schedule, name: str, outputs: list[str]) -> Schedule:
    """A thread per element, which computes its values together and writes two or four of them at once."""
    *outer, value = outputs
    schedule, (place,) = fused(schedule, name, outer)
    count = constant_extent(schedule.graph.stage(name), value)
    schedule = schedule.split(name, place, tuning.THREADS)
    schedule = schedule.bind(name, f"{place}.outer", "blockIdx.x").bind(name, f"{place}.inner", "threadIdx.x")
    return schedule.vectorize(name, value) if count in (2, 4) else schedule.unroll(name, value)


def _grid(schedule: Schedule, name: str, outputs: list[str], lanes: int) -> Schedule:
    *outer, last = outputs
    schedule, (row,) = fused(schedule, name, outer)
    splits, thread, lane = {row: tuning.WARPS, last: 32 * lanes}, f"{last}.inner", None
    if lanes > 1:
        splits[thread] = lanes
        thread, lane = f"{thread}.outer", f"{thread}.inner"
    bound = {
        f"{row}.outer": "blockIdx.x",
        f"{last}.outer": "blockIdx.y",
        f"{row}.inner": "threadIdx.y",
        thread: "threadIdx.x",
    }
    return formed(schedule, name, Form(splits, vector=lane, bound=bound))
