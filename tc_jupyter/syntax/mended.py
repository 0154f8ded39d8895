"""A statement as its fix makes it, so that one mistake hides no other.

The tokens that an edit writes stand where the tokens stood that it takes away, and what is said of them points there. What another
edit takes away is moved: when the statement is read, it stands where it stood.

Worked example: `Y(i) = X(i) <> (float)2`; after the message about `<>` there is a token `!=`, and the cast is told, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tc_jupyter.diagnostics import Edit, Fix, SourceText

from .tokens import Token, tokenize


def mended(tokens: list[Token], fix: Fix) -> list[Token] | None:
    """The tokens after a fix; `None` where it changes more than these tokens, or a part of one."""
    found = tokens
    for edit in sorted(fix.edits, key=lambda edit: edit.span, reverse=True):
        taken = [token for other in fix.edits if other is not edit for token in _inside(tokens, other)]
        after = _edited(found, edit, taken)
        if after is None:
            return None
        found = after
    return found if found and found != tokens else None


def in_place(tokens: list[Token]) -> list[Token]:
    """The tokens with those that fixes moved where they stood; no other fix applies to them."""
    return [
        token if token.stood is None else replace(token, start=token.stood.start, end=token.stood.end)
        for token in tokens
    ]


def writes_over(fix: Fix, written: Iterable[Edit]) -> bool:
    """Whether a fix changes, or stands beside, what other edits write, where the places of single words are not known."""
    return any(
        max(edit.span.start, other.span.start) < min(edit.span.end, other.span.end)
        or (len(other.text.split()) > 1 and other.span.start <= edit.span.start <= edit.span.end <= other.span.end)
        for other in written
        for edit in fix.edits
    )


def _inside(tokens: list[Token], edit: Edit) -> list[Token]:
    return [token for token in tokens if edit.span.start <= token.start and token.end <= edit.span.end]


def _say_where(written: list[Token], taken: list[Token]) -> None:
    """Say of tokens, if they are those that were taken elsewhere, in their order, where they stood."""
    first = 0
    for token in written:
        found = next((i for i in range(first, len(taken)) if taken[i].text == token.text), None)
        if found is not None:
            token.stood, first = taken[found].stood or taken[found].span, found + 1


def _edited(tokens: list[Token], edit: Edit, elsewhere: list[Token]) -> list[Token] | None:
    start, end = edit.span.start, edit.span.end
    if not tokens or start < tokens[0].start or end > tokens[-1].end:
        return None
    before = [token for token in tokens if token.end <= start]
    after = [token for token in tokens if token.start >= end and token.end > start]
    taken = tokens[len(before) : len(tokens) - len(after)]
    if any(token.start < start or token.end > end for token in taken):
        return None
    name = "_" if before and before[-1].end == start else ""  # behind which `.0` is a dimension
    scanned = tokenize(SourceText(name + edit.text))
    written = scanned.tokens[len(name) :]
    if scanned.diagnostics or scanned.comments or (name and scanned.tokens[0].text != name):
        return None
    for token in written:
        token.start, token.end, token.first = start, end, False
        if token.text == "along":  # its statement stands before it, which the edit does not have
            token.type = "ALONG"
    _say_where(written, elsewhere)
    if taken and written:
        written[0].first = taken[0].first
    return [*before, *written, *after]
