"""Divisions by sizes in CUDA: each is done once, before the loops that use it, and only where it may be done in advance."""

from __future__ import annotations

import re

import pytest

from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.loops import Block, Buffer, For, Kernel, Store
from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, Size, int64
from tc_jupyter.runtime.cuda import cuda_target
from tc_jupyter.schedule import default_schedule
from tests.running import kernels_of, program_of

TARGET = cuda_target("sm_90")
GROUPS = (
    "def conv(float(N,G,C,H,W) X, float(G,F,C,KH,KW) Y) -> (O) { O(n,g,f,h,w) +=! X(n,g,c,h+kh,w+kw) * Y(g,f,c,kh,kw) }"
)
DIVISION = re.compile(r"tc_floor_(div|mod)\((?!.*, \d+\))")


def bodies_of_loops(text: str) -> list[str]:
    """The lines inside a loop of a kernel."""
    found: list[str] = []
    loops: list[int] = []
    for line in text.partition("__launch_bounds__")[2].splitlines():
        depth = len(line) - len(line.lstrip())
        loops = [each for each in loops if each < depth or not line]
        found += [line] if loops else []
        loops += [depth] if line.lstrip().startswith("for (") else []
    return found


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("sizes", [
    {"N": 32, "G": 32, "F": 4, "C": 4, "H": 56, "W": 56},
    {"N": 32, "G": 32, "F": 16, "C": 16, "H": 14, "W": 14},
    {"N": 32, "G": 32, "F": 32, "C": 32, "H": 7, "W": 7},
])  # fmt: skip
def test_no_loop_divides_by_a_size(sizes: dict[str, int], bits: int):
    """One division per multiply-add took ten times as long (H200)."""
    found = program_of(GROUPS)
    assert found is not None
    (kernel,) = kernels_of(default_schedule(*found, TARGET, sizes))
    text = emit_cuda(kernel, TARGET, bits).text
    assert "quotient" in text
    assert not [line for line in bodies_of_loops(text) if DIVISION.search(line)]


SIZE, ROW, ONE = Size("N", DType.INT64), IndexVar("i", dtype=DType.INT64), IndexVar("j", dtype=DType.INT64)


def text_of(place: Expr, inner: str = "j") -> str:
    """A kernel that reads `X[place]` in a loop over `inner` inside one over `i`."""
    shapes = {"X": "input", "O": "output", "I": "input"}
    dtypes = {"I": DType.INT32}
    buffers = tuple(Buffer(n, dtypes.get(n, DType.FLOAT32), (SIZE,), role=role) for n, role in shapes.items())
    read = Read("X", (place,), dtype=DType.FLOAT32)
    loop = For(inner, int64(0), SIZE, Block((Store("O", (ROW,), read, "+"),)))
    outer = For("i", int64(0), SIZE, Block((loop,)), "blockIdx.x")
    return emit_cuda(Kernel("f", buffers, ("N",), (), Block((outer,))), TARGET).text.partition("extern")[2]


def quotient(left: Expr, op: str = "//") -> Binary:
    """A division by a size."""
    return Binary(op, left, SIZE, DType.INT64)


def test_a_quotient_is_done_before_the_loop_and_parts_come_first():
    text = text_of(quotient(quotient(ROW), "%"))
    assert "const int quotient = tc_floor_div(i, N);  // i // N\n" in text
    assert "const int rest = tc_floor_mod(quotient, N);" in text
    assert "X[rest]" in text


def test_what_depends_on_the_loop_stays_in_it():
    assert "X[tc_floor_div(j, N)]" in text_of(quotient(ONE))


def test_an_index_of_the_same_name_inside_is_another():
    text = text_of(quotient(ROW), "i")
    assert "quotient" not in text
    assert re.search(r"X\[tc_floor_div\(i_\d, N\)\]", text)


def test_what_is_read_is_not_divided_in_advance():
    """An element that the loop may not reach need not exist."""
    assert "quotient" not in text_of(quotient(Read("I", (ROW,), dtype=DType.INT64)))


def test_what_nothing_uses_is_not_declared():
    """`X[i // N, i % N]` is one dimension: both divisions vanish."""
    pair = (quotient(ROW), quotient(ROW, "%"))
    buffers = (Buffer("X", DType.FLOAT32, (SIZE, SIZE)), Buffer("O", DType.FLOAT32, (SIZE,), role="output"))
    store = Store("O", (ROW,), Read("X", pair, dtype=DType.FLOAT32), "+")
    loop = For("j", int64(0), SIZE, Block((store,)))
    outer = For("i", int64(0), SIZE, Block((loop,)), "blockIdx.x")
    text = emit_cuda(Kernel("f", buffers, ("N",), (), Block((outer,))), TARGET).text
    assert "X[i]" in text
    assert "tc_floor" not in text.partition('extern "C"')[2]
