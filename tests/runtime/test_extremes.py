"""The kernel that looks at index tensors on a GPU, in the simulator and as it is launched."""

from __future__ import annotations

import types

import numpy as np
import pytest

from tc_jupyter.program import DType
from tc_jupyter.runtime import cuda, extremes, nvrtc
from tc_jupyter.runtime.arrays import view_of
from tc_jupyter.simulator import GlobalArray, simulate
from tests.runtime.test_call_recipe_gpu import GpuOfTheHost, on_gpu

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))


@pytest.mark.parametrize("count, blocks", [(1, 1), (5, 1), (300, 2), (2001, 3)])
@pytest.mark.parametrize("dtype", sorted(extremes.SIGNED, key=str))
def test_the_extremes_of_every_block(dtype, count, blocks):
    """Extremes of the type are among them; nothing else is read or written."""
    kind = np.dtype(dtype.value)
    limits = np.iinfo(kind)
    values = np.random.default_rng(count).integers(limits.min, limits.max, count, kind, endpoint=True)
    values[count // 2] = limits.max if count % 2 else limits.min
    found = np.full((blocks, 2), 77, np.int64)
    source = extremes.source_of(dtype)
    ptx = nvrtc.compile_cuda(source.text, "compute_80").ptx
    passed = [GlobalArray("X", values, False, True), GlobalArray("found", found), np.int64(count)]
    done = simulate(ptx, source.entry, (blocks, 1, 1), (extremes.THREADS, 1, 1), passed)
    assert [finding.kind for finding in done.findings] == []
    assert (found[:, 0].min(), found[:, 1].max()) == (values.min(), values.max())


def test_the_launch_and_the_host(monkeypatch):
    """One launch of few blocks; the host combines what they found."""
    gpu = GpuOfTheHost()
    monkeypatch.setattr(cuda, "_cupy", lambda: gpu)
    monkeypatch.setattr(extremes, "probe", lambda: types.SimpleNamespace(devices=()))
    monkeypatch.setattr(
        extremes, "compile_source", lambda source, target, *_: nvrtc.Compiled("", source.text.encode(), "", target.arch)
    )
    extremes._kernel.cache_clear()
    index = on_gpu(50, 200, dtype=np.int32)
    index.host[...] = 7
    monkeypatch.setattr(gpu, "empty", lambda shape, dtype: _filled(shape, dtype))
    view = view_of(index)
    assert view.dtype is DType.INT32
    assert extremes.device_extremes(view, (slice(0, 50), slice(0, 200))) == (-3, 9)
    ((name, grid, block, values, _),) = gpu.launches
    assert (name, grid, block, values[2]) == ("tc_extremes", (3, 1, 1), (extremes.THREADS, 1, 1), 50 * 200)
    extremes._kernel.cache_clear()


def _filled(shape, dtype):
    made = on_gpu(*shape, dtype=dtype)
    made.host[...] = [[-3, 4], [2, 9], [0, 0]]
    return made
