"""Any schedule built by random primitives computes what the untransformed program computes; bounds hold what is read."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tc_jupyter.schedule import schedule_of
from tests.running import in_bounds, program_of, run
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


@settings(max_examples=150, deadline=None, suppress_health_check=CHECKS)
@given(programs(dtypes=("int32", "float", "int64", "half")), st.data(), sizes())
def test_random_schedules_compute_the_same(text, data, numbers):
    same_arrays(text, data, numbers)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=CHECKS)
@given(programs(), st.data(), sizes())
def test_random_schedules_compute_the_same_many(text, data, numbers):
    same_arrays(text, data, numbers)
