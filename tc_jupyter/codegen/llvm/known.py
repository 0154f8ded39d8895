"""The functions that are straight-line code here, and what limits them; what they cost is in a note at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tc_jupyter.program import DType

from . import angles, elementary, error_functions, hyperbolic, powers
from .lanes import Lanes


def _through_double(function: Callable[[Lanes], Lanes]) -> Callable[[Lanes], Lanes]:
    """The `float` version of a `double` function: nearly always the correctly rounded result."""

    def single(x: Lanes) -> Lanes:
        return function(x.to(DType.FLOAT64)).to(DType.FLOAT32)

    return single


@dataclass(frozen=True, slots=True)
class Known:
    """What there is for one function.

    Attributes:
        single, double: for `float` and `double`, of one argument or two.
        fused_single, fused_double: without fused multiply-add a difference is not exact, and the C library is used.
        limit_single, limit_double: where `measure` is larger the lanes go through the C library; `inf`: never.
        measure: of the arguments; the magnitude of the first one unless something else is said.
    """

    single: Callable[..., Lanes]
    double: Callable[..., Lanes]
    fused_single: bool = False
    fused_double: bool = False
    limit_single: float = math.inf
    limit_double: float = math.inf
    measure: Callable[..., Lanes] = Lanes.__abs__


def _circular(function: Callable[[Lanes], Lanes]) -> Known:
    return Known(function, function, True, True, 1e5, 1e9)


KNOWN: dict[str, Known] = {
    "exp": Known(elementary.exp, elementary.exp),
    "exp2": Known(elementary.exp2, elementary.exp2),
    "exp10": Known(elementary.exp10, elementary.exp10),
    "expm1": Known(_through_double(elementary.expm1_double), elementary.expm1_double),
    "log": Known(elementary.log_single, elementary.log_double),
    "log2": Known(elementary.log2_single, elementary.log2_double),
    "log10": Known(elementary.log10_single, elementary.log10_double),
    "log1p": Known(elementary.log1p, elementary.log1p),
    "sin": _circular(lambda x: elementary.circular(x, 0)),
    "cos": _circular(lambda x: elementary.circular(x, 1)),
    "tan": Known(angles.tan_single, angles.tan_double, True, True, 1e9, 1e9),
    "asin": Known(angles.asin, angles.asin),
    "acos": Known(angles.acos, angles.acos),
    "atan": Known(angles.atan, angles.atan),
    "atan2": Known(angles.atan2, angles.atan2),
    "sinh": Known(hyperbolic.sinh, hyperbolic.sinh, True, True),
    "cosh": Known(hyperbolic.cosh, hyperbolic.cosh, True, True),
    "tanh": Known(elementary.tanh_single, elementary.tanh_double),
    "asinh": Known(hyperbolic.asinh_single, hyperbolic.asinh_double, False, True),
    "acosh": Known(hyperbolic.acosh_single, hyperbolic.acosh_double, False, True),
    "atanh": Known(hyperbolic.atanh_single, hyperbolic.atanh_double, False, True),
    "sigmoid": Known(elementary.sigmoid, elementary.sigmoid),
    "erf": Known(error_functions.erf_single, error_functions.erf_double),
    "erfc": Known(error_functions.erfc_single, error_functions.erfc_double, False, True),
    "normcdf": Known(error_functions.normcdf_single, error_functions.normcdf_double, False, True),
    "erfinv": Known(error_functions.erfinv_single, error_functions.erfinv_double, False, True),
    "pow": Known(powers.pow_single, powers.pow_double, False, True),
    "cbrt": Known(_through_double(powers.cbrt_double), powers.cbrt_double),
    "hypot": Known(powers.hypot_single, powers.hypot_double),
    "fmod": Known(powers.fmod_single, powers.fmod_double, False, True, 2.0**29, 2.0**53, powers.quotient),
}


# Note [What the functions cost]
#
# Nanoseconds per element of a vector of 100 000, one thread with AVX-512 (AMD Zen 4, not alone on the machine), and PyTorch 2.13 in
# brackets. Before the arrow: one lane at a time through the C library (SciPy: `erfinv`); the last five, and `pow` and `erf` of
# `float`, already had polynomials. `erf` of `float` and the last five of `double` did not change.
#
#            float                   double
#   pow       2.7 ->  1.8 (2.9)     16.9 ->  3.8 (6.0)
#   erf       0.6 ->  0.7 (1.3)      5.1 ->  2.7 (3.2)
#   erfc      7.2 ->  1.5 (2.3)      7.2 ->  3.1 (6.9)
#   normcdf   3.7 ->  1.4 (1.8)      5.3 ->  3.0 (5.8)
#   tan       9.8 ->  0.8 (1.8)     10.2 ->  1.8 (7.0)
#   asin     12.8 ->  0.4 (1.7)     12.8 ->  1.1 (4.4)
#   acos     13.5 ->  0.5 (1.6)     15.1 ->  1.1 (4.7)
#   atan      8.5 ->  0.5 (2.6)     10.2 ->  1.4 (6.6)
#   atan2    22.5 ->  0.6 (1.8)     22.4 ->  1.8 (3.9)
#   sinh     12.8 ->  0.6 (1.4)     12.5 ->  1.3 (2.9)
#   cosh      9.2 ->  0.5 (1.4)     10.3 ->  1.1 (2.9)
#   asinh    24.8 ->  1.6 (22.6)    24.7 ->  2.6 (24.6)
#   acosh    21.9 ->  1.3 (18.7)    22.2 ->  2.5 (21.4)
#   atanh    23.5 ->  1.3 (1.6)     27.3 ->  2.1 (4.1)
#   cbrt     14.4 ->  1.5 (-)       15.2 ->  1.5 (-)
#   erfinv   21.4 ->  2.3 (1.9)     22.9 ->  7.2 (5.8)
#   hypot    12.0 ->  0.7 (1.2)     12.2 ->  0.7 (2.8)
#   fmod      6.7 ->  1.0 (1.6)      7.2 ->  0.6 (3.5)
#   exp2      0.7 ->  0.3 (0.3)      0.7 ->  0.7 (0.9)
#   exp10     0.9 ->  0.3 (-)        0.9 ->  0.8 (-)
#   log2      1.4 ->  0.6 (1.1)      1.4 ->  1.5 (2.8)
#   log10     1.4 ->  0.6 (1.1)      1.5 ->  1.7 (3.1)
#   log1p     2.1 ->  0.8 (0.8)      1.5 ->  1.8 (2.1)
