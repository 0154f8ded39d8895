"""What a function with loops says; its expressions are those of `%%tc`.

Worked example: `for (int i = 0; i < n; i++) y[i] = x[i];` is `Loop("i", 0, n, 1, (Assign("y", (i,), "=", x(i)),))`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from tc_jupyter.syntax.tree import Expression


@dataclass(frozen=True, slots=True)
class Assign:
    """`x[i] = e` and `x += e`.

    Attributes:
        subscripts: none for a number.
        operator: `=`, or what combines the value with the one that is there: `+`, `*`, `max`, `min`, `argmax`, `argmin`.
        type: that of its declaration, if it is one.
        place: the target of the position of the largest or smallest value, and the index that this is.
    """

    target: str
    subscripts: tuple[Expression, ...]
    operator: str
    value: Expression
    type: str | None = None
    place: tuple[str, Expression] | None = None


@dataclass(frozen=True, slots=True)
class Declare:
    """An array of the function's own, as `float t[N];` and `t = np.zeros(n)`, or a number that has no value yet.

    Attributes:
        fill: what its elements are, if they have a value: a literal, or those of another array.
        like: an array that has the same extents.
    """

    name: str
    extents: tuple[Expression, ...] = ()
    fill: Expression | None = None
    type: str | None = None
    like: str = ""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that counts by `step` from `lower` on, below `upper`; downwards from `upper - 1` where `step` is negative."""

    index: str
    lower: Expression
    upper: Expression
    step: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """`if (condition) ... else ...`."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Leave:
    """`continue`, `break`, or `return` with its values."""

    word: str
    values: tuple[Expression, ...] = ()


Statement: TypeAlias = Assign | Declare | Loop | Choice | Leave


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter.

    Attributes:
        type: the scalar type, if one is given.
        is_array: whether the declaration says that it is one.
        extents: those of `float A[M][N]`; `None` where one is left open.
    """

    name: str
    type: str | None = None
    is_array: bool = False
    extents: tuple[Expression | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function, or the body of a def.

    Attributes:
        is_kernel: each thread runs it once.
        results: those that a def names.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    is_kernel: bool = False
    results: tuple[str, ...] = ()


def mapped_statement(statement: Statement, change: Callable[[Expression], Expression]) -> Statement:
    """A statement with what `change` makes of its expressions."""
    match statement:
        case Assign():
            subscripts = tuple(map(change, statement.subscripts))
            return replace(statement, subscripts=subscripts, value=change(statement.value))
        case Declare():
            return replace(statement, extents=tuple(map(change, statement.extents)))
        case Loop():
            body = tuple(mapped_statement(each, change) for each in statement.body)
            return replace(statement, lower=change(statement.lower), upper=change(statement.upper), body=body)
        case Choice():
            then, otherwise = (
                tuple(mapped_statement(each, change) for each in part) for part in (statement.then, statement.otherwise)
            )
            return replace(statement, condition=change(statement.condition), then=then, otherwise=otherwise)
        case Leave():
            return replace(statement, values=tuple(map(change, statement.values)))
    assert_never(statement)
