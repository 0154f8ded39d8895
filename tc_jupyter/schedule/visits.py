"""Exact need by enumeration: for given sizes, which elements of a stage every visit of its attach point reads, and TVM's answer.

The formula of `infer_bound`, need(P), evaluated point by point with NumPy:

    need(P) = union over consumers C and reads a of P in C of a(need(C) joined with leaves_to_roots(C)),
              every loop that is not on P's attach path projected out

Used for the numbers of the inspector and as the oracle of the tests; code generation uses the symbolic boxes of `infer_bound.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tc_jupyter.program import Binary, Call, Cast, Const, Expr, IndexVar, Read, Select, Size, Unary, walk
from tc_jupyter.ranges import SizeExpr

from .extents import decided_at, loop_extent
from .infer_bound import SymbolicBounds, path_points, scope_of, variable, view_shift
from .stage import Split, Stage, StageGraph

Ints = NDArray[np.int64]
LIMIT = 4_000_000
"""Points of one statement that are enumerated at most."""


class TooManyPoints(Exception):
    """The iteration space is too large to enumerate; counts are not available, expressions are."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a stage must compute.

    Attributes:
        path: loops that a visit is made of, outermost first, as (stage, leaf).
        visits: one row per visit in order of execution, one column per loop of `path`.
        visit_of: per needed element the number of its visit.
        elements: per needed element its logical index in the tensor that owns the storage; sorted by visit.
    """

    path: tuple[tuple[str, str], ...]
    visits: Ints
    visit_of: Ints
    elements: Ints

    def per_visit(self) -> tuple[int, ...]:
        """Number of elements needed by each visit."""
        counts = np.bincount(self.visit_of, minlength=len(self.visits))
        return tuple(int(count) for count in counts)

    def hull_per_visit(self) -> tuple[int, ...]:
        """Number of elements of the smallest box around each visit's elements."""
        counts: list[int] = []
        for visit in range(len(self.visits)):
            mine = self.elements[self.visit_of == visit]
            extents = mine.max(axis=0) - mine.min(axis=0) + 1 if len(mine) else np.zeros(1, np.int64)
            counts.append(int(np.prod(extents)))
        return tuple(counts)


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

    @property
    def graph(self) -> StageGraph:
        """The graph that the bounds belong to."""
        return self.bounds.graph

    def run(self) -> Mapping[str, Need]:
        """The need of every stage.

        Raises:
            TooManyPoints: a statement has more than `LIMIT` points.
        """
        for stage in reversed(self.graph.stages):
            self.needs[stage.name] = self._need(stage)
            self.spaces[stage.name] = self._space(stage, self.needs[stage.name])
        return self.needs

    def number(self, value: SizeExpr, loops: Mapping[str, Ints], count: int) -> Ints:
        """A size expression at every point."""
        if not value.indices:
            return np.full(count, value.evaluate(self.sizes), np.int64)
        names = sorted(value.indices)
        table = np.stack([loops[name] for name in names], axis=1)
        rows, back = np.unique(table, axis=0, return_inverse=True)
        found = [value.evaluate({**self.sizes, **dict(zip(names, map(int, row), strict=True))}) for row in rows]
        return np.array(found, np.int64)[back.reshape(-1)]

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
        return tuple(map(int, total))

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
        width = len(path)
        for user in users:
            space = self.spaces[user.name]
            prefix = self._prefix(path, space)
            for read in user.statement.reads():
                if graph.storage_name(read.tensor) == graph.storage_name(stage.target):
                    elements, valid = self._elements(stage, read, user, space)
                    rows.append(np.concatenate([prefix, elements], axis=1)[valid])
        visits = self._visits(path)
        wanted = np.unique(np.concatenate(rows), axis=0) if rows else np.zeros((0, width), np.int64)
        wanted = self._inside(stage, wanted, width)
        number = _row_numbers(visits, wanted[:, :width])
        return Need(path, visits, number, wanted[:, width:])

    def _visits(self, path: tuple[tuple[str, str], ...]) -> Ints:
        """All iterations of the loops around a stage, in order of execution."""
        rows = np.zeros((1, 0), np.int64)
        for depth, (name, leaf) in enumerate(path):
            stage = self.graph.stage(name)
            placed = frozenset(axis for owner, axis in path[:depth] if owner == name)
            extent = loop_extent(stage, self.bounds[name].lineage, leaf, placed)
            loops = {variable(*loop): rows[:, column] for column, loop in enumerate(path[:depth])}
            counts = np.maximum(self.number(extent, loops, len(rows)), 0)
            if int(counts.sum()) > LIMIT:
                raise TooManyPoints(f"{int(counts.sum())} visits")
            inner = np.concatenate([np.arange(count) for count in counts]) if len(counts) else np.zeros(0, np.int64)
            rows = np.concatenate([np.repeat(rows, counts, axis=0), inner.reshape(-1, 1).astype(np.int64)], axis=1)
        return rows

    def _everything(self, stage: Stage) -> Need:
        """All elements in one visit: results, and what nobody reads."""
        bounds = [(low.evaluate(self.sizes), high.evaluate(self.sizes)) for low, high in self._output_ranges(stage)]
        elements = _grid(bounds)
        return Need((), np.zeros((1, 0), np.int64), np.zeros(len(elements), np.int64), elements)

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
        inner = _grid([(root.dom[0].evaluate(self.sizes), root.dom[1].evaluate(self.sizes)) for root in reductions])
        count = len(need.elements) * len(inner)
        if count > LIMIT:
            raise TooManyPoints(f"{stage.name} has {count} points")
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
        self._leaves(stage, roots, loops, count)
        return _Space(loops, roots, count)

    def _inside_limits(self, stage: Stage, roots: Mapping[str, Ints], count: int) -> NDArray[np.bool_]:
        keep = np.ones(count, bool)
        for value, limit in stage.limits:
            keep &= self.number(value, roots, count) < self.number(limit, roots, count)
        return keep

    def _leaves(self, stage: Stage, roots: Mapping[str, Ints], loops: dict[str, Ints], count: int) -> None:
        """From roots to leaves: the inverse of the relations, every derived axis counted from 0."""
        bounds = self.bounds[stage.name]
        value = {name: column - self.number(bounds.domain[name][0], loops, count) for name, column in roots.items()}
        for relation in stage.relations:
            if isinstance(relation, Split):
                factor = self.number(bounds.lineage.factors[relation.parent], loops, count)
                value[relation.outer] = value[relation.parent] // factor
                value[relation.inner] = value[relation.parent] % factor
            else:
                row = self.number(bounds.lineage.extents[relation.inner], loops, count)
                value[relation.fused] = value[relation.outer] * row + value[relation.inner]
        for leaf in stage.leaves:
            loops[variable(stage.name, leaf)] = value[leaf]
        if stage.attach.kind == "with":
            other = self.graph.stage(stage.attach.stage)
            shared = other.leaves[: other.leaves.index(stage.attach.axis) + 1]
            for theirs, mine in zip(shared, stage.leaves, strict=False):
                loops[variable(other.name, theirs)] = value[mine]

    def _elements(self, stage: Stage, read: Read, user: Stage, space: _Space) -> tuple[Ints, NDArray[np.bool_]]:
        """The element that each point of the consumer reads, and whether it is evaluated there at all."""
        if any(isinstance(node, Read) and node.indices for index in read.indices for node in walk(index)):
            raise TooManyPoints(f"{user.name} reads {read.tensor} at positions that depend on data")
        shift = view_shift(self.graph, read.tensor)
        scope = {
            **self.sizes,
            **{name: value.evaluate(self.sizes) for name, value in scope_of(self.graph).sizes.items()},
        }
        columns = [
            evaluate(index, space.roots, scope, space.count) + by.evaluate(self.sizes)
            for index, by in zip(read.indices, shift, strict=True)
        ]
        elements = np.stack(columns, axis=1) if columns else np.zeros((space.count, 0), np.int64)
        return elements, reached(user.statement.value, read, space.roots, scope, space.count)


