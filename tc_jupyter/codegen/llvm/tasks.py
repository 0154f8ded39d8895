"""Parallel loops -> tasks: the parallel loops around everything become the task index, with a number of iterations per task.

How many these are is chosen by about how many operations an iteration does (`work_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

from tc_jupyter.loops import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    sub_blocks,
    walk_statements,
)
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.program import Binary, Call, Const, DType, Expr, Read, Select, children, int64
from tc_jupyter.program.integers import ceil_div, has_read, index_names, maximum, minimum, plus, times
from tc_jupyter.schedule import tuning

from .limits import natural, upper_limit
from .polynomial import constant_value

PARTS = "parts"
"""Name of the axis of the parts of a serial loop, which are done in order."""

Lanes = Callable[[For], int]
"""Of a vectorised loop: how many iterations one operation does."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """The parallel loops that become the task index.

    Attributes:
        loops: outermost first; the task index counts their points in row-major order.
        total: their points; `chunk`: points per task; `count`: tasks. Expressions over the kernel's sizes.
        brief: whether the work is so little that no thread is woken for it.
        in_order: tasks are done one after the other: they are parts of a serial loop, between which it is looked whether Python
            was interrupted; `width` of them at one time.
        allocations: temporary storage that stood between the loops; every point may have its own.
        body: what one point does.
    """

    loops: tuple[For, ...]
    total: Expr
    chunk: Expr
    count: Expr
    brief: Expr
    allocations: tuple[Buffer, ...]
    body: Block
    in_order: bool = False
    width: Expr = field(default_factory=lambda: int64(1))


def tasks(kernel: Kernel, lanes: Lanes) -> Tasks:
    """Take the parallel loops that stand around everything else; a kernel without them is one task."""
    loops: list[For] = []
    body, allocations = kernel.body, ()
    stmt, inside = _only_statement(body)
    while isinstance(stmt, For) and stmt.kind == "parallel" and not is_local(stmt):
        if loops and (loops[0].chunk or stmt.chunk):
            break
        loops.append(stmt)
        body, allocations = stmt.body, (*allocations, *inside)
        stmt, inside = _only_statement(body)
    if not loops:
        return Tasks((), int64(1), int64(1), int64(1), Const(False, DType.BOOL), (), kernel.body)
    return _tasks(loops, allocations, body, lanes, _bytes(kernel))


def _bytes(kernel: Kernel) -> Expr:
    """Of the temporaries that a kernel shares with others; arrays of the caller changed nothing that was measured."""
    total: Expr = int64(0)
    for buffer in kernel.buffers:
        if buffer.scope == "global":
            lengths = (int64(tuning.UNKNOWN_LENGTH) if has_read(extent) else extent for extent in buffer.shape)
            total = plus(total, reduce(times, lengths, int64(buffer.dtype.bytes)))
    return total


def _only_statement(block: Block) -> tuple[Stmt, tuple[Buffer, ...]]:
    """What a block consists of, seen through blocks of one statement and allocations."""
    stmt: Stmt = block
    buffers: tuple[Buffer, ...] = ()
    while True:
        if isinstance(stmt, Block) and len(stmt.body) == 1:
            stmt = stmt.body[0]
        elif isinstance(stmt, Allocate):
            buffers, stmt = (*buffers, stmt.buffer), stmt.body
        else:
            return stmt, buffers


def is_local(loop: For) -> bool:
    """Whether the bounds need more than sizes."""
    return any(index_names(expr) or has_read(expr) for expr in (loop.min, loop.extent))


def _tasks(loops: list[For], allocations: tuple[Buffer, ...], body: Block, lanes: Lanes, nbytes: Expr) -> Tasks:
    total: Expr = int64(1)
    for loop in loops:
        total = times(total, maximum(int64(0), loop.extent))
    chunk: Expr
    brief: Expr = Const(False, DType.BOOL)
    if loops[0].chunk:
        chunk = int64(loops[0].chunk)
    else:
        inside = [each.buffer for each in walk_statements(body) if isinstance(each, Allocate)]
        own = {buffer.name: buffer.scope for buffer in (*inside, *allocations)}
        work = maximum(int64(1), work_of(body, with_values({}, *loops), lanes, own))
        fewest = ceil_div(total, int64(tuning.MOST_TASKS))
        chunk = maximum(maximum(int64(1), fewest), Binary("//", int64(tuning.GRAIN), work, DType.INT64))
        done = times(work, total)
        moved: Expr = int64(0)
        if constant_value(nbytes) != 0:  # at most a cache line per operation: of a table only some rows
            moved = minimum(
                Binary("//", nbytes, int64(tuning.MOVED), DType.INT64), times(done, int64(64 // tuning.MOVED))
            )
        alone, brief = (
            Binary("<", plus(done, moved), int64(most), DType.BOOL) for most in (tuning.ALONE, tuning.BRIEF)
        )
        chunk = Select(alone, maximum(int64(1), total), chunk, DType.INT64)
    in_order = loops[0].axis == PARTS
    return Tasks(tuple(loops), total, chunk, ceil_div(total, chunk), brief, allocations, body, in_order)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of a loop variable that stand for all of them: the first one, and one in the middle."""

    first: Expr
    middle: Expr


