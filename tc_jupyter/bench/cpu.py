"""The suite `cpu`: workloads against what else is installed, on one thread and on all, and the summary.

The numbers of threads of other libraries are set by their environment variables, so every number of threads has a process of its
own; in it all candidates of a workload take turns. A sample counts only if a short run of multiply-adds before and after it says
that the processors are free. Every result is compared with a reference in double precision.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tc_jupyter.compiler.agreement import close
from tc_jupyter.compiler.peers import LIBRARIES, LOOPS, installed, moved, peer_call
from tc_jupyter.function import Function, compile
from tc_jupyter.runtime import libraries, peak, threads
from tc_jupyter.runtime.timing import Limits, Row, benchmark, cpu_limits, doubts, duration, rows_of

from .pipelines import PIPELINE, pipeline_calls
from .workloads import Workload, deviation, make_data, workloads

QUIET = tuple(f"TC{number}" for number in (231, 232, 234, 235, 237, *range(321, 331)))
"""Warnings about programs that the workloads of the suites are."""
SECONDS = 1.5
"""How long one set of sizes is measured."""
LEAST_ROUNDS = 9
"""Samples per candidate at least: on a processor whose neighbours come and go one in three may be a fast one."""
EAGER = ("numpy", "torch")
"""The peers that a user of arrays would call without thinking of speed."""
TARGETS = {"best": 0.8, "eager": 0.4, "worst": 1.1}
"""Aims: means over the best peer and over the better of NumPy and PyTorch, and the slowest workload over its best peer."""


@dataclass(frozen=True, slots=True)
class Result:
    """One workload at one set of sizes on one number of threads.

    Attributes:
        named: whether the sizes are those of the suite; awkward ones are no part of the means.
        rows: this function first, then the peers.
        best, best_median: time over that of the best peer, by the shortest samples and by medians.
        eager: time over that of the better of NumPy and PyTorch, by the shortest samples.
        error: the largest error as a part of its bound.
        disturbed: part of the samples during which the processors were not free.
        round_trip: seconds that a word took from one thread to another one and back, after it.
    """

    name: str
    sizes: str
    threads: int
    named: bool
    rows: tuple[Row, ...]
    best: float | None
    best_median: float | None
    eager: float | None
    error: float | None
    disturbed: float
    round_trip: float | None = None

    @property
    def wrong(self) -> bool:
        """Whether the result is beyond its bound, or a peer has another one."""
        return (self.error or 0.0) > 1 or any(row.agrees is False for row in self.rows)

    @property
    def text(self) -> str:
        """As one line of the table."""
        ours, *peers = self.rows
        limit = "" if ours.fraction is None else f"{ours.fraction:.0%} of limit"
        rate = f"{ours.gflops:.3g} GFLOP/s" if ours.gflops else f"{ours.gbs or 0:.3g} GB/s"
        others = "  ".join(f"{row.name} {duration(row.best or row.median)}{_differs(row)}" for row in peers)
        ratios = "" if self.best is None else f"{self.best:5.2f} {self.best_median:5.2f}"
        error = (
            "no reference"
            if self.error is None
            else f"error {self.error:.2f} of its bound{' WRONG' if self.error > 1 else ''}"
        )
        busy = f"  busy {self.disturbed:.0%}" if self.disturbed else ""
        times = f"{duration(ours.best or 0):>8} {duration(ours.median):>8}"
        noisy = "".join(f"  {line}" for line in doubts(tuple(replace(row, disturbed=0.0) for row in self.rows)))
        apart = "" if self.round_trip is None else f"  threads {duration(self.round_trip)} apart"
        return f"{self.name + ', ' + self.sizes:56} {times}  {ratios:11}  {rate}  {limit}  {others}  {error}{busy}{apart}{noisy}"


def _differs(row: Row) -> str:
    return " DIFFERS" if row.agrees is False else ""


def run(json_file: str | None, only: str, thread_count: int | None, compiled: bool, suite: str = "cpu") -> int:
    """Measure, print a line per set of sizes and the summary.

    Args:
        suite: whose workloads: `cpu`, `borders` for windows that wrap around, stop at a border or go beyond it, `operands` for
            products of what is computed, chosen, or read twice, and few results of long sums, or `scatter` for histograms, sums of
            segments and positions.
        thread_count: of all libraries; `None`: first all, then one.
        compiled: measure `torch.compile` too, which takes seconds per workload.

    Returns:
        0; 1 if a result is wrong; 2 if `only` names no workload.
    """
    names = [workload.name for workload in workloads(suite)]
    if not any(only in name for name in names):
        return none_named(suite, only, names)
    machine = f"{platform.platform()}, Python {platform.python_version()}, {processor()}, {time.strftime('%Y-%m-%d')}"
    head = [machine, f"peers: {_peers(compiled)}"]
    for line in head:
        print(line)
    runs = [_child(count, only, compiled, suite) for count in counts_of(thread_count)]
    found = [each for run in runs for each in run.results]
    report(suite, [*head, *dict.fromkeys(run.kernels for run in runs)], found, summary(found), json_file)
    return 1 if any(each.wrong for each in found) else 0


def counts_of(thread_count: int | None) -> tuple[int, ...]:
    """The numbers of threads that are measured: a given one, else all threads, then one."""
    return tuple(dict.fromkeys((threads.get_threads(), 1))) if thread_count is None else (thread_count,)


def report(
    suite: str, head: Sequence[str], results: Sequence[Any], lines: Sequence[str], json_file: str | None
) -> None:
    """Print the lines of a summary, and write the results as JSON if a file is named.

    Args:
        head: lines about the machine and what is compared.
        results: dataclasses, one per line of the table.
    """
    for line in lines:
        print(line)
    if json_file is not None:
        entries = [asdict(each) for each in results]
        Path(json_file).write_text(json.dumps({"suite": suite, "head": head, "entries": entries}, indent=1))


def none_named(suite: str, only: str, names: Sequence[str]) -> int:
    """Say that `only` is part of no name, and list the names; returns the exit status."""
    known = "".join(f"\n  {name}" for name in dict.fromkeys(names))
    print(f"tc-jupyter: no line of the suite `{suite}` has {only!r} in its name; there are{known}", file=sys.stderr)
    return 2


def processor() -> str:
    """The name of the processor and the width of its vectors."""
    from tc_jupyter.runtime.cpu import cpu_target  # noqa: PLC0415  (needs LLVM)

    target = cpu_target()
    return f"{target.name}, vectors of {target.vector_bits} bits"


def _peers(compiled: bool) -> str:
    """What is installed, with versions, and what is not."""
    measured = [f"{name} {_version(name)}" for name in (*LIBRARIES, LOOPS, PIPELINE) if name != "cupy"]
    more = "torch.compile measured" if compiled else "torch.compile not measured (--compiled)"
    return ", ".join([*measured, more])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def result_of(entry: Mapping[str, Any]) -> Result:
    """A result that was written as JSON."""
    rows: Any = tuple(Row(**row) for row in entry["rows"])
    return Result(**{**entry, "rows": rows})


# one number of threads -----------------------------------------------------------------------------------------------------------

_PIN = (
    "import os; hasattr(os, 'sched_setaffinity') and os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{0}]); "
)
"""Only so many processors: XLA computes on the calling thread beside those of its pool."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process measured, and a line with the kernels that the libraries in it chose."""

    kernels: str
    results: tuple[Result, ...]


