"""Subscripts and bounds as polynomials of indices and sizes.

Worked example: `row * K + k` is `{("K", "row"): 1, ("k",): 1}`; with `row < M` and `k < K` its largest value is `K * M - 1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from tc_jupyter.syntax.tree import Binary, Expression, Extent, Name, Number, Unary

Polynomial: TypeAlias = Mapping[tuple[str, ...], int]
"""The factor of each product of names; that of no names is a number."""


def constant(value: int) -> Polynomial:
    """A number."""
    return {(): value} if value else {}


def plus(one: Polynomial, other: Polynomial, factor: int = 1) -> Polynomial:
    """`one + factor * other`."""
    found = {names: one.get(names, 0) + factor * other.get(names, 0) for names in (*one, *other)}
    return {names: value for names, value in found.items() if value}


def times(one: Polynomial, other: Polynomial) -> Polynomial:
    """The product."""
    found: Polynomial = {}
    for names, value in one.items():
        found = plus(found, {tuple(sorted((*names, *more))): value * factor for more, factor in other.items()})
    return found


def polynomial(node: Expression) -> Polynomial | None:
    """That of an expression; `None` where it is none."""
    match node:
        case Name():
            return {(node.name,): 1}
        case Extent():
            return {(f"{node.tensor.name}.{node.dimension}",): 1}
        case Number():
            return constant(node.value) if isinstance(node.value, int) else None
        case Unary("-"):
            operand = polynomial(node.operand)
            return None if operand is None else plus({}, operand, -1)
        case Binary("+" | "-" | "*" as operator):
            left, right = polynomial(node.left), polynomial(node.right)
            if left is None or right is None:
                return None
            return times(left, right) if operator == "*" else plus(left, right, 1 if operator == "+" else -1)
        case _:
            return None


def expression(terms: Polynomial) -> Expression:
    """A polynomial as an expression: products of indices and sizes, then the number."""
    if (
        len(terms) == 1
        and (names := next(iter(terms)))[:1]
        and names[0].startswith("(")
        and terms[names] == len(names) == 1
    ):
        return Name(names[0][1:-1])
    found: Expression | None = None
    is_named = any(names and value > 0 for names, value in terms.items())
    for names, value in sorted(terms.items(), key=lambda term: (is_named and not term[0], term[1] < 0)):
        product = _product(names, abs(value))
        if found is None:
            found = Unary("-", product) if value < 0 else product
        else:
            found = Binary("+" if value > 0 else "-", found, product)
    return found or Number("0", 0)


def _product(names: tuple[str, ...], factor: int) -> Expression:
    factors = [_atom(name) for name in names]
    if factor != 1 or not names:
        factors = [Number(str(factor), factor), *factors]
    found = factors[0]
    for each in factors[1:]:
        found = Binary("*", found, each)
    return found


def _atom(name: str) -> Expression:
    if name.startswith("("):
        return Name(name)  # what is no polynomial, in brackets
    tensor, _, dimension = name.rpartition(".")
    return Extent(Name(tensor), int(dimension)) if tensor else Name(name)


def names_of(terms: Polynomial) -> set[str]:
    """The names in it."""
    return {name for names in terms for name in names}


def factor_of(terms: Polynomial, name: str) -> Polynomial | None:
    """What a name is multiplied with; `None` where it has a power."""
    found = dict[tuple[str, ...], int]()
    for names, value in terms.items():
        if names.count(name) > 1:
            return None
        if name in names:
            found[tuple(each for each in names if each != name)] = value
    return found


def replaced(terms: Polynomial, name: str, value: Polynomial) -> Polynomial | None:
    """The polynomial with a value in the place of a name."""
    factor = factor_of(terms, name)
    if factor is None:
        return None
    rest = {names: each for names, each in terms.items() if name not in names}
    return plus(rest, times(factor, value))


def is_positive(terms: Polynomial) -> bool:
    """Whether it is 0 or more, whatever sizes the names have, none of which is negative."""
    return all(value >= 0 for value in terms.values())


Bounds: TypeAlias = Mapping[str, tuple[Polynomial, Polynomial]]
"""The first and the last value of each index; those of one may have the indices before it."""


def extremes(terms: Polynomial, bounds: Bounds) -> tuple[Polynomial, Polynomial] | None:
    """The smallest and the largest value; `None` where they are not known."""
    low: Polynomial | None = terms
    high: Polynomial | None = terms
    for name in reversed([*bounds]):
        if low is None or high is None:
            return None
        low, high = _extreme(low, name, bounds[name], 0), _extreme(high, name, bounds[name], 1)
    return None if low is None or high is None else (low, high)


def _extreme(terms: Polynomial, name: str, ends: tuple[Polynomial, Polynomial], side: int) -> Polynomial | None:
    factor = factor_of(terms, name)
    if factor is None:
        return None
    if is_positive(factor):
        return replaced(terms, name, ends[side])
    return replaced(terms, name, ends[1 - side]) if is_positive(plus({}, factor, -1)) else None


def largest(values: Iterable[Polynomial]) -> Polynomial | None:
    """The one that no other exceeds, whatever the sizes are; `None` where there is none."""
    found = list(values)
    return next((one for one in found if all(is_positive(plus(one, each, -1)) for each in found)), None)


def strides(terms: Iterable[Polynomial], indices: Iterable[str]) -> list[Polynomial] | None:
    """The steps of the dimensions of an array whose elements are counted as one row, the longest first; `None` for one dimension.

    Worked example: those of `(i * M + j) * K + k` are `K * M`, `K` and `1`.
    """
    running, found = set(indices), list[Polynomial]()
    for each in terms:
        for name in sorted(names_of(each) & running):
            step = factor_of(each, name)
            if step is None or names_of(step) & running:
                return None
            step = step if is_positive(step) or not is_positive(plus({}, step, -1)) else plus({}, step, -1)
            found += [] if step in found else [step]
    ordered = sorted(found, key=_leading, reverse=True)
    return ordered if len(ordered) > 1 and ordered[-1] == {(): 1} else None


def _leading(terms: Polynomial) -> tuple[int, tuple[str, ...], int]:
    """The product of the most names, which decides the order."""
    names = max(terms, key=lambda each: (len(each), each))
    return len(names), names, terms[names]


def quotient(one: Polynomial, other: Polynomial) -> Polynomial | None:
    """How often a step is in another one, without a rest."""
    found, rest = _divided(one, other, whole=True)
    return None if rest else found


def _divided(one: Polynomial, other: Polynomial, whole: bool = False) -> tuple[Polynomial, Polynomial]:
    """The quotient and the rest; what is `whole` may be any polynomial, else the quotient is a number."""
    _, names, factor = _leading(other)
    found, rest = constant(0), one
    for product in sorted(one, key=lambda each: (len(each), each), reverse=True):
        left, value = [*product], rest.get(product, 0)
        inside = all(name in left and left.remove(name) is None for name in names)
        if inside and value % factor == 0 and (whole or not left):
            more = {tuple(left): value // factor} if value else constant(0)
            found, rest = plus(found, more), plus(rest, times(more, other), -1)
    return found, rest


def digits(terms: Polynomial, steps: list[Polynomial], indices: Iterable[str]) -> list[Polynomial]:
    """The subscripts of an element, one for each step: indices go to their steps, other products to the longest that is in them."""
    found, running = list[Polynomial](), set(indices)
    rest = {names: value for names, value in terms.items() if not running & {*names}}
    own = {name: factor_of(terms, name) for name in names_of(terms) & running}
    for k, step in enumerate(steps):
        more, left = (rest, constant(0)) if k == len(steps) - 1 else _divided(rest, step)
        rest = left
        for name, factor in own.items():
            sign = 1 if factor == step else -1 if factor == plus({}, step, -1) else 0
            more = plus(more, {(name,): sign}) if sign else more
        found.append(more)
    return found
