"""What is built for calls with empty ranges."""

import numpy as np
import pytest

import tc_jupyter as tc

TEXT = """def f(float(N) A, float(M) B) -> (Y, S) {
    T(i) = A(i) * A(i)
    S(i) = A(i) + 1
    Y(i,k) = T(i) * B(k)
}"""


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_temporary_is_computed_where_a_reader_has_points(target):
    """A result is computed in any case."""
    f = tc.compile(TEXT, target=target).f
    a = np.arange(5, dtype=np.float32)
    for count in (0, 3):
        b = np.arange(count, dtype=np.float32)
        y, s = f(a, b)
        np.testing.assert_array_equal(y, np.outer(a * a, b))
        np.testing.assert_array_equal(s, a + 1)


def test_empty_ranges_leave_a_temporary_without_a_reader():
    f = tc.compile(TEXT, target="cpu").f
    nothing = f.source("loops", np.ones(5, np.float32), np.ones(0, np.float32))
    temporary, result = (part for part in nothing.split("kernel ") if "T[i] =" in part or "S[i] =" in part)
    assert "M > 0" in temporary
    assert "if " not in result
