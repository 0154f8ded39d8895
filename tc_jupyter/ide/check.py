"""Every message, range and condition of a text, and the words of the languages.

Worked example: `check("def f(float(N) X) -> (Y) { Y = X(i) }")["diagnostics"][0]["code"]` is `"TC204"`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tc_jupyter.compiler import with_meanings
from tc_jupyter.compiler.analysis_json import diagnostic_json
from tc_jupyter.diagnostics import Severity
from tc_jupyter.syntax.parser import MOST_MESSAGES

from . import files
from .cell import KEPT, Json, Known, analysed, cell_of
from .files import NO_FILES, Files
from .pieces import Piece, pieces_of, places_of
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
    asked = _Asked(language, strict, tuple(allow), known or {}, (namespace or {}, cells, above))
    parts, said = _said(text, asked, used)
    if parts is None:
        return {**_data(text, *asked.of(text)), "diagnostics": said}
    found = [(part, _data(part.text, *asked.of(part.text))) for part in parts]
    functions = [
        part.moved(each) for part, data in found for each in data["functions"] if each["name"] not in part.called
    ]
    place = places_of(text, language)
    functions.sort(key=lambda each: place.get(each["name"], len(text)))
    opened = {name: each for _, data in found for name, each in data.get("open", {}).items()}
    return {**found[0][1], "functions": functions, "diagnostics": said, **({"open": opened} if opened else {})}


def messages(
    text: str, language: str = "tc", known: Mapping[str, Any] | None = None, used: Files = NO_FILES
) -> list[Json]:
    """The diagnostics of `check` alone."""
    return _said(text, _Asked(language, False, (), known or {}, ({}, None, ())), used)[1]


def prepare(text: str, language: str = "tc", known: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Read and analyse the defs of a long text, one in each step; what is asked about all of them is answered soon after that."""
    asked = _Asked(language, False, (), known or {}, ({}, None, ()))
    for part in pieces_of(text, language) or ():
        analysed(part.text, *asked.of(part.text))
        _ = cell_of(part.text, language, known).names
        yield


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked about a text beside the text."""

    language: str
    strict: bool
    allow: tuple[str, ...]
    known: Mapping[str, Any]
    meaning: tuple[Mapping[str, Any], Mapping[str, int] | None, Collection[str]]

    def of(self, text: str) -> tuple[str, bool, tuple[str, ...], Known]:
        """What decides the analysis of a part of it."""
        return self.language, self.strict, self.allow, Known.of(text, self.known)


def _said(text: str, asked: _Asked, used: Files) -> tuple[tuple[Piece, ...] | None, list[Json]]:
    """The pieces of a text, if it is to be cut, and the messages about it."""
    parts, said = pieces_of(text, asked.language), list[Json]()
    if parts is not None:
        every = (part.moved(item) for part in parts for item in _about(part.text, asked) if _is_own(part, item, asked))
        said = [*{str([item[key] for key in ("code", "message", "span", "labels")]): item for item in every}.values()]
        said.sort(key=_rank)
    if parts is None or len(said) > MOST_MESSAGES:
        parts, said = None, _about(text, asked)
    cell = cell_of(text, asked.language)
    of_files = files.messages(cell, used)
    if of_files or not used.used.is_whole:
        own = [item for item in said if not files.follows(item, cell, used)]
        said = sorted([*of_files, *own], key=_rank)
    return parts, said


def _about(text: str, asked: _Asked) -> list[Json]:
    """The messages about one text."""
    found = analysed(text, *asked.of(text))
    said = with_meanings(found.diagnostics, found.source, *asked.meaning)
    return [diagnostic_json(item, found.source) for item in said]


@lru_cache(maxsize=512)
def _kept(text: str, language: str, strict: bool, allow: tuple[str, ...], known: Known) -> Json:
    return analysed(text, language, strict, allow, known).to_json()


def _data(text: str, *asked: Any) -> Json:
    """The plain data of an analysis, kept for the next change elsewhere; nobody may change it."""
    return (_kept if len(text) <= KEPT else _kept.__wrapped__)(text, *asked)


_RANK = {severity.value: rank for rank, severity in enumerate(Severity)}


def _rank(item: Json) -> tuple[int, ...]:
    """Errors first, each kind in text order."""
    return (_RANK[item["severity"]], *_place(item["span"]))


def _is_own(part: Piece, item: Json, asked: _Asked) -> bool:
    """Whether a message is about the def itself, and not about one that it calls.

    In `%%sac` it may be about a line of that; and one about a constant says in which def it has another meaning.
    """
    return asked.language == "sac" or any(map(part.is_own, (item, *item["labels"])))


def _place(span: Json) -> tuple[int, ...]:
    return tuple(span[end][way] for end in ("start", "end") for way in ("line", "character"))


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
