"""Types of expressions: promotion, weak literals, conversions. Shared by both languages.

A `Typed` pairs an expression with its type in the language. The two differ for 16-bit floats, which are computed in `float32`:
`h + h` over `half` is a `float32` expression whose language type is `float16`.

Worked example: `promote(DType.UINT8, DType.INT8)` is `DType.INT16`; a weak `2` beside a `uint8` operand is a `uint8` constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from tc_jupyter.diagnostics import Span

from . import bits
from .complexes import paired, parts
from .expr import (
    COMPARISONS,
    TURNED,
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
    rebuild,
    walk,
)

BOOL, INT32, INT64, FLOAT32, FLOAT64 = DType.BOOL, DType.INT32, DType.INT64, DType.FLOAT32, DType.FLOAT64

TYPE_NAMES: dict[str, DType] = {item.value: item for item in DType} | {
    "int": DType.INT32,
    "byte": DType.UINT8,
    "half": DType.FLOAT16,
    "float": DType.FLOAT32,
    "double": DType.FLOAT64,
}
"""Every word for an element type."""

_FORMATS = {  # precision in bits (hidden bit included), smallest and largest exponent
    DType.FLOAT16: (11, -14, 15),
    DType.BFLOAT16: (8, -126, 127),
    DType.FLOAT32: (24, -126, 127),
    DType.FLOAT64: (53, -1022, 1023),
}
_SIGNED = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression and its type in the language.

    Attributes:
        dtype: the type; for a weak one the type it has when it stands alone.
        weak: made of unsuffixed literals only: it takes the type of the operand it meets. `int` or `float`, else empty.
        exact: the value of a weak integer.
    """

    expr: Expr
    dtype: DType
    weak: str = ""
    exact: int = 0

    @property
    def span(self) -> Span:
        """Where it was written."""
        return self.expr.span


def common(left: DType, right: DType) -> DType:
    """The type in which an operator on two types computes; `bool` with `bool` stays `bool` (comparisons, `min`, `? :`)."""
    if left is right:
        return left
    if left.is_complex or right.is_complex:
        return common(FLOAT32, common(left.part, right.part)).of_pairs
    left, right = (INT32 if item is BOOL else item for item in (left, right))
    if left.is_float and right.is_float:
        if left.bits == right.bits:
            return FLOAT32 if left is not right else left
        return left if left.bits > right.bits else right
    if left.is_float or right.is_float:
        return left if left.is_float else right
    if left.is_signed == right.is_signed:
        return left if left.bits >= right.bits else right
    signed, unsigned = (left, right) if left.is_signed else (right, left)
    needed = max(signed.bits, 2 * unsigned.bits)
    return next((item for item in _SIGNED if item.bits >= needed), INT64)


def promote(left: DType, right: DType) -> DType:
    """The type of `left + right`: as `common`, but `bool` acts as `int32`."""
    found = common(left, right)
    return INT32 if found is BOOL else found


def mixes_signs(left: DType, right: DType) -> bool:
    """Whether `uint64` meets a signed type, for which no common type holds all values (TC236)."""
    pair = {left, right}
    return DType.UINT64 in pair and any(item.is_signed for item in pair)


def fits(source: DType, target: DType) -> bool:
    """Whether every value of `source` is a value of `target`, so that storing it loses nothing."""
    if source is target or source is BOOL:
        return True
    if source.is_complex or target.is_complex:
        return target.is_complex and (source.part is target.part or fits(source.part, target.part))
    if target is BOOL:
        return False
    if source.is_float:
        return target.is_float and target.bits > source.bits
    low, high = source.limits
    if target.is_float:
        return max(-low, high + 1) <= 1 << _FORMATS[target][0]
    return target.limits[0] <= low and high <= target.limits[1]


def holds(value: int, dtype: DType) -> bool:
    """Whether a literal integer can have this type; a floating type rounds it, if it is not too large."""
    if dtype.is_float:
        return not math.isinf(round_to(Fraction(value), dtype))
    if dtype is BOOL:
        return False
    return dtype.limits[0] <= value <= dtype.limits[1]


def smallest_integer(value: int) -> DType:
    """The type of a literal integer that stands alone: the first of `int32`, `int64`, `uint64` that holds it."""
    return next((item for item in (INT32, INT64, DType.UINT64) if holds(value, item)), INT64)


def weak_integer(value: int, span: Span) -> Typed:
    """A weak integer; beyond 64 bits it wraps."""
    dtype = smallest_integer(value)
    return Typed(Const(value if holds(value, dtype) else wrap(value, dtype), dtype, span), dtype, "int", value)


