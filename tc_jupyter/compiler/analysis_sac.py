"""The front half for `%%sac`: text -> checked functions; ranges and preconditions where all ranks are declared.

Every function stays open: a call chooses among its definitions and may need the numbers. Those whose ranks are declared have a
program at once, which is shown like that of a `%%tc` def.

Worked example: `float[.] twice(float[.] v) { return v * 2; }` has the size `v_0` and the statement `result(i0)`;
`float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }` is shown as "known at the call".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tc_jupyter.diagnostics import Diagnostic, SourceText
from tc_jupyter.diagnostics.work import allowed, in_turn
from tc_jupyter.program import check_sac
from tc_jupyter.syntax import SacParsed, parse_sac

from .function_analysis import FunctionAnalysis, analyze_program
from .told_before import new_at_calls, of_earlier_cells


@dataclass(frozen=True, slots=True)
class SacAnalysis:
    """What is known of a cell: every message found, and its tree.

    Attributes:
        functions: those with one definition whose ranks are declared.
        open_functions: every function, with all its definitions.
    """

    messages: tuple[Diagnostic, ...]
    functions: dict[str, FunctionAnalysis]
    open_functions: Mapping[str, Any]
    parsed: SacParsed


def analyze_sac(source: SourceText, known: Mapping[str, Any] | None, strict: bool = False) -> SacAnalysis:
    """Analyse a `%%sac` cell; `known` are the functions of earlier cells, by name."""
    parsed = parse_sac(source)
    with allowed():
        checked = check_sac(parsed.unit, source, known)
    functions: dict[str, FunctionAnalysis] = {}
    messages = [*parsed.diagnostics, *checked.diagnostics]
    known_ranks = [
        (name, function.program, len(group) == 1)
        for name, group in checked.functions.items()
        for function in group
        if function.program is not None
    ]
    for (name, program, alone), limit in in_turn(known_ranks):
        with limit:
            found, said = analyze_program(program)
        messages += said if strict else new_at_calls(program, said, of_earlier_cells(known))
        if alone:
            functions[name] = found
    return SacAnalysis(tuple(messages), functions, checked.functions, parsed)
