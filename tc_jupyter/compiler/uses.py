"""`use "kernels.tc"`: the defs of other files that a text may call.

Comes in: a text, the folder that its paths are relative to, and who reads. Goes out: `Used`, the functions by name, and a message
for each file that cannot be used. A file is read again whenever a text is looked at, and made again only when it has changed, or a
file that it uses has.

What is looked at while somebody types may come from anybody, so that then only small `.tc` and `.sac` files below one folder are
read, and those that this process was asked to run before.

Worked example: of a cell `use "a.tc"` and a file with `def f(float(N) X) -> (Y) { Y(i) = X(i) }`, `used` has the function `f`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tc_jupyter.diagnostics import Code, Diagnostic, Edit, Fix, Label, SourceText, Span, codes
from tc_jupyter.diagnostics.work import allowed
from tc_jupyter.files import LARGEST_TEXT, decoded, read_own, read_text
from tc_jupyter.syntax.tree import Name, Use
from tc_jupyter.syntax.uses import cut

ENDINGS = {".tc": "tc", ".sac": "sac"}
"""What a file ends in -> its language."""
LARGEST_LOOKED_AT = 200_000
"""Bytes of a file that is read while somebody types."""
STEPS_LOOKED_AT = 3_600_000
"""What the reasoning about the files of a text may take then (`diagnostics.work`): some seconds, once."""
MOST_FILES = 100
"""Of files that a text uses, directly or through others."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Who reads.

    Attributes:
        folder: what paths are relative to.
        below: the folder below which files may be read; `None` where a person has asked for it, and every file may be.
        texts: the text of a file that an editor has open, if it has.
    """

    folder: Path
    below: Path | None = None
    texts: Callable[[Path], str | None] = lambda path: None


@dataclass(frozen=True, slots=True, eq=False)
class UsedFile:
    """A file that was read, and what its text uses.

    Attributes:
        source: its text; the name is its path from the present folder.
        functions: what it defines, by name; nothing if it has mistakes.
        problems: its mistakes.
    """

    path: Path
    source: SourceText
    used: Used
    functions: Mapping[str, Any]
    problems: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Used:
    """What a text may call of other files.

    Attributes:
        files: per line that uses a file: the line, and the file if it was read.
        functions: by name.
        diagnostics: why a file is not used.
    """

    files: tuple[tuple[Use, UsedFile | None], ...] = ()
    functions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the functions of all files are known."""
        return all(found is not None and not found.problems for _, found in self.files)

    def has(self, path: Path) -> bool:
        """Whether a file is used, directly or through others."""
        found = [file for _, file in self.files if file is not None]
        return any(file.path == path or file.used.has(path) for file in found)

    def origin(self, name: str) -> UsedFile | None:
        """The file that a function is from."""
        return next((file for _, file in self.files if file is not None and name in file.functions), None)


NOTHING = Used()

Make = Callable[[SourceText, str, Path, Used], "tuple[Mapping[str, Any], tuple[Diagnostic, ...]]"]
"""The functions of a file, or its mistakes: of its text, language and place, and what it uses."""


