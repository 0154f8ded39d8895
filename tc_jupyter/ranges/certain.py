"""Conditions of which the ranges say that they always hold, or never.

Worked example: with `0 <= i < N`, the condition `i >= 0` always holds, so `where i >= 0` leaves no point out.
"""

from __future__ import annotations

from collections.abc import Iterable

from tc_jupyter.program import Statement

from .convert import to_condition
from .inference import IndexRange, Ranges
from .interval import IndexBox, interval
from .size_expr import Condition, SizeExpr, nonnegative


def loop_facts(ranges: Iterable[IndexRange]) -> list[SizeExpr]:
    """Expressions that are >= 0 while every loop is non-empty, without those that always are."""
    found = (r.extent - 1 for r in ranges)
    return [e for e in dict.fromkeys(found) if not nonnegative(e)]


def holds(e: SizeExpr, facts: Iterable[SizeExpr]) -> bool:
    """Whether `e >= 0` follows from the limits of sizes, or from one of `facts`."""
    return nonnegative(e) or any(nonnegative(e - fact) for fact in facts)


def index_limits(ranges: Iterable[IndexRange]) -> dict[str, tuple[SizeExpr, SizeExpr]]:
    """First and last value of every index that has both."""
    return {r.index: (r.lower, r.upper - 1) for r in ranges if r.lower is not None and r.upper is not None}


def constant_truth(condition: Condition, box: IndexBox, facts: list[SizeExpr]) -> bool | None:
    """Whether a condition is always true, or always false, on the ranges; `None` if neither is certain."""
    if certain(condition, box, facts):
        return True
    return False if certain(condition.negated(), box, facts) else None


def certain(condition: Condition, box: IndexBox, facts: list[SizeExpr]) -> bool:
    """Whether a condition is always true on the ranges."""
    alternatives, complete = condition.alternatives()
    if not complete:
        return False
    for alternative in alternatives:
        lows = [interval(g, box).lower for g in alternative]
        if all(low is not None and holds(low, facts) for low in lows):
            return True
    return False


def leaves_out(ranges: Ranges, statement: Statement) -> bool:
    """Whether a condition of a statement may leave points out."""
    if not statement.conditions:
        return False
    found, scope = ranges.indices[statement.name], ranges.index_scope(statement)
    box, facts = index_limits(found), loop_facts(found)
    return not all(certain(to_condition(each, scope), box, facts) for each in statement.conditions)


__all__ = ["certain", "constant_truth", "holds", "index_limits", "leaves_out", "loop_facts"]
