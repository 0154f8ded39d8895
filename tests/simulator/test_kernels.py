"""CUDA programs with known answers, none of them made by our generator, through NVRTC's PTX."""

import numpy as np
import pytest
from conftest_simulator import In, InOut, Out, compile_ptx, kinds, launch

from tc_jupyter.simulator import DeviceMemory, GlobalArray, SimulationError, simulate

RNG = np.random.default_rng(0)


def clean(simulation):
    assert simulation.findings == ()
    return simulation


@pytest.mark.parametrize("n", [1, 31, 128, 1000])
def test_pointwise(n):
    source = r"""extern "C" __global__ void saxpy(const float* __restrict__ x, const float* __restrict__ y, float* z, float a, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) z[i] = a * x[i] + y[i]; }"""
    x, y, z = RNG.random(n, np.float32), RNG.random(n, np.float32), np.zeros(n, np.float32)
    clean(launch(source, "saxpy", -(-n // 128), 128, In("x", x), In("y", y), Out("z", z), 2.5, n))
    np.testing.assert_allclose(z, 2.5 * x + y, rtol=1e-6)


def test_strided_and_transposed_with_padded_tile():
    source = r"""extern "C" __global__ void transpose(const float* __restrict__ x, float* y, int rows, int cols) {
      __shared__ float tile[32][33];
      int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 32;
      for (int j = threadIdx.y; j < 32; j += 8) if (r0 + j < rows && c < cols) tile[j][threadIdx.x] = x[(r0 + j) * cols + c];
      __syncthreads();
      int r = r0 + threadIdx.x, c0 = blockIdx.x * 32;
      for (int j = threadIdx.y; j < 32; j += 8) if (r < rows && c0 + j < cols) y[(c0 + j) * rows + r] = tile[threadIdx.x][j]; }"""
    x = RNG.random((70, 45), np.float32)
    y = np.zeros((45, 70), np.float32)
    simulation = clean(launch(source, "transpose", (2, 3), (32, 8), In("x", x), Out("y", y), 70, 45))
    assert (y == x.T).all()
    shared = [site for site in simulation.sites if site.space == "shared"]
    assert all(site.wavefronts_per_request == 1 for site in shared)


def test_block_reduction_with_shuffles_and_atomics():
    source = r"""extern "C" __global__ void total(const float* __restrict__ x, float* out, int n) {
      __shared__ float part[32];
      float v = 0;
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
      for (int d = 16; d; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
      if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
      __syncthreads();
      if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.f;
        for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
        if (threadIdx.x == 0) atomicAdd(out, v);
      } }"""
    x, out = RNG.random(5000, np.float32), np.zeros(1, np.float32)
    clean(launch(source, "total", 3, 256, In("x", x), InOut("out", out), 5000))
    assert out[0] == pytest.approx(x.sum(), rel=1e-5)


def test_softmax_rows():
    source = r"""extern "C" __global__ void softmax(const float* __restrict__ x, float* y, int cols) {
      int row = blockIdx.x * blockDim.y + threadIdx.y; float m = __int_as_float(0xff800000), s = 0;
      for (int c = threadIdx.x; c < cols; c += 32) m = fmaxf(m, x[row * cols + c]);
      for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
      for (int c = threadIdx.x; c < cols; c += 32) s += expf(x[row * cols + c] - m);
      for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
      for (int c = threadIdx.x; c < cols; c += 32) y[row * cols + c] = expf(x[row * cols + c] - m) / s; }"""
    x = RNG.standard_normal((8, 77)).astype(np.float32) * 5
    y = np.zeros_like(x)
    clean(launch(source, "softmax", 2, (32, 4), In("x", x), Out("y", y), 77))
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_shuffles_of_all_modes_and_widths():
    source = r"""extern "C" __global__ void shuffles(int* out) {
      int t = threadIdx.x;
      out[t] = __shfl_sync(~0u, t * 10, (t + 5) % 32);
      out[32 + t] = __shfl_up_sync(~0u, t * 10, 3, 8);
      out[64 + t] = __shfl_down_sync(~0u, t * 10, 2, 16);
      out[96 + t] = __shfl_xor_sync(~0u, t * 10, 9);
      out[128 + t] = __shfl_sync(~0u, t * 10, 1, 4);
      double d = t * 1.5; out[160 + t] = (int)(2 * __shfl_xor_sync(~0u, d, 1)); }"""
    out = np.zeros(192, np.int32)
    clean(launch(source, "shuffles", 1, 32, Out("out", out)))
    t = np.arange(32)
    assert (out[:32] == (t + 5) % 32 * 10).all()
    assert (out[32:64] == np.where(t % 8 >= 3, t - 3, t) * 10).all()
    assert (out[64:96] == np.where(t % 16 < 14, t + 2, t) * 10).all()
    assert (out[96:128] == (t ^ 9) * 10).all()
    assert (out[128:160] == (t // 4 * 4 + 1) * 10).all()
    assert (out[160:] == (t ^ 1) * 3).all()


def test_votes_matches_and_warp_reductions():
    source = r"""extern "C" __global__ void votes(unsigned* out) {
      int t = threadIdx.x; bool p = t % 3 == 0;
      out[t] = __ballot_sync(~0u, p); out[32 + t] = __any_sync(~0u, p) * 2 + __all_sync(~0u, t < 32);
      out[64 + t] = __match_any_sync(~0u, t / 8);
      out[96 + t] = __reduce_add_sync(~0u, (unsigned)t); out[128 + t] = __reduce_max_sync(~0u, t ^ 21);
      if (t < 10) out[160 + t] = __activemask(); else out[160 + t] = __popc(__activemask());
      int same; out[192 + t] = __match_all_sync(~0u, 7, &same) + same; }"""
    out = np.zeros(224, np.uint32)
    clean(launch(source, "votes", 1, 32, Out("out", out)))
    ballot = sum(1 << t for t in range(0, 32, 3))
    assert (out[:32] == ballot).all()
    assert (out[32:64] == 3).all()
    assert (out[64:96] == [0xFF << (t // 8 * 8) for t in range(32)]).all()
    assert (out[96:128] == sum(range(32))).all()
    assert (out[128:160] == 31).all()
    assert (out[160:170] == 0x3FF).all()
    assert (out[170:192] == 22).all()
    assert (out[192:] == np.uint32(0)).all()  # all ones plus 1


def test_barrier_that_counts():
    source = r"""extern "C" __global__ void counts(const int* __restrict__ x, int* y) {
      int t = threadIdx.x; int n = __syncthreads_count(x[t] > 0); int a = __syncthreads_and(x[t] > -100), o = __syncthreads_or(x[t] > 100);
      y[t] = n * 4 + (a != 0) * 2 + (o != 0); }"""
    x = RNG.integers(-5, 5, 96).astype(np.int32)
    y = np.zeros(96, np.int32)
    clean(launch(source, "counts", 1, 96, In("x", x), Out("y", y)))
    assert (y == (x > 0).sum() * 4 + 2).all()


def test_local_arrays_with_run_time_indices():
    source = r"""extern "C" __global__ void local(const int* __restrict__ x, float* y) {
      float a[16]; int t = threadIdx.x;
      for (int i = 0; i < 16; i++) a[i] = i * t;
      a[x[t]] += 0.5f; y[t] = a[x[t]] + a[x[(t + 1) % 64]]; }"""
    x = RNG.integers(0, 16, 64).astype(np.int32)
    y = np.zeros(64, np.float32)
    simulation = clean(launch(source, "local", 1, 64, In("x", x), Out("y", y)))
    t = np.arange(64)
    follow = x[(t + 1) % 64]
    assert (y == x * t + 0.5 + follow * t + 0.5 * (follow == x)).all()
    assert any(site.space == "local" for site in simulation.sites)


def test_divergent_control_flow_and_loops():
    source = r"""extern "C" __global__ void collatz(int* y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
      int v = i + 1, steps = 0;
      while (v != 1) { v = v % 2 ? 3 * v + 1 : v / 2; steps++; if (steps > 200) break; }
      y[i] = steps; }"""
    y = np.zeros(300, np.int32)
    clean(launch(source, "collatz", 3, 128, Out("y", y), 300))

    def steps(v):
        count = 0
        while v != 1:
            v, count = (3 * v + 1 if v % 2 else v // 2), count + 1
        return count

    assert y.tolist() == [steps(i + 1) for i in range(300)]


def test_switch_becomes_a_jump_table():
    source = r"""extern "C" __global__ void choose(const int* __restrict__ op, const int* __restrict__ x, int* y) {
      int t = threadIdx.x, v = x[t];
      switch (op[t]) { case 0: v = v * v; break; case 1: v = v + 7; break; case 2: for (int i = 0; i < v; i++) v -= 2; break;
        case 3: v = ~v; break; case 4: v = v * 3 - x[(t + 1) % 64]; break; case 5: v = __popc(v); break; case 6: v /= 3; break; default: v = -1; }
      y[t] = v; }"""
    op, x = RNG.integers(0, 9, 64).astype(np.int32), RNG.integers(0, 50, 64).astype(np.int32)
    y = np.zeros(64, np.int32)
    clean(launch(source, "choose", 1, 64, In("op", op), In("x", x), Out("y", y)))

    def loop(v):
        i = 0
        while i < v:
            v, i = v - 2, i + 1
        return v

    for t in range(64):
        v = int(x[t])
        table = [v * v, v + 7, loop(v), ~v, v * 3 - int(x[(t + 1) % 64]), v.bit_count(), v // 3]
        assert y[t] == (table[op[t]] if op[t] < 7 else -1)


def test_jump_through_a_table():
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
 .reg .b32 %r<6>; .reg .b64 %rd<4>;
 mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1;
 table: .branchtargets zero, one, two, three;
 brx.idx %r2, table;
zero: mov.u32 %r3, 10; bra end;
one: mov.u32 %r3, 11; bra end;
two: mov.u32 %r3, 12; bra end;
three: mov.u32 %r3, 13;
end: st.global.u32 [%rd2], %r3; ret; }"""
    y = np.zeros(32, np.uint32)
    clean(launch(ptx, "k", 1, 32, Out("y", y)))
    assert (y == 10 + np.arange(32) % 4).all()


def test_device_functions_and_structures():
    source = r"""struct P { float a[3]; int k; };
      __device__ __noinline__ float eval(P p, float x, int* calls) { *calls += p.k; return p.a[0] + x * (p.a[1] + x * p.a[2]); }
      __device__ __noinline__ float twice(P p, float x, int* calls) { return eval(p, eval(p, x, calls), calls); }
      extern "C" __global__ void poly(const float* __restrict__ x, float* y, P p) {
        int calls = 0; int t = threadIdx.x; y[t] = twice(p, x[t], &calls) + eval(p, x[t], &calls) + calls; }"""
    x, y = RNG.random(40, np.float32), np.zeros(40, np.float32)
    p = np.array([0.5, -1, 2], np.float32).tobytes() + np.array([3], np.int32).tobytes()
    clean(launch(source, "poly", 1, 40, In("x", x), Out("y", y), p))

    def f(v):
        return 0.5 + v * (-1 + 2 * v)

    np.testing.assert_allclose(y, f(f(x)) + f(x) + 9, rtol=1e-5)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name, reference, low, high, tolerance",
    [
        ("expf", np.exp, -20, 20, 1e-6), ("logf", np.log, 1e-3, 50, 1e-6), ("sinf", np.sin, -1e6, 1e6, 1e-6), ("cosf", np.cos, -10, 10, 1e-6),
        ("tanf", np.tan, -1, 1, 1e-5), ("tanhf", np.tanh, -4, 4, 1e-6), ("log1pf", np.log1p, -0.5, 4, 1e-6), ("sqrtf", np.sqrt, 0, 9, 1e-7), ("rsqrtf", lambda x: 1 / np.sqrt(x), 0.1, 9, 1e-6),
        ("cbrtf", np.cbrt, -9, 9, 1e-6), ("floorf", np.floor, -9, 9, 0), ("roundf", lambda x: np.trunc(x + np.copysign(0.5, x)), -9, 9, 1e-7), ("atanf", np.arctan, -9, 9, 1e-6),
        ("asinf", np.arcsin, -1, 1, 1e-6), ("exp2f", np.exp2, -9, 9, 1e-6), ("log10f", np.log10, 0.1, 9, 1e-6), ("expm1f", np.expm1, -1, 1, 1e-6), ("fabsf", np.abs, -1, 1, 0),
        ("sinhf", np.sinh, -3, 3, 1e-6), ("__expf", np.exp, -5, 5, 1e-5), ("__sinf", np.sin, -3, 3, 1e-5),
    ],
)  # fmt: skip
def test_single_precision_library(name, reference, low, high, tolerance):
    source = f"""extern "C" __global__ void f(const float* __restrict__ x, float* y) {{ int t = threadIdx.x; y[t] = {name}(x[t]); }}"""
    x = RNG.uniform(low, high, 128).astype(np.float32)
    y = np.zeros(128, np.float32)
    clean(launch(source, "f", 1, 128, In("x", x), Out("y", y)))
    np.testing.assert_allclose(
        y, reference(x.astype(np.float64)), rtol=max(tolerance, 3e-7), atol=2e-7 if tolerance else 0
    )


@pytest.mark.parametrize(
    "name, reference, low, high",
    [("exp", np.exp, -50, 50), ("log", np.log, 1e-6, 1e6), ("sin", np.sin, -1e8, 1e8), ("cos", np.cos, -9, 9), ("tanh", np.tanh, -3, 3), ("sqrt", np.sqrt, 0, 9),
     ("cbrt", np.cbrt, -9, 9), ("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 9), ("atan", np.arctan, -9, 9), ("log1p", np.log1p, -0.5, 3), ("floor", np.floor, -9, 9)],
)  # fmt: skip
def test_double_precision_library(name, reference, low, high):
    source = f"""extern "C" __global__ void f(const double* __restrict__ x, double* y) {{ int t = threadIdx.x; y[t] = {name}(x[t]); }}"""
    x = RNG.uniform(low, high, 128)
    y = np.zeros(128)
    clean(launch(source, "f", 1, 128, In("x", x), Out("y", y)))
    np.testing.assert_allclose(y, reference(x), rtol=1e-14, atol=1e-15)


def test_powers_remainders_and_error_function():
    source = r"""extern "C" __global__ void f(const float* __restrict__ x, const double* __restrict__ d, float* y, double* z) {
      int t = threadIdx.x; y[t] = powf(x[t], 2.7f); y[64 + t] = fmodf(x[t] * 10, 3.f); y[128 + t] = erff(x[t]);
      z[t] = pow(d[t], 1.3); z[64 + t] = fmod(d[t] * 10, 3.); z[128 + t] = erf(d[t]); }"""
    from math import erf

    x, d = RNG.uniform(0.1, 4, 64).astype(np.float32), RNG.uniform(0.1, 4, 64)
    y, z = np.zeros(192, np.float32), np.zeros(192)
    clean(launch(source, "f", 1, 64, In("x", x), In("d", d), Out("y", y), Out("z", z)))
    np.testing.assert_allclose(y[:64], x.astype(np.float64) ** np.float32(2.7).astype(float), rtol=1e-5)
    np.testing.assert_allclose(y[64:128], np.fmod(x * np.float32(10), np.float32(3)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y[128:], [erf(v) for v in x], rtol=1e-5)
    np.testing.assert_allclose(z[:64], d**1.3, rtol=1e-13)
    np.testing.assert_allclose(z[64:128], np.fmod(d * 10, 3), rtol=1e-13)
    np.testing.assert_allclose(z[128:], [erf(v) for v in d], rtol=1e-13)


def test_integer_division_by_constants_and_variables():
    source = r"""extern "C" __global__ void f(const int* __restrict__ a, const int* __restrict__ b, int* y, long long* z) {
      int t = threadIdx.x; y[t] = a[t] / b[t]; y[128 + t] = a[t] % b[t]; y[256 + t] = a[t] / 7; y[384 + t] = (unsigned)a[t] % 10u;
      long long w = (long long)a[t] * a[t] * 3; z[t] = w / b[t]; z[128 + t] = w % 1000003; z[256 + t] = __mul64hi(w, w); }"""
    a = RNG.integers(-(2**31), 2**31, 128).astype(np.int32)
    b = RNG.integers(1, 1000, 128).astype(np.int32) * RNG.choice([-1, 1], 128).astype(np.int32)
    y, z = np.zeros(512, np.int32), np.zeros(384, np.int64)
    clean(launch(source, "f", 1, 128, In("a", a), In("b", b), Out("y", y), Out("z", z)))
    for t in range(128):
        p, q = int(a[t]), int(b[t])
        quotient = abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
        assert y[t] == quotient
        assert y[128 + t] == p - quotient * q
        assert y[256 + t] == int(p / 7)
        assert y[384 + t] == (p % 2**32) % 10
        w = (p * p * 3 + 2**63) % 2**64 - 2**63
        assert z[128 + t] == abs(w) % 1000003 * (1 if w >= 0 else -1)
        assert z[256 + t] == w * w >> 64


def test_atomics_of_all_kinds():
    source = r"""extern "C" __global__ void f(const int* __restrict__ x, int* out, unsigned* u, unsigned long long* w, double* d, int* order) {
      __shared__ int local[4];
      int t = threadIdx.x; if (t < 4) local[t] = 0; __syncthreads();
      atomicAdd(&local[t % 4], x[t]);
      atomicMin(&out[0], x[t]); atomicMax(&out[1], x[t]); atomicAnd(&out[2], x[t]); atomicOr(&out[3], x[t]); atomicXor(&out[4], x[t]);
      atomicInc(&u[0], 9u); atomicDec(&u[1], 6u); atomicAdd(&w[0], (unsigned long long)t << 33); atomicAdd(&d[0], 0.5);
      order[atomicAdd(&out[5], 1)] = t; atomicCAS(&out[6], 0, t + 1); atomicExch(&out[7], 42); atomicSub(&out[8], 2);
      __syncthreads(); if (t < 4) atomicAdd(&out[9], local[t]); }"""
    x = RNG.integers(-(2**20), 2**20, 128).astype(np.int32)
    out = np.array([2**30, -(2**30), -1, 0, 0, 0, 0, 0, 0, 0], np.int32)
    u, w, d, order = np.array([0, 3], np.uint32), np.zeros(1, np.uint64), np.zeros(1), np.zeros(128, np.int32)
    clean(
        launch(
            source,
            "f",
            1,
            128,
            In("x", x),
            InOut("out", out),
            InOut("u", u),
            InOut("w", w),
            InOut("d", d),
            Out("order", order),
        )
    )
    assert out[0] == x.min()
    assert out[1] == x.max()
    assert out[2] == np.bitwise_and.reduce(x)
    assert out[3] == np.bitwise_or.reduce(x)
    assert out[4] == np.bitwise_xor.reduce(x)
    assert out[5] == 128
    assert sorted(order) == list(range(128))
    assert 1 <= out[6] <= 128
    assert out[7] == 42
    assert out[8] == -256
    assert out[9] == x.sum(dtype=np.int32)
    assert u[0] == 128 % 10
    assert u[1] == (3 - 128) % 7
    assert w[0] == sum(range(128)) << 33
    assert d[0] == 64


def test_last_block_reduces_behind_a_fence():
    source = r"""extern "C" __global__ void f(const float* __restrict__ x, float* part, unsigned* ticket, float* out) {
      __shared__ float s[64]; __shared__ bool last; int t = threadIdx.x;
      s[t] = x[blockIdx.x * 64 + t]; __syncthreads();
      for (int d = 32; d; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
      if (t == 0) { part[blockIdx.x] = s[0]; __threadfence(); last = atomicAdd(ticket, 1u) == gridDim.x - 1; }
      __syncthreads();
      if (last && t == 0) { float v = 0; for (int b = 0; b < gridDim.x; b++) v += part[b]; *out = v; } }"""
    x, out = RNG.random(64 * 100, np.float32), np.zeros(1, np.float32)

    def run(text):
        return launch(
            text,
            "f",
            100,
            64,
            In("x", x),
            Out("part", np.zeros(100, np.float32)),
            InOut("ticket", np.zeros(1, np.uint32)),
            Out("out", out),
        )

    clean(run(source))
    assert out[0] == pytest.approx(x.sum(), rel=1e-5)
    assert "race-between-blocks" in kinds(run(source.replace("__threadfence();", "")))


def test_release_and_acquire_order_two_blocks():
    source = r"""extern "C" __global__ void f(float* data, int* flag, float* out) {
      int t = threadIdx.x;
      if (blockIdx.x == 0) { data[t] = t; __syncthreads();
        if (t == 0) asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(1) : "memory"); }
      else if (blockIdx.x == 8) { int seen; asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        out[t] = seen ? data[t] : -1.f; } }"""

    def run(text):
        # Four blocks of 1024 threads run at a time, so block 8 comes after block 0.
        out = np.zeros(1024, np.float32)
        flag = np.zeros(1, np.int32)
        simulation = launch(
            text, "f", 9, 1024, Out("data", np.zeros(1024, np.float32)), InOut("flag", flag), Out("out", out)
        )
        assert (out == np.arange(1024)).all()
        return simulation

    clean(run(source))
    relaxed = source.replace("st.release.gpu", "st.relaxed.gpu").replace("ld.acquire.gpu", "ld.relaxed.gpu")
    assert kinds(run(relaxed)) == {"race-between-blocks"}


def test_bytes_and_halves_in_vectors():
    source = r"""extern "C" __global__ void f(const unsigned char* __restrict__ x, const signed char* __restrict__ s, short* y, unsigned short* h) {
      int t = threadIdx.x; uchar4 v = ((const uchar4*)x)[t]; y[t] = v.x + v.y - v.z * s[t] + v.w;
      float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h[t])); f = f * 2 + 1; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h[t]) : "f"(f)); }"""
    x, s = RNG.integers(0, 256, 256).astype(np.uint8), RNG.integers(-128, 128, 64).astype(np.int8)
    half = RNG.random(64).astype(np.float16)
    y, h = np.zeros(64, np.int16), half.copy()
    clean(launch(source, "f", 1, 64, In("x", x), In("s", s), Out("y", y), InOut("h", h)))
    v = x.reshape(64, 4).astype(int)
    assert (y == v[:, 0] + v[:, 1] - v[:, 2] * s + v[:, 3]).all()
    assert (h == (half.astype(np.float32) * 2 + 1).astype(np.float16)).all()


def test_module_variables_and_constants_persist_between_launches():
    source = r"""__constant__ float weights[4] = {1.f, 2.f, 4.f, 8.f}; __device__ int counter = 5;
      extern "C" __global__ void f(float* y) { int t = threadIdx.x; y[t] = weights[t % 4] + counter; __syncthreads(); if (t == 0) counter += 10; }"""
    ptx = compile_ptx(source)
    memory = DeviceMemory()
    y = np.zeros(32, np.float32)
    for expected in (5, 15):
        simulation = simulate(ptx, "f", (1, 1, 1), (32, 1, 1), [Out("y", y)], memory=memory)
        assert simulation.findings == ()
        assert (y == 2.0 ** (np.arange(32) % 4) + expected).all()


def test_initialised_state_lives_through_launches():
    source = r"""extern "C" __global__ void fill(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = i; }
      extern "C" __global__ void copy(const float* __restrict__ x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }"""
    ptx = compile_ptx(source)
    for n, expected in ((64, set()), (60, {"uninitialised"})):
        memory, x, y = DeviceMemory(), np.zeros(64, np.float32), np.zeros(64, np.float32)
        scratch = GlobalArray("x", x, True, False)
        simulate(ptx, "fill", (1, 1, 1), (64, 1, 1), [scratch, n], memory=memory)
        second = simulate(
            ptx, "copy", (1, 1, 1), (64, 1, 1), [GlobalArray("x", x, False, False), Out("y", y)], memory=memory
        )
        assert kinds(second) == expected
        assert len(memory.unwritten()) == (1 if n < 64 else 0)


def test_generic_pointers_reach_every_space():
    source = r"""__device__ __noinline__ float pick(const float* p, int i) { return p[i]; }
      extern "C" __global__ void f(const float* x, float* y) {
        __shared__ float s[32]; int t = threadIdx.x; float l[4]; s[t] = 100 + t; for (int i = 0; i < 4; i++) l[i] = 1000 + i; __syncthreads();
        const float* p = t % 3 == 0 ? x : t % 3 == 1 ? s : l; y[t] = pick(p, t % 4); }"""
    x, y = RNG.random(32, np.float32), np.zeros(32, np.float32)
    clean(launch(source, "f", 1, 32, In("x", x), Out("y", y)))
    t = np.arange(32)
    assert (
        y == np.where(t % 3 == 0, x[t % 4], np.where(t % 3 == 1, 100 + t % 4, 1000 + t % 4)).astype(np.float32)
    ).all()


def test_warp_synchronous_code_needs_its_syncwarp():
    source = r"""extern "C" __global__ void f(const float* __restrict__ x, float* y) {
      VOLATILE __shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; __syncwarp();
      for (int d = 16; d; d /= 2) { float v = 0; if (t % 32 < d) v = s[t + d]; __syncwarp(); if (t % 32 < d) s[t] += v; __syncwarp(); }
      if (t % 32 == 0) y[t / 32] = s[t]; }"""
    x, y = RNG.random(64, np.float32), np.zeros(2, np.float32)
    for qualifier in ("", "volatile"):
        text = source.replace("VOLATILE", qualifier)
        clean(launch(text, "f", 1, 64, In("x", x), Out("y", y)))
        np.testing.assert_allclose(y, x.reshape(2, 32).sum(1), rtol=1e-5)
        assert "race" in kinds(launch(text.replace("__syncwarp();", ""), "f", 1, 64, In("x", x), Out("y", y)))


def test_three_dimensional_launch():
    source = r"""extern "C" __global__ void f(int* y, int a, int b) {
      int x = blockIdx.x * blockDim.x + threadIdx.x, u = blockIdx.y * blockDim.y + threadIdx.y, v = blockIdx.z * blockDim.z + threadIdx.z;
      y[(v * b + u) * a + x] = x + 100 * u + 10000 * v; }"""
    y = np.zeros((6, 4, 6), np.int32)
    clean(launch(source, "f", (2, 2, 3), (3, 2, 2), Out("y", y), 6, 4))
    v, u, x = np.indices(y.shape)
    assert (y == x + 100 * u + 10000 * v).all()


def test_prefix_sum_in_a_block():
    source = r"""extern "C" __global__ void scan(const int* __restrict__ x, int* y) {
      __shared__ int s[2][128]; int t = threadIdx.x, b = 0; s[0][t] = x[t]; __syncthreads();
      for (int d = 1; d < 128; d *= 2) { s[b ^ 1][t] = t >= d ? s[b][t] + s[b][t - d] : s[b][t]; b ^= 1; __syncthreads(); }
      y[t] = s[b][t]; }"""
    x, y = RNG.integers(0, 100, 128).astype(np.int32), np.zeros(128, np.int32)
    clean(launch(source, "scan", 1, 128, In("x", x), Out("y", y)))
    assert (y == np.cumsum(x)).all()


def test_histogram_in_shared_memory():
    source = r"""extern "C" __global__ void histogram(const unsigned char* __restrict__ x, unsigned* bins, int n) {
      __shared__ unsigned s[256]; s[threadIdx.x] = 0; __syncthreads();
      for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&s[x[i]], 1u);
      __syncthreads(); atomicAdd(&bins[threadIdx.x], s[threadIdx.x]); }"""
    x, bins = RNG.integers(0, 256, 3000).astype(np.uint8), np.zeros(256, np.uint32)
    clean(launch(source, "histogram", 4, 256, In("x", x), InOut("bins", bins), 3000))
    assert (bins == np.bincount(x, minlength=256)).all()


def test_bytes_side_by_side_in_one_register():
    source = r"""extern "C" __global__ void f(const unsigned* __restrict__ a, const unsigned* __restrict__ b, unsigned* y) {
      int t = threadIdx.x; y[t] = __vadd4(a[t], b[t]); y[64 + t] = __vabsdiffu4(a[t], b[t]); y[128 + t] = __vmaxs2(a[t], b[t]);
      y[192 + t] = __vsubus4(a[t], b[t]); y[256 + t] = __vsadu4(a[t], b[t]); y[320 + t] = __vcmpgtu4(a[t], b[t]); y[384 + t] = __vavgu4(a[t], b[t]); }"""
    a, b = (RNG.integers(0, 2**32, 64).astype(np.uint32) for _ in range(2))
    y = np.zeros((7, 64), np.uint32)
    clean(launch(source, "f", 1, 64, In("a", a), In("b", b), Out("y", y)))
    p, q = a.view(np.uint8).astype(int), b.view(np.uint8).astype(int)
    bytes_of = y.view(np.uint8).reshape(7, 256)
    assert (bytes_of[0] == (p + q) % 256).all()
    assert (bytes_of[1] == abs(p - q)).all()
    assert (y[2].view(np.int16) == np.maximum(a.view(np.int16), b.view(np.int16))).all()
    assert (bytes_of[3] == np.maximum(p - q, 0)).all()
    assert (y[4] == abs(p - q).reshape(64, 4).sum(1)).all()
    assert (bytes_of[5] == np.where(p > q, 255, 0)).all()
    assert (bytes_of[6] == (p + q + 1) // 2).all()


def test_named_barriers_meet_at_different_places():
    source = r"""extern "C" __global__ void f(const float* __restrict__ x, float* y) {
      __shared__ float s[64]; int t = threadIdx.x;
      if (t < 32) { s[t] = x[t]; asm volatile("bar.sync 1, 64;" ::: "memory"); s[32 + t] = x[t]; }
      else { asm volatile("bar.sync 1, 64;" ::: "memory"); y[t - 32] = s[63 - t]; } }"""
    x, y = RNG.random(32, np.float32), np.zeros(32, np.float32)
    clean(launch(source, "f", 3, 64, In("x", x), InOut("y", y)))
    assert (y == x[::-1]).all()
    without = source.replace('asm volatile("bar.sync 1, 64;" ::: "memory");', "")
    assert {"race", "uninitialised"} & kinds(launch(without, "f", 1, 64, In("x", x), InOut("y", y)))


def test_printf_and_assertions():
    source = r"""extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
      extern "C" __global__ void f(const float* __restrict__ x, float* y) {
      int t = threadIdx.x; printf("%d %f", t, x[t]); if (x[t] < 0) __assertfail("x", "f", 1, "k", 1); y[t] = x[t]; }"""
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    clean(launch(source, "f", 1, 32, In("x", x), Out("y", y)))
    x[7] = -1
    simulation = launch(source, "f", 1, 32, In("x", x), Out("y", y))
    assert kinds(simulation) == {"trap"}
    assert simulation.findings[0].thread == (7, 0, 0)


def test_calls_through_pointers_are_refused():
    source = r"""typedef float (*F)(float); __device__ __noinline__ float a(float v) { return v + 1; } __device__ __noinline__ float b(float v) { return v * 2; }
      extern "C" __global__ void f(const float* x, float* y) { F fs[2] = {a, b}; y[threadIdx.x] = fs[threadIdx.x % 2](x[0]); }"""
    with pytest.raises(SimulationError, match="function pointer"):
        launch(source, "f", 1, 32, In("x", np.ones(1, np.float32)), Out("y", np.zeros(32, np.float32)))


def test_recursion_is_refused():
    source = r"""__device__ __noinline__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
      extern "C" __global__ void k(int* y) { y[threadIdx.x] = f(threadIdx.x); }"""
    with pytest.raises(SimulationError, match="recursive"):
        launch(source, "k", 1, 8, Out("y", np.zeros(8, np.int32)))


MMA = {
    "m16n8k8.row.col.f32.tf32.tf32.f32": (np.float32, np.float32, 8), "m16n8k8.row.col.f32.f16.f16.f32": (np.float16, np.float32, 8),
    "m16n8k16.row.col.f32.f16.f16.f32": (np.float16, np.float32, 16), "m16n8k16.row.col.f32.bf16.bf16.f32": ("bf16", np.float32, 16),
    "m16n8k32.row.col.s32.s8.s8.s32": (np.int8, np.int32, 32), "m16n8k16.row.col.s32.s8.s8.s32": (np.int8, np.int32, 16),
    "m16n8k32.row.col.s32.u8.s8.s32": ("u8", np.int32, 32), "m16n8k16.row.col.f16.f16.f16.f16": (np.float16, np.float16, 16),
}  # fmt: skip


@pytest.mark.parametrize("shape", MMA)
def test_matrix_fragments(shape):
    """The fragments are filled by the formulas of the PTX ISA, written element by element."""
    kind, result, k = MMA[shape]
    small = {np.float32: 4, np.float16: 2, "bf16": 2, np.int8: 1, "u8": 1}[kind]
    per, n_a = 4 // small, k * small // 8
    n_b, n_c = n_a // 2, 4 if result != np.float16 else 2
    if kind in (np.int8, "u8"):
        a = RNG.integers(0 if kind == "u8" else -100, 100, (16, k)).astype(np.int8)
        b = RNG.integers(-100, 100, (k, 8)).astype(np.int8)
    else:
        a, b = (
            RNG.integers(-8, 8, s).astype(np.float16 if kind != np.float32 else np.float32) for s in ((16, k), (k, 8))
        )
    c = RNG.integers(-5, 5, (16, 8)).astype(result)
    bits = (
        (lambda x: (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)) if kind == "bf16" else (lambda x: x)
    )
    words_a, words_b = np.zeros((32, n_a, per), bits(a).dtype), np.zeros((32, n_b, per), bits(b).dtype)
    words_c = np.zeros((32, n_c, 4 // np.dtype(result).itemsize), result)
    for lane in range(32):
        g, q = lane // 4, lane % 4
        for register in range(n_a):
            for e in range(per):
                words_a[lane, register, e] = bits(a)[g + 8 * (register % 2), q * per + e + 4 * per * (register // 2)]
        for register in range(n_b):
            for e in range(per):
                words_b[lane, register, e] = bits(b)[q * per + e + 4 * per * register, g]
        for i in range(4):
            flat = (i,) if n_c == 4 else divmod(i, 2)
            words_c[lane].reshape(-1)[i if n_c == 4 else flat[0] * 2 + flat[1]] = c[g + 8 * (i // 2), 2 * q + i % 2]
    names = [f"%{i}" for i in range(n_c + n_a + n_b)]
    groups = [names[:n_c], names[n_c : n_c + n_a], names[n_c + n_a :], names[:n_c]]
    text = ", ".join("{" + ",".join(group) + "}" for group in groups)
    inputs = ", ".join(
        [*(f'"r"(a[t * {n_a} + {i}])' for i in range(n_a)), *(f'"r"(b[t * {n_b} + {i}])' for i in range(n_b))]
    )
    outputs = ", ".join(f'"+r"(r[{i}])' for i in range(n_c))
    source = f"""extern "C" __global__ void f(const unsigned* __restrict__ a, const unsigned* __restrict__ b, unsigned* c) {{
      int t = threadIdx.x; unsigned r[{n_c}]; for (int i = 0; i < {n_c}; i++) r[i] = c[t * {n_c} + i];
      asm volatile("mma.sync.aligned.{shape} {text};" : {outputs} : {inputs});
      for (int i = 0; i < {n_c}; i++) c[t * {n_c} + i] = r[i]; }}"""
    raw = words_c.reshape(-1).view(np.uint32).copy()
    clean(
        launch(
            source,
            "f",
            1,
            32,
            In("a", words_a.reshape(-1).view(np.uint32)),
            In("b", words_b.reshape(-1).view(np.uint32)),
            InOut("c", raw),
        )
    )
    got = raw.view(result).reshape(32, 4)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    for lane in range(32):
        for i in range(4):
            assert got[lane, i] == exact.astype(result)[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2]


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix(n, trans):
    registers = ",".join(f"%{i}" for i in range(n))
    outputs = ", ".join(f'"=r"(r[{i}])' for i in range(n))
    source = f"""extern "C" __global__ void f(const unsigned short* __restrict__ x, unsigned* y) {{
      __shared__ __align__(16) unsigned short s[{64 * n}]; int t = threadIdx.x; for (int i = t; i < {64 * n}; i += 32) s[i] = x[i]; __syncthreads();
      unsigned r[{n}]; unsigned p = (unsigned)__cvta_generic_to_shared(&s[(t % {8 * n}) * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {{{registers}}}, [%{n}];" : {outputs} : "r"(p));
      for (int i = 0; i < {n}; i++) y[t * {n} + i] = r[i]; }}"""
    x = RNG.integers(0, 2**16, (n, 8, 8)).astype(np.uint16)
    y = np.zeros((32, n), np.uint32)
    clean(launch(source, "f", 1, 32, In("x", x), Out("y", y)))
    for lane in range(32):
        for i in range(n):
            tile = x[i].T if trans else x[i]
            low, high = (int(tile[lane // 4, 2 * (lane % 4) + j]) for j in (0, 1))
            assert y[lane, i] == low | high << 16
