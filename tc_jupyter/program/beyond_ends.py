"""Subscripts beyond the ends of an array, in the operators of the language.

Worked example: in `float(N) X`, `X(clamp(i - 1))` reads element `min(max(i - 1, 0), N - 1)`, and `X(i - 1) else 0` is
`0 <= i - 1 && i - 1 < N ? X(i - 1) : 0`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expr import Binary, DType, Expr, Size, int64
from .extents import difference, sum_of
from .integers import all_of
from .scope import TensorInfo
from .typing import as_compared

_ONE = int64(1)


def box_of(info: TensorInfo, dimension: int) -> tuple[Expr, Expr]:
    """The first index of a dimension and the one after the last; those of a computed tensor are names that inference knows."""
    extent = info.dims[dimension]
    if not info.is_input:
        first = Size(f"{info.name}.first{dimension}")
        return first, Binary("+", first, extent, DType.INT64)
    first = info.starts[dimension] if info.starts else int64(0)
    if isinstance(extent, Binary) and extent.op == "-" and extent.right == first:
        return first, extent.left
    return first, sum_of(first, extent)


def placed(kind: str, subscript: Expr, box: tuple[Expr, Expr]) -> Expr:
    """The index that is read, for one of `clamp`, `wrap`, `reflect` and `symmetric`; the dimension has an element."""
    first, end = box
    extent = difference(end, first)
    if kind == "clamp":
        return _int("min", _int("max", subscript, first), difference(end, _ONE))
    local = difference(subscript, first)
    if kind == "wrap":
        return sum_of(_int("%", local, extent), first)
    # one period of the mirrored array: forwards up to the end, then back
    turn = difference(_int("*", int64(2), extent), _ONE)
    if kind == "reflect":
        turn = difference(turn, _ONE)
    period = _int("max", turn, _ONE) if kind == "reflect" else sum_of(turn, _ONE)
    place = _int("%", local, period)
    return sum_of(_int("min", place, difference(turn, place)), first)


def inside(subscripts: Sequence[Expr], boxes: Sequence[tuple[Expr, Expr]]) -> Expr:
    """Whether every subscript is in its box."""
    tests = [
        Binary(op, *as_compared(*sides), DType.BOOL)
        for subscript, (first, end) in zip(subscripts, boxes, strict=True)
        for op, sides in (("<=", (first, subscript)), ("<", (subscript, end)))
    ]
    return all_of(tests)


def _int(op: str, left: Expr, right: Expr) -> Expr:
    return Binary(op, left, right, DType.INT64)
