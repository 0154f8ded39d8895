"""`%%sac`: which part of a result each partition of a comprehension computes, for display and for messages with numbers.

The boxes were made exact and disjoint when the function was specialised. Here they get their text and, once the sizes of a call
are known, their numbers: which partitions are hidden, and where the holes are.

Worked example: `{ [i,j] -> 0 | [1,1] <= [i,j] < shape(A) - 1; iv -> A[iv] }` for a matrix is the box
`[1, A_0 - 1) x [1, A_1 - 1)` of partition 0 and four boxes of partition 1, its border.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tc_jupyter.diagnostics import Diagnostic, codes
from tc_jupyter.program import Partition, Program
from tc_jupyter.program.sac_sizes import evaluate

from .convert import from_expr
from .display import to_python
from .size_expr import SizeExpr


@dataclass(frozen=True, slots=True)
class PartitionBox:
    """One box of a partition.

    Attributes:
        statement: the statement that computes it.
        number: the partition, from 0 in text order; -1 for positions that no partition covers.
        state: `body`, or `hole` (filled with zeros or the default element).
        lower, upper: the box, upper end excluded, as expressions over sizes.
        numbers: the box with numbers, where sizes are given.
    """

    statement: str
    number: int
    state: str
    text: str
    lower: tuple[SizeExpr, ...]
    upper: tuple[SizeExpr, ...]
    numbers: tuple[tuple[int, int], ...] | None = None

    @property
    def box_text(self) -> str:
        """`[1, N - 1) x [0, M)`."""
        if self.numbers is not None:
            return " x ".join(f"[{low}, {high})" for low, high in self.numbers) or "scalar"
        pairs = zip(self.lower, self.upper, strict=True)
        return " x ".join(f"[{to_python(low)}, {to_python(high)})" for low, high in pairs) or "scalar"

    @property
    def elements(self) -> int | None:
        """How many positions the box has, where sizes are given."""
        return None if self.numbers is None else prod(max(high - low, 0) for low, high in self.numbers)


@dataclass(frozen=True, slots=True)
class Partitions:
    """All boxes of all comprehensions that write a tensor, by tensor, in the order of the statements."""

    boxes: Mapping[str, tuple[PartitionBox, ...]]
    diagnostics: tuple[Diagnostic, ...] = ()


def resolve(program: Program, sizes: Mapping[str, int] | None = None) -> Partitions:
    """The partitions of a specialised `%%sac` function.

    Args:
        sizes: values of the program's sizes (and of integer scalars that bounds use); then the boxes have numbers, and
            hidden partitions (TC354) and holes (TC355) are reported.

    Raises:
        KeyError: a size is missing from `sizes`.
    """
    found: dict[str, list[PartitionBox]] = {}
    spans = {partition.statement: partition for partition in program.partitions}
    for partition in program.partitions:
        if partition.statement is not None:
            target = program.statement(partition.statement).target
            found.setdefault(target, []).append(_box(partition, partition.statement, sizes))
    boxes = {tensor: tuple(several) for tensor, several in found.items()}
    messages = () if sizes is None else tuple(m for several in boxes.values() for m in _messages(several, spans))
    return Partitions(boxes, messages)


def _box(partition: Partition, statement: str, sizes: Mapping[str, int] | None) -> PartitionBox:
    lower = tuple(from_expr(low) for low, _ in partition.box)
    upper = tuple(from_expr(high) for _, high in partition.box)
    numbers = None
    if sizes is not None:
        numbers = tuple((evaluate(low, sizes, sizes), evaluate(high, sizes, sizes)) for low, high in partition.box)
    return PartitionBox(statement, partition.number, partition.state, partition.text, lower, upper, numbers)


def _messages(boxes: tuple[PartitionBox, ...], partitions: Mapping[str | None, Partition]) -> list[Diagnostic]:
    messages: list[Diagnostic] = []
    for number in dict.fromkeys(box.number for box in boxes if box.number >= 0):
        mine = [box for box in boxes if box.number == number]
        if sum(box.elements or 0 for box in mine) == 0 and any(box.elements for box in boxes):
            span = partitions[mine[0].statement].span
            message = f"partition {number + 1} computes nothing at these sizes"
            help = "earlier partitions cover it, or its bounds are empty"
            messages.append(Diagnostic(codes.DEAD_PARTITION, span, message, help=help))
    holes = [box for box in boxes if box.state == "hole" and box.text == "zeros" and box.elements]
    if holes:
        span = partitions[holes[0].statement].span
        words = "; ".join(box.box_text for box in holes[:4])
        message = f"{sum(box.elements or 0 for box in holes)} positions that no partition covers are filled with zeros: {words}"
        messages.append(Diagnostic(codes.UNCOVERED, span, message))
    return messages
