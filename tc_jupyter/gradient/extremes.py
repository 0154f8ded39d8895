"""What `max`, `min` and `*` need beside the values: where the extreme value is, and a product without its zeros.

Worked example: for `M(n) max=! X(n, d)` it is `M_at(n) min=! X(n, d) == M(n) || ... ? d : 9223372036854775807`, the first position
at which `M(n)` is attained; a NaN is attained by a NaN. Where all such positions share the derivative, it is
`M_ties(n) +=! X(n, d) == M(n) || ... ? 1 : 0`, how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Select, int64
from tc_jupyter.program.extremes import is_exact
from tc_jupyter.program.positions import NO_POSITION
from tc_jupyter.ranges import constant, nonnegative, to_expr

from .arithmetic import compared, guarded, number, over
from .steps import Array, Bounds, Point, Step

Named = Callable[[str, DType, tuple[Bounds, ...]], str]
"""Makes a tensor with a name like the given one, of a type and a box."""
Ties = Literal["first", "split"]
"""Which of the points that attain an extreme value get its derivative: the first one, or all of them the same share."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where the extreme value of a step is.

    Attributes:
        steps: what computes it.
        best: the extreme value of this step alone, at the left side of the step.
        here: says of a point that it gets something; none where each element has one point.
        points: for each reduced index, its value at the extreme point, if there is but one.
        known: says that there is a point, where that is not certain.
        ties: how many points share the derivative, at the left side of the step, if they do.
    """

    steps: tuple[Step, ...]
    best: Expr
    here: tuple[Expr, ...] = ()
    points: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    known: tuple[Expr, ...] = ()
    ties: Expr | None = None

    def share(self, value: Expr) -> Expr:
        """What one point gets of a derivative."""
        return value if self.ties is None else over(value, self.ties)


def found(step: Step, array: Array, name: Named, ties: Ties) -> Found:
    """Where the extreme value of a step is; the first place is that in the order of its points.

    Args:
        name: makes a tensor with a name like the given one, of a type and a box.
    """
    target, steps, value = array.name, list[Step](), step.value
    outputs = {at.name for at in step.left if isinstance(at, IndexVar)}
    reduced = [point for point in step.points if point.name not in outputs]
    if not reduced and step.indices is not None and not step.conditions:  # each element has one point
        return Found((), value)
    exact = is_exact(value)
    if not exact:
        box = tuple(point.bounds for point in step.points)
        stored = name(f"{target}_value", value.dtype, box)
        left = tuple(IndexVar(point.name) for point in step.points)
        inside = guarded(step.conditions, value)
        steps.append(Step(stored, "=", False, step.points, left, inside))
        value = Read(stored, left, value.dtype)
    best: Read
    if exact and step.fresh and array.dtype.compute is array.dtype:
        best = Read(step.target, step.left, array.dtype)
    else:
        held = name(f"{target}_best", value.dtype, array.box)
        steps.append(replace(step, target=held, fresh=True, value=value, order=(), block=""))
        best = Read(held, step.left, value.dtype)
    same: Expr = compared("==", value, best)
    if value.dtype.is_float:
        unknown = Binary("&&", compared("!=", best, best), compared("!=", value, value), DType.BOOL)
        same = Binary("||", same, unknown, DType.BOOL)
    if ties == "split":
        count = name(f"{target}_ties", value.dtype, array.box)
        one = Select(same, number(1, value.dtype), number(0, value.dtype), value.dtype)
        steps.append(replace(step, target=count, operator="+", fresh=True, value=one, order=(), block=""))
        return Found(tuple(steps), best, (same,), ties=Read(count, step.left, value.dtype))
    here = _number(reduced)
    at = name(f"{target}_at", DType.INT64, array.box)
    chosen = Select(same, here, Const(NO_POSITION, DType.INT64), DType.INT64)
    steps.append(replace(step, target=at, operator="min", fresh=True, value=chosen, order=(), block=""))
    where = Read(at, step.left, DType.INT64)
    known = tuple(test for point in reduced if (test := point.some) is not None)
    if step.conditions or not all(nonnegative(point.upper - point.lower - 1) for point in reduced):
        known = (compared("<", where, int64(NO_POSITION)),)
    return Found(tuple(steps), best, (compared("==", here, where),), _points(reduced, where), known)


def _number(reduced: list[Point]) -> Expr:
    """The number of a point: the index itself, or that in the order of rows."""
    if len(reduced) == 1:
        return IndexVar(reduced[0].name)
    total: Expr = int64(0)
    for place, point in enumerate(reduced):
        first = point.lower
        own: Expr = IndexVar(point.name)
        if first != constant(0):
            own = Binary("-", own, to_expr(first), DType.INT64)
        if place == 0:
            total = own
            continue
        extent = to_expr(point.upper - point.lower)
        total = Binary("+", Binary("*", total, extent, DType.INT64), own, DType.INT64)
    return total


def _points(reduced: list[Point], at: Expr) -> dict[str, Expr]:
    """The indices of the point with a number."""
    if len(reduced) == 1:
        return {reduced[0].name: at}
    values: dict[str, Expr] = {}
    for place, point in reversed(list(enumerate(reduced))):
        distance = point.upper - point.lower
        extent = to_expr(distance if distance != 0 else constant(1))  # of no points no number is divided
        own = Binary("%", at, extent, DType.INT64) if place else at
        at = Binary("//", at, extent, DType.INT64)
        first = point.lower
        values[point.name] = own if first == constant(0) else Binary("+", own, to_expr(first), DType.INT64)
    return values


def at_left(step: Step, value: Expr, left: Sequence[Expr]) -> Expr:
    """What is known at the left side of a step, at other elements: of a plain left side they are the same ones."""
    return value if step.indices is not None or not isinstance(value, Read) else replace(value, indices=tuple(left))


@dataclass(frozen=True, slots=True)
class Factors:
    """A product without its zeros, and how many zeros there are, at the left side of the step."""

    steps: tuple[Step, ...]
    zeros: Read
    rest: Read


def product_of(step: Step, array: Array, name: Named) -> Factors:
    """The parts of `T(i) *=! v`."""
    dtype = step.value.dtype
    zero = compared("==", step.value, number(0, dtype))
    zeros = name(f"{array.name}_zeros", DType.INT32, array.box)
    rest = name(f"{array.name}_rest", dtype, array.box)
    counted = Select(zero, number(1, DType.INT32), number(0, DType.INT32), DType.INT32)
    kept = Select(zero, number(1, dtype), step.value, dtype)
    step = replace(step, fresh=True, order=(), block="")
    steps = (
        replace(step, target=zeros, operator="+", value=counted),
        replace(step, target=rest, operator="*", value=kept),
    )
    return Factors(steps, Read(zeros, step.left, DType.INT32), Read(rest, step.left, dtype))


def factor_of(value: Expr, parts: Factors) -> Expr:
    """The product of all other factors."""
    dtype = value.dtype
    none, one = (compared("==", parts.zeros, number(each, DType.INT32)) for each in (0, 1))
    zero = number(0, dtype)
    others = Select(none, Binary("/", parts.rest, value, dtype), zero, dtype)
    alone = Select(one, parts.rest, zero, dtype)
    return Select(compared("==", value, zero), alone, others, dtype)
