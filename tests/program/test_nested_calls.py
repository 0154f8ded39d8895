"""Calls of defs inside expressions: the values that the same calls in statements of their own give."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

DEFS = """
def smooth(float(N) X) -> (Y) { Y(i) = (X(i) + X(i+1)) / 2 }
def scale(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }
def total(float(N) X) -> (s) { s +=! X(i) }
def first(float(N) X, int n) -> (Y) { Y(i) = X(i) where i in 0:n }  # allow TC322
def apart(float(N) X) -> (P, Q) { P(i) = 2 * X(i)  Q(i) = X(N-1-i) where i in 0:N }
def turn(float(N) U, float(N) V, float a) -> (A, B) { A(i) = a * V(i)  B(i) = U(i) + V(i) }
"""
X = np.array([1, 3, 5, 11], np.float32)
MEANS = (X[:-1] + X[1:]) / 2


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("Z = scale(smooth(X), 2 * b)", 6 * MEANS),
        ("Z = smooth(X) - scale(smooth(-X), 3)", 4 * MEANS),
        ("Z = smooth(smooth(X))", (MEANS[:-1] + MEANS[1:]) / 2),
        ("Z(i) = X(i) / total(scale(X, 2))", X / 40),
        ("Z(i) = X(i) / total(X) + total(scale(X, b))", X / 20 + 60),
        ("Z(i) = X(i) / v where v = total(scale(X, 2))", X / 40),
        ("Z(i) +=! X(k) where i in 0:N, k in 0:N, X(k) < total(X) / b, X(i) > 0", 0 * X + 9),
        ("Z = first(X, N - 1)", X[:-1]),
        ("Z = first(X, 2) + first(smooth(X), 2)", X[:2] + MEANS[:2]),
        ("Z = b > 2 ? smooth(X) : scale(smooth(X), 0.5)", MEANS),
        ("Z = scale(X, float(X.0))", 4 * X),
        ("P, Q = apart(2 * X + b)  Z = P + 0*Q", 4 * X + 6),
        ("P, Z = apart(scale(smooth(X), 2))", 2 * MEANS[::-1]),
        ("Z = scale^2(X + 1, b / total(X))", (X + 1) * 9 / 400),
        ("A, Z = turn^2(-X, scale(X, 2), b - 1)", 5 * X),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_values(statement, expected, target):
    f = tc.compile(f"{DEFS}def f(float(N) X, float b) -> (Z) {{ {statement} }}", target=target).f
    np.testing.assert_allclose(f(X, 3.0), expected, rtol=1e-6)


def test_a_function_of_an_earlier_cell():
    earlier = tc.compile(DEFS)
    f = tc.compile("def f(float(N) X) -> (Z) { Z = smooth(2 * X) + 1 }", known={"smooth": earlier.smooth}).f
    np.testing.assert_allclose(f(X), 2 * MEANS + 1)


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("Z = means(means(X) + 1) * 2", MEANS[:-1] + MEANS[1:] + 2),
        ("Z = times(X - 1, N + k) + times(X, 3)", 9 * X - 6),
        ("Z = X / mean(2 * X)", X / 10),
        ("A, Z = both(means(X) + 1)", 2 * MEANS + 2),
    ],
)
def test_functions_of_sac(statement, expected):
    known = tc.compile(
        """float[*] means(float[*] a) { return { [i, ...] -> (a[i] + a[i + 1]) / 2f | [i] < [shape(a)[0] - 1] }; }
        float[*] times(float[*] a, int n) { return a * tof(n); }
        float mean(float[.] a) { return sum(a) / tof(shape(a)[0]); }
        float[*], float[*] both(float[*] a) { return (a, 2f * a); }""",
        language="sac",
    )
    f = tc.compile(f"def f(float(N) X, int32 k) -> (Z) {{ {statement} }}", known=dict(known)).f
    np.testing.assert_allclose(f(X, 2), expected, rtol=1e-6)


def test_the_names_of_what_is_stored_are_those_of_the_call():
    f = tc.compile(f"{DEFS}def f(float(N) X) -> (Z) {{ Z = scale(smooth(X), 2) }}").f
    assert {"Z.smooth", "Z.scale.a"} <= {tensor.name for tensor in f.program.tensors}


@pytest.mark.parametrize(
    "statement, number, message",
    [
        ("W = 2 * wrong(X)", "TC201", "`Q`"),  # a def with a mistake: nothing else is said of its calls
        ("W(i) = wrong(X)", "TC201", "`Q`"),
        ("W = smooth(smooth^2(X))", "TC501", "a power of the def `smooth` is a statement of its own"),
    ],
)
def test_one_message(statement, number, message):
    wrong = "def wrong(float(N) X) -> (s) { s +=! Q(i) }" if "wrong" in statement else ""
    found = tc.analyze(f"{DEFS}{wrong} def f(float(N) X) -> (W) {{ {statement} }}")
    (error,) = (each for each in found.diagnostics if each.is_error)
    assert error.code.number == number
    assert message in error.message


SIZES = """
def times(float(N) X, {type} n) -> (Y) {{ Y(i) = X(i) * n }}
def grown({type} n) -> (m) {{ m = {type}(n + 1) }}
def once(float(N) X) -> (Y) {{ Y = times(X, {size}) }}
def power(float(N) X) -> (m) {{ m = grown^2({size}) }}
def block(float(N) X) -> (H) {{
    along t in 0:3 {{
        P(i) = (H(t - 1, i) else X(i))
        Q = times(P, {size})
        H(t, i) = Q(i)
    }}
}}
"""


@pytest.mark.parametrize("caller", ["once", "power", "block"])
@pytest.mark.parametrize(
    "type_, size, fits, refused",
    [
        ("int8", "N", 120, 130),
        ("uint8", "N*N - 4", 16, 1),
        ("uint32", "N - 2", 2, 1),
        ("int8", "3 - N", 7, 132),
        ("int8", "X.0 - 1", 100, 200),
    ],
)
def test_a_size_that_the_type_of_a_number_does_not_hold_is_refused_as_from_python(caller, type_, size, fits, refused):
    # it wrapped: with `int8 n`, 300 elements were multiplied by 44
    module = tc.compile(SIZES.format(type=type_, size=size))
    number = eval(size.replace("X.0", "N"), {"N": fits})  # a line of this file
    x = np.full(fits, 0.5, np.float32)
    expected = {"once": x * number, "power": number + 2, "block": [x * number, x * number**2, x * number**3]}
    assert np.array_equal(module[caller](x), np.array(expected[caller], np.float32))
    with pytest.raises(tc.CallError, match=rf"TC607.* `n` of `\w+` is a number of type {type_}, .*is -?\d+"):
        module[caller](np.ones(refused, np.float32))


def test_a_size_that_never_fits_the_type_of_a_number():
    at = "def at(float(N) X, uint8 k) -> (Y) { Y = X(k) }  def f(float(N) X) -> (Y) { Y = at(X, -1 - N) }"
    (error,) = (each for each in tc.analyze(at, allow="TC322").diagnostics if each.is_error)
    assert error.code.number == "TC212"
    assert "`-1 - N` never fits" in error.message


def test_a_step_that_is_passed_gets_a_name():
    text = "def block(float(N) X) -> (H) { along t in 0:3 { P(i) = (H(t - 1, i) else X(i)) %s H(t, i) = Q(i) } }"
    known = tc.compile("def times(float(N) X, int32 n) -> (Y) { Y(i) = X(i) * n }")
    (error,) = tc.analyze(text % "Q = times(P, t + 1)", known=dict(known)).diagnostics
    assert error.code.number == "TC501"
    assert "as in `n = t + 1`, and pass `n`" in (error.help or "")
    (error,) = tc.analyze(text % "n = t + 1  Q = times(P, n)", known=dict(known)).diagnostics
    assert error.fix is not None
    block = tc.compile(text % "n = int32(t + 1)  Q = times(P, n)", known=dict(known)).block
    assert np.array_equal(block(X), [X, 2 * X, 6 * X])
