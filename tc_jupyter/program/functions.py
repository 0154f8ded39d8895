"""The mathematical functions of both languages: how many arguments, which types, what they compute.

Worked example: `FUNCTIONS["hypot"].arity` is 2, and its documentation is one line that a hover can show.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A mathematical function.

    Attributes:
        arity: number of arguments; for `variadic` functions the smallest number.
        kind: `float` (integers become `float32`, the widest argument type is the result), `numeric` (any type is kept), `rounding`
            (as `float`, but an integer argument is returned unchanged), `test` (floating argument, `bool` result), `border`
            (around a subscript), `complex` (any number), `bits` (an integer, `int32` result).
        document: one line for a reader.
    """

    name: str
    arity: int
    kind: str
    document: str
    variadic: bool = False

    @property
    def signature(self) -> str:
        """`hypot(a, b)`."""
        names = ["x"] if self.arity == 1 and not self.variadic else ["a", "b", "c", "d"][: self.arity]
        return f"{self.name}({', '.join(names)}{', ...' if self.variadic else ''})"

    @property
    def described(self) -> str:
        """The signature, and what it computes, as a help."""
        return f"`{self.signature}`: {self.document}"


_ONE = {
    "acos": "arc cosine, in [0, pi]",
    "acosh": "inverse hyperbolic cosine",
    "asin": "arc sine, in [-pi/2, pi/2]",
    "asinh": "inverse hyperbolic sine",
    "atan": "arc tangent, in [-pi/2, pi/2]",
    "atanh": "inverse hyperbolic tangent",
    "cos": "cosine of an angle in radians",
    "cosh": "hyperbolic cosine",
    "cospi": "cosine of pi times x",
    "sin": "sine of an angle in radians",
    "sinh": "hyperbolic sine",
    "sinpi": "sine of pi times x",
    "tan": "tangent of an angle in radians",
    "tanh": "hyperbolic tangent",
    "exp": "e to the power x",
    "exp2": "2 to the power x",
    "exp10": "10 to the power x",
    "expm1": "exp(x) - 1, accurate near 0",
    "log": "natural logarithm",
    "log2": "logarithm to base 2",
    "log10": "logarithm to base 10",
    "log1p": "log(1 + x), accurate near 0",
    "logb": "exponent of x as a floating number",
    "sqrt": "square root",
    "rsqrt": "1 / sqrt(x)",
    "cbrt": "cube root",
    "rcbrt": "1 / cbrt(x)",
    "erf": "error function",
    "erfc": "1 - erf(x)",
    "erfcx": "exp(x*x) * erfc(x)",
    "erfinv": "inverse of erf",
    "erfcinv": "inverse of erfc",
    "normcdf": "cumulative distribution of the standard normal distribution",
    "normcdfinv": "inverse of normcdf",
    "lgamma": "logarithm of the absolute value of the gamma function",
    "tgamma": "gamma function",
    "digamma": "derivative of the logarithm of the gamma function",
    "j0": "Bessel function of the first kind, order 0",
    "j1": "Bessel function of the first kind, order 1",
    "y0": "Bessel function of the second kind, order 0",
    "y1": "Bessel function of the second kind, order 1",
    "cyl_bessel_i0": "modified Bessel function of the first kind, order 0",
    "cyl_bessel_i1": "modified Bessel function of the first kind, order 1",
    "fabs": "absolute value",
    "sigmoid": "1 / (1 + exp(-x))",
    "relu": "max(x, 0)",
}
_ROUNDING = {
    "ceil": "smallest whole number >= x; integers are returned unchanged",
    "floor": "largest whole number <= x; integers are returned unchanged",
    "round": "nearest whole number, halves away from zero; integers are returned unchanged",
    "trunc": "x without its fraction; integers are returned unchanged",
    "rounded": "x as rounded to its type: no sum around it takes a product exactly; integers are returned unchanged",
}
_TESTS = {
    "isnan": "whether x is not a number",
    "isinf": "whether x is infinite",
    "isfinite": "whether x is neither infinite nor NaN",
}
_NUMERIC = {"abs": "absolute value, in the type of x", "sign": "-1, 0 or 1 by the sign of x, in the type of x"}
_BITS = {"popcount": "how many bits of an integer are 1, as an `int32`"}
_TWO = {
    "atan2": "angle of the point (b, a), in (-pi, pi]",
    "copysign": "a with the sign of b",
    "fdim": "max(a - b, 0)",
    "fdivide": "a / b",
    "fmax": "larger operand; a NaN operand is ignored",
    "fmin": "smaller operand; a NaN operand is ignored",
    "fmod": "remainder of a / b with the sign of a",
    "hypot": "sqrt(a*a + b*b) without overflow",
    "nextafter": "next number after a in the direction of b",
    "polygamma": "derivative number a of digamma at b; NaN where a is no whole number from 0 on",
    "pow": "a to the power b",
    "remainder": "a - b*n for the whole number n nearest to a / b",
    "rhypot": "1 / hypot(a, b)",
}
_THREE = {
    "fma": "a*b + c, rounded once",
    "norm3d": "sqrt(a*a + b*b + c*c)",
    "rnorm3d": "1 / norm3d(a, b, c)",
}
_FOUR = {"norm4d": "sqrt(a*a + b*b + c*c + d*d)", "rnorm4d": "1 / norm4d(a, b, c, d)"}
_MANY = {
    "min": "smallest operand, on any type; a NaN operand gives NaN",
    "max": "largest operand, on any type; a NaN operand gives NaN",
}


