# ruff: noqa: E501  (an element of a picture is one line)
"""Measurements that can be watched: sizes, peers, progress with cancel, the distribution of timings, a roofline, exports.

A measurement runs on a thread in short slices, candidates in turn, so it can be stopped at any time with what was measured so far.
The specification (sizes, seed, seconds, peers by name) is part of the export and makes the same measurement again.

Worked example:

    v = tc.view(conv, "benchmark", N=100_000, K=16, against={"numpy": lambda B, W: np.convolve(B, W[::-1], "valid")})
    v.picture.run()              # or the button
    v.picture.export()           # {"name": [...], "median": [...], ...} for pandas.DataFrame
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tc_jupyter.compiler.cost import cost_of
from tc_jupyter.compiler.definition import engine_of
from tc_jupyter.function import Function, OpenRanks, close
from tc_jupyter.program import DType, Program
from tc_jupyter.ranges import from_expr
from tc_jupyter.runtime import cuda
from tc_jupyter.runtime.timing import Limits, Row, Timing, benchmark, cpu_limits, duration, rows_of

from .picture import ACCENT, BAD, GOOD, LINE, Content, Control, Picture, code, one_line, table, words
from .sizes import SizeNames, example_sizes, read_sizes, size_names

_SLICE = 0.15
_LARGEST_BYTES = 1 << 30
_MARKS = ("●", "■", "▲", "◆", "▼", "✚")

Peers = Mapping[str, Callable[..., Any]]


class BenchmarkView(Picture):
    """One function against its peers at chosen sizes.

    Attributes:
        timings: what was measured so far, by name.
    """

    name = "benchmark"
    title = "benchmark"

    def __init__(
        self, function: Function, against: Peers | None = None, seconds: float = 2.0, seed: int = 0, **sizes: int
    ) -> None:
        """`against`: callables with the arguments of the function, by name; `seconds`: how long to measure."""
        super().__init__(function)
        self.peers = dict(against or {})
        self.seconds, self.seed = seconds, seed
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = {}
        self.timings: dict[str, list[float]] = {}
        self.agrees: dict[str, bool] = {}
        self.dropped: dict[str, str] = {}
        self.limits: Limits | None = None
        self.measured_at: dict[str, int] = {}
        self.progress = 0.0
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._changed: Callable[[], None] = lambda: None
        try:
            self.known = size_names(function.analysis)
        except OpenRanks as problem:
            self.problem = str(problem)
            return
        self.sizes = example_sizes(self.known, sizes)

    def on_change(self, changed: Callable[[], None]) -> None:
        """Called when a measurement has made progress."""
        self._changed = changed

    @property
    def running(self) -> bool:
        """Whether a measurement runs now."""
        return self._thread is not None and self._thread.is_alive()

    # values ----------------------------------------------------------------------------------------------------------------------

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Sizes, `run`, `cancel`."""
        del dragging
        if self.known is None:
            return
        self.sizes, self.problem = read_sizes(self.known, self.sizes, values)
        if values.get("cancel"):
            self._cancel.set()
        if values.get("run") and not self.running:
            self._cancel.clear()
            self._thread = threading.Thread(target=self._run_watched, name="tc-benchmark", daemon=True)
            self._thread.start()

    def _run_watched(self) -> None:
        try:
            self.run()
        except Exception as problem:  # told in the view: nobody sees a traceback of this thread
            self.problem = one_line(problem)
        self._thread = None
        self._changed()

    def arguments(self) -> tuple[Any, ...]:
        """Arrays of the present sizes, the same for the same seed.

        Raises:
            ValueError: they would be too large.
        """
        assert self.known is not None
        return random_arguments(self.known.found.program, self.sizes, self.seed)

    def run(self) -> None:
        """Measure; what fails is dropped and named.

        Raises:
            CallError, CompileError, ValueError: the function itself cannot run at these sizes.
        """
        assert self.known is not None
        arrays = self.arguments()
        self.timings, self.agrees, self.dropped, self.progress = {}, {}, {}, 0.0
        self.measured_at = dict(self.sizes)
        expected = self.function(*arrays)
        calls: dict[str, Callable[[], Any]] = {self.function.__name__: lambda: self.function(*arrays)}
        for name, peer in self.peers.items():
            try:
                self.agrees[name] = close(expected, peer(*arrays))
                calls[name] = lambda peer=peer: peer(*arrays)
            except Exception as problem:  # a peer is code of the user
                self.dropped[name] = f"{type(problem).__name__}: {one_line(problem)}"
        on_gpu = engine_of(self.function.options.target, "cpu") == "cuda"
        wait = cuda.synchronize if on_gpu else (lambda: None)
        self.limits = None if on_gpu else cpu_limits()
        spent = 0.0
        while spent < self.seconds and not self._cancel.is_set():
            part = min(_SLICE * len(calls), self.seconds - spent)
            for timing in benchmark(calls, part, synchronize=wait):
                self.timings.setdefault(timing.name, []).extend(timing.samples)
            spent += part
            self.progress = min(1.0, spent / self.seconds)
            self._changed()

    # results ---------------------------------------------------------------------------------------------------------------------

    def rows(self) -> tuple[Row, ...]:
        """The table: one row per candidate."""
        if self.known is None or not self.timings:
            return ()
        found = self.known.found
        numbers = {**self.measured_at, **{n: v for n, v in self.known.all_numbers(self.measured_at).items()}}
        counts = cost_of(found.program, found.ranges).at(numbers)
        timings = [Timing(name, tuple(samples)) for name, samples in self.timings.items()]
        return rows_of(timings, counts.flops, counts.bytes, self.limits, self.agrees)

    def specification(self) -> dict[str, Any]:
        """What makes the same measurement again: `tc.view(f, "benchmark", against=..., **specification)`."""
        return {"seconds": self.seconds, "seed": self.seed, **self.sizes}

    def export(self) -> dict[str, list[Any]]:
        """Columns of the table, ready for a data frame; seconds, 10^9 bytes and operations per second."""
        names = ("name", "median", "p10", "p90", "gbs", "gflops", "fraction", "agrees")
        return {name: [getattr(row, name) for row in self.rows()] for name in names}

    def csv(self) -> str:
        """The table as text, one line per candidate."""
        columns = self.export()
        lines = [",".join(columns)]
        lines += [
            ",".join("" if v is None else str(v).replace(",", ";") for v in row)
            for row in zip(*columns.values(), strict=True)
        ]
        return "\n".join(lines)

    # content ---------------------------------------------------------------------------------------------------------------------

    def content(self, live: bool = False) -> Content:
        """Table, distribution, roofline."""
        if self.known is None:
            return Content(words(self.problem), text=self.problem)
        parts = [words(self.problem, "✗", BAD)] if self.problem else []
        controls = (
            *(_wide(control) for control in self.known.controls(self.sizes)),
            Control("run", "button", "run", disabled=self.running),
            Control("cancel", "button", "cancel", disabled=not self.running),
        )
        if self.running:
            parts.append(
                f'<div><progress max="1" value="{self.progress:.2f}" aria-label="measuring"></progress> measuring: {self.progress:.0%}</div>'
            )
        parts += [words(f"`{name}` was dropped: {why}", "✗", BAD) for name, why in self.dropped.items()]
        rows = self.rows()
        if not rows:
            parts.append("" if self.running else words("nothing was measured yet" + (": press `run`" if live else "")))
            return Content("".join(parts), controls, text="nothing was measured yet")
        at = ", ".join(f"{name} = {value}" for name, value in self.measured_at.items())
        parts.append(f"<div>at {code(at)}</div>" if at else "")
        parts.append(_table(rows))
        parts.append(distribution_svg({name: tuple(samples) for name, samples in self.timings.items()}))
        if self.limits is not None:
            parts.append(self._roofline(rows))
        if live:
            parts.append(
                '<div><button type="button" data-save="csv">save CSV</button> <button type="button" data-save="svg">save SVG</button></div>'
            )
        text = "\n".join(f"{r.name}: {duration(r.median)} ({duration(r.p10)} to {duration(r.p90)})" for r in rows)
        return Content("".join(parts), controls, {"csv": self.csv(), "specification": self.specification()}, text=text)

    def _roofline(self, rows: tuple[Row, ...]) -> str:
        assert self.limits is not None
        assert self.known is not None
        found = self.known.found
        counts = cost_of(found.program, found.ranges).at(self.known.all_numbers(self.measured_at))
        if not counts.flops or not counts.bytes:
            return words("no roofline: the cost of this def has no closed form, or no arithmetic")
        return roofline_svg(rows, float(counts.flops) / float(counts.bytes), self.limits)


