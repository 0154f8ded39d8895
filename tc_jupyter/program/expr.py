"""The one language of scalar expressions, from the checked program to the code generators.

Every node has a type. Operands of an operator have equal types (the checker inserts `Cast`), so no later stage promotes.
16-bit floats are storage types only: a `Read` of one is cast to `float32` at once, and no operator has such operands.

Worked example: `A(i, k) / 2` over `float32` is
`Binary("/", Read("A", (IndexVar("i"), IndexVar("k")), FLOAT32), Const(2.0, FLOAT32), FLOAT32)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Any, TypeAlias, assert_never

from tc_jupyter.diagnostics import NO_SPAN, Span


class DType(Enum):
    """An element type. The value is the canonical name, which NumPy (with `ml_dtypes`) understands as well."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"

    # Members are unique, and hashing expressions is a good part of code generation.
    __hash__ = object.__hash__

    @property
    def bits(self) -> int:
        """Width of one element in bits; `bool` takes one byte."""
        return _BITS[self]

    @property
    def bytes(self) -> int:
        """Size of one element in bytes."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """Whether this is one of the four floating types."""
        return self in _FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether this is one of the eight integer types; `bool` is not."""
        return not self.is_float and not self.is_complex and self is not DType.BOOL

    @property
    def is_complex(self) -> bool:
        """Whether this is a type of complex numbers. Only text and arrays have it: expressions are of parts (`complexes`)."""
        return self in _PARTS

    @property
    def part(self) -> DType:
        """The type of the real and the imaginary part; of a real type itself."""
        return _PARTS.get(self, self)

    @property
    def of_pairs(self) -> DType:
        """The type of complex numbers with parts of this type."""
        return next(whole for whole, part in _PARTS.items() if part is self)

    @property
    def is_signed(self) -> bool:
        """Whether this is a signed integer type."""
        return self in (DType.INT8, DType.INT16, DType.INT32, DType.INT64)

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type or `bool`."""
        if self is DType.BOOL:
            return 0, 1
        if self.is_signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    @property
    def compute(self) -> DType:
        """The type that arithmetic on this type uses: `float32` for the 16-bit floats, else itself."""
        return DType.FLOAT32 if self in (DType.FLOAT16, DType.BFLOAT16) else self


_FLOATS = frozenset((DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64))
_PARTS = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}
_BITS = {dtype: int("".join(filter(str.isdigit, dtype.value)) or 8) for dtype in DType}

REAL = tuple(dtype for dtype in DType if not dtype.is_complex)
"""The types of expressions and of stored elements."""
LARGEST_ARRAY = (1 << 63) - 1
"""The most `array_bytes` that an array can have."""


def array_bytes(shape: Iterable[int], itemsize: int) -> int:
    """The bytes that the distances between elements span: NumPy counts an extent of 0 as 1, and so do all who make arrays.

    Worked example: `array_bytes((0, 1 << 62), 8)` is `1 << 65`, so there is no such array, although it would have no element.
    """
    return itemsize * math.prod(extent for extent in shape if extent > 0)


class _Node:
    """Keeps its hash: code generation looks expressions up all the time, and a hash takes time for every node below.

    Every class below repeats `__hash__ = _Node.__hash__`: `dataclass` writes one of its own where a class has none in its body.
    """

    __slots__ = ("_hash",)
    __match_args__: tuple[str, ...]
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = hash(tuple([getattr(self, name) for name in self.__match_args__ if name not in ("span", "border")]))
            object.__setattr__(self, "_hash", value)
            return value


@dataclass(frozen=True, slots=True)
class Const(_Node):
    """A number of type `dtype`; `inf` and `nan` are Python floats."""

    value: int | float | bool
    dtype: DType
    span: Span = field(default=NO_SPAN, compare=False)

    __hash__ = _Node.__hash__


@dataclass(frozen=True, slots=True)
class Size:
    """The value of a size: a name of the signature (`N`), or the extent of a computed tensor's dimension (`T.0`)."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)
    dtype: DType = DType.INT64


