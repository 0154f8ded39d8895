"""The short way of a call: same answers as the general path, any names, and back to it whenever something is unusual."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime.memory import POOL

pytest.importorskip("llvmlite")

CELL = """
def names(float(empty, _) run, float(_, __a0) general, int32 d, float addressof) -> (min_, r0) {
    min_(i, j) +=! run(i, k) * general(k, j)
    r0(i, j) = min_(i, j) * d + addressof
}
def flags(bool(N) X, bool b, uint8 n, double x) -> (Y) { Y(i) = X(i) && b ? x + n : 0.0 }
def fixed(float(N, 3) X, float(3) W) -> (Y) { Y(i) +=! X(i, k) * W(k) }
def no_array(int32 k) -> (Y) { Y(i) = i where i in 0:k }
def window(float(I) B, float(J) C, float(K) D) -> (A) { A(i) +=! B(i) * C(i + j) * D(j) }
def temporary(float(N) X) -> (Y) { T(i) = exp(X(i))  s +=! T(i)  Y(i) = T(i) / s }
def look(float(V) T, int16(N, 2) min_I) -> (Y) { Y(i) +=! T(min_I(i, k) + 1) }
def twice(float(V) T, int32(N) I, int32(M) J) -> (Y) { Y(i) = T(I(J(i))) }
def large(float(N) X) -> (Y) { Y(i) = X(i) + 1 }
"""


@pytest.fixture(scope="module")
def module():
    return tc.compile(CELL, target="cpu", allow=["TC322"])


def floats(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def variants(function):
    """The generated functions so far."""
    call = function._call
    plan = getattr(call, "__self__", None)  # of the native entry point
    return (call if plan is None else plan.fixed[0].__wrapped__).__globals__["variants"]


def test_names_of_the_user_do_not_collide(module):
    a, b = floats(4, 3), floats(3, 5)
    for _ in range(3):
        first, second = module.names(a, b, 2, 0.5)
        np.testing.assert_allclose(first, a @ b, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(second, 2 * (a @ b) + 0.5, rtol=1e-4, atol=1e-5)
    assert len(variants(module.names)) == 1


def test_scalars_of_every_kind(module):
    x = np.array([True, False])
    for _ in range(2):
        np.testing.assert_array_equal(module.flags(x, True, 255, 0.25), [255.25, 0])
        np.testing.assert_array_equal(module.flags(x, np.bool_(True), np.int16(1), 1), [2, 0])
        for bad in [(x, 1, 1, 1.0), (x, True, 256, 1.0), (x, True, -1, 1.0), (x, True, 1.5, 1.0), (x, True, 1, "1")]:
            with pytest.raises(tc.CallError, match="TC607"):
                module.flags(*bad)


def test_constant_dimensions_and_sizes(module):
    x, w = floats(4, 3), floats(3)
    for _ in range(2):
        np.testing.assert_allclose(module.fixed(x, w), x @ w, rtol=1e-5, atol=1e-6)
        with pytest.raises(tc.CallError, match="TC605"):
            module.fixed(floats(4, 2), floats(2))
        np.testing.assert_array_equal(module.no_array(4), [0, 1, 2, 3])
        assert module.no_array(0).shape == (0,)
        with pytest.raises(tc.CallError, match="TC602"):
            module.no_array(-1)


def test_conditions_are_explained_by_the_general_path(module):
    b, c, d = floats(3), floats(6), floats(2)
    for _ in range(3):
        expected = [sum(b[i] * c[i + j] * d[j] for j in range(2)) for i in range(3)]
        np.testing.assert_allclose(module.window(b, c, d), expected, rtol=1e-4, atol=1e-5)
        with pytest.raises(tc.CallError, match="TC601"):
            module.window(b, floats(2), d)
        assert module.window(floats(0), c, d).shape == (0,)


def test_index_values_are_scanned(module):
    table, indices = floats(7), np.array([[0, 5], [-1, 3]], np.int16)
    for _ in range(3):
        np.testing.assert_allclose(module.look(table, indices), table[indices + 1].sum(1), rtol=1e-5)
    assert len(variants(module.look)) == 1
    for wrong in (-2, 6):
        bad = indices.copy()
        bad[1, 0] = wrong
        with pytest.raises(tc.CallError, match=rf"TC604.*index {wrong + 1} "):
            module.look(table, bad)
    with pytest.raises(tc.CallError, match="TC60"):
        module.look(np.zeros(0, np.float32), indices)


def test_index_values_behind_index_values_take_the_general_path(module):
    table, first, second = floats(5), np.array([4, 0, 2], np.int32), np.array([1, 2], np.int32)
    for _ in range(2):
        np.testing.assert_array_equal(module.twice(table, first, second), table[first[second]])
    with pytest.raises(tc.CallError, match="TC604"):
        module.twice(table, first, np.array([3], np.int32))


def test_temporaries(module):
    x = floats(1000)
    for _ in range(3):
        np.testing.assert_allclose(module.temporary(x), np.exp(x) / np.exp(x).sum(), rtol=1e-4)


def test_strides_and_flags_choose_the_variant(module):
    x = floats(64)
    for other in (x, x[::2], x[::-1], x.astype(">f4"), x[:0], np.broadcast_to(x[:1], (9,))):
        for _ in range(2):
            np.testing.assert_array_equal(module.large(other), np.asarray(other, np.float32) + 1)
    read_only = x.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(module.large(read_only), x + 1)


def test_large_results_come_from_the_pool(module):
    x = floats(1 << 18)
    module.large(x)
    before = POOL.lent
    first = module.large(x)
    assert POOL.lent == before + 1
    where = first.__array_interface__["data"][0]
    np.testing.assert_array_equal(first, x + 1)
    del first
    again = module.large(x)
    assert again.__array_interface__["data"][0] == where


def test_subclasses_and_other_libraries_take_the_general_path(module, tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(5,))
    mapped[:] = 2
    for _ in range(2):
        np.testing.assert_array_equal(module.large(mapped), [3] * 5)
    torch = pytest.importorskip("torch")
    assert module.large(torch.ones(3)).tolist() == [2, 2, 2]


def test_wrong_counts(module):
    for args in ((), (floats(2), floats(2))):
        with pytest.raises(tc.CallError, match="TC606"):
            module.large(*args)


def test_results_that_no_memory_holds(module):
    with pytest.raises(tc.CallError, match="TC612"):
        module.large(np.broadcast_to(np.float32(1), (1 << 45,)))
    with pytest.raises(tc.CallError, match="TC612"):
        module.large(np.broadcast_to(np.float32(1), (1 << 44,)))
