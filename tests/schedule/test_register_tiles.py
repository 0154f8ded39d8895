"""Register tiles of products that are read where they lie."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.ranges import Fact, exactly
from tc_jupyter.schedule import Target
from tc_jupyter.schedule.templates.register_tiles import small_tile

AVX2 = Target("cpu", features=frozenset({"avx2", "fma"}), vector_bits=256, vector_registers=16, fma=True)
AVX512 = Target("cpu", features=frozenset({"avx512f", "avx512vl", "avx512bw"}), vector_bits=512, vector_registers=32)
HALVES = Target("cpu", features=AVX512.features | {"sse4a"}, vector_bits=512, vector_registers=32)


@pytest.mark.parametrize(
    ("target", "rows", "columns", "expected"),
    [
        (AVX2, exactly(64), exactly(64), (4, 2)),
        (AVX512, exactly(64), exactly(64), (6, 4)),
        (HALVES, exactly(64), exactly(64), (4, 4)),
        (AVX512, Fact(17, 31), Fact(17, 31), (9, 2)),
        (HALVES, Fact(17, 31), Fact(17, 31), (4, 2)),
        (HALVES, exactly(32), exactly(32), (8, 2)),
        (HALVES, Fact(65, 255), Fact(65, 255), (4, 2)),
    ],
)
def test_tiles_of_processors(target, rows, columns, expected):
    tile = small_tile(target, 32, rows, columns)
    assert (tile.rows, tile.vectors) == expected


@pytest.mark.parametrize("target", [AVX2, AVX512, HALVES], ids=["avx2", "avx512", "halves"])
def test_rows_that_are_known_fill_tiles(target):
    tile = small_tile(target, 32, exactly(7), exactly(64))
    assert -(-7 // tile.rows) * tile.rows <= 8
    assert small_tile(target, 32, exactly(1), exactly(64)).rows == 1


@pytest.mark.some(2)
@pytest.mark.parametrize("target", [AVX2, AVX512, HALVES], ids=["avx2", "avx512", "halves"])
@pytest.mark.parametrize("bits", [32, 64])
def test_tiles_fit_the_registers(target, bits):
    some = [
        *map(exactly, (1, 2, 3, 7, 64)),
        Fact(1, 4),
        Fact(9, 15),
        Fact(40, 56, 8),
        Fact(33, 63),
        Fact(65, 255),
        Fact(128, 256, 64),
    ]
    for rows in some:
        for columns in some:
            tile = small_tile(target, bits, rows, columns)
            assert tile.rows * tile.vectors + tile.vectors < target.vector_registers


@pytest.mark.parametrize("width", [3, 9, 12, 20, 33])
def test_accumulators_of_any_length_stay_in_registers(width):
    """A row of accumulators has room for its last vector: a mask would keep it in memory, 10 times as slow."""
    size = f"float(N,{width},{width})"
    f = tc.compile(f"def f({size} A, {size} B) -> (C) {{ C(n,i,j) +=! A(n,i,k) * B(n,k,j) }}", target="cpu").f
    a, b = (np.random.default_rng(each).integers(-3, 4, (5, width, width)).astype("f") for each in (1, 2))
    assert not re.search(r"call .*masked.*ptr %C\.cache", f.source("llvm", a, b))
    np.testing.assert_array_equal(f(a, b), a @ b)


def test_a_sum_whose_reads_depend_on_elements_is_not_written_out():
    text = """def f(int64(3, N) A, uint8(N) Id) -> (T) {
        T(Id(k) % 5) +=! 0 where k in 2:5, isnan((N > k && 0 <= k ? Id(k) : 2) * 1.0), A(k, (N - 1 - k) % N) <= 0
    }"""
    f = tc.compile(text, target="cpu").f
    assert not f(np.zeros((3, 9), np.int64), np.ones(9, np.uint8)).any()
