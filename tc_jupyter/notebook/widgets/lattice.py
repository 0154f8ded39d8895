"""The points of a statement as numbers: which element every access touches at every point. No drawing, no Jupyter.

Worked example: for `A(i) +=! B(i + k) * W(k)` with `N=8, K=3`, `space_of(...)` has 18 points over `i, k`; the touch `B(i + k)` has
the elements 0, 1, 2, 1, 2, 3, ... : equal numbers are the same element, drawn in the same colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tc_jupyter.compiler import FunctionAnalysis
from tc_jupyter.diagnostics import shown_line
from tc_jupyter.program import Expr, IndexVar, Read, Statement, rewrite, walk
from tc_jupyter.program.integers import reads_elements
from tc_jupyter.ranges import element_text
from tc_jupyter.schedule.visits import evaluate, reached

from .colours import Colours

Ints = NDArray[np.int64]
SVG_LIMIT = 2_000
"""Points drawn one by one as SVG; more go on a canvas."""
DRAG_LIMIT = 50_000
"""Points up to which the whole picture is drawn while a slider is dragged."""
THINNED = 12_000
"""Points while dragging, if there are more."""
CANVAS_LIMIT = 1_000_000
MOST_SHOWN = (1_200, 920, 60)
"""Values of an axis that are drawn to the right, down, and as panels; a larger picture would have no place in a page."""
LARGEST_NUMBER = 1 << 53
"""Of an element, or of an index: larger ones are no integers in a page, and with more bits than 63 none here."""
_SCALES = (1, 2, 4, 8, 16, 32, 64, 256)
"""Times the extent of a dimension that values are tried for which a subscript computes with."""
NOT_MADE, OUTSIDE, UNKNOWN = -1, -2, -3
"""In place of an element number: the condition around the access is false; it leaves its tensor; it depends on data."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One index with its range at these sizes: `low <= index < high`."""

    name: str
    kind: str
    low: int
    high: int

    @property
    def extent(self) -> int:
        """How many values, 0 for an empty range."""
        return max(0, self.high - self.low)

    @property
    def range(self) -> str:
        """`0 <= i < 8`; of a range that ends before it starts only that there is no value."""
        return f"{self.low} <= {self.name} < {self.high}" if self.low <= self.high else f"no {self.name}"


@dataclass(frozen=True, slots=True)
class TensorBox:
    """A tensor at these sizes.

    Attributes:
        origin: the logical index of its first element.
        brackets: what stands around the indices of an element in the language of the cell.
    """

    name: str
    kind: str
    origin: tuple[int, ...]
    shape: tuple[int, ...]
    brackets: str = "()"

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def element(self, number: int) -> str:
        """`B(3, 1)` for an element number; in `%%sac` `B[3, 1]`."""
        place: list[int] = []
        for extent, start in zip(reversed(self.shape), reversed(self.origin), strict=True):
            place.append(number % max(extent, 1) + start)
            number //= max(extent, 1)
        return element_text(self.name, map(str, reversed(place)), self.brackets)


@dataclass(frozen=True, slots=True)
class Touch:
    """One access at every drawn point.

    Attributes:
        text: as written, `B(i + k)`.
        numbers: per point the number of the element, in row-major order from 0; or one of the three constants.
        examples: the tensors whose elements decide which element it is: they have values of an example here.
    """

    text: str
    tensor: str
    write: bool
    numbers: Ints
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Space:
    """A statement at given sizes.

    Attributes:
        axes: all indices.
        shown: numbers of the one to three axes that are drawn: right, down, panels.
        fixed: values of the others.
        strides: per shown axis, every how many values are drawn.
        points: one row per drawn point, one column per shown axis.
        total: number of points of the shown axes.
    """

    statement: str
    text: str
    axes: tuple[Axis, ...]
    shown: tuple[int, ...]
    fixed: Mapping[str, int]
    strides: tuple[int, ...]
    points: Ints
    total: int
    touches: tuple[Touch, ...]
    tensors: Mapping[str, TensorBox]

    @property
    def thinned(self) -> bool:
        """Whether points are left out."""
        return any(stride > 1 for stride in self.strides)


