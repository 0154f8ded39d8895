"""Statements that read what they have made: the order is accepted where brute force finds it right, and values are those of it."""

import re
import signal
from collections import Counter
from random import Random

import numpy as np
import pytest

import tc_jupyter as tc
from tests.orders import compare, drawn, simulated

MANY, VALUES, SIMULATED = 150, 10, 4
"""How many a test looks at; the slow ones look at ten times as many."""


def judged(seed):
    """A recurrence that is accepted where it is right at small sizes, and refused with two points that are wrong."""
    one = drawn(Random(seed))
    errors = [item for item in tc.analyze(one.text).diagnostics if item.is_error]
    if not errors:
        assert one.is_legal(5 if one.rank < 3 else 3), one.text
        return one
    assert {item.code.number for item in errors} == {"TC260"}, (one.text, errors)
    assert all(one.confirms(item.message) for item in errors), (one.text, errors[0].message)
    return None


def compared(seed, call):
    """Whether a recurrence was accepted; its values are those of brute force, at sizes from 0 on."""
    one = judged(seed)
    if one is None:
        return False
    random = np.random.default_rng(seed)
    shapes = ((0,) * one.rank, (1,) * one.rank, (2,) * one.rank, tuple(random.integers(1, 9, one.rank)))
    compare(one, shapes, random, lambda x: call(one.text, x))
    return True


def engines(text, x):
    for target in ("interpreter", "cpu"):
        yield tc.compile(text, target=target).f(x)


def test_an_order_is_accepted_where_it_is_right():
    found = Counter(judged(seed) is None for seed in range(MANY))
    assert min(found[True], found[False]) > MANY // 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_an_order_is_accepted_where_it_is_right_many(part):
    for seed in range(10_000 + part * 1000, 11_000 + part * 1000):
        judged(seed)


def test_values_are_those_of_the_order():
    assert sum(compared(seed, engines) for seed in range(VALUES)) > VALUES // 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_values_are_those_of_the_order_many(part):
    for seed in range(20_000 + part * 40, 20_040 + part * 40):
        compared(seed, engines)


def test_a_gpu_keeps_the_order():
    pytest.importorskip("cuda")
    assert any([compared(seed, lambda text, x: simulated(tc.compile(text).f, x)) for seed in range(SIMULATED)])


# peers


def test_running_sums_are_those_of_numpy():
    f = tc.compile(
        """def rows(float(N, M) X) -> (Y) { Y(i, j) = (Y(i, j-1) else 0) + X(i, j) along j }
        def columns(float(N, M) X) -> (Y) { Y(i, j) = (Y(i-1, j) else 0) + X(i, j) along i }
        def back(double(N) X) -> (Y) { Y(i) = (Y(i+1) else 0) + X(i) along -i }"""
    )
    x = np.random.default_rng(0).random((37, 130), dtype=np.float32)
    np.testing.assert_allclose(f.rows(x), np.cumsum(x, 1), rtol=1e-5)
    np.testing.assert_allclose(f.columns(x), np.cumsum(x, 0), rtol=1e-5)
    wide = x[0].astype(np.float64)
    np.testing.assert_allclose(f.back(wide), np.cumsum(wide[::-1])[::-1], rtol=1e-12)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.int8])
@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 63, 1000, 40_000])
def test_prefix_operations_are_those_of_numpy(name, dtype, size):
    steps = {
        "cumsum": "(Y(i-1) else 0) + X(i)",
        "cumprod": "(Y(i-1) else 1) * X(i)",
        "maximum": "i > 0 ? max(Y(i-1), X(i)) : X(i)",
        "minimum": "i == 0 ? X(i) : min(X(i), Y(i-1))",
    }
    kind = {np.float32: "float", np.float64: "double"}.get(dtype, np.dtype(dtype).name)
    f = tc.compile(f"def f({kind}(N) X) -> (Y) {{ Y(i) = {steps[name]} along i }}").f
    random = np.random.default_rng(size)
    x = (
        random.integers(-100, 100, size).astype(dtype)
        if name != "cumprod"
        else random.choice([1, 1, -1], size).astype(dtype)
    )
    numpy_one = {"maximum": np.maximum.accumulate, "minimum": np.minimum.accumulate}.get(name) or getattr(np, name)
    expected = numpy_one(x, dtype=dtype) if name.startswith("cum") else numpy_one(x)
    np.testing.assert_array_equal(f(x), expected)


