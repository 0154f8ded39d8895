"""Where a stage may run: the rules of `compute_at` and of inlining, each refusal with two points in the wrong order.

A producer inside a loop of its consumer is made again in every visit, so what it makes is right by construction. What must hold is
that nobody reads it anywhere else, and that what it reads is still there: it runs later than its place in the text.

Worked example: `T(i) = 2*X(i)`, `O(i) = T(i)`, `Q(i) = T(i+1)`; `T` at `O[i]` is refused: with `N = 1`, `Q` at (-1) reads T(0)
outside that loop.

Source: Halide, `compute_at`; TVM, "InferBound Pass", attach paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tc_jupyter.diagnostics import codes
from tc_jupyter.program import IndexVar, Read
from tc_jupyter.ranges import Scope, Unknown, from_expr, index

from .intrinsics import step_problem
from .legality import Problem, Witness, find_conflict, outside_read, result_read
from .stage import Attach, Stage, StageGraph, children_of, parents_of

MOST_POINTS = 8
"""Legal places that a message lists."""


def attach_problem(graph: StageGraph, producer: Stage, consumer: Stage, axis: str) -> Problem | None:
    """Why `producer` cannot be computed at `consumer[axis]`, and what would be legal; `None` if it can."""
    problem = _attach_problem(graph, producer, consumer, axis)
    if problem is None or problem.help:
        return problem
    return replace(problem, help=f"legal: {attach_points(graph, producer)}")


def _attach_problem(graph: StageGraph, producer: Stage, consumer: Stage, axis: str) -> Problem | None:
    name, family = producer.name, {stage.name for stage in graph.stages_on(producer.target)}
    if name in graph.outputs:
        help = "results are computed at root; use `cache_write`, or `compute_with` to share loops"
        return _problem("it writes a result", help, result_read(graph, producer))
    if consumer.attach.kind == "inline":
        return _problem(f"`{consumer.name}` is inlined and has no loops", "")
    if consumer.attach.kind == "with" and consumer.leaves.index(axis) < shared_depth(graph, consumer):
        return _problem(f"it is a loop of `{consumer.attach.stage}`, which `{consumer.name}` shares", "")
    if consumer.name in family or any(stage in family for stage, _ in graph.attach_path(consumer.name)):
        return _problem(f"`{consumer.name}` runs inside `{name}`", "")
    if not final_users(graph, graph.stages_on(producer.target)[0].name):
        return _problem("nothing reads it", "")
    return _outside_problem(graph, producer, (consumer.name, axis))


def _outside_problem(graph: StageGraph, producer: Stage, point: tuple[str, str]) -> Problem | None:
    """Who reads a producer outside of a loop, with a read if one is found at small sizes."""
    users = list(readers_outside(graph, producer, point))
    for user in users:
        witness = outside_read(graph, producer, user)
        if witness is not None:
            return _problem(witness.text(), "", witness)
    return _problem(f"`{users[0].name}` reads it outside that loop", "") if users else None


def _problem(reason: str, help: str, witness: Witness | None = None) -> Problem:
    return Problem(codes.BAD_ATTACH, reason, help, witness)


def readers_outside(graph: StageGraph, producer: Stage, point: tuple[str, str]) -> Iterator[Stage]:
    """The stages that read a producer outside of a loop, by themselves or through inlined ones."""
    for user in final_users(graph, graph.stages_on(producer.target)[0].name):
        if user.name != point[0] and point not in graph.attach_path(user.name):
            yield user


def shared_depth(graph: StageGraph, stage: Stage) -> int:
    """How many outer loops of a stage are shared with others (`compute_with`)."""
    sharing = [other for other in graph.attached(stage.name) if other.attach.kind == "with"]
    depths = [stage.leaves.index(other.attach.axis) + 1 for other in sharing]
    if stage.attach.kind == "with":
        depths.append(graph.stage(stage.attach.stage).leaves.index(stage.attach.axis) + 1)
    return max(depths, default=0)


def final_users(graph: StageGraph, name: str) -> tuple[Stage, ...]:
    """The stages in whose loops a stage is read: its consumers, for an inlined one those of its result."""
    found: dict[str, Stage] = {}
    for user in graph.consumers(name):
        members = final_users(graph, user.name) if user.attach.kind == "inline" else (user,)
        found |= {member.name: member for member in members}
    return tuple(found.values())


def attached_family(graph: StageGraph, stage: Stage, attach: Attach) -> StageGraph:
    """The graph with all stages on one tensor attached together."""
    for each in graph.stages_on(stage.target):
        graph = graph.replace_stage(replace(each, attach=attach))
    return graph


def inlined_family(graph: StageGraph, stage: Stage) -> StageGraph:
    """The graph with all stages on one tensor inlined; what shared the loops of one of them shares those of the next one."""
    graph = attached_family(graph, stage, Attach("inline"))
    sharing = [each for each in graph.attached(stage.name) if each.attach.kind == "with"]
    for each in sharing:
        first = sharing[0]
        attach = stage.attach if each is first else replace(each.attach, stage=first.name)
        graph = graph.replace_stage(replace(each, attach=attach))
    return graph


# --- all stages together ---------------------------------------------------------------------------------------------


def graph_problem(graph: StageGraph) -> tuple[str, Problem] | None:
    """What is wrong with the attachment of all stages together: which stage, and why; `None` if nothing is."""
    for stage in graph.stages:
        problem = None if stage.attach.kind == "root" else _stage_problem(graph, stage)
        if problem is not None:
            return stage.name, problem
    step = step_problem(graph)
    return None if step is None else (step[0], _problem(step[1], "`compute_root` it"))


def _stage_problem(graph: StageGraph, stage: Stage) -> Problem | None:
    if stage.attach.kind == "at":
        problem = _outside_problem(graph, stage, (stage.attach.stage, stage.attach.axis))
        if problem is not None:
            return problem
    if stage.attach.kind == "inline" and stage.statement.block:
        return None  # what it reads is there for the whole step, see `orders.refused`
    if stage.attach.kind in ("at", "inline"):
        problem = _overwritten(graph, stage)
        if problem is not None:
            return problem
    users = graph.consumers(graph.stages_on(stage.target)[0].name)
    places = [user.name for user in users] if stage.attach.kind == "inline" else [stage.name]
    for place in places:
        problem = _read_too_late(graph, stage, graph.runs_in(place))
        if problem is not None:
            return problem
    return _written_meanwhile(graph, stage)


def _written_meanwhile(graph: StageGraph, stage: Stage) -> Problem | None:
    """Why a stage cannot be made again in every visit of the loops around it: one of them writes what it reads.

    It may where each iteration of these loops reads and writes rows of its own: `S(n) +=! Y(n, d)` at `n` of `Y(n, d) /= S(n)`. It
    may as well where it reads no element that they write.
    """
    around: dict[str, set[str]] = {}
    inner = [stage]
    if stage.attach.kind == "inline":
        inner = list(final_users(graph, graph.stages_on(stage.target)[0].name))
        around |= {user.name: set(user.leaves) for user in inner}
    for each in inner:  # loops that are shared are another matter: their order is checked
        while each.attach.kind == "at":
            owner = graph.stage(each.attach.stage)
            around.setdefault(owner.name, set()).update(owner.leaves[: owner.leaves.index(each.attach.axis) + 1])
            each = owner
    for owner, leaves in around.items():
        writer = graph.stage(owner)
        storage = graph.storage_name(writer.target)
        if storage == graph.storage_name(stage.target) or storage not in graph.reads(stage):
            continue
        apart = all(_same_row(graph, stage, writer, root) for root in _roots_of(writer, leaves))
        if not (apart or _of_earlier_steps(graph, stage, writer) or _keeps_apart(graph, stage, writer)):
            reason = f"`{owner}` writes `{storage}`, which it reads, and makes it again afterwards"
            return _problem(reason, "`compute_root` it")
    return None


def _of_earlier_steps(graph: StageGraph, stage: Stage, writer: Stage) -> bool:
    """Whether a stage inside of a block reads, of what a statement of the block writes, only what earlier steps have made."""
    if len(writer.statement.steps) != 1 or not _in_step_of(graph, stage, writer):
        return False
    ((step, way),) = writer.statement.steps
    place = [each.name for each in writer.statement.output_indices].index(step)
    storage = graph.storage_name(writer.target)
    reads = [read for read in stage.statement.reads() if graph.storage_name(read.tensor) == storage]
    back = [(index(step) - from_expr(read.indices[place], Scope(indices={step: index(step)}))) * way for read in reads]
    return all(read.tensor == writer.target for read in reads) and all(by.is_constant and by.offset > 0 for by in back)


def _in_step_of(graph: StageGraph, stage: Stage, writer: Stage) -> bool:
    """Whether each point of a stage belongs to one step of a block, and is read by points of this step."""
    ((step, _),) = writer.statement.steps
    outputs = [each.name for each in stage.statement.output_indices]
    if step not in outputs:
        return False
    for user in graph.consumers(stage.name):
        reads = (read for read in user.statement.reads() if graph.storage_name(read.tensor) == stage.target)
        if any(read.indices[outputs.index(step)] != IndexVar(step) for read in reads):
            return False
        if user.statement.block != writer.statement.block and not _in_step_of(graph, user, writer):
            return False
    return True


def _keeps_apart(graph: StageGraph, stage: Stage, writer: Stage) -> bool:
    """Whether a stage reads no element that a later one writes; proved with integer sets."""
    try:
        return find_conflict(graph, stage, writer) is None
    except Unknown:
        return False


def _roots_of(stage: Stage, leaves: set[str]) -> set[str]:
    """The indices that differ between iterations of some loops."""
    from_roots = {root.name: {root.name} for root in stage.roots}
    for relation in stage.relations:
        roots = {root for parent in parents_of(relation) for root in from_roots[parent]}
        from_roots |= dict.fromkeys(children_of(relation), roots)
    return {root for leaf in leaves for root in from_roots[leaf]}


def _same_row(graph: StageGraph, stage: Stage, writer: Stage, root: str) -> bool:
    """Whether a stage whose only reader is `writer` reads, in a row of an index of it, what only that row writes."""
    if [user.name for user in graph.consumers(graph.stages_on(stage.target)[0].name)] != [writer.name]:
        return False
    places = [at for at, each in enumerate(writer.statement.output_indices) if each.name == root]
    storage = graph.storage_name(writer.target)
    reads = [read for read in stage.statement.reads() if graph.storage_name(read.tensor) == storage]
    uses = [read for read in writer.statement.reads() if read.tensor == stage.target]
    reduced = {each.name: index(f"{each.name} of {stage.name}") for each in stage.statement.reduction_indices}

    def follows(read: Read, place: int, use: Read) -> bool:
        """Whether the subscript is the index of the writer, once its subscripts stand for the indices of the stage."""
        given = zip(stage.statement.output_indices, use.indices, strict=True)
        scope = Scope(indices=reduced | {own.name: from_expr(subscript) for own, subscript in given})
        return read.tensor == writer.target and from_expr(read.indices[place], scope) == index(root)

    return any(all(follows(read, place, use) for read in reads for use in uses) for place in places)


def _overwritten(graph: StageGraph, stage: Stage) -> Problem | None:
    """Why all statements on a tensor cannot run before its first reader: a later one changes what that one reads."""
    family = graph.stages_on(stage.target)
    if len(family) == 1:
        return None
    last = graph.position(family[-1].name)
    readers = [user for user in graph.consumers(family[0].name) if graph.position(user.name) < last]
    for reader in (each for each in readers if each.attach.kind != "inline" or final_users(graph, each.name)):
        for writer in family:
            if graph.position(writer.name) > graph.position(reader.name):
                problem = _conflict(
                    graph, reader, writer, f"`{stage.target}` is written again after `{reader.name}` reads it"
                )
                if problem is not None:
                    return problem
    return None


def _read_too_late(graph: StageGraph, stage: Stage, place: str) -> Problem | None:
    """Why a stage cannot run at the place of a later one: what it reads is overwritten before."""
    read = set(graph.reads(stage)) - {graph.storage_name(stage.target)}
    for other in graph.stages[graph.position(stage.name) + 1 : graph.position(place)]:
        if graph.storage_name(other.target) in read:
            problem = _conflict(graph, stage, other, f"`{other.name}` writes what it reads before `{place}` runs")
            if problem is not None:
                return problem
    return None


def _conflict(graph: StageGraph, first: Stage, second: Stage, reason: str) -> Problem | None:
    """A problem if `second` writes an element that `first`, before it in the text, reads; proved with integer sets."""
    try:
        witness = find_conflict(graph, first, second)
    except Unknown as unknown:
        return _problem(f"{reason}, and it cannot be excluded that it is the same element ({unknown.reason})", "")
    return None if witness is None else _problem(f"{reason}: {witness.text()}", "", witness)


# --- what would be legal ---------------------------------------------------------------------------------------------


def attach_points(graph: StageGraph, producer: Stage) -> str:
    """The leaves at which a stage may be computed, as text; the first `MOST_POINTS`."""
    points = ["root"]
    users = final_users(graph, graph.stages_on(producer.target)[0].name)
    family = {stage.name for stage in graph.stages_on(producer.target)}
    for stage in (each for each in graph.stages if users and each.attach.kind != "inline"):
        if stage.name in family or any(owner in family for owner, _ in graph.attach_path(stage.name)):
            continue
        for leaf in stage.leaves:
            if (
                len(points) == MOST_POINTS
                or next(readers_outside(graph, producer, (stage.name, leaf)), None) is not None
            ):
                continue
            if graph_problem(attached_family(graph, producer, Attach("at", stage.name, leaf))) is None:
                points.append(f"`{stage.name}[{leaf}]`")
    return ", ".join(points)


__all__ = [
    "attach_points",
    "attach_problem",
    "attached_family",
    "final_users",
    "graph_problem",
    "inlined_family",
    "readers_outside",
    "shared_depth",
]
