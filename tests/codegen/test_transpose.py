"""Results that are turned around: past the caches in whole lines, and in one version where masks are free."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen import KernelSource
from tc_jupyter.compiler.definition import ROW_MAJOR
from tc_jupyter.runtime import cpu
from tc_jupyter.schedule import SizeClasses, Target
from tests.codegen.llvm_kernels import AVX512, ISAS, target

TRANSPOSE = "def f(float(N,M) X) -> (Y) { Y(j,i) = X(i,j) }"
CONVOLUTION = """def f(float(B,IP,H,W) X, float(OP,IP,KH,KW) F) -> (Y) {
    Y(b,op,h,w) +=! X(b,ip,h+kh,w+kw) * F(op,ip,kh,kw)
}"""


def sources(text: str, made_for: Target, *shapes: tuple[int, ...]) -> tuple[KernelSource, ...]:
    """The kernels of a call with arrays of these shapes."""
    definition = tc.compile(text, target="cpu")["f"].definition()
    inputs = definition.inputs([np.zeros(shape, np.float32) for shape in shapes])
    layout = definition.layout(inputs, {}, definition.numbers_at(inputs.sizes), "cpu")
    return definition.build(made_for, layout).sources


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", [(1024, 64), (1088, 128), (1031, 70), (1024, 71), (1025, 64)])
def test_a_large_result_is_written_past_the_caches_if_all_its_rows_begin_with_lines(isa, shape):
    """Behind one jump for a block, and else as it was; caches of no size make the results large."""
    small = replace(target(isa), llc_bytes=16)
    (source,) = sources(TRANSPOSE, small, shape)
    if small.arch.startswith("x86_64"):
        assert "!nontemporal" in source.text
        assert source.text.count("\npast") <= 2  # tiles of whole vectors, and others where masks are not used
    x = np.random.default_rng(0).random(shape, dtype=np.float32)
    line = 16
    room = np.full(x.size + 6 * line, -1, np.float32)
    loaded = cpu.load(source, None, small)
    sizes = {"N": shape[0], "M": shape[1]}
    for shift in (0, 4, 5):
        first = 2 * line + (-(room.ctypes.data // 4) % line) + shift
        y = room[first : first + x.size]
        places = {"X": x.ctypes.data, "Y": y.ctypes.data}
        values = [sizes[each.name] if each.kind == "size" else places[each.name] for each in source.arguments]
        loaded.run((ctypes.c_int64 * len(values))(*values))
        np.testing.assert_array_equal(y.reshape(shape[::-1]), x.T)
        assert (room[:first] == -1).all()
        assert (room[first + x.size :] == -1).all()
        room[:] = -1


def test_rows_of_a_convolution_are_turned_by_one_version_of_the_code():
    """Under masks, which are free; the rows that are turned are whole tiles, so that no row of them is tested."""
    *_, product = sources(CONVOLUTION, AVX512, (8, 32, 28, 28), (64, 32, 3, 3))
    assert product.text.count("; for op.inner.i in 0:16  (unroll)") == 1
    assert "if.then" not in product.text


def test_copies_are_made_without_the_passes_for_loops():
    weights, *_ = sources(CONVOLUTION, AVX512, (8, 32, 28, 28), (64, 32, 3, 3))
    assert weights.text.startswith("; passes: vector")


@pytest.mark.parametrize("columns", [17, 31, 33, 63])
def test_rows_beyond_the_last_one_are_turned_like_the_others(columns):
    """The last tile of a small product repeats the last row; that took a gather."""
    definition = tc.compile("def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }", target="cpu")[
        "f"
    ].definition()
    _, facts = SizeClasses(definition.program, definition.found.ranges)({"M": 17, "N": columns, "K": 1023})
    sources = definition.build(AVX512, replace(ROW_MAJOR, facts=facts)).sources
    assert sources
    assert not any("gather" in source.text for source in sources)


@pytest.mark.parametrize("columns", [5, 6, 7, 9, 12, 15, 20, 24])
def test_short_rows_are_turned_too(columns: int) -> None:
    """Rows of 7 were gathered: their block was cut for vectors of 4, and printed with vectors of 8."""
    text = f"def f(float({columns},N) X) -> (Y) {{ Y(i,c) = X(c,i) }}"
    f = tc.compile(text, target="cpu").f
    for n in (1, 7, 8, 9, 127, 128, 129, 300):
        x = np.random.default_rng(n).random((columns, n), dtype=np.float32)
        np.testing.assert_array_equal(f(x), x.T)
    if columns < 16:
        (source,) = sources(text, AVX512, (columns, 300))
        assert "%turn" in source.text
        assert "masked.gather" not in source.text


@pytest.mark.parametrize(
    ("place", "at"),
    [
        ("2*j, i + j", lambda i, j: (2 * j, i + j)),
        ("j, i - j + 70", lambda i, j: (j, i - j + 70)),
        ("2*j + 1, 200 - i - 2*j", lambda i, j: (2 * j + 1, 200 - i - 2 * j)),
    ],
)
@pytest.mark.parametrize("dtype", ["float", "double", "uint8"])
def test_pieces_of_rows_that_begin_beside_each_other_are_turned(place, at, dtype):
    """Whole pieces of rows are read, and nothing is gathered where tiles are full."""
    text = f"def f({dtype}(N,M) X, {dtype}(P) Z) -> (Y) {{ Y(i,j) = X({place}) + Z(i) where i in 0:P, j in 0:70 }}"
    f = tc.compile(text).f
    x = np.random.default_rng(0).integers(0, 100, (141, 220)).astype({"float": "f4", "double": "f8"}.get(dtype, dtype))
    for rows in (1, 16, 37, 61):
        z = np.arange(rows).astype(x.dtype)
        np.testing.assert_array_equal(f(x, z), x[at(np.arange(rows)[:, None], np.arange(70))] + z[:, None])
