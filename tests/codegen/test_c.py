"""Plain C99 of a def: it compiles without a warning, computes what the interpreter computes, and reads as a person would write it."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.compiler.plain import plain_c
from tc_jupyter.function import Options, module_of
from tc_jupyter.program.functions import FUNCTIONS
from tests.c_compiler import call, compiled, needs_compiler
from tests.strategies import arguments, programs, sizes

REFUSED = object()


def run(text: str, inputs: dict[str, np.ndarray], numbers: dict[str, int], name: str = "f"):
    """Results of the C function and of the interpreter, in pairs."""
    analysis = tc.analyze(text)
    assert analysis.ok, text
    found = analysis.functions[name]
    slow = module_of(analysis, Options(text, target="interpreter"))[name]
    try:
        expected = slow(*inputs.values())
    except tc.CallError:
        return REFUSED
    expected = expected if isinstance(expected, tuple) else (expected,)
    function = plain_c(found)
    results = {name: np.empty_like(array) for name, array in zip(found.program.results, expected, strict=True)}
    call(function, compiled(function), numbers, {**inputs, **results})
    return list(zip(results.values(), expected, strict=True))


def same(pairs, tolerance: float = 0.0) -> None:
    for mine, theirs in pairs:
        np.testing.assert_allclose(
            mine.astype("float64"), theirs.astype("float64"), rtol=tolerance, atol=tolerance, equal_nan=True
        )


def test_a_product_as_a_person_would_write_it():
    module = tc.compile("def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }")
    assert (
        module.mv.source("c")
        == """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// mv(float32(R, C) A, float32(C) B) -> (float32 o(R))
