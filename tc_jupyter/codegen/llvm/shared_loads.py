"""Reads that several iterations of a written-out loop share: blocks across rows, and every n-th neighbour.

Comes in: a loop that is about to be written out, around one vectorised loop. Goes out: vectors among the known loads, where
`Loads.load` finds them instead of reading each for itself.

Worked example: `for k in 0:16 (unroll)` around `P[k, j] = B[j, k]` with 16 lanes of `j` reads 16 rows of `B` and turns them in
registers (`transpose.py`), instead of gathering 16 times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from tc_jupyter.loops import Block, For, Store, walk_statements
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.loops.simplify import simplify_expr
from tc_jupyter.program import DType, Expr, IndexVar, Read, int64
from tc_jupyter.program.integers import minimum, plus
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.target import LEAST_VECTOR_BITS
from tc_jupyter.schedule.templates.contraction import PIXEL

from . import arith
from .builder import Value
from .limits import upper_limit
from .loads import Loads
from .memory import below, lane_multiple
from .polynomial import Polynomial, add, as_expr, constant_value, has_iterations, mentions, polynomial, step
from .state import Vector
from .storage import Storage
from .strips import native_lanes
from .transpose import apart, crossing_reads, every, plain_reads, turn


class SharedLoads(Loads):
    """Prints reads before the iterations that need them."""

    def turn_blocks(self, stmt: For, extent: int) -> None:
        """Read blocks that the vectorised loop inside would gather across rows; its iterations find them as known elements."""
        if self.vector is not None or len(stmt.body.body) != 1 or extent < 2 or extent & (extent - 1):
            return
        inner = stmt.body.body[0]
        if not isinstance(inner, For) or inner.kind != "vectorize" or constant_value(self.resolve(inner.min)) != 0:
            return
        lanes = self.lanes_of_row(inner)
        if lanes is None or lanes & (lanes - 1) or lanes > tuning.VECTOR_REGISTERS * native_lanes(inner, self.target):
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

    def lanes_of_row(self, inner: For) -> int | None:
        """How many lanes a vectorised loop has; a few iterations are one vector, whose last lanes may be masked."""
        limit = upper_limit(self.resolve(inner.extent))
        is_one = limit is not None and limit <= native_lanes(inner, self.target) and self.masks(inner.body)
        return 1 << (limit - 1).bit_length() if limit is not None and is_one else limit

    def turn_block(self, read: Read, stmt: For, lane: str, extent: int, lanes: int, length: Expr) -> None:
        """Load `lanes` pieces of `extent` elements and transpose them; beyond `length` lanes the last piece again."""
        storage, start = self.storages[read.tensor], self.resolve(stmt.min)
        vector = Vector(lane, int64(0), lanes, 0)
        count = self.resolve(length)
        tail = None if constant_value(count) == lanes else self.inside(count, lanes, self.value(count))

        def offset_at(row: Expr, column: Expr) -> Polynomial:
            values = {stmt.var: column, lane: row}
            return self.offset(storage, tuple(self.resolve(substitute(where, values)) for where in read.indices))

        def row_at(k: int) -> Expr:
            return int64(k) if tail is None else minimum(int64(k), plus(count, int64(-1)))

        bits = storage.buffer.dtype.compute.bits
        width = min(extent, lanes, LEAST_VECTOR_BITS // bits)
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
        if lanes is None or lanes & (lanes - 1) or lanes > tuning.VECTOR_REGISTERS * native_lanes(inner, self.target):
            return None
        if constant_value(length) is not None:
            return inner, Vector(inner.var, int64(0), lanes, 0), None
        if not self.target.free_masks or mentions(length, stmt.var):
            return None
        return inner, Vector(inner.var, int64(0), lanes, 0), length

    def is_too_few(self, lanes: int, storage: Storage, apart: int) -> bool:
        """Whether so few lanes are not worth reading all that lies between their elements."""
        native = self.target.vector_bits // storage.buffer.dtype.compute.bits
        return lanes < native and (apart == 2 or lanes * 8 * storage.buffer.dtype.bytes < LEAST_VECTOR_BITS)

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
            if self.is_too_few(vector.lanes, storage, apart):
                continue
            count, tail = self.counted_lanes(length, vector.lanes)
            if (storage.buffer.name, frozenset(offset.terms), vector, tail, None) in self.loads[-1]:
                continue
            pixel = add(offset, Polynomial((((), -value),) if value else ()))
            start = polynomial(substitute(as_expr(pixel), {inner.var: int64(0)}))
            native = min(vector.lanes, self.target.vector_bits // storage.buffer.dtype.compute.bits)
            parts = self.parted(storage, [start], vector.lanes, native, count, apart)
            self.keep(storage, pixel, vector, tail, parts)

    def chosen_reads(self, stmt: For, inner: For, extent: int) -> Iterator[Read]:
        """Reads that happen in any case in one of the iterations, which may choose between values of a pixel."""
        written = {each.buffer for each in walk_statements(inner.body) if isinstance(each, Store)}
        for number in range(extent):
            here = {stmt.var: plus(self.resolve(stmt.min), int64(number))}
            for store in walk_statements(inner.body):
                if isinstance(store, Store):
                    value = simplify_expr(substitute(self.resolve(store.value), here))
                    yield from (read for read in plain_reads(value) if read.indices and read.tensor not in written)

    def fold_rows(self, stmt: For, extent: int) -> bool:
        """Combine rows of a window before neighbours in them, which are to be told apart only once then.

        Worked example: `for k in 0:2: for l in 0:2: Y[j] max= X[k, 2*j + l]` is the larger one of two rows, and of every two
        neighbours in that the larger one. Of `k` the first iteration is left; it finds these rows among the known loads.

        Measured with AVX-512 (Zen 4), one thread, maxima of 2 x 2 windows in the second cache: 0.84 of the time.
        """
        inner = stmt.body.body[0] if len(stmt.body.body) == 1 else None
        if extent < 2 or not isinstance(inner, For) or inner.kind != "unroll" or constant_value(inner.min) != 0:
            return False
        across = constant_value(self.resolve(inner.extent))
        if across is None or across not in PIXEL:
            return False
        found = self.vectors_inside(inner, across)
        stores = [] if found is None else list(walk_statements(found[0].body))
        store = stores[0] if len(stores) == 1 else None
        if found is None or not isinstance(store, Store) or store.reduce is None or not isinstance(store.value, Read):
            return False
        loop, vector, length = found
        if any(mentions(where, name) for where in store.indices for name in (stmt.var, inner.var)):
            return False
        read, storage = store.value, self.storages[store.value.tensor]
        dtype, mine = storage.buffer.dtype, self.storages[store.buffer].buffer
        if storage.buffer.role != "input" or storage.buffer.scope != "argument" or mine.name == storage.buffer.name:
            return False
        if mine.dtype is not dtype or dtype.compute is not dtype or dtype is DType.BOOL:
            return False
        offset = self.offset(storage, tuple(map(self.resolve, read.indices)))
        steps = step(offset, loop.var), step(offset, inner.var), step(offset, stmt.var)[1]
        native = self.target.vector_bits // dtype.bits
        if steps != ((across, True), (1, True), True) or vector.lanes < native:
            return False
        count, tail = self.counted_lanes(length, vector.lanes)
        first = self.resolve(stmt.min)

        def start(row: int, lane: Expr) -> Polynomial:
            here = {stmt.var: plus(first, int64(row)), inner.var: int64(0), loop.var: lane}
            return polynomial(substitute(as_expr(offset), here))

        rows = [start(row, int64(0)) for row in range(extent)]
        parts = self.parted(storage, rows, vector.lanes, native, count, across, store.reduce)
        self.keep(storage, start(0, IndexVar(loop.var)), vector, tail, parts)
        return True

    def keep(
        self, storage: Storage, first: Polynomial, vector: Vector, tail: Value | None, parts: Sequence[Value]
    ) -> None:
        """Make vectors known as the elements from the position `first` on, one after the other."""
        for by, value in enumerate(parts):
            place = add(first, Polynomial((((), by),) if by else ()))
            self.loads[-1][storage.buffer.name, frozenset(place.terms), vector, tail, None] = value

    def parted(
        self,
        storage: Storage,
        rows: Sequence[Polynomial],
        lanes: int,
        native: int,
        count: Value | None,
        apart: int,
        op: str = "",
    ) -> Sequence[Value]:
        """Of `apart * lanes` neighbours every one that is so far from the one before, from the first one on, the second one, ...

        Args:
            rows: where they begin; of several rows the elements are combined by `op`.
            count: how many lanes are used, if not all are.
        """
        end = None if count is None else lane_multiple(self.b, count, apart)

        def piece(at: int) -> Value:
            found = [self.piece(storage, row, at, native, end) for row in rows]
            return reduce(lambda old, new: arith.binary(self.b, op, new, old, reassociate=True), found)

        if apart == 2:
            return self.halves(lanes, native, piece)
        found: list[list[Value]] = [[] for _ in range(apart)]
        for first in range(0, apart * lanes, apart * native):
            pieces = [piece(first + k * native) for k in range(apart)]
            for by, parts in enumerate(found):
                parts.append(every(self.b, pieces, by))
        return [arith.joined(self.b, parts) for parts in found]

    def piece(self, storage: Storage, start: Polynomial, at: int, lanes: int, end: Value | None) -> Value:
        """Neighbours from number `at` on; those from number `end` on are 0."""
        pointer = self.address(storage, add(start, Polynomial((((), at),) if at else ())))
        if end is None:
            return self.plain_load(storage, pointer, lanes)
        return self.masked_load("load", f"ptr {pointer}", storage, below(self.b, end, at, lanes))

    def halves(self, lanes: int, native: int, piece: Callable[[int], Value]) -> tuple[Value, Value]:
        """Every second one of `2 * lanes` neighbours, and those between; `piece` gives neighbours from a number on."""
        across = native // 2 if self.target.vector_bits == 2 * LEAST_VECTOR_BITS else native
        pairs: list[tuple[Value, Value]] = []
        for first in range(0, 2 * lanes, 2 * native):
            pairs.append(apart(self.b, [piece(at) for at in range(first, first + native + 1, across)]))
        return arith.joined(self.b, [even for even, _ in pairs]), arith.joined(self.b, [odd for _, odd in pairs])
