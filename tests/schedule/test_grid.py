"""GPU axes in nests of several stages: what is refused, in which words, and what stays legal."""

import pytest

from tc_jupyter.diagnostics import CompileError, codes
from tests.running import default

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