LINEAR = {
    "A(i)*(i > 0 ? Y(i-1) : 1) + X(i) along i": "float",
    "A(i)*(Y(i+1) else 1) - X(i) along -i": "double",
    "(A(i) > 0 || i == 0 ? 0 : Y(i-1)) + X(i) along i": "float",
    "X(i) - (Y(i-1) else 7)*A(i)*3 along i": "int32",
    "A(i) > 0 ? A(i)*(Y(i+1) else 7) : X(i) along -i": "int64",
    "max(max(Y(i+1) else -inf, X(i)), A(i)) along -i": "float",
    "((Y(i-1) else 1) + X(i))/2 along i": "double",
}


@pytest.mark.parametrize("value", LINEAR)
def test_recurrences_in_vectors_have_the_values_of_their_order(value):
    kind = LINEAR[value]
    text = f"def f({kind}(N) A, {kind}(N) X) -> (Y) {{ Y(i) = {value} }}"
    f, reference = (tc.compile(text, target=target, allow=["TC303"]).f for target in ("cpu", "interpreter"))
    random = np.random.default_rng(0)
    for size in (0, 1, 9, 100):
        a, x = (
            random.integers(-8, 8, size).astype({"float": np.float32, "double": np.float64}.get(kind, kind))
            for _ in "ax"
        )
        if "int" not in kind:
            a /= 8
            np.testing.assert_allclose(f(a, x), reference(a, x), rtol=1e-5)
        else:
            np.testing.assert_array_equal(f(a, x), reference(a, x))


