from __future__ import annotations

import ctypes
import mmap
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.codegen.llvm.overlap import overlap
from tc_jupyter.function import compile
from tc_jupyter.loops import Allocate, Block, Buffer, Check, If, Store, walk_statements
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.loops.rewrite import mapped_block, with_blocks, with_body
from tc_jupyter.program import Select, Size, children, int64, rebuild
from tests.codegen.llvm_kernels import F32, ISAS, add, compare, const, kernel, least, loop, mul, op, read, target, var

W, K = Size("W"), Size("K")
o, v, k, h = (var(name) for name in ("o", "v", "k", "h"))
LANES = 16
LENGTH = add(op("-", W, K), 1)
"""Elements of a row of the result: windows of K elements of W."""


def tile(value, *more, store=None, extent=None):
    """A tile of window sums: set to zero, add, copy out; the sums of `extent` elements, else of as many as the row has."""
    at = add(v, mul(o, LANES))
    acc = Buffer("acc", F32, (int64(LANES),), "local")
    ragged = least(LANES, op("-", LENGTH, mul(o, LANES)))
    summed = extent or ragged
    body = Block(
        (
            loop("v", summed, Store("acc", (v,), const(0.0)), kind="vectorize"),
            loop("k", K, loop("v", summed, Store("acc", (v,), value, "+"), kind="vectorize")),
            loop("v", ragged, store or Store("Y", (h, at), read("acc", v)), kind="vectorize"),
            *more,
        )
    )
    return Allocate(acc, body)


def rows(body, role="output"):
    tiles = loop("o", op("//", add(LENGTH, LANES - 1), int64(LANES)), body)
    buffers = [Buffer("X", F32, (Size("H"), W)), Buffer("Y", F32, (Size("H"), LENGTH), role=role)]
    return kernel(buffers, "HWK", loop("h", Size("H"), tiles, kind="parallel"))


def windows(guarded: bool = False):
    """Sums of windows; `guarded`: whole tiles, whose lanes beyond the row read nothing."""
    at = add(add(v, mul(o, LANES)), k)
    value = read("X", h, at)
    if not guarded:
        return rows(tile(value))
    return rows(tile(Select(op("<", at, W), value, const(0.0), F32), extent=LANES))


def arrays(height: int, width: int, window: int) -> dict[str, np.ndarray]:
    x = np.random.default_rng(width).standard_normal((height, width), dtype=np.float32)
    return {"X": x, "Y": np.full((height, width - window + 1), np.nan, np.float32)}


def rewritten(made):
    return replace(made, body=overlap(made.body))


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("isa", ISAS)
def test_the_last_tile_of_a_row_is_computed_inside_the_one_before(isa, guarded):
    made = windows(guarded)
    for width in (3, 4, 10, 17, 18, 19, 33, 34, 35, 51, 66):
        given = arrays(2, width, 3)
        compare(made, given, {"H": 2, "W": width, "K": 3}, isa=isa, rtol=1e-5)


@pytest.mark.parametrize("guarded", [False, True])
def test_the_interpreter_computes_the_same_before_and_after(guarded):
    made = windows(guarded)
    for width in (3, 9, 18, 19, 20, 40):
        first, second = arrays(2, width, 3), arrays(2, width, 3)
        sizes = {"H": 2, "W": width, "K": 3}
        interpret(made, first, sizes)
        interpret(rewritten(made), second, sizes)
        np.testing.assert_array_equal(first["Y"], second["Y"])


@pytest.mark.parametrize("guarded", [False, True])
def test_full_tiles_have_constant_lengths_and_no_conditions(guarded):
    (found,) = [stmt for stmt in walk_statements(overlap(windows(guarded).body)) if isinstance(stmt, If)]
    text = repr(found.then)
    assert "Select" not in text
    assert text.count("extent=Const(value=16") == 3
    assert found.otherwise is not None
    assert ("Select" in repr(found.otherwise)) == guarded


def test_a_processor_with_free_masks_keeps_masks_but_in_windows_with_a_counter():
    counted, plain = windows(), replace(target("avx2"), features=frozenset({"avx2"}))
    free = replace(plain, features=frozenset({"avx512vl", "avx512bw"}))
    written_out = replace(counted, body=mapped_block(counted.body, lambda expr: int64(2) if expr == K else expr))
    for made, expected in ((counted, [True, True]), (unrolled(written_out), [True, False])):
        texts = [emit_llvm(made, each).text for each in (plain, free)]
        assert [" >= 16\n" in text for text in texts] == expected


