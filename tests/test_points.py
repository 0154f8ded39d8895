"""Ranges that differ from point to point, and conditions as clauses: what calls compute, and what they refuse."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.program import DType
from tc_jupyter.runtime import nvrtc
from tc_jupyter.runtime.within import within
from tests.tc_programs import drawn_points, judge

TEXT = """
def lower(float(N, N) A, float(N, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) where k in 0:i + 1 }
def upper(float(N, N) A, float(N, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) where k in i:N }
def behind(float(N, N) A, float(N, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) where k in 0:j }
def both(float(N, N) A, float(N, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) where k in j:i + 1 }
def turned(float(N, N) A, float(N) X) -> (Y) { Y(i) +=! A(k, i) * X(k) where k in 0:i + 1 }
def straight(float(N, N) A, float(N) X) -> (Y) { Y(i) +=! A(i, k) * X(k) where k in i:N }
def running(float(N) X) -> (Y) { Y(i) max=! X(k) where i in 0:N, k in 0:i + 1 }
def total(float(N, N) A) -> (s) { s +=! A(i, k) where k in 0:i }
def rows(float(Z) V, int32(Z) Col, int32(R) Ptr, float(C) X) -> (Y) { Y(i) +=! V(k) * X(Col(k)) where k in Ptr(i):Ptr(i + 1) }
def planes(float(Z) V, int32(Z) Col, int32(R) Ptr, float(C, D) X) -> (Y) {
    Y(i, d) +=! V(k) * X(Col(k), d) where k in Ptr(i):Ptr(i + 1)
}
def lengths(float(N, M) X, uint8(N) L) -> (Y) { Y(n) +=! X(n, m) where m in 0:L(n) }
def histogram(int32(N) X) -> (int32(8) H) { H(X(i)) +=! 1 where X(i) < 8 }
def place(int32(N) P, float(N) X) -> (float(N) Y) { Y(i) = 0 where i in 0:N   Y(P(i)) = X(i) where unique, P(i) >= 0 }
def cut(float(N) X) -> (Y) { Y(i) = X(i)   Y(i) = 0 where X(i) < 0 }
def best(float(N, M) X) -> (V, P) { V(n), P(n) argmax=! X(n, m) where X(n, m) < 5 }
def some(float(N, M) X) -> (A, B) { A(n) any=! X(n, m) > 2 where m > 0   B(n) all=! X(n, m) > 2 where m > 0 }
"""
TARGETS = ("interpreter", "cpu")
MODULES = {target: tc.compile(TEXT, target=target) for target in TARGETS}


def sparse(random, rows, columns):
    counts = random.integers(0, 7, rows)
    counts[rows // 2] = 100  # longer than vectors
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    values = random.standard_normal(ends[-1]).astype("f")
    where = random.integers(0, columns, ends[-1]).astype(np.int32)
    dense = np.zeros((rows, columns))
    for row in range(rows):
        np.add.at(dense[row], where[ends[row] : ends[row + 1]], values[ends[row] : ends[row + 1]])
    return values, where, ends, dense


@pytest.mark.some(7)
@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, 31, 33, 65, 130])
@pytest.mark.parametrize("target", TARGETS)
def test_triangles(size, target):
    if target == "interpreter" and size > 9:
        pytest.skip("the interpreter visits every point")
    module, random = MODULES[target], np.random.default_rng(size)
    A, B = (random.standard_normal((size, size)).astype("f") for _ in range(2))
    X = random.standard_normal(size).astype("f")
    L, U = np.tril(A), np.triu(A)
    for name, found, expected in (
        ("lower", module.lower(A, B), L @ B),
        ("upper", module.upper(A, B), U @ B),
        ("behind", module.behind(A, B), A @ np.triu(B, 1)),
        ("both", module.both(A, B), L @ np.tril(B)),
        ("turned", module.turned(A, X), U.T @ X),
        ("straight", module.straight(A, X), U @ X),
        ("running", module.running(X), np.maximum.accumulate(X)),
        ("total", module.total(A), np.tril(A, -1).sum()),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3, err_msg=name)


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_not_there_is_not_multiplied(target):
    A, B = np.ones((40, 40), "f"), np.ones((40, 40), "f")
    A[np.triu_indices(40, 1)] = np.inf
    B[39] = np.nan
    found = MODULES[target].lower(A, B)
    np.testing.assert_array_equal(found[:39], np.broadcast_to(np.arange(1, 40)[:, None], (39, 40)))
    assert np.isnan(found[39]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_ragged_sums(target):
    values, where, ends, dense = sparse(np.random.default_rng(1), 30, 20)
    X = np.random.default_rng(2).standard_normal((20, 70 if target == "cpu" else 3)).astype("f")
    module = MODULES[target]
    for _ in range(3):  # the general path, a recipe, and the native call
        np.testing.assert_allclose(module.rows(values, where, ends, X[:, 0].copy()), dense @ X[:, 0], atol=1e-4)
        np.testing.assert_allclose(module.planes(values, where, ends, X), dense @ X, atol=1e-4)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([0, 3, 2, 5], "ends before it starts: it starts at 3 and ends at 2"),
        ([0, 2, 6], "ends outside: 6 is not between 2 and 5"),
        ([-1, 2, 4], "ends outside: -1 is not between 0 and 5"),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_ends_that_fall_or_lie_outside_are_refused_before_the_call(ends, said, target):
    f, ones, columns, X = MODULES[target].rows, np.ones(5, "f"), np.array([0, 1, 2, 0, 1], np.int32), np.ones(3, "f")
    good = np.linspace(0, 5, len(ends)).astype(np.int32)
    for _ in range(3):
        f(ones, columns, good, X)
    for order in (slice(None), slice(None, None, -1)):
        given = np.array(ends[order], np.int32)[order]  # the same elements, also in steps of -1
        with pytest.raises(tc.CallError, match=said) as caught:
            f(ones, columns, given, X)
        assert caught.value.diagnostic.code.number == "TC604"


@pytest.mark.parametrize("target", TARGETS)
def test_columns_are_looked_at_in_rows_only(target):
    f, ones, X = MODULES[target].rows, np.ones(5, "f"), np.ones(3, "f")
    columns = np.array([0, 1, 2, 0, 7], np.int32)
    np.testing.assert_array_equal(f(ones, columns, np.array([0, 2, 4], np.int32), X), [2, 2])
    with pytest.raises(tc.CallError, match="index 7 in dimension 0") as caught:
        f(ones, columns, np.array([0, 2, 5], np.int32), X)
    assert "i = 1, k = 4" in str(caught.value)


@pytest.mark.parametrize("target", TARGETS)
def test_lengths(target):
    f, X = MODULES[target].lengths, np.arange(12, dtype="f").reshape(3, 4)
    np.testing.assert_array_equal(f(X, np.array([0, 2, 4], np.uint8)), [0, 9, 38])
    with pytest.raises(tc.CallError, match="the range of `m` ends outside: 5 is not between 0 and 4"):
        f(X, np.array([0, 2, 5], np.uint8))


@pytest.mark.parametrize("target", TARGETS)
def test_conditions(target):
    module = MODULES[target]
    X = np.array([1, 300, 7, 1], np.int32)
    np.testing.assert_array_equal(module.histogram(X), [0, 2, 0, 0, 0, 0, 0, 1])
    with pytest.raises(tc.CallError, match="index -3 in dimension 0"):
        module.histogram(np.array([1, -3], np.int32))
    ones = np.ones(3, "f")
    np.testing.assert_array_equal(module.place(np.array([2, -1, 0], np.int32), ones), [1, 0, 1])
    np.testing.assert_array_equal(module.place(np.array([-2, -2, 0], np.int32), ones), [1, 0, 0])
    with pytest.raises(tc.CallError, match="TC617"):
        module.place(np.array([2, 2, 0], np.int32), ones)
    np.testing.assert_array_equal(module.cut(np.array([-1, np.nan, 2], "f")), [0, np.nan, 2])
    grid = np.array([[9, 3, 1], [9, 9, 4]], "f")
    np.testing.assert_array_equal(module.some(grid), [[True, True], [False, True]])
    np.testing.assert_array_equal(module.some(grid[:, :1]), [[False, False], [True, True]])


@pytest.mark.parametrize("target", TARGETS)
def test_a_row_that_conditions_empty_has_no_position(target):
    f, X = MODULES[target].best, np.arange(12, dtype="f").reshape(3, 4)
    np.testing.assert_array_equal(f(X[:2])[1], [3, 0])
    with pytest.raises(tc.CallError, match="there is no position in `P`") as caught:
        f(X)
    assert caught.value.diagnostic.code.number == "TC604"
    assert "n = 2" in str(caught.value)


CALLED = """
def low(float(N, N) A, float(N) X, int32(R) Ptr, float t) -> (Y, Z) {
    Y(i) +=! A(i, k) * X(k) where k in 0:i + 1, X(k) > t
    Z(r) +=! X(k) where k in Ptr(r):Ptr(r + 1)
}
def caller(float(N, N) A, float(N) X, int32(R) Ptr, float t) -> (W, V) {
    U, V = low(A, X, Ptr, t)
    W(i) = U(i)
    W(i) = 0 where U(i) < 1
}
def computed(int32(N) L, float(Z) V) -> (Y) {
    P(i) +=! L(k) where k in 0:i, i in 0:N + 1
    Y(i) +=! V(k) where k in P(i):P(i + 1)
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_calls_of_defs_and_ends_that_are_computed(target):
    module, random = tc.compile(CALLED, target=target), np.random.default_rng(4)
    A, X, ends = random.random((6, 6)).astype("f"), random.random(6).astype("f"), np.array([1, 2, 6], np.int32)
    W, V = module.caller(A, X, ends, 0.4)
    U = np.tril(A) @ np.where(np.float32(0.4) < X, X, 0)
    np.testing.assert_allclose(W, np.where(U < 1, 0, U), rtol=1e-5)
    np.testing.assert_allclose(V, [X[1], X[2:].sum()], rtol=1e-5)
    ones = np.ones(5, "f")
    np.testing.assert_array_equal(module.computed(np.array([2, 0, 3], np.int32), ones), [2, 0, 3])
    for lengths in ([2, 0, 4], [2, -1, 4]):
        with pytest.raises(tc.CallError, match="TC604"):
            module.computed(np.array(lengths, np.int32), ones)


def test_no_call_visits_what_is_not_there():
    """Also where a size is 0, and the loops are others."""
    f = tc.compile(
        "def f(float(Z) V, int32(R) Ptr, float(Q) E) -> (Y, W) { Y(i) +=! V(k) where k in Ptr(i):Ptr(i + 1)  W(q) = E(q) }"
    ).f
    many = 200_000
    for empty in (1, 0):
        Y, _ = f(np.ones(many, "f"), np.arange(many + 1, dtype=np.int32), np.ones(empty, "f"))
        assert (Y == 1).all()


@pytest.mark.parametrize("name", ["rows", "planes"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_loops_end_where_elements_say(name, target):
    loops = tc.compile(TEXT, target=target)[name].source("loops")
    assert "in 0:Z" not in loops
    assert "?" not in loops


def test_products_of_triangles_have_loops_without_conditions():
    loops = MODULES["cpu"].lower.source("loops")
    sums = [line for line in loops.splitlines() if "C.cache[" in line and "+=" in line]
    assert len(sums) == 2
    assert sum("?" in line for line in sums) == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_rising_elements(dtype):
    rises, random = within(DType(dtype), rising=True), np.random.default_rng(0)
    for count in (1, 2, 3, 7, 33, 100):
        for _ in range(20):
            elements = np.sort(random.integers(0, 100, count)).astype(dtype)
            if random.random() < 0.5:
                elements[random.integers(count)] = random.integers(0, 100)
            least, most = int(random.integers(0, 10)), int(random.integers(90, 100))
            expected = (elements[1:] >= elements[:-1]).all() and elements[0] >= least and elements[-1] <= most
            assert bool(rises(elements.ctypes.data, count, least, most)) == bool(expected)


@pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))
@pytest.mark.parametrize("name", ["lower", "turned", "rows", "planes", "histogram", "cut", "best"])
def test_on_a_simulated_gpu(name):
    random = np.random.default_rng(3)
    values, where, ends, _ = sparse(random, 6, 5)
    A, X = random.random((19, 19)).astype("f"), random.random(19).astype("f")
    given = {
        "lower": (A, A), "turned": (A, X), "rows": (values, where, ends, X[:5]), "planes": (values, where, ends, A[:5]),
        "histogram": (where,), "cut": (X - 0.5,), "best": (A,),
    }[name]  # fmt: skip
    found, expected = tc.compile(TEXT, target="cuda")[name].simulate(*given), MODULES["interpreter"][name](*given)
    assert found.findings == ()
    for mine, theirs in zip(found.outputs, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_engines_compute_what_the_pages_say(seed):
    judge(*drawn_points(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2200))
def test_engines_compute_what_the_pages_say_many(seed):
    judge(*drawn_points(seed))


BEYOND = {
    "T(i) += B(k) where i in 0:N, k in 0:2, i % 9 == N": None,
    "T(i) min= 3 where i in 0:N, i % 9 == N": None,
    "T(i) += 2 where i in 0:N, Id(i) > 1": None,
    "T(i) += 2 where i in 0:N, Id(i) == 1": "TC604",
    "T(i) +=! B(k) where i in 0:N, k in 0:2, Id(i) > 1": "TC601",
    "T(i, Id(k)) +=! B(k) where i in 0:N, Id(i) > 1": "TC601",
}


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize(("statement", "code"), BEYOND.items())
def test_elements_that_are_not_there_are_neither_read_nor_written(statement, code, target):
    """A condition may leave out all of their points; a reduction that begins anew needs them anyway."""
    first = "T(i, j) = A(i) where j in 0:3" if "Id(k)" in statement else "T(i) = A(i)"
    text = f"def f(float(M) A, float(N) B, int32(N) Id) -> (T) {{ {first}  {statement} }}"
    f = tc.compile(text, target=target, allow=[each.code.number for each in tc.analyze(text).diagnostics]).f
    a, arguments = np.full(3, 7, np.float32), (np.arange(8, dtype=np.float32), np.ones(8, np.int32))
    if code is None:
        assert f(a, *arguments).tolist() == [7, 7, 7]
        return
    with pytest.raises(tc.CallError, match=code):
        f(a, *arguments)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_number_that_a_statement_computes_is_a_subscript_of_a_temporary(target):
    text = "def f(float(N) X, int32(M) I) -> (Y) { T(j) = X(j)*2  k max=! I(m)  Y = T(max(min(k, N - 1), 0)) }"
    f = tc.compile(text, target=target).f
    assert f(np.arange(5, dtype=np.float32), np.int32([1, 2, 1])) == 4


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_truth_values_as_integers_are_subscripts(target):
    f = tc.compile("def f(float(2) A, bool(N) B) -> (T) { T(i) = A(int64(B(i))) }", target=target).f
    assert f(np.float32([1, 2]), np.array([True, False, True])).tolist() == [2, 1, 2]


@pytest.mark.parametrize("size", [5, 6, 8, 9, 40])
@pytest.mark.parametrize(
    "statement",
    [
        "T(i, j) +=! max(0, (A(i, i) > 1 ? A(i, (i + k)%5) : 2)) where i in 0:N, j in 0:N, k in 0:N",
        "T(i) +=! (A(i, i) > 1 ? A((i + k)%5, i) : 2) where i in 0:N, k in 0:3",
        "T(i, j) +=! X(j) * (A(i, i) > 1 ? A(i, k%5) : 2) where i in 0:N, j in 0:N, k in 0:N",
    ],
)
def test_what_sizes_prove_is_taken_apart_without_its_checks(statement, size):
    """Data decides whether an element is read that is there whenever the size is large enough."""
    text = f"def f(float(N, N) A, float(N) X) -> (T) {{ {statement} }}"
    arguments = 3 * np.random.default_rng(size).random((size, size), np.float32), np.arange(size, dtype=np.float32)
    fast, slow = (tc.compile(text, target=target, allow=["TC322"]).f for target in ("cpu", "interpreter"))
    np.testing.assert_allclose(fast(*arguments), slow(*arguments), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 9, 70, 9000])
def test_a_short_loop_inside_of_a_condition_ends_no_loop_around_it(size):
    text = "def f(int64(N) Id, float(N) X) -> (float(3, 6) T) { T(Id(j), j + 3) max=! X(j) where j > N - 5, j + 3 < 6 }"
    arguments = np.arange(size) % 3, np.random.default_rng(1).random(size, np.float32)
    allowed = [each.code.number for each in tc.analyze(text).diagnostics]
    fast, slow = (tc.compile(text, target=target, allow=allowed).f for target in ("cpu", "interpreter"))
    np.testing.assert_array_equal(fast(*arguments), slow(*arguments))


@pytest.mark.parametrize("target", TARGETS)
def test_both_ends_of_every_range_are_there(target):
    """Whether a row has an element does not matter, nor whether another range has one."""
    text = "def f(int32(R) Ptr, float(Z) V) -> (Y) { Y(i) +=! V(k) where k in Ptr(i):Ptr(i + 1), i in 0:R }"
    with pytest.raises(tc.CompileError, match="`Ptr\\(i \\+ 1\\)` leaves `Ptr` for all sizes"):
        tc.compile(text, target=target)
    text = "def f(uint8(N) L, float(N) X) -> (Y) { Y(i) +=! X(l) * X(k) where i in 0:8, k in i:N, l in 0:L(i) }"
    f = tc.compile(text, target=target, allow=["TC322", "TC323"]).f
    assert f(np.uint8([2] * 8), np.ones(8, "f")).tolist() == [16, 14, 12, 10, 8, 6, 4, 2]
    with pytest.raises(tc.CallError, match="`N >= 8` is false"):
        f(np.uint8([0] * 4), np.ones(4, "f"))


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize(
    "statement",
    [
        "T(i) +=! (j*j <= 2 ? A(j*j) : 2) where j in 0:N, i in 0:3",
        "T(i) +=! A(i) * (j*j <= 2 ? A(j*j) : 2) where j in 0:N, i in 0:3",
        "T(i) +=! A(k) * (i*k <= 2 ? A(i*k) : 2) where i in 0:N, k in 0:3",
        "T(i) +=! X(j) where j in 0:N, i in 0:3, (j*j <= 2 ? A(j*j) : 2) != 2",
        "U(j) = (j*j <= 2 ? A(j*j) : 2) where j in 0:N  T(i) +=! U(j) * A(i) where i in 0:3",
    ],
)
def test_no_statement_is_taken_apart_of_which_each_point_is_looked_at(statement, size):
    """No element decides what is read, and yet it is not proved to be there."""
    text = f"def f(float(3) A, float(N) X) -> (T) {{ {statement} }}"
    arguments = np.float32([1, 2, 3]), np.arange(size, dtype=np.float32)
    fast, slow = (tc.compile(text, target=target, allow=["TC234"]).f for target in ("cpu", "interpreter"))
    np.testing.assert_allclose(fast(*arguments), slow(*arguments), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_a_statement_is_not_written_out_whose_points_look_at_where_they_go(size):
    text = """def f(float(N, M) A, float(M) w, int32(N) Id) -> (float(M) H, V) {
        V(i, j) = A(i, j) * w(j)
        H(Id(i)) +=! V(i, j) where V(i, j) > 0
    }"""
    arguments = np.ones((1, size), "f"), np.arange(size, dtype=np.float32), np.int32([size - 1])
    allowed = [each.code.number for each in tc.analyze(text).diagnostics]
    for target in TARGETS:
        f = tc.compile(text, target=target, allow=allowed).f
        assert f(*arguments)[0].tolist() == [0] * (size - 1) + [sum(range(size))]
        with pytest.raises(tc.CallError, match="TC604") if size > 1 else contextlib.nullcontext():
            f(*arguments[:2], np.int32([-1]))
