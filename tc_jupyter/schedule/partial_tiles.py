"""Which loops can do what a split says of its last, partial tile (`split(..., tail=...)`).

`short`, `guard` and `mask` run every point once, so they only need loops that can say where the points end. A shifted tile computes
some results again. That gives the same ones if a result depends on nothing that its stage, or a stage inside of its loops, has
written, and if a sum is started and completed inside of one tile.

Worked example: in `C(i) +=! A(i,k)` the tiles of `i` may be shifted around the loop over `k`. Inside of it, every `k` would be
added twice to the results that two tiles share.

Source: Halide, `TailStrategy`.
"""

from __future__ import annotations

from .extents import open_constraints
from .intrinsics import first_reduction
from .legality import default_lineage
from .lineage import is_tested
from .stage import GPU_AXES, Split, Stage, StageGraph

Reason = tuple[str, str]
"""What is wrong, and what would be legal."""
_ONCE = '`tail="guard"`, which computes each point once'


def tail_problem(graph: StageGraph) -> tuple[Stage, str, str] | None:
    """The first split whose tail its loops cannot do: its stage, what is wrong, what would be legal; `None` if there is none."""
    for stage in graph.stages:
        for relation in (each for each in stage.relations if isinstance(each, Split) and each.tail):
            found = _problem(graph, stage, relation)
            if found is not None:
                reason, help = found
                said = f"`{stage.name}[{relation.parent}]` cannot have the tail `{relation.tail}`"
                return stage, f"{said}: {reason}", help
    return None


def _problem(graph: StageGraph, stage: Stage, relation: Split) -> Reason | None:
    full = relation.tail == "shift" or is_tested(stage, relation)
    if full and (stage.storage.layout or stage.storage.padded):
        return "its storage has whole tiles, whose ends are filled behind loops that are shorter", '`tail="short"`'
    if relation.tail == "short":
        related = default_lineage(stage)
        if related.tails.get(relation.parent) in open_constraints(stage, related):
            return "none of its loops can be shorter, as on GPU axes or after `fuse`", '`tail="guard"`'
    return _shift_problem(graph, stage, relation) if relation.tail == "shift" else None


def _shift_problem(graph: StageGraph, stage: Stage, relation: Split) -> Reason | None:
    target, statement = graph.storage_name(stage.target), stage.statement
    reader = next((each for each in (stage, *_made_again(graph, stage)) if target in graph.reads(each)), None)
    shares = stage.attach.kind == "with" or any(each.attach.kind == "with" for each in graph.attached(stage.name))
    if stage.kind(relation.parent) == "reduction":
        return "its iterations are combined, and some would be twice", _ONCE
    if statement.order or statement.block:
        return "its points have an order", _ONCE
    if reader is not None:
        return f"results are computed twice, and `{reader.name}` reads what the first time has written", _ONCE
    if shares:
        return "other stages share its loops", _ONCE
    if stage.tensorize is not None:
        return f"`{stage.tensorize.intrinsic}` reads whole tiles in their places", _ONCE
    return None if statement.operator == "=" else _sum_problem(stage, relation)


def _made_again(graph: StageGraph, stage: Stage) -> list[Stage]:
    """The stages before another one that may be computed in its loops, or in the place of its reads."""
    early = graph.stages[: graph.position(stage.name)]
    around = {each.name: {name for name, _ in graph.attach_path(each.name)} for each in early}
    return [each for each in early if each.attach.kind == "inline" or stage.name in around[each.name]]


def _sum_problem(stage: Stage, relation: Split) -> Reason | None:
    """A sum is of one tile, from start to end, if no loop over tiles is inside of it and no other thread does another tile."""
    if not stage.statement.initialize:
        return "it is combined onto what is there, and some results would be twice", _ONCE
    tiles, parts = stage.below((relation.outer,)), stage.below((relation.parent,))
    for leaf in stage.leaves[first_reduction(stage) :]:
        if leaf in tiles:
            reason = f"its reduction is around `{leaf}`, and some iterations would be combined twice"
            return reason, f"`reorder` `{leaf}` outwards"
    for leaf, kind in stage.annotations:
        if leaf in parts and kind in ("parallel", *GPU_AXES):
            return f"`{leaf}` is shared out, and two threads would sum up the same result", _ONCE
    return None


__all__ = ["tail_problem"]
