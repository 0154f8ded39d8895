"""Calls with sizes that were not seen yet: made from what calls of a def share, with every check, and without the general path."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler.definition import _MOST_RECIPES, Definition
from tc_jupyter.runtime.native_call import NativeCall

pytest.importorskip("llvmlite")

CELL = """
def add(float(N) X, float(N) Y) -> (Z) { Z(i) = X(i) + Y(i) }
def times(float(M,K) A, float(K) x) -> (y) { y(i) +=! A(i,k) * x(k) }
def layer(float(M,K) A, float(K) x) -> (y) { y(i) += A(i,k) * x(k) }
def window(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) }
def softmax(float(N) X) -> (Y) { T(i) = exp(X(i))  s +=! T(i)  Y(i) = T(i) / s }
def look(float(N) T, int32(M) I) -> (Y) { Y(i) = T(I(i)) }
def twice(float(V) T, int32(N) I, int32(M) J) -> (Y) { Y(i) = T(I(J(i))) }
def scaled(float(N) X, float a, int32 b) -> (Y) { Y(i) = a * X(i) + b }
def both(float(N, 2) X) -> (P, Q) { P(i) +=! X(i,k)  Q(i,k) = X(i,k) * X(i,k) }
"""

EXPECTED = {
    "add": lambda x, y: x + y,
    "times": lambda a, x: a @ x,
    "layer": lambda a, x: a @ x,
    "window": lambda x, w: np.correlate(x, w),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(),
    "look": lambda t, i: t[i],
    "twice": lambda t, i, j: t[i[j]],
    "scaled": lambda x, a, b: np.float32(a) * x + b,
    "both": lambda x: (x.sum(1), x * x),
}


@pytest.fixture
def module():
    return tc.compile(CELL, target="cpu", allow=["TC232", "TC321", "TC322", "TC323"])


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def arguments(name, n):
    index = np.arange(n, dtype=np.int32)[::-1].copy()
    return {
        "add": lambda: (floats(n), floats(n)),
        "times": lambda: (floats(9, n), floats(n)),
        "layer": lambda: (floats(9, n), floats(n)),
        "window": lambda: (floats(n), floats(3)),
        "softmax": lambda: (floats(n),),
        "look": lambda: (floats(n), index),
        "twice": lambda: (floats(n), index, index),
        "scaled": lambda: (floats(n), n / 2, -n),
        "both": lambda: (floats(n, 2),),
    }[name]()


def same(found, expected):
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.fixture
def general(monkeypatch):
    """Counts the calls of the general path."""
    count, real = [0], Definition.call

    def call(*args):
        count[0] += 1
        return real(*args)

    monkeypatch.setattr(Definition, "call", call)
    return count


@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("name", EXPECTED)
def test_a_length_that_grows_takes_the_general_path_once_for_each_class(module, general, name, out):
    function = module[name]
    for n in range(65, 128):
        given = arguments(name, n)
        expected = EXPECTED[name](*given)
        if not out:
            same(function(*given), expected)
            continue
        results = tuple(np.zeros_like(each) for each in (expected if isinstance(expected, tuple) else (expected,)))
        assert function(*given, out=results) is results
        same(results, tuple(expected) if isinstance(expected, tuple) else (expected,))
    # scans of an index tensor behind another one are the general path's
    assert general[0] <= 3 or name == "twice"


def test_the_same_sizes_again_are_planned_and_new_ones_are_not(module, monkeypatch):
    recorded: list[int] = []
    real = NativeCall.record
    monkeypatch.setattr(NativeCall, "record", lambda self, *given: recorded.append(1) or real(self, *given))
    for n in range(9, 60):
        module.add(floats(n), floats(n))
    assert not recorded
    for _ in range(3):
        module.add(floats(59), floats(59))
    assert recorded == [1]


def test_few_sizes_are_remembered(module):
    for n in range(1, _MOST_RECIPES + 99):
        module.add(floats(n), floats(n))
    known = module.add._definition._recipes[False]
    assert 0 < len(known) <= _MOST_RECIPES


def test_every_check_is_made_at_new_sizes(module):
    for n in range(9, 20):
        same(module.add(floats(n), floats(n)), floats(n) * 2)
        module.window(floats(n), floats(3))
        module.look(floats(n), np.arange(n, dtype=np.int32))
        module.scaled(floats(n), 1.0, n)
        with pytest.raises(tc.CallError, match="TC605"):
            module.add(floats(n), floats(n + 1))
        with pytest.raises(tc.CallError, match="TC607"):
            module.add(floats(n), floats(n).astype("f8"))
        with pytest.raises(tc.CallError, match="TC608"):
            module.add(floats(n), floats(n, 1))
        with pytest.raises(tc.CallError, match="TC60"):
            module.window(floats(n), floats(n + 2))
        with pytest.raises(tc.CallError, match="TC604"):
            module.look(floats(n), np.full(n + 3, n, np.int32))
        with pytest.raises(tc.CallError, match="TC607"):
            module.scaled(floats(n), 1e300, n)
        with pytest.raises(tc.CallError, match="TC607"):
            module.scaled(floats(n), 1.0, 1 << 40)
        with pytest.raises(tc.CallError, match="TC610"):
            module.add(floats(n), floats(n), out=np.zeros(n + 1, np.float32))
        read_only = np.zeros(n, np.float32)
        read_only.flags.writeable = False
        with pytest.raises(tc.CallError, match="TC610"):
            module.add(floats(n), floats(n), out=read_only)
        memory = floats(n + 1)
        with pytest.raises(tc.CallError, match="TC611"):
            module.add(memory[:n], floats(n), out=memory[1:])


def test_strides_and_emptiness_at_new_sizes_take_the_general_path(module):
    for n in range(9, 14):
        x = floats(2 * n)
        same(module.add(x[::2], x[1::2]), x[::2] + x[1::2])
        same(module.add(floats(n), floats(n)), 2 * floats(n))
        assert module.times(floats(n, 0), floats(0)).tolist() == [0] * n
        assert module.times(floats(0, n), floats(n)).shape == (0,)


def test_results_onto_others_at_new_sizes(module):
    for n in range(65, 75):
        a, x, y = floats(9, n), floats(n), floats(9)
        expected = y + a @ x
        module.layer(a, x, out=y)
        same(y, expected)
        same(module.layer(a, x), a @ x)


def test_sizes_that_are_fixed_are_checked_at_new_sizes():
    f = tc.compile(
        "def f(float(M, K) A) -> (O) { O(i) +=! A(i, k) }", target="cpu", specialize={"K": 4}, allow=["TC322"]
    ).f
    for n in range(9, 14):
        same(f(floats(n, 4)), floats(n, 4).sum(1))
        with pytest.raises(tc.CallError, match="TC605"):
            f(floats(n, 5))
