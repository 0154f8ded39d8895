"""Functions with loops of other languages: the def of a fix computes what the function computes, on the same numbers."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.syntax.imperative.message import of_other_languages
from tests.c_compiler import CC, needs_compiler

# --- C and CUDA against the compiler -----------------------------------------------------------------------------------

SIZES = {"n": 7, "m": 3, "k": 2, "t": 0.25}
"""The numbers that functions get."""
OF_C = """
void shift(float *x, int n) { for (int i = 1; i < n; i++) x[i] = x[i - 1]; }
void back(const float *x, float *y, int n) { for (int i = n - 2; i >= 0; i--) y[i] = y[i + 1] + x[i]; }
void evens(const float *x, float *y, int n) { for (int i = 1; i < n; i += 3) y[i] = x[i - 1]; }
void odds(const float *x, float *y, int n) { for (int i = n - 1; i >= 0; i -= 2) y[i] = x[i]; }
void reversed(const float *x, float *y, int n) { int last = n - 1; for (int i = 0; i <= last; i++) y[i] = x[last - i]; }
void halves(const float *x, float *y, int n) { for (int i = 0; i < n / 2; i++) y[i] = fmaxf(x[2 * i], x[2 * i + 1]); }
void before(const float *x, float *y, int n) { float p = 2; for (int i = 0; i < n; i++) { y[i] = p; p = x[i]; } }
void smooth(const float *x, float *y, int n, float t) {
    float s = 1;
    for (int i = 0; i < n; i++) { s = t * s + x[i]; y[i] = s; }
}
void exclusive(const float *x, float *y, int n) { float s = 0; for (int i = 0; i < n; i++) { y[i] = s; s += x[i]; } }
void of_positive(const float *x, float *y, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) { if (x[i] > 0) s += x[i]; y[i] = s; }
}
void twice(const float *x, float *y, int n) {
    float a = 0, b = 0;
    for (int i = 0; i < n; i++) { a += x[i]; b += a; y[i] = b; }
}
void largest(const float *x, float *y, int n) {
    float m = x[0];
    for (int i = 0; i < n; i++) { if (x[i] > m) m = x[i]; y[i] = x[i] - m; }
}
void rows(float *A, int n, int m) {
    for (int i = 0; i < n; i++) for (int j = 1; j < m; j++) A[i * m + j] += A[i * m + j - 1];
}
void columns(float *A, int n, int m) {
    for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) A[i * m + j] += A[(i - 1) * m + j];
}
void norms(float *x, int n, int m) {
    for (int i = 0; i < n; i++) {
        float s = 0;
        for (int j = 0; j < m; j++) s += x[i * m + j] * x[i * m + j];
        s = sqrtf(s);
        for (int j = 0; j < m; j++) x[i * m + j] /= s;
    }
}
void lower(const float *A, const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) { y[i] = 0; for (int j = 0; j <= i; j++) y[i] += A[i * n + j] * x[j]; }
}
void upper(const float *A, float *B, int n) {
    for (int i = 0; i < n; i++) for (int j = i; j < n; j++) B[i * n + j] = A[j * n + i];
}
void convolved(const float *x, const float *w, float *y, int n, int m) {
    for (int i = 0; i < n; i++) {
        float s = 0;
        for (int k = 0; k < m; k++) { int p = i + k - 1; if (p >= 0 && p < n) s += x[p] * w[k]; }
        y[i] = s;
    }
}
void windows(const float *x, const float *w, float *y, int n, int m, int k) {
    for (int i = 0; i < n - k + 1; i++) for (int j = 0; j < m - k + 1; j++) {
        float s = 0;
        for (int a = 0; a < k; a++) for (int b = 0; b < k; b++) s += x[(i + a) * m + j + b] * w[a * k + b];
        y[i * (m - k + 1) + j] = s;
    }
}
void batches(const float *x, float *y, int n, int m, int k) {
    for (int b = 0; b < n; b++) for (int c = 0; c < m; c++) for (int s = 0; s < k; s++)
        y[(b * m + c) * k + s] = 2 * x[b * m * k + c * k + s];
}
void softmax(const float *x, float *y, int n) {
    float m = -INFINITY, s = 0;
    for (int i = 0; i < n; ++i) m = fmaxf(m, x[i]);
    for (int i = 0; i < n; ++i) { y[i] = expf(x[i] - m); s += y[i]; }
    for (int i = 0; i < n; ++i) y[i] /= s;
}
void negated(float *x, int n) { for (int i = 0; i < n; i++) if (x[i] > 0) { x[i] = -x[i]; x[i] -= 1; } }
void sides(const float *x, float *y, float *z, int n) {
    for (int i = 0; i < n; i++) { float v = x[i]; if (v > 0) { y[i] = v; z[i] = 0; } else { y[i] = 0; z[i] = v; } }
}
void differences(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) { if (i == 0) y[i] = x[i]; else y[i] = x[i] - x[i - 1]; }
}
void histogram(const int *x, float *h, int n) {
    for (int i = 0; i < 5; i++) h[i] = 0;
    for (int i = 0; i < n; i++) h[x[i]] += 1;
}
void masked(const float *x, const int *b, float *y, int n) { for (int i = 0; i < n; i++) y[i] = b[i] ? x[i] : -1; }
int peaks(const float *x, int n) {
    int c = 0;
    for (int i = 1; i < n - 1; i++) if (x[i] > x[i - 1] && x[i] > x[i + 1]) c++;
    return c;
}
int last(const float *x, int n, float t) { int p = -1; for (int i = 0; i < n; i++) if (x[i] > t) p = i; return p; }
int from_end(const float *x, int n, float t) {
    int p = -1;
    for (int i = n - 1; i >= 0; i--) if (x[i] > t) { p = i; break; }
    return p;
}
int smallest(const float *x, int n) {
    float m = x[2]; int p = 2;
    for (int i = 3; i < n; i++) if (x[i] < m) { m = x[i]; p = i; }
    return p;
}
void places(const float *x, int *y, int n, int m) {
    for (int i = 0; i < n; i++) {
        float best = x[i * m]; int p = 0;
        for (int j = 1; j < m; j++) if (best < x[i * m + j]) { p = j; best = x[i * m + j]; }
        y[i] = p;
    }
}
void standard(const float *x, float *y, int n) {
    float m = 0, v = 0;
    for (int i = 0; i < n; i++) m += x[i];
    m /= n;
    for (int i = 0; i < n; i++) v += (x[i] - m) * (x[i] - m);
    v /= n;
    for (int i = 0; i < n; i++) y[i] = (x[i] - m) / sqrtf(v + 1e-5f);
}
void bounds(const float *x, float *lo, float *hi, int n) {
    *lo = x[0]; *hi = x[0];
    for (int i = 1; i < n; i++) { if (x[i] < *lo) *lo = x[i]; if (x[i] > *hi) *hi = x[i]; }
}
int sorted(const float *x, int n) { int ok = 1; for (int i = 1; i < n; i++) if (x[i] < x[i - 1]) ok = 0; return ok; }
int is_there(const float *x, int n, float t) {
    int found = 0;
    for (int i = 0; i < n; i++) { if (x[i] > t) { found = 1; break; } }
    return found;
}
float positive_mean(const float *x, int n) {
    float s = 0; int c = 0;
    for (int i = 0; i < n; i++) if (x[i] > 0) { s += x[i]; c++; }
    return s / c;
}
__global__ void copied(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0 || i >= n) return;
    y[i] = x[i - 1];
}
__global__ void transposed(const float *A, float *B, int n, int m) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n && j < m) B[j * n + i] = A[i * m + j];
}
__global__ void added(const float *x, float *s, int n) {
    int stride = blockDim.x * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(s, x[i]);
}
__global__ void prefixes(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float s = 0; for (int j = 0; j <= i; j++) s += x[j]; y[i] = s; }
}
"""
TEXTS = {re.search(r"(\w+)\(", each)[1]: each for each in re.split(r"\n(?=\S)(?!\})", OF_C.strip())}
_BEFORE = """
#include <math.h>
#define __global__
#define float_add(p, v) (*(p) += (v))
#define atomicAdd float_add
struct { int x, y; } threadIdx, blockIdx, blockDim = {4, 4}, gridDim = {3, 3};
"""
_LAUNCH = """
void launch(void (*f)(void *, void *, int, int), void *a, void *b, int n, int m) {
    for (int t = 0; t < 144; t++) {
        threadIdx.x = t % 4; threadIdx.y = t / 4 % 4; blockIdx.x = t / 16 % 3; blockIdx.y = t / 48;
        if (m || !(threadIdx.y || blockIdx.y)) f(a, b, n, m);
    }
}
"""


def fixed(text: str) -> str:
    """What the fix of the only message writes."""
    rest, (message,) = of_other_languages(text)
    assert not rest.strip()
    assert message.fix is not None, message.help
    (edit,) = message.fix.edits
    assert (edit.span.start, edit.span.end) == (0, len(text))
    return edit.text


def compiled(text: str, folder: Path) -> ctypes.CDLL:
    """The function as C has it."""
    source, library = folder / "f.c", folder / "f.so"
    source.write_text(_BEFORE + text + _LAUNCH, encoding="utf-8")
    subprocess.run([CC, "-w", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


@needs_compiler
@pytest.mark.parametrize("name", TEXTS)
def test_a_function_of_c_and_its_def(name, tmp_path):
    text, library = TEXTS[name], compiled(TEXTS[name], tmp_path)
    written = fixed(text)
    f, draw, given = tc.compile(written)[name], np.random.default_rng(0), dict[str, np.ndarray]()
    for type_, array in re.findall(r"(float|int) \*(\w+)", text):
        values = draw.normal(size=200).astype(np.float32)
        given[array] = draw.integers(0, 5, 200).astype(np.int32) if type_ == "int" else values
    after = {array: values.copy() for array, values in given.items()}
    passed = {array: values.ctypes.data_as(ctypes.c_void_p) for array, values in after.items()}
    numbers = re.findall(r"(float|int) (\w)(?=[,)])", text[: text.index("{")])
    passed |= {each: (ctypes.c_float if type_ == "float" else ctypes.c_int)(SIZES[each]) for type_, each in numbers}
    entry = getattr(library, name)
    entry.restype = {"int": ctypes.c_int, "float": ctypes.c_float}.get(text.split()[0])
    if text.startswith("__global__"):
        library.launch(entry, *[passed[each] for each in given], SIZES["n"], SIZES["m"] if "m" in passed else 0)
        returned = None
    else:
        returned = entry(*passed.values())
    arguments = dict[str, object]()
    for shape, each in re.findall(r"\w+(?:\(([^()]*)\))? (\w+)(?=[,)])", written[: written.index("->")]):
        extents = [int(eval(extent, {"N": 9, "M": 9} | SIZES)) for extent in shape.split(",") if extent]
        arguments[each] = given[each][: math.prod(extents)].reshape(extents) if shape else SIZES[each]
    found = f(**arguments)
    results = re.findall(r"\w+", written[written.index("->") : written.index("{")])
    changed = set[str]()
    for result, value in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
        array = next((each for each in given if result in (each, f"{each}2")), None)
        changed |= {array}
        expected = returned if array is None else after[array][: np.size(value)].reshape(np.shape(value))
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
        if array is not None:  # all that the function has written is in the result
            np.testing.assert_array_equal(after[array][np.size(value) :], given[array][np.size(value) :])
    assert all(each in changed or np.array_equal(after[each], given[each]) for each in given)


# --- Python and Numba against Python -----------------------------------------------------------------------------------

OF_PYTHON = '''
@njit
def counted(x, y):
    n = 0
    for i in range(len(x)):
        if x[i] > 0 and y[i] > 0:
            n += 1
        elif x[i] < 0 and not y[i] < 0:
            n += 2
        else:
            n -= 1
    return n

@njit
def softmax(x):
    """Of one row."""
    m = -np.inf
    for v in x:
        m = max(m, v)
    s = 0.0
    for v in x:
        s += np.exp(v - m)
    y = np.empty(len(x))
    for i in range(len(x)):
        y[i] = np.exp(x[i] - m) / s
    return y

@njit
def windows(A, w):
    H, W = A.shape
    K = w.shape[0]
    out = np.zeros((H - K + 1, W - K + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for a in range(K):
                for b in range(K):
                    out[i, j] += A[i + a, j + b] * w[a, b]
    return out

@numba.jit(nopython=True, parallel=True)
def gauss(x):
    n = len(x)
    y = np.zeros(n)
    for i in numba.prange(1, n - 1):
        y[i] = math.exp(-x[i] ** 2)
    return y

@njit
def scanned(x):
    y = np.empty_like(x)
    s = 0.0
    for i in range(len(x) - 1, -1, -1):
        s += x[i]
        y[i] = s
    return y

@njit
def copied(x):
    y = x.copy()
    for i in range(0, len(x), 2):
        y[i] += 1
    return y

@njit
def product(a, b):
    n = a.shape[0]
    c = np.zeros(2 * n - 1)
    for i in range(n):
        for j in range(n):
            c[i + j] += a[i] * b[j]
    return c

@njit
def triangle(x):
    n = len(x)
    s = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            s += abs(x[i] - x[j])
    return s

@njit
def best(x):
    p = 0
    for i in range(len(x)):
        if x[i] > x[p]:
            p = i
    return p, x[p]

@njit
def first(x):
    for i in range(1, len(x)):
        if x[i] > 1:
            return i
    return -1

@njit
def variance(x):
    mean = 0.0
    for v in x:
        mean += v
    mean /= x.shape[0]
    s = 0.0
    for k, v in enumerate(x):
        if k == 0:
            continue
        s += (v - mean) ** 2
    return s / x.shape[0]

def plain(x, y):
    s = 0.0
    for a, b in zip(x, y):
        if 0 < a < 2:
            s += a * b
    return s
'''
FUNCTIONS = {re.search(r"def (\w+)", each)[1]: each for each in re.split(r"\n\n(?=@|def )", OF_PYTHON.strip())}


def as_is(*_arguments: object, **_options: object):
    """The decorators of Numba, which leave a function as it is."""
    return _arguments[0] if _arguments and callable(_arguments[0]) else as_is


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_python_and_its_def(name):
    text = FUNCTIONS[name]
    numba = SimpleNamespace(jit=as_is, prange=range)
    names = {"np": np, "math": math, "njit": as_is, "numba": numba}
    exec(text, names)
    draw = np.random.default_rng(1)
    shapes = {"A": (6, 7), "w": (3, 3)}
    parameters = re.search(r"def \w+\((.*?)\)", text)[1].split(", ")
    arguments = [draw.normal(size=shapes.get(each, 8)).astype(np.float32) for each in parameters]
    expected = names[name](*[each.copy() for each in arguments])
    found = tc.compile(fixed(text))[name](*arguments)
    for value, wanted in zip(
        *(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True
    ):
        assert np.shape(value) == np.shape(wanted)
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)


KERNEL = """
@cuda.jit
def product(A, B, C):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row = ty + cuda.blockIdx.y * cuda.blockDim.y
    column = tx + cuda.blockIdx.x * cuda.blockDim.x
    if row >= C.shape[0] or column >= C.shape[1]:
        return
    total = 0.
    for k in range(A.shape[1]):
        total += A[row, k] * B[k, column]
    C[row, column] = total