class Library:
    """The files that this process has read."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._kept: dict[Path, UsedFile] = {}
        self._asked: set[Path] = set()  # for which a person has run something

    def used(self, source: SourceText, language: str, reading: Reading, file: Path | None = None) -> Used:
        """What a text may call of other files; `file` is the one that it is in."""
        uses = cut(source, language)[0]
        if not uses:
            return NOTHING
        visit = _Visit(self, reading, [] if file is None else [file.resolve()])
        with nullcontext() if reading.below is None else allowed(STEPS_LOOKED_AT):
            return visit.used(uses, source, reading.folder)

    def read(self, path: Path, reading: Reading) -> str:
        """The text of a file.

        Raises:
            OSError: it is not there, is no plain file, is too long or may not be read.
            UnicodeDecodeError: it is no text in UTF-8.
        """
        text = reading.texts(path)
        if text is not None:
            return text
        if reading.below is not None and path not in self._asked:
            return decoded(read_own(path, LARGEST_LOOKED_AT))
        if not path.is_file() and path.exists():
            raise OSError(0, "it is no plain file")
        text = read_text(path, LARGEST_TEXT)
        self._asked.add(path)
        return text

    def may_read(self, path: Path, reading: Reading) -> bool:
        """Whether a file may be read now."""
        below = reading.below
        return below is None or path in self._asked or (path.suffix in ENDINGS and path.is_relative_to(below.resolve()))

    def file(self, source: SourceText, path: Path, used: Used) -> UsedFile:
        """A file with this text: the one that is known, if nothing has changed."""
        known = self._kept.get(path)
        if known is not None and known.source == source and _same_files(known.used, used):
            return known
        functions, problems = self._make(source, ENDINGS[path.suffix], path, used)
        found = UsedFile(path, source, used, functions, problems)
        self._kept[path] = found
        return found


def _same_files(one: Used, other: Used) -> bool:
    files = [file for _, file in one.files], [file for _, file in other.files]
    return len(files[0]) == len(files[1]) and all(a is b for a, b in zip(*files, strict=True))


class _Visit:
    """One look at a text and the files behind it, each once."""

    def __init__(self, library: Library, reading: Reading, users: list[Path]) -> None:
        self.library = library
        self.reading = reading
        self.users = users  # the files whose lines led here, outermost first
        self.done: dict[Path, UsedFile] = {}

    def used(self, uses: tuple[Use, ...], source: SourceText, folder: Path) -> Used:
        """What some lines of a text give."""
        files: list[tuple[Use, UsedFile | None]] = []
        said: list[Diagnostic] = []
        functions: dict[str, Any] = {}
        for use in uses:
            if not use.regular:
                said.append(_irregular(use))
            found = self.visit(use, folder)
            if isinstance(found, Diagnostic):
                said.append(found)
                files.append((use, None))
                continue
            if found.problems:
                said.append(_broken(use, found))
            same = next((other for other, file in files if file is found), None)
            if same is not None:
                said.append(_again(use, same))
                files.append((use, found))
                continue
            twice = [name for name in found.functions if name in functions]
            said += [_twice(use, name, files, found) for name in twice]
            files.append((use, found))
            functions |= {name: value for name, value in found.functions.items() if name not in functions}
        return Used(tuple(files), functions, tuple(said))

    def visit(self, use: Use, folder: Path) -> UsedFile | Diagnostic:
        """The file of one line, or why there is none."""
        shown = f"`{use.path}`"
        try:
            path = Path(os.path.abspath(folder / use.path)).resolve() if use.path else folder
        except (OSError, ValueError, RuntimeError):  # a zero byte, a loop of links
            return _refused(codes.USE_MISSING, use, f"{shown} is no path")
        if path.suffix not in ENDINGS:
            help = 'a file that is used is named in full, as in `use "kernels.tc"`'
            return _refused(codes.NOT_A_TC_FILE, use, f"{shown} ends neither in `.tc` nor in `.sac`", help=help)
        if path in self.users:
            names = " -> ".join(f"`{shown_path(each)}`" for each in [*self.users[self.users.index(path) :], path])
            message = "a file uses itself" if self.users[-1] == path else "files use each other"
            help = "put what both need into a file of its own"
            return _refused(codes.USE_CYCLE, use, f"{message}: {names}", help=help)
        if path in self.done:
            return self.done[path]
        if not self.library.may_read(path, self.reading):
            message = f"{shown} is read when the text is run, and not before"
            help = f"while you type, only `.tc` and `.sac` files below {self.reading.below} are read"
            return _refused(codes.USE_NOT_READ, use, message, help=help)
        if len(self.done) + len(self.users) >= MOST_FILES:
            return _refused(codes.USE_MISSING, use, f"{shown} is not read: more than {MOST_FILES} files are used")
        return self.read(use, path)

    def read(self, use: Use, path: Path) -> UsedFile | Diagnostic:
        shown = f"`{use.path}`"
        try:
            text = self.library.read(path, self.reading)
        except FileNotFoundError:
            help = f"there is no file {path}" if self.reading.below is None else None
            return _refused(codes.USE_MISSING, use, f"there is no file {shown}", help=help)
        except OSError as problem:
            return _refused(codes.USE_MISSING, use, f"{shown} cannot be read: {problem.strerror or problem}")
        except UnicodeDecodeError as problem:
            message = f"{shown} is no text in UTF-8 (byte {problem.start})"
            return _refused(codes.NOT_A_TC_FILE, use, message)
        source = SourceText(text, shown_path(path))
        self.users.append(path)
        inner = self.used(cut(source, ENDINGS[path.suffix])[0], source, path.parent)
        self.users.pop()
        self.done[path] = self.library.file(source, path, inner)
        return self.done[path]


def shown_path(path: Path) -> str:
    """A path for messages: from the present folder where it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _refused(code: Code, use: Use, message: str, help: str | None = None) -> Diagnostic:
    return Diagnostic(code, use.place, message, help=help)


