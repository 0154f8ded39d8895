"""Statements that change each element once, `Y(i) += v` onto an array of `out=`: the templates of `Y(i) = Y(i) + v` take them."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler.definition import accumulating
from tc_jupyter.ranges import infer_ranges
from tc_jupyter.runtime import cpu
from tc_jupyter.schedule import default_schedule

pytest.importorskip("llvmlite")

VALUES = {
    "scaled": "Y(i) += 0.5 * X(i)",
    "largest": "Y(i) max= X(i)",
    "product": "Y(i) *= X(i) + 1",
    "reversed": "Y(i) += X((N - 1) - i) where i in 0:N",
    "every second": "Y(i) += X(2*i)",
    "halves": "Y(i) max= X(i / 2) * X(i) where i in 0:N",
    "function": "Y(i) += tanh(X(i))",
    "twice": "Y(i) += X(i) Y(i) *= 3",
    "neighbours": "Y(i) += X(i) - X(i + 1) where i in 0:N - 1",
}


OF_FLOATS = ("scaled", "function")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, d) for n in VALUES for d in ("float", "int16", "double") if d != "int16" or n not in OF_FLOATS],
)
def test_values_are_those_of_the_interpreter(name: str, dtype: str) -> None:
    """At sizes around vectors, onto arrays that hold something."""
    text = f"def f({dtype}(N) X) -> (Y) {{ {VALUES[name]} }}"
    plain, f = (tc.compile(text, target=each, allow=["TC232"]).f for each in ("interpreter", "cpu"))
    for n in (2, 3, 16, 33, 70, 600):
        random = np.random.default_rng(n)
        x = random.integers(-9, 9, n).astype({"float": "f4", "int16": "i2", "double": "f8"}[dtype])
        before = np.ones_like(plain(x))
        want, found = (each(x, out=before.copy()) for each in (plain, f))
        np.testing.assert_allclose(found, want, rtol=1e-5 if dtype == "float" else 1e-13, atol=1e-14)


@pytest.mark.parametrize("value", ["a * X(i)", "X(i) - X(i + 1)"])
def test_an_update_of_one_row_has_vectors_and_tasks(value: str) -> None:
    """`Y(i) += a * X(i)` had neither onto an array of `out=`, and took 3.8 times as long as its loops in C."""
    f = tc.compile(f"def f(float a, float(N) X) -> (Y) {{ Y(i) += {value} }}", target="cpu", allow=["TC232", "TC234"]).f
    definition = f.definition()
    program = accumulating(definition.program)
    steps = default_schedule(program, infer_ranges(program), cpu.cpu_target()).to_python()
    assert ".expand('Y')" in steps
    assert ".vectorize('Y', 'i.inner')" in steps
    assert ".parallel('Y', 'i.outer')" in steps


def test_the_schedule_of_a_def_serves_calls_with_out() -> None:
    """The steps of the default schedule are found for a def that starts from 0, and a call with `out=` does not."""
    f = tc.compile("def f(float(N) X) -> (Y) { Y(i) += X(i) }", target="cpu", allow=["TC232"]).f
    own = f.with_schedule(f.default_schedule())
    x = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(own(x, out=x.copy()), 2 * x)


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 7, 10, 12, 15, 16, 20])
@pytest.mark.parametrize("value", ["X(i,j) - M(j)", "X(i,j) * X(i,0)", "M(j) * M(j)", "X(i,j) + (j / 2 + 2*i)"])
def test_short_rows_are_changed_without_masks(value: str, columns: int) -> None:
    """A read under a mask waited for the write of the row before: rows of 7 took 2.1 times as long as in C, and 0.5 now."""
    text = f"def f(float(N,{columns}) X, float({columns}) M) -> (Y) {{ Y(i,j) += {value} where i in 0:N, j in 0:{columns} }}"
    f = tc.compile(text, target="cpu", allow=["TC232", "TC234"]).f
    x, m = np.random.default_rng(0).random((37, columns), np.float32), np.arange(columns, dtype=np.float32)
    i, j = np.indices(x.shape)
    change = {
        "X(i,j) - M(j)": x - m[j],
        "X(i,j) * X(i,0)": x * x[:, :1],
        "M(j) * M(j)": 0 * x + m[j] * m[j],
        "X(i,j) + (j / 2 + 2*i)": x + j // 2 + 2 * i,
    }[value]
    whole = np.full((39, columns), 7, np.float32)
    f(x, m, out=whole[1:-1])
    np.testing.assert_allclose(whole[1:-1], 7 + change, rtol=1e-6)
    assert (whole[[0, -1]] == 7).all()