def evaluate(expr: Expr, roots: Mapping[str, Ints], sizes: Mapping[str, int], count: int) -> Ints:
    """An integer or logical expression without tensor reads at every point."""
    match expr:
        case Const():
            return np.full(count, int(expr.value), np.int64)
        case Size():
            return np.full(count, sizes[expr.name], np.int64)
        case IndexVar():
            return roots[expr.name]
        case Read():
            return np.full(count, sizes[expr.tensor], np.int64)
        case Unary():
            value = evaluate(expr.operand, roots, sizes, count)
            return 1 - value if expr.op == "!" else -value
        case Cast():
            return evaluate(expr.operand, roots, sizes, count)
        case Select():
            test = evaluate(expr.condition, roots, sizes, count) != 0
            then = evaluate(expr.then, roots, sizes, count)
            return np.where(test, then, evaluate(expr.otherwise, roots, sizes, count))
        case Binary():
            left, right = evaluate(expr.left, roots, sizes, count), evaluate(expr.right, roots, sizes, count)
            return _OPERATORS[expr.op](left, right).astype(np.int64)
        case Call():
            value = evaluate(expr.arguments[0], roots, sizes, count)
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
    found = _reached(expr, read, roots, sizes, count)
    return np.zeros(count, bool) if found is None else found


