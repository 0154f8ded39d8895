"""Statements, and the loops that are no vectors: those that count and those that are written out.

Comes in: a `Stmt`. Goes out: its text. Conditions that differ between lanes become masks, all others jumps.

Worked example: `for i in 0:4 (unroll)` is its body four times, with the numbers 0 to 3 in the place of `i`, so that accumulators
that `i` selects live in registers; in `for i in 0:N` it is printed once, between the blocks of a counter.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import prod
from typing import assert_never

from tc_jupyter.loops import Allocate, Barrier, Block, Buffer, Check, For, If, Intrinsic, Stmt, Store, walk_statements
from tc_jupyter.loops.ir import accesses
from tc_jupyter.loops.show import heading, show_expr
from tc_jupyter.program import Binary, DType, Expr, IndexVar, int64
from tc_jupyter.program.integers import has_read, index_names, plus, times
from tc_jupyter.schedule import tuning

from . import arith
from .builder import memory_type, vector_type
from .free_lanes import has_free_lanes
from .limits import largest, upper_limit
from .polynomial import constant_value, mentions
from .state import Written
from .steps import NATIVE, dot
from .storage import Storage, element_count, rounded_up, row_major
from .stores import Stores
from .strips import native_lanes


class Statements(Stores):
    """Prints statements, and decides how a loop is printed."""

    @abstractmethod
    def vectorized(self, stmt: For) -> None:
        """Print a vectorised loop (`vector_loops.py`)."""

    def block(self, block: Block) -> None:
        """Statements in order."""
        for line in block.comment.splitlines():
            self.b.comment(line)
        for stmt in block.body:
            with self.statement_scope():
                self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        """One statement."""
        match stmt:
            case Store():
                self.store(stmt)
            case For():
                self.loop(stmt)
            case If():
                self.condition(stmt)
            case Allocate():
                self.allocate(stmt)
            case Check():
                self.check(stmt)
            case Block():
                self.block(stmt)
            case Barrier():
                pass
            case Intrinsic():
                assert stmt.name in NATIVE, f"the CPU has no operation `{stmt.name}`"
                dot(self.b, self.pointer, stmt, self.target.features)
            case _:
                assert_never(stmt)

    def condition(self, stmt: If) -> None:
        """A jump, or a mask if lanes differ."""
        test = self.value(self.resolve(stmt.condition))
        if test.lanes > 1:
            with self.masked(test):
                self.block(stmt.then)
            if stmt.otherwise is not None:
                with self.masked(arith.invert(self.b, test)):
                    self.block(stmt.otherwise)
            return
        self.b.comment(f"if {show_expr(stmt.condition)}")
        yes, end = self.b.name("if.then"), self.b.name("if.end")
        no = end if stmt.otherwise is None else self.b.name("if.else")
        self.b.branch_if(test, yes, no)
        known, tested = self.positive, stmt.condition
        if isinstance(tested, Binary) and tested.op == ">" and constant_value(tested.right) == 0:
            self.positive = known | {tested.left}  # as written: so do loops inside ask for their length
        with self.beside(yes):
            self.block(stmt.then)
        self.positive = known
        self.b.branch(end)
        if stmt.otherwise is not None:
            with self.beside(no):
                self.block(stmt.otherwise)
            self.b.branch(end)
        self.b.label(end)

    def check(self, stmt: Check) -> None:
        """Run the body, or claim the error record and write the values into it."""
        test = self.value(self.resolve(stmt.condition))
        good, bad, first, end = (self.b.name(hint) for hint in ("check.ok", "check.failed", "check.first", "check.end"))
        self.b.branch_if(test, good, bad)
        with self.beside(good):
            self.block(stmt.body)
        self.b.branch(end)
        with self.beside(bad):
            pair = self.b.raw(f"cmpxchg ptr %errors, i64 0, i64 {stmt.number + 1} seq_cst monotonic", "pair")
            won = self.b.op(f"extractvalue {{ i64, i1 }} {pair}, 1", DType.BOOL, 1, "won")
            self.b.branch_if(won, first, end)
            self.b.label(first)
            for position, expr in enumerate(stmt.values):
                value = arith.cast(self.b, self.value(self.resolve(expr)), DType.INT64, self.f16c)
                where = self.b.raw(f"getelementptr inbounds i64, ptr %errors, i64 {position + 2}", "record")
                self.b.line(f"store {value.typed}, ptr {where}, align 8")
            self.b.branch(end)
        self.b.label(end)

    def allocate(self, stmt: Allocate) -> None:
        """Temporary storage: on the stack if it is small and of known size, else in the thread's workspace."""
        lanes = self.vector.lanes if self.vector is not None else 1
        buffer = self.with_whole_vectors(stmt.buffer) if lanes == 1 else stmt.buffer
        pitch = [self.resolve(extent) for extent in buffer.shape]
        if pitch and buffer.pad:
            pitch[-1] = plus(pitch[-1], int64(buffer.pad))
        limits = [largest(extent, self.ranges) for extent in pitch]
        numbers = [upper_limit(limit) for limit in limits]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            pitch = [int64(max(0, number)) for number in known]
        size = prod(known) * lanes * buffer.dtype.bytes if len(known) == len(numbers) else None
        element = vector_type(memory_type(buffer.dtype), lanes)
        if size is not None and size <= tuning.STACK_BYTES and self.stack_bytes + size <= 4 * tuning.STACK_BYTES:
            self.stack_bytes += size
            pointer = self.b.slot(element, max(1, prod(known)), 64, buffer.name)
            self.slots.add(pointer)
        else:
            pointer = self.from_workspace(buffer, limits, lanes)
        level = self.depth(index_names(element_count(pitch))) if pitch else 0
        self.storages[buffer.name] = Storage(buffer, pointer, row_major(pitch), level, lanes, private=True)
        self.block(stmt.body)

    def with_whole_vectors(self, buffer: Buffer) -> Buffer:
        """Accumulators whose rows have room for their last vector: a mask would keep them out of registers."""
        length = constant_value(self.resolve(buffer.shape[-1])) if buffer.shape else None
        if buffer.scope != "register" or not length or not length & (length - 1):
            return buffer
        native = max(1, self.target.vector_bits // buffer.dtype.bits)
        whole = min(1 << length.bit_length(), -(-length // native) * native)
        return replace(buffer, shape=(*buffer.shape[:-1], int64(whole)))

    def from_workspace(self, buffer: Buffer, limits: list[Expr], lanes: int) -> str:
        """A part of the thread's workspace, 64-byte aligned."""
        start = self.workspace
        count = times(
            element_count([Binary("max", limit, int64(0), DType.INT64) for limit in limits]),
            int64(lanes * buffer.dtype.bytes),
        )
        self.workspace = plus(start, rounded_up(count, 64))
        offset = self.value(start)
        with self.at(0):
            return self.b.raw(f"getelementptr inbounds i8, ptr %workspace, {offset.typed}", buffer.name)

    # --- loops ---

    def loop(self, stmt: For) -> None:
        """One loop, by its kind."""
        extent = constant_value(self.resolve(stmt.extent))
        if stmt.kind == "unroll" and extent is not None and extent <= tuning.MOST_UNROLLED:
            self.unrolled(stmt, extent)
        elif stmt.kind in ("unroll", "serial") and self.indexes_registers(stmt):
            self.guarded_unroll(stmt)
        elif stmt.kind == "vectorize" and self.vector is None and self.can_vectorize(stmt):
            self.vectorized(stmt)
        else:
            self.serial(stmt)

    def can_vectorize(self, stmt: For) -> bool:
        """Whether the body can be printed with one lane per iteration; if not, the loop is serial.

        Asked for every iteration of a written-out loop around it.
        """
        known = self.vectorizable.get(id(stmt))
        if known is None:
            known = self.vectorizable[id(stmt)] = (stmt, has_free_lanes(stmt))
        return known[1]

    def unrolled(self, stmt: For, extent: int) -> None:
        """The body once per iteration, with numbers in the place of the variable."""
        first = self.resolve(stmt.min)
        self.b.comment(f"{heading(stmt)}  (unroll)")
        before = frozenset(self.loads[-1])
        iterations = 1 if self.fold_rows(stmt, extent) else extent
        self.turn_blocks(stmt, extent)
        self.share_pixels(stmt, extent)
        turned = [key for key in self.loads[-1] if key not in before]
        together: list[Written] | None = None
        if self.put_off is None and _only_stores(stmt.body):
            self.put_off = self.b.block, (together := [])
        mixed = self.mixes(stmt, extent)
        self.mixed = [] if mixed is not None else self.mixed
        for iteration in range(iterations):
            number = plus(first, int64(iteration))
            folded = constant_value(number)
            self.constants[stmt.var] = number if folded is None else int64(folded)
            with self.statement_scope():
                self.block(stmt.body)
            self.b.quiet += iteration == 0
        self.b.quiet -= extent > 0
        self.constants.pop(stmt.var, None)
        if mixed is not None and self.mixed is not None:
            values, self.mixed = self.mixed, None
            self.mixed_store(*mixed, values)
        if together is not None:
            self.put_off = None
            self.past_or_cached(together)
        for key in turned:
            del self.loads[-1][key]

    def indexes_registers(self, stmt: For) -> bool:
        """Whether a short loop selects registers: it is written out, since registers have no addresses."""
        limit = upper_limit(self.resolve(stmt.extent))
        if limit is None or limit > 32:
            return False
        for inner in walk_statements(stmt.body):
            for name, indices in accesses(inner):
                known = self.storages.get(name)
                if (
                    known is not None
                    and (known.buffer.scope == "register" or (stmt.kind == "unroll" and known.private))
                    and any(mentions(i, stmt.var) for i in indices)
                ):
                    return True
        return False

    def guarded_unroll(self, stmt: For) -> None:
        """The body once per possible iteration, each behind a test."""
        extent = self.resolve(stmt.extent)
        limit = upper_limit(extent) or 0
        if constant_value(extent) is not None:
            self.unrolled(stmt, limit)
            return
        inside = If(Binary("<", IndexVar(stmt.var), plus(stmt.min, extent), DType.BOOL), stmt.body)
        before, self.last_rows = self.last_rows, stmt.kind == "unroll"  # `full_tiles` has made another version
        self.unrolled(replace(stmt, body=Block((inside,))), limit)
        self.last_rows = before

    def serial(self, stmt: For) -> None:
        """A counted loop."""
        low_expr, extent_expr = self.resolve(stmt.min), self.resolve(stmt.extent)
        extent = constant_value(extent_expr)
        if extent is not None and extent <= 0:
            return
        if extent == 1 and not has_read(low_expr):
            self.constants[stmt.var] = low_expr
            with self.scope():
                self.block(stmt.body)
            del self.constants[stmt.var]
            return
        note = "" if stmt.kind == "serial" else f"  ({stmt.kind})"
        self.b.comment(heading(stmt) + note)
        low, count = self.value(low_expr), self.value(extent_expr)
        end = (
            self.value(plus(low_expr, extent_expr))
            if self.needs(low_expr) is not None and self.needs(extent_expr) is not None
            else arith.binary(self.b, "+", low, count)
        )
        innermost = self.is_innermost(stmt.body)
        with self.counted(stmt.var, low, end, low_expr, extent_expr, guard=extent is None, innermost=innermost):
            self.block(stmt.body)

    def is_innermost(self, body: Block) -> bool:
        """Whether no loop inside has a counter."""

        def is_counted(loop: For) -> bool:
            if loop.kind != "vectorize":
                return loop.kind != "unroll"
            limit = upper_limit(self.resolve(loop.extent))
            return limit is None or limit > tuning.VECTOR_REGISTERS * native_lanes(loop, self.target)

        return not any(isinstance(stmt, For) and is_counted(stmt) for stmt in walk_statements(body))


def _only_stores(block: Block) -> bool:
    """Whether nothing but assignments of whole vectors happens inside, so that these may be printed one behind the other."""
    inner = list(walk_statements(block))
    plain = all(isinstance(stmt, Block | For | Store) for stmt in inner)
    loops = all(stmt.kind == "vectorize" for stmt in inner if isinstance(stmt, For))
    return plain and loops and all(stmt.reduce is None for stmt in inner if isinstance(stmt, Store))
