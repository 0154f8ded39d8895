"""The card as HTML: the same statements as the text, readable where scripts and styles are stripped."""

from __future__ import annotations

import html as entities
import re
from html.parser import HTMLParser

import pytest

import tc_jupyter as tc
from tc_jupyter.compiler.definition import Options
from tc_jupyter.compiler.text_form import STATUS, open_conditions, statements, text_form
from tc_jupyter.notebook.card import MOST_MESSAGES, SOURCE_LIMIT, html_card
from tc_jupyter.notebook.report import Report

CELLS = {
    "conv": "def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }",
    "look": "def look(float(V,D) L, int32(B) I) -> (O) { O(b,d) = L(I(b), d) }",
    "softmax": """def softmax(float(N,D) X) -> (Y) {
  M(n) max=! X(n,d)
  E(n,d) = exp(X(n,d) - M(n))
  S(n) +=! E(n,d)
  Y(n,d) = E(n,d) / S(n)
}""",
    "moved": "def moved(float(N) A) -> (B) { B(i) = A(i) where i in 1:N-1 }",
    "call": "def g(float(N) X) -> (Y) { Y(i) = X(i) }\ndef f(float(N) X) -> (Z) {\n  Y = g(X)\n  Z(i) = Y(i)\n}",
    "scalars": "def s(float a, float b) -> (c, d) {\n  c = a + b\n  d = a - b\n}",
    "broken": "def f(float(N,K) A) -> (B) {\n  B(i) = A(i,k)\n  C(i) = foo(A(i, 0))\n}",
    "open": "def f(float(N) A) -> (B) { B(i,j) = A(i + j) }",
    "no def": "nonsense <b>&amp;</b>",
    "empty": "",
    "lines": "def f(float(N) A)\n   -> (B) { B(i) =\n   A(i) + \n A(3) }",
}
VOID = {"br", "hr", "img"}
ELEMENTS = {
    "div",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "code",
    "pre",
    "b",
    "i",
    "u",
    "span",
    "details",
    "summary",
    "abbr",
}


