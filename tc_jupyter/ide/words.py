"""What the fixed words of both languages mean: keywords, types, operators, functions.

Worked example: `function_doc("hypot", "tc")` is `FunctionDoc("hypot", ("a", "b"), "sqrt(a*a + b*b) without overflow")`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.program import FUNCTIONS, TC_FUNCTIONS
from tc_jupyter.program.sac_primitives import builtin_names, primitive
from tc_jupyter.syntax import SCALAR_TYPES
from tc_jupyter.syntax.sac_parser import BASES

LANGUAGES = ("tc", "sac")

TC_KEYWORDS: dict[str, str] = {
    "def": "starts a definition: `def name(type(sizes) A, ...) -> (B, ...) { statements }`",
    "where": "conditions of a statement: ranges `i in 0:N`, names `x = value`, accesses `exists A(i)`",
    "in": "gives an index its range: `where i in 0:N`; the upper end is not included",
    "else": "behind a read: the value where a subscript is outside, as in `X(i - 1) else 0`",
    "unique": "no two points have the same left side, which each call looks at: `Y(P(i)) = X(i) where unique`",
    "reduce": "starts a reducer: `reduce name(type left, type right) = combined from identity`; `T(i) name=! X(i, k)` uses it",
    "const": "numbers of a def or of a whole cell: `const float(3) C = [1, 2, 1]`",
    "exists": "an access that takes part in finding ranges and is not evaluated: `where exists A(i, k)`",
}
SAC_KEYWORDS: dict[str, str] = {
    "return": "the results of a function",
    "with": "a with-loop: `with { (lower <= iv < upper) : value; } : genarray(shape, default)`",
    "if": "a choice: `if (condition) { x = a; } else { x = b; }`; a variable used behind it has a value on both ways",
    "else": "the other way of an `if`",
    "for": "a loop: `for (i = 0; i < n; i++) { .. }`; constants, arguments and shapes decide how often it runs",
    "while": "a loop: `while (condition) { .. }`; constants, arguments and shapes decide how often it runs",
    "do": "a loop that runs at least once: `do { .. } while (condition);`",
    "inline": "may stand before a function; every call is inlined",
    "typedef": "another name of a type: `typedef double[2] complex;`",
    "use": '`use "kernels.sac";`: the functions of a file; `use Array: all;`: those of a module of SaC, known without it',
    "import": "`import Math: {sin};`: the functions of a module of SaC's library, known without it",
    "step": "behind a generator, every how many positions: `lower <= iv < upper step [2]`",
    "width": "behind `step`, how many positions each time: `step [4] width [2]`",
}
CONSTANTS: dict[str, str] = {
    "true": "the truth value, of type `bool`",
    "false": "the truth value, of type `bool`",
    "inf": "infinity, a float of the type that it meets",
    "nan": "not a number, a float of the type that it meets",
}
REDUCTIONS = ("min", "max")
"""Functions that are reductions, too: `min=!`."""

_ASSIGN = "combines the values over the indices that are not on the left"
TC_OPERATORS: dict[str, str] = {
    "=": "assigns; every index of the right side is on the left",
    "+=": f"adds to what is there; {_ASSIGN}",
    "+=!": f"sum from 0; {_ASSIGN}",
    "*=": f"multiplies what is there; {_ASSIGN}",
    "*=!": f"product from 1; {_ASSIGN}",
    "min=": f"minimum with what is there; {_ASSIGN}",
    "min=!": f"minimum; {_ASSIGN}",
    "max=": f"maximum with what is there; {_ASSIGN}",
    "max=!": f"maximum; {_ASSIGN}",
    "argmin=!": "the least position of the minimum, over the indices that are not on the left; `at` says what a position is",
    "argmax=!": "the least position of the maximum, over the indices that are not on the left; `at` says what a position is",
    "lse=!": f"the logarithm of the sum of the powers; {_ASSIGN}",
    "any=!": f"whether one is true; {_ASSIGN}",
    "all=!": f"whether all are true; {_ASSIGN}",
    "->": "parameters to the left, results to the right",
    "+": "sum",
    "-": "difference, or the negative",
    "*": "product",
    "/": "quotient; of two integers it is rounded down",
    "%": "remainder, with the sign of the divisor for integers",
    "<": "less than",
    "<=": "at most",
    ">": "greater than",
    ">=": "at least",
    "==": "equal",
    "!=": "not equal",
    "&&": "and; the right side counts only where the left one holds",
    "||": "or; the right side counts only where the left one does not hold",
    "!": "not",
    "^": "power with an integer exponent; tighter than a minus before it, so that `-x^2` is `-(x^2)`",
    "~": "all bits of an integer the other way round",
    "<<": "bits moved up, which multiplies by powers of 2; a shift by the width or more moves all out",
    ">>": "bits moved down, which divides by powers of 2 and rounds down; a shift by the width or more leaves only the sign",
    "&": "bits that both have; of conditions it is `&&`",
    "^^": "bits that one of two has and the other has not; of conditions it is `!=`",
    "|": "bits that one of two has; of conditions it is `||`",
    "?": "`condition ? value : other`: only the chosen value is read",
    ":": "between the values of `? :`, or between the ends of a range; the upper end is not included",
}
_TC_ALONE = ("+=", "*=", "min=", "max=", ":", "^", "~", "<<", ">>", "&", "^^", "|")
SAC_OPERATORS: dict[str, str] = {
    **{op: text for op, text in TC_OPERATORS.items() if "=!" not in op and op not in _TC_ALONE},
    "=": "gives a value a name; a later use sees it",
    "/": "quotient; of two integers it is cut off toward zero, as in C",
    "%": "remainder, with the sign of the dividend, as in C; `mod` has that of the divisor",
    "->": "pattern to value: `{ [i, j] -> a[j, i] }`",
    "++": "joins two arrays along the first axis",
    "|": "the bounds of the pattern follow: `| [0] <= [i] < [n]`",
    ".": "an axis without a name; in a bound the smallest or largest legal index",
    "...": "zero or more axes without a name",
    ":": "between the values of `? :`",
}

_SAC_FUNCTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "shape": (("a",), "the shape vector of `a`, of length `dim(a)`"),
    "dim": (("a",), "the rank of `a`, a scalar"),
    "sel": (("v", "a"), "the element or subarray of `a` at index vector `v`"),
    "take": (("v", "a"), "`v[k]` elements of axis `k` from the start, from the end if negative"),
    "drop": (
        ("v", "a"),
        "the rest after removing `v[k]` elements of axis `k` from the start, from the end if negative",
    ),
    "sum": (("a",), "the sum of all elements, 0 of an empty array"),
    "prod": (("a",), "the product of all elements, 1 of an empty array"),
    "minval": (("a",), "the smallest element"),
    "maxval": (("a",), "the largest element"),
    "reverse": (("a",), "the first axis backwards"),
    "transpose": (("a",), "the axes in reverse order"),
    "genarray": (("shape", "value"), "an array of frame `shape` filled with `value`"),
    "reshape": (("shape", "a"), "the elements of `a` in their order, in another shape with as many elements"),
    "iota": (("n",), "the vector `[0, 1, .., n - 1]`"),
    "tile": (("shape", "offset", "a"), "the part of `a` of this shape that begins at `offset`"),
    "where": (("mask", "a", "b"), "element by element `a` where the mask holds, else `b`"),
    "all": (("mask",), "whether all elements hold"),
    "any": (("mask",), "whether an element holds"),
    "rotate": (
        ("axis", "count", "a"),
        "every element goes up its axis by `count`, what leaves comes in at the other end; `rotate(counts, a)`: all axes",
    ),
    "shift": (
        ("axis", "count", "e", "a"),
        "every element goes up its axis by `count`, `e` comes in; `shift(counts, e, a)`: all axes; `shift(counts, a)`: zeros",
    ),
    "mod": (("a", "b"), "the remainder with the sign of `b`, element by element; `a % b` has that of `a`"),
    "++": (("a", "b"), "`a` and `b` joined along the first axis"),
    "neg": (("a",), "the negative, element by element"),
    "!": (("a",), "not, element by element"),
    "tof": (("a",), "to `float`, element by element"),
    "toi": (("a",), "to `int`, element by element"),
    "tod": (("a",), "to `double`, element by element"),
    "tol": (("a",), "to `long`, element by element"),
    "tob": (("a",), "to `bool`, element by element"),
}

_NUMBERS = {
    "bool": "`true` or `false`, one byte",
    "float16": "IEEE 754 number of 16 bits; computed in `float32`, rounded when stored",
    "bfloat16": "number of 16 bits with the range of `float32`; computed in `float32`, rounded when stored",
    "float32": "IEEE 754 number of 32 bits",
    "float64": "IEEE 754 number of 64 bits",
    "complex64": "complex number: real and imaginary part are `float32`",
    "complex128": "complex number: real and imaginary part are `float64`",
}
_OTHER_NAMES = {"int": "int32", "byte": "uint8", "half": "float16", "float": "float32", "double": "float64"}


@dataclass(frozen=True, slots=True)
class FunctionDoc:
    """A builtin function: name, names of its parameters (`...`: any number more), one line."""

    name: str
    parameters: tuple[str, ...]
    text: str

    @property
    def label(self) -> str:
        """`hypot(a, b)`."""
        return f"{self.name}({', '.join(self.parameters)})"


def function_doc(name: str, language: str) -> FunctionDoc | None:
    """A builtin function of a language, by any of its names."""
    word = (primitive(name) or name) if language == "sac" else name
    if language == "sac" and word in _SAC_FUNCTIONS:
        return FunctionDoc(name, *_SAC_FUNCTIONS[word])
    known = FUNCTIONS if language == "sac" else TC_FUNCTIONS
    if word in known:
        found = known[word]
        inside = found.signature[len(found.name) + 1 : -1]
        return FunctionDoc(name, tuple(inside.split(", ")), found.document)
    if language == "sac" and word in SAC_OPERATORS:
        return FunctionDoc(name, ("a",) if word == "!" else ("a", "b"), SAC_OPERATORS[word])
    return None


def functions(language: str) -> tuple[FunctionDoc, ...]:
    """All builtin functions, by name."""
    names = builtin_names() if language == "sac" else sorted(TC_FUNCTIONS)
    found = (function_doc(name, language) for name in names)
    return tuple(each for each in found if each is not None)


def types(language: str) -> tuple[str, ...]:
    """Names of element types."""
    return tuple(sorted(BASES if language == "sac" else SCALAR_TYPES))


def type_doc(name: str, language: str) -> str:
    """What an element type is: `another name of `float32`: IEEE 754 number of 32 bits`."""
    plain = BASES.get(name, name) if language == "sac" else _OTHER_NAMES.get(name, name)
    if plain in _NUMBERS:
        text = _NUMBERS[plain]
    else:
        bits, signed = plain.strip("uint"), not plain.startswith("u")
        low, high = ("-2^" + str(int(bits) - 1), int(bits) - 1) if signed else ("0", int(bits))
        text = f"integer of {bits} bits, from {low} to 2^{high} - 1; overflow wraps"
    return text if plain == name else f"another name of `{plain}`: {text}"


def keywords(language: str) -> dict[str, str]:
    """Keywords and what they mean."""
    return SAC_KEYWORDS if language == "sac" else TC_KEYWORDS


def operators(language: str) -> dict[str, str]:
    """Operators and what they mean."""
    return SAC_OPERATORS if language == "sac" else TC_OPERATORS