@pytest.mark.parametrize("steps", [(1e25, 1e25, 1e-25, 1e-25), (1, 1e-30, 1e-30, 1e30), (0, 2, 1e-30, 3)])
def test_factors_whose_product_is_too_large_or_small_are_taken_one_by_one(steps):
    text = "def f(float(N) A, float(N) X) -> (Y) { Y(i) = A(i)*(Y(i-1) else 0) + X(i) along i }"
    f, reference = (tc.compile(text, target=target).f for target in ("cpu", "interpreter"))
    a, x = np.resize(np.float32(steps), 64), np.zeros(64, np.float32)
    for size in (0, 1e8):
        x[0] = x[17] = size
        np.testing.assert_allclose(f(a, x), reference(a, x), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Y(i) = min((Y(i-1) else 5) + A(i), X(i)) along i", np.int32),
        ("Y(i) = max((Y(i+1) else 5), X(i)) - A(i) along -i", np.int64),
        ("Y(i) = A(i) + min(X(i), Y(i-1) else inf) along i", np.float32),
        ("Y(i) = min((Y(i-1) else 5), X(i)) + A(i) along i", np.uint64),
        ("Y(i) = min(X(i), Y(i-1) else 5) + A(i) along i", np.uint32),
        ("Y(i) = max(max(X(i), Y(i-1) else 5) + A(i), 0) along i", np.int32),
        ("Y(i) = min((Y(i-1) else 9) + A(i), (Y(i-1) else 9) + X(i), 99) along i", np.int64),
    ],
)
def test_extremes_with_shifts_are_exact_at_the_ends_of_types(text, kind):
    name = {np.float32: "float"}.get(kind, np.dtype(kind).name)
    text = f"def f({name}(N) A, {name}(N) X) -> (Y) {{ {text} }}"
    f, reference = (tc.compile(text, target=target).f for target in ("cpu", "interpreter"))
    random = np.random.default_rng(0)
    least = 0 if np.dtype(kind).kind == "u" else -9
    most, steep = (np.inf, -np.inf) if kind is np.float32 else (np.iinfo(kind).max - 3, np.iinfo(kind).max // 2)
    for size, ends in ((0, 0), (1, 0), (100, 0), (100, 3), (300, 9)):
        a, x = (random.integers(least, 9, size).astype(kind) for _ in "ax")
        x[random.integers(0, size, 3 * ends)] = most
        a[random.integers(0, size, ends)] = steep
        np.testing.assert_array_equal(f(a, x), reference(a, x))


def test_a_sum_that_starts_anew_forgets_nan():
    f = tc.compile("def f(float(N) A, float(N) X) -> (Y) { Y(i) = (A(i) > 0 || i == 0 ? 0 : Y(i-1)) + X(i) along i }").f
    x, anew = np.ones(40, np.float32), np.zeros(40, np.float32)
    x[11], anew[14] = np.nan, 1
    np.testing.assert_array_equal(np.isnan(f(anew, x)), (np.arange(40) >= 11) & (np.arange(40) < 14))


@pytest.mark.parametrize("value", ["A(i) > 0 ? X(i) : Y(i-1) else -0.0", "A(i) > 0 ? X(i) : (Y(i-1) else X(i)) + X(i)"])
def test_what_is_kept_keeps_the_sign_of_zero(value):
    text = f"def f(float(N) A, float(N) X) -> (Y) {{ Y(i) = {value} along i }}"
    f, reference = (tc.compile(text, target=target).f for target in ("cpu", "interpreter"))
    random = np.random.default_rng(0)
    a, x = (random.choice(np.float32([0.0, -0.0, 1]), 100, p=p) for p in ((0.7, 0, 0.3), (0.3, 0.6, 0.1)))
    np.testing.assert_array_equal(np.signbit(f(a, x)), np.signbit(reference(a, x)))


def test_a_running_sum_of_numbers_that_are_not_negative_never_falls():
    f = tc.compile("def f(float(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }").f
    x = np.random.default_rng(0).random(100_000, dtype=np.float32) ** 3
    assert (np.diff(f(x)) >= 0).all()


def test_nan_stays_in_a_running_maximum():
    f = tc.compile("def f(float(N) X) -> (Y) { Y(i) = max(Y(i-1) else -inf, X(i)) along i }").f
    x = np.zeros(100, np.float32)
    x[40] = np.nan
    assert np.isnan(f(x)).tolist() == [False] * 40 + [True] * 60


def test_filters_are_those_of_scipy():
    signal = pytest.importorskip("scipy.signal")
    f = tc.compile(
        """def iir(double(C, N) X, double a, double b) -> (Y) {
            Y(c, i) = X(c, i) - a*(Y(c, i-1) else 0) - b*(Y(c, i-2) else 0) along i
        }"""
    ).iir
    x = np.random.default_rng(1).random((5, 211))
    np.testing.assert_allclose(f(x, 0.3, -0.2), signal.lfilter([1.0], [1.0, 0.3, -0.2], x), rtol=1e-12)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            last, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, last + (x != y))
    return row[-1]


@pytest.mark.parametrize("lengths", [(0, 0), (0, 3), (3, 0), (7, 9), (30, 41)])
def test_an_edit_distance_is_the_one_of_the_textbook(lengths):
    f = tc.compile(
        """def edit(uint8(M) A, uint8(N) B) -> (int32(M + 1, N + 1) D) {
            D(i, j) = i == 0 ? int32(j) : j == 0 ? int32(i)
                : min(D(i-1, j) + 1, D(i, j-1) + 1, D(i-1, j-1) + int32(A(i-1) != B(j-1)))
                where i in 0:M + 1, j in 0:N + 1 along i, j
        }"""
    ).edit
    a, b = (np.random.default_rng(5).integers(0, 3, n).astype(np.uint8) for n in lengths)
    assert f(a, b)[-1, -1] == edit_distance(a, b)


