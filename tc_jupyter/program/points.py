"""The points that a reduction combines: `c ? v : identity` is `v` at the points where `c` holds.

Comes in: the value of a reduction, and its operator. Goes out: the conditions under which a point counts, in the order in which
they are evaluated, and the value there.

Worked example: under `+`, `i < n && X(i) > 0 ? float(Y(i)) : 0` is `Y(i)` as `float` at the points where `i < n` and `X(i) > 0`.
`(i < n ? X(i) : 0) * Y(i)` of floats stays as it is: where `Y(i)` is infinite it is NaN, also where `i >= n`.
"""

from __future__ import annotations

from .expr import TURNED, Binary, Call, Cast, Const, DType, Expr, Read, Select, Size, Unary, walk

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def points_of(value: Expr, operator: str) -> tuple[tuple[Expr, ...], Expr]:
    """The conditions of a combined value, and the value where all of them hold."""
    match value:
        case Select(condition=condition, then=then, otherwise=otherwise):
            for test, kept, left_out in ((condition, then, otherwise), (negated(condition), otherwise, then)):
                if is_identity(left_out, operator):
                    conditions, inner = points_of(kept, operator)
                    return (*conjuncts(test), *conditions), inner
        case Cast(operand=Select() | Cast() as operand) if _keeps_identity(operator, operand.dtype, value.dtype):
            conditions, inner = points_of(operand, operator)
            if conditions:
                return conditions, Cast(inner, value.dtype, value.span)
        case Cast(operand=operand) if operand.dtype is DType.BOOL and operator == "+" and _is_test(operand):
            return conjuncts(operand), Const(1.0 if value.dtype.is_float else 1, value.dtype)
        case Binary(op="*", left=left, right=right) if operator == "+" and value.dtype.is_integer:
            first, second = points_of(left, operator), points_of(right, operator)
            if first[0] or second[0]:
                return (*first[0], *second[0]), Binary("*", first[1], second[1], value.dtype, value.span)
        case _:
            pass
    return (), value


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The conditions that all hold where a condition holds, left to right."""
    match condition:
        case Binary(op="&&", left=left, right=right):
            return (*conjuncts(left), *conjuncts(right))
        case Unary(op="!", operand=operand):
            found = negated(operand)
            return (condition,) if found == condition else conjuncts(found)
        case Binary(op="<" | "<=" | ">" | ">=" as op, left=left, right=right):
            return _of_extremum(op, left, right) or _of_extremum(TURNED[op], right, left) or (condition,)
        case _:
            return (condition,)


def _of_extremum(op: str, side: Expr, limit: Expr) -> tuple[Expr, ...]:
    """`max(a, b) <= c` as `a <= c` and `b <= c`, `abs(a) <= c` as `a <= c` and `-c <= a`, of integers; else nothing."""
    if not side.dtype.is_integer:
        return ()
    upper = op in ("<", "<=")
    match side:
        case Binary(op="max" | "min" as extremum, left=a, right=b) if (extremum == "max") is upper:
            return tuple(part for each in (a, b) for part in conjuncts(Binary(op, each, limit, DType.BOOL, side.span)))
        case Call(function="abs", arguments=(a,)) if upper and side.dtype is DType.INT64:
            less = Unary("-", limit, limit.dtype)
            return tuple(Binary(each, a, end, DType.BOOL, side.span) for each, end in ((op, limit), (TURNED[op], less)))
        case _:
            return ()


def negated(condition: Expr) -> Expr:
    """The opposite of a condition; comparisons of floats, which may be NaN, keep their `!`."""
    match condition:
        case Unary(op="!", operand=operand):
            return operand
        case Binary(op="||", left=left, right=right):
            return Binary("&&", negated(left), negated(right), DType.BOOL, condition.span)
        case Binary(op=op, left=left) if op in _NEGATED and not left.dtype.is_float:
            return Binary(_NEGATED[op], condition.left, condition.right, DType.BOOL, condition.span)
        case _:
            return Unary("!", condition, DType.BOOL, condition.span)


def is_identity(value: Expr, operator: str) -> bool:
    """Whether a value is a number that changes nothing under an operator."""
    while isinstance(value, Cast) and _keeps_identity(operator, value.operand.dtype, value.dtype):
        value = value.operand
    if isinstance(value, Unary) and value.op == "-" and isinstance(value.operand, Const):
        value = Const(-value.operand.value, value.dtype)
    return isinstance(value, Const) and value.value == identity_of(operator, value.dtype).value


def identity_of(operator: str, dtype: DType) -> Const:
    """The identity of a reduction operator."""
    if operator == "+":
        return Const(0.0 if dtype.is_float else 0, dtype)
    if operator == "*":
        return Const(1.0 if dtype.is_float else 1, dtype)
    if dtype.is_float:
        return Const(float("inf") if operator == "min" else float("-inf"), dtype)
    low, high = dtype.limits
    return Const((bool if dtype is DType.BOOL else int)(high if operator == "min" else low), dtype)


def _keeps_identity(operator: str, before: DType, after: DType) -> bool:
    """Whether a conversion makes the identity of one type that of another one, and combines what it did."""
    if operator in ("+", "*"):
        return True
    return before is after or (before.is_float and after.is_float)


def _is_test(value: Expr) -> bool:
    """Whether a truth value is computed, and not read."""
    return isinstance(value, Binary | Unary)


def on_data(condition: Expr) -> bool:
    """Whether elements of tensors, or floats, decide, in all of its parts: no range depends on such a condition."""
    match condition:
        case Binary(op="&&" | "||", left=left, right=right):
            return on_data(left) and on_data(right)
        case Unary(op="!", operand=operand):
            return on_data(operand)
        case _:
            return any((isinstance(node, Read) and node.indices) or _is_float(node) for node in walk(condition))


def _is_float(node: Expr) -> bool:
    return node.dtype.is_float and not isinstance(node, Size)


__all__ = ["conjuncts", "identity_of", "is_identity", "negated", "on_data", "points_of"]
