"""Whether two results agree: by their type, and by the sums behind them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler.agreement import close

SUM = "def f({type}(N) X) -> (s) {{ s +=! X(i) }}"
PRODUCT = "def f({type}(M,K) A, {type}(K,N) B) -> (C) {{ C(i,j) +=! A(i,k) * B(k,j) }}"


def function_of(text: str, kind: str = "float"):
    return tc.compile(text.format(type=kind), target="interpreter").f


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_integers_are_equal_or_not(dtype):
    a = np.array([1, 0, 1]).astype(dtype)
    b = a.copy()
    assert close(a, b)
    b[1] = 1
    assert not close(a, b)


def test_a_large_integer_hides_no_small_one():
    assert not close(np.array([1000000, 5, 7], np.int32), np.array([1000000, 99, -80], np.int32))


@pytest.mark.parametrize(
    ("dtype", "by", "agree"),
    [
        ("float64", 1e-3, False),
        ("float64", 1e-9, False),
        ("float64", 1e-14, True),
        ("float32", 1e-2, False),
        ("float32", 1e-6, True),
        ("float16", 0.05, False),
        ("float16", 1e-3, True),
    ],
)
def test_without_a_program_the_type_decides(dtype, by, agree):
    a = np.array([1.0, 2.0, -3.0], dtype)
    assert close(a, (a.astype(np.float64) * (1 + by)).astype(dtype)) is agree


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_is_no_number_stands_at_the_same_places(dtype):
    a = np.array([np.nan, np.inf, -np.inf, 1], dtype)
    assert close(a, a.copy())
    for place, value in ((0, 1), (1, np.nan), (1, -np.inf), (3, np.nan), (3, np.inf)):
        other = a.copy()
        other[place] = value
        assert not close(a, other)


@pytest.mark.parametrize("kind", ["half", "float", "double"])
@pytest.mark.parametrize("count", [1, 3, 1000, 100_000])
@pytest.mark.parametrize("data", ["positive", "equal", "centred", "sorted", "large"])
def test_every_order_of_a_sum_agrees_and_a_missing_term_does_not(kind, count, data):
    dtype = {"half": np.float16, "float": np.float32, "double": np.float64}[kind]
    rng = np.random.default_rng(count)
    x = {
        "positive": rng.random(count),
        "equal": np.full(count, 0.1),
        "centred": rng.standard_normal(count),
        "sorted": np.sort(rng.standard_normal(count)),
        "large": np.concatenate([np.full(count // 2, 3e4), np.full(count // 2, -3e4), [1.0]]),
    }[data].astype(dtype)
    judge = function_of(SUM, kind).judge(x)
    wide = x.astype(np.float64 if kind == "double" else np.float32)
    lanes = np.resize(np.concatenate([wide, np.zeros(-len(wide) % 64, wide.dtype)]), (-(-len(wide) // 64), 64))
    sums = [wide.sum(), wide[::-1].sum(), np.add.accumulate(lanes, 0)[-1].sum(), np.sort(wide).sum()]
    exact = np.array(np.sum(x.astype(np.longdouble))).astype(dtype)
    for each in sums:
        assert judge(exact, np.array(each).astype(dtype))
    if kind == "double" and data != "large":
        assert not judge(exact, np.array(sums[0] - x[count // 2]))


def test_cancellation_in_a_product():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 32, 4096)).astype(np.float32)
    right = a @ b.T
    judge = function_of(PRODUCT).judge(a, np.ascontiguousarray(b.T))
    assert judge(right, (a.astype(np.float64) @ b.T).astype(np.float32))
    assert judge(right, (a[:, ::-1] @ b.T[::-1]))
    assert not judge(right, a[:, 64:] @ b.T[64:])
    assert not judge(right, right + np.float32(5))
    one_wrong = right.copy()
    one_wrong[3, 4] += 2
    assert not judge(right, one_wrong)


def test_what_is_computed_on_the_way_counts():
    """A variance as the difference of two means: the means are large, what is left of them is not."""
    text = """def f(float(N) X) -> (v) {{ a +=! X(i)  b +=! X(i) * X(i)  v = b / N - (a / N) * (a / N) }}"""
    x = (1000 + np.random.default_rng(0).standard_normal(5000)).astype(np.float32)
    judge = function_of(text).judge(x)

    def variance(y):
        return (y * y).mean(dtype=y.dtype) - y.mean(dtype=y.dtype) ** 2

    assert judge(np.asarray(variance(x)), np.asarray(variance(x[::-1].copy())))
    assert judge(np.asarray(variance(x)), np.asarray(variance(x.astype(np.float64)).astype(np.float32)))


def test_elements_that_nothing_cancels_in_are_judged_one_by_one():
    judge = function_of("def f({type}(N) X) -> (Y) {{ Y(i) = 2 * X(i) * X(i) }}", "double").judge(np.array([1e6, 1.0]))
    assert judge(np.array([2e12, 2.0]), np.array([2e12, 2.0]))
    assert not judge(np.array([2e12, 2.0]), np.array([2e12, 2.002]))


def test_several_results_have_their_own_types():
    text = "def f({type}(N) X) -> (s, k) {{ s +=! X(i)  k +=! int32(X(i)) }}"
    function = function_of(text)
    x = np.arange(8, dtype=np.float32)
    judge, (s, k) = function.judge(x), function(x)
    assert judge((s, k), (s * np.float32(1 + 1e-6), k))
    assert not judge((s, k), (s, k + 1))
    assert not judge((s, k), (s,))


def test_functions_magnify_errors_of_sums():
    text = "def f({type}(N) X) -> (y) {{ s +=! X(i)  y = exp(s) }}"
    x = np.full(2000, 0.04, np.float32)
    y = [np.asarray(np.exp(s)) for s in (x.sum(), np.add.accumulate(x)[-1])]
    assert function_of(text).judge(x)(*y)


def test_arguments_may_be_empty_or_no_numbers():
    judge = function_of(SUM).judge(np.zeros(0, np.float32))
    assert judge(np.float32(0), np.float32(0))
    x = np.array([np.inf, np.nan, 1], np.float32)
    assert function_of(SUM).judge(x)(np.float32(np.nan), np.float32(np.nan))


@pytest.mark.some(5)
@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float", "double"])
@pytest.mark.parametrize("terms", [64, 512, 4096])
def test_a_sum_that_is_rounded_once_lacks_no_term(dtype, terms):
    """The result is rounded to its type; the sum is not, so what cancels in it does not widen what is allowed."""
    f = tc.compile(
        f"def f({dtype}(M, K) A, {dtype}(K, N) B) -> ({dtype}(M, N) C) {{ C(i, j) +=! A(i, k) * B(k, j) }}"
    ).f
    kind, random = (
        {"half": "e", "bfloat16": ml_dtypes.bfloat16, "float": "f", "double": "d"}[dtype],
        np.random.default_rng(terms),
    )
    a, b = (random.standard_normal(shape).astype(np.dtype(kind)) for shape in ((8, terms), (terms, 8)))
    result, agrees = f(a, b), f.judge(a, b)
    assert agrees(result, f(a[:, ::-1].copy(), b[::-1].copy()))
    assert agrees(result, f.on("interpreter")(a, b))
    for less in (0, terms // 2, terms - 1):
        assert not agrees(result, f(a[:, :less].copy(), b[:less].copy()))


def test_what_is_stored_in_16_bits_and_then_cancels():
    f = tc.compile("def f(half(N) X, half(N) Z) -> (half(N) D) { T(i) = half(X(i) * 3.0) D(i) = T(i) - Z(i) }").f
    x = np.linspace(1000, 2000, 50, dtype=np.float16)
    z = (3 * x.astype(np.float32)).astype(np.float16)
    exact, agrees = np.zeros(50, np.float16), f.judge(x, z)
    assert agrees(exact, exact + np.float16(2))
    assert not agrees(exact, exact + np.float16(200))


OTHERS = {
    "nothing": lambda a: None,
    "objects": lambda a: np.full(a.shape, None, object),
    "texts": lambda a: np.full(a.shape, "1"),
    "times": lambda a: np.zeros(a.shape, "timedelta64[s]"),
    "pairs": lambda a: np.stack([a.real, a.imag], -1),
    "a dimension more": lambda a: a[..., None],
}
JUDGED = {
    "where": "def f(float(N) X) -> (Y) { Y(i) = X(i) > 0.5 }",
    "integers": "def f(float(N) X) -> (Y) { Y(i) = int64(X(i) * 10) }",
    "floats": "def f(float(N) X) -> (Y) { Y(i) = X(i) * 10 }",
    "complex": "def f(complex64(N) X) -> (Y) { Y(i) = X(i) * X(i) }",
}


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("other", OTHERS)
def test_what_has_other_elements_is_refused(name, other):
    f = tc.compile(JUDGED[name], target="interpreter").f
    X = np.linspace(0, 1, 9).astype(np.complex64 if name == "complex" else np.float32)
    result = f(X)
    wrong = OTHERS[other](result)
    for one, two in ((result, wrong), (wrong, result)):
        assert not f.judge(X)(one, two)
        assert not close(one, two)
    assert f.judge(X)(result, result.copy())
