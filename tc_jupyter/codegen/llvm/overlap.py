"""Tiles with a ragged end -> full tiles, the last of which begins earlier, where results may be computed twice.

A processor without masks of its own would compute the last, ragged tile element by element, or under masks that cost as much as the
tile. If a row is at least one tile long, the last tile can end where the row ends: some elements are computed and written twice,
with the same value, if every place and every value depends on `lanes * tile + lane` alone. Loads then stay inside the row, so
conditions that guard lanes beyond its end are true and go away.

Worked example: with rows of at least 32

    for w.o in 0:ceil(W/32)                              for w.o in 0:ceil(W/32)
      for w in 0:min(W - 32*w.o, 32): acc[w] += X[w + 32*w.o] * F[k]
                                              ->           for w in 0:32: acc[w] += X[w + min(32*w.o, W - 32)] * F[k]

and shorter ones are computed as before. Where masks are free, as with AVX-512, that is done only if the tile slides along a row in
a loop with a counter, reading under masks again and again: a convolution of 32 groups, 56 x 56, takes 0.65 to 0.74 of the time on
one thread of an AMD EPYC processor and 0.88 on two, windows of constant size 1.0 to 1.6. Source: `TailStrategy::ShiftInwards` of
Halide (Ragan-Kelley et al., PLDI 2013).
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from tc_jupyter.loops import Allocate, Block, For, If, Stmt, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import mapped_block, with_blocks, with_body
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Select, children, int64, rebuild, walk
from tc_jupyter.program.integers import index_names, minimum, plus, times

from .full_tiles import SHORT
from .limits import upper_limit
from .polynomial import (
    Polynomial,
    add,
    as_expr,
    coefficient,
    constant_value,
    mentions,
    multiply,
    polynomial,
    scaled,
    without,
)


def overlap(block: Block, free_masks: bool = False) -> Block:
    """Apply the rule to every tile loop inside.

    Args:
        free_masks: masks cost nothing but where a tile slides along a row.
    """
    return with_body(block, (_overlap(stmt, free_masks) for stmt in block.body))


def _overlap(stmt: Stmt, free_masks: bool) -> Stmt:
    found = _tiles(stmt) if isinstance(stmt, For) and stmt.kind == "serial" else None
    if found is None or (free_masks and not _slides(stmt)):
        return with_blocks(stmt, lambda block: overlap(block, free_masks))
    assert isinstance(stmt, For)
    length, lanes = found
    rest, known = replace(stmt, body=overlap(stmt.body, free_masks)), constant_value(length)
    if known is not None and known < lanes:
        return rest
    shifted = shift_inwards(stmt, length, lanes)
    if shifted is None:
        return rest
    full = replace(shifted, body=overlap(shifted.body, free_masks))
    if known is not None:
        return full
    return If(Binary(">=", length, int64(lanes), DType.BOOL), Block((full,)), Block((rest,), SHORT))


def shift_inwards(loop: For, length: Expr, lanes: int) -> For | None:
    """A loop over tiles of which the last one ends where the row does, which is a tile long or more.

    Returns:
        `None` if the tile's number is used for something else than its position.
    """
    try:
        return replace(loop, body=_Shift(loop, length, lanes).block(loop.body))
    except _Unmoved:
        return None


def _slides(stmt: Stmt) -> bool:
    """Whether the vectors of a tile slide along a row, in loops of which one is not written out."""
    if not isinstance(stmt, For):
        return False
    inner = list(walk_statements(stmt.body))
    loops = [each for each in inner if isinstance(each, For)]
    if any(each.kind != "vectorize" and mentions(each.extent, stmt.var) for each in loops):
        return False  # a tile of rows
    kinds = {each.var: each.kind for each in loops}
    lanes = {name for name, kind in kinds.items() if kind == "vectorize"}
    reads = (node for each in inner for expr in expressions(each) for node in walk(expr) if isinstance(node, Read))
    moving = [{name for name in kinds if mentions(read.indices[-1], name)} for read in reads if read.indices]
    return "serial" in kinds.values() and any(names & lanes and names - lanes for names in moving)


def _tiles(loop: For) -> tuple[Expr, int] | None:
    """Length of the row and of a tile, if all that is ragged in the tiles is their innermost loop, which has no counter."""
    inner = [stmt for stmt in walk_statements(loop.body) if isinstance(stmt, For)]
    ragged = [stmt for stmt in inner if mentions(stmt.extent, loop.var)]
    kinds = {stmt.kind for stmt in ragged}
    said = any(stmt.tail for stmt in ragged)
    if said or len({stmt.extent for stmt in ragged}) != 1 or constant_value(loop.min) != 0 or not _repeatable(loop):
        return None
    extent = ragged[0].extent
    match extent:
        case Binary(op="min", left=Const(), right=rest) | Binary(op="min", left=rest, right=Const()):
            lanes, left = upper_limit(extent), polynomial(rest)
        case _:
            return None
    length = without(left, loop.var)
    if lanes is None or length is None or coefficient(left, loop.var) != Polynomial((((), -lanes),)):
        return None
    row = as_expr(length)
    lengths = {(each.var, int64(lanes) if each.extent == extent else each.extent) for each in inner}
    if any(mentions(row, name) for name, _ in lengths) or len({name for name, _ in lengths}) < len(lengths):
        return None
    return (row, lanes) if kinds in ({"vectorize"}, {"unroll"}) and _by_position(loop, ragged[0], lanes) else None


def _repeatable(loop: For) -> bool:
    """Whether a point may be computed twice: sums are private to a tile, the rest assigns and reads nothing that it writes.

    Tiles without sums are streams, which overlap by themselves (`strips.is_stream`).
    """
    inner = tuple(walk_statements(loop.body))
    if not all(isinstance(stmt, Block | For | Store | Allocate) for stmt in inner):
        return False
    private = {stmt.buffer.name for stmt in inner if isinstance(stmt, Allocate)}
    stores = [stmt for stmt in inner if isinstance(stmt, Store)]
    shared = {store.buffer for store in stores} - private
    reads = {n.tensor for stmt in inner for expr in expressions(stmt) for n in walk(expr) if isinstance(n, Read)}
    reduces = any(store.reduce is not None for store in stores if store.buffer in private)
    plain = all(store.reduce is None and not store.atomic for store in stores if store.buffer in shared)
    return reduces and plain and not shared & reads


def _by_position(loop: For, tile: For, lanes: int) -> bool:
    """Whether places and values depend on tile and lane by `lanes * tile + lane` only; private sums have lanes of their own.

    Worked example: `P[w % 4]` was simplified to `P[v % 4]` in tiles of 16, which is another element if a tile begins elsewhere.
    """
    inner = tuple(walk_statements(loop.body))
    private = {stmt.buffer.name for stmt in inner if isinstance(stmt, Allocate)}
    stores = [stmt for stmt in inner if isinstance(stmt, Store)]
    loops = [stmt for stmt in inner if isinstance(stmt, For)]
    placed = {name for s in stores for where in s.indices for name in index_names(where)}
    whole = {x.var for x in loops if x.kind == tile.kind and constant_value(x.extent) == lanes and x.var in placed}
    lane = whole | {stmt.var for stmt in loops if stmt.extent == tile.extent}

    def holds(expr: Expr) -> bool:
        match expr:
            case Read(tensor=name) if name in private:
                return True
            case IndexVar() | Binary(dtype=DType.INT64):
                terms = polynomial(expr)
                gains = [coefficient(terms, name) for name in (loop.var, *lane)]
                if any(gain is None for gain in gains):
                    return False
                moved, *rest = (gain for gain in gains if gain is not None)
                return scaled(reduce(add, rest, Polynomial(())), lanes) == moved
            case _:
                return all(holds(child) for child in children(expr))

    shared = [where for store in stores if store.buffer not in private for where in store.indices]
    bounds = [bound for x in loops for bound in (x.min, x.extent) if bound != tile.extent]
    return all(holds(expr) for expr in (*shared, *bounds, *(store.value for store in stores)))


class _Unmoved(Exception):
    """The tile's number is used for something else than its position."""