""".strip()


def test_a_kernel_of_numba():
    f = tc.compile(fixed(KERNEL))["product"]
    A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(f(A, B), A @ B)


# --- what has no counterpart -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("void f(float *x, int n) { for (int i = 0; i < n - 1; i++) x[i] = x[i + 1]; }", "each turn needs `x`"),
        ("void f(float *x, int n) { for (int i = 0; i < n; i++) x[i] = x[n - 1 - i]; }", "each turn needs `x`"),
        ("void f(float *x, const int *p, int n) { for (int i = 0; i < n; i++) x[p[i]] = i; }", "two turns of a loop"),
        (
            "float f(float *x, int n) { float s = 0; for (int i = 0; i < n; i++) s = x[i]; return s; }",
            "in its last turn",
        ),
        (
            "void f(float *x, int n) { for (int i = 0; i < n; i++) { if (x[i] > 0) break; x[i] = 1; } }",
            "no point is the last",
        ),
        ("void f(float *x, int n) { int i = 0; while (x[i] > 0) { x[i] = 1; i++; } }", "has no number of turns"),
        ("void f(float **x, int n) { x[0][0] = n; }", "has its sizes"),
        (
            "void f(float *x, int n) { for (int i = 0; i < n; i++) x[i] = frobnicate(x[i]); }",
            "no function `frobnicate`",
        ),
        ("void f(int *x, int n) { for (int i = 0; i < n; i++) x[i] = x[i] % 3; }", "divided towards"),
        ("void f(float *x, int n) { for (int i = 0; i < n; i++) x[i * n + i] = 1; }", "two turns of a loop"),
        ("void f(float *x, int *k) { int m = k[0]; for (int i = 0; i < m; i++) x[i] = m; }", "has no number of turns"),
        ("void f(float *x, int n) { for (int i = 0; i < n; i++) for (int k = 0; k < 3; k++) x[i] *= 2; }", "all turns"),
        ("__global__ void f(float *x) { extern __shared__ float t[]; x[threadIdx.x] = t[0]; }", "what threads share"),
        ("__global__ void f(float *x) { x[(blockIdx.x + 1) * blockDim.x] = 1; }", "an index counts all threads"),
        ("void f(float *x, int n) { for (int i = 0; i < n; i++) x[i] = y[i]; }", "`y` is read"),
        ("@njit\ndef f(x):\n    return [v for v in x]", "only loops"),
    ],
)
def test_what_has_no_def_is_told(text, help):
    _, (message,) = of_other_languages(text)
    assert message.fix is None
    assert help in message.help


@pytest.mark.parametrize("text", [*TEXTS.values(), *FUNCTIONS.values(), KERNEL])
def test_beginnings_of_texts_raise_nothing(text):
    for end in range(0, len(text), 7):
        of_other_languages(text[:end])


def test_other_texts_are_none_of_these():
    for text in (
        "",
        "x = 3",
        "def f(float(N) X) -> (Y) { Y(i) = X(i) }",
        "def f(x): return x(i)",
        "float[.] f(float[.] a) { return a; }",
    ):
        assert of_other_languages(text) == (text, ())