def axes_of(found: FunctionAnalysis, statement: Statement, numbers: Mapping[str, int]) -> tuple[Axis, ...]:
    """The indices of a statement with numbers.

    Raises:
        KeyError, ValueError: a range is not known at these sizes.
    """
    axes: list[Axis] = []
    for r in found.ranges.points(statement.name):
        if r.lower is None or r.upper is None:
            raise ValueError(f"the range of `{r.index}` is not known")
        kind = "output" if statement.operator == "=" else r.kind  # of an expression on the left, too
        axes.append(Axis(r.index, kind, r.lower.evaluate(numbers), r.upper.evaluate(numbers)))
    return tuple(axes)


def tensor_boxes(found: FunctionAnalysis, numbers: Mapping[str, int]) -> dict[str, TensorBox]:
    """Every tensor with numbers, a complex number being one element; those whose box is not known are left out."""
    boxes: dict[str, TensorBox] = {}
    for tensor in found.program.tensors:
        box = found.ranges.boxes.get(tensor.name)
        if box is not None:
            rank = tensor.written_rank
            origin = tuple(low.evaluate(numbers) for low in box.origin[:rank])
            shape = tuple(max(0, extent.evaluate(numbers)) for extent in box.shape[:rank])
            boxes[tensor.name] = TensorBox(tensor.name, tensor.kind, origin, shape, found.ranges.scope.brackets)
    return boxes


def space_of(
    found: FunctionAnalysis,
    statement: Statement,
    numbers: Mapping[str, int],
    shown: Sequence[int] | None = None,
    fixed: Mapping[str, int] | None = None,
    limit: int | None = CANVAS_LIMIT,
) -> Space:
    """The points of a statement.

    Args:
        numbers: sizes, scalars, and extents of computed tensors.
        shown: one to three axes; the first two where it is not given.
        fixed: values of the other axes; clamped to their ranges, their first value by default.
        limit: most points; beyond it, and beyond what a page shows, every second, third, ... value of the axes is drawn;
            `None`: all points.

    Raises:
        KeyError, ValueError: a range is not known at these sizes, or has larger numbers than a picture.
    """
    axes = axes_of(found, statement, numbers)
    for axis in axes:
        if max(abs(axis.low), abs(axis.high)) > LARGEST_NUMBER:
            raise ValueError(f"`{axis.name}` has values beyond 2^53")
    chosen = tuple(dict.fromkeys(n for n in (shown or range(min(2, len(axes)))) if 0 <= n < len(axes)))[:3]
    others = {
        axis.name: min(max((fixed or {}).get(axis.name, axis.low), axis.low), max(axis.low, axis.high - 1))
        for number, axis in enumerate(axes)
        if number not in chosen
    }
    drawn = [axes[number] for number in chosen]
    empty = any(axis.extent == 0 for axis in axes)
    total = 0 if empty else math.prod(axis.extent for axis in drawn)
    strides = (1,) * len(drawn) if limit is None else _strides([axis.extent for axis in drawn], limit)
    values = [
        np.arange(axis.low, axis.high if not empty else axis.low, s) for axis, s in zip(drawn, strides, strict=True)
    ]
    grids = np.meshgrid(*values, indexing="ij") if values else []
    points = (
        np.stack([grid.reshape(-1) for grid in grids], axis=1).astype(np.int64)
        if grids
        else np.zeros((0 if empty else 1, 0), np.int64)
    )
    columns = {axis.name: points[:, place] for place, axis in enumerate(drawn)}
    columns |= {name: np.full(len(points), value, np.int64) for name, value in others.items()}
    boxes = _touched_boxes(found, statement, numbers)
    touches = _touches(found, statement, numbers, columns, len(points), boxes)
    text = shown_line(statement.text or statement.name)
    return Space(statement.name, text, axes, chosen, others, strides, points, total, touches, boxes)


def touched_at(
    found: FunctionAnalysis, statement: Statement, numbers: Mapping[str, int], point: Mapping[str, int]
) -> list[int]:
    """The element that every access touches at one point, in the order of the touches of its space."""
    columns = {name: np.full(1, value, np.int64) for name, value in point.items()}
    boxes = _touched_boxes(found, statement, numbers)
    return [int(touch.numbers[0]) for touch in _touches(found, statement, numbers, columns, 1, boxes)]


def _touched_boxes(found: FunctionAnalysis, statement: Statement, numbers: Mapping[str, int]) -> dict[str, TensorBox]:
    """The boxes of all tensors.

    Raises:
        ValueError: one that the statement touches has too many elements.
    """
    boxes = tensor_boxes(found, numbers)
    for name in dict.fromkeys((statement.target, *(read.tensor for read in statement.reads()))):
        if name in boxes and boxes[name].count > LARGEST_NUMBER:
            raise ValueError(f"`{name}` has {boxes[name].count:,} elements, and a picture has numbers for 2^53")
    return boxes


