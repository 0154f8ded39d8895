"""Sums in registers: a loop that combines into one element of memory combines into a local variable instead.

The compiler of the device may not do this by itself, since it has to assume that the element is seen meanwhile. Conditions that do
not change in a loop are moved out of it first.

Worked example:

    for k in 0:K                          if i < M
      if i < M                              accumulator = C[i, j]
        C[i, j] += A[i, k] * B[k, j]   ->   for k in 0:K
                                              accumulator += A[i, k] * B[k, j]
                                            C[i, j] = accumulator
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tc_jupyter.loops import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    Check,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    expressions,
    sub_blocks,
    walk_statements,
)
from tc_jupyter.loops.rewrite import only
from tc_jupyter.program import DType, Read, walk
from tc_jupyter.program.integers import index_names

SEQUENTIAL = frozenset({"serial", "unroll", "parallel"})
MOVABLE = SEQUENTIAL | {"vectorize"}
"""Kinds of loops that a condition may be moved out of."""


def in_registers(kernel: Kernel) -> Kernel:
    """The kernel with hoisted conditions and sums in registers."""
    shared = {stmt.buffer.name: stmt.buffer for stmt in walk_statements(kernel.body) if isinstance(stmt, Allocate)}
    buffers = shared | {buffer.name: buffer for buffer in kernel.buffers}
    axes = {stmt.kind for stmt in walk_statements(kernel.body) if isinstance(stmt, For)} - SEQUENTIAL - {"vectorize"}
    return replace(kernel, body=_block(kernel.body, _Place(buffers, frozenset(axes))))


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a kernel: the buffers, and the GPU axes that no loop around it is bound to.

    What stands outside a loop over threads is done by one thread only, so a sum there cannot be in the registers of all.
    """

    buffers: dict[str, Buffer]
    missing: frozenset[str]


def _block(block: Block, place: _Place) -> Block:
    return replace(block, body=tuple(_statement(stmt, place) for stmt in block.body))


def _statement(stmt: Stmt, place: _Place) -> Stmt:
    match stmt:
        case For():
            return _loop(_hoisted(stmt), place)
        case If():
            otherwise = None if stmt.otherwise is None else _block(stmt.otherwise, place)
            return replace(stmt, then=_block(stmt.then, place), otherwise=otherwise)
        case Allocate() | Check():
            return replace(stmt, body=_block(stmt.body, place))
        case Block():
            return _block(stmt, place)
        case Store() | Barrier() | Intrinsic():
            return stmt


def _hoisted(loop: For) -> Stmt:
    """`for k: if c: S` -> `if c: for k: S` where `c` is the same in every iteration."""
    inner = only(loop.body)
    if isinstance(inner, For) and inner.kind in MOVABLE:
        moved = _hoisted(inner)
        loop, inner = replace(loop, body=Block((moved,))), moved
    if not isinstance(inner, If) or inner.otherwise is not None or loop.kind not in MOVABLE:
        return loop
    reads = {node.tensor for node in walk(inner.condition) if isinstance(node, Read)}
    collective = any(isinstance(stmt, Barrier | Intrinsic) for stmt in walk_statements(inner.then))
    if (index_names(inner.condition) & {loop.var}) or reads & _written(inner.then) or collective:
        return loop
    return If(inner.condition, Block((replace(loop, body=inner.then),)))


def _loop(stmt: Stmt, place: _Place) -> Stmt:
    """A loop, or a condition around one, with its sums in registers; the outermost loop that allows it takes the sum."""
    if isinstance(stmt, If):
        return replace(stmt, then=Block(tuple(_loop(inner, place) for inner in stmt.then.body)))
    assert isinstance(stmt, For)
    collective = any(isinstance(inner, Barrier | Intrinsic | Check) for inner in walk_statements(stmt.body))
    if stmt.kind in SEQUENTIAL and not collective and not place.missing:
        bound = {stmt.var} | {inner.var for inner in walk_statements(stmt.body) if isinstance(inner, For)}
        for store in _direct_stores(stmt.body):
            if _fits(store, stmt, bound, place.buffers):
                return _accumulated(stmt, store, place)
    return replace(stmt, body=_block(stmt.body, replace(place, missing=place.missing - {stmt.kind})))


def _direct_stores(block: Block) -> Iterator[Store]:
    """Stores that run in every iteration: under loops only."""
    for stmt in block.body:
        match stmt:
            case Store():
                yield stmt
            case Block():
                yield from _direct_stores(stmt)
            case For() if stmt.kind in SEQUENTIAL:
                yield from _direct_stores(stmt.body)
            case _:
                continue


def _fits(store: Store, loop: For, bound: set[str], buffers: dict[str, Buffer]) -> bool:
    """Whether a store combines into one element that nothing else in the loop touches."""
    buffer = buffers.get(store.buffer)
    if buffer is None or buffer.scope not in ("argument", "global", "shared") or store.reduce is None or store.atomic:
        return False
    if buffer.dtype is DType.BOOL or any((index_names(expr) & bound) for expr in store.indices):
        return False
    touched = sum(_touches(stmt, store.buffer) for stmt in walk_statements(Block((loop,))))
    changed = {node.tensor for expr in store.indices for node in walk(expr) if isinstance(node, Read)} & _written(
        loop.body
    )
    return touched == 1 and not changed


def _touches(stmt: Stmt, buffer: str) -> int:
    reads = sum(node.tensor == buffer for expr in expressions(stmt) for node in walk(expr) if isinstance(node, Read))
    return reads + (isinstance(stmt, Store) and stmt.buffer == buffer)


def _written(block: Block) -> set[str]:
    return {stmt.buffer for stmt in walk_statements(block) if isinstance(stmt, Store)}


def _accumulated(loop: For, store: Store, place: _Place) -> Stmt:
    """Load, loop, store. A 16-bit float is rounded at every step, as it is in memory."""
    buffer = place.buffers[store.buffer]
    name = f"{store.buffer}.accumulator"
    while name in place.buffers:
        name += "'"
    local = Buffer(name, buffer.dtype, (), "local")
    own = replace(store, buffer=name, indices=())
    inner = replace(place, buffers={**place.buffers, name: local})
    first = replace(own, value=Read(store.buffer, store.indices, buffer.dtype), reduce=None)
    last = replace(store, value=Read(name, (), buffer.dtype), reduce=None)
    return Allocate(local, Block((first, _loop(_replaced_loop(loop, store, own), inner), last)))


def _replaced_loop(loop: For, old: Store, new: Store) -> For:
    return replace(loop, body=_replaced_block(loop.body, old, new))


def _replaced(stmt: Stmt, old: Store, new: Store) -> Stmt:
    """The statement with one store in place of another."""
    if stmt is old:
        return new
    match stmt:
        case For() | Allocate() | Check():
            return replace(stmt, body=_replaced_block(stmt.body, old, new))
        case Block():
            return _replaced_block(stmt, old, new)
        case _:
            assert not any(inner is old for block in sub_blocks(stmt) for inner in walk_statements(block))
            return stmt


def _replaced_block(block: Block, old: Store, new: Store) -> Block:
    return replace(block, body=tuple(_replaced(stmt, old, new) for stmt in block.body))


__all__ = ["in_registers"]
