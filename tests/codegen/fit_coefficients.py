"""Prints `tc_jupyter/codegen/llvm/coefficients.py`: interpolation at Chebyshev nodes in 60 digits, which is close to minimax, and
minimax polynomials where the error has a weight.

Run `python tests/codegen/fit_coefficients.py > tc_jupyter/codegen/llvm/coefficients.py` after a change here.
"""

from __future__ import annotations

import textwrap

import numpy as np
from mpmath import (
    acosh,
    asin,
    asinh,
    atan,
    cbrt,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    log,
    mp,
    mpf,
    pi,
    polyval,
    sin,
    sinh,
    sqrt,
    tanh,
)

mp.dps = 60


def fit(function, low, high, degree: int, single: bool) -> list[float]:
    """Coefficients, constant term first, of the interpolating polynomial."""
    low, high = mpf(low), mpf(high)
    count = degree + 1
    nodes = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    matrix = mp.matrix(count, count)
    for row, x in enumerate(nodes):
        for power in range(count):
            matrix[row, power] = x**power
    solved = mp.lu_solve(matrix, mp.matrix([function(x) for x in nodes]))
    return [float(np.float32(float(c))) if single else float(c) for c in solved]


def minimax(function, weight, low, high, degree: int) -> list[float]:
    """Coefficients of the polynomial with the smallest weighted error: four steps of the exchange of Remez."""
    low, high, count = mpf(low), mpf(high), degree + 2
    grid = [(low + high) / 2 - (high - low) / 2 * cos(pi * k / (count * 12)) for k in range(count * 12 + 1)]
    values = [(x, function(x), weight(x)) for x in grid]
    chosen = [(x, f, w) for k, (x, f, w) in enumerate(values) if k % 12 == 0 and k != count // 2 * 12]
    for _ in range(4):
        rows = [[x**power for power in range(degree + 1)] + [(-1) ** k / w] for k, (x, _, w) in enumerate(chosen)]
        solved = list(mp.lu_solve(mp.matrix(rows), mp.matrix([f for _, f, _ in chosen])))[:-1]
        errors = [(polyval(solved[::-1], x) - f) * w for x, f, w in values]
        chosen = [values[k] for k in _alternating(errors, count)]
    return [float(c) for c in solved]


def _alternating(errors: list, count: int) -> list[int]:
    """Places of the largest errors of alternating sign."""
    found: list[int] = []
    for k, error in enumerate(errors):
        if found and (error > 0) == (errors[found[-1]] > 0):
            if abs(error) > abs(errors[found[-1]]):
                found[-1] = k
        else:
            found.append(k)
    while len(found) > count:
        found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
    assert len(found) == count
    return found


def parts(value, bits: list[int]) -> list[float]:
    """A number as a sum of floats with the given numbers of bits."""
    found = []
    for count in bits:
        scale = mpf(2) ** (count - 1 - mp.floor(log(abs(value), 2)))
        part = mp.nint(value * scale) / scale
        found.append(float(part))
        value -= part
    return found


HALF_LN2 = log(2) / 2 * mpf("1.002")
QUARTER = (pi / 4 * mpf("1.002")) ** 2


def odd(function, cubed: bool = True):
    """`(f(x) - x) / x^3` (or `f(x)/x - 1`) as a function of `x^2`."""

    def of_square(z):
        x = sqrt(z) if z > 0 else mpf("1e-25")
        return (function(x) - x) / x**3 if cubed else function(x) / x - 1

    return of_square


def even_cos(z):
    x = sqrt(z) if z > 0 else mpf("1e-12")
    return (cos(x) - 1 + x * x / 2) / x**4


def exp_rest(x):
    return (exp(x) - 1 - x) / x**2 if abs(x) > mpf("1e-15") else mpf(1) / 2 + x / 6


def log_rest(f):
    return (log(1 + f) - f + f * f / 2) / f**3


def log_odd(z):
    s = sqrt(z) if z > 0 else mpf("1e-20")
    return ((log((1 + s) / (1 - s)) - 2 * s) / s) / s**2


def power_odd(z):
    s = sqrt(z) if z > 0 else mpf("1e-8")
    return (log((1 + s) / (1 - s)) - 2 * s - 2 * s**3 / 3) / s**5 / log(2)


def cosh_rest(z):
    return (cosh(sqrt(z)) - 1) / z if z > 0 else mpf(1) / 2


def acosh_rest(t):
    t = t if t > 0 else mpf("1e-20")
    return (acosh(1 + t) / sqrt(2 * t) - 1) / t


def one(x):
    return mpf(1)


def tail(t):
    y = 4 * (1 + t) / (1 - t)
    return (1 + mpf("1.125") * y) * exp(y * y) * erfc(y)


def erfinv_ratio(w):
    """`erfinv(x) / x` for `w = -log(1 - x^2)`, by Halley's iteration."""
    if w < mpf("1e-30"):
        return sqrt(pi) / 2
    x = sqrt(1 - exp(-w))
    rest = exp(-w) / (1 + x)
    y = sqrt(w) * mpf("0.9") if w > 1 else x
    for _ in range(12):
        step = (erfc(y) - rest) / (2 / sqrt(pi) * exp(-y * y))
        y += step / (1 - y * step)
    return y / x


def tail_end(y):
    return (mpf(y) - 4) / (mpf(y) + 4)


TABLES = {
    "EXP": ("`(exp(r) - 1 - r) / r^2`, `abs(r) <= ln(2)/2`", exp_rest, -HALF_LN2, HALF_LN2, 4, 10),
    "SIN": ("`(sin(r) - r) / r^3` over `r^2`, `abs(r) <= pi/4`", odd(sin), 0, QUARTER, 2, 5),
    "COS": ("`(cos(r) - 1 + r^2/2) / r^4` over `r^2`", even_cos, 0, QUARTER, 2, 5),
    "LOG": (
        "`(log(1+f) - f + f^2/2) / f^3`, `sqrt(1/2) <= 1+f < sqrt(2)`",
        log_rest,
        sqrt(mpf("0.5")) - 1,
        sqrt(mpf(2)) - 1,
        7,
        None,
    ),
    "LOG_ODD": (
        "`(log((1+s)/(1-s)) - 2s) / s^3` over `s^2`",
        log_odd,
        0,
        (3 - 2 * sqrt(mpf(2))) ** 2 * mpf("1.001"),
        None,
        6,
    ),
    "TANH": ("`(tanh(x) - x) / x^3` over `x^2`, `abs(x) <= 0.625`", odd(tanh), 0, mpf("0.625") ** 2, 4, 11),
    "ERF_SMALL": ("`erf(x)/x - 1` over `x^2`, `abs(x) <= 0.8`", odd(erf, cubed=False), 0, mpf("0.64"), 5, None),
    "ERF_LARGE": ("`-log(1 - erf(x))`, `0.8 <= x <= 4`", lambda x: -log(erfc(x)), mpf("0.8"), mpf("4.0"), 8, None),
    "ATAN": ("`(atan(t) - t) / t^3` over `t^2`, `0 <= t <= 1`", odd(atan), 0, 1, 8, 19),
    "ASIN": ("`(asin(s) - s) / s^3` over `s^2`, `0 <= s <= 1/2`", odd(asin), 0, mpf("0.25"), 4, 11),
    "SINH": ("`(sinh(r) - r) / r^3` over `r^2`, `abs(r) <= ln(2)/2`", odd(sinh), 0, HALF_LN2**2, 2, 4),
    "COSH": ("`(cosh(r) - 1) / r^2` over `r^2`", cosh_rest, 0, HALF_LN2**2, 2, 5),
    "ASINH": ("`(asinh(x) - x) / x^3` over `x^2`, `abs(x) <= 1/2`", odd(asinh), 0, mpf("0.25"), None, 10),
    "ACOSH": ("`(acosh(1 + t) / sqrt(2t) - 1) / t`, `0 <= t <= 1/2`", acosh_rest, 0, mpf("0.5"), None, 11),
    "CBRT": ("`m^(1/3)`, `sqrt(1/2) <= m < sqrt(2)`", cbrt, sqrt(mpf("0.5")), sqrt(mpf(2)), None, 5),
    "POW": (
        "`(log((1+s)/(1-s)) - 2s - 2/3 s^3) / (s^5 ln 2)` over `s^2`",
        power_odd,
        0,
        (3 - 2 * sqrt(mpf(2))) ** 2 * mpf("1.001"),
        None,
        6,
    ),
    "ERF_UNIT": ("`erf(x)/x - 1` over `x^2`, `abs(x) <= 1`", odd(erf, cubed=False), 0, 1, None, 11),
}
WEIGHTED = {
    "EXP2_WIDE": ("`2^r`, `abs(r) <= 1/2`", lambda r: mpf(2) ** r, one, mpf("-0.501"), mpf("0.501"), 6),
    "LOG2_WIDE": (
        "`log((1+s)/(1-s)) / (s ln 2)` over `s^2`",
        lambda z: 2 / log(2) + z * (2 / log(2) / 3 + z * power_odd(z)),
        one,
        0,
        (3 - 2 * sqrt(mpf(2))) ** 2 * mpf("1.001"),
        4,
    ),
    "SIN_WIDE": ("`(sin(r) - r) / r^3` over `r^2`, `abs(r) <= pi/4`", odd(sin), one, 0, QUARTER, 3),
    "COS_WIDE": ("`(cos(r) - 1) / r^2` over `r^2`", lambda z: z * even_cos(z) - mpf("0.5"), one, 0, QUARTER, 3),
    "ERF_LARGE_64": ("`-log(1 - erf(x))`, `1 <= x <= 6`, by `1 - erf(x)`", lambda x: -log(erfc(x)), erfc, 1, 6, 20),
    "ERFINV_WIDE": ("`erfinv(x)/x` over `w = -log(1 - x^2)`, `w <= 6`", erfinv_ratio, one, 0, 6, 11),
    "ERFINV_FAR_WIDE": (
        "`erfinv(x)/(x sqrt(w))` over `2/sqrt(w)`, `6 <= w <= 37`",
        lambda u: erfinv_ratio(4 / u**2) * u / 2,
        one,
        2 / mpf("6.1"),
        2 / sqrt(mpf(6)),
        10,
    ),
    "ERFC_WIDE": ("`(1 + 1.125 y) exp(y^2) erfc(y)` over `(y - 4)/(y + 4)`", tail, one, -1, tail_end("10.2"), 11),
    "ERFC_64": ("`(1 + 1.125 y) exp(y^2) erfc(y)` over `(y - 4)/(y + 4)`", tail, one, -1, tail_end("27.4"), 22),
}


def write(name: str, note: str, values: list[float]) -> None:
    numbers = ", ".join(map(repr, values))
    if len(name) + len(numbers) <= 115:
        print(f"{name} = ({numbers})")
    else:
        print(
            f"{name} = (",
            *textwrap.wrap(f"{numbers},", 128, initial_indent="    ", subsequent_indent="    "),
            ")  # fmt: skip",
            sep="\n",
        )
    print(f'"""{note}."""')


def main() -> None:
    print('"""Coefficients of the polynomials, constant term first; written by `tests/codegen/fit_coefficients.py`.\n')
    print('`_32` is for `float`, `_64` for `double`, `_WIDE` for `float` functions that compute in `double`.\n"""\n')
    for name, (note, function, low, high, single, double) in TABLES.items():
        if single is not None:
            write(f"{name}_32", note, fit(function, low, high, single, True))
        if double is not None:
            write(f"{name}_64", note, fit(function, low, high, double, False))
    for name, (note, *arguments) in WEIGHTED.items():
        write(name, note, minimax(*arguments))
    write("LN2_32", "ln 2 in two parts; the first times an exponent is exact", parts(log(2), [10, 24]))
    write("LN2_64", "ln 2 in two parts; the first times an exponent is exact", parts(log(2), [33, 53]))
    write("LG2_64", "log10 of 2 in two parts", parts(log(2) / log(10), [33, 53]))
    write("HALF_PI_32", "pi/2 in three parts of `float`", parts(pi / 2, [24, 24, 24]))
    write("HALF_PI_64", "pi/2 in three parts of `double`", parts(pi / 2, [53, 53, 53]))
    write("PI_32", "pi in two parts of `float`", parts(pi, [24, 24]))
    write("PI_64", "pi in two parts of `double`", parts(pi, [53, 53]))
    write("ROOT_HALF_64", "sqrt(1/2) in two parts", parts(sqrt(mpf("0.5")), [53, 53]))
    write("ROOT_HALF_HALVES_64", "its first part in two", parts(mpf(float(sqrt(mpf("0.5")))), [26, 27]))
    write("POW_1_64", "2/ln 2 in two parts", parts(2 / log(2), [53, 53]))
    write("POW_3_64", "2/(3 ln 2) in two parts", parts(2 / log(2) / 3, [53, 53]))
    write("LG2_32", "log10 of 2 in two parts; the first times an exponent is exact", parts(log(2) / log(10), [10, 24]))
    write("PER_LN2_32", "1/ln 2 in two parts", parts(1 / log(2), [24, 24]))
    write("PER_LN10_32", "1/ln 10 in two parts", parts(1 / log(10), [24, 24]))
    write("PER_LN2_64", "1/ln 2 in two parts, the first of 21 bits", parts(1 / log(2), [21, 53]))
    write("PER_LN10_64", "1/ln 10 in two parts, the first of 21 bits", parts(1 / log(10), [21, 53]))


if __name__ == "__main__":
    main()
