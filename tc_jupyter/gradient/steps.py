"""A def as a list of steps in which every name means one value: no views, no names of extents, one version per statement.

Worked example: of `S(i) = X(i)  S(i) += X(i) * S(i)` the second step is on `S@2` and reads `X` and `S@1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from tc_jupyter.diagnostics import NO_SPAN, CompileError, Diagnostic, Span, codes, render
from tc_jupyter.program import Binary, DType, Expr, IndexVar, Program, Read, Size, Statement, int64, rewrite, walk
from tc_jupyter.ranges import Ranges, SizeExpr, from_expr, reads_what_it_made, to_expr
from tc_jupyter.ranges.convert import Scope

Bounds = tuple[SizeExpr, SizeExpr]


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor: its element type, and the box of its elements.

    Attributes:
        pairs: complex numbers of a signature; their parts are two elements along the last dimension.
    """

    name: str
    dtype: DType
    box: tuple[Bounds, ...]
    pairs: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """An index of a step, `lower <= name < upper`."""

    name: str
    lower: SizeExpr
    upper: SizeExpr

    @property
    def bounds(self) -> Bounds:
        """Both ends."""
        return self.lower, self.upper


@dataclass(frozen=True, slots=True)
class Step:
    """One statement: `target(left) operator value`, at all points.

    Attributes:
        fresh: the operator begins with its identity; else it combines onto the version before.
        value: in the type in which the target is computed.
        conditions: points where one of them does not hold are left out; each is guarded by those before it.
        order: indices along which the points are taken one after the other, with 1 or -1 for the direction; what the step reads of
            its own target elsewhere has been made before.
    """

    target: str
    operator: str
    fresh: bool
    points: tuple[Point, ...]
    left: tuple[Expr, ...]
    value: Expr
    unique: bool = False
    span: Span = field(default=NO_SPAN, compare=False)
    conditions: tuple[Expr, ...] = ()
    order: tuple[tuple[str, int], ...] = ()

    @property
    def reads_itself(self) -> bool:
        """Whether it reads elements that it has made."""
        return any(read.tensor == self.target for read in self.reads())

    @property
    def indices(self) -> tuple[str, ...] | None:
        """The names on the left side, where they are different indices; else `None`."""
        names = tuple(at.name for at in self.left if isinstance(at, IndexVar))
        return names if len(set(names)) == len(self.left) else None

    def range_of(self, name: str) -> Bounds:
        """The range of an index."""
        return next(point.bounds for point in self.points if point.name == name)

    def is_whole(self, array: Array) -> bool:
        """Whether every element of the target is written."""
        names = self.indices
        if self.operator == "=" and self.conditions:
            return False
        return names is not None and tuple(map(self.range_of, names)) == array.box

    def reads(self) -> Iterator[Read]:
        """All reads, those of subscripts and conditions included."""
        return (
            node for expr in (*self.left, self.value, *self.conditions) for node in walk(expr) if isinstance(node, Read)
        )


@dataclass(frozen=True, slots=True)
class Steps:
    """A def as steps.

    Attributes:
        arrays: by root name; the name of a version is that of its root and `@` with a number.
        results: root and what has to be added to an index of the result to find the element of the root.
        last: the number of versions of each computed tensor.
    """

    program: Program
    arrays: Mapping[str, Array]
    steps: tuple[Step, ...]
    results: Mapping[str, tuple[str, tuple[SizeExpr, ...]]]
    last: Mapping[str, int]
    scope: Scope

    def size(self, expr: Expr) -> SizeExpr:
        """An integer expression as a sum of sizes and indices."""
        return from_expr(expr, self.scope)


def root(version: str) -> str:
    """The tensor of a version: `S` of `S@2`."""
    return version.partition("@")[0]


def version(name: str, number: int) -> str:
    """The content of a tensor after so many statements on it."""
    return f"{name}@{number}"


def refuse(program: Program, reason: str, span: Span = NO_SPAN, help: str = "") -> CompileError:
    """The error TC250."""
    message = f"`{program.name}` has no gradient: {reason}"
    item = Diagnostic(codes.NO_GRADIENT, span if span != NO_SPAN else program.span, message, help=help)
    return CompileError((item,), program.source, render((item,), program.source))


def steps_of(program: Program, ranges: Ranges) -> Steps:
    """The steps of a def without errors."""
    return _Unfolding(program, ranges).run()


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
}
_KNOWN = _OF_STATEMENTS | _ELSEWHERE
"""What statements and their indices have that the pass takes into account, or need not."""


