"""Go to where a name is introduced, and rename it where it means the same.

Worked example: renaming `i` in one statement of a def leaves an `i` of the next statement alone.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any

from tc_jupyter.program import TC_FUNCTIONS
from tc_jupyter.program.sac_primitives import is_builtin
from tc_jupyter.syntax import KEYWORDS
from tc_jupyter.syntax.sac_parser import RESERVED

from . import files
from .cell import Cell, Json, cell_of
from .files import NO_FILES, Files
from .names import Place
from .outline import same_everywhere
from .pieces import piece_of, pieces_of

_LEGAL = {"tc": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "sac": re.compile(r"[^\W\d]\w*")}
_RENAMED = frozenset({"index", "tensor", "size", "scalar", "let", "def"})


def definition(
    text: str,
    position: Mapping[str, int],
    language: str = "tc",
    known: Mapping[str, Any] | None = None,
    used: Files = NO_FILES,
) -> Json | None:
    """Find where the name at a position is introduced.

    Returns:
        `{"name", "kind", "cell", "span"}`; `span` is `None` for a function of another cell. One of a file also has `file`, its
        path, and `in_file`, the place there. `None` for builtin functions, types and unknown names.
    """
    whole = files.definition(text, position, language, used)
    if whole is not None:
        return whole
    cell = cell_of(text, language, known, position)
    place = _place(cell, position)
    if place is None or place.kind not in _RENAMED:
        return None
    origin = cell.names.origin(place)
    elsewhere = place.kind == "def" and not origin.introduces
    span = None if elsewhere else cell.span(origin.span)
    found: Json = {"name": place.name, "kind": place.kind, "cell": None, "span": span}
    there = files.place_of(cell.known.functions.get(place.name)) if elsewhere else None
    return found if there is None else {**found, "file": there[0], "in_file": there[1]}


def find_def(text: str, name: str, language: str = "tc") -> Json | None:
    """The place of the name of a def, for a text that other cells call."""
    cell = cell_of(text, language)
    return next((cell.span(item.name.span) for item in cell.items if item.name.name == name), None)


def rename(
    text: str,
    position: Mapping[str, int],
    name: str | None = None,
    language: str = "tc",
    known: Mapping[str, Any] | None = None,
) -> Json | None:
    """Rename the name at a position.

    An index or let is renamed in its statement, a tensor, scalar or size in its def, a def or constant in the cell.

    Args:
        name: the new name; `None` asks only what would be renamed.

    Returns:
        `{"span", "name", "kind", "edits", "refused"}`, or `None` where nothing can be renamed.
    """
    cell = cell_of(text, language, known, position)
    place = _place(cell, position)
    if place is None or place.kind not in _RENAMED:
        return None
    if place.kind == "def" and not cell.names.origin(place).introduces:
        return None  # its text is in another cell
    found: Json = {"span": cell.span(place.span), "name": place.name, "kind": place.kind, "edits": [], "refused": None}
    if name is None or name == place.name:
        return found
    refused = _refused(cell, place, name) or _taken(text, cell, place, name)
    if refused is not None:
        return {**found, "refused": refused}
    if place.is_shared:
        spans = [each["span"] for each in same_everywhere(text, place, language, known)]
    else:
        spans = [cell.span(other.span) for other in cell.names.same(place)]
    return {**found, "edits": [{"span": span, "text": name} for span in spans]}


def _place(cell: Cell, position: Mapping[str, int]) -> Place | None:
    offset = cell.offset(position)
    if any(comment.start < offset < comment.end for comment in cell.parsed.comments):
        return None
    return cell.names.at(offset)


def _refused(cell: Cell, place: Place, name: str) -> str | None:
    """Why a name cannot be given, in one line."""
    sac = cell.language == "sac"
    if not _LEGAL[cell.language].fullmatch(name):
        return f"`{name[:40]}` is not a name: letters, digits and `_`, and no digit first"
    if name in (RESERVED if sac else KEYWORDS):
        return f"`{name}` is a word of the language"
    if place.kind in ("size", "scalar") and not sac and keyword.iskeyword(name):
        return f"`{name}` is a word of Python, and bounds are printed as Python"
    if place.kind in ("tensor", "scalar") and not sac and name in TC_FUNCTIONS:
        return f"`{name}` is a function"
    if place.kind == "def" and sac and is_builtin(name):
        return f"`{name}` is a function"
    return None


def _taken(text: str, cell: Cell, place: Place, name: str) -> str | None:
    """Whether the name means something else where it would stand."""
    if not place.is_shared:
        return _taken_in(cell, place, name)
    for part in (part for part in pieces_of(text, cell.language) or (piece_of(text),) if name in part.text):
        refused = _taken_in(cell_of(part.text, cell.language, cell.known.functions), place, name, part.line)
        if refused is not None:
            return refused
    return None


def _taken_in(cell: Cell, place: Place, name: str, moved: Callable[[int], int] = int) -> str | None:
    for other in cell.names.places:
        if other.name != name or other.kind in ("function", "type", "unknown"):
            continue
        anywhere = place.is_shared or other.is_shared
        local = place.kind in ("index", "let") and other.kind in ("index", "let")
        nested = cell.language == "sac"  # a statement of a comprehension may stand inside another one
        if anywhere or (other.owner == place.owner and (not local or nested or other.statement == place.statement)):
            line = moved(cell.source.position(cell.names.origin(other).span.start)[0]) + 1
            return f"`{name}` is in scope already: {_article(other.kind)} in line {line}"
    return None


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "index" else f"a {kind}"
