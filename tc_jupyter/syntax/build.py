"""The nodes that the reductions of `tc.lark` make: one method per rule, called with everything the rule matched.

Worked example: `sum: sum SIGN term` calls `binary([left, token, right])`, which gives `Binary("+", left, right)`.
"""

# ruff: noqa: D102  (the methods are the rules of the grammar, which says what they stand for)

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tc_jupyter.diagnostics import Span

from .tokens import Token
from .tree import (
    Apply,
    Binary,
    Block,
    Bordered,
    CallStatement,
    Clause,
    Comprehension,
    Conditional,
    Constant,
    DimensionBox,
    Direction,
    Exists,
    Expression,
    Extent,
    Filter,
    Let,
    Listed,
    Name,
    Number,
    Param,
    Result,
    TypeName,
    Unary,
    Unique,
    Where,
)

CHAIN = "chain "
"""Prefix of the operator of a comparison whose left operand is an unbracketed comparison (TC106)."""


@dataclass(frozen=True, slots=True)
class BadRange:
    """A range with wrong brackets: what was meant, and the text to write instead of it (TC105)."""

    where: Where
    inclusive: bool
    dotted: bool


@dataclass(frozen=True, slots=True)
class Brackets:
    """Arguments with the span of their brackets."""

    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Several values in brackets."""

    inner: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Bracketed:
    """What stands in brackets behind `else`."""

    inner: Expression


class Build:
    """The callbacks; without state, so one parser serves all threads."""

    def name(self, parts: list[Token]) -> Name:
        (token,) = parts
        return Name(token.text, token.span)

    def number(self, parts: list[Token]) -> Number:
        (token,) = parts
        return number(token)

    def unary_(self, parts: list[Any]) -> Unary[Expression]:
        token, operand = parts
        return Unary(token.text, operand, token.span | operand.span)

    def binary(self, parts: list[Any]) -> Binary[Expression]:
        left, token, right = parts
        return Binary(token.text, left, right, left.span | right.span, token.span)

    def comparison(self, parts: list[Any]) -> Binary[Expression]:
        first = self.binary(parts[:3])
        for i in range(3, len(parts), 2):
            token, right = parts[i : i + 2]
            first = Binary(CHAIN + token.text, first, right, first.span | right.span, token.span)
        return first

    def conditional(self, parts: list[Any]) -> Conditional[Expression]:
        condition, _, then, _, otherwise = parts
        return Conditional(condition, then, otherwise, condition.span | otherwise.span)

    def paren(self, parts: list[Any]) -> Expression:
        opening, inner, closing = parts
        return replace(inner, span=Span(opening.start, closing.end))

    def extent(self, parts: list[Any]) -> Extent:
        tensor, token = parts
        return Extent(tensor, int(token.text[1:10]), tensor.span | token.span)

    def apply(self, parts: list[Any]) -> Apply[Expression]:
        function, _, arguments, closing = parts
        if isinstance(function, Token):
            function = Name(function.text, function.span)
        return Apply(function, arguments or (), Span(function.span.start, closing.end))

    def bordered(self, parts: list[Any]) -> Bordered[Expression]:
        read, otherwise = self.apply(parts[:4]), parts[5]
        if isinstance(otherwise, Bracketed):
            return Bordered(read, otherwise.inner, read.span | otherwise.inner.span, bracketed=True)
        return Bordered(read, otherwise, read.span | otherwise.span)

    def bracketed(self, parts: list[Any]) -> Bracketed:
        return Bracketed(self.paren(parts))

    def negative(self, parts: list[Token]) -> Unary[Expression]:
        minus, literal = parts
        return Unary("-", number(literal), minus.span | literal.span)

    def exprs(self, parts: list[Any]) -> tuple[Expression, ...]:
        return tuple(parts[::2])

    dims = exprs

    def box(self, parts: list[Any]) -> DimensionBox:
        lower, _, upper = parts
        return DimensionBox(lower, upper, lower.span | upper.span)

    def type(self, parts: list[Any]) -> TypeName:
        scalar, dimensions, closing = parts[0], (), parts[-1]
        if closing is None or len(parts) == 1:
            return TypeName(scalar.text, (), scalar.span)
        if parts[2] is not None:
            dimensions = parts[2]
        return TypeName(scalar.text, dimensions, Span(scalar.start, closing.end))

    def param(self, parts: list[Any]) -> Param:
        kind, name = parts
        return Param(kind, name, kind.span | name.span)

    def result(self, parts: list[Any]) -> Result:
        if len(parts) == 1:
            return Result(parts[0], None, parts[0].span)
        return Result(parts[1], parts[0], parts[0].span | parts[1].span)

    def indices(self, parts: list[Any]) -> Brackets:
        return Brackets(parts[1] or ())

    def operator(self, parts: list[Token]) -> Token:
        return parts[0]

    def closing(self, parts: list[Token]) -> Token:
        return parts[0]

    def matched(self, parts: list[Any]) -> Apply[Expression]:
        return replace(self.apply(parts[1:]), span=Span(parts[0].start, parts[-1].end))

    def where(self, parts: list[Any]) -> tuple[Clause | BadRange, ...]:
        return tuple(parts[1::2])

    def comprehension(self, parts: list[Any]) -> Comprehension:
        target, indices, operator, value, matched, at, (clauses, along) = *parts[:6], parts[6] or ((), ())
        found = (value, matched, at, *along, *clauses)
        spans = [each.where.span if isinstance(each, BadRange) else each.span for each in found if each is not None]
        value, *rest = value.inner if isinstance(value, Values) else (value,)
        arguments = indices.arguments if indices is not None else None
        span = Span(target.span.start, max(each.end for each in spans))
        about = (clauses, matched, span, operator.span, at)
        return Comprehension(target, arguments, operator.text, value, *about, rest=tuple(rest), along=along)

    def several(self, parts: list[Any]) -> Comprehension:
        """Targets with or without indices, then an operator, a value and, behind a pair, `at`."""
        place = next(i for i, part in enumerate(parts) if isinstance(part, Token) and part.type == "UPDATE")
        targets: list[tuple[Name, tuple[Expression, ...] | None]] = []
        for part in parts[:place]:
            if isinstance(part, Name):
                targets.append((part, None))
            elif isinstance(part, Brackets):
                targets[-1] = targets[-1][0], part.arguments
        *before, (target, indices) = targets
        operator, value, *others = parts[place:]
        at, where = others if len(others) > 1 else (None, *others)
        given = None if indices is None else Brackets(indices)
        node = self.comprehension([target, given, operator, value, None, at, where])
        return replace(node, before=tuple(before), span=Span(targets[0][0].span.start, node.span.end))

    def together(self, parts: list[Any]) -> Values:
        return Values(tuple(parts[1:-1:2]), Span(parts[0].start, parts[-1].end))

    def listed(self, parts: list[Any]) -> Listed:
        return Listed(tuple(parts[1:-1:2]), Span(parts[0].start, parts[-1].end))

    def constant(self, parts: list[Any]) -> Constant:
        word, kind, name, _, values = parts
        return Constant(name, kind, values, Span(word.start, values.span.end))

    def at(self, parts: list[Any]) -> Expression:
        return parts[1]

    def clauses(self, parts: list[Any]) -> tuple[tuple[Clause | BadRange, ...], tuple[Direction, ...]]:
        along = [part for each in parts for part in each if isinstance(part, Direction)]
        return tuple(part for each in parts for part in each if not isinstance(part, Direction)), tuple(along)

    def along(self, parts: list[Any]) -> tuple[Direction, ...]:
        return tuple(parts[1::2])

    def direction(self, parts: list[Any]) -> Direction:
        minus, name = parts
        return Direction(name, 1 if minus is None else -1, name.span if minus is None else minus.span | name.span)

    def head(self, parts: list[Any]) -> Block:
        word, minus, name, _, lower, _, upper = parts
        return Block(name, 1 if minus is None else -1, lower, upper, span=Span(word.start, upper.span.end))

    def call(self, parts: list[Any]) -> CallStatement:
        closing, arguments, _, callee = parts[-1], parts[-2], parts[-3], parts[-4]
        targets = tuple(part for part in parts[:-5] if isinstance(part, Name))
        return CallStatement(targets, callee, arguments or (), Span(targets[0].span.start, closing.end))

    def iterated_call(self, parts: list[Any]) -> CallStatement:
        *before, _, count, opening, arguments, closing = parts
        node = self.call([*before, opening, arguments, closing])
        return replace(node, count=Name(count.text, count.span))

    def iterated(self, parts: list[Any]) -> Expression:
        """`f^3(U)`, where the checker finds what `f^n(U)` is, too: a power of what looks like a read."""
        base, power, count, opening, arguments, closing = parts
        read = self.apply([Name(count.text, count.span), opening, arguments, closing])
        return self.binary([base, power, read])

    def range(self, parts: list[Any]) -> Where:
        index, _, lower, _, upper = parts
        return Where(index, lower, upper, index.span | upper.span)

    def half_open(self, parts: list[Any]) -> Where:
        index, _, _, lower, _, upper, closing = parts
        return Where(index, lower, upper, Span(index.span.start, closing.end))

    def wrong_range(self, parts: list[Any]) -> BadRange:
        closing: Token = parts[-1]
        return BadRange(self.half_open(parts), inclusive=closing.text == "]", dotted=False)

    def dotted_range(self, parts: list[Any]) -> BadRange:
        return BadRange(self.range(parts), inclusive=False, dotted=True)

    def let(self, parts: list[Any]) -> Let:
        name, _, value = parts
        return Let(name, value, name.span | value.span)

    def exists(self, parts: list[Any]) -> Exists:
        word, value = parts
        return Exists(value, word.span | value.span)

    def filter(self, parts: list[Any]) -> Filter:
        return Filter(parts[0], parts[0].span)

    def unique(self, parts: list[Any]) -> Unique:
        return Unique(parts[0].span)


def number(token: Token) -> Number:
    """The literal of a token; the value of a weak float is the nearest Python float, its text is kept."""
    text = token.text
    if text in ("true", "false"):
        return Number(text, text == "true", "bool", token.span)
    if text in ("inf", "nan"):
        return Number(text, float(text), None, token.span)
    if token.type == "INTEGER":
        digits = text.rstrip("uUlL")
        suffix = text[len(digits) :].lower()
        value = int(digits, 0)
        return Number(text, value, _integer_type(suffix, value), token.span)
    plain = text.lower()
    if plain.startswith("0x"):
        return Number(text, _hex(plain.removesuffix("f")), "float32" if plain.endswith("f") else None, token.span)
    return Number(text, float(plain.removesuffix("f")), "float32" if plain.endswith("f") else None, token.span)


def _hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("inf")


def _integer_type(suffix: str, value: int) -> str | None:
    if not suffix:
        return None
    if "u" in suffix:
        return "uint32" if suffix == "u" and value < 1 << 32 else "uint64"
    return "int64"
