"""Values from outside in messages: `repr` of an integer with thousands of digits is refused by Python, and nobody reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .diagnostic import SourceText, Span

_LONGEST = 60  # characters of a value: a number of every type fits


def shown_value(value: object) -> str:
    """What Python prints for a value, at most 60 characters: `3.5`, or `an integer of 16610 bits`."""
    if isinstance(value, int) and value.bit_length() > 3 * _LONGEST:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except ValueError:  # such an integer is inside
        return f"a `{type(value).__name__}`"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def shown_tensor(name: str, source: SourceText, span: Span) -> str:
    """What a tensor is called in the text: its name, or what is computed at its place if the text has no such name."""
    if re.search(rf"\b{re.escape(name)}\b(?! *\()", source.text):
        return f"`{name}`"
    text = " ".join(source.slice(span).split())
    if not text:
        return f"`{name}`"
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[: _LONGEST - 3]}...`"


def one_or_more(given: Any) -> tuple[Any, ...]:
    """What an option names, each once: a text, or what is no list at all, stands alone."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    found: list[Any] = []
    for each in given if several else (given,):
        if each not in found:
            found.append(each)
    return tuple(found)


def integers(pairs: Iterable[str]) -> dict[str, int]:
    """The values of `N=64` and the like.

    Raises:
        ValueError: something is written otherwise.
    """
    found: dict[str, int] = {}
    for pair in pairs:
        match = re.fullmatch(r"([^=]+)=(-?)0*([0-9]+)", pair)
        if match is None:
            raise ValueError(f"{pair!r}: expected NAME=INTEGER")
        found[match[1]] = int(match[2] + match[3][:30])  # Python reads no endless numbers
    return found


__all__ = ["integers", "one_or_more", "shown_tensor", "shown_value"]
