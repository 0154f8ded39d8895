"""A read through remainders, limits and conditions -> a copy that is read at plain sums of indices.

Worked example: `Y(i) +=! X((i + k) % N) * F(k)` reads `X` at a function of `i + k`. With `T(u) = X(u % N)` it is
`Y(i) +=! T(i + k) * F(k)`, a window like any other. A condition on indices around the read belongs to it:
`0 <= i + k && i + k < N ? X(i + k) : 0` is `T(i + k)` with `T(u) = 0 <= u && u < N ? X(u) : 0`.

Source: TVM, `reindex_cache_read`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tc_jupyter.program import Binary, Cast, Const, DType, Expr, Read, Select, children, rebuild, walk
from tc_jupyter.ranges import Box, Name, SizeExpr, constant, from_expr, index, nonnegative, to_expr

from .stage import Stage

Sum = tuple[tuple[str, int], ...]
"""Indices with their coefficients, by name: `i + k` without what does not move."""


@dataclass(frozen=True, slots=True)
class Operand:
    """What a stage reads from a tensor, as a function of sums of its indices.

    Attributes:
        place: the part of the statement's value that the copy stands for.
        sums: one per dimension of the copy; together they have every index once.
        bounds: where each sum begins and ends.
    """

    place: Expr
    sums: tuple[Sum, ...]
    bounds: tuple[tuple[SizeExpr, SizeExpr], ...]

    def value(self, names: tuple[str, ...]) -> Expr:
        """The element of the copy at `names`."""
        return _with_sums(self.place, dict(zip(self.sums, names, strict=True)))

    @property
    def subscripts(self) -> tuple[Expr, ...]:
        """Where the stage reads the copy."""
        return tuple(_expression(each) for each in self.sums)

    def is_window(self, outputs: Collection[str]) -> bool:
        """Whether results read elements of the copy that others read too: `outputs` are the indices of results.

        Such a copy is about as large as the results. That of a sum over two reductions is as large as they are long.
        """
        return any(len(each) > 1 and any(name in outputs for name, _ in each) for each in self.sums)


def operand(stage: Stage, tensor: str, box: Box) -> Operand | None:
    """What a stage reads from a tensor; `None` if that is no function of sums of indices, each of which has indices of its own.

    The copy has no more dimensions than the tensor. For sizes of 1 and more it reads nothing that the stage does not: every element
    of it is read, or whatever the indices are, the tensor has the element.

    Args:
        box: of the tensor.
    """
    places = {read.indices for read in stage.statement.reads() if read.tensor == tensor}
    place = _with_conditions(stage.statement.value, tensor)
    if place is None or len(places) != 1 or stage.relations or stage.limits:
        return None
    if any(isinstance(node, Read) and node.tensor != tensor for node in walk(place)):
        return None
    (subscripts,) = places
    found: dict[Sum, None] = {}
    for expr in (*subscripts, place):
        _collect(expr, found)
    sums = tuple(found)
    names = [name for each in sums for name, _ in each]
    if len(set(names)) < len(names) or not 0 < len(sums) <= len(subscripts):
        return None
    domains = {root.name: root.dom for root in stage.roots}
    if not all(_has_no_gaps(each, domains) for each in sums):
        return None
    always = _is_always_read(stage.statement.value, place)
    has_points = all(nonnegative(high - low - 1) for low, high in domains.values())
    if not (has_points and always) and not all(map(_is_inside, subscripts, box.bounds)):
        return None
    return Operand(place, sums, tuple(_bounds(each, domains) for each in sums))


def _with_conditions(value: Expr, tensor: str) -> Expr | None:
    """The largest choice by conditions on indices that is all about the reads of a tensor, or the read itself.

    `None` if they do not stand in one place.
    """
    if isinstance(value, Read) and value.tensor == tensor:
        return value
    inside = [child for child in children(value) if _mentions(child, tensor)]
    if isinstance(value, Select):
        alone = all(node.tensor == tensor for node in walk(value) if isinstance(node, Read))
        if alone and not any(isinstance(node, Read) for node in walk(value.condition)) and _is_choice(value):
            return value
    return _with_conditions(inside[0], tensor) if len(inside) == 1 else None


def _is_always_read(value: Expr, place: Expr) -> bool:
    """Whether no condition outside of a place decides that it is not needed, and perhaps not there."""
    match value:
        case _ if value == place:
            return True
        case Select():
            return place not in walk(value.then) and place not in walk(value.otherwise)
        case Binary(op="&&" | "||"):
            return place not in walk(value.right) and _is_always_read(value.left, place)
        case _:
            return all(_is_always_read(child, place) for child in children(value) if place in walk(child))


def _is_choice(value: Expr) -> bool:
    """Whether a value is a read or a constant, chosen by conditions: nothing that would be computed earlier than asked for."""
    match value:
        case Select():
            return _is_choice(value.then) and _is_choice(value.otherwise)
        case _:
            return isinstance(value.operand if isinstance(value, Cast) else value, Read | Const)


def _mentions(expr: Expr, tensor: str) -> bool:
    return any(isinstance(node, Read) and node.tensor == tensor for node in walk(expr))


# --- sums ------------------------------------------------------------------------------------------------------------


def _sum_of(expr: Expr) -> tuple[Sum, SizeExpr] | None:
    """The sum in an expression that is one, and what else is in it; an index with a step is a sum only beside another one."""
    if expr.dtype is not DType.INT64:
        return None
    rest, found = from_expr(expr), list[tuple[str, int]]()
    for product, weight in rest.ordered():
        match product:
            case (Name(kind="index", name=name),):
                found.append((name, weight))
                rest = rest - index(name) * weight
            case _:
                pass
    is_sum = len(found) > 1 or [weight for _, weight in found] == [1]
    return (tuple(sorted(found)), rest) if is_sum and not rest.indices else None


def _collect(expr: Expr, found: dict[Sum, None]) -> None:
    whole = _sum_of(expr)
    if whole is not None:
        found[whole[0]] = None
    else:
        for child in children(expr):
            _collect(child, found)


def _with_sums(expr: Expr, names: Mapping[Sum, str]) -> Expr:
    """The expression with an index in the place of every sum."""
    whole = _sum_of(expr)
    if whole is None:
        return rebuild(expr, tuple(_with_sums(child, names) for child in children(expr)))
    return to_expr(index(names[whole[0]]) + whole[1])


def _expression(total: Sum) -> Expr:
    return to_expr(sum((index(name) * weight for name, weight in total), constant(0)))


# --- where a sum begins and ends -------------------------------------------------------------------------------------


def _has_no_gaps(total: Sum, domains: Mapping[str, tuple[SizeExpr, SizeExpr]]) -> bool:
    """Whether the sum takes every value between its ends: indices with a step are filled by those without."""
    if any(low.indices or high.indices for low, high in (domains[name] for name, _ in total)):
        return False
    reach = 1
    for name, weight in sorted(total, key=lambda each: abs(each[1])):
        if abs(weight) > reach:
            return False
        low, high = domains[name]
        extent = high - low
        if not extent.is_constant:
            continue  # one value of it is sure, which fills nothing
        reach += abs(weight) * (extent.constant - 1)
    return True


def _is_inside(subscript: Expr, bounds: tuple[SizeExpr, SizeExpr]) -> bool:
    """Whether a subscript is inside whatever its indices are: a remainder, or between two limits."""
    where, (low, high) = from_expr(subscript), bounds
    return nonnegative(where - low) and nonnegative(high - 1 - where)


def _bounds(total: Sum, domains: Mapping[str, tuple[SizeExpr, SizeExpr]]) -> tuple[SizeExpr, SizeExpr]:
    low, last = constant(0), constant(0)
    for name, weight in total:
        first, end = domains[name]
        near, far = (first, end - 1) if weight > 0 else (end - 1, first)
        low, last = low + near * weight, last + far * weight
    return low, last + 1
