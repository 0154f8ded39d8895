"""Loops whose points have an order: what the next iterations need stays in registers, and running operations have vectors.

* `carried`: elements that an iteration reads of those before it are registers; what is asked at the first ones alone stays there.
* a running sum, product, minimum or maximum goes from lane to lane in steps of 1, 2, 4, ..., and is added to what came before. Like
  any sum of floats it is rounded in another order then.

Worked example, with `prefix +` of lanes a, b, c, ... as a, a+b, a+b+c, ...:

    for i in 0:N                             Y[0] = 0 + X[0]
      Y[i] = (i > 0 ? Y[i-1] : 0) + X[i]     carry = Y[0]
                                        ->   for o in 0:(N - 1) // 8
                                               for l in 0:8 (vectorize)
                                                 sums = prefix + X[1 + 8*o + l]
                                                 Y[1 + 8*o + l] = carry[l] + sums
                                                 carry[l] = carry[l] + last(sums)
                                             for i in 1 + (N - 1) // 8 * 8 : N
                                               Y[i] = carry = carry + X[i]

Source of the steps: Hillis and Steele, "Data parallel algorithms", CACM 1986.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from tc_jupyter.loops import Allocate, Block, Buffer, For, If, Stmt, Store
from tc_jupyter.loops.rewrite import mapped_block, substitute, with_blocks, with_body
from tc_jupyter.program import (
    COMPARISONS,
    Binary,
    Call,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Recurrence,
    Select,
    Unary,
    int64,
    nothing,
    recurrence_of,
    rewrite,
    walk,
)
from tc_jupyter.program.integers import has_read, index_names, minimum, plus, times
from tc_jupyter.ranges import Scope, SizeExpr, from_expr, interval, nonnegative
from tc_jupyter.schedule import Target, tuning
from tc_jupyter.schedule.padding import parts_of

from .free_lanes import has_free_lanes
from .polynomial import polynomial, step
from .prefixes import ANEW, BACK, LAST, LINEAR, PREFIX, SMALLEST, SOUND

_ZERO, _ONE = int64(0), int64(1)


# --- registers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Around:
    """The loops around a place: the first value of their variables, if that is short, and upper bounds of the last one."""

    loops: Mapping[str, tuple[SizeExpr | None, tuple[SizeExpr, ...]]]

    def inside(self, loop: For) -> _Around:
        """Inside one more loop."""
        first, extent = from_expr(loop.min), from_expr(loop.extent)
        found = dict.fromkeys(end - 1 for part in parts_of(extent) for end in parts_of(first + part))
        ends = sorted((end for end in found if _is_simple(end)), key=_atoms)[: tuning.VERSIONS]
        return _Around({**self.loops, loop.var: (first if _is_simple(first) else None, tuple(ends))})

    def always(self, e: SizeExpr) -> bool:
        """Whether `e >= 0` in all iterations."""
        name = next((name for name in reversed(tuple(self.loops)) if name in e.indices), None)
        if name is None:
            return not e.indices and nonnegative(e)
        first, ends = self.loops[name]
        lowest = (_lowest(e, name, first, end) for end in ends)
        return any(low is not None and name not in low.indices and self.always(low) for low in lowest)


def _lowest(e: SizeExpr, name: str, first: SizeExpr | None, end: SizeExpr) -> SizeExpr | None:
    """A lower bound of an expression without a variable."""
    if first is not None:
        return interval(e, {name: (first, end)}).lower
    split = e.linear_in(name)
    falls = split is not None and split[0].is_constant and split[0].constant < 0
    return e.substitute({name: end}) if falls else None


def _atoms(e: SizeExpr) -> int:
    return sum(1 for _ in e.atoms())


def _is_simple(e: SizeExpr) -> bool:
    """Whether an expression is short enough to be put into others again and again."""
    return _atoms(e) <= tuning.TERMS


def carried(block: Block, buffers: Mapping[str, Buffer], outer: tuple[For, ...], target: Target) -> Block:
    """Keep in registers what iterations read of those before them."""
    around = _Around({})
    for loop in outer:
        around = around.inside(loop)
    return _block(block, buffers, around, target)


def _block(block: Block, buffers: Mapping[str, Buffer], around: _Around, target: Target) -> Block:
    return with_body(block, (_statement(stmt, buffers, around, target) for stmt in block.body))


def _statement(stmt: Stmt, buffers: Mapping[str, Buffer], around: _Around, target: Target) -> Stmt:
    if isinstance(stmt, For) and stmt.kind == "serial":
        found = _Carry.of(stmt, buffers, around)
        if found is not None:
            return found.rewritten(target)
    inside = around.inside(stmt) if isinstance(stmt, For) else around
    return with_blocks(stmt, lambda block: _block(block, buffers, inside, target))


def _only_store(block: Block) -> Store | None:
    while len(block.body) == 1 and isinstance(block.body[0], Block):
        block = block.body[0]
    stmt = block.body[0] if len(block.body) == 1 else None
    return stmt if isinstance(stmt, Store) and stmt.reduce is None and not stmt.atomic else None


@dataclass(frozen=True, slots=True)
class _Carry:
    """An innermost loop of one assignment that reads elements of the iterations before.

    Attributes:
        distances: the reads, by how many iterations they are back.
        ahead: it reads elements, too, that later iterations replace.
    """

    loop: For
    store: Store
    buffer: Buffer
    distances: Mapping[Read, int]
    around: _Around
    ahead: bool = False

    @classmethod
    def of(cls, loop: For, buffers: Mapping[str, Buffer], around: _Around) -> _Carry | None:
        """What a loop carries; `None` where it carries nothing, or what it reads is not known."""
        store = _only_store(loop.body)
        if store is None or store.buffer not in buffers or any(map(has_read, (*store.indices, loop.min, loop.extent))):
            return None
        found: dict[Read, int] = {}
        ahead = False
        for read in (node for node in walk(store.value) if isinstance(node, Read) and node.tensor == store.buffer):
            distance = _distance(store, read, loop.var)
            if distance is None:
                return None
            ahead = ahead or distance < 0
            if distance > 0:
                found[read] = distance
        if not found or max(found.values()) > tuning.ABREAST:
            return None
        return cls(loop, store, buffers[store.buffer], found, around, ahead)

    @property
    def far(self) -> int:
        """How many iterations back the farthest read is."""
        return max(self.distances.values())

    def rewritten(self, target: Target) -> Stmt:
        """The first iterations as they are, then those that find what they need in registers."""
        loop, far = self.loop, self.far
        head = replace(loop, extent=minimum(int64(far), loop.extent))
        start = plus(loop.min, int64(far))
        rest = For(loop.var, start, Binary("-", loop.extent, int64(far), DType.INT64), loop.body, "serial", loop.axis)
        registers = [f"{self.buffer.name}.back{k}" for k in range(1, far + 1)]
        fill = [
            Store(name, (_ZERO,), Read(self.buffer.name, self.place(plus(start, int64(-k))), self.buffer.dtype))
            for k, name in enumerate(registers, 1)
        ]
        body = Block((*fill, *self.versions(rest, self.value(rest, registers), registers, target)))
        more = If(Binary(">", loop.extent, int64(far), DType.BOOL), body)
        result = Block((head, more))
        for name in registers:
            result = Block((Allocate(Buffer(name, self.buffer.dtype, (_ONE,), "local"), result),))
        return result

    def versions(self, rest: For, value: Expr, registers: list[str], target: Target) -> tuple[Stmt, ...]:
        """The loop, once for each value of a choice that is the same in all iterations."""
        if isinstance(value, Select) and not has_read(value.condition) and rest.var not in index_names(value.condition):
            sides = (Block(self.versions(rest, each, registers, target)) for each in (value.then, value.otherwise))
            return (If(value.condition, *sides),)
        running = self.running(rest, value, registers[0], target) if self.far == 1 else None
        return running or (self.one_by_one(rest, value, registers),)

    def place(self, at: Expr) -> tuple[Expr, ...]:
        return tuple(substitute(where, {self.loop.var: at}) for where in self.store.indices)

    def value(self, rest: For, registers: list[str]) -> Expr:
        """The value in the iterations behind the first ones."""
        inside = self.around.inside(rest)

        def rule(node: Expr) -> Expr | None:
            if isinstance(node, Read) and node in self.distances:
                return Read(registers[self.distances[node] - 1], (_ZERO,), node.dtype, node.span)
            if isinstance(node, Binary) and node.dtype is DType.BOOL:
                return _decided(node, inside)
            if isinstance(node, Select) and isinstance(node.condition, Const):
                return node.then if node.condition.value else node.otherwise
            return None

        return rewrite(self.store.value, rule)

    def one_by_one(self, rest: For, value: Expr, registers: list[str]) -> For:
        """The loop with its registers."""
        new = f"{self.buffer.name}.new"
        read = Read(new, (_ZERO,), self.buffer.dtype)
        moved = [
            Store(late, (_ZERO,), Read(early, (_ZERO,), self.buffer.dtype))
            for early, late in reversed(list(pairwise(registers)))
        ]
        first = Store(registers[0], (_ZERO,), read)
        body = Block((Store(new, (_ZERO,), value), replace(self.store, value=read), *moved, first))
        return replace(rest, body=Block((Allocate(Buffer(new, self.buffer.dtype, (_ONE,), "local"), body),)))

    def running(self, rest: For, value: Expr, register: str, target: Target) -> tuple[Stmt, ...] | None:
        """Vectors of a recurrence, and what is left at the end; `None` for a value of another form."""
        dtype = self.buffer.dtype
        form = recurrence_of(value, Read(register, (_ZERO,), dtype))
        way, even = step(polynomial(self.store.indices[-1]), rest.var)
        has_vectors = (dtype.is_integer or dtype.is_float) and dtype.bits >= 32 and dtype is dtype.compute
        if form is None or not has_vectors or not even or way not in (1, -1):
            return None
        lanes = max(2, min(tuning.SCAN_BITS, target.vector_bits) // dtype.bits)
        return _Vectors(self, form, rest, value, register, lanes, way < 0).statements()


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The vectors of a recurrence; `back`: of lanes that go against the order of iterations."""

    of: _Carry
    form: Recurrence
    rest: For
    value: Expr
    register: str
    lanes: int
    back: bool

    @property
    def dtype(self) -> DType:
        return self.of.buffer.dtype

    def name(self, kind: str) -> str:
        return f"{self.of.buffer.name}.{kind}"

    def read(self, kind: str, at: Expr = _ZERO) -> Expr:
        return Read(self.name(kind), (at,), self.dtype)

    def call(self, name: str, *arguments: Expr) -> Expr:
        kind = DType.BOOL if name == SOUND else self.dtype
        return Call(name + (BACK if self.back else ""), arguments, kind)

    @property
    def needs_a_look(self) -> bool:
        """Whether products of factors, or sums of shifts, may leave what numbers can be, though no value does."""
        factor = self.form.factor
        if self.form.shift is not None:
            return True
        if factor is None or self.form.starts_anew or not self.dtype.is_float:
            return False
        if not isinstance(factor, Const):
            return True
        size = abs(factor.value)
        return size > 1 or size**self.lanes < SMALLEST[self.dtype.bits]

    def statements(self) -> tuple[Stmt, ...] | None:
        rest, lanes = self.rest, int64(self.lanes)
        outer, inner = f"{rest.var}.o", f"{rest.var}.l"
        start = plus(rest.min, times(IndexVar(outer), lanes))
        last = Binary("-", int64(self.lanes - 1), IndexVar(inner), DType.INT64)
        position = plus(start, last if self.back else IndexVar(inner))
        body = mapped_block(self.one_vector(IndexVar(inner)), lambda expr: substitute(expr, {rest.var: position}))
        vector = For(inner, _ZERO, lanes, body, "vectorize", rest.axis)
        if not has_free_lanes(vector) or (self.of.ahead and self.needs_a_look):
            return None  # to do it again would find what was replaced
        register = Read(self.register, (_ZERO,), self.dtype)
        fill = replace(vector, body=Block((Store(self.name("carry"), (IndexVar(inner),), register),)))
        take = Store(self.register, (_ZERO,), self.read("carry"))
        each: tuple[Stmt, ...] = (vector,)
        if self.needs_a_look:
            one_by_one = self.of.one_by_one(replace(rest, min=start, extent=lanes), self.value, [self.register])
            sound = Read(self.name("sound"), (_ZERO,), DType.BOOL)
            again = If(Unary("!", sound, DType.BOOL), Block((one_by_one, fill)))
            inside = Block((take, vector, again))
            each = (Allocate(Buffer(self.name("sound"), DType.BOOL, (_ONE,), "local"), inside),)
        count = Binary("//", rest.extent, lanes, DType.INT64)
        vectors = For(outer, _ZERO, count, Block(each), "serial", rest.axis)
        done = times(count, lanes)
        left = replace(rest, min=plus(rest.min, done), extent=Binary("-", rest.extent, done, DType.INT64))
        carry = Buffer(self.name("carry"), self.dtype, (lanes,), "register")
        return Allocate(carry, Block((fill, vectors, take))), self.of.one_by_one(left, self.value, [self.register])

    def one_vector(self, lane: Expr) -> Block:
        """What each lane does."""
        form, dtype, carry = self.form, self.dtype, self.read("carry", lane)
        sums, by = self.read("prefix"), self.read("by")
        if form.factor is not None:
            op, step, kind = "*", form.factor, ANEW if form.starts_anew else LINEAR
        elif form.shift is not None:
            op, step, kind = "+", form.shift, form.operator
        else:
            op, step, kind = "", None, form.operator
        values = (form.x,) if step is None else (form.x, step)
        made = [Store(self.name("prefix"), (_ZERO,), self.call(PREFIX + kind, *values))]
        taken, after = carry, carry
        if step is not None:
            made.append(Store(self.name("by"), (_ZERO,), self.call(PREFIX + op, step)))
            taken, after = (self.moved(op, each, carry) for each in (by, self.call(LAST, by)))
            if self.needs_a_look:
                asked = (step,) if op == "*" else (by if dtype.is_float else step, form.x, carry)
                made.append(Store(self.name("sound"), (_ZERO,), self.call(SOUND, *asked)))
        written = replace(self.of.store, value=Binary(form.operator, taken, sums, dtype), streaming=False)
        total = Store(self.name("carry"), (lane,), Binary(form.operator, after, self.call(LAST, sums), dtype))
        block = Block((*made, written, total))
        for kind in ("prefix", *(() if step is None else ("by",))):
            block = Block((Allocate(Buffer(self.name(kind), dtype, (_ONE,), "local"), block),))
        return block

    def moved(self, op: str, by: Expr, carry: Expr) -> Expr:
        """What was carried, times a factor or plus a shift."""
        if not self.form.starts_anew:
            return Binary(op, by, carry, self.dtype)
        zero = Const(0.0 if self.dtype.is_float else 0, self.dtype)
        return Select(Binary("==", by, zero, DType.BOOL), nothing(self.dtype), carry, self.dtype)


