"""What Python shows of an analysis."""

from __future__ import annotations

import tc_jupyter as tc
from tc_jupyter.compiler.text_form import text_form

TEXT = """def mv(float(M,K) A, float(K) x) -> (y) { y(i) +=! A(i,k) * x(k) }
def wrong(float(N) X) -> (Y) { Y(i) = Z(i) }"""


def test_an_analysis_prints_as_its_text():
    found = tc.analyze(TEXT)
    lines = repr(found).splitlines()
    assert repr(found) == text_form(found)
    assert lines[0] == "mv(float32(M, K) A, float32(K) x) -> (float32 y(M))"
    assert not any(line.startswith("wrong(") for line in lines)
    assert any(line.startswith("error[TC201]") for line in lines)


def test_a_function_prints_without_the_messages_of_others():
    assert repr(tc.analyze(TEXT).functions["mv"]).splitlines() == [
        "mv(float32(M, K) A, float32(K) x) -> (float32 y(M))",
        "  y(i) +=! A(i,k) * x(k)",
        "    0 <= i < M  output     0 <= i < M  (A); round 1",
        "    0 <= k < K  reduction  0 <= k < K  (A) and 0 <= k < K  (x); round 1",
        "  6 of 6 bounds of accesses proved",
    ]


def test_values_inside_print_in_a_line():
    found = tc.analyze(TEXT).functions["mv"]
    assert repr(found.program) == "<program mv(A, x) -> (y)>"
    assert repr(found.preconditions[0]) == "Precondition('0 <= i', proved, access of y)"
