"""Random statements that read their own target, and what brute force says of them: whether the order is right, and the values.

A program is a few numbers from which both its text and its meaning follow, so that nothing of `tc_jupyter` is needed for the latter.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import numpy as np

NAMES = ("i", "j", "k")
SIZES = ("N", "M", "L")
TESTS = (
    ("{a} > {c}", lambda p, a, b, c, sizes: p[a] > c),
    ("{a} % 2 == {c} % 2", lambda p, a, b, c, sizes: p[a] % 2 == c % 2),
    ("{a} + {b} < {n}", lambda p, a, b, c, sizes: p[a] + p[b] < sizes[a]),
    ("{a} <= {b} + {c}", lambda p, a, b, c, sizes: p[a] <= p[b] + c),
    ("{a} < {n} - {c}", lambda p, a, b, c, sizes: p[a] < sizes[a] - c),
)
SUBSCRIPTS = (
    ("{a} + {c}", lambda p, a, b, c, sizes: p[a] + c),
    ("{c}", lambda p, a, b, c, sizes: c),
    ("{b} + {c}", lambda p, a, b, c, sizes: p[b] + c),
    ("2*{a} + {c}", lambda p, a, b, c, sizes: 2 * p[a] + c),
    ("{a}/2 + {c}", lambda p, a, b, c, sizes: p[a] // 2 + c),
    ("{n} - 1 - {a}", lambda p, a, b, c, sizes: sizes[a] - 1 - p[a]),
)


@dataclass(frozen=True)
class Part:
    """A subscript or a condition: its form, the two indices and the number in it."""

    form: int
    a: int
    b: int
    c: int

    def text(self, forms):
        found = forms[self.form][0].format(a=NAMES[self.a], b=NAMES[self.b], c=self.c, n=SIZES[self.a])
        return found.replace("+ -", "- ").replace("- -", "+ ")

    def value(self, forms, point, sizes):
        return forms[self.form][1](point, self.a, self.b, self.c, sizes)


@dataclass(frozen=True)
class Recurrence:
    """`Y(i, j) = (test ? Y(...) else 0 : 0) + ... + X(i, j) along ...`; `later`: an earlier statement has written `Y`."""

    rank: int
    reads: tuple
    tests: tuple
    order: tuple
    later: bool = False
    operator: str = "="

    @property
    def text(self):
        left = ", ".join(NAMES[: self.rank])
        terms = []
        for read, test in zip(self.reads, self.tests, strict=True):
            term = f"(Y({', '.join(part.text(SUBSCRIPTS) for part in read)}) else 0)"
            terms.append(f"({test.text(TESTS)} ? {term} : 0)" if test is not None else term)
        along = ", ".join(("-" if step < 0 else "") + NAMES[place] for place, step in self.order)
        dims = ", ".join(SIZES[: self.rank])
        first = f"Y({left}) = 3*X({left})  " if self.later else ""
        return (
            f"def f(int32({dims}) X) -> (Y) {{ {first}Y({left}) = {' + '.join((*terms, f'X({left})'))} along {along} }}"
        )

    def rank_of(self, point):
        """When a point is taken."""
        return tuple(point[place] * step for place, step in self.order)

    def read_at(self, point, sizes):
        """The elements that a point reads."""
        for read, test in zip(self.reads, self.tests, strict=True):
            place = tuple(part.value(SUBSCRIPTS, point, sizes) for part in read)
            inside = all(0 <= at < size for at, size in zip(place, sizes, strict=True))
            if inside and (test is None or test.value(TESTS, point, sizes)):
                yield place

    def is_wrong(self, point, place):
        """Whether a point reads an element that is not made before, or may be replaced at the same time."""
        here, there = self.rank_of(point), self.rank_of(place)
        return (here == there and point != place) if self.later else there >= here

    def points(self, sizes):
        return itertools.product(*map(range, sizes))

    def is_legal(self, largest):
        """Whether no point reads too early, at all small sizes."""
        return not any(
            self.is_wrong(point, place)
            for sizes in itertools.product(range(largest + 1), repeat=self.rank)
            for point in self.points(sizes)
            for place in self.read_at(point, sizes)
        )

    def values(self, x):
        """What the statement computes, in its order."""
        y = (3 * x if self.later else np.zeros_like(x)).astype(np.int32)
        for point in sorted(self.points(x.shape), key=self.rank_of):
            terms = [int(y[place]) for place in self.read_at(point, x.shape)]
            y[point] = np.array(sum(terms) + int(x[point]), np.int64).astype(np.int32)
        return y

    def confirms(self, message):
        """Whether the two points of a message are in the wrong order."""
        found = re.search(r"`Y\(([-\d, ]+)\)` reads (?:`Y\(([-\d, ]+)\)`|itself)", message)
        sizes = [int(size) for size in re.findall(r"[NML] = (\d+)", message)]
        numbers = dict(re.findall(r"([NML]) = (\d+)", message))
        if found is None or not sizes:
            return False
        point = tuple(map(int, found[1].split(",")))
        place = point if found[2] is None else tuple(map(int, found[2].split(",")))
        sizes = tuple(int(numbers.get(name, max(point[k], place[k]) + 1)) for k, name in enumerate(SIZES[: self.rank]))
        return place in set(self.read_at(point, sizes)) and self.is_wrong(point, place)


def compare(one, shapes, random, call):
    """See that the results of `call(x)` are what brute force computes, for numbers of these shapes."""
    for shape in shapes:
        x = random.integers(-9, 9, shape).astype(np.int32)
        for found in call(x):
            np.testing.assert_array_equal(found, one.values(x), err_msg=f"{one.text} {shape}")


def simulated(f, x):
    """The results of a simulated call in which nothing is wrong."""
    if not x.size:
        return []
    result = f.simulate(x)
    assert not result.findings, (f.__doc__, result.findings)
    outputs = result.outputs
    return outputs.values() if isinstance(outputs, dict) else np.asarray(outputs).reshape(1, *x.shape)


def drawn(random):
    """A random recurrence."""
    rank = random.choice((1, 1, 2, 2, 2, 3))

    def part(forms, place):
        usual = forms is SUBSCRIPTS and random.random() < 0.85
        form = 0 if usual else random.randrange(len(forms))
        return Part(
            form, place, random.randrange(rank), random.choice((-2, -1, -1, 0, 0, 1, 2) if usual else (-1, 0, 1))
        )

    count = random.choice((1, 1, 2, 3))
    reads = tuple(tuple(part(SUBSCRIPTS, place) for place in range(rank)) for _ in range(count))
    tests = tuple(part(TESTS, random.randrange(rank)) if random.random() < 0.35 else None for _ in range(count))
    names = random.sample(range(rank), random.randint(1, rank))
    return Recurrence(
        rank, reads, tests, tuple((place, random.choice((1, 1, -1))) for place in names), random.random() < 0.3
    )
