"""Pieces of programs as single lines."""

from __future__ import annotations

import numpy as np

import tc_jupyter as tc
from tc_jupyter.compiler.text_form import text_form
from tc_jupyter.diagnostics import shown_line

CONTROL = "\033[31m\u202e"
TEXT = f"def f(float(N) X, int32(N) I) -> (Y) {{ Y(i) = X(I(i # first {CONTROL}\n)) # second {CONTROL}\n + 1 }}"


def test_comments_do_not_reach_over_what_stands_behind_them():
    assert shown_line("Y(i) = A(i)  # a\n    + B(i)") == "Y(i) = A(i) + B(i)"
    assert shown_line("layer#2.H(b) = C#2.cache(b)  # a") == "layer#2.H(b) = C#2.cache(b)"
    assert shown_line("a = b; // a\n c = d /* x\n y */ + 1;") == "a = b; c = d + 1;"


def test_what_is_shown_of_a_statement_is_the_statement_and_controls_no_terminal():
    f = tc.compile(TEXT, target="cpu").f
    assert "  Y(i) = X(I(i )) + 1" in text_form(tc.analyze(TEXT)).splitlines()
    assert "X(I(i ))" in f.schedule().bounds().loops()
    shown = (
        text_form(tc.analyze(TEXT)),
        f.schedule().bounds().loops(),
        f.source("loops"),
        f.source("passes"),
    )
    assert not any(char in each for each in shown for char in "\033\u202e")
    assert not any("second" in each for each in shown[:3])
    X, index = np.arange(3, dtype=np.float32), np.array([2, 0, 1], np.int32)
    np.testing.assert_array_equal(f(X, index), X[index] + 1)
