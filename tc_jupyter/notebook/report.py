"""The value of a `%%tc` cell: everything that is shown of it, as one display bundle.

Worked example: in a notebook `Out[3]` of a `%%tc` cell is a `Report`; `Out[3].functions["conv"]` is the function `conv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tc_jupyter import __version__
from tc_jupyter.compiler import Analysis
from tc_jupyter.diagnostics import CallError, CompileError

from .card import html_card, text_card

MIME = "application/vnd.tc-jupyter.v1+json"
JSON_LIMIT = 100_000
"""Bytes of a saved card; what does not fit is left out of it, folded text first."""


class Report:
    """What a cell defined, and how it is shown.

    Attributes:
        analysis: ranges, preconditions, messages.
        functions: the functions that were bound, by name; empty for `--check`.
    """

    def __init__(
        self, analysis: Analysis, functions: Mapping[str, Any], target: str, options: Mapping[str, Any]
    ) -> None:
        self.analysis = analysis
        self.functions = dict(functions)
        self.target = target
        self.options = dict(options)

    def sources(self) -> dict[str, dict[str, str]]:
        """Generated text to show folded: CUDA of every function, made without a device."""
        found: dict[str, dict[str, str]] = {}
        for name, function in self.functions.items():
            try:
                found[function.program.name] = {"generated CUDA": function.source("cuda")}
            except (CompileError, CallError, AttributeError):
                found[name] = {}
        return found

    def to_json(self) -> dict[str, Any]:
        """The data of the bundle's own MIME type."""
        data = self.analysis.to_json() | {
            "source": self.analysis.source.text,
            "language": self.analysis.language,
            "package": __version__,
            "target": self.target,
            "title": ", ".join(self.analysis.functions),
        }
        html = html_card(self.analysis, self.target, self.sources())
        if len(html) + len(str(data)) > JSON_LIMIT:
            html = html_card(self.analysis, self.target)
        return data | ({"html": html} if len(html) + len(str(data)) <= JSON_LIMIT else {})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        data = self.to_json()
        html = data.get("html") or html_card(self.analysis, self.target)
        return {MIME: data, "text/html": html, "text/plain": text_card(self.analysis, self.target)}

    def __repr__(self) -> str:
        return text_card(self.analysis, self.target)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.analysis.source.text, self.options)


def _restore(text: str, options: dict[str, Any]) -> Report:
    """A report from its text and options, without any code made."""
    from tc_jupyter.compiler import analyze  # noqa: PLC0415  (unpickling in a process that may need nothing else)

    language = options.get("language", "tc")
    analysis = analyze(text, language=language, strict=options.get("strict", False), allow=options.get("allow", ()))
    return Report(analysis, {}, options.get("target") or "not bound", options)
