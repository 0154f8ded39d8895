"""Which accesses of a kernel leave a dimension of their tensor, though perhaps not its memory.

Comes in: a kernel, the sizes of a call, the arrays as they are before it runs. Goes out: one finding per line, tensor and
dimension. All points of the loops are walked at once, in pieces, and of every expression only conditions and subscripts are
computed. Where one needs an element that the kernel itself computes, the loop interpreter runs the kernel instead, on copies.

Worked example: of `O[t] = T[t, Id[t]]` with a `T` of 4 x 5 and `Id = [0, 5, 1, -1]` the read `T[1, 5]` is element `T[2, 0]` in
memory; the finding says: index 5 in dimension 1 of `T`, which has 0 to 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import assert_never

import numpy as np

from tc_jupyter.diagnostics import NO_SPAN, SourceText
from tc_jupyter.loops import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    Check,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    expand,
    expressions,
    sub_blocks,
    walk_statements,
)
from tc_jupyter.loops.interpret import OutOfBounds, interpret
from tc_jupyter.program import (
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
    Unary,
    bits,
    children,
    walk,
)
from tc_jupyter.runtime.arrays import NDArray
from tc_jupyter.schedule import GRID_AXES, THREAD_AXES
from tc_jupyter.simulator import Finding

PIECE = 1 << 16
"""Points that are walked at a time."""

LIMIT = 1 << 24
"""Points of a loop over blocks, with the loops inside, beyond which only some iterations are walked, the last one among them."""

INTERPRETED = 1 << 16
"""Points up to which the interpreter walks a kernel whose conditions or subscripts need what it computes."""


Span = tuple[NDArray, NDArray]
"""Least and largest value."""

Values = NDArray | None
"""One value per point; `None` where they are not known before the kernel runs."""


def accesses_outside(
    kernel: Kernel,
    sizes: Mapping[str, int],
    scalars: Mapping[str, int | float | bool],
    arrays: Mapping[str, NDArray],
    source: SourceText,
) -> tuple[Finding, ...]:
    """The accesses that leave a dimension.

    Args:
        arrays: of the kernel's buffers, as they are before it runs.
        source: the cell.
    """
    kernel = expand(kernel)
    written = {stmt.buffer for stmt in walk_statements(kernel.body) if isinstance(stmt, Store)}
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    known = {name: array for name, array in arrays.items() if name in buffers and name not in written}
    walk = _Walk(source, {**sizes}, {**scalars}, known, buffers)
    walk.block(kernel.body, _Points({}, 1, True))
    if walk.open and walk.visited <= INTERPRETED and not walk.found:
        walk.interpreted(kernel, arrays)
    return tuple(replace(found, message=found.message + _times(count)) for found, count in walk.found.values())


def _times(count: int) -> str:
    return f" ({count} accesses)" if count > 1 else ""


@dataclass(frozen=True, slots=True)
class _Points:
    """Points of the loops so far: the values of each variable.

    Attributes:
        sure: whether all of them are reached; else a condition that is not known decides.
    """

    values: Mapping[str, NDArray]
    count: int
    sure: bool

    def some(self, chosen: NDArray) -> _Points:
        """The points at positions, or where a mask is true."""
        values = {name: each[chosen] for name, each in self.values.items()}
        count = int(np.count_nonzero(chosen)) if chosen.dtype == np.bool_ else int(chosen.size)
        return _Points(values, count, self.sure)

    def of(self, names: frozenset[str]) -> _Points:
        """The different points if only some variables matter."""
        kept = [name for name in self.values if name in names]
        if len(kept) == len(self.values) or self.count < 2:
            return self
        if not kept:
            return _Points({}, 1, self.sure)
        rows = np.unique(np.stack([self.values[name] for name in kept], axis=1), axis=0)
        return _Points({name: rows[:, k] for k, name in enumerate(kept)}, len(rows), self.sure)

    def doubtful(self) -> _Points:
        return replace(self, sure=False)


@dataclass(slots=True)
class _Walk:
    """What is known, and what was found: per line, tensor and dimension a finding with the number of accesses."""

    source: SourceText
    sizes: dict[str, int]
    scalars: dict[str, int | float | bool]
    known: dict[str, NDArray]
    buffers: dict[str, Buffer]
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    found: dict[tuple[int | None, str, int], tuple[Finding, int]] = field(
        default_factory=dict[tuple[int | None, str, int], tuple[Finding, int]]
    )
    visited: int = 0
    open: bool = False
    stmt: Store | None = None

    # --- statements

    def block(self, block: Block, points: _Points) -> None:
        for stmt in block.body:
            if points.count:
                self.statement(stmt, points)

    def statement(self, stmt: Stmt, points: _Points) -> None:
        match stmt:
            case For():
                self.loop(stmt, points)
            case If():
                self.branches(stmt, points)
            case Check():
                test = self.value(stmt.condition, points)
                self.block(stmt.body, points.doubtful() if test is None else points.some(test != 0))
            case Store():
                self.stmt, self.visited = stmt, self.visited + points.count
                self.visit(stmt.value, points)
                self.access(stmt.buffer, stmt.indices, points, "is written")
            case Allocate():
                before = self.buffers.get(stmt.buffer.name)
                self.buffers[stmt.buffer.name] = stmt.buffer
                self.block(stmt.body, points)
                if before is not None:
                    self.buffers[stmt.buffer.name] = before
            case Block():
                self.block(stmt, points)
            case Barrier() | Intrinsic():
                pass
            case _:
                assert_never(stmt)

    def branches(self, stmt: If, points: _Points) -> None:
        test = self.value(stmt.condition, points)
        then = points.doubtful() if test is None else points.some(test != 0)
        self.block(stmt.then, then)
        if stmt.otherwise is not None:
            self.block(stmt.otherwise, points.doubtful() if test is None else points.some(test == 0))

    def loop(self, loop: For, points: _Points) -> None:
        # threads that fill shared memory together do so inside loops over the same threads
        points = points.of(_variables_of(loop))
        low, extent = self.value(loop.min, points), self.value(loop.extent, points)
        if low is None or extent is None:
            self.open = True
            return
        if self.is_inside(Block((loop,)), {name: (each, each) for name, each in points.values.items()}):
            return
        self.kinds[loop.var] = loop.kind
        lengths = np.maximum(extent, 0)
        ends = np.cumsum(lengths)
        total, inside = int(ends[-1]) if ends.size else 0, max(1, self.inner(loop.body))
        few = max(2, LIMIT // inside) if loop.kind in GRID_AXES else total
        walked = min(total, few)
        cuts = [*range(0, walked, PIECE), walked]
        for first, last in pairwise(cuts):
            number = np.arange(first, last, dtype=np.int64)
            if walked < total:  # evenly, with both ends
                number = number * (total - 1) // (walked - 1)
            point = np.searchsorted(ends, number, side="right")
            place = number - (ends[point] - lengths[point])
            here = points.some(point)
            values = {**here.values, loop.var: low[point] + place}
            self.block(loop.body, replace(here, values=values))

    # --- what needs no walk

    def is_inside(self, block: Block, spans: Mapping[str, Span], local: Mapping[str, Buffer] | None = None) -> bool:
        """Whether intervals of the loop variables alone show that every subscript in a block is inside, conditions or not."""
        own = dict(local or {})
        for stmt in block.body:
            if isinstance(stmt, Allocate):
                own[stmt.buffer.name] = stmt.buffer
            inner = spans
            if isinstance(stmt, For):
                low, extent = self.span(stmt.min, spans), self.span(stmt.extent, spans)
                if low is None or extent is None:
                    return False
                inner = {**spans, stmt.var: (low[0], low[1] + np.maximum(extent[1] - 1, 0))}
            reads = [
                node for expr in expressions(stmt) for node in walk(expr) if isinstance(node, Read) and node.indices
            ]
            places = [(read.tensor, read.indices) for read in reads]
            if isinstance(stmt, Store):
                places.append((stmt.buffer, stmt.indices))
            if not all(self.is_element(name, indices, inner, own) for name, indices in places):
                return False
            if not all(self.is_inside(each, inner, own) for each in sub_blocks(stmt)):
                return False
        return True

    def is_element(
        self, tensor: str, indices: tuple[Expr, ...], spans: Mapping[str, Span], local: Mapping[str, Buffer]
    ) -> bool:
        buffer = local.get(tensor) or self.buffers.get(tensor)
        if buffer is None:
            return False
        for index, extent in zip(indices, buffer.shape, strict=True):
            place, length = self.span(index, spans), self.span(extent, spans)
            if place is None or length is None or (place[0] < 0).any() or (place[1] >= length[0]).any():
                return False
        return True

    def span(self, expr: Expr, spans: Mapping[str, Span]) -> Span | None:
        """Least and largest values of an integer expression, per point."""
        match expr:
            case Const():
                return np.asarray(expr.value), np.asarray(expr.value)
            case Size():
                return np.asarray(self.sizes[expr.name]), np.asarray(self.sizes[expr.name])
            case IndexVar():
                return spans.get(expr.name)
            case Binary():
                left, right = self.span(expr.left, spans), self.span(expr.right, spans)
                return None if left is None or right is None else _span(expr.op, left, right)
            case _:
                return None

    def inner(self, block: Block) -> int:
        """About how many points the loops of a block have, where their lengths are known without the loops around them."""
        total = 0
        for stmt in block.body:
            match stmt:
                case For():
                    length = self.value(stmt.extent, _Points({}, 1, True)) if not _has_variables(stmt.extent) else None
                    total += max(1, 16 if length is None else int(length[0])) * max(1, self.inner(stmt.body))
                case If() | Allocate() | Check() | Block():
                    blocks = (stmt,) if isinstance(stmt, Block) else _blocks(stmt)
                    total += sum(self.inner(each) for each in blocks)
                case _:
                    total += 1
        return total

    # --- accesses

    def access(self, tensor: str, indices: tuple[Expr, ...], points: _Points, verb: str) -> tuple[list[Values], Values]:
        """Check subscripts; returns them, and at which points all are inside (`None` if not known)."""
        places = [self.value(index, points) for index in indices]
        buffer = self.buffers.get(tensor)
        inside: Values = np.ones(points.count, np.bool_)
        if buffer is None:
            return places, inside
        for dimension, (place, extent) in enumerate(zip(places, buffer.shape, strict=True)):
            length = self.value(extent, points)
            if place is None or length is None:
                self.open, inside = True, None
                continue
            wrong = (place < 0) | (place >= length)
            if inside is not None:
                inside = inside & ~wrong
            if not wrong.any():
                continue
            if points.sure:
                self.report(buffer, dimension, places, length, wrong, points, verb)
            else:
                self.open = True
        return places, inside

    def report(
        self,
        buffer: Buffer,
        dimension: int,
        places: list[Values],
        length: NDArray,
        wrong: NDArray,
        points: _Points,
        verb: str,
    ) -> None:
        assert self.stmt is not None
        first = int(np.flatnonzero(wrong)[0])
        element = ", ".join("?" if place is None else str(int(place[first])) for place in places)
        place = places[dimension]
        assert place is not None
        size = int(length[first])
        has = f"which has 0 to {size - 1}" if size else "which is empty"
        message = f"`{buffer.name}({element})` {verb}: index {int(place[first])} in dimension {dimension} of `{buffer.name}`, {has}"
        self.add(message, buffer.name, dimension, int(np.count_nonzero(wrong)), points, first)

    def add(self, message: str, tensor: str, dimension: int, count: int, points: _Points, first: int) -> None:
        key = (self.line(), tensor, dimension)
        finding, before = self.found.get(key, (None, 0))
        if finding is None:
            thread, block = self.position(THREAD_AXES, points, first), self.position(GRID_AXES, points, first)
            finding = Finding("out-of-bounds", message, self.line(), thread, block, tensor)
        self.found[key] = finding, before + count

    def line(self) -> int | None:
        """The line of the present statement in the cell, from 1."""
        if self.stmt is None or self.stmt.span == NO_SPAN:
            return None
        return self.source.position(self.stmt.span.start)[0] + 1

    def position(self, axes: tuple[str, ...], points: _Points, number: int) -> tuple[int, int, int]:
        """Thread or block of a point: the iterations of the loops along its axes."""
        here = dict.fromkeys(axes, 0)
        for name, values in points.values.items():
            if self.kinds.get(name) in here:
                here[self.kinds[name]] = int(values[number])
        x, y, z = here.values()
        return x, y, z

    # --- expressions

    def visit(self, expr: Expr, points: _Points) -> None:
        """Check the reads of an expression whose value does not matter."""
        if not points.count:
            return
        match expr:
            case Read():
                if expr.indices:
                    self.access(expr.tensor, expr.indices, points, "is read")
            case Select():
                test = self.value(expr.condition, points)
                self.visit(expr.then, points.doubtful() if test is None else points.some(test != 0))
                self.visit(expr.otherwise, points.doubtful() if test is None else points.some(test == 0))
            case Binary(op="&&" | "||"):
                test = self.value(expr.left, points)
                self.visit(
                    expr.right, points.doubtful() if test is None else points.some((test != 0) == (expr.op == "&&"))
                )
            case _:
                for child in children(expr):
                    self.visit(child, points)

    def value(self, expr: Expr, points: _Points) -> Values:
        """The values of an expression, whose reads are checked on the way."""
        match expr:
            case Const():
                return np.full(points.count, expr.value, _numpy(expr.dtype))
            case Size():
                return np.full(points.count, self.sizes[expr.name], np.int64)
            case IndexVar():
                return points.values[expr.name]
            case Read():
                return self.element(expr, points)
            case Unary():
                operand = self.value(expr.operand, points)
                if operand is None:
                    return None
                return ~(operand != 0) if expr.op == "!" else -operand
            case Binary(op="&&" | "||"):
                return self.decided(expr, points)
            case Binary():
                left, right = self.value(expr.left, points), self.value(expr.right, points)
                return None if left is None or right is None else _OPERATORS[expr.op](left, right)
            case Select():
                return self.chosen(expr, points)
            case Cast():
                operand = self.value(expr.operand, points)
                return None if operand is None else _converted(operand, expr.dtype)
            case Call():
                return _called(expr, [self.value(each, points) for each in expr.arguments])
        assert_never(expr)

    def element(self, read: Read, points: _Points) -> Values:
        if not read.indices:
            if read.tensor in self.scalars:
                return np.full(points.count, self.scalars[read.tensor], _numpy(read.dtype))
            return None
        places, inside = self.access(read.tensor, read.indices, points, "is read")
        array = self.known.get(read.tensor)
        if array is None or inside is None or not array.size:
            return None
        at = tuple(np.where(inside, place, 0) for place in places if place is not None)
        return array[at] if read.dtype is not DType.BFLOAT16 else (array[at].astype(np.uint32) << 16).view(np.float32)

    def decided(self, expr: Binary, points: _Points) -> Values:
        """`&&` and `||`: the right side is looked at only where the left one does not decide."""
        left, both = self.value(expr.left, points), expr.op == "&&"
        if left is None:
            self.value(expr.right, points.doubtful())
            return None
        result = left != 0
        rest = np.flatnonzero(result == both)
        right = self.value(expr.right, points.some(rest))
        if right is None:
            return None if rest.size else result
        result = result.copy()
        result[rest] = right != 0
        return result

    def chosen(self, expr: Select, points: _Points) -> Values:
        test = self.value(expr.condition, points)
        if test is None:
            self.value(expr.then, points.doubtful())
            self.value(expr.otherwise, points.doubtful())
            return None
        result = np.zeros(points.count, _numpy(expr.dtype))
        known, sides = True, (np.flatnonzero(test != 0), np.flatnonzero(test == 0))
        for branch, places in zip((expr.then, expr.otherwise), sides, strict=True):
            found = self.value(branch, points.some(places))
            if found is None and places.size:
                known = False
            elif found is not None:
                result[places] = found
        return result if known else None

    # --- the interpreter

    def interpreted(self, kernel: Kernel, arrays: Mapping[str, NDArray]) -> None:
        """Walk a kernel point by point, on copies."""
        copies = {buffer.name: arrays[buffer.name].copy() for buffer in kernel.buffers}
        try:
            interpret(kernel, copies, self.sizes, self.scalars)
        except OutOfBounds as error:
            self.stmt = None
            self.add(f"`{kernel.name}` leaves a dimension: {error}", "", 0, 1, _Points({}, 1, True), 0)


def _span(op: str, left: Span, right: Span) -> Span | None:
    (a, b), (c, d) = left, right
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            ends = (a * c, a * d, b * c, b * d)
            return reduce(np.minimum, ends), reduce(np.maximum, ends)
        case "min":
            return np.minimum(a, c), np.minimum(b, d)
        case "max":
            return np.maximum(a, c), np.maximum(b, d)
        case "//" if (c > 0).all() and (c == d).all():
            return a // c, b // c
        case "%" if (c > 0).all() and (c == d).all():
            same = a // c == b // c
            return np.where(same, a % c, 0), np.where(same, b % c, c - 1)
        case _:
            return None


def _blocks(stmt: If | Allocate | Check) -> tuple[Block, ...]:
    if isinstance(stmt, If):
        return (stmt.then,) if stmt.otherwise is None else (stmt.then, stmt.otherwise)
    return (stmt.body,)


def _variables_of(loop: For) -> frozenset[str]:
    """The loop variables that a loop, or something inside, names."""
    inside = Block((loop,))
    exprs = [expr for stmt in walk_statements(inside) for expr in expressions(stmt)]
    shapes = [each for stmt in walk_statements(inside) if isinstance(stmt, Allocate) for each in stmt.buffer.shape]
    return frozenset(node.name for expr in (*exprs, *shapes) for node in walk(expr) if isinstance(node, IndexVar))


def _has_variables(expr: Expr) -> bool:
    return isinstance(expr, IndexVar | Read) or any(map(_has_variables, children(expr)))


def _numpy(dtype: DType) -> np.dtype[np.generic]:
    return np.dtype(np.float32 if dtype is DType.BFLOAT16 else dtype.value)


def _converted(values: NDArray, dtype: DType) -> NDArray:
    if dtype is DType.BOOL:
        return values != 0
    with np.errstate(all="ignore"):
        return values.astype(_numpy(dtype))


def _divided(left: NDArray, right: NDArray) -> NDArray:
    """Integers round down, and over 0 are 0."""
    safe = np.where(right == 0, np.ones_like(right), right)
    return np.where(right == 0, np.zeros_like(left), left // safe)


def _rest(left: NDArray, right: NDArray) -> NDArray:
    safe = np.where(right == 0, np.ones_like(right), right)
    return np.where(right == 0, np.zeros_like(left), left % safe)


def _called(call: Call, arguments: list[Values]) -> Values:
    """Functions that occur in subscripts; of others the value is not known."""
    known = [each for each in arguments if each is not None]
    if len(known) < len(arguments):
        return None
    match call.function:
        case "abs" | "fabs":
            return np.abs(known[0])
        case "sign":
            return np.sign(known[0])
        case "popcount":
            return bits.counts(known[0])
        case name if name in bits.OPERATORS:
            return bits.on_arrays(name, *known)
        case "min" | "max":
            return reduce(np.minimum if call.function == "min" else np.maximum, known)
        case _:
            return None


_OPERATORS = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": _divided, "%": _rest, "min": np.minimum,
    "max": np.maximum, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
    "!=": np.not_equal,
}  # fmt: skip


__all__ = ["accesses_outside"]
