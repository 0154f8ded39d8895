"""What other languages and libraries write otherwise, and what to write here: tables for messages about names that mean nothing.

A name is looked up only after it was refused, so names of a cell take precedence.

Worked example: `CONSTANTS["pi"]` is the number, and `INSTEAD["silu"].text(["X(i)"], ["X(i)"])` is `(X(i) * sigmoid(X(i)))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instead:
    """What to write instead of a call.

    Attributes:
        help: in words.
        count: number of arguments for which `template` holds.
        template: the expression; `{0}` is the first argument as it stands, and after all of them they come again, in brackets where
            an operator beside them needs these.
    """

    help: str
    count: int = 0
    template: str | None = None

    def text(self, plain: Sequence[str], bracketed: Sequence[str]) -> str | None:
        """The expression for these arguments; `None` where there is none."""
        fits = self.template is not None and len(plain) == self.count
        return self.template.format(*plain, *bracketed) if fits and self.template else None


MODULES = frozenset(
    {"np", "numpy", "math", "torch", "jnp", "jax", "cp", "tf", "F", "scipy", "std", "tl", "triton", "nn"}
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
    "expit": "sigmoid",
    "logistic": "sigmoid",
    "sgn": "sign",
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
    **dict.fromkeys(("int128", "int256", "i128", "__int128"), "int64"),
    **dict.fromkeys(("uint128", "uint256", "u128"), "uint64"),
    **dict.fromkeys(("float80", "float96", "float128", "float256", "f128", "longdouble", "quad"), "float64"),
    "boolean": "bool",
    "bool_": "bool",
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

_SUMS = "an operator reduces over the indices that stand only on the right, as in `Y(i) {} X(i, j)`"
_TRUTHS = "an operator combines truth values over the indices that stand only on the right, as in `Y(i) {} X(i, j) > 0`"
REDUCING = {
    "sum": _SUMS.format("+=!"),
    "prod": _SUMS.format("*=!"),
    "mean": "sum with `+=!`, and divide by the size in a second statement, as in `Y(i) = Y(i) / X.1`",
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
            f"{self.operator}({former}, {value})" if self.start is None else f"({former}) {self.operator} {bracketed}"
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
    "logaddexp": "logsumexp",
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
_SORTED = Instead("no statement sorts: sort in Python and pass the result")
_RANDOM = Instead(
    "random numbers are `uniform(seed, i)` and `normal(seed, i)`, or made in Python and passed as a parameter"
)
_CLAMP = Instead("a value is limited with `min(max(x, a), b)`", 3, "min(max({0}, {1}), {2})")
_SET_BITS = Instead("set bits are counted in a statement of their own, as in `Y(i) +=! X(i) >> b & 1 where b in 0:32`")
_SQUARE = Instead("a square is `x^2`", 1, "{1}^2")
_SILU = Instead("`silu(x)` is `x * sigmoid(x)`", 1, "({1} * sigmoid({0}))")
_CHOICE = Instead("a choice is written `condition ? value : other`", 3, "({3} ? {4} : {5})")
_XOR = "of truth values it is `a != b`, of bits `a ^^ b`"
POINTERS = ("load", "store", "deref")
"""Functions that take an address."""
_POINTER = Instead("an element is read as `X(i)`; the ranges of the indices take the place of pointers and masks")
_ELEMENTS = Instead("a statement says what one element is, as in `Y(i) = exp(X(i))`")
_THREAD = Instead("an index runs over everything it can index; which thread computes what is said by a schedule")
_REMAINDER = Instead("a remainder is `a % b`", 2, "({2} % {3})")
INSTEAD: dict[str, Instead] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "dot", "einsum", "tensordot", "inner", "vdot"), _PRODUCT),
    **dict.fromkeys(("T", "transpose", "permute", "swapaxes"), _TRANSPOSE),
    **dict.fromkeys(("len", "size", "shape", "numel"), _EXTENT),
    **dict.fromkeys(("std", "var", "variance", "nanstd", "nanvar"), _SPREAD),
    **dict.fromkeys(("zeros", "ones", "full", "empty", "zeros_like", "ones_like"), _FILLED),
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
    "diff": Instead("subtract neighbours, as in `Y(i) = X(i + 1) - X(i)`"),
    **dict.fromkeys(("concatenate", "concat", "cat", "stack"), _JOINED),
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
    **dict.fromkeys(("popcount", "popc", "__popc", "__popcll", "bit_count", "bitwise_count"), _SET_BITS),
    **dict.fromkeys(("square", "sqr"), _SQUARE),
    **dict.fromkeys(("silu", "swish"), _SILU),
    **dict.fromkeys(("select", "ifelse", "iif", "np.where"), _CHOICE),
    "xor": Instead(_XOR, 2, "({2} ^^ {3})"),
    "logical_xor": Instead(_XOR, 2, "({2} != {3})"),
    **{
        f"bitwise_{name}": Instead(f"of bits it is `a {operator} b`", 2, f"({{2}} {operator} {{3}})")
        for name, operator in (("and", "&"), ("or", "|"), ("xor", "^^"), ("left_shift", "<<"), ("right_shift", ">>"))
    },
    **dict.fromkeys(("bitwise_not", "bitwise_invert"), Instead("it is `~a`", 1, "~{1}")),
    **dict.fromkeys(("mod", "modulo"), _REMAINDER),
    **dict.fromkeys(POINTERS, _POINTER),
    **dict.fromkeys(("program_id", "num_programs", "get_global_id"), _THREAD),
    **dict.fromkeys(("map", "vmap", "vectorize", "apply", "compute", "foreach", "pmap"), _ELEMENTS),
    "norm": Instead("sum the squares with `S +=! X(i) * X(i)`, and write `sqrt(S)` in a later statement"),
    "outer": Instead("write both indices, as in `C(i, j) = A(i) * B(j)`"),
    "eye": Instead("choose by the indices, as in `Y(i, j) = i == j ? 1.0 : 0.0 where i in 0:N, j in 0:N`"),
    "roll": Instead("the remainder wraps an index around, as in `Y(i) = X((i - 1) % N) where i in 0:N`"),
    "gelu": Instead("`gelu(x)` is `x * normcdf(x)`", 1, "({1} * normcdf({0}))"),
    "softplus": Instead("`softplus(x)` is `log(1 + exp(x))`", 1, "(max({0}, 0) + log1p(exp(-abs({0}))))"),
    "elu": Instead("`elu(x)` is `x > 0 ? x : expm1(x)`", 1, "({1} > 0 ? {1} : expm1({0}))"),
    "leaky_relu": Instead("`leaky_relu(x, a)` is `x > 0 ? x : a * x`", 2, "({2} > 0 ? {2} : {3} * {2})"),
    "relu6": Instead("`relu6(x)` is `min(max(x, 0), 6)`", 1, "min(max({0}, 0), 6)"),
    "reciprocal": Instead("a reciprocal is a quotient", 1, "(1.0 / {1})"),
    "logical_and": Instead("both are true: `a && b`", 2, "({2} && {3})"),
    "logical_or": Instead("one is true: `a || b`", 2, "({2} || {3})"),
    "logical_not": Instead("a truth value is negated with `!`", 1, "!{1}"),
}
"""Functions that are an expression, a statement, or nothing here."""
OF_TRUTHS = {"xor": INSTEAD["logical_xor"]}
"""Those that are another expression where the arguments are truth values."""
OF_NUMBERS = {"logical_xor": Instead(_XOR, 2, "(({2} != 0) != ({3} != 0))")}
"""And where they are not."""
REDUCED = {
    **{name: (operator, "{0}") for name, operator in OPERATORS.items()},
    **{name: (operator, f"isnan({{0}}) ? {other} : {{0}}") for name, (operator, other) in _OF_NUMBERS.items()},
    **dict.fromkeys(("count_nonzero", "count"), ("+=!", "{1} != 0 ? 1 : 0")),
}
"""Functions that are one statement: its operator, and its value for an argument, without and with brackets."""


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
