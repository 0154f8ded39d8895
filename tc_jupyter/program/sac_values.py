"""What an expression of a `%%sac` function is while the function is specialised: an array that is not computed yet.

A `Value` is a scalar expression over named axes, or a list of small items, or disjoint boxes with one expression each.
Combining values combines expressions, so nested comprehensions are fused and nothing is stored until `emit` asks for it.

Worked example: `A + 1` for a matrix of `float32` is `Value(FLOAT32, (A_0, A_1), axes=(i, j), expr=Read(A, (i, j)) + 1)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from math import prod
from typing import TypeAlias

from tc_jupyter.diagnostics import NO_SPAN, Span
from tc_jupyter.diagnostics.work import spend

from . import typing
from .expr import (
    LOGICAL,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    children,
    int64,
    rebuild,
    walk,
)
from .sac_sizes import STEPS_PER_NODE, Interval, add, convert_const, fold, linear, mul, sub, substitute, value


class Weak(Enum):
    """The type of something that takes the type of the operand it meets: literals, index variables, shapes."""

    INT = "int"
    FLOAT = "double"


Kind: TypeAlias = DType | Weak
STEPS_PER_PIECE = 10  # to put it into an array


def kind_text(kind: Kind) -> str:
    """The word of the language for a kind."""
    words = {DType.INT32: "int", DType.INT64: "long", DType.FLOAT32: "float", DType.FLOAT64: "double"}
    return kind.value if isinstance(kind, Weak) else words.get(kind, kind.value)


def storage(kind: Kind) -> DType:
    """The element type of a temporary that holds such values."""
    if isinstance(kind, DType):
        return kind
    return DType.INT64 if kind is Weak.INT else DType.FLOAT64


def alone(kind: Kind) -> DType:
    """The type that a weak value takes when it meets nothing: `int` or `double`."""
    if isinstance(kind, DType):
        return kind
    return DType.INT32 if kind is Weak.INT else DType.FLOAT64


def compute(kind: Kind) -> DType:
    """The type of the scalar expressions of such values."""
    return storage(kind).compute


def is_integer(kind: Kind) -> bool:
    """Whether values of this kind are integers (`bool` is not)."""
    return kind is Weak.INT or (isinstance(kind, DType) and kind.is_integer)


def is_float(kind: Kind) -> bool:
    """Whether values of this kind are floating."""
    return kind is Weak.FLOAT or (isinstance(kind, DType) and kind.is_float)


def promote(left: Kind, right: Kind) -> Kind:
    """The common kind of two operands (as in the other language; a weak float turns integers into `double` here)."""
    if left is right:
        return left
    if isinstance(left, Weak) and isinstance(right, Weak):
        return Weak.FLOAT
    if isinstance(left, Weak) or isinstance(right, Weak):
        weak, strong = (left, right) if isinstance(left, Weak) else (right, left)
        assert isinstance(strong, DType)
        if strong.is_float or (weak is Weak.INT and strong.is_integer):
            return strong
        return DType.INT32 if weak is Weak.INT else DType.FLOAT64
    assert isinstance(left, DType)
    assert isinstance(right, DType)
    return typing.promote(left, right)


def arithmetic(kind: Kind) -> Kind:
    """The kind in which arithmetic is done: `bool` acts as `int`."""
    return DType.INT32 if kind is DType.BOOL else kind


def narrows(source: Kind, target: DType) -> bool:
    """Whether converting values of `source` to `target` may lose precision, so that a cast must say so (TC206)."""
    if isinstance(source, Weak):
        return source is Weak.FLOAT and not target.is_float
    return not typing.fits(source, target)


def convert(expr: Expr, source: Kind, target: Kind) -> Expr:
    """`expr` of kind `source` as an expression of kind `target`."""
    if source is target:
        return expr
    if source is Weak.FLOAT and is_float(target):
        return _retype_float(expr, compute(target))
    if source is Weak.INT and compute(target) is DType.INT64:
        return expr
    goal = storage(target)
    if isinstance(expr, Const) and not (goal.is_float and goal.bits == 16):
        return convert_const(expr, compute(target))
    cast = expr if expr.dtype is goal else fold(Cast(expr, goal))
    return cast if goal.compute is goal else Cast(cast, goal.compute)


def _retype_float(expr: Expr, dtype: DType) -> Expr:
    """A weak floating expression computed in `dtype` from its literals on."""
    if expr.dtype is dtype or expr.dtype is not DType.FLOAT64:
        return expr if expr.dtype is dtype else Cast(expr, dtype)
    match expr:
        case Const():
            return replace(expr, dtype=dtype)
        case Unary() | Binary() | Call():
            operands = tuple(_retype_float(child, dtype) for child in children(expr))
            return replace(rebuild(expr, operands), dtype=dtype)
        case Select():
            then, otherwise = _retype_float(expr.then, dtype), _retype_float(expr.otherwise, dtype)
            return Select(expr.condition, then, otherwise, dtype, expr.span)
        case Cast():
            return Cast(expr.operand, dtype, expr.span)
        case _:
            return Cast(expr, dtype)


def to_index(expr: Expr, kind: Kind) -> Expr:
    """An integer expression as an exact 64-bit one: arithmetic in narrower types is done wide."""
    if kind is Weak.INT or expr.dtype is DType.INT64:
        return expr
    return _widen(expr)


def _widen(expr: Expr) -> Expr:
    spend(STEPS_PER_NODE)
    match expr:
        case Const():
            return int64(int(expr.value))
        case Binary(op="+" | "-" | "*" | "//" | "%" | "min" | "max") if expr.dtype.is_integer:
            return fold(Binary(expr.op, _widen(expr.left), _widen(expr.right), DType.INT64, expr.span))
        case Unary(op="-"):
            return sub(int64(0), _widen(expr.operand))
        case Select():
            return fold(Select(expr.condition, _widen(expr.then), _widen(expr.otherwise), DType.INT64, expr.span))
        case Cast() if expr.operand.dtype is DType.INT64:
            return expr.operand
        case _:
            return expr if expr.dtype is DType.INT64 else Cast(expr, DType.INT64)


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of a value with the expression of its elements; `number` is the partition (from 0), -1 for a hole."""

    axes: tuple[str, ...]
    box: tuple[Interval, ...]
    expr: Expr
    number: int = 0
    span: Span = NO_SPAN
    text: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """An array that is not computed yet.

    Attributes:
        kind: type of the elements.
        shape: one integer expression per axis.
        axes, expr: the element at `axes`; or
        items: all elements of a small array of constant shape, row-major; or
        pieces: disjoint boxes that cover the array.
    """

    kind: Kind
    shape: tuple[Expr, ...]
    axes: tuple[str, ...] = ()
    expr: Expr | None = None
    items: tuple[Expr, ...] | None = None
    pieces: tuple[Piece, ...] | None = None

    def __post_init__(self) -> None:
        """Count the work for all parts: an array that is joined with itself doubles with every statement."""
        if self.items is not None:
            spend(len(self.items))
        if self.pieces is not None:
            spend(STEPS_PER_PIECE * len(self.pieces))

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def extents(self) -> tuple[int, ...] | None:
        """The shape as numbers, if it is constant."""
        numbers = tuple(value(extent) for extent in self.shape)
        return None if None in numbers else tuple(n for n in numbers if n is not None)


