"""Sums in the steps of a recurrence have vectors, along the results or what is summed, and give what the interpreter gives."""

import numpy as np
import pytest

import tc_jupyter as tc

VITERBI = "V(t, s) max=! (t > 0 ? V(t-1, r) + A(r, s) : 0.0) + E(t, s) where t in 0:T, r in 0:S along t"
"""Vectors along the results: `A` lies along them."""
FORWARD = "V(t, s) +=! t > 0 ? V(t-1, r) * A(s, r) : E(t, s) where t in 0:T, r in 0:S along t"
"""Vectors along what is summed: `A` lies along that."""
PRODUCTS = "P(k, i, j) +=! k > 0 ? P(k-1, i, l) * A(k, l, j) : B(i, l) * A(0, l, j) where k in 0:K, l in 0:N along k"
TRIANGLE = "X(i) +=! k < i ? -L(i, k) * X(k) : B(i) where k in 0:i+1 along i"
SIDES = "X(i, m) +=! k < i ? -L(i, k) * X(k, m) : B(i, m) where k in 0:i+1 along i"
BACKWARDS = "Y(t, s) +=! t < T-1 ? Y(t+1, r) * A(r, s) : E(t, s) where t in 0:T, r in 0:S along -t"
BLOCK = (
    "along t in 0:T { Z(t, s) +=! t > 0 ? H(t-1, r) * A(r, s) : E(0, s) where r in 0:S  H(t, s) = Z(t, s) * E(t, s) }"
)
CASES = {
    "viterbi": (f"float(T, S) E, float(S, S) A) -> (V) {{ {VITERBI} }}", "TS", ("s.inner",)),
    "forward": (f"float(T, S) E, float(S, S) A) -> (V) {{ {FORWARD} }}", "TS", ("r.inner",)),
    "products": (f"float(K, N, N) A, float(N, N) B) -> (P) {{ {PRODUCTS} }}", "KN", ("i.inner", "j.inner")),
    "triangle": (f"float(N, N) L, float(N) B) -> (X) {{ {TRIANGLE} }}", "N", ("k.inner",)),
    "sides": (f"float(N, N) L, float(N, M) B) -> (X) {{ {SIDES} }}", "NM", ("m.inner",)),
    "backwards": (f"double(T, S) E, double(S, S) A) -> (Y) {{ {BACKWARDS} }}", "TS", ("s.inner",)),
    "block": (f"float(T, S) E, float(S, S) A) -> (H) {{ {BLOCK} }}", "TS", ("s.inner",)),
}
SHAPES = ((0, 3), (2, 0), (4, 18), (2, 35))


def arguments(function, sizes, random):
    for name in function.program.parameters:
        tensor = function.program.tensor(name)
        shape = [sizes[dim.name] for dim in tensor.dims]
        yield (random.uniform(0.2, 1.0, shape) / max(1, *shape)).astype(tensor.dtype.value)


@pytest.mark.parametrize("name", CASES)
def test_sums_in_steps_have_vectors(name):
    text, names, inner = CASES[name]
    function = tc.compile(f"def f({text}", target="cpu").f
    schedule = function.default_schedule(**dict.fromkeys(names, 70))
    marks = {leaf: kind for each in schedule.graph.stages for leaf, kind in each.annotations}
    assert {marks.get(leaf) for leaf in inner} <= {"vectorize", "unroll"}, schedule.to_python()


@pytest.mark.parametrize("name", CASES)
def test_they_give_what_the_interpreter_gives(name):
    text, names, _ = CASES[name]
    fast, slow = (tc.compile(f"def f({text}", target=target).f for target in ("cpu", "interpreter"))
    for shape in SHAPES:
        given = list(arguments(fast, dict(zip(names, shape, strict=False)), np.random.default_rng(3)))
        np.testing.assert_allclose(fast(*given), slow(*given), rtol=1e-5, atol=1e-30)


def test_an_element_of_the_same_step_is_not_in_a_vector_with_its_reader():
    text = "def f(double(T, S) E) -> (V) { V(t, s) +=! s > 0 && r == 0 ? V(t, s-1) : E(t, r) where r in 0:S, s in 0:S along t, s }"
    numbers = np.arange(12.0).reshape(3, 4)
    found, expected = (tc.compile(text, target=target).f(numbers) for target in ("cpu", "interpreter"))
    np.testing.assert_array_equal(found, expected)


def test_vectors_do_not_lie_along_an_index_of_which_an_equality_leaves_one():
    value = "t == l ? E(t, j) * (t > 0 ? Y(t-1, t-1) : 1.0) : 0.0"
    text = f"def f(double(T, S) E) -> (Y) {{ along t in 0:T {{ Y(t, l) +=! {value} where l in 0:T, j in 0:S }} }}"
    function = tc.compile(text, target="cpu").f
    assert ".vectorize('Y', 'j.inner')" in function.default_schedule(T=9, S=70).to_python()
    numbers = np.random.default_rng(6).random((9, 70))
    np.testing.assert_allclose(function(numbers), np.diag(np.cumprod(numbers.sum(1))))
