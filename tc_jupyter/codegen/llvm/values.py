"""Expressions -> operands, scalars or vectors.

Comes in: an `Expr`. Goes out: a `Value`. Inside a vectorised loop an expression that moves with its variable has as many lanes as
the loop has iterations, every other expression stays a scalar. Integer expressions without reads are printed in the outermost loop
that knows their variables, once. A choice between lanes is a mask, a choice of scalars a jump if a side of it reads.

Worked example: of `2*i + j` in `for i` around 16 lanes of `j`, `2*i` is a scalar that the loop over `i` computes, and
the sum is a vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import assert_never

from tc_jupyter.loops import is_cheap
from tc_jupyter.loops.rewrite import substitute
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
    Unary,
    children,
    int64,
    on_data,
    walk,
)
from tc_jupyter.program.integers import all_of, conjunction, has_read, maximum, minimum, plus, reads_elements
from tc_jupyter.schedule import tuning

from . import arith
from .builder import Value, constant, index, numbers, register_type
from .counters import Counters
from .division import divide, has_reciprocal
from .limits import largest
from .pieces import reduced
from .polynomial import Polynomial, add, as_expr, constant_value, moves, polynomial, scaled, step, without
from .prefixes import LAST, PREFIX, SOUND, Across
from .transpose import plain_reads
from .vector_math import emit_call, emit_power, float_remainder

MOST_WEIGHT = 1 << 31
"""Up to so large constants and factors of sizes and indices, a comparison is one of their difference, which does not overflow."""
MOST_FACTOR = 1 << 16
"""Up to so large factors of elements of 32 bits, likewise."""


def _is_narrow(expr: Expr) -> bool:
    """Whether a sum of positions, and of elements of 32 bits times small numbers, does not overflow."""
    match expr:
        case Read(indices=indices):
            return not indices
        case Cast(operand=operand) if operand.dtype.is_integer and operand.dtype.bits <= 32:
            return True
        case Binary(op="*", left=left, right=right) if has_read(expr):
            factors = [constant_value(side) for side in (left, right)]
            small = any(factor is not None and abs(factor) < MOST_FACTOR for factor in factors)
            return small and _is_narrow(left) and _is_narrow(right)
        case _:
            return all(_is_narrow(child) for child in children(expr))


def reads_by_elements(expr: Expr) -> bool:
    """Whether elements say what is read."""
    return any(isinstance(node, Read) and any(map(reads_elements, node.indices)) for node in walk(expr))


def _number(expr: Expr) -> float | None:
    """What a float is that no size, element or loop decides, as `-2.0` is, and `float(k)` in a loop that is written out."""
    match expr:
        case Const(value=value):
            return float(value)
        case Cast(operand=Const(value=value), dtype=dtype) if dtype.is_float and abs(value) <= tuning.EXPONENT:
            return float(value)
        case Unary(op="-", operand=operand):
            number = _number(operand)
            return None if number is None else -number
        case _:
            return None


class Values(Counters, ABC):
    """Prints expressions."""

    @abstractmethod
    def load(self, read: Read) -> Value:
        """Read an element (`loads.py`)."""

    def varies(self, expr: Expr) -> bool:
        """Whether the value differs between the lanes of the vectorised loop."""
        if self.vector is None:
            return False
        for node in walk(expr):
            if isinstance(node, IndexVar) and node.name == self.vector.var:
                return True
            if isinstance(node, Read) and node.tensor in self.storages and self.storages[node.tensor].lanes > 1:
                return True
        return False

    def offset_varies(self, offset: Polynomial) -> bool:
        """Whether a position differs between lanes."""
        if self.vector is None:
            return False
        var = self.vector.var
        return moves(offset, var) or any(self.varies(f) for product, _ in offset.terms for f in product if has_read(f))

    def lanes_of(self, expr: Expr) -> int:
        """Lanes of the value."""
        return self.vector.lanes if self.vector is not None and self.varies(expr) else 1

    @property
    def vector_lanes(self) -> int:
        """Lanes of the vectorised loop, 1 outside of one."""
        return 1 if self.vector is None else self.vector.lanes

    def value(self, expr: Expr) -> Value:
        """Print the expression, or find its value if it was printed before; constants of unrolled loops are in."""
        match expr:
            case Const():
                return constant(expr.value, expr.dtype)
            case Size() if expr.name in self.sums:
                return self.value(self.sums[expr.name])
            case Size():
                return self.values[expr.name]
            case IndexVar():
                return self.lane_values() if self.vector and expr.name == self.vector.var else self.values[expr.name]
            case Read(indices=()) if expr.tensor in self.scalars:
                return self.scalars[expr.tensor]
            case _:
                pass
        names = self.needs(expr)
        if names is not None:
            level = self.depth(names)
            memo = self.levels[level].memo
            if expr not in memo:
                with self.at(level):
                    memo[expr] = self.node(expr)
            return memo[expr]
        for known in reversed(self.memo):
            if expr in known:
                return known[expr]
        value = self.node(expr)
        self.memo[-1][expr] = value
        return value

    def node(self, expr: Expr) -> Value:
        """Print one node."""
        match expr:
            case Unary(op="!"):
                return arith.invert(self.b, self.value(expr.operand))
            case Unary():
                return arith.negate(self.b, self.value(expr.operand))
            case Binary(op="&&" | "||") if self.may_evaluate_both(expr.left, expr.right):
                operands = arith.same_lanes(self.b, self.value(expr.left), self.value(expr.right))
                return arith.logical(self.b, "and" if expr.op == "&&" else "or", *operands)
            case Binary(op="&&"):
                return self.choose(expr.left, expr.right, Const(False, DType.BOOL))
            case Binary(op="||"):
                return self.choose(expr.left, Const(True, DType.BOOL), expr.right)
            case Binary() if expr.op in COMPARISONS and (lanes := self.lanes_compared(expr)) is not None:
                return lanes
            case Binary(op="//" | "%", dtype=DType.INT64):
                return self.divided(expr)
            case Binary():
                left, right = self.value(expr.left), self.value(expr.right)
                if expr.op == "%" and left.dtype.is_float:
                    return float_remainder(self.b, left, right, self.target)
                if expr.op == "/" and has_reciprocal(left, right, self.target):
                    return divide(self.b, left, right)
                return arith.binary(self.b, expr.op, left, right)
            case Select():
                return self.choose(expr.condition, expr.then, expr.otherwise)
            case Cast():
                return arith.cast(self.b, self.value(expr.operand), expr.dtype, self.f16c)
            case Call() if expr.function.startswith((PREFIX, LAST, SOUND)):
                across = Across(self.b, self.target.features, self.once)
                return across.call(expr.function, [self.value(each) for each in expr.arguments], self.vector_lanes)
            case Call(function="pow", arguments=(base, power)) if (exponent := _number(power)) is not None:
                return emit_power(self.b, self.value(base), exponent, self.target)
            case Call():
                arguments = tuple(self.value(argument) for argument in expr.arguments)
                return emit_call(self.b, expr.function, arguments, expr.dtype, self.target)
            case Read():
                return self.load(expr)
            case Const() | Size() | IndexVar():
                return self.value(expr)
        assert_never(expr)

    def divided(self, expr: Binary) -> Value:
        """A quotient or remainder of positions; what is known of the divisor saves tests, or the division."""
        if expr.op == "%" and isinstance(expr.right, Size) and (once := self.wraps_once(expr)) is not None:
            return once
        lanes = self.divided_lanes(expr) if self.varies(expr) and not has_read(expr.left) else None
        if lanes is not None:
            return arith.cast(self.b, lanes, expr.dtype, self.f16c)
        left, right = self.value(expr.left), self.value(expr.right)
        match expr.right:
            case Size():
                return arith.floor_by(self.b, expr.op, left, right, self.value(maximum(expr.right, int64(1))))
            case Binary(op="max", left=a, right=b) if max(constant_value(a) or 0, constant_value(b) or 0) >= 1:
                return arith.floor_by(self.b, expr.op, left, right, right)
            case _:
                return arith.binary(self.b, expr.op, left, right)

    def wraps_once(self, expr: Binary) -> Value | None:
        """A remainder of a position that is at most one beyond what it is a remainder of, by a comparison; else `None`.

        Worked example: `(j + 1) % N` in `for j in 0:N` is `j + 1 < N ? j + 1 : j + 1 - N`.
        """
        if has_read(expr.left) or self.varies(expr):
            return None
        divisor = polynomial(expr.right)
        total = as_expr(reduced(polynomial(expr.left), expr.right))
        try:
            low, high = (polynomial(largest(total, self.ranges, upper)) for upper in (False, True))
        except (RuntimeError, KeyError):  # it has parts whose ranges are not known
            return None
        beyond = add(high, scaled(divisor, -1))
        if any(product for product, _ in (*low.terms, *beyond.terms)) or low.constant < -1 or beyond.constant > 0:
            return None
        found, size = self.value(total), self.value(expr.right)
        if beyond.constant == 0:
            less = arith.binary(self.b, "-", found, size)
            found = arith.select(self.b, arith.compare(self.b, ">=", found, size), less, found)
        if low.constant < 0:
            # without elements everything is at 0
            more = arith.binary(self.b, "+", found, self.value(maximum(expr.right, int64(1))))
            found = arith.select(self.b, arith.compare(self.b, "<", found, index(0)), more, found)
        return found

    def may_evaluate_both(self, first: Expr, second: Expr) -> bool:
        """Whether the second operand of a condition can be computed whatever the first one is.

        It reads elements at the same places as the first one, in arrays of the same shape, and divides by nothing that could be 0.
        """

        def place(read: Read) -> tuple[object, ...]:
            return self.storages[read.tensor].buffer.shape, read.indices

        known = {place(read) for read in plain_reads(first) if read.tensor in self.storages}
        for node in walk(second):
            match node:
                case Read() if node.tensor in self.storages and place(node) not in known:
                    return False
                case Binary(op="/" | "//" | "%") if not node.dtype.is_float:
                    return False
                case Call():
                    return False
                case _:
                    pass
        return bool(known)

    def lanes_compared(self, expr: Binary) -> Value | None:
        """Which lanes have a position on one side of an end, if neighbours have neighbouring positions."""
        if self.vector is None or expr.left.dtype is not DType.INT64 or not _is_narrow(expr):
            return None
        left, right = polynomial(expr.left), polynomial(expr.right)
        if any(abs(weight) > MOST_WEIGHT for _, weight in (*left.terms, *right.terms)):
            return None
        over, op = add(left, scaled(right, -1)), expr.op
        match step(over, self.vector.var):
            case (1, True):
                pass
            case (-1, True):
                over, op = scaled(over, -1), {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
            case _:
                return self.remainders_compared(expr)
        match op:
            case "<":
                return self.lanes_below(over, 0)
            case "<=":
                return self.lanes_below(over, 1)
            case ">=":
                return arith.invert(self.b, self.lanes_below(over, 0))
            case ">":
                return arith.invert(self.b, self.lanes_below(over, 1))
            case _:
                equal = self.lane_at(over)
                return equal if op == "==" else arith.invert(self.b, equal)

    def remainders_compared(self, expr: Binary) -> Value | None:
        """A comparison of the remainders of neighbours by a number with a number: `j % 3 == 0`."""
        match expr:
            case Binary(left=Binary(op="%") as rests, right=Const(value=limit)):
                rest = self.divided_lanes(rests) if abs(limit) < MOST_WEIGHT else None
                return None if rest is None else arith.compare(self.b, expr.op, rest, constant(limit, rest.dtype))
            case _:
                return None

    def divided_lanes(self, expr: Binary) -> Value | None:
        """Quotients or remainders, by a number, of positions that move evenly from lane to lane; `None` for others.

        Nothing is divided but the first position. What it leaves, and a number for each lane, is less than twice the divisor. The
        lanes of that are narrow.
        """
        assert self.vector is not None
        size = int(expr.right.value) if isinstance(expr.right, Const) else 0
        power = size & (size - 1) == 0
        if not 0 < size <= MOST_WEIGHT // 2 or (power and expr.op == "//"):
            return None
        place, lanes = polynomial(expr.left), self.vector.lanes
        change, linear = step(place, self.vector.var)
        if not change or not linear:
            return None
        first = as_expr(self.first_lane(place))
        quotients, rests = zip(*(divmod(change * lane, size) for lane in range(lanes)), strict=True)
        start = self.value(Binary("%", first, int64(size), DType.INT64))
        start = arith.broadcast(self.b, arith.cast(self.b, start, DType.INT32, self.f16c), lanes)
        rest = self.b.op(f"add {start.typed}, {numbers(rests)}", DType.INT32, lanes, "rest")
        if power:
            mask = constant(size - 1, DType.INT32, lanes)
            return self.b.op(f"and {rest.typed}, {mask.text}", DType.INT32, lanes, "rest")
        number = constant(size, DType.INT32)
        over = arith.compare(self.b, ">=", rest, number)
        if expr.op == "%":
            return arith.select(self.b, over, arith.binary(self.b, "-", rest, number), rest)
        start = arith.broadcast(self.b, self.value(Binary("//", first, int64(size), DType.INT64)), lanes)
        quotient = self.b.op(f"add {start.typed}, {numbers(quotients, 'i64')}", DType.INT64, lanes, "quotient")
        return arith.binary(self.b, "+", quotient, arith.cast(self.b, over, DType.INT64, self.f16c))

    def lanes_below(self, place: Polynomial, end: int) -> Value:
        """Which lanes have a position below an end; it grows by one from lane to lane, so narrow numbers are compared."""
        assert self.vector is not None
        lanes = self.vector.lanes
        before = as_expr(add(Polynomial((((), end),) if end else ()), scaled(self.first_lane(place), -1)))
        count = minimum(int64(lanes), maximum(int64(0), before))
        return self.inside(count, lanes, self.value(count))

    def lane_at(self, place: Polynomial) -> Value:
        """Which lane has the position 0, if any; it grows by one from lane to lane."""
        assert self.vector is not None
        lanes = self.vector.lanes
        number = minimum(int64(lanes), maximum(int64(-1), as_expr(scaled(self.first_lane(place), -1))))
        lane = arith.broadcast(self.b, arith.cast(self.b, self.value(number), DType.INT32, self.f16c), lanes)
        return self.b.op(f"icmp eq {lane.typed}, {numbers(range(lanes))}", DType.BOOL, lanes, "here")

    def choose(self, condition: Expr, then: Expr, otherwise: Expr) -> Value:
        """`condition ? then : otherwise`; a side with reads is printed under its condition."""
        test = self.value(condition)
        if test.text in ("true", "false"):
            return self.value(then if test.text == "true" else otherwise)
        if self.costs_nothing(condition, then, otherwise):
            sides = self.value(then), self.value(otherwise)
            return arith.select(self.b, self.in_lanes(condition, max(side.lanes for side in sides)), *sides)
        if test.lanes > 1:
            first, second = self.under(test, then), self.under(test, otherwise, not_=True)
            return arith.select(self.b, test, first, second)
        lanes = max(self.lanes_of(then), self.lanes_of(otherwise))
        return self.branch(test, then, otherwise, lanes)

    def asked(self, condition: Expr) -> Expr:
        """A condition without the comparisons of positions that all lanes pass which may touch memory."""
        if self.vector is None:
            return condition
        left = [each for each in conjunction(condition) if not self.all_lanes_pass(each)]
        return all_of(left) if left else Const(True, DType.BOOL)

    def all_lanes_pass(self, test: Expr) -> bool:
        """Whether lanes at neighbouring positions all pass a comparison, as far as sums of sizes tell."""
        assert self.vector is not None
        match test:
            case (
                Binary(op="<" | "<=" as op, left=small, right=large)
                | Binary(op=">" | ">=" as op, left=large, right=small)
            ):
                pass
            case _:
                return False
        if small.dtype is not DType.INT64 or has_read(test):
            return False
        gap = add(polynomial(large), scaled(polynomial(small), -1))
        gap = add(gap, Polynomial((((), -1),)) if len(op) == 1 else Polynomial(()))
        change, linear = step(gap, self.vector.var)
        if not linear or change not in (1, -1):
            return False
        first = self.first_lane(gap)
        if change == 1:
            return self.is_natural(first)
        return any(
            self.is_natural(add(first, scaled(polynomial(plus(length, int64(-1))), -1))) for length in self.lengths
        )

    def is_natural(self, total: Polynomial) -> bool:
        """Whether a sum is 0 or more since all of its terms are."""
        return all(factor >= 0 and all(map(self.is_natural_factor, product)) for product, factor in total.terms)

    def is_natural_factor(self, factor: Expr) -> bool:
        """Whether a size, a loop variable or a quotient of these is 0 or more."""
        match factor:
            case Size():
                return True
            case IndexVar(name=name):
                around = self.around.get(name)
                return around is not None and self.is_natural(polynomial(around.min))
            case Binary(op="//", left=left, right=Const(value=by)):
                return by > 0 and self.is_natural(polynomial(left))
            case _:
                return False

    def costs_nothing(self, condition: Expr, then: Expr, otherwise: Expr) -> bool:
        """Whether both sides of a choice are computed in all lanes: they read nothing, or what is there in any case."""
        if self.needs(then) is not None and self.needs(otherwise) is not None:
            return True
        if self.vector is None or not self.kernel.unguarded or not on_data(condition):
            return False
        if self.varies(condition):  # a mask saves no work, but perhaps reads that are anywhere
            return not any(map(reads_by_elements, (then, otherwise)))
        return is_cheap(then) and is_cheap(otherwise)

    def in_lanes(self, condition: Expr, lanes: int) -> Value:
        """A condition with one answer per lane; that on elements is asked in all lanes, as a choice between vectors by one
        answer becomes a jump.
        """
        test = self.value(condition)
        if lanes == 1 or test.lanes > 1 or self.needs(condition) is not None:
            return test
        if isinstance(condition, Binary) and condition.op in COMPARISONS:
            sides = (arith.broadcast(self.b, self.value(side), lanes) for side in (condition.left, condition.right))
            return arith.compare(self.b, condition.op, *sides)
        return arith.broadcast(self.b, test, lanes)

    def under(self, test: Value, expr: Expr, not_: bool = False) -> Value:
        """A value for the lanes that pass a test, or do not; what has no reads is computed for all."""
        if self.needs(expr) is not None:
            return self.value(expr)
        with self.masked(arith.invert(self.b, test) if not_ else test):
            return self.value(expr)

    def branch(self, test: Value, then: Expr, otherwise: Expr, lanes: int) -> Value:
        """A choice by a jump."""
        yes, no, end = (self.b.name(hint) for hint in ("then", "else", "end"))
        self.b.branch_if(test, yes, no)
        ends: list[tuple[Value, str]] = []
        for label, side in ((yes, then), (no, otherwise)):
            with self.beside(label):
                value = arith.broadcast(self.b, self.value(side), lanes)
            ends.append((value, self.b.block))
            self.b.branch(end)
        self.b.label(end)
        return self.b.phi(*ends[0], *ends[1])

    def lane_values(self) -> Value:
        """The variable of the vectorised loop in all lanes."""
        assert self.vector is not None
        vector, key = self.vector, "lanes"
        memo = self.levels[vector.level].memo
        if key not in memo:
            with self.at(vector.level):
                first = arith.broadcast(self.b, self.value(vector.first), vector.lanes)
                lanes = numbers(range(vector.lanes), "i64")
                memo[key] = self.b.op(f"add {first.typed}, {lanes}", DType.INT64, vector.lanes, vector.var)
        return memo[key]

    def first_lane(self, offset: Polynomial) -> Polynomial:
        """The position for the first lane."""
        assert self.vector is not None
        if constant_value(self.vector.first) == 0:
            start = without(offset, self.vector.var)
            if start is not None:
                return start
        return polynomial(substitute(as_expr(offset), {self.vector.var: self.vector.first}))

    def inside(self, extent: Expr, limit: int, count: Value) -> Value:
        """Which of `limit` lanes are before the end of a loop; known from where its length is known."""
        key = ("inside", count.text, limit)
        names = self.needs(extent)
        level = len(self.levels) - 1 if names is None else self.depth(names)
        memo = {} if names is None else self.levels[level].memo
        if key not in memo:
            with nullcontext() if names is None else self.at(level):
                # The narrower the numbers, the fewer registers the comparison takes.
                narrow = DType.INT32 if limit <= 64 else DType.INT16
                lanes = numbers(range(limit), register_type(narrow))
                counts = arith.broadcast(self.b, arith.cast(self.b, count, narrow, self.f16c), limit)
                memo[key] = self.b.op(f"icmp sgt {counts.typed}, {lanes}", DType.BOOL, limit, "inside")
        return memo[key]
