"""`argmin` and `argmax` as statements on plain operators: the extreme value, then the least position at which it is attained.

Worked example: `P(n) argmax=! X(n, m)` is read as

    P.max(n) max=! X(n, m)
    P(n) min=! X(n, m) == P.max(n) || (P.max(n) != P.max(n) && X(n, m) != X(n, m)) ? m : 9223372036854775807

where the second comparison finds the first NaN, if there is one. A value whose bits may differ when it is computed twice, as those
of `A(n, k) * B(k) + C(k)` do, is a temporary of its own, `P.value(n, k)`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tc_jupyter.diagnostics import Span
from tc_jupyter.syntax import tree

from .expr import Binary, Call, DType, Expr, walk
from .positions import NO_POSITION

OPERATORS = {"argmin=!": "min", "argmax=!": "max"}
"""Operators of positions, with those of the values."""
_EXACT = frozenset({"abs", "floor", "ceil", "trunc", "isnan", "isinf", "rounded"})


def is_exact(value: Expr) -> bool:
    """Whether a value has the same bits wherever it is computed: no product meets a sum, and no function is an approximation."""
    if not value.dtype.is_float:
        return True
    nodes = tuple(walk(value))
    operators = {node.op for node in nodes if isinstance(node, Binary) and node.dtype.is_float}
    exact = all(node.function in _EXACT for node in nodes if isinstance(node, Call))
    return exact and not ("*" in operators and operators & {"+", "-"})


def value_statement(node: tree.Comprehension, target: tree.Name, value: tree.Expression) -> tree.Comprehension:
    """The statement that finds the extreme value: `P.max(n) max=! X(n, m)`."""
    lets = needed(node.clauses, [value])
    operator = OPERATORS[node.operator] + "=!"
    return replace(node, target=target, operator=operator, value=value, clauses=lets, at=None, before=())


def stored_value(
    node: tree.Comprehension, name: str, reduced: Sequence[str]
) -> tuple[tree.Comprehension, tree.Expression]:
    """The statement that stores every value: `P.value(n, m) = A(n, m) * B(m) + C(m)`; and the read that stands for it then."""
    place = node.value.span
    indices = (*(node.indices or ()), *(tree.Name(index, place) for index in reduced))
    target = tree.Name(name, place)
    statement = replace(
        node,
        target=target,
        indices=indices,
        operator="=",
        at=None,
        before=(),
        clauses=needed(node.clauses, [node.value]),
    )
    return statement, element(target, indices, place)


def position_statement(
    node: tree.Comprehension, value: tree.Expression, extreme: tree.Name, at: tree.Expression, is_float: bool
) -> tree.Comprehension:
    """The statement that finds the least position: `P(n) min=! X(n, m) == P.max(n) ? m : 9223372036854775807`."""
    place = node.value.span
    found = element(extreme, node.indices, extreme.span)
    same: tree.Expression = tree.Binary("==", value, found, place, place)
    if is_float:
        unknown = tree.Binary("!=", found, found, place, place)
        both = tree.Binary("&&", unknown, tree.Binary("!=", value, value, place, place), place, place)
        same = tree.Binary("||", same, both, place, place)
    nowhere = tree.Number(f"{NO_POSITION}l", NO_POSITION, "int64", place)
    chosen = tree.Conditional(same, at, nowhere, place)
    lets = needed(node.clauses, [value, at])
    return replace(node, operator="min=!", value=chosen, clauses=lets, at=at, before=())


def as_stored(value: tree.Expression, dtype: DType) -> tree.Expression:
    """The value as an element of a type holds it: `int8(int8(X(n) * X(n)))`.

    Comparisons do not wrap arithmetic around, and a cast to a wider type is part of it: only one to its own type is not
    looked into.
    """
    for _ in range(2):
        value = tree.Apply(tree.Name(dtype.value, value.span), (value,), value.span)
    return value


def copied(node: tree.Comprehension, first: tree.Name) -> tree.Comprehension:
    """The statement that looks whether there is a position: `P(n) = P.first(n)`."""
    left = {index.name for index in node.indices or () if isinstance(index, tree.Name)}
    ranges = tuple(each for each in node.clauses if isinstance(each, tree.Where) and each.index.name in left)
    value = element(first, node.indices, first.span)
    return replace(node, operator="=", value=value, at=value, before=(), clauses=ranges, matched=None)


def row_major(reduced: Sequence[str], value: tree.Expression, clauses: Sequence[tree.Clause]) -> str | None:
    """`h*X.2 + w`: the number of a point in the order of rows; `None` where a length stands nowhere in the text."""
    lengths = [_length(index, value, clauses) for index in reduced[1:]]
    text = reduced[0]
    for index, length in zip(reduced[1:], lengths, strict=True):
        if length is None:
            return None
        text = f"({text})*{length} + {index}" if "+" in text else f"{text}*{length} + {index}"
    return text


def element(target: tree.Name, indices: Sequence[tree.Expression] | None, place: Span) -> tree.Expression:
    """What a target is read as: `P(n)`."""
    return target if not indices else tree.Apply(target, tuple(indices), place)


def needed(clauses: Sequence[tree.Clause], parts: Sequence[tree.Expression]) -> tuple[tree.Clause, ...]:
    """The clauses without lets that no part mentions, also not through other lets."""
    known = _names(parts)
    for clause in clauses:
        known |= set() if isinstance(clause, tree.Let) else _names(tree.parts(clause))
    for let in reversed(tree.ordered_lets(clauses)):
        known |= _names((let.value,)) if let.name.name in known else set()
    return tuple(each for each in clauses if not isinstance(each, tree.Let) or each.name.name in known)


def _names(parts: Collection[tree.Expression]) -> set[str]:
    return {item.name for part in parts for item in tree.walk(part) if isinstance(item, tree.Name)}


def _length(index: str, value: tree.Expression, clauses: Sequence[tree.Clause]) -> str | None:
    """The length of an index that begins at 0: that of its range, or of the dimension that it indexes alone."""
    for clause in clauses:
        if isinstance(clause, tree.Where) and clause.index.name == index:
            plain = isinstance(clause.lower, tree.Number) and clause.lower.value == 0
            return clause.upper.name if plain and isinstance(clause.upper, tree.Name) else None
    for item in tree.walk(value):
        places = item.arguments if isinstance(item, tree.Apply) else ()
        for number, place in enumerate(places):
            if isinstance(place, tree.Name) and place.name == index and isinstance(item, tree.Apply):
                return f"{item.function.name}.{number}"
    return None
