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
def sums(float(N,M) X) -> (Y) { Y(i) +=! X(i,j) }
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


@pytest.mark.parametrize("limit", [1 << 40, 5000, 300, 0])
def test_blocks_are_as_many_as_there_is_work_for(limit):
    """Of `0:min(N, limit)` the limit was launched, up to 2**31 - 1 blocks, however small N was."""
    f = tc.compile(f"def f(float(N) X) -> (Y) {{ Y(i) = X(i) where i in 0:min(N, {limit}) }}").f
    for n in (0, 1, 300, 5000):
        (launch,) = f.kernels(N=n)
        assert np.prod(launch.grid) * np.prod(launch.block) <= 2 * min(n, limit) + 1024
        assert np.prod(launch.grid) * np.prod(launch.block) * 8 >= min(n, limit)


def test_scalars_say_how_many_blocks_there_are():
    """Where a range has an end from an argument, each dimension of the grid had eight blocks for each multiprocessor."""
    cell = "def f(float(N) X, int32 s, int32 r) -> (Y) { Y(i, j) = X(i) * X(j) where i in s:N, j in 0:abs(r) }"
    f = tc.compile(cell, allow=["TC322"]).f
    for s, r in ((5, -7), (299, 3), (0, 300)):
        (launch,) = f.kernels(floats(300), s, r)
        assert launch[1:] == f.kernels(N=300, s=s, r=r)[0][1:]
        assert np.prod(launch.grid) * np.prod(launch.block) <= 4 * (300 - s) * abs(r) + 4096
    with pytest.raises(tc.CallError, match=r"TC614.*`s` is not given"):
        f.kernels(N=300)


@needs_nvrtc
def test_a_grid_over_scalars_covers_its_results():
    cell = "def f(float(N) X, int32 s, int32 r) -> (Y) { Y(i, j) = X(i) * X(j) where i in s:N, j in 0:abs(r) }"
    f, x = tc.compile(cell, allow=["TC322"]).f, floats(40)
    for s, r in ((5, -7), (39, 3), (40, 4)):
        found = f.simulate(x, s, r)
        assert found.findings == ()
        np.testing.assert_array_equal(found.outputs[0], np.multiply.outer(x[s:], x[: abs(r)]))


@needs_nvrtc
def test_resources_of_every_kernel(module):
    found = module.softmax.resources()
    assert len(found) == len(module.softmax.kernels(N=5, M=7))
    for kernel in found:
        assert 0 < kernel.registers <= 255
        assert kernel.spill_bytes == 0
        assert 0 < kernel.occupancy <= 1
    assert module.softmax.resources(N=5, M=7) == module.softmax.resources(floats(5, 7))


@pytest.mark.some(3)
@needs_nvrtc
@pytest.mark.parametrize("sizes", [(3, 5), (16, 64), (300, 1000), (5, 4), (0, 3)])
@pytest.mark.parametrize("name", ["sums", "softmax"])
def test_sizes_by_name_mean_arrays_of_these_sizes(module, name, sizes):
    function, x, (n, m) = module[name], floats(*sizes), sizes
    for kind in ("loops", "cuda", "llvm"):
        assert function.source(kind, N=n, M=m) == function.source(kind, x)
    assert function.resources(N=n, M=m) == function.resources(x)
    assert function.kernels(N=n, M=m) == function.kernels(x)


def test_sizes_beyond_32_bits_have_wide_indices(module):
    wide = "// indices: long long"
    assert wide in module.sums.source("cuda", N=3, M=3_000_000_000)
    assert wide in module.sums.source("cuda", N=60_000, M=60_000)
    assert wide not in module.sums.source("cuda", N=3, M=3_000)
    with pytest.raises(tc.CallError, match=r"TC614.*`M` is not given"):
        module.sums.source("cuda", N=3)


OUTSIDE = {
    "element of the next row": "O(t) = A(t, Id(t))",
    "through an inlined tensor": "J(t) = Id(t) + 0 O(t) = A(t, J(t))",
    "as a row": "O(v) +=! A(Id(t) - 1, v)",
    "behind a condition that lets it": "O(t) = Id(t) != 4 ? A(t, Id(t)) : 0",
}


@needs_nvrtc
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_that_leaves_its_dimension_is_found_inside_the_buffer(name):
    """`A(1, 5)` is `A(2, 0)` in memory. Without checks at the call, since some would stop the kernel there."""
    text = f"def f(float(T,V) A, int32(T) Id) -> (O) {{\n    {OUTSIDE[name]}\n}}"
    function = tc.compile(text, check="none").f
    a, good, bad = floats(4, 5), np.array([1, 2, 4, 1], np.int32), np.array([1, 5, 4, 1], np.int32)
    assert function.simulate(a, good).findings == ()
    (finding,) = function.simulate(a, bad).findings
    assert (finding.kind, finding.array, finding.line) == ("out-of-bounds", "A", 2)
    if name == "as a row":
        assert "`A(4, 0)` is read: index 4 in dimension 0 of `A`, which has 0 to 3" in finding.message
    else:
        assert "`A(1, 5)` is read: index 5 in dimension 1 of `A`, which has 0 to 4" in finding.message
        assert finding.thread == (1, 0, 0)


@needs_nvrtc
@pytest.mark.parametrize(
    "statement", ["O(Id(t)) +=! t", "O(t) = 0 where t in 0:5  O(Id(t)) max= t", "O(5 - Id(t)) +=! t"]
)
@pytest.mark.parametrize("check", ["none", "all"])
def test_a_left_side_that_leaves_its_dimension_is_found(statement, check):
    """The kernel leaves such points out, so that no access of it is wrong."""
    function = tc.compile(f"def f(int32(T) Id) -> (int64(5) O) {{\n    {statement}\n}}", check=check).f
    assert function.simulate(np.array([1, 3, 4], np.int32)).findings == ()
    (finding,) = function.simulate(np.array([1, 3, 7], np.int32)).findings
    assert (finding.kind, finding.array, finding.line) == ("out-of-bounds", "O", 2)
    assert "first at t = 2" in finding.message


@needs_nvrtc
@pytest.mark.parametrize("guard", ["Id(t) >= 0 && Id(t) < V", "!(Id(t) < 0 || Id(t) >= V)"])
def test_an_index_behind_a_condition_on_itself_is_inside(guard):
    function = tc.compile(f"def f(float(T,V) A, int32(T) Id) -> (O) {{ O(t) = {guard} ? A(t, Id(t)) : 0 }}").f
    assert function.simulate(floats(4, 5), np.array([0, 5, 1, -1], np.int32)).findings == ()


@needs_nvrtc
def test_an_index_that_the_kernel_computes_itself_is_looked_at():
    """Its sum is in the kernel that reads by it."""
    text = "def f(float(T,V) A, int32(T,K) Id) -> (O) { J(t) +=! Id(t,k) O(t) = A(t, J(t)) }"
    function, ids = tc.compile(text, check="none").f, np.array([[0, 1], [2, 2], [1, 1], [0, 0]], np.int32)
    assert function.simulate(floats(4, 5), ids).findings == ()
    findings = function.simulate(floats(4, 5), ids + np.array([[0, 0], [0, 1], [0, 0], [0, 0]], np.int32)).findings
    assert {finding.kind for finding in findings} == {"out-of-bounds"}


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
