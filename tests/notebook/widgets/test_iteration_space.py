"""Points and colours of the iteration space are those of the loops written by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.colours import Colours
from tc_jupyter.notebook.widgets.iteration_space import IterationSpace
from tc_jupyter.notebook.widgets.lattice import NOT_MADE, OUTSIDE, UNKNOWN
from tc_jupyter.notebook.widgets.sizes import example_sizes, size_names
from tc_jupyter.notebook.widgets.svg import EM
from tc_jupyter.notebook.widgets.views import view

CONV = "def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }"


def function(text: str, **options):
    return next(iter(tc.compile(text, **options).values()))


def drawn(html: str) -> dict[int, tuple[int, str]]:
    """Element number -> how many dots, in which colour."""
    found = re.findall(r'<path data-element="(\d+)" d="([^"]*)" stroke="([^"]*)"', html)
    return {int(n): (path.count("M"), colour) for n, path, colour in found}


def test_number_and_colour_of_points():
    picture = IterationSpace(function(CONV), N=8, K=3)
    loops = [i + k for i in range(8 - 3 + 1) for k in range(3)]
    expected = {n: (loops.count(n), Colours(1, 8).of(n)) for n in set(loops)}
    assert drawn(picture.content().html) == expected
    assert drawn(picture.content(live=True).html) == expected


def test_points_sent_to_the_page():
    picture = IterationSpace(function(CONV), N=8, K=3)
    content = picture.content(live=True)
    points = [(i, k) for i in range(6) for k in range(3)]
    sent = np.frombuffer(content.points, "<i4").reshape(3, 18)
    assert sent.tolist() == [[i for i, _ in points], [i + k for i, k in points], [k for _, k in points]]
    assert content.data["columns"] == ["A(i)", "B(i + k)", "W(k)"]


def test_many_points_are_sent_once_and_drawn_in_few_elements():
    picture = IterationSpace(function(CONV), N=300, K=100)
    content = picture.content(live=True)
    assert len(np.frombuffer(content.points, "<i4")) == 3 * 201 * 100
    tensor = re.search(r'<svg data-tensor="B".*?</svg>', content.html, re.S)
    assert tensor is not None
    assert 50 < tensor.group().count("<path") < 100  # 300 elements, and neighbours that look the same are one
    picture.apply({"size:N": 301}, dragging=True)
    content = picture.content(live=True)
    assert content.data["columns"] == ["B(i + k)"]
    sent = np.frombuffer(content.points, "<i4")
    assert sent.tolist() == [i + k for i in range(202) for k in range(100)]


def test_example_sizes_fit_and_have_more_than_one_value():
    known = size_names(function(CONV).analysis)
    sizes = example_sizes(known)
    assert known.problem(sizes) is None
    assert sizes["N"] - sizes["K"] + 1 > 1
    assert example_sizes(known, {"N": 4})["N"] == 4


def test_guards_reversals_strides_and_data():
    f = function("def f(float(N) X) -> (Y) { Y(i) = i > 2 ? X(N - 1 - i) : X(0) where i in 0:N }")
    space = IterationSpace(f, N=6).space()
    back = next(t for t in space.touches if t.text.startswith("X(N"))
    assert back.numbers.tolist() == [NOT_MADE] * 3 + [2, 1, 0]
    g = function("def g(float(N) X, int32(M) C) -> (Y) { Y(i) = X(C(i)) }")
    texts = {t.text: t.numbers.tolist() for t in IterationSpace(g, N=3, M=3).space().touches}
    assert texts["C(i)"] == [0, 1, 2]
    assert set(texts["X(C(i))"]) <= {0, 1, 2}  # values of an example, which are inside
    h = function("def h(float(N) X, float(M) C) -> (Y) { Y(i) = X(int32(C(i) * 2)) }")
    texts = {t.text: t.numbers.tolist() for t in IterationSpace(h, N=3, M=3).space().touches}
    assert texts["X(int32(C(i) * 2))"] == [UNKNOWN] * 3


def test_scattered_writes_have_values_of_an_example():
    """Points that write one element have one colour, and the same values wherever they are asked for."""
    f = function("def f(float(E, D) M, int32(E) To) -> (float(8, D) Y) { Y(To(e), d) +=! M(e, d) }")
    picture = IterationSpace(f, E=12, D=2)
    space = picture.space()
    (write,) = (t for t in space.touches if t.write)
    assert picture.coloured(space) == space.touches.index(write)
    assert write.examples == ("To",)
    rows = {}
    for (d, e), number in zip(space.points.tolist(), write.numbers.tolist(), strict=True):
        assert number % 2 == d
        rows.setdefault(e, set()).add(number // 2)
        assert picture.ask({"point": [d, e]})[0] == number
    assert all(len(each) == 1 and each <= set(range(8)) for each in rows.values())
    assert 1 < len(set.union(*rows.values())) < 12
    assert "(with an example of To: each call has its own values)" in picture.content().text
    computed = function("def f(float(N) P) -> (int32(50) H) { T(i) = sqrt(P(i)) H(int32(T(i) * 25)) +=! 1 }")
    assert "writes H(int32(T(i) * 25)): which element depends on data" in IterationSpace(computed, "H").content().text
    once = function("def g(int32(N) P, float(N) X) -> (float(N) Y) { Y(P(i)) = X(i) where unique }")
    for n in (1, 2, 3, 4, 9, 10):
        space = IterationSpace(once, N=n).space()
        assert sorted(space.touches[0].numbers.tolist()) == list(range(n))
        assert [axis.kind for axis in space.axes] == ["output"]


def test_complex_numbers_are_written_without_their_part():
    f = function("def f(complex64(N) Z, int32(N) P) -> (Y, complex64(4) H) { Y(i) = Z(i) * Z(i) H(P(i)) +=! Z(i) }")
    for name, written in (("Y", "writes Y(i): 4 elements touched, 8 times"), ("H", "writes H(P(i)): ")):
        assert written in IterationSpace(f, name, N=4).content().text


def test_an_access_that_leaves_its_tensor_is_marked():
    f = function("def f(float(N) X, float(M) Z) -> (Y) { Y(i) = X(i) + Z(i + 1) where i in 0:N }")
    picture = IterationSpace(f)
    picture.apply({"size:N": 5, "size:M": 4})
    last = next(t for t in picture.space().touches if t.text.startswith("Z"))
    assert last.numbers.tolist() == [1, 2, 3, OUTSIDE, OUTSIDE]
    assert "is refused" in picture.content().html
    assert "2 points leave the tensor" in picture.content().html
    picture.apply({"size:M": 5})
    assert "1 point leaves the tensor" in picture.content().html


def test_three_axes_panels_and_fixed_axes():
    f = function("def t(float(A, B, C, D) X) -> (Y) { Y(a, b) +=! X(a, b, c, d) }")
    picture = IterationSpace(f, A=2, B=3, C=4, D=2)
    assert [c.name for c in picture.content(live=True).controls if c.name.startswith("fix:")] == ["fix:c", "fix:d"]
    picture.apply({"z": 2, "fix:d": 1})
    space = picture.space()
    assert space.total == 24
    assert "the points with" in picture.content().html
    assert ">d = 1</code>" in picture.content().html
    assert space.touches[1].numbers.tolist() == [
        ((a * 3 + b) * 4 + c) * 2 + 1 for b in range(3) for a in range(2) for c in range(4)
    ]
    assert picture.shown == [1, 0, 2]  # b to the right, a down, as the result is drawn
    picture.apply({"x": 0})
    assert picture.shown == [0, 1, 2]
    picture.apply({"swap": True})
    assert picture.shown == [1, 0, 2]


@pytest.mark.parametrize("typed", ["-3", "+-3", "x", "", None, 10**12, "9" * 5000, 2.5, True])
def test_wrong_sizes_change_nothing_and_are_told(typed):
    picture = IterationSpace(function(CONV), N=8, K=3)
    picture.apply({"size:N": typed})
    assert picture.sizes == {"N": 8, "K": 3}
    assert "whole number" in picture.content().html
    assert ("an empty field changes nothing" in picture.content().html) == (typed == "")


def test_huge_sizes_are_thinned_in_words_and_empty_ranges_are_said():
    picture = IterationSpace(function(CONV), N=8, K=3)
    picture.apply({"size:N": 10**9, "size:K": 10**6})
    content = picture.content(live=True)
    assert content.data["count"] <= 1_000_000
    assert "thinned" in content.html
    assert len(picture.content().html) < 60_000
    picture.apply({"size:N": 10**6, "size:K": 10}, dragging=True)
    assert picture.content(live=True).data["count"] <= 50_000
    picture.apply({"size:N": 0, "size:K": 0})
    assert "empty" in picture.content(live=True).html


@pytest.mark.parametrize("sizes", [(10**6, 10**6, 10**3), (10**9, 3, 2), (2, 10**9, 3), (3, 2, 10**9), (10**6, 1, 1)])
def test_no_picture_is_larger_than_a_page(sizes):
    f = function("def t(float(A, B, C) X) -> (Y) { Y(a, b) +=! X(a, b, c) }")
    picture = IterationSpace(f, A=2, B=2, C=2)
    picture.apply({"z": 2} | {f"size:{name}": size for name, size in zip("ABC", sizes, strict=True)})
    data = picture.content(live=True).data
    assert data["layout"]["width"] <= 1_200
    assert data["layout"]["height"] <= 32_000
    assert 0 < data["count"] <= 1_000_000
    heights = re.findall(
        r'<svg data-tensor[^>]* width="([\d.]+)em" height="([\d.]+)em"', picture.content(live=True).html
    )
    assert len(heights) == 2
    assert all(float(w) <= 250 / EM and float(h) <= 170 / EM for w, h in heights)


def test_eight_axes_and_thirty_statements():
    names = "abcdefgh"
    f = function(f"def all8(float({', '.join(names.upper())}) X) -> (Y) {{ Y() +=! X({', '.join(names)}) }}")
    assert len([c for c in IterationSpace(f).content(live=True).controls if c.name.startswith("fix:")]) == 6
    chain = "".join(f"T{n + 1}(i) = T{n}(i) + 1 \n" for n in range(30))
    g = function(f"def g(float(N) T0) -> (T30) {{ {chain} }}")
    assert len(view(g, "iteration_space").bundle()["text/html"]) < 60_000


def test_what_one_point_touches():
    picture = IterationSpace(function(CONV), N=8, K=3)
    assert picture.ask({"point": [2, 1]}) == [2, 3, 1]
    assert picture.ask({"point": [99, 1]}) is None
    assert picture.ask({"point": ["x"]}) is None


def test_elements_are_written_as_in_the_cell():
    text = "int[.,.] f(int[.,.] a) { return { [i, j] -> 2 * a[i, j] }; }"
    (f,) = tc.compile(text, language="sac").values()
    space = IterationSpace(f, a_0=2, a_1=3).space()
    assert [touch.text for touch in space.touches] == ["result[i, j]", "a[i, j]"]
    assert space.tensors["a"].element(5) == "a[1, 2]"


def test_arrows_from_what_an_earlier_statement_wrote():
    f = function("def h(float(N) X) -> (O) { T(i) = X(i-1)+X(i+1) \n O(i) = T(i) + T(i+2) }")
    picture = IterationSpace(f, N=8)
    assert "data-arrows" not in picture.content().html
    picture.apply({"arrows": True})
    assert 'data-arrows="8"' in picture.content().html


def test_a_saved_view_is_small_and_safe():
    bundle = view(function(CONV), "iteration_space").bundle()
    html = bundle["text/html"]
    assert len(str(bundle)) < 200_000
    for forbidden in ("<script", "<style", "http", "<button", "position:"):
        assert forbidden not in html


def test_an_unknown_view_names_the_others():
    with pytest.raises(ValueError, match="iteration_space"):
        view(function(CONV), "iteration_spce")


def test_counts_are_those_of_all_points_or_said_to_be_of_a_sample():
    f = function(CONV_OF_SIZES)
    text = IterationSpace(f, N=300, K=3).content().text
    assert "writes Y(i): 298 elements touched, 894 times" in text
    assert "reads X(i + k): 300 elements touched, 894 times" in text
    assert "sample" not in text
    for live in (False, True):
        content = IterationSpace(f, N=10**7, K=3).content(live)
        assert "counted below: a sample" in content.text
        assert "counted over a sample" in content.html
        content = IterationSpace(f, N=5000, K=3).content(live)
        assert "reads X(i + k): 5000 elements touched, 14994 times" in content.text


CONV_OF_SIZES = "def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }"
