"""A def as a list of steps in which every name means one value: no views, no names of extents, one version per statement.

Worked example: of `S(i) = X(i)  S(i) += X(i) * S(i)` the second step is on `S@2` and reads `X` and `S@1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from tc_jupyter.diagnostics import NO_SPAN, CompileError, Diagnostic, Span, codes, render
from tc_jupyter.program import DType, Expr, IndexVar, Program, Read, rewrite, turns, variables, walk
from tc_jupyter.ranges import SizeExpr, always_nonnegative, from_expr, to_expr
from tc_jupyter.ranges.convert import Scope

from .arithmetic import compared

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

    @property
    def some(self) -> Expr | None:
        """That the range is not empty; `None` where that is certain, for sizes of 0, too."""
        if always_nonnegative(self.upper - self.lower - 1):
            return None
        return compared(">", to_expr(self.upper), to_expr(self.lower))


@dataclass(frozen=True, slots=True)
class Step:
    """One statement: `target(left) operator value`, at all points.

    Attributes:
        fresh: the operator begins with its identity; else it combines onto the version before.
        value: in the type in which the target is computed.
        conditions: points where one of them does not hold are left out; each is guarded by those before it.
        order: indices along which the points are taken one after the other, with 1 or -1 for the direction; what the step reads of
            its own target elsewhere has been made before.
        block: as that of a `Statement`: the steps of a block are done in turns for each value of the first indices of their order.
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
    block: str = ""

    @property
    def turns(self) -> tuple[tuple[str, int], ...]:
        """The part of the order that all steps of the block have."""
        return turns(self.block, self.order)

    @property
    def places(self) -> tuple[int, ...]:
        """The dimensions of the target along which a block goes."""
        names = [at.name if isinstance(at, IndexVar) else "" for at in self.left]
        return tuple(names.index(name) for name, _ in self.turns)

    def in_turns_alone(self) -> Step:
        """The same as the only one of a block, if it has an order."""
        names = ",".join(name for name, _ in self.order)
        return replace(self, block=f"{names}#{self.target}") if self.order else self

    def renamed(self, names: Mapping[str, str]) -> Step:
        """The same with other names for indices."""
        rule = variables({old: IndexVar(new) for old, new in names.items()})
        left, conditions = (tuple(rewrite(each, rule) for each in part) for part in (self.left, self.conditions))
        points = tuple(replace(point, name=names.get(point.name, point.name)) for point in self.points)
        order = tuple((names.get(name, name), way) for name, way in self.order)
        value = rewrite(self.value, rule)
        return replace(self, points=points, left=left, value=value, conditions=conditions, order=order)

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


def circles(steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    """The steps in groups: those of a block together, every other one alone."""
    return [tuple(group) for _, group in groupby(steps, lambda step: step.block or step.target)]
