"""The last columns of a product in half of a tile: where there are two versions, and that all sizes are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from llvm_kernels import least, loop, op, read, size, var

import tc_jupyter as tc
from tc_jupyter.codegen.llvm.half_tiles import half_tiles
from tc_jupyter.compiler.definition import ROW_MAJOR
from tc_jupyter.loops import Block, For, If, Store, walk_statements
from tc_jupyter.program import Binary, DType, int64
from tc_jupyter.ranges import Fact
from tc_jupyter.runtime.cpu import cpu_target
from tc_jupyter.schedule import SizeClasses, Target

MASKS = Target("cpu", features=frozenset({"avx512vl", "avx512bw"}), vector_bits=512)
BATCH = "def f(TYPE(B,M,K) X, TYPE(B,K,N) Y) -> (Z) { Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }"


def versions(lanes: int, reduce: str | None = "+", extent=None) -> If:
    """`if a tile of `lanes` columns is full: nothing, else: the loop over k`."""
    rest = op("-", size("N"), op("*", int64(lanes), var("jo")))
    length = least(rest, lanes)
    store = Store("C", (var("j"),), read("B", var("k"), var("j")), reduce)
    body = Block((loop("k", size("K"), loop("j", extent or length, store, kind="vectorize")),))
    return If(Binary("==", length, int64(lanes), DType.BOOL), Block(()), body)


def extents(block: Block) -> list[str]:
    return [repr(stmt.extent) for stmt in walk_statements(block) if isinstance(stmt, For) and stmt.kind == "vectorize"]


@pytest.mark.parametrize("lanes", [32, 64])
def test_less_than_a_tile_has_a_version_for_half_of_it(lanes):
    (stmt,) = half_tiles(Block((versions(lanes),)), {}, MASKS).body
    assert isinstance(stmt, If)
    assert stmt.otherwise is not None
    (choice,) = stmt.otherwise.body
    assert isinstance(choice, If)
    assert f"value={lanes // 2}" in repr(choice.condition)
    assert [f"value={lanes // 2}," in text for text in extents(choice.then)] == [True]
    assert choice.otherwise == versions(lanes).otherwise


@pytest.mark.parametrize(
    ("made", "known", "target"),
    [
        (versions(16), {}, MASKS),  # one vector
        (versions(32, reduce=None), {}, MASKS),  # nothing is added up
        (versions(32, extent=int64(32)), {}, MASKS),  # another loop is short
        (versions(32), {"N": Fact(17, 31)}, MASKS),  # one tile, more than half
        (versions(32), {}, Target("cpu", features=frozenset({"avx2", "fma"}), vector_bits=256)),
    ],
)
def test_no_other_code_changes(made, known, target):
    block = Block((made,))
    assert half_tiles(block, known, target) == block


def test_where_the_class_says_more_the_version_stays():
    block = Block((versions(32),))
    for known in ({"N": Fact(33, 63)}, {"N": Fact(9, 15)}, {"M": Fact(17, 31)}):
        assert half_tiles(block, known, MASKS) != block


@pytest.mark.some(3)
@pytest.mark.parametrize("dtype", ["float", "double", "int32"])
def test_batches_of_all_numbers_of_columns(dtype):
    pytest.importorskip("llvmlite")
    function = tc.compile(BATCH.replace("TYPE", dtype), target="cpu")["f"]
    rng = np.random.default_rng(5)
    for columns in (*range(1, 70), 79, 80, 81, 96, 97):
        rows = int(rng.integers(1, 40))
        x, y = (rng.integers(-4, 5, shape).astype(dtype.replace("float", "float32").replace("double", "float64"))
                for shape in ((2, rows, 5), (2, 5, columns)))  # fmt: skip
        np.testing.assert_array_equal(function(x, y), x @ y)


def test_rows_that_end_inside_of_an_array_are_read_without_a_mask():
    pytest.importorskip("llvmlite")
    if not cpu_target().free_masks:
        pytest.skip("needs AVX-512")
    definition = tc.compile(BATCH.replace("TYPE", "float"), target="cpu")["f"].definition()
    _, facts = SizeClasses(definition.program, definition.found.ranges)({"B": 3, "M": 26, "N": 26, "K": 72})
    (source,) = definition.build(cpu_target(), replace(ROW_MAJOR, facts=facts)).sources
    assert source.text.count("icmp ule ptr") == source.text.count("Y.ends:") == 1
