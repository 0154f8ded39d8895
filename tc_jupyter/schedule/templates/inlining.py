"""Temporaries on single elements: computed where they are read, not stored and read back.

Worked example: of `T(i) = exp(X(i))`, `U(i) = T(i) * T(i)`, `Y(i) = T(i) + U(i)` one loop remains, in which `exp` is computed
once: what an iteration reads twice has one value.
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import IndexVar, walk
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Attach, Stage, StageGraph

from .streaming import is_streaming

LARGEST = 256
"""Nodes of an expression that others are written into: a statement that squares the one before it doubles them."""
MOST_STAGES = 256
"""Longer defs keep their temporaries: every step looks at all stages. 200 of them take a second."""


def inline_read_once(schedule: Schedule) -> Schedule:
    """Write every temporary into its only user, where each of its elements is then computed once."""
    if len(schedule.stages) > MOST_STAGES:
        return schedule
    written = inject_inline(schedule.graph)
    for name in reversed(schedule.stages):
        inlined = schedule.graph.stage(name).attach.kind == "inline"
        if name in schedule.graph.outputs or inlined or not _is_read_once(written, name):
            continue
        try:
            schedule = schedule.compute_inline(name)
        except CompileError:
            continue
        written = inject_inline(written.replace_stage(replace(written.stage(name), attach=Attach("inline"))))
    return schedule


def _nodes_with(graph: StageGraph, name: str, user: Stage) -> int:
    """Size of the user's expression with the temporary written into it."""
    temporary = graph.stage(name)
    return _nodes(user) + _nodes(temporary) * sum(
        graph.storage_name(read.tensor) == temporary.target for read in user.statement.reads()
    )


def _nodes(stage: Stage) -> int:
    return sum(1 for _ in walk(stage.statement.value))


def _is_read_once(graph: StageGraph, name: str) -> bool:
    """Whether every iteration of the only user reads one element, which no other iteration reads."""
    stage, users = graph.stage(name), graph.consumers(name)
    if len(users) != 1 or not (graph.is_free(name) and graph.is_free(users[0].name)):
        return False
    (user,) = users
    places = {read.indices for read in user.statement.reads() if graph.storage_name(read.tensor) == stage.target}
    if len(places) != 1 or not stage.leaves or not is_streaming(stage, stage.leaves[-1]):
        return False
    (place,) = places
    names = [subscript.name for subscript in place if isinstance(subscript, IndexVar)]
    return (
        sorted(names) == sorted(user.leaves) and len(names) == len(place) and _nodes_with(graph, name, user) <= LARGEST
    )
