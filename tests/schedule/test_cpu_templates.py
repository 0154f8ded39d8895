"""Every template of the CPU engine against the loop interpreter, at sizes around the edges of its tiles; and how its code looks."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import zip_longest

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.loops import Allocate, Store, walk_statements
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import Read, walk
from tc_jupyter.ranges import Fact, exactly
from tc_jupyter.runtime import cpu, jit
from tc_jupyter.runtime.arguments import parameters_of
from tc_jupyter.runtime.arrays import numpy_dtype
from tc_jupyter.runtime.launch import integers
from tc_jupyter.schedule import SizeClasses, default_schedule, tuning
from tc_jupyter.schedule.target import LINE_BYTES
from tc_jupyter.schedule.templates.register_tiles import tile_of
from tests.running import run

pytest.importorskip("llvmlite")

TARGET = cpu.cpu_target()
LANES = TARGET.vector_bits // 32
TILE = tile_of(TARGET, 32, None, None)
ALONE = tile_of(TARGET, 32, exactly(1), None, has_rows=False)
WIDTH = tuning.IN_FLIGHT * LANES
STRIP = 2 * LINE_BYTES
TOGETHER = tuning.ABREAST


def edges(*widths: int) -> list[int]:
    """1, and around whole tiles."""
    return [1, *sorted({width + shift for width in widths for shift in (-1, 0, 1)})]


ROWS, COLUMNS, SINGLE = edges(TILE.rows), edges(TILE.columns, 2 * TILE.columns), edges(ALONE.columns)
TEMPLATES = {
    "product": ("def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }", {"M": ROWS, "N": COLUMNS, "K": [5, 1]}),
    "convolution of the points inside": (
        "def f(float(C,H,W) X, float(O,C,3,3) K) -> (Y) { Y(o,y,x) +=! 0 <= y+u-1 && y+u-1 < H && 0 <= x+v-1 && x+v-1 < W"
        " ? X(c,y+u-1,x+v-1) * K(o,c,u,v) : 0 where y in 0:H, x in 0:W }",
        {"O": [1, TILE.rows + 1], "W": COLUMNS, "C": [9], "H": [3]},
    ),
    "convolution of every second of the points inside": (
        "def f(float(C,H,W) X, float(O,C,3,3) K) -> (Y) { Y(o,y,x) +=! 2*y+u >= 1 && 2*y+u <= H && 2*x+v >= 1 && 2*x+v <= W"
        " ? X(c,2*y+u-1,2*x+v-1) * K(o,c,u,v) : 0 where y in 0:H/2, x in 0:W/2 }",
        {"O": [1, TILE.rows + 1], "W": [*range(2, 5), 2 * TILE.columns, 2 * TILE.columns + 1], "C": [9], "H": [4]},
    ),
    "products of a band of pairs": (
        "def f(float(N,D) Q, float(N,D) K) -> (S) { S(i,j) +=! i - 9 <= j && j <= i ? Q(i,d) * K(j,d) : 0 where i in 0:N, j in 0:N }",
        {"N": [1, *COLUMNS, 3 * TILE.columns + 5], "D": [3]},
    ),
    "sums behind each element": (
        "def f(float(N) X, float(N) W) -> (R) { R(i) +=! j >= i ? X(j) * W(i) : 0 }",
        {"N": edges(WIDTH, 4 * LANES)},
    ),
    "product of few rows": (
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        {"M": edges(tuning.FEW)[:-1], "N": [TILE.columns, 3 * TILE.columns - 1, 200], "K": [1, 17]},
    ),
    "product of many rows": (
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        {"M": edges(tuning.ROWS_TOGETHER * TILE.rows), "N": edges(TILE.columns), "K": edges(tuning.ONCE_IN)},
    ),
    "product of some rows": (
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        {"M": [9, 33, 64, 65, 128, *edges(tuning.FEW_ROWS)[1:]], "N": [*COLUMNS, 200], "K": [5, 1]},
    ),
    "layer of some rows": (
        "def f(float(B,K) X, float(N,K) W, float(N) b) -> (Y) { T(n,o) +=! X(n,k) * W(o,k)  Y(n,o) = max(T(n,o) + b(o), 0) }",
        {"B": [13, 65, tuning.FEW_ROWS], "N": [*edges(TILE.columns), 2 * TILE.columns + 1], "K": [1, LANES + 1]},
    ),
    "layer of one row": (
        "def f(float(B,K) X, float(N,K) W, float(N) b) -> (Y) { T(n,o) +=! X(n,k) * W(o,k)  Y(n,o) = max(T(n,o) + b(o), 0) }",
        {"B": [1], "N": [1, 2, LANES, 200], "K": edges(LANES, 4 * LANES)},
    ),
    "product of one column": (
        "def f(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }",
        {"B": [2, 1], "M": [3, 1], "N": [1], "K": edges(LANES, 8 * LANES)},
    ),
    "product of one column and one row": (
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        {"M": edges(TILE.rows), "N": edges(TILE.columns, 4 * LANES), "K": [1]},
    ),
    "product of one row": (
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        {"M": [1], "N": [65, *edges(tuning.LINE_COLUMNS, tuning.LINE_COLUMNS + WIDTH)], "K": [*edges(tuning.ABREAST), *edges(tuning.LINES_OF_TASK)[1:]]},
    ),
    "vector and matrix, with relu": (
        "def f(half(K) A, half(K,N) B, half(N) b) -> (Y) { T(j) +=! A(k) * B(k,j)  Y(j) = max(T(j) + b(j), 0) }",
        {"N": [65, *edges(tuning.LINE_COLUMNS)], "K": edges(tuning.ABREAST)},
    ),
    "sums of short columns": (
        "def f(float(M,N) A) -> (o) { o(j) max=! A(k,j) where k in 3:100 }",
        {"M": [100], "N": [1, 65, 200]},
    ),
    "largest of every column": ("def f(int16(M,N) X) -> (s) { s(j) max=! X(i,j) }", {"M": edges(tuning.ABREAST), "N": edges(tuning.LINE_COLUMNS)}),
    "two factors into one column": (
        "def f(float(B,I,J) X, float(P,I) U, float(Q,J) V) -> (Y) { T(b,p,j) +=! U(p,i) * X(b,i,j)  Y(b,p,q) +=! T(b,p,j) * V(q,j) }",
        {"B": [3, 1], "I": [4, 1], "J": edges(LANES), "P": edges(8), "Q": [1]},
    ),
    "moments of one row": (
        "def f(float(N,M) X) -> (o) { s(i) +=! X(i,j)  q(i) +=! X(i,j) * X(i,j)  o(i) = s(i) + q(i) }",
        {"N": [1], "M": edges(LANES, tuning.PART)},
    ),
    "product, transposed": (
        "def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }",
        {"M": ROWS, "N": COLUMNS, "K": edges(LANES)},
    ),
    "product in double": (
        "def f(double(M,K) A, double(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        {"M": ROWS, "N": edges(TILE.columns // 2), "K": [3]},
    ),
    "product in half": (
        "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        {"M": ROWS, "N": edges(TILE.columns), "K": [3]},
    ),
    "product of integers": (
        "def f(int8(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! int32(A(i,k)) * B(k,j) }",
        {"M": ROWS, "N": edges(TILE.columns), "K": [3]},
    ),
    "batched": (
        "def f(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }",
        {"B": [2, 1], "M": ROWS, "N": edges(TILE.columns), "K": [3]},
    ),
    "two factors": (
        "def f(float(B,I,J) X, float(P,I) U, float(Q,J) V) -> (Y) { T(b,p,j) +=! U(p,i) * X(b,i,j)  Y(b,p,q) +=! T(b,p,j) * V(q,j) }",
        {"B": [3, 1], "I": [4], "J": edges(LANES), "P": edges(8), "Q": edges(LANES)},
    ),
    "small products, batched": (
        "def f(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }",
        {"B": [3, 1], "M": [1, 2, 3, 5, 7, 8, 9, 17, 18, 26, 31, 32, 57, 64], "N": [*edges(LANES, 2 * LANES, 3 * LANES), 64], "K": [1, 6]},
    ),
    "few rows by short ones": (
        "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        {"M": [1, 4, 5, 6, 17, 19, 63], "N": [65, 127, 129, 191, 193, tuning.FEW_ROWS - 1, tuning.FEW_ROWS + 1], "K": [7, 1]},
    ),
    "few rows by short ones, transposed": (
        "def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }",
        {"M": [1, 5, 17], "N": [65, 127, tuning.FEW_ROWS - 1], "K": [9, 1]},
    ),
    "small products of doubles, turned": (
        "def f(double(B,K,M) X, double(B,N,K) Y) -> (Z) { Z(b,i,j) +=! X(b,k,i) * Y(b,j,k) }",
        {"B": [2], "M": [*edges(tuning.MOST_POINTERS), 26, 64], "N": edges(LANES // 2, LANES), "K": [5, 1]},
    ),
    "small product, transposed, with relu": (
        "def f(float(M,K) A, float(N,K) B, float(N) b) -> (Y) { T(i,j) +=! A(i,k) * B(j,k)  Y(i,j) = max(T(i,j) + b(j), 0) }",
        {"M": [*edges(tuning.MOST_POINTERS), 17, 34], "N": [*edges(LANES, 2 * LANES), 64], "K": [33, 1]},
    ),
    "small products onto what is there": (
        "def f(float(B,M,K) X, float(B,K,N) Y, float(B,M,N) W) -> (Z) { Z(b,i,j) = W(b,i,j)  Z(b,i,j) += X(b,i,k) * Y(b,k,j) }",
        {"B": [2], "M": [*edges(tuning.MOST_POINTERS), 33], "N": edges(LANES), "K": [4]},
    ),
    "three factors": (
        "def f(float(M,A,B,C) X, float(A,A) U, float(B,B) V, float(C,C) W) -> (O) "
        "{ P(n,x,y,c) +=! X(n,x,y,z) * W(c,z)  Q(n,x,b,c) +=! P(n,x,y,c) * V(b,y)  O(n,a,b,c) +=! Q(n,x,b,c) * U(a,x) }",
        {"M": [2], "A": [1, 4, 9], "B": [5, 8, 3], "C": [7, 16, 17]},
    ),
    "product with itself": (
        "def f(float(K,N) X) -> (C) { C(i,j) +=! X(k,i) * X(k,j) }",
        {"N": [*ROWS, *COLUMNS, tuning.FEW_ROWS + 1], "K": [1, 17]},
    ),
    "transposed product with itself": (
        "def f(float(B,N,K) X) -> (C) { C(b,i,j) +=! X(b,i,k) * X(b,j,k) }",
        {"B": [1, 3], "N": [*ROWS, *COLUMNS], "K": [1, 17]},
    ),
    "distances to itself": (
        "def f(float(N,K) X) -> (D) { D(i,j) +=! (X(i,k) - X(j,k)) * (X(i,k) - X(j,k)) }",
        {"N": [*ROWS, *COLUMNS], "K": [5]},
    ),
    "window of itself": (
        "def f(float(M,K) A) -> (T) { T(i,j) max=! A(l-1, i) - A(6-k, j+k) where j in 1:4 }",
        {"M": [7, 9, 40], "K": [9, 33, 41]},
    ),
    "product of functions": (
        "def f(float(M,K) X, float(K,N) W, float(M) S) -> (C) { C(i,j) +=! exp(X(i,k)) / S(i) * W(k,j) }",
        {"M": edges(TILE.rows), "N": edges(TILE.columns), "K": [1, 17]},
    ),
    "product of chosen rows": (
        "def f(float(D,K) X, int32(M) Id, float(K,N) W) -> (C) { C(i,j) +=! X(Id(i) % D,k) * W(k,j) }",
        {"M": edges(TILE.rows), "N": edges(TILE.columns), "K": [1, 17], "D": [3]},
    ),
    "window of a function": (
        "def f(float(N) X, float(K) F) -> (Y) { Y(i) +=! exp(X(i+k)) * F(k) }",
        {"N": [*edges(TILE.columns), 200], "K": [1, 3]},
    ),
    "distances": (
        "def f(float(N,K) A, float(M,K) B) -> (D) { D(i,j) +=! (A(i,k) - B(j,k)) * (A(i,k) - B(j,k)) }",
        {"N": ROWS, "M": edges(TILE.columns), "K": [4]},
    ),
    "shortest paths": (
        "def f(float(N,K) A, float(K,M) B) -> (D) { D(i,j) min=! A(i,k) + B(k,j) }",
        {"N": ROWS, "M": edges(TILE.columns), "K": [4]},
    ),
    "layer": (
        "def f(float(B,K) X, float(N,K) W, float(N) b) -> (Y) { T(n,o) +=! X(n,k) * W(o,k)  Y(n,o) = max(T(n,o) + b(o), 0) }",
        {"B": ROWS, "N": edges(TILE.columns), "K": [5]},
    ),
    "convolution": (
        "def f(float(B,I,H,W) X, float(O,I,KH,KW) F) -> (Y) { Y(b,o,h,w) +=! X(b,i,h+kh,w+kw) * F(o,i,kh,kw) }",
        {"B": [2], "I": [2], "H": [5], "W": [w + 2 for w in edges(TILE.columns)], "O": ROWS, "KH": [3], "KW": [3]},
    ),
    "group convolution": (
        "def f(float(G,I,H,W) X, float(G,O,I,KH,KW) F) -> (Y) { Y(g,o,h,w) +=! X(g,i,h+kh,w+kw) * F(g,o,i,kh,kw) }",
        {"G": [3], "I": [2], "H": [5], "W": [w + 2 for w in edges(LANES, TILE.columns)], "O": [4, 8], "KH": [3], "KW": [3]},
    ),
    "convolution with stride and dilation": (
        "def f(float(I,H,W) X, float(O,I,KH,KW) F) -> (Y) "
        "{ Y(o,h,w) +=! X(i,2*h+kh,2*w+3*kw) * F(o,i,kh,kw) }",
        {"I": [2], "H": [7], "W": [2 * w + 6 for w in edges(LANES)], "O": ROWS, "KH": [2], "KW": [3]},
    ),
    "depthwise": (
        "def f(float(C,H,W) X, float(C,KH,KW) F) -> (Y) { Y(c,h,w) +=! X(c,h+kh,w+kw) * F(c,kh,kw) }",
        {"C": [2], "H": [6], "W": [w + 2 for w in edges(LANES, 4 * LANES)], "KH": [3], "KW": [3]},
    ),
    "signal": ("def f(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) }", {"N": [n + 4 for n in SINGLE], "K": [5]}),
    "long window": (
        "def f(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) }",
        {"N": [n + 5 * LANES for n in SINGLE], "K": edges(LANES, tuning.ABREAST * LANES)},
    ),
    "sum of look-ups": (
        "def f(float(V,D) E, int32(B,L) I) -> (O) { O(b,d) +=! E(I(b,l),d) }",
        {"V": [7], "D": edges(LANES, 4 * LANES), "B": [3], "L": [4, 1]},
    ),
    "columns": ("def f(float(M,N) X) -> (s) { s(j) +=! X(i,j) }", {"M": [3], "N": SINGLE}),
    "rows": ("def f(float(M,N) X) -> (s) { s(i) +=! X(i,j) }", {"M": [3], "N": edges(LANES, 8 * LANES)}),
    "pointwise": ("def f(float(M,N) X, float(N) b) -> (Y) { Y(i,j) = X(i,j) * 2 + b(j) }", {"M": [3], "N": edges(WIDTH)}),
    "pointwise chain": (
        "def f(float(M,N) X, half(N) b) -> (Y) { T(i,j) = half(exp(X(i,j))) U(i,j) = T(i,j) * b(j) Y(i,j) = T(i,j) - U(i,j) }",
        {"M": [3], "N": edges(WIDTH)},
    ),
    "pointwise chain into sums": (
        "def f(float(M,N) X) -> (s) { T(i,j) = X(i,j) * X(i,j)  s(i) +=! T(i,j) }",
        {"M": [3], "N": edges(WIDTH)},
    ),
    "stencil": (
        "def f(float(M,N) X) -> (Y) { Y(i,j) = X(i,j) + X(i+1,j) + X(i+2,j+1) }",
        {"M": [m + 2 for m in edges(1)], "N": [n + 1 for n in edges(WIDTH)]},
    ),
    "stencil that wraps around": (
        "def f(float(M,N) X) -> (Y) { Y(i,j) = X((i+1)%M,j) - X(i,(j+N-1)%N) + 2*X(i,(j+1)%N) where i in 0:M, j in 0:N }",
        {"M": [3, 1], "N": edges(LANES, WIDTH, 4 * WIDTH)},
    ),
    "rows again and again": (
        "def f(double(M,N) X) -> (Y) { Y(i,j) = X(i%M,(j+N/2)%N) where i in 0:2*M, j in 0:3*N+1 }",
        {"M": [2], "N": [2, 3, *edges(LANES, WIDTH, 4 * WIDTH)]},
    ),
    "a few elements again and again": ("def f(int8(5) X, int8(N) Z) -> (Y) { Y(i) = X((i+3)%5) + Z(i) }", {"N": edges(WIDTH, 8 * WIDTH)}),
    "stencil that stops at the border": (
        "def f(half(M,N) X) -> (Y) { Y(i,j) = X(min(i+1,M-1),j) - X(i,max(j-3,0)) + X(i,min(max(j+2,0),N-1)) where i in 0:M, j in 0:N }",
        {"M": [3], "N": edges(LANES, WIDTH, 4 * WIDTH)},
    ),
    "periodic window": (
        "def f(float(N) X, float(K) W) -> (Y) { Y(i) +=! X((i-k)%N) * W(k) where i in 0:N }",
        {"N": SINGLE, "K": [1, *edges(LANES, tuning.ABREAST * LANES)]},
    ),
    "window of neighbours on a torus": (
        "def f(int8(M,N) X) -> (Y) { Y(i,j) +=! X((i+k+M-1)%M,(j+l+N-1)%N) where i in 0:M, j in 0:N, k in 0:3, l in 0:3 }",
        {"M": [1, 2, 5], "N": edges(LANES, 8 * LANES)},
    ),
    "convolution with zeros around": (
        "def f(float(B,I,H,W) X, float(O,I,KH,KW) F) -> (Y) { Y(b,o,h,w) +=! (h+kh-1>=0 && h+kh-1<H && w+kw-1>=0 && w+kw-1<W ? "
        "X(b,i,h+kh-1,w+kw-1) : 0) * F(o,i,kh,kw) where h in 0:H, w in 0:W }",
        {"B": [2], "I": [2], "H": [5, 1], "W": edges(TILE.columns), "O": ROWS, "KH": [3, 1], "KW": [3, 2]},
    ),
    "convolution of half with zeros around": (
        "def f(half(I,W) X, half(O,I,3) F) -> (Y) { Y(o,w) +=! (w+k>0 && w+k<=W ? X(i,w+k-1) : 0) * F(o,i,k) where w in 0:W }",
        {"I": [2], "W": edges(TILE.columns), "O": ROWS},
    ),
    "convolution with stride and zeros around": (
        "def f(double(H,W) X, double(3,3) F) -> (Y) { Y(h,w) +=! (2*h+p>0 && 2*h+p<=H && 2*w+q>0 && 2*w+q<=W ? X(2*h+p-1,2*w+q-1) : 0) "
        "* F(p,q) where h in 0:(H+1)/2, w in 0:(W+1)/2 }",
        {"H": [4, 1, 7], "W": edges(2 * LANES, 4 * LANES)},
    ),
    "pooling that stops at the border": (
        "def f(float(M,N) X) -> (Y) { Y(i,j) max=! X(min(max(i+k-1,0),M-1),min(max(j+l-1,0),N-1)) "
        "where i in 0:M, j in 0:N, k in 0:3, l in 0:3 }",
        {"M": [1, 5], "N": edges(WIDTH, 4 * LANES)},
    ),
    "pooling": (
        "def f(float(M,N) X) -> (Y) { Y(i,j) max=! X(2*i+k,2*j+l) where k in 0:2, l in 0:2 }",
        {"M": [5], "N": [2 * n + odd for n in edges(WIDTH, 4 * LANES) for odd in (0, 1)]},
    ),
    "windows of three, two apart": (
        "def f(float(M,N) X) -> (Y) { Y(i,j) +=! X(2*i+k,2*j+l) * X(2*i,2*j+l) where k in 0:2, l in 0:3 }",
        {"M": [4], "N": [2 * n + odd for n in edges(WIDTH, 4 * LANES) for odd in (1, 2)]},
    ),
    "windows of doubles": (
        "def f(double(M,N) X) -> (Y) { Y(i,j) max=! X(2*i+k,2*j+l) where k in 0:2, l in 0:2 }",
        {"M": [3], "N": [2 * n for n in edges(LANES, WIDTH)]},
    ),
    "windows of small integers": (
        "def f(int16(M,N) X) -> (Y) { Y(i,j) +=! X(2*i+k,2*j+l) where k in 0:2, l in 0:2 }",
        {"M": [3], "N": [2 * n for n in edges(2 * LANES, 8 * LANES)]},
    ),
    "sums of three rows of pairs": (
        "def f(float(M,N) X) -> (Y) { Y(i,j) +=! X(3*i+k,2*j+l) where k in 0:3, l in 0:2 }",
        {"M": [6], "N": [2 * n for n in edges(LANES, 4 * LANES)]},
    ),
    "products of pairs of rows": (
        "def f(double(B,M,N) X) -> (Y) { Y(b,i,j) *=! X(b,2*i+k,2*j+l) where k in 0:2, l in 0:2 }",
        {"B": [2], "M": [4], "N": [2 * n for n in edges(LANES, 2 * LANES)]},
    ),
    "smallest of windows of triples": (
        "def f(float(M,N) X) -> (Y) { Y(i,j) min=! X(2*i+k,3*j+l) where k in 0:2, l in 0:3 }",
        {"M": [4], "N": [3 * n for n in edges(LANES, 4 * LANES)]},
    ),
    "windows of half": (
        "def f(half(M,N) X) -> (Y) { Y(i,j) max=! X(2*i+k,2*j+l) where k in 0:2, l in 0:2 }",
        {"M": [3], "N": [2 * n for n in edges(LANES, 4 * LANES)]},
    ),
    "transpose": (
        "def f(float(N,M) X) -> (Y) { Y(j,i) = X(i,j) }",
        {"N": edges(16, tuning.EDGE), "M": edges(LANES, STRIP)},
    ),
    "transpose of doubles, batched": (
        "def f(double(N,M,K) X) -> (Y) { Y(j,k,i) = X(i,j,k) }",
        {"N": edges(8), "M": [2], "K": edges(LANES // 2, STRIP // 2)},
    ),
    "rows one after the other": (
        "def f(float(A,B) S) -> (Y) { Y(i) = S(i/B,i%B) * 2 where i in 0:A*B }",
        {"A": [3], "B": [*edges(2 * LANES), 100]},
    ),
    "heads side by side": (
        "def f(half(H,N,D) X) -> (Y) { Y(n,e) = X(e/D,n,e%D) where e in 0:H*D }",
        {"H": [5], "N": [3], "D": [2, *edges(4 * LANES)]},
    ),
    "elements again and again": (
        "def f(double(N) X, double(K) Z) -> (Y) { Y(i) = X(i/K) - Z(i%K) where i in 0:N*K }",
        {"N": [7], "K": [2, *edges(LANES)]},
    ),
    "rows of known length, some": (
        "def f(int16(A,40) S) -> (Y) { Y(i) = i % 3 > 0 ? S((i+5)/40,(i+5)%40) : -1 where i in 0:40*A-5 }",
        {"A": [1, 2, 5, 33]},
    ),
    "two factors of every size": (
        "def f(float(A,B) X, float(C,D) Z) -> (Y) { Y(i,j) = X(i/C,j/D) * Z(i%C,j%D) where i in 0:A*C, j in 0:B*D }",
        {"A": [2], "B": [3], "C": [3], "D": [2, *edges(2 * LANES), 100]},
    ),
    "quarter turn": (
        "def f(float(N,M) X) -> (Y) { Y(i,j) = X(j,M-1-i) where i in 0:M, j in 0:N }",
        {"N": edges(tuning.EDGE), "M": edges(STRIP)},
    ),
    "quarter turn back": (
        "def f(float(N,M) X) -> (Y) { Y(i,j) = X(N-1-j,i) where i in 0:M, j in 0:N }",
        {"N": edges(tuning.EDGE), "M": edges(STRIP)},
    ),
    "complex numbers": (
        "def f(float(N,2) A, float(N,2) B) -> (C) { C(i,p) = p==0 ? A(i,0)*B(i,0)-A(i,1)*B(i,1) : A(i,0)*B(i,1)+A(i,1)*B(i,0) where p in 0:2 }",
        {"N": edges(LANES, 4 * LANES)},
    ),
    "product with a part of pixels": (
        "def f(float(M,K,2) A, float(K,N,3) B) -> (C) { C(i,j) +=! A(i,k,0)*B(k,j,2) - A(i,k,1)*B(k,j,0) }",
        {"M": edges(8), "N": edges(LANES), "K": [3]},
    ),
    "colours into planes": (
        "def f(int8(H,W,C) X, float(C) m) -> (Y) { Y(c,i,j) = X(i,j,c) / 2 - m(c) }",
        {"H": [2], "W": edges(LANES, 4 * LANES), "C": [3, 4, 2, 1, 5]},
    ),
    "planes into colours, bytes": (
        "def f(int8(C,H,W) X) -> (Y) { Y(i,j,c) = X(c,i,j) }",
        {"H": [2, 1], "W": edges(4 * LANES, 8 * LANES), "C": [3, 4, 2, 1, 5]},
    ),
    "points times a number each": (
        "def f(double(B,N,C) X, double(N) s, double(C) t) -> (Y) { Y(b,i,c) = X(b,i,c) * s(i) + t(c) }",
        {"B": [2], "N": edges(LANES // 2, LANES), "C": [2, 3, 4, 5, 1]},
    ),
    "some values of points of half": (
        "def f(half(N,4) X, half(N,M) Z) -> (Y) { Y(i,c) = X(i,3-c) * Z(i,1) where c in 0:3 }",
        {"N": edges(LANES), "M": [2, 3, 7]},
    ),
    "transpose of half": ("def f(half(N,M) X) -> (Y) { Y(j,i) = X(i,j) }", {"N": edges(16, tuning.EDGE), "M": edges(LANES)}),
    "transposed operand": (
        "def f(float(N,M) X, float(M,N) Z) -> (Y) { Y(j,i) = max(X(i,j), Z(j,i)) * 2 }",
        {"N": edges(16), "M": edges(LANES, STRIP)},
    ),
    "total": ("def f(float(M,N) X) -> (s) { s +=! X(i,j) }", {"M": edges(tuning.PART_LINES), "N": [3]}),
    "few results": (
        "def f(float(N) X) -> (S) { S(a) +=! X(n) * X(n+a) where a in 0:2, n in 0:N-2 }",
        {"N": [3, 40, *edges(tuning.PART)[1:]]},
    ),
    "few results of two reductions": (
        "def f(float(C,N) X, float(C,C) W) -> (S) { S(a) max=! abs(X(c,n)) * W(c,a) }",
        {"C": [1, 2, 5, 9], "N": [2000, 2]},
    ),
    "few sums of columns": (
        "def f(float(N,C) X) -> (S) { S(c) +=! X(n,c) }",
        {"C": [1, 2, 3, 8, 17], "N": edges(tuning.PART)},
    ),
    "few columns with themselves": (
        "def f(float(N,C) X) -> (S) { S(a,b) +=! X(n,a) * X(n,b) }",
        {"C": [1, 2, 4, 5], "N": edges(tuning.PART)[1:]},
    ),
    "sums of rows": (
        "def f(float(M,N) X) -> (s) { s(i) +=! X(i,j) }",
        {"M": [1, tuning.TOLD_APART, *edges(9 * TOGETHER), 9 * TOGETHER - 2], "N": [1, *edges(LANES), *edges(5 * LANES)]},
    ),
    "rows of doubles, batched": (
        "def f(double(B,M,N) X, double(N) v) -> (s) { s(b,i) max=! X(b,i,j) * v(j) }",
        {"B": [1, 2, 3], "M": [70, 72, 5], "N": [LANES // 2, 3, 33]},
    ),
    "softmax": (
        "def f(float(M,N) X) -> (O) { m(i) max=! X(i,j)  e(i,j) = exp(X(i,j) - m(i))  s(i) +=! e(i,j)  O(i,j) = e(i,j) / s(i) }",
        {"M": [3], "N": edges(WIDTH)},
    ),
    "general": ("def f(float(N) X) -> (Y) { Y(i) = X(N - 1 - i / 2) where i in 0:N }", {"N": edges(LANES)}),
}  # fmt: skip


def sizes_of(lists: dict[str, list[int]]) -> list[dict[str, int]]:
    """Every size at every edge at least once; shorter lists repeat their last entry."""
    columns = zip_longest(*lists.values())
    last = {name: values[-1] for name, values in lists.items()}
    return [dict(zip(lists, (v or last[n] for n, v in zip(lists, row, strict=True)), strict=True)) for row in columns]


def data(function, sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    arrays = []
    for parameter in parameters_of(function.program):
        shape = tuple(sizes.get(dim, dim) for dim in parameter.dims)
        dtype = numpy_dtype(parameter.dtype)
        values = rng.integers(0, 7, shape) if dtype.kind == "i" else rng.uniform(-1, 1, shape)
        arrays.append(values.astype(dtype))
    return arrays


@pytest.mark.some(15, ci=2)
@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_compute_what_the_interpreter_computes_around_their_tiles(name):
    text, lists = TEMPLATES[name]
    fast, slow = (tc.compile(text, target=target)["f"] for target in ("cpu", "interpreter"))
    for sizes in sizes_of(lists):
        arrays = data(fast, sizes)
        expected = np.asarray(slow(*arrays))
        tolerance = {2: 4e-3, 4: 2e-5, 8: 1e-12}[expected.dtype.itemsize] if expected.dtype.kind == "f" else 0
        for _ in range(2):  # the general path, then the short one
            found = fast(*arrays)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=4 * tolerance, err_msg=str(sizes))


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "name",
    ["product of many rows", "layer of some rows", "product, transposed", "batched", "convolution", "two factors"],
)
@pytest.mark.parametrize("step", [0, 1, 2])
def test_copies_for_whole_tiles_hold_zeros_beyond_the_end(name, step):
    # What happens to be in memory may be a denormal number, and computing with these takes a hundred times longer.
    text, lists = TEMPLATES[name]
    definition = tc.compile(text, target="cpu")["f"].definition()
    sizes = {size: values[min(step, len(values) - 1)] for size, values in lists.items()}
    arrays = dict(zip((p.name for p in parameters_of(definition.program)), data(definition, sizes), strict=True))
    known = definition.numbers_at(sizes).sizes
    for kernel in definition.build(TARGET).kernels:
        for buffer in kernel.buffers:
            *outer, last = integers(buffer.shape, kernel)(known)
            dtype = numpy_dtype(buffer.dtype)
            arrays.setdefault(buffer.name, np.full((*outer, last), np.nan, dtype))
        assert interpret(kernel, arrays, known) is None
    copies = {name: array for name, array in arrays.items() if name.endswith(".cache")}
    assert copies
    for array in copies.values():
        assert not np.isnan(array).any()


@pytest.mark.parametrize(
    "name", ["periodic window", "convolution of half with zeros around", "pooling that stops at the border"]
)
def test_windows_beyond_the_border_are_copied(name):
    """The sum reads the copy at a plain sum of indices; where rows are long every tile has one of its own."""
    text, _ = TEMPLATES[name]
    f = tc.compile(text, target="cpu")["f"]
    kernels = f.definition().build(TARGET).kernels
    inside = [each.buffer.name for each in walk_statements(kernels[-1].body) if isinstance(each, Allocate)]
    assert kernels[0].name == "f_0_X_cache" or "X.cache" in inside
    reductions = [each for each in walk_statements(kernels[-1].body) if isinstance(each, Store) and each.reduce]
    reads = {node.tensor for each in reductions for node in walk(each.value) if isinstance(node, Read)}
    assert reads & {"X", "X.cache"} == {"X.cache"}


CHOSEN = "def f(float(D,K) X, int32(M) Id, float(K,N) W) -> (C) { C(i,j) +=! X(Id(i),k) * W(k,j) }"


@pytest.mark.parametrize("index", ["int8", "uint16", "int64", "uint64"])
def test_chosen_rows_are_copied_for_a_product(index):
    f = tc.compile(CHOSEN.replace("int32", index), target="cpu")["f"]
    x, ids, w = data(f, {"D": 7, "K": 5, "M": 20, "N": 33})
    assert f.definition().build(TARGET).kernels[0].name == "f_0_X_cache"
    np.testing.assert_allclose(f(x, ids.astype(index), w), x[ids] @ w, rtol=1e-5, atol=1e-6)


def test_rows_that_are_not_there_are_not_copied():
    """The check comes before the product, but after the copy."""
    f = tc.compile(CHOSEN, target="cpu")["f"]
    x, ids, w = data(f, {"D": 7, "K": 5, "M": 20, "N": 33})
    for wrong in (-1, 7, 2**31 - 1, -(2**31)):
        ids[11] = wrong
        with pytest.raises(tc.CallError, match=str(wrong)):
            f(x, ids, w)
        assert f(x, ids, w[:, :0]).shape == (20, 0)  # no point reads them
    assert f(x[:0], ids[:0], w).shape == (0, 33)
    unchecked = tc.compile(CHOSEN, target="cpu", check="sizes")["f"]
    assert unchecked(x, ids, w).shape == (20, 33)


def test_rows_that_a_condition_leaves_out_may_be_missing():
    text = CHOSEN.replace("X(Id(i),k) *", "(Id(i) >= 0 && Id(i) < D ? X(Id(i),k) : 2) *")
    f = tc.compile(text, target="cpu")["f"]
    x, ids, w = data(f, {"D": 3, "K": 5, "M": 20, "N": 33})
    ids[:3] = -1, 2**31 - 1, -(2**31)
    rows = np.where(((ids >= 0) & (ids < 3))[:, None], x[np.clip(ids, 0, 2)], 2).astype("f")
    np.testing.assert_allclose(f(x, ids, w), rows @ w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("def f(float(M,K) X, float(K,N) W) -> (C) { C(i,j) +=! fmax(X(i,k), 0.0) * W(k,j) }", {}),
        ("def f(float(M,K) X, float(M) S) -> (C) { C(i) +=! exp(X(i,k)) / S(i) }", {}),
        ("def f(float(D,K) X, int32(M,T) Id) -> (C) { C(i,k) +=! X(Id(i,t),k) }", {}),
        ("def f(float(D,K) X, int32(M,T) Id, float(T,K,O) W) -> (C) { C(i,o) +=! X(Id(i,t),k) * W(t,k,o) }", {}),
        ("def f(float(C,H,W) X) -> (Y) { Y(c,h,w) +=! X(c,2*h+r,2*w+s) / 4 where r in 0:2, s in 0:2 }", {}),
        ("def f(float(B,K) X, float(K,N) W, float(N) S) -> (C) { C(b,j) +=! X(b,k) * (W(k,j) / S(j)) }", {"B": 3}),
    ],
    ids=["cheap", "used once", "rows added up", "larger than the result", "no overlap", "few uses"],
)
def test_what_is_not_computed_before_a_sum(text, sizes):
    made = tc.compile(text, target="cpu")["f"].definition()
    schedule = default_schedule(made.program, made.found.ranges, TARGET, sizes)
    assert not [step for step in schedule.steps if step.name == "cache_read" and dict(step.keywords).get("value")]


def test_a_result_before_a_window_keeps_its_layout():
    text = "def f(float(C,N) X, float(O,C,3) F) -> (T,Y) { T(c,n) = tanh(X(c,n))  Y(o,n) +=! T(c,n+r) * F(o,c,r) }"
    fast, slow = (tc.compile(text, target=target)["f"] for target in ("cpu", "interpreter"))
    for n in (9, 20, 33):
        arrays = data(fast, {"C": 16, "O": 16, "N": n})
        for found, expected in zip(fast(*arrays), slow(*arrays), strict=True):
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


def test_what_lies_as_the_result_is_read_inside_register_tiles():
    """The derivative of distances; where columns leave vectors partly empty, tiles would read beyond them."""
    text = (
        "def f(float(N,K) A, float(M,K) B, float(N,M) D) -> (dB) { dB(j,k) +=! -(2.0 * (D(i,j) * (A(i,k) - B(j,k)))) }"
    )
    f = tc.compile(text, target="cpu").f
    assert "allocate register" in f.source("loops", N=65, M=33, K=128)
    assert "allocate register" not in f.source("loops", N=65, M=33, K=120)
    for n, m, k in ((9, 17, 64), (65, 33, 128), (70, 9, 60)):
        a, b, d = (np.random.default_rng(n).integers(-3, 4, shape).astype("f") for shape in ((n, k), (m, k), (n, m)))
        np.testing.assert_array_equal(f(a, b, d), -2 * (d.T @ a - d.sum(0)[:, None] * b))


def test_sums_of_pixels_and_of_channels_have_one_kernel():
    """Parts of a short outermost loop would be few tasks with sums in memory."""
    for text in (
        "def f(uint8(H,W,3) X) -> (S) { S(c) +=! float(X(h,w,c)) }",
        "def f(float(B,C,H,W) X) -> (S) { S(c) +=! X(b,c,h,w) }",
    ):
        made = tc.compile(text, target="cpu")["f"].definition()
        assert default_schedule(made.program, made.found.ranges, TARGET, {"C": 15}).stages[-1:] == ("S",)
        assert not [
            s for s in default_schedule(made.program, made.found.ranges, TARGET, {"C": 15}).stages if ".rf" in s
        ]


@pytest.mark.parametrize(
    ("statement", "bounded"),
    [
        ("R(i) +=! j > i && X(j) == X(i) ? 1 : 0", True),
        ("R(i) max=! i < j ? X(j) : -inf where i in 0:N", True),
        ("R(i) +=! j + i < N ? X(j + i) : 0 where i in 0:N", False),  # a window
        ("R(i) +=! j <= i ? X(j) : 0 where i in 0:N, j in 0:4", False),
        ("R(i) +=! j <= i ? A(j, i) : 0", False),  # across rows
        ("R(i) +=! X(j) > 0 ? X(i) : 0", False),  # the same points for all
    ],
)
def test_points_that_depend_on_the_column_bound_a_loop_along_them(statement, bounded):
    """Lanes of columns would visit the points of all of them."""
    text = f"def f(float(N) X, float(N,N) A) -> (R) {{ {statement} }}"
    loops = tc.compile(text, target="cpu", allow=["TC234", "TC322", "TC325", "TC326"])["f"].source("loops")
    assert ("for j in i" in loops or "for j in 0:i" in loops) == bounded


def test_the_sums_of_a_single_row_are_tasks():
    text, _ = TEMPLATES["layer of one row"]
    f = tc.compile(text, target="cpu")["f"]
    arrays = data(f, {"B": 1, "N": 200, "K": 100})
    assert "for o in 0:N  # parallel" in f.source("loops", *arrays)


PRODUCT = TEMPLATES["product"][0]


def test_code_of_a_product_is_readable():
    text = tc.compile(PRODUCT, target="cpu")["f"].source("llvm")
    *_, body = (part.split("\n}\n")[0] for part in text.split("define internal void")[1:])
    for loop in ("i.outer", "j.outer", "k"):
        assert re.search(rf"^  ; for {loop} in ", body, re.MULTILINE), loop
    labels = re.findall(r"^for\.(\S+?)(?:\.\d+)?:", body, re.MULTILINE)
    heads = re.findall(r"^  ; for (\S+) in ", body, re.MULTILINE)
    assert len(labels) > 3
    assert set(labels) <= {
        *heads,
        "point",
    }  # every loop has its comment, one word for the loop over all points of a task
    assert re.search(r"; C\.cache\[\S*i\.inner, C\.cache\.j\.inner\] \+= A\.cache\[", body)
    values = re.findall(r"^  %(\S+) = ", body, re.MULTILINE)
    assert len(values) > 50
    assert not [value for value in values if value.isdigit()]


@pytest.mark.skipif(not jit.host()[0].startswith("x86_64"), reason="reads x86 assembly")
@pytest.mark.parametrize(
    "name",
    ["product", "product, transposed", "distances", "layer", "product with itself", "distances to itself"],
)
def test_the_innermost_loop_of_a_product_does_not_spill(name):
    function = tc.compile(TEMPLATES[name][0], target="cpu")["f"]
    blocks = re.split(r"\n\.?L?\w+:", function.source("asm"))
    fused = r"vfmadd" if TARGET.fma else r"addps"
    hot = max(blocks, key=lambda block: len(re.findall(fused, block)))
    assert len(re.findall(fused, hot)) >= TILE.rows * TILE.vectors
    assert not re.search(r"[xyz]mm\d+, -?\d*\(%rsp\)|\(%rsp\), %[xyz]mm", hot)


STRIDED = "def f(float(B,C,H,W) X, float(O,C,P,Q) F) -> (Y) { Y(b,o,h,w) +=! X(b,c,h+p,2*w+q) * F(o,c,p,q) }"


@pytest.mark.parametrize(
    ("text", "width", "kept"),
    [
        (STRIDED, 113, exactly(113)),
        (STRIDED, 512, exactly(512)),
        (STRIDED, 513, Fact(257)),
        (STRIDED.replace("2*w", "w"), 113, Fact(65, 255)),
        (STRIDED.replace("2*w", "w"), 63, exactly(63)),
        (
            STRIDED.replace(" * F(o,c,p,q)", " where o in 0:O, p in 0:P, q in 0:Q"),
            113,
            Fact(65, 255),
        ),  # nothing is multiplied
    ],
)
def test_the_length_of_rows_belongs_to_the_class_where_windows_go_in_wider_steps(text, width, kept):
    function = tc.compile(text, target="cpu", allow=["TC234"]).f
    sizes = {"B": 1, "C": 3, "H": 99, "W": width, "O": 20, "P": 3, "Q": 3}
    _, facts = SizeClasses(function.program, function.definition().found.ranges)(sizes)
    assert dict(facts)["W"] == kept


@pytest.mark.some(4)
@pytest.mark.parametrize("channels", [3, 20, 32])
@pytest.mark.parametrize("width", [64, 65, 113, 128, 200, 511, 514])
def test_strided_windows_of_long_rows(width, channels):
    function = tc.compile(STRIDED, target="cpu").f
    rng = np.random.default_rng(4)
    x = rng.integers(-3, 4, (2, 2, 5, width)).astype(np.float32)
    f = rng.integers(-3, 4, (channels, 2, 3, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, :, ::2]
    np.testing.assert_array_equal(function(x, f), np.einsum("bchwpq,ocpq->bohw", windows, f))


BATCHES = {
    "values": "def f(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }",
    "scores": "def f(float(B,M,K) X, float(B,N,K) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,j,k) }",
    "one": "def f(float(M,K) X, float(K,N) Y) -> (Z) { Z(i,j) +=! X(i,k) * Y(k,j) }",
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("rows, columns, kernels", [(77, 40, 1), (256, 200, 1), (300, 40, 2), (77, 192, 2)])
def test_products_of_up_to_256_rows_are_read_where_they_lie(name, rows, columns, kernels):
    target = replace(cpu.cpu_target(), features=cpu.cpu_target().features | {"avx512vl", "avx512bw"})
    definition = tc.compile(BATCHES[name], target="cpu").f.definition()
    sizes = {"B": 8, "M": rows, "K": 99, "N": columns}
    constants, facts = SizeClasses(definition.program, definition.found.ranges)(sizes)
    schedule = default_schedule(*definition.with_constants(constants), target, dict(facts))
    assert len([stage for stage in schedule.graph.stages if stage.attach.kind == "root"]) >= kernels
    assert ("X.cache" in schedule.stages) == (kernels > 1)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("rows, columns", [(65, 65), (77, 40), (100, 1), (255, 33), (256, 100), (70, 255), (129, 17)])
def test_products_of_up_to_256_rows(name, rows, columns):
    function = tc.compile(BATCHES[name], target="cpu").f
    rng = np.random.default_rng(8)
    for items, steps in ((1, 7), (3, 40)):
        shape = {"values": (items, steps, columns), "scores": (items, columns, steps), "one": (steps, columns)}[name]
        x = rng.integers(-4, 5, (rows, steps) if name == "one" else (items, rows, steps)).astype(np.float32)
        y = rng.integers(-4, 5, shape).astype(np.float32)
        np.testing.assert_array_equal(function(x, y), x @ (np.swapaxes(y, 1, 2) if name == "scores" else y))


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("empty", [("M",), ("N",), ("K",), ("M", "N"), ("M", "N", "K")])
@pytest.mark.parametrize("other", [{}, {"vector_bits": 256, "vector_registers": 16}])
def test_products_without_elements_have_a_schedule(name, empty, other):
    """`f.tune` and `f.default_schedule` ask for it; a call needs none."""
    found = tc.compile(BATCHES[name], target="cpu").f.analysis
    features = TARGET.features - {"avx512f"} if other else TARGET.features
    sizes = {each: 0 if each in empty else 5 for each in found.program.sizes}
    target = replace(TARGET, features=features, **other)
    schedule = default_schedule(found.program, found.ranges, target, sizes)
    assert "Z" in schedule.stages


@pytest.mark.some(3)
@pytest.mark.parametrize("fixed", ["", "PQ", "BWPQ"])
@pytest.mark.parametrize(("height", "width"), [(6, 1), (8, 1), (6, 4), (3, 3), (9, 2), (9, 5)])
def test_what_an_empty_result_would_need_is_not_written(fixed, height, width):
    """The copied input has fewer columns than none, and room for zeros behind them; the interpreter looks at every index."""
    text = "def f(float(B,C,H,W) X, float(O,C,P,Q) K) -> (Y) { Y(b,o,h,w) +=! X(b,c,2*h+p,3*w+q)*K(o,c,p,q) }"
    sizes = {"B": 1, "C": 2, "H": height, "W": width, "O": 4, "P": 7, "Q": 2}
    definition = tc.compile(text, target="cpu").f.definition()
    program, ranges = definition.with_constants([(name, sizes[name]) for name in fixed])
    schedule = default_schedule(program, ranges, TARGET, {name: sizes[name] for name in program.sizes})
    x = np.random.default_rng(0).integers(0, 9, (1, 2, height, width)).astype(np.float32)
    k = np.ones((4, 2, 7, 2), np.float32)
    found = run(schedule, {"X": x, "K": k}, {name: sizes[name] for name in program.sizes})["Y"]
    down, along = (height - 7) // 2 + 1, (width - 2) // 3 + 1
    assert found.shape == (1, 4, max(down, 0), max(along, 0))
    for h, w in np.ndindex(found.shape[2:]):
        np.testing.assert_array_equal(found[0, :, h, w], x[0, :, 2 * h : 2 * h + 7, 3 * w : 3 * w + 2].sum())


def test_a_condition_around_a_product_keeps_its_register_tile():
    """Rows have it in common: it says which lanes have a point, and of the terms of a tile in the middle it is not asked."""
    f = tc.compile(TEMPLATES["convolution of the points inside"][0], target="cpu").f
    tile = f"Y.cache[{TILE.rows}, 1, {TILE.columns}]"
    assert f"register float32 {tile}" in f.source("loops")
    last = f.source("passes").split("-- tile borders:")[-1].split("\n\n")[0]
    sums = [line for line in last.splitlines() if " += " in line]
    assert ["?" in line for line in sums] == [False, True]


def test_lanes_that_all_pass_are_not_asked():
    """Of the three columns of a window one meets the start, and one the end."""
    f = tc.compile(
        "def f(float(C,H,W) X, float(C,3,3) K) -> (Y) { Y(c,y,x) +=! y+u >= 1 && y+u <= H && x+v >= 1 && x+v <= W"
        " ? X(c,y+u-1,x+v-1) * K(c,u,v) : 0 where y in 0:H, x in 0:W }",
        target="cpu",
    ).f
    lanes, masked = f.source("llvm").split("less than a tile")[-1], r"call .* @llvm.masked.load[^(]*\(ptr %X"
    assert len(re.findall(masked, lanes)) == 9
    assert len(re.findall(r"= select <\d+ x i1> %\S+, <\d+ x float>", lanes)) == 6


def test_a_tile_without_any_point_is_not_summed():
    """A condition that no term of a sum changes is asked once, for all pairs of a tile."""
    loops = tc.compile(TEMPLATES["products of a band of pairs"][0], target="cpu").f.source("loops").splitlines()
    (at,) = (number for number, line in enumerate(loops) if re.match(r"\s*for S.cache.d in 0:D", line))
    assert re.match(r"\s*if 0 <= .* && 0 <= ", loops[at - 1])
