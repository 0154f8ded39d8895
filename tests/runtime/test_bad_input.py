"""Machines and arrays that nobody hopes for: a slower right answer or a clear error, never a crash."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import call_recipe, kernel, launch

pytest.importorskip("llvmlite")

PRODUCT = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
BATCHED = "def bm(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }"


def none_left(*_args):
    raise MemoryError("0 bytes")


@pytest.mark.parametrize("text", [PRODUCT, BATCHED], ids=["packed once", "packed by every task"])
def test_no_memory_for_packed_operands(text, monkeypatch):
    (function,) = tc.compile(text, target="cpu").values()
    # rows are longer than those that are read where they lie
    shapes = [(9, 5), (5, 300)] if text is PRODUCT else [(2, 9, 5), (2, 5, 300)]
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    monkeypatch.setattr(call_recipe, "aligned_empty", none_left)
    for _ in range(3):  # the recipe finds no memory and leaves the call to the general path
        np.testing.assert_array_equal(function(*arrays), 5)
    monkeypatch.setattr(launch, "aligned_empty", none_left)
    monkeypatch.setattr(kernel, "aligned_empty", none_left)
    others = [np.ones((*shapes[0][:-2], 10, 5), np.float32), arrays[1]]
    for _ in range(2):  # what is planned has its memory already
        with pytest.raises(tc.CallError, match="TC612"):
            function(*others)


def test_subnormal_numbers_are_kept():
    (function,) = tc.compile(PRODUCT, target="cpu").values()
    tiny = np.full((40, 40), 1e-40, np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(function(tiny, np.eye(40, dtype=np.float32)), tiny)


@pytest.mark.parametrize("shapes", [((0, 5), (5, 3)), ((4, 0), (0, 3)), ((4, 5), (5, 0)), ((0, 0), (0, 0))])
def test_empty_extents(shapes):
    (function,) = tc.compile(PRODUCT, target="cpu").values()
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    for _ in range(3):
        np.testing.assert_array_equal(function(*arrays), arrays[0] @ arrays[1])


def in_a_process(change: str) -> str:
    """What a process says whose processor is another one."""
    code = f"""
import numpy as np
from tc_jupyter.runtime import jit
real = jit._host_features()
jit._host_features = lambda: {change}
import tc_jupyter as tc
from tc_jupyter.runtime import cpu
f = tc.compile({PRODUCT!r}, target="cpu").mm
a = np.random.default_rng(0).random((37, 41), dtype=np.float32)
print(cpu.cpu_target().vector_bits, bool(np.allclose(f(a, a.T.copy()), a @ a.T, rtol=1e-4)))
"""
    environment = {**os.environ, "TC_JUPYTER_CACHE": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def test_an_unknown_processor_runs_the_oldest_code():
    assert in_a_process("{}") == "128 True"


def test_features_that_llvm_does_not_know_are_left_out():
    assert in_a_process("{**real, 'avx99': True}").endswith("True")
