"""The derivative of a def as the text of a cell, to read and to copy: backwards as `f.vjp()`, or forwards as `f.jvp()`.

Worked example: for `Y(i) = sin(X(i))` it shows `dX(i) = dY(i) * cos(X(i))` in the def that `f.vjp().text` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.function import Function, OpenRanks

from .picture import BAD, LISTING, Content, Control, Picture, one_line, words

_KINDS = (("vjp", "backwards (vjp)"), ("jvp", "forwards (jvp)"))
_SHOWN = 30_000
"""Characters; `f.vjp().text` gives all."""


class Gradient(Picture):
    """The text of a derived def."""

    name = "gradient"
    title = "gradient"

    def __init__(self, function: Function, kind: str = "vjp", **sizes: int) -> None:
        """Raise `ValueError` for a kind that there is not. The text is one for all sizes."""
        del sizes
        super().__init__(function)
        if kind not in dict(_KINDS):
            raise ValueError(f"kind {kind!r}: expected 'vjp' or 'jvp'")
        self.kind = kind

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """`kind`: the derivative to show."""
        del dragging
        if values.get("kind") in dict(_KINDS):
            self.kind = str(values["kind"])

    def content(self, live: bool = False) -> Content:
        """The text with a button that copies it, or why there is none."""
        controls = (Control("kind", "choice", "show", self.kind, _KINDS),)
        try:
            derived = self.function.vjp() if self.kind == "vjp" else self.function.jvp()
        except (CompileError, OpenRanks) as problem:
            said = problem.diagnostics[0].message if isinstance(problem, CompileError) else one_line(problem)
            return Content(words(said, "✗", BAD), controls, text=said)
        text = f"%%tc\n{derived.text}"
        shown = text if len(text) <= _SHOWN else text[:_SHOWN].rpartition("\n")[0]
        copy = '<button type="button" data-copy="gradient">copy</button>' if live else ""
        style = f"{LISTING};margin:4px 0;overflow:auto;max-height:32em;line-height:1.35"
        body = f'{copy}<pre data-listing="gradient" tabindex="0" style="{style}">{escape(shown)}</pre>'
        if shown is not text:
            body += words(f"{len(text) - len(shown):,} more characters: `f.{self.kind}().text` gives all")
        return Content(body, controls, {"text": text}, text=text)
