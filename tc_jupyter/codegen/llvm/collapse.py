"""Loops over rows that lie one behind the other -> one loop over all their elements.

Vectors of short rows (colours of pixels, coordinates of points) would be mostly empty.

Worked example: with `X` and `Y` of shape `[N, C]`

    for i in 0:N (parallel)                         for i.c.o in 0:ceil(N*C/16) (parallel)
      for c in 0:C (vectorize)               ->       for c.i in 0:min(16, N*C - 16*i.c.o) (vectorize)
        Y[i, c] = 2 * X[i, c]                           Y[16*i.c.o + c.i] = 2 * X[16*i.c.o + c.i]

and `X` and `Y` have the shape `[N*C]`. Measured on two threads, rows of 2 to 10 elements: 0.08 to 0.28 of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tc_jupyter.loops import Block, Buffer, For, Kernel, Stmt, Store, walk_statements
from tc_jupyter.program import Expr, IndexVar, Read, rewrite
from tc_jupyter.schedule import Target

from .polynomial import mentions
from .prepare import accesses, constant_value, natural, times
from .strips import cut, is_stream, native_lanes

Buffers = Mapping[str, Buffer]


def collapse(kernel: Kernel, target: Target) -> Kernel:
    """Apply the rule to a kernel that is one nest of loops around assignments."""
    around = _nest(kernel.body)
    inner = around.pop() if around else None
    if inner is None or inner.kind != "vectorize" or not is_stream(inner):
        return kernel
    buffers: Buffers = {buffer.name: buffer for buffer in kernel.buffers}
    merged = inner
    while around and (found := _merged(around[-1], merged, buffers)) is not None:
        if any(loop.var == found[0].var for loop in around):
            break
        merged, buffers = found
        around.pop()
    if merged is inner:
        return kernel
    whole = replace(merged, kind="vectorize")
    if merged.kind == "parallel":
        whole = replace(cut(whole, 2 * native_lanes(merged.body, target)), kind="parallel")
    for loop in reversed(around):
        whole = replace(loop, body=replace(loop.body, body=(whole,)))
    body = replace(kernel.body, body=(whole,))
    return replace(kernel, body=body, buffers=tuple(buffers[buffer.name] for buffer in kernel.buffers))


def _nest(block: Block) -> list[For]:
    """Loops of which each but the last holds only the next one, and nothing else stands beside the first."""
    loops: list[For] = []
    while len(block.body) == 1 and isinstance(stmt := block.body[0], For):
        loops.append(stmt)
        block = stmt.body
    return loops


def _merged(outer: For, inner: For, buffers: Buffers) -> tuple[For, Buffers] | None:
    """Both loops as one over the elements of rows, and the buffers with one dimension less; `None` if anything hinders."""
    from_zero = constant_value(outer.min) == 0 and constant_value(inner.min) == 0
    if not from_zero or outer.chunk or outer.kind not in ("serial", "parallel"):
        return None
    name = f"{outer.var}.{inner.var.partition('.')[0]}"
    pair, place = (IndexVar(outer.var), IndexVar(inner.var)), IndexVar(name)

    def is_row(buffer: str, indices: tuple[Expr, ...]) -> bool:
        """Whether this is the element of a row, and the rows have the length of the inner loop."""
        known = buffers.get(buffer)
        rows = known is not None and not known.strided and not known.pad and known.shape[-1:] == (inner.extent,)
        return rows and indices[-2:] == pair and not any(moves(each) for each in indices[:-2])

    def moves(expr: Expr) -> bool:
        return mentions(expr, outer.var) or mentions(expr, inner.var)

    def shorter(expr: Expr) -> Expr | None:
        match expr:
            case Read() if is_row(expr.tensor, expr.indices):
                return replace(expr, indices=(*expr.indices[:-2], place))
            case _:
                return None

    stores: list[Stmt] = []
    used: set[str] = set()
    kept: set[str] = set()
    for stmt in walk_statements(inner.body):
        for buffer, indices in accesses(stmt):
            (used if is_row(buffer, indices) else kept).add(buffer)
        match stmt:
            case Store() if is_row(stmt.buffer, stmt.indices):
                value = rewrite(stmt.value, shorter)
                if moves(value):
                    return None
                stores.append(replace(stmt, indices=(*stmt.indices[:-2], place), value=value))
            case Block():
                pass
            case _:
                return None
    if used & kept:
        return None
    flat = {
        buffer: replace(known, shape=(*known.shape[:-2], times(*known.shape[-2:]))) if buffer in used else known
        for buffer, known in buffers.items()
    }
    body = replace(inner.body, body=tuple(stores))
    extent = times(natural(outer.extent), natural(inner.extent))
    return replace(inner, var=name, extent=extent, body=body, kind=outer.kind), flat
