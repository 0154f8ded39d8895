"""Which piece of the next panel of a packed operand is fetched, and that nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from llvm_kernels import add, least, mul, op, read, size, var

import tc_jupyter as tc
from tc_jupyter.codegen.llvm.polynomial import as_expr, constant_value, polynomial
from tc_jupyter.codegen.llvm.prefetch import next_panel
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.program import DType, Size, int64, rewrite
from tc_jupyter.schedule import tuning

K, R = size("K"), 8
LOOPS = ("j", "i", "k")
EXTENTS = {"j": size("N"), "i": least(R, size("M")), "k": K}
PRODUCT = "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"


def panel(columns: int):
    return polynomial(add(mul(mul(var("j"), K), columns), mul(var("k"), columns)))


@pytest.mark.parametrize("columns", [1, 8, 31, 32, 48])
@pytest.mark.parametrize("rows", [1, 5, 8])
def test_the_repetitions_fetch_the_whole_next_panel(columns, rows):
    found = next_panel(panel(columns), LOOPS, EXTENTS)
    assert found is not None
    piece, length = found

    def start(i: int, k: int) -> int:
        values = {"j": int64(3), "i": int64(i), "k": int64(k)}
        return constant_value(replaced(substitute(as_expr(piece), values), rows)) or 0

    fetched = {start(i, k) + e for i in range(R) for k in range(rows) for e in range(length)}
    assert fetched >= set(range(4 * rows * columns, 5 * rows * columns))
    assert length * R < columns + R


def replaced(expr, rows: int):
    """With a number in the place of the size `K`."""
    return rewrite(expr, lambda node: int64(rows) if isinstance(node, Size) else None)


def test_no_piece_without_repetitions_or_rows_or_panels_and_none_where_data_says_what_is_read():
    rows = {"j": size("N"), "k": K}
    assert next_panel(panel(32), LOOPS, {**rows, "i": int64(1)}) is None
    assert next_panel(panel(32), LOOPS, {**rows, "i": size("M")}) is None
    assert next_panel(panel(32), LOOPS[1:], EXTENTS) is None
    assert next_panel(polynomial(mul(var("k"), 32)), LOOPS, EXTENTS) is None
    assert next_panel(polynomial(mul(var("j"), 32)), LOOPS, EXTENTS) is None
    assert next_panel(polynomial(add(mul(var("i"), 7), mul(var("k"), 32))), LOOPS, EXTENTS) is None
    looked_up = op("*", read("I", var("j"), dtype=DType.INT64), K)
    assert next_panel(polynomial(add(looked_up, mul(var("k"), 32))), LOOPS, EXTENTS) is None


def test_a_product_fetches_its_next_panel_once_per_row():
    pytest.importorskip("llvmlite")
    function = tc.compile(PRODUCT, target="cpu").f
    assert function.source("llvm").count("call void @llvm.prefetch") == 1
    left, right = np.ones((65, 96), np.float32), np.ones((96, 641), np.float32)
    np.testing.assert_array_equal(function(left, right), np.full((65, 641), 96.0, np.float32))


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("Y(i) = tanh(A(i) * B(i))", 2),
        ("Y(i) = exp(A(i)) + A(i) * B(i)", 2),
        ("Y(i) = exp(A(i))", 0),
        ("Y(i) = sqrt(A(i) * B(i))", 0),
        ("Y(i) = exp(A(i)) * s", 0),
    ],
)
def test_long_computations_on_two_inputs_or_more_fetch_both_a_little_later(body, lines):
    pytest.importorskip("llvmlite")
    function = tc.compile(f"def f(float(N) A, float(N) B, float s) -> (Y) {{ {body} }}", target="cpu").f
    text = function.source("llvm")
    soon = [
        line
        for line in text.splitlines()
        if " = getelementptr i8" in line and line.endswith(f"i64 {tuning.AHEAD_OF_WORK}")
    ]
    assert len({line.split("i64 ")[0].split("ptr %")[1] for line in soon}) == lines
    has_one_input = "B(i)" not in body  # which is fetched where it is written past the caches (`test_line_starts.py`)
    assert ("call void @llvm.prefetch" in text) == (lines > 0 or has_one_input)
