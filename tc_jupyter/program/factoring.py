"""Sums of products in two statements.

A factor without a reduction index can wait until that sum is done, by the distributive law. Where the sum then needs
fewer indices, both statements together compute fewer points than the one.

Worked example: `E(i,l) +=! A(i,j) * B(j,k) * C(k,l)` has `I*J*K*L` points. `C(k,l)` does not depend on `j`, so
`D(i,k) +=! A(i,j) * B(j,k)` can come first, and `E(i,l) +=! D(i,k) * C(k,l)` after it: `I*J*K + I*K*L` points.

`Y(n) +=! X(n,i) * S(i,j) * X(n,j)` has no such part. Still the sum over `j` can come first: it is a product of matrices, of which
each element that is loaded is used in many points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

from .expr import Binary, Cast, Expr
from .integers import index_names


@dataclass(frozen=True, slots=True)
class Factored:
    """How to write a sum of products as two statements.

    Attributes:
        factors: all factors of the product, in order.
        first: the places of the factors that the first statement combines.
        over: the reduction indices of the first statement.
        kept: the indices of its result, in the order of the statement's indices.
        indices: of the first statement, and of the second one.
        reuses: whether elements that are loaded are used in many points of the first statement, and not in many of the one.
    """

    factors: tuple[Expr, ...]
    first: tuple[int, ...]
    over: tuple[str, ...]
    kept: tuple[str, ...]
    indices: tuple[frozenset[str], frozenset[str]]
    reuses: bool


def summed_first(
    value: Expr, operator: str, output: Sequence[str], reduction: Sequence[str], index: str
) -> Factored | None:
    """The two statements, the first of which combines the factors with one index; `None` where the one is as good.

    Factors that are converted are left alone: the sum of some of them could be rounded, or wrap, in another type. What all results
    along an index have in common is the only factor of other operators.
    """
    factors = tuple(factors_in(value)) if operator == "+" else (value,)
    if len(factors) > 1 and any(isinstance(node, Cast) for node in factors):
        return None
    found = [index_names(factor) for factor in factors]
    first = tuple(number for number, names in enumerate(found) if index in names)
    inside = frozenset[str]().union(*(found[number] for number in first))
    outside = frozenset(output).union(*(names for number, names in enumerate(found) if number not in first))
    over = tuple(name for name in reduction if name in inside and name not in outside)
    kept = tuple(name for name in (*output, *reduction) if name in inside and name not in over)
    reuses = _reuse([found[number] for number in first], kept) and not _reuse(found, output)
    if not first or (outside <= inside and not (reuses and over)):
        return None
    return Factored(factors, first, over, kept, (inside, outside.union(kept)), reuses)


def _reuse(factors: Sequence[frozenset[str]], results: Sequence[str]) -> bool:
    """Whether two factors each lack an index of the results that the other one has, as those of a product of matrices."""
    own = [names.intersection(results) for names in factors]
    return any(one - other and other - one for one, other in combinations(own, 2))


def product_of(factors: Sequence[Expr]) -> Expr:
    """The product of factors of one type, from left to right."""
    return reduce(lambda left, right: Binary("*", left, right, left.dtype), factors)


def factors_in(value: Expr) -> list[Expr]:
    """What a product is made of, from left to right."""
    if isinstance(value, Binary) and value.op == "*":
        return [*factors_in(value.left), *factors_in(value.right)]
    return [value]
