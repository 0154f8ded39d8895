"""Padded stages compute whole tiles where that reads nothing that does not exist."""

from __future__ import annotations

import numpy as np
import pytest

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.runtime.cuda import cuda_target
from tc_jupyter.schedule import Schedule, default_schedule, infer_symbolic, with_safe_padding
from tests.running import default, program_of, run

FORWARDS = "def f(float(N) A) -> (O) { O(i) = A(i) where i in 0:N-3 }"
BACKWARDS = "def f(float(N) A) -> (O) { O(i) = A(N-1-i) }"


def padded(text: str) -> Schedule:
    """Tiles of four elements that are all computed."""
    schedule = default(text).cache_write("O").split("O", "i", 4).compute_at("O.cache", "O", "i.outer")
    return schedule.storage("O.cache", "register", padded=True)


@pytest.mark.parametrize("text", [FORWARDS, BACKWARDS])
@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_no_tile_reads_outside(text, n):
    """The interpreter checks every subscript; the last tile of a reversed read would begin before the first element."""
    a = np.arange(n, dtype=np.float32)
    found = run(padded(text), {"A": a}, {"N": n})["O"]
    assert found.tolist() == (a[: n - 3] if text == FORWARDS else a[::-1]).tolist()


@pytest.mark.parametrize("text, kept", [(FORWARDS, True), (BACKWARDS, False)])
def test_tiles_are_whole_where_that_is_safe(text, kept):
    bounds = with_safe_padding(infer_symbolic(padded(text).graph))
    assert bounds.graph.stage("O.cache").storage.padded == kept


@pytest.mark.parametrize("text", [FORWARDS, BACKWARDS])
@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_a_clamped_tile_computes_its_last_element_again(text, n):
    """In both directions: the interpreter checks every subscript."""
    a = np.arange(n, dtype=np.float32)
    schedule = padded(text).storage("O.cache", "register", clamped=("i",))
    assert with_safe_padding(infer_symbolic(schedule.graph)).graph.stage("O.cache").storage.padded
    assert run(schedule, {"A": a}, {"N": n})["O"].tolist() == (a[: n - 3] if text == FORWARDS else a[::-1]).tolist()


@pytest.mark.parametrize("options", [{"clamped": ("i",)}, {"padded": True, "clamped": ("k",)}])
def test_only_padded_outputs_are_clamped(options):
    schedule = (
        default("def f(float(N,K) A) -> (O) { O(i) +=! A(i,k) }").cache_write("O").compute_at("O.cache", "O", "i")
    )
    with pytest.raises(CompileError, match="no outputs that are padded"):
        schedule.storage("O.cache", "register", **options)


SLIDING = "def f(float(N) A, float(K) W) -> (O) { O(i) +=! A(i+k) * W(k) }"


@pytest.mark.parametrize("n", [3, 5, 6, 7, 10])
def test_a_masked_tile_reads_zeros_beyond_the_end_of_a_row(n):
    a, w = np.arange(1, n + 1, dtype=np.float32), np.float32([1, 10, 100])
    found = run(padded(SLIDING).storage("O.cache", masked=True), {"A": a, "W": w}, {"N": n, "K": 3})["O"]
    assert found.tolist() == np.correlate(a, w).tolist()


@pytest.mark.parametrize("masked", [True, False])
def test_only_masked_tiles_may_read_beyond_the_end_of_a_row(masked):
    bounds = with_safe_padding(infer_symbolic(padded(SLIDING).storage("O.cache", masked=masked).graph))
    assert bounds.graph.stage("O.cache").storage.padded == masked


def test_a_masked_tile_may_not_read_beyond_the_last_row():
    schedule = padded("def f(float(N,M) A, float(K) W) -> (O) { O(i) +=! A(i+k,0) * W(k) where k in 0:3 }")
    bounds = with_safe_padding(infer_symbolic(schedule.storage("O.cache", masked=True).graph))
    assert not bounds.graph.stage("O.cache").storage.padded


@pytest.mark.parametrize(
    "value, whole",
    [
        ("A(i,k) * B(j,k)", True),
        ("A(i,k) * B(j,k) + 1.0", False),
        ("exp(A(i,k) * B(j,k))", False),
        ("a * A(i,k) * B(j,k)", False),  # `a` may be infinite
    ],
)
def test_a_product_takes_the_zeros_beyond_its_end(value, whole):
    found = program_of(f"def f(float(M,K) A, float(N,K) B, float a) -> (C) {{ C(i,j) +=! {value} }}")
    assert found is not None
    schedule = default_schedule(*found, cuda_target("sm_80"), {"M": 32, "N": 32, "K": 32})
    (total,) = (each for each in schedule.graph.stages if each.statement.reduction_indices)
    assert (total.storage.scope, total.storage.whole) == ("register", whole)


STENCIL = "def f(int32(N,M) A) -> (O) { X(i,j) = A(i,j) * 2  O(i,j) = X(i,j) + X(i+1,j) }"


@pytest.mark.parametrize("at", [False, True])
@pytest.mark.parametrize("layout", [None, ((0, 0), (1, 0)), ((1, 0), (0, 0))])
@pytest.mark.parametrize("change", [
    lambda s: s.split("X", "j", 4),
    lambda s: s.split("X", "i", 4),
    lambda s: s.tile("X", "i", "j", 8, 2),
    lambda s: s.split("X", "j", 4).reorder("X", "j.outer", "j.inner", "i"),
    lambda s: s.split("X", "j", 4).reorder("X", "i", "j.inner", "j.outer"),
    lambda s: s.fuse("X", "i", "j").split("X", "i.j.fused", 4),
])  # fmt: skip
def test_room_behind_rows_in_every_order_of_loops(change, layout, at):
    """Zeros go behind a row where a loop runs along it, and nowhere else; rows are those of the layout."""
    schedule = change(default(STENCIL)).storage("X", pad=1)
    schedule = schedule if layout is None else schedule.storage("X", layout=layout)
    if at:
        schedule = schedule.split("O", "i", 3).compute_at("X", "O", "i.outer")
    a = np.arange(20 * 7, dtype="int32").reshape(20, 7)
    np.testing.assert_array_equal(run(schedule, {"A": a}, {"N": 20, "M": 7})["O"], 2 * (a[:-1] + a[1:]))
