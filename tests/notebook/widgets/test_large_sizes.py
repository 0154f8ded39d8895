"""Views at sizes that nobody can draw, or that are 0 or 1: a picture or a sentence, at once."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.iteration_space import IterationSpace
from tc_jupyter.notebook.widgets.picture import Picture
from tc_jupyter.notebook.widgets.schedule import ScheduleView
from tc_jupyter.notebook.widgets.views import VIEWS

PRODUCT = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"
SOFTMAX = (
    "def softmax(float(N, D) X) -> (Y) { M(n) max=! X(n, d)  E(n, d) = exp(X(n, d) - M(n)) "
    " S(n) +=! E(n, d)  Y(n, d) = E(n, d) / S(n) }"
)
FREE = "def f(int64 n, int64 m) -> (Y) { Y(i, j) = i * j where i in 0:n, j in 0:m }"
SIZES = (0, 1, 3, 10**5, 10**10, 1 << 62)


def function(text: str) -> tc.Function:
    return next(iter(tc.compile(text).values()))


def shown(picture: Picture) -> str:
    """The text of the picture in a saved notebook and of the one in a page, which must also be valid data."""
    pictures = [picture.content(live) for live in (False, True)]
    for content in pictures:
        json.dumps(content.data, allow_nan=False)
        assert len(content.html) < 2_000_000
        assert "hsl(-" not in content.html
    return " ".join(content.html for content in pictures)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (PRODUCT, {"M": 10**10, "K": 10**10, "N": 1}),
        *((SOFTMAX, {"N": n, "D": d}) for n, d in itertools.product(SIZES, repeat=2)),
        *((FREE, {"n": n, "m": m}) for n, m in itertools.product(SIZES, repeat=2)),
    ],
)
def test_a_view_is_drawn_or_says_why_not(text, sizes, name):
    shown(VIEWS[name](function(text), **sizes))


def test_more_elements_than_a_picture_can_number():
    html = shown(IterationSpace(function(PRODUCT), M=10**10, K=10**10, N=1))
    assert "A</code> has 100,000,000,000,000,000,000 elements" in html
    assert "beyond 2^53" in shown(IterationSpace(function(FREE), n=1 << 62, m=3))


def test_elements_beyond_four_bytes_are_sent_whole():
    content = IterationSpace(function(FREE), n=10**5, m=10**5).content(live=True)
    assert content.data["wide"]
    sent = np.frombuffer(content.points, "<f8")
    assert sent.max() > 1 << 31
    assert sent.min() == 0
    few = IterationSpace(function(FREE), n=4, m=5).content(live=True)
    assert not few.data["wide"]
    assert sorted(np.frombuffer(few.points, "<i4").tolist()) == list(range(20))


def test_what_a_point_far_out_touches():
    picture = IterationSpace(function(FREE), n=10**5, m=10**5)
    assert picture.ask({"point": [3, 84]}) == [8_400_003]
    assert picture.ask({"point": [99_999, 99_999]}) == [10**10 - 1]
    assert picture.ask({"point": [0, 100_000]}) is None


def test_a_slider_reaches_the_size_that_python_gave():
    picture = IterationSpace(function(FREE), n=10**10, m=3)
    (slider,) = (control for control in picture.content(live=True).controls if control.name == "size:n")
    assert slider.value <= slider.high
    picture.apply({"size:n": 10**10 - 5})
    assert picture.sizes["n"] == 10**10 - 5


def test_no_elements_of_a_long_row():
    assert "no visit" in (html := shown(ScheduleView(function(FREE), n=0, m=10**10))) or "nothing" in html


RAMP = "def ramp(float(N) X, int32 s) -> (Y) { Y(i) = X(i) where i in 0:s }"
CONV = "def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }"
BLUR = (
    "def blur(float(H, W) X) -> (Y) { T(i, j) = X(i, j) + X(i + 1, j) + X(i + 2, j) "
    " Y(i, j) = T(i, j) + T(i, j + 1) + T(i, j + 2) }"
)
SAC = "double[.] rest(double[.] a) { return { iv -> a[iv + [2]] | iv < shape(a) - [2] }; }"


@pytest.mark.filterwarnings("ignore::tc_jupyter.diagnostics.DiagnosticWarning")
@pytest.mark.parametrize(
    ("text", "sizes", "refused"),
    [(RAMP, {"N": 5, "s": 9}, "TC601"), (CONV, {"N": 1, "K": 3}, "TC602"), (BLUR, {"H": 1, "W": 1}, "TC602")],
)
def test_sizes_that_a_call_refuses_are_said_to_be_refused(text, sizes, refused):
    f = function(text)
    for name in ("ranges", "iteration_space", "schedule"):
        content = VIEWS[name](f, **sizes).content()
        assert f"a call with these sizes is refused ({refused}): " in content.text
        assert f"a call with these sizes is refused ({refused}): " in content.html
    assert str(f.schedule().bounds(**sizes)).startswith(f"a call with these sizes is refused ({refused}): ")
    assert "refused" not in str(f.schedule().bounds())


def test_partitions_at_sizes_that_a_call_refuses():
    f = next(iter(tc.compile(SAC, language="sac").values()))
    for name in ("partitions", "ranges"):
        content = VIEWS[name](f, a_0=1).content()
        assert "a call with these sizes is refused (TC6" in content.text
        assert "a call with these sizes is refused (TC6" in content.html


@pytest.mark.filterwarnings("ignore::tc_jupyter.diagnostics.DiagnosticWarning")
@pytest.mark.parametrize(
    ("subscript", "number"),
    [("i * i * i", lambda i: i**3), ("i * i * i * i / (i * i * i)", lambda i: i), ("0 - i * i * i", lambda i: -(i**3))],
)
def test_a_subscript_beyond_64_bits_is_no_other_element(subscript, number):
    extent = 1 << 40
    text = f"def far(float(N) X, int64 n) -> (Y) {{ Y(i) = X({subscript}) where i in n - 3000000:n }}"
    n = 3_000_000_000
    picture = IterationSpace(function(text), N=extent, n=n)
    for point in (n - 3_000_000, n - 2_642_246, 715 << 22, n - 1):
        place = number(point)
        assert picture.ask({"point": [point]})[1] == (place if 0 <= place < extent else -2)
