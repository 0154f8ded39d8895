"""An extreme and its first place in one pass over a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tc_jupyter as tc

pytest.importorskip("llvmlite")

SIZES = [1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 1000]


def rows(dtype: str, n: int, rng: Any) -> Any:
    """Rows with ties, infinities, zeros of both signs, and NaN in several places."""
    x = rng.integers(-3, 4, (12, n)).astype(dtype)
    if np.issubdtype(x.dtype, np.floating):
        x[0], x[1] = -np.inf, np.inf
        x[2] = np.where(rng.random(n) < 0.5, 0.0, -0.0)
        x[3, rng.integers(0, n, 3)] = np.nan
        x[4, n - 1] = np.nan
        x[5] = np.nan
        x[6] = -np.inf
        x[6, n // 2] = np.nan
    return x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16", "uint8"])
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_places_are_those_of_numpy(kind: str, dtype: str) -> None:
    """At sizes around those of vectors."""
    name = {"float32": "float", "float64": "double"}.get(dtype, dtype)
    text = f"""def one({name}(N, M) X) -> (P) {{ P(n) {kind}=! X(n, m) }}
    def both({name}(N, M) X) -> (V, P) {{ V(n), P(n) {kind}=! X(n, m) at 3*m + 1 }}"""
    module, rng = tc.compile(text, target="cpu"), np.random.default_rng(1)
    for n in SIZES:
        x = rows(dtype, n, rng) if dtype != "uint8" else rng.integers(0, 5, (12, n)).astype(dtype)
        wanted = getattr(np, kind)(x, axis=1)
        np.testing.assert_array_equal(module.one(x), wanted, err_msg=str(n))
        value, place = module.both(x)
        np.testing.assert_array_equal(place, 3 * wanted + 1, err_msg=str(n))
        np.testing.assert_array_equal(value, x[np.arange(12), wanted], err_msg=str(n))


def test_a_row_is_read_once() -> None:
    f = tc.compile("def f(float(N, M) X) -> (P) { P(n) argmax=! X(n, m) }", target="cpu").f
    loops = f.source("passes").split("-- first places")[1].split("\n-- ")[0].split("else")[0]
    assert sum("X[n, m.o" in line for line in loops.splitlines()) == 2  # the place and the value, in one loop
