"""What an unknown name of a text is in Python, where it is no function that the text may call.

Worked example: with `known={"g": len}` a def that calls `g` is told that `g` is a Python function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from tc_jupyter.diagnostics import Diagnostic, SourceText, codes
from tc_jupyter.syntax import library_names


def with_meanings(
    messages: Iterable[Diagnostic],
    source: SourceText,
    namespace: Mapping[str, Any],
    cells: Mapping[str, int] | None = None,
    above: Collection[str] = (),
) -> tuple[Diagnostic, ...]:
    """The messages, with what an unknown name is in the notebook as the help.

    Args:
        cells: the number of the cell that defined a name last.
        above: names that cells above define, whether they were run or not.
    """
    return tuple(_with_meaning(each, source, namespace, cells or {}, above) for each in messages)


def _with_meaning(
    message: Diagnostic,
    source: SourceText,
    namespace: Mapping[str, Any],
    cells: Mapping[str, int],
    above: Collection[str],
) -> Diagnostic:
    name = source.slice(message.span)
    is_exact = name in cells or name in above or (callable(namespace.get(name)) and not library_names.is_known(name))
    if message.code is not codes.UNKNOWN_NAME or (message.fix is not None and not is_exact):
        return message  # what the fix writes is nearer than what a value of the notebook has as its name by chance
    now = f"`{name}` is {_kind(namespace[name])} here" if name in namespace else f"the name `{name}` was deleted"
    if name in cells:
        replaced = "and no longer the def" if name in namespace else "which was the def"
        return replace(message, fix=None, help=f"{now}, {replaced} of cell {cells[name]}: run that cell again")
    if name not in namespace:
        return message
    cure = ": run the cell above that defines it" if name in above else ", and a def calls defs only"
    return replace(message, fix=None, help=now + cure)


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "a Python module"
    if isinstance(value, type):
        return "a Python class"
    return "a Python function" if callable(value) else f"a value of type `{type(value).__name__}`"
