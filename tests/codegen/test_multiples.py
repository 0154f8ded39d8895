"""Tiles of sizes that are multiples of a number are whole, and only those."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from llvm_kernels import F32, add, compare, kernel, least, loop, mul, op, read, size, target, var

import tc_jupyter as tc
from tc_jupyter.codegen.llvm.multiples import whole_tiles
from tc_jupyter.loops import Buffer, For, If, Store, walk_statements
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import Const, Select, int64
from tc_jupyter.ranges import Fact

N, M = size("N"), size("M")
PRODUCT = "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
TURNED = "def f(float(N,M) X) -> (Y) { Y(j,i) = X(i,j) }"


def tiles(extent, block: int = 64, tile: int = 16):
    """`Y[j] = X[j]` in blocks of tiles; the last of either may be less."""
    at = add(add(mul(var("jo"), block), mul(var("ji"), tile)), var("j"))
    left = op("-", op("-", extent, mul(var("jo"), block)), mul(var("ji"), tile))
    inner = loop("j", least(left, tile), Store("Y", (at,), read("X", at)), kind="vectorize")
    count = least(op("-", op("//", add(extent, tile - 1), int64(tile)), mul(var("jo"), block // tile)), block // tile)
    outer = loop("jo", op("//", add(extent, block - 1), int64(block)), loop("ji", count, inner), kind="parallel")
    return kernel([Buffer("X", F32, (extent,)), Buffer("Y", F32, (extent,), role="output")], "N", outer)


def lengths(made):
    return {stmt.var: stmt.extent for stmt in walk_statements(made.body) if isinstance(stmt, For)}


@pytest.mark.parametrize("unit", [16, 32, 64, 4096])
def test_a_tile_that_divides_the_size_is_whole(unit):
    made = replace(tiles(N), facts=(("N", Fact(multiple=unit)),))
    found = whole_tiles(made)
    assert lengths(found)["j"] == int64(16)
    for n in (0, unit, 3 * unit):
        x = np.random.default_rng(n).random(n, np.float32)
        arrays = {"X": x, "Y": np.zeros_like(x)}
        interpret(found, arrays, {"N": n})
        np.testing.assert_array_equal(arrays["Y"], x)
    compare(made, {"X": np.ones(2 * unit, np.float32), "Y": np.zeros(2 * unit, np.float32)}, {"N": 2 * unit})


def windows(beyond: int):
    """`Y[j] = X[j] + X[j + 1] + X[j + 2]` in tiles of 16 whose lanes beyond `beyond` elements after the row read nothing."""
    at = add(mul(var("jo"), 16), var("j"))
    here = add(at, var("k"))
    value = Select(op("<", here, add(N, beyond)), read("X", here), Const(0.0, F32), F32)
    sums = loop("k", 3, loop("j", 16, Store("Y", (at,), value, "+"), kind="vectorize"))
    body = loop("jo", op("//", add(N, 15), int64(16)), sums)
    return kernel([Buffer("X", F32, (add(N, 2),)), Buffer("Y", F32, (N,), role="inout")], "N", body)


@pytest.mark.parametrize(("unit", "beyond", "is_known"), [(16, 2, True), (64, 2, True), (8, 2, False), (16, 1, False)])
def test_conditions_that_hold_in_whole_tiles_go(unit, beyond, is_known):
    made = replace(windows(beyond), facts=(("N", Fact(multiple=unit)),))
    assert ("Select" not in repr(whole_tiles(made).body)) is is_known
    for n in (0, 64, 128):
        x = np.random.default_rng(n).random(n + 2, np.float32)
        compare(made, {"X": x, "Y": np.ones(n, np.float32)}, {"N": n})


@pytest.mark.parametrize(
    "made",
    [
        tiles(N),
        replace(tiles(N), facts=(("N", Fact(multiple=8)),)),
        replace(tiles(N), facts=(("N", Fact(multiple=24)),)),
        replace(tiles(add(N, 2)), facts=(("N", Fact(multiple=64)),)),
    ],
)
def test_others_stay_as_they_are(made):
    assert lengths(whole_tiles(made)) == lengths(made)


def test_the_code_for_less_than_a_tile_goes():
    made = tiles(N)
    (outer,) = made.body.body
    (inner,) = outer.body.body
    (tile,) = inner.body.body
    less = If(op("<", tile.extent, int64(16)), replace(inner.body, body=(Store("Y", (int64(0),), Const(0.0, F32)),)))
    body = replace(
        made.body,
        body=(
            replace(
                outer, body=replace(outer.body, body=(replace(inner, body=replace(inner.body, body=(less, tile))),))
            ),
        ),
    )
    found = whole_tiles(replace(made, body=body, facts=(("N", Fact(multiple=64)),)))
    assert not any(isinstance(stmt, If) for stmt in walk_statements(found.body))


def test_a_row_of_a_whole_tile_is_not_beyond_the_last_one():
    row = op("-", least(add(add(var("r"), mul(var("t"), 8)), 1), M), int64(1))
    body = loop(
        "t",
        op("//", add(M, 7), int64(8)),
        loop("r", 8, Store("Y", (var("t"), var("r")), read("X", row))),
        kind="parallel",
    )
    buffers = [Buffer("X", F32, (M,)), Buffer("Y", F32, (op("//", add(M, 7), int64(8)), int64(8)), role="output")]
    made = kernel(buffers, "M", body)
    assert "op='min'" in repr(whole_tiles(made).body)
    assert "op='min'" not in repr(whole_tiles(replace(made, facts=(("M", Fact(multiple=8)),))).body)


@pytest.mark.parametrize(("text", "reference"), [(PRODUCT, np.matmul), (TURNED, lambda x: x.T)])
def test_one_function_serves_sizes_of_all_classes_in_turn(text, reference):
    function = tc.compile(text, target="cpu").f
    rng = np.random.default_rng(3)
    for first, second in (
        (64, 128),
        (65, 128),
        (128, 127),
        (64, 64),
        (40, 24),
        (41, 23),
        (256, 192),
        (1, 320),
        (320, 320),
    ):
        arrays = [rng.integers(-4, 4, (first, second)).astype(np.float32)]
        if text is PRODUCT:
            arrays = [
                rng.integers(-4, 4, (first, 5)).astype(np.float32),
                rng.integers(-4, 4, (5, second)).astype(np.float32),
            ]
        for _ in range(2):
            np.testing.assert_array_equal(function(*arrays), reference(*arrays))


@pytest.mark.parametrize(("text", "shapes"), [(PRODUCT, ((128, 9), (9, 128))), (TURNED, ((128, 192),))])
def test_code_for_multiples_of_64_has_no_masks(text, shapes):
    function = tc.compile(text, target="cpu").f
    text = function.source("llvm", *(np.zeros(shape, np.float32) for shape in shapes))
    assert "masked." not in text
    assert "inside" not in text


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize(
    ("text", "grouped"),
    [("def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }", True), (TURNED, False)],
)
def test_temporaries_are_turned_one_vector_of_rows_after_the_other_and_results_in_whole_lines(text, grouped, isa):
    made = tc.compile(text, target="cpu").f.definition().build(target(isa))
    assert any(".g in 0:2" in source.text for source in made.sources) == (grouped and target(isa).vector_bits > 128)
