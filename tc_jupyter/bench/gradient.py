"""The suite `gradient`: derivatives of the workloads of the suite `cpu`, against those of PyTorch's own functions.

Calls are recorded by PyTorch. Backward alone is the derivative of a call that was made before; `both` is a call and its derivative.
JAX is a peer of `both`, as the compiled `jax.vjp` of its own functions. All candidates take turns, on one number of threads per
process; every derivative is compared with that of PyTorch. A derivative that is a view of what was given, as that of a transposed
matrix is, is not measured alone.

Worked example: of the matrix product, `torch.autograd.grad(f(A, B), (A, B), dC)` against the same with `torch.matmul(A, B)`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tc_jupyter.compiler.peers import installed, moved
from tc_jupyter.function import compile
from tc_jupyter.program import Program
from tc_jupyter.runtime import peak, threads
from tc_jupyter.runtime.timing import Timing, benchmark, duration

from .cpu import QUIET, counts_of, geometric_mean, in_child, none_named, processor, report
from .workloads import Workload, make_data, workloads

SECONDS = 1.0
"""How long one line is measured."""
LEAST_ROUNDS = 7
TARGETS = {"mean": 1.0, "worst": 1.3}
"""Aims: the geometric mean over PyTorch, and the slowest line."""
TOLERANCE = 1e-3
"""How far derivatives may be apart, of the largest one: PyTorch sums in another order."""


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement: shortest times in seconds, and medians.

    Attributes:
        kind: `backward` or `both`.
        peers: library -> shortest time and median.
        agrees: whether the derivatives are those of PyTorch.
    """

    name: str
    sizes: str
    kind: str
    threads: int
    time: float
    median: float
    peers: Mapping[str, Sequence[float]]
    agrees: bool

    @property
    def ratio(self) -> float:
        """The shortest time over that of PyTorch."""
        return self.time / self.peers["torch"][0]

    @property
    def text(self) -> str:
        """As one line of the table."""
        others = "  ".join(
            f"{name} {duration(best)}, median {duration(median)}" for name, (best, median) in self.peers.items()
        )
        wrong = "" if self.agrees else "  DIFFERS"
        times = f"{duration(self.time):>8} {duration(self.median):>8}"
        return f"{f'{self.name}, {self.sizes}: {self.kind}':72} {times}  {self.ratio:5.2f}  {others}{wrong}"


def gradients() -> list[Workload]:
    """The workloads of the suite `cpu` that PyTorch computes."""
    return [each for each in workloads("cpu") if "torch" in each.peers]


def run(json_file: str | None, only: str, thread_count: int | None) -> int:
    """Measure, print a line per set of sizes and the summary.

    Returns:
        0; 1 if derivatives differ; 2 if there is no PyTorch, or `only` names no workload.
    """
    if not installed("torch"):
        print("tc-jupyter: the suite `gradient` needs PyTorch")
        return 2
    names = [each.name for each in gradients()]
    if not any(only in name for name in names):
        return none_named("gradient", only, names)
    head = f"{processor()}, PyTorch {import_module('torch').__version__}"
    print(head)
    counts = counts_of(thread_count)
    found = [Line(**entry) for count in counts for entry in in_child("gradient", (only, count), count)]
    report("gradient", [head], found, summary(found), json_file)
    return 1 if any(not each.agrees for each in found) else 0


def measure_to(file: str, only: str, thread_count: int) -> None:
    """Measure with this process's threads and write the results to a file."""
    threads.set_threads(thread_count)
    import_module("torch").set_num_threads(thread_count)
    print(f"\n{thread_count} thread{'s' * (thread_count > 1)}")
    print(f"{'':72} {'shortest':>8} {'median':>8}  over PyTorch", flush=True)
    entries: list[dict[str, Any]] = []
    for workload in gradients():
        for sizes in workload.sizes if only in workload.name else ():
            for line in measure(workload, sizes, thread_count):
                print(line.text, flush=True)
                entries.append(asdict(line))
    Path(file).write_text(json.dumps(entries))


