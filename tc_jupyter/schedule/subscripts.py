"""Subscripts in their shortest form, whatever they were written as.

Worked example: where `y in 0:H`, `X((y + H) % H, ((x + s) % W + W) % W)` is read as `X(y, (x + s) % W)`.

Statements come here when their stages are made, and again when others are written into them: templates and loops see what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tc_jupyter.program import Binary, Expr, Read, rebuild, rewrite, walk
from tc_jupyter.ranges import (
    Box,
    Choice,
    Opaque,
    Scope,
    SizeExpr,
    decided,
    from_expr,
    interval,
    keeps_its_form,
    nonnegative,
    to_expr,
)

from .infer_bound import scope_of
from .stage import Stage, StageGraph

COSTLY = frozenset(("//", "%", "min", "max"))
"""What is left out where possible; an expression without it stays as it was written."""


def shortened(graph: StageGraph, stage: Stage) -> Stage:
    """The stage with shorter subscripts, where its sizes are 1 or more."""
    scope = scope_of(graph)
    box = {root.name: (root.dom[0], root.dom[1] - 1) for root in stage.roots}
    known: dict[Expr, Expr] = {}  # the reads of a stencil have few different subscripts

    def shorter(index: Expr) -> Expr:
        if index not in known:
            known[index] = _shorter(index, box, scope)
        return known[index]

    def rule(expr: Expr) -> Expr | None:
        if not isinstance(expr, Read):
            return None
        indices = tuple(map(shorter, expr.indices))
        return None if indices == expr.indices else rebuild(expr, indices)

    value = rewrite(stage.statement.value, rule)
    if value is stage.statement.value:
        return stage
    return replace(stage, statement=replace(stage.statement, value=value))


def _shorter(index: Expr, box: Mapping[str, tuple[SizeExpr, SizeExpr]], scope: Scope) -> Expr:
    cost = _cost(index)
    if not cost[0] or keeps_its_form(index):
        return index
    found = from_expr(index, scope)
    if any(isinstance(atom, Choice | Opaque) for atom in found.atoms()):
        return index
    short = to_expr(decided(found, box))
    return short if _cost(short) < cost else index


def _cost(index: Expr) -> tuple[int, int]:
    """How many costly operations there are, and how many nodes."""
    nodes = list(walk(index))
    return sum(isinstance(node, Binary) and node.op in COSTLY for node in nodes), len(nodes)


def is_inside(boxes: Mapping[str, Box], user: Stage, read: Read) -> bool:
    """Whether a read is proved to be inside its tensor at every point, whatever the conditions around it."""
    ranges = {root.name: (root.dom[0], root.dom[1] - 1) for root in user.roots}
    for subscript, (low, high) in zip(read.indices, boxes[read.tensor].bounds, strict=True):
        found = interval(from_expr(subscript), ranges)
        if found.lower is None or found.upper is None:
            return False
        if not nonnegative(found.lower - low) or not nonnegative(high - 1 - found.upper):
            return False
    return True
