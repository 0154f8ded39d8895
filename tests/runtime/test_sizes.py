"""Sizes that stand in expressions, and boxes: what a call makes of them, on all engines, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

TEXT = """
def rope(float(T, 2*D) X, float(T, D) Cos, float(T, D) Sin) -> (Y) {
    Y(t, d) = d < D ? X(t, d) * Cos(t, d) - X(t, d + D) * Sin(t, d) : X(t, d) * Cos(t, d - D) + X(t, d - D) * Sin(t, d - D)
        where d in 0:2*D
}
def back(float(N - K + 1) dY, float(K) W) -> (dX) {
    dX(i) +=! (i - k >= 0 && i - k < N - K + 1 ? dY(i - k) : 0) * W(k) where i in 0:N
}
def halves(float(2*D) X) -> (Y) { Y(d) = X(d) + X(d + D) where d in 0:D }
def rows(float(B*S) X, float(S) W) -> (Y) { Y(b) +=! X(b*S + s) * W(s) where b in 0:B }
def steps(float(s*N + 1) X, int32 s) -> (Y) { Y(i) = X(s*i) where i in 0:N }
def smooth(float(-1:N + 1, M) X) -> (float(0:N, M) Y) { Y(i, j) = X(i - 1, j) + 2*X(i, j) + X(i + 1, j) }
def look(float(5:V, D) T, int32(2*N + 1) I) -> (Y) { Y(t, d) = T(I(t), d) }
def product(float(1:M, -2:K) A, float(-2:K, 2*N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }
def nested(float(2*N) A) -> (P) { H = halves(A)  P = twice(H) }
def twice(float(3:N) X) -> (Y) { Y(i) = 2 * X(i) + i - i }
def odd(float(N) A) -> (P) { P = halves(A) }
"""


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape).astype(np.float32)


def rope(x, cos, sin):
    d = cos.shape[1]
    return np.concatenate([x[:, :d] * cos - x[:, d:] * sin, x[:, d:] * cos + x[:, :d] * sin], 1)


INDEX = (np.arange(31) * 7 % 20 + 5).astype(np.int32)
CALLS = [
    ("rope", (data(3, 8), data(3, 4), data(3, 4)), rope),
    ("back", (data(50), data(7)), np.convolve),
    ("halves", (data(10),), lambda x: x[:5] + x[5:]),
    ("rows", (data(24), data(4)), lambda x, w: x.reshape(-1, 4) @ w),
    ("steps", (data(13), 3), lambda x, s: x[: len(x) - 1 : s]),
    ("smooth", (data(40, 9),), lambda x: x[:-2] + 2 * x[1:-1] + x[2:]),
    ("look", (data(20, 16), INDEX), lambda t, i: t[i - 5]),
    ("product", (data(33, 20), data(20, 18)), lambda a, b: a @ b),
    ("nested", (data(12),), lambda a: 2 * (a[:6] + a[6:])),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["cpu", "interpreter", "simulator"])
@pytest.mark.parametrize(("name", "arguments", "expected"), CALLS, ids=[each[0] for each in CALLS])
def test_against_numpy(target, name, arguments, expected):
    wanted = expected(*arguments)
    if target == "simulator":
        run = tc.compile(TEXT)[name].simulate(*arguments)
        assert not run.findings
        np.testing.assert_allclose(run.outputs[0], wanted, rtol=1e-5)
        return
    function = tc.compile(TEXT, target=target)[name]
    for _ in range(4):  # the general way, then the short ones
        np.testing.assert_allclose(function(*arguments), wanted, rtol=1e-5)
    out = np.zeros_like(function(*arguments))
    function(*arguments, out=out)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


REFUSED = [
    ("rope", (data(3, 7), data(3, 4), data(3, 4)), "dimension 1 of `X` is 7, but `2*D` is 8, where `D` is 4"),
    ("halves", (data(7),), "dimension 0 of `X` is 7, but `2*D` is 6, where `D` is 3"),
    ("rows", (data(25), data(4)), "dimension 0 of `X` is 25, but `B*S` is 24, where `B` is 6 and `S` is 4"),
    ("rows", (data(0), data(0)), "dimension 0 of `X` is 0, which does not tell `B` of `B*S`: `S` is 0"),
    ("steps", (data(0), 2), "dimension 0 of `X` is 0, and `s*N + 1` needs `N` to be -1"),
    ("back", (data(0), data(0)), "dimension 0 of `dY` is 0, and `N - K + 1` needs `N` to be -1"),
    ("look", (data(0, 3), np.zeros(2, np.int32)), "dimension 0 of `I` is 2, but `2*N + 1` is 1, where `N` is 0"),
    ("odd", (data(7),), "dimension 0 of `A` is declared `2*D` by `halves`: `2*(N//2)` is 6, `N` is 7"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "arguments", "message"), REFUSED)
def test_both_numbers_are_told(name, arguments, message):
    function = tc.compile(TEXT)[name]
    for _ in range(3):
        with pytest.raises(tc.CallError) as caught:
            function(*arguments)
        assert caught.value.diagnostic.code.number == "TC605"
        assert caught.value.diagnostic.message == message


@pytest.mark.filterwarnings("ignore")
def test_the_short_way_looks_at_every_formula():
    """Calls that fit come first, so that the short way is there when one does not."""
    module = tc.compile(TEXT)
    for _ in range(4):
        module.halves(data(10))
    with pytest.raises(tc.CallError, match="`2\\*D`"):
        module.halves(data(11))
    for _ in range(4):
        module.steps(data(13), 3)
    with pytest.raises(tc.CallError, match="`s\\*N \\+ 1`"):
        module.steps(data(13), 5)


@pytest.mark.filterwarnings("ignore")
def test_an_array_with_a_box_is_no_place_for_a_result():
    """`Y(i)` lies at another place than `X(i)`, so `out=` may not be the argument."""
    function = tc.compile("def f(float(1:N + 1) X) -> (float(1:N + 1) Y) { Y(i) = 2 * X(i) }").f
    x = data(9)
    np.testing.assert_allclose(function(x), 2 * x)
    with pytest.raises(tc.CallError) as caught:
        function(x, out=x)
    assert caught.value.diagnostic.code.number == "TC611"
