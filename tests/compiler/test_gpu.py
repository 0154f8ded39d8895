"""Launches, resources and simulated calls of the CUDA code, without a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import nvrtc

CELL = """
def matmul(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }
def softmax(float(N,M) X) -> (Y) {
    m(i) max=! X(i,j)
    e(i,j) = exp(X(i,j) - m(i))
    s(i) +=! e(i,j)
    Y(i,j) = e(i,j) / s(i)
}
def mixed(float(J) B, int32(I) C, int32(I) D) -> (A) { A(i) = B(C(i) + D(i)) }
def half(float16(N) X, float a) -> (Y) { Y(i) = float16(X(i) * a) }
"""
CELL = CELL.replace("def half", "def small")

needs_nvrtc = pytest.mark.skipif(nvrtc.available() is not None, reason="NVRTC is not installed")


@pytest.fixture(scope="module")
def module():
    return tc.compile(CELL, allow=["TC327"])


def floats(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_launches_have_numbers_and_names(module):
    (launch,) = module.matmul.kernels(M=100, K=20, N=33)
    assert launch.arguments[:3] == ("A", "B", "C")
    assert set(launch.arguments[3:]) == {"M", "K", "N"}
    assert min(launch.grid) >= 1
    assert 1 <= np.prod(launch.block) <= 1024
    assert np.prod(launch.grid) * np.prod(launch.block) >= 1
    assert launch.name in module.matmul.source("cuda")
    same = module.matmul.kernels(floats(100, 20), floats(20, 33))
    assert same[0][1:] == launch[1:]
    with pytest.raises(tc.CallError, match=r"TC614.*`K` is not given"):
        module.matmul.kernels(M=3)


@needs_nvrtc
def test_resources_of_every_kernel(module):
    found = module.softmax.resources()
    assert len(found) == len(module.softmax.kernels(N=5, M=7))
    for kernel in found:
        assert 0 < kernel.registers <= 255
        assert kernel.spill_bytes == 0
        assert 0 < kernel.occupancy <= 1
    assert module.softmax.resources(N=5, M=7) == module.softmax.resources(floats(5, 7))


@needs_nvrtc
def test_a_simulated_call_gives_results_and_findings(module):
    x = floats(5, 7)
    done = module.softmax.simulate(x)
    assert done.findings == ()
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(done.outputs[0], e / e.sum(1, keepdims=True), rtol=1e-5)
    assert "simulated, not timed" in done.report
    a, b = floats(7, 5).T, floats(7, 3)
    np.testing.assert_allclose(module.matmul.simulate(a, b).outputs[0], a @ b, rtol=1e-4, atol=1e-5)


@needs_nvrtc
def test_small_floats_and_scalars_in_the_simulator(module):
    x = floats(9).astype(np.float16)
    found = module.small.simulate(x, 2.5).outputs[0]
    np.testing.assert_array_equal(found, (x.astype(np.float32) * 2.5).astype(np.float16))


@needs_nvrtc
def test_a_failed_check_in_the_simulator_is_a_call_error(module):
    c = np.array([1, 3], np.int32)
    with pytest.raises(tc.CallError, match="TC604"):
        module.mixed.simulate(floats(5), c, c)
    np.testing.assert_array_equal(module.mixed.simulate(floats(7), c, c).outputs[0], floats(7)[[2, 6]])


@needs_nvrtc
def test_ptx(module):
    assert ".visible .entry" in module.matmul.source("ptx")
