"""Operators on the bits of integers: `~ << >> & ^^ |`.

What is a sum, product, quotient or remainder becomes one, so that every later stage knows how large it is: `~x` is `-1 - x`,
`x & 15` is `x % 16`, `x >> 4` is `x / 16` rounded down, `x << 4` is `x * 16`. All else is a `Call` of a name in `FUNCTIONS`.

Worked example: `combined("&", x, Const(15, INT32), INT32)` is `Binary("%", x, Const(16, INT32), INT32)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tc_jupyter.diagnostics import NO_SPAN, Span

from .expr import Binary, Call, Cast, Const, DType, Expr

FUNCTIONS = {"&": "bitand", "^^": "bitxor", "|": "bitor", "<<": "shiftleft", ">>": "shiftright"}
"""The function of each operator with two operands, which has operands of one integer type."""
OPERATORS = {function: operator for operator, function in FUNCTIONS.items()}
SHIFTS = ("<<", ">>")


def inverted(operand: Expr, span: Span) -> Expr:
    """`~x`: all bits of an integer the other way round."""
    return Binary("-", Const(_ONES[operand.dtype], operand.dtype, span), operand, operand.dtype, span)


def combined(operator: str, left: Expr, right: Expr, span: Span = NO_SPAN) -> Expr:
    """Two integers of one type under an operator."""
    dtype = left.dtype
    if operator == "&" and isinstance(left, Const):
        left, right = right, left
    if isinstance(right, Const) and not isinstance(left, Const):
        number = int(right.value)
        if operator in SHIFTS and number == 0:
            return left
        if operator in SHIFTS and number > 0 and 1 << number <= dtype.limits[1]:
            return Binary("*" if operator == "<<" else "//", left, Const(1 << number, dtype, right.span), dtype, span)
        if operator == "&" and number == _ONES[dtype]:
            return left
        if operator == "&" and number >= 0 and number & (number + 1) == 0 and number < dtype.limits[1]:
            return Binary("%", left, Const(number + 1, dtype, right.span), dtype, span)
    return Call(FUNCTIONS[operator], (left, right), dtype, span)


def counted(operand: Expr, span: Span = NO_SPAN) -> Expr:
    """How many bits of an integer are 1: `popcount`, whose operand has 32 or 64 bits and no sign."""
    width = operand.dtype.bits
    own = next(dtype for dtype in (DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64) if dtype.bits == width)
    for dtype in (own, DType.UINT64 if width == 64 else DType.UINT32):
        operand = operand if operand.dtype is dtype else Cast(operand, dtype, operand.span)
    return Call("popcount", (operand,), DType.INT32, span)


def counts(values: Any) -> np.ndarray[Any, Any]:
    """How many bits of each of some integers that are not negative are 1."""
    bytes_of = np.asarray(values).astype(np.uint64)[..., None].view(np.uint8)
    return np.unpackbits(bytes_of, axis=-1).sum(-1).astype(np.int64)


_ONES = {dtype: -1 if dtype.is_signed else dtype.limits[1] for dtype in DType if dtype.is_integer}
"""The integer of each type all of whose bits are set."""


def value_of(operator: str, left: int, right: int, bits: int = 64) -> int:
    """The value for two integers, before it wraps; a shift by the width or more, or by a negative number, shifts everything out."""
    match operator:
        case "&":
            return left & right
        case "|":
            return left | right
        case "^^":
            return left ^ right
        case "<<":
            return left << right if 0 <= right < bits else 0
        case _:
            return left >> (right if 0 <= right < bits else bits)


def on_arrays(function: str, left: Any, right: Any) -> Any:
    """The values of a function on arrays of NumPy, whose type says how wide a shift is; integers of Python have 64 bits."""
    left, right = np.asarray(left), np.asarray(right)
    if function in _ON_ARRAYS:
        return _ON_ARRAYS[function](left, right)
    width = 8 * left.dtype.itemsize if left.dtype.kind in "iu" else 64
    out = (right < 0) | (right >= width)
    count = np.where(out, np.zeros_like(right), right)
    rest = np.where(left < 0, np.zeros_like(left) - 1, np.zeros_like(left)) if function == "shiftright" else left * 0
    return np.where(out, rest, left << count if function == "shiftleft" else left >> count)


_ON_ARRAYS = {"bitand": np.bitwise_and, "bitxor": np.bitwise_xor, "bitor": np.bitwise_or}


def bounds(function: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """The smallest and the largest value of a function on two integers that lie in these intervals, both ends included."""
    (a, b), (c, d) = left, right
    match function:
        case "bitand" | "bitor" | "bitxor" if a == b and c == d:
            value = value_of(OPERATORS[function], a, c)
            return value, value
        case "bitand" if a >= 0 or c >= 0:
            return 0, min(end for low, end in (left, right) if low >= 0)
        case "shiftright":
            least, most = (0, 64) if c < 0 else (min(c, 64), min(d, 64))
            return min(a >> least, a >> most), max(b >> least, b >> most)
        case "shiftleft" if c >= 0 and d < 64:
            corners = (a << c, a << d, b << c, b << d)
            return min(corners), max(corners)
        case "shiftleft":
            return min(0, a << 64), max(0, b << 64)
        case _:
            width = max(max(end, ~end).bit_length() for end in (a, b, c, d))
            return 0 if a >= 0 and c >= 0 else -(1 << width), (1 << width) - 1
