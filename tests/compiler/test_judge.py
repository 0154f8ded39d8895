"""What `f.judge` says of results that are right, in any order of the arithmetic, and of results that are not.

Every program has a reference in NumPy, in the type that the def computes in. `total` sums one term after the other, from the last one on.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.compiler.spread import Spread
from tc_jupyter.program.functions import FUNCTIONS
from tests.strategies import arguments, drawn, programs, sizes

TYPES = {"half": np.float16, "bfloat16": ml_dtypes.bfloat16, "float": np.float32, "double": np.float64}
OFF = {"half": 0.02, "bfloat16": 0.05, "float": 0.01, "double": 0.01}


def total(x, axis=-1):
    return np.add.accumulate(np.flip(x, axis), axis, dtype=x.dtype).take(-1, axis)


def lacking(x, axis=-1):
    """The sum without its first term."""
    return total(np.delete(x, 0, axis), axis) if x.shape[axis] > 1 else total(x, axis)


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes:
        text: with `T` for the type.
        data: arguments in double precision, of a random generator.
        reference: of a sum and the arguments.
        sound: the data are well conditioned: a result that is 1 % off is refused.
        moves: a missing term, or another place, makes a difference that a rounding does not make.
        kinds: of the types in which its sums do not overflow or lose all their digits.
    """

    text: str
    data: Callable
    reference: Callable
    sound: bool = True
    moves: bool = True
    kinds: tuple[str, ...] = tuple(TYPES)


def normal(*shape):
    return lambda rng: (rng.standard_normal(shape),)


def uniform(low, high, *shapes):
    return lambda rng: tuple(rng.uniform(low, high, shape) for shape in shapes)


def softmax(x, total):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / total(e)[:, None]


def distances(total, p):
    s = total(p * p)
    return np.sqrt(np.maximum(s[:, None] + s[None] - 2 * total(p[:, None] * p[None]), 0))


def one_pass(total, x):
    d = x.dtype.type(x.shape[1])
    s, q = total(x) / d, total(x * x) / d
    return np.sqrt(np.maximum(q - s * s, 0))


def two_pass(total, x):
    d = x.dtype.type(x.shape[1])
    c = x - (total(x) / d)[:, None]
    return total(c * c) / d


def log_sum(total, x):
    return np.log(total(np.exp(x - x.max(-1, keepdims=True))))


def leading(rng):
    x = rng.standard_normal((6, 64))
    x[:, 0] = 12
    return (x,)


def unit_rows(rng):
    x = rng.standard_normal((40, 3))
    x /= np.sqrt((x * x).sum(1, keepdims=True))
    return x, x + 1e-3 * rng.standard_normal(x.shape)


def centred(rng):
    x = rng.standard_normal((50, 200))
    return (x - x.mean(1, keepdims=True) + 1e-3,)


def haversine(_, a, b):
    p, q = a[:, None], b[None]
    h = np.sin((q[..., 0] - p[..., 0]) / 2) ** 2
    h = h + np.cos(p[..., 0]) * np.cos(q[..., 0]) * np.sin((q[..., 1] - p[..., 1]) / 2) ** 2
    return 2 * np.arcsin(np.sqrt(h))


def gram_schmidt(total, a, b):
    r = total(a * b, 0) / total(a * a, 0)
    w = b - r * a
    return w / np.sqrt(total(w * w, 0))


def layernorm(total, x):
    d = x.dtype.type(x.shape[1])
    c = x - (total(x) / d)[:, None]
    return c / np.sqrt(total(c * c) / d + x.dtype.type(1e-5))[:, None]


def entropy(total, x):
    p = x / total(x)[:, None]
    return -total(p * np.log(p))


def cosine(total, a, b):
    n, m = np.sqrt(total(a * a)), np.sqrt(total(b * b))
    return total(a[:, None] * b[None]) / (n[:, None] * m[None])


def heron(_, a, b, c):
    s = (a + b + c) / 2
    return np.sqrt(np.maximum(s * (s - a) * (s - b) * (s - c), 0))


def correlation(total, x, y):
    n = x.dtype.type(x.size)
    c, d = x - total(x) / n, y - total(y) / n
    return total(c * d) / np.sqrt(total(c * c) * total(d * d))


