"""Prints the kernels of a def as one C99 function: loops, arrays with their sizes, and the helpers that they need.

Arrays are row-major and indexed by dimension, as `A[i][k]`; sizes come first, then the parameters of the def, then its results.
Temporaries are allocated inside. The outermost loop over an index of the result is marked for OpenMP.

Worked example: `def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }` becomes

    int mv(int64_t R, int64_t C, const float A[restrict R][C], const float B[restrict C], float o[restrict R])
    {
        #pragma omp parallel for
        for (int64_t i = 0; i < R; i++) {
            o[i] = 0.0f;
            for (int64_t j = 0; j < C; j++)
                o[i] += A[i][j] * B[j];
        }
        return 0;
    }
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tc_jupyter.codegen.source import Argument
from tc_jupyter.loops import Allocate, Block, Buffer, Check, For, If, Kernel, Store
from tc_jupyter.program import Binary, Call, Cast, Const, DType, Expr, Read, Select, bits, random_numbers

from . import c_helpers as helpers
from .c_helpers import C_TYPES, FUNCTIONS, LIBRARY, literal, suffix_of
from .printer import PAD, PlainFunction, Printer, one_line, signature
from .printer import Names as PlainNames

_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof bool true false main
NULL NAN INFINITY errno unix linux alloca
alignas alignof and and_eq bitand bitor catch class compl concept consteval constexpr constinit const_cast co_await co_return
co_yield decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq nullptr operator or or_eq
private protected public reinterpret_cast requires static_assert static_cast template this throw try typeid typename using virtual
xor xor_eq
fpclassify isfinite isinf isnan isnormal signbit isgreater isgreaterequal isless islessequal islessgreater isunordered

abort abs atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs lldiv malloc mblen mbstowcs mbtowc
qsort rand realloc srand strtod strtof strtol strtold strtoll strtoul strtoull system wcstombs wctomb
memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn strerror strlen strncat strncmp strncpy strpbrk
strrchr strspn strstr strtok strxfrm
fclose feof ferror fflush fgetc fgets fopen fprintf fputc fputs fread freopen fscanf fseek ftell fwrite getc getchar gets perror
printf putc putchar puts remove rename rewind scanf setbuf setvbuf snprintf sprintf sscanf tmpfile tmpnam ungetc
asctime clock ctime difftime gmtime localtime mktime strftime time raise signal longjmp setjmp tolower toupper
bcmp bcopy bzero close ffs fork index kill link open pause pipe poll random read rindex select setstate sleep srandom strdup wait
write
"""
_MATHEMATICS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fdim finite floor fma
fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
nearbyint nextafter nexttoward pow pow10 remainder remquo rint round scalb scalbln scalbn significand sin sincos sinh sqrt tan
tanh tgamma trunc y0 y1 yn
"""
_RESERVED = frozenset(_WORDS.split()) | {name + suffix for name in _MATHEMATICS.split() for suffix in ("", "f", "l")}
"""Keywords, also of C++, macros, and functions of the C library, which a def of that name would replace everywhere."""
_SUFFIXES = "|".join(("t", "f", "d", *(dtype.value for dtype in DType)))
_PREFIXES = "HUGE|FLT|DBL|LDBL|U?INT[A-Z0-9]*|CHAR|SCHAR|UCHAR|U?SHRT|U?LONG|U?LLONG|M|FP|SIZE|PTRDIFF|EXIT|RAND"
_TAKEN = re.compile(rf"\w+_(?:{_SUFFIXES})|(?:{_PREFIXES})_[A-Z0-9_]+")
"""Types (`int64_t`), helpers, which end with the type that they are for (`min_f`), and macros of the headers (`INT64_MIN`)."""
_LEVELS = ({"||"}, {"&&"}, {"==", "!="}, {"<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "//", "%"})
_UNARY, _PRIMARY = 8, 9
_LEVEL = {"!": _UNARY} | {op: level for level, ops in enumerate(_LEVELS, 2) for op in ops}


def emit_c(
    name: str,
    kernels: Sequence[Kernel],
    sizes: Sequence[str],
    arguments: Sequence[Buffer],
    stored: Mapping[str, str],
    comment: Iterable[str] = (),
) -> PlainFunction:
    """Print a def.

    Args:
        name: of the def.
        kernels: in order of execution, as lowered from a schedule that transforms nothing.
        sizes: names of the sizes of the def.
        arguments: its parameters, then its results; an input without dimensions is passed by value.
        stored: the result by the buffer of the kernels that holds it; the result of a call is held by the one of the called def.
        comment: lines above the function.
    """
    return _Printer(Names(), kernels, arguments, stored).function(name, sizes, comment)


@dataclass(frozen=True, slots=True)
class CCheck:
    """Loops that look at the data of a call, as a C function of a file.

    Attributes:
        helpers: what stands above it, each once in a file.
        text: `static int NAME(int64_t *errors, ...)`, which returns 1 where a check fails: the error record then holds the number
            of the check, one more, a spare word, and what the check reports.
        parameters: as those of `PlainFunction`, behind `errors`.
    """

    helpers: tuple[str, ...]
    text: str
    parameters: tuple[Argument, ...]


def emit_check(name: str, kernel: Kernel, natural: Iterable[str]) -> CCheck:
    """Print the checks of a kernel, whose `sizes` and `buffers` are the parameters.

    Args:
        name: of the function.
        natural: sizes that are never negative.
    """
    scalars = [Buffer(each, dtype, (), role="input") for each, dtype in kernel.scalars]
    return _Printer(Names(), (kernel,), (*scalars, *kernel.buffers), {}).check(name, natural)  # which extents may name


class Names(PlainNames):
    """The user's names as C identifiers."""

    reserved = _RESERVED
    helpers = _TAKEN


