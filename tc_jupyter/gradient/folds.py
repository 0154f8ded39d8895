"""A fold with a function of its own as steps in order: what the points up to each one are together.

Of several reduced indices, the inner ones are combined first, for each value of the others. The components of a fold make each
other, so the steps of one index are a block.

Worked example: with `reduce far(float a, float b) = hypot(a, b) from 0 with x -> abs(x)` the step `L(n) far=! X(n, m)` becomes
`L_m(n, m) = m > 0 ? hypot(L_m(n, m-1), abs(X(n, m))) : abs(X(n, m)) along m`, and `L(n) = M > 0 ? L_m(n, M - 1) : 0`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tc_jupyter.program import (
    FOLD_LEFT,
    Binary,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Statement,
    at_part,
    int64,
    rewrite,
    variables,
    with_operands,
)
from tc_jupyter.program.integers import all_of
from tc_jupyter.ranges import to_expr

from .arithmetic import cast, compared, number
from .steps import Array, Bounds, Point, Step, root, version


@dataclass(frozen=True, slots=True)
class Unfolded:
    """The steps of a fold, and what they write beside its target.

    Attributes:
        totals: of several components, which have no step that writes them: each of them at the indices `names`.
    """

    steps: tuple[Step, ...]
    arrays: tuple[Array, ...]
    names: tuple[str, ...] = ()
    totals: tuple[Expr, ...] = ()

    def total(self, read: Read) -> Expr:
        """What stands for a read of a component, the first index."""
        component, *at = read.indices
        assert isinstance(component, Const)
        put = dict(zip(self.names, at, strict=True))
        return rewrite(self.totals[int(component.value)], variables(put))


@dataclass(frozen=True, slots=True)
class _Function:
    """The function of a fold for each component, and what changes nothing, where there is such a number."""

    combine: tuple[Expr, ...]
    identity: tuple[Expr, ...]

    def together(self, left: Sequence[Expr], right: Sequence[Expr]) -> list[Expr]:
        """What two values are together."""

        def operand(side: str, component: int) -> Expr:
            return (left if side == FOLD_LEFT else right)[component]

        return [with_operands(each, operand) for each in self.combine]


def unfolded(statement: Statement, step: Step, box: tuple[Bounds, ...], before: int, taken: Container[str]) -> Unfolded:
    """The steps of a fold.

    Args:
        step: the fold as one step.
        box: of its target.
        before: the number of steps that wrote the target.
        taken: names that are no indices.
    """
    assert statement.combine is not None
    part = statement.part
    many = step.range_of(part)[1].offset if part else 1

    def components(value: Expr) -> tuple[Expr, ...]:
        return tuple(at_part(value, part, k) for k in range(many)) if part else (value,)

    identity = () if statement.identity is None else components(statement.identity)
    function = _Function(components(statement.combine), identity)
    step = _with_plain_left(step, box, taken)
    names = set(step.indices or ())
    outputs = [each for each in step.points if each.name in names and each.name != part]
    reduced = [each for each in step.points if each.name not in names]
    values, conditions = list(components(step.value)), step.conditions
    steps, arrays = list[Step](), list[Array]()
    for place in reversed(range(len(reduced))):
        level = _Level(step, function, (*outputs, *reduced[:place]), reduced[place], conditions)
        steps, arrays, conditions = [*steps, *level.steps(values)], [*arrays, *level.arrays], ()
        values = level.totals()
    if part:
        return Unfolded(
            tuple(steps), tuple(arrays), tuple(each for each in step.indices or () if each != part), tuple(values)
        )
    (value,) = values
    if not statement.initialize:  # it goes on with what was there
        old = Read(version(root(step.target), before), step.left, value.dtype)
        some = [test for each in reduced if (test := each.some) is not None]
        (new,) = function.together((old,), (value,))
        value = Select(all_of(some), new, old, new.dtype) if some else new
    last = replace(step, operator="=", fresh=False, points=tuple(outputs), value=value, conditions=(), unique=False)
    return Unfolded((*steps, last), tuple(arrays))


@dataclass(frozen=True, slots=True)
class _Level:
    """The combining along one index, for each value of others."""

    step: Step
    function: _Function
    others: tuple[Point, ...]
    point: Point
    conditions: tuple[Expr, ...]

    @property
    def arrays(self) -> tuple[Array, ...]:
        """One for each component; those of several folds on one target have its number."""
        box = tuple(each.bounds for each in (*self.others, self.point))
        several = len(self.function.combine) > 1
        target = self.step.target.removesuffix("@1").replace("@", ".")
        names = (f"{target}.{self.point.name}{k if several else ''}" for k in self.places)
        return tuple(Array(name, self.step.value.dtype, box) for name in names)

    @property
    def places(self) -> range:
        return range(len(self.function.combine))

    def read(self, at: Expr) -> list[Expr]:
        """The components of what the points up to one are together."""
        left = (*(IndexVar(each.name) for each in self.others), at)
        return [Read(version(array.name, 1), left, array.dtype) for array in self.arrays]

    def steps(self, values: Sequence[Expr]) -> list[Step]:
        """The first point is what it is, so that no derivative goes through the identity."""
        own, lower = IndexVar(self.point.name), to_expr(self.point.lower)
        before = self.read(Binary("-", own, int64(1), DType.INT64))
        later = compared(">", own, lower)
        if self.conditions:
            before = [Select(later, old, new, old.dtype) for old, new in zip(before, self.nothing, strict=True)]
        found = self.function.together(before, values)
        tests, others = (self.conditions, before) if self.conditions else ((later,), values)
        found = [Select(all_of(tests), new, old, new.dtype) for new, old in zip(found, others, strict=True)]
        points = (*self.others, self.point)
        left = tuple(IndexVar(each.name) for each in points)
        block = f"{self.point.name}#{root(self.arrays[0].name)}" if len(found) > 1 else ""
        order = ((self.point.name, 1),)
        return [
            Step(version(array.name, 1), "=", False, points, left, value, False, self.step.span, (), order, block)
            for array, value in zip(self.arrays, found, strict=True)
        ]

    def totals(self) -> list[Expr]:
        """What all points are together."""
        found, some = self.read(to_expr(self.point.upper - 1)), self.point.some
        if some is None:
            return found
        return [Select(some, all_, none, all_.dtype) for all_, none in zip(found, self.nothing, strict=True)]

    @property
    def nothing(self) -> tuple[Expr, ...]:
        """What no points are together: without an identity nobody reads it."""
        return self.function.identity or tuple(number(0, self.step.value.dtype) for _ in self.places)


def _with_plain_left(step: Step, box: tuple[Bounds, ...], taken: Container[str]) -> Step:
    """A step with an index for each dimension of its target: for one with a subscript, all elements, of which the points choose."""
    if step.indices is not None:
        return step
    names = {point.name for point in step.points}
    free = (name for number in count(1) if (name := f"bin{number}") not in names and name not in taken)
    left, points, tests = list[Expr](), list(step.points), list[Expr]()
    for at, bounds in zip(step.left, box, strict=True):
        if isinstance(at, IndexVar) and at not in left:
            left.append(at)
            continue
        point = Point(next(free), *bounds)
        points.append(point)
        left.append(IndexVar(point.name))
        tests.append(compared("==", cast(at, DType.INT64), left[-1]))
    return replace(step, left=tuple(left), points=tuple(points), conditions=(*step.conditions, *tests))