// Arrays are row-major. Compile it with `cc -O3`, for all processors with `-fopenmp`.
int mv(int64_t R, int64_t C, const float A[restrict R][C], const float B[restrict C], float o[restrict R])
{
    // o(i) +=! A(i, j) * B(j)
    #pragma omp parallel for
    for (int64_t i = 0; i < R; i++) {
        o[i] = 0.0f;
        for (int64_t j = 0; j < C; j++) {
            o[i] += A[i][j] * B[j];
        }
    }
    return 0;
}
"""
    )


def test_what_the_caller_makes_sure_of_is_said():
    text = "def f(float(N) X, float(K) W, int32(M) I) -> (Y, Z) { Y(i) +=! X(i + k) * W(k) Z(m) = X(I(m)) }"
    made = tc.compile(text).f.source("c")
    assert "// The caller makes sure that K <= N + 1" in made
    assert "max(I)" in made


@needs_compiler
def test_division_rounds_down_and_by_zero_gives_zero():
    text = """def f(int32(N) A, int32(N) B, int8(N) C, float(N) X) -> (Q, R, S, T, U) {
        Q(i) = A(i) / B(i)  R(i) = A(i) % B(i)  S(i) = C(i) / int8(-3)  T(i) = X(i) % -2.5  U(i) = i > 0 ? A(i / 2) : 0
    }"""
    a = np.array([7, -7, 7, -7, -(2**31), 5, 0], np.int32)
    b = np.array([2, 2, -2, -2, -1, 0, 3], np.int32)
    inputs = {"A": a, "B": b, "C": np.array([7, -7, -128, 127, 0, 1, 2], np.int8), "X": a.astype(np.float32) / 3}
    same(run(text, inputs, {"N": 7}))


@needs_compiler
def test_numbers_of_64_bits_are_compared_as_numbers():
    text = "def f(uint64(N) C, int64(M) D) -> (Y, Z) { Y(i, j) = int8(C(i) <= D(j)) + 2*int8(D(j) == C(i))  Z(i) = C(i) > -1 }"
    inputs = {
        "C": np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64),
        "D": np.array([-1, 0, 2**63 - 1, -(2**63)], np.int64),
    }
    same(run(text, inputs, {"N": 4, "M": 4}))


@needs_compiler
def test_integers_wrap_and_floats_saturate():
    text = """def f(int8(N) A, uint16(N) B, double(N) X, int64(N) L) -> (C, D, I, J, K, M, E) {
        C(i) = A(i) * A(i) + A(i)  D(i) = -B(i)  I(i) = int8(X(i))  J(i) = uint32(X(i))  K(i) = int64(X(i))
        M(i) = int16(L(i))  E(i) = X(i) != 0 && bool(A(i))
    }"""
    x = np.array([0, -1.9, 300, 1e300, -np.inf, np.nan, 2.0**63, 4e9])
    inputs = {
        "A": np.array([100, -128, 127, 3, 0, 5, -1, 64], np.int8),
        "B": np.arange(8).astype(np.uint16) * 9000,
        "X": x,
        "L": np.array([2**63 - 1, -(2**63), 70000, 5, -32769, 0, 1, 2], np.int64),
    }
    same(run(text, inputs, {"N": 8}))


@needs_compiler
def test_half_types_are_summed_in_float_and_rounded_once():
    text = "def f(half(M, K) A, bfloat16(K) B) -> (half(M) C, D) { C(i) +=! A(i, k) * 3 D(k) = B(k) * 1.01 }"
    random = np.random.default_rng(5)
    inputs = {
        "A": random.standard_normal((5, 300)).astype(np.float16),
        "B": random.standard_normal(300).astype(ml_dtypes.bfloat16),
    }
    same(run(text, inputs, {"M": 5, "K": 300}), 1e-6)


@needs_compiler
def test_extrema_keep_nan():
    text = "def f(float(N) X) -> (A, B, C) { A min=! X(i) B max=! X(i) C(i) = max(X(i), 1) }"
    for values in ([1.0, np.nan, 2.0], [np.nan, 1.0], [3.0, -np.inf]):
        same(run(text, {"X": np.array(values, np.float32)}, {"N": len(values)}))


@needs_compiler
def test_names_that_c_has_for_itself():
    text = """def double_(float(int_, exp) register, float(exp) 2x) -> (main, volatile) {
        t(i) +=! register(i, sin) * 2x(sin)  main(i) = t(i) + 1  volatile(i) = main(i) * t(i)
    }"""
    inputs = {"register": np.ones((3, 4), np.float32), "2x": np.arange(4, dtype=np.float32)}
    same(run(text, inputs, {"int_": 3, "exp": 4}, "double_"))


LIBRARY = (
    "calloc",
    "qsort",
    "strlen",
    "frexpf",
    "lround",
    "printf",
    "random",
    "system",
    "select",
    "HUGE_VAL",
    "isless",
    "ldexpl",
)


@needs_compiler
@pytest.mark.parametrize("name", LIBRARY)
def test_names_of_the_library(name):
    """A def of such a name would be called by the whole program; a macro is no name for anything."""
    function = plain_c(tc.analyze(f"def {name}(float(N) X) -> (Y) {{ Y(i) = X(i) }}").functions[name])
    assert function.name == f"{name}_"
    x, y = np.arange(3, dtype=np.float32), np.empty(3, np.float32)
    call(function, compiled(function), {"N": 3}, {"X": x, "Y": y})
    np.testing.assert_array_equal(x, y)
    same(run(f"def f(float({name}) X) -> (Y) {{ T(i) = X(i) Y(i) = 2 * T(i) }}", {"X": x}, {name: 3}))


@needs_compiler
def test_products_of_small_integers_do_not_overflow_before_they_wrap():
    text = "def f(uint16(N) X) -> (Y, Z) { Y(i) = X(i) * X(i) Z *=! X(i) }"
    assert "(uint16_t)(1u * X[i] * X[i])" in tc.compile(text).f.source("c")
    assert "(uint16_t)(1u * *Z * X[i])" in tc.compile(text).f.source("c")
    same(run(text, {"X": np.array([65535, 65533, 7], np.uint16)}, {"N": 3}))


@needs_compiler
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int64", "bool"])
def test_functions_of_integers(dtype):
    text = f"def f({dtype}(N) X) -> (A, B, C) {{ A(i) = sign(X(i)) B(i) = abs(X(i)) C(i) = relu(X(i)) }}"
    if tc.analyze(text).ok:
        same(run(text, {"X": np.array([0, 1, 3, -2]).astype(dtype)}, {"N": 4}))


@needs_compiler
def test_comparisons_that_differ():
    text = "def f(bool(N) B, float(N) X) -> (T) { T(i) = (X(i) > 1) ^^ B(i) }"
    same(run(text, {"B": np.array([True, True, False]), "X": np.array([0, 2, 2], np.float32)}, {"N": 3}))


@needs_compiler
def test_a_number_of_a_half_type():
    text = "def f(bfloat16(N) X, bfloat16 a) -> (Y, Z) { Y(i) = X(i) * a  Z(i) = i == 1 ? a : X(i) where i in 0:N }"
    function = plain_c(tc.analyze(text).functions["f"])
    x = np.array([1, 2, 3], ml_dtypes.bfloat16)
    y, z = np.empty_like(x), np.empty_like(x)
    bits = {"X": x, "a": np.float32(2.5).astype(ml_dtypes.bfloat16).view(np.uint16), "Y": y, "Z": z}
    call(function, compiled(function), {"N": 3}, bits)
    assert y.astype(float).tolist() == [2.5, 5, 7.5]
    assert z.astype(float).tolist() == [1, 2.5, 3]


@needs_compiler
@pytest.mark.parametrize("half", ["bfloat16", "half"])
def test_rounding_to_a_half_type_inside_of_a_value(half):
    text = f"""def f({half}(M, K) A, {half}(K) B, float(K) X) -> (C, D, E, F, G) {{
        C(i) +=! {half}(float(A(i, k)) * float(B(k)))
        D(k) = float({half}(X(k))) + 1
        E(k) = (k > 3 ? {half}(X(k)) : B(k)) * 3
        F(k) = max(-{half}(X(k) * 5), abs(B(k)))
        G(i) max=! k > 1 ? {half}(X(k)) : A(i, k)
    }}"""
    random = np.random.default_rng(6)
    dtype = np.float16 if half == "half" else ml_dtypes.bfloat16
    inputs = {
        "A": random.standard_normal((5, 40)).astype(dtype),
        "B": random.standard_normal(40).astype(dtype),
        "X": random.standard_normal(40).astype(np.float32),
    }
    same(run(text, inputs, {"M": 5, "K": 40}), 1e-6)


@needs_compiler
def test_results_of_calls():
    text = """
