"""Derivatives of long values: each part that stands in several places is named once, and gets its derivative once."""

import numpy as np
import pytest

import tc_jupyter as tc

COMPLEX = """def f(double(N) X, double(N) Z) -> (Y) {
    C(i) = complex128(X(i), Z(i))
    D(i) = exp(C(i)*C(i)*0.3)/(C(i)+2) + sqrt(C(i))*conj(C(i))
    Y(i) = re(D(i)) + abs(D(i))
}"""
SINGULAR = """def f(double(N) X) -> (Y) {
    Y(i) = (X(i) > 0 ? log(X(i)) * w + sqrt(X(i)) : 0.0) + (i > 0 ? w * w * sqrt(abs(X(i)) + i - 1) + log(X(i) + i) * w : X(i))
        where v = exp(sin(X(i)) * cos(X(i))), w = v*v + sin(v) * cos(v), i in 0:N
}"""
REDUCED = """def f(double(N, M) X, double(M) W) -> (Y) {
    Y(i) +=! w * w * W(k) + w where v = exp(X(i, k) * W(k)) / (1 + W(k)), w = v*v*v + sin(v) * cos(v) + tanh(v*v)
}"""


def chain(length):
    """A value in which each part stands twice in the next one."""
    names = [f"v{k} = sin(v{k - 1}) * v{k - 1} + 0.5" for k in range(1, length)]
    return f"def f(double(N) X) -> (Y) {{ Y(i) = v{length - 1} where v0 = X(i), {', '.join(names)} }}"


def differences(f, arguments, place, step=1e-6):
    """How the sum of the results changes with each element of an argument."""
    found = np.zeros_like(arguments[place])
    for at in np.ndindex(found.shape):
        ends = []
        for way in (step, -step):
            moved = [each.copy() for each in arguments]
            moved[place][at] += way
            ends.append(f(*moved).sum())
        found[at] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("text", [COMPLEX, REDUCED, chain(7)], ids=["complex", "reduced", "chain"])
def test_derivatives_of_long_values_are_those_of_differences(text):
    f = tc.compile(text, target="interpreter").f
    assert "_v1" in f.vjp().text
    assert "_v1" in f.jvp().text
    random = np.random.default_rng(1)
    sizes = {"N": 3, "M": 2}
    arguments = [
        random.uniform(0.3, 0.9, [sizes[dim.name] for dim in f.program.tensor(name).dims])
        for name in f.program.parameters
    ]
    ones = np.ones_like(f(*arguments))
    back = f.vjp()(*arguments, ones)
    back = back if isinstance(back, tuple) else (back,)
    directions = [random.uniform(-1, 1, each.shape) for each in arguments]
    _, along = f.jvp()(*arguments, *directions)
    for place, found in enumerate(back):
        np.testing.assert_allclose(found, differences(f, arguments, place), rtol=1e-6, atol=1e-7)
    total = sum((found * way).sum() for found, way in zip(back, directions, strict=True))
    np.testing.assert_allclose(along.sum(), total, rtol=1e-9)


def test_what_a_condition_leaves_out_has_no_derivative():
    """`log(X)` is no temporary: where it is not computed, its derivative would be 0 times infinity."""
    f = tc.compile(SINGULAR, target="interpreter").f
    x = np.array([0.0, -0.5, 0.7])
    found = f.vjp()(x, np.ones(3))
    assert np.isfinite(found).all()
    rest = differences(f, [x], 0)
    np.testing.assert_allclose(found[1:], rest[1:], rtol=1e-6)


def test_the_text_grows_with_the_value():
    """It was twice as long for every part more."""
    short, long = (len(tc.compile(chain(length), target="interpreter").f.vjp().text) for length in (6, 12))
    assert long < 2.5 * short


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("2/(B(j) + A(i)*C(j))", "V = B(j) + A(i) * C(j)"),
        ("B(j) + 2*log(A(i) + B(j))", "V = A(i) + B(j)"),
        ("sqrt(A(i) - B(j))", "V = A(i) - B(j)"),
        ("exp(A(i) - B(j))", ""),  # its slope is its value
        ("max(A(i) - B(j), 0)", ""),
        ("(A(i) - B(j))/C(j)", ""),
        ("(A(i) > 0 ? 2/(A(i) + B(j)) : 0)", "V = A(i) > 0.0 ? A(i) + B(j) : 0.0 where i in 0:N, j in 0:M"),
    ],
)
def test_a_slope_that_takes_long_is_found_once_for_several_elements(value, named):
    """The sums for `A` and `B` have what the divisor gets, and divide nothing."""
    text = f"def f(double(N) A, double(M) B, double(M) C) -> (Y) {{ Y(i, j) = {value} }}"
    f = tc.compile(text, target="interpreter").f
    found = f.vjp().text
    lines = [line.strip() for line in found.splitlines() if line.strip().startswith("Y_v1(i, j)")]
    assert lines == ([named.replace("V =", "Y_v1(i, j) =")] if named else [])
    sums = [line for line in found.splitlines() if "+=!" in line]
    assert not named or not any("/" in line for line in sums)
    random = np.random.default_rng(4)
    a, b, c = random.uniform(2, 3, 3), random.uniform(0.3, 0.9, 4), random.uniform(0.3, 0.9, 4)
    for place, each in enumerate(f.vjp()(a, b, c, np.ones((3, 4)))):
        np.testing.assert_allclose(each, differences(f, [a, b, c], place), rtol=1e-6, atol=1e-8)
