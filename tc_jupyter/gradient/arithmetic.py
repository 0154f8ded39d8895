"""Sums, products and quotients of expressions, without what changes nothing.

Worked example: `times(one, x)` is `x`, and `plus(x, x)` is `2 * x`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tc_jupyter.program import Binary, Call, Cast, Const, DType, Expr, Select, Unary
from tc_jupyter.program.integers import all_of
from tc_jupyter.ranges import SizeExpr, to_expr


def number(value: float, dtype: DType) -> Const:
    """A number of a type."""
    return Const(float(value) if dtype.is_float else int(value), dtype)


def is_number(expr: Expr, value: float) -> bool:
    """Whether an expression is this number."""
    return isinstance(expr, Const) and expr.value == value


def negative(x: Expr) -> Expr:
    """`-x`."""
    if isinstance(x, Unary) and x.op == "-":
        return x.operand
    return number(-x.value, x.dtype) if isinstance(x, Const) else Unary("-", x, x.dtype)


def plus(a: Expr, b: Expr) -> Expr:
    """`a + b`."""
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    if a == b and not isinstance(a, Const):
        return times(number(2, a.dtype), a)
    if isinstance(a, Const) and isinstance(b, Const):
        return number(a.value + b.value, a.dtype)
    if isinstance(b, Unary) and b.op == "-":
        return Binary("-", a, b.operand, a.dtype)
    if isinstance(a, Unary) and a.op == "-":
        return Binary("-", b, a.operand, a.dtype)
    return Binary("+", a, b, a.dtype)


def minus(a: Expr, b: Expr) -> Expr:
    """`a - b`."""
    return plus(a, negative(b))


def times(a: Expr, b: Expr) -> Expr:
    """`a * b`."""
    if isinstance(a, Unary) and a.op == "-":
        return negative(times(a.operand, b))
    if isinstance(b, Unary) and b.op == "-":
        return negative(times(a, b.operand))
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    if is_number(a, -1):
        return negative(b)
    if is_number(b, -1):
        return negative(a)
    if is_number(a, 0):
        return a
    if is_number(b, 0):
        return b
    if isinstance(a, Const) and isinstance(b, Const):
        return number(a.value * b.value, a.dtype)
    if isinstance(b, Binary) and b.op == "/" and is_number(b.left, 1):
        return over(a, b.right)
    return Binary("*", a, b, a.dtype)


def over(a: Expr, b: Expr) -> Expr:
    """`a / b`."""
    if isinstance(a, Unary) and a.op == "-":
        return negative(over(a.operand, b))
    if is_number(b, 1) or is_number(a, 0):
        return a
    return Binary("/", a, b, a.dtype)


def called(function: str, *arguments: Expr) -> Expr:
    """`function(arguments)`."""
    return Call(function, arguments, arguments[0].dtype)


def compared(op: str, a: Expr, b: Expr) -> Expr:
    """`a op b`."""
    return Binary(op, a, b, DType.BOOL)


def shifted(indices: Sequence[Expr], distances: Sequence[SizeExpr], op: str = "+") -> tuple[Expr, ...]:
    """Subscripts, each farther by a distance, or nearer (`-`)."""
    return tuple(_moved(at, far if op == "+" else -far) for at, far in zip(indices, distances, strict=True))


def _moved(at: Expr, far: SizeExpr) -> Expr:
    if far == 0:
        return at
    back = far.is_constant and far.offset < 0
    return Binary("-" if back else "+", at, to_expr(-far if back else far), DType.INT64)


def either(conditions: Sequence[Expr]) -> Expr:
    """That one of some conditions holds, in their order."""
    return reduce(lambda a, b: Binary("||", a, b, DType.BOOL), conditions)


def guarded(conditions: Sequence[Expr], value: Expr) -> Expr:
    """The value where all conditions hold, else 0."""
    if not conditions or is_number(value, 0):
        return value
    return Select(all_of(conditions), value, number(0, value.dtype), value.dtype)


def cast(value: Expr, dtype: DType) -> Expr:
    """A value in another type."""
    if value.dtype is dtype:
        return value
    return number(value.value, dtype) if isinstance(value, Const) and dtype.is_float else Cast(value, dtype)
