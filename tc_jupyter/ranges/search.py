"""Searching a box of numbers for a point where a condition fails: the decision at a call, and the counter-example of a message.

Branch and bound with interval arithmetic on program expressions as they were written, so nothing that was simplified for sizes of
at least 1 is used (`docs/ranges.md`, 'Sizes of 0').

Worked example: for `X(i - j)` with `0 <= i, j < 3` the search for `i - j < 0` finds `i = 0, j = 1`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

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
    bits,
    walk,
)
from tc_jupyter.program.typing import wrap

Span: TypeAlias = tuple[float, float]  # both ends included; integers, or infinite

ANYTHING: Span = (-math.inf, math.inf)
STEPS = 200_000
SMALL = 256
"""Whole numbers up to this are exact in every type of floats."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Values of sizes and scalars by name, and the values of every index, both ends included."""

    values: Mapping[str, int]
    box: Mapping[str, tuple[int, int]]


def span(expr: Expr, numbers: Numbers) -> Span:
    """Smallest and largest value of an integer expression over a box of numbers; an outer bound."""
    match expr:
        case Const():
            return (expr.value, expr.value)
        case Size():
            value = numbers.values[expr.name]
            return (value, value)
        case IndexVar():
            return numbers.box[expr.name]
        case Read():
            return _read_span(expr, numbers)
        case Unary():
            if expr.op != "-":
                return _truth_span(expr, numbers)
            low, high = span(expr.operand, numbers)
            return (-high, -low)
        case Binary():
            return _binary_span(expr, numbers)
        case Select():
            return _select_span(expr, numbers)
        case Cast():
            return _cast_span(expr, numbers)
        case Call():
            return _call_span(expr, numbers)
    assert_never(expr)


def _read_span(expr: Read, numbers: Numbers) -> Span:
    if not expr.indices and expr.tensor in numbers.values:
        value = numbers.values[expr.tensor]
        return (value, value)
    return ANYTHING if expr.dtype.is_float else expr.dtype.limits


def _binary_span(expr: Binary, numbers: Numbers) -> Span:
    if expr.dtype is DType.BOOL:
        return _truth_span(expr, numbers)
    (a, b), (c, d) = span(expr.left, numbers), span(expr.right, numbers)
    match expr.op:
        case "+":
            return (a + c, b + d)
        case "-":
            return (a - d, b - c)
        case "*":
            return _corners([_times(x, y) for x in (a, b) for y in (c, d)])
        case "min":
            return (min(a, c), min(b, d))
        case "max":
            return (max(a, c), max(b, d))
        case "//":
            if c <= 0 <= d:
                return ANYTHING if (c, d) != (0, 0) else (0, 0)
            return _corners([_floor(x, y) for x in (a, b) for y in (c, d)])
        case "%":
            return _remainder((a, b), (c, d))
        case _:
            return ANYTHING


def _corners(values: list[float]) -> Span:
    return (min(values), max(values))


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def _floor(x: float, y: float) -> float:
    if math.isinf(y):
        return 0 if x == 0 or (x > 0) == (y > 0) else -1
    return x if math.isinf(x) and y > 0 else -x if math.isinf(x) else x // y


def _remainder(a: Span, d: Span) -> Span:
    if a[0] == a[1] and d[0] == d[1] and d[0] != 0 and not math.isinf(a[0]) and not math.isinf(d[0]):
        return (a[0] % d[0], a[0] % d[0])
    if d[0] <= 0:
        return ANYTHING if d != (0, 0) else (0, 0)
    if a[0] >= 0 and a[1] < d[0]:
        return a
    if d[0] == d[1] and not math.isinf(a[0]) and not math.isinf(a[1]) and a[0] // d[0] == a[1] // d[0]:
        return (a[0] % d[0], a[1] % d[0])
    return (0, min(d[1] - 1, a[1]) if a[0] >= 0 else d[1] - 1)


def _select_span(expr: Select, numbers: Numbers) -> Span:
    low, high = _truth_span(expr.condition, numbers)
    if low == high:
        return span(expr.then if low else expr.otherwise, numbers)
    (a, b), (c, d) = span(expr.then, numbers), span(expr.otherwise, numbers)
    return (min(a, c), max(b, d))


