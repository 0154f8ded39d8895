"""What a condition says of the ends of a loop: it is solved for the loop's variable.

Worked examples: in `for l in 0:L`, `l < e` ends the loop at `min(L, e)`, and `2*l >= e` begins it at `max(0, (e + 1) // 2)`.
`i == l` leaves one iteration. A condition that is no comparison with the variable, or has it on both sides, says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tc_jupyter.program import Binary, Cast, Const, DType, Expr, IndexVar, int64
from tc_jupyter.program.integers import index_names, reads_elements
from tc_jupyter.ranges import from_expr, interval, nonnegative

from .ir import For
from .simplify import simplify_expr

FAR = 1 << 62
"""No position is as large."""


def ended(loop: For, condition: Expr, around: tuple[For, ...] = ()) -> For | None:
    """A loop over those of its iterations for which a condition holds; `None` if it is no comparison with the loop's variable.

    Args:
        around: the loops that it stands in: with them, one iteration may be known to be one.
    """
    found = ends_of(condition, loop.var)
    if found is None:
        return None
    first, last = found
    low, end = loop.min, sum_of(loop.min, loop.extent)
    if first is not None and is_at_least(low, first, around):
        first = None
    starts = first is not None and is_at_least(first, low, around)
    one = first is not None and last == sum_of(first, int64(1))
    if first is not None and last is not None and one and starts and is_at_least(end, last, around):
        return replace(loop, min=first, extent=int64(1))
    start = low if first is None else first if starts else simplify_expr(binary("max", low, first))
    if last is None:
        length = binary("-", end, start)
    elif first is None:
        length = binary("min", loop.extent, binary("-", last, low))
    else:
        length = binary("-", binary("min", end, last), start)
    return replace(loop, min=start, extent=simplify_expr(length))


def only_iteration(loop: For, condition: Expr, zeros: bool) -> Expr | None:
    """What elements say that a loop's variable is, where a condition asks for that."""
    if (
        not isinstance(condition, Binary)
        or condition.op != "=="
        or reads_elements(loop.min)
        or reads_elements(loop.extent)
    ):
        return None
    for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
        if side == IndexVar(loop.var) and (zeros or reads_elements(other)):
            return other if loop.var not in index_names(other) and is_position(other) else None
    here, last = (None if zeros else ends_of(condition, loop.var)) or (None, None)
    if here is None or last is None or not reads_elements(here):
        return None
    return here if from_expr(binary("-", last, here)) == 1 else None


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_Ends: TypeAlias = tuple[Expr | None, Expr | None]
"""From where to where, without that, something holds; `None`: there is no such end."""


def ends_of(condition: Expr, var: str) -> _Ends | None:
    """Between which values of a variable a comparison of integers holds, if the variable stands on one side of it once."""
    if not isinstance(condition, Binary) or condition.op not in _TURNED:
        return None
    op, left, right = condition.op, condition.left, condition.right
    if var in index_names(right):
        op, left, right = _TURNED[op], right, left
    if var not in index_names(left) or var in index_names(right) or reads_elements(left) or not is_position(right):
        return None
    limit = _within_reach(right)
    behind = sum_of(limit, int64(1))
    ends: _Ends | None = (
        {">": behind, ">=": limit, "==": limit}.get(op),
        {"<": limit, "<=": behind, "==": behind}.get(op),
    )
    while ends is not None and left != IndexVar(var):
        left, ends = _solved(left, ends, var)
    return ends


def _solved(side: Expr, ends: _Ends, var: str) -> tuple[Expr, _Ends | None]:
    """The operand that has the variable, and between which of its values the side is between `ends`; `None` if it is not known."""
    first, last = ends
    match side:
        case Binary(op="+", left=a, right=b) if (var in index_names(a)) != (var in index_names(b)):
            inner, moved = (a, b) if var in index_names(a) else (b, a)
            return inner, _each(ends, lambda end: binary("-", end, moved))
        case Binary(op="-", left=a, right=b) if var not in index_names(b):
            return a, _each(ends, lambda end: sum_of(end, b))
        case Binary(op="-", left=a, right=b) if var not in index_names(a):
            ends = _each((last, first), lambda end: binary("-", a, end))
            return b, _each(ends, lambda end: sum_of(end, int64(1)))
        case Binary(op="*", left=Const(value=by), right=a) if int(by) > 1:
            return a, _each(ends, lambda end: binary("//", sum_of(end, int64(int(by) - 1)), int64(int(by))))
        case Binary(op="//", left=a, right=Const(value=by)) if int(by) > 0 and not any(map(_has_any_read, ends)):
            return a, _each(ends, lambda end: binary("*", int64(int(by)), end))
        case _:
            return side, None


def _each(ends: _Ends, change: Callable[[Expr], Expr]) -> _Ends:
    first, last = ends
    return None if first is None else simplify_expr(change(first)), None if last is None else simplify_expr(
        change(last)
    )


def is_position(expr: Expr) -> bool:
    """Whether a value is computed as positions are."""
    return expr.dtype is DType.INT64


def _within_reach(limit: Expr) -> Expr:
    """A number as large as any position, where elements decide it: what is computed with it does not overflow."""
    if not reads_elements(limit) or (isinstance(limit, Cast) and limit.operand.dtype.bits < 64):
        return limit
    return binary("min", binary("max", limit, int64(-FAR)), int64(FAR))


def _has_any_read(expr: Expr | None) -> bool:
    return expr is not None and reads_elements(expr)


def is_at_least(value: Expr, less: Expr, around: tuple[For, ...]) -> bool:
    """Whether `value - less` is proved to be 0 or more at every point of the loops around."""
    if reads_elements(value) or reads_elements(less):
        return False
    rest = from_expr(binary("-", value, less))
    for loop in reversed(around):
        if nonnegative(rest):
            return True
        if loop.var in rest.indices:
            if reads_elements(loop.min) or reads_elements(loop.extent):
                return False
            first = from_expr(loop.min)
            lower = interval(rest, {loop.var: (first, first + from_expr(loop.extent) - 1)}).lower
            if lower is None:
                return False
            rest = lower
    return nonnegative(rest)


def binary(op: str, left: Expr, right: Expr) -> Expr:
    """An operator on two positions."""
    return Binary(op, left, right, DType.INT64)


def sum_of(left: Expr, right: Expr) -> Expr:
    """The sum of two positions, simplified."""
    return simplify_expr(binary("+", left, right))


__all__ = ["binary", "ended", "ends_of", "is_at_least", "is_position", "only_iteration", "sum_of"]
