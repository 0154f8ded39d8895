"""Whether the elements of index tensors are within limits: as NumPy says, for all types, and before every native call."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import CallError
from tc_jupyter.program import DType
from tc_jupyter.runtime import native_call
from tc_jupyter.runtime.address import numpy_address
from tc_jupyter.runtime.within import comparable, within

pytest.importorskip("llvmlite")

INTEGERS = [dtype for dtype in DType if dtype.is_integer and comparable(dtype, *dtype.limits)]


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("count", [1, 2, 7, 64, 1001])
def test_limits_are_those_of_the_smallest_and_largest_element(dtype, count):
    low, high = dtype.limits
    found = np.random.default_rng(count).integers(low, high, count, dtype.value, endpoint=True)
    values = [low, high, *found.tolist()]
    for array in (found, np.full(count, low, dtype.value), np.full(count, high, dtype.value)):
        least, most = int(array.min()), int(array.max())
        cases = [
            (least, most),
            *((least + d, most + e) for d, e in pairwise((0, 1, 0, -1, 0))),
            *pairwise(sorted(values)[:9]),
        ]
        for start, stop in cases:
            start, stop = (min(max(end, -(1 << 63)), (1 << 63) - 1) for end in (start, stop))
            assert within(dtype)(numpy_address(array), count, start, stop) == (start <= least and most <= stop)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64], ids=lambda dtype: dtype.value)
def test_floats_are_within_limits_without_their_fractions(dtype):
    far = [np.nan, np.inf, -np.inf, 1e30, -1e30]
    ends = [-(1 << 63), -7, -1, 0, 1, 5, 1 << 24, (1 << 63) - 1]
    values = np.array([*far, *np.arange(-9, 9, 0.125), -0.0, 1e-45, -1e-45, float(1 << 24)], dtype.value)
    for value in values:
        for least, most in product(ends, ends):
            array = np.full(3, 6, dtype.value)
            array[1] = value
            inside = all(np.isfinite(each) and least <= int(each) <= most for each in array)
            assert within(dtype)(numpy_address(array), 3, least, most) == inside, (value, least, most)


def test_what_is_not_compared():
    assert not comparable(DType.UINT64, 0, 1)
    assert not comparable(DType.FLOAT16, 0, 1)
    assert not comparable(DType.FLOAT32, 0, 1, rising=True)
    assert not comparable(DType.FLOAT64, 0, (1 << 53) + 1)


def test_bits_of_floats_are_no_indices():
    """20 as the bits of a `float` is 2.8e-44, of which the integer is 0."""
    cell = "def f(float(M) Y, float(N) t) -> (Z) { Z(n) = Y(int32(t(n)) - 5) }"
    f = tc.compile(cell, target="cpu").f
    y = np.arange(100, dtype=np.float32)
    for _ in range(4):
        np.testing.assert_array_equal(f(y, np.full(8, 7.5, np.float32)), np.full(8, 2))
    for _ in range(4):
        with pytest.raises(CallError, match="leaves `Y`"):
            f(y, np.full(8, 20, np.int32).view(np.float32))


def test_elements_that_are_not_read_may_be_outside():
    """A tensor is looked at whole where most of it is read; only the columns that are read count."""
    columns = tc.compile("def f(float(V) T, int32(N, 2) I) -> (O) { O(n) = T(I(n, 0)) + 2*T(I(n, 1)) }", target="cpu").f
    first = tc.compile("def f(float(V) T, int32(N, 2) I) -> (O) { O(n) = T(I(n, 0)) }", target="cpu").f
    t = np.arange(9, dtype=np.float32)
    good = np.random.default_rng(0).integers(0, 9, (20, 2)).astype(np.int32)
    beyond, before = good.copy(), good.copy()
    beyond[7, 1], before[7, 0] = 9, -1
    for _ in range(3):
        for indices in (good, beyond, before):
            if indices is good:
                np.testing.assert_array_equal(columns(t, indices), t[indices[:, 0]] + 2 * t[indices[:, 1]])
            else:
                with pytest.raises(CallError, match="leaves `T`"):
                    columns(t, indices)
            if indices is not before:
                np.testing.assert_array_equal(first(t, indices), t[indices[:, 0]])
            else:
                with pytest.raises(CallError, match="leaves `T`"):
                    first(t, indices)


CELL = """
def plain(float(V,D) T, int64(N) I) -> (O) { O(n,d) = T(I(n),d) }
def odd(float(V) T, int32(N) I) -> (O) { O(n) = T(2*I(n) + 1) }
def backward(float(V) T, int8(N) I) -> (O) { O(n) = T(5 - I(n)) }
def third(float(V) T, uint16(N) I) -> (O) { O(n) = T(3*I(n) - 2) }
def two(float(V,W) T, int64(N) I, int32(N) J) -> (O) { O(n) = T(I(n), J(n)) }
def halved(float(V) T, int32(N) I) -> (O) { O(n) = T(I(n) / 2) }
def bytes(float(V) T, uint8(N) I) -> (O) { O(n) = T(I(n)) }
def wide(float(V) T, uint64(N) I) -> (O) { O(n) = T(I(n)) }
"""
PLACES = {
    "odd": lambda i: 2 * i + 1,
    "backward": lambda i: 5 - i,
    "third": lambda i: 3 * i - 2,
    "halved": lambda i: i // 2,
    "bytes": lambda i: i,
    "wide": lambda i: i,
}
KINDS = {"odd": "i4", "backward": "i1", "third": "u2", "halved": "i4", "bytes": "u1", "wide": "u8"}


@pytest.fixture(scope="module")
def module():
    return tc.compile(CELL, target="cpu")


@pytest.mark.some(2)
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("length", [1, 4, 9])
def test_a_call_is_refused_where_an_element_leads_out(module, name, length):
    function, place = module[name], PLACES[name]
    kind = KINDS[name]
    table = np.arange(length, dtype=np.float32)
    tried = [i for i in range(0 if kind.startswith("u") else -14, 15)]
    inside = [i for i in tried if 0 <= place(i) < length]
    for _ in range(3):  # the general way, the recipe, the native one
        for i in tried:
            indices = np.array([*inside, i], kind)
            if i in inside:
                np.testing.assert_array_equal(function(table, indices), table[[place(k) for k in (*inside, i)]])
            else:
                with pytest.raises(tc.CallError, match="TC604"):
                    function(table, indices)


@pytest.mark.skipif(not native_call.available(), reason="no native entry point here")
@pytest.mark.parametrize(("name", "native"), [("plain", True), ("two", True), ("halved", False), ("wide", False)])
def test_linear_conditions_have_a_native_entry_point(module, name, native):
    function = module[name]
    table = np.zeros((4, 4) if name in ("plain", "two") else 4, np.float32)
    kinds = {"plain": ["i8"], "two": ["i8", "i4"], "halved": ["i4"], "wide": ["u8"]}[name]
    indices = [np.array([3, 0, 1], kind) for kind in kinds]
    for _ in range(4):
        function(table, *indices)
    call = getattr(function._call, "__self__", None)
    assert (call is not None and call.count >= 0) == native
    out = np.empty((3, 4) if name == "plain" else 3, np.float32)
    for _ in range(4):
        function(table, *indices, out=out)
    for array in indices:
        for wrong in (4, -1) if name not in ("halved", "wide") else (8,):
            good = array.copy()
            array[1] = wrong
            out[...] = 7
            for given in ({}, {"out": out}):
                with pytest.raises(tc.CallError, match="TC604"):
                    function(table, *indices, **given)
            assert (out == 7).all()
            array[:] = good
    function(table, *indices, out=out)
    assert (out == 0).all()


def test_strided_indices_are_looked_at_too(module):
    table, indices = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([3, 9, 0, 9, 1, 9], np.int64)
    for _ in range(4):
        np.testing.assert_array_equal(module.plain(table, indices[::2]), table[[3, 0, 1]])
    with pytest.raises(tc.CallError, match="TC604"):
        module.plain(table, indices[1::2])
