"""Copies that turn axes around on a CPU: square tiles, so that every line of cache is used whole.

Neither reading nor writing along one loop touches contiguous memory on both sides. A tile of `TILE x TILE` elements fits the first
cache, where the order of accesses does not matter.
"""

from __future__ import annotations

from tc_jupyter.ranges import from_expr
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.target import Target

from .streaming import lanes_of, step_of

TILE = 64
"""Rows of a tile: 64 lines of 64 bytes are 4 kB, well inside the first cache with the other side."""


def default(schedule: Schedule, name: str, target: Target) -> Schedule | None:
    """Tiles over the last output index and the index that a read has last; `None` if no read turns them around."""
    stage = schedule.graph.stage(name)
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    if stage.statement.operator != "=" or len(outputs) < 2:
        return None
    last = outputs[-1]
    for read in stage.statement.reads():
        moves = [from_expr(index) for index in read.indices]
        if not moves or step_of(moves[-1], last) != 0 or all(step_of(move, last) == 0 for move in moves):
            continue
        inner = next((index for index in outputs[:-1] if step_of(moves[-1], index) == 1), None)
        if inner is not None:
            return _tiles(schedule, name, inner, last, lanes_of(schedule, stage, target))
    return None


def _tiles(schedule: Schedule, name: str, row: str, last: str, lanes: int) -> Schedule:
    outputs = [leaf for leaf in schedule.leaves(name)]
    rest = [leaf for leaf in outputs if leaf not in (row, last)]
    schedule = schedule.split(name, row, lanes).split(name, last, TILE).split(name, f"{last}.inner", lanes)
    order = (*rest, f"{row}.outer", f"{last}.outer", f"{last}.inner.outer", f"{row}.inner", f"{last}.inner.inner")
    schedule = schedule.reorder(name, *order)
    for leaf in (*rest, f"{row}.outer"):
        schedule = schedule.parallel(name, leaf)
    return schedule.vectorize(name, f"{last}.inner.inner")
