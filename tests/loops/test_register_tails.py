"""Tiles in registers: all but the last one have constant lengths, and together they compute what the loop did."""

from __future__ import annotations

import numpy as np
import pytest

from tc_jupyter.loops import If, walk_statements
from tc_jupyter.loops.rewrite import flat, only
from tests.running import default, kernels_of, run

TEXT = "def f(float(N,K) X) -> (Y) { Y(i) +=! X(i,k) }"


def tiled(tile, scope):
    made = default(TEXT).cache_write("Y").split("Y", "i", tile).compute_at("Y.cache", "Y", "i.outer")
    made = made.storage("Y.cache", scope).reorder("Y.cache", "k", "i").split("Y.cache", "i", tile)
    return made.vectorize("Y.cache", "i.inner")


def versions(schedule):
    (kernel,) = kernels_of(schedule)
    return [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, If) and stmt.otherwise is not None]


def test_a_tile_in_registers_has_a_version_without_tests():
    (choice,) = versions(tiled(4, "register"))
    full, short = repr(choice.then), repr(choice.otherwise)
    assert "scope='register'" in full
    assert "op='min'" not in full
    assert "scope='register'" not in short


def test_a_tile_in_memory_is_left_as_it_is():
    assert versions(tiled(4, "local")) == []


@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 11])
def test_both_versions_compute_the_same(count):
    x = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
    found = run(tiled(4, "register"), {"X": x}, {"N": count, "K": 3})["Y"]
    np.testing.assert_array_equal(found, x.sum(axis=1))


def test_one_statement_and_all_statements_of_nested_blocks():
    (kernel,) = kernels_of(default(TEXT))
    assert only(kernel.body) is flat(kernel.body)[0]
