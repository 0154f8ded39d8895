"""Which line of the cell a line of generated text computes: from quoted statements, `.loc`, and the disassembler's notes.

Worked example: after `// C(i) = B(i) * 3` the loop around the statement belongs to the line of the cell that has this text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

Lines = list[int | None]

_COMMENT = re.compile(r"\s*(?:#|//|;)\s?(.*)")
_KERNEL = re.compile(r'(?:kernel |extern "C"|[{}]|define )')
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"(?:[^"]*"\s+")?([^"]*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_NOTE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')


@dataclass(slots=True)
class _Part:
    """The code of a statement: how far its comment is indented, its line in the cell, whether its loop has begun."""

    depth: int
    line: int
    begun: bool = False


def lines_of(made: str, quoted: Mapping[str, int]) -> Lines:
    """Lines of the cell by the comments that quote statements; `quoted` has the line of each statement, counted from 0."""
    lines: Lines = []
    open_parts: list[_Part] = []  # statements whose code is around the present line, outermost first
    for line in made.split("\n"):
        comment = _COMMENT.match(line)
        depth = len(line) - len(line.lstrip())
        said = quoted.get(" ".join(comment.group(1).split())) if comment is not None else None
        if said is not None:
            open_parts = [*(part for part in open_parts if part.depth < depth), _Part(depth, said)]
        elif not line.strip() or _KERNEL.match(line):
            open_parts = []
        elif line.strip() not in ("}", "{"):
            # a producer inside a loop of its consumer ends with its own loop; what follows belongs to the consumer again
            while len(open_parts) > 1 and (
                depth < open_parts[-1].depth or (depth == open_parts[-1].depth and open_parts[-1].begun)
            ):
                open_parts.pop()
            if open_parts and depth == open_parts[-1].depth:
                open_parts[-1].begun = True
        lines.append(open_parts[-1].line if open_parts else None)
    return lines


def with_assignments(quoted: Mapping[str, int], loops: str) -> dict[str, int]:
    """The quoted statements, and the assignments that the loops of the def make of them (LLVM IR quotes those)."""
    found = dict(quoted)
    for text, line in zip(loops.split("\n"), lines_of(loops, quoted), strict=True):
        if line is not None and "=" in text and not text.strip().startswith(("#", "for ", "if ")):
            found.setdefault(" ".join(text.split()), line)
    return found


def lines_of_locations(made: str, name: str) -> Lines:
    """Lines of the cell by `.loc` and `.file` (PTX, assembly) or by `//## File` (machine code)."""
    files = {match.group(1): match.group(2) for match in map(_FILE.match, made.split("\n")) if match is not None}
    lines: Lines = []
    at: int | None = None
    for line in made.split("\n"):
        where, note = _LOC.match(line), _NOTE.match(line)
        if where is not None or note is not None:
            file, number = where.groups() if where is not None else note.groups() if note is not None else ("", "0")
            known = files.get(file, file)
            at = int(number) - 1 if PurePath(known).name == name and int(number) > 0 else None
            lines.append(None)
            continue
        if not line.strip():
            at = None  # a new kernel
        lines.append(None if not line.strip() or line.rstrip().endswith(":") else at)
    return lines
