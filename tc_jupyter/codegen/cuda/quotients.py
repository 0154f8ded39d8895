"""Quotients and remainders that are computed once, before the loops that use them.

The parts of a fused loop are quotients by sizes, and a division takes a GPU some thirty instructions. Compilers leave it where it
stands: it may not be done in advance, since a divisor may be 0, for which the helpers have branches.

    for f in 0 : G*F    # blockIdx.x
      for c in 0 : C
        O += X[(f // F * C + c) * H] * Y[f % F * C + c]

Worked example: as soon as `f` is known, `const int quotient = tc_floor_div(f, F)` and `const int rest = tc_floor_mod(f, F)`.
Measured on an H200: a convolution of 32 groups with four such divisions per multiply-add took 3392 us, and 341 without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from tc_jupyter.loops import Block, For, Stmt, expressions, sub_blocks
from tc_jupyter.program import Binary, Const, Expr, IndexVar, Size, walk

from .expressions import is_index
from .launch import GRID_AXES, THREAD_AXES


def quotients_of(body: Block, known: AbstractSet[str], last: str) -> list[Binary]:
    """Divisions of known indices and sizes, one of them `last`, that stand twice in a body or in a loop of it; parts come first.

    Those by constants are left out: they cost no more than a multiplication.
    """
    found: dict[Binary, bool] = {}
    for expr, again in _expressions(body, False):
        for node in reversed(list(walk(expr))):
            if isinstance(node, Binary) and node.op in ("/", "//", "%") and not isinstance(node.right, Const):
                found[node] = again or node in found
    return [node for node, again in found.items() if again and is_index(node) and _is_of(node, known, last)]


def _is_of(expr: Expr, known: AbstractSet[str], last: str) -> bool:
    names = {node.name for node in walk(expr) if isinstance(node, (IndexVar, Size))}
    return last in names and names <= known


def _expressions(stmt: Stmt, again: bool) -> Iterator[tuple[Expr, bool]]:
    """All expressions of a statement, and whether each stands in a loop."""
    for expr in expressions(stmt):
        yield expr, again
    runs_again = isinstance(stmt, For) and stmt.kind not in (*GRID_AXES, *THREAD_AXES)
    for block in sub_blocks(stmt):
        for inner in block.body:
            yield from _expressions(inner, again or runs_again)
