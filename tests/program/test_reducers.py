"""Reducers of one's own: what engines compute, and what happens when a cell defines one again."""

import numpy as np
import pytest

import tc_jupyter as tc

REDUCERS = """
reduce logsum(float a, float b) = max(a, b) + (a == b ? 0.6931472 : log1p(exp(-abs(a - b)))) from -inf
reduce moments(float m, float s, float c, float m2, float s2, float c2) =
    (c + c2 == 0 ? 0 : (m*c + m2*c2)/(c + c2), c + c2 == 0 ? 0 : s + s2 + (m - m2)*(m - m2)*c*c2/(c + c2), c + c2)
    from (0, 0, 0) with x -> (x, 0, 1)
"""
TEXT = (
    REDUCERS
    + """
def rows(float(N, M) X) -> (L, A, S, C) { L(n) logsum=! X(n, m)   A(n), S(n), C(n) moments=! X(n, m) }
def columns(float(N, M) X) -> (L, A, S, C) { L(m) logsum=! X(n, m)   A(m), S(m), C(m) moments=! X(n, m) }
def whole(float(N, M) X) -> (L, A, S, C) { L logsum=! X(n, m)   A, S, C moments=! X(n, m) }
def groups(float(N) X, int32(N) K) -> (float(5) L, float(5) A, float(5) S, float(5) C) {
    L(K(n)) logsum=! X(n)
    A(K(n)), S(K(n)), C(K(n)) moments=! X(n)
}
"""
)
AXES = {"rows": 1, "columns": 0, "whole": None}


def statistics(X, axis):
    """What NumPy says of the numbers along an axis."""
    X = np.asarray(X, np.float64)
    count = X.size if axis is None else X.shape[axis]
    with np.errstate(all="ignore"):
        sums = np.log(np.exp(X).sum(axis))
    mean = X.sum(axis) / max(1, count)
    centre = mean if axis is None else np.expand_dims(mean, axis)
    return sums, mean, ((X - centre) ** 2).sum(axis), np.full(sums.shape, float(count))


@pytest.fixture
def threads():
    yield tc.set_threads
    tc.set_threads(None)


def close(found, wanted):
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("shape", [(7, 13), (1, 1), (0, 3), (3, 0), (33, 70), (70, 33)])
def test_statistics_of_rows_columns_and_everything(target, shape):
    module = tc.compile(TEXT, target=target)
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for name, axis in AXES.items():
        close(module[name](X), statistics(X, axis))


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_statistics_of_groups(target):
    random = np.random.default_rng(1)
    X, K = random.normal(size=3000).astype(np.float32), random.integers(0, 4, 3000).astype(np.int32)
    wanted = [statistics(X[k == K], None) for k in range(5)]
    close(tc.compile(TEXT, target=target).groups(X, K), np.array(wanted).T)


def test_as_many_groups_as_a_call_says():
    text = (
        REDUCERS
        + """
    def spread(float(N) X, int32(N) K, int32 G) -> (float(G) A, float(G) S, float(G) C, V) {
        A(K(n)), S(K(n)), C(K(n)) moments=! X(n)
        V(k) = S(k)/C(k)
    }"""
    )
    random = np.random.default_rng(8)
    X, K = random.normal(size=9000).astype(np.float32), random.integers(0, 7, 9000).astype(np.int32)
    for target in ("interpreter", "cpu"):
        found = tc.compile(text, target=target).spread(X, K, 7)
        np.testing.assert_allclose(found[3], [X[k == K].astype(float).var() for k in range(7)], rtol=1e-4)


def test_a_group_outside_is_refused_before_anything_is_written():
    module = tc.compile(TEXT, target="cpu")
    with pytest.raises(tc.CallError, match="TC604"):
        module.groups(np.ones(3, np.float32), np.array([0, 5, 1], np.int32))


def test_long_reductions_have_the_same_bits_on_any_number_of_threads(threads):
    random = np.random.default_rng(2)
    X = random.normal(size=(3, 70_000)).astype(np.float32)
    K, V = random.integers(0, 4, 100_000).astype(np.int32), random.normal(size=100_000).astype(np.float32)
    found = []
    for count in (1, 2, 3):
        threads(count)
        module = tc.compile(TEXT, target="cpu")
        found.append([*module.rows(X), *module.columns(X), *module.whole(X), *module.groups(V, K)])
    for others in found[1:]:
        for mine, theirs in zip(found[0], others, strict=True):
            assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()
    close(found[0][:4], statistics(X, 1))
    close(found[0][8:12], statistics(X, None))


