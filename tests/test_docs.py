"""The reference pages agree with the package; their programs are run by `test_cases.py`."""

from __future__ import annotations

import re

import pytest

from tc_jupyter.diagnostics import codes
from tc_jupyter.program.expr import DType
from tc_jupyter.program.functions import FUNCTIONS
from tests.literate import DOCS

PAGES = sorted(DOCS.glob("*.md"))
LANGUAGE = (DOCS / "language.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return LANGUAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_function_is_listed_once():
    rows = re.findall(r"^\| [^|`]*[123][^|]*\|(.*)\|$", section("Functions"), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(name for name in listed if name != "bool") == sorted(FUNCTIONS)


def test_every_type_is_listed():
    assert {kind.value for kind in DType} <= set(re.findall(r"\w+", section("Types")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_codes_and_links_exist(page):
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"\bTC\d{3}\b", text)) <= set(codes.ALL)
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (page.parent / target).exists(), target


def test_docstrings_name_sections_that_exist():
    titles = {
        page.name: set(re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)) for page in PAGES
    }
    named = [
        (page, title)
        for path in DOCS.parent.rglob("*.py")
        for page, rest in re.findall(r"`docs/(\w+\.md)`, ((?:'[^']+'(?:,| and)? ?)+)", path.read_text(encoding="utf-8"))
        for title in re.findall(r"'([^']+)'", rest)
    ]
    assert len(named) > 5
    for page, title in named:
        assert title in titles[page], f"{page} has no section {title!r}"