def _wide(control: Control) -> Control:
    value = int(control.value)
    return Control(control.name, control.kind, control.label, value, high=max(4096, value * 2))


def random_arguments(program: Program, sizes: Mapping[str, int], seed: int = 0) -> tuple[Any, ...]:
    """Arguments of a def at given sizes: floats between -1 and 1, small integers for the rest.

    Raises:
        ValueError: more than 1 GiB, or a dtype that NumPy has not.
    """
    made: list[Any] = []
    random = np.random.default_rng(seed)
    tensors = {name: program.tensor(name) for name in program.parameters}
    shapes = {
        name: tuple(max(0, from_expr(dim).evaluate(sizes)) for dim in t.dims or ()) for name, t in tensors.items()
    }
    if sum(math.prod(shapes[name]) * t.dtype.bytes for name, t in tensors.items()) > _LARGEST_BYTES:
        raise ValueError(f"the arguments would have more than {_LARGEST_BYTES >> 30} GiB: choose smaller sizes")
    for name, tensor in tensors.items():
        shape = shapes[name]
        if not tensor.rank and name in sizes:
            made.append(sizes[name])
            continue
        made.append(_random_array(random, tensor.dtype, shape, sizes) if tensor.rank else 1)
    return tuple(made)


def _random_array(
    random: np.random.Generator, dtype: DType, shape: tuple[int, ...], sizes: Mapping[str, int]
) -> NDArray[Any]:
    if dtype.is_float:
        values = random.uniform(-1, 1, shape)
        if dtype is DType.BFLOAT16:
            import ml_dtypes  # noqa: PLC0415

            return values.astype(ml_dtypes.bfloat16)
        return values.astype(dtype.value)
    # index tensors are common: numbers that are inside whatever they index, as far as sizes tell
    smallest = max(1, min(sizes.values(), default=1))
    return random.integers(0, 2 if dtype is DType.BOOL else min(smallest, 100), shape).astype(dtype.value)


