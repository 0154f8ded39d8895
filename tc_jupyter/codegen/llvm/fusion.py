"""Two loops that reduce over the same input become one, so that the input comes from memory once.

Worked example: rows are read once instead of twice in

    s[i] = 0                             s[i] = 0
    for j in 0:M                         q[i] = 0
      s[i] += X[i, j]             ->     for j in 0:M
    q[i] = 0                               s[i] += X[i, j]
    for k in 0:M                           q[i] += X[i, j] * X[i, j]
      q[i] += X[i, k] * X[i, k]

The first loop moves down to the second one, past statements that touch nothing of it. Measured with AVX-512, 4096 x 4096 on one
thread: 7.3 ms as two loops per row, 6.9 ms as one, on two threads 3.7 and 3.3 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc_jupyter.loops import Block, For, If, Stmt, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import block_with_expressions, flat, with_blocks, with_body
from tc_jupyter.program import IndexVar, Read, variables, walk
from tc_jupyter.schedule import tuning


def fuse_reductions(block: Block) -> Block:
    """Join every serial loop that only reduces with a later one of the same block that runs over the same range and input."""
    body = flat(block)
    fused = False
    loops = [place for place, stmt in enumerate(body) if isinstance(stmt, For)]
    for number, late in enumerate(loops):
        for early in reversed(loops[:number]):
            joined = _joined(body[early], body[early + 1 : late], body[late])
            if joined is not None:
                body[early], body[late], fused = Block(()), joined, True
    whole = replace(block, body=tuple(stmt for stmt in body if stmt != Block(()))) if fused else block
    return with_body(whole, (with_blocks(stmt, fuse_reductions) for stmt in whole.body))


def _joined(early: Stmt, between: Sequence[Stmt], late: Stmt) -> For | None:
    """Both loops as one; `None` where that is not possible or of no use."""
    if not (isinstance(early, For) and isinstance(late, For) and early.kind == late.kind == "serial"):
        return None
    stores = [*_reductions(early), *_reductions(late)]
    if not all(isinstance(inner, For | If | Store | Block) for inner in walk_statements(Block(tuple(between)))):
        return None
    if (early.min, early.extent) != (late.min, late.extent) or not (_reductions(early) and _reductions(late)):
        return None
    if len(stores) > tuning.ABREAST or any(_depends(early, stmt) for stmt in (*between, late)):
        return None
    if not (_read_by(early) - _written_by(early)) & (_read_by(late) - _written_by(late)):
        return None
    renamed = block_with_expressions(late.body, variables({late.var: IndexVar(early.var)}))
    return replace(early, body=replace(early.body, body=(*early.body.body, *renamed.body)))


def _reductions(loop: For) -> tuple[Store, ...]:
    """The stores of a loop nest, if there is nothing but loops and reductions in it."""
    inside = tuple(walk_statements(loop.body))
    stores = tuple(stmt for stmt in inside if isinstance(stmt, Store))
    good = all(isinstance(stmt, For | Block | Store) for stmt in inside)
    return stores if good and all(store.reduce is not None and not store.atomic for store in stores) else ()


def _depends(one: Stmt, other: Stmt) -> bool:
    """Whether the order of two statements matters."""
    ours, theirs = _written_by(one), _written_by(other)
    return bool(ours & (theirs | _read_by(other)) or theirs & _read_by(one))


def _written_by(stmt: Stmt) -> set[str]:
    return {inner.buffer for inner in walk_statements(Block((stmt,))) if isinstance(inner, Store)}


def _read_by(stmt: Stmt) -> set[str]:
    values = (expr for inner in walk_statements(Block((stmt,))) for expr in expressions(inner))
    return {node.tensor for expr in values for node in walk(expr) if isinstance(node, Read)}
