"""Tensorized loops on every engine: the interpreter, the CPU, simulated CUDA; with the instructions that they stand for."""

import re
from dataclasses import replace
from itertools import product

import llvm_kernels
import numpy as np
import pytest
import test_cuda_programs
from hypothesis import strategies as st

from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.codegen.llvm.steps import NATIVE
from tc_jupyter.loops import Intrinsic, expand, walk_statements
from tc_jupyter.ranges import from_expr
from tc_jupyter.runtime import nvrtc
from tc_jupyter.schedule import STEPS, schedule_of
from tests.running import _poisoned, default, kernels_of, number, program_of
from tests.strategies import drawn

NAMES = {
    "float16": "half",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
}
TILE = ("i.inner", "j.inner", "k.inner")


def program(name, transposed=False, accumulate=False):
    """A product with the operands of a step."""
    step = STEPS[name]
    left, right = NAMES[step.left.value], NAMES[step.right.value]
    b, dims = ("B(j,k)", "N,K") if transposed else ("B(k,j)", "K,N")
    value = f"A(i,k) * {b}" if step.total.is_float else f"int32(A(i,k)) * int32({b})"
    return f"def f({left}(M,K) A, {right}({dims}) B) -> (C) {{ C(i,j) +={'' if accumulate else '!'} {value} }}"


def tensorized(name, text, stage="C"):
    """One step per visit of the innermost outer loop."""
    step, schedule = STEPS[name], default(text)
    if step.along_depth:
        schedule = schedule.cache_read("B", "C").storage("B.cache", layout=((0, 0), (1, 0), (0, step.extents[2])))
    outer = []
    for axis, factor in zip("ijk", step.extents, strict=True):
        outer.append(axis if factor == 1 else f"{axis}.outer")
        schedule = schedule if factor == 1 else schedule.split(stage, axis, factor)
    axes = axes_of(step)
    return schedule.reorder(stage, *outer, *axes).tensorize(stage, axes, name)


def axes_of(step):
    """The loops that a step stands for."""
    return tuple(leaf for leaf, extent in zip(TILE, step.extents, strict=True) if extent > 1)


def arrays_of(text, numbers, seed=0):
    found = program_of(text)
    assert found is not None
    random, arrays = np.random.default_rng(seed), {}
    for name in found[0].parameters:
        tensor = found[0].tensor(name)
        shape = tuple(from_expr(dim).evaluate(numbers) for dim in tensor.dims)
        low, high = (0, 256) if tensor.dtype.value == "uint8" else (-3, 4)
        values = random.integers(low, high, shape)
        is_bits = tensor.dtype.value == "bfloat16"
        arrays[name] = bits_of(values) if is_bits else values.astype(tensor.dtype.value)
    return arrays


def bits_of(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def values_of(array):
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array.astype("float64")


def expected(text, arrays):
    left, right = (values_of(arrays[name]) for name in "AB")
    return left @ (right.T if "B(j,k)" in text else right)


def on_cpu(schedule, arrays, numbers, contiguous=True, isa=None):
    """The result of the CPU engine on poisoned memory."""
    held = {name: array.copy() for name, array in arrays.items()}
    for each in kernels_of(schedule):
        kernel = replace(each, buffers=tuple(replace(b, strided=b.strided and not contiguous) for b in each.buffers))
        for buffer in kernel.buffers:
            if buffer.name not in held:
                shape = tuple(number(extent, numbers) for extent in buffer.shape)
                bits = buffer.dtype.value == "bfloat16"
                held[buffer.name] = np.full(shape, 0x7FC0, np.uint16) if bits else _poisoned(shape, buffer.dtype.value)
        llvm_kernels.execute(kernel, held, numbers, {}, isa)
    return values_of(held["C"])


def steps_in(schedule):
    return [s.name for k in kernels_of(schedule) for s in walk_statements(k.body) if isinstance(s, Intrinsic)]


SIZES = ({"M": 18, "N": 19, "K": 20}, {"M": 56, "N": 64, "K": 64}, {"M": 3, "N": 2, "K": 1})


@pytest.mark.some(3)
@pytest.mark.parametrize("name", STEPS)
def test_a_step_computes_the_product_on_the_cpu(name):
    text = program(name)
    schedule = tensorized(name, text)
    assert name in steps_in(schedule)
    for numbers, contiguous in product(SIZES, (True, False)):
        arrays = arrays_of(text, numbers)
        np.testing.assert_array_equal(on_cpu(schedule, arrays, numbers, contiguous), expected(text, arrays))


@pytest.mark.some(7)
@pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))
@pytest.mark.parametrize(
    ("name", "transposed"), [*product(STEPS, (False,)), *((name, True) for name in STEPS if name.startswith("mma"))]
)
def test_a_step_computes_the_product_on_a_simulated_gpu(name, transposed):
    text = program(name, transposed)
    schedule = tensorized(name, text)
    kernels = kernels_of(schedule)
    for numbers in SIZES[::2]:
        test_cuda_programs.run_kernels(text, program_of(text)[0], kernels, arrays_of(text, numbers), numbers)
    if name.startswith("mma"):
        ptx = nvrtc.compile_cuda(emit_cuda(kernels[-1], test_cuda_programs.TARGET).text, "compute_80").ptx
        assert f"mma.sync.aligned.{name.split('_')[1]}." in ptx


