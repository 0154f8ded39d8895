"""Fragments and pipelines as loop IR: what the passes write, that it means the same, and what they leave alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.codegen.cuda.fragments import with_fragments
from tc_jupyter.codegen.cuda.pipeline import pipelined
from tc_jupyter.loops import Allocate, Barrier, For, Intrinsic, Kernel, verify, walk_statements
from tc_jupyter.loops.interpret import interpret
from tests.gpu.cases import CASES, TARGET, kernels, scheduled
from tests.running import number
from tests.strategies import arguments

SIZES = {"M": 16, "N": 8, "K": 40}


def kernel_of(name: str, sizes: dict[str, int] = SIZES) -> Kernel:
    """The only kernel of a template, with small tiles."""
    _, schedule = scheduled(CASES[name], CASES[name].small)
    (made,) = kernels(schedule, sizes)
    return made


def intrinsics(kernel: Kernel) -> list[str]:
    return [stmt.name for stmt in walk_statements(kernel.body) if isinstance(stmt, Intrinsic)]


def computed(kernel: Kernel, name: str, sizes: dict[str, int] = SIZES) -> np.ndarray:
    program, _ = scheduled(CASES[name])
    arrays = arguments(program, 3, sizes)
    shape = [number(extent, sizes) for extent in kernel.buffers[-1].shape]
    arrays["C"] = np.zeros(shape, kernel.buffers[-1].dtype.value)
    interpret(verify(kernel), arrays, sizes)
    return arrays["C"]


@pytest.mark.parametrize("name", ["half product, transposed", "TF32 product"])
def test_instructions_mean_the_loops(name):
    """The interpreter computes the same before the passes, with matrix steps, and with the pipeline too."""
    plain = kernel_of(name)
    assert intrinsics(plain) == []
    stepped = with_fragments(plain)
    assert any(each.startswith("mma_") for each in intrinsics(stepped))
    piped = pipelined(stepped, True)
    assert {"cp_async", "cp_async_zero", "cp_async_commit", "cp_async_wait"} <= set(intrinsics(piped))
    expected = computed(plain, name)
    assert np.array_equal(computed(stepped, name), expected)
    assert np.array_equal(computed(piped, name), expected)


def widths(kernel: Kernel) -> set[int]:
    """Bytes of the asynchronous copies."""
    copies = (s for s in walk_statements(pipelined(kernel, True).body) if isinstance(s, Intrinsic))
    return {int(dict(copy.attributes)["bytes"]) for copy in copies if copy.name == "cp_async"}


def test_copies_are_as_wide_as_rows_are_aligned():
    assert widths(kernel_of("half product", {"M": 9, "N": 8, "K": 40})) == {16}
    assert widths(kernel_of("half product", {"M": 9, "N": 8, "K": 36})) == {16, 8}
    assert widths(kernel_of("half product", {"M": 9, "N": 8, "K": 37})) == set()  # below 4 bytes: not asynchronous
    assert widths(kernel_of("product", {"M": 9, "N": 9, "K": 9})) == {4}
    assert widths(kernel_of("double product", {"M": 9, "N": 9, "K": 9})) == {8}


def test_a_device_without_asynchronous_copies_has_one_stage():
    made = kernel_of("product")
    assert pipelined(made, False) == made
    assert any(isinstance(s, Allocate) and s.buffer.stages == 3 for s in walk_statements(made.body))


def test_a_pipeline_inside_a_loop_waits_for_the_round_before():
    """The stages are free again only when all threads have read them."""
    made = pipelined(kernel_of("convolution", {"C": 5, "H": 6, "W": 9, "K": 4, "R": 3, "S": 2}), True)
    windows = [stmt for stmt in walk_statements(made.body) if isinstance(stmt, For) and stmt.axis == "s"]
    assert windows
    first = next(stmt for stmt in walk_statements(windows[0].body) if isinstance(stmt, Barrier | Intrinsic))
    assert isinstance(first, Barrier)


def test_fragments_that_no_instruction_fills_are_arrays_of_each_thread():
    """A product in another type: the same values, without tensor cores."""
    made = kernel_of("half product")
    wide = replace(made, body=_in_double(made.body))
    text = emit_cuda(wide, TARGET).text
    assert "tc_mma" not in text
    assert "C_cache[" in text


def _in_double(block):
    from tc_jupyter.loops import with_blocks
    from tc_jupyter.program import DType

    def each(stmt):
        if isinstance(stmt, Allocate) and stmt.buffer.name == "C.cache":
            stmt = replace(stmt, buffer=replace(stmt.buffer, dtype=DType.FLOAT64))
        return with_blocks(stmt, _in_double)

    return replace(block, body=tuple(map(each, block.body)))
