"""Exact need by enumeration: for given sizes, which elements of a stage every visit of its attach point reads, and TVM's answer.

The formula of `infer_bound`, need(P), evaluated point by point with NumPy:

    need(P) = union over consumers C and reads a of P in C of a(need(C) joined with leaves_to_roots(C)),
              every loop that is not on P's attach path projected out

Used for the numbers of the inspector and as the oracle of the tests; code generation uses the symbolic boxes of `infer_bound.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tc_jupyter.program import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    bits,
    children,
    walk,
)
from tc_jupyter.program.integers import has_read, reads_elements
from tc_jupyter.ranges import (
    Choice,
    Condition,
    Datum,
    Extremum,
    FloorDiv,
    Mod,
    Name,
    Opaque,
    Product,
    SizeExpr,
    index,
)

from .extents import decided_at, loop_extent
from .infer_bound import SymbolicBounds, path_points, scope_of, variable, view_shift
from .lineage import on_front
from .stage import Fuse, Split, Stage, StageGraph

Ints = NDArray[np.int64]
LIMIT = 8_000_000
"""Rows of all tables of one enumeration together: what is counted takes a few seconds at most."""


class TooManyPoints(Exception):
    """The iteration space is too large to enumerate, or data decide it; counts are not available, expressions are."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a stage must compute.

    Attributes:
        path: loops that a visit is made of, outermost first, as (stage, leaf).
        visits: one row per visit in order of execution, one column per loop of `path`.
        visit_of: per needed element the number of its visit.
        elements: per needed element its logical index in the tensor of the stage; sorted by visit.
    """

    path: tuple[tuple[str, str], ...]
    visits: Ints
    visit_of: Ints
    elements: Ints

    def per_visit(self) -> tuple[int, ...]:
        """Number of elements needed by each visit."""
        return tuple(np.bincount(self.visit_of, minlength=len(self.visits)).tolist())

    def hull_per_visit(self, pad: int = 0) -> tuple[int, ...]:
        """Number of elements of the smallest box around each visit's elements; `pad`: so many more in every row."""
        counts = np.zeros(len(self.visits), np.int64)
        if len(self.elements):
            here, first = np.unique(self.visit_of, return_index=True)
            low = np.minimum.reduceat(self.elements, first, axis=0)
            high = np.maximum.reduceat(self.elements, first, axis=0)
            extents = high - low + 1
            extents[:, -1:] += pad
            counts[here] = np.prod(extents, axis=1)
        return tuple(counts.tolist())


@dataclass(slots=True)
class _Space:
    """The points at which a stage runs: columns by loop variable and by root name, one row per point."""

    loops: dict[str, Ints]
    roots: dict[str, Ints]
    count: int