def _child(count: int, only: str, compiled: bool, suite: str = "cpu") -> Measured:
    """The results of a process whose libraries use `count` threads."""
    found = in_child("cpu", (only, count, compiled, suite), count)
    return Measured(found["kernels"], tuple(result_of(entry) for entry in found["entries"]))


def in_child(module: str, arguments: tuple[Any, ...], count: int) -> Any:
    """What `module.measure_to(file, *arguments)` writes as JSON.

    It runs in a process whose libraries use `count` threads and choose their kernels themselves, and prints its own lines.
    """
    environment = {**libraries.unslowed(), **dict.fromkeys(libraries.THREADS, str(count))}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "entries.json"
        call = f"measure_to{(str(target), *arguments)!r}"
        code = f"{_PIN.format(count)}from tc_jupyter.bench.{module} import measure_to; {call}"
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        return json.loads(target.read_text())


def measure_to(file: str, only: str, thread_count: int, compiled: bool, suite: str = "cpu") -> None:
    """Measure with this process's libraries and write the results to a file."""
    kernels = _kernels()
    print(f"\n{kernels}", flush=True)
    entries = [asdict(each) for each in _measured(only, thread_count, compiled, suite)]
    Path(file).write_text(json.dumps({"kernels": kernels, "entries": entries}))


