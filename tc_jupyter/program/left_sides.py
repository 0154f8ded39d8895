"""Left sides whose subscripts are expressions: `H(X(i)) +=! 1`, `Y(2*i) = A(i)`.

Each dimension with such a subscript has an output index of its own, and a point takes part in the element where all of these are
equal to their subscripts. So a scatter is a reduction under a condition, which ranges, schedules and engines know; with the loops
over points outside, the equality leaves one element for each point (`loops.points`).

Worked example: `H(X(i)) +=! 1` with `uint8` elements is `H(at) +=! X(i) == at ? 1 : 0` with `0 <= at < 256`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce

from . import bits
from .expr import Binary, Call, Cast, Const, DType, Expr, IndexVar, Read, Select, Size, Unary, walk
from .integers import all_of, index_names, reads_elements
from .points import conjuncts, identity_of, points_of
from .program import Statement
from .typing import limits_of

INT64 = DType.INT64


def condition_of(statement: Statement) -> Expr | None:
    """Which points take part in an element; `None` where all do: nothing is left out, and the left side has plain indices."""
    tests = [*statement.conditions]
    tests += [
        Binary("==", subscript, IndexVar(index.name, index.span), DType.BOOL, subscript.span)
        for index, subscript in statement.computed
    ]
    return all_of(tests, statement.span) if tests else None


def with_condition(statement: Statement) -> Statement:
    """The statement with plain indices on the left, and the condition in its value.

    Where it only stores, the other points keep what is there.
    """
    condition = condition_of(statement)
    if condition is None:
        return statement
    value = statement.value
    other = kept(statement, value.dtype) if statement.operator == "=" else identity(statement, value.dtype)
    chosen = Select(condition, value, other, value.dtype, value.span)
    indices = tuple(replace(index, ends=None) for index in statement.indices)
    return replace(statement, value=chosen, left=(), indices=indices, filters=())


def identity(statement: Statement, dtype: DType) -> Expr:
    """What changes nothing where a statement combines it."""
    return identity_of(statement.operator, dtype) if statement.identity is None else statement.identity


def keeps(statement: Statement) -> bool:
    """Whether a statement of a schedule stores at the points of a condition, each in its own element, and keeps the others."""
    value = statement.value
    return statement.operator == "=" and isinstance(value, Select) and value.otherwise == kept(statement, value.dtype)


def kept(statement: Statement, dtype: DType) -> Expr:
    """The element of the target at the present point."""
    indices = tuple(IndexVar(index.name, index.span) for index in statement.output_indices)
    return Read(statement.target, indices, dtype, statement.span)


def places(statement: Statement) -> list[tuple[str, Expr]]:
    """The output indices that the points of a statement of a schedule decide, and what each is equal to.

    Elements may decide in each row for itself: `b` may stand in the place of `at`, as in `I(b, n) == at`, unless points decide it.
    """
    outputs = {index.name for index in statement.output_indices}
    points = {index.name for index in statement.reduction_indices}
    found = [_decided(condition, outputs, points) for condition in conditions_of(statement)]
    chosen = {each[0] for each in found if each is not None}
    return [each for each in found if each is not None and not index_names(each[1]) & chosen]


def conditions_of(statement: Statement) -> tuple[Expr, ...]:
    """The conditions under which a point takes part in an element, those of places among them."""
    if keeps(statement) and isinstance(statement.value, Select):
        return conjuncts(statement.value.condition)
    if statement.operator == "fold":
        test = folded_where(statement)
        return () if test is None else conjuncts(test)
    return () if statement.operator == "=" else points_of(statement.value, statement.operator)[0]


def folded_where(statement: Statement) -> Expr | None:
    """The condition of the points that a fold combines: the others have the identity."""
    value = statement.value
    if not isinstance(value, Select) or statement.identity is None or value.otherwise != statement.identity:
        return None
    return value.condition


def _decided(condition: Expr, outputs: set[str], points: set[str]) -> tuple[str, Expr] | None:
    if not isinstance(condition, Binary) or condition.op != "==":
        return None
    for here, other in ((condition.left, condition.right), (condition.right, condition.left)):
        names = index_names(other)
        alone = not names & outputs or reads_elements(other)
        if isinstance(here, IndexVar) and here.name in outputs - names and names & points and alone:
            return here.name, other
    return None


def decided_by_data(subscript: Expr) -> bool:
    """Whether elements of tensors, or floats, say what a subscript is."""
    return any((isinstance(node, Read) and node.indices) or node.dtype.is_float for node in walk(subscript))


def largest(subscript: Expr) -> Expr | None:
    """The largest value that a subscript can have whatever the data: of small types, remainders and limited values; else `None`.

    Worked examples: 255 for an element of `uint8`, `K - 1` for `X(i) % K`, 63 for `min(max(X(i), 0), 63)`.
    """
    match subscript:
        case Const() | Size() | Read(indices=()):
            return subscript if subscript.dtype is INT64 else Cast(subscript, INT64, subscript.span)
        case Cast(operand=operand):
            inner = None if operand.dtype.is_float else largest(operand)
            keeps = operand.dtype is DType.BOOL or subscript.dtype.bits >= operand.dtype.bits
            return inner if inner is not None and keeps else _of_type(subscript.dtype)
        case Read():
            return _of_type(subscript.dtype)
        case Binary(op="%", right=right) if not decided_by_data(right):
            divisor = largest(right)
            return None if divisor is None else _binary("-", divisor, Const(1, INT64))
        case Binary(op="min" | "max" as op, left=left, right=right):
            ends = [largest(left), largest(right)]
            known = [end for end in ends if end is not None]
            if op == "max" and len(known) < 2:
                return None
            return reduce(lambda a, b: _binary(op, a, b), known) if known else None
        case Binary(op="//" as op, left=left, right=Const(value=by)) if by > 0:
            inner = largest(left)
            return None if inner is None else _binary(op, inner, Const(int(by), INT64))
        case Binary(op="*", left=left, right=Const(value=by)) | Binary(op="*", left=Const(value=by), right=left) if (
            by > 0
        ):
            inner = largest(left)
            return None if inner is None else _binary("*", inner, Const(int(by), INT64))
        case Binary(op="+", left=left, right=right):
            first, second = largest(left), largest(right)
            return None if first is None or second is None else _binary("+", first, second)
        case Binary(op="-", left=left, right=Const() as right):
            inner = largest(left)
            return None if inner is None else _binary("-", inner, Const(int(right.value), INT64))
        case Select(then=then, otherwise=otherwise):
            first, second = largest(then), largest(otherwise)
            return None if first is None or second is None else _binary("max", first, second)
        case Call(function="bitand", arguments=(_, Const(value=mask))) if mask >= 0:
            return Const(int(mask), INT64)
        case Call(function=function) if function in bits.OPERATORS:
            low, high = limits_of(subscript)
            return Const(high, INT64) if low >= 0 and high <= DType.UINT16.limits[1] else None
        case IndexVar() | Unary() | Call() | Binary():
            return None
    raise AssertionError(subscript)


def _of_type(dtype: DType) -> Expr | None:
    return Const(int(dtype.limits[1]), INT64) if dtype in (DType.UINT8, DType.UINT16, DType.BOOL) else None


_FOLDED: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "min": min,
    "max": max,
}


def _binary(op: str, left: Expr, right: Expr) -> Expr:
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(_FOLDED[op](int(left.value), int(right.value)), INT64)
    return Binary(op, left, right, INT64)


__all__ = [
    "condition_of",
    "decided_by_data",
    "folded_where",
    "identity",
    "keeps",
    "kept",
    "largest",
    "places",
    "with_condition",
]
