"""An extreme and the first place that has it: one pass, in which every lane keeps both.

Worked example, with 64 lanes,

    for m in 0:M: V[n] = max(V[n], X[n, m])                   for v in 0:64: v[v], p[v] = X[n, v], v
    for m in 0:M                                        ->    for o in 1:ceil(M/64): for v in 0:min(64, M - 64*o)
      P[n] = min(P[n], X[n, m] == V[n] ? m : none)              X > v[v] ? p[v], v[v] = 64*o + v, X
                                                              for v in 0:64: V[n] = max(V[n], v[v])
                                                              for v in 0:64: P[n] = min(P[n], v[v] == V[n] ? p[v] : none)

A lane changes its place where a value is larger than all before it in the lane, or the first NaN, so places are the first ones.
They grow along the loop, so the smallest one of the lanes that have the extreme is the first one of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc_jupyter.loops import Allocate, Block, Buffer, For, If, Stmt, Store
from tc_jupyter.loops.rewrite import flat, substitute, with_blocks, with_body
from tc_jupyter.program import Binary, Cast, DType, Expr, IndexVar, Read, Select, Unary, identity_of, int64
from tc_jupyter.program.integers import ceil_div, minimum, plus, times
from tc_jupyter.ranges import from_expr
from tc_jupyter.schedule import Target

from .polynomial import mentions

VECTORS = 4
"""Vectors of lanes: as many as hide how long a comparison and two choices take."""

NARROWEST = 32
"""Of narrower values a vector has more lanes than there are places in it: two passes over rows in a cache take less. Measured with
AVX-512, one thread, over a maximum: `float` of 4000 x 2000 1.2 in one pass and 2.1 in two, of 1000 x 1000, which is in the second
cache, 2.6 and 2.6; `double` 1.1 and 1.9, 2.5 and 2.5; `uint8` 3.8 and 3.4, 3.8 and 3.3."""


def first_places(block: Block, target: Target) -> Block:
    """Join every two loops inside that find an extreme and its first place."""
    body = flat(block)
    for late, stmt in enumerate(body):
        found = _search(stmt)
        if found is None or not isinstance(stmt, If):
            continue
        for early in reversed(range(late)):
            one, between = body[early], body[early + 1 : late]
            joined = _joined(one, between, found, target)
            if joined is None:
                continue
            apart = None if stmt.otherwise is None else Block((one, *between, *stmt.otherwise.body))
            some = Binary(">", found.extent, int64(0), DType.BOOL)
            condition = Binary("&&", stmt.condition, some, DType.BOOL)
            both = replace(stmt, condition=condition, then=Block(joined), otherwise=apart)
            return replace(block, body=(*body[:early], both, *body[late + 1 :]))
    return with_body(block, (with_blocks(stmt, lambda inner: first_places(inner, target)) for stmt in block.body))


def _search(stmt: Stmt) -> For | None:
    """The loop that looks for a place in 32 bits (`narrow`)."""
    inner = stmt.then.body[0] if isinstance(stmt, If) and len(stmt.then.body) == 1 else None
    return inner if isinstance(inner, For) else None


def _joined(one: Stmt, between: Sequence[Stmt], late: For, target: Target) -> tuple[Stmt, ...] | None:
    """What finds both; `None` if the second loop does not look for the first place of the extreme that the first one finds."""
    early = one if isinstance(one, For) else None
    extreme, place = _only(early), _only(late)
    if early is None or extreme is None or place is None or (early.min, early.extent) != (late.min, late.extent):
        return None
    if (
        extreme.value.dtype.bits < NARROWEST
        or extreme.reduce not in ("min", "max")
        or place.reduce != "min"
        or not isinstance(place.value, Select)
    ):
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
    lanes = VECTORS * (target.vector_bits // max(32, value.dtype.bits))
    return _lanes(early, extreme, between, late, place, wanted, none, lanes)


def _only(loop: For | None) -> Store | None:
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


def _lanes(
    early: For,
    extreme: Store,
    between: Sequence[Stmt],
    late: For,
    place: Store,
    wanted: Expr,
    none: Expr,
    lanes: int,
) -> tuple[Stmt, ...]:
    assert isinstance(place.value, Select)
    assert extreme.reduce is not None
    dtype, var, step = extreme.value.dtype, f"{early.var}.v", f"{early.var}.o"
    lane, count = IndexVar(var), int64(lanes)
    values = Buffer(f"{extreme.buffer}.lanes", dtype, (count,), "register")
    places = Buffer(f"{place.buffer}.lanes", none.dtype, (count,), "register")
    value, at = Read(values.name, (lane,), dtype), Read(places.name, (lane,), none.dtype)

    def here(expr: Expr, loop: For, offset: Expr) -> Expr:
        return substitute(expr, {loop.var: plus(loop.min, offset)})

    def loop(extent: Expr, *body: Stmt) -> For:
        return For(var, int64(0), extent, Block(body), "vectorize", early.axis)

    there = Binary("<", lane, early.extent, DType.BOOL)
    first = Select(there, here(extreme.value, early, lane), identity_of(extreme.reduce, dtype), dtype)
    start = loop(
        count,
        replace(extreme, buffer=values.name, indices=(lane,), value=first, reduce=None),
        replace(
            place,
            buffer=places.name,
            indices=(lane,),
            value=Select(there, here(place.value.then, late, lane), none, none.dtype),
            reduce=None,
        ),
    )
    offset = plus(times(IndexVar(step), count), lane)
    new = here(extreme.value, early, offset)
    better: Expr = Binary(">" if extreme.reduce == "max" else "<", new, value, DType.BOOL)
    if dtype.is_float:  # also the first NaN, but none after it
        other = Binary("<=" if extreme.reduce == "max" else ">=", new, value, DType.BOOL)
        number = Binary("==", value, value, DType.BOOL)
        better = Binary("&&", number, Unary("!", other, DType.BOOL), DType.BOOL)
    chosen = Select(better, here(place.value.then, late, offset), at, none.dtype)
    rest = Binary("-", early.extent, times(IndexVar(step), count), DType.INT64)
    part = loop(
        minimum(count, rest),
        replace(place, buffer=places.name, indices=(lane,), value=chosen, reduce=None),
        replace(extreme, buffer=values.name, indices=(lane,), value=Select(better, new, value, dtype), reduce=None),
    )
    others = Binary("-", ceil_div(early.extent, count), int64(1), DType.INT64)
    steps = For(step, int64(1), others, Block((part,)), "serial", early.axis)
    has: Expr = Binary("==", value, wanted, DType.BOOL)
    if dtype.is_float:
        both = Binary(
            "&&", Binary("!=", wanted, wanted, DType.BOOL), Binary("!=", value, value, DType.BOOL), DType.BOOL
        )
        has = Binary("||", has, both, DType.BOOL)
    body = Block(
        (
            start,
            steps,
            loop(count, replace(extreme, value=value)),
            *between,
            loop(count, replace(place, value=Select(has, at, none, none.dtype))),
        )
    )
    return (Allocate(values, Block((Allocate(places, body),))),)


__all__ = ["first_places"]