def _kernels() -> str:
    """What the peers that are installed chose, once they are loaded."""
    for module in ("numpy", "scipy.linalg", "torch"):
        if installed(module.partition(".")[0]):
            import_module(module)
    return f"kernels: {'; '.join(libraries.kernels())}"


def _measured(only: str, thread_count: int, compiled: bool, suite: str = "cpu") -> Iterator[Result]:
    before = threads.get_threads()
    threads.set_threads(thread_count)
    if installed("torch"):
        import_module("torch").set_num_threads(thread_count)
    try:
        limits = cpu_limits()
        print(f"\n{thread_count} thread{'s' * (thread_count > 1)}: {_limits_text(thread_count)}")
        print(f"{'':56} {'shortest':>8} {'median':>8}  over the best peer (shortest, median)", flush=True)
        for workload in workloads(suite):
            if only not in workload.name:
                continue
            (function,) = compile(workload.text, target="cpu", allow=QUIET).values()
            for sizes in (*workload.sizes, *workload.awkward):
                found = measure(workload, function, sizes, thread_count, limits, compiled)
                print(found.text, flush=True)
                yield found
    finally:
        threads.set_threads(before)


def _limits_text(thread_count: int) -> str:
    rate, streams = peak.fma_rate(thread_count), peak.bandwidth(thread_count)
    if rate is None or streams is None:
        return cpu_limits().how
    copies = f"copy {streams.copy / 1e9:.3g} GB/s, past the caches {streams.copy_past / 1e9:.3g}"
    triads = f"triad {streams.triad / 1e9:.3g}, past the caches {streams.triad_past / 1e9:.3g}"
    return f"{rate / 1e9:.3g} GFLOP/s in registers; {copies}; {triads}"


def measure(
    workload: Workload,
    function: Function,
    sizes: Mapping[str, int],
    thread_count: int,
    limits: Limits,
    compiled: bool = False,
) -> Result:
    """Time one workload at one set of sizes against its peers, and judge its result."""
    arrays = make_data(workload, function, sizes)
    values = tuple(arrays.values())
    expected = function(*values)
    error = deviation(workload, arrays, sizes, expected)
    candidates, agrees = _candidates(workload, arrays, sizes, expected, compiled, function.judge(*values))
    timings = benchmark(
        {"tc_jupyter": lambda: function(*values), **candidates},
        seconds=SECONDS,
        quiet=peak.quiet(thread_count),
        least=LEAST_ROUNDS,
    )
    counts = function.cost(**dict(sizes))
    named = sizes in workload.sizes
    rows = rows_of(timings, counts.flops, counts.bytes, limits, agrees)
    taken = sum(len(timing.samples) for timing in timings)
    ours, *peers = rows
    eager = [row for row in peers if row.name in EAGER]
    return Result(
        name=workload.name,
        sizes=" ".join(f"{name}={value}" for name, value in sizes.items()),
        threads=thread_count,
        named=named,
        rows=rows,
        best=_ratio(ours, peers, lambda row: row.best),
        best_median=_ratio(ours, peers, lambda row: row.median),
        eager=_ratio(ours, eager, lambda row: row.best),
        error=error,
        disturbed=sum(timing.disturbed for timing in timings) / taken,
        round_trip=peak.round_trip(),
    )


def _candidates(
    workload: Workload,
    arrays: Mapping[str, Any],
    sizes: Mapping[str, int],
    expected: Any,
    compiled: bool,
    judge: Callable[[Any, Any], bool] = close,
) -> tuple[dict[str, Callable[[], Any]], dict[str, bool]]:
    """The calls of the peers that are installed, and whether each gives the same result."""
    calls: dict[str, Callable[[], Any]] = {}
    for library, expression in workload.peers.items():
        if library == "cupy" or not installed(library):
            continue
        if library == PIPELINE:
            calls |= pipeline_calls(expression, arrays, sizes, expected, threads.get_threads())
        else:
            calls[library] = peer_call(library, expression, moved(arrays, library), expected)
    if compiled and "torch" in calls:
        calls["torch.compile"] = import_module("torch").compile(calls["torch"])
    return calls, {name: judge(expected, call()) for name, call in calls.items()}


