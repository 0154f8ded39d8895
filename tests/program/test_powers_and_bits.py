"""Powers and operators on bits: what they compute at the ends of all types, on every engine."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.program import bits

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PROGRAM = """def f(T(N) X, T(N) Y) -> (A, B, C, D, E, F, G, H, I, J, K, L, M) {
    A(i) = X(i) & Y(i)    B(i) = X(i) | Y(i)   C(i) = X(i) ^^ Y(i)   D(i) = ~X(i)
    E(i) = X(i) << Y(i)   F(i) = X(i) >> Y(i)  G(i) = X(i) << 3      H(i) = X(i) >> 3
    I(i) = X(i) & 7       J(i) = X(i) >> 200   K(i) = X(i) << 7      L(i) = X(i)^3     M(i) = 1 << Y(i) & 127
}"""


def wrapped(value: int, dtype: np.dtype) -> int:
    return int(np.array(value & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").view(dtype))


def expected(x: int, y: int, width: int) -> list[int]:
    def moved(op: str, by: int) -> int:
        if op == "<<":
            return x << by if 0 <= by < width else 0
        return x >> by if 0 <= by < width else -(x < 0)

    one = (1 << y if 0 <= y < width else 0) & 127
    return [
        *(x & y, x | y, x ^ y, ~x, moved("<<", y), moved(">>", y), moved("<<", 3), moved(">>", 3)),
        *(x & 7, moved(">>", 200), moved("<<", 7), x**3, one),
    ]


def operands(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    low, high = (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    numbers = sorted({low, low + 1, max(low, -9), max(low, -1), 0, 1, 2, 7, 8, 15, 31, 32, 63, 64, 65, high - 1, high})
    pairs = np.array([(x, y) for x in numbers for y in numbers if y <= high], dtype)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_bits_of_all_types(name: str, target: str) -> None:
    dtype = np.dtype(name)
    x, y = operands(dtype)
    function = tc.compile(PROGRAM.replace("T(", f"{name}("), target=target).f
    found = [np.asarray(each).astype(dtype) for each in function(x, y)]
    width = 8 * dtype.itemsize
    for k, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        wanted = [wrapped(each, dtype) for each in expected(a, b, width)]
        assert [int(each[k]) for each in found] == wanted, (a, b)


@pytest.mark.parametrize("name", ["int8", "int32", "uint64"])
def test_the_simulator(name: str) -> None:
    dtype = np.dtype(name)
    x, y = (each[::7].copy() for each in operands(dtype))
    module = tc.compile(PROGRAM.replace("T(", f"{name}("))
    found = module.f.simulate(x, y).outputs
    for one, other in zip(found, module.f(x, y), strict=True):
        np.testing.assert_array_equal(one, other)


def test_bounds_hold_and_are_reached_or_next_to_it() -> None:
    numbers = range(-5, 6)
    for function, operator in bits.OPERATORS.items():
        for a in numbers:
            for b in range(a, 6):
                for c in range(-2, 5):
                    for d in range(c, 5):
                        low, high = bits.bounds(function, (a, b), (c, d))
                        found = [bits.value_of(operator, x, y) for x in range(a, b + 1) for y in range(c, d + 1)]
                        assert low <= min(found)
                        assert max(found) <= high
                        arrays = bits.on_arrays(function, np.arange(a, b + 1)[:, None], np.arange(c, d + 1)[None, :])
                        assert arrays.ravel().tolist() == found


def test_a_power_of_a_float() -> None:
    text = "def f(float(N) X, int n) -> (A, B, C, D, E) { A(i) = X(i)^2 B(i) = X(i)^-3 C(i) = X(i)^20 D(i) = X(i)^n E(i) = X(i)^0 }"
    x = np.array([-2.5, -1, -0.0, 0.0, 0.5, 3, np.inf, np.nan], np.float32)
    for target in ("interpreter", "cpu"):
        found = tc.compile(text, target=target).f(x, 3)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            wanted = wide**2, 1 / wide**3, wide**20, wide**3, np.ones(8)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other.astype(np.float32), rtol=1e-6)


def test_masks_say_how_many_bins_there_are() -> None:
    module = tc.compile("def f(int32(N) X, float(16) T) -> (H, Y) { H(X(i) & 15) +=! 1 Y(i) = T(X(i) >> 28 & 0xF) }")
    x = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, 1000).astype(np.int32)
    table = np.arange(16, dtype=np.float32)
    bins, found = module.f(x, table)
    np.testing.assert_array_equal(bins, np.bincount(x & 15, minlength=16))
    np.testing.assert_array_equal(found, table[(x >> 28) & 15])
    assert all(each.status == "proved" for each in module.f.preconditions)


@pytest.mark.parametrize("function", ["bitand", "bitor", "bitxor"])
def test_two_numbers_have_one_value(function):
    for left, right in itertools.product(range(-9, 9), repeat=2):
        value = bits.value_of(bits.OPERATORS[function], left, right)
        assert bits.bounds(function, (left, left), (right, right)) == (value, value)


def test_a_guard_on_bits_that_holds_at_one_point_alone_guards_nothing():
    f = tc.compile("def f(int64(M) I) -> (Y) { Y(i) = i ^^ 1 != M ? I(i) : 3 where i in -1:2 }  # allow TC321, TC322").f
    with pytest.raises(tc.CallError, match="TC601"):
        f(np.zeros(1, np.int64))