@dataclass(slots=True)
class Enumeration:
    """Enumerates the needs of all stages of a graph for given sizes, consumers first; results are kept."""

    bounds: SymbolicBounds
    sizes: Mapping[str, int]
    needs: dict[str, Need] = field(default_factory=dict)
    spaces: dict[str, _Space] = field(default_factory=dict)
    failed: dict[str, TooManyPoints] = field(default_factory=dict)
    left: int = LIMIT

    @property
    def graph(self) -> StageGraph:
        """The graph that the bounds belong to."""
        return self.bounds.graph

    def run(self) -> Mapping[str, Need]:
        """The need of every stage.

        Raises:
            TooManyPoints: the tables have more than `LIMIT` rows, or data decide what is read.
        """
        for stage in reversed(self.graph.stages):
            self.need(stage.name)
        return self.needs

    def need(self, name: str) -> Need:
        """The need of one stage; those of its consumers are found first.

        Raises:
            TooManyPoints: as `run`.
        """
        for stage in reversed(self.graph.stages[self.graph.position(name) :]):
            if stage.name not in self.needs and stage.name not in self.failed:
                try:
                    self.needs[stage.name] = self._need(stage)
                except TooManyPoints as problem:
                    self.failed[stage.name] = problem
        if name in self.failed:
            raise self.failed[name]
        return self.needs[name]

    def space(self, name: str, loops: tuple[tuple[str, str], ...] = ()) -> _Space:
        """The points at which a stage runs, with the values of `loops` around it, outermost first.

        A loop whose iterations share the storage of the stage runs all of its points in each of them.

        Raises:
            TooManyPoints: as `run`.
        """
        if name not in self.spaces:
            self.spaces[name] = self._space(self.graph.stage(name), self.need(name))
        return self._repeated(self.spaces[name], loops)

    def _take(self, count: int, what: str) -> None:
        """Pay for a table of `count` rows."""
        if count > self.left:
            raise TooManyPoints(f"{what} {count} points")
        self.left -= count

    def number(self, value: SizeExpr, loops: Mapping[str, Ints], count: int) -> Ints:
        """A size expression at every point."""
        if not value.indices:
            return np.full(count, value.evaluate(self.sizes), np.int64)
        return np.broadcast_to(np.asarray(_at(value, {**self.sizes, **loops}), np.int64), (count,))

    def box_counts(
        self, path: tuple[tuple[str, str], ...], box: Sequence[tuple[SizeExpr, SizeExpr]], visits: Ints | None = None
    ) -> tuple[int, ...]:
        """Number of elements of a box (minimum and extent per dimension) at every visit.

        Args:
            path: the loops of a visit, outermost first.
            visits: one row per visit; all iterations of `path` by default.
        """
        rows = self._visits(path) if visits is None else visits
        loops = {variable(*loop): rows[:, column] for column, loop in enumerate(path)}
        total = np.ones(len(rows), np.int64)
        for _, extent in box:
            total *= np.maximum(self.number(extent, loops, len(rows)), 0)
        return tuple(total.tolist())

    def reached(self, path: tuple[tuple[str, str], ...], visits: Ints) -> list[bool]:
        """Whether the tests around the loops of a path hold at every visit (`extents.decided_at`)."""
        loops = {variable(*loop): visits[:, column] for column, loop in enumerate(path)}
        found = np.ones(len(visits), bool)
        for owner, leaf in path:
            stage, related = self.graph.stage(owner), self.bounds[owner].lineage
            for value, limit in decided_at(self.graph, stage, related, leaf):
                if value.indices | limit.indices <= loops.keys():
                    found &= self.number(value, loops, len(visits)) < self.number(limit, loops, len(visits))
        return [bool(each) for each in found]

    # --- one stage ---------------------------------------------------------------------------------------------------

    def _need(self, stage: Stage) -> Need:
        graph = self.graph
        users = () if graph.computes_all(stage.name) else graph.consumers(graph.stages_on(stage.target)[0].name)
        path = tuple(reversed(path_points(graph, stage)))
        if not users:
            return self._everything(stage)
        rows: list[Ints] = []
        width, sizes = len(path), self._all_sizes()
        for user in users:
            space = self.space(user.name, path)
            prefix = self._prefix(path, space)
            evaluated = reached_reads(user.statement.value, space.roots, sizes, space.count)
            for read in dict.fromkeys(user.statement.reads()):
                if graph.storage_name(read.tensor) == graph.storage_name(stage.target):
                    self._take(space.count, f"`{user.name}` reads `{read.tensor}` at")
                    elements = self._elements(stage, read, user, space, sizes)
                    if read in evaluated:
                        rows.append(np.concatenate([prefix, elements], axis=1)[evaluated[read]])
        visits = self._visits(path)
        wanted = distinct_rows(np.concatenate(rows)) if rows else np.zeros((0, width), np.int64)
        wanted = self._inside(stage, wanted, width)
        number = _row_numbers(visits, wanted[:, :width])
        return Need(path, visits, number, wanted[:, width:])

    def _visits(self, path: tuple[tuple[str, str], ...]) -> Ints:
        """All iterations of the loops around a stage, in order of execution."""
        one = _Space({}, {}, 1)
        for depth, loop in enumerate(path):
            one = self._inside_loop(one, loop, path[:depth])
        return np.stack([one.loops[variable(*loop)] for loop in path], axis=1) if path else np.zeros((1, 0), np.int64)

    def _repeated(self, space: _Space, path: tuple[tuple[str, str], ...]) -> _Space:
        """The points with a column for every loop of a path: each of them runs in all iterations of a loop that it has none for."""
        for depth, loop in enumerate(path):
            if variable(*loop) not in space.loops:
                space = self._inside_loop(space, loop, path[:depth])
        return space

    def _inside_loop(self, space: _Space, loop: tuple[str, str], around: tuple[tuple[str, str], ...]) -> _Space:
        """Every point once for every iteration of a loop, which are in order."""
        name, leaf = loop
        placed = frozenset(axis for owner, axis in around if owner == name)
        extent = loop_extent(self.graph.stage(name), self.bounds[name].lineage, leaf, placed)
        counts = np.maximum(self.number(extent, space.loops, space.count), 0)
        total = int(counts.sum())
        self._take(total, f"`{name}[{leaf}]` has")
        first = np.repeat(np.cumsum(counts) - counts, counts)
        loops = {key: np.repeat(column, counts) for key, column in space.loops.items()}
        roots = {key: np.repeat(column, counts) for key, column in space.roots.items()}
        return _Space({**loops, variable(*loop): np.arange(total) - first}, roots, total)

    def _everything(self, stage: Stage) -> Need:
        """All elements in one visit: results, and what nobody reads."""
        bounds = [(low.evaluate(self.sizes), high.evaluate(self.sizes)) for low, high in self._output_ranges(stage)]
        elements = self._grid(bounds, f"`{stage.name}` has")
        return Need((), np.zeros((1, 0), np.int64), np.zeros(len(elements), np.int64), elements)

    def _grid(self, bounds: list[tuple[int, int]], what: str) -> Ints:
        """All points of a box, in lexicographic order."""
        total = math.prod(max(0, high - low) for low, high in bounds)
        self._take(total, what)
        if not total:  # also where one side has more values than memory
            return np.zeros((0, len(bounds)), np.int64)
        axes = [np.arange(low, max(low, high), dtype=np.int64) for low, high in bounds]
        if not axes:
            return np.zeros((1, 0), np.int64)
        return np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    def _output_ranges(self, stage: Stage) -> list[tuple[SizeExpr, SizeExpr]]:
        return [root.dom for root in stage.roots if root.kind == "output"]

    def _inside(self, stage: Stage, rows: Ints, width: int) -> Ints:
        """Only elements that this statement writes (a later statement may write a part of its tensor)."""
        keep = np.ones(len(rows), bool)
        for column, (low, high) in enumerate(self._output_ranges(stage)):
            values = rows[:, width + column]
            keep &= (values >= low.evaluate(self.sizes)) & (values < high.evaluate(self.sizes))
        return rows[keep]

    def _prefix(self, path: tuple[tuple[str, str], ...], space: _Space) -> Ints:
        columns = [space.loops[variable(*loop)] for loop in path]
        return np.stack(columns, axis=1) if columns else np.zeros((space.count, 0), np.int64)

    def _space(self, stage: Stage, need: Need) -> _Space:
        """All points of the stage for the needed elements, with the values of its loops."""
        reductions = [root for root in stage.roots if root.kind == "reduction"]
        ranges = [(root.dom[0].evaluate(self.sizes), root.dom[1].evaluate(self.sizes)) for root in reductions]
        inner = self._grid(ranges, f"`{stage.name}` has")
        count = len(need.elements) * len(inner)
        self._take(count, f"`{stage.name}` has")
        outer = np.repeat(np.arange(len(need.elements)), len(inner))
        again = np.tile(np.arange(len(inner)), len(need.elements))
        loops = {
            variable(*loop): need.visits[need.visit_of][:, column][outer] if len(need.visits) else np.zeros(0, np.int64)
            for column, loop in enumerate(need.path)
        }
        roots: dict[str, Ints] = {}
        outputs = [root for root in stage.roots if root.kind == "output"]
        for column, root in enumerate(outputs):
            roots[root.name] = need.elements[:, column][outer]
        for column, root in enumerate(reductions):
            roots[root.name] = inner[:, column][again]
        if stage.limits:
            keep = self._inside_limits(stage, roots, count)
            loops = {name: column[keep] for name, column in loops.items()}
            roots = {name: column[keep] for name, column in roots.items()}
            count = int(keep.sum())
        return self._leaves(stage, _Space(loops, roots, count))

    def _inside_limits(self, stage: Stage, roots: Mapping[str, Ints], count: int) -> NDArray[np.bool_]:
        keep = np.ones(count, bool)
        for value, limit in stage.limits:
            keep &= self.number(value, roots, count) < self.number(limit, roots, count)
        return keep

    def _leaves(self, stage: Stage, space: _Space) -> _Space:
        """From roots to leaves: the inverse of the relations, every derived axis counted from 0.

        Points that a shifted tile has in common with the one before it are in both.
        """
        bounds, loops, roots, count = self.bounds[stage.name], space.loops, space.roots, space.count
        value = {name: column - self.number(bounds.domain[name][0], loops, count) for name, column in roots.items()}
        for name in (name for name in roots if stage.runs_down(name)):
            value[name] = self.number(bounds.domain[name][1], loops, count) - 1 - value[name]
        for relation in stage.relations:
            if isinstance(relation, Split):
                factor = self.number(bounds.lineage.factors[relation.parent], loops, count)
                tile = value[relation.parent] // factor
                start = tile * factor
                if relation.tail == "shift":
                    extent = self.number(bounds.lineage.extents[relation.parent], loops, count)
                    first, last = np.maximum(extent - factor, 0), (extent - 1) // factor
                    twice = np.flatnonzero((tile < last) & (value[relation.parent] >= first))
                    rows = np.concatenate([np.arange(count), twice])
                    count = len(rows)
                    self._take(count, f"`{stage.name}` has")
                    loops, roots, value = (
                        {key: each[rows] for key, each in old.items()} for old in (loops, roots, value)
                    )
                    tile = np.concatenate([tile, last[twice]])
                    start = np.minimum(tile * factor[rows], first[rows])
                value[relation.outer], value[relation.inner] = tile, value[relation.parent] - start
            elif isinstance(relation, Fuse):
                row = self.number(bounds.lineage.extents[relation.inner], loops, count)
                value[relation.fused] = value[relation.outer] * row + value[relation.inner]
            else:
                front = relation.factor * value[relation.outer] + value[relation.inner]
                first, _ = on_front(relation, bounds.lineage.extents, index(relation.front))
                value[relation.front] = front
                value[relation.place] = value[relation.outer] - self.number(
                    first, {**loops, relation.front: front}, count
                )
        for leaf in stage.leaves:
            loops[variable(stage.name, leaf)] = value[leaf]
        if stage.attach.kind == "with":
            other = self.graph.stage(stage.attach.stage)
            shared = other.leaves[: other.leaves.index(stage.attach.axis) + 1]
            for theirs, mine in zip(shared, stage.leaves, strict=False):
                loops[variable(other.name, theirs)] = value[mine]
        return _Space(loops, roots, count)

    def _all_sizes(self) -> dict[str, int]:
        """The sizes of the call, and those that range inference knows."""
        return {**self.sizes, **{name: each.evaluate(self.sizes) for name, each in scope_of(self.graph).sizes.items()}}

    def _elements(self, stage: Stage, read: Read, user: Stage, space: _Space, sizes: Mapping[str, int]) -> Ints:
        """The element of the stage's tensor that each point of the consumer reads, whether or not it is evaluated there."""
        if any(map(reads_elements, read.indices)):
            raise TooManyPoints(f"data decide where `{user.name}` reads `{read.tensor}`")
        there, here = view_shift(self.graph, read.tensor), view_shift(self.graph, stage.target)
        columns = [
            evaluate(index, space.roots, sizes, space.count) + (by - own).evaluate(self.sizes)
            for index, by, own in zip(read.indices, there, here, strict=True)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((space.count, 0), np.int64)


MOST = 1 << 62
"""In place of every larger number, and negated of every smaller one: no index of an array is as large."""


def evaluate(expr: Expr, roots: Mapping[str, Ints], sizes: Mapping[str, int], count: int) -> Ints:
    """An integer or logical expression without tensor reads at every point, as if numbers had no end; clipped to `MOST`."""
    if _largest(expr, roots, sizes) < MOST:
        return _evaluate(expr, roots, sizes, count, np.int64)
    exact = _evaluate(expr, {name: column.astype(object) for name, column in roots.items()}, sizes, count, object)
    return np.clip(exact, -MOST, MOST).astype(np.int64)


def _largest(expr: Expr, roots: Mapping[str, Ints], sizes: Mapping[str, int]) -> int:
    """What no number on the way to the value of an expression exceeds."""
    seen = [0]

    def bound(node: Expr) -> int:
        seen.append(own(node))
        return seen[-1]

    def own(node: Expr) -> int:
        match node:
            case Const():
                return abs(int(node.value))
            case Size():
                return abs(sizes[node.name])
            case IndexVar():
                column = roots[node.name]
                return max(abs(int(column.min())), abs(int(column.max()))) if len(column) else 0
            case Read():
                return abs(sizes[node.tensor])
            case Unary() | Cast():
                return bound(node.operand) + 1
            case Select():
                return max(bound(node.condition), bound(node.then), bound(node.otherwise))
            case Binary():
                left, right = bound(node.left), bound(node.right)
                return left * right if node.op == "*" else left + right + 1
            case Call() if node.function in bits.OPERATORS:
                least, most = bits.bounds(node.function, *[(-top, top) for top in map(bound, node.arguments)])
                return max(-least, most)
            case Call():
                return bound(node.arguments[0])

    bound(expr)
    return max(seen)


def _evaluate(expr: Expr, roots: Mapping[str, Ints], sizes: Mapping[str, int], count: int, kind: type[Any]) -> Ints:
    match expr:
        case Const():
            return np.full(count, int(expr.value), kind)
        case Size():
            return np.full(count, sizes[expr.name], kind)
        case IndexVar():
            return roots[expr.name]
        case Read():
            return np.full(count, sizes[expr.tensor], kind)
        case Unary():
            value = _evaluate(expr.operand, roots, sizes, count, kind)
            return 1 - value if expr.op == "!" else -value
        case Cast():
            return _evaluate(expr.operand, roots, sizes, count, kind)
        case Select():
            test = _evaluate(expr.condition, roots, sizes, count, kind) != 0
            then = _evaluate(expr.then, roots, sizes, count, kind)
            return np.where(test, then, _evaluate(expr.otherwise, roots, sizes, count, kind))
        case Binary():
            left, right = (
                _evaluate(expr.left, roots, sizes, count, kind),
                _evaluate(expr.right, roots, sizes, count, kind),
            )
            return _OPERATORS[expr.op](left, right).astype(kind)
        case Call() if expr.function in bits.OPERATORS:
            operands = [_evaluate(each, roots, sizes, count, kind) for each in expr.arguments]
            return bits.on_arrays(expr.function, *operands)
        case Call():
            value = _evaluate(expr.arguments[0], roots, sizes, count, kind)
            return np.abs(value) if expr.function == "abs" else np.sign(value)


def _divide(a: Ints, b: Ints) -> Ints:
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b))


