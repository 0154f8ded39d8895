"""The editor's grammar and the Python parser accept and reject the same texts, and see the same names in them.

Needs node and the compiled tests of the front end (`jlpm test` in `labextension/`); skipped without them.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tc_jupyter.diagnostics import SourceText, codes
from tc_jupyter.program.check_tc import check_tc
from tc_jupyter.syntax import parse_tc
from tc_jupyter.syntax.sac_parser import parse_sac

ROOT = Path(__file__).resolve().parents[2]
VERDICT = ROOT / "labextension" / "test" / "build" / "test" / "verdict.js"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    NODE is None or not VERDICT.exists(), reason="no node, or the tests of the front end are not compiled (`jlpm test`)"
)


def editor(language: str, texts: list[str]) -> list[dict[str, Any]]:
    asked = json.dumps([{"language": language, "text": t} for t in texts])
    answer = subprocess.run(
        [str(NODE), str(VERDICT)], input=asked, capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(answer.stdout)


# rules about single names that the editor knows as well, though they are no matter of grammar
BY_NAME = {"TC108", "TC109", "TC210", "TC501"}


def parsed_tc(text: str) -> list[str]:
    """Codes of the errors of the parser; limits of depth are no matter of grammar."""
    found = parse_tc(SourceText(text)).diagnostics
    return [d.code.number for d in found if d.code.severity is codes.Severity.ERROR and "nested" not in d.message]


def checked_tc(text: str) -> set[str]:
    """Codes of the errors that the checker of names and types adds."""
    source = SourceText(text)
    found = check_tc(parse_tc(source).unit, source).diagnostics
    return {d.code.number for d in found if d.code.severity is codes.Severity.ERROR}


def parsed_sac(text: str) -> list[str]:
    found = parse_sac(SourceText(text)).diagnostics
    return [d.code.number for d in found if d.code.severity is codes.Severity.ERROR and "nested" not in d.message]


def fences(language: str) -> list[str]:
    found = []
    for path in sorted((ROOT / "tests" / "cases").rglob("*.md")):
        found += re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    return found


class Programs:
    """Random syntactically correct cells, as lists of tokens."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def several(self, item: Callable[[], list[str]], low: int, high: int, separator: str | None = ",") -> list[str]:
        out: list[str] = []
        for i in range(self.r.randint(low, high)):
            out += ([separator] if i and separator else []) + item()
        return out

    def name(self) -> list[str]:
        return [self.r.choice(["A", "B", "C", "X", "Y", "i", "j", "k", "N", "M", "alpha", "x_1", "exp", "definition"])]

    def number(self) -> list[str]:
        return [
            self.r.choice(["0", "7", "12u", "3LL", "0x1F", "0b101", "1.", ".5", "7e-2", "7.5E3f", "0x1.8p3", "2.f"])
        ]


class TcPrograms(Programs):
    def cell(self) -> list[str]:
        return self.several(self.definition, 1, 2, None)

    def definition(self) -> list[str]:
        results = self.result() if self.r.random() < 0.3 else ["(", *self.several(self.result, 1, 3), ")"]
        body = self.several(self.statement, 0, 3, None)
        return ["def", *self.name(), "(", *self.several(self.param, 0, 3), ")", "->", *results, "{", *body, "}"]

    def param(self) -> list[str]:
        return [*self.type(), *self.name()]

    def result(self) -> list[str]:
        return [*(self.type() if self.r.random() < 0.2 else []), *self.name()]

    def type(self) -> list[str]:
        scalar = self.r.choice(["float", "int32", "bool", "double", "uint8", "half"])
        dims = lambda: self.name() if self.r.random() < 0.8 else ["3"]  # noqa: E731
        return [scalar, *(["(", *self.several(dims, 0, 3), ")"] if self.r.random() < 0.9 else [])]

    def statement(self) -> list[str]:
        if self.r.random() < 0.1:
            return [*self.several(self.name, 2, 3), "=", *self.name(), "(", *self.several(self.name, 0, 3), ")"]
        target = [*self.name(), *(["(", *self.several(self.name, 0, 3), ")"] if self.r.random() < 0.9 else [])]
        operator = self.r.choice(["=", "+=!", "+=", "*=", "max=!", "min=", "*=!"])
        matched = (
            ["<=>", *self.name(), "(", *self.several(lambda: self.expr(1), 0, 2), ")"] if self.r.random() < 0.03 else []
        )
        where = ["where", *self.several(self.clause, 1, 3)] if self.r.random() < 0.3 else []
        return [*target, operator, *self.expr(3), *matched, *where]

    def clause(self) -> list[str]:
        form = self.r.randrange(4)
        if form == 0:
            return [*self.name(), "in", *self.expr(1), ":", *self.expr(1)]
        if form == 1:
            return [*self.name(), "=", "[", *self.expr(1), ",", *self.expr(1), "["]
        return [*self.name(), "=", *self.expr(2)] if form == 2 else ["exists", *self.expr(2)]

    def expr(self, depth: int) -> list[str]:
        if depth > 1 and self.r.random() < 0.1:
            return [
                "(",
                *self.expr(depth - 1),
                "<",
                *self.expr(0),
                ")",
                "?",
                *self.expr(depth - 1),
                ":",
                *self.expr(depth - 1),
            ]
        out = self.atom(depth)
        for _ in range(self.r.choice([0, 0, 1, 2]) if depth else 0):
            out += [self.r.choice(["+", "-", "*", "/", "%"]), *self.atom(depth - 1)]
        if depth and self.r.random() < 0.1:
            out += [self.r.choice(["<", "<=", ">", ">="]), *self.atom(depth - 1)]
        if depth and self.r.random() < 0.08:
            out += [self.r.choice(["==", "!="]), *self.atom(depth - 1)]
        if depth and self.r.random() < 0.08:
            out += [self.r.choice(["&&", "||"]), *self.atom(depth - 1)]
        return out

    def atom(self, depth: int) -> list[str]:
        form = self.r.random()
        if depth <= 0 or form < 0.25:
            return self.name() if self.r.random() < 0.7 else self.number()
        if form < 0.35:
            return [self.r.choice(["-", "!"]), *self.atom(depth - 1)]
        if form < 0.45:
            return ["(", *self.expr(depth - 1), ")"]
        if form < 0.5:
            return [self.r.choice(["true", "false", "inf", "nan", "X.0", "A.1"])]
        if form < 0.55:
            return [self.r.choice(["float", "int32"]), "(", *self.expr(depth - 1), ")"]
        if form < 0.6:
            return [self.r.choice(["min", "max"]), "(", *self.several(lambda: self.expr(depth - 1), 1, 3), ")"]
        return [*self.name(), "(", *self.several(lambda: self.expr(depth - 1), 0, 3), ")"]


