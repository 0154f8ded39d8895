"""Workloads of the suites: defs with sizes, data, the same computation in other libraries, and a reference in double precision.

A workload is a `.tc` file of `suites/`: a def, and a header of comment lines that gives sizes, data and the peers' calls as Python
expressions over the parameters.

Worked example of a header:

    # name: matrix product
    # suite: cpu gpu
    # sizes: M=512 K=512 N=512
    # awkward: M=17 K=1023 N=127
    # length: K
    # numpy: np.matmul(A, B)
    # torch: torch.matmul(A, B)
    # torch out: torch.matmul(A, B, out=OUT)
    # numba: def matmul(A, B):
    # numba:     ...
    # halide: def matmul(A, B):
    # halide:     ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from tc_jupyter.compiler.peers import INTO, LIBRARIES, LOOPS
from tc_jupyter.function import Function
from tc_jupyter.runtime.arguments import Formula, parameters_of
from tc_jupyter.runtime.arrays import numpy_dtype

from .pipelines import PIPELINE

_FUNCTIONS = (LOOPS, PIPELINE)
"""Peers whose lines are those of a Python function, and keep their indentation."""
_KEYS = {"name", "suite", "sizes", "awkward", "data", "reference", "length", "magnitude", "unequal"}


@dataclass(frozen=True, slots=True)
class Workload:
    """A def with sizes and peers.

    Attributes:
        sizes: one set of sizes per measurement.
        awkward: sizes that are measured too, but are no part of a mean: primes, 1, one more than a power of two.
        data: parameter -> expression over the sizes, `np` and `rng`, for parameters that are not random numbers.
        peers: library -> expression over the parameters and the library's module; of Numba and Halide a function, see `peers` and
            `pipelines`.
        reference: the result as an expression of NumPy, evaluated in double precision.
        length: expression over the sizes: how many operations one element is rounded in.
        magnitude: expression for the sum of the absolute values of an element's terms; by default the reference of the
            absolute values of the parameters.
        unequal: of several defs those whose values differ from the others' where an element is infinite or NaN.
    """

    name: str
    suites: tuple[str, ...]
    text: str
    sizes: tuple[Mapping[str, int], ...]
    data: Mapping[str, str]
    peers: Mapping[str, str]
    awkward: tuple[Mapping[str, int], ...] = ()
    reference: str = ""
    length: str = "1"
    magnitude: str = ""
    unequal: frozenset[str] = frozenset()


def parse_workload(text: str) -> Workload:
    """Read a `.tc` file of a suite.

    Raises:
        ValueError: the header has a line that is not understood, or no sizes.
    """
    keys: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        key, colon, value = line.lstrip("# ").partition(":")
        if not colon:
            raise ValueError(f"header line without a colon: {line!r}")
        keys.setdefault(key.strip(), []).append(value.removeprefix(" ") if key.strip() in _FUNCTIONS else value.strip())
    unknown = set(keys) - {*_KEYS, *LIBRARIES, INTO, *_FUNCTIONS}
    if unknown or "sizes" not in keys or "name" not in keys:
        raise ValueError(f"header: unknown {sorted(unknown)}" if unknown else "header: `name` and `sizes` are needed")
    first = {key: values[0] for key, values in keys.items()}
    first |= {key: "\n".join(keys[key]) for key in _FUNCTIONS if key in keys}
    return Workload(
        name=first["name"],
        suites=tuple(first.get("suite", "cpu").split()),
        text=text,
        sizes=_sizes(keys["sizes"]),
        data=dict(_assignment(line) for line in keys.get("data", [])),
        peers={library: first[library] for library in (*LIBRARIES, INTO, *_FUNCTIONS) if library in first},
        awkward=_sizes(keys.get("awkward", [])),
        reference=first.get("reference", first.get("numpy", "")),
        length=first.get("length", "1"),
        magnitude=first.get("magnitude", ""),
        unequal=frozenset(first.get("unequal", "").split()),
    )


def _sizes(lines: list[str]) -> tuple[Mapping[str, int], ...]:
    return tuple({k: int(v) for k, v in (part.split("=") for part in line.split())} for line in lines)


def _assignment(line: str) -> tuple[str, str]:
    name, _, expression = line.partition("=")
    return name.strip(), expression.strip()


def workloads(suite: str) -> list[Workload]:
    """The workloads of a suite, in the order of their files."""
    folder = files("tc_jupyter.bench") / "suites"
    texts = [
        item.read_text() for item in sorted(folder.iterdir(), key=lambda item: item.name) if item.name.endswith(".tc")
    ]
    return [found for found in map(parse_workload, texts) if suite in found.suites]


def make_data(workload: Workload, function: Function, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The arguments of one measurement, as NumPy arrays and numbers, from a fixed seed."""
    rng = np.random.default_rng(20261121)
    found: dict[str, Any] = {}
    for parameter in parameters_of(function.program):
        if parameter.name in workload.data:
            scope = {"np": np, "rng": rng, **sizes}
            value = eval(workload.data[parameter.name], scope)
        else:
            shape = tuple(
                sizes[dim]
                if isinstance(dim, str)
                else dim.value.evaluate(sizes)
                if isinstance(dim, Formula)
                else dim or 1
                for dim in parameter.dims
            )
            value = rng.uniform(-1, 1, shape)
            value = value + 1j * rng.uniform(-1, 1, shape) if parameter.dtype.is_complex else value
        made = np.asarray(value, numpy_dtype(parameter.dtype))
        found[parameter.name] = made if parameter.rank else made.item()
    return found


# in double precision -------------------------------------------------------------------------------------------------------------


def deviation(workload: Workload, arrays: Mapping[str, Any], sizes: Mapping[str, int], result: Any) -> float | None:
    """The largest error of a result, as a part of its bound; more than 1 is wrong, `None` if there is no reference.

    The bound of an element is `n * u * m`: `n` operations with the unit roundoff `u` of the result's type, `m` the sum of the
    absolute values of its terms.

    Source: Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1.
    """
    if not workload.reference:
        return None
    wide = {k: v.astype(_WIDE[v.dtype.kind]) if _is_floating(v) else v for k, v in arrays.items()}
    expected = _tuple(_evaluate(workload.reference, wide, sizes))
    sizes_of = {k: np.abs(v) if _is_floating(v) else v for k, v in wide.items()}
    terms = _tuple(_evaluate(workload.magnitude or workload.reference, sizes_of, sizes))
    length = float(_evaluate(workload.length, {}, sizes)) + 2
    found = _tuple(result)
    if len(found) != len(expected):
        return float("inf")
    if len(terms) < len(found):
        terms = terms * len(found)
    return max(_deviation(*each, length) for each in zip(found, expected, terms, strict=True))


_WIDE = {"f": np.float64, "c": np.complex128}
"""Kinds of numbers that are rounded, and the types with the most digits."""


def _is_floating(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in _WIDE


def _deviation(found: Any, expected: Any, terms: Any, length: float) -> float:
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return float("inf")
    if found.size == 0:
        return 0.0
    if found.dtype.kind not in _WIDE:
        return 0.0 if np.array_equal(found, expected) else float("inf")
    roundoff = np.finfo(found.dtype).eps / 2
    bound = length * roundoff * np.abs(np.asarray(terms)) + np.finfo(found.dtype).smallest_subnormal
    return float(np.max(np.abs(found - expected) / bound))


def _evaluate(expression: str, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view
    return eval(expression, {"np": np, "windows": windows, **sizes, **arrays})


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
