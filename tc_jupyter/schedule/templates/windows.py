"""Windows that wrap around, stop at a border or go beyond it: copied so that they are windows like any other.

A convolution with zeros around its input reads `0 <= h+p-1 && h+p-1 < H ? X(h+p-1) : 0`, a periodic one `X((i+k) % N)`. Register
tiles and vectors need sums of indices; so the condition or remainder moves to a copy of the input (`cache_read` with `reindex`),
which is a little longer than the input and is made once. Measured with AVX2 on two threads: a convolution 8 x 32 x 56 x 56 to 64
channels with zeros around 6.5 ms, 95 without the copy (6.2 without zeros); a periodic one of 10^6 with 64 1.5 and 71 ms.

A step of two (`2*h + p`) needs a window of known length, at least two: else the copy would have elements that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Callable

from tc_jupyter.program import Const, IndexVar, Read, Select, walk
from tc_jupyter.program.integers import has_read, index_names
from tc_jupyter.ranges import from_expr, interior, step_of
from tc_jupyter.schedule.reindexing import operand
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, StageGraph


def copied(schedule: Schedule, *_: object, pays: Callable[[Schedule, str], bool] = lambda *_: True) -> Schedule:
    """Copy every such operand of a reduction.

    Args:
        pays: of a schedule with the copies of a stage, whether they are worth making.
    """
    for name in filter(schedule.graph.is_free, schedule.stages):
        found = schedule
        for tensor in _tensors(schedule.graph, schedule.graph.stage(name)):
            found = found.cache_read(tensor, name, reindex=True)
        if found is not schedule and pays(found, name):
            schedule = found
    return schedule


def is_plain_inside(stage: Stage) -> bool:
    """Whether a stage is such a copy, and away from the borders the same as what it copies."""
    value = stage.statement.value
    while isinstance(value, Select) and not has_read(value.condition) and isinstance(value.otherwise, Const):
        value = value.then
    if stage.statement.operator != "=" or not isinstance(value, Read) or any(map(has_read, value.indices)):
        return False
    positions = [from_expr(subscript) for subscript in value.indices]
    return all(interior(each, name) is not None for each in positions for name in each.indices)


def is_of_each_tile(stage: Stage, tensor: str) -> bool:
    """Whether what a reduction reads of a tensor is another part for each part of its results."""
    outputs = frozenset(index.name for index in stage.statement.output_indices)
    reads = [read for read in stage.statement.reads() if read.tensor == tensor]
    used = [[index_names(subscript) & outputs for subscript in read.indices] for read in reads]
    return all(all(names) and frozenset[str]().union(*names) == outputs for names in used)


def _tensors(graph: StageGraph, stage: Stage) -> tuple[str, ...]:
    """The tensors that a reduction reads through a window that is no plain sum of indices."""
    statement = stage.statement
    if not statement.reduction_indices:
        return ()
    found: list[str] = []
    outputs = {index.name for index in statement.output_indices}
    for tensor in dict.fromkeys(read.tensor for read in statement.reads() if read.indices):
        known = None if tensor == stage.target else operand(stage, tensor, graph.boxes[tensor])
        if known is None or not known.is_window(outputs) or (isinstance(known.place, Read) and _is_plain(known.place)):
            continue
        found.append(tensor)
    return tuple(found)


def _is_plain(read: Read) -> bool:
    """Whether every subscript moves by the same all the time."""
    return all(
        step_of(from_expr(subscript), node.name) is not None
        for subscript in read.indices
        for node in walk(subscript)
        if isinstance(node, IndexVar)
    )
