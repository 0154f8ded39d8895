"""Sums with few results on a GPU: how they are shared, by which classes of sizes, and what the kernels of their parts look like."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.function import compile
from tc_jupyter.runtime.cuda import cuda_target
from tc_jupyter.schedule import Schedule, SizeClasses, default_schedule, infer_symbolic, schedule_of
from tc_jupyter.schedule.templates.gpu import shared_sums
from tc_jupyter.schedule.zeros import adds_zeros
from tests.gpu.cases import kernels
from tests.running import number, program_of, run

TARGET = replace(cuda_target("sm_90"), multiprocessors=132)
PRODUCT = "def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }"
HALF = PRODUCT.replace("float", "half")
ROWS = "def f(float(M,N) A) -> (O) { O(i) +=! A(i,j) }"
COLUMNS = "def f(float(M,N) A) -> (O) { O(j) +=! A(i,j) }"
GATHER = "def f(float(E,D) T, int32(B,L) I) -> (O) { O(b,d) +=! T(max(min(I(b,l), E-1), 0), d) }"
CHANNELS = "def f(float(B,C,H,W) A) -> (O) { O(c) +=! A(b,c,h,w) }"
GROUPS = (
    "def f(float(N,C,H,W) X) -> (O) { s(n) +=! X(n,c,h,w)\n q(n) +=! X(n,c,h,w) * X(n,c,h,w)\n"
    " O(n,c,h,w) = (X(n,c,h,w) - s(n)) * rsqrt(q(n)) }"
)


def called(text: str, sizes: dict[str, int], multiprocessors: int = 132) -> Schedule:
    """The schedule of a call with these sizes."""
    found = program_of(text)
    assert found is not None
    _, facts = SizeClasses(*found, "cuda")(sizes)
    return default_schedule(*found, replace(TARGET, multiprocessors=multiprocessors), dict(facts))


def launches(schedule: Schedule, sizes: dict[str, int]) -> list[tuple[int, int]]:
    """Blocks, and threads of a block, of every kernel."""
    shapes = [emit_cuda(each, TARGET).launch for each in kernels(schedule, sizes)]
    return [
        (int(np.prod([number(e, sizes) for e in each.grid])), int(np.prod([number(e, sizes) for e in each.block])))
        for each in shapes
    ]


@pytest.mark.parametrize("text, sizes", [
    (PRODUCT, {"M": 128, "N": 128, "K": 2000}),
    (PRODUCT, {"M": 128, "N": 1024, "K": 1000}),
    (PRODUCT, {"M": 128, "N": 4096, "K": 16384}),
    (PRODUCT, {"M": 4, "N": 64, "K": 65536}),
    (PRODUCT.replace("B(j,k)", "B(k,j)").replace("(N,K)", "(K,N)"), {"M": 100, "N": 70, "K": 9999}),
    (HALF, {"M": 128, "N": 128, "K": 8192}),
    (ROWS, {"M": 4, "N": 10_000_000}),
    (ROWS, {"M": 100, "N": 1_000_000}),
    (COLUMNS, {"M": 1_000_000, "N": 64}),
    (CHANNELS, {"B": 32, "C": 64, "H": 56, "W": 56}),
])  # fmt: skip
def test_a_sum_with_few_results_is_cut_into_parts(text, sizes):
    """The first kernel has more blocks than half of the multiprocessors; a second one adds what they have."""
    found = launches(called(text, sizes), sizes)
    assert len(found) == 2
    assert found[0][0] > 66


@pytest.mark.parametrize("text, sizes, blocks, threads", [
    (PRODUCT, {"M": 4096, "N": 4096, "K": 4096}, 1024, 256),
    (PRODUCT, {"M": 128, "N": 32, "K": 256}, 4, 256),
    (HALF, {"M": 4096, "N": 4096, "K": 4096}, 1024, 128),
    (ROWS, {"M": 128, "N": 36_864}, 128, 1024),
    (ROWS, {"M": 4096, "N": 4096}, 4096, 256),
    (ROWS, {"M": 1_000_000, "N": 64}, 125_000, 256),
    (COLUMNS, {"M": 4096, "N": 4096}, 128, 256),
    (GATHER, {"E": 1000, "D": 64, "B": 128, "L": 50}, 256, 128),
    (GROUPS, {"N": 128, "C": 16, "H": 48, "W": 48}, 128, 1024),
])  # fmt: skip
def test_other_sums_are_one_kernel(text, sizes, blocks, threads):
    assert launches(called(text, sizes), sizes) == [(blocks, threads)]


def test_the_parts_follow_from_the_device():
    """A device with fewer multiprocessors needs fewer parts."""
    sizes = {"M": 128, "N": 128, "K": 2048}
    few, many = (launches(called(PRODUCT, sizes, number), sizes)[0][0] for number in (16, 132))
    assert few < many


def test_what_is_not_known_is_not_cut():
    for text in (PRODUCT, ROWS, COLUMNS, GATHER):
        found = program_of(text)
        assert found is not None
        assert not any(
            ".rf" in name and stage.attach.kind == "root" for name, stage in _stages(default_schedule(*found, TARGET))
        )


def _stages(schedule: Schedule):
    return [(stage.name, stage) for stage in schedule.graph.stages]


def test_a_part_of_a_product_adds_whole_tiles():
    """The last part of a sum ends after whole tiles, whose rest is zero: the innermost loops test nothing."""
    sizes = {"M": 128, "N": 128, "K": 2001}
    first, _ = (emit_cuda(each, TARGET).text for each in kernels(called(PRODUCT, sizes), sizes))
    inner = first[first.rindex("for (int k_inner_inner") :].partition("C_rf_cache[0]")[0]
    assert "if (" not in inner
    assert re.search(r"k_inner_outer < min\(\(K \+ 15\) / 16 - 4 \* k_outer, 4\)", first)


@pytest.mark.parametrize("length, whole", [(8, True), (12, True), (10, False)])
def test_parts_of_whole_tiles(length, whole):
    """A part of 10 steps in tiles of 4 would add two steps of the next part, which are no zeros."""
    found = program_of(PRODUCT)
    assert found is not None
    schedule = schedule_of(*found).split("C", "k", length).rfactor("C", "k.outer").split("C.rf", "k.inner", 4)
    for tensor in ("A", "B"):
        schedule = schedule.cache_read(tensor, "C.rf").compute_at(f"{tensor}.cache", "C.rf", "k.inner.outer")
        schedule = schedule.storage(f"{tensor}.cache", "shared", padded=True)
    assert adds_zeros(schedule.graph, schedule.graph.stage("C.rf")) == whole


def test_threads_beside_a_narrow_row_count():
    """A row of 26 has 32 threads: where those fill a device, more threads per sum only do more."""
    text = "def conv(float(N,F,C,H,W) X, float(F,C,3,3) Y) -> (O) { O(n,f,h,w) +=! X(n,f,c,h+p,w+q) * Y(f,c,p,q) }"
    sizes = {"N": 1024, "F": 8, "C": 8, "H": 28, "W": 28}
    (kernel,) = kernels(called(text, sizes), sizes)
    assert "O_rf" not in emit_cuda(kernel, TARGET).text


def test_fused_dimensions_are_addressed_as_one():
    """No quotient and no remainder is left of `h` and `w`, which lie side by side."""
    sizes = {"N": 128, "C": 16, "H": 48, "W": 48}
    (kernel,) = kernels(called(GROUPS, sizes), sizes)
    text = emit_cuda(kernel, TARGET).text.partition('extern "C"')[2]
    assert "tc_floor_mod" not in text
    assert "X[n * (C * H * W) + " in text
    assert text.count("tc_load<4>(&X") == 3


def test_a_stage_in_global_memory_computes_all():
    """Whatever is read of it."""
    found = program_of("def f(float(N) X) -> (O) { T(i) = 2 * X(i)\n O(i) = T(i) + T(i+1) where i in 0:5 }")
    assert found is not None
    plain = schedule_of(*found)
    whole = plain.storage("T", "global")
    boxes = [infer_symbolic(each.graph)["T"].box for each in (plain, whole)]
    assert [box[0][1].evaluate({"N": 9}) for box in boxes] == [6, 9]
    arrays = {"X": np.arange(9, dtype=np.float32)}
    assert [run(each, arrays, {"N": 9})["O"].tolist() for each in (plain, whole)] == [[2.0, 6.0, 10.0, 14.0, 18.0]] * 2


@pytest.mark.parametrize("text", [
    "def f(float(K) A) -> (s) { s +=! A(6-k) * float(j) where k in 0:K, j in 0:K }",
    "def f(float(M) A) -> (O) { O(i) +=! A(i) * float(j) where j in 0:M }",
    "def f(int32 n) -> (O) { O(i) +=! float(i*j) where i in 0:n, j in 0:n }",
    "def f(int32 n) -> (s) { s +=! float(j) where j in 0:n }",
])  # fmt: skip
def test_sums_that_read_nothing_along_their_loops(text):
    (function,) = compile(text, target="cuda", allow=("TC231", "TC235", "TC237")).values()
    arguments = [
        np.arange(7, dtype=np.float32) if parameter.rank else 7 for parameter in function.definition().parameters
    ]
    found = function.simulate(*arguments)
    assert found.findings == ()
    (plain,) = compile(text, target="interpreter", allow=("TC231", "TC235", "TC237")).values()
    assert np.allclose(found.outputs[0], plain(*arguments))


def test_costs():
    """A second kernel has to save more than it takes; a sum that the device is full of is not shared."""

    def shared(results: int, steps: int) -> shared_sums.Shares:
        return shared_sums.shares(shared_sums.Sums(results, steps, 4, side=32), TARGET, lambda count: count <= 32)

    assert shared(1 << 22, 4096) == shared_sums.Shares(1, None)
    assert shared(64, 1 << 20).length is not None
    assert shared(64, 16).length is None
    assert list(shared_sums.lengths(100, 16)) == [100, 16, 32, 64]
