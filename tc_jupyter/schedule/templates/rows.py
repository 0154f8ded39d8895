"""Statements that work row by row (softmax, normalisation): temporaries are made inside the row loop of their consumer.

`m(i)`, `e(i,j)`, `s(i)` of a softmax are computed at `O[i]`: a row is read from memory once and stays in cache, and every row is
a task.
A temporary moves only where nothing is computed twice: each visit of the loop asks for elements that no other visit asks for.
"""

from __future__ import annotations

from collections.abc import Collection

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.ranges import SizeExpr, constant
from tc_jupyter.schedule.infer_bound import StageBounds, SymbolicBounds, infer_symbolic, variable
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage


def fuse_rows(schedule: Schedule, apart: Collection[str] = ()) -> Schedule:
    """Attach every temporary to the outermost, or outermost long, loop of its last consumer, where that computes nothing twice.

    Args:
        apart: temporaries that have loops of their own.
    """
    bounds = infer_symbolic(schedule.graph)
    for name in (name for name in reversed(schedule.stages) if name not in apart):
        stage = schedule.graph.stage(name)
        if name not in schedule.graph.outputs and stage.attach.kind == "root" and not stage.relations:
            schedule, bounds = _attached(schedule, bounds, stage)
    return schedule


def _attached(schedule: Schedule, bounds: SymbolicBounds, stage: Stage) -> tuple[Schedule, SymbolicBounds]:
    """The schedule with a temporary attached, or as it was, and its bounds."""
    graph = schedule.graph
    family = graph.stages_on(stage.target)
    users = graph.consumers(family[0].name)
    if not users or family[0].name != stage.name:
        return schedule, bounds
    place = graph.runs_in(users[-1].name)
    loops = graph.stage(place).leaves
    if graph.stage(place).relations or len(loops) < 2 or graph.stage(place).kind(loops[0]) != "output":
        return schedule, bounds
    # the elements of a single row are tasks if each is a sum of its own
    sums = bool(stage.statement.reduction_indices and _long_loops(stage))
    first_long = _long_loops(graph.stage(place))[:1] if sums else ()
    for loop in dict.fromkeys((*first_long, loops[0])):
        try:
            moved = schedule.compute_at(stage.name, place, loop)
        except CompileError:
            continue
        found = bounds.moved(moved.graph, stage.name)
        if any(_computed_once(found[member.name], variable(place, loop)) for member in family):
            return moved, found
    return schedule, bounds


def _long_loops(stage: Stage) -> tuple[str, ...]:
    """The output loops of more than one iteration."""
    single = {root.name for root in stage.roots if root.dom[1] - root.dom[0] == constant(1)}
    return tuple(leaf for leaf in stage.leaves if stage.kind(leaf) == "output" and leaf not in single)


def _computed_once(bounds: StageBounds, loop: str) -> bool:
    """Whether the iterations of `loop` ask for disjoint parts of the tensor: one dimension follows the loop, one element each."""
    return bounds.exact and any(extent == constant(1) and _follows(low, loop) for low, extent in bounds.box)


def _follows(low: SizeExpr, loop: str) -> bool:
    """Whether a position moves by one with every iteration of `loop`."""
    return low.substitute({loop: constant(1)}) - low.substitute({loop: constant(0)}) == constant(1)
