"""Everything that only a GPU can show, in order of value: `tc-jupyter gpu-check`.

Each stage runs in a process of its own, because an illegal access poisons the context of the process that made it. Results are
written after every row, and rows that a file already holds are not measured again. Needs NumPy, lark and CuPy; what else is missing
(compute-sanitizer, PyTorch, llvmlite) is named and left out.

    python tests/gpu/check.py --seconds 540 --json results.json --jobs 12
    python tests/gpu/check.py --seconds 280 --stages timings,parity --only "MLP1,C3 of,in parts"
    python tests/gpu/check.py --dry-run        # needs NVRTC only

Exit status: 0 everything agreed, 1 something differed or failed, 2 there is no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from tc_jupyter import CallError  # noqa: E402
from tc_jupyter.bench import runner as bench  # noqa: E402
from tc_jupyter.codegen.cuda import emit_cuda  # noqa: E402
from tc_jupyter.function import compile, gpu_available  # noqa: E402
from tc_jupyter.runtime import cubin, nvrtc  # noqa: E402
from tc_jupyter.runtime.arguments import parameters_of  # noqa: E402
from tc_jupyter.runtime.arrays import numpy_dtype  # noqa: E402
from tests.gpu.cases import ARCHITECTURES, CASES, kernels, scheduled  # noqa: E402
from tests.gpu.device import called_on_gpu, on_gpu  # noqa: E402
from tests.running import number  # noqa: E402

EXTENTS = (1, 31, 32, 33, 127, 128, 129, 211)
"""Below, at and above the edges of tiles, and a prime."""
MOST_POINTS = 1 << 26
"""Typical sizes of a template with more points are left out: the other engine takes seconds for them."""
SMALL = (1, 33)
BATCHES, DRAWS = 48, 40
"""Seeds of random programs, and how many programs hypothesis draws for each."""
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
QUIET = tuple(f"TC{code}" for code in (231, 232, 234, 235, 237, *range(321, 331)))
Row = dict[str, Any]
Measured = tuple[str, Callable[[], Row]]


def main() -> int:
    """Run all stages, or the one that a parent process asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--jobs", type=int, default=max(1, min(12, (os.cpu_count() or 1) - 4)))
    parser.add_argument("--compiled", action="store_true", help="time torch.compile too")
    parser.add_argument("--stages", default=",".join(STAGES), help="which stages, in this order: timings,parity")
    parser.add_argument("--only", default="", help="rows of parity and timings whose name has one of these: MLP1,C3 of")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--stage", choices=[*STAGES, "small"], default=None, help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dry_run:
        return static_table()
    if not gpu_available():
        print("no GPU: CuPy is not installed or finds no device (`tc-jupyter doctor` says which)", file=sys.stderr)
        print("`tc-jupyter gpu-check --dry-run` shows what can be known without one", file=sys.stderr)
        return 2
    file = options.json or ROOT / "tests" / "gpu" / "results" / _file_name()
    if options.stage == "small":
        return _small()
    if options.stage is not None:
        share = None if options.share is None else Share(options.share, options.jobs)
        return run_stage(options.stage, file, options.seconds, share, options.compiled, _words(options.only))
    stages = _words(options.stages)
    unknown = [stage for stage in stages if stage not in STAGES]
    if unknown:
        parser.error(f"no stage {', '.join(unknown)}: there are {', '.join(STAGES)}")
    return run_all(file, options.seconds, options.jobs, options.compiled, stages, options.only)


