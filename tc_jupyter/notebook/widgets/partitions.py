# ruff: noqa: E501  (an element of a picture is one line)
"""The index space of a `%%sac` comprehension, coloured and lettered by partition; holes and hidden partitions are marked.

Worked example: for `{ [0] -> 1.0; [i] -> a[i] | [1] <= [i] < [n] }` the first cell has the letter A, the others B.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from tc_jupyter.function import Function, OpenRanks
from tc_jupyter.program import Partition
from tc_jupyter.ranges import from_expr

from .lattice import colour_of
from .picture import BAD, LINE, Content, Control, Picture, as_integer, code, one_line, table, words
from .sizes import SizeNames, example_sizes, read_sizes, size_names

_CELLS = 1_600
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Partitions(Picture):
    """All partitions of a function, or, with an open rank, of the rank that is chosen."""

    name = "partitions"
    title = "partitions"

    def __init__(self, function: Function, rank: int = 1, **sizes: int) -> None:
        """`rank`: of the arguments, where the text leaves it open and no call has told it."""
        super().__init__(function)
        self.rank = rank
        self.opened = False
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = dict(sizes)
        self._look()

    def _look(self) -> None:
        """The analysis for the present rank."""
        self.known, self.problem = None, ""
        try:
            found = self.function.analysis
        except OpenRanks as problem:
            self.opened, self.problem = True, str(problem)
            return
        self.known = size_names(found)
        self.sizes = example_sizes(self.known, self.sizes)

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Sizes."""
        del dragging
        rank = as_integer(values.get("rank"))
        if rank is not None and 0 <= rank <= 8 and self.opened:
            self.rank = rank
            self._call(rank)
        if self.known is not None:
            self.sizes, self.problem = read_sizes(self.known, self.sizes, values)

    def _call(self, rank: int) -> None:
        """Tell the function a rank with small arrays, as a call would."""
        import numpy as np  # noqa: PLC0415

        count = len(self.function.__signature__.parameters) - 1
        for dtype in (np.float32, np.int32, np.float64, np.int64):
            try:
                self.function.shapes(*(np.ones((3,) * rank, dtype) for _ in range(count)))
                self.function(*(np.ones((3,) * rank, dtype) for _ in range(count)))
                self._look()
                return
            except Exception as problem:  # another type may fit
                self.problem = f"not with arguments of rank {rank}: {one_line(problem)}"

    def content(self, live: bool = False) -> Content:
        """A picture and a table per comprehension."""
        controls = (Control("rank", "size", "rank", self.rank, high=4),) if self.opened else ()
        if self.known is None:
            return Content(words(self.problem), controls, text=self.problem)
        program = self.known.found.program
        if not program.partitions:
            return Content(
                words("this def has no partitions: it is no comprehension of `%%sac`"), controls, text="no partitions"
            )
        numbers = self.known.all_numbers(self.sizes)
        rows: list[list[str]] = []
        boxes: list[tuple[Partition, list[tuple[int, int]]]] = []
        for n, part in enumerate(program.partitions):
            try:
                box = [(from_expr(low).evaluate(numbers), from_expr(high).evaluate(numbers)) for low, high in part.box]
            except (KeyError, ValueError, ArithmeticError):
                box = []
            boxes.append((part, box))
            state = {"body": "computed", "hole": "hole: default element", "hidden": "hidden by earlier ones"}[
                part.state
            ]
            shown = " x ".join(f"[{low}, {high})" for low, high in box) or "one cell"
            rows.append([f"<b>{_LETTERS[n % 26]}</b>", code(part.text), state, code(shown)])
        parts = [words(self.problem, "✗", BAD)] if self.problem else []
        parts += [partitions_svg(boxes), table(["", "partition", "", "at these sizes"], rows, "partitions")]
        text = "\n".join(f"{_LETTERS[n % 26]} {p.text}: {p.state}" for n, (p, _) in enumerate(boxes))
        return Content("".join(parts), (*controls, *self.known.controls(self.sizes)), {"count": len(boxes)}, text=text)


def partitions_svg(boxes: list[tuple[Partition, list[tuple[int, int]]]]) -> str:
    """Cells of the first two dimensions; a cell belongs to the first partition that holds it."""
    drawn = [
        (n, p, [*box, (0, 1), (0, 1)][:2] if len(box) != 1 else [(0, 1), box[0]])
        for n, (p, box) in enumerate(boxes)
        if box
    ]
    if not drawn:
        return ""
    (r0, r1), (c0, c1) = ((min(b[d][0] for *_, b in drawn), max(b[d][1] for *_, b in drawn)) for d in (0, 1))
    if (r1 - r0) * (c1 - c0) > _CELLS or r1 <= r0 or c1 <= c0:
        return words("the index space is empty or too large to draw at these sizes; the table has the boxes")
    step, owner = 22, dict[tuple[int, int], int]()
    for n, part, box in drawn:
        if part.state != "hidden":
            for r in range(*box[0]):
                for c in range(*box[1]):
                    owner.setdefault((r, c), n)
    cells: list[str] = []
    for (r, c), n in sorted(owner.items()):
        x, y = (c - c0) * step, (r - r0) * step
        hole = boxes[n][0].state == "hole"
        fill = "none" if hole else colour_of(n * 3 + 1)
        mark = "·" if hole else _LETTERS[n % 26]
        cells.append(
            f'<rect data-partition="{n}" x="{x}" y="{y}" width="{step}" height="{step}" fill="{fill}" fill-opacity=".6" stroke="{LINE}"/>'
            f'<text x="{x + step / 2:.0f}" y="{y + 15}" font-size="11" text-anchor="middle" fill="currentColor">{mark}</text>'
        )
    width, height = (c1 - c0) * step + 4, (r1 - r0) * step + 4
    label = "; ".join(f"{_LETTERS[n % 26]}: {sum(o == n for o in owner.values())} cells" for n, *_ in drawn)
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width}" height="{height}" viewBox="-2 -2 {width} {height}" '
        f'style="max-width:100%;color:inherit">{"".join(cells)}</svg>'
    )
