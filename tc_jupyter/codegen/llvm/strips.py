"""Vectorised loops of any length -> loops over vectors.

* `find`: an innermost serial loop whose points are independent, or that reduces into one element, becomes a vectorised
  loop.
* `join`: a loop over vectors that the schedule wrote (`for o`, `for v in 0:min(16, n - 16*o)` vectorised) becomes one
  vectorised loop again, if its body uses `16*o + v` only.
* `strip`: a vectorised loop without a small constant extent is cut into vectors. If its body only assigns, it stays whole as
  a stream: a loop whose vectors may overlap, so that it needs no masks (`is_stream`).

Worked example: `for i in 0:N (vectorize): s += A[i]` becomes `for i.o in 0:ceil(N/64)` around
`for i.i in 0:min(64, N - 64*i.o)`, vectorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

from tc_jupyter.loops import Allocate, Block, Buffer, For, If, Stmt, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import mapped_block, substitute, with_blocks, with_body
from tc_jupyter.program import (
    COMPARISONS,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Size,
    children,
    int64,
    rebuild,
    walk,
)
from tc_jupyter.program.integers import has_read, minimum, plus, times
from tc_jupyter.ranges import floor_div, from_expr, interior, to_expr
from tc_jupyter.schedule import Target, tuning
from tc_jupyter.schedule.templates.contraction import PIXEL

from .full_tiles import SHORT
from .known import KNOWN
from .limits import upper_limit
from .polynomial import Polynomial, Product, as_expr, constant_value, mentions, polynomial, step
from .vector_math import is_inline

Flat = Mapping[str, int]
"""See `flat_dimensions`."""


def native_lanes(loop: For, target: Target) -> int:
    """Lanes of the widest element type that differs between the iterations of a loop, in one register; at least 2."""
    inside = tuple(walk_statements(loop.body))
    own = {stmt.buffer.name for stmt in inside if isinstance(stmt, Allocate)}

    known: dict[int, bool] = {}

    def moves(expr: Expr) -> bool:
        if id(expr) not in known:
            alone = (
                expr.name == loop.var if isinstance(expr, IndexVar) else isinstance(expr, Read) and expr.tensor in own
            )
            known[id(expr)] = alone or any(map(moves, children(expr)))
        return known[id(expr)]

    widths = [8]
    for stmt in inside:
        if isinstance(stmt, Store):
            values = (node for node in _values(stmt.value, moves) if not isinstance(node, IndexVar | Size | Const))
            widths += [node.dtype.compute.bits for node in values if node.dtype is not DType.BOOL]
    widest = max(widths)
    return max(2, target.vector_bits // (32 if widest == 8 and len(widths) == 1 else widest))


def _values(expr: Expr, moves: Callable[[Expr], bool]) -> Iterator[Expr]:
    """What is computed in vectors: all but what is the same in all lanes, and positions that are known without reading."""
    yield expr
    known = isinstance(expr, Read) and not any(has_read(where) for where in expr.indices)
    if isinstance(expr, Binary) and expr.op in COMPARISONS:
        sides = (side for side in (expr.left, expr.right) if has_read(side))
        known = expr.left.dtype is DType.INT64 and not any(map(moves, sides))  # lanes are compared by narrow numbers
    if known or (isinstance(expr, Cast) and not has_read(expr.operand)):
        return
    for child in children(expr):
        if moves(child):
            yield from _values(child, moves)


def operation_lanes(loop: For, flat: Flat, target: Target) -> int:
    """Iterations of a vectorised loop that are about as much work as one operation: elements far apart are read one by one."""
    reads = (n for stmt in walk_statements(loop.body) for expr in expressions(stmt) for n in walk(expr))
    ordered = all(in_order(node, loop.var, flat) for node in reads if isinstance(node, Read))
    return native_lanes(loop, target) if ordered else 1


# --- joining ---------------------------------------------------------------------------------------------------------


Rows = Mapping[str, int]
"""See `row_ends`."""


def row_ends(buffers: Iterable[Buffer]) -> Rows:
    """Elements along the last dimension of buffers in one piece whose rows are made of tiles: `A[i, k // 4, k % 4]`."""
    lengths = {
        buffer.name: constant_value(buffer.shape[-1]) for buffer in buffers if buffer.shape and not buffer.strided
    }
    return {name: length for name, length in lengths.items() if length is not None and length > 1}


def join(block: Block, rows: Rows) -> Block:
    """Apply the rule to all loops inside."""
    return with_body(block, (_join(stmt, rows) for stmt in block.body))


def _join(stmt: Stmt, rows: Rows) -> Stmt:
    stmt = with_blocks(stmt, lambda block: join(block, rows))
    found = one_loop(_in_rows(stmt, rows)) if isinstance(stmt, For) else None
    return stmt if found is None or not _assigns_only(found.body) else replace(found, kind="vectorize")


def _in_rows(stmt: For, rows: Rows) -> For:
    """With elements that are written tile by tile counted from the first tile of their row: `[o, v]` as `[0, 4*o + v]`."""
    inner = stmt.body.body[0] if len(stmt.body.body) == 1 else None
    tile = upper_limit(inner.extent) if isinstance(inner, For) else None
    if not isinstance(inner, For) or tile is None:
        return stmt
    place = (IndexVar(stmt.var), IndexVar(inner.var))

    def in_row(each: Stmt) -> Stmt:
        if not isinstance(each, Store) or each.indices[-2:] != place or rows.get(each.buffer, 0) != tile:
            return each
        along = plus(times(place[0], int64(tile)), place[1])
        return replace(each, indices=(*each.indices[:-2], int64(0), along))

    body = with_body(inner.body, map(in_row, inner.body.body))
    return replace(stmt, body=replace(stmt.body, body=(replace(inner, body=body),)))


def one_loop(stmt: For) -> For | None:
    """A serial loop of nothing but a vectorised loop as one serial loop, if both count the iterations of a whole."""
    inner = stmt.body.body[0] if len(stmt.body.body) == 1 else None
    if stmt.kind != "serial" or not isinstance(inner, For) or inner.kind != "vectorize":
        return None
    lanes, whole = upper_limit(inner.extent), whole_extent(stmt, inner)
    if lanes is None or whole is None:
        return None
    name = f"{stmt.var}.{inner.var}"
    try:
        body = mapped_block(inner.body, lambda expr: _merge(expr, stmt.var, inner.var, lanes, name))
    except _Unmerged:
        return None
    return For(name, int64(0), whole, body, "serial", stmt.axis)


def whole_extent(outer: For, inner: For) -> Expr | None:
    """The number of iterations of both loops together, if the inner one is cut at the end exactly, and nothing is said of it."""
    if constant_value(outer.min) != 0 or constant_value(inner.min) != 0 or inner.tail:
        return None
    lanes = upper_limit(inner.extent)
    number = constant_value(inner.extent)
    if number is not None:
        return times(outer.extent, int64(number))
    match inner.extent:
        case Binary(op="min", left=Const(), right=rest) | Binary(op="min", left=rest, right=Const()):
            pass
        case _:
            return None
    found = dict(polynomial(rest).terms)
    if (
        lanes is None
        or found.pop((IndexVar(outer.var),), 0) != -lanes
        or any(mentions(f, outer.var) for p in found for f in p)
    ):
        return None
    # The outer loop must end where the whole does: at `ceil(n / lanes)` vectors, however that is written.
    whole = as_expr(Polynomial(tuple(found.items())))
    return whole if from_expr(outer.extent) == floor_div(from_expr(whole) + lanes - 1, lanes) else None


class _Unmerged(Exception):
    """The loops are used apart from each other."""


def _merge(expr: Expr, outer: str, inner: str, lanes: int, name: str) -> Expr:
    """Write `lanes*outer + inner` as one variable."""
    if not mentions(expr, outer) and not mentions(expr, inner):
        return expr
    if expr.dtype is DType.INT64 and not isinstance(expr, Read):
        terms = dict(polynomial(expr).terms)
        if all(isinstance(f, IndexVar) or not (mentions(f, outer) or mentions(f, inner)) for p in terms for f in p):
            return as_expr(Polynomial(tuple(_merged(terms, outer, inner, lanes, name).items())))
    operands = tuple(_merge(child, outer, inner, lanes, name) for child in children(expr))
    if not operands:
        raise _Unmerged
    return rebuild(expr, operands)


def _merged(terms: dict[Product, int], outer: str, inner: str, lanes: int, name: str) -> dict[Product, int]:
    result: dict[Product, int] = {}
    left = dict(terms)
    for product, value in terms.items():
        names = [factor.name if isinstance(factor, IndexVar) else "" for factor in product]
        if names.count(inner) == 0:
            continue
        others = list(product)
        del others[names.index(inner)]
        partner = next((p for p in left if _same(p, (*others, IndexVar(outer)))), None)
        if names.count(inner) > 1 or partner is None or left[partner] != lanes * value:
            raise _Unmerged
        del left[partner], left[product]
        result[
            tuple(
                sorted((*others, IndexVar(name)), key=lambda f: f.name if isinstance(f, IndexVar | Size) else repr(f))
            )
        ] = value
    if any(isinstance(f, IndexVar) and f.name == outer for p in left for f in p):
        raise _Unmerged
    return result | left


def _same(left: Product, right: Product) -> bool:
    return len(left) == len(right) and sorted(map(repr, left)) == sorted(map(repr, right))


# --- finding ---------------------------------------------------------------------------------------------------------


def find(block: Block, flat: Flat) -> Block:
    """Vectorise innermost serial loops whose points are seen to be independent, or that reduce into one element."""
    return with_body(block, (_find(stmt, flat) for stmt in block.body))


def flat_dimensions(buffers: Iterable[Buffer]) -> Flat:
    """The last dimensions of every buffer that have one element: the one before them is contiguous."""
    return {b.name: sum(1 for _ in takewhile(lambda e: constant_value(e) == 1, reversed(b.shape))) for b in buffers}


def _find(stmt: Stmt, flat: Flat) -> Stmt:
    if isinstance(stmt, For) and stmt.kind == "vectorize":
        return stmt
    if (
        isinstance(stmt, For)
        and stmt.kind == "serial"
        and not any(isinstance(s, For) for s in walk_statements(stmt.body))
    ):
        reduces = is_reduction(stmt)
        if (reduces or is_stream(stmt) or is_update(stmt)) and _worth_while(stmt, flat):
            return replace(stmt, kind="vectorize")
        return _where_long(stmt) if reduces and _worth_while(stmt, flat, far=True) else stmt
    return with_blocks(stmt, lambda block: find(block, flat))


def _where_long(loop: For) -> Stmt:
    """A reduction over elements that are far apart, in vectors if it has enough of them.

    One sum waits for itself at every element: a sum over a column of 5, and 300 x 300 products of a row with a column, take a third
    of the time in vectors, whose lanes are loaded one by one. Rows of three to twelve elements take ten times as long (Zen 5).
    """
    vectors, known = replace(loop, kind="vectorize"), constant_value(loop.extent)
    if known is not None or has_read(loop.extent):
        return vectors if known is not None and known >= tuning.TOLD_APART else loop
    long = Binary(">=", loop.extent, int64(tuning.TOLD_APART), DType.BOOL)
    return If(long, Block((vectors,)), Block((loop,), SHORT))


def is_reduction(loop: For) -> bool:
    """One or more reductions, each into an element that stays the same and that nothing else touches."""
    stores = tuple(_stores(loop.body))
    others = [stmt for stmt in walk_statements(loop.body) if not isinstance(stmt, Store | Block)]
    targets = {store.buffer for store in stores}
    if others or not stores or len(targets) < len(stores):
        return False
    for store in stores:
        if store.reduce is None or store.atomic or not mentions(store.value, loop.var):
            return False
        if any(mentions(where, loop.var) or any(isinstance(n, Read) for n in walk(where)) for where in store.indices):
            return False
        if any(isinstance(node, Read) and node.tensor in targets for node in walk(store.value)):
            return False
    return True


def _worth_while(loop: For, flat: Flat, far: bool = False) -> bool:
    """Whether memory is read in order or little of the time, and every function is straight-line code.

    Args:
        far: it may be read at a distance that only the call knows.

    A function takes ten times as long in one lane as for each of many: `log(exp(X(n,0)) + 1)` takes 0.2 of the time in vectors.
    """
    limit = upper_limit(loop.extent)
    if limit is not None and limit < 8:
        return False
    nodes = [node for stmt in walk_statements(loop.body) for expr in expressions(stmt) for node in walk(expr)]
    computes = any(isinstance(node, Call) and node.function in KNOWN and mentions(node, loop.var) for node in nodes)
    places = {part for read in nodes if isinstance(read, Read) for place in read.indices for part in walk(place)}
    for stmt in walk_statements(loop.body):
        for expr in expressions(stmt):
            for node in walk(expr):
                if isinstance(node, Call) and not is_inline(node.function):
                    return False
                if isinstance(node, Read) and not (
                    computes or in_order(node, loop.var, flat) or (far and _is_known(node))
                ):
                    return False
                if (
                    isinstance(node, Binary)
                    and node.op in ("//", "%")
                    and mentions(node, loop.var)
                    and node not in places
                ):
                    return False
    return True


def _is_known(read: Read) -> bool:
    """Whether what neighbouring iterations read is known without reading: far apart, or in any order among few elements."""
    return not any(map(has_read, read.indices))


def in_order(read: Read, var: str, flat: Flat) -> bool:
    """Whether neighbouring iterations read the same element, neighbours, neighbours in reverse, or every n-th one for a small n,
    away from where a subscript wraps around, stops or turns back.
    """
    indices = read.indices[: len(read.indices) - flat.get(read.tensor, 0)]
    if any(mentions(where, var) for where in indices[:-1]):
        return False
    if not indices or step(polynomial(indices[-1]), var)[0] in (-1, 0, 1, *PIXEL):
        return True
    inside = None if has_read(indices[-1]) else interior(from_expr(indices[-1]), var)
    return inside is not None and step(polynomial(to_expr(inside.value)), var)[0] == 1


# --- cutting ---------------------------------------------------------------------------------------------------------


def strip(block: Block, target: Target, inside: bool = False) -> Block:
    """Cut all long vectorised loops; `inside` another vectorised loop nothing is cut."""
    return with_body(block, (_strip(stmt, target, inside) for stmt in block.body))


def _strip(stmt: Stmt, target: Target, inside: bool) -> Stmt:
    if not isinstance(stmt, For) or stmt.kind != "vectorize" or inside:
        return with_blocks(stmt, lambda block: strip(block, target, inside))
    native = native_lanes(stmt, target)
    limit = upper_limit(stmt.extent)
    if limit is not None and limit <= tuning.VECTOR_REGISTERS * native:
        return stmt
    if is_stream(stmt):
        return stmt
    return cut(stmt, (2 if _assigns_only(stmt.body) else 4) * native)


def cut(stmt: For, lanes: int) -> For:
    """A loop over vectors of `lanes` iterations."""
    outer, inner = f"{stmt.var}.o", f"{stmt.var}.i"
    start = times(IndexVar(outer), int64(lanes))
    number = constant_value(stmt.extent)
    whole = number is not None and number % lanes == 0
    position = plus(stmt.min, plus(start, IndexVar(inner)))
    body = mapped_block(stmt.body, lambda expr: substitute(expr, {stmt.var: position}))
    rest = Binary("-", stmt.extent, start, DType.INT64)
    part = For(inner, int64(0), int64(lanes) if whole else minimum(int64(lanes), rest), body, "vectorize", stmt.axis)
    count = Binary("//", plus(stmt.extent, int64(lanes - 1)), int64(lanes), DType.INT64)
    pieces = constant_value(count)
    kind = "unroll" if pieces is not None and pieces <= 8 else "serial"
    return For(outer, int64(0), count if pieces is None else int64(pieces), Block((part,)), kind, stmt.axis)


# --- streams ---------------------------------------------------------------------------------------------------------


def is_stream(loop: For) -> bool:
    """Whether points may be computed twice: neighbouring elements are assigned, and nothing that is written is read."""
    written = {store.buffer for store in _stores(loop.body)}
    return is_update(loop) and not any(read.tensor in written for read in _reads(loop))


def is_update(loop: For) -> bool:
    """Whether neighbouring elements are assigned, once each, by what they were at most: `Y[i] = Y[i] + X[i]`."""
    if not assigns_neighbours(loop):
        return False
    stores = tuple(_stores(loop.body))
    places = {store.buffer: store.indices for store in stores}
    return len(places) == len(stores) and all(
        read.indices == places.get(read.tensor, read.indices) for read in _reads(loop)
    )


def changes_row(loop: For) -> bool:
    """Whether neighbouring elements are assigned by what they were, and by elements along the row or the same for all of it."""
    if is_stream(loop) or not is_update(loop):
        return False
    return not any(mentions(where, loop.var) for read in _reads(loop) for where in read.indices[:-1])


def assigns_neighbours(loop: For) -> bool:
    """Whether iterations assign neighbouring elements, and do nothing else."""
    stores = tuple(_stores(loop.body))
    return _assigns_only(loop.body) and len(stores) > 0 and all(_moves_by_one(store, loop.var) for store in stores)


def _moves_by_one(store: Store, var: str) -> bool:
    """Whether neighbouring iterations write neighbouring elements."""
    if not store.indices or any(mentions(where, var) for where in store.indices[:-1]):
        return False
    return step(polynomial(store.indices[-1]), var) == (1, True)


def _assigns_only(block: Block) -> bool:
    """Whether there is nothing but plain stores inside."""
    return all(
        isinstance(stmt, Block) or (isinstance(stmt, Store) and stmt.reduce is None and not stmt.atomic)
        for stmt in walk_statements(block)
    )


def _stores(block: Block) -> Iterator[Store]:
    return (stmt for stmt in walk_statements(block) if isinstance(stmt, Store))


def _reads(loop: For) -> Iterator[Read]:
    """All reads of elements, those in subscripts too."""
    nodes = (n for stmt in walk_statements(loop.body) for expr in expressions(stmt) for n in walk(expr))
    return (node for node in nodes if isinstance(node, Read))
