"""Mistakes that nobody catches, as plain Python shows them: the user's own lines, then the messages, no frame of this package.

Worked example: a script whose line 3 is `s.split("C", "i", 0)` ends with that line and `error[TC405] bad-factor: ...`.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

from .diagnostic import CompileError

Hook: TypeAlias = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def users_frames(found: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback before the first one of this package; `None` if there are none."""
    if found is None or module_of(found).split(".")[0] == __name__.split(".")[0]:
        return None
    rest = users_frames(found.tb_next)
    return TracebackType(rest, found.tb_frame, found.tb_lasti, found.tb_lineno)


def module_of(found: TracebackType) -> str:
    return str(found.tb_frame.f_globals.get("__name__", ""))


def hook(before: Hook) -> Hook:
    """A `sys.excepthook` that shows a `CompileError` so, and leaves everything else to the one before."""

    def shown(kind: type[BaseException], problem: BaseException, found: TracebackType | None) -> None:
        if isinstance(problem, CompileError):
            lines = traceback.format_tb(users_frames(found))
            print("".join([*lines, str(problem)]), file=sys.stderr)
        else:
            before(kind, problem, found)

    return shown


__all__ = ["hook", "users_frames"]
