"""Which positions are found in 32 bits, and that they are the same."""

from __future__ import annotations

import numpy as np
import pytest
from llvm_kernels import add, const, loop, mul, op, read, size, var

import tc_jupyter as tc
from tc_jupyter.codegen.llvm.narrow import narrow
from tc_jupyter.loops import Block, For, If, Store, expressions, walk_statements
from tc_jupyter.program import LARGEST_POSITION, Const, DType, Select, in_32_bits, int64, positions, walk
from tc_jupyter.runtime import cpu

N, M = size("N"), size("M")
n, m = var("n"), var("m")
FOUND = op("==", read("X", n, m), read("V", n))


def choice(then, otherwise):
    return Select(FOUND, then, otherwise, DType.INT64)


def search(value, reduce: str | None = "min", kind: str = "serial") -> For:
    return loop("n", N, loop("m", M, Store("P", (n,), value, reduce=reduce), kind=kind), kind="parallel")


def conditions(loops: For) -> list[str]:
    """The comparisons with the limits, as `operator limit`; nothing if the loops stay as they are."""
    found = next((stmt for stmt in walk_statements(narrow(Block((loops,)))) if isinstance(stmt, If)), None)
    if found is None:
        return []
    sides = [node for node in walk(found.condition) if getattr(node, "op", "") in ("<=", ">=")]
    return [f"{each.op} {each.right.value}" for each in sides]


def test_positions_are_sums_of_indices_chosen_by_conditions():
    two = add(mul(n, M), m)
    assert positions(choice(m, M)) == (m, M)
    assert positions(op("min", choice(two, int64(3)), int64(9))) == (two, int64(3), int64(9))
    # no index, data, a product of indices, a quotient: not these
    assert not positions(choice(M, int64(3)))
    assert not positions(choice(read("I", m, dtype=DType.INT64), M))
    assert not positions(choice(mul(n, m), M))
    assert not positions(choice(op("//", m, int64(2)), M))
    assert not positions(read("X", n, m))


def test_all_positions_of_a_choice_become_32_bits():
    short = in_32_bits(choice(m, op("max", M, m)))
    assert short.dtype is DType.INT32
    assert [child.dtype for child in (short.then, short.otherwise.left, short.otherwise.right)] == [DType.INT32] * 3


def test_a_search_has_two_versions_and_the_long_one_is_without_vectors():
    (outer,) = narrow(Block((search(choice(m, M), kind="vectorize"),))).body
    (versions,) = outer.body.body
    assert isinstance(versions, If)
    (short,), (long,) = versions.then.body, versions.otherwise.body
    assert (short.kind, long.kind) == ("vectorize", "serial")
    assert [store.value.dtype for store in (short.body.body[0], long.body.body[0])] == [DType.INT32, DType.INT64]


@pytest.mark.parametrize("number", [LARGEST_POSITION + 1, -LARGEST_POSITION - 1, (1 << 63) - 2, 4_000_000_000])
def test_numbers_of_64_bits_leave_the_loop_as_it_is(number):
    assert not positions(choice(m, int64(number)))
    assert not positions(choice(add(m, int64(number)), M))


def test_the_largest_number_stands_for_no_position():
    none = int64((1 << 63) - 1)
    assert positions(choice(m, none)) == (m,)
    (outer,) = narrow(Block((search(choice(m, none), kind="vectorize"),))).body
    (versions,) = outer.body.body
    assert "2147483647" in str(versions.then.body[0])


def test_ranges_of_64_bits_leave_the_loop_as_it_is():
    far = choice(add(m, int64(LARGEST_POSITION)), M)
    assert not conditions(loop("m", int64(3), Store("P", (n,), far, reduce="min")))


def test_factors_and_products_are_asked_for():
    # bounds are computed in 64 bits, too: a product of sizes may be 0 there
    limits = conditions(search(choice(mul(mul(m, M), M), int64(5))))
    assert len(limits) == 4  # M, m, m*M, m*M*M
    assert not conditions(search(choice(mul(m, int64(1 << 61)), int64(5))))


