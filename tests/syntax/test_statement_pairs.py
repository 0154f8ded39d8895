"""Nothing ends a statement: each pair of forms is told apart, on one line and on two."""

from __future__ import annotations

from itertools import product

import pytest

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.syntax import parse_tc, statement_text

FORMS = (
    "Y(i) = X(i)^2",
    "s = ~a & 3",
    "Y(i) +=! X(i + k) where k in 0:3",
    "Y(i) = X(i) where i = [0, N[",
    "H(X(i) & 15) +=! 1 << n",
    "Y(P(i)) = X(i) where unique",
    "Y(i) = X(i - 1) else 0",
    "P(n) argmax=! X(n, m)",
    "V(n), P(n) argmax=! X(n, h, w) at h*W + w",
    "A, B = g(X, W)",
    "Y = U * V + 1",
    "const float(2) C = [1, -2]",
    "const int(2, 1) D = [[1], [2]]",
    "const double half_ = -0.5",
    "min_ max=! X(k) where exists X(k + 1)",
    "Y(i) = X.0",
    "Y(i) +=! X(k) where k in Ptr(i):Ptr(i + 1), X(k) > 0",
    "Y(i) = 0 where X(i) < 0 && !b",
    "Y(i) = 0 where b",
)


@pytest.mark.parametrize("between", [" ", "\n    "], ids=["one line", "two lines"])
def test_each_pair(between: str) -> None:
    wrong: list[str] = []
    for first, second in product(FORMS, repeat=2):
        text = f"def f(float(N) X) -> (Y) {{ {first}{between}{second} }}"
        parsed = parse_tc(SourceText(text))
        alone = [parse_tc(SourceText(f"def f(float(N) X) -> (Y) {{ {each} }}")) for each in (first, second)]
        wanted = [statement_text(each.unit.defs[0].statements[0]) for each in alone]
        found = [statement_text(each) for each in parsed.unit.defs[0].statements]
        if found != wanted or parsed.diagnostics:
            wrong.append(text)
    assert wrong == []