def step_of_cholesky(total, a, r):
    return np.sqrt(np.maximum(a - total(r * r), 0))


def cross_entropy(total, x):
    m = x.max(-1)
    return np.log(total(np.exp(x - m[:, None]))) + m - x[:, 0]


CASES = {
    "distances": Case(
        "def f(T(N,D) P) -> (R) { S(n) +=! P(n,d)*P(n,d) G(n,m) +=! P(n,d)*P(m,d) R(n,m) = sqrt(max(S(n)+S(m)-2*G(n,m), 0.0)) }",
        normal(200, 3), distances),
    "one pass std": Case(
        "def f(T(N,D) X) -> (Y) { S(n) +=! X(n,d) Q(n) +=! X(n,d)*X(n,d) Y(n) = sqrt(max(Q(n)/D-(S(n)/D)*(S(n)/D), 0.0)) }",
        lambda rng: (30 + 0.1 * rng.standard_normal((20, 64)),), one_pass, sound=False, moves=False),
    "log of a sum near 1": Case(
        "def k(T(N,D) X) -> (Y) { M(n) max=! X(n,d) S(n) +=! exp(X(n,d)-M(n)) Y(n) = log(S(n)) }", leading, log_sum, False, False),
    "acos near 1": Case(
        "def f(T(N,D) A, T(N,D) B) -> (Y) { C(n) +=! A(n,d)*B(n,d) Q(n) +=! B(n,d)*B(n,d) Y(n) = acos(min(C(n)/sqrt(Q(n)), 1.0)) }",
        unit_rows, lambda total, a, b: np.arccos(np.minimum(total(a * b) / np.sqrt(total(b * b)), 1)), False, False),
    "1 / sum that cancels": Case(
        "def f(T(N,D) X) -> (Y) { S(n) +=! X(n,d) Y(n) = 1.0 / S(n) }", centred, lambda total, x: 1 / total(x), False, False),
    "log near 1": Case(
        "def f(T(N) X) -> (Y) { Y(i) = log(X(i)*X(i) + (1.0-X(i))*(X(i)+1.0)) }",
        uniform(0.1, 3, 500), lambda _, x: np.log(x * x + (1 - x) * (x + 1)), False, False),
    "two pass variance at 1000": Case(
        "def f(T(N,D) X) -> (V) { S(n) +=! X(n,d) V(n) +=! (X(n,d)-S(n)/D)*(X(n,d)-S(n)/D)/D }",
        lambda rng: (1000 + rng.standard_normal((6, 3000)),), two_pass, moves=False, kinds=("float", "double")),
    "softmax": Case(
        "def f(T(N,D) X) -> (Y) { M(n) max=! X(n,d) E(n,d) = exp(X(n,d)-M(n)) S(n) +=! E(n,d) Y(n,d) = E(n,d)/S(n) }",
        normal(20, 50), lambda total, x: softmax(x, total)),
    "layernorm": Case(
        "def f(T(N,D) X) -> (Y) { S(n) +=! X(n,d) V(n) +=! (X(n,d)-S(n)/D)*(X(n,d)-S(n)/D) "
        "Y(n,d) = (X(n,d)-S(n)/D)/sqrt(V(n)/D+0.00001) }", normal(20, 64), layernorm),
    "logsumexp": Case(
        "def f(T(N,D) X) -> (Y) { M(n) max=! X(n,d) S(n) +=! exp(X(n,d)-M(n)) Y(n) = log(S(n)) + M(n) }",
        normal(20, 8), lambda total, x: log_sum(total, x) + x.max(-1)),
    "cross entropy": Case(
        "def f(T(N,D) X) -> (Y) { M(n) max=! X(n,d) S(n) +=! exp(X(n,d)-M(n)) Y(n) = log(S(n)) + M(n) - X(n,0) }",
        normal(20, 8), cross_entropy),
    "cosine similarity": Case(
        "def f(T(N,D) A, T(M,D) B) -> (C) { P(n) +=! A(n,d)*A(n,d) Q(m) +=! B(m,d)*B(m,d) G(n,m) +=! A(n,d)*B(m,d) "
        "C(n,m) = G(n,m)/(sqrt(P(n))*sqrt(Q(m))) }", lambda rng: (rng.standard_normal((9, 8)), rng.standard_normal((7, 8))), cosine),
    "normalised rows": Case(
        "def f(T(N,D) X) -> (Y) { S(n) +=! X(n,d)*X(n,d) Y(n,d) = X(n,d)*rsqrt(S(n)) }",
        normal(20, 5), lambda total, x: x / np.sqrt(total(x * x))[:, None]),
    "Gram-Schmidt": Case(
        "def f(T(N) A, T(N) B) -> (Y) { p +=! A(i)*B(i) q +=! A(i)*A(i) W(i) = B(i) - p/q*A(i) s +=! W(i)*W(i) Y(i) = W(i)/sqrt(s) }",
        lambda rng: tuple(rng.standard_normal((2, 30))), lambda total, a, b: gram_schmidt(total, a, b)),
    "haversine": Case(
        "def f(T(N,2) A, T(M,2) B) -> (Y) { H(n,m) = sin((B(m,0)-A(n,0))/2.0)*sin((B(m,0)-A(n,0))/2.0) "
        "+ cos(A(n,0))*cos(B(m,0))*sin((B(m,1)-A(n,1))/2.0)*sin((B(m,1)-A(n,1))/2.0) Y(n,m) = 2.0*asin(sqrt(H(n,m))) }",
        uniform(-1, 1, (9, 2), (8, 2)), haversine),
    "quadratic roots": Case(
        "def f(T(N) A, T(N) B, T(N) C) -> (Y) { Y(i) = (sqrt(B(i)*B(i)-4.0*A(i)*C(i))-B(i))/(2.0*A(i)) }",
        lambda rng: (rng.uniform(0.5, 1, 300), rng.uniform(3, 300, 300), rng.uniform(0.5, 1, 300)),
        lambda _, a, b, c: (np.sqrt(b * b - 4 * a * c) - b) / (2 * a), False, False),
    "entropy": Case(
        "def f(T(N,D) X) -> (H) { S(n) +=! X(n,d) H(n) +=! -(X(n,d)/S(n))*log(X(n,d)/S(n)) }",
        uniform(0.1, 1, (20, 16)), entropy, moves=False),
    "Cholesky step": Case(
        "def f(T(N) A, T(N,D) R) -> (L) { S(n) +=! R(n,d)*R(n,d) L(n) = sqrt(max(A(n)-S(n), 0.0)) }",
        lambda rng: (rng.uniform(30, 60, 20), rng.standard_normal((20, 32))), step_of_cholesky, False, False),
    "correlation": Case(
        "def f(T(N) X, T(N) Y) -> (r) { s +=! X(i) t +=! Y(i) C(i) = X(i)-s/N D(i) = Y(i)-t/N "
        "p +=! C(i)*D(i) q +=! C(i)*C(i) u +=! D(i)*D(i) r = p/sqrt(q*u) }",
        lambda rng: (x := rng.standard_normal(50), x + rng.standard_normal(50)), correlation, moves=False),
    "triangles": Case(
        "def f(T(N) A, T(N) B, T(N) C) -> (Y) { Y(i) = sqrt(max((A(i)+B(i)+C(i))/2.0*((A(i)+B(i)+C(i))/2.0-A(i))"
        "*((A(i)+B(i)+C(i))/2.0-B(i))*((A(i)+B(i)+C(i))/2.0-C(i)), 0.0)) }",
        lambda rng: (a := rng.uniform(1, 2, 300), b := rng.uniform(1, 2, 300), (a + b) * (1 - 10 ** rng.uniform(-7, -1, 300))),
        heron, False, False),
    "angles": Case(
        "def f(T(N,3) A, T(N,3) B) -> (Y) { C(n) +=! A(n,d)*B(n,d) P(n) +=! A(n,d)*A(n,d) Q(n) +=! B(n,d)*B(n,d) "
        "Y(n) = acos(max(min(C(n)/sqrt(P(n)*Q(n)), 1.0), -1.0)) }",
        lambda rng: (a := rng.standard_normal((60, 3)), a * rng.choice([-2, 2, 3], (60, 1)) + 0.01 * rng.standard_normal((60, 3))),
        lambda total, a, b: np.arccos(np.clip(total(a * b) / np.sqrt(total(a * a) * total(b * b)), -1, 1)), False, False),
    "compound interest": Case(
        "def f(T(N) X) -> (Y) { s +=! X(i)*X(i) Y(i) = pow(1.0+X(i)/10.0, s) }",
        uniform(0.1, 1, 40), lambda total, x: np.power(1 + x / x.dtype.type(10), total(x * x)), moves=False),
    "sigmoid of a product": Case(
        "def f(T(M,K) A, T(K) B) -> (Y) { S(i) +=! A(i,k)*B(k) Y(i) = 1.0/(1.0+exp(-S(i))) }",
        lambda rng: (rng.standard_normal((30, 20)), rng.standard_normal(20) / 4),
        lambda total, a, b: 1 / (1 + np.exp(-total(a * b)))),
    "attention": Case(
        "def f(T(N,D) Q, T(M,D) K, T(M,D) V) -> (O) { S(n,m) +=! Q(n,d)*K(m,d) M1(n) max=! S(n,m) E(n,m) = exp(S(n,m)-M1(n)) "
        "Z(n) +=! E(n,m) O(n,d) +=! E(n,m)*V(m,d)/Z(n) }",
        lambda rng: tuple(rng.standard_normal((12, 8)) for _ in range(3)),
        lambda total, q, k, v: total(softmax(total(q[:, None] * k[None]), total)[:, :, None] * v[None], 1)),
    "condition": Case(
        "def f(T(N,D) X) -> (Y) { S(n) +=! X(n,d) Y(n,d) = S(n) > 0.0 ? sqrt(S(n))*X(n,d) : exp(S(n))+X(n,d) }",
        normal(20, 30), lambda total, x: (s := total(x)[:, None],
                                          np.where(s > 0, np.sqrt(np.maximum(s, 0)) * x, np.exp(s) + x))[1]),
    "running product": Case(
        "def f(T(N,D) X) -> (Y) { P(n) *=! X(n,d) Y(n) = log(P(n)) }",
        uniform(0.5, 2, (20, 30)), lambda _, x: np.log(np.multiply.reduce(x[:, ::-1], 1)), moves=False),
    "tanh of a mean": Case(
        "def f(T(N,D) X) -> (Y) { S(n) +=! X(n,d) Y(n) = atanh(S(n)/D) }",
        uniform(0.3, 0.6, (20, 30)), lambda total, x: np.arctanh(total(x) / x.dtype.type(x.shape[1])), moves=False),
}  # fmt: skip