def test_the_best_path_is_the_one_of_viterbi():
    f = tc.compile(
        """def viterbi(float(S, S) A, float(T, S) E) -> (V) {
            V(t, s) max=! (t > 0 ? V(t-1, r) + A(r, s) : 0) + E(t, s) where t in 0:E.0, r in 0:S along t
        }"""
    ).viterbi
    random = np.random.default_rng(3)
    a, e = random.random((6, 6), dtype=np.float32), random.random((20, 6), dtype=np.float32)
    best = e[0]
    for row in e[1:]:
        best = (best[:, None] + a).max(0) + row
    np.testing.assert_allclose(f(a, e)[-1], best, rtol=1e-6)


RUNNING = """
def exclusive(float(N) X) -> (Y) { Y(i) = i > 0 ? Y(i-1) + X(i-1) : 0 where i in 0:N along i }
def reverse(float(N) X) -> (Y) { Y(i) = (Y(i+1) else 0) + X(i) along -i }
def segmented(float(N) X, bool(N) Start) -> (Y) { Y(i) = (Start(i) ? 0 : Y(i-1) else 0) + X(i) along i }
def final(float(N) X) -> (R) { Y(i) = (Y(i-1) else 0) + X(i) along i  R = Y(N - 1) where exists Y(0) }
def carried(float(N) X) -> (M, P) {
    M(i) = min(M(i-1) else inf, X(i)) along i
    P(i) = X(i) < (M(i-1) else inf) ? i : (P(i-1) else 0) along i
}
def forward(float(N, N) L, float(N) B) -> (X) { X(i) +=! k < i ? -L(i, k) * X(k) : B(i) where k in 0:i+1 along i }
def path(float(S, S) A, float(T, S) E) -> (V, P) {
    along t in 0:T {
        V(t, s) max=! (t > 0 ? V(t-1, r) + A(r, s) : 0) + E(t, s) where r in 0:S
        P(t, s) argmax=! (t > 0 ? V(t-1, r) : 0) + A(r, s)
    }
}"""


