"""What the arithmetic instructions compute, as functions on NumPy arrays of one element per lane.

Nothing here knows lanes that are switched off, registers or PTX text. Floating point follows IEEE 754 with one rounding;
`fma.rn.f32` is evaluated in double precision and rounded once more, which differs in the last bit about once in 10**9.

Example:
    >>> bool(round_bf16(np.float32([1.00390625]))[0] == 0x3F80)
    True

Source: PTX ISA, sections "Integer arithmetic", "Floating point", "Data movement and conversion".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
U8, U16, U32, U64 = np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64)
I8, I16, I32, I64 = np.dtype(np.int8), np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64)
BOOL = np.dtype(np.bool_)

INTEGERS = {
    "s8": I8,
    "u8": U8,
    "b8": U8,
    "s16": I16,
    "u16": U16,
    "b16": U16,
    "s32": I32,
    "u32": U32,
    "b32": U32,
    "s64": I64,
    "u64": U64,
    "b64": U64,
}

# --- 16-bit floats


def widen_bf16(bits: Array) -> Array:
    """bfloat16 bits (uint16) -> float32, exact."""
    return (bits.astype(U32) << np.uint32(16)).view(F32)


def round_bf16(x: Array, mode: str = "rn") -> Array:
    """float32 -> bfloat16 bits (uint16), to nearest even or towards zero."""
    bits = np.ascontiguousarray(x, F32).view(U32)
    if mode == "rn":
        bumped = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    else:
        bumped = bits
    return np.where(np.isnan(x), np.uint32(0x7FFF0000), bumped).astype(U32).__rshift__(np.uint32(16)).astype(U16)


def round_tf32(x: Array, mode: str = "rna") -> Array:
    """float32 -> the nearest value with 10 bits of mantissa, as float32; ties away from zero (`rna`) or to even (`rn`)."""
    bits = np.ascontiguousarray(x, F32).view(U32)
    if mode == "rna":
        bumped = bits + np.uint32(0x1000)
    elif mode == "rn":
        bumped = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    else:
        bumped = bits
    kept = bumped & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), kept, bits).astype(U32).view(F32)


def flush(x: Array) -> Array:
    """Subnormal float32 -> zero of the same sign."""
    return np.where(np.abs(x) < np.float32(1.1754944e-38), np.copysign(np.zeros_like(x), x), x)


def saturate(x: Array) -> Array:
    """Clamp to [0, 1]; NaN becomes 0."""
    return np.where(np.isnan(x), x.dtype.type(0), np.clip(x, x.dtype.type(0), x.dtype.type(1)))


# --- rounding


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and the exact error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product of doubles and the exact error (Veltkamp, Dekker); the error is 0 near overflow."""
    p = a * b
    splitter = np.float64(134217729.0)
    big_a, big_b = a * splitter, b * splitter
    a_high = big_a - (big_a - a)
    b_high = big_b - (big_b - b)
    a_low, b_low = a - a_high, b - b_high
    e = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    return p, np.where(np.isfinite(e), e, 0.0)


def step(rounded: Array, error: Array, mode: str) -> Array:
    """Move a result of rounding to nearest to the directed rounding `mode`; `error` has the sign of exact - rounded."""
    one = rounded.dtype.type
    down = np.nextafter(rounded, one(-np.inf))
    up = np.nextafter(rounded, one(np.inf))
    finite = np.isfinite(rounded)
    if mode == "rm":
        return np.where((error < 0) & finite, down, rounded)
    if mode == "rp":
        return np.where((error > 0) & finite, up, rounded)
    toward_zero = np.where(rounded > 0, error < 0, (rounded < 0) & (error > 0)) & finite
    return np.where(toward_zero, np.where(rounded > 0, down, up), rounded)


def narrow(high: Array, low: Array | float, dtype: np.dtype[Any], mode: str) -> Array:
    """Round the exact sum `high + low` of doubles (|low| below one unit of high) to float32 or float16."""
    rounded = high.astype(dtype)
    if mode in ("rn", ""):
        return rounded
    difference = high - rounded.astype(F64)
    adjusted = step(rounded, np.where(difference != 0, difference, low), mode)
    # Overflow to infinity happens only away from zero; towards zero stays at the largest finite number.
    limit = np.finfo(dtype).max
    over = np.isinf(rounded) & np.isfinite(high)
    keep = (rounded > 0) if mode == "rm" else (rounded < 0) if mode == "rp" else np.ones_like(over)
    return np.where(over & keep, np.copysign(dtype.type(limit), rounded), adjusted)


def add(a: Array, b: Array, mode: str) -> Array:
    """A + b with one rounding, for float32 and float64."""
    if mode in ("rn", ""):
        return a + b
    if a.dtype == F32:
        s, e = two_sum(a.astype(F64), b.astype(F64))
        return narrow(s, e, F32, mode)
    s, e = two_sum(a, b)
    return step(s, e, mode)


