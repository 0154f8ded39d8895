"""Matrix products of small types on tensor cores: tiles in shared memory, a tile of the result per warp in fragments.

    for i.outer, j.outer                  # blockIdx
      for warps                           # threadIdx.z, threadIdx.y
        C.cache[64][64] = 0               # fragment: spread over the lanes of the warp
        for k.outer                       # a pipeline of three stages
          As[i][k] = A tile; Bs[k][j] = B tile         # shared, 16 bytes per copy, chunks exchanged against bank conflicts
          for kk < 2
            Af = As rows of the warp; Bf = Bs columns of the warp         # fragments
            for i < 4, j < 8: C.cache[16*i][8*j] += Af[16*i] * Bf[8*j]    # one matrix step
        C[i][j] = C.cache[i][j]           # the statement, or the pointwise statement that uses it

Operands are `float16`, `bfloat16` and `int8`, and `float32` where the user asked for TF32. Row, column and the reduction index that
is tiled stand alone, or shifted, in one subscript of each operand; all other indices may be anything (windows, batches).

Source: PTX ISA, `mma.sync`; CUTLASS, multistage tensor-op kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tc_jupyter.program import DType, IndexVar, Read, factors_of, walk
from tc_jupyter.ranges import from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.intrinsics import STEPS
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import VECTOR_BYTES, WARP, Target
from tc_jupyter.schedule.templates.contraction import epilogue_of
from tc_jupyter.schedule.templates.form import Form, formed
from tc_jupyter.schedule.templates.stages import added, copied_out, fused

from .limits import fits_shared
from .product import Roles, cheapest, extent_of, parts_first, roles_of

FEATURES = {
    DType.FLOAT16: "mma",
    DType.BFLOAT16: "mma.bfloat16",
    DType.FLOAT32: "mma.tf32",
    DType.INT8: "mma.int8",
}
"""What a device must have for operands of a type."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows and columns of the tile of a block and of a warp; steps of the sum between two barriers, of 16-bit numbers."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int

    depth: int = 32

    @property
    def cycles(self) -> float:
        """Per step of the sum: half of what matrix steps of 16-bit numbers could do."""
        return self.rows * self.columns / 1024

    @property
    def warps(self) -> tuple[int, int]:
        """Warps along the rows and the columns."""
        return self.rows // self.warp_rows, self.columns // self.warp_columns


