"""Any schedule built by random primitives computes what the untransformed program computes; bounds hold what is read."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.schedule import schedule_of
from tc_jupyter.schedule.schedule import Step
from tests.running import in_bounds, program_of, run
from tests.schedule import schedules
from tests.strategies import arguments, programs, random_schedule, sizes

CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def same_arrays(text, data, numbers):
    found = program_of(text)
    assume(found is not None)
    program, ranges = found
    assume(in_bounds(program, ranges, numbers))
    base = schedule_of(program, ranges)
    changed = random_schedule(data, base)
    arrays = arguments(program, 1, numbers)
    expected = run(base, arrays, numbers)
    found = run(changed, arrays, numbers)
    for name, values in expected.items():
        np.testing.assert_allclose(
            found[name].astype("float64"), values.astype("float64"), rtol=2e-2 if values.dtype == np.float16 else 1e-4,
            atol=1e-3, err_msg=f"{text}\n{changed.to_python()}\n{numbers}",
        )  # fmt: skip


def test_a_request_that_overshoots_stays_inside_its_tensor():
    """`i%2` over a tile of two reaches 1, also where `T` has one element: found with a random place."""
    text = "def f(int32(N) X) -> (O) { T(i) = X(i%2) where i in 0:N  O(i) = T(i%2) where i in 0:N }"
    schedule = schedule_of(*program_of(text)).split("O", "i", 2).compute_at("T", "O", "i.outer")
    for n in (1, 2, 5):
        x = np.arange(n, dtype="int32")
        np.testing.assert_array_equal(run(schedule, {"X": x}, {"N": n})["O"], x[np.arange(n) % 2 % 2])


def test_what_nobody_asks_for_with_a_size_of_0_is_not_read():
    """`T(0)` is asked for by a loop without points: found with a random program."""
    text = "def f(float(N) X) -> (O) { T(i) = 1 + X(i)  O +=! max(T(0), X(i)) }"
    schedule = schedule_of(*program_of(text)).split("O", "i", 2)
    for n, expected in ((0, 0.0), (3, 4.0)):
        assert run(schedule, {"X": np.arange(n, dtype="float32")}, {"N": n})["O"] == expected


@settings(max_examples=20, deadline=None, suppress_health_check=CHECKS)
@given(programs(dtypes=("int32", "float", "int64", "half")), st.data(), sizes())
def test_random_schedules_compute_the_same(text, data, numbers):
    same_arrays(text, data, numbers)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=CHECKS)
@given(programs(), st.data(), sizes())
def test_random_schedules_compute_the_same_many(text, data, numbers):
    same_arrays(text, data, numbers)


def outcome(schedule, parts):
    """What parts of a list of steps make of a schedule, or the refusal."""
    try:
        for steps in parts:
            schedule = schedule.followed_by(steps)
    except (CompileError, ValueError, KeyError) as refused:
        return type(refused), str(refused)
    return schedule, schedule.graph.unchecked, schedule.start().unchecked


@settings(max_examples=15, deadline=None, suppress_health_check=CHECKS)
@given(programs(), st.data())
def test_steps_together_are_steps_one_by_one(text, data):
    found = program_of(text)
    assume(found is not None)
    base = schedule_of(*found)
    steps = random_schedule(data, base).steps
    assert outcome(base, [steps]) == outcome(base, [(step,) for step in steps])


@pytest.mark.parametrize(
    ("text", "steps", "said"),
    [
        (
            "def f(float(N) X) -> (O) { T(i) = 2*X(i)  O(i) = T(i) }",
            [Step("compute_at", ("T", "O", "i")), Step("bind", ("T", "i", "blockIdx.x")), Step("bind", ("O", "i", "threadIdx.x"))],
            "TC401",
        ),
        (
            "def f(int(N) X) -> (O) { O(i) = X(i)  T(i) = 2 * O(N - 1 - i) where i in 0:N  O(i) = O(i) + T(i) }",
            [Step("split", ("T", "i", 2)), Step("compute_at", ("T", "O#2", "i")), Step("split", ("O", "i", 4))],
            "TC401",
        ),
        (
            "def f(float(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }",
            [Step("split", ("Y", "i", 4)), Step("vectorize", ("Y", "i.inner"))],
            "TC407",
        ),
    ],
)  # fmt: skip
def test_steps_together_are_refused_as_one_by_one(text, steps, said):
    base = schedule_of(*program_of(text))
    found = outcome(base, [steps])
    assert found == outcome(base, [(step,) for step in steps])
    assert said in found[1]


def test_storage_follows_the_sizes_of_a_call():
    """Not the largest `int32`, where a range ends at a scalar."""
    assert schedules.check(1465) == "compared"


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_primitives_are_refused_or_right(seed):
    schedules.check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 300, 100))
def test_random_primitives_are_refused_or_right_many(first):
    for seed in range(first, first + 100):
        schedules.check(seed)
