"""The range that a statement was probably meant to have where its accesses give a smaller one, and the clause that says so.

Worked example: in `Y(i) = i > 0 && i < N - 1 ? X(i - 1) + X(i + 1) : 0` the accesses give `1 <= i < N - 1`, and the condition is
true everywhere. Both accesses index dimension 0 of `X`, which runs from 0 to `N`: what is meant is `where i in 0:N`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tc_jupyter.diagnostics import Fix
from tc_jupyter.program import Statement

from .accesses import as_written
from .inference import IndexRange, Ranges, added_clause
from .size_expr import SizeExpr, index


def whole(ranges: Ranges, r: IndexRange) -> tuple[SizeExpr, SizeExpr] | None:
    """The range of the dimension that an index moves in, shifted as it may be; `None` where none is certain."""
    own = index(r.index)
    found: set[tuple[SizeExpr, SizeExpr]] = set()
    for bound in r.because:
        e, box = bound.access.index[bound.dimension], ranges.boxes.get(bound.access.tensor)
        if box is None or (r.index in (e - own).indices and r.index in (e + own).indices):
            return None
        found.add(box.bounds[bound.dimension])
    return found.pop() if len(found) == 1 else None


def clause(ranges: Ranges, items: Sequence[IndexRange]) -> str | None:
    """`i in 0:N, j in 0:M` for indices whose whole ranges are known."""
    ends = [(r.index, whole(ranges, r)) for r in items]
    known = [f"{name} in {as_written(end[0])}:{as_written(end[1])}" for name, end in ends if end is not None]
    return ", ".join(known) if known and len(known) == len(ends) else None


def give(ranges: Ranges, statement: Statement, text: str) -> Fix | None:
    """Add a clause to a statement; `None` where the text of the statement stands elsewhere, as that of an inlined one does."""
    source = ranges.program.source
    if ranges.program.language != "tc" or source.slice(statement.span) != statement.text or not statement.text:
        return None
    return added_clause(statement, text)