def unrolled(made):
    """With the loop over the window written out."""

    def rule(block: Block) -> Block:
        return with_body(
            block,
            (
                with_blocks(s if getattr(s, "var", "") != "k" else replace(s, kind="unroll", extent=int64(2)), rule)
                for s in block.body
            ),
        )

    return replace(made, body=rule(made.body))


def mul_f(left, right):
    return op("*", left, right)


def replaced(block, width, window):
    """The same with numbers for W and K."""

    def rule(expr):
        if isinstance(expr, Size):
            return {"W": width, "K": window}.get(expr.name, expr)
        return rebuild(expr, tuple(rule(child) for child in children(expr)))

    return mapped_block(block, rule)


def unchanged(body, role="output") -> bool:
    made = rows(body, role)
    return overlap(made.body) == made.body


def test_what_may_not_be_computed_twice_stays():
    at = add(v, mul(o, LANES))
    value = read("X", h, add(at, k))
    assert not unchanged(tile(value))
    # a sum in memory, a value that the loop writes, a check
    assert unchanged(tile(value, store=Store("Y", (h, at), read("acc", v), "+")), "inout")
    assert unchanged(tile(op("+", value, read("Y", h, v))), "inout")
    check = Check(op("<", h, W), 0, (h,), Block(()))
    assert unchanged(tile(value, check))


def test_a_tile_whose_number_is_used_by_itself_stays():
    at = add(v, mul(o, LANES))
    assert unchanged(tile(read("X", h, add(add(v, o), k))))
    assert unchanged(tile(read("X", h, add(at, k)), store=Store("Y", (h, add(v, mul(o, 8))), read("acc", v))))


def test_tiles_inside_other_loops_are_found():
    inner = loop("o", op("//", add(LENGTH, LANES - 1), int64(LANES)), tile(read("X", h, add(add(v, mul(o, LANES)), k))))
    made = kernel(list(rows(inner).buffers), "HWK", loop("h", Size("H"), loop("p", 2, inner), kind="parallel"))
    assert len([stmt for stmt in walk_statements(overlap(made.body)) if isinstance(stmt, If)]) == 1


def test_a_value_that_depends_on_the_lane_alone_stays():
    at = add(v, mul(o, LANES))
    value = read("X", h, add(at, k))
    # `P[w % 4]`, as it looks after simplification
    assert unchanged(tile(value, store=Store("Y", (h, at), mul_f(read("acc", v), read("X", h, op("%", v, int64(4)))))))
    assert unchanged(tile(value, store=Store("Y", (h, at), mul_f(read("acc", v), read("X", h, v)))))
    assert unchanged(tile(mul_f(value, read("X", h, o))))
    assert not unchanged(tile(value, store=Store("Y", (h, at), mul_f(read("acc", v), read("X", h, at)))))


def test_rows_of_constant_length_have_one_version():
    made = windows()
    found = [overlap(replaced(made.body, int64(width), int64(3))) for width in (40, 18, 17)]
    assert [any(isinstance(stmt, If) for stmt in walk_statements(each)) for each in found] == [False] * 3
    assert ["op='min'" in repr(each).replace("extent=Binary(op='min'", "") for each in found] == [True, True, False]


def test_loops_of_one_name_and_different_lengths_stay():
    at = add(v, mul(o, LANES))
    again = loop(
        "k",
        7,
        loop("v", least(LANES, op("-", LENGTH, mul(o, LANES))), Store("acc", (v,), const(1.0), "+"), kind="vectorize"),
    )
    assert unchanged(tile(read("X", h, add(at, k)), again))


def test_epilogues_that_count_positions_are_right():
    text = """
    def f(float(B,H,W) X, float(KH,KW) F, float(4) P) -> (Y) {
        A(b,h,w) +=! X(b,h+kh,w+kw) * F(kh,kw)
        Y(b,h,w) = A(b,h,w) * P(w % 4)
    }
    def g(float(B,M,K) X, float(B,K,N) Z, float(4) P) -> (Y) {
        A(b,i,j) +=! X(b,i,k) * Z(b,k,j)
        Y(b,i,j) = A(b,i,j) * P(j % 4)
    }
    """
    rng = np.random.default_rng(5)
    module = compile(text, target="cpu")
    p = rng.standard_normal(4, dtype=np.float32)
    for width in (9, 17, 19, 35, 54):
        x, f = rng.standard_normal((2, 5, width), dtype=np.float32), rng.standard_normal((3, 3), dtype=np.float32)
        out = module.f(x, f, p)
        views = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
        expected = np.einsum("bhwkl,kl->bhw", views, f) * p[np.arange(width - 2) % 4]
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
        y, z = rng.standard_normal((2, 7, 5), dtype=np.float32), rng.standard_normal((2, 5, width), dtype=np.float32)
        np.testing.assert_allclose(module.g(y, z, p), (y @ z) * p[np.arange(width) % 4], rtol=1e-4, atol=1e-5)


