"""Numbers near the ends of 64 bits in subscripts and ranges: no engine reads outside, and none returns what nobody wrote."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

X = np.array([10, 20, 30], np.float32)
U32, U64, I64 = 2**32 - 1, 2**64 - 1, 2**63
QUIET = ("TC235", "TC236", "TC322", "TC323", "TC327")

OUTSIDE = {
    "a square of uint32": ("uint32(K) I", "Y(i) = X(min(I(i)*I(i), N-1))", np.array([U32], np.uint32)),
    "four factors": ("uint16(K) I", "Y(i) = X(min(I(i)*I(i)*I(i)*I(i), N-1))", np.array([2**16 - 1], np.uint16)),
    "a square of a scalar": ("uint32 s", "Y = X(min(s*s, N-1))", U32),
    "a divisor": ("uint32 s", "Y(i) = X(i % (s*s+1)) where i in 0:N", U32),
    "below 0 as int64": ("uint64(K) I", "Y(i) = X(min(max(I(i),0),N-1))", np.array([2**64 - 2**40], np.uint64)),
    "uint64 below a number": ("uint64(K) I", "Y(i) = X(min(I(i),2))", np.array([U64], np.uint64)),
    "uint64 below a size": ("uint64(K) I", "Y(i) = X(min(I(i),N-1))", np.array([2**63], np.uint64)),
    "uint64 below a uint64": ("uint64(K) I", "Y(i) = X(min(I(i),2ul))", np.array([U64], np.uint64)),
    "a scalar of uint64": ("uint64 s", "Y = X(min(s,2ul))", U64),
    "a quotient": ("uint64(K) I", "Y(i) = X(I(i)/7000000000000000000)", np.array([U64], np.uint64)),
    "an absolute value": ("int64(K) I", "Y(i) = X(min(abs(I(i)), N-1))", np.array([-I64], np.int64)),
    "that of a scalar": ("int64 s", "Y = X(min(abs(s), N-1))", -I64),
    "a sum": ("int64(K) I", "Y(i) = X(min(I(i)+5,N-1))", np.array([I64 - 1])),
    "a sum that nothing limits": ("int64(K) I", "Y(i) = X(I(i)+1)", np.array([I64 - 1])),
}
RANGES = {
    "a reduction": ("uint32 s", "Y(i) +=! X(i+k) where k in 0:min(s*s,2)", U32),
    "a square": ("uint32 s", "Y(i) = X(i) where i in 0:min(s*s,N)", U32),
    "nine factors": ("uint8 s", "Y(i) = X(i) where i in 0:min(s*s*s*s*s*s*s*s*s,N)", 200),
    "a square of int64": ("int64 s", "Y(i) = X(i) where i in 0:min(s*s,N)", 3037000500),
    "uint64": ("uint64 s", "Y(i) = X(i) where i in 0:min(s,N)", U64),
    "an absolute value": ("int64 s", "Y(i) = X(i) where i in 0:min(abs(s),N)", -I64),
    "a sum": ("int64 s", "Y(i) = X(i) where i in 0:max(min(s+5,N),0)", I64 - 1),
}
RIGHT = {
    "clamped on both sides": ("int64(K) I", "Y(i) = X(max(min(I(i)+5,N-1),0))", np.array([-9, 1]), [10, 30]),
    "a remainder": ("uint32(K) I", "Y(i) = X((I(i)*I(i)) % N)", np.array([2, 5], np.uint32), [20, 20]),
    "uint64 inside": ("uint64(K) I", "Y(i) = X(I(i))", np.array([0, 2], np.uint64), [10, 30]),
    "a small square": ("uint32 s", "Y(i) = X(i) where i in 0:min(s*s,N)", 1, [10]),
    "a small uint64": ("uint64 s", "Y(i) = X(i) where i in 0:min(s,N)", 2, [10, 20]),
}


def functions(parameter, body):
    text = f"def f(float(N) X, {parameter}) -> (Y) {{ {body} }}"
    return [tc.compile(text, target=target, allow=QUIET)["f"] for target in ("interpreter", "cpu")]


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_that_wraps_is_refused(name):
    parameter, body, given = OUTSIDE[name]
    for function in functions(parameter, body):
        for _ in range(3):  # the short ways of a call, too
            with pytest.raises(tc.CallError) as caught:
                function(X, given)
            assert caught.value.diagnostic.code.number == "TC604"


@pytest.mark.parametrize("name", RANGES)
def test_a_range_that_wraps_is_refused(name):
    parameter, body, given = RANGES[name]
    for function in functions(parameter, body):
        for _ in range(3):
            with pytest.raises(tc.CallError) as caught:
                function(X, given)
            assert caught.value.diagnostic.code.number == "TC601"
            assert "64 bits" in caught.value.diagnostic.message


@pytest.mark.parametrize("name", RIGHT)
def test_small_numbers_are_right(name):
    parameter, body, given, wanted = RIGHT[name]
    for function in functions(parameter, body):
        for _ in range(3):
            assert function(X, given).tolist() == wanted


def test_a_clamp_on_both_sides_needs_no_check():
    (found,) = tc.analyze(
        "def f(float(N) X, int64(K) I) -> (Y) { Y(i) = X(max(min(I(i)*I(i), N-1), 0)) }"
    ).functions.values()
    assert {item.kind for item in found.preconditions} == {"PROVED"}


LAST = 2**63 - 1
FAR = {
    "int64": [0, -1, LAST, -LAST - 1, 5],
    "uint64": [0, 1, LAST, LAST + 1, 2 * LAST + 1],
    "uint32": [0, 1, 2**32 - 1, 2**31, 5],
}
CLAMPED = (
    "clamp({})",
    "max(min({}, N - 1), 0)",
    "clamp({} + 1)",
    "clamp(max({}, 3))",
    "clamp({}*{})",
    "clamp({}/-1)",
    "clamp(abs({}))",
    "clamp(min({}, i))",
)


@pytest.mark.parametrize("dtype", FAR)
@pytest.mark.parametrize("index", CLAMPED)
def test_a_clamp_holds_at_the_ends_of_64_bits(dtype, index):
    """The short form of a clamp, `min(x + 1, N) - 1`, wraps around there: the loop interpreter says that it leaves the array."""
    for declared, read in ((f"{dtype}(M) I", "I(i)"), (f"{dtype} s", "s")):
        end = "M" if "M" in declared else "5"
        subscript = index.replace("{}", read)
        text = f"def f(float(N) X, {declared}) -> (Y) {{ Y(i) = X({subscript}) where i in 0:{end} }}"
        given = [np.array(FAR[dtype], dtype)] if "M" in declared else FAR[dtype]
        slow, fast = (tc.compile(text, target=target, allow="TC236").f for target in ("interpreter", "cpu"))
        for each in given:
            found = slow(np.arange(10, dtype=np.float32), each)
            np.testing.assert_array_equal(fast(np.arange(10, dtype=np.float32), each), found)