@dataclass(frozen=True, slots=True)
class IndexVar:
    """The value of an index variable of the statement, or of a loop."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)
    dtype: DType = DType.INT64


@dataclass(frozen=True, slots=True)
class Border:
    """What the text says of a read beyond the ends of its tensor, where the expression says it in other words.

    Attributes:
        text: as written: `X(reflect(i - 1)) else 0`.
        dimensions: those whose subscripts may be outside as they are written; they give no index its range.
        nonempty: those of which an element is read wherever the subscript is.
        written: the subscripts of these as they are written, without what stands around them.
        window: a value stands behind `else`.
    """

    text: str
    dimensions: frozenset[int]
    nonempty: frozenset[int] = frozenset()
    written: tuple[Expr, ...] = ()
    window: bool = False


@dataclass(frozen=True, slots=True)
class Read(_Node):
    """An element of a tensor at logical indices (the origin is not subtracted). A rank-0 tensor or scalar has no indices.

    Before lowering `tensor` names a `Tensor` of the program and indices are logical; after lowering the same node names a
    `Buffer` of the kernel and indices are 0-based storage positions.
    """

    tensor: str
    indices: tuple[Expr, ...]
    dtype: DType
    span: Span = field(default=NO_SPAN, compare=False)
    border: Border | None = field(default=None, compare=False)

    __hash__ = _Node.__hash__


@dataclass(frozen=True, slots=True)
class Unary(_Node):
    """`-` on numbers, `!` on `bool`."""

    op: str
    operand: Expr
    dtype: DType
    span: Span = field(default=NO_SPAN, compare=False)

    __hash__ = _Node.__hash__


@dataclass(frozen=True, slots=True)
class Binary(_Node):
    """An operator with two operands of one type.

    `op` is one of `+ - * / // % min max < <= > >= == != && ||`. `//` is floor division of integers and `/` true division of
    floats; `%` is the floor remainder of either; integer division by zero gives 0. `min` and `max` of
    floats return NaN if an operand is NaN. Comparisons and logical operators have type `bool`; `&&`, `||` evaluate the right
    operand only if needed.
    """

    op: str
    left: Expr
    right: Expr
    dtype: DType
    span: Span = field(default=NO_SPAN, compare=False)

    __hash__ = _Node.__hash__


@dataclass(frozen=True, slots=True)
class Select(_Node):
    """`condition ? then : otherwise`; only the chosen branch is evaluated."""

    condition: Expr
    then: Expr
    otherwise: Expr
    dtype: DType
    span: Span = field(default=NO_SPAN, compare=False)

    __hash__ = _Node.__hash__


@dataclass(frozen=True, slots=True)
class Call(_Node):
    """A mathematical function by its name in the language; arguments have type `dtype` except for the `is...` tests."""

    function: str
    arguments: tuple[Expr, ...]
    dtype: DType
    span: Span = field(default=NO_SPAN, compare=False)

    __hash__ = _Node.__hash__


@dataclass(frozen=True, slots=True)
class Cast(_Node):
    """Conversion of any type to any type; float to integer truncates and saturates, NaN gives 0."""

    operand: Expr
    dtype: DType
    span: Span = field(default=NO_SPAN, compare=False)

    __hash__ = _Node.__hash__


Expr: TypeAlias = Const | Size | IndexVar | Read | Unary | Binary | Select | Call | Cast

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""The comparison that says the same of exchanged sides."""

LOGICAL = frozenset({"&&", "||"})


def _nothing(expr: Expr) -> tuple[Expr, ...]:
    del expr
    return ()


def _operand(expr: Unary | Cast) -> tuple[Expr, ...]:
    return (expr.operand,)


_BELOW: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    Const: _nothing,
    Size: _nothing,
    IndexVar: _nothing,
    Read: attrgetter("indices"),
    Unary: _operand,
    Binary: attrgetter("left", "right"),
    Select: attrgetter("condition", "then", "otherwise"),
    Call: attrgetter("arguments"),
    Cast: _operand,
}
"""What the operands of a node are, by its class: this is asked all the time."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands, left to right."""
    return _BELOW[type(expr)](expr)


def rebuild(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
    """The same node with other operands, in the order of `children`."""
    if all(new is old for new, old in zip(operands, children(expr), strict=True)):
        return expr
    match expr:
        case Const() | Size() | IndexVar():
            return expr
        case Read():
            return Read(expr.tensor, operands, expr.dtype, expr.span, expr.border)
        case Unary():
            return Unary(expr.op, operands[0], expr.dtype, expr.span)
        case Cast():
            return Cast(operands[0], expr.dtype, expr.span)
        case Binary():
            return Binary(expr.op, operands[0], operands[1], expr.dtype, expr.span)
        case Select():
            return Select(operands[0], operands[1], operands[2], expr.dtype, expr.span)
        case Call():
            return Call(expr.function, operands, expr.dtype, expr.span)
    assert_never(expr)


def rewrite(expr: Expr, rule: Callable[[Expr], Expr | None]) -> Expr:
    """Apply `rule` bottom-up; where it returns `None` the node stays."""
    below = children(expr)
    node = rebuild(expr, tuple([rewrite(child, rule) for child in below])) if below else expr
    new = rule(node)
    return node if new is None else new


def variables(values: Mapping[str, Expr]) -> Callable[[Expr], Expr | None]:
    """The rule that puts expressions in the place of indices, or of the variables of loops."""
    return lambda node: values.get(node.name) if isinstance(node, IndexVar) else None


def walk(expr: Expr) -> Iterator[Expr]:
    """All nodes, parents before children."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        below = _BELOW[type(node)](node)
        if below:
            stack.extend(below[::-1])


def int64(value: int) -> Const:
    """An index constant."""
    return Const(value, DType.INT64)
