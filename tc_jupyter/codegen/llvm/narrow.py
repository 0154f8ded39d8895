"""The smallest or largest of some positions is found in 32 bits where sizes say that these are enough.

Worked example: twice as many lanes, and one instruction for the smaller of two, which AVX2 has for 32 bits only, in

    for m in 0:M                                         if M <= 2147483646 && ...
      P[n] min= X[n, m] == V[n] ? m : M                    for m in 0:M
                                                 ->          P[n] min= X[n, m] == V[n] ? int32(m) : int32(M)
                                                         else
                                                           for m in 0:M
                                                             P[n] min= X[n, m] == V[n] ? m : M

Partial results have the type of the values: `accumulate` starts them at the start value of 32 bits, and combines them with the
target at the end, where that start value stands for the one of 64 bits. The other loops are printed without vectors: a row of 2^31
elements is rare. Measured with AVX2, 4096 x 1024: a maximum and its position take 0.53 of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tc_jupyter.loops import Block, For, If, Stmt, Store, walk_statements
from tc_jupyter.loops.rewrite import with_blocks, with_body
from tc_jupyter.program import (
    LARGEST_POSITION,
    Binary,
    Const,
    DType,
    Expr,
    IndexVar,
    Size,
    in_32_bits,
    int64,
    positions,
    walk,
)
from tc_jupyter.program.integers import plus

from .limits import largest
from .polynomial import constant_value

Ranges = Mapping[str, tuple[Expr, Expr]]
Loops = tuple[For, ...]


def narrow(block: Block, outer: Loops = ()) -> Block:
    """Make every loop nest that finds such positions, and only reduces, in two versions; `outer` are the loops around."""
    return with_body(block, (_narrow(stmt, outer) for stmt in block.body))


def _narrow(stmt: Stmt, outer: Loops) -> Stmt:
    if not isinstance(stmt, For):
        return with_blocks(stmt, lambda block: narrow(block, outer))
    conditions = _conditions(stmt, outer) if stmt.kind != "parallel" else None
    if not conditions:
        return with_blocks(stmt, lambda block: narrow(block, (*outer, stmt)))
    condition = conditions[0]
    for other in conditions[1:]:
        condition = Binary("&&", condition, other, DType.BOOL)
    return If(condition, Block((_in_32_bits(stmt),)), Block((_serial(stmt),)))


def _conditions(loop: For, outer: Loops) -> Sequence[Expr] | None:
    """What sizes must be for all positions in a nest of loops that only reduces; `None` if it stays as it is."""
    inside = tuple(walk_statements(loop.body))
    stores = [stmt for stmt in inside if isinstance(stmt, Store)]
    if not all(isinstance(stmt, For | Block | Store) for stmt in inside):
        return None
    if any(store.reduce is None or store.atomic for store in stores) or not any(map(_is_of_positions, stores)):
        return None
    found: dict[Expr, None] = {}
    for first, last in _bounds(loop, outer):
        conditions = _between(first, last)
        if conditions is None:
            return None
        found.update(dict.fromkeys(conditions))
    return list(found)


def _is_of_positions(store: Store) -> bool:
    return store.reduce in ("min", "max") and bool(positions(store.value))


def _bounds(stmt: Stmt, outer: Loops) -> Iterator[tuple[Expr | None, Expr | None]]:
    """The least and the largest value over sizes of all parts of positions that are found inside; `None` if not known."""
    match stmt:
        case For():
            for child in stmt.body.body:
                yield from _bounds(child, (*outer, stmt))
        case Block():
            for child in stmt.body:
                yield from _bounds(child, outer)
        case Store() if _is_of_positions(stmt):
            ranges = _ranges(outer)
            for part in dict.fromkeys(part for position in positions(stmt.value) for part in _parts(position)):
                yield _bound(part, ranges, False), _bound(part, ranges)
        case _:
            pass


def _parts(position: Expr) -> Iterator[Expr]:
    """What must fit 32 bits, so that no bound wraps around in 64: the position, its products and their factors."""
    yield position
    for node in walk(position):
        if isinstance(node, Binary) and node.op == "*":
            yield from (node.left, node.right, node)


def _ranges(loops: Loops) -> Ranges:
    """First and last value of every loop variable, over sizes, where known."""
    ranges: dict[str, tuple[Expr, Expr]] = {}
    for loop in loops:
        last = Binary("-", plus(loop.min, loop.extent), int64(1), DType.INT64)
        found = _bound(loop.min, ranges, False), _bound(last, ranges)
        if found[0] is not None and found[1] is not None:
            ranges[loop.var] = (found[0], found[1])
    return ranges


def _bound(expr: Expr, ranges: Ranges, upper: bool = True) -> Expr | None:
    known = all(node.name in ranges for node in walk(expr) if isinstance(node, IndexVar))
    try:
        return largest(expr, ranges, upper) if known else None
    except RuntimeError:  # has elements of a tensor, say
        return None


def _between(first: Expr | None, last: Expr | None) -> list[Expr] | None:
    """What must be seen at run time, for no position to exceed `LARGEST_POSITION`; `None` if some do, or nothing is known."""
    if first is None or last is None:
        return None
    conditions: list[Expr] = []
    least, most = constant_value(first), constant_value(last)
    if (least is not None and least < -LARGEST_POSITION) or (most is not None and most > LARGEST_POSITION):
        return None
    if least is None and not _is_natural(first):
        conditions.append(Binary(">=", first, int64(-LARGEST_POSITION), DType.BOOL))
    if most is None:
        conditions.append(Binary("<=", last, int64(LARGEST_POSITION), DType.BOOL))
    return conditions


def _is_natural(value: Expr) -> bool:
    """Whether the value is made of sizes and numbers that are not negative."""
    return all(
        isinstance(node, Size)
        or (isinstance(node, Const) and node.value >= 0)
        or (isinstance(node, Binary) and node.op in ("+", "*"))
        for node in walk(value)
    )


def _in_32_bits(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Store) and _is_of_positions(stmt):
        return replace(stmt, value=in_32_bits(stmt.value))
    return with_blocks(stmt, lambda block: replace(block, body=tuple(map(_in_32_bits, block.body))))


def _serial(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For):
        stmt = replace(stmt, kind="serial")
    return with_blocks(stmt, lambda block: replace(block, body=tuple(map(_serial, block.body))))
