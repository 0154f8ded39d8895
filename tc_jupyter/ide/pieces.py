"""A text cut into its defs, so that a change of one def leaves the answers about the others as they are.

An answer about a def needs its own lines and those of the defs and constants that it mentions, nothing else (what it calls of other
files is among the functions that are known, and the lines that use files are blanks here); it is made for that text, kept, and
moved to the lines where the def stands now. Defs with one name, and those that call each other, are a piece together: what is said
about one of them is about the others, too.

Worked example: of `f`, `g` and `h` where `g` calls `f`, the piece of `g` is the text of `g` and then that of `f`. A line that is
put in front of all three changes no piece.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, cast

from tc_jupyter.diagnostics import SourceText, Span
from tc_jupyter.syntax.imperative.message import has_others
from tc_jupyter.syntax.macros import MACRO
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.tree import Name
from tc_jupyter.syntax.uses import without_uses

_HEADS = {
    "tc": re.compile(r"^[ \t]*(?:def|reduce)\b", re.MULTILINE),
    "sac": re.compile(
        rf"^[ \t]*(?:{'|'.join(sorted(BASES))})\b[^(){{}};=\n]*?(?P<function>[^\W\d]\w*)[ \t]*\([^;{{}}]*\)\s*\{{",
        re.MULTILINE,
    ),
}
"""Where a def begins."""
_NAMED = {
    "tc": re.compile(r"\b(?:def|reduce)\b\s*(?P<function>\w+)|\bconst\b[^={}]*?(?P<constant>\w+)(?=\s*=)"),
    "sac": _HEADS["sac"],
}
"""What a text defines."""
_HEAD_END = re.compile(r"[{}=]|\Z")
_COMMENTS = {"tc": re.compile(r"#[^\n]*"), "sac": re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Defined:
    """What a text defines.

    Attributes:
        kind: `def`, or `tensor` or `scalar` of a constant.
        place: the name.
        head: what is written before the body or the value.
    """

    name: str
    kind: str
    place: Span
    head: str


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A def with what stands behind it up to the next one; or what stands before all of them.

    Attributes:
        place: its lines.
        words: all that it mentions.
        defined: what is defined there.
        is_for_all: whether it has what others use and `defined` does not have: in `%%sac` a type, or a function with the name of an
            operator.
        needed: the numbers of the chunks that it mentions, directly or through others, its own first.
        group: the numbers of the chunks that belong together with it: those that mention each other, as those with one name do; and
            what stands before all defs is with the first one.
    """

    place: Span
    words: frozenset[str]
    defined: tuple[Defined, ...]
    is_for_all: bool = False
    needed: tuple[int, ...] = ()
    group: tuple[int, ...] = ()

    @property
    def has_def(self) -> bool:
        """Whether a def with a name is there."""
        return any(one.kind == "def" for one in self.defined)


@dataclass(frozen=True, slots=True)
class Piece:
    """Defs that belong together, mostly a single one, and what they mention.

    Attributes:
        called: the names of what they mention, directly or through others.
        text: the lines of the defs, then those of what they mention, directly or through others.
        starts: for each of these chunks the line of `text` where it begins, and its line in the whole text.
        own: how many lines of `text` are the defs themselves.
    """

    called: frozenset[str]
    text: str
    starts: tuple[tuple[int, int], ...]
    own: int

    def line(self, line: int) -> int:
        """The line of the whole text that a line of `text` is."""
        begins, there = self.starts[bisect_right(self.starts, (line, 1 << 62)) - 1]
        return there + line - begins

    def moved(self, data: dict[str, Any]) -> dict[str, Any]:
        """Plain data about `text` with the lines of the whole text."""
        return _moved(data, self.line)

    def is_own(self, data: dict[str, Any]) -> bool:
        """Whether plain data about `text` with a `span` is about the defs themselves."""
        return data["span"]["start"]["line"] < self.own


_KEPT = 16
"""Texts whose pieces are kept: an editor asks a dozen questions about each state of a text."""


