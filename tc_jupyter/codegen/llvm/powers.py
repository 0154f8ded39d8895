"""pow, cbrt, hypot and fmod as straight-line code; what `elementary.py` says of accuracy and special values holds here, too."""

from __future__ import annotations

import math
from functools import reduce

from tc_jupyter.program import DType
from tc_jupyter.schedule import tuning

from . import arith
from . import coefficients as c
from .elementary import exp2_wide, exp_rest, log2_wide, split
from .lanes import Lanes, horner, is_double, nearest_integer, power_of_two, scaled


def of_halves(x: Lanes, exponent: float) -> Lanes | None:
    """A power that is a multiple of one half, by products and a root; `None` where that is not exact enough.

    So few roundings are at most 2 units in the last place, as `elementary.py` promises; for more of them `float` has `double`.
    """
    if exponent == 0:
        return x.number(1.0)
    halves = int(2 * exponent) if abs(exponent) <= tuning.EXPONENT and 2 * exponent % 1 == 0 else 0
    if halves and -3 <= halves <= 5:  # they round at most three times, and take one root
        return _of_few_halves(x, halves)
    if is_double(x):
        return _of_whole(x, halves // 2) if halves and halves % 2 == 0 else None
    if not halves:
        return None
    # a product that leaves the range of `double` is one whose inverse leaves that of `float`, so there is one division
    product = _of_few_halves(x.to(DType.FLOAT64), abs(halves))
    return (product if halves > 0 else x.to(DType.FLOAT64).number(1.0) / product).to(x.v.dtype)


def _of_few_halves(x: Lanes, halves: int) -> Lanes:
    """An inverse divides by one factor after the other, of which none overflows that the power does not."""
    factors = [_root(x)] if halves % 2 else []
    base, whole = abs(x) if factors else x, abs(halves) // 2
    while whole:
        factors += [base] * (whole % 2)
        base, whole = base * base, whole // 2
    return reduce(Lanes.__mul__, factors) if halves > 0 else reduce(Lanes.__truediv__, factors, x.number(1.0))


def _of_whole(x: Lanes, exponent: int) -> Lanes:
    """A power of `double` by products of sums of two numbers, rounded once: 0.13 to 0.24 of the time of `pow_double` (Zen 5).

    Source: Dekker, "A floating-point technique for extending the available precision" (1971), with fused products.
    """
    base = x, x.number(0.0)
    if exponent < 0:
        inverse = x.number(1.0) / x
        base = inverse, (-inverse).fma(x, 1.0) * inverse
    result, whole = None, abs(exponent)
    while whole:
        if whole % 2:
            result = base if result is None else _product(result, base)
        base, whole = _product(base, base), whole // 2
    assert result is not None
    high, low = result
    total = (high + low).sign_of(high)  # of zeros, too
    return total.where(abs(low).test("<", math.inf), high)  # the rest of what is infinite is no number


def _product(one: tuple[Lanes, Lanes], other: tuple[Lanes, Lanes]) -> tuple[Lanes, Lanes]:
    """A product of sums of two numbers, of which the second is small, as one."""
    high = one[0] * other[0]
    low = one[0].fma(other[0], -high)
    return high, one[0].fma(other[1], one[1].fma(other[0], low))


def _root(x: Lanes) -> Lanes:
    """`pow(x, 0.5)`, which is not negative at -0 and infinite at -inf, as C99 says."""
    return x.number(math.inf).where(x.test("==", -math.inf), abs(x.root()))


def pow_single(x: Lanes, y: Lanes) -> Lanes:
    """In `double`: a logarithm of 36 bits is enough, since its product with `y` is below 150 where it matters."""
    e, f = (each.to(DType.FLOAT64) for each in split(abs(x)))
    log = _ends_of_size(abs(x).to(DType.FLOAT64), log2_wide(e, f))
    power = exp2_wide((log * y.to(DType.FLOAT64)).clamp(-200.0, 200.0))
    return _signed_power(x, y, power.to(DType.FLOAT32))


def pow_double(x: Lanes, y: Lanes) -> Lanes:
    """`2^(y log2 abs(x))` with the logarithm and its product with `y` as sums of two numbers."""
    log, log_low = _log2_pair(abs(x))
    product = y * log
    low = y.fma(log, -product) + y * log_low
    low = low.where(abs(product).test("<", 1100.0), 0.0)
    bounded = product.clamp(-1080.0, 1026.0)
    whole, n = nearest_integer(bounded)
    r = (bounded - whole).fma(math.log(2), low * math.log(2))
    return _signed_power(x, y, scaled(exp_rest(r) + 1.0, whole, n))


def _log2_pair(x: Lanes) -> tuple[Lanes, Lanes]:
    """The base 2 logarithm to 65 bits as a sum of two numbers: `s (c1 + s^2 (c3 + s^2 Q))` with `s = (m - 1)/(m + 1)`.

    Q needs no second number: its share of the sum is less than 2^-12. Source: Muller et al., sections 4.4 and 10.
    """
    e, f = split(x)
    d = f + 2.0
    inverse = x.number(1.0) / d
    s = f * inverse
    s_low = ((-s).fma(d, f) - s * (f - (d - 2.0))) * inverse
    z = s * s
    z_low = s.fma(s, -z) + (s + s) * s_low
    total = z * horner(z, c.POW_64)
    low = x.number(0.0)
    for (high, rest), (factor, factor_low) in zip((c.POW_3_64, c.POW_1_64), ((z, z_low), (s, s_low)), strict=True):
        term, total = total, total + high
        low = ((total.number(high) - total) + term) + (low + rest)
        product = factor * total
        low = factor.fma(total, -product) + (factor * low + factor_low * total)
        total = product
    result = e + total
    low = ((e - result) + total) + low
    return _ends_of_size(x, result), low


def _ends_of_size(x: Lanes, log: Lanes) -> Lanes:
    """-inf at 0, and infinity and NaN for themselves."""
    log = x.number(-math.inf).where(x.test("==", 0.0), log)
    return log.where(x.test("<", math.inf), x)


def _signed_power(x: Lanes, y: Lanes, result: Lanes) -> Lanes:
    """The power of `abs(x)` with the sign of the power of `x`, and the special values of C99, section F.9.4.4."""
    b = x.b
    whole = y.test("==", y.truncated())
    half = y * 0.5
    odd = arith.logical(b, "and", whole, half.test("!=", half.truncated()))
    negative = x.bits().nonzero(1 << (x.v.dtype.bits - 1))
    result = (-result).where(arith.logical(b, "and", negative, odd), result)
    below = arith.logical(b, "and", x.test("<", 0.0), x.test(">", -math.inf))
    undefined = arith.logical(b, "and", below, arith.invert(b, whole))
    result = x.number(math.nan).where(undefined, result)
    # (-1)^(+-inf) is 1, as are x^0 and 1^y for any other operand, NaN included.
    infinite = arith.logical(b, "and", abs(x).test("==", 1.0), abs(y).test("==", math.inf))
    ones = arith.logical(b, "or", x.test("==", 1.0), arith.logical(b, "or", y.test("==", 0.0), infinite))
    return result.number(1.0).where(ones, result)


def cbrt_double(x: Lanes) -> Lanes:
    """A polynomial of 19 bits for the mantissa, a third of the exponent, and one step of Halley's iteration.

    The step computes `t + t (m - t^3)/(2 t^3 + m)` and makes 57 bits of 19.
    """
    size = abs(x)
    e, f = split(size)
    third, n = nearest_integer(e * (1 / 3))
    over = e - third * 3.0
    root = x.number(2.0 ** (1 / 3)).where(over.test(">", 0.5), 1.0)
    root = x.number(2.0 ** (-1 / 3)).where(over.test("<", -0.5), root)
    twice = x.number(2.0).where(over.test(">", 0.5), 1.0)
    m = f + 1.0
    t = horner(m, c.CBRT_64) * root
    m = m * x.number(0.5).where(over.test("<", -0.5), twice)
    cube = t * t * t
    t = t.fma((m - cube) / (cube + cube + m), t)
    result = (t * power_of_two(n, x)).sign_of(x)
    plain = arith.logical(x.b, "and", size.test("<", math.inf), size.test(">", 0.0))
    return result.where(plain, x)


def hypot_single(x: Lanes, y: Lanes) -> Lanes:
    """In `double`, where squares of `float` numbers neither overflow nor vanish."""
    wide, other = x.to(DType.FLOAT64), y.to(DType.FLOAT64)
    return _infinite_if_one_is(x, y, wide.fma(wide, other * other).root().to(DType.FLOAT32))


def hypot_double(x: Lanes, y: Lanes) -> Lanes:
    """Scaled by 2^600 or 2^-600 where a square would vanish or overflow."""
    larger, smaller = by_size(x, y)
    huge, tiny = larger.test(">", 2.0**500), larger.test("<", 2.0**-500)
    scale = x.number(2.0**-600).where(huge, x.number(2.0**600).where(tiny, 1.0))
    back = x.number(2.0**600).where(huge, x.number(2.0**-600).where(tiny, 1.0))
    larger, smaller = larger * scale, smaller * scale
    return _infinite_if_one_is(x, y, larger.fma(larger, smaller * smaller).root() * back)


def by_size(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """The larger and the smaller magnitude; NaN stays in one of them."""
    one, other = abs(x), abs(y)
    swap = other.test(">", one)
    return other.where(swap, one), one.where(swap, other)


def _infinite_if_one_is(x: Lanes, y: Lanes, result: Lanes) -> Lanes:
    """`inf` where an operand is infinite, even if the other one is NaN."""
    infinite = arith.logical(x.b, "or", abs(x).test("==", math.inf), abs(y).test("==", math.inf))
    return x.number(math.inf).where(infinite, result)


def quotient(x: Lanes, y: Lanes) -> Lanes:
    """`abs(x / y)`, on which depends whether `fmod` is one step; in `double`."""
    wide, other = (each if is_double(each) else each.to(DType.FLOAT64) for each in (x, y))
    return abs(wide) / abs(other)


def fmod_single(x: Lanes, y: Lanes) -> Lanes:
    """In `double`: a quotient below 2^29 times a `float` is exact."""
    return fmod_double(x.to(DType.FLOAT64), y.to(DType.FLOAT64)).to(DType.FLOAT32)


def fmod_double(x: Lanes, y: Lanes) -> Lanes:
    """`x - n y` is exact for the rounded quotient `n`, which is at most 1 too large: then `y` is added, exactly, too."""
    size, divisor = abs(x), abs(y)
    n = quotient(x, y).truncated()
    rest = (-n).fma(divisor, size)
    rest = (rest + divisor).where(rest.test("<", 0.0), rest)
    return size.where(size.test("<", divisor), rest).sign_of(x)
