"""Reductions on a CPU: to one number, and of rows.

To one number: partial results of fixed chunks, made in parallel, then combined in chunk order. The chunk size does not depend on
the number of threads, so results are reproducible.

Of rows: several rows at a time, a vector of each in turn. One row is one stream of reads, and memory gives more to several of them.
Measured with AVX-512, 4096 x 4096 floats past the caches: 8.7 GB/s in one stream, 11.2 in two, 12.9 in four, 13.5 in eight, 14.1 in
sixteen (from the third cache 23, however many). Sums and sums of squares of these rows took 7.3 ms row by row and 5.7 ms with four
rows, on two threads 3.7 and 2.7 ms; products with a vector 7.1 and 5.6 ms. A maximum and its position, 4096 x 1024, lose on one
thread (1.3 and 1.5 ms) and gain on two (1.20 and 0.92 ms). Eight rows take 5.4 ms, but compile in 190 ms where four do in 150 and
one in 65; a single sum in 110, 88 and 41 ms. Fetching further ahead gains nothing.

Where one stream fills the way to memory (`Target.reads_ahead`), long rows are read one by one: there four rows of 64 MB took 1.2
times as long for rows of 4096, 2.7 to 3.6 times for 256, 1.2 to 1.8 for 100, 0.8 to 1.1 for 64 and 0.4 to 0.8 for 17.
"""

from __future__ import annotations

from math import prod

from tc_jupyter.program import IndexVar, Statement, positions
from tc_jupyter.ranges import MANY, Facts, constant, fact_of, from_expr
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import Target

from .form import Form, formed
from .stages import added
from .streaming import is_streaming, lanes_of


