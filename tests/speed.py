"""The time of one random program over that of its C loops, for `python -m tests.campaign --speed`."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import reject

import tc_jupyter as tc
from tc_jupyter.bench.plain import c_call
from tc_jupyter.diagnostics import CallError
from tc_jupyter.function import Function
from tc_jupyter.program import Expr
from tc_jupyter.ranges import from_expr
from tc_jupyter.runtime.timing import benchmark
from tests.strategies import SIZES

Array = np.ndarray[Any, Any]

POINTS = 1_000_000
"""Points of the statements together that a program is given at least, so that its loops take about a millisecond."""
LARGEST = 1 << 20
"""The largest extent of a size."""
MOST_ELEMENTS = 1 << 24
"""Elements of one array."""
LEAST = 20e-6
"""Seconds of the loops below which a call is most of the time."""
RELATIVE = 1e-4
"""What agrees so well is not judged: powers by repeated products are rounded in one direction."""
SECONDS = 0.3
"""How long a program is measured."""
WORST = 20


@dataclass
class Speeds:
    """What was measured: (time over that of the loops, seconds of the loops, text, extent of every size)."""

    found: list[tuple[float, float, str, int]] = field(default_factory=list)

    def check(self, text: str, numbers: dict[str, int], data: int) -> str:
        """Measure one program; the sizes that were drawn are too small and are not used."""
        analysis = tc.analyze(text)
        if not analysis.ok:
            reject()
        allowed = [each.code.number for each in analysis.diagnostics]
        function = tc.compile(text, target="cpu", allow=allowed).f
        extent = extent_of(function)
        if extent is None:
            return "unclear: too few points, or too large arrays"
        sizes = dict.fromkeys(SIZES, extent)
        random = np.random.default_rng(data)
        arrays = {
            name: random.uniform(0.5, 1.5, [from_expr(dim).evaluate(sizes) for dim in dims]).astype(np.float32)
            for name, dims in parameters(function)
        }
        try:
            result = function(*arrays.values())
        except CallError:
            return "refused at the call"
        results = result if isinstance(result, tuple) else (result,)
        if not all(np.isfinite(each).all() for each in results):
            return "unclear: what is infinite depends on the order of sums"
        with tempfile.TemporaryDirectory() as folder:
            loops, _ = c_call(function, arrays, results, sizes, Path(folder))
            loops()
            twice = tc.compile(text.replace("float(", "double("), target="cpu", allow=allowed).f
            exact = of_loops(twice, arrays, results, sizes, Path(folder))
            near = all(np.allclose(*pair, rtol=RELATIVE, atol=0) for pair in zip(results, exact, strict=True))
            assert near or function.judge(*arrays.values())(results, exact), f"{text}\n{sizes}"
            calls = {"ours": lambda: function(*arrays.values(), out=result), "loops": loops}
            ours, theirs = (each.best for each in benchmark(calls, SECONDS))
        if theirs < LEAST:
            return "unclear: the loops have nothing to do"
        self.found.append((ours / theirs, theirs, text, extent))
        return "slower than its loops" if ours > 1.1 * theirs else "measured"

    def worst(self) -> str:
        """The slowest programs with their texts, and the mean."""
        mean = math.exp(float(np.mean([math.log(each[0]) for each in self.found]))) if self.found else 1.0
        lines = [f"geometric mean over the C loops: {mean:.2f}"]
        for ratio, seconds, text, extent in sorted(self.found, reverse=True)[:WORST]:
            lines.append(f"{ratio:.2f} times {seconds * 1e3:.2f} ms, sizes {extent}:\n{text}")
        return "\n".join(lines)


def of_loops(
    twice: Function, arrays: Mapping[str, Array], results: Sequence[Array], sizes: Mapping[str, int], folder: Path
) -> tuple[Array, ...]:
    """What the C loops of the def give in `double`: where terms cancel, `float` with `-ffast-math` tells nothing."""
    wide = {name: each.astype(np.float64) for name, each in arrays.items()}
    places = [each.astype(np.float64) if each.dtype == np.float32 else each for each in results]
    loops, written = c_call(twice, wide, places, sizes, folder)
    loops()
    return tuple(each.astype(own.dtype) for each, own in zip(written, results, strict=True))


def parameters(function: Function) -> list[tuple[str, tuple[Expr, ...]]]:
    """Names and dimensions."""
    tensors = [function.program.tensor(name) for name in function.program.parameters]
    return [(tensor.name, tensor.dims or ()) for tensor in tensors]


def extent_of(function: Function) -> int | None:
    """The smallest power of two that, as every size, gives the statements `POINTS` points; `None` where none does with arrays that fit."""
    extent = 8
    while extent <= LARGEST:
        values = dict.fromkeys(SIZES, extent)
        shapes = [[from_expr(dim).evaluate(values) for dim in dims] for _, dims in parameters(function)]
        if any(math.prod(shape) > MOST_ELEMENTS for shape in shapes):
            return None
        statements = function.analysis.ranges.indices.values()
        if sum(math.prod(max(r.extent.evaluate(values), 0) for r in ranges) for ranges in statements) >= POINTS:
            return extent
        extent *= 2
    return None
