"""Random wavefronts of random recurrences, and what brute force says of them: whether the loops keep the order.

A schedule is a few numbers from which both its steps and the time of every point follow, so that nothing of `tc_jupyter` is needed for
the latter.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from random import Random

from tc_jupyter.compiler import analyze
from tc_jupyter.diagnostics import CompileError
from tests.orders import NAMES, SIZES, Recurrence, drawn


@dataclass
class Nest:
    """The loops of a statement: their names, and functions of the steps of a point and the numbers of steps."""

    steps: list[tuple] = field(default_factory=list)
    loops: list[tuple] = field(default_factory=list)
    at_once: set[str] = field(default_factory=set)
    stages: list[Nest] = field(default_factory=list)

    def done(self, *step):
        """One more step, and the loops after it."""
        self.steps.append(step)
        self.stages.append(Nest([], list(self.loops), set(self.at_once)))

    def split(self, name, factor):
        at, value, length = self._take(name)
        outer = (f"{name}.outer", lambda p, n: value(p, n) // factor, lambda n: -(-length(n) // factor))
        inner = (f"{name}.inner", lambda p, n: value(p, n) % factor, lambda n: factor)
        self.loops[at:at] = [outer, inner]
        self.done("split", name, factor)

    def skew(self, first, factor):
        """Two neighbours, from the number `first` on."""
        (a, x, n), (b, y, m) = self.loops[first : first + 2]

        def start(p, sizes):
            return max(0, -(-(factor * x(p, sizes) + y(p, sizes) - m(sizes) + 1) // factor))

        front = (f"{a}.{b}.front", lambda p, s: factor * x(p, s) + y(p, s), lambda s: factor * (n(s) - 1) + m(s))
        place = (f"{a}.place", lambda p, s: x(p, s) - start(p, s), lambda s: min(n(s), -(-m(s) // factor)))
        self.loops[first : first + 2] = [front, place]
        self.done("skew", a, b, factor)

    def reorder(self, order):
        self.loops = [self.loops[k] for k in order]
        self.done("reorder", *(name for name, _, _ in self.loops))

    def run_at_once(self, name, how):
        self.at_once.add(name)
        self.done(how[0], name, *how[1:])

    def _take(self, name):
        at = next(k for k, loop in enumerate(self.loops) if loop[0] == name)
        _, value, length = self.loops.pop(at)
        return at, value, length

    def applied(self, schedule):
        """The schedule of the library with these steps; or the loops after the one that is refused, and the message."""
        for (name, *arguments), after in zip(self.steps, self.stages, strict=True):
            try:
                schedule = getattr(schedule, name)(schedule.stages[-1], *arguments)
            except CompileError as problem:
                return None, after, str(problem)
        return schedule, self, ""

    def is_before(self, one: Recurrence, early, late, sizes):
        """Whether the loops run a point before another one."""
        for name, value, _ in self.loops:
            a, b = (value(_steps(one, point, sizes), sizes) for point in (early, late))
            if a != b:
                return name not in self.at_once and a < b
        return True

    def is_wrong(self, one: Recurrence, point, place, sizes):
        """Whether an element is read that is not yet made, or is replaced already."""
        written = one.rank_of(place) < one.rank_of(point)
        if point == place or (not written and not one.later):
            return False
        return not (self.is_before(one, place, point, sizes) if written else self.is_before(one, point, place, sizes))

    def keeps_order(self, one: Recurrence, largest):
        """Whether the loops keep the order at all small sizes."""
        return not any(
            self.is_wrong(one, point, place, sizes)
            for sizes in itertools.product(range(largest + 1), repeat=one.rank)
            for point in one.points(sizes)
            for place in one.read_at(point, sizes)
        )

    def confirms(self, one: Recurrence, message):
        """Whether the two points of a refusal are in the wrong order."""
        found = re.search(r"at \(([-\d, ]+)\) reads Y\(([-\d, ]+)\)", message.replace("\n", " "))
        if found is None:
            return "cannot be excluded" in message
        numbers = dict(re.findall(r"([NML]) = (\d+)", message))
        point, place = (tuple(map(int, each.split(","))) for each in found.groups())
        sizes = tuple(int(numbers[name]) for name in SIZES[: one.rank])
        return place in set(one.read_at(point, sizes)) and self.is_wrong(one, point, place, sizes)


def _steps(one: Recurrence, point, sizes):
    """How many steps of its loop each index is behind."""
    down = {place for place, step in one.order if step < 0}
    return tuple(size - 1 - p if k in down else p for k, (p, size) in enumerate(zip(point, sizes, strict=True)))


def recurrence(random: Random):
    """A random recurrence over two indices whose order is right, as `tests.test_orders` finds."""
    while True:
        one = drawn(random)
        if one.rank == 2 and one.is_legal(3) and not any(each.is_error for each in analyze(one.text).diagnostics):
            return one


def nest(random: Random, one: Recurrence, kinds=("parallel", "vectorize", None), tiles=(1, 2, 3)):
    """Random loops with a wavefront, of points or of tiles, and some that run at one time."""
    first = [place for place, _ in one.order]
    order = [*first, *(k for k in range(2) if k not in first)]
    found = Nest(loops=[(NAMES[k], lambda p, n, k=k: p[k], lambda n, k=k: n[k]) for k in order])
    if random.random() < 0.5:
        for name in [name for name, _, _ in found.loops]:
            found.split(name, random.choice(tiles))
        found.reorder((0, 2, 1, 3))
    found.skew(0, random.choice((1, 1, 1, 2, 3)))
    inside = [name for name, _, _ in found.loops[1:]]
    if random.random() < 0.2:
        found.reorder(random.sample(range(len(found.loops)), len(found.loops)))
    chosen = random.choice((*inside, inside[0], inside[0], found.loops[0][0]))
    match random.choice(kinds):
        case "parallel":
            found.run_at_once(chosen, ("parallel",))
        case "vectorize":
            found.split(chosen, 4)
            found.run_at_once(f"{chosen}.inner", ("vectorize",))
        case "threads":
            found.split(chosen, 4)
            found.run_at_once(f"{chosen}.inner", ("bind", "threadIdx.x"))
        case _:
            pass
    return found


__all__ = ["Nest", "nest", "recurrence"]