def g(float(N) X) -> (Y, s) { Y(i) = 2 * X(i)  s +=! X(i) }
def f(float(N) X) -> (A, s) { A, s = g(X)  A(i) += X(i) }
"""
    same(run(text, {"X": np.arange(5, dtype=np.float32)}, {"N": 5}))


NAMED = """
def f(float(N) X) -> (Y) { T(i) = min(X(i), rsqrt(X(i))) Y(i) = int8(T(i)) / int32(2) % (int64(N) + 1) }
"""


@needs_compiler
@pytest.mark.parametrize("old", ["X", "N", "T", "i", "f"])
@pytest.mark.parametrize("new", ["min_f", "rsqrt_f", "int64_t", "INT64_MIN", "to_int8"])
def test_names_of_types_helpers_and_macros(old, new):
    called = {name: new if name == old else name for name in ("X", "N", "f")}
    text = re.sub(rf"\b{old}\b", new, NAMED)
    same(run(text, {called["X"]: np.array([1, 4, 900], np.float32)}, {called["N"]: 3}, called["f"]))


@needs_compiler
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_every_function(dtype):
    pytest.importorskip("scipy")
    floats = [each for each in FUNCTIONS.values() if each.kind != "bits"]  # of integers
    ones = [each for each in floats if each.arity == 1 and not each.variadic]
    several = [each for each in floats if each.arity > 1 and not each.variadic]
    lines = [f"R{n}(i) = {each.name}(X(i))" for n, each in enumerate(ones)]
    lines += [
        f"R{n}(i) = {each.name}({', '.join(['X(i)', 'Y(i)', 'X(i)', 'Y(i)'][: each.arity])})"
        for n, each in enumerate(several, len(ones))
    ]
    names = ", ".join(f"R{n}" for n in range(len(lines)))
    text = f"def f({dtype}(N) X, {dtype}(N) Y) -> ({names}) {{ {' '.join(lines)} }}"
    kind = np.dtype("float32" if dtype == "float" else "float64")
    x = np.array([0.3, -0.7, 1.5, 0.01, 0.999, 3.0, -2.25, 0.5, 25.5, 0.0], kind)
    pairs = run(text, {"X": x, "Y": x[::-1].copy()}, {"N": len(x)})
    for function, (mine, theirs) in zip([*ones, *several], pairs, strict=True):
        np.testing.assert_allclose(
            mine.astype(float), theirs.astype(float), rtol=3e-5 if kind.itemsize == 4 else 1e-11, atol=1e-6 if kind.itemsize == 4 else 1e-14,
            err_msg=function.name,
        )  # fmt: skip


@needs_compiler
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), sizes(), st.integers(0, 9))
def test_random_programs(text, numbers, data):
    check_random(text, numbers, data)


@needs_compiler
@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), sizes(), st.integers(0, 9))
def test_many_random_programs(text, numbers, data):
    check_random(text, numbers, data)


def check_random(text, numbers, data):
    analysis = tc.analyze(text)
    if not analysis.ok:
        return
    program = analysis.functions["f"].program
    if any(statement.accumulate for statement in program.statements if not _written_before(program, statement)):
        return
    pairs = run(text, arguments(program, data, numbers), numbers)
    if pairs is REFUSED:
        return
    for mine, theirs in pairs:
        tolerance = {2: 5e-3, 4: 1e-4, 8: 1e-9}[mine.dtype.itemsize] if mine.dtype.kind == "f" else 0
        known = np.isfinite(theirs.astype("float64")) | (not any(each.operator == "*" for each in program.statements))
        wide = mine.astype("float64")[known], theirs.astype("float64")[known]
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance, err_msg=f"{text}\n{numbers}")


def _written_before(program, statement) -> bool:
    earlier = program.statements[: program.statements.index(statement)]
    return any(each.target == statement.target for each in earlier)
