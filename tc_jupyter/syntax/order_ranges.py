"""A range behind the `along` of a statement, which is written as that of a block: `Y(t) = X(t) along t in 0:n`.

Worked example: the fix writes `along t where t in 0:n`.
"""

from __future__ import annotations

from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes

from .recovery import split_commas
from .tokens import Token


def order_with_range(piece: list[Token]) -> Diagnostic | None:
    """TC101 for a range behind the `along` of a statement; `None` if there is none."""
    place = next((i for i, token in enumerate(piece) if token.type == "ALONG"), len(piece))
    where = next((i for i, token in enumerate(piece) if token.type == "WHERE"), len(piece))
    ranges = split_commas(piece[place + 1 : where if where > place else len(piece)])
    named = [each[1:] if each and each[0].type == "MINUS" else each for each in ranges]
    if not named or not all([token.type for token in each[:2]] == ["NAME", "IN"] for each in named):
        return None
    help = "a range stands behind `where`, as in `along t where t in 0:n`"
    message = "`along` names an index behind a statement, and its range stands elsewhere"
    edits = _edits(piece, place, where, named) if len(ranges) == 1 or named == ranges else []
    fix = Fix("write the range behind `where`", tuple(edits)) if edits else None
    return Diagnostic(codes.SYNTAX_ERROR, Span(named[0][0].start, named[-1][-1].end), message, help=help, fix=fix)


def _edits(piece: list[Token], place: int, where: int, named: list[list[Token]]) -> list[Edit]:
    first, end = named[0][0], named[-1][-1].end
    if where > place:
        order = ", ".join(each[0].text for each in named)
        joined = [Edit(Span(end, piece[where].end), ",")] if where < len(piece) else []
        return [Edit(Span(first.start, first.start), f"{order} where "), *joined]
    if len(named) > 1:
        return []
    if any(one.text == first.text and other.type == "IN" for one, other in pairwise(piece[where:place])):
        return [Edit(Span(first.end, end), "")]
    order = " ".join(token.text for token in piece[place : piece.index(first)])  # `along` or `along -`
    behind = f" {order}{first.text}" if order[-1] == "-" else f" {order} {first.text}"
    return [Edit(Span(piece[place - 1].end, first.start), ", "), Edit(Span(end, end), behind)]


__all__ = ["order_with_range"]
