"""Residues of rows of any length: versions in which their vectors are equally long."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

pytest.importorskip("llvmlite")

BOARD = "def f(float(T, N) X) -> (Y) { Y(t, e) = X(t / 2, e / 2) + 2*(t % 2) + e % 2 where t in 0:T, e in 0:N }"
THIRDS = "def f(float(T, N) X) -> (Y) { Y(t, e) = X(t, e / 3) * (e % 3) where t in 0:T, e in 0:N }"


@pytest.mark.parametrize("text", [BOARD, THIRDS], ids=["board", "thirds"])
def test_values_at_every_length(text: str) -> None:
    f, plain = (tc.compile(text, target=target).f for target in ("cpu", "interpreter"))
    for n in (*range(1, 8), 15, 16, 17, 30, 31, 32, 33, 47, 48, 49, 63, 64, 66, 95, 97, 112):
        x = np.random.default_rng(n).random((3, n), np.float32)
        np.testing.assert_array_equal(f(x), plain(x), err_msg=str(n))


def test_tiles_with_as_many_elements_of_each_residue_are_mixed() -> None:
    """Of both versions, that of full tiles and that of the end of a row, nothing is scattered."""
    f = tc.compile(BOARD, target="cpu").f
    lengths = [
        line.split(" in ")[1]
        for line in f.source("passes").rpartition("\nkernel ")[2].splitlines()
        if "# vectorize" in line
    ]
    mixed = [each for each in lengths if "e.inner" not in each]
    assert len(mixed) >= 2
    assert len(mixed) == len(lengths) - 1
