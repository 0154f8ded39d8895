"""Whether the loops of a stage with an order (`along`) still make every element before its own statement reads it.

Loops along indices that no self read moves in are as free as others. Of the rest a violation is a pair of points

    { (v, w) : v reads the element that w makes, w is before v as it is written, and the loops do not run w before v }

where loops that are parallel, vectors or bound to a GPU axis run all of their iterations at one time. Such a set is empty for all
sizes, or a point of it is the witness. The blocks of a GPU have no order whatever loop is around them. Its threads wait for each
other where an iteration of the loop around them ends (`waiting_loop`), and go through all loops inside by themselves.

Worked example: `Y(i) = (Y(i-1) else 0) + X(i) along i` with `parallel("Y", "i")`: with N = 2, (1) reads Y(0), which (0) makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from tc_jupyter.diagnostics import codes
from tc_jupyter.program import IndexVar, Read
from tc_jupyter.ranges import IntegerSet, Scope, SizeExpr, Unknown, from_expr, index

from .exact_sets import alternatives, axis_values, conditions_around
from .infer_bound import scope_of
from .legality import Problem, Witness, default_lineage, parts_of_loop
from .lineage import default_domain, steps_to
from .stage import GPU_AXES, GRID_AXES, THREAD_AXES, Split, Stage, StageGraph, children_of, parents_of

HERE, THERE = "1 ", "2 "
MOST_STEPS = 8
"""Steps of a temporary that take each other's place."""
_REFUSED = {
    "rfactor": "partial results would be made before what they read",
    "cache_write": "it reads what it has made where it makes it",
    "tensorize": "no intrinsic takes its points one after the other",
    "rebias": "it reads what it has made",
    "compute_at": "every visit would make again what comes before",
    "compute_inline": "it reads elements that it makes",
    "compute_with": "loops that are shared have no order of their own",
    "separate": "it reads what the next statement makes",
    "compute_root": "its block is one loop",
}


def refused(graph: StageGraph, primitive: str, names: tuple[object, ...]) -> tuple[Stage, str] | None:
    """A stage with an order that a primitive does not take, and why; `None` if it takes all that are named."""
    named = [stage for stage in graph.stages if stage.name in names]
    if primitive == "compute_at":
        named = [stage for stage in named if stage.name == names[0]]
    if primitive in ("separate", "compute_at"):
        named = [each for stage in named for each in graph.stages_on(stage.target)]
    if primitive == "cache_read":
        own = [
            stage for stage in named if stage.name in names[1:] and stage.statement.order and stage.target == names[0]
        ]
        return (own[0], "a copy would be made before what it copies") if own else None
    if primitive == "cache_write":
        named = [stage for stage in named if not stage.statement.block or _is_handed_on(graph, stage)]
    if primitive == "compute_inline":
        named = [stage for stage in named if not _is_of_one_step(graph, stage)]
    if primitive == "compute_root":
        named = [stage for stage in named if stage.statement.block and stage.attach.kind in ("with", "inline")]
    ordered = next((stage for stage in named if stage.statement.order), None)
    return None if ordered is None or primitive not in _REFUSED else (ordered, _REFUSED[primitive])


def _is_handed_on(graph: StageGraph, stage: Stage) -> bool:
    """Whether a statement of the block that makes a tensor reads what another step has made of it."""
    members = [each for each in graph.stages if each.statement.block == stage.statement.block]
    reads = [(each, read) for each in members for read in each.statement.reads() if read.tensor == stage.target]
    return not all(_in_step(graph, read, each) for each, read in reads)


def _is_of_one_step(graph: StageGraph, stage: Stage) -> bool:
    """Whether all that read what a statement of a block makes do so later in the same step, and find what it reads as it was."""
    block, at = stage.statement.block, graph.position(stage.name)
    users = [each for each in graph.stages if stage.target in map(graph.storage_name, each.statement.tensors_read)]
    if not block or any(each.statement.block != block or graph.position(each.name) <= at for each in users):
        return False
    last = max((graph.position(each.name) for each in users), default=at)
    replaced = {each.target for each in graph.stages[at + 1 : last + 1]}
    reads = [(each, read) for each in users for read in each.statement.reads() if read.tensor == stage.target]
    plain = all(_in_step(graph, read, user) for user, read in reads)
    own = (read for read in stage.statement.reads() if graph.storage_name(read.tensor) in replaced)
    return plain and len(reads) > 0 and not any(_in_step(graph, read, stage) is not False for read in own)


