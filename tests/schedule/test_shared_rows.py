"""Statements that read the same rows: when they share the loops over them, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime.cpu import cpu_target
from tc_jupyter.schedule import SizeClasses, Target, default_schedule
from tc_jupyter.schedule.target import LINE_BYTES
from tc_jupyter.schedule.templates import sharing

pytest.importorskip("llvmlite")

TOGETHER = {
    "moments": "def f(float(N,M) X) -> (s, q) { s(i) +=! X(i,j)  q(i) +=! X(i,j) * X(i,j) }",
    "maximum and its position": "def f(float(N,M) X) -> (V, P) { V(n) max=! X(n,m)  P(n) min=! X(n,m) == V(n) ? m : M }",
    "row and its sum": "def f(float(N,M) X) -> (Y, s) { Y(i,j) = 2 * X(i,j)  s(i) +=! X(i,j) }",
}
APART = {
    "rows and columns": "def f(float(N,M) X) -> (s, q) { s(i) +=! X(i,j)  q(j) +=! X(i,j) }",
    "other rows": "def f(float(N,M) X, float(N,M) Z) -> (s, q) { s(i) +=! X(i,j)  q(i) +=! Z(i,j) }",
    "a later row": "def f(float(N,N) X) -> (s, q) { s(i) +=! X(i,j)  q(i) +=! X(i,j) * s(j) }",
    "a row again and again": """def f(float(N,M) X, float(N,M) Z) -> (s, q) {
        s(i) max=! max(X(i,j), Z(k,j))  q(i) min=! max(X(i,j), -Z(k,j))
    }""",
    "one element": "def f(float(N) X) -> (a, b) { a(i) = X(i) + 1  b(i) = X(i) * 2 }",
}


def kernels(text: str) -> int:
    return tc.compile(text, target="cpu")["f"].source("loops").count("kernel ")


@pytest.mark.parametrize("name", TOGETHER)
def test_statements_that_read_the_same_rows_are_one_kernel(name):
    assert kernels(TOGETHER[name]) == 1


@pytest.mark.parametrize("name", APART)
def test_other_statements_stay_apart(name):
    parts = name == "rows and columns"  # sums of columns are added up in a kernel of their own
    assert kernels(APART[name]) == 2 + parts


@pytest.mark.some(3)
@pytest.mark.parametrize("reads_ahead", [False, True])
@pytest.mark.parametrize("name", [*TOGETHER, *APART])
def test_they_compute_what_the_interpreter_computes(name, reads_ahead, monkeypatch):
    """One row or several rows at a time."""
    monkeypatch.setattr(Target, "reads_ahead", reads_ahead)
    text = {**TOGETHER, **APART}[name]
    fast, slow = (tc.compile(text, target=target)["f"] for target in ("cpu", "interpreter"))
    for rows, columns in ((1, 1), (3, 63), (3, 64), (2, 65), (65, 1), (17, 129), (131, 17), (64, 63), (67, 64)):
        rng = np.random.default_rng(1)
        shapes = {"N": rows, "M": columns}
        arrays = [
            rng.uniform(-1, 1, tuple(shapes[str(dim.name)] for dim in tensor.dims)).astype(np.float32)
            for tensor in fast.program.tensors
            if tensor.kind == "input"
        ]
        for found, expected in zip(fast(*arrays), slow(*arrays), strict=True):
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


ROWS = 4
"""Rows whose sums are computed together."""


@pytest.mark.parametrize("features", [{"avx2", "fma"}, {"avx512f", "sse4a"}, {"avx512f", "sse4a", "avxvnni"}])
def test_which_processors_read_ahead(features):
    assert Target("cpu", features=frozenset(features)).reads_ahead is (features == {"avx512f", "sse4a"})


def test_a_processor_that_reads_ahead_gets_one_row_at_a_time(monkeypatch):
    monkeypatch.setattr(Target, "reads_ahead", True)
    function = tc.compile(TOGETHER["moments"], target="cpu")["f"]
    assert "prefetch" not in function.source("llvm")
    x = np.arange(100 * 70, dtype=np.float32).reshape(100, 70) % 7
    for found, expected in zip(function(x), (x.sum(1), (x * x).sum(1)), strict=False):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("columns", "together"), [(17, True), (63, True), (64, False), (1000, False)])
def test_a_processor_that_reads_ahead_gets_short_rows_together(columns, together, monkeypatch):
    monkeypatch.setattr(Target, "reads_ahead", True)
    function = tc.compile(TOGETHER["moments"], target="cpu")["f"]
    program, ranges = function.program, function.definition().found.ranges
    constants, facts = SizeClasses(program, ranges)({"N": 1000, "M": columns})
    assert not constants
    schedule = default_schedule(program, ranges, cpu_target(), dict(facts))
    assert ("i.inner" in schedule.leaves("s")) == together


@pytest.mark.parametrize(
    ("statement", "kept"),
    [("C(i) +=! A(i,k)", True), ("C(i) max=! A(i,k) * A(i,k)", True), ("C(i,j) +=! A(i,k) * B(j,k)", False)],
)
def test_the_length_of_a_row_belongs_to_the_class_where_rows_are_reduced(statement, kept):
    text = f"def f(float(N,K) A, float(L,K) B) -> (C) {{ {statement} }}"
    function = tc.compile(text, target="cpu", allow=["TC234"])["f"]
    for length in (20, 63, 64):
        _, facts = SizeClasses(function.program, function.definition().found.ranges)({"N": 1000, "K": length, "L": 9})
        assert ("K" in dict(facts)) == (kept and length < 64)


def test_only_the_first_of_them_fetches_its_rows_ahead(monkeypatch):
    monkeypatch.setattr(Target, "reads_ahead", False)
    vector = cpu_target().vector_bits // 8
    text = tc.compile(TOGETHER["moments"], target="cpu")["f"].source("llvm")
    assert text.count("call void @llvm.prefetch") == ROWS * -(-vector // LINE_BYTES)


@pytest.mark.parametrize(
    "statements",
    ["T(i) = 0 * A(i)  s +=! 0", "s +=! 0  T(i) = 0 * A(i)  s += 0", "T(i) +=! A(i) + A(j)  s +=! 0"],
)
def test_a_statement_without_loops_shares_none(statements):
    function = tc.compile(f"def f(float(N) A) -> (s) {{ {statements} }}")["f"]
    assert function(np.ones(3, np.float32)) == 0


def test_the_rows_of_a_statement_are_looked_for_once(monkeypatch):
    """Every statement is compared with all before it; what is compared is found once."""
    found: list[str] = []

    def counted(stage, depth):
        found.append(stage.name)
        return rows(stage, depth)

    rows = sharing._rows
    monkeypatch.setattr(sharing, "_rows", counted)
    lines = "  ".join(f"T{k}(i) = exp(T{k - 1}(i)) + T{k - 1}(i + 1)" for k in range(1, 30))
    assert kernels(f"def f(float(N) X) -> (T29) {{ T0(i) = exp(X(i))  {lines} }}") == 30
    assert len(found) == len(set(found)) == 30
