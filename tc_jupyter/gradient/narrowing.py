"""Steps without elements that no result needs: what is not computed is not checked, so a derivative must not compute it either.

Worked example: of `T(i) = X(Id(i) + i)` with `0 <= i < N`, of which `Y(i) = T(2)` needs one element, stays `2 <= i < 3`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tc_jupyter.ranges import maximum, minimum, nonnegative

from .steps import Bounds, Point, Step, Steps, root

Boxes = Mapping[str, tuple[Bounds, ...]]
"""By name of a tensor: the smallest box that holds all elements that are needed."""


def narrowed(about: Steps, needed: Boxes) -> Steps:
    """The steps for these elements of some temporaries; of those alone whose left sides say which element a point belongs to."""
    shown = {name for name, _ in about.results.values()}
    written = {root(step.target) for step in about.steps}
    fixed = {root(step.target) for step in about.steps if step.indices is None or step.order}
    boxes = {name: box for name, box in needed.items() if name in written - shown - fixed}
    if not boxes:
        return about
    arrays = {name: replace(each, box=boxes.get(name, each.box)) for name, each in about.arrays.items()}
    steps = tuple(
        _narrowed(step, boxes[root(step.target)]) if root(step.target) in boxes else step for step in about.steps
    )
    return replace(about, arrays=arrays, steps=steps)


def _narrowed(step: Step, box: tuple[Bounds, ...]) -> Step:
    """A step at the points whose elements are in a box."""
    ends = dict(zip(step.indices or (), box, strict=True))
    return replace(
        step, points=tuple(_inside(point, ends[point.name]) if point.name in ends else point for point in step.points)
    )


def _inside(point: Point, ends: Bounds) -> Point:
    """An index at what two ranges share; where that is not sure to be anything, it may be empty."""
    if point.bounds == ends:
        return point
    (low, high), (first, end) = point.bounds, ends
    lower = low if nonnegative(low - first) else first if nonnegative(first - low) else maximum(low, first)
    upper = high if nonnegative(end - high) else end if nonnegative(high - end) else minimum(high, end)
    return Point(point.name, lower, upper if nonnegative(upper - lower) else maximum(lower, upper))