def _modulo(a: Ints, b: Ints) -> Ints:
    return np.where(b == 0, 0, a % np.where(b == 0, 1, b))


_OPERATORS = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "//": _divide, "/": _divide, "%": _modulo,
    "min": np.minimum, "max": np.maximum, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
    "&&": np.logical_and, "||": np.logical_or,
}  # fmt: skip


def reached(
    expr: Expr, read: Read, roots: Mapping[str, Ints], sizes: Mapping[str, int], count: int
) -> NDArray[np.bool_]:
    """Where the conditions around `read` (`? :`, `&&`, `||`) let it be evaluated; conditions on data count as true."""
    found = (where for node, where in _evaluated(expr, roots, sizes, count) if node is read)
    return next(found, np.zeros(count, bool))


def reached_reads(
    expr: Expr, roots: Mapping[str, Ints], sizes: Mapping[str, int], count: int
) -> dict[Read, NDArray[np.bool_]]:
    """The different reads of an expression, each with where it is evaluated in any of its places."""
    found: dict[Read, NDArray[np.bool_]] = {}
    for node, where in _evaluated(expr, roots, sizes, count):
        if isinstance(node, Read):
            before = found.get(node, where)
            found[node] = where if before is where else before | where
    return found


def _evaluated(
    expr: Expr, roots: Mapping[str, Ints], sizes: Mapping[str, int], count: int
) -> Iterator[tuple[Expr, NDArray[np.bool_]]]:
    """Every node, once, with where it is evaluated."""
    places = {id(expr): np.ones(count, bool)}
    for node in _parents_first(expr):
        here = places.pop(id(node))
        yield node, here
        for child, condition, side in _entered(node):
            inside = here if condition is None else here & _holds(condition, side, roots, sizes, count)
            before = places.get(id(child), inside)
            places[id(child)] = inside if before is inside else before | inside


