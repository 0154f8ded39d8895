"""exp, log, sin, tanh and their relatives as straight-line code for any number of lanes; `known.py` lists all functions.

Each function is at most 2 units in the last place off over the whole range, treats 0, -0, subnormals, infinities and NaN as
the C library does, and never flushes. `float` versions of the rarer functions compute in `double`. Beyond the range of a
reduction (sine of more than a thousand million) the lanes go through the C library, behind one test for all of them.

Sources: Muller et al., "Handbook of Floating-Point Arithmetic" (2nd ed., chapter 10), for the reductions; the signed-zero
and two-factor scaling rules are explained at the functions.
"""

from __future__ import annotations

import math

from . import coefficients as c
from .lanes import (
    Bits,
    Lanes,
    from_integer,
    horner,
    is_double,
    mantissa_bits,
    nearest_integer,
    power_of_two,
    scaled,
    scaled_within,
)

_INF = math.inf


# --- exponential functions -------------------------------------------------------------------------------------------


def exp_rest(r: Lanes) -> Lanes:
    """`exp(r) - 1` for `abs(r) <= ln(2)/2`."""
    table = c.EXP_64 if is_double(r) else c.EXP_32
    return (r * r).fma(horner(r, table), r)


def reduced(x: Lanes) -> tuple[Lanes, Lanes, Bits]:
    """`x - n ln 2`, and `n` as a number and in the low bits."""
    high, low = c.LN2_64 if is_double(x) else c.LN2_32
    whole, n = nearest_integer(x * (1 / math.log(2)))
    return (-whole).fma(low, (-whole).fma(high, x)), whole, n


def exp(x: Lanes) -> Lanes:
    """Euler's number to the power `x`."""
    bounded = x.clamp(-746.0, 711.0) if is_double(x) else x.clamp(-105.0, 90.0)
    r, whole, n = reduced(bounded)
    return scaled(exp_rest(r) + 1.0, whole, n)


def exp2(x: Lanes) -> Lanes:
    """Two to the power `x`."""
    bounded = x.clamp(-1080.0, 1026.0) if is_double(x) else x.clamp(-155.0, 130.0)
    whole, n = nearest_integer(bounded)
    return scaled(exp_rest((bounded - whole) * math.log(2)) + 1.0, whole, n)


def exp2_wide(x: Lanes) -> Lanes:
    """Two to the power `x` to 29 bits in `double`, for `float` functions; `x` between -1000 and 1000."""
    whole, n = nearest_integer(x)
    return scaled_within(horner(x - whole, c.EXP2_WIDE), whole, n)


def exp10(x: Lanes) -> Lanes:
    """Ten to the power `x`."""
    bounded = x.clamp(-325.0, 310.0) if is_double(x) else x.clamp(-47.0, 40.0)
    high, low = c.LG2_64 if is_double(x) else c.LG2_32
    whole, n = nearest_integer(bounded * math.log2(10))
    r = (-whole).fma(low, (-whole).fma(high, bounded)) * math.log(10)
    return scaled(exp_rest(r) + 1.0, whole, n)


def expm1_double(x: Lanes) -> Lanes:
    """`2^n (exp(r) - 1) + (2^n - 1)`, all halved so that `n = 1024` does not overflow too early."""
    r, _, n = reduced(x.clamp(-50.0, 709.9))
    half = power_of_two(n.op("sub", 1), x)
    result = half.fma(exp_rest(r), half - 0.5) * 2.0
    tiny = abs(x).test("<", 2.0**-54)
    return x.where(tiny, result.sign_of(x))


