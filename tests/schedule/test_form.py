"""Loops as data: a form gives the loops that the primitives give one by one."""

from __future__ import annotations

import pytest

from tc_jupyter.schedule.templates.form import Form, formed
from tests.running import default

PRODUCT = "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"


def test_a_form_is_its_primitives():
    form = Form({"i": 8, "j": 32}, ("i.outer",), ("k", "j.outer"), ("i.inner",), "j.inner")
    by_hand = default(PRODUCT).split("C", "i", 8).split("C", "j", 32)
    by_hand = by_hand.reorder("C", "i.outer", "k", "j.outer", "i.inner", "j.inner").parallel("C", "i.outer")
    assert formed(default(PRODUCT), "C", form) == by_hand.unroll("C", "i.inner").vectorize("C", "j.inner")


@pytest.mark.parametrize(
    ("form", "nest"),
    [
        (Form(tasks=("i",), order=("k", "j")), ("i", "k", "j")),
        (Form(tasks=("i",), order=("k", "i", "j")), ("k", "i", "j")),
        (Form({"j": 8}, (), ("j.outer", "j.inner", "k", "i"), ("j.inner",)), ("j.outer", "j.inner", "k", "i")),
        (Form({"j": 8}, (), ("k", "j.outer"), vector="j.inner"), ("i", "k", "j.outer", "j.inner")),
        (Form({"j": 8}, (), ("k",), ("j.inner",)), ("i", "j.outer", "k", "j.inner")),
    ],
)
def test_loops_stand_where_the_order_names_them_or_else_around_and_inside_of_it(form: Form, nest: tuple[str, ...]):
    assert formed(default(PRODUCT), "C", form).leaves("C") == nest


def test_loops_over_blocks_and_threads_stand_around_all_others():
    bound = {"j.outer": "blockIdx.x", "j.inner": "threadIdx.x"}
    by_hand = default(PRODUCT).split("C", "j", 32).reorder("C", "j.outer", "j.inner", "i", "k")
    by_hand = by_hand.bind("C", "j.outer", "blockIdx.x").bind("C", "j.inner", "threadIdx.x")
    assert formed(default(PRODUCT), "C", Form({"j": 32}, order=("i", "k"), bound=bound)) == by_hand


def test_loops_that_stand_so_already_are_not_reordered():
    steps = formed(default(PRODUCT), "C", Form({"j": 8}, ("i",), ("j.outer",))).steps
    assert [step.name for step in steps] == ["split", "parallel"]
