"""Suites of measurements: what compiling costs, and how fast workloads run against the peers that are installed.

All candidates of a workload are timed in interleaved rounds in one process, and every result is compared with the first one. The
suite of the CPU has a module of its own, `cpu`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tc_jupyter.compiler import analyze
from tc_jupyter.compiler.peers import installed, moved, peer_call
from tc_jupyter.function import Function, compile, gpu_available
from tc_jupyter.program import Statement
from tc_jupyter.runtime import cuda, libraries
from tc_jupyter.runtime.threads import get_threads
from tc_jupyter.runtime.timing import Limits, Row, Timing, benchmark, doubts, duration, rows_of

from . import cpu, gradient, plain, sac
from .cpu import QUIET
from .workloads import Workload, make_data, workloads

ONE_STATEMENT = "def mv{0}(float(R,C) A, float(C) B) -> (o) {{ o(i) +=! A(i,j) * B(j) }}"
THREE_STATEMENTS = """def softmax{0}(float(N,M) X) -> (Y) {{
    e(i,j) = exp(X(i,j))
    s(i) +=! e(i,j)
    Y(i,j) = e(i,j) / s(i)
}}"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a suite.

    Attributes:
        median, p10, p90: seconds.
        target: seconds that were aimed at, or `None`.
        ratio: time of this / time of the best peer, both by their shortest samples; smaller is better.
        best: the shortest sample, in seconds.
    """

    name: str
    median: float
    p10: float
    p90: float
    target: float | None = None
    ratio: float | None = None
    detail: str = ""
    peers: tuple[Row, ...] = field(default=())
    best: float | None = None

    @property
    def text(self) -> str:
        """As one line of the table."""
        best = "" if self.best is None else duration(self.best)
        times = "  ".join(each.rjust(8) for each in (best, *map(duration, (self.median, self.p10, self.p90))))
        aim = (
            ""
            if self.target is None
            else f"target {duration(self.target)}{'' if self.median <= self.target else '  MISSED'}"
        )
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} of the best peer"
        own = Row(self.name, self.median, self.p10, self.p90, best=self.best)
        doubt = "  ".join(dict.fromkeys(doubts((own, *self.peers))))
        return "  ".join(part for part in (self.name.ljust(44), times, aim, ratio, self.detail, doubt) if part)


def run_suite(
    suite: str,
    json_file: str | None = None,
    only: str | None = None,
    thread_count: int | None = None,
    compiled: bool = False,
) -> int:
    """Run a suite, print its table, and write it as JSON if a file is named.

    Args:
        suite: `compile`, `cpu`, `borders`, `operands`, `scatter`, `plain`, `gradient`, `gpu`, `sac` or `tuning`.
        only: measure only lines whose name contains this.
        thread_count: of the suites `cpu`, `borders`, `operands`, `scatter`, `plain` and `gradient`; `None`: all, then one.
        compiled: measure `torch.compile` in these suites too.

    Returns:
        0; 1 if a result differs from its peers'; 2 if the suite cannot run here, or `only` names nothing.
    """
    if suite == "gpu" and not gpu_available():
        print(f"tc-jupyter: the suite `gpu` needs a GPU: {cuda.probe().reason}", file=sys.stderr)
        return 2
    if suite in ("cpu", "borders", "operands", "scatter"):
        return cpu.run(json_file, only or "", thread_count, compiled, suite)
    if suite == "gradient":
        return gradient.run(json_file, only or "", thread_count)
    if suite == "plain":
        return plain.run(json_file, only or "", thread_count)
    if libraries.slowed() or libraries.limited(get_threads()):
        return _run_unslowed(suite, json_file, only, compiled)
    print(
        f"{platform.platform()}, Python {platform.python_version()}, NumPy {np.__version__}, {time.strftime('%Y-%m-%d')}"
    )
    print(f"kernels: {'; '.join(libraries.kernels())}")
    print(f"{'':44}  {'best':>8}  {'median':>8}  {'p10':>8}  {'p90':>8}")
    found: list[Entry] = []
    suites = {
        "compile": _compile_suite,
        "tuning": _tuning_suite,
        "gpu": partial(_gpu_suite, compiled),
        "sac": _sac_suite,
    }
    for make in suites[suite]():
        for entry in make(only or ""):
            found.append(entry)
            print(entry.text, flush=True)
    if only and not found:
        return cpu.none_named(suite, only, _names(suite))
    if json_file is not None:
        Path(json_file).write_text(
            json.dumps({"suite": suite, "entries": [asdict(entry) for entry in found]}, indent=1)
        )
    return 1 if any(row.agrees is False for entry in found for row in entry.peers) else 0


def _run_unslowed(suite: str, json_file: str | None, only: str | None, compiled: bool) -> int:
    """The suite in a process whose libraries choose kernels and threads themselves; theirs are loaded here already."""
    arguments = f"{suite!r}, {json_file!r}, {only!r}, compiled={compiled}"
    code = f"import sys; from tc_jupyter.bench.runner import run_suite; sys.exit(run_suite({arguments}))"
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = {name: value for name, value in libraries.unslowed().items() if name not in libraries.THREADS}
    return subprocess.run([sys.executable, "-c", code], env={**environment, "PYTHONPATH": path}).returncode


def _names(suite: str) -> list[str]:
    """What `only` may be part of; of the suite `compile` the beginnings."""
    if suite == "sac":
        return [example.name for example in sac.examples()]
    if suite == "compile":
        return [*COMPILED, *(f"cell to callable, {workload.name}" for workload in workloads("cpu"))]
    return [workload.name for workload in workloads(suite)]


COMPILED = ("import", "analysis", "infer_bound", "cell to result", "call, 16 floats", "call, product of 16 x 16")
Measure = Callable[[str], Sequence[Entry]]


# what compiling costs ------------------------------------------------------------------------------------------------------------


def _compile_suite() -> tuple[Measure, ...]:
    return _import_time, _analysis_time, _bounds_time, _callable_time, _start_time, _call_overhead


def _entry(name: str, samples: Sequence[float], target: float | None, detail: str = "") -> Entry:
    return _entry_of(name, Timing(name, tuple(samples)), target, detail=detail)


def _entry_of(name: str, timing: Timing, target: float | None = None, **more: Any) -> Entry:
    return Entry(name, timing.median, timing.p10, timing.p90, target, best=timing.best, **more)


def _child(code: str, cache: str) -> Any:
    """What a fresh Python process prints as JSON; objects are cached in the folder `cache`."""
    environment = {**libraries.unslowed(), "TC_JUPYTER_CACHE": cache, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


_IMPORT = "import time, json; t = time.perf_counter(); {0}; print(json.dumps([time.perf_counter() - t]))"


def _import_time(only: str) -> list[Entry]:
    lines = {
        "import tc_jupyter": ("import tc_jupyter", 0.25),
        "import and tc.compile": ("import tc_jupyter as tc; tc.compile", None),
    }
    found: list[Entry] = []
    for name, (code, target) in lines.items():
        if only in name:
            samples = [_child(_IMPORT.format(code), "off")[0] for _ in range(5)]
            found.append(_entry(name, samples, target, "fresh process"))
    return found


def _analysis_time(only: str) -> list[Entry]:
    found: list[Entry] = []
    for name, text in (("analysis, 1 statement", ONE_STATEMENT), ("analysis, 3 statements", THREE_STATEMENTS)):
        if only in name:
            numbers = iter(range(1_000_000))
            (timing,) = benchmark(
                {name: lambda text=text, numbers=numbers: analyze(text.format(next(numbers)))}, rounds=30
            )
            found.append(_entry_of(name, timing, 0.005))
    return found


CONVOLUTION = """def conv(float(N,C,H,W) X, float(O,C,KH,KW) F) -> (Y) {
    Y(n,o,h,w) +=! X(n,c,h+kh,w+kw) * F(o,c,kh,kw)
}"""
CONVOLUTION_SPLITS = (
    ("n", 2), ("o", 8), ("h", 4), ("w", 16), ("c", 4),
    ("o.inner", 2), ("h.inner", 2), ("w.inner", 8), ("c.outer", 2), ("o.outer", 4),
)  # fmt: skip
CONVOLUTION_SIZES = {"N": 8, "C": 64, "H": 58, "W": 58, "O": 64, "KH": 3, "KW": 3}


def _bounds_time(only: str) -> list[Entry]:
    """All ranges of all axes of a convolution with 7 loops, 10 splits and a copy of its input in one of them; warm."""
    name = "infer_bound, convolution, 10 splits"
    if only not in name:
        return []
    schedule = compile(CONVOLUTION)["conv"].schedule()
    for axis, factor in CONVOLUTION_SPLITS:
        schedule = schedule.split("Y", axis, factor)
    schedule = schedule.cache_read("X", "Y").compute_at("X.cache", "Y", "h.outer")

    def ranges(**sizes: int) -> object:
        bounds = schedule.bounds(**sizes)
        return [(bounds[stage], bounds.region(stage)) for stage in bounds]

    symbolic, sized = benchmark({name: ranges, "with sizes": lambda: ranges(**CONVOLUTION_SIZES)}, rounds=30)
    detail = f"with sizes {duration(sized.median)}"
    return [_entry_of(name, symbolic, 0.020, detail=detail)]


_CALLABLE = """
import json, time
import numpy as np
import tc_jupyter as tc
text = {text!r}
def once(number, shift):
    arrays = [np.ones(shape, np.float32) for shape in {shapes!r}]
    start = time.perf_counter()
    module = tc.compile(text.format(number))
    next(iter(module.values()))(*arrays)
    return time.perf_counter() - start
