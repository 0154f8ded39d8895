# ruff: noqa: E501  (an element of a picture is one line)
"""Pictures of one stage: the hyper-graph of its axes with their ranges, and a refused order as two points.

Worked example: `i` split by 4 is a node `i 0:64`, a box `split 4`, and two nodes `i.outer 0:16` and `i.inner 0:4` with thick borders.

Source: TVM, "InferBound Pass", the IterVar hyper-graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from tc_jupyter.schedule import Bounds, Fuse, Relation, Skew, Stage, StageGraph
from tc_jupyter.schedule.legality import Witness, check_with, outside_read
from tc_jupyter.schedule.placement import final_users
from tc_jupyter.schedule.stage import children_of, parents_of

from .picture import ACCENT, BAD, LINE
from .svg import letters, short, svg, wide

_HIGH, _BETWEEN, _APART = 38, 58, 16
"""The height of an axis, and what is left free below and beside it."""


def hypergraph_svg(bounds: Bounds, name: str) -> str:
    """Roots above, leaves below; a box per relation; every axis with its range, leaves with thick borders."""
    stage = bounds.symbolic[name].stage
    level = {root.name: 0 for root in stage.roots}
    for relation in stage.relations:
        parents, children = parents_of(relation), children_of(relation)
        depth = max(level[parent] for parent in parents) + 1
        level |= {child: depth for child in children}
    lines = {axis: _axis_lines(axis, str(bounds[name][axis]), stage) for axis in stage.axes}
    across = max([110.0, *(wide(line) + 14 for each in lines.values() for line in each)])
    place: dict[str, tuple[float, float]] = {}
    counts: dict[int, int] = {}
    for axis in stage.axes:
        column = counts.get(level[axis], 0)
        counts[level[axis]] = column + 1
        place[axis] = (10 + column * (across + _APART), 8 + level[axis] * (_HIGH + _BETWEEN))
    parts = [_relation(relation, place, across) for relation in stage.relations]
    parts += [_axis(axis, lines[axis], stage, place[axis], across) for axis in stage.axes]
    width = 20 + max(counts.values(), default=1) * (across + _APART)
    height = 18 + (max(level.values(), default=0) + 1) * (_HIGH + _BETWEEN) - _BETWEEN
    said = [
        f"{axis} {stage.kind(axis)} {bounds[name][axis]}{' leaf' if axis in stage.leaves else ''}"
        for axis in stage.axes
    ]
    said += [f"{', '.join(parents_of(r))} to {', '.join(children_of(r))} by {_word(r)}" for r in stage.relations]
    picture = svg(width, height, "".join(parts), "; ".join(said), {"axes": len(stage.axes)})
    return f"{picture}<div>thick: leaves, which are loops; dashed: reductions</div>"


def _word(relation: Relation) -> str:
    if isinstance(relation, Fuse):
        return "fuse"
    if isinstance(relation, Skew):
        return f"skew {relation.factor}"
    tail = f" {relation.tail}" if relation.tail else ""
    return (f"split {relation.factor}" if relation.factor is not None else f"split into {relation.nparts}") + tail


def _axis_lines(axis: str, span: str, stage: Stage) -> tuple[str, str]:
    """What stands in the box of an axis: its name; its range and what the schedule does with it."""
    return short(axis, 22), short(" ".join(filter(None, (span, stage.annotation(axis)))), 26)


def _axis(axis: str, lines: tuple[str, str], stage: Stage, at: tuple[float, float], across: float) -> str:
    x, y = at
    leaf = 2.5 if axis in stage.leaves else 1
    dash = ' stroke-dasharray="5 3"' if stage.kind(axis) == "reduction" else ""
    return (
        f'<rect data-axis="{escape(axis)}" x="{x:.0f}" y="{y:.0f}" width="{across:.0f}" height="{_HIGH}" rx="6" fill="{ACCENT}" fill-opacity=".1" stroke="currentColor" stroke-width="{leaf}"{dash}/>'
        f"{letters(x + across / 2, y + 16, lines[0], 'middle')}{letters(x + across / 2, y + 31, lines[1], 'middle')}"
    )


def _relation(relation: Relation, place: Mapping[str, tuple[float, float]], across: float) -> str:
    parents, children = parents_of(relation), children_of(relation)
    y = place[children[0]][1] - 36
    x = sum(place[each][0] for each in (*parents, *children)) / len((*parents, *children)) + across / 2
    lines = [f"M{place[p][0] + across / 2:.0f} {place[p][1] + _HIGH:.0f}L{x:.0f} {y:.0f}" for p in parents]
    lines += [f"M{x:.0f} {y + 18:.0f}L{place[c][0] + across / 2:.0f} {place[c][1]:.0f}" for c in children]
    word = _word(relation)
    half = 5 + wide(word) / 2
    return (
        f'<path d="{"".join(lines)}" stroke="currentColor" fill="none"/>'
        f'<rect x="{x - half:.0f}" y="{y:.0f}" width="{2 * half:.0f}" height="18" fill="var(--jp-layout-color1,#fff)" stroke="{LINE}"/>'
        + letters(x, y + 13, word, "middle", {"relation": word})
    )


# a refused order -----------------------------------------------------------------------------------------------------------------


def refused_witness(graph: StageGraph, primitive: str, stage: str, other: str, axis: str) -> Witness | None:
    """The two points that a refusal of `compute_with` or `compute_at` is about."""
    try:
        mine, host = graph.stage(stage), graph.stage(other)
    except KeyError:
        return None
    if primitive == "compute_with" and axis in host.leaves:
        problem = check_with(graph, mine, host, axis)
        return None if problem is None else problem.witness
    if primitive == "compute_at":
        users = final_users(graph, graph.stages_on(mine.target)[0].name)
        outside = [user for user in users if user.name != other]
        return next((found for user in outside if (found := outside_read(graph, mine, user)) is not None), None)
    return None


def witness_points_svg(graph: StageGraph, witness: Witness) -> str:
    """The iteration spaces of both statements at the sizes of the witness; its two points are ringed and joined by an arrow."""
    panels = [(witness.second, witness.there, "runs first"), (witness.first, witness.here, "runs later")]
    if witness.kind == "outside":
        panels = [(witness.second, witness.there, "reads outside the loop"), (witness.first, (), "")]
    x, parts, rings, high = 12.0, list[str](), list[tuple[float, float]](), 0.0
    for name, point, said in panels:
        extents = _extents(graph.stage(name), witness.sizes)
        made, ring, width, height = _panel(name, extents, point, said, x)
        parts.append(made)
        rings += [ring] if ring is not None else []
        x, high = x + width + 46, max(high, height)
    if len(rings) == 2:
        (x1, y1), (x2, y2) = rings
        parts.append(f'<path data-arrow="" d="M{x1 + 8:.1f} {y1:.1f}L{x2 - 9:.1f} {y2:.1f}l-7 -4m7 4l-7 4" stroke="{BAD}" stroke-width="2" fill="none"/>')  # fmt: skip
    label = witness.text().replace("`", "")
    return f"<div>{svg(x, high, ''.join(parts), label, {'refused-points': len(rings)})}</div>"


def _extents(stage: Stage, sizes: Mapping[str, int]) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for root in stage.roots:
        try:
            found.append((root.name, root.dom[0].evaluate(sizes), root.dom[1].evaluate(sizes)))
        except (KeyError, ValueError, ArithmeticError):
            found.append((root.name, 0, 1))
    return found


def _panel(
    name: str, extents: Sequence[tuple[str, int, int]], point: Sequence[int], said: str, left: float
) -> tuple[str, tuple[float, float] | None, float, float]:
    """Dots of the first two indices (one index: a row), a ring around the point."""
    (down, r0, r1), (right, c0, c1) = (
        [("", 0, 1), *extents][-2:] if len(extents) == 1 else ([*extents, ("", 0, 1), ("", 0, 1)])[:2]
    )
    rows, columns = min(r1 - r0, 24), min(c1 - c0, 24)
    step = 18
    dots = "".join(f"M{left + 14 + c * step} {44 + r * step}h0" for r in range(rows) for c in range(columns))
    lines = [f"{right} → {down + ' ↓' if down else ''}", f"({', '.join(map(str, point))}) {said}" if point else ""]
    texts = letters(left, 12, name, bold=True) + letters(left, 28, lines[0])
    ring = None
    if point:
        at = [*(point if len(point) > 1 else (r0, point[0]))][:2]
        ring = (left + 14 + (at[1] - c0) * step, 44.0 + (at[0] - r0) * step)
        texts += f'<circle data-point="{escape(",".join(map(str, point)))}" cx="{ring[0]:.1f}" cy="{ring[1]:.1f}" r="7.5" fill="none" stroke="{BAD}" stroke-width="2"/>'
        texts += letters(left, 60 + max(rows, 1) * step, lines[1])
    made = f'<path d="{dots}" stroke="currentColor" stroke-width="6" stroke-linecap="round" fill="none"/>{texts}'
    return made, ring, max(28.0 + columns * step, 1.1 * wide(name), *map(wide, lines)), 68 + max(rows, 1) * step


__all__ = ["hypergraph_svg", "refused_witness", "witness_points_svg"]
