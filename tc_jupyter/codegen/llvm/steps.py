"""Matrix steps that are an instruction of the CPU; all others are printed as the loops that they stand for (`loops/expand.py`).

`dot_4x16x4_u8s8` is four `vpdpbusd`: each multiplies four unsigned bytes, the same for 16 columns, by four signed bytes of every
column, and adds the products to 16 sums of 32 bits. It needs the columns of the sums, and the bytes of both operands that one step
combines, next to each other in memory.

Worked example: 4 rows and 16 columns of `C[i, j] += A[i, k] * B[k/4, j, k%4]` are one load of 64 bytes of B, and per row a load of
four bytes of A, a broadcast, and the instruction.

Source: Intel, "Architecture Instruction Set Extensions", VPDPBUSD.
"""

from __future__ import annotations

from collections.abc import Callable

from tc_jupyter.loops import Allocate, Buffer, Intrinsic, Kernel, walk_statements
from tc_jupyter.program import Binary, DType, Read, int64
from tc_jupyter.schedule import Target

from . import arith
from .builder import Builder
from .prepare import constant_value

DOT = "dot_4x16x4_u8s8"
ROWS, COLUMNS, DEPTH = 4, 16, 4


def native_steps(kernel: Kernel, target: Target) -> frozenset[str]:
    """The intrinsics of a kernel that the CPU has as instructions, with operands that lie in memory as it takes them."""
    found = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Intrinsic) and stmt.name == DOT]
    if not found or "avx512vnni" not in target.features:
        return frozenset()
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    buffers |= {stmt.buffer.name: stmt.buffer for stmt in walk_statements(kernel.body) if isinstance(stmt, Allocate)}
    return frozenset({DOT}) if all(_fits(stmt, buffers) for stmt in found) else frozenset()


def _fits(stmt: Intrinsic, buffers: dict[str, Buffer]) -> bool:
    total, left, right = (buffers[operand.tensor] for operand in stmt.operands)
    if any(buffer.strided or buffer.pad for buffer in (total, left, right)):
        return False
    along = {key: _places(stmt, key) for key in ("total", "left", "right")}
    last = {key: len(buffer.shape) - 1 for key, buffer in zip(along, (total, left, right), strict=True)}
    return (
        total.dtype is DType.INT32
        and along["total"]["column"] == last["total"]
        and along["left"]["reduction"] == last["left"]
        and along["right"] == {"column": last["right"] - 1, "reduction": last["right"]}
        and constant_value(right.shape[-1]) == DEPTH
    )


def _places(stmt: Intrinsic, key: str) -> dict[str, int]:
    """Along which dimension each axis of the step moves an operand."""
    return {axis: int(place) for axis, place in (p.split("=") for p in str(dict(stmt.attributes)[key]).split())}


def dot(b: Builder, pointer: Callable[[Read], str], stmt: Intrinsic) -> None:
    """Print one `dot_4x16x4_u8s8`.

    Args:
        pointer: prints the address of an element.
    """
    b.comment(f"{stmt.name}: 4 x 16 sums, 4 steps of the reduction")
    if stmt.statement:
        b.lines.append(f"  ;@ {stmt.statement}")
    total, left, right = stmt.operands
    columns = b.raw(f"load <16 x i32>, ptr {pointer(right)}, align 1", "columns")
    for row in range(ROWS):
        four = b.op(f"load i32, ptr {pointer(_moved(stmt, left, 'left', row))}, align 1", DType.INT32)
        same = arith.broadcast(b, four, COLUMNS)
        where = pointer(_moved(stmt, total, "total", row))
        old = b.raw(f"load <16 x i32>, ptr {where}, align 4", "sums")
        operands = (f"<16 x i32> {old}", same, f"<16 x i32> {columns}")
        new = b.call("llvm.x86.avx512.vpdpbusd.512", operands, "<16 x i32>", "sums")
        b.line(f"store <16 x i32> {new}, ptr {where}, align 4")


def _moved(stmt: Intrinsic, read: Read, key: str, row: int) -> Read:
    place = _places(stmt, key)["row"]
    indices = list(read.indices)
    indices[place] = Binary("+", indices[place], int64(row), DType.INT64)
    return Read(read.tensor, tuple(indices), read.dtype)


__all__ = ["DOT", "dot", "native_steps"]
