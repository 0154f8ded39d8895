"""Why a range is what it is: the rounds and bounds as steps in words.

Worked example: for `i` in `A(i) +=! B(i+k) * K(k)` the steps are "round 1: `0 <= k < M` in `K(k)` gives `0 <= k < M`" and
"round 2: `0 <= i + k < N` in `B(i + k)`, for all `k`, gives `0 <= i < N - M + 1`".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tc_jupyter.diagnostics import Span

from .accesses import Bound
from .display import range_text, to_python
from .inference import IndexRange, Ranges, because_lines
from .interval import Limit
from .size_expr import SizeExpr


@dataclass(frozen=True, slots=True)
class Step:
    """One sentence; `round` is 0 for a `where` range; `spans` are the places it speaks of."""

    round: int
    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps to the range of one index, and the result in one line (`reason -> range (round)`)."""

    statement: str
    index: str
    summary: str
    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        """All steps and the summary, one per line."""
        return "\n".join([*(step.text for step in self.steps), self.summary])


def explain(ranges: Ranges, statement: str, index: str) -> Explanation:
    """Say how the range of an index came about, with the ranges of other indices that it rests on.

    Raises:
        KeyError: no such statement or index.
    """
    steps: list[Step] = []
    _steps(ranges, statement, index, steps, set())
    return Explanation(statement, index, _summary(ranges, ranges.range(statement, index)), tuple(steps))


def given_by(ranges: Ranges, r: IndexRange) -> str:
    """What gives a range that no read shaped: `where`, `along`, or how large the target is, by statement or by computed indices."""
    program, statement = ranges.program, ranges.program.statement(r.statement)
    clause = rf"\b{re.escape(r.index)}\s+in\b"
    stated = program.tensor(statement.target).declared is not None and statement.text
    if ranges.is_computed(r) or (stated and not re.search(clause, statement.text)):
        of_block = re.search(rf"\balong\b[^{{}}=]*{clause}", program.source.slice(program.span))
        return "`along`" if of_block else f"the extent of `{r.statement.split('#')[0]}`"
    return "`where`"


def _summary(ranges: Ranges, r: IndexRange) -> str:
    """`0 <= 2*i < I and 0 <= 2*i + 1 < I  ->  0 <= i < I//2 (round 1)`."""
    if r.source == "where":
        return f"{given_by(ranges, r).replace('`', '')}  ->  {r.text}"
    if r.source == "target":
        return f"the box of {r.statement.split('#')[0]}  ->  {r.text}"
    if r.source == "open":
        return f"{r.index} is open"
    reasons = " and ".join(line.rsplit("  (", 1)[0] for line in because_lines(r.because))
    return f"{reasons}  ->  {r.text} (round {r.round})"


def _steps(ranges: Ranges, statement: str, index: str, steps: list[Step], seen: set[str]) -> None:
    if index in seen:
        return
    seen.add(index)
    r = ranges.range(statement, index)
    for other in sorted({name for b in r.because for name in b.expr.indices if name != index}):
        _steps(ranges, statement, other, steps, seen)
    if r.source == "where":
        steps.append(Step(0, f"{given_by(ranges, r)} gives `{r.text}`", (r.span,)))
    elif r.source == "target":
        target = statement.split("#")[0]
        steps.append(
            Step(0, f"nothing bounds `{index}` here, so it takes the range of `{target}`: `{r.text}`", (r.span,))
        )
    elif r.source == "open":
        steps.append(Step(0, f"no round found a range for `{index}`", (r.span,)))
    else:
        steps.extend(_inferred(ranges, statement, r))


def _inferred(ranges: Ranges, statement: str, r: IndexRange) -> list[Step]:
    found = [step for step in ranges.rounds[statement] if step.number == r.round]
    learned = [s for step in found for s in step.learned if s.index == r.index]
    steps = [Step(r.round, _learned(r.index, s.bound, s.limit, r.round), (s.bound.access.span,)) for s in learned]
    if any(step.fallback for step in found):
        text = f"round {r.round}: nothing else bounds `{r.index}`, so bounds that a condition tests count as well"
        steps.insert(0, Step(r.round, text))
    if r.lower is not None and r.upper is not None:
        lows = {to_python(s.limit.value) for s in learned if s.limit.side == "lower"}
        highs = {to_python(s.limit.value) for s in learned if s.limit.side == "upper"}
        how = ""
        if len(lows) > 1 or len(highs) > 1:
            ends = ["the largest lower end"] * (len(lows) > 1) + ["the smallest upper end"] * (len(highs) > 1)
            how = f" ({' and '.join(ends)})"
        steps.append(Step(r.round, f"round {r.round}: `{range_text(r.index, r.lower, r.upper)}`{how}", (r.span,)))
    return steps


def _learned(index: str, bound: Bound, limit: Limit, number: int) -> str:
    others = sorted(bound.expr.indices - {index})
    everywhere = f", for all {', '.join(f'`{name}`' for name in others)}," if others else ""
    result = f"{index} >= {to_python(limit.value)}" if limit.side == "lower" else f"{index} < {_above(limit.value)}"
    return f"round {number}: `{bound.text}` in `{bound.access.text}`{everywhere} gives `{result}`"


def _above(value: SizeExpr) -> str:
    return to_python(value + 1)
