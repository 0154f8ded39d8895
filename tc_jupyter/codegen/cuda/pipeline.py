"""Loops that copy tiles into shared memory and compute with them become pipelines: asynchronous copies run some tiles ahead.

A schedule asks for it by storing the copies several times (`storage(double=3)`). The copies of a visit must be plain: an element of
memory, or zero where there is none.

Worked example, three stages:

    for k in 0:T                              for s in 0:2
      allocate shared S[8, 64] (3 stages)       if s < T: cp_async S[s, ...], A[s tiles on]
      barrier                                   commit
      S[...] = inside ? A[...] : 0            for k in 0:T
      barrier                           ->      wait until all but the last group have landed
      compute with S                            barrier
                                                if k + 2 < T: cp_async S[(k + 2) % 3, ...], A[k + 2 tiles on]
                                                commit
                                                compute with S[k % 3]

One barrier per tile is enough: the stage that is filled now was read before the barrier. Nothing is under way when the loop ends.
Copies are as wide as the alignment of both sides and the conditions around them allow, up to 16 bytes; where they would be below 4
bytes, the loop stays as it is.

Source: CUDA C++ Programming Guide, "Asynchronous Data Copies"; CUTLASS, multistage main loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd

from tc_jupyter.loops import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    block_with_expressions,
    simplify_expr,
    walk_statements,
    with_blocks,
    with_expressions,
)
from tc_jupyter.program import Binary, Cast, Const, DType, Expr, IndexVar, Read, Select, int64, rewrite, variables
from tc_jupyter.program.integers import conjunction, has_read, index_names
from tc_jupyter.schedule import GPU_AXES

from .expressions import Scope, divisor, padded
from .vectors import steps_of

WIDTHS = (16, 8, 4)
"""Bytes that one asynchronous copy may move."""

Buffers = Mapping[str, Buffer]


def pipelined(kernel: Kernel, has_async_copies: bool) -> Kernel:
    """The kernel with its staged loops as pipelines, where the device has asynchronous copies."""
    staged = any(isinstance(stmt, Allocate) and stmt.buffer.stages > 1 for stmt in walk_statements(kernel.body))
    if not (staged and has_async_copies):
        return kernel
    arguments = {buffer.name: buffer for buffer in kernel.buffers}
    scope = Scope({}, {}, {}, multiples={name: fact.multiple for name, fact in kernel.facts})
    return replace(kernel, body=_block(kernel.body, arguments, scope, False))


def _block(block: Block, buffers: Buffers, scope: Scope, repeated: bool) -> Block:
    return replace(block, body=tuple(_statement(stmt, buffers, scope, repeated) for stmt in block.body))


def _statement(stmt: Stmt, buffers: Buffers, scope: Scope, repeated: bool) -> Stmt:
    if isinstance(stmt, For) and stmt.kind == "serial":
        found = _pipeline(stmt, buffers, scope, repeated)
        if found is not None:
            return found
    if isinstance(stmt, For) and stmt.kind not in GPU_AXES:
        repeated = True
    return with_blocks(stmt, lambda block: _block(block, buffers, scope, repeated))


def _pipeline(loop: For, buffers: Buffers, scope: Scope, repeated: bool) -> Block | None:
    """The loop as a pipeline; `None` if it is none, or if one of its copies cannot run by itself."""
    allocated, body = _opened(loop.body)
    stages = min((buffer.stages for buffer in allocated), default=1)
    barriers = [number for number, stmt in enumerate(body) if isinstance(stmt, Barrier)]
    if stages < 2 or len(barriers) < 2 or barriers[0] != 0 or loop.min != int64(0):
        return None
    shared = {buffer.name: buffer for buffer in allocated}
    copies = [_asynchronous(stmt, {**buffers, **shared}, scope) for stmt in body[1 : barriers[1]]]
    if any(copy is None for copy in copies):
        return None
    copy = Block(tuple(each for each in copies if each is not None))
    rest = Block(body[barriers[1] + 1 :])
    return _built(loop, allocated, stages, copy, rest, repeated)


def _opened(block: Block) -> tuple[tuple[Buffer, ...], tuple[Stmt, ...]]:
    """The shared buffers that are allocated around everything in a block, and the statements inside."""
    if len(block.body) == 1:
        (inner,) = block.body
        if isinstance(inner, Block):
            return _opened(inner)
        if isinstance(inner, Allocate) and inner.buffer.scope == "shared":
            more, body = _opened(inner.body)
            return (inner.buffer, *more), body
    return (), block.body


def _built(loop: For, allocated: tuple[Buffer, ...], stages: int, copy: Block, rest: Block, repeated: bool) -> Block:
    names = frozenset(buffer.name for buffer in allocated)
    ahead = stages - 1
    k = IndexVar(loop.var)

    def copies(tile: Expr, stage: Expr) -> Stmt:
        moved = block_with_expressions(copy, variables({loop.var: tile}))
        return If(Binary("<", tile, loop.extent, DType.BOOL), _on_stage(moved, names, stage))

    def of_stages(tile: Expr) -> Expr:
        return Binary("%", tile, int64(stages), DType.INT64)

    commit = Intrinsic("cp_async_commit", ())
    first = IndexVar(f"{loop.var}.first")
    start = (copies(first, first), commit)
    fill: Stmt = For(first.name, int64(0), int64(ahead), Block(start))
    if ahead == 1:
        fill = Block((copies(int64(0), int64(0)), commit))
    next_tile = Binary("+", k, int64(ahead), DType.INT64)
    body = (
        Intrinsic("cp_async_wait", (), (("pending", stages - 2),)),
        Barrier(),
        copies(next_tile, of_stages(next_tile)),
        commit,
        _on_stage(rest, names, of_stages(k)),
    )
    before = (Barrier(),) if repeated else ()
    result = Block((*before, fill, replace(loop, body=Block(body))))
    for buffer in reversed(allocated):
        whole = replace(buffer, shape=(int64(stages), *buffer.shape), stages=1)
        result = Block((Allocate(whole, result),))
    return result


def _on_stage(block: Block, names: frozenset[str], stage: Expr) -> Block:
    """The statements with the stage as the first subscript of every staged buffer."""

    def rule(expr: Expr) -> Expr | None:
        if isinstance(expr, Read) and expr.tensor in names:
            return replace(expr, indices=(stage, *expr.indices))
        return None

    def each(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.buffer in names:
            stmt = replace(stmt, indices=(stage, *stmt.indices))
        return with_blocks(stmt, lambda inner: replace(inner, body=tuple(map(each, inner.body))))

    return block_with_expressions(replace(block, body=tuple(map(each, block.body))), rule)


# --- copies ----------------------------------------------------------------------------------------------------------


def _asynchronous(stmt: Stmt, buffers: Buffers, scope: Scope) -> Stmt | None:
    """A nest that copies into shared memory, by asynchronous copies; `None` if it is another, or they would be too narrow."""
    match stmt:
        case Block(body=(inner,)):
            changed = _asynchronous(inner, buffers, scope)
            return None if changed is None else replace(stmt, body=(changed,))
        case For(kind="vectorize", body=Block(body=(If(otherwise=None) as guard,))) if stmt.var not in index_names(
            guard.condition
        ):
            return _asynchronous(If(guard.condition, Block((replace(stmt, body=guard.then),))), buffers, scope)
        case For(kind="vectorize", body=Block(body=(Store() as store,))) if isinstance(stmt.extent, Const):
            return _vector(stmt, store, int(stmt.extent.value), buffers, scope)
        case If(otherwise=None, then=Block(body=(inner,))):
            changed = _asynchronous(inner, buffers, scope)
            return None if changed is None else If(stmt.condition, Block((changed,)))
        case For(body=Block(body=(inner,))):
            changed = _asynchronous(inner, buffers, scope)
            return None if changed is None else replace(stmt, body=Block((changed,)))
        case Store():
            return _copy(stmt, "", 1, buffers, scope)
        case _:
            return None


def _vector(loop: For, store: Store, lanes: int, buffers: Buffers, scope: Scope) -> Stmt | None:
    """The copies of the lanes of a vector, as wide as they can be."""
    size = buffers[store.buffer].dtype.bytes
    for width in (nbytes // size for nbytes in WIDTHS if nbytes % size == 0):
        if width > lanes or lanes % width:
            continue
        found = _copy(store, loop.var, width, buffers, scope)
        if found is None:
            continue
        start = int64(0) if width == lanes else Binary("*", int64(width), IndexVar(loop.var), DType.INT64)
        moved = with_expressions(found, variables({loop.var: start}))
        moved = with_expressions(moved, simplify_expr)
        return (
            moved
            if width == lanes
            else replace(loop, extent=int64(lanes // width), kind="unroll", body=Block((moved,)))
        )
    return None


def _copy(store: Store, lane: str, width: int, buffers: Buffers, scope: Scope) -> Stmt | None:
    """One copy of `width` elements along the variable `lane`, which is replaced by its first value; `None` if it is none."""
    inside, source = _parts(store)
    target = buffers[store.buffer]
    nbytes = width * target.dtype.bytes
    if source is None or store.reduce is not None or target.scope != "shared" or nbytes not in WIDTHS:
        return None
    origin = buffers.get(source.tensor)
    if origin is None or origin.scope not in ("argument", "global") or origin.dtype is not target.dtype:
        return None
    if width > 1:
        sides = ((target, store.indices), (origin, source.indices))
        if not all(_is_row(buffer, indices, lane, width, scope) for buffer, indices in sides):
            return None
        if not all(_is_uniform(test, lane, width, scope) for test in inside):
            return None
    target_at = Read(store.buffer, store.indices, target.dtype)
    size = (("bytes", nbytes),)
    copy = Intrinsic("cp_async", (target_at, source), size, store.statement, store.span)
    if not inside:
        return copy
    condition = inside[0]
    for test in inside[1:]:
        condition = Binary("&&", condition, test, DType.BOOL)
    zero = Intrinsic("cp_async_zero", (target_at,), size, store.statement, store.span)
    return If(condition, Block((copy,)), Block((zero,)))


def _parts(store: Store) -> tuple[list[Expr], Read | None]:
    """The conditions of a copy, and what it copies where they hold; elsewhere it must write zero."""
    value, tests = store.value, list[Expr]()
    if isinstance(value, Select) and isinstance(value.otherwise, Const) and value.otherwise.value == 0:
        tests, value = conjunction(value.condition), value.then
    if isinstance(value, Cast) and value.dtype is value.operand.dtype.compute:
        value = value.operand
    by_data = any(map(has_read, tests))
    return tests, value if isinstance(value, Read) and not by_data else None


def _is_row(buffer: Buffer, indices: tuple[Expr, ...], lane: str, width: int, scope: Scope) -> bool:
    """Whether the lanes are neighbours in memory and the first is aligned to all of them."""
    if buffer.strided or not indices:
        return False
    *outer, last = indices
    aligned = buffer.scope == "shared" or (buffer.align > 0 and buffer.align % (width * buffer.dtype.bytes) == 0)
    if not aligned or any(steps_of(each, lane) != 0 for each in outer):
        return False
    pitch = padded(buffer.shape[len(outer)], buffer.pad)
    if outer and divisor(pitch, scope) % width:
        return False
    return steps_of(last, lane) == 1 and _first(last, lane, scope) % width == 0


def _first(expr: Expr, lane: str, scope: Scope) -> int:
    """A divisor of the value for the first lane."""
    start = variables({lane: int64(0)})
    return divisor(simplify_expr(rewrite(expr, start)), scope)


def _is_uniform(test: Expr, lane: str, width: int, scope: Scope) -> bool:
    """Whether a comparison has one answer for all lanes of an aligned vector."""
    if lane not in index_names(test):
        return True
    if not (isinstance(test, Binary) and test.op in ("<", ">=") and steps_of(test.right, lane) == 0):
        return False
    if steps_of(test.left, lane) != 1:
        return False
    return gcd(_first(test.left, lane, scope), divisor(test.right, scope)) % width == 0


__all__ = ["pipelined"]
