"""Vectorised loops: full vectors, and what is left at the end.

Comes in: a `For` of the kind `vectorize` with free lanes. Goes out: its text. A loop of few iterations is one vector, whose last
lanes may be masked; a longer one is cut, or a stream: a loop that moves by a vector, and whose last vector overlaps the one
before, so that it needs no masks.

Worked example: a stream of 100 iterations with 32 lanes has vectors at 0, 32, 64 and 68; if its output begins 5 elements before a
cache line, at 0, 5, 37 and 68. One of 40 iterations has two vectors of 16 lanes, and 8 lanes under a mask.
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.loops import Block, For, Store, walk_statements
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.loops.show import heading
from tc_jupyter.program import DType, IndexVar, int64
from tc_jupyter.program.integers import minimum, parts_of_minimum, plus
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.target import LINE_BYTES

from . import arith
from .builder import Lines, Value, index
from .full_tiles import full_tiles
from .limits import upper_limit
from .peeling import peel
from .pieces import reads_in_pieces
from .polynomial import as_expr, constant_value, has_iterations, polynomial
from .row_tiles import Part, lanes_of_stream
from .state import Vector
from .statements import Statements
from .strips import changes_row, cut, is_stream, native_lanes


class Function(Statements):
    """Prints the body of the task function: the last class of the chain (`state.py`)."""

    def vectorized(self, stmt: For) -> None:
        """Full vectors, and what is left at the end under a mask or one by one."""
        native = native_lanes(stmt, self.target)
        extent = self.resolve(stmt.extent)
        limit = upper_limit(extent)
        number = constant_value(extent)
        if limit is not None and limit <= 1:
            self.serial(replace(stmt, kind="serial"))
        elif isinstance(stmt, Part) or (
            (limit is None or limit > tuning.VECTOR_REGISTERS * native) and is_stream(stmt) and stmt.tail != "mask"
        ):
            self.stream(stmt, lanes_of_stream(stmt, self.target))
        elif limit is None or limit > tuning.VECTOR_REGISTERS * native:
            self.strip_mined(stmt, 2 * native)
        elif limit & (limit - 1):
            self.uneven(stmt, limit, native)
        elif number is not None:
            self.lanes(stmt, number, None)
        else:
            self.ragged(stmt, limit)

    def uneven(self, stmt: For, limit: int, native: int) -> None:
        """A number of iterations that is no power of two."""
        part = limit & -limit
        width = max(part, native)
        if limit > native and self.uses_registers(stmt.body) and constant_value(self.resolve(stmt.extent)) is None:
            # every piece has its place: a position that is computed would keep the accumulators out of registers
            outer = cut(replace(stmt, extent=self.resolve(stmt.extent), min=self.resolve(stmt.min)), width)
            self.statement(replace(outer, extent=int64(-(-limit // width)), kind="unroll"))
        elif part >= native or limit > native:
            self.strip_mined(stmt, width)
        elif changes_row(stmt) and constant_value(self.resolve(stmt.extent)) == limit:
            self.in_pieces_of_two(stmt, limit)
        elif self.masks(stmt.body):
            self.ragged(stmt, 1 << limit.bit_length())
        else:
            self.loop(replace(stmt, kind="unroll"))

    def in_pieces_of_two(self, stmt: For, count: int) -> None:
        """Seven elements that are changed in place are four, two and one.

        A read of the next row under a mask would wait for the write of this one, of which it has no element: rows of 7 took 7 times
        as long as those that only read other arrays (Zen 5).
        """
        resolved = replace(stmt, min=self.resolve(stmt.min))
        while count > 1:
            lanes = 1 << count.bit_length() - 1
            self.lanes(replace(resolved, extent=int64(lanes)), lanes, None)
            resolved, count = replace(resolved, min=plus(resolved.min, int64(lanes))), count - lanes
        if count:
            self.serial(replace(resolved, extent=int64(1), kind="serial"))

    def strip_mined(self, stmt: For, lanes: int) -> None:
        """Cut a loop into vectors of `lanes` iterations."""
        resolved = replace(stmt, extent=self.resolve(stmt.extent), min=self.resolve(stmt.min))
        outer = cut(resolved, lanes)
        if outer.kind == "unroll":
            self.statement(outer)
        else:
            self.block(full_tiles(peel(Block((outer,))), frozenset(self.level_of)))

    # --- streams ---

    def stream(self, stmt: For, lanes: int) -> None:
        """Vectors that may overlap: the first one, then from the first aligned position, then the last one again.

        The body appears once; the position moves by a vector, but never beyond the last full one. A short row is one part.
        """
        put_off, self.put_off = self.put_off, None
        extent = self.value(self.resolve(stmt.extent))
        least = tuning.OVERLAPPING * lanes if self.target.free_masks else lanes
        part = f", part {stmt.tile}" if isinstance(stmt, Part) else ""
        long, short, end = (self.b.name(hint) for hint in ("long", "short", "row.end"))
        self.b.comment(f"{heading(stmt)}  (vectors of {lanes}, the last one overlaps{part})")
        self.b.branch_if(arith.compare(self.b, ">=", extent, index(least)), long, short)
        with self.beside(long):
            self.overlapping(stmt, lanes, extent, end)
        self.b.branch(end)
        with self.beside(short):
            if isinstance(stmt, Part):
                whole = self.b.name("whole")
                self.b.branch_if(arith.compare(self.b, "==", self.part(stmt), index(0)), whole, end)
                self.b.label(whole)
            self.short_row(stmt, least)
        self.b.branch(end)
        self.b.label(end)
        self.put_off = put_off

    def short_row(self, stmt: For, least: int) -> None:
        """Fewer than `least` iterations: vectors of one register and the rest under a mask, or one by one."""
        few = (upper_limit(self.resolve(stmt.extent)) or least) <= native_lanes(stmt, self.target)
        if (few and reads_in_pieces(stmt.body, stmt.var)) or not self.masks(stmt.body):
            self.serial(replace(stmt, kind="serial"))
        else:
            bound = replace(stmt, extent=minimum(int64(least), self.resolve(stmt.extent)))
            self.strip_mined(bound, native_lanes(stmt, self.target))

    def part(self, stmt: Part) -> Value:
        """Which part of a stream is printed."""
        return self.value(self.resolve(IndexVar(stmt.tile)))

    def of_part(self, stmt: Part, lanes: int, first_step: Value, last: Value, end: str) -> tuple[Value, Value]:
        """First and last position of a part; jump to `end` if the parts before it are all of the row.

        The vectors of a row begin at 0, at `first_step`, and then every `lanes`; the last one at `last`.
        """
        width, length = index(lanes), index(lanes * stmt.vectors)
        at = arith.binary(self.b, "+", first_step, arith.binary(self.b, "*", self.part(stmt), length))
        some = self.b.name("some")
        before = arith.binary(self.b, "-", at, index(2 * lanes))
        self.b.branch_if(arith.compare(self.b, "<", before, last), some, end)
        self.b.label(some)
        start, until = (
            arith.binary(self.b, "min", arith.binary(self.b, "max", index(0), place), last)
            for place in (arith.binary(self.b, "-", at, width), arith.binary(self.b, "+", before, length))
        )
        return start, arith.select(self.b, self.value(stmt.cut), until, last)

    def overlapping(self, stmt: For, lanes: int, extent: Value, end: str) -> None:
        """At least one full vector; of a part perhaps none, then a jump to `end`."""
        at = f"{stmt.var}.at"
        last = arith.binary(self.b, "-", extent, index(lanes))
        first_step = self.to_alignment(stmt, lanes)
        begin, until = self.of_part(stmt, lanes, first_step, last, end) if isinstance(stmt, Part) else (index(0), last)
        body, done, before = self.b.name(f"for.{stmt.var}"), self.b.name(f"end.{stmt.var}"), self.b.block
        self.b.branch(body)
        self.b.label(body)
        counter = Value("%" + self.b.name(at), DType.INT64)
        phi_at = len(self.b.lines)
        place: Lines = []
        self.b.lines.append(place)
        self.enter(at, counter, int64(0), self.resolve(stmt.extent), place)
        moved = replace(stmt, min=plus(self.resolve(stmt.min), IndexVar(at)), extent=int64(lanes))
        with self.scope():
            self.alone = self.overlaps_none(counter, first_step, lanes, last)
            self.lanes(moved, lanes, None)
            self.alone = None
        self.leave(at)
        start = arith.compare(self.b, "==", counter, index(0))
        length = arith.select(self.b, start, first_step, index(lanes))
        after = arith.binary(self.b, "min", self.b.op(f"add nsw i64 {counter.text}, {length.text}", DType.INT64), last)
        more = arith.compare(self.b, "!=", counter, until)
        latch = self.b.block
        self.b.branch_if(more, body, done)
        self.b.lines.insert(
            phi_at, f"  {counter.text} = phi i64 [ {begin.text}, %{before} ], [ {after.text}, %{latch} ]"
        )
        self.b.label(done)

    def overlaps_none(self, counter: Value, first_step: Value, lanes: int, last: Value) -> Value:
        """Whether no other vector of the stream writes any of these elements: not the first one, and not the last one."""
        width = index(lanes)
        ends_before = arith.compare(self.b, "<=", arith.binary(self.b, "+", counter, width), last)
        is_last = arith.compare(self.b, "==", counter, last)
        starts_after = arith.compare(self.b, ">=", counter, width)
        in_step = arith.compare(self.b, "==", first_step, width)
        return arith.logical(
            self.b,
            "and",
            arith.logical(self.b, "or", starts_after, in_step),
            arith.logical(self.b, "or", ends_before, is_last),
        )

    def to_alignment(self, stmt: For, lanes: int) -> Value:
        """Iterations until the first store is at the start of a cache line, at least 1; a whole vector if it is there.

        A vector of less than a line: at a multiple of its bytes.
        """
        store = next(s for s in walk_statements(stmt.body) if isinstance(s, Store))
        storage = self.storages[store.buffer]
        offset = self.offset(storage, tuple(self.resolve(where) for where in store.indices))
        low = self.resolve(stmt.min)
        first = polynomial(substitute(as_expr(offset), {stmt.var: low}))
        size = storage.buffer.dtype.bytes
        line = min(LINE_BYTES, lanes * size)
        number = self.b.op(f"ptrtoint ptr {self.address(storage, first)} to i64", DType.INT64, 1, "address")
        beyond = arith.binary(self.b, "-", index(0), number)
        rest = self.b.op(f"and i64 {beyond.text}, {line - 1}", DType.INT64, 1, "rest")
        steps = arith.binary(self.b, "//", rest, index(size))
        return arith.select(self.b, arith.compare(self.b, "==", steps, index(0)), index(lanes), steps)

    # --- one vector ---

    def ragged(self, stmt: For, limit: int) -> None:
        """A vector whose last lanes may be beyond the end."""
        count = self.value(self.resolve(stmt.extent))
        if not self.masks(stmt.body):
            self.full_or_serial(stmt, limit, count)
            return
        if stmt.extent in self.positive or has_iterations(self.resolve(stmt.extent), self.extents):
            with self.statement_scope():
                self.lanes(stmt, limit, self.inside(self.resolve(stmt.extent), limit, count), count)
            return
        body, end = self.b.name("tail"), self.b.name("tail.end")
        some = arith.compare(self.b, ">", count, index(0))
        self.b.branch_if(some, body, end)
        with self.beside(body):
            self.lanes(stmt, limit, self.inside(self.resolve(stmt.extent), limit, count), count)
        self.b.branch(end)
        self.b.label(end)

    def full_or_serial(self, stmt: For, limit: int, count: Value) -> None:
        """One full vector, or a serial loop."""
        yes, no, end = (self.b.name(hint) for hint in ("full", "part", "part.end"))
        self.b.branch_if(arith.compare(self.b, "==", count, index(limit)), yes, no)
        with self.beside(yes):
            self.lanes(stmt, limit, None)
        self.b.branch(end)
        with self.beside(no):
            self.serial(replace(stmt, kind="serial"))
        self.b.branch(end)
        self.b.label(end)

    def lanes(self, stmt: For, lanes: int, tail: Value | None, count: Value | None = None) -> None:
        """The body with one lane per iteration; of the lanes, only `tail`, the first `count`, may touch memory."""
        self.b.comment(f"{heading(stmt)}  (vector of {lanes}{', masked' if tail else ''})")
        place: Lines = []
        self.b.lines.append(place)
        first = self.resolve(stmt.min)
        self.enter(stmt.var, self.value(first), first, int64(lanes), place)
        self.vector, self.tail, self.tail_count = Vector(stmt.var, first, lanes, len(self.levels) - 1), tail, count
        self.lengths = (int64(lanes), *parts_of_minimum(self.resolve(stmt.extent)))
        with self.statement_scope():
            self.block(stmt.body)
        self.vector = self.tail = self.tail_count = None
        self.leave(stmt.var)
