"""`cache_read`, `cache_write`, `rfactor`, `tensorize`, `storage`: values, bounds and refusals."""

import numpy as np
import pytest

from tc_jupyter.diagnostics import CompileError
from tests.running import default, run

PRODUCT = "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
HALF = "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
NUMBERS = {"M": 18, "N": 11, "K": 20}


def arrays(dtype="float32"):
    random = np.random.default_rng(2)
    return {
        "A": random.integers(-3, 4, (NUMBERS["M"], NUMBERS["K"])).astype(dtype),
        "B": random.integers(-3, 4, (NUMBERS["K"], NUMBERS["N"])).astype(dtype),
    }


def is_product(schedule, dtype="float32"):
    given = arrays(dtype)
    found = run(schedule, given, NUMBERS)["C"]
    np.testing.assert_array_equal(found, given["A"].astype("float64") @ given["B"].astype("float64"))


def refused(change, *arguments, **options):
    with pytest.raises(CompileError) as caught:
        change(*arguments, **options)
    return caught.value.diagnostics[0]


def step(schedule, stage="C"):
    for axis, factor in (("i", 16), ("j", 8), ("k", 16)):
        schedule = schedule.split(stage, axis, factor)
    return schedule.reorder(stage, "i.outer", "j.outer", "k.outer", "i.inner", "j.inner", "k.inner")


def test_a_copy_of_an_input_holds_what_a_tile_reads():
    schedule = default(PRODUCT).tile("C", "i", "j", 4, 8).reorder("C", "i.outer", "j.outer", "k", "i.inner", "j.inner")
    schedule = schedule.cache_read("B", "C").compute_at("B.cache", "C", "j.outer")
    need = schedule.bounds(**NUMBERS).stage("B.cache")
    assert need.elements_per_visit == (20 * 8, 20 * 3) * 5
    is_product(schedule)


def test_two_copies_have_different_names():
    schedule = default(PRODUCT).cache_read("A", "C").cache_read("A.cache", "C")
    assert schedule.stages == ("A.cache", "A.cache.cache", "C")
    is_product(schedule)


def test_a_sum_in_a_cache_is_copied_out():
    schedule = default(PRODUCT).tile("C", "i", "j", 4, 4).cache_write("C").compute_at("C.cache", "C", "j.outer")
    assert schedule.bounds(**NUMBERS).stage("C.cache").memory == 16 * 4
    is_product(schedule.storage("C.cache", "register"))


def test_partial_results_have_the_loop_as_an_index():
    schedule = default(PRODUCT).split("C", "k", 6).rfactor("C", "k.outer")
    assert [i.name for i in schedule.graph.stage("C.rf").statement.output_indices] == ["k.outer", "i", "j"]
    assert schedule.bounds(**NUMBERS).stage("C.rf").elements == 4 * 18 * 11
    is_product(schedule)
    is_product(default(PRODUCT).split("C", "k", 6).rfactor("C", "k.inner"))


def test_a_matrix_step_computes_the_same():
    is_product(step(default(HALF)).tensorize("C", ("i.inner", "j.inner", "k.inner"), "mma_m16n8k16_f16"), "float16")


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: (default(HALF), ("i", "j", "k"), "dot"), "no such intrinsic"),
        (lambda: (default(HALF), ("i", "j"), "mma_m16n8k16_f16"), "not the innermost"),
        (lambda: (default(HALF), ("i", "j", "k"), "mma_m16n8k16_f16"), "the extents are"),
        (lambda: (step(default(PRODUCT)), ("i.inner", "j.inner", "k.inner"), "mma_m16n8k16_f16"), "type float32"),
        (
            lambda: (
                step(default(HALF.replace("+=!", "max=!"))),
                ("i.inner", "j.inner", "k.inner"),
                "mma_m16n8k16_f16",
            ),
            "the operator",
        ),
        (
            lambda: (step(default(HALF.replace("* B", "+ B"))), ("i.inner", "j.inner", "k.inner"), "mma_m16n8k16_f16"),
            "not a product",
        ),
    ],
)
def test_a_matrix_step_must_match(make, part):
    schedule, axes, name = make()
    found = refused(schedule.tensorize, "C", axes, name)
    assert found.code.number == "TC410"
    assert part in found.message


def test_tensorized_loops_stay_as_they_are():
    schedule = step(default(HALF)).tensorize("C", ("i.inner", "j.inner", "k.inner"), "mma_m16n8k16_f16")
    assert refused(schedule.split, "C", "k.inner", 2).code.number == "TC410"
    assert refused(schedule.fuse, "C", "i.inner", "j.inner").code.number == "TC410"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda s: s.cache_read("X", "C"), "TC401"),
        (lambda s: s.cache_read("C", "C"), "TC401"),
        (lambda s: s.cache_write("Q"), "TC411"),
        (lambda s: s.rfactor("C", "i"), "TC403"),
        (lambda s: s.rfactor("C", "z"), "TC403"),
        (lambda s: s.cache_write("C").compute_at("C.cache", "C", "j").cache_write("C.cache"), "TC401"),
        (lambda s: s.cache_write("C").compute_at("C.cache", "C", "j").rfactor("C.cache", "k"), "TC401"),
        (lambda s: s.storage("C", "local"), "TC410"),
        (lambda s: s.cache_write("C").storage("C.cache", "shared"), "TC410"),
        (lambda s: s.cache_write("C").storage("C.cache", layout=((0, 0),)), "TC410"),
        (lambda s: s.cache_write("C").storage("C.cache", layout=((0, 0), (1, 0), (1, -4))), "TC410"),
    ],
)
def test_illegal_uses_are_refused(change, code):
    assert refused(change, default(PRODUCT)).code.number == code


def test_a_packed_layout_holds_the_same_values():
    schedule = default(PRODUCT).cache_read("B", "C").storage("B.cache", layout=((1, 0), (0, 0), (1, 4)))
    is_product(schedule)
    is_product(schedule.split("C", "j", 4).compute_at("B.cache", "C", "j.outer"))
