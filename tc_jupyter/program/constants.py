"""Constants of a cell or of a body: literals in nested lists, as a tensor that one statement fills.

Worked example: `const float(3) C = [1, 2, 1]` becomes `C(i) = i < 1 ? 1 : i < 2 ? 2 : 1 where i in 0:3`. Each choice halves what
is left, so that each value takes few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tc_jupyter.diagnostics import Span, codes
from tc_jupyter.syntax import tree

from .expr import Binary, Const, DType, Expr, IndexVar, Select, int64
from .program import Index, Statement
from .typing import cast, holds, number_literal, settle

MOST_VALUES = 1024
"""Of one constant: all of them stand in the program."""

Report = Callable[[codes.Code, Span, str], None]


@dataclass(frozen=True, slots=True)
class Values:
    """The extents of a constant, and its values in the order of rows; complex numbers are pairs along a last dimension."""

    shape: tuple[int, ...]
    values: tuple[int | float | bool, ...]


def values_of(node: tree.Constant, dtype: DType, report: Report) -> Values | None:
    """What a constant holds; `None` after a message."""
    shape: list[int] = []
    for dim in node.type.dimensions:
        if not isinstance(dim, tree.Number) or type(dim.value) is not int:
            report(codes.CONSTANT, dim.span, "an extent of a constant is a number")
            return None
        shape.append(dim.value)
    if prod(shape) > MOST_VALUES:
        report(codes.DEVICE_LIMIT, node.type.span, f"a constant has at most {MOST_VALUES} values; pass a parameter")
        return None
    found: list[int | float | bool] = []
    if not _collect(node.values, shape, 0, dtype, found, report):
        return None
    return Values((*shape, 2) if dtype.is_complex else tuple(shape), tuple(found))


def _collect(
    node: tree.Expression | tree.Listed,
    shape: Sequence[int],
    level: int,
    dtype: DType,
    found: list[int | float | bool],
    report: Report,
) -> bool:
    """Add the values along the dimensions from `level` on."""
    if level == len(shape):
        values = _pair(node, dtype, report) if dtype.is_complex else [_literal(node, dtype, report)]
        found += [value for value in values if value is not None]
        return None not in values
    if not isinstance(node, tree.Listed):
        report(codes.CONSTANT, node.span, f"a list of {shape[level]} values is expected for dimension {level}")
        return False
    if len(node.items) != shape[level]:
        message = f"dimension {level} has the extent {shape[level]}, but here are {len(node.items)} values"
        report(codes.CONSTANT, node.span, message)
        return False
    return all([_collect(item, shape, level + 1, dtype, found, report) for item in node.items])


def _pair(node: tree.Expression | tree.Listed, dtype: DType, report: Report) -> list[int | float | bool | None]:
    """The parts of a complex number of literals, as `complex64(0, 1)`, or of a real literal."""
    sign = -1 if isinstance(node, tree.Unary) and node.op == "-" else 1
    made = node.operand if isinstance(node, tree.Unary) and sign < 0 else node
    if not isinstance(made, tree.Apply) or not 1 <= len(made.arguments) <= 2 or made.function.name not in _PAIRS:
        return [_literal(node, dtype.part, report), 0.0]
    own = _PAIRS[made.function.name]
    if own.bits > dtype.bits:
        report(codes.CONSTANT, node.span, f"this is no `{dtype.value}`")
        return [None]
    parts = [_literal(each, own.part, report) for each in made.arguments]
    return [None if each is None else sign * each for each in (*parts, 0.0)[:2]]


_PAIRS = {dtype.value: dtype for dtype in DType if dtype.is_complex}
"""What makes complex numbers."""


def _literal(node: tree.Expression | tree.Listed, dtype: DType, report: Report) -> int | float | bool | None:
    """The value of a literal in the type of the constant."""
    is_negative = isinstance(node, tree.Unary) and node.op == "-"
    number = node.operand if isinstance(node, tree.Unary) and is_negative else node
    if not isinstance(number, tree.Number):
        what = "a list" if isinstance(node, tree.Listed) else "an expression"
        report(codes.CONSTANT, node.span, f"a constant holds literals, not {what}")
        return None
    exact = -number.value if is_negative else number.value
    is_truth = isinstance(number.value, bool)
    fits = is_truth == (dtype is DType.BOOL) and (
        is_truth or dtype.is_float or (isinstance(number.value, int) and holds(int(exact), dtype))
    )
    if not fits:
        report(codes.CONSTANT, node.span, f"this is no `{dtype.value}`")
        return None
    if not dtype.is_float:
        return exact
    typed = settle(number_literal(number.text, number.value, number.type, number.span), dtype)
    value = cast(typed.expr, dtype.compute)
    assert isinstance(value, Const)
    return -float(value.value) if is_negative else float(value.value)


def statement(name: str, made: Values, dtype: DType, node: tree.Constant, text: str) -> Statement:
    """The statement that fills the tensor of a constant."""
    letters = [chr(ord("i") + k) if len(made.shape) <= 8 else f"i{k}" for k in range(len(made.shape))]
    span = node.span
    indices = tuple(
        Index(letter, "output", (int64(0), int64(extent)), span)
        for letter, extent in zip(letters, made.shape, strict=True)
    )
    value = _chosen(made.values, made.shape, letters, dtype.part if dtype.is_complex else dtype.compute, span)
    return Statement(name, node.name.name, indices, "=", False, False, value, (), text, span, left_span=node.name.span)


def _chosen(
    values: Sequence[int | float | bool],
    shape: Sequence[int],
    letters: Sequence[str],
    dtype: DType,
    span: Span,
    start: int = 0,
) -> Expr:
    """The value at an index, by halves along each dimension; the first one begins at `start`."""
    if not shape or not values:
        return Const(values[0] if values else 0, dtype, span)
    step = len(values) // shape[0]
    if shape[0] == 1:
        return _chosen(values, shape[1:], letters[1:], dtype, span)
    half = shape[0] // 2
    first = _chosen(values[: half * step], (half, *shape[1:]), letters, dtype, span, start)
    other = _chosen(values[half * step :], (shape[0] - half, *shape[1:]), letters, dtype, span, start + half)
    if first == other:
        return first
    test = Binary("<", IndexVar(letters[0], span), int64(start + half), DType.BOOL, span)
    return Select(test, first, other, dtype, span)