def _table(rows: tuple[Row, ...]) -> str:
    cells = [
        [
            f"{_MARKS[n % len(_MARKS)]} {code(row.name)}",
            duration(row.median), duration(row.p10), duration(row.p90),
            "-" if row.gbs is None else f"{row.gbs:.3g}", "-" if row.gflops is None else f"{row.gflops:.3g}",
            "-" if row.fraction is None else f"{row.fraction:.0%}",
            {None: "", True: f'<span style="color:{GOOD}">✓</span> equal', False: f'<span style="color:{BAD}">✗</span> DIFFERS'}[row.agrees],
        ]
        for n, row in enumerate(rows)
    ]  # fmt: skip
    return table(["name", "median", "p10", "p90", "GB/s", "GFLOP/s", "of limit", "result"], cells, "timings")


def distribution_svg(samples: Mapping[str, tuple[float, ...]]) -> str:
    """One row per candidate on a common logarithmic axis: every sample as a tick, p10 to p90 as a box, the median as a line."""
    everything = [value for values in samples.values() for value in values]
    low, high = math.log10(max(min(everything), 1e-12)), math.log10(max(*everything, 1e-12))
    span = max(high - low, 0.05)
    place = lambda value: 130 + (math.log10(max(value, 1e-12)) - low) / span * 420  # noqa: E731
    parts: list[str] = []
    said: list[str] = []
    for n, (name, values) in enumerate(samples.items()):
        y = 10 + n * 30
        timing = Timing(name, values)
        step = max(1, len(values) // 150)
        ticks = "".join(f"M{place(v):.1f} {y + 2}v16" for v in sorted(values)[::step])
        parts.append(
            f'<text x="2" y="{y + 14}" font-size="11" fill="currentColor">{_MARKS[n % len(_MARKS)]} {escape(name[:16])}</text>'
            f'<path data-samples="{escape(name)}" d="{ticks}" stroke="currentColor" opacity=".3"/>'
            f'<rect x="{place(timing.p10):.1f}" y="{y + 4}" width="{max(1.0, place(timing.p90) - place(timing.p10)):.1f}" height="12" '
            f'fill="{ACCENT}" fill-opacity=".35" stroke="{LINE}"/>'
            f'<path d="M{place(timing.median):.1f} {y}v20" stroke="currentColor" stroke-width="2.5"/>'
        )
        said.append(f"{name}: median {duration(timing.median)}, {len(values)} samples")
    y = 14 + len(samples) * 30
    for exponent in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**exponent
            if low - 0.001 <= math.log10(value) <= low + span + 0.001:
                parts.append(
                    f'<path d="M{place(value):.1f} 6V{y}" stroke="{LINE}"/><text x="{place(value):.1f}" y="{y + 12}" font-size="9" text-anchor="middle" fill="currentColor">{duration(value)}</text>'
                )
    label = "; ".join(said)
    return f'<svg data-chart="distribution" role="img" aria-label="{escape(label)}" width="570" height="{y + 18}" viewBox="0 0 570 {y + 18}" style="max-width:100%;color:inherit">{"".join(parts)}</svg>'


def roofline_svg(rows: tuple[Row, ...], intensity: float, limits: Limits) -> str:
    """Operations per second against operations per byte, with the measured limits of this machine, both logarithmic."""
    ridge = limits.flops / limits.bandwidth
    left, right = math.log10(min(intensity, ridge) / 8), math.log10(max(intensity, ridge) * 8)
    top = math.log10(limits.flops * 2)
    reached = [row.gflops * 1e9 for row in rows if row.gflops]
    bottom = math.log10(max(1.0, min([limits.bandwidth * 10**left, *reached]) / 2))

    def at(x: float, y: float) -> tuple[float, float]:
        return 50 + (math.log10(x) - left) / (right - left) * 380, 12 + (top - math.log10(y)) / (top - bottom) * 150

    x0, y0 = at(10**left, limits.bandwidth * 10**left)
    x1, y1 = at(ridge, limits.flops)
    x2, y2 = at(10**right, limits.flops)
    parts = [
        f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" fill="none" stroke="currentColor" stroke-width="2"/>'
    ]
    for n, row in enumerate(rows):
        if row.gflops:
            x, y = at(intensity, row.gflops * 1e9)
            parts.append(
                f'<text data-roof="{escape(row.name)}" x="{x:.1f}" y="{y + 4:.1f}" font-size="12" text-anchor="middle" fill="currentColor">{_MARKS[n % len(_MARKS)]}</text>'
            )
    parts.append(
        f'<text x="240" y="180" font-size="10" text-anchor="middle" fill="currentColor">operations per byte (here {intensity:.3g}; ridge {ridge:.3g})</text>'
    )
    parts.append(
        f'<text x="{x2 - 4:.1f}" y="{y2 - 4:.1f}" font-size="10" text-anchor="end" fill="currentColor">{limits.flops / 1e9:.3g} GFLOP/s, {limits.bandwidth / 1e9:.3g} GB/s</text>'
    )
    label = (
        "roofline: "
        + "; ".join(f"{row.name} {row.gflops:.3g} GFLOP/s" for row in rows if row.gflops)
        + f"; limits: {limits.how}"
    )
    return f'<div><svg data-chart="roofline" role="img" aria-label="{escape(label)}" width="440" height="186" viewBox="0 0 440 186" style="max-width:100%;color:inherit">{"".join(parts)}</svg></div>'
