"""Tiles of several rows of a stream: every row is one stream, of which each tile computes the next part.

A stencil reads every row again for the rows beside it. In tiles of some rows by a few lines they are still in the first cache then,
where whole rows would come from the second one. A tile that the schedule asks for begins at a multiple of its length; but results
are written past the caches in whole lines only, and each row begins at another place of a line. So each row is cut at the lines of
its result. Where results are not written past the caches, whole rows are as fast or faster, and one part, also if a schedule by
hand asks for tiles.

Worked example, with rows of `W` elements and tiles of 6 x 64

    for j.o in 0:ceil(W/64)                             for j.o in 0:(Y is large ? ceil((W + 31)/64) : 1)
      for i in 0:6                                        for i in 0:6
        for j.i in 0:min(64, W - 64*j.o): (vectorize)  ->   part j.o of `for j in 0:W (vectorize)`: two vectors of 32
          Y[i, 64*j.o + j.i] = ...                            Y[i, j] = ...

Source: tiling for locality, Wolf and Lam, "A data locality optimizing algorithm", PLDI 1991.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from tc_jupyter.loops import Block, Buffer, For, Stmt, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import with_blocks, with_body
from tc_jupyter.program import Binary, Const, DType, Expr, Read, Select, int64, walk
from tc_jupyter.schedule import Target

from .polynomial import mentions
from .prepare import ceil_div, has_read, maximum, plus, times, upper_limit
from .strips import is_stream, native_lanes, one_loop

LONG_ROW = 4 << 10
"""Bytes of a row from which on it may be written past the caches."""


_NEVER = Const(False, DType.BOOL)


@dataclass(frozen=True, slots=True)
class Part(For):
    """A stream of which one part is computed: so many of its vectors, from where the part before it ended.

    Attributes:
        tile: variable of the loop over parts.
        vectors: of a part, each of `lanes_of_stream` lanes.
        cut: whether there is more than one part.
    """

    tile: str = ""
    vectors: int = 1
    cut: Expr = _NEVER


def lanes_of_stream(block: Block, target: Target) -> int:
    """Lanes of a vector of a stream."""
    return 2 * native_lanes(block, target)


def is_large(buffer: Buffer, target: Target) -> Expr:
    """Whether an output is far larger than the caches, and its rows are long: then it is written past them."""
    size = buffer.dtype.bytes
    extents = reduce(times, (maximum(extent, int64(0)) for extent in buffer.shape), int64(1))
    enough: Expr = Binary(">=", extents, int64(2 * target.llc_bytes // size), DType.BOOL)
    long = Binary(">=", buffer.shape[-1], int64(LONG_ROW // size), DType.BOOL)
    return Binary("&&", enough, long, DType.BOOL)


def row_tiles(block: Block, buffers: Mapping[str, Buffer], target: Target) -> Block:
    """Apply the rule to all loops inside."""
    return with_body(block, (_row_tiles(stmt, buffers, target) for stmt in block.body))


def _row_tiles(stmt: Stmt, buffers: Mapping[str, Buffer], target: Target) -> Stmt:
    found = _tiled(stmt, buffers, target) if isinstance(stmt, For) else None
    return with_blocks(stmt, lambda block: row_tiles(block, buffers, target)) if found is None else found


def _turns(loop: For) -> bool:
    """Whether neighbours in the result come from different rows: then a tile is blocks that are turned."""
    reads = (n for s in walk_statements(loop.body) for e in expressions(s) for n in walk(e) if isinstance(n, Read))
    return any(mentions(where, loop.var) for read in reads for where in read.indices[:-1])


def _tiled(outer: For, buffers: Mapping[str, Buffer], target: Target) -> For | None:
    """The loop over tiles as one over parts; `None` if it is none around loops around a stream."""
    rows: list[For] = []
    block = outer.body
    while len(block.body) == 1 and isinstance(inner := block.body[0], For) and inner.kind != "vectorize":
        rows.append(inner)
        block = inner.body
    if outer.kind != "serial" or not rows or len(block.body) != 1:
        return None
    part = block.body[0]
    if not isinstance(part, For) or any(mentions(each, outer.var) for row in rows for each in (row.min, row.extent)):
        return None
    whole, length = one_loop(replace(outer, body=block)), upper_limit(part.extent)
    if whole is None or length is None or any(mentions(whole.extent, row.var) for row in rows):
        return None
    lanes = lanes_of_stream(whole.body, target)
    if length % lanes or not is_stream(whole) or _turns(whole):
        return None
    names = [stmt.buffer for stmt in walk_statements(whole.body) if isinstance(stmt, Store)]
    stored = buffers.get(names[0])
    if stored is None or stored.scope != "argument" or any(map(has_read, stored.shape)):
        return (
            None  # a temporary, which is read again, or a length that is a scalar, which is not known before the loops
        )
    large = is_large(stored, target)
    found: For = Part(
        whole.var,
        whole.min,
        whole.extent,
        whole.body,
        "vectorize",
        part.axis,
        tile=outer.var,
        vectors=length // lanes,
        cut=large,
    )
    for row in reversed(rows):
        found = replace(row, body=replace(row.body, body=(found,)))
    # a first vector that ends before the second whole one, and a last one that begins earlier
    parts = ceil_div(plus(whole.extent, int64(lanes - 1)), int64(length))
    parts = Select(large, parts, int64(1), DType.INT64)
    return replace(outer, extent=parts, body=replace(outer.body, body=(found,)))
