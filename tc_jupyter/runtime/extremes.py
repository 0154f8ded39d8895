"""The smallest and the largest element of an array on a GPU: what checks of index tensors look at before a launch.

Whole arrays of integers are read by one kernel, which leaves two numbers per block, and the host waits once. CuPy finds those of
all other arrays, with a kernel and a wait for each.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from tc_jupyter.codegen import KernelSource, Launch
from tc_jupyter.codegen.cuda.literals import C_TYPES
from tc_jupyter.program import DType, int64
from tc_jupyter.schedule import Target

from .arrays import ArrayView
from .cuda import LoadedKernel, compile_source, cuda_target, device_empty, load, on_device_of, probe, target_of, wrapped

THREADS = 256
PER_THREAD = 16
"""Elements of a thread, as long as there are not more blocks than multiprocessors."""
SIGNED = frozenset(dtype for dtype in C_TYPES if dtype.is_integer and dtype is not DType.UINT64)
"""Types whose elements are numbers of 64 bits with a sign."""

TEXT = """
extern "C" __global__ void __launch_bounds__(THREADS) tc_extremes(
    const TYPE* __restrict__ X, long long* __restrict__ found, long long count)
{
    __shared__ long long low[THREADS], high[THREADS];
    const long long step = (long long)gridDim.x * THREADS;
    long long least = X[0], most = X[0];
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const long long value = X[i];
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    low[threadIdx.x] = least;
    high[threadIdx.x] = most;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            low[threadIdx.x] = min(low[threadIdx.x], low[threadIdx.x + half]);
            high[threadIdx.x] = max(high[threadIdx.x], high[threadIdx.x + half]);
        }
    }
    if (threadIdx.x == 0) {
        found[2 * blockIdx.x] = low[0];
        found[2 * blockIdx.x + 1] = high[0];
    }
}
"""


def source_of(dtype: DType) -> KernelSource:
    """The kernel for elements of a type."""
    text = TEXT.replace("THREADS", str(THREADS)).replace("TYPE", C_TYPES[dtype])
    one = int64(1)
    return KernelSource("cuda", text, "tc_extremes", (), Launch((one, one, one), (int64(THREADS), one, one)))


@cache
def _kernel(dtype: DType, device: int) -> tuple[LoadedKernel, Target]:
    """The kernel on the device that is current."""
    devices = probe().devices
    target = target_of(devices[device]) if device < len(devices) else cuda_target()
    return load(source_of(dtype), compile_source(source_of(dtype), target)), target


def device_extremes(view: ArrayView, region: tuple[slice, ...]) -> tuple[float, float] | None:
    """The smallest and the largest element of a part of an array on the GPU, found there; `None` where there is no element."""
    assert view.dtype is not None
    with on_device_of(view):
        count = prod(view.shape)
        if view.dtype in SIGNED and view.contiguous and count and _is_all(view.shape, region):
            return _of_integers(view, view.dtype, count)
        array = wrapped(view.address, view.shape, view.strides, view.dtype, view.device, view.owner)
        part = array[region]
        if part.size == 0:
            return None
        low, high = part.min(), part.max()  # both are launched before the first is waited for
        return low.item(), high.item()


def _is_all(shape: tuple[int, ...], region: tuple[slice, ...]) -> bool:
    return len(region) == len(shape) and all(
        part.indices(extent) == (0, extent, 1) for part, extent in zip(region, shape, strict=True)
    )


def _of_integers(view: ArrayView, dtype: DType, count: int) -> tuple[int, int]:
    device = int(view.device.removeprefix("cuda:"))
    kernel, target = _kernel(dtype, device)
    blocks = max(1, min(target.multiprocessors, -(-count // (THREADS * PER_THREAD))))
    found = device_empty((blocks, 2), DType.INT64, view.device)
    arguments = (np.uint64(view.address), np.uint64(found.data.ptr), np.int64(count))
    kernel.launch(device, (blocks, 1, 1), (THREADS, 1, 1), arguments)
    host = found.get()
    return int(host[:, 0].min()), int(host[:, 1].max())
