"""A message as text, with the source line underlined; and the error index.

Worked example:

    error[TC204] reduction-missing: `=` does not combine the values over `k`
     --> cell:2:13
      |
    2 |     C(i, j) = A(i, k) * B(k, j)
      |             ^      - `k` is not on the left
    help: replace `=` by `+=!`
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path

from .codes import ALL
from .diagnostic import Diagnostic, Severity, SourceText, Span

WIDE = 100
"""Columns of a source line that are shown, and of a line of help: those of a formatted def. A longer line is cut at its marks."""
NARROW = 62
"""The same where the page breaks lines that are too long for it, so that marks would stand under nothing: with letters of 22
pixels a page of 1000 holds as many, and what stands beside them."""
_TAB = 4
_STYLES = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m", Severity.NOTE: "\x1b[1;36m"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(slots=True)
class Page:
    """Where texts are shown: `columns` says how much of a source line, and is asked for each text."""

    columns: Callable[[], int] = lambda: WIDE


PAGE = Page()


def render(diagnostics: Iterable[Diagnostic], source: SourceText, color: bool = False) -> str:
    """All messages as one text, a blank line between them; line and column are counted from 1.

    The text never ends with a line end. Colour is an addition, never the only sign.
    """
    return "\n\n".join(_render_one(item, source, color) for item in diagnostics)


def explain(code: str) -> str:
    """The section of the error index about `code`: meaning, example, cure.

    Args:
        code: the number, with or without `TC`, or the name.

    Raises:
        KeyError: there is no such code.
        TypeError: not a string.
    """
    if not isinstance(code, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
        raise TypeError(f"a code is a string such as 'TC301', not `{type(code).__name__}`")
    wanted = code.strip().strip("[]")
    wanted = f"TC{wanted}" if wanted.isdigit() else wanted
    sections = index_sections()
    if wanted.upper() in sections:
        return sections[wanted.upper()]
    for number, known in ALL.items():
        if known.name == wanted.lower():
            return sections[number]
    raise KeyError(f"there is no message {code!r}; the codes are {_all_codes()}")


def _all_codes() -> str:
    """The codes, those that follow each other as `first to last`."""
    numbers = [int(number[2:]) for number in sorted(ALL)]
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return ", ".join(
        f"TC{low}" if low == high else f"TC{low} to TC{high}" for low, high in zip(starts, ends, strict=True)
    )


@cache
def index_sections() -> dict[str, str]:
    """The sections of `index.md` by code number, heading included."""
    text = Path(__file__).with_name("index.md").read_text(encoding="utf-8")
    parts = re.split(r"^(?=## TC\d{3}\b)", text, flags=re.MULTILINE)
    return {part[3:8]: part.strip() for part in parts if part.startswith("## TC")}


def _render_one(item: Diagnostic, source: SourceText, color: bool) -> str:
    style = _STYLES[item.severity] if color else ""
    bold, dim, reset = (_BOLD, _DIM, _RESET) if color else ("", "", "")
    head = f"{style}{item.severity.value}[{item.code.number}]{reset} {bold}{item.code.name}: {item.message}{reset}"
    line, column = source.position(item.span.start)
    marks = _marks(item, source)
    width = len(str(max((mark.line for mark in marks), default=line) + 1))
    lines = [head, f"{' ' * width}{dim}-->{reset} {source.name}:{line + 1}:{column + 1}"]
    if source.text:
        lines += _excerpt(marks, source, width, style, dim, reset)
    lines += _elsewhere(item, style, dim, reset)
    for text in item.helps:
        lines += _help(text, bold, reset)
    if item.fix:
        lines += _fixed_lines(item, source, width, dim, reset)
    return "\n".join(lines)


def _elsewhere(item: Diagnostic, style: str, dim: str, reset: str) -> list[str]:
    """The places of a message in other files, each with the line that it is in."""
    lines: list[str] = []
    for label in item.labels:
        if label.source is None:
            continue
        mark = _mark(label.span, label.text, True, label.source)
        width = len(str(mark.line + 1))
        lines.append(f"{' ' * width}{dim}-->{reset} {label.source.name}:{mark.line + 1}:{mark.start + 1}")
        if label.source.text:
            lines += _excerpt([mark], label.source, width, style, dim, reset)
    return lines


def _help(text: str, bold: str, reset: str) -> list[str]:
    """Lines of help, broken between words; those after the first stand under its text."""
    first, *rest = [
        line
        for part in text.split("\n")
        for line in textwrap.wrap(part, WIDE - 6, break_long_words=False, break_on_hyphens=False) or [""]
    ]
    return [f"{bold}help:{reset} {first}", *(f"      {line}".rstrip() for line in rest)]


@dataclass(frozen=True, slots=True)
class _Mark:
    """An underlined piece of one line, in characters of that line."""

    line: int
    start: int
    end: int
    text: str
    main: bool


def _marks(item: Diagnostic, source: SourceText) -> list[_Mark]:
    marks = [_mark(item.span, item.label, True, source)]
    marks += [_mark(label.span, label.text, False, source) for label in item.labels if label.source is None]
    return sorted(marks, key=lambda mark: (mark.line, mark.start, not mark.main))


def _mark(span: Span, text: str, main: bool, source: SourceText) -> _Mark:
    line, start = source.position(span.start)
    end_line, end = source.position(max(span.start, span.end))
    if end_line != line:
        end = max(start + 1, len(source.line(line).rstrip()))
    return _Mark(line, start, max(end, start + 1), text, main)


def _excerpt(marks: list[_Mark], source: SourceText, width: int, style: str, dim: str, reset: str) -> list[str]:
    lines = [f"{' ' * width} {dim}|{reset}"]
    previous: int | None = None
    for number in sorted({mark.line for mark in marks}):
        if previous is not None and number > previous + 1:
            lines.append(f"{dim}...{reset}")
        here = [mark for mark in marks if mark.line == number]
        view = _View.of(source.line(number), here)
        lines.append(f"{dim}{number + 1:>{width}} |{reset} {view.text}".rstrip())
        lines += [f"{' ' * width} {dim}|{reset} {style}{row}{reset}" for row in _underlines(view, here)]
        previous = number
    return lines


@dataclass(frozen=True, slots=True)
class _View:
    """The part of a source line that is shown: control characters replaced, tabs widened, a window of a long line."""

    text: str
    columns: tuple[int, ...]

    @staticmethod
    def of(line: str, marks: list[_Mark]) -> _View:
        """The window around the marks, or where they are too far apart around the main one."""
        start, stop = _window(line, marks, PAGE.columns())
        shown = ["..."] if start else []
        column = 3 if start else 0
        columns = [column] * start
        for char in line[start:stop]:
            columns.append(column)
            cell, cells = _cell(char, column)
            shown.append(cell)
            column += cells
        if stop < len(line):
            shown.append("...")
        columns += [column] * (len(line) - stop + 1)
        return _View("".join(shown), tuple(columns))

    def column(self, position: int) -> int:
        """The display column of a character; beyond the line it goes on one column per character, up to one."""
        if position < len(self.columns):
            return self.columns[position]
        return self.columns[-1] + 1


def _window(line: str, marks: list[_Mark], most: int) -> tuple[int, int]:
    """The characters of a line that are shown: the first ones where the marks are among them, else those around the marks."""
    ends = _ends(line)
    if ends[-1] <= most:
        return 0, len(line)
    place = lambda position: ends[min(position, len(line))]  # noqa: E731
    focus = next((mark for mark in marks if mark.main), marks[0])
    low, high = place(min(mark.start for mark in marks)), place(max(mark.end for mark in marks))
    if high - low > most:
        low, high = place(focus.start), min(place(focus.end), place(focus.start) + most)
    begin = 0 if high <= most else min((low + high - most) // 2, ends[-1] - most)
    start = bisect_left(ends, begin)
    return start, max(start + 1, bisect_right(ends, ends[start] + most) - 1)


@lru_cache(8)
def _ends(line: str) -> tuple[int, ...]:
    """The columns before each character and behind the last one. Many messages stand in one long line."""
    return tuple(accumulate((_cell(char, 0)[1] for char in line), initial=0))


# a `#` right behind a name is none: `C#2` is a later version of `C`, in statements that a schedule makes
_COMMENT = re.compile(r"(?:(?<!\w)#|//)[^\n]*|/\*.*?\*/", re.DOTALL)


def shown_line(text: str) -> str:
    """A piece of a program as one line that a terminal may get: without comments, which would reach over what stands behind them,
    and without what controls the terminal or turns the direction around.
    """
    return shown_text(" ".join(_COMMENT.sub(" ", text).split()))


def shown_text(line: str) -> str:
    """A line as a terminal may get it: without what controls the terminal or turns the direction around."""
    return "".join(_cell(char, 0)[0] for char in line)


def _cell(char: str, column: int) -> tuple[str, int]:
    """What is printed for a character, and how many columns it takes."""
    if char == "\t":
        cells = _TAB - column % _TAB
        return " " * cells, cells
    category = unicodedata.category(char)
    if category in ("Mn", "Me"):
        return char, 0
    if category.startswith("C") or char in "\u2028\u2029":
        return "\ufffd", 1
    return char, 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _underlines(view: _View, marks: list[_Mark]) -> list[str]:
    """The row of `^` and `-`, with the last text beside it and the other texts below, from right to left."""
    row: list[str] = []
    for mark in sorted(marks, key=lambda mark: mark.main):
        start = view.column(mark.start)
        stop = max(start + 1, view.column(mark.end))
        row += [" "] * (stop - len(row))
        row[start:stop] = ("^" if mark.main else "-") * (stop - start)
    texts = sorted((mark for mark in marks if mark.text), key=lambda mark: mark.start)
    rows = ["".join(row)]
    if texts and view.column(texts[-1].start) >= len("".join(row).rstrip("^-")):
        rows[0] += " " + texts.pop().text
    while texts:
        last = texts.pop()
        rows.append(" " * view.column(last.start) + last.text)
    return rows


_LONGEST = 400
"""Characters of a line that a fix changes and that is shown, as wide as the page: many messages may stand in one long line."""
_MOST_LINES = 4
"""Lines that a fix changes and that are shown."""


def _fixed_lines(item: Diagnostic, source: SourceText, width: int, dim: str, reset: str) -> list[str]:
    """The changed lines after the fix, where they stay lines and are few of moderate length."""
    assert item.fix is not None
    if not item.fix.edits or not source.text:
        return []
    ends = [(source.position(edit.span.start)[0], source.position(edit.span.end)[0]) for edit in item.fix.edits]
    numbers = sorted({first for first, _ in ends})
    if any(first != last for first, last in ends) or len(numbers) > _MOST_LINES:
        return []
    shown: list[str] = []
    for number in numbers:
        edits = tuple(edit for edit, (first, _) in zip(item.fix.edits, ends, strict=True) if first == number)
        before = source.line(number)
        line = replace(item.fix, edits=edits).applied(before, source.line_starts[number])
        if "\n" in line or len(line) > _LONGEST or line == before:
            return []
        text = _View.of(line, [_Mark(number, *_changed(before, line), "", True)]).text
        shown.append(f"{dim}{number + 1:>{width}} |{reset} {text}".rstrip())
    return shown


def _changed(before: str, after: str) -> tuple[int, int]:
    """The part of a line that differs from what it was."""
    start = _alike(before, after)
    return start, len(after) - _alike(before[start:][::-1], after[start:][::-1])


def _alike(one: str, other: str) -> int:
    """The number of characters at the start that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
