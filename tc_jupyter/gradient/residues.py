"""Reads with a step, `X(2*i + k)`: the derivative of the elements `2*u + p` for each residue `p`, where the step is gone.

Comes in: a subscript `c*i + k + r`. Goes out: for each residue, what `k` is, so that all terms but `p` are multiples of `c`.

Worked example: of `X(2*i + k)` with `0 <= k < 3` the elements `2*u` are those with `k = 2*q`, `0 <= q < 2`, and `i = u - q`; the
elements `2*u + 1` are those with `k = 1` and `i = u`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tc_jupyter.program import Expr, Read, rewrite, variables
from tc_jupyter.ranges import SizeExpr, constant, floor_div, to_expr
from tc_jupyter.ranges import index as index_name

from .partials import Part
from .steps import Array, Bounds, Point, Step

MOST = 4
"""The largest step; each residue is a statement."""


@dataclass(frozen=True, slots=True)
class Stride:
    """A subscript with a step.

    Attributes:
        step: of the index `name`.
        inner: the index without a step, if there is one, and its sign.
        rest: what the other terms and the offset leave when they are divided by the step.
    """

    dimension: int
    step: int
    name: str
    inner: str
    sign: int
    rest: int


@dataclass(frozen=True, slots=True)
class Residue:
    """The elements `step*u + place` of a dimension, as an array of their own, and the part that reads them.

    Attributes:
        part: `None` where no point reads such an element.
    """

    place: int
    box: tuple[Bounds, ...]
    step: Step
    part: Part | None


def stride_of(step: Step, part: Part, array: Array, size: Callable[[Expr], SizeExpr]) -> Stride | None:
    """The first dimension that is read with a step, if its elements can be told apart."""
    ranges = {point.name: point.bounds for point in step.points}
    subscripts = [size(at) for at in part.read.indices]
    for dimension, at in enumerate(subscripts):
        found = _stride(dimension, at, ranges, subscripts) if array.box[dimension][0] == 0 else None
        if found is not None:
            return found
    return None


def _stride(dimension: int, at: SizeExpr, ranges: Mapping[str, Bounds], subscripts: list[SizeExpr]) -> Stride | None:
    weights: dict[str, int] = {}
    for name in ranges:
        if name in at.indices:
            linear = at.linear_in(name)
            if linear is None or not linear[0].is_constant:
                return None
            weights[name] = linear[0].offset
    steps = [abs(weight) for weight in weights.values() if abs(weight) > 1]
    if not steps or not 2 <= min(steps) <= MOST:
        return None
    by = min(steps)
    name = next(each for each, weight in weights.items() if abs(weight) == by)
    inner = [each for each, weight in weights.items() if weight % by]
    if len(inner) > 1 or any(abs(weights[each]) != 1 for each in inner):
        return None
    others = [number for number, other in enumerate(subscripts) if number != dimension and name in other.indices]
    if others or any(weight % by and mono != _alone(inner) for mono, weight in _terms(at)):
        return None
    sign, lower = 0, 0
    if inner:
        first = ranges[inner[0]][0]
        if not first.is_constant:
            return None
        sign, lower = weights[inner[0]], first.offset
    return Stride(dimension, by, name, inner[0] if inner else "", sign, (at.offset + sign * lower) % by)


def _terms(at: SizeExpr) -> list[tuple[str, int]]:
    """The terms with their weights; an index alone by its name, others by what they are."""
    return [(getattr(mono[0], "name", "*") if len(mono) == 1 else "*", weight) for mono, weight in at.ordered()]


def _alone(inner: list[str]) -> str:
    return inner[0] if inner else ""


def residues(
    found: Stride,
    step: Step,
    part: Part,
    array: Array,
    size: Callable[[Expr], SizeExpr],
    fresh: Callable[[], str],
    alike: bool = False,
) -> list[Residue]:
    """What each residue reads; `alike`: all of them have as many elements as the first one, the last of which may be none."""
    by, (_, end) = found.step, array.box[found.dimension]
    answer: list[Residue] = []
    for place in range(by):
        extent = floor_div(end - (0 if alike else place) + by - 1, by)
        box = list(array.box)
        box[found.dimension] = constant(0), extent
        here, own = step, part
        if found.inner:
            # the first value of the inner index, from its lower end on, that reads such an element
            first = (found.sign * (place - found.rest)) % by
            here, own = _thinned(step, part, found.inner, first, by, fresh)
        elif place != found.rest:
            answer.append(Residue(place, tuple(box), step, None))
            continue
        at = size(own.read.indices[found.dimension]) - place
        divided = SizeExpr({mono: weight // by for mono, weight in at.terms.items()}, at.offset // by)
        indices = list(own.read.indices)
        indices[found.dimension] = to_expr(divided)
        answer.append(Residue(place, tuple(box), here, replace(own, read=replace(own.read, indices=tuple(indices)))))
    return answer


def _thinned(step: Step, part: Part, name: str, first: int, by: int, fresh: Callable[[], str]) -> tuple[Step, Part]:
    """The points at which an index is `lower + first`, and every `by`-th value behind that."""
    lower, upper = step.range_of(name)
    count = floor_div(upper - lower - first + by - 1, by)
    points = [point for point in step.points if point.name != name]
    value = lower + first
    if count != 1:
        new = fresh()
        points.append(Point(new, constant(0), count))
        value = value + index_name(new) * by
    rule = variables({name: to_expr(value)})
    read = rewrite(part.read, rule)
    assert isinstance(read, Read)
    conditions = tuple(rewrite(each, rule) for each in part.conditions)
    left = tuple(rewrite(at, rule) for at in step.left)
    return replace(step, points=tuple(points), left=left), Part(read, conditions, rewrite(part.value, rule))
