"""The ranges view: numbers, reasons, conditions and predictions agree with the analysis."""

from __future__ import annotations

import re

import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.ranges import Ranges, compare_range, evaluated
from tc_jupyter.notebook.widgets.views import view

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


@pytest.mark.parametrize(("sizes", "fine"), [((3, 6, 4), "true"), ((3, 5, 4), "false")])
def test_conditions_hold_or_fail_with_the_access(sizes, fine):
    picture = Ranges(function(WINDOW))
    picture.apply(dict(zip(["size:I", "size:J", "size:K"], sizes, strict=True)))
    html = picture.content().html
    assert f'data-holds="{fine}"' in html
    assert ("these sizes are refused" in html) == (fine == "false")
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
    assert "two expressions" in str(compare_range(picture.known, r, "0"))
    assert "no size `M`" in str(compare_range(picture.known, r, "0, M"))


def test_predict_first_hides_asks_and_counts():
    picture = Ranges(function(CONV), predict=True)
    assert "N - K + 1" not in picture.content(live=True).html
    picture.apply({"guess": "0, N"})
    assert "not for" in picture.content(live=True).html
    picture.apply({"guess": "0, N - K + 1"})
    assert picture.chosen == ("A", "i")
    picture.apply({"give_up": True})
    assert "1 of 2 ranges predicted, 2 answers" in picture.content(live=True).html
    assert "N - K + 1" in Ranges(function(CONV), predict=True).content().html


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
