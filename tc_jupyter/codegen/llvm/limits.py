"""What integer expressions never exceed: numbers, and expressions over sizes alone.

Worked example: `min(x, 32)` is at most 32; `i + 1` with `i in 0:N` is at most `N`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tc_jupyter.program import Binary, Cast, Const, Expr, IndexVar, Read, Select, Size, Unary, int64
from tc_jupyter.program.integers import maximum

from .polynomial import constant_value


def upper_limit(expr: Expr) -> int | None:
    """A constant that the value never exceeds: a number, or the constant operand of a `min`."""
    value = constant_value(expr)
    if value is not None:
        return value
    match expr:
        case Binary(op="min"):
            limits = [limit for limit in (upper_limit(expr.left), upper_limit(expr.right)) if limit is not None]
            return min(limits, default=None)
        case Binary(op="max"):
            left, right = upper_limit(expr.left), upper_limit(expr.right)
            return None if left is None or right is None else max(left, right)
        case Binary(op="+" | "//", left=left_expr, right=Const(value=number)):
            limit = upper_limit(left_expr)
            if limit is None or (expr.op == "//" and number <= 0):
                return None
            return limit + int(number) if expr.op == "+" else limit // int(number)
        case _:
            return None


def natural(extent: Expr) -> Expr:
    """An extent as a number of iterations: not negative."""
    return extent if isinstance(extent, Size | Const) else maximum(int64(0), extent)


def largest(expr: Expr, ranges: Mapping[str, tuple[Expr, Expr]], upper: bool = True) -> Expr:
    """An expression over sizes that is at least (`upper`) or at most the value; `ranges` are first and last values."""
    match expr:
        case Const() | Size() | Read(indices=()):
            return expr
        case IndexVar():
            return ranges[expr.name][1 if upper else 0]
        case Unary(op="-"):
            return replace(expr, operand=largest(expr.operand, ranges, not upper))
        case Binary(op="+" | "min" | "max"):
            return replace(expr, left=largest(expr.left, ranges, upper), right=largest(expr.right, ranges, upper))
        case Binary(op="-"):
            return replace(expr, left=largest(expr.left, ranges, upper), right=largest(expr.right, ranges, not upper))
        case Binary(op="*" | "//" | "/"):
            negative = (constant_value(expr.right) or 0) < 0 or (
                expr.op == "*" and (constant_value(expr.left) or 0) < 0
            )
            flip = upper != negative
            return replace(
                expr,
                left=largest(expr.left, ranges, flip),
                right=largest(expr.right, ranges, flip if expr.op == "*" else not flip),
            )
        case Binary(op="%"):
            return largest(expr.right, ranges) if upper else int64(0)
        case Select():
            then, other = largest(expr.then, ranges, upper), largest(expr.otherwise, ranges, upper)
            return Binary("max" if upper else "min", then, other, expr.dtype)
        case Cast():
            return replace(expr, operand=largest(expr.operand, ranges, upper))
        case _:
            raise RuntimeError(f"the size of a temporary has no bound over the sizes: {expr}")
