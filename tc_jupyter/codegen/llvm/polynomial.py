"""Index expressions as sums of products, so that an address is `pointer + what the inner loop changes`.

Worked example: `(io*12 + 3)*K + k` is `{(io, K): 12, (K,): 3, (k,): 1}`. What is not a sum, difference or product of
integers, nor a number, stays one factor (`i // 2`). Arithmetic is exact modulo 2^64, as the machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from tc_jupyter.program import Binary, Cast, Const, DType, Expr, IndexVar, Size, Unary, children, int64
from tc_jupyter.schedule import tuning

Product: TypeAlias = tuple[Expr, ...]
Term: TypeAlias = tuple[Product, int]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of terms `coefficient * product`; the empty product is the constant."""

    terms: tuple[Term, ...]

    @property
    def constant(self) -> int:
        """The constant term."""
        return dict(self.terms).get((), 0)


def constant_value(expr: Expr) -> int | None:
    """The number that an `int64` expression always has, if that can be seen."""
    match expr:
        case Const():
            return int(expr.value)
        case Unary(op="-"):
            value = constant_value(expr.operand)
            return None if value is None else -value
        case Binary():
            left, right = constant_value(expr.left), constant_value(expr.right)
            if left is None or right is None:
                return None
            operations: dict[str, Callable[[int, int], int]] = {
                "+": lambda a, b: a + b,
                "-": lambda a, b: a - b,
                "*": lambda a, b: a * b,
                "//": lambda a, b: a // b if b else 0,
                "/": lambda a, b: a // b if b else 0,
                "%": lambda a, b: a % b if b else 0,
                "min": min,
                "max": max,
            }
            return operations[expr.op](left, right) if expr.op in operations else None
        case _:
            return None


@lru_cache(maxsize=1 << 13)
def polynomial(expr: Expr) -> Polynomial:
    """The sum of products of an `int64` expression."""
    match expr:
        case Const():
            return Polynomial((((), int(expr.value)),) if expr.value else ())
        case Cast(operand=operand, dtype=DType.INT64) if operand.dtype is DType.INT64:
            return polynomial(operand)
        case Unary(op="-") if expr.dtype is DType.INT64:
            return scaled(polynomial(expr.operand), -1)
        case Binary(op="+") if expr.dtype is DType.INT64:
            return add(polynomial(expr.left), polynomial(expr.right))
        case Binary(op="-") if expr.dtype is DType.INT64:
            return add(polynomial(expr.left), scaled(polynomial(expr.right), -1))
        case Binary(op="*") if expr.dtype is DType.INT64:
            left, right = polynomial(expr.left), polynomial(expr.right)
            if len(left.terms) * len(right.terms) <= tuning.TERMS:
                return multiply(left, right)
        case Binary(op="/" | "//" | "%" | "min" | "max") if expr.dtype is DType.INT64:
            value = constant_value(expr)  # as of `(i + 1) % 3` in an unrolled loop
            if value is not None:
                return polynomial(int64(value))
        case _:
            pass
    return Polynomial((((expr,), 1),))


def add(left: Polynomial, right: Polynomial) -> Polynomial:
    """The sum."""
    total = dict(left.terms)
    for key, value in right.terms:
        total[key] = total.get(key, 0) + value
    return Polynomial(tuple((key, value) for key, value in total.items() if value))


