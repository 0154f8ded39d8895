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

from .expr import Binary, DType, Expr, IndexVar, Read, Select, Size, int64, walk
from .inline import Inlined, Passed, held_numbers, inline_call
from .program import Equality, Index, Program, Statement, Tensor
from .steps import Steps, at_steps, moving_tensors
from .typing import cast

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


def index_state(callee: Program, parameters: Sequence[str], results: Sequence[str]) -> tuple[str, DType] | None:
    """The first result that is no state because it was made of indices, which are `int64`, and the type that it should have."""
    for name, result in zip(parameters, results, strict=False):
        given, made = callee.tensor(name), callee.tensor(result)
        if made.element is DType.INT64 and given.element.is_integer and given.element is not made.element:
            return (result, given.element) if given.written_rank == made.written_rank else None
    return None


def state_help(index: tuple[str, DType] | None) -> str:
    """How results become states."""
    if index is not None:
        return f"an index as a value is `int64`: make `{index[0]}` `{index[1].value}` where it is computed"
    return "the first parameters, as many as there are results, have the types and shapes of the results"


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
    moving = moving_tensors(copy, set(states), {each.name for each in copy.results})
    used = {index.name for each in copy.statements for index in each.indices}
    step = next(name for name in ("step", *(f"step{k}" for k in range(2, len(used) + 3))) if name not in used)
    index = Index(step, "output", (int64(0), count), span)
    steps = _Iterated((index,), moving, ((step, 1),), f"{prefix}#{step}", (), count, states, first)
    before = [each for each in copy.statements if each.target not in moving]
    last = [steps.last(marker, result, each) for (marker, result), each in zip(states.items(), passed, strict=False)]
    tensors = [
        steps.tensor(each) for each in copy.tensors if each.rank or each.view_of is None or each.name not in states
    ]
    return Inlined(
        (*tensors, *(tensor for tensor, _ in last)),
        (*before, *steps.statements(copy.statements), *(statement for _, statement in last)),
        (
            *held_numbers(callee, passed[: len(names)]),
            *(steps.equality(each) for each in copy.equalities),
            *steps.shapes(callee, names, passed),
        ),
        tuple(tensor for tensor, _ in last),
        copy.contradictions,
    )


def _marked(passed: Passed, marker: str) -> Passed:
    """A state as it is passed, so that its reads can be told from those of other parameters."""
    if passed.scalar is not None:
        return replace(passed, scalar=Read(marker, (), passed.dtype))
    return replace(passed, computed=True)


@dataclass(frozen=True, slots=True)
class _Iterated(Steps):
    """How the copy of a def becomes a loop over steps.

    Attributes:
        count: how many there are.
        states: what the parameters that change are called, and the results that take their place.
        first: the values of those that are numbers.
    """

    count: Expr
    states: Mapping[str, Tensor]
    first: Mapping[str, Expr | None]

    def rule(self, node: Expr) -> Expr | None:
        if isinstance(node, Read) and node.tensor in self.states:
            return self.state(node)
        return Steps.rule(self, node)

    def state(self, read: Read) -> Expr:
        """An element of a parameter that changes: of what the step before has made, or of the argument."""
        result = self.states[read.tensor].name
        made = replace(read, tensor=result)
        if result in self.moving:
            made = at_steps(made, (Binary("-", self.now[0], int64(1), DType.INT64),))
        number = self.first[read.tensor]
        start = read if number is None else cast(number, read.dtype)
        kind = read.dtype.compute
        later = Binary(">", self.now[0], int64(0), _BOOL)
        return Select(later, cast(made, kind), cast(start, kind), kind, read.span)

    def last(self, marker: str, result: Tensor, given: Passed) -> tuple[Tensor, Statement]:
        """What the caller receives of a state: the last step, or the argument where there is none."""
        name, span = f"{result.name}.last", given.span
        letters = [f"i{k}" for k in range(len(given.stored.dims))]
        if result.pairs:
            letters[-1] = "part"
        indices = tuple(
            Index(letter, "output", (int64(0), extent), span)
            for letter, extent in zip(letters, given.stored.dims, strict=True)
        )
        at = tuple(IndexVar(letter) for letter in letters)
        kind = result.dtype.compute
        made = Read(result.name, at, result.dtype, span)
        if result.name in self.moving:
            made = at_steps(made, (Binary("-", self.count, int64(1), DType.INT64),))
        number = self.first[marker]
        start = Read(marker, at, result.dtype, span) if number is None else number
        some = Binary(">", self.count, int64(0), _BOOL)
        value = Select(some, cast(made, kind), cast(start, kind), kind, span)
        tensor = Tensor(name, result.dtype, len(letters), "temporary", span=span, pairs=result.pairs)
        statement = Statement(name, name, indices, "=", False, False, value, text=f"{name} after all steps", span=span)
        return tensor, statement

    def shapes(self, callee: Program, names: Sequence[str], passed: Sequence[Passed]) -> Iterator[Equality]:
        """What comes in the place of an argument has its extents."""
        for name, result, given, made in zip(names, callee.results, passed, self.states.values(), strict=False):
            for k, extent in enumerate(given.stored.dims):
                own = Size(f"{made.name}.{k + (made.name in self.moving)}", given.span)
                reason = f"dimension {k} of `{result}`, which comes in the place of `{name}`"
                yield Equality(own, extent, "call", reason, given.span)


__all__ = ["index_state", "inline_iteration", "no_iteration", "state_help"]
