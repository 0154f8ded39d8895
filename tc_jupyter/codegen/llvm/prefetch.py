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

A stencil reads a row of memory while it writes one past the caches, and the two disturb each other. So the row that the next
iteration reads for the first time is fetched as a whole before this one is computed.

Worked example: `for i: for j: Y[i, j] = X[i, j] + X[i + 1, j] + X[i + 2, j]`; the iteration `i` first fetches the row `X[i + 3]`.

Measured on an AMD EPYC processor with AVX-512, one thread: 5 points, 4096 x 4096, 5.5 ms without, 3.7 with it; up to the edge 6.6
and 3.9; on a torus 5.2 and 4.0; 7 points, 256 x 256 x 256, with rows of 1 kB, 0.97 to 0.99 of the time; maxima of 3 x 3 neighbours
4.6 and 3.5. Each line fetched 2 to 64 kB ahead, while the lines before are computed: 4.6 to 5.4. Stencils in tiles of rows
(`row_tiles`) fetch none, and nothing is fetched for processors that read ahead themselves (`Target.reads_ahead`).

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

Measured with AVX-512, 4096 x 20 look-ups of 64 floats in 100,000 rows: 0.59 ms without, 0.36 ms at distance 8, 0.32 ms at 24.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from tc_jupyter.loops import Block, For, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.program import Binary, Call, DType, Expr, IndexVar, Read, Select, int64, walk
from tc_jupyter.program.integers import has_read, index_names, maximum, plus, times
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.target import LINE_BYTES

from .known import KNOWN
from .polynomial import (
    Polynomial,
    Product,
    add,
    as_expr,
    coefficient,
    mentions,
    moves,
    multiply,
    polynomial,
    scaled,
    step,
)
from .prepare import upper_limit

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


def next_rows(
    body: Block, var: str, inputs: Mapping[str, Sequence[Polynomial]], resolve: Callable[[Expr], Expr]
) -> list[tuple[str, Polynomial, Polynomial]]:
    """Where the rows of inputs begin that the next iteration of a loop over rows reads and this one does not.

    Args:
        body: of the loop; it is one over rows if one loop inside goes along rows of the inputs, a vector at a time.
        var: the variable of the loop.
        inputs: the inputs, with elements per step of each of their dimensions.
        resolve: puts in the numbers of written-out loops.

    Returns:
        (input, position of the first element of the row, elements by which it moves per iteration) for each; nothing for other
        loops.
    """
    if sum(isinstance(stmt, For) for stmt in body.body) != 1:
        return []  # the row is read again, from a cache
    loops = {stmt.var: stmt for stmt in walk_statements(body) if isinstance(stmt, For)}
    reads = dict.fromkeys(
        node
        for stmt in walk_statements(body)
        for expr in expressions(stmt)
        for node in walk(expr)
        if isinstance(node, Read) and node.tensor in inputs and node.indices
    )
    found: dict[str, list[Polynomial]] = {}
    for read in reads:
        starts = _rows(read, var, loops, inputs[read.tensor], resolve)
        if starts is None:
            return []
        found.setdefault(read.tensor, []).extend(starts)
    rows: list[tuple[str, Polynomial, Polynomial]] = []
    for name, starts in found.items():
        known = list(starts)
        for start in starts:
            gain = coefficient(start, var)
            after = add(start, gain or Polynomial(()))
            if not any(_is_near(after, other) for other in known):
                known.append(after)
                rows.append((name, after, gain or Polynomial(())))
    return rows if len(rows) <= tuning.FETCHES else []


def _is_near(one: Polynomial, other: Polynomial) -> bool:
    rest = add(one, scaled(other, -1))
    return abs(rest.constant) <= LINE_BYTES and all(not product for product, _ in rest.terms)


def _rows(
    read: Read, var: str, loops: Mapping[str, For], strides: Sequence[Polynomial], resolve: Callable[[Expr], Expr]
) -> list[Polynomial] | None:
    """First elements of the rows that a read reads in an iteration of the loop; `None` if these are parts of rows."""
    *outer, last = (_unlimited(resolve(index), {var, *loops}) for index in read.indices)
    along = index_names(last)
    if not any(name in loops and loops[name].kind == "vectorize" for name in along):
        return []  # the same element for all lanes
    if len(strides) != len(read.indices) or not along <= loops.keys() or any(map(has_read, (*outer, last))):
        return None
    place = _place_in_row(polynomial(last), (var, *loops)) if outer else polynomial(last)
    starts = [Polynomial(())]
    for where, stride in zip((*map(polynomial, outer), place), strides, strict=True):
        starts = [add(starts[0], multiply(where, stride))]
    for name, loop in loops.items():
        if not moves(starts[0], name):
            continue
        count = 1 if name in along else upper_limit(resolve(loop.extent)) or tuning.FETCHES + 1
        if count > tuning.FETCHES:
            return None
        numbers = [plus(loop.min, int64(number)) for number in range(count)]
        starts = [polynomial(substitute(as_expr(start), {name: number})) for start in starts for number in numbers]
    known = all(
        coefficient(start, var) is not None and not any(moves(start, name) for name in loops) for start in starts
    )
    return starts if known else None


def _place_in_row(last: Polynomial, moving: Collection[str]) -> Polynomial:
    """The last index without sizes: the end of a row, which shorter vectors go through, is fetched with its beginning."""

    def counts(product: Product) -> bool:
        return not product or any(mentions(factor, name) for factor in product for name in moving)

    return Polynomial(tuple((product, by) for product, by in last.terms if counts(product)))


def _unlimited(index: Expr, moving: Collection[str]) -> Expr:
    """An index without the remainders and limits that keep it inside an array: any place may be fetched."""
    if not isinstance(index, Binary):
        return index
    left, right = (any(mentions(side, name) for name in moving) for side in (index.left, index.right))
    if index.op in ("%", "min", "max") and left != right and (left or index.op != "%"):
        return _unlimited(index.left if left else index.right, moving)
    return replace(index, left=_unlimited(index.left, moving), right=_unlimited(index.right, moving))


def is_batch(body: Block, item: str, inputs: frozenset[str]) -> bool:
    """Whether a task reads two inputs or more, and of each of them only what belongs to the item."""
    reads = [
        node
        for stmt in walk_statements(body)
        for expr in expressions(stmt)
        for node in walk(expr)
        if isinstance(node, Read) and node.tensor in inputs
    ]
    plain = not any(has_read(index) for read in reads for index in read.indices)
    own = plain and all(any(mentions(index, item) for index in read.indices) for read in reads)
    return own and len({read.tensor for read in reads}) > 1


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
