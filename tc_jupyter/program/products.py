"""The elements that a product multiplies, where it is computed in the type of the sum that it is added to.

A matrix step multiplies small numbers exactly and adds the products in 32 bits. So does a statement only if the factors are
converted before they are multiplied: `int32(A(i,k)) * int32(B(k,j))`. In `int32(A(i,k) * B(k,j))` every product wraps around in
eight bits.

Worked example: of `int32(A(i,k)) * int32(B(k,j))`, added to `int32`, the factors are `A(i,k)` and `B(k,j)`; `int32(A(i,k) *
B(k,j))` has none.
"""

from __future__ import annotations

from .expr import Binary, Cast, DType, Expr, Read


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