once({warm}, 0)
print(json.dumps([once(number, 0) for number in range({count})]))
"""


def _callable_time(only: str) -> list[Entry]:
    """From text to the first result: new objects, then the same ones from the disk in another process."""
    found: list[Entry] = []
    cells = {"1 statement": (ONE_STATEMENT, [(8, 8), (8,)]), "3 statements": (THREE_STATEMENTS, [(8, 8)])}
    for words, (text, shapes) in cells.items():
        if not any(only in f"cell to result, {words}, {state}" for state in ("cold", "cached on disk")):
            continue
        with tempfile.TemporaryDirectory() as cache:
            os.chmod(cache, 0o700)
            for state, target in (("cold", 0.150), ("cached on disk", 0.010)):
                name = f"cell to result, {words}, {state}"
                code = _CALLABLE.format(text=text, shapes=shapes, warm=99, count=8)
                samples = _child(code, cache)
                if only in name:
                    found.append(_entry(name, samples, target if words == "1 statement" else None))
    return found


_START = """
import json
from tc_jupyter.bench.runner import start_of, workloads
workload = next(found for found in workloads("cpu") if found.name == {name!r})
print(json.dumps([start_of(workload, number) for number in range(5)][1:]))
"""
STREAMING_START, CONTRACTION_START = 0.040, 0.080
"""How soon a new def is to be callable."""


def _start_time(only: str) -> list[Entry]:
    """From text to a function that is ready for arrays of the first sizes, for the workloads of the suite `cpu`."""
    found: list[Entry] = []
    first = {workload.name: workload for workload in reversed(workloads("cpu"))}
    for workload in reversed(first.values()):
        name = f"cell to callable, {workload.name}, cold"
        if only in name:
            with tempfile.TemporaryDirectory() as cache:
                os.chmod(cache, 0o700)
                code = _START.format(name=workload.name)
                samples = _child(code, cache)
            found.append(_entry(name, samples, CONTRACTION_START if _contracts(workload) else STREAMING_START))
    return found


def start_of(workload: Workload, number: int) -> float:
    """Seconds until a def with a name of its own is ready: until the end of its first call, without what the second one takes."""
    text = re.sub(r"\bdef (\w+)", rf"def \g<1>{number}", workload.text)
    start = time.perf_counter()
    (function,) = compile(text, target="cpu", allow=QUIET).values()
    made = time.perf_counter() - start
    arrays = tuple(make_data(workload, function, workload.sizes[0]).values())
    times: list[float] = []
    for _ in range(2):
        start = time.perf_counter()
        function(*arrays)
        times.append(time.perf_counter() - start)
    return made + times[0] - times[1]


def _contracts(workload: Workload) -> bool:
    """Whether a statement of the def sums what it makes of several arrays of numbers."""
    (found,) = analyze(workload.text).functions.values()
    program = found.program

    def factors(statement: Statement) -> int:
        tensors = map(program.tensor, statement.tensors_read)
        return sum(tensor.dtype.is_float and tensor.rank > 0 for tensor in tensors)

    return any(s.operator == "+" and s.reduction_indices and factors(s) > 1 for s in program.statements)


def _call_overhead(only: str) -> list[Entry]:
    cell = """
        def add(float(N) X, float(N) Y) -> (Z) { Z(i) = X(i) + Y(i) }
        def matmul(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }
    """
    module = compile(cell)
    x, a = np.ones(16, np.float32), np.ones((16, 16), np.float32)
    z, c = np.empty_like(x), np.empty_like(a)
    found: list[Entry] = []
    for name, ours, peer in (
        ("call, 16 floats", lambda: module.add(x, x), lambda: np.add(x, x)),
        ("call, 16 floats, out=", lambda: module.add(x, x, out=z), lambda: np.add(x, x, out=z)),
        ("call, product of 16 x 16", lambda: module.matmul(a, a), lambda: np.matmul(a, a)),
        ("call, product of 16 x 16, out=", lambda: module.matmul(a, a, out=c), lambda: np.matmul(a, a, out=c)),
    ):
        if only in name:
            timing, other = benchmark({name: ours, "numpy": peer}, rounds=60)
            detail = f"NumPy {duration(other.best)}, median {duration(other.median)}"
            found.append(_entry_of(name, timing, 2e-6, detail=detail))
    return found


# workloads -----------------------------------------------------------------------------------------------------------------------


def _gpu_suite(compiled: bool) -> tuple[Measure, ...]:
    def measure(workload: Workload, only: str) -> list[Entry]:
        if only not in workload.name:
            return []
        (function,) = compile(workload.text, target="cuda", allow=QUIET).values()
        return [measure_workload(workload, function, sizes, None, compiled) for sizes in workload.sizes]

    return tuple(lambda only, workload=workload: measure(workload, only) for workload in workloads("gpu"))


# the gain of a search ------------------------------------------------------------------------------------------------------------

_GAIN = """
import json
from tc_jupyter.bench.runner import workloads, tuning_gain
workload = next(found for found in workloads("tuning") if found.name == {name!r})
print(json.dumps(tuning_gain(workload, {seconds})))
"""
TUNED_SECONDS = 30.0
"""How long the suite `tuning` searches per workload."""


def _sac_suite() -> tuple[Measure, ...]:
    """Examples of `%%sac` against the equivalent defs and NumPy; what a new rank costs."""

    def measure(example: sac.Example, only: str) -> list[Entry]:
        if only not in example.name:
            return []
        found = sac.compare(example)
        ours, peers = found.sac, (found.tc, found.numpy)
        others = "  ".join(f"{peer.name} {duration(peer.best)}, median {duration(peer.median)}" for peer in peers)
        ratio = ours.best / min(peer.best for peer in peers)
        detail = others if found.agrees else f"{others}  DIFFERS"
        target = sac.MOST_RATIO * found.tc.median
        rows = rows_of(peers, None, None, None, dict.fromkeys((peer.name for peer in peers), found.agrees))
        return [_entry_of(example.name, ours, target, ratio=ratio, detail=detail, peers=rows)]

    def ranks(only: str) -> list[Entry]:
        timings = sac.specialisation_times()
        return [_entry_of(name, each, sac.SPECIALISATION) for name, each in timings.items() if only in name]

    examples = sac.examples()
    return *(lambda only, example=example: measure(example, only) for example in examples), ranks


def _tuning_suite() -> tuple[Measure, ...]:
    """What `Function.tune` gains over the default schedule; in a cache of its own, so nothing that the user tuned is touched."""

    def measure(workload: Workload, only: str) -> list[Entry]:
        if only not in workload.name:
            return []
        with tempfile.TemporaryDirectory() as cache:
            os.chmod(cache, 0o700)
            found = _child(_GAIN.format(name=workload.name, seconds=TUNED_SECONDS), cache)
        shown = " ".join(f"{name}={value}" for name, value in workload.sizes[0].items())
        kept = found["schedule"] == "default"
        gain = f"gain {found['gain']:.2f} (of the shortest {found['gain_best']:.2f})"
        detail = (
            f"default {duration(found['default'])}  {'gain 1: the default stays' if kept else gain}  "
            f"{found['trials']} candidates, {found['dropped']} dropped  {found['schedule']}"
        )
        return [_entry(f"tuned {workload.name}, {shown}", found["samples"], None, detail)]

    return tuple(lambda only, workload=workload: measure(workload, only) for workload in workloads("tuning"))


def tuning_gain(workload: Workload, seconds: float) -> dict[str, Any]:
    """Search, then time the function as it was before and as every later process finds it, in turns."""
    before, searched, after = (next(iter(compile(workload.text, target="cpu", allow=QUIET).values())) for _ in range(3))
    own = tuple(make_data(workload, before, workload.sizes[0]).values())
    expected = before(*own)
    log = searched.tune(*own, seconds=seconds)
    if not before.judge(*own)(expected, after(*own)):
        raise AssertionError(f"{workload.name}: the tuned schedule gives another result")
    default, tuned = benchmark({"default": lambda: before(*own), "tuned": lambda: after(*own)}, 4.0)
    return {
        "samples": list(tuned.samples),
        "default": default.median,
        "gain": default.median / tuned.median,
        "gain_best": default.best / tuned.best,
        "trials": len(log.trials),
        "dropped": sum(bool(trial.dropped) for trial in log.trials),
        "schedule": log.best.name if log.best is not log.trials[0] else "default",
    }


def measure_workload(
    workload: Workload, function: Function, sizes: Mapping[str, int], limits: Limits | None, compiled: bool
) -> Entry:
    """Time one workload at one set of sizes on a GPU against its peers.

    Args:
        compiled: `torch.compile` is a peer too.
    """
    arrays = make_data(workload, function, sizes)
    own = moved(arrays, "cupy")
    candidates: dict[str, Callable[[], Any]] = {"tc_jupyter": lambda: function(*own.values())}
    agrees: dict[str, bool] = {}
    expected, judge = candidates["tc_jupyter"](), function.judge(*own.values())
    for library in ("torch", "cupy"):
        if library not in workload.peers or not installed(library):
            continue
        if library == "torch":  # its convolutions round their operands to TF32 unless told otherwise
            import_module("torch").backends.cudnn.allow_tf32 = False
        peer = peer_call(library, workload.peers[library], moved(arrays, library))
        candidates[library] = peer
        agrees[library] = judge(expected, peer())
        if compiled and library == "torch":
            fast = import_module("torch").compile(peer)
            candidates["torch.compile"] = fast
            agrees["torch.compile"] = judge(expected, fast())
    timings = benchmark(candidates, seconds=2.0, synchronize=cuda.synchronize)
    counts = function.cost(**dict(sizes))
    rows = rows_of(timings, counts.flops, counts.bytes, limits, agrees)
    ours, *peers = rows
    best = min((row.best for row in peers if row.best is not None), default=None)
    shown = " ".join(f"{name}={value}" for name, value in sizes.items())
    rates = (
        f"{ours.gflops:.3g} GFLOP/s {ours.gbs:.3g} GB/s" if ours.gflops and ours.gbs else f"{ours.gbs or 0:.3g} GB/s"
    )
    limit = "" if ours.fraction is None else f"{ours.fraction:.0%} of the limit"
    wrong = " ".join(f"{row.name} DIFFERS" for row in peers if row.agrees is False)
    others = " ".join(f"{row.name} {duration(row.best or row.median)}, median {duration(row.median)}" for row in peers)
    detail = "  ".join(part for part in (rates, limit, others, wrong) if part)
    ratio = None if best is None else timings[0].best / best
    return _entry_of(f"{workload.name}, {shown}", timings[0], ratio=ratio, detail=detail, peers=rows)
