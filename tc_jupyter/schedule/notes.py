"""What bounds say to a person: more is computed than needed (TC402), computed again (TC408), exact only with numbers (TC409),
no window is kept (TC413).

Worked example: C at `di` of D has 320 elements computed and 80 different ones, so TC408 says 4 times,
and that `compute_root` computes each once and holds 80.
"""

from __future__ import annotations

from collections.abc import Iterable

from tc_jupyter.diagnostics import Code, Diagnostic, Span, codes


def exact_with_numbers(name: str, reason: str, sizes: Iterable[str], span: Span) -> Diagnostic:
    """TC409: the exact region has no formula."""
    hint = ", ".join(f"{size}=64" for size in sizes)
    message = f"the exact region of `{name}` is known only with numbers: {reason}"
    return _note(codes.SYMBOLIC_FUSE, span, message, f"`schedule.bounds({hint})`, or a call")


def not_rolling(name: str, reason: str, span: Span) -> Diagnostic:
    """TC413: a wish that is not granted any more."""
    return _note(
        codes.NOT_ROLLING, span, f"`{name}` keeps no window: {reason}", "every visit computes all that it needs"
    )


def counted(name: str, span: Span, hull: int, needed: int, computed: int, different: int) -> list[Diagnostic]:
    """TC402 and TC408 of one stage, from its numbers of elements; `hull` counts those of its boxes."""
    found: list[Diagnostic] = []
    if hull > needed:
        message = f"the boxes of `{name}` have {hull} elements, {needed} are needed"
        help = "the loops test every element" if computed == needed else "the loops run over the boxes"
        found.append(_note(codes.BOUND_NOT_EXACT, span, message, help))
    if needed > different > 0:
        message = (
            f"`{name}` computes {needed} elements, {different} different ones: each {needed / different:.3g} times"
        )
        # the outermost place at which nothing is computed twice holds every element
        help = f'`compute_root("{name}")` computes each once and holds {different} elements'
        found.append(_note(codes.RECOMPUTE, span, message, help))
    return found


def _note(code: Code, span: Span, message: str, help: str) -> Diagnostic:
    return Diagnostic(code, span, message, help=help)