def _in_step(graph: StageGraph, read: Read, stage: Stage) -> bool | None:
    """Whether a read is of the step of the statement that reads; `None` where that is not known, as of some other steps."""
    steps = {name for name, _ in stage.statement.steps}
    makers = graph.stages_on(graph.storage_name(read.tensor))
    places = [k for k, each in enumerate(makers[0].statement.output_indices) if each.name in steps] if makers else []
    if len(places) != len(steps) or read.tensor != makers[0].target:
        return None
    moves = [from_expr(read.indices[k]) - index(makers[0].statement.output_indices[k].name) for k in places]
    if not all(move.is_constant for move in moves):
        return None
    return not any(move.offset for move in moves)


def changed_order(old: StageGraph, new: StageGraph) -> tuple[Stage, Problem] | None:
    """The stage whose loops do not keep its order any more, and a witness; `None` if all do."""
    before = {stage.name: stage for stage in old.stages if stage.statement.order}
    places = {stage.name: stage.attach for stage in old.stages}
    for stage in (each for each in new.stages if before and places.get(each.name) != each.attach):
        block = new.stage(new.runs_in(stage.name)).statement.block
        # what is inside of a step follows its statements
        makers = (each for each in before.values() if not block or each.statement.block != block)
        late = next((each for each in makers if each.target in new.reads(stage)), None)
        if late is not None and new.position(stage.name) < new.position(late.name):
            message = f"`{stage.name}` would read `{late.target}` before `{late.name}` makes it"
            return late, Problem(codes.ILLEGAL_ORDER, message, "leave what it reads of its own target where it is")
        late = _made_after(new, stage) if stage.attach.kind == "root" else None
        if late is not None:
            message = f"`{stage.name}` would be made after the loop in which `{late.name}` reads it"
            return late, Problem(codes.ILLEGAL_ORDER, message, "leave what a block makes where it is")
    for stage in new.stages:
        if not stage.statement.order or _loops(before.get(stage.name)) == _loops(stage):
            continue
        problem = order_problem_of(new, stage)
        if problem is not None:
            return stage, problem
    return None


def _made_after(graph: StageGraph, stage: Stage) -> Stage | None:
    """A reader of a stage at root whose loops, those of its block, end before the stage is made."""
    at = graph.position(stage.name)
    return next((each for each in graph.consumers(stage.name) if graph.position(graph.runs_in(each.name)) < at), None)


def _loops(stage: Stage | None) -> object:
    return None if stage is None else (stage.leaves, stage.relations, stage.annotations)


def moving(stage: Stage) -> frozenset[str]:
    """The indices in which elements that a stage reads of its own target differ from the one that it makes."""
    outputs = stage.statement.output_indices
    return frozenset(name for name, _ in stage.statement.steps) | frozenset(
        own.name
        for read in stage.statement.self_reads
        for own, at in zip(outputs, read.indices, strict=True)
        if not (isinstance(at, IndexVar) and at.name == own.name)
    )


def steps_kept(graph: StageGraph, tensor: str) -> tuple[tuple[int, int], ...]:
    """The dimensions of a temporary that are steps of its block, and how many steps of each are needed at one time.

    It is empty where all of them are: it is a result, or read outside of the block, or at other distances than numbers. Of a loop
    inside of another one all steps are needed where other ones than the last are read in a later step around them.
    """
    writers = graph.stages_on(tensor)
    block = writers[0].statement.block if writers else ""
    if not block or tensor in {graph.storage_name(name) for name in graph.program.results}:
        return ()
    steps = writers[0].statement.steps
    outputs = [item.name for item in writers[0].statement.output_indices]
    own = (each.statement.target == tensor and not each.statement.left for each in writers)
    if not all(own) or any(each.statement.block != block for each in writers):
        return ()
    found: tuple[tuple[int, int], ...] = ()
    for level, (name, _) in enumerate(steps):
        most = _farthest(graph, writers, steps[: level + 1]) if name in outputs else None
        if most is None or most >= MOST_STEPS:
            break
        found = (*found, (outputs.index(name), most + 1))
    return found