@dataclass(frozen=True)
class Share:
    """Every `count`-th row of a stage, from row `first` on; its results are in a file of its own until the stage has ended."""

    first: int
    count: int

    def has(self, row: int) -> bool:
        """Whether the row with this number is in the share."""
        return row % self.count == self.first

    def file(self, file: Path) -> Path:
        """Where the share writes its rows."""
        return file.with_suffix(f".{self.first}.json")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def run_all(
    file: Path, seconds: float, jobs: int = 1, compiled: bool = False, stages: Iterable[str] = (), only: str = ""
) -> int:
    """Stages in processes of their own, while time is left; then the table.

    Args:
        jobs: how many processes share a stage that times nothing.
        compiled: time `torch.compile` too.
        stages: which, and in which order; all if empty.
        only: parts of the names of the rows of `parity` and `timings` that are wanted, with commas; all if empty.
    """
    end = time.monotonic() + seconds
    file.parent.mkdir(parents=True, exist_ok=True)
    for stage in stages or STAGES:
        left = end - time.monotonic()
        if left < 5:
            print(f"{stage}: no time left")
            continue
        shares = [Share(first, jobs) for first in range(jobs)] if stage in SHARED else []
        command = [sys.executable, __file__, "--stage", stage, "--json", str(file), "--seconds", str(left)]
        command += ["--jobs", str(jobs), "--only", only] + ["--compiled"] * compiled
        commands = [[*command, "--share", str(share.first)] for share in shares] or [command]
        started = [subprocess.Popen(each) for each in commands]
        status = [_status(process, end + 30) for process in started]
        _collect(file, shares)
        if None in status:
            print(f"{stage}: stopped, out of time")
        elif any(status) and not any(row.get("ok") is False for row in _read(file) if row["stage"] == stage):
            _write(file, [*_read(file), {"stage": stage, "name": "process", "ok": False, "error": f"status {status}"}])
    rows = _read(file)
    table = file.with_suffix(".md")
    table.write_text(markdown(rows))
    print(f"\n{len(rows)} rows in {file}, table in {table}")
    return int(any(row.get("ok") is False for row in rows))