def _cast_span(expr: Cast, numbers: Numbers) -> Span:
    if expr.operand.dtype is DType.BOOL:
        return _truth_span(expr.operand, numbers)
    if expr.dtype.is_float:
        return span(expr.operand, numbers)
    low, high = span(expr.operand, numbers)
    bottom, top = expr.dtype.limits
    if bottom <= low and high <= top:
        return (low, high)
    if expr.operand.dtype.is_float:
        # conversion saturates; a value that is not a number gives 0
        return (min(max(low, bottom), 0), max(min(high, top), 0))
    if low == high and not math.isinf(low):
        wrapped = wrap(int(low), expr.dtype)
        return (wrapped, wrapped)
    return (bottom, top)


def _call_span(expr: Call, numbers: Numbers) -> Span:
    if expr.dtype.is_integer and len(expr.arguments) == 1:
        low, high = span(expr.arguments[0], numbers)
        if expr.function == "abs":
            return (max(low, -high, 0), max(-low, high))
        if expr.function in ("ceil", "floor", "round", "rounded", "trunc"):
            return (low, high)
        if expr.function == "sign":
            return ((low > 0) - (low < 0), (high > 0) - (high < 0))
    if expr.function in bits.OPERATORS:
        left, right = (span(argument, numbers) for argument in expr.arguments)
        if all(math.isfinite(end) for end in (*left, *right)):
            low, high = bits.bounds(expr.function, (int(left[0]), int(left[1])), (int(right[0]), int(right[1])))
            return (low, high)
    return ANYTHING


def _truth_span(expr: Expr, numbers: Numbers) -> Span:
    """(1, 1) where a condition is true on the whole box, (0, 0) where it is false, else (0, 1)."""
    match expr:
        case Const():
            return (int(expr.value), int(expr.value))
        case Unary() if expr.op == "!":
            low, high = _truth_span(expr.operand, numbers)
            return (1 - high, 1 - low)
        case Binary() if expr.op == "&&":
            (a, b), (c, d) = _truth_span(expr.left, numbers), _truth_span(expr.right, numbers)
            return (min(a, c), min(b, d))
        case Binary() if expr.op == "||":
            (a, b), (c, d) = _truth_span(expr.left, numbers), _truth_span(expr.right, numbers)
            return (max(a, c), max(b, d))
        case Binary() if expr.left.dtype.is_integer:
            return _compare(expr.op, span(expr.left, numbers), span(expr.right, numbers))
        case Binary() if expr.op in COMPARISONS:
            left, right = _exact_span(expr.left, numbers), _exact_span(expr.right, numbers)
            return (0, 1) if left is None or right is None else _compare(expr.op, left, right)
        case Select():
            low, high = _truth_span(expr.condition, numbers)
            parts = [
                _truth_span(part, numbers) for part, runs in ((expr.then, high), (expr.otherwise, not low)) if runs
            ]
            return (min(a for a, _ in parts), max(b for _, b in parts))
        case _:
            return (0, 1)


def _exact_span(expr: Expr, numbers: Numbers) -> Span | None:
    """Smallest and largest value of a number that no rounding changes and no element decides; `None` where that is not certain.

    Sizes of 0 choose such numbers: `(0 < K ? T(i) : 1.0) == 0` is false where `K` is 0.
    """
    match expr:
        case Const():
            found = (expr.value, expr.value) if abs(expr.value) <= SMALL / 16 else None
            return found if float(8 * expr.value).is_integer() else None
        case Select():
            low, high = _truth_span(expr.condition, numbers)
            parts = [
                _exact_span(part, numbers) for part, runs in ((expr.then, high), (expr.otherwise, not low)) if runs
            ]
            known = [part for part in parts if part is not None]
            return (min(a for a, _ in known), max(b for _, b in known)) if len(known) == len(parts) else None
        case Cast() if expr.dtype.is_float and expr.operand.dtype.is_float:
            found = _exact_span(expr.operand, numbers)
        case Cast() if expr.dtype.is_float and expr.operand.dtype.is_integer:
            found = span(expr.operand, numbers)
        case _ if expr.dtype.is_integer:
            return span(expr, numbers)
        case _:
            return None
    small = found is not None and all(abs(end) <= SMALL and end == round(end) for end in found)
    return found if small else None