@lru_cache(maxsize=_KEPT)
def pieces_of(text: str, language: str) -> tuple[Piece, ...] | None:
    """The pieces of a text, in its order; `None` where it is not cut: it is no list of two or more defs."""
    chunks = _chunks(text, language)
    if sum(each.has_def for each in chunks) < 2 or any(each.is_for_all for each in chunks):
        return None
    if language == "tc" and (MACRO.search(text) or has_others(text)):
        return None  # a comment that is meant for all defs, or a function that is cut otherwise
    text = without_uses(text, language)
    return tuple(_piece(text, chunks, group) for group in dict.fromkeys(each.group for each in chunks))


def piece_of(text: str) -> Piece:
    """A whole text as one piece."""
    return Piece(frozenset(), text, ((0, 0),), text.count("\n") + 1)


def focus(text: str, language: str, line: int) -> str:
    """The text with blanks in place of all that the def at `line` neither is nor mentions, directly or through others.

    Offsets, lines and characters stay what they are.
    """
    chunks = _chunks(text, language)
    starts = SourceText(text).line_starts
    here = starts[min(max(line, 0), len(starts) - 1)]
    current = bisect_right(chunks, here, key=lambda each: each.place.start) - 1
    if current < 0:
        end = text.find("\n", here)
        return _blanked(text, [(here, len(text) if end < 0 else end)])
    kept = {number for each in chunks[current].group for number in chunks[each].needed}
    return _blanked(text, sorted((chunks[each].place.start, chunks[each].place.end) for each in kept))


