"""Literals that become another number in the type that they take: too large ones are infinite there, too small ones 0.

Worked example: in `Y(i) = X(i) * 1e40` with `float` elements the literal is `inf`, and in `h(i) * 1e-9` with `half` ones it is 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from tc_jupyter.diagnostics import Diagnostic, Span, codes

from .expr import Const, DType, walk
from .program import Program
from .typing import number_in

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


def _lost(text: str, value: float, dtype: DType, span: Span) -> Diagnostic:
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    what, becomes = ("small", "0") if value == 0 else ("large", "`inf`")
    if dtype is DType.FLOAT32:
        help = f"a wider type may hold it, as in `double({shown})`"
    else:
        help = f"no type holds it: write `{'0.0' if value == 0 else 'inf'}` if that is meant"
    message = f"`{shown}` is too {what} for the type that it takes here, and becomes {becomes}"
    return Diagnostic(codes.LITERAL_RANGE, span, message, help=help)
