"""A graph with numbers in place of its sizes: bounds of one call, where products of sizes with loops have become integer sets.

Worked example: at `N = 20` the root `i` over `0:N` runs over `0:20`, so a split by 4 has no tail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tc_jupyter.program import Const, Expr, Read, Size, int64, rewrite, walk
from tc_jupyter.ranges import Box, SizeExpr, constant

from .stage import IterVar, Stage, StageGraph


def sized_graph(graph: StageGraph, sizes: Mapping[str, int]) -> StageGraph:
    """The graph at given sizes: the same stages, loops and names; a size that is not given stays a symbol."""
    if not sizes:
        return graph
    graph = with_sizes(graph, {name: constant(value) for name, value in sizes.items()})
    return graph.with_stages(tuple(_with_values(stage, sizes) for stage in graph.stages))


def with_sizes(graph: StageGraph, known: Mapping[str, SizeExpr]) -> StageGraph:
    """The graph with other expressions in place of sizes, in the ranges of its loops and the boxes of its tensors."""
    boxes = {
        name: Box(tuple((low.substitute(known), high.substitute(known)) for low, high in box.bounds))
        for name, box in graph.boxes.items()
    }
    stages = tuple(_sized_stage(stage, known) for stage in graph.stages)
    return replace(graph.with_stages(stages), boxes=boxes)


def names_of(graph: StageGraph) -> set[str]:
    """The sizes, and whatever else has its place, in the ranges of loops and the boxes of tensors."""
    ends = [end for box in graph.boxes.values() for pair in box.bounds for end in pair]
    for stage in graph.stages:
        ends += [end for root in stage.roots for end in root.dom]
        ends += [end for pair in stage.limits for end in pair]
    return {name for end in ends for name in end.names - end.indices}


def required_sizes(graph: StageGraph) -> tuple[str, ...]:
    """What counting needs values of: the sizes, and integer scalars in ranges of loops and in subscripts."""
    scalars = graph.base.integer_scalars
    used = names_of(graph) if scalars else set[str]()
    for stage in graph.stages if scalars else ():
        for read in stage.statement.reads():
            used |= {node.tensor for index in read.indices for node in walk(index) if isinstance(node, Read)}
    return (*graph.program.sizes, *(name for name in scalars if name in used))


def _with_values(stage: Stage, sizes: Mapping[str, int]) -> Stage:
    def rule(expr: Expr) -> Expr | None:
        match expr:
            case Size(name=name) if name in sizes:
                return int64(sizes[name])
            case Read(tensor=name, indices=()) if name in sizes:
                return Const(sizes[name], expr.dtype)
            case _:
                return None

    return replace(stage, statement=replace(stage.statement, value=rewrite(stage.statement.value, rule)))


def _sized_stage(stage: Stage, known: Mapping[str, SizeExpr]) -> Stage:
    roots = tuple(
        IterVar(root.name, root.kind, (root.dom[0].substitute(known), root.dom[1].substitute(known)))
        for root in stage.roots
    )
    limits = tuple((value.substitute(known), limit.substitute(known)) for value, limit in stage.limits)
    return replace(stage, roots=roots, limits=limits)
