"""What bounds say to a person: more is computed than needed (TC402), computed again (TC408), exact only with numbers (TC409).

Worked example (`schedule.md`, Ex. 4): C at `di` of D has 320 elements computed and 80 different ones, so TC408 says 4 times,
and that `compute_root` computes each once and holds 80.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tc_jupyter.diagnostics import Code, Diagnostic, codes

from .visits import TooManyPoints

if TYPE_CHECKING:
    from .bounds import Bounds, StageNeed


def notes_of(bounds: Bounds) -> tuple[Diagnostic, ...]:
    """All notes, in program order; those with counts only where all sizes are known."""
    found: list[Diagnostic] = []
    numbers = bounds.has_numbers
    for name in bounds:
        need = bounds.need(name)
        if need.needs_numbers and not bounds.sizes:
            hint = ", ".join(f"{size}=64" for size in bounds.graph.program.sizes)
            message = f"the exact region of `{name}` is known only with numbers: {need.reason}"
            found.append(_note(bounds, name, codes.SYMBOLIC_FUSE, message, f"`schedule.bounds({hint})`, or a call"))
        if numbers:
            try:
                found += _counted(bounds, bounds.stage(name))
            except TooManyPoints:
                continue
    return tuple(found)


def _counted(bounds: Bounds, need: StageNeed) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    name = need.stage
    if need.hull > need.elements:
        tested = need.computed == need.elements
        message = f"the boxes of `{name}` have {need.hull} elements, {need.elements} are needed"
        help = "the loops test every element" if tested else "the loops run over the boxes"
        found.append(_note(bounds, name, codes.BOUND_NOT_EXACT, message, help))
    if need.elements > need.distinct > 0:
        times = need.elements / need.distinct
        message = f"`{name}` computes {need.elements} elements, {need.distinct} different ones: each {times:.3g} times"
        found.append(_note(bounds, name, codes.RECOMPUTE, message, _cheaper(bounds, need)))
    return found


def _cheaper(bounds: Bounds, need: StageNeed) -> str:
    """The outermost place at which nothing is computed twice holds every element."""
    return f'`compute_root("{need.stage}")` computes each once and holds {need.distinct} elements'


def _note(bounds: Bounds, name: str, code: Code, message: str, help: str) -> Diagnostic:
    return Diagnostic(code, bounds.graph_of(name).stage(name).statement.span, message, help=help)
