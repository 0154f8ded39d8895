"""Every message, range and condition of a text, and the words of the languages.

Worked example: `check("def f(float(N) X) -> (Y) { Y = X(i) }")["diagnostics"][0]["code"]` is `"TC204"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .cell import Json, Known, analysed
from .words import CONSTANTS, REDUCTIONS, functions, operators, types
from .words import keywords as words


def check(
    text: str,
    language: str = "tc",
    strict: bool = False,
    allow: Iterable[str] = (),
    known: Mapping[str, Any] | None = None,
) -> Json:
    """Analyse a text: the data of `Analysis.to_json`."""
    mentioned = Known({name: value for name, value in (known or {}).items() if name in text})
    return analysed(text, language, strict, tuple(allow), mentioned).to_json()


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
