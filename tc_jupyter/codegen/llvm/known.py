"""The functions that are straight-line code here, and what limits them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tc_jupyter.program import DType

from . import angles, error_functions, hyperbolic, polynomials, powers
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
    "exp": Known(polynomials.exp, polynomials.exp),
    "exp2": Known(polynomials.exp2, polynomials.exp2),
    "exp10": Known(polynomials.exp10, polynomials.exp10),
    "expm1": Known(_through_double(polynomials.expm1_double), polynomials.expm1_double),
    "log": Known(polynomials.log_single, polynomials.log_double),
    "log2": Known(polynomials.log2_single, polynomials.log2_double),
    "log10": Known(polynomials.log10_single, polynomials.log10_double),
    "log1p": Known(polynomials.log1p, polynomials.log1p),
    "sin": _circular(lambda x: polynomials.circular(x, 0)),
    "cos": _circular(lambda x: polynomials.circular(x, 1)),
    "tan": Known(angles.tan_single, angles.tan_double, True, True, 1e9, 1e9),
    "asin": Known(angles.asin, angles.asin),
    "acos": Known(angles.acos, angles.acos),
    "atan": Known(angles.atan, angles.atan),
    "atan2": Known(angles.atan2, angles.atan2),
    "sinh": Known(hyperbolic.sinh, hyperbolic.sinh, True, True),
    "cosh": Known(hyperbolic.cosh, hyperbolic.cosh, True, True),
    "tanh": Known(polynomials.tanh_single, polynomials.tanh_double),
    "asinh": Known(hyperbolic.asinh_single, hyperbolic.asinh_double, False, True),
    "acosh": Known(hyperbolic.acosh_single, hyperbolic.acosh_double, False, True),
    "atanh": Known(hyperbolic.atanh_single, hyperbolic.atanh_double, False, True),
    "sigmoid": Known(polynomials.sigmoid, polynomials.sigmoid),
    "erf": Known(error_functions.erf_single, error_functions.erf_double),
    "erfc": Known(error_functions.erfc_single, error_functions.erfc_double, False, True),
    "normcdf": Known(error_functions.normcdf_single, error_functions.normcdf_double, False, True),
    "pow": Known(powers.pow_single, powers.pow_double, False, True),
    "cbrt": Known(_through_double(powers.cbrt_double), powers.cbrt_double),
    "hypot": Known(powers.hypot_single, powers.hypot_double),
    "fmod": Known(powers.fmod_single, powers.fmod_double, False, True, 2.0**29, 2.0**53, powers.quotient),
}
