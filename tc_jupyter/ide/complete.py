"""What may be typed at a position, and the call that a position is inside of.

Both work on words, brackets and the names of the tree, so an unfinished statement is no obstacle.

Worked example: in `Y(i) = ex` at the end, `complete` offers `exp` with the detail `exp(x)`; in `pow(X(i), ` `signature` answers
`pow(a, b)` with the second parameter active.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from tc_jupyter.diagnostics import Span

from . import files
from .cell import Cell, Json, cell_of
from .files import NO_FILES, Files
from .hover import (
    known_signature,
    param_text,
    range_title,
    shape_of,
    signature_line,
    statement_of,
    tensor_of,
    tensor_title,
)
from .names import Place
from .pieces import defined_in
from .words import CONSTANTS, FunctionDoc, function_doc, functions, keywords, type_doc, types

MOST_ITEMS = 500

_BEFORE = re.compile(r"[^\W\d]\w*\Z")
_AFTER_DOT = re.compile(r"(?:\w\.|\b\d[\w.]*)\Z")


def complete(
    text: str,
    position: Mapping[str, int],
    language: str = "tc",
    known: Mapping[str, Any] | None = None,
    used: Files = NO_FILES,
) -> Json | None:
    """Offer what may stand at a position.

    Returns:
        `{"span", "items"}`: the text to replace, which ends at the position, and at most 500 items, own names first; `None` in a
        comment, in a number and where a new name is invented.
    """
    paths = files.complete(text, position, language, used)
    if paths is not None:
        return paths
    cell = cell_of(text, language, known, position)
    offset = cell.offset(position)
    line = text[max(0, offset - 300) : offset].rpartition("\n")[2]
    found = _BEFORE.search(line)
    start = offset - (len(found.group()) if found else 0)
    before = line[: len(line) - (offset - start)]
    if _in_comment(cell, offset) or _AFTER_DOT.search(before) or re.search(r"\b(?:def|reduce)\s+\Z", before):
        return None
    items: dict[str, Json] = {}
    for item in _offers(cell, text, start, offset):
        items.setdefault(str(item["label"]), item)
    return {"span": cell.span(Span(start, offset)), "items": list(items.values())[:MOST_ITEMS]}


def _in_comment(cell: Cell, offset: int) -> bool:
    """Inside a comment, or at the end of one that the line end closes."""
    comments = cell.parsed.comments
    position = bisect_right(comments, offset, key=lambda comment: comment.start) - 1
    if position < 0:
        return False
    comment = comments[position]
    closed = cell.text.startswith("/*", comment.start) and cell.text.endswith("*/", comment.start + 2, comment.end)
    return comment.start < offset and (offset < comment.end if closed else offset <= comment.end)


def _item(
    label: str, kind: str, detail: str | None = None, documentation: str | None = None, apply: str | None = None
) -> Json:
    found: Json = {"label": label, "type": kind, "detail": detail, "documentation": documentation, "apply": apply}
    return {key: value for key, value in found.items() if value is not None}


def _offers(cell: Cell, text: str, start: int, end: int) -> Iterator[Json]:
    """Own names first: of the statement, of the def, then defs and constants of the text, functions, types, words."""
    owner = owner_at(cell, start)
    typed = Span(start, end)
    if owner is not None:
        yield from _own(cell, owner, start, typed)
    for number, item in enumerate(cell.items):
        if item.name.name.isidentifier() and number != owner:
            yield _item(item.name.name, "def", signature_line(cell, number), apply=f"{item.name.name}(")
    own = None if owner is None else cell.items[owner].name.span
    for one in defined_in(text, cell.language):
        if one.name.isidentifier() and one.place not in (own, typed):
            yield _item(one.name, one.kind, one.head, apply=f"{one.name}(" if one.kind == "def" else None)
    for name, value in cell.known.functions.items():
        yield _item(name, "def", known_signature(name, value), files.origin(value), f"{name}(")
    for doc in functions(cell.language):
        yield _item(doc.name, "function", doc.label, doc.text, f"{doc.name}(")
    for name in types(cell.language):
        yield _item(name, "type", None, type_doc(name, cell.language))
    for word, text in {**keywords(cell.language), **CONSTANTS}.items():
        yield _item(word, "keyword", None, text)


def owner_at(cell: Cell, offset: int) -> int | None:
    """The number of the def around an offset; after the closing brace there is none."""
    items = cell.items
    number = bisect_right([item.span.start for item in items], offset) - 1
    if number < 0:
        return None
    span = items[number].span
    closed = cell.text[span.start : span.end].rstrip().endswith("}")
    return None if closed and offset >= span.end else number


def _own(cell: Cell, owner: int, start: int, typed: Span) -> Iterator[Json]:
    places = [place for place in cell.names.of(owner) if place.span != typed and place.kind in _OWN_KINDS]
    here = _statement_at(places, start)
    near = [place for place in places if place.kind in ("index", "let")]
    near.sort(key=lambda place: place.statement != here)  # those of this statement first
    for place in near:
        yield _item(place.name, place.kind, _index_detail(cell, place) if place.statement == here else None)
    for place in places:
        if place.kind not in ("index", "let"):
            yield _item(place.name, place.kind, _detail(cell, place))


_OWN_KINDS = frozenset({"index", "let", "tensor", "scalar", "size"})


def _statement_at(places: list[Place], offset: int) -> Span | None:
    """The statement that a new word at an offset belongs to: the last one that starts before it."""
    spans = [place.statement for place in places if place.statement is not None and place.statement.start <= offset]
    return max(spans, default=None, key=lambda span: span.start)


def _index_detail(cell: Cell, place: Place) -> str | None:
    found = cell.found(place.owner)
    statement = None if found is None else statement_of(found.program, place)
    if found is None or statement is None:
        return None
    ranges = found.ranges.indices.get(statement.name, ())
    return next((range_title(index) for index in ranges if index.index == place.name and index.lower is not None), None)


def _detail(cell: Cell, place: Place) -> str | None:
    if place.kind == "size":
        return "size"
    found = cell.found(place.owner)
    tensor = None if found is None else tensor_of(found.program, place.name)
    if found is not None and tensor is not None:
        shape = shape_of(tensor, found)
        dtype, rank = tensor.element.value, tensor.written_rank
        return dtype if shape == [] else f"{dtype}({', '.join(shape or ['?'] * rank)})"
    params = [param for param in cell.items[place.owner].params if param.name.name == place.name]
    return param_text(params[0]).removesuffix(f" {place.name}") if params else None


# signatures ----------------------------------------------------------------------------------------------------------------------

_NEAR = 20_000
"""Code points before the position that are searched for the start of a call."""


def signature(
    text: str,
    position: Mapping[str, int],
    language: str = "tc",
    known: Mapping[str, Any] | None = None,
    used: Files = NO_FILES,
) -> Json | None:
    """Tell the parameters of the call that a position is inside of.

    Returns:
        `{"label", "parameters", "active", "documentation", "span"}`; the innermost call of a builtin function or a def counts,
        reads of tensors are passed over. `None` outside of calls.
    """
    del used  # what it has is among `known`
    cell = cell_of(text, language, known, position)
    offset = cell.offset(position)
    if _in_comment(cell, offset):
        return None
    for opening, active in _open_brackets(cell, offset):
        name = _BEFORE.search(cell.text[max(0, opening - 200) : opening].rstrip())
        if cell.text[opening] != "(" or name is None or _defines(cell, opening):
            continue
        label = _label(cell, name.group())
        if label is not None:
            start = cell.text.rindex(name.group(), 0, opening)
            span = cell.span(Span(start, _closing(cell.text, opening)))
            return {**label, "active": active, "span": span}
    return None


def _without_comments(cell: Cell, start: int, end: int) -> str:
    """A part of the text with blanks in place of comments."""
    inside = [comment for comment in cell.parsed.comments if comment.start < end and comment.end > start]
    part = cell.text[start:end]
    for comment in inside:
        first, last = max(comment.start, start) - start, min(comment.end, end) - start
        part = part[:first] + " " * (last - first) + part[last:]
    return part


def _open_brackets(cell: Cell, offset: int) -> Iterator[tuple[int, int]]:
    """Brackets that are open at an offset, innermost first, each with the number of commas after it."""
    start = max(0, offset - _NEAR)
    part = _without_comments(cell, start, offset)
    closed = commas = 0
    for position in range(len(part) - 1, -1, -1):
        char = part[position]
        if char in ")]}":
            if char == "}" and closed == 0 and cell.language == "tc":
                return
            closed += 1
        elif char in "([{":
            if closed:
                closed -= 1
            elif char == "{" and cell.language == "tc":
                return
            else:
                yield start + position, commas
                commas = 0
        elif char == "," and not closed:
            commas += 1
        elif char == "=" and not closed and _assigns(part, position):
            return


def _assigns(part: str, position: int) -> bool:
    """Whether `=` starts the value of a statement, so that no call goes on behind it."""
    around = part[max(0, position - 1) : position + 2]
    return not any(operator in around for operator in ("==", "<=", ">=", "!="))


def _defines(cell: Cell, opening: int) -> bool:
    """Whether the bracket opens the parameters of a def."""
    return any(
        item.signature_span.start <= opening < item.signature_span.end and item.name.span.end <= opening
        for item in cell.items
    )


def _label(cell: Cell, name: str) -> Json | None:
    """Label, places of the parameters in it, documentation."""
    owner = next((number for number, item in enumerate(cell.items) if item.name.name == name), None)
    if owner is not None:
        params = [param_text(param) for param in cell.items[owner].params]
        found = cell.found(owner)
        results = [] if found is None else [tensor_title(found.program.tensor(n), found) for n in found.program.results]
        label = signature_line(cell, owner).removeprefix("def ")
        return _labelled(
            label, label.index(f"{name}(") + len(name) + 1, params, f"returns {', '.join(results)}" if results else None
        )
    if _is_tensor(cell, name):
        return None
    known = cell.known.functions.get(name)
    doc = None if known is not None and cell.language == "sac" else function_doc(name, cell.language)
    if doc is not None:
        return _builtin(doc)
    return None if known is None else _known(known_signature(name, known), name, files.origin(known))


def _is_tensor(cell: Cell, name: str) -> bool:
    """Whether the cell uses the name for a tensor; only then is it none of the functions."""
    return cell.language == "tc" and any(place.name == name and place.kind == "tensor" for place in cell.names.places)


def _builtin(doc: FunctionDoc) -> Json:
    return _labelled(doc.label, len(doc.name) + 1, list(doc.parameters), doc.text)


def _labelled(label: str, start: int, parameters: list[str], documentation: str | None) -> Json:
    spans: list[list[int]] = []
    for parameter in parameters:
        spans.append([start, start + len(parameter)])
        start += len(parameter) + 2
    return {"label": label, "parameters": spans, "documentation": documentation}


def _known(label: str, name: str, origin: str) -> Json:
    """The parameters of a function of which only the signature is known."""
    opening = label.find("(")
    if opening < 0:
        return _labelled(f"{name}()", len(name) + 1, [], None)
    closing = _closing(label, opening) - 1
    parameters: list[str] = []
    depth, start = 0, opening + 1
    for position in range(opening + 1, closing + 1):
        char = label[position]
        if (char == "," and depth == 0) or position == closing:
            parameters.append(label[start:position].strip())
            start = position + 1
        depth += (char in "([") - (char in ")]")
    return _labelled(label, opening + 1, [parameter for parameter in parameters if parameter], origin)


def _closing(text: str, opening: int) -> int:
    """The offset after the bracket that closes a call; the end of its line where there is none."""
    depth = 0
    for found in re.finditer(r"[()\[\]{}]", text[opening : opening + _NEAR]):
        depth += 1 if found.group() in "([{" else -1
        if depth == 0:
            return opening + found.end()
        if depth < 0:
            break
    end = text.find("\n", opening)
    return len(text) if end < 0 else end


__all__ = ["complete", "owner_at", "signature"]