def test_components_of_different_types_are_kept_exactly():
    text = """reduce best(float v, int32 p, float w, int32 q) =
        (max(v, w), v == w || (isnan(v) && isnan(w)) ? min(p, q) : isnan(v) ? p : isnan(w) ? q : v > w ? p : q)
        from (-inf, 2147483647)
    def f(float(N, M) X) -> (V, P) { V(n), P(n) best=! (X(n, m), int32(m)) }"""
    X = np.random.default_rng(3).integers(0, 9, (40, 300)).astype(np.float32)
    X[3, 17] = X[3, 200] = np.nan
    for target in ("interpreter", "cpu"):
        V, P = tc.compile(text, target=target).f(X)
        assert P.dtype == np.int32
        np.testing.assert_array_equal(P, X.argmax(1))
        np.testing.assert_array_equal(V, X.max(1))


def test_a_reducer_of_half_precision_is_rounded_once():
    text = "reduce total(half a, half b) = a + b from 0   def f(float16(N) X) -> (Y) { Y total=! X(n) }"
    X = np.full(5000, 0.1, np.float16)
    for target in ("interpreter", "cpu"):
        assert tc.compile(text, target=target).f(X) == np.float16(X.astype(np.float32).sum())


def test_a_reducer_is_a_function_of_python_and_of_other_cells():
    first = tc.compile(REDUCERS)
    assert float(first.logsum(1.0, 2.0)) == pytest.approx(np.logaddexp(1.0, 2.0), rel=1e-6)
    text = "def f(float(N, M) X) -> (L) { L(n) logsum=! X(n, m) }   def g(float a, float b) -> (c) { c = logsum(a, b) }"
    second = tc.compile(text, known={"logsum": first.logsum})
    X = np.random.default_rng(4).normal(size=(4, 9)).astype(np.float32)
    np.testing.assert_allclose(second.f(X), statistics(X, 1)[0], rtol=1e-5)
    assert second.f.callees.keys() == second.g.callees.keys() == {"logsum"}
    assert float(second.g(1.0, 2.0)) == pytest.approx(np.logaddexp(1.0, 2.0), rel=1e-6)


def test_without_the_cell_of_the_reducer_its_operator_is_unknown():
    found = tc.analyze("def f(float(N) X) -> (L) { L logsum=! X(n) }")
    assert [each.code.number for each in found.diagnostics] == ["TC107"]


def test_a_reducer_in_a_def_that_another_def_calls():
    text = (
        REDUCERS
        + """
    def inner(float(N, M) X) -> (A, V) { A(n), S(n), C(n) moments=! X(n, m)   V(n) = S(n)/C(n) }
    def outer(float(N, M) X) -> (A2, V2) { A, V = inner(X)   A2(n) = 2*A(n)   V2(n) = 4*V(n) }"""
    )
    X = np.random.default_rng(5).normal(size=(6, 50)).astype(np.float32)
    for target in ("interpreter", "cpu"):
        close(tc.compile(text, target=target).outer(X), (2 * X.mean(1), 4 * X.var(1)))


SAC = """
float gain(float a, float b) { return a + b + a * b; }
float half(float a, float b) { return (a + b) / 2f; }
float gains(float[.] x) { return with { ([0] <= iv < shape(x)) : x[iv]; } : fold(gain, 0f); }
float last(float[.] x) { return with { ([0] <= iv < shape(x)) : x[iv]; } : fold(half, 0f); }
"""


def test_a_fold_of_sac_is_taken_apart_where_its_function_keeps_the_laws():
    module = tc.compile(SAC, language="sac", target="cpu")
    X = np.random.default_rng(6).normal(scale=1e-3, size=30_000).astype(np.float32)
    assert float(module.gains(X)) == pytest.approx(float(np.prod(1 + X.astype(float)) - 1), rel=1e-4)
    total = np.float32(0)
    for each in X:
        total = (total + each) / np.float32(2)
    assert float(module.last(X)) == pytest.approx(float(total), rel=1e-6)
    assert "vectorize" in module.gains.source("loops")
    assert "vectorize" not in module.last.source("loops")


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("reduce s(float a, float b) = a + b from 0\nreduce r(float a, float b) = s(a, b) from 0", "s(a, b)"),
        ("reduce r(float a, float b) = a + g(b) from 0", "g(b)"),
        ("reduce r(float a, float b) = a + b from g(1)", "g(1)"),
        ("reduce r(float a, float b) = a + b from 0 with x -> g(x)", "g(x)"),
        ("reduce r(float a, float b, float c, float d) = (a + c, g(b)) from (0, 0)", "g(b)"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_calls_of_defs_are_refused_where_they_stand(text, call, first):
    g = "def g(float x) -> (z) { z = x }"
    text = f"{g}\n{text}" if first else f"{text}\n{g}"
    (message,) = (each for each in tc.analyze(text).diagnostics if each.is_error)
    assert message.code.number == "TC248"
    assert "calls no def" in message.message
    assert text[message.span.start : message.span.end] == call


def test_what_else_is_no_reducer_is_shown_where_it_stands():
    text = "const float(3) C = [1, 2, 3]\nreduce r(float a, float b) = a + b * C(0) from 0"
    (message,) = (each for each in tc.analyze(text).diagnostics if each.is_error)
    assert message.code.number == "TC248"
    assert text[message.span.start : message.span.end] == "a + b * C(0)"
