"""Loops around a loop that has no iteration are not begun: a test stands before them.

Worked example: `for i in 0:N: for j in 0:M: Y[i, j] = 0` becomes `if M > 0: for i in 0:N: ...`, so that `M = 0` needs no
`N` rounds.
A loop that also does something else, as in `for i in 0:N: { Y[i] = 0; for k in 0:K: Y[i] += ... }`, stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from tc_jupyter.program import Binary, DType, Expr, IndexVar, int64, walk
from tc_jupyter.program.integers import all_of

from .ir import Allocate, Barrier, Block, Check, For, If, Intrinsic, Kernel, Stmt, Store
from .rewrite import with_blocks, with_body
from .simplify import simplify_expr


def without_empty_rounds(kernel: Kernel) -> Kernel:
    """The kernel with those tests."""
    return replace(kernel, body=_tested(kernel.body, frozenset()))


def _tested(block: Block, known: frozenset[Expr]) -> Block:
    return with_body(block, (_statement(stmt, known) for stmt in block.body))


def _statement(stmt: Stmt, known: frozenset[Expr]) -> Stmt:
    """The statement with a test of what the loops in it need, but for what is `known` to hold."""
    needed = [each for each in _needs(stmt.body) if each not in known] if isinstance(stmt, For) else []
    inside = with_blocks(stmt, lambda block: _tested(block, known.union(needed)))
    if not needed:
        return inside
    both = all_of(needed)
    return If(both, Block((inside,)))


def _needs(block: Block) -> Sequence[Expr]:
    """Conditions without which a block does nothing, free of loop variables: those that all of its statements have."""
    if not block.body:
        return ()
    first, *others = [_conditions(stmt) for stmt in block.body]
    return [each for each in first if all(each in other for other in others)]


def _conditions(stmt: Stmt) -> Sequence[Expr]:
    match stmt:
        case For():
            return list(dict.fromkeys([*_positive(stmt.extent), *_needs(stmt.body)]))
        case Allocate():
            return _needs(stmt.body)
        case Block():
            return _needs(stmt)
        case If() | Store() | Barrier() | Check() | Intrinsic():
            return ()
    assert_never(stmt)


def _positive(extent: Expr) -> Sequence[Expr]:
    if any(isinstance(node, IndexVar) for node in walk(extent)):
        return ()
    test = simplify_expr(Binary(">", extent, int64(0), DType.BOOL))
    return (test,) if isinstance(test, Binary) else ()


__all__ = ["without_empty_rounds"]
