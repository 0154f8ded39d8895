"""Random cells, and the programs of the pages: both engines say what the evaluator of `%%tc` says."""

import numpy as np
import pytest

import tc_jupyter as tc
from tests.literate import CASES, DOCS, read_cases
from tests.tc_evaluator import UNSURE, Refused, Rejected, evaluate
from tests.tc_programs import agree, called, drawn, drawn_complex, drawn_orders, expected_of, judge

FIRST, QUICK, MANY = 100_000, 4, 40
"""Seeds: the first one, and how many a test takes."""


def outcomes(seeds):
    """What became of many cells."""
    return [judge(*drawn(seed)) for seed in seeds]


@pytest.mark.parametrize("part", range(4))
def test_engines_compute_what_the_pages_say(part):
    found = outcomes(range(FIRST + part * QUICK, FIRST + (part + 1) * QUICK))
    assert sum(outcome.startswith(("computed", "refused at the call")) for outcome in found) >= QUICK // 4


def test_complex_numbers():
    found = [judge(*drawn_complex(seed)) for seed in range(FIRST, FIRST + QUICK)]
    assert sum(outcome.startswith("computed") for outcome in found) >= QUICK // 4


@pytest.mark.slow
def test_complex_numbers_many():
    found = [judge(*drawn_complex(seed)) for seed in range(FIRST + 1000, FIRST + 1000 + MANY // 2)]
    assert sum(outcome.startswith("computed") for outcome in found) >= MANY // 8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_engines_compute_what_the_pages_say_many(part):
    start = FIRST + 1000 + part * MANY
    found = outcomes(range(start, start + MANY))
    assert sum(outcome.startswith(("computed", "refused at the call")) for outcome in found) >= MANY // 2


def test_statements_with_orders_compute_what_the_pages_say():
    found = [judge(*drawn_orders(seed)) for seed in range(FIRST, FIRST + 3 * QUICK)]
    assert sum(outcome.startswith("computed") for outcome in found) >= QUICK // 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_statements_with_orders_compute_what_the_pages_say_many(part):
    start = FIRST + 2000 + part * MANY
    found = [judge(*drawn_orders(seed)) for seed in range(start, start + MANY)]
    assert sum(outcome.startswith("computed") for outcome in found) >= MANY // 4


def programs(paths):
    return [case for path in paths for case in read_cases(path) if case.language == "tc" and case.steps is None]


def judge_case(case):
    """Every def of a case, called with drawn arguments at three choices of sizes."""
    analysis = case.analysis
    count = 0
    for name in analysis.functions if analysis.ok else ():
        sizes = analysis.functions[name].program.sizes
        for number, least in enumerate((2, 5)):
            known = {size: least + (7 * place + number) % 4 for place, size in enumerate(sizes)}
            try:
                count += judge(case.program, known, number, name).startswith(("computed", "refused at the call"))
            except Rejected:
                # a spelling that the evaluator does not read, as a match of a library call
                continue
    return count


def test_programs_of_the_language_page():
    """Every third program of the page; the next test, which is slow, takes all of them."""
    assert sum(judge_case(case) for case in [*programs([DOCS / "language.md"])][::3]) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_programs_of_all_cases(part):
    paths = sorted([*DOCS.glob("*.md"), *(CASES / "tc").glob("*.md")])
    assert sum(judge_case(case) for case in [*programs(paths)][part::6]) >= 30


POSITIONS = [
    ("P", "P(n) {}=! X(n, h, w) at h*W + w"),
    ("P", "P(n) {}=! X(n, h, w) at -h"),
    ("P", "P(n) {}=! X(n, h, w) at n*H + Q(h)"),
    ("V, P", "V(n, i), P(n, i) {}=! X(n, 2*i + h, w) at h*W + w where h in 0:2"),
    ("int64(3) P", "P(Q(n)) {}=! X(n, h, w) at h*W + w"),
    ("int64(3, W) P", "P(Q(n), w) {}=! X(n, h, w) at n*H + h where w in 0:W"),
    ("float(3) V, int64(3) P", "V(Q(n)), P(Q(n)) {}=! X(n, h, w) at w*H + h where h <= w"),
    ("P", "P(n/3) {}=! X(n, h, w) at n*100 + h*W + w"),
]


@pytest.mark.parametrize(("results", "statement"), POSITIONS)
@pytest.mark.parametrize("operator", ["argmin", "argmax"])
def test_positions_behind_several_indices(results, statement, operator):
    """The smallest of what `at` says, in groups that the left side tells, too."""
    text = f"def f(float(N, H, W) X, int32(N) Q) -> ({results}) {{ {statement.format(operator)} }}"
    X = np.random.default_rng(0).integers(0, 4, (5, 5, 4)).astype("f")
    X[1, 2, 3] = np.nan
    Q = np.array([2, 0, 2, 1, 0], "i")
    expected = evaluate(text, "f", [(X, "float32"), (Q, "int32")]).results.values()
    found = tc.compile(text).f(X, Q)
    for one, other in zip(found if isinstance(found, tuple) else [found], expected, strict=True):
        np.testing.assert_array_equal(one.ravel(), other.values)


SHRUNK = (
    # the outer read of a guard is looked at before the guard is computed
    """def f(float(N) X) -> (b) {
  T(i, j) = X(0) where i in 0:3, j in 1:max(N, 2) - 1
  b max=! X(i) <= 0 ? (T(i/2, max(0, min(T.1 - 1, i))) < 1 ? T(i/2, 0) : 1) : 0
}""",
)


@pytest.mark.parametrize("text", SHRUNK)
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_reads_in_guards_are_checked_before_the_guard_is_computed(text, target):
    f = tc.compile(text, target=target).f
    assert f(np.ones(1, np.float32)) == 0
    with pytest.raises(tc.CallError, match=r"`T\(i/2, max.* leaves `T`"):
        f(np.zeros(1, np.float32))


FIRST_INT32, LAST_INT32 = -(2**31), 2**31 - 1


@pytest.mark.parametrize(
    ("guard", "dtype", "number"),
    [
        ("s*s >= 0", "int32", 50_000),
        ("s + 1 > s", "int32", LAST_INT32),
        ("s + 1 > s", "int8", 127),
        ("s - 1 < s", "int16", -(2**15)),
        ("-s <= 0 || s < 0", "int32", FIRST_INT32),
        ("abs(s) >= 0", "int32", FIRST_INT32),
        ("s - 1 < s", "uint8", 0),
        ("s - 1 < 0 || s > 0", "uint16", 0),
    ],
)
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_guard_compares_numbers_that_do_not_wrap(guard, dtype, number, target):
    """A guard that holds for all numbers keeps a read away that would leave the array."""
    f = tc.compile(
        f"def f(float(N) X, {dtype} s) -> (Y) {{ Y(i) = {guard} ? X(i) : X(i + N) where i in 0:N }}", target=target
    ).f
    X = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(f(X, number), X)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_guard_and_the_subscript_behind_it_are_the_same_number(target):
    module = tc.compile(
        """
    def last(float(N) X, uint8(M) I) -> (Y) { Y(i) = I(i) - 1 >= 0 ? X(I(i) - 1) : 7 }
    def sums(float(N) X, uint8(M) I, uint8(M) J) -> (Y) { Y(i) = I(i) + J(i) < N ? X(I(i) + J(i)) : 7 }
    def next(float(N) X, int32(M) I) -> (Y) { Y(i) = I(i) + 1 >= 0 && I(i) + 1 < N ? X(I(i) + 1) : 7 }
    """,
        target=target,
    )
    X = np.arange(300, dtype=np.float32)
    I = np.array([0, 1, 200], np.uint8)
    np.testing.assert_array_equal(module.last(X, I), [7, 0, 199])
    np.testing.assert_array_equal(module.sums(X, I, I[::-1].copy()), [200, 2, 200])
    np.testing.assert_array_equal(module.next(X, np.array([LAST_INT32, -1, 5], np.int32)), [7, 0, 6])


@pytest.mark.parametrize("guard", ["s - 1 < s", "i < s - 1", "int32(s) >= 0", "N*s < 5", "s + s >= 0"])
@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1, 2**31, 2**62])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_guard_that_wraps_in_64_bits_is_not_believed(guard, number, target):
    """What it lets through is looked at where it is computed."""
    text = f"def f(float(N) X, int64 s) -> (Y) {{ Y(i) = {guard} ? X(i) : X(i + N) where i in 0:N }}"
    f = tc.compile(text, target=target).f
    X = np.arange(3, dtype=np.float32)
    found = called(f, [(X, "float32"), (number, "int64")])
    if isinstance(found, tuple):
        np.testing.assert_array_equal(found[0], X)
    else:
        assert found.code.number in ("TC601", "TC604")


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ("-A(i) > 1", "uint64", [0, 1, 1]),
        ("A(i) - 1 >= 0", "uint64", [1, 1, 1]),
        ("abs(-A(i)) > 5", "uint64", [0, 1, 1]),
        ("A(i)*A(i) > 9", "uint64", [0, 0, 1]),
        ("-A(i) > 1", "int64", [0, 0, 0]),
        ("A(i) - 1 >= 0", "int64", [0, 1, 1]),
        ("~A(i) >= 0", "int64", [0, 0, 1]),
    ],
)
def test_a_comparison_that_needs_more_than_64_bits_wraps(value, dtype, expected):
    text = f"def f({dtype}(N) A) -> (Y) {{ Y(i) = {value} }}"
    last = 2**63 + 5 if dtype == "uint64" else -(2**63)
    A = np.array([0, 3, last], dtype)
    assert evaluate(text, "f", [(A, dtype)]).results["Y"].values == expected
    for target in ("interpreter", "cpu"):
        assert tc.compile(text, target=target).f(A).tolist() == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("U(i) - 201 < B(i)", [1, 1, 0, 1]),
        ("B(i) > U(i) - U(0)", [1, 1, 0, 1]),
        ("U(i) - 201 >= B(i)", [0, 0, 1, 0]),
        ("U(i) + U(i) == B(i)*4", [1, 0, 0, 0]),
        ("B(i) + (U(i) + U(i)) == 500", [1, 0, 0, 0]),
        ("(i > 1 ? B(i) : U(i) + U(i)) == 400", [1, 0, 0, 0]),
        ("B(i) % (U(i) - U(0) + 300) == 100", [1, 0, 0, 0]),
        ("U(i) + U(i) <= ~B(i)", [1, 1, 1, 1]),
        ("i + 499 < B(i) + (U(i) + U(i))", [1, 0, 1, 1]),
        ("(99 - U(i))*(U(i) + 1) <= B(i)", [1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_beside_64_unsigned_bits_only_they_wrap(value, expected, target):
    """Arithmetic of `uint8` wrapped in a comparison with a `uint64`: 200 - 201 was 255, and not below 100."""
    text = f"def f(uint64(N) B, uint8(N) U) -> (Y) {{ Y(i) = {value} }}"
    B, U = np.array([100, 3, 0, 2**63 + 5], np.uint64), np.array([200, 100, 255, 0], np.uint8)
    assert evaluate(text, "f", [(B, "uint64"), (U, "uint8")]).results["Y"].values == expected
    assert tc.compile(text, target=target).f(B, U).tolist() == expected


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_guard_beside_64_unsigned_bits_is_looked_behind(target):
    text = "def f(float(N) X, uint64(M) B, uint8(M) U) -> (Y) { Y(i) = U(i) - 1 < B(i) ? X(U(i) - 1) : 7 }"
    f = tc.compile(text, target=target).f
    X, B = np.arange(5, dtype=np.float32), np.array([3, 2**63 + 9], np.uint64)
    assert f(X, B, np.array([4, 2], np.uint8)).tolist() == [7, 1]
    for U in ([0, 0], [1, 6]):
        with pytest.raises(tc.CallError):
            f(X, B, np.array(U, np.uint8))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("int8(A(i) + B(i)) > 0", [0, 1, 0]),
        ("v > 0 where v = int8(A(i) + B(i))", [0, 1, 0]),
        ("int16(int8(A(i) + B(i))) > 0", [0, 1, 0]),
        ("min(int8(A(i) + B(i)), int8(1)) > 0", [0, 1, 0]),
        ("int8(A(i) + B(i)) == int8(-56) ? 1 : 0", [0, 0, 1]),
        ("X(int8(A(i) + B(i)) + 128)", [0, 255, 72]),
        ("A(i) + B(i) > 0", [1, 0, 1]),
    ],
)
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_cast_wraps_where_arithmetic_does_not(value, expected, target):
    f = tc.compile(f"def f(int8(N) A, int8(N) B, int32(M) X) -> (Y) {{ Y(i) = {value} }}", target=target).f
    arrays = np.array([127, -128, 100], np.int8), np.array([1, -1, 100], np.int8), np.arange(256, dtype=np.int32)
    assert f(*arrays).tolist() == expected


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [("bool(7) - A(i)", -1), ("bool(-1)*A(i)", 2), ("bool(0) + A(i)", 2), ("bool(0.5) + A(i)", 3)],
)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16"])
def test_a_literal_cast_to_bool_is_0_or_1(value, expected, dtype, target):
    f = tc.compile(f"def f({dtype}(N) A) -> (float(N) Y) {{ Y(i) = float({value}) }}", target=target).f
    assert f(np.full(3, 2, dtype)).tolist() == [expected] * 3


