"""Kernel -> kernel: a tile loop with a ragged end is printed twice, once with constant extents for full tiles.

Worked example: `for j in 0:min(x, 32) (vectorize): ...` becomes `if min(x, 32) == 32: for j in 0:32 (vectorize): ... else: ...`,
where the second loop is as it was. Tiles in registers were taken apart before, for all engines, by `loops.register_tails`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from tc_jupyter.loops import Allocate, Block, For, If, Stmt, Store, sub_blocks, walk_statements
from tc_jupyter.loops.rewrite import mapped_block, with_blocks, with_body
from tc_jupyter.program import Binary, Const, DType, Expr, int64
from tc_jupyter.program.integers import has_read, index_names

from .limits import upper_limit
from .polynomial import Polynomial, constant_value, polynomial

SHORT = "less than a tile"
"""Comment of a block whose tiles are hardly ever full (`overlap`, `peel`): `full_tiles` makes no second version of them."""


def without_short(block: Block) -> Block:
    """Mark the branches that are for less than a tile, so that `full_tiles` leaves them as they are.

    Worked example: in `if x >= 32: ... else: for j in 0:min(x, 32) (vectorize): ...` the second loop is never full.
    """
    return with_body(block, (_without_short(stmt) for stmt in block.body))


def _without_short(stmt: Stmt) -> Stmt:
    stmt = with_blocks(stmt, without_short)
    if isinstance(stmt, If) and stmt.otherwise is not None and _is_short(stmt.otherwise, stmt.condition):
        return replace(stmt, otherwise=Block((stmt.otherwise,), SHORT))
    return stmt


def _is_short(block: Block, condition: Expr) -> bool:
    """Whether no tile that is known where `block` starts is full if a condition `x >= 32` fails: all are of `min(x, 32)`."""
    if not isinstance(condition, Binary) or condition.op != ">=":
        return False
    there, limit = polynomial(condition.left), constant_value(condition.right)
    inside = {stmt.var for stmt in walk_statements(block) if isinstance(stmt, For)}
    return {_least(extent) for extent in Limited().inside(block) if not index_names(extent) & inside} == {
        (there, limit)
    }


def _least(extent: Expr) -> tuple[Polynomial, int] | None:
    """`(x, n)` of `min(x, n)` with a number."""
    found = limited(extent)
    return None if found is None else (polynomial(found[0]), found[1])


def limited(extent: Expr) -> tuple[Expr, int] | None:
    """As `_least`, with the expression itself."""
    match extent:
        case (
            Binary(op="min", left=Const(value=value), right=other)
            | Binary(op="min", left=other, right=Const(value=value))
        ):
            return other, int(value)
        case _:
            return None


def full_tiles(block: Block, bound: frozenset[str] = frozenset()) -> Block:
    """Version the innermost place where it is known whether all vectorised and unrolled loops have their full extent.

    Args:
        bound: loop variables known here.
    """
    return _full_tiles(block, bound, frozenset(), Limited())


def _full_tiles(block: Block, bound: frozenset[str], outer: frozenset[Expr], limited: Limited) -> Block:
    """As `full_tiles`; `outer` are extents that were known further out already and are versioned inside `block`."""
    if block.comment == SHORT:
        return block
    here = _ragged(block, bound, limited)
    for stmt in block.body:
        if here:
            here -= _postponed(stmt, bound, here, block, limited) - outer
    if here:
        deeper = _only_user(block, here)
        if deeper is not None:
            position, inner = deeper
            placed = with_blocks(inner, lambda child: _full_tiles(child, bound | _bound_by(inner), here, limited))
            return _around(block, position, position + 1, placed, bound, limited)
        users = [k for k, stmt in enumerate(block.body) if _uses(Block((stmt,)), here)]
        first, last = users[0], users[-1] + 1
        versions = _versions(Block(block.body[first:last]), bound, here, limited)
        return _around(block, first, last, versions, bound, limited)
    return with_body(block, (_full_tiles_inside(stmt, bound, limited) for stmt in block.body))


def _around(block: Block, first: int, last: int, versions: Stmt, bound: frozenset[str], limited: Limited) -> Block:
    """The block with `versions` in the place of the statements `first : last`; the others are versioned by themselves."""
    before, after = block.body[:first], block.body[last:]
    others = [[_full_tiles_inside(stmt, bound, limited) for stmt in part] for part in (before, after)]
    return replace(block, body=(*others[0], versions, *others[1]))


def _versions(block: Block, bound: frozenset[str], here: frozenset[Expr], limited: Limited) -> Stmt:
    """`if all extents are full: ... else: ...`."""
    condition: Expr | None = None
    for loop_extent in sorted(here, key=repr):
        limit = upper_limit(loop_extent)
        assert limit is not None
        test = Binary("==", loop_extent, int64(limit), DType.BOOL)
        condition = test if condition is None else Binary("&&", condition, test, DType.BOOL)
    assert condition is not None
    return If(condition, _full_tiles(fill(block, here), bound, frozenset(), limited), block)


def _bound_by(stmt: Stmt) -> frozenset[str]:
    return frozenset({stmt.var}) if isinstance(stmt, For) else frozenset()


def _only_user(block: Block, here: frozenset[Expr]) -> tuple[int, Stmt] | None:
    """The one statement that holds all loops with these extents, if the test may move into it.

    It may move into a loop only if the loop does other work in loops of its own, so that the test costs little there and less code
    is printed twice.
    """
    users = [(k, stmt) for k, stmt in enumerate(block.body) if _uses(Block((stmt,)), here)]
    if len(users) != 1:
        return None
    position, stmt = users[0]
    match stmt:
        case Allocate() | Block() | If():
            return position, stmt
        case For(kind="serial") if stmt.extent not in here and _has_other_loops(stmt.body, here):
            return position, stmt
        case _:
            return None


def _uses(block: Block, extents: frozenset[Expr]) -> bool:
    return any(isinstance(stmt, For) and stmt.extent in extents for stmt in walk_statements(block))


def _has_other_loops(block: Block, here: frozenset[Expr]) -> bool:
    """Whether there is a serial loop inside that holds none of the loops with these extents."""
    return any(
        isinstance(stmt, For) and stmt.kind == "serial" and not _uses(Block((stmt,)), here)
        for stmt in walk_statements(block)
    )


def _full_tiles_inside(stmt: Stmt, bound: frozenset[str], limited: Limited) -> Stmt:
    inner = bound | {stmt.var} if isinstance(stmt, For) else bound
    return with_blocks(stmt, lambda block: _full_tiles(block, inner, frozenset(), limited))


def _ragged(block: Block, bound: frozenset[str], limited: Limited) -> frozenset[Expr]:
    """Extents `min(constant, ...)` of vectorised and unrolled loops inside that are known where `block` starts."""
    return frozenset(extent for extent in limited.inside(block) if index_names(extent) <= bound)


class Limited:
    """Extents `min(constant, ...)` of vectorised and unrolled loops, without those of tiles that have one version (`SHORT`, masks).

    They are kept for every statement: each place asks for those of all others around it.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[Stmt, frozenset[Expr]]] = {}

    def inside(self, block: Block) -> frozenset[Expr]:
        """Those of the loops in a block."""
        if block.comment == SHORT:
            return frozenset()
        return frozenset().union(*map(self.of, block.body))

    def of(self, stmt: Stmt) -> frozenset[Expr]:
        """Those of a statement and the loops in it."""
        if id(stmt) not in self._found:
            own: frozenset[Expr] = frozenset((stmt.extent,)) if _is_ragged(stmt) else frozenset()
            self._found[id(stmt)] = stmt, own.union(*map(self.inside, sub_blocks(stmt)))
        return self._found[id(stmt)][1]


