"""The tables of names from other languages lead to what exists here."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.program import FUNCTIONS, TC_FUNCTIONS
from tc_jupyter.program.functions import BORDERS
from tc_jupyter.syntax import KEYWORDS, SCALAR_TYPES, elsewhere

WRITTEN = {name: each for name, each in elsewhere.INSTEAD.items() if each.template is not None}


def test_names_exist():
    assert set(elsewhere.RENAMED.values()) <= {*TC_FUNCTIONS, *KEYWORDS}
    assert set(elsewhere.TC_TYPES.values()) <= SCALAR_TYPES
    assert set(elsewhere.OPERATORS) <= set(elsewhere.REDUCING)
    assert set(FUNCTIONS) >= elsewhere.FUNCTION_WORDS
    foreign = (elsewhere.RENAMED, elsewhere.TC_TYPES, elsewhere.INSTEAD, elsewhere.CONSTANTS)
    assert not {name for table in foreign for name in table} & {*TC_FUNCTIONS, *KEYWORDS}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_instead_is_legal(name):
    kind = "bool" if name.startswith("logical") else "int" if name.startswith("bitwise") or name == "xor" else "float"
    arguments = ["X(i) > 1" if name in ("select", "ifelse", "iif", "np.where") else "X(i)", "Z(i)", "3"][
        : WRITTEN[name].count
    ]
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
    ],
)
def test_values(text, expected):
    program = f"def f(float(N) X) -> (Y) {{ Y(i) = {text} }}"
    (found,) = tc.analyze(program).diagnostics
    (edit,) = found.fix.edits
    x = np.linspace(0.1, 3, 7, dtype=np.float32)
    repaired = tc.compile(program[: edit.span.start] + edit.text + program[edit.span.end :], target="interpreter").f
    np.testing.assert_allclose(repaired(x), expected(x), rtol=2e-3, atol=1e-3)


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
    assert elsewhere.einsum("ij,jk", ["A", "B"], "C") == "C(i, k) +=! A(i, j) * B(j, k)"
    assert elsewhere.einsum("ii", ["A"], "t") == "t +=! A(i, i)"
    assert elsewhere.einsum("...j,jk->...k", ["A", "B"], "C") is None
    assert elsewhere.einsum("ij,jk->ik", ["A"], "C") is None
    assert elsewhere.einsum("ij,ij->", ["A", "B"], "C") == "C +=! A(i, j) * B(i, j)"
    assert elsewhere.einsum("i,j->ij", ["A", "B"], "C") == "C(i, j) = A(i) * B(j)"
