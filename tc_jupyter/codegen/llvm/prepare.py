"""Kernel -> kernel: what the loops need before they are printed.

* `tasks`: the parallel loops around everything become the task index, with a number of iterations per task.
* `full_tiles`: a tile loop with a ragged end is printed twice, once with constant extents for full tiles.
* `accumulate`: a reduction into one place over a serial loop keeps its partial result in registers.

Worked example of `accumulate`:

    for k in 0:K                         if K > 0
      C[i, j] += A[i, k] * B[k, j]         allocate C.acc[1]
                                           C.acc[0] = C[i, j]
                                 ->        for k in 0:K
                                             C.acc[0] += A[i, k] * B[k, j]
                                           C[i, j] = C.acc[0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import TypeAlias, TypeGuard

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
    expressions,
    sub_blocks,
    walk_statements,
)
from tc_jupyter.loops.rewrite import mapped_block, substitute, with_blocks, with_body
from tc_jupyter.program import (
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    children,
    int64,
    walk,
)
from tc_jupyter.program.integers import ceil_div, has_read, index_names, maximum, minimum, plus, times
from tc_jupyter.schedule import tuning

from .arith import identity
from .polynomial import Polynomial, constant_value, polynomial

PARTS = "parts"
"""Name of the axis of the parts of a serial loop, which are done in order."""


Lanes = Callable[[For], int]
"""Of a vectorised loop: how many iterations one operation does."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """The parallel loops that become the task index.

    Attributes:
        loops: outermost first; the task index counts their points in row-major order.
        total: their points; `chunk`: points per task; `count`: tasks. Expressions over the kernel's sizes.
        brief: whether the work is so little that no thread is woken for it.
        in_order: tasks are done one after the other: they are parts of a serial loop, between which it is looked whether Python
            was interrupted; `width` of them at one time.
        allocations: temporary storage that stood between the loops; every point may have its own.
        body: what one point does.
    """

    loops: tuple[For, ...]
    total: Expr
    chunk: Expr
    count: Expr
    brief: Expr
    allocations: tuple[Buffer, ...]
    body: Block
    in_order: bool = False
    width: Expr = field(default_factory=lambda: int64(1))


# --- small helpers on expressions ------------------------------------------------------------------------------------


def upper_limit(expr: Expr) -> int | None:
    """A constant that the value never exceeds: a number, or the constant operand of a `min`."""
    value = constant_value(expr)
    if value is not None:
        return value
    match expr:
        case Binary(op="min"):
            limits = [limit for limit in (upper_limit(expr.left), upper_limit(expr.right)) if limit is not None]
            return min(limits, default=None)
        case Binary(op="max"):
            left, right = upper_limit(expr.left), upper_limit(expr.right)
            return None if left is None or right is None else max(left, right)
        case Binary(op="+" | "//", left=left_expr, right=Const(value=number)):
            limit = upper_limit(left_expr)
            if limit is None or (expr.op == "//" and number <= 0):
                return None
            return limit + int(number) if expr.op == "+" else limit // int(number)
        case _:
            return None


def natural(extent: Expr) -> Expr:
    """An extent as a number of iterations: not negative."""
    return extent if isinstance(extent, Size | Const) else maximum(int64(0), extent)


# --- tasks -----------------------------------------------------------------------------------------------------------


def tasks(kernel: Kernel, lanes: Lanes) -> Tasks:
    """Take the parallel loops that stand around everything else; a kernel without them is one task."""
    loops: list[For] = []
    body, allocations = kernel.body, ()
    stmt, inside = _only_statement(body)
    while isinstance(stmt, For) and stmt.kind == "parallel" and not _local(stmt):
        if loops and (loops[0].chunk or stmt.chunk):
            break
        loops.append(stmt)
        body, allocations = stmt.body, (*allocations, *inside)
        stmt, inside = _only_statement(body)
    if not loops:
        return Tasks((), int64(1), int64(1), int64(1), Const(False, DType.BOOL), (), kernel.body)
    return _tasks(loops, allocations, body, lanes, _bytes(kernel))


def _bytes(kernel: Kernel) -> Expr:
    """Of the temporaries that a kernel shares with others; arrays of the caller changed nothing that was measured."""
    total: Expr = int64(0)
    for buffer in kernel.buffers:
        if buffer.scope == "global":
            lengths = (int64(tuning.UNKNOWN_LENGTH) if has_read(extent) else extent for extent in buffer.shape)
            total = plus(total, reduce(times, lengths, int64(buffer.dtype.bytes)))
    return total


def _only_statement(block: Block) -> tuple[Stmt, tuple[Buffer, ...]]:
    """What a block consists of, seen through blocks of one statement and allocations."""
    stmt: Stmt = block
    buffers: tuple[Buffer, ...] = ()
    while True:
        if isinstance(stmt, Block) and len(stmt.body) == 1:
            stmt = stmt.body[0]
        elif isinstance(stmt, Allocate):
            buffers, stmt = (*buffers, stmt.buffer), stmt.body
        else:
            return stmt, buffers


def _local(loop: For) -> bool:
    """Whether the bounds need more than sizes."""
    return any(index_names(expr) or has_read(expr) for expr in (loop.min, loop.extent))


def _tasks(loops: list[For], allocations: tuple[Buffer, ...], body: Block, lanes: Lanes, nbytes: Expr) -> Tasks:
    total: Expr = int64(1)
    for loop in loops:
        total = times(total, maximum(int64(0), loop.extent))
    chunk: Expr
    brief: Expr = Const(False, DType.BOOL)
    if loops[0].chunk:
        chunk = int64(loops[0].chunk)
    else:
        inside = [each.buffer for each in walk_statements(body) if isinstance(each, Allocate)]
        own = {buffer.name: buffer.scope for buffer in (*inside, *allocations)}
        work = maximum(int64(1), work_of(body, with_values({}, *loops), lanes, own))
        fewest = ceil_div(total, int64(tuning.MOST_TASKS))
        chunk = maximum(maximum(int64(1), fewest), Binary("//", int64(tuning.GRAIN), work, DType.INT64))
        done = times(work, total)
        moved: Expr = int64(0)
        if constant_value(nbytes) != 0:  # at most a cache line per operation: of a table only some rows
            moved = minimum(
                Binary("//", nbytes, int64(tuning.MOVED), DType.INT64), times(done, int64(64 // tuning.MOVED))
            )
        alone, brief = (
            Binary("<", plus(done, moved), int64(most), DType.BOOL) for most in (tuning.ALONE, tuning.BRIEF)
        )
        chunk = Select(alone, maximum(int64(1), total), chunk, DType.INT64)
    in_order = loops[0].axis == PARTS
    return Tasks(tuple(loops), total, chunk, ceil_div(total, chunk), brief, allocations, body, in_order)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of a loop variable that stand for all of them: the first one, and one in the middle."""

    first: Expr
    middle: Expr


