"""The def that computes one chunk of a result: the statements that it needs, on a part of every array, told by numbers.

Every array of the part is indexed as the whole one is, from a first index that the caller tells. Ranges, borders and values
that depend on an index are therefore those of the whole def, and the conditions of the part say that each array holds
everything that is read: a part with too small a halo is refused.

Worked example: of `Y(i) = X(i) + X(i + 1)` the part takes `X` from `x` on, with `n` elements, and computes `Y(i)` for
`y <= i < y + m` if `x <= y` and `y + m < x + n`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tc_jupyter.program import (
    Binary,
    Expr,
    Index,
    Program,
    Read,
    Size,
    Statement,
    Tensor,
)
from tc_jupyter.program.integers import maximum, minimum, plus
from tc_jupyter.ranges import constant, from_expr, to_expr
from tc_jupyter.ranges.display import DIGIT_MARK

from .flat import Bounds, Flat, renamed, rewritten

Ends = tuple[Expr, Expr]


Place = tuple[str, str | int]
"""A dimension of a tensor (its name and a number), or an index of a statement (its name and that of the index)."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Dimensions and indices that run over the same numbers in every chunk.

    Attributes:
        places: they all have the same range in the whole def.
        moves: the first number matters: a subscript, a value or a condition is made of it. Otherwise the axis is as good as one
            that begins where the whole one does.
    """

    name: str
    places: tuple[Place, ...]
    moves: bool = True

    @property
    def first(self) -> str:
        """The size that tells where it begins: 1 more than how far from the beginning of the whole one."""
        return f"{self.name}_from"

    @property
    def count(self) -> str:
        """The size that tells how many numbers there are."""
        return f"{self.name}_count"


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of a def a kernel computes, for all chunks alike.

    Attributes:
        statements: names, in order.
        sources: tensors that come in as arrays: parameters, and what other parts have made.
        results: tensors that come back.
        cuts: reduction indices of a statement that run over a part of their range; the parts are combined elsewhere.
        axes: what is a part of the whole; other dimensions are never cut.
        entire: the part is the def as it is, for whole arrays.
        turned: dimensions of sources that go on beyond their ends, as around a ring: what was read at `e % N` is read at `e`.
    """

    statements: tuple[str, ...]
    sources: tuple[str, ...]
    results: tuple[str, ...]
    cuts: tuple[tuple[str, str], ...] = ()
    axes: tuple[Axis, ...] = ()
    turned: tuple[tuple[str, int], ...] = ()
    entire: bool = False

    def axis(self, place: Place) -> Axis | None:
        """The axis of a dimension or of a reduction index; `None` where the whole range is meant."""
        return next((each for each in self.axes if place in each.places), None)


def named(place: Place) -> str:
    """A name for an axis that no text has, in one word."""
    return re.sub(r"\W", "_", f"{place[0]}_{place[1]}") + DIGIT_MARK


def turned_subscript(flat: Flat, read: Read, dimension: int) -> Expr | None:
    """What a subscript goes around the dimension by: `e` of `e % N`; `None` for others."""
    match read.indices[dimension]:
        case Binary(op="%", left=inner, right=extent):
            low, high = flat.boxes[read.tensor][dimension]
            return inner if low == constant(0) and from_expr(extent) == high else None
        case _:
            return None


def part_program(flat: Flat, part: Part) -> Program:
    """The def of a part, whose sizes are those of the whole one and the numbers that tell where each array begins and ends."""
    return _Making(flat, part).run()


