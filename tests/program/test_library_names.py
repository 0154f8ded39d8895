"""The tables of names from other languages lead to what exists here."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.program import FUNCTIONS, TC_FUNCTIONS
from tc_jupyter.program.functions import BORDERS
from tc_jupyter.syntax import KEYWORDS, SCALAR_TYPES, library_names

WRITTEN = {name: each for name, each in library_names.INSTEAD.items() if each.template is not None}


def test_names_exist():
    assert set(library_names.RENAMED.values()) <= {*TC_FUNCTIONS, *KEYWORDS}
    assert set(library_names.TC_TYPES.values()) <= SCALAR_TYPES
    assert set(library_names.OPERATORS) <= set(library_names.REDUCING)
    assert set(FUNCTIONS) >= library_names.FUNCTION_WORDS
    assert {name for name, function in TC_FUNCTIONS.items() if function.arity == 1} == library_names.METHODS
    assert set(TC_FUNCTIONS) == library_names.FUNCTIONS_HERE
    foreign = (library_names.RENAMED, library_names.TC_TYPES, library_names.INSTEAD, library_names.CONSTANTS)
    assert not {name for table in foreign for name in table} & {*TC_FUNCTIONS, *KEYWORDS}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_instead_is_legal(name):
    of_bits = name.startswith("bitwise") or name in ("xor", "invert", "lnot")
    kind = "bool" if name.startswith("logical") or name == "not_" else "int" if of_bits else "float"
    arguments = ["X(i) > 1" if name in ("select", "ifelse", "iif", "np.where") else "X(i)", "Z(i)", "3"][
        : WRITTEN[name].count
    ]
    arguments[2:] = ["X(i) > 1"] if name == "merge" else arguments[2:]
    value = f"{name}({', '.join(arguments)})"
    if WRITTEN[name].template.partition("(")[0] in BORDERS:
        value = f"X({name}(i-1))"
    text = f"def f({kind}(N) X, {kind}(N) Z) -> (Y) {{ Y(i) = {value} where i in 0:N  W(i) = Z(i) }}"
    (found,) = (each for each in tc.analyze(text).diagnostics if each.is_error)
    assert found.fix is not None
    (edit,) = found.fix.edits
    repaired = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert not [each.message for each in tc.analyze(repaired).diagnostics if each.is_error]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "max(X(i), -1) * 0 + gelu(X(i))",
            lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        ),
        ("2 / silu(X(i) + 1)", lambda x: 2 * (1 + np.exp(-x - 1)) / (x + 1)),
        ("softplus(X(i))", lambda x: np.log1p(np.exp(x))),
        ("clip(X(i), 0.5, 1)", lambda x: np.clip(x, 0.5, 1)),
        ("rint(X(i) - 0.5)", lambda x: np.rint(x - 0.5)),
        ("signbit(1 - X(i)) ? 1 : 0", lambda x: np.signbit(1 - x)),
        ("heaviside(X(i) - 1.55, 0.5)", lambda x: np.heaviside(x - 1.55, 0.5)),
        ("sinc(X(i))", np.sinc),
        ("deg2rad(X(i)) + 1", lambda x: np.deg2rad(x) + 1),
        ("degrees(X(i))", np.degrees),
        ("cot(X(i))", lambda x: 1 / np.tan(x)),
        ("fract(X(i))", lambda x: x - np.floor(x)),
        ("lerp(X(i), 2.0, 0.25)", lambda x: x + 0.25 * (2 - x)),
        ("ldexp(X(i), 3)", lambda x: 8 * x),
        ("xlogy(X(i), 2.0)", lambda x: x * np.log(2)),
        ("logaddexp(X(i), 1.0)", lambda x: np.logaddexp(x, 1)),
        ("isclose(X(i), 0.1) ? 1 : 0", lambda x: np.isclose(x, 0.1)),
        ("floor_divide(X(i) - 1, 0.75)", lambda x: np.floor_divide(x - 1, 0.75)),
        ("cdiv(X(i), 0.75)", lambda x: np.ceil(x / 0.75)),
        ("rem(1 - X(i), 0.75)", lambda x: np.fmod(1 - x, 0.75)),
        ("logical_and(X(i) - 0.1, X(i) > 1) ? 1 : 0", lambda x: x > 1),
        ("leaky_relu(1 - X(i))", lambda x: np.where(x < 1, 1 - x, 0.01 * (1 - x))),
        ("elu(1 - X(i), 2.0)", lambda x: np.where(x < 1, 1 - x, 2 * np.expm1(1 - x))),
        ("logsigmoid(X(i) - 1)", lambda x: -np.log1p(np.exp(1 - x))),
        ("mish(X(i))", lambda x: x * np.tanh(np.log1p(np.exp(x)))),
        ("squared_difference(X(i), 2) - 1", lambda x: (x - 2) ** 2 - 1),
        ("factorial(X(i) * 0 + 4)", lambda x: 24 + 0 * x),
        ("fmaf(X(i), 2, 1)", lambda x: 2 * x + 1),
        ("__expf(X(i))", np.exp),
    ],
)
def test_values(text, expected):
    program = f"def f(float(N) X) -> (Y) {{ Y(i) = {text} }}"
    (found,) = tc.analyze(program).diagnostics
    (edit,) = found.fix.edits
    x = np.linspace(0.1, 3, 7, dtype=np.float32)
    repaired = tc.compile(program[: edit.span.start] + edit.text + program[edit.span.end :], target="interpreter").f
    np.testing.assert_allclose(repaired(x), expected(x), rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_bits_are_counted(dtype):
    program = f"def f({np.dtype(dtype).name}(N) X) -> (Y) {{ Y(i) = popcnt(X(i)) where i in 0:N }}"
    (found,) = tc.analyze(program).diagnostics
    x = np.array([0, 1, 2, 85, 127, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    repaired = tc.compile(found.fix.applied(program), target="interpreter", allow=["TC235"]).f
    expected = [bin(int(each) % (1 << 8 * x.itemsize)).count("1") for each in x]
    assert repaired(x).tolist() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Y(i) = (X(i, 0) - min(X)) / (max(X) - min(X))", lambda x: (x[:, 0] - x.min()) / (x.max() - x.min())),
        ("Y(i, j) = exp(X(i, j)) / sum(exp(X(i, k)))", lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
        ("Y(i) = 2 * mean(X(i, j)^2)", lambda x: 2 * (x**2).mean(1)),
        ("Y = mean(X)", np.mean),
        ("Y(i) = count(X(i, j)) / M", lambda x: np.count_nonzero(x, 1) / x.shape[1]),
        ("Y = sqrt(sum(X(i, j)^2)) + 1", lambda x: np.sqrt((x**2).sum()) + 1),
    ],
)
def test_what_is_combined_apart(text, expected):
    program = f"def f(float(N, M) X) -> (Y) {{ {text} }}"
    while (found := [each for each in tc.analyze(program).diagnostics if each.is_error]) and found[0].fix:
        program = found[0].fix.applied(program)
    x = np.random.default_rng(0).integers(-2, 3, (4, 5)).astype(np.float32)
    repaired = tc.compile(program, target="interpreter", allow=["TC322"]).f
    np.testing.assert_allclose(repaired(x), expected(x), rtol=1e-5)


def test_the_logarithm_of_a_sum_of_infinities():
    program = "def f(float(N, M) X) -> (Y) { Y(i) = logsumexp(X(i, j)) }"
    (found,) = tc.analyze(program).diagnostics
    x = np.array([[-np.inf, -np.inf], [0, np.inf], [0, 0]], np.float32)
    repaired = tc.compile(found.fix.applied(program), target="interpreter").f
    np.testing.assert_allclose(repaired(x), [-np.inf, np.inf, np.log(2)], rtol=1e-6)


def test_a_cast_to_a_type_with_another_name():
    (found,) = tc.analyze("def f(int(N) X) -> (Y) { Y(i) = f32(X(i)) }").diagnostics
    assert found.fix.edits[0].text == "float32"


def test_an_einsum_without_a_statement_has_no_fix():
    assert library_names.einsum("ij,jk", ["A", "B"], "C") == "C(i, k) +=! A(i, j) * B(j, k)"
    assert library_names.einsum("ii", ["A"], "t") == "t +=! A(i, i)"
    assert library_names.einsum("...j,jk->...k", ["A", "B"], "C") is None
    assert library_names.einsum("ij,jk->ik", ["A"], "C") is None
    assert library_names.einsum("ij,ij->", ["A", "B"], "C") == "C +=! A(i, j) * B(i, j)"
    assert library_names.einsum("i,j->ij", ["A", "B"], "C") == "C(i, j) = A(i) * B(j)"