def _irregular(use: Use) -> Diagnostic:
    edit = Edit(use.span, f'use "{use.path}"')
    fix = Fix(f"write `{edit.text}`", (edit,))
    return Diagnostic(codes.MISPLACED_USE, use.span, "a file is used by its path in double quotes", fix=fix)


def _broken(use: Use, file: UsedFile) -> Diagnostic:
    """TC681: the first mistakes of a file, and where those of the files that it uses are."""
    count = len(file.problems)
    message = f"`{use.path}` has {'a mistake' if count == 1 else f'{count} mistakes'}"
    found = list(_places(file, set()))
    mistakes = [label for label, is_link in found if not is_link][:_MOST_MISTAKES]
    links = [label for label, is_link in found if is_link][: _MOST_PLACES - len(mistakes)]
    labels = [label for label, _ in found if label in links or label in mistakes]
    return Diagnostic(codes.USE_BROKEN, use.place, message, labels=tuple(labels))


_MOST_MISTAKES, _MOST_PLACES = 3, 6
"""Mistakes in other files that one message shows, and places in all: the lines that lead there are the others."""


def _places(file: UsedFile, seen: set[Path]) -> Iterator[tuple[Label, bool]]:
    """The places of what is wrong with a file and those behind it, each with whether it is a line that leads to another file."""
    seen.add(file.path)
    behind = {use.place: other for use, other in file.used.files}
    for each in file.problems:
        other = behind.get(each.span) if each.code is codes.USE_BROKEN else None
        yield Label(each.span, each.message, file.source), other is not None
        yield from ((label, False) for label in each.labels if other is None and label.source is not None)
        if other is not None and other.path not in seen:
            yield from _places(other, seen)


def _again(use: Use, first: Use) -> Diagnostic:
    """TC207: a second line uses the same file."""
    fix = Fix("remove the line", (Edit(use.span, ""),))
    message = f"`{use.path}` is used already"
    return Diagnostic(codes.DUPLICATE_NAME, use.place, message, labels=(Label(first.place, "first here"),), fix=fix)


def _twice(use: Use, name: str, files: list[tuple[Use, UsedFile | None]], other: UsedFile) -> Diagnostic:
    """TC207: two files define one name."""
    first = next(file for _, file in files if file is not None and name in file.functions)
    labels = tuple(Label(place_of(file, name), "here", file.source) for file in (first, other))
    message = f"`{name}` is defined in two files: `{first.source.name}` and `{other.source.name}`"
    return Diagnostic(codes.DUPLICATE_NAME, use.place, message, labels=labels)


def place_of(file: UsedFile, name: str) -> Span:
    """Where the name of a def stands in a file."""
    from tc_jupyter.syntax import parse_sac, parse_tc  # noqa: PLC0415  (for messages alone)

    sac = ENDINGS[file.path.suffix] == "sac"
    items = parse_sac(file.source).unit.functions if sac else parse_tc(file.source).unit.defs
    return next((item.name.span for item in items if item.name.name == name), Span(0, 0))


def against(used: Used, uses: tuple[Use, ...], defs: Iterable[tuple[Name, Span]]) -> tuple[Diagnostic, ...]:
    """What the defs of a text have against what it uses: a name that a file has, too (TC207), a line inside of a def (TC684).

    Args:
        defs: the name of each def, and its place.
    """
    defs, found = tuple(defs), list[Diagnostic]()
    for name, _ in defs:
        file = used.origin(name.name)
        if file is not None:
            labels = (Label(place_of(file, name.name), "here", file.source),)
            message = f"`{name.name}` is defined here and in `{file.source.name}`"
            found.append(Diagnostic(codes.DUPLICATE_NAME, name.span, message, labels=labels))
    help = "put it on a line of its own, before the defs"
    found += [
        Diagnostic(codes.MISPLACED_USE, use.span, "`use` stands inside of a def", help=help)
        for use in uses
        if any(span.start < use.span.start < span.end for _, span in defs)
    ]
    return tuple(found)
