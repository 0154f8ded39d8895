"""Matrix products and all contractions like them: tiles of the operands in shared memory, a tile of the result per thread.

    for i.outer, j.outer                  # blockIdx
      for threads ty, tx                  # threadIdx, 16 x 16
        C.cache[8][8] = 0                 # registers
        for k.outer                       # a pipeline of three stages where the device copies asynchronously
          barrier; As[k][i] = A tile; Bs[k][j] = B tile; barrier     # zeros beyond the end
          for k < 8, i < 8, j < 8: C.cache[i][j] += As[k][i] * Bs[k][j]
        C[i][j] = C.cache[i][j]           # the statement, or the pointwise statement that uses it

The row and the column are two indices of the result that different operands have; all other indices of the result are blocks, all
other reduction loops run around the one that is split. Operands are any reads, windows too: what a tile reads is inferred. Which
tile, and whether blocks have parts of the sum that a second kernel adds (`side_by_side.py`), says `shared_sums`.

Source: CUTLASS, "Efficient GEMM in CUDA"; S. Boehm, "How to optimize a CUDA matmul kernel for cuBLAS-like performance".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Const, IndexVar, Read, walk
from tc_jupyter.program.integers import has_read, index_names
from tc_jupyter.ranges import value_at
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import REGISTER_BYTES, VECTOR_BYTES, Target
from tc_jupyter.schedule.templates.contraction import epilogue_of
from tc_jupyter.schedule.templates.form import Form, formed
from tc_jupyter.schedule.templates.self_products import told_apart
from tc_jupyter.schedule.templates.stages import added, copied_out, fused

from . import shared_sums, side_by_side
from .limits import fits_shared
from .shared_sums import T, in_parts


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows, columns and depth of the tile of a block; rows and columns of a thread."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int

    @property
    def threads(self) -> tuple[int, int]:
        """Threads along y and x."""
        return self.rows // self.thread_rows, self.columns // self.thread_columns

    @property
    def cycles(self) -> float:
        """Per step of the sum: multiply-adds, 128 at a time, and what the warps read of shared memory, in vectors of 16 bytes.

        The factors give what 128 x 128 and 64 x 64 reached on an H200: 0.6 and 0.5 of all multiply-adds that it can do.
        """
        warps = self.threads[0] * self.threads[1] / 32
        return 1.25 * self.rows * self.columns / 128 + 1.75 * warps * (self.thread_rows + self.thread_columns) / 4


LARGE = Tile(128, 128, 8, 8, 8)
MEDIUM = Tile(64, 64, 16, 4, 4)
SMALL = Tile(32, 32, 16, 2, 2)
TINY = Tile(16, 16, 16, 2, 2)
"""Of many small matrices: blocks of two warps, up to 32 of them on a multiprocessor at once."""
FLAT = Tile(16, 64, 16, 2, 4)
TALL = Tile(64, 16, 16, 4, 2)


@dataclass(frozen=True, slots=True)
class Roles:
    """The indices that are tiled: row and column of the result, and a reduction index that both operands have."""

    row: str
    column: str
    inner: str


def is_product(schedule: Schedule, name: str) -> bool:
    """Whether a stage reads its operands often enough for tiles in shared memory."""
    return roles_of(with_names(schedule, name).graph.stage(name)) is not None


def with_names(schedule: Schedule, name: str) -> Schedule:
    """The schedule in which a product of a tensor with itself reads its operands by two names."""
    return told_apart(schedule, name, _row_of)


def _row_of(stage: Stage) -> str | None:
    roles = roles_of(stage)
    return None if roles is None else roles.row


def roles_of(stage: Stage, sizes: Mapping[str, int] | None = None) -> Roles | None:
    """The indices to tile, or `None` if no two operands share a reduction index and differ in indices of the result.

    The last indices that fit are taken, but for those that are known to fill no tile, where others do.
    """
    found = list(_all_roles(stage))
    lengths = shared_sums.extents(stage, "output", sizes or {}) if found else {}
    fill = (roles for roles in found if min(lengths[roles.row], lengths[roles.column]) > tuning.FEW)
    return next(fill, found[0] if found else None)


def _all_roles(stage: Stage) -> Iterator[Roles]:
    statement = stage.statement
    reads = [read for read in statement.reads() if read.indices]
    if statement.combine is not None or statement.operator == "=" or not statement.reduction_indices:
        return
    if (
        any(has_read(index) for read in reads for index in read.indices)
        or _uses_index_values(stage)
        or _read_twice(reads)
    ):
        return
    used = [_names(read) for read in reads]
    outputs = [index.name for index in statement.output_indices]
    for column in reversed(outputs):
        for row in reversed(outputs):
            left = [names for names in used if row in names and column not in names]
            right = [names for names in used if column in names and row not in names]
            shared = [
                index.name
                for index in statement.reduction_indices
                if any(index.name in names for names in left) and any(index.name in names for names in right)
            ]
            if row != column and shared and not any({row, column} <= names for names in used):
                yield Roles(row, column, _longest(stage, shared, reads))


def _longest(stage: Stage, names: list[str], reads: list[Read]) -> str:
    """The reduction index to split: the last one that is no part of a window and whose length is not a small constant."""
    moving = {
        name
        for read in reads
        for index in read.indices
        if not isinstance(index, IndexVar)
        for name in index_names(index)
    }

    def rank(name: str) -> tuple[bool, bool, int]:
        extent = stage.root(name).extent
        return name not in moving, not extent.is_constant or extent.constant > 8, names.index(name)

    return max(names, key=rank)


def _names(read: Read) -> set[str]:
    return {name for index in read.indices for name in index_names(index)}


def _read_twice(reads: list[Read]) -> bool:
    """Whether a tensor is read at two places, of which a tile would have to hold both; the parts of a few values it does hold."""
    places = {(read.tensor, *(index for index in read.indices if not isinstance(index, Const))) for read in reads}
    return len({read.tensor for read in reads}) != len(places)


def _uses_index_values(stage: Stage) -> bool:
    """Whether the value depends on an index outside subscripts: it would be computed for indices that do not exist."""
    subscripts = {id(node) for read in stage.statement.reads() for index in read.indices for node in walk(index)}
    return any(isinstance(node, IndexVar) and id(node) not in subscripts for node in walk(stage.statement.value))


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule of a product, or `None` if the stage is none, or its tiles do not fit."""
    stage = schedule.graph.stage(name)
    roles = roles_of(stage, sizes)
    if roles is None:
        return None

    def whole(schedule: Schedule, name: str, user: str | None, roles: Roles, tile: Tile) -> Schedule | None:
        found = schedule.together(lambda each: _scheduled(each, name, user, roles, tile))
        return found if fits_shared(found) else None

    tiles = _tiles(stage, roles, sizes)
    return cheapest(schedule, name, epilogue_of(schedule, name), roles, tiles, whole, target, sizes)


