"""Which line of the cell a line of generated text computes: from quoted statements, `#line`, `.loc`, and the disassembler's notes.

Assembly of the CPU says nothing of its source, so the module is given line numbers (debug locations) before it is assembled for
display; they are read back from the `.loc` directives and taken out again.

Worked example: after `// C(i) = B(i) * 3` the loop around the statement belongs to the line of the cell that has this text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

Lines = list[int | None]

_DIRECTIVE = re.compile(r'#line (\d+) "(.*)"')
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


def lines_of(made: str, quoted: Mapping[str, int], name: str) -> Lines:
    """Lines of the cell by `#line` directives, and by the comments that quote statements."""
    lines: Lines = []
    open_parts: list[_Part] = []  # statements whose code is around the present line, outermost first
    for line in made.split("\n"):
        directive, comment = _DIRECTIVE.match(line), _COMMENT.match(line)
        depth = len(line) - len(line.lstrip())
        said = quoted.get(" ".join(comment.group(1).split())) if comment is not None else None
        if directive is not None:
            open_parts = [_Part(-1, int(directive.group(1)) - 1)] if directive.group(2) == name else []
            lines.append(None)
            continue
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


def with_assignments(quoted: Mapping[str, int], loops: str, name: str) -> dict[str, int]:
    """The quoted statements, and the assignments that the loops of the def make of them (LLVM IR quotes those)."""
    found = dict(quoted)
    for text, line in zip(loops.split("\n"), lines_of(loops, quoted, name), strict=True):
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


# assembly of the CPU -------------------------------------------------------------------------------------------------------------

_FIRST = 900_000
"""Numbers of the metadata nodes that are added: far from those of the module."""


def located(text: str, lines: Sequence[int | None], name: str) -> str:
    """An LLVM module with a debug location on every instruction: the line of the cell, or line 0."""
    given = text.split("\n")
    made: list[str] = []
    scopes, numbers = list[str](), dict[tuple[int, int], int]()
    for n, line in enumerate(given):
        if line.startswith("define "):
            scopes.append(line.partition("@")[2].partition("(")[0].strip('"'))
            made.append(line.rstrip().removesuffix("{") + f"!dbg !{_FIRST + 10 + len(scopes)} {{")
        elif (
            scopes
            and line.startswith("  ")
            and not line.lstrip().startswith((";", "]"))
            and not line.rstrip().endswith("[")
        ):
            known = lines[n]
            place = (len(scopes), 0 if known is None else known + 1)
            node = numbers.setdefault(place, _FIRST + 10_000 + len(numbers))
            made.append(f"{line}, !dbg !{node}")
        else:
            made.append(line)
    first = _FIRST
    nodes = [
        f"!llvm.dbg.cu = !{{!{first}}}",
        f"!llvm.module.flags = !{{!{first + 2}, !{first + 3}}}",
        f"!{first} = distinct !DICompileUnit(language: DW_LANG_C99, file: !{first + 1}, emissionKind: LineTablesOnly)",
        f'!{first + 1} = !DIFile(filename: "{name}", directory: "")',
        f'!{first + 2} = !{{i32 2, !"Debug Info Version", i32 3}}',
        f'!{first + 3} = !{{i32 2, !"Dwarf Version", i32 4}}',
        f"!{first + 4} = !DISubroutineType(types: !{first + 5})",
        f"!{first + 5} = !{{}}",
    ]
    nodes += [
        f'!{first + 10 + n} = distinct !DISubprogram(name: "{scope}", scope: !{first + 1}, file: !{first + 1}, line: 1, '
        f"type: !{first + 4}, spFlags: DISPFlagDefinition, unit: !{first})"
        for n, scope in enumerate(scopes, 1)
    ]
    nodes += [
        f"!{node} = !DILocation(line: {line}, scope: !{first + 10 + scope})" for (scope, line), node in numbers.items()
    ]
    return "\n".join([*made, *nodes, ""])


_DEBUG_ONLY = re.compile(
    r"\s*\.(?:loc|file|cfi_sections)\b|\s*\.?L(?:tmp|func_begin|func_end|section_line)\w*:|\s*\.cfi_"
)


def without_debug(made: str, plain: str, name: str) -> Lines | None:
    """The lines of the cell for `plain` from its twin with debug information; `None` if the two are not the same code."""
    twin = made.split(".section\t.debug_")[0]
    kept = [
        (line, at)
        for line, at in zip(twin.split("\n"), lines_of_locations(twin, name), strict=True)
        if not _DEBUG_ONLY.match(line)
    ]
    wanted = plain.split("\n")
    found: Lines = []
    place = 0
    for line in wanted:
        if _DEBUG_ONLY.match(line):
            found.append(None)
            continue
        ahead = next((n for n in range(place, min(place + 4, len(kept))) if _same(kept[n][0], line)), None)
        if ahead is None:
            if line.startswith("\t.") or not line.strip():
                found.append(None)
                continue
            return None
        found.append(kept[ahead][1])
        place = ahead + 1
    return found


def _same(first: str, second: str) -> bool:
    """Equal up to the numbers of labels."""
    return re.sub(r"\.L\w+", ".L", first).split() == re.sub(r"\.L\w+", ".L", second).split()