def _compare(op: str, left: Span, right: Span) -> Span:
    (a, b), (c, d) = left, right
    match op:
        case "<":
            always, never = b < c, a >= d
        case "<=":
            always, never = b <= c, a > d
        case ">":
            always, never = a > d, b <= c
        case ">=":
            always, never = a >= d, b < c
        case "==":
            always, never = a == b == c == d, b < c or d < a
        case _:
            always, never = b < c or d < a, a == b == c == d
    return (1, 1) if always else (0, 0) if never else (0, 1)


@dataclass(frozen=True, slots=True)
class Subscript:
    """`lower <= index < upper` wherever all `guards` hold (with their polarity)."""

    index: Expr
    lower: int
    upper: int
    guards: tuple[tuple[Expr, bool], ...] = ()


def stays_inside(subscript: Subscript, numbers: Numbers) -> bool:
    """Whether the subscript is certain to stay inside, from one look at the whole box."""
    low, high = span(subscript.index, numbers)
    return subscript.lower <= low and high < subscript.upper


def leaves_everywhere(subscript: Subscript, numbers: Numbers) -> bool:
    """Whether every point of the box is certain to leave, from one look at it."""
    return _outside(subscript, numbers) == (1, 1)


def may_leave(subscript: Subscript, numbers: Numbers) -> bool:
    """Whether some point of the box may leave: it does, or it depends on data, or the search did not end."""
    if any(high < low for low, high in numbers.box.values()):
        return False
    stack: list[Mapping[str, tuple[int, int]]] = [numbers.box]
    for _ in range(STEPS):
        if not stack:
            return False
        box = stack.pop()
        state = _outside(subscript, Numbers(numbers.values, box))
        if state == (0, 0):
            continue
        halves = _halves(box)
        if state == (1, 1) or halves is None:
            return True
        stack.extend(halves)
    return True


def violation(subscript: Subscript, numbers: Numbers) -> Mapping[str, int] | None:
    """A point of the box where the guards hold and the subscript is outside, or `None`.

    Subscripts and guards must not depend on data.

    Raises:
        RuntimeError: the search did not end; the caller treats the subscript as unsafe.
    """
    if any(high < low for low, high in numbers.box.values()):
        return None
    stack: list[Mapping[str, tuple[int, int]]] = [numbers.box]
    for _ in range(STEPS):
        if not stack:
            return None
        box = stack.pop()
        here = Numbers(numbers.values, box)
        state = _outside(subscript, here)
        if state == (0, 0):
            continue
        if state == (1, 1):
            return {name: low for name, (low, _) in box.items()}
        halves = _halves(box)
        if halves is None:
            continue  # a single point whose truth is not known depends on data
        stack.extend(halves)
    raise RuntimeError("the search for a point outside did not end")


def _outside(subscript: Subscript, numbers: Numbers) -> Span:
    """Truth of "the guards hold and the subscript is outside" over a box."""
    low, high = span(subscript.index, numbers)
    if subscript.lower <= low and high < subscript.upper:
        return (0, 0)
    state: Span = (1, 1) if high < subscript.lower or low >= subscript.upper else (0, 1)
    for guard, polarity in subscript.guards:
        a, b = _truth_span(guard, numbers)
        if not polarity:
            a, b = 1 - b, 1 - a
        state = (min(state[0], a), min(state[1], b))
    return state


def _halves(
    box: Mapping[str, tuple[int, int]],
) -> tuple[Mapping[str, tuple[int, int]], Mapping[str, tuple[int, int]]] | None:
    """The box cut across its longest side; the half with larger values comes first off a stack."""
    name = max(box, key=lambda n: box[n][1] - box[n][0], default=None)
    if name is None or box[name][0] == box[name][1]:
        return None
    low, high = box[name]
    middle = (low + high) // 2
    return {**box, name: (middle + 1, high)}, {**box, name: (low, middle)}


def used_names(exprs: Sequence[Expr]) -> frozenset[str]:
    """Index variables in expressions."""
    return frozenset(node.name for expr in exprs for node in walk(expr) if isinstance(node, IndexVar))
