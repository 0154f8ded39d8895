"""The data of a message: where it points, what it says, how to repair it.

Worked example: `Diagnostic(REDUCTION_MISSING, Span(14, 15), "`=` does not combine the values over `k`")` is a message
about the characters 14 (included) to 15 (excluded) of the text that was given.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Severity(Enum):
    """How much a message matters, from most to least: an error stops the def, a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of message: `number` (`TC204`), `name` in words, severity, one-sentence summary."""

    number: str
    name: str
    severity: Severity
    summary: str


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of offsets into the text, in Unicode code points."""

    start: int
    end: int

    def __or__(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


NO_SPAN = Span(0, 0)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text with a name for messages (`cell`, a file name); converts offsets to positions."""

    text: str
    name: str = "cell"
    line_starts: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        object.__setattr__(self, "line_starts", tuple(starts))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and character of `offset`, both counted from 0, in code points."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.line_starts, offset) - 1
        return line, offset - self.line_starts[line]

    def line(self, number: int) -> str:
        """The text of line `number` (from 0) without its line end."""
        start = self.line_starts[number]
        end = self.line_starts[number + 1] - 1 if number + 1 < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def slice(self, span: Span) -> str:
        """The characters of `span`."""
        return self.text[span.start : span.end]


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that a message points to, with a text of its own; `source` is the text of another file that it is in."""

    span: Span
    text: str
    source: SourceText | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters of `span` by `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that repair a mistake; `title` says what they do."""

    title: str
    edits: tuple[Edit, ...]

    def applied(self, text: str, origin: int = 0) -> str:
        """The text, whose first character has the offset `origin`, after the edits.

        What is inserted at one place stands in the order of the edits, as editors have it, and before what is replaced there.
        """
        for edit in reversed(sorted(self.edits, key=lambda edit: edit.span)):
            text = text[: edit.span.start - origin] + edit.text + text[edit.span.end - origin :]
        return text


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message. Its first line (`message`) can be read alone; `label` says what is wrong at `span`."""

    code: Code
    span: Span
    message: str
    label: str = ""
    labels: tuple[Label, ...] = ()
    help: str | None = None
    fix: Fix | None = None

    @property
    def severity(self) -> Severity:
        """The severity belongs to the code."""
        return self.code.severity

    @property
    def is_error(self) -> bool:
        """Whether this message stops the def."""
        return self.code.severity is Severity.ERROR

    @property
    def helps(self) -> tuple[str, ...]:
        """The help and what the fix is called, unless the help has the same code in it."""
        helps = () if not self.help else (self.help,)
        if self.fix is None:
            return helps
        written = re.findall(r"`[^`]+`", self.fix.title)
        told = self.help is not None and bool(written) and all(code in self.help for code in written)
        return helps if told else (*helps, self.fix.title)


class CompileError(Exception):
    """The text has mistakes; `str()` is the rendering of all of them.

    Attributes:
        diagnostics: every message of the text: errors, warnings, notes, each in source order.
        source: the text they point into.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...], source: SourceText, rendered: str) -> None:
        super().__init__(rendered)
        self.diagnostics = diagnostics
        self.source = source

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the messages."""
        return str(self).splitlines()

    def __reduce__(self) -> tuple[Any, ...]:
        # an error of a worker process is pickled on its way to the caller
        return type(self), (self.diagnostics, self.source, str(self))


class CallError(ValueError):
    """A call does not fit the function; `str()` is the rendering.

    Attributes:
        diagnostic: the message (TC6xx, TC5xx).
        source: the text of the def.
    """

    def __init__(self, diagnostic: Diagnostic, source: SourceText, rendered: str) -> None:
        super().__init__(rendered)
        self.diagnostic = diagnostic
        self.source = source

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostic, self.source, str(self))