def _distance(store: Store, read: Read, var: str) -> int | None:
    """How many iterations back an element was made that is read; less than 0: a later one replaces it; 0: it is not made in this
    loop; `None`: it is not known.
    """
    apart = [from_expr(here) - from_expr(there) for here, there in zip(store.indices, read.indices, strict=True)]
    if not all(e.is_constant for e in apart):
        return None
    moving = [(place, step(polynomial(store.indices[place]), var)) for place in range(len(apart))]
    still = [place for place, (change, linear) in moving if change == 0 and linear]
    if any(apart[place].offset for place in still):
        return 0
    steps = {
        apart[place].offset // change if change and apart[place].offset % change == 0 else None
        for place, (change, linear) in moving
        if place not in still and linear
    }
    distance = steps.pop() if len(steps) == 1 and all(linear for _, (_, linear) in moving) else None
    return distance or None


def _decided(test: Binary, around: _Around) -> Expr | None:
    """A condition that is the same in all iterations."""
    if test.op in ("&&", "||"):
        sides = (test.left, test.right)
        for side, other in (sides, sides[::-1]):
            if isinstance(side, Const):
                return other if bool(side.value) == (test.op == "&&") else side
        return None
    if test.op not in COMPARISONS or test.left.dtype is not DType.INT64 or has_read(test):
        return None
    e = from_expr(test.left, Scope()) - from_expr(test.right, Scope())
    holds: dict[str, tuple[list[SizeExpr], list[SizeExpr]]] = {
        "<": ([-e - 1], [e]),
        "<=": ([-e], [e - 1]),
        ">": ([e - 1], [-e]),
        ">=": ([e], [-e - 1]),
    }
    if test.op in holds:
        yes, no = holds[test.op]
        if around.always(yes[0]):
            return Const(True, DType.BOOL)
        return Const(False, DType.BOOL) if around.always(no[0]) else None
    apart = around.always(e - 1) or around.always(-e - 1)
    return Const(test.op == "!=", DType.BOOL) if apart else None


__all__ = ["carried"]
