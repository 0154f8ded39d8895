from __future__ import annotations

import numpy as np
import pytest
from cuda_kernels import (
    F16,
    F32,
    SM80,
    add,
    block,
    buffer,
    const,
    f32,
    kernel,
    local,
    loop,
    mul,
    op,
    read,
    size,
    store,
    var,
    when,
)
from cuda_simulation import compare

from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.codegen.cuda.accumulators import in_registers
from tc_jupyter.loops import Allocate, Barrier, Block, For, If, Kernel, verify, walk_statements
from tc_jupyter.program import Cast
from tc_jupyter.runtime import nvrtc

needs_nvrtc = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))


def one_thread_each(*body, buffers, sizes=("N", "K")) -> Kernel:
    return kernel("k", buffers, sizes, loop("i", size("N"), *body, kind="blockIdx.x"))


A, O = buffer("A", "N", "K"), buffer("O", "N", role="inout")
SUM = store("O", (var("i"),), read("A", var("i"), var("k")), "+")


def accumulators(made: Kernel) -> list[str]:
    changed = verify(in_registers(made))
    return [stmt.buffer.name for stmt in walk_statements(changed.body) if isinstance(stmt, Allocate)]


def test_a_sum_over_a_loop_is_kept_in_a_register():
    assert accumulators(one_thread_each(loop("k", size("K"), SUM), buffers=(A, O))) == ["O.accumulator"]


def test_the_outermost_loop_takes_the_sum():
    nest = loop("k", size("K"), loop("l", 3, SUM))
    made = in_registers(one_thread_each(nest, buffers=(A, O)))
    (outer,) = made.body.body
    (allocation,) = outer.body.body
    assert isinstance(allocation, Allocate)
    assert isinstance(allocation.body.body[1], For)


def test_a_condition_is_moved_out_of_the_loop():
    guarded = loop("k", size("K"), when(op("<", var("i"), size("M")), SUM))
    made = in_registers(one_thread_each(guarded, buffers=(A, O), sizes=("N", "K", "M")))
    assert isinstance(made.body.body[0].body.body[0], If)
    assert accumulators(one_thread_each(guarded, buffers=(A, O), sizes=("N", "K", "M"))) == ["O.accumulator"]


@pytest.mark.parametrize(
    "body",
    [
        loop("k", size("K"), when(op("<", var("k"), 3), SUM)),  # the element may be outside if no iteration stores
        loop("k", size("K"), store("O", (var("k"),), const(1.0), "+")),  # many elements
        loop("k", size("K"), SUM, store("O", (0,), const(1.0), "+")),  # seen by another store
        loop("k", size("K"), store("O", (var("i"),), read("O", 0), "+")),  # read meanwhile
        loop("k", size("K"), store("O", (var("i"),), read("A", var("i"), var("k")))),  # no sum
        loop("k", size("K"), store("O", (var("i"),), read("A", var("i"), var("k")), "+", atomic=True)),
        loop("k", size("K"), SUM, Barrier()),
    ],
)
def test_no_register_where_memory_is_seen(body):
    assert accumulators(one_thread_each(body, buffers=(A, O))) == []


def test_no_register_outside_the_loop_over_threads():
    other = loop("t", 32, store("P", (var("i"), var("t")), const(0.0)), kind="threadIdx.x")
    buffers = (A, O, buffer("P", "N", 32, role="output"))
    assert accumulators(one_thread_each(loop("k", size("K"), SUM), other, buffers=buffers)) == []


def test_a_condition_on_what_the_loop_writes_stays():
    guarded = loop("k", size("K"), when(op("<", read("O", var("i")), const(3.0)), SUM))
    made = in_registers(one_thread_each(guarded, buffers=(A, O)))
    assert isinstance(made.body.body[0].body.body[0], For)


@needs_nvrtc
@pytest.mark.parametrize("k", [0, 1, 7])
def test_values_and_empty_loops(k):
    made = one_thread_each(loop("k", size("K"), SUM), buffers=(A, O))
    rng = np.random.default_rng(0)
    arrays = {"A": rng.integers(0, 9, (5, k)).astype(np.float32), "O": np.arange(5, dtype=np.float32)}
    compare(made, arrays, {"N": 5, "K": k})


@needs_nvrtc
def test_short_floats_round_at_every_step():
    a, o = buffer("A", "N", "K", dtype=F16), buffer("O", "N", dtype=F16, role="inout")
    term = Cast(read("A", var("i"), var("k"), dtype=F16), F32)
    made = one_thread_each(loop("k", size("K"), store("O", (var("i"),), term, "+")), buffers=(a, o))
    values = np.full((3, 4), 0.001, np.float16).view(np.uint16)
    compare(made, {"A": values, "O": np.full(3, 1.0, np.float16).view(np.uint16)}, {"N": 3, "K": 4})


@needs_nvrtc
def test_shared_memory_is_accumulated_in_registers_too():
    partial = loop(
        "t",
        32,
        loop("k", 4, store("S", (var("t"),), read("A", add(mul(4, var("t")), var("k"))), "+")),
        kind="threadIdx.x",
    )
    zero = loop("t", 32, store("S", (var("t"),), const(0.0)), kind="threadIdx.x")
    out = loop(
        "t", 32, store("O", (var("t"),), f32("*", const(2.0), read("S", op("-", 31, var("t"))))), kind="threadIdx.x"
    )
    body = Allocate(local("S", 32, scope="shared"), Block((zero, partial, Barrier(), out)))
    made = kernel("k", (buffer("A", 128), buffer("O", 32, role="output")), (), *block(body).body)
    assert accumulators(made) == ["S", "S.accumulator"]
    compare(made, {"A": np.arange(128, dtype=np.float32), "O": np.zeros(32, np.float32)}, {})
    assert "S_accumulator +=" in emit_cuda(made, SM80).text
