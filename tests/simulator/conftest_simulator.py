"""A small NVRTC binding of its own, so that these tests need nothing of the rest of the package."""

import ctypes
import functools
import glob
import site
from pathlib import Path

import numpy as np
import pytest

from tc_jupyter.simulator import GlobalArray, simulate

KERNELS = Path(__file__).parent / "kernels"


@functools.cache
def _library():
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return ctypes.CDLL(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (ImportError, RuntimeError):
        pass
    for folder in site.getsitepackages():
        for path in sorted(glob.glob(folder + "/nvidia/*/lib/libnvrtc-builtins.so*")):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        for path in sorted(glob.glob(folder + "/nvidia/*/lib/libnvrtc.so*")):
            return ctypes.CDLL(path)
    return None


@functools.cache
def compile_ptx(source: str, arch: str = "compute_80") -> str:
    """CUDA C++ -> PTX; the test is skipped without NVRTC."""
    library = _library()
    if library is None:
        pytest.skip("NVRTC is not installed (extra `check`)")
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None) == 0
    options = [f"-arch={arch}".encode(), b"-std=c++17", b"-lineinfo"]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    if status:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise AssertionError(log.value.decode())
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode()


def triple(value):
    return (value, 1, 1) if isinstance(value, int) else tuple(value) + (1,) * (3 - len(value))


def launch(source, kernel, grid, block, *arguments, **options):
    """Compile and simulate: `In(x)`, `Out(x)`, `InOut(x)` or a number per parameter."""
    ptx = source if ".address_size" in source else compile_ptx(source)
    return simulate(ptx, kernel, triple(grid), triple(block), arguments, **options)


def In(name, array):
    return GlobalArray(name, np.ascontiguousarray(array), writable=False, initialised=True)


def Out(name, array):
    return GlobalArray(name, array, writable=True, initialised=False)


def InOut(name, array):
    return GlobalArray(name, array, writable=True, initialised=True)


def kinds(simulation):
    return {finding.kind for finding in simulation.findings}
