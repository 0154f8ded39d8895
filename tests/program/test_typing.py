"""Promotion, weak literals, conversions."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tc_jupyter.diagnostics import NO_SPAN
from tc_jupyter.program import DType
from tc_jupyter.program.typing import (
    common,
    fits,
    literal_value,
    number_literal,
    promote,
    round_to,
    settle,
    weak_integer,
    wrap,
)

NUMERIC = [item for item in DType if item is not DType.BOOL]


@pytest.mark.parametrize("left", DType)
@pytest.mark.parametrize("right", DType)
def test_promotion_is_symmetric_and_keeps_integers(left, right):
    found = promote(left, right)
    assert found is promote(right, left)
    assert found is not DType.BOOL
    if left.is_integer and right.is_integer and DType.UINT64 not in (left, right):
        assert fits(left, found)
        assert fits(right, found)


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ("uint8", "int8", "int16"), ("uint8", "int32", "int32"), ("uint32", "int32", "int64"), ("uint64", "int8", "int64"),
        ("float16", "bfloat16", "float32"), ("float16", "float32", "float32"), ("float32", "float64", "float64"),
        ("float16", "int64", "float16"), ("bool", "float16", "float16"), ("bool", "bool", "int32"), ("bool", "int8", "int32"),
        ("uint16", "uint32", "uint32"), ("complex64", "float64", "complex128"), ("float16", "complex64", "complex64"),
        ("complex64", "int64", "complex64"), ("complex128", "complex64", "complex128"), ("bool", "complex64", "complex64"),
    ],
)  # fmt: skip
def test_promotion(left, right, found):
    assert promote(DType(left), DType(right)) is DType(found)


def test_comparison_of_truth_values_stays_bool():
    assert common(DType.BOOL, DType.BOOL) is DType.BOOL


@pytest.mark.parametrize("source", NUMERIC)
@pytest.mark.parametrize("target", NUMERIC)
def test_fits_means_that_every_value_survives(source, target):
    if not source.is_integer or target is DType.BFLOAT16:
        return
    low, high = source.limits
    values = [low, high, high - 1, low + 1, (1 << source.bits // 2) + 1]
    if target.part.is_float:
        with np.errstate(over="ignore"):
            kept = all(
                math.isfinite(float(np.dtype(target.part.value).type(v)))
                and int(np.dtype(target.part.value).type(v)) == v
                for v in values
            )
    else:
        kept = all(target.limits[0] <= value <= target.limits[1] for value in values)
    assert fits(source, target) == kept


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_agrees_with_numpy(value):
    assert round_to(Fraction(value), DType.FLOAT64) == value
    with np.errstate(over="ignore"):
        assert round_to(Fraction(value), DType.FLOAT32) == float(np.float32(value))
        assert round_to(Fraction(value), DType.FLOAT16) == float(np.float16(value))


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_rounding_to_bfloat16(value):
    """The upper half of the bits of a `float32`, to nearest with ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    assert round_to(Fraction(value), DType.BFLOAT16) == struct.unpack("<f", struct.pack("<I", rounded))[0]


def test_a_literal_is_rounded_once():
    """2**24 + 1 + 2**-40 lies just above a tie of `float32`; through `float64` it would fall on the tie and round down."""
    text = "16777217.0000000000009"
    assert float(text) == 16777217.0
    assert float(np.float32(float(text))) == 16777216.0
    assert literal_value(text, DType.FLOAT32) == 16777218.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("inf", math.inf),
        ("0x1p9999999", math.inf),
        ("0x1p-9999999", 0.0),
        ("1e400", math.inf),
        ("1e99999", math.inf),
        ("0x1p99999", math.inf),
        ("1e-99999", 0.0),
    ],
)
def test_far_literals(text, value):
    assert literal_value(text, DType.FLOAT64) == value


def test_hexadecimal_literals():
    assert literal_value("0x1.8p3", DType.FLOAT32) == 12.0
    assert literal_value("0x.8p-3f", DType.FLOAT32) == 0.0625


def test_weak_literals_settle():
    assert settle(number_literal("0.1", 0.1, None, NO_SPAN), DType.FLOAT64).expr.value == 0.1
    assert settle(number_literal("0.1", 0.1, None, NO_SPAN)).expr.value == float(np.float32(0.1))
    assert settle(weak_integer(3, NO_SPAN), DType.UINT8).expr.dtype is DType.UINT8
    half = settle(number_literal("0.1", 0.1, None, NO_SPAN), DType.FLOAT16)
    assert half.dtype is DType.FLOAT16
    assert half.expr.dtype is DType.FLOAT32
    assert half.expr.value == float(np.float16(0.1))


@given(st.integers(-(2**70), 2**70), st.sampled_from([item for item in DType if item.is_integer]))
def test_wrapping(value, dtype):
    low, high = dtype.limits
    assert low <= wrap(value, dtype) <= high
    assert (wrap(value, dtype) - value) % (1 << dtype.bits) == 0
