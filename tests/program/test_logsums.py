"""`lse=!`, against the formula in double."""

import numpy as np
import pytest

import tc_jupyter as tc


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize(("dtype", "near"), [("float32", 1e-5), ("float64", 1e-13), ("float16", 2e-3)])
def test_the_logarithm_of_a_sum_of_powers(target, dtype, near):
    text = "L(n) lse=! X(n, m)  T lse=! 2*v where v = X(n, m)  C(m) lse=! X(n, m) where m in 1:3"
    f = tc.compile(f"def f({dtype}(N, M) X) -> (L, T, C) {{ {text} }}", target=target).f
    x = (50 * np.random.default_rng(1).standard_normal((6, 40))).astype(dtype)
    x[1], x[2, 3], x[3, 5] = -np.inf, np.inf, np.nan
    with np.errstate(all="ignore"):
        rows, columns = x.astype(float), x[:, 1:3].astype(float)
        found = f(x)
        assert [str(each.dtype) for each in found] == [dtype] * 3
        np.testing.assert_allclose(found[0], np.logaddexp.reduce(rows, axis=1), rtol=near)
        np.testing.assert_allclose(found[1], np.logaddexp.reduce(2 * rows, axis=None), rtol=near)
        np.testing.assert_allclose(found[2], np.logaddexp.reduce(columns, axis=0), rtol=near)
    np.testing.assert_allclose(f(np.zeros((2, 3), dtype))[0], np.full(2, np.log(3)), rtol=near)
    np.testing.assert_array_equal(f(np.zeros((0, 3), dtype))[1], -np.inf)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("text", ["-> (double T) { T lse=! X(i) }", "-> (T) { T = double(X(0))  T lse=! X(i) }"])
def test_it_is_computed_in_the_type_of_the_result(target, text):
    """As a sum is."""
    f = tc.compile(f"def f(float(N) X) {text}", target=target).f
    assert float(f(np.array([1, 0], np.float32))) == pytest.approx(np.log(1 + np.e), rel=1e-15)