# --- logarithms ------------------------------------------------------------------------------------------------------


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Exponent `e` (a number) and `m - 1` with `x = m 2^e`, `sqrt(1/2) <= m < sqrt(2)`; subnormals are scaled up first."""
    width = mantissa_bits(x)
    double = is_double(x)
    smallest, up = (2.0**-1022, 54) if double else (2.0**-126, 25)
    small = x.test("<", smallest)
    bits = (x * 2.0**up).where(small, x).bits()
    # Subtracting the pattern of sqrt(1/2) makes the exponent field switch at sqrt(2).
    root = 0x3FE6A09E667F3BCD if double else 0x3F3504F3
    moved = bits.op("sub", root)
    exponent = moved.op("ashr", width)
    mantissa = bits.op("sub", exponent.op("shl", width)).floats()
    number = from_integer(exponent, x)
    return (number - float(up)).where(small, number), mantissa - 1.0


def ends_of_log(x: Lanes, result: Lanes, at_zero: float = 0.0) -> Lanes:
    """-inf at `at_zero`, NaN below, inf at inf, NaN for NaN."""
    result = x.where(x.test("==", _INF), result)
    result = x.number(-_INF).where(x.test("==", at_zero), result)
    result = x.number(math.nan).where(x.test("<", at_zero), result)
    return result.where(x.test("==", x), x)


def log_single(x: Lanes) -> Lanes:
    """The natural logarithm."""
    e, f = split(x)
    return ends_of_log(x, _log_sum_single(e, f, e * c.LN2_32[1]))


def _log_sum_single(e: Lanes, f: Lanes, small: Lanes) -> Lanes:
    """`e` times the first part of ln 2, and `log(1 + f) + small`."""
    square = f * f
    rest = square.fma(-0.5, (square * f).fma(horner(f, c.LOG_32), small))
    return e.fma(c.LN2_32[0], rest + f)


def log2_wide(e: Lanes, f: Lanes) -> Lanes:
    """The logarithm of base 2 of `(1 + f) 2^e` to 36 bits in `double`, for `float` functions."""
    s = f / (f + 2.0)
    return s.fma(horner(s * s, c.LOG2_WIDE), e)


def log_wide(x: Lanes) -> Lanes:
    """The natural logarithm of a positive number that is not infinite, to 36 bits."""
    return log2_wide(*split(x)) * math.log(2)


def log_parts(f: Lanes) -> tuple[Lanes, Lanes]:
    """`f^2/2`, and `s (f^2/2 + R)` with `log(1+f) = f - (f^2/2 - s (f^2/2 + R))`."""
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return half, s * (half + z * horner(z, c.LOG_ODD_64))


def log_double(x: Lanes) -> Lanes:
    """The natural logarithm."""
    e, f = split(x)
    high, low = c.LN2_64
    half, r = log_parts(f)
    return ends_of_log(x, e * high - ((half - (r + e * low)) - f))


def log1p(x: Lanes) -> Lanes:
    """The logarithm of `1 + x`, corrected by what the sum lost."""
    u = x + 1.0
    e, f = split(u)
    lost = (x - (u - 1.0)).where(x.test("<", 1.0), -(u - x) + 1.0)
    correction = lost / u
    near = abs(x).test("<", 0.29)
    e, f = e.number(0.0).where(near, e), x.where(near, f)
    correction = correction.number(0.0).where(near, correction)
    high, low = c.LN2_64 if is_double(x) else c.LN2_32
    small = e * low + correction
    if is_double(x):
        half, r = log_parts(f)
        result = e * high - ((half - (r + small)) - f)
    else:
        result = _log_sum_single(e, f, small)
    result = x.where(abs(x).test("<", 2.0**-54), result)
    return ends_of_log(x, result, -1.0)


def _log_base_single(x: Lanes, e_high: float, e_low: float, per: tuple[float, ...]) -> Lanes:
    """A logarithm of another base: `1/ln(base)`, in two parts, times `f`, and all that is smaller before that."""
    e, f = split(x)
    rest = f * f * (f * horner(f, c.LOG_32) - 0.5)
    near = f.fma(per[0], f.fma(per[1], rest.fma(per[0], e * e_low)))
    return ends_of_log(x, e.fma(e_high, near))


def log2_single(x: Lanes) -> Lanes:
    """The logarithm of base 2."""
    return _log_base_single(x, 1.0, 0.0, c.PER_LN2_32)


def log10_single(x: Lanes) -> Lanes:
    """The logarithm of base 10."""
    return _log_base_single(x, *c.LG2_32, c.PER_LN10_32)


def _log_base(x: Lanes, e_high: float, e_low: float, per: tuple[float, ...]) -> Lanes:
    """A logarithm of another base: the natural one as a sum of two numbers, the first short, times `1/ln(base)`."""
    e, f = split(x)
    half, r = log_parts(f)
    high = (f - half).bits().op("and", -(1 << 32)).floats()
    low = ((f - high) - half) + r
    main = high * per[0]
    rest = (low + high) * per[1] + low * per[0]
    if e_low:
        rest = rest + e * e_low
    whole = e * e_high
    total = whole + main
    rest = rest + ((whole - total) + main)
    return ends_of_log(x, total + rest)


def log2_double(x: Lanes) -> Lanes:
    """The logarithm of base 2."""
    return _log_base(x, 1.0, 0.0, c.PER_LN2_64)


def log10_double(x: Lanes) -> Lanes:
    """The logarithm of base 10."""
    return _log_base(x, c.LG2_64[0], c.LG2_64[1], c.PER_LN10_64)


# --- circular functions ----------------------------------------------------------------------------------------------


def circular(x: Lanes, quarter: int) -> Lanes:
    """Sine (`quarter` 0) or cosine (1) of a moderate argument: reduction by pi/2 in three fused steps."""
    double = is_double(x)
    whole, n = nearest_integer(x * (2 / math.pi))
    r = x
    for part in c.HALF_PI_64 if double else c.HALF_PI_32:
        r = (-whole).fma(part, r)
    z = r * r
    sine = (z * r).fma(horner(z, c.SIN_64 if double else c.SIN_32), r)
    cosine = (z * z).fma(horner(z, c.COS_64 if double else c.COS_32), z.fma(-0.5, 1.0))
    if quarter:
        n = n.op("add", 1)
    result = cosine.where(n.nonzero(1), sine)
    result = (-result).where(n.nonzero(2), result)
    if quarter:
        return result
    return x.where(x.test("==", 0.0), result)


# --- hyperbolic tangent and sigmoid ----------------------------------------------------------------------------------


def tanh_single(x: Lanes) -> Lanes:
    """Both branches get the sign of `x`: `x + x^3 P` would return +0 for -0."""
    size = abs(x)
    z = x * x
    small = (z * size).fma(horner(z, c.TANH_32), size)
    bounded = size.number(9.1).where(size.test(">", 9.1), size)
    r, whole, n = reduced(bounded + bounded)
    power = scaled_within(exp_rest(r) + 1.0, whole, n)
    large = -(x.number(2.0) / (power + 1.0)) + 1.0
    result = small.where(size.test("<", 0.625), large)
    return x.where(x.test("!=", x), result.sign_of(x))


def tanh_double(x: Lanes) -> Lanes:
    """As `tanh_single`."""
    size = abs(x)
    z = x * x
    small = (z * size).fma(horner(z, c.TANH_64), size)
    bounded = size.number(22.0).where(size.test(">", 22.0), size)
    large = -(x.number(2.0) / (exp(bounded + bounded) + 1.0)) + 1.0
    result = small.where(size.test("<", 0.625), large)
    return x.where(x.test("!=", x), result.sign_of(x))


def sigmoid(x: Lanes) -> Lanes:
    """`1 / (1 + exp(-x))`, or `exp(x) / (1 + exp(x))` for negative `x`.

    Four roundings would exceed 2 ulp, so the reciprocal and the power keep their rounding errors until the last sum.
    """
    negative = x.test("<", 0.0)
    r, whole, n = reduced((-abs(x)).clamp(-746.0 if is_double(x) else -105.0, 0.0))
    rest = exp_rest(r)
    scale = scaled(x.number(1.0), whole, n)
    main = rest + 1.0
    power, lost = scaled(main, whole, n), (rest - (main - 1.0)) * scale
    inverse = x.number(1.0) / scale.fma(rest, scale + 1.0)
    inverse_lost = inverse * (-inverse).fma(scale.fma(rest, scale + 1.0), 1.0)
    top, top_lost = power.where(negative, 1.0), lost.where(negative, 0.0)
    result = top.fma(inverse, top.fma(inverse_lost, top_lost * inverse))
    return x.where(x.test("!=", x), result)
