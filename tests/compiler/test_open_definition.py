"""`%%sac` functions at the call: one definition per ranks and types, values and extents only where they matter."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler.definition import Options
from tc_jupyter.compiler.open_definition import OpenDefinition
from tc_jupyter.diagnostics import CallError, SourceText
from tc_jupyter.program import check_sac
from tc_jupyter.syntax import parse_sac

CELL = """
float[*] increment(float[*] A) { return { iv -> A[iv] + 1 }; }
float[.,.] matmul(float[.,.] A, float[.,.] B) { return { [i,j] -> sum({ [k] -> A[i,k] * B[k,j] }) }; }
float[*] scaled(float[*] A, float s) { return { iv -> A[iv] * s }; }
int[*] pick(int[*] A) { return A + 1; }
float[*] pick(float[*] A) { return A * 2; }
float[*] first(float[*] A, int[.] v) { return take(v, A); }
"""


@pytest.fixture(params=["interpreter", "cpu"])
def functions(request):
    source = SourceText(CELL)
    parsed = parse_sac(source)
    checked = check_sac(parsed.unit, source)
    assert checked.ok, [d.message for d in checked.diagnostics]
    options = Options(CELL, "sac", request.param)
    return {name: OpenDefinition(group, options, source) for name, group in checked.functions.items()}


def floats(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4), (), (0, 6), (3, 0)])
def test_every_rank(functions, shape):
    a = floats(*shape)
    found = functions["increment"].call((a,), None)
    np.testing.assert_array_equal(found, a + 1)
    assert found.shape == shape


def test_other_sizes_use_the_same_definition(functions):
    inc = functions["increment"]
    first = inc.at((floats(2, 3),))
    assert inc.at((floats(7, 1),)) is first
    assert inc.at((floats(7),)) is not first
    assert inc.at((floats(0, 3),)) is not first
    assert inc.latest is not first


def test_a_matrix_product(functions):
    a, b = floats(4, 3), floats(3, 5)
    np.testing.assert_allclose(functions["matmul"].call((a, b), None), a @ b)
    np.testing.assert_allclose(functions["matmul"].call((a[::-1], b.T.copy().T), None), a[::-1] @ b)


def test_numbers_take_the_declared_type(functions):
    scaled = functions["scaled"]
    for s in (2, 2.0, np.float64(2), np.array(2, np.float32)):
        np.testing.assert_array_equal(scaled.call((floats(3), s), None), 2 * floats(3))


def test_overloads_by_type(functions):
    np.testing.assert_array_equal(functions["pick"].call((np.array([1, 2], np.int32),), None), [2, 3])
    np.testing.assert_array_equal(functions["pick"].call((floats(3),), None), 2 * floats(3))


def test_values_that_decide_a_shape_are_part_of_the_signature(functions):
    take = functions["first"]
    a = floats(5, 4)
    for v in ([2, 3], [2], [-2]):
        index = tuple(slice(None, n) if n >= 0 else slice(n, None) for n in v)
        np.testing.assert_array_equal(take.call((a, np.array(v, np.int32)), None), a[index])
    assert take.at((a, np.array([2], np.int32))) is take.at((a, np.array([2], np.int32)))


@pytest.mark.parametrize(
    ("name", "values", "code"),
    [
        ("matmul", (floats(2), floats(2, 2)), "TC651"),
        ("increment", (np.zeros(3),), "TC651"),
        ("increment", (floats(2), floats(2)), "TC606"),
        ("increment", ("text",), "TC607"),
        ("increment", (np.zeros(2, complex),), "TC607"),
        ("pick", (np.zeros(2),), "TC651"),
    ],
)
def test_calls_that_do_not_fit(functions, name, values, code):
    with pytest.raises(CallError, match=code):
        functions[name].call(values, None)


def test_out(functions):
    out = np.zeros(3, np.float32)
    assert functions["increment"].call((floats(3),), out) is out
    np.testing.assert_array_equal(out, floats(3) + 1)


def test_names_and_rewrites(functions):
    matmul = functions["matmul"]
    assert matmul.names == ("A", "B")
    assert matmul.positional((1,), {"B": 2}) == (1, 2)
    with pytest.raises(CallError, match="TC606"):
        matmul.positional((1,), {"C": 2})
    (steps,) = matmul.rewrites((floats(2, 3), floats(3, 2)))
    assert len(steps.steps) == 4  # as written, then the three rewrites


EARLIER = """
float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }
int[*] inc(int[*] A) { return { iv -> A[iv] + 2 }; }
float[*] both(float[*] A, float[*] B) { return A * B; }
float[*] window(float[*] A) { return { iv -> A[iv] | [1] <= iv < [3] }; }
float[*] scaled(float[*] A, int n) { return A * tof(n); }
float[*] taken(float[*] A, int[.] v) { return take(v, A); }
float[.,.] turned(float[.,.] A) { return transpose(A); }
"""


def call_tc(target, text, *arrays):
    known = dict(tc.compile(EARLIER, language="sac"))
    return tc.compile(text, known=known, target=target)["f"](*arrays)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_functions_of_any_rank_are_called_from_a_tc_def_of_a_later_cell(target):
    x, y = floats(2, 3), floats(2, 3) + 1
    text = "def f(float(N,M) X, float(N,M) Y) -> (Z) { T = inc(X)  U = both(T, Y)  V = turned(U)  Z(j,i) = V(j,i) * 2 }"
    np.testing.assert_array_equal(call_tc(target, text, x, y), ((x + 1) * y * 2).T)
    v = np.arange(4, dtype=np.int32)
    np.testing.assert_array_equal(call_tc(target, "def f(int(N) X) -> (Z) { Z = inc(X) }", v), v + 2)


def test_a_size_is_passed_as_an_integer():
    np.testing.assert_array_equal(
        call_tc("interpreter", "def f(float(N) X) -> (Z) { Z = scaled(X, N) }", floats(5)), floats(5) * 5
    )


def test_what_an_open_function_needs_is_checked_in_the_caller():
    text = "def f(float(N) X, float(K) Y) -> (Z) { Z = both(X, Y) }"
    np.testing.assert_array_equal(call_tc("interpreter", text, floats(3), floats(3)), floats(3) ** 2)
    with pytest.raises(CallError, match="TC605"):
        call_tc("interpreter", text, floats(3), floats(4))
    with pytest.raises(CallError, match="TC60"):
        call_tc("interpreter", "def f(float(N) X) -> (Z) { Z = window(X) }", floats(2))


@pytest.mark.parametrize(
    "text, said",
    [
        ("def f(double(N) X) -> (Z) { Z = inc(X) }", "received `double` of rank 1"),
        ("def f(float(N) X) -> (Z) { Z = turned(X) }", "received `float` of rank 1"),
        ("def f(float(N) X) -> (Z) { Z = inc(X, X) }", "takes 1 argument"),
        ("def f(float(N) X, int(M) v) -> (Z) { Z = taken(X, v) }", "cannot be called with these arguments"),
    ],
)
def test_arguments_that_an_open_function_cannot_take(text, said):
    (error,) = tc.analyze(text, known=dict(tc.compile(EARLIER, language="sac"))).diagnostics
    assert (error.code.number, error.is_error) == ("TC651", True)
    assert said in error.message


@pytest.mark.parametrize(
    "body", ["inc(A)", "inc(A) + 1", "{ [i] -> inc(A[i]) | [i] < [shape(A)[0]] }", "both(inc(A), A)"]
)
def test_a_sac_function_of_an_earlier_cell_whose_result_has_the_same_name(body):
    known = dict(tc.compile(EARLIER, language="sac"))
    f = tc.compile(f"float[*] f(float[*] A) {{ return {body}; }}", language="sac", known=known, target="interpreter")[
        "f"
    ]
    a = floats(2, 3)
    wanted = {"inc(A) + 1": a + 2, "both(inc(A), A)": (a + 1) * a}.get(body, a + 1)
    np.testing.assert_array_equal(f(a), wanted)


def test_a_temporary_whose_size_is_a_choice():
    cell = "double[*] f(double[*] a) { return { [i] -> a[i] / (1 + sum(a[0])) }; }"
    a = np.arange(12.0).reshape(3, 4)
    for target in ("interpreter", "cpu"):
        np.testing.assert_allclose(tc.compile(cell, language="sac", target=target).f(a), a / 7)


SECOND = [
    np.arange(6.0),
    np.arange(6.0).reshape(2, 3),
    np.zeros((0, 3)),
    np.zeros((2, 0)),
    np.arange(12.0)[::2],
    np.array(3.0),
]


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_calls_of_types_that_came_before(target):
    if target == "cpu":
        pytest.importorskip("llvmlite")
    text = "double[*] f(double[*] a) { return { iv -> a[iv] + 1 | 0*shape(a)+1 <= iv < shape(a); iv -> a[iv] }; }"
    function = tc.compile(text, language="sac", target=target)["f"]
    for _ in range(3):
        for a in SECOND:
            want = a.copy()
            want[(slice(1, None),) * a.ndim] += 1
            got = function(a)
            assert got.shape == a.shape
            np.testing.assert_array_equal(got, want)
            assert function.program.tensor("a").rank == a.ndim
    with pytest.raises(CallError, match="TC651"):
        function(np.arange(3))


def test_scalars_and_checks_of_calls_that_came_before():
    pytest.importorskip("llvmlite")
    text = """double[.] scaled(double[.] a, double by) { return a * by; }
