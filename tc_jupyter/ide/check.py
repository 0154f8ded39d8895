"""Every message, range and condition of a text, and the words of the languages.

Worked example: `check("def f(float(N) X) -> (Y) { Y = X(i) }")["diagnostics"][0]["code"]` is `"TC204"`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tc_jupyter.compiler import with_meanings
from tc_jupyter.diagnostics import Severity
from tc_jupyter.syntax.parser import MOST_MESSAGES

from . import files
from .cell import Json, Known, analysed, cell_of
from .files import NO_FILES, Files
from .pieces import Piece, pieces_of
from .words import CONSTANTS, REDUCTIONS, functions, operators, types
from .words import keywords as words


def check(
    text: str,
    language: str = "tc",
    strict: bool = False,
    allow: Iterable[str] = (),
    known: Mapping[str, Any] | None = None,
    namespace: Mapping[str, Any] | None = None,
    cells: Mapping[str, int] | None = None,
    above: Collection[str] = (),
    used: Files = NO_FILES,
) -> Json:
    """Analyse a text: the data of `Analysis.to_json`.

    Args:
        namespace: the values of Python, which say what an unknown name is.
        cells: the number of the cell that defined a name last.
        above: names that cells above define, whether they were run or not.
        used: the files that the text uses; their functions are among `known`.
    """
    found = _check(text, language, strict, allow, known, namespace, cells, above)
    cell = cell_of(text, language)
    said = files.messages(cell, used)
    if said or not used.used.is_whole:
        own = [item for item in found["diagnostics"] if not files.follows(item, cell, used)]
        found = {**found, "diagnostics": sorted([*said, *own], key=_rank)}
    return found


def _check(
    text: str,
    language: str,
    strict: bool,
    allow: Iterable[str],
    known: Mapping[str, Any] | None,
    namespace: Mapping[str, Any] | None,
    cells: Mapping[str, int] | None,
    above: Collection[str],
) -> Json:
    meaning = namespace or {}, cells, above
    options = strict, tuple(allow)
    parts = pieces_of(text, language)
    if parts is None:
        return _checked(text, language, known or {}, *options, *meaning)
    found = [(part, _checked(part.text, language, known or {}, *options, *meaning)) for part in parts]
    said = [part.moved(item) for part, data in found for item in data["diagnostics"] if _is_own(part, item)]
    if len(said) > MOST_MESSAGES:
        return _checked(text, language, known or {}, *options, *meaning)
    said.sort(key=_rank)
    functions = [
        part.moved(each) for part, data in found for each in data["functions"] if each["name"] not in part.called
    ]
    return {**found[0][1], "functions": functions, "diagnostics": said}


_RANK = {severity.value: rank for rank, severity in enumerate(Severity)}


def _rank(item: Json) -> tuple[int, ...]:
    """Errors first, each kind in text order."""
    return (_RANK[item["severity"]], *_place(item["span"]))


def _is_own(part: Piece, item: Json) -> bool:
    """Whether a message is about the def itself, and not about one that it calls."""
    return item["span"]["start"]["line"] < part.own


def _place(span: Json) -> tuple[int, ...]:
    return tuple(span[end][way] for end in ("start", "end") for way in ("line", "character"))


def _checked(
    text: str,
    language: str,
    known: Mapping[str, Any],
    strict: bool,
    allow: tuple[str, ...],
    namespace: Mapping[str, Any],
    cells: Mapping[str, int] | None,
    above: Collection[str],
) -> Json:
    mentioned = Known({name: value for name, value in known.items() if name in text})
    found = analysed(text, language, strict, allow, mentioned)
    said = with_meanings(found.diagnostics, found.source, namespace, cells, above)
    return replace(found, diagnostics=said).to_json()


def keywords(language: str = "tc") -> Json:
    """The words of a language: keywords, constants, types, reductions, functions with documentation, operators."""
    described = [
        {"name": doc.name, "parameters": list(doc.parameters), "documentation": doc.text} for doc in functions(language)
    ]
    return {
        "language": language,
        "keywords": list(words(language)),
        "constants": list(CONSTANTS),
        "types": list(types(language)),
        "reductions": list(REDUCTIONS) if language == "tc" else [],
        "functions": described,
        "operators": list(operators(language)),
    }
