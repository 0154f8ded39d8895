"""The front half for `%%sac`: text -> checked functions; ranges and preconditions where all ranks are declared.

Every function stays open: a call chooses among its definitions and may need the numbers. Those whose ranks are declared have a
program at once, which is shown like that of a `%%tc` def.

Worked example: `float[.] twice(float[.] v) { return v * 2; }` has the size `v_0` and the statement `result(i0)`;
`float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }` is shown as "known at the call".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.program import check_sac
from tc_jupyter.syntax import parse_sac

from .analysis import Analysis, FunctionAnalysis, analyze_program, finish


def analyze_sac(source: SourceText, strict: bool, allow: frozenset[str], known: Mapping[str, Any] | None) -> Analysis:
    """Analyse a `%%sac` cell; the arguments are those of `analyze`."""
    parsed = parse_sac(source)
    checked = check_sac(parsed.unit, source, known)
    functions: dict[str, FunctionAnalysis] = {}
    messages = [*parsed.diagnostics, *checked.diagnostics]
    for name, group in checked.functions.items():
        for function in group:
            if function.program is not None:
                found, said = analyze_program(function.program)
                messages += said
                if len(group) == 1:
                    functions[name] = found
    shown = finish(messages, strict, allow, parsed.allow)
    return Analysis(source, "sac", shown, functions, None, checked.functions)
