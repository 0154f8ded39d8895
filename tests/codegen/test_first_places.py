"""An extreme, and its first place in the first block of a row that has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tc_jupyter as tc

pytest.importorskip("llvmlite")

SIZES = [1, 2, 17, 64, 129, 1023, 1025, 2100]


def rows(dtype: str, n: int, rng: Any) -> Any:
    """Rows with ties, infinities, zeros of both signs, and NaN in several places."""
    x = rng.integers(-3, 4, (12, n)).astype(dtype)
    x[7, n - 1], x[8, n // 2 :], x[9, n // 2 :] = 9, 9, -9
    if np.issubdtype(x.dtype, np.floating):
        x[0], x[1] = -np.inf, np.inf
        x[2] = np.where(rng.random(n) < 0.5, 0.0, -0.0)
        x[3, rng.integers(0, n, 3)] = np.nan
        x[4, n - 1] = np.nan
        x[5] = np.nan
        x[6] = -np.inf
        x[6, n // 2] = np.nan
    return x


@pytest.mark.some(4)
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
    """Beside the block that has the extreme; of short rows, where several are read together, too."""
    f = tc.compile("def f(int32(N, M) X) -> (P) { P(n) argmax=! X(n, m) }", target="cpu").f
    loops = f.source("passes").split("-- first places")[1].split("\n-- ")[0].split("else")[0]
    assert sum("X[n, " in line for line in loops.splitlines()) == 2
    assert "if P.found[0] == 2147483647" in loops
    together = "n.inner in 0:min(N - 4 * n.outer, 4)"
    for length, is_short in ((10, True), (300, True), (600, False), (100_000, False)):
        assert (together in f.source("loops", np.zeros((100, length), np.int32))) == is_short


@pytest.mark.parametrize("length", [17, 100, 300, 600])
def test_many_rows_are_those_of_numpy(length: int) -> None:
    """Several rows together, or one after the other."""
    f = tc.compile("def f(float(N, M) X) -> (P) { P(n) argmax=! X(n, m) }", target="cpu").f
    x = np.tile(rows("float32", length, np.random.default_rng(2)), (6, 1))
    np.testing.assert_array_equal(f(x), x.argmax(1))
