"""The error index: every code has a section, and every example gives the code that it explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tc_jupyter.diagnostics import codes, explain, index_sections
from tests.literate import FENCES, Case, read_cases

INDEX = Path(codes.__file__).with_name("index.md")
CASES = read_cases(INDEX, frozenset({"diagnostics"}))


def own_lines(case: Case) -> str:
    """The messages of the code that the section explains."""
    number = case.title.split()[0]
    return "".join(f"{line}\n" for line in FENCES["diagnostics"](case, ()).splitlines() if f"[{number}]" in line)


def fence(text: str, kind: str) -> str | None:
    """The content of the first fence of a kind."""
    start = text.find(f"```{kind}\n")
    return None if start < 0 else text[start + len(kind) + 4 : text.index("\n```", start)]


def test_every_code_has_a_section_with_example_and_cure():
    assert list(index_sections()) == list(codes.ALL)
    for number, section in index_sections().items():
        assert section.splitlines()[0] == f"## {number} {codes.ALL[number].name}"
        assert codes.ALL[number].severity.value.capitalize() in section
        assert "```" in section
        assert "**Cure.**" in section


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_example(case, update_golden):
    if case.language == "sac":
        pytest.importorskip("tc_jupyter.compiler.analysis_sac")
    if update_golden:
        text = INDEX.read_text(encoding="utf-8")
        for item in reversed(case.expectations):
            section = text.index(f"## {case.title}\n")
            start = text.index("```diagnostics\n", section) + len("```diagnostics\n")
            text = text[:start] + own_lines(case) + text[text.index("```", start) :]
            assert item.kind == "diagnostics"
        INDEX.write_text(text, encoding="utf-8")
        return
    lines = own_lines(case)
    assert lines, f"the example gives {sorted({item.code.number for item in case.analysis.diagnostics})}"
    assert lines == case.expectations[0].text


CALLED = [number for number, section in index_sections().items() if fence(section, "python") is not None]


@pytest.mark.parametrize("number", CALLED)
def test_example_at_a_call(number):
    import tc_jupyter
    from tc_jupyter.diagnostics import CallError, CompileError

    code = fence(index_sections()[number], "python")
    assert code is not None
    if 'language="sac"' in code:
        pytest.importorskip("tc_jupyter.compiler.analysis_sac")
    with pytest.raises((CallError, CompileError), match=number):
        exec(code, {"tc": tc_jupyter})


def test_explain():
    assert (
        explain("TC204")
        == explain("tc204")
        == explain("204")
        == explain("reduction-missing")
        == index_sections()["TC204"]
    )
    with pytest.raises(KeyError, match=r"no message 'TC999'; the codes are TC101 to TC1\d\d, .*, TC901"):
        explain("TC999")
