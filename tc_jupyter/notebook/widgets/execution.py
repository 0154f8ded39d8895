"""In which order a schedule runs the points of a statement, and which block and thread of a GPU runs which point.

Loops that are parallel, vectorised or bound to blocks and threads do not take turns: all their iterations have the same step.

Worked example: `C(i, j)` with `i` split by 2 and the outer loop bound to blocks has one step per point of a block; points of
different blocks with the same place inside have the same step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tc_jupyter.schedule import GPU_AXES, GRID_AXES, THREAD_AXES, Bounds, variable
from tc_jupyter.schedule.visits import Enumeration

from .colours import of_kind
from .lattice import runs
from .picture import ACCENT, LINE, table, words
from .svg import LEADING, letters, svg, wide

Ints = NDArray[np.int64]
_AT_ONCE = ("parallel", "vectorize", *GPU_AXES)
_MOST_CELLS = 10_000
_RINGED = 6.0
"""Cells that are smaller would be hidden by the ring around them."""
_MOST_LABELS = 300
_MOST_BLOCKS = 80
_LISTED = 12


@dataclass(frozen=True, slots=True)
class Execution:
    """The points of one stage in order of execution.

    Attributes:
        names: its indices; points: one row per point, one column per index.
        step: per point when it runs, from 0.
        steps: number of steps.
        block, thread: per point the number of its block and thread; no column where no loop is bound to them.
        loops: the loops around a point, outermost first, with their annotation.
    """

    names: tuple[str, ...]
    points: Ints
    step: Ints
    steps: int
    block: Ints
    thread: Ints
    loops: tuple[tuple[str, str], ...]

    @property
    def mapped(self) -> bool:
        """Whether blocks or threads take part."""
        return bool(self.block.shape[1] or self.thread.shape[1])


def execution(bounds: Bounds, stage: str) -> Execution:
    """The order of one stage.

    Raises:
        TooManyPoints: it cannot be enumerated at these sizes.
    """
    graph = bounds.symbolic.graph
    path = tuple(reversed(graph.attach_path(stage)))
    space = Enumeration(bounds.symbolic, bounds.sizes).space(stage, path)
    around = [*path, *((stage, leaf) for leaf in graph.stage(stage).leaves)]
    notes = [graph.stage(owner).annotation(leaf) or "" for owner, leaf in around]
    columns = [space.loops[variable(*loop)] for loop in around]
    order = np.lexsort(columns[::-1]) if columns else np.arange(space.count)
    columns = [column[order] for column in columns]
    names = tuple(space.roots)
    points = (
        np.stack([space.roots[name][order] for name in names], axis=1)
        if names
        else np.zeros((space.count, 0), np.int64)
    )
    in_turn = [column for column, note in zip(columns, notes, strict=True) if note not in _AT_ONCE]
    step, steps = _numbered(in_turn, len(points))
    return Execution(
        names, points, step, steps,
        _columns(columns, notes, GRID_AXES, len(points)), _columns(columns, notes, THREAD_AXES, len(points)),
        tuple((f"{owner}[{leaf}]", note) for (owner, leaf), note in zip(around, notes, strict=True)),
    )  # fmt: skip


def points_of(bounds: Bounds, stage: str) -> int:
    """How many points a stage runs, about; without a list of them where its loops have constant lengths.

    Raises:
        TooManyPoints: it cannot be counted at these sizes.
    """
    found = bounds.symbolic[stage].stage
    extents = [bounds[stage][leaf].extent for leaf in found.leaves]
    if all(isinstance(extent, int) for extent in extents):
        return math.prod(max(1, int(str(extent))) for extent in extents)
    reductions = [bounds[stage][root.name].extent for root in found.roots if root.kind == "reduction"]
    inner = math.prod(max(1, extent) for extent in reductions if isinstance(extent, int))
    return len(bounds.needs[stage].elements) * inner


def _numbered(columns: Sequence[Ints], count: int) -> tuple[Ints, int]:
    """The place of every row among the different rows, in lexicographic order."""
    if not columns or not count:
        return np.zeros(count, np.int64), min(count, 1)
    rows, back = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return back.reshape(-1).astype(np.int64), len(rows)


def _columns(columns: Sequence[Ints], notes: Sequence[str], wanted: Sequence[str], count: int) -> Ints:
    found = [column for name in wanted for column, note in zip(columns, notes, strict=True) if note == name]
    return np.stack(found, axis=1) if found else np.zeros((count, 0), np.int64)


def execution_html(found: Execution, time: int) -> str:
    """The picture at one step, and the same as words and a table."""
    if not len(found.points):
        return words("nothing runs at these sizes", "∅")
    now = int((found.step == time).sum())
    together = [f"{name} ({note})" for name, note in found.loops if note in _AT_ONCE]
    said = f"step {time + 1} of {found.steps}: {now} {'point' if now == 1 else 'points'}"
    points = [f"({', '.join(map(str, row))})" for row in found.points[found.step == time][:4].tolist()]
    said += f" {', '.join(points)}{', ...' if now > 4 else ''}" if found.names else ""
    parts = [f"<div data-step='{time}'>{escape(said)}</div>"]
    if together:
        parts.append(f"<div>at the same time: {escape(', '.join(together))}</div>")
    parts.append(_svg(found, time, said))
    if found.mapped:
        parts.append(_mapping_table(found))
    return "".join(parts)


def _cells(found: Execution) -> tuple[Ints, list[tuple[int, int]]]:
    """The cell of every point (of its first two indices; one index lies in a row), and the ends of rows and columns."""
    columns = [found.points[:, n] for n in range(min(2, found.points.shape[1]))]
    if not columns:
        columns = [np.zeros(len(found.points), np.int64)]
    if len(columns) == 1:
        columns = [np.zeros_like(columns[0]), columns[0]]
    ends = [(int(column.min()), int(column.max()) + 1) for column in columns]
    rows, places = columns[0] - ends[0][0], columns[1] - ends[1][0]
    return rows * (ends[1][1] - ends[1][0]) + places, ends


def _svg(found: Execution, time: int, said: str) -> str:
    cell, ends = _cells(found)
    height, width = (high - low for low, high in ends)
    if height * width > _MOST_CELLS:
        return words(f"{height} x {width} points are too many to draw one by one: choose smaller sizes")
    names = [*found.names[:2]] if len(found.names) > 1 else ["", *found.names[:1]]
    right, down = (names[1], names[0]) if len(names) > 1 else ("", "")
    title = f"{right} → {ends[1][0]} .. {ends[1][1] - 1}"
    left = max(34.0, wide(f"{down} ↓") + 8)
    square = min(40.0 if found.mapped else 28.0, 460 / width, 320 / height)
    # few rows of many columns, or the other way round: letters have a place, cells are no squares
    step, tall = (max(square, min(LEADING + 3.0, most / count)) for most, count in ((460, width), (320, height)))
    at = lambda c, r: (left + c * step, 20 + r * tall)  # noqa: E731
    first = np.full(height * width, -1, np.int64)
    first[cell[::-1]] = np.arange(len(cell))[::-1]
    present = np.nonzero(first >= 0)[0]
    done = set(cell[found.step < time].tolist())
    now = set(cell[found.step == time].tolist())
    looks: dict[tuple[str, str], str] = {}
    for place, length, kind in runs(present.tolist(), width, lambda n: _look(found, n, int(first[n]), done)):
        x, y = at(place % width, place // width)
        looks[kind] = looks.get(kind, "") + f"M{x:.1f} {y:.1f}h{length * step:.1f}v{tall:.1f}h{-length * step:.1f}z"
    parts = [f'<path d="{d}" fill="{fill}" fill-opacity="{opacity}"/>' for (fill, opacity), d in looks.items()]
    grid = "".join(f"M{at(0, r)[0]:.1f} {at(0, r)[1]:.1f}h{width * step:.1f}" for r in range(height + 1))
    grid += "".join(f"M{at(c, 0)[0]:.1f} {at(c, 0)[1]:.1f}v{height * tall:.1f}" for c in range(width + 1))
    parts += [f'<path d="{grid}" stroke="{LINE}" fill="none"/>'] if step >= 5 else []
    ringed = "".join(
        f"M{at(n % width, 0)[0] + 1:.1f} {at(0, n // width)[1] + 1:.1f}h{k * step - 2:.1f}v{tall - 2:.1f}h{2 - k * step:.1f}z"
        for n, k, _ in runs(
            sorted(now) if len(now) < len(present) or step >= 12 else [], width, lambda n: "now" if step < 12 else n
        )
    )
    small = min(step, tall) < _RINGED
    look = 'fill="currentColor" fill-opacity=".4"' if small else 'stroke="currentColor" stroke-width="2" fill="none"'
    parts.append(f'<path data-now="{len(now)}" d="{ringed}" {look}/>')
    if found.mapped:
        parts += _mapped_labels(found, present, first[present], width, square, at)
    if not found.mapped and 1 < len(present) <= _MOST_LABELS:
        visited = present[np.argsort(first[present], kind="stable")]
        route = "L".join(
            f"{at(n % width, 0)[0] + step / 2:.1f} {at(0, n // width)[1] + tall / 2:.1f}" for n in visited.tolist()
        )
        parts.append(
            f'<path data-route="" d="M{route}" fill="none" stroke="currentColor" stroke-width="1" opacity=".6"/>'
        )
    parts.append(letters(left, 12, title))
    if down:
        parts.append(letters(2, 20 + min(14.0, tall - 3), f"{down} ↓"))
    w, h = left + max(6 + width * step, wide(title)), 26 + height * tall
    return (
        f"{svg(w, h, ''.join(parts), said, {'execution': found.steps})}<div>{'shaded' if small else 'outlined'}: runs now; "
        f"{'colour and b: block; t: thread' if found.mapped else 'filled: has run; line: order of the first runs'}</div>"
    )


def _mapped_labels(
    found: Execution, cells: Ints, points: Ints, width: int, step: float, at: Callable[[int, int], tuple[float, float]]
) -> list[str]:
    """Block and thread of every cell where they have a place, else the block where its cells begin and leave one."""
    both = [
        [f"{m}{_said(v)}" if len(v) else "" for m, v in zip("bt", _pair(found, p), strict=True)]
        for p in points.tolist()
    ]
    places = [at(n % width, n // width) for n in cells.tolist()]
    if step >= 2 * LEADING and len(cells) <= _MOST_LABELS and max(map(wide, chain(*both))) <= step - 2:
        return [
            letters(x + step / 2, y + step / 2 - 3 + LEADING * line, said, "middle")
            for (x, y), lines in zip(places, both, strict=True)
            for line, said in enumerate(lines)
            if said
        ]
    if not found.block.shape[1]:
        return []
    blocks, starts = np.unique(found.block[points], axis=0, return_index=True)
    taken: list[tuple[float, float, float]] = []
    labels: list[str] = []
    for block, start in list(zip(blocks, starts.tolist(), strict=True))[:_MOST_BLOCKS]:
        (x, y), said = places[start], f"b{_said(block)}"
        if all(
            y - other >= LEADING or other - y >= LEADING or x >= end or x + wide(said) <= begin
            for begin, end, other in taken
        ):
            taken.append((x, x + wide(said) + 4, y))
            labels.append(letters(x + 2, y + 11, said, facts={"block": _said(block)}))
    return labels


def _pair(found: Execution, point: int) -> tuple[Ints, Ints]:
    return found.block[point], found.thread[point]


def _look(found: Execution, cell: int, point: int, done: set[int]) -> tuple[str, str]:
    """Colour and opacity of a cell."""
    if found.mapped:
        return of_kind(_key(found.block[point])), ".35"
    return ACCENT, ".45" if cell in done else "0"


def _key(values: Ints) -> int:
    """A number per block, different for neighbours."""
    return int(sum(v * w for v, w in zip(values.tolist(), (1, 7, 31), strict=False)))


def _said(values: Ints) -> str:
    return ",".join(map(str, values.tolist()))


def _mapping_table(found: Execution) -> str:
    """How many points each block and thread runs."""
    blocks, back = np.unique(found.block, axis=0, return_inverse=True)
    rows: list[list[str]] = []
    for n, block in enumerate(blocks[:_LISTED]):
        mine = back.reshape(-1) == n
        threads, counts = np.unique(found.thread[mine], axis=0, return_counts=True)
        each = f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
        rows.append([f"({_said(block)})" if len(block) else "-", str(len(threads)), each, str(int(mine.sum()))])
    more = f"<div>and {len(blocks) - _LISTED} more blocks</div>" if len(blocks) > _LISTED else ""
    return table(["block", "threads", "points per thread", "points"], rows, "blocks and threads") + more
