"""What an editor lists of a whole text: symbols, places of one name, hints at the ends of statements, kinds of names for colours.

Worked example: the hint behind `Y(i) +=! X(i + k) * W(k)` is `0 <= i < N - K + 1, 0 <= k < K`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from tc_jupyter.diagnostics import Span

from .cell import Cell, Json, Known, cell_of
from .hover import index_lines, range_title
from .names import Place
from .pieces import Piece, piece_of, pieces_of

KINDS = ("function", "def", "tensor", "index", "size", "scalar", "let", "type")
"""Kinds of names that have a colour, in the order in which a client numbers them."""


def symbols(text: str, language: str = "tc") -> list[Json]:
    """The defs of a text, each with its parameters, results and temporaries: `{"name", "kind", "span", "place", "children"}`.

    Constants that stand outside of all defs are among the defs.
    """
    return _of_pieces(text, language, None, _symbols)


def _of_pieces(
    text: str, language: str, known: Mapping[str, Any] | None, answer: Callable[[Cell], list[Json]]
) -> list[Json]:
    """What the pieces of a text say about themselves, in text order."""
    parts = pieces_of(text, language) or (piece_of(text),)
    found = (_of_piece(part, language, Known.of(part.text, known), answer) for part in parts)
    return sorted(chain.from_iterable(found), key=_begin)


@lru_cache(maxsize=2048)
def _of_piece(part: Piece, language: str, known: Known, answer: Callable[[Cell], list[Json]]) -> list[Json]:
    """What a piece says about itself, kept while it stays where it is; nobody may change it."""
    cell = cell_of(part.text, language, known.functions)
    return [part.moved(each) for each in answer(cell) if part.is_own(each)]


def _symbols(cell: Cell) -> list[Json]:
    found = [_symbol(cell, p.span, p) for p in cell.names.places if p.introduces and p.key[0] == "constant"]
    for owner, item in enumerate(cell.items):
        inside = [
            p for p in cell.names.of(owner) if p.introduces and p.kind in ("tensor", "scalar") and not p.is_shared
        ]
        children = [_symbol(cell, place.span, place) for place in inside]
        name = Place(item.name.name, item.name.span, "def", ("def", item.name.name))
        found.append({**_symbol(cell, item.span, name), "children": children})
    return found


def _symbol(cell: Cell, span: Span, place: Place) -> Json:
    return {"name": place.name, "kind": place.kind, "span": cell.span(span), "place": cell.span(place.span)}


def references(
    text: str, position: Mapping[str, int], language: str = "tc", known: Mapping[str, Any] | None = None
) -> list[Json]:
    """The places that mean the same as the name at a position: `{"span", "introduces"}`, in text order."""
    cell = cell_of(text, language, known, position)
    place = cell.names.at(cell.offset(position))
    if place is None or place.kind in ("unknown", "type"):
        return []
    if place.is_shared:
        return same_everywhere(text, place, language, known)
    origin = cell.names.origin(place)
    return [{"span": cell.span(p.span), "introduces": p is origin} for p in cell.names.same(place)]


def same_everywhere(text: str, place: Place, language: str, known: Mapping[str, Any] | None) -> list[Json]:
    """The places of a def, or of a constant outside of all defs, in the whole text."""
    found: list[Json] = []
    for part in pieces_of(text, language) or (piece_of(text),):
        if place.name in part.text:
            cell = cell_of(part.text, language, known)
            spans = ((cell.span(p.span), p.introduces) for p in cell.names.same(place))
            said = ({"span": span, "introduces": introduces} for span, introduces in spans)
            found += [part.moved(each) for each in said if part.is_own(each)]
    return sorted(found, key=_begin)


def hints(text: str, language: str = "tc", known: Mapping[str, Any] | None = None) -> list[Json]:
    """Ranges at the ends of statements: `{"position", "text", "because"}`, where all are known."""
    found = _of_pieces(text, language, known, _hints)
    return [{key: value for key, value in each.items() if key != "span"} for each in found]


def _hints(cell: Cell) -> list[Json]:
    return [each for owner in range(len(cell.items)) for each in _hints_of(cell, owner)]


def _hints_of(cell: Cell, owner: int) -> list[Json]:
    function, found = cell.found(owner), list[Json]()
    if function is None:
        return []
    place = cell.items[owner].span
    called = {call.span for call in function.program.calls}  # whose statements have ranges of their own
    for statement in function.program.statements:
        inside = place.start <= statement.span.start < place.end  # unlike that of a constant of the text
        indices = function.ranges.written(statement.name) if inside and statement.span not in called else ()
        if not indices or not statement.span.end or any(r.lower is None or r.upper is None for r in indices):
            continue
        reasons = [f"{range_title(r)}: {index_lines(function, r)[0]}" for r in indices]
        shown, span = ", ".join(map(range_title, indices)), cell.span(statement.span)
        found.append({"span": span, "position": span["end"], "text": shown, "because": reasons})
    return found


def colours(text: str, language: str = "tc", known: Mapping[str, Any] | None = None) -> list[Json]:
    """Every name with its kind: `{"span", "kind", "introduces"}`, in text order."""
    return _of_pieces(text, language, known, _colours)


def _colours(cell: Cell) -> list[Json]:
    return [
        {"span": cell.span(p.span), "kind": p.kind, "introduces": p.introduces}
        for p in cell.names.places
        if p.kind in KINDS
    ]


def _begin(item: Json) -> tuple[int, int]:
    start = item["span"]["start"]
    return start["line"], start["character"]
