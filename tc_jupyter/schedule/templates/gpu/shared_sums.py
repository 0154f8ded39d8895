"""How a GPU is filled: what work costs on it, by which sums are shared and tiles are chosen.

Where there are fewer blocks than multiprocessors some have nothing to do, and where a thread adds a long sum alone it waits for
memory most of the time. Such a sum is cut into parts: over the threads of a block, which combine them on the spot, and over blocks,
whose partial results a second kernel adds in their order, so that every run gives the same bits.

All of it is estimated in cycles of a multiprocessor, which is enough to compare two schedules of one statement: the rule is here
alone, and what it knows of a device is in `Target`. Sizes that are not known count as large.

Worked example: `C(i,j) +=! A(i,k) * B(j,k)` of 128 x 128 results and 2048 steps has 4 tiles of 64 x 64, which 132 multiprocessors
take 2048 * 68 * 1.15 cycles for. In 32 parts of 64 steps there are 128 tiles: 64 * 68 * 1.15 cycles, and a second kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil, hypot, prod
from typing import Protocol, TypeVar

from tc_jupyter.ranges import value_at
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import MULTIPROCESSOR_THREADS, WARP, Target
from tc_jupyter.schedule.templates.stages import added

UNKNOWN = {"output": tuning.UNKNOWN_SIZE, "reduction": tuning.TOLD_APART}
"""The extent of an index that is not known: results fill any device, and a sum is not worth a cut."""


def extents(stage: Stage, kind: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """The number of values of the indices of a kind (`output`, `reduction`)."""
    found: dict[str, int] = {}
    for root in stage.roots:
        if root.kind == kind:
            length = value_at(root.extent, sizes)
            found[root.name] = UNKNOWN[kind] if length is None else max(1, length)
    return found


def cycles_of_blocks(blocks: int, cycles: float, target: Target) -> float:
    """Until all blocks of a kernel are done."""
    rounds = blocks / target.multiprocessors
    if rounds <= tuning.EVEN:
        rounds = tuning.UNHIDDEN if rounds <= 1 else ceil(rounds)
    return tuning.START + cycles * rounds


def cycles_of_parts(parts: int, results: int, size: int, target: Target) -> float:
    """What a further kernel takes that adds the parts, which are written and read once."""
    if parts == 1:
        return 0.0
    moved = 2 * parts * results * size / (tuning.BYTES_PER_CYCLE * target.multiprocessors)
    return tuning.LAUNCH + moved + -(-parts // WARP) * tuning.WAIT


def lengths(steps: int, least: int) -> Iterator[int]:
    """Of the parts of a sum: all of it, and shorter ones that are powers of two."""
    yield steps
    length = least
    while length < steps:
        yield length
        length *= 2


class Tiled(Protocol):
    """The part of a product that a block computes."""

    @property
    def rows(self) -> int:
        """Of the result."""
        ...

    @property
    def columns(self) -> int:
        """Of the result."""
        ...

    @property
    def depth(self) -> int:
        """Steps of the sum between two barriers."""
        ...

    @property
    def cycles(self) -> float:
        """Per step of the sum."""
        ...


T = TypeVar("T", bound=Tiled)


def plans(
    stage: Stage, axes: tuple[str, str, str], tiles: Iterable[T], sizes: Mapping[str, int], target: Target
) -> list[tuple[T, int | None]]:
    """Tiles of a product, each with the steps of the part of the sum of a block (`None` for all); the fastest comes first.

    Args:
        axes: row and column of the tile, and the reduction index that is split.
    """
    row, column, inner = axes
    outputs, sums = extents(stage, "output", sizes), extents(stage, "reduction", sizes)
    results, steps = prod(outputs.values()), sums[inner]
    around, others = prod(sums.values()) // steps, results // (outputs[row] * outputs[column])
    size = bytes_of_step(stage)

    def cycles(plan: tuple[T, int | None]) -> float:
        tile, length = plan[0], plan[1] or steps
        parts = -(-steps // length)
        blocks = -(-outputs[row] // tile.rows) * -(-outputs[column] // tile.columns) * others * parts
        own = around * (length * tile.cycles + -(-length // tile.depth) * tuning.STEP)
        return cycles_of_blocks(blocks, own, target) + cycles_of_parts(parts, results, size, target)

    found = [
        (tile, None if length == steps else length)
        for tile in tiles
        for length in lengths(steps, (tuning.STAGES + 1) * tile.depth)
    ]
    return sorted(found, key=cycles)


def in_parts(schedule: Schedule, name: str, index: str, length: int) -> tuple[Schedule, str]:
    """A sum as partial sums of `length` steps each, in memory, and their sum; also the stage of the partial sums.

    Their loop over a part is `INDEX.inner`.

    Raises:
        CompileError: a rule of schedules forbids a step.
    """
    schedule = schedule.split(name, index, length)
    schedule, part = added(schedule, schedule.rfactor(name, f"{index}.outer"))
    return schedule.storage(part, "global"), part


@dataclass(frozen=True, slots=True)
class Shares:
    """How one sum is shared.

    Attributes:
        threads: of a block that have a part of it.
        length: steps of the part of a block; `None` if a block has all.
    """

    threads: int
    length: int | None


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums that are to be shared.

    Attributes:
        results, steps: how many there are, and of how many steps of the loop that is shared each.
        around: steps of the other loops of a sum.
        size: bytes of what is read per step.
        lanes: results of one thread.
        side: results side by side of a block, on average, for which there are as many threads as the next power of two.
    """

    results: int
    steps: int
    size: int
    around: int = 1
    lanes: int = 1
    side: float = 1

    def cycles(self, share: Shares, target: Target) -> float:
        """Until all have been added."""
        length = share.length or self.steps
        parts = -(-self.steps // length)
        wide = 1 << (ceil(self.side / self.lanes) - 1).bit_length()
        warps = parts * self.results / self.side * max(1.0, wide * share.threads / WARP)
        own = -(-length // share.threads) * self.around * tuning.WAIT + tuning.PER_PART * min(share.threads, WARP)
        own += tuning.COMBINING if share.threads > 1 else 0
        waited = max(1.0, warps * WARP / (MULTIPROCESSOR_THREADS * target.multiprocessors)) * own
        moved = self.results * self.steps * self.around * self.size / (tuning.BYTES_PER_CYCLE * target.multiprocessors)
        return tuning.START + hypot(waited, moved) + cycles_of_parts(parts, self.results, self.size, target)


def shares(sums: Sums, target: Target, threads: Callable[[int], bool]) -> Shares:
    """The cheapest way to share sums.

    Args:
        threads: whether so many threads may share the part of a block.
    """
    least = max(1, tuning.FEW // sums.around)
    found = [
        Shares(number, None if length == sums.steps else length)
        for number in (1 << power for power in range(11))
        if threads(number)
        for length in lengths(sums.steps, least * number)
    ]
    return min(found, key=lambda share: sums.cycles(share, target))


def bytes_of_step(stage: Stage) -> int:
    """Bytes of the widest element that a step reads."""
    return max((read.dtype.bytes for read in stage.statement.reads() if read.indices), default=0)


def results_of(stage: Stage, sizes: Mapping[str, int]) -> int:
    """How many results a stage has."""
    return prod(extents(stage, "output", sizes).values())


def steps_of(stage: Stage, sizes: Mapping[str, int]) -> int:
    """How many values each result of a stage combines."""
    return prod(extents(stage, "reduction", sizes).values())
