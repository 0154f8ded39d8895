"""What is said of functions of other languages in a text.

Worked example: of a kernel of CUDA there is one message, whose fix writes the def that computes the same; for the rest of the cell
blanks stand in its place.
"""

from __future__ import annotations

import re

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes

from .of_c import Macros, functions_of_c
from .of_python import functions_of_python
from .parser import MOST, Beyond
from .translate import translated

_HELP = "an index runs over what a loop or the threads count, and a statement says what one element is"
_NO_DEF = "this is a function of {}, not a def"
_TYPES = (
    "void|float|double|int|unsigned|long|short|char|bool|half|size_t|static|inline|const|__global__|__device__|__host__"
)
_C = re.compile(
    rf"^[ \t]*(?:extern\s*\"C\"\s*)?(?P<first>(?:{_TYPES}|\w+_t)\b|def\b(?=[^(\n]*\([^()]*[*\[]))[\w \t*]*\([^()]*\)\s*\{{",
    re.MULTILINE,
)
_BEFORE_C = re.compile(r"[ \t]*(?:#[ \t]*(?:include|define|pragma)\b|//|extern\s*\"C\"|template\s*<|$)")
_PYTHON = re.compile(
    r"^def[ \t]+\w+[ \t]*\((?P<parameters>[^()]*)\)[ \t]*(?:->[^\n:]*)?:[^\n]*(?P<body>(?:\n[ \t]+[^\n]*|\n(?=\n))*)",
    re.MULTILINE,
)
_BEFORE_PYTHON = re.compile(r"(?:from|import)[ \t]|@|[ \t]*$")
_PLAIN = re.compile(r"\s*(?:(?:\*{0,2}\w+|[*/])\s*(?::(?:\[[^\]]*\]|[^,=\[])*)?(?:=[^,]*)?(?:,\s*|$))*")
_COMPILED = re.compile(r"@[\w.]*(?:jit|vectorize)\b")
_MIXED = re.compile(r"->[ \t]*\(|^[ \t]*\w+[ \t]*\([^()]*\)[ \t]*[-+*/]?=(?!=)", re.MULTILINE)  # halfway to a def
_LOOP = re.compile(r"^[ \t]+(?:for|while)\b", re.MULTILINE)


def of_other_languages(text: str) -> tuple[str, tuple[Diagnostic, ...]]:
    """The text with blanks in the place of functions of C, CUDA, Python and Numba, and the messages about these."""
    if len(text) > MOST:
        return text, ()
    found = list[Diagnostic]()
    for told, place in (*_told_of_c(text), *_told_of_python(text)):
        found += [told] if told is not None else []
        text = text[: place.start] + re.sub(r"[^\n]", " ", text[place.start : place.end]) + text[place.end :]
    return text, tuple(found)


def has_others(text: str) -> bool:
    """Whether a text has such functions."""
    return bool(of_other_languages(text)[1])


def _told_of_c(text: str) -> list[tuple[Diagnostic | None, Span]]:
    """The message about all functions of C, at the first one, and the places of all."""
    places, end = list[Span](), 0
    is_sure = True
    while (match := _C.search(text, end)) is not None:
        end = _closing(text, match.end() - 1)
        is_sure = is_sure and match["first"] != "def"
        places.append(Span(_begin(text, match.start(), _BEFORE_C), end))
    if not places:
        return []
    defs, macros, beyond = list[str](), Macros(), list[tuple[str, Beyond]]()
    for place in places:
        part = text[place.start : place.end]
        try:
            defs += map(translated, functions_of_c(part, macros))
        except Beyond as reason:
            beyond.append((part, reason))
    has_kernel = any("__global__" in text[place.start : place.end] for place in places)
    refused = [reason for part, reason in beyond if not defs or not _is_host(part, has_kernel)]
    written = "\n".join(defs).rstrip()
    if refused:
        message = Diagnostic(codes.NO_DEF, places[0], _NO_DEF.format("C"), help=str(refused[0]))
        return [(None if k else message, place) for k, place in enumerate(places)] if is_sure else []
    if not written:
        return []
    parts = [places[0]]
    for place in places[1:]:
        together = not text[parts[-1].end : place.start].strip()
        parts[-1:] = [parts[-1] | place] if together else [parts[-1], place]
    edits = tuple(Edit(place, "" if k else written) for k, place in enumerate(parts))
    message = _message(places[0], "C", edits)
    return [(None if k else message, place) for k, place in enumerate(places)]


def _is_host(text: str, has_kernel: bool) -> bool:
    """Whether a function only calls others: `main`, or what is no kernel beside one; Python does that here."""
    return re.match(r"[^(]*\bmain\s*\(", text) is not None or (has_kernel and "__global__" not in text)


def _told_of_python(text: str) -> list[tuple[Diagnostic | None, Span]]:
    """The messages about functions of Python, one for each, and their places."""
    found = list[tuple[Diagnostic | None, Span]]()
    for match in _PYTHON.finditer(text):
        start = _begin(text, match.start(), _BEFORE_PYTHON)
        is_compiled = _COMPILED.search(text, start, match.start()) is not None
        if not _PLAIN.fullmatch(match["parameters"]) or not (is_compiled or _LOOP.search(match["body"])):
            continue
        place = Span(start, match.start() + len(match[0].rstrip()))
        try:
            written = "\n".join(map(translated, functions_of_python(text[place.start : place.end]))).rstrip()
        except Beyond as reason:
            message = Diagnostic(codes.NO_DEF, place, _NO_DEF.format("Python"), help=str(reason))
            found += [(message, place)] if is_compiled or not _MIXED.search(match[0]) else []
            continue
        found.append((_message(place, "Python", (Edit(place, written),)), place))
    return found


def _message(place: Span, language: str, edits: tuple[Edit, ...]) -> Diagnostic:
    return Diagnostic(codes.NO_DEF, place, _NO_DEF.format(language), help=_HELP, fix=Fix("write the def", edits))


def _begin(text: str, start: int, before: re.Pattern[str]) -> int:
    """Where a function begins with the lines that belong to it before a place, the first of which is not blank."""
    begin = start
    while start:
        line = text.rfind("\n", 0, start - 1) + 1
        if not before.match(text[line : start - 1]):
            break
        begin = line if text[line : start - 1].strip() else begin
        start = line
    return begin


def _closing(text: str, opening: int) -> int:
    """Where the block ends that begins at a `{`."""
    depth = 0
    for match in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return opening + match.end()
    return len(text.rstrip())
