"""Copies of the operands of a product on a CPU, in the order in which its register tile reads them.

Worked example: with tiles of 8 x 32, `B(k, j)` lies as `[j // 32, k, j % 32]`, `A(i, k)` as `[i // 8, k, i % 8]`.
What a last panel that is not full holds beyond its end is said in `codegen.llvm.packed_tails`.
"""

from __future__ import annotations

from tc_jupyter.program import IndexVar
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage

from .register_tiles import Tile
from .stages import added


def _copy_of(schedule: Schedule, tensor: str, cache: str) -> tuple[Schedule, str, list[str]]:
    """A copy of a tensor for one reader, with its name and its indices."""
    schedule, copy = added(schedule, schedule.cache_read(tensor, cache, widen=True))
    return schedule, copy, [index.name for index in schedule.graph.stage(copy).statement.output_indices]


def pack_columns(
    schedule: Schedule, tensor: str, cache: str, column: str, tile: Tile, place: tuple[str, str] | None
) -> Schedule:
    """Panels `[..., column // columns, ..., column % columns]`, made once for all tasks, or at `place` by their user.

    Rows of the tensor are read as they lie, some of them at a time: panel by panel, every row would be in another page.
    """
    at = dimension_of(schedule.graph.stage(cache), tensor, column)
    schedule, copy, indices = _copy_of(schedule, tensor, cache)
    column = indices[at]
    rest = [number for number in range(len(indices)) if number != at]
    schedule = schedule.storage(copy, layout=((at, 0), *((number, 0) for number in rest), (at, tile.columns)))
    schedule = schedule.split(copy, column, tile.columns)
    order, tasks = [f"{column}.outer", *(indices[number] for number in rest)], [f"{column}.outer"]
    if place is None and rest and at == len(indices) - 1:
        line = order.pop()
        schedule = schedule.split(copy, line, tuning.ONCE_IN)
        tasks = [*order[1:], f"{line}.outer"]
        order = [*tasks, f"{column}.outer", f"{line}.inner"]
    schedule = schedule.reorder(copy, *order, f"{column}.inner").vectorize(copy, f"{column}.inner")
    if place is not None:
        return schedule.compute_at(copy, *place).storage(copy, "local")
    return schedule.parallel(copy, *tasks)


def pad_rows(schedule: Schedule, tensor: str, cache: str, tile: Tile) -> Schedule:
    """Rows that are one tile longer, so that the last tile reads inside the buffer: of a copy, or of a temporary for this alone."""
    graph = schedule.graph
    made = [each for each in graph.stages_on(tensor) if graph.consumers(each.name) == (graph.stage(cache),)]
    own = len(made) == 1 and graph.is_free(made[0].name) and not made[0].statement.reduction_indices
    if own and made[0].name not in graph.outputs:  # the layout of a result is given
        copy, indices = made[0].name, [index.name for index in made[0].statement.output_indices]
    else:
        schedule, copy, indices = _copy_of(schedule, tensor, cache)
    schedule = schedule.storage(copy, pad=tile.columns)
    schedule = schedule.split(copy, indices[-1], tile.columns).vectorize(copy, f"{indices[-1]}.inner")
    return schedule.parallel(copy, *(indices[:-1] or [f"{indices[-1]}.outer"]))


def dimension_of(stage: Stage, tensor: str, index: str) -> int:
    """The dimension of a tensor that `index` runs along; other reads of it may stand before that one and name a copy's indices."""
    reads = [read for read in stage.statement.reads() if read.tensor == tensor]
    return next(
        number
        for read in reads
        for number, subscript in enumerate(read.indices)
        if isinstance(subscript, IndexVar) and subscript.name == index
    )


def pack_rows(
    schedule: Schedule, tensor: str, cache: str, row: str, tile: Tile, place: tuple[str, str] | None
) -> Schedule:
    """Micro-panels `[row // rows, ..., row % rows]`: of one block of rows at `place`, or once for all tasks that need the same."""
    at = dimension_of(schedule.graph.stage(cache), tensor, row)
    schedule, packed, indices = _copy_of(schedule, tensor, cache)
    row = indices[at]
    rest = [number for number in range(len(indices)) if number != at]
    layout = ((at, 0), *((number, 0) for number in rest), (at, tile.rows))
    turned = tile.rows in (4, 8, 16)  # blocks of so many rows are read along the rows and turned in registers
    schedule = schedule.split(packed, row, tile.rows)
    if turned or place is None:
        schedule = schedule.reorder(packed, f"{row}.outer", *(indices[number] for number in rest), f"{row}.inner")
    if turned:
        schedule = schedule.vectorize(packed, f"{row}.inner")
    if place is not None:
        return schedule.compute_at(packed, *place).storage(packed, "local", layout=layout)
    return schedule.storage(packed, layout=layout).parallel(packed, f"{row}.outer")
