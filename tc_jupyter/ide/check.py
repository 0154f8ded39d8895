"""Every message, range and condition of a text, and the words of the languages.

Worked example: `check("def f(float(N) X) -> (Y) { Y = X(i) }")["diagnostics"][0]["code"]` is `"TC204"`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tc_jupyter.compiler import with_meanings

from .cell import Json, Known, analysed
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
) -> Json:
    """Analyse a text: the data of `Analysis.to_json`.

    Args:
        namespace: the values of Python, which say what an unknown name is.
        cells: the number of the cell that defined a name last.
        above: names that cells above define, whether they were run or not.
    """
    mentioned = Known({name: value for name, value in (known or {}).items() if name in text})
    found = analysed(text, language, strict, tuple(allow), mentioned)
    said = with_meanings(found.diagnostics, found.source, namespace or {}, cells, above)
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