def _strides(extents: Sequence[int], limit: int) -> tuple[int, ...]:
    """Thin every axis to what a screen shows, then the longest first until the product fits."""
    strides = [max(1, -(-e // most)) for e, most in zip(extents, MOST_SHOWN, strict=False)]
    while math.prod(-(-e // s) for e, s in zip(extents, strides, strict=True)) > limit:
        longest = max(range(len(extents)), key=lambda n: -(-extents[n] // strides[n]))
        over = math.prod(-(-e // s) for e, s in zip(extents, strides, strict=True)) / limit
        strides[longest] *= 2 if over < 4 else max(2, int(over ** (1 / len(extents))))
    return tuple(strides)


def _touches(
    found: FunctionAnalysis,
    statement: Statement,
    numbers: Mapping[str, int],
    columns: Mapping[str, Ints],
    count: int,
    boxes: Mapping[str, TensorBox],
) -> tuple[Touch, ...]:
    touches: list[Touch] = []
    taken = _taken(statement, columns, numbers, count)
    if statement.target in boxes:
        written = statement.left or tuple(IndexVar(index.name) for index in statement.output_indices)
        rank = found.program.tensor(statement.target).written_rank
        names = [index.name for index in statement.output_indices[:rank]]
        text = element_text(statement.target, names, boxes[statement.target].brackets)
        if statement.left:
            text = " ".join(found.program.source.slice(statement.left_span).split())
        example = _Example(boxes, boxes[statement.target], numbers, dict(columns), count, statement.unique)
        touches.append(Touch(text, statement.target, True, example.elements(written, taken), tuple(example.tensors)))
    seen: set[str] = set()
    source = found.program.source
    for read in statement.reads():
        if not read.indices or read.tensor not in boxes:
            continue
        text = " ".join(source.slice(read.span).split()) if read.span.end else read.tensor
        if text in seen:
            continue
        seen.add(text)
        example = _Example(boxes, boxes[read.tensor], numbers, dict(columns), count)
        elements = example.elements(read.indices, _made(statement, read, numbers, columns, count))
        touches.append(Touch(text, read.tensor, False, elements, tuple(example.tensors)))
        if any(node == read for part in (*statement.left, statement.value) for node in walk(part)):
            touches[-1].numbers[~taken] = NOT_MADE
    return tuple(touches)


def _taken(
    statement: Statement, columns: Mapping[str, Ints], numbers: Mapping[str, int], count: int
) -> NDArray[np.bool_]:
    """The points that no condition leaves out, as far as it is known without data."""
    taken = np.ones(count, np.bool_)
    for condition in statement.conditions:
        if not _on_data(condition, numbers):
            taken &= np.broadcast_to(np.asarray(evaluate(condition, columns, numbers, count), np.bool_), taken.shape)
    return taken


def _on_data(expr: Expr, numbers: Mapping[str, int]) -> bool:
    return any((isinstance(n, Read) and (n.indices or n.tensor not in numbers)) or n.dtype.is_float for n in walk(expr))


def _made(
    statement: Statement, read: Read, numbers: Mapping[str, int], columns: Mapping[str, Ints], count: int
) -> NDArray[np.bool_]:
    """The points at which a read is made, as far as sizes and indices decide."""
    try:
        value = statement.value
        inside = any(node == read for node in walk(value))  # what the left side reads is read at every point
        return reached(value, read, columns, numbers, count) if inside else np.ones(count, np.bool_)
    except KeyError:  # a condition on something that only a call knows
        return np.ones(count, np.bool_)


@dataclass(slots=True)
class _Example:
    """Which elements an access touches, where elements of other tensors say it with values of an example: places inside the tensor,
    of which several points have the same one, or, where they are `unique`, none.

    Attributes:
        tensors: those with values of an example, which only a call knows.
    """

    boxes: Mapping[str, TensorBox]
    box: TensorBox
    numbers: Mapping[str, int]
    columns: dict[str, Ints]
    count: int
    unique: bool = False
    tensors: dict[str, None] = field(default_factory=dict[str, None])

    def elements(self, subscripts: Sequence[Expr], made: NDArray[np.bool_]) -> Ints:
        """The number of the element at each point; `UNKNOWN` where more than integers decide."""
        nodes = [node for each in subscripts for node in walk(each)]
        known = all(not isinstance(node, Read) or self.is_known(node) for node in nodes)
        if not known or any(node.dtype.is_float for node in nodes):
            return np.where(made, UNKNOWN, NOT_MADE).astype(np.int64)
        places = [self.place(each, extent) for each, extent in zip(subscripts, self.box.shape, strict=False)]
        return _numbers(places, made, self.box, self.count)

    def is_known(self, read: Read) -> bool:
        """Whether a read is a number of the call, or an element of a tensor whose size is known."""
        return read.tensor in (self.boxes if read.indices else self.numbers)

    def place(self, subscript: Expr, extent: int) -> Ints:
        """A subscript at each point; where it computes with a value, examples are tried up to some times the extent."""
        if isinstance(subscript, Read) or not reads_elements(subscript):
            return self.with_values(subscript, extent)

        def reached(found: Ints) -> tuple[bool, int]:
            return bool(((found >= 0) & (found < extent)).all()), len(np.unique(found))

        return max((self.with_values(subscript, extent, scale) for scale in _SCALES), key=reached)

    def with_values(self, subscript: Expr, extent: int, scale: int = 1) -> Ints:
        """A subscript at each point, with examples of values below some times an extent."""

        def rule(node: Expr) -> Expr | None:
            if not isinstance(node, Read) or not node.indices:
                return None
            self.tensors[node.tensor] = None
            box, name = self.boxes[node.tensor], f"{node.tensor}@{len(self.columns)}"
            inner = [evaluate(index, self.columns, self.numbers, self.count) for index in node.indices]
            number = _numbers(inner, np.ones(self.count, np.bool_), box, self.count)
            self.columns[name] = _values(number, box.count, extent, self.unique, scale)
            return IndexVar(name)

        return evaluate(rewrite(subscript, rule), self.columns, self.numbers, self.count)


def _values(number: Ints, count: int, extent: int, unique: bool, scale: int) -> Ints:
    """Values of a tensor of `count` elements, as an example of places in a dimension of this extent."""
    if unique:
        step = next(step for step in range(max(1, count // 2), 2 * count + 2) if math.gcd(step, max(count, 1)) == 1)
        return (number * step + 1) % max(count, 1)
    return ((number * 2_654_435_761 & 0xFFFF_FFFF) >> 15) % max(1, min(extent, 1 + count // 2) * scale)


def _numbers(place: Sequence[Ints], made: NDArray[np.bool_], box: TensorBox, count: int) -> Ints:
    """Row-major element numbers; outside and not made marked."""
    number = np.zeros(count, np.int64)
    inside = np.ones(count, np.bool_)
    for column, start, extent in zip(
        place, box.origin, box.shape, strict=False
    ):  # without the part of a complex number
        at = column - start
        inside &= (at >= 0) & (at < extent)
        number = number * extent + at
    number[~inside] = OUTSIDE
    number[~made] = NOT_MADE
    return number


def grid_of(box: TensorBox) -> tuple[int, int]:
    """Rows and columns of a tensor that is drawn flat: the last dimension to the right, all others down."""
    columns = box.shape[-1] if box.shape else 1
    rows = box.count // columns if columns else 0
    return rows, columns


def colours_of(space: Space, coloured: int) -> Colours:
    """The colours of the elements that an access touches, in their order."""
    if not space.touches:
        return Colours(1, 1)
    rows, columns = grid_of(space.tensors[space.touches[coloured].tensor])
    return Colours(1, rows) if columns == 1 else Colours(rows, columns)


def runs(cells: Sequence[int], width: int, kind_of: Callable[[int], Any]) -> Iterator[tuple[int, int, Any]]:
    """Neighbouring cells of a row that look alike, as first cell, length, look."""
    start, length, kind = -1, 0, None
    for cell in cells:
        mine = kind_of(cell)
        if length and cell == start + length and cell % width and mine == kind:
            length += 1
            continue
        if length:
            yield start, length, kind
        start, length, kind = cell, 1, mine
    if length:
        yield start, length, kind


__all__ = [
    "Axis",
    "Space",
    "TensorBox",
    "Touch",
    "axes_of",
    "colours_of",
    "grid_of",
    "runs",
    "space_of",
    "tensor_boxes",
    "touched_at",
]
