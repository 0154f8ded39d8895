from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.loops import Buffer, Store
from tc_jupyter.program import Size, int64
from tests.codegen.llvm_kernels import F32, ISAS, add, compare, const, kernel, loop, op, read, target, var

N, C, B = Size("N"), Size("C"), Size("B")
i, c, b = var("i"), var("c"), var("b")


def doubled(shape=(N, C), indices=(i, c), value=None, **more):
    """`Y[...] = 2 * X[...]` over rows."""
    value = op("*", const(2.0), read("X", *indices)) if value is None else value
    buffers = [Buffer("X", F32, shape, **more), Buffer("Y", F32, shape, role="output"), Buffer("w", F32, (C,))]
    body = loop("c", C, Store("Y", indices, value), kind="vectorize")
    for name, extent in [("i", N), ("b", B)][: len(indices) - 1]:
        body = loop(name, extent, body, kind="parallel")
    return kernel(buffers, "BNC", body)


def arrays(*shape):
    data = np.random.default_rng(len(shape)).random(shape, dtype=np.float32)
    return {"X": data, "Y": np.full(shape, np.nan, np.float32), "w": np.ones(shape[-1], np.float32)}


def is_collapsed(made) -> bool:
    return " (parallel)" in made and "C * N" in made.replace("N * C", "C * N").partition("(parallel)")[0]


@pytest.mark.parametrize("isa", ISAS)
def test_rows_one_behind_the_other(isa):
    made = doubled()
    assert is_collapsed(emit_llvm(made, target(isa)).text)
    for n, width in ((0, 3), (3, 0), (1, 1), (5, 3), (7, 2), (100, 3), (3, 100), (16, 16), (4095, 5)):
        compare(made, arrays(n, width), {"N": n, "C": width, "B": 0}, isa=isa)


def test_all_dimensions():
    made = doubled((B, N, C), (b, i, c))
    text = emit_llvm(made, target()).text
    assert text.count("(parallel)") == 1
    for shape in ((3, 5, 2), (1, 1, 1), (0, 4, 4), (2, 3, 40)):
        compare(made, arrays(*shape), dict(zip("BNC", shape, strict=True)))


@pytest.mark.parametrize(
    "made",
    [
        doubled(strided=True),
        doubled(value=op("*", read("w", c), read("X", i, c))),
        doubled(value=read("X", i, op("-", op("-", C, int64(1)), c))),
        doubled((N, add(C, 1))),
    ],
    ids=["strides", "along a row", "reversed", "parts of rows"],
)
def test_rows_that_stay(made):
    assert not is_collapsed(emit_llvm(made, target()).text)


def test_an_outer_loop_may_have_the_name_of_the_new_one():
    outer = var("i.c")
    value = add(read("X", outer, i, c), read("w", outer))
    store = Store("Y", (outer, i, c), value)
    rows = loop("i", N, loop("c", C, store, kind="vectorize"), kind="parallel")
    buffers = [Buffer("X", F32, (B, N, C)), Buffer("w", F32, (B,)), Buffer("Y", F32, (B, N, C), role="output")]
    made = kernel(buffers, "BNC", loop("i.c", B, rows, kind="parallel"))
    compare(made, {**arrays(3, 5, 4), "w": np.arange(3, dtype="f")}, {"B": 3, "N": 5, "C": 4})


def test_parts_of_rows_are_right():
    compare(doubled((N, add(C, 1))), arrays(6, 4), {"N": 6, "C": 3, "B": 0})