def made(name, kind):
    case = CASES[name]
    dtype = np.dtype(TYPES[kind])
    (f,) = dict(tc.compile(case.text.replace("T(", f"{kind}("), target="cpu").items()).values()
    arrays = tuple(each.astype(dtype) for each in case.data(np.random.default_rng(7)))
    wide = [each.astype(np.float64 if kind == "double" else np.float32) for each in arrays]
    result = f(*arrays)

    def like(value):
        return np.asarray(value).astype(result.dtype)

    with np.errstate(all="ignore"):
        right, less = (like(case.reference(each, *wide)) for each in (total, lacking))
    return case, f, arrays, result, right, less


@pytest.mark.some(4)
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, case in CASES.items() for kind in case.kinds])
def test_results_that_are_right_agree_and_others_do_not(name, kind):
    case, f, arrays, result, right, less = made(name, kind)
    judge = f.judge(*arrays)
    assert judge(result, right)
    assert judge(right, result)
    assert judge(result, f.on("interpreter")(*arrays)) if result.size < 500 else True
    if case.sound:
        assert not judge(result, (result * (1 + OFF[kind])).astype(result.dtype))
    if case.moves:
        assert np.array_equal(less, right) or not judge(result, less)
        assert not judge(result, np.roll(result, 1, -1))


