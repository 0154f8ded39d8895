"""What an editor says about the files that a text uses, and which of them it may look into.

Worked example: for `use "kernels.tc"`, `hover` at the path lists the defs of the file, and `definition` is the file itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tc_jupyter.compiler.analysis_json import diagnostic_json, span_json
from tc_jupyter.compiler.uses import ENDINGS, NOTHING, Reading, Used, UsedFile, against
from tc_jupyter.diagnostics import SourceText, Span, codes
from tc_jupyter.function import LIBRARY, Function
from tc_jupyter.syntax.tree import Use
from tc_jupyter.syntax.uses import cut

from .cell import Cell, Json, cell_of
from .pieces import defs_of

_MOST_LISTED = 1_000
"""Files and folders that are looked at for a completion."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a text, as far as they may be looked into while somebody types."""

    used: Used = NOTHING
    reading: Reading | None = None


NO_FILES = Files()


def look(
    text: str,
    language: str,
    folder: Path,
    below: Path | None = None,
    file: Path | None = None,
    texts: Callable[[Path], str | None] = lambda path: None,
) -> Files:
    """Look into the files that a text uses.

    Args:
        folder: what its paths are relative to.
        below: the folder below which files are read; by default `folder`.
        file: the file that the text is of.
        texts: the text of a file that is open in the editor.
    """
    reading = Reading(folder, below or folder, texts)
    return Files(LIBRARY.used(SourceText(text), language, reading, file), reading)


def messages(cell: Cell, files: Files) -> list[Json]:
    """What there is to say about the files of a text."""
    if not files.used.files:  # the text is not read as a whole
        return []
    uses, found = cut(cell.source, cell.language)[0], defs_of(cell.text, cell.language)
    said = against(files.used, uses, found or ((item.name, item.span) for item in cell.items))
    return [diagnostic_json(each, cell.source) for each in (*files.used.diagnostics, *said)]


def follows(item: Json, cell: Cell, files: Files) -> bool:
    """Whether a message is about a function that may be in a file which could not be used."""
    if files.used.is_whole or item["code"] != codes.UNKNOWN_NAME.number:
        return False
    end = cell.offset(item["span"]["end"])
    return cell.text[end : end + 2].lstrip()[:1] == "("


# a line that uses a file ---------------------------------------------------------------------------------------------------------


def use_at(text: str, position: Mapping[str, int], language: str) -> tuple[int, Use] | None:
    """The number of the `use` whose path is at a position, and the `use`."""
    cell = cell_of(text, language)
    offset = cell.offset(position)
    uses = cut(cell.source, language)[0]
    return next(((n, use) for n, use in enumerate(uses) if use.place.start <= offset <= use.place.end), None)


def hover(text: str, position: Mapping[str, int], language: str, files: Files) -> Json | None:
    """What the file at a position defines; `None` elsewhere."""
    found, source = use_at(text, position, language), SourceText(text)
    if found is None:
        return None
    number, use = found
    file = _file(files, number)
    lines = ["not read"] if file is None else [signature(value) for value in file.functions.values()]
    if file is not None and file.problems:
        lines = [f"{len(file.problems)} mistake{'s' * (len(file.problems) > 1)}"]
    title, shown = f'use "{use.path}"', lines[:11] + ([f"... {len(lines) - 11} more"] if len(lines) > 11 else [])
    return {"span": span_json(use.place, source), "kind": "file", "title": title, "lines": shown, "documentation": None}


def definition(text: str, position: Mapping[str, int], language: str, files: Files) -> Json | None:
    """The file at a position; `None` elsewhere."""
    found = use_at(text, position, language)
    file = None if found is None else _file(files, found[0])
    if found is None or file is None:
        return None
    span = span_json(Span(0, 0), file.source)
    return {"name": found[1].path, "kind": "file", "cell": None, "span": None, "file": str(file.path), "in_file": span}


def complete(text: str, position: Mapping[str, int], language: str, files: Files) -> Json | None:
    """The files that may stand between the quotes at a position; `None` elsewhere."""
    source = SourceText(text)
    line = source.line(min(max(position["line"], 0), len(source.line_starts) - 1))[: position["character"]]
    head, quote, typed = line.partition('"')
    if head.strip() != "use" or not quote or '"' in typed or files.reading is None or files.reading.below is None:
        return None
    start = {"line": position["line"], "character": len(head) + 1}
    paths = _paths(files.reading.folder, files.reading.below, {".tc"} if language == "tc" else set(ENDINGS))
    items = [{"label": path, "type": "file"} for path in paths if path.startswith(typed)]
    return {"span": {"start": start, "end": dict(position)}, "items": items[:100]}


def _paths(folder: Path, below: Path, endings: set[str]) -> list[str]:
    """The files in a folder and in the folders there, as they are written from another one."""
    if not folder.is_relative_to(below):
        return []
    found: list[str] = []
    for path in islice((path for pattern in ("*", "*/*") for path in below.glob(pattern)), _MOST_LISTED):
        if path.suffix in endings and not path.name.startswith("."):
            found.append(Path(os.path.relpath(path, folder)).as_posix())
    return sorted(found)


def _file(files: Files, number: int) -> UsedFile | None:
    return files.used.files[number][1] if number < len(files.used.files) else None


# functions of files --------------------------------------------------------------------------------------------------------------


def signature(value: Any) -> str:
    """A function in one line."""
    return str(getattr(value, "signature", value))


def place_of(value: Any) -> tuple[str, Json] | None:
    """The path of the file that a function is from, and where its name stands there; `None` for one of a cell."""
    if not isinstance(value, Function) or not value.options.file:
        return None
    cell = cell_of(value.source_text.text, value.options.language)
    span = next((item.name.span for item in cell.items if item.name.name == value.written_name), Span(0, 0))
    return value.options.file, cell.span(span)


def origin(value: Any) -> str:
    """Where a function that is none of this text is defined, in words."""
    found = place_of(value)
    if found is None:
        return "defined in another cell"
    return f"defined in `{value.source_text.name}`, line {found[1]['start']['line'] + 1}"
