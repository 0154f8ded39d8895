"""Compiled code on disk: bytes with a JSON description, found by the hash of everything that they depend on.

Loading an object means running code, so the folder must belong to the user alone (mode 0700 where the system has modes). An entry
is one file: a magic line, a keyed hash (HMAC) of the rest, the JSON on one line, the bytes. The key is a random number that the
folder keeps in a file for its owner, so that an entry with the right hash was written here, by this package and for this user, and
not unpacked from an archive or made by hand. An entry is written under another name and renamed, so readers see whole entries
only. What is broken, foreign or no plain file counts as absent and is rewritten. Nothing is unpickled.

Worked example: `cache.put(key, code, {"symbols": []})`; in another process `cache.get(key)` is `Entry(code, {"symbols": []})`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tc_jupyter.files import read_own, write_whole

ENVIRONMENT = "TC_JUPYTER_CACHE"
"""The one environment variable: a folder, or `off`."""
MAGIC = b"tc_jupyter cache 2\n"
SECRET = "secret"
"""The file with the key of all hashes of a folder."""
_DIGEST = 64
_SECRET_BYTES = 32


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
    """The platform's place for caches, or what `TC_JUPYTER_CACHE` says; `None` when it is `off`, or nobody's home is known."""
    wanted = os.environ.get(ENVIRONMENT)
    if wanted == "off":
        return None
    try:
        return Path(wanted).expanduser() if wanted else _of_platform()  # `%env` of a notebook leaves `~` as it is
    except RuntimeError:
        return None


def _of_platform() -> Path:
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
        return DiskCache(default_folder())

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
        entry = None
        try:
            entry = _unpack(read_own(path), key, self._secret())
        except FileNotFoundError:
            return None
        except OSError:  # a link, a pipe, a folder, somebody else's file, one that cannot be read
            pass
        if entry is None:
            _remove(path)
        return entry

    def _secret(self) -> bytes:
        """The key of all hashes of the folder, made when it is first needed.

        Raises:
            OSError: it cannot be made or read.
        """
        assert self.folder is not None
        path = self.folder / SECRET
        for _ in range(2):
            with suppress(OSError):
                found = read_own(path)
                if len(found) == _SECRET_BYTES:
                    return found
            _remove(path)
            handle, name = tempfile.mkstemp(prefix=".tmp-", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(secrets.token_bytes(_SECRET_BYTES))
                with suppress(FileExistsError):  # of two processes that are first, one wins
                    os.link(name, path) if hasattr(os, "link") else os.replace(name, path)
            finally:
                with suppress(OSError):
                    os.unlink(name)
        return read_own(path)

    def put(self, key: str, data: bytes, meta: Mapping[str, Any]) -> bool:
        """Keep an entry; returns whether it was kept. A full disk or a forbidden folder is no error."""
        if not self.usable():
            return False
        assert self.folder is not None
        try:
            content, path = _pack(data, meta, key, self._secret()), self.path(key)
            if path.is_dir() and not path.is_symlink():
                _remove(path)
            write_whole(path, content)
        except OSError:
            return False
        return True

    def clear(self) -> int:
        """Remove all entries; returns how many."""
        if not self.usable():
            return 0
        assert self.folder is not None
        removed = 0
        for path in [*self.folder.glob("*.tcx"), *self.folder.glob(".tmp-*")]:
            removed += _remove(path)
        return removed

    def size(self) -> tuple[int, int]:
        """Number of entries and their bytes."""
        if not self.usable():
            return 0, 0
        assert self.folder is not None
        sizes = [path.lstat().st_size for path in self.folder.glob("*.tcx")]
        return len(sizes), sum(sizes)


def _remove(path: Path) -> bool:
    """Remove what stands where an entry belongs; a folder there is ours to remove too, as the whole cache is."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        return False
    return True


def _hash(body: bytes, secret: bytes) -> bytes:
    return hmac.new(secret, body, hashlib.sha256).hexdigest().encode()


def _pack(data: bytes, meta: Mapping[str, Any], key: str, secret: bytes) -> bytes:
    head = json.dumps({"key": key, "meta": dict(meta)}, sort_keys=True).encode()
    body = head + b"\n" + data
    return MAGIC + _hash(body, secret) + b"\n" + body


def _unpack(content: bytes, key: str, secret: bytes) -> Entry | None:
    start = len(MAGIC) + _DIGEST + 1
    if not content.startswith(MAGIC) or len(content) < start:
        return None
    digest, body = content[len(MAGIC) : len(MAGIC) + _DIGEST], content[start:]
    if not hmac.compare_digest(_hash(body, secret), digest):
        return None
    head, separator, data = body.partition(b"\n")
    try:
        described = json.loads(head)
    except (ValueError, RecursionError):
        return None
    if not separator or not isinstance(described, dict) or described.get("key") != key:
        return None
    meta = described.get("meta")
    return Entry(data, meta) if isinstance(meta, dict) else None
