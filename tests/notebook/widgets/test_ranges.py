"""The ranges view: numbers, reasons, conditions and predictions agree with the analysis."""

from __future__ import annotations

import re

import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.card import Card
from tc_jupyter.notebook.widgets.formula import mathml
from tc_jupyter.notebook.widgets.ranges import Ranges, compare_range, evaluated
from tc_jupyter.notebook.widgets.views import VIEWS, view

WINDOW = "def window(float(I) B, float(J) C, float(K) D) -> (A) { A(i) +=! B(i) * C(i + j) * D(j) }"
CONV = "def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }"


def function(text: str):
    return next(iter(tc.compile(text).values()))


def test_numbers_follow_the_sizes():
    picture = Ranges(function(CONV), N=8, K=3)
    assert "0 .. 5 (6)" in picture.content().html
    picture.apply({"size:N": 20})
    assert "0 .. 17 (18)" in picture.content().html


def test_an_index_shows_its_rounds_and_marks_the_accesses():
    picture = Ranges(function(CONV))
    assert "<mark" not in picture.content().html
    picture.apply({"index": ["A", "i"]})
    html = picture.content().html
    assert "B(i + k)" in re.findall(r"<mark[^>]*><b>([^<]*)</b>", html)
    assert "round 1" in html
    assert "round 2" in html
    picture.apply({"index": ["A", "nothing"]})
    assert picture.chosen == ("A", "i")
    assert "0 &lt;= i + k &lt; N  -&gt;  0 &lt;= i &lt; N - K + 1 (round 2)" in html
    picture.apply({"index": ["A", "k"]})
    assert "(round 1)" not in picture.content().html  # the bound is the range


@pytest.mark.parametrize(("sizes", "fine"), [((3, 6, 4), "true"), ((3, 5, 4), "false")])
def test_conditions_hold_or_fail_with_the_access(sizes, fine):
    picture = Ranges(function(WINDOW))
    picture.apply(dict(zip(["size:I", "size:J", "size:K"], sizes, strict=True)))
    html = picture.content().html
    assert f'data-holds="{fine}"' in html
    assert ("with these sizes is refused" in html) == (fine == "false")
    assert "C(i + j)" in html


def test_boxes_have_origins():
    picture = Ranges(function("def f(float(N) X) -> (Y) { Y(i) = X(i - 2) }"), N=6)
    assert "Y starts at (2,) with shape (6,)" in picture.content().html


def test_predictions_count_every_way_to_write_a_range():
    picture = Ranges(function(CONV), predict=True)
    r = picture._range("A", "i")
    assert compare_range(picture.known, r, "0, N - K + 1") is None
    assert compare_range(picture.known, r, "K - K, 1 + N - K") is None
    assert "you say" in str(compare_range(picture.known, r, "0, N - K"))
    assert "the two ends" in str(compare_range(picture.known, r, "0"))
    assert "no size `M`" in str(compare_range(picture.known, r, "0, M"))


def test_predict_first_hides_asks_and_counts():
    picture = Ranges(function(CONV), predict=True)
    assert "N - K + 1" not in picture.content(live=True).html
    picture.apply({"guess": "0, N"})
    assert "not for" in picture.content(live=True).html
    picture.apply({"guess": "0, N - K + 1"})
    assert picture.chosen == ("A", "i")
    picture.apply({"give_up": True})
    assert "what is the shape of" in picture.content(live=True).html
    picture.apply({"guess": "N, K"})
    assert "`A` has 1 dimensions" in picture.problem
    picture.apply({"guess": "N - K"})
    assert "not for N = 0, K = 0: you say (0,), it is (1,)" in picture.problem
    picture.apply({"guess": "(N - K + 1)"})
    assert not picture.asking
    assert picture.chosen == ("A", "i")
    assert "2 of 3 predicted, 5 answers" in picture.content(live=True).html
    assert "N - K + 1" in Ranges(function(CONV), predict=True).content().html


def test_formulas_are_typeset_and_read_the_same_without_tags():
    f = function("def f(float(N) X, float(M) Z) -> (Y) { Y(i) +=! X(2 * i + k) where k in 0:2 }")
    html = Ranges(f).content().html
    formulas = re.findall(r'<math title="([^"]*)">(.*?)</math>', html)
    assert ("0 &lt;= i &lt; N//2", "0≤i&lt;⌊N/2⌋") in [
        (title, re.sub("<[^>]*>", "", inner)) for title, inner in formulas
    ]


