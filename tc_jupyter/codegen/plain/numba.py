"""Prints the kernels of a def as one function of Python that Numba compiles.

Sizes are those of the arrays, or come first; then the parameters of the def, then its results, which are arrays to be written.
What has no dimensions is an array of one element. The outermost loop over an index of the result is a `prange`.

Numba computes with narrow integers in 64 bits, so what comes out is cut to its type. A literal with a point is a `float64` to
Numba, so it is converted to its type. Infinity and NaN stay, and a division by zero gives what the language says.

Worked example: `def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }` becomes

    @numba.njit(parallel=True, fastmath=FASTMATH, error_model="numpy")
    def mv(A, B, o):
        R, C = A.shape
        for i in numba.prange(R):
            o[i] = 0.0
            for j in range(C):
                o[i] += A[i, j] * B[j]
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tc_jupyter.diagnostics import NO_SPAN, Span
from tc_jupyter.loops import Allocate, Block, Buffer, Check, For, If, Kernel, Store
from tc_jupyter.program import (
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    bits,
    random_numbers,
)

from .printer import COMPARISONS, PAD, Names, PlainFunction, Printer, is_scalar, one_line, signature

_LEVELS = ({"||"}, {"&&"}, {"!"}, COMPARISONS, {"+", "-"}, {"*", "/", "//", "%"})
_UNARY, _PRIMARY = 8, 9
_LEVEL = {op: level for level, ops in enumerate(_LEVELS, 2) for op in ops}
_WORDS = {"!": "not ", "&&": "and", "||": "or"}
_RING = ("+", "-", "*")
"""What the low bits of the result depend on are the low bits of the operands."""
_SAME = """
cos cosh sin sinh tan tanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt ceil floor trunc copysign fmax fmin fmod hypot nextafter
isnan isinf isfinite sign
"""
_FUNCTIONS = {
    **{name: f"np.{name}" for name in _SAME.split()},
    **{name: f"np.arc{name[1:]}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2")},
    **{"abs": "abs", "fabs": "abs", "pow": "np.power"},
    **{"erf": "math.erf", "erfc": "math.erfc", "lgamma": "math.lgamma", "tgamma": "math.gamma"},
}
"""Functions of the language that NumPy or Python has; of these Numba has all, for both floating types."""
_HELPERS = {
    "rsqrt": ("x", "return {T}(1) / np.sqrt(x)"),
    "rcbrt": ("x", "return {T}(1) / np.cbrt(x)"),
    "exp10": ("x", "return np.power({T}(10), x)"),
    "sigmoid": ("x", "return {T}(1) / ({T}(1) + np.exp(-x))"),
    "relu": ("x", "return np.maximum(x, {T}(0))"),
    "rounded": ("x", "return x"),
    "round": ("x", "t = np.trunc(x)\nreturn t + np.copysign({T}(1), x) if abs(x - t) >= {T}(0.5) else t"),
    "sinpi": (
        "x",
        "r = x - {T}(2) * np.floor(x / {T}(2) + {T}(0.5))\n"
        "r = np.copysign({T}(1), r) - r if abs(r) > {T}(0.5) else r\n"
        "return np.sin({T}(np.pi) * r)",
    ),
    "cospi": (
        "x",
        "r = abs(x - {T}(2) * np.floor(x / {T}(2) + {T}(0.5)))\nreturn np.sin({T}(np.pi) * ({T}(0.5) - r))",
    ),
    "fdim": ("a, b", "return a - b if a > b else {T}(0) if a <= b else a + b"),
    "fdivide": ("a, b", "return a / b"),
    "rhypot": ("a, b", "return {T}(1) / np.hypot(a, b)"),
    "fma": ("a, b, c", "return {T}(np.float64(a) * np.float64(b) + np.float64(c))"),
    "norm3d": ("a, b, c", "return np.hypot(np.hypot(a, b), c)"),
    "rnorm3d": ("a, b, c", "return {T}(1) / np.hypot(np.hypot(a, b), c)"),
    "norm4d": ("a, b, c, d", "return np.hypot(np.hypot(a, b), np.hypot(c, d))"),
    "rnorm4d": ("a, b, c, d", "return {T}(1) / np.hypot(np.hypot(a, b), np.hypot(c, d))"),
    "normcdf": ("x", "return {T}(math.erfc(x * {T}(-0.70710678118654752440))) / {T}(2)"),
    # to an integer: the fraction is cut off, what is too large or too small is the end of the type, NaN gives 0
    "to": (
        "x",
        "if np.isnan(x):\n    return {T}(0)\n"
        "if x <= {low}.0:\n    return {T}({low})\n"
        "return {T}({high}) if x >= {high}.0 else {T}(x)",
    ),
    "floor_div": ("a, b", "return -a if b == -1 else a // b"),  # Numba gives 0 for the quotient that does not fit
    # by the width or more, or by a negative number, everything is shifted out; the sign stays to the right
    "shift_left": ("a, b", "return {T}(a << b) if 0 <= b < {bits} else {T}(0)"),
    "shift_right": ("a, b", "return {T}(a >> b) if 0 <= b < {bits} else {T}(-1 if a < 0 else 0)"),
    # the bits are added in pairs, then in fours, then in bytes, whose sum is the last byte of a product
    "popcount": (
        "x",
        "x = np.uint64(x)\n"
        "x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)\n"
        "x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))\n"
        "x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)\n"
        "return np.int32((x * np.uint64(0x0101010101010101)) >> np.uint64(56))",
    ),
    # a word of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011)
    "philox": (
        "word, k0, k1, c0, c1, c2, c3",
        "for _ in range(10):\n"
        "    p, q = np.uint64(0xD2511F53) * np.uint64(c0), np.uint64(0xCD9E8D57) * np.uint64(c2)\n"
        "    c0, c1 = np.uint32(q >> np.uint64(32)) ^ c1 ^ k0, np.uint32(q)\n"
        "    c2, c3 = np.uint32(p >> np.uint64(32)) ^ c3 ^ k1, np.uint32(p)\n"
        "    k0, k1 = np.uint32(k0 + np.uint32(0x9E3779B9)), np.uint32(k1 + np.uint32(0xBB67AE85))\n"
        "return c0 if word == 0 else c1",
    ),
}
"""What NumPy lacks, or Numba: parameters and body; `{T}` is the type."""


_FASTMATH = ("nsz", "arcp", "contract", "afn", "reassoc")
"""What LLVM may do with floating numbers: all that `-ffast-math` allows but to think that there are neither infinities nor NaN."""
_EXACT = {"rounded": frozenset(("contract", "reassoc")), "pow": frozenset(("afn",))}
"""What it may not do beside a function.

