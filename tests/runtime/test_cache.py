from __future__ import annotations

import os
import sys

import pytest

from tc_jupyter.runtime.cache import DiskCache, Entry, default_folder, key_of


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


def test_the_environment_chooses_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.setenv("TC_JUPYTER_CACHE", "off")
    assert default_folder() is None
    monkeypatch.delenv("TC_JUPYTER_CACHE")
    assert default_folder().name == "tc_jupyter"
