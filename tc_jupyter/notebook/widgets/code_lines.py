"""Line numbers in the assembly of the CPU.

It says nothing of its source, so the module is given line numbers (debug locations) before it is assembled for display; they are
read back from the `.loc` directives and taken out again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tc_jupyter.ide.made_lines import Lines, lines_of_locations

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