def cheapest(
    schedule: Schedule,
    name: str,
    user: str | None,
    roles: Roles,
    tiles: Iterable[T],
    scheduled: Callable[[Schedule, str, str | None, Roles, T], Schedule | None],
    target: Target,
    sizes: Mapping[str, int],
) -> Schedule | None:
    """The schedule of a product with the tile that is estimated to be the fastest of those that fit, of parts of the sum or not.

    Args:
        user: the pointwise statement that may write the result.
        scheduled: the product with one tile, or `None` if it does not fit.
    """
    axes = (roles.row, roles.column, roles.inner)
    for tile, length in shared_sums.plans(schedule.graph.stage(name), axes, tiles, sizes, target):
        for epilogue in dict.fromkeys((user, None)):
            with suppress(CompileError):
                if length is None:
                    found = scheduled(schedule, name, epilogue, roles, tile)
                else:
                    parts, part = in_parts(schedule, name, roles.inner, length)
                    found = scheduled(parts, part, None, replace(roles, inner=f"{roles.inner}.inner"), tile)
                    found = found and side_by_side.summed(found, name, epilogue, target, sizes)
                if found is not None:
                    return found
    return None


def _tiles(stage: Stage, roles: Roles, sizes: Mapping[str, int]) -> tuple[Tile, ...]:
    """The tile for the extents of rows and columns, and smaller ones in case it does not fit."""
    bits = [extent_of(stage, roles.row, sizes), extent_of(stage, roles.column, sizes)]
    least = min(4096 if extent is None else extent for extent in bits)
    if least <= tuning.FEW:
        return ()
    if least <= TINY.rows and None not in bits:
        rows, columns = (extent or 0 for extent in bits)
        return (TINY if max(rows, columns) <= SMALL.rows else FLAT if rows < columns else TALL, SMALL)
    if least > 64 and any(read.dtype.bytes > 4 for read in stage.statement.reads()):
        return MEDIUM, SMALL  # 8 x 8 sums of 64 bits would take all registers of a thread
    return (LARGE, MEDIUM, SMALL) if least > 64 else (MEDIUM, SMALL) if least > 32 else (SMALL,)


def extent_of(stage: Stage, index: str, sizes: Mapping[str, int]) -> int | None:
    """The number of values of an index, if it is known at these sizes."""
    low, high = stage.root(index).dom
    return value_at(high - low, sizes)


