"""Rows whose conditions change along them -> one loop for each part in which they do not.

Conditions on positions say where a border is, or where one half ends. A vector that tests them reads under masks, also where no
element is left out. So a loop over neighbours is split where a condition changes: each part has plain reads and no test.

Worked example:

    for e in 0:2*D (vectorize)                                     for e in 0:D (vectorize): Y[e] = X[e + D]
      Y[e] = e < D ? X[e + D] : X[e - D]                    ->     for e in D:2*D (vectorize): Y[e] = X[e - D]

So is a loop whose subscripts wrap around, stop or turn back near an end: `X[max(j - 1, 0)]` is `X[j - 1]` behind the first part.

A part that is known to be shorter than a vector keeps its tests: the parts of `j >= 1 && j < N - 1 ? ... : ...` are the first
element, the last one, and all between them. The same holds for rows that are computed in tiles.

Source: index set splitting, e.g. Muchnick, Advanced Compiler Design and Implementation (1997); Halide, "loop partitioning".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from tc_jupyter.loops import Allocate, Block, For, If, Stmt, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import block_with_expressions, with_blocks, with_body
from tc_jupyter.loops.simplify import first_rule
from tc_jupyter.program import COMPARISONS, Binary, Const, DType, Expr, IndexVar, Read, Select, int64, variables, walk
from tc_jupyter.program.integers import ceil_div, has_read, reads_elements, times
from tc_jupyter.program.integers import minimum as smaller
from tc_jupyter.ranges import (
    Name,
    SizeExpr,
    constant,
    floor_div,
    from_expr,
    interior,
    is_held,
    maximum,
    minimum,
    of_atom,
    to_condition,
    to_expr,
)
from tc_jupyter.schedule import tuning

from .limits import upper_limit
from .polynomial import constant_value, mentions
from .strips import assigns_neighbours, is_reduction, is_stream, one_loop


def split_rows(block: Block, ordered: bool = False) -> Block:
    """Apply the rule to all loops inside, but for copies that a tile makes for itself (`split_tiles_at_borders`).

    Of an `ordered` kernel rows alone are split: the points stay one behind the other.
    """
    return _split_block(block, _Around(ordered=ordered))


def is_copy(store: Store) -> bool:
    """Whether a store copies an element, or what stands for it beyond the ends."""
    value = store.value
    while isinstance(value, Select) and not has_read(value.condition):
        value = value.then
    return store.reduce is None and isinstance(value, Read)


@dataclass(frozen=True, slots=True)
class _Around:
    """The buffers of the tiles around a statement, and the loop variables around that are 0 or more, as such numbers; whether
    points have an order.
    """

    ordered: bool = False
    own: frozenset[str] = frozenset()
    numbers: Mapping[str, SizeExpr] = field(default_factory=dict[str, SizeExpr])

    def of(self, stmt: Stmt) -> _Around:
        """What is known inside of a statement."""
        if isinstance(stmt, Allocate):
            return replace(self, own=self.own | {stmt.buffer.name})
        least = from_expr(stmt.min).substitute(self.numbers).limits[0] if isinstance(stmt, For) else None
        if not isinstance(stmt, For) or least is None or least < 0:
            return self
        return replace(self, numbers={**self.numbers, stmt.var: of_atom(Name("size", stmt.var, (0, None)))})


def _split_block(block: Block, around: _Around) -> Block:
    return with_body(block, (part for stmt in block.body for part in _split_statement(stmt, around)))


def _split_statement(stmt: Stmt, around: _Around) -> tuple[Stmt, ...]:
    inside = around.of(stmt)
    own = inside.own
    stores = [each for each in walk_statements(Block((stmt,))) if isinstance(each, Store)] if own else []
    copies = bool(stores) and all(each.buffer in own and is_copy(each) for each in stores)
    rule = _row_in_order if around.ordered else _row
    row = rule(stmt) if isinstance(stmt, For) and not copies else None
    parts, if_long = ((), False) if row is None else _parts(row, around.numbers)
    if row is None or not parts or (len(parts) == 1 and (if_long or not parts[0].known)):
        return (with_blocks(stmt, lambda block: _split_block(block, inside)),)
    apart = tuple(row.part(part) for part in parts)
    if not if_long:
        return apart
    return (If(Binary(">=", row.whole.extent, int64(tuning.TOLD_APART), DType.BOOL), Block(apart), Block((stmt,))),)


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """The elements from `low` to before `high`, and what is known there."""

    low: SizeExpr
    high: SizeExpr
    known: Mapping[Expr, Expr]

    @property
    def is_short(self) -> bool:
        """Whether it is known to be shorter than a vector."""
        most = (self.high - self.low).limits[1]
        return most is not None and most <= tuning.ONCE_IN

    def substitute(self, values: Mapping[str, SizeExpr]) -> _Part:
        """With values for names in its ends."""
        return replace(self, low=self.low.substitute(values), high=self.high.substitute(values))


@dataclass(frozen=True, slots=True)
class _Row:
    """A loop over neighbours, and how a part of it is computed; `inside` are the variables of the loops that stay in it."""

    whole: For
    part: Callable[[_Part], Stmt]
    inside: frozenset[str] = frozenset()


def _row_in_order(stmt: For) -> _Row | None:
    """A loop over the vectors of a row."""
    whole, tile = one_loop(stmt), stmt.body.body[0] if stmt.body.body else None
    lanes = upper_limit(tile.extent) if isinstance(tile, For) else None
    if whole is None or not isinstance(tile, For) or lanes is None or not assigns_neighbours(whole):
        return None
    return _Row(whole, lambda part: _of_tiles(stmt, [], tile, whole, lanes, part))


def _row(stmt: For) -> _Row | None:
    """A row that is one vectorised loop, or tiles of several rows."""
    if stmt.kind == "vectorize":
        limit, length = upper_limit(stmt.extent), constant_value(stmt.extent)
        alone = (limit is None or limit > tuning.TOLD_APART or length == tuning.TOLD_APART) and (
            is_stream(stmt) or is_reduction(stmt)
        )
        return _Row(stmt, lambda part: _of_loop(stmt, part)) if alone else None
    rows: list[For] = []
    block = stmt.body
    while len(block.body) == 1 and isinstance(inner := block.body[0], For) and inner.kind != "vectorize":
        rows.append(inner)
        block = inner.body
    tile = block.body[0] if len(block.body) == 1 else None
    if (
        not rows
        or not isinstance(tile, For)
        or any(mentions(e, stmt.var) for row in rows for e in (row.min, row.extent))
    ):
        return None
    whole, lanes = one_loop(replace(stmt, body=block)), upper_limit(tile.extent)
    if whole is None or lanes is None or not is_stream(whole):
        return None
    if any(mentions(whole.extent, row.var) for row in rows):
        return None
    inside = frozenset(row.var for row in rows)
    return _Row(whole, lambda part: _of_tiles(stmt, rows, tile, whole, lanes, part), inside)


def _of_loop(loop: For, part: _Part) -> For:
    return replace(loop, min=to_expr(part.low), extent=to_expr(part.high - part.low), body=_decided(loop.body, part))


def _of_tiles(outer: For, rows: list[For], tile: For, whole: For, lanes: int, part: _Part) -> For:
    """Tiles that begin where the part does; a short part is none."""
    if part.is_short:
        short: For = replace(_of_loop(whole, part), kind="vectorize")
        for row in reversed(rows):
            short = replace(row, body=replace(row.body, body=(short,)))
        return short
    length, start = to_expr(part.high - part.low), times(IndexVar(outer.var), int64(lanes))
    here = to_expr(part.low + from_expr(start) + from_expr(IndexVar(tile.var)))
    body = block_with_expressions(_decided(whole.body, part), variables({whole.var: here}))
    extent = smaller(Binary("-", length, start, DType.INT64), int64(lanes))
    inner: For = replace(tile, extent=extent, body=body)
    for row in reversed(rows):
        inner = replace(row, body=replace(row.body, body=(inner,)))
    return replace(outer, extent=ceil_div(length, int64(lanes)), body=replace(outer.body, body=(inner,)))


def _decided(body: Block, part: _Part) -> Block:
    """What is computed where conditions are known."""
    return block_with_expressions(body, lambda expr: part.known.get(expr) or first_rule(expr))


# --- parts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Test:
    """What changes along a row: it is `values[0]` before `cuts[0]`, `values[1]` from there to before `cuts[1]`, and so on.

    `None` stands for what it is as it is written.
    """

    node: Expr
    cuts: tuple[SizeExpr, ...]
    values: tuple[Expr | None, ...]

    def substitute(self, values: Mapping[str, SizeExpr]) -> _Test:
        """With values for names in its places."""
        return replace(self, cuts=tuple(cut.substitute(values) for cut in self.cuts))


def _parts(row: _Row, around: Mapping[str, SizeExpr]) -> tuple[tuple[_Part, ...], bool]:
    """The parts of a row, and whether only a long row has them; loop variables around stand as numbers that are 0 or more."""
    low = from_expr(row.whole.min)
    high = low + from_expr(row.whole.extent)
    if not all(map(is_held, (low, high))):
        return (), False
    choices, borders = (
        [test for test in tests if not any(cut.indices & row.inside for cut in test.cuts)]
        for tests in (_choices(row.whole), _borders(row.whole))
    )
    tests = [test.substitute(around) for test in (*choices, *borders)]
    low, high = low.substitute(around), high.substitute(around)
    indices = {name: from_expr(IndexVar(name)) for name in around}
    parts = tuple(islice(_divided(low, high, tests), tuning.VERSIONS + 1))  # many conditions have far more
    if len(parts) > tuning.VERSIONS or not (borders or any(part.is_short for part in parts)):
        return tuple(part.substitute(indices) for part in parts if len(parts) <= tuning.VERSIONS), False
    longer, back = _long(high - low)
    tests = [test.substitute(longer) for test in tests]
    parts = _divided(low.substitute(longer), high.substitute(longer), tests)
    there = (part.substitute(back).substitute(indices) for part in parts)
    return tuple(there), bool(longer) or any(part.is_short for part in parts)


def _divided(low: SizeExpr, high: SizeExpr, tests: Sequence[_Test]) -> Iterator[_Part]:
    whole = _Part(low, high, {})
    return _split(whole, tuple(test for each in tests if (test := _within(whole, each)) is not None))


def _long(length: SizeExpr) -> tuple[dict[str, SizeExpr], dict[str, SizeExpr]]:
    """The size in a length as the smallest one that makes it long and more, which says how far apart borders are; and back."""
    sizes = [atom for mono, factor in length.terms.items() for atom in mono if factor == 1 and len(mono) == 1]
    if len(length.terms) != 1 or len(sizes) != 1 or not isinstance(sizes[0], Name) or sizes[0].kind != "size":
        return {}, {}
    name, more = of_atom(sizes[0]), max(0, tuning.TOLD_APART - 1 - length.offset)
    return {sizes[0].name: name + more}, {sizes[0].name: name - more}


def _within(whole: _Part, test: _Test) -> _Test | None:
    """A test with those of its cuts that are in the row; of a border, `None` if what is beyond it is not known to be short."""
    if None not in test.values:
        return test
    (low, high), (_, inside, _) = test.cuts, test.values
    cuts: list[SizeExpr] = []
    values: list[Expr | None] = [inside]
    if maximum(low, whole.low) != whole.low:
        if not replace(whole, high=low).is_short:
            return None
        cuts, values = [low], [None, inside]
    if minimum(high, whole.high) != whole.high:
        if not replace(whole, low=high).is_short:
            return None
        cuts, values = [*cuts, high], [*values, None]
    return _Test(test.node, tuple(cuts), tuple(values))


def _split(part: _Part, tests: tuple[_Test, ...]) -> Iterator[_Part]:
    known = {test.node: test.values[0] for test in tests if not test.cuts}
    part = replace(part, known=dict(part.known) | {node: value for node, value in known.items() if value is not None})
    tests = tuple(test for test in tests if test.cuts)
    if not tests or part.is_short:
        yield part
        return
    cut = _first_cut(part, tests)
    place = minimum(maximum(cut, part.low), part.high)
    sides = (_Part(part.low, place, part.known), 0), (_Part(place, part.high, part.known), 1)
    for side, after in sides:
        if side.low == side.high:
            continue
        yield from _split(side, tuple(_side(test, cut, after) for test in tests))


def _side(test: _Test, cut: SizeExpr, after: int) -> _Test:
    """What is open of a test before a cut, or after it."""
    if cut not in test.cuts:
        return test
    at = test.cuts.index(cut)
    if after:
        return replace(test, cuts=test.cuts[at + 1 :], values=test.values[at + 1 :])
    return replace(test, cuts=test.cuts[:at], values=test.values[: at + 1])


def _first_cut(part: _Part, tests: tuple[_Test, ...]) -> SizeExpr:
    """Where to split first: so that all short borders at one end are one part."""
    cuts = list(dict.fromkeys(cut for test in tests for cut in test.cuts))

    def rank(cut: SizeExpr) -> tuple[int, int]:
        begin, end = (cut - part.low).limits[1], (part.high - cut).limits[1]
        if begin is not None and begin <= tuning.ONCE_IN:
            return 0, -begin
        return (1, -end) if end is not None and end <= tuning.ONCE_IN else (2, 0)

    return min(cuts, key=rank)


def _choices(loop: For) -> Iterator[_Test]:
    """The conditions of choices that change at places that are known before the loop."""
    choices = dict.fromkeys(node for node in _nodes(loop) if isinstance(node, Select))
    conditions = dict.fromkeys(node for choice in choices for node in walk(choice.condition))
    for node in conditions:
        if isinstance(node, Binary) and node.op in COMPARISONS:
            test = _choice(node, loop.var)
            if test is not None:
                yield test


def _nodes(loop: For) -> Iterator[Expr]:
    for stmt in walk_statements(loop.body):
        for expr in expressions(stmt) if isinstance(stmt, Store) else ():
            yield from walk(expr)


def _choice(node: Binary, var: str) -> _Test | None:
    if reads_elements(node) or not mentions(node, var):
        return None
    condition = to_condition(node)
    split = condition.arguments[0].linear_in(var) if condition.op in (">=", "==", "!=") else None
    if split is None or not split[0].is_constant or not is_held(split[1]) or split[0] == constant(0):
        return None
    weight, rest = split[0].constant, split[1]
    yes, no = Const(True, DType.BOOL), Const(False, DType.BOOL)
    if condition.op == ">=":
        return _Test(node, (_end(weight, rest),), (no, yes) if weight > 0 else (yes, no))
    if abs(weight) > 1:
        return None
    place, equal = -rest * weight, condition.op == "=="
    return _Test(node, (place, place + 1), (no, yes, no) if equal else (yes, no, yes))


def _end(weight: int, rest: SizeExpr) -> SizeExpr:
    """The first index for which `weight * index + rest` is 0 or more, if it grows, or less, if it falls."""
    return -floor_div(rest, weight) if weight > 0 else floor_div(rest, -weight) + 1


def _borders(loop: For) -> Iterator[_Test]:
    """The subscripts that move evenly between two places that are known before the loop."""
    reads = dict.fromkeys(node for node in _nodes(loop) if isinstance(node, Read))
    for subscript in dict.fromkeys(subscript for read in reads for subscript in read.indices):
        if mentions(subscript, loop.var) and not has_read(subscript):
            test = _border(subscript, loop)
            if test is not None:
                yield test


def _border(subscript: Expr, loop: For) -> _Test | None:
    inside = interior(from_expr(subscript), loop.var)
    low, length = from_expr(loop.min), from_expr(loop.extent)
    lows, highs = [low], [low + length]
    for condition in inside.conditions if inside is not None else ():
        weight, rest = condition.linear_in(loop.var) or (constant(0), condition)
        if weight == constant(0) or not is_held(rest):
            return None
        (lows if weight.constant > 0 else highs).append(_end(weight.constant, rest))
    if inside is None or not inside.conditions:
        return None
    return _Test(subscript, (maximum(*lows), minimum(*highs)), (None, to_expr(inside.value), None))
