"""Reads that several iterations of a written-out loop share: blocks across rows, and every n-th neighbour.

Comes in: a loop that is about to be written out, around one vectorised loop. Goes out: vectors among the known loads, where
`Loads.load` finds them instead of reading each for itself.

Worked example: `for k in 0:16 (unroll)` around `P[k, j] = B[j, k]` with 16 lanes of `j` reads 16 rows of `B` and turns them in
registers (`transpose.py`), instead of gathering 16 times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tc_jupyter.loops import Block, For, Store, walk_statements
from tc_jupyter.loops.simplify import simplify_expr
from tc_jupyter.program import DType, Expr, IndexVar, Read, int64
from tc_jupyter.schedule.templates.contraction import PIXEL

from . import arith
from .builder import Value
from .loads import Loads
from .memory import below, lane_multiple
from .polynomial import Polynomial, add, as_expr, has_iterations, mentions, polynomial, step
from .prepare import constant_value, minimum, plus, substitute, upper_limit
from .state import Vector
from .storage import Storage
from .strips import WIDEST, native_lanes
from .transpose import PIECE_BITS, apart, crossing_reads, every, halving_reads, plain_reads, turn


class SharedLoads(Loads):
    """Prints reads before the iterations that need them."""

    def turn_blocks(self, stmt: For, extent: int) -> None:
        """Read blocks that the vectorised loop inside would gather across rows; its iterations find them as known elements."""
        if self.vector is not None or len(stmt.body.body) != 1 or extent < 2 or extent & (extent - 1):
            return
        inner = stmt.body.body[0]
        if not isinstance(inner, For) or inner.kind != "vectorize" or constant_value(self.resolve(inner.min)) != 0:
            return
        lanes = upper_limit(self.resolve(inner.extent))
        if lanes is None or lanes & (lanes - 1) or lanes > WIDEST * native_lanes(inner.body, self.target):
            return
        if any(
            not isinstance(s, Store | Block) or (isinstance(s, Store) and s.reduce is not None)
            for s in walk_statements(inner.body)
        ):
            return
        length = self.resolve(inner.extent)
        if constant_value(length) is None and not (self.masks(inner.body) and has_iterations(length, self.extents)):
            return
        inputs = {name: storage.buffer for name, storage in self.storages.items()}
        for read in dict.fromkeys(crossing_reads(inner, stmt.var, inputs)):
            self.turns = True
            self.turn_block(read, stmt, inner.var, extent, lanes, inner.extent)

    def turn_block(self, read: Read, stmt: For, lane: str, extent: int, lanes: int, length: Expr) -> None:
        """Load `lanes` pieces of `extent` elements and transpose them; beyond `length` lanes the last piece again."""
        storage, start = self.storages[read.tensor], self.resolve(stmt.min)
        vector = Vector(lane, int64(0), lanes, 0)
        count = self.resolve(length)
        tail = None if constant_value(count) is not None else self.inside(count, lanes, self.value(count))

        def offset_at(row: Expr, column: Expr) -> Polynomial:
            values = {stmt.var: column, lane: row}
            return self.offset(storage, tuple(self.resolve(substitute(where, values)) for where in read.indices))

        def row_at(k: int) -> Expr:
            return int64(k) if tail is None else minimum(int64(k), plus(count, int64(-1)))

        bits = storage.buffer.dtype.compute.bits
        width = min(extent, lanes, PIECE_BITS // bits)
        group = min(lanes, max(width, self.target.vector_bits // bits))
        turned: dict[int, list[Value]] = {column: [] for column in range(extent)}
        for top in range(0, lanes, group):
            # all pieces of a row at once: rows that are a power of two apart put each other's lines out of the first cache
            rows = [
                [
                    self.plain_load(
                        storage, self.address(storage, offset_at(row_at(k), plus(start, int64(piece)))), width
                    )
                    for piece in range(0, extent, width)
                ]
                for k in range(top, top + group)
            ]
            for piece, block in enumerate(zip(*rows, strict=True)):
                for column, value in enumerate(turn(self.b, list(block))):
                    turned[piece * width + column].append(value)
        for column, parts in turned.items():
            offset = offset_at(IndexVar(lane), plus(start, int64(column)))
            self.loads[-1][storage.buffer.name, frozenset(offset.terms), vector, tail, None] = arith.joined(
                self.b, parts
            )

    def halve_rows(self, stmt: For, extent: int) -> None:
        """Read neighbours once of which one iteration needs the even and the next one the odd elements (`X[2*j + l]`)."""
        found = self.vectors_inside(stmt, extent)
        if found is None:
            return
        inner, vector, length = found
        lanes = vector.lanes
        for read in dict.fromkeys(halving_reads(inner)):
            storage = self.storages.get(read.tensor)
            if storage is None or storage.buffer.scope != "argument" or storage.buffer.role != "input":
                continue
            offset = self.offset(storage, tuple(self.resolve(where) for where in read.indices))
            native = self.target.vector_bits // storage.buffer.dtype.compute.bits
            apart, linear = step(offset, inner.var)
            if apart is None or not linear or step(offset, stmt.var) != (1, True):
                continue
            if lanes < native and (apart == 2 or lanes * 8 * storage.buffer.dtype.bytes < PIECE_BITS):
                continue
            native = min(lanes, native)
            if apart != 2 and (apart != extent or apart not in PIXEL):  # then all of the neighbours are needed
                continue
            count, tail = self.counted_lanes(length, lanes)
            for first in range(0, extent - apart + 1, apart):
                number = plus(self.resolve(stmt.min), int64(first))
                even = polynomial(substitute(as_expr(offset), {stmt.var: number}))
                start = polynomial(substitute(as_expr(even), {inner.var: int64(0)}))
                parts = self.parted(storage, start, lanes, native, count, apart)
                for by, value in enumerate(parts):
                    place = add(even, Polynomial((((), by),) if by else ()))
                    self.loads[-1][storage.buffer.name, frozenset(place.terms), vector, tail, None] = value

    def vectors_inside(self, stmt: For, extent: int) -> tuple[For, Vector, Expr | None] | None:
        """The vectorised loop of assignments in a loop that is written out, its lanes, and how many are used if not all are."""
        if self.vector is not None or len(stmt.body.body) != 1 or extent < 2:
            return None
        inner = stmt.body.body[0]
        if not isinstance(inner, For) or inner.kind != "vectorize" or constant_value(self.resolve(inner.min)) != 0:
            return None
        if not all(isinstance(each, Store | Block) for each in walk_statements(inner.body)):
            return None
        length = self.resolve(inner.extent)
        lanes = upper_limit(length)
        if lanes is None or lanes & (lanes - 1) or lanes > WIDEST * native_lanes(inner.body, self.target):
            return None
        if constant_value(length) is not None:
            return inner, Vector(inner.var, int64(0), lanes, 0), None
        if not self.target.free_masks or mentions(length, stmt.var):
            return None
        return inner, Vector(inner.var, int64(0), lanes, 0), length

    def counted_lanes(self, length: Expr | None, lanes: int) -> tuple[Value | None, Value | None]:
        """How many lanes are used, and their mask; nothing if all are."""
        if length is None:
            return None, None
        count = self.value(length)
        return count, self.inside(length, lanes, count)

    def share_pixels(self, stmt: For, extent: int) -> None:
        """Read whole pixels of which iterations need some values (`X[i, 0]`, `X[i, 1]`), and take them apart."""
        found = self.vectors_inside(stmt, extent) if extent in PIXEL else None
        if found is None:
            return
        inner, vector, length = found
        for read in dict.fromkeys(self.chosen_reads(stmt, inner, extent)):
            storage = self.storages.get(read.tensor)
            if storage is None or storage.buffer.scope != "argument" or storage.buffer.role != "input":
                continue
            offset = self.offset(storage, read.indices)
            value, apart = constant_value(read.indices[-1]), step(offset, inner.var)[0]
            if apart is None or apart not in PIXEL or constant_value(storage.buffer.shape[-1]) != apart:
                continue
            if value is None or not 0 <= value < apart or storage.buffer.dtype is DType.BOOL:
                continue
            count, tail = self.counted_lanes(length, vector.lanes)
            if (storage.buffer.name, frozenset(offset.terms), vector, tail, None) in self.loads[-1]:
                continue
            pixel = add(offset, Polynomial((((), -value),) if value else ()))
            start = polynomial(substitute(as_expr(pixel), {inner.var: int64(0)}))
            native = min(vector.lanes, self.target.vector_bits // storage.buffer.dtype.compute.bits)
            for by, part in enumerate(self.parted(storage, start, vector.lanes, native, count, apart)):
                place = add(pixel, Polynomial((((), by),) if by else ()))
                self.loads[-1][storage.buffer.name, frozenset(place.terms), vector, tail, None] = part

    def chosen_reads(self, stmt: For, inner: For, extent: int) -> Iterator[Read]:
        """Reads that happen in any case in one of the iterations, which may choose between values of a pixel."""
        written = {each.buffer for each in walk_statements(inner.body) if isinstance(each, Store)}
        for number in range(extent):
            here = {stmt.var: plus(self.resolve(stmt.min), int64(number))}
            for store in walk_statements(inner.body):
                if isinstance(store, Store):
                    value = simplify_expr(substitute(self.resolve(store.value), here))
                    yield from (read for read in plain_reads(value) if read.indices and read.tensor not in written)

    def parted(
        self, storage: Storage, start: Polynomial, lanes: int, native: int, count: Value | None, apart: int
    ) -> Sequence[Value]:
        """Of `apart * lanes` neighbours every one that is so far from the one before, from the first one on, the second one, ..."""
        if apart == 2:
            return self.halves(storage, start, lanes, native, count)
        end = None if count is None else lane_multiple(self.b, count, apart)
        found: list[list[Value]] = [[] for _ in range(apart)]
        for first in range(0, apart * lanes, apart * native):
            pieces = [self.piece(storage, start, first + k * native, native, end) for k in range(apart)]
            for by, parts in enumerate(found):
                parts.append(every(self.b, pieces, by))
        return [arith.joined(self.b, parts) for parts in found]

    def piece(self, storage: Storage, start: Polynomial, at: int, lanes: int, end: Value | None) -> Value:
        """Neighbours from number `at` on; those from number `end` on are 0."""
        pointer = self.address(storage, add(start, Polynomial((((), at),) if at else ())))
        if end is None:
            return self.plain_load(storage, pointer, lanes)
        return self.masked_load("load", f"ptr {pointer}", storage, below(self.b, end, at, lanes))

    def halves(
        self, storage: Storage, start: Polynomial, lanes: int, native: int, count: Value | None
    ) -> tuple[Value, Value]:
        """Every second one of `2 * lanes` neighbours, and those between; of twice `count` neighbours where that is known."""
        across = native // 2 if self.target.vector_bits == 2 * PIECE_BITS else native
        end = None if count is None else lane_multiple(self.b, count, 2)
        pairs: list[tuple[Value, Value]] = []
        for first in range(0, 2 * lanes, 2 * native):
            places = range(first, first + native + 1, across)
            pairs.append(apart(self.b, [self.piece(storage, start, at, native, end) for at in places]))
        return arith.joined(self.b, [even for even, _ in pairs]), arith.joined(self.b, [odd for _, odd in pairs])
