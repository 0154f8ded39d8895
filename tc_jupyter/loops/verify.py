"""What a legal kernel is: the laws of `ir.py`, checked. A violation is a bug of the compiler.

Worked example: a `Read` of a buffer that is neither an argument nor allocated around it is reported with the buffer's name.
"""

from __future__ import annotations

from collections.abc import Iterator

from tc_jupyter.program import DType, Expr, IndexVar, Read, walk

from .ir import Allocate, Block, Buffer, Check, For, If, Intrinsic, Kernel, Stmt, Store, expressions, sub_blocks


class IllegalKernel(Exception):
    """A kernel breaks a law of the loop IR; the text lists all violations."""


def verify(kernel: Kernel) -> Kernel:
    """Return `kernel` if it is legal.

    Raises:
        IllegalKernel: with one line per violation.
    """
    problems = list(_problems(kernel))
    if problems:
        raise IllegalKernel("\n".join(problems))
    return kernel


def _problems(kernel: Kernel) -> Iterator[str]:
    names = [buffer.name for buffer in kernel.buffers]
    if len(set(names)) != len(names):
        yield f"two buffers of one name among {names}"
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    yield from _block(kernel, kernel.body, frozenset(), buffers)


def _block(kernel: Kernel, block: Block, loops: frozenset[str], buffers: dict[str, Buffer]) -> Iterator[str]:
    for stmt in block.body:
        for expr in expressions(stmt):
            yield from _expr(kernel, expr, loops, buffers)
        yield from _own(stmt, loops, buffers)
        inner_loops, inner_buffers = loops, buffers
        if isinstance(stmt, For):
            inner_loops = loops | {stmt.var}
        if isinstance(stmt, Allocate):
            inner_buffers = {**buffers, stmt.buffer.name: stmt.buffer}
        for sub in sub_blocks(stmt):
            yield from _block(kernel, sub, inner_loops, inner_buffers)


def _own(stmt: Stmt, loops: frozenset[str], buffers: dict[str, Buffer]) -> Iterator[str]:
    """The laws of one node."""
    match stmt:
        case For():
            if stmt.var in loops and not stmt.kind.startswith(("threadIdx", "blockIdx")):
                yield f"loop variable {stmt.var} is bound twice"
            if stmt.min.dtype is not DType.INT64 or stmt.extent.dtype is not DType.INT64:
                yield f"bounds of loop {stmt.var} are not int64"
        case If() | Check():
            if stmt.condition.dtype is not DType.BOOL:
                yield "a condition is not bool"
        case Store():
            yield from _store(stmt, buffers)
        case Allocate():
            if stmt.buffer.name in buffers:
                yield f"buffer {stmt.buffer.name} is allocated twice"
        case Intrinsic():
            for operand in stmt.operands:
                if operand.tensor not in buffers:
                    yield f"{stmt.name} works on unknown buffer {operand.tensor}"
        case _:
            return


def _store(stmt: Store, buffers: dict[str, Buffer]) -> Iterator[str]:
    buffer = buffers.get(stmt.buffer)
    if buffer is None:
        yield f"store into unknown buffer {stmt.buffer}"
        return
    if len(stmt.indices) != len(buffer.shape):
        yield f"store into {stmt.buffer} with {len(stmt.indices)} of {len(buffer.shape)} indices"
    if buffer.scope == "argument" and buffer.role == "input":
        yield f"store into input {stmt.buffer}"
    if stmt.value.dtype not in (buffer.dtype, buffer.dtype.compute):
        yield f"store of {stmt.value.dtype.value} into {stmt.buffer} of {buffer.dtype.value}"
    if any(index.dtype is not DType.INT64 for index in stmt.indices):
        yield f"an index of the store into {stmt.buffer} is not int64"


def _expr(kernel: Kernel, expr: Expr, loops: frozenset[str], buffers: dict[str, Buffer]) -> Iterator[str]:
    scalars = {name for name, _ in kernel.scalars}
    for node in walk(expr):
        match node:
            case IndexVar() if node.name not in loops:
                yield f"{node.name} is no loop variable here"
            case Read() if node.tensor in buffers:
                if len(node.indices) != len(buffers[node.tensor].shape):
                    yield f"read of {node.tensor} with {len(node.indices)} indices"
                if node.dtype is not buffers[node.tensor].dtype:
                    yield f"read of {node.tensor} as {node.dtype.value}"
            case Read() if node.tensor not in scalars:
                yield f"read of unknown buffer {node.tensor}"
            case _:
                continue
