"""Products and other contractions on a CPU: a register tile of rows and vectors over packed operands.

The tile is `rows x columns` of the output, kept in vector registers while all reduction loops run. The column operand is
packed into panels (`cache_read` with a layout: one panel is contiguous, its rows are whole vectors), the row operand into
micro-panels; both are padded to whole tiles, so that the inner loops have constant lengths and only the copy out of the
registers knows where the result ends.

Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008; Van Zee and van de Geijn, BLIS.
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.program import IndexVar, Read, walk
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import Target


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows and vectors of the register tile, lanes of a vector, rows of a task."""

    rows: int
    vectors: int
    lanes: int
    block: int

    @property
    def columns(self) -> int:
        """Elements of a row of the tile."""
        return self.vectors * self.lanes


def tile_of(target: Target, bits: int) -> Tile:
    """The register tile of a machine: accumulators, one row of the column operand and a broadcast fit the registers.

    Args:
        bits: width of an element of the sum.
    """
    lanes = max(1, target.vector_bits // bits)
    rows, vectors = (12, 2) if target.vector_registers >= 32 and target.vector_bits >= 512 else (6, 2)
    if target.vector_registers >= 32 and target.vector_bits < 512:
        rows, vectors = 8, 3
    if target.vector_bits < 256 and target.vector_registers < 32:
        rows, vectors = 4, 2
    return Tile(rows, vectors, lanes, 8 * rows)


@dataclass(frozen=True, slots=True)
class Roles:
    """What the indices of a contraction do.

    Attributes:
        row: output index whose operand is broadcast.
        column: last output index, along vectors.
        row_reads, column_reads: tensors read along rows only and along columns only.
    """

    row: str
    column: str
    row_reads: tuple[str, ...]
    column_reads: tuple[str, ...]


def roles_of(stage: Stage) -> Roles | None:
    """The roles of the indices, or `None` if this is no contraction with plain subscripts."""
    statement = stage.statement
    outputs = [index.name for index in statement.output_indices]
    reads = [read for read in statement.reads() if read.indices]
    if len(outputs) < 2 or not statement.reduction_indices or not reads or statement.combine is not None:
        return None
    if not all(isinstance(subscript, IndexVar) for read in reads for subscript in read.indices):
        return None
    column = outputs[-1]
    used = {id(read): {s.name for s in read.indices if isinstance(s, IndexVar)} for read in reads}
    if any(len(used[id(read)]) != len(read.indices) for read in reads):
        return None
    for row in reversed(outputs[:-1]):
        rows = [read for read in reads if row in used[id(read)] and column not in used[id(read)]]
        columns = [read for read in reads if column in used[id(read)] and row not in used[id(read)]]
        rest = [read for read in reads if read not in rows and read not in columns]
        bare = all(row not in used[id(read)] and column not in used[id(read)] for read in rest)
        if rows and columns and bare and not _uses_index_values(stage):
            return Roles(row, column, _tensors(rows), _tensors(columns))
    return None


def _tensors(reads: list[Read]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(read.tensor for read in reads))


def _uses_index_values(stage: Stage) -> bool:
    """Whether the value depends on an index outside subscripts; padding would then compute with indices that do not exist."""
    subscripts = {id(node) for read in stage.statement.reads() for index in read.indices for node in walk(index)}
    return any(isinstance(node, IndexVar) and id(node) not in subscripts for node in walk(stage.statement.value))


def default(schedule: Schedule, name: str, target: Target) -> Schedule | None:
    """The schedule of a contraction, or `None` if the stage is none."""
    stage = schedule.graph.stage(name)
    roles = roles_of(stage)
    if roles is None or stage.attach.kind != "root":
        return None
    dtype = schedule.graph.program.tensor(stage.target).dtype.compute
    tile = tile_of(target, dtype.bits)
    outer = [index.name for index in stage.statement.output_indices if index.name not in (roles.row, roles.column)]
    inner = [index.name for index in stage.statement.reduction_indices]

    schedule = schedule.cache_write(name)
    cache = _last(schedule, name, ".cache")
    row, column = roles.row, roles.column
    schedule = (
        schedule.split(name, row, tile.block).split(name, f"{row}.inner", tile.rows).split(name, column, tile.columns)
    )
    order = (*outer, f"{row}.outer", f"{column}.outer", f"{row}.inner.outer", f"{row}.inner.inner", f"{column}.inner")
    schedule = schedule.reorder(name, *order)
    for leaf in (*outer, f"{row}.outer"):
        schedule = schedule.parallel(name, leaf)
    schedule = schedule.vectorize(name, f"{column}.inner")

    schedule = schedule.compute_at(cache, name, f"{row}.inner.outer")
    for tensor in roles.column_reads:
        schedule = _pack_columns(schedule, tensor, cache, column, tile)
    for tensor in roles.row_reads:
        schedule = _pack_rows(schedule, tensor, cache, name, row, tile)
    schedule = schedule.reorder(cache, *(index for index in outer), *inner, row, column)
    schedule = schedule.storage(cache, "register", padded=True)
    schedule = schedule.split(cache, row, tile.rows).split(cache, column, tile.columns)
    return schedule.unroll(cache, f"{row}.inner").vectorize(cache, f"{column}.inner")


def _last(schedule: Schedule, name: str, suffix: str) -> str:
    """The stage that `cache_read` or `cache_write` has just added."""
    found = [stage for stage in schedule.stages if stage.startswith(f"{name}{suffix}")]
    return max(found, key=lambda stage: (len(stage), stage))


def _position(schedule: Schedule, stage: str, index: str) -> int:
    return [each.name for each in schedule.graph.stage(stage).statement.output_indices].index(index)


def _pack_columns(schedule: Schedule, tensor: str, cache: str, column: str, tile: Tile) -> Schedule:
    """Panels `[..., column // columns, ..., column % columns]`, made once for all tasks."""
    schedule = schedule.cache_read(tensor, cache)
    copy = _last(schedule, tensor, ".cache")
    at = _position(schedule, copy, column)
    indices = [index.name for index in schedule.graph.stage(copy).statement.output_indices]
    rest = [number for number in range(len(indices)) if number != at]
    schedule = schedule.storage(copy, layout=((at, 0), *((number, 0) for number in rest), (at, tile.columns)))
    schedule = schedule.split(copy, column, tile.columns)
    schedule = schedule.reorder(copy, f"{column}.outer", *(indices[number] for number in rest), f"{column}.inner")
    return schedule.parallel(copy, f"{column}.outer").vectorize(copy, f"{column}.inner")


def _pack_rows(schedule: Schedule, tensor: str, cache: str, name: str, row: str, tile: Tile) -> Schedule:
    """Micro-panels `[row // rows, ..., row % rows]` of one block of rows, made by the task that uses them."""
    schedule = schedule.cache_read(tensor, cache)
    copy = _last(schedule, tensor, ".cache")
    at = _position(schedule, copy, row)
    indices = [index.name for index in schedule.graph.stage(copy).statement.output_indices]
    rest = [number for number in range(len(indices)) if number != at]
    layout = ((at, 0), *((number, 0) for number in rest), (at, tile.rows))
    return schedule.compute_at(copy, name, f"{row}.outer").storage(copy, "local", layout=layout)