@pytest.mark.parametrize("position", ["m*2305843009213693952", "m*2000000000*2000000000", "m*K*K*K"])
def test_bounds_do_not_wrap_around(position):
    text = f"def f(float(N,M) X, bool(K) Z) -> (P) {{ P(n) max=! X(n,m) > 0.9 ? {position} : -1 where exists Z(0) }}"
    columns, k = 5, 1 if "K" not in position else 1 << 20
    x = np.zeros((1, columns), np.float32)
    x[0, 1] = 1
    found = tc.compile(text, target="cpu").f(x, np.zeros(k, bool))
    assert found == eval(position, {"m": 1, "K": k})


def test_positions_without_known_ends_leave_the_loop_as_it_is():
    assert not conditions(search(choice(var("elsewhere"), M)))
    by_data = loop("k", read("L", n, dtype=DType.INT64), Store("P", (n,), choice(var("k"), M), reduce="min"))
    assert not conditions(loop("n", N, by_data, kind="parallel"))


def test_sizes_are_asked_for_what_they_can_decide():
    assert conditions(search(choice(m, M))) == [f"<= {LARGEST_POSITION}", f"<= {LARGEST_POSITION}"]
    assert conditions(search(choice(op("-", int64(0), m), int64(7)))) == [f">= {-LARGEST_POSITION}"]


@pytest.mark.parametrize(
    "loops",
    [
        search(choice(m, M), reduce="+"),
        search(choice(m, M), reduce=None),
        search(read("X", n, m)),
        loop("n", N, loop("m", M, Store("P", (n,), choice(m, M), reduce="min"), Store("V", (n,), const(0.0)))),
    ],
    ids=["sum", "no reduction", "data", "other work in the loop"],
)
def test_other_loops_stay(loops):
    assert narrow(Block((loops,))) == Block((loops,))
    assert not any(
        isinstance(node, Const) and node.value == LARGEST_POSITION for e in expressions(loops) for node in walk(e)
    )


PROGRAMS = """
def largest(float(N,M) X) -> (V,P) {
    V(n) max=! X(n,m)
    P(n) min=! X(n,m) == V(n) ? m : M
}
def last(float(N,M) X, float t) -> (P) { P(n) max=! X(n,m) > t ? m : -1 }
def whole(float(N,M) X, float t) -> (P) { P() min=! X(n,m) > t ? n*M + m : N*M }
def column(float(N,M) X, float t) -> (P) { P(m) min=! X(n,m) > t ? n : N }
def below(int8(N,M) X) -> (P) { P(n) max=! X(n,m) > 3 ? -m : -M - 1 }
def far(float(N,M) X, float t) -> (P) { P(n) max=! X(n,m) > t ? m + 4000000000 : 5 }
def onto(float(N,M) X, int64(N) Q, float t) -> (P) {
    P(n) = Q(n)
    P(n) min= X(n,m) > t ? m : M
}
"""
FUNCTIONS = tc.compile(PROGRAMS, target="cpu")
LANES = cpu.cpu_target().vector_bits // 32


@pytest.mark.some(5)
@pytest.mark.parametrize("rows", [1, 2, 5, 70])
@pytest.mark.parametrize("columns", [1, LANES - 1, LANES, LANES + 1, 4 * LANES + 1, 8 * LANES - 1, 300])
@pytest.mark.parametrize("least", [0.5, 0.995, 2.0])
def test_positions_are_those_of_numpy(rows, columns, least):
    rng = np.random.default_rng([rows, columns])
    x, t = rng.random((rows, columns), np.float32), np.float32(least)
    found, at, f = x > t, np.arange(columns), FUNCTIONS
    v, p = f.largest(x)
    assert np.array_equal(v, x.max(1))
    assert np.array_equal(p, x.argmax(1))
    assert np.array_equal(f.last(x, t), np.where(found, at, -1).max(1))
    assert f.whole(x, t) == np.where(found.ravel(), np.arange(x.size), x.size).min()
    assert np.array_equal(f.column(x, t), np.where(found, np.arange(rows)[:, None], rows).min(0))
    assert np.array_equal(f.far(x, t), np.where(found, at + 4_000_000_000, 5).max(1))
    small = (x * 8).astype(np.int8)
    assert np.array_equal(f.below(small), np.where(small > 3, -at, -columns - 1).max(1))
    q = rng.integers(-(1 << 40), columns + 3, rows)
    assert np.array_equal(f.onto(x, q, t), np.minimum(q, np.where(found, at, columns).min(1)))


