"""Reading and writing files of this user, wherever somebody may have put something else in their place.

What stands at a path may be a pipe that nobody writes to, a device, a link to elsewhere, the file of another user, or endless.
`read_own` gives the bytes of a plain file of this user and never waits.

Worked example: `read_own(path)` of a file with `abc` is `b"abc"`; of a pipe, a folder or a link it raises `OSError`.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path

LARGEST = 1 << 28
"""Bytes of a file that is read: more than any of ours has."""


def read_own(path: Path, largest: int = LARGEST) -> bytes:
    """The content of a plain file of this user.

    Raises:
        OSError: there is none, it cannot be read, it has more than `largest` bytes, or it is no such file.
    """
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        foreign = sys.platform != "win32" and found.st_uid != os.getuid()
        if foreign or not stat.S_ISREG(found.st_mode) or found.st_size > largest:
            raise OSError(f"{path} is not a plain file of this user with at most {largest} bytes")
        return file.read(largest)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: readers see what was there before, or all of it.

    Raises:
        OSError: it cannot be written.
    """
    handle, name = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def as_path(option: str, value: object) -> Path:
    """The path that an option names.

    Raises:
        TypeError: it names none.
    """
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{option}={value!r:.60}: expected the path of a file")
    return Path(value)


LARGEST_TEXT = 1 << 20
"""Bytes of a text that a user names: as many are checked within half a minute."""


def read_text(path: Path, largest: int = LARGEST_TEXT) -> str:
    """The text of a file that its user names, with universal line ends.

    A pipe of the shell, as in `check <(...)`, is read; one with a name is not, because nobody may ever write to it.

    Raises:
        OSError: it cannot be read, is no plain file, or has more than `largest` bytes.
        UnicodeDecodeError: it is no text in UTF-8.
    """
    if path.is_fifo() and path.resolve().exists():
        raise OSError(errno.EINVAL, "it is a pipe with a name, which nobody may write to", str(path))
    with path.open("rb") as file:
        read = file.read(largest + 1)
    if len(read) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest:,} bytes", str(path))
    return decoded(read)


def decoded(read: bytes) -> str:
    """The text of bytes in UTF-8 as Python reads text: without a mark of byte order, with universal line ends."""
    return read.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
