"""Reads across rows: a block is loaded along the rows and turned in registers.

A vectorised loop over `j` that reads `B[j, k]` takes its lanes from different rows, which is a slow gather. If neighbouring
`k` follow, whole pieces of rows can be loaded and transposed: n vectors of n lanes in n log2(n) shuffles.

Worked example: `for k in 0:K`, `for j in 0:32 (vectorize): P[k, j] = B[j, k]` becomes blocks of 16 iterations of `k` that are
written out (`blocked`); before each block 32 pieces of 16 elements are read and turned (`turn`).

Two written-out iterations that read `X[2*j]` and `X[2*j + 1]` need every other element of the same memory: it is read once and
taken apart (`apart`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tc_jupyter.loops import Allocate, Block, Buffer, For, Stmt, Store, walk_statements
from tc_jupyter.loops.rewrite import mapped_block, substitute, with_blocks, with_body
from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, Select, children, int64, rebuild
from tc_jupyter.program.integers import plus, times
from tc_jupyter.schedule import Target, tuning

from . import arith
from .builder import Builder, Value
from .limits import upper_limit
from .polynomial import constant_value, mentions, polynomial, step


def blocked(block: Block, buffers: Mapping[str, Buffer], target: Target) -> Block:
    """Cut loops over the contiguous index of such reads into written-out blocks and a rest."""
    own = {s.buffer.name: s.buffer for s in block.body if isinstance(s, Allocate)}
    buffers = {**buffers, **own} if own else buffers
    body: list[Stmt] = []
    for stmt in block.body:
        body += _blocked(stmt, buffers, target)
    return with_body(block, body)


def under_masks(block: Block, buffers: Mapping[str, Buffer], target: Target) -> Block:
    """Say `mask` of the tails of loops that turn what a task has collected, if masks are free: they have one version.

    A convolution with the second version had 1,433 lines, and 250 more without gain: it is written once per sum.
    """
    if not target.free_masks:
        return block
    own = {s.buffer.name: s.buffer for s in block.body if isinstance(s, Allocate)}
    buffers = {**buffers, **own} if own else buffers
    return with_body(block, (_under_masks(stmt, buffers, target) for stmt in block.body))


def _under_masks(stmt: Stmt, buffers: Mapping[str, Buffer], target: Target) -> Stmt:
    inner = _single(stmt)
    if not isinstance(stmt, For) or inner is None or stmt.kind != "serial":
        return with_blocks(stmt, lambda child: under_masks(child, buffers, target))
    reads = list(crossing_reads(inner, stmt.var, buffers))
    if not reads or any(buffers[read.tensor].scope != "local" for read in reads):
        return stmt
    return replace(stmt, body=Block((replace(inner, tail="mask"),), stmt.body.comment))


def is_turned(stmt: Stmt, buffers: Mapping[str, Buffer], target: Target) -> bool:
    """Whether `blocked` cuts this loop: the limit of a row in it, which is found once for a whole piece, takes next to nothing."""
    return _turned(stmt, buffers, target) is not None


def _turned(stmt: Stmt, buffers: Mapping[str, Buffer], target: Target) -> tuple[For, For, int] | None:
    """A loop that is cut, as it is then: along rows, and the vectorised one inside; and the elements of a piece of a row."""
    inner = _single(stmt)
    if inner is None or not isinstance(stmt, For) or stmt.kind != "serial":
        return None
    loop, inner = _forwards(stmt, inner, buffers)
    width = turned_width(loop, inner, buffers, target)
    if width is None or not _turns(inner, crossing_reads(inner, loop.var, buffers), buffers, target):
        return None
    return loop, inner, width


def _blocked(stmt: Stmt, buffers: Mapping[str, Buffer], target: Target) -> tuple[Stmt, ...]:
    turned = _turned(stmt, buffers, target)
    if turned is None:
        return (with_blocks(stmt, lambda child: blocked(child, buffers, target)),)
    stmt, inner, width = turned
    outer, step_name = f"{stmt.var}.o", f"{stmt.var}.i"
    whole = Binary("//", stmt.extent, int64(width), DType.INT64)
    position = plus(stmt.min, plus(times(IndexVar(outer), int64(width)), IndexVar(step_name)))
    body = mapped_block(stmt.body, lambda expr: substitute(expr, {stmt.var: position}))
    main = For(outer, int64(0), whole, Block((For(step_name, int64(0), int64(width), body, "unroll", stmt.axis),)))
    main = _in_groups(main, inner, buffers, target)
    done = times(whole, int64(width))
    left = Binary("-", stmt.extent, done, DType.INT64)
    # gathers of a copy take as long as its elements one by one, and are far more code
    each = Block((replace(inner, kind="serial"),)) if all(map(_is_copy, inner.body.body)) else stmt.body
    return main, replace(stmt, min=plus(stmt.min, done), extent=left, body=each)


def _forwards(loop: For, inner: For, buffers: Mapping[str, Buffer]) -> tuple[For, For]:
    """The loop from its end to its start, if it reads rows backwards (`Y[i, j] = X[j, M - 1 - i]`).

    It assigns what it does not read (`crossing_reads`), so its iterations may come in any order.
    """
    if any(crossing_reads(inner, loop.var, buffers)):
        return loop, inner
    last = plus(loop.min, plus(loop.extent, int64(-1)))
    position = Binary("-", plus(last, loop.min), IndexVar(loop.var), DType.INT64)
    turned = mapped_block(inner.body, lambda expr: substitute(expr, {loop.var: position}))
    reverse = replace(inner, body=turned)
    if mentions(inner.extent, loop.var) or not any(crossing_reads(reverse, loop.var, buffers)):
        return loop, inner
    return replace(loop, body=Block((reverse,), loop.body.comment)), reverse


def _in_groups(main: For, inner: For, buffers: Mapping[str, Buffer], target: Target) -> For:
    """A copy of whole tiles into a temporary, one vector of rows after the other: the code for one serves all of them.

    Measured with AVX-512, two groups of 16: a layer 0.93 of the time, `A @ B.T` 0.95; with AVX2 1.01 and 1.01. A result is written
    in whole lines: a transpose with AVX2 took 1.87 times as long in halves of them.
    """
    lanes, group = constant_value(inner.extent), target.vector_bits // 32
    copies = all(
        isinstance(s, Store) and _is_copy(s) and buffers[s.buffer].scope != "argument" for s in inner.body.body
    )
    if lanes is None or lanes <= group or lanes % group or not copies:
        return main
    number = f"{inner.var}.g"
    lane = plus(times(IndexVar(number), int64(group)), IndexVar(inner.var))

    def narrowed(block: Block) -> Block:
        return with_body(block, map(narrow, block.body))

    def narrow(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.var == inner.var:
            return replace(
                stmt,
                extent=int64(group),
                body=mapped_block(stmt.body, lambda expr: substitute(expr, {inner.var: lane})),
            )
        return with_blocks(stmt, narrowed)

    return For(number, int64(0), int64(lanes // group), Block((with_blocks(main, narrowed),)))


def turned_width(loop: For, inner: For, buffers: Mapping[str, Buffer], target: Target) -> int | None:
    """Elements of a piece of a row, if the vectorised loop inside of a loop along rows reads across them and these are turned."""
    limit, count = upper_limit(inner.extent), constant_value(loop.extent)
    reads = tuple(crossing_reads(inner, loop.var, buffers))
    if not reads or limit is None or (count is not None and count < tuning.ABREAST):
        return None
    width = target.vector_bits // max(32, *(read.dtype.compute.bits for read in reads))
    least = limit.bit_length() - 1
    whole = least if limit == 1 << least or not target.free_masks else least + 1  # a row of 7 has a masked vector of 8
    width = min(width, 1 << whole)
    return None if width < 2 or width & (width - 1) else width


def _is_copy(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and isinstance(stmt.value, Read)


def _turns(inner: For, reads: Iterable[Read], buffers: Mapping[str, Buffer], target: Target) -> bool:
    """Whether all lanes are there, or those beyond the end are masked by an instruction; else they are read one by one."""
    return (
        constant_value(inner.extent) is not None
        or target.free_masks
        or all(target.has_masks(buffers[read.tensor].dtype.bits) for read in reads)
    )


def _single(stmt: Stmt) -> For | None:
    """The vectorised loop of assignments that is all that a loop does."""
    if not isinstance(stmt, For) or len(stmt.body.body) != 1:
        return None
    inner = stmt.body.body[0]
    if not isinstance(inner, For) or inner.kind != "vectorize" or constant_value(inner.min) != 0:
        return None
    plain = all(
        isinstance(s, Block) or (isinstance(s, Store) and s.reduce is None and not s.atomic)
        for s in walk_statements(inner.body)
    )
    return inner if plain else None


def crossing_reads(inner: For, var: str, buffers: Mapping[str, Buffer]) -> Iterator[Read]:
    """Unconditional reads of contiguous buffers whose last index is `var + ...` and whose row is chosen by the vectorised loop.

    The pieces of the rows may begin beside each other, as on a diagonal.
    The buffer is an input, or memory of the task that the loop does not write to.
    """
    written = {stmt.buffer for stmt in walk_statements(inner.body) if isinstance(stmt, Store)}
    for stmt in walk_statements(inner.body):
        if isinstance(stmt, Store):
            for read in plain_reads(stmt.value):
                buffer = buffers.get(read.tensor)
                if buffer is not None and read.tensor not in written and _crosses(read, buffer, inner.var, var):
                    yield read


def plain_reads(expr: Expr) -> Iterator[Read]:
    """Reads that happen in any case."""
    match expr:
        case Read():
            yield expr
        case Select():
            yield from plain_reads(expr.condition)
        case Binary(op="&&" | "||"):
            yield from plain_reads(expr.left)
        case _:
            for child in children(expr):
                yield from plain_reads(child)


def _crosses(read: Read, buffer: Buffer, lane: str, var: str) -> bool:
    own = buffer.scope == "local" and not buffer.pad
    if not (
        own
        or (buffer.role == "input" and buffer.scope in ("argument", "global") and not (buffer.strided or buffer.pad))
    ):
        return False
    if len(read.indices) < 2:
        return False
    if buffer.dtype is DType.BOOL or any(mentions(where, var) for where in read.indices[:-1]):
        return False
    rows = [step(polynomial(_without_last(where, lane)), lane) for where in read.indices[:-1]]
    last = polynomial(read.indices[-1])
    linear = all(constant for _, constant in rows) and any(change != 0 for change, _ in rows)
    return linear and step(last, var) == (1, True) and step(last, lane)[1]


def _without_last(where: Expr, lane: str) -> Expr:
    """A row as it would be without a last one that stands for those beyond it (see `packed_tails`)."""
    match where:
        case Binary(op="min", left=row, right=end) if step(polynomial(row), lane) == (1, True) and not mentions(
            end, lane
        ):
            return row
        case _:
            parts = children(where)
            return rebuild(where, tuple(_without_last(part, lane) for part in parts)) if parts else where


def turn(b: Builder, rows: list[Value]) -> list[Value]:
    """Transpose: `rows` are m vectors of n lanes, m a multiple of n, n a power of two; returns n vectors of m lanes.

    Rows 0, n, 2n and so on make one vector, 1, n+1, 2n+1 and so on the next one; loads put them there. What is left are exchanges
    between pieces of n lanes at the same place, which for n lanes of 128 bits never cross these.
    """
    width = rows[0].lanes
    part = [arith.joined(b, rows[first::width]) for first in range(width)]
    for _ in range(width.bit_length() - 1):
        pairs = [(part[k], part[k + width // 2]) for k in range(width // 2)]
        part = [
            half
            for low, high in pairs
            for half in (_interleave(b, low, high, 0, width), _interleave(b, low, high, 1, width))
        ]
    return part


def _interleave(b: Builder, left: Value, right: Value, side: int, width: int) -> Value:
    """Lanes of the lower or upper half of every piece of `width` lanes of two vectors in turn."""
    n, half = left.lanes, width // 2
    lanes = [piece + side * half + k for piece in range(0, n, width) for k in range(half)]
    return arith.pick(b, left, right, [lane for k in lanes for lane in (k, n + k)], "turn")


def apart(b: Builder, vectors: list[Value]) -> tuple[Value, Value]:
    """The even and the odd ones of twice as many neighbours as a vector has, each as one vector.

    Args:
        vectors: the first and the second half of them; or three: the first half, the middle (from a quarter on), the second half.
            Of three, vectors are made whose halves are the first and third, and the second and fourth quarter: then no shuffle
            crosses the halves of a register.
    """
    low, high, n = vectors[0], vectors[-1], vectors[0].lanes
    half = n
    if len(vectors) == 3:
        half = n // 2
        middle = vectors[1]
        kept = [*range(half), *range(n + half, 2 * n)]
        low, high = arith.pick(b, low, middle, kept, "quarters"), arith.pick(b, middle, high, kept, "quarters")
    evens = [first + at + k for at in range(0, n, half) for first in (0, n) for k in range(0, half, 2)]
    return arith.pick(b, low, high, evens, "even"), arith.pick(b, low, high, [lane + 1 for lane in evens], "odd")


def every(b: Builder, vectors: list[Value], first: int) -> Value:
    """Of n vectors of neighbours, one after the other, every n-th element from number `first` on, as one vector."""
    n, lanes = len(vectors), vectors[0].lanes
    return arith.picked(b, vectors, [divmod(first + n * lane, lanes) for lane in range(lanes)], "every")


def alternating(b: Builder, vectors: list[Value], number: int) -> Value:
    """Of what n vectors have, a lane of each in turn, the piece with that number as one vector: the opposite of `every`."""
    n, lanes = len(vectors), vectors[0].lanes
    at_lanes = range(number * lanes, (number + 1) * lanes)
    return arith.picked(b, vectors, [(at % n, at // n) for at in at_lanes], "mixed")
