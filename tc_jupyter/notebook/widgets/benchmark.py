# ruff: noqa: E501  (an element of a picture is one line)
"""Measurements that can be watched: sizes and sweeps, engines, peers, progress with cancel, distributions, a roofline, exports.

A measurement runs on a thread in short slices, candidates in turn, so it can be stopped at any time with what was measured so far.
The specification (sizes, sweep, seed, seconds, candidates by name) is part of the export and makes the same measurement again.

Worked example:

    v = tc.view(conv, "benchmark", N=100_000, K=16, against={"numpy": lambda B, W: np.convolve(B, W[::-1], "valid")})
    v.picture.run()              # or the button
    v.picture.export()           # {"name": [...], "best": [...], "median": [...], ...} for pandas.DataFrame
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tc_jupyter.compiler.cost import cost_of
from tc_jupyter.compiler.definition import engine_of
from tc_jupyter.compiler.peers import Peer, checked_peers, checked_seconds
from tc_jupyter.diagnostics import shown_value
from tc_jupyter.diagnostics.values import one_or_more
from tc_jupyter.function import Function, OpenRanks, gpu_available
from tc_jupyter.program import DType, Program
from tc_jupyter.ranges import from_expr
from tc_jupyter.runtime import cuda, libraries, peak
from tc_jupyter.runtime.pairs import joined
from tc_jupyter.runtime.threads import get_threads
from tc_jupyter.runtime.timing import MOMENT, Limits, Row, Timing, benchmark, cpu_limits, doubts, duration, rows_of

from .background import BackgroundPicture
from .charts import MARKS, METRICS, distribution_svg, roofline_svg, sweep_svg
from .peers import SLOWEST, Make, candidates_of, usual
from .picture import BAD, GOOD, Content, Control, as_integer, code, one_line, refused_number, table, words
from .sizes import LARGEST, SizeNames, read_sizes, realistic_sizes, size_names

_SLICE = 0.15
_LARGEST_BYTES = 1 << 30
_MOST_STEPS = 16

Peers = Mapping[str, Peer]


@dataclass(slots=True)
class Measured:
    """What was measured at one set of sizes.

    Attributes:
        timings: seconds of every sample, by name.
        disturbed: samples during which somebody else used the processors, by name.
        dropped: why a candidate could not be measured, by name.
    """

    sizes: Mapping[str, int]
    timings: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    disturbed: dict[str, int] = field(default_factory=dict[str, int])
    agrees: dict[str, bool] = field(default_factory=dict[str, bool])
    dropped: dict[str, str] = field(default_factory=dict[str, str])


class BenchmarkView(BackgroundPicture):
    """One function against its peers at chosen sizes, or along a sweep of one size.

    Attributes:
        results: what was measured so far, in the order of the sweep.
    """

    name = "benchmark"
    title = "benchmark"

    def __init__(
        self,
        function: Function,
        against: Peers | None = None,
        seconds: float = 2.0,
        seed: int = 0,
        sweep: Mapping[str, Sequence[int]] | None = None,
        candidates: Sequence[str] | None = None,
        **sizes: int,
    ) -> None:
        """Set up a measurement.

        Args:
            against: by name, callables with the arguments of the function, or expressions over them (`"torch.matmul(A, B)"`)
                where the name begins with `numpy` (or `np`), `torch`, `jax` or `cupy`.
            seconds: how long to measure in all.
            sweep: one size name with its values.
            candidates: names of what is measured; the function, `against`, and NumPy where it has the same in one call.

        Raises:
            TypeError: `against` has no names, or a peer is neither a function nor an expression.
            ValueError: a name in `sweep` or `candidates` that there is not, a peer with the name of the function.
        """
        super().__init__(function)
        self.peers = checked_peers(against)
        self.seconds, self.seed = checked_seconds(seconds), seed
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = {}
        self.results: list[Measured] = []
        self.limits: Limits | None = None
        self.progress = 0.0
        self.metric = "time"
        self.swept, self.values = "", ()
        self.to, self.steps = 0, 5
        self.makes: dict[str, Make] = {}
        self.chosen: tuple[str, ...] = ()
        try:
            self.known = size_names(function.analysis)
        except OpenRanks as problem:
            self.problem = str(problem)
            return
        self.makes = candidates_of(function, self.peers)
        self.chosen = tuple(usual(function, self.peers) if candidates is None else candidates)
        missing = [name for name in self.chosen if name not in self.makes]
        if missing:
            raise ValueError(f"no candidate {missing[0]!r}; there are {', '.join(self.makes)}")
        self.sizes = realistic_sizes(self.known, sizes)
        if not isinstance(sweep, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
            raise TypeError(f"sweep={shown_value(sweep)}: expected sizes, as in `{{'N': [8, 64]}}`")
        for name, values in (sweep or {}).items():
            self._sweep_over(name, values)

    def _sweep_over(self, name: str, values: Sequence[int]) -> None:
        assert self.known is not None
        if name not in self.known.names:
            raise ValueError(f"no size {name!r}; there are {', '.join(self.known.names)}")
        program = self.known.found.program
        self.swept, self.values = name, tuple(program.numbers({name: value})[name] for value in one_or_more(values))
        if self.values:
            self.sizes[name], self.to, self.steps = self.values[0], self.values[-1], len(self.values)

    # values ----------------------------------------------------------------------------------------------------------------------

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Sizes, `sweep`, `to`, `steps`, `metric`, `use:NAME`, `run`, `cancel`."""
        del dragging
        if self.known is None:
            return
        self.sizes, self.problem = read_sizes(self.known, self.sizes, values)
        if values.get("sweep") in ("", *self.known.names):
            self.swept, self.values = str(values["sweep"]), ()
            self.to = min(self._most_swept(), 16 * max(1, self.sizes.get(self.swept, 1)))
        self._read_sweep(values)
        if values.get("metric") in METRICS:
            self.metric = str(values["metric"])
        used = {name: bool(values.get(f"use:{name}", name in self.chosen)) for name in self.makes}
        self.chosen = tuple(name for name in self.makes if used[name])
        self.obey(values, "cancel")

    def _read_sweep(self, values: Mapping[str, Any]) -> None:
        """The end and the number of steps; wrong numbers change nothing and are told."""
        for name, lowest, highest in (("to", 0, self._most_swept()), ("steps", 2, _MOST_STEPS)):
            if name not in values:
                continue
            number = as_integer(values[name])
            if number is None or not lowest <= number <= highest:
                self.problem = refused_number(f"`{name}`", lowest, highest, values[name])
            else:
                setattr(self, name, number)
                self.values = ()
        if self.swept and f"size:{self.swept}" in values:
            self.values = ()

    def _most_swept(self) -> int:
        return self.known.ends(self.swept)[1] if self.known is not None and self.swept else LARGEST

    def sweep(self) -> tuple[int, ...]:
        """The values of the swept size: those given, or `steps` values from the size to `to`, in equal ratios."""
        if not self.swept or self.values:
            return self.values
        first, last = self.sizes[self.swept], self.to
        low = max(first, 1)
        ratio = (max(last, 1) / low) ** (1 / max(1, self.steps - 1))
        inner = (round(low * ratio**n) for n in range(1, self.steps - 1))
        return tuple(dict.fromkeys([first, *inner, last]))

    # the measurement -------------------------------------------------------------------------------------------------------------

    def arguments(self, sizes: Mapping[str, int] | None = None) -> tuple[Any, ...]:
        """Arrays of the given sizes (the present ones), the same for the same seed.

        Raises:
            ValueError: they would be too large.
        """
        assert self.known is not None
        return random_arguments(self.known.found.program, self.sizes if sizes is None else sizes, self.seed)

    def run(self) -> None:
        """Measure; what fails is dropped and named.

        Raises:
            CallError, CompileError, ValueError: the function itself cannot run at these sizes, or nothing is chosen.
        """
        assert self.known is not None
        if not self.chosen:
            raise ValueError("nothing to measure: choose a candidate")
        self.results, self.progress = [], 0.0
        on_gpu = engine_of(self.function.options.target, "cpu") == "cuda"
        self.limits = None if on_gpu else cpu_limits()
        points = [{**self.sizes, self.swept: value} for value in self.sweep()] or [dict(self.sizes)]
        for number, sizes in enumerate(points):
            if self.stopping.is_set():
                return
            self._measure(sizes, number, len(points))

    def _measure(self, sizes: Mapping[str, int], number: int, points: int) -> None:
        found = Measured(dict(sizes))
        calls = self._calls(found)
        self.results.append(found)
        spent, whole = 0.0, self.seconds / points
        wait = cuda.synchronize if gpu_available() else (lambda: None)
        while spent < whole and not self.stopping.is_set() and calls:
            part = min(_SLICE * len(calls), whole - spent)
            quiet = None if self.limits is None else peak.quiet()
            for timing in benchmark(calls, part, None, wait, quiet, least=1, tries=1, patience=MOMENT):
                found.timings.setdefault(timing.name, []).extend(timing.samples)
                found.disturbed[timing.name] = found.disturbed.get(timing.name, 0) + timing.disturbed
            spent += part
            self.progress = min(1.0, (number + spent / whole) / points)
            self.changed()

    def _calls(self, found: Measured) -> dict[str, Callable[[], Any]]:
        """The chosen candidates, called once and compared with the function."""
        assert self.known is not None
        program = self.known.found.program
        own = self.arguments(found.sizes)
        arrays = dict(zip(program.parameters, own, strict=True))
        expected, judge = self.function(*own), self.function.judge(*own)
        calls: dict[str, Callable[[], Any]] = {}
        for name in self.chosen:
            try:
                if name.endswith(" on interpreter"):
                    self._refuse_long(found.sizes)
                call = self.makes[name](arrays)
                result = call()
            except Exception as problem:  # a peer is code of the user
                if name == self.function.__name__:
                    raise
                found.dropped[name] = f"{type(problem).__name__}: {one_line(problem)}"
                continue
            calls[name] = call
            if name != self.function.__name__:
                found.agrees[name] = judge(expected, result)
        return calls

    def _refuse_long(self, sizes: Mapping[str, int]) -> None:
        assert self.known is not None
        analysis = self.known.found
        flops = cost_of(analysis.program, analysis.ranges).at(self.known.all_numbers(sizes)).flops
        if flops is not None and flops > SLOWEST:
            raise ValueError(f"{flops:.2g} operations take the interpreter too long")

    # results ---------------------------------------------------------------------------------------------------------------------

    def rows(self) -> tuple[Row, ...]:
        """The table of the last set of sizes: one row per candidate."""
        return self._rows(self.results[-1]) if self.results else ()

    def _rows(self, found: Measured) -> tuple[Row, ...]:
        if self.known is None:
            return ()
        analysis = self.known.found
        counts = cost_of(analysis.program, analysis.ranges).at(self.known.all_numbers(found.sizes))
        timings = [Timing(name, tuple(each), found.disturbed.get(name, 0)) for name, each in found.timings.items()]
        return rows_of(timings, counts.flops, counts.bytes, self.limits, found.agrees)

    def specification(self) -> dict[str, Any]:
        """What makes the same measurement again: `tc.view(f, "benchmark", against=..., **specification)`."""
        swept = {"sweep": {self.swept: list(self.sweep())}} if self.swept else {}
        return {"seconds": self.seconds, "seed": self.seed, "candidates": list(self.chosen), **swept, **self.sizes}

    def export(self) -> dict[str, list[Any]]:
        """Columns of the table, ready for a data frame: sizes, then seconds, 10^9 bytes and operations per second."""
        names = ("name", "best", "median", "p10", "p90", "gbs", "gflops", "fraction", "agrees", "disturbed")
        rows = [(found.sizes, row) for found in self.results for row in self._rows(found)]
        sizes = tuple(self.sizes)
        columns = {name: [getattr(row, name) for _, row in rows] for name in names}
        return columns | {name: [at[name] for at, _ in rows] for name in sizes if name not in columns}

    def csv(self) -> str:
        """The table as text, one line per candidate and set of sizes."""
        columns = self.export()
        lines = [",".join(columns)]
        lines += [
            ",".join("" if v is None else str(v).replace(",", ";") for v in row)
            for row in zip(*columns.values(), strict=True)
        ]
        return "\n".join(lines)

    # content ---------------------------------------------------------------------------------------------------------------------

    def content(self, live: bool = False) -> Content:
        """Table, distribution, roofline, sweep."""
        if self.known is None:
            return Content(words(self.problem), text=self.problem)
        parts = [words(self.problem, "✗", BAD)] if self.problem else []
        if self.running:
            parts.append(
                f'<div><progress max="1" value="{self.progress:.2f}" aria-label="measuring"></progress> measuring: {self.progress:.0%}</div>'
            )
        results = list(self.results)
        dropped = {name: why for found in results for name, why in found.dropped.items()}
        parts += [words(f"`{name}` was dropped: {why}", "✗", BAD) for name, why in dropped.items()]
        if not any(found.timings for found in results):
            parts.append("" if self.running else words("nothing was measured yet" + (": press `run`" if live else "")))
            return Content("".join(parts), self._controls(), text="nothing was measured yet")
        parts += self._results(results)
        if live:
            buttons = " ".join(
                f'<button type="button" data-save="{kind}" data-key="save.{kind}">save {kind.upper()}</button>'
                for kind in ("csv", "svg", "png")
            )
            parts.append(f"<div>{buttons}</div>")
        data = {"csv": self.csv(), "specification": self.specification()}
        return Content("".join(parts), self._controls(), data, text=self._text(results))

    def _results(self, results: list[Measured]) -> list[str]:
        last = results[-1]
        rows = self._rows(last)
        at = ", ".join(f"{name} = {value}" for name, value in last.sizes.items())
        parts = [f"<div>at {code(at)}</div>" if at else "", _table(rows)]
        parts += [words(line, "⚠", BAD) for line in self._notes(results)]
        if len(results) > 1:
            series: dict[str, list[tuple[int, Row]]] = {}
            for found in results:
                for row in self._rows(found):
                    series.setdefault(row.name, []).append((found.sizes[self.swept], row))
            parts.append(sweep_svg(self.swept, self.metric, series))
            parts.append(_sweep_table(self.swept, series))
        samples = {name: tuple(values) for name, values in last.timings.items() if values}
        if samples:
            parts.append(distribution_svg(samples))
        if self.limits is not None:
            parts.append(self._roofline(rows, last.sizes))
        return parts

    def _notes(self, results: list[Measured]) -> list[str]:
        """What a reader has to know about the measurement, each line once."""
        told = [(line, each) for each in results for line in doubts(self._rows(each))]
        found = [line for line, _ in told]
        if len(results) > 1:  # of a sweep one line of each kind
            kinds: dict[str, tuple[str, int]] = {}
            for line, each in told:
                kinds.setdefault(line.partition(":")[0], (line, each.sizes[self.swept]))
            found = [f"{line} (first at {self.swept} = {size})" for line, size in kinds.values()]
        others = any(name != self.function.__name__ for each in results for name in each.timings)
        threads = 1 if self.limits is None else get_threads()  # a GPU has no limits here
        return [*dict.fromkeys(found), *(libraries.slowed_note(threads) if others else ())]

    def _text(self, results: list[Measured]) -> str:
        lines: list[str] = []
        for found in results:
            at = ", ".join(f"{name} = {value}" for name, value in found.sizes.items())
            lines += [f"at {at}"] if len(results) > 1 else []
            lines += [
                f"{r.name}: best {duration(r.best or r.p10)}, median {duration(r.median)} ({duration(r.p10)} to {duration(r.p90)})"
                for r in self._rows(found)
            ]
        return "\n".join([*lines, *self._notes(results)])

    def _controls(self) -> tuple[Control, ...]:
        assert self.known is not None
        controls = [_wide(control) for control in self.known.controls(self.sizes)]
        controls += [Control(f"use:{name}", "check", name, name in self.chosen) for name in self.makes]
        names = (("", "no sweep"), *((name, f"over {name}") for name in self.known.names))
        controls.append(Control("sweep", "choice", "sweep", self.swept, names))
        if self.swept:
            controls.append(
                Control("to", "size", f"{self.swept} to", self.to, high=max(4096, min(LARGEST, 2 * self.to)))
            )
            controls.append(Control("steps", "size", "steps", self.steps, low=2, high=_MOST_STEPS))
            controls.append(Control("metric", "choice", "show", self.metric, tuple(METRICS.items())))
        controls.append(Control("run", "button", "run", disabled=self.running))
        controls.append(Control("cancel", "button", "cancel", disabled=not self.running))
        return tuple(controls)

    def _roofline(self, rows: tuple[Row, ...], sizes: Mapping[str, int]) -> str:
        assert self.limits is not None
        assert self.known is not None
        found = self.known.found
        counts = cost_of(found.program, found.ranges).at(self.known.all_numbers(sizes))
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
        found: Any = _random_array(random, tensor.dtype, shape, sizes) if tensor.rank else 1
        found = joined(found) if tensor.pairs else found
        made.append(found.item() if tensor.pairs and not tensor.written_rank else found)
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
            f"{MARKS[n % len(MARKS)]} {code(row.name)}",
            "-" if row.best is None else duration(row.best), duration(row.median), duration(row.p10), duration(row.p90),
            "-" if row.gbs is None else f"{row.gbs:.3g}", "-" if row.gflops is None else f"{row.gflops:.3g}",
            "-" if row.fraction is None else f"{row.fraction:.0%}",
            {None: "", True: f'<span style="color:{GOOD}">✓</span> equal', False: f'<span style="color:{BAD}">✗</span> DIFFERS'}[row.agrees],
        ]
        for n, row in enumerate(rows)
    ]  # fmt: skip
    return table(["name", "best", "median", "p10", "p90", "GB/s", "GFLOP/s", "of limit", "result"], cells, "timings")


def _sweep_table(name: str, series: Mapping[str, Sequence[tuple[int, Row]]]) -> str:
    """The numbers of the chart: one row per size, one column per candidate."""
    values = sorted({value for found in series.values() for value, _ in found})
    at = {who: {value: row for value, row in found} for who, found in series.items()}
    rows = [[str(value), *(_cell(found.get(value)) for found in at.values())] for value in values]
    return table([name, *series], rows, f"shortest and median times over {name}")


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    rates = "" if row.gflops is None else f", {row.gflops:.3g} GFLOP/s"
    shortest = "" if row.best is None else f"{duration(row.best)}, median "
    return f"{shortest}{duration(row.median)}{rates}"
