"""Prints `tc_jupyter/codegen/llvm/coefficients.py`: interpolation at Chebyshev nodes in 60 digits, which is close to minimax.

Run `python tests/codegen/fit_coefficients.py > tc_jupyter/codegen/llvm/coefficients.py` after a change here.
"""

from __future__ import annotations

import numpy as np
from mpmath import cos, erf, erfc, exp, log, mp, mpf, pi, sin, sqrt, tanh

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
}


def write(name: str, note: str, values: list[float]) -> None:
    print(f"{name} = (")
    for value in values:
        print(f"    {value!r},")
    print(f')\n"""{note}."""')


def main() -> None:
    print(
        '"""Coefficients of the polynomials, constant term first; written by `tests/codegen/fit_coefficients.py`."""\n'
    )
    for name, (note, function, low, high, single, double) in TABLES.items():
        if single is not None:
            write(f"{name}_32", note, fit(function, low, high, single, True))
        if double is not None:
            write(f"{name}_64", note, fit(function, low, high, double, False))
    write("LN2_32", "ln 2 in two parts; the first times an exponent is exact", parts(log(2), [10, 24]))
    write("LN2_64", "ln 2 in two parts; the first times an exponent is exact", parts(log(2), [33, 53]))
    write("LG2_64", "log10 of 2 in two parts", parts(log(2) / log(10), [33, 53]))
    write("HALF_PI_32", "pi/2 in three parts of `float`", parts(pi / 2, [24, 24, 24]))
    write("HALF_PI_64", "pi/2 in three parts of `double`", parts(pi / 2, [53, 53, 53]))
    write("PER_LN2_64", "1/ln 2 in two parts, the first of 21 bits", parts(1 / log(2), [21, 53]))
    write("PER_LN10_64", "1/ln 10 in two parts, the first of 21 bits", parts(1 / log(10), [21, 53]))


if __name__ == "__main__":
    main()