With `afn`, it makes a call of `__powisf2` of `pow(x, float(n))`, which a process with Numba 0.68 does not have: it ends."""


class NoForm(ValueError):
    """Numba has no such type or function.

    Attributes:
        span: where the text has it.
        dtype: the type, if it is one.
    """

    def __init__(self, message: str, span: Span, dtype: DType | None = None) -> None:
        super().__init__(message)
        self.span = span
        self.dtype = dtype


def emit_numba(
    name: str,
    kernels: Sequence[Kernel],
    sizes: Sequence[str],
    arguments: Sequence[Buffer],
    stored: Mapping[str, str],
    comment: Iterable[str] = (),
) -> PlainFunction:
    """Print a def; arguments as those of `emit_c`.

    Raises:
        NoForm: Numba lacks something.
    """
    return _Printer(kernels, arguments, stored).function(name, sizes, comment)


class _Names(Names):
    reserved = frozenset({*keyword.kwlist, *dir(builtins), "np", "numba", "math", "FASTMATH", "philox"})
    helpers = re.compile(rf"({'|'.join(_HELPERS)})_\w+")


class _Printer(Printer):
    comment = "#"
    level, words = _LEVEL, _WORDS
    unary, primary = _UNARY, _PRIMARY

    def __init__(self, kernels: Sequence[Kernel], arguments: Sequence[Buffer], stored: Mapping[str, str]) -> None:
        super().__init__(_Names(), kernels, arguments, stored)
        self.exact: set[str] = set()
        self.unsigned = ""

    # the function --------------------------------------------------------------------------------------------------------------

    def function(self, name: str, sizes: Sequence[str], comment: Iterable[str]) -> PlainFunction:
        own, outer, temporaries = self.named(name, sizes)
        found, passed = self.found_sizes(outer)
        lines = [f"{PAD}{line}" for line in (*found, *self.numbers_in_their_type())]
        for each in temporaries:
            extents = [*map(self.expr, each.shape)] or ["1"]
            shape = extents[0] if len(extents) == 1 else f"({', '.join(extents)})"
            lines.append(f"{PAD}{self.names.of(each.name)} = np.empty({shape}, {self.type_of(each.dtype, each.name)})")
        for kernel in self.kernels:
            lines += self.block(kernel.body, 1, parallel=True)
        parameters = [self.names.of(each) for each in (*passed, *(argument.name for argument in self.arguments))]
        head = [f"# {one_line(line)}" for line in comment]
        parallel = "parallel=True, " if any("numba.prange" in line for line in lines) else ""
        head += [f"@numba.njit({parallel}{_OPTIONS})", *signature(f"def {own}(", parameters or [""], "):")]
        text = [*self.preamble([*lines, *self.helpers]), *head, *(lines or [f"{PAD}pass"])]
        return PlainFunction("\n".join(text) + "\n", own, self.parameters(passed))

    def preamble(self, below: list[str]) -> list[str]:
        """Imports, what may be done with floating numbers, and the helpers."""
        imports = ["import math", ""] if any("math." in line for line in below) else []
        flags = ", ".join(f'"{flag}"' for flag in _FASTMATH if flag not in self.exact)
        fast = f"FASTMATH = {{{flags}}}  # infinity and NaN stay"
        helpers = [line for helper in self.helpers for line in (helper, "", "")]
        return [*imports, "import numba", "import numpy as np", "", fast, "", "", *helpers]

    def found_sizes(self, sizes: Sequence[str]) -> tuple[list[str], list[str]]:
        """Lines that find sizes in the shapes of arrays, and the sizes that have to be passed."""
        lines, left = list[str](), dict.fromkeys(sizes)
        for buffer in self.arguments:
            name = self.names.of(buffer.name)
            self.type_of(buffer.dtype, buffer.name)
            new = {dim.name: k for k, dim in enumerate(buffer.shape) if isinstance(dim, Size) and dim.name in left}
            if buffer.role != "input" or not new:
                continue
            if len(new) == len(buffer.shape) > 1:
                lines.append(f"{', '.join(map(self.names.of, new))} = {name}.shape")
            else:
                lines += [f"{self.names.of(size)} = {name}.shape[{k}]" for size, k in new.items()]
            left = {size: None for size in left if size not in new}
        return lines, [*left]

    def numbers_in_their_type(self) -> list[str]:
        """A number of Python would be an `int64` or a `float64`."""
        kept = (DType.BOOL, DType.INT64, DType.FLOAT64)
        scalars = [each for each in self.arguments if is_scalar(each) and self.argument(each).dtype not in kept]
        return [
            f"{(own := self.names.of(each.name))} = {self.type_of(each.dtype, each.name)}({own})" for each in scalars
        ]

    @staticmethod
    def type_of(dtype: DType, what: str = "", span: Span = NO_SPAN) -> str:
        """The type of an element."""
        if dtype in (DType.FLOAT16, DType.BFLOAT16):
            name = f"`{what}` is" if what else "this is"
            raise NoForm(f"{name} of type {dtype.value}, which Numba does not have on the CPU", span, dtype)
        return "np.bool_" if dtype is DType.BOOL else f"np.{dtype.value}"

    # statements ----------------------------------------------------------------------------------------------------------------

    def suite(self, block: Block, depth: int) -> list[str]:
        """What stands behind a colon."""
        return self.block(block, depth) + ([] if block.body else [f"{PAD * depth}pass"])

    def loop(self, loop: For, depth: int, parallel: bool) -> list[str]:
        low, high = self.ends(loop)
        over = f"{'numba.prange' if parallel else 'range'}({high if low == '0' else f'{low}, {high}'})"
        self.unsigned = loop.var if parallel else self.unsigned
        lines = [f"{PAD * depth}for {self.names.of(loop.var)} in {over}:", *self.suite(loop.body, depth + 1)]
        self.unsigned = "" if parallel else self.unsigned
        return lines

    def branch(self, stmt: If, depth: int) -> list[str]:
        pad = PAD * depth
        lines = [f"{pad}if {self.expr(stmt.condition)}:", *self.suite(stmt.then, depth + 1)]
        if stmt.otherwise is not None:
            lines += [f"{pad}else:", *self.suite(stmt.otherwise, depth + 1)]
        return lines

    def local(self, stmt: Allocate, depth: int) -> list[str]:
        buffer, body = stmt.buffer, stmt.body
        kind, name = self.type_of(buffer.dtype, buffer.name), self.names.of(buffer.name)
        if buffer.shape:
            shape = ", ".join(map(self.expr, buffer.shape))
            first = [f"{PAD * depth}{name} = np.empty(({shape},), {kind})"]
        else:
            stored = isinstance(body.body[0], Store) and body.body[0].buffer == buffer.name
            first = [] if stored else [f"{PAD * depth}{name} = {kind}(0)"]
        return [*first, *self.block(body, depth)]

    def store(self, stmt: Store) -> str:
        """An array cuts what it stores to its type; a name has the type of its value."""
        buffer = self.buffers[stmt.buffer]
        target, dtype = self.element(stmt.buffer, stmt.indices), buffer.dtype
        named = buffer.scope == "local" and not buffer.shape
        value = self.converted(stmt.value, dtype)
        if stmt.reduce in _RING and not (named and dtype.is_integer):
            return f"{target} {stmt.reduce}= {self.bare(value)[0]}"
        if stmt.reduce is not None:
            value = Binary(stmt.reduce, Read(stmt.buffer, stmt.indices, dtype), value, dtype)
        return f"{target} = {self.signed(value) if named else self.assigned(value)}"

    def assigned(self, value: Expr) -> str:
        """A value of the type of the array, which converts what is stored; only NumPy wants narrower integers converted before."""
        dtype = value.dtype
        if isinstance(value, Cast) and (dtype.is_float or _not_widened(value) is not value):
            value = value.operand
        if isinstance(value, Const):
            return _number(value)
        return self.bare(value)[0] if value.dtype is dtype else self.expr(value)

    def tested(self, check: Check, depth: int) -> list[str]:
        raise AssertionError(f"check {check.number}: only libraries have checks")

    # expressions ---------------------------------------------------------------------------------------------------------------

    def element(self, name: str, indices: tuple[Expr, ...]) -> str:
        own = self.names.of(name)
        if not indices:
            return own if self.buffers[name].scope == "local" else f"{own}[0]"
        return f"{own}[{', '.join(self.expr(_not_widened(index)) for index in indices)}]"

    def read(self, read: Read) -> tuple[str, int]:
        known = read.tensor in self.buffers
        return self.element(read.tensor, read.indices) if known else self.names.of(read.tensor), _PRIMARY

    def constant(self, const: Const) -> tuple[str, int]:
        text, dtype = _number(const), const.dtype
        if dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.UINT64):
            return f"{self.type_of(dtype.compute)}({text})", _PRIMARY
        return text, _UNARY if text[0] == "-" else _PRIMARY

    def bare(self, expr: Expr) -> tuple[str, int]:
        """An integer that may have more bits than its type, where only those of its type are looked at."""
        if isinstance(expr, Binary) and expr.op in _RING and expr.dtype.is_integer:
            return self.applied(expr)
        return self.leveled(expr)

    def operand(self, expr: Expr, level: int, op: str) -> str:
        if op in _RING:
            text, own = self.bare(expr)
            return f"({text})" if own < level else text
        if op in COMPARISONS:
            expr = _not_widened(expr)
            if isinstance(expr, Const) and expr.dtype is DType.FLOAT32 and float(_number(expr)) == expr.value:
                return _number(expr)
        return super().operand(expr, level, op)

    def wrapped(self, text: str, level: int, expr: Expr) -> tuple[str, int]:
        wide = (DType.INT64,) if isinstance(expr, Unary) else (DType.INT64, DType.UINT64)
        if not expr.dtype.is_integer or expr.dtype in wide:
            return text, level
        return f"{self.type_of(expr.dtype)}({text})", _PRIMARY

    def extremum(self, expr: Binary) -> tuple[str, int]:
        dtype = expr.left.dtype
        if dtype is DType.BOOL:
            return self.applied(Binary("&&" if expr.op == "min" else "||", expr.left, expr.right, dtype))
        name = f"np.{expr.op}imum" if dtype.is_float else expr.op
        return f"{name}({self.signed(expr.left)}, {self.signed(expr.right)})", _PRIMARY

    def signed(self, expr: Expr, level: int = 0) -> str:
        """One of two values: the variable of a `prange` is a `uint64`, which with an `int64` is a `float64`."""
        unsigned = isinstance(expr, IndexVar) and expr.name == self.unsigned
        return f"np.int64({self.names.of(self.unsigned)})" if unsigned else self.expr(expr, level)

    def quotient(self, expr: Binary) -> tuple[str, int]:
        """Python rounds down, too; Numba gives 0 for a division of integers by zero, as the language does."""
        op, dtype = "%" if expr.op == "%" else "//", expr.left.dtype
        fits = op == "%" or not dtype.is_signed or isinstance(expr.right, Const) or self.is_natural(expr.right)
        if dtype is DType.INT64 and not fits:
            return self.helped("floor_div", dtype, (expr.left, expr.right))
        own = self.level[op]
        text = f"{self.expr(expr.left, own)} {op} {self.expr(expr.right, own + 1)}"
        return (text, own) if fits else self.wrapped(text, own, expr)

    def select(self, expr: Select) -> str:
        then, condition, otherwise = (
            self.signed(expr.then, 2),
            self.expr(expr.condition, 2),
            self.signed(expr.otherwise, 1),
        )
        return f"{then} if {condition} else {otherwise}"

    def call(self, call: Call) -> tuple[str, int]:
        name, arguments = call.function, call.arguments
        dtype = arguments[0].dtype
        if name in random_numbers.WORDS:
            words = ", ".join(f"np.uint32({self.bare(_not_converted(each))[0]})" for each in arguments)
            self.help("philox", "philox", DType.UINT32)
            return f"philox({random_numbers.WORDS[name]}, {words})", _PRIMARY
        if name in bits.OPERATORS:
            operator = bits.OPERATORS[name]
            if operator in bits.SHIFTS:
                return self.helped("shift_left" if operator == "<<" else "shift_right", dtype, arguments)
            left, right = (self.expr(argument, _UNARY) for argument in arguments)
            return f"({left} {'^' if operator == '^^' else operator} {right})", _PRIMARY
        if dtype.is_integer or dtype is DType.BOOL:
            return self.integer_call(call, dtype)
        self.exact |= _EXACT.get(name, frozenset())
        if name in _FUNCTIONS:
            return f"{_FUNCTIONS[name]}({', '.join(map(self.expr, arguments))})", _PRIMARY
        if name not in _HELPERS:
            raise NoForm(f"`{name}` is a function that neither NumPy nor Numba has", call.span)
        return self.helped(name, dtype, arguments)

    def integer_call(self, call: Call, dtype: DType) -> tuple[str, int]:
        """The functions that keep integers: absolute value and sign; rounding changes nothing."""
        (argument,) = call.arguments
        if call.function == "popcount":
            return self.helped("popcount", dtype, (argument,))
        if call.function == "sign" and not argument.dtype.is_signed:  # of unsigned ones Numba's `np.sign` is the number
            return f"{self.type_of(call.dtype)}({self.expr(argument, self.level['>'] + 1)} > 0)", _PRIMARY
        if call.function in ("isnan", "isinf", "isfinite", "sign"):
            return f"np.{call.function}({self.expr(argument)})", _PRIMARY
        if call.function == "abs" and dtype.is_signed:
            return self.wrapped(f"abs({self.expr(argument)})", _PRIMARY, call)
        if call.function == "relu" and dtype.is_signed:
            return f"max({self.expr(argument)}, 0)", _PRIMARY
        return self.leveled(argument)

    def cast(self, cast: Cast) -> tuple[str, int]:
        value, source, target = cast.operand, cast.operand.dtype, cast.dtype
        kind = self.type_of(target, span=cast.span)
        if target is DType.BOOL:
            own = self.level["!="]
            return f"{self.expr(value, own + 1)} != 0", own
        if source.is_float and target.is_integer:
            return self.helped("to", target, (value,))
        narrows = source.is_integer and target.is_integer and target.bits <= source.bits
        return f"{kind}({self.bare(value)[0] if narrows else self.expr(value)})", _PRIMARY

    # helpers -------------------------------------------------------------------------------------------------------------------

    def helped(self, name: str, dtype: DType, arguments: Sequence[Expr]) -> tuple[str, int]:
        """A call of a helper for one type."""
        own = f"{name}_{dtype.value}"
        self.help(name, own, dtype)
        return f"{own}({', '.join(map(self.expr, arguments))})", _PRIMARY

    def help(self, name: str, own: str, dtype: DType) -> None:
        parameters, body = _HELPERS[name]
        low, high = dtype.limits if dtype.is_integer else (0, 0)
        text = body.format(T=self.type_of(dtype), low=low, high=high, bits=dtype.bits).replace("\n", f"\n{PAD}")
        self.need([f"@numba.njit({_OPTIONS})\ndef {own}({parameters}):\n{PAD}{text}"])


_OPTIONS = 'fastmath=FASTMATH, error_model="numpy"'


def _not_widened(expr: Expr) -> Expr:
    """An integer without a conversion that keeps all its values, where nothing is computed with it."""
    if isinstance(expr, Cast) and expr.dtype.is_integer and expr.dtype is not DType.UINT64:
        source, (low, high) = expr.operand.dtype, expr.dtype.limits
        if source.is_integer and low <= source.limits[0] and source.limits[1] <= high:
            return expr.operand
    return expr


def _not_converted(expr: Expr) -> Expr:
    """A word of 32 bits without the conversion that the caller writes."""
    if isinstance(expr, Cast) and expr.operand.dtype.is_integer and expr.operand.dtype.bits >= expr.dtype.bits:
        return expr.operand
    return expr


def _number(const: Const) -> str:
    """A number without its type, in as few digits as tell it."""
    value, dtype = const.value, const.dtype
    if dtype is DType.BOOL:
        return str(bool(value))
    if not dtype.is_float:
        return str(int(value))
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return "np.nan" if number != number else "np.inf" if number > 0 else "-np.inf"
    return repr(number if dtype is DType.FLOAT64 else float(str(np.float32(number))))