class _Unfolding:
    def __init__(self, program: Program, ranges: Ranges) -> None:
        self.program, self.ranges = program, ranges
        self.tensors = {tensor.name: tensor for tensor in program.tensors}
        self.count: dict[str, int] = {}
        self.ordered: Statement | None = None  # the statement, if it reads what it made

    def run(self) -> Steps:
        kinds = {"BOOL", *(each.name for each in DType if each.is_float or each.is_integer)}
        other = next((each for each in self.program.tensors if each.dtype.name not in kinds), None)
        if other is not None:  # never a wrong derivative
            raise refuse(self.program, f"derivatives do not know `{other.dtype.value}` yet", other.span)
        steps = tuple(map(self.step, self.program.statements))
        results = {name: self.place(name) for name in self.program.results}
        arrays = {
            name: Array(name, tensor.dtype, self.ranges.boxes[name].bounds, tensor.pairs)
            for name, tensor in self.tensors.items()
            if tensor.view_of is None and name in self.ranges.boxes
        }
        return Steps(self.program, arrays, steps, results, dict(self.count), self.ranges.scope)

    def place(self, name: str) -> tuple[str, tuple[SizeExpr, ...]]:
        """The root of a tensor, and the distance of its indices."""
        shift = [from_expr(int64(0))] * self.tensors[name].rank
        while (seen := self.tensors[name].view_of) is not None:
            own, other = self.ranges.boxes[name].origin, self.ranges.boxes[seen].origin
            shift = [far + there - here for far, here, there in zip(shift, own, other, strict=True)]
            name = seen
        return name, tuple(shift)

    def step(self, statement: Statement) -> Step:
        if statement.operator == "fold":
            raise refuse(self.program, "it folds with a function of its own", statement.span)
        if statement.block:
            raise refuse(self.program, "its statements make each other step by step", statement.span)
        for part in (statement, *statement.indices):
            unknown = [
                each for each in fields(part) if each.name not in _KNOWN and getattr(part, each.name) != each.default
            ]
            if unknown:  # never a wrong derivative
                raise refuse(self.program, f"derivatives do not know `{unknown[0].name}` yet", statement.span)
        self.ordered = statement if statement.order else None
        value = rewrite(statement.value, self.rule)
        left = tuple(rewrite(at, self.rule) for at in statement.left)
        conditions = tuple(rewrite(each, self.rule) for each in statement.conditions)
        if not left:
            left = tuple(IndexVar(index.name, index.span) for index in statement.output_indices)
        name, shift = self.place(statement.target)
        left = tuple(_moved(at, far) for at, far in zip(left, shift, strict=True))
        number = self.count[name] = self.count.get(name, 0) + 1
        fresh = statement.operator != "=" and (statement.initialize or number == 1)
        points = tuple(
            self.point(found.index, found.lower, found.upper) for found in self.ranges.points(statement.name)
        )
        target = version(name, number)
        place = statement.unique, statement.span
        return Step(target, statement.operator, fresh, points, left, value, *place, conditions, statement.order)

    def is_made(self, statement: Statement, read: Read, indices: Sequence[Expr]) -> bool:
        """Whether a statement with an order has made what it reads of its target; else an earlier one has."""
        name, shift = self.place(statement.target)
        order, scope = dict(statement.order), self.ranges.scope
        apart = {
            index.name: from_expr(at, scope) - from_expr(_moved(IndexVar(index.name), far), scope)
            for index, at, far in zip(statement.output_indices, indices, shift, strict=True)
        }
        first = next((index for index in order if apart[index] != 0), None)
        if first is None:
            return False
        if apart[first].is_constant:
            return apart[first].offset * order[first] < 0
        if name in self.count and not reads_what_it_made(self.ranges, statement):
            raise refuse(self.program, "it reads what it has made, or what was there before, by turns", read.span)
        return True

    def point(self, name: str, lower: SizeExpr | None, upper: SizeExpr | None) -> Point:
        if lower is None or upper is None:
            raise refuse(self.program, f"the range of `{name}` is not known")
        return Point(name, lower, upper)

    def rule(self, node: Expr) -> Expr | None:
        match node:
            case Size() if node.name in self.ranges.sizes:
                found = to_expr(self.ranges.sizes[node.name])
                return None if found == node else found
            case Read() if node.tensor in self.tensors and self.tensors[node.tensor].kind != "input":
                name, shift = self.place(node.tensor)
                indices = tuple(_moved(at, far) for at, far in zip(node.indices, shift, strict=True))
                number = self.count.get(name, 0)
                ordered = self.ordered
                if ordered is not None and self.place(ordered.target)[0] == name:
                    number += self.is_made(ordered, node, indices)
                called = version(name, number) if self.tensors[name].kind != "input" else name
                return replace(node, tensor=called, indices=indices)
            case _:
                return None


def _moved(at: Expr, far: SizeExpr) -> Expr:
    return at if far == 0 else Binary("+", at, to_expr(far), DType.INT64)
