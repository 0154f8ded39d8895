"""Sizes of the latest calls."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime.recent_sizes import RecentCalls


def test_the_latest_five_different_sizes():
    recent = RecentCalls(("N", "K"))
    assert recent.texts() == ()
    for n in (1, 2, 3, 4, 5, 6, 4):
        recent.note((n, 2 * n))
    assert recent.texts() == tuple(f"N={n}, K={2 * n}" for n in (4, 6, 5, 3, 2))


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_every_way_of_a_call_is_noted(target):
    f = tc.compile("def f(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }", target=target).f
    recent = f._definition.recent
    for n in (7, 5, 5, 7, 7):
        f(np.ones(n, np.float32), np.ones(2, np.float32))
    assert recent.texts() == ("N=7, K=2", "N=5, K=2")
    f(np.ones(7, np.float32), np.ones(3, np.float32), out=np.ones(5, np.float32))
    f(np.ones((4, 2), np.float32)[:, 0], np.ones(1, np.float32))
    assert recent.texts()[:2] == ("N=4, K=1", "N=7, K=3")
    with pytest.raises(tc.CallError):
        f(np.ones(1, np.float32), np.ones(9, np.float32))
    assert len(recent.texts()) == 4


def test_a_function_without_sizes_has_nothing_to_tell():
    f = tc.compile("def f(float s) -> (Y) { Y(i) = s where i in 0:3 }").f
    f(2.0)
    assert f._definition.recent.texts() == ()
