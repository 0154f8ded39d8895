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
