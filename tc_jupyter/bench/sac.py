"""The suite `sac`: examples of the paper and of `examples/sac.ipynb` against the equivalent def of `%%tc` and the usual NumPy form.

Targets: at most 1.1 times the time of the def, less than NumPy, and 50 ms for a function that meets a new rank (code generation not
counted).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from time import process_time
from typing import Any

import numpy as np

from tc_jupyter.compiler.agreement import close
from tc_jupyter.compiler.function_analysis import analyze_program
from tc_jupyter.diagnostics import SourceText
from tc_jupyter.function import compile
from tc_jupyter.program import ArgumentType, DType
from tc_jupyter.program.check_sac import bind_call, check_sac
from tc_jupyter.runtime.timing import Timing, benchmark
from tc_jupyter.syntax.sac_parser import parse_sac

MOST_RATIO = 1.1
"""Time of a `%%sac` function / time of the equivalent `%%tc` def that is aimed at."""

RANKS = range(7)
SPECIALISATION = 0.050
"""Seconds for a new rank that are aimed at."""


@dataclass(frozen=True, slots=True)
class Example:
    """A function `f` in `%%sac`, the same as a def, and a NumPy expression over the data."""

    name: str
    data: Mapping[str, str]
    tc: str
    numpy: str
    sac: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Times of one example, and whether all results agree."""

    name: str
    sac: Timing
    tc: Timing
    numpy: Timing
    agrees: bool


def examples() -> tuple[Example, ...]:
    """The examples of `suites/examples.sac`."""
    text = (files("tc_jupyter.bench") / "suites" / "examples.sac").read_text()
    return tuple(_example(block) for block in re.split(r"(?=^// name:)", text, flags=re.MULTILINE)[1:])


def _example(block: str) -> Example:
    keys: dict[str, list[str]] = {}
    lines = block.splitlines()
    for line in lines:
        if line.startswith("// "):
            key, _, value = line[3:].partition(": ")
            keys.setdefault(key, []).append(value)
    data = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in keys["data"])}
    sac = "\n".join(line for line in lines if not line.startswith("// "))
    return Example(keys["name"][0], data, "\n".join(keys["tc"]), keys["numpy"][0], sac)


def compare(example: Example, seconds: float = 3.0, limit: int | None = None) -> Comparison:
    """Time one example; the candidates alternate.

    Args:
        limit: cut every axis of the data to this extent.
    """
    calls = _calls(example, limit)
    results = [call() for call in calls.values()]
    agrees = all(close(results[0], np.asarray(other)) for other in results[1:])
    sac, tc, numpy = benchmark(calls, seconds=seconds)
    return Comparison(example.name, sac, tc, numpy, agrees)


def _calls(example: Example, limit: int | None) -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(20261121)
    data = {name: eval(text, {"np": np, "rng": rng}) for name, text in example.data.items()}
    if limit is not None:
        data = {name: array[(slice(limit),) * array.ndim].copy() for name, array in data.items()}
    quiet = [f"TC{number}" for number in (231, 234, *range(321, 331), 355)]
    sac = compile(example.sac, language="sac", target="cpu", allow=quiet)["f"]
    tc = compile(example.tc, target="cpu", allow=quiet)["f"]
    usual = eval(f"lambda: {example.numpy}", {"np": np, **USUAL, **data})
    arrays = tuple(data.values())
    return {"%%sac": lambda: sac(*arrays), "%%tc": lambda: tc(*arrays), "NumPy": usual}


def specialisation_times(repeats: int = 5) -> dict[str, Timing]:
    """Processor time from the arguments of a call to the analysed program, for a function that meets a new rank."""
    text = next(each.sac for each in examples() if "inner region" in each.name)
    source = SourceText(text)
    unit = parse_sac(source).unit
    found: dict[str, Timing] = {}
    for rank in RANKS:
        samples: list[float] = []
        for _ in range(repeats):
            functions = check_sac(unit, source).functions["f"]
            begin = process_time()
            argument = ArgumentType(DType.FLOAT32, rank, (4,) * rank)
            call = bind_call(functions, [argument], lambda at: ())
            assert call.specialized is not None
            assert call.specialized.program is not None
            analyze_program(call.specialized.program)
            samples.append(process_time() - begin)
        name = f"new rank {rank}, inner region"
        found[name] = Timing(name, tuple(samples))
    return found


# the usual forms in NumPy that need more than an expression -----------------------------------------------------------------------


def _inner(a: np.ndarray[Any, Any]) -> tuple[slice, ...]:
    return (slice(1, -1),) * a.ndim


def _incremented(m: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result = m.copy()
    result[_inner(m)] += 1
    return result


def _doubled(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result = a.copy()
    result[3:, 3:] *= 2
    return result


def _relaxed(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result = a.copy()
    result[_inner(a)] = a[_inner(a)] * np.float32(0.9) + np.float32(0.5)
    return result


def _softmax(a: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _heated(u: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result = u.copy()
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    result[1:-1, 1:-1] += np.float32(0.1) * (around - 4 * u[1:-1, 1:-1])
    return result


def _lived(g: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    n = np.zeros_like(g)
    rows, columns = g.shape
    n[1:-1, 1:-1] = sum(g[k : rows - 2 + k, l : columns - 2 + l] for k in range(3) for l in range(3))
    return ((n == 3) | ((n == 4) & (g == 1))).astype(np.int32)


USUAL: dict[str, Callable[..., Any]] = {
    "incremented": _incremented,
    "doubled": _doubled,
    "relaxed": _relaxed,
    "softmax": _softmax,
    "heated": _heated,
    "lived": _lived,
}
