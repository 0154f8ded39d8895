"""Sums of products that are cheaper in two statements.

A statement computes every point of its indices. A factor that does not depend on a reduction index can wait until that sum is done,
by the distributive law; where the sum then needs fewer indices, both statements together compute fewer points than the one.

Worked example: `E(i,l) +=! A(i,j) * B(j,k) * C(k,l)` has `I*J*K*L` points. `C(k,l)` does not depend on `j`, so
`D(i,k) +=! A(i,j) * B(j,k)` can come first, and `E(i,l) +=! D(i,k) * C(k,l)` after it: `I*J*K + I*K*L` points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .expr import Binary, Cast, Expr, IndexVar, walk


@dataclass(frozen=True, slots=True)
class Factored:
    """How to write a sum of products as two statements.

    Attributes:
        factors: all factors of the product, in order.
        first: the places of the factors that the first statement sums.
        over: the reduction indices of the first statement.
        kept: the indices of its result, in the order of the statement's indices.
        again: the indices for whose every value the one statement computes the first sum again.
        counts: the number of indices of the first statement, of the second one, and of the one statement.
    """

    factors: tuple[Expr, ...]
    first: tuple[int, ...]
    over: tuple[str, ...]
    kept: tuple[str, ...]
    again: tuple[str, ...]
    counts: tuple[int, int, int]


def factored(value: Expr, output: Sequence[str], reduction: Sequence[str]) -> Factored | None:
    """The two statements with the fewest indices for a sum of `value` over `reduction`, or `None` where one is as good.

    Factors that are converted are left alone: the sum of some of them could be rounded, or wrap, in another type.
    """
    factors = tuple(_factors(value))
    if len(factors) < 2 or any(isinstance(node, Cast) for node in factors):
        return None
    order = (*output, *reduction)
    found = [{node.name for node in walk(factor) if isinstance(node, IndexVar)} for factor in factors]
    everything = set[str]().union(*found)
    best: Factored | None = None
    for index in reduction:
        first = tuple(number for number, names in enumerate(found) if index in names)
        inside = set[str]().union(*(found[number] for number in first))
        outside = set[str]().union(*(names for number, names in enumerate(found) if number not in first))
        if not first or not outside - inside:
            continue
        over = tuple(name for name in reduction if name in inside and name not in outside)
        kept = tuple(name for name in order if name in inside and name not in over)
        counts = (len(inside), len(outside | set(kept)), len(everything))
        if best is None or max(counts[:2]) < max(best.counts[:2]):
            again = tuple(name for name in order if name in outside and name not in inside)
            best = Factored(factors, first, over, kept, again, counts)
    return best


def _factors(value: Expr) -> list[Expr]:
    if isinstance(value, Binary) and value.op == "*":
        return [*_factors(value.left), *_factors(value.right)]
    return [value]