LARGE = Tile(128, 128, 64, 64)
"""A step of 16 takes a warp 2 + 2 kB of shared memory for 32 matrix steps; with 64 x 32 it was 2 + 1 kB for 16, which took 8 warps
192 cycles beside the 206 of their matrix steps, and reached 0.36 of what an H200 can do (4096 x 4096 x 4096)."""
MEDIUM = Tile(64, 64, 32, 32)
SMALL = Tile(32, 32, 16, 16)


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule of a product on tensor cores; `None` if the stage or the device is not made for it."""
    stage = schedule.graph.stage(name)
    roles = roles_of(stage, sizes)
    reads = _operands(schedule, stage)
    if roles is None or len(reads) != 2 or not _has_step(schedule, stage, reads, target):
        return None
    if not all(_stands_alone(read, axis) for read in reads for axis in (roles.row, roles.column, roles.inner)):
        return None

    def whole(schedule: Schedule, name: str, user: str | None, roles: Roles, tile: Tile) -> Schedule | None:
        operands = _operands(schedule, schedule.graph.stage(name))
        found = _Product(name, user, roles, tile, operands).scheduled(schedule)
        return found if fits_shared(found) else None

    user = epilogue_of(schedule, name) if _keeps_type(schedule, stage) else None
    return cheapest(schedule, name, user, roles, _tiles(stage, roles, sizes), whole, target, sizes)


def _operands(schedule: Schedule, stage: Stage) -> tuple[Read, ...]:
    """The two factors of the value; nothing if it is no product of two reads in the type of the sum."""
    total = schedule.graph.program.tensor(stage.target).dtype.compute
    return factors_of(stage.statement.value, total) if stage.statement.operator == "+" else ()


def _has_step(schedule: Schedule, stage: Stage, reads: tuple[Read, ...], target: Target) -> bool:
    """Whether the device multiplies such operands into such sums."""
    kinds = {read.dtype for read in reads}
    total = schedule.graph.program.tensor(stage.target).dtype.compute
    steps = [s for s in STEPS.values() if s.unit == "warp" and {s.left, s.right} == kinds and s.total is total]
    asked = target.tf32 or DType.FLOAT32 not in kinds
    return bool(steps) and asked and all(FEATURES[kind] in target.features for kind in kinds)


def _keeps_type(schedule: Schedule, stage: Stage) -> bool:
    """Whether the result has the type of the sum, so that its users may read the sum itself."""
    dtype = schedule.graph.program.tensor(stage.target).dtype
    return dtype is dtype.compute


def _stands_alone(read: Read, axis: str) -> bool:
    """Whether an index occurs in at most one subscript, once and with factor one: neighbours are neighbours in memory."""
    used = [index for index in read.indices if any(isinstance(n, IndexVar) and n.name == axis for n in walk(index))]
    return not used or (len(used) == 1 and step_of(from_expr(used[0]), axis) == 1)


def _tiles(stage: Stage, roles: Roles, sizes: Mapping[str, int]) -> tuple[Tile, ...]:
    extents = [extent_of(stage, axis, sizes) for axis in (roles.row, roles.column)]
    least = min(4096 if extent is None else extent for extent in extents)
    if least <= tuning.FEW:
        return ()
    return (LARGE, MEDIUM, SMALL) if least > 64 else (MEDIUM, SMALL) if least > 32 else (SMALL,)


@dataclass(frozen=True, slots=True)
class _Product:
    """One product: the stage, the pointwise statement that uses it, what is tiled how."""

    name: str
    user: str | None
    roles: Roles
    tile: Tile
    reads: tuple[Read, ...]

    def scheduled(self, schedule: Schedule) -> Schedule:
        """All steps.

        Raises:
            CompileError: a rule of schedules forbids one.
        """
        stage, roles = schedule.graph.stage(self.name), self.roles
        names = [index.name for index in stage.statement.output_indices]
        schedule, copy, total, theirs = copied_out(schedule, self.name, self.user)
        row, column = theirs[roles.row], theirs[roles.column]
        schedule = self.result(schedule, copy, row, column)
        schedule = schedule.compute_at(total, copy, f"{column}.inner.outer")
        reductions = [index.name for index in stage.statement.reduction_indices if index.name != roles.inner]
        rest = [name for name in names if name not in (roles.row, roles.column)]
        inner = roles.inner
        size = self.reads[0].dtype.bytes
        schedule = schedule.split(total, inner, 4 * VECTOR_BYTES // size).split(
            total, f"{inner}.inner", 2 * VECTOR_BYTES // size
        )
        depth = f"{inner}.inner.inner"
        parts, rest = parts_first(stage, rest)
        tiles = (f"{inner}.outer", f"{inner}.inner.outer")
        schedule = schedule.reorder(total, *parts, *reductions, *tiles, *rest, roles.row, roles.column, depth)
        for read in self.reads:
            schedule = self.operand(schedule, read, total)
        schedule = schedule.split(total, roles.row, 16).split(total, roles.column, 8)
        parts = [f"{axis}.{part}" for part in ("outer", "inner") for axis in (roles.row, roles.column)]
        schedule = schedule.reorder(total, *parts, depth)
        schedule = schedule.unroll(total, f"{inner}.inner.outer")
        return schedule.storage(total, "fragment", padded=True).storage(total, whole=True)

    def result(self, schedule: Schedule, copy: str, row: str, column: str) -> Schedule:
        """Blocks and warps over the result; each warp writes its tile."""
        rest = [leaf for leaf in schedule.leaves(copy) if leaf not in (row, column)]
        schedule = schedule.reorder(copy, *rest, row, column)
        schedule, rest = fused(schedule, copy, rest)
        splits = {row: self.tile.rows, f"{row}.inner": self.tile.warp_rows, f"{row}.inner.inner": 16}
        splits |= {column: self.tile.columns, f"{column}.inner": self.tile.warp_columns, f"{column}.inner.inner": 8}
        parts = ("outer", "inner.outer", "inner.inner.outer", "inner.inner.inner")
        order = [f"{axis}.{part}" for part in parts for axis in (row, column)]
        axes = ("blockIdx.y", "blockIdx.x", "threadIdx.z", "threadIdx.y")
        bound = dict.fromkeys(rest, "blockIdx.z") | dict(zip(order, axes, strict=False))
        return formed(schedule, copy, Form(splits, order=order[4:], unrolled=order[4:6], bound=bound))

    def operand(self, schedule: Schedule, read: Read, total: str) -> Schedule:
        """A tile in shared memory, copied by all threads, and the fragments that a warp reads of it."""
        schedule, tile = added(schedule, schedule.cache_read(read.tensor, total))
        schedule = schedule.compute_at(tile, total, f"{self.roles.inner}.outer")
        schedule = self.stored(schedule, tile, read)
        schedule, fragment = added(schedule, schedule.cache_read(tile, total))
        schedule = schedule.compute_at(fragment, total, f"{self.roles.inner}.inner.outer")
        schedule = schedule.storage(fragment, "fragment", padded=True)
        return self.copied(schedule, tile, read)

    def stored(self, schedule: Schedule, tile: str, read: Read) -> Schedule:
        """Dimensions that are tiled last; chunks of 16 bytes exchanged so that eight rows lie in all banks."""
        lengths = {
            self.roles.row: self.tile.rows,
            self.roles.column: self.tile.columns,
            self.roles.inner: 4 * VECTOR_BYTES // read.dtype.bytes,
        }
        tiled = [
            (number, lengths[node.name])
            for number, index in enumerate(read.indices)
            for node in walk(index)
            if isinstance(node, IndexVar) and node.name in lengths
        ]
        order = [n for n in range(len(read.indices)) if n not in dict(tiled)] + [number for number, _ in tiled]
        chunks = min(8, tiled[-1][1] * read.dtype.bytes // VECTOR_BYTES)
        swizzle = (3 - chunks.bit_length() + 1, chunks - 1)
        layout = None if order == sorted(order) else tuple((number, 0) for number in order)
        return schedule.storage(tile, "shared", layout=layout, padded=True, swizzle=swizzle, double=tuning.STAGES)

    def copied(self, schedule: Schedule, tile: str, read: Read) -> Schedule:
        """16 bytes per copy where the tile lies along the last dimension, the copies one after the other over the threads."""
        *outer, last = schedule.leaves(tile)
        tiled = {self.roles.row, self.roles.column, self.roles.inner}
        wide = any(isinstance(node, IndexVar) and node.name in tiled for node in walk(read.indices[-1]))
        if wide:
            schedule = schedule.split(tile, last, VECTOR_BYTES // read.dtype.bytes)
        leaves = [*outer, f"{last}.outer" if wide else last]
        schedule, (leaf,) = fused(schedule, tile, leaves)
        rows, columns = self.tile.warps
        for factor, axis in ((rows * columns * WARP, ""), (columns * WARP, "threadIdx.z"), (WARP, "threadIdx.y")):
            schedule = schedule.split(tile, leaf, factor)
            if axis:
                schedule = schedule.bind(tile, f"{leaf}.outer", axis)
            leaf = f"{leaf}.inner"
        schedule = schedule.bind(tile, leaf, "threadIdx.x")
        return schedule.vectorize(tile, f"{last}.inner") if wide else schedule


# Notes
#
# * Tiles and stages follow published kernels: 64 x 64 per warp takes up to 228 registers, so two blocks of 128 threads fit a
#   multiprocessor. Not yet timed on a GPU.
# * Reductions other than the tiled one (windows) run around the pipeline, which starts anew for each; one loop over all of them
#   would keep it full.
# * A sum whose range ends before its operands do takes `product.py`: what lies beyond is not zero.
# * The epilogue stores single elements; two neighbours of a lane could be one store.
