"""How many rows and vectors of a result a CPU keeps in registers while all reduction loops run.

Worked example: for a large product of floats with AVX-512, whose 32 registers have 16 lanes, 8 rows of 2 vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tc_jupyter.ranges import MANY, Fact
from tc_jupyter.schedule import tuning
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


def lies_in_rows(target: Target, bits: int, columns: Fact | None) -> bool:
    """Whether rows are read and written where they lie, without room for the last tile.

    Its last lanes are masked where that costs nothing. Else it begins earlier, inside the one before it (`codegen.llvm.overlap`),
    and only a row that is shorter than a tile takes masks.
    """
    fits = columns is None or columns.typical >= max(1, target.vector_bits // bits)
    return target.free_masks or (target.has_masks(bits) and fits)


def tile_of(
    target: Target, bits: int, rows: Fact | None, columns: Fact | None, has_rows: bool = True, within_row: bool = False
) -> Tile:
    """The register tile with the fewest cycles: accumulators, one row of the column operand and a broadcast must fit the registers.

    A step over the reduction costs `rows*vectors/2` cycles of multiply-adds, or its loads at two per cycle, or the latency of four
    cycles with two units, whichever is most. Sizes that are not known count as large. With 16 registers tiles may be flat, and the
    column operand, which comes from the second cache, limits them: measured with AVX2, a convolution 8 x 32 x 28 x 28 to 64
    channels, in tiles of 4 x 2 0.9 of the time of 2 x 4, of 13 x 1 0.94.

    Args:
        bits: width of an element of the sum.
        rows, columns: extents of the two indices, if known.
        has_rows: there is a row operand; without one the tile has one row.
        within_row: no tile is longer than a row.
    """
    lanes = max(1, target.vector_bits // bits)
    most_rows, most_columns = (MANY if each is None else each.typical for each in (rows, columns))
    longest = columns.least if within_row and columns is not None else most_columns * lanes
    best: tuple[float, int, int] | None = None
    for height, width in product(
        range(1, 15) if has_rows else (1,), range(1, tuning.ABREAST + 1) if has_rows else (1, 2, 4, 8)
    ):
        if height * width + width + 1 > target.vector_registers or width * lanes > max(lanes, longest):
            continue
        steps = -(-most_rows // height) * -(-most_columns // (width * lanes))
        cycles = max(height * width / 2, (height + width) / 2, 4.0)
        if (
            target.vector_registers < 32
        ):  # loads a little above two per cycle: of two tiles with as many cycles the squarer one
            cycles = max(cycles, 0.52 * (height + width), 1.5 * width)
        found = (steps * cycles, width, -height)
        if best is None or found < best:
            best = found
    assert best is not None
    height, width = -best[2], best[1]
    tasks = target.threads * tuning.TASKS_PER_THREAD
    tiles = tuning.ROWS_TOGETHER if rows is None else max(1, min(tuning.ROWS_TOGETHER, most_rows // (height * tasks)))
    return Tile(height, width, lanes, height * tiles)


def small_tile(target: Target, bits: int, rows: Fact, columns: Fact) -> Tile:
    """The register tile of a product whose operands are not packed; as wide as it may be, since every row has a pointer.

    Without free masks a tile is no longer than a row, and its vectors are a power of two, which need no loop. Measured with AVX2,
    products of 64 x 64 x 64: 4 x 2 0.95 of the time of 6 x 2; with AVX-512 a step takes two cycles beside its multiply-adds, and of
    long rows two vectors leave less of the last tile empty: 9 x 2 0.82 of the time of 6 x 4 for 80 x 80 x 80, 0.94 for 200. Where
    vectors are halves these cycles are hidden, and low tiles leave fewer rows empty (Zen 4: 4 x 2 for 9 x 2 0.75 of the time of
    20 x 64 x 26, 1.07 of 17 rows; 4 x 4 for 6 x 4 0.94 of 64 x 64 x 64).
    """
    lanes = max(1, target.vector_bits // bits)
    most = rows.typical, columns.typical
    long = target.free_masks and most[1] > tuning.TOLD_APART
    lengths = (most[1],) if long else columns.values
    most_vectors = max(1, -(-most[1] // lanes) if target.free_masks else lengths[0] // lanes)
    several = (1, 2) if long and most[0] >= 8 else (1, 2, 3, 4)
    widths = [w for w in several if w <= most_vectors and (target.free_masks or w != 3)]
    beside = 2 if target.free_masks and not target.halves_vectors else 0

    def row(extent: int, height: int, width: int) -> float:
        """Cycles of a step along a row; with free masks the last tile may be half of one (`codegen.llvm.half_tiles`)."""
        whole, rest = divmod(extent, width * lanes)
        halved = target.free_masks and width % 2 == 0 and rest <= width * lanes // 2
        parts = [width] * whole + [width // 2 if halved else width] * (rest > 0)
        return sum(beside + max(height * part / 2, height / 2 + part, 4.0) for part in parts)

    def cost(tile: tuple[int, int]) -> tuple[float, int, int]:
        """Cycles; of tiles that take as many the wider one, which reads the operands less often, and the higher one
        where vectors are halved, else the lower one.
        """
        height, width = tile
        steps = sum(-(-extent // height) for extent in rows.values)
        cycles = steps * sum(row(extent, height, width) for extent in lengths)
        return cycles, -width, -height if target.halves_vectors else height

    tiles = product(range(1, tuning.MOST_POINTERS + 1), widths)
    height, width = min((t for t in tiles if t[0] * t[1] + t[1] + 1 <= target.vector_registers), key=cost)
    return Tile(height, width, lanes, height)