class Page(HTMLParser):
    """Elements, attributes and text; every element must be closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def squeezed(text: str) -> str:
    return "".join(text.split()).replace("`", "")


@pytest.mark.parametrize("name", CELLS)
def test_the_card_is_plain_html(name):
    page = Page(html_card(tc.analyze(CELLS[name]), "cpu"))
    assert set(page.tags) <= ELEMENTS
    assert {attribute for attribute, _ in page.attributes} <= {"style", "data-tc", "rowspan", "title", "tabindex"}
    assert not any("url(" in (value or "") or "http" in (value or "") for _, value in page.attributes)


@pytest.mark.parametrize("name", CELLS)
def test_the_card_says_what_the_text_says(name):
    analysis = tc.analyze(CELLS[name])
    shown = squeezed(Page(html_card(analysis, "an engine")).text)
    text = text_form(analysis, "an engine")
    assert "engine: an engine" in text
    assert "engine:anengine" in shown
    for found in analysis.functions.values():
        for block in statements(found):
            for said in (block.text, *(part for row in block.rows for part in (row.range, row.kind, row.because))):
                assert squeezed(said) in shown
                assert said in text
        for row in open_conditions(found):
            for said in (STATUS[row.status], row.text, row.about):
                assert squeezed(said) in shown
                assert said in text
    for diagnostic in analysis.diagnostics:
        for said in (diagnostic.code.number, diagnostic.message, diagnostic.label, diagnostic.help or ""):
            assert squeezed(said) in shown
            assert " ".join(said.split()) in " ".join(text.split())  # long help is broken into lines


def test_signature_shapes_and_origin():
    shown = Page(html_card(tc.analyze(CELLS["moved"]), "")).text
    assert "moved (float32(N) A) → float32 B(N - 2) starting at (1)" in shown
    both = Page(html_card(tc.analyze(CELLS["scalars"]), "")).text
    assert "s (float32 a, float32 b) → ( float32 c , float32 d )" in both


def test_rounds_and_temporaries():
    shown = Page(html_card(tc.analyze(CELLS["conv"]), "")).text
    assert "0 <= i + k < N (B) round 2" in shown
    assert (
        "temporary float32 M(N), float32 E(N, D), float32 S(N)"
        in Page(html_card(tc.analyze(CELLS["softmax"]), "")).text
    )


def test_places_are_underlined():
    card = html_card(tc.analyze(CELLS["broken"]), "")
    underlined = [entities.unescape(re.sub("<[^>]*>", "", part)) for part in re.findall(r"<u .*?</u>", card)]
    assert underlined == ["=", "k", "foo"]
    assert "✗ error TC204" in card
    assert "(reduction-missing, line 2, column 8)" in Page(card).text


def test_user_text_is_escaped():
    card = html_card(tc.analyze("def f(float(N) A) -> (B) { B(i) = A(i) <script> }"), "<i>", {"f": {"a<b": "x < y"}})
    page = Page(card)
    assert "script" not in page.tags
    assert card.count("<i>") == card.count("<i>help:")
    assert "engine: <i>" in page.text
    assert "a<b" in page.text
    assert "x < y" in page.text


def test_generated_text_is_folded_and_cut():
    card = html_card(tc.analyze(CELLS["conv"]), "", {"conv": {"generated CUDA": "x" * (SOURCE_LIMIT + 10)}})
    assert "details" in Page(card).tags
    assert "(cut: `%tc source` shows all)" in card
    assert len(card) < SOURCE_LIMIT + 10_000


def test_a_cell_with_a_thousand_mistakes_has_a_card_of_bounded_size():
    body = "\n".join(f"  Y{i}(i) = nothing{i}(i)" for i in range(1000))
    analysis = tc.analyze(f"def f(float(N) X) -> (Y0) {{\n{body}\n}}")
    card = html_card(analysis, "")
    assert len(analysis.diagnostics) > MOST_MESSAGES
    assert f"{len(analysis.diagnostics) - MOST_MESSAGES} more messages" in card


def test_a_long_line_is_cut_around_the_place():
    text = "def f(float(N) X) -> (Y) { Y(i) = " + "X(i) + " * 60 + "foo(i) }"
    card = html_card(tc.analyze(text), "")
    assert "1 ...+ X(i)" in Page(card).text
    assert "foo" in Page(card).text
    assert Page(card).text.count("X(i)") < 60


def test_a_sac_cell_shows_what_is_demanded_of_every_argument_and_its_three_rewrites():
    text = (
        "float[*] f(float[*] A, int[.] s, bool b) { return { iv -> A[iv] + 1 | iv < shape(s) }; }\n"
        "int[.] g(float[.,.] A) { return shape(A); }"
    )
    analysis = tc.analyze(text, language="sac")
    report = Report(analysis, Options(text, "sac"), "")
    for shown in (html_card(analysis, ""), text_form(analysis)):
        assert "demands A: value, s: shape, b: nothing" in shown
        assert "demands A: shape" in shown
    for step in ("as written", "bounds are inferred", "dots become names", "comprehensions become with-loops"):
        assert report.html().count(f"// {step}") == 2


def test_the_schedule_that_was_given_is_shown():
    """The loops, and the steps that make them; a function that was given none has no such line."""
    f = tc.compile("def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }").mv
    given = f.with_schedule(f.schedule().split("o", "i", 8).parallel("o", "i.outer"))
    loops = "  o: i.outer parallel, i.inner, j"
    assert loops in repr(tc.card(given))
    assert loops in tc.card(given).html()
    assert entities.escape(given.schedule().to_python("mv")) in tc.card(given).html()
    assert "no step, the loops of the text" in repr(tc.card(f.with_schedule(f.schedule())))
    assert "schedule" not in repr(tc.card(f))


def test_the_default_schedule_can_be_looked_at_and_changed():
    """`f.schedule()` is that of the text, which calls do not run; the other one is a schedule of `f`, too."""
    f = tc.compile("def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }").mv
    default = f.default_schedule(R=300, C=300)
    assert default.steps
    assert f.with_schedule(default).schedule().steps == default.steps
    with pytest.raises(ValueError, match="no size"):
        f.default_schedule(Q=3)