def _farthest(graph: StageGraph, writers: tuple[Stage, ...], steps: tuple[tuple[str, int], ...]) -> int | None:
    """By how many steps the last of some loops is farther than what is read, at most; `None` where it is no number."""
    statement, target = writers[0].statement, writers[0].target
    outputs = [item.name for item in statement.output_indices]
    ends = [{each.root(name).dom for each in writers} for name, _ in steps]
    lasts = [
        first if way < 0 else end - 1
        for (first, end), (_, way) in zip((next(iter(e)) for e in ends), steps, strict=True)
    ]
    early, most = {each.name for each in graph.stages[: graph.position(writers[-1].name)]}, 0
    for stage in graph.stages:
        for read in stage.statement.reads():
            if graph.storage_name(read.tensor) != target:
                continue
            inside = graph.stage(graph.runs_in(stage.name)).statement.block == statement.block
            at = [read.indices[outputs.index(name)] for name, _ in steps]
            is_last = [from_expr(e, scope_of(graph)) == last for e, last in zip(at, lasts, strict=True)]
            after = not inside and stage.name not in early and all(len(each) == 1 for each in ends)
            if after and all(is_last) and read.tensor == target:
                continue  # the last step is there when the loop has ended
            scope = Scope(indices={name: index(name) for name, _ in steps})
            away = [(index(name) - from_expr(e, scope)) * way for (name, way), e in zip(steps, at, strict=True)]
            if not inside or read.tensor != target or not all(by.is_constant or by == away[-1] for by in away):
                return None
            if any(by.offset for by in away[:-1]) and is_last[-1] and len(ends[-1]) == 1:
                continue  # of an earlier step of a loop around
            if any(by.offset for by in away[:-1]) or not away[-1].is_constant or away[-1].offset < 0:
                return None
            most = max(most, away[-1].offset)
    return most


def order_problem_of(graph: StageGraph, stage: Stage) -> Problem | None:
    """Why the loops of a stage do not keep its order; `None` if they do."""
    bound = _on_grid_in_steps(stage)
    if bound is not None:
        said = f"`{stage.name}[{bound}]` is inside of steps, after which the blocks of a GPU do not wait for each other"
        return Problem(codes.ILLEGAL_ORDER, said, "bind it to threads, or loops around the steps to blocks")
    reader = _reader_inside(graph, stage)
    if _is_as_written(stage, _free(stage) if reader is None else _free(stage, _in_its_loops(graph, stage))):
        return None
    message = f"the loops of `{stage.name}` do not keep its order"
    help = "loops along other indices may run in any order"
    if stage.statement.block:
        return Problem(codes.ILLEGAL_ORDER, f"{message}: the statements of a block are done step by step", help)
    if reader is not None:
        said = f"{message}: `{reader}`, which is computed in them, reads what steps before have made"
        return Problem(codes.ILLEGAL_ORDER, said, "leave the loops of the order outermost")
    try:
        witness = _witness(graph, stage)
    except Unknown as unknown:
        said = f"{message}: it cannot be excluded that an element is read before it is made ({unknown.reason})"
        return Problem(codes.ILLEGAL_ORDER, said, help)
    return None if witness is None else Problem(codes.ILLEGAL_ORDER, f"{message}: {witness.text()}", help, witness)


def _in_its_loops(graph: StageGraph, stage: Stage) -> list[Stage]:
    """The other stages, of no block, that are computed in the loops of one."""
    others = (each for each in graph.stages if each is not stage and not each.statement.block)
    return [each for each in others if graph.runs_in(each.name) == stage.name]


