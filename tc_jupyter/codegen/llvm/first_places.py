"""An extreme and the first place that has it: one pass over the row, and a look at the block that has it first.

Worked example, with blocks of 1024 elements,

    for m in 0:M: V[n] = max(V[n], X[n, m])                   for b in 0:ceil(M/1024)
    for m in 0:M                                                for v in 0:1024: part = max(part, X[n, 1024*b + v])
      P[n] = min(P[n], X[n, m] == V[n] ? m : none)     ->       part > best ? block, best = b, part
                                                              V[n] = max(V[n], best)
                                                              for o in 0:16: if found == none
                                                                begin = 1024*block + 64*o
                                                                for v in 0:64
                                                                  found = min(found, X[n, begin + v] == V[n] ? v : none)
                                                              P[n] = min(P[n], found == none ? none : begin + found)

The block changes where a value is larger than all before it, or the first NaN: it is the first of those that have the extreme.
A block is in the first cache when it is looked at, and behind the place nothing is compared.

Measured with AVX-512, one thread, over a maximum: rows of 32768 `float` 1.2, `int32` and `double` 1.1,
`uint8` 1.3; rows of 1000 in the second cache 2.2, 1.6, 2.1 and 3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc_jupyter.loops import Allocate, Block, Buffer, For, If, Stmt, Store
from tc_jupyter.loops.rewrite import flat, substitute, with_blocks, with_body
from tc_jupyter.program import Binary, Cast, Const, DType, Expr, IndexVar, Read, Select, Unary, identity_of, int64
from tc_jupyter.program.integers import ceil_div, minimum, plus, times
from tc_jupyter.ranges import from_expr
from tc_jupyter.schedule import tuning

from .polynomial import mentions

MISSING = Const(DType.INT32.limits[1], DType.INT32)
"""The place, among those that are compared together, where none has the extreme."""


def first_places(block: Block) -> Block:
    """Join every two loops inside that find an extreme and its first place."""
    body = flat(block)
    for late, stmt in enumerate(body):
        found = _search(stmt)
        if found is None or not isinstance(stmt, If):
            continue
        for early in reversed(range(late)):
            one, between = body[early], body[early + 1 : late]
            joined = _joined(one, between, found)
            if joined is None:
                continue
            apart = None if stmt.otherwise is None else Block((one, *between, *stmt.otherwise.body))
            some = Binary(">", found.extent, int64(0), DType.BOOL)
            condition = Binary("&&", stmt.condition, some, DType.BOOL)
            both = replace(stmt, condition=condition, then=Block(joined), otherwise=apart)
            return replace(block, body=(*body[:early], both, *body[late + 1 :]))
    return with_body(block, (with_blocks(stmt, first_places) for stmt in block.body))


def _search(stmt: Stmt) -> For | None:
    """The loop that looks for a place in 32 bits (`narrow`)."""
    inner = stmt.then.body[0] if isinstance(stmt, If) and len(stmt.then.body) == 1 else None
    return inner if isinstance(inner, For) else None


def _joined(one: Stmt, between: Sequence[Stmt], late: For) -> tuple[Stmt, ...] | None:
    """What finds both; `None` if the second loop does not look for the first place of the extreme that the first one finds."""
    early = one if isinstance(one, For) else None
    extreme, place = only_reduction(early), only_reduction(late)
    if early is None or extreme is None or place is None or (early.min, early.extent) != (late.min, late.extent):
        return None
    if extreme.reduce not in ("min", "max") or place.reduce != "min" or not isinstance(place.value, Select):
        return None
    value, where, none = extreme.value, place.value.then, place.value.otherwise
    found = {Read(extreme.buffer, extreme.indices, value.dtype)}
    for stmt in between:
        if not isinstance(stmt, Store) or stmt.reduce is not None:
            return None
        if any(_same(stmt.value, each) for each in found):
            found.add(Read(stmt.buffer, stmt.indices, value.dtype))
    wanted = _wanted(place.value.condition, substitute(value, {early.var: IndexVar(late.var)}))
    if wanted is None or not any(_same(wanted, each) for each in found) or not _grows(where, late.var):
        return None
    return _in_blocks(early, extreme, between, late, place, none)


def only_reduction(loop: For | None) -> Store | None:
    """The reduction that a loop over vectors does, if it does nothing else."""
    if loop is None or loop.kind != "vectorize":
        return None
    (stmt, *others) = flat(loop.body)
    alone = isinstance(stmt, Store) and not others and stmt.reduce is not None and not stmt.atomic
    return stmt if alone and isinstance(stmt, Store) and not any(mentions(i, loop.var) for i in stmt.indices) else None


def _same(one: Expr, other: Expr) -> bool:
    return (
        isinstance(one, Read) and isinstance(other, Read) and (one.tensor, one.indices) == (other.tensor, other.indices)
    )


def _wanted(condition: Expr, value: Expr) -> Expr | None:
    """What a value is compared with: `x == e`, or `x == e || e != e && x != x`."""
    match condition:
        case Binary(
            op="||", left=Binary(op="==", left=left, right=right), right=Binary(op="&&", left=first, right=second)
        ):
            nans = Binary("!=", right, right, DType.BOOL), Binary("!=", value, value, DType.BOOL)
            return right if left == value and (first, second) == nans else None
        case Binary(op="==", left=left, right=right) if not value.dtype.is_float:
            return right if left == value else None
        case _:
            return None


def _grows(where: Expr, var: str) -> bool:
    split = from_expr(where.operand if isinstance(where, Cast) else where).linear_in(var)
    return split is not None and split[0].is_constant and split[0].constant > 0


def _in_blocks(
    early: For, extreme: Store, between: Sequence[Stmt], late: For, place: Store, none: Expr
) -> tuple[Stmt, ...]:
    """The extreme of each block, and the place in the first block that has it."""
    assert extreme.reduce is not None
    dtype, zero = extreme.value.dtype, int64(0)
    part, best, block, begin, found = (
        Read(f"{name}.{what}", (zero,), kind)
        for name, what, kind in (
            (extreme.buffer, "part", dtype),
            (extreme.buffer, "best", dtype),
            (place.buffer, "block", DType.INT64),
            (place.buffer, "begin", DType.INT64),
            (place.buffer, "found", DType.INT32),
        )
    )
    number, step, var = IndexVar(f"{early.var}.b"), IndexVar(f"{late.var}.l"), IndexVar(f"{late.var}.v")
    start = times(number, int64(tuning.BLOCK))
    inside = substitute(extreme.value, {early.var: plus(plus(early.min, start), IndexVar(early.var))})
    better: Expr = Binary(">" if extreme.reduce == "max" else "<", part, best, DType.BOOL)
    if dtype.is_float:  # also the first NaN, but none after it
        other = Binary("<=" if extreme.reduce == "max" else ">=", part, best, DType.BOOL)
        known = Binary("==", best, best, DType.BOOL)
        better = Binary("&&", known, Unary("!", other, DType.BOOL), DType.BOOL)
    identity = identity_of(extreme.reduce, dtype)
    values = For(
        early.var, zero, _rest(early.extent, start, tuning.BLOCK), Block((_into(extreme, part, inside),)), early.kind
    )
    blocks = (
        _set(part, identity),
        values,
        _set(block, Select(better, number, block, DType.INT64)),
        _set(best, Select(better, part, best, dtype)),
    )
    first = times(block, int64(tuning.BLOCK))
    length, looked = _rest(late.extent, first, tuning.BLOCK), times(step, int64(tuning.PART_LINES))
    assert isinstance(place.value, Select)
    at = plus(plus(late.min, begin), var)
    there = substitute(place.value.condition, {late.var: at})
    here = _into(place, found, Select(there, Cast(var, DType.INT32), MISSING, DType.INT32))
    look = For(var.name, zero, _rest(length, looked, tuning.PART_LINES), Block((here,)), late.kind)
    missing = Binary("==", found, MISSING, DType.BOOL)
    where = substitute(place.value.then, {late.var: plus(plus(late.min, begin), Cast(found, DType.INT64))})
    looks = If(missing, Block((_set(begin, plus(first, looked)), look)))
    body = Block(
        (
            _set(best, identity),
            _set(block, zero),
            For(number.name, zero, ceil_div(early.extent, int64(tuning.BLOCK)), Block(blocks), "serial", early.axis),
            replace(extreme, value=best),
            *between,
            _set(found, MISSING),
            _set(begin, zero),
            For(step.name, zero, ceil_div(length, int64(tuning.PART_LINES)), Block((looks,)), "serial", late.axis),
            replace(place, value=Select(missing, none, where, none.dtype)),
        )
    )
    stmt: Stmt = body
    for each in (part, best, block, begin, found):
        stmt = Allocate(Buffer(each.tensor, each.dtype, (int64(1),), "local"), Block((stmt,)))
    return (stmt,)


def _rest(extent: Expr, start: Expr, most: int) -> Expr:
    return minimum(int64(most), Binary("-", extent, start, DType.INT64))


def _set(target: Read, value: Expr) -> Store:
    return Store(target.tensor, target.indices, value)


def _into(store: Store, target: Read, value: Expr) -> Store:
    return replace(store, buffer=target.tensor, indices=target.indices, value=value)


__all__ = ["first_places", "only_reduction"]
