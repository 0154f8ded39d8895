"""What is known of the sizes of a call before there is one: between which numbers each lies, and of what it is a multiple.

Calls of which the same facts hold share their code, so code may rely on them; schedules choose tiles by them.

Worked example: `Fact(17, 31)` is any size from 17 to 31, `Fact(64, multiple=64)` is 64, 128, 192 and so on. With the second one for
`N`, `fact_of(N - 2, facts)` is `Fact(62, multiple=2)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd
from typing import NamedTuple

from .size_expr import Name, SizeExpr

MANY = 4096
"""What a size counts as of which only a lower end is known; one less where it is no multiple of 64."""


class Fact(NamedTuple):
    """What holds of a size: a tuple, since every call with new sizes asks for the facts by which its code is found.

    Attributes:
        least, most: the ends, both included; `None`: there is none. A size of 0 has the facts of larger ones: no loop over it runs.
        multiple: a number that divides it.
        parts: of an array whose elements data chooses: in how many parts the points for them are best taken; 1: as a whole.
    """

    least: int = 1
    most: int | None = None
    multiple: int = 1
    parts: int = 1

    @property
    def fixed(self) -> bool:
        """Whether it is one number."""
        return self.least == self.most

    @property
    def typical(self) -> int:
        """The number that it counts as where one is needed, its upper end."""
        return self.most if self.most is not None else MANY - (self.multiple % 64 != 0)

    @property
    def values(self) -> range:
        """All that it may be, up to the typical one."""
        return range(-(-self.least // self.multiple) * self.multiple, self.typical + 1, self.multiple)


Facts = Mapping[str, Fact]


def exactly(value: int) -> Fact:
    """The fact that a size is a number."""
    return Fact(value, value, max(1, value))


def facts_of(sizes: Mapping[str, Fact | int]) -> dict[str, Fact]:
    """Facts of sizes, some of which are given as numbers."""
    return {name: exactly(size) if isinstance(size, int) else size for name, size in sizes.items()}


def fact_of(expr: SizeExpr, facts: Facts) -> Fact | None:
    """What holds of an expression; `None` where there is something in it of which nothing is known.

    Of a sum it is exact; of other expressions, of sizes that are not fixed, only the typical value counts.
    """
    typical = value_at(expr, {name: facts[name].typical for name in expr.names & facts.keys()})
    if typical is None:
        return None
    if all(facts[name].fixed for name in expr.names):
        return exactly(typical)
    terms = [
        (atoms[0].name, weight) for atoms, weight in expr.ordered() if len(atoms) == 1 and isinstance(atoms[0], Name)
    ]
    if len(terms) < len(expr.terms):
        return Fact(1, typical)
    low, high = (_end([(facts[name], weight * sign) for name, weight in terms]) for sign in (1, -1))
    multiple = gcd(expr.offset, *(facts[name].multiple * weight for name, weight in terms))
    return Fact(1 if low is None else low + expr.offset, None if high is None else expr.offset - high, multiple)


def value_at(expr: SizeExpr, sizes: Mapping[str, int]) -> int | None:
    """The value at numbers that sizes count as; `None` where one has no number, an element decides, or a divisor is 0 there."""
    try:
        return expr.evaluate(sizes) if expr.names <= sizes.keys() else None
    except (KeyError, ZeroDivisionError):
        return None


def _end(terms: Iterable[tuple[Fact, int]]) -> int | None:
    """The smallest value of a sum, if there is one."""
    ends = [
        None if (end := fact.least if weight > 0 else fact.most) is None else end * weight for fact, weight in terms
    ]
    return None if None in ends else sum(end for end in ends if end is not None)
