"""Matrix steps that are an instruction of the CPU; all others are printed as the loops that they stand for (`loops/expand.py`).

`dot_1x16x4_u8s8` is one `vpdpbusd`: it multiplies four unsigned bytes, the same for 16 columns, by four signed bytes of every
column, and adds the products to 16 sums of 32 bits; `dot_1x16x2_s16` is `vpdpwssd`, with two signed numbers of 16 bits, or
`vpmaddwd` and an addition; `dot_1x16x2_bf16` is `vdpbf16ps`, with two `bfloat16` and sums of `float32`. They need the columns of
the sums, and the elements of both operands that one step combines, next to each other in memory.

Worked example: 4 rows and 16 columns of `C[i, j] += A[i, k] * B[k/4, j, k%4]` are one load of 64 bytes of B, and per row a load of
four bytes of A, a broadcast, and the instruction.

Source: Intel, "Architecture Instruction Set Extensions", VPDPBUSD, VPDPWSSD, VPMADDWD, VDPBF16PS.
"""

from __future__ import annotations

from collections.abc import Callable

from tc_jupyter.loops import Allocate, Buffer, Intrinsic, Kernel, walk_statements
from tc_jupyter.program import Binary, DType, Read, int64
from tc_jupyter.schedule import STEPS, Target

from . import arith
from .builder import Builder, register_type, vector_type
from .polynomial import constant_value

NATIVE = frozenset(step.name for step in STEPS.values() if step.feature)
"""Steps that a processor may have."""


def native_steps(kernel: Kernel, target: Target) -> frozenset[str]:
    """The intrinsics of a kernel that the CPU has as instructions, with operands that lie in memory as it takes them."""
    steps = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Intrinsic)]
    found = [stmt for stmt in steps if stmt.name in NATIVE and STEPS[stmt.name].feature in target.features]
    if not found:
        return frozenset()
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    buffers |= {stmt.buffer.name: stmt.buffer for stmt in walk_statements(kernel.body) if isinstance(stmt, Allocate)}
    apart = {stmt.name for stmt in found if not _fits(stmt, buffers)}
    return frozenset(stmt.name for stmt in found) - apart


def _fits(stmt: Intrinsic, buffers: dict[str, Buffer]) -> bool:
    total, left, right = (buffers[operand.tensor] for operand in stmt.operands)
    if any(buffer.strided or buffer.pad for buffer in (total, left, right)):
        return False
    along = {key: _places(stmt, key) for key in ("total", "left", "right")}
    last = {key: len(buffer.shape) - 1 for key, buffer in zip(along, (total, left, right), strict=True)}
    return (
        total.dtype is STEPS[stmt.name].total
        and along["total"]["column"] == last["total"]
        and along["left"]["reduction"] == last["left"]
        and along["right"] == {"column": last["right"] - 1, "reduction": last["right"]}
        and constant_value(right.shape[-1]) == STEPS[stmt.name].extents[2]
    )


def _places(stmt: Intrinsic, key: str) -> dict[str, int]:
    """Along which dimension each axis of the step moves an operand."""
    return {axis: int(place) for axis, place in (p.split("=") for p in str(dict(stmt.attributes)[key]).split())}


def dot(b: Builder, pointer: Callable[[Read], str], stmt: Intrinsic, features: frozenset[str]) -> None:
    """Print one of the steps above.

    Args:
        pointer: prints the address of an element.
        features: of the processor.
    """
    rows, lanes, depth = STEPS[stmt.name].extents
    b.comment(f"{stmt.name}: {rows} x {lanes} sums, {depth} steps of the reduction")
    if stmt.statement:
        b.lines.append(f"  ;@ {stmt.statement}")
    total, left, right = stmt.operands
    sums = vector_type(register_type(STEPS[stmt.name].total), lanes)
    words = vector_type("i32", lanes)
    columns = f"{words} {b.raw(f'load {words}, ptr {pointer(right)}, align 1', 'columns')}"
    for row in range(rows):
        four = b.op(f"load i32, ptr {pointer(_moved(stmt, left, 'left', row))}, align 1", DType.INT32)
        same = f"{words} {arith.broadcast(b, four, lanes).text}"
        where = pointer(_moved(stmt, total, "total", row))
        old = f"{sums} {b.raw(f'load {sums}, ptr {where}, align 4', 'sums')}"
        new = _added(b, stmt.name, old, same, columns, features)
        b.line(f"store {sums} {new}, ptr {where}, align 4")


def _added(b: Builder, name: str, sums: str, left: str, right: str, features: frozenset[str]) -> str:
    """The sums after one instruction, or two."""
    _, lanes, depth = STEPS[name].extents
    if STEPS[name].total is DType.FLOAT32:
        result, pairs = f"<{lanes} x float>", f"<{2 * lanes} x bfloat>"
        return _of_pairs(b, "llvm.x86.avx512bf16.dpbf16ps.512", (sums,), (left, right), result, pairs)
    vector = f"<{lanes} x i32>"
    if depth == 4:
        unsigned_first = (right, left) if STEPS[name].right is DType.UINT8 else (left, right)
        return str(b.call("llvm.x86.avx512.vpdpbusd.512", (sums, *unsigned_first), vector, "sums"))
    if lanes == 16 and "avx512vnni" in features:
        return str(b.call("llvm.x86.avx512.vpdpwssd.512", (sums, left, right), vector, "sums"))
    function = "llvm.x86.avx512.pmaddw.d.512" if lanes == 16 else "llvm.x86.avx2.pmadd.wd"
    products = _of_pairs(b, function, (), (left, right), vector, f"<{2 * lanes} x i16>")
    return b.raw(f"add {sums}, {products}", "sums")


def _of_pairs(b: Builder, function: str, sums: tuple[str, ...], words: tuple[str, str], result: str, pairs: str) -> str:
    """An instruction on words that are taken as pairs."""
    halves = tuple(f"{pairs} {b.raw(f'bitcast {each} to {pairs}', 'pairs')}" for each in words)
    return str(b.call(function, (*sums, *halves), result, "sums"))


def _moved(stmt: Intrinsic, read: Read, key: str, row: int) -> Read:
    if not row:
        return read
    place = _places(stmt, key)["row"]
    indices = list(read.indices)
    indices[place] = Binary("+", indices[place], int64(row), DType.INT64)
    return Read(read.tensor, tuple(indices), read.dtype)


__all__ = ["NATIVE", "dot", "native_steps"]
