"""What every point of a loop asks first, and that the interpreter visits the points where it holds alone."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.loops import Block, Buffer, Check, For, If, Kernel, Store
from tc_jupyter.loops.interpret import OutOfBounds, interpret
from tc_jupyter.loops.leading import asked_first
from tc_jupyter.loops.show import show_expr
from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, Select, Size, Unary, int64

i, k, n = IndexVar("i"), IndexVar("k"), Size("N")
first, last = Read("P", (i,), DType.INT64), Read("P", (Binary("+", i, int64(1), DType.INT64),), DType.INT64)


def op(operator: str, left: Expr, right: Expr) -> Expr:
    return Binary(operator, left, right, DType.BOOL)


def both(*conditions: Expr) -> Expr:
    return conditions[0] if len(conditions) == 1 else op("&&", both(*conditions[:-1]), conditions[-1])


def added(*conditions: Expr, where: tuple[Expr, ...] = (i,), buffer: str = "Y") -> Store:
    value = Read("V", (k,), DType.INT64)
    return Store(buffer, where, Select(both(*conditions), value, int64(0), DType.INT64), reduce="+")


def loop(*body: For | If | Store | Check, var: str = "k") -> For:
    return For(var, int64(0), n, Block(body))


FROM, TO, POSITIVE = op("<=", first, k), op("<", k, last), op(">", Read("V", (k,), DType.INT64), int64(0))


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        (loop(added(FROM, TO)), [(">=", "P[i]"), ("<", "P[i + 1]")]),
        (loop(added(FROM, TO, POSITIVE)), [(">=", "P[i]"), ("<", "P[i + 1]")]),
        (loop(added(op("<", i, n), FROM)), [("", "i < N"), (">=", "P[i]")]),
        (loop(added(FROM, op("<", i, n))), [(">=", "P[i]")]),
        (loop(added(FROM, POSITIVE, TO)), [(">=", "P[i]")]),
        (loop(added(op("!=", k, i), FROM)), []),
        (loop(If(both(FROM, TO), Block((Store("Y", (k,), int64(1)),)))), [(">=", "P[i]"), ("<", "P[i + 1]")]),
        (loop(If(FROM, Block((added(TO),)))), [(">=", "P[i]"), ("<", "P[i + 1]")]),
        (loop(If(FROM, Block(()), Block((added(TO),)))), []),
        (loop(added(FROM), added(FROM)), []),
        (loop(added(op("==", k, first))), [("==", "P[i]")]),
        # an inner loop may be empty, and changes nothing of what is asked; what it decides is not asked here
        (loop(loop(added(op("<", k, first), op("<", k, i)), var="i")), []),
        (loop(loop(added(FROM, op("<", k, IndexVar("j"))), var="j")), [(">=", "P[i]")]),
        # a check passes where its premise does not hold, and must be asked where it does
        (
            loop(Check(op("||", Unary("!", FROM, DType.BOOL), POSITIVE), 0, (), Block((added(FROM, TO),)))),
            [(">=", "P[i]")],
        ),
        (loop(Check(POSITIVE, 0, (), Block((added(FROM, TO),)))), []),
        # what the loop writes may be another number at the next point
        (loop(added(FROM, TO, buffer="P")), []),
    ],
)
def test_what_is_asked_first(made: For, asked: list[tuple[str, str]]) -> None:
    assert [(each.op, show_expr(each.value)) for each in asked_first(made)] == asked


def run(stmt: For, rows: list[int], ends: list[int]) -> list[int]:
    """`Y` after a loop over rows around `stmt`."""
    shapes = {"V": 6, "P": len(ends), "Y": len(rows)}
    buffers = tuple(
        Buffer(name, DType.INT64, (int64(size),), role="inout" if name == "Y" else "input")
        for name, size in shapes.items()
    )
    rows_of = For("i", int64(0), int64(len(rows)), Block((stmt,)))
    kernel = Kernel("f", buffers, ("N",), (), Block((rows_of,)), ())
    result = np.array(rows)
    interpret(kernel, {"V": np.arange(1, 7), "P": np.array(ends), "Y": result}, {"N": 6})
    return result.tolist()


@pytest.mark.parametrize("ends", [[0, 2, 6], [3, 3, 3], [4, 1, 9], [-5, 2, -1], [-(2**63), 2**63 - 1, 0]])
def test_the_points_are_those_where_it_holds(ends: list[int]) -> None:
    found = run(loop(added(FROM, TO)), [0, 0], ends)
    assert found == [sum(v + 1 for v in range(6) if ends[row] <= v < ends[row + 1]) for row in range(2)]


@pytest.mark.parametrize(
    ("conditions", "fails"),
    [((FROM, TO), True), ((TO, FROM), True), ((op("<", k, int64(0)), TO), False), ((op(">", i, int64(1)), TO), False)],
)
def test_what_cannot_be_read_is_reported_where_a_point_asks_for_it(conditions: tuple[Expr, ...], fails: bool) -> None:
    """`P[i + 1]` is outside in the second row."""
    if fails:
        with pytest.raises(OutOfBounds):
            run(loop(added(*conditions)), [0, 0], [0, 2])
    else:
        assert run(loop(added(*conditions)), [0, 0], [0, 2]) == [0, 0]


ROWS = """
def rows(float(Z) V, int32(Z) C, int32(P) Ptr, float(N) X) -> (Y) { Y(i) +=! V(k) * X(C(k)) where k in Ptr(i):Ptr(i+1) }
def results(float(R) V, int32(P) Ptr, float(Z) W) -> (float(Z) Y) {
    Y(k) +=! Ptr(i) <= k && k < Ptr(i+1) ? V(i) * W(k) : 0 where k in 0:Z, i in 0:min(P - 1, R) }
def rows_of_rows(float(Z) V, float(R) U, int32(P) A, int32(Q) B) -> (Y) {
    Y(i) +=! V(l) * U(k) where k in A(i):A(i+1), l in B(k):B(k+1) }
"""


@pytest.mark.filterwarnings("ignore::tc_jupyter.DiagnosticWarning")
def test_rows_cost_their_elements() -> None:
    """With so many rows the interpreter took minutes when it asked at every element of every row."""
    module, draw, count = tc.compile(ROWS, target="interpreter"), np.random.default_rng(0), 3000
    ends = np.concatenate([[0], np.cumsum(draw.integers(0, 4, count))]).astype(np.int32)
    total = ends[-1]
    x, w = draw.integers(0, 9, count).astype("f"), draw.integers(0, 9, total).astype("f")
    columns = draw.integers(0, count, total).astype(np.int32)
    row = np.repeat(np.arange(count), np.diff(ends))
    np.testing.assert_array_equal(module.rows(w, columns, ends, x), np.bincount(row, w * x[columns], count))
    np.testing.assert_array_equal(module.results(x, ends, w), x[row] * w)
    outer = np.arange(0, count + 1, 3, dtype=np.int32)
    expected = np.bincount(row // 3, w * x[row], count // 3)
    np.testing.assert_array_equal(module.rows_of_rows(w, x, outer, ends), expected)
