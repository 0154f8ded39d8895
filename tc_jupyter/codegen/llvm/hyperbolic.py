"""sinh, cosh and the inverse hyperbolic functions as straight-line code; `elementary.py` says what holds for all functions."""

from __future__ import annotations

import math

from tc_jupyter.program import DType

from . import coefficients as c
from .builder import Value
from .elementary import log_parts, log_wide, split
from .lanes import Lanes, horner, is_double, nearest_integer, power_of_two, within_one


def sinh(x: Lanes) -> Lanes:
    """By the addition theorem; `b`, the largest term but for `b = 0`, is added last. A number next to 0 is its own sine."""
    r, sine, cosine, up, down = _hyperbolic(x)
    a, b = up + down, up - down
    half = b + a.fma(r, a.fma(sine, b * cosine))
    return (half + half).sign_of(x).where(abs(x).test(">=", 2.0**-28 if is_double(x) else 2.0**-14), x)


def cosh(x: Lanes) -> Lanes:
    """By the addition theorem, which cancels nothing here."""
    r, sine, cosine, up, down = _hyperbolic(x)
    a, b = up + down, up - down
    half = up + b.fma(r, b.fma(sine, a.fma(cosine, down)))
    return half + half


def _hyperbolic(x: Lanes) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes]:
    """For `abs(x) = n ln 2 + r`: `r`, `sinh(r) - r`, `cosh(r) - 1`, `2^n/4` and `2^-n/4`.

    With `a`, `b` = `(2^n +- 2^-n)/2` the addition theorems are `a sinh(r) + b cosh(r)` and `a cosh(r) + b sinh(r)`: no division,
    and two polynomials of half the length of one for `exp`. Quarters, since 2^1025 occurs.
    """
    double = is_double(x)
    size = abs(x).clamp(0.0, 710.5 if double else 89.5)
    high, low = c.LN2_64 if double else c.LN2_32
    whole, n = nearest_integer(size * (1 / math.log(2)))
    near = (-whole).fma(high, size)
    r = (-whole).fma(low, near)
    lost = (-whole).fma(low, near - r)
    z = r * r
    sine = (z * r).fma(horner(z, c.SINH_64 if double else c.SINH_32), lost)
    cosine = z * horner(z, c.COSH_64 if double else c.COSH_32)
    up = power_of_two(n.op("sub", 2), x)
    down = power_of_two((-n).op("sub", 2), x).where(size.test("<", 40.0), 0.0)
    return r, sine, cosine, up, down


def asinh_single(x: Lanes) -> Lanes:
    """In `double`; next to 0, where the sum with 1 loses too much, the first terms of the series."""
    wide = abs(x).to(DType.FLOAT64)
    z = wide * wide
    small = (z * wide).fma(-1 / 6, wide)
    result = small.where(wide.test("<", 2.0**-8), log_wide(wide + (z + 1.0).root()))
    return result.to(DType.FLOAT32).sign_of(x).where(abs(x).test("<", math.inf), x)


def acosh_single(x: Lanes) -> Lanes:
    """In `double`, where the square of a `float` less 1 is exact next to 1."""
    wide = x.to(DType.FLOAT64)
    result = log_wide(wide + (wide * wide - 1.0).root())
    result = result.to(DType.FLOAT32).where(x.test(">=", 1.0), math.nan)
    return x.where(x.test("==", math.inf), result)


def atanh_single(x: Lanes) -> Lanes:
    """In `double`; next to 0, where the sum with 1 loses too much, the first terms of the series."""
    wide = abs(x).to(DType.FLOAT64)
    small = (wide * wide * wide).fma(1 / 3, wide)
    result = small.where(wide.test("<", 2.0**-8), log_wide((wide + 1.0) / (-wide + 1.0)) * 0.5)
    return within_one(x, result.to(DType.FLOAT32))


def asinh_double(x: Lanes) -> Lanes:
    """A polynomial up to 1/2, then the logarithm of `x + sqrt(x^2 + 1)`."""
    size = abs(x)
    z = size * size
    near = size.test("<", 0.5)
    small = (z * size).fma(horner(z, c.ASINH_64), size)
    result = small.where(near, _log_of_sum(size, 1.0))
    return x.where(x.test("!=", x), result.sign_of(x))


def acosh_double(x: Lanes) -> Lanes:
    """`sqrt(2t)` times a polynomial of `t = x - 1` up to 1/2, then the logarithm of `x + sqrt(x^2 - 1)`."""
    t = x - 1.0
    root = (t + t).root()
    small = (root * t).fma(horner(t, c.ACOSH_64), root)
    return small.where(t.test("<", 0.5), _log_of_sum(x, -1.0))


def _log_of_sum(x: Lanes, one: float) -> Lanes:
    """`log(x + sqrt(x^2 + one))`, corrected by what the root and the sum lost; `log(2x)` beyond 2^28."""
    large = x.test(">", 2.0**28)
    square = x.fma(x, one)
    root = square.root()
    total = x + root
    # the larger addend less the sum, plus the smaller one, is what the sum lost
    bigger, smaller = (root, x) if one > 0 else (x, root)
    lost = (bigger - total) + smaller
    correction = (root + root).fma(lost, (-root).fma(root, square)) / ((root + root) * total)
    total, correction = x.where(large, total), x.number(0.0).where(large, correction)
    return _log_sum(total, correction, large, x.number(1.0).where(large, 0.0))


def _log_sum(x: Lanes, correction: Lanes, large: Value, more: Lanes) -> Lanes:
    """`log(x) + more ln 2 + correction` for `x >= 1`."""
    e, f = split(x)
    e = e + more
    high, low = c.LN2_64
    half, r = log_parts(f)
    result = e * high - ((half - (r + (e * low + correction))) - f)
    return x.where(x.test("==", math.inf), result)


def atanh_double(x: Lanes) -> Lanes:
    """Half the logarithm of `q = (1 + x)/(1 - x)`, corrected by what the division lost.

    Up to 0.17 the series of that logarithm in `s = (q - 1)/(q + 1)` starts at `s = x` itself.
    """
    size = abs(x)
    near = size.test("<", 0.17)
    top, bottom = size + 1.0, -size + 1.0
    q = top / bottom
    top_lost, bottom_lost = size - (top - 1.0), (-bottom + 1.0) - size
    correction = ((-q).fma(bottom, top) + (top_lost - q * bottom_lost)) / top
    e, f = split(q)
    s = size.where(near, f / (f + 2.0))
    z = s * s
    series = z * horner(z, c.LOG_ODD_64)
    half = f * f * 0.5
    high, low = c.LN2_64
    far = e * high - ((half - (s * (half + series) + (e * low + correction))) - f)
    return within_one(x, size.fma(series * 0.5, size).where(near, far * 0.5))
