"""What a name of the notebook is: which compiled function a cell calls by it, or why none.

Worked example: after a cell that defines `f`, and `f = len`, a cell that calls `f` is told that it is a Python function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from tc_jupyter.diagnostics import Diagnostic, SourceText, codes
from tc_jupyter.function import Function


def known_functions(namespace: Mapping[str, Any]) -> dict[str, Function]:
    """What a cell may call: the functions of the notebook by the names that they have there.

    A name that Python has not, as `2fc`, is that of the function which the notebook has under the name that it was given for it.
    """
    found = {name: value for name, value in namespace.items() if isinstance(value, Function)}
    return {value.written_name: value for name, value in found.items() if name == value.__name__} | found


def with_meanings(
    messages: Iterable[Diagnostic], source: SourceText, namespace: Mapping[str, Any], cells: Mapping[str, int]
) -> tuple[Diagnostic, ...]:
    """The messages, with what an unknown name is in the notebook as the help.

    Args:
        cells: the number of the cell that defined a name last.
    """
    return tuple(_with_meaning(each, source, namespace, cells) for each in messages)


def _with_meaning(
    message: Diagnostic, source: SourceText, namespace: Mapping[str, Any], cells: Mapping[str, int]
) -> Diagnostic:
    name = source.slice(message.span)
    if message.code is not codes.UNKNOWN_NAME or message.fix is not None:
        return message
    now = f"`{name}` is {_kind(namespace[name])} here" if name in namespace else f"the name `{name}` was deleted"
    if name in cells:
        replaced = "and no longer the def" if name in namespace else "which was the def"
        return replace(message, help=f"{now}, {replaced} of cell {cells[name]}: run that cell again")
    return replace(message, help=f"{now}, and a def calls defs only") if name in namespace else message


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "a Python module"
    if isinstance(value, type):
        return "a Python class"
    return "a Python function" if callable(value) else f"a value of type `{type(value).__name__}`"


__all__ = ["known_functions", "with_meanings"]
