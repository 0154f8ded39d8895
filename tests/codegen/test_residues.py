"""Quotients and remainders by small numbers along a row: residues written out, and remainders of neighbours."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.ranges import infer_ranges
from tc_jupyter.schedule import default_schedule
from tests.codegen.llvm_kernels import AVX512

pytest.importorskip("llvmlite")

SIZES = [1, 2, 3, 17, 32, 33, 65, 131]
ROWS = {
    "nearest": "X(t, e / 2) where e in 0:2*N, t in 0:T",
    "four times": "X(t, e / 4) where e in 0:4*N, t in 0:T",
    "linear": "0.5 * (X(t, e / 2) + X(t, (e + 1) / 2)) where e in 0:2*N - 1, t in 0:T",
    "both directions": "X(t / 2, e / 2) + X((t + 1) / 2, (e + 1) / 2) where e in 0:2*N - 1, t in 0:2*T - 1",
    "thirds": "X(t, e / 3) * (e % 3) + X(t, (e + 2) / 3) where e in 0:3*N - 2, t in 0:T",
    "interleaved": "e % 2 == 0 ? X(t, e / 2) : -X(t, (N - 1) - e / 2) where e in 0:2*N, t in 0:T",
    "not from 0": "X(t, (e + 5) / 2) where e in -5:2*N - 5, t in 0:T",
    "two numbers": "X(t, e / 2) + X(t, e / 4) where e in 0:2*N, t in 0:T",
    "pairs and halves": "X(t, e) - X(t, e / 2) where e in 0:N, t in 0:T",
    "pairs turned": "X(t, e) + (e % 2 == 0 ? (X(t, e + 1) else 7) : X(t, e - 1)) * X(t, e / 2) where e in 0:N, t in 0:T",
    "threes": "X(t, e) + X(t, e / 3) * X(t, e / 3 * 3) where e in 0:N, t in 0:T",
    "fours and halves": "X(t, e / 4) * X(t, e / 2) - X(t, e) where e in 0:N, t in 0:T",
    "every third": "e % 3 == 0 ? 2*X(t, e) : X(t, e) where e in 0:N, t in 0:T",
    "signs": "(t + e) % 2 == 0 ? X(t, e) : -X(t, e) where e in 0:N, t in 0:T",
    "factors": "X(t, e) * (1 - 2*((t + e) % 2)) where e in 0:N, t in 0:T",
    "backwards": "(t - 2*e) % 5 < 3 ? X(t, e) : -X(t, e) where e in 0:N, t in 0:T",
    "not beside": "(7*e + s) % 6 != 4 ? X(t, e) : -X(t, e) where e in 0:N, t in 0:T",
    "large": "e % 1000000007 == 3 ? X(t, e) : -X(t, e) where e in 0:N, t in 0:T",
    "never": "e % 3 == 7 ? X(t, e) : -X(t, e) where e in 0:N, t in 0:T",
    "negative": "e % (-3) == -1 ? X(t, e) : -X(t, e) where e in 0:N, t in 0:T",
}


def test_a_remainder_that_is_the_same_in_all_lanes_stays_a_scalar() -> None:
    """A jump decides what is added to all lanes of a tile."""
    text = "def f(float(N) X, float(3) B) -> (Y) { Y(j) +=! k % 2 != 0 ? B(k) : X(j) where j in 0:N, k in 0:3 }"
    x, b = np.arange(70, dtype=np.float32), np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(tc.compile(text, target="cpu").f(x, b), 2 * x + 2)


@pytest.mark.some(3)
@pytest.mark.parametrize("dtype", ["float", "uint8", "double"])
@pytest.mark.parametrize("name", ROWS)
def test_values_are_those_of_the_interpreter(name: str, dtype: str) -> None:
    """At sizes around vectors and tiles, where the last residues may be missing."""
    text = f"def f({dtype}(T, N) X, int32 s) -> (Y) {{ Y(t, e) = {ROWS[name]} }}"
    plain = tc.compile(text, target="interpreter", allow=["TC322"]).f
    f = tc.compile(text, target="cpu", allow=["TC322"]).f
    for n in SIZES:
        x = (
            np.random.default_rng(n)
            .integers(0, 100, (3, n))
            .astype({"float": "f4", "uint8": "u1", "double": "f8"}[dtype])
        )
        for s in (-4, 3):
            np.testing.assert_array_equal(f(x, s), plain(x, s), err_msg=f"{n} {s}")


def test_residues_have_plain_subscripts() -> None:
    """The quotient is the index of vectors, the residue of a loop that is written out."""
    text = "def f(float(N) A, float(N) B) -> (Y) { Y(i) = i % 2 == 0 ? A(i / 2) : B(i / 2) where i in 0:2*N }"
    loops = tc.compile(text, target="cpu").f.source("loops")
    assert "? A[i.outer.inner + 16 * i.outer.outer]" in re.sub(r"\b(8|32|4)\b", "16", loops)


@pytest.mark.parametrize("value", ["X(i, j) - M(j % 3)", "X(i, j) * M(j / 2)", "X(i, j) * M(j % 4) + M(j / 2)"])
def test_what_goes_along_the_row_is_read_once_for_all_residues(value: str) -> None:
    """And taken apart: a row less the means of three colours was computed element by element."""
    f = tc.compile(f"def f(float(N, L) X, float(K) M) -> (Y) {{ Y(i, j) = {value} }}", target="cpu").f
    program = f.definition().program
    steps = default_schedule(program, infer_ranges(program), AVX512).to_python()
    assert ".unroll('Y', 'j.inner')" in steps
    assert ".vectorize('Y', 'j.outer.inner')" in steps
    x, m = np.random.default_rng(0).random((5, 131), np.float32), np.arange(66, dtype=np.float32)
    i, j = np.indices(x.shape)
    want = eval(re.sub(r"\b([XM])\(([^()]*)\)", r"\1[\2]", value).replace("/", "//"), {"X": x, "M": m, "i": i, "j": j})
    np.testing.assert_allclose(f(x, m), want, rtol=1e-6)


def test_remainders_of_neighbours_take_no_division() -> None:
    """One of the first lane, as a scalar."""
    f = tc.compile("def f(float(N) X) -> (Y) { Y(j) = j % 3 == 0 ? 2*X(j) : X(j) }", target="cpu").f
    assert "rem <" not in f.source("llvm")
