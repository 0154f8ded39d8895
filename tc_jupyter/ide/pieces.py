"""A text cut into its defs, so that a change of one def leaves the answers about the others as they are.

An answer about a def needs its own lines and those of the defs that it calls, nothing else (what it calls of other files is among
the functions that are known, and the lines that use files are blanks here); it is made for that text, kept, and
moved to the lines where the def stands now.

Worked example: of `f`, `g` and `h` where `g` calls `f`, the piece of `g` is the text of `g` and then that of `f`. A line that is
put in front of all three changes no piece.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, cast

from tc_jupyter.diagnostics import Span
from tc_jupyter.syntax.tree import Name
from tc_jupyter.syntax.uses import without_uses

from .cell import SAC_HEAD, Json, blanked

_HEADS = {"tc": re.compile(r"^[ \t]*(?:def|reduce)\b[ \t]*(\w+)", re.MULTILINE), "sac": SAC_HEAD}
_COMMENTS = {"tc": re.compile(r"#[^\n]*"), "sac": re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)}
_DEF = re.compile(r"\b(?:def|reduce)\b")
_WORD = re.compile(r"[^\W\d]\w*|\d\w*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A def and what it calls.

    Attributes:
        called: the names of the defs that it calls, directly or through others.
        text: the lines of the def, then those of the defs that it calls, directly or through others.
        starts: for each of these defs the line of `text` where it begins, and its line in the whole text.
        own: how many lines of `text` are the def itself.
    """

    called: tuple[str, ...]
    text: str
    starts: tuple[tuple[int, int], ...]
    own: int

    def line(self, line: int) -> int:
        """The line of the whole text that a line of `text` is."""
        begins, there = self.starts[bisect_right(self.starts, (line, 1 << 62)) - 1]
        return there + line - begins

    def moved(self, data: Json) -> Json:
        """Plain data about `text` with the lines of the whole text."""
        return _moved(data, self.line)


def pieces_of(text: str, language: str) -> tuple[Piece, ...] | None:
    """The pieces of a text, in its order; `None` where it is not cut: it is no list of two or more defs with different names."""
    bare = _bare(text, language)
    heads = list(_HEADS[language].finditer(bare))
    names = [head.group(1) for head in heads]
    if len(heads) < 2 or len(set(names)) < len(names) or bare[: heads[0].start()].strip():
        return None
    ends = list(pairwise([*(head.start() for head in heads), len(text)]))
    if len(_DEF.findall(bare)) != len(heads) if language == "tc" else any(_has_more(bare, *each) for each in ends):
        return None
    text = without_uses(text, language)
    parts = {name: text[start:end].rstrip("\n") + "\n" for name, (start, end) in zip(names, ends, strict=True)}
    words = {name: dict.fromkeys(_WORD.findall(part)) for name, part in parts.items()}
    calls = {name: [word for word in found if word in parts and word != name] for name, found in words.items()}
    lines = dict(zip(names, (text.count("\n", 0, start) for start, _ in ends), strict=True))
    found = [_piece(name, parts, calls, lines) for name in names]
    whole = tuple(piece for piece in found if piece is not None)
    return whole if len(whole) == len(found) else None


def _bare(text: str, language: str) -> str:
    """The text with blanks in place of comments and of the lines that use files."""
    return _COMMENTS[language].sub(lambda found: blanked(found[0]), without_uses(text, language))


def _has_more(bare: str, start: int, end: int) -> bool:
    """Whether something stands behind the body of a function of `%%sac`: a type, or a function with the name of an operator."""
    depth = 0
    for brace in _BRACE.finditer(bare, start, end):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return bool(bare[brace.end() : end].strip())
    return False


_BRACE = re.compile(r"[{}]")


def defs_of(text: str, language: str) -> list[tuple[Name, Span]] | None:
    """The name of each def and its place up to the last brace, of a text that is cut; `None` of another one."""
    if pieces_of(text, language) is None:
        return None
    bare = _bare(text, language)
    heads = list(_HEADS[language].finditer(bare))
    ends = [bare.rfind("}", 0, start) + 1 for start in (*(head.start() for head in heads[1:]), len(text))]
    return [
        (Name(head[1], Span(*head.span(1))), Span(head.start(), end)) for head, end in zip(heads, ends, strict=True)
    ]


def chunks_of(text: str, language: str) -> list[str]:
    """The text in parts of one def each, with the comments before it and on its last line; the last part has all that follows."""
    lines = [text.find("\n", span.end) for _, span in defs_of(text, language) or ()][:-1]
    return [text[a:b] for a, b in pairwise([0, *lines, len(text)])]


def _piece(name: str, parts: dict[str, str], calls: dict[str, list[str]], lines: dict[str, int]) -> Piece | None:
    """The piece of a def; `None` where it calls itself, through others or not."""
    needed, todo = [name], list(calls[name])
    while todo:
        other = todo.pop(0)
        if other == name:
            return None
        if other not in needed:
            needed.append(other)
            todo += calls[other]
    begins = accumulate((parts[each].count("\n") for each in needed), initial=0)
    starts = tuple((begin, lines[each]) for begin, each in zip(begins, needed, strict=False))
    return Piece(tuple(needed[1:]), "".join(parts[each] for each in needed), starts, parts[name].count("\n"))


def _moved(data: Any, line: Callable[[int], int]) -> Any:
    if isinstance(data, dict):
        pairs = cast("dict[str, Any]", data).items()
        return {key: line(value) if key == "line" else _moved(value, line) for key, value in pairs}
    return [_moved(value, line) for value in cast("list[Any]", data)] if isinstance(data, list) else data
