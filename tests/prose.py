"""What a machine can tell about sentences: which are longer than a reader keeps in mind."""

from __future__ import annotations

import re

MOST_WORDS = 35
_END = re.compile(r"(?<=[.!?])[)\"]?\s+(?=[A-Z`*\[(\"])")
_NO_PROSE = ("#", "    ", "!", "<")


def sentences(page: str) -> list[str]:
    """The sentences of a Markdown page: without fences, headings, pictures and indented code.

    A list item, a cell of a table and a paragraph end a sentence whether or not a full stop does; a colon does not.
    """
    prose = re.sub(r"^```.*?^```[ \t]*$", "\n\n", page, flags=re.MULTILINE | re.DOTALL)
    lines = ["" if line.startswith(_NO_PROSE) else line for line in prose.splitlines()]
    cells = [re.sub(r"(?<!\\)\|", "\n\n", line) if line.startswith("|") else line for line in lines]
    paragraphs = re.split(r"\n\s*\n|^\s*(?:[*-]|\d+\.) ", "\n".join(cells), flags=re.MULTILINE)
    return [sentence for text in paragraphs for sentence in _END.split(" ".join(text.split())) if sentence]


def long_sentences(page: str) -> list[str]:
    """The sentences of a page that have more than `MOST_WORDS` words.

    What stands in backticks is one word, and lists of such words and of numbers are no sentences.
    """
    return [text for text in sentences(page) if _words(text) > MOST_WORDS]


def _words(text: str) -> int:
    words = re.sub(r"`[^`]+`", "0", text).split()
    return sum(not word.strip(",;.").isdecimal() for word in words)