def measure(
    workload: Workload, sizes: Mapping[str, int], thread_count: int, seconds: float = SECONDS
) -> Iterator[Line]:
    """Time the derivative of one workload at one set of sizes, alone and with its call; nothing where it has none."""
    (function,) = compile(workload.text, target="cpu", allow=QUIET).values()
    arrays = make_data(workload, function, sizes)
    if not _floats(function.program):
        return
    torch: Any = import_module("torch")
    tensors = {name: _leaf(value) for name, value in moved(arrays, "torch").items()}
    leaves = [value for value in tensors.values() if getattr(value, "requires_grad", False)]
    scope = {"torch": torch, "F": import_module("torch.nn.functional"), "np": np, **tensors}
    theirs: Callable[[], Any] = eval(f"lambda: ({workload.peers['torch']}\n)", scope)
    forwards = {"tc_jupyter": lambda: function(*tensors.values()), "torch": theirs}
    results = {name: _floating(call()) for name, call in forwards.items()}
    if not all(each.requires_grad for each in results["torch"]):
        return
    cotangents = [torch.ones_like(each).uniform_(-1, 1) for each in results["torch"]]

    def backward(name: str) -> Any:
        return torch.autograd.grad(results[name], leaves, cotangents, retain_graph=True)

    def both(name: str) -> Any:
        return torch.autograd.grad(_floating(forwards[name]()), leaves, cotangents)

    found = {name: backward(name) for name in forwards}
    agrees = all(map(_close, found["torch"], found["tc_jupyter"]))
    jax = {"jax": _of_jax(workload, arrays, cotangents)} if "jax" in workload.peers and installed("jax") else {}
    shown = " ".join(f"{name}={value}" for name, value in sizes.items())
    alone = not {_memory(each) for each in found["torch"]} & {_memory(each) for each in cotangents}
    for kind, timed, more in ((("backward", backward, {}),) if alone else ()) + (("both", both, jax),):
        candidates = {name: lambda name=name, timed=timed: timed(name) for name in forwards} | more
        timings = benchmark(candidates, seconds=seconds, quiet=peak.quiet(thread_count), least=LEAST_ROUNDS)
        yield _line(workload.name, shown, kind, thread_count, timings, agrees)


def _memory(tensor: Any) -> int:
    return tensor.untyped_storage().data_ptr()


def _line(name: str, sizes: str, kind: str, count: int, timings: Sequence[Timing], agrees: bool) -> Line:
    ours, *others = timings
    peers = {each.name: (each.best, each.median) for each in others}
    return Line(name, sizes, kind, count, ours.best, ours.median, peers, agrees)


def _floats(program: Program) -> bool:
    """Whether the def has derivatives."""
    sides = ([program.tensor(name) for name in names] for names in (program.parameters, program.results))
    return all(any(each.dtype.is_float and not each.pairs for each in side) for side in sides)


def _leaf(value: Any) -> Any:
    """A tensor of floats that requires a gradient; others as they are."""
    floating = hasattr(value, "is_floating_point") and value.is_floating_point()
    return value.requires_grad_() if floating else value


def _floating(results: Any) -> list[Any]:
    """The results that are floats."""
    several: Sequence[Any] = results if isinstance(results, (tuple, list)) else (results,)
    return [each for each in several if each.is_floating_point()]


def _close(expected: Any, found: Any) -> bool:
    largest = float(expected.abs().max()) if expected.numel() else 0.0
    return expected.shape == found.shape and float((expected - found).abs().max()) <= TOLERANCE * max(largest, 1e-30)


def _of_jax(workload: Workload, arrays: Mapping[str, Any], cotangents: Sequence[Any]) -> Callable[[], Any]:
    """The compiled call and its derivative by JAX's own functions."""
    jax: Any = import_module("jax")
    numpy: Any = import_module("jax.numpy")
    values = moved(arrays, "jax")
    floats = [name for name, value in values.items() if hasattr(value, "dtype") and value.dtype.kind == "f"]
    others = {name: value for name, value in values.items() if name not in floats}
    scope = {"jax": jax, "jnp": numpy, "np": np, **others}
    function: Callable[..., Any] = eval(f"lambda {', '.join(floats)}: ({workload.peers['jax']}\n)", scope)
    given = [numpy.asarray(each.numpy()) for each in cotangents]

    def pulled(given: Sequence[Any], *args: Any) -> Any:
        results, pull = jax.vjp(function, *args)
        if not isinstance(results, tuple):
            return pull(given[0])
        several, floats = [results], iter(given)
        zeros = [np.zeros(each.shape, jax.dtypes.float0) for each in several[0]]
        whole = zip(several[0], zeros, strict=True)
        return pull(tuple(next(floats) if each.dtype.kind == "f" else zero for each, zero in whole))

    fast, leaves = jax.jit(pulled), [values[name] for name in floats]
    return lambda: jax.block_until_ready(fast(given, *leaves))


def summary(lines: Sequence[Line]) -> list[str]:
    """Means and the slowest lines per number of threads and kind."""
    shown: list[str] = []
    for count, kind in dict.fromkeys((each.threads, each.kind) for each in lines):
        own = [each for each in lines if (each.threads, each.kind) == (count, kind)]
        mean = geometric_mean([each.ratio for each in own])
        slow = sorted((each for each in own if each.ratio > TARGETS["worst"]), key=lambda each: -each.ratio)
        shown += [
            "",
            f"{count} thread{'s' * (count > 1)}, {kind}: geometric mean over PyTorch {mean:.2f} (aim {TARGETS['mean']}), "
            f"{len(slow)} of {len(own)} above {TARGETS['worst']}",
        ]
        shown += [f"  {each.name}, {each.sizes}: {each.ratio:.2f}" for each in slow]
        beside = [each.time / each.peers["jax"][0] for each in own if "jax" in each.peers]
        if beside:
            shown.append(f"  over jax.vjp: geometric mean {geometric_mean(beside):.2f}")
    return shown