def multiply(a: Array, b: Array, mode: str) -> Array:
    """A * b with one rounding, for float32 and float64."""
    if mode in ("rn", ""):
        return a * b
    if a.dtype == F32:
        return narrow(a.astype(F64) * b.astype(F64), 0.0, F32, mode)
    p, e = two_product(a, b)
    return step(p, e, mode)


def fused(a: Array, b: Array, c: Array, mode: str) -> Array:
    """A * b + c with one rounding (see the module docstring for float32)."""
    if a.dtype == F32:
        product = a.astype(F64)
        product *= b
        if mode in ("rn", ""):
            product += c
            return product.astype(F32)
        s, e = two_sum(product, c.astype(F64))
        return narrow(s, e, F32, mode)
    p, pe = two_product(a, b)
    s, se = two_sum(p, c)
    low = pe + se
    result = np.where(np.isfinite(s), s + low, p + c)
    if mode in ("rn", ""):
        return result
    _, rest = two_sum(s, low)
    return step(result, rest, mode)


def divide(a: Array, b: Array, mode: str) -> Array:
    """A / b with one rounding."""
    q = a / b
    if mode in ("rn", ""):
        return q
    return step(q, residual(a, q, b) * np.sign(b), mode)


def residual(a: Array, q: Array, b: Array) -> Array:
    """The sign of a - q*b, without rounding the product."""
    if a.dtype == F32:
        return np.sign(a.astype(F64) - q.astype(F64) * b.astype(F64))
    p, e = two_product(q, b)
    return np.sign((a - p) - e)


def square_root(a: Array, mode: str) -> Array:
    """The square root of a with one rounding."""
    q = np.sqrt(a)
    return q if mode in ("rn", "") else step(q, residual(a, q, q), mode)


def float_min(a: Array, b: Array, nan: bool) -> Array:
    """Minimum; -0 is below +0; NaN is returned only with `nan` (the `.NaN` variant) or when both are NaN."""
    result = np.where(a == b, np.where(np.signbit(a), a, b), np.fmin(a, b))
    return np.where(np.isnan(a) | np.isnan(b), np.minimum(a, b), result) if nan else result


def float_max(a: Array, b: Array, nan: bool) -> Array:
    """Maximum; +0 is above -0; NaN as in `float_min`."""
    result = np.where(a == b, np.where(np.signbit(a), b, a), np.fmax(a, b))
    return np.where(np.isnan(a) | np.isnan(b), np.maximum(a, b), result) if nan else result


# --- conversions

_ROUND: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def round_to_integral(x: Array, mode: str) -> Array:
    """Round to an integral value, as a float of the same type."""
    return _ROUND[mode](x)


def float_to_int(x: Array, dtype: np.dtype[Any], mode: str, from_f64: bool) -> Array:
    """Round, then clamp to the range of `dtype`; NaN is 0, except for f64 or a 64-bit result, where it is the sign bit."""
    rounded = _ROUND[mode](x.astype(F64))
    info = np.iinfo(dtype)
    inside = (rounded >= float(info.min)) & (rounded < float(info.max) + (1.0 if info.bits < 64 else 0.0))
    result = np.where(inside, rounded, 0.0).astype(dtype)
    result = np.where(rounded >= float(info.max), dtype.type(info.max), result)
    result = np.where(rounded < float(info.min), dtype.type(info.min), result)
    special = info.bits == 64 or from_f64
    nan = (info.min if info.min < 0 else 1 << (info.bits - 1)) if special else 0
    return np.where(np.isnan(x), dtype.type(nan), result).astype(dtype)


def int_to_float(x: Array, dtype: np.dtype[Any], mode: str) -> Array:
    """Integer -> float with the given rounding."""
    rounded = x.astype(dtype)
    if mode in ("rn", ""):
        return rounded
    # Two halves of 32 bits are exact doubles, and so is their sum as a pair.
    wide = x.astype(I64) if x.dtype.kind == "i" else x.astype(U64)
    upper = (wide >> wide.dtype.type(32)).astype(F64) * 4294967296.0
    lower = (wide & wide.dtype.type(0xFFFFFFFF)).astype(F64)
    high, low = two_sum(upper, lower)
    return narrow(high, low, F32, mode) if dtype == F32 else step(high, low, mode)


def clamp_int(x: Array, dtype: np.dtype[Any]) -> Array:
    """Integer -> integer of another type, clamped to its range."""
    info, source = np.iinfo(dtype), np.iinfo(x.dtype)
    low, high = max(info.min, source.min), min(info.max, source.max)
    return np.clip(x, x.dtype.type(low), x.dtype.type(high)).astype(dtype)


