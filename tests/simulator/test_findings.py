"""One planted bug per kind of finding, each beside the kernel without the bug."""

import numpy as np
import pytest
from conftest_simulator import In, InOut, Out, kinds, launch

from tc_jupyter.simulator import GlobalArray

X = np.arange(256, dtype=np.float32) + 1


def only(simulation, kind):
    assert kinds(simulation) == {kind}, simulation.report
    return simulation.findings[0]


def test_out_of_bounds_names_array_line_thread_and_block():
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (GUARD)
    y[i] = x[i] * 2;
}"""
    y = np.zeros(100, np.float32)
    assert launch(source.replace("GUARD", "i < n"), "f", 2, 64, In("x", X), Out("y", y), 100).findings == ()
    finding = only(launch(source.replace("GUARD", "true"), "f", 2, 64, In("x", X), Out("y", y), 100), "out-of-bounds")
    assert (finding.array, finding.line, finding.thread, finding.block) == ("y", 4, (36, 0, 0), (1, 0, 0))
    assert "byte offset 400 of `y`, which has 400 bytes" in finding.message
    assert "28 accesses" in finding.message


def test_negative_index_is_out_of_bounds_of_the_same_array():
    source = 'extern "C" __global__ void f(const float* x, float* y) { y[threadIdx.x] = x[(int)threadIdx.x - 1]; }'
    finding = only(launch(source, "f", 1, 32, In("x", X), Out("y", np.zeros(32, np.float32))), "out-of-bounds")
    assert finding.array == "x"
    assert "-4" in finding.message


def test_a_wild_pointer_is_in_no_array():
    source = 'extern "C" __global__ void f(float* y) { y[threadIdx.x] = *(float*)64; }'
    finding = only(launch(source, "f", 1, 32, Out("y", np.zeros(32, np.float32))), "out-of-bounds")
    assert finding.array is None


def test_null_pointer_of_an_empty_array():
    source = 'extern "C" __global__ void f(const float* x, float* y) { y[threadIdx.x] = x[0]; }'
    finding = only(launch(source, "f", 1, 32, In("x", X[:0]), Out("y", np.zeros(32, np.float32))), "out-of-bounds")
    assert finding.array == "x"


@pytest.mark.parametrize("rows, expected", [(64, set()), (63, {"out-of-bounds"})])
def test_shared_arrays_have_gaps_between_them(rows, expected):
    source = f"""extern "C" __global__ void f(const float* __restrict__ x, float* y) {{
      __shared__ float a[{rows}], b[64]; int t = threadIdx.x; a[t] = x[t]; b[t] = x[t + 1]; __syncthreads(); y[t] = a[63 - t] + b[t]; }}"""
    simulation = launch(source, "f", 1, 64, In("x", X), Out("y", np.zeros(64, np.float32)))
    assert kinds(simulation) == expected
    assert all(finding.array == "a" for finding in simulation.findings)


def test_local_arrays_are_checked():
    source = """extern "C" __global__ void f(const int* __restrict__ x, float* y) {
      float a[8]; for (int i = 0; i < N; i++) a[i] = i; y[threadIdx.x] = a[x[threadIdx.x]]; }"""
    index = np.arange(32, dtype=np.int32) % 8
    run = lambda text, x: launch(text, "f", 1, 32, In("x", x), Out("y", np.zeros(32, np.float32)))  # noqa: E731
    assert run(source.replace("N", "8"), index).findings == ()
    assert kinds(run(source.replace("N", "8"), index + 8)) == {"out-of-bounds"}
    only(run(source.replace("N", "6"), index), "uninitialised")


@pytest.mark.parametrize("offset, expected", [(0, set()), (4, set()), (1, {"misaligned"})])
def test_misaligned_vector(offset, expected):
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y, int o) {
      float4 v = *(const float4*)&x[threadIdx.x * 4 + o]; y[threadIdx.x] = v.x + v.y + v.z + v.w; }"""
    simulation = launch(source, "f", 1, 32, In("x", X), Out("y", np.zeros(32, np.float32)), offset)
    assert kinds(simulation) == expected


