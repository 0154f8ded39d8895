"""How lanes are read: rows that are shorter than a vector and wrap around in it, more than once."""

import re

import numpy as np
import pytest

import tc_jupyter as tc

PERIODS = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65)


@pytest.mark.parametrize(
    ("dtype", "kind"), [(each, each) for each in ("int8", "int16", "int32")] + [("float", "f4"), ("double", "f8")]
)
def test_short_rows_wrap_around_in_a_vector(dtype, kind):
    """Sums over `j`, whose vectors may end inside, of a row that is read from each of its elements on."""
    f = tc.compile(f"def f({dtype}(K) A, {dtype}(N) B) -> (Y) {{ Y(i) max=! A((i + j) % K) * B(j) where i in 0:40 }}").f
    numbers = np.random.default_rng(0)
    for period in PERIODS:
        a = numbers.integers(-5, 6, period).astype(kind)
        for length in (1, 9, 64, 100):
            b = numbers.integers(-5, 6, length).astype(a.dtype)
            at = (np.arange(40)[:, None] + np.arange(length)) % period
            np.testing.assert_array_equal(f(a, b), (a[at] * b).max(axis=1), err_msg=f"{period}, {length}")


@pytest.mark.parametrize("period", [2, 5, 16, 33])
def test_remainders_by_a_number_wrap_around_in_a_vector(period):
    text = f"def f(int32({period}) A, int32(N) B) -> (Y) {{ Y(i) max=! A((j - i) % {period}) * B(j) where i in 0:40 }}"
    f, numbers = tc.compile(text).f, np.random.default_rng(0)
    a = numbers.integers(-5, 6, period).astype(np.int32)
    for length in (1, 9, 64, 100):
        b = numbers.integers(-5, 6, length).astype(np.int32)
        at = (np.arange(length) - np.arange(40)[:, None]) % period
        np.testing.assert_array_equal(f(a, b), (a[at] * b).max(axis=1))


def masks(text):
    """The names of the masks of what is read, but of those that only say where a row ends."""
    found = tc.compile(text, target="cpu").f.source("llvm")
    return set(re.findall(r"@llvm\.masked\.(?:load|gather).*<\d+ x i1> %([a-z]+)", found)) - {"inside"}


CHOICE = "X(i, j) > B(j) ? X(i, j)*{at} + X(i, j)*X(i, j)*C(j)*C(j) + sqrt(C(j)) / B(j) : 0"


def test_a_choice_between_what_is_there_reads_without_a_mask():
    """Where lanes choose for themselves a mask saves no work."""
    head = "def f(float(N, M) X, float(M) B, float(M) C) -> (Y) { Y(i) +=! "
    assert not masks(f"{head}{CHOICE.format(at='C(j)')} }}")


def test_what_was_not_chosen_changes_nothing():
    f = tc.compile(f"def f(float(N, M) X, float(M) B, float(M) C) -> (Y) {{ Y(i) +=! {CHOICE.format(at='C(j)')} }}").f
    x, b, c = np.ones((3, 100), "f"), np.zeros(100, "f"), np.ones(100, "f")
    b[::2], c[1::2], x[:, 1::2] = 0.5, -1, -1
    np.testing.assert_array_equal(f(x, b, c), [200] * 3)


@pytest.mark.parametrize("divisor", [2, 3, 5, 7, 8, 100])
@pytest.mark.parametrize("weight", [1, 2, 3, 5, -2])
@pytest.mark.parametrize("op", ["/", "%"])
def test_sums_read_at_quotients_and_remainders_in_vectors(op, weight, divisor):
    """Also of positions that fall, or grow by more than the divisor."""
    shift = max(0, -200 * weight)
    place = f"({weight}*i + {shift}) {op} {divisor}"
    f = tc.compile(f"def f(int32(N) A, int32(M) B) -> (S) {{ S +=! A(i) * B({place}) where i in 0:N }}").f
    numbers = np.random.default_rng(0)
    b = numbers.integers(-5, 6, 1001).astype(np.int32)
    for length in (1, 9, 64, 200):
        a = numbers.integers(-5, 6, length).astype(np.int32)
        at = weight * np.arange(length) + shift
        at = at // divisor if op == "/" else at % divisor
        assert f(a, b) == (a * b[at]).sum()
