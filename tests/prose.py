"""What a machine can tell about sentences: which are longer than a reader keeps in mind."""

from __future__ import annotations

import re

MOST_WORDS = 35
_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[(\"])")
_NO_PROSE = ("|", "#", "    ", "!", "<")


def sentences(page: str) -> list[str]:
    """The sentences of a Markdown page: without fences, tables, headings, pictures and indented code.

    A list item and a paragraph end a sentence whether or not a full stop does.
    """
    prose = re.sub(r"^```.*?^```[ \t]*$", "\n\n", page, flags=re.MULTILINE | re.DOTALL)
    lines = ["" if line.startswith(_NO_PROSE) else line for line in prose.splitlines()]
    paragraphs = re.split(r"\n\s*\n|^\s*(?:[*-]|\d+\.) ", "\n".join(lines), flags=re.MULTILINE)
    return [sentence for text in paragraphs for sentence in _END.split(" ".join(text.split())) if sentence]


def long_sentences(page: str) -> list[str]:
    """The sentences of a page that have more than `MOST_WORDS` words (what stands in backticks is one word)."""
    return [text for text in sentences(page) if len(re.sub(r"`[^`]+`", "code", text).split()) > MOST_WORDS]
