"""`%%tc --save kernels.tc`: the text of a cell as a file, which never overwrites what somebody else has written.

The first line of the file says what the rest was when it was saved. Where both still fit, the file is the notebook's to replace.

Worked example: the file of a cell `def f(float(N) X) -> (Y) { Y(i) = X(i) }` begins with `# saved by %%tc --save (`; after an edit
of the file, the cell is refused (TC687) until somebody writes `--force`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from IPython.core.error import UsageError

from tc_jupyter.compiler import Analysis, analyze
from tc_jupyter.compiler.definition import Options
from tc_jupyter.compiler.uses import ENDINGS, shown_path
from tc_jupyter.diagnostics import CompileError, Diagnostic, SourceText, Span, codes, render
from tc_jupyter.files import read_text
from tc_jupyter.function import with_files
from tc_jupyter.ide import defines
from tc_jupyter.syntax.uses import cut

_HEADER = re.compile(r"(?:#|//) saved by %%\w+ --save \(([0-9a-f]{16})\)[^\n]*\n")
_COMMENT = {"tc": "#", "sac": "//"}


def save(given: str, cell: str, language: str, analysis: Analysis, force: bool) -> str:
    """Write the text of a cell to a file, if the file has nothing to lose; returns its path for messages.

    Raises:
        UsageError: this is no place for such a file.
        CompileError: TC686, TC687, or a mistake that the text has as a file.
    """
    try:
        path = Path(given).expanduser().absolute()
    except RuntimeError as problem:  # there is no such user
        raise UsageError(f"%%{language} --save {given}: {problem}") from None
    if ENDINGS.get(path.suffix) != language:
        raise UsageError(f"%%{language} --save {given}: the name of the file does not end in `.{language}`")
    body = _with_paths(cell, language, path.parent).strip("\n") + "\n"
    _refuse_open(body, language, path)
    text = f"{_COMMENT[language]} saved by %%{language} --save ({_digest(body)}); edit it, and the cell asks before\n{body}"
    try:
        if path.exists() and not force:
            _refuse_changed(path, text, language, analysis)
        _write(path, text)
    except OSError as problem:
        raise UsageError(f"%%{language} --save {given}: {problem.strerror or problem}") from None
    except ValueError as problem:  # a zero byte
        raise UsageError(f"%%{language} --save {given!r}: {problem}") from None
    return shown_path(path)


def _digest(body: str) -> str:
    return hashlib.blake2b(body.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _with_paths(cell: str, language: str, folder: Path) -> str:
    """The text with the paths of its `use` as they are from the folder of the file."""
    text = cell
    for use in reversed(cut(SourceText(cell), language)[0]):
        if not os.path.isabs(use.path):
            path = Path(os.path.relpath(Path.cwd() / use.path, folder)).as_posix()
            text = f'{text[: use.place.start]}"{path}"{text[use.place.end :]}'
    return text


def _refuse_open(body: str, language: str, path: Path) -> None:
    """Look whether the text can stand alone.

    Raises:
        CompileError: it cannot.
    """
    used, options = with_files(Options(body, language, name=shown_path(path), file=str(path)))
    found = analyze(body, language=language, known=options.known, name=options.name, used=used)
    errors = [each for each in found.diagnostics if each.is_error]
    if not errors:
        return
    help = "save the cell that defines it, too, and `use` its file here"
    said = tuple(
        replace(each, code=codes.NOT_ALONE, message=f"the file would not have it: {each.message}", help=help, fix=None)
        if each.code is codes.UNKNOWN_NAME
        else each
        for each in errors
    )
    raise CompileError(said, found.source, render(said, found.source))


def _refuse_changed(path: Path, text: str, language: str, analysis: Analysis) -> None:
    """Look whether a file is as this magic has left it, and loses no def.

    Raises:
        CompileError: TC687.
        OSError: it cannot be read.
    """
    name = shown_path(path)
    try:
        present = read_text(path)
    except UnicodeDecodeError:
        present = ""
    if present == text:
        return
    header = _HEADER.match(present)
    if header is None:
        raise _refusal(analysis, f"`{name}` is there already, and no cell has saved it")
    if _digest(present[header.end() :]) != header[1]:
        raise _refusal(analysis, f"`{name}` has changed since a cell saved it")
    defined = defines(text, language)
    lost = [each for each in defines(present, language) if each not in defined]
    if lost:
        names = ", ".join(f"`{each}`" for each in lost[:5])
        raise _refusal(analysis, f"`{name}` also has {names}, which this cell does not define")


def _refusal(analysis: Analysis, message: str) -> CompileError:
    help = "`--force` overwrites the file; another name keeps it"
    said = (Diagnostic(codes.CHANGED_FILE, Span(0, 0), message, help=help),)
    return CompileError(said, analysis.source, render(said, analysis.source))


def _write(path: Path, text: str) -> None:
    """Write a file that is whole at every time; where it is a link, the file that the link names."""
    target = os.path.realpath(path)
    if os.path.islink(target):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            file.write(text)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


__all__ = ["save"]
