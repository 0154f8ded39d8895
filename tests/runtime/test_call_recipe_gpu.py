"""Calls on a GPU that repeat an earlier one: they launch what the general path launches, and nothing else is looked at again."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler.definition import _MOST_RECIPES, Definition
from tc_jupyter.runtime import cuda, extremes, nvrtc
from tc_jupyter.runtime.call_recipe import likeness
from tests.runtime.test_cuda import FakeCupy

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))


class ndarray:
    """Memory of the host that says it is on a device."""

    __module__ = "cupy"
    shape = ()

    def __init__(self, host):
        self.host = host
        self.shape, self.strides, self.dtype = host.shape, host.strides, host.dtype
        self.data = types.SimpleNamespace(ptr=host.ctypes.data, device_id=0)
        self.device = types.SimpleNamespace(id=0)

    @property
    def __cuda_array_interface__(self):
        found = dict(self.host.__array_interface__)
        return {**found, "strides": self.strides}

    def set(self, values):
        self.host[...] = values

    def get(self):
        return self.host.copy()


class GpuOfTheHost(FakeCupy):
    """CuPy on memory of the host, whose kernels are written down."""

    ndarray = ndarray

    def empty(self, shape, dtype):
        return ndarray(aligned(shape, dtype))

    zeros = empty


def aligned(shape, dtype, off=0):
    """An array of the host whose address is a multiple of 64, plus `off` bytes."""
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + off
    return memory[start : start + nbytes].view(dtype).reshape(shape)


@pytest.fixture
def gpu(monkeypatch):
    made = GpuOfTheHost()
    monkeypatch.setitem(sys.modules, "cupy", made)
    monkeypatch.setattr(cuda, "_cupy", lambda: made)
    monkeypatch.setattr(cuda, "probe", lambda: types.SimpleNamespace(devices=()))
    monkeypatch.setattr(
        cuda, "compile_source", lambda source, target, *_: nvrtc.Compiled("", source.text.encode(), "", target.arch)
    )
    return made


def on_gpu(*shape, dtype=np.float32, off=0):
    return ndarray(aligned(shape, dtype, off))


@pytest.fixture
def general(monkeypatch):
    """How often the general path was taken."""
    calls: list[str] = []
    real = Definition.call
    monkeypatch.setattr(Definition, "call", lambda self, *args: calls.append(self.name) or real(self, *args))
    return calls


def launched(gpu, function, *args):
    """The launches of a call with the addresses of what takes part in place of numbers."""
    gpu.launches.clear()
    found = function(*args)
    results = found if isinstance(found, tuple) else (found,)
    names = {each.data.ptr: f"argument {place}" for place, each in enumerate(args) if isinstance(each, ndarray)}
    names |= {each.data.ptr: f"result {place}" for place, each in enumerate(results)}
    known = [
        (
            name,
            grid,
            block,
            [names.get(int(each), "elsewhere") if isinstance(each, np.uint64) else each for each in values],
            more,
        )
        for name, grid, block, values, more in gpu.launches
    ]
    return known, [(each.shape, each.dtype) for each in results]


CASES = {
    "one kernel": ("O(i) = 2 * A(i)", "float(N) A", lambda: [on_gpu(1000)]),
    "a matrix product": (
        "O(i,j) +=! A(i,k) * B(k,j)",
        "float(M,K) A, float(K,N) B",
        lambda: [on_gpu(64, 32), on_gpu(32, 64)],
    ),
    "two results": (
        "O(i) = 2 * A(i) P(j) +=! A(i) * C(i,j)",
        "float(N) A, float(N,M) C",
        lambda: [on_gpu(512), on_gpu(512, 7)],
    ),
    "integers and floats": ("O(i) = s * A(i) + A(n)", "float(N) A, float s, int n", lambda: [on_gpu(100), 2.5, 3]),
    "a total, in two kernels": ("O +=! A(i)", "float(N) A", lambda: [on_gpu(1 << 20)]),
    "columns": ("O(i) = A(i) * 2", "float(N) A", lambda: [ndarray(aligned((100, 4), np.float32)[:, 1])]),
    "no element": ("O(i) = A(i) * 2", "float(N) A", lambda: [on_gpu(0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_repeated_call_launches_the_same(name, gpu, general):
    text, parameters, arguments = CASES[name]
    results = "O, P" if "P(" in text else "O"
    f = tc.compile(f"def f({parameters}) -> ({results}) {{ {text} }}", target="cuda", allow=("TC235",))["f"]
    first = launched(gpu, f, *arguments())
    assert [launched(gpu, f, *arguments()) for _ in range(3)] == [first, first, first]
    assert general == ["f", "f"]


SCALED = "def f(float(N) A, float s, int n) -> (O) { O(i) = s * A(i) + n }"


def test_a_float_may_differ_and_an_integer_may_not(gpu, general):
    f = tc.compile(SCALED, target="cuda")["f"]
    f(on_gpu(8), 1.0, 2), f(on_gpu(8), 1.5, 2)
    ((_, _, _, values, _),), _ = launched(gpu, f, on_gpu(8), 3.5, 2)
    assert len(general) == 2
    assert np.float32(3.5) in values
    ((_, _, _, values, _),), _ = launched(gpu, f, on_gpu(8), 3.5, 7)
    assert len(general) == 3
    assert 7 in values


def test_a_float_that_the_type_has_not_is_refused_again(gpu):
    f = tc.compile("def f(float(N) A, float16 s) -> (O) { O(i) = s * A(i) }", target="cuda")["f"]
    for number in (1.0, 2.0, 3.0):
        f(on_gpu(8), number)
    with pytest.raises(tc.CallError) as caught:
        f(on_gpu(8), 1e9)
    assert caught.value.diagnostic.code.number == "TC607"


@pytest.mark.parametrize(
    "other",
    [
        lambda: on_gpu(9),
        lambda: on_gpu(8, off=4),
        lambda: ndarray(aligned((8, 2), np.float32)[:, 0]),
        lambda: aligned((8,), np.float32),
    ],
    ids=["another size", "another alignment", "strides", "on the host"],
)
def test_what_is_unlike_goes_the_general_way(other, gpu, general):
    f = tc.compile("def f(float(N) A) -> (O) { O(i) = 2 * A(i) }", target="cuda")["f"]
    for _ in range(3):
        f(on_gpu(8))
    assert len(general) == 2
    f(other())
    assert len(general) == 3


def test_a_wrong_type_is_refused_after_right_ones(gpu):
    f = tc.compile("def f(float(N) A) -> (O) { O(i) = 2 * A(i) }", target="cuda")["f"]
    f(on_gpu(8))
    for _ in range(2):
        with pytest.raises(tc.CallError):
            f(on_gpu(8, dtype=np.float64))
        with pytest.raises(tc.CallError):
            f(on_gpu(8), on_gpu(8))


def test_an_array_of_one_number_is_read_each_time(gpu):
    assert likeness([2.0]) == likeness([3.0])
    assert likeness([2]) != likeness([3])
    assert likeness([2], (0,)) == likeness([3.0], (0,))
    assert likeness([True]) != likeness([1])
    assert likeness([np.float32(2.0)]) is None


def test_few_calls_are_kept_and_no_array(gpu, general):
    f = tc.compile("def f(float(N) A) -> (O) { O(i) = 2 * A(i) }", target="cuda")["f"]
    for size in range(1, _MOST_RECIPES + 20):
        f(on_gpu(size)), f(on_gpu(size))
    kept = f.definition()._recipes[False]
    assert 0 < len(kept) <= _MOST_RECIPES
    assert all(view.owner is None for each in kept.values() for _, _, view in each.outline.arrays)


def test_what_does_not_fit_is_said(gpu, monkeypatch):
    f = tc.compile("def f(float(N) A) -> (O) { O(i) = 2 * A(i) }", target="cuda")["f"]
    for _ in range(3):
        f(on_gpu(8))

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(gpu, "empty", full)
    with pytest.raises(tc.CallError) as caught:
        f(on_gpu(8))
    assert caught.value.diagnostic.code.number == "TC612"


def test_a_launch_that_fails_is_said(gpu, monkeypatch):
    f = tc.compile("def f(float(N) A) -> (O) { O(i) = 2 * A(i) }", target="cuda")["f"]
    for _ in range(3):
        f(on_gpu(8))

    def failing(*_):
        raise cuda._launch_error(RuntimeError("no"), "f", (1,), (1,))

    monkeypatch.setattr(cuda.CudaRunner, "_start", failing)
    with pytest.raises(tc.CallError):
        f(on_gpu(8))


def test_an_index_outside_is_found_each_time(gpu, monkeypatch):
    f = tc.compile("def f(float(N) A, int(M) I) -> (O) { O(i) = A(I(i)) }", target="cuda")["f"]
    index = on_gpu(4, dtype=np.int32)
    monkeypatch.setattr(extremes, "_of_integers", lambda *_: (index.host.min(), index.host.max()))
    monkeypatch.setattr("tc_jupyter.compiler.call_numbers.host_values", lambda view: view.owner.host)
    for _ in range(3):
        f(on_gpu(8), index)
    index.host[2] = 8
    with pytest.raises(tc.CallError) as caught:
        f(on_gpu(8), index)
    assert caught.value.diagnostic.code.number == "TC604"
