"""Which loops that reduce become one, and that they compute the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from llvm_kernels import F32, add, const, kernel, loop, mul, read, size, var

import tc_jupyter as tc
from tc_jupyter.codegen.llvm.fusion import fuse_reductions
from tc_jupyter.loops import Allocate, Block, Buffer, For, Store
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import Read
from tc_jupyter.schedule import tuning

N, M = size("N"), size("M")
i, j, k = var("i"), var("j"), var("k")


def start(target: str):
    return Store(target, (i,), const(0.0))


def total(target: str, variable: str, value, extent=M, operator: str = "+"):
    return loop(variable, extent, Store(target, (i,), value, reduce=operator))


def loops(*inside) -> int:
    """How many loops are left in a loop over rows."""
    fused = fuse_reductions(Block((loop("i", N, *inside),)))
    (outer,) = fused.body
    assert isinstance(outer, For)
    return sum(isinstance(stmt, For) for stmt in outer.body.body)


SUM = total("s", "j", read("X", i, j))
SQUARES = total("q", "k", mul(read("X", i, k), read("X", i, k)))


def test_loops_over_one_input_become_one_that_computes_both():
    made = kernel(
        [Buffer("X", F32, (N, M)), Buffer("s", F32, (N,), role="output"), Buffer("q", F32, (N,), role="output")],
        "NM",
        loop("i", N, Block((start("s"), SUM)), Block((start("q"), SQUARES), "squares")),
    )
    body = fuse_reductions(made.body)
    x = np.arange(12, dtype="f").reshape(3, 4)
    for found in (made.body, body):
        arrays = {"X": x, "s": np.full(3, np.nan, "f"), "q": np.full(3, np.nan, "f")}
        interpret(replace(made, body=found), arrays, {"N": 3, "M": 4}, {})
        np.testing.assert_array_equal(arrays["s"], x.sum(1))
        np.testing.assert_array_equal(arrays["q"], (x * x).sum(1))
    assert loops(start("s"), SUM, start("q"), SQUARES) == 1


@pytest.mark.parametrize(
    "late",
    {
        "another range": total("q", "k", read("X", i, k), N),
        "another input": total("q", "k", read("Z", i, k)),
        "reads the first result": total("q", "k", add(read("X", i, k), Read("s", (i,), F32))),
        "the same result": total("s", "k", read("X", i, k)),
        "assigns": loop("k", M, Store("q", (k,), read("X", i, k))),
        "is vectorised": loop("k", M, Store("q", (i,), read("X", i, k), reduce="+"), kind="vectorize"),
    }.items(),
    ids=lambda each: each[0],
)
def test_other_loops_stay_apart(late):
    assert loops(SUM, late[1]) == 2


@pytest.mark.parametrize(
    "between",
    [Store("s", (i,), const(0.0)), Store("X", (i, i), const(0.0)), Store("r", (i,), Read("s", (i,), F32))],
    ids=["writes the result", "writes the input", "reads the result"],
)
def test_nothing_moves_past_what_touches_it(between):
    assert loops(SUM, between, SQUARES) == 2
    assert loops(SUM, Allocate(Buffer("t", F32, (N,), "local"), Block((start("t"),))), SQUARES) == 2


def test_one_loop_has_no_more_reductions_than_registers():
    many = [total(f"s{number}", f"k{number}", read("X", i, var(f"k{number}"))) for number in range(2 * tuning.ABREAST)]
    assert loops(*many) == 2


@pytest.mark.some(3)
@pytest.mark.parametrize("operator", ["+", "min", "max"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 16), (65, 15), (71, 33), (64, 128), (9, 1)])
def test_sums_of_the_same_rows(operator, rows, columns):
    pytest.importorskip("llvmlite")
    text = (
        f"def f(float(N,M) X) -> (s, q, t) {{ s(i) {operator}=! X(i,j)  q(i) +=! X(i,j) * X(i,j)  t(i) max=! -X(i,j) }}"
    )
    x = np.random.default_rng(0).uniform(-1, 1, (rows, columns)).astype("f")
    fast, slow = (tc.compile(text, target=target).f(x) for target in ("cpu", "interpreter"))
    for found, expected in zip(fast, slow, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
