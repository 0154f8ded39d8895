# ruff: noqa: E501  (an element of a picture is one line)
"""The index space of a `%%sac` comprehension, coloured and lettered by partition; holes and hidden partitions are marked.

Worked example: for `{ [0] -> 1.0; [i] -> a[i] | [1] <= [i] < [n] }` the first cell has the letter A, the others B.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from math import prod
from typing import Any

import numpy as np

from tc_jupyter.compiler import FunctionAnalysis
from tc_jupyter.diagnostics import CallError, Span, shown_line
from tc_jupyter.function import MOST_RANK, Function, OpenRanks, checked_rank
from tc_jupyter.program import IndexVar, Partition, Statement, walk
from tc_jupyter.program.sac_sizes import evaluate as int_of
from tc_jupyter.ranges.partitions import PartitionBox, resolve
from tc_jupyter.schedule.visits import evaluate

from .colours import of_kind
from .picture import BAD, LINE, Content, Control, Picture, as_integer, code, one_line, refused_number, table, words
from .sizes import SizeNames, example_sizes, read_sizes, size_names
from .svg import letters, svg

_CELLS = 1_600
_MOST_CHOSEN = 20_000
"""Positions of which the partition is found one by one."""
Box = tuple[tuple[int, int], ...]
_LISTED = 6
_LABEL = 60
"""Characters of a comprehension that stand over its picture."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Partitions(Picture):
    """All partitions of a function, or, with an open rank, of the rank that is chosen."""

    name = "partitions"
    title = "partitions"

    def __init__(self, function: Function, rank: int | None = None, **sizes: int) -> None:
        """`rank`: of the arguments, where the text leaves it open; by default that of the last call, or 1.

        Raises:
            ValueError: no arguments have this rank, or the text declares all ranks.
        """
        super().__init__(function)
        if rank is not None:
            checked_rank(function, rank)
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = dict(sizes)
        try:
            self._look(function.analysis)
            program = function.program
            self.rank = max((program.tensor(name).rank for name in program.parameters), default=1)
        except OpenRanks:
            self.rank = -1
        wanted = 1 if rank is None and self.known is None else rank
        if wanted is not None and wanted != self.rank and function.leaves_ranks_open:
            self._choose(wanted)

    def _look(self, found: FunctionAnalysis) -> None:
        self.known = size_names(found)
        self.sizes = example_sizes(self.known, self.sizes)

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Rank and sizes."""
        del dragging
        self.problem = ""
        if "rank" in values and self.function.leaves_ranks_open:
            rank = as_integer(values["rank"])
            if rank is None or not 0 <= rank <= MOST_RANK:
                self.problem = refused_number("a rank", 0, MOST_RANK, values["rank"])
                return
            if rank != self.rank or self.known is None:
                self._choose(rank)
        if self.known is not None and not self.problem:
            self.sizes, self.problem = read_sizes(self.known, self.sizes, values)

    def _choose(self, rank: int) -> None:
        """The partitions for another rank; where there are none, why."""
        self.rank, self.known = rank, None
        try:
            self._look(self.function.at_rank(rank).found)
        except CallError as problem:
            self.problem = f"not with arguments of rank {rank}: {one_line(problem)}"

    def content(self, live: bool = False) -> Content:
        """A picture and a table per comprehension."""
        controls = (Control("rank", "size", "rank", self.rank, high=4),) if self.function.leaves_ranks_open else ()
        if self.known is None:
            return Content(words(self.problem, "✗", BAD), controls, text=self.problem)
        if self.known.found.program.language != "sac":
            said = "this def has no partitions: it is no comprehension of `%%sac`"
            return Content(words(said), controls, text=said)
        controls += self.known.controls(self.sizes)
        parts = [words(self.problem, "✗", BAD)] if self.problem else []
        try:
            groups = partition_boxes(self.known.found, self.known.all_numbers(self.sizes))
        except (KeyError, ValueError, ArithmeticError) as problem:
            said = f"no picture at these sizes: {one_line(problem)}"
            return Content("".join([*parts, words(said)]), controls, text=said)
        refused = self.known.refusal(self.sizes)
        parts += [words(refused, "✗", BAD)] if refused else []
        lines = [refused] if refused else []
        for tensor, boxes in groups.items():
            rows = partition_rows(boxes)
            parts += [f"<div>{code(tensor)}</div>"] if len(groups) > 1 else []
            parts += [partitions_svg(boxes), _table(rows, tensor)]
            lines += [
                ": ".join(filter(None, (tensor, f"{letter} {text}", state, at))) for letter, text, state, _, at in rows
            ]
        for part in self.known.found.program.partitions:
            if part.state == "hidden":
                parts.append(words(f"`{part.text}` is hidden by earlier partitions", "⊘"))
                lines.append(f"hidden by earlier partitions: {part.text}")
            if part.state == "chosen" and not any(box.text == part.text for boxes in groups.values() for box in boxes):
                parts.append(words(f"`{part.text}` is chosen element by element; where is not shown at these sizes"))
                lines.append(f"chosen element by element: {part.text}")
        return Content("".join(parts), controls, {"count": len(lines)}, text="\n".join(lines))


def partition_boxes(found: FunctionAnalysis, numbers: Mapping[str, int]) -> Mapping[str, tuple[PartitionBox, ...]]:
    """The boxes of every tensor that is computed by partitions; a result that is computed as a whole is one box.

    Raises:
        KeyError, ValueError, ArithmeticError: a bound has no number.
    """
    boxes = dict(resolve(found.program, numbers).boxes)
    for statement in found.program.statements:
        chosen = [part for part in found.program.partitions if part.state == "chosen" and part.whole == statement.span]
        if chosen and statement.target not in boxes:
            boxes |= {statement.target: own} if (own := _chosen_boxes(statement, chosen, numbers, {})) else {}
        if statement.target in found.program.results and statement.target not in boxes:
            ends = [
                (index.lower, index.upper)
                for index in found.ranges.indices.get(statement.name, ())
                if index.kind == "output" and index.lower is not None and index.upper is not None
            ]
            box = tuple((low.evaluate(numbers), high.evaluate(numbers)) for low, high in ends)
            lower, upper = tuple(low for low, _ in ends), tuple(high for _, high in ends)
            text = shown_line(statement.text)
            boxes[statement.target] = (PartitionBox(statement.name, 0, "body", text, lower, upper, box),)
    return boxes | dict(_inner_boxes(found, numbers))


def _inner_boxes(found: FunctionAnalysis, numbers: Mapping[str, int]) -> Iterator[tuple[str, tuple[PartitionBox, ...]]]:
    """The boxes of comprehensions inside larger expressions, by a name for each; at the first values of the indices around."""
    program = found.program
    chosen = [part for part in program.partitions if part.state == "chosen"]
    for whole in sorted({part.whole for part in chosen} - {statement.span for statement in program.statements}):
        around = next((each for each in program.statements if _encloses(each.span, whole)), program.statements[-1])
        parts = [part for part in chosen if part.whole == whole]
        ranges = found.ranges.indices.get(around.name, ())
        first = {each.index: each.lower.evaluate(numbers) for each in ranges if each.lower is not None}
        names = {name: name.partition("'")[0] for part in parts for name in _names_in(part) if name not in part.axes}
        given = {name: first[written] for name, written in names.items() if written in first}
        boxes = _chosen_boxes(around, parts, numbers, given)
        if boxes:
            at = f", at {', '.join(f'{names[name]} = {value}' for name, value in given.items())}" if given else ""
            text = " ".join(program.source.slice(whole).split())
            shown = text if len(text) <= _LABEL else text[:_LABEL] + " ..."
            yield f"{shown}{at}", boxes


def _encloses(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _names_in(part: Partition) -> Iterator[str]:
    parts = [end for ends in part.box for end in ends] + ([part.inside] if part.inside is not None else [])
    return (node.name for each in parts for node in walk(each) if isinstance(node, IndexVar))


def _chosen_boxes(
    statement: Statement, parts: Sequence[Partition], numbers: Mapping[str, int], around: Mapping[str, int]
) -> tuple[PartitionBox, ...]:
    """Where each partition is the first that covers a position, position by position; nothing if there are too many.

    Args:
        around: values of the indices of comprehensions around it.
    """
    parts = sorted(parts, key=lambda part: part.number)
    try:
        ends = [(int_of(low, numbers, numbers), int_of(high, numbers, numbers)) for low, high in parts[0].box]
        shape = [max(0, high - low) for low, high in ends]
        count = prod(shape)
        if count > _MOST_CHOSEN:
            return ()
        places = np.indices(shape).reshape(len(shape), count)
        owner = np.full(count, -1)
        for part in reversed(parts):
            assert part.inside is not None
            roots = dict(zip(part.axes, places, strict=True)) | {
                name: np.full(count, at) for name, at in around.items()
            }
            owner[evaluate(part.inside, roots, numbers, count) != 0] = part.number
    except KeyError:  # it depends on an index of a comprehension around it
        return ()
    found: list[PartitionBox] = []
    texts = [(part.number, part.text, "body") for part in parts] + [(-1, "default", "hole")]
    for number, text, state in texts:
        cells = [tuple((at, at + 1) for at in place) for place in places[:, owner == number].T.tolist()]
        empty = (
            ()
            if cells or number < 0
            else (PartitionBox(statement.name, number, state, text, (), (), ((0, 0),) * len(shape)),)
        )
        found += empty
        found += [PartitionBox(statement.name, number, state, text, (), (), box) for box in joined(cells)]
    return tuple(found)


def joined(boxes: Sequence[Box]) -> list[Box]:
    """The same positions in fewer boxes: those are joined that touch each other and agree in all other dimensions."""
    found, before = list(boxes), -1
    while len(found) != before:
        before = len(found)
        for d in reversed(range(len(found[0]) if found else 0)):
            found.sort(key=lambda box: (box[:d], box[d + 1 :], box[d]))
            merged: list[Box] = []
            for box in found:
                last = merged[-1] if merged else None
                if last and (last[:d], last[d + 1 :]) == (box[:d], box[d + 1 :]) and last[d][1] == box[d][0]:
                    merged[-1] = (*last[:d], (last[d][0], box[d][1]), *last[d + 1 :])
                else:
                    merged.append(box)
            found = merged
    return sorted(found)


def _letter(number: int) -> str:
    return _LETTERS[number % 26] if number >= 0 else "·"


def partition_rows(boxes: Sequence[PartitionBox]) -> list[tuple[str, str, str, str, str]]:
    """Per partition its letter, text, state, number of elements, and boxes; the hole last."""
    rows: list[tuple[str, str, str, str, str]] = []
    for number in sorted({box.number for box in boxes}, key=lambda n: (n < 0, n)):
        mine = [box for box in boxes if box.number == number]
        full = [box for box in mine if box.elements]
        state = "computed" if number >= 0 else f"hole: {'zeros' if mine[0].text == 'zeros' else 'default element'}"
        if not full and number < 0:
            continue  # no hole at these sizes
        if not full:
            state = "nothing at these sizes: hidden by earlier ones, or its bounds are empty"
        fewer = joined([box.numbers for box in full if box.numbers is not None])
        texts = [replace(full[0], numbers=box).box_text for box in fewer[:_LISTED]]
        shown = "; ".join(texts) + (" ..." if len(fewer) > _LISTED else "")
        count = sum(box.elements or 0 for box in full)
        rows.append((_letter(number), mine[0].text if number >= 0 else "", state, str(count), shown))
    return rows


def _table(rows: list[tuple[str, str, str, str, str]], tensor: str) -> str:
    cells = [
        [f"<b>{letter}</b>", code(text) if text else "", escape(state), count, code(shown)]
        for letter, text, state, count, shown in rows
    ]
    return table(["", "partition", "", "elements", "at these sizes"], cells, f"partitions of {tensor}")


def partitions_svg(boxes: Sequence[PartitionBox]) -> str:
    """Cells of the first two dimensions, in the middle of the others; the letter of a cell is that of its partition."""
    drawn = [(box.number, box.numbers) for box in boxes if box.numbers is not None and box.elements]
    if not drawn:
        return words("empty: no index is in any partition at these sizes", "∅")
    rank = len(drawn[0][1])
    ends = [(min(box[d][0] for _, box in drawn), max(box[d][1] for _, box in drawn)) for d in range(rank)]
    middle = [(low + high) // 2 for low, high in ends[2:]]
    (r0, r1), (c0, c1) = [*ends, (0, 1), (0, 1)][:2] if rank != 1 else ((0, 1), ends[0])
    if (r1 - r0) * (c1 - c0) > _CELLS:
        return words("the index space is too large to draw at these sizes; the table has the boxes")
    owner: dict[tuple[int, int], int] = {}
    for number, box in drawn:
        if all(low <= at < high for at, (low, high) in zip(middle, box[2:], strict=True)):
            rows, columns = [*box, (0, 1), (0, 1)][:2] if rank != 1 else ((0, 1), box[0])
            owner |= {(r, c): number for r in range(*rows) for c in range(*columns)}
    step = 22
    cells: list[str] = []
    for (r, c), number in sorted(owner.items()):
        x, y = (c - c0) * step, (r - r0) * step
        fill = "none" if number < 0 else of_kind(number)
        cells.append(
            f'<rect data-partition="{number}" x="{x}" y="{y}" width="{step}" height="{step}" fill="{fill}" fill-opacity=".35" stroke="{LINE}"/>'
            f"{letters(x + step / 2, y + 15.5, _letter(number), 'middle')}"
        )
    width, height = (c1 - c0) * step + 4, (r1 - r0) * step + 4
    counts = {number: sum(one == number for one in owner.values()) for number in sorted(set(owner.values()))}
    label = "; ".join(f"{_letter(number)}: {count} cells" for number, count in counts.items())
    at = f"<div>drawn at [.., .., {', '.join(map(str, middle))}]</div>" if middle else ""
    return svg(width, height, "".join(cells), label, corner=-2) + at
