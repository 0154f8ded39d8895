"""Reads beyond the ends of an array: what they give goes to an array that has these elements, and from there to the ends.

Worked example: `Y(i) = X(clamp(i - 1))` reads `X(i - 1)` of an array that is longer by one element. So `dX_wide(i) = dY(i)`,
which is a gather; then `dX(i) = dX_wide(i + 1)`, and `dX(clamp(i)) += dX_wide(i + 1)` where `i` is -1. The points that are
put elsewhere are those of the border alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, int64, walk
from tc_jupyter.program.beyond_ends import placed
from tc_jupyter.program.extents import difference, sum_of
from tc_jupyter.ranges import SizeExpr, always_nonnegative, interval, maximum, minimum, to_expr
from tc_jupyter.ranges.size_expr import has_data

from .arithmetic import shifted
from .partials import Part
from .steps import Array, Bounds, Point, Step
from .transpose import Term

_KINDS = ("clamp", "reflect", "symmetric", "wrap", "min", "max")


@dataclass(frozen=True, slots=True)
class Wide:
    """A read in an array that goes on beyond the ends.

    Attributes:
        part: the read at the places before the border moves them.
        kinds: by dimension, how places beyond the ends are moved inside; "" where none is.
        box: of the array that has all these places.
    """

    part: Part
    kinds: tuple[str, ...]
    box: tuple[Bounds, ...]


def widened(step: Step, part: Part, array: Array, size: Callable[[Expr], SizeExpr]) -> Wide | None:
    """The read of an array without ends, where a border moves some of its subscripts inside."""
    ranges = {point.name: (point.lower, point.upper - 1) for point in step.points}
    kinds, box, indices = list[str](), list[Bounds](), list[Expr]()
    for at, bounds in zip(part.read.indices, array.box, strict=True):
        kind, place = _before(at, bounds, size)
        ends = bounds
        if kind:
            found = interval(size(place), ranges)
            if found.lower is None or found.upper is None:
                return None
            # `min` keeps what is before the first element outside, and `max` what is behind the last one
            low = bounds[0] if kind == "min" else found.lower
            ends = _around((bounds, (low, bounds[1] if kind == "max" else found.upper + 1)))
        kinds.append(kind)
        box.append(ends)
        indices.append(place)
    if not any(kinds):
        return None
    return Wide(replace(part, read=replace(part.read, indices=tuple(indices))), tuple(kinds), tuple(box))


def from_zero(part: Part, array: Array, box: Sequence[Bounds]) -> tuple[Part, Array]:
    """A read and the wide array that it reads, whose indices begin at 0: so reads with a step may be told apart by residues."""
    lower = [low for low, _ in box]
    read = replace(part.read, indices=shifted(part.read.indices, lower, "-"))
    return replace(part, read=read), replace(array, box=tuple((low - low, high - low) for low, high in box))


def around(boxes: Sequence[tuple[Bounds, ...]]) -> tuple[Bounds, ...]:
    """The smallest box with all of these in it."""
    return tuple(map(_around, zip(*boxes, strict=True)))


def folded(
    read: Read, kinds: Sequence[str], box: Sequence[Bounds], array: Array, left: Sequence[str]
) -> Iterator[Term]:
    """What an array gets from one that goes on beyond its ends: its own elements, then those of the border, a side at a time.

    Args:
        read: an element of the wide array, at any indices.
        box: of the wide array, before its indices begin at 0.
        left: names for the indices.
    """
    own = tuple(Point(name, *bounds) for name, bounds in zip(left, array.box, strict=True))
    at = tuple(map(IndexVar, left))
    value = replace(read, indices=shifted(at, [low for low, _ in box], "-"))
    tests = (point.some for point, kind in zip(own, kinds, strict=True) if kind)
    there = tuple(dict.fromkeys(test for test in tests if test is not None))
    yield Term(own, at, (), value)
    for dimension, kind in enumerate(kinds):
        (first, end), (low, high) = array.box[dimension], box[dimension]
        for ends in ((low, first), (end, high)):
            if not kind or ends[0] == ends[1]:
                continue
            # the corners go with the sides of the first dimension that has any
            rest = zip(left[dimension + 1 :], box[dimension + 1 :], strict=True)
            points = (*own[:dimension], Point(left[dimension], *ends), *(Point(name, *bounds) for name, bounds in rest))
            moved = [
                _moved(each, name, bounds) if place >= dimension and each else name
                for place, (each, name, bounds) in enumerate(zip(kinds, at, array.box, strict=True))
            ]
            yield Term(points, tuple(moved), there, value)


def _around(ranges: Sequence[Bounds]) -> Bounds:
    """The smallest range with all of these in it, also where sizes are 0: what is beyond an end has its own range."""
    (low, high), *others = ranges
    for first, end in others:
        low = low if _is_most(first, low) else first if _is_most(low, first) else minimum(low, first)
        high = high if _is_most(high, end) else end if _is_most(end, high) else maximum(high, end)
    return low, high


def _is_most(one: SizeExpr, other: SizeExpr) -> bool:
    """Whether one position is never below the other."""
    return always_nonnegative(one - other)


def _before(at: Expr, bounds: Bounds, size: Callable[[Expr], SizeExpr]) -> tuple[str, Expr]:
    """How a border moves a subscript inside, and the subscript before that; "" where none does."""
    parts = [node for node in walk(at) if node is not at and any(isinstance(each, IndexVar) for each in walk(node))]
    if any(isinstance(node, Binary) and node.op in ("min", "max", "%") for node in walk(at)):
        shown = size(at)
        first = to_expr(bounds[0])
        places = [place for node in reversed(parts) for place in dict.fromkeys((node, sum_of(node, first)))]
        for kind in _KINDS:
            for place in places:
                if size(_moved(kind, place, bounds)) == shown and not has_data(size(place)):
                    return kind, place
    return "", at


def _moved(kind: str, place: Expr, bounds: Bounds) -> Expr:
    """The element that a place stands for, by the kind of the border."""
    first, end = map(to_expr, bounds)
    if kind == "min":
        return Binary("min", place, difference(end, int64(1)), DType.INT64)
    if kind == "max":
        return Binary("max", place, first, DType.INT64)
    return placed(kind, place, (first, end))