class _Printer(Printer):
    """Prints one def, with the headers that it needs."""

    comment = "//"
    level = _LEVEL
    unary, primary = _UNARY, _PRIMARY

    # the function --------------------------------------------------------------------------------------------------------------

    def function(self, name: str, sizes: Sequence[str], comment: Iterable[str]) -> PlainFunction:
        """The function of `emit_c`."""
        own, outer, temporaries = self.named(name, sizes)
        declared = [*(f"int64_t {self.names.of(size)}" for size in outer), *map(self.declared, self.arguments)]
        lines = self.temporaries(temporaries)
        for kernel in self.kernels:
            lines += self.block(kernel.body, 1, parallel=True)
        lines += [f"{PAD}free({self.names.of(buffer.name)});" for buffer in temporaries]
        head = [*(f"// {one_line(line)}" for line in comment), *signature(f"int {own}(", declared or ["void"], ")")]
        text = [*self.preamble(bool(temporaries)), *head, "{", *lines, f"{PAD}return 0;", "}"]
        return PlainFunction("\n".join(text) + "\n", own, self.parameters(outer))

    def check(self, name: str, natural: Iterable[str]) -> CCheck:
        """The function of `emit_check`."""
        (kernel,) = self.kernels
        self.names.taken |= {name, "errors"}
        self.natural |= {*natural}
        sizes = [size for size in kernel.sizes if size not in {each.name for each in self.arguments}]
        declared = ["int64_t *errors", *(f"int64_t {self.names.of(size)}" for size in sizes)]
        declared += map(self.declared, self.arguments)
        lines = self.block(kernel.body, 1)
        text = [*signature(f"static int {name}(", declared, ")"), "{", *lines, f"{PAD}return 0;", "}"]
        return CCheck(tuple(self.helpers), "\n".join(text), self.parameters(sizes))

    def preamble(self, allocates: bool) -> list[str]:
        """The headers, in the order of their names, then the helpers."""
        headers = ["math.h", "stdbool.h", "stdint.h", *(["stdlib.h"] if allocates else [])]
        if any("memcpy" in line for line in self.helpers):
            headers.append("string.h")
        return [*(f"#include <{header}>" for header in headers), "", *self.helpers, *([""] if self.helpers else [])]

    def declared(self, buffer: Buffer) -> str:
        name, argument = self.names.of(buffer.name), self.argument(buffer)
        assert argument.dtype is not None
        if argument.kind == "scalar":
            return f"{C_TYPES[argument.dtype]} {name}"
        kind = C_TYPES[buffer.dtype] if buffer.role == "output" else f"const {C_TYPES[buffer.dtype]}"
        if not buffer.shape:
            return f"{kind} *restrict {name}"
        first, *rest = map(self.expr, buffer.shape)
        return f"{kind} {name}[restrict {first}]{''.join(f'[{extent}]' for extent in rest)}"

    def temporaries(self, buffers: Sequence[Buffer]) -> list[str]:
        """Their memory; a temporary without elements still has an address."""
        lines: list[str] = []
        for buffer in buffers:
            kind, name, shape = C_TYPES[buffer.dtype], self.names.of(buffer.name), [*map(self.expr, buffer.shape)]
            target = f"(*restrict {name}){''.join(f'[{extent}]' for extent in shape[1:])}"
            target = target if shape[1:] else f"*restrict {name}"
            extents = [self.expr(extent, _UNARY) for extent in buffer.shape]
            size = " * ".join([f"sizeof({kind})", *(f"(size_t){extent}" for extent in extents)])
            lines.append(f"{PAD}{kind} {target} = malloc({size} + 1);")
        if buffers:
            names = [self.names.of(buffer.name) for buffer in buffers]
            missing = " || ".join(f"!{name}" for name in names)
            lines += [f"{PAD}if ({missing}) {{", *(f"{PAD * 2}free({name});" for name in names)]
            lines += [f"{PAD * 2}return 1;", f"{PAD}}}"]
        return lines

    # statements ----------------------------------------------------------------------------------------------------------------

    def branch(self, stmt: If, depth: int) -> list[str]:
        pad = PAD * depth
        lines = [f"{pad}if ({self.expr(stmt.condition)}) {{", *self.block(stmt.then, depth + 1)]
        if stmt.otherwise is not None:
            lines += [f"{pad}}} else {{", *self.block(stmt.otherwise, depth + 1)]
        return [*lines, f"{pad}}}"]

    def tested(self, check: Check, depth: int) -> list[str]:
        """A check that ends the function where it fails."""
        pad, values = PAD * (depth + 1), enumerate(check.values, 2)
        lines = [f"{PAD * depth}if (!({self.expr(check.condition)})) {{", f"{pad}errors[0] = {check.number + 1};"]
        lines += [f"{pad}errors[{k}] = (int64_t){self.expr(value, _UNARY)};" for k, value in values]
        return [*lines, f"{pad}return 1;", f"{PAD * depth}}}", *self.block(check.body, depth)]

    def loop(self, loop: For, depth: int, parallel: bool) -> list[str]:
        pad, var, (low, high) = PAD * depth, self.names.of(loop.var), self.ends(loop)
        marked = [f"{pad}#pragma omp parallel for"] if parallel else []
        head = f"{pad}for (int64_t {var} = {low}; {var} < {high}; {var}++) {{"
        return [*marked, head, *self.block(loop.body, depth + 1), f"{pad}}}"]

    def local(self, stmt: Allocate, depth: int) -> list[str]:
        """A number that a point needs, with its first value where that comes next; or the components of a fold."""
        buffer, first, *rest = stmt.buffer, *stmt.body.body
        extents = "".join(f"[{self.expr(extent)}]" for extent in buffer.shape)
        declared = f"{PAD * depth}{C_TYPES[buffer.dtype]} {self.names.of(buffer.name)}{extents}"
        if buffer.shape or not isinstance(first, Store) or first.buffer != buffer.name:
            return [f"{declared};", *self.block(stmt.body, depth)]
        value = self.expr(self.converted(first.value, buffer.dtype))
        return [f"{declared} = {value};", *self.block(Block(tuple(rest)), depth)]

    def store(self, stmt: Store) -> str:
        buffer = self.buffers[stmt.buffer]
        target, dtype = self.element(stmt.buffer, stmt.indices), buffer.dtype
        plain = dtype is dtype.compute and not (dtype.is_integer and dtype.bits < 32)
        value = stmt.value if stmt.reduce is None else self.converted(stmt.value, dtype.compute)
        if stmt.reduce in ("+", "*") and plain:
            return f"{target} {stmt.reduce}= {self.expr(value)};"
        if stmt.reduce is not None:
            present = self.converted(Read(stmt.buffer, stmt.indices, dtype), dtype.compute)
            value = Binary(stmt.reduce, present, value, dtype.compute)
        return f"{target} = {self.expr(self.converted(value, dtype))};"

    # expressions ---------------------------------------------------------------------------------------------------------------

    def element(self, name: str, indices: tuple[Expr, ...]) -> str:
        buffer = self.buffers[name]
        if not indices:
            return self.names.of(name) if buffer.scope == "local" else f"*{self.names.of(name)}"
        return self.names.of(name) + "".join(f"[{self.expr(index)}]" for index in indices)

    def constant(self, const: Const) -> tuple[str, int]:
        return _constant(const)

    def select(self, expr: Select) -> str:
        return f"{self.expr(expr.condition, 2)} ? {self.expr(expr.then, 1)} : {self.expr(expr.otherwise, 1)}"

    def read(self, read: Read) -> tuple[str, int]:
        if read.tensor not in self.buffers:
            name = self.names.of(read.tensor)
            narrowed = read.tensor in self.numbers and read.dtype is not DType.INT64
            return (f"({C_TYPES[read.dtype]}){name}", _UNARY) if narrowed else (name, _PRIMARY)
        text = self.element(read.tensor, read.indices)
        level = _PRIMARY if text[0] != "*" else _UNARY
        if self.buffers[read.tensor].dtype is DType.BFLOAT16 and read.dtype is not DType.BFLOAT16:
            return self.from_bfloat16(text), _PRIMARY
        return text, level

    def extremum(self, expr: Binary) -> tuple[str, int]:
        dtype = expr.left.dtype
        self.need([helpers.extremum(expr.op, dtype)])
        return f"{expr.op}_{suffix_of(dtype)}({self.expr(expr.left)}, {self.expr(expr.right)})", _PRIMARY

    def quotient(self, expr: Binary) -> tuple[str, int]:
        """C cuts quotients off; where nothing is negative that is rounding down."""
        op, dtype = "%" if expr.op == "%" else "/", expr.left.dtype
        divisor = expr.right.value if isinstance(expr.right, Const) else 0
        if not dtype.is_float and divisor > 0 and self.is_natural(expr.left):
            own = _LEVEL[op]
            return f"{self.expr(expr.left, own)} {op} {self.expr(expr.right, own + 1)}", own
        if op == "%":
            self.need([helpers.floor_remainder(dtype)])
        else:
            self.need([helpers.floor_division(dtype)])
        name = "floor_mod" if op == "%" else "floor_div"
        return f"{name}_{suffix_of(dtype)}({self.expr(expr.left)}, {self.expr(expr.right)})", _PRIMARY

    def wrapped(self, text: str, level: int, expr: Expr) -> tuple[str, int]:
        """C computes small integers as `int`, which is too narrow for some products of `uint16_t`."""
        if not expr.dtype.is_integer or expr.dtype.bits >= 32:
            return text, level
        wide = "1u * " if isinstance(expr, Binary) and expr.op == "*" and expr.dtype is DType.UINT16 else ""
        return f"({C_TYPES[expr.dtype]})({wide}{text})", _UNARY

    def of_bits(self, op: str, call: Call) -> tuple[str, int]:
        """An operator on bits; C leaves open what a shift by the width or more is."""
        left, right = call.arguments
        if op in bits.SHIFTS:
            self.need([helpers.shift(op, call.dtype)])
            name = "shift_left" if op == "<<" else "shift_right"
            return f"{name}_{suffix_of(call.dtype)}({self.expr(left)}, {self.expr(right)})", _PRIMARY
        symbol = "^" if op == "^^" else op
        return self.wrapped(f"({self.expr(left, _UNARY)} {symbol} {self.expr(right, _UNARY)})", _PRIMARY, call)

    def call(self, call: Call) -> tuple[str, int]:
        if call.function in random_numbers.WORDS:
            self.need([helpers.PHILOX])
            texts = ", ".join(map(self.expr, call.arguments))
            return f"philox({random_numbers.WORDS[call.function]}, {texts})", _PRIMARY
        if call.function in bits.OPERATORS:
            return self.of_bits(bits.OPERATORS[call.function], call)
        return self.function_call(call), _PRIMARY

    def function_call(self, call: Call) -> str:
        """A mathematical function."""
        dtype = call.arguments[0].dtype
        arguments = ", ".join(map(self.expr, call.arguments))
        name = call.function
        if name in ("isnan", "isinf", "isfinite"):
            return f"{name}({arguments})"
        if not dtype.is_float:
            return self.integer_call(name, dtype, arguments)
        if name in LIBRARY:
            return f"{name}{'' if dtype is DType.FLOAT64 else 'f'}({arguments})"
        assert name in FUNCTIONS, name
        self.need(helpers.function_text(name, dtype))
        return f"{name}_{suffix_of(dtype)}({arguments})"

    def integer_call(self, name: str, dtype: DType, argument: str) -> str:
        """The functions that keep integers: absolute value, sign and bits that are 1; rounding changes nothing."""
        if name == "popcount":
            return f"__builtin_popcount{'ll' if dtype.bits == 64 else ''}({argument})"
        kind, suffix = C_TYPES[dtype], suffix_of(dtype)
        sign = f"({kind})((x > 0) - (x < 0))" if dtype.is_signed else "x != 0"
        bodies = {"abs": f"x < 0 ? ({kind})-x : x", "sign": sign, "relu": "x < 0 ? 0 : x"}
        if name not in bodies or (name != "sign" and not dtype.is_signed):
            return f"({argument})"
        self.need([f"static inline {kind} {name}_{suffix}({kind} x) {{ return {bodies[name]}; }}"])
        return f"{name}_{suffix}({argument})"

    def cast(self, cast: Cast) -> tuple[str, int]:
        source, target = cast.operand.dtype, cast.dtype
        if source is DType.BFLOAT16:
            text = self.number_of(cast.operand)
            return (text, _PRIMARY) if target is DType.FLOAT32 else self.converted_text(text, DType.FLOAT32, target)
        if target is DType.BFLOAT16:
            self.need(helpers.BFLOAT16)
            return f"to_bfloat16({self.expr(cast.operand)})", _PRIMARY
        return self.converted_text(self.expr(cast.operand, _UNARY), source, target)

    def converted_text(self, text: str, source: DType, target: DType) -> tuple[str, int]:
        if target is DType.BOOL and source is not DType.BOOL:
            return f"{text} != 0", _LEVEL["!="]
        if source.is_float and target.is_integer:
            self.need([helpers.saturating(target)])
            return f"to_{suffix_of(target)}({text})", _PRIMARY
        widens = (
            source.is_float == target.is_float and source.is_signed == target.is_signed and source.bits <= target.bits
        )
        if widens and source is not DType.BOOL and target is not DType.FLOAT64 and source is not DType.INT32:
            return text, _UNARY
        return f"({C_TYPES[target]}){text}", _UNARY

    def number_of(self, expr: Expr) -> str:
        """An expression of type `bfloat16` as a `float`: what is read or rounded is the bits."""
        match expr:
            case Read() | Cast():
                return self.from_bfloat16(self.expr(expr))
            case Select():
                return (
                    f"({self.expr(expr.condition, 2)} ? {self.number_of(expr.then)} : {self.number_of(expr.otherwise)})"
                )
            case _:
                return self.expr(expr, _PRIMARY)

    def from_bfloat16(self, text: str) -> str:
        self.need(helpers.BFLOAT16)
        return f"from_bfloat16({text})"


def _constant(const: Const) -> tuple[str, int]:
    value, dtype = const.value, const.dtype
    if dtype is DType.BOOL:
        return str(bool(value)).lower(), _PRIMARY
    if dtype.is_float:
        number, suffix = float(value), "" if dtype is DType.FLOAT64 else "f"
        if number != number:
            return "NAN", _PRIMARY
        if number in (float("inf"), float("-inf")):
            return ("INFINITY", _PRIMARY) if number > 0 else ("-INFINITY", _UNARY)
        text = repr(number)
        text = text if "." in text or "e" in text else f"{text}.0"
        return f"{text}{suffix}", _UNARY if text[0] == "-" else _PRIMARY
    text = literal(int(value), dtype)
    return text, _UNARY if text[0] == "-" else _PRIMARY


__all__ = ["CCheck", "Names", "emit_c", "emit_check"]
