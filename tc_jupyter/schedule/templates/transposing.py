"""Copies that turn axes around on a CPU: tiles, so that every line of cache is used whole.

Neither reading nor writing along one loop touches contiguous memory on both sides. A tile is made in strips: of as many rows of the
operand as a line of cache has elements, the next vectors are loaded and turned in registers, and whole lines of the result are
written. So every line on either side is touched once, or again while it is still in the first cache; a vector alone is half a line
on some processors, and its other half was gone from the cache where rows lie a power of two apart.

Measured with AVX2, 4096 x 4096 on one thread, where a copy takes 7.4 ms: 22 ms with squares of one vector, 18 with strips of two
vectors of columns, 13 of four, 9.2 of eight, 8.6 of sixteen and of more; strips that write half lines 13. With AVX-512 on an AMD
EPYC processor (Zen 4), one and two threads: 12 and 7.3 ms, past the caches 6.5 and 4.1 (with AVX2 there 0.73 and 0.55 of the time);
the same in C 5.9 and 3.9, a copy 3.2 and 1.7 to 2.6.

Where tiles share lines of the result, strips of 16 rows took, over strips of 128, with AVX-512 on an Intel processor and one
thread: 0.5 for squares of 600, 601 and 2000, 0.6 for 1001, 0.8 for 1000; where they do not, 1.2 for 1024 and 2048, 0.9 to 1.1 for
512, 640 and 4096.
"""

from __future__ import annotations

from math import inf

from tc_jupyter.program import Read
from tc_jupyter.ranges import Facts, fact_of, from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import LINE_BYTES, Target

from .form import Form, formed
from .streaming import lanes_of


def default(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    """Tiles over the last output index and the index that a read has last; `None` if no read turns them around.

    Args:
        facts: of the sizes of a call; lengths that are not known count as whole lines of cache.
    """
    stage = schedule.graph.stage(name)
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    if stage.statement.operator != "=" or len(outputs) < 2:
        return None
    last = outputs[-1]
    lanes = lanes_of(schedule, stage, target)
    if _most(stage, last) < lanes and any(_is_diagonal(read, last) for read in stage.statement.reads()):
        return None  # of rows that never fill a vector gathers take longer than single elements
    for read in stage.statement.reads():
        moves = [from_expr(index) for index in read.indices]
        if not moves or step_of(moves[-1], last) is None or all(step_of(move, last) == 0 for move in moves[:-1]):
            continue
        inner = next((index for index in outputs[:-1] if step_of(moves[-1], index) in (1, -1)), None)
        if inner is not None:
            return _tiles(schedule, name, inner, last, lanes, target, _are_whole_lines(schedule, stage, facts))
    return None


def _is_diagonal(read: Read, last: str) -> bool:
    """Whether a read moves along two of its dimensions: then nothing is turned in registers, elements are gathered."""
    return sum(step_of(from_expr(index), last) != 0 for index in read.indices) > 1


def _most(stage: Stage, axis: str) -> float:
    """The largest extent of a root axis, whatever the sizes are."""
    (most,) = (root.extent.limits[1] for root in stage.roots if root.name == axis)
    return inf if most is None else most


def _are_whole_lines(schedule: Schedule, stage: Stage, facts: Facts) -> bool:
    """Whether every row of the result begins where a line of cache does, as far as is known."""
    length = fact_of(stage.roots[len(stage.statement.output_indices) - 1].extent, facts)
    nbytes = schedule.graph.program.tensor(stage.target).dtype.bytes
    return length is None or length.multiple * nbytes % LINE_BYTES == 0


def _tiles(
    schedule: Schedule, name: str, row: str, last: str, lanes: int, target: Target, whole_lines: bool
) -> Schedule:
    """Strips that are long, or short where tiles share lines of the result: the next tile fills them while they are at hand."""
    rest = [leaf for leaf in schedule.leaves(name) if leaf not in (row, last)]
    strip = lanes * max(1, 64 * LINE_BYTES // target.vector_bits)
    lanes *= max(1, 8 * LINE_BYTES // target.vector_bits)
    strip = strip if whole_lines else lanes
    splits, tasks = {row: strip, last: tuning.EDGE, f"{last}.inner": lanes}, (*rest, f"{row}.outer", f"{last}.outer")
    inside = (f"{last}.inner.outer", f"{row}.inner")
    return formed(schedule, name, Form(splits, tasks, inside, vector=f"{last}.inner.inner"))
