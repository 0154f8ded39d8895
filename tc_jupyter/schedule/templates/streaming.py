"""Elementwise statements, stencils and broadcasts on a CPU: explicit vectors along the last index, tasks over the others.

Every operand must be read along the last index in unit steps or not at all; what a vector reads is then contiguous or one value.

Rows of a stencil are made in tiles of some rows by a few lines: what one of them reads, the next one finds in the first cache.
Where results are not written past the caches, rows are made one by one all the same (`codegen.llvm.row_tiles`), as they are where
planes are read again too.
"""

from __future__ import annotations

from tc_jupyter.program import Const, Expr, IndexVar, Read, Select, Size, is_along_rows, positions, walk
from tc_jupyter.ranges import SizeExpr, from_expr, interior, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import Target

from .form import Form, formed


def lanes_of(schedule: Schedule, stage: Stage, target: Target) -> int:
    """Elements of one vector, by the widest type that the statement computes in."""
    widths = [node.dtype.compute.bits for node in walk(stage.statement.value) if not _is_index(node)]
    short = stage.statement.operator in ("min", "max") and positions(stage.statement.value)
    widths.append(32 if short else schedule.graph.program.tensor(stage.target).dtype.compute.bits)
    return max(1, target.vector_bits // max(widths))


def _is_index(node: object) -> bool:
    return isinstance(node, Size) or getattr(node, "dtype", None) is None or not isinstance(node, Read)


def steps_along(stage: Stage, index: str) -> list[tuple[int | None, bool]]:
    """Per read how far the last subscript moves per step of `index` (`None`: not evenly), and whether another one moves."""
    found: list[tuple[int | None, bool]] = []
    for read in stage.statement.reads():
        if read.indices:
            moves = [step_of(from_expr(subscript), index) for subscript in read.indices]
            found.append((moves[-1], any(move != 0 for move in moves[:-1])))
    return found


def is_plain(read: Read, numbers: bool = False) -> bool:
    """Whether an access is at different indices, one per dimension, or at numbers."""
    names = [index.name for index in read.indices if isinstance(index, IndexVar)]
    count = len(names) + numbers * sum(isinstance(index, Const) for index in read.indices)
    return count == len(read.indices) and len(names) == len(set(names))


def is_streaming(stage: Stage, index: str) -> bool:
    """Whether vectors along `index` read contiguous elements or one value each."""
    return all(step in (0, 1) and not others for step, others in steps_along(stage, index))


def step_inside(subscript: SizeExpr, index: str) -> int | None:
    """As `step_of`, away from where a subscript wraps around, stops or turns back."""
    inside = interior(subscript, index)
    return None if inside is None else step_of(inside.value, index)


def is_mostly_streaming(stage: Stage, index: str) -> bool:
    """As `is_streaming`, but a last subscript may fall or have borders: `N - 1 - j`, `(j + 1) % N`, `min(j + 1, N - 1)`, and a
    read may go along rows: `X(j / D, j % D)`.
    """

    def step(subscript: Expr) -> int | None:
        return step_of(from_expr(subscript), index)

    def is_slow(*subscripts: Expr) -> bool:
        *others, last = subscripts
        along = step(last) == -1 or step_inside(from_expr(last), index) in (0, 1)
        return along and all(step(each) == 0 for each in others)

    reads = [read.indices for read in stage.statement.reads() if read.indices]
    return all(is_slow(*subscripts) or is_along_rows(subscripts, step) for subscripts in reads)


def default(schedule: Schedule, name: str, target: Target, _: object) -> Schedule | None:
    """The schedule of a streaming statement, or `None` if it is none."""
    stage = schedule.graph.stage(name)
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    if stage.statement.operator != "=" or not outputs or not is_mostly_streaming(stage, outputs[-1]):
        return None
    again = [leaf for leaf in outputs[:-1] if stage.attach.kind == "root" and _reads_rows_again(stage, leaf)]
    if again and again == outputs[-2:-1]:
        return _tiles(schedule, stage, outputs, target)
    if again and _is_plain(stage, again[0]):
        return _planes(schedule, stage, outputs, again[0], target)
    return vectors(schedule, name, target)


def _reads_rows_again(stage: Stage, row: str) -> bool:
    """Whether other rows of the result need what one row has read."""
    places: dict[str, set[tuple[SizeExpr, ...]]] = {}
    for read in stage.statement.reads():
        moving = tuple(place for place in map(from_expr, read.indices) if row in place.indices)
        if moving:
            places.setdefault(read.tensor, set()).add(moving)
    return any(len(found) > 1 for found in places.values())


def _tiles(schedule: Schedule, stage: Stage, outputs: list[str], target: Target) -> Schedule:
    """Tiles of some rows: what they share is in the first cache (`codegen.llvm.row_tiles`)."""
    name, lanes = stage.name, lanes_of(schedule, stage, target)
    *around, row, last = outputs
    width = max(tuning.IN_FLIGHT * lanes, tuning.TILE_BYTES * 8 * lanes // target.vector_bits)
    splits, tasks = {row: tuning.ROWS_TOGETHER, last: width}, (*around, f"{row}.outer")
    return formed(schedule, name, Form(splits, tasks, (f"{last}.outer", f"{row}.inner"), vector=f"{last}.inner"))


def _is_plain(stage: Stage, plane: str) -> bool:
    """Whether all planes are computed alike, from planes as far apart as they are."""
    value = stage.statement.value
    moves = (step_of(from_expr(where), plane) for read in stage.statement.reads() for where in read.indices)
    return set(moves) <= {0, 1} and not any(isinstance(node, Select) for node in walk(value))


def _planes(schedule: Schedule, stage: Stage, outputs: list[str], plane: str, target: Target) -> Schedule:
    """Vectors of some planes at a time: what they share is in registers, and comes once from the second cache."""
    name, last = stage.name, outputs[-1]
    splits = {plane: tuning.PLANES, last: lanes_of(schedule, stage, target)}
    around = [f"{leaf}.outer" if leaf == plane else leaf for leaf in outputs[:-1]]
    form = Form(splits, around, (f"{last}.outer",), (f"{plane}.inner",), f"{last}.inner")
    return formed(schedule, name, form)


def vectors(schedule: Schedule, name: str, target: Target) -> Schedule:
    """Split the last output loop into vectors; tasks over the loops outside it if the stage is at root."""
    stage = schedule.graph.stage(name)
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    *around, last = outputs
    tasks = (around or [f"{last}.outer"]) if stage.attach.kind == "root" else []
    splits = {last: tuning.IN_FLIGHT * lanes_of(schedule, stage, target)}
    return formed(schedule, name, Form(splits, tasks, (f"{last}.outer",), vector=f"{last}.inner"))


# Notes
#
# What limits a stencil of 7 points, 256^3, whose rows of 1 kB are not written past the caches, measured in C with AVX-512 on a
# Zen 4 processor, one thread: row by row 8.1 ms (a copy 3.8); four planes at a time 5.6, two 6.6; tiles of 8 to 128 rows of all
# planes 9.6 to 8.6. Whole lines past the caches, the line between two rows put together from both, took 0.87 of the time row by
# row, and would need statements that see the result as one long row.