_Around: TypeAlias = Mapping[str, _Values]


def with_values(outer: _Around, *loops: For) -> _Around:
    """The loops around a place, with some more."""
    found = dict(outer)
    for loop in loops:
        first, length = _at(loop.min, found, middle=True), _at(loop.extent, found, middle=True)
        half = Binary("//", natural(length), int64(2), DType.INT64)
        found[loop.var] = _Values(_at(loop.min, found), plus(first, half))
    return found


def _at(expr: Expr, around: _Around, middle: bool = False) -> Expr:
    return substitute(expr, {name: value.middle if middle else value.first for name, value in around.items()})


def _length(loop: For, around: _Around) -> Expr:
    """About how many iterations a loop has: of tiles a whole one, of a triangle the row in the middle, if data decide the most."""
    extent = loop.extent
    while isinstance(extent, Binary) and extent.op == "min" and has_read(extent.left) != has_read(extent.right):
        extent = extent.right if has_read(extent.left) else extent.left
    extent = _at(extent, around, middle=upper_limit(extent) is None)
    return int64(tuning.UNKNOWN_LENGTH) if has_read(extent) or index_names(extent) else maximum(int64(1), extent)


def work_of(block: Block, outer: _Around, lanes: Lanes, own: Mapping[str, str]) -> Expr:
    """About how many operations a block does, over the kernel's sizes; one of a vector counts once.

    Args:
        own: buffers of a task, which stay in its caches, with their scopes.
    """
    total: Expr = int64(0)
    for stmt in block.body:
        total = plus(total, _work(stmt, outer, lanes, own))
    return total


