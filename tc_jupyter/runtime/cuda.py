"""The GPU: what is there, the `Target`, loading and launching through CuPy.

`probe` asks the driver library by `ctypes`, takes well under a millisecond, makes no context and always gives a
reason; CuPy is imported when the first kernel is loaded. What is loaded is the cubin that was checked, by a path that
is the hash of its bytes, since CuPy remembers modules by path. One kernel has several variants (index width,
alignment, sizes that are multiples of a vector); the first call of a kind makes its variant, later calls find their
launch plan by sizes.

Worked example: `CudaRunner(kernel, source, cuda_target())` is called with views of CuPy or PyTorch arrays and launches on
the stream that the library of the outputs is working on.

Source: CUDA Driver API; CuPy reference, "User-Defined Kernels" and "Interoperability".
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tc_jupyter.codegen import Argument, KernelSource
from tc_jupyter.codegen.cuda import emit_cuda, fits_int32
from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, SourceText, codes
from tc_jupyter.files import read_own, write_whole
from tc_jupyter.loops import Allocate, For, Kernel, walk_statements
from tc_jupyter.program import DType, Size
from tc_jupyter.ranges import Fact
from tc_jupyter.schedule import STATIC_SHARED_BYTES, Target

from . import nvrtc
from .arguments import Number
from .arrays import ArrayView, as_numpy, storage_dtype, use_device_memory
from .cache import DiskCache, key_of
from .cubin import multiprocessor
from .launch import RECORD, Failure, Runner, bfloat16_bits, failure_of, integers, values_of_checks
from .nvrtc import BackendError, Compiled

# detection -----------------------------------------------------------------------------------------------------------------------

USABLE, NO_CUPY, NO_DRIVER, NO_DEVICE, OLD_DRIVER, NO_NVRTC = (
    "usable",
    "no CuPy",
    "no driver library",
    "no visible device",
    "driver too old",
    "no NVRTC",
)

OLDEST_DRIVER = 12_000
"""CUDA version of the oldest driver that CuPy 14 works with: 12.0."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device as the driver describes it; `str()` is its name and architecture."""

    name: str
    arch: str
    multiprocessors: int = 108
    max_threads: int = 1024
    shared_bytes: int = STATIC_SHARED_BYTES
    shared_optin_bytes: int = 99 << 10
    registers: int = 65536
    l2_bytes: int = 32 << 20

    def __str__(self) -> str:
        return f"{self.name}, {self.arch}"


@dataclass(frozen=True, slots=True)
class Detection:
    """What was found.

    Attributes:
        state: one of the constants above; `usable` if kernels can run.
        reason: one sentence for people, with the remedy.
        driver: CUDA version of the driver (12040 = 12.4), 0 if there is none.
        devices: visible GPUs, also where something else is missing.
    """

    state: str
    reason: str
    driver: int = 0
    devices: tuple[Gpu, ...] = ()