def test_uninitialised_shared_memory():
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y) {
      __shared__ float s[64]; int t = threadIdx.x; if (t < N) s[t] = x[t]; __syncthreads(); y[t] = s[63 - t]; }"""
    run = lambda n: launch(source.replace("N", n), "f", 1, 64, In("x", X), Out("y", np.zeros(64, np.float32)))  # noqa: E731
    assert run("64").findings == ()
    finding = only(run("60"), "uninitialised")
    assert finding.array == "s"
    assert finding.thread == (0, 0, 0)


def test_uninitialised_output_and_accumulation():
    source = 'extern "C" __global__ void f(const float* __restrict__ x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }'
    assert launch(source, "f", 1, 32, In("x", X), InOut("y", np.zeros(32, np.float32))).findings == ()
    finding = only(launch(source, "f", 1, 32, In("x", X), Out("y", np.zeros(32, np.float32))), "uninitialised")
    assert finding.array == "y"


def test_uninitialised_register():
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
 .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<3>;
 mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1;
 setp.lt.u32 %p1, %r1, LIMIT;
 @%p1 mov.u32 %r2, 7;
 @%p1 st.global.u32 [%rd2], %r2;
 add.u32 %r3, %r2, 1;
 GUARD st.global.u32 [%rd2], %r3; ret; }"""
    run = lambda limit, guard: launch(  # noqa: E731
        ptx.replace("LIMIT", limit).replace("GUARD", guard), "k", 1, 32, InOut("y", np.zeros(32, np.uint32))
    )
    assert run("32", "").findings == ()
    assert run("20", "@%p1").findings == ()
    finding = only(run("20", ""), "uninitialised")
    assert finding.thread == (20, 0, 0)
    assert "register" in finding.message


VECTOR = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 copy) {
 .reg .f32 %f<8>; .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .pred %p<3>;
 .shared .align 16 .b8 tile[512];
 mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 16, %rd1;
 ld.param.u64 %rd3, [copy]; mad.wide.u32 %rd4, %r1, 4, %rd3;
 mov.f32 %f1, 0f3F800000;
 st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f1};
 THEN
 ret; }"""


@pytest.mark.parametrize(
    "then, expected",
    [
        ("st.global.f32 [%rd2+4], %f1; st.global.f32 [%rd2+8], %f1;", set()),
        ("st.global.f32 [%rd2+4], %f1;", {"uninitialised"}),
        ("ld.global.f32 %f5, [%rd2+12]; st.global.v4.f32 [%rd2], {%f5, %f1, %f1, %f1};", set()),
        ("ld.global.f32 %f5, [%rd2+4]; st.global.v4.f32 [%rd2], {%f1, %f1, %f1, %f1};", {"uninitialised"}),
    ],
)
def test_undefined_lanes_of_a_vector_store(then, expected):
    """A compiler may leave lanes undefined and store them again; who reads them, or leaves them in a result, has a finding."""
    y, z = Out("y", np.zeros(128, np.float32)), InOut("z", np.zeros(32, np.float32))
    simulation = launch(VECTOR.replace("THEN", then), "k", 1, 32, y, z)
    assert kinds(simulation) == expected
    assert all(finding.array == "y" for finding in simulation.findings)


def test_an_undefined_value_that_is_left_is_told_with_its_elements():
    then = "setp.lt.u32 %p1, %r1, 30; @%p1 st.global.f32 [%rd2+4], %f1; st.global.f32 [%rd2+8], %f1;"
    y, z = Out("y", np.zeros(128, np.float32)), InOut("z", np.zeros(32, np.float32))
    finding = only(launch(VECTOR.replace("THEN", then), "k", 1, 32, y, z), "uninitialised")
    assert "2 elements of `y`, the first is element 121" in finding.message


@pytest.mark.parametrize("then, expected", [("st.shared.f32 [%r2], %f1;", set()), ("", {"uninitialised"})])
def test_undefined_values_in_shared_memory(then, expected):
    body = f"""st.global.v4.f32 [%rd2], {{%f1, %f1, %f1, %f1}}; mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 4, %r2;
 st.shared.f32 [%r2], %f4; {then} ld.shared.f32 %f5, [%r2]; st.global.f32 [%rd4], %f5;"""
    y, z = Out("y", np.zeros(128, np.float32)), InOut("z", np.zeros(32, np.float32))
    simulation = launch(VECTOR.replace("THEN", body), "k", 1, 32, y, z)
    assert kinds(simulation) == expected
    assert all(finding.array == "tile" for finding in simulation.findings)


@pytest.mark.parametrize(
    "join, chosen, expected",
    [("and", 0, set()), ("and", 1, {"uninitialised"}), ("or", 1, set()), ("or", 0, {"uninitialised"})],
)
def test_one_operand_may_decide_a_conjunction(join, chosen, expected):
    """`false && undefined` is false: compilers compare what a guard leaves undefined, and discard it."""
    ptx = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {{
 .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .pred %p<4>;
 mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1;
 setp.lt.u32 %p3, %r1, 20;
 @%p3 mov.u32 %r2, 7;
 setp.gt.u32 %p1, %r2, 3;
 mov.u32 %r3, {chosen}; setp.ne.u32 %p2, %r3, 0;
 {join}.pred %p1, %p2, %p1;
 selp.b32 %r4, 1, 2, %p1;
 st.global.u32 [%rd2], %r4; ret; }}"""
    assert kinds(launch(ptx, "k", 1, 32, InOut("y", np.zeros(32, np.uint32)))) == expected


