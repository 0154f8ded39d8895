"""Integer division of `%%sac`: every pair of `int8`, against the definitions of C in wide integers."""

import numpy as np
import pytest

import tc_jupyter as tc

A = np.repeat(np.arange(-128, 128, dtype=np.int8), 256).reshape(256, 256)
B = np.ascontiguousarray(A.T)
DIVIDED = "int8[*], int8[*], int8[*] f(int8[*] a, int8[*] b) { return (a / b, a % b, mod(a, b)); }"


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_every_pair_of_int8(target):
    quotient, remainder, modulo = tc.compile(DIVIDED, language="sac", target=target).f(A, B)
    assert {each.dtype for each in (quotient, remainder, modulo)} == {np.dtype(np.int8)}
    a, b = A.astype(np.int64), B.astype(np.int64)
    known = b != 0  # by 0 all three are 0
    divisor = np.where(known, b, 1)
    toward_zero = np.sign(a) * np.sign(divisor) * (np.abs(a) // np.abs(divisor))
    wrapped = toward_zero.astype(np.int8)  # -128 / -1 leaves the range
    np.testing.assert_array_equal(quotient, np.where(known, wrapped, 0))
    np.testing.assert_array_equal(remainder, np.where(known, a - toward_zero * divisor, 0))
    np.testing.assert_array_equal(modulo, np.where(known, np.mod(a, divisor), 0))


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_every_number_of_int8_by_numbers_that_are_written(target):
    numbers = (-128, -7, -2, -1, 1, 2, 3, 8, 127)
    terms = ", ".join(f"a / int8({n}), a % int8({n}), mod(a, int8({n}))" for n in numbers)
    a = np.arange(-128, 128, dtype=np.int8)
    types = ", ".join(["int8[.]"] * 3 * len(numbers))
    found = tc.compile(f"{types} f(int8[.] a) {{ return ({terms}); }}", language="sac", target=target).f(a)
    for n, quotient, remainder, modulo in zip(numbers, found[::3], found[1::3], found[2::3], strict=True):
        wide = a.astype(np.int64)
        toward_zero = np.sign(wide) * np.sign(n) * (np.abs(wide) // abs(n))
        np.testing.assert_array_equal(quotient, toward_zero.astype(np.int8))
        np.testing.assert_array_equal(remainder, wide - toward_zero * n)
        np.testing.assert_array_equal(modulo, np.mod(wide, n))


@pytest.mark.parametrize("n, expected", [(0, []), (1, [0]), (4, [0, 7, 0, 6])])
def test_a_grid_that_begins_after_the_end_has_no_position(n, expected):
    """What is summed inside is computed once for each position, and for none here."""
    text = (
        "long[*] f(long[.] a, int n) { return { [i] -> a[i] + sum(drop([i], a)) | [1] <= [i] < [n] step 2 width 1 }; }"
    )
    found = tc.compile(text, language="sac", target="interpreter").f(np.arange(n), np.int32(n))
    np.testing.assert_array_equal(found, np.array(expected, np.int64))


@pytest.mark.parametrize("n", [3, 6, 7])
def test_a_quotient_that_is_a_term_of_its_own_dividend_counts_twice(n):
    text = "int[.] f(float[.] a) { n = shape(a)[0]; return genarray([(4 * ((n + 1) / 4) + n + 1) / 4], 1); }"
    found = tc.compile(text, language="sac", target="interpreter").f(np.zeros(n, np.float32))
    assert len(found) == (4 * ((n + 1) // 4) + n + 1) // 4