@cache
def probe() -> Detection:
    """Ask the driver which GPUs there are, and look for CuPy and NVRTC; nothing is imported or initialised for
    computing.
    """
    library = _driver()
    if library is None:
        return Detection(
            NO_DRIVER, "no NVIDIA driver: its library (libcuda.so.1, nvcuda.dll) was not found; install the driver"
        )
    version, count = ctypes.c_int(), ctypes.c_int()
    status = library.cuInit(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    if status == 0:
        status = library.cuDeviceGetCount(ctypes.byref(count))
    if status != 0 or count.value == 0:
        return Detection(NO_DEVICE, _no_device(status), version.value)
    devices = tuple(_gpu(library, ordinal) for ordinal in range(count.value))
    return Detection(*_obstacle(version.value, str(devices[0])), version.value, devices)


def detect() -> Gpu | None:
    """The first GPU if kernels can run on it, else `None`; `probe().reason` says why."""
    found = probe()
    return found.devices[0] if found.state == USABLE else None


def _no_device(status: int) -> str:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hidden = f"; `CUDA_VISIBLE_DEVICES` is {visible!r}" if visible is not None else ""
    return f"there is a driver but no visible GPU (CUDA error {status}){hidden}"


def _obstacle(driver: int, device: str) -> tuple[str, str]:
    """State and reason where the driver and a device are there."""
    major = driver // 1000
    extra = "cuda13" if major >= 13 else "cuda12"
    shown = f"{major}.{driver % 1000 // 10}"
    if driver < OLDEST_DRIVER:
        return OLD_DRIVER, f"the driver supports CUDA {shown}; at least 12.0 is needed: update the driver"
    if find_spec("cupy") is None:
        return NO_CUPY, f"CuPy is not installed; `pip install 'tc_jupyter[{extra}]'` (driver for CUDA {shown})"
    missing = nvrtc.available()
    if missing is not None:
        return NO_NVRTC, missing
    if nvrtc.version()[0] > major:
        found = ".".join(map(str, nvrtc.version()))
        return OLD_DRIVER, f"NVRTC {found} is newer than the driver (CUDA {shown}); `pip install 'tc_jupyter[{extra}]'`"
    return USABLE, device


def _driver() -> Any | None:
    """The driver library, or `None`."""
    names = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
    for name in names:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None


def _gpu(library: Any, ordinal: int) -> Gpu:
    """Attributes of one device, without a context."""
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    library.cuDeviceGet(ctypes.byref(device), ordinal)
    library.cuDeviceGetName(name, 256, device)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        library.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        return value.value

    arch = f"sm_{attribute(75)}{attribute(76)}"
    shared = attribute(8) or STATIC_SHARED_BYTES
    return Gpu(
        name.value.decode(errors="replace"),
        arch,
        attribute(16),
        attribute(1) or 1024,
        shared,
        attribute(97) or shared,
        attribute(82) or 65536,
        attribute(38),
    )


def cuda_target(arch: str | None = None) -> Target:
    """The GPU as plain data: the first one, or, without one, a device of the given architecture (default `sm_80`).

    Raises:
        ValueError: `arch` is no CUDA architecture.
    """
    devices = probe().devices
    if arch is None and devices:
        return target_of(devices[0])
    arch = arch or "sm_80"
    limits = multiprocessor(arch)
    return target_of(Gpu(f"{arch}, no device", arch, shared_optin_bytes=limits.shared_per_block))


def target_of(gpu: Gpu) -> Target:
    """The `Target` of a device; its architecture is one that NVRTC knows where NVRTC is there."""
    arch = _compilable(gpu.arch)
    number = int("".join(filter(str.isdigit, arch)))
    features = {"mma"} | ({"cp.async", "mma.bfloat16", "mma.int8", "mma.tf32"} if number >= 80 else set[str]())
    return Target(
        "cuda",
        gpu.name,
        frozenset(features | ({"wgmma"} if number == 90 else set[str]())),
        fma=True,
        arch=arch,
        multiprocessors=gpu.multiprocessors,
        max_threads=gpu.max_threads,
        shared_bytes=gpu.shared_bytes,
        shared_optin_bytes=gpu.shared_optin_bytes,
        registers=gpu.registers,
        l2_bytes=gpu.l2_bytes,
    )


def _compilable(arch: str) -> str:
    """The newest architecture of the same major version that NVRTC compiles for: its cubins run on `arch`."""
    if nvrtc.available() is not None or arch in nvrtc.supported_archs():
        return arch
    number = int(arch.removeprefix("sm_"))
    older = [int(name.removeprefix("sm_")) for name in nvrtc.supported_archs()]
    fitting = [each for each in older if each // 10 == number // 10 and each <= number]
    return f"sm_{max(fitting)}" if fitting else arch


# compiling -----------------------------------------------------------------------------------------------------------------------


def compile_source(source: KernelSource, target: Target, cache: DiskCache | None = None) -> Compiled:
    """PTX and cubin of a kernel's text, from the disk cache where they are there.

    Raises:
        BackendError: NVRTC is absent or refused the text.
    """
    options = nvrtc.FAST_MATH if target.fast_math else ()
    store = DiskCache.default() if cache is None else cache
    key = key_of("cubin", source.text, target.arch, *nvrtc.BASE_OPTIONS, *options, "{}.{}".format(*nvrtc.version()))
    entry = store.get(key)
    if entry is not None:
        return Compiled(entry.meta["ptx"], entry.data, entry.meta["log"], target.arch)
    compiled = nvrtc.compile_cuda(source.text, target.arch, name=f"{source.entry}.cu", options=options)
    store.put(key, compiled.cubin, {"ptx": compiled.ptx, "log": compiled.log})
    return compiled


# loading -------------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LoadedKernel:
    """A kernel that can be launched.

    Attributes:
        raw: the `cupy.RawKernel`.
        prepared: devices on which its dynamic shared memory is opted into.
    """

    source: KernelSource
    compiled: Compiled
    raw: Any
    prepared: set[int] = field(default_factory=set[int])

    def launch(self, device: int, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        """Start it on the current stream of `device`, which is the current device. A grid without blocks does nothing.

        Raises:
            BackendError: the driver refused the launch.
        """
        if min(grid) <= 0:
            return  # CuPy would launch one block
        shared = self.source.launch.shared
        try:
            if shared > STATIC_SHARED_BYTES and device not in self.prepared:
                self.raw.max_dynamic_shared_size_bytes = shared
                self.prepared.add(device)
            self.raw(grid, block, arguments, shared_mem=shared)
        except Exception as error:
            raise _launch_error(error, self.source.entry, grid, block) from error


def load(source: KernelSource, compiled: Compiled, cache: DiskCache | None = None) -> LoadedKernel:
    """Load a cubin through CuPy as a `RawKernel`. The current device must be of its architecture.

    Raises:
        BackendError: CuPy or the driver refused the cubin.
    """
    cupy = _cupy()
    path = cubin_file(compiled.cubin, DiskCache.default() if cache is None else cache)
    try:
        raw = cupy.RawModule(path=str(path)).get_function(source.entry)
    except Exception as error:
        message = f"the driver refused the machine code of kernel `{source.entry}` ({compiled.arch})"
        raise BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, message), str(error)) from error
    return LoadedKernel(source, compiled, raw)


def cubin_file(cubin: bytes, cache: DiskCache) -> Path:
    """A file with these bytes, named after their hash, in the user's own cache folder (or in one of this process)."""
    folder = cache.folder if cache.usable() else None
    path = (Path(_process_folder().name) if folder is None else folder) / f"{hashlib.sha256(cubin).hexdigest()}.cubin"
    with suppress(OSError):
        if read_own(path) == cubin:
            return path
    write_whole(path, cubin)
    return path


@cache
def _process_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for this process, removed when it ends."""
    return tempfile.TemporaryDirectory(prefix="tc_jupyter_")


def _launch_error(error: Exception, entry: str, grid: tuple[int, ...], block: tuple[int, ...]) -> BackendError:
    """What a failed launch means for the process."""
    message = f"kernel `{entry}` failed on the GPU (grid {grid}, block {block}): {error}"
    lost = any(
        word in str(error)
        for word in ("ILLEGAL", "illegal", "LAUNCH_FAILED", "LAUNCH_TIMEOUT", "ASSERT", "unspecified")
    )
    help_text = (
        "the error may belong to an earlier kernel of this process; the CUDA context is lost, so restart the process (the notebook "
        "kernel); `f.simulate(...)` on small arrays finds wrong accesses"
        if lost
        else "the context is intact; the launch needs more threads, registers or shared memory than the device has"
    )
    return BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, message, help=help_text))


# launching -----------------------------------------------------------------------------------------------------------------------


LARGEST_GRID = ((1 << 31) - 1, 65535, 65535)
"""Blocks along x, y, z that a launch may have; CuPy narrows larger numbers silently."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything about a launch that depends on the sizes alone."""

    loaded: LoadedKernel
    grid: tuple[int, ...]
    block: tuple[int, ...]
    workspace: tuple[int, ...]
    gather: Callable[..., tuple[Any, ...]]


@dataclass(slots=True)
class CudaRunner:
    """Runs one kernel; nothing is compiled or loaded before the first call.

    Attributes:
        source: the kernel's text, used where a call fits it; other variants are written when a call needs them.
        variants: loaded code by (index width, size of the grid, alignment, multiples, architecture).
        plans: launches by device, sizes, integer scalars, strides and alignment; forgotten when there are many.
    """

    kernel: Kernel
    source: KernelSource
    target: Target
    variants: dict[tuple[Any, ...], LoadedKernel] = field(default_factory=dict[tuple[Any, ...], LoadedKernel])
    plans: dict[tuple[Any, ...], _Plan] = field(default_factory=dict[tuple[Any, ...], _Plan])
    lock: Any = field(default_factory=threading.Lock)

    def __call__(
        self, storage: Mapping[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> Failure | None:
        """Work on the given storage. Arrays of the host are copied to the GPU and back.

        Raises:
            BackendError: the kernel cannot be compiled, loaded or launched.
            MemoryError: the workspace or the copies do not fit.
        """
        own = {buffer.name: storage[buffer.name] for buffer in self.kernel.buffers}
        for view in own.values():
            if view.device == "cpu":
                return self._staged(own, sizes, scalars)
        return self._run(own, sizes, scalars)

    def _staged(
        self, own: dict[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> Failure | None:
        """Copy to the first GPU, run, copy back what was written."""
        cupy = _cupy()
        there: dict[str, ArrayView] = {}
        for buffer in self.kernel.buffers:
            view = own[buffer.name]
            if view.device == "cpu":
                host = np.asarray(as_numpy(view), order="C")
                array = cupy.empty(host.shape, _plain(buffer.dtype))
                if buffer.role != "output":
                    array.set(host.view(_plain(buffer.dtype)))
                view = _array_view(array, view)
            there[buffer.name] = view
        failure = self._run(there, sizes, scalars)
        for buffer in self.kernel.buffers:
            if buffer.role != "input" and own[buffer.name].device == "cpu":
                back = there[buffer.name].owner
                target = as_numpy(own[buffer.name])
                np.copyto(target, back.get().view(target.dtype))  # type: ignore[attr-defined]
        return failure

    def _run(
        self, own: Mapping[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> Failure | None:
        device = _device_of(own)
        with _cupy().cuda.Device(device):
            return self._launch(device, self._plan(device, own, sizes), own, sizes, scalars)

    def planned(self, storage: Mapping[str, ArrayView], sizes: Mapping[str, int]) -> Runner:
        """What launches at these sizes, on arrays with these strides and this alignment; their device must be current."""
        own = {buffer.name: storage[buffer.name] for buffer in self.kernel.buffers}
        device = _device_of(own)
        return partial(self._launch, device, self._plan(device, own, sizes))

    def _launch(
        self,
        device: int,
        plan: _Plan,
        own: Mapping[str, ArrayView],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number],
    ) -> Failure | None:
        """Launch on the stream of the library of the first output; `own` may hold more than the buffers of this kernel."""
        if min(plan.grid) <= 0:
            return None
        cupy = _cupy()
        main, others = _streams(self.kernel, own)
        if not others and int(cupy.cuda.get_current_stream().ptr) == main:
            return self._start(cupy, device, plan, plan.gather(own, sizes, scalars))
        with cupy.cuda.ExternalStream(main):
            _order(cupy, others, main)
            failure = self._start(cupy, device, plan, plan.gather(own, sizes, scalars))
            _order(cupy, (main,), *others)
            return failure

    def _start(self, cupy: Any, device: int, plan: _Plan, arguments: tuple[Any, ...]) -> Failure | None:
        """Launch on the current stream; workspace comes from its pool, so it may be used again as soon as the launch is over."""
        workspace = [cupy.empty(nbytes, np.uint8) for nbytes in plan.workspace]
        arguments = (*arguments, *(np.uint64(array.data.ptr) for array in workspace))
        if not self.kernel.checks:
            plan.loaded.launch(device, plan.grid, plan.block, arguments)
            return None
        record = cupy.zeros(RECORD, np.int64)
        plan.loaded.launch(device, plan.grid, plan.block, (*arguments, np.uint64(record.data.ptr)))
        self._wait(cupy, plan)
        return failure_of(record.get().tolist(), 1, values_of_checks(self.kernel))

    def _wait(self, cupy: Any, plan: _Plan) -> None:
        """Wait for the launch; what went wrong is this kernel's fault."""
        try:
            cupy.cuda.get_current_stream().synchronize()
        except Exception as error:
            raise _launch_error(error, plan.loaded.source.entry, plan.grid, plan.block) from error

    def _plan(self, device: int, own: Mapping[str, ArrayView], sizes: Mapping[str, int]) -> _Plan:
        """The launch at these sizes, made at most once."""
        addresses = 0
        for view in own.values():
            addresses |= view.address
        aligned = addresses % 16 == 0
        strides = tuple([own[buffer.name].strides for buffer in self.kernel.buffers if buffer.strided])
        names = (*self.kernel.sizes, *(name for name, _ in self.kernel.scalars))
        key = (device, aligned, strides, *[sizes.get(name) for name in names])
        plan = self.plans.get(key)
        if plan is None:
            with self.lock:
                if len(self.plans) > 1024:
                    self.plans.clear()
                plan = self.plans[key] = self._make_plan(device, own, sizes, aligned)
        return plan

    def _make_plan(self, device: int, own: Mapping[str, ArrayView], sizes: Mapping[str, int], aligned: bool) -> _Plan:
        numbers = dict(sizes)
        for buffer in self.kernel.buffers:
            if buffer.strided:
                steps = (stride // buffer.dtype.bytes for stride in own[buffer.name].strides)
                numbers |= {f"{buffer.name}.stride.{k}": step for k, step in enumerate(steps)}
        bits = _index_bits(self.kernel, numbers)
        loaded = self._variant(device, bits, aligned, sizes, False)
        if _is_large(integers(loaded.source.launch.grid, self.kernel)(sizes)):
            loaded = self._variant(device, bits, aligned, sizes, True)
        launch = loaded.source.launch
        workspace = tuple(
            math.prod(max(0, extent) for extent in integers(buffer.shape, self.kernel)(sizes)) * buffer.dtype.bytes
            for buffer in loaded.source.workspace
        )
        grid, block = integers(launch.grid, self.kernel)(sizes), integers(launch.block, self.kernel)(sizes)
        return _Plan(loaded, grid, block, workspace, gatherer(loaded.source))

    def _variant(self, device: int, bits: int, aligned: bool, sizes: Mapping[str, int], large: bool) -> LoadedKernel:
        """The code of a kind of call, compiled and loaded at most once."""
        target = self._target(device)
        fitted = fit(self.kernel, aligned, sizes)
        key = (bits, large, fitted.buffers, fitted.facts, target.arch)
        found = self.variants.get(key)
        if found is None:
            as_given = fitted == self.kernel and self.source.index_bits == bits and target is self.target and not large
            source = self.source if as_given else emit_cuda(fitted, target, bits, large_grid=large)
            found = self.variants[key] = load(source, compile_source(source, target))
        return found

    def _target(self, device: int) -> Target:
        """The target of a device: devices of one process may differ."""
        devices = probe().devices
        if device >= len(devices):
            return self.target
        other = target_of(devices[device])
        return (
            self.target
            if other.arch == self.target.arch
            else replace(other, fast_math=self.target.fast_math, tf32=self.target.tf32)
        )


def fit(kernel: Kernel, aligned: bool, sizes: Mapping[str, int]) -> Kernel:
    """The kernel with what a call adds where it has vectorised loops: 16-byte alignment, and rows of whole vectors.

    Args:
        aligned: every array begins at a multiple of 16 bytes.
    """
    if not aligned or not any(
        isinstance(stmt, For) and stmt.kind == "vectorize" for stmt in walk_statements(kernel.body)
    ):
        return kernel
    lanes = 16 // min(buffer.dtype.bytes for buffer in kernel.buffers)
    rows = {buffer.shape[-1] for buffer in kernel.buffers if len(buffer.shape) > 1}
    names = sorted(extent.name for extent in rows if isinstance(extent, Size))
    # copies into shared memory may be narrower than a vector
    staged = any(isinstance(stmt, Allocate) and stmt.buffer.stages > 1 for stmt in walk_statements(kernel.body))
    multiples = [(name, math.gcd(lanes, sizes[name])) for name in names if staged or sizes[name] % lanes == 0]
    facts = [(name, Fact(multiple=number)) for name, number in multiples if number > 1]
    buffers = tuple(
        buffer if buffer.strided else replace(buffer, align=max(buffer.align, 16)) for buffer in kernel.buffers
    )
    return replace(kernel, buffers=buffers, facts=(*kernel.facts, *facts))


def variant(
    kernel: Kernel,
    source: KernelSource,
    target: Target,
    sizes: Mapping[str, int],
    aligned: bool,
    cell: SourceText | None = None,
) -> KernelSource:
    """The text that a call at these sizes runs: `source`, or one with other indices, wider accesses or a grid that strides.

    Args:
        sizes: of the call, with the strides (`A.stride.0`, in elements) of strided buffers.
        aligned: every array begins at a multiple of 16 bytes.
        cell: where lines of the text come from.
    """
    bits, fitted = _index_bits(kernel, sizes), fit(kernel, aligned, sizes)
    if fitted != kernel or source.index_bits != bits:
        source = emit_cuda(fitted, target, bits, source=cell)
    large = _is_large(integers(source.launch.grid, kernel)(sizes))
    return emit_cuda(fitted, target, bits, source=cell, large_grid=True) if large else source


def _index_bits(kernel: Kernel, sizes: Mapping[str, int]) -> int:
    return 32 if fits_int32(kernel, sizes) else 64


def _is_large(grid: Sequence[int]) -> bool:
    """Whether a grid has more blocks than a device launches along an axis."""
    return any(number > limit for number, limit in zip(grid, LARGEST_GRID, strict=True))


def gatherer(source: KernelSource) -> Callable[..., tuple[Any, ...]]:
    """A function of (storage, sizes, scalars) that returns the arguments of a launch, up to workspace and error record.

    Every value is a NumPy scalar of the parameter's width: CuPy would pass a Python `int` as 64 and a `float` as
    double precision.
    """
    parts: list[str] = []
    scope: dict[str, Any] = {"pointer": np.uint64, "index": np.int32 if source.index_bits == 32 else np.int64}
    for number, argument in enumerate(source.arguments):
        name = repr(argument.name)
        match argument.kind:
            case "buffer":
                parts.append(f"pointer(b[{name}].address)")
            case "stride":
                parts.append(f"index(b[{name}].strides[{argument.dimension}] // b[{name}].dtype.bytes)")
            case "size":
                parts.append(f"index(v[{name}])")
            case "scalar":
                scope[f"scalar{number}"] = scalar_converter(argument)
                parts.append(f"scalar{number}(s[{name}])")
            case _:
                break  # addresses of workspace and error record follow
    exec(f"def gather(b, v, s):\n    return ({''.join(part + ', ' for part in parts)})", scope)
    return scope["gather"]


def scalar_converter(argument: Argument) -> Callable[[Number], Any]:
    """A number as the NumPy scalar of a parameter passed by value."""
    assert argument.dtype is not None
    if argument.dtype is DType.BFLOAT16:
        return lambda number: np.uint16(bfloat16_bits(float(number)))
    kind = np.dtype(argument.dtype.value).type
    return lambda number: kind(number)


# streams and devices -------------------------------------------------------------------------------------------------------------


def _device_of(own: Mapping[str, ArrayView]) -> int:
    for view in own.values():
        return int(view.device.removeprefix("cuda:"))
    return 0


def on_device_of(view: ArrayView) -> Any:
    """A context in which the device of an array is the current one."""
    return _cupy().cuda.Device(int(view.device.removeprefix("cuda:")))


def _streams(kernel: Kernel, own: Mapping[str, ArrayView]) -> tuple[int, tuple[int, ...]]:
    """The stream of the launch (of the library of the first output) and the others on which arguments are in use."""
    views = [own[buffer.name] for buffer in kernel.buffers]
    first = next((view for view, buffer in zip(views, kernel.buffers, strict=True) if buffer.role != "input"), None)
    if first is None:
        return 0, ()
    main = first.library.stream(first.device)
    others = {view.library.stream(view.device) for view in views if view.library is not first.library}
    return main, tuple(others - {main})


def _order(cupy: Any, first: Sequence[int], *then: int) -> None:
    """What is in the streams `then` later waits for what is in the streams `first` now.

    Before the launch it is for the values of the inputs, after it for their memory, which its owner may use again.
    """
    for source in first:
        for waiting in then:
            event = cupy.cuda.Event(disable_timing=True)
            event.record(cupy.cuda.ExternalStream(source))
            cupy.cuda.ExternalStream(waiting).wait_event(event)


# memory of the GPU ---------------------------------------------------------------------------------------------------------------


def _cupy() -> Any:
    """CuPy, imported when it is first needed.

    Raises:
        BackendError: it is not installed or cannot be imported.
    """
    try:
        import cupy  # noqa: PLC0415
    except ImportError as error:
        found = probe()
        reason = found.reason if found.state != USABLE else f"CuPy cannot be imported: {error}"
        raise BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, f"calls on a GPU need CuPy: {reason}")) from error
    return cupy


def _plain(dtype: DType) -> np.dtype[Any]:
    """A dtype that CuPy has: the bits of `bfloat16` as `uint16`."""
    return np.dtype(np.uint16) if dtype is DType.BFLOAT16 else storage_dtype(dtype)


def _array_view(array: Any, like: ArrayView) -> ArrayView:
    """A CuPy array as the view of the host array that it stands for."""
    from .arrays import CUPY  # noqa: PLC0415  only here the library of a view changes

    device = f"cuda:{array.device.id}"
    return replace(
        like, address=int(array.data.ptr), strides=tuple(array.strides), device=device, owner=array, library=CUPY
    )


def device_empty(shape: tuple[int, ...], dtype: DType, device: str) -> Any:
    """A fresh CuPy array on `cuda:<number>`.

    Raises:
        MemoryError: it does not fit.
    """
    cupy = _cupy()
    with cupy.cuda.Device(int(device.removeprefix("cuda:"))):
        return cupy.empty(shape, storage_dtype(dtype))


def device_array(array: np.ndarray[Any, Any], device: str) -> Any:
    """An array of the host on `cuda:<number>`."""
    cupy = _cupy()
    with cupy.cuda.Device(int(device.removeprefix("cuda:"))):
        return cupy.asarray(array)


def wrapped(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, device: str, owner: object
) -> Any:
    """Memory of any library as a CuPy array with these strides (bytes)."""
    cupy = _cupy()
    number = int(device.removeprefix("cuda:"))
    low = address + sum(min(0, (extent - 1) * stride) for extent, stride in zip(shape, strides, strict=True) if extent)
    high = address + sum(max(0, (extent - 1) * stride) for extent, stride in zip(shape, strides, strict=True) if extent)
    memory = cupy.cuda.UnownedMemory(low, high - low + dtype.bytes, owner, number)
    return cupy.ndarray(shape, _plain(dtype), cupy.cuda.MemoryPointer(memory, address - low), strides)


def device_copy(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, device: str, owner: object
) -> Any:
    """A row-major copy of memory of the GPU, as a CuPy array (`bfloat16` as `uint16`).

    Raises:
        MemoryError: the copy does not fit.
    """
    cupy = _cupy()
    with cupy.cuda.Device(int(device.removeprefix("cuda:"))):
        return cupy.ascontiguousarray(wrapped(address, shape, strides, dtype, device, owner)).copy()


def device_copy_into(target: ArrayView, source: ArrayView) -> None:
    """Copy all elements between arrays of one type, shape and device, whatever their strides."""
    assert target.dtype is not None
    cupy = _cupy()
    with cupy.cuda.Device(int(target.device.removeprefix("cuda:"))):
        into = wrapped(target.address, target.shape, target.strides, target.dtype, target.device, target.owner)
        into[...] = wrapped(source.address, source.shape, source.strides, target.dtype, source.device, source.owner)


def read_element(view: ArrayView) -> Number:
    """The one element of a 0-dimensional array on the GPU."""
    assert view.dtype is not None
    host = device_copy(view.address, (), (), view.dtype, view.device, view.owner).get()
    if view.dtype is DType.BFLOAT16:
        return float((host.astype(np.uint32) << 16).view(np.float32).item())
    value = host.item()
    return float(value) if view.dtype.is_float else value


def on_device(value: object) -> object:
    """An array of the host copied to the device; numbers, and arrays of types that CuPy has not, as they are."""
    plain = isinstance(value, np.ndarray) and value.dtype.kind in "biufc" and value.ndim > 0
    return _cupy().asarray(value) if plain else value


def synchronize() -> None:
    """Wait until everything that was launched on the current device is done."""
    _cupy().cuda.runtime.deviceSynchronize()


use_device_memory(sys.modules[__name__])
