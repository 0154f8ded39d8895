"""What a reduction computes from an operand alone, again for every index that the operand does not have: computed once, before it.

`C(i, j) +=! exp(X(i, k)) * W(k, j)` has the exponential for every `j`; `T(i, k) = exp(X(i, k))` is a copy of the operand like any
other (`cache_read` with `value`), and vectors take it. So are `X(i, k) / S(i)`, an average's weight, and rows of a table,
`X(Id(i), k)`, which are read again for every tile and keep the sum from being a product. Sums, products and maxima
are left where they are: the copy costs as much. Measured with AVX-512, two threads: with `exp` 512 x 512 x 512 14.0 and 1.3 ms,
128 x 1024 x 1024 8.2 and 1.4, of 64 columns 1.9 and 0.4; divided by a row's number 2.7 and 1.3 ms; with a maximum 1.4 and 1.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod

from tc_jupyter.program import Binary, Call, Expr, Read, bits, places, walk
from tc_jupyter.ranges import Facts, SizeExpr, constant, fact_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.reindexing import Operand, Sum, reads_by_data, value_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import Target

from .ragged import ended_by_data

_WORDS = "abs ceil copysign fabs fdim floor fma fmax fmin isfinite isinf isnan max min popcount relu round rounded sign trunc"
CHEAP = frozenset(_WORDS.split()) | frozenset(bits.OPERATORS)
"""Functions that are an instruction or two."""


def computed_once(schedule: Schedule, _: Target, facts: Facts) -> Schedule:
    """Compute such values of all reductions before them.

    Args:
        facts: of the sizes of a call; those that are not known count as large.
    """
    for name in schedule.stages:
        while (chosen := _next(schedule, name, facts)) is not None:
            tensor, number = chosen
            schedule = schedule.cache_read(tensor, name, value=True, only=number)
    return schedule


def _next(schedule: Schedule, name: str, facts: Facts) -> tuple[str, int] | None:
    """A tensor, and the number of its access, around which a reduction computes what pays to be computed once."""
    stage = schedule.graph.stage(name)
    statement = stage.statement
    if not statement.reduction_indices or not schedule.graph.is_free(name) or ended_by_data(statement):
        return None
    if statement.order:
        return None  # what it reads of its target is not there before
    reads = dict.fromkeys(read for read in stage.statement.reads() if read.indices and read.tensor != stage.target)
    numbers: dict[str, int] = {}
    for read in reads:
        number = numbers[read.tensor] = numbers.get(read.tensor, -1) + 1
        found = value_of(stage, read, schedule.graph.boxes)
        if found is not None and _pays(stage, found, facts):
            return read.tensor, number
    return None


def _pays(stage: Stage, found: Operand, facts: Facts) -> bool:
    least = _least_uses(found.place)
    return least is not None and _uses(stage, found, facts) >= least


def _least_uses(place: Expr) -> int | None:
    """How often a function, a division, or an element that another one chooses is used at least; `None` for what is cheap."""
    inside = [node for node in walk(place) if not isinstance(node, Read)]
    if any(isinstance(node, Call) and node.function not in CHEAP for node in inside):
        return tuning.USES // 2
    divided = any(isinstance(node, Binary) and node.op in ("/", "%") and node.dtype.is_float for node in inside)
    return tuning.USES if divided or reads_by_data(place) else None


def _uses(stage: Stage, found: Operand, facts: Facts) -> float:
    """How often a value of a step of the reduction is used: for the indices it does not have, and where windows overlap.

    It is used once for an index that elements choose: a point goes to one place.
    """
    own = {name for each in found.sums for name, _ in each} | {name for name, _ in places(stage.statement)}
    extents = {root.name: root.extent for root in stage.roots}
    if all(root.kind == "output" for root in stage.roots if root.name in own and extents[root.name] != constant(1)):
        return 0
    if any(_overlaps(each, extents) for each in found.sums):
        return inf
    others = (fact_of(extents[name], facts) for name in extents.keys() - own)
    return prod(inf if length is None else length.typical for length in others)


def _overlaps(total: Sum, extents: Mapping[str, SizeExpr]) -> bool:
    """Whether different indices may have the same sum, which those of `2 * i + k` for two values of `k` do not."""
    reach, ordered = 1, sorted(total, key=lambda each: abs(each[1]))
    for name, weight in ordered:
        if abs(weight) < reach:
            return True
        if not extents[name].is_constant:
            return name != ordered[-1][0]
        reach += abs(weight) * (extents[name].constant - 1)
    return False


__all__ = ["computed_once"]
