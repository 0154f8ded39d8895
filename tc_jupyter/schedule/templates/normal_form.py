"""Sums on a CPU as other templates know them, however they are spelled, before anything is chosen.

What multiplies or divides every term leaves the sum: `C(i, j) +=! A(i, k) * B(k, j) / float(K)` is the product `C.cache`, and
`C(i, j) = C.cache(i, j) / float(K)`, which becomes part of the copy out of the registers, or of its readers (`inlining`).
Measured with AVX-512 (Zen 5), one thread, times as it is written over those of the sum that is divided at the end: a product of
64 x 2000 x 64 6.4, means of 1000 rows of 512 1.8; multiplied, products of 256 x 256 x 256 1.4 to 1.9.

Sums over the few coordinates of a point or colours of a pixel, whose results are as few for each element or one, are written
out: they are statements on single elements, which have vectors along the elements. So are short windows whose results are few. A
register tile stays where its vectors are full, or read neighbours. Measured there, register tiles over what is written out: 20,000
points of 4 times a matrix 3.5, matrices of 3 x 3 times vectors 1.4, times transposed ones 2; lengths of 40,000 points 3.6; places
of elements in windows of 3 4.5, of 7 1.9; colours blurred along rows of 300 1.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import IndexVar
from tc_jupyter.ranges import MANY, Facts, fact_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.primitives import MOST_TERMS, factored, factors_out, terms_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, StageGraph, constant_extent
from tc_jupyter.schedule.target import LEAST_VECTOR_BITS, Target

from . import pixels
from .stages import added


def normalized(schedule: Schedule, target: Target, _: object) -> Schedule:
    """The schedule with all sums in that form, on a CPU."""
    for name in schedule.stages if target.kind == "cpu" else ():
        stage = schedule.graph.stage(name)
        try:
            if (expanded := _written_out(schedule, name, target)) is not None:
                schedule = expanded
            elif factors_out(schedule.graph, stage)[1] and not stage.statement.order and not stage.statement.computed:
                schedule = schedule.cache_write(name, factors=True)
        except CompileError:
            continue
    return schedule


def in_parts(schedule: Schedule, _: Target, facts: Facts) -> Schedule:
    """The schedule with sums of products in parts, where two sums have at most half of the points of one, of which more are made.

    Points count, and elements of a part as one point each; points of a product of matrices count less where the one sum is none.
    Sizes of which nothing is known count as large. A part has no more dimensions than the largest factor or result.
    """
    waiting = list(schedule.stages)
    while waiting:
        name = waiting.pop()
        axis = _summed_first(schedule.graph, schedule.graph.stage(name), facts)
        if axis is not None:
            schedule, part = added(schedule, schedule.factor(name, axis))
            waiting += [name, part]
    return schedule


def _summed_first(graph: StageGraph, stage: Stage, facts: Facts) -> str | None:
    """The index whose factors are best summed first."""
    lengths = {root.name: fact_of(root.extent, facts) for root in stage.roots}

    def points(names: Iterable[str]) -> int:
        return prod(MANY if (length := lengths[name]) is None else length.typical for name in names)

    ways = {root.name: factored(graph, stage, root.name) for root in stage.roots if root.kind != "output"}
    costs = {
        axis: points(two.indices[0]) // (tuning.FACTOR_REUSE if two.reuses else 1)
        + points(two.indices[1])
        + points(two.kept)
        for axis, two in ways.items()
        if two is not None
        and len(two.kept) <= max(len(stage.statement.output_indices), two.first.rank, two.others.rank)
    }
    best = min(costs, key=lambda axis: costs[axis], default=None)
    return best if best is not None and 2 * costs[best] <= points(lengths) else None


def _written_out(schedule: Schedule, name: str, target: Target) -> Schedule | None:
    """The schedule with a sum of few terms written out; `None` for others, and where results fill vectors as they are."""
    stage = schedule.graph.stage(name)
    outputs = [index.name for index in stage.statement.output_indices]
    few = constant_extent(stage, outputs[-1]) if outputs else None
    terms = terms_of(schedule.graph, stage)
    if terms and not stage.statement.reduction_indices:
        return schedule.expand(name)
    if not (1 < (few or 0) <= MOST_TERMS or _is_of_each(stage)) or len(terms) < 2:
        return None
    expanded = schedule.expand(name)
    kept = few is not None and _fills_vectors(schedule, stage, few)
    return None if kept and pixels.default(expanded, name, target, {}) is None else expanded


def _fills_vectors(schedule: Schedule, stage: Stage, few: int) -> bool:
    """Whether vectors along the few last results are full, or read neighbours: a register tile takes them, and masks the rest."""
    bits = schedule.graph.program.tensor(stage.target).dtype.bits
    last = IndexVar(stage.statement.output_indices[-1].name)
    return few * bits % LEAST_VECTOR_BITS == 0 or any(read.indices[-1:] == (last,) for read in stage.statement.reads())


def _is_of_each(stage: Stage) -> bool:
    """Whether each number of a row is a sum of the values of one element; in more dimensions register tiles take such rows."""
    statement = stage.statement
    names = {index.name for index in statement.reduction_indices}
    return len(statement.output_indices) == 1 and all(pixels.is_value(statement, name) for name in names)
