"""Values that are positions: indices, sizes and constants, chosen by conditions on data.

Worked example: of `X(n,m) == V(n) ? m : M` the positions are `m` and `M`. They have 64 bits; where sizes say that 32 are enough,
twice as many fit a vector, and the smaller of two is one instruction on processors that have none for 64 bits. A number that needs
more leaves the whole choice in 64 bits, but for the largest one, which is no position (`argmax=!` has it where a point has none).
"""

from __future__ import annotations

from .expr import Binary, Cast, Const, DType, Expr, IndexVar, Select, Size, walk

NO_POSITION = DType.INT64.limits[1]
"""What the smallest of no positions is."""
LARGEST_POSITION = (1 << 31) - 2
"""Of the positions and their negatives in 32 bits: without the two values that stand for no position."""


def positions(value: Expr) -> tuple[Expr, ...]:
    """What a value of 64 bits chooses from, if these are positions, and at least one of them moves; else nothing."""
    found = _positions(value)
    moves = any(isinstance(node, IndexVar) for position in found or () for node in walk(position))
    return found if found is not None and moves else ()


def in_32_bits(value: Expr) -> Expr:
    """The same choice with all positions converted to 32 bits."""
    match value:
        case Select():
            then, otherwise = in_32_bits(value.then), in_32_bits(value.otherwise)
            return Select(value.condition, then, otherwise, DType.INT32, value.span)
        case Binary(op="min" | "max"):
            return Binary(value.op, in_32_bits(value.left), in_32_bits(value.right), DType.INT32, value.span)
        case Const(value=number) if number == NO_POSITION:
            return Const(DType.INT32.limits[1], DType.INT32, value.span)
        case _:
            return Cast(value, DType.INT32, value.span)


def _positions(value: Expr) -> tuple[Expr, ...] | None:
    if value.dtype is not DType.INT64:
        return None
    match value:
        case Const(value=number) if number == NO_POSITION:
            return ()
        case Select():
            parts = (_positions(value.then), _positions(value.otherwise))
        case Binary(op="min" | "max"):
            parts = (_positions(value.left), _positions(value.right))
        case _:
            return (value,) if _is_affine(value) else None
    return None if parts[0] is None or parts[1] is None else (*parts[0], *parts[1])


def _is_affine(value: Expr) -> bool:
    """Whether the value is a sum of numbers, sizes and indices, with numbers and sizes as factors; no number needs 64 bits."""
    match value:
        case IndexVar() | Size():
            return True
        case Const():
            return abs(value.value) <= LARGEST_POSITION
        case Binary(op="+" | "-"):
            return _is_affine(value.left) and _is_affine(value.right)
        case Binary(op="*"):
            return any(
                isinstance(factor, Size | Const) and _is_affine(other)
                for factor, other in ((value.left, value.right), (value.right, value.left))
            )
        case _:
            return False
