"""Left sides with subscripts that can be solved for an index, as plain ones: `Y(N - 1 - i) = X(i)` is `Y(at) = X(N - 1 - at)`.

So are statements that write every second element, each from its own, together: one writes all of them.

Worked example: `Y(2*i) = A(i)` and `Y(2*i + 1) = B(i)` over the same `i` are `Y(at) = at % 2 == 0 ? A(at / 2) : B(at / 2)`: one
loop writes neighbours, in vectors that are mixed (`templates/residues`), instead of two that leave gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.program import (
    Binary,
    DType,
    Expr,
    IndexVar,
    Program,
    Read,
    Select,
    Statement,
    int64,
    rewrite,
    variables,
    walk,
)
from tc_jupyter.program.integers import has_read
from tc_jupyter.ranges import Ranges, SizeExpr, constant, from_expr, to_expr

MOST = 4
"""Residues whose vectors are mixed (`templates/contraction.PIXEL`)."""


@dataclass(frozen=True, slots=True)
class _Residue:
    """A statement that writes the elements `step * index + start` of the last dimension, for indices between two ends."""

    statement: Statement
    index: str
    step: int
    start: int
    ends: tuple[SizeExpr, SizeExpr]


def with_plain_left_sides(program: Program, ranges: Ranges) -> Iterator[Statement]:
    """The statements of a program, with plain indices on the left where these can be told; those that write residues of one array
    are one.
    """
    waiting: list[_Residue] = []
    for statement in program.statements:
        found = _residue(statement, ranges)
        if waiting and (found is None or not _go_on(waiting, found, ranges)):
            yield from (each.statement for each in waiting)
            waiting = []
        if found is None:
            yield _solved(statement, ranges)
            continue
        waiting.append(found)
        if len(waiting) == found.step:
            whole = _is_whole(waiting, ranges)
            yield from (_together(waiting),) if whole else (each.statement for each in waiting)
            waiting = []
    yield from (each.statement for each in waiting)


def _stores_all(statement: Statement) -> bool:
    """Whether a statement stores a value at each of its points, which indices alone decide."""
    if statement.operator != "=" or statement.block:
        return False
    if statement.exists or statement.unique or statement.order or statement.filters:
        return False
    reads = [node for node in walk(statement.value) if isinstance(node, Read) and node.indices]
    return not any(read.tensor == statement.target or any(map(has_read, read.indices)) for read in reads)


def _solved(statement: Statement, ranges: Ranges) -> Statement:
    """A statement whose subscripts on the left each go through a dimension with an index of their own, by these dimensions."""
    if not statement.computed or not _stores_all(statement):
        return statement
    points = {index.name for index in statement.reduction_indices}
    ends = {each.index: (each.lower, each.upper) for each in ranges.indices[statement.name]}
    values: dict[str, Expr] = {}
    for place, subscript in statement.computed:
        position = from_expr(subscript)
        names = position.indices
        (name,) = names if len(names) == 1 else ("",)
        split = position.linear_in(name) if name in points - values.keys() and not has_read(subscript) else None
        low, high = ends.get(name, (None, None))
        if split is None or split[0] not in (constant(1), constant(-1)) or low is None or high is None:
            return statement
        weight, rest = split[0].constant, split[1]
        if ends[place.name] != ((low + rest, high + rest) if weight > 0 else (rest - high + 1, rest - low + 1)):
            return statement
        values[name] = to_expr((from_expr(IndexVar(place.name)) - rest) * weight)
    if points - values.keys():
        return statement
    indices = tuple(index for index in statement.indices if index.name not in values)
    return replace(statement, indices=indices, left=(), value=rewrite(statement.value, variables(values)))


def _residue(statement: Statement, ranges: Ranges) -> _Residue | None:
    outputs, points = statement.output_indices, statement.reduction_indices
    if not _stores_all(statement) or len(statement.computed) != 1 or len(points) != 1:
        return None
    (place, subscript), (point,) = statement.computed[0], points
    if place != outputs[-1]:
        return None
    split = None if has_read(subscript) else from_expr(subscript).linear_in(point.name)
    if split is None or not split[0].is_constant or not split[1].is_constant or not 2 <= split[0].constant <= MOST:
        return None
    for found in ranges.indices[statement.name]:
        if found.index == point.name and found.lower is not None and found.upper is not None:
            return _Residue(statement, point.name, split[0].constant, split[1].constant, (found.lower, found.upper))
    return None


def _go_on(waiting: Sequence[_Residue], new: _Residue, ranges: Ranges) -> bool:
    """Whether a statement writes other elements of the same rows."""
    first = waiting[0]
    same = first.statement.target == new.statement.target and first.step == new.step and first.ends == new.ends
    starts = {each.start for each in waiting}
    return same and new.start not in starts and _rows(first.statement, ranges) == _rows(new.statement, ranges)


def _rows(statement: Statement, ranges: Ranges) -> list[tuple[SizeExpr | None, SizeExpr | None]]:
    found = {each.index: (each.lower, each.upper) for each in ranges.indices[statement.name]}
    return [found[index.name] for index in statement.output_indices[:-1]]


def _is_whole(residues: Sequence[_Residue], ranges: Ranges) -> bool:
    """Whether all elements of the array are written."""
    first = residues[0]
    least = min(each.start for each in residues)
    box = [*_rows(first.statement, ranges), tuple(end * first.step + least for end in first.ends)]
    starts = {each.start for each in residues}
    return starts == set(range(least, least + first.step)) and box == list(ranges.boxes[first.statement.target].bounds)


def _together(residues: Sequence[_Residue]) -> Statement:
    first = residues[0].statement
    least, step = min(each.start for each in residues), residues[0].step
    *rows, at = first.output_indices
    place = Binary("-", IndexVar(at.name), int64(least), DType.INT64) if least else IndexVar(at.name)
    values = [_at(each, [row.name for row in rows], Binary("//", place, int64(step), DType.INT64)) for each in residues]
    value = values[-1]
    for residue, each in zip(residues[-2::-1], values[-2::-1], strict=True):
        rest = Binary("%", place, int64(step), DType.INT64)
        condition = Binary("==", rest, int64(residue.start - least), DType.BOOL)
        value = Select(condition, each, value, value.dtype, first.span)
    text = "  ".join(each.statement.text for each in residues)
    return replace(first, indices=(*rows, at), value=value, left=(), text=text)


def _at(residue: _Residue, rows: Sequence[str], quotient: Expr) -> Expr:
    """The value of a statement, with the names of the first one for rows."""
    own = [index.name for index in residue.statement.output_indices[:-1]]
    names: dict[str, Expr] = {old: IndexVar(new) for old, new in zip(own, rows, strict=True)}
    names[residue.index] = quotient
    return rewrite(residue.statement.value, variables(names))


__all__ = ["with_plain_left_sides"]