def _reached(
    expr: Expr, read: Read, roots: Mapping[str, Ints], sizes: Mapping[str, int], count: int
) -> NDArray[np.bool_] | None:
    if expr is read:
        return np.ones(count, bool)

    def inside(child: Expr) -> NDArray[np.bool_] | None:
        return _reached(child, read, roots, sizes, count)

    def holds(condition: Expr, positive: bool) -> NDArray[np.bool_]:
        if any(isinstance(node, Read) for node in walk(condition)) or any(
            node.dtype.is_float for node in walk(condition)
        ):
            return np.ones(count, bool)
        value = evaluate(condition, roots, sizes, count) != 0
        return value if positive else ~value

    match expr:
        case Select():
            parts = [(expr.condition, None), (expr.then, True), (expr.otherwise, False)]
            found = [
                where if side is None else where & holds(expr.condition, side)
                for part, side in parts
                if (where := inside(part)) is not None
            ]
        case Binary(op="&&") | Binary(op="||"):
            left, right = inside(expr.left), inside(expr.right)
            found = [] if left is None else [left]
            if right is not None:
                found.append(right & holds(expr.left, expr.op == "&&"))
        case Read():
            found = [where for child in expr.indices if (where := inside(child)) is not None]
        case Binary():
            found = [where for child in (expr.left, expr.right) if (where := inside(child)) is not None]
        case Unary() | Cast():
            found = [] if (where := inside(expr.operand)) is None else [where]
        case Call():
            found = [where for child in expr.arguments if (where := inside(child)) is not None]
        case _:
            found = []
    return None if not found else np.logical_or.reduce(found)


def _grid(bounds: list[tuple[int, int]]) -> Ints:
    """All points of a box, in lexicographic order."""
    total = int(np.prod([max(0, high - low) for low, high in bounds], dtype=object)) if bounds else 1
    if total > LIMIT:
        raise TooManyPoints(f"a box of {total} points")
    axes = [np.arange(low, max(low, high), dtype=np.int64) for low, high in bounds]
    if not axes:
        return np.zeros((1, 0), np.int64)
    return np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _row_numbers(table: Ints, rows: Ints) -> Ints:
    """For each of `rows` its position in `table` (sorted, distinct rows)."""
    if table.shape[1] == 0:
        return np.zeros(len(rows), np.int64)
    position = {tuple(map(int, row)): number for number, row in enumerate(table)}
    return np.array([position[tuple(map(int, row))] for row in rows], np.int64)
