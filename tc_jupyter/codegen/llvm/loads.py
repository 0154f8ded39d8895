"""Reads -> operands: one element for all lanes, or one element per lane.

Comes in: a `Read`. Goes out: a `Value`. How lanes are read depends on how their positions differ: neighbours, reversed neighbours,
every n-th element for a small n, neighbours in pieces (`pieces.py`), or a gather. What this kernel only reads is loaded once per
scope.

Worked example: with 16 lanes of `j`, `X[j]` is a vector, `X[15 - j]` a vector and a shuffle, `X[i]` a scalar, `X[I[j]]` a gather.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from tc_jupyter.loops import is_inside
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, int64, walk
from tc_jupyter.program.integers import maximum, plus
from tc_jupyter.schedule.templates.contraction import PIXEL

from . import arith
from .builder import Value, constant, index, mangle, memory_type, numbers, vector_type
from .fetches import Fetches
from .pieces import Pieces, Rows, along_rows, in_pieces, wrapped
from .polynomial import Polynomial, add, as_expr, constant_value, step
from .storage import Storage


@dataclass(frozen=True, slots=True)
class _Wrap:
    """A position that wraps around: that of the first lane, and what it is a remainder of."""

    first: Value
    size: Value


Positions = Callable[[], Value]
"""Prints the position of the next lane, and steps to the one after it."""


class Loads(Fetches):
    """Prints reads."""

    def load(self, read: Read) -> Value:
        """An element, or one element per lane."""
        storage = self.storages[read.tensor]
        offset = self.offset(storage, read.indices)
        key = (storage.buffer.name, frozenset(offset.terms), self.vector, self.tail, self.mask)
        for known in reversed(self.loads):
            if key in known:
                return arith.cast(self.b, known[key], read.dtype, self.f16c)
        if storage.private or storage.buffer.role != "input":
            return arith.cast(self.b, self.element(storage, offset, read.indices), read.dtype, self.f16c)
        # Nobody writes to what this kernel only reads (what it allocates is private): unrolled and jammed loops share it.
        value = self.loads[-1][key] = self.element(storage, offset, read.indices)
        return arith.cast(self.b, value, read.dtype, self.f16c)

    def element(self, storage: Storage, offset: Polynomial, indices: Sequence[Expr]) -> Value:
        """Print the read of an element."""
        self.fetch_item(storage, offset)
        if storage.lanes > 1:
            return self.plain_load(storage, self.address(storage, offset), storage.lanes)
        if self.vector is None or not self.offset_varies(offset):
            return self.uniform_load(storage, offset, self.is_there(storage, indices))
        return self.lane_load(storage, offset)

    def is_there(self, storage: Storage, indices: Sequence[Expr]) -> bool:
        """Whether an element may be read whatever the conditions around it say."""
        return self.mask is None or is_inside(indices, storage.buffer.shape, tuple(self.around.values()))

    def uniform_load(self, storage: Storage, offset: Polynomial, is_there: bool = False) -> Value:
        """The same element for all lanes; not read if no lane is active, unless it is there anyway."""
        if self.mask is None or storage.private or is_there:
            return self.plain_load(storage, self.address(storage, offset), 1)
        mask = self.mask  # a condition that holds beyond the end of the loop only is none of it
        if self.tail is not None:
            mask = arith.logical(self.b, "and", *arith.same_lanes(self.b, self.tail, mask))
        some = self.b.call(f"llvm.vector.reduce.or.{mangle(mask.type)}", (mask,), Value("", DType.BOOL), "some")
        assert isinstance(some, Value)
        yes, end, before = self.b.name("active"), self.b.name("end"), self.b.block
        self.b.branch_if(some, yes, end)
        with self.beside(yes):
            value = self.plain_load(storage, self.address(storage, offset), 1)
        loaded = self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(value, loaded, constant(0, value.dtype), before, storage.buffer.name)

    def lane_load(self, storage: Storage, offset: Polynomial) -> Value:
        """One element per lane: neighbours, reversed neighbours, or anywhere."""
        assert self.vector is not None
        lanes, mask = self.vector.lanes, self.active(storage, offset)
        change, _linear = step(offset, self.vector.var)
        if change == 1:
            pointer = self.address(storage, self.first_lane(offset))
            if mask is None:
                self.prefetch(storage, self.first_lane(offset), lanes)
                self.fetch_ahead(storage, pointer, lanes)
                if self.reads_once:
                    self.read = pointer, lanes * storage.buffer.dtype.bytes
                self.fetch_panel(storage, self.first_lane(offset))
                return self.plain_load(storage, pointer, lanes)
            if mask is self.tail and not storage.buffer.strided and storage.buffer.name in self.multiplied():
                return self.load_inside(storage, pointer, lanes, mask)
            return self.masked_load("load", f"ptr {pointer}", storage, mask)
        if change == -1:
            start = add(self.first_lane(offset), Polynomial((((), 1 - lanes),)))
            return self.reversed_load(storage, self.address(storage, start), mask)
        if change is not None and change in PIXEL:
            return self.strided_load(storage, self.first_lane(offset), change, mask)
        pieces = in_pieces(offset, self.vector.var, lanes)
        if pieces is not None:
            return self.pieces_load(storage, pieces, mask)
        rows = along_rows(offset, self.vector.var)
        if rows is not None and (constant_value(rows.length) or lanes) >= lanes:
            return self.rows_load(storage, offset, rows, mask)
        return self.masked_load("gather", self.lane_pointers(storage, offset), storage, mask)

    # --- rows ---

    def rows_load(self, storage: Storage, offset: Polynomial, rows: Rows, mask: Value | None) -> Value:
        """What lies in one row is one read; lanes of several rows are read one by one.

        Measured with AVX-512, one thread, over element by element: an array as one row (`X(i / B, i % B)`), rows of 1000, 0.08 of
        the time; each element (`X(i / K)`) 32 times 0.08, 3 times, where no vector lies in one row, 0.45.
        """
        assert self.vector is not None
        lanes = self.vector.lanes
        near, far, end = (self.b.name(hint) for hint in ("near", "far", "end"))
        first, length = (
            self.value(substitute(rows.position, {self.vector.var: self.vector.first})),
            self.value(rows.length),
        )
        safe = self.value(maximum(rows.length, int64(1)))
        place = arith.floor_by(self.b, "%", first, length, safe)
        latest = arith.binary(self.b, "-", length, index(lanes))
        start, gain = self.address(storage, self.first_lane(offset)), self.value(as_expr(rows.gain))
        self.b.branch_if(arith.compare(self.b, "<=", place, latest), near, far)
        with self.beside(near):
            if not rows.moves:
                together = arith.broadcast(self.b, self.uniform_load(storage, self.first_lane(offset)), lanes)
            elif mask is None:
                together = self.plain_load(storage, start, lanes)
            else:
                together = self.masked_load("load", f"ptr {start}", storage, mask)
        met = self.b.block
        self.b.branch(end)
        with self.beside(far):
            following = self.next_in_rows(place, length, gain, rows.moves)
            apart, last = self.lane_by_lane(storage, start, following, mask), self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(together, met, apart, last, storage.buffer.name)

    def next_in_rows(self, place: Value, length: Value, gain: Value, moves: bool) -> Positions:
        """The distance from the first lane's element, one lane after the other."""
        last = arith.binary(self.b, "-", length, index(1))
        back = arith.binary(self.b, "-", gain, last) if moves else gain
        present, column = (self.b.slot("i64", 1, 8, name) for name in ("position", "column"))
        self.b.line(f"store {index(0).typed}, ptr {present}")
        self.b.line(f"store {place.typed}, ptr {column}")

        def following() -> Value:
            now, at = (self.b.op(f"load i64, ptr {slot}", DType.INT64, 1, "position") for slot in (present, column))
            is_last = arith.compare(self.b, ">=", at, last)
            step = arith.select(self.b, is_last, back, index(int(moves)))
            self.b.line(f"store {arith.binary(self.b, '+', now, step).typed}, ptr {present}")
            after = arith.select(self.b, is_last, index(0), arith.binary(self.b, "+", at, index(1)))
            self.b.line(f"store {after.typed}, ptr {column}")
            return now

        return following

    # --- pieces ---

    def pieces_load(self, storage: Storage, pieces: Pieces, mask: Value | None) -> Value:
        """Neighbours in one read if they are, else in as many as it takes."""
        assert self.vector is not None
        near, far, end = (self.b.name(hint) for hint in ("near", "far", "end"))
        start = self.address(storage, pieces.rest)
        first, wrap = self.first_neighbour(pieces, near, far)
        together = self.read_lanes(storage, start, first, mask)
        self.b.branch(end)
        with self.beside(far):
            if wrap is None:
                apart = self.beyond_the_ends(storage, start, pieces.position, mask)
            elif self.target.has_masks(storage.buffer.dtype.bits):
                apart = self.around_the_end(storage, start, wrap, mask)
            else:
                apart = self.lane_by_lane(storage, start, self.next_wrapped(wrap), mask)
        last = self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(together, near, apart, last, storage.buffer.name)

    def read_lanes(self, storage: Storage, start: str, first: Value, mask: Value | None) -> Value:
        """Neighbours from position `first` after `start`."""
        assert self.vector is not None
        element = memory_type(storage.buffer.dtype)
        pointer = self.b.raw(f"getelementptr {element}, ptr {start}, {first.typed}", f"{storage.buffer.name}.at")
        if mask is None:
            return self.plain_load(storage, pointer, self.vector.lanes)
        return self.masked_load("load", f"ptr {pointer}", storage, mask)

    def gather_lanes(self, storage: Storage, start: str, position: Expr, mask: Value | None) -> Value:
        """Elements from anywhere; the positions are printed here, as few vectors need them."""
        assert self.vector is not None
        where = arith.broadcast(self.b, self.here(position), self.vector.lanes)
        element, name = memory_type(storage.buffer.dtype), f"{storage.buffer.name}.at"
        each = self.b.raw(f"getelementptr {element}, ptr {start}, {where.typed}", name)
        return self.masked_load("gather", f"<{self.vector.lanes} x ptr> {each}", storage, mask)

    def here(self, expr: Expr) -> Value:
        """Print here what `value` would print where its variables are known; a remainder is at most one period away."""
        if not isinstance(expr, Binary) or not self.varies(expr):
            return self.value(expr)
        left, right = arith.same_lanes(self.b, self.here(expr.left), self.here(expr.right))
        if expr.op != "%":
            return arith.binary(self.b, expr.op, left, right)
        zero = constant(0, DType.INT64, left.lanes)
        more, less = (arith.binary(self.b, op, left, right) for op in ("+", "-"))
        left = arith.select(self.b, arith.compare(self.b, ">=", left, right), less, left)
        return arith.select(self.b, arith.compare(self.b, "<", left, zero), more, left)

    def beyond_the_ends(self, storage: Storage, start: str, position: Expr, mask: Value | None) -> Value:
        """Lanes on both sides of a border; without a division where none is more than a period away."""
        assert self.vector is not None
        inside = (each for each in walk(position) if isinstance(each, Binary) and each.op == "%")
        remainders = tuple(dict.fromkeys(inside))
        if not remainders:
            return self.gather_lanes(storage, start, position, mask)
        first_lane, lanes = self.vector.first, self.vector.lanes
        ends = (first_lane, plus(first_lane, int64(lanes - 1)))
        tests: list[Value] = []
        for each in remainders:
            size = self.value(each.right)
            for end in ends:
                place = self.value(substitute(each.left, {self.vector.var: end}))
                tests.append(arith.compare(self.b, ">=", arith.binary(self.b, "+", place, size), index(0)))
                tests.append(arith.compare(self.b, "<", arith.binary(self.b, "-", place, size), size))
        once, often, end = (self.b.name(hint) for hint in ("once", "often", "end"))
        self.b.branch_if(reduce(lambda left, right: arith.logical(self.b, "and", left, right), tests), once, often)
        with self.beside(once):
            together, found = self.gather_lanes(storage, start, position, mask), self.b.block
        self.b.branch(end)
        with self.beside(often):
            each_one = self.lane_by_lane(storage, start, self.each_place(position), mask)
        last = self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(together, found, each_one, last, storage.buffer.name)

    def first_neighbour(self, pieces: Pieces, near: str, far: str) -> tuple[Value, _Wrap | None]:
        """Jump to `far` if the lanes are no neighbours, else begin `near`.

        Returns:
            (position of the first lane in `near`; what `far` has to know of a position that wraps around).
        """
        assert self.vector is not None
        var, first_lane, lanes = self.vector.var, self.vector.first, self.vector.lanes
        wraps = wrapped(pieces.position, var)
        if wraps is None:
            last_lane = plus(first_lane, int64(lanes - 1))
            places = (substitute(each, {var: first_lane if grows else last_lane}) for each, grows in pieces.near)
            tests = [arith.compare(self.b, ">=", self.value(place), index(0)) for place in places]
            self.b.branch_if(reduce(lambda left, right: arith.logical(self.b, "and", left, right), tests), near, far)
            self.b.label(near)
            return self.value(substitute(pieces.inside, {var: first_lane})), None
        # most positions are their own remainders, which saves the division
        total, divisor = wraps
        first, latest = self.value(substitute(total, {var: first_lane})), self.value(plus(divisor, int64(-lanes)))
        from_start = arith.compare(self.b, ">=", first, index(0))
        to_end = arith.compare(self.b, "<=", first, latest)
        wrap, before = self.b.name("wrap"), self.b.block
        self.b.branch_if(arith.logical(self.b, "and", from_start, to_end), near, wrap)
        with self.beside(wrap):
            size, safe = self.value(divisor), self.value(maximum(divisor, int64(1)))
            rest = arith.floor_by(self.b, "%", first, size, safe)
        found = self.b.block
        self.b.branch_if(arith.compare(self.b, "<=", rest, latest), near, far)
        self.b.label(near)
        return self.b.phi(first, before, rest, found, "first"), _Wrap(rest, size)

    def around_the_end(self, storage: Storage, start: str, wrap: _Wrap, mask: Value | None) -> Value:
        """Two reads, at the end and at the start, if it wraps around once."""
        assert self.vector is not None
        lanes = self.vector.lanes
        twice, often, end = (self.b.name(hint) for hint in ("twice", "often", "end"))
        self.b.branch_if(arith.compare(self.b, ">=", wrap.size, index(lanes)), twice, often)
        self.b.label(twice)
        kind, left = DType.INT32, arith.binary(self.b, "-", wrap.size, wrap.first)
        counts = arith.broadcast(self.b, arith.cast(self.b, left, kind, self.f16c), lanes)
        before = self.b.op(f"icmp sgt {counts.typed}, {numbers(range(lanes))}", DType.BOOL, lanes, "before")
        parts: list[Value] = []
        for first, inside in ((wrap.first, before), (arith.negate(self.b, left), arith.invert(self.b, before))):
            both = inside if mask is None else arith.logical(self.b, "and", *arith.same_lanes(self.b, inside, mask))
            parts.append(self.read_lanes(storage, start, first, both))
        once, found = arith.select(self.b, before, *parts), self.b.block
        self.b.branch(end)
        self.b.label(often)
        each, last = self.around_and_around(storage, start, wrap, mask), self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(once, found, each, last, storage.buffer.name)

    def around_and_around(self, storage: Storage, start: str, wrap: _Wrap, mask: Value | None) -> Value:
        """A gather where it wraps around more than once, as its few elements are in the first cache.

        The lanes' remainders are quotients of halves (`lane + 1/2` by the size), which no rounding takes to another whole number.
        Measured with AVX-512, one thread, `A((i + j) % 5)` for 9 `j` and 100,000 `i`: 14.2 ms element by element, 1.2 so.
        """
        assert self.vector is not None
        lanes, element, kind = self.vector.lanes, memory_type(storage.buffer.dtype), DType.INT32
        if storage.buffer.dtype.bits < 32:
            return self.lane_by_lane(storage, start, self.next_wrapped(wrap), mask)
        size = arith.cast(self.b, arith.binary(self.b, "max", wrap.size, index(1)), kind, self.f16c)
        part = arith.binary(
            self.b, "/", constant(1.0, DType.FLOAT32), arith.cast(self.b, size, DType.FLOAT32, self.f16c)
        )
        halves = ", ".join(f"float {lane}.5" for lane in range(lanes))
        times = self.b.op(
            f"fmul {arith.broadcast(self.b, part, lanes).typed}, <{halves}>", DType.FLOAT32, lanes, "times"
        )
        size, first = (
            arith.broadcast(self.b, each, lanes) for each in (size, arith.cast(self.b, wrap.first, kind, self.f16c))
        )
        turns = self.b.op(f"fptosi {times.typed} to <{lanes} x i32>", kind, lanes, "turns")
        whole = arith.binary(self.b, "*", turns, size)
        lane = self.b.op(f"sub <{lanes} x i32> {numbers(range(lanes))}, {whole.text}", kind, lanes, "lane")
        where = arith.binary(self.b, "+", first, lane)
        less = arith.binary(self.b, "-", where, size)
        where = arith.select(self.b, arith.compare(self.b, ">=", where, size), less, where)
        each = self.b.raw(f"getelementptr {element}, ptr {start}, {where.typed}", f"{storage.buffer.name}.at")
        return self.masked_load("gather", f"<{lanes} x ptr> {each}", storage, mask)

    def lane_by_lane(self, storage: Storage, start: str, following: Positions, mask: Value | None) -> Value:
        """One element after the other: few vectors are like that, so this code is to be short."""
        assert self.vector is not None
        lanes, dtype = self.vector.lanes, storage.buffer.dtype
        element, lane, name = memory_type(dtype), f"{self.vector.var}.lane", storage.buffer.name
        kind = vector_type(element, lanes)
        active = None if mask is None else arith.broadcast(self.b, mask, lanes)
        slot = self.b.slot(kind, 1, lanes * dtype.bytes, f"{name}.lanes")
        if active is not None:
            self.b.line(f"store {kind} zeroinitializer, ptr {slot}")
        with self.counted(lane, index(0), index(lanes), int64(0), int64(lanes), guard=False):
            where = following()
            skip = "" if active is None else self.skip_unless(active, lane)
            pointer = self.b.raw(f"getelementptr {element}, ptr {start}, {where.typed}", f"{name}.at")
            stored = self.b.raw(f"load {element}, ptr {pointer}, align {dtype.bytes}", f"{name}.v")
            place = self.b.raw(f"getelementptr {element}, ptr {slot}, {self.values[lane].typed}", "lane.at")
            self.b.line(f"store {element} {stored}, ptr {place}")
            if skip:
                self.b.branch(skip)
                self.b.label(skip)
        return self.from_memory(self.b.raw(f"load {kind}, ptr {slot}", f"{name}.v"), dtype, lanes)

    def each_place(self, position: Expr) -> Positions:
        """The position of one lane after the other, as it is written."""
        assert self.vector is not None
        vector = self.vector

        def following() -> Value:
            lane = plus(vector.first, IndexVar(f"{vector.var}.lane"))
            return self.value(substitute(position, {vector.var: lane}))

        return following

    def next_wrapped(self, wrap: _Wrap) -> Positions:
        """Positions from the first one on: after the last one comes the first."""
        present = self.b.slot("i64", 1, 8, "position")
        self.b.line(f"store {wrap.first.typed}, ptr {present}")

        def following() -> Value:
            now = self.b.op(f"load i64, ptr {present}", DType.INT64, 1, "position")
            after = arith.binary(self.b, "+", now, index(1))
            is_last = arith.compare(self.b, ">=", after, wrap.size)
            self.b.line(f"store {arith.select(self.b, is_last, index(0), after).typed}, ptr {present}")
            return now

        return following

    def skip_unless(self, active: Value, lane: str) -> str:
        """Jump over what follows where a lane is not active; the label that it ends with."""
        one = self.b.op(f"extractelement {active.typed}, {self.values[lane].typed}", DType.BOOL, 1, "active")
        read, skip = self.b.name("read"), self.b.name("skip")
        self.b.branch_if(one, read, skip)
        self.b.label(read)
        return skip