# --- integers


def mul_high(a: Array, b: Array) -> Array:
    """The upper half of the product of two integers of the same type."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = I64 if a.dtype.kind == "i" else U64
        return (a.astype(wide) * b.astype(wide) >> wide.type(bits)).astype(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = a.view(U64), b.view(U64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    t = x1 * y0 + (x0 * y0 >> half)
    u = x0 * y1 + (t & low)
    high = x1 * y1 + (t >> half) + (u >> half)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
        return high.view(I64)
    return high


def divide_int(a: Array, b: Array) -> Array:
    """Quotient towards zero; division by zero gives all ones, as the hardware does."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // safe
        return np.where(zero, a.dtype.type(np.iinfo(a.dtype).max), quotient)
    minimum = np.iinfo(a.dtype).min
    wrap = (a == minimum) & (b == -1)
    safe = np.where(wrap, b.dtype.type(1), safe)
    quotient = np.floor_divide(a, safe)
    inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
    quotient = quotient + inexact.astype(a.dtype)
    return np.where(zero, a.dtype.type(-1), quotient)


def remainder_int(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend; by zero it is the dividend."""
    zero = (b == 0) | (b == b.dtype.type(-1)) if a.dtype.kind == "i" else b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    result = np.fmod(a, safe)
    return np.where(b == 0, a, result)


def shift_left(a: Array, count: Array) -> Array:
    """Shift left; counts beyond the width give 0."""
    bits = a.dtype.itemsize * 8
    kept = a << np.minimum(count, np.uint32(bits - 1)).astype(a.dtype)
    return np.where(count >= bits, a.dtype.type(0), kept)


def shift_right(a: Array, count: Array) -> Array:
    """Shift right, with the sign for signed types; counts are clamped to the width."""
    bits = a.dtype.itemsize * 8
    kept = a >> np.minimum(count, np.uint32(bits - 1)).astype(a.dtype)
    return kept if a.dtype.kind == "i" else np.where(count >= bits, a.dtype.type(0), kept)


_ONES = np.array([bin(value).count("1") for value in range(256)], np.uint32)


def population(a: Array) -> Array:
    """Number of ones, as uint32."""
    size = a.dtype.itemsize
    return _ONES[np.ascontiguousarray(a).view(U8).reshape(-1, size)].sum(axis=1, dtype=np.uint32)


def smear(a: Array) -> Array:
    """Set every bit below the highest one."""
    bits = a.dtype.itemsize * 8
    shift = 1
    while shift < bits:
        a = a | (a >> a.dtype.type(shift))
        shift *= 2
    return a


def leading_zeros(a: Array) -> Array:
    """Number of leading zeros, as uint32."""
    return np.uint32(a.dtype.itemsize * 8) - population(smear(a))


def find_highest(a: Array, shift_amount: bool) -> Array:
    """`bfind`: position of the highest bit that differs from the sign, 0xffffffff when there is none."""
    bits = a.dtype.itemsize * 8
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    value = a.view(unsigned)
    if a.dtype.kind == "i":
        value = np.where(a < 0, ~value, value)
    zeros = leading_zeros(value)
    none = zeros == bits
    found = zeros if shift_amount else np.uint32(bits - 1) - zeros
    return np.where(none, np.uint32(0xFFFFFFFF), found).astype(U32)


def reverse_bits(a: Array) -> Array:
    """Bits in reverse order."""
    size = a.dtype.itemsize
    swapped = np.ascontiguousarray(a).view(U8).reshape(-1, size)[:, ::-1]
    x = np.ascontiguousarray(swapped)
    x = ((x & np.uint8(0x55)) << np.uint8(1)) | ((x >> np.uint8(1)) & np.uint8(0x55))
    x = ((x & np.uint8(0x33)) << np.uint8(2)) | ((x >> np.uint8(2)) & np.uint8(0x33))
    x = (x << np.uint8(4)) | (x >> np.uint8(4))
    return x.view(a.dtype).reshape(-1)


def extract_field(a: Array, position: Array, length: Array) -> Array:
    """`bfe`: bits [position, position + length) of a, sign extended for signed types."""
    bits = a.dtype.itemsize * 8
    p = (position & np.uint32(0xFF)).astype(I64)
    n = (length & np.uint32(0xFF)).astype(I64)
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    value = a.view(unsigned)
    top = np.minimum(p + n - 1, bits - 1)
    sign = (
        ((value >> top.clip(0).astype(unsigned)) & unsigned.type(1)).astype(np.bool_)
        if a.dtype.kind == "i"
        else np.zeros(value.shape, BOOL)
    )
    sign = sign & (n > 0)
    moved = shift_right(value, p.clip(0, 255).astype(U32))
    ones = ~unsigned.type(0)
    mask = np.where(n >= bits, ones, ~shift_left(np.full(value.shape, ones, unsigned), n.astype(U32)))
    # Bits taken from beyond the top of `a` are the sign bit of the field as well.
    available = (bits - p).clip(0)
    mask = np.where(n > available, ~shift_left(np.full(value.shape, ones, unsigned), available.astype(U32)), mask)
    result = np.where(sign, (moved & mask) | ~mask, moved & mask)
    return np.where(n == 0, unsigned.type(0), result).astype(unsigned).view(a.dtype)


def insert_field(a: Array, b: Array, position: Array, length: Array) -> Array:
    """`bfi`: the low `length` bits of a replace those of b from `position` on."""
    p, n = position & np.uint32(0xFF), length & np.uint32(0xFF)
    ones = np.full(a.shape, ~a.dtype.type(0), a.dtype)
    mask = shift_left(~shift_left(ones, n), p)
    return (shift_left(a, p) & mask) | (b & ~mask)


def permute(a: Array, b: Array, selector: Array, mode: str) -> Array:
    """`prmt`: pick four bytes of the eight in {b, a}."""
    source = np.empty((a.size, 8), U8)
    source[:, :4] = a.view(U8).reshape(-1, 4)
    source[:, 4:] = b.view(U8).reshape(-1, 4)
    control = np.empty((a.size, 4), U8)
    low = (selector & np.uint32(3)).astype(I64)[:, None]
    j = np.arange(4)
    if mode == "":
        for byte in range(4):
            control[:, byte] = (selector >> np.uint32(4 * byte)) & np.uint32(15)
    elif mode == "f4e":
        control[:] = low + j
    elif mode == "b4e":
        control[:] = (low - j) & 7
    elif mode == "rc8":
        control[:] = low
    elif mode == "ecl":
        control[:] = np.maximum(low, j)
    elif mode == "ecr":
        control[:] = np.minimum(low, j)
    else:
        control[:] = (low >> 1) * 2 + (j & 1)
    picked = np.take_along_axis(source, (control & 7).astype(I64), axis=1)
    replicated = np.where(picked & np.uint8(0x80), np.uint8(0xFF), np.uint8(0))
    return np.where(control & np.uint8(8), replicated, picked).astype(U8).view(U32).reshape(-1)


def lookup3(a: Array, b: Array, c: Array, table: int) -> Array:
    """`lop3`: any function of three bits, given as its truth table."""
    result = np.zeros_like(a)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def funnel(a: Array, b: Array, count: Array, left: bool, clamp: bool) -> Array:
    """`shf`: shift the 64-bit value {b, a}; left returns the upper, right the lower 32 bits."""
    n = (np.minimum(count, np.uint32(32)) if clamp else count & np.uint32(31)).astype(U64)
    joined = (b.astype(U64) << np.uint64(32)) | a
    moved = (joined << n) >> np.uint64(32) if left else joined >> n
    return moved.astype(U32)


def dot4(a: Array, b: Array, c: Array, signed_a: bool, signed_b: bool) -> Array:
    """`dp4a`: c plus the products of four bytes."""
    x = a.view(I8 if signed_a else U8).reshape(-1, 4).astype(I32)
    y = b.view(I8 if signed_b else U8).reshape(-1, 4).astype(I32)
    return c + (x * y).sum(axis=1, dtype=np.int32).view(c.dtype)


def dot2(a: Array, b: Array, c: Array, signed_a: bool, signed_b: bool, high: bool) -> Array:
    """`dp2a`: c plus the products of two 16-bit values of a with the lower or upper two bytes of b."""
    x = a.view(I16 if signed_a else U16).reshape(-1, 2).astype(I32)
    y = b.view(I8 if signed_b else U8).reshape(-1, 4).astype(I32)[:, 2 if high else 0 :][:, :2]
    return c + (x * y).sum(axis=1, dtype=np.int32).view(c.dtype)


# --- comparisons

_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def comparison(name: str, floating: bool) -> Callable[[Array, Array], Array] | None:
    """Return the function for a comparison operator of `setp` and `set`; None when there is none."""
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
        ordered = _ORDERED[name[:2]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    if name == "ne" and floating:
        return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
    return _ORDERED.get(name)


COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def float_property(name: str, x: Array) -> Array:
    """`testp`: a property of a float."""
    tiny = np.finfo(x.dtype).tiny
    match name:
        case "finite":
            return np.isfinite(x)
        case "infinite":
            return np.isinf(x)
        case "number":
            return ~np.isnan(x)
        case "notanumber":
            return np.isnan(x)
        case "normal":
            return np.isfinite(x) & (np.abs(x) >= tiny)
        case _:
            return (np.abs(x) < tiny) & (x != 0)
