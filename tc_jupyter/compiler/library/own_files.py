"""Which files of a folder an export has written: a list with their digests, as `sha256sum --check` reads it.

Worked example: after `f.export("out")`, `out/exported.sha256` has a line for each file; a file that somebody has changed since, or
that is not in the list, is not overwritten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

LIST = "exported.sha256"


def foreign(folder: Path, names: Iterable[str]) -> str | None:
    """The first of some files that is there and that no export has left so.

    Raises:
        OSError: one cannot be read.
    """
    known = _known(folder)
    present = (name for name in names if (folder / name).exists() or (folder / name).is_symlink())
    return next((name for name in present if known.get(name) != _digest(folder / name)), None)


def note(folder: Path, names: Iterable[str]) -> None:
    """Write the list with the files that are there now; those of other libraries stay in it."""
    known = _known(folder) | {name: _digest(folder / name) for name in names}
    lines = [f"{digest}  {name}\n" for name, digest in known.items() if (folder / name).is_file()]
    (folder / LIST).write_text("".join(lines), encoding="utf-8")


def _known(folder: Path) -> dict[str, str]:
    """The digests of the list by the names of the files."""
    lines = (folder / LIST).read_text(encoding="utf-8", errors="replace") if (folder / LIST).is_file() else ""
    pairs = (line.split("  ", 1) for line in lines.splitlines())
    return {pair[1]: pair[0] for pair in pairs if len(pair) > 1}


def _digest(path: Path) -> str:
    """The digest of a file; none of what is no file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


__all__ = ["foreign", "note"]
