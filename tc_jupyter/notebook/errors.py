"""Errors as a notebook shows them: messages, and the user's own lines; never the inside of this package.

Worked example: a call `conv(b, w)` with a false condition shows the line of the cell that called, then the message.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

from tc_jupyter.diagnostics import CallError, CompileError, Diagnostic, SourceText, render, users_frames
from tc_jupyter.diagnostics.uncaught import module_of

_HOOK = "_render_traceback_"
"""What IPython asks an exception for, instead of its traceback."""
_PLAIN = vars(CompileError)[_HOOK]
_COLOUR, _BOLD = re.compile("\x1b\\[1;3\\dm"), "\x1b[1m"


class CellError(CompileError):
    """A cell with mistakes; shown as its messages, without a Python traceback."""

    def __init__(
        self,
        diagnostics: tuple[Diagnostic, ...],
        source: SourceText,
        rendered: str,
        color: bool = False,
        on_red: bool = False,
    ) -> None:
        """`on_red`: the text will stand on red, as front ends show errors, where letters in a colour are hard to read."""
        super().__init__(diagnostics, source, rendered)
        self.color = color
        self.on_red = on_red

    def _render_traceback_(self) -> list[str]:
        return _messages(self, self.color, self.on_red)


def _messages(problem: CompileError, color: bool, on_red: bool) -> list[str]:
    text = render(problem.diagnostics, problem.source, color)
    return (_COLOUR.sub(_BOLD, text) if on_red else text).splitlines()


def colored(shell: Any) -> bool:
    """Whether this shell shows colours."""
    return str(getattr(shell, "colors", "nocolor")).lower() != "nocolor"


def on_red(shell: Any) -> bool:
    """Whether a front end shows the errors of this shell, which it does on red."""
    return getattr(shell, "kernel", None) is not None


def install(magics: Any) -> None:
    """Let failed calls show the frames of the user alone, refused schedules their message, if `magics.short_errors` holds."""
    shell = magics.shell

    def traceback_of(problem: Exception, found: TracebackType | None) -> list[str]:
        return list(shell.InteractiveTB.structured_traceback(type(problem), problem, found, tb_offset=0))

    def call(problem: CallError) -> list[str]:
        outer = _without_ipython(problem.__traceback__)
        kept = users_frames(outer) if magics.short_errors else outer
        return traceback_of(problem, kept or outer)

    def refused(problem: CompileError) -> list[str]:
        if not magics.short_errors:
            return traceback_of(problem, _without_ipython(problem.__traceback__))
        return _messages(problem, colored(shell), on_red(shell))

    setattr(CallError, _HOOK, call)
    setattr(CompileError, _HOOK, refused)


def remove() -> None:
    """Take `install` back."""
    if _HOOK in vars(CallError):
        delattr(CallError, _HOOK)
    setattr(CompileError, _HOOK, _PLAIN)


def _without_ipython(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of IPython that ran the cell."""
    while traceback is not None and traceback.tb_next is not None and module_of(traceback).startswith("IPython."):
        traceback = traceback.tb_next
    return traceback