def test_a_literal_too_large_for_half_keeps_its_type():
    module = tc.compile("def f(half(N) h) -> (A, B, C) { A(i) = 100000 * h(i) B(i) = 1e6 * h(i) C(i) = inf * h(i) }")
    A, B, C = module.f(np.array([0.5], np.float16))
    assert (A.dtype, A[0]) == (np.float16, 50000)
    assert (B.dtype, B[0]) == (np.float32, 500000)
    assert (C.dtype, C[0]) == (np.float16, np.inf)


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("def f(int32(N) a) -> (Y) { Y(i) = a(i)/-2 + a(i) % -2 }", [(np.array([7, -7], np.int32), "int32")], [-5, 2]),
        ("def f(uint8(N) a) -> (Y) { Y(i) = a(i) + 1 }", [(np.array([255], np.uint8), "uint8")], [0]),
        ("def f(float(N) X) -> (Y) { Y(i) = X(i) - X(i - 1) }", [(np.array([1, 4, 9], np.float32), "float32")], [3, 5]),
        ("def f(half(N) X) -> (Y) { Y = 2048 * X(0) Y += X(i) }", [(np.ones(5, np.float16), "float16")], [2052]),
        ("def f(bool(N) b) -> (Y) { Y +=! b(i) }", [(np.array([True, True]), "bool")], [2]),
        ("def f(int8(N) A) -> (Y) { Y(i) = 100 Y(i) += A(i) }", [(np.array([27, 28], np.int8), "int8")], [127, -128]),
        (
            "def f(int(N) A) -> (Y) { Y(j) = 1 Y(i) = Y(i) + A(i + 1) }",
            [(np.array([1, 2, 3], np.int32), "int32")],
            [2, 3, 4],
        ),
    ],
)
def test_the_evaluator_itself(text, arguments, expected):
    (found,) = evaluate(text, "f", arguments).results.values()
    assert found.values == expected


