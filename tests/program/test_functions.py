"""The table of functions: whoever adds a row is told which form of it is missing."""

from __future__ import annotations

import pytest

import tc_jupyter as tc
from tc_jupyter.loops import interpret
from tc_jupyter.program.functions import FUNCTIONS


def test_every_function_has_its_form_in_numpy():
    assert FUNCTIONS.keys() - interpret.FUNCTIONS.keys() <= {"min", "max", "rounded"}  # which are no calls


@pytest.mark.parametrize("kind", ["c", "cuda", "llvm"])
def test_every_function_is_printed_for_every_engine(kind):
    if kind == "llvm":
        pytest.importorskip("llvmlite")
    statements = [
        f"  Y{number}(i) = float({name}({', '.join(['X(i)'] * each.arity)}))"
        for number, (name, each) in enumerate(FUNCTIONS.items())
    ]
    results = ", ".join(f"Y{number}" for number in range(len(statements)))
    text = f"def f(float(N) X) -> ({results}) {{\n" + "\n".join(statements) + "\n}"
    source = tc.compile(text).f.source(kind)
    assert all(f"Y{number}" in source for number in range(len(statements)))
