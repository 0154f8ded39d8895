"""What the axes of one stage have to do with each other: values of roots in terms of leaves, extents, and constraints at tails.

Worked example: root `i` over `0:n`, split by 16. `values["i"]` is `16*i.outer + i.inner`, `extents` of the leaves are
`(n + 15)//16` and 16, and `16*i.outer + i.inner < n` is the one constraint (none if 16 divides `n`).

Source: TVM, "InferBound Pass", PassDownDomain and PassUpDomain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tc_jupyter.program import Expr
from tc_jupyter.ranges import (
    Name,
    SizeExpr,
    constant,
    floor_div,
    maximum,
    minimum,
    mod,
    nonnegative,
    of_atom,
    to_expr,
)

from .stage import Fuse, IterVar, Skew, Split, Stage, children_of, parents_of

Domain = Mapping[str, tuple[SizeExpr, SizeExpr]]
"""Per root: smallest value and extent."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The axes of a stage over one domain.

    Attributes:
        values: every axis in terms of leaf variables; roots with their minimum, derived axes from 0.
        extents: number of values of every axis, without tails (TVM's pass down).
        factors: per split axis the length of a full inner loop.
        constraints: `value < limit`, what tails and fronts leave to check; every leaf runs from 0 to its extent.
        tails: per split axis the one that its last tile leaves.
        tested: those that are looked at in each point, though loops could end where they say.
        leaves: the loop variable of every leaf, and one for the components of a fold, which have no loop.
    """

    values: Mapping[str, SizeExpr]
    extents: Mapping[str, SizeExpr]
    factors: Mapping[str, SizeExpr]
    constraints: tuple[tuple[SizeExpr, SizeExpr], ...]
    tails: Mapping[str, tuple[SizeExpr, SizeExpr]]
    tested: frozenset[tuple[SizeExpr, SizeExpr]]
    leaves: Mapping[str, SizeExpr]

    def leaf(self, name: str) -> SizeExpr:
        """The loop variable of a leaf."""
        return self.leaves[name]


def default_domain(stage: Stage) -> dict[str, tuple[SizeExpr, SizeExpr]]:
    """The default range of every root, as minimum and extent."""
    return {root.name: (root.dom[0], root.extent) for root in stage.roots}


def lineage(stage: Stage, domain: Domain, variable: Callable[[str], str]) -> Lineage:
    """Relate the axes of `stage` while its roots run over `domain`; `variable` names the loop variable of a leaf."""
    extents = {root: extent for root, (_, extent) in domain.items()}
    factors: dict[str, SizeExpr] = {}
    for relation in stage.relations:
        if isinstance(relation, Split):
            extent = extents[relation.parent]
            factor = _factor(relation, extent)
            factors[relation.parent] = factor
            extents[relation.outer] = _whole(ceil_div(extent, factor))
            # a tail is a constraint, so that nested splits see the factor and not `min(factor, extent)`
            extents[relation.inner] = minimum(factor, extent) if extent.is_constant else factor
        elif isinstance(relation, Fuse):
            extents[relation.fused] = extents[relation.outer] * extents[relation.inner]
        else:
            outer, inner = extents[relation.outer], extents[relation.inner]
            extents[relation.front] = relation.factor * (outer - 1) + inner
            extents[relation.place] = minimum(outer, ceil_div(inner, relation.factor))
    parts = (stage.statement.part,) if stage.statement.part else ()
    relative = {leaf: bounded(variable(leaf), extents[leaf]) for leaf in (*stage.leaves, *parts)}
    leaves = dict(relative)
    constraints: list[tuple[SizeExpr, SizeExpr]] = []
    tails: dict[str, tuple[SizeExpr, SizeExpr]] = {}
    tested: list[tuple[SizeExpr, SizeExpr]] = []
    for relation in reversed(stage.relations):
        if isinstance(relation, Split):
            factor, extent, inner = factors[relation.parent], extents[relation.parent], relative[relation.inner]
            value = relative[relation.parent] = tile_start(relation, factor, extent, relative[relation.outer]) + inner
            if mod(extent, factor) != constant(0):
                tails[relation.parent] = tail = (inner if relation.tail == "shift" else value, extent)
                constraints.append(tail)
                tested += [tail] if is_tested(stage, relation) else []
        elif isinstance(relation, Fuse):
            fused, inner = relative[relation.fused], extents[relation.inner]
            relative[relation.outer] = floor_div(fused, inner)
            relative[relation.inner] = mod(fused, inner)
        else:
            front, place = relative[relation.front], relative[relation.place]
            first, end = on_front(relation, extents, front)
            relative[relation.outer] = first + place
            relative[relation.inner] = front - relation.factor * (first + place)
            constraints.append((place, end - first))
    values = {
        axis: counted(stage, domain, axis, value) if axis in domain else value for axis, value in relative.items()
    }
    firsts = {variable(leaf): constant(0) for leaf in _within_tiles(stage)}
    constraints += [(value.substitute(values).substitute(firsts), limit) for value, limit in stage.limits]
    return Lineage(values, extents, factors, tuple(constraints), tails, frozenset(tested), leaves)


def tile_start(relation: Split, factor: SizeExpr, extent: SizeExpr, outer: SizeExpr) -> SizeExpr:
    """The first value of a tile, counted from 0; one that is shifted ends where its parent does, if that is long enough."""
    start = outer * factor
    if relation.tail != "shift" or mod(extent, factor) == constant(0):
        return start
    return minimum(start, maximum(extent - factor, constant(0)))


def is_tested(stage: Stage, relation: Split) -> bool:
    """Whether the points of a partial tile have a condition around them: a mask is one where no loop inside is a vector."""
    if relation.tail != "mask":
        return relation.tail == "guard"
    return not stage.below((relation.inner,)) & {leaf for leaf, kind in stage.annotations if kind == "vectorize"}


def on_front(relation: Skew, extents: Mapping[str, SizeExpr], front: SizeExpr) -> tuple[SizeExpr, SizeExpr]:
    """The first value of the outer loop on a front, and the end of its values; none where there is no inner iteration."""
    outer, inner = extents[relation.outer], extents[relation.inner]
    first = maximum(constant(0), ceil_div(front - inner + 1, relation.factor))
    return first, minimum(outer, floor_div(front, relation.factor) + 1)


def counted(stage: Stage, domain: Domain, root: str, count: SizeExpr) -> SizeExpr:
    """The value of a root after so many steps of its loop."""
    low, extent = domain[root]
    return low + extent - 1 - count if stage.runs_down(root) else low + count


def steps_to(stage: Stage, domain: Domain, root: str, value: SizeExpr) -> SizeExpr:
    """After how many steps of its loop a root has a value."""
    low, extent = domain[root]
    return low + extent - 1 - value if stage.runs_down(root) else value - low


def _within_tiles(stage: Stage) -> set[str]:
    """The loops inside the tiles of a reduction that are computed whole: there is such a tile where there is its first point."""
    inside: set[str] = set()
    for relation in stage.relations if stage.storage.whole else ():
        if isinstance(relation, Split) and stage.kind(relation.parent) == "reduction":
            inside.add(relation.inner)
        if inside & set(parents_of(relation)):
            inside |= set(children_of(relation))
    return inside & set(stage.leaves)


def _whole(parts: SizeExpr) -> SizeExpr:
    """A number of parts; at most one part is one, and the loop inside it has no iteration if there is nothing to do."""
    return constant(1) if parts.limits[1] == 1 else parts


def bounded(name: str, extent: SizeExpr) -> SizeExpr:
    """A loop variable that runs from 0 to `extent`: its limits let quotients and remainders simplify."""
    most = extent.limits[1]
    return of_atom(Name("index", name, (0, None if most is None else max(0, most - 1))))


def _factor(relation: Split, extent: SizeExpr) -> SizeExpr:
    if relation.factor is not None:
        return constant(relation.factor)
    assert relation.nparts is not None
    parts = ceil_div(extent, constant(relation.nparts))
    return parts if nonnegative(parts - 1) else _at_least_one(parts)


def _at_least_one(value: SizeExpr) -> SizeExpr:
    return -minimum(-value, constant(-1))


def ceil_div(value: SizeExpr, divisor: SizeExpr | int) -> SizeExpr:
    """`ceil(value / divisor)` for a divisor of at least 1."""
    return (value + divisor - 1) // divisor


@dataclass(frozen=True, slots=True)
class LeafDomain:
    """One reduction leaf made an index of its own (`rfactor`).

    Attributes:
        roots: the reduction indices of the partial result: the leaves that come from the same roots, and all other roots.
        values: the old reduction indices in terms of the new ones.
        limits: `value < limit`, what tails of these leaves leave to check, in terms of the new indices.
        family: all axes that come from the same roots.
    """

    roots: tuple[IterVar, ...]
    values: Mapping[str, Expr]
    limits: tuple[tuple[SizeExpr, SizeExpr], ...]
    family: frozenset[str]

    def index(self, name: str) -> IterVar:
        """The new index of that name."""
        return next(root for root in self.roots if root.name == name)


def leaf_domain(stage: Stage, axis: str) -> LeafDomain:
    """Rewrite the reduction roots behind leaf `axis` as their leaves, each an index over its whole range."""
    family = _family(stage, axis)
    related = lineage(stage, default_domain(stage), lambda leaf: leaf)
    roots: list[IterVar] = []
    for leaf in stage.leaves:
        if leaf in family:
            roots.append(IterVar(leaf, "reduction", (constant(0), related.extents[leaf])))
    old = [root for root in stage.roots if root.kind == "reduction" and root.name in family]
    roots += [root for root in stage.roots if root.kind == "reduction" and root.name not in family]
    leaves = {leaf for leaf in stage.leaves if leaf in family}
    tails = related.constraints[: len(related.constraints) - len(stage.limits)]  # `rfactor` moves the limits itself
    limits = tuple((value, limit) for value, limit in tails if value.indices & leaves)
    return LeafDomain(tuple(roots), {root.name: to_expr(related.values[root.name]) for root in old}, limits, family)


def _family(stage: Stage, axis: str) -> frozenset[str]:
    """All axes connected with `axis` through relations."""
    family = {axis}
    for _ in stage.relations:
        for relation in stage.relations:
            members = {*parents_of(relation), *children_of(relation)}
            if members & family:
                family |= members
    return frozenset(family)