def _scheduled(schedule: Schedule, name: str, user: str | None, roles: Roles, tile: Tile) -> Schedule:
    stage = schedule.graph.stage(name)
    names = [index.name for index in stage.statement.output_indices]
    schedule, copy, total, theirs = copied_out(schedule, name, user)
    place = (copy, f"{theirs[roles.column]}.inner.outer")
    schedule = _result(schedule, copy, theirs[roles.row], theirs[roles.column], tile)
    schedule = schedule.compute_at(total, *place)
    reductions = [index.name for index in stage.statement.reduction_indices if index.name != roles.inner]
    rest = [index for index in names if index not in (roles.row, roles.column)]
    inner = roles.inner
    schedule = schedule.split(total, inner, tile.depth)
    parts, rest = parts_first(stage, rest)
    loops = (*parts, *reductions, f"{inner}.outer", f"{inner}.inner", *rest, roles.row, roles.column)
    schedule = schedule.reorder(total, *loops)
    tiled = {roles.row, roles.column, inner}
    reads = {read.tensor: read for read in stage.statement.reads() if _names(read) & tiled}
    for tensor, read in reads.items():
        schedule = _operand(schedule, tensor, read, total, roles, tile)
    schedule = schedule.split(total, roles.row, tile.thread_rows).split(total, roles.column, tile.thread_columns)
    schedule = schedule.unroll(total, f"{inner}.inner", f"{roles.row}.inner", f"{roles.column}.inner")
    schedule = schedule.storage(total, "register", padded=True)
    try:
        return schedule.storage(total, whole=True)
    except CompileError:
        return schedule


def parts_first(stage: Stage, indices: list[str]) -> tuple[list[str], list[str]]:
    """The indices of a part of a sum, which decide where it ends, and the others."""
    ends = {name for value, _ in stage.limits for name in value.indices}
    return [index for index in indices if index in ends], [index for index in indices if index not in ends]


def _result(schedule: Schedule, copy: str, row: str, column: str, tile: Tile) -> Schedule:
    """Blocks and threads over the result; each thread writes its tile."""
    rest = [leaf for leaf in schedule.leaves(copy) if leaf not in (row, column)]
    schedule = schedule.reorder(copy, *rest, row, column)
    schedule, rest = fused(schedule, copy, rest)
    splits = {row: tile.rows, column: tile.columns}
    splits |= {f"{row}.inner": tile.thread_rows, f"{column}.inner": tile.thread_columns}
    *grid, inside, lane = (f"{axis}.{p}" for p in ("outer", "inner.outer", "inner.inner") for axis in (row, column))
    axes = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    bound = dict.fromkeys(rest, "blockIdx.z") | dict(zip(grid, axes, strict=True))
    tensor = schedule.graph.program.tensor(schedule.graph.stage(copy).target)
    lanes, unrolled = VECTOR_BYTES // tensor.dtype.bytes, [inside]
    if lanes < tile.thread_columns:
        splits[lane] = lanes
        unrolled, lane = [inside, f"{lane}.outer"], f"{lane}.inner"
    return formed(schedule, copy, Form(splits, unrolled=unrolled, vector=lane, bound=bound))


def _operand(schedule: Schedule, tensor: str, read: Read, total: str, roles: Roles, tile: Tile) -> Schedule:
    """A tile in shared memory, rows of the result contiguous, copied by all threads: 16 bytes each where memory is contiguous."""
    schedule, copy = added(schedule, schedule.cache_read(tensor, total))
    leaves = list(schedule.leaves(copy))
    size = read.dtype.bytes
    stages = 1 if size < REGISTER_BYTES else tuning.STAGES if size == REGISTER_BYTES else 2
    schedule = schedule.compute_at(copy, total, f"{roles.inner}.outer")
    schedule = schedule.storage(copy, "shared", padded=True, double=stages)
    contiguous = [number for number, index in enumerate(read.indices) if index_names(index) & {roles.row, roles.column}]
    if contiguous and contiguous[-1] != len(leaves) - 1:
        moved = contiguous[-1]
        order = [number for number in range(len(leaves)) if number != moved] + [moved]
        schedule = schedule.storage(copy, layout=tuple((number, 0) for number in order), pad=4)
    elif contiguous and stages > 1:
        lane = f"{leaves[-1]}.inner"
        schedule = schedule.split(copy, leaves[-1], VECTOR_BYTES // size).vectorize(copy, lane)
        leaves[-1] = f"{leaves[-1]}.outer"
    schedule, (leaf,) = fused(schedule, copy, leaves)
    rows, columns = tile.threads
    schedule = schedule.split(copy, leaf, rows * columns).split(copy, f"{leaf}.inner", columns)
    schedule = schedule.bind(copy, f"{leaf}.inner.outer", "threadIdx.y")
    return schedule.bind(copy, f"{leaf}.inner.inner", "threadIdx.x")
