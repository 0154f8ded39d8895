"""The GPU side without a GPU: a driver and a CuPy that write down what is asked of them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import types
from dataclasses import replace

import numpy as np
import pytest

from tc_jupyter.codegen import Argument
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.diagnostics import NO_SPAN
from tc_jupyter.loops import Block, Buffer, Check, For, Kernel, Store
from tc_jupyter.program import Binary, Const, DType, IndexVar, Read, Size, int64
from tc_jupyter.runtime import cuda, nvrtc
from tc_jupyter.runtime.arrays import NUMPY, ArrayView, Library
from tc_jupyter.runtime.cache import DiskCache

needs_nvrtc = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))


# --- a driver --------------------------------------------------------------------------------------------------------


class FakeDriver:
    """As `libcuda`: functions that return a status and write through pointers."""

    def __init__(self, version=13000, names=("NVIDIA H200",), init=0):
        self.version, self.names, self.init = version, names, init
        self.attributes = {75: 9, 76: 0, 16: 132, 1: 1024, 8: 49152, 97: 232448, 82: 65536, 38: 60 << 20}

    def cuInit(self, flags):
        return self.init

    def cuDriverGetVersion(self, out):
        out._obj.value = self.version
        return 0

    def cuDeviceGetCount(self, out):
        out._obj.value = len(self.names)
        return 0

    def cuDeviceGet(self, out, ordinal):
        out._obj.value = ordinal
        return 0

    def cuDeviceGetName(self, buffer, size, device):
        buffer.value = self.names[device.value].encode()
        return 0

    def cuDeviceTotalMem_v2(self, out, device):
        out._obj.value = 141 << 30
        return 0

    def cuDeviceGetAttribute(self, out, number, device):
        out._obj.value = self.attributes.get(number, 0)
        return 0


@pytest.fixture
def probed(monkeypatch):
    """Probe a driver afresh."""

    def make(driver, cupy=True, nvrtc_version=(13, 0)):
        monkeypatch.setattr(cuda, "_driver", lambda: driver)
        monkeypatch.setattr(cuda, "find_spec", lambda name: types.SimpleNamespace() if cupy else None)
        monkeypatch.setattr(nvrtc, "available", lambda: "NVRTC is absent" if nvrtc_version is None else None)
        monkeypatch.setattr(nvrtc, "version", lambda: nvrtc_version)
        cuda.probe.cache_clear()
        return cuda.probe()

    yield make
    cuda.probe.cache_clear()


@pytest.mark.parametrize(
    "driver, options, state, reason",
    [
        (None, {}, cuda.NO_DRIVER, "install the driver"),
        (FakeDriver(names=()), {}, cuda.NO_DEVICE, "no visible GPU"),
        (FakeDriver(init=100), {}, cuda.NO_DEVICE, "CUDA error 100"),
        (FakeDriver(version=11080), {}, cuda.OLD_DRIVER, "CUDA 11.8"),
        (FakeDriver(version=12040), {"nvrtc_version": (13, 0)}, cuda.OLD_DRIVER, "tc_jupyter[cuda12]"),
        (FakeDriver(), {"cupy": False}, cuda.NO_CUPY, "tc_jupyter[cuda13]"),
        (FakeDriver(version=12040), {"cupy": False}, cuda.NO_CUPY, "tc_jupyter[cuda12]"),
        (FakeDriver(), {"nvrtc_version": None}, cuda.NO_NVRTC, "NVRTC is absent"),
        (FakeDriver(), {}, cuda.USABLE, "NVIDIA H200, sm_90"),
    ],
)
def test_every_state_has_a_reason(probed, driver, options, state, reason):
    found = probed(driver, **options)
    assert found.state == state
    assert reason in found.reason
    assert (cuda.detect() is not None) == (state == cuda.USABLE)


def test_hidden_devices_are_named(probed, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES" in probed(FakeDriver(names=())).reason


def test_the_target_has_the_limits_of_the_device(probed):
    probed(FakeDriver())
    target = cuda.cuda_target()
    assert (target.kind, target.name, target.arch, target.multiprocessors) == ("cuda", "NVIDIA H200", "sm_90", 132)
    assert (target.shared_bytes, target.shared_optin_bytes) == (48 << 10, 227 << 10)
    assert {"cp.async", "mma", "wgmma"} <= target.features
    assert str(cuda.detect()) == "NVIDIA H200, sm_90"


def test_without_a_device_the_target_is_a_named_architecture(probed):
    probed(None)
    assert cuda.cuda_target().arch == "sm_80"
    assert cuda.cuda_target("sm_75").features == {"mma"}
    assert cuda.cuda_target("sm_75").shared_optin_bytes == 64 << 10
    with pytest.raises(ValueError, match="architecture"):
        cuda.cuda_target("gfx90a")


@needs_nvrtc
def test_an_unknown_minor_version_uses_the_nearest_older_one(probed):
    assert cuda._compilable("sm_85") == "sm_80"
    assert cuda._compilable("sm_90") == "sm_90"
    assert cuda._compilable("sm_999") == "sm_999"


def test_missing_cupy_is_a_diagnostic(probed, monkeypatch):
    probed(FakeDriver(), cupy=False)
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(nvrtc.BackendError, match="tc_jupyter"):
        cuda._cupy()


# --- a CuPy ----------------------------------------------------------------------------------------------------------


class FakeArray:
    """Host memory that says it is on a device."""

    def __init__(self, host):
        self.host = host
        self.shape, self.dtype, self.strides = host.shape, host.dtype, host.strides
        self.data = types.SimpleNamespace(ptr=host.ctypes.data)
        self.device = types.SimpleNamespace(id=0)

    def set(self, values):
        self.host[...] = values

    def get(self):
        return self.host.copy()


class FakeCupy:
    """Writes down launches; `work` plays the kernel."""

    def __init__(self, work=lambda arguments: None, current=0):
        self.log, self.launches, self.paths, self.work = [], [], [], work
        log = self.log

        class Stream:
            def __init__(self, ptr):
                self.ptr = ptr

            def __enter__(self):
                log.append(("enter", self.ptr))

            def __exit__(self, *_):
                log.append(("leave", self.ptr))

            def wait_event(self, event):
                log.append(("wait", self.ptr, event.stream))

            def synchronize(self):
                log.append(("synchronize", self.ptr))

        class Event:
            def __init__(self, disable_timing=False):
                self.stream = None

            def record(self, stream):
                self.stream = stream.ptr

        outer = self

        class RawModule:
            def __init__(self, path):
                outer.paths.append(path)
                assert path.endswith(".cubin")

            def get_function(self, name):
                return FakeRawKernel(outer, name)

        self.RawModule = RawModule
        self.cuda = types.SimpleNamespace(
            Device=contextlib.nullcontext,
            get_current_stream=lambda: Stream(current),
            ExternalStream=Stream,
            Event=Event,
        )

    def empty(self, shape, dtype):
        return FakeArray(np.empty(shape, dtype))

    def zeros(self, shape, dtype):
        return FakeArray(np.zeros(shape, dtype))


class FakeRawKernel:
    def __init__(self, cupy, name):
        self.cupy, self.name, self.max_dynamic_shared_size_bytes = cupy, name, None

    def __call__(self, grid, block, arguments, *, shared_mem=0):
        self.cupy.launches.append((self.name, grid, block, arguments, shared_mem))
        self.cupy.work(arguments)


@pytest.fixture
def cupy(monkeypatch, probed):
    probed(None)
    monkeypatch.undo()
    made = FakeCupy()
    monkeypatch.setattr(cuda, "_cupy", lambda: made)
    monkeypatch.setattr(
        cuda, "compile_source", lambda source, target, *_: nvrtc.Compiled("", source.text.encode(), "", target.arch)
    )
    return made


def on_device(array, stream=0, library="cupy"):
    """A host array that claims to be on the GPU."""
    kind = Library(library, None, None, None, lambda device: stream)
    dtype = DType(str(array.dtype))
    return ArrayView(array.ctypes.data, array.shape, array.strides, dtype, str(dtype), "cuda:0", True, array, kind)


def doubled(strided=False, **more) -> Kernel:
    """`O[i] = 2 * A[i]`, 256 threads."""
    at = Binary("+", Binary("*", IndexVar("b"), int64(256), DType.INT64), IndexVar("t"), DType.INT64)
    value = Binary("*", Const(2.0, DType.FLOAT32), Read("A", (at,), DType.FLOAT32), DType.FLOAT32)
    threads = For("t", int64(0), int64(256), Block((Store("O", (at,), value),)), "threadIdx.x")
    blocks = For("b", int64(0), Binary("//", Size("N"), int64(256), DType.INT64), Block((threads,)), "blockIdx.x")
    buffers = (
        Buffer("A", DType.FLOAT32, (Size("N"),), strided=strided),
        Buffer("O", DType.FLOAT32, (Size("N"),), role="output"),
    )
    return Kernel("double_O", buffers, ("N",), more.pop("scalars", ()), Block((blocks,)), **more)


def run(kernel, storage, sizes, scalars=None, bits=32):
    target = cuda.cuda_target("sm_80")
    made = cuda.CudaRunner(kernel, emit_cuda(kernel, target, bits), target)
    return made, made(storage, sizes, scalars or {})


def arrays(n, **options):
    return {"A": on_device(np.ones(n, np.float32), **options), "O": on_device(np.zeros(n, np.float32), **options)}


def test_arguments_have_the_width_of_the_parameters(cupy):
    storage = arrays(512)
    _, failure = run(
        doubled(scalars=(("s", DType.FLOAT32), ("h", DType.BFLOAT16), ("f", DType.BOOL))),
        storage,
        {"N": 512},
        {"s": 1, "h": 1.0, "f": True},
    )
    assert failure is None
    name, grid, block, arguments, shared = cupy.launches[0]
    assert (name, grid, block, shared) == ("double_O", (2, 1, 1), (256, 1, 1), 0)
    assert [type(argument) for argument in arguments] == [
        np.uint64,
        np.uint64,
        np.int32,
        np.float32,
        np.uint16,
        np.bool_,
    ]
    assert arguments[0] == storage["A"].address
    assert arguments[4] == 0x3F80


def test_wide_indices_where_the_arrays_need_them(cupy):
    kernel = doubled(strided=True)
    far = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (512,), (1 << 24,))
    storage = {"A": on_device(far), "O": on_device(np.zeros(512, np.float32))}
    run(kernel, storage, {"N": 512})
    assert [type(argument) for argument in cupy.launches[0][3]] == [np.uint64, np.uint64, np.int64, np.int64]
    assert cupy.launches[0][3][2] == 1 << 22


def test_an_empty_grid_launches_nothing(cupy):
    run(doubled(), arrays(0), {"N": 0})
    assert cupy.launches == []


def test_a_second_call_with_other_sizes_loads_nothing(cupy):
    made, _ = run(doubled(), arrays(512), {"N": 512})
    made(arrays(1024), {"N": 1024}, {})
    made(arrays(1024), {"N": 1024}, {})
    assert [launch[1] for launch in cupy.launches] == [(2, 1, 1), (4, 1, 1), (4, 1, 1)]
    assert len(cupy.paths) == 1
    assert len(made.plans) == 2


def test_an_argument_that_ends_a_range_is_of_the_launch(cupy):
    """Sizes and strides of two calls are the same; the number of blocks is not."""
    kernel = doubled(scalars=(("s", DType.INT32),))
    (blocks,) = kernel.body.body
    many = Binary("min", Binary("//", Size("N"), int64(256), DType.INT64), Read("s", (), DType.INT64), DType.INT64)
    kernel = replace(kernel, body=Block((replace(blocks, extent=many),)))
    made, _ = run(kernel, arrays(1024), {"N": 1024, "s": 1}, {"s": 1})
    made(arrays(1024), {"N": 1024, "s": 3}, {"s": 3})
    made(arrays(1024), {"N": 1024, "s": 1}, {"s": 1})
    assert [launch[1] for launch in cupy.launches] == [(1, 1, 1), (3, 1, 1), (1, 1, 1)]
    assert len(cupy.paths) == 1


def test_the_module_is_loaded_from_a_file_named_after_its_bytes(tmp_path):
    cache = DiskCache(tmp_path / "cache")
    path = cuda.cubin_file(b"machine code", cache)
    assert path.read_bytes() == b"machine code"
    path.write_bytes(b"something else")
    assert cuda.cubin_file(b"machine code", cache).read_bytes() == b"machine code"
    path.unlink()
    os.mkfifo(path)
    assert cuda.cubin_file(b"machine code", cache).read_bytes() == b"machine code"
    assert cuda.cubin_file(b"other", cache) != path
    assert cuda.cubin_file(b"machine code", DiskCache(None)).read_bytes() == b"machine code"


def test_the_stream_of_the_output_is_used_and_others_are_ordered(cupy):
    storage = {
        "A": on_device(np.ones(512, np.float32), stream=7, library="torch"),
        "O": on_device(np.zeros(512, np.float32), stream=5),
    }
    run(doubled(), storage, {"N": 512})
    assert cupy.log == [("enter", 5), ("wait", 5, 7), ("wait", 7, 5), ("leave", 5)]


def test_a_library_on_another_stream_than_cupy(cupy):
    run(doubled(), arrays(512, stream=9), {"N": 512})
    assert cupy.log == [("enter", 9), ("leave", 9)]


def test_one_stream_needs_no_events(cupy):
    run(doubled(), arrays(512), {"N": 512})
    assert not any(entry[0] == "wait" for entry in cupy.log)


def test_host_arrays_are_copied_to_the_gpu_and_back(cupy):
    def work(arguments):
        source, target = ((ctypes.c_float * 512).from_address(int(pointer)) for pointer in arguments[:2])
        for k in range(512):
            target[k] = 2 * source[k]

    cupy.work = work
    a, o = np.arange(512, dtype=np.float32), np.zeros((2, 512), np.float32)[:, ::1][0]
    storage = {"A": NUMPY.view(a), "O": NUMPY.view(o)}
    run(doubled(), storage, {"N": 512})
    assert np.array_equal(o, 2 * a)


def test_a_failed_check_comes_back(cupy):
    def work(arguments):
        record = (ctypes.c_int64 * 3).from_address(int(arguments[-1]))
        record[0], record[1], record[2] = 4, 17, -1

    cupy.work = work
    body = Check(
        Binary("<", Size("N"), int64(3), DType.BOOL),
        3,
        (Size("N"), int64(-1)),
        Block((Store("O", (int64(0),), Const(1.0, DType.FLOAT32)),)),
    )
    kernel = Kernel(
        "k", (Buffer("O", DType.FLOAT32, (Size("N"),), role="output"),), ("N",), (), Block((body,)), checks=1
    )
    _, failure = run(kernel, {"O": on_device(np.zeros(4, np.float32))}, {"N": 4})
    assert failure == (3, 17, -1)


def test_more_than_48_kib_of_shared_memory_is_opted_into(cupy):
    from tc_jupyter.loops import Allocate

    tile = Buffer("S", DType.FLOAT32, (int64(20000),), "shared")
    inner = Allocate(
        tile,
        Block(
            (
                Store("S", (int64(0),), Const(1.0, DType.FLOAT32)),
                Store("O", (int64(0),), Read("S", (int64(0),), DType.FLOAT32)),
            )
        ),
    )
    kernel = Kernel("k", (Buffer("O", DType.FLOAT32, (Size("N"),), role="output"),), ("N",), (), Block((inner,)))
    made, _ = run(kernel, {"O": on_device(np.zeros(4, np.float32))}, {"N": 4})
    assert cupy.launches[0][4] == 80000
    assert next(iter(made.variants.values())).raw.max_dynamic_shared_size_bytes == 80000


def test_a_lost_context_is_explained(cupy):
    def work(arguments):
        raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")

    cupy.work = work
    with pytest.raises(nvrtc.BackendError) as caught:
        run(doubled(), arrays(512), {"N": 512})
    diagnostic = caught.value.diagnostic
    assert diagnostic.code.number == "TC903"
    assert "double_O" in diagnostic.message
    assert "restart" in diagnostic.help
    assert diagnostic.span == NO_SPAN


def test_a_refused_launch_leaves_the_context(cupy):
    def work(arguments):
        raise RuntimeError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch")

    cupy.work = work
    with pytest.raises(nvrtc.BackendError) as caught:
        run(doubled(), arrays(512), {"N": 512})
    assert "intact" in caught.value.diagnostic.help


def vectorised() -> Kernel:
    at = Binary("+", Binary("*", IndexVar("j"), int64(4), DType.INT64), IndexVar("v"), DType.INT64)
    store = Store("O", (IndexVar("i"), at), Read("A", (IndexVar("i"), at), DType.FLOAT32))
    inner = For("v", int64(0), int64(4), Block((store,)), "vectorize")
    nest = For(
        "i",
        int64(0),
        Size("M"),
        Block((For("j", int64(0), Binary("//", Size("N"), int64(4), DType.INT64), Block((inner,))),)),
        "blockIdx.x",
    )
    buffers = (
        Buffer("A", DType.FLOAT32, (Size("M"), Size("N"))),
        Buffer("O", DType.FLOAT32, (Size("M"), Size("N")), role="output"),
    )
    return Kernel("copy", buffers, ("M", "N"), (), Block((nest,)))


def test_vectors_only_where_the_call_is_aligned(cupy):
    def storage(offset, n):
        whole = np.zeros(4 * n + 8, np.float32)
        start = -(whole.ctypes.data // 4) % 4 + offset
        view = whole[start : start + 2 * n].reshape(2, n)
        return {"A": on_device(view), "O": on_device(view.copy() if offset else view)}

    target = cuda.cuda_target("sm_80")
    made = cuda.CudaRunner(vectorised(), emit_cuda(vectorised(), target), target)
    made(storage(0, 8), {"M": 2, "N": 8}, {})
    made(storage(0, 16), {"M": 2, "N": 16}, {})
    assert [("tc_load<4>" in found.source.text) for found in made.variants.values()] == [True]
    made(storage(1, 8), {"M": 2, "N": 8}, {})
    made(storage(0, 6), {"M": 2, "N": 6}, {})
    texts = [found.source.text for found in made.variants.values()]
    assert [("tc_load<4>" in text) for text in texts] == [True, False, False]


def test_converters_of_scalars():
    for dtype, number, expected in [
        (DType.FLOAT64, 1, np.float64(1)),
        (DType.INT8, -3, np.int8(-3)),
        (DType.UINT64, 2**63, np.uint64(2**63)),
        (DType.FLOAT16, 0.5, np.float16(0.5)),
        (DType.BOOL, False, np.bool_(False)),
    ]:
        value = cuda.scalar_converter(Argument("scalar", "s", dtype))(number)
        assert value == expected
        assert type(value) is type(expected)


@needs_nvrtc
def test_compiled_code_is_kept_and_damaged_entries_are_made_anew(tmp_path):
    target = cuda.cuda_target("sm_80")
    source, cache = emit_cuda(doubled(), target), DiskCache(tmp_path / "cache")
    first = cuda.compile_source(source, target, cache)
    assert cache.size()[0] == 1
    assert cuda.compile_source(source, target, cache) == first
    for path in (tmp_path / "cache").glob("*.tcx"):
        path.write_bytes(b"damaged")
    assert cuda.compile_source(source, target, cache) == first
    assert cuda.compile_source(source, cuda.cuda_target("sm_90"), cache).arch == "sm_90"
    assert cache.size()[0] == 2


def test_a_host_result_without_dimensions(cupy):
    def work(arguments):
        ctypes.c_float.from_address(int(arguments[0])).value = 3.0

    cupy.work = work
    kernel = Kernel(
        "k",
        (Buffer("O", DType.FLOAT32, (), role="output"),),
        (),
        (),
        Block((Store("O", (), Const(3.0, DType.FLOAT32)),)),
    )
    result = np.zeros((), np.float32)
    run(kernel, {"O": NUMPY.view(result)}, {})
    assert result == 3.0


def test_a_grid_beyond_the_limits_strides(cupy):
    def made(kind):
        body = For("b", int64(0), Size("N"), Block((Store("O", (IndexVar("b"),), Const(1, DType.INT8)),)), kind)
        return Kernel("k", (Buffer("O", DType.INT8, (Size("N"),), role="output"),), ("N",), (), Block((body,)))

    storage = {"O": on_device(np.zeros(70_000, np.int8))}
    run(made("blockIdx.y"), storage, {"N": 65_535})
    run(made("blockIdx.y"), storage, {"N": 70_000})
    run(made("blockIdx.x"), storage, {"N": 70_000})
    assert [launch[1] for launch in cupy.launches] == [(1, 65_535, 1), (1, 65_535, 1), (70_000, 1, 1)]
    assert len(set(cupy.paths)) == 3  # along y with and without striding, along x
