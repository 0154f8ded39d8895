"""What Python shows of an analysis."""

from __future__ import annotations

import tc_jupyter as tc
from tc_jupyter.compiler.text_form import text_form

TEXT = """def mv(float(M,K) A, float(K) x) -> (y) { y(i) +=! A(i,k) * x(k) }
def wrong(float(N) X) -> (Y) { Y(i) = Z(i) }"""


def test_a_def_without_a_readable_statement_has_only_its_messages():
    lines = text_form(tc.analyze(TEXT)).splitlines()
    assert lines[0] == "mv(float32(M, K) A, float32(K) x) -> (float32 y(M))"
    assert not any(line.startswith("wrong(") for line in lines)
    assert any(line.startswith("error[TC201]") for line in lines)


def test_values_print_in_a_line():
    analysis = tc.analyze(TEXT)
    found = analysis.functions["mv"]
    assert repr(analysis) == "<analysis of mv, wrong: 1 message>"
    assert repr(found) == "<analysis of mv: 0 <= i < M, 0 <= k < K>"
    assert repr(found.program) == "<program mv(A, x) -> (y)>"
    assert repr(found.preconditions[0]) == "Precondition('0 <= i', proved, access of y)"
