"""Runs the kernels of a template in the simulator, and what they should compute: for the tests of templates and of weakened copies."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from tc_jupyter.codegen import KernelSource
from tc_jupyter.loops import Kernel
from tc_jupyter.program import DType, Program, Tensor
from tc_jupyter.runtime import nvrtc
from tc_jupyter.schedule import schedule_of
from tc_jupyter.simulator import GlobalArray, Simulation, simulate
from tests.gpu.cases import Case
from tests.running import number, program_of, run
from tests.strategies import arguments


def stored(array: np.ndarray) -> np.ndarray:
    return (array.view(np.uint16) if array.dtype == np.float16 else array).copy()


def inputs(program: Program, seed: int, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Random arrays of small numbers; `bfloat16` as bits."""
    plain = replace(program, tensors=tuple(_as_float(tensor) for tensor in program.tensors))
    arrays = arguments(plain, seed, sizes)
    for array in arrays.values():
        if array.size and array.ndim and array.dtype.kind in "if":
            _with_peaks(array)
    narrow = [tensor.name for tensor in program.tensors if tensor.dtype is DType.BFLOAT16]
    return {
        name: (array.view(np.uint32) >> 16).astype(np.uint16) if name in narrow else array
        for name, array in arrays.items()
    }


def _with_peaks(array: np.ndarray) -> None:
    """The end of a row decides a maximum, in the first row by so much that `exp` overflows without it, in the second one the last
    element of its last whole vector."""
    rows = array.reshape(-1, array.shape[-1])
    rows[:, -1] += 4
    rows[0, -1] += 100
    if len(rows) > 1 and rows.shape[1] > 4:
        rows[1, rows.shape[1] // 4 * 4 - 1] += 100


def _as_float(tensor: Tensor) -> Tensor:
    return replace(tensor, dtype=DType.FLOAT32) if tensor.dtype is DType.BFLOAT16 else tensor


def wanted(case: Case, arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """What the unscheduled program computes on the interpreter; in `float32` for `bfloat16`, which NumPy does not have."""
    found = program_of(case.text.replace("bfloat16", "float"))
    assert found is not None
    narrow = {tensor.name for tensor in program_of(case.text)[0].tensors if tensor.dtype is DType.BFLOAT16}
    return run(schedule_of(*found), {n: _widened(a) if n in narrow else a.copy() for n, a in arrays.items()}, sizes)


def _widened(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def simulated(
    sources: list[tuple[Kernel, KernelSource]], arrays: dict[str, np.ndarray], sizes: dict[str, int]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """All arrays after all kernels, and the kinds of findings. Memory that nobody has written holds a marker."""
    held, launches = executed(sources, arrays, sizes)
    return held, [finding.kind for launch in launches for finding in launch.findings]


def executed(
    sources: list[tuple[Kernel, KernelSource]], arrays: dict[str, np.ndarray], sizes: dict[str, int]
) -> tuple[dict[str, np.ndarray], list[Simulation]]:
    """All arrays after all kernels, and what the simulator says of every launch."""
    held = {name: stored(array) for name, array in arrays.items()}
    launches: list[Simulation] = []
    for kernel, source in sources:
        for buffer in kernel.buffers:
            if buffer.name not in held:
                kind = np.uint16 if buffer.dtype in (DType.FLOAT16, DType.BFLOAT16) else buffer.dtype.value
                held[buffer.name] = np.full([max(0, number(e, sizes)) for e in buffer.shape], 77, kind)
        roles = {buffer.name: buffer.role for buffer in kernel.buffers}
        passed: list[object] = []
        for argument in source.arguments:
            if argument.kind == "buffer":
                role = roles[argument.name]
                passed.append(GlobalArray(argument.name, held[argument.name], role != "input", role != "output"))
            elif argument.kind == "size":
                passed.append(sizes[argument.name])
            else:
                assert argument.kind == "scalar"
                passed.append(held[argument.name].item())
        grid, block = (tuple(number(e, sizes) for e in each) for each in (source.launch.grid, source.launch.block))
        launches.append(simulate(_ptx(source.text), source.entry, grid, block, passed, source.launch.shared))  # type: ignore[arg-type]
    return held, launches


@lru_cache(maxsize=8)
def _ptx(text: str) -> str:
    return nvrtc.compile_cuda(text, "compute_80").ptx


def differs(program: Program, held: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> list[str]:
    """Results that are not what the plain loops compute."""
    wrong: list[str] = []
    for name in program.results:
        want, got, dtype = expected[name], held[name], program.tensor(name).dtype
        got = _widened(got) if dtype is DType.BFLOAT16 else got.view(np.float16) if dtype is DType.FLOAT16 else got
        tolerance = 1e-2 if dtype.bytes == 2 else 2e-5
        if not np.allclose(got, want, rtol=tolerance, atol=tolerance):
            wrong.append(name)
    return wrong