def best_path(a, e):
    """The scores of the textbook, and the state before each."""
    scores, before = [e[0]], [a.argmax(0)]
    for row in e[1:]:
        before.append((scores[-1][:, None] + a).argmax(0))
        scores.append((scores[-1][:, None] + a).max(0) + row)
    return np.array(scores), np.array(before)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_what_runs_along_an_index_is_that_of_the_textbook(target):
    f = tc.compile(RUNNING, target=target, allow=["TC329"])
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32)
    start = np.array([0, 0, 1, 0, 0, 1, 1, 0], bool)
    assert f.exclusive(x).tolist() == [0, *np.cumsum(x[:-1])]
    assert f.reverse(x).tolist() == np.cumsum(x[::-1])[::-1].tolist()
    assert f.segmented(x, start).tolist() == [3, 4, 4, 5, 10, 9, 2, 8]
    assert f.final(x) == x.sum()
    least, place = f.carried(x)
    assert (least.tolist(), place.tolist()) == ([3, 1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 1])
    random = np.random.default_rng(6)
    lower = np.tril(random.random((7, 7), dtype=np.float32), -1) + np.eye(7, dtype=np.float32)
    wanted = np.linalg.solve(lower, x[:7])
    np.testing.assert_allclose(f.forward(lower, x[:7]), wanted, rtol=1e-3, atol=1e-4)
    a, e = random.random((5, 5), dtype=np.float32), random.random((9, 5), dtype=np.float32)
    for found, wanted in zip(f.path(a, e), best_path(a, e), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_recurrent_layer_is_the_one_of_torch():
    torch = pytest.importorskip("torch")
    f = tc.compile(
        """def rnn(float(T, B, I) X, float(H, I) W, float(H, H) U) -> (h) {
            Z(t, b, o) +=! X(t, b, i) * W(o, i)
            S(t, b, o) +=! (t > 0 ? tanh(S(t-1, b, k) + Z(t-1, b, k)) : 0) * U(o, k) where t in 0:T along t
            h(t, b, o) = tanh(S(t, b, o) + Z(t, b, o))
        }"""
    ).rnn
    cell = torch.nn.RNN(5, 7, bias=False)
    x = torch.rand(11, 3, 5)
    expected = cell(x)[0].detach().numpy()
    weights = (cell.weight_ih_l0.detach().numpy(), cell.weight_hh_l0.detach().numpy())
    np.testing.assert_allclose(f(x.numpy(), *weights), expected, rtol=2e-5, atol=2e-6)


NEIGHBOURS = {
    "C(i, j) + 0.5*sqrt(abs((D(i-1, j) else 1)*(D(i, j-1) else 1))) along i, j": "double",
    "C(i, j) + log(exp(-(D(i-1, j) else 9)) + exp(-(D(i, j+1) else 9)) + exp(-(D(i-1, j+1) else 9))) along i, -j": "float",
    "C(i, j) + min(D(i-1, j) else 0, D(i, j-1) else 0, D(i-1, j-1) else 0) along i, j": "int16",
    "0.25*((D(i-1, j+1) else 0) + C(i, j)) + 0.5*sqrt(abs(D(i, j-1) else 4)) along i, j": "float",
    "0.25*(D(i-1, j-1) else 0) + 0.5*(D(i-1, j) else 0) + 0.25*(D(i-1, j+1) else 0) + C(i, j) along i": "float",
}


@pytest.mark.parametrize("value", NEIGHBOURS)
@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", id="simulated")])
def test_what_reads_its_neighbours_has_the_values_of_its_order(value, target):
    """In tiles on anti-diagonals, in vectors beside the steps, and in the threads of a block."""
    kind = NEIGHBOURS[value]
    if target == "cuda":
        pytest.importorskip("cuda")
    text = f"def f({kind}(N, M) C) -> ({kind}(N, M) D) {{ D(i, j) = {value} }}"
    f, reference = (tc.compile(text, target=each).f for each in ("cpu", "interpreter"))
    random = np.random.default_rng(0)
    shapes = ((0, 3), (1, 1), (2, 2), (64, 65), (129, 70)) if target == "cpu" else ((5, 9), (1, 3))
    for shape in shapes:
        x = random.integers(0, 9, shape).astype({"float": np.float32, "double": np.float64}.get(kind, kind))
        for found in [f(x)] if target == "cpu" else simulated(tc.compile(text).f, x):
            np.testing.assert_allclose(np.reshape(found, shape), reference(x), rtol=1e-5, atol=1e-5)


def test_a_sweep_that_replaces_what_it_reads_has_vectors():
    text = """def f(float(N, M) U) -> (float(N, M) V) {
        V(i, j) = U(i, j)
        V(i, j) = 0.25*(V(i-1, j) + V(i, j-1) + V(i+1, j) + V(i, j+1)) where i in 1:N-1, j in 1:M-1 along i, j
    }"""
    f, reference = (tc.compile(text, target=target, allow=["TC325"]).f for target in ("cpu", "interpreter"))
    assert "prefix +" in f.source("passes") or "prefix linear" in f.source("passes")
    for shape in ((2, 2), (3, 3), (5, 20), (9, 41)):
        u = np.random.default_rng(0).random(shape, dtype=np.float32)
        np.testing.assert_allclose(f(u), reference(u), rtol=1e-5)


# schedules

WRONG = [
    ("def f(float(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }", lambda s: s.parallel("Y", "i")),
    (
        "def f(float(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }",
        lambda s: s.split("Y", "i", 8).vectorize("Y", "i.inner"),
    ),
    (
        "def f(float(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }",
        lambda s: s.split("Y", "i", 8).reorder("Y", "i.inner", "i.outer"),
    ),
    (
        "def f(float(N, M) X) -> (Y) { Y(i, j) = (Y(i-1, j+1) else 0) + X(i, j) along i }",
        lambda s: s.reorder("Y", "j", "i"),
    ),
    (
        "def f(float(N, M) X) -> (Y) { Y(i, j) = (Y(i-1, j) else 0) + (Y(i, j-1) else 0) + X(i, j) along i, j }",
        lambda s: s.parallel("Y", "j"),
    ),
    (
        "def f(float(N, M) X) -> (Y) { Y(i, j) = (Y(i-1, j) else 0) + X(i, j) along i }",
        lambda s: s.fuse("Y", "i", "j").parallel("Y", "i.j.fused"),
    ),
]
RIGHT = [
    ("def f(float(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }", lambda s: s.split("Y", "i", 8)),
    ("def f(float(N) X) -> (Y) { Y(i) = (Y(i+1) else 0) + X(i) along -i }", lambda s: s.split("Y", "i", 8).unroll("Y", "i.inner")),
    ("def f(float(N) X) -> (Y) { Y(i) = (Y(i-8) else 0) + X(i) along i }", lambda s: s.split("Y", "i", 8).vectorize("Y", "i.inner")),
    ("def f(float(N, M) X) -> (Y) { Y(i, j) = (Y(i-1, j-1) else 0) + X(i, j) along i }", lambda s: s.reorder("Y", "j", "i")),
    ("def f(float(N, M) X) -> (Y) { Y(i, j) = (Y(i-1, j) else 0) + X(i, j) along i }", lambda s: s.reorder("Y", "j", "i").parallel("Y", "j")),
    ("def f(float(N, M) X) -> (Y) { Y(i, j) = (Y(i-1, j) else 0) + X(i, j) along i }", lambda s: s.fuse("Y", "i", "j")),
    ("def f(float(N, M) X) -> (Y) { Y(i, j) = (Y(i-1, j) else 0) + (Y(i, j-1) else 0) + X(i, j) along i, j }", lambda s: s.reorder("Y", "j", "i")),
    ("def f(float(N) X) -> (Y) { Y(i) = X(i)  Y(i) = (Y(i-1) else 0) + (Y(i+1) else 0) along i }", lambda s: s.split("Y#2", "i", 4)),
]  # fmt: skip


def values(f, text):
    rank = 2 if "M) X" in text else 1
    x = np.random.default_rng(2).integers(-9, 9, (21,) * rank).astype(np.float32)
    return f(x)


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_schedule_that_breaks_the_order_is_refused_with_a_witness(number):
    text, steps = WRONG[number]
    with pytest.raises(tc.CompileError, match=r"TC407(?s:.*)with N = \d.*reads Y\(.*makes later") as caught:
        steps(tc.compile(text).f.schedule())
    assert re.search(r"`Y` at \([-\d, ]+\) reads", str(caught.value).replace("\n      ", " "))


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_a_schedule_that_keeps_the_order_keeps_the_bits(number):
    text, steps = RIGHT[number]
    f = tc.compile(text).f
    expected = values(tc.compile(text, target="interpreter").f, text)
    np.testing.assert_array_equal(values(f.with_schedule(steps(f.schedule())), text), expected)


def test_what_is_read_of_the_own_target_is_not_computed_before():
    text = """def f(float(T, H) X, float(H, H) U) -> (S) {
        S(t, o) +=! (t > 0 ? tanh(S(t-1, k)) * X(t, k) : 1) * U(o, k) where t in 0:T along t
    }"""
    f = tc.compile(text).f
    random = np.random.default_rng(0)
    x, u = random.random((9, 40), dtype=np.float32), random.random((40, 40), dtype=np.float32) / 40
    np.testing.assert_allclose(f(x, u), tc.compile(text, target="interpreter").f(x, u), rtol=1e-5)
    with pytest.raises(tc.CompileError, match="before `S` makes it"):
        f.schedule().cache_read("X", "S", value=True, only=0)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("def f(int32(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }", np.int32),
        ("def f(int64(N) X) -> (Y) { Y(i) = (i < N - 1 ? Y(i+1) : 3) + X(i) along -i }", np.int64),
        ("def f(double(N) X) -> (Y) { Y(i) = max(X(i), Y(i-1) else -inf) along i }", np.float64),
        ("def f(float(N) X) -> (Y) { Y(i) = min(i > 1 ? Y(i-1) : 9, X(i)) where i in 1:N along i }", np.float32),
        ("def f(int32(N) X) -> (Y) { Y(i) = 3 - X(i) + (Y(i-1) else 5)*1 + X(i)*X(i) along i }", np.int32),
        ("def f(int32(N) X) -> (Y) { Y(i) = i == 0 ? X(i) : max(X(i), max(Y(i-1), 4)) along i }", np.int32),
        ("def f(int64(N) X) -> (Y) { Y(i) = i < N - 1 ? Y(i+1) - X(i) : 7 along -i }", np.int64),
    ],
)
def test_blocks_of_a_running_operation_run_at_one_time(text, dtype):
    f = tc.compile(text, allow=["TC321"]).f
    g = f.with_schedule(f.schedule().prefix("Y", 8).parallel("Y.sums", "b").split("Y", "i", 8).parallel("Y", "i.outer"))
    random = np.random.default_rng(4)
    for size in (1, 2, 7, 8, 9, 100, 1000):
        x = random.integers(-99, 99, size).astype(dtype)
        np.testing.assert_array_equal(g(x), f(x))
    with pytest.raises(tc.CompileError, match="TC407"):
        f.schedule().prefix("Y", 8).split("Y", "i", 12).parallel("Y", "i.outer")