def test_what_is_in_arrays_for_results_may_leave_a_condition_to_rounding():
    text = """def f(int32(N) A) -> (T0, T1) {
        T0(i) += 0*A(i)
        T1(i) += 1 where T0(i) > 0, sqrt(T0(i)*0.5)^2 > T0(i)*0.5
    }"""
    assert judge(text, {"N": 6}, 0) == "computed, unclear with out=: a condition that depends on rounding"


def test_what_is_not_known_stays_so_times_zero():
    """Products of complex numbers that overflow had errors of NaN, within which nothing is."""
    text = "def f(complex64(N) Z) -> (Y) { T(i) = Z(i) * Z(i) Y(i) = T(i) * T(i) + 0*i }"
    (found,) = evaluate(text, "f", [(np.array([1e30 + 1e30j, 1 + 1j], np.complex64), "complex64")]).results.values()
    assert found.errors == [UNSURE, pytest.approx(0, abs=1e-5)]
    assert found.values[1] == pytest.approx(-4)


@pytest.mark.parametrize(
    "value",
    [
        "X(i % s)",
        "i >= s ? X(i % s) : 0",
        "i % s == 0 ? X(i) : X(i + s)",
        "sign(i + s) > 0 ? X(i) : X(i + 1)",
        "X(uint8(i + s))",
        "int8(i + 100*s) >= 0 ? X(i) : X(i + 1)",
    ],
)
@pytest.mark.parametrize("s", [-5, -2, -1, 1, 2, 5])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_call_is_refused_exactly_where_an_access_leaves(value, s, target):
    """Remainders by a negative number, signs and narrow casts are found exactly at a point."""
    text = f"def f(float(N) X, int32 s) -> (Y) {{ Y(i) = {value} where i in 0:N }}"
    X = np.arange(1, 4, dtype=np.float32)
    expected = expected_of(text, "f", [(X, "float32"), (s, "int32")])
    f = tc.compile(text, target=target).f
    if isinstance(expected, Refused):
        with pytest.raises(tc.CallError):
            f(X, s)
    else:
        agree(f(X, s), expected.results["Y"], text)