class _Shift:
    """Rewrites the body of a tile loop: `lanes * tile` becomes the start of the tile, ragged extents become `lanes`."""

    def __init__(self, loop: For, length: Expr, lanes: int) -> None:
        self.tile, self.lanes = loop.var, lanes
        self.last = plus(length, int64(-lanes))
        self.start = minimum(times(IndexVar(loop.var), int64(lanes)), self.last)
        inner = [stmt for stmt in walk_statements(loop.body) if isinstance(stmt, For)]
        self.ragged = {stmt.extent for stmt in inner if mentions(stmt.extent, loop.var)}
        self.inner = {stmt.var: stmt for stmt in inner}

    def block(self, block: Block) -> Block:
        """The rewritten block."""
        return mapped_block(block, self.expression)

    def expression(self, expr: Expr) -> Expr:
        """The rewritten expression."""
        if expr in self.ragged:
            return int64(self.lanes)
        if not mentions(expr, self.tile):
            return expr
        match expr:
            case Select(condition=condition, then=then) if self.always(condition):
                return self.expression(then)
            case IndexVar() | Binary(dtype=DType.INT64):
                return as_expr(self.moved(expr, self.start))
            case _:
                return rebuild(expr, tuple(self.expression(child) for child in children(expr)))

    def moved(self, expr: Expr, start: Expr) -> Polynomial:
        """An expression with `start` for `lanes * tile`."""
        terms = polynomial(expr)
        rest, factor = without(terms, self.tile), coefficient(terms, self.tile)
        if rest is None or factor is None or any(value % self.lanes for _, value in factor.terms):
            raise _Unmoved
        times_lanes = Polynomial(tuple((product, value // self.lanes) for product, value in factor.terms))
        return add(rest, multiply(times_lanes, polynomial(start)))

    def always(self, condition: Expr) -> bool:
        """Whether a comparison of positions holds in every lane of every full tile: it does in the last lane of the last tile."""
        match condition:
            case Binary(op="&&", left=left, right=right):
                return self.always(left) and self.always(right)
            case Binary(op="<", left=left, right=right) if left.dtype is DType.INT64 and not mentions(right, self.tile):
                pass
            case _:
                return False
        most, gain = self.moved(left, self.last), coefficient(polynomial(left), self.tile)
        if gain is None or any(value < 0 for _, value in gain.terms):
            return False
        for name, loop in self.inner.items():
            gain, rest = coefficient(most, name), without(most, name)
            if gain is None or rest is None or any(product or value < 0 for product, value in gain.terms):
                return False
            extent = int64(self.lanes) if loop.extent in self.ragged else loop.extent
            most = add(rest, multiply(gain, polynomial(plus(loop.min, plus(extent, int64(-1))))))
        room = add(polynomial(right), scaled(most, -1))
        return constant_value(as_expr(room)) is not None and room.constant > 0
