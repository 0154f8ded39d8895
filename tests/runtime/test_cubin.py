from __future__ import annotations

import re

import pytest

from tc_jupyter.runtime import cubin, nvrtc

needs_nvrtc = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

TWO_KERNELS = """
extern "C" __global__ void __launch_bounds__(128) shared_sum(float* x, int n) {
    __shared__ float tile[300];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[n] = tile[127 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(1024) spilling(float* x, int n) {
    float t[200];
    for (int i = 0; i < 200; i++) t[i] = x[i * n];
    __syncthreads();
    for (int i = 0; i < 200; i++) x[i] = t[i] * t[199 - i];
}
"""


@pytest.mark.some(3)
@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_the_file_says_what_ptxas_said(arch):
    compiled = nvrtc.compile_cuda(TWO_KERNELS, arch)
    found = {resources.name: resources for resources in cubin.read_resources(compiled.cubin, compiled.log)}
    logged = re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", compiled.log, re.DOTALL)
    assert {name: str(found[name].registers) for name, _ in logged} == dict(logged)
    assert found["shared_sum"].shared_bytes == 1200
    assert found["spilling"].shared_bytes == 0
    assert found["shared_sum"].max_threads == 128
    assert found["shared_sum"].parameter_bytes == 12
    assert found["shared_sum"].spill_bytes == 0
    assert found["spilling"].spill_bytes > 0
    assert found["spilling"].stack_bytes > 0
    assert 0 < found["spilling"].registers <= 64


@pytest.mark.parametrize("bad", [b"", b"\x7fELF", b"\x7fELF\x02" + bytes(100), bytes(64)])
def test_other_bytes_are_refused(bad):
    with pytest.raises(ValueError, match="not a cubin"):
        cubin.read_resources(bad)


@needs_nvrtc
def test_a_cut_file_is_refused():
    data = nvrtc.compile_cuda(TWO_KERNELS, "sm_80").cubin
    with pytest.raises(ValueError, match="not a cubin"):
        cubin.read_resources(data[: len(data) // 2])


def take(registers: int, shared: int = 0) -> cubin.Resources:
    return cubin.Resources("k", registers, shared)


@pytest.mark.parametrize(
    "resources, threads, arch, dynamic, blocks, limit",
    [
        (take(32), 256, "sm_90", 0, 8, "threads"),
        (take(80), 256, "sm_90", 0, 3, "registers"),  # 2560 per warp: 24 warps of 65536 registers
        (take(128), 256, "sm_80", 0, 2, "registers"),
        (take(129), 256, "sm_90", 0, 1, "registers"),
        (take(255), 1024, "sm_80", 0, 0, "registers"),
        (take(32, 48 << 10), 128, "sm_80", 0, 3, "shared memory"),  # 49 KiB with the reserved one
        (take(32, 48 << 10), 128, "sm_75", 0, 1, "shared memory"),
        (take(32), 128, "sm_86", 100 << 10, 0, "shared memory"),
        (take(32), 32, "sm_80", 0, 32, "blocks"),
        (take(16), 1536, "sm_80", 0, 0, "threads"),
    ],
)
def test_occupancy(resources, threads, arch, dynamic, blocks, limit):
    result = cubin.occupancy(resources, threads, arch, dynamic)
    assert (result.blocks, result.limit) == (blocks, limit)
    assert result.warps == blocks * (threads // 32)
    assert result.fraction == result.warps / cubin.multiprocessor(arch).warps


def test_architectures_between_entries_and_nonsense():
    assert cubin.multiprocessor("sm_121") == cubin.multiprocessor("sm_120")
    assert cubin.multiprocessor("sm_90a") == cubin.multiprocessor("compute_90")
    with pytest.raises(ValueError, match="not a CUDA architecture"):
        cubin.multiprocessor("gfx90a")


def test_a_missing_disassembler_names_the_extra(monkeypatch):
    monkeypatch.setattr(cubin, "find_nvdisasm", lambda: None)
    with pytest.raises(nvrtc.BackendError, match=r"tc_jupyter\[sass\]"):
        cubin.sass(b"")


@needs_nvrtc
@pytest.mark.skipif(cubin.find_nvdisasm() is None, reason="nvdisasm is not installed (extra sass)")
def test_disassembly_shows_instructions_and_source_lines():
    text = cubin.sass(nvrtc.compile_cuda(TWO_KERNELS, "sm_80").cubin)
    assert "LDS" in text
    assert "kernel.cu" in text
    with pytest.raises(nvrtc.BackendError, match="refused"):
        cubin.sass(b"nonsense")