TEXTS = {
    "a number for each image": "def f(float(B,N,C) X, float(B) s) -> (Y) { Y(b,i,c) = X(b,i,c) * s(b) }",
    "a number for each row": "def f(float(N,C) X, float(N) s) -> (Y) { Y(i,c) = X(i,c) * s(i) }",
    "a number for each column": "def f(float(N,C) X, float(C) s) -> (Y) { Y(i,c) = X(i,c) * s(c) }",
    "the position itself": "def f(float(N,C) X) -> (Y) { Y(i,c) = X(i,c) * i + c }",
    "constant width": "def f(float(N,3) X) -> (Y) { Y(i,c) = exp(X(i,c)) }",
    "two results": "def f(float(N,C) X) -> (Y, Z) { Y(i,c) = X(i,c) + 1\nZ(i,c) = Y(i,c) * X(i,c) }",
    "shorter than the input": "def f(float(N,C) X) -> (Y) { Y(i,c) = X(i,c) where i in 1:N-1, c in 0:C-1 }",
    "with a neighbour": "def f(float(N,C) X) -> (Y) { Y(i,c) = X(i,c) + X(i+2,c+1) }",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("view", ["whole", "every second column", "turned"])
def test_against_the_interpreter(name, view):
    (f,) = tc.compile(TEXTS[name], target="cpu", allow=["TC322", "TC325", "TC326"]).values()
    (slow,) = tc.compile(TEXTS[name], target="interpreter", allow=["TC322", "TC325", "TC326"]).values()
    for n in (4, 5, 9, 50):
        shape = {"a number for each image": (2, n, 3)}.get(name, (n, 3 if name == "constant width" else n % 7 + 4))
        x = np.random.default_rng(n).random((*shape[:-1], 2 * shape[-1]), dtype=np.float32)
        x = {
            "whole": x[..., : shape[-1]].copy(),
            "every second column": x[..., ::2],
            "turned": x[..., : shape[-1]].T.copy().T,
        }[view]
        length = {"a number for each image": 2, "a number for each row": n, "a number for each column": shape[-1]}.get(
            name
        )
        given = (x,) if length is None else (x, np.arange(length, dtype=np.float32))
        for got, expected in zip(_all(f(*given)), _all(slow(*given)), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-6)


def _all(result):
    return result if isinstance(result, tuple) else (result,)


IMAGES = "float(B,C,H,W) X"
REDUCTIONS = {
    "of images": (f"def f({IMAGES}) -> (Y) {{ Y(b,c) +=! X(b,c,h,w) }}", True),
    "of everything else": (f"def f({IMAGES}) -> (Y) {{ Y(b) max=! X(b,c,h,w) }}", True),
    "of all": (f"def f({IMAGES}) -> (Y) {{ Y +=! X(b,c,h,w) }}", True),
    "two at once": (f"def f({IMAGES}) -> (S, Q) {{ S(c) +=! X(b,c,h,w)\nQ(c) +=! X(b,c,h,w) * X(b,c,h,w) }}", True),
    "with weights": (f"def f({IMAGES}, float(H,W) V) -> (Y) {{ Y(b,c) +=! X(b,c,h,w) * V(h,w) }}", True),
    "and what is left": (
        f"def f({IMAGES}) -> (Y) {{ M(b,c) max=! X(b,c,h,w)\nY(b,c,h,w) = X(b,c,h,w) - M(b,c) }}",
        True,
    ),
    "with a temporary": (
        f"""def f({IMAGES}) -> (Y) {{
    M(b,c) max=! X(b,c,h,w)
    E(b,c,h,w) = exp(X(b,c,h,w) - M(b,c)) * 0 + X(b,c,h,w)
    S(b,c) +=! E(b,c,h,w)
    Y(b,c,h,w) = E(b,c,h,w) - S(b,c)
}}""",
        True,
    ),
    "of shifted rows": (f"def f({IMAGES}) -> (Y) {{ Y(b,c) +=! X(b,c,h+1,w) * X(b,c,h,w) }}", True),
    "in parts": (f"def f({IMAGES}) -> (Y) {{ Y max=! X(b,c,h,w) * X(b,c,h,w) }}", True),
    "weights of columns": (f"def f({IMAGES}, float(W) V) -> (Y) {{ Y(b,c) +=! X(b,c,h,w) * V(w) }}", False),
    "every second row": (f"def f({IMAGES}) -> (Y) {{ Y(b,c) +=! X(b,c,2*h,w) where h in 0:H/2 }}", False),
    "without a border": (f"def f({IMAGES}) -> (Y) {{ Y(b,c) +=! X(b,c,h,w) where w in 1:W }}", False),
    "turned": (f"def f({IMAGES}) -> (Y) {{ Y(w,c) +=! X(b,c,h,w) }}", False),
    "rows are read otherwise too": (f"def f({IMAGES}) -> (Y) {{ Y(b,c) +=! X(b,c,h,w) - X(b,c,h,0) }}", False),
    "positions": (f"def f({IMAGES}) -> (Y) {{ Y(b,c) +=! X(b,c,h,w) * w }}", False),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_over_neighbouring_dimensions(name):
    text, one_loop = REDUCTIONS[name]
    (f,) = tc.compile(text, target="cpu", allow=["TC322", "TC325", "TC326"]).values()
    (slow,) = tc.compile(text, target="interpreter", allow=["TC322", "TC325", "TC326"]).values()
    random = np.random.default_rng(7)
    for shape in (
        (2, 3, 4, 5),
        (1, 2, 7, 7),
        (3, 1, 1, 33),
        (2, 5, 33, 1),
        (1, 1, 16, 16),
        (2, 2, 40, 3),
        (2, 3, 0, 5),
        (0, 2, 3, 4),
    ):
        if name == "of shifted rows" and shape[2] == 0:
            continue  # there is no range
        x = random.integers(-9, 9, shape).astype(np.float32)
        sizes = dict(zip("BCHW", shape, strict=True))
        others = [np.arange(np.prod(found)).reshape(found).astype("f") for found in _shapes(text, sizes)]
        for given in (x, np.asfortranarray(x), np.repeat(x, 2, 3)[..., ::2]):
            for got, expected in zip(_all(f(given, *others)), _all(slow(given, *others)), strict=True):
                np.testing.assert_array_equal(got, expected)
    f(np.ones((2, 3, 4, 5), np.float32), *(np.ones(found, "f") for found in _shapes(text, dict(B=2, C=3, H=4, W=5))))
    loops = [line for line in f.source("llvm").splitlines() if "for " in line]
    assert any("h.w" in line for line in loops) == one_loop, loops


def _shapes(text, sizes):
    """Those of the parameters after the first one."""
    found = text[: text.index("->")].split("float(")[2:]
    return [tuple(sizes[name] for name in each.partition(")")[0].split(",")) for each in found]


def test_reductions_do_not_take_the_name_of_a_loop_around():
    around, h, w = var("h.w"), var("h"), var("w")
    store = Store("Y", (around,), op("*", read("X", around, h, w), read("V", around)), "+")
    sums = loop("h", N, loop("w", C, store))
    buffers = [Buffer("X", F32, (B, N, C)), Buffer("V", F32, (B,)), Buffer("Y", F32, (B,), role="inout")]
    made = kernel(buffers, "BNC", loop("h.w", B, sums, kind="parallel"))
    x = arrays(3, 5, 4)["X"]
    compare(made, {"X": x, "V": np.arange(3, dtype="f"), "Y": np.zeros(3, "f")}, {"B": 3, "N": 5, "C": 4})


def test_equal_loops_are_told_apart():
    h, w = var("h"), var("w")
    sums = loop("h", N, loop("w", C, Store("Y", (b,), read("X", b, h, w), "+")))
    buffers = [Buffer("X", F32, (B, N, C)), Buffer("Y", F32, (B,), role="inout")]
    made = kernel(buffers, "BNC", loop("b", B, sums, sums, kind="parallel"))
    assert "h.w" in emit_llvm(made, target()).text
    compare(made, {"X": arrays(3, 5, 4)["X"], "Y": np.zeros(3, "f")}, {"B": 3, "N": 5, "C": 4})


@pytest.mark.parametrize("operator", ["+", "max"])
@pytest.mark.parametrize("shape", [(1000, 3), (64, 2), (63, 5), (65, 1), (129, 40), (1, 7), (0, 3), (3, 0)])
def test_to_one_number_from_short_rows(operator, shape):
    (f,) = tc.compile(f"def f(float(N,M) X) -> (Y) {{ Y {operator}=! X(i,j) }}", target="cpu").values()
    x = np.random.default_rng(3).integers(-9, 9, shape).astype(np.float32)
    expected = x.sum() if operator == "+" else x.max(initial=-np.inf)
    assert f(x) == expected
    f(np.ones((3, 4), np.float32))
    assert "i.inner.j" in f.source("llvm")
