"""Positions of extreme values, against NumPy."""

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.schedule.target import Target

TARGETS = ["interpreter", "cpu"]


def compiled(text, target):
    return tc.compile(text, target=target).f


@pytest.mark.some(5)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "bool"])
def test_positions_are_those_of_numpy(target, dtype):
    random = np.random.default_rng(1)
    f = compiled(
        f"def f({dtype}(N, M) X) -> (A, B, V, C, D) {{\n"
        "A(n) argmax=! X(n, m)  B(n) argmin=! X(n, m)  V(m), C(m) argmax=! X(n, m)  D argmin=! X(n, m) at n*M + m }",
        target,
    )
    for shape in [(1, 1), (3, 7), (5, 70), (40, 33)]:
        x = random.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype)
        if dtype.startswith("float"):
            x[0, shape[1] // 2 :] = np.nan
            x[-1, 0], x[-1, -1] = 0.0, -0.0
        a, b, v, c, d = f(x)
        assert a.dtype == np.int64
        np.testing.assert_array_equal(a, x.argmax(1))
        np.testing.assert_array_equal(b, x.argmin(1))
        np.testing.assert_array_equal(v, x.max(0))
        np.testing.assert_array_equal(c, x.argmax(0))
        assert d == x.argmin()


@pytest.mark.parametrize("target", TARGETS)
def test_a_value_that_is_not_exact_is_found_again(target):
    random = np.random.default_rng(2)
    x, y = random.standard_normal((2, 30, 45)).astype(np.float32)
    f = compiled("def f(float(N, M) X, float(N, M) Y) -> (P) { P(n) argmax=! exp(X(n, m))*Y(n, m) + X(n, m) }", target)
    value = np.exp(x.astype(np.float64)) * y + x
    np.testing.assert_allclose(value[np.arange(30), f(x, y)], value.max(1), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_has_no_position(target):
    f = compiled("def f(float(N, M) X) -> (P) { P(n) argmax=! X(n, m) }", target)
    assert f(np.zeros((0, 0), np.float32)).shape == (0,)
    with pytest.raises(tc.CallError, match="nothing has no position: `M >= 1` is false"):
        f(np.zeros((3, 0), np.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_any_and_all(target):
    f = compiled("def f(int(N, M) X) -> (A, B) { A(n) any=! X(n, m) > 3  B(n) all=! X(n, m) > 0 }", target)
    for shape in [(4, 0), (3, 70), (0, 2)]:
        x = np.random.default_rng(3).integers(0, 5, shape).astype(np.int32)
        a, b = f(x)
        np.testing.assert_array_equal(a, (x > 3).any(1))
        np.testing.assert_array_equal(b, (x > 0).all(1))


def test_long_rows_end_early(monkeypatch):
    """Where one value decides; of parts of a row that is one number, too. Two statements read a row together, and all of it."""
    text = """def f(int(N, M) X) -> (A, B, c) { A(n) any=! X(n, m) > 3  B(n) all=! X(n, m) > 0  c any=! X(0, m) > 3 }
    def g(int(N, M) X) -> (A) { A(n) any=! X(n, m) > 3 }"""
    monkeypatch.setattr(Target, "reads_ahead", True)  # rows are read one by one, on every processor
    module = tc.compile(text, target="cpu")
    f = module.f
    for at, value in [(0, 9), (1023, 9), (1024, 9), (20_000, 9), (0, 0), (1023, 0), (1024, 0), (20_000, 0), (0, 1)]:
        x = np.ones((2, 20_001), np.int32)
        x[0, at] = value
        a, b, c = f(x)
        assert (a.tolist(), b.tolist(), bool(c)) == ([value == 9, False], [value != 0, True], value == 9)
        np.testing.assert_array_equal(module.g(x), a)
    assert "if !A[n]" in module.g.source("passes")


def test_simulated():
    f = compiled("def f(float(N, M) X) -> (V, P) { V(n), P(n) argmax=! X(n, m) }", "cpu")
    x = np.random.default_rng(4).integers(0, 9, (7, 37)).astype(np.float32)
    found = f.simulate(x)
    assert not found.findings
    np.testing.assert_array_equal(found.outputs[1], x.argmax(1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("", "A(n)*A(n)", lambda a: a * a),
        ("int64 ", "A(n)*A(n)", lambda a: a * a),
        ("", "int64(A(n)*A(n)) + 1", lambda a: (a * a).astype(np.int64) + 1),
        ("", "max(A(n)*A(n)/3, A(n) + A(n))", lambda a: np.maximum(a * a // np.int8(3), a + a)),
    ],
)
def test_values_that_wrap_around_are_found_again(target, kind, value, expected):
    f = compiled(f"def f(int8(N) A) -> ({kind}V, P) {{ V, P argmin=! {value} }}", target)
    a = np.random.default_rng(5).integers(-128, 128, 50).astype(np.int8)
    v, p = f(a)
    assert v == expected(a).min()
    assert p == expected(a).argmin()