def _ratio(ours: Row, peers: Sequence[Row], time_of: Callable[[Row], float | None]) -> float | None:
    times = [seconds for row in peers if (seconds := time_of(row)) is not None]
    own = time_of(ours)
    return own / min(times) if times and own is not None else None


# summary -------------------------------------------------------------------------------------------------------------------------


def geometric_mean(values: Sequence[float]) -> float:
    """The n-th root of the product."""
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(results: Sequence[Result]) -> list[str]:
    """Means and the slowest workloads per number of threads, each with its aim."""
    lines: list[str] = []
    for count in dict.fromkeys(each.threads for each in results):
        mine = [each for each in results if each.threads == count and each.named]
        best = [each.best for each in mine if each.best is not None]
        medians = [each.best_median for each in mine if each.best_median is not None]
        eager = [each.eager for each in mine if each.eager is not None]
        if not best:
            continue
        shortest, middle, simple = geometric_mean(best), geometric_mean(medians), geometric_mean(eager)
        lines += [
            "",
            f"{count} thread{'s' * (count > 1)}, {len(mine)} workloads, time over that of the peer (shortest samples, medians):",
            f"  best of all peers: geometric mean {shortest:.2f} {middle:.2f}, aim {TARGETS['best']}",
            f"  better of NumPy and PyTorch: geometric mean {simple:.2f}, aim {TARGETS['eager']}",
        ]
        slow = sorted(
            (each for each in mine if (each.best or 0) > TARGETS["worst"]), key=lambda each: -(each.best or 0)
        )
        lines += [f"  above {TARGETS['worst']}: {each.name}, {each.sizes}: {each.best:.2f}" for each in slow]
        worst = max((each.error or 0.0 for each in results if each.threads == count), default=0.0)
        lines.append(f"  largest error: {worst:.2f} of its bound")
    return lines


def markdown(runs: Sequence[Sequence[Result]]) -> str:
    """The table of the page of measurements: per workload and number of threads the shortest time, and the ratio of every run."""
    first = [each for each in runs[0] if each.named]
    counts = list(dict.fromkeys(each.threads for each in first))
    lines = [
        "| | " + " | ".join(f"{count} thread{'s' * (count > 1)} | over the best peer" for count in counts) + " |",
        "|---" * (1 + 2 * len(counts)) + "|",
    ]
    for name, sizes in dict.fromkeys((each.name, each.sizes) for each in first):
        cells = [f"{name}, {sizes}"]
        for count in counts:
            found = [
                each for run in runs for each in run if (each.name, each.sizes, each.threads) == (name, sizes, count)
            ]
            cells += _cells(found)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"* {line}" for line in _means(runs, counts))])


def _cells(found: Sequence[Result]) -> list[str]:
    """Time and ratios of one workload in every run."""
    if not found or found[0].best is None:
        return ["", ""]
    rival = min(found[0].rows[1:], key=lambda row: row.best or float("inf"))
    shortest = min(each.rows[0].best or float("inf") for each in found)
    return [duration(shortest), f"{', '.join(f'{each.best or 0:.2f}' for each in found)} {rival.name}"]


def _means(runs: Sequence[Sequence[Result]], counts: Sequence[int]) -> Iterator[str]:
    for count in counts:
        mine = [[each for each in run if each.named and each.threads == count] for run in runs]
        best = ", ".join(f"{geometric_mean([each.best for each in run if each.best]):.2f}" for run in mine)
        eager = ", ".join(f"{geometric_mean([each.eager for each in run if each.eager]):.2f}" for run in mine)
        yield (
            f"{count} thread{'s' * (count > 1)}: geometric mean over the best peer {best} (aim {TARGETS['best']}), over the better "
            f"of NumPy and PyTorch {eager} (aim {TARGETS['eager']})"
        )


def main(files: Sequence[str]) -> int:
    """Print the table of files that `--json` wrote, one per run: `python -m tc_jupyter.bench.cpu FILE FILE`.

    Above it stands what the runs say of the machine, the versions, and the kernels of the peers, each line once.
    """
    runs = [json.loads(Path(file).read_text()) for file in files]
    for line in dict.fromkeys(line for run in runs for line in run.get("head", ())):
        print(f"* {line}")
    print()
    print(markdown([[result_of(entry) for entry in run["entries"]] for run in runs]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
