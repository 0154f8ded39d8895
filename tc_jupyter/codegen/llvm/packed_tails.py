"""Copies into the columns of tiles -> one version of the loops, also for a tile that is not full.

Whole tiles are computed with, so `lower` sets one that is not full to zero before the copy: numbers that happen to be in memory may
be slow. A copy along a row loads its end under a mask instead, with zeros behind it. Across rows the last row is repeated, if
nobody needs results of those columns (`SPARE`). A copy across rows that is not turned in registers (see `transpose`) moves its
elements one by one.

Worked example: with tiles of 4 rows

    for k in 0:K                                                 for k in 0:K
      for r in 0:min(4, M - 4*t) (vectorize)         ->            for r in 0:4 (vectorize)
        P[t, k, r] = A[4*t + r, k]                                   P[t, k, r] = A[4*t + min(r, min(4, M - 4*t) - 1), k]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from tc_jupyter.loops import SPARE, Allocate, Block, Buffer, For, If, Stmt, Store, sub_blocks
from tc_jupyter.loops.rewrite import substitute, with_blocks, with_body
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Select, int64
from tc_jupyter.program.integers import minimum, plus
from tc_jupyter.schedule import Target

from .limits import upper_limit
from .polynomial import constant_value, has_iterations, mentions
from .strips import Flat, in_order
from .transpose import turned_width


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known around a block.

    Attributes:
        buffers: by name.
        flat: see `strips.flat_dimensions`.
        loops: lengths by variable, of those that begin with 0.
        written: what writes a buffer, spare columns not counted: statement, and whether it sets it to a number.
        exclusive: temporaries of the whole program that no other kernel writes.
        target: decides which rows are turned in registers.
    """

    buffers: Mapping[str, Buffer]
    flat: Flat
    loops: Mapping[str, Expr]
    written: Mapping[str, set[tuple[str, bool]]]
    exclusive: frozenset[str]
    target: Target


def written(block: Block) -> dict[str, set[tuple[str, bool]]]:
    """What writes each buffer; see `Scope`. What adds to it counts as the number that it begins with."""
    found: dict[str, set[tuple[str, bool]]] = {}
    for stmt in block.body:
        if isinstance(stmt, Store):
            is_number = isinstance(stmt.value, Const) or stmt.reduce is not None
            found.setdefault(stmt.buffer, set()).add((stmt.statement, is_number))
        for inner in sub_blocks(stmt):
            for name, more in written(inner).items() if inner.comment != SPARE else ():
                found.setdefault(name, set()).update(more)
    return found


def packed(block: Block, scope: Scope) -> Block:
    """Apply the rules to all copies inside."""
    own = {stmt.buffer.name: stmt.buffer for stmt in block.body if isinstance(stmt, Allocate)}
    scope = replace(scope, buffers={**scope.buffers, **own}) if own else scope
    body: list[Stmt] = []
    for stmt in block.body:
        copy = _copy(stmt, scope)
        if copy is None:
            loops = {**scope.loops, stmt.var: stmt.extent} if _counts(stmt) else scope.loops
            inside = replace(scope, loops=loops)
            body.append(with_blocks(stmt, lambda child, inside=inside: packed(child, inside)))
            continue
        zeros = _zeros(body[-1], copy) if body else None
        whole = _whole(copy, zeros, scope)
        if whole is not None:
            body[len(body) - (zeros is not None) :] = [whole]
        elif _in_order(copy, scope) or (_is_turned(copy, scope) and not _is_set(copy, scope)):
            body.append(stmt)
        else:
            body.append(copy.around(replace(copy.inner, kind="serial")))
    return with_body(block, body)


@dataclass(frozen=True, slots=True)
class _Nest:
    """Serial loops around a vectorised loop of one assignment."""

    loops: tuple[For, ...]
    inner: For
    store: Store

    @property
    def lanes(self) -> int:
        """Iterations of the innermost loop at most; 0 if that is not known."""
        return upper_limit(self.inner.extent) or 0

    def around(self, inner: For) -> Stmt:
        """The serial loops around another innermost one."""
        for loop in reversed(self.loops):
            inner = replace(loop, body=replace(loop.body, body=(inner,)))
        return inner


def _nest(stmt: Stmt) -> _Nest | None:
    loops: list[For] = []
    while isinstance(stmt, For) and len(stmt.body.body) == 1:
        loops.append(stmt)
        stmt = stmt.body.body[0]
    if len(loops) <= 1 or not isinstance(stmt, Store) or stmt.reduce is not None or stmt.atomic:
        return None
    *outer, inner = loops
    good = inner.kind == "vectorize" and all(loop.kind == "serial" for loop in outer)
    return _Nest(tuple(outer), inner, stmt) if good else None


