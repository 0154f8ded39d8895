"""The suite `plain`: programs as people write them, in several spellings, against the loops of a C compiler, and of Numba.

Every def of a program computes the same. Each is timed in turns with its own loops in C (`f.source("c")`, compiled for this
processor), with the same ones in Numba (`f.source("numba")`) where that is installed, and with the other spellings. All have one
number of threads per process. A spelling that gives other values where an element is infinite or NaN is compared with its own loops
only.

Worked example of a program in `suites/plain/*.tc`:

    # name: scaled product
    # sizes: M=256 K=256 N=256
    # data: A = rng.integers(0, 9, (M, K))
    # unequal: other
    def inside(...) -> (C) { ... }
    def other(...) -> (C) { ... }
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version as version_of
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from tc_jupyter.codegen.source import Argument
from tc_jupyter.compiler.peers import LOOPS, installed
from tc_jupyter.compiler.plain import plain_c, plain_numba
from tc_jupyter.function import Function, compile
from tc_jupyter.runtime import threads
from tc_jupyter.runtime.timing import benchmark, duration

from .cpu import QUIET, counts_of, geometric_mean, in_child, none_named, processor, report
from .workloads import Workload, make_data, parse_workload

_MATHEMATICS = ("-ffast-math", "-fno-finite-math-only", "-fwrapv")
FLAGS = ("-std=gnu99", "-O3", "-march=native", *_MATHEMATICS, "-fopenmp", "-fPIC")
"""What the loops are compiled with; tests for NaN stay. They are linked without: GCC links what flushes subnormal numbers of the
whole process, ours too, where a library is linked with `-ffast-math`. Numba may do the same with floating numbers."""
SECONDS = 1.0
"""How long one program is measured."""
LEAST_ROUNDS = 9
WARM = 1e-3
"""Seconds of calls before each sample. Behind C loops of 30 ms, a product of 38 us took 123 us without such calls."""
TARGETS = {"loops": 1.1, "spelling": 1.25}
"""Aims: time over that of the C loops, and over that of the fastest spelling."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """One spelling on one number of threads: shortest times in seconds; over the fastest spelling if its values are equal.

    Attributes:
        numba: time of its loops in Numba, `None` where there are none.
    """

    program: str
    spelling: str
    threads: int
    time: float
    loops: float
    over_spelling: float | None
    agrees: bool
    numba: float | None = None

    @property
    def over_loops(self) -> float:
        """Its time over that of its C loops."""
        return self.time / self.loops

    @property
    def over_numba(self) -> float | None:
        """Its time over that of its loops in Numba."""
        return None if self.numba is None else self.time / self.numba

    @property
    def text(self) -> str:
        """As one line of the table."""
        spelling = "" if self.over_spelling is None else f"{self.over_spelling:6.2f}"
        numba = f"{'-':>6}" if self.over_numba is None else f"{self.over_numba:6.2f}"
        wrong = "" if self.agrees else "  DIFFERS"
        times = f"{duration(self.time):>8} {duration(self.loops):>8}"
        return (
            f"{self.program + ': ' + self.spelling:64} {times}  {self.over_loops:6.2f}  {numba:>10}  {spelling}{wrong}"
        )


def programs() -> tuple[Workload, ...]:
    """All programs of the suite, in the order of the files."""
    folder = files("tc_jupyter.bench") / "suites" / "plain"
    texts = [each.read_text(encoding="utf-8") for each in sorted(folder.iterdir(), key=lambda each: each.name)]
    return tuple(parse_workload(part) for text in texts for part in re.split(r"(?m)^(?=# name:)", text) if part.strip())


def run(json_file: str | None, only: str, thread_count: int | None) -> int:
    """Measure, print a line per spelling and the summary.

    Returns:
        0; 1 if spellings or loops give different results; 2 if there is no C compiler, or `only` names no program.
    """
    if compiler() is None:
        print("tc-jupyter: the suite `plain` needs a C compiler: `gcc` or `clang` on the path", file=sys.stderr)
        return 2
    names = [program.name for program in programs()]
    if not any(only in name for name in names):
        return none_named("plain", only, names)
    head = f"{processor()}, {version()}, {' '.join(FLAGS[1:6])}"
    head += f", Numba {version_of(LOOPS)}" if installed(LOOPS) else ""
    print(head)
    counts = counts_of(thread_count)
    found = [Spelled(**entry) for count in counts for entry in in_child("plain", (only, count), count)]
    report("plain", [head], found, summary(found), json_file)
    return 1 if any(not each.agrees for each in found) else 0


def measure_to(file: str, only: str, thread_count: int) -> None:
    """Measure with this process's threads and write the results to a file."""
    threads.set_threads(thread_count)
    print(f"\n{thread_count} thread{'s' * (thread_count > 1)}")
    print(f"{'':64} {'shortest':>8} {'C loops':>8}  {'over C':>6}  over Numba  over the fastest spelling", flush=True)
    entries: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for program in programs():
            if only in program.name:
                for each in measure(program, thread_count, Path(folder)):
                    print(each.text, flush=True)
                    entries.append(asdict(each))
    Path(file).write_text(json.dumps(entries))


