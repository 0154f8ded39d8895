from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.loops import SPARE, Allocate, Block, Buffer, If, Store
from tc_jupyter.program import DType, Size, int64
from tests.codegen.llvm_kernels import F32, ISAS, add, compare, const, kernel, least, loop, mul, op, read, target, var

M, K = Size("M"), Size("K")
t, k, r, c = (var(name) for name in ("t", "k", "r", "c"))
ROWS = 4
LEFT = least(op("-", M, mul(t, ROWS)), ROWS)


def packing(fill: bool = True, read_by: int = ROWS, dtype: DType = F32, depth=K, rows=ROWS, spare: bool = False):
    """Tiles of rows of A as columns of P, which `read_by` columns of the result then read; beyond M they are set to 0.

    Where these are `spare`, nobody reads them.
    """
    left = least(op("-", M, mul(t, rows)), rows)
    place = (int64(0), k, r)
    zeros = loop("k", depth, loop("r", rows, Store("P", place, const(0.0, dtype)), kind="vectorize"))
    copy = loop(
        "k",
        depth,
        loop("r", left, Store("P", place, read("A", add(r, mul(t, rows)), k, dtype=dtype)), kind="vectorize"),
    )
    use = loop(
        "c",
        read_by if fill and not spare else left,
        loop("k", depth, Store("Y", (t, c, k), read("P", int64(0), k, c, dtype=dtype))),
    )
    empty = If(op("<", left, int64(rows)), Block((zeros,), SPARE if spare else ""))
    body = Allocate(
        Buffer("P", dtype, (int64(1), depth, int64(rows)), "local", align=64),
        Block((*([empty] if fill else []), copy, use)),
    )
    tiles = op("//", add(M, rows - 1), int64(rows))
    buffers = [
        Buffer("A", dtype, (M, depth)),
        Buffer("Y", dtype, (tiles, int64(rows), depth), role="output"),
    ]
    return kernel(buffers, "MK", loop("t", tiles, body, kind="parallel"))


