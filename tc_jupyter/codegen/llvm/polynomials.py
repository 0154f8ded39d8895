"""exp, log, sin, tanh, erf, pow and their relatives as straight-line code for any number of lanes.

Each function is at most 2 units in the last place off over the whole range, treats 0, -0, subnormals, infinities and NaN as
the C library does, and never flushes. `float` versions of the rarer functions compute in `double`. Beyond the range of a
reduction (sine of more than a thousand million) the lanes go through the C library, behind one test for all of them.

Sources: Muller et al., "Handbook of Floating-Point Arithmetic" (2nd ed., chapter 10), for the reductions; the signed-zero
and two-factor scaling rules are explained at the functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tc_jupyter.program import DType

from . import arith
from . import coefficients as c
from .builder import Builder, Value, constant

_INF = math.inf


@dataclass(frozen=True, slots=True)
class Lanes:
    """A value with arithmetic: every operator prints one instruction, without contraction."""

    b: Builder
    v: Value

    def _other(self, other: Lanes | float) -> Value:
        return other.v if isinstance(other, Lanes) else constant(other, self.v.dtype, self.v.lanes)

    def _op(self, name: str, other: Lanes | float) -> Lanes:
        text = f"{name} {self.v.typed}, {self._other(other).text}"
        return Lanes(self.b, self.b.op(text, self.v.dtype, self.v.lanes, name))

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._op("fadd", other)

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._op("fsub", other)

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self._op("fmul", other)

    def __truediv__(self, other: Lanes | float) -> Lanes:
        return self._op("fdiv", other)

    def __neg__(self) -> Lanes:
        return Lanes(self.b, arith.negate(self.b, self.v))

    def __abs__(self) -> Lanes:
        return Lanes(self.b, arith.intrinsic(self.b, "fabs", self.v))

    def number(self, value: float) -> Lanes:
        """A constant like this value."""
        return Lanes(self.b, constant(value, self.v.dtype, self.v.lanes))

    def fma(self, factor: Lanes | float, term: Lanes | float) -> Lanes:
        """`self * factor + term`, fused where the processor can."""
        operands = (self.v, self._other(factor), self._other(term))
        return Lanes(self.b, arith.intrinsic(self.b, "fmuladd", *operands))

    def sign_of(self, other: Lanes) -> Lanes:
        """Its magnitude with the sign of `other`."""
        return Lanes(self.b, arith.intrinsic(self.b, "copysign", self.v, other.v))

    def whole(self) -> Lanes:
        """The nearest integer, ties to even."""
        return Lanes(self.b, arith.intrinsic(self.b, "rint", self.v))

    def test(self, op: str, other: Lanes | float) -> Value:
        """An ordered comparison (`!=`: unordered)."""
        return arith.compare(self.b, op, self.v, self._other(other))

    def where(self, condition: Value, other: Lanes | float) -> Lanes:
        """Itself where the condition holds, else `other`."""
        return Lanes(self.b, arith.select(self.b, condition, self.v, self._other(other)))

    def clamp(self, low: float, high: float) -> Lanes:
        """Between two numbers; NaN passes through, since both tests are ordered."""
        above = self.number(low).where(self.test("<", low), self)
        return above.number(high).where(above.test(">", high), above)

    def bits(self) -> Bits:
        """The bit pattern."""
        return Bits(self.b, arith.bits_of(self.b, self.v))

    def to(self, dtype: DType) -> Lanes:
        """Another floating type."""
        return Lanes(self.b, arith.cast(self.b, self.v, dtype, True))


@dataclass(frozen=True, slots=True)
class Bits:
    """A bit pattern with integer arithmetic."""

    b: Builder
    v: Value

    def op(self, name: str, other: Bits | int) -> Bits:
        """One instruction."""
        text = other.v.text if isinstance(other, Bits) else constant(other, self.v.dtype, self.v.lanes).text
        return Bits(self.b, self.b.op(f"{name} {self.v.typed}, {text}", self.v.dtype, self.v.lanes, name))

    def floats(self) -> Lanes:
        """The number with this pattern."""
        return Lanes(self.b, arith.float_of(self.b, self.v))

    def nonzero(self, mask: int) -> Value:
        """Whether one of these bits is set."""
        return arith.compare(self.b, "!=", self.op("and", mask).v, constant(0, self.v.dtype, self.v.lanes))


def horner(x: Lanes, table: tuple[float, ...]) -> Lanes:
    """The polynomial with these coefficients, constant term first."""
    total = x.number(table[-1])
    for coefficient in reversed(table[:-1]):
        total = total.fma(x, coefficient)
    return total


def _double(x: Lanes) -> bool:
    return x.v.dtype is DType.FLOAT64


def _mantissa(x: Lanes) -> int:
    """Stored bits of the mantissa."""
    return 52 if _double(x) else 23


def _integer(x: Lanes) -> tuple[Lanes, Bits]:
    """The nearest integer of a number below 2^21 (2^50), and that integer in the low bits of a pattern.

    Adding 1.5 * 2^mantissa leaves the integer in the low bits. The instruction that converts to `int64` is missing from AVX2.
    """
    magic = 1.5 * 2.0 ** _mantissa(x)
    shifted = x + magic
    return shifted - magic, shifted.bits()


def _power_of_two(n: Bits, like: Lanes) -> Lanes:
    """`2^n` for the integer in the low bits; `n` within the range of exponents."""
    width = _mantissa(like)
    bias = 1023 if _double(like) else 127
    return n.op("add", bias).op("shl", width).floats()


def _scaled(x: Lanes, whole: Lanes, n: Bits) -> Lanes:
    """`x * 2^n` in two factors, which gives gradual underflow and infinity; `whole` is `n` as a number."""
    if _is_scaled_by_one_step(x):
        return _scaled_by_one_step(x, whole)
    width = _mantissa(x)
    spare = (64 if _double(x) else 32) - width - 1
    signed = n.op("shl", spare).op("ashr", spare)
    half = signed.op("ashr", 1)
    return x * _power_of_two(half, x) * _power_of_two(signed.op("sub", half), x)


def _scaled_within(x: Lanes, whole: Lanes, n: Bits) -> Lanes:
    """`x * 2^n` for `n` within the range of exponents."""
    return _scaled_by_one_step(x, whole) if _is_scaled_by_one_step(x) else x * _power_of_two(n, x)


def _is_scaled_by_one_step(x: Lanes) -> bool:
    """Whether the processor multiplies these by powers of two itself: whole registers of AVX-512.

    Measured on an AMD EPYC processor (Zen 4), one thread: `exp` of values in the second cache in 0.7 of the time, softmax in 0.8.
    """
    return x.b.scales and x.v.lanes * x.v.dtype.bits % 512 == 0


def _scaled_by_one_step(x: Lanes, whole: Lanes) -> Lanes:
    """`x * 2^whole`, rounded once, register by register."""
    suffix, lanes = ("pd", 8) if _double(x) else ("ps", 16)
    function = f"llvm.x86.avx512.mask.scalef.{suffix}.512"
    parts: list[Value] = []
    for start in range(0, x.v.lanes, lanes):
        value, power = (arith.part(x.b, each.v, start, lanes) for each in (x, whole))
        operands = (value, power, f"{value.type} zeroinitializer", f"i{lanes} -1", "i32 4")
        scaled = x.b.call(function, operands, value, "scaled")
        assert isinstance(scaled, Value)
        parts.append(scaled)
    return Lanes(x.b, arith.joined(x.b, parts))


# --- exponential functions -------------------------------------------------------------------------------------------


def _exp_rest(r: Lanes) -> Lanes:
    """`exp(r) - 1` for `abs(r) <= ln(2)/2`."""
    table = c.EXP_64 if _double(r) else c.EXP_32
    return (r * r).fma(horner(r, table), r)


def _reduced(x: Lanes) -> tuple[Lanes, Lanes, Bits]:
    """`x - n ln 2`, and `n` as a number and in the low bits."""
    high, low = c.LN2_64 if _double(x) else c.LN2_32
    whole, n = _integer(x * (1 / math.log(2)))
    return (-whole).fma(low, (-whole).fma(high, x)), whole, n


def exp(x: Lanes) -> Lanes:
    """Euler's number to the power `x`."""
    bounded = x.clamp(-746.0, 711.0) if _double(x) else x.clamp(-105.0, 90.0)
    r, whole, n = _reduced(bounded)
    return _scaled(_exp_rest(r) + 1.0, whole, n)


