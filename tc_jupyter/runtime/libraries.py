"""What the numerical libraries of this process chose: the kernels that they run, and what in the environment chose them.

Worked example: on a Zen 5 `kernels()` says `numpy: openblas 0.3.30 SkylakeX`, and `numpy: openblas 0.3.30 Haswell` where the
environment has `OPENBLAS_CORETYPE=Haswell`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SLOWING = {
    "OPENBLAS_CORETYPE": "NumPy and SciPy",
    "OPENBLAS_L2_SIZE": "NumPy and SciPy",
    "MKL_ENABLE_INSTRUCTIONS": "PyTorch",
    "MKL_CBWR": "PyTorch",
    "ONEDNN_MAX_CPU_ISA": "PyTorch",
    "DNNL_MAX_CPU_ISA": "PyTorch",
}
"""With these, products take kernels and blocks of another processor than the one they run on, and who has them.

Measured on an AMD EPYC (Zen 5), best of 30 with two threads. `Haswell` and a size of the second cache for OpenBLAS: a product of
1024 takes 9.0 instead of 5.1 ms. PyTorch's of 512 takes 1.3 ms, 3.7 with `MKL_ENABLE_INSTRUCTIONS=SSE4_2`, and 3.2 with
`MKL_CBWR=COMPATIBLE`; its convolution of 32 channels, 64 x 64, takes 0.22 ms, and 0.81 with `SSE41` for oneDNN (either name).
"""
THREADS = (
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "HL_NUM_THREADS",
)
"""What says on how many threads other libraries compute. On two processors, NumPy's product of 512 takes 0.6 ms, and 1.2 with 1."""


def slowed() -> tuple[str, ...]:
    """The variables of `SLOWING` that are set, with their values."""
    return tuple(f"{name}={os.environ[name]}" for name in SLOWING if name in os.environ)


def limited(threads: int) -> tuple[str, ...]:
    """The variables of `THREADS` that let other libraries have fewer threads than `threads`, with their values."""
    found = ((name, os.environ.get(name, "").partition(",")[0].strip()) for name in THREADS)  # of `4,2` the outer ones
    return tuple(f"{name}={count}" for name, count in found if count.isdecimal() and 0 < int(count) < threads)


def unslowed() -> dict[str, str]:
    """The environment without what slows, for a process that measures: libraries read it once, when they are loaded."""
    return {name: value for name, value in os.environ.items() if name not in SLOWING}


def slowed_note(threads: int) -> tuple[str, ...]:
    """What a table with other libraries says below it.

    Args:
        threads: those of the function that they are compared with.
    """
    notes: list[str] = []
    for owner in dict.fromkeys(SLOWING.values()):
        if found := [each for each in slowed() if SLOWING[each.partition("=")[0]] == owner]:
            notes.append(f"{_are_set(found)}: {owner} may run kernels of another processor, which are slower")
    if found := limited(threads):
        notes.append(
            f"{_are_set(found)}: other libraries may compute on fewer threads than this function, which has {threads}"
        )
    return tuple(notes)


def _are_set(found: Sequence[str]) -> str:
    return f"{' and '.join(found)} {'is' if len(found) == 1 else 'are'} set"


def kernels() -> tuple[str, ...]:
    """The kernels of every library that is loaded now, one line each."""
    found = [_kernel(each) for each in _pools() if each.get("internal_api") != "openmp"]
    if find_spec("threadpoolctl") is None:
        found.append("NumPy and SciPy: not known without threadpoolctl")
    torch = sys.modules.get("torch")
    if torch is not None:
        found.append(f"torch: {torch.backends.cpu.get_cpu_capability()}")
    return tuple(dict.fromkeys(found))


def _kernel(pool: Mapping[str, Any]) -> str:
    words = (pool.get("internal_api"), pool.get("version"), pool.get("architecture"))
    return f"{_owner(str(pool.get('filepath', '')))}: {' '.join(str(word) for word in words if word)}"


def _owner(file: str) -> str:
    """The package whose library a file is: `.../site-packages/scipy.libs/libopenblas.so` is SciPy's."""
    parts = Path(file).parts
    inside = [parts[n + 1] for n, part in enumerate(parts[:-1]) if part == "site-packages"]
    return inside[-1].partition(".")[0] if inside else Path(file).name


def _pools() -> list[dict[str, Any]]:
    """What threadpoolctl finds; nothing where it is not installed."""
    if find_spec("threadpoolctl") is None:
        return []
    import threadpoolctl  # noqa: PLC0415

    return threadpoolctl.threadpool_info()
