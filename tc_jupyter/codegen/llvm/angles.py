"""tan and the inverse circular functions as straight-line code; `elementary.py` says what holds for all functions."""

from __future__ import annotations

import math

from tc_jupyter.program import DType

from . import coefficients as c
from .builder import Value
from .lanes import Lanes, horner, is_double, nearest_integer
from .powers import by_size


def tan_single(x: Lanes) -> Lanes:
    """Sine over cosine, or its negative reciprocal in odd quarters, in `double` with polynomials for `float`."""
    wide = x.to(DType.FLOAT64)
    whole, n = nearest_integer(wide * (2 / math.pi))
    first, second, _ = c.HALF_PI_64
    r = (-whole).fma(second, (-whole).fma(first, wide))
    z = r * r
    sine = (z * r).fma(horner(z, c.SIN_WIDE), r)
    cosine = z.fma(horner(z, c.COS_WIDE), 1.0)
    odd = n.nonzero(1)
    result = (-cosine).where(odd, sine) / sine.where(odd, cosine)
    return x.where(x.test("==", 0.0), result.to(DType.FLOAT32))


def tan_double(x: Lanes) -> Lanes:
    """As `tan_single`, with sums of two numbers: the errors of sine, cosine and quotient together exceed 2 ulp."""
    whole, n = nearest_integer(x * (2 / math.pi))
    first, second, third = c.HALF_PI_64
    near = (-whole).fma(first, x)
    product = whole * second
    r = near - product
    low = (-whole).fma(third, ((near - r) - product) - whole.fma(second, -product))
    z = r * r
    half = z * 0.5
    main = -half + 1.0
    sine, sine_low = _sum(r, (z * r).fma(horner(z, c.SIN_64), low))
    rest = (z * z).fma(horner(z, c.COS_64), -(r * low))
    cosine, cosine_low = _sum(main, ((-main + 1.0) - half) + rest)
    odd = n.nonzero(1)
    top, top_low = cosine.where(odd, sine), cosine_low.where(odd, sine_low)
    bottom, bottom_low = sine.where(odd, cosine), sine_low.where(odd, cosine_low)
    inverse = x.number(1.0) / bottom
    result = top * inverse
    result = result + ((-result).fma(bottom, top) + (top_low - result * bottom_low)) * inverse
    result = (-result).where(odd, result)
    return x.where(x.test("==", 0.0), result)


def _sum(large: Lanes, small: Lanes) -> tuple[Lanes, Lanes]:
    """The rounded sum and what it lost."""
    total = large + small
    return total, (large - total) + small


def atan(x: Lanes) -> Lanes:
    """The angle of the point `(1, abs(x))`."""
    return _angle(x.number(1.0), x).sign_of(x)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point `(x, y)`, in all four quadrants; a zero has a sign here."""
    high, low = c.PI_64 if is_double(x) else c.PI_32
    angle = _angle(x, y)
    left = x.bits().nonzero(1 << (x.v.dtype.bits - 1))
    return ((-angle + low) + high).where(left, angle).sign_of(y)


def _angle(x: Lanes, y: Lanes) -> Lanes:
    """The angle of the point `(abs(x), abs(y))`, from the tangent up to an eighth of a turn, whose complement is the rest."""
    high, low = c.HALF_PI_64[:2] if is_double(x) else c.HALF_PI_32[:2]
    larger, smaller = by_size(x, y)
    t = larger.number(1.0).where(smaller.test("==", larger), smaller / larger)
    t = smaller.where(larger.test("==", 0.0), t)
    z = t * t
    rest = z * t * horner(z, c.ATAN_64 if is_double(x) else c.ATAN_32)
    steep = abs(y).test(">", abs(x))
    return ((-t + high) - (rest - low)).where(steep, t + rest)


def asin(x: Lanes) -> Lanes:
    """Beyond 1/2: the complement of twice the arcsine of `sqrt((1 - x)/2)`."""
    high, low = _half_pi_halved(x)
    s, rest, near = _arcsine(x)
    main, lost = _sum(x.number(high), -s)
    far = main + (lost - (rest - low))
    return (s + rest).where(near, far + far).sign_of(x)


def acos(x: Lanes) -> Lanes:
    """As `asin`, from the other end; every difference is taken before the small terms are added."""
    high, low = _half_pi_halved(x)
    s, rest, near = _arcsine(x)
    below = x.test("<", 0.0)
    middle = (-s.sign_of(x) + 2 * high) - (rest.sign_of(x) - 2 * low)
    far = ((-s + 2 * high) - (rest - 2 * low)).where(below, s + rest)
    return middle.where(near, far + far)


def _half_pi_halved(x: Lanes) -> tuple[float, float]:
    """pi/4 in two parts."""
    high, low = c.HALF_PI_64[:2] if is_double(x) else c.HALF_PI_32[:2]
    return high / 2, low / 2


def _arcsine(x: Lanes) -> tuple[Lanes, Lanes, Value]:
    """`s`, `asin(s) - s`, and whether `s` is `abs(x)` and not `sqrt((1 - abs(x))/2)`."""
    size = abs(x)
    near = size.test("<", 0.5)
    z = (size * size).where(near, (-size + 1.0) * 0.5)
    s = size.where(near, z.root())
    return s, s * z * horner(z, c.ASIN_64 if is_double(x) else c.ASIN_32), near