def arrays(m: int, depth: int, rows: int = ROWS) -> dict[str, np.ndarray]:
    a = np.random.default_rng(m).standard_normal((m, depth), dtype=np.float32)
    return {"A": a, "Y": np.full((-(-m // rows), rows, depth), np.nan, np.float32)}


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("fill", "spare"), [(True, False), (True, True), (False, False)], ids=["set", "spare", "unused"]
)
@pytest.mark.parametrize("rows", [4, 16])
def test_tiles_with_fewer_rows(isa, fill, spare, rows):
    made = packing(fill, rows, rows=rows, spare=spare)
    for m in (1, rows - 1, rows, rows + 1, 3 * rows - 2):
        for depth in (1, 3, 4, 8, 17):
            compare(made, arrays(m, depth, rows), {"M": m, "K": depth}, isa=isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("fill", [True, False], ids=["spare", "unused"])
def test_one_version_of_the_copy(isa, fill):
    text = emit_llvm(packing(fill, spare=True), target(isa)).text
    assert text.count("(unroll)") == 1
    assert "masked" not in text
    assert "gather" not in text
    assert "A[min(r, min(M - t * 4, 4) + -1) + t * 4, k.o * " in text
    assert "P[0, k, r] = 0.0" not in text


def test_columns_that_must_be_zero_are_set_before_the_copy():
    text = emit_llvm(packing(), target()).text
    zeros, copied = text.index("P[0, k, r] = 0.0"), text.index("P[0, k, r] = A[r + t * 4, k]")
    assert zeros < copied
    assert "min(r," not in text


def along_rows(dtype: DType = F32, tile: int = 16):
    """Pieces of rows of A, filled up with zeros, all of which is read."""
    left = least(op("-", M, mul(t, tile)), tile)
    zeros = loop("k", K, loop("r", tile, Store("P", (int64(0), k, r), const(0.0, dtype)), kind="vectorize"))
    piece = Store("P", (int64(0), k, r), read("A", k, add(r, mul(t, tile)), dtype=dtype))
    copy = loop("k", K, loop("r", left, piece, kind="vectorize"))
    use = loop("k", K, loop("c", tile, Store("Y", (t, k, c), read("P", int64(0), k, c, dtype=dtype))))
    body = Allocate(
        Buffer("P", dtype, (int64(1), K, int64(tile)), "local", align=64),
        Block((If(op("<", left, int64(tile)), Block((zeros,))), copy, use)),
    )
    tiles = op("//", add(M, tile - 1), int64(tile))
    buffers = [Buffer("A", dtype, (K, M)), Buffer("Y", dtype, (tiles, K, int64(tile)), role="output")]
    return kernel(buffers, "MK", loop("t", tiles, body, kind="parallel"))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [F32, DType.INT8, DType.FLOAT16], ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("tile", [4, 16])
def test_pieces_of_rows_are_filled_up_with_zeros(isa, dtype, tile):
    made = along_rows(dtype, tile)
    for m in (1, tile - 1, tile, tile + 1, 2 * tile, 3 * tile - 2):
        a = np.random.default_rng(m).integers(-9, 9, (3, m)).astype(dtype.value)
        compare(made, {"A": a, "Y": np.ones((-(-m // tile), 3, tile), dtype.value)}, {"M": m, "K": 3}, isa=isa)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_one_version_of_the_copy_of_pieces(isa):
    text = emit_llvm(along_rows(), target(isa)).text
    assert "P[0, k, r] = 0.0" not in text
    assert text.count("for k in 0:K") == 2
    assert "masked.store" not in text


def test_short_rows_are_copied_one_element_at_a_time():
    made = packing(depth=int64(3))
    text = emit_llvm(made, target()).text
    assert "gather" not in text
    assert "min(r," not in text
    for m in (1, 4, 6):
        compare(made, arrays(m, 3), {"M": m, "K": 3})


def test_without_a_row_nothing_stands_for_those_that_are_missing():
    """The tiles of `M + 4` rows are one too many, and the last row of a tile without rows is outside of A."""
    place = (int64(0), k, r)
    copy = loop("k", K, loop("r", LEFT, Store("P", place, read("A", add(r, mul(t, ROWS)), k)), kind="vectorize"))
    use = loop("c", LEFT, loop("k", K, Store("Y", (t, c, k), read("P", int64(0), k, c))))
    body = Allocate(Buffer("P", F32, (int64(1), K, int64(ROWS)), "local", align=64), Block((copy, use)))
    tiles = op("//", add(M, 2 * ROWS - 1), int64(ROWS))
    buffers = [Buffer("A", F32, (M, K)), Buffer("Y", F32, (tiles, int64(ROWS), K), role="output")]
    made = kernel(buffers, "MK", loop("t", tiles, body, kind="parallel"))
    assert "A[min(r," not in emit_llvm(made, target()).text
    for m in (1, 4, 5):
        given = arrays(m, 9)
        given["Y"] = np.full((-(-m // ROWS) + 1, ROWS, 9), np.nan, np.float32)
        compare(made, given, {"M": m, "K": 9})


@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT16, DType.FLOAT64], ids=lambda dtype: dtype.value)
def test_other_types(dtype):
    made = packing(dtype=dtype)
    for m, depth in ((3, 5), (4, 16), (9, 33)):
        a = np.random.default_rng(m).integers(-9, 9, (m, depth)).astype(dtype.value)
        y = np.zeros((-(-m // ROWS), ROWS, depth), dtype.value)
        compare(made, {"A": a, "Y": y}, {"M": m, "K": depth})


TWICE = """def f(float(N,K) A) -> (Y) {
  T(k,i) = 5.0 where i in 0:N+3, k in 0:K
  T(k,i) = A(i,k) where i in 0:N
  Y(t,r,k) = T(k,4*t+r) where t in 0:(N+3)/4, r in 0:4
}"""


@pytest.mark.some(3)
@pytest.mark.parametrize("inner", [False, True], ids=["own", "of an inner def"])
@pytest.mark.parametrize("layout", [False, True], ids=["rows", "tiles"])
@pytest.mark.parametrize("inside", [False, True], ids=["before", "inside"])
@pytest.mark.parametrize("both", [False, True], ids=["one vectorised", "both vectorised"])
def test_what_another_statement_wrote_beyond_the_last_row_stays(layout, inside, both, inner):
    """Names of tensors of an inner def have a dot, as those of copies that a schedule makes."""
    text = TWICE if not inner else TWICE.replace("def f", "def h") + "\ndef f(float(N,K) A) -> (Y) { Y = h(A) }"
    f = tc.compile(text, target="cpu", allow=["TC325"]).f
    own = "h." if inner else ""
    schedule = f.schedule()
    for stage in (f"{own}T", f"{own}T#2"):
        schedule = schedule.reorder(stage, "k", "i")
        schedule = (schedule.compute_at(stage, f"{own}Y", "t") if inside else schedule).split(stage, "i", 4)
        schedule = schedule.vectorize(stage, "i.inner") if both or stage == f"{own}T" else schedule
        schedule = schedule if inside else schedule.reorder(stage, "i.outer", "k", "i.inner")
    g = f.with_schedule(schedule.storage(f"{own}T", layout=((1, 0), (0, 0), (1, 4))) if layout else schedule)
    for n in (1, 3, 4, 5, 8, 9):
        for depth in (1, 5, 9):
            a = np.random.default_rng(n).random((n, depth), "f")
            expected = np.full(((n + 3) // 4 * 4, depth), 5, "f")
            expected[:n] = a
            np.testing.assert_array_equal(g(a), expected.reshape(-1, 4, depth))


def test_a_copy_that_walks_across_its_tiles():
    """The loop inside of a tile stands outside: no tile is filled one after the other, and none with zeros."""
    f = tc.compile("def f(float(N,K) A, float(K,M) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }", target="cpu").f
    s = (
        f.schedule()
        .split("C", "i", 4)
        .cache_read("A", "C")
        .compute_at("A.cache", "C", "i.outer")
        .split("A.cache", "i", 4)
    )
    s = s.storage("A.cache", "local", layout=((0, 0), (1, 0), (0, 4))).reorder("A.cache", "i.inner", "i.outer", "k")
    g = f.with_schedule(s)
    for n in (1, 4, 5, 11):
        a, b = np.random.default_rng(n).random((n, 3), "f"), np.ones((3, 2), "f")
        np.testing.assert_allclose(g(a, b), a @ b, rtol=1e-6)


def test_a_copy_whose_zeros_a_matrix_step_may_need_fills_one_tile_after_the_other():
    f = tc.compile("def f(float(N,K) A, float(K,M) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }", target="cpu").f
    s = f.schedule().tile("C", "i", "j", 6, 16).reorder("C", "i.outer", "j.outer", "k", "i.inner", "j.inner")
    s = s.cache_read("A", "C").compute_at("A.cache", "C", "i.outer").split("A.cache", "i", 6)
    s = s.storage("A.cache", "local", layout=((0, 0), (1, 0), (0, 6)), padded=True)
    s = s.tensorize("C", ("i.inner", "j.inner"), "fma_6x16_f32")
    a, b = np.random.default_rng(0).random((13, 5), "f"), np.random.default_rng(1).random((5, 20), "f")
    np.testing.assert_allclose(f.with_schedule(s)(a, b), a @ b, rtol=1e-5)
    with pytest.raises(tc.CompileError, match=r"TC503.*walks across the tiles"):
        f.with_schedule(s.reorder("A.cache", "i.inner", "i.outer", "k"))(a, b)
