# ruff: noqa: E501  (an element of a picture is one line)
"""The iteration space of a statement: its lattice, coloured by the element that an access touches, with small pictures of the tensors.

Up to 2,000 points are SVG, drawn here; more are drawn by the script on a canvas, from the same numbers. Points are drawn as one
path per element, a round dot per point (`M x y h0`), so that counting the `M` of a colour counts the points that touch an element.

Worked example: `IterationSpace(conv)` shows `i` to the right and `k` (dashed: reduction) down; the dots on an anti-diagonal of
`B(i + k)` have one colour, because they read the same element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

import numpy as np

from tc_jupyter.function import Function, OpenRanks

from .colours import Colours, ink
from .lattice import (
    CANVAS_LIMIT,
    DRAG_LIMIT,
    NOT_MADE,
    OUTSIDE,
    SVG_LIMIT,
    THINNED,
    UNKNOWN,
    Ints,
    Space,
    TensorBox,
    Touch,
    axes_of,
    colours_of,
    grid_of,
    runs,
    space_of,
    touched_at,
)
from .picture import (
    BAD,
    LINE,
    MUTED,
    Content,
    Control,
    Picture,
    as_integer,
    code,
    folded,
    one_line,
    plain_table,
    table,
    words,
)
from .sizes import SizeNames, example_sizes, read_sizes, size_names
from .svg import EM, LEADING, LETTERS, growing, letters, svg, wide
from .svg import units as _n

_HINT = f'<span style="{MUTED}">point at the picture, or walk over it with the arrow keys: what a point touches is said here</span>'
_STATIC_POINTS = 400
_LISTED = 24
_ARROWS = 400
_CELLS = 1_024
_LABELLED = 120
_TENSORS = 230
"""Width of the small pictures of the tensors at most."""
_GRID = 3.0
"""Lines between the elements of a tensor that are closer, in pixels, would hide them."""


class Counts(NamedTuple):
    """Over some points, per access: its text, how many elements it touches, how often, and what is to be said of it."""

    points: int
    rows: list[tuple[str, int, int, str]]


class IterationSpace(Picture):
    """The view of one statement at a time."""

    name = "iteration_space"
    title = "iteration space"

    def __init__(self, function: Function, statement: str | None = None, **sizes: int) -> None:
        """Raise `KeyError` for a statement that the function has not."""
        super().__init__(function)
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = {}
        self.statement = ""
        self.shown: list[int] = [0, 1, -1]
        self.fixed: dict[str, int] = {}
        self.colour = -1
        self.arrows = False
        self.dragging = False
        self._counted: tuple[Space, Counts] | None = None
        try:
            found = function.analysis
        except OpenRanks as problem:
            self.problem = str(problem)
            return
        self.known = size_names(found)
        self.sizes = example_sizes(self.known, sizes)
        names = [each.name for each in found.program.statements]
        if statement is not None and statement not in names:
            raise KeyError(f"no statement {statement!r}; there are {', '.join(names)}")
        self.statement = statement or (names[-1] if names else "")
        self.shown = self._usual()

    # values ----------------------------------------------------------------------------------------------------------------------

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Take values of controls."""
        known, self.dragging = self.known, dragging
        if known is None:
            return
        self.sizes, self.problem = read_sizes(known, self.sizes, values)
        names = [each.name for each in known.found.program.statements]
        if values.get("statement") in names:
            self.statement, self.colour, self.fixed = str(values["statement"]), -1, {}
            self.shown = self._usual()
        for place, key in enumerate(("x", "y", "z")):
            number = as_integer(values.get(key))
            if number is not None:
                self._show(place, number)
        if values.get("swap") and self.shown[1] >= 0:
            self.shown[:2] = self.shown[1], self.shown[0]
        colour = as_integer(values.get("colour"))
        self.colour = self.colour if colour is None else colour
        self.arrows = bool(values.get("arrows", self.arrows))
        for key, value in values.items():
            number = as_integer(value)
            if key.startswith("fix:") and number is not None:
                self.fixed[key[4:]] = number

    def _usual(self) -> list[int]:
        """The axes to the right and down as tensors are drawn: of a result with two indices the second one to the right, and so of
        what one without indices reads.
        """
        if self.known is None or not self.statement:
            return [0, 1, -1]
        ranges = self.known.found.ranges.points(self.statement)
        drawn = [n for n, r in enumerate(ranges) if r.kind == "output"] or list(range(len(ranges)))
        return [drawn[1], drawn[0], -1] if len(drawn) > 1 else [0, 1, -1]

    def _show(self, place: int, number: int) -> None:
        """Put an axis at a place; an axis that stood elsewhere changes places with it."""
        if number >= 0 and number in self.shown:
            other = self.shown.index(number)
            self.shown[other] = self.shown[place]
        self.shown[place] = number

    def space(self, limit: int | None = None, every: bool = False) -> Space:
        """The present points; `every`: also those for which a page has no place.

        Raises:
            KeyError, ValueError, ArithmeticError: a range has no number at these sizes.
        """
        assert self.known is not None
        found = self.known.found
        numbers = self.known.all_numbers(self.sizes)
        statement = found.program.statement(self.statement)
        count = len(axes_of(found, statement, numbers))
        shown = [n for n in self.shown if 0 <= n < count] or list(range(min(1, count)))
        axes = axes_of(found, statement, numbers)
        many = math.prod(axes[n].extent for n in shown) > DRAG_LIMIT
        most = limit or (THINNED if self.dragging and many else CANVAS_LIMIT)
        return space_of(found, statement, numbers, shown, self.fixed, None if every else most)

    def coloured(self, space: Space) -> int:
        """Which access gives the colours: the chosen one, else a scattered write, else the first read that is known, else the write."""
        if 0 <= self.colour < len(space.touches):
            return self.colour
        scattered = [n for n, t in enumerate(space.touches) if t.write and t.examples]
        if scattered:
            return scattered[0]
        reads = [n for n, t in enumerate(space.touches) if not t.write and not (t.numbers == UNKNOWN).any()]
        return reads[0] if reads else 0

    def ask(self, question: Mapping[str, Any]) -> Any:
        """What one point touches: `{"point": [1, 2]}` with values of the shown axes."""
        space = self.space(SVG_LIMIT)
        point = [as_integer(value) for value in question.get("point", [])]
        if len(point) != len(space.shown) or any(value is None for value in point) or self.known is None:
            return None
        at = {space.axes[n].name: int(v or 0) for n, v in zip(space.shown, point, strict=True)}
        numbers = self.known.all_numbers(self.sizes)
        statement = self.known.found.program.statement(self.statement)
        every = {**space.fixed, **at}
        if not all(axis.low <= every[axis.name] < axis.high for axis in space.axes):
            return None
        return touched_at(self.known.found, statement, numbers, every)

    # content ---------------------------------------------------------------------------------------------------------------------

    def content(self, live: bool = False) -> Content:
        """SVG for few points; for many the data of a canvas, and in a saved notebook a thinned SVG."""
        if self.known is None or not self.statement:
            said = self.problem or "this def has no statement"
            return Content(words(said), text=said)
        try:
            space = self.space(None if live else _STATIC_POINTS)
        except (KeyError, ValueError, ArithmeticError) as problem:
            said = f"no picture at these sizes: {one_line(problem)}"
            return Content(words(said), self._controls(None), text=said)
        if not live and space.total <= SVG_LIMIT:
            whole = self._body(self.space(SVG_LIMIT), False)
            if len(whole) <= 60_000:
                return Content(whole, text=self._text(space))
        on_canvas = live and len(space.points) > SVG_LIMIT
        kind = "<f8" if _is_wide(space) else "<i4"
        sent = b"".join(t.numbers.astype(kind).tobytes() for t in self._sent(space)) if live else b""
        return Content(
            self._body(space, live), self._controls(space), self._data(space, on_canvas), sent, self._text(space)
        )

    def _sent(self, space: Space) -> list[Touch]:
        """All accesses, or for many points, and while a slider moves, only the one that gives the colours."""
        touches = list(space.touches)
        few = len(space.points) <= (SVG_LIMIT if self.dragging else DRAG_LIMIT // 2)
        return touches if few else touches[(n := self.coloured(space)) : n + 1]

    def _data(self, space: Space, on_canvas: bool) -> dict[str, Any]:
        layout = Layout(space)
        sent = self._sent(space)
        return {
            "canvas": on_canvas,
            "axes": [
                [space.axes[n].name, space.axes[n].kind, space.axes[n].low, space.axes[n].extent] for n in space.shown
            ],
            "strides": list(space.strides),
            "columns": [t.text for t in sent],
            "touches": [[t.text, t.tensor, t.write] for t in space.touches],
            "coloured": self.coloured(space) if len(sent) == len(space.touches) else 0,
            "wide": _is_wide(space),
            "count": len(space.points),
            "total": space.total,
            "colours": colours_of(space, self.coloured(space)).data(),
            "layout": layout.data(),
            "tensors": {name: [list(b.origin), list(b.shape), b.brackets] for name, b in space.tensors.items()},
            "fixed": dict(space.fixed),
        }

    def _controls(self, space: Space | None) -> tuple[Control, ...]:
        assert self.known is not None
        found = self.known.found
        controls = list(self.known.controls(self.sizes))
        statements = found.program.statements
        if len(statements) > 1:
            texts = tuple((s.name, f"{s.name}: {' '.join(s.text.split())[:60]}") for s in statements)
            controls.append(Control("statement", "choice", "statement", self.statement, texts))
        if space is None:
            return tuple(controls)
        names = tuple((n, f"{axis.name} ({axis.kind})") for n, axis in enumerate(space.axes))
        places = [*space.shown, -1, -1][:3]
        if len(names) > 1:
            controls.append(Control("x", "choice", "right", places[0], names))
            controls.append(Control("y", "choice", "down", places[1], ((-1, "none"), *names)))
            controls.append(Control("swap", "button", "⇄ swap", disabled=places[1] < 0))
        if len(names) > 2:
            controls.append(Control("z", "choice", "panels", places[2], ((-1, "none"), *names)))
        for axis in space.axes:
            if axis.name in space.fixed and axis.extent > 0:
                value = space.fixed[axis.name]
                controls.append(Control(f"fix:{axis.name}", "size", axis.name, value, low=axis.low, high=axis.high - 1))
        texts = tuple((n, f"{'writes' if t.write else 'reads'} {t.text}") for n, t in enumerate(space.touches))
        if texts:
            controls.append(Control("colour", "choice", "colour by", self.coloured(space), texts))
        if any(space.tensors[t.tensor].kind != "input" and not t.write for t in space.touches):
            controls.append(Control("arrows", "check", "dependences as arrows", self.arrows))
        return tuple(controls)

    def _text(self, space: Space) -> str:
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        lines = [f"iteration space of {space.text}" + (f"  at {sizes}" if sizes else "")]
        lines += [f"  {others}"] if (others := self._other_statements()) else []
        lines += [f"  {refused}"] if (refused := self._refusal()) else []
        lines += [f"  {a.range}  {a.kind}, {a.extent} values" for a in space.axes]
        if space.fixed:
            lines.append(f"  shown, and counted below: the points with {_fixed(space)}")
        counted = self._counts(space)
        if counted.points < space.total:
            lines.append(f"  counted below: a sample, {counted.points:,} of {space.total:,} points")
        example = {f"{'writes' if t.write else 'reads'} {t.text}" for t in space.touches if t.examples}
        for access, elements, times, notes in counted.rows:
            told = f"{elements} elements touched, {times} times" if times or not notes else ""
            why = f"({notes})" if told and access in example else "" if told else notes
            lines.append(f"  {access}: {' '.join(filter(None, (told, why)))}")
        return "\n".join(lines)

    def _other_statements(self) -> str:
        """How to see another statement of the def, where there is no menu to choose it from."""
        others = [] if self.known is None else [s.name for s in self.known.found.program.statements]
        asked = ", ".join(f'`statement="{name}"`' for name in others if name != self.statement)
        return f"ask for another statement with {asked}" if asked else ""

    def _refusal(self) -> str:
        return "" if self.known is None else self.known.refusal(self.sizes)

    def _counts(self, space: Space) -> Counts:
        """Per access how many elements it touches; counted once for a picture of many points."""
        if self._counted is None or self._counted[0] is not space:
            self._counted = space, self._count(space)
        return self._counted[1]

    def _count(self, space: Space) -> Counts:
        """Count over all points, also those that are not drawn, unless there are too many."""
        if space.thinned and space.total <= (DRAG_LIMIT if self.dragging else CANVAS_LIMIT):
            space = self.space(every=True)
        rows: list[tuple[str, int, int, str]] = []
        for touch in space.touches:
            real = touch.numbers[touch.numbers >= 0]
            notes = [
                f"1 point {one}" if number == 1 else f"{number} points {more}"
                for mark, one, more in (
                    (NOT_MADE, "skips it (×)", "skip it (×)"),
                    (OUTSIDE, "leaves the tensor (△)", "leave the tensor (△)"),
                )
                if (number := int((touch.numbers == mark).sum()))
            ]
            if (touch.numbers == UNKNOWN).any():
                notes.append("which element depends on data")
            if touch.examples:
                notes.append(f"with an example of {' and '.join(touch.examples)}: each call has its own values")
            rows.append(
                (
                    f"{'writes' if touch.write else 'reads'} {touch.text}",
                    _different(real),
                    len(real),
                    "; ".join(notes),
                )
            )
        return Counts(len(space.points), rows)

    def _body(self, space: Space, live: bool) -> str:
        parts = [f"<div>{code(space.text)}</div>"]
        if space.fixed and not live:  # no slider says it
            parts.append(f"<div>the points with {code(_fixed(space))}</div>")
        if self.problem:
            parts.append(words(self.problem, "✗", BAD))
        if refused := self._refusal():
            parts.append(words(refused, "✗", BAD))
        empty = [axis for axis in space.axes if axis.extent == 0]
        for axis in empty:
            if axis.low == axis.high:  # of others the refusal says so
                parts.append(words(f"empty: no `{axis.name}` satisfies `{axis.range}`", "∅"))
        if space.thinned:
            every = ", ".join(
                f"every {_ordinal(s)} `{space.axes[n].name}`"
                for n, s in zip(space.shown, space.strides, strict=True)
                if s > 1
            )
            parts.append(words(f"thinned: {len(space.points):,} of {space.total:,} points are drawn ({every})"))
        if not empty:
            parts.append(self._picture(space, live))
            parts.append(
                f'<div data-readout="" role="status" aria-live="polite" style="min-height:1.5em">{_HINT}</div>'
                if live
                else ""
            )
        parts.append(self._tables(space))
        return "".join(parts)

    def _picture(self, space: Space, live: bool) -> str:
        label = self._text(space).replace("\n", "; ")
        if live and len(space.points) > SVG_LIMIT:
            lattice = f'<div data-lattice="canvas" tabindex="0" role="img" aria-label="{escape(label)}"></div>'
        else:
            focus = ' tabindex="0"' if live else ""
            lattice = f'<div data-lattice="svg"{focus}>{lattice_svg(space, self.coloured(space), label, self._lines(space))}</div>'
        pictures = "".join(tensor_svg(space, box, self.coloured(space)) for box in touched(space))
        style = "display:flex;flex-wrap:wrap;gap:6px 28px;align-items:flex-start;margin:6px 0"
        together = Layout(space).width + 28 + _TENSORS
        return f'<div style="{style};{growing(together)}">{lattice}<div data-tensors="">{pictures}</div></div>'

    def _lines(self, space: Space) -> int:
        """How many arrows may be drawn: none unless asked for."""
        return _ARROWS if self.arrows else 0

    def _tables(self, space: Space) -> str:
        ranges = [[code(a.name), a.kind, code(a.range), str(a.extent)] for a in space.axes]
        counts = [
            [code(text), str(count), str(times), escape(note)] for text, count, times, note in self._counts(space).rows
        ]
        head = ["access", "different elements", "touched", "" if not any(row[3] for row in counts) else "note"]
        number = self._counts(space).points
        over = f"all {number:,} points" if number == space.total else f"a sample of {number:,} points"
        shown = table(["index", "kind", "range", "values"], ranges, f"indices of {space.statement}")
        shown += table(head, counts, f"accesses of {space.statement} over {over}")
        shown += words(f"counted over {over}") if number < space.total else ""
        return shown + folded("points as a table", self._points(space))

    def _points(self, space: Space) -> str:
        names = [space.axes[n].name for n in space.shown]
        rows = [
            [*(str(v) for v in point), *(element_text(space, touch, n) for touch in space.touches)]
            for n, point in enumerate(space.points[:_LISTED].tolist())
        ]
        rest = len(space.points) - len(rows)
        more = f"<div>and {rest:,} more points</div>" if rest > 0 else ""
        return (
            plain_table([*names, *(t.text for t in space.touches)], rows, "points and the elements they touch") + more
        )


def element_text(space: Space, touch: Touch, point: int) -> str:
    """`B(3)` for a point, or why there is no element."""
    number = int(touch.numbers[point])
    if number >= 0:
        return space.tensors[touch.tensor].element(number)
    return {NOT_MADE: "skipped", OUTSIDE: "outside", UNKNOWN: "depends on data"}[number]


def touched(space: Space) -> list[TensorBox]:
    """The tensors of a statement, the written one first."""
    names = dict.fromkeys(touch.tensor for touch in space.touches)
    return [space.tensors[name] for name in names if name in space.tensors]


def _is_wide(space: Space) -> bool:
    """Whether numbers of elements are sent to the page as `double`: four bytes hold no more than 2^31."""
    return any(space.tensors[touch.tensor].count >= 1 << 31 for touch in space.touches)


def _fixed(space: Space) -> str:
    return ", ".join(f"{name} = {value}" for name, value in space.fixed.items())


def _different(numbers: Ints) -> int:
    """How many different elements: by counting where numbers are small, else by sorting (hashing is slow on regular numbers)."""
    if not len(numbers):
        return 0
    if int(numbers.max()) <= 4_000_000:
        return int(np.count_nonzero(np.bincount(numbers)))
    ordered = np.sort(numbers)
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


# drawing -------------------------------------------------------------------------------------------------------------------------


class Layout:
    """Where points are: `x` to the right, `y` down, one panel per value of the third axis, panels in rows.

    Above the points stand the name of the first axis, for each panel its value, and the numbers of the columns; the name of the second
    axis and the numbers of the rows stand to the left.
    """

    GAP, WIDE = 26, 620

    def __init__(self, space: Space) -> None:
        drawn = [space.axes[n] for n in space.shown]
        extents = [-(-axis.extent // s) for axis, s in zip(drawn, space.strides, strict=True)]
        self.columns, self.rows, self.panels = [*extents, 1, 1, 1][:3]
        widest = max(self.columns, 1) if self.panels == 1 else max(self.columns, 1) * min(self.panels, 4)
        self.step = max(min(26.0, (self.WIDE - 60) / widest, 460 / max(self.rows, 1)), 0.5)
        self.names = [f"{axis.name} ({axis.kind})" for axis in drawn]
        numbers = [max(wide(str(axis.low)), wide(str(axis.high - 1))) for axis in drawn]
        self.number = [*numbers, 0.0, 0.0][:2]
        down = wide(f"{drawn[1].name} ↓") if len(drawn) > 1 else 0.0
        self.left = max(46.0, self.number[1] + 10, down + 8 + max(0.0, self.number[0] - self.step) / 2)
        titled = max([0.0, *(wide(self.panel_name(space, panel)) + 12 for panel in (0, self.panels - 1))])
        self.panel_width = max(self.columns * self.step + max(self.GAP, self.number[1] + 12), titled)
        self.across = max(1, min(self.panels, int(self.WIDE // max(self.panel_width, 1))))
        lines = 1 + (self.panels > 1) if drawn else 0
        self.top = 19 + LEADING * lines
        self.panel_height = self.rows * self.step + 14 + LEADING * lines
        ends = [f"{name} {axis.low} .. {axis.high - 1} →" for name, axis in zip(self.names, drawn[:2], strict=False)]
        title = max([0.0, *(1.1 * wide(said) for said in ends)])
        self.width = self.left + max(self.across * self.panel_width, title)
        self.height = self.top + -(-self.panels // self.across) * self.panel_height - LEADING * lines - 4

    @staticmethod
    def panel_name(space: Space, panel: int) -> str:
        """What stands above a panel: the value of the third axis."""
        if len(space.shown) < 3:
            return ""
        axis = space.axes[space.shown[2]]
        return f"{axis.name} = {axis.low + panel * space.strides[2]}"

    def origin(self, panel: int) -> tuple[float, float]:
        """Left upper corner of a panel."""
        return (
            self.left + (panel % self.across) * self.panel_width,
            self.top + (panel // self.across) * self.panel_height,
        )

    def place(self, column: int, row: int, panel: int) -> tuple[float, float]:
        """Middle of a point."""
        x, y = self.origin(panel)
        return x + (column + 0.5) * self.step, y + (row + 0.5) * self.step

    def data(self) -> dict[str, Any]:
        """For the script."""
        return {
            "em": EM, "letters": LETTERS, "left": self.left, "top": self.top, "step": self.step, "columns": self.columns, "rows": self.rows,
            "panels": self.panels, "across": self.across, "panelWidth": self.panel_width, "panelHeight": self.panel_height,
            "width": self.width, "height": self.height,
        }  # fmt: skip


def lattice_svg(space: Space, coloured: int, label: str, arrows: int = 0) -> str:
    """The lattice: a dot per point in the colour of its element, × where the access is skipped, △ where it leaves the tensor."""
    layout = Layout(space)
    strides = np.array(space.strides, np.int64)
    lows = np.array([space.axes[n].low for n in space.shown], np.int64)
    cells = (space.points - lows) // strides if space.points.shape[1] else space.points
    numbers = space.touches[coloured].numbers if space.touches else np.zeros(len(space.points), np.int64)
    groups: dict[int, list[str]] = {}
    places: list[tuple[float, float]] = []
    for cell, number in zip(cells.tolist(), numbers.tolist(), strict=True):
        column, row, panel = [*cell, 0, 0, 0][:3]
        x, y = layout.place(column, row, panel)
        places.append((x, y))
        groups.setdefault(number, []).append(_mark(number, x, y, layout.step))
    colours = colours_of(space, coloured)
    drawn = [_group(number, marks, colours) for number, marks in sorted(groups.items())]
    style = f'stroke-width="{_n(layout.step * 0.7)}" stroke-linecap="round" fill="none"'
    dots = f'<g data-dots="" {style}>{"".join(drawn[sum(n < 0 for n in groups) :])}</g>'
    dots += "".join(drawn[: sum(n < 0 for n in groups)])
    labels = ""
    if len(places) <= _LABELLED and layout.step >= max(
        LETTERS + 4, wide(str(numbers.max())) + 2 if len(numbers) else 0
    ):
        by_ink: dict[str, str] = {}
        for (x, y), number in zip(places, numbers.tolist(), strict=True):
            if number >= 0:
                tone = ink(colours.of(number))
                by_ink[tone] = by_ink.get(tone, "") + letters(x, y + 4, str(number), "middle")
        labels = "".join(f'<g data-ink="" fill="{tone}">{each}</g>' for tone, each in by_ink.items())
    inner = f"<title>{escape(label[:400])}</title>{_frame(space, layout)}{dots}{labels}"
    width, height = layout.width, layout.height
    if arrows:
        lines, width, height = _arrows(space, layout, places, arrows)
        inner += lines
    return svg(width, height, inner, label, grows=False)


def _mark(number: int, x: float, y: float, step: float) -> str:
    if number >= 0:
        return f"M{_n(x)} {_n(y)}h0"
    r = step * 0.26
    if number == OUTSIDE:
        return f"M{_n(x)} {_n(y - r)}l{_n(r)} {_n(2 * r)}h{_n(-2 * r)}z"
    if number == UNKNOWN:
        return f"M{_n(x - r)} {_n(y)}h{_n(2 * r)}"
    return f"M{_n(x - r)} {_n(y - r)}l{_n(2 * r)} {_n(2 * r)}m0 {_n(-2 * r)}l{_n(-2 * r)} {_n(2 * r)}"


def _group(number: int, marks: list[str], colours: Colours) -> str:
    path = "".join(marks)
    if number >= 0:
        return f'<path data-element="{number}" d="{path}" stroke="{colours.of(number)}"/>'
    kind = {NOT_MADE: "skipped", OUTSIDE: "outside", UNKNOWN: "unknown"}[number]
    colour = BAD if number == OUTSIDE else "currentColor"
    return f'<path data-element="{kind}" d="{path}" stroke="{colour}" stroke-width="1.2" fill="none"/>'


def _frame(space: Space, layout: Layout) -> str:
    """Axes with their names and numbers: solid for output indices, dashed for reductions."""
    parts: list[str] = []
    drawn = [space.axes[n] for n in space.shown]
    for panel in range(layout.panels if layout.rows and layout.columns else 0):
        x, y = layout.origin(panel)
        lines = [(x, y, x + layout.columns * layout.step, y), (x, y, x, y + layout.rows * layout.step)]
        for number, (x1, y1, x2, y2) in enumerate(lines):
            dash = ' stroke-dasharray="4 3"' if number < len(drawn) and drawn[number].kind == "reduction" else ""
            parts.append(
                f'<path d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}" stroke="currentColor" fill="none" opacity=".55"{dash}/>'
            )
        parts.append(letters(x, y - 4 - LEADING, layout.panel_name(space, panel)) if len(drawn) > 2 else "")
        parts.append(_ticks(space, layout, x, y))
    if drawn:
        parts.append(letters(layout.left, 12, f"{layout.names[0]} →", bold=True))
    if len(drawn) > 1:
        parts.append(letters(2, layout.top - 4, f"{drawn[1].name} ↓", bold=True))
    return "".join(parts)


def _ticks(space: Space, layout: Layout, x: float, y: float) -> str:
    parts: list[str] = []
    for number, count in enumerate((layout.columns, layout.rows)):
        if number >= len(space.shown):
            break
        axis, stride = space.axes[space.shown[number]], space.strides[number]
        every = max(1, math.ceil(((layout.number[0] + 5) if number == 0 else LEADING) / layout.step))
        for cell in range(0, count, every):
            value = str(axis.low + cell * stride)
            at = (cell + 0.5) * layout.step
            parts.append(
                letters(x + at, y - 4, value, "middle") if number == 0 else letters(x - 4, y + at + 4, value, "end")
            )
    return f'<g opacity=".85">{"".join(parts)}</g>'


def _arrows_between(
    layout: Layout, places: list[tuple[float, float]], own: Touch, reads: list[Touch], most: int
) -> tuple[str, float, float]:
    """An arrow from the point that writes an element to each point of the same statement that reads it."""
    written = {n: place for n, place in zip(own.numbers.tolist(), places, strict=True) if n >= 0}
    lines: list[str] = []
    for touch in reads:
        for (x, y), number in zip(places, touch.numbers.tolist(), strict=True):
            a, b = written.get(number, (x, y))
            length = math.hypot(x - a, y - b)
            if length:
                u, v = (x - a) / length, (y - b) / length
                gap = layout.step * 0.36
                lines.append(
                    f"M{_n(a + gap * u)} {_n(b + gap * v)}L{_n(x - gap * u)} {_n(y - gap * v)}"
                    f"l{_n(-4 * u - 3 * v)} {_n(-4 * v + 3 * u)}m{_n(4 * u + 3 * v)} {_n(4 * v - 3 * u)}"
                    f"l{_n(-4 * u + 3 * v)} {_n(-4 * v - 3 * u)}"
                )
    said = f"arrows: from the writer of {own.tensor} to its readers"
    drawn = f'<path data-arrows="{min(len(lines), most)}" d="{"".join(lines[:most])}" stroke="currentColor" stroke-width="1.5" fill="none"/>'
    width, height = max(layout.width, layout.left + wide(said)), layout.height + LEADING + 4
    return drawn + letters(layout.left, height - 6, said), width, height


def _arrows(space: Space, layout: Layout, places: list[tuple[float, float]], most: int) -> tuple[str, float, float]:
    """The elements of a computed tensor under the lattice, an arrow from each to the points that read it, width and height."""
    reads = [t for t in space.touches if not t.write and space.tensors[t.tensor].kind != "input"]
    if not reads:
        return "", layout.width, layout.height
    made = {t.tensor for t in space.touches if t.write}
    tensor = space.tensors[next((t.tensor for t in reads if t.tensor in made), reads[0].tensor)]
    own = next((t for t in space.touches if t.write and t.tensor == tensor.name), None)
    if own is not None:
        return _arrows_between(layout, places, own, [t for t in reads if t.tensor == tensor.name], most)
    elements = sorted({int(n) for t in reads if t.tensor == tensor.name for n in t.numbers.tolist() if n >= 0})
    y, step = layout.height + 34, min(layout.step, (layout.WIDE - 60) / max(len(elements), 1))
    at = {number: layout.left + (place + 0.5) * step for place, number in enumerate(elements)}
    lines = [
        f"M{_n(at[n])} {_n(y - 5)}L{_n(px)} {_n(py + layout.step * 0.38)}l-3 5m3 -5l3 5"
        for t in reads
        if t.tensor == tensor.name
        for (px, py), n in zip(places, t.numbers.tolist(), strict=True)
        if n >= 0
    ]
    cells = "".join(f"M{_n(at[n] - step * 0.3)} {_n(y - 4)}h{_n(step * 0.6)}v8h{_n(-step * 0.6)}z" for n in elements)
    said = f"{tensor.name}: written before, read by the points ({min(len(lines), most)} of {len(lines)} arrows)"
    return (
        f'<path data-arrows="{min(len(lines), most)}" d="{"".join(lines[:most])}" stroke="currentColor" opacity=".55" '
        f'stroke-width="1" fill="none"/><path d="{cells}" fill="none" stroke="currentColor"/>'
        f"{letters(layout.left, y + 19, said)}",
        max(layout.width, layout.left + step * len(elements) + 10, layout.left + wide(said)),
        y + 26,
    )


def tensor_svg(space: Space, box: TensorBox, coloured: int) -> str:
    """A tensor as a grid of its elements; those that the drawn points touch are filled."""
    rows, columns = grid_of(box)
    few = rows * columns <= _CELLS
    step = min(13.0, _TENSORS / max(columns, 1), 150 / max(rows, 1)) if few else min(13.0, _TENSORS / columns)
    down = min(
        max(step, 8.0), 150 / max(rows, 1)
    )  # many elements fit as well, and can be seen; they are no squares then
    width, height = max(columns * step, 4), max(rows * down, 4)
    lines = f"M0 0h{_n(width)}v{_n(height)}h{_n(-width)}z"
    if few and step >= _GRID:
        lines += "".join(f"M0 {_n(r * down)}h{_n(width)}" for r in range(1, rows))
        lines += "".join(f"M{_n(c * step)} 0v{_n(height)}" for c in range(1, columns))
    cells = _touched_cells(space, box, coloured, columns, (step, down)) if few else ""
    origin = "" if not any(box.origin) else f", first element {box.element(0)}"
    said = f"{box.name} ({' × '.join(map(str, box.shape)) or 'scalar'}{origin})"
    folds = " rows: all dimensions but the last" if len(box.shape) > 2 else ""
    facts = {"tensor": box.name, "step": step, "down": down, "columns": columns}
    inner = f'{cells}<path d="{lines}" fill="none" stroke="{LINE}"/>'
    return (
        f'<div style="margin:0 0 8px"><div>{code(box.name)} <span style="{MUTED}">{escape(said[len(box.name) + 1 :])}{folds}</span></div>'
        f"{svg(width + 2, height + 2, inner, said, facts, corner=-1, grows=False)}</div>"
    )


def _touched_cells(space: Space, box: TensorBox, coloured: int, columns: int, cell: tuple[float, float]) -> str:
    """A path for each colour, which is that of the points; neighbours of one colour are one rectangle. `cell`: width and height."""
    mine = [touch for touch in space.touches if touch.tensor == box.name]
    used = np.unique(np.concatenate([np.unique(touch.numbers) for touch in mine]))
    colours = colours_of(space, coloured)
    tinted = space.touches[coloured].tensor == box.name
    paths: dict[str, str] = {}
    look = lambda n: colours.of(n) if tinted else "currentColor"  # noqa: E731
    for first, count, fill in runs(used[used >= 0].tolist(), columns, look):
        x, y = first % columns * cell[0], first // columns * cell[1]
        width = _n(count * cell[0] + (0.3 if cell[0] < _GRID else 0))  # no gaps where there are no lines
        paths[fill] = f"{paths.get(fill, '')}M{_n(x)} {_n(y)}h{width}v{_n(cell[1])}h-{width}z"
    faint = "" if tinted else ' opacity=".18"'
    return "".join(f'<path fill="{fill}" d="{path}"{faint}/>' for fill, path in paths.items())
