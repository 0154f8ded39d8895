# ruff: noqa: E501  (an element of a picture is one line)
"""Why sizes are refused, drawn: the elements that an access reaches beside those that its tensor has, or a range that ends too early.

Worked example: for `C(i + j)` with `I = 3, J = 5, K = 4` the row of `C` has the elements 0 to 4, and element 5 is crossed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product

from tc_jupyter.diagnostics import Span
from tc_jupyter.ranges import IndexRange, Precondition

from .picture import ACCENT, BAD, LINE
from .sizes import SizeNames
from .svg import LEADING, in_rows, letters, svg, wide

_MOST = 80
"""Cells drawn one by one; longer rows are drawn as bars."""
_WIDE = 460.0
_TOP = 14
"""Above it nothing is drawn."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One dimension of an access at some sizes.

    Attributes:
        text: the access as written; `span`: its place.
        low, high: first and last place that it reaches; size: the tensor has places 0 to size - 1 (counted from its origin).
    """

    text: str
    span: Span
    tensor: str
    dimension: int
    low: int
    high: int
    first: int
    last: int


def failing(known: SizeNames, numbers: Mapping[str, int]) -> list[Precondition]:
    """The conditions on sizes that are false."""
    found: list[Precondition] = []
    for item in known.found.preconditions:
        try:
            if item.kind == "SIZE" and any(c.evaluate(numbers) < 0 for c in item.conditions):
                found.append(item)
        except (KeyError, ValueError, ArithmeticError):
            continue
    return found


def reach_of(known: SizeNames, item: Precondition, numbers: Mapping[str, int]) -> Reach | None:
    """What the access of a condition reaches: hull over the corners of the ranges of its statement."""
    bound = item.bound
    box = None if bound is None else known.found.ranges.boxes.get(bound.access.tensor)
    if bound is None or box is None or bound.dimension >= len(bound.access.index):
        return None
    ranges = known.found.ranges.indices[item.statement]
    ends = _ends(ranges, numbers)
    expression = bound.access.index[bound.dimension]
    if ends is None:
        return None
    try:
        corners = [
            expression.evaluate({**numbers, **dict(zip(ends, corner, strict=True))})
            for corner in product(*ends.values())
        ]
        first = box.origin[bound.dimension].evaluate(numbers)
        last = first + box.shape[bound.dimension].evaluate(numbers) - 1
    except (KeyError, ValueError, ArithmeticError):
        return None
    text = " ".join(known.found.program.source.slice(item.span).split()) or bound.access.tensor
    return Reach(text, item.span, bound.access.tensor, bound.dimension, min(corners), max(corners), first, last)


def _ends(ranges: Sequence[IndexRange], numbers: Mapping[str, int]) -> dict[str, tuple[int, int]] | None:
    found: dict[str, tuple[int, int]] = {}
    for r in ranges:
        if r.lower is None or r.upper is None:
            return None
        try:
            low, high = r.lower.evaluate(numbers), r.upper.evaluate(numbers)
        except (KeyError, ValueError, ArithmeticError):
            return None
        if high <= low:
            return None
        found[r.index] = (low, high - 1)
    return found


def witness_svg(known: SizeNames, numbers: Mapping[str, int]) -> str:
    """A picture per failing condition; nothing where all hold."""
    parts: list[str] = []
    for item in failing(known, numbers)[:4]:
        reach = reach_of(known, item, numbers)
        if reach is not None:
            parts.append(_row(reach))
        elif item.range is not None:
            parts.append(_line(item.range, numbers))
    return "".join(parts)


def _row(reach: Reach) -> str:
    """The places of one dimension: boxes are the tensor, filled ones are reached, crossed ones are reached and not there."""
    low, high = min(reach.low, reach.first), max(reach.high, reach.last)
    count = high - low + 1
    step = min(22.0, _WIDE / max(count, 1))
    ends = sorted({reach.first, reach.last, reach.low, reach.high})
    left = max(8.0, max(map(wide, map(str, ends))) / 2 - step / 2)
    at = lambda place: left + (place - low) * step  # noqa: E731
    parts: list[str] = []
    outside = [(reach.low, min(reach.high, reach.first - 1)), (max(reach.low, reach.last + 1), reach.high)]
    beyond = sum(max(0, b - a + 1) for a, b in outside)
    inside = (max(reach.low, reach.first), min(reach.high, reach.last))
    if inside[0] <= inside[1]:
        parts.append(f'<rect x="{at(inside[0]):.1f}" y="18" width="{(inside[1] - inside[0] + 1) * step:.1f}" height="18" fill="{ACCENT}" fill-opacity=".3"/>')  # fmt: skip
    if count <= _MOST:
        cells = "".join(f"M{at(n):.1f} 18h{step:.1f}v18h{-step:.1f}z" for n in range(reach.first, reach.last + 1))
        crosses = "".join(
            f"M{at(n) + 2:.1f} 20l{step - 4:.1f} 14m0 -14l{4 - step:.1f} 14"
            for a, b in outside
            for n in range(a, b + 1)
        )
    else:
        cells = (
            f"M{at(reach.first):.1f} 18H{at(reach.last + 1):.1f}v18H{at(reach.first):.1f}z"
            if reach.last >= reach.first
            else ""
        )
        crosses = "".join(
            f"M{at(a):.1f} 18L{at(b + 1):.1f} 36M{at(a):.1f} 36L{at(b + 1):.1f} 18" for a, b in outside if b >= a
        )
    parts.append(f'<path d="{cells}" fill="none" stroke="currentColor"/>')
    parts.append(f'<path data-outside="{beyond}" d="{crosses}" fill="none" stroke="{BAD}" stroke-width="2"/>')
    numbers, bottom = _below((at(place) + step / 2, str(place)) for place in ends)
    dimension = f", dimension {reach.dimension}" if reach.dimension else ""
    has = f"has {reach.first} to {reach.last}" if reach.last >= reach.first else "has no element"
    said = (
        f"{reach.text} reaches {reach.low} to {reach.high} of {reach.tensor}{dimension}, which {has}: {beyond} outside"
    )
    return _told(said, 2 * left + count * step, bottom, "".join(parts) + numbers, reach.text)


def _told(said: str, width: float, bottom: float, inner: str, witness: str) -> str:
    """A sentence, which is broken where a page is narrow, and the picture of it, which is drawn from `_TOP` down."""
    drawn = svg(width, bottom - _TOP, f'<g transform="translate(0,-{_TOP})">{inner}</g>', said, {"witness": witness})
    return f'<div aria-hidden="true">{escape(said)}</div><div>{drawn}</div>'


def _below(labels: Iterable[tuple[float, str]]) -> tuple[str, float]:
    """Texts below a row, one below the other where they would overlap; and where they end."""
    placed = in_rows(labels)
    shown = "".join(letters(x, 50 + row * LEADING, said, "middle") for x, row, said in placed)
    return shown, 55 + LEADING * max(row for _, row, _ in placed)


def _line(r: IndexRange, numbers: Mapping[str, int]) -> str:
    """A range whose end lies before its beginning: both on a line of numbers."""
    assert r.lower is not None
    assert r.upper is not None
    try:
        low, high = r.lower.evaluate(numbers), r.upper.evaluate(numbers)
    except (KeyError, ValueError, ArithmeticError):
        return ""
    left, right = min(low, high) - 1, max(low, high) + 1
    step = min(40.0, _WIDE / max(right - left, 1))
    ends = {low: f"{low} begin", high: f"{high} end"}
    start = max(map(wide, ends.values())) / 2
    x, y = start + (low - left) * step, start + (high - left) * step
    said = f"range of {r.index}: it would begin at {low} and end before {high}, which is {low - high} too early"
    width = 2 * start + (right - left) * step
    places, bottom = _below([(x, ends[low]), (y, ends[high])])
    inner = (
        f'<path d="M{start:.1f} 30h{(right - left) * step:.1f}" stroke="{LINE}"/>'
        f'<path d="M{x:.1f} 24v12M{y:.1f} 24v12" stroke="currentColor" stroke-width="2"/>'
        f'<path data-outside="{low - high}" d="M{x:.1f} 30H{y:.1f}l5 -4m-5 4l5 4" stroke="{BAD}" stroke-width="2" fill="none"/>'
        f"{places}"
    )
    return _told(said, width, bottom, inner, r.index)