def test_a_rounding_may_decide_whether_a_result_is_a_number():
    f = tc.compile(
        "def f(float(N,D) X) -> (Y) { S(n) +=! X(n,d) Q(n) +=! X(n,d)*X(n,d) Y(n) = sqrt(Q(n)-S(n)*S(n)/D) }"
    ).f
    x = np.repeat(np.float32([[30.3], [1]]), 64, 1)
    x[1] += np.arange(64)
    judge, right = f.judge(x), np.float32([0, 148])
    right[1] = f(x)[1]
    assert judge(right, np.where([True, False], np.nan, right).astype(np.float32))
    assert not judge(right, np.where([False, True], np.nan, right).astype(np.float32))


def test_what_is_exact_is_judged_exactly():
    f = tc.compile("def f(float(N) X) -> (Y) { s +=! X(i) Y(i) = floor(s * 2.0 + X(i)) }").f
    x = np.arange(8, dtype=np.float32)
    assert not f.judge(x)(f(x), f(x) + np.float32(1))


def test_large_arrays_are_looked_at_in_places():
    text = "def f(float(M,K) A, float(K,N) B) -> (C) { S(i,j) +=! A(i,k)*B(k,j) C(i,j) = S(i,j) > 0.0 ? sqrt(S(i,j)) : S(i,j) }"
    f = tc.compile(text).f
    a, b = np.random.default_rng(3).standard_normal((2, 700, 700)).astype(np.float32)
    judge, result = f.judge(a, b), f(a, b)
    assert judge(result, f(a[:, ::-1].copy(), b[::-1].copy()))
    assert not judge(result, f(a[:, 1:].copy(), b[1:].copy()))
    result_off = result.copy()
    result_off[300, 400] *= 1.001
    assert not judge(result, result_off)