def _work(stmt: Stmt, outer: _Around, lanes: Lanes, own: Mapping[str, str]) -> Expr:
    match stmt:
        case For():
            inner, extent = with_values(outer, stmt), _length(stmt, outer)
            if stmt.kind == "vectorize":
                extent = ceil_div(extent, int64(lanes(stmt)))
            once = stmt.kind == "unroll" or upper_limit(stmt.extent) is not None
            return plus(times(extent, work_of(stmt.body, inner, lanes, own)), int64(0 if once else tuning.OVERHEAD))
        case Store():
            stored = int(stmt.reduce is None or own.get(stmt.buffer) != "register")  # a sum in a register is one step
            done = max(1, (stored + _operations(stmt.value)) // 2)
            return int64(done + (0 if stmt.reduce or stmt.buffer in own else tuning.OVERHEAD))
        case If(otherwise=Block()):
            return work_of(stmt.then, outer, lanes, own)  # the usual case
        case Intrinsic():
            return int64(64)
        case Barrier():
            return int64(0)
        case _:
            total: Expr = int64(0)
            for block in sub_blocks(stmt):
                total = plus(total, work_of(block, outer, lanes, own))
            return total


def _operations(expr: Expr) -> int:
    """Operations and loads of a value; subscripts cost next to nothing."""
    inside = 0 if isinstance(expr, Read) else sum(_operations(child) for child in children(expr))
    return inside + (20 if isinstance(expr, Call) else 1)


# --- full tiles ------------------------------------------------------------------------------------------------------


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


# --- accumulators ----------------------------------------------------------------------------------------------------


PARTIAL = ".lanes"
"""Ends the name of a buffer of partial results: lanes beyond the end of a loop must keep theirs."""


def accumulate(block: Block, scopes: Mapping[str, str]) -> Block:
    """Keep reductions over serial loops in registers; `scopes` tells the scope of every buffer."""
    return with_body(block, (_accumulate(stmt, scopes) for stmt in block.body))


def _accumulate(stmt: Stmt, scopes: Mapping[str, str]) -> Stmt:
    if isinstance(stmt, Allocate):
        buffer = replace(stmt.buffer, scope="register") if _is_registers(stmt) else stmt.buffer
        return Allocate(buffer, accumulate(stmt.body, {**scopes, buffer.name: buffer.scope}))
    if not isinstance(stmt, For) or stmt.kind in ("parallel", "vectorize", "unroll"):
        return with_blocks(stmt, lambda block: accumulate(block, scopes))
    for store, path in _reductions(stmt.body, ()):
        if scopes.get(store.buffer) != "register" and _hoistable(stmt, store, path):
            promoted = _promote(stmt, store, path)
            if promoted is not None:
                return _accumulate_rest(promoted, scopes)
    return replace(stmt, body=accumulate(stmt.body, scopes))


def _is_registers(stmt: Allocate) -> bool:
    """Whether a buffer is small, and each of its elements, as code is printed, a register: only written-out loops choose it.

    A sum that other written-out loops run over is not: each of their iterations gets a partial result of its own (`_promote`).
    """
    buffer = stmt.buffer
    sizes = [constant_value(extent) or 0 for extent in buffer.shape]
    if (
        buffer.scope != "local"
        or buffer.pad
        or not 0 < prod(sizes) * buffer.dtype.compute.bytes <= tuning.REGISTER_FILE
    ):
        return False
    inside = tuple(walk_statements(stmt.body))
    loops = [inner for inner in inside if isinstance(inner, For)]
    printed = {
        loop.var for loop in loops if loop.kind in ("unroll", "vectorize") and upper_limit(loop.extent) is not None
    }
    printed -= {loop.var for loop in loops if loop.kind not in ("unroll", "vectorize")}
    places = [indices for inner in inside for name, indices in accesses(inner) if name == buffer.name]
    chosen = all(
        constant_value(index) is not None or (isinstance(index, IndexVar) and index.name in printed)
        for where in places
        for index in where
    )
    return chosen and not any(_has_partial_results(*each) for each in _sums_into(buffer.name, stmt.body, ()))


def _sums_into(buffer: str, block: Block, path: tuple[For, ...]) -> Iterator[tuple[Store, tuple[For, ...]]]:
    """Reductions into a buffer, each with the loops around it."""
    for stmt in block.body:
        if isinstance(stmt, Store) and stmt.buffer == buffer and stmt.reduce is not None:
            yield stmt, path
        for inner in sub_blocks(stmt):
            yield from _sums_into(buffer, inner, (*path, stmt) if isinstance(stmt, For) else path)


def _has_partial_results(store: Store, path: tuple[For, ...]) -> bool:
    """Whether a loop around a sum is written out and gives each iteration a partial result."""
    used = frozenset[str]().union(*(index_names(index) for index in store.indices))
    over = {loop.kind for loop in path if loop.var not in used}
    return "vectorize" in over or {"unroll", "serial"} <= over


def accesses(stmt: Stmt) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """Buffers that a statement itself reads or writes, with the indices."""
    if isinstance(stmt, Store):
        yield stmt.buffer, stmt.indices
    for expr in expressions(stmt):
        yield from ((node.tensor, node.indices) for node in walk(expr) if isinstance(node, Read))


def _accumulate_rest(promoted: tuple[For, Callable[[Stmt], Stmt], Buffer], scopes: Mapping[str, str]) -> Stmt:
    """Go on with the loop that is left, which may hold further reductions."""
    loop, wrap, buffer = promoted
    return wrap(_accumulate(loop, {**scopes, buffer.name: "register"}))


def _reductions(block: Block, path: tuple[For, ...]) -> Iterator[tuple[Store, tuple[For, ...]]]:
    """Reductions inside that run whenever the block runs, with the loops between."""
    for stmt in block.body:
        match stmt:
            case Store() if stmt.reduce is not None and not stmt.atomic:
                yield stmt, path
            case For():
                yield from _reductions(stmt.body, (*path, stmt))
            case Block():
                yield from _reductions(stmt, path)
            case _:
                pass


def _hoistable(loop: For, store: Store, path: tuple[For, ...]) -> bool:
    """Whether the target stays the same over the loop, and nothing else touches the buffer meanwhile."""
    moving = {loop.var} | {inner.var for inner in path if inner.kind not in ("unroll", "vectorize")}
    if any(index_names(index) & moving or has_read(index) for index in store.indices):
        return False
    touched = 0
    for stmt in walk_statements(loop.body):
        touched += isinstance(stmt, Store) and stmt.buffer == store.buffer
        for expr in expressions(stmt):
            touched += sum(isinstance(node, Read) and node.tensor == store.buffer for node in walk(expr))
    return touched == 1


def _promote(loop: For, store: Store, path: tuple[For, ...]) -> tuple[For, Callable[[Stmt], Stmt], Buffer] | None:
    """The loop with a register buffer in the place of the target, and what to put around it."""
    assert store.reduce is not None
    inside = {loop.var} | {inner.var for inner in path}
    used = frozenset[str]().union(*(index_names(index) for index in store.indices))
    kept: list[For] = []
    for inner in path:
        if inner.kind not in ("unroll", "vectorize") or not (inner.var in used or _splits(inner)):
            continue
        limit = upper_limit(inner.extent)
        if limit is None or constant_value(inner.min) != 0:
            return None
        if inner.var not in used:
            inner = replace(inner, extent=int64(limit))  # partial results of their own: all of them start and all count
        elif index_names(inner.extent) & inside:
            return None
        kept.append(inner)
    extents = [upper_limit(inner.extent) or 1 for inner in kept]
    dtype = store.value.dtype.compute
    own = any(inner.var not in used for inner in kept)
    if prod(extents) * dtype.bytes > tuning.REGISTER_FILE or (own and prod(extents) > 512):
        return None
    name = f"{store.buffer}{PARTIAL if own else '.acc'}"
    buffer = Buffer(name, dtype, tuple(int64(extent) for extent in extents) or (int64(1),), "register", align=64)
    where = tuple(IndexVar(inner.var) for inner in kept) or (int64(0),)
    content = Read(buffer.name, where, dtype)
    # What 32 bits hold of a target of 64 (see `narrow`) is not read from there, but found apart and combined at the end. With a
    # target of 32 bits that is the same.
    apart = own or (dtype is DType.INT32 and store.reduce in ("min", "max"))
    first: Expr = Const(identity(store.reduce, dtype), dtype) if apart else Read(store.buffer, store.indices, dtype)
    last = replace(store, value=content, reduce=store.reduce if apart else None)
    start = _nest(tuple(kept), Store(buffer.name, where, first, statement=store.statement, span=store.span))
    finish = _nest(tuple(kept), last)
    inner_store = replace(store, buffer=buffer.name, indices=where, streaming=False)
    new_loop = replace(loop, body=_replace_store(loop.body, store, inner_store))

    def wrap(inner: Stmt) -> Stmt:
        body = Allocate(buffer, Block((start, inner, finish)))
        if (constant_value(loop.extent) or 0) > 0:
            return body
        return If(Binary(">", loop.extent, int64(0), DType.BOOL), Block((body,)))

    return new_loop, wrap, buffer


def _splits(loop: For) -> bool:
    """Whether each iteration of a vectorised or unrolled reduction loop gets a partial result of its own."""
    return loop.kind == "vectorize" or (upper_limit(loop.extent) or 99) <= 8


def _nest(loops: tuple[For, ...], stmt: Stmt) -> Stmt:
    for loop in reversed(loops):
        stmt = replace(loop, body=Block((stmt,)))
    return stmt


def _replace_store(block: Block, old: Store, new: Store) -> Block:
    def rule(inner: Block) -> Block:
        return _replace_store(inner, old, new)

    return with_body(block, (new if stmt is old else with_blocks(stmt, rule) for stmt in block.body))


# --- bounds of temporary storage -------------------------------------------------------------------------------------


def largest(expr: Expr, ranges: Mapping[str, tuple[Expr, Expr]], upper: bool = True) -> Expr:
    """An expression over sizes that is at least (`upper`) or at most the value; `ranges` are first and last values."""
    match expr:
        case Const() | Size() | Read(indices=()):
            return expr
        case IndexVar():
            return ranges[expr.name][1 if upper else 0]
        case Unary(op="-"):
            return replace(expr, operand=largest(expr.operand, ranges, not upper))
        case Binary(op="+" | "min" | "max"):
            return replace(expr, left=largest(expr.left, ranges, upper), right=largest(expr.right, ranges, upper))
        case Binary(op="-"):
            return replace(expr, left=largest(expr.left, ranges, upper), right=largest(expr.right, ranges, not upper))
        case Binary(op="*" | "//" | "/"):
            negative = (constant_value(expr.right) or 0) < 0 or (
                expr.op == "*" and (constant_value(expr.left) or 0) < 0
            )
            flip = upper != negative
            return replace(
                expr,
                left=largest(expr.left, ranges, flip),
                right=largest(expr.right, ranges, flip if expr.op == "*" else not flip),
            )
        case Binary(op="%"):
            return largest(expr.right, ranges) if upper else int64(0)
        case Select():
            then, other = largest(expr.then, ranges, upper), largest(expr.otherwise, ranges, upper)
            return Binary("max" if upper else "min", then, other, expr.dtype)
        case Cast():
            return replace(expr, operand=largest(expr.operand, ranges, upper))
        case _:
            raise RuntimeError(f"the size of a temporary has no bound over the sizes: {expr}")
