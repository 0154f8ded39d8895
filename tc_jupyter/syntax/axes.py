"""Calls that combine elements, and the axis over which they do.

Worked example: `sum(X)` combines, `max(a, b)` does not, and `axis_of` reads `, axis=0` in `np.max(X, axis=0)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.diagnostics import Span

from .library_names import OPERATORS, reducing
from .recovery import split_commas
from .tokens import Token

_WORDS = ("axis", "dim")


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis that a call names: its number, and the place of the argument with the comma before it."""

    number: int
    place: Span


def combines(piece: list[Token], opening: int, closing: int) -> bool:
    """Whether brackets are those of a call that combines elements; that of `max(a, b)` compares two."""
    arguments = split_commas(piece[opening + 1 : closing])
    is_choice = len(arguments) > 1 and piece[opening - 1].type == "MINMAX" and not any(map(_is_named, arguments))
    return reducing(piece[opening - 1].text) in OPERATORS and not is_choice


def axis_of(piece: list[Token], opening: int, closing: int) -> Axis | None:
    """The axis of a call that combines over one: `axis=0`, `dim=-1`, or a number alone; `None` for something else."""
    arguments = split_commas(piece[opening + 1 : closing])
    if len(arguments) != 2 or not arguments[0] or not combines(piece, opening, closing):
        return None
    number = arguments[1][2:] if _is_named(arguments[1]) and arguments[1][0].text in _WORDS else arguments[1]
    kinds, text = [token.type for token in number], "".join(token.text for token in number)
    if kinds not in (["INTEGER"], ["MINUS", "INTEGER"]) or not text.removeprefix("-").isdigit():
        return None
    return Axis(int(text), Span(arguments[0][-1].end, piece[closing].start))


def _is_named(argument: list[Token]) -> bool:
    return [token.type for token in argument[:2]] == ["NAME", "ASSIGN"]