def wrap(value: int, dtype: DType) -> int:
    """`value` modulo the range of an integer type."""
    low, _ = dtype.limits
    return (value - low) % (1 << dtype.bits) + low


def number_in(value: float | bool, dtype: DType) -> int | float | bool:
    """A number as the kernel converts it: integers wrap, a float is cut off and ends at the ends of the type, NaN gives 0."""
    if dtype is BOOL:
        return value != 0
    if dtype.is_float:
        return round_to(Fraction(value), dtype) if math.isfinite(value) else value
    if isinstance(value, float) and not math.isfinite(value):
        return 0 if math.isnan(value) else dtype.limits[value > 0]
    if isinstance(value, float):
        return max(dtype.limits[0], min(int(value), dtype.limits[1]))
    return wrap(int(value), dtype)


def parse_exact(text: str) -> Fraction | None:
    """The exact value of a floating literal; `None` for `inf` and `nan`, and for exponents far outside every type."""
    plain = text.lower()
    if plain in ("inf", "nan"):
        return None
    if plain.startswith("0x"):
        mantissa, _, exponent = plain.removesuffix("f").partition("p")
        whole, _, part = mantissa[2:].partition(".")
        if len(exponent) > 6:
            return None
        return Fraction(int((whole + part) or "0", 16)) * Fraction(2) ** (int(exponent) - 4 * len(part))
    mantissa, _, exponent = plain.removesuffix("f").partition("e")
    if len(exponent.lstrip("+-")) > 4 or len(mantissa) > 1000:
        return None
    return Fraction(plain.removesuffix("f"))


@lru_cache(4096)
def literal_value(text: str, dtype: DType) -> float:
    """A floating literal converted to a floating type, once and directly, to nearest with ties to even."""
    exact = parse_exact(text)
    if exact is not None:
        return round_to(exact, dtype)
    if text in ("inf", "nan"):
        return float(text)
    return _far(text, dtype)


def _far(text: str, dtype: DType) -> float:
    """A literal with very many digits or a huge exponent: 0, infinity, or rounded by way of `float64`."""
    plain = text.lower().removesuffix("f")
    try:
        value = float.fromhex(plain) if plain.startswith("0x") else float(plain)
    except OverflowError:
        value = math.inf
    return value if not math.isfinite(value) else round_to(Fraction(value), dtype)


def round_to(value: Fraction, dtype: DType) -> float:
    """The nearest number of a floating type, ties to even; beyond the largest one infinity. Source: IEEE 754, section 4.3.1."""
    precision, low, high = _FORMATS[dtype]
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, low) - precision + 1)
    scaled = round(size / quantum) * quantum  # round() of a fraction goes to even
    sign = 1 if value > 0 else -1
    if scaled >= Fraction(2) ** (high + 1):
        return sign * math.inf
    return sign * float(scaled)


def number_literal(text: str, value: float | bool, type_name: str | None, span: Span) -> Typed:
    """A literal as the parser read it."""
    if type_name == "bool":
        return Typed(Const(bool(value), BOOL, span), BOOL)
    if type_name is not None:
        dtype = TYPE_NAMES[type_name]
        number = literal_value(text, dtype) if dtype.is_float else wrap(int(value), dtype)
        return Typed(Const(number, dtype, span), dtype)
    if isinstance(value, int):
        return weak_integer(value, span)
    return Typed(WeakFloat(text, span), FLOAT32, "float")


def WeakFloat(text: str, span: Span) -> Call:
    """A weak floating literal inside a weak expression: its text, until the final type is known."""
    return Call("literal " + text, (), FLOAT32, span)


def is_nan(typed: Typed) -> bool:
    """Whether an expression is the literal `nan`, perhaps with a sign or a cast."""
    expr = settle(typed).expr
    while isinstance(expr, Unary | Cast):
        expr = expr.operand
    return isinstance(expr, Const) and isinstance(expr.value, float) and math.isnan(expr.value)


def settle(typed: Typed, dtype: DType | None = None) -> Typed:
    """A typed expression that is no longer weak: of type `dtype`, or of the type it has alone."""
    if not typed.weak:
        return typed
    wanted = dtype or typed.dtype
    if typed.weak == "int":
        if wanted.is_float:
            small = abs(typed.exact) <= 1 << _FORMATS[wanted][0]
            value: int | float = float(typed.exact) if small else round_to(Fraction(typed.exact), wanted)
        else:
            value = number_in(typed.exact, wanted)
        return Typed(Const(value, wanted.compute, typed.span), wanted)
    if not wanted.is_float:
        wanted = typed.dtype  # a fraction keeps its own type; that it does not fit is reported elsewhere
    return Typed(_retype(typed.expr, wanted), wanted)