def _parents_first(expr: Expr) -> list[Expr]:
    """All nodes, each object once and behind every node that it is an operand of."""
    done, order, stack = set[int](), list[Expr](), [(expr, False)]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            order.append(node)
        elif id(node) not in done:
            done.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in children(node))
    return order[::-1]


def _entered(expr: Expr) -> Iterator[tuple[Expr, Expr | None, bool]]:
    """The operands, each with a condition under which it is evaluated and whether that has to hold or not to hold."""
    match expr:
        case Select():
            yield expr.condition, None, True
            yield expr.then, expr.condition, True
            yield expr.otherwise, expr.condition, False
        case Binary(op="&&") | Binary(op="||"):
            yield expr.left, None, True
            yield expr.right, expr.left, expr.op == "&&"
        case _:
            for child in children(expr):
                yield child, None, True


def _holds(
    condition: Expr, side: bool, roots: Mapping[str, Ints], sizes: Mapping[str, int], count: int
) -> NDArray[np.bool_]:
    """Where a condition holds, or does not hold; everywhere if data decide it."""
    if has_read(condition) or any(node.dtype.is_float for node in walk(condition)):
        return np.ones(count, bool)
    value = evaluate(condition, roots, sizes, count) != 0
    return value if side else ~value


def distinct_rows(rows: Ints) -> Ints:
    """The different rows, in lexicographic order."""
    if not rows.shape[1] or not len(rows):
        return rows[:1]
    keys = _keys(rows, rows)
    if keys is None:
        return np.unique(rows, axis=0)
    return rows[np.unique(keys[0], return_index=True)[1]]


