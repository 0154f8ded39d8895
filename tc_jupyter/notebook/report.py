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
from tc_jupyter.compiler import Analysis, FunctionAnalysis, analyze
from tc_jupyter.compiler.definition import Options
from tc_jupyter.compiler.text_form import text_form
from tc_jupyter.diagnostics import CallError, CompileError
from tc_jupyter.function import Function, Module, OpenRanks, module_of
from tc_jupyter.runtime import doctor
from tc_jupyter.schedule import Schedule

from .card import html_card
from .widgets.live import displayed, with_widget
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

    def schedules(self) -> dict[str, Schedule]:
        """What `with_schedule` gave, by name of the def."""
        given = ((each.written_name, each.given_schedule) for each in (self.bound or {}).values())
        return {name: schedule for name, schedule in given if schedule is not None}

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
        return html_card(self.analysis, self.engine, schedules=self.schedules())

    def html(self) -> str:
        """The static card, with generated text if that is short enough to be saved."""
        card = html_card(self.analysis, self.engine, self.sources(), self.schedules())
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

    def _display_(self) -> Any:
        """What marimo shows: the live card, or the static one where no widgets are installed."""
        html = self.html()
        return displayed(html, lambda: live_card(html, self.functions, repr(self), self.predict))

    def __repr__(self) -> str:
        return text_form(self.analysis, self.engine, self.schedules())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.options, self.engine)


def card(made: Module | Function) -> Report:
    """The card of a module or a function, as a cell of a notebook shows it: `tc.card(tc.compile(text))`.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(made, Function):
        return report_of(made)
    if not isinstance(made, Module):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
        raise TypeError(f"tc.card shows a module or a function, not a {type(made).__name__}")
    options = next(iter(made.values())).options
    return Report(made.analysis, options, doctor.engine(options.target), made)


def report_of(function: Function) -> Report:
    """The card of one function alone."""
    options, name = function.options, function.written_name
    whole = analyze(
        options.text, language=options.language, strict=options.strict, allow=options.allow, known=options.known
    )
    found = whole.functions.get(name) or _as_called(function)
    functions = {name: found} if found is not None else {}
    opened = {name: whole.open_functions[name]} if name in whole.open_functions else {}
    spans = [found.program.span for found in functions.values()]
    messages = tuple(
        message
        for message in whole.diagnostics
        if not spans or any(span.start <= message.span.start < span.end for span in spans)
    )
    analysis = Analysis(whole.source, whole.language, messages, functions, whole.parsed, opened)
    return Report(analysis, options, doctor.engine(options.target), {function.__name__: function})


def _as_called(function: Function) -> FunctionAnalysis | None:
    """What is known of a `%%sac` function: the ranks of its last call, if there was one."""
    try:
        return function.analysis
    except OpenRanks:
        return None


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
