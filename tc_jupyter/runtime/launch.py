"""One kernel of any engine as a callable on storage: the interpreter, CPU code, CUDA code.

Comes in: a kernel or its generated source. Goes out: a `Runner`, called with where the buffers are and the values of sizes and
scalars. An engine sees addresses and numbers only; which library an array came from does not matter here.

Worked example: a CPU kernel with arguments `A, A.stride.0, N, s` (float32) is started with four 8-byte slots: address, stride in
elements, size, and the bits of `s` in the low half of the last slot.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from tc_jupyter.codegen.source import Argument
from tc_jupyter.loops import Kernel
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import Binary, Cast, Const, DType, Expr, Select, Size, Unary

from .arguments import Number
from .arrays import ArrayView, as_numpy

Failure: TypeAlias = tuple[int, ...]
"""The first failed check at a point: its number in the kernel, then the values that it reports."""


class Runner(Protocol):
    """Runs one kernel in place on its buffers; returns the first failed check, if any."""

    def __call__(
        self, storage: Mapping[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> Failure | None:
        """Work on the given storage."""
        ...


def interpreter_runner(kernel: Kernel) -> Runner:
    """The loop IR run directly on NumPy arrays."""
    names = [buffer.name for buffer in kernel.buffers]

    def run(
        storage: Mapping[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> Failure | None:
        arrays = {name: as_numpy(storage[name]) for name in names}
        return interpret(kernel, arrays, sizes, scalars)

    return run


# numbers of a launch -------------------------------------------------------------------------------------------------------------


def python_text(expr: Expr, names: Mapping[str, str]) -> str:
    """An integer expression over sizes as Python text; `names` gives the variable of each size."""
    match expr:
        case Const():
            return repr(int(expr.value))
        case Size():
            return names[expr.name]
        case Cast():
            return python_text(expr.operand, names)
        case Unary():
            return f"(-{python_text(expr.operand, names)})"
        case Select():
            then, other = python_text(expr.then, names), python_text(expr.otherwise, names)
            return f"({then} if {python_text(expr.condition, names)} else {other})"
        case Binary(op=("min" | "max") as op):
            return f"{op}({python_text(expr.left, names)}, {python_text(expr.right, names)})"
        case Binary():
            op = {"/": "//", "&&": "and", "||": "or"}.get(expr.op, expr.op)
            return f"({python_text(expr.left, names)} {op} {python_text(expr.right, names)})"
        case _:
            raise TypeError(f"{type(expr).__name__} in the shape of a launch")


def integers(expressions: Sequence[Expr], sizes: Sequence[str]) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
    """A function that computes launch extents or buffer shapes from the values of the sizes."""
    names = {name: f"v[{name!r}]" for name in sizes}
    body = "".join(f"{python_text(expression, names)}, " for expression in expressions)
    return eval(f"lambda v: ({body})")


_FORMATS = {
    DType.BOOL: "?7x",
    DType.INT8: "b7x",
    DType.INT16: "h6x",
    DType.INT32: "i4x",
    DType.INT64: "q",
    DType.UINT8: "B7x",
    DType.UINT16: "H6x",
    DType.UINT32: "I4x",
    DType.UINT64: "Q",
    DType.FLOAT16: "e6x",
    DType.BFLOAT16: "H6x",
    DType.FLOAT32: "f4x",
    DType.FLOAT64: "d",
}


def slot_format(argument: Argument) -> str:
    """The `struct` format of one 8-byte slot."""
    if argument.kind == "scalar":
        assert argument.dtype is not None
        return _FORMATS[argument.dtype]
    return "q" if argument.kind in ("size", "stride") else "Q"


def scalar_value(dtype: DType, value: Number) -> Number:
    """What `struct` packs for a number of that type; a `bfloat16` is its rounded bit pattern."""
    if dtype is DType.BFLOAT16:
        return bfloat16_bits(float(value))
    return float(value) if dtype.is_float else value


def bfloat16_bits(value: float) -> int:
    """The nearest `bfloat16` (ties to even) of a number, as 16 bits; NaN stays NaN."""
    with np.errstate(over="ignore"):
        bits = int(np.float32(value).view(np.uint32))
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def slots(arguments: Sequence[Argument]) -> struct.Struct:
    """The packer of all slots of an entry point, in order."""
    return struct.Struct("=" + "".join(slot_format(argument) for argument in arguments))
