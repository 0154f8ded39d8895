"""Memory of temporaries that are not needed any more is that of later ones, so that what a tile works on stays in a cache.

    allocate A, B, C                      allocate A, B
      A = ...                               A = ...
      B = ... A ...               ->        B = ... A ...
      C = ... B ...                         A = ... B ...
      O = ... C ...                         O = ... A ...

Those that share memory have the same type, numbers as extents, and no statement in common; the extents are the largest of each
dimension. Small ones are left alone: they are on the stack, or in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tc_jupyter.loops import Allocate, Block, Buffer, Stmt, Store, walk_statements
from tc_jupyter.loops.rewrite import block_with_expressions, flat, with_blocks, with_body
from tc_jupyter.program import Expr, Read, int64
from tc_jupyter.schedule import tuning

from .polynomial import constant_value
from .state import touched_by


@dataclass(slots=True)
class _Shared:
    """Memory of one or more temporaries: the extents, the last statement that needs it so far, and whose it is."""

    buffer: Buffer
    last: int
    names: list[str]


def reuse(block: Block) -> Block:
    """The loops with fewer temporaries."""
    return with_body(block, map(_reused, block.body))


def _reused(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, Allocate):
        return with_blocks(stmt, reuse)
    owned, body = [stmt.buffer], stmt.body
    while len(body.body) == 1 and isinstance(inner := body.body[0], Allocate):
        owned.append(inner.buffer)
        body = inner.body
    body = reuse(body)
    shared = _together(owned, flat(body))
    names = {name: each.buffer.name for each in shared for name in each.names if name != each.buffer.name}
    if names:
        body = _renamed(body, names)
    for each in reversed(shared):
        body = Block((Allocate(each.buffer, body),))
    (found,) = body.body
    return found


def _together(owned: Sequence[Buffer], statements: Sequence[Stmt]) -> list[_Shared]:
    """The memory that temporaries need together, in their order."""
    uses = [_used(stmt) for stmt in statements]
    found: list[_Shared] = []
    for buffer in owned:
        places = [number for number, names in enumerate(uses) if buffer.name in names]
        free = (each for each in found if places and each.last < places[0] and _fit(each.buffer, buffer))
        taken = next(free, None)
        last = places[-1] if places else len(uses)
        if taken is None:
            found.append(_Shared(buffer, last, [buffer.name]))
            continue
        pairs = zip(taken.buffer.shape, buffer.shape, strict=True)
        taken.buffer = replace(taken.buffer, shape=tuple(int64(max(map(_number, pair))) for pair in pairs))
        taken.last = last
        taken.names.append(buffer.name)
    return found


def _used(stmt: Stmt) -> set[str]:
    """The buffers that a statement, or one inside of it, reads or writes."""
    return {name for each in walk_statements(Block((stmt,))) for name in touched_by(each)}


def _fit(one: Buffer, other: Buffer) -> bool:
    """Whether two temporaries may be in the same memory, and are worth it."""
    shapes = [[constant_value(extent) for extent in each.shape] for each in (one, other)]
    sizes = [
        prod(extent or 0 for extent in shape) * each.dtype.bytes
        for shape, each in zip(shapes, (one, other), strict=True)
    ]
    alike = replace(one, name=other.name, shape=other.shape) == other and one.scope == "local"
    return alike and len(shapes[0]) == len(shapes[1]) and min(sizes) > tuning.STACK_BYTES


def _number(extent: Expr) -> int:
    return constant_value(extent) or 0


def _renamed(block: Block, names: dict[str, str]) -> Block:
    """The block with other names of buffers."""

    def read(node: Expr) -> Expr | None:
        return replace(node, tensor=names[node.tensor]) if isinstance(node, Read) and node.tensor in names else None

    def stored(inner: Block) -> Block:
        return with_body(inner, map(statement, inner.body))

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store):
            return replace(stmt, buffer=names.get(stmt.buffer, stmt.buffer))
        return with_blocks(stmt, stored)

    return stored(block_with_expressions(block, read))


__all__ = ["reuse"]
