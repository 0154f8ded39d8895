"""The elements that a product multiplies, where it is computed in the type of the sum that it is added to.

A matrix step multiplies small numbers exactly and adds the products in 32 bits. So does a statement only if the factors are
converted before they are multiplied: `int32(A(i,k)) * int32(B(k,j))`. In `int32(A(i,k) * B(k,j))` every product wraps around in
eight bits.

Worked example: of `int32(A(i,k)) * int32(B(k,j))`, added to `int32`, the factors are `A(i,k)` and `B(k,j)`; `int32(A(i,k) *
B(k,j))` has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .expr import Binary, Cast, Const, DType, Expr, Read, Select, Size, Unary
from .points import is_identity

MODERATE = 2.0**32
"""Numbers between this and one over it leave a sum: few sums of floats that are finite with them are infinite without."""


def factors_of(value: Expr, total: DType) -> tuple[Read, ...]:
    """The reads of a product in the type `total`, through conversions that keep values; none if it is anything else."""
    match value:
        case Read(indices=indices):
            return (value,) if indices else ()
        case Cast(operand=Read() | Cast() as inner):
            return factors_of(inner, total) if keeps_values(value.dtype, inner.dtype) else ()
        case Cast(operand=Binary() as product):
            kept = product.dtype.compute is value.dtype.compute and keeps_values(value.dtype, product.dtype)
            return factors_of(product, total) if kept else ()
        case Binary(op="*", left=left, right=right) if value.dtype.compute is total:
            first, second = factors_of(left, total), factors_of(right, total)
            return first + second if first and second else ()
        case _:
            return ()


def keeps_values(wide: DType, narrow: DType) -> bool:
    """Whether a type holds all values of another one of its kind."""
    if wide.is_float or narrow.is_float:
        return wide.is_float and narrow.is_float and (wide.bits > narrow.bits or wide is narrow)
    if not (wide.is_integer and narrow.is_integer):
        return wide is narrow
    (low, high), (least, most) = wide.limits, narrow.limits
    return low <= least and most <= high


def without_factors(value: Expr, sizes: Collection[str]) -> tuple[Expr, tuple[tuple[str, Expr], ...]]:
    """The terms of a sum of floats without the finite numbers that multiply or divide all of them, and those numbers.

    Numbers are literals and what sizes of 1 and more make; a parameter may be infinite. Conditions stay around the terms.

    Worked example: `2 * A(i,k) * B(k,j) / float(N)` is `A(i,k) * B(k,j)`, times 2, divided by `float(N)`. A sign is a factor -1.

    Args:
        sizes: the names of such sizes.

    Returns:
        The terms, and each number with `*` or `/`; the value itself and none where the terms would not be cheaper.
    """
    if isinstance(value, Select) and is_identity(value.otherwise, "+"):
        inner, numbers = without_factors(value.then, sizes)
        return (Select(value.condition, inner, value.otherwise, value.dtype, value.span) if numbers else value), numbers
    if value.dtype not in (DType.FLOAT32, DType.FLOAT64):
        return value, ()
    parts = tuple(_parts(value, "*"))
    numbers = tuple(part for part in parts if _is_moderate(part[1], sizes))
    kept = [part for part in parts if part not in numbers]
    if not numbers or not kept or kept[0][0] != "*":
        return value, ()
    (_, inner), *others = kept
    for op, each in others:
        inner = Binary(op, inner, each, value.dtype, value.span)
    return inner, numbers


def _parts(value: Expr, op: str) -> Iterator[tuple[str, Expr]]:
    """Factors and divisors of a product, left to right."""
    match value:
        case Binary(op="*" | "/", left=left, right=right):
            yield from _parts(left, op)
            yield from _parts(right, op if value.op == "*" else _INVERSE[op])
        case Unary(op="-", operand=operand) if not isinstance(operand, Const):
            yield op, Const(-1, value.dtype)
            yield from _parts(operand, op)
        case _:
            yield op, value


_INVERSE = {"*": "/", "/": "*"}


def _is_moderate(value: Expr, sizes: Collection[str]) -> bool:
    """Whether an expression is a number that is surely neither 0 nor very large or small."""
    match value:
        case Const(value=number):
            return not isinstance(number, complex) and 1 / MODERATE <= abs(number) <= MODERATE
        case Unary(op="-", operand=operand):
            return _is_moderate(operand, sizes)
        case Cast(operand=operand):
            return _is_moderate(operand, sizes) if operand.dtype.is_float else _is_positive(operand, sizes)
        case _:
            return False


def _is_positive(value: Expr, sizes: Collection[str]) -> bool:
    """Whether an integer is surely 1 or more."""
    match value:
        case Const(value=number):
            return not isinstance(number, complex) and number >= 1
        case Size(name=name):
            return name in sizes
        case Cast(operand=operand):
            return operand.dtype is not DType.BOOL and _is_positive(operand, sizes)
        case Binary(op="*" | "+", left=left, right=right):
            return _is_positive(left, sizes) and _is_positive(right, sizes)
        case _:
            return False
