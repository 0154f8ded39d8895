"""Traffic counts, the report, sampling, limits and bad input."""

import numpy as np
import pytest
from conftest_simulator import In, InOut, Out, compile_ptx, kinds, launch

from tc_jupyter.simulator import DeviceMemory, GlobalArray, SimulationError, parse, simulate
from tc_jupyter.simulator.traffic import sectors, wavefronts

FILL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value) {
 .reg .b32 %r<6>; .reg .b64 %rd<4>;
 ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [value]; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;
 mad.lo.s32 %r5, %r3, %r4, %r2; mul.wide.s32 %rd2, %r5, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1; ret; }"""


@pytest.mark.parametrize("stride, expected", [(1, 4), (2, 8), (8, 32), (64, 32), (0, 1)])
def test_sectors_of_a_strided_warp(stride, expected):
    assert sectors(np.arange(32) * 4 * stride, np.arange(32), 4) == expected


@pytest.mark.parametrize("stride, expected", [(1, 1), (2, 2), (32, 32), (33, 1), (0, 1), (4, 4)])
def test_bank_conflicts_of_a_strided_warp(stride, expected):
    assert wavefronts(np.arange(32) * 4 * stride, np.arange(32), 4) == expected


def test_wide_shared_accesses_take_several_phases():
    lanes = np.arange(32)
    assert wavefronts(lanes * 16, lanes, 16) == 4
    assert wavefronts(lanes * 8, lanes, 8) == 2
    assert wavefronts(lanes * 128, lanes, 16) == 32
    assert wavefronts(lanes, lanes, 1) == 1


@pytest.mark.parametrize("stride, per_request, ideal", [(1, 4, 4), (2, 8, 4), (32, 32, 4)])
def test_coalescing_per_source_line(stride, per_request, ideal):
    source = f"""extern "C" __global__ void f(const float* __restrict__ x, float* y) {{
  int i = blockIdx.x * 128 + threadIdx.x;
  float v = x[i * {stride}];
  y[i] = v;
}}"""
    x, y = np.ones(512 * stride, np.float32), np.zeros(512, np.float32)
    simulation = launch(source, "f", 4, 128, In("x", x), Out("y", y))
    load, store = sorted(simulation.sites, key=lambda site: site.line)
    assert (load.line, load.kind, load.requests, load.lanes) == (3, "load", 16, 512)
    assert load.sectors_per_request == per_request
    assert load.ideal_sectors_per_request == ideal
    assert (store.line, store.sectors_per_request) == (4, 4)
    assert load.bytes == 2048
    assert (
        f"global bytes: 4096 asked for, {2048 + 16 * 32 * per_request} moved in sectors, 4096 unique"
        in simulation.report
    )


def test_report_says_what_it_is_and_what_it_is_not():
    y = np.zeros(64, np.uint32)
    simulation = simulate(FILL, "fill", (2, 1, 1), (32, 1, 1), [Out("y", y), 7])
    assert (y == 7).all()
    assert "simulated, not timed" in simulation.report
    assert "findings: none" in simulation.report
    assert "not modelled: time" in simulation.report
    assert simulation.mix["st.global.u32"] == 64
    assert "st.global.u32" in simulation.report
    assert simulation.sampled_blocks == (2, 2)


def test_findings_stand_in_the_report():
    simulation = simulate(FILL, "fill", (2, 1, 1), (32, 1, 1), [Out("y", np.zeros(60, np.uint32)), 7])
    assert "out-of-bounds" in simulation.report
    assert kinds(simulation) == {"out-of-bounds"}


def test_a_large_launch_is_sampled_or_refused():
    n = 1 << 20
    y = np.zeros(n, np.uint32)
    simulation = simulate(FILL, "fill", (n // 256, 1, 1), (256, 1, 1), [Out("y", y), 7], limit=100_000)
    ran, total = simulation.sampled_blocks
    assert total == n // 256
    assert 0 < ran < total
    assert (y[-256:] == 7).all()
    assert simulation.findings == ()
    assert "a sample" in simulation.report
    with pytest.raises(SimulationError, match="limit is 100000"):
        simulate(FILL, "fill", (n // 256, 1, 1), (256, 1, 1), [Out("y", y), 7], limit=100_000, sample=False)


def test_a_launch_after_a_sampled_one_may_read_what_blocks_that_were_left_out_write():
    n, memory = 1 << 18, DeviceMemory()
    y, z = Out("y", np.zeros(n, np.float32)), Out("z", np.zeros(n, np.float32))
    copy = compile_ptx("""extern "C" __global__ void copy(const float* y, float* z) {
      int i = blockIdx.x * 256 + threadIdx.x; z[i] = y[i]; }""")
    for text, name, arguments in ((FILL, "fill", [y, 7]), (copy, "copy", [y, z])):
        simulation = simulate(text, name, (n // 256, 1, 1), (256, 1, 1), arguments, limit=100_000, memory=memory)
        assert simulation.sampled_blocks[0] < simulation.sampled_blocks[1]
        assert simulation.findings == ()


def test_a_kernel_that_never_ends_is_stopped():
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y) { .reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd1, [y];
loop: ld.global.u32 %r1, [%rd1]; bra loop; }"""
    with pytest.raises(SimulationError, match="too much work"):
        simulate(ptx, "k", (1, 1, 1), (32, 1, 1), [InOut("y", np.zeros(1, np.uint32))], limit=1000)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "takes 2 arguments, 0 were given"),
        ([1, 2, 3], "takes 2 arguments, 3 were given"),
        (
            [GlobalArray("y", np.zeros(32, np.uint32)), GlobalArray("z", np.zeros(32))],
            "has 4 bytes, an array needs a pointer",
        ),
        ([GlobalArray("y", np.zeros(32, np.uint32)), 1 << 40], "does not fit"),
        ([GlobalArray("y", np.zeros(32, np.uint32)), 1.5], "is an integer"),
        ([GlobalArray("y", np.zeros(32, np.uint32)), "x"], "neither an array nor a number"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(SimulationError, match=message):
        simulate(FILL, "fill", (1, 1, 1), (32, 1, 1), arguments)


@pytest.mark.parametrize(
    "grid, block, shared, message",
    [
        ((0, 1, 1), (32, 1, 1), 0, "at least 1"),
        ((1, 1, 1), (2048, 1, 1), 0, "limits are 1024"),
        ((1, 1, 1), (1, 1, 128), 0, "64 along z"),
        ((1, 70000, 1), (32, 1, 1), 0, "beyond the limits"),
        ((1, 1, 1), (32, 1, 1), 1 << 20, "dynamic shared memory"),
    ],
)
def test_impossible_launches(grid, block, shared, message):
    with pytest.raises(SimulationError, match=message):
        simulate(FILL, "fill", grid, block, [Out("y", np.zeros(32, np.uint32)), 1], shared_bytes=shared)


def test_numbers_take_the_width_of_the_parameter():
    source = """extern "C" __global__ void f(double* y, char a, short b, int c, long long d, unsigned char e, float f, double g) {
      if (threadIdx.x == 0) { y[0] = a; y[1] = b; y[2] = c; y[3] = d; y[4] = e; y[5] = f; y[6] = g; } }"""
    y = np.zeros(7)
    launch(source, "f", 1, 32, Out("y", y), -3, -300, np.int64(-70000), -(1 << 40), 200, 1.5, np.float32(2.5))
    assert y.tolist() == [-3, -300, -70000, -(1 << 40), 200, 1.5, 2.5]


def test_arrays_must_be_contiguous_and_writable():
    with pytest.raises(ValueError, match="contiguous"):
        simulate(FILL, "fill", (1, 1, 1), (32, 1, 1), [GlobalArray("y", np.zeros((8, 8), np.uint32).T), 1])
    frozen = np.zeros(32, np.uint32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        simulate(FILL, "fill", (1, 1, 1), (32, 1, 1), [GlobalArray("y", frozen), 1])


def test_a_kernel_that_does_not_exist():
    with pytest.raises(SimulationError, match="no kernel `other`, it has: fill"):
        simulate(FILL, "other", (1, 1, 1), (32, 1, 1), [])


def test_parse_gives_kernels_functions_and_lines():
    module = parse(FILL)
    kernel = module.kernels["fill"]
    assert [(parameter.name, parameter.size) for parameter in kernel.parameters] == [("out", 8), ("value", 4)]
    assert [instruction.opcode for instruction in kernel.body][-2:] == ["st.global.u32", "ret"]
    assert module.target == "sm_80"
    with_lines = parse(
        compile_ptx('#line 40 "cell"\nextern "C" __global__ void f(float* y) {\n  y[0] = 1;\n}')
    ).kernels["f"]
    assert 42 in {instruction.line for instruction in with_lines.body}


@pytest.mark.parametrize(
    "text", ["", "hello", FILL.replace("[%rd3]", "[%rd3"), ".version 8.0\n.target sm_80\n.address_size 64\n"]
)
def test_text_that_is_no_ptx(text):
    with pytest.raises(SimulationError):
        parse(text)


def test_an_unknown_memory_instruction_names_opcode_and_line():
    ptx = FILL.replace(
        "st.global.u32 [%rd3], %r1;", ".loc 1 12 0\n cp.async.bulk.shared.global [%rd3], [%rd3], 16, [%rd3];"
    )
    with pytest.raises(SimulationError, match=r"unknown opcode `cp.async.bulk.*line 12"):
        simulate(ptx, "fill", (1, 1, 1), (32, 1, 1), [Out("y", np.zeros(32, np.uint32)), 1])


def test_newer_and_older_targets_parse():
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y, int n) {
      __shared__ float s[64]; int t = threadIdx.x; s[t] = t < n ? x[t] : 0; __syncthreads(); float v = s[63 - t];
      for (int i = 0; i < n; i++) v = fmaf(v, 0.5f, sinf(v)); y[t] = v; }"""
    x = np.linspace(0, 1, 64, dtype=np.float32)
    results = []
    for arch in ("compute_75", "compute_80", "compute_90", "compute_100", "compute_120"):
        y = np.zeros(64, np.float32)
        simulation = simulate(compile_ptx(source, arch), "f", (1, 1, 1), (64, 1, 1), [In("x", x), Out("y", y), 5])
        assert simulation.findings == ()
        results.append(y)
    for y in results[1:]:
        np.testing.assert_allclose(y, results[0], rtol=1e-6)
