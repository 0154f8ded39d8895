"""Reading files that this user has written, wherever somebody may have put something else in their place.

What stands at a path may be a pipe that nobody writes to, a device, a link to elsewhere, the file of another user, or endless.
`read_own` gives the bytes of a plain file of this user and never waits.

Worked example: `read_own(path)` of a file with `abc` is `b"abc"`; of a pipe, a folder or a link it raises `OSError`.
"""

from __future__ import annotations

import os
import stat
import sys
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