def test_an_uninitialised_accumulator_does_not_pass():
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y, int n) {
      float acc INIT; for (int i = 0; i < n; i++) acc += x[i]; y[threadIdx.x] = acc; }"""
    y = np.zeros(32, np.float32)
    assert launch(source.replace("INIT", "= 0"), "f", 1, 32, In("x", X), Out("y", y), 9).findings == ()
    assert (y == 45).all()
    y[:] = 0
    simulation = launch(source.replace("INIT", ""), "f", 1, 32, In("x", X), Out("y", y), 9)
    assert simulation.findings or not (y == 45).all()


USED = """.version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
 .reg .f32 %f<8>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<3>;
 .shared .align 16 .b8 tile[BYTES];
 mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1;
 mov.f32 %f1, 0f3F800000; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; setp.lt.u32 %p1, %r1, WRITTEN;
 @%p1 st.shared.f32 [%r3], %f1;
 bar.sync 0;
 .pragma "used_bytes_mask MASK";
 ld.shared.v4.f32 {%f2, %f3, %f4, %f5}, [tile+PLACE];
 add.f32 %f6, %f2, %f3; add.f32 %f6, %f6, %f4;
 st.global.f32 [%rd2], %f6; ret; }"""


@pytest.mark.parametrize(
    "length, written, mask, place, expected",
    [
        (28, 7, "0xfff", 16, set()),
        (32, 8, "0xffff", 16, set()),
        (28, 7, "0xffff", 16, {"out-of-bounds"}),
        (24, 6, "0xfff", 16, {"out-of-bounds"}),
        (28, 6, "4095", 16, {"uninitialised"}),
        (28, 7, "0xfff", 12, {"misaligned"}),
        (26, 6, "0x3ff", 16, {"uninitialised"}),
        (26, 6, "0x7ff", 16, {"out-of-bounds", "uninitialised"}),
    ],
)
def test_bytes_that_nobody_uses_may_lie_behind_an_array(length, written, mask, place, expected):
    """Compilers fill a vector up where the alignment allows it, and say which bytes of the load are used."""
    given = {"BYTES": str(length), "WRITTEN": str(written), "MASK": mask, "PLACE": str(place)}
    text = USED
    for name, value in given.items():
        text = text.replace(name, value)
    y = np.zeros(8, np.float32)
    simulation = launch(text, "k", 1, 8, Out("y", y))
    assert kinds(simulation) == expected
    if not expected:
        assert y.tolist() == [3] * 8
        assert [site.requests for site in simulation.sites if site.kind == "load"] == [1]


def test_write_to_an_input():
    source = 'extern "C" __global__ void f(float* x, float* y) { y[threadIdx.x] = 1; x[threadIdx.x] = 2; }'
    x = X.copy()
    finding = only(launch(source, "f", 1, 32, In("x", x), Out("y", np.zeros(32, np.float32))), "read-only")
    assert finding.array == "x"
    assert (x == X).all()


@pytest.mark.parametrize("barrier", ["__syncthreads();", ""])
def test_race_in_shared_memory(barrier):
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y) {
  __shared__ float s[64]; int t = threadIdx.x;
  s[t] = x[t];
  BARRIER
  y[t] = s[63 - t];
}"""
    simulation = launch(source.replace("BARRIER", barrier), "f", 1, 64, In("x", X), Out("y", np.zeros(64, np.float32)))
    if barrier:
        assert simulation.findings == ()
    else:
        finding = only(simulation, "race")
        assert finding.line == 5
        assert "thread (63, 0, 0)" in finding.message


