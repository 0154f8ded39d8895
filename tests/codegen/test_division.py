"""Vectors divided by one number: the quotients of the processor's own division."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

pytest.importorskip("llvmlite")


@pytest.mark.parametrize("kind, bits, least", [("float", np.uint32, 2.0**-100), ("double", np.uint64, 2.0**-900)])
def test_quotients_are_those_of_a_division(kind, bits, least):
    function = tc.compile(f"def f({kind}(N) X, {kind}(K) s) -> (Y) {{ Y(k,i) = X(i) / s(k) }}", target="cpu")["f"]
    dtype = np.dtype("float32" if kind == "float" else "float64")
    about, rng = np.finfo(dtype), np.random.default_rng(3)
    special = [0, -0.0, np.inf, -np.inf, np.nan, about.max, -about.max, about.tiny, 3 * about.smallest_subnormal, 1, -3]
    any_bits = rng.integers(0, np.iinfo(bits).max, 3000, dtype=bits, endpoint=True).view(dtype)
    x = np.concatenate([np.array(special, dtype), any_bits, rng.uniform(0.5, 2, 3000).astype(dtype)])
    s = np.concatenate([x[:100], x[-100:]])
    with np.errstate(all="ignore"):
        expected = x[None] / s[:, None]
    found = function(x, s)
    same = (found.view(bits) == expected.view(bits)) | (np.isnan(found) & np.isnan(expected))
    # the remainder of a tiny number is rounded itself
    assert np.all(same | (np.abs(x) < least))
    apart = np.abs(found.view(bits).astype(np.int64) - expected.view(bits).astype(np.int64))
    assert np.all((apart <= 1) | np.isnan(expected))