def _exp2_double(x: Lanes) -> Lanes:
    whole, n = _integer(x.clamp(-1080.0, 1026.0))
    r = (x.clamp(-1080.0, 1026.0) - whole) * math.log(2)
    return _scaled(_exp_rest(r) + 1.0, whole, n)


def _exp10_double(x: Lanes) -> Lanes:
    bounded = x.clamp(-325.0, 310.0)
    high, low = c.LG2_64
    whole, n = _integer(bounded * math.log2(10))
    r = (-whole).fma(low, (-whole).fma(high, bounded)) * math.log(10)
    return _scaled(_exp_rest(r) + 1.0, whole, n)


def _expm1_double(x: Lanes) -> Lanes:
    """`2^n (exp(r) - 1) + (2^n - 1)`, all halved so that `n = 1024` does not overflow too early."""
    r, _, n = _reduced(x.clamp(-50.0, 709.9))
    half = _power_of_two(n.op("sub", 1), x)
    result = half.fma(_exp_rest(r), half - 0.5) * 2.0
    tiny = abs(x).test("<", 2.0**-54)
    return x.where(tiny, result.sign_of(x))


# --- logarithms ------------------------------------------------------------------------------------------------------


def _split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Exponent `e` (a number) and `m - 1` with `x = m 2^e`, `sqrt(1/2) <= m < sqrt(2)`; subnormals are scaled up first."""
    width = _mantissa(x)
    double = _double(x)
    smallest, up = (2.0**-1022, 54) if double else (2.0**-126, 25)
    small = x.test("<", smallest)
    bits = (x * 2.0**up).where(small, x).bits()
    # Subtracting the pattern of sqrt(1/2) makes the exponent field switch at sqrt(2).
    root = 0x3FE6A09E667F3BCD if double else 0x3F3504F3
    moved = bits.op("sub", root)
    exponent = moved.op("ashr", width)
    mantissa = bits.op("sub", exponent.op("shl", width)).floats()
    number = _from_integer(exponent, x)
    return (number - float(up)).where(small, number), mantissa - 1.0


def _from_integer(n: Bits, like: Lanes) -> Lanes:
    """A small signed integer as a number, without the conversion that AVX2 lacks for 64 bits."""
    magic = 1.5 * 2.0 ** _mantissa(like)
    pattern = like.number(magic).bits()
    return n.op("add", pattern).floats() - magic


def _ends_of_log(x: Lanes, result: Lanes, at_zero: float = 0.0) -> Lanes:
    """-inf at `at_zero`, NaN below, inf at inf, NaN for NaN."""
    result = x.where(x.test("==", _INF), result)
    result = x.number(-_INF).where(x.test("==", at_zero), result)
    result = x.number(math.nan).where(x.test("<", at_zero), result)
    return result.where(x.test("==", x), x)


def _log_single(x: Lanes) -> Lanes:
    e, f = _split(x)
    high, low = c.LN2_32
    square = f * f
    rest = (square * f).fma(horner(f, c.LOG_32), e * low)
    rest = square.fma(-0.5, rest)
    return _ends_of_log(x, e.fma(high, rest + f))


def _log_parts(f: Lanes) -> tuple[Lanes, Lanes]:
    """`f^2/2`, and `s (f^2/2 + R)` with `log(1+f) = f - (f^2/2 - s (f^2/2 + R))`."""
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return half, s * (half + z * horner(z, c.LOG_ODD_64))


def _log_double(x: Lanes) -> Lanes:
    e, f = _split(x)
    high, low = c.LN2_64
    half, r = _log_parts(f)
    return _ends_of_log(x, e * high - ((half - (r + e * low)) - f))


def _log1p_double(x: Lanes) -> Lanes:
    """The logarithm of `1 + x`, corrected by what the sum lost."""
    u = x + 1.0
    e, f = _split(u)
    lost = (x - (u - 1.0)).where(x.test("<", 1.0), -(u - x) + 1.0)
    correction = lost / u
    near = abs(x).test("<", 0.29)
    e, f = e.number(0.0).where(near, e), x.where(near, f)
    correction = correction.number(0.0).where(near, correction)
    high, low = c.LN2_64
    half, r = _log_parts(f)
    result = e * high - ((half - (r + (e * low + correction))) - f)
    result = x.where(abs(x).test("<", 2.0**-54), result)
    return _ends_of_log(x, result, -1.0)


def _log_base(x: Lanes, e_high: float, e_low: float, per: tuple[float, ...]) -> Lanes:
    """A logarithm of another base: the natural one as a sum of two numbers, the first short, times `1/ln(base)`."""
    e, f = _split(x)
    half, r = _log_parts(f)
    high = (f - half).bits().op("and", -(1 << 32)).floats()
    low = ((f - high) - half) + r
    main = high * per[0]
    rest = (low + high) * per[1] + low * per[0]
    if e_low:
        rest = rest + e * e_low
    whole = e * e_high
    total = whole + main
    rest = rest + ((whole - total) + main)
    return _ends_of_log(x, total + rest)


def _log2_double(x: Lanes) -> Lanes:
    return _log_base(x, 1.0, 0.0, c.PER_LN2_64)


def _log10_double(x: Lanes) -> Lanes:
    return _log_base(x, c.LG2_64[0], c.LG2_64[1], c.PER_LN10_64)


# --- circular functions ----------------------------------------------------------------------------------------------


def _circular(x: Lanes, quarter: int) -> Lanes:
    """Sine (`quarter` 0) or cosine (1) of a moderate argument: reduction by pi/2 in three fused steps."""
    double = _double(x)
    whole, n = _integer(x * (2 / math.pi))
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


# --- hyperbolic tangent, error function, power -----------------------------------------------------------------------


def _tanh_single(x: Lanes) -> Lanes:
    """Both branches get the sign of `x`: `x + x^3 P` would return +0 for -0."""
    size = abs(x)
    z = x * x
    small = (z * size).fma(horner(z, c.TANH_32), size)
    bounded = size.number(9.1).where(size.test(">", 9.1), size)
    r, whole, n = _reduced(bounded + bounded)
    power = _scaled_within(_exp_rest(r) + 1.0, whole, n)
    large = -(x.number(2.0) / (power + 1.0)) + 1.0
    result = small.where(size.test("<", 0.625), large)
    return x.where(x.test("!=", x), result.sign_of(x))


def _tanh_double(x: Lanes) -> Lanes:
    size = abs(x)
    z = x * x
    small = (z * size).fma(horner(z, c.TANH_64), size)
    bounded = size.number(22.0).where(size.test(">", 22.0), size)
    large = -(x.number(2.0) / (exp(bounded + bounded) + 1.0)) + 1.0
    result = small.where(size.test("<", 0.625), large)
    return x.where(x.test("!=", x), result.sign_of(x))


def _erf_single(x: Lanes) -> Lanes:
    size = abs(x)
    small = x.fma(horner(x * x, c.ERF_SMALL_32), x)
    bounded = size.number(4.0).where(size.test(">", 4.0), size)
    q = horner(bounded, c.ERF_LARGE_32)
    r, whole, n = _reduced(-q)
    large = -_scaled_within(_exp_rest(r) + 1.0, whole, n) + 1.0
    large = large.number(1.0).where(size.test(">=", 4.0), large)
    result = abs(small).where(size.test("<", 0.8), large)
    return x.where(x.test("!=", x), result.sign_of(x))


def sigmoid(x: Lanes) -> Lanes:
    """`1 / (1 + exp(-x))`, or `exp(x) / (1 + exp(x))` for negative `x`.

    Four roundings would exceed 2 ulp, so the reciprocal and the power keep their rounding errors until the last sum.
    """
    negative = x.test("<", 0.0)
    r, whole, n = _reduced((-abs(x)).clamp(-746.0 if _double(x) else -105.0, 0.0))
    rest = _exp_rest(r)
    scale = _scaled(x.number(1.0), whole, n)
    main = rest + 1.0
    power, lost = _scaled(main, whole, n), (rest - (main - 1.0)) * scale
    inverse = x.number(1.0) / scale.fma(rest, scale + 1.0)
    inverse_lost = inverse * (-inverse).fma(scale.fma(rest, scale + 1.0), 1.0)
    top, top_lost = power.where(negative, 1.0), lost.where(negative, 0.0)
    result = top.fma(inverse, top.fma(inverse_lost, top_lost * inverse))
    return x.where(x.test("!=", x), result)


def _pow_single(x: Lanes, y: Lanes) -> Lanes:
    """Through `double`, whose 29 spare bits cover the error of the logarithm times the largest exponent."""
    b = x.b
    size, wide_y = abs(x).to(DType.FLOAT64), y.to(DType.FLOAT64)
    result = _exp2_double(_log2_double(size) * wide_y).to(DType.FLOAT32)
    whole = y.test("==", Lanes(b, arith.intrinsic(b, "trunc", y.v)))
    half = y * 0.5
    even = half.test("==", Lanes(b, arith.intrinsic(b, "trunc", half.v)))
    odd = arith.logical(b, "and", whole, arith.invert(b, even))
    negative = x.bits().nonzero(0x80000000)
    result = (-result).where(arith.logical(b, "and", negative, odd), result)
    below = arith.logical(b, "and", x.test("<", 0.0), x.test(">", -_INF))
    undefined = arith.logical(b, "and", below, arith.invert(b, whole))
    result = x.number(math.nan).where(undefined, result)
    # (-1)^(+-inf) is 1, as are x^0 and 1^y for any other operand, NaN included.
    infinite = arith.logical(b, "and", abs(x).test("==", 1.0), abs(y).test("==", _INF))
    ones = arith.logical(b, "or", x.test("==", 1.0), arith.logical(b, "or", y.test("==", 0.0), infinite))
    return result.number(1.0).where(ones, result)


def _through_double(function: Callable[[Lanes], Lanes]) -> Callable[[Lanes], Lanes]:
    """The `float` version of a `double` function: nearly always the correctly rounded result."""

    def single(x: Lanes) -> Lanes:
        return function(x.to(DType.FLOAT64)).to(DType.FLOAT32)

    return single


@dataclass(frozen=True, slots=True)
class Known:
    """What there is for one function.

    Attributes:
        single, double: for `float` and `double`; `None`: the C library.
        limit_single, limit_double: beyond this magnitude the lanes go through the C library; `inf`: never.
        fused: without fused multiply-add the reduction is not exact, and the C library is used.
    """

    single: Callable[[Lanes], Lanes] | None
    double: Callable[[Lanes], Lanes] | None
    limit_single: float = _INF
    limit_double: float = _INF
    fused: bool = False


KNOWN: dict[str, Known] = {
    "exp": Known(exp, exp),
    "exp2": Known(_through_double(_exp2_double), _exp2_double),
    "exp10": Known(_through_double(_exp10_double), _exp10_double),
    "expm1": Known(_through_double(_expm1_double), _expm1_double),
    "log": Known(_log_single, _log_double),
    "log2": Known(_through_double(_log2_double), _log2_double),
    "log10": Known(_through_double(_log10_double), _log10_double),
    "log1p": Known(_through_double(_log1p_double), _log1p_double),
    "sin": Known(lambda x: _circular(x, 0), lambda x: _circular(x, 0), 1e5, 1e9, True),
    "cos": Known(lambda x: _circular(x, 1), lambda x: _circular(x, 1), 1e5, 1e9, True),
    "tanh": Known(_tanh_single, _tanh_double),
    "erf": Known(_erf_single, None),
    "sigmoid": Known(sigmoid, sigmoid),
}


def power(b: Builder, x: Value, y: Value) -> Value:
    """`x` to the power `y` of `float` lanes."""
    return _pow_single(Lanes(b, x), Lanes(b, y)).v
