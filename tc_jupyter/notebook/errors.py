"""Errors as a notebook shows them: messages, and the user's own lines; never the inside of this package.

Worked example: a call `conv(b, w)` with a false condition shows the line of the cell that called, then the message.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tc_jupyter.diagnostics import CallError, CompileError, Diagnostic, SourceText, render

_HOOK = "_render_traceback_"
"""What IPython asks an exception for, instead of its traceback."""
_RED, _BOLD = "\x1b[1;31m", "\x1b[1m"


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
        """`on_red`: the text will stand on red, as front ends show errors, where red letters are hard to read."""
        super().__init__(diagnostics, source, rendered)
        self.color = color
        self.on_red = on_red

    def _render_traceback_(self) -> list[str]:
        text = render(self.diagnostics, self.source, self.color)
        return (text.replace(_RED, _BOLD) if self.on_red else text).splitlines()


def colored(shell: Any) -> bool:
    """Whether this shell shows colours."""
    return str(getattr(shell, "colors", "nocolor")).lower() != "nocolor"


def install(magics: Any) -> None:
    """Let failed calls show the frames of the user alone, as long as `magics.short_errors` holds."""

    def shown(problem: CallError) -> list[str]:
        outer = _without_ipython(problem.__traceback__)
        kept = _users_frames(outer) if magics.short_errors else outer
        made = magics.shell.InteractiveTB.structured_traceback(type(problem), problem, kept or outer, tb_offset=0)
        return list(made)

    setattr(CallError, _HOOK, shown)


def remove() -> None:
    """Take `install` back."""
    if _HOOK in vars(CallError):
        delattr(CallError, _HOOK)


def _module(traceback: TracebackType) -> str:
    return str(traceback.tb_frame.f_globals.get("__name__", ""))


def _without_ipython(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of IPython that ran the cell."""
    while traceback is not None and traceback.tb_next is not None and _module(traceback).startswith("IPython."):
        traceback = traceback.tb_next
    return traceback


def _users_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The frames before the first one of this package; `None` if there are none."""
    if traceback is None or _module(traceback).split(".")[0] == __name__.split(".")[0]:
        return None
    rest = _users_frames(traceback.tb_next)
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
