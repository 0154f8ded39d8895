"""The table of functions: whoever adds a row is told which form of it is missing."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.loops import interpret
from tc_jupyter.program import bits
from tc_jupyter.program.functions import FUNCTIONS

OPERAND = ("X(i)", "int32(X(i))")  # of floats, and of integers


def test_every_function_has_its_form_in_numpy():
    assert FUNCTIONS.keys() - interpret.FUNCTIONS.keys() <= {"min", "max", "rounded"}  # which are no calls


@pytest.mark.parametrize("kind", ["c", "cuda", "llvm"])
def test_every_function_is_printed_for_every_engine(kind):
    if kind == "llvm":
        pytest.importorskip("llvmlite")
    statements = [
        f"  Y{number}(i) = float({name}({', '.join([OPERAND[each.kind == 'bits']] * each.arity)}))"
        for number, (name, each) in enumerate(FUNCTIONS.items())
    ]
    results = ", ".join(f"Y{number}" for number in range(len(statements)))
    text = f"def f(float(N) X) -> ({results}) {{\n" + "\n".join(statements) + "\n}"
    source = tc.compile(text).f.source(kind)
    assert all(f"Y{number}" in source for number in range(len(statements)))


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def ones(values):
    """How many bits of each number are 1, by the text of the number."""
    width = 8 * values.itemsize
    return [bin(int(each) % (1 << width)).count("1") for each in values.ravel()]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_bits_that_are_1_are_counted_in_the_width_of_the_type(dtype, target):
    if target == "cpu":
        pytest.importorskip("llvmlite")
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, 61, dtype, endpoint=True)
    x[:4] = 0, 1, info.min, info.max
    text = (
        f"def f({dtype}(N) X, {dtype}(M) Z) -> (Y, D) {{ Y(i) = popcount(X(i))  D(i, j) +=! popcount(X(i) ^^ Z(j)) }}"
    )
    found, distances = tc.compile(text, target=target).f(x, x[:5])
    assert found.dtype == np.int32
    assert found.tolist() == ones(x)
    assert distances.ravel().tolist() == ones(x[:, None] ^ x[:5])
    assert bits.counts(x.view(f"u{x.itemsize}")).tolist() == ones(x)
    sac = {"int32": "int", "int64": "long", "uint8": "uint8", "int8": "int8"}.get(dtype)
    if sac is not None:
        found = tc.compile(f"int[*] f({sac}[*] x) {{ return popcount(x); }}", language="sac", target=target).f(x)
        assert found.tolist() == ones(x)


def test_bits_that_are_1_in_subscripts_and_truth_values():
    text = """
    def f(uint8(N) X, float(9) T) -> (Y) { Y(i) = T(popcount(X(i))) }
    def g(float(N) X) -> (y) { y +=! popcount(X(i) > 0) + popcount(7) + popcount(i) }
    """
    module = tc.compile(text, allow=["TC323"])
    x, t = np.arange(256, dtype=np.uint8), np.arange(9, dtype=np.float32)
    assert module.f(x, t).tolist() == ones(x)
    assert module.g(np.array([1, -1, 2], np.float32)) == 2 + 9 + 2


def test_bits_of_floats_are_not_counted():
    (found,) = tc.analyze("def f(float(N) X) -> (Y) { Y(i) = popcount(X(i)) }").diagnostics
    assert found.message == "`popcount` takes integers, not `float32`"
    (found,) = tc.analyze("int[.] f(float[.] x) { return popcount(x); }", language="sac").diagnostics
    assert found.message == "`popcount` takes integers, not `float`"


def test_bits_are_counted_in_c_and_cuda():
    module = tc.compile("def f(int32(N) X, int64(N) Z) -> (Y) { Y(i) = popcount(X(i)) + popcount(Z(i)) }")
    assert "__builtin_popcount(" in module.f.source("c")
    assert "__builtin_popcountll(" in module.f.source("c")
    assert "__popc(" in module.f.source("cuda")
    assert "__popcll(" in module.f.source("cuda")