def default(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    """The schedule of a reduction to one element or along rows; `None` for other statements.

    Args:
        facts: of the sizes of a call; those that are not known count as large.
    """
    stage = schedule.graph.stage(name)
    statement = stage.statement
    if not statement.reduction_indices or statement.combine is not None:
        return None
    partial = statement.initialize or statement.accumulate
    to_one = all(root.extent == constant(1) for root in stage.roots if root.kind == "output")
    few = to_one or (partial and is_to_few(stage, facts) and not is_across(stage))
    is_shared = few and target.threads > tuning.JOINED
    if _finds_a_place(schedule, stage) and not is_shared and not _reads_short_rows(schedule, stage, facts):
        return None
    if few:
        return _in_parts(schedule, stage) if partial else None
    return _rows_together(schedule, stage, target, facts)


def _finds_a_place(schedule: Schedule, stage: Stage) -> bool:
    """Whether a stage looks for the place of an extreme, or finds the extreme: both are found in one pass over one row."""
    return any(positions(each.statement.value) for each in (stage, *schedule.graph.consumers(stage.name)))


def short_rows(schedule: Schedule, facts: Facts) -> set[str]:
    """The reductions of short rows whose results are read by reductions of the same rows alone: several rows at a time for both."""
    graph, found = schedule.graph, set[str]()
    for stage in graph.stages:
        rows, users = _rows_of(stage), graph.consumers(stage.name)
        if (
            rows
            and users
            and _reads_short_rows(schedule, stage, facts)
            and all(rows & _rows_of(user) for user in users)
        ):
            found.add(stage.name)
    return found


def short_ends(statement: Statement) -> tuple[int, ...]:
    """Up to which lengths rows are short for a reduction of them, in order."""
    return (tuning.TOLD_APART - 1, *((tuning.LONG,) if positions(statement.value) else ()))


def is_to_few(stage: Stage, facts: Facts) -> bool:
    """Whether a long reduction has so few results that they are neither tasks for threads nor lanes of vectors.

    Measured with AVX-512, 4,000,000 steps, two results, over the time of both in one task: 0.11 on one thread and 0.05 on two for
    sums of products of neighbours, 0.21 and 0.1 for sums of exponentials of three products.
    """
    lengths = {root: fact_of(root.extent, facts) for root in stage.roots}
    results = [length.typical if length else MANY for root, length in lengths.items() if root.kind == "output"]
    steps = [length.typical if length else MANY for root, length in lengths.items() if root.kind != "output"]
    # a part is some steps of the outermost loop, which may be short
    return len(steps) == 1 and prod(results) <= tuning.PARTS and steps[0] > tuning.BLOCK


def is_across(stage: Stage) -> bool:
    """Whether a reduction steps over rows of what is read: vectors along it would be gathered, 2.0 of the time on one thread."""
    steps = {index.name for index in stage.statement.reduction_indices}
    used = [[steps & from_expr(index).indices for index in read.indices] for read in stage.statement.reads()]
    return any(any(each) and not each[-1] for each in used)


def has_parts(schedule: Schedule, name: str) -> bool:
    """Whether sums of parts may be added up: the sum begins with nothing or with what is there, and no other stage is inside."""
    statement = schedule.graph.stage(name).statement
    return (statement.initialize or statement.accumulate) and schedule.graph.is_free(name)


def partial_results(schedule: Schedule, name: str) -> tuple[Schedule, str]:
    """Results of parts of the outermost reduction loop, which become tasks, and their combination; also the new stage."""
    indices = schedule.graph.stage(name).statement.reduction_indices
    first = indices[0].name
    chunk = tuning.PART_LINES if len(indices) > 1 else tuning.PART
    return added(schedule, schedule.split(name, first, chunk).rfactor(name, f"{first}.outer"))


def _in_parts(schedule: Schedule, stage: Stage) -> Schedule:
    schedule, partial = partial_results(schedule, stage.name)
    outer = f"{stage.statement.reduction_indices[0].name}.outer"
    inside = [leaf for leaf in schedule.leaves(partial) if leaf != outer]
    return formed(schedule, partial, Form(tasks=(outer,), order=inside))


def _rows_together(schedule: Schedule, stage: Stage, target: Target, facts: Facts) -> Schedule | None:
    """A vector of each of several rows in turn, where all that read these rows do so."""
    if target.reads_ahead and not _reads_short_rows(schedule, stage, facts):
        return None
    graph = schedule.graph
    users = [each for tensor in _rows_of(stage) for each in graph.stages if tensor in graph.reads(each)]
    if not users or not all(_has_many_rows(each, facts) for each in users):
        return None
    name = stage.name
    *outer, row = [index.name for index in stage.statement.output_indices]
    (along,) = [index.name for index in stage.statement.reduction_indices]
    splits, tasks = {row: tuning.ABREAST, along: lanes_of(schedule, stage, target)}, (*outer, f"{row}.outer")
    return formed(schedule, name, Form(splits, tasks, (f"{along}.outer",), (f"{row}.inner",), f"{along}.inner"))


def _rows_of(stage: Stage) -> set[str]:
    """Tensors whose rows are the last output index of a reduction along one index, in unit steps; nothing for other statements."""
    statement = stage.statement
    if len(statement.reduction_indices) != 1 or not statement.output_indices or stage.attach.kind != "root":
        return set()
    row, along = statement.output_indices[-1].name, statement.reduction_indices[0].name
    if statement.combine is not None or not is_streaming(stage, along):
        return set()
    return {
        read.tensor
        for read in statement.reads()
        if {row, along} <= {index.name for index in read.indices if isinstance(index, IndexVar)}
    }


def _has_many_rows(stage: Stage, facts: Facts) -> bool:
    if not _rows_of(stage):
        return False
    root = next(root for root in stage.roots if root.name == stage.statement.output_indices[-1].name)
    rows = fact_of(root.extent, facts)
    return rows is None or rows.typical >= tuning.TOLD_APART


def _reads_short_rows(schedule: Schedule, stage: Stage, facts: Facts) -> bool:
    root = next(root for root in stage.roots if root.kind == "reduction")
    length = fact_of(root.extent, facts)
    most = tuning.LONG if _finds_a_place(schedule, stage) else tuning.TOLD_APART - 1
    return length is not None and length.typical <= most
