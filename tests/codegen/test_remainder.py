from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.codegen.llvm.remainder import one_by_one
from tc_jupyter.loops import Buffer, If, Store, walk_statements
from tc_jupyter.program import Size, int64
from tests.codegen.llvm_kernels import F32, ISAS, add, compare, const, kernel, least, loop, mul, op, read, target, var

N, M = Size("N"), Size("M")
t, r, q, o, v = (var(name) for name in ("t", "r", "q", "o", "v"))
ROWS, LANES = 4, 8
LEFT = least(op("-", N, mul(t, ROWS)), ROWS)


def sums(place=None, start=None, value=None):
    """Sums of rows, four at a time, and of their squares; `place`: where the first sum is, `value`: what is added up."""
    row, other = add(r, mul(t, ROWS)), add(q, mul(t, ROWS))
    column = add(v, mul(o, LANES))
    part = least(op("-", M, mul(o, LANES)), LANES)
    place = place or row
    x, y = value or read("X", row, column), read("X", other, column)
    body = (
        loop("r", LEFT, Store("s", (start or place,), const(0.0)), kind="unroll"),
        loop(
            "o",
            op("//", add(M, LANES - 1), int64(LANES)),
            loop("r", LEFT, loop("v", part, Store("s", (place,), x, "+"), kind="vectorize"), kind="unroll"),
        ),
        loop("q", LEFT, Store("p", (other,), const(0.0)), kind="unroll"),
        loop(
            "o",
            op("//", add(M, LANES - 1), int64(LANES)),
            loop("q", LEFT, loop("v", part, Store("p", (other,), op("*", y, y), "+"), kind="vectorize"), kind="unroll"),
        ),
    )
    tiles = op("//", add(N, ROWS - 1), int64(ROWS))
    buffers = [
        Buffer("X", F32, (N, M)),
        Buffer("s", F32, (add(N, ROWS),), role="output"),
        Buffer("p", F32, (N,), role="output"),
    ]
    return kernel(buffers, "MN", loop("t", tiles, *body, kind="parallel"))


def versions(made):
    return [stmt for stmt in walk_statements(one_by_one(made.body)) if isinstance(stmt, If)]


@pytest.mark.parametrize("isa", ISAS)
def test_rows_around_a_tile(isa):
    made = sums()
    for n in (1, 3, 4, 5, 8, 11):
        for m in (1, 7, 8, 9, 33, 100):
            x = np.random.default_rng(m).standard_normal((n, m), dtype=np.float32)
            given = {"X": x, "s": np.full(n + ROWS, 7, np.float32), "p": np.full(n, np.nan, np.float32)}
            compare(made, given, {"N": n, "M": m}, isa=isa, rtol=1e-4, atol=1e-4)


def test_the_last_rows_are_a_loop():
    (found,) = versions(sums())
    assert found.otherwise is not None
    (each,) = found.otherwise.body
    assert (each.var, each.kind) == ("r", "serial")
    text = emit_llvm(sums(), target()).text
    assert "; for r in 0:min(N - t * 4, 4)\n" in text
    assert "if r <" not in text


def test_one_row_has_its_vectors_in_one_loop():
    (found,) = versions(sums())
    inside = [stmt for stmt in walk_statements(found.otherwise) if hasattr(stmt, "extent")]
    assert [(loop.extent, loop.kind) for loop in inside if loop.var != "r"] == [(M, "serial")] * 2


@pytest.mark.parametrize(
    "place", [mul(t, ROWS), add(mul(r, 2), mul(t, ROWS)), int64(0)], ids=["one for all", "two apart", "the same"]
)
def test_rows_that_meet_stay_together(place):
    assert versions(sums(place)) == []


def test_a_row_that_starts_another_one_stays_with_it():
    assert versions(sums(start=add(add(r, mul(t, ROWS)), 1))) == []


def test_a_row_that_reads_another_one_stays_with_it():
    assert versions(sums(value=read("p", mul(t, ROWS)))) == []


def test_statements_without_rows_stay():
    tiles = op("//", add(N, ROWS - 1), int64(ROWS))
    row = add(r, mul(t, ROWS))
    body = (
        Store("p", (t,), const(1.0)),
        loop("r", LEFT, Store("s", (row,), const(0.0)), kind="unroll"),
        loop("o", M, loop("r", LEFT, Store("s", (row,), read("X", row, o), "+"), kind="unroll")),
    )
    buffers = [
        Buffer("X", F32, (N, M)),
        Buffer("s", F32, (N,), role="output"),
        Buffer("p", F32, (tiles,), role="output"),
    ]
    assert versions(kernel(buffers, "MN", loop("t", tiles, *body, kind="parallel"))) == []


def test_rows_of_several_matrices():
    """The tiles of rows are counted by an inner loop."""
    f = tc.compile("def f(float(B,N,M) X) -> (S, P) { S(b,n) +=! X(b,n,m)  P(b,n) max=! X(b,n,m) }", target="cpu").f
    for shape in ((3, 4099, 17), (2, 66, 9), (1, 65, 1)):
        x = np.random.default_rng(0).random(shape, "f")
        total, most = f(x)
        np.testing.assert_allclose(total, x.sum(2), rtol=1e-5)
        np.testing.assert_array_equal(most, x.max(2))


def row_kernel(*body):
    tiles = op("//", add(N, ROWS - 1), int64(ROWS))
    buffers = [
        Buffer("X", F32, (add(N, M), M)),
        Buffer("s", F32, (add(N, M),), role="output"),
        Buffer("p", F32, (N,), role="output"),
    ]
    return kernel(buffers, "MN", loop("t", tiles, *body, kind="parallel"))


def rows_loop(name: str, *body, low: int = 0):
    return loop(name, LEFT, *body, kind="unroll", low=low)


ROW, OTHER = add(r, mul(t, ROWS)), add(q, mul(t, ROWS))
SUM = (
    rows_loop("r", Store("p", (ROW,), const(0.0))),
    loop("o", M, rows_loop("r", Store("p", (ROW,), read("X", ROW, o), "+"))),
)


@pytest.mark.parametrize(
    "body",
    [
        (
            rows_loop("q", Store("s", (OTHER,), const(0.0))),
            loop(
                "o",
                M,
                rows_loop(
                    "r", rows_loop("q", Store("s", (OTHER,), op("*", read("X", ROW, o), read("X", OTHER, o)), "+"))
                ),
            ),
        ),
        (*SUM, loop("o", M, rows_loop("r", Store("s", (add(ROW, o),), read("X", ROW, o))))),
        (*SUM, rows_loop("r", Store("s", (ROW,), read("X", ROW, int64(0))), low=1)),
        (*SUM, rows_loop("q", loop("r", M, Store("s", (OTHER,), read("X", OTHER, r), "+")))),
    ],
    ids=["row in row", "moves with another loop", "from the second row", "same name"],
)
def test_other_loops_over_rows_stay(body):
    made = row_kernel(*body)
    assert versions(made) == []
    for n in (3, 4, 6):
        x = np.random.default_rng(n).random((n + 5, 5), "f")
        compare(made, {"X": x, "s": np.zeros(n + 5, "f"), "p": np.zeros(n, "f")}, {"N": n, "M": 5}, rtol=1e-5)
