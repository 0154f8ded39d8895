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

from dataclasses import replace

from tc_jupyter.loops import Block, For, If, Stmt, Store, walk_statements
from tc_jupyter.loops.ir import accesses
from tc_jupyter.loops.rewrite import mapped_block, substitute, with_blocks, with_body
from tc_jupyter.program import Binary, DType, Expr, IndexVar, int64
from tc_jupyter.program.integers import has_read, index_names

from .full_tiles import fill
from .limits import upper_limit
from .polynomial import Polynomial, constant_value, moves, polynomial, step, without
from .strips import one_loop


def one_by_one(block: Block) -> Block:
    """Apply the rule to every loop over tiles of rows."""
    return with_body(block, (_one_by_one(stmt) for stmt in block.body))


def _one_by_one(stmt: Stmt) -> Stmt:
    extent = _rows_of(stmt.body) if isinstance(stmt, For) else None
    if extent is None:
        return with_blocks(stmt, one_by_one)
    assert isinstance(stmt, For)
    rows = _row_loops(stmt.body, extent)[0].var
    all_there = Binary("==", extent, int64(upper_limit(extent) or 0), DType.BOOL)
    each = For(rows, int64(0), extent, _row(replace(stmt.body, comment=""), extent, rows), "serial")
    versions = If(all_there, Block(fill(stmt.body, frozenset({extent})).body), Block((each,)))
    return replace(stmt, body=replace(stmt.body, body=(versions,)))


def _row_loops(block: Block, extent: Expr) -> list[For]:
    """The loops over rows."""
    loops = (stmt for stmt in walk_statements(block) if isinstance(stmt, For) and stmt.kind == "unroll")
    return [loop for loop in loops if loop.extent == extent and constant_value(loop.min) == 0]


def _rows_of(block: Block) -> Expr | None:
    """The number of rows of a tile, if all that happens is done for each of them, in whatever order."""
    inside = tuple(walk_statements(block))
    if not all(isinstance(stmt, For | Block | Store) for stmt in inside):
        return None
    loops = [stmt for stmt in inside if isinstance(stmt, For)]
    own = {loop.var for loop in loops}
    ragged = [loop for loop in loops if loop.kind == "unroll" and constant_value(loop.extent) is None and not loop.tail]
    extents = {loop.extent for loop in ragged if upper_limit(loop.extent) is not None}
    if len(extents) != 1 or any(has_read(bound) for loop in loops for bound in (loop.min, loop.extent)):
        return None
    (extent,) = extents
    rows = _row_loops(block, extent)
    owner = [(stmt, loop.var) for loop in rows for stmt in walk_statements(loop.body) if isinstance(stmt, Store)]
    stores = [stmt for stmt in inside if isinstance(stmt, Store)]
    names = [loop.var for loop in loops if loop not in rows]
    good = (
        len(rows) > 1
        and not index_names(extent) & own
        and rows[0].var not in names
        # each store stands in one loop over rows, so none of these is inside of another
        and sorted(id(stmt) for stmt, _ in owner) == sorted({id(stmt) for stmt in stores})
        and not any(store.atomic for store in stores)
        and any(store.reduce for store in stores)
    )
    return extent if good and _are_apart(owner, own) else None


def _are_apart(owner: list[tuple[Store, str]], own: set[str]) -> bool:
    """Whether what one row writes no other one touches: one index is the row wherever the buffer is used.

    Args:
        owner: the stores, each with its variable of the row.
        own: all loop variables bound inside.
    """
    written = {store.buffer for store, _ in owner}
    places: dict[str, set[tuple[Polynomial | None, ...]]] = {name: set() for name in written}
    for store, row in owner:
        for name, indices in accesses(store):
            if name in written:
                places[name].add(tuple(_beside(index, row, own) for index in indices))
    return all(_have_one_in_common(where) for where in places.values())


def _beside(index: Expr, row: str, own: set[str]) -> Polynomial | None:
    """What else is in an index that moves by one with the row, if that is the same all the time; else `None`."""
    found = polynomial(index)
    rest = without(found, row) if step(found, row) == (1, True) else None
    return None if rest is None or any(moves(rest, name) for name in own) else rest


def _have_one_in_common(places: set[tuple[Polynomial | None, ...]]) -> bool:
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
            case For(kind="unroll") if stmt.extent == extent and constant_value(stmt.min) == 0:
                same = mapped_block(stmt.body, lambda expr, var=stmt.var: substitute(expr, {var: IndexVar(row)}))
                body += same.body
            case For():
                inner = replace(stmt, body=_row(stmt.body, extent, row))
                body.append(one_loop(inner) or inner)
            case Block():
                body.append(_row(stmt, extent, row))
            case _:
                body.append(stmt)
    return with_body(block, body)
