"""`rounded(x)`: a product inside is rounded before a sum around it, on every engine."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import nvrtc

TEXT = """def f({type}(N) A, {type}(N) B) -> (X, Y, Z, S) {{
    X(i) = rounded(A(i) * A(i)) - rounded(B(i) * B(i))
    Y(i) = rounded(A(i) * B(i)) + A(i)
    Z(i) = rounded(A(i) > 0.5 ? A(i) * B(i) : -(B(i) * B(i))) + A(i)
    S +=! rounded(A(i) * B(i))
}}"""


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["float", "double", "half"])
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_nothing_around_it_sees_more_digits(kind, target):
    dtype = {"float": np.float32, "double": np.float64, "half": np.float16}[kind]
    function = tc.compile(TEXT.format(type=kind), target=target).f
    for n in (1, 7, 16, 33, 1000):
        a, b = np.random.default_rng(n).random((2, n)).astype(dtype)
        wide = np.float32 if kind == "half" else dtype
        left, right = a.astype(wide), b.astype(wide)
        np.testing.assert_array_equal(function(a, a)[0], np.zeros(n, dtype))
        _, y, z, s = function(a, b)
        np.testing.assert_array_equal(y, (left * right + left).astype(dtype))
        chosen = np.where(left > 0.5, left * right, -(right * right))
        np.testing.assert_array_equal(z, (chosen + left).astype(dtype))
        np.testing.assert_allclose(s.astype(np.float64), (left * right).sum(dtype=np.float64), rtol=2e-3)


def test_integers_are_unchanged():
    text = "def f(int(N) A) -> (X) { X(i) = rounded(A(i)) + A(max(min(rounded(i) + 1, N - 1), 0)) where i in 0:N }"
    a = np.arange(5, dtype=np.int32)
    for target in ("cpu", "interpreter"):
        np.testing.assert_array_equal(tc.compile(text, target=target).f(a), [1, 3, 5, 7, 8])


def test_cuda_uses_operations_that_are_not_fused():
    function = tc.compile(TEXT.format(type="float"), target="cpu").f
    assert "__fmul_rn(" in function.source("cuda", N=100)
    if nvrtc.available() is None:
        first = function.source("ptx", N=100).split(".entry")[1]
        assert "mul.rn.f32" in first
        assert "fma.rn.f32" not in first
