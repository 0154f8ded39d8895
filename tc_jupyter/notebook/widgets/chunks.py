# ruff: noqa: E501  (an element of a picture is one line)
"""The plan of a call in chunks: what is made, and for one chunk of each what it reads of every array, halo included.

Worked example: for a blur of 64 chunks the chunk in the middle is drawn beside the chunks of `X`, of which it reads one and the
rims of eight others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import prod

from tc_jupyter.chunks.parts import Chunk, Layer
from tc_jupyter.chunks.plan import Plan

from .picture import ACCENT, LINE, MUTED, NOTE, code, plain_table
from .svg import LEADING, letters, svg

SIDE = 132
"""Units of the longer side of an array."""
LAYERS = 8
"""Layers that are drawn; a table has all of them."""
EDGES = 65
"""Edges of chunks along a side that are drawn."""


def plan_html(plan: Plan) -> str:
    """The plan as a table and a picture of each layer."""
    head = f"{plan.tasks} task{'' if plan.tasks == 1 else 's'}"
    rows = [
        (
            ", ".join(layer.part.results),
            " × ".join(str(len(edges) - 1) for edges in layer.grid) or "1",
            str(layer.tasks),
            ", ".join(
                f"{name} {plan.halo[name].text}" for name in layer.part.sources if plan.halo[name].text.strip("0, ")
            ),
            layer.why,
        )
        for layer in plan.layers
    ]
    pictures = "".join(_layer(plan, layer) for layer in plan.layers[:LAYERS])
    again = f", {plan.redundant:.1%} computed more than once" if plan.redundant > 0.0005 else ""
    return (
        f'<div style="overflow-x:auto"><div><b>{escape(plan.name)}</b> {escape(head)}<span style="{MUTED}">{escape(again)}</span></div>'
        f"{plain_table(('makes', 'chunks', 'tasks', 'halo', 'why'), rows, f'layers of {plan.name}')}{pictures}</div>"
    )


def _layer(plan: Plan, layer: Layer) -> str:
    """One chunk of a layer, and beside it what it reads."""
    middle = [(len(edges) - 1) // 2 for edges in (*layer.grid, *layer.cut)]
    chunk = next((each for each in layer.chunks if [*each.place] == middle), layer.chunks[0])
    shown = [(name, True) for name in layer.part.results] + [(name, False) for name in layer.part.sources]
    boxes = [_array(plan, chunk, name, made) for name, made in shown]
    said = f"one chunk of {', '.join(layer.part.results)}, and what it reads"
    return f'<div aria-label="{escape(said)}" style="display:flex;flex-wrap:wrap;gap:14px;align-items:flex-start;margin:8px 0">{"".join(boxes)}</div>'


def _array(plan: Plan, chunk: Chunk, name: str, made: bool) -> str:
    """The last two dimensions of an array with its chunks, and what is read or made of it."""
    region = plan.written(name, chunk.regions[name])
    grid = plan.grids[name][: len(region)]
    spans = [(edges, span) for edges, span in zip(grid, region, strict=True)][-2:]
    rows, columns = spans if len(spans) == 2 else [((0, 1), (0, 1)), *(spans or [((0, 1), (0, 1))])]
    height, width = (each[0][-1] - each[0][0] for each in (rows, columns))
    longest = max(height, width, 1)
    tall, broad = (max(12.0, SIDE * each / longest) for each in (height, width))
    inner = [f'<rect x="0.5" y="0.5" width="{broad:.1f}" height="{tall:.1f}" fill="none" stroke="{LINE}"></rect>']
    inner += _read(rows, columns, tall, broad, ACCENT if made else NOTE)
    inner += _lines(rows[0], tall, lambda y: f'<path d="M0.5 {y:.1f}H{broad + 0.5:.1f}" stroke="{LINE}"></path>')
    inner += _lines(columns[0], broad, lambda x: f'<path d="M{x:.1f} 0.5V{tall + 0.5:.1f}" stroke="{LINE}"></path>')
    extents = ", ".join(f"{low}:{high}" for low, high in region)
    said = f"{name}({extents})" if extents else name
    inner.append(letters(0, tall + LEADING, "made" if made else "read"))
    count = prod(high - low for low, high in region)
    label = f"{'makes' if made else 'reads'} {said}, {count} elements"
    picture = svg(max(broad, 40) + 2, tall + LEADING + 4, "".join(inner), label, {"array": name})
    return f"<div>{code(said)}<div>{picture}</div></div>"


def _read(
    rows: tuple[Sequence[int], tuple[int, int]],
    columns: tuple[Sequence[int], tuple[int, int]],
    tall: float,
    broad: float,
    colour: str,
) -> list[str]:
    """The region, in as many rectangles as it has where it goes around the ends."""
    found: list[str] = []
    for top, bottom in _turned(*rows):
        for left, right in _turned(*columns):
            x, y = (left * broad, top * tall)
            wide, high = max(2.0, (right - left) * broad), max(2.0, (bottom - top) * tall)
            found.append(
                f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{colour}" fill-opacity=".45" stroke="{colour}"></rect>'
            )
    return found


def _turned(edges: Sequence[int], span: tuple[int, int]) -> list[tuple[float, float]]:
    """A span as fractions of a dimension; what is beyond an end is at the other one."""
    first, length = edges[0], max(1, edges[-1] - edges[0])
    low, high = span[0] - first, span[1] - first
    parts = [(low, high), (low + length, high + length), (low - length, high - length)]
    inside = [(max(a, 0), min(b, length)) for a, b in parts]
    return [(a / length, b / length) for a, b in inside if a < b]


def _lines(edges: Sequence[int], side: float, line: Callable[[float], str]) -> list[str]:
    """The edges between chunks, if they are not too many to be seen."""
    first, length = edges[0], max(1, edges[-1] - edges[0])
    inner = edges[1:-1]
    return [line((each - first) / length * side + 0.5) for each in inner] if len(inner) <= EDGES else []
