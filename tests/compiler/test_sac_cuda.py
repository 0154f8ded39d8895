"""`%%sac` functions on the GPU's code, without a GPU: every access of the simulated kernels is checked, and the results are right."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import nvrtc

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason="NVRTC is not installed")

CELL = """
float[*] relax(float[*] a) { return { iv -> a[iv] * 0.9 + 0.5 | 0*shape(a)+1 <= iv < shape(a)-1; iv -> a[iv] }; }
float[.,.] matmul(float[.,.] A, float[.,.] B) { return { [i,j] -> sum({ [k] -> A[i,k] * B[k,j] }) }; }
float[.] softmax(float[.] x) { e = exp(x - maxval(x)); return e / sum(e); }
float[.,.] columns(float[.,.] a) { return { [., j] -> softmax(a[., j]) | [j] < [shape(a)[1]] }; }
int[.,.] holes(int[.,.] A) {
    return { [i,j] -> i+j | [3,3] <= [i,j] < [5,4]; [i,j] -> A[i,j] | [1,1] <= [i,j] < [6,6] };
}
int[.] joined(int[.] v) { return take([1], v) ++ drop([1], drop([-1], v)) + 1 ++ take([-1], v); }
int total() { return with { ([0] <= iv < [10]) : iv[0]; } : fold(+, 0); }
"""
CASES = [
    ("relax", [(300,)]),
    ("relax", [(20, 37)]),
    ("relax", [(4, 5, 6)]),
    ("relax", [(1, 1)]),
    ("matmul", [(17, 9), (9, 33)]),
    ("matmul", [(8, 5), (7, 3)]),
    ("columns", [(12, 33)]),
    ("holes", [(7, 8)]),
    ("joined", [(9,)]),
    ("total", []),
]


@pytest.fixture(scope="module")
def functions():
    return tc.compile(CELL, language="sac", target="interpreter", allow=["TC322"])


def array(name, shape):
    random = np.random.default_rng(len(shape))
    return random.integers(0, 9, shape).astype(np.int32 if name in ("holes", "joined") else np.float32)


@pytest.mark.some(3)
@pytest.mark.parametrize(("name", "shapes"), CASES, ids=[f"{name}{shapes}" for name, shapes in CASES])
def test_simulated_kernels_compute_what_the_interpreter_does(functions, name, shapes):
    arrays = [array(name, shape) for shape in shapes]
    done = functions[name].simulate(*arrays)
    assert done.findings == ()
    np.testing.assert_allclose(done.outputs[0], functions[name](*arrays), rtol=1e-5)


def test_cuda_text_and_resources_for_the_ranks_of_a_call(functions):
    a = array("relax", (6, 7, 8))
    text = functions["relax"].source("cuda", a)
    assert text.count("__global__") == len(functions["relax"].kernels(a))
    assert all(kernel.spill_bytes == 0 for kernel in functions["relax"].resources(a))