def _reader_inside(graph: StageGraph, stage: Stage) -> str | None:
    """A stage in the loops of one with an order that reads what this one has made before."""
    return next((each.name for each in _in_its_loops(graph, stage) if stage.target in graph.reads(each)), None)


def _on_grid_in_steps(stage: Stage) -> str | None:
    """A loop inside of the steps of a block that the blocks of a GPU would take."""
    steps = {name for name, _ in stage.statement.steps}
    for relation in stage.relations:
        if steps & set(parents_of(relation)):
            steps |= set(children_of(relation))
    last = max((place for place, leaf in enumerate(stage.leaves) if leaf in steps), default=None)
    inside = () if last is None else stage.leaves[last + 1 :]
    return next((leaf for leaf in inside if stage.annotation(leaf) in GRID_AXES), None)


def waiting_loop(stage: Stage) -> str | None:
    """The loop at the end of whose iterations the threads of a block wait for what others of them have made."""
    axes = [leaf for leaf in stage.leaves if stage.annotation(leaf) in THREAD_AXES]
    if not stage.statement.order or stage.statement.block or not set(axes) - _free(stage):
        return None
    around = [leaf for leaf in stage.leaves[: stage.leaves.index(axes[0])] if stage.annotation(leaf) not in GPU_AXES]
    return around[-1] if around else None


def _free(stage: Stage, inside: Sequence[Stage] = ()) -> set[str]:
    """The axes of indices that no self read moves in.

    Args:
        inside: stages in the loops through which the stage reads itself, too.
    """
    free = {root.name for root in stage.roots if root.kind == "output"} - moving(stage)
    if inside:
        free = {name for name in free if _is_shared(name, [stage, *inside])}
    for relation in stage.relations:
        if free >= set(parents_of(relation)):
            free |= set(children_of(relation))
    return free


def _is_shared(name: str, stages: Sequence[Stage]) -> bool:
    """Whether all stages read what they make of each other at their own value of an index of one name."""
    outputs = {each.target: [item.name for item in each.statement.output_indices] for each in stages}
    reads = ((each, read) for each in stages for read in each.statement.reads() if read.tensor in outputs)
    return all(
        isinstance(at, IndexVar) and at.name == name and name in outputs[each.target]
        for each, read in reads
        for own, at in zip(outputs[read.tensor], read.indices, strict=True)
        if own == name
    )


def _in_time(stage: Stage) -> list[str]:
    """The loops as a GPU goes through them: blocks, what is around the threads, threads, what is inside of them."""
    kinds = {leaf: stage.annotation(leaf) for leaf in stage.leaves}
    blocks = [leaf for leaf in stage.leaves if kinds[leaf] in GRID_AXES]
    threads = [leaf for leaf in stage.leaves if kinds[leaf] in THREAD_AXES]
    first = stage.leaves.index(threads[0]) if threads else len(stage.leaves)
    around, inside = (
        [leaf for leaf in part if kinds[leaf] not in GPU_AXES] for part in (stage.leaves[:first], stage.leaves[first:])
    )
    return [*blocks, *around, *threads, *inside]


def _is_as_written(stage: Stage, free: set[str]) -> bool:
    """Whether the loops that matter are those of the order, one after the other and outermost, or parts of them in place.

    Args:
        free: axes that do not matter.
    """
    loops = [name for name, _ in stage.statement.order if name not in free]
    for relation in stage.relations:
        if isinstance(relation, Split) and relation.parent in loops:
            place = loops.index(relation.parent)
            loops[place : place + 1] = [relation.outer, relation.inner]
        elif set(parents_of(relation)) & set(loops):
            return False
    left = [leaf for leaf in stage.leaves if leaf not in free]
    shared = () if stage.statement.block else [leaf for leaf in left if stage.annotation(leaf) in GPU_AXES]
    return left[: len(loops)] == loops and not shared and not any(_at_once(stage, leaf) for leaf in loops)


def _at_once(stage: Stage, leaf: str) -> bool:
    return stage.annotation(leaf) not in (None, "unroll")


