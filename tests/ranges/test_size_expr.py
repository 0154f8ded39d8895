"""Canonical form, values, text and proofs of size expressions."""

from __future__ import annotations

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tc_jupyter.compiler import analyze
from tc_jupyter.program import Binary, Const, DType, Read
from tc_jupyter.ranges import (
    Condition,
    choose,
    condition_text,
    constant,
    decided,
    floor_div,
    from_expr,
    index,
    maximum,
    minimum,
    mod,
    nonnegative,
    scalar,
    size,
    to_expr,
    to_python,
)
from tc_jupyter.ranges.display import solved
from tc_jupyter.ranges.interval import interval, solve
from tc_jupyter.ranges.size_expr import Choice
from tests.strategies import drawn

NAMES = ["I", "N", "M", "K", "W", "KW"]
I, N, M, K, W, KW = (size(name, position) for position, name in enumerate(NAMES))


@st.composite
def expressions(draw, depth=3):
    """Pairs: a size expression, and a function that computes its value from numbers without the package."""
    kind = draw(st.integers(0, 8)) if depth else draw(st.integers(0, 1))
    if kind == 0:
        c = draw(st.integers(-5, 5))
        return constant(c), lambda v: c
    if kind == 1:
        name = draw(st.sampled_from(NAMES[:4]))
        return size(name, NAMES.index(name)), lambda v: v[name]
    a, f = draw(expressions(depth - 1))
    b, g = draw(expressions(depth - 1))
    c = draw(st.integers(1, 5))
    return [
        (a + b, lambda v: f(v) + g(v)),
        (a - b, lambda v: f(v) - g(v)),
        (a * c, lambda v: f(v) * c),
        (floor_div(a, c), lambda v: f(v) // c),
        (minimum(a, b), lambda v: min(f(v), g(v))),
        (maximum(a, b), lambda v: max(f(v), g(v))),
        (mod(a, c), lambda v: f(v) % c),
        (a * b, lambda v: f(v) * g(v)),
    ][kind - 1]


values = st.fixed_dictionaries({name: st.integers(1, 40) for name in NAMES})


@drawn(75, 300, expressions(), values)
def test_value_and_text(pair, numbers):
    e, reference = pair
    assert e.evaluate(numbers) == reference(numbers)
    assert eval(to_python(e), {"min": min, "max": max}, dict(numbers)) == reference(numbers)


@drawn(50, 200, expressions(2), values, st.integers(1, 9))
def test_division_by_a_size(pair, numbers, position):
    e, reference = pair
    assert floor_div(e, K).evaluate(numbers) == reference(numbers) // numbers["K"]
    assert mod(e, K).evaluate(numbers) == reference(numbers) % numbers["K"]
    assert (
        eval(to_python(floor_div(e, K) + 1), {"min": min, "max": max}, dict(numbers))
        == reference(numbers) // numbers["K"] + 1
    )


@drawn(75, 300, expressions(), values)
def test_what_is_proved_holds(pair, numbers):
    e, reference = pair
    if nonnegative(e):
        assert reference(numbers) >= 0
    low, high = e.limits
    assert low is None or low <= reference(numbers)
    assert high is None or reference(numbers) <= high


@drawn(75, 300, expressions(), values)
def test_text_of_a_condition(pair, numbers):
    e, reference = pair
    expected = reference(numbers) >= 0
    assert bool(eval(condition_text(e), {"min": min, "max": max}, dict(numbers))) == expected
    assert bool(eval(condition_text(solved(e)), {"min": min, "max": max}, dict(numbers))) == expected


@drawn(50, 200, expressions(), values)
def test_to_expr_and_back(pair, numbers):
    e, _ = pair
    back = from_expr(to_expr(e))
    assert back.evaluate(numbers) == e.evaluate(numbers)


@drawn(50, 200, expressions(2), expressions(2), values)
def test_substitute(pair, other, numbers):
    (e, f), (r, g) = pair, other
    assume(g(numbers) >= 1)  # a size is at least 1 while expressions are simplified
    assert e.substitute({"N": r}).evaluate(numbers) == f({**numbers, "N": g(numbers)})


@pytest.mark.parametrize(
    "e,text",
    [
        (floor_div(I - 1, 2) + 1, "(I + 1)//2"),
        (minimum(N, M + 2) - 2, "min(N - 2, M)"),
        (maximum(20 - N, 0), "max(20 - N, 0)"),
        (11 - I, "11 - I"),
        (3 * floor_div(W - KW, 2), "3*((W - KW)//2)"),
        (floor_div(N - 1, K) + 1, "(N + K - 1)//K"),
        (floor_div(I - K, K) + 1, "I//K"),
        (minimum(floor_div(I + 1, 2), floor_div(I, 2)), "I//2"),
        (minimum(minimum(N, M), K + 1, N + 3), "min(N, M, K + 1)"),
        (-N, "-N"),
        (constant(0), "0"),
        (2 * N * M - 1, "2*N*M - 1"),
        (floor_div(floor_div(N, 2), 3), "N//6"),
        (mod(N + 5, 3), "(N + 2)%3"),
        (mod(N * K, K), "0"),
        (maximum(N, -N), "N"),
    ],
)
def test_text(e, text):
    assert to_python(e) == text


def test_equal_values_are_equal():
    assert maximum(20 - N, 0) == 20 - minimum(N, 20)
    assert minimum(-N, -M) == -maximum(N, M)
    assert minimum(N, M) == minimum(M, N)
    assert minimum(N + 1, M + 3) == minimum(N, M + 2) + 1
    assert floor_div(I - 1, 2) + 1 == floor_div(I + 1, 2)
    assert hash(N + M) == hash(M + N)
    assert N - N == 0
    assert size("N") == size("N", 7)
    assert size("N") != index("N")


def test_text_follows_the_signature_and_not_the_alphabet():
    z, a = size("Z", 0), size("A", 1)
    assert to_python(z + a) == "Z + A"
    assert to_python(minimum(a, z)) == "min(Z, A)"
    assert condition_text(a - z) == "Z <= A"


@pytest.mark.parametrize(
    "e,text",
    [
        (M - N - K + 1, "N + K <= M + 1"),
        (N - 5, "N >= 5"),
        (M - N - 1, "N < M"),
        (5 - N, "N <= 5"),
        (solved(floor_div(I - K, W) + 1), "K <= I + W"),
    ],
)
def test_condition_text(e, text):
    assert condition_text(e) == text


def test_names_and_constants():
    e = minimum(N, index("i") + 2)
    assert e.names == {"N", "i"}
    assert e.indices == {"i"}
    assert constant(3).is_constant
    assert constant(3).constant == 3
    with pytest.raises(ValueError):
        e.constant


def test_division_by_zero_fails_only_when_evaluated():
    e = floor_div(N, 0)
    with pytest.raises(ZeroDivisionError):
        e.evaluate({"N": 1})
    with pytest.raises(ZeroDivisionError):
        floor_div(N, K).evaluate({"N": 1, "K": 0})


def test_a_missing_name_is_an_error():
    with pytest.raises(KeyError):
        N.evaluate({})


def test_scalars_keep_their_type():
    s = scalar("s", DType.INT16)
    assert s.limits == (-(2**15), 2**15 - 1)
    back = to_expr(s + 1)
    assert isinstance(back, Binary)
    assert from_expr(back).evaluate({"s": 4}) == 5
    assert from_expr(Read("s", (), DType.INT16)) == s


@pytest.mark.parametrize(
    "e",
    [
        I - 2 * floor_div(I, 2),
        N * M - N,
        floor_div(I + 1, 2) - floor_div(I, 2),
        M - N * floor_div(M, N),
        M - 1 - mod(N, M),
        N * M - 1,
    ],
)
def test_provable(e):
    assert nonnegative(e)


@pytest.mark.parametrize("e", [N - M, N * M - M - N, 2 * floor_div(I, 2) - I, minimum(N, M) - 2])
def test_not_provable(e):
    assert not nonnegative(e)


def test_a_choice_is_proved_branch_by_branch():
    p = scalar("p", DType.INT32)
    clamped = choose(Condition(">=", (p - 1,)), p, constant(0))
    assert nonnegative(clamped)
    assert not nonnegative(clamped - 1)
    assert to_python(clamped) == "(p if p >= 1 else 0)"
    assert clamped.evaluate({"p": -4}) == 0


@pytest.mark.parametrize(
    "condition, then, otherwise, limits",
    [
        (Condition(">=", (2 - M,)), M, constant(3), (1, 3)),
        (Condition(">=", (M - 3,)), constant(3), M, (1, 3)),
        (Condition(">=", (2 - M,)), M + N, constant(3), (2, None)),
        (Condition("==", (M - 5,)), M, constant(3), (3, 5)),
        (Condition("!=", (M - 5,)), constant(3), M, (3, 5)),
        (Condition("and", parts=(Condition(">=", (N - M,)), Condition(">=", (9 - N,)))), N, constant(1), (1, 9)),
        (Condition("or", parts=(Condition(">=", (4 - M,)), Condition(">=", (9 - M,)))), M, constant(0), (0, 9)),
        (Condition(">=", (2 - scalar("p", DType.INT32),)), scalar("p", DType.INT32), constant(3), (-(2**31), 3)),
        (Condition("true"), M, constant(3), (1, None)),
    ],
)
def test_a_choice_is_limited_by_its_condition(condition, then, otherwise, limits):
    assert Choice(condition, then, otherwise).limits == limits


def test_interval_of_a_sum():
    i, k = index("i"), index("k")
    found = interval(2 * i - k + 1, {"i": (constant(0), N - 1), "k": (constant(0), K - 1)})
    assert (to_python(found.lower), to_python(found.upper), found.exact) == ("2 - K", "2*N - 1", True)


def test_an_index_that_grows_and_falls_is_not_exact():
    k = index("k")
    found = interval(k - floor_div(k, 2), {"k": (constant(0), K - 1)})
    assert not found.exact
    assert not interval(mod(k + 1, 3) + k, {"k": (constant(0), K - 1)}).exact
    assert interval(mod(k, 3), {"k": (constant(0), K - 1)}).exact


def test_division_by_an_index():
    d = index("d")
    found = interval(floor_div(N, d), {"d": (constant(1), K)})
    assert to_python(found.upper) == "N"
    assert to_python(found.lower) == "N//K"


def test_solve_needs_one_occurrence():
    i = index("i")
    assert solve(i * i - N, "i", {}) is None
    assert solve(mod(i, 3) - 1, "i", {}) is None
    assert solve(N - 1 - 2 * i, "i", {}).value == floor_div(N - 1, 2)
    limit = solve(floor_div(i, 3) - 2, "i", {})
    assert (limit.side, limit.value) == ("lower", constant(6))


def test_constants_of_expressions():
    assert from_expr(Const(7, DType.INT64)) == 7


# bounded work --------------------------------------------------------------------------------------------------------------------

DEEP = {
    "reads in reads": "X(" * 40 + "i" + ")" * 40,
    "clamps of data": "X(" + "max(min(X(i)+" * 14 + "i" + ", N), 0)" * 14 + ")",
    "min of min": "X(" + "min(max(i, 3)+" * 20 + "i" + "*2, i)" * 20 + ")",
    "alternating signs": "X(" + "(3-max(i, " * 20 + "i" + "))" * 20 + ")",
    "branches": "X(" + "+".join(f"(i > {k} ? {k} : i)" for k in range(40)) + ")",
}


@pytest.mark.parametrize("value", DEEP.values(), ids=DEEP)
def test_deep_subscripts_take_time_that_grows_with_their_length(value):
    """Each of these took time that doubles with every level; a test that hangs here is the failure."""
    analysis = analyze(f"def f(int(N) X) -> (Y) {{ Y(i) = {value} where i in 0:N }}")
    assert analysis.ok
    assert len(analysis.functions["f"].preconditions) > 1


def test_a_size_of_a_high_degree():
    analysis = analyze(
        "def f(int(N) X) -> (Y) { Y(i) = X(i) where a = N*N*N, b = a*a*a, c = b*b*b, d = c*c*c, i in 0:d*d }"
    )
    assert analysis.functions["f"].preconditions[-1].kind in ("PROVED", "SIZE")


def test_an_expression_is_split_by_an_index_where_it_is_linear_in_it() -> None:
    n, i, j = size("N"), index("i"), index("j")
    assert (n * i * 2 + i + j - 3).linear_in("i") == (n * 2 + 1, j - 3)
    assert (j - 3).linear_in("i") == (constant(0), j - 3)
    for other in (i * i, floor_div(i, 2) + 1, i + mod(i, n), i * minimum(i, n)):
        assert other.linear_in("i") is None


@st.composite
def remainders(draw, depth=3):
    """Pairs: sums, quotients and remainders by sizes and numbers of indices, and a function of their values in Python."""
    kind = draw(st.integers(0, 8)) if depth else draw(st.integers(0, 2))
    if kind == 0:
        c = draw(st.integers(-5, 5))
        return constant(c), lambda v: c
    if kind == 1:
        name = draw(st.sampled_from(["W", "K"]))
        return size(name, NAMES.index(name)), lambda v: v[name]
    if kind == 2:
        name = draw(st.sampled_from("xys"))
        found = scalar(name, DType.INT32) if name == "s" else index(name)
        return found, lambda v: v[name]
    a, f = draw(remainders(depth - 1))
    b, g = draw(st.sampled_from(DIVISORS))
    c = draw(st.integers(-3, 3))
    d, h = draw(remainders(depth - 1))
    return [
        (a + d, lambda v: f(v) + h(v)),
        (a * c + d, lambda v: f(v) * c + h(v)),
        (a * b + d, lambda v: f(v) * g(v) + h(v)),
        (floor_div(a, b), lambda v: f(v) // g(v)),
        (mod(a, b), lambda v: f(v) % g(v)),
        (minimum(a, b - 1), lambda v: min(f(v), g(v) - 1)),
    ][kind - 3]


DIVISORS = [
    (W, lambda v: v["W"]),
    (K, lambda v: v["K"]),
    (W * K, lambda v: v["W"] * v["K"]),
    (W * 2, lambda v: v["W"] * 2),
    (constant(2), lambda v: 2),
    (constant(6), lambda v: 6),
    (constant(-3), lambda v: -3),
    (W + 1, lambda v: v["W"] + 1),
]
BOX = {"x": (constant(0), W - 1), "y": (constant(-2), W * K - 1)}


@drawn(100, 3000, remainders(), st.data())
def test_remainders_have_the_value_of_python(pair, data):
    """Quotients and remainders of sums, as they are made and where ranges decide them, against Python's floor arithmetic."""
    e, f = pair
    short = decided(e, BOX)
    for _ in range(4):
        v = {"W": data.draw(st.integers(1, 5)), "K": data.draw(st.integers(1, 5)), "s": data.draw(st.integers(-9, 9))}
        v["x"], v["y"] = data.draw(st.integers(0, v["W"] - 1)), data.draw(st.integers(-2, v["W"] * v["K"] - 1))
        assert e.evaluate(v) == f(v), to_python(e)
        assert short.evaluate(v) == f(v), (to_python(e), to_python(short))


X, Y, Z, S = index("x"), index("y"), index("z"), scalar("s", DType.INT32)


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        (((X + S) % W + W) % W, (X + S) % W),
        ((X + W) % W, X),
        ((X - W) // W, constant(-1)),
        ((Z * W + X) // W, Z),
        ((Z % (W * 6) + X) % W, (Z + X) % W),
        ((Z % 6 + X) % 3, (Z + X) % 3),
        (Z // W * W + Z % W, Z),
        (Z // W * W + (Z + 5 * W) % W, Z),
        (minimum(maximum(X, 0), W - 1), X),
    ],
)
def test_remainders_are_left_out(e, expected):
    """Multiples of a divisor, inner remainders, and what ranges decide."""
    found = decided(e, BOX)
    assert found == expected, to_python(found)


def test_a_remainder_keeps_a_sum_within_64_bits():
    """`I % N + 1` is no larger than `N`, `I + 1` may not be an integer of 64 bits."""
    large = scalar("I", DType.INT64)
    assert to_python((large % N + 1) % N) == "(I%N + 1)%N"
    assert (large % N + N) % N == large % N
