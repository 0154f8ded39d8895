"""Wavefronts are accepted where brute force finds that they keep the order, and compute what it computes."""

from collections import Counter
from random import Random

import numpy as np
import pytest

import tc_jupyter as tc
from tests.orders import compare, simulated
from tests.schedule.wavefronts import nest, recurrence

MANY, VALUES, SIMULATED = 24, 5, 2
"""How many a test looks at; the slow ones look at nine times as many, or more."""
LARGEST = 6
"""The largest size of brute force: more than two tiles."""


def judged(seed, **options):
    """A recurrence, its function and a schedule: `None` where it is refused, with two points that are wrong."""
    random = Random(seed)
    one = recurrence(random)
    found = nest(random, one, **options)
    f = tc.compile(one.text, allow=["TC303", "TC325", "TC329"]).f
    schedule, loops, refusal = found.applied(f.schedule())
    if schedule is None:
        assert "TC407" in refusal, (one.text, found.steps, refusal)
        assert loops.confirms(one, refusal), (one.text, found.steps, refusal)
    else:
        assert loops.keeps_order(one, LARGEST), (one.text, found.steps)
    return one, f, schedule


def compared(seed, call, **options):
    """Whether a wavefront was accepted; its values are those of brute force, at sizes from 0 on."""
    one, f, schedule = judged(seed, **options)
    if schedule is None:
        return False
    random = np.random.default_rng(seed)
    shapes = ((0, 0), (0, 3), (1, 1), (2, 2), (1, 9), tuple(random.integers(1, 14, 2)))
    compare(one, shapes, random, lambda x: call(one.text, f, schedule, x))
    return True


def engines(text, f, schedule, x):
    yield f.with_schedule(schedule)(x)
    yield tc.compile(text, target="interpreter", allow=["TC303", "TC325", "TC329"]).f.with_schedule(schedule)(x)


def test_a_wavefront_is_accepted_where_it_keeps_the_order():
    found = Counter(judged(seed)[2] is None for seed in range(MANY))
    assert min(found[True], found[False]) > MANY // 8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_a_wavefront_is_accepted_where_it_keeps_the_order_many(part):
    for seed in range(10_000 + part * 80, 10_080 + part * 80):
        judged(seed)


def test_values_are_those_of_the_order():
    assert sum(compared(seed, engines) for seed in range(VALUES)) > VALUES // 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_values_are_those_of_the_order_many(part):
    for seed in range(20_000 + part * 8, 20_008 + part * 8):
        compared(seed, engines)


@pytest.mark.parametrize("count", [SIMULATED, pytest.param(20, marks=pytest.mark.slow)])
def test_the_threads_of_a_gpu_wait_for_each_other(count):
    pytest.importorskip("cuda")
    assert any(
        [
            compared(seed, lambda text, f, schedule, x: simulated(f.with_schedule(schedule), x), kinds=("threads",))
            for seed in range(count)
        ]
    )


NESTED = {
    "a tile, and a row of tiles": lambda s: (
        s.split("Y", "j", 4).skew("Y", "j.outer", "j.inner").skew("Y", "i", "j.outer.j.inner.front")
    ),
    "places on a front": lambda s: (
        s.skew("Y", "i", "j")
        .split("Y", "i.place", 3)
        .skew("Y", "i.place.outer", "i.place.inner")
        .skew("Y", "i.j.front", "i.place.outer.i.place.inner.front")
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_fronts_of_fronts_have_all_points(name):
    f = tc.compile("def f(int32(M,N) X) -> (Y) { Y(i,j) = 2*X(i,j) }").f
    for shape in ((33, 19), (1, 1), (5, 8), (7, 3)):
        x = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
        np.testing.assert_array_equal(f.with_schedule(NESTED[name](f.schedule()))(x), 2 * x)
