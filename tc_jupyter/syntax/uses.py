"""`use "kernels.tc"`: the lines of a text that say which files it takes defs from. Both languages have them.

They are read before the rest of the text and are blanks for what follows, so that every place stays where it was.

Worked example: of `use "a.tc"` and a def below it, `cut` gives the path `a.tc` with its places, and the text whose first line is
blank.
"""

from __future__ import annotations

import re

from tc_jupyter.diagnostics import SourceText, Span

from .tree import Use

_USE = re.compile(r"""(?:^|(?<=["';]))[ \t]*(?P<line>use[ \t]*(?P<path>"[^"\n]*")(?:[ \t]*;)?)""", re.MULTILINE)
_FILE = r"\.(?:tc|sac)"
_MEANT = re.compile(
    r"""^[ \t]*(?P<line>(?:use|import|include|from|load)[ \t]+"""
    rf"""(?P<path>"[^"\n]*{_FILE}"|'[^'\n]*{_FILE}'|<?[\w./\\-]+{_FILE}\b>?)(?:[ \t]*;)?)[ \t]*$""",
    re.MULTILINE,
)
"""The same as people write it who know another language; a file is never left out for it."""
_COMMENT = re.compile(r"//[^\n]*|/\*(?s:.*?)\*/")
ONLY_USES = (
    "`use` lets the defs of this text call those of the file; in Python `import tc_jupyter.importer` and "
    "`from kernels import *` make those of `kernels.tc` functions of the notebook"
)
"""For a text that has nothing else."""
INSTEAD = 'defs of another file are taken by `use "kernels.tc"`, on a line of its own'
"""For a line that begins as in another language, and names no file."""
MOST_USES = 100
"""Of files that a text names itself."""


def cut(source: SourceText, language: str) -> tuple[tuple[Use, ...], SourceText]:
    """The lines that use files, and the text with blanks in their places."""
    text = source.text
    found = _found(text, language)
    if not found:
        return (), source
    for use in found:
        start, end = use.span.start, use.span.end
        text = text[:start] + " " * (end - start) + text[end:]
    return found, SourceText(text, source.name)


def without_uses(text: str, language: str) -> str:
    """The text with blanks in place of the lines that use files."""
    return cut(SourceText(text), language)[1].text


def _found(text: str, language: str) -> tuple[Use, ...]:
    if not any(f"{word} " in text or f'{word}"' in text for word in ("use", "import", "include", "from", "load")):
        return ()
    comments = [match.span() for match in _COMMENT.finditer(text)] if language == "sac" else []
    found: dict[int, Use] = {}
    for pattern in (_USE, _MEANT):
        for match in pattern.finditer(text):
            start = match.start("line")
            inside = any(low <= start < high for low, high in comments)
            if not inside and not any(use.span.start <= start < use.span.end for use in found.values()):
                found[start] = _use(match)
    return tuple(found[start] for start in sorted(found))[:MOST_USES]


def _use(match: re.Match[str]) -> Use:
    written = match["path"]
    path = written[1:-1] if written[0] in "\"'<" and len(written) > 1 else written
    regular = match["line"].startswith("use") and written[0] == '"'
    return Use(path, Span(*match.span("line")), Span(*match.span("path")), regular)
