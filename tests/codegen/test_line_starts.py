"""Streams whose tasks begin at the start of a cache line of the result."""

from __future__ import annotations

import ctypes
import platform
from dataclasses import replace

import numpy as np
import pytest

from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.loops import Buffer, Kernel, Store
from tc_jupyter.program import DType, Expr, Size, int64
from tc_jupyter.runtime import cpu
from tests.codegen.llvm_kernels import ISAS, add, kernel, least, loop, mul, op, read, target, var

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="no stores past the caches")

N = Size("N")
o, v = var("o"), var("v")
HERE = add(mul(o, 32), v)


def stream(value: Expr, dtype: DType = DType.FLOAT32, target_index: Expr = HERE, streaming: bool = True) -> Kernel:
    """`Y[i] = value` in vectors of 32 for all `i` below `N`."""
    store = Store("Y", (target_index,), value, streaming=streaming)
    inner = loop("v", least(32, op("-", N, mul(o, 32))), store, kind="vectorize")
    vectors = loop("o", op("//", add(N, 31), int64(32)), inner, kind="parallel")
    buffers = [Buffer("X", dtype, (N,)), Buffer("B", dtype, (N,)), Buffer("Y", dtype, (N,), role="output")]
    return kernel(buffers, "N", vectors)


def begins_at_lines(made: Kernel) -> bool:
    return "before the first line of Y" in emit_llvm(made, target()).text


def test_a_stream_begins_at_a_line():
    assert begins_at_lines(stream(op("+", read("X", HERE), read("B", HERE))))
    assert begins_at_lines(stream(op("+", read("X", HERE), read("B", int64(0)))))


@pytest.mark.parametrize(
    "made",
    [
        stream(read("X", HERE), streaming=False),
        stream(op("+", read("X", HERE), read("X", int64(0)))),
        stream(op("+", read("X", HERE), read("B", add(HERE, -1)))),
        stream(read("X", op("-", op("-", N, int64(1)), HERE))),
        stream(op("+", read("X", HERE, dtype=DType.INT64), HERE), DType.INT64),
    ],
    ids=["into the caches", "the same array elsewhere", "a neighbour", "in reverse", "the position itself"],
)
def test_what_depends_on_its_place_otherwise_begins_at_its_start(made):
    assert not begins_at_lines(made)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8], ids=str)
def test_every_element_is_written_once_wherever_an_array_begins(isa, dtype):
    """With a last cache of 1 kB, so that small results are large; canaries stand around them."""
    kind = DType(np.dtype(dtype).name)
    made = stream(op("+", read("X", HERE, dtype=kind), read("B", HERE, dtype=kind)), kind)
    small = replace(target(isa), llc_bytes=1 << 10)
    source = emit_llvm(made, small)
    assert "before the first line of Y" in source.text
    loaded = cpu.load(source, target=small)
    random = np.random.default_rng(0)
    per_line = 64 // np.dtype(dtype).itemsize
    for count in (0, 1, 2 * per_line, 2047, 2048, 4096, 5003):
        for shift in (0, 1, per_line // 4, per_line - 1):
            x, b = (random.integers(-50, 50, count).astype(dtype) for _ in range(2))
            room = np.full(count + 4 * per_line, 77, dtype)
            first = per_line + (-(room.ctypes.data // room.itemsize) % per_line) + shift
            out = room[first : first + count]
            loaded.run((ctypes.c_int64 * 4)(x.ctypes.data, b.ctypes.data, out.ctypes.data, count))
            np.testing.assert_array_equal(out, x + b)
            assert (room[:first] == 77).all()
            assert (room[first + count :] == 77).all()


def test_one_input_of_a_stream_is_fetched_where_it_is_written_past_the_caches():
    for value, fetched in ((read("X", HERE), True), (op("+", read("X", HERE), read("B", HERE)), False)):
        text = emit_llvm(stream(value), target()).text
        past = text[text.index("\npast:") : text.index("\ncached:")]
        assert ("llvm.prefetch" in past) is fetched
        assert "llvm.prefetch" not in text.replace(past, "").partition("declare")[0]
