"""What intrinsics mean on arrays, and that the names and conventions are those of the CUDA code generator."""

import re

import numpy as np
import pytest

from tc_jupyter.codegen.cuda import primitives
from tc_jupyter.loops.intrinsics import INTRINSICS
from tc_jupyter.schedule.intrinsics import STEPS


def test_the_names_are_those_of_the_code_generator():
    table = [line for line in (primitives.__doc__ or "").splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`([a-z]\w*)`", " ".join(line.split("|")[1] for line in table)))
    named |= {"mma_m16n8k16_bf16"}
    of_warps = {name: step.extents for name, step in STEPS.items() if step.unit == "warp"}
    assert named | (STEPS.keys() - of_warps.keys()) == set(INTRINSICS)
    assert of_warps == primitives.STEPS


def bfloat16(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize(
    ("name", "depth", "make", "total"),
    [
        ("mma_m16n8k16_f16", 16, lambda v: v.astype(np.float16), np.float32),
        ("mma_m16n8k16_bf16", 16, bfloat16, np.float32),
        ("mma_m16n8k8_tf32", 8, lambda v: v.astype(np.float32), np.float32),
        ("mma_m16n8k32_s8", 32, lambda v: v.astype(np.int8), np.int32),
    ],
)
def test_a_matrix_step_adds_the_product_of_two_tiles(name, depth, make, total):
    random = np.random.default_rng(0)
    a, b = random.integers(-3, 4, (20, depth + 2)), random.integers(-3, 4, (depth + 1, 12))
    c = np.ones((18, 10), total)
    left, right = make(a), make(b)
    INTRINSICS[name]({}, (c, (1, 2)), (left, (4, 2)), (right, (1, 3)))
    expected = np.ones((18, 10))
    expected[1:17, 2:10] += a[4:20, 2 : 2 + depth] @ b[1 : 1 + depth, 3:11]
    np.testing.assert_array_equal(c, expected)


def test_tf32_rounds_its_operands():
    a, b, c = np.full((16, 8), 1 + 2.0**-12, np.float32), np.ones((8, 8), np.float32), np.zeros((16, 8), np.float32)
    INTRINSICS["mma_m16n8k8_tf32"]({}, (c, (0, 0)), (a, (0, 0)), (b, (0, 0)))
    np.testing.assert_array_equal(c, 8.0)


def test_loads_and_copies():
    source = np.arange(24, dtype=np.float16).reshape(4, 6)
    fragment = np.zeros((4, 6), np.float16)
    INTRINSICS["ldmatrix"]({"rows": 2, "columns": 3}, (fragment, (1, 1)), (source, (0, 2)))
    np.testing.assert_array_equal(fragment[1:3, 1:4], source[0:2, 2:5])
    INTRINSICS["ldmatrix_trans"]({"rows": 3, "columns": 2}, (fragment, (0, 0)), (source, (1, 1)))
    np.testing.assert_array_equal(fragment[0:3, 0:2], source[1:3, 1:4].T)
    row = np.zeros(8, np.float16)
    INTRINSICS["cp_async"]({"bytes": 8}, (row, (2,)), (source, (1, 1)))
    np.testing.assert_array_equal(row, [0, 0, *source[1, 1:5], 0, 0])
    INTRINSICS["cp_async_zero"]({"bytes": 4}, (row, (2,)))
    np.testing.assert_array_equal(row[2:5], [0, 0, source[1, 3]])
    INTRINSICS["cp_async_commit"]({})
    INTRINSICS["cp_async_wait"]({"pending": 0})


@pytest.mark.parametrize(("op", "expected"), [("+", 10), ("*", 24), ("min", 1), ("max", 4)])
def test_threads_combine_their_values(op, expected):
    result, terms = np.zeros(1, np.float32), np.array([[9, 1, 2, 3, 4, 9]], np.float32)
    INTRINSICS["reduce_threads"]({"op": op, "threads": 4, "axis": 1}, (result, (0,)), (terms, (0, 1)))
    assert result[0] == expected


def test_a_tile_outside_its_buffer_is_an_error():
    a = np.zeros((16, 8), np.float32)
    with pytest.raises(IndexError, match="16 x 8"):
        INTRINSICS["mma_m16n8k8_tf32"]({}, (a, (1, 0)), (a, (0, 0)), (a[:8], (0, 0)))
    with pytest.raises(IndexError, match="4 elements"):
        INTRINSICS["cp_async"]({"bytes": 16}, (a[0], (6,)), (a[0], (0,)))
