"""The value of a `%%tc` cell: everything that is shown of it, as one display bundle.

Worked example: in a notebook `Out[3]` of a `%%tc` cell is a `Report`; `Out[3].functions["conv"]` is the function `conv`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tc_jupyter import __version__
from tc_jupyter.compiler import Analysis, analyze
from tc_jupyter.compiler.definition import Options
from tc_jupyter.compiler.text_form import text_form
from tc_jupyter.diagnostics import CallError, CompileError
from tc_jupyter.function import Function, OpenRanks, module_of

from .card import html_card
from .widgets.live import with_widget
from .widgets.views import live_card

MIME = "application/vnd.tc-jupyter.v1+json"
SOURCES = {"cuda": "generated CUDA"}
SAC_SOURCES = {"rewrites": "the three steps of the rewriting", **SOURCES}
JSON_LIMIT = 100_000
"""Bytes of a saved card; what does not fit is left out of it, folded text first."""


@dataclass(frozen=True)
class Report:
    """What a cell defined, and how it is shown.

    Attributes:
        analysis: ranges, preconditions, messages.
        options: the text and how it is compiled; a report is pickled as these.
        engine: which engine calls use and why, in one line.
        bound: the functions of the cell, by name; `None`: made from the text when first asked for.
        predict: the live card asks for ranges and shapes before it shows them.
    """

    analysis: Analysis
    options: Options
    engine: str
    bound: Mapping[str, Function] | None = field(default=None, repr=False)
    predict: bool = False

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions of the cell, by name; none if the cell has mistakes."""
        if self.bound is not None:
            return self.bound
        return module_of(self.analysis, self.options) if self.analysis.ok else {}

    def sources(self) -> dict[str, dict[str, str]]:
        """Generated text to show folded, by name of the def: CUDA, made without a device; the steps of a `%%sac` function."""
        found: dict[str, dict[str, str]] = {}
        for name in dict.fromkeys([*self.analysis.functions, *self.analysis.open_functions]):
            function = self.functions.get(name)
            if function is not None:
                kinds = SAC_SOURCES if name in self.analysis.open_functions else SOURCES
                texts = {title: _source(function, kind) for kind, title in kinds.items()}
                found[name] = {title: text for title, text in texts.items() if text}
        return found

    def to_json(self, html: str | None = None) -> dict[str, Any]:
        """The data of the bundle's own MIME type, below 100 kB: analysis and card, the card alone, or the beginning of the text."""
        about = {
            "source": self.analysis.source.text,
            "language": self.options.language,
            "package": __version__,
            "target": self.engine,
        }
        data = self.analysis.to_json() | about
        card = self.html() if html is None else html
        bare = data | {"functions": [], "diagnostics": [], "open": {}, "source": ""}
        cut = repr(self)[: JSON_LIMIT // 2] + "\n... (cut: `%tc inspect NAME` shows a def)"
        forms = (
            data | {"html": card},
            data | {"html": self.card()},
            bare | {"html": self.card()},
            bare | {"text": cut},
        )
        return next((form for form in forms if len(json.dumps(form)) < JSON_LIMIT), forms[-1])

    def card(self) -> str:
        """The static card without generated text."""
        return html_card(self.analysis, self.engine)

    def html(self) -> str:
        """The static card, with generated text if that is short enough to be saved."""
        card = html_card(self.analysis, self.engine, self.sources())
        return card if len(card) <= JSON_LIMIT // 2 else self.card()

    def bundle(self) -> dict[str, Any]:
        """Every form of the card by MIME type, for one display."""
        html = self.html()
        return {MIME: self.to_json(html), "text/html": html, "text/plain": repr(self)}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude
        bundle = self.bundle()
        if not self.functions:
            return bundle
        html, text = bundle["text/html"], bundle["text/plain"]
        return with_widget(bundle, lambda: live_card(html, self.functions, text, self.predict))

    def __repr__(self) -> str:
        return text_form(self.analysis, self.engine)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.options, self.engine)


def _source(function: Function, kind: str) -> str:
    """Generated text, or nothing where the ranks of the function are not known yet."""
    try:
        return function.source(kind)
    except (CompileError, CallError, OpenRanks):
        return ""


def _restore(options: Options, engine: str) -> Report:
    """A report from its text and options; no code is made before a function is called."""
    analysis = analyze(
        options.text, language=options.language, strict=options.strict, allow=options.allow, known=options.known
    )
    return Report(analysis, options, engine)
