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
    ],
)
def test_parts_are_made_where_they_are_cheaper(text: str, parts: int, kind: str) -> None:
    steps = default_schedule(*program_of(f"def f({text}"), target_of(kind)).to_python()
    assert steps.count(".factor(") == parts, steps