def _blanked(text: str, shown: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    position = 0
    for start, end in [*shown, (len(text), len(text))]:
        parts.append(blanked(text[position:start]))
        parts.append(text[start:end])
        position = end
    return "".join(parts)


_NOT_A_LINE_END = re.compile(r"[^\n]+")


def blanked(text: str) -> str:
    """Blanks in place of a text, line by line."""
    return _NOT_A_LINE_END.sub(lambda found: " " * len(found[0]), text)


def defined_in(text: str, language: str) -> list[Defined]:
    """The defs and constants of a text, in its order."""
    return [one for each in _chunks(text, language) for one in each.defined]


def places_of(text: str, language: str) -> dict[str, int]:
    """The order of the defs of a text, by name; those that stand inside of one another have the same number."""
    found = dict[str, int]()
    for number, each in enumerate(_chunks(text, language)):
        for one in each.defined:
            if one.kind == "def":
                found.setdefault(one.name, number)
    return found


@lru_cache(maxsize=_KEPT)
def _chunks(text: str, language: str) -> tuple[_Chunk, ...]:
    bare = _bare(text, language)
    starts = _outer_starts(bare, language)
    if not starts or bare[: starts[0]].strip():
        starts = [0, *starts]
    chunks = [_chunk(bare, Span(*ends), language) for ends in pairwise([*starts, len(bare)])]
    by_name: dict[str, list[int]] = {}
    for number, chunk in enumerate(chunks):
        for one in chunk.defined:
            by_name.setdefault(one.name, []).append(number)
    for_all = {number for number, chunk in enumerate(chunks) if chunk.is_for_all}
    mentioned = [sorted(for_all.union(*(by_name[word] for word in chunk.words & by_name.keys()))) for chunk in chunks]
    needed = [_closure(number, mentioned) for number in range(len(chunks))]
    groups = _groups(needed, not chunks[0].has_def)
    return tuple(replace(each, needed=n, group=g) for each, n, g in zip(chunks, needed, groups, strict=True))


def _outer_starts(bare: str, language: str) -> list[int]:
    """Where defs begin that stand in the braces of no other one."""
    starts = [head.start() for head in _HEADS[language].finditer(bare)]
    braces = list(_BRACE.finditer(bare))
    ends, opened = dict[int, int](), list[int]()  # the place of the `}` of each `{`
    for brace in braces:
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            ends[opened.pop()] = brace.start()
    places = [brace.start() for brace in braces]
    found, end = list[int](), 0
    for start, following in pairwise([*starts, len(bare)]):
        if start >= end:
            found.append(start)
        first = bisect_left(places, start)
        if first < len(places) and places[first] < following:
            end = max(end, ends.get(places[first], 0))
    return found


def _chunk(bare: str, place: Span, language: str) -> _Chunk:
    defined: list[Defined] = []
    for found in _NAMED[language].finditer(bare, place.start, place.end):
        kind = next(kind for kind, name in found.groupdict().items() if name is not None)
        inside = bare.count("{", place.start, found.start()) > bare.count("}", place.start, found.start())
        if kind == "constant" and inside:  # of the def alone
            continue
        end = next(_HEAD_END.finditer(bare, found.end(kind), place.end)).start()
        head = " ".join(bare[found.start() : end].split())
        shown = "def" if kind == "function" else "tensor" if "(" in head else "scalar"
        defined.append(Defined(found[kind], shown, Span(*found.span(kind)), head))
    is_for_all = language == "sac" and (not defined or _has_more(bare, place))
    words = _WORD.findall(bare, place.start, place.end)
    return _Chunk(place, frozenset(words), tuple(defined), is_for_all)


def _closure(first: int, mentioned: list[list[int]]) -> tuple[int, ...]:
    """A number and all that it leads to, the nearest first."""
    found, todo = {first: None}, [first]
    for number in todo:
        new = [each for each in mentioned[number] if each not in found]
        found |= dict.fromkeys(new)
        todo += new
    return tuple(found)


def _groups(needed: list[tuple[int, ...]], has_start: bool) -> list[tuple[int, ...]]:
    """Of each chunk, the chunks that belong together with it."""
    sets = list(map(frozenset, needed))
    first = [min(each for each in sets[number] if number in sets[each]) for number in range(len(needed))]
    if has_start and len(first) > 1:
        first = [0 if each == first[1] else each for each in first]
    groups: dict[int, tuple[int, ...]] = {}
    for number, each in enumerate(first):
        groups[each] = (*groups.get(each, ()), number)
    return [groups[each] for each in first]


def _piece(text: str, chunks: tuple[_Chunk, ...], own: tuple[int, ...]) -> Piece:
    needed = dict.fromkeys(each for number in own for each in chunks[number].needed)
    order = [*own, *(each for each in needed if each not in own)]
    texts = [text[chunks[each].place.start : chunks[each].place.end].rstrip("\n") + "\n" for each in order]
    begins = list(accumulate((part.count("\n") for part in texts), initial=0))
    lines = (text.count("\n", 0, chunks[each].place.start) for each in order)
    called = frozenset(one.name for each in order[len(own) :] for one in chunks[each].defined)
    return Piece(called, "".join(texts), tuple(zip(begins, lines, strict=False)), begins[len(own)])


def _bare(text: str, language: str) -> str:
    """The text with blanks in place of comments and of the lines that use files."""
    return _COMMENTS[language].sub(lambda found: blanked(found[0]), without_uses(text, language))


def _has_more(bare: str, place: Span) -> bool:
    """Whether something stands behind the body of a function."""
    depth = 0
    for brace in _BRACE.finditer(bare, place.start, place.end):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return bool(bare[brace.end() : place.end].strip())
    return False


_BRACE = re.compile(r"[{}]")


def defs_of(text: str, language: str) -> list[tuple[Name, Span]] | None:
    """The name of each def and its place up to the last brace; `None` where a text has more, or two defs with one name."""
    pieces, chunks = pieces_of(text, language), _chunks(text, language)
    defined = [each.defined[0] for each in chunks if each.defined]
    single = len({one.name for one in defined}) == len(chunks) and all(
        [one.kind for one in each.defined] == ["def"] for each in chunks
    )
    if pieces is None or not single:
        return None
    bare = _bare(text, language)
    ends = [bare.rfind("}", 0, each.place.end) + 1 for each in chunks]
    return [
        (Name(one.name, one.place), Span(each.place.start, end))
        for one, each, end in zip(defined, chunks, ends, strict=True)
    ]


def chunks_of(text: str, language: str) -> list[str]:
    """The text in parts of one def each, with the comments before it and on its last line; the last part has all that follows."""
    lines = [text.find("\n", span.end) for _, span in defs_of(text, language) or ()][:-1]
    return [text[a:b] for a, b in pairwise([0, *lines, len(text)])]


def _moved(data: Any, line: Callable[[int], int]) -> Any:
    if isinstance(data, dict):
        pairs = cast("dict[str, Any]", data).items()
        return {key: line(value) if key == "line" else _moved(value, line) for key, value in pairs}
    return [_moved(value, line) for value in cast("list[Any]", data)] if isinstance(data, list) else data
