"""Loops whose points have an order: what the next iterations need stays in registers, and running operations have vectors.

* `parts`: a serial loop around everything is cut into parts of some milliseconds, which are tasks that one thread does in order.
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

from tc_jupyter.loops import Allocate, Block, Buffer, For, If, Kernel, Stmt, Store, walk_statements
from tc_jupyter.loops.rewrite import mapped_block, substitute, with_blocks, with_body
from tc_jupyter.program import (
    COMPARISONS,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    int64,
    rewrite,
    walk,
)
from tc_jupyter.program.integers import ceil_div, has_read, index_names, maximum, minimum, plus, times
from tc_jupyter.ranges import Scope, SizeExpr, from_expr, interval, nonnegative
from tc_jupyter.schedule import Target
from tc_jupyter.schedule.padding import parts_of

from .free_lanes import has_free_lanes
from .polynomial import constant_value, polynomial, step
from .prefixes import LAST, PREFIX
from .prepare import PARTS, Lanes, work_of

PART = 4_000_000
"""Operations of a part of a serial loop: 2 to 20 milliseconds."""
MOST_CARRIED = 4
"""Iterations back that are kept in registers."""
WIDEST = 256
"""Bits of the vectors of a running operation: the steps of wider ones are more, and halves of them are done side by side anyway."""
RUNNING = ("+", "*", "min", "max")

_ZERO, _ONE = int64(0), int64(1)


# --- parts -----------------------------------------------------------------------------------------------------------


def parts(kernel: Kernel, lanes: Lanes) -> Kernel:
    """Cut the loop around everything of a kernel with an order into parts, if it is serial."""
    loop = _outermost(kernel.body)
    if loop is not None and kernel.ordered:
        kernel, loop = _over_sizes(kernel, loop)
    if not kernel.ordered or loop is None or any(map(_is_local, (loop.min, loop.extent))):
        return kernel
    own = {each.buffer.name: each.buffer.scope for each in walk_statements(loop.body) if isinstance(each, Allocate)}
    work = maximum(_ONE, work_of(loop.body, {}, lanes, own)) if constant_value(loop.min) == 0 else _ONE
    if index_names(work):
        work = _ONE
    length = maximum(_ONE, Binary("//", int64(PART), work, DType.INT64))
    known = constant_value(length)
    length = length if known is None else int64(known)
    var = f"{loop.var}.part"
    start = times(IndexVar(var), length)
    rest = Binary("-", loop.extent, start, DType.INT64)
    inner = replace(loop, min=plus(loop.min, start), extent=minimum(length, rest))
    outer = For(var, _ZERO, ceil_div(maximum(_ZERO, loop.extent), length), Block((inner,)), "parallel", PARTS, chunk=1)
    return replace(kernel, body=with_body(kernel.body, (outer,)))


def _over_sizes(kernel: Kernel, loop: For) -> tuple[Kernel, For]:
    """The loop with integer scalars in its ends as sizes, of which the number of tasks is made."""
    scalars = {name for name, dtype in kernel.scalars if dtype.is_integer}
    found: dict[str, None] = {}

    def rule(node: Expr) -> Expr | None:
        if isinstance(node, Read) and not node.indices and node.tensor in scalars:
            found[node.tensor] = None
            return Size(node.tensor)
        return node.operand if isinstance(node, Cast) and isinstance(node.operand, Size) else None

    loop = replace(loop, min=rewrite(loop.min, rule), extent=rewrite(loop.extent, rule))
    return replace(kernel, sizes=tuple(dict.fromkeys((*kernel.sizes, *found)))), loop


def _outermost(block: Block) -> For | None:
    """The serial loop that is all of a block."""
    while len(block.body) == 1 and isinstance(block.body[0], Block):
        block = block.body[0]
    stmt = block.body[0] if len(block.body) == 1 else None
    return stmt if isinstance(stmt, For) and stmt.kind == "serial" else None


def _is_local(expr: Expr) -> bool:
    return bool(index_names(expr)) or has_read(expr)


# --- registers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Around:
    """The loops around a place: the first value of their variables, and upper bounds of the last one."""

    loops: Mapping[str, tuple[SizeExpr, tuple[SizeExpr, ...]]]

    def inside(self, loop: For) -> _Around:
        """Inside one more loop."""
        first = from_expr(loop.min)
        ends = tuple(first + extent - 1 for extent in parts_of(from_expr(loop.extent)))
        return _Around({**self.loops, loop.var: (first, ends)})

    def always(self, e: SizeExpr) -> bool:
        """Whether `e >= 0` in all iterations."""
        name = next((name for name in reversed(tuple(self.loops)) if name in e.indices), None)
        if name is None:
            return not e.indices and nonnegative(e)
        first, ends = self.loops[name]
        lowest = (interval(e, {name: (first, end)}).lower for end in ends)
        return any(low is not None and name not in low.indices and self.always(low) for low in lowest)


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
    """

    loop: For
    store: Store
    buffer: Buffer
    distances: Mapping[Read, int]
    around: _Around

    @classmethod
    def of(cls, loop: For, buffers: Mapping[str, Buffer], around: _Around) -> _Carry | None:
        """What a loop carries; `None` where it carries nothing, or what it reads is not known."""
        store = _only_store(loop.body)
        if store is None or store.buffer not in buffers or any(map(has_read, (*store.indices, loop.min, loop.extent))):
            return None
        found: dict[Read, int] = {}
        for read in (node for node in walk(store.value) if isinstance(node, Read) and node.tensor == store.buffer):
            distance = _distance(store, read, loop.var)
            if distance is None:
                return None
            if distance > 0:
                found[read] = distance
        if not found or max(found.values()) > MOST_CARRIED:
            return None
        return cls(loop, store, buffers[store.buffer], found, around)

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
        value = self.value(rest, registers)
        running = self.running(rest, value, registers[0], target) if far == 1 else None
        body = Block((*fill, *(running or (self.one_by_one(rest, value, registers),))))
        more = If(Binary(">", loop.extent, int64(far), DType.BOOL), body)
        result = Block((head, more))
        for name in registers:
            result = Block((Allocate(Buffer(name, self.buffer.dtype, (_ONE,), "local"), result),))
        return result

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
        """Vectors of a running operation, and what is left at the end; `None` for any other value."""
        dtype = self.buffer.dtype
        other = _other_operand(value, register)
        along_row = step(polynomial(self.store.indices[-1]), rest.var) == (1, True)
        if other is None or dtype.bits < 32 or dtype is not dtype.compute or not along_row:
            return None
        operation, x = other
        lanes = max(2, min(WIDEST, target.vector_bits) // dtype.bits)
        outer, inner, carry = f"{rest.var}.o", f"{rest.var}.l", f"{self.buffer.name}.carry"
        lane, register_at = IndexVar(inner), Read(register, (_ZERO,), dtype)
        position = plus(rest.min, plus(times(IndexVar(outer), int64(lanes)), lane))
        sums = f"{self.buffer.name}.prefix"
        kept, so_far = Read(carry, (lane,), dtype), Read(sums, (_ZERO,), dtype)
        inside = Store(sums, (_ZERO,), Call(PREFIX + operation, (x,), dtype))
        written = replace(self.store, value=Binary(operation, kept, so_far, dtype), streaming=False)
        total = Store(carry, (lane,), Binary(operation, kept, Call(LAST, (so_far,), dtype), dtype))
        steps = Allocate(Buffer(sums, dtype, (_ONE,), "local"), Block((inside, written, total)))
        body = mapped_block(Block((steps,)), lambda expr: substitute(expr, {rest.var: position}))
        vector = For(inner, _ZERO, int64(lanes), body, "vectorize", rest.axis)
        if not has_free_lanes(vector):
            return None
        fill = replace(vector, body=Block((Store(carry, (lane,), register_at),)))
        count = Binary("//", rest.extent, int64(lanes), DType.INT64)
        done = times(count, int64(lanes))
        vectors = For(outer, _ZERO, count, Block((vector,)), "serial", rest.axis)
        take = Store(register, (_ZERO,), Read(carry, (_ZERO,), dtype))
        left = replace(rest, min=plus(rest.min, done), extent=Binary("-", rest.extent, done, DType.INT64))
        in_vectors = Allocate(Buffer(carry, dtype, (int64(lanes),), "register"), Block((fill, vectors, take)))
        return in_vectors, self.one_by_one(left, value, [register])


def _distance(store: Store, read: Read, var: str) -> int | None:
    """How many iterations back an element was made that is read; 0: not in this loop; `None`: it is not known."""
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
    return None if distance is None or distance < 1 else distance


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


def _other_operand(value: Expr, register: str) -> tuple[str, Expr] | None:
    """The operation and `x` of `carry + x`, where `x` carries nothing."""
    if not isinstance(value, Binary) or value.op not in RUNNING:
        return None
    for kept, x in ((value.left, value.right), (value.right, value.left)):
        mine = isinstance(kept, Read) and kept.tensor == register
        if mine and not any(isinstance(node, Read) and node.tensor == register for node in walk(x)):
            return value.op, x
    return None


__all__ = ["carried", "parts"]
