"""Positions that grow by at most one from one value of an index to the next: mostly, neighbours are neighbours.

Worked example: `(j + 1) % N` and `min(j + 1, N - 1)` are `1, 2, ... N - 1`, but for the last one. Where such a position is `n - 1`
further at the last of `n` values than at the first, it grows by one at each of them.
"""

from __future__ import annotations

from collections.abc import Callable

from .expr import Binary, Const, Expr, Size

LARGEST_DIVISOR = 1 << 31
"""A larger constant is no size of an array."""


def grows_slowly(position: Expr, step: Callable[[Expr], int | None]) -> bool:
    """Whether a position grows by at most one per step of an index; it may fall.

    Args:
        step: by how much a value moves, if that is the same everywhere.
    """
    match position:
        case Binary(op="min" | "max"):
            return grows_slowly(position.left, step) and grows_slowly(position.right, step)
        case Binary(op="%"):
            return _divides(position.right) and _stays_or_grows(position.left, step)
        case _:
            return _stays_or_grows(position, step)


def _stays_or_grows(position: Expr, step: Callable[[Expr], int | None]) -> bool:
    match position:
        case Binary(op="min" | "max"):
            return _stays_or_grows(position.left, step) and _stays_or_grows(position.right, step)
        case _:
            return step(position) in (0, 1)


def _divides(divisor: Expr) -> bool:
    """Whether nothing less than 0 divides: a size, which is 0 only without elements, or a constant."""
    return isinstance(divisor, Size) or (isinstance(divisor, Const) and 0 < divisor.value <= LARGEST_DIVISOR)