def _keys(table: Ints, rows: Ints) -> tuple[Ints, Ints] | None:
    """One number per row of two tables, in lexicographic order; `None` where they need more than 62 bits."""
    low = np.minimum(table.min(axis=0), rows.min(axis=0))
    span = np.maximum(table.max(axis=0), rows.max(axis=0)) - low + 1
    if math.prod(span.tolist()) >= 1 << 62:
        return None
    weights = [math.prod(span[column + 1 :].tolist()) for column in range(len(span))]
    return (table - low) @ np.array(weights, np.int64), (rows - low) @ np.array(weights, np.int64)


def _row_numbers(table: Ints, rows: Ints) -> Ints:
    """For each of `rows` its position in `table` (sorted, distinct rows)."""
    if not table.shape[1] or not len(rows):
        return np.zeros(len(rows), np.int64)
    keys = _keys(table, rows)
    if keys is not None:
        return np.searchsorted(*keys)
    position = {tuple(row): number for number, row in enumerate(table.tolist())}
    return np.array([position[tuple(row)] for row in rows.tolist()], np.int64)


def _at(value: SizeExpr, known: Mapping[str, int | Ints]) -> int | Ints:
    """A size expression at all points at once."""
    total: int | Ints = value.offset
    for mono, weight in value.terms.items():
        product: int | Ints = weight
        for atom in mono:
            product = product * _atom_at(atom, known)
        total = total + product
    return total


