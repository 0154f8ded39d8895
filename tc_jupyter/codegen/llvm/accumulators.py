"""Kernel -> kernel: a reduction into one place over a serial loop keeps its partial result in registers.

Worked example:

    for k in 0:K                         if K > 0
      C[i, j] += A[i, k] * B[k, j]         allocate C.acc[1]
                                           C.acc[0] = C[i, j]
                                 ->        for k in 0:K
                                             C.acc[0] += A[i, k] * B[k, j]
                                           C[i, j] = C.acc[0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod

from tc_jupyter.loops import Allocate, Block, Buffer, For, If, Stmt, Store, expressions, sub_blocks, walk_statements
from tc_jupyter.loops.ir import accesses
from tc_jupyter.loops.rewrite import with_blocks, with_body
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, int64, walk
from tc_jupyter.program.integers import has_read, index_names
from tc_jupyter.schedule import tuning

from .arith import identity
from .limits import upper_limit
from .polynomial import constant_value

PARTIAL = ".lanes"
"""Ends the name of a buffer of partial results: lanes beyond the end of a loop must keep theirs."""


def accumulate(block: Block, scopes: Mapping[str, str]) -> Block:
    """Keep reductions over serial loops in registers; `scopes` tells the scope of every buffer."""
    return with_body(block, (_accumulate(stmt, scopes) for stmt in block.body))


def _accumulate(stmt: Stmt, scopes: Mapping[str, str]) -> Stmt:
    if isinstance(stmt, Allocate):
        buffer = replace(stmt.buffer, scope="register") if _is_registers(stmt) else stmt.buffer
        return Allocate(buffer, accumulate(stmt.body, {**scopes, buffer.name: buffer.scope}))
    if not isinstance(stmt, For) or stmt.kind in ("parallel", "vectorize", "unroll"):
        return with_blocks(stmt, lambda block: accumulate(block, scopes))
    for store, path in _reductions(stmt.body, ()):
        if scopes.get(store.buffer) != "register" and _hoistable(stmt, store, path):
            promoted = _promote(stmt, store, path)
            if promoted is not None:
                loop, wrap, buffer = promoted  # what is left may hold further reductions
                return wrap(_accumulate(loop, {**scopes, buffer.name: "register"}))
    return replace(stmt, body=accumulate(stmt.body, scopes))


def _is_registers(stmt: Allocate) -> bool:
    """Whether a buffer is small, and each of its elements, as code is printed, a register: only written-out loops choose it.

    A sum that other written-out loops run over is not: each of their iterations gets a partial result of its own (`_promote`).
    """
    buffer = stmt.buffer
    sizes = [constant_value(extent) or 0 for extent in buffer.shape]
    if (
        buffer.scope != "local"
        or buffer.pad
        or not 0 < prod(sizes) * buffer.dtype.compute.bytes <= tuning.REGISTER_FILE
    ):
        return False
    inside = tuple(walk_statements(stmt.body))
    loops = [inner for inner in inside if isinstance(inner, For)]
    printed = {
        loop.var for loop in loops if loop.kind in ("unroll", "vectorize") and upper_limit(loop.extent) is not None
    }
    printed -= {loop.var for loop in loops if loop.kind not in ("unroll", "vectorize")}
    places = [indices for inner in inside for name, indices in accesses(inner) if name == buffer.name]
    chosen = all(
        constant_value(index) is not None or (isinstance(index, IndexVar) and index.name in printed)
        for where in places
        for index in where
    )
    return chosen and not any(_has_partial_results(*each) for each in _sums_into(buffer.name, stmt.body, ()))


def _sums_into(buffer: str, block: Block, path: tuple[For, ...]) -> Iterator[tuple[Store, tuple[For, ...]]]:
    """Reductions into a buffer, each with the loops around it."""
    for stmt in block.body:
        if isinstance(stmt, Store) and stmt.buffer == buffer and stmt.reduce is not None:
            yield stmt, path
        for inner in sub_blocks(stmt):
            yield from _sums_into(buffer, inner, (*path, stmt) if isinstance(stmt, For) else path)


def _has_partial_results(store: Store, path: tuple[For, ...]) -> bool:
    """Whether a loop around a sum is written out and gives each iteration a partial result."""
    used = frozenset[str]().union(*(index_names(index) for index in store.indices))
    over = {loop.kind for loop in path if loop.var not in used}
    return "vectorize" in over or {"unroll", "serial"} <= over


def _reductions(block: Block, path: tuple[For, ...]) -> Iterator[tuple[Store, tuple[For, ...]]]:
    """Reductions inside that run whenever the block runs, with the loops between."""
    for stmt in block.body:
        match stmt:
            case Store() if stmt.reduce is not None and not stmt.atomic:
                yield stmt, path
            case For():
                yield from _reductions(stmt.body, (*path, stmt))
            case Block():
                yield from _reductions(stmt, path)
            case _:
                pass


def _hoistable(loop: For, store: Store, path: tuple[For, ...]) -> bool:
    """Whether the target stays the same over the loop, and nothing else touches the buffer meanwhile."""
    moving = {loop.var} | {inner.var for inner in path if inner.kind not in ("unroll", "vectorize")}
    if any(index_names(index) & moving or has_read(index) for index in store.indices):
        return False
    touched = 0
    for stmt in walk_statements(loop.body):
        touched += isinstance(stmt, Store) and stmt.buffer == store.buffer
        for expr in expressions(stmt):
            touched += sum(isinstance(node, Read) and node.tensor == store.buffer for node in walk(expr))
    return touched == 1


def _promote(loop: For, store: Store, path: tuple[For, ...]) -> tuple[For, Callable[[Stmt], Stmt], Buffer] | None:
    """The loop with a register buffer in the place of the target, and what to put around it."""
    assert store.reduce is not None
    inside = {loop.var} | {inner.var for inner in path}
    used = frozenset[str]().union(*(index_names(index) for index in store.indices))
    kept: list[For] = []
    for inner in path:
        if inner.kind not in ("unroll", "vectorize") or not (inner.var in used or _splits(inner)):
            continue
        limit = upper_limit(inner.extent)
        if limit is None or constant_value(inner.min) != 0:
            return None
        if inner.var not in used:
            inner = replace(inner, extent=int64(limit))  # partial results of their own: all of them start and all count
        elif index_names(inner.extent) & inside:
            return None
        kept.append(inner)
    extents = [upper_limit(inner.extent) or 1 for inner in kept]
    dtype = store.value.dtype.compute
    own = any(inner.var not in used for inner in kept)
    if prod(extents) * dtype.bytes > tuning.REGISTER_FILE or (own and prod(extents) > 512):
        return None
    name = f"{store.buffer}{PARTIAL if own else '.acc'}"
    buffer = Buffer(name, dtype, tuple(int64(extent) for extent in extents) or (int64(1),), "register", align=64)
    where = tuple(IndexVar(inner.var) for inner in kept) or (int64(0),)
    content = Read(buffer.name, where, dtype)
    # What 32 bits hold of a target of 64 (see `narrow`) is not read from there, but found apart and combined at the end. With a
    # target of 32 bits that is the same.
    apart = own or (dtype is DType.INT32 and store.reduce in ("min", "max"))
    first: Expr = Const(identity(store.reduce, dtype), dtype) if apart else Read(store.buffer, store.indices, dtype)
    last = replace(store, value=content, reduce=store.reduce if apart else None)
    start = _nest(tuple(kept), Store(buffer.name, where, first, statement=store.statement, span=store.span))
    finish = _nest(tuple(kept), last)
    inner_store = replace(store, buffer=buffer.name, indices=where, streaming=False)
    new_loop = replace(loop, body=_replace_store(loop.body, store, inner_store))

    def wrap(inner: Stmt) -> Stmt:
        body = Allocate(buffer, Block((start, inner, finish)))
        if (constant_value(loop.extent) or 0) > 0:
            return body
        return If(Binary(">", loop.extent, int64(0), DType.BOOL), Block((body,)))

    return new_loop, wrap, buffer


def _splits(loop: For) -> bool:
    """Whether each iteration of a vectorised or unrolled reduction loop gets a partial result of its own."""
    return loop.kind == "vectorize" or (upper_limit(loop.extent) or 99) <= 8


def _nest(loops: tuple[For, ...], stmt: Stmt) -> Stmt:
    for loop in reversed(loops):
        stmt = replace(loop, body=Block((stmt,)))
    return stmt


def _replace_store(block: Block, old: Store, new: Store) -> Block:
    def rule(inner: Block) -> Block:
        return _replace_store(inner, old, new)

    return with_body(block, (new if stmt is old else with_blocks(stmt, rule) for stmt in block.body))
