"""Program and ranges -> its steps.

Worked example: of `S(i) = X(i)  S(i) += X(i) * S(i)` the second step is on `S@2` and reads `X` and `S@1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import count, groupby

from tc_jupyter.program import (
    Binary,
    Const,
    DType,
    Expr,
    IndexVar,
    Program,
    Read,
    Select,
    Size,
    Statement,
    int64,
    rewrite,
)
from tc_jupyter.program.integers import all_of
from tc_jupyter.ranges import IndexRange, Ranges, SizeExpr, constant, from_expr, maximum, reads_what_it_made, to_expr

from .arithmetic import cast, either, shifted
from .folds import Unfolded, unfolded
from .narrowing import Boxes, narrowed
from .steps import Array, Point, Step, Steps, refuse, root, version


def steps_of(program: Program, ranges: Ranges, needed: Boxes | None = None) -> Steps:
    """The steps of a def without errors.

    Args:
        needed: the elements of some temporaries that results need.

    Raises:
        CompileError: TC250, a type, a range or an order of which derivatives are not known.
    """
    return narrowed(_Unfolding(program, ranges).run(), needed or {})


_OF_STATEMENTS = {"target", "operator", "initialize", "accumulate", "value", "combine", "left", "unique", "indices"}
_ELSEWHERE = {
    "name",
    "kind",
    "where",
    "exists",
    "text",
    "span",
    "left_span",
    "needs_points",
    "ends",
    "filters",
    "order",
    "block",
    "ahead",
    "identity",
    "part",
}
_KNOWN = _OF_STATEMENTS | _ELSEWHERE
"""What statements and their indices have that the pass takes into account, or need not."""


class _Unfolding:
    def __init__(self, program: Program, ranges: Ranges) -> None:
        self.program, self.ranges = program, ranges
        self.tensors = {tensor.name: tensor for tensor in program.tensors}
        self.taken = {*self.tensors, *program.sizes}  # names that are no indices
        self.count: dict[str, int] = {}
        self.made: dict[str, Array] = {}  # what a fold is in parts
        self.written = {statement.target for statement in program.statements}
        self.folds: dict[str, Unfolded] = {}  # by the tensor of the components
        self.ordered: tuple[
            Statement, ...
        ] = ()  # a statement that reads what it made, and those of its block behind it

    def run(self) -> Steps:
        kinds = {"BOOL", *(each.name for each in DType if each.is_float or each.is_integer)}
        other = next((each for each in self.program.tensors if each.dtype.name not in kinds), None)
        if other is not None:  # never a wrong derivative
            raise refuse(self.program, f"derivatives do not know `{other.dtype.value}` yet", other.span)
        steps: list[Step] = []
        for _, group in groupby(self.program.statements, lambda each: each.block or each.name):
            statements = tuple(group)
            steps += self.begun(statements)
            steps += [each for statement in statements for each in self.steps(statement)]
        results = {name: self.place(name) for name in self.program.results}
        arrays = {
            name: Array(name, tensor.dtype, self.ranges.boxes[name].bounds, tensor.pairs)
            for name, tensor in self.tensors.items()
            if self.place(name)[0] == name and name in self.ranges.boxes
        }
        return Steps(self.program, arrays | self.made, tuple(steps), results, dict(self.count), self.ranges.scope)

    def place(self, name: str) -> tuple[str, tuple[SizeExpr, ...]]:
        """The root of a tensor, and the distance of its indices. A view that is written is a root if its indices are others."""
        source, shift = self.seen(name)
        if name in self.written and any(far != 0 for far in shift):
            return name, tuple(constant(0) for _ in shift)
        return source, shift

    def seen(self, name: str) -> tuple[str, tuple[SizeExpr, ...]]:
        """The root of what a view shows, and the distance of its indices; of any other tensor itself."""
        view = self.tensors[name].view_of
        if view is None:
            return name, (constant(0),) * self.tensors[name].rank
        source, shift = self.place(view)
        own, other = self.ranges.boxes[name].origin, self.ranges.boxes[view].origin
        return source, tuple(far + there - here for far, here, there in zip(shift, own, other, strict=True))

    def begun(self, statements: Sequence[Statement]) -> list[Step]:
        """Copies of what the views show that are roots, before the first statements with them."""
        names = {self.place(name)[0] for each in statements for name in (each.target, *each.tensors_read)}
        found = list[Step]()
        for name in sorted(names - self.count.keys()):
            source, shift = self.seen(name)
            if source == name:
                continue
            self.count[name] = 1
            box, dtype = self.ranges.boxes[name].bounds, self.tensors[name].dtype
            free = (index for number in count(1) if (index := f"i{number}") not in self.taken)
            points = tuple(Point(next(free), *bounds) for bounds in box)
            left = tuple(IndexVar(point.name) for point in points)
            seen = source if self.tensors[source].kind == "input" else version(source, self.count[source])
            read = Read(seen, shifted(left, shift), dtype)
            found.append(Step(version(name, 1), "=", False, points, left, cast(read, dtype.compute)))
        return found

    def steps(self, statement: Statement) -> Sequence[Step]:
        """What a statement is: one step, or several for a fold."""
        step = self.step(statement)
        if statement.operator != "fold":
            return (step,)
        name = root(step.target)
        found = unfolded(statement, step, self.ranges.boxes[name].bounds, self.count[name] - 1, self.taken)
        for array in found.arrays:
            self.count[array.name], self.made[array.name] = 1, array
        if statement.part:
            self.folds[name] = found
        return found.steps

    def step(self, statement: Statement) -> Step:
        for part in (statement, *statement.indices):
            unknown = [
                each for each in fields(part) if each.name not in _KNOWN and getattr(part, each.name) != each.default
            ]
            if unknown:  # never a wrong derivative
                raise refuse(self.program, f"derivatives do not know `{unknown[0].name}` yet", statement.span)
        self.ordered = self.waiting(statement)
        value = self.own(statement.value)
        left = tuple(map(self.own, statement.left))
        conditions = tuple(map(self.own, statement.conditions))
        if not left:
            left = tuple(IndexVar(index.name, index.span) for index in statement.output_indices)
        name, _ = self.place(statement.target)
        number = self.count[name] = self.count.get(name, 0) + 1
        fresh = statement.operator != "=" and (statement.initialize or number == 1)
        points = tuple(map(self.point, self.ranges.points(statement.name)))
        target = version(name, number)
        place = statement.unique, statement.span
        order = conditions, statement.order, statement.block
        return Step(target, statement.operator, fresh, points, left, value, *place, *order)

    def waiting(self, statement: Statement) -> tuple[Statement, ...]:
        """A statement with an order, and those of its block that come behind it in each turn."""
        if not statement.order:
            return ()
        others = self.program.statements[self.program.statements.index(statement) + 1 :]
        return (statement, *(each for each in others if statement.block and each.block == statement.block))

    def made_before(self, name: str, indices: Sequence[Expr]) -> tuple[int, Expr | None]:
        """How many of the statements that still have to write in this turn have written what is read, in turns before.

        Where that differs from point to point, they have if a condition holds.
        """
        writers = [each for each in self.ordered if self.place(each.target)[0] == name]
        if not writers:
            return 0, None
        statement, writer = self.ordered[0], writers[0]
        order, scope = writer.order if writer is statement else writer.steps, self.ranges.scope
        apart = {
            index.name: from_expr(at, scope) - from_expr(IndexVar(index.name), scope)
            for index, at in zip(writer.output_indices, indices, strict=True)
        }
        first = next(((index, way) for index, way in order if apart[index] != 0), None)
        if first is None:
            return 0, None
        index, way = first
        inside = writer is statement and first not in writer.steps and writer.block != ""
        if apart[index].is_constant:
            back = apart[index].offset * way < 0
            return (back if inside else back * len(writers)), None
        alone = writer is statement and len(writers) == 1 and reads_what_it_made(self.ranges, statement)
        if name not in self.count or alone:
            return len(writers), None
        return len(writers), earlier([(apart[index], way) for index, way in order])

    def point(self, found: IndexRange) -> Point:
        lower, upper = found.lower, found.upper
        if lower is None or upper is None:
            raise refuse(self.program, f"the range of `{found.index}` is not known")
        moves = found.ends is not None and found.source == "where"  # its ends may pass each other: it is empty then
        return Point(found.index, lower, maximum(lower, upper) if moves else upper)

    def own(self, expr: Expr) -> Expr:
        """An expression of the def in the names of the steps."""
        return rewrite(rewrite(expr, self.sum_of_sizes), self.rule)

    def sum_of_sizes(self, node: Expr) -> Expr | None:
        """The end of a box, in few words: of `min(s, M) + (M - min(s, M))` nobody would see that it does not wrap."""
        if not isinstance(node, Binary) or node.op not in ("+", "-"):
            return None
        sides = (node.left, node.right)
        if not all(isinstance(each, Size | Const) for each in sides) or node.dtype is not DType.INT64:
            return None
        known = {each.name for each in sides if isinstance(each, Size)} & self.ranges.sizes.keys()
        return to_expr(from_expr(node).substitute(self.ranges.sizes)) if known else None

    def rule(self, node: Expr) -> Expr | None:
        match node:
            case Size() if node.name in self.ranges.sizes:
                found = to_expr(self.ranges.sizes[node.name])
                return None if found == node else found
            case Read() if node.tensor in self.tensors and self.tensors[node.tensor].kind != "input":
                name, shift = self.place(node.tensor)
                if name in self.folds:
                    return self.folds[name].total(node)
                indices = shifted(node.indices, shift)
                if self.tensors[name].kind == "input":
                    return replace(node, tensor=name, indices=indices)
                number = self.count.get(name, 0)
                later, condition = self.made_before(name, indices)
                made = replace(node, tensor=version(name, number + later), indices=indices)
                if condition is None:
                    return made
                old = replace(node, tensor=version(name, number), indices=indices)
                return Select(condition, made, old, node.dtype, node.span)
            case _:
                return None


def earlier(apart: Sequence[tuple[SizeExpr, int]]) -> Expr:
    """That one point comes before another one, by the distances of their indices and the directions of these."""
    zero, found = int64(0), list[Expr]()
    for place, (far, way) in enumerate(apart):
        same = [Binary("==", to_expr(each), zero, DType.BOOL) for each, _ in apart[:place]]
        found.append(all_of([*same, Binary("<" if way > 0 else ">", to_expr(far), zero, DType.BOOL)]))
    return either(found)