def _table() -> dict[str, Function]:
    groups = ((1, "float", _ONE), (1, "rounding", _ROUNDING), (1, "test", _TESTS), (1, "numeric", _NUMERIC))
    groups += ((1, "bits", _BITS), (2, "float", _TWO), (3, "float", _THREE), (4, "float", _FOUR))
    table = {name: Function(name, arity, kind, text) for arity, kind, group in groups for name, text in group.items()}
    return table | {name: Function(name, 2, "numeric", text, variadic=True) for name, text in _MANY.items()}


FUNCTIONS: dict[str, Function] = _table()
"""Every function by its name, `min` and `max` included."""

BORDERS: dict[str, Function] = {
    "clamp": Function(
        "clamp", 1, "border", "in a subscript: beyond the ends the last element; `clamp(x, low, high)` is a value"
    ),
    "wrap": Function("wrap", 1, "border", "in a subscript: beyond one end the elements from the other end on"),
    "reflect": Function(
        "reflect", 1, "border", "in a subscript: beyond the ends as in a mirror, the last element once"
    ),
    "symmetric": Function(
        "symmetric", 1, "border", "in a subscript: beyond the ends as in a mirror, the last element twice"
    ),
}
"""Functions of `%%tc` around a whole subscript, by what the access reads beyond the ends of the array."""

OF_COMPLEX: dict[str, Function] = {
    "conj": Function("conj", 1, "complex", "the complex number with the other sign of its imaginary part"),
    "re": Function("re", 1, "complex", "real part of a complex number"),
    "im": Function("im", 1, "complex", "imaginary part of a complex number; 0 of a real one"),
}
"""Functions of `%%tc` for complex numbers. A tensor may have their names, as the parts of numbers often do."""

RANDOM: dict[str, Function] = {
    "uniform": Function(
        "uniform", 2, "random", "a random `float32` in [0, 1) of the seed `a` and one to four integers", variadic=True
    ),
    "normal": Function(
        "normal", 2, "random", "a normal random `float32` of the seed `a` and one to four integers", variadic=True
    ),
}
"""Functions of `%%tc` whose values are random numbers, the same ones of the same arguments everywhere."""

TC_FUNCTIONS: dict[str, Function] = FUNCTIONS | BORDERS | RANDOM | OF_COMPLEX
"""All functions that `%%tc` knows."""
