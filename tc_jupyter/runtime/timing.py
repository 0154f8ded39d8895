"""Measurements: candidates take turns in one process, so that a busy neighbour meets all of them alike.

Comes in: callables without arguments. Goes out: `Timing` values and a table of rows. All times are in seconds.

Worked example: `benchmark({"a": f, "b": g, "c": h})` calls `f g h, f h g, h f g, ...` in rounds and returns the shortest sample,
the median, the 10th and the 90th percentile of each. Whoever else uses the processors can only add time, so rates and ratios are
those of the shortest samples.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from .peak import STREAM_BYTES, bandwidth, fma_rate
from .threads import get_threads

_SHORTEST = 200e-6
"""A sample repeats its candidate until it lasts this long: a few thousand ticks of the clock, and still many rounds."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per call of one candidate, one sample per round, in the order of the rounds.

    Attributes:
        disturbed: samples during which somebody else used the processors, although they were taken several times.
    """

    name: str
    samples: tuple[float, ...]
    disturbed: int = 0

    @property
    def median(self) -> float:
        """Middle sample."""
        return self.percentile(50)

    @property
    def p10(self) -> float:
        """A tenth of the samples is faster."""
        return self.percentile(10)

    @property
    def p90(self) -> float:
        """A tenth of the samples is slower."""
        return self.percentile(90)

    @property
    def best(self) -> float:
        """Fastest sample."""
        return min(self.samples)

    def percentile(self, percent: float) -> float:
        """The given percentile, interpolated between samples."""
        return float(np.percentile(self.samples, percent))


def _repeats(call: Callable[[], object], synchronize: Callable[[], object]) -> int:
    """How many calls make one sample; also warms the candidate up."""
    call()
    synchronize()
    start = time.perf_counter()
    call()
    synchronize()
    once = time.perf_counter() - start
    return max(1, min(10_000, int(_SHORTEST / max(once, 1e-8))))


def _nothing() -> None:
    """The CPU needs no synchronisation."""


_TRIES = 3
"""How often a disturbed sample is taken."""
_PATIENCE = 0.25
"""Seconds that a sample waits for free processors: longer than the threads of other libraries spin."""


MOMENT = 0.12
"""What a measurement that somebody waits for spends on it: threads of OpenBLAS spin for 110 ms after a product."""


def _settled(quiet: Callable[[], bool], patience: float) -> bool:
    """Whether the processors are free, now or as soon as the threads of the last candidate sleep.

    It asks again and again instead of sleeping: after a sleep of a millisecond a product of 512 took up to 1.9 times as long.
    """
    end = time.perf_counter() + patience
    while not quiet():
        if time.perf_counter() > end:
            return False
    return True


def _sample(
    call: Callable[[], object],
    count: int,
    synchronize: Callable[[], object],
    quiet: Callable[[], bool] | None,
    tries: int,
    patience: float,
    warm: float,
) -> tuple[float, bool]:
    """Seconds per call, and whether the processors were free before, and again as soon as the candidate's own threads slept.

    Of several tries the first free or the shortest one.
    """
    shortest = float("inf")
    for _ in range(1 if quiet is None else tries):
        free = quiet is None or _settled(quiet, patience)
        if quiet is not None:
            call()
        begin = time.perf_counter() + warm
        while time.perf_counter() < begin:
            call()
        start = time.perf_counter()
        for _ in range(count):
            call()
        synchronize()
        shortest = min(shortest, (time.perf_counter() - start) / count)
        if quiet is None or (free and _settled(quiet, patience)):
            return shortest, True
    return shortest, False


def _turns(names: Sequence[str], number: int) -> Sequence[str]:
    """The order of one round: each begins with another candidate, and every second one goes backwards.

    So every candidate runs after each of its neighbours equally often and never after itself, when what it reads is in the caches.
    """
    first = number % len(names)
    turned = (*names[first:], *names[:first])
    return turned if number % 2 == 0 else turned[::-1]


def benchmark(
    candidates: Mapping[str, Callable[[], object]],
    seconds: float = 1.0,
    rounds: int | None = None,
    synchronize: Callable[[], object] = _nothing,
    quiet: Callable[[], bool] | None = None,
    least: int = 3,
    tries: int = _TRIES,
    patience: float | None = None,
    warm: float = 0.0,
) -> tuple[Timing, ...]:
    """Time all candidates in interleaved rounds.

    Args:
        seconds: about how long the whole measurement may take.
        rounds: a fixed number of rounds instead.
        synchronize: waits for a device; called after every sample.
        quiet: whether nobody else uses the processors now (`peak.quiet`): asked before and after every sample until the answer
            is yes, for as long as threads of libraries spin. A sample begins with a call that does not count, and is taken again
            if the answer stays no.
        least: rounds that are made however long they take.
        tries: how often a disturbed sample is taken.
        patience: seconds that a sample waits for `quiet`; by default longer than threads of libraries spin.
        warm: seconds of calls before each sample, which do not count: after a candidate that takes long, caches are full of what it
            read, and the processor takes a while to use wide vectors at its full speed.

    Returns:
        One `Timing` per candidate, in the given order.
    """
    repeats = {name: _repeats(call, synchronize) for name, call in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    disturbed = dict.fromkeys(candidates, 0)
    names = list(candidates)
    end = time.perf_counter() + seconds
    wait = _PATIENCE if patience is None else patience
    number = 0
    while number < (rounds or least) or (rounds is None and number < 1000 and time.perf_counter() < end):
        for name in _turns(names, number):
            found, free = _sample(candidates[name], repeats[name], synchronize, quiet, tries, wait, warm)
            samples[name].append(found)
            disturbed[name] += not free
        number += 1
    return tuple(Timing(name, tuple(samples[name]), disturbed[name]) for name in names)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a machine can do at most: operations and bytes per second."""

    flops: float
    bandwidth: float
    how: str


