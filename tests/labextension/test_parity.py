"""The editor's grammar and the Python parser accept and reject the same texts, and see the same names in them.

Needs node and the compiled tests of the front end (`jlpm test` in `labextension/`); skipped without them.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from random_cells import SAC_TOKENS, TC_TOKENS, SacPrograms, TcPrograms, mutant
from token_classes import sac_tokens, tc_tokens

from tc_jupyter.diagnostics import Diagnostic, SourceText, codes
from tc_jupyter.program.check_tc import check_tc
from tc_jupyter.syntax import own_operators, parse_tc
from tc_jupyter.syntax.library_names import MODULES
from tc_jupyter.syntax.sac_parser import parse_sac

ROOT = Path(__file__).resolve().parents[2]
VERDICT = ROOT / "labextension" / "test" / "build" / "test" / "verdict.js"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    NODE is None or not VERDICT.exists(), reason="no node, or the tests of the front end are not compiled (`jlpm test`)"
)


def editor(language: str, texts: list[str], tokens: bool = False) -> list[dict[str, Any]]:
    asked = json.dumps([{"language": language, "text": t, "tokens": tokens} for t in texts])
    answer = subprocess.run(
        [str(NODE), str(VERDICT)], input=asked, capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(answer.stdout)


# rules about single names that the editor knows as well, though they are no matter of grammar
BY_NAME = {"TC108", "TC109", "TC210", "TC501"}


def is_of_depth(told: Diagnostic) -> bool:
    """Whether a message is about a limit of depth, which is no matter of grammar."""
    return told.code.number == "TC503" or "nested" in told.message or "open here" in told.message


def is_of_a_comment(told: Diagnostic) -> bool:
    """Whether a message is about `#define`: a comment in the grammar, of which the kernel tells where a name is used."""
    return told.message.startswith("`#define`")


MODULE_CALL = re.compile(rf"\b(?:{'|'.join(sorted(MODULES))})(?:\.\w+)+ *\(")
"""`np.sum(...)`, `np.subtract.outer(...)`: the parser leaves the name to the checker, which says what to write; the editor knows no `.` there."""


def parsed_tc(text: str) -> list[str]:
    """Codes of the errors of the parser, and of the checker where it speaks for the parser."""
    found = parse_tc(SourceText(text), own_operators(text)).diagnostics  # a reducer may be one of another cell
    found = [d for d in found if not is_of_a_comment(d)]
    errors = (d for d in found if d.code.severity is codes.Severity.ERROR and d.code is not codes.UNSUPPORTED)
    own = [
        d.code.number for d in errors if not is_of_depth(d)
    ]  # what is not part of this version has a place in the grammar
    return own or (sorted(checked_tc(text)) if MODULE_CALL.search(text) else [])


def checked_tc(text: str) -> set[str]:
    """Codes of the errors that the checker of names and types adds."""
    source = SourceText(text)
    found = check_tc(parse_tc(source).unit, source).diagnostics
    return {d.code.number for d in found if d.code.severity is codes.Severity.ERROR}


def parsed_sac(text: str) -> list[str]:
    found = parse_sac(SourceText(text)).diagnostics
    return [d.code.number for d in found if d.code.severity is codes.Severity.ERROR and not is_of_depth(d)]


def fences(language: str) -> list[str]:
    found = []
    for path in sorted((ROOT / "tests" / "cases").rglob("*.md")):
        found += re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    return found


def disagreements(language: str, texts: list[str]) -> list[str]:
    found = []
    for text, told in zip(texts, editor(language, texts), strict=True):
        parsed = parsed_tc(text) if language == "tc" else parsed_sac(text)
        own = {p["code"] for p in told["problems"]}
        by_name = own & BY_NAME if language == "tc" and not parsed else set()
        if bool(parsed) != bool(own - by_name) or (by_name and not checked_tc(text)):
            found.append(
                f"{text!r}\n  python: {parsed}\n  editor: {[(p['code'], p['message']) for p in told['problems']]}"
            )
    return found


def notebook_cells(language: str) -> list[str]:
    """The bodies of the cells of the examples."""
    found = []
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            first, _, body = "".join(cell["source"]).partition("\n")
            if cell["cell_type"] == "code" and re.match(rf"%%{language}\b", first):
                found.append(body)
    return found


def own_corpus(language: str) -> list[str]:
    text = (ROOT / "labextension" / "test" / "corpus" / f"{language}.txt").read_text(encoding="utf-8")
    return [part.split("\n", 1)[1].split("--- outline")[0] for part in re.split(r"^=== ", text, flags=re.M)[1:]]


def written(language: str) -> list[str]:
    """Everything that people wrote: examples, literate cases, the README, the corpus of the editor."""
    readme = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    return [*notebook_cells(language), *fences(language), *readme, *own_corpus(language)]


def generated(language: str, count: int) -> list[list[str]]:
    programs = TcPrograms(1) if language == "tc" else SacPrograms(1)
    return [programs.cell() for _ in range(count)]


def agree(language: str, texts: list[str]) -> None:
    found = disagreements(language, texts)
    assert not found, f"{len(found)} of {len(texts)}\n" + "\n".join(sorted(found, key=len)[:12])


@pytest.mark.parametrize("language", ["tc", "sac"])
def test_written_texts(language: str) -> None:
    texts = written(language)
    assert len(texts) > 40
    assert len(notebook_cells(language)) > 3
    agree(language, texts)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("language", ["tc", "sac"])
def test_generated_programs_and_their_mutants(language: str, count: int) -> None:
    made, r = generated(language, count), random.Random(2)
    vocabulary = TC_TOKENS if language == "tc" else SAC_TOKENS
    whole = [" ".join(tokens) for tokens in made]
    parsed = parsed_tc if language == "tc" else parsed_sac
    assert not [text for text in whole if parsed(text)]
    agree(language, whole + [" ".join(mutant(tokens, r, vocabulary)) for tokens in made])


@pytest.mark.parametrize("language", ["tc", "sac"])
def test_token_classes_agree(language: str) -> None:
    parse, tokens = (parse_tc, tc_tokens) if language == "tc" else (parse_sac, sac_tokens)
    made = [" ".join(cell) for cell in generated(language, 150)]
    texts = [text for text in written(language) + made if not parse(SourceText(text)).diagnostics]
    texts = [text for text in texts if language == "sac" or not parsed_tc(text)]
    assert len(texts) > 170
    for text, told in zip(texts, editor(language, texts, tokens=True), strict=True):
        assert [tuple(token) for token in told["tokens"]] == tokens(text), text