@pytest.mark.parametrize("second", ["__syncthreads();", ""])
def test_race_of_a_write_with_earlier_reads(second):
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y) {
      __shared__ float s[64]; int t = threadIdx.x; float v = 0;
      for (int k = 0; k < 3; k++) { s[t] = x[t + 64 * k]; __syncthreads(); v += s[63 - t]; SECOND }
      y[t] = v; }"""
    simulation = launch(source.replace("SECOND", second), "f", 2, 64, In("x", X), Out("y", np.zeros(64, np.float32)))
    assert kinds(simulation) - {"race-between-blocks"} == (set() if second else {"race"})


def test_two_writers_of_different_values():
    source = (
        'extern "C" __global__ void f(float* y) { __shared__ float s; s = VALUE; __syncthreads(); y[threadIdx.x] = s; }'
    )
    run = lambda value: launch(source.replace("VALUE", value), "f", 1, 32, Out("y", np.zeros(32, np.float32)))  # noqa: E731
    assert run("3.f").findings == ()
    only(run("threadIdx.x"), "race")


def test_race_between_blocks_and_its_atomic_cure():
    source = (
        'extern "C" __global__ void f(const int* __restrict__ x, int* y) { int t = blockIdx.x * 32 + threadIdx.x; ADD }'
    )
    y = np.zeros(32, np.int32)
    x = np.arange(128, dtype=np.int32)
    run = lambda text: launch(source.replace("ADD", text), "f", 4, 32, In("x", x), InOut("y", y))  # noqa: E731
    assert run("atomicAdd(&y[t % 32], x[t]);").findings == ()
    assert (y == x.reshape(4, 32).sum(0)).all()
    finding = only(run("y[t % 32] += x[t];"), "race-between-blocks")
    assert "of block (3, 0, 0)" in finding.message


def test_race_in_global_memory_inside_a_block():
    source = (
        'extern "C" __global__ void f(float* y, float* z) { int t = threadIdx.x; y[t] = t; BARRIER z[t] = y[63 - t]; }'
    )

    def run(text):
        outputs = Out("y", X[:64].copy()), Out("z", X[:64].copy())
        return launch(source.replace("BARRIER", text), "f", 1, 64, *outputs)

    assert run("__syncthreads();").findings == ()
    only(run(""), "race")


COPY = """extern "C" __global__ void f(const float* __restrict__ x, float* y) {
  __shared__ __align__(16) float s[2][128]; int t = threadIdx.x;
  unsigned p = (unsigned)__cvta_generic_to_shared(&s[0][4 * t]), q = (unsigned)__cvta_generic_to_shared(&s[1][4 * t]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(p), "l"(x + 4 * t));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(q), "l"(x + 128 + 4 * t), "r"(t < 30 ? 16 : t == 30 ? 8 : 0));
  asm volatile("cp.async.commit_group;");
  WAIT1
  float a = s[0][4 * t];
  WAIT2
  BARRIER
  y[t] = a + s[1][127 - 4 * t];
}"""


@pytest.mark.parametrize(
    "first, second, barrier, expected",
    [
        ("cp.async.wait_group 1;", "cp.async.wait_group 0;", "__syncthreads();", set()),
        ("cp.async.wait_all;", "", "__syncthreads();", set()),
        ("cp.async.wait_group 1;", "cp.async.wait_group 1;", "__syncthreads();", {"missing-wait"}),
        ("cp.async.wait_group 2;", "cp.async.wait_group 0;", "__syncthreads();", {"missing-wait"}),
        ("", "", "__syncthreads();", {"missing-wait"}),
        ("cp.async.wait_group 1;", "cp.async.wait_group 0;", "", {"race"}),
    ],
)
def test_asynchronous_copies_need_their_wait(first, second, barrier, expected):
    text = COPY.replace("WAIT1", f'asm volatile("{first}" ::: "memory");').replace(
        "WAIT2", f'asm volatile("{second}" ::: "memory");'
    )
    y = np.zeros(32, np.float32)
    simulation = launch(text.replace("BARRIER", barrier), "f", 1, 32, In("x", X), Out("y", y))
    assert kinds(simulation) == expected
    if not expected:
        tail = X[128:].copy()
        tail[30 * 4 + 2 :] = 0
        assert (y == X[:128:4] + tail[127 - 4 * np.arange(32)]).all()


def test_a_copy_that_nobody_waits_for():
    """Nothing reads the second half, so nothing would show that its copy is still in flight at the end."""
    text = COPY.replace("WAIT1", 'asm volatile("cp.async.wait_group 1;" ::: "memory");').replace("WAIT2", "")
    text = text.replace("BARRIER", "").replace("a + s[1][127 - 4 * t]", "a")
    simulation = launch(text, "f", 1, 32, In("x", X), Out("y", np.zeros(32, np.float32)))
    only(simulation, "missing-wait")
    assert "when the kernel ends" in simulation.findings[0].message


@pytest.mark.parametrize(
    "body, expected",
    [
        ("__syncthreads();", set()),
        ("if (t < 32) __syncthreads();", {"divergent-barrier"}),
        ("if (t < 40) __syncthreads(); else { y[t] = 0; __syncthreads(); }", {"divergent-barrier"}),
        ("if (t > 50) return; __syncthreads();", {"divergent-barrier", "unwritten-output"}),
        ("__syncwarp();", set()),
        ("if (t % 2) __syncwarp(); else { y[t] = 1; __syncwarp(); }", set()),
    ],
)
def test_divergent_barriers(body, expected):
    source = f'extern "C" __global__ void f(volatile float* y) {{ int t = threadIdx.x; {body} y[t] = t; }}'
    assert kinds(launch(source, "f", 2, 64, Out("y", np.zeros(64, np.float32)))) - {"race-between-blocks"} == expected


@pytest.mark.parametrize(
    "body, expected",
    [
        ("v = __shfl_xor_sync(~0u, v, 1);", set()),
        ("if (t < 16) v = __shfl_xor_sync(~0u, v, 1);", {"divergent-collective"}),
        ("if (t < 16) v = __shfl_xor_sync(0xffffu, v, 1);", set()),
        ("if (t < 16) v = __shfl_sync(0xffffu, v, 20);", {"divergent-collective"}),
        ("if (t < 17) v = __shfl_xor_sync(0xffffu, v, 1);", {"divergent-collective"}),
        ("if (t % 2) v = __ballot_sync(~0u, t > 3);", {"divergent-collective"}),
    ],
)
def test_divergent_shuffles(body, expected):
    source = f'extern "C" __global__ void f(const float* __restrict__ x, float* y) {{ int t = threadIdx.x; float v = x[t]; {body} y[t] = v; }}'
    assert kinds(launch(source, "f", 1, 32, In("x", X), Out("y", np.zeros(32, np.float32)))) == expected


def test_outputs_that_are_never_written():
    source = 'extern "C" __global__ void f(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 1; }'
    y = np.zeros(64, np.float32)
    assert launch(source, "f", 1, 64, Out("y", y), 64).findings == ()
    finding = only(launch(source, "f", 1, 64, Out("y", y), 61), "unwritten-output")
    assert finding.array == "y"
    assert "3 of 64 elements" in finding.message
    assert "element 61" in finding.message


def test_index_arithmetic_that_overflows():
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y, int stride) {
  int t = threadIdx.x;
  y[t] = x[t * stride];
}"""
    x = np.ones(4096, np.float32)
    assert launch(source, "f", 1, 32, In("x", x), Out("y", np.zeros(32, np.float32)), 100).findings == ()
    simulation = launch(source, "f", 1, 32, In("x", x), Out("y", np.zeros(32, np.float32)), 1 << 28)
    overflow = [finding for finding in simulation.findings if finding.kind == "index-overflow"]
    assert overflow[0].line == 3
    assert overflow[0].thread == (8, 0, 0)


