"""Integer expressions of loops: which indices and reads are in them, and how they are added, multiplied and compared.

Worked example: `plus(times(IndexVar("i"), int64(1)), int64(0))` is `i`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce

from tc_jupyter.diagnostics import NO_SPAN, Span

from .expr import Binary, Const, DType, Expr, IndexVar, Read, Size, int64, walk


@lru_cache(maxsize=1 << 12)
def index_names(expr: Expr) -> frozenset[str]:
    """The loop variables in an expression."""
    return frozenset(node.name for node in walk(expr) if isinstance(node, IndexVar))


@lru_cache(maxsize=1 << 12)
def has_read(expr: Expr) -> bool:
    """Whether the expression reads a tensor, or a scalar."""
    return any(isinstance(node, Read) for node in walk(expr))


def reads_elements(expr: Expr) -> bool:
    """Whether the expression reads elements of a tensor."""
    return any(isinstance(node, Read) and node.indices for node in walk(expr))


def sizes_of(expr: Expr) -> frozenset[str]:
    """The names of the sizes in an expression."""
    return frozenset(node.name for node in walk(expr) if isinstance(node, Size))


def conjunction(expr: Expr) -> list[Expr]:
    """The sides of all `&&` at the top, left to right, as they stand."""
    if isinstance(expr, Binary) and expr.op == "&&":
        return conjunction(expr.left) + conjunction(expr.right)
    return [expr]


_CHAIN = 16
"""Tests in one chain of `&&`."""


def all_of(tests: Sequence[Expr], span: Span = NO_SPAN) -> Expr:
    """One or more tests as one condition: a chain, and a chain of chains for so many that their depth would matter."""
    while len(tests) > _CHAIN:
        tests = [all_of(tests[k : k + _CHAIN], span) for k in range(0, len(tests), _CHAIN)]
    return reduce(lambda left, right: Binary("&&", left, right, DType.BOOL, span), tests)


def parts_of_minimum(expr: Expr) -> tuple[Expr, ...]:
    """What an expression is at most: the sides of all `min` at the top."""
    if isinstance(expr, Binary) and expr.op == "min":
        return (*parts_of_minimum(expr.left), *parts_of_minimum(expr.right))
    return (expr,)


def minimum(left: Expr, right: Expr) -> Expr:
    """The smaller of two `int64` expressions."""
    return Binary("min", left, right, DType.INT64)


def maximum(left: Expr, right: Expr) -> Expr:
    """The larger of two `int64` expressions."""
    return Binary("max", left, right, DType.INT64)


def plus(left: Expr, right: Expr) -> Expr:
    """The sum."""
    if isinstance(right, Const) and right.value == 0:
        return left
    if isinstance(left, Const):
        return (
            int64(int(left.value) + int(right.value))
            if isinstance(right, Const)
            else (right if left.value == 0 else Binary("+", left, right, DType.INT64))
        )
    return Binary("+", left, right, DType.INT64)


def times(left: Expr, right: Expr) -> Expr:
    """The product."""
    if isinstance(left, Const) and isinstance(right, Const):
        return int64(int(left.value) * int(right.value))
    if isinstance(left, Const) and left.value == 1:
        return right
    if isinstance(right, Const) and right.value == 1:
        return left
    return Binary("*", left, right, DType.INT64)


def ceil_div(left: Expr, right: Expr) -> Expr:
    """`ceil(left / right)` for a positive divisor."""
    return Binary("//", plus(left, Binary("-", right, int64(1), DType.INT64)), right, DType.INT64)