def warps(name, transposed=False):
    """Two warps per block, shared memory, 2 x 2 steps per visit of shared memory."""
    rows, columns, depth = STEPS[name].extents
    schedule = default(program(name, transposed)).split("C", "i", 2 * rows).split("C", "i.inner", rows)
    schedule = schedule.split("C", "j", 2 * columns).split("C", "j.inner", columns)
    schedule = schedule.split("C", "k", 2 * depth).split("C", "k.inner", depth)
    tile = tuple(f"{axis}.inner.inner" for axis in "ijk")
    outer = ("i.outer", "j.outer", "i.inner.outer", "k.outer", "k.inner.outer", "j.inner.outer")
    schedule = (
        schedule.reorder("C", *outer, *tile).bind("C", "i.outer", "blockIdx.y").bind("C", "j.outer", "blockIdx.x")
    )
    schedule = schedule.bind("C", "i.inner.outer", "threadIdx.y")
    for tensor in "AB":
        copy = f"{tensor}.cache"
        schedule = (
            schedule.cache_read(tensor, "C").compute_at(copy, "C", "k.outer").storage(copy, "shared", padded=True)
        )
        fused = ".".join(schedule.leaves(copy)) + ".fused"
        schedule = schedule.fuse(copy, *schedule.leaves(copy)).split(copy, fused, 32)
        schedule = schedule.bind(copy, f"{fused}.inner", "threadIdx.x")
    return schedule.tensorize("C", tile, name)


@pytest.mark.some(3)
@pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))
@pytest.mark.parametrize("name", [name for name in STEPS if name.startswith("mma")])
def test_warps_share_the_copies_of_a_block(name):
    schedule, text = warps(name), program(name)
    kernels = kernels_of(schedule)
    for numbers in ({"M": 33, "N": 17, "K": 70}, {"M": 32, "N": 16, "K": 64}):
        test_cuda_programs.run_kernels(text, program_of(text)[0], kernels, arrays_of(text, numbers), numbers)
    source = emit_cuda(kernels[-1], test_cuda_programs.TARGET).text
    if STEPS[name].left.bytes == 2:
        assert "ldmatrix.sync" in nvrtc.compile_cuda(source, "compute_80").ptx
    arrays = arrays_of(text, {"M": 33, "N": 17, "K": 70})
    np.testing.assert_array_equal(on_cpu(schedule, arrays, {"M": 33, "N": 17, "K": 70}), expected(text, arrays))


