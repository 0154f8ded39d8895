"""Sums of products in parts compute the same: by default where that is cheaper, and along each index that allows it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.compiler.definition import target_of
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.schedule.space import default_schedule
from tests.running import default, program_of
from tests.strategies import drawn

EXTENTS = {"i": 2, "j": 3, "k": 4, "l": 2, "m": 3}


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


@drawn(6, 60, products())
def test_parts_compute_the_same(case: tuple[str, list[np.ndarray]]) -> None:
    text, arrays = case
    expected = tc.compile(text, target="interpreter").f(*arrays)
    for axis in sorted(root.name for root in default(text).graph.stage("Y").roots):
        try:
            schedule = tc.compile(text, target="cpu").f.schedule().factor("Y", axis)
        except CompileError:
            continue
        found = tc.compile(text, target="cpu").f.with_schedule(schedule)(*arrays)
        np.testing.assert_array_equal(found, expected, f"{text} {axis}")


def test_a_part_that_sums_nothing_is_no_sum():
    """Nothing is there that it could be added to."""
    schedule = default("def f(double(N) A, double(M) B) -> (Y) { Y(i) +=! A(i) * B(j) }").factor("Y", "i")
    assert schedule.graph.stage("Y.part").statement.operator == "="


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("float(I,K) A, float(K,L) B, float(L,J) C) -> (Y) { Y(i,j) +=! A(i,k) * B(k,l) * C(l,j) }", 1),
        (
            "float(M,I,J) X, float(A,I) P, float(B,J) Q, float(A) R) -> (Y) { Y(m,a,b) +=! X(m,i,j) * P(a,i) * Q(b,j) * R(l) }",
            2,
        ),
        ("float(M,K) A, float(K,N) B) -> (Y) { Y(i,j) +=! A(i,k) * B(k,j) }", 0),
        ("float(M,K) A, float(K,2) B, float(2,N) C) -> (Y) { Y(i,j) +=! A(i,k) * B(k,l) * C(l,j) }", 1),
        ("float(N,3) X, float(M) B) -> (Y) { Y(i,k) +=! X(i,j) * B(k) }", 1),
        ("float(N,J) X, float(N,L) W) -> (Y) { Y(i,l) +=! (i > 0 ? X(i-1,j) : 0) * W(i,l) }", 1),
        ("int32(I,J) A, int32(L) B) -> (int64(I,L) Y) { Y(i,l) +=! A(i,j) * B(l) }", 0),  # would wrap
        ("half(I,J) A, half(L) B) -> (half(I,L) Y) { Y(i,l) +=! A(i,j) * B(l) }", 0),  # would be rounded twice
        (
            "float(I) a, float(J) b, float(I,J,K) C) -> (Y) { Y(k) +=! a(i) * b(j) * C(i,j,k) }",
            0,
        ),  # elements of a part count
        # of the first sum, elements are used in many points; of the second one they are already
        ("float(N,D) X, float(D,D) S) -> (Y) { Y(n) +=! (X(n,i) - 1) * S(i,j) * (X(n,j) - 1) }", 1),
        ("float(N,I) X, float(N,J) Z, float(I,J,K) T) -> (Y) { Y(n,k) +=! X(n,i) * Z(n,j) * T(i,j,k) }", 0),
        ("float(N,I) X, float(N,J) Z, float(N,I,J) T) -> (Y) { Y(n) +=! X(n,i) * Z(n,j) * T(n,i,j) }", 0),
        # where a point goes does not depend on all of its indices
        ("float(N,D) X, int32(N) L, float(M) Z) -> (float(M) S) { S(L(i)) +=! X(i,d) * X(i,d) }", 1),
        ("float(N,D) X, int32(N) L, float(M,D) W) -> (float(M) S) { S(L(i)) max=! X(i,d) - W(L(i),d) }", 1),
        ("float(N,D) X, int32(N) L, float(M) Z) -> (float(M,D) S) { S(L(i),d) +=! X(i,d) }", 0),
        ("float(N,J) X, float(N,K) Z, float(N) c) -> (Y) { Y(n,k) +=! c(n) > 0 ? X(n,j) * Z(n,k) : 0 }", 1),
        (
            "float(N,J) X, float(N,K) Z) -> (Y) { Y(n,k) +=! X(n,j) > 0 ? X(n,j) * Z(n,k) : 0 }",
            0,
        ),  # nothing times infinity
        ("float(J) X, float(N,K) Z) -> (Y) { Y(n,k) +=! n > 0 ? X(j) * Z(n-1,k) : 0 where n in 0:N, j in 0:J }", 1),
        ("float(N,J) X, float(K) Z) -> (Y) { Y(n,k) +=! n > 0 ? X(n-1,j) * Z(k) : 0 where n in 0:N, k in 0:K }", 0),
    ],
)
def test_parts_are_made_where_they_are_cheaper(text: str, parts: int, kind: str) -> None:
    steps = default_schedule(*program_of(f"def f({text}"), target_of(kind)).to_python()
    assert steps.count(".factor(") == parts, steps


def test_what_a_condition_leaves_out_may_be_infinite():
    text = """def f(double(N,J) X, double(N,K) Z, double(N) c, int32(N) L) -> (A, B, double(N) S) {
        A(n,k) +=! c(n) > 0 ? X(n,j) * Z(n,k) : 0
        B(n,k) +=! X(n,j) > 1 ? X(n,j) * Z(n,k) : 0
        S(L(n)) +=! c(n) > 0 ? X(n,j) : 0
    }"""
    X, Z = np.array([[np.inf, 1.0], [2.0, 3.0], [0.5, 1.0]]), np.array([[np.nan], [4.0], [np.inf]])
    arrays = X, Z, np.array([0.0, 1.0, 0.0]), np.array([1, 0, 1], np.int32)
    f = tc.compile(text, target="cpu").f
    with pytest.raises(CompileError, match="no factors"):
        f.schedule().factor("B", "j")
    A, B, S = f.with_schedule(f.schedule().factor("A", "j").factor("S", "j"))(*arrays)
    np.testing.assert_array_equal(A, [[0], [20], [0]])
    np.testing.assert_array_equal(B, [[np.nan], [20], [0]])
    np.testing.assert_array_equal(S, [5, 0, 0])


def test_a_condition_keeps_what_it_stands_before_inside_of_its_array():
    """`W(n-1,j)` is looked at behind `n > 0` alone."""
    text = "def f(double(N,J) X, double(N,J) W) -> (Y) { Y(n) +=! n > 0 && W(n-1,j) > 1 ? X(n,j) : 0 where n in 0:N }"
    f = tc.compile(text, target="cpu").f
    with pytest.raises(CompileError, match="no factors"):
        f.schedule().factor("Y", "j")
    np.testing.assert_array_equal(f(np.ones((3, 2)), np.array([[1.0, 2], [3, 4], [5, 6]])), [0, 1, 2])


def test_points_look_for_themselves_whether_they_leave_the_result():
    """A row of which no point counts may say that it goes nowhere."""
    text = "def f(double(N,J) X, int32(N) L, double(M) Z) -> (double(M) S) { S(L(n)) +=! X(n,j) where X(n,j) > 0 }"
    f = tc.compile(text, target="cpu").f
    arrays = np.array([[1.0, -1.0], [-2.0, -3.0], [5.0, 7.0]]), np.array([1, 99, 1], np.int32), np.zeros(2)
    assert ".factor(" not in f.default_schedule(*arrays).to_python()
    np.testing.assert_array_equal(f(*arrays), [0, 13])
