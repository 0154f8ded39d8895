"""Temporaries computed where they are read, where that is cheaper than storing them.

One rule for all devices, whatever the subscripts are. A temporary that is stored costs for each of its elements what its expression
costs, and `Costs.stored`, and a read wherever it is read. Otherwise it costs its expression wherever it is read: once for what a
point of its user needs twice, and only in the loops that change it. The cheaper of both is taken. Reductions are always stored, and
what users read again in loops of their own mostly is.

Worked example: of `T(i) = exp(X(i))`, `U(i) = T(i) * T(i)`, `Y(i) = T(i) + U(i)` one loop remains, in which `exp` is computed
once: what an iteration reads twice has one value. `T` in `C(i,j) +=! T(i,k) * W(k,j)` is read again for every `j`, and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import (
    COMPARISONS,
    LOGICAL,
    SHORTEST_ROW,
    Binary,
    Call,
    Const,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    children,
    walk,
)
from tc_jupyter.program.integers import has_read, index_names
from tc_jupyter.ranges import value_at
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.inline import without_inlined
from tc_jupyter.schedule.orders import refused
from tc_jupyter.schedule.placement import inlined_family
from tc_jupyter.schedule.primitives import factored
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import IterVar, Stage, StageGraph
from tc_jupyter.schedule.target import Target

from .prologues import CHEAP
from .stages import added


@dataclass(frozen=True, slots=True)
class Costs:
    """What a device takes for an element, in operations on vectors: additions, comparisons, choices, reads along a row.

    Attributes:
        stored: for storing an element, and having it come back.
        function, division: for one of these.
        turned: for a read that is not along a row.
        alone: for an operation that all elements of a row share, which stands in no vector.
    """

    stored: int
    function: int
    division: int = 4
    turned: int = 4
    alone: int = 1


COSTS = {"cpu": Costs(stored=6, function=16, alone=16), "cuda": Costs(stored=24, function=6)}
"""Measured with AVX-512 on one thread (AMD EPYC), the time of temporaries that are stored over that of those that are not, of 600 x
600 and 2000 x 2000 floats: two neighbours of `2*X` 1.8 and 2.1, of `X(i,j) + X(i+1,j)` 1.4 and 2.2, of `1/X` 0.9 and 1.8, of
`exp(X)` 0.7 and 1.3, of `tanh(X)` 0.5 and 0.7; a mean of 3 x 3 in two steps 0.8 to 1.0 and 1.2; `exp(X)` for two users 0.9 and 1.4.
So an element stored costs 3 in a cache, in memory 16 to 24. On a GPU nothing was measured; it is always in memory there."""


def computed_where_read(schedule: Schedule, target: Target, _: object) -> Schedule:
    """The schedule with every temporary inlined for which that is cheaper, and with those that nobody reads."""
    if len(schedule.stages) > tuning.NODES:
        return schedule
    costs = COSTS[target.kind]
    for name in schedule.stages:
        schedule = _separated(schedule, name)
        schedule = _in_common(schedule, name, costs) if target.kind == "cpu" else schedule
    graph = schedule.graph  # with what was inlined so far written into its users
    for name in reversed(schedule.stages):
        if schedule.graph.stage(name).attach.kind == "inline" or refused(schedule.graph, "compute_inline", (name,)):
            continue
        if not _may_pay(graph, name):
            continue
        written = without_inlined(inlined_family(graph, graph.stage(name)))
        users = [user.name for user in graph.consumers(name)]
        if users and not _is_cheaper(graph, written, name, users, costs):
            continue
        try:
            schedule, graph = schedule.compute_inline(name), written
        except CompileError:
            continue
    return schedule


def _is_cheaper(graph: StageGraph, written: StageGraph, name: str, users: Sequence[str], costs: Costs) -> bool:
    """Whether the users of a stage that is written into them cost no more than both."""
    stored = _elements(graph.stage(name)) * costs.stored
    return _work(written, users, costs) <= _work(graph, (name, *users), costs) + stored


def _in_common(schedule: Schedule, name: str, costs: Costs) -> Schedule:
    """What rows of results have in common is a temporary, where that is at most a quarter of the work."""
    stage = schedule.graph.stage(name)
    outputs = stage.statement.output_indices
    if stage.statement.operator != "=" or not outputs or factored(schedule.graph, stage, outputs[-1].name) is None:
        return schedule
    split, part = added(schedule, schedule.factor(name, outputs[-1].name))
    stored = _elements(split.graph.stage(part)) * costs.stored
    pays = 4 * (_work(split.graph, (part, name), costs) + stored) <= _work(schedule.graph, (name,), costs)
    return split if pays else schedule


def _separated(schedule: Schedule, name: str) -> Schedule:
    """What a statement on single elements writes, and the next one on its tensor replaces, is a temporary."""
    stage = schedule.graph.stage(name)
    if stage.statement.reduction_indices or schedule.graph.stages_on(stage.target)[-1] is stage:
        return schedule
    try:
        return schedule.separate(name)
    except CompileError:
        return schedule


def _may_pay(graph: StageGraph, name: str) -> bool:
    """Whether a stage makes a temporary that nobody reads, or whose expression fits into those of its users."""
    stage, users = graph.stage(name), graph.consumers(name)
    reduces = stage.statement.operator != "=" or bool(stage.statement.reduction_indices)
    if name in graph.outputs or (users and reduces):
        return False
    if len(users) > 1 and any(_is_compared(graph, stage.target, user) for user in users):
        return False
    return all(_nodes_with(graph, name, user) <= tuning.NODES for user in users)


def _is_compared(graph: StageGraph, tensor: str, user: Stage) -> bool:
    """Whether a user looks for equal values: computed twice, one may differ from itself in its last bit."""
    compared = (node for node in walk(user.statement.value) if isinstance(node, Binary) and node.op in ("==", "!="))
    parts = (part for node in compared for side in (node.left, node.right) for part in walk(side))
    return any(isinstance(part, Read) and graph.storage_name(part.tensor) == tensor for part in parts)


def _nodes_with(graph: StageGraph, name: str, user: Stage) -> int:
    """Size of the user's expression with the temporary written into it."""
    temporary = graph.stage(name)
    return _nodes(user) + _nodes(temporary) * sum(
        graph.storage_name(read.tensor) == temporary.target for read in user.statement.reads()
    )


