"""What a statement computes without some of its indices has a name, so that sums of products stay such."""

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.program import Call, walk
from tests.gradient.checks import judge
from tests.gradient.defs import defs_of

TEXTS = {
    "gated": """def f(double(T, D) X, double(H, D) W, double(D, H) U) -> (Y) {
        g(t, h) +=! X(t, d) * W(h, d)
        Y(t, d) +=! g(t, h) * sigmoid(g(t, h)) * U(d, h)
    }""",
    "attention": """def f(double(T, D) Q, double(T, D) K, double(T, D) V) -> (O) {
        S(i, j) +=! Q(i, d) * K(j, d)
        m(i) max=! S(i, j)
        z(i) +=! exp(S(i, j) - m(i))
        O(i, d) +=! exp(S(i, j) - m(i)) / z(i) * V(j, d)
    }""",
    "factors apart": "def f(double(N, K) A, double(N) s, double(K, M) B) -> (Y) { Y(i, j) +=! exp(s(i)) * A(i, k) * B(k, j) * sin(s(i)) }",
    "divided": "def f(double(N, K) A, double(N) s, double(K) w) -> (Y) { Y(i) +=! A(i, k) * tanh(w(k)) / (s(i) * s(i) + w(k)) }",
    "no sum": "def f(double(N, M) X, double(N) a, double(M) b) -> (Y) { Y(i, j) = X(i, j) * exp(a(i)) / (1 + b(j) * b(j)) }",
    "a number": "def f(double(N) X, double h) -> (Y) { Y +=! exp(X(i) / (2*h*h)) * sqrt(h) }",
    "guarded": "def f(double(N, M) X, double(N) a) -> (Y) { Y(i, j) = X(i, j) > 0 ? X(i, j) * log(a(i)) : exp(a(i)) * X(i, j) }",
    "beyond": "def f(double(N, M) X, double(N) a) -> (Y) { Y(i, j) = i > 0 ? X(i, j) * exp(a(i - 1)) : exp(a(i)) * X(i, j) where i in 0:N }",
    "inside of another": "def f(double(N, M) X, double(N) a, double b) -> (Y) { Y(i, j) = X(i, j) * exp(a(i) * sin(b)) }",
    "causal": "def f(double(N, N) S, double(N, D) V) -> (Y) { Y(i, d) +=! j <= i ? exp(S(i, j)) * V(j, d) : 0 }",
    "where data say": "def f(double(N, K) S, double(K, D) V) -> (Y) { Y(i, d) +=! S(i, j) > 1 ? log(S(i, j)) / S(i, j) * V(j, d) : 0 }",
    "two conditions": """def f(double(N, K) S, double(K, D) V) -> (Y) {
        Y(i, d) +=! !(S(i, j) <= 0 || j < i) ? (S(i, j) > 1 || i > 0 && S(i, j) > 0.5 ? exp(S(i, j)) / S(i, j) * V(j, d) : V(j, d)) : 0
    }""",
    "told by another": "def f(double(N) s, double(N, D) V) -> (Y) { Y(i, d) = V(i, d) > 0 ? log(s(i)) * sin(s(i)) * V(i, d) : 0 }",
    "onto": "def f(double(N) a, double(N, M) X) -> (Y) { Y(i) = a(i)  Y(i) += exp(a(i)) * X(i, k) }",
}


@pytest.mark.parametrize("name", TEXTS)
def test_derivatives_are_those_of_differences(name):
    (given,) = defs_of("fewer", TEXTS[name])
    assert judge(given)


@pytest.mark.parametrize("name", ["gated", "attention", "factors apart", "causal", "where data say"])
def test_sums_over_three_indices_call_no_function(name):
    derived = tc.compile(TEXTS[name], target="interpreter").f.vjp()
    for statement in derived.program.statements:
        if len(derived.analysis.ranges.indices[statement.name]) == 3:
            assert not any(isinstance(node, Call) for node in walk(statement.value)), derived.text


def test_what_a_condition_leaves_out_has_no_derivative():
    derived = tc.compile(TEXTS["where data say"].replace("> 1", "> 0"), target="interpreter").f.vjp()
    S = np.array([[-1.0, 0.0], [2.0, 3.0]])
    dS, dV = derived(S, np.ones((2, 3)), np.ones((2, 3)))
    np.testing.assert_allclose(dS, [[0, 0], 3 * (1 - np.log([2, 3])) / [4, 9]], atol=1e-15)
    np.testing.assert_allclose(dV, np.repeat([[np.log(2) / 2], [np.log(3) / 3]], 3, axis=1))


def test_what_takes_one_product_has_no_name():
    text = "def f(double(N, K) A, double(K, M) B) -> (Y) { Y(i, j) +=! 2 * A(i, k) / 3 * B(k, j) }"
    assert "_v1" not in tc.compile(text, target="interpreter").f.vjp().text
