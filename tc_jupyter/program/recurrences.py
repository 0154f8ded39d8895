"""The form of a value that is made of an earlier one: `own op x`, `factor*own + x` or `min(own + shift, x)`, however it is written.

Worked example: `X(i) - 0.5*own + Z(i)` has the factor `-0.5` and the other term `X(i) + Z(i)`; `max(X(i), max(own, 3))` is a
running maximum of `max(X(i), 3)`; `(C(i) ? 0 : own) + X(i)` is a sum that starts anew where `C(i)` holds; `min(own, X(i)) + C(i)`
is `min(own + C(i), X(i) + C(i))`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import frexp

from .expr import Binary, Const, DType, Expr, Select, Unary, walk


@dataclass(frozen=True, slots=True)
class Recurrence:
    """`own operator x`, where there are neither a factor nor a shift; else `factor*own + x`, or `min(own + shift, x)`.

    Attributes:
        starts_anew: the factor is 1, or 0 where the earlier value is not looked at at all, though it be NaN.
    """

    operator: str
    x: Expr
    factor: Expr | None = None
    starts_anew: bool = False
    shift: Expr | None = None


def recurrence_of(value: Expr, own: Expr) -> Recurrence | None:
    """The form of `value` in `own`; `None` where it has another one."""
    if isinstance(value, Binary) and value.op in ("*", "min", "max"):
        parts = _operands(value, value.op)
        others = [part for part in parts if not _has(part, own)]
        if len(others) == len(parts) - 1 and own in parts:
            return Recurrence(value.op, _joined(value, others))
    found = _Terms(own).of(value)
    if found is None:
        return _extreme(value, own)
    if found.factor is None:
        return None
    factor, rest = found.factor, found.rest or nothing(value.dtype)
    if factor == _number(1, value):
        return Recurrence("+", rest)
    is_switch = found.switched and _is_switch(factor)
    if found.switched and not is_switch and value.dtype.is_float:
        return None  # what is not looked at may be infinite
    return Recurrence("+", rest, factor, is_switch)


def _extreme(value: Expr, own: Expr) -> Recurrence | None:
    """`min(own + shift, x)`, or the same with `max`."""
    for op in ("min", "max"):
        found = _Extremes(own, op).of(value)
        if found is not None and found.shift is not None and found.rest is not None:
            return Recurrence(op, found.rest, shift=found.shift)
    return None


def _operands(value: Expr, op: str) -> list[Expr]:
    if isinstance(value, Binary) and value.op == op:
        return [*_operands(value.left, op), *_operands(value.right, op)]
    return [value]


def _joined(like: Binary, parts: list[Expr]) -> Expr:
    found = parts[0]
    for part in parts[1:]:
        found = replace(like, left=found, right=part)
    return found


def _has(value: Expr, own: Expr) -> bool:
    return any(node == own for node in walk(value))


def _number(number: int, like: Expr) -> Const:
    return Const(float(number) if like.dtype.is_float else number, like.dtype)


def nothing(dtype: DType) -> Expr:
    """What leaves a number as it is when it is added: of floats the negative zero, as `-0.0 + 0.0` is `0.0`."""
    return Unary("-", Const(0.0, dtype), dtype) if dtype.is_float else Const(0, dtype)


def _is_switch(factor: Expr) -> bool:
    if isinstance(factor, Select):
        return _is_switch(factor.then) and _is_switch(factor.otherwise)
    return isinstance(factor, Const) and factor.value in (0, 1)


@dataclass(frozen=True, slots=True)
class _Sum:
    """`factor*own + rest`; `None` for 0. `switched`: a choice leaves the earlier value out."""

    factor: Expr | None
    rest: Expr | None
    switched: bool = False

    def mapped(self, change: Callable[[Expr | None], Expr | None]) -> _Sum:
        """The sum with another factor and another rest."""
        return replace(self, factor=change(self.factor), rest=change(self.rest))


@dataclass(frozen=True, slots=True)
class _Terms:
    own: Expr

    def of(self, value: Expr) -> _Sum | None:
        """A value as a sum; `None` where the earlier value stands in another place."""
        if value == self.own:
            return _Sum(_number(1, value), None)
        if not _has(value, self.own):
            return _Sum(None, value)
        match value:
            case Unary(op="-"):
                found = self.of(value.operand)
                return None if found is None else found.mapped(_minus)
            case Binary(op="+" | "-"):
                left, right = self.of(value.left), self.of(value.right)
                if left is None or right is None:
                    return None
                switched = left.switched or right.switched
                factor = _combined(value, left.factor, right.factor)
                return _Sum(factor, _combined(value, left.rest, right.rest), switched)
            case Binary(op="*"):
                for side, other in ((value.left, value.right), (value.right, value.left)):
                    found = None if _has(other, self.own) else self.of(side)
                    if found is not None:
                        return found.mapped(partial(_scaled, by=other))
                return None
            case Binary(op="/", right=Const(value=float() as number)) if abs(frexp(number)[0]) == 0.5:
                found = self.of(value.left)
                return None if found is None else found.mapped(partial(_scaled, by=Const(1 / number, value.dtype)))
            case Select() if not _has(value.condition, self.own):
                then, otherwise = self.of(value.then), self.of(value.otherwise)
                if then is None or otherwise is None:
                    return None
                one = then.factor is None or otherwise.factor is None
                factor, rest = (
                    None if a is None and b is None else replace(value, then=a or zero, otherwise=b or zero)
                    for a, b, zero in (
                        (then.factor, otherwise.factor, _number(0, value)),
                        (then.rest, otherwise.rest, nothing(value.dtype)),
                    )
                )
                return _Sum(factor, rest, one or then.switched or otherwise.switched)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class _Extreme:
    """The smaller one, or larger one, of `own + shift` and `rest`; `None`: there is none. `moved`: `rest` is a sum, too."""

    shift: Expr | None
    rest: Expr | None
    moved: bool = False


@dataclass(frozen=True, slots=True)
class _Extremes:
    own: Expr
    op: str

    def of(self, value: Expr) -> _Extreme | None:
        """A value as an extreme; `None` where the earlier value stands in another place."""
        if value == self.own:
            return _Extreme(_number(0, value), None)
        if not _has(value, self.own):
            return _Extreme(None, value)
        match value:
            case Binary() if value.op == self.op:
                left, right = self.of(value.left), self.of(value.right)
                if left is None or right is None:
                    return None
                hides = left.moved or right.moved or (left.shift is not None and right.shift is not None)
                if hides and value.dtype.is_integer:
                    return None  # sums of integers may have come around, which is not seen behind others
                return _Extreme(_combined(value, left.shift, right.shift), _combined(value, left.rest, right.rest))
            case Binary(op="+" | "-") if not _has(value.right, self.own):
                return self.moved(value, value.left, value.right)
            case Binary(op="+") if not _has(value.left, self.own):
                return self.moved(value, value.right, value.left)
            case _:
                return None

    def moved(self, value: Binary, inside: Expr, by: Expr) -> _Extreme | None:
        found = self.of(inside)
        if found is None:
            return None
        if found.rest is not None and value.dtype.is_integer and not value.dtype.is_signed:
            return None  # it may come around, and what is small then looks as if it had not
        rest = None if found.rest is None else replace(value, left=found.rest, right=by)
        if found.shift == _number(0, value):
            return _Extreme(by if value.op == "+" else _minus(by), rest, rest is not None)
        if value.dtype.is_float and found.shift is not None:
            return _Extreme(replace(value, left=found.shift, right=by), rest)
        return None  # sums of integers may have come around in between


def _minus(value: Expr | None) -> Expr | None:
    if isinstance(value, Const):
        return replace(value, value=-value.value)
    return None if value is None else Unary("-", value, value.dtype)


def _combined(like: Binary, left: Expr | None, right: Expr | None) -> Expr | None:
    """`left operator right` of a sum, a difference or an extreme, where a side may be missing."""
    if left is None or right is None:
        return left or (_minus(right) if like.op == "-" else right)
    return replace(like, left=left, right=right)


def _scaled(value: Expr | None, by: Expr) -> Expr | None:
    if value is None or value == _number(1, by):
        return None if value is None else by
    return Binary("*", value, by, by.dtype)


__all__ = ["Recurrence", "nothing", "recurrence_of"]
