"""Sums of products in two statements: the fix of TC239 computes the same, and fewer points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.compiler import analyze
from tc_jupyter.diagnostics import codes
from tests.strategies import drawn

EXTENTS = {"i": 2, "j": 3, "k": 4, "l": 2, "m": 3}


def fixed(text: str) -> str | None:
    """The text after the fix of the first TC239, or `None` where no statement has one."""
    for found in analyze(text).diagnostics:
        if found.code is codes.FACTORED_SUM and found.fix is not None:
            (edit,) = found.fix.edits
            return text[: edit.span.start] + edit.text + text[edit.span.end :]
    return None


@st.composite
def products(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    names = list(EXTENTS)
    factors = draw(
        st.lists(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True), min_size=2, max_size=4)
    )
    used = [name for name in names if any(name in factor for factor in factors)]
    left = draw(st.lists(st.sampled_from(used), max_size=3, unique=True))
    if set(left) == set(used):
        left = left[1:]
    kind, dtype = draw(st.sampled_from([("double", np.float64), ("int64", np.int64)]))
    shapes = ["(" + ",".join(name.upper() for name in factor) + ")" for factor in factors]
    parameters = ", ".join(f"{kind}{shape} X{n}" for n, shape in enumerate(shapes))
    forms = ["{}", "({} - 2)", "-{}", "{} * 3"]
    reads = [draw(st.sampled_from(forms)).format(f"X{n}({', '.join(factor)})") for n, factor in enumerate(factors)]
    target = f"Y({', '.join(left)})" if left else "Y"
    text = f"def f({parameters}) -> (Y) {{\n    {target} +=! {' * '.join(reads)}\n}}\n"
    seed = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [seed.integers(-4, 5, [EXTENTS[name] for name in factor]).astype(dtype) for factor in factors]
    return text, arrays


@drawn(30, 100, products())
def test_the_fix_computes_the_same_and_ends(case: tuple[str, list[np.ndarray]]) -> None:
    text, arrays = case
    expected = tc.compile(text, target="interpreter").f(*arrays)
    for _ in range(8):
        new = fixed(text)
        if new is None:
            break
        assert not any(each.is_error for each in analyze(new).diagnostics), new
        np.testing.assert_array_equal(tc.compile(new, target="interpreter").f(*arrays), expected, new)
        text = new
    else:
        raise AssertionError(text)


def test_the_two_statements_stand_where_the_one_stood() -> None:
    text = "def f(float(I,J) T, float(J,K) B, float(K) C) -> (E) {\n  # all\n  E(i) +=! T(i,j) * (B(j,k) + 1) * C(k)  # end\n}"
    assert fixed(text) == text.replace(
        "E(i) +=! T(i,j) * (B(j,k) + 1) * C(k)",
        "T1(j) +=! (B(j,k) + 1) * C(k)\n  E(i) +=! T(i,j) * T1(j)",
    )


def test_the_new_name_is_no_name_of_the_cell() -> None:
    text = (
        "def f(float(I,J) A, float(N) X) -> (Y, Z) {\nY(i,n) +=! A(i,j) * X(n)\nT(n) = X(n) * 2\nZ(n) = T(n) + T(n)\n}"
    )
    new = fixed(text)
    assert new is not None
    assert new.splitlines()[1:3] == ["T1(i) +=! A(i,j)", "Y(i,n) = T1(i) * X(n)"]
    assert not any(each.is_error for each in analyze(new).diagnostics)


def test_nothing_is_said_where_one_statement_is_as_good() -> None:
    for statement in ("C(i) +=! A(i,j) * B(j,i)", "C(i,j) +=! A(i,k) * B(k,j)", "C(i,j) max=! A(i,k) * B(l,j)"):
        text = f"def f(float(N,M) A, float(M,K) B) -> (C) {{ {statement} }}"
        assert not [each for each in analyze(text).diagnostics if each.code is codes.FACTORED_SUM], statement


@pytest.mark.parametrize(
    "text",
    [
        "float(N,J) X, float(N,L) W) -> (O) { O(i,l) +=! (i > 0 ? X(i-1,j) : 0) * W(i,l) }",  # other rows of `X`
        "int32(I,J) A, int32(L) B) -> (int64(I,L) Y) { Y(i,l) +=! A(i,j) * B(l) }",  # would wrap
        "half(I,J) A, half(L) B) -> (half(I,L) Y) { Y(i,l) +=! A(i,j) * B(l) }",  # would be rounded twice
        "float(N,J) X, float(N,L) W) -> (O) { O(i,l) +=! X(i+k,j) * W(k,l) }",  # `k` alone has no range
        "float(N) X, float(M) B, float(L) C) -> (Y) { Y(i,l) +=! X(i+k) * B(i) * C(l) }",
        "float(R,J) X, int32(N) I, float(L) W, float(M) Q) -> (Y) { Y(i,l) +=! X(I(i),j) * W(l) * Q(i) }",  # more of `I`
    ],
)
def test_nothing_is_said_where_two_statements_are_another_sum(text: str) -> None:
    found = analyze(f"def f({text}").diagnostics
    assert codes.FACTORED_SUM not in [each.code for each in found]


def test_an_integer_quotient_keeps_its_brackets() -> None:
    text = "def f(int64(L) B, int64(J) D, int64(I) A, int64(L) C) -> (Y) { Y(i,l) +=! B(l) * D(j) * (A(i) / 2 * C(l)) }"
    new = fixed(text)
    assert new is not None
    arrays = [np.array([value]) for value in (1, 3, 3, 1)]
    for each in (text, new):
        assert tc.compile(each, target="interpreter").f(*arrays) == 3


def test_a_comment_inside_is_no_text_to_move() -> None:
    text = "def f(float(I,J) A, float(L) B) -> (Y) {\n  Y(i,l) # all\n  +=! A(i,j) * B(l)\n}"
    (note,) = analyze(text).diagnostics
    assert note.code is codes.FACTORED_SUM
    assert note.fix is None
