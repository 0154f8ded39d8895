"""erf, erfc, normcdf and erfinv as straight-line code; `elementary.py` says what holds for all functions."""

from __future__ import annotations

import math

from tc_jupyter.program import DType

from . import coefficients as c
from .builder import Value
from .elementary import exp2_wide, exp_rest, log_wide, reduced
from .lanes import Lanes, horner, scaled, scaled_within, within_one


def erf_single(x: Lanes) -> Lanes:
    """An odd polynomial up to 0.8, then `1 - exp(-q(x))`."""
    return _erf(x, 0.8, 4.0, c.ERF_SMALL_32, c.ERF_LARGE_32)


def erf_double(x: Lanes) -> Lanes:
    """As `erf_single`; an error of `q` counts as much as `exp(-q)`, so the fit may be worse far out."""
    return _erf(x, 1.0, 6.0, c.ERF_UNIT_64, c.ERF_LARGE_64)


def _erf(x: Lanes, near: float, far: float, small_table: tuple[float, ...], large_table: tuple[float, ...]) -> Lanes:
    size = abs(x)
    small = x.fma(horner(x * x, small_table), x)
    bounded = size.number(far).where(size.test(">", far), size)
    r, whole, n = reduced(-horner(bounded, large_table))
    large = -scaled_within(exp_rest(r) + 1.0, whole, n) + 1.0
    large = large.number(1.0).where(size.test(">=", far), large)
    result = abs(small).where(size.test("<", near), large)
    return x.where(x.test("!=", x), result.sign_of(x))


def erfc_single(x: Lanes) -> Lanes:
    """In `double` with a polynomial for `float`."""
    return _erfc_wide(x.to(DType.FLOAT64)).to(DType.FLOAT32)


def normcdf_single(x: Lanes) -> Lanes:
    """In `double` with a polynomial for `float`."""
    return (_erfc_wide(x.to(DType.FLOAT64) * -math.sqrt(0.5)) * 0.5).to(DType.FLOAT32)


def _erfc_wide(x: Lanes) -> Lanes:
    """`erfc` to 28 bits; see `_tail`."""
    y = abs(x).clamp(0.0, 15.0)
    p = horner((y - 4.0) / (y + 4.0), c.ERFC_WIDE)
    result = _gauss(y) * p / y.fma(1.125, 1.0)
    return (-result + 2.0).where(x.test("<", 0.0), result)


def erfc_double(x: Lanes) -> Lanes:
    """See `_tail`."""
    y = abs(x).clamp(0.0, 27.5)
    square = y * y
    return _tail(x.test("<", 0.0), y, y.number(0.0), square, y.fma(y, -square), 1.0)


def normcdf_double(x: Lanes) -> Lanes:
    """`erfc(-x sqrt(1/2)) / 2`: the scaled argument is a sum of two numbers, its square is exact."""
    high, low = c.ROOT_HALF_64
    size = abs(x).clamp(0.0, 38.8)
    y = size * high
    square = size * size
    lost = size.fma(size, -square)
    return _tail(x.test(">", 0.0), y, size.fma(high, -y) + size * low, square * 0.5, lost * 0.5, 0.5)


def scaled_in_halves(x: Lanes) -> tuple[Lanes, Lanes]:
    """`-x sqrt(1/2)` rounded, and what that lost, without fused operations: products of numbers of 26 bits are exact.

    Source: Dekker, "A floating-point technique for extending the available precision", 1971.
    """
    high, low = c.ROOT_HALF_64
    y = -x * high
    front = x.bits().op("and", -(1 << 27)).floats()
    back = x - front
    first, second = c.ROOT_HALF_HALVES_64
    lost = ((front * first + y) + (front * second + back * first)) + (back * second + x * low)
    return y, -lost


def _tail(mirrored: Value, y: Lanes, y_low: Lanes, square: Lanes, square_low: Lanes, factor: float) -> Lanes:
    """`factor erfc(y)`, or `factor (2 - erfc(y))` where mirrored.

    `erfc(y) = exp(-y^2) P(t) / (1 + 1.125 y)` with `t = (y - 4)/(y + 4)`; the four parts are sums of two numbers.

    Source: Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", 1981; with the factor
    1.125 for 2 the polynomial hardly moves near 0, and takes over little of the error of `t`.
    """
    r, whole, n = reduced(-square)
    rest = exp_rest(r)
    power = rest + 1.0
    power_low = (rest - (power - 1.0)) - power * square_low
    t = (y - 4.0) / (y + 4.0)
    term = t * horner(t, c.ERFC_64[1:])
    p = term + c.ERFC_64[0]
    p_low = (p.number(c.ERFC_64[0]) - p) + term
    below = y.fma(1.125, 1.0)
    below_low = y.fma(1.125, -below + 1.0) + y_low * 1.125
    inverse = y.number(1.0) / below
    top = power * p
    top_low = power.fma(p, -top) + (power * p_low + power_low * p)
    tail = top * inverse
    tail = tail + ((-tail).fma(below, top) + (top_low - tail * below_low)) * inverse
    result = scaled(tail * factor, whole, n)
    return (-result + 2 * factor).where(mirrored, result)


def erfinv_single(x: Lanes) -> Lanes:
    """See `_erfinv_wide`."""
    return within_one(x, _erfinv_wide(abs(x).to(DType.FLOAT64)).to(DType.FLOAT32))


def erfinv_double(x: Lanes) -> Lanes:
    """One step of Halley's iteration: 26 bits become 53; next to 1 it solves `erfc(y) = 1 - x`."""
    size = abs(x)
    y = _erfinv_wide(size)
    near = y.fma(horner(y * y, c.ERF_UNIT_64), y - size)
    error = near.where(y.test("<", 0.75), (-size + 1.0) - erfc_double(y))
    step = error / (_gauss(y) * (2 / math.sqrt(math.pi)))
    return within_one(x, y - step / y.fma(step, 1.0))


def _erfinv_wide(x: Lanes) -> Lanes:
    """The inverse of `erf` to 26 bits in `double` for `0 <= x < 1`: polynomials of `w = -log(1 - x^2)` and, far out, `2/sqrt(w)`.

    Source: Giles, "Approximating the erfinv function", GPU Computing Gems (Jade), 2011.
    """
    w = -log_wide((-x + 1.0) * (x + 1.0))
    root = w.root()
    far = root * horner(w.number(2.0) / root, c.ERFINV_FAR_WIDE)
    return x * horner(w, c.ERFINV_WIDE).where(w.test("<", 6.0), far)


def _gauss(y: Lanes) -> Lanes:
    """`exp(-y^2)` to 28 bits in `double`."""
    return exp2_wide(y * y * -math.log2(math.e))
