"""The CPU as a `Target`, and kernels that run on it.

Worked example: `kernel = load(source, cache)`; `kernel.run(slots)`, where `slots` is a ctypes array with one `int64` for each
argument of the source.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tc_jupyter.codegen import KernelSource
from tc_jupyter.codegen.llvm import EXTERNAL
from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, codes
from tc_jupyter.schedule import Target

from . import jit, threads
from .ahead import Ahead
from .cache import DiskCache, key_of
from .launch import EntryPoint, LoadedKernel, counter, entry_point
from .nvrtc import BackendError

LLC_BYTES_PER_CPU = 4 << 20
"""No more of the last cache counts per processor: a virtual machine tells the cache of the whole chip, which others use too."""

MISSING = "the compiler for the CPU is not installed: pip install llvmlite"


def cpu_target() -> Target:
    """The machine, by features and not by name.

    Raises:
        BackendError: llvmlite is not installed.
    """
    if not jit.available():
        raise BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, MISSING))
    triple, name, found = jit.host()
    features = frozenset(found)
    bits, registers, fma = _vectors(triple, features)
    level1, level2, level3 = _caches()
    return Target(
        kind="cpu",
        name=_processor_name() or name,
        features=features,
        vector_bits=bits,
        vector_registers=registers,
        fma=fma,
        threads=threads.get_threads(),
        l1_bytes=level1,
        l2_bytes=level2,
        llc_bytes=level3,
        arch=triple,
    )


_V1 = frozenset({"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"})
_V2 = _V1 | {"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"}
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
LEVELS = {
    "x86-64": _V1,
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
}
"""The levels of the ABI of x86-64, by the features that LLVM names."""


def other_target(target: Target, features: frozenset[str]) -> Target:
    """A processor of the same family with other features, with caches and threads as of this machine."""
    bits, registers, fma = _vectors(target.arch, features)
    return replace(target, name="", features=features, vector_bits=bits, vector_registers=registers, fma=fma)


def _vectors(triple: str, features: frozenset[str]) -> tuple[int, int, bool]:
    """Register width in bits, number of registers, fused multiply-add."""
    if triple.startswith(("aarch64", "arm64")):
        return 128, 32, True
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= features:
        return 512, 32, True
    if {"avx2", "fma"} <= features:
        return 256, 16, True
    return 128, 16, "fma" in features


def options_of(target: Target) -> jit.Options:
    """Compiler options for a target; the host's own features unless some were taken away."""
    found = frozenset(jit.host()[2])
    if target.features == found:
        return jit.Options()
    gone = [f"-{name}" for name in sorted(found - target.features)]
    return jit.Options(features=",".join([*(f"+{name}" for name in sorted(target.features)), *gone]))


@lru_cache(maxsize=1)
def _caches() -> tuple[int, int, int]:
    """Bytes of the first, second and last level data cache, as far as the system tells; else usual values."""
    found = {1: 32 << 10, 2: 1 << 20, 3: 24 << 20}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind, level, size = ((folder / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        number = size.rstrip("KMG")
        if kind in ("Data", "Unified") and level.isdigit() and number.isdigit():
            unit = {"K": 10, "M": 20, "G": 30}.get(size[-1], 0)
            found[int(level)] = int(number) << unit
    return found[1], found[2], min(found[3], (os.cpu_count() or 1) * LLC_BYTES_PER_CPU)


@lru_cache(maxsize=1)
def _processor_name() -> str:
    """The processor's name for display."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""


def object_key(source: KernelSource, options: jit.Options) -> str:
    """The cache key of a kernel's object code: text, target and versions."""
    features = options.features or jit.host_feature_string()
    return key_of("object", source.text, jit.host()[0], features, jit.version())


def load(
    source: KernelSource, cache: DiskCache | None = None, target: Target | None = None, ahead: Ahead | None = None
) -> LoadedKernel:
    """Compile a kernel, or take its object from the cache, and load it.

    Args:
        ahead: what may have compiled it already.

    Raises:
        BackendError: LLVM refuses the text, or a library is missing.
    """
    options = jit.Options() if target is None else options_of(target)
    key = object_key(source, options) if cache is not None else ""
    entry = entry_point(source)
    found = None if cache is None else stored(key, entry, cache)
    if found is not None:
        return found
    code = jit.emit_object(source.text, options) if ahead is None else ahead.result(source.text)
    symbols = jit.externals(source.text)
    if cache is not None:
        cache.put(key, code, {"symbols": list(symbols), "entry": source.entry})
    return _loaded(code, symbols, entry)


def ahead(target: Target) -> Ahead:
    """What compiles kernels for a target while others are printed; its user is inside `MAKING`."""
    options = options_of(target)
    return Ahead(lambda text: jit.emit_object_inside(text, options), jit.put_back)


def stored(key: str, entry: EntryPoint, cache: DiskCache) -> LoadedKernel | None:
    """The kernel of an object in the cache, or `None` if it is not there whole.

    Args:
        key: what `object_key` gave.
        entry: its entry point.

    Raises:
        BackendError: a library is missing.
    """
    found = cache.get(key)
    symbols = None if found is None else found.meta.get("symbols")
    if found is None or not isinstance(symbols, list) or found.meta.get("entry") != entry.name:
        return None
    if not EXTERNAL.keys() >= set(map(str, symbols)) or not jit.is_object(found.data):
        return None
    try:
        return _loaded(found.data, list(map(str, symbols)), entry)
    except KeyError:  # an object without this function
        return None


def _loaded(code: bytes, symbols: Sequence[str], entry: EntryPoint) -> LoadedKernel:
    address = jit.load_object(code, symbols).address(entry.name)
    positions = tuple(k for k, argument in enumerate(entry.arguments) if argument.kind == "size")
    return LoadedKernel(address, positions, counter(entry.tasks))
