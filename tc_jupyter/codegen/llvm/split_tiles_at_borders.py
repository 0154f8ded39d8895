"""Tiles and rows that meet no border have a version without any.

What is read beyond the ends of an array takes tests, remainders or minima, at every element. Of a tile it is known before its loops
whether one of its reads may do so: mostly none does, and then all reads are plain ones. A copy that a tile makes of what it reads,
with whatever stands for elements beyond the ends, is the array itself there, and is not made.

Worked example: a sum of three neighbours, in tiles of 64,

                                                      if 64*o - 1 >= 0 && N - 64*o - 65 >= 0
    for v in 0:64 (vectorize)                             for v in 0:64 (vectorize): Y[64*o + v] = X[64*o + v - 1] + ...
      Y[64*o + v] = X[max(64*o + v - 1, 0)] + ...   ->  else
                                                          for v in 0:64 (vectorize): Y[64*o + v] = X[max(64*o + v - 1, 0)] + ...

Where a tile is a sum and a short loop decides which of its terms meet a border, a version is of the loop inside of that: one of the
three columns of a window meets the first element.

Rows of one tile are split where it begins and ends instead (`split_rows_at_borders`). Loops that are turned (`transpose`) stay
as they are: a product with the second version of a copy of a matrix had gathers in both. Source: "loop partitioning" of Halide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.loops import Allocate, Block, Buffer, For, If, Stmt, Store, expressions, sub_blocks, walk_statements
from tc_jupyter.loops.rewrite import block_with_expressions, substitute, with_blocks, with_body
from tc_jupyter.loops.simplify import first_rule
from tc_jupyter.program import COMPARISONS, Binary, Const, DType, Expr, IndexVar, Read, Select, int64, rewrite, walk
from tc_jupyter.program.integers import all_of, conjunction, has_read
from tc_jupyter.ranges import (
    SizeExpr,
    constant,
    from_expr,
    interior,
    interval,
    is_held,
    nonnegative,
    tightest,
    to_condition,
    to_expr,
)
from tc_jupyter.schedule import tuning

from .full_tiles import SHORT
from .limits import upper_limit
from .polynomial import constant_value, mentions
from .split_rows_at_borders import is_copy


def apart(block: Block, inputs: Mapping[str, Buffer], turned: Callable[[Stmt], bool]) -> Block:
    """Apply the rule to all tiles and rows inside.

    Args:
        inputs: arrays that are only read.
        turned: whether a loop is one of those that `transpose` turns.
    """
    if not any(True for _ in _borders(block.body, ())):
        return block
    return _Tiles(inputs, turned).block(block, frozenset())


@dataclass(frozen=True, slots=True)
class _Tiles:
    inputs: Mapping[str, Buffer]
    turned: Callable[[Stmt], bool]

    def block(self, block: Block, own: frozenset[str]) -> Block:
        """The tiles of a block; `own` are the buffers that nothing around it uses."""
        if block.comment == SHORT:
            return block
        done: list[Stmt] = []
        tile: list[Stmt] = []
        block = with_body(block, _with_copies(block, own))
        for stmt in block.body:
            alone = isinstance(stmt, Allocate) and len(block.body) == 1
            if not alone and not _is_around(stmt) and not self.turned(stmt):
                tile.append(stmt)
                continue
            done += [*self.versions(tile, _alone(own, block, tile)), self.inside(stmt, _alone(own, block, [stmt]))]
            tile = []
        return with_body(block, (*done, *self.versions(tile, _alone(own, block, tile))))

    def inside(self, stmt: Stmt, own: frozenset[str]) -> Stmt:
        """A statement with tiles in it; of one that tests whether a tile is full, the full one."""
        if self.turned(stmt):
            return stmt
        if isinstance(stmt, Allocate):
            own = own | {stmt.buffer.name}
        if isinstance(stmt, If) and isinstance(stmt.condition, Binary) and _is_full(stmt.condition):
            return replace(stmt, then=self.block(stmt.then, own))
        return with_blocks(stmt, lambda block: self.block(block, own))

    def sums(self, tile: list[Stmt], own: frozenset[str], borders: Sequence[_Found]) -> list[Stmt] | None:
        """A tile with versions of the loop of a sum that meets no border inside, where shorter loops around it do; else `None`.

        Of a tile with a border most terms meet none: of the three columns of a window one does.
        """
        loop = _unmoved(borders)
        if loop is None:
            return None

        def rule(stmt: Stmt) -> Stmt:
            if stmt is loop:
                return Block(tuple(self.versions([loop], own)))
            return with_blocks(stmt, lambda block: with_body(block, map(rule, block.body)))

        return list(map(rule, tile))

    def versions(self, tile: list[Stmt], own: frozenset[str]) -> list[Stmt]:
        """A tile away from the borders, and at one."""
        borders = list(_borders(tile, ()))
        if not borders:
            return tile
        sums = self.sums(tile, own, borders)
        if sums is not None:
            return sums
        found: list[tuple[_Border, tuple[For, ...], list[SizeExpr]]] = []
        stays: set[Expr] = set()  # loops over parts of a row may have one variable, and be inside in some parts only
        for border, loops in borders:
            ends = [_least(condition, loops) for condition in border.conditions]
            known = [e for e in ends if e is not None and ((e.indices and is_held(e)) or nonnegative(e))]
            if len(known) == len(ends) and not any(nonnegative(-each - 1) for each in known):
                found.append((border, loops, known))
            else:
                stays.add(border.node)
        found = [each for each in found if each[0].node not in stays]
        plain = {border.node: border.value for border, _, _ in found}
        tests = [each for _, _, known in found for each in known if not nonnegative(each)]
        pays = any(border.costs(loops) for border, loops, _ in found)
        left = tightest(tests)
        if not plain or len(left) > tuning.TERMS or (left and (not pays or _is_tiny(tile))):
            return tile
        body = Block(tuple(tile))
        for kind in (True, False):  # conditions first: they have positions in them
            values = {node: value for node, value in plain.items() if isinstance(value, Const) == kind}
            body = block_with_expressions(body, values.get)
        body = self.without_copies(block_with_expressions(body, first_rule), own)
        if not left:
            return list(body.body)
        conditions = [Binary(">=", to_expr(each), int64(0), DType.BOOL) for each in left]
        both = all_of(conditions)
        return [If(both, body, Block(tuple(tile)))]

    def without_copies(self, tile: Block, own: frozenset[str]) -> Block:
        """A tile that reads where its copies would read."""
        for name in sorted(own):
            stores = [s for s in walk_statements(tile) if isinstance(s, Store) and s.buffer == name]
            fills = [stmt for stmt in tile.body if stores and stores[0] in walk_statements(Block((stmt,)))]
            if len(stores) != 1 or stores[0].reduce is not None or not fills:
                continue
            value, places = stores[0].value, stores[0].indices
            if not isinstance(value, Read) or value.tensor not in self.inputs or not _are_places(places):
                continue
            rest = with_body(tile, (stmt for stmt in tile.body if stmt is not fills[0]))
            tile = block_with_expressions(
                rest, lambda expr, value=value, at=places, name=name: _read(expr, name, at, value)
            )
        return tile


def _is_tiny(tile: Sequence[Stmt]) -> bool:
    """Whether a tile is a few elements: tests before it would cost as much as those in it."""
    (first, *others) = tile
    length = constant_value(first.extent) if isinstance(first, For) else None
    alone = isinstance(first, Store) or (
        isinstance(first, For) and all(not isinstance(s, For) for s in walk_statements(first.body))
    )
    return not others and alone and (isinstance(first, Store) or (length is not None and length <= tuning.FEW))


def _are_places(indices: Sequence[Expr]) -> bool:
    names = [index.name for index in indices if isinstance(index, IndexVar)]
    others = [index for index in indices if not isinstance(index, IndexVar)]
    return len(set(names)) == len(names) and all(constant_value(other) == 0 for other in others)


def _read(expr: Expr, copy: str, places: Sequence[Expr], value: Read) -> Expr | None:
    """The element that a copy has at a place."""
    if not isinstance(expr, Read) or expr.tensor != copy:
        return None
    at = {place.name: index for place, index in zip(places, expr.indices, strict=True) if isinstance(place, IndexVar)}
    found = substitute(value, at)
    assert isinstance(found, Read)
    return replace(found, indices=tuple(rewrite(index, first_rule) for index in found.indices))


def _with_copies(block: Block, own: frozenset[str]) -> tuple[Stmt, ...]:
    """The statements of a block, where copies stand in front of both versions of a tile, with the copies in both."""
    *copies, last = block.body or (block,)
    stores = [each for each in walk_statements(Block(tuple(copies))) if isinstance(each, Store)]
    full = isinstance(last, If) and isinstance(last.condition, Binary) and _is_full(last.condition)
    fit = all(each.buffer in own and is_copy(each) for each in stores) and not any(map(_is_around, copies))
    if not full or not stores or not fit or not any(True for _ in _borders(copies, ())):
        return block.body
    assert isinstance(last, If)
    first, *others = (
        Block((*copies, *each.body), each.comment) for each in (last.then, last.otherwise) if each is not None
    )
    return (replace(last, then=first, otherwise=others[0] if others else None),)


def _alone(own: frozenset[str], block: Block, apart_from: Sequence[Stmt]) -> frozenset[str]:
    """Those of some buffers that no other statement of a block reads or writes."""
    if not own:
        return own
    others = Block(tuple(stmt for stmt in block.body if all(stmt is not each for each in apart_from)))
    inside = tuple(walk_statements(others))
    reads = {node.tensor for each in inside for e in expressions(each) for node in walk(e) if isinstance(node, Read)}
    return own - reads - {each.buffer for each in inside if isinstance(each, Store)}


def _is_full(condition: Expr) -> bool:
    """Whether a condition is one of `full_tiles`."""
    match condition:
        case Binary(op="&&", left=left, right=right):
            return _is_full(left) and _is_full(right)
        case Binary(op="==", left=left, right=right):
            return constant_value(right) is not None and upper_limit(left) == constant_value(right)
        case _:
            return False


def _is_around(stmt: Stmt) -> bool:
    """Whether there are tiles in a statement, which is none itself."""
    match stmt:
        case For(kind="serial" | "parallel"):
            inside = tuple(walk_statements(stmt.body))
            own = {each.buffer.name for each in inside if isinstance(each, Allocate)}
            length = constant_value(stmt.extent)
            return (
                (length is None or length > tuning.FEW)
                and any(isinstance(each, For) for each in inside)
                and (
                    any(
                        mentions(index, stmt.var)
                        for each in inside
                        if isinstance(each, Store) and each.buffer not in own
                        for index in each.indices
                    )
                    or any(
                        isinstance(each, For) and mentions(each.min, stmt.var) and _is_around(each) for each in inside
                    )
                )
            )
        case Block():
            return any(map(_is_around, stmt.body))
        case Allocate():
            return _is_around(stmt.body)
        case If():
            return True
        case _:
            return False


# --- borders ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Border:
    """A subscript or condition, what it is away from a border, and what is 0 or more there."""

    node: Expr
    value: Expr
    conditions: tuple[SizeExpr, ...]

    def costs(self, loops: Sequence[For]) -> bool:
        """Whether it takes a jump, a division, or something in every lane; the limit of a row takes next to nothing."""
        divides = any(isinstance(each, Binary) and each.op in ("//", "%") for each in walk(self.node))
        lanes = (loop.var for loop in loops if loop.kind == "vectorize")
        return isinstance(self.value, Const) or divides or any(mentions(self.node, var) for var in lanes)


_Found = tuple[_Border, tuple[For, ...]]
"""A border, and the loops around it that are in the tile."""


def _borders(stmts: Sequence[Stmt], loops: tuple[For, ...]) -> Iterator[_Found]:
    """The borders of some statements, each with the loops of these statements around it."""
    for stmt in stmts:
        for expr in expressions(stmt) if isinstance(stmt, Store) else ():
            for node in dict.fromkeys(walk(expr)):
                yield from ((border, loops) for border in _borders_of(node))
        inside = (*loops, stmt) if isinstance(stmt, For) else loops
        for block in sub_blocks(stmt):
            yield from _borders(block.body, inside)


def _borders_of(node: Expr) -> Iterator[_Border]:
    match node:
        case Read():
            for subscript in node.indices:
                position = from_expr(subscript)
                for name in sorted(position.indices) if not (has_read(subscript) or _is_in_turns(subscript)) else ():
                    found = interior(position, name)
                    if found is not None and found.conditions:
                        yield _Border(subscript, to_expr(found.value), found.conditions)
                        break
        case Select(condition=condition):
            together = [test for test in conjunction(condition) if isinstance(test, Binary) and _is_of_positions(test)]
            for test in walk(condition):
                if isinstance(test, Binary) and _is_of_positions(test):
                    yield from _mostly(test, together if test in together else ())
        case _:
            pass


def _unmoved(borders: Sequence[_Found]) -> For | None:
    """The loop in which no border changes, directly inside the innermost serial one in which one does; `None` for a short one."""
    depths = [
        max(
            (n + 1 for n, loop in enumerate(loops) if loop.kind == "serial" and mentions(border.node, loop.var)),
            default=0,
        )
        for border, loops in borders
    ]
    depth = max(depths, default=0)
    if not depth or any(len(loops) <= depth or loops[depth] is not borders[0][1][depth] for _, loops in borders):
        return None
    loop = borders[0][1][depth]
    length = constant_value(loop.extent)
    return loop if loop.kind == "serial" and (length is None or length > tuning.FEW) else None


def _is_of_positions(test: Binary) -> bool:
    """Whether a test compares positions."""
    return test.op in COMPARISONS and not has_read(test)


def _is_in_turns(subscript: Expr) -> bool:
    """Whether a few elements are taken in turns, as those of the steps that are in memory: most are beyond the first round."""
    rounds = (constant_value(node.right) for node in walk(subscript) if isinstance(node, Binary) and node.op == "%")
    return any(each is not None and each <= tuning.FEW for each in rounds)


def _mostly(test: Binary, beside: Sequence[Binary]) -> Iterator[_Border]:
    """A comparison with what it mostly is: `i >= 1` and `i < N - 1` hold, `i < 1` does not.

    Where the tests `beside` it are its other end, as of `i >= K / 2 && i < N - K / 2`, both hold.
    """
    condition = to_condition(test)
    if condition.op != ">=" or not condition.arguments[0].indices:
        return
    total = condition.arguments[0]
    for name in sorted(total.indices):
        inside = interior(total, name)
        split = None if inside is None else inside.value.linear_in(name)
        if inside is not None and split is not None and split[0] != constant(0):
            far = bool(inside.value.names - inside.value.indices) or abs(inside.value.offset) > tuning.FEW
            holds = (split[0].constant < 0) == far or any(_is_other_end(total, each) for each in beside)
            end = inside.value if holds else -inside.value - 1
            yield _Border(test, Const(holds, DType.BOOL), (end, *inside.conditions))
            return


def _is_other_end(total: SizeExpr, test: Binary) -> bool:
    """Whether a test says that something is not below its start, and the total that it is not behind its end, or the reverse."""
    condition = to_condition(test)
    return condition.op == ">=" and not (condition.arguments[0] + total).indices


def _least(total: SizeExpr, loops: Sequence[For]) -> SizeExpr | None:
    """The least value in the iterations of some loops."""
    least: SizeExpr | None = total
    for loop in reversed(loops):
        if least is None or loop.var not in least.indices:
            continue
        if has_read(loop.min) or has_read(loop.extent):
            return None
        first = from_expr(loop.min)
        least = interval(least, {loop.var: (first, first + from_expr(loop.extent) - 1)}).lower
    return least


__all__ = ["apart"]