def _retype(expr: Expr, dtype: DType) -> Expr:
    """A weak floating expression with its literals converted to `dtype`; operations are those of the type's arithmetic."""
    compute = dtype.compute
    match expr:
        case Call() if expr.function.startswith("literal "):
            return Const(literal_value(expr.function.removeprefix("literal "), dtype), compute, expr.span)
        case Call():
            return replace(expr, arguments=tuple(_retype(item, dtype) for item in expr.arguments), dtype=compute)
        case Unary():
            return replace(expr, operand=_retype(expr.operand, dtype), dtype=compute)
        case Binary():
            return replace(expr, left=_retype(expr.left, dtype), right=_retype(expr.right, dtype), dtype=compute)
        case Select():
            then, otherwise = _retype(expr.then, dtype), _retype(expr.otherwise, dtype)
            return replace(expr, then=then, otherwise=otherwise, dtype=compute)
        case Const():
            return Const(round_to(Fraction(expr.value), dtype), compute, expr.span) if expr.dtype is not BOOL else expr
        case Cast():
            return replace(expr, dtype=compute)
        case Size() | IndexVar() | Read():
            return expr
    assert_never(expr)


def weak_float(typed: Typed) -> Typed:
    """A weak operand as a weak float."""
    if typed.weak == "float":
        return typed
    return Typed(WeakFloat(str(typed.exact), typed.span), FLOAT32, "float")


def unify(left: Typed, right: Typed, bool_is_int: bool) -> tuple[Typed, Typed, DType]:
    """Both operands, not weak, and the type in which to compute. At least one of them is not weak.

    Args:
        bool_is_int: `bool` operands act as `int32`.
    """
    if left.weak and right.weak:
        left, right = settle(left), settle(right)
    if left.weak:
        left = _meet(left, right.dtype.part)
    elif right.weak:
        right = _meet(right, left.dtype.part)
    dtype = promote(left.dtype, right.dtype) if bool_is_int else common(left.dtype, right.dtype)
    return left, right, dtype


def _meet(weak: Typed, other: DType) -> Typed:
    """A weak operand beside one of type `other`."""
    if weak.weak == "int":
        return settle(weak, other if holds(weak.exact, other) else None)
    return settle(weak, other if other.is_float and _within(weak.expr, other) else FLOAT32)


def _within(weak: Expr, dtype: DType) -> bool:
    """Whether the literals of a weak float are not too large for a 16-bit type; `inf` is in every type."""
    if dtype.compute is dtype:
        return True
    texts = (node.function.removeprefix("literal ") for node in walk(weak) if isinstance(node, Call))
    exact = (parse_exact(text) for text in texts if text[:1].isdigit() or text[:1] == ".")
    return all(value is not None and not math.isinf(round_to(value, dtype)) for value in exact)


def convert(typed: Typed, dtype: DType) -> Typed:
    """An operand converted to the type of an operation (implicit: never to a 16-bit float type from a wider one)."""
    if dtype.is_complex:
        re, im = parts(typed.expr) if typed.dtype.is_complex else (convert(typed, dtype.part).expr, None)
        return Typed(paired(cast(re, dtype.part), cast(im or Const(0.0, dtype.part), dtype.part), typed.span), dtype)
    if typed.weak:
        return settle(typed, dtype)
    if typed.expr.dtype is dtype.compute:
        return Typed(typed.expr, dtype)
    return Typed(cast(typed.expr, dtype.compute), dtype)


def cast(expr: Expr, dtype: DType) -> Expr:
    """`expr` as `dtype`; constants are converted now where the value is certain."""
    if expr.dtype is dtype:
        return expr
    if isinstance(expr, Const):
        if dtype.is_float:
            finite = not isinstance(expr.value, float) or math.isfinite(expr.value)
            return Const(round_to(Fraction(expr.value), dtype) if finite else expr.value, dtype, expr.span)
        if expr.dtype.is_integer and holds(int(expr.value), dtype):
            return Const(int(expr.value), dtype, expr.span)
    return Cast(expr, dtype, expr.span)


