"""Pygments: every program is coloured without an error, and nbconvert colours cells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("pygments")

from pygments.token import Comment, Error, Keyword, Name, Number, Operator

from tc_jupyter.notebook.lexer import SacLexer, TcLexer

CASES = Path(__file__).parents[1] / "cases"


def programs(language: str) -> list[str]:
    texts = (path.read_text(encoding="utf-8") for path in sorted(CASES.rglob("*.md")))
    return [
        program
        for text in texts
        for program in re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


def kinds(lexer, text: str) -> dict[str, object]:
    return {value: kind for kind, value in lexer.get_tokens(text) if value.strip()}


def test_tc():
    found = kinds(TcLexer(), "def f(float(N) X) -> (Y) { Y(i) min=! max(exp(X(i)), 3.5e1f) where i in 0:N-1 } # done")
    assert found["def"] == Keyword
    assert found["f"] == Name.Function
    assert found["float"] == Keyword.Type
    assert found["min=!"] == Operator
    assert found["exp"] == Name.Builtin
    assert found["max"] == Name.Builtin
    assert found["3.5e1f"] == Number.Float
    assert found["where"] == Keyword
    assert found["# done"] == Comment.Single


def test_sac():
    found = kinds(SacLexer(), "float[*] inc(float[*] A) { /* x */ return { iv -> sqrt(A[iv]) + 1 | iv < [3] }; }")
    assert found["float"] == Keyword.Type
    assert found["inc"] == Name.Function
    assert found["return"] == Keyword
    assert found["sqrt"] == Name.Builtin
    assert found["/* x */"] == Comment.Multiline
    assert found["|"] == Operator


@pytest.mark.parametrize(("language", "lexer"), [("tc", TcLexer()), ("sac", SacLexer())])
def test_the_text_is_kept(language, lexer):
    texts = programs(language)
    assert texts
    for text in texts:
        assert "".join(value for _, value in lexer.get_tokens(text)).strip() == text.strip()


def test_legal_programs_have_no_error_token():
    import tc_jupyter as tc

    legal = [text for text in programs("tc")[::4] if tc.analyze(text).ok]
    assert len(legal) > 20
    for text in legal:
        assert not [value for kind, value in TcLexer().get_tokens(text) if kind is Error], text


@pytest.mark.slow
def test_nbconvert_colours_cells():
    pytest.importorskip("nbconvert")
    from nbformat.v4 import new_code_cell, new_notebook
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    from tc_jupyter.notebook.export import TcHTMLExporter

    try:
        get_lexer_by_name("tc")
    except ClassNotFound:
        pytest.skip("the package is not installed: its entry points are unknown")
    cell = new_code_cell("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i) }")
    notebook = new_notebook(cells=[cell], metadata={"language_info": {"name": "python", "pygments_lexer": "ipython3"}})
    page, _ = TcHTMLExporter().from_notebook_node(notebook)
    assert '<span class="kt">float</span>' in page
    assert '<span class="nf">f</span>' in page
    assert "http" not in page[page.index("<body") : page.index("</body")]