def _witness(graph: StageGraph, stage: Stage) -> Witness | None:
    """The smallest pair of points in the wrong order; raises `Unknown`."""
    here, there = ({root.name: index(mark + root.name) for root in stage.roots} for mark in (HERE, THERE))
    dims = (*(HERE + root.name for root in stage.roots), *(THERE + root.name for root in stage.roots))
    inside = [e for own in (here, there) for root in stage.roots for e in _within(own[root.name], root.dom)]
    scope = Scope(sizes=scope_of(graph).sizes, indices=here)
    around = conditions_around(stage.statement.value, scope)
    mine, theirs = _times(stage, here), _times(stage, there)
    at_once = [
        _at_once(stage, leaf) for leaf in _in_time(stage) for _ in parts_of_loop(stage, default_lineage(stage), leaf)
    ]
    for read in stage.statement.self_reads:
        outputs = zip(stage.statement.output_indices, read.indices, strict=True)
        same = [there[own.name] - from_expr(at, scope) for own, at in outputs]
        for guard in alternatives(around[id(read)]):
            for before in (True, False) if _replaces(stage) else (True,):
                times = (mine, theirs) if before else (theirs, mine)
                for (written, equal), (run, level) in product(
                    _as_written(stage, here, there, before), list(_not_before(*times, at_once))
                ):
                    sides = [*inside, *guard, written, *run]
                    found = IntegerSet.build(dims, sides, [*same, *equal, *level], True).smallest()
                    if found is not None:
                        return _named(graph, stage, read, found)
    return None


def _replaces(stage: Stage) -> bool:
    """Whether an earlier statement has made the elements, too, so that those that come later are read as they were."""
    return stage.statement.name != stage.target


def _within(value: SizeExpr, dom: tuple[SizeExpr, SizeExpr]) -> tuple[SizeExpr, SizeExpr]:
    return value - dom[0], dom[1] - 1 - value


def _times(stage: Stage, point: dict[str, SizeExpr]) -> list[SizeExpr]:
    """When each loop runs a point; of fused loops without a number inside, both."""
    domain, related = default_domain(stage), default_lineage(stage)
    starts = {name: steps_to(stage, domain, name, value) for name, value in point.items()}
    parts = [part for leaf in _in_time(stage) for part in parts_of_loop(stage, related, leaf)]
    values = axis_values(stage, related, starts, frozenset(parts))
    return [values[part] for part in parts]


def _as_written(
    stage: Stage, here: dict[str, SizeExpr], there: dict[str, SizeExpr], before: bool
) -> Iterator[tuple[SizeExpr, list[SizeExpr]]]:
    """The point that makes an element is before the one that reads it, or behind it, in the order as it is written."""
    steps = [(here[name] - there[name]) * (step if before else -step) for name, step in stage.statement.order]
    for place, step in enumerate(steps):
        yield step - 1, steps[:place]


def _not_before(
    late: list[SizeExpr], early: list[SizeExpr], at_once: list[bool]
) -> Iterator[tuple[list[SizeExpr], list[SizeExpr]]]:
    """The loops do not run the early point first: at the first loop in which they differ it is later, or at the same time."""
    for place, (a, b) in enumerate(zip(late, early, strict=True)):
        level = [x - y for x, y in zip(late[:place], early[:place], strict=True)]
        yield [b - a - 1], level
        if at_once[place]:
            yield [a - b - 1], level


def _named(graph: StageGraph, stage: Stage, read: Read, found: dict[str, int]) -> Witness:
    sizes = {name: found.get(name, 1) for name in graph.program.sizes}
    here, there = (tuple(found[mark + root.name] for root in stage.roots) for mark in (HERE, THERE))
    count = len(stage.statement.output_indices)
    outputs = [root.name for root in stage.roots if root.kind == "output"]
    element = tuple(found[THERE + name] for name in outputs)[:count]
    return Witness(sizes, read.tensor, element, stage.name, there, stage.name, here, "reads")


__all__ = ["changed_order", "moving", "order_problem_of", "refused", "steps_kept", "waiting_loop"]
