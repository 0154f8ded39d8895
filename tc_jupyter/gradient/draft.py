"""A def that grows: arrays, names that are free, steps, and what is computed again of the def that it is about.

Worked example: `Draft(steps)` knows `X` and `Y` of `Y(i) = X(i)`; `array("dX", ...)` is called `dX_` where `dX` is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tc_jupyter.program import FUNCTIONS, TC_FUNCTIONS, Const, DType, Expr, IndexVar, Read
from tc_jupyter.ranges import SizeExpr

from .arithmetic import cast, shifted
from .steps import Array, Bounds, Point, Step, Steps, root, version

_RESERVED = {
    "def",
    "where",
    "in",
    "exists",
    "else",
    "unique",
    "min",
    "max",
    "true",
    "false",
    "inf",
    "nan",
    "at",
    "along",
}
_INDICES = "ijklmn"


@dataclass(frozen=True, slots=True)
class Derived:
    """A def that was derived.

    Attributes:
        name: of the def.
        forward: steps of the def it is about, which are computed again.
        steps: what is computed from them.
        parameters: names of those of the signature that are not parameters of the def it is about.
        results: arrays in order.
        arrays: everything that a name stands for.
        saved: tensors whose last version is a parameter.
        called: names of versions that are results.
        spelling: how arrays and sizes are called in the text.
        lean: parameters that nothing reads are left out, where their sizes follow from others.
        count, many: the arrays of these names have one more dimension in front, of this extent.
    """

    name: str
    about: Steps
    forward: tuple[Step, ...]
    steps: tuple[Step, ...]
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    arrays: dict[str, Array]
    saved: tuple[str, ...] = ()
    called: Mapping[str, str] = field(default_factory=dict[str, str])
    spelling: Mapping[str, str] = field(default_factory=dict[str, str])
    lean: bool = False
    count: SizeExpr | None = None
    many: frozenset[str] = frozenset()


@dataclass
class Draft:
    """What is known while a def is derived."""

    about: Steps
    saved: frozenset[str] = frozenset()
    arrays: dict[str, Array] = field(default_factory=dict[str, Array])
    steps: list[Step] = field(default_factory=list[Step])
    taken: set[str] = field(default_factory=set[str])
    spelling: dict[str, str] = field(default_factory=dict[str, str])
    called: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.arrays |= self.about.arrays
        program = self.about.program
        self.taken |= {*_RESERVED, *TC_FUNCTIONS, *FUNCTIONS, program.name}
        self.taken |= {point.name for step in self.about.steps for point in step.points}
        plain = [name for name in (*self.arrays, *program.sizes, *program.results) if spelled(name) == name]
        self.taken |= set(plain)
        for name in (*self.arrays, *program.sizes):
            self.spelling[name] = name if name in plain else self.name(name)

    def name(self, wish: str) -> str:
        """A free name: as wished, else with `_`, `_2` and so on behind it."""
        wish = spelled(wish)
        found, number = wish, 1
        while found in self.taken:
            found = f"{wish}_{number if number > 1 else ''}"
            number += 1
        self.taken.add(found)
        return found

    def index(self) -> str:
        """A free name for an index."""
        free = next((each for each in _INDICES if each not in self.taken), None)
        return self.name(free or "a")

    def array(self, wish: str, dtype: DType, box: tuple[Bounds, ...], pairs: bool = False) -> str:
        """A new array."""
        found = self.name(wish)
        self.arrays[found] = Array(found, dtype, box, pairs)
        return found

    def indices_of(self, box: Sequence[Bounds]) -> tuple[tuple[Point, ...], tuple[Expr, ...]]:
        """All elements of a box, as points, and the subscripts."""
        names: list[str] = []
        others = self.taken - set(_INDICES)
        for _ in box:
            names.append(
                next(each for each in (*_INDICES, *(f"i{n}" for n in range(99))) if each not in {*names, *others})
            )
        self.taken |= set(names)
        points = tuple(Point(name, *bounds) for name, bounds in zip(names, box, strict=True))
        return points, tuple(map(IndexVar, names))

    def fill(self, target: str, value: Const) -> Step:
        """The statement that writes a number everywhere."""
        points, left = self.indices_of(self.arrays[target].box)
        return Step(target, "=", False, points, left, value)

    def in_turns(self, made: Step, about: Step, way: int) -> Step:
        """A statement in the turns of the block of another one, or in the opposite ones (-1), if that has a block."""
        if not about.block:
            return made
        names = {made.left[place]: name for place, (name, _) in zip(about.places, about.turns, strict=True)}
        renamed = {at.name: name for at, name in names.items() if isinstance(at, IndexVar)}
        others = {point.name for point in made.points} - renamed.keys()
        renamed |= {name: self.index() for name in others & set(renamed.values())}
        made = made.renamed(renamed)
        steps = dict(about.turns)
        points = tuple(
            replace(each, lower=low, upper=high)
            for each in made.points
            for low, high in [about.range_of(each.name) if each.name in steps else each.bounds]
        )
        order = (
            *((name, way * by) for name, by in about.turns),
            *(each for each in made.order if each[0] not in steps),
        )
        return replace(made, points=points, order=order, block=about.block + "'" * (way < 0))

    def copy(self, target: str, source: str) -> Step:
        """The statement that copies an array."""
        array = self.arrays[root(source)]
        points, left = self.indices_of(array.box)
        value = cast(Read(source, left, array.dtype), self.arrays[root(target)].dtype)
        return Step(target, "=", False, points, left, value)

    def is_direct(self, result: str) -> bool:
        """Whether a result is a tensor as it stands, and the only result that is this tensor."""
        name, shift = self.about.results[result]
        same = [each for each, (other, _) in self.about.results.items() if other == name]
        return same[0] == result and name in self.about.last and all(far == 0 for far in shift)

    def itself(self, result: str) -> str:
        """A result of the def as one of this def."""
        name, shift = self.about.results[result]
        array = self.about.arrays[name]
        source = version(name, self.about.last[name]) if name in self.about.last else name
        if not self.is_direct(result):
            return self.moved(result, source, array, shift)
        self.called[source] = result
        self.arrays[result] = replace(array, name=result)
        return result

    def moved(self, own: str, source: str, array: Array, shift: Sequence[SizeExpr]) -> str:
        """A copy whose indices start elsewhere."""
        box = tuple((low - far, high - far) for (low, high), far in zip(array.box, shift, strict=True))
        self.arrays[own] = Array(own, array.dtype, box, array.pairs)
        points, left = self.indices_of(box)
        value = cast(Read(source, shifted(left, shift), array.dtype), array.dtype.compute)
        self.steps.append(Step(own, "=", False, points, left, value))
        return own

    def needed(self, steps: Iterable[Step], versions: Iterable[str] = ()) -> tuple[Step, ...]:
        """The steps of the def that others need, and some versions, in order."""
        wanted = {read.tensor for step in steps for read in step.reads()} | set(versions)
        count = -1
        while count < len(wanted):  # in a block, what comes first may need what comes behind it
            count = len(wanted)
            for step in reversed(self.about.steps):
                if step.target in wanted and not self.is_saved(step.target):
                    wanted |= self.needs(step)
        return tuple(step for step in self.about.steps if step.target in wanted and not self.is_saved(step.target))

    def needs(self, step: Step) -> set[str]:
        """The versions that a step reads or goes on with."""
        found = {read.tensor for read in step.reads()}
        name, _, number = step.target.partition("@")
        if (int(number) > 1 and not step.is_whole(self.arrays[name])) or (not step.fresh and step.operator != "="):
            found.add(version(name, int(number) - 1))
        return found

    def is_saved(self, target: str) -> bool:
        """Whether the content is a parameter."""
        name = root(target)
        return name in self.saved and target == version(name, self.about.last.get(name, 0))


def spelled(name: str) -> str:
    """A name that a cell can spell: `layer_Y` for `layer.Y`."""
    return re.sub(r"\W", "_", name)


def at_elements(step: Step, array: Array, fresh: Callable[[], str]) -> tuple[tuple[Point, ...], tuple[Expr, ...]]:
    """The elements that a step combines onto: of a dimension with a computed subscript all."""
    points, left = list[Point](), list[Expr]()
    names = [at.name for at in step.left if isinstance(at, IndexVar)]
    for at, bounds in zip(step.left, array.box, strict=True):
        plain = isinstance(at, IndexVar) and names.count(at.name) == 1
        name = at.name if plain and isinstance(at, IndexVar) else fresh()
        points.append(Point(name, *(step.range_of(name) if plain else bounds)))
        left.append(IndexVar(name))
    return tuple(points), tuple(left)
