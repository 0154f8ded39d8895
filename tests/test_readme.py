"""What the README says is true: its programs are legal, its Python runs, its commands, pictures and links exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.cli import COMMANDS
from tests.prose import long_sentences

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_language_in_one_screen():
    text = "\n".join(fences("tc"))
    analysis = tc.analyze(text)
    assert [d.message for d in analysis.diagnostics if d.is_error] == []
    assert len(text.splitlines()) < 40
    module = tc.compile(text)
    x = np.arange(4, dtype=np.float32)
    assert module.smooth(x).tolist() == [1, 2]
    assert module.upsample(x).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert module.edge(x).tolist() == [0, 1, 1, 1]


def test_the_python_runs(capsys):
    plain = [code for code in fences("python") if not code.startswith("%")]
    assert plain
    for code in plain:
        exec(compile(code, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "o: 0 <= i < R" in said
    assert "__global__" in said


def test_commands_exist():
    named = set(re.findall(r"`(?:tc-jupyter )?(check|emit|format|explain|bench|doctor|lab|lsp)\b", README))
    assert named <= set(COMMANDS)
    assert len(named) == 8


def test_the_two_commands_are_first_and_complete():
    commands = re.findall(r"^    (pip install .*?)(?:  +#.*)?$", README, re.MULTILINE)
    assert commands == [
        "pip install -e . && jupyter lab examples/quickstart.ipynb",
        'pip install -e ".[test]" && pytest',
    ]


@pytest.mark.parametrize("target", re.findall(r"(?:\]\(|src=\")(?!http)([^)#\"]+)", README))
def test_links_and_pictures_lead_somewhere(target):
    path = ROOT / target
    assert path.exists()
    if path.suffix == ".png":
        assert path.stat().st_size < 300_000


def test_code_is_shown_without_scrolling():
    """A hundred letters are what GitHub shows of a line of code."""
    fenced = [
        line
        for code in re.findall(r"^```\w+\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
        for line in code.splitlines()
    ]
    indented = [line[4:] for line in README.splitlines() if line.startswith("    ")]
    assert [line for line in (*fenced, *indented) if len(line) > 98] == []


def test_letters_of_pictures_are_as_large_as_the_text():
    """A picture says the width at which its letters have 13 pixels."""
    shown = re.findall(r'<img src="([^"]+)" width="(\d+)" alt="[^"]+">', README)
    assert len(shown) == 2
    for name, width in shown:
        pixels = int.from_bytes((ROOT / name).read_bytes()[16:20], "big")
        assert abs(pixels / 1.5 - int(width)) < 10


def test_it_is_short_and_so_are_its_sentences():
    assert len(README.splitlines()) <= 120
    assert long_sentences(README) == []


def test_no_number_of_speed_without_a_measurement():
    section = README.split("## How fast", 1)[1].split("\n## ", 1)[0]
    numbers = re.findall(r"\d+(?:\.\d+)?\s*(?:ms|µs|us|GB/s|GFLOP/s|x)\b", section)
    assert not numbers or "tc-jupyter bench" in section


def test_nothing_generated_is_committed():
    answer = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        pytest.skip("not a checkout")
    files = answer.stdout.splitlines()
    assert not [
        name
        for name in files
        if name.startswith("tc_jupyter/labextension/") or "node_modules" in name or name.endswith(".pyc")
    ]
    allowed = {
        "pyproject.toml",
        "tc_jupyter",
        "labextension",
        "tests",
        "examples",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
    }
    assert {name.split("/")[0] for name in files if not name.startswith(".")} <= allowed


def test_the_sac_function_runs_for_every_rank():
    (text,) = fences("sac")
    smooth = tc.compile(text, language="sac").smooth
    assert smooth(np.arange(4.0)).tolist() == [0.5, 1.5, 2.5]
    assert smooth(np.arange(6.0).reshape(3, 2)).tolist() == [[1, 2], [3, 4]]


def test_every_notebook_is_named():
    assert "(tc_jupyter/docs/lessons.md)" in README
    lessons = (ROOT / "tc_jupyter" / "docs" / "lessons.md").read_text(encoding="utf-8")
    assert all(f"(../../examples/{path.name})" in lessons for path in (ROOT / "examples").glob("*.ipynb"))
