"""Boxes of one tensor share the loops over their rows on a CPU; what they compute stays the same."""

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import CompileError

RELAX = "{ iv -> a[iv] * 2 | 0*shape(a)+1 <= iv < shape(a)-1; iv -> a[iv] }"


def compiled(body, rank, target="cpu"):
    dots = ", ".join("." * rank)
    return tc.compile(f"double[{dots}] f(double[{dots}] a) {{ return {body}; }}", language="sac", target=target)["f"]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "body, rank, kernels",
    [
        (RELAX, 1, 3),  # no rows
        (RELAX, 2, 3),  # rows with both ends; the first row; the last row
        (RELAX, 4, 7),
        ("{ [i] -> a[i] ++ a[i] }", 2, 1),
        ("{ iv -> a[iv - 1] | 0*shape(a)+1 <= iv < shape(a)+1; iv -> 0.0 | iv < shape(a)+2 }", 3, 5),
        ("{ iv -> a[iv] | [1] <= iv }", 2, 2),  # whole rows are not shared
    ],
)
def test_rows_are_written_in_one_pass(body, rank, kernels):
    pytest.importorskip("llvmlite")
    function = compiled(body, rank)
    for extents in [(5, 4, 3, 6), (1, 2, 1, 3), (2, 2, 2, 2)]:
        a = np.arange(np.prod(extents[:rank]), dtype=float).reshape(extents[:rank])
        np.testing.assert_array_equal(function(a), compiled(body, rank, "interpreter")(a))
    loops = function.source("loops")
    assert loops.count("kernel ") == kernels, loops


def test_boxes_that_are_apart_may_run_in_any_order():
    schedule = compiled(RELAX, 3, "interpreter").schedule()
    first, *_, last = schedule.stages
    assert schedule.compute_with(last, first, "iv1").graph.stage(last).attach.stage == first  # over five other boxes


def test_boxes_that_meet_keep_their_order():
    text = "def f(float(N) X) -> (O) { O(i) = X(i)  O(i) = 2 * X(i) where i in 0:1  O(i) = O(i) + X(i) }"
    schedule = tc.compile(text, target="interpreter", allow=["TC325"])["f"].schedule()
    first, _, last = schedule.stages
    with pytest.raises(CompileError, match="TC407"):
        schedule.compute_with(last, first, "i")
