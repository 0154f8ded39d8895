"""GPU axes in nests of several stages: what is refused, in which words, and what stays legal."""

import numpy as np
import pytest

from tc_jupyter.diagnostics import CompileError, codes
from tests.running import default, kernels_of, run

CHAIN = "def f(float(N,M) A) -> (O) { T(i,j) = A(i,j) + 1\n O(i,j) = T(i,j) * T(i,j) }"
TOTAL = "def f(float(N) A) -> (s) { s +=! A(i) }"


def chain():
    return default(CHAIN)


def refused(make) -> str:
    with pytest.raises(CompileError) as error:
        make()
    (found,) = error.value.diagnostics
    assert found.code is codes.BAD_ATTACH
    assert found.help
    return found.message


def test_blocks_do_not_run_inside_another_stage():
    inside = chain().compute_at("T", "O", "i")
    assert "blocks of the grid" in refused(lambda: inside.bind("T", "j", "blockIdx.x"))
    bound = chain().bind("T", "j", "blockIdx.x")
    assert "blocks of the grid" in refused(lambda: bound.compute_at("T", "O", "i"))


def test_a_block_does_not_start_inside_an_attach_point():
    inside = chain().compute_at("T", "O", "i")
    assert "`j` of `O`, a block of the grid" in refused(lambda: inside.bind("O", "j", "blockIdx.x"))
    assert inside.bind("O", "i", "blockIdx.x").graph.stage("O").annotation("i") == "blockIdx.x"
    around = chain().bind("O", "i", "blockIdx.x").compute_at("T", "O", "i")
    assert "`i` of `O`, a block of the grid" in refused(lambda: around.reorder("O", "j", "i").compute_at("T", "O", "j"))


def test_threads_show_their_elements_in_shared_memory_only():
    inside = chain().bind("O", "i", "blockIdx.x").compute_at("T", "O", "i")
    assert "no other thread sees" in refused(lambda: inside.bind("T", "j", "threadIdx.x"))
    shared = inside.storage("T", "shared").bind("T", "j", "threadIdx.x")
    assert "no other thread sees" in refused(lambda: shared.storage("T", "local"))


def test_a_thread_axis_is_used_once_in_a_nest():
    """Partial results of the partial results of a total: threads inside threads."""
    schedule = default(TOTAL).split("s", "i", 8).rfactor("s", "i.inner")
    schedule = schedule.bind("s", "i.inner", "threadIdx.x").split("s.rf", "i.outer", 8).rfactor("s.rf", "i.outer.inner")
    schedule = schedule.reorder("s.rf", "i.inner", "i.outer.inner").bind("s.rf", "i.outer.inner", "threadIdx.x")
    said = refused(lambda: schedule.compute_at("s.rf", "s", "i.inner"))
    assert "`s[i.inner]` around it" in said


# --- global storage --------------------------------------------------------------------------------------------------

ROWS = "def f(float(N,K) A) -> (C) { S(i,k) = 2 * A(i,k)\n T(i) +=! S(i,k)\n C(i) = T(i) + T(i+1) }"


def rows(bound=True):
    schedule = default(ROWS).split("C", "i", 8)
    return schedule.bind("C", "i.outer", "blockIdx.x").bind("C", "i.inner", "threadIdx.x") if bound else schedule


def values(schedule):
    arrays = {"A": np.arange(60, dtype="float32").reshape(20, 3)}
    return run(schedule, arrays, {"N": 20, "K": 3})["C"]


def test_what_all_blocks_see_is_computed_once_before_they_start():
    schedule = rows().compute_at("T", "C", "i.inner").storage("T", "global").compute_at("S", "T", "i")
    bounds = schedule.bounds(N=20, K=3)
    found = bounds.stage("T")
    assert (found.visits, found.elements, found.computed, found.memory) == (1, 20, 20, 80)
    assert bounds.need("T").path == ()
    assert bounds.stage("S").visits == 20
    assert [kernel.name for kernel in kernels_of(schedule)] == ["f_0_T", "f_1_C"]
    np.testing.assert_array_equal(values(schedule), values(default(ROWS)))
    private = schedule.storage("T", "local").bounds(N=20, K=3).stage("T")
    assert (private.visits, private.elements) == (24, 38)  # five threads have nothing to do


def test_tasks_of_a_cpu_see_global_storage_too():
    schedule = rows(bound=False).parallel("C", "i.outer").compute_at("T", "C", "i.outer")
    assert schedule.bounds(N=20, K=3).stage("T").visits == 3
    schedule = schedule.storage("T", "global")
    assert schedule.bounds(N=20, K=3).stage("T").visits == 1
    np.testing.assert_array_equal(values(schedule), values(default(ROWS)))


def test_global_storage_in_loops_that_run_in_order_holds_one_visit():
    schedule = rows(bound=False).compute_at("T", "C", "i.outer").storage("T", "global")
    found = schedule.bounds(N=20, K=3).stage("T")
    assert (found.visits, found.elements_per_visit, found.memory) == (3, (9, 9, 4), 36)
    buffer = next(each for each in kernels_of(schedule)[-1].buffers if each.name == "T")
    assert buffer.scope == "global"
    np.testing.assert_array_equal(values(schedule), values(default(ROWS)))


def test_global_storage_is_not_filled_in_turns_by_blocks():
    schedule = default(ROWS).split("C", "i", 8).bind("C", "i.inner", "threadIdx.x").compute_at("T", "C", "i.inner")
    said = refused(lambda: schedule.storage("T", "global"))
    assert "all iterations of `C[i.inner]` (`threadIdx.x`) see its global storage" in said
    assert "`C[i.outer]` around it runs in order" in said
    inside = rows().compute_at("T", "C", "i.inner").compute_at("S", "C", "i.outer")
    assert "it reads `S`, which is computed inside a block" in refused(lambda: inside.storage("T", "global"))


def test_no_block_waits_for_what_another_loop_shares():
    """The loops of `M` start first, and what is made of its elements cannot be complete before them."""
    text = "def f(float(N,N) A) -> (M, C) { M(i,j) = A(i,j)\n T(i,j) = 2 * M(i,j)\n C(i,j) = T(i,j) }"
    schedule = default(text).parallel("M", "i").parallel("C", "i").parallel("C", "j")
    schedule = schedule.compute_at("T", "C", "j").compute_with("C", "M", "i")
    assert "the loops of `M` start before it" in refused(lambda: schedule.storage("T", "global"))


WIDE = "def f(float(N) A) -> (C) { B(i) = A(i) * 2  C(i) = B(i) + B(i+1) + B(i+2) }"


def wide():
    schedule = default(WIDE).split("C", "i", 32).bind("C", "i.outer", "blockIdx.x").bind("C", "i.inner", "threadIdx.x")
    return schedule.compute_at("B", "C", "i.inner").storage("B", "shared")


def test_threads_make_no_more_than_there_are_threads():
    """34 elements for 32 threads: no thread would make the last two; in pieces of 32 they do."""
    said = refused(lambda: wide().bind("B", "i", "threadIdx.x"))
    assert "more iterations of `i` than `C[i.inner]` around it has threads" in said
    pieces = wide().split("B", "i", 32).bind("B", "i.inner", "threadIdx.x")
    a = np.arange(70, dtype="float32")
    np.testing.assert_array_equal(run(pieces, {"A": a}, {"N": 70})["C"], 6 * a[:-2] + 6)