TC_TOKENS = [
    "def",
    "where",
    "in",
    "exists",
    "min",
    "max",
    "float",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    "=",
    "+=",
    "+=!",
    "max=!",
    "<",
    "<=",
    "==",
    "&&",
    "||",
    "->",
    "<=>",
    "!",
    "+",
    "-",
    "*",
    "/",
    "%",
    ".",
    "X",
    "i",
    "3",
    "1.5",
    "3i",
    "X.0",
    "017",
    ";",
    "**",
    "//",
    "..",
    "and",
]


def mutant(tokens: list[str], r: random.Random, vocabulary: list[str]) -> list[str]:
    at = r.randrange(len(tokens))
    form = r.randrange(4)
    if form == 0:
        return tokens[:at] + tokens[at + 1 :]
    if form == 1:
        return [*tokens[:at], tokens[at], *tokens[at:]]
    other = r.choice(vocabulary)
    return [*tokens[:at], other, *tokens[at + (form == 2) :]]


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


def test_literate_cases() -> None:
    texts = fences("tc")
    assert len(texts) > 20
    assert disagreements("tc", texts) == []


def test_generated_programs_and_their_mutants() -> None:
    programs, r = TcPrograms(1), random.Random(2)
    made = [programs.cell() for _ in range(2000)]
    texts = [" ".join(tokens) for tokens in made] + [" ".join(mutant(tokens, r, TC_TOKENS)) for tokens in made]
    found = disagreements("tc", texts)
    assert not found, f"{len(found)} of {len(texts)}\n" + "\n".join(sorted(found, key=len)[:12])


def test_names_agree() -> None:
    programs = TcPrograms(3)
    texts = [" ".join(programs.cell()) for _ in range(300)]
    for text, told in zip(texts, editor("tc", texts), strict=True):
        parsed = parse_tc(SourceText(text))
        defs = [d.name.name for d in parsed.unit.defs]
        params = [p.name.name for d in parsed.unit.defs for p in d.params]
        assert [line[4:] for line in told["outline"] if line.startswith("def ")] == defs
        assert [line[6:] for line in told["outline"] if line.startswith("param ")] == params


def sac_corpus() -> list[str]:
    parts = re.split(
        r"^=== ", (ROOT / "labextension" / "test" / "corpus" / "sac.txt").read_text(encoding="utf-8"), flags=re.M
    )
    return [p.split("\n", 1)[1].split("--- outline")[0] for p in parts if p.startswith("accept")]


SAC_TOKENS = [
    "return",
    "with",
    "genarray",
    "fold",
    "float",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ",",
    ";",
    ":",
    "|",
    "->",
    ".",
    "...",
    "iv",
    "i",
    "j",
    "A",
    "3",
    "1.5",
    "=",
    "+",
    "++",
    "-",
    "*",
    "<",
    "<=",
    "==",
    "&&",
    "||",
    "?",
    "!",
    "%",
]


def test_sac_corpus_cases_and_mutants() -> None:
    texts = sac_corpus() + fences("sac")
    assert len(texts) >= 8
    r = random.Random(4)
    words = re.compile(r"/\*.*?\*/|//[^\n]*\n|[A-Za-z_]\w*|\d+\.?\d*|\.\.\.|\+\+|->|<=|>=|==|!=|&&|\|\||\S", re.S)
    mutants = [
        " ".join(mutant(words.findall(t), r, SAC_TOKENS)) for t in texts[:60] for _ in range(1 + 600 // len(texts))
    ]
    found = disagreements("sac", texts + mutants)
    assert not found, f"{len(found)} of {len(texts) + len(mutants)}\n" + "\n".join(sorted(found, key=len)[:14])