def test_a_guard_that_is_not_always_true_stays():
    at = add(add(v, mul(o, LANES)), k)
    value = Select(op("<", at, op("-", W, h)), read("X", h, at), const(0.0), F32)
    found = overlap(rows(tile(value, extent=LANES)).body)
    (choice,) = [stmt for stmt in walk_statements(found) if isinstance(stmt, If)]
    assert "Select" in repr(choice.then)


def test_a_batch_of_products_with_a_vector_of_columns_is_right():
    module = compile("def f(float(B,M,K) X, float(N) Y) -> (C) { C(b,i,j) +=! X(b,i,k) * Y(j) }", target="cpu")
    rng = np.random.default_rng(3)
    for columns in (1, 8, 9, 17, 40):
        x, y = rng.standard_normal((3, 5, 7), dtype=np.float32), rng.standard_normal(columns, dtype=np.float32)
        np.testing.assert_allclose(module.f(x, y), np.einsum("bik,j->bij", x, y), rtol=1e-4, atol=1e-5)


def at_the_end_of_a_page(values: np.ndarray, begins: bool = False) -> np.ndarray:
    """A copy that ends where memory that may not be read begins; or one that begins where such memory ends."""
    libc, page = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
    room = -(-values.nbytes // page) * page
    memory = mmap.mmap(-1, page + room + page)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    for forbidden in (start, start + page + room):
        assert libc.mprotect(ctypes.c_void_p(forbidden), ctypes.c_size_t(page), 0) == 0
    first = page if begins else page + room - values.nbytes
    copy = np.frombuffer(memory, values.dtype, values.size, first).reshape(values.shape)
    copy[...] = values
    return copy


@pytest.mark.skipif(sys.platform == "win32", reason="no mprotect")
@pytest.mark.parametrize(("window", "channels"), [(1, 1), (3, 2)])
def test_sums_of_the_points_inside_read_nothing_else(window, channels):
    """What a condition around a product leaves out is not read, neither before the first element nor behind the last one."""
    text = f"""def f(float(C,H,W) X, float(O,C,{window},{window}) K, float(R,Q) shape) -> (Y) {{
        Y(o,y,x) +=! x+v >= 2 && x+v < W+2 && y+u >= 2 && y+u < H+2 ? X(c,y+u-2,x+v-2) * K(o,c,u,v) : 0
            where y in 0:R, x in 0:Q, u in 0:{window}, v in 0:{window} }}"""
    f, rng = compile(text, target="cpu", allow=["TC328"]).f, np.random.default_rng(0)
    for width, begins in product((5, 16, 40, 70), (True, False)):
        x, k = rng.integers(-9, 9, (channels, 3, width)), rng.integers(-9, 9, (9, channels, window, window))
        x, k = (at_the_end_of_a_page(each.astype(np.float32), begins) for each in (x, k))
        padded = np.pad(x, ((0, 0), (2, 2), (2, 2)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (1, 2))
        wanted = np.einsum("cyxuv,ocuv->oyx", windows, k)
        np.testing.assert_array_equal(f(x, k, np.empty(wanted.shape[1:], np.float32)), wanted)


@pytest.mark.some(2)
@pytest.mark.skipif(sys.platform == "win32", reason="no mprotect")
@pytest.mark.parametrize("dtype", ["float", "double", "int16"])
@pytest.mark.parametrize("length", [2, 3])
def test_windows_in_steps_of_two_read_nothing_beyond_the_array(dtype, length):
    text = f"def f({dtype}(M,N) X) -> (Y) {{ Y(i,j) max=! X(2*i+k,2*j+l) where k in 0:2, l in 0:{length} }}"
    function = compile(text, target="cpu").f
    for width in (3, 9, 17, 33, 63, 64, 65, 66, 112, 127, 128, 129, 200):
        x = at_the_end_of_a_page(
            np.random.default_rng(width).integers(-99, 99, (4, width)).astype(dtype.replace("float", "float32"))
        )
        count = (width - length) // 2 + 1
        parts = [x[k : k + 3 : 2, l : l + 2 * count - 1 : 2] for k in range(2) for l in range(length)]
        np.testing.assert_array_equal(function(x), np.maximum.reduce(parts))
