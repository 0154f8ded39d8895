"""`lse` as statements on plain operators: the logarithm of a sum of powers, which no power overflows.

Worked example: `L(n) lse=! X(n, m)` is read as

    L.max(n) max=! X(n, m)
    L.sum(n) +=! exp(X(n, m) - L.max(n))
    L(n) = L.max(n) + log(L.sum(n))

where 0 stands in the place of a maximum that is infinite: the powers are then 0 or infinite themselves.
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.diagnostics import Span
from tc_jupyter.syntax import tree

from .expr import DType
from .extremes import element, needed

OPERATOR = "lse=!"


def largest(node: tree.Comprehension, target: tree.Name) -> tree.Comprehension:
    """`L.max(n) max=! X(n, m)`."""
    return replace(node, target=target, operator="max=!", clauses=needed(node.clauses, [node.value]))


def sum_of_powers(node: tree.Comprehension, target: tree.Name, most: tree.Name, dtype: DType) -> tree.Comprehension:
    """`L.sum(n) +=! exp(X(n, m) - L.max(n))` in a type in which one computes, that of the result if it has more bits."""
    place = node.value.span
    value = _wide(node.value, dtype)
    difference = tree.Binary("-", value, _finite(node, most, dtype), place, place)
    power = _applied("exp", difference, place)
    return replace(node, target=target, operator="+=!", value=power, clauses=needed(node.clauses, [node.value]))


def logarithm(
    node: tree.Comprehension, total: tree.Name, most: tree.Name, dtype: DType, own: DType
) -> tree.Comprehension:
    """`L(n) = L.max(n) + log(L.sum(n))` in the same type, and as the result is stored."""
    place, left = node.value.span, {index.name for index in node.indices or () if isinstance(index, tree.Name)}
    log = _applied("log", element(total, node.indices, place), place)
    whole: tree.Expression = tree.Binary("+", _finite(node, most, dtype), log, place, place)
    if own is not dtype:
        whole = _applied(own.value, whole, place)
    ranges = tuple(each for each in node.clauses if isinstance(each, tree.Where) and each.index.name in left)
    return replace(node, operator="=", value=whole, clauses=ranges, matched=None)


def _finite(node: tree.Comprehension, most: tree.Name, dtype: DType) -> tree.Expression:
    """The maximum, or 0 where it is infinite."""
    place = node.value.span
    read = _wide(element(most, node.indices, most.span), dtype)
    infinite = _applied("isinf", read, place)
    return tree.Conditional(infinite, tree.Number("0", 0, None, place), read, place)


def _wide(value: tree.Expression, dtype: DType) -> tree.Expression:
    return _applied(dtype.value, value, value.span)


def _applied(function: str, value: tree.Expression, place: Span) -> tree.Expression:
    return tree.Apply(tree.Name(function, place), (value,), place)
