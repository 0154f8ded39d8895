"""Rows that are reduced together -> the same, and the last few, too few to fill the tile, one by one.

Every statement of a row is written out as often as there are rows in a tile; with fewer rows, each copy would need a test. One row
alone has accumulators enough, so its loop over vectors becomes one loop again, which is then cut as any other reduction.

Worked example:

    for r in 0:min(4, N - 4*t) (unroll): s[4*t + r] = 0
    for o in 0:ceil(M/8)
      for r in 0:min(4, N - 4*t) (unroll)
        for v in 0:min(8, M - 8*o) (vectorize): s[4*t + r] += X[4*t + r, 8*o + v]

is that with `4` in the place of `min(4, N - 4*t)` if there are so many rows, and else

    for r in 0:min(4, N - 4*t)
      s[4*t + r] = 0
      for m in 0:M: s[4*t + r] += X[4*t + r, m]

Sums with sums of squares are 431 lines of code instead of 625, and 4099 rows of 17, 1024 or 3 rows of 2^20 elements take as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tc_jupyter.loops import Block, For, If, Stmt, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import with_blocks, with_body
from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, int64, walk

from .polynomial import Polynomial, polynomial, step, without
from .prepare import constant_value, fill, map_block, substitute, upper_limit
from .strips import one_loop


def one_by_one(block: Block) -> Block:
    """Apply the rule to every loop over tiles of rows."""
    return with_body(block, (_one_by_one(stmt) for stmt in block.body))


def _one_by_one(stmt: Stmt) -> Stmt:
    extent = _rows_of(stmt.body) if isinstance(stmt, For) else None
    if extent is None:
        return with_blocks(stmt, one_by_one)
    assert isinstance(stmt, For)
    rows = next(_row_loops(stmt.body, extent)).var
    all_there = Binary("==", extent, int64(upper_limit(extent) or 0), DType.BOOL)
    each = For(rows, int64(0), extent, _row(replace(stmt.body, comment=""), extent, rows), "serial")
    versions = If(all_there, Block(fill(stmt.body, frozenset({extent})).body), Block((each,)))
    return replace(stmt, body=replace(stmt.body, body=(versions,)))


def _row_loops(block: Block, extent: Expr) -> Iterator[For]:
    return (s for s in walk_statements(block) if isinstance(s, For) and s.kind == "unroll" and s.extent == extent)


def _rows_of(block: Block) -> Expr | None:
    """The number of rows of a tile, if all that happens is done for each of them, in whatever order."""
    inside = tuple(walk_statements(block))
    loops = [s for s in inside if isinstance(s, For) and s.kind == "unroll" and constant_value(s.extent) is None]
    extents = {loop.extent for loop in loops if constant_value(loop.min) == 0 and upper_limit(loop.extent) is not None}
    stores = [stmt for stmt in inside if isinstance(stmt, Store)]
    if len(extents) != 1 or len(loops) < 2 or not all(isinstance(stmt, For | Block | Store) for stmt in inside):
        return None
    (extent,) = extents
    owner = {
        id(s): loop.var
        for loop in _row_loops(block, extent)
        for s in walk_statements(loop.body)
        if isinstance(s, Store)
    }
    if any(id(store) not in owner or store.atomic for store in stores) or not any(store.reduce for store in stores):
        return None
    written = {store.buffer for store in stores}
    places: dict[str, set[tuple[Polynomial | None, ...]]] = {name: set() for name in written}
    for store in stores:
        row = owner[id(store)]
        places[store.buffer].add(_rows_at(store.indices, row))
        for node in (node for expr in expressions(store) for node in walk(expr)):
            if isinstance(node, Read) and node.tensor in written:
                places[node.tensor].add(_rows_at(node.indices, row))
    return extent if all(_apart(where) for where in places.values()) else None


def _rows_at(indices: tuple[Expr, ...], row: str) -> tuple[Polynomial | None, ...]:
    """For each index that moves by one with the row what else is in it, else `None`."""
    found = [polynomial(index) for index in indices]
    return tuple(without(each, row) if step(each, row) == (1, True) else None for each in found)


def _apart(places: set[tuple[Polynomial | None, ...]]) -> bool:
    """Whether one index is the row wherever the buffer is used."""
    first, *others = places
    return any(
        part is not None and all(len(other) > k and other[k] == part for other in others)
        for k, part in enumerate(first)
    )


def _row(block: Block, extent: Expr, row: str) -> Block:
    """What is done for one row."""
    body: list[Stmt] = []
    for stmt in block.body:
        match stmt:
            case For(kind="unroll") if stmt.extent == extent:
                same = map_block(stmt.body, lambda expr, var=stmt.var: substitute(expr, {var: IndexVar(row)}))
                body += same.body
            case For():
                inner = replace(stmt, body=_row(stmt.body, extent, row))
                body.append(one_loop(inner) or inner)
            case Block():
                body.append(_row(stmt, extent, row))
            case _:
                body.append(stmt)
    return with_body(block, body)
