"""Positions along rows: mostly, neighbours are neighbours.

Worked example: in `X(j / D, j % D)` one row of `D` elements follows the other, in `X(j / D)` each element is read `D` times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .expr import Binary, Const, Expr, Size, children, int64, rewrite

LARGEST_DIVISOR = 1 << 31
"""A larger constant is no size of an array."""


SHORTEST_ROW = 16
"""Rows that are known to be shorter than a vector are read otherwise."""


def is_along_rows(subscripts: Sequence[Expr], step: Callable[[Expr], int | None]) -> bool:
    """Whether subscripts move with the quotient of one position by the length of a row, the last one also with its remainder.

    Args:
        step: by how much a value moves, if that is the same everywhere.
    """
    found = {node for each in subscripts for node in _divisions(each, step)}
    ways = {(node.left, node.right) for node in found}
    if len(ways) != 1:
        return False
    ((position, length),) = ways
    if step(position) != 1 or step(length) != 0 or not _is_length(length):
        return False
    if any(step(rewrite(each, lambda node: int64(0) if node in found else None)) != 0 for each in subscripts):
        return False
    *others, last = subscripts
    with_places = [each for each in subscripts if any(node.op == "%" for node in _divisions(each, step))]
    return not with_places or (with_places == [last] and _is_place(last, step) and last not in others)


def _divisions(expr: Expr, step: Callable[[Expr], int | None]) -> Iterator[Binary]:
    """The outermost quotients and remainders that move."""
    if isinstance(expr, Binary) and expr.op in ("//", "%") and step(expr) != 0:
        yield expr
    else:
        for child in children(expr):
            yield from _divisions(child, step)


def _is_place(last: Expr, step: Callable[[Expr], int | None]) -> bool:
    """Whether a subscript is a remainder, or a sum of it and what does not move."""
    match last:
        case Binary(op="%"):
            return True
        case Binary(op="+", left=left, right=right):
            return (step(right) == 0 and _is_place(left, step)) or (step(left) == 0 and _is_place(right, step))
        case Binary(op="-", left=left, right=right):
            return step(right) == 0 and _is_place(left, step)
        case _:
            return False


def _is_length(divisor: Expr) -> bool:
    """Whether rows may be as long as vectors: a constant that is not small, a size, or a product of such."""
    match divisor:
        case Binary(op="*", left=left, right=right):
            return all(_divides(each) or _is_length(each) for each in (left, right))
        case Const(value=value):
            return SHORTEST_ROW <= value <= LARGEST_DIVISOR
        case _:
            return isinstance(divisor, Size)


def _divides(divisor: Expr) -> bool:
    """Whether nothing less than 0 divides: a size, which is 0 only without elements, or a constant."""
    return isinstance(divisor, Size) or (isinstance(divisor, Const) and 0 < divisor.value <= LARGEST_DIVISOR)
