"""Literals that become another number in the type that they take: too large ones are infinite there, too small ones 0.

Worked example: in `Y(i) = X(i) * 1e40` with `float` elements the literal is `inf`, and in `h(i) * 1e-9` with `half` ones it is 0.

What literals and integers make is a `float32`. Where it is rounded and meets a wider type, a message says so: `D(i) * (0.1*i)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, SourceText, Span, codes

from .expr import Binary, Call, Cast, Const, DType, Expr, Select, Unary, children, walk
from .program import Program
from .typing import number_in, parse_exact

_FLOATS = frozenset({"uniform", "normal"})
"""Functions that are a `float32` whatever they are given."""

_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F.]+[pP]|[0-9.]+(?:[eE]|[fFdD]?$))")
_ZERO = re.compile(r"0[xX][0.]+[pP]|[0.]+(?:[eE]|[fFdD]?$)")


def lost_literals(program: Program) -> Iterator[Diagnostic]:
    """A warning about each such literal."""
    for statement in program.statements:
        for node in walk(statement.value):
            if not isinstance(node, Const) or not node.dtype.is_float:
                continue
            value, text = number_in(node.value, node.dtype), program.source.slice(node.span)
            if value == 0 and _ZERO.match(text):
                continue
            if _NUMBER.match(text) and (value == 0 or math.isinf(value)):
                yield _lost(text, value, node.dtype, node.span)


def narrow_literals(program: Program) -> Iterator[Diagnostic]:
    """A warning about each `float32` of literals and integers that is converted to a wider type, and is no exact number."""
    told: set[Span] = set()
    for statement in program.statements if program.language == "tc" else ():
        if statement.span == statement.value.span:
            continue  # of a def that is called, which has its own message
        for node in walk(statement.value):
            if not isinstance(node, Cast) or node.dtype is not DType.FLOAT64 or node.operand.dtype is not DType.FLOAT32:
                continue
            source, operand = program.source, node.operand
            if operand.span in told or not _is_of_integers(operand, source) or _is_exact(operand, source):
                continue
            told.add(operand.span)
            yield _narrow(operand, source)


def _is_of_integers(node: Expr, source: SourceText) -> bool:
    """Whether a float is made of literals without a suffix, indices, sizes and integers, and nobody says that it is a `float32`."""
    if node.dtype.is_integer or node.dtype is DType.BOOL:
        return True
    text = source.slice(node.span)
    if text.startswith(("float", "half")):
        return False
    match node:
        case Const():
            return not text.endswith(("f", "F"))
        case Cast(operand=operand):
            return _is_of_integers(operand, source)
        case Select():
            return _is_of_integers(node.then, source) and _is_of_integers(node.otherwise, source)
        case Call():
            return node.function not in _FLOATS and all(_is_of_integers(each, source) for each in node.arguments)
        case Unary() | Binary():
            return all(_is_of_integers(each, source) for each in children(node))
        case _:
            return False


def _is_exact(node: Expr, source: SourceText) -> bool:
    """Whether integers that are not large make a number without rounding, as in `0.5*i + 1`."""
    match node:
        case Const():
            text = source.slice(node.span)
            exact = parse_exact(text) if _NUMBER.fullmatch(text) else None
            return exact is None or exact == node.value
        case Cast():
            return True
        case Binary(op="/", left=left, right=Const(value=by)):
            return _is_exact(left, source) and math.frexp(by)[0] in (0.5, -0.5)
        case Binary(op="/") | Call():
            return False
        case Select():
            return _is_exact(node.then, source) and _is_exact(node.otherwise, source)
        case _:
            return all(_is_exact(each, source) for each in children(node))


def _narrow(node: Expr, source: SourceText) -> Diagnostic:
    """The message, whose fix makes a literal, else an integer, a `double`."""
    floats = [each for each in walk(node) if isinstance(each, Const) and each.dtype.is_float]
    integers = [each.operand for each in walk(node) if isinstance(each, Cast) and each.operand.dtype.is_integer]
    first = min((each.span for each in floats or integers), default=node.span)
    text, shown = source.slice(first), source.slice(node.span)
    fix = Fix(f"write `double({text})`", (Edit(first, f"double({text})"),)) if len(text) <= 40 else None
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    message = f"`{shown}` is computed in `float32`, and then converted to `float64`"
    help = "a literal beside integers alone is a `float32`: say that it is a `double`"
    return Diagnostic(codes.NARROW_FLOAT, node.span, message, help=help, fix=fix)


def _lost(text: str, value: float, dtype: DType, span: Span) -> Diagnostic:
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    what, becomes = ("small", "0") if value == 0 else ("large", "`inf`")
    if dtype is DType.FLOAT32:
        help = f"a wider type may hold it, as in `double({shown})`"
    else:
        help = f"no type holds it: write `{'0.0' if value == 0 else 'inf'}` if that is meant"
    message = f"`{shown}` is too {what} for the type that it takes here, and becomes {becomes}"
    return Diagnostic(codes.LITERAL_RANGE, span, message, help=help)