def _nodes(stage: Stage) -> int:
    """Parts of the value; subscripts are none of them, as they are plain away from borders."""
    return sum(not inside for _, inside in _parts(stage.statement.value))


def _work(graph: StageGraph, names: Iterable[str], costs: Costs) -> int:
    """What some statements compute and read: every different part of an expression once wherever an index that it has moves."""
    return sum(_work_of(graph.stage(name), costs) for name in names)


def _work_of(stage: Stage, costs: Costs) -> int:
    points = [1, *accumulate((_length(root) for root in stage.roots), mul)]  # of the first loops
    loops = {root.name: number + 1 for number, root in enumerate(stage.roots)}
    lanes = {len(stage.roots), len(stage.statement.output_indices)}
    row = max(1, costs.alone // _length(stage.roots[-1])) if stage.roots and len(lanes) == 1 else 1
    total = 0
    for part, inside in set(_parts(stage.statement.value)):
        depth = max((loops.get(name, 0) for name in index_names(part)), default=0)
        total += points[depth] * _operation(part, inside, stage, costs) * (row if depth in lanes else costs.alone)
    return total


def _length(root: IterVar) -> int:
    extent = root.extent
    length = value_at(extent, dict.fromkeys(extent.names, tuning.UNKNOWN_SIZE))
    return tuning.UNKNOWN_SIZE if length is None else max(1, length)


def _elements(stage: Stage) -> int:
    return prod(_length(root) for root in stage.roots if root.kind == "output")


def _parts(expr: Expr, inside: bool = False) -> Iterator[tuple[Expr, bool]]:
    """The parts of an expression, each with whether it is inside a subscript, or a condition on positions."""
    yield expr, inside
    for child in children(expr):
        where = isinstance(expr, Select) and child is expr.condition and not has_read(child)
        yield from _parts(child, inside or where or isinstance(expr, Read))


def _operation(node: Expr, inside: bool, stage: Stage, costs: Costs) -> int:
    """What a part costs without those that it is made of; in a subscript, whatever keeps it from moving evenly."""
    match node:
        case Read(indices=()) | Const() | Size() | IndexVar():
            return 0
        case Read():
            return 1 if _is_along_row(node, stage) else costs.turned
        case _ if inside:
            return 1 if isinstance(node, Binary) and not _is_even(node) else 0
        case Call():
            return 1 if node.function in CHEAP else costs.function
        case Binary(op="/" | "//" | "%"):
            return costs.division
        case Binary(op="+" | "-") if any(
            isinstance(part, Binary) and part.op == "*" for part in (node.left, node.right)
        ):
            return 0  # fused
        case _:
            return 1


def _is_even(node: Binary) -> bool:
    """Whether a part of a subscript moves evenly, or a condition does not change, away from where it wraps around or ends."""
    if node.op == "%":
        return not isinstance(node.right, Const) or node.right.value >= SHORTEST_ROW
    return node.op in ("+", "-", "*", "min", "max", *COMPARISONS, *LOGICAL)


def _is_along_row(read: Read, stage: Stage) -> bool:
    """Whether neighbours along the last loop read neighbours, or all the same element; mostly, where they wrap around."""
    last = stage.roots[-1].name if stage.roots and not stage.statement.reduction_indices else ""
    *others, row = read.indices
    steps = (node for node in walk(row) if isinstance(node, Binary) and node.op in ("//", "%"))
    skips = any(last in index_names(node) and isinstance(node.right, Const) for node in steps)
    return not skips and (last in index_names(row) or not any(last in index_names(each) for each in others))