def measure(program: Workload, thread_count: int, folder: Path, seconds: float = SECONDS) -> Iterator[Spelled]:
    """Time all spellings of a program and their loops in turns, about `seconds` for each with its loops in C.

    Yields:
        One result per spelling, in the order of the text.
    """
    module = compile(program.text, target="cpu", allow=QUIET)
    functions = dict(module.items())
    (sizes,) = program.sizes
    arrays = make_data(program, next(iter(functions.values())), sizes)
    calls: dict[str, Callable[[], object]] = {}
    agrees: dict[str, bool] = {}
    expected: Any = None
    for name, function in functions.items():
        result = function(*arrays.values())
        results = result if isinstance(result, tuple) else (result,)
        loops, written = c_call(function, arrays, results, sizes, folder)
        loops()
        expected = results if expected is None else expected
        judge = function.judge(*arrays.values())
        agrees[name] = judge(results, tuple(written)) and judge(expected, results)
        calls[name] = _call(function, tuple(arrays.values()), result)
        calls[f"{name} in C"] = loops
        compiled = _compiled_by_numba(function, arrays, results, sizes)
        if compiled is not None:
            calls[f"{name} in Numba"], written = compiled
            agrees[name] = agrees[name] and judge(results, tuple(written))
    timings = {
        each.name: each.best for each in benchmark(calls, seconds / 2 * len(calls), least=LEAST_ROUNDS, warm=WARM)
    }
    equal = [timings[name] for name in functions if name not in program.unequal]
    for name in functions:
        over = timings[name] / min(equal) if len(equal) > 1 and name not in program.unequal else None
        mine, loops, numba = timings[name], timings[f"{name} in C"], timings.get(f"{name} in Numba")
        yield Spelled(program.name, name, thread_count, mine, loops, over, bool(agrees[name]), numba)


def _call(function: Function, values: tuple[Any, ...], out: Any) -> Callable[[], object]:
    return lambda: function(*values, out=out)


def c_call(
    function: Function,
    arrays: Mapping[str, Any],
    results: Sequence[np.ndarray[Any, Any]],
    sizes: Mapping[str, int],
    folder: Path,
) -> tuple[Callable[[], object], list[np.ndarray[Any, Any]]]:
    """The loops of a def in C as a call on these arrays, and the arrays that it writes."""
    made = plain_c(function.analysis)
    written = [np.empty_like(result) for result in results]
    values = {**arrays, **dict(zip(function.program.results, written, strict=True))}
    entry = getattr(ctypes.CDLL(str(_compiled(made.text, folder))), made.name)
    passed: list[Any] = []
    for argument in made.parameters:
        assert argument.dtype is not None
        if argument.kind == "buffer":
            passed.append(ctypes.c_void_p(np.asarray(values[argument.name]).ctypes.data))
        elif argument.kind == "size":
            passed.append(ctypes.c_int64(sizes[argument.name]))
        else:
            kind: Any = np.ctypeslib.as_ctypes_type(np.dtype(argument.dtype.value))
            passed.append(kind(np.asarray(values[argument.name]).item()))

    def loops() -> object:
        return entry(*passed), values  # which live as long as the call: C has their addresses alone

    return loops, written


