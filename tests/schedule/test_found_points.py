"""Sums with few points among many find these by their loops, and no element passes all: values, and the loops that there are."""

import numpy as np
import pytest

import tc_jupyter as tc

SPARSE = (
    "def f(float(Z) V, int32(Z) C, int32(N+1) R, float(M) X) -> (Y) { Y(i) +=! V(k) * X(C(k)) where k in R(i):R(i+1) }"
)
ROWS = "def f(float(N, D) H, int32(N+1) R, int32(E) C, float(E) A) -> (Y) { Y(i, d) +=! A(e) * H(C(e), d) where e in R(i):R(i+1) }"
REPEATED = "def f(float(N) A, int32(N+1) R, float(Z) L) -> (Y) { Y(k) +=! R(i) <= k && k < R(i+1) ? A(i) : 0.0 where k in 0:Z, i in 0:N }"
FRAMES = "def f(float(S) X, float(K) W) -> (Y) { Y(t, k) = X(64*t + k) * W(k) }"
MOVED = "def f(float(N) S) -> (V) { along t in 0:5 { V(t, i) = t == 0 ? S(i) : V(t-1, min(2*i, N-1)) * 0.5 where i in 0:N } }"


@pytest.fixture
def threads():
    yield tc.set_threads
    tc.set_threads(None)


def rows_of(lengths):
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)


def compiled(text):
    return tc.compile(text, target="cpu", allow=["TC234"]).f


@pytest.mark.parametrize("lengths", [[3, 0, 5, 1], [0, 0], [40], [2] * 70], ids=len)
@pytest.mark.parametrize("count", [1, 2])
def test_derivatives_of_ragged_sums(lengths, count, threads):
    threads(count)
    rng, r = np.random.default_rng(1), rows_of(lengths)
    z, n, m = int(r[-1]), len(lengths), 6
    v, x, dy = rng.random(z, np.float32), rng.random(m, np.float32), rng.random(n, np.float32)
    c, row = rng.integers(0, m, z, np.int32), np.repeat(np.arange(n), lengths)
    dv, dx = compiled(SPARSE).vjp()(v, c, r, x, dy)
    np.testing.assert_allclose(dv, dy[row] * x[c], rtol=1e-5)
    np.testing.assert_allclose(dx, np.bincount(c, dy[row] * v, m), rtol=1e-5)
    h, dy = rng.random((n, 20), np.float32), rng.random((n, 20), np.float32)
    c = rng.integers(0, n, z, np.int32)
    dh, da = compiled(ROWS).vjp()(h, r, c, v, dy)
    expected = np.zeros_like(h)
    np.add.at(expected, c, v[:, None] * dy[row])
    np.testing.assert_allclose(dh, expected, rtol=1e-5)
    np.testing.assert_allclose(da, (dy[row] * h[c]).sum(1), rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2])
def test_each_row_has_a_range_of_results(count, threads):
    threads(count)
    a, lengths = np.arange(1, 6, dtype=np.float32), [2, 0, 4, 1, 30]
    function = compiled(REPEATED)
    np.testing.assert_array_equal(function(a, rows_of(lengths), np.zeros(37, np.float32)), np.repeat(a, lengths))
    # ranges that overlap, and leave the results, are conditions like others
    found = function(np.array([1, 2], np.float32), np.array([3, 50, -1], np.int32), np.zeros(37, np.float32))
    np.testing.assert_array_equal(found, np.r_[np.zeros(3), np.ones(34)])


def test_loops_over_rows_are_outside():
    loops = compiled(REPEATED).source("loops")
    assert loops.index("for i in 0:N") < loops.index(" in max(0, R[i]") < loops.index("+= A[i]")
    assert "if " not in loops


@pytest.mark.parametrize(("size", "window"), [(64, 64), (300, 64), (1000, 200), (131, 3), (5, 5)])
def test_frames_that_overlap(size, window):
    rng = np.random.default_rng(2)
    x, w = rng.random(size, np.float32), rng.random(window, np.float32)
    frames = (size - window) // 64 + 1
    dy = rng.random((frames, window), np.float32)
    dx, dw = compiled(FRAMES).vjp()(x, w, dy)
    expected = np.zeros(size)
    for t in range(frames):
        expected[64 * t : 64 * t + window] += dy[t] * w
    np.testing.assert_allclose(dx, expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(dw, sum(dy[t] * x[64 * t : 64 * t + window] for t in range(frames)), rtol=1e-5)


def test_a_tile_sums_the_frames_that_meet_it():
    first = compiled(FRAMES).vjp().source("loops").split("else")[0]
    assert "for t in max(0, 2 * k.outer + 1" in first
    assert "for t in 0:" not in first


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_points_of_a_step_go_to_one_element_each(size):
    s, dv = np.ones(size, np.float32), np.random.default_rng(3).random((5, size), np.float32)
    function = compiled(MOVED).vjp()
    found, total = function(s, dv), np.zeros(size)
    for t in range(4, -1, -1):
        total = total + dv[t]
        if t:
            moved = np.zeros(size)
            np.add.at(moved, np.minimum(2 * np.arange(size), size - 1), 0.5 * total)
            total = moved
    np.testing.assert_allclose(found, total, rtol=1e-5)
    assert "min(2 * i, N - 1)] +=" in function.source("loops")
