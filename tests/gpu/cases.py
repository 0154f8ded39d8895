"""One def per GPU template, with sizes at which to run it: for the tests without a GPU and for `check.py` with one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from tc_jupyter.loops import Kernel
from tc_jupyter.program import Program
from tc_jupyter.runtime.cuda import cuda_target, fit
from tc_jupyter.schedule import Schedule, Target, default_schedule
from tests.running import kernels_of, program_of

TARGET = cuda_target("sm_80")
ARCHITECTURES = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100")


@dataclass(frozen=True)
class Case:
    """A def, sizes to run it at, words that its text must contain, the most registers on `sm_80` and `sm_90`, the device,
    more sizes at which weakened copies are looked for, sizes that no call exceeds, and typical ones by which tiles are chosen."""

    text: str
    sizes: tuple[dict[str, int], ...]
    words: tuple[str, ...] = ()
    registers: int = 64
    target: Target = TARGET
    edges: tuple[dict[str, int], ...] = ()
    most: dict[str, int] = field(default_factory=dict)
    typical: dict[str, int] = field(default_factory=dict)

    @property
    def small(self) -> dict[str, int]:
        """Sizes for which the tiles are small: the simulator computes every element of a tile."""
        return self.typical or {name: 3 if name in "RS" else 32 for name in re.findall(r"\b[A-Z]\b", self.text)}


CASES = {
    "axpy": Case(
        "def f(float(N) X, float(N) Y, float a) -> (O) { O(i) = a * X(i) + Y(i) }",
        tuple({"N": n} for n in (1, 7, 2048, 2053)),
        ("tc_load<4>", "tc_store<4>"),
        edges=({"N": 1029}, {"N": 3077}),
    ),
    "fused": Case(
        "def f(float(M,N) X, float(N) b) -> (O) { T(i,j) = X(i,j) + b(j)\n O(i,j) = T(i,j) > 3.0 ? T(i,j) : 0.1*T(i,j) }",
        ({"M": 5, "N": 37}, {"M": 9, "N": 128}),
        ("tc_store<4>",),
        edges=({"M": 9, "N": 135}, {"M": 9, "N": 132}),
    ),
    "product": Case(
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 36, "N": 40, "K": 68}, {"M": 5, "N": 7, "K": 9}, {"M": 33, "N": 35, "K": 33}),
        ("__shared__", "__syncthreads", "tc_cp_async<16>"),
        128,
        edges=({"M": 36, "N": 40, "K": 4}, {"M": 33, "N": 35, "K": 61}),
    ),
    "transposed product": Case(
        "def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }",
        ({"M": 34, "N": 9, "K": 33},),
        ("__shared__",),
        128,
        edges=({"M": 35, "N": 37, "K": 61}, {"M": 5, "N": 9, "K": 3}),
    ),
    "product with itself": Case(
        "def f(float(K,N) X) -> (C) { C(i,j) +=! X(k,i) * X(k,j) }",
        ({"N": 35, "K": 33}, {"N": 36, "K": 68}, {"N": 5, "K": 9}),
        ("__shared__",),
        128,
        edges=({"N": 37, "K": 61}, {"N": 9, "K": 3}, {"N": 36, "K": 61}, {"N": 36, "K": 4}),
    ),
    "distances to itself": Case(
        "def f(float(N,K) X) -> (D) { D(i,j) +=! (X(i,k) - X(j,k)) * (X(i,k) - X(j,k)) }",
        ({"N": 35, "K": 33},),
        ("__shared__",),
        128,
        edges=({"N": 37, "K": 61}, {"N": 9, "K": 3}),
    ),
    "epilogue": Case(
        "def f(float(M,K) A, float(K,N) B, float(N) b) -> (O) { C(i,j) +=! A(i,k) * B(k,j)\n O(i,j) = fmax(C(i,j) + b(j), 0.0) }",
        ({"M": 30, "N": 45, "K": 33},),
        ("__shared__",),
        128,
        edges=({"M": 35, "N": 37, "K": 61}, {"M": 5, "N": 9, "K": 3}),
    ),
    "batched": Case(
        "def f(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }",
        ({"B": 3, "M": 20, "N": 33, "K": 17},),
        ("__shared__", "blockIdx.z"),
        128,
        edges=({"B": 2, "M": 35, "N": 37, "K": 61}, {"B": 1, "M": 5, "N": 9, "K": 3}),
    ),
    "batched small": Case(
        "def f(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }",
        ({"B": 3, "M": 16, "N": 12, "K": 20}, {"B": 2, "M": 9, "N": 13, "K": 7}, {"B": 1, "M": 1, "N": 1, "K": 1}),
        registers=128,
        edges=(
            {"B": 2, "M": 20, "N": 20, "K": 52},
            {"B": 2, "M": 19, "N": 19, "K": 53},
            {"B": 1, "M": 5, "N": 8, "K": 4},
        ),
        typical={"B": 512, "M": 16, "N": 16, "K": 64},
    ),
    "few columns": Case(
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 9, "N": 5, "K": 70}, {"M": 3, "N": 9, "K": 33}, {"M": 1, "N": 1, "K": 1}),
        ("tc_warp_reduce<32>",),
        edges=({"M": 9, "N": 8, "K": 100}, {"M": 18, "N": 17, "K": 65}),
        typical={"M": 4096, "N": 8, "K": 4096},
    ),
    "few rows": Case(
        "def f(half(B,M,K) X, half(B,N,K) W) -> (C) { C(b,i,j) +=! float(X(b,i,k)) * float(W(b,j,k)) }",
        ({"B": 2, "M": 3, "N": 12, "K": 70}, {"B": 1, "M": 5, "N": 9, "K": 31}, {"B": 1, "M": 1, "N": 1, "K": 1}),
        ("tc_warp_reduce<32>",),
        edges=({"B": 2, "M": 4, "N": 9, "K": 100}, {"B": 2, "M": 9, "N": 18, "K": 65}),
        typical={"B": 8, "M": 4, "N": 4096, "K": 4096},
    ),
    "flat product": Case(
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 12, "N": 68, "K": 20}, {"M": 9, "N": 13, "K": 7}),
        registers=128,
        edges=({"M": 18, "N": 132, "K": 52}, {"M": 19, "N": 71, "K": 53}, {"M": 5, "N": 8, "K": 4}),
        typical={"M": 16, "N": 4096, "K": 64},
    ),
    "tall product": Case(
        "def f(double(M,K) A, double(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }",
        ({"M": 68, "N": 12, "K": 20}, {"M": 9, "N": 13, "K": 7}),
        registers=128,
        edges=(
            {"M": 132, "N": 18, "K": 52},
            {"M": 71, "N": 19, "K": 53},
            {"M": 5, "N": 8, "K": 4},
            {"M": 5, "N": 8, "K": 0},
            {"M": 5, "N": 7, "K": 0},
        ),
        typical={"M": 4096, "N": 16, "K": 64},
    ),
    "product in parts": Case(
        "def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }",
        ({"M": 9, "N": 35, "K": 133}, {"M": 3, "N": 4, "K": 64}, {"M": 1, "N": 1, "K": 1}),
        ("__shared__", "tc_cp_async", "C_rf_cache"),
        128,
        edges=({"M": 18, "N": 37, "K": 157}, {"M": 5, "N": 8, "K": 68}),
        typical={"M": 128, "N": 128, "K": 2048},
    ),
    "product in parts, epilogue": Case(
        "def f(float(M,K) A, float(K,N) B, float(N) b) -> (O) { C(i,j) +=! A(i,k) * B(k,j)\n O(i,j) = fmax(C(i,j) + b(j), 0.0) }",
        ({"M": 18, "N": 36, "K": 140}, {"M": 5, "N": 7, "K": 129}),
        ("__shared__", "tc_cp_async", "C_rf_cache", "f_1_O"),
        128,
        edges=({"M": 18, "N": 37, "K": 157},),
        typical={"M": 32, "N": 32, "K": 1024},
    ),
    "half product in parts": Case(
        "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 16, "N": 24, "K": 280}, {"M": 9, "N": 20, "K": 140}),
        ("tc_mma_m16n8k16_f16", "tc_ldmatrix", "tc_cp_async<16>", "C_rf_cache"),
        128,
        edges=({"M": 36, "N": 35, "K": 301},),
        typical={"M": 32, "N": 32, "K": 16384},
    ),
    "convolution": Case(
        "def f(float(C,H,W) X, float(K,C,R,S) Y) -> (Z) { Z(k,h,w) +=! X(c, h + r, w + s) * Y(k,c,r,s) }",
        ({"C": 5, "H": 6, "W": 9, "K": 4, "R": 3, "S": 2},),
        ("__shared__",),
        128,
        edges=({"C": 41, "H": 3, "W": 35, "K": 33, "R": 2, "S": 1}, {"C": 3, "H": 2, "W": 5, "K": 4, "R": 1, "S": 1}),
    ),
    "group convolution": Case(
        "def f(float(B,M,C,H,W) X, float(M,K,C,R,S) Y) -> (Z) { Z(b,g,k,h,w) +=! X(b,g,c,h+r,w+s) * Y(g,k,c,r,s) }",
        ({"B": 2, "M": 2, "C": 3, "H": 5, "W": 7, "K": 3, "R": 3, "S": 2},),
        ("__shared__",),
        128,
        edges=({"B": 2, "M": 2, "C": 41, "H": 3, "W": 35, "K": 33, "R": 2, "S": 1},),
    ),
    "strided convolution": Case(
        "def f(float(C,H,W) X, float(K,C,R,S) Y) -> (Z) { Z(k,h,w) +=! X(c, 2*h - r, 2*w + s) * Y(k,c,r,s) }",
        ({"C": 3, "H": 9, "W": 70, "K": 4, "R": 3, "S": 2},),
        ("__shared__",),
        128,
        edges=({"C": 37, "H": 5, "W": 9, "K": 4, "R": 2, "S": 2}, {"C": 61, "H": 5, "W": 40, "K": 20, "R": 3, "S": 2}),
    ),
    "distances": Case(
        "def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! (A(i,k) - B(j,k)) * (A(i,k) - B(j,k)) }",
        ({"M": 30, "N": 9, "K": 33},),
        ("__shared__",),
        128,
        edges=({"M": 35, "N": 37, "K": 61}, {"M": 5, "N": 9, "K": 3}),
    ),
    "half product": Case(
        "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 40, "N": 72, "K": 104}, {"M": 30, "N": 33, "K": 20}, {"M": 9, "N": 20, "K": 12}),
        ("tc_mma_m16n8k16_f16", "tc_ldmatrix", "tc_cp_async<16>"),
        232,
        edges=({"M": 40, "N": 40, "K": 8}, {"M": 36, "N": 35, "K": 101}, {"M": 36, "N": 36, "K": 100}),
    ),
    "half product, transposed": Case(
        "def f(half(K,M) A, half(N,K) B) -> (C) { C(i,j) +=! A(k,i) * B(j,k) }",
        ({"M": 40, "N": 24, "K": 40},),
        ("tc_mma_m16n8k16_f16", "tc_ldmatrix_trans", "tc_cp_async<16>"),
        232,
        edges=({"M": 40, "N": 40, "K": 104}, {"M": 8, "N": 8, "K": 8}),
    ),
    "half epilogue": Case(
        "def f(half(B,M,K) X, half(B,K,N) Y, float(N) b) -> (O) {"
        " C(b0,i,j) +=! float(X(b0,i,k)) * float(Y(b0,k,j))\n O(b0,i,j) = fmax(C(b0,i,j) + b(j), 0.0) }",
        ({"B": 2, "M": 24, "N": 40, "K": 40},),
        ("tc_mma_m16n8k16_f16", "tc_cp_async<16>", "blockIdx.z"),
        232,
        edges=({"B": 2, "M": 40, "N": 40, "K": 104}, {"B": 1, "M": 8, "N": 8, "K": 8}),
    ),
    "half convolution": Case(
        "def f(half(N,H,W,C) X, half(R,S,C,K) Y) -> (Z) { Z(n,h,w,k) +=! X(n, h+r, w+s, c) * Y(r,s,c,k) }",
        ({"N": 2, "H": 4, "W": 20, "C": 40, "K": 16, "R": 3, "S": 2},),
        ("tc_mma_m16n8k16_f16", "tc_cp_async<16>"),
        232,
        edges=(
            {"N": 2, "H": 3, "W": 36, "C": 104, "K": 40, "R": 2, "S": 1},
            {"N": 1, "H": 2, "W": 9, "C": 8, "K": 8, "R": 1, "S": 1},
        ),
    ),
    "bfloat16 product": Case(
        "def f(bfloat16(M,K) A, bfloat16(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 40, "N": 24, "K": 40}, {"M": 9, "N": 20, "K": 13}),
        ("tc_mma_m16n8k16_bf16", "tc_cp_async<16>"),
        232,
        edges=({"M": 40, "N": 40, "K": 104}, {"M": 8, "N": 8, "K": 8}, {"M": 36, "N": 35, "K": 37}),
    ),
    "int8 product": Case(
        "def f(int8(M,K) A, int8(N,K) B) -> (C) { C(i,j) +=! int32(A(i,k)) * int32(B(j,k)) }",
        ({"M": 40, "N": 24, "K": 80}, {"M": 9, "N": 20, "K": 13}),
        ("tc_mma_m16n8k32_s8", "tc_cp_async<16>"),
        232,
        edges=({"M": 40, "N": 40, "K": 208}, {"M": 8, "N": 8, "K": 16}, {"M": 36, "N": 35, "K": 69}),
    ),
    "TF32 product": Case(
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 40, "N": 24, "K": 36}, {"M": 9, "N": 21, "K": 13}),
        ("tc_mma_m16n8k8_tf32", "tc_cp_async<16>"),
        232,
        replace(TARGET, tf32=True),
        edges=({"M": 40, "N": 40, "K": 52}, {"M": 8, "N": 8, "K": 4}, {"M": 36, "N": 35, "K": 53}),
    ),
    "double product": Case(
        "def f(double(M,K) A, double(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 30, "N": 33, "K": 20},),
        (),
        255,
        edges=(
            {"M": 35, "N": 37, "K": 61},
            {"M": 5, "N": 9, "K": 3},
            {"M": 5, "N": 9, "K": 0},
            {"M": 36, "N": 36, "K": 61},
            {"M": 36, "N": 36, "K": 3},
            {"M": 36, "N": 36, "K": 0},
        ),
    ),
    "product of a part": Case(
        "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) where k in 2:K-3 }",
        ({"M": 10, "N": 12, "K": 20},),
        ("__shared__",),
        128,
        edges=({"M": 36, "N": 36, "K": 56},),
    ),
    "part of a product": Case(
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) where k in 0:K-3 }",
        ({"M": 10, "N": 12, "K": 20},),
        ("__shared__", "tc_cp_async"),
        128,
        edges=({"M": 36, "N": 36, "K": 56}, {"M": 10, "N": 12, "K": 8}),
    ),
    "softmax": Case(
        "def f(float(M,N) A) -> (O) { m(i) max=! A(i,j)\n e(i,j) = exp(A(i,j) - m(i))\n s(i) +=! e(i,j)\n O(i,j) = e(i,j) / s(i) }",
        ({"M": 5, "N": 37}, {"M": 3, "N": 1030}),
        ("tc_block_reduce",),
        edges=({"M": 9, "N": 37}, {"M": 9, "N": 136}),
    ),
    "layer norm": Case(
        "def f(float(M,N) A, float(N) g) -> (O) { s(i) +=! A(i,j)\n u(i) = s(i) / float(N)\n"
        " v(i) +=! (A(i,j)-u(i))*(A(i,j)-u(i))\n O(i,j) = (A(i,j)-u(i)) * rsqrt(v(i)/float(N) + 0.00001) * g(j) }",
        ({"M": 5, "N": 37}, {"M": 3, "N": 1030}),
        ("tc_block_reduce",),
        edges=({"M": 9, "N": 37}, {"M": 9, "N": 136}),
    ),
    "softmax of warps": Case(
        "def f(float(M,N) A) -> (O) { m(i) max=! A(i,j)\n e(i,j) = exp(A(i,j) - m(i))\n s(i) +=! e(i,j)\n O(i,j) = e(i,j) / s(i) }",
        ({"M": 9, "N": 256}, {"M": 5, "N": 36}, {"M": 1, "N": 1}, {"M": 3, "N": 37}),
        ("tc_warp_reduce<32>", "tc_load<4>", "A_cache"),
        64,
        edges=({"M": 9, "N": 252}, {"M": 9, "N": 253}),
        most={"N": 256},
    ),
    "softmax of blocks": Case(
        "def f(float(M,N) A) -> (O) { m(i) max=! A(i,j)\n e(i,j) = exp(A(i,j) - m(i))\n s(i) +=! e(i,j)\n O(i,j) = e(i,j) / s(i) }",
        ({"M": 2, "N": 2048}, {"M": 3, "N": 1028}, {"M": 1, "N": 1}),
        ("tc_block_reduce<256>", "tc_load<4>", "A_cache"),
        64,
        edges=({"M": 2, "N": 2044}, {"M": 2, "N": 2045}),
        most={"N": 2048},
    ),
    "half softmax of warps": Case(
        "def f(half(M,N) A) -> (O) { m(i) max=! float(A(i,j))\n s(i) +=! exp(float(A(i,j)) - m(i))\n"
        " O(i,j) = half(exp(float(A(i,j)) - m(i)) / s(i)) }",
        ({"M": 9, "N": 256}, {"M": 5, "N": 104}, {"M": 1, "N": 1}),
        ("tc_warp_reduce<32>", "tc_load<4>", "A_cache"),
        64,
        edges=({"M": 9, "N": 136}, {"M": 9, "N": 504}, {"M": 9, "N": 508}, {"M": 9, "N": 509}),
        most={"N": 512},
    ),
    "norm of two": Case(
        "def f(float(B,M,N) X, float(B,M,N) R, float(N) g) -> (O) { h(b,i,j) = X(b,i,j) + R(b,i,j)\n s(b,i) +=! h(b,i,j)\n"
        " v(b,i) +=! (h(b,i,j)-s(b,i)/float(N))*(h(b,i,j)-s(b,i)/float(N))\n"
        " O(b,i,j) = (h(b,i,j)-s(b,i)/float(N)) * rsqrt(v(b,i)/float(N) + 0.00001) * g(j) }",
        ({"B": 2, "M": 5, "N": 127}, {"B": 3, "M": 3, "N": 37}, {"B": 1, "M": 1, "N": 1}),
        ("tc_warp_reduce<32>", "X_cache", "R_cache"),
        64,
        edges=({"B": 2, "M": 9, "N": 125},),
        most={"N": 127},
    ),
    "double mean of blocks": Case(
        "def f(double(M,N) A) -> (O) { s(i) +=! A(i,j)\n O(i,j) = A(i,j) - s(i) / double(N) }",
        ({"M": 3, "N": 2000}, {"M": 2, "N": 515}, {"M": 1, "N": 1}),
        ("tc_block_reduce<256>", "A_cache"),
        64,
        edges=({"M": 3, "N": 2045},),
        most={"N": 2047},
    ),
    "largest of long rows": Case(
        "def f(int32(M,N) A) -> (O) { m(i) max=! A(i,j)\n O(i,j) = A(i,j) - m(i) }",
        ({"M": 2, "N": 16004}, {"M": 1, "N": 1}),
        ("tc_block_reduce<512>", "tc_load<4>", "A_cache"),
        64,
        edges=({"M": 2, "N": 16380}, {"M": 2, "N": 16381}),
        most={"N": 16384},
    ),
    "row sum": Case(
        "def f(float(M,N) A) -> (O) { O(i) +=! A(i,j) }",
        ({"M": 5, "N": 300}, {"M": 1, "N": 1}),
        ("tc_block_reduce",),
        edges=({"M": 9, "N": 70},),
    ),
    "few long rows": Case(
        "def f(float(M,N) A) -> (O) { O(i) +=! A(i,j) }",
        ({"M": 2, "N": 70_000}, {"M": 3, "N": 9}, {"M": 1, "N": 1}),
        ("tc_block_reduce<1024>", "tc_load<4>", "O_rf"),
        edges=({"M": 2, "N": 33_001},),
        typical={"M": 4, "N": 1 << 22},
    ),
    "softmax of few long rows": Case(
        "def f(float(M,N) A) -> (O) { m(i) max=! A(i,j)\n e(i,j) = exp(A(i,j) - m(i))\n s(i) +=! e(i,j)\n O(i,j) = e(i,j) / s(i) }",
        ({"M": 2, "N": 70_004}, {"M": 1, "N": 37}),
        ("tc_block_reduce<1024>", "tc_load<4>", "m_rf", "s_rf"),
        edges=({"M": 2, "N": 33_001},),
        typical={"M": 4, "N": 1 << 22},
    ),
    "norm of groups": Case(
        "def f(float(B,C,H,W) X) -> (O) { s(b) +=! X(b,c,h,w)\n q(b) +=! X(b,c,h,w) * X(b,c,h,w)\n u(b) = s(b) / float(C*H*W)\n"
        " r(b) = rsqrt(q(b) / float(C*H*W) - u(b)*u(b) + 0.00001)\n O(b,c,h,w) = (X(b,c,h,w) - u(b)) * r(b) }",
        ({"B": 2, "C": 3, "H": 21, "W": 72}, {"B": 3, "C": 2, "H": 5, "W": 7}, {"B": 1, "C": 1, "H": 1, "W": 1}),
        ("tc_block_reduce<1024>", "tc_load<4>", "tc_store<4>"),
        edges=({"B": 2, "C": 3, "H": 21, "W": 73},),
        typical={"B": 64, "C": 16, "H": 64, "W": 64},
    ),
    "columns in parts": Case(
        "def f(float(M,N) A) -> (O) { O(j) +=! A(i,j) }",
        ({"M": 600, "N": 36}, {"M": 5, "N": 7}, {"M": 1, "N": 1}),
        ("__shared__", "tc_load<4>", "O_rf_rf"),
        edges=({"M": 2100, "N": 3},),
        typical={"M": 1 << 16, "N": 64},
    ),
    "column sum": Case(
        "def f(float(M,N) A) -> (O) { O(j) +=! A(i,j) }",
        ({"M": 600, "N": 37},),
        edges=({"M": 2100, "N": 3}, {"M": 5, "N": 260}),
    ),
    "total": Case(
        "def f(float(N) A) -> (s) { s +=! A(i)*A(i) }",
        ({"N": 5}, {"N": 20000}),
        ("tc_block_reduce", "blockIdx.x"),
        edges=({"N": 135_000},),  # more parts, of those that `mutants.py` chooses, than the second kernel has threads
    ),
    "largest": Case(
        "def f(float(M,N) A) -> (s) { s max=! A(i,j) }",
        ({"M": 7, "N": 300},),
        ("tc_block_reduce",),
        edges=({"M": 40, "N": 9}, {"M": 300, "N": 9}),
    ),
    "short total": Case("def f(float(7) A) -> (s) { s +=! A(i) }", ({},)),
    "transpose": Case(
        "def f(float(M,N) A) -> (O) { O(j,i) = A(i,j) }",
        ({"M": 70, "N": 45},),
        ("[32][33]", "__syncthreads"),
        edges=({"M": 33, "N": 65},),
    ),
    "axes turned": Case(
        "def f(float(B,M,N) A) -> (O) { O(j,b,i) = 2.0*A(b,i,j) }", ({"B": 3, "M": 40, "N": 35},), ("[33]",)
    ),
    "stencil": Case(
        "def f(float(H,W) X) -> (Y) { Y(i,j) = X(i-1,j)+X(i+1,j)+X(i,j-1)+X(i,j+1)-4.0*X(i,j) }",
        ({"H": 20, "W": 70}, {"H": 3, "W": 3}),
        ("__shared__", "__syncthreads", "X_cache_cache[6][3]"),
        edges=({"H": 10, "W": 40},),
    ),
    "complex numbers": Case(
        "def f(complex64(N) A, complex64(N) B) -> (C) { C(i) = A(i) * B(i) }",
        ({"N": 300}, {"N": 1}),
        ("tc_store<2>",),
    ),
    "product of complex matrices": Case(
        "def f(complex64(M,K) A, complex64(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        ({"M": 40, "K": 20, "N": 34}, {"M": 9, "K": 3, "N": 10}),
        ("__shared__", "__syncthreads"),
    ),
    "values of points": Case(
        "def f(float(N,3) A, float(N) w) -> (C) { C(i,c) = A(i,c) * w(i) + A(i,0) }",
        ({"N": 300}, {"N": 1}),
        ("#pragma unroll",),
    ),
    "gather": Case(
        "def f(float(E,D) L, int32(B,K) I) -> (O) { O(b,d) +=! L(max(min(I(b,k), E-1), 0), d) }",
        ({"E": 9, "D": 40, "B": 5, "K": 3},),
        edges=({"E": 9, "D": 140, "B": 9, "K": 2},),
    ),
    "gathered rows": Case(
        "def f(float(E,D) L, int32(B,K) I, float(D) c) -> (O) { S(b,d) +=! L(max(min(I(b,k), E-1), 0), d)\n O(b,d) = S(b,d) * c(d) }",
        ({"E": 9, "D": 68, "B": 3, "K": 21}, {"E": 9, "D": 35, "B": 5, "K": 3}, {"E": 1, "D": 1, "B": 1, "K": 1}),
        ("__shared__", "tc_load<4>", "threadIdx.y"),
        edges=({"E": 9, "D": 70, "B": 9, "K": 33},),
        typical={"D": 64, "B": 128, "K": 64},
    ),
    "stencil in three dimensions": Case(
        "def f(float(D,H,W) X) -> (Y) { Y(i,j,k) = X(i-1,j,k)+X(i+1,j,k)+X(i,j-1,k)+X(i,j+1,k)+X(i,j,k-1)+X(i,j,k+1)-6.0*X(i,j,k) }",
        ({"D": 12, "H": 12, "W": 36}, {"D": 3, "H": 3, "W": 3}),
        ("__shared__", "X_cache[4][34][34]", "X_cache_cache[3][6][3]", "the window moves on"),
        edges=({"D": 19, "H": 11, "W": 35},),
    ),
    "box filter": Case(
        "def f(half(H,W) X, float(3,3) K) -> (Y) { Y(i,j) +=! float(X(i+a,j+b)) * K(a,b) }",
        ({"H": 12, "W": 36}, {"H": 3, "W": 3}),
        ("__shared__", "X_cache_cache[6][3]"),
        edges=({"H": 19, "W": 70},),
    ),
    "stencil with an edge": Case(
        "def f(int32(H,W) X) -> (Y) { Y(i,j) = i > 0 && i < H-1 && j > 0 && j < W-1 ?"
        " max(max(X(i-1,j),X(i+1,j)),max(X(i,j-1),X(i,j+1))) : X(i,j) where i in 0:H, j in 0:W }",
        ({"H": 10, "W": 36}, {"H": 1, "W": 1}, {"H": 2, "W": 40}),
        ("__shared__",),
        edges=({"H": 17, "W": 65},),
    ),
    "stencil of a temporary": Case(
        "def f(double(D,H,W) X) -> (Y) { T(i,j,k) = X(i,j,k) * X(i,j,k)\n"
        " Y(i,j,k) = T(i-1,j,k)+T(i+1,j,k)+T(i,j-1,k)+T(i,j+1,k)+T(i,j,k-1)+T(i,j,k+1) }",
        ({"D": 12, "H": 12, "W": 36}, {"D": 3, "H": 3, "W": 3}),
        ("__shared__", " % 4]"),
        edges=({"D": 19, "H": 11, "W": 35},),
    ),
}


def scheduled(case: Case, sizes: dict[str, int] | None = None) -> tuple[Program, Schedule]:
    """A program on its default schedule, for unknown sizes or for some."""
    found = program_of(case.text)
    assert found is not None, case.text
    return found[0], default_schedule(*found, case.target, sizes or case.typical, case.most)


def kernels(schedule: Schedule, sizes: dict[str, int]) -> list[Kernel]:
    """Kernels as the launcher makes them for row-major, aligned arrays."""
    return [fit(each, True, sizes) for each in row_major(schedule)]


def row_major(schedule: Schedule) -> list[Kernel]:
    """Kernels for row-major arrays of any sizes."""
    return [
        replace(each, buffers=tuple(replace(b, strided=False) for b in each.buffers)) for each in kernels_of(schedule)
    ]