def explicit_cast(typed: Typed, dtype: DType, span: Span) -> Typed:
    """`int8(x)` as the user wrote it: to 16-bit floats with rounding."""
    if typed.weak and (typed.weak == "float") == dtype.is_float:
        return Typed(replace(settle(typed, dtype).expr, span=span), dtype)
    if typed.weak == "int" and (dtype.is_float or holds(typed.exact, dtype)):
        return Typed(replace(settle(typed, dtype).expr, span=span), dtype)
    typed = settle(typed)
    if typed.dtype is dtype and _is_of_type(typed.expr, dtype):
        return Typed(replace(typed.expr, span=span), dtype)
    if dtype.compute is not dtype:
        return Typed(Cast(Cast(typed.expr, dtype, span), FLOAT32, span), dtype)
    if typed.expr.dtype is dtype and typed.dtype is not dtype:  # float32(h) of a 16-bit float: already computed in it
        return Typed(replace(typed.expr, span=span), dtype)
    return Typed(Cast(typed.expr, dtype, span), dtype)


def _is_of_type(expr: Expr, dtype: DType) -> bool:
    """Whether a value is one of the type before it is stored: no integer that may wrap around, and no float still to be rounded."""
    if dtype.is_integer:
        return not may_wrap(expr)
    while isinstance(expr, Cast):
        expr = expr.operand
    return dtype.compute is dtype or isinstance(expr, Read | Const)


def changes_where_stored(value: Expr, dtype: DType) -> bool:
    """Whether an element that is stored may differ from the value that was computed: it is rounded, or wraps around."""
    return dtype.compute is not dtype if dtype.is_float else dtype.is_integer and may_wrap(value)


def without_idle_casts(expr: Expr) -> Expr:
    """Without casts to the type that the operand has: they count where arithmetic does not wrap, in subscripts and comparisons."""
    match expr:
        case Read() | Const() | Size() | IndexVar():
            return expr
        case Binary() if expr.op in COMPARISONS:
            return expr
        case Cast() if expr.operand.dtype is expr.dtype:
            return without_idle_casts(expr.operand)
        case _:
            return rebuild(expr, tuple([without_idle_casts(child) for child in children(expr)]))


def as_index(expr: Expr) -> Expr:
    """An index expression in exact 64-bit arithmetic.

    Integer arithmetic is widened from the leaves up, so that nothing wraps. A floating expression truncates toward zero; where it
    stands inside `min` and `max`, these are applied to the converted values, because they pass NaN on and a size may be rounded up
    as a float. Only so is a clamped read safe for every value.
    """
    if expr.dtype.is_float:
        return _truncated(expr)
    return _widened(expr)


