"""Where loops on the axes of a GPU launch may stand: the rules that concern several stages of one nest.

Blocks of a launch do not wait for each other, and each block and thread exists once, whatever nest of loops is around it. Hence,
inside the loops of another stage,

- no loop runs on blocks: the reader needs what the other blocks make;
- the threads that make a tensor must be able to show it to each other: it is in shared memory, or spread over the threads;
- what has global storage is complete before the blocks start, so no other loop is around it;
- a thread axis that a loop around has used up is free again only for such a tensor, which all threads make together, and no loop
  over them is longer than the one around it: more threads do not come there.

Source: TVM, "InferBound Pass", section on thread axes and memory scopes; CUDA C++ Programming Guide, "Thread Hierarchy".
"""

from __future__ import annotations

from tc_jupyter.ranges import nonnegative

from .infer_bound import infer_symbolic, path_points, relaxed_axes
from .inline import inject_inline, runs_before_launch
from .stage import Stage, StageGraph, constant_extent


def grid_problem(graph: StageGraph) -> tuple[str, str, str] | None:
    """The first rule that the nests break: name of the stage, what is wrong, what would be legal; `None` if none is."""
    for stage in graph.stages:
        if stage.attach.kind in ("at", "with"):
            problem = _global_problem(graph, stage) if graph.scope(stage) == "global" else None
            problem = problem or _own_loops_problem(graph, stage) or _loops_around_problem(graph, stage)
            if problem is not None:
                return (stage.name, *problem)
    return None


def _own_loops(graph: StageGraph, stage: Stage) -> tuple[str, ...]:
    """The leaves that a stage does not share with the stage whose loops it runs in."""
    if stage.attach.kind != "with":
        return stage.leaves
    return stage.leaves[graph.stage(stage.attach.stage).leaves.index(stage.attach.axis) + 1 :]


def _own_loops_problem(graph: StageGraph, stage: Stage) -> tuple[str, str] | None:
    if not any(kind.startswith(("blockIdx", "threadIdx")) for _, kind in stage.annotations):
        return None
    around = {graph.stage(owner).annotation(leaf): f"{owner}[{leaf}]" for owner, leaf in graph.attach_path(stage.name)}
    for leaf in _own_loops(graph, stage):
        axis = stage.annotation(leaf) or ""
        if axis.startswith("blockIdx"):
            reason = f"`{leaf}` runs on the blocks of the grid (`{axis}`), which do not wait for each other"
            return reason, "compute it at root, or bind other loops"
        if not axis.startswith("threadIdx"):
            continue
        together = stage.attach.kind == "at" and axis in relaxed_axes(graph, stage)
        if axis in around and not together:
            return f"`{leaf}` is bound to `{axis}`, and so is `{around[axis]}` around it", "bind one of them only"
        if stage.attach.kind == "at" and not together and stage.kind(leaf) == "output":
            reason = f"`{leaf}` runs on threads (`{axis}`), and no other thread sees its `{graph.scope(stage)}` storage"
            return reason, f'`storage("{stage.name}", "shared")` first, then `bind`'
        if axis in around and not _is_as_long(graph, stage, leaf, axis):
            reason = f"more iterations of `{leaf}` than `{around[axis]}` around it has threads may be on `{axis}`"
            return reason, f"split `{leaf}` by the number of threads first, and bind the inner loop"
    return None


def _is_as_long(graph: StageGraph, stage: Stage, leaf: str, axis: str) -> bool:
    """Whether a loop over threads inside another one on the same axis is never longer."""
    if runs_before_launch(graph, stage):
        return True
    outer = [
        constant_extent(graph.stage(owner), each)
        for owner, each in graph.attach_path(stage.name)
        if graph.stage(owner).annotation(each) == axis
    ]
    mine = constant_extent(stage, leaf)
    if mine is not None and all(threads is not None and mine <= threads for threads in outer):
        return True  # as it is written, whatever is asked for
    found = infer_symbolic(inject_inline(graph))
    own = found[stage.name].lineage.extents[leaf]
    return all(
        nonnegative(found[owner].lineage.extents[each] - own)
        for owner, each in graph.attach_path(stage.name)
        if graph.stage(owner).annotation(each) == axis
    )


def _global_problem(graph: StageGraph, stage: Stage) -> tuple[str, str] | None:
    """Loops around global storage: all of them are blocks, threads or tasks, which see one copy, or none of them is."""
    seen = path_points(graph, stage)
    path = graph.attach_path(stage.name)
    if stage.attach.kind != "at" or len(seen) in (0, len(path)):
        return None
    owner, leaf = seen[0]
    other, bound = next(loop for loop in path if loop not in seen)
    kind = graph.stage(other).annotation(bound)
    seen_by = f"all iterations of `{other}[{bound}]` (`{kind}`) see its global storage"
    reason = f"{seen_by}, but `{owner}[{leaf}]` around it runs in order"
    return reason, f'`storage("{stage.name}", "local")`, or attach it outside `{leaf}`'


def _loops_around_problem(graph: StageGraph, stage: Stage) -> tuple[str, str] | None:
    """Loops of the stage around that start inside the attach point: each of their blocks would need the whole."""
    host = graph.stage(stage.attach.stage)
    if not any(kind.startswith("blockIdx") for _, kind in host.annotations):
        return None
    for leaf in host.leaves[host.leaves.index(stage.attach.axis) + 1 :]:
        if (host.annotation(leaf) or "").startswith("blockIdx"):
            reason = f"`{leaf}` of `{host.name}`, a block of the grid, would run inside its place"
            return reason, f"keep `{leaf}` outside `{stage.attach.axis}`"
    return None
