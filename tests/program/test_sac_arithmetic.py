"""Integer division of `%%sac`: every pair of `int8`, against the definitions of C in wide integers."""

import operator

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.program.expr import Binary, Call, Cast, Const, DType, Read, Unary
from tc_jupyter.program.sac_sizes import evaluate

A = np.repeat(np.arange(-128, 128, dtype=np.int8), 256).reshape(256, 256)
B = np.ascontiguousarray(A.T)
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
DIVIDED = "int8[*], int8[*], int8[*] f(int8[*] a, int8[*] b) { return (a / b, a % b, mod(a, b)); }"


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_every_pair_of_int8(target):
    quotient, remainder, modulo = tc.compile(DIVIDED, language="sac", target=target).f(A, B)
    assert {each.dtype for each in (quotient, remainder, modulo)} == {np.dtype(np.int8)}
    a, b = A.astype(np.int64), B.astype(np.int64)
    known = b != 0  # by 0 all three are 0
    divisor = np.where(known, b, 1)
    toward_zero = np.sign(a) * np.sign(divisor) * (np.abs(a) // np.abs(divisor))
    wrapped = toward_zero.astype(np.int8)  # -128 / -1 leaves the range
    np.testing.assert_array_equal(quotient, np.where(known, wrapped, 0))
    np.testing.assert_array_equal(remainder, np.where(known, a - toward_zero * divisor, 0))
    np.testing.assert_array_equal(modulo, np.where(known, np.mod(a, divisor), 0))


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_every_number_of_int8_by_numbers_that_are_written(target):
    numbers = (-128, -7, -2, -1, 1, 2, 3, 8, 127)
    terms = ", ".join(f"a / int8({n}), a % int8({n}), mod(a, int8({n}))" for n in numbers)
    a = np.arange(-128, 128, dtype=np.int8)
    types = ", ".join(["int8[.]"] * 3 * len(numbers))
    found = tc.compile(f"{types} f(int8[.] a) {{ return ({terms}); }}", language="sac", target=target).f(a)
    for n, quotient, remainder, modulo in zip(numbers, found[::3], found[1::3], found[2::3], strict=True):
        wide = a.astype(np.int64)
        toward_zero = np.sign(wide) * np.sign(n) * (np.abs(wide) // abs(n))
        np.testing.assert_array_equal(quotient, toward_zero.astype(np.int8))
        np.testing.assert_array_equal(remainder, wide - toward_zero * n)
        np.testing.assert_array_equal(modulo, np.mod(wide, n))


@pytest.mark.parametrize("n, expected", [(0, []), (1, [0]), (4, [0, 7, 0, 6])])
def test_a_grid_that_begins_after_the_end_has_no_position(n, expected):
    """What is summed inside is computed once for each position, and for none here."""
    text = (
        "long[*] f(long[.] a, int n) { return { [i] -> a[i] + sum(drop([i], a)) | [1] <= [i] < [n] step 2 width 1 }; }"
    )
    found = tc.compile(text, language="sac", target="interpreter").f(np.arange(n), np.int32(n))
    np.testing.assert_array_equal(found, np.array(expected, np.int64))


@pytest.mark.parametrize("n", [3, 6, 7])
def test_a_quotient_that_is_a_term_of_its_own_dividend_counts_twice(n):
    text = "int[.] f(float[.] a) { n = shape(a)[0]; return genarray([(4 * ((n + 1) / 4) + n + 1) / 4], 1); }"
    found = tc.compile(text, language="sac", target="interpreter").f(np.zeros(n, np.float32))
    assert len(found) == (4 * ((n + 1) // 4) + n + 1) // 4


def of(text, *arguments):
    return tc.compile(text, language="sac", target="interpreter").f(*arguments)


@pytest.mark.parametrize(
    "statements, expected",
    [
        ("x = 3; for (i = 0; i < 24; i++) x *= x;", pow(3, 1 << 24, 1 << 64)),
        ("x = toi(3); for (i = 0; i < 24; i++) x *= x;", pow(3, 1 << 24, 1 << 32)),
        ("x = shape(a)[0]; for (i = 0; i < 200; i++) x *= 3;", pow(3, 201, 1 << 64)),
        ("x = -9223372036854775807 - 1; x = x / -1;", 1 << 63),
        ("x = -9223372036854775807 - 1; x = -x;", 1 << 63),
        ("x = abs(-9223372036854775807 - 1);", 1 << 63),
        ("x = toi(-2147483647) - 1; x = -x; y = x < 0; x = y ? x : 7;", 1 << 31),
        ("x = tol(toi(5000000000));", 705032704),
        ("x = toi(3e9) + 0 * shape(a)[0];", (1 << 31) - 1),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_what_is_computed_of_numbers_wraps_as_its_type_does(statements, expected, target):
    """Every number was computed as exactly as it is large: 8.7 s for the first line."""
    text = f"long f(int[.] a) {{ {statements} return x; }}"
    found = int(tc.compile(text, language="sac", target=target).f(np.zeros(3, np.int32)))
    bits = 32 if "toi" in statements else 64
    assert (found - expected) % (1 << bits) == 0
    assert found == (expected + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def test_only_what_is_written_makes_an_operation_wider():
    """What was computed of small literals made it `long`, as soon as it had more than 32 bits."""
    a = np.int32(3)
    assert of("int f(int a) { x = 3; " + "x = x * x; " * 6 + "return a * x; }", a) == (3**65 + (1 << 31)) % (
        1 << 32
    ) - (1 << 31)
    assert of("long f(int a) { return a * 3000000000; }", a) == 9000000000
    assert of("long f(int a) { return a * (3000000000 + 1); }", a) == 9000000003
    assert of("long f(int a) { x = -3000000000; return min(a, x); }", a) == -3000000000


@pytest.mark.parametrize("condition", ["a < 5000000000", "5000000000 > a", "a != 705032704 + 0 * 5000000000"])
def test_a_literal_is_not_cut_off_where_it_is_compared(condition):
    assert of(f"bool f(int a) {{ return {condition}; }}", np.int32(705032704 if "!=" not in condition else 1))


def test_a_literal_is_not_cut_off_in_an_array_or_a_choice():
    a = np.int32(3)
    assert of("long[.] f(int a) { return [a, 5000000000]; }", a).tolist() == [3, 5000000000]
    assert of("long[.] f(int a) { return [a] ++ [5000000000]; }", a).tolist() == [3, 5000000000]
    assert of("long f(int a) { return a > 3 ? a : 5000000000; }", a) == 5000000000
    assert of("long[.] f(int a) { return shift([1], 5000000000, [a]); }", a).tolist() == [5000000000]
    assert of("long f(int a) { return where(a > 3, a, 5000000000); }", a) == 5000000000


@pytest.mark.parametrize("n, expected", [(5, 2), (0, 1)])
def test_a_size_computes_with_truth_values(n, expected):
    text = "int[.] f(int n) { return genarray([tob(n) == true ? 2 : 1], 0); }"
    assert of(text, np.int32(n)).shape == (expected,)


DECIDED = [
    (Cast(Read("n", (), DType.INT32), DType.BOOL), 5, 1),
    (Binary("==", Cast(Read("n", (), DType.INT32), DType.BOOL), Const(True, DType.BOOL), DType.BOOL), 5, 1),
    (Cast(Read("n", (), DType.INT32), DType.INT8), 200, -56),
    (Cast(Read("n", (), DType.INT32), DType.UINT8), -1, 255),
    (Binary("+", Read("n", (), DType.INT32), Const(1, DType.INT32), DType.INT32), (1 << 31) - 1, -(1 << 31)),
    (Binary("*", Read("n", (), DType.INT64), Const(2, DType.INT64), DType.INT64), 1 << 62, -(1 << 63)),
    (Unary("-", Read("n", (), DType.INT8), DType.INT8), -128, -128),
    (Call("abs", (Read("n", (), DType.INT8),), DType.INT8), -128, -128),
    (Binary("//", Read("n", (), DType.INT8), Const(-1, DType.INT8), DType.INT8), -128, -128),
]


@pytest.mark.parametrize("expr, n, expected", DECIDED, ids=str)
def test_conditions_of_a_call_are_computed_as_the_kernel_does(expr, n, expected):
    assert evaluate(expr, {}, {"n": n}) == expected


def test_a_size_is_chosen_by_a_comparison_that_wraps():
    text = "int[.] f(int n) { return genarray([n * n > 4 ? 2 : 1], 0); }"
    assert of(text, np.int32(3)).shape == (2,)
    assert of(text, np.int32(1 << 16)).shape == (1,)


EMPTY_HULLS = {
    "a fold": ("with { ([i + 2] <= iv < [n - 1]) : iv[0]; } : fold(+, 0)", [2, 0, 0, 0]),
    "sums that are stored": (
        "sum(with { ([i + 2] <= iv < [n - 1] step [2]) : sum({ [k] -> a[k] | [iv[0]] <= [k] < [n] }); } : genarray([n], 0))",
        [5, 0, 0, 0],
    ),
    "a partition": (
        "sum({ [j] -> sum({ [k] -> a[k] | [j] <= [k] < [n] }) | [i + 2] <= [j] < [n - 1] step [2]; [j] -> 0 | [j] < [n] })",
        [5, 0, 0, 0],
    ),
}


@pytest.mark.parametrize("n", [0, 1, 2, 4])
@pytest.mark.parametrize("body, expected", EMPTY_HULLS.values(), ids=EMPTY_HULLS)
def test_ranges_that_depend_on_an_outer_index_may_all_be_empty(body, expected, n):
    """Their hull ended before it began: TC602."""
    found = of(
        f"int[*] f(int[.] a, int n) {{ return {{ [i] -> {body} | [i] < [n] }}; }}",
        np.arange(4, dtype=np.int32),
        np.int32(n),
    )
    assert found.tolist() == (expected if n == 4 else [0] * n)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_no_unsigned_number_counts_as_a_negative_one(op, target):
    text = f"""
        bool[*] f(uint64[*] a, int64[*] b) {{ return a {op} b; }}
        bool[*] g(uint64[*] a, int64[*] b) {{ return b {op} a; }}
        bool[.] h(uint64[.] a) {{ return {{ [i] -> a[i] {op} i - 2 }}; }}"""
    numbers = (0, 1, 5, 2**63 - 1, 2**63, 2**64 - 1), (-(2**63), -1, 0, 5, 2**63 - 1)
    a = np.repeat(np.array(numbers[0], np.uint64), len(numbers[1])).reshape(6, 5)
    b = np.ascontiguousarray(np.broadcast_to(np.array(numbers[1], np.int64), (6, 5)))
    module, compare = tc.compile(text, language="sac", target=target), COMPARE[op]
    np.testing.assert_array_equal(module.f(a, b), [[compare(x, y) for y in numbers[1]] for x in numbers[0]])
    np.testing.assert_array_equal(module.g(a, b), [[compare(y, x) for y in numbers[1]] for x in numbers[0]])
    np.testing.assert_array_equal(module.h(a[:, 0].copy()), [compare(x, i - 2) for i, x in enumerate(numbers[0])])


@pytest.mark.parametrize("index", ["int8", "uint8", "int", "long"])
@pytest.mark.parametrize("element", ["int8", "long", "bool", "float"])
def test_places_and_elements_of_all_types(element, index):
    """Gathered, and written one after the other, where a vector of any integer type says; what is written twice has the later value."""
    types = {"int": np.int32, "long": np.int64, "float": np.float32, "int8": np.int8, "uint8": np.uint8, "bool": bool}
    text = (
        f"{element}[.,.] rows({element}[.,.] a, {index}[.] p) {{ return {{ [i] -> a[p[i]] | [i] < shape(p) }}; }} "
        f"{element}[.,.] put({element}[.,.] a, {index}[.] p, {element}[.] v) {{ for (k = 0; k < shape(p)[0]; k++) {{ "
        "a = with { ([p[k]] <= [i] < [p[k] + 1]) : v; } : modarray(a); } return a; } "
        f"{element}[.,.] one({element}[.,.] a, {index}[2] iv) {{ "
        "return with { (iv <= jv < iv + 1) : a[2, 3]; } : modarray(a); }"
    )
    a, v = (np.arange(12) % 5).reshape(3, 4).astype(types[element]), np.array([1, 0, 1, 1], types[element])
    p = np.array([2, 0, 2], types[index])
    put, one = a.copy(), a.copy()
    put[[2, 0]], one[2, 0] = v, a[2, 3]
    for target in ("interpreter", "cpu"):
        module = tc.compile(text, language="sac", target=target)
        for found, wanted in ((module.rows(a, p), a[p]), (module.put(a, p, v), put), (module.one(a, p[:2]), one)):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