INNER = """
def row(float(N,M) X, float t) -> (P) { P(n) min=! X(n,m+k) > t ? m+k : M where k in 0:5 }
def deep(float(N,M,K) X, int64(N) Q, float t) -> (P) {
    P(n) = Q(n)
    P(n) min= X(n,m,k) > t ? m*K + k : M*K where k in 0:5
}
def wide(float(N,M,K) X, float t) -> (P) { P(n,m) max=! X(n,m,k) > t ? k : -1 where k in 0:3 }
def middle(float(N,M,K) X, int64(N,K) Q, float t) -> (P) {
    P(n,k) = Q(n,k)
    P(n,k) max= X(n,m,k) > t ? m : -1 where m in 0:3
}
def all(float(N,M,K) X, float t) -> (P) { P(m) min=! X(n,m,k) > t ? n*K + k : N*K }
def far(float(N,M,K) X, float t) -> (P) { P(n) min=! X(n,m,k) > t ? m*K + k : 9223372036854775807 where k in 0:5 }
"""
INNERS = tc.compile(INNER, target="cpu")


@pytest.mark.some(3)
@pytest.mark.parametrize("rows", [1, 3, 33])
@pytest.mark.parametrize("columns", [5, LANES + 1, 31])
@pytest.mark.parametrize("depth", [5, LANES, 2 * LANES + 1])
def test_short_loops_inside_keep_targets_of_64_bits(rows, columns, depth):
    rng = np.random.default_rng([rows, columns, depth])
    x, t = rng.random((rows, columns, depth), np.float32), np.float32(0.9)
    n, m, k = np.ogrid[:rows, :columns, :depth]
    end, five, found, f = columns * depth, (slice(None), slice(None), slice(5)), x > t, INNERS
    assert np.array_equal(f.row(x[:, :, 0].copy(), t), np.where(found[:, :, 0], m[..., 0], columns).min(1))
    q = rng.integers(-(1 << 45), 1 << 45, (rows, depth))
    q[0, 0] = 2
    first = np.where(found, m * depth + k, end)[five].min((1, 2))
    assert np.array_equal(f.deep(x, q[:, 0].copy(), t), np.minimum(q[:, 0], first))
    assert np.array_equal(f.wide(x, t), np.where(found, k, -1)[:, :, :3].max(2))
    assert np.array_equal(f.middle(x, q, t), np.maximum(q, np.where(found, m, -1)[:, :3].max(1)))
    assert np.array_equal(f.all(x, t), np.where(found, n * depth + k, rows * depth).min((0, 2)))
    assert np.array_equal(f.far(x, t), np.where(found, m * depth + k, (1 << 63) - 1)[five].min((1, 2)))


@pytest.mark.parametrize("columns", [LANES, 3 * LANES + 2])
def test_vectors_of_outputs_keep_targets_of_64_bits(columns):
    text = "def f(float(N,M) X, int64(M) Q, float t) -> (P) { P(m) = Q(m)\n P(m) min= X(n,m) > t ? n : N }"
    f = tc.compile(text, target="cpu").f
    split = f.schedule().split("P#2", "m", 8).reorder("P#2", "m.outer", "n", "m.inner")
    function = f.with_schedule(split.vectorize("P#2", "m.inner"))
    rng = np.random.default_rng(columns)
    x, q = rng.random((40, columns), np.float32), rng.integers(-(1 << 45), 1 << 45, columns)
    q[0] = 3
    expected = np.minimum(q, np.where(x > 0.9, np.arange(40)[:, None], 40).min(0))
    assert np.array_equal(function(x, q, 0.9), expected)


def test_nothing_is_found_in_empty_rows():
    v, p = FUNCTIONS.largest(np.zeros((3, 0), np.float32))
    assert np.array_equal(v, [-np.inf] * 3)
    assert np.array_equal(p, [np.iinfo(np.int64).max] * 3)


@pytest.mark.slow
def test_a_row_may_be_longer_than_32_bits_can_count():
    length = (1 << 31) + 9
    row = np.broadcast_to(np.float32(0.3), (1, length))
    assert FUNCTIONS.last(row, 0.2) == [length - 1]
    assert FUNCTIONS.last(row, 0.7) == [-1]