def scalar(expr: Expr, kind: Kind) -> Value:
    """A value of rank 0."""
    return Value(kind, (), (), expr)


def vector(items: tuple[Expr, ...], kind: Kind = Weak.INT) -> Value:
    """A vector of given elements."""
    return Value(kind, (int64(len(items)),), items=items)


def item_at(items: tuple[Expr, ...], extents: tuple[int, ...], indices: tuple[Expr, ...]) -> Expr:
    """The element of a small array at indices that may be symbolic: an item, a line through the items, or nested selections."""
    if not extents:
        return items[0]
    stride = prod(extents[1:])
    at = value(indices[0])
    if at is not None:
        return item_at(items[at * stride : (at + 1) * stride], extents[1:], indices[1:])
    rows = [item_at(items[k * stride : (k + 1) * stride], extents[1:], indices[1:]) for k in range(extents[0])]
    return _line(rows, indices[0]) or _choose(rows, 0, indices[0])


def _line(rows: list[Expr], index: Expr) -> Expr | None:
    """`first + step*index` where neighbouring integer items differ by one constant."""
    if len(rows) < 2 or any(row.dtype is not DType.INT64 for row in rows):
        return None
    steps = [linear(sub(b, a)) for a, b in pairwise(rows)]
    if any(terms or constant != steps[0][1] for terms, constant in steps):
        return None
    return add(rows[0], mul(int64(steps[0][1]), index))


def _choose(rows: list[Expr], first: int, index: Expr) -> Expr:
    if len(rows) == 1:
        return rows[0]
    half = len(rows) // 2
    low, high = _choose(rows[:half], first, index), _choose(rows[half:], first + half, index)
    return fold(Select(Binary("<", index, int64(first + half), DType.BOOL), low, high, low.dtype))


def rename_axes(piece: Piece, names: Mapping[str, str]) -> Piece:
    """The same piece over other axis names."""
    mapping: dict[str, Expr] = {old: IndexVar(new) for old, new in names.items()}
    box = tuple((substitute(low, mapping), substitute(high, mapping)) for low, high in piece.box)
    axes = tuple(names.get(axis, axis) for axis in piece.axes)
    return replace(piece, axes=axes, box=box, expr=substitute(piece.expr, mapping))


def weight(expr: Expr, limit: int = 400) -> int:
    """The number of nodes, counted up to `limit`; a call of a function counts 20."""
    count = 0
    for node in walk(expr):
        count += 20 if isinstance(node, Call) else 1
        if count >= limit:
            break
    spend(count)
    return count


def reads_of(expr: Expr) -> tuple[Read, ...]:
    """All reads in an expression, also those in subscripts."""
    return tuple(node for node in walk(expr) if isinstance(node, Read))


def unconditional(expr: Expr | None) -> Iterable[Expr]:
    """Nodes that are evaluated whenever `expr` is."""
    stack = [expr] if expr is not None else []
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Select():
                stack.append(node.condition)
            case Binary() if node.op in LOGICAL:
                stack.append(node.left)
            case Binary():
                stack += [node.left, node.right]
            case Unary() | Cast():
                stack.append(node.operand)
            case Call():
                stack += node.arguments
            case Read():
                stack += node.indices
            case Const() | Size() | IndexVar():
                pass
