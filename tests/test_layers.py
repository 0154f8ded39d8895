"""One order of folders, told in three places: the package's docstring, the README and the contracts in `pyproject.toml`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import tc_jupyter

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tc_jupyter"


def layers() -> list[set[str]]:
    """The layers of the first contract, lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (arrow,) = [contract for contract in contracts if contract["type"] == "layers"]
    return [set(re.findall(r"\w+", layer)) for layer in reversed(arrow["layers"])]


def rank() -> dict[str, int]:
    return {name: number for number, layer in enumerate(layers()) for name in layer}


def told(text: str) -> list[str]:
    """The names of a list whose items begin with one or more names in backticks."""
    items = re.findall(r"^(?:\* |\| )((?:`\w+/?`(?:, )?)+)", text, flags=re.MULTILINE)
    return [name for item in items for name in re.findall(r"`(\w+)/?`", item)]


def parts() -> set[str]:
    """The folders and files of the package that hold code."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return folders | {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}


def readme_folders() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## The folders", 1)[1].split("\n## ", 1)[0]
    return told(section)


@pytest.mark.parametrize("names", [told(tc_jupyter.__doc__ or ""), readme_folders()], ids=["docstring", "README"])
def test_the_order_of_the_folders_is_that_of_the_contract(names):
    ranks = rank()
    assert set(names) == set(ranks)
    # the flow of a cell may visit two folders of one layer, or of neighbouring layers that do not know each other, in its own order
    order = [ranks[name] for name in names]
    assert sorted(order) == order


def test_every_part_of_the_package_has_a_layer():
    assert parts() <= set(rank())


def test_no_layer_is_told_twice():
    names = [name for layer in layers() for name in layer]
    assert len(names) == len(set(names))


def test_an_unknown_folder_would_be_found(tmp_path):
    assert "nonsense" not in rank()
    assert told("* `a`: x\n* `b`, `c`: y\nno `d`") == ["a", "b", "c"]


def test_the_contracts_hold():
    linter = pytest.importorskip("importlinter.cli")
    assert linter.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_a_forbidden_import_is_reported(tmp_path, monkeypatch):
    """The contract is checked by breaking it: a copy of the package in which `diagnostics` imports `function`."""
    linter = pytest.importorskip("importlinter.cli")
    import shutil
    import subprocess
    import sys

    del linter, monkeypatch
    shutil.copytree(PACKAGE, tmp_path / "tc_jupyter", ignore=shutil.ignore_patterns("labextension", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    broken = tmp_path / "tc_jupyter" / "diagnostics" / "nearest.py"
    broken.write_text("import tc_jupyter.function\n" + broken.read_text(encoding="utf-8"), encoding="utf-8")
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))",
    ]
    answer = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )
    assert answer.returncode != 0
    assert "tc_jupyter.diagnostics" in answer.stdout