@pytest.mark.parametrize(
    ("python", "read"),
    [
        ("N - K + 1", "N−K+1"), ("N - (K + 1)", "N−(K+1)"), ("-2 * N", "−2·N"), ("N - -K", "N−(−K)"), ("min(N, M - 1)", "min(N,M−1)"),
        ("(N + 1) // 2 % 3", "⌊(N+1)/2⌋mod3"), ("N if K > 0 else 0", "N if K&gt;0, else 0"), ("N // (2 * K)", "⌊N/(2·K)⌋"), ("c[i + 1]", "c[i+1]"), ("2 * c[i, j // 2]", "2·c[i,⌊j/2⌋]"),
    ],
)  # fmt: skip
def test_every_operator_is_typeset(python, read):
    assert re.sub("<[^>]*>", "", mathml(python)) == read


def test_a_failing_condition_is_drawn_with_its_witness():
    picture = Ranges(function(WINDOW))
    picture.apply({"size:I": 3, "size:J": 6, "size:K": 4})
    assert "data-witness" not in picture.content().html
    picture.apply({"size:J": 5})
    html = picture.content().html
    assert "C(i + j) reaches 0 to 5 of C, which has 0 to 4: 1 outside" in html
    assert 'data-outside="1"' in html
    assert re.findall(r"<mark data-offending[^>]*><b>([^<]*)</b>", html) == ["✗C(i + j)"]
    assert "at i = 2, j = 3 it reads" in re.sub("<[^>]*>", "", html)


def test_a_range_that_ends_before_it_begins_is_drawn():
    picture = Ranges(function(CONV))
    picture.apply({"size:N": 3, "size:K": 6})
    assert "range of i: it would begin at 0 and end before -2, which is 2 too early" in picture.content().html


def test_a_card_that_asks_first_shows_nothing_else():
    f = function(CONV)
    card = Card("<p>the answer</p>", {"conv": f, "again": f}, VIEWS, "text", predict=True)
    for answers in (("0, N - K + 1", "0, K", "N - K + 1"),) * 2:
        for answer in answers:
            shown = card.content(live=True)
            assert "the answer" not in str(shown.data["head"]) + shown.html
            card.apply({"guess": answer})
    assert "the answer" in str(card.content(live=True).data["head"])


@pytest.mark.parametrize(
    "text", ["__import__('os')", "N.real", "(", "9**9**9", "N if 1 else x", "10000000000", "'a'", "[1]"]
)
def test_answers_are_only_arithmetic(text):
    with pytest.raises(ValueError):
        evaluated(text, {"N": 3})


def test_the_language_rounds_down():
    assert evaluated("(N - 8) / 2", {"N": 3}) == -3


def test_bad_values_and_open_ranks():
    picture = Ranges(function(CONV))
    picture.apply({"size:N": "-1", "index": 5, "guess": "1", "predict": 0})
    assert "whole number" in picture.content().html
    f = next(iter(tc.compile("int[*] twice(int[*] a) { return { iv -> 2 * a[iv] }; }", language="sac").values()))
    assert "known at the call" in view(f, "ranges").bundle()["text/html"]


@pytest.mark.parametrize(
    "answer",
    [
        "0 <= i < N - K + 1",
        "0<=i<=N-K",
        "-1 < i < 1 + N - K",
        "[0, N-K+1)",
        "[0,N-K]",
        "[0, N-K+1[",
        "0:N - K + 1",
        "0, N + 1 - K",
    ],
)
def test_an_answer_in_any_way_of_writing(answer):
    picture = view(function(CONV), "ranges", predict=True, N=8, K=3).picture
    picture.apply({"guess": answer})
    assert picture.solved == {("A", "i")}
    picture.apply({"guess": answer.replace("i", "k").replace("1", "2")})
    assert picture.solved == {("A", "i")}


@pytest.mark.parametrize(
    "answer", ["", "0", "0 <= i", "0 <= j < N", "[0, N", "[[", "0:1:2", "i < i < i", "0 <= i <", "(", ","]
)
def test_an_answer_that_is_no_range(answer):
    picture = view(function(CONV), "ranges", predict=True, N=8, K=3).picture
    picture.apply({"guess": answer})
    assert picture.solved == set()
    assert picture.problem


def test_text_says_why_and_what_is_checked():
    """The same rows as at the command line."""
    said = repr(view(function(WINDOW), "ranges"))
    assert "0 <= j < K  reduction  0 <= j < K  (D); round 1" in said
    assert "checked at call: I + K <= J + 1  (`C(i + j)`)" in said
    scattered = repr(view(function("def f(float(N) P) -> (int32(50) H) { H(int32(P(i) * 25)) +=! 1 }"), "ranges"))
    assert scattered.count("stays inside H") == 1
    assert "data_dependent" not in scattered


def test_help_names_every_view():
    assert [name for name in VIEWS if f"`{name}`" not in (tc.view.__doc__ or "")] == []