class _Making:
    def __init__(self, flat: Flat, part: Part) -> None:
        self.flat, self.part = flat, part
        self.axes = {place: axis for axis in part.axes for place in axis.places}

    def run(self) -> Program:
        program, part = self.flat.program, self.part
        chosen = [each for each in program.statements if each.name in part.statements]
        scalars = [name for name in program.parameters if not program.tensor(name).written_rank]
        computed = list(dict.fromkeys(each.target for each in chosen))
        tensors = [self.source(program.tensor(name)) for name in part.sources]
        tensors += [program.tensor(name) for name in scalars]
        tensors += [self.made(program.tensor(name)) for name in computed]
        statements = tuple(map(self.statement, chosen))
        names = {name: name for name in part.sources}
        for name in part.sources:
            if (
                "." in name and not program.tensor(name).rank
            ):  # a number that was computed: a name of a size has no point
                names[name] = re.sub(r"\W", "_", name) + DIGIT_MARK
                statements = tuple(renamed(each, name, names[name], False) for each in statements)
                tensors = [replace(each, name=names[name]) if each.name == name else each for each in tensors]
        told = [name for axis in part.axes for name in ((axis.first, axis.count) if axis.moves else (axis.count,))]
        return replace(
            program,
            sizes=(*program.sizes, *told),
            parameters=(*names.values(), *scalars),
            results=part.results,
            tensors=tuple(tensors),
            statements=statements,
            calls=(),
        )

    def ends(self, place: Place, whole: Bounds) -> Ends:
        """Where a dimension or an index of the part begins and ends."""
        low, high = whole
        axis = self.axes.get(place)
        if axis is None:
            return to_expr(low), to_expr(high)
        before = high - low + 1 if place in self.part.turned else constant(1)
        begin = plus(to_expr(low - before), Size(axis.first)) if axis.moves else to_expr(low)
        return begin, plus(begin, Size(axis.count))

    def source(self, tensor: Tensor) -> Tensor:
        bounds = self.flat.boxes[tensor.name]
        box = tuple(self.ends((tensor.name, dimension), each) for dimension, each in enumerate(bounds))
        dims: list[Expr] = []
        for dimension, (low, high) in enumerate(bounds):
            axis = self.axes.get((tensor.name, dimension))
            dims.append(to_expr(high - low) if axis is None else Size(axis.count))
        return replace(tensor, kind="input", dims=tuple(dims), box=box, declared=None, starts=None)

    def made(self, tensor: Tensor) -> Tensor:
        kind = "output" if tensor.name in self.part.results else "temporary"
        box = tensor.box
        if box is not None:
            bounds = self.flat.boxes[tensor.name]
            box = tuple(self.ends((tensor.name, dimension), each) for dimension, each in enumerate(bounds))
        dtype = tensor.dtype
        if any(self.flat.program.statement(name).target == tensor.name for name, _ in self.part.cuts):
            dtype = dtype.compute  # what is combined further is not rounded yet
        return replace(tensor, kind=kind, box=box, dtype=dtype, declared=None, starts=None)

    def statement(self, statement: Statement) -> Statement:
        computed = {index.name for index, _ in statement.computed}
        places = {index.name: place for place, index in enumerate(statement.output_indices)}
        points = self.flat.points[statement.name]

        def index(each: Index) -> Index:
            if (statement.name, each.name) in self.part.cuts:
                return replace(each, where=self.ends((statement.name, each.name), points[each.name]))
            if each.kind != "output" or each.name in computed:
                return each
            return self.limited(statement, each, places[each.name])

        combined = any(name == statement.name for name, _ in self.part.cuts)
        return self.unrolled(
            replace(
                statement,
                indices=tuple(map(index, statement.indices)),
                # what a sum in parts adds to is what changes nothing, for each part
                initialize=statement.initialize or combined,
                accumulate=statement.accumulate and not combined,
            )
        )

    def unrolled(self, statement: Statement) -> Statement:
        """The statement whose reads in turned dimensions go on beyond the ends."""
        if not self.part.turned:
            return statement

        def rule(node: Expr) -> Expr | None:
            if not isinstance(node, Read) or all(name != node.tensor for name, _ in self.part.turned):
                return None
            pairs = ((turned_subscript(self.flat, node, place), place, at) for place, at in enumerate(node.indices))
            at = tuple(
                inner if inner is not None and (node.tensor, place) in self.part.turned else each
                for inner, place, each in pairs
            )
            return replace(node, indices=at)

        return rewritten(statement, rule)

    def limited(self, statement: Statement, index: Index, dimension: int) -> Index:
        """An output index over the elements of the part; a statement that writes a part of its target writes that part of them."""
        place = statement.target, dimension
        if place not in self.axes:
            return index
        own, whole = self.flat.points[statement.name][index.name], self.flat.boxes[statement.target][dimension]
        low, high = self.ends(place, whole)
        if own == whole:
            return replace(index, where=(low, high))
        first, last = maximum(low, to_expr(own[0])), minimum(high, to_expr(own[1]))
        return replace(index, where=(first, maximum(first, last)))
