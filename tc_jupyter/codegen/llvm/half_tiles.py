"""The last columns of a product, if they are at most half of a tile.

A tile of a product has two vectors of columns or more, as many as the registers hold. The code for less than a tile computes all of
them under a mask: of 33 columns in tiles of 32 the last one costs as much as 32. So that code has two versions, one for half of the
vectors.

Worked example: where a register has 16 elements,

    if min(N - 32*j.outer, 32) == 32                      if min(N - 32*j.outer, 32) == 32
      ... for j in 0:32: C += A * B                         ... for j in 0:32: C += A * B
    else                                            ->    else if N - 32*j.outer <= 16
      ... for j in 0:min(N - 32*j.outer, 32)                ... for j in 0:min(N - 32*j.outer, 16)
                                                          else
                                                            ... for j in 0:min(N - 32*j.outer, 32)

Nothing changes where the class of the call says that all columns are one tile of more than half.

Measured with AVX-512 (Zen 4), one thread, over tiles of 64 columns without it: 200 products of 33 x 72 x 33 0.80 of the time, of
40 x 40 x 40 0.81, of 45 x 45 x 45 0.77, of 50 x 50 x 50, where nothing is saved, 1.0 to 1.03.
"""

from __future__ import annotations

from collections.abc import Iterator

from tc_jupyter.loops import Block, For, If, Stmt, Store, walk_statements
from tc_jupyter.loops.rewrite import with_blocks, with_body
from tc_jupyter.program import Binary, DType, Expr, Size, int64, walk
from tc_jupyter.program.integers import minimum
from tc_jupyter.ranges import Facts
from tc_jupyter.schedule import Target

from .full_tiles import limited
from .strips import native_lanes


def half_tiles(block: Block, facts: Facts, target: Target) -> Block:
    """Apply the rule to all versions inside."""
    if not target.free_masks:
        return block
    return with_body(block, (_halved(stmt, facts, target) for stmt in block.body))


def _halved(stmt: Stmt, facts: Facts, target: Target) -> Stmt:
    if isinstance(stmt, If) and stmt.otherwise is not None and _adds_up(stmt.otherwise):
        for extent in _tests(stmt.condition):
            found = limited(extent)
            if found is None:
                continue
            rest, limit = found
            half = limit // 2
            if limit % 2 == 0 and half % _lanes(stmt.otherwise, target) == 0 and not _is_more(rest, half, limit, facts):
                few = _with_extent(stmt.otherwise, extent, minimum(rest, int64(half)))
                if few is not stmt.otherwise:
                    test = Binary("<=", rest, int64(half), DType.BOOL)
                    return If(stmt.condition, stmt.then, Block((If(test, few, stmt.otherwise),)))
    return with_blocks(stmt, lambda inner: half_tiles(inner, facts, target))


def _lanes(block: Block, target: Target) -> int:
    """Lanes of a register in all loops over vectors inside."""
    loops = (stmt for stmt in walk_statements(block) if isinstance(stmt, For) and stmt.kind == "vectorize")
    return max((native_lanes(loop, target) for loop in loops), default=1)


def _tests(condition: Expr) -> Iterator[Expr]:
    """The extents that a condition compares with their limits."""
    if isinstance(condition, Binary) and condition.op == "&&":
        yield from _tests(condition.left)
        yield from _tests(condition.right)
    elif isinstance(condition, Binary) and condition.op == "==":
        yield condition.left


def _adds_up(block: Block) -> bool:
    """Whether a loop inside adds to the same vectors again and again."""
    loops = [stmt for stmt in walk_statements(block) if isinstance(stmt, For) and stmt.kind == "serial"]
    return any(
        isinstance(inner, For)
        and inner.kind == "vectorize"
        and not inner.tail
        and any(isinstance(store, Store) and store.reduce is not None for store in inner.body.body)
        for loop in loops
        for inner in walk_statements(loop.body)
    )


def _is_more(rest: Expr, half: int, limit: int, facts: Facts) -> bool:
    """Whether there is one tile, of more than half."""
    sizes = {node.name for node in walk(rest) if isinstance(node, Size)}
    known = facts.get(*sizes) if len(sizes) == 1 else None
    return known is not None and known.least > half and known.most is not None and known.most <= limit


def _with_extent(block: Block, extent: Expr, shorter: Expr) -> Block:
    """The block with another length of its vectorised loops of that one."""
    return with_body(block, (_with_extent_of(stmt, extent, shorter) for stmt in block.body))


def _with_extent_of(stmt: Stmt, extent: Expr, shorter: Expr) -> Stmt:
    stmt = with_blocks(stmt, lambda inner: _with_extent(inner, extent, shorter))
    if isinstance(stmt, For) and stmt.kind == "vectorize" and stmt.extent == extent:
        return For(stmt.var, stmt.min, shorter, stmt.body, stmt.kind, stmt.axis, stmt.chunk)
    return stmt