def as_compared(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """The sides of a comparison of integers, as numbers: where arithmetic may wrap around, it is done in a wider type.

    A guard then compares what the subscript behind it is, which is never wrapped: in `s - 1 >= 0 ? X(s - 1) : 0` a `uint8` 0 is
    stopped. What needs more than 64 bits wraps; the ranges believe no such comparison.
    """
    parts: list[tuple[int, int, Expr]] = []
    for side in (left, right):
        _interval(side, parts, Leaves())
    nodes = [(low, high, part.dtype) for low, high, part in parts]
    if not any(dtype.bits < 64 and not _inside(low, high, dtype) for low, high, dtype in nodes):
        return left, right
    low, high = min(node[0] for node in nodes), max(node[1] for node in nodes)
    wide = next((dtype for dtype in (*_SIGNED, DType.UINT64) if _inside(low, high, dtype)), INT64)
    if wide is INT64 and any(dtype is DType.UINT64 for _, _, dtype in nodes):
        first, second = _with_exact_parts(left), _with_exact_parts(right)
        return _below(first, second), _below(second, first)
    return _widened(left, wide), _widened(right, wide)


def comparison(op: str, left: Typed, right: Typed, dtype: DType, span: Span) -> Expr:
    """A comparison of operands that meet in `dtype`; of integers, it compares the numbers."""
    if dtype is INT64:  # no type holds all values of `uint64` and of a signed type
        left, right = _of_exact_parts(left), _of_exact_parts(right)
    sides = convert(left, dtype).expr, convert(right, dtype).expr
    first, second = as_compared(*sides) if dtype.is_integer else sides
    if dtype is INT64 and left.expr.dtype is DType.UINT64:
        return unsigned_comparison(op, left.expr, second, span)
    if dtype is INT64 and right.expr.dtype is DType.UINT64:
        return unsigned_comparison(TURNED[op], right.expr, first, span)
    return Binary(op, first, second, BOOL, span)


def unsigned_comparison(op: str, unsigned: Expr, signed: Expr, span: Span) -> Expr:
    """A `uint64` compared with an `int64`: as `int64` where that is never the largest one, else as `uint64`, after the sign."""
    if limits_of(signed)[1] < INT64.limits[1]:
        return Binary(op, _below(unsigned, signed), signed, BOOL, span)
    numbers = Binary(op, unsigned, cast(signed, DType.UINT64), BOOL, span)
    if op in ("<", "<=", "=="):  # false of a negative number
        return Binary("&&", Binary(">=", signed, Const(0, INT64), BOOL, span), numbers, BOOL, span)
    return Binary("||", Binary("<", signed, Const(0, INT64), BOOL, span), numbers, BOOL, span)


def _of_exact_parts(side: Typed) -> Typed:
    """A side of a comparison before it becomes an `int64`, as a `uint64` does beside one: its narrower parts do not wrap."""
    return replace(side, expr=_with_exact_parts(side.expr)) if side.dtype is DType.UINT64 else side


def _with_exact_parts(side: Expr) -> Expr:
    """A side that is an unsigned number of 64 bits, or is compared with one: narrower arithmetic has 64 bits, and may be signed."""
    match side:
        case Cast() if _only_widens(side) and side.dtype is DType.UINT64:
            return _exact(side.operand) or side
        case Select():
            return Select(side.condition, _part(side.then), _part(side.otherwise), side.dtype, side.span)
        case Binary() | Unary() | Call() if side.dtype.is_integer:
            return rebuild(side, tuple([_part(child) for child in children(side)]))
        case _:
            return side


def _part(expr: Expr) -> Expr:
    """An operand of arithmetic in the type that it has there."""
    return cast(_with_exact_parts(expr), expr.dtype)


def _exact(expr: Expr) -> Expr | None:
    """Arithmetic that leaves its type, in one of 64 bits; `None` for other expressions."""
    nodes: list[tuple[int, int, Expr]] = []
    _interval(expr, nodes, Leaves())
    if all(_inside(low, high, part.dtype) for low, high, part in nodes):
        return None
    unsigned = all(_inside(low, high, DType.UINT64) for low, high, _ in nodes)
    signed = all(_inside(low, high + 1, INT64) for low, high, _ in nodes)
    return _widened(expr, DType.UINT64 if unsigned and not signed else INT64)


def _below(side: Expr, other: Expr) -> Expr:
    """A `uint64` to compare with an `int64` that is never the largest one: larger numbers are that one."""
    if side.dtype is not DType.UINT64 or other.dtype is not INT64:
        return side
    most = Const(INT64.limits[1], DType.UINT64)
    return Cast(Binary("min", side, most, DType.UINT64, side.span), INT64, side.span)


@dataclass(frozen=True, slots=True)
class Leaves:
    """How large the parts of an integer expression are.

    Attributes:
        numbers: the absolute value of the largest number that a tensor or a scalar has; `None`: that of its type.
        sizes: the largest size or index. An array has fewer elements than memory has bytes, or repeats them.
        known: the smallest and the largest value of sizes, indices and scalars.
    """

    numbers: int | None = None
    sizes: int = 1 << 48
    known: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


def may_wrap(expr: Expr, leaves: Leaves = Leaves()) -> bool:
    """Whether arithmetic of an integer expression may leave its type; indices and sizes are far from the ends of theirs."""
    nodes: list[tuple[int, int, Expr]] = []
    _interval(expr, nodes, leaves)
    return any(not _inside(low, high, part.dtype) for low, high, part in nodes)


def intervals(expr: Expr, leaves: Leaves) -> dict[int, tuple[int, int]]:
    """The smallest and the largest number that each integer part, by its `id`, is without wrapping, as far as its parts tell."""
    found: dict[int, tuple[int, int]] = {}
    for node in walk(expr):
        if node.dtype.is_integer and id(node) not in found:
            nodes: list[tuple[int, int, Expr]] = []
            _interval(node, nodes, leaves)
            found.update((id(part), (low, high)) for low, high, part in nodes)
    return found


def limits_of(expr: Expr) -> tuple[int, int]:
    """The smallest and the largest number that an integer expression can be, whatever its data."""
    return expr.dtype.limits if may_wrap(expr) else _interval(expr, [], Leaves())


def _inside(low: int, high: int, dtype: DType) -> bool:
    return dtype.limits[0] <= low and high <= dtype.limits[1]


def _interval(expr: Expr, nodes: list[tuple[int, int, Expr]], leaves: Leaves) -> tuple[int, int]:
    """The smallest and the largest number that an integer expression is without wrapping; `nodes` gets those of all its parts."""
    low, high = _interval_of_parts(expr, nodes, leaves)
    low, high = max(low, -_FAR), min(high, _FAR)
    nodes.append((low, high, expr))
    return low, high


_FAR = 1 << 65


def _interval_of_parts(expr: Expr, nodes: list[tuple[int, int, Expr]], leaves: Leaves) -> tuple[int, int]:
    match expr:
        case Const():
            return int(expr.value), int(expr.value)
        case Size():
            return leaves.known.get(expr.name, (0, leaves.sizes))
        case IndexVar():
            return leaves.known.get(expr.name, (-leaves.sizes, leaves.sizes))
        case Read() if not expr.indices and expr.tensor in leaves.known:
            return leaves.known[expr.tensor]
        case Unary() if expr.op == "-":
            low, high = _interval(expr.operand, nodes, leaves)
            return -high, -low
        case Binary() if expr.dtype.is_integer:
            return _interval_of(expr.op, _interval(expr.left, nodes, leaves), _interval(expr.right, nodes, leaves))
        case Select():
            (a, b), (c, d) = _interval(expr.then, nodes, leaves), _interval(expr.otherwise, nodes, leaves)
            return min(a, c), max(b, d)
        case Call() if expr.function == "abs":
            low, high = _interval(expr.arguments[0], nodes, leaves)
            return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        case Call() if expr.function == "popcount":
            return 0, expr.arguments[0].dtype.bits
        case Call() if expr.function in bits.OPERATORS:
            left, right = (_interval(argument, nodes, leaves) for argument in expr.arguments)
            return bits.bounds(expr.function, left, right)
        case Cast() if _only_widens(expr):
            return _interval(expr.operand, nodes, leaves)
        case Read() if leaves.numbers is not None and expr.dtype.is_integer:
            low, high = expr.dtype.limits
            return max(low, -leaves.numbers), min(high, leaves.numbers)
        case _:
            return expr.dtype.limits


def _interval_of(op: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    (a, b), (c, d) = left, right
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case "min" | "max":
            pick = min if op == "min" else max
            return pick(a, c), pick(b, d)
        case "//" if c > 0:
            return min(a // c, a // d), max(b // c, b // d)
        case "//":
            most = max(abs(a), abs(b))
            return -most, most
        case _ if c > 0:
            return 0, d - 1
        case _:
            most = max(abs(c), abs(d))
            return -most, most


def _truncated(expr: Expr) -> Expr:
    match expr:
        case Binary() if expr.op in ("min", "max"):
            return Binary(expr.op, _truncated(expr.left), _truncated(expr.right), INT64, expr.span)
        case Cast() if expr.operand.dtype.is_integer:
            return _widened(expr.operand)
        case Cast() if expr.operand.dtype.is_float and fits(expr.operand.dtype, expr.dtype):
            return _truncated(expr.operand)
        case Const() if math.isfinite(expr.value):
            return Const(max(INT64.limits[0], min(int(expr.value), INT64.limits[1])), INT64, expr.span)
        case _:
            return Cast(expr, INT64, expr.span)


def _widened(expr: Expr, dtype: DType = INT64) -> Expr:
    """An integer expression whose arithmetic is done in `dtype`, from the leaves up."""
    match expr:
        case Const():
            return cast(expr, dtype)
        case Binary() if expr.op in ("+", "-", "*", "//", "%", "min", "max"):
            return Binary(expr.op, _widened(expr.left, dtype), _widened(expr.right, dtype), dtype, expr.span)
        case Unary() if expr.op == "-":
            return Unary("-", _widened(expr.operand, dtype), dtype, expr.span)
        case Select():
            then, otherwise = _widened(expr.then, dtype), _widened(expr.otherwise, dtype)
            return Select(expr.condition, then, otherwise, dtype, expr.span)
        case Call() if expr.function in ("abs", "sign", *bits.OPERATORS):
            return Call(expr.function, tuple(_widened(item, dtype) for item in expr.arguments), dtype, expr.span)
        case Cast() if _only_widens(expr):
            return _widened(expr.operand, dtype)
        case _:
            return expr if expr.dtype is dtype else Cast(expr, dtype, expr.span)


def _only_widens(expr: Cast) -> bool:
    """Whether a cast of an integer keeps what its parts are without wrapping; one to their own type is there to wrap."""
    own = expr.operand.dtype
    return own.is_integer and own is not expr.dtype and fits(own, expr.dtype)