def _copy(stmt: Stmt, scope: Scope) -> _Nest | None:
    """A nest that copies into the last dimension of a temporary, which has room for a whole tile."""
    found = _nest(stmt)
    if found is None or constant_value(found.inner.min) != 0 or not isinstance(found.store.value, Read):
        return None
    target = scope.buffers.get(found.store.buffer)
    if target is None or target.scope not in ("global", "local") or target.pad or not found.lanes:
        return None
    room = constant_value(target.shape[-1])
    *outer, last = found.store.indices
    moved = last == IndexVar(found.inner.var) and not any(mentions(index, found.inner.var) for index in outer)
    return found if room is not None and room >= found.lanes and moved else None


def _in_order(copy: _Nest, scope: Scope) -> bool:
    """Whether neighbours are copied to neighbours: a piece of one row."""
    assert isinstance(copy.store.value, Read)
    return in_order(copy.store.value, copy.inner.var, scope.flat)


def _is_turned(copy: _Nest, scope: Scope) -> bool:
    return turned_width(copy.loops[-1], copy.inner, scope.buffers, scope.target) is not None


def _is_set(copy: _Nest, scope: Scope) -> bool:
    """Whether columns beyond the end have a number that must stay: what is turned in registers may write others there."""
    return any(number for _, number in scope.written[copy.store.buffer])


def _whole(copy: _Nest, zeros: Const | None, scope: Scope) -> Stmt | None:
    """The copy of a whole tile, which needs nothing before it."""
    if not _in_order(copy, scope):
        return _repeated(copy) if _is_turned(copy, scope) and _repeats(copy, scope) else None
    masks = scope.target.has_masks(scope.buffers[copy.store.buffer].dtype.bits)
    return _filled_up(copy, zeros) if zeros is not None and masks else None


def _counts(stmt: Stmt) -> TypeGuard[For]:
    return isinstance(stmt, For) and constant_value(stmt.min) == 0


def _repeats(copy: _Nest, scope: Scope) -> bool:
    """Whether the last row may stand for those that are missing: there is one, and no other statement writes there."""
    name, extent = copy.store.buffer, copy.inner.extent
    around = {**scope.loops, **{loop.var: loop.extent for loop in copy.loops if _counts(loop)}}
    alone = len(scope.written[name]) == 1 and (scope.buffers[name].scope == "local" or name in scope.exclusive)
    return alone and constant_value(extent) is None and has_iterations(extent, around)


def _repeated(copy: _Nest) -> Stmt:
    """The copy of a whole tile."""
    inner = copy.inner
    row = minimum(IndexVar(inner.var), plus(inner.extent, int64(-1)))
    store = replace(copy.store, value=substitute(copy.store.value, {inner.var: row}))
    return copy.around(replace(inner, extent=int64(copy.lanes), body=replace(inner.body, body=(store,))))


def _filled_up(copy: _Nest, zeros: Const) -> Stmt:
    """The copy of a whole tile, with a number where the row has ended."""
    inner = copy.inner
    there = Binary("<", IndexVar(inner.var), inner.extent, DType.BOOL)
    store = replace(copy.store, value=Select(there, copy.store.value, zeros, copy.store.value.dtype))
    return copy.around(replace(inner, extent=int64(copy.lanes), body=replace(inner.body, body=(store,))))


def _zeros(stmt: Stmt, copy: _Nest) -> Const | None:
    """The number that a statement sets the tile of a copy to if it is not full."""
    if not isinstance(stmt, If) or stmt.otherwise is not None or len(stmt.then.body) != 1:
        return None
    fill, inner, lanes = _nest(stmt.then.body[0]), copy.inner, copy.lanes
    if fill is None or not isinstance(fill.store.value, Const):
        return None
    same = (
        stmt.condition == Binary("<", inner.extent, int64(lanes), DType.BOOL)
        and constant_value(fill.inner.extent) == lanes
        and [(loop.var, loop.min, loop.extent) for loop in fill.loops]
        == [(loop.var, loop.min, loop.extent) for loop in copy.loops]
        and (fill.inner.var, fill.store.buffer, fill.store.indices)
        == (inner.var, copy.store.buffer, copy.store.indices)
    )
    return Const(fill.store.value.value, copy.store.value.dtype) if same else None
