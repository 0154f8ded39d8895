"""Which conditions of a combined value say which points count."""

from __future__ import annotations

import pytest

from tc_jupyter.loops.show import show_expr
from tc_jupyter.program import Select, on_data, points_of
from tests.running import program_of

TABLE = [
    # value, operator: conditions -> value there
    ("i < n ? X(i) : 0", "+", ["i < n"], "X[i]"),
    ("i < n ? 0 : X(i)", "+", ["i >= n"], "X[i]"),
    ("X(i) < 1 ? 0 : X(i)", "+", ["!(X[i] < 1.0)"], "X[i]"),
    ("!(i < n) ? 0 : X(i)", "+", ["i < n"], "X[i]"),
    ("i < n && X(i) > 0 ? X(i) : 0", "+", ["i < n", "X[i] > 0.0"], "X[i]"),
    ("i < n ? (X(i) > 0 ? X(i) : 0) : 0", "+", ["i < n", "X[i] > 0.0"], "X[i]"),
    ("i < n || i > 7 ? 0 : X(i)", "+", ["i >= n", "i <= 7"], "X[i]"),
    ("i < n ? X(i) : 1", "+", [], "i < n ? X[i] : 1.0"),
    ("i < n ? X(i) : 1", "*", ["i < n"], "X[i]"),
    ("i < n ? X(i) : inf", "min", ["i < n"], "X[i]"),
    ("i < n ? X(i) : -inf", "max", ["i < n"], "X[i]"),
    ("i < n ? X(i) : 0", "max", [], "i < n ? X[i] : 0.0"),
    ("abs(i - n) < 3 ? X(i) : 0", "+", ["i - n < 3", "i - n > -3"], "X[i]"),
    ("max(i, n) <= 3 ? X(i) : 0", "+", ["i <= 3", "n <= 3"], "X[i]"),
    ("n > min(i, 4) ? X(i) : 0", "+", ["n > min(i, 4)"], "X[i]"),
    ("float(i < n)", "+", ["i < n"], "1.0"),
    ("float(i < n) * X(i)", "+", [], "float32(i < n) * X[i]"),
    ("(i < n ? X(i) : 0) * X(i)", "+", [], "(i < n ? X[i] : 0.0) * X[i]"),
    ("int32(i < n) * K(i)", "+", ["i < n"], "1 * K[i]"),
    ("(i < n ? K(i) : 0) * K(i)", "+", ["i < n"], "K[i] * K[i]"),
    ("double(i < n ? X(i) : 0)", "+", ["i < n"], "X[i]"),
]


@pytest.mark.parametrize(("value", "operator", "conditions", "there"), TABLE)
def test_conditions_and_value(value, operator, conditions, there):
    sign = operator if operator in "+*" else f" {operator}"
    found = program_of(f"def f(float(N) X, int32(N) K, int32 n) -> (s) {{ s {sign}=! {value} where i in 0:N }}")
    assert found is not None
    statement = found[0].statements[0]
    tests, inner = points_of(statement.value, statement.operator)
    assert ([show_expr(test) for test in tests], show_expr(inner)) == (conditions, there)
    assert inner.dtype is statement.value.dtype


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i < n", False),
        ("X(i) > 0", True),
        ("i < K(i)", True),
        ("float(i) < 5.0", True),
        ("X(i) > 0 && i < n", False),
        ("X(i) > 0 || !(K(i) == i)", True),
    ],
)
def test_what_a_condition_asks(condition, expected):
    found = program_of(f"def f(float(N) X, int32(N) K, int32 n) -> (s) {{ s +=! {condition} ? 2 : 3 where i in 0:N }}")
    assert found is not None
    select = found[0].statements[0].value
    assert isinstance(select, Select)
    assert on_data(select.condition) is expected
