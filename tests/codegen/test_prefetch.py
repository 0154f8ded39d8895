"""Which piece of the next panel of a packed operand is fetched, which rows of the next iteration, and that nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from llvm_kernels import add, least, loop, mul, op, read, size, var

import tc_jupyter as tc
from tc_jupyter.codegen.llvm.polynomial import as_expr, constant_value, polynomial
from tc_jupyter.codegen.llvm.prefetch import next_panel, next_rows
from tc_jupyter.loops import Block, Store
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.program import DType, Size, int64, rewrite
from tc_jupyter.runtime.cpu import cpu_target
from tc_jupyter.schedule import Target, tuning

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


WINDOWS = 2 if cpu_target().vector_bits == 512 else 0
"""Rows that windows fetch: with shorter vectors their maxima are kept for a tile, and nothing is fetched."""


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("body", "rows"),
    [
        ("Y(i,j) = X(i,j+1) + X(i+1,j) + X(i+1,j+2) + X(i+2,j+1)", 0),  # tiles of rows
        ("Y(d,i,j) = W(d,i,j+1) + W(d,i+1,j) + W(d+1,i,j+2) + W(d+1,i+1,j+1)", 2),
        ("Y(d,i,j) = W(d,(i+1)%M,j) + W((d+1)%D,i,(j+1)%N) where d in 0:D, i in 0:M, j in 0:N", 2),
        ("Y(d,i,j) = W(max(d-1,0),i,j) + W(d,i,j) + W(d,min(i+1,M-1),j) where d in 0:D, i in 0:M, j in 0:N", 2),
        ("Y(d,i,j) = W(d,i,j) + W(d+1,i,j) + X(i,j) + X(i+1,j)", 1),  # X again for the next plane of the tile
        ("Y(i,j) max=! X(2*i+k,2*j+l) where k in 0:2, l in 0:2", WINDOWS),
        ("Y(i,j) = X(i,j) + X(j,i)", 0),
        ("Y(i,j) +=! X(i,k) * Z(k,j)", 0),
        ("Y(i) +=! exp(X(i,k))", 0),
    ],
)
@pytest.mark.parametrize("reads_ahead", [False, True])
def test_the_rows_that_the_next_iteration_reads_first_are_fetched_once(body, rows, reads_ahead, monkeypatch, request):
    """Unless the processor is one that itself reads ahead."""
    if "%M" in body and not reads_ahead:
        reason = "rows that wrap around are cut at their borders before anybody looks for what they fetch"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(Target, "reads_ahead", reads_ahead)
    function = tc.compile(f"def f(float(M,N) X, float(M,N) Z, float(D,M,N) W) -> (Y) {{ {body} }}", target="cpu").f
    assert function.source("llvm").count("; fetch the row of ") == (0 if reads_ahead else rows)


def test_the_row_after_the_last_one_of_a_stencil_is_fetched_whole():
    strides = {"X": (polynomial(size("W")), polynomial(int64(1)))}
    at = add(var("j"), mul(var("jo"), 32))
    value = op(
        "+",
        read("X", var("i"), add(at, 1)),
        op("+", read("X", add(var("i"), 2), add(at, 1)), read("X", add(var("i"), 1), at)),
    )
    row = loop("jo", size("J"), loop("j", 32, Store("Y", (var("i"), at), value), kind="vectorize"))
    ((name, place, gain),) = next_rows(Block((row,)), "i", strides, lambda expr: expr)
    assert (name, place, gain) == ("X", polynomial(add(mul(size("W"), add(var("i"), 3)), 1)), polynomial(size("W")))
    assert next_rows(row.body, "jo", strides, lambda expr: expr) == []
    assert next_rows(Block((row, row)), "i", strides, lambda expr: expr) == []


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
