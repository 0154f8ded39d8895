"""Reducers of one's own: what `reduce` defines, and how a statement with one combines.

A reducer is a function of numbers: the components of the left operand, then those of the right one; its results are the components
of what both are together. A statement with one component is a `fold`. With several components the fold has a state: a tensor with
one more dimension, the first one, over the components, which are combined together (`Statement.part`). Plain statements read the
results out of it.

Worked example: with `reduce cmul(float a, float b, float c, float d) = (a*c - b*d, a*d + b*c) from (1, 0)`, the statement
`R(n), I(n) cmul=! (X(n, m), Y(n, m))` is read as

    I.cmul(part, n) fold=! part == 0 ? X(n, m) : Y(n, m)
    R(n) = I.cmul(0, n)
    I(n) = I.cmul(1, n)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from .expr import Binary, Cast, Const, DType, Expr, IndexVar, Read, Select, Unary, int64, rewrite, walk
from .program import FOLD_LEFT, FOLD_RIGHT, Program, Reducer

_COMMON = (DType.INT64, DType.UINT64, DType.FLOAT32, DType.FLOAT64)
"""Types that may hold components of several types."""


class Unfit(NamedTuple):
    """Why a `reduce` is none: what is wrong, and with which value of which part."""

    message: str
    part: Literal["value", "identity", "lifted"]
    number: int


def reducer_of(function: Program, identity: Program, lifted: Program | None) -> Reducer | Unfit:
    """What a `reduce` says, from the programs of its parts, which take the same numbers; or what is wrong with it."""
    types = tuple(function.tensor(name).dtype for name in function.results)
    count = len(types)
    sides = function.parameters[:count], function.parameters[count:]
    places = {
        name: (side, k)
        for side, names in zip((FOLD_LEFT, FOLD_RIGHT), sides, strict=True)
        for k, name in enumerate(names)
    }
    start = tuple(number(value) for value in values_of(identity))
    if None in start:
        return Unfit("the identity is a number, as in `from 0` or `from -inf`", "identity", start.index(None))
    unfit = _made_otherwise(function, "value") or (lifted and _made_otherwise(lifted, "lifted"))
    if unfit:
        return unfit

    def operand(e: Expr) -> Expr | None:
        if not isinstance(e, Read):
            return None
        side, k = places[e.tensor]
        return Read(side, (int64(k),), e.dtype)

    return Reducer(
        function.name,
        types,
        tuple(rewrite(value, operand) for value in values_of(function)),
        tuple(each for each in start if each is not None),
        () if lifted is None else lifted.parameters,
        () if lifted is None else values_of(lifted),
    )


def values_of(program: Program) -> tuple[Expr, ...]:
    """The values of the results of a function of numbers."""
    values = {statement.target: statement.value for statement in program.statements}
    return tuple(values[name] for name in program.results)


def _made_otherwise(program: Program, part: Literal["value", "lifted"]) -> Unfit | None:
    """The first value of a part that reads what is no parameter: an array of constants."""
    for k, value in enumerate(values_of(program)):
        if any(isinstance(node, Read) and node.tensor not in program.parameters for node in walk(value)):
            return Unfit("a reducer is made of its operands and of numbers: it reads no array", part, k)
    return None


def number(value: Expr) -> Const | None:
    """The number that a literal with an optional sign is."""
    match value:
        case Const():
            return value
        case Unary(op="-", operand=operand):
            found = number(operand)
            return None if found is None else Const(-found.value, found.dtype, value.span)
        case Cast(operand=operand, dtype=dtype):
            found = number(operand)
            if found is None or (not dtype.is_float and found.dtype.is_float):
                return None
            return Const(float(found.value) if dtype.is_float else found.value, dtype, value.span)
        case _:
            return None


def common_type(types: Sequence[DType]) -> DType | None:
    """The type of a state that holds components of these types without loss; `None` if there is none."""
    if len(set(types)) == 1:
        return types[0].compute
    return next((each for each in _COMMON if all(_holds(each, type_) for type_ in types)), None)


def _holds(state: DType, component: DType) -> bool:
    if component is DType.BOOL or state is component:
        return True
    if component.is_float:
        return state.is_float and state.bits > component.bits
    if state.is_float:
        return component.bits <= (24 if state is DType.FLOAT32 else 53)
    low, high = component.limits
    return state.limits[0] <= low and high <= state.limits[1]


def lifted(reducer: Reducer, values: Sequence[Expr]) -> tuple[Expr, ...]:
    """The components of a point, from the values of a statement."""
    if not reducer.lifted:
        return tuple(values)
    given = dict(zip(reducer.given, values, strict=True))
    return tuple(_replaced(each, lambda e: given.get(e.tensor)) for each in reducer.lifted)


def in_parts(parts: Sequence[Expr], dtype: DType, index: str) -> Expr:
    """Components in a state of type `dtype`: `index == 0 ? first : second`; the last one where there is no other."""
    *others, last = (part if part.dtype is dtype else Cast(part, dtype) for part in parts)
    for k, part in reversed(tuple(enumerate(others))):
        last = Select(Binary("==", IndexVar(index), int64(k), DType.BOOL), part, last, dtype)
    return last


def at_part(value: Expr, index: str, k: int) -> Expr:
    """What an expression in parts is for one component."""

    def rule(e: Expr) -> Expr | None:
        match e:
            case IndexVar() if e.name == index:
                return int64(k)
            case Binary(op="==", left=Const() as left, right=Const() as right):
                return Const(left.value == right.value, DType.BOOL)
            case Select(condition=Const() as condition):
                return e.then if condition.value else e.otherwise
            case _:
                return None

    return rewrite(value, rule)


def combined(reducer: Reducer, dtype: DType, index: str) -> Expr:
    """The function as a `Statement.combine` over a state of type `dtype`: without an index of parts for one component."""

    def operand(e: Read) -> Expr | None:
        if e.tensor not in _SIDES:
            return None
        read = Read(e.tensor, e.indices if index else (), dtype)
        return read if e.dtype.compute is dtype else Cast(read, e.dtype)

    parts = [_replaced(part, operand) for part in reducer.combine]
    return in_parts(parts, dtype, index) if index else parts[0]


def _replaced(value: Expr, rule: Callable[[Read], Expr | None]) -> Expr:
    """An expression with others in place of its reads; a 16-bit number is not rounded where one of 32 bits stands for it."""

    def either(e: Expr) -> Expr | None:
        if isinstance(e, Cast) and e.operand.dtype is e.dtype:
            return e.operand
        return rule(e) if isinstance(e, Read) else None

    return rewrite(value, either)


_SIDES = (FOLD_LEFT, FOLD_RIGHT)


def with_operands(combine: Expr, operand: Callable[[str, int], Expr]) -> Expr:
    """A combining expression with expressions in place of its operands, of a side and a component."""

    def rule(e: Expr) -> Expr | None:
        return operand(e.tensor, component_of(e)) if isinstance(e, Read) and e.tensor in _SIDES else None

    return rewrite(combine, rule)


def component_of(operand: Read) -> int:
    """Which component of an operand is read; 0 where there is one."""
    place = operand.indices[0] if operand.indices else int64(0)
    assert isinstance(place, Const)
    return int(place.value)


__all__ = [
    "Unfit",
    "at_part",
    "combined",
    "common_type",
    "component_of",
    "in_parts",
    "lifted",
    "number",
    "reducer_of",
    "values_of",
    "with_operands",
]