def _atom_at(
    atom: Name | FloorDiv | Mod | Extremum | Product | Datum | Choice | Opaque, known: Mapping[str, int | Ints]
) -> int | Ints:
    match atom:
        case Name():
            return known[atom.name]
        case FloorDiv():
            return _at(atom.numerator, known) // _at(atom.divisor, known)
        case Mod():
            return _at(atom.numerator, known) % _at(atom.divisor, known)
        case Extremum():
            pick = np.minimum if atom.kind == "min" else np.maximum
            return functools.reduce(pick, (_at(argument, known) for argument in atom.arguments))
        case Product():
            product: int | Ints = 1
            for factor in atom.factors:
                product = product * _at(factor, known)
            return product
        case Choice():
            test = _holds_at(atom.condition, known)
            return np.where(test, _at(atom.then, known), _at(atom.otherwise, known))
        case Datum() | Opaque():
            raise TooManyPoints("data decide it")


def _holds_at(condition: Condition, known: Mapping[str, int | Ints]) -> bool | NDArray[np.bool_]:
    parts = [_holds_at(part, known) for part in condition.parts]
    match condition.op:
        case ">=":
            return _at(condition.arguments[0], known) >= 0
        case "==":
            return _at(condition.arguments[0], known) == 0
        case "!=":
            return _at(condition.arguments[0], known) != 0
        case "and":
            return functools.reduce(np.logical_and, parts, True)
        case "or":
            return functools.reduce(np.logical_or, parts, False)
        case "true" | "false":
            return condition.op == "true"
        case _:
            raise TooManyPoints("data decide it")
