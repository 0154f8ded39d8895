"""Long simulations: estimated before they begin, refused, begun all the same, interrupted."""

from __future__ import annotations

import _thread
import re
import signal
import threading

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler import gpu
from tc_jupyter.compiler.definition import ROW_MAJOR
from tc_jupyter.compiler.simulation_time import Work, in_words, work_of
from tc_jupyter.loops import Block, Buffer, For, Kernel, Store
from tc_jupyter.program import Binary, DType, IndexVar, Read, Size, int64
from tc_jupyter.runtime import cuda, nvrtc
from tc_jupyter.simulator import group_count, group_lanes

CELL = """
def product(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }
def short(float16(M, K) A, float16(K, N) B) -> (C) { C(i, j) +=! float(A(i, k)) * float(B(k, j)) }
def rows(float(N, M) X) -> (s) { s(i) +=! X(i, j) }
def axpy(float(N) X, float(N) Y) -> (Z) { Z(i) = 2 * X(i) + Y(i) }
def waves(float(N) X, float(K) Z) -> (Y) { Y(i) +=! sin(X(i) * Z(k)) }
"""

needs_nvrtc = pytest.mark.skipif(nvrtc.available() is not None, reason="NVRTC is not installed")


@pytest.fixture(scope="module")
def module():
    return tc.compile(CELL)


def floats(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_an_expression_is_computed_once_for_the_loops_that_it_depends_on():
    def read(buffer, *indices):
        return Read(buffer, tuple(map(IndexVar, indices)), DType.FLOAT32)

    value = Binary("*", read("A", "k", "i"), read("B", "k", "j"), DType.FLOAT32)
    body = Block((Store("C", (IndexVar("i"), IndexVar("j")), value, reduce="+"),))
    for var, extent in (("j", int64(8)), ("i", int64(8)), ("k", Size("K"))):
        body = Block((For(var, int64(0), extent, body),))
    shape = (int64(8), int64(8))
    buffers = (
        *(Buffer(name, DType.FLOAT32, (Size("K"), int64(8))) for name in "AB"),
        Buffer("C", DType.FLOAT32, shape, "register"),
    )
    kernel = Kernel("product", buffers, ("K",), (), body)
    assert work_of(kernel, {"K": 100}) == Work(2 * 64 * 100 + 2 * 8 * 100, 2 * 8 * 100)
    assert work_of(kernel, {"K": 0}) == Work()


@pytest.mark.some(3)
@needs_nvrtc
@pytest.mark.parametrize(
    "name, shapes",
    [
        ("product", [(256, 256), (256, 256)]),
        ("short", [(256, 256), (256, 256)]),
        ("rows", [(16, 30_000)]),
        ("axpy", [(50_000,), (50_000,)]),
        ("waves", [(512,), (500,)]),
    ],
)
def test_the_count_is_near_what_the_simulator_executes(module, name, shapes):
    """Instructions, not seconds: no test asserts a time."""
    f = module[name]
    arrays = [floats(*shape).astype(np.float16 if name == "short" else np.float32) for shape in shapes]
    sizes = f.definition(*arrays).inputs(arrays).sizes
    made = f.definition(*arrays).build(cuda.cuda_target("sm_80"), ROW_MAJOR)
    (kernel,), (source,) = made.kernels, made.sources
    grid, block = gpu.launch_shape(kernel, source, sizes)
    counted = work_of(kernel, sizes).instructions * np.prod(grid) * np.prod(block)
    report = f.simulate(*arrays).report
    (executed,) = re.findall(r"instructions: (\d+) by single threads", report)
    assert 1 / 4 < counted / int(executed) < 4


def test_groups_of_blocks_end_with_a_sample():
    assert group_lanes((100, 1, 1), (16, 16, 1)) == 4096
    assert group_lanes((3, 1, 1), (40, 1, 1)) == 3 * 64
    assert group_count((160, 1, 1), (256, 1, 1), accesses=1) == 10
    assert group_count((160, 1, 1), (256, 1, 1), accesses=1000) == 3
    assert group_count((160, 1, 1), (256, 1, 1), accesses=1e9) == 1


@pytest.mark.parametrize("seconds, text", [(59.6, "60 s"), (150, "2 minutes"), (9000, "2 hours"), (1e9, "11,574 days")])
def test_a_time_in_words(seconds, text):
    assert in_words(seconds) == text


def test_a_long_simulation_is_refused_before_it_begins(module, monkeypatch):
    monkeypatch.setattr(gpu, "_SimulatedCall", None)  # nothing can begin
    with pytest.raises(tc.CallError, match=r"about \d+ (minutes|hours); the limit is 60 s") as caught:
        module.waves.simulate(floats(2000), floats(30_000_000))
    assert caught.value.diagnostic.code.number == "TC507"
    assert "seconds=None" in str(caught.value)


@needs_nvrtc
def test_a_long_simulation_begins_where_that_is_asked_for(module):
    x, z = floats(3), floats(40)
    with pytest.raises(tc.CallError, match="TC507"):
        module.waves.simulate(x, z, seconds=1e-6)
    for seconds in (None, 30):
        done = module.waves.simulate(x, z, seconds=seconds)
        np.testing.assert_allclose(done.outputs[0], np.sin(x[:, None] * z).sum(1), rtol=1e-4, atol=1e-4)


@needs_nvrtc
def test_a_simulation_can_be_interrupted(module):
    x, z = floats(2000), floats(30_000)  # several seconds
    before = x.copy(), z.copy()
    over = threading.Event()

    def interrupts():  # again and again: Python drops one that meets a destructor
        while not over.wait(1.0):
            _thread.interrupt_main()

    thread = threading.Thread(target=interrupts)
    old = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # which is off where a shell started this in the background
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            module.waves.simulate(x, z)
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, old)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(z, before[1])
    done = module.waves.simulate(x[:3], z[:40])
    assert done.findings == ()
    np.testing.assert_allclose(done.outputs[0], np.sin(x[:3, None] * z[:40]).sum(1), rtol=1e-4, atol=1e-4)
