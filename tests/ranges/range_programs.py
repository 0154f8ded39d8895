"""Programs for the tests of ranges: text -> checked program."""

from __future__ import annotations

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.program import Program, check_tc
from tc_jupyter.syntax import parse_tc


def program(text: str, name: str = "f") -> Program:
    """The program of one def of a cell; errors of the checker (as TC204) do not matter here."""
    source = SourceText(text)
    parsed = parse_tc(source)
    assert not [d for d in parsed.diagnostics if d.is_error], parsed.diagnostics
    return check_tc(parsed.unit, source).programs[name]


def define(signature: str, body: str, results: str = "A") -> Program:
    """`define("float(N) B", "A(i) = B(i)")`."""
    return program(f"def f({signature}) -> ({results}) {{ {body} }}")
