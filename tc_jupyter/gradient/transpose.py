"""What a read adds to the derivative of the tensor that is read: a gather where its subscripts can be solved, else a scatter.

Worked example: `Y(i) +=! X(i + k) * W(k)` with `0 <= i < N - 2` reads `X(i + k)`; solved for `i`, with the name `i` for the
element, it adds `0 <= i - k && i - k < N - 2 ? dY(i - k) * W(k) : 0` to `dX(i)`. From `X(2*i)` follows `dX(2*i) += dY(i)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tc_jupyter.diagnostics.work import spend
from tc_jupyter.program import (
    COMPARISONS,
    Binary,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    children,
    conjuncts,
    int64,
    may_wrap,
    rebuild,
    rewrite,
    variables,
    walk,
)
from tc_jupyter.program.factoring import factors_in
from tc_jupyter.program.integers import index_names
from tc_jupyter.ranges import (
    Datum,
    FloorDiv,
    Mod,
    Opaque,
    SizeExpr,
    always_nonnegative,
    constant,
    floor_div,
    interval,
    maximum,
    mod,
    nonnegative,
    of_atom,
    to_expr,
)
from tc_jupyter.ranges import index as index_name
from tc_jupyter.ranges.size_expr import is_known_at_call

from .arithmetic import cast, compared, guarded, is_number, times
from .partials import Part
from .steps import Array, Bounds, Point, Step

STEPS_PER_READ = 200
NEW = "'"
"""Behind the name of an index that runs over the elements of the tensor that was read."""


@dataclass(frozen=True, slots=True)
class Term:
    """What is added to `target(left)` at all points: `value`, or 0 where a condition does not hold.

    Attributes:
        left: different indices over the whole box of the target (`is_gather`), or any subscripts that stay inside of it.
    """

    points: tuple[Point, ...]
    left: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    value: Expr

    @property
    def is_gather(self) -> bool:
        """Whether each element of the target is a point, or a sum over points."""
        names = [at.name for at in self.left if isinstance(at, IndexVar)]
        return len(set(names)) == len(self.left)

    @property
    def reduced(self) -> tuple[Point, ...]:
        """The points that are summed."""
        names = {at.name for at in self.left if isinstance(at, IndexVar)} if self.is_gather else set[str]()
        return tuple(point for point in self.points if point.name not in names)

    @property
    def guarded(self) -> Expr:
        """The value, or 0 where it does not count."""
        return guarded(self.conditions, self.value)

    def renamed(self, names: Mapping[str, str]) -> Term:
        """The same with other names for indices."""
        rule = variables({old: IndexVar(new) for old, new in names.items()})
        points = tuple(replace(point, name=names.get(point.name, point.name)) for point in self.points)
        left = tuple(rewrite(at, rule) for at in self.left)
        conditions = tuple(rewrite(each, rule) for each in self.conditions)
        return Term(points, left, conditions, rewrite(self.value, rule))


def transposed(
    step: Step,
    part: Part,
    array: Array,
    size: Callable[[Expr], SizeExpr],
    fresh: Callable[[], str],
    plain: Collection[int] = (),
) -> Term:
    """What a read of a step adds to the derivative of its tensor.

    Args:
        array: the tensor that is read.
        fresh: makes a name for an index.
        plain: dimensions whose subscript is to be an index.
    """
    spend(STEPS_PER_READ)
    return _Solving(step, part, array, size, fresh, plain).term()


class _Solving:
    def __init__(
        self,
        step: Step,
        part: Part,
        array: Array,
        size: Callable[[Expr], SizeExpr],
        fresh: Callable[[], str],
        plain: Collection[int],
    ) -> None:
        self.step, self.part, self.array, self.size, self.fresh, self.kept = step, part, array, size, fresh, plain
        self.ranges = {point.name: point.bounds for point in step.points}
        self.solved: dict[str, SizeExpr] = {}  # what indices of the step are, in indices of the element
        self.pivots: dict[int, str] = {}  # by dimension: the name of its element
        self.added: dict[str, Bounds] = {}  # indices that the step does not have
        self.lengths = [end - first for first, end in array.box]
        self.certain: set[str] = set()  # solved indices that are in their ranges

    def term(self) -> Term:
        subscripts = [self.size(at) for at in self.part.read.indices]
        outputs = {at.name for at in self.step.left if isinstance(at, IndexVar)}
        for dimension, at in enumerate(subscripts):
            self.split(dimension, at)
        for ways in (self.alone, self.unit, self.quotient, self.remainder):
            for dimension, at in enumerate(subscripts):
                if dimension not in self.pivots:
                    self.solve(dimension, at, ways, outputs)
        return self.finished()

    def solve(self, dimension: int, at: SizeExpr, way: Callable[..., SizeExpr | None], outputs: set[str]) -> None:
        """Choose an index of a subscript and say what it is."""
        now = at.substitute(self.solved)
        free = [name for name in self.ranges if name in now.indices and name not in self.solved]
        for name in sorted(free, key=lambda each: (not self.is_long(each, dimension), each not in outputs)):
            found = way(now, name, dimension)
            if found is not None:
                self.pivots[dimension] = name
                self.solved = {each: old.substitute({name: found}) for each, old in self.solved.items()}
                self.solved[name] = found
                return

    def split(self, dimension: int, at: SizeExpr) -> None:
        """`c*i + k`, where `k` has `c` values and is in no other subscript, is each element once: both are a part of its number."""
        found = parts_of_number(dimension, at, self.ranges, [self.size(each) for each in self.part.read.indices])
        if found is None:
            return
        name, inner, step = found
        lower, _ = self.ranges[inner]
        own = index_name(name + NEW) - (at - index_name(name) * step - index_name(inner)) - lower
        self.pivots[dimension] = name
        self.solved[name] = floor_div(own, constant(step))
        self.solved[inner] = lower + mod(own, constant(step))
        self.certain.add(inner)

    def is_long(self, name: str, dimension: int) -> bool:
        """Whether an index has about as many values as the dimension: what stays is a short sum."""
        (lower, upper), (first, end) = self.ranges[name], self.array.box[dimension]
        left = (end - first) - (upper - lower)
        return not left.names & (end - first).names and not (left.is_constant and (end - first).is_constant)

    def alone(self, at: SizeExpr, name: str, dimension: int) -> SizeExpr | None:
        """The subscript is the index itself."""
        del dimension
        return index_name(name + NEW) if at == index_name(name) else None

    def unit(self, at: SizeExpr, name: str, dimension: int) -> SizeExpr | None:
        """The index stands there once, with the factor 1 or -1."""
        del dimension
        linear = at.linear_in(name)
        if linear is None or linear[0] not in (constant(1), constant(-1)):
            return None
        factor, rest = linear
        if any(isinstance(atom, Datum | Opaque) for atom in rest.atoms()):
            return None
        return (index_name(name + NEW) - rest) * factor

    def quotient(self, at: SizeExpr, name: str, dimension: int) -> SizeExpr | None:
        """The subscript is a quotient of the index and a number."""
        del dimension
        atoms = [atom for mono in at.terms for atom in mono]
        if len(atoms) != 1 or not isinstance(atoms[0], FloorDiv) or list(at.terms.values()) != [1]:
            return None
        numerator, divisor = atoms[0].numerator, atoms[0].divisor
        linear = numerator.linear_in(name)
        if linear is None or linear[0] != constant(1) or not divisor.is_constant or divisor.offset < 1:
            return None
        place = self.fresh()
        self.added[place] = constant(0), divisor
        return (index_name(name + NEW) - at.offset) * divisor + index_name(place) - linear[1]

    def remainder(self, at: SizeExpr, name: str, dimension: int) -> SizeExpr | None:
        """The subscript goes around the whole dimension once while the index runs over its range."""
        (lower, upper), (first, end) = self.ranges[name], self.array.box[dimension]
        found = [
            mono[0] for mono, weight in at.terms.items() if len(mono) == 1 and weight == 1 and isinstance(mono[0], Mod)
        ]
        if len(found) != 1 or at - of_atom(found[0]) != first or found[0].divisor != end - first:
            return None
        linear = found[0].numerator.linear_in(name)
        if linear is None or linear[0] not in (constant(1), constant(-1)) or upper - lower != end - first:
            return None
        factor, rest = linear
        if any(isinstance(atom, Datum | Opaque) for atom in rest.atoms()):
            return None
        self.certain.add(name)
        return lower + mod((index_name(name + NEW) - first - rest) * factor - lower, end - first)

    def finished(self) -> Term:
        """The term, its new indices under the names of the old ones."""
        # conditions on elements are looked at where these are there
        on_data = any(isinstance(node, Read) for each in self.part.conditions for node in walk(each))
        inner = self.guarded_factor() if self.is_sum() and not on_data else None
        conditions = [test for name, value in self.solved.items() for test in self.inside(name, value)]
        if inner is not None:
            ranges, conditions = self.shown(conditions), []
        else:
            ranges = []
        given = [test for each in self.part.conditions for test in conjuncts(self.replaced(each))]
        conditions = self.shown([*conditions, *given])
        left, points = list[Expr](), list[Point]()
        for dimension, bounds in enumerate(self.array.box):
            name = self.pivots.get(dimension)
            at = self.part.read.indices[dimension]
            subscript = self.without_zero_divisors(self.replaced(at)) if name is None else IndexVar(name)
            if name is None and (dimension in self.kept or (self.kept and conditions)):
                name = self.fresh()
                conditions.append(compared("==", cast(subscript, DType.INT64), IndexVar(name)))
                subscript = IndexVar(name)
            if name is not None:
                points.append(Point(name, *bounds))
            left.append(subscript)
        free = [point for point in self.step.points if point.name not in self.solved]
        new = [Point(name, *bounds) for name, bounds in self.added.items()]
        value = self.replaced(self.part.value)
        if inner is not None and ranges:
            factor, rest = map(self.replaced, inner)
            value = times(guarded(ranges, factor), rest)
        free, value = without_idle(free, (*left, *conditions), value)
        others = [*free, *new]
        if is_number(value, 0):  # no condition stands before it
            conditions, others = [], [each for each in others if each.name in _names(left)]
        return Term((*points, *others), tuple(left), tuple(conditions), value)

    def shown(self, tests: Iterable[Expr]) -> list[Expr]:
        """Tests in few words, without those that are certain, each once."""
        found = dict.fromkeys(plain for each in tests if (plain := self.plain(each)) is not None)
        return list(map(self.without_zero_divisors, found))

    def without_zero_divisors(self, expr: Expr) -> Expr:
        """The same at all points: there are none where the length of a dimension is 0, and a remainder by it is one by 1.

        The borders of reads are left to them.
        """
        if isinstance(expr, Read):
            return expr
        node = rebuild(expr, tuple(map(self.without_zero_divisors, children(expr))))
        if isinstance(node, Binary) and node.op == "%" and node.dtype is DType.INT64:
            divisor = self.size(node.right)
            if divisor in self.lengths and not always_nonnegative(divisor - 1):
                return replace(node, right=Binary("max", node.right, int64(1), DType.INT64))
        return node

    def is_sum(self) -> bool:
        """Whether an element of the tensor that is read gets a sum."""
        names = index_names(self.part.value)
        return len(self.pivots) == len(self.array.box) and any(
            point.name in names and point.name not in self.solved for point in self.step.points
        )

    def guarded_factor(self) -> tuple[Expr, Expr] | None:
        """The factors that are there only where solved indices are in their ranges, and the others, if these are elements.

        A sum of products with a border of zeros is what schedules know; at the border, an infinite factor makes it NaN.
        """
        moved = {
            name for name, value in self.solved.items() if value != index_name(name + NEW) or self.inside(name, value)
        }
        inside, outside = list[Expr](), list[Expr]()
        for factor in factors_in(self.part.value):
            used = any(isinstance(node, IndexVar) and node.name in moved for node in walk(factor))
            if not used and not isinstance(factor, Read | Const):
                return None
            (inside if used else outside).append(factor)
        if not inside or not any(isinstance(each, Read) for each in outside):
            return None
        return reduce(times, inside), reduce(times, outside)

    def plain(self, test: Expr) -> Expr | None:
        """A comparison of positions in few words; `None` where it is certain."""
        if not (isinstance(test, Binary) and test.op in COMPARISONS and test.left.dtype is DType.INT64):
            return test
        if may_wrap(test.left) or may_wrap(test.right):
            return test
        left, right = self.size(test.left), self.size(test.right)
        if test.op in ("==", "!="):
            shown = to_expr(left) if is_known_at_call(left) else test.left
            return compared(test.op, shown, to_expr(right) if is_known_at_call(right) else test.right)
        if not (is_known_at_call(left) and is_known_at_call(right)):
            return test
        more = {"<": right - left - 1, "<=": right - left, ">": left - right - 1, ">=": left - right}[test.op]
        least = interval(more, self.all_ranges()).lower
        if least is not None and self.is_certain(least):
            return None
        return compared(test.op, to_expr(left), to_expr(right))

    def is_certain(self, e: SizeExpr) -> bool:
        """Whether `e >= 0` at all points: a size that is the length of a range is 1 or more there, others may be 0."""
        return always_nonnegative(e, {high - low + 1 for low, high in self.all_ranges().values()})

    def all_ranges(self) -> dict[str, Bounds]:
        """The ranges of the indices of the term, both ends included."""
        boxes = {name: self.array.box[dimension] for dimension, name in self.pivots.items()}
        return {name: (low, high - 1) for name, (low, high) in {**self.ranges, **self.added, **boxes}.items()}

    def inside(self, name: str, value: SizeExpr) -> list[Expr]:
        """What says that a solved index is in its range, without what is certain."""
        if name in self.certain:
            return []
        (lower, upper), old = self.ranges[name], IndexVar(name)
        dimension = next(number for number, each in self.pivots.items() if each == name)
        tests: list[Expr] = []
        if value == index_name(name + NEW):
            first, end = self.array.box[dimension]
            if not nonnegative(first - lower):
                tests.append(compared(">=", old, to_expr(lower)))
            if not nonnegative(upper - end):
                tests.append(compared("<", old, to_expr(upper)))
            return tests
        shown = _new(to_expr(value))
        return [compared("<=", to_expr(lower), shown), compared("<", shown, to_expr(upper))]

    def replaced(self, expr: Expr) -> Expr:
        """An expression of the step in the new indices."""
        plain = {name for name, value in self.solved.items() if value == index_name(name + NEW)}
        exprs = {name: _new(to_expr(value)) for name, value in self.solved.items() if name not in plain}
        return rewrite(expr, variables(exprs)) if exprs else expr


def parts_of_number(
    dimension: int, at: SizeExpr, ranges: Mapping[str, Bounds], subscripts: Sequence[SizeExpr]
) -> tuple[str, str, int] | None:
    """The indices `i` and `k` of `c*i + k` and the number `c`, where `k` has `c` values and both are in no other subscript."""
    weights = {name: linear for name in at.indices if name in ranges and (linear := at.linear_in(name)) is not None}
    steps = {name: weight.offset for name, (weight, _) in weights.items() if weight.is_constant}
    if len(at.indices) != 2 or len(steps) != 2:
        return None
    (inner, one), (name, step) = sorted(steps.items(), key=lambda each: each[1])
    lower, upper = ranges[inner]
    others = {each for place, other in enumerate(subscripts) if place != dimension for each in other.indices}
    plain = not any(isinstance(atom, Datum | Opaque) for atom in at.atoms())
    exact = one == 1 and step > 1 and lower.is_constant and upper - lower == step
    return (name, inner, step) if plain and exact and not others & {name, inner} else None


def without_idle(points: Sequence[Point], others: Sequence[Expr], value: Expr) -> tuple[list[Point], Expr]:
    """The points without indices that stand nowhere: a sum over them is a product."""
    used = _names((*others, value))
    for point in points:
        if point.name not in used:
            extent = point.upper - point.lower
            count = extent if nonnegative(extent) else maximum(extent, 0)
            value = times(value, cast(to_expr(count), value.dtype))
    used = _names((*others, value))  # nothing of the value is left where there are no points
    return [point for point in points if point.name in used], value


def _names(exprs: Iterable[Expr]) -> set[str]:
    return {name for expr in exprs for name in index_names(expr)}


def _new(expr: Expr) -> Expr:
    """The new indices under the names of the old ones."""

    def rule(node: Expr) -> Expr | None:
        return IndexVar(node.name.removesuffix(NEW)) if isinstance(node, IndexVar) else None

    return rewrite(expr, rule)