@pytest.mark.parametrize("seed", range(3))
def test_another_order_of_a_few_terms_agrees_at_all_of_many_elements(seed):
    """Where the sums on the way are small by accident, as at some of a million elements, those of another order are not."""
    text = "def f(float(H,W) U) -> (Y) { Y(i,j) = U(i-1,j) + U(i+1,j) + U(i,j-1) + U(i,j+1) - 4*U(i,j) }"
    f = tc.compile(text).f
    u = np.random.default_rng(2 * seed).standard_normal((1024, 1024)).astype(np.float32)
    judge, result = f.judge(u), f(u)
    other = ((u[1:-1, :-2] + u[1:-1, 2:]) - 4 * u[1:-1, 1:-1]) + (u[:-2, 1:-1] + u[2:, 1:-1])
    assert judge(result, other)
    other[17, 29] += np.float32(1e-4)
    assert not judge(result, other)


EDGE = np.random.default_rng(0).random(4096, np.float32)
NEAR = np.float32(EDGE.sum(dtype=np.float64))
CLOSE = np.zeros((2, 50), np.float32)
CLOSE[0, 7], CLOSE[0, 9], CLOSE[1, 5], CLOSE[1, 8] = 1, 1 + 2**-23, 2, 1
DECIDED = {
    "a comparison": ("def f(float(N) X, float t) -> (c) { q +=! X(i) c = q > t }", (EDGE, NEAR), [True, False], []),
    "a clear comparison": (
        "def f(float(N) X, float t) -> (c) { q +=! X(i) c = q > t }", (EDGE, NEAR * np.float32(1.01)), [False], [True],
    ),
    "the place of the largest": (
        "def f(float(N,D) X) -> (I) { S(n,d) = exp(X(n,d)) / 3 M(n) max=! S(n,d) I(n) max=! S(n,d) == M(n) ? int32(d) : -1 }",
        (CLOSE,), [[7, 5], [9, 5]], [[7, 8], [40, 5], [-2, 5]],
    ),
    "a floor": (
        "def f(float(N) X) -> (c) { m +=! X(i) c = int(floor(m)) }", (np.full(1000, 0.1, np.float32),), [99, 100], [98, 102],
    ),
    "a count": (
        "def f(float(N) X, float(M) T) -> (c) { m +=! X(i) c +=! m > T(j) ? 1 : 0 }",
        (EDGE, np.float32([NEAR, NEAR, NEAR * 0.9, NEAR * 1.1])), [1, 3], [0, 4],
    ),
    "whether it is a number": (
        "def f(float(N) X) -> (c) { s +=! X(i) q +=! X(i)*X(i) c = isnan(sqrt(q - s*s/N)) }",
        (np.full(64, 30.3, np.float32),), [True, False], [],
    ),
    "unsigned numbers of 64 bits": (
        "def f(double(N) X, uint64(N) A) -> (C) { C(i) = X(i) / 3 > 0.1 ? A(i) + 1 : A(i) }",
        (np.array([0.3, 0.5]), np.full(2, 2**64 - 4, np.uint64)),
        [np.array([2**64 - 4, 2**64 - 3], np.uint64), np.array([2**64 - 3, 2**64 - 3], np.uint64)],
        [np.array([2**64 - 4, 2**64 - 4], np.uint64), np.array([2**64 - 5, 2**64 - 3], np.uint64)],
    ),
    "numbers that a comparison chooses": (
        "def f(float(N) X, float t) -> (y) { q +=! X(i) y = q > t ? 1.0 : 2.0 }", (EDGE, NEAR), [1.0, 2.0], [3.5, -0.5],
    ),
    "integers alone": ("def f(int(N) X) -> (c) { c +=! X(i) }", (np.arange(9, dtype=np.int32),), [36], [35]),
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_a_rounding_may_decide_about_whole_numbers(name):
    text, arrays, right, wrong = DECIDED[name]
    f = tc.compile(text).f
    judge, dtype = f.judge(*arrays), np.asarray(f(*arrays)).dtype
    right, wrong = ([np.asarray(each, dtype) for each in values] for values in (right, wrong))
    assert all(judge(a, b) for a in right for b in right)
    assert not any(judge(a, b) or judge(b, a) for a in right for b in wrong)


def test_a_comparison_is_open_where_only_few_roundings_change_it():
    """One sample in 16 is enough: 2 times the spread would be too little."""
    f = tc.compile("def f(float(N) X, float t) -> (y) { q +=! X(i) y = q > t ? 1.0 : 2.0 }").f
    wide, spread = EDGE.sum(dtype=np.float64), f.judge(EDGE, NEAR)._spread()
    with np.errstate(all="ignore"):
        spread.budget.left = 1e9
        sums = spread.content("q", 1, np.zeros((1, 1, 1), np.int64))[:, 0, 0]
    t = np.float32((np.sort(sums)[-1] + np.sort(sums)[-2]) / 2)
    assert t > wide
    assert f.judge(EDGE, t)(np.float32(1), np.float32(2))


LONG = {
    "of what is given": ("s +=! X(i)", 1e-2),
    "of functions": ("s +=! exp(X(i)) * X(i)", 0.1),
    "of a temporary": ("E(i) = exp(sin(X(i))) s +=! E(i) * cos(E(i)) * E(i)", 0.1),
    "of squares around the mean": ("m +=! X(i) s +=! (X(i) - m/N) * (X(i) - m/N)", 0.1),
    "of terms that cancel": ("s +=! exp(X(i)) - X(i) * X(i) / 2 - X(i) - 1.0", 0.2),
    "the largest": ("s max=! exp(X(i)) * X(i)", 1e-4),
    "the smallest": ("E(i) = exp(X(i)) s min=! E(i) / (X(i) + 1.0)", 1e-4),
}


@pytest.mark.parametrize("name", LONG)
def test_long_sums_are_judged_by_some_of_their_terms(name):
    text, off = LONG[name]
    f = tc.compile(f"def f(float(N) X) -> (s) {{ {text} }}").f
    x = np.random.default_rng(0).random(3_000_000, np.float32)
    judge, s = f.judge(x), f(x)
    assert judge(s, f(x[::-1].copy()))
    assert judge(s, np.float32(f.on("cpu")(x)))
    assert not judge(s, np.float32(s * (1 + off)))
    assert judge._spread().budget.left > 0


def test_what_some_terms_say_is_what_all_of_them_say(monkeypatch):
    f = tc.compile("def f(double(N) X) -> (s) { m +=! X(i) s +=! (X(i) - m/N) * (X(i) - m/N) * (X(i) - m/N) }").f
    x = 1000 + np.random.default_rng(0).random(200_000)

    def moved():
        return f.judge(x)._spread().of("s", np.zeros(1, np.int64), 1e9)

    all_of_them = moved()
    monkeypatch.setattr("tc_jupyter.compiler.spread.FULL", 0)
    some = moved()
    assert some.middle == pytest.approx(all_of_them.middle, rel=1e-12)
    assert 0.5 < some.spread[0] / all_of_them.spread[0] < 3


def test_more_than_can_be_evaluated_is_judged_by_its_type(monkeypatch):
    monkeypatch.setattr("tc_jupyter.compiler.agreement.PATIENCE", 1)
    f = tc.compile("def f(float(N) X) -> (s, c) { E(i) = exp(sin(X(i))) s +=! E(i) * cos(E(i)) * E(i) c = s > 1.0 }").f
    x = np.random.default_rng(0).random(300_000, np.float32)
    judge, (s, c) = f.judge(x), f(x)
    assert judge((s, c), (np.float32(s * np.float32(1.0001)), c))
    assert not judge((s, c), (np.float32(s * np.float32(1.01)), c))
    assert not judge((s, c), (s, ~c))


def test_a_judge_is_pickled_without_what_it_evaluated():
    f = tc.compile("def f(float(N) X) -> (y) { s +=! X(i) y = log(s) }").f
    x = np.full(64, 1 / 64, np.float32)
    judge = f.judge(x)
    assert judge(np.float32(0), np.float32(1e-6))
    again = pickle.loads(pickle.dumps(judge))
    assert again(np.float32(0), np.float32(1e-6))
    assert not again(np.float32(0), np.float32(1e-3))


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.kind != "bits"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_functions_on_arrays_are_those_of_the_language(name, kind):
    arity = FUNCTIONS[name].arity
    given = ", ".join(f"{kind}(N) {letter}" for letter in "ABCD"[:arity])
    read = ", ".join(f"{letter}(i)" for letter in "ABCD"[:arity])
    f = tc.compile(f"def f({given}) -> (Y) {{ Y(i) = {name}({read}) }}", target="interpreter").f
    points = np.array([-2.5, -1, -0.75, -0.5, 0, 0.25, 0.5, 0.9, 1, 1.5, 2.5, 3], TYPES[kind])
    arrays = [np.roll(points, 5 * place) for place in range(arity)]
    assert_evaluated(f, arrays)


@drawn(60, 500, programs(), sizes(), st.integers(0, 1000))
def test_programs_are_evaluated_as_the_interpreter_does(text, numbers, data):
    analysis = tc.analyze(text)
    if analysis.ok:
        arrays = arguments(analysis.functions["f"].program, data, numbers)
        try:
            assert_evaluated(tc.compile(text, target="interpreter").f, list(arrays.values()))
        except tc.CallError:
            return


def assert_evaluated(f, arrays):
    """The undisturbed sample is what the interpreter computes, up to what the disturbed ones move by."""
    found = f(*arrays)
    judge = f.judge(*arrays)
    given = dict(zip(judge.program.parameters, map(np.asarray, arrays), strict=True))
    spread = Spread(judge.program, judge.ranges, judge.sizes, given)
    for name, result in zip(judge.program.results, found if isinstance(found, tuple) else (found,), strict=True):
        flat, places = result.reshape(-1), np.arange(result.size)
        with np.errstate(all="ignore"):
            spread.budget.left = 1e9
            values = spread.content(name, len(judge.program.statements), places[None, None])[0, 0]
            if result.dtype.kind != "f":
                assert np.array_equal(values, flat)
                continue
            moved = spread.of(name, places, 1e9)
            wide = np.float64(flat)
            near = np.abs(values - wide) <= 2 * moved.spread + 1e-12 + 40 * np.finfo(result.dtype).eps * np.abs(wide)
            lost = ~np.isfinite(wide) & ~(np.abs(values) <= np.finfo(result.dtype).max)
        assert (near | lost | moved.unsure).all()


SAC = {
    "a function of the user": (
        "double far(double a, double b) { return sqrt(a * a + b * b); } "
        "double f(double[.] x) { return with { ([0] <= iv < shape(x)) : x[iv]; } : fold(far, 1d); }",
        [np.linspace(0.1, 2, 30)],
    ),
    "several parts": (
        "float[.] f(float[.] x) { return with { ([0] <= iv < [1]) : x[iv]; ([1] <= iv < shape(x)) : x[iv] * x[iv - 1]; } "
        ": genarray(shape(x), 0f); }",
        [np.linspace(0.1, 2, 30, dtype=np.float32)],
    ),
    "an array that is changed": (
        "float[.] f(float[.] x) { return with { ([2] <= iv < shape(x) step [3]) : x[iv] / 3f; } : modarray(x); }",
        [np.linspace(0.1, 2, 30, dtype=np.float32)],
    ),
}


@pytest.mark.parametrize("name", SAC)
def test_functions_of_sac_are_evaluated(name):
    text, arrays = SAC[name]
    f = tc.compile(text, language="sac", target="interpreter")["f"]
    assert_evaluated(f, arrays)
    judge, result = f.judge(*arrays), np.asarray(f(*arrays))
    assert judge(result, result.copy())
    assert not judge(result, (result * 1.0001).astype(result.dtype))


def steps(first, step):
    """All states, one after the other."""

    def of(x):
        made = [first(x)]
        for n in range(1, len(x)):
            made.append(step(made[-1], x[n]))
        return np.stack(made)

    return of


def twice(x):
    return np.add.accumulate(np.add.accumulate(x, 1, dtype=x.dtype), 0, dtype=x.dtype)


IN_TURNS = {
    "mean that forgets": (
        "Y(t, n) = 0.875*(Y(t - 1, n) else 0) + 0.125*X(t, n) where t in 0:T, n in 0:N along t",
        steps(lambda x: x[0] / 8, lambda y, x: y * x.dtype.type(0.875) + x / 8),
    ),
    "backwards": (
        "Y(t, n) = (Y(t + 1, n) else 0) + X(t, n) where t in 0:T, n in 0:N along -t",
        lambda x: np.flip(np.add.accumulate(np.flip(x, 0), 0, dtype=x.dtype), 0),
    ),
    "sums of sums": (
        "R(t, n) = (R(t, n - 1) else 0) + X(t, n) where t in 0:T, n in 0:N along n  "
        "Y(t, n) = (Y(t - 1, n) else 0) + R(t, n) where t in 0:T, n in 0:N along t",
        twice,
    ),
    "neighbours": (
        "Y(t, n) = 0.5*(Y(t - 1, wrap(n - 1)) else 0) + 0.375*(Y(t - 1, wrap(n + 1)) else 0) + X(t, n) "
        "where t in 0:T, n in 0:N along t",
        steps(lambda x: x[0], lambda y, x: (np.roll(y, 1) / 2 + x) + np.roll(y, -1) * x.dtype.type(0.375)),
    ),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("name", IN_TURNS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_made_in_turns(name, dtype):
    """Elements that a statement made before were taken for zeros: right results were refused."""
    body, reference = IN_TURNS[name]
    kind = {np.float32: "float", np.float64: "double"}[dtype]
    f = tc.compile(f"def f({kind}(T, N) X) -> (Y) {{ {body} }}", target="cpu").f
    x = np.random.default_rng(7).standard_normal((130, 40)).astype(dtype)
    judge, found = f.judge(x), f(x)
    assert judge(found, reference(x))
    assert judge(found, reference(x.astype(np.longdouble)).astype(dtype))
    wrong = found.copy()
    wrong[77, 3] += dtype(1e-3)
    assert not judge(found, wrong)


@pytest.mark.parametrize("kind", ["int64", "uint64"])
@pytest.mark.parametrize("peer", [np.float64, np.float32])
def test_integers_of_64_bits_are_not_rounded_to_those_of_a_peer(kind, peer):
    f = tc.compile(f"def f({kind}(N) X) -> (Y) {{ Y(i) = X(i) * 1 }}").f
    top = np.iinfo(kind).max
    for large in (2**53 + 1, 2**60 + 1, top):
        x = np.array([3, large, 0], kind)
        judge, right = f.judge(x), f(x)
        assert judge(right, right)
        assert not judge(right, right.astype(peer))
        assert not judge(right.astype(peer), right)
    even = np.array([3, 2**60, 0], kind)
    assert f.judge(even)(f(even), f(even).astype(peer))
