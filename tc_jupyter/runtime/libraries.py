"""What the numerical libraries of this process chose: the kernels that they run, and what in the environment chose them.

Worked example: on a Zen 5 `kernels()` says `numpy: openblas 0.3.30 SkylakeX`, and `numpy: openblas 0.3.30 Haswell` where the
environment has `OPENBLAS_CORETYPE=Haswell`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""With these OpenBLAS takes kernels and blocks of another processor than the one it runs on.

Measured on an AMD EPYC (Zen 5) with `Haswell` and a size of the second cache: a product of 1024 takes 9.0 instead of 5.1 ms.
"""


def slowed() -> tuple[str, ...]:
    """The variables of `SLOWING` that are set, with their values."""
    return tuple(f"{name}={os.environ[name]}" for name in SLOWING if name in os.environ)


def unslowed() -> dict[str, str]:
    """The environment without them, for a process that measures: libraries read them once, when they are loaded."""
    return {name: value for name, value in os.environ.items() if name not in SLOWING}


def slowed_note() -> tuple[str, ...]:
    """What a table with other libraries says below it."""
    found = slowed()
    if not found:
        return ()
    verb = "is" if len(found) == 1 else "are"
    return (
        f"{' and '.join(found)} {verb} set: NumPy and SciPy may run kernels of another processor, which are slower",
    )


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
