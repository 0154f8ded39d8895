"""What `help(s.split)` says: the docstring of the primitive, told of a schedule, with the arguments that all primitives have.

Worked example: the `Args` of `Schedule.fuse` are those of `primitives.fuse` behind `stage`, which is told here once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from . import primitives

Method = TypeVar("Method", bound=Callable[..., Any])

COMMON = {
    "stage": 'name of a stage, one of `s.stages`: `"C"`, or `"C#2"` for the second statement on `C`.',
    "axis": 'name of one of its loops, one of `s.leaves("C")`.',
    "axes": "names of its loops, one after the other.",
}
"""Arguments that mean the same everywhere; a primitive that says more of one says it in its own `Args`."""

_RETURNS = "Returns:\n    The new schedule; this one stays as it is."
_SECTION = re.compile(r"^(?:Args|Returns|Raises|Source):", re.MULTILINE)


def documented(method: Method) -> Method:
    """Give a method of `Schedule` the documentation of the primitive of its name."""
    said = inspect.getdoc(getattr(primitives, method.__name__)) or ""
    said = said.replace("The new graph and the name of", "The new schedule, which has")
    said = _with_arguments(said, [name for name in inspect.signature(method).parameters if name in COMMON])
    if "stage" in inspect.signature(method).parameters and "TC411" not in said:
        said = said.replace("CompileError: ", "CompileError: TC411 (no such stage), ", 1)
    method.__doc__ = said if "\nReturns:" in said else _before(said, ("Raises", "Source"), _RETURNS)
    return method


def _with_arguments(said: str, names: list[str]) -> str:
    """The docstring with those of some arguments that it does not tell itself, in front of the others."""
    told = "".join(f"\n    {name}: {COMMON[name]}" for name in names if f"\n    {name}: " not in said)
    if "\nArgs:" in said:
        return said.replace("\nArgs:", f"\nArgs:{told}", 1)
    return _before(said, ("Returns", "Raises", "Source"), f"Args:{told}") if told else said


def _before(said: str, titles: tuple[str, ...], section: str) -> str:
    """The docstring with one more section in front of the first of some others."""
    place = next((each.start() for each in _SECTION.finditer(said) if each[0][:-1] in titles), None)
    return f"{said}\n\n{section}" if place is None else f"{said[:place]}{section}\n\n{said[place:]}"
