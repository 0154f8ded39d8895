"""What a reduction computes from an operand alone, again for every index that the operand does not have: computed once, before it.

`C(i, j) +=! exp(X(i, k)) * W(k, j)` has the exponential for every `j`; `T(i, k) = exp(X(i, k))` is a copy of the operand like any
other (`cache_read` with `value`), and vectors take it. So are `X(i, k) / S(i)`, an average's weight, and rows of a table,
`X(Id(i), k)`, which are read again for every tile and keep the sum from being a product. Sums, products and maxima
are left where they are: the copy costs as much. Measured with AVX-512, two threads: with `exp` 512 x 512 x 512 14.0 and 1.3 ms,
128 x 1024 x 1024 8.2 and 1.4, of 64 columns 1.9 and 0.4; divided by a row's number 2.7 and 1.3 ms; with a maximum 1.4 and 1.3.
"""

from __future__ import annotations

from tc_jupyter.program import Binary, Call, Expr, Read, walk
from tc_jupyter.ranges import constant
from tc_jupyter.schedule.reindexing import Operand, reads_by_data, value_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage

CHEAP = frozenset(
    (
        "abs",
        "ceil",
        "copysign",
        "fabs",
        "fdim",
        "floor",
        "fma",
        "fmax",
        "fmin",
        "isfinite",
        "isinf",
        "isnan",
        "max",
        "min",
        "relu",
    )
) | {"round", "sign", "trunc"}
"""Functions that are an instruction or two."""


def computed_once(schedule: Schedule) -> Schedule:
    """Compute such values of all reductions before them."""
    for name in schedule.stages:
        while (chosen := _next(schedule, name)) is not None:
            tensor, number = chosen
            schedule = schedule.cache_read(tensor, name, value=True, only=number)
    return schedule


def _next(schedule: Schedule, name: str) -> tuple[str, int] | None:
    """A tensor, and the number of its access, around which a reduction computes what pays to be computed once."""
    stage = schedule.graph.stage(name)
    if not stage.statement.reduction_indices or not schedule.graph.is_free(name):
        return None
    reads = dict.fromkeys(read for read in stage.statement.reads() if read.indices and read.tensor != stage.target)
    numbers: dict[str, int] = {}
    for read in reads:
        number = numbers[read.tensor] = numbers.get(read.tensor, -1) + 1
        found = value_of(stage, read, schedule.graph.boxes)
        if found is not None and _is_dear(found.place) and _is_repeated(stage, found):
            return read.tensor, number
    return None


def _is_dear(place: Expr) -> bool:
    """Whether a value takes a division, a function, or an element that another one chooses."""
    return reads_by_data(place) or any(
        (isinstance(node, Call) and node.function not in CHEAP)
        or (isinstance(node, Binary) and node.op in ("/", "%") and node.dtype.is_float)
        for node in walk(place)
        if not isinstance(node, Read)
    )


def _is_repeated(stage: Stage, found: Operand) -> bool:
    """Whether it is a value per step of the reduction, and the same for several of them, as it is in a window."""
    own = {name for each in found.sums for name, _ in each}
    several = {root.name: root.kind for root in stage.roots if root.dom[1] - root.dom[0] != constant(1)}
    steps = any(kind != "output" and name in own for name, kind in several.items())
    return steps and (not several.keys() <= own or any(len(each) > 1 for each in found.sums))


__all__ = ["computed_once"]
