"""The extension for VS Code: its grammars are those of the lexers, and see what the lexers see."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.notebook.lexer import SacLexer, TcLexer
from tc_jupyter.syntax import KEYWORDS, SCALAR_TYPES, parse_sac, parse_tc

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "labextension" / "vscode"
NODE = shutil.which("node")


def grammars() -> Any:
    spec = importlib.util.spec_from_file_location("grammars", FOLDER / "grammars.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_grammars_are_those_of_the_lexers():
    made = grammars().made()
    again = "run `python labextension/vscode/grammars.py`"
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("syntaxes/*")} == made, again


def test_every_word_is_in_the_grammar():
    patterns = grammars().grammar("tc")["patterns"]
    words = [
        each["match"]
        for each in patterns
        if each.get("name", "").startswith(("keyword.control.tc", "storage", "constant.language", "support"))
    ]
    for word in (*KEYWORDS, *SCALAR_TYPES):
        assert any(re.fullmatch(pattern.partition("(?=")[0], word) for pattern in words), word


def test_the_manifest_names_what_is_there():
    manifest = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    named = manifest["contributes"]
    paths = [each["path"] for each in named["grammars"]] + [each["configuration"] for each in named["languages"]]
    assert all((FOLDER / path).is_file() for path in [*paths, manifest["main"]])
    # no workspace may name a command that is run
    assert named["configuration"]["properties"]["tc-jupyter.command"]["scope"] == "machine"
    assert "#8198" in (FOLDER / "README.md").read_text(encoding="utf-8")


def fences(language: str) -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests" / "cases").rglob("*.md"))]
    found = [each for text in texts for each in re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)]
    read = parse_tc if language == "tc" else parse_sac
    # the two kinds of regular expressions differ in what a letter is, and one knows only one line at a time
    return [each for each in found if each.isascii() and not read(SourceText(each)).diagnostics]


def plain(tokens: list[list[str]]) -> list[tuple[str, str]]:
    """The coloured tokens without blanks; a comment of several lines is one."""
    found: list[tuple[str, str]] = []
    for kind, text in tokens:
        if not text.strip() or kind.startswith("source"):
            continue
        if found and found[-1][0] == kind and kind.startswith("comment"):
            found[-1] = kind, found[-1][1] + "".join(text.split())
        else:
            found.append((kind, "".join(text.split())))
    return found


@pytest.mark.skipif(
    NODE is None or not (FOLDER / "node_modules").exists(), reason="run `npm ci` in labextension/vscode"
)
@pytest.mark.parametrize("language", ["tc", "sac"])
def test_an_editor_sees_what_the_lexer_sees(language):
    texts = fences(language)
    assert len(texts) > 100
    asked = json.dumps([{"language": language, "text": text} for text in texts])
    script = str(FOLDER / "test" / "tokens.js")
    done = subprocess.run([str(NODE), script], input=asked, capture_output=True, text=True, check=True, timeout=300)
    scopes = grammars().SCOPES
    lexer = {"tc": TcLexer, "sac": SacLexer}[language]()
    for text, told in zip(texts, json.loads(done.stdout), strict=True):
        own = [
            [f"{scopes[kind]}.{language}" if kind in scopes else f"source.{language}", word]
            for kind, word in lexer.get_tokens(text)
        ]
        assert plain(told) == plain(own), text