def scaled(poly: Polynomial, by: int) -> Polynomial:
    """A multiple."""
    return Polynomial(tuple((key, value * by) for key, value in poly.terms) if by else ())


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product."""
    result: dict[Product, int] = {}
    for left_key, left_value in left.terms:
        for right_key, right_value in right.terms:
            both = left_key and right_key
            key = tuple(sorted((*left_key, *right_key), key=_order)) if both else left_key or right_key
            result[key] = result.get(key, 0) + left_value * right_value
    return Polynomial(tuple((key, value) for key, value in result.items() if value))


def _order(expr: Expr) -> str:
    return expr.name if isinstance(expr, IndexVar | Size) else repr(expr)


def mentions(expr: Expr, name: str) -> bool:
    """Whether the loop variable `name` occurs in the expression."""
    if isinstance(expr, IndexVar):
        return expr.name == name
    if isinstance(expr, Size | Const):
        return False
    return any(mentions(child, name) for child in children(expr))


def step(poly: Polynomial, name: str) -> tuple[int | None, bool]:
    """How the value moves with the loop variable `name`.

    Returns:
        (change per iteration, `None` unless it is a constant; whether the value is linear in the variable).
    """
    change: int | None = 0
    for product, value in poly.terms:
        count = sum(isinstance(factor, IndexVar) and factor.name == name for factor in product)
        inside = any(not isinstance(factor, IndexVar) and mentions(factor, name) for factor in product)
        if inside or count > 1:
            return None, False
        if count == 1:
            change = change + value if len(product) == 1 and change is not None else None
    return change, True


def moves(poly: Polynomial, name: str) -> bool:
    """Whether the loop variable `name` occurs."""
    return any(mentions(factor, name) for product, _ in poly.terms for factor in product)


def coefficient(poly: Polynomial, name: str) -> Polynomial | None:
    """What the value gains per iteration of the loop variable `name`; `None` if it is not linear in it."""
    if not step(poly, name)[1]:
        return None
    moved: list[tuple[Product, int]] = []
    for product, value in poly.terms:
        rest = tuple(factor for factor in product if not (isinstance(factor, IndexVar) and factor.name == name))
        if len(rest) < len(product):
            moved.append((rest, value))
    return Polynomial(tuple(moved))


def without(poly: Polynomial, name: str) -> Polynomial | None:
    """The value where the loop variable `name` is 0; `None` if it stands inside a factor."""
    kept: list[tuple[Product, int]] = []
    for term in poly.terms:
        if any(isinstance(factor, IndexVar) and factor.name == name for factor in term[0]):
            continue
        if any(mentions(factor, name) for factor in term[0]):
            return None
        kept.append(term)
    return Polynomial(tuple(kept))


def has_iterations(extent: Expr, loops: Mapping[str, Expr]) -> bool:
    """Whether a loop is known to run: its length is positive wherever the loops around it, by their lengths, have got.

    Worked examples: `min(N - 32*j, 32)` inside `for j in 0:(N + 31) // 32`; `min(N - 64*i - 16*j, 16)` inside
    `for j in 0:min((N + 15) // 16 - 4*i, 4)`; `min(-4*j - max(32*i - N, -32), 4)` inside `for j in 0:min(N + 3 - 32*i, 35) // 4`.
    """
    match extent:
        case Const(value=value):
            return int(value) > 0
        case Binary(op="min" | "max"):
            sides = [has_iterations(side, loops) for side in (extent.left, extent.right)]
            return all(sides) if extent.op == "min" else any(sides)
        case _:
            return _is_positive(polynomial(extent), loops)


def _is_positive(rest: Polynomial, loops: Mapping[str, Expr]) -> bool:
    """Whether one of the loops leaves `rest` of a number; a limit inside is one number or the other."""
    if any(_is_rest(rest, name, length) for name, length in loops.items()):
        return True
    for product, factor in rest.terms:
        match product:
            case (Binary(op="min" | "max" as op, left=left, right=right),) if factor == (1 if op == "min" else -1):
                others = Polynomial(tuple(term for term in rest.terms if term[0] != product))
                sides = (scaled(polynomial(side), factor) for side in (left, right))
                return all(_is_positive(add(others, side), loops) for side in sides)
            case _:
                pass
    return False


def _is_rest(rest: Polynomial, name: str, length: Expr) -> bool:
    """Whether `rest` is what the iterations of `name` leave of a number: at least 1, if there are as many as they need."""
    change, linear = step(rest, name)
    if not linear or change is None or change >= 0:
        return False
    total = without(rest, name)
    if total is None:
        return False
    match length:
        case Binary(op="//", left=Binary(op="min", left=left, right=right)):
            return any(_is_rest(rest, name, replace(length, left=side)) for side in (left, right))
        case Binary(op="//", left=top, right=Const(value=width)) if int(width) % -change == 0:
            whole = _times_divisor(total, int(width) // -change)
            needed = add(polynomial(top), Polynomial((((), -(int(width) + int(width) // change)),)))
            return whole is not None and dict(needed.terms) == dict(whole.terms)
        case Binary(op="min"):
            return any(_is_rest(rest, name, side) for side in (length.left, length.right))
        case Binary(op="-", left=Binary(op="//", left=top, right=Const(value=width)), right=done):
            moved = scaled(polynomial(done), -int(width))
            needed = add(add(polynomial(top), moved), Polynomial((((), 1 - int(width)),)))
            return int(width) == -change and dict(needed.terms) == dict(total.terms)
        case _:
            return False


def _times_divisor(total: Polynomial, divisor: int) -> Polynomial | None:
    """`X + divisor*c` of `X // divisor + c`: divided by `divisor*width` it is what the sum is, divided by the width."""
    if divisor == 1:
        return total
    match [term for term in total.terms if term[0]]:
        case [((Binary(op="//", left=inner, right=Const(value=by)),), 1)] if int(by) == divisor:
            return add(polynomial(inner), Polynomial((((), divisor * total.constant),)))
        case _:
            return None


def as_expr(poly: Polynomial) -> Expr:
    """An expression with the value of the sum; negative terms are subtracted."""
    total: Expr | None = None
    for product, value in poly.terms:
        term: Expr | None = None
        for factor in product:
            term = factor if term is None else Binary("*", term, factor, DType.INT64)
        minus = total is not None and -(1 << 63) < value < 0
        count = -value if minus else value
        if term is None:
            term = int64(count)
        elif count != 1:
            term = Binary("*", term, int64(count), DType.INT64)
        total = term if total is None else Binary("-" if minus else "+", total, term, DType.INT64)
    return int64(0) if total is None else total