def _is_ragged(stmt: Stmt) -> TypeGuard[For]:
    return (
        isinstance(stmt, For)
        and stmt.kind in ("vectorize", "unroll")
        and stmt.tail != "mask"
        and constant_value(stmt.extent) is None
        and upper_limit(stmt.extent) is not None
        and not has_read(stmt.extent)
    )


def _postponed(
    stmt: Stmt, bound: frozenset[str], here: frozenset[Expr], block: Block, limited: Limited
) -> frozenset[Expr]:
    """Extents of `here` that occur in `stmt` alone, and that a loop inside it will version together with its own."""
    if any(limited.of(other) & here for other in block.body if other is not stmt):
        return frozenset()
    match stmt:
        case For(kind="serial" | "parallel"):
            inside = bound | {stmt.var}
            own = _ragged(stmt.body, inside, limited) - here
            writes = any(
                stmt.var in index_names(index)
                for store in walk_statements(stmt.body)
                if isinstance(store, Store)
                for index in store.indices
            )
            if writes and own:
                return here
            deeper = [_postponed(inner, inside, here, stmt.body, limited) for inner in stmt.body.body]
            return frozenset().union(*deeper) if writes else frozenset()
        case Allocate() | Block():
            inner_block = stmt.body if isinstance(stmt, Allocate) else stmt
            deeper = [_postponed(inner, bound, here, inner_block, limited) for inner in inner_block.body]
            return frozenset().union(*deeper)
        case _:
            return frozenset()


def fill(block: Block, extents: frozenset[Expr]) -> Block:
    """Replace these extents by the constants that limit them."""

    def rule(expr: Expr) -> Expr:
        limit = upper_limit(expr) if expr in extents else None
        return expr if limit is None else int64(limit)

    return mapped_block(block, rule)
