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

Some planes of a stencil in three dimensions are computed at a time, a vector of each after the other: then what they share is in
registers. Where results are written past the caches, or planes or elements are too few, their rows are made one by one instead.

Source: tiling for locality, Wolf and Lam, "A data locality optimizing algorithm", PLDI 1991.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from tc_jupyter.loops import Block, Buffer, For, If, Stmt, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import with_blocks, with_body
from tc_jupyter.program import Binary, Const, DType, Expr, Read, Select, Unary, int64, walk
from tc_jupyter.program.integers import ceil_div, has_read, maximum, plus, times
from tc_jupyter.schedule import Target
from tc_jupyter.schedule.target import PAGE_BYTES

from .limits import upper_limit
from .overlap import shift_inwards
from .polynomial import mentions
from .strips import is_stream, native_lanes, one_loop

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


def lanes_of_stream(loop: For, target: Target) -> int:
    """Lanes of a vector of a stream."""
    return 2 * native_lanes(loop, target)


def is_large(buffer: Buffer, target: Target) -> Expr:
    """Whether an output is far larger than the caches, and its rows are long: then it is written past them."""
    size = buffer.dtype.bytes
    extents = reduce(times, (maximum(extent, int64(0)) for extent in buffer.shape), int64(1))
    enough: Expr = Binary(">=", extents, int64(2 * target.llc_bytes // size), DType.BOOL)
    long = Binary(">=", buffer.shape[-1], int64(PAGE_BYTES // size), DType.BOOL)
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


def _tiled(outer: For, buffers: Mapping[str, Buffer], target: Target) -> Stmt | None:
    """The loop over tiles as one over parts, or without tiles; `None` if it is none around loops around a stream."""
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
    if not is_stream(whole) or _turns(whole):
        return None
    names = [stmt.buffer for stmt in walk_statements(whole.body) if isinstance(stmt, Store)]
    stored = buffers.get(names[0])
    # a temporary is read again, and a length that is a scalar is not known before the loops
    is_result = stored is not None and stored.scope == "argument" and not any(map(has_read, stored.shape))
    large = is_large(stored, target) if is_result and stored is not None else _NEVER
    if all(row.kind == "unroll" for row in rows):
        return _planes(outer, rows, whole, length, large)
    lanes = lanes_of_stream(whole, target)
    if not is_result or length % lanes:
        return None
    found = Part(
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
    # a first vector that ends before the second whole one, and a last one that begins earlier
    parts = ceil_div(plus(whole.extent, int64(lanes - 1)), int64(length))
    parts = Select(large, parts, int64(1), DType.INT64)
    return replace(outer, extent=parts, body=replace(outer.body, body=(_around(rows, found),)))


def _planes(outer: For, rows: list[For], whole: For, lanes: int, large: Expr) -> Stmt | None:
    """Vectors of all planes at a time, the last of which begins earlier; where that may not be, rows one by one."""
    shifted = shift_inwards(outer, whole.extent, lanes)
    all_rows = [replace(row, extent=int64(count)) for row in rows if (count := upper_limit(row.extent)) is not None]
    if shifted is None or len(all_rows) < len(rows):
        return None
    *_, vector = (stmt for stmt in walk_statements(shifted.body) if isinstance(stmt, For))
    together = replace(shifted, body=replace(shifted.body, body=(_around(all_rows, vector),)))
    alone = _around([replace(row, kind="serial") for row in rows], replace(whole, kind="vectorize"))
    may = Unary("!", large, DType.BOOL)
    for length, least in [
        (whole, int64(lanes)),
        *((row, full.extent) for row, full in zip(rows, all_rows, strict=True)),
    ]:
        may = Binary("&&", may, Binary(">=", length.extent, least, DType.BOOL), DType.BOOL)
    return If(may, Block((together,)), Block((alone,)))


def _around(rows: list[For], body: For) -> For:
    """Loops over rows around another body."""
    for row in reversed(rows):
        body = replace(row, body=replace(row.body, body=(body,)))
    return body
