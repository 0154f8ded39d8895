"""Positions that are compared with elements: lanes are narrow, and numbers of 32 bits are what they were."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tests.tc_evaluator import evaluate

pytest.importorskip("llvmlite")

CONDITIONS = (
    "I(n) == v",
    "v != I(n)",
    "v < I(n)",
    "I(n) <= v",
    "v >= I(n)",
    "v > I(n) + 2",
    "2 * I(n) == v + n",
    "65535 * I(n) > v",
    "70000 * I(n) > v",
    "I(n) * I(n) < v",
    "I(n) * n < v",
    "N - v == I(n)",
    "I(v) == v",
    "I(v) < n",
    "(v + I(n)) % 3 == 1",
    "v == I(n) / 2",
    "v > 0 && I(n) == v - 1",
)


@pytest.mark.some(5)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint32", "int64"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_positions_and_elements(condition, dtype):
    text = f"def f({dtype}(N) I) -> (Y) {{ Y(n, v) = {condition} ? 2.0 : 1.0 where n in 0:N, v in 0:N }}"
    fast, slow = (tc.compile(text, target=target)["f"] for target in ("cpu", "interpreter"))
    kind = np.iinfo(dtype)
    for count in (1, 7, 40, 100):
        values = np.random.default_rng(count).integers(0, count, count).astype(dtype)
        values[: min(6, count)] = [kind.min, kind.max, 0, 3, kind.max - 1, kind.min + 1][:count]
        np.testing.assert_array_equal(fast(values), slow(values), err_msg=condition)


UNSIGNED = [0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1]
SIGNED = {"int8": [-128, 0, 127], "int64": [-(2**63), -1, 0, 1, 2**63 - 1], "bool": [False, True]}


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_an_unsigned_number_of_64_bits_and_a_signed_one(op, dtype):
    text = f"def f(uint64(N) C, {dtype}(M) D) -> (Y, Z) {{ Y(i, j) = int8(C(i) {op} D(j))  Z(j, i) = int8(D(j) {op} C(i)) }}"
    given = np.array(UNSIGNED, np.uint64), np.array(SIGNED[dtype], dtype)
    wanted = [
        [[eval(f"{a} {op} {b}") for b in other] for a in one] for one, other in zip(given, given[::-1], strict=True)
    ]
    found = evaluate(text, "f", list(zip(given, ("uint64", dtype), strict=True))).results
    assert [found[name].values for name in "YZ"] == [[each for row in rows for each in row] for rows in wanted]
    for target in ("interpreter", "cpu"):
        for result, numbers in zip(tc.compile(text, target=target)["f"](*given), wanted, strict=True):
            assert result.tolist() == numbers


def test_a_comparison_with_an_element_of_32_bits_has_narrow_lanes():
    text = "def f(KIND(N) I) -> (Y) { Y(n, v) = I(n) == v ? 1.0 : 0.0 where v in 0:200 }"
    narrow, wide = (tc.compile(text.replace("KIND", kind), target="cpu")["f"] for kind in ("int32", "int64"))
    assert " x i64>" not in narrow.source("llvm")
    assert " x i64>" in wide.source("llvm")
