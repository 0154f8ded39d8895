"""Sizes with which nothing is computed, or which no array can have: the call ends at once, with a result or a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.loops.ir import Allocate, Block, Buffer, Kernel
from tc_jupyter.program import DType, int64
from tc_jupyter.runtime import nvrtc
from tc_jupyter.runtime.memory import aligned_empty, empty

FREE = "def f(int64 n, int64 m) -> (Y) { Y(i, j) = i - j where i in 0:n, j in 0:m }"
OFFSET = "def f(int64 n, int64 m) -> (Y) { Y(i, j) = i - j where i in 0:n, j in 0:m-5 }"
SUM = "def f(int64 n, int64 m) -> (Y) { Y +=! i * j where i in 0:n, j in 0:m }"
DEEP = "def f(int64 n, int64 m) -> (Y) { Y +=! i * j * k where i in 0:n, j in 0:n, k in 0:m }"
needs_nvrtc = pytest.mark.skipif(nvrtc.available() is not None, reason="NVRTC is not installed")
TARGETS = ("cpu", "interpreter")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "sizes", "shape"),
    [
        (FREE, (1 << 35, 0), (1 << 35, 0)),
        (FREE, (0, 1 << 40), (0, 1 << 40)),
        (OFFSET, (1 << 35, 5), (1 << 35, 0)),
        (SUM, (1 << 62, 0), ()),
        (DEEP, (1 << 40, 0), ()),
    ],
)
def test_loops_around_an_empty_loop_are_not_begun(target, text, sizes, shape):
    function = tc.compile(text, target=target).f
    for _ in range(2):  # the general way, and the short one
        assert function(*sizes).shape == shape


def test_a_loop_that_also_does_something_else_is_run():
    function = tc.compile("def f(int64 n, int64 m) -> (Y) { Y(i) +=! 2 * j where i in 0:n, j in 0:m }").f
    for target in TARGETS:
        assert function.on(target)(3, 0).tolist() == [0, 0, 0]
    assert function(3, 2).tolist() == [2, 2, 2]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [(0, 1 << 62), (1 << 62, 0), (1 << 62, 1 << 62), (0, 1 << 60)])
def test_an_array_that_cannot_be_made_is_a_message(target, sizes):
    function = tc.compile(FREE, target=target).f
    with pytest.raises(tc.CallError, match=r"TC502.*`Y` of shape"):
        function(*sizes)
    with pytest.raises(tc.CallError, match=r"TC502.*`Y` of shape"):
        function.benchmark(*sizes)


@needs_nvrtc
@pytest.mark.parametrize("sizes", [(0, 1 << 62), (1 << 62, 1 << 62)])
def test_a_simulation_says_so_too(sizes):
    with pytest.raises(tc.CallError, match=r"TC502.*`Y` of shape"):
        tc.compile(FREE).f.simulate(*sizes, seconds=None)


@needs_nvrtc
def test_a_simulation_walks_no_empty_rounds():
    assert tc.compile(FREE).f.simulate(1 << 35, 0).outputs[0].shape == (1 << 35, 0)


def test_temporaries_and_copies():
    text = (
        "def f(int64 n, int64 m) -> (Y) { T(i, j) = i + j where i in 0:n, j in 0:m  Y(i) +=! T(i, j) where j in 0:0 }"
    )
    with pytest.raises(tc.CallError, match=r"TC502.*`T` of shape"):
        tc.compile(text, target="interpreter").f(0, 1 << 62)


def test_tensors_of_a_library_that_has_such_shapes():
    torch = pytest.importorskip("torch")
    function = tc.compile("def f(float(N, M) X) -> (Y) { Y(i, j) = X(i, j) + 1 }").f
    for shape in ((0, 1 << 62), (1 << 62, 0)):
        calls: list[Callable[[Any], object]] = [function, function.on("interpreter"), function.judge]
        calls.append(lambda x: function(x, out=torch.empty(x.shape)))
        for call in calls:
            with pytest.raises(tc.CallError, match=r"TC502.*`X` of shape"):
                call(torch.empty(shape))
    repeated = torch.ones(1).expand(1 << 50, 1 << 5)
    assert function.judge(repeated)(np.ones(3, np.float32), np.ones(3, np.float32))


@pytest.mark.parametrize("make", [empty, lambda shape, dtype: aligned_empty(shape, dtype, 64)])
def test_the_makers_of_arrays(make):
    for shape in ((0, 1 << 62), (1 << 62, 0), (1 << 62, 1 << 62)):
        with pytest.raises(MemoryError):
            make(shape, np.dtype(np.int64))
    assert make((0, 1 << 59), np.dtype(np.int64)).shape == (0, 1 << 59)


def test_local_memory_of_the_interpreter():
    local = Buffer("T", DType.INT64, (int64(0), int64(1 << 62)), "local")
    kernel = Kernel("k", (), (), (), Block((Allocate(local, Block(())),)))
    with pytest.raises(MemoryError):
        interpret(kernel, {}, {})