_Around: TypeAlias = Mapping[str, _Values]


def with_values(outer: _Around, *loops: For) -> _Around:
    """The loops around a place, with some more."""
    found = dict(outer)
    for loop in loops:
        first, length = _at(loop.min, found, middle=True), _at(loop.extent, found, middle=True)
        half = Binary("//", natural(length), int64(2), DType.INT64)
        found[loop.var] = _Values(_at(loop.min, found), plus(first, half))
    return found


def _at(expr: Expr, around: _Around, middle: bool = False) -> Expr:
    return substitute(expr, {name: value.middle if middle else value.first for name, value in around.items()})


def _length(loop: For, around: _Around) -> Expr:
    """About how many iterations a loop has: of tiles a whole one, of a triangle the row in the middle, if data decide the most."""
    extent = loop.extent
    while isinstance(extent, Binary) and extent.op == "min" and has_read(extent.left) != has_read(extent.right):
        extent = extent.right if has_read(extent.left) else extent.left
    extent = _at(extent, around, middle=upper_limit(extent) is None)
    return int64(tuning.UNKNOWN_LENGTH) if has_read(extent) or index_names(extent) else maximum(int64(1), extent)


def work_of(block: Block, outer: _Around, lanes: Lanes, own: Mapping[str, str]) -> Expr:
    """About how many operations a block does, over the kernel's sizes; one of a vector counts once.

    Args:
        own: buffers of a task, which stay in its caches, with their scopes.
    """
    total: Expr = int64(0)
    for stmt in block.body:
        total = plus(total, _work(stmt, outer, lanes, own))
    return total


def _work(stmt: Stmt, outer: _Around, lanes: Lanes, own: Mapping[str, str]) -> Expr:
    match stmt:
        case For():
            inner, extent = with_values(outer, stmt), _length(stmt, outer)
            if stmt.kind == "vectorize":
                extent = ceil_div(extent, int64(lanes(stmt)))
            once = stmt.kind == "unroll" or upper_limit(stmt.extent) is not None
            return plus(times(extent, work_of(stmt.body, inner, lanes, own)), int64(0 if once else tuning.OVERHEAD))
        case Store():
            stored = int(stmt.reduce is None or own.get(stmt.buffer) != "register")  # a sum in a register is one step
            done = max(1, (stored + _operations(stmt.value)) // 2)
            return int64(done + (0 if stmt.reduce or stmt.buffer in own else tuning.OVERHEAD))
        case If(otherwise=Block()):
            return work_of(stmt.then, outer, lanes, own)  # the usual case
        case Intrinsic():
            return int64(64)
        case Barrier():
            return int64(0)
        case _:
            total: Expr = int64(0)
            for block in sub_blocks(stmt):
                total = plus(total, work_of(block, outer, lanes, own))
            return total


def _operations(expr: Expr) -> int:
    """Operations and loads of a value; subscripts cost next to nothing."""
    inside = 0 if isinstance(expr, Read) else sum(_operations(child) for child in children(expr))
    return inside + (20 if isinstance(expr, Call) else 1)
