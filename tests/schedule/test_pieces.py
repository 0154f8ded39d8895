"""Statements on the elements of one row that read each other's values: when they share a loop over pieces of it."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.program import Const

pytest.importorskip("llvmlite")

TOGETHER = {
    "two results of the same temporaries": """def f(float(N) X) -> (A, B) {
        T(i) = exp(X(i))  U(i) = T(i) * tanh(T(i))  A(i) = U(i) + T(i)  B(i) = U(i) * T(i) }""",
    "a result that is read again": "def f(float(N) X) -> (Y, Z) { Y(i) = tanh(X(i))  Z(i) = Y(i) * exp(Y(i)) }",
    "a row that begins elsewhere": """def f(float(N + 2) X) -> (A, B) {
        T(i) = exp(X(i - 1) + X(i + 1))  A(i) = T(i) + 1  B(i) = T(i) * 2 }""",
    "a temporary behind a result": """def f(float(N) X) -> (A, B, C) {
        A(i) = tanh(X(i))  T(i) = exp(A(i))  B(i) = T(i) + A(i)  C(i) = T(i) * A(i) }""",
    "a temporary between results": """def f(float(N) X, float(N) Z) -> (A, B) {
        A(i) = tanh(X(i))  T(i) = exp(Z(i))  U(i) = exp(T(i) + Z(i))  B(i) = A(i) * T(i) * U(i) + T(i) / U(i) }""",
    "temporaries that several results read": """def f(float(N) X, float(N) Z) -> (A, B, C) {
        A(i) = tanh(X(i))  T(i) = exp(Z(i))  B(i) = A(i) * T(i)  C(i) = T(i) / B(i) + A(i) }""",
    "complex numbers": """def f(complex64(N) C) -> (A) {
        Z(i) = C(i)*C(i) + C(i)  W(i) = Z(i)*Z(i) + C(i)  A(i) = W(i)*W(i)/(Z(i) + 2) }""",
    "complex numbers in rows": """def f(complex64(N, N) C) -> (A, B) {
        Z(i, j) = C(i, j)*C(i, j) + C(i, j)  W(i, j) = Z(i, j)*Z(i, j) + C(i, j)
        A(i, j) = W(i, j)*W(i, j) + Z(i, j)  B(i, j) = re(W(i, j))*im(W(i, j)) + re(Z(i, j)) }""",
    "values of points": """def f(float(N, 3) P) -> (float(N, 3) A, float(N) B) {
        R(i) = exp(P(i, 0)) + tanh(P(i, 1))*P(i, 2)
        A(i, c) = c == 0 ? R(i)*P(i, 1) : P(i, c)/R(i) where i in 0:N, c in 0:3
        B(i) = A(i, 0)*A(i, 1) + R(i) }""",
}
APART = {
    "neighbours": "def f(float(N + 1) X) -> (A, B) { T(i) = exp(X(i))  A(i) = T(i) - T(i + 1)  B(i) = T(i + 1) * T(i) }",
    "a sum between": """def f(float(N) X) -> (A, B) {
        T(i) = exp(X(i))  S +=! T(i)  A(i) = T(i) / S  B(i) = T(i) * S }""",
    "other rows": "def f(float(N) X, float(M) Z) -> (A, B) { A(i) = exp(X(i))  B(i) = exp(Z(i)) }",
    "values of a neighbour": """def f(complex64(N) C) -> (A, B) {
        Z(i) = exp(C(i))  A(i) = Z(i)*Z(N - 1 - i)  B(i) = Z(i)*C(i) where i in 0:N }""",
}


def function(text: str, target: str = "cpu"):
    return tc.compile(text, target=target, allow="TC321")["f"]


def several(results):
    return results if isinstance(results, tuple) else (results,)


def drawn(rng, tensor, size: int):
    """An argument whose open dimensions have this length."""
    shape = tuple(int(dim.value) if isinstance(dim, Const) else size for dim in tensor.dims or ())
    values = rng.uniform(0.1, 1, shape).astype(np.float32)
    return values.view(np.complex64)[..., 0] if tensor.pairs else values


@pytest.mark.parametrize("name", TOGETHER)
def test_what_reads_the_same_elements_is_one_kernel_whose_temporaries_are_pieces(name):
    loops = function(TOGETHER[name]).source("loops")
    assert loops.count("kernel ") == 1
    whole = {line.split("(")[0]: line.count("temporary") for line in loops.splitlines() if line.startswith("kernel ")}
    # one that stands between runs behind the first piece that is written
    assert sum(whole.values()) == (name in ("a temporary behind a result", "temporaries that several results read"))


@pytest.mark.parametrize("name", APART)
def test_others_have_loops_of_their_own(name):
    assert function(APART[name]).source("loops").count("kernel ") > 1


@pytest.mark.parametrize("name", [*TOGETHER, *APART])
def test_they_compute_what_the_interpreter_computes(name):
    """Sizes around those of a piece."""
    text = {**TOGETHER, **APART}[name]
    fast, slow = function(text), function(text, "interpreter")
    for size in (1, 31, 32, 33, 64, 131):
        rng = np.random.default_rng(size)
        longer = {"a row that begins elsewhere": 2, "neighbours": 1}.get(name, 0)
        inputs = [tensor for tensor in fast.program.tensors if tensor.kind == "input"]
        arrays = [drawn(rng, tensor, size + longer) for tensor in inputs]
        for found, expected in zip(several(fast(*arrays)), several(slow(*arrays)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("few", range(1, 6))
@pytest.mark.parametrize(
    "statements",
    [
        "M(n) max=! X(n,d)  E(n,d) = exp(X(n,d) - M(n))  S(n) +=! E(n,d)  Y(n,d) = E(n,d) / S(n)",
        "M(n) +=! X(n,d)  E(n,d) = X(n,D-1-d) * M(n)  F(n,d) = E(n,D-1-d) + 1  S(n) +=! E(n,d) * F(n,d)  Y(n,d) = F(n,d) / S(n)",
    ],
    ids=["softmax", "turned"],
)
def test_rows_of_few_values_in_whose_loop_a_sum_is_made(statements, few):
    text = f"def f(float(N,D) X) -> (Y) {{ {statements} }}"
    rows = np.random.default_rng(few).uniform(0.1, 1, (50, few)).astype(np.float32)
    np.testing.assert_allclose(function(text)(rows), function(text, "interpreter")(rows), rtol=1e-5)


def test_the_derivative_of_a_chain_is_one_kernel():
    text = "def f(float(N) A, float(N) B) -> (R) {" + "".join(
        f"  P{k + 1}(i) = {p} * {p} - {q} * {q} + A(i)  Q{k + 1}(i) = 2 * {p} * {q} + B(i)"
        for k in range(4)
        for p, q in [(f"P{k}(i)", f"Q{k}(i)") if k else ("A(i)", "B(i)")]
    )
    g = function(text + "  R(i) = P4(i) * Q4(i) }").vjp()
    assert g.source("loops").count("kernel ") == 1


def test_the_derivative_of_complex_numbers_is_one_kernel():
    text = """def f(complex64(N, M) C) -> (Z) {
        A(i, j) = C(i, j)*C(i, j) + C(i, j)  B(i, j) = A(i, j)*A(i, j) + C(i, j)  Z(i, j) = B(i, j)*B(i, j) }"""
    assert function(text).vjp().source("loops").count("kernel ") == 1
