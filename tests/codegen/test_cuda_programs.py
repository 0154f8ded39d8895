"""Programs of the language on the default GPU schedule: the gate for every architecture, and the simulator against the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from cuda_kernels import ARCHITECTURES
from cuda_simulation import run_simulated, same
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.codegen.cuda import emit_cuda, fits_int32
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.loops import lower, simplify, verify
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import DType
from tc_jupyter.runtime import nvrtc
from tc_jupyter.runtime.cuda import cuda_target
from tc_jupyter.schedule import default_schedule, infer_symbolic, schedule_of
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.stage import TAILS
from tests.running import in_bounds, number, program_of
from tests.strategies import arguments, drawn, programs, random_schedule, sizes

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

TARGET = cuda_target("sm_80")
CASES = {
    "product": "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "batched product": "def f(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }",
    "softmax": "def f(float(M,N) A) -> (O) { m(i) max=! A(i,j)\n e(i,j) = exp(A(i,j) - m(i))\n s(i) +=! e(i,j)\n O(i,j) = e(i,j) / s(i) }",
    "convolution": "def f(float(C,H,W) X, float(K,C,R,S) Y) -> (Z) { Z(k,h,w) +=! X(c, h + r, w + s) * Y(k,c,r,s) }",
    "half": "def f(half(N) X, half(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) }",
    "bfloat16": "def f(bfloat16(N) X, float a) -> (Y) { Y(i) = a * X(i) }",
    "stencil": "def f(double(N) X) -> (Y) { Y(i) = (X(i-1) + X(i) + X(i+1)) / 3.0 }",
    "gather": "def f(float(E,D) L, int32(B,K) I) -> (O) { O(b,d) +=! L(max(min(I(b,k), E-1), 0), d) }",
    "guard": "def f(float(N) X) -> (Y) { Y(i) = i > 0 ? X(i-1) : 0.0 where i in 0:N }",
    "reversed": "def f(int32(N) X) -> (Y) { Y(i) = X(N - 1 - i) }",
    "integers": "def f(int8(N) X, uint16(N) Z) -> (Y) { Y(i) = int32(X(i)) / 3 + int32(Z(i)) % 7 }",
    "bools": "def f(int32(N) X) -> (Y) { Y(i) = X(i) > 2 && X(i) < 7 }",
    "keywords": "def printf(float(blockIdx) float4, float(blockIdx) asm) -> (threadIdx) { threadIdx(new) = float4(new) + asm(new) }",
    "scalar result": "def f(float(N) X) -> (s) { s +=! X(i) }",
    "origin": "def f(float(N) X) -> (Y) { Y(i) = X(i-2) }",
}


def kernels_of(text: str, numbers: Mapping[str, int] | None = None):
    """Program and kernels on the default GPU schedule, for sizes like these where given."""
    found = program_of(text)
    assert found is not None, text
    schedule = default_schedule(*found, TARGET, numbers)
    return found, [verify(simplify(kernel)) for kernel in lower(infer_symbolic(inject_inline(schedule.graph)))]


@pytest.mark.some(7)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_the_gate(name, arch):
    """Both index variants of every kernel compile for every architecture."""
    for made in kernels_of(CASES[name])[1]:
        for bits in (32, 64):
            assert nvrtc.compile_cuda(emit_cuda(made, TARGET, bits).text, arch).cubin


def stored(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint16) if array.dtype == np.float16 else array


def run_both(text: str, arrays: dict[str, np.ndarray], numbers: dict[str, int], bits: int = 32) -> None:
    """A program on its default schedule for these sizes, in the interpreter and in the simulator."""
    (program, _), kernels = kernels_of(text, numbers)
    run_kernels(text, program, kernels, arrays, numbers, bits)


def run_kernels(
    text: str, program, kernels, arrays: dict[str, np.ndarray], numbers: dict[str, int], bits: int = 32
) -> None:
    """All kernels of a program; nothing may be found but elements that a statement leaves alone."""
    expected, actual = dict(arrays), {name: stored(array).copy() for name, array in arrays.items()}
    values = dict(numbers) | {
        name: int(array) for name, array in arrays.items() if array.ndim == 0 and array.dtype.kind in "iu"
    }
    for made in kernels:
        for each in made.buffers:
            if each.name not in expected:
                shape = tuple(max(0, number(extent, values)) for extent in each.shape)
                expected[each.name] = np.zeros(shape, np.uint16 if each.dtype is DType.BFLOAT16 else each.dtype.value)
                actual[each.name] = stored(expected[each.name]).copy()
        scalars = {name: expected[name].item() for name, _ in made.scalars}
        assert interpret(made, {each.name: expected[each.name] for each in made.buffers}, values, scalars) is None
        fits = fits_int32(made, values | {f"{b.name}.stride.{k}": 1 for b in made.buffers for k in range(len(b.shape))})
        assert fits
        plain = _row_major(made)
        source = emit_cuda(plain, TARGET, bits)
        if min(number(extent, values) for extent in source.launch.grid) > 0:
            result, _ = run_simulated(source, plain, actual, values, scalars)
            assert {finding.kind for finding in result.findings} <= {"unwritten-output"}, (text, result.findings[:2])
    for name in program.results:
        tensor = program.tensor(name)
        held = tensor.view_of or name
        if held in expected:
            same(actual[held], stored(expected[held]), tensor.dtype, 2e-3 if tensor.dtype.bytes == 2 else 1e-5, name)


def _row_major(made):
    return replace(made, buffers=tuple(replace(each, strided=False) for each in made.buffers))


SIZES = {"M": 5, "K": 3, "N": 37, "B": 2, "C": 2, "H": 6, "W": 7, "R": 2, "S": 3, "E": 9, "D": 40, "blockIdx": 11}


@pytest.mark.some(3)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", [name for name in CASES if name != "bfloat16"])
def test_values(name, bits):
    found = program_of(CASES[name])
    assert found is not None
    run_both(CASES[name], arguments(found[0], 1, SIZES), SIZES, bits)


@drawn(20, 60, programs(), sizes(), st.integers(0, 1000))
def test_random_programs(text, numbers, seed):
    found = program_of(text)
    assume(found is not None and in_bounds(*found, numbers))
    assert found is not None
    run_both(text, arguments(found[0], seed, numbers), numbers)


@drawn(12, 40, programs(), sizes(), st.integers(0, 1000), st.data())
def test_random_schedules(text, numbers, seed, data):
    """Splits, caches, vectors, local and shared storage, in one thread and on GPU axes."""
    found = program_of(text)
    assume(found is not None and in_bounds(*found, numbers))
    assert found is not None
    start = default_schedule(*found, TARGET) if data.draw(st.booleans()) else schedule_of(*found)
    schedule = random_schedule(data, start)
    kernels = [verify(simplify(each)) for each in lower(infer_symbolic(inject_inline(schedule.graph)))]
    run_kernels(
        text, found[0], kernels, arguments(found[0], seed, numbers), numbers, data.draw(st.sampled_from((32, 64)))
    )


def blocks_of_vectors(schedule, tail: str):
    """Two tiles: one for the threads of a block, one for each thread."""
    tiles = schedule.split("C", "i", 32, tail=tail).split("C", "i.inner", 4, tail=tail)
    tiles = tiles.vectorize("C", "i.inner.inner").bind("C", "i.outer", "blockIdx.x")
    return tiles.bind("C", "i.inner.outer", "threadIdx.x")


def shared_tiles(schedule, tail: str):
    """What a block reads is in shared memory."""
    tiles = (
        schedule.split("C", "i", 16, tail=tail).bind("C", "i.outer", "blockIdx.x").bind("C", "i.inner", "threadIdx.x")
    )
    return tiles.compute_at("T", "C", "i.outer").storage("T", "shared")


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("change", [blocks_of_vectors, shared_tiles])
def test_tails(change, tail):
    """Of partial tiles of threads, which cannot be fewer in one block, a shorter one is refused."""
    text = "def f(float(N) X) -> (C) { T(i) = 2 * X(i)  C(i) = T(i) + T(i+2) }"
    found = program_of(text)
    assert found is not None
    start = schedule_of(*found)
    if (change, tail) == (shared_tiles, "short"):
        with pytest.raises(CompileError, match="TC414"):
            change(start, tail)
        return
    schedule = change(start, tail)
    kernels = [verify(simplify(each)) for each in lower(infer_symbolic(inject_inline(schedule.graph)))]
    for n in (3, 18, 19, 70):
        run_kernels(text, found[0], kernels, arguments(found[0], 1, {"N": n}), {"N": n})


def test_a_size_of_0_makes_no_temporary_of_negative_length():
    """`T0` is needed from 1 to N - 1."""
    text = "def f(float(N) A) -> (O) { T0(i) +=! A(i) * A(j)\n O(i,j) = T0(j+1) + A(j) where i in 0:N, j in 0:N }"
    found = program_of(text)
    assert found is not None
    schedule, sizes = schedule_of(*found).compute_at("T0", "O", "i"), {"N": 0}
    kernels = [verify(simplify(each)) for each in lower(infer_symbolic(inject_inline(schedule.graph)))]
    run_kernels(text, found[0], kernels, arguments(found[0], 0, sizes), sizes)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [{"N": 7, "M": 5, "K": 20, "L": 3}, {"N": 65, "M": 4, "K": 3, "L": 1}])
def test_threads_that_fill_a_tile_together_stay_together(numbers):
    """The tile of one thread is full and that of another one is not; both copy into shared memory for all."""
    text = """def f(uint64(L,M) B, uint64(M,L,K) A, uint64(N,K) C) -> (T0) {
    T0(l,k) *=! A(k, j, (K-1)-i) * B(j,k) * C(l,i) where i in 0:K
}"""
    (program, _), kernels = kernels_of(text)
    run_kernels(text, program, kernels, arguments(program, 1, numbers), numbers)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), sizes(), st.integers(0, 1000))
def test_random_programs_on_five_architectures(text, numbers, seed):
    """The first of the programs that `python -m tests.campaign --gpu` runs by hundreds."""
    on_five_architectures(text, numbers, seed)


def on_five_architectures(text: str, numbers: dict[str, int], seed: int) -> str:
    """Every kernel of a program compiles for all architectures, and the simulator agrees with the interpreter without a finding."""
    found = program_of(text)
    assume(found is not None and in_bounds(*found, numbers))
    assert found is not None
    for made in kernels_of(text)[1]:
        source = emit_cuda(made, TARGET).text
        for arch in (*ARCHITECTURES, "sm_89"):
            assert nvrtc.compile_cuda(source, arch).cubin
    run_both(text, arguments(found[0], seed, numbers), numbers)
    return "compiled and simulated"


@pytest.mark.parametrize("sizes", [(2, 5), (3, 2), (7, 4), (1, 3)])
def test_ends_that_are_choices_are_ends_as_a_whole(sizes):
    """`j < a ? b : c` is no end of a loop: it never ends where `b` is positive."""
    text = """def f(float(N) X, float(L) W) -> (Y, Z, s) {
        Y(k, j) = (Y(k, j + 2) else 1) * X(k) + W(min(j, L - 1)) where k in 0:N, j in 0:(L < 3 ? L : 3) along -j
        Z(i) = X(i) where i in (L < 3 ? 0 : 1):(N < 4 ? N : N - 1)
        s +=! X(i) * X(i) where i in (L < 3 ? 0 : 1):(N < 4 ? N : N - 1)
    }"""
    n, length = sizes
    x, w = np.random.default_rng(n).random(n, np.float32), np.random.default_rng(length).random(length, np.float32)
    found = tc.compile(text, target="cuda").f.simulate(x, w)
    assert found.findings == ()
    for mine, theirs in zip(found.outputs, tc.compile(text, target="interpreter").f(x, w), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
