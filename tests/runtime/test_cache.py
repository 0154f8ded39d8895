from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import sys

import pytest

from tc_jupyter.files import LARGEST
from tc_jupyter.runtime import jit, own_code
from tc_jupyter.runtime.cache import MAGIC, SECRET, DiskCache, Entry, default_folder, key_of


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "cache")


def test_what_was_put_is_found(cache):
    key = key_of("a", b"b")
    assert cache.get(key) is None
    assert cache.put(key, b"code\n\0", {"symbols": ["x"]})
    assert cache.get(key) == Entry(b"code\n\0", {"symbols": ["x"]})
    assert cache.size()[0] == 1
    assert cache.clear() == 1
    assert cache.get(key) is None


def test_keys_of_any_text():
    assert key_of("\ud800") not in (key_of("\ud801"), key_of(""))


def test_keys_depend_on_where_parts_end():
    assert key_of("ab", "c") != key_of("a", "bc")


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign", "pickle", "other-key"])
def test_broken_entries_are_ignored_and_rewritten(cache, damage):
    key, other = key_of("k"), key_of("other")
    cache.put(key, b"code" * 100, {"n": 1})
    path = cache.path(key)
    content = path.read_bytes()
    if damage == "other-key":
        cache.put(other, b"other", {})
        changed = cache.path(other).read_bytes()
    else:
        changed = {
            "flip": content[:-1] + b"X",
            "cut": content[:80],
            "empty": b"",
            "foreign": b"hello",
            "pickle": b"\x80\x04\x95\x00",
        }[damage]
    path.write_bytes(changed)
    assert cache.get(key) is None
    assert not path.exists()
    assert cache.put(key, b"new", {})
    assert cache.get(key) == Entry(b"new", {})


@pytest.mark.skipif(sys.platform == "win32", reason="no modes on Windows")
def test_a_folder_that_others_may_write_is_not_used(cache):
    key = key_of("k")
    cache.put(key, b"code", {})
    os.chmod(cache.folder, 0o755)
    assert cache.get(key) is None
    assert not cache.put(key, b"code", {})
    os.chmod(cache.folder, 0o700)
    assert cache.get(key) is not None


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_are_not_followed(cache, tmp_path):
    key = key_of("k")
    cache.put(key, b"code", {})
    moved = tmp_path / "elsewhere"
    cache.path(key).rename(moved)
    cache.path(key).symlink_to(moved)
    assert cache.get(key) is None
    assert moved.exists()


def test_no_folder_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("x")
    for cache in (DiskCache(None), DiskCache(tmp_path / "file"), DiskCache(tmp_path / "file" / "below")):
        assert not cache.put(key_of("k"), b"", {})
        assert cache.get(key_of("k")) is None
        assert cache.clear() == 0


def test_a_folder_may_begin_at_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("TC_JUPYTER_CACHE", "~/kept")
    assert DiskCache.default().folder == tmp_path / "kept"


def test_the_environment_chooses_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.setenv("TC_JUPYTER_CACHE", "~nobody_has_this_name/x")
    assert DiskCache.default().folder is None
    monkeypatch.setenv("TC_JUPYTER_CACHE", "off")
    assert default_folder() is None
    monkeypatch.delenv("TC_JUPYTER_CACHE")
    assert default_folder().name == "tc_jupyter"


def put_in_place(path, what):
    """Something else than an entry at a path."""
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    elif what == "socket":
        folder = os.open(path.parent, os.O_RDONLY)  # the name of a socket is at most 107 bytes long
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(f"/proc/self/fd/{folder}/{path.name[:8]}")
            (path.parent / path.name[:8]).rename(path)
        finally:
            os.close(folder)
    elif what == "folder":
        path.mkdir()
        (path / "inside").write_text("x")
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "huge":
        path.touch()
        os.truncate(path, LARGEST + 1)
    elif what == "unreadable":
        path.write_text("x")
        path.chmod(0)


PLACES = ["pipe", "socket", "folder", "device", "huge", "unreadable"]


@pytest.mark.skipif(sys.platform != "linux", reason="pipes and sockets as Linux has them")
@pytest.mark.parametrize("what", PLACES)
def test_what_is_no_plain_file_is_absent_at_once_and_is_rewritten(cache, what):
    key = key_of("k")
    cache.put(key, b"code", {})
    put_in_place(cache.path(key), what)
    assert cache.get(key) is None
    assert cache.put(key, b"new", {})
    assert cache.get(key) == Entry(b"new", {})


@pytest.mark.skipif(sys.platform != "linux", reason="pipes and sockets as Linux has them")
@pytest.mark.parametrize("what", PLACES)
def test_an_entry_is_written_over_what_is_no_plain_file(cache, what):
    key = key_of("k")
    cache.put(key, b"code", {})
    put_in_place(cache.path(key), what)
    assert cache.put(key, b"new", {})
    assert cache.get(key) == Entry(b"new", {})


@pytest.mark.skipif(sys.platform != "linux", reason="pipes and sockets as Linux has them")
@pytest.mark.parametrize("what", PLACES)
def test_a_secret_that_is_no_plain_file_is_made_again(cache, what):
    key = key_of("k")
    cache.put(key, b"code", {})
    put_in_place(cache.folder / SECRET, what)
    assert cache.get(key) is None or what == "unreadable"  # root reads what nobody may read
    assert cache.put(key, b"new", {})
    assert cache.get(key) == Entry(b"new", {})


@pytest.mark.skipif(sys.platform == "win32", reason="no modes on Windows")
def test_the_secret_is_for_its_owner(cache):
    cache.put(key_of("k"), b"code", {})
    path = cache.folder / SECRET
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_bytes()) == 32
    assert cache.size()[0] == 1


def test_an_entry_of_another_folder_is_absent(cache, tmp_path):
    key, other = key_of("k"), DiskCache(tmp_path / "other")
    for each in (cache, other):
        each.put(key, b"code", {})
    cache.path(key).write_bytes(other.path(key).read_bytes())
    assert cache.get(key) is None


def test_a_hash_that_needs_no_secret_is_wrong(cache):
    key = key_of("k")
    cache.put(key, b"code", {})
    body = json.dumps({"key": key, "meta": {}}).encode() + b"\ncode"
    for magic in (MAGIC, b"tc_jupyter cache 1\n"):
        cache.path(key).write_bytes(magic + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        assert cache.get(key) is None


TEXT = "define i64 @seven() {\n  ret i64 7\n}\n"


@pytest.mark.skipif(not jit.available(), reason="llvmlite is not installed")
def test_an_object_is_told_from_a_part_of_one():
    code = jit.emit_object(TEXT)
    assert jit.is_object(code)
    for wrong in (b"", b"code", code[:4], code[:63], code[:64], code[: len(code) // 2], b"X" + code[1:]):
        assert not jit.is_object(wrong)


@pytest.mark.skipif(not jit.available(), reason="llvmlite is not installed")
def test_kept_code_with_wrong_content_is_made_again(monkeypatch, tmp_path):
    folder = tmp_path / "kept"
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(folder))
    own_code.own_code("test", TEXT)
    (path,) = folder.glob("*.tcx")
    whole = DiskCache(folder).get(path.stem)
    for data in (b"", b"code", whole.data[:100], whole.data[:-100]):
        DiskCache(folder).put(path.stem, data, whole.meta)
        assert own_code.own_code("test", TEXT).address("seven")
        assert DiskCache(folder).get(path.stem) == whole