@drawn(12, 25, st.sampled_from(sorted(STEPS)), st.data())
def test_random_tilings_of_steps(name, data):
    """More loops of other factors around a step, in any order, at sizes that fit no tile."""
    step, text = STEPS[name], program(name, accumulate=data.draw(st.booleans()))
    schedule = tensorized(name, text)
    outer = [leaf for leaf in schedule.leaves("C") if leaf not in TILE]
    for leaf in list(outer):
        if data.draw(st.booleans()):
            schedule = schedule.split("C", leaf, data.draw(st.sampled_from((1, 2, 3))))
    outer = [leaf for leaf in schedule.leaves("C") if leaf not in axes_of(step)]
    order = data.draw(st.permutations(outer))
    with_registers = order.index(next(leaf for leaf in order if leaf.startswith("k")))
    if name.startswith("mma") and any(not leaf.startswith("k") for leaf in order[with_registers:]):
        order = sorted(order, key=lambda leaf: leaf.startswith("k"))  # sums of unknown number fit no registers
    schedule = schedule.reorder("C", *order)
    numbers = {size: data.draw(st.integers(1, 40)) for size in "MNK"}
    arrays = arrays_of(text, numbers)
    result = on_cpu(schedule, {**arrays, "C": np.zeros((numbers["M"], numbers["N"]), result_type(text))}, numbers)
    np.testing.assert_array_equal(result, expected(text, arrays))


def result_type(text):
    found = program_of(text)
    assert found is not None
    dtype = found[0].tensor("C").dtype.value
    return "uint16" if dtype == "bfloat16" else dtype


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ["avx512", "avx2"])
@pytest.mark.parametrize("name", sorted(NATIVE))
def test_several_steps_of_a_reduction_at_a_time(name, isa):
    """One instruction where the CPU has it, for contiguous operands; otherwise loops with the same result."""
    text = program(name)
    schedule = tensorized(name, text)
    kernel = kernels_of(schedule)[-1]
    kernel = replace(kernel, buffers=tuple(replace(each, strided=False) for each in kernel.buffers))
    target = llvm_kernels.target(isa)
    found = re.search(r"vpdpbusd|vpdpwssd|pmadd|dpbf16ps", emit_llvm(kernel, target).text)
    assert bool(found) == (STEPS[name].feature in target.features)
    numbers = {"M": 10, "N": 40, "K": 13}
    arrays = arrays_of(text, numbers)
    np.testing.assert_array_equal(on_cpu(schedule, arrays, numbers, isa=isa), expected(text, arrays))


def test_an_outer_product_is_vectors_without_any_annotation():
    plain = (
        default(program("fma_6x16_f32")).tile("C", "i", "j", 6, 16).reorder("C", "i.outer", "j.outer", "k", *TILE[:2])
    )
    stepped = plain.tensorize("C", TILE[:2], "fma_6x16_f32")
    target = llvm_kernels.target("avx512")

    def vectors(schedule):
        (kernel,) = kernels_of(schedule)
        kernel = replace(kernel, buffers=tuple(replace(each, strided=False) for each in kernel.buffers))
        return len(re.findall(r"= (?:fmul|fadd|call).* <16 x float>", emit_llvm(kernel, target).text))

    assert vectors(stepped) >= 6
    assert vectors(stepped) > vectors(plain)


def test_expanded_steps_are_loops():
    (kernel,) = kernels_of(tensorized("mma_m16n8k16_f16", program("mma_m16n8k16_f16")))
    assert not [s for s in walk_statements(expand(kernel).body) if isinstance(s, Intrinsic)]
    kept = expand(kernel, frozenset({"mma_m16n8k16_f16", "ldmatrix", "ldmatrix_trans"}))
    assert kept == kernel


def test_the_loop_nest_shows_the_step():
    shown = tensorized("fma_6x16_f32", program("fma_6x16_f32")).bounds(M=12, N=32, K=5).loops()
    assert shown.splitlines()[-1].strip() == "C(i,j) +=! A(i,k) * B(k,j)   # fma_6x16_f32 over i.inner, j.inner"


def test_the_program_of_a_step_is_found_in_a_default_schedule():
    """A schedule with a step is replayed like any other."""
    name = "fma_6x16_f32"
    schedule = tensorized(name, program(name))
    again = schedule.replay(schedule_of(*program_of(program(name))).graph)
    assert again.graph == schedule.graph
