"""Element types and constants of the language in CUDA C++ without headers.

Worked example: the `float32` constant 0.1 is `0.1f`, negative infinity is `__int_as_float(0xff800000)`.
"""

from __future__ import annotations

import math
import struct

from tc_jupyter.program import DType

C_TYPES = {
    DType.BOOL: "unsigned char",
    DType.INT8: "signed char",
    DType.INT16: "short",
    DType.INT32: "int",
    DType.INT64: "long long",
    DType.UINT8: "unsigned char",
    DType.UINT16: "unsigned short",
    DType.UINT32: "unsigned int",
    DType.UINT64: "unsigned long long",
    DType.FLOAT16: "unsigned short",
    DType.BFLOAT16: "unsigned short",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
}
"""Type of a stored element: a `bool` is a byte, a 16-bit float its bits."""


def value_type(dtype: DType) -> str:
    """Type of a value in an expression; differs from the stored one only for `bool`."""
    return "bool" if dtype is DType.BOOL else C_TYPES[dtype]


def constant(value: float | bool, dtype: DType) -> str:
    """A C++ constant of exactly this value and type."""
    match dtype:
        case DType.BOOL:
            return "true" if value else "false"
        case DType.FLOAT16 | DType.BFLOAT16:
            return f"(unsigned short)0x{bits16(float(value), dtype):04x}"
        case DType.FLOAT32:
            return _float32(float(value))
        case DType.FLOAT64:
            return _float64(float(value))
        case _:
            return _integer(int(value), dtype)


def bits16(value: float, dtype: DType) -> int:
    """The bits of a value rounded to `float16` or `bfloat16` (nearest, ties to even; overflow gives infinity)."""
    if dtype is DType.FLOAT16:
        try:
            return int.from_bytes(struct.pack("<e", value), "little")
        except OverflowError:
            return 0xFC00 if value < 0 else 0x7C00
    if math.isnan(value):
        return 0x7FC0
    (bits,) = struct.unpack("<I", struct.pack("<f", _to_float32(value)))
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def _to_float32(value: float) -> float:
    """`value` rounded to single precision."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _float32(value: float) -> str:
    value = _to_float32(value)
    if math.isnan(value):
        return "__int_as_float(0x7fc00000)"
    if math.isinf(value):
        return "__int_as_float(0x7f800000)" if value > 0 else "__int_as_float(0xff800000)"
    text = next(text for digits in range(1, 10) if _to_float32(float(text := f"{value:.{digits}g}")) == value)
    return (text if "e" in text or "." in text else text + ".0") + "f"


def _float64(value: float) -> str:
    if math.isnan(value):
        return "__longlong_as_double(0x7ff8000000000000ll)"
    if math.isinf(value):
        return f"__longlong_as_double(0x{'7' if value > 0 else 'f'}ff0000000000000ll)"
    return repr(value)


def _integer(value: int, dtype: DType) -> str:
    low, high = dtype.limits
    value = (value - low) % (high - low + 1) + low
    suffix = {DType.INT64: "ll", DType.UINT32: "u", DType.UINT64: "ull"}.get(dtype, "")
    if dtype.is_signed and value == low and dtype.bits >= 32:
        return f"(-{high}{suffix} - 1)"
    return f"{value}{suffix}"