def _status(process: subprocess.Popen[bytes], end: float) -> int | None:
    """The exit status of a process; `None` if it had to be killed at `end`."""
    try:
        return process.wait(max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _collect(file: Path, shares: list[Share]) -> None:
    """Put the rows of the shares into the file."""
    for share in shares:
        rows = _read(share.file(file))
        new = {(row["stage"], row["name"]) for row in rows}
        _write(file, [*(row for row in _read(file) if (row["stage"], row["name"]) not in new), *rows])
        share.file(file).unlink(missing_ok=True)


def run_stage(
    name: str,
    file: Path,
    seconds: float,
    share: Share | None = None,
    compiled: bool = False,
    only: Iterable[str] = (),
) -> int:
    """The rows of one stage that the file does not hold yet, or a share of them; written one by one.

    Args:
        only: parts of the names of rows: those of `parity` and `timings` that have none of them are left out, and the others come
            in the order of the parts.
    """
    end = time.monotonic() + seconds
    known = {(row["stage"], row["name"]) for row in _read(file) if row.get("ok") is not False}
    target = file if share is None else share.file(file)
    rows = _read(target)
    failed = False
    for place, (label, measure) in enumerate(_wanted(STAGES[name](compiled), only if name in NAMED else ())):
        if (name, label) in known or not (share is None or share.has(place)):
            continue
        if time.monotonic() > end:
            print(f"{name}: no time left")
            break
        row: Row = {"stage": name, "name": label}
        try:
            row |= measure()
        except Exception as problem:  # a row that fails must not hide the others
            row |= {"ok": False, "error": f"{type(problem).__name__}: {problem}"[:400]}
        failed |= row.get("ok") is False
        rows = [old for old in rows if (old["stage"], old["name"]) != (name, label)] + [row]
        _write(target, rows)
        print(f"{name:10} {label:48} {_shown(row)}", flush=True)
        if _poisoned():
            print(f"{name}: the context of this process is lost; call gpu-check again to go on")
            break
    return int(failed)


def _wanted(rows: Iterable[Measured], only: Iterable[str]) -> Iterable[Measured]:
    """The rows whose names have one of some parts, in the order of these; all rows if there are none."""
    every = list(rows)
    found = {label: measure for part in only for label, measure in every if part in label}
    return list(found.items()) if tuple(only) else every


def _poisoned() -> bool:
    """Whether a kernel has accessed memory that it must not: nothing that this process asks of the GPU works any more."""
    import cupy

    try:
        cupy.cuda.Device().synchronize()
    except cupy.cuda.runtime.CUDARuntimeError:
        return True
    return False


# --- stages: (name of the row, what measures it) ---------------------------------------------------------------------


def record(compiled: bool = False) -> Iterator[tuple[str, Callable[[], Row]]]:
    """What the numbers belong to."""

    def machine() -> Row:
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(0)
        free, total = cupy.cuda.runtime.memGetInfo()
        return {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "gpu": properties["name"].decode(),
            "capability": f"{properties['major']}.{properties['minor']}",
            "driver": cupy.cuda.runtime.driverGetVersion(),
            "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
            "cupy": cupy.__version__,
            "python": platform.python_version(),
            "commit": _commit(),
            "free_bytes": free,
            "total_bytes": total,
        }

    yield "machine", machine


def parity(compiled: bool = False) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Every template at extents around its tiles, against the interpreter or the CPU engine."""
    for name, case in CASES.items():
        letters = sorted({letter for sizes in case.sizes for letter in sizes})
        labels: dict[str, dict[str, int]] = {}
        rows = [{letter: _extent(letter, each, len(letters)) for letter in letters} for each in EXTENTS if letters]
        typical = {letter: case.typical.get(letter, 64) for letter in letters}
        if case.typical and math.prod(typical.values()) <= MOST_POINTS:
            rows.append({letter: value - 3 if value > 64 else value for letter, value in typical.items()})
        for sizes in rows or [{}]:
            labels[" ".join((name, *(f"{letter}={value}" for letter, value in sizes.items())))] = sizes
        for label, sizes in labels.items():
            yield label, lambda name=name, sizes=sizes: compare(CASES[name].text, sizes)


def programs(compiled: bool = False) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Random programs of the campaign `--simulate`, called on the GPU instead; each row draws from a seed of its own."""
    for seed in range(BATCHES):
        yield f"seed {seed}", lambda seed=seed: drawn_programs(seed)


def sanitizer(compiled: bool = False) -> Iterator[tuple[str, Callable[[], Row]]]:
    """The templates on small arrays under each tool of compute-sanitizer; a planted bug shows that the tool works."""
    path = shutil.which("compute-sanitizer")

    def watched(tool: str) -> Row:
        if path is None:
            return {"left_out": "compute-sanitizer is not installed"}
        command = [path, "--tool", tool, "--error-exitcode", "9", sys.executable, __file__, "--stage", "small"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
        return {"ok": done.returncode == 0, "summary": done.stdout.strip().splitlines()[-1:]}

    def planted() -> Row:
        if path is None:
            return {"left_out": "compute-sanitizer is not installed"}
        command = [path, "--tool", "memcheck", "--error-exitcode", "9", sys.executable, "-c", PLANTED]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        return {"ok": done.returncode == 9}

    yield "planted bug", planted
    for tool in TOOLS:
        yield tool, lambda tool=tool: watched(tool)


PLANTED = """
import cupy
text = 'extern "C" __global__ void f(float* x) { x[1 << 20] = 1.0f; }'
cupy.RawKernel(text, "f")((1,), (1,), (cupy.zeros(1, cupy.float32),))
cupy.cuda.Device().synchronize()
"""


def ceilings(compiled: bool = False) -> Iterator[tuple[str, Callable[[], Row]]]:
    """What the device can do: a large copy, large products of the vendor's library."""

    def copy() -> Row:
        import cupy

        source = cupy.ones(1 << 28, cupy.float32)
        target = cupy.empty_like(source)
        seconds = _timed(lambda: cupy.copyto(target, source))
        return {"seconds": seconds, "gbs": 2 * source.nbytes / seconds / 1e9}

    def product(dtype: str) -> Row:
        import cupy

        a = cupy.random.rand(8192, 8192, dtype=cupy.float32).astype(dtype)
        seconds = _timed(lambda: cupy.matmul(a, a))
        return {"seconds": seconds, "tflops": 2 * 8192**3 / seconds / 1e12}

    yield "copy", copy
    for dtype in ("float32", "float16"):
        yield f"product {dtype}", lambda dtype=dtype: product(dtype)


def timings(compiled: bool = False) -> Iterator[tuple[str, Callable[[], Row]]]:
    """The GPU suite against CuPy, PyTorch and `torch.compile` where installed, interleaved in one process."""
    for workload in bench.workloads("gpu"):
        for sizes in workload.sizes:
            label = f"{workload.name} {' '.join(f'{k}={v}' for k, v in sizes.items())}"
            yield label, lambda workload=workload, sizes=sizes: _against_peers(workload, sizes, compiled)


STAGES: dict[str, Callable[[bool], Iterator[tuple[str, Callable[[], Row]]]]] = {
    "record": record,
    "parity": parity,
    "programs": programs,
    "ceilings": ceilings,
    "timings": timings,
    "sanitizer": sanitizer,
}
NAMED = ("parity", "timings")
"""Stages of which `--only` chooses rows."""
SHARED = ("parity", "programs", "sanitizer")
"""Stages that time nothing: several processes share them."""


# --- parts -----------------------------------------------------------------------------------------------------------


def _extent(letter: str, extent: int, letters: int) -> int:
    """Windows stay short; where a def has many sizes the outer ones do too."""
    if letter in "RS":
        return 1 if extent == 1 else 3
    if letters > 4:
        return max(4, min(extent, 20))
    return min(extent, 9 if letter in "B" else 129 if letters == 4 else extent)


def arguments_for(text: str, sizes: dict[str, int], seed: int = 0) -> dict[str, Any]:
    """Fresh random arguments by name; integers are small enough to be indices."""
    (function,) = compile(text, target="interpreter", allow=QUIET).values()
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for parameter in parameters_of(function.program):
        shape = tuple(sizes[dim] if isinstance(dim, str) else int(dim or 1) for dim in parameter.dims)
        dtype = numpy_dtype(parameter.dtype)
        value = rng.uniform(-1, 1, shape) if parameter.dtype.is_float else rng.integers(0, 5, shape)
        found[parameter.name] = np.asarray(value, dtype) if parameter.rank else value.item()
    return found


def compare(text: str, sizes: dict[str, int]) -> Row:
    """One call on the GPU against the CPU; the error relative to the norm."""
    arrays = arguments_for(text, sizes, seed=int(time.time()))
    (expected_of,) = compile(text, target=_host_engine(), allow=QUIET).values()
    try:
        expected = expected_of(*arrays.values())
    except CallError as problem:
        return {"left_out": str(problem).splitlines()[0]}  # no size for this def
    actual = on_gpu(compile(text, target="cuda", allow=QUIET), arrays)
    worst, limit = 0.0, 1e-5
    for got, want in zip(actual, _several(expected), strict=True):
        host, reference = got.astype(np.float64), np.asarray(want).astype(np.float64)
        limit = max(limit, 1e-2 if np.asarray(want).dtype.itemsize == 2 else 1e-5)
        scale = float(np.linalg.norm(reference)) or 1.0
        worst = max(worst, float(np.linalg.norm(host - reference)) / scale)
    return {"ok": bool(worst <= limit), "error": worst}


def _small() -> int:
    """Every template on two small sizes, for the sanitizer; wrong values are its parent's business elsewhere."""
    for case in CASES.values():
        letters = sorted({letter for sizes in case.sizes for letter in sizes})
        for extent in SMALL:
            with contextlib.suppress(CallError):  # no size for this def
                sizes = {letter: _extent(letter, extent, len(letters)) for letter in letters}
                on_gpu(compile(case.text, target="cuda", allow=QUIET), arguments_for(case.text, sizes))
    return 0


def drawn_programs(number: int) -> Row:
    """The random programs of one seed, against the loop interpreter; those that fail are in the row."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st
    from hypothesis.errors import UnsatisfiedAssumption

    from tests.simulator.test_programs import PROGRAMS, SIZES, through

    outcomes: Counter[str] = Counter()
    failures: list[str] = []

    @seed(number)
    @settings(
        max_examples=DRAWS,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(PROGRAMS, SIZES, st.integers(0, 1000))
    def each(text: str, numbers: dict[str, int], data: int) -> None:
        try:
            outcomes[through(text, numbers, data, called_on_gpu)] += 1
        except UnsatisfiedAssumption:
            outcomes["refused when compiled"] += 1
        except Exception as problem:
            failures.append(f"{text!r}, {numbers}, {data}: {type(problem).__name__}: {problem}"[:1500])

    each()
    return {"ok": not failures, **outcomes, **({"failures": failures} if failures else {})}


def _against_peers(workload: bench.Workload, sizes: Mapping[str, int], compiled: bool) -> Row:
    (function,) = compile(workload.text, target="cuda", allow=QUIET).values()
    entry = bench.measure_workload(workload, function, sizes, None, compiled)
    peers = {row.name: row.median for row in entry.peers}
    agrees = all(row.agrees is not False for row in entry.peers)
    arrays = bench.moved(bench.make_data(workload, function, sizes), "cupy")
    queued = _queued(lambda: function(*arrays.values()))
    found = {"ok": agrees, "seconds": entry.median, "queued": queued, "ratio": entry.ratio}
    return {**found, "detail": entry.detail, "peers": peers}


def _queued(call: Callable[[], Any], count: int = 20) -> float:
    """Seconds of a call among many that wait in a stream: the time of its kernels, or of the host where that is longer."""
    import cupy

    best = float("inf")
    for _ in range(3):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(count):
            call()
        stop.record()
        stop.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(start, stop) / 1e3 / count)
    return best


def _timed(call: Callable[[], Any]) -> float:
    """Median of event times in seconds, after warming up."""
    import cupy

    for _ in range(5):
        call()
    found: list[float] = []
    for _ in range(20):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        found.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return float(np.median(found))


def _several(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _host_engine() -> str:
    try:
        import llvmlite  # noqa: F401
    except ImportError:
        return "interpreter"
    return "cpu"


# --- without a GPU ---------------------------------------------------------------------------------------------------


def static_table(architectures: tuple[str, ...] = ARCHITECTURES) -> int:
    """Registers, spills, shared memory and occupancy of every template's kernels; 1 if something spills on sm_80 or sm_90."""
    missing = nvrtc.available()
    if missing is not None:
        print(missing, file=sys.stderr)
        return 2
    print(f"{'template':20} {'kernel':14} {'arch':8} {'registers':>9} {'spills':>7} {'shared':>7} {'occupancy':>9}")
    spilled = False
    for row in static_rows(architectures):
        print(
            f"{row['template']:20} {row['kernel']:14} {row['arch']:8} {row['registers']:9} {row['spills']:7} "
            f"{row['shared']:7} {row['occupancy']:9.0%}"
        )
        spilled |= row["spills"] > 0 and row["arch"] in ("sm_80", "sm_90")
    return int(spilled)


def static_rows(architectures: tuple[str, ...]) -> Iterator[Row]:
    """One row per template, kernel and architecture."""
    for name, case in CASES.items():
        _, schedule = scheduled(case)
        for kernel in kernels(schedule, dict.fromkeys("BCDEHKMNRSW", 64)):
            source = emit_cuda(kernel, case.target)
            block = [number(extent, {}) for extent in source.launch.block]
            for arch in architectures:
                compiled = nvrtc.compile_cuda(source.text, arch)
                (found,) = cubin.read_resources(compiled.cubin, compiled.log)
                occupancy = cubin.occupancy(found, block[0] * block[1] * block[2], arch, source.launch.shared)
                yield {
                    "template": name,
                    "kernel": kernel.name,
                    "arch": arch,
                    "registers": found.registers,
                    "spills": found.spill_bytes,
                    "shared": found.shared_bytes,
                    "occupancy": occupancy.fraction,
                }


# --- files -----------------------------------------------------------------------------------------------------------


def markdown(rows: list[Row]) -> str:
    """The results as a table."""
    lines = ["| stage | row | result |", "| --- | --- | --- |"]
    lines += [f"| {row['stage']} | {row['name']} | {_shown(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _shown(row: Row) -> str:
    parts = ["" if row.get("ok", True) else "FAILED"]
    parts += [f"{key} {_short(value)}" for key, value in row.items() if key not in ("stage", "name", "ok", "peers")]
    return " ".join(part for part in parts if part)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _read(file: Path) -> list[Row]:
    return json.loads(file.read_text()) if file.exists() else []


def _write(file: Path, rows: list[Row]) -> None:
    file.write_text(json.dumps(rows, indent=1))


def _file_name() -> str:
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    short = "".join(char if char.isalnum() else "-" for char in name.lower())
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}-{short}.json"


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
