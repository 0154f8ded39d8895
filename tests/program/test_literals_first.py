"""A first statement that writes a literal takes its type and its open ranges from the next statement on its target."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

TARGETS = ("cpu", "interpreter")


@pytest.mark.parametrize("target", TARGETS)
def test_a_product_in_two_statements(target):
    text = "def mm(double(M,K) A, double(K,N) B) -> (C) { C(i,j) = 0  C(i,j) += A(i,k)*B(k,j) }"
    f = tc.compile(text, target=target).mm
    a, b = np.arange(10.0).reshape(2, 5), np.arange(15.0).reshape(5, 3)
    np.testing.assert_allclose(f(a, b), a @ b)


@pytest.mark.parametrize("target", TARGETS)
def test_a_float_after_an_integer_literal(target):
    f = tc.compile("def f(float(H, W) U) -> (V) { V(y,x) = 1  V(y,x) += U(y,x) * 2.5 }", target=target).f
    u = np.array([[0.5, 1, 2]], np.float32)
    found = f(u)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, 1 + u * 2.5)


@pytest.mark.parametrize("target", TARGETS)
def test_statements_between_see_the_type(target):
    f = tc.compile("def f(int8(N) A) -> (C, D) { C(i) = 100  D(i) = C(i) * 2  C(i) = C(i) + A(i) }", target=target).f
    c, d = f(np.array([1, 2], np.int8))
    assert (c.dtype, d.dtype) == (np.int8, np.int8)
    assert (c.tolist(), d.tolist()) == ([101, 102], [-56, -56])


@pytest.mark.parametrize("target", TARGETS)
def test_two_literals_that_wait_for_each_other(target):
    text = "def f(float(N) A) -> (C, D) { C(i) = 1 D(i) = 2  D(i) += C(i) + A(i) C(i) += D(i) }"
    c, d = tc.compile(text, target=target).f(np.arange(3, dtype=np.float32))
    assert d.tolist() == [3, 4, 5]
    assert c.tolist() == [4, 5, 6]


def test_a_maximum_from_minus_infinity():
    f = tc.compile("def f(float16(N, M) A) -> (C) { C(i) = -inf  C(i) max= A(i, j) }").f
    assert f(np.array([[1, 3], [-2, -5]], np.float16)).tolist() == [3, -2]


def test_many_literals_end_in_time():
    heads = " ".join(f"A{k}(i) = 0" for k in range(60))
    tails = " ".join(f"A{k}(i) += A{k - 1}(i)" for k in range(59, 0, -1))
    found = tc.analyze(f"def f(float(N) X) -> (A59) {{ {heads} {tails} A0(i) += X(i) }}")
    assert {item.code.number for item in found.diagnostics} == {"TC206", "TC302"}
