"""Sizes that stand only inside expressions, found from the extents of arguments: `float(2*D) X` gives `D`.

A dimension whose expression is linear in its one unknown size is solved for it. The division must leave no remainder, which is seen
when the extent is compared with the expression afterwards.

Worked example: of `float(N - K + 1) dY, float(K) W` the size `K` is the extent of `W`, and `N` is that of `dY` minus `1 - K`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .expr import Binary, Cast, Const, DType, Expr, Size, Unary, int64, walk
from .integers import sizes_of
from .program import Tensor

_ZERO, _ONE = int64(0), int64(1)


@dataclass(frozen=True, slots=True)
class Solution:
    """`name = (extent of that dimension - rest) / factor`; both use only what is known before."""

    name: str
    tensor: str
    dimension: int
    factor: Expr
    rest: Expr


def solutions(tensors: Sequence[Tensor]) -> tuple[tuple[Solution, ...], tuple[str, ...]]:
    """The sizes that no dimension is, in the order in which they can be found, and those that cannot be."""
    dims = [(tensor.name, number, dim) for tensor in tensors for number, dim in enumerate(tensor.dims or ())]
    known = {dim.name for _, _, dim in dims if isinstance(dim, Size)}
    left = [each for each in dims if sizes_of(each[2]) - known]
    found: list[Solution] = []
    more = True
    while more:
        more = False
        for name, number, dim in left:
            unknown = sizes_of(dim) - known
            for alone in unknown if len(unknown) == 1 else ():
                parts = linear(dim, alone)
                if parts is not None and parts[0] != _ZERO:
                    found.append(Solution(alone, name, number, *parts))
                    known.add(alone)
                    more = True
    missing = (node.name for _, _, dim in left for node in walk(dim) if isinstance(node, Size))
    return tuple(found), tuple(dict.fromkeys(name for name in missing if name not in known))


def linear(expr: Expr, name: str) -> tuple[Expr, Expr] | None:
    """`(factor, rest)` with `expr == factor * name + rest`, where neither has `name` in it; `None` where there are none."""
    if name not in sizes_of(expr):
        return _ZERO, expr
    match expr:
        case Size():
            return _ONE, _ZERO
        case Cast() if expr.dtype is DType.INT64:
            return linear(expr.operand, name)
        case Unary(op="-"):
            parts = linear(expr.operand, name)
            return parts and (difference(_ZERO, parts[0]), difference(_ZERO, parts[1]))
        case Binary(op="+" | "-" | "*"):
            left, right = linear(expr.left, name), linear(expr.right, name)
            return left and right and _combined(expr.op, left, right)
        case _:
            return None


def _combined(op: str, left: tuple[Expr, Expr], right: tuple[Expr, Expr]) -> tuple[Expr, Expr] | None:
    if op == "+":
        return sum_of(left[0], right[0]), sum_of(left[1], right[1])
    if op == "-":
        return difference(left[0], right[0]), difference(left[1], right[1])
    if left[0] != _ZERO and right[0] != _ZERO:
        return None
    return sum_of(_product(left[0], right[1]), _product(left[1], right[0])), _product(left[1], right[1])


def sum_of(left: Expr, right: Expr) -> Expr:
    """`left + right`, folded."""
    if left == _ZERO or right == _ZERO:
        return right if left == _ZERO else left
    return _folded("+", left, right)


def difference(left: Expr, right: Expr) -> Expr:
    """`left - right`, folded."""
    return left if right == _ZERO else _folded("-", left, right)


def _product(left: Expr, right: Expr) -> Expr:
    if _ZERO in (left, right):
        return _ZERO
    if _ONE in (left, right):
        return right if left == _ONE else left
    return _folded("*", left, right)


def _folded(op: str, left: Expr, right: Expr) -> Expr:
    if isinstance(left, Const) and isinstance(right, Const):
        a, b = int(left.value), int(right.value)
        return int64(a + b if op == "+" else a - b if op == "-" else a * b)
    return Binary(op, left, right, DType.INT64)
