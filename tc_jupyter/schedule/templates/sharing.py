"""Statements that read the same rows share the loops over them on a CPU: a row comes from memory once.

Worked example: `s(i) +=! X(i,j)` and `q(i) +=! X(i,j) * X(i,j)` on their own read `X` twice; in one loop over `i` the second one
finds the row in cache. Measured with AVX-512, 4096 x 4096 on one thread: 13.6 ms apart, 6.8 ms together. A row that is read again
for each step of another loop is in the cache anyway. Loops that reduce over one input then become one (`codegen.llvm.fusion`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Expr, IndexVar
from tc_jupyter.program.integers import index_names
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Split, Stage


def share_rows(schedule: Schedule, *_: object) -> Schedule:
    """Let every stage at root share its parallel loops with the nearest one before it that reads the same rows."""
    known: dict[str, _Tasks] = {}
    for name in schedule.stages:
        late = _tasks_of(schedule.graph.stage(name), known)
        for other in reversed(schedule.stages[: schedule.graph.position(name)]):
            early = _tasks_of(schedule.graph.stage(other), known)
            depth = _same_tasks(early, late)
            if depth and early.rows & late.rows:
                schedule = _shared(schedule, late.stage, early.stage, early.stage.leaves[depth - 1])
                break
    return schedule


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The loops of a stage that are tasks: their ranges, `None` where one is not known or not among the outermost loops.

    `rows` are the tensors, each with the dimension that the innermost task moves along, whose other elements the loops inside read.
    """

    stage: Stage
    ranges: tuple[tuple[object, int | None], ...] | None
    rows: frozenset[tuple[str, int]]


def _tasks_of(stage: Stage, known: dict[str, _Tasks]) -> _Tasks:
    """The tasks of a stage, found once as long as the stage stays as it is."""
    if stage.name not in known or known[stage.name].stage is not stage:
        tasks = [leaf for leaf in stage.leaves if stage.annotation(leaf) == "parallel"]
        found = [_range(stage, leaf) for leaf in tasks]
        ranges = tuple(each for each in found if each is not None)
        whole = list(stage.leaves[: len(tasks)]) == tasks and len(ranges) == len(tasks)
        rows = _rows(stage, len(tasks)) if whole and tasks else frozenset[tuple[str, int]]()
        known[stage.name] = _Tasks(stage, ranges if whole else None, rows)
    return known[stage.name]


def _same_tasks(early: _Tasks, late: _Tasks) -> int:
    """How many loops, the outermost, are tasks of both stages and run over the same range; 0 if any task differs."""
    if late.stage.attach.kind != "root" or early.stage.attach.kind not in ("root", "with"):
        return 0
    return len(late.ranges) if late.ranges is not None and early.ranges == late.ranges else 0


def _range(stage: Stage, leaf: str) -> tuple[object, int | None] | None:
    """What a loop over an index, or over equal parts of one, runs over: the range of the index and the length of a part."""
    index, part = _parts(stage, leaf)
    return next(((root.dom, part) for root in stage.roots if root.name == index), None)


def _parts(stage: Stage, leaf: str) -> tuple[str, int | None]:
    """The index whose parts a loop runs over, and their length; a loop that is no such loop itself."""
    found = [
        each for each in stage.relations if isinstance(each, Split) and each.outer == leaf and each.factor is not None
    ]
    return (found[0].parent, found[0].factor) if found else (leaf, None)


def _rows(stage: Stage, depth: int) -> frozenset[tuple[str, int]]:
    tasks = [_parts(stage, leaf)[0] for leaf in stage.leaves[:depth]]
    row, inside = tasks[-1], {root.name for root in stage.roots} - set(tasks)
    long = {root.name for root in stage.roots if root.name in inside and not root.extent.is_constant}
    return frozenset(
        (read.tensor, place)
        for read in stage.statement.reads()
        for place, index in enumerate(read.indices)
        if _follows(stage, index, row) and index_names(read) & inside and long <= index_names(read)
    )


def _follows(stage: Stage, index: Expr, row: str) -> bool:
    """Whether a subscript is the row, or runs inside the part of a long row that a partial result (`rfactor`) is made of."""
    return row in index_names(index) and (isinstance(index, IndexVar) or bool(stage.positions))


def _shared(schedule: Schedule, late: Stage, early: Stage, axis: str) -> Schedule:
    """The loops shared, or as they are where an order would change."""
    try:
        return schedule.compute_with(late.name, early.name, axis)
    except CompileError:
        return schedule


# What is left, measured on an Intel processor with AVX-512, two cores of a virtual machine: a single row of 10^6 is read in parts
# of 32 kB, by all threads: 236 to 313 us on one and 109 to 140 us on two threads, 304 and 380 us in one piece.
