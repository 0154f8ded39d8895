# ruff: noqa: E501  (an element of a picture is one line)
"""What a view is before any Jupyter: values of controls come in, HTML and data go out.

The same HTML is saved in the notebook and put into the live widget, whose script adds what pointer and keys do. HTML made here
is safe for the front end's allow-list: no script, no address, looks in style attributes, colours of the theme with fallbacks.

Worked example: `IterationSpace(f).content().html` is the static picture of the first statement of `f`.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, ClassVar

from tc_jupyter.diagnostics import CallError, CompileError
from tc_jupyter.function import Function
from tc_jupyter.notebook.card import FONT_SIZE, cell, term

LINE = "rgba(128,128,128,.45)"
MUTED = "opacity:.78"
# mixed with the colour of the text around: darker on a light page, lighter on a dark one, so always readable
GOOD, BAD, NOTE = (f"color-mix(in srgb,{tone} 55%,currentColor)" for tone in ("#2e8b57", "#dc4440", "#3a7fd0"))
ACCENT = "var(--jp-brand-color1,#1976d2)"
_CODE = (
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:.93em;"
    "background:none;color:inherit;border:0;padding:0"
)
CODE = f"{_CODE};white-space:inherit;overflow-wrap:break-word"
"""Of code inside a sentence or a cell of a table."""
LISTING = f"{_CODE};white-space:pre"
"""Of lines of code, which stay lines."""
_CELL = "padding:1px 1.1em 1px 0;text-align:left;border:0"


_GROUPS = {
    "sizes": "size rank fix",
    "axes": "statement x y swap z",
    "look": "colour arrows generated kind metric",
    "edit": "primitive stage axis other second factor thread apply",
    "history": "undo redo plain default",
    "playback": "time visit",
    "candidates": "use",
    "sweep": "sweep to steps",
    "measurement": "run cancel stop",
    "prediction": "predict guess give_up",
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names.split()}
"""Controls of one purpose stand together, by the part of their name before a colon."""


@dataclass(frozen=True, slots=True)
class Control:
    """One control above a picture.

    Attributes:
        name: key of its value.
        kind: `size` (slider with a number field), `choice`, `check`, `button` or `text`.
        value: the present value; for a button what is sent.
        options: for a choice, pairs of value and label.
        high: for a size, the right end of the slider; larger numbers can be typed.
    """

    name: str
    kind: str
    label: str
    value: Any = None
    options: tuple[tuple[Any, str], ...] = ()
    low: int = 0
    high: int = 32
    disabled: bool = False

    def state(self) -> dict[str, Any]:
        """JSON-ready, with the group that the control stands in."""
        return {**asdict(self), "group": _GROUP_OF.get(self.name.partition(":")[0], "")}


@dataclass(frozen=True, slots=True)
class Content:
    """One state of a view: static HTML, controls, data for the script, points as bytes, the same as text."""

    html: str
    controls: tuple[Control, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    points: bytes = b""
    text: str = ""

    def state(self) -> dict[str, Any]:
        """JSON-ready: everything but the points."""
        return {"html": self.html, "controls": [each.state() for each in self.controls], "data": dict(self.data)}


class Picture(ABC):
    """A view of a function.

    `apply` takes values of controls, whatever they are, and never raises for them: `problem` then says what is wrong.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, function: Function) -> None:
        self.function = function
        self.problem = ""

    @abstractmethod
    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Take new values of controls."""

    @abstractmethod
    def content(self, live: bool = False) -> Content:
        """The present state; `live`: with a kernel, so buttons make sense."""

    def ask(self, question: Mapping[str, Any]) -> Any:
        """Answer a question of the script that changes nothing (what a point touches)."""
        del question
        return None


# pieces of HTML ------------------------------------------------------------------------------------------------------------------


def code(text: str) -> str:
    """Text as code."""
    return f'<code style="{CODE}">{escape(text)}</code>'


def plain_table(head: Sequence[str], rows: Iterable[Sequence[str]], label: str) -> str:
    """A table of plain texts with little markup, for many rows."""
    cells = "".join(f'<th scope="col" style="white-space:nowrap">{escape(h)}</th>' for h in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
    return (
        f'<table aria-label="{escape(label)}" style="font-size:inherit;width:auto;border-collapse:separate;border-spacing:10px 0"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], label: str) -> str:
    """A table of cells that are HTML already; `label` is read aloud."""
    cells = "".join(
        f'<th scope="col" style="{_CELL};{MUTED};border-bottom:1px solid {LINE};white-space:nowrap">{term(h, True)}</th>'
        for h in head
    )
    body = "".join(f'<tr style="background:none">{"".join(cell(each, _CELL) for each in row)}</tr>' for row in rows)
    return (
        f'<table aria-label="{escape(label)}" style="border-collapse:collapse;border:0;margin:4px 0;font-size:inherit;'
        f'width:auto"><thead><tr style="background:none">{cells}</tr></thead><tbody>{body}</tbody></table>'
    )


def words(text: str, sign: str = "ℹ", colour: str = NOTE) -> str:
    """A sentence in place of a picture, or beside it."""
    return f'<div data-tc-words="" style="margin:4px 0"><span style="color:{colour}" aria-hidden="true">{sign}</span> {marked(text)}</div>'


def marked(text: str) -> str:
    """Text whose backticks mark code."""
    parts = text.split("`")
    return "".join(escape(part) if number % 2 == 0 else code(part) for number, part in enumerate(parts))


def action(values: Mapping[str, Any], label: str, live: bool, pressed: bool | None = None, key: str = "") -> str:
    """A button that sends values of controls; in a saved notebook only its label."""
    if not live:
        return f"<b>{escape(label)}</b>" if pressed else escape(label)
    state = "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
    sent = escape(json.dumps(dict(values)))
    return (
        f'<button type="button" data-action="{sent}" data-key="{escape(key or label)}"{state}>{escape(label)}</button>'
    )


def folded(title: str, inner: str, opened: bool = False) -> str:
    """A part that opens."""
    state = " open" if opened else ""
    return f'<details{state} data-fold="{escape(title)}" style="margin-top:4px"><summary style="cursor:pointer">{escape(title)}</summary>{inner}</details>'


def frame(title: str, inner: str, name: str) -> str:
    """The whole of a static view."""
    style = f"border:1px solid {LINE};border-radius:4px;padding:6px 12px 8px;margin:2px 0;max-width:100%;overflow-x:auto;line-height:1.45;{FONT_SIZE}"
    body = f'<div style="container-type:inline-size">{inner}</div>'
    return f'<div data-tc-view="{name}" style="{style}"><div><b>{escape(title)}</b></div>{body}</div>'


def one_line(problem: BaseException) -> str:
    """The message of a refusal, without the source lines around it."""
    match problem:
        case CallError():
            return problem.diagnostic.message
        case CompileError():
            return next((d.message for d in problem.diagnostics if d.is_error), str(problem))
        case _:
            return (str(problem.args[0]) if problem.args else type(problem).__name__).strip().split("\n")[0]


def as_integer(value: Any) -> int | None:
    """A whole number that a control may send, or `None`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, str) and len(value) < 100 and re.fullmatch(r"\s*[+-]?\d+\s*", value):
        return int(value)
    return None


def refused_number(what: str, lowest: int, highest: int, typed: object) -> str:
    """What is told about a number that was typed and is none, or too large or small."""
    said = f"`{str(typed)[:40]}`" if str(typed).strip() else "an empty field"
    return f"{what} is a whole number from {lowest} to {highest}; {said} changes nothing"
