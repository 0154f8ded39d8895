"""Where a sum may run beyond its end: every point there adds a product with zeros.

A tile in shared memory that is filled with zeros beyond the end of a tensor is one such place; a packed copy for the CPU, whose
layout has tiles of just the length that the sum is split by, another one: the last tile is filled up when it is made. A sum over
whole tiles has loops of constant length, and matrix steps have no tail.

Worked example: `C(i,j) +=! A.cache(i,k) * B.cache(k,j)` with `k` split by 4, and both copies in tiles of 4 along `k`: of 13 steps
the last tile holds one and three zeros, and `C` adds 16 products. A part of a sum (`rfactor`) of `64*p + k < K`, whose 64 steps are
whole tiles, adds nothing of the next part, and what the last part adds beyond `K` is zero.
"""

from __future__ import annotations

from tc_jupyter.program import Binary, Cast, Expr, IndexVar, Read, Statement, walk
from tc_jupyter.program.integers import index_names
from tc_jupyter.ranges import from_expr

from .stage import IterVar, Split, Stage, StageGraph


def is_copy(statement: Statement) -> bool:
    """Whether a statement is `T(i, j) = S(i, j)`, with a conversion at most."""
    value = statement.value.operand if isinstance(statement.value, Cast) else statement.value
    return statement.operator == "=" and isinstance(value, Read) and all(isinstance(i, IndexVar) for i in value.indices)


def adds_zeros(graph: StageGraph, stage: Stage) -> bool:
    """Whether every point of a sum beyond the end of its split reductions adds zero."""
    inner = {relation.parent for relation in stage.relations if isinstance(relation, Split)}
    inner &= {root.name for root in stage.roots if root.kind == "reduction"}
    factors = _product_of(stage.statement.value)
    if stage.statement.operator != "+" or factors is None:
        return False
    zeros = [_is_zero_behind(graph, stage, read, inner) for read in factors]
    # a number that happens to be in memory times zero is zero, but for NaN and infinity
    return all(zeros) or (any(zeros) and all(read.dtype.is_integer for read in factors))


def _is_zero_behind(graph: StageGraph, stage: Stage, read: Read, inner: set[str]) -> bool:
    """Whether a factor is zero beyond the end of each of these reductions."""
    names = {name for index in read.indices for name in index_names(index)}
    if not inner <= names or not all(_ends_with(graph, stage, read, stage.root(axis)) for axis in inner):
        return False
    return _is_filled_up(graph, read.tensor) or all(
        _has_whole_tiles(graph, read, axis, _factors_of(stage, axis)) for axis in inner
    )


def _factors_of(stage: Stage, axis: str) -> set[int | None]:
    return {relation.factor for relation in stage.relations if isinstance(relation, Split) and relation.parent == axis}


def _has_whole_tiles(graph: StageGraph, read: Read, axis: str, factors: set[int | None]) -> bool:
    """Whether a tensor is a copy in tiles of just that length along an index, each filled up with zeros when it is made."""
    copies = graph.stages_on(read.tensor)
    dimension = next(number for number, index in enumerate(read.indices) if index == IndexVar(axis))
    if len(copies) != 1 or not is_copy(copies[0].statement):
        return False
    (copy,) = copies
    tiles = [tile for number, tile in copy.storage.layout or () if number == dimension and tile]
    root = copy.statement.output_indices[dimension].name
    splits = [each for each in copy.relations if isinstance(each, Split) and each.parent == root]
    inside = copy.storage.scope in ("auto", "global", "local") and len(tiles) == 1
    same = set(tiles) == factors == {split.factor for split in splits}
    return inside and same and all({split.outer, split.inner} <= set(copy.leaves) for split in splits)


def _ends_with(graph: StageGraph, stage: Stage, read: Read, axis: IterVar) -> bool:
    """Whether the range of an index ends where the tensor does: a copy holds zeros beyond, and no element that is left out."""
    mentions = [
        (from_expr(index), graph.boxes[read.tensor].bounds[number][1])
        for number, index in enumerate(read.indices)
        if any(node == IndexVar(axis.name) for node in walk(index))
    ]
    if len(mentions) != 1:
        return False
    (place, end), alone = mentions[0], from_expr(IndexVar(axis.name))
    return axis.dom[1] == end if place == alone else (place, end) in stage.limits and _has_whole_parts(stage, axis)


def _has_whole_parts(stage: Stage, axis: IterVar) -> bool:
    """Whether a part of a sum is so many whole tiles that only what lies beyond the whole sum is added to it."""
    length = axis.extent
    factors = _factors_of(stage, axis.name)
    return length.is_constant and all(factor is not None and length.constant % factor == 0 for factor in factors)


def _is_filled_up(graph: StageGraph, tensor: str) -> bool:
    """Whether a tensor is a copy that holds zeros beyond the end: one in shared memory, or a copy of such a copy."""
    copies = [each for each in graph.stages if each.target == tensor]
    return bool(copies) and all(
        copy.storage.padded
        and (
            copy.storage.scope == "shared"
            or (is_copy(copy.statement) and all(_is_filled_up(graph, read.tensor) for read in copy.statement.reads()))
        )
        for copy in copies
    )


def _product_of(value: Expr) -> list[Read] | None:
    """The reads of a product of reads, through conversions; `None` if it is anything else."""
    match value:
        case Read(indices=indices) if indices:
            return [value]
        case Cast(operand=inner):
            return _product_of(inner)
        case Binary(op="*", left=left, right=right):
            first, second = _product_of(left), _product_of(right)
            return None if first is None or second is None else first + second
        case _:
            return None


__all__ = ["adds_zeros", "is_copy"]