def numba_call(
    function: Function,
    arrays: Mapping[str, Any],
    results: Sequence[np.ndarray[Any, Any]],
    sizes: Mapping[str, int],
) -> tuple[Callable[[], object], list[np.ndarray[Any, Any]]]:
    """The loops of a def in Python as a call on these arrays, which Numba compiles when it is first called; and what it writes."""
    made = plain_numba(function.analysis)
    written = [np.empty_like(result) for result in results]
    values = {**sizes, **arrays, **dict(zip(function.program.results, written, strict=True))}
    passed = [_passed(argument, values[argument.name]) for argument in made.parameters]
    scope: dict[str, Any] = {}
    exec(made.text, scope)
    return lambda: scope[made.name](*passed), written


def _passed(argument: Argument, value: Any) -> Any:
    """As the function takes it: complex numbers in pairs, a result without dimensions as an array of one element."""
    assert argument.dtype is not None
    dtype = np.dtype(argument.dtype.value)
    if argument.kind != "buffer":
        return dtype.type(value)
    array: np.ndarray[Any, Any] = np.asarray(value)
    if array.dtype.kind == "c":
        return array.astype(f"c{2 * dtype.itemsize}", copy=False).reshape(-1).view(dtype).reshape(*array.shape, 2)
    return array.reshape(array.shape or 1)


def _compiled_by_numba(
    function: Function, arrays: Mapping[str, Any], results: Sequence[np.ndarray[Any, Any]], sizes: Mapping[str, int]
) -> tuple[Callable[[], object], list[np.ndarray[Any, Any]]] | None:
    """What `numba_call` gives, compiled; `None` where Numba is not installed, or does not compile it."""
    if not installed(LOOPS):
        return None
    try:
        call, written = numba_call(function, arrays, results, sizes)
        with warnings.catch_warnings(action="ignore"):
            call()
    except Exception:  # whatever stops the peer, the others are measured
        return None
    return call, written


def _compiled(text: str, folder: Path) -> Path:
    number = len(list(folder.glob("*.so")))
    source, code, library = (folder / f"loops{number}{ending}" for ending in (".c", ".o", ".so"))
    source.write_text(text, encoding="utf-8")
    subprocess.run([str(compiler()), *FLAGS, "-c", str(source), "-o", str(code)], check=True)
    subprocess.run([str(compiler()), "-shared", "-fopenmp", str(code), "-o", str(library), "-lm"], check=True)
    return library


def compiler() -> str | None:
    """The C compiler on the path."""
    return shutil.which("gcc") or shutil.which("clang")


def version() -> str:
    """The first line of what the C compiler says of itself."""
    said = subprocess.run([str(compiler()), "--version"], capture_output=True, text=True, check=True).stdout
    return said.partition("\n")[0]


def summary(found: Sequence[Spelled]) -> list[str]:
    """Per number of threads: means, how many miss the aims, and the slowest ten."""
    lines: list[str] = []
    for count in dict.fromkeys(each.threads for each in found):
        own = [each for each in found if each.threads == count]
        mean = geometric_mean([each.over_loops for each in own])
        slow = [each for each in own if each.over_loops > TARGETS["loops"]]
        uneven = [each for each in own if (each.over_spelling or 0) > TARGETS["spelling"]]
        lines += [
            "",
            f"{count} thread{'s' * (count > 1)}: geometric mean over C {mean:.2f}; {len(slow)} of {len(own)} above "
            f"{TARGETS['loops']} of their loops, {len(uneven)} above {TARGETS['spelling']} of the fastest spelling",
        ]
        numba = [each.over_numba for each in own if each.over_numba is not None]
        if numba:
            slower = len([over for over in numba if over > TARGETS["loops"]])
            mean = geometric_mean(numba)
            lines.append(f"  over Numba {mean:.2f}; {slower} of {len(numba)} above {TARGETS['loops']} of its loops")
        worst = sorted(own, key=_badness, reverse=True)
        lines += [f"  {each.text}" for each in worst[:10]]
    return lines


def _badness(each: Spelled) -> float:
    """How far it misses the aims: time over that of its loops, or, on the same scale, over that of the fastest spelling."""
    scale = TARGETS["spelling"] / TARGETS["loops"]
    return max(each.over_loops, each.over_numba or 0, (each.over_spelling or 0) / scale)
