"""`%%sac` functions at the call: one definition per ranks and types, values and extents only where they matter."""

from __future__ import annotations

import numpy as np
import pytest

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
        ("increment", ("text",), "TC609"),
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
    wanted = {"inc(A) + 1": a + 2, "both(inc(A), A)": (a + 1) * a}.get(body, a + 1)
    np.testing.assert_array_equal(f(a), wanted)


def test_a_temporary_whose_size_is_a_choice():
    cell = "double[*] f(double[*] a) { return { [i] -> a[i] / (1 + sum(a[0])) }; }"
    a = np.arange(12.0).reshape(3, 4)
    for target in ("interpreter", "cpu"):
        np.testing.assert_allclose(tc.compile(cell, language="sac", target=target).f(a), a / 7)
