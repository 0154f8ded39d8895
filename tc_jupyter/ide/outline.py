"""What an editor lists of a whole text: symbols, places of one name, hints at the ends of statements, kinds of names for colours.

Worked example: the hint behind `Y(i) +=! X(i + k) * W(k)` is `0 <= i < N - K + 1, 0 <= k < K`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .cell import Cell, Json, cell_of
from .hover import index_lines, range_title
from .names import Place
from .pieces import pieces_of

KINDS = ("function", "def", "tensor", "index", "size", "scalar", "let", "type")
"""Kinds of names that have a colour, in the order in which a client numbers them."""


def symbols(text: str, language: str = "tc") -> list[Json]:
    """The defs of a text, each with its parameters, results and temporaries: `{"name", "kind", "span", "place", "children"}`."""
    parts = pieces_of(text, language)
    if parts is not None:
        return [part.moved(each) for part in parts for each in _symbols(cell_of(part.text, language))[:1]]
    return _symbols(cell_of(text, language))


def _symbols(cell: Cell) -> list[Json]:
    found: list[Json] = []
    for owner, item in enumerate(cell.items):
        inside = [place for place in cell.names.of(owner) if place.introduces and place.kind in ("tensor", "scalar")]
        children = [
            {"name": p.name, "kind": p.kind, "span": cell.span(p.span), "place": cell.span(p.span)} for p in inside
        ]
        whole, name = cell.span(item.span), cell.span(item.name.span)
        found.append({"name": item.name.name, "kind": "def", "span": whole, "place": name, "children": children})
    return found


def references(
    text: str, position: Mapping[str, int], language: str = "tc", known: Mapping[str, Any] | None = None
) -> list[Json]:
    """The places that mean the same as the name at a position: `{"span", "introduces"}`, in text order."""
    cell = cell_of(text, language, known, position)
    place = cell.names.at(cell.offset(position))
    if place is None or place.kind in ("unknown", "type"):
        return []
    parts = pieces_of(text, language) if place.kind == "def" else None
    if parts is not None:  # a def is called in others
        kept = ((part, cell_of(part.text, language, known)) for part in parts if place.name in part.text)
        found = [
            part.moved({"span": span, "introduces": p.introduces})
            for part, cell in kept
            for span, p in _places(cell, part.own)
            if (p.kind, p.name) == ("def", place.name)
        ]
        return sorted(found, key=_begin)
    if place.kind == "def":
        cell = cell_of(text, language, known)
        place = cell.names.at(cell.offset(position)) or place
    origin = cell.names.origin(place)
    return [{"span": cell.span(p.span), "introduces": p is origin} for p in cell.names.same(place)]


def hints(text: str, language: str = "tc", known: Mapping[str, Any] | None = None) -> list[Json]:
    """Ranges at the ends of statements: `{"position", "text", "because"}`, where all are known."""
    parts = pieces_of(text, language)
    if parts is not None:
        return [part.moved(each) for part in parts for each in _hints(cell_of(part.text, language, known), 0)]
    cell = cell_of(text, language, known)
    return [each for owner in range(len(cell.items)) for each in _hints(cell, owner)]


def _hints(cell: Cell, owner: int) -> list[Json]:
    """Those of one def."""
    function, found = cell.found(owner), list[Json]()
    if function is None:
        return []
    called = {call.span for call in function.program.calls}  # whose statements have ranges of their own
    for statement in function.program.statements:
        indices = () if statement.span in called else function.ranges.written(statement.name)
        if not indices or not statement.span.end or any(r.lower is None or r.upper is None for r in indices):
            continue
        reasons = [f"{range_title(r)}: {index_lines(function, r)[0]}" for r in indices]
        shown = ", ".join(map(range_title, indices))
        found.append({"position": cell.span(statement.span)["end"], "text": shown, "because": reasons})
    return found


def colours(text: str, language: str = "tc", known: Mapping[str, Any] | None = None) -> list[Json]:
    """Every name with its kind: `{"span", "kind", "introduces"}`, in text order."""
    parts = pieces_of(text, language)
    if parts is not None:
        found = (part.moved(each) for part in parts for each in _colours(cell_of(part.text, language, known), part.own))
        return sorted(found, key=_begin)
    return _colours(cell_of(text, language, known), len(text))


def _colours(cell: Cell, lines: int) -> list[Json]:
    """Those of the first lines."""
    return [
        {"span": span, "kind": p.kind, "introduces": p.introduces}
        for span, p in _places(cell, lines)
        if p.kind in KINDS
    ]


def _places(cell: Cell, lines: int) -> Iterator[tuple[Json, Place]]:
    """The names of the first lines."""
    for place in cell.names.places:
        span = cell.span(place.span)
        if span["start"]["line"] < lines:
            yield span, place


def _begin(item: Json) -> tuple[int, int]:
    start = item["span"]["start"]
    return start["line"], start["character"]
