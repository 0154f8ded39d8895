"""Which products are exact in the type of the sum."""

from __future__ import annotations

import pytest

from tc_jupyter.program import DType, factors_of, without_factors
from tests.running import program_of


@pytest.mark.parametrize(
    ("types", "value", "number"),
    [
        (("int8", "int8"), "int32(A(k)) * int32(B(k))", 2),
        (("int8", "uint8"), "int32(A(k)) * B(k)", 2),
        (("int8", "int8"), "int32(int16(A(k))) * B(k)", 2),
        (("int8", "int8"), "int32(A(k) * B(k))", 0),
        (("uint8", "int8"), "int32(int8(A(k))) * B(k)", 0),
        (("int32", "int8"), "int32(int8(A(k))) * B(k)", 0),
        (("int32", "int32"), "A(k) * B(k)", 2),
        (("int32", "int32"), "A(k) + B(k)", 0),
        (("int32", "int32"), "A(k) * 2", 0),
        (("half", "half"), "float(A(k)) * float(B(k))", 2),
        (("half", "half"), "float(half(float(A(k)) * float(B(k))))", 0),
        (("double", "float"), "float(A(k)) * B(k)", 0),
    ],
)
def test_factors(types, value, number):
    left, right = types
    found = program_of(f"def f({left}(K) A, {right}(K) B) -> (s) {{ s(i) +=! {value} where i in 0:1 }}")
    assert found is not None
    total = DType.INT32 if "int" in left else DType.FLOAT32
    assert len(factors_of(found[0].statements[0].value, total)) == number


@pytest.mark.parametrize(
    ("value", "numbers"),
    [("-(2 * A(k) * B(k))", [-1, 2]), ("A(k) * -B(k)", [-1]), ("A(k) / -(4 * B(k))", [-1, 4]), ("-A(k) - B(k)", [])],
)
def test_a_sign_is_a_number_that_leaves_a_sum(value, numbers):
    found = program_of(f"def f(float(K) A, float(K) B) -> (s) {{ s(i) +=! {value} where i in 0:1 }}")
    assert found is not None
    _, parts = without_factors(found[0].statements[0].value, found[0].sizes)
    assert [each.value for _, each in parts] == numbers