def test_a_hash_is_no_index_overflow():
    source = """extern "C" __global__ void f(const float* __restrict__ x, float* y) {
      unsigned h = threadIdx.x * 2654435761u; y[threadIdx.x] = x[h % 100u] + x[(h * 40503u) >> 24]; }"""
    assert launch(source, "f", 1, 64, In("x", X), Out("y", np.zeros(64, np.float32))).findings == ()


def test_traps_and_assertions():
    source = 'extern "C" __global__ void f(float* y) { if (threadIdx.x == 5) __trap(); y[threadIdx.x] = 1; }'
    simulation = launch(source, "f", 1, 32, InOut("y", np.zeros(32, np.float32)))
    assert only(simulation, "trap").thread == (5, 0, 0)


def test_lines_follow_the_line_directive():
    source = """#line 3 "cell"
extern "C" __global__ void f(const float* x, float* y) {
#line 17 "cell"
  y[threadIdx.x] = x[threadIdx.x + 300];
}"""
    simulation = launch(source, "f", 1, 32, In("x", X), Out("y", np.zeros(32, np.float32)))
    assert simulation.findings[0].line == 17


def test_lines_of_generated_text_and_of_inlined_helpers():
    source = """__device__ __forceinline__ void put(float* p, float v) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(p), "f"(v));
}
extern "C" __global__ void f(const float* x, float* y) {
  int t = threadIdx.x;
#line 7 "cell"
  put(y + t + 40, 1);
#line 9 "f.cu"
  y[t] = x[t + 300];
}"""
    simulation = launch(source, "f", 1, 32, In("x", X), Out("y", np.zeros(64, np.float32)))
    lines = {finding.array: finding.line for finding in simulation.findings if finding.kind == "out-of-bounds"}
    assert lines == {"y": 7, "x": None}
    assert "at line 9 of the CUDA text" in simulation.report


def test_a_pointer_passed_twice_is_one_array():
    source = 'extern "C" __global__ void f(const float* a, float* b) { int t = threadIdx.x; b[t] = a[t] + 1; }'
    x = X[:64].copy()
    arguments = GlobalArray("a", x, False, True), GlobalArray("b", x, True, True)
    assert launch(source, "f", 1, 64, *arguments).findings == ()
    shifted = source.replace("a[t]", "a[(t + 1) % 64]")
    assert kinds(launch(shifted, "f", 1, 64, *arguments)) == {"race"}
