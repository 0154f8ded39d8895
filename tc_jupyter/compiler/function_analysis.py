"""What is known of one def: its checked program, ranges and preconditions.

Worked example: `analyze_program(program)` of `o(i) = A(i)` gives `0 <= i < N`, no precondition and no message.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import Diagnostic
from tc_jupyter.diagnostics.work import allowed
from tc_jupyter.program import Program, lost_literals, narrow_literals
from tc_jupyter.ranges import Precondition, Preconditions, Ranges, infer_ranges, preconditions

from .laws import without_broken_folds

STEPS = 1_000_000
"""Of one def, where the text around it has not fewer left: some seconds."""


@dataclass(frozen=True, slots=True, repr=False)
class FunctionAnalysis:
    """What is known of one def, also when it has errors.

    Attributes:
        program: the checked program; with errors, as far as it could be understood.
        ranges: range of every index, box of every tensor; an unknown range has no ends.
        conditions: what must hold.
        ok: the def has no error.
    """

    program: Program
    ranges: Ranges
    conditions: Preconditions
    ok: bool

    def __repr__(self) -> str:
        ranges = [index.text for found in self.ranges.indices.values() for index in found]
        return f"<analysis of {self.name}: {', '.join(ranges) or 'no index'}>"

    @property
    def name(self) -> str:
        """The name of the def as written."""
        return self.program.name

    @property
    def preconditions(self) -> tuple[Precondition, ...]:
        """What must hold for the accesses, writes and ranges."""
        return self.conditions.items


def analyze_program(program: Program, ok: bool = True) -> tuple[FunctionAnalysis, tuple[Diagnostic, ...]]:
    """Ranges and preconditions of one checked program, and what is said about them."""
    program = without_broken_folds(program)
    with allowed(STEPS):
        ranges = infer_ranges(program)
        conditions = preconditions(program, ranges)
    ranges = replace(ranges, at_points=conditions.at_points)
    said = (*lost_literals(program), *narrow_literals(program), *ranges.diagnostics, *conditions.diagnostics)
    ok = ok and not any(diagnostic.is_error for diagnostic in said)
    return FunctionAnalysis(program, ranges, conditions, ok), said
