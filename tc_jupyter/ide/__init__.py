"""Answers about a text as plain data, for editors: what the front end shows, and what any other editor could show.

Comes in: the text of a cell, a position, functions of other cells. Goes out: JSON-ready data, as `labextension/PROTOCOL.md` names
it; `line` counts from 0 and `character` in Unicode code points. Nothing here knows Jupyter, starts a GPU, prints, or raises for a
mistake in a text, and every function may run on several threads at once.

Worked example: `hover("def f(float(N) X) -> (Y) { Y(i) = X(i) }", {"line": 0, "character": 28})["title"]` is `"0 <= i < N"`.
"""

from .check import check, keywords, messages, prepare
from .complete import complete, signature
from .files import Files, look
from .hover import hover
from .inspect import UnknownForm, defines, exports, inspect
from .layout import format_text
from .outline import KINDS, colours, hints, references, symbols
from .refactor import definition, find_def, rename

__all__ = [
    "KINDS",
    "Files",
    "UnknownForm",
    "check",
    "colours",
    "complete",
    "defines",
    "definition",
    "exports",
    "find_def",
    "format_text",
    "hints",
    "hover",
    "inspect",
    "keywords",
    "look",
    "messages",
    "prepare",
    "references",
    "rename",
    "signature",
    "symbols",
]
