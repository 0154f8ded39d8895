"""Compiled code on disk: bytes with a JSON description, found by the hash of everything that they depend on.

Loading an object means running code, so the folder must belong to the user alone (mode 0700 where the system has modes). An entry
is one file: a magic line, the SHA-256 of the rest, the JSON on one line, the bytes. It is written under another name and
renamed, so readers see whole entries only. A broken or foreign file counts as absent and is rewritten. Nothing is unpickled.

Worked example: `cache.put(key, code, {"symbols": []})`; in another process `cache.get(key)` is `Entry(code, {"symbols": []})`.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENVIRONMENT = "TC_JUPYTER_CACHE"
"""The one environment variable: a folder, or `off`."""
MAGIC = b"tc_jupyter cache 1\n"
_DIGEST = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """What was kept: bytes and a JSON object."""

    data: bytes
    meta: dict[str, Any]


def key_of(*parts: str | bytes) -> str:
    """The key of an entry: SHA-256 of the parts, each with its length, in hexadecimal."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def default_folder() -> Path | None:
    """The platform's place for caches, or what `TC_JUPYTER_CACHE` says; `None` when it is `off`."""
    wanted = os.environ.get(ENVIRONMENT)
    if wanted == "off":
        return None
    if wanted:
        return Path(wanted)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tc_jupyter"


@dataclass(frozen=True, slots=True)
class DiskCache:
    """A folder of entries; `None` keeps nothing."""

    folder: Path | None

    @staticmethod
    def default() -> DiskCache:
        """The user's cache, or one that keeps nothing if there is no usable folder."""
        try:
            folder = default_folder()
        except RuntimeError:  # no home directory
            folder = None
        return DiskCache(folder)

    def usable(self) -> bool:
        """Make the folder if needed and check that nobody else can write to it."""
        if self.folder is None:
            return False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.lstat()
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            return False
        if sys.platform == "win32":
            return True
        if found.st_uid != os.getuid():
            return False
        # A folder that others may read or write: its entries cannot be trusted, and it is not repaired silently.
        return not stat.S_IMODE(found.st_mode) & 0o077

    def path(self, key: str) -> Path:
        """The file of an entry."""
        assert self.folder is not None
        return self.folder / f"{key}.tcx"

    def get(self, key: str) -> Entry | None:
        """The entry, or `None` if there is none that can be trusted; a broken file is removed."""
        if not self.usable():
            return None
        path = self.path(key)
        try:
            content = _read_own(path)
        except OSError:
            return None
        entry = _unpack(content, key) if content is not None else None
        if entry is None:
            with suppress(OSError):
                path.unlink()
        return entry

    def put(self, key: str, data: bytes, meta: Mapping[str, Any]) -> bool:
        """Keep an entry; returns whether it was kept. A full disk or a forbidden folder is no error."""
        if not self.usable():
            return False
        assert self.folder is not None
        try:
            handle, name = tempfile.mkstemp(prefix=".tmp-", dir=self.folder)
        except OSError:
            return False
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_pack(data, meta, key))
            os.replace(name, self.path(key))
        except OSError:
            with suppress(OSError):
                os.unlink(name)
            return False
        return True

    def clear(self) -> int:
        """Remove all entries; returns how many."""
        if not self.usable():
            return 0
        assert self.folder is not None
        removed = 0
        for path in [*self.folder.glob("*.tcx"), *self.folder.glob(".tmp-*")]:
            with suppress(OSError):
                path.unlink()
                removed += 1
        return removed

    def size(self) -> tuple[int, int]:
        """Number of entries and their bytes."""
        if not self.usable():
            return 0, 0
        assert self.folder is not None
        sizes = [path.lstat().st_size for path in self.folder.glob("*.tcx")]
        return len(sizes), sum(sizes)


def _read_own(path: Path) -> bytes | None:
    """The content of a plain file of this user; `None` for a link or somebody else's file."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        foreign = sys.platform != "win32" and found.st_uid != os.getuid()
        return None if foreign or not stat.S_ISREG(found.st_mode) else file.read()


def _pack(data: bytes, meta: Mapping[str, Any], key: str) -> bytes:
    head = json.dumps({"key": key, "meta": dict(meta)}, sort_keys=True).encode()
    body = head + b"\n" + data
    return MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _unpack(content: bytes, key: str) -> Entry | None:
    start = len(MAGIC) + _DIGEST + 1
    if not content.startswith(MAGIC) or len(content) < start:
        return None
    digest, body = content[len(MAGIC) : len(MAGIC) + _DIGEST], content[start:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    head, separator, data = body.partition(b"\n")
    try:
        described = json.loads(head)
    except ValueError:
        return None
    if not separator or not isinstance(described, dict) or described.get("key") != key:
        return None
    meta = described.get("meta")
    return Entry(data, meta) if isinstance(meta, dict) else None
