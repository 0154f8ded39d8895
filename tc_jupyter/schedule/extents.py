"""How long every loop of a stage runs, given the loops around it, and what no loop length can say.

Worked example: `i` over `0:n` split by 16. With `i.outer` outside, `i.inner` runs `min(16, n - 16*i.outer)` times. With the two
loops exchanged, `i.inner` runs 16 times and `i.outer` `ceil((n - i.inner)/16)` times: no guard in either order.
"""

from __future__ import annotations

from tc_jupyter.ranges import SizeExpr, constant, floor_div, minimum, nonnegative

from .infer_bound import variable
from .lineage import Lineage
from .stage import GPU_AXES, Split, Stage, StageGraph

Constraint = tuple[SizeExpr, SizeExpr]
"""`value < limit`."""


def loop_extent(stage: Stage, related: Lineage, leaf: str, placed: frozenset[str]) -> SizeExpr:
    """Iterations of a leaf inside the loops `placed`: exact where constraints are sums of loops.

    A loop bound to a GPU axis has one length in the whole launch; its tail is left to a guard. So has an unrolled loop of a stage
    on GPU axes, and one whose length has no more than an upper limit: registers need constant indices.
    """
    extent = related.extents[leaf]
    if _is_bounded(stage, related, leaf):
        return constant(extent.limits[1] or 0)
    if _is_uniform(stage, related, leaf):
        return extent
    if extent == constant(1) and _has_inner(stage, leaf, placed):
        return extent  # one part: the loop inside it ends where the constraint says
    for value, limit in related.constraints:
        if _is_started(stage, leaf, value) or (value, limit) in related.tested:
            continue
        most = _tail(stage, leaf, placed, value, limit)
        if most is not None and not nonnegative(most - extent):
            extent = most if nonnegative(extent - most) else minimum(extent, most)
    return extent


def open_constraints(stage: Stage, related: Lineage, reductions: bool = True) -> tuple[Constraint, ...]:
    """The constraints that loop lengths do not imply, to be tested at each point; without `reductions` only those of outputs."""
    return tuple(
        (value, limit)
        for value, limit in related.constraints
        if (reductions or not _involves_reduction(stage, value)) and not _is_implied(stage, related, value, limit)
    )


def decided_at(graph: StageGraph, stage: Stage, related: Lineage, leaf: str) -> tuple[Constraint, ...]:
    """The open constraints that are tested around the whole body of a loop in which stages run: those that its variable decides.

    Where they do not hold nobody reads what these stages would compute. Threads that share memory must all come to its barriers, so
    stages on GPU axes test at each point, and so do stages that share loops.
    """
    attached = list(graph.attached(stage.name))
    if not any(each.attach.axis == leaf for each in attached) or any(
        other in GPU_AXES for _, other in stage.annotations
    ):
        return ()
    if stage.attach.kind == "with" or any(each.attach.kind == "with" for each in attached):
        return ()
    around = {variable(stage.name, each) for each in stage.leaves[: stage.leaves.index(leaf) + 1]}
    inside = {variable(stage.name, each) for each in stage.leaves} - around
    return tuple(
        (value, limit)
        for value, limit in open_constraints(stage, related)
        if not (value.indices | limit.indices) & inside
        and not _involves_reduction(stage, value)
        and all(stage.kind(each) == "output" for each in stage.leaves[: stage.leaves.index(leaf) + 1])
    )


def _is_started(stage: Stage, leaf: str, value: SizeExpr) -> bool:
    """Whether a loop runs over results that combine nothing, too, since every one is started: a constraint does not end it."""
    return stage.kind(leaf) == "output" and _involves_reduction(stage, value)


def _involves_reduction(stage: Stage, value: SizeExpr) -> bool:
    leaves = {variable(stage.name, leaf): leaf for leaf in stage.leaves}
    return any(stage.kind(leaves[name]) == "reduction" for name in value.indices if name in leaves)


def _has_inner(stage: Stage, leaf: str, placed: frozenset[str]) -> bool:
    """Whether `leaf` is the outer part of a split whose inner loop comes later."""
    return any(
        isinstance(each, Split) and each.outer == leaf and each.inner in stage.leaves and each.inner not in placed
        for each in stage.relations
    )


def _is_uniform(stage: Stage, related: Lineage, leaf: str) -> bool:
    kind = stage.annotation(leaf)
    on_grid = any(other in GPU_AXES for _, other in stage.annotations)
    return kind in GPU_AXES or (kind == "unroll" and on_grid) or _is_bounded(stage, related, leaf)


def _is_bounded(stage: Stage, related: Lineage, leaf: str) -> bool:
    """Whether an unrolled loop runs to its upper limit, which a promise on a size gives, and a constraint tells where it ends."""
    extent, name = related.extents[leaf], variable(stage.name, leaf)
    if stage.annotation(leaf) != "unroll" or extent.is_constant or extent.limits[1] is None:
        return False
    combined = stage.kind(leaf) == "reduction"
    return any(
        name in value.indices and (combined or not _involves_reduction(stage, value))
        for value, _ in related.constraints
    )


def _tail(stage: Stage, leaf: str, placed: frozenset[str], value: SizeExpr, limit: SizeExpr) -> SizeExpr | None:
    """Largest number of iterations of `leaf` that `value < limit` admits, loops that are still open at 0."""
    name = variable(stage.name, leaf)
    inside = {variable(stage.name, each) for each in stage.leaves if each not in placed}
    weights = _weights(value, inside)
    if weights is None or name not in weights or limit.indices & inside:
        return None
    rest = value.substitute(dict.fromkeys(weights, constant(0)))
    factor = weights[name]
    return floor_div(limit - rest + factor - 1, factor)


def _weights(value: SizeExpr, loops: set[str]) -> dict[str, SizeExpr] | None:
    """Per loop variable its weight, if `value` is a weighted sum of these loops with positive weights, and of anything else."""
    weights: dict[str, SizeExpr] = {}
    for name in sorted(value.indices & loops):
        split = value.linear_in(name)
        if split is None or not nonnegative(split[0] - 1):
            return None
        weights[name] = split[0]
    if any(weight.indices & weights.keys() for weight in weights.values()):
        return None  # a product of two loops
    return weights


def _is_implied(stage: Stage, related: Lineage, value: SizeExpr, limit: SizeExpr) -> bool:
    """Whether the innermost loop of a constraint ends where the constraint says."""
    used = [leaf for leaf in stage.leaves if variable(stage.name, leaf) in value.indices | limit.indices]
    if (value, limit) in related.tested or not used or limit.indices & {variable(stage.name, used[-1])}:
        return False
    last = used[-1]
    if _weights(value, {variable(stage.name, last)}) is None:
        return False
    return not (_is_uniform(stage, related, last) or _is_started(stage, last, value))
