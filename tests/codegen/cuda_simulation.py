"""Runs a kernel in the loop interpreter and its CUDA text in the PTX simulator, and compares."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from cuda_kernels import SM80

from tc_jupyter.codegen import KernelSource
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.loops import Kernel
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import Binary, Const, DType, Expr, Size
from tc_jupyter.runtime import nvrtc
from tc_jupyter.simulator import GlobalArray, Simulation, simulate

FLOATS = {DType.FLOAT16: np.uint16, DType.BFLOAT16: np.uint16}


def number(expr: Expr, sizes: Mapping[str, int]) -> int:
    """The value of a launch extent."""
    match expr:
        case Const(value):
            return int(value)
        case Size(name):
            return sizes[name]
        case Binary(op, left, right):
            a, b = number(left, sizes), number(right, sizes)
            return {"+": a + b, "-": a - b, "*": a * b, "//": a // b if b else 0, "min": min(a, b), "max": max(a, b)}[
                op
            ]
    raise TypeError(expr)


@cache
def ptx_of(text: str) -> str:
    return nvrtc.compile_cuda(text, "compute_80").ptx


def run_simulated(
    source: KernelSource,
    kernel: Kernel,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    scalars: Mapping[str, Any],
) -> tuple[Simulation, np.ndarray]:
    """Simulate one launch in place on `arrays`; returns the report and the error record."""
    arguments: list[Any] = []
    record = np.zeros(18, np.int64)
    roles = {buffer.name: buffer.role for buffer in kernel.buffers}
    for argument in source.arguments:
        match argument.kind:
            case "buffer":
                role = roles[argument.name]
                arguments.append(GlobalArray(argument.name, arrays[argument.name], role != "input", role != "output"))
            case "size":
                arguments.append(sizes[argument.name])
            case "scalar":
                arguments.append(scalars[argument.name])
            case "workspace":
                space = next(buffer for buffer in source.workspace if buffer.name == argument.name)
                shape = [max(0, number(extent, sizes)) for extent in space.shape]
                arguments.append(
                    GlobalArray(argument.name, np.zeros(shape, FLOATS.get(space.dtype, space.dtype.value)), True, False)
                )
            case "errors":
                arguments.append(GlobalArray("errors", record))
            case _:
                raise ValueError(argument.kind)
    grid, block = (
        tuple(number(extent, sizes) for extent in extents) for extents in (source.launch.grid, source.launch.block)
    )
    result = simulate(ptx_of(source.text), source.entry, grid, block, arguments, source.launch.shared)  # type: ignore[arg-type]
    return result, record


def compare(
    kernel: Kernel,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    scalars: Mapping[str, Any] | None = None,
    *,
    bits: int = 32,
    tolerance: float = 0.0,
    findings: tuple[str, ...] = (),
) -> Simulation:
    """Interpreter and simulator must agree (16-bit floats are given as their bits), without findings of other kinds.

    Args:
        tolerance: allowed relative and absolute difference of floats.
        findings: kinds of findings that are expected.
    """
    expected = {name: array.copy() for name, array in arrays.items()}
    views = {
        b.name: expected[b.name].view(np.float16) if b.dtype is DType.FLOAT16 else expected[b.name]
        for b in kernel.buffers
    }
    interpret(kernel, views, sizes, scalars)
    actual = {name: array.copy() for name, array in arrays.items()}
    result, _ = run_simulated(emit_cuda(kernel, SM80, bits), kernel, actual, sizes, scalars or {})
    assert {finding.kind for finding in result.findings} <= set(findings), result.findings[:3]
    for buffer in kernel.buffers:
        if buffer.role != "input":
            same(actual[buffer.name], expected[buffer.name], buffer.dtype, tolerance, buffer.name)
    return result


def same(actual: np.ndarray, expected: np.ndarray, dtype: DType, tolerance: float, name: str) -> None:
    """Equal, with NaN equal to NaN; floats within the tolerance."""
    if dtype.is_float:
        a, e = as_float(actual, dtype), as_float(expected, dtype)
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=name)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=name)


def as_float(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Values of 16-bit floats given as bits."""
    if dtype is DType.FLOAT16:
        return array.view(np.float16).astype(np.float32)
    if dtype is DType.BFLOAT16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array
