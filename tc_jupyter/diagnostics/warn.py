"""Warnings outside of a notebook: a message as a Python warning, at the line of the user's code that caused it.

Worked example: `tc.compile(text)` of a text with a moved origin warns `warning[TC321] moved-origin: ...`, as
`warnings.filterwarnings("ignore", "warning.TC321")` silences it; `allow=("TC321",)` does so for one text.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from types import FrameType

from .diagnostic import Diagnostic, Severity, SourceText
from .render import render

_PACKAGE = __name__.partition(".")[0]


class DiagnosticWarning(UserWarning):
    """A warning about a text or a call that is legal; `str()` is the rendering.

    Attributes:
        diagnostic: the message.
        source: the text it points into.
    """

    def __init__(self, diagnostic: Diagnostic, source: SourceText) -> None:
        super().__init__(render((diagnostic,), source))
        self.diagnostic = diagnostic
        self.source = source


def warn(diagnostics: Iterable[Diagnostic], source: SourceText) -> None:
    """One Python warning per message of that severity; notes and errors are left out."""
    for diagnostic in diagnostics:
        if diagnostic.severity is Severity.WARNING:
            warnings.warn(DiagnosticWarning(diagnostic, source), stacklevel=_outside())


def _outside() -> int:
    """The stack level of the first caller that is not in this package, as `warnings.warn` counts it in `warn`."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]  (`inspect.stack` reads source files)
    while frame.f_back is not None and _package_of(frame) == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level


def _package_of(frame: FrameType) -> str:
    """The package that a frame runs; generated functions have no name and are ours."""
    return str(frame.f_globals.get("__name__", _PACKAGE)).partition(".")[0]
