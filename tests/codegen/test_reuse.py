"""Temporaries that are not needed any more give their memory to later ones."""

import itertools
import random
import re

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.schedule import tuning
from tests.schedule.test_time_tiles import SHAPES, drawn_steps, tiled_schedule

CHAIN = """def f(float(N) X) -> (Y) {
    A(i) = 2 * X(i)
    B(i) = A(i) + 1
    C(i) = B(i) * B(i)
    D(i) = C(i) - 3
    Y(i) = D(i) + 4
}"""


def _in_tiles(f):
    schedule = f.schedule().split("Y", "i", 8192)
    for name in "DCBA":
        schedule = schedule.compute_at(name, "Y", "i.outer")
    return f.with_schedule(schedule)


def _names(loops):
    return sorted(set(re.findall(r"allocate local float32 (\w)\[", loops)))


def test_of_a_chain_two_are_in_memory():
    f = _in_tiles(tc.compile(CHAIN, target="cpu").f)
    x = np.random.default_rng(0).random(20_000, np.float32)
    np.testing.assert_allclose(f(x), (2 * x + 1) ** 2 + 1, rtol=1e-6)
    before, _, after = f.source("passes").partition("reuse")
    assert _names(before) == ["A", "B", "C", "D"]
    assert _names(after) == ["A", "B"]


@pytest.mark.parametrize("seed", range(20))
def test_values_stay_the_same(seed, monkeypatch, tmp_path):
    """Small ones share their memory, too, in drawn programs on integers."""
    monkeypatch.setattr(tuning, "STACK_BYTES", 0)
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path))
    text, states, rank = drawn_steps(seed, "int32")
    plain = tc.compile(text, target="cpu", allow=["TC321", "TC322"]).many
    tiled = plain.with_schedule(tiled_schedule(plain, random.Random(seed), steps=4))
    numbers = np.random.default_rng(seed)
    for shape, n in itertools.product(SHAPES[rank], (3, 4, 9)):
        given = [numbers.integers(-9, 9, shape, np.int32) for _ in range(states + 1)]
        np.testing.assert_array_equal(tiled(*given, n), plain.with_schedule(plain.schedule())(*given, n))
