"""What a loop will need: rows of later look-ups, the panel of a packed operand after this one, the next product of a batch.

The processor guesses what a loop reads next only if it moves evenly. A loop over look-ups (`E(I(b,l), d)`) does not, but its index
values are known early: the row of a later index is fetched while the present one is added.

Worked example: in `for l: O[0:64] += E[I[b, l], 0:64]` the row of the index that stands 24 places further in `I` is fetched, or of
the last index of `I` near its end. That crosses into the next `b`, so short lists are fetched ahead as well as long ones.

A panel that is read once per tile of rows stays in the second cache, but the next one comes from the third or from memory: the
first tile of rows would wait for it, longer than it computes. So every tile fetches its part of the next panel while it computes.

Worked example: `for j: for i in 0:8: for k in 0:K: C += A[i, k] * B[j, k, 0:32]`; in the iteration `(j, i, k)` the 4 elements from
`4 * (K*i + k)` of the panel `j + 1` are fetched.

Measured with AVX-512, products on one thread, over PyTorch's time: 2048 1.42 without, 0.99 with it, 1024 1.06 and 0.95, 512 1.02
and 1.01; with two threads 2048 1.29 and 0.89.

Small products of a batch are read once each, where they lie: while one is computed, the two operands of the next one are fetched,
a piece in every step of the reduction.

Worked example: `for b (task): for i: for j: for k in 0:K: C += X[b, i, k] * Y[b, k, 0:32]`; the iteration `(b, i, j, k)` fetches
piece `(i*J + j)*K + k` of the `I*J*K` pieces of `X[b + 1]`, and the same of `Y[b + 1]`.

Measured with AVX-512, 500 products of 26 x 72 x 26: 0.72 to 0.89 of the time without it, 64 of 64 x 64 x 64 0.95 to 1.1. Where only
one operand belongs to the item (Kronecker products: 0.98 to 1.2), or an index table does (1.9), it costs more than it gains.

Where elements take long to compute (`tanh`), the processor has not much more than one vector under way, so it asks late for the
next ones, if several inputs come from memory: a statement that calls such a function fetches what it reads a little later.

Worked example: `Y(i) = tanh(A(i) * B(i) + C(i)) * A(i)` fetches the lines of `A`, `B` and `C` that lie 512 bytes ahead.

Measured on an AMD EPYC processor with AVX-512, 16 million elements on one thread: 12.0 ms without, 10.4 at 256 and 512 bytes, 11.0
at 1 kB, 12.4 at 4 kB; with `exp` in place of `tanh` 0.97 of the time, with one input or in caches 1.0.

A stream that is made of one input alone and written past the caches fetches that input 2 kB ahead.

Worked example: `Y(i) = 2 * X(i)` on arrays of 64 MB.

Measured on that processor, 16 million elements on one thread: copy 3.42 ms without, 3.27 at 512 bytes, 3.01 at 1 kB, 2.91 at 2 kB,
2.93 at 4 kB, on two 2.90 and 2.77; 4 million, which stay in the caches, are written there, and 1 million took up to 1.1 times as
long. Of two inputs 0.96 to 1.0 of the time at 2 kB, of three 1.03; of one that is `float16` 1.05 to 1.1.

The row that the next iteration of a stencil reads is not fetched: on an Intel processor (Sapphire Rapids), one thread, 5 points
took 2.4 times as long so on a torus and 1.2 up to the edge, a matrix times a vector 1.4; on Zen 4 7 points 1.1.

Measured with AVX-512, 4096 x 20 look-ups of 64 floats in 100,000 rows: 0.59 ms without, 0.36 ms at distance 8, 0.32 ms at 24.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tc_jupyter.loops import Block, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.program import Binary, Call, DType, Expr, IndexVar, Read, Select, int64, walk
from tc_jupyter.program.integers import has_read, maximum, plus, times
from tc_jupyter.schedule import tuning

from .known import KNOWN
from .limits import upper_limit
from .polynomial import (
    Polynomial,
    as_expr,
    coefficient,
    mentions,
    moves,
    polynomial,
    step,
)

FIRST, SECOND = 3, 2
"""Caches to fetch into, as LLVM counts them."""


def takes_long(stmt: Store, inputs: Collection[str]) -> bool:
    """Whether an assignment computes so long that it has to ask early for what it reads: of two inputs or more."""
    if stmt.reduce is not None:
        return False
    nodes = list(walk(stmt.value))
    read = {node.tensor for node in nodes if isinstance(node, Read) and node.tensor in inputs and node.indices}
    return len(read) > 1 and any(isinstance(node, Call) and node.function in KNOWN for node in nodes)


def reads_once(stmt: Store, inputs: Collection[str]) -> bool:
    """Whether an assignment needs one element of an input, at a place that is known; 16-bit floats are converted meanwhile."""
    if stmt.reduce is not None:
        return False
    read = [node for node in walk(stmt.value) if isinstance(node, Read) and node.tensor in inputs and node.indices]
    return len(read) == 1 and read[0].dtype.compute is read[0].dtype and not any(map(has_read, read[0].indices))


def look_up(offset: Polynomial, var: str) -> Read | None:
    """The only read of a table of indices in a position, if it moves with `var`."""
    found = [
        node
        for product, _ in offset.terms
        for factor in product
        for node in walk(factor)
        if isinstance(node, Read) and node.indices
    ]
    one = len(found) == 1 and any(mentions(index, var) for index in found[0].indices)
    return found[0] if one else None


def distance(nbytes: int) -> int:
    """How many look-ups ahead, for vectors of `nbytes`."""
    return max(4, min(32, tuning.AHEAD // nbytes))


def next_panel(offset: Polynomial, loops: Sequence[str], extents: Mapping[str, Expr]) -> tuple[Polynomial, int] | None:
    """Which piece of the next panel to fetch in an iteration, and its length in elements; `None` without a panel.

    Args:
        offset: the position that is read, for the first lane.
        loops: variables of the loops around it, outermost first; the last three run over panels, repetitions and rows.
        extents: lengths of these loops, as far as they begin at 0.
    """
    if len(loops) < 3 or loops[-2] not in extents or loops[-1] not in extents:
        return None
    panel, again, row = loops[-3:]
    if any(has_read(factor) for product, _ in offset.terms for factor in product) or has_read(extents[row]):
        return None
    length, linear = step(offset, row)
    repetitions = upper_limit(extents[again]) or 1
    if (
        not linear
        or length is None
        or length <= 0
        or moves(offset, again)
        or not moves(offset, panel)
        or repetitions < 2
    ):
        return None
    piece = -(-length // repetitions)
    start = substitute(as_expr(offset), {panel: plus(IndexVar(panel), int64(1)), row: int64(0)})
    rows = plus(times(IndexVar(again), extents[row]), IndexVar(row))
    return polynomial(plus(start, times(rows, int64(piece)))), piece


def is_batch(body: Block, item: str, inputs: frozenset[str]) -> bool:
    """Whether a task adds something up, reads two inputs or more, and of each of them only what belongs to the item."""
    adds_up = any(isinstance(stmt, Store) and stmt.reduce is not None for stmt in walk_statements(body))
    reads = [
        node
        for stmt in walk_statements(body)
        for expr in expressions(stmt)
        for node in walk(expr)
        if isinstance(node, Read) and node.tensor in inputs
    ]
    plain = not any(has_read(index) for read in reads for index in read.indices)
    own = plain and all(any(mentions(index, item) for index in read.indices) for read in reads)
    return adds_up and own and len({read.tensor for read in reads}) > 1


def next_item(
    offset: Polynomial, item: str, loops: Sequence[str], extents: Mapping[str, Expr], most: int
) -> Polynomial | None:
    """Which element of the next item of a batch to fetch in an iteration; `None` if the nest is no product of tiles.

    Items of constant length have none: a step of a constant along the last dimension is a tile as well.

    Args:
        offset: the position that is read, for the first lane.
        item: the loop variable over items; one task computes an item.
        loops: variables of the loops inside, outermost first; the last one is the reduction, the others are tiles of the result.
        extents: lengths of these loops, as far as they begin at 0.
        most: elements of an item that is worth it.
    """
    *tiles, row = loops or ("",)
    if not tiles or any(name not in extents or has_read(extents[name]) for name in loops) or not moves(offset, row):
        return None
    if all(moves(offset, name) for name in tiles):
        return None
    length = coefficient(offset, item)
    if length is None or not any(product for product, _ in length.terms):
        return None
    count: Expr = int64(0)
    steps: Expr = int64(1)
    for name in loops:
        count, steps = plus(times(count, extents[name]), IndexVar(name)), times(steps, extents[name])
    size = as_expr(length)
    piece = Binary("//", plus(plus(size, steps), int64(-1)), maximum(steps, int64(1)), DType.INT64)
    some = Select(Binary("<=", size, int64(most), DType.BOOL), piece, int64(0), DType.INT64)
    return polynomial(plus(times(size, plus(IndexVar(item), int64(1))), times(count, some)))
