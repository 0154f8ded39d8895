"""What is installed, which engine is used and why.

Comes in: nothing. Goes out: a `Report` of findings that prints as text. Looking imports no slow package: versions come from the
metadata of distributions, and only libraries that answer quickly are loaded.

Worked example: `print(doctor())` begins with `engine: cpu (llvmlite 0.50.0)`.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from .cpus import available_cpus


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        state: `ok`, `absent` (something optional is missing) or `broken`.
        detail: version, or what is lost without it.
        help: how to change that, or empty.
    """

    name: str
    state: str
    detail: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. `engine` is what `target=None` uses on this machine, `reason` says why."""

    engine: str
    reason: str
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is broken; missing optional parts are no fault."""
        return all(finding.state != "broken" for finding in self.findings)

    def __str__(self) -> str:
        width = max(len(finding.name) for finding in self.findings)
        lines = [f"engine: {self.engine} ({self.reason})"]
        for finding in self.findings:
            lines.append(f"  {finding.name.ljust(width)}  {finding.state:6}  {finding.detail}")
            if finding.help:
                lines.append(" " * (width + 12) + finding.help)
        return "\n".join(lines)


def installed(distribution: str) -> str | None:
    """The version of a distribution, or `None`."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


_OPTIONAL = (
    ("llvmlite", "without it calls on the CPU run the loop interpreter", "pip install llvmlite"),
    ("islpy", "without it some conditions are checked at the call instead of proved", "pip install islpy"),
    ("sympy", "without it there are no LaTeX and SymPy forms", "pip install sympy"),
    ("ml_dtypes", "without it NumPy has no bfloat16", "pip install ml_dtypes"),
    ("scipy", "without it some rarer functions are missing on the CPU", "pip install scipy"),
    ("torch", "PyTorch tensors as arguments", ""),
    ("jax", "JAX arrays as arguments", ""),
)
_NOTEBOOK = ("ipython", "jupyterlab", "ipywidgets", "anywidget")


def doctor() -> Report:
    """Look at this environment."""
    nvrtc, gpu = _nvrtc(), _gpu()
    findings = [
        Finding("python", "ok", f"{platform.python_version()} ({platform.platform()})"),
        Finding("numpy", "ok", version("numpy")),
        *(_package(*entry) for entry in _OPTIONAL),
        nvrtc,
        Finding("cupy", "ok", found)
        if (found := _cupy_version())
        else Finding("cupy", "absent", "calls on a GPU need it", _CUPY),
        gpu,
        *(_package(name, "part of the notebook interface", f"pip install {name}") for name in _NOTEBOOK),
        _cpu(),
    ]
    engine, reason = choose(gpu, _cupy_version(), installed("llvmlite"))
    return Report(engine, reason, tuple(findings))


def engine(target: str | None = None) -> str:
    """The engine that calls with this `target` use, and why, in one line: `cpu (llvmlite 0.45.1, 2 threads)`."""
    if target == "interpreter":
        return "interpreter (asked for: slow, the meaning of the program)"
    llvmlite, threads = installed("llvmlite"), available_cpus()
    if target == "cpu":
        return _line(*_cpu_choice(llvmlite), threads)
    gpu = _gpu()
    name, _ = choose(gpu, _cupy_version(), llvmlite)
    if name == "cuda" or target == "cuda":
        ready = "; calls fail here, text and cubins are made" if name != "cuda" else ""
        return f"cuda ({gpu.detail}{ready})"
    return _line(*_cpu_choice(llvmlite), threads) + "; no GPU in use"


def _line(name: str, reason: str, threads: int) -> str:
    count = "1 thread" if threads == 1 else f"{threads} threads"
    return f"{name} ({reason}, {count})" if name == "cpu" else f"{name} ({reason})"


def _cpu_choice(llvmlite: str | None) -> tuple[str, str]:
    """What runs calls on the CPU and why."""
    return ("cpu", f"llvmlite {llvmlite}") if llvmlite else ("interpreter", "llvmlite is not installed")


_CUPY = 'pip install "tc_jupyter[cuda12]" or "tc_jupyter[cuda13]", after the driver'


def choose(gpu: Finding, cupy: str | None, llvmlite: str | None) -> tuple[str, str]:
    """The engine of `target=None` and why."""
    cpu = _cpu_choice(llvmlite)
    if gpu.state == "ok" and cupy:
        return "cuda", f"{gpu.detail}, CuPy {cupy}"
    return cpu[0], f"{cpu[1]}; {gpu.detail}"


def _package(name: str, purpose: str, help: str) -> Finding:
    found = installed(name)
    if found is None:
        return Finding(name, "absent", purpose, help)
    if find_spec(name if name != "ipython" else "IPython") is None:
        return Finding(
            name, "broken", f"{found} is registered but cannot be imported", f"pip install --force-reinstall {name}"
        )
    return Finding(name, "ok", found)


def _cupy_version() -> str | None:
    names = ("cupy", "cupy-cuda12x", "cupy-cuda13x")
    return next((found for name in names if (found := installed(name))), None)


def _nvrtc() -> Finding:
    from . import nvrtc  # noqa: PLC0415  loads a large library

    missing = nvrtc.available()
    if missing is not None:
        return Finding("nvrtc", "absent", "CUDA text is shown but not compiled", missing)
    return Finding("nvrtc", "ok", ".".join(str(part) for part in nvrtc.version()))


def _gpu() -> Finding:
    from .cuda import USABLE, probe  # noqa: PLC0415  asks the driver

    found = probe()
    if found.state == USABLE:
        return Finding("gpu", "ok", str(found.devices[0]))
    devices = ", ".join(str(device) for device in found.devices)
    return Finding("gpu", "absent", f"{devices}: {found.reason}" if devices else found.reason)


def _cpu() -> Finding:
    threads = available_cpus()
    count = "1 thread" if threads == 1 else f"{threads} threads"
    return Finding("cpu", "ok", f"{platform.machine()}, {count}, {sys.byteorder} endian")
