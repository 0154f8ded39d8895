"""Where the conditions of a point are asked, and that the results stay what they are."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.loops import Block, For
from tc_jupyter.loops.loop_ends import ended
from tc_jupyter.loops.show import show_expr
from tc_jupyter.program import Binary, Cast, DType, Expr, IndexVar, Read, Size, int64
from tc_jupyter.runtime import nvrtc
from tc_jupyter.schedule.target import Target

i, k, n = IndexVar("i"), IndexVar("k"), Size("N")
length, long = (Read("L", (i,), dtype) for dtype in (DType.INT32, DType.INT64))


def op(operator: str, left: Expr, right: Expr) -> Expr:
    return Binary(operator, left, right, DType.BOOL if operator in ("<", "<=", ">", ">=", "==", "!=") else DType.INT64)


@pytest.mark.parametrize(
    ("condition", "low", "extent"),
    [
        (op("<", k, i), "0", "min(N, i)"),
        (op("<=", k, i), "0", "min(N, i + 1)"),
        (op(">", i, k), "0", "min(N, i)"),
        (op(">=", k, i), "max(0, i)", "N - max(0, i)"),
        (op(">", k, i), "max(0, i + 1)", "N - max(0, i + 1)"),
        (op("==", k, i), "max(0, i)", "min(N, i + 1) - max(0, i)"),
        (op("<", op("+", k, i), n), "0", "min(N, N - i)"),
        (op("<", op("-", i, k), int64(4)), "max(0, i - 4 + 1)", "N - max(0, i - 4 + 1)"),
        (op("==", op("//", k, int64(8)), i), "max(0, 8 * i)", "min(N, 8 * (i + 1)) - max(0, 8 * i)"),
        (op("<", k, Cast(length, DType.INT64)), "0", "min(N, L[i])"),
        (op("<=", k, Cast(length, DType.INT64)), "0", "min(N, L[i] + 1)"),
        (op("<", k, long), "0", f"min(N, min(max(L[i], {-(2**62)}), {2**62}))"),
        (op("!=", k, i), None, None),
        (op("<", op("*", int64(2), k), i), "0", "min(N, (i + 1) // 2)"),
        (op(">=", op("*", int64(2), k), i), "max(0, (i + 1) // 2)", "N - max(0, (i + 1) // 2)"),
        (op("<", k, op("*", k, i)), None, None),
        (op("<", i, n), None, None),
    ],
)
def test_a_comparison_with_the_variable_ends_the_loop(condition, low, extent):
    found = ended(For("k", int64(0), n, Block(())), condition)
    assert (found and show_expr(found.min), found and show_expr(found.extent)) == (low, extent)


@pytest.mark.parametrize("limit", [-(2**63), -1, 0, 3, 7, 2**63 - 1])
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=="])
def test_any_number_of_64_bits_is_an_end(operator, limit):
    module = tc.compile(
        f"def f(int64(B) L, float(B, K) X) -> (Y) {{ Y(b) +=! k + 2 {operator} L(b) ? X(b, k) : 0 }}", target="cpu"
    )
    assert "for k in 0:K\n" not in module.f.source("loops")
    x = np.arange(1, 8, dtype="f")
    place = np.arange(7).astype(object) + 2
    kept = {"<": place < limit, "<=": place <= limit, ">": place > limit, ">=": place >= limit, "==": place == limit}
    expected = x[kept[operator].astype(bool)].sum()
    np.testing.assert_array_equal(module.f(np.array([limit] * 3), np.stack([x] * 3)), [expected] * 3)


TABLE = [
    # statement of `f`, the lines of its loops that say where its conditions are asked
    (
        "Y(b, d) +=! l < Len(b) ? T(I(b, l), d) : 0",
        ["for l in 0:min(L, Len[b])", "check 0 <= I[b, l] && I[b, l] < V"],
    ),
    (
        "Y(b, d) +=! W(b) > 0 && l < Len(b) ? T(I(b, l), d) : 0",
        ["if W[b] > 0.0", "for l in 0:min(L, Len[b])", "check 0 <= I[b, l] && I[b, l] < V"],
    ),
    (
        "Y(b, d) = W(b) > 0 ? T(J(b), d) : 0",
        ["check !(W[b] > 0.0) || 0 <= J[b] && J[b] < V", "for d.outer in 0:(D + 31) // 32"],
    ),
    ("Y(b) +=! l <= b ? float(I(b, l)) : 0", ["for l in 0:min(L, b + 1)"]),
    ("Y(b) +=! W(b) > 0 ? float(I(b, l)) : 0", ["if W[b] > 0.0", "for l in 0:L"]),
    # what is read behind a condition on indices may not be there without it
    (
        "Y(b) +=! l + b < B && W(b + l) > 0 ? float(I(b, l)) : 0",
        ["for l in 0:min(L, B - b)", "Y[b] += W[b + l] > 0.0 ? float32(I[b, l]) : 0.0"],
    ),
    ("Y(b) +=! l + b < B && W(l) > 0 ? float(I(b, l)) : 0", ["for l in 0:min(min(B, L), B - b)"]),
    (
        "Y(b) max=! l >= Len(b) && l != b ? float(I(b, l)) : -inf",
        ["for l in max(0, Len[b]):max(0, Len[b]) + L - max(0, Len[b])"],
    ),
    ("Y(b) +=! J(b) == l ? float(I(b, l)) : 0", ["if 0 <= J[b] && J[b] < L", "Y[b] += float32(I[b, J[b]])"]),
]


QUIET = ("TC234", "TC330")


def text_of(statement: str) -> str:
    """A def of a statement of the table."""
    return f"def f(float(V, D) T, int32(B, L) I, int32(B) Len, int32(B) J, float(B) W) -> (Y) {{ {statement} }}"


@pytest.mark.parametrize(("statement", "lines"), TABLE)
def test_places(statement, lines, monkeypatch):
    monkeypatch.setattr(Target, "reads_ahead", True)  # rows are read one by one, on every processor
    loops = [
        line.split("  #")[0].strip()
        for line in tc.compile(text_of(statement), allow=QUIET).f.source("loops").splitlines()
    ]
    found = [loops.index(line) for line in lines if line in loops]
    assert len(found) == len(lines), "\n".join(loops)
    assert found == sorted(found)


def data_of(statement: str):
    """Arrays for the statements of the table; positions that no condition lets through are outside."""
    rng = np.random.default_rng(3)
    v, d, b, rows = 6, 37, 11, 9
    index, length = rng.integers(0, v, (b, rows), np.int32), rng.integers(-2, rows + 3, b, np.int32)
    weights = rng.standard_normal(b, np.float32)
    if "T(" in statement:
        index[np.arange(rows) >= length[:, None]] = 99
        index[weights <= 0 if "W(b) >" in statement else []] = -5
    place = np.where(weights > 0, rng.integers(0, v, b), -7).astype(np.int32)
    return rng.standard_normal((v, d), np.float32), index, length, place, weights


def expected(statement: str):
    """What the loops as they are written compute."""
    return tc.compile(text_of(statement), allow=QUIET, target="interpreter").f(*data_of(statement))


@pytest.mark.parametrize("check", ["all", "none"])
@pytest.mark.parametrize("statement", [statement for statement, _ in TABLE])
def test_values(statement, check):
    found = tc.compile(text_of(statement), allow=QUIET, target="cpu", check=check).f(*data_of(statement))
    np.testing.assert_allclose(found, expected(statement), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))
@pytest.mark.parametrize("statement", [statement for statement, _ in TABLE])
def test_values_on_a_gpu(statement):
    found = tc.compile(text_of(statement), allow=QUIET).f.simulate(*data_of(statement))
    assert not found.findings
    np.testing.assert_allclose(found.outputs[0], expected(statement), rtol=1e-5, atol=1e-6)


def test_a_position_that_is_looked_at_is_checked():
    text = "def f(float(V, D) T, int32(B, L) I, int32(B) Len) -> (Y) { Y(b, d) +=! l < Len(b) ? T(I(b, l), d) : 0 }"
    f = tc.compile(text, target="cpu").f
    table, index = np.ones((4, 5), "f"), np.array([[0, 1, 9]], "i")
    np.testing.assert_array_equal(f(table, index, np.array([2], "i")), np.full((1, 5), 2.0))
    with pytest.raises(tc.CallError, match="9"):
        f(table, index, np.array([3], "i"))


def test_no_check_is_made_in_a_loop_without_iterations():
    text = "def f(float(V) T, int32(B) I, float(B) W, float(R) A, float(K) F) -> (Y) { Y(b) +=! W(b) > 0 ? T(I(b)) * A(r + k) : 0 where k in 0:K, r in 0:R-K }"
    f = tc.compile(text, target="cpu", allow="TC234").f
    arrays = [np.ones(n, "f") for n in (3, 2, 4, 4)]
    table, weights, a, filter = arrays
    np.testing.assert_array_equal(f(table, np.array([7, 8], "i"), weights, a, filter), [0, 0])


def test_loops_of_different_lengths_do_not_become_one():
    f = tc.compile(
        "def f(float(B) W, float(L) Z) -> (Y) { Y +=! b + l < B ? 1 : 0 where b in 0:B, l in 0:L }", allow=QUIET
    ).f
    assert f(np.ones(70, "f"), np.ones(5, "f")) == 70 * 5 - 4 - 3 - 2 - 1


def test_a_check_stays_where_what_it_reports_is_known():
    text = "def f(int64(N) A) -> (Y) { Y(i) max=! A(l + i) * (A((l - l) % 7) > 1 ? A((i + 2) % 7) : 2) where l in 0:N, i in 0:1 }"
    module = tc.compile(text, target="cpu")
    np.testing.assert_array_equal(module.f(np.arange(2, 13)), [12 * 4])


@pytest.mark.parametrize("bins", ["bins", "bins - 1"])
def test_a_check_stands_around_a_loop_over_bins_whose_number_is_an_argument(bins):
    """There may be none, so the check is asked only where there are some; each element goes to its bin at once."""
    text = f"def f(float(N) X, int32 bins) -> (int32({bins}) H) {{ H(int32(X(i) * 4)) +=! 1 }}"
    f = tc.compile(text, target="cpu").f
    x = np.array([0, 0.3, 0.9, 0.95], np.float32)
    np.testing.assert_array_equal(f(x, 9)[:4], [1, 1, 0, 2])
    assert f(x[:0], 1).sum() == 0
    with pytest.raises(tc.CallError, match="TC604"):
        f(x, 3)
    assert f.source("loops").count("for at in") == 1
