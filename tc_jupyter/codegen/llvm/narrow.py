"""The smallest or largest of some positions is found in 32 bits where sizes say that these are enough.

Worked example: twice as many lanes, and one instruction for the smaller of two, which AVX2 has for 32 bits only, in

    for m in 0:M                                         if M <= 2147483646 && ...
      P[n] min= X[n, m] == V[n] ? m : M                    for m in 0:M
                                                 ->          P[n] min= X[n, m] == V[n] ? int32(m) : int32(M)
                                                         else
                                                           for m in 0:M
                                                             P[n] min= X[n, m] == V[n] ? m : M

Partial results have the type of the values; the start value of 32 bits stands for that of 64 bits. The other loops are printed
without vectors: a row of 2^31 elements is rare. Measured with AVX2, 4096 x 1024: a maximum and its position take 0.53 of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tc_jupyter.loops import Block, For, If, Stmt, Store, walk_statements
from tc_jupyter.loops.rewrite import with_blocks
from tc_jupyter.program import Binary, Const, DType, Expr, Size, in_32_bits, int64, positions, walk

from .prepare import constant_value, largest, plus

LARGEST = (1 << 31) - 2
"""Of the positions and their negatives: 32 bits without the two values that stand for no position."""

Ranges = Mapping[str, tuple[Expr, Expr]]


def narrow(block: Block, ranges: Ranges | None = None) -> Block:
    """Make every loop nest that finds such positions, and only reduces, in two versions."""
    return replace(block, body=tuple(_narrow(stmt, ranges or {}) for stmt in block.body))


def _narrow(stmt: Stmt, ranges: Ranges) -> Stmt:
    if not isinstance(stmt, For):
        return with_blocks(stmt, lambda block: narrow(block, ranges))
    conditions = _conditions(stmt, ranges) if stmt.kind != "parallel" else None
    if not conditions:
        return with_blocks(stmt, lambda block: narrow(block, _with(ranges, stmt)))
    condition = conditions[0]
    for other in conditions[1:]:
        condition = Binary("&&", condition, other, DType.BOOL)
    return If(condition, Block((_in_32_bits(stmt),)), Block((_serial(stmt),)))


def _with(ranges: Ranges, loop: For) -> Ranges:
    """The ranges inside a loop: first and last value of its variable, over sizes."""
    last = Binary("-", plus(loop.min, loop.extent), int64(1), DType.INT64)
    return {**ranges, loop.var: (largest(loop.min, ranges, False), largest(last, ranges))}


def _conditions(loop: For, ranges: Ranges) -> Sequence[Expr] | None:
    """What sizes must be for all positions in a nest of loops that only reduces; `None` for other loops."""
    inside = tuple(walk_statements(loop.body))
    stores = [stmt for stmt in inside if isinstance(stmt, Store)]
    if not all(isinstance(stmt, For | Block | Store) for stmt in inside):
        return None
    if any(store.reduce is None or store.atomic for store in stores) or not any(map(_is_of_positions, stores)):
        return None
    return list(dict.fromkeys(_limits(loop, ranges)))


def _is_of_positions(store: Store) -> bool:
    return store.reduce in ("min", "max") and bool(positions(store.value))


def _limits(stmt: Stmt, ranges: Ranges) -> Iterator[Expr]:
    """Conditions on sizes, for each position that is found inside."""
    match stmt:
        case For():
            inner = _with(ranges, stmt)
            for child in stmt.body.body:
                yield from _limits(child, inner)
        case Block():
            for child in stmt.body:
                yield from _limits(child, ranges)
        case Store() if _is_of_positions(stmt):
            for position in positions(stmt.value):
                yield from _between(largest(position, ranges, False), largest(position, ranges))
        case _:
            pass


def _between(first: Expr, last: Expr) -> Iterator[Expr]:
    """What has to be seen at run time of `-LARGEST <= first` and `last <= LARGEST`."""
    least, most = constant_value(first), constant_value(last)
    if not (_is_natural(first) if least is None else least >= -LARGEST):
        yield Binary(">=", first, int64(-LARGEST), DType.BOOL)
    if most is None or most > LARGEST:
        yield Binary("<=", last, int64(LARGEST), DType.BOOL)


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