double[.] cut(double[.] a, int n) { return { [i] -> 0.0 | [i] < [n]; iv -> a[iv] }; }
int[.] counted(int n) { return { [i] -> i | [i] < [n] }; }
"""
    module = tc.compile(text, language="sac", target="cpu")
    a = np.arange(4.0)
    for by in (2.0, 3, np.float64(4), 2.0):
        np.testing.assert_array_equal(module.scaled(a, by), a * by)
    for n in (1, 3, 0, 4):
        np.testing.assert_array_equal(module.cut(a, n), np.where(np.arange(4) < n, 0, a))
        np.testing.assert_array_equal(module.counted(n), np.arange(n))
    with pytest.raises(CallError, match="TC655"):
        module.counted(-1)
    with pytest.raises(CallError, match="TC653"):
        module.cut(a, 5)


FIRST_CELL = """int[*] s(int[*] a) { return a + 1; }
int[*] t(int[*] a) { return s(a) * 2; }
"""
TC_CELL = """def f(int(N) X) -> (Y) { Y(i) = X(i) + 1 }
def g(int(N) X) -> (Z) { Y = f(X)
  Z(i) = 2 * Y(i) }
def d(int(N) X) -> (Z) { Z(i) = X(i) - X(i+1) }
"""


@pytest.mark.parametrize(
    "body, want",
    [
        ("return s(a) + s(a);", lambda a: 2 * a + 2),
        ("return s(a) + s(b);", lambda a: a + 11),
        ("return t(a) + s(a);", lambda a: 3 * a + 3),
        ("x = t(a); if (sum(a) > 3) { x = s(x); } return x;", lambda a: 2 * a + 3),
        ("return g(a) + g(b);", lambda a: 2 * a + 22),
        ("return d(a) + drop([1], s(d(s(b))) ++ [0]);", lambda a: np.append(np.zeros(a.size - 2), -1)),
        ("return { [i] -> sum(s([a[i], b[i]]) + g([a[i], b[i]])) | [i] < shape(a) };", lambda a: 3 * a + 33),
    ],
)
@pytest.mark.parametrize("type_", ["int[.]", "int[*]"])
def test_results_of_an_earlier_cell_meet(body, want, type_):
    known = {
        **tc.compile(FIRST_CELL, language="sac", target="interpreter"),
        **tc.compile(TC_CELL, target="interpreter"),
    }
    text = f"int[*] u({type_} a, {type_} b) {{ {body} }}"
    module = tc.compile(text, language="sac", known=known, target="interpreter", allow=["TC322"])
    a = np.arange(4, dtype=np.int32)
    np.testing.assert_array_equal(module.u(a, np.full(4, 9, np.int32)), want(a))
    if "(b)" in body:
        with pytest.raises(CallError, match=r"TC654.* one is \d, the other is \d"):
            module.u(a, a[1:])


def test_a_shape_of_an_earlier_cell_that_an_index_decides():
    known = {**tc.compile(FIRST_CELL, language="sac"), **tc.compile(TC_CELL)}
    for name in ("s", "g"):
        text = f"int[.] u(int[.] a) {{ return {{ [i] -> sum({name}(take([i], a))) | [i] < shape(a) }}; }}"
        (error,) = tc.analyze(text, "sac", known=known).diagnostics
        assert error.code.number == "TC252"
        assert "in this cell" in str(error.help)