def roofline(flops: float, nbytes: float, limits: Limits) -> float:
    """The least time in seconds for that much arithmetic and memory traffic.

    Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", 2009.
    """
    return max(flops / limits.flops, nbytes / limits.bandwidth)


@cache
def cpu_limits() -> Limits:
    """Measure this processor once per process (about half a second): multiply-adds in registers and a copy, with all threads.

    Without LLVM these are the rates of NumPy's matrix product and of its copies.
    """
    rate, stream = fma_rate(), bandwidth()
    if rate is not None and stream is not None:
        how = f"float32 multiply-adds in registers and a copy of {STREAM_BYTES >> 20} MB with {get_threads()} threads"
        return Limits(rate, stream.best, how)
    matrix = np.ones((768, 768), np.float32)
    product, source, target = np.empty_like(matrix), np.ones(STREAM_BYTES, np.uint8), np.empty(STREAM_BYTES, np.uint8)
    times = benchmark(
        {"flops": lambda: np.matmul(matrix, matrix, out=product), "copy": lambda: np.copyto(target, source)}, rounds=7
    )
    how = f"float32 matrix product of NumPy and a copy of {STREAM_BYTES >> 20} MB with one thread"
    return Limits(2 * 768**3 / times[0].best, 2 * STREAM_BYTES / times[1].best, how)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a benchmark.

    Attributes:
        median, p10, p90: seconds.
        gbs, gflops: 10^9 bytes and operations per second of the shortest sample, from the cost of the def; `None` where it has no
            closed form.
        fraction: of the measured limit, of the shortest sample; 1 is the limit.
        agrees: whether the result is close to that of the function; `None` for the function itself.
        best: the shortest sample, in seconds.
        disturbed: part of the samples during which somebody else used the processors.
    """

    name: str
    median: float
    p10: float
    p90: float
    gbs: float | None = None
    gflops: float | None = None
    fraction: float | None = None
    agrees: bool | None = None
    best: float | None = None
    disturbed: float = 0.0


NOISY = 5.0
"""A 90th percentile of so many times the 10th one, or such a median of the shortest sample, says more about the machine than about
the candidate."""
BUSY = 0.5
"""The part of disturbed samples from which on it is told."""


def doubts(rows: Sequence[Row]) -> tuple[str, ...]:
    """Why a reader should not trust the medians of a table, one line per reason."""
    found: list[str] = []
    for row in rows:
        if row.p90 > NOISY * row.p10:
            shortest = "" if row.best is None else f", compare {duration(row.best)}, its shortest sample"
            found.append(
                f"noisy: p90 of {row.name} is {row.p90 / row.p10:.0f} times p10, do not trust its median{shortest}"
            )
        elif row.best is not None and row.median > NOISY * row.best:  # nearly all samples met somebody else
            times = f"{row.median / row.best:.0f} times its shortest sample"
            found.append(f"noisy: the median of {row.name} is {times}, do not trust it, compare {duration(row.best)}")
    busy = [f"{row.disturbed:.0%} of {row.name}" for row in rows if row.disturbed >= BUSY]
    if busy:
        found.append(f"busy: somebody else used the processors during these samples: {', '.join(busy)}")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Rows of one measurement, in the order in which the candidates were given; prints as a table.

    Attributes:
        notes: what a reader has to know about the measurement, printed below the table.
    """

    rows: tuple[Row, ...]
    limits: Limits | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = self._cells()
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        cells = ([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines)
        table = ("  ".join(line).rstrip() for line in cells)
        return "\n".join([*table, *doubts(self.rows), *self.notes])

    def _repr_html_(self) -> str:
        head, *lines = self._cells()
        row = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in line) + "</tr>" for line in lines)
        below = "".join(f"<div>{html.escape(line)}</div>" for line in (*doubts(self.rows), *self.notes))
        return f"<table><thead><tr>{row}</tr></thead><tbody>{body}</tbody></table>{below}"

    def _cells(self) -> list[list[str]]:
        head = ["name", "best", "median", "p10", "p90", "GB/s", "GFLOP/s", "of limit", "result"]
        return [head, *(_row_cells(row) for row in self.rows)]


def _row_cells(row: Row) -> list[str]:
    agreement = {None: "", True: "equal", False: "DIFFERS"}[row.agrees]
    times = ["" if row.best is None else duration(row.best), *map(duration, (row.median, row.p10, row.p90))]
    rates = ["" if value is None else f"{value:.3g}" for value in (row.gbs, row.gflops)]
    return [row.name, *times, *rates, "" if row.fraction is None else f"{row.fraction:.0%}", agreement]


def duration(seconds: float) -> str:
    """A time for people: `1.23 ms`."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def rows_of(
    timings: Sequence[Timing],
    flops: float | None,
    nbytes: float | None,
    limits: Limits | None,
    agrees: Mapping[str, bool] | None = None,
) -> tuple[Row, ...]:
    """Timings with rates: every candidate is credited with the work of the def, whatever it did, in its shortest sample."""
    rows: list[Row] = []
    for timing in timings:
        gbs = None if nbytes is None else nbytes / timing.best / 1e9
        gflops = None if flops is None else flops / timing.best / 1e9
        fraction = None
        if limits is not None and flops is not None and nbytes is not None:
            fraction = roofline(flops, nbytes, limits) / timing.best
        same = None if agrees is None else agrees.get(timing.name)
        median, p10, p90 = timing.median, timing.p10, timing.p90
        disturbed = timing.disturbed / len(timing.samples)
        rows.append(Row(timing.name, median, p10, p90, gbs, gflops, fraction, same, timing.best, disturbed))
    return tuple(rows)
