"""When installing needs node: only if the front end is not built, or one of its sources is newer."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hook(monkeypatch):
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "labextension" / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv(module.SKIP, raising=False)
    monkeypatch.setattr(module, "good_node", lambda: False)
    return module


@pytest.fixture
def checkout(tmp_path, hook):
    (tmp_path / "labextension" / "src" / "grammar").mkdir(parents=True)
    (tmp_path / "labextension" / "src" / "index.ts").write_text("")
    (tmp_path / "labextension" / "package.json").write_text("{}")
    (tmp_path / "tc_jupyter").mkdir()
    for path in tmp_path.rglob("*.*"):
        os.utime(path, (1000, 1000))
    return tmp_path


def build(checkout, hook, when=2000):
    assets = checkout / hook.ASSETS
    assets.parent.mkdir(exist_ok=True)
    assets.write_text("{}")
    os.utime(assets, (when, when))


def node_hook(hook, checkout):
    return hook.NodeHook(str(checkout), {}, None, None, str(checkout / "dist"), "wheel")


def test_a_fresh_checkout_needs_node(hook, checkout):
    assert node_hook(hook, checkout).dependencies() == [hook.NODE]
    node_hook(hook, checkout).initialize("editable", {})
    assert hook.SKIP not in os.environ


def test_a_built_checkout_needs_neither_node_nor_a_build(hook, checkout, monkeypatch):
    build(checkout, hook)
    generated = checkout / "labextension" / "src" / "grammar" / "tc.parser.ts"
    generated.write_text("")
    os.utime(generated, (3000, 3000))
    assert node_hook(hook, checkout).dependencies() == []
    node_hook(hook, checkout).initialize("editable", {})
    assert os.environ.pop(hook.SKIP) == "1"


def test_a_source_distribution_has_equal_times(hook, checkout):
    build(checkout, hook, when=1000)
    assert node_hook(hook, checkout).dependencies() == []


def test_a_newer_source_is_built(hook, checkout):
    build(checkout, hook)
    os.utime(checkout / "labextension" / "src" / "index.ts", (2001, 2001))
    assert node_hook(hook, checkout).dependencies() == [hook.NODE]
    node_hook(hook, checkout).initialize("editable", {})
    assert hook.SKIP not in os.environ


def test_without_the_extension_nothing_is_asked_for(hook, checkout, monkeypatch):
    monkeypatch.setenv(hook.WITHOUT, "1")
    made = node_hook(hook, checkout)
    assert made.dependencies() == []
    made.initialize("standard", {})
    assert list((checkout / hook.ASSETS).parent.iterdir()) == []
    told = []
    monkeypatch.setattr(type(made), "app", property(lambda self: type("A", (), {"display_warning": told.append})))
    made.finalize("standard", {}, "x.whl")
    assert told == [hook.MISSING]
    build(checkout, hook)
    made.finalize("standard", {}, "x.whl")
    assert told == [hook.MISSING]


def test_a_good_node_is_used(hook, checkout, monkeypatch):
    monkeypatch.setattr(hook, "good_node", lambda: True)
    assert node_hook(hook, checkout).dependencies() == []


@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("v20.19.0", True),
        ("v20.18.1", False),
        ("v21.7.0", False),
        ("v22.12.0", True),
        ("v22.11.0", False),
        ("v24.1.0", True),
        ("?", False),
    ],
)
def test_versions_of_node(hook, version, good):
    assert hook.accepted(version) is good
