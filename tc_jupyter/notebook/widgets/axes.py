# ruff: noqa: E501  (an element of a picture is one line)
"""Pictures of one stage: the hyper-graph of its axes with their ranges, and a refused order as two points.

Worked example: `i` split by 4 is a node `i 0:64`, a box `split 4`, and two nodes `i.outer 0:16` and `i.inner 0:4` with thick borders.

Source: TVM, "InferBound Pass", the IterVar hyper-graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from tc_jupyter.schedule import Bounds, Fuse, Split, Stage, StageGraph
from tc_jupyter.schedule.legality import Witness, check_with, outside_read
from tc_jupyter.schedule.placement import final_users

from .picture import ACCENT, BAD, LINE

_WIDE, _HIGH = 132, 62
_MOST_POINTS = 600


def hypergraph_svg(bounds: Bounds, name: str) -> str:
    """Roots above, leaves below; a box per relation; every axis with its range, leaves with thick borders."""
    stage = bounds.symbolic[name].stage
    level = {root.name: 0 for root in stage.roots}
    for relation in stage.relations:
        parents, children = _ends(relation)
        depth = max(level[parent] for parent in parents) + 1
        level |= {child: depth for child in children}
    place: dict[str, tuple[float, float]] = {}
    counts: dict[int, int] = {}
    for axis in stage.axes:
        column = counts.get(level[axis], 0)
        counts[level[axis]] = column + 1
        place[axis] = (10 + column * (_WIDE + 16), 8 + level[axis] * (_HIGH + 30))
    parts = [_relation(relation, place) for relation in stage.relations]
    parts += [_axis(axis, str(bounds[name][axis]), stage, place[axis]) for axis in stage.axes]
    width = 20 + max(counts.values(), default=1) * (_WIDE + 16)
    height = 20 + (max(level.values(), default=0) + 1) * (_HIGH + 30) - 40
    said = [
        f"{axis} {stage.kind(axis)} {bounds[name][axis]}{' leaf' if axis in stage.leaves else ''}"
        for axis in stage.axes
    ]
    said += [f"{', '.join(p)} to {', '.join(c)} by {_word(r)}" for r in stage.relations for p, c in [_ends(r)]]
    return (
        f'<svg data-axes="{len(stage.axes)}" role="img" aria-label="{escape("; ".join(said))}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="color:inherit"><g fill="currentColor">{"".join(parts)}</g></svg>'
        "<div>thick: leaves, which are loops; dashed: reductions</div>"
    )


def _ends(relation: Split | Fuse) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(relation, Split):
        return (relation.parent,), (relation.outer, relation.inner)
    return (relation.outer, relation.inner), (relation.fused,)


def _word(relation: Split | Fuse) -> str:
    if isinstance(relation, Fuse):
        return "fuse"
    return f"split {relation.factor}" if relation.factor is not None else f"split into {relation.nparts}"


def _axis(axis: str, span: str, stage: Stage, at: tuple[float, float]) -> str:
    x, y = at
    leaf = 2.5 if axis in stage.leaves else 1
    dash = ' stroke-dasharray="5 3"' if stage.kind(axis) == "reduction" else ""
    note = stage.annotation(axis) or ""
    return (
        f'<rect data-axis="{escape(axis)}" x="{x:.0f}" y="{y:.0f}" width="{_WIDE}" height="38" rx="6" fill="{ACCENT}" fill-opacity=".1" stroke="currentColor" stroke-width="{leaf}"{dash}/>'
        f'<text x="{x + _WIDE / 2:.0f}" y="{y + 15:.0f}" font-size="11" text-anchor="middle">{escape(_short(axis, 22))}</text>'
        f'<text x="{x + _WIDE / 2:.0f}" y="{y + 30:.0f}" font-size="10" text-anchor="middle">{escape(_short(" ".join(filter(None, (span, note))), 26))}</text>'
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _relation(relation: Split | Fuse, place: Mapping[str, tuple[float, float]]) -> str:
    parents, children = _ends(relation)
    y = place[children[0]][1] - 24
    x = sum(place[each][0] for each in (*parents, *children)) / len((*parents, *children)) + _WIDE / 2
    lines = [f"M{place[p][0] + _WIDE / 2:.0f} {place[p][1] + 38:.0f}L{x:.0f} {y:.0f}" for p in parents]
    lines += [f"M{x:.0f} {y + 14:.0f}L{place[c][0] + _WIDE / 2:.0f} {place[c][1]:.0f}" for c in children]
    word = _word(relation)
    half = 4 + 3.2 * len(word)
    return (
        f'<path d="{"".join(lines)}" stroke="currentColor" fill="none"/>'
        f'<rect x="{x - half:.0f}" y="{y:.0f}" width="{2 * half:.0f}" height="14" fill="var(--jp-layout-color1,#fff)" stroke="{LINE}"/>'
        f'<text data-relation="{escape(word)}" x="{x:.0f}" y="{y + 11:.0f}" font-size="10" text-anchor="middle">{escape(word)}</text>'
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
    return (
        f'<div><svg data-refused-points="{len(rings)}" role="img" aria-label="{escape(label)}" width="{x:.0f}" height="{high:.0f}" viewBox="0 0 {x:.0f} {high:.0f}" '
        f'style="color:inherit"><g fill="currentColor">{"".join(parts)}</g></svg></div>'
    )


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
    texts = f'<text x="{left:.0f}" y="12" font-size="11" font-weight="bold">{escape(name)}</text>'
    texts += f'<text x="{left:.0f}" y="28" font-size="9">{escape(right)} → {escape(down) + " ↓" if down else ""}</text>'
    ring = None
    if point:
        at = [*(point if len(point) > 1 else (r0, point[0]))][:2]
        ring = (left + 14 + (at[1] - c0) * step, 44.0 + (at[0] - r0) * step)
        texts += f'<circle data-point="{escape(",".join(map(str, point)))}" cx="{ring[0]:.1f}" cy="{ring[1]:.1f}" r="7.5" fill="none" stroke="{BAD}" stroke-width="2"/>'
        texts += f'<text x="{left:.0f}" y="{60 + max(rows, 1) * step:.0f}" font-size="10">({escape(", ".join(map(str, point)))}) {escape(said)}</text>'
    made = f'<path d="{dots}" stroke="currentColor" stroke-width="6" stroke-linecap="round" fill="none"/>{texts}'
    return made, ring, max(28 + columns * step, 6.5 * (len(said) + 12)), 68 + max(rows, 1) * step


__all__ = ["hypergraph_svg", "refused_witness", "witness_points_svg"]
