"""Whether one value is true, or all are: once that is known, the rest of a row is skipped.

Worked example: `A(n) any=! X(n, m) > 2` is

    for m in 0:M: A[n] = max(A[n], X[n, m] > 2)     ->      for o in 0:ceil(M/1024): if !A[n]
                                                              for m in 0:min(1024, M - 1024*o)
                                                                A[n] = max(A[n], X[n, 1024*o + m] > 2)

A block is as long as one in which a place is looked for: where no value is true, a row takes 1.05 to 1.2 of a maximum.
A loop that checks what data says has a `Check` in it and stays as it is: it has to find what is wrong behind the place, too.
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.loops import Block, For, If, Stmt
from tc_jupyter.loops.rewrite import substitute, with_blocks, with_body
from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, Unary, int64, walk
from tc_jupyter.program.integers import ceil_div, minimum, plus, times
from tc_jupyter.schedule import tuning

from .first_places import only_reduction
from .limits import upper_limit


def early_ends(block: Block) -> Block:
    """Apply the rule to all loops over vectors inside."""
    return with_body(block, (_ended(stmt) for stmt in block.body))


def _ended(stmt: Stmt) -> Stmt:
    store = only_reduction(stmt) if isinstance(stmt, For) else None
    if not isinstance(stmt, For) or store is None or store.value.dtype is not DType.BOOL:
        return with_blocks(stmt, early_ends)
    most = upper_limit(stmt.extent)
    short = most is not None and most <= tuning.BLOCK  # a part of a row that is read together with others
    if short or any(isinstance(node, Read) and node.tensor == store.buffer for node in walk(store.value)):
        return stmt
    known = Read(store.buffer, store.indices, DType.BOOL)
    step = IndexVar(f"{stmt.var}.l")
    start = times(step, int64(tuning.BLOCK))
    value = substitute(store.value, {stmt.var: plus(plus(stmt.min, start), IndexVar(stmt.var))})
    part = minimum(int64(tuning.BLOCK), Binary("-", stmt.extent, start, DType.INT64))
    look = replace(stmt, min=int64(0), extent=part, body=Block((replace(store, value=value),)))
    open_: Expr = Unary("!", known, DType.BOOL) if store.reduce == "max" else known
    body = Block((If(open_, Block((look,))),))
    return For(step.name, int64(0), ceil_div(stmt.extent, int64(tuning.BLOCK)), body, "serial", stmt.axis)


__all__ = ["early_ends"]
