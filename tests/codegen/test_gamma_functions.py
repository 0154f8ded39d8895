"""`digamma` and `polygamma` on every engine: as accurate as `double` allows, poles and the numbers below 0 included."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import special

import tc_jupyter as tc
from tests.c_compiler import needs_compiler
from tests.codegen.test_c import run

PROGRAM = """def f(T(N) X) -> (A, B, C, D, E) {
    A(i) = digamma(X(i))  B(i) = polygamma(1, X(i))  C(i) = polygamma(2, X(i))  D(i) = polygamma(5, X(i))  E(i) = polygamma(0, X(i))
}"""
NUMBERS = np.array([
    1e-300, 1e-8, 0.1, 0.5, 0.99, 1, 1.3, 1.46, 1.4616321449683622, 1.4616321449683626, 1.7, 2, 2.5, 3, 9.5, 10, 11, 25, 1000, 1e8,
    1e17, 1e200, -1e-5, -0.5, -0.9, -1.25, -2.6, -7.3, -20.51, -100.25,
])  # fmt: skip
ENDS = np.array([0.0, -1, -2, np.inf, np.nan])


def expected(x: np.ndarray) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return [special.psi(x), *(special.polygamma(n, x) for n in (1, 2, 5)), special.psi(x)]


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        *(
            ("interpreter", "double"),
            ("interpreter", "float"),
            ("cpu", "double"),
            ("cpu", "float"),
            ("simulator", "double"),
        ),
        *(pytest.param("c", kind, marks=needs_compiler) for kind in ("double", "float")),
    ],
)
def test_values(engine: str, kind: str) -> None:
    text = PROGRAM.replace("T(", f"{kind}(")
    x = NUMBERS.astype(np.float32 if kind == "float" else np.float64)
    if kind == "float":
        x = x[np.isfinite(x)]
    if engine == "c":
        found = [mine for mine, _ in run(text, {"X": x}, {"N": len(x)})]
    elif engine == "simulator":
        found = tc.compile(text).f.simulate(x).outputs
    else:
        found = tc.compile(text, target=engine).f(x)
    for one, other in zip(found, expected(x.astype(np.float64)), strict=True):
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(one, other.astype(x.dtype), rtol=2e-6 if kind == "float" else 4e-13)


def test_an_order_is_a_whole_number() -> None:
    text = "def f(double(N) X, double n) -> (Y) { Y(i) = polygamma(n, X(i)) }"
    for target in ("interpreter", "cpu"):
        f = tc.compile(text, target=target).f
        assert np.isnan(f(NUMBERS, 1.5)).all()
        assert np.isnan(f(NUMBERS, -1.0)).all()


def test_far_below_zero_it_takes_no_longer() -> None:
    x = np.full(8, -1e12 - 0.5)
    before = time.perf_counter()
    for target in ("interpreter", "cpu"):
        found = tc.compile("def f(double(N) X) -> (Y) { Y(i) = polygamma(1, X(i)) }", target=target).f(x)
        np.testing.assert_allclose(found, np.pi**2, rtol=1e-9)
    assert time.perf_counter() - before < 60
