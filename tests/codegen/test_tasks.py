"""How much work a task is thought to have."""

from __future__ import annotations

from llvm_kernels import F32, add, const, kernel, least, loop, op, read, size, var

from tc_jupyter.codegen.llvm.tasks import tasks
from tc_jupyter.loops import Buffer, Store
from tc_jupyter.loops.show import show_expr
from tc_jupyter.program import DType

M, K = size("M"), size("K")
i, k, o = var("i"), var("k"), var("o")


def count(*inside) -> str:
    """The number of tasks of `for i in 0:M`."""
    made = kernel([Buffer("X", F32, (M, K))], "MK", loop("i", M, *inside, kind="parallel"))
    return show_expr(tasks(made, lambda _: 1).count)


def total(extent, low=0):
    return loop("k", extent, Store("Y", (i,), read("X", i, k), reduce="+"), low=low)


def test_a_triangle_is_judged_by_the_row_in_the_middle():
    assert "min(K, M // 2 + 1)" in count(total(least(K, add(i, 1))))


def test_tiles_are_judged_by_a_whole_one():
    rest = op("-", K, op("*", const(32, DType.INT64), o))
    assert "min(K - 32 * 0, 32)" in count(loop("o", K, total(least(rest, 32))))


def test_a_length_that_data_cut_is_judged_by_the_most():
    length = read("L", i, dtype=DType.INT64)
    assert "max(1, K)" in count(total(least(K, length)))
