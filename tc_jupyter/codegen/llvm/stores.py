"""Assignments and reductions.

Comes in: a `Store`. Goes out: text that writes one element, one vector, or one element per lane. Inactive lanes keep their
elements. Outputs that are far larger than the caches are written past them on x86, in whole lines.

Worked example: `s += A[i]` with 16 lanes of `i` combines the lanes and adds the sum to `s`; `C[j] += x` reads a vector, adds, and
writes the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc_jupyter.loops import For, Store, walk_statements
from tc_jupyter.loops.show import show_store
from tc_jupyter.program import Const, DType, Expr, Select, is_identity
from tc_jupyter.program.integers import has_read
from tc_jupyter.schedule.target import LINE_BYTES
from tc_jupyter.schedule.templates.contraction import PIXEL

from . import arith
from .accumulators import PARTIAL
from .builder import Value, constant, index, mangle, memory_type, vector_type
from .memory import below, lane_multiple
from .polynomial import Polynomial, add, as_expr, constant_value, has_iterations, multiply, polynomial, step
from .prefetch import reads_once, takes_long
from .row_tiles import is_large
from .shared_loads import SharedLoads
from .state import Written
from .storage import Storage
from .transpose import alternating


class Stores(SharedLoads):
    """Prints stores."""

    def store(self, stmt: Store) -> None:
        """`buffer[indices] = value`, with or without a reduction."""
        if not self.b.quiet:
            self.b.comment(show_store(stmt))
        if stmt.statement:
            self.b.lines.append(f"  ;@ {stmt.statement}")
        storage = self.storages[stmt.buffer]
        offset = self.offset(storage, tuple(self.resolve(where) for where in stmt.indices))
        self.partial = stmt.reduce is not None and stmt.buffer.endswith(PARTIAL)
        self.takes_long, self.read = takes_long(stmt, self.inputs), None
        self.reads_once = self.is_stream and reads_once(stmt, self.inputs)
        self.adds_up = stmt if stmt.reduce is not None and storage.private and not self.partial else None
        expr = self.with_tests_asked(self.resolve(stmt.value))
        if isinstance(expr, Select) and (lanes := self.lanes_with_points(stmt, storage, expr)) is not None:
            everywhere = self.costs_nothing(expr.condition, expr.then, expr.otherwise)
            value = self.value(expr.then) if everywhere else None
            with self.masked(lanes):
                self.put(stmt, storage, offset, self.value(expr.then) if value is None else value)
        else:
            self.put(stmt, storage, offset, self.value(expr))

    def with_tests_asked(self, value: Expr) -> Expr:
        """A choice without what all lanes agree on."""
        if not isinstance(value, Select) or self.vector is None:
            return value
        condition = self.asked(value.condition)
        return value.then if isinstance(condition, Const) else replace(value, condition=condition)

    def lanes_with_points(self, stmt: Store, storage: Storage, value: Select) -> Value | None:
        """The lanes that take part in a reduction in private memory, if these differ: the others keep what they have.

        A multiplication and an addition stay one instruction so.
        """
        if self.vector is None or stmt.reduce is None or not storage.private:
            return None
        if not is_identity(value.otherwise, stmt.reduce) or not self.varies(value.condition):
            return None
        test = self.value(value.condition)
        return test if test.lanes > 1 else None

    def put(self, stmt: Store, storage: Storage, offset: Polynomial, value: Value) -> None:
        """Store or combine a value that was computed for a statement."""
        self.takes_long, self.adds_up, self.reads_once = False, None, False
        moves = self.vector is not None and self.offset_varies(offset)
        if not (stmt.atomic or storage.lanes > 1 or moves):
            self.uniform_store(stmt, storage, offset, value)
            return
        value = self.converted(stmt, storage, value)
        if stmt.atomic:
            self.atomic_store(stmt, storage, offset, value)
        elif storage.lanes > 1:
            self.private_store(stmt, storage, offset, value)
        else:
            assert self.vector is not None
            self.lane_store(stmt, storage, offset, arith.broadcast(self.b, value, self.vector.lanes))

    def converted(self, stmt: Store, storage: Storage, value: Value) -> Value:
        """The value in the type that the buffer computes in."""
        if value.dtype is storage.buffer.dtype:
            return value
        compute = storage.buffer.dtype.compute
        empty = self.is_empty(stmt, value, compute)
        value = arith.cast(self.b, value, compute, self.f16c)
        if empty is None:
            return value
        return arith.select(self.b, empty, constant(arith.identity(str(stmt.reduce), compute), compute), value)

    def is_empty(self, stmt: Store, value: Value, dtype: DType) -> Value | None:
        """Where 32 bits hold no position of 64 bits yet; see `narrow`."""
        if stmt.reduce not in ("min", "max") or (value.dtype, dtype) != (DType.INT32, DType.INT64):
            return None
        return arith.compare(self.b, "==", value, constant(arith.identity(stmt.reduce, value.dtype), value.dtype))

    def combine(self, stmt: Store, old: Value, value: Value) -> Value:
        """The reduction of a store."""
        assert stmt.reduce is not None
        old = Value(old.text, old.dtype.compute, old.lanes)
        value = Value(value.text, value.dtype.compute, value.lanes)
        if stmt.reduce in ("min", "max") and old.dtype.is_float and self.vector is None:
            return arith.intrinsic(self.b, stmt.reduce + "imum", *arith.same_lanes(self.b, value, old))
        return arith.binary(self.b, stmt.reduce, value, old, reassociate=True)

    def uniform_store(self, stmt: Store, storage: Storage, offset: Polynomial, value: Value) -> None:
        """One element; lanes are combined first."""
        pointer = self.address(storage, offset)
        if value.lanes > 1 and stmt.reduce is not None:
            value = self.all_lanes(stmt.reduce, value)
        elif value.lanes > 1:
            raise RuntimeError(f"`{stmt.buffer}`: the lanes of a vectorised loop write one element")
        elif stmt.reduce is not None and self.vector is not None:
            raise RuntimeError(f"`{stmt.buffer}`: a reduction of equal lanes")
        value = self.converted(stmt, storage, value)
        if stmt.reduce is not None:
            value = self.combine(stmt, self.plain_load(storage, pointer, 1), value)
        if self.mask is not None and stmt.reduce is None:
            some = self.b.call(
                f"llvm.vector.reduce.or.{mangle(self.mask.type)}", (self.mask,), Value("", DType.BOOL), "some"
            )
            assert isinstance(some, Value)
            value = arith.select(self.b, some, value, self.plain_load(storage, pointer, 1))
        self.b.line(
            f"store {self.to_memory(value, storage.buffer.dtype)}, ptr {pointer}, align {storage.buffer.dtype.bytes}"
        )

    def all_lanes(self, op: str, value: Value) -> Value:
        """Combine the active lanes."""
        value = Value(value.text, value.dtype.compute, value.lanes)
        for mask in (self.tail, self.mask):
            if mask is not None:
                value = arith.select(self.b, mask, value, constant(arith.identity(op, value.dtype), value.dtype))
        return arith.horizontal(self.b, op, value)

    def private_store(self, stmt: Store, storage: Storage, offset: Polynomial, value: Value) -> None:
        """Every lane has an element of its own."""
        pointer = self.address(storage, offset)
        value = arith.broadcast(self.b, value, storage.lanes)
        self.blend_store(stmt, storage, pointer, value)

    def blend_store(self, stmt: Store, storage: Storage, pointer: str, value: Value) -> None:
        """Neighbouring elements of private memory: inactive lanes are written back.

        So are those beyond the end of a loop where another statement, or one that sets columns to a number, may have written.
        """
        kept = storage.buffer.name.endswith(PARTIAL) or len(self.writers.get(storage.buffer.name, ())) > 1
        masks = [self.mask, self.tail if kept else None]
        if stmt.reduce is not None or any(masks):
            old = self.plain_load(storage, pointer, value.lanes)
            value = value if stmt.reduce is None else self.combine(stmt, old, value)
            for mask in masks:
                if mask is not None:
                    value = arith.select(self.b, mask, value, Value(old.text, value.dtype, old.lanes))
        stored = self.to_memory(value, storage.buffer.dtype)
        self.b.line(f"store {stored}, ptr {pointer}, align {storage.buffer.dtype.bytes}")

    def lane_store(self, stmt: Store, storage: Storage, offset: Polynomial, value: Value) -> None:
        """One element per lane."""
        assert self.vector is not None
        if self.mixed is not None:
            self.mixed.append((self.first_lane(offset), value))
            return
        change, _linear = step(offset, self.vector.var)
        mask, dtype = self.active(storage, offset), storage.buffer.dtype
        if change == 1 and self.whole_vectors(storage, offset):
            self.blend_store(stmt, storage, self.address(storage, self.first_lane(offset)), value)
            return
        if change == 1:
            where, kind = f"ptr {self.address(storage, self.first_lane(offset))}", "load"
        else:
            where, kind = self.lane_pointers(storage, offset), "gather"
        if stmt.reduce is not None:
            plain = kind == "load" and mask is None
            old = (
                self.plain_load(storage, where[4:], value.lanes)
                if plain
                else self.masked_load(kind, where, storage, mask)
            )
            value = self.combine(stmt, old, value)
        stored = self.to_memory(value, dtype)
        if kind == "load" and mask is None:
            if stmt.streaming and stmt.reduce is None and self.can_stream(storage, value.lanes):
                self.streaming_store(stmt, storage, stored, where[4:])
            else:
                self.b.line(f"store {stored}, {where}, align {dtype.bytes}")
            return
        name = "store" if kind == "load" else "scatter"
        every = arith.broadcast(self.b, mask or constant(True, DType.BOOL), value.lanes)
        type_name = mangle(vector_type(memory_type(dtype), value.lanes))
        function = f"llvm.masked.{name}.{type_name}.{mangle(where.rsplit(' ', 1)[0])}"
        self.b.call(function, (stored, where, f"i32 {dtype.bytes}", every), "void")

    # --- values of pixels ---

    def mixes(self, stmt: For, extent: int) -> tuple[Store, Expr | None] | None:
        """The store of a written-out loop around a vector, if together they write neighbours: a lane of each iteration in turn.

        With it, how many lanes are used, if not all are.
        """
        found = self.vectors_inside(stmt, extent) if extent in PIXEL and self.mask is None else None
        stores = [] if found is None else list(walk_statements(found[0].body))
        if found is None or len(stores) != 1 or not isinstance(stores[0], Store):
            return None
        inner, vector, length = found
        if length is not None and inner.extent not in self.positive and not has_iterations(length, self.extents):
            return None  # vectors stand behind a jump then, each for itself
        store, storage = stores[0], self.storages[stores[0].buffer]
        offset = self.offset(storage, tuple(map(self.resolve, store.indices)))
        steps = step(offset, inner.var), step(offset, stmt.var)
        plain = store.reduce is None and not store.atomic and storage.lanes == 1 and not storage.private
        return (store, length) if plain and vector.lanes > 1 and steps == ((extent, True), (1, True)) else None

    def as_stored(self, value: Value, dtype: DType) -> Value:
        """The stored form of a vector; of 16-bit floats and of `bool` as integers."""
        if dtype.compute is dtype and dtype is not DType.BOOL:
            return value
        whole = DType.UINT8 if dtype is DType.BOOL else DType.UINT16
        stored = self.to_memory(value, dtype)
        if dtype is not DType.FLOAT16:
            return Value(stored.rsplit(" ", 1)[1], whole, value.lanes)
        return self.b.op(f"bitcast {stored} to <{value.lanes} x i16>", whole, value.lanes, "bits")

    def mixed_store(self, stmt: Store, length: Expr | None, mixed: list[tuple[Polynomial, Value]]) -> None:
        """Write the values of pixels, of which every iteration has computed one for each.

        Measured with AVX-512 (Zen 4), one thread, over scattered lanes: complex products as pairs of floats 0.5 of the time.
        """
        storage = self.storages[stmt.buffer]
        (start, first), vectors = mixed[0], [self.as_stored(value, storage.buffer.dtype) for _, value in mixed]
        count, size = len(vectors), storage.buffer.dtype.bytes
        width = min(first.lanes, max(1, self.target.vector_bits // (8 * size)))
        end = None if length is None else lane_multiple(self.b, self.value(length), count)
        written: list[tuple[Value, str]] = []
        for low in range(0, first.lanes, width):
            parts = [each if width == first.lanes else arith.part(self.b, each, low, width) for each in vectors]
            for number in range(count):
                at = count * low + number * width
                place = self.address(storage, add(start, Polynomial((((), at),) if at else ())))
                written.append((alternating(self.b, parts, number), place))
        if end is not None:
            for number, (stored, place) in enumerate(written):
                inside = below(self.b, end, number * width, width)
                function = f"llvm.masked.store.{mangle(stored.type)}.p0"
                self.b.call(function, (stored, f"ptr {place}", f"i32 {size}", inside), "void")
            return
        if not (stmt.streaming and self.can_stream(storage, count * first.lanes)):
            for stored, place in written:
                self.b.line(f"store {stored.typed}, ptr {place}, align {size}")
            return
        register = width * size
        past = self.whole_line(
            written[0][1], max(register, LINE_BYTES), self.value(is_large(storage.buffer, self.target))
        )
        self.past_or_cached([Written(stored.typed, place, size, register, past, None) for stored, place in written])

    # --- past the caches ---

    def may_stream(self, storage: Storage) -> bool:
        """Whether the processor can write past its caches (x86), and that may be worth it: the last rows are not."""
        return self.target.arch.startswith("x86_64") and not (self.last_rows or storage.private)

    def can_stream(self, storage: Storage, lanes: int) -> bool:
        """`may_stream`, and lines become whole soon."""
        bits = lanes * storage.buffer.dtype.bits
        whole = bits % self.target.vector_bits == 0 and (bits >= 8 * LINE_BYTES or self.alone is not None)
        return whole and self.may_stream(storage)

    def streaming_store(self, stmt: Store, storage: Storage, stored: str, pointer: str) -> None:
        """Past the caches if the output is far larger than they are, its rows are long, and whole lines are written.

        The ends of a row share a cache line with its neighbours, and vectors overlap there: a line that is written past a cache
        that has it costs more than it saves. Measured on x86: rows of 1 kB twice as slow past the caches, rows of 4 kB up to 1.4
        times as fast; rows of 4094 floats take 0.91 to 0.93 of the time if what overlaps is written into the cache.
        """
        assert self.vector is not None
        size, register = storage.buffer.dtype.bytes, self.target.vector_bits // 8
        piece = max(register, min(LINE_BYTES, self.vector.lanes * size))
        large = self.value(is_large(storage.buffer, self.target))
        always = self.whole_lines(stmt, storage, piece, large)
        if always is None and self.put_off is not None:  # few of the rows begin with a line
            self.b.line(f"store {stored}, ptr {pointer}, align {size}")
            return
        found = Written(stored, pointer, size, register, always or self.whole_line(pointer, piece, large), self.read)
        if always is not None and self.put_off is not None and self.put_off[0] == self.b.block:
            self.put_off[1].append(found)
        else:
            self.past_or_cached([found])

    def past_or_cached(self, stores: Sequence[Written]) -> None:
        """Print stores, which need not be in order: those with one condition behind one jump."""
        self.streams = self.streams or bool(stores)
        for condition in dict.fromkeys(each.past for each in stores):
            past, plain, end = (self.b.name(hint) for hint in ("past", "cached", "stored"))
            self.b.branch_if(condition, past, plain)
            for label, ending in ((past, ", !nontemporal !0"), (plain, "")):
                self.b.label(label)
                for each in stores:
                    if each.past == condition:
                        if ending and each.read is not None:
                            self.fetch_later(*each.read)
                        align = each.register if ending else each.size
                        self.b.line(f"store {each.stored}, ptr {each.pointer}, align {align}{ending}")
                self.b.branch(end)
            self.b.label(end)

    def whole_lines(self, stmt: Store, storage: Storage, piece: int, large: Value) -> Value | None:
        """`large`, and all stores of a statement begin with a piece of a line: so do rows, and a multiple of it lies before."""
        size = storage.buffer.dtype.bytes
        start = self.first_lane(polynomial(self.resolve(stmt.indices[-1])))
        even = all(factor * size % piece == 0 for _, factor in start.terms)
        if self.alone is not None or not even or constant_value(as_expr(storage.strides[-1])) != 1:
            return None
        if any(has_read(extent) for extent in storage.buffer.shape):  # a scalar: not known before the loops
            return None
        memo, key = self.levels[0].memo, ("whole lines", storage.buffer.name, piece)
        if key not in memo:
            strides = [
                self.value(as_expr(multiply(stride, Polynomial((((), size),))))) for stride in storage.strides[:-1]
            ]
            with self.at(0):
                bits = self.b.op(f"ptrtoint ptr {storage.pointer} to i64", DType.INT64, 1, "address")
                for stride in strides:
                    bits = self.b.op(f"or i64 {bits.text}, {stride.text}", DType.INT64, 1, "steps")
                rest = self.b.op(f"and i64 {bits.text}, {piece - 1}", DType.INT64, 1, "rest")
                memo[key] = arith.logical(self.b, "and", large, arith.compare(self.b, "==", rest, index(0)))
        return memo[key]

    def whole_line(self, pointer: str, piece: int, large: Value) -> Value:
        """`large`, and a vector at this place is whole lines that nothing else writes."""
        number = self.b.op(f"ptrtoint ptr {pointer} to i64", DType.INT64, 1, "address")
        rest = self.b.op(f"and i64 {number.text}, {piece - 1}", DType.INT64, 1, "rest")
        aligned = arith.compare(self.b, "==", rest, index(0))
        if self.alone is not None:
            aligned = arith.logical(self.b, "and", aligned, self.alone)
        return arith.logical(self.b, "and", large, aligned)

    # --- atomic ---

    def atomic_store(self, stmt: Store, storage: Storage, offset: Polynomial, value: Value) -> None:
        """Compare and exchange until nobody interfered."""
        pointer = self.address(storage, offset)
        dtype = storage.buffer.dtype
        kind, bits = memory_type(dtype), f"i{dtype.bits}"
        first = self.b.raw(f"load atomic {bits}, ptr {pointer} monotonic, align {dtype.bytes}", "seen")
        again, done, before = self.b.name("retry"), self.b.name("done"), self.b.block
        self.b.branch(again)
        self.b.label(again)
        seen, new_seen = "%" + self.b.name("old"), "%" + self.b.name("found")
        phi_at = len(self.b.lines)
        typed = seen if kind == bits else self.b.raw(f"bitcast {bits} {seen} to {kind}", "old")
        old = self.from_memory(typed, dtype, 1)
        new = value if stmt.reduce is None else self.combine(stmt, old, value)
        stored = self.to_memory(new, dtype)
        if kind != bits:
            stored = f"{bits} " + self.b.raw(f"bitcast {stored} to {bits}", "new")
        pair = self.b.raw(f"cmpxchg ptr {pointer}, {bits} {seen}, {stored} monotonic monotonic", "pair")
        self.b.line(f"{new_seen} = extractvalue {{ {bits}, i1 }} {pair}, 0")
        ok = self.b.op(f"extractvalue {{ {bits}, i1 }} {pair}, 1", DType.BOOL, 1, "ok")
        self.b.branch_if(ok, done, again)
        self.b.lines.insert(phi_at, f"  {seen} = phi {bits} [ {first}, %{before} ], [ {new_seen}, %{self.b.block} ]")
        self.b.label(done)
