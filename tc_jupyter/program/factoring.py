"""Sums of products in two statements.

A factor without a reduction index can wait until that sum is done, by the distributive law. Where the sum then needs
fewer indices, both statements together compute fewer points than the one.

Worked example: `E(i,l) +=! A(i,j) * B(j,k) * C(k,l)` has `I*J*K*L` points. `C(k,l)` does not depend on `j`, so
`D(i,k) +=! A(i,j) * B(j,k)` can come first, and `E(i,l) +=! D(i,k) * C(k,l)` after it: `I*J*K + I*K*L` points.

`Y(n) +=! X(n,i) * S(i,j) * X(n,j)` has no such part. Still the sum over `j` can come first: it is a product of matrices, of which
each element that is loaded is used in many points.

A condition stands before a product as a factor does: `S(L(i)) +=! X(i,d)`, which combines where `L(i)` is the index of `S`, adds up
the rows of `X` first, and then `N` numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

from .expr import Binary, Cast, Expr, Select
from .integers import all_of, index_names
from .points import identity_of, points_of


@dataclass(frozen=True, slots=True)
class Product:
    """Factors of one type, in order, at the points at which tests hold."""

    tests: tuple[Expr, ...]
    factors: tuple[Expr, ...]

    @property
    def names(self) -> list[frozenset[str]]:
        """The indices of each."""
        return [index_names(each) for each in (*self.tests, *self.factors)]

    @property
    def rank(self) -> int:
        """The most indices of one factor."""
        return max((len(index_names(each)) for each in self.factors), default=0)

    def split(self, index: str) -> tuple[Product, Product]:
        """What has an index, and the others."""
        own, others = ([each for each in self.tests if (index in index_names(each)) is has] for has in (True, False))
        mine, rest = ([each for each in self.factors if (index in index_names(each)) is has] for has in (True, False))
        return Product(tuple(own), tuple(mine)), Product(tuple(others), tuple(rest))

    def value(self, operator: str) -> Expr:
        """What an operator combines."""
        product = product_of(self.factors)
        if not self.tests:
            return product
        condition = all_of(self.tests)
        return Select(condition, product, identity_of(operator, product.dtype), product.dtype)


@dataclass(frozen=True, slots=True)
class Factored:
    """How to write a sum of products as two statements.

    Attributes:
        first: what the first statement combines.
        others: what the second one does, beside the results of the first one.
        over: the reduction indices of the first statement.
        kept: the indices of its result, in the order of the statement's indices.
        indices: of the first statement, and of the second one.
        reuses: whether elements that are loaded are used in many points of the first statement, and not in many of the one.
    """

    first: Product
    others: Product
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
    tests, value = points_of(value, operator)
    whole = Product(tests, tuple(factors_in(value)) if operator == "+" else (value,))
    if len(whole.factors) > 1 and any(isinstance(node, Cast) for node in whole.factors):
        return None
    first, others = whole.split(index)
    if not first.factors or (
        first.tests and others.factors
    ):  # what a test leaves out is 0, and nothing else multiplies it
        return None
    inside, outside = frozenset[str]().union(*first.names), frozenset(output).union(*others.names)
    over = tuple(name for name in reduction if name in inside and name not in outside)
    kept = tuple(name for name in (*output, *reduction) if name in inside and name not in over)
    reuses = _reuse(first.names, kept) and not _reuse(whole.names, output)
    if outside <= inside and not (reuses and over):
        return None
    return Factored(first, others, over, kept, (inside, outside.union(kept)), reuses)


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
