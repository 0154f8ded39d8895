"""Tiles of several rows of a stencil: parts of streams that begin with lines of the result."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.codegen.llvm.row_tiles import Part, row_tiles
from tc_jupyter.loops import Buffer, Store, walk_statements
from tc_jupyter.program import DType, Size, int64
from tc_jupyter.runtime import cpu
from tc_jupyter.runtime.launch import LoadedKernel
from tests.codegen.llvm_kernels import ISAS, add, kernel, least, loop, mul, numpy_dtype, op, read, target, var

H, W = Size("H"), Size("W")
TILE = 128
i, j, r, v = (var(name) for name in "ijrv")


def rows(dtype: DType = DType.FLOAT32, height: int = 4, reduce: str | None = None, extent=None):
    """`Y[i, j] = X[i, j] + X[i + 1, j + 2]` in tiles of `height` rows by `TILE` elements."""
    row, column = add(mul(i, height), r), add(mul(j, TILE), v)
    value = op("+", read("X", row, column, dtype=dtype), read("X", add(row, 1), add(column, 2), dtype=dtype))
    store = Store("Y", (row, column), value, reduce, streaming=True)
    inner = loop("v", least(TILE, op("-", W, mul(j, TILE))), store, kind="vectorize")
    tile = loop("r", extent or least(height, op("-", H, mul(i, height))), inner)
    tiles = loop("j", op("//", add(W, TILE - 1), int64(TILE)), tile)
    blocks = op("//", add(H, height - 1), int64(height))
    buffers = [Buffer("X", dtype, (add(H, 1), add(W, 2))), Buffer("Y", dtype, (H, W), role="output")]
    return kernel(buffers, "HW", loop("i", blocks, tiles, kind="parallel"))


def parts_of(made, isa=None) -> list[Part]:
    buffers = {buffer.name: buffer for buffer in made.buffers}
    found = row_tiles(made.body, buffers, target(isa))
    return [stmt for stmt in walk_statements(found) if isinstance(stmt, Part)]


def test_a_tile_of_rows_is_a_part_of_each_row():
    (part,) = parts_of(rows())
    assert (part.var, part.extent, part.tile) == ("j.v", W, "j")
    assert part.vectors * 2 * target().vector_bits // 32 == TILE
    assert "part j)" in emit_llvm(rows(), target()).text


def turned():
    """`Y[i, j] = X[j, i]` in the same tiles."""
    row, column = add(mul(i, 4), r), add(mul(j, TILE), v)
    inner = loop(
        "v",
        least(TILE, op("-", W, mul(j, TILE))),
        Store("Y", (row, column), read("X", column, row), streaming=True),
        kind="vectorize",
    )
    tiles = loop("j", op("//", add(W, TILE - 1), int64(TILE)), loop("r", least(4, op("-", H, mul(i, 4))), inner))
    buffers = [Buffer("X", DType.FLOAT32, (W, H)), Buffer("Y", DType.FLOAT32, (H, W), role="output")]
    return kernel(buffers, "HW", loop("i", op("//", add(H, 3), int64(4)), tiles, kind="parallel"))


@pytest.mark.parametrize(
    "made",
    [rows(reduce="+"), rows(extent=least(4, op("-", H, j))), turned()],
    ids=["a sum may not be computed twice", "rows that depend on the tile", "blocks that are turned"],
)
def test_what_stays_in_tiles(made):
    assert parts_of(made) == []


def run(loaded, x: np.ndarray, shift: int) -> np.ndarray:
    """The result in memory that begins `shift` elements after a line, with canaries around it."""
    height, width = x.shape[0] - 1, x.shape[1] - 2
    room = np.full(height * width + 2 * 64 + 64, 77, x.dtype)
    first = 64 + (-(room.ctypes.data // x.itemsize) % (64 // x.itemsize)) + shift
    out = room[first : first + height * width]
    loaded.run((ctypes.c_int64 * 4)(x.ctypes.data, out.ctypes.data, height, width))
    assert (room[:first] == 77).all()
    assert (room[first + height * width :] == 77).all()
    return out.reshape(height, width)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64, DType.INT8], ids=lambda dtype: dtype.value)
def test_every_element_is_computed_whatever_the_length_of_rows_and_where_they_begin(isa, dtype):
    """Past the caches, as with tiny caches, from 4 kB of a row on."""
    small = replace(target(isa), llc_bytes=16)
    source = emit_llvm(rows(dtype), small)
    loaded = cpu.load(source, None, small)
    assert not small.arch.startswith("x86_64") or "!nontemporal" in source.text
    line, long = 64 // dtype.bytes, 4096 // dtype.bytes
    widths = [1, 2, line - 1, line, 2 * line + 1, TILE - 1, TILE, TILE + 1, 2 * TILE + line + 1]
    widths += [
        long - 1,
        *(long + more for more in (0, 1, line - 1, line, line + 1, 2 * line, TILE - 1, TILE, TILE + 3)),
    ]
    generator = np.random.default_rng(0)
    for width in widths:
        for height in (1, 5) if width < long else (4, 9):
            x = generator.integers(-50, 50, (height + 1, width + 2)).astype(numpy_dtype(dtype))
            for shift in (0, 1, line - 1):
                np.testing.assert_array_equal(run(loaded, x, shift), x[:-1, :-2] + x[1:, 2:])


def test_nothing_is_computed_without_rows_or_without_elements():
    small = replace(target(), llc_bytes=16)
    loaded = cpu.load(emit_llvm(rows(), small), None, small)
    for shape in ((1, 1030), (9, 2)):
        assert run(loaded, np.zeros(shape, np.float32), 0).size == 0


STENCIL = "Y(i,j) = X(i-1,j) + X(i+1,j) + X(i,j-1) + X(i,j+1) - 4*X(i,j)"


@pytest.mark.parametrize(
    ("body", "is_tiled"),
    [
        (f"def f(float(H,W) X) -> (Y) {{ {STENCIL} }}", True),
        ("def f(float(B,H,W) X) -> (Y) { Y(b,i,j) = X(b,i,j) + X(b,i+1,j) }", True),
        ("def f(float(H,W) X) -> (Y) { Y(i,j) = X(max(i-1,0),j) + X(i,j) where i in 0:H }", True),
        ("def f(float(H,W) X) -> (Y) { Y(i,j) = X(i,j) + X(i,j+1) }", False),
        ("def f(float(D,H,W) X) -> (Y) { Y(d,i,j) = X(d,i,j) + X(d,i+1,j) + X(d+1,i,j) }", False),
        ("def f(float(W) X) -> (Y) { Y(i) = X(i) + X(i+1) }", False),
    ],
)
def test_which_stencils_are_tiled(body, is_tiled):
    found = tc.compile(body, target="cpu", allow=["TC231", "TC234", "TC235", "TC321"]).f
    assert (", part " in found.source("llvm")) is is_tiled


def test_a_stencil_of_a_large_array():
    f = tc.compile(f"def f(float(H,W) X) -> (Y) {{ {STENCIL} }}", target="cpu", allow=["TC321"]).f
    x = np.random.default_rng(0).random((2100, 2103), dtype=np.float32)
    expected = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    np.testing.assert_allclose(f(x), expected, rtol=0, atol=4e-6)


def test_a_temporary_is_made_in_the_tiles_that_the_schedule_says():
    """What is written between loops is no argument, and not written past the caches."""
    text = "def f(float(N,M) A) -> (O) { T(i,j) = A(i,j) + A(i+1,j)  O(i,j) = T(i,j) + T(i+1,j) }"
    f = tc.compile(text, target="cpu").f
    made = f.schedule()
    for stage, width in (("O", 512), ("T", 128)):
        if stage == "T":
            made = made.compute_at("T", "O", "i.outer").storage("T", "local").parallel("O", "i.outer")
        made = made.split(stage, "i", 4).split(stage, "j", width)
        made = made.reorder(stage, "i.outer", "j.outer", "i.inner", "j.inner").vectorize(stage, "j.inner")
    x = np.random.default_rng(0).integers(0, 9, (41, 1100)).astype(np.float32)
    np.testing.assert_array_equal(f.with_schedule(made)(x), x[:-2] + 2 * x[1:-1] + x[2:])


PLANES = "def f({0}(L,M,N) X) -> (Y) {{ Y(h,i,j) = X(h,i,j) + X(h-1,i,j) + X(h+1,i,j) - X(h,i-1,j) + X(h,i,j+1) }}"


def in_planes(dtype: DType, isa: str, llc_bytes: int) -> LoadedKernel:
    """The code of `PLANES`."""
    definition = tc.compile(
        PLANES.format(dtype.value), target="cpu", allow=["TC231", "TC234", "TC235", "TC321"]
    ).f.definition()
    (source,) = definition.build(replace(target(isa), llc_bytes=llc_bytes)).sources
    assert [each.name for each in source.arguments] == ["X", "Y", "L", "M", "N"]
    return cpu.load(source, None, target(isa))


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64, DType.INT8], ids=lambda dtype: dtype.value)
def test_every_element_of_planes_at_a_time_is_computed(isa, dtype):
    """Whether they fill a vector of all planes, or not, or are written past the caches, one row after the other."""
    line = 64 // dtype.bytes
    lengths = [1, 2, line // 4, line // 2 - 1, line // 2, line - 1, line, line + 1, 2 * line, 3 * line + 1]
    generator = np.random.default_rng(0)
    for large in (False, True):
        loaded = in_planes(dtype, isa, 16 if large else 1 << 30)
        for length in [*lengths, 4096 // dtype.bytes, 4096 // dtype.bytes + line + 1] if large else lengths:
            for count in range(9):
                x = generator.integers(-20, 20, (count + 2, 4, length + 1)).astype(numpy_dtype(dtype))
                y = x[1:-1, 1:, :-1] + x[:-2, 1:, :-1] + x[2:, 1:, :-1] - x[1:-1, :-1, :-1] + x[1:-1, 1:, 1:]
                room = np.full(y.size + 3 * line, 77, x.dtype)
                for shift in (0, 1):
                    first = line + (-(room.ctypes.data // x.itemsize) % line) + shift
                    out = room[first : first + y.size]
                    loaded.run((ctypes.c_int64 * 5)(x.ctypes.data, out.ctypes.data, *x.shape))
                    np.testing.assert_array_equal(out.reshape(y.shape), y)
                    assert (room[:first] == 77).all()
                    assert (room[first + y.size :] == 77).all()
                    room[:] = 77


@pytest.mark.parametrize(
    ("body", "planes"),
    [
        (PLANES.format("float"), "h"),
        ("def f(float(L,M,N) X) -> (Y) { Y(h,i,j) = X(h,i,j) + X(h+1,i,j) }", "h"),
        ("def f(float(B,L,M,N) X) -> (Y) { Y(b,h,i,j) = X(b,h,i,j) + X(b,h,i+1,j) + X(b,h+1,i,j) }", "h"),
        ("def f(float(L,M,N) X) -> (Y) { Y(h,i,j) = X(2*h,i,j) + X(2*h+1,i,j) }", ""),
        ("def f(float(L,M,N) X) -> (Y) { Y(h,i,j) = X(h,i,j) + (h > 0 ? X(h-1,i,j) : 0.0) where h in 0:L }", ""),
        ("def f(float(L,M,N) X) -> (Y) { Y(h,i,j) = X(h,i,j) + X((h+1)%L,i,j) where h in 0:L }", ""),
        ("def f(float(L,M,N) X) -> (Y) { Y(h,i,j) = X(h,i,j) + X(h,i,j+1) }", ""),
    ],
)
def test_which_stencils_compute_planes_at_a_time(body, planes):
    f = tc.compile(body, target="cpu", allow=["TC231", "TC234", "TC235", "TC321", "TC322"]).f
    text = f.source("loops")
    assert [line.split()[1] for line in text.splitlines() if line.endswith("# unroll")] == (
        [f"{planes}.inner"] if planes else []
    )


def test_a_temporary_is_made_in_planes_too():
    text = "def f(float(L,M,N) A) -> (O) { T(h,i,j) = A(h,i,j) + A(h+1,i,j)  O(h,i,j) = T(h,i,j) * T(h+1,i,j+1) }"
    f = tc.compile(text, target="cpu").f
    a = np.random.default_rng(0).integers(0, 9, (12, 7, 40)).astype(np.float32)
    t = a[:-1] + a[1:]
    np.testing.assert_array_equal(f(a), t[:-1, :, :-1] * t[1:, :, 1:])