def test_a_gpu_scans_in_blocks():
    pytest.importorskip("cuda")
    text = "def f(int32(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }"
    x = np.arange(1000, dtype=np.int32)
    for found in simulated(tc.compile(text).f, x):
        np.testing.assert_array_equal(found, np.cumsum(x, dtype=np.int32))


def test_a_temporary_that_is_replaced_in_order_runs_once():
    text = """def f(float(N, M) X) -> (Z) {
        T(i, j) = X(i, j)
        T(i, j) = 0.5*(T(i-1, j) else 0) + 0.5*(T(i+1, j) else 0) along i
        Z(i, j) = T(i, j) * 2
    }"""
    f = tc.compile(text).f
    with pytest.raises(tc.CompileError, match=r"TC407(?s:.*)every visit would make again what comes before"):
        f.schedule().compute_at("T", "Z", "i")
    np.testing.assert_array_equal(values(f, text), values(tc.compile(text, target="interpreter").f, text))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer that sends a signal")
@pytest.mark.parametrize("text", [RIGHT[0][0].replace("+ X(i)", "+ sin(X(i) + 0.1*(Y(i-1) else 0))")])
def test_a_long_loop_ends_when_python_is_interrupted(text):
    """All of it would take some seconds."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    f = tc.compile(text).f
    f(np.zeros(9, np.float32))
    x = np.zeros(1 << 28, np.float32)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        # again after a while: Python drops what is raised while a callback of its collector runs
        signal.setitimer(signal.ITIMER_REAL, 0.05, 3)
        with pytest.raises(KeyboardInterrupt):
            f(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(f(np.zeros(9, np.float32)), np.zeros(9, np.float32))


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize(
    "body",
    [
        "V(t, s) +=! t > 0 ? A(s, r) * V(t-1, r) : E(t, s) / S where t in 0:E.0, r in 0:S along t",
        "along t in 0:T { R(s) +=! A(s, r) * (V(t-1, r) else 0)  V(t, s) = t > 0 ? R(s) : E(t, s) }",
    ],
)
def test_products_of_complex_matrices_keep_the_order(body, target):
    """Both parts of a sum are one statement, which is made in the step that reads it."""
    text = f"def f(complex64(S, S) A, complex64(T, S) E) -> (V) {{ {body} }}"
    a, e = np.array([[0, 1j], [2, 0.5]], np.complex64), np.full((4, 2), 1 + 1j, np.complex64)
    expected = [e[0]]
    for _ in range(3):
        expected.append(a @ expected[-1])
    np.testing.assert_allclose(tc.compile(text, target=target, allow=["TC249"]).f(a, e), expected, rtol=1e-5)
