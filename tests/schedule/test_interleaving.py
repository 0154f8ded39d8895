"""Statements that write the residues of one array are one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tc_jupyter as tc

pytest.importorskip("llvmlite")

ONE = {
    "two": "Y(2*i) = A(i)  Y(2*i + 1) = 3*B(i)",
    "three, in any order": "Y(3*i + 1) = A(i)  Y(3*i) = B(i) + 1  Y(3*k + 2) = A(k) * B(k)",
    "four, one is a number": "Y(4*i + 1) = A(i)  Y(4*i) = B(i)  Y(4*k + 2) = A(k) - B(k)  Y(4*i + 3) = 7 where i in 0:N",
    "beyond the ends": "Y(2*i) = A(clamp(i - 1)) where i in 0:N  Y(2*i + 1) = B(i)",
    "not from 0": "Y(2*i + 5) = A(i)  Y(2*i + 4) = B(i)",
}
APART = {
    "other ranges": "Y(i) = 0 where i in 0:2*N  Y(2*i) = A(i)  Y(2*i + 1) = B(i + 1) where i in 0:N - 1",
    "one is missing": "Y(i) = 0 where i in 0:2*N  Y(2*i) = A(i)",
    "points are left out": "Y(i) = 0 where i in 0:2*N  Y(2*i) = A(i) where A(i) > 0.5  Y(2*i + 1) = B(i)",
    "added": "Y(i) = 0 where i in 0:2*N  Y(2*i) += A(i)  Y(2*i + 1) += B(i)",
    "places from data": "Y(2*i) = A(I(i))  Y(2*i + 1) = B(i)",
}


def compiled(body: str, target: str) -> Any:
    text = f"def f(float(N) A, float(N) B{', int32(N) I' if 'I(' in body else ''}) -> (Y) {{ {body} }}"
    return tc.compile(text, target=target).f


def kernels(f: Any) -> list[str]:
    return [line.split("(")[0] for line in f.source("loops").splitlines() if line.startswith("kernel")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*ONE, *APART])
def test_values_are_those_of_the_statements_one_by_one(name: str) -> None:
    body = (ONE | APART)[name]
    f, plain, rng = compiled(body, "cpu"), compiled(body, "interpreter"), np.random.default_rng(1)
    for n in (2, 3, 7, 15, 16, 17, 33, 64, 131):
        a, b = rng.random((2, n), np.float32)
        more = [rng.integers(0, n, n, np.int32)] if "I(" in body else []
        np.testing.assert_array_equal(f(a, b, *more), plain(a, b, *more), err_msg=str(n))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*ONE, *APART])
def test_residues_of_one_array_are_one_kernel(name: str) -> None:
    assert (len(kernels(compiled((ONE | APART)[name], "cpu"))) == 1) == (name in ONE)


@pytest.mark.filterwarnings("ignore")
def test_vectors_are_mixed() -> None:
    """Nothing is scattered, and no element is tested for its residue."""
    code = compiled(ONE["two"], "cpu").source("llvm")
    assert "scatter" not in code
    assert "srem" not in code


@pytest.mark.filterwarnings("ignore")
def test_rows_have_names_of_their_own() -> None:
    text = "def f(float(N, M) A, float(N, M) B) -> (Y) { Y(i, 2*j) = A(i, j)  Y(r, 2*k + 1) = B(r, k) }"
    a, b = np.random.default_rng(1).random((2, 3, 40), np.float32)
    wanted = np.stack((a, b), 2).reshape(3, 80)
    for target in ("cpu", "interpreter"):
        np.testing.assert_array_equal(tc.compile(text, target=target).f(a, b), wanted)
