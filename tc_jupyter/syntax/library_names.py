"""What other languages and libraries write otherwise, and what to write here: tables for messages about names that mean nothing.

A name is looked up only after it was refused, so names of a cell take precedence.

Worked example: `CONSTANTS["pi"]` is the number, and `INSTEAD["silu"].text(["X(i)"], ["X(i)"])` is `(X(i) * sigmoid(X(i)))`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instead:
    """What to write instead of a call.

    Attributes:
        help: in words.
        count: number of arguments for which `template` holds.
        template: the expression; `{0}` is the first argument as it stands, and after all of them they come again, in brackets where
            an operator beside them needs these.
        more: the same with one argument more.
        truths: how many arguments are truth values: the first ones.
    """

    help: str
    count: int = 0
    template: str | None = None
    more: str | None = None
    truths: int = 0

    def text(self, plain: Sequence[str], bracketed: Sequence[str]) -> str | None:
        """The expression for these arguments; `None` where there is none."""
        template = {self.count: self.template, self.count + 1: self.more}.get(len(plain))
        return template and template.format(*plain, *bracketed)


MODULES = frozenset(
    {"np", "numpy", "math", "torch", "jnp", "jax", "cp", "tf", "F", "scipy", "std", "tl", "triton", "nn"}
    | {"te", "tvm", "tir", "topi"}
)
"""Names that stand before `.` in other languages."""

_FLOATS = {  # the largest number, the smallest normal one, and the distance from 1 to the next one
    "float16": ("65504.0", "6.103515625e-05", "0.0009765625"),
    "bfloat16": ("3.3895314e+38", "1.1754944e-38", "0.0078125"),
    "float32": ("3.4028235e+38", "1.1754944e-38", "1.1920929e-07"),
    "float64": ("1.7976931348623157e+308", "2.2250738585072014e-308", "2.220446049250313e-16"),
}
_INTEGER_TYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_LARGEST = {name: str((1 << int(name.strip("uint")) - (name[0] != "u")) - 1) for name in _INTEGER_TYPES}
_SMALLEST = {name: "0" if name[0] == "u" else f"-{int(_LARGEST[name]) + 1}" for name in _INTEGER_TYPES}
_NAMES_OF_LIMITS = {
    **dict.fromkeys(("max", "typemax", "MAX", "intmax", "floatmax", "realmax", "max_value"), "max"),
    **dict.fromkeys(("lowest", "min", "intmin", "MIN"), "lowest"),
    **dict.fromkeys(("tiny", "smallest_normal", "floatmin", "realmin", "min_positive"), "tiny"),
    **dict.fromkeys(("eps", "epsilon", "EPSILON", "resolution"), "eps"),
    **dict.fromkeys(("infinity", "inf"), "inf"),
    **dict.fromkeys(("quiet_NaN", "signaling_NaN", "nan"), "nan"),
    "typemin": "typemin",
}


def limit(name: str, kind: str) -> str | None:
    """The number that `numeric_limits`, `finfo` and the like name for a type; `None` where they name none.

    Worked example: `limit("lowest", "int8")` is `"-128"`, and `limit("eps", "float16")` is `"0.0009765625"`.
    """
    which, known = _NAMES_OF_LIMITS.get(name), _FLOATS.get(kind)
    if known is None:
        return {"max": _LARGEST, "lowest": _SMALLEST, "typemin": _SMALLEST}.get(which or "", {}).get(kind)
    if name in ("typemax", "typemin"):
        return "inf" if name == "typemax" else "-inf"
    numbers = {"max": known[0], "lowest": f"-{known[0]}", "tiny": known[1], "eps": known[2], "inf": "inf", "nan": "nan"}
    return numbers.get(which or "")


LIMITS = frozenset({"numeric_limits", "finfo", "iinfo"})
"""What gives the limits of a type."""
FUNCTIONS_OF_TYPES = frozenset(
    {"typemin", "typemax", "floatmax", "floatmin", "eps", "intmax", "intmin", "realmax", "realmin"}
)
"""Functions of Julia and MATLAB that do, too."""


_OF_C = {
    "FLT": "float32",
    "DBL": "float64",
    **{"SCHAR": "int8", "SHRT": "int16", "INT": "int32", "LONG": "int64", "LLONG": "int64"},
    **{"UCHAR": "uint8", "USHRT": "uint16", "UINT": "uint32", "ULONG": "uint64", "ULLONG": "uint64"},
    **{name.upper(): name for name in _INTEGER_TYPES},
}
_C_LIMITS = {
    f"{prefix}_{end}": number
    for prefix, kind in _OF_C.items()
    for end, name in (("MAX", "max"), ("MIN", "tiny" if "float" in kind else "lowest"), ("EPSILON", "eps"))
    if (number := limit(name, kind)) is not None
}
CONSTANTS = dict.fromkeys(("pi", "PI", "Pi", "M_PI"), "3.141592653589793") | {
    "M_E": "2.718281828459045",
    "euler_gamma": "0.5772156649015329",
    "M_PI_2": "1.5707963267948966",
    "M_PI_F": "3.141592653589793",
    "M_SQRT2": "1.4142135623730951",
    "M_LN2": "0.6931471805599453",
    **dict.fromkeys(("Inf", "INF", "infty", "infinity", "INFINITY", "PINF", "HUGE_VAL", "HUGE_VALF"), "inf"),
    **dict.fromkeys(("Inf32", "Inf64", "Inf16", "CUDART_INF_F", "CUDART_INF"), "inf"),
    "NINF": "-inf",
    **dict.fromkeys(("NaN", "NAN", "NaN32", "NaN64", "CUDART_NAN_F", "CUDART_NAN"), "nan"),
    "realmax": _FLOATS["float64"][0],
    "realmin": _FLOATS["float64"][1],
    **_C_LIMITS,
}
"""Numbers that have a name elsewhere."""
OF_MODULES = {"e": "2.718281828459045", "tau": "6.283185307179586"}
"""Numbers that have one only behind the name of a module, as in `math.e`."""

NOTHING = frozenset({"None", "null", "nullptr", "nil", "NULL", "nothing", "undefined", "newaxis"})
"""What stands for no value."""

_SET_BITS = (
    "popc popcll __popc __popcll popcountll bit_count bitwise_count bitcount count_ones popcnt "
    "__builtin_popcount __builtin_popcountl __builtin_popcountll"
)
RENAMED = {
    "ln": "log",
    "power": "pow",
    "float_power": "pow",
    "maximum": "max",
    "minimum": "min",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "arctan2": "atan2",
    "arccosh": "acosh",
    "arcsinh": "asinh",
    "arctanh": "atanh",
    "absolute": "abs",
    "gamma": "tgamma",
    **dict.fromkeys(("gammaln", "loggamma"), "lgamma"),
    "psi": "digamma",
    "i0": "cyl_bessel_i0",
    "ndtr": "normcdf",
    **dict.fromkeys(("ndtri", "probit"), "normcdfinv"),
    "invsqrt": "rsqrt",
    "mad": "fma",
    **dict.fromkeys(("iabs", "labs", "llabs"), "abs"),
    **dict.fromkeys(("lround", "llround"), "round"),
    **dict.fromkeys(("imax", "max2", "fmaximum"), "max"),
    **dict.fromkeys(("imin", "min2", "fminimum"), "min"),
    **dict.fromkeys(("toint", "to_int"), "int32"),
    **dict.fromkeys(("tofloat", "to_float"), "float32"),
    "expit": "sigmoid",
    "logistic": "sigmoid",
    "sgn": "sign",
    **dict.fromkeys(_SET_BITS.split(), "popcount"),
    "True": "true",
    "False": "false",
    **dict.fromkeys(("real", "creal", "crealf", "Re"), "re"),
    **dict.fromkeys(("imag", "cimag", "cimagf", "Im"), "im"),
    **dict.fromkeys(("conjugate", "conjf"), "conj"),
    **dict.fromkeys(("cabs", "cabsf"), "abs"),
    **dict.fromkeys(("cexp", "cexpf"), "exp"),
    **dict.fromkeys(("csqrt", "csqrtf"), "sqrt"),
}
"""Functions and values that have another name here."""

TYPES = {
    "f16": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "fp32": "float32",
    "single": "float32",
    "real": "float32",
    "f64": "float64",
    "fp64": "float64",
    "i8": "int8",
    "char": "int8",
    "i16": "int16",
    "short": "int16",
    "i32": "int32",
    "integer": "int32",
    "i64": "int64",
    "long": "int64",
    "u8": "uint8",
    "uchar": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "uint": "uint32",
    "unsigned": "uint32",
    "signed": "int32",
    "ubyte": "uint8",
    "ushort": "uint16",
    "ulong": "uint64",
    "u64": "uint64",
    "size_t": "uint64",
    **dict.fromkeys(("ssize_t", "ptrdiff_t", "intptr_t"), "int64"),
    "uintptr_t": "uint64",
    **{f"{name}_t": name for name in _INTEGER_TYPES},
    **dict.fromkeys(("int128", "int256", "i128", "__int128"), "int64"),
    **dict.fromkeys(("uint128", "uint256", "u128"), "uint64"),
    **dict.fromkeys(("float80", "float96", "float128", "float256", "f128", "longdouble", "quad"), "float64"),
    "boolean": "bool",
    "bool_": "bool",
    "int_": "int64",
    "float_": "float64",
}
"""Types that have another name here."""
TC_TYPES = {
    **TYPES,
    **dict.fromkeys(("complex", "cdouble", "c128", "complex256", "complex_"), "complex128"),
    **dict.fromkeys(("cfloat", "csingle", "c64", "complex32"), "complex64"),
}
"""The same for `%%tc`, which has complex numbers."""
WORDS_OF_TYPES = frozenset({"unsigned", "signed", "long", "short", "char", "int", "double"})
"""The words of which the types of C are made."""


def c_type(words: Sequence[str]) -> str:
    """The type here that `unsigned char`, `long int`, `long double` and the like are.

    Worked example: `c_type(["unsigned", "long", "long"])` is `"uint64"`.
    """
    if "double" in words:
        return "float64"
    bits = 8 if "char" in words else 16 if "short" in words else 64 if "long" in words else 32
    return f"{'u' * ('unsigned' in words)}int{bits}"


ARRAY_TYPES = frozenset({"Tensor", "tensor", "array", "Array", "ndarray", "matrix", "Matrix", "vector", "Vector"})

_WORDS = "abs ceil cos erf exp exp2 floor log log10 log2 relu round sigmoid sin sqrt tan tanh"
FUNCTION_WORDS = frozenset(_WORDS.split())
"""Functions whose argument may be found without parentheses."""

_OF_ONE = (
    "abs acos acosh asin asinh atan atanh cbrt ceil clamp conj cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 digamma "
    "erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs floor im isfinite isinf isnan j0 j1 lgamma log log10 "
    "log1p log2 logb normcdf normcdfinv popcount rcbrt re reflect relu round rounded rsqrt sigmoid sign sin sinh sinpi "
    "sqrt symmetric tan tanh tgamma trunc wrap y0 y1"
)
METHODS = frozenset(_OF_ONE.split())
"""Functions of one argument, which other languages have as methods."""
_OF_MORE = (
    "atan2 copysign fdim fdivide fma fmax fmin fmod hypot max min nextafter norm3d norm4d normal polygamma pow "
    "remainder rhypot rnorm3d rnorm4d uniform"
)
FUNCTIONS_HERE = METHODS | set(_OF_MORE.split())
"""All functions that have the same name here."""
SORTING = frozenset({"sort", "argsort", "topk"})
"""Functions that sort."""

_SUMS = "an operator reduces over the indices that stand only on the right, as in `Y(i) {} X(i, j)`"
_TRUTHS = "an operator combines truth values over the indices that stand only on the right, as in `Y(i) {} X(i, j) > 0`"
REDUCING = {
    "sum": _SUMS.format("+=!"),
    "prod": _SUMS.format("*=!"),
    "mean": (
        "sum with `+=!`, and divide by the number of points in a second statement: `Y(i) = Y(i) / X.1` where `j` runs over all of "
        "`X(i, j)`"
    ),
    "softmax": "write the maximum, the powers, their sum and the quotient as statements of a def, and call it: `P = softmax(X)`",
    "argmax": _SUMS.format("argmax=!"),
    "argmin": _SUMS.format("argmin=!"),
    "any": _TRUTHS.format("any=!"),
    "all": _TRUTHS.format("all=!"),
    "max": _SUMS.format("max=!"),
    "min": _SUMS.format("min=!"),
    "logsumexp": _SUMS.format("lse=!"),
}
"""Functions of array libraries that are operators here."""
OPERATORS = {
    **{"sum": "+=!", "prod": "*=!", "logsumexp": "lse=!"},
    **{name: f"{name}=!" for name in ("max", "min", "argmax", "argmin", "any", "all")},
}
"""Those of `REDUCING` that are one operator."""


@dataclass(frozen=True, slots=True)
class Running:
    """What is combined along an index, each element with the one before it.

    Attributes:
        noun: `sum`, `product` and so on.
        operator: `+`, `*`, `max` or `min`.
        start: what stands before the first element; `None` where that is the first value itself.
        value: what is combined, for an argument.
    """

    noun: str
    operator: str
    start: str | None
    value: str = "{}"

    @property
    def help(self) -> str:
        """In words."""
        return f"a running {self.noun} is a statement of its own, as in `Y(i) = {self.text('Y', ['i'], 0, 'X(i)')}`"

    def text(self, target: str, indices: Sequence[str], place: int, argument: str, is_open: bool = False) -> str:
        """What stands behind `=`.

        Args:
            indices: those of the target.
            place: of the index along which it goes.
            is_open: operators beside the argument could take it apart.
        """
        value, is_open = self.value.format(argument), is_open or self.value != "{}"
        bracketed = f"({value})" if is_open else value
        before = ", ".join(f"{index} - 1" if k == place else index for k, index in enumerate(indices))
        former = f"{target}({before}) else {self.start or bracketed}"
        pair = (
            f"{self.operator}({former}, {value})"
            if self.operator.isalpha()
            else f"({former}) {self.operator} {bracketed}"
        )
        return f"{pair} along {indices[place]}"


_RUNNING_SUM, _RUNNING_PRODUCT = Running("sum", "+", "0"), Running("product", "*", "1")
RUNNING = {
    **dict.fromkeys(("cumsum", "cumulative_sum", "prefix_sum", "inclusive_scan", "partial_sum"), _RUNNING_SUM),
    **dict.fromkeys(("cumprod", "cumulative_prod"), _RUNNING_PRODUCT),
    "nancumsum": Running("sum", "+", "0", "isnan({0}) ? 0 : {0}"),
    "nancumprod": Running("product", "*", "1", "isnan({0}) ? 1 : {0}"),
    "cummax": Running("maximum", "max", None),
    "cummin": Running("minimum", "min", None),
}
"""Functions that are a recurrence here."""


_COUNT = "there is none: count with `+=!`, as in `n(i) +=! int32(B(i, j))`, and take `n(i) % 2`"
WORD_OPERATORS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(("sum", "add", "plus"), ("+=!", None)),
    **dict.fromkeys(("prod", "product", "mul", "times"), ("*=!", None)),
    **dict.fromkeys(("or", "any"), ("any=!", REDUCING["any"])),
    **dict.fromkeys(("and", "all"), ("all=!", REDUCING["all"])),
    **{name: (f"{name}=!", None) for name in ("argmin", "argmax", "lse")},
    **dict.fromkeys(("logsumexp", "logaddexp"), ("lse=!", None)),
    **dict.fromkeys(("maximum", "fmax", "amax"), ("max=!", None)),
    **dict.fromkeys(("minimum", "fmin", "amin"), ("min=!", None)),
    **dict.fromkeys(("mean", "avg", "average"), ("", REDUCING["mean"])),
    "xor": ("", _COUNT),
    **dict.fromkeys(
        ("std", "var"), ("", "sum `X(i)` and `X(i) * X(i)` with `+=!`, and write the quotients in a later statement")
    ),
    **{name: ("", running.help) for name, running in RUNNING.items()},
}
"""Words that are written before `=!` as operators are: the operator that is meant, if there is one, and a help."""


_SAME_REDUCTIONS = {
    "amax": "max",
    "amin": "min",
    "product": "prod",
    "average": "mean",
    "avg": "mean",
    "lse": "logsumexp",
    **{"maxval": "max", "minval": "min", "maxloc": "argmax", "minloc": "argmin"},
    "nanargmax": "argmax",
    "nanargmin": "argmin",
}


def reducing(name: str) -> str | None:
    """The key of `REDUCING` for `sum`, `sum_j`, `amax`, `reduce_sum` and the like."""
    word = name.removeprefix("reduce_").partition("_")[0]
    word = _SAME_REDUCTIONS.get(word, word)
    return word if word in REDUCING else None


def is_known(name: str) -> bool:
    """Whether a name means something elsewhere that is written otherwise here."""
    return name in RENAMED or name in TYPES or name in INSTEAD or reducing(name) is not None


_PRODUCT = Instead("a product of matrices is `C(i, j) +=! A(i, k) * B(k, j)`")
_TRANSPOSE = Instead("write the indices in the other order, as in `Y(i, j) = X(j, i)`")
_EXTENT = Instead("the extent of dimension 0 of `X` is `X.0`, the number of elements of a matrix `X.0 * X.1`")
_SPREAD = Instead("sum `X(i)` and `X(i) * X(i)` with `+=!`, and write the quotients in a later statement")
_FILLED = Instead(
    "a tensor is there once a statement writes it; a constant needs only a range, as in `Y(i) = 0.0 where i in 0:N`"
)
_COUNTED = Instead("an index is a value, as in `Y(i) = i where i in 0:N`")
_WITHOUT_NAN = "a NaN is left out by a choice, as in `Y(i) {} isnan(X(i, j)) ? {} : X(i, j)`"
_OF_NUMBERS = {"nansum": ("+=!", "0"), "nanprod": ("*=!", "1"), "nanmax": ("max=!", "-inf"), "nanmin": ("min=!", "inf")}
_COUNT_OF = Instead("count with `+=!`, as in `n(i) +=! X(i, j) != 0 ? 1 : 0`")
_STEPS = Instead(
    "what goes on step by step reads the element before, as the running sum `Y(i) = (Y(i - 1) else 0) + X(i) along i` does"
)
_JOINED = Instead("choose by the index, as in `Y(i) = i < N ? A(i) : B(i - N) where i in 0:N + M`")
_RESHAPED = Instead("compute the old indices, as in `Y(i) = X(i / M, i % M) where i in 0:N * M`")
_COUNTED_BINS = Instead(
    "count with `+=!`, as in `H(I(i)) +=! 1` with the number of bins in the result list: `-> (int32(10) H)`"
)
_HISTOGRAM = Instead(
    "count with `+=!`, as in `H(int32(floor((X(i) - a) / w))) +=! 1` for bins of the width `w` from `a` on, and state their number "
    "in the result list: `-> (int32(10) H)`"
)
_CONVOLVED = Instead(
    "a convolution is `Y(i) +=! X(i + k) * W(K - 1 - k)` for a `W` of `K` elements; with the borders, "
    "`Y(i) +=! (X(i - k) else 0) * W(k) where i in 0:N + K - 1`"
)
_CORRELATED = Instead("a correlation is `Y(i) +=! X(i + k) * W(k)`")
_LOOKED_UP = Instead(
    "an element is read where another tensor says, as in `Y(i) = X(I(i))`, or a row: `Y(i, j) = X(I(i), j)`"
)
_REPEATED = Instead("each element three times is `Y(i) = X(i / 3) where i in 0:3 * N`; the whole, `X(i % N)`")
_TILED = Instead("the whole three times is `Y(i) = X(i % N) where i in 0:3 * N`; each element, `X(i / 3)`")
_INTERPOLATED = Instead(
    "both neighbours are read, as in `Y(i) = F(k) + (P(i) - k) * (F(k + 1) - F(k)) where k = int32(P(i))` for a position `P(i)` "
    "in `F`"
)
_STACKED = Instead(
    "choose by the index of the axis, as in `Y(i, j) = i < N ? A(i, j) : B(i - N, j) where i in 0:N + M` for rows"
)
_MOVED = Instead("write the indices in another order, as in `Y(j, k, i) = X(i, j, k)`")
_WITH_ONE = Instead("an axis of extent 1 is an index that is 0, as in `Y(i, j) = X(i, 0, j)`, or one that is left out")
_COVARIANCE = Instead(
    "subtract the means in a statement of its own, sum the products with `C(i, j) +=! Z(i, n) * Z(j, n)`, and divide in a later one"
)
_MADE = Instead("a tensor is there once a statement writes it, as in `Y(i) = X(i) * i`: nothing makes it before")
_SORTED = Instead("no statement sorts: sort in Python and pass the result")
_RANDOM = Instead(
    "random numbers are `uniform(seed, i)` and `normal(seed, i)`, or made in Python and passed as a parameter"
)
_CLAMP = Instead("a value is limited with `min(max(x, a), b)`", 3, "min(max({0}, {1}), {2})")
LEADING_ZEROS = frozenset({"clz", "__clz", "__clzll", "__builtin_clz", "__builtin_clzll", "leading_zeros", "lzcnt"})
"""Functions that count the zeros above the highest bit that is 1."""
_SQUARE = Instead("a square is `x^2`", 1, "{1}^2")
_SILU = Instead("`silu(x)` is `x * sigmoid(x)`", 1, "({1} * sigmoid({0}))")
_CHOICE = Instead("a choice is written `condition ? value : other`", 3, "({3} ? {4} : {5})", truths=1)
_XOR = "of truth values it is `a != b`, of bits `a ^^ b`"
POINTERS = ("load", "store", "deref")
"""Functions that take an address."""
_POINTER = Instead("an element is read as `X(i)`; the ranges of the indices take the place of pointers and masks")
_ELEMENTS = Instead("a statement says what one element is, as in `Y(i) = exp(X(i))`")
_THREAD = Instead("an index runs over everything it can index; which thread computes what is said by a schedule")
_REMAINDER = Instead("a remainder is `a % b`", 2, "({2} % {3})")
_TO_EVEN = Instead(
    "`round(x)` takes halves away from zero; halves to the even number are `x - remainder(x, 1)`",
    1,
    "({1} - remainder({0}, 1))",
)
_RECIPROCAL = Instead("a reciprocal is a quotient", 1, "(1.0 / {1})")
_ROUNDS_DOWN = "`/` of two integers rounds down, that of two floats is rounded down with `floor`"
_ROUNDED_DOWN = Instead(_ROUNDS_DOWN, 2, "({2} / {3})")
_ROUNDED_UP = Instead("a quotient of integers is rounded up as `(a + b - 1) / b`", 2, "(({2} + {3} - 1) / {3})")
_QUOTIENT = Instead("a quotient of integers rounds down, unless one is cast to a float", 2, "(double({0}) / {3})")
_LEAKY = Instead(
    "`leaky_relu(x, a)` is `x > 0 ? x : a * x`", 1, "({1} > 0 ? {1} : 0.01 * {1})", "({2} > 0 ? {2} : {3} * {2})"
)
_ELU = Instead(
    "`elu(x)` is `x > 0 ? x : expm1(x)`", 1, "({1} > 0 ? {1} : expm1({0}))", "({2} > 0 ? {2} : {3} * expm1({0}))"
)
_FRACTION = Instead("it is `x - floor(x)`; with the sign of `x`, `x - trunc(x)`", 1, "({1} - floor({0}))")
_MIXED = Instead("between two values is `a + t * (b - a)`", 3, "({3} + {5} * ({4} - {3}))")
_INVERTED = Instead("it is `~a`", 1, "~{1}")
_NEGATED = Instead("a truth value is negated with `!`", 1, "!{1}")
_BITS_OF_FLOATS = "the bits of a float are not seen here: take them in Python, as in `X.view(numpy.int32)`"
_ROTATED = "bits of a `uint32` are rotated as `x << n | x >> 32 - n`"
_LEADING = (
    "zeros above are counted in a statement of their own, as in `Y(i) +=! X(i) >> b == 0 ? 1 : 0 where b in 0:32`"
)
_OPERATIONS = {
    **dict.fromkeys(("add", "plus"), "+"),
    **dict.fromkeys(("subtract", "sub", "minus"), "-"),
    **dict.fromkeys(("multiply", "mul", "times"), "*"),
    **{
        "equal": "==",
        "eq": "==",
        "not_equal": "!=",
        "ne": "!=",
        "less": "<",
        "lt": "<",
        "less_equal": "<=",
        "le": "<=",
    },
    **{"greater": ">", "gt": ">", "greater_equal": ">=", "ge": ">="},
}
"""Functions that are an operator between two operands."""
INSTEAD: dict[str, Instead] = {
    **dict.fromkeys(
        ("matmul", "mm", "mv", "bmm", "dot", "dot_product", "einsum", "tensordot", "inner", "vdot"), _PRODUCT
    ),
    **dict.fromkeys(("T", "t", "mT", "rearrange", "transpose", "permute", "swapaxes"), _TRANSPOSE),
    **dict.fromkeys(("len", "size", "shape", "numel", "width", "height", "channels", "extent"), _EXTENT),
    **dict.fromkeys(("std", "var", "variance", "nanstd", "nanvar"), _SPREAD),
    **dict.fromkeys(("zeros", "ones", "full", "empty", "similar"), _FILLED),
    **dict.fromkeys(("zeros_like", "ones_like", "full_like", "empty_like"), _FILLED),
    **dict.fromkeys(("range", "arange", "linspace", "iota"), _COUNTED),
    **{name: Instead(running.help) for name, running in RUNNING.items()},
    **dict.fromkeys(("scan", "accumulate", "associative_scan"), _STEPS),
    **dict.fromkeys(("count_nonzero", "count"), _COUNT_OF),
    **{name: Instead(_WITHOUT_NAN.format(operator, other)) for name, (operator, other) in _OF_NUMBERS.items()},
    "nanmean": Instead("sum what is no NaN with `+=!`, count it in a second statement, and divide in a third"),
    "ptp": Instead("find both ends with `max=!` and `min=!`, and subtract them in a later statement"),
    "trace": Instead("a trace is `s +=! X(i, i)`"),
    **dict.fromkeys(("diag", "diagonal"), Instead("a diagonal is read as `Y(i) = X(i, i)`")),
    **dict.fromkeys(("flip", "reverse"), Instead("count from the end, as in `Y(i) = X(N - 1 - i)`")),
    "bincount": _COUNTED_BINS,
    **dict.fromkeys(("histogram", "histc", "hist"), _HISTOGRAM),
    "convolve": _CONVOLVED,
    "correlate": _CORRELATED,
    "conv1d": Instead(
        "it is `Y(b, o, x) +=! X(b, c, x + u) * W(o, c, u)`, and then `Y(b, o, x) += bias(o)` for a bias"
    ),
    "conv2d": Instead("it is `Y(b, o, y, x) +=! X(b, c, y + v, x + u) * W(o, c, v, u)`"),
    "linear": Instead("it is `Y(n, o) +=! X(n, i) * W(o, i)`, and then `Y(n, o) += bias(o)` for a bias"),
    **dict.fromkeys(("take", "gather", "index_select", "take_along_axis", "embedding"), _LOOKED_UP),
    **dict.fromkeys(("repeat", "repeat_interleave"), _REPEATED),
    "tile": _TILED,
    "tril": Instead("choose by the indices, as in `Y(i, j) = j <= i ? X(i, j) : 0`"),
    "triu": Instead("choose by the indices, as in `Y(i, j) = j >= i ? X(i, j) : 0`"),
    "interp": _INTERPOLATED,
    "diff": Instead("subtract neighbours, as in `Y(i) = X(i + 1) - X(i)`"),
    **dict.fromkeys(("concatenate", "concat", "cat", "stack"), _JOINED),
    **dict.fromkeys(("vstack", "hstack", "dstack", "row_stack", "column_stack"), _STACKED),
    **dict.fromkeys(("moveaxis", "movedim", "rollaxis"), _MOVED),
    **dict.fromkeys(("squeeze", "unsqueeze", "expand_dims", "atleast_1d", "atleast_2d", "atleast_3d"), _WITH_ONE),
    **dict.fromkeys(("cov", "corrcoef"), _COVARIANCE),
    **dict.fromkeys(("array", "asarray", "as_tensor", "from_numpy"), _MADE),
    **dict.fromkeys(("reshape", "flatten", "ravel"), _RESHAPED),
    **dict.fromkeys(("median", "nanmedian", "quantile", "percentile"), _SORTED),
    **dict.fromkeys(("rand", "randn", "random"), _RANDOM),
    "clip": _CLAMP,
    "mirror": Instead(
        "an index is mirrored at the ends with `reflect(e)`, which reads no end twice", 1, "reflect({0})"
    ),
    **dict.fromkeys(
        ("nearest", "edge", "replicate"),
        Instead("an index beyond an end reads that end with `clamp(e)`", 1, "clamp({0})"),
    ),
    **dict.fromkeys(
        ("periodic", "circular", "wraparound", "torus"), Instead("an index goes round with `wrap(e)`", 1, "wrap({0})")
    ),
    **dict.fromkeys(("square", "sqr"), _SQUARE),
    **dict.fromkeys(("silu", "swish"), _SILU),
    **dict.fromkeys(("select", "ifelse", "iif", "if_then_else", "np.where"), _CHOICE),
    "merge": Instead(_CHOICE.help, 3, "({5} ? {3} : {4})"),
    "xor": Instead(_XOR, 2, "({2} ^^ {3})"),
    "logical_xor": Instead(_XOR, 2, "({2} != {3})", truths=2),
    **{
        f"bitwise_{name}": Instead(f"of bits it is `a {operator} b`", 2, f"({{2}} {operator} {{3}})")
        for name, operator in (("and", "&"), ("or", "|"), ("xor", "^^"), ("left_shift", "<<"), ("right_shift", ">>"))
    },
    "left_shift": Instead("it is `a << n`", 2, "({2} << {3})"),
    "right_shift": Instead("it is `a >> n`", 2, "({2} >> {3})"),
    **dict.fromkeys(("bitwise_not", "bitwise_invert", "invert", "lnot"), _INVERTED),
    **dict.fromkeys(("mod", "modulo"), _REMAINDER),
    **{name: Instead(f"it is `a {sign} b`", 2, f"({{2}} {sign} {{3}})") for name, sign in _OPERATIONS.items()},
    **dict.fromkeys(("rint", "nearbyint", "lrint", "llrint", "around", "rounde", "np.round"), _TO_EVEN),
    "fix": Instead("it is `trunc(x)`", 1, "trunc({0})"),
    **dict.fromkeys(("floor_divide", "floordiv", "floor_div", "fld", "int_div", "idiv"), _ROUNDED_DOWN),
    **dict.fromkeys(("div", "quot"), Instead(_ROUNDS_DOWN)),
    **dict.fromkeys(("cdiv", "ceil_div", "ceildiv", "cld", "div_up", "divup"), _ROUNDED_UP),
    **dict.fromkeys(("divide", "true_divide", "truediv"), _QUOTIENT),
    "rem": Instead("`a % b` has the sign of `b`, and `fmod(a, b)`, of floats, that of `a`"),
    **dict.fromkeys(("negative", "neg"), Instead("it is `-x`", 1, "(-{1})")),
    "positive": Instead("it is `x`", 1, "{1}"),
    "abs2": Instead("it is `x^2`", 1, "{1}^2"),
    "zero": Instead("it is 0, in the type of what it meets", 1, "0"),
    "one": Instead("it is 1, in the type of what it meets", 1, "1"),
    "cube": Instead("a cube is `x^3`", 1, "{1}^3"),
    "signbit": Instead("the sign, also of `-0.0`, is that of `copysign(1.0, x)`", 1, "(copysign(1.0, {0}) < 0)"),
    "heaviside": Instead("a step is `x < 0 ? 0.0 : x > 0 ? 1.0 : h`", 2, "({2} < 0 ? 0.0 : {2} > 0 ? 1.0 : {3})"),
    "sinc": Instead(
        "it is `sinpi(x) / (pi * x)`, and 1 at 0", 1, "({1} == 0 ? 1.0 : sinpi({0}) / (3.141592653589793 * {1}))"
    ),
    **dict.fromkeys(("deg2rad", "radians"), Instead("it is `x * pi / 180`", 1, "({1} * 0.017453292519943295)")),
    **dict.fromkeys(("rad2deg", "degrees"), Instead("it is `x * 180 / pi`", 1, "({1} * 57.29577951308232)")),
    "sec": Instead("it is `1 / cos(x)`", 1, "(1.0 / cos({0}))"),
    "csc": Instead("it is `1 / sin(x)`", 1, "(1.0 / sin({0}))"),
    "cot": Instead("it is `1 / tan(x)`", 1, "(1.0 / tan({0}))"),
    "sech": Instead("it is `1 / cosh(x)`", 1, "(1.0 / cosh({0}))"),
    **dict.fromkeys(("fract", "frac"), _FRACTION),
    "modf": Instead("the parts of `x` are `trunc(x)` and `x - trunc(x)`"),
    **dict.fromkeys(("saturate", "saturatef"), Instead("it is `min(max(x, 0), 1)`", 1, "min(max({0}, 0), 1)")),
    "clip_by_value": _CLAMP,
    **dict.fromkeys(("lerp", "mix"), _MIXED),
    **dict.fromkeys(("absdiff", "absolute_difference"), Instead("it is `abs(a - b)`", 2, "abs({2} - {3})")),
    **dict.fromkeys(("squared_difference", "squared_diff"), Instead("it is `(a - b)^2`", 2, "(({2} - {3})^2)")),
    **dict.fromkeys(("ldexp", "scalbn"), Instead("it is `x * exp2(n)`", 2, "({2} * exp2({1}))")),
    "xlogy": Instead("it is `x * log(y)`, and 0 where `x` is", 2, "({2} == 0 ? 0 : {2} * log({1}))"),
    "logaddexp": Instead("it is `log(exp(a) + exp(b))`", 2, "(max({0}, {1}) + log1p(exp(-abs({2} - {3}))))"),
    "isclose": Instead("it is `abs(a - b) <= 1e-8 + 1e-5 * abs(b)`", 2, "(abs({2} - {3}) <= 1e-8 + 1e-5 * abs({1}))"),
    "allclose": Instead("compare all, as in `ok all=! abs(A(i) - B(i)) <= 1e-5`"),
    "isposinf": Instead("it is `x == inf`", 1, "({1} == inf)"),
    "isneginf": Instead("it is `x == -inf`", 1, "({1} == -inf)"),
    "iseven": Instead("it is `x % 2 == 0`", 1, "({1} % 2 == 0)"),
    "isodd": Instead("it is `x % 2 != 0`", 1, "({1} % 2 != 0)"),
    "nan_to_num": Instead(
        "it is `isnan(x) ? 0 : x`; infinite values have limits of their own", 1, "(isnan({0}) ? 0 : {1})"
    ),
    **dict.fromkeys(
        ("angle", "arg", "phase", "carg"), Instead("it is `atan2(im(z), re(z))`", 1, "atan2(im({0}), re({0}))")
    ),
    "factorial": Instead("it is `tgamma(n + 1)`", 1, "tgamma({1} + 1)"),
    **dict.fromkeys(("bitcast", "bit_cast", "reinterpret", "view"), Instead(_BITS_OF_FLOATS)),
    **dict.fromkeys(("rotl", "rotr", "rotate_left", "rotate_right"), Instead(_ROTATED)),
    **dict.fromkeys(LEADING_ZEROS, Instead(_LEADING)),
    **dict.fromkeys(POINTERS, _POINTER),
    **dict.fromkeys(("program_id", "num_programs", "get_global_id"), _THREAD),
    **dict.fromkeys(("map", "vmap", "vectorize", "apply", "compute", "foreach", "pmap"), _ELEMENTS),
    "norm": Instead("sum the squares with `S +=! X(i) * X(i)`, and write `sqrt(S)` in a later statement"),
    "outer": Instead("write both indices, as in `C(i, j) = A(i) * B(j)`"),
    "eye": Instead("choose by the indices, as in `Y(i, j) = i == j ? 1.0 : 0.0 where i in 0:N, j in 0:N`"),
    "pad": Instead("say what is read beyond the ends, as in `X(e) else 0`, `X(clamp(e))` or `X(reflect(e))`"),
    "roll": Instead("the remainder wraps an index around, as in `Y(i) = X((i - 1) % N) where i in 0:N`"),
    "gelu": Instead("`gelu(x)` is `x * normcdf(x)`", 1, "({1} * normcdf({0}))"),
    "softplus": Instead("`softplus(x)` is `log(1 + exp(x))`", 1, "(max({0}, 0) + log1p(exp(-abs({0}))))"),
    "elu": _ELU,
    **dict.fromkeys(("leaky_relu", "prelu"), _LEAKY),
    "selu": Instead(
        "`selu(x)` is `elu` with two factors",
        1,
        "(1.0507009873554805 * ({1} > 0 ? {1} : 1.6732632423543772 * expm1({0})))",
    ),
    "mish": Instead("`mish(x)` is `x * tanh(softplus(x))`", 1, "({1} * tanh(max({0}, 0) + log1p(exp(-abs({0})))))"),
    "softsign": Instead("`softsign(x)` is `x / (1 + abs(x))`", 1, "({1} / (1 + abs({0})))"),
    "hardtanh": Instead("`hardtanh(x)` is `min(max(x, -1), 1)`", 1, "min(max({0}, -1), 1)"),
    "hardsigmoid": Instead("`hardsigmoid(x)` is `relu6(x + 3) / 6`", 1, "(min(max({1} + 3, 0), 6) / 6)"),
    "hardswish": Instead("`hardswish(x)` is `x * relu6(x + 3) / 6`", 1, "({1} * min(max({1} + 3, 0), 6) / 6)"),
    "tanhshrink": Instead("`tanhshrink(x)` is `x - tanh(x)`", 1, "({1} - tanh({0}))"),
    **dict.fromkeys(
        ("logsigmoid", "log_sigmoid"),
        Instead("it is `log(sigmoid(x))`", 1, "(min({0}, 0) - log1p(exp(-abs({0}))))"),
    ),
    "logit": Instead("`logit(x)` is `log(x / (1 - x))`", 1, "log({1} / (1 - {1}))"),
    "log_softmax": Instead("write `L(n) lse=! X(n, d)`, and then `Y(n, d) = X(n, d) - L(n)`"),
    "relu6": Instead("`relu6(x)` is `min(max(x, 0), 6)`", 1, "min(max({0}, 0), 6)"),
    **dict.fromkeys(("reciprocal", "recip", "rcp", "frcp"), _RECIPROCAL),
    "logical_and": Instead("both are true: `a && b`", 2, "({2} && {3})", truths=2),
    "logical_or": Instead("one is true: `a || b`", 2, "({2} || {3})", truths=2),
    **dict.fromkeys(("logical_not", "not_"), _NEGATED),
}
"""Functions that are an expression, a statement, or nothing here."""
OF_TRUTHS = {
    "xor": INSTEAD["logical_xor"],
    **{f"bitwise_{name}": INSTEAD[f"logical_{name}"] for name in ("and", "or", "xor", "not")},
    **dict.fromkeys(("invert", "lnot", "bitwise_invert"), _NEGATED),
}
"""Those that are another expression where the arguments are truth values."""
OF_NUMBERS: dict[str, Instead] = dict.fromkeys(
    ("logical_not", "not_"), Instead("a number is 0 where `x == 0`", 1, "({1} == 0)")
)
"""And where the first one is a number."""
_BITS_OF_NUMBERS = Instead(
    "bits are those of integers: cast the operands, as in `int32(x)`, which cuts off the fraction"
)
_OF_FLOATS = {
    _ROUNDED_DOWN: Instead(_ROUNDS_DOWN, 2, "floor({2} / {3})"),
    _ROUNDED_UP: Instead("rounded up it is `ceil(a / b)`", 2, "ceil({2} / {3})"),
    _QUOTIENT: Instead("it is `a / b`", 2, "({2} / {3})"),
}
OF_FLOATS = {
    "xor": INSTEAD["logical_xor"],
    **{name: _BITS_OF_NUMBERS for name in INSTEAD if name.startswith("bitwise_") or name in ("invert", "lnot")},
    "left_shift": Instead("bits are those of integers: it is `x * exp2(n)`", 2, "({2} * exp2({1}))"),
    "right_shift": Instead("bits are those of integers: it is `x / exp2(n)`", 2, "({2} / exp2({1}))"),
    "rem": Instead(INSTEAD["rem"].help, 2, "fmod({0}, {1})"),
    **{name: _OF_FLOATS[each] for name, each in INSTEAD.items() if each in _OF_FLOATS},
    **dict.fromkeys(("div", "quot"), Instead(_ROUNDS_DOWN, 2, "trunc({2} / {3})")),
}
"""And where one of them is a float."""


def instead_of(name: str, kinds: Sequence[str]) -> Instead | None:
    """What to write instead of a function, for arguments that are `truth`, `number` (an integer), `float`, or unknown (empty)."""
    known = [kind for kind in kinds if kind]
    if known and set(known) == {"truth"}:
        return OF_TRUTHS.get(name) or INSTEAD.get(name)
    if "float" in known and name in OF_FLOATS:
        return OF_FLOATS[name]
    is_number = bool(kinds) and kinds[0] in ("number", "float")
    return (OF_NUMBERS.get(name) if is_number else None) or INSTEAD.get(name)


def of_pair(name: str, kinds: Sequence[str], functions: Collection[str]) -> str | None:
    """A function of two values as a text with `{0}` and `{1}` in their places; `None` where nothing is known of it.

    Worked example: `of_pair("subtract", ["float", "float"], ["max"])` is `{0} - {1}`, and that of `maximum` is `max({0}, {1})`.
    """
    plain = RENAMED.get(name, name)
    if plain in functions:
        return f"{plain}({{0}}, {{1}})"
    instead = instead_of(name, kinds)
    truth_needed = instead is not None and any(kind != "truth" for kind in kinds[: instead.truths])
    text = None if instead is None or truth_needed else instead.text(["{0}", "{1}"], ["{0}", "{1}"])
    return text[1:-1] if text is not None and text.startswith("(") else text


def depends_on_types(name: str) -> bool:
    """Whether what to write instead of a function depends on its arguments."""
    return name in OF_TRUTHS or name in OF_NUMBERS or name in OF_FLOATS or INSTEAD[name].truths > 0


_DECORATED = re.compile(r"(?:__|native_|half_|fast_|approx_)?(\w+?)(?:f_r[nzud]|_r[nzud]|f|l|_)?")


def plain_name(name: str, functions: Collection[str]) -> str | None:
    """The name of `functions` that a name of C, CUDA or PyTorch decorates; `None` if there is none.

    Worked example: `plain_name("__expf", ["exp"])` is `"exp"`, and so is that of `expf` and `exp_`.
    """
    match = _DECORATED.fullmatch(name)
    plain = match.group(1) if match else ""
    return plain if plain != name and plain in functions else None


OF_BITS = {
    **dict.fromkeys(LEADING_ZEROS, "{0} >> {1} == 0 ? 1 : 0"),
}
"""Functions that are a sum over the bits of an integer: what is added for a bracketed integer and the number of a bit."""
REDUCED = {
    **{name: (operator, "{0}") for name, operator in OPERATORS.items()},
    **{name: (operator, f"isnan({{0}}) ? {other} : {{0}}") for name, (operator, other) in _OF_NUMBERS.items()},
    **dict.fromkeys(("count_nonzero", "count"), ("+=!", "{1} != 0 ? 1 : 0")),
}
"""Functions that are one statement: its operator, and its value for an argument, without and with brackets."""


def subscripts_of(name: str, ranks: Sequence[int]) -> str | None:
    """What `einsum` would get for a product of arrays of these ranks; `None` where that is no such product.

    Worked example: `subscripts_of("matmul", [2, 1])` is `"ik,k->i"`.
    """
    known: dict[tuple[int, ...], str] = {(1, 1): "k,k->", (2, 2): "ik,kj->ij", (2, 1): "ik,k->i", (1, 2): "k,kj->j"}
    if name in ("matmul", "mm", "dot", "dot_product", "mv"):
        return known.get(tuple(ranks)) if name != "mv" or tuple(ranks) == (2, 1) else None
    one = {"inner": "k,k->", "vdot": "k,k->", "outer": "i,j->ij"}
    if name == "bmm":
        return "bik,bkj->bij" if tuple(ranks) == (3, 3) else None
    return one.get(name) if tuple(ranks) == (1, 1) else None


def with_free_letters(subscripts: str, taken: Callable[[str], bool]) -> str | None:
    """Subscripts with other letters for those that mean something; `None` where there are too few."""
    used = dict.fromkeys(letter for letter in subscripts if letter.isalpha())
    spare = iter([letter for letter in "lmnpqrs" if letter not in used and not taken(letter)])
    names = {letter: next(spare, "") if taken(letter) else letter for letter in used}
    return subscripts.translate(str.maketrans(names)) if all(names.values()) else None


def einsum(subscripts: str, operands: Sequence[str], target: str) -> str | None:
    """The statement for an `einsum` of plain names; `None` where there is none.

    Worked example: `einsum("ik,kj->ij", ["A", "B"], "C")` is `C(i, j) +=! A(i, k) * B(k, j)`.
    """
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    letters = set(left) - {","}
    if not arrow:  # the letters that occur once, in alphabetical order
        result = "".join(sorted(letter for letter in letters if left.count(letter) == 1))
    plain = all(letter.isalpha() for letter in letters) and not letters & set(operands)
    if not plain or len(terms) != len(operands) or not set(result) <= letters or "" in terms:
        return None
    product = " * ".join(f"{name}({', '.join(term)})" for name, term in zip(operands, terms, strict=True))
    written = f"{target}({', '.join(result)})" if result else target
    return f"{written} {'+=!' if letters - set(result) else '='} {product}"
