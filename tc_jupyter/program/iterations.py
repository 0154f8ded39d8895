"""`V = f^n(U)`: a def applied n times, as a block of its statements in which a step takes the place of the call.

What leads from the first parameters to the results gets the step as its first dimension, of which two are kept in memory. What the
other parameters alone decide is computed once, before the loop. 0 steps give the arguments.

Worked example: of `jacobi(U) -> (V) { V(i) = (U(i-1) else 0)/2 }` the call `W = jacobi^n(X)` makes the statement
`V(step, i) = (step > 0 ? V(step - 1, i-1) : X(i-1)) / 2 where step in 0:n`, in order, and `W(i) = n > 0 ? V(n - 1, i) : X(i)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import Span

from .expr import Binary, DType, Expr, IndexVar, Read, Select, Size, int64, rewrite, walk
from .inline import Inlined, Passed, inline_call
from .program import Equality, Index, Program, Statement, Tensor
from .typing import cast, without_idle_casts

_BOOL = DType.BOOL


def no_iteration(callee: Program) -> str:
    """Why the results of a def cannot be its next first arguments; empty if types and ranks say nothing against it."""
    if len(callee.results) > len(callee.parameters):
        return f"it has {len(callee.results)} results, and fewer parameters"
    if any(each.block for each in callee.statements):
        return "it has a block, whose steps would be inside of these"
    for name, result in zip(callee.parameters, callee.results, strict=False):
        given, made = callee.tensor(name), callee.tensor(result)
        if (given.element, given.written_rank) != (made.element, made.written_rank):
            return f"`{name}` is `{_shown(given)}`, and `{result}`, which comes in its place, is `{_shown(made)}`"
        if made.view_of is not None:
            return f"`{result}` is what another call gives; copy it in a statement"
        sized = (
            end
            for each in callee.statements
            for index in each.indices
            for end in (*(index.where or ()), *(index.ends or ()))
        )
        if not given.rank and any(
            isinstance(node, Read) and node.tensor == name for end in sized for node in walk(end)
        ):
            return f"`{name}`, which changes, is the end of a range"
    return ""


def _shown(tensor: Tensor) -> str:
    return f"{tensor.element.value}({', '.join('?' * tensor.written_rank)})" if tensor.rank else tensor.element.value


def inline_iteration(callee: Program, passed: Sequence[Passed], count: Expr, prefix: str, span: Span) -> Inlined:
    """The parts of `callee`, applied so many times, as they stand in a caller; the results are new tensors.

    Args:
        passed, prefix, span: as those of `inline_call`.
        count: an integer expression of the caller.
    """
    names = callee.parameters[: len(callee.results)]
    given = [_marked(each, f"{prefix}.{name}") for name, each in zip(names, passed, strict=False)]
    copy = inline_call(callee, [*given, *passed[len(names) :]], prefix, span)
    states = {f"{prefix}.{name}": result for name, result in zip(names, copy.results, strict=True)}
    first: dict[str, Expr | None] = {f"{prefix}.{name}": each.scalar for name, each in zip(names, passed, strict=False)}
    moving = _moving(copy, set(states))
    used = {index.name for each in copy.statements for index in each.indices}
    step = next(name for name in ("step", *(f"step{k}" for k in range(2, len(used) + 3))) if name not in used)
    steps = _Steps(step, count, f"{prefix}#{step}", moving, states, first)
    loop = [each for each in copy.statements if each.target in moving]
    before = [each for each in copy.statements if each.target not in moving]
    last = [steps.last(marker, result, each) for (marker, result), each in zip(states.items(), passed, strict=False)]
    tensors = [
        steps.tensor(each) for each in copy.tensors if each.rank or each.view_of is None or each.name not in states
    ]
    return Inlined(
        (*tensors, *(tensor for tensor, _ in last)),
        (*before, *(steps.statement(each, loop) for each in loop), *(statement for _, statement in last)),
        (*(steps.equality(each) for each in copy.equalities), *steps.shapes(callee, names, passed)),
        tuple(tensor for tensor, _ in last),
        copy.contradictions,
    )


def _marked(passed: Passed, marker: str) -> Passed:
    """A state as it is passed, so that its reads can be told from those of other parameters."""
    if passed.scalar is not None:
        return replace(passed, scalar=Read(marker, (), passed.dtype))
    return replace(passed, computed=True)


def _moving(copy: Inlined, states: set[str]) -> set[str]:
    """The tensors of a copy that states lead to, and the results, which take their place; views of them among these."""
    found = {each.name for each in copy.results}
    owners = {tensor.name: tensor.view_of for tensor in copy.tensors}
    used = [(each.target, _used(each)) for each in copy.statements]
    while True:
        more = {target for target, names in used if names & (found | states)}
        more |= {name for name, owner in owners.items() if owner in found and name not in states}
        if more <= found:
            return found
        found |= more


def _used(statement: Statement) -> set[str]:
    """The tensors of which a statement reads elements or extents, in its ranges, too."""
    ends = (end for index in statement.indices for pair in (index.where, index.ends) for end in pair or ())
    parts = (statement.value, *statement.left, *statement.exists, *statement.filters, *ends)
    nodes = [node for part in parts for node in walk(part)]
    extents = {node.name.rpartition(".")[0] for node in nodes if isinstance(node, Size)}
    return extents | {node.tensor for node in nodes if isinstance(node, Read)}


@dataclass(frozen=True, slots=True)
class _Steps:
    """How the copy of a def becomes a loop over steps.

    Attributes:
        moving: the tensors that get the step as their first dimension.
        states: what the parameters that change are called, and the results that take their place.
        first: the values of those that are numbers.
    """

    step: str
    count: Expr
    block: str
    moving: set[str]
    states: Mapping[str, Tensor]
    first: Mapping[str, Expr | None]

    @property
    def index(self) -> IndexVar:
        return IndexVar(self.step)

    def expr(self, expr: Expr) -> Expr:
        return without_idle_casts(rewrite(expr, self.rule))

    def rule(self, node: Expr) -> Expr | None:
        match node:
            case Read() if node.tensor in self.states:
                return self.state(node)
            case Read() if node.tensor in self.moving:
                return self.at(node, self.index)
            case Size():
                return self.size(node)
            case _:
                return None

    def size(self, node: Size) -> Size:
        """The extent of a dimension of a tensor that has one dimension more now."""
        tensor, _, dimension = node.name.rpartition(".")
        if tensor not in self.moving:
            return node
        kind = "first" if dimension.startswith("first") else ""
        return replace(node, name=f"{tensor}.{kind}{int(dimension.removeprefix('first')) + 1}")

    def at(self, read: Read, step: Expr) -> Read:
        """An element at a step."""
        border = read.border
        if border is not None:
            outside, nonempty = (frozenset(k + 1 for k in each) for each in (border.dimensions, border.nonempty))
            border = replace(border, dimensions=outside, nonempty=nonempty)
        return replace(read, indices=(step, *read.indices), border=border)

    def state(self, read: Read) -> Expr:
        """An element of a parameter that changes: of what the step before has made, or of the argument."""
        result = self.states[read.tensor].name
        made = replace(read, tensor=result)
        if result in self.moving:
            made = self.at(made, Binary("-", self.index, int64(1), DType.INT64))
        number = self.first[read.tensor]
        start = read if number is None else cast(number, read.dtype)
        kind = read.dtype.compute
        later = Binary(">", self.index, int64(0), _BOOL)
        return Select(later, cast(made, kind), cast(start, kind), kind, read.span)

    def tensor(self, tensor: Tensor) -> Tensor:
        if tensor.name not in self.moving:
            return tensor
        box = None if tensor.box is None else ((int64(0), self.count), *tensor.box)
        return replace(tensor, rank=tensor.rank + 1, box=box, declared=None, starts=None)

    def pair(self, ends: tuple[Expr, Expr] | None) -> tuple[Expr, Expr] | None:
        return None if ends is None else (self.expr(ends[0]), self.expr(ends[1]))

    def statement(self, statement: Statement, loop: Sequence[Statement]) -> Statement:
        """A statement at every step."""
        place = loop.index(statement)
        early = {each.target for each in loop[:place]} - {statement.target}
        index = Index(self.step, "output", (int64(0), self.count), statement.span)
        indices = [replace(each, where=self.pair(each.where), ends=self.pair(each.ends)) for each in statement.indices]
        left = tuple(map(self.expr, statement.left))
        return replace(
            statement,
            indices=(index, *indices),
            value=self.expr(statement.value),
            exists=tuple(map(self.expr, statement.exists)),
            filters=tuple(map(self.expr, statement.filters)),
            left=(self.index, *left) if left else (),
            order=((self.step, 1), *statement.order),
            block=self.block,
            ahead=tuple(dict.fromkeys(each.target for each in loop[place:] if each.target not in early)),
        )

    def last(self, marker: str, result: Tensor, given: Passed) -> tuple[Tensor, Statement]:
        """What the caller receives of a state: the last step, or the argument where there is none."""
        name, span = f"{result.name}.last", given.span
        letters = [f"i{k}" for k in range(len(given.stored.dims))]
        indices = tuple(
            Index(letter, "output", (int64(0), extent), span)
            for letter, extent in zip(letters, given.stored.dims, strict=True)
        )
        at = tuple(IndexVar(letter) for letter in letters)
        kind = result.dtype.compute
        made = Read(result.name, at, result.dtype, span)
        if result.name in self.moving:
            made = self.at(made, Binary("-", self.count, int64(1), DType.INT64))
        number = self.first[marker]
        start = Read(marker, at, result.dtype, span) if number is None else number
        some = Binary(">", self.count, int64(0), _BOOL)
        value = Select(some, cast(made, kind), cast(start, kind), kind, span)
        tensor = Tensor(name, result.dtype, len(letters), "temporary", span=span)
        statement = Statement(name, name, indices, "=", False, False, value, text=f"{name} after all steps", span=span)
        return tensor, statement

    def equality(self, equality: Equality) -> Equality:
        return replace(equality, left=self.expr(equality.left), right=self.expr(equality.right))

    def shapes(self, callee: Program, names: Sequence[str], passed: Sequence[Passed]) -> Iterator[Equality]:
        """What comes in the place of an argument has its extents."""
        for name, result, given, made in zip(names, callee.results, passed, self.states.values(), strict=False):
            for k, extent in enumerate(given.stored.dims):
                own = Size(f"{made.name}.{k + (made.name in self.moving)}", given.span)
                reason = f"dimension {k} of `{result}`, which comes in the place of `{name}`"
                yield Equality(own, extent, "call", reason, given.span)


__all__ = ["inline_iteration", "no_iteration"]
