"""Storage that is spread over the threads of a block: each thread reaches its own elements only.

Worked example: `A.cache[t, k]` in registers is legal where `t` is the loop over `threadIdx.x`; `A.cache[t + 1, k]` is an element of
the neighbour, which no thread can read.
"""

from __future__ import annotations

from itertools import repeat

from tc_jupyter.loops import Allocate, Block, Buffer, For, Intrinsic, Kernel, Stmt, Store, expressions, sub_blocks
from tc_jupyter.program import Const, Expr, IndexVar, Read, walk
from tc_jupyter.schedule import THREAD_AXES


def foreign_access(kernel: Kernel) -> str:
    """The name of a buffer of which a thread would need an element that another one holds; empty if there is none."""
    return _in_block(kernel.body, {}, frozenset())


def _in_block(block: Block, spread: dict[str, Buffer], mine: frozenset[str]) -> str:
    """`mine`: the loops around whose iterations are threads."""
    return next((found for stmt in block.body if (found := _in_statement(stmt, spread, mine))), "")


def _in_statement(stmt: Stmt, spread: dict[str, Buffer], mine: frozenset[str]) -> str:
    # an operation of all threads names the first element of each
    plain = () if isinstance(stmt, Intrinsic) else expressions(stmt)
    reads = [n for expr in plain for n in walk(expr) if isinstance(n, Read) and n.tensor in spread]
    places = [(read.tensor, read.indices) for read in reads]
    if isinstance(stmt, Store) and stmt.buffer in spread:
        places.append((stmt.buffer, stmt.indices))
    for name, indices in places:
        if not all(map(_is_own, indices[: spread[name].threads], spread[name].shape, repeat(mine))):
            return name
    if isinstance(stmt, Allocate):
        others = {name: buffer for name, buffer in spread.items() if name != stmt.buffer.name}
        spread = others | {stmt.buffer.name: stmt.buffer} if stmt.buffer.scope == "threads" else others
    if isinstance(stmt, For) and stmt.kind in THREAD_AXES:
        mine |= {stmt.var}
    return next((found for block in sub_blocks(stmt) if (found := _in_block(block, spread, mine))), "")


def _is_own(index: Expr, extent: Expr, mine: frozenset[str]) -> bool:
    """Whether a thread names its own element: by its number, or there is only one."""
    alone = isinstance(extent, Const) and extent.value == 1
    return alone or (isinstance(index, IndexVar) and index.name in mine)


__all__ = ["foreign_access"]
