"""A statement as its fix makes it, so that one mistake hides no other.

The tokens that an edit writes stand where the tokens stood that it takes away, and what is said of them points there. What another
edit takes away is moved: when the statement is read, it stands where it stood.

Worked example: `Y(i) = X(i) <> (float)2`; after the message about `<>` there is a token `!=`, and the cast is told, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from tc_jupyter.diagnostics import Edit, Fix, SourceText

from .tokens import Token, tokenize


def mended(tokens: list[Token], *fixes: Fix) -> list[Token] | None:
    """The tokens after fixes; `None` where these change more than these tokens, or a part of one.

    Each mistake has a fix of its own: what one takes away does not stand in what another writes.
    Time is that of sorting tokens and edits: a fix may have thousands of edits, as that of `X[i][i]...` has.
    """
    if not tokens:
        return None
    starts, ends = [token.start for token in tokens], [token.end for token in tokens]
    elsewhere = _Taken(fixes, tokens, starts, ends)
    found, place = list[Token](), 0
    for number, edit in sorted(enumerate(edit for fix in fixes for edit in fix.edits), key=lambda each: each[1].span):
        start, end = edit.span.start, edit.span.end
        first = bisect_right(ends, start)
        last = max(first, bisect_left(starts, end))
        if start < starts[0] or end > ends[-1] or first < place:
            return None
        if any(token.start < start or token.end > end for token in tokens[first:last]):
            return None
        touches = first > 0 and ends[first - 1] == start
        joins = touches and (edit.text[:1] == "." or tokens[first - 1].text[-1:].isidentifier())
        written = _written(edit.text, joins)
        if written is None:
            return None
        # the statement that `along` belongs to stands before it, which the edit does not have
        made = [Token("ALONG" if text == "along" else kind, text, start, end) for kind, text in written]
        elsewhere.say_where(made, number)
        if last > first and made:
            made[0].first = tokens[first].first
        found += [*tokens[place:first], *made]
        place = last
    found += tokens[place:]
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


class _Taken:
    """The tokens that the edits of fixes take away, in the order of the edits."""

    def __init__(self, fixes: Iterable[Fix], tokens: list[Token], starts: list[int], ends: list[int]) -> None:
        self.tokens: list[Token] = []
        self.of_edit: list[tuple[range, range]] = []
        """The tokens of each edit, and those of its fix."""
        self.places: dict[str, list[int]] = {}
        for fix in fixes:
            begin, own = len(self.tokens), list[range]()
            for edit in fix.edits:
                first = len(self.tokens)
                self.tokens += tokens[bisect_left(starts, edit.span.start) : bisect_right(ends, edit.span.end)]
                own.append(range(first, len(self.tokens)))
            self.of_edit += [(each, range(begin, len(self.tokens))) for each in own]
        for place, token in enumerate(self.tokens):
            self.places.setdefault(token.text, []).append(place)

    def say_where(self, written: list[Token], edit: int) -> None:
        """Say of tokens, if they are those that other edits of the fix took away, in their order, where they stood."""
        own, fix = self.of_edit[edit]
        first = fix.start
        for token in written:
            places = self.places.get(token.text, [])
            i = bisect_left(places, first)
            if i < len(places) and places[i] in own:
                i = bisect_left(places, own.stop)
            if i < len(places) and places[i] in fix:
                token.stood, first = self.tokens[places[i]].stood or self.tokens[places[i]].span, places[i] + 1


@lru_cache(maxsize=1000)
def _written(text: str, touches: bool) -> tuple[tuple[str, str], ...] | None:
    """Types and texts of the tokens that an edit writes; `None` where a part of the text is no token.

    Args:
        touches: it stands right behind a word, or is `.0`, which is a dimension behind one.
    """
    name = "_" if touches else ""
    scanned = tokenize(SourceText(name + text))
    if scanned.diagnostics or scanned.comments or (name and scanned.tokens[0].text != name):
        return None
    return tuple((token.type, token.text) for token in scanned.tokens[len(name) :])
