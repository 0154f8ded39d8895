"""Runs a kernel on NumPy arrays: the meaning of the loop IR, and the target `"interpreter"`.

A kernel is printed as a plain Python function, one line per loop or store, and that function runs. Slow and obvious: every
point is visited in text order, but for those that a comparison asked first leaves out (`loops.leading`), every subscript is checked
against its buffer, every operation is that of the language reference.
GPU axes and parallel loops are serial loops; shared and local buffers are fresh arrays filled with NaN (or a marker), so that a
value that nobody wrote does not go unnoticed.

Worked example: `C[i] = A[i] + B[i]` over `float32` becomes

    for v_i in range(0, 0 + n_N):
        store(b_C, (v_i,), f32(load(b_A, (v_i,)) + load(b_B, (v_i,))))
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, assert_never

import numpy as np

from tc_jupyter.program import (
    LARGEST_ARRAY,
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
    array_bytes,
    bits,
    random_numbers,
)

from .intrinsics import INTRINSICS
from .ir import Allocate, Barrier, Block, Buffer, Check, For, If, Intrinsic, Kernel, Stmt, Store
from .leading import asked_first

Number = int | float | bool
MOST_BRACKETS = 60  # of an expression and its subscripts; what stands around them adds a few


class OutOfBounds(IndexError):
    """The generated loops left a buffer: always a bug of the compiler, never of the program."""


def interpret(
    kernel: Kernel,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    scalars: Mapping[str, Number] | None = None,
) -> tuple[int, ...] | None:
    """Run `kernel` in place on `arrays`.

    Args:
        arrays: one array per argument buffer, of the buffer's rank and element type (16-bit floats: `float16`, or the
            `uint16` bit pattern of `bfloat16`, or `ml_dtypes.bfloat16`), any strides.
        sizes: values of the kernel's size parameters.
        scalars: values of rank-0 arguments passed by value.

    Returns:
        `None`, or the first failed check as `(number, values...)`.

    Raises:
        OutOfBounds: a subscript outside its buffer (a compiler bug).
    """
    function = _compiled(kernel)
    with np.errstate(all="ignore"):
        return function(arrays, sizes, scalars or {})


@lru_cache(maxsize=512)
def _compiled(kernel: Kernel) -> Callable[..., tuple[int, ...] | None]:
    lines = _Printer().kernel(kernel)
    scope: dict[str, Any] = dict(_RUNTIME)
    text = "\n".join(lines).encode("utf-8", "backslashreplace")  # a comment of the user may hold half a character
    exec(compile(text, f"<loops of {kernel.name}>", "exec"), scope)
    return scope["run"]


def python_text(kernel: Kernel) -> str:
    """The Python function that `interpret` runs, as text."""
    return "\n".join(_Printer().kernel(kernel))


class _Printer:
    """Prints one kernel as Python; names are numbered so that any tensor or index name is fine."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, str], str] = {}
        self.buffers: dict[str, Buffer] = {}
        self.scalars: set[str] = set()
        self.nested = 0
        self.parts: list[tuple[str, str]] = []
        self.made = 0

    def name(self, kind: str, name: str) -> str:
        clean = "".join(char if char.isascii() and char.isalnum() else "_" for char in name)
        return self.names.setdefault((kind, name), f"{kind}{len(self.names)}_{clean}")

    def kernel(self, kernel: Kernel) -> list[str]:
        lines = ["def run(arrays, sizes, scalars):", "    failed = None"]
        for buffer in kernel.buffers:
            self.buffers[buffer.name] = buffer
            lines.append(f"    {self.name('b', buffer.name)} = view(arrays[{buffer.name!r}], {buffer.dtype.value!r})")
        lines += [f"    {self.name('n', size)} = int(sizes[{size!r}])" for size in kernel.sizes]
        for scalar, dtype in kernel.scalars:
            self.scalars.add(scalar)
            lines.append(f"    {self.name('s', scalar)} = cast_{dtype.value}(scalars[{scalar!r}])")
        lines += self.block(kernel.body, 1)
        return [*lines, "    return failed"]

    def block(self, block: Block, depth: int) -> list[str]:
        lines = [f"{'    ' * depth}# {line}" for line in block.comment.splitlines()]
        for stmt in block.body:
            lines += self.statement(stmt, depth)
        return lines or ["    " * depth + "pass"]

    def statement(self, stmt: Stmt, depth: int) -> list[str]:
        around, self.parts = self.parts, []
        lines = self.printed(stmt, depth)
        parts, self.parts = self.parts, around
        return [*(f"{'    ' * depth}def {name}(): return {text}" for name, text in parts), *lines]

    def printed(self, stmt: Stmt, depth: int) -> list[str]:
        pad = "    " * depth
        match stmt:
            case For():
                var, low = self.name("v", stmt.var), self.expr(stmt.min)
                ends = f"{low}, {low} + {self.expr(stmt.extent)}"
                asked = "".join(f", ({each.op!r}, lambda: {self.expr(each.value)})" for each in asked_first(stmt))
                points = f"where({ends}{asked})" if asked else f"range({ends})"
                return [f"{pad}for {var} in {points}:", *self.loop_body(stmt.body, depth + 1)]
            case If():
                lines = [f"{pad}if {self.expr(stmt.condition)}:", *self.block(stmt.then, depth + 1)]
                if stmt.otherwise is not None:
                    lines += [f"{pad}else:", *self.block(stmt.otherwise, depth + 1)]
                return lines
            case Store():
                return [pad + self.store(stmt)]
            case Allocate():
                self.buffers[stmt.buffer.name] = stmt.buffer
                shape = "".join(f"{self.expr(extent)}, " for extent in stmt.buffer.shape)
                new = f"{pad}{self.name('b', stmt.buffer.name)} = allocate(({shape}), {stmt.buffer.dtype.value!r})"
                return [new, *self.block(stmt.body, depth)]
            case Check():
                values = "".join(f", {self.expr(value)}" for value in stmt.values)
                lines = [f"{pad}if {self.expr(stmt.condition)}:", *self.block(stmt.body, depth + 1)]
                return [*lines, f"{pad}elif failed is None:", f"{pad}    failed = ({stmt.number}{values},)"]
            case Intrinsic():
                operands = ", ".join(f"({self.name('b', op.tensor)}, {self.position(op)})" for op in stmt.operands)
                return [f"{pad}intrinsic({stmt.name!r}, {dict(stmt.attributes)!r}, {operands})"]
            case Barrier():
                return [f"{pad}pass  # barrier"]
            case Block():
                return self.block(stmt, depth)
        assert_never(stmt)

    def loop_body(self, block: Block, depth: int) -> list[str]:
        """Python allows 20 nested loops in a function, so deeper ones get a function of their own."""
        self.nested += 1
        if self.nested % 16:
            lines = self.block(block, depth)
        else:
            pad = "    " * depth
            lines = [f"{pad}def inner():", f"{pad}    nonlocal failed", *self.block(block, depth + 1), f"{pad}inner()"]
        self.nested -= 1
        return lines

    def store(self, stmt: Store) -> str:
        buffer = self.buffers[stmt.buffer]
        where = "".join(f"{self.expr(index)}, " for index in stmt.indices)
        target = f"{self.name('b', stmt.buffer)}, ({where})"
        value = self.expr(stmt.value)
        if stmt.reduce is not None:
            compute = buffer.dtype.compute
            old = f"cast_{compute.value}(load({target}, {buffer.dtype.value!r}))"
            value = _binary(stmt.reduce, compute, old, value)
        return f"store({target}, cast_{buffer.dtype.value}({value}), {buffer.dtype.value!r})"

    def position(self, read: Read) -> str:
        return "(" + "".join(f"{self.expr(index)}, " for index in read.indices) + ")"

    def expr(self, expr: Expr) -> str:
        """Python allows 200 nested brackets, so a deep part gets a function of its own, called where the part stood."""
        text = self.text(expr)
        if len(text) < 2 * MOST_BRACKETS or _brackets(text) <= MOST_BRACKETS:
            return text
        self.made += 1
        self.parts.append((f"part{self.made}", text))
        return f"part{self.made}()"

    def text(self, expr: Expr) -> str:
        match expr:
            case Const():
                return _constant(expr)
            case Size():
                return self.name("n", expr.name)
            case IndexVar():
                return self.name("v", expr.name)
            case Read():
                if not expr.indices and expr.tensor in self.scalars:
                    return self.name("s", expr.tensor)
                return f"load({self.name('b', expr.tensor)}, {self.position(expr)}, {expr.dtype.value!r})"
            case Unary(op="!"):
                return f"(not {self.expr(expr.operand)})"
            case Unary():
                return f"cast_{expr.dtype.value}(-{self.expr(expr.operand)})"
            case Binary():
                return _binary(expr.op, expr.left.dtype, self.expr(expr.left), self.expr(expr.right))
            case Select():
                then, condition, other = self.expr(expr.then), self.expr(expr.condition), self.expr(expr.otherwise)
                return f"({then} if {condition} else {other})"
            case Call(function=function) if function in bits.OPERATORS:
                left, right = (self.expr(argument) for argument in expr.arguments)
                operator = bits.OPERATORS[function]
                return f"cast_{expr.dtype.value}(of_bits({operator!r}, {left}, {right}, {expr.dtype.bits}))"
            case Call(function=function) if function in random_numbers.WORDS:
                arguments = ", ".join(self.expr(argument) for argument in expr.arguments)
                return f"int(random_word({function!r}, {arguments}))"
            case Call():
                arguments = ", ".join(f"float({self.expr(argument)})" for argument in expr.arguments)
                if expr.function in _EXACT:
                    arguments = ", ".join(self.expr(argument) for argument in expr.arguments)
                return f"cast_{expr.dtype.value}(functions[{expr.function!r}]({arguments}))"
            case Cast():
                return f"cast_{expr.dtype.value}({self.expr(expr.operand)})"
        assert_never(expr)


def _brackets(text: str) -> int:
    """The deepest nesting of round brackets."""
    deepest = depth = 0
    for char in text:
        if char == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif char == ")":
            depth -= 1
    return deepest


def _constant(const: Const) -> str:
    if const.dtype.is_float:
        return f"cast_{const.dtype.value}(float({str(float(const.value))!r}))"
    return repr(bool(const.value)) if const.dtype is DType.BOOL else repr(int(const.value))


def _binary(op: str, dtype: DType, left: str, right: str) -> str:
    """One operator on operands of `dtype`; the text never mentions an operand twice."""
    if op in ("&&", "||"):
        return f"({left} {'and' if op == '&&' else 'or'} {right})"
    if op in ("<", "<=", ">", ">=", "==", "!="):
        return f"bool({left} {op} {right})"
    if op in ("min", "max"):
        return f"{'float' if dtype.is_float else 'int'}_{op}({left}, {right})"
    if op == "/" and not dtype.is_float:
        op = "//"
    if op in ("//", "/", "%"):
        kind = "float" if dtype.is_float else "int"
        name = {"//": "divide", "/": "divide", "%": "modulo"}[op]
        return f"cast_{dtype.value}({kind}_{name}({left}, {right}))"
    return f"cast_{dtype.value}({left} {op} {right})"


# --- what the printed text calls -------------------------------------------------------------------------------------


def _view(array: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bfloat16" and array.dtype != np.uint16:
        return array.view(np.uint16)
    return array


def _load(array: np.ndarray, where: tuple[int, ...], dtype: str) -> Any:
    _check_bounds(array, where)
    value = array[where]
    if dtype == "bfloat16":
        return _from_bfloat16(int(value))
    if dtype in ("float16", "float32", "float64"):
        return value
    return bool(value) if dtype == "bool" else int(value)


def _store(array: np.ndarray, where: tuple[int, ...], value: Any, dtype: str) -> None:
    _check_bounds(array, where)
    array[where] = _to_bfloat16(float(value)) if dtype == "bfloat16" else value


def _check_bounds(array: np.ndarray, where: tuple[int, ...]) -> None:
    if len(where) != array.ndim or any(not 0 <= i < n for i, n in zip(where, array.shape, strict=True)):
        raise OutOfBounds(f"position {where} of a buffer of shape {array.shape}")


def _where(low: int, end: int, *asked: tuple[str, Callable[[], Any]]) -> range:
    """The points of a loop where what every one of them asks first holds (`loops.leading`).

    What cannot be read is left to the points, and so is what is asked after it: they report it, or never come to it.
    """
    for op, value in asked if low < end else ():
        try:
            found = value()
        except OutOfBounds:
            break
        if not op:
            end = end if found else low
        if op in (">", ">=", "=="):
            low = max(low, found + (op == ">"))
        if op in ("<", "<=", "=="):
            end = min(end, found + (op != "<"))
        if low >= end:
            break
    return range(low, end)


def _allocate(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    shape = tuple(max(0, extent) for extent in shape)
    if array_bytes(shape, DType(dtype).bytes) > LARGEST_ARRAY:
        raise MemoryError(f"an array of shape {shape}")
    if dtype == "bfloat16":
        return np.full(shape, 0x7FC0, np.uint16)
    if dtype.startswith("float"):
        return np.full(shape, np.nan, dtype)
    return np.full(shape, np.array(0xA5, np.uint8).astype(dtype))


def _from_bfloat16(bits: int) -> np.float32:
    return np.uint32(bits << 16).view(np.float32)


def _to_bfloat16(value: float) -> int:
    bits = int(np.float32(value).view(np.uint32))
    if math.isnan(value):
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def _round_bfloat16(value: Any) -> np.float32:
    return _from_bfloat16(_to_bfloat16(float(value)))


def _integer_cast(dtype: DType) -> Callable[[Any], int]:
    low, high = dtype.limits
    modulus = 1 << dtype.bits

    def cast(value: Any) -> int:
        if isinstance(value, int):
            value = int(value)  # of a truth value a number
            return value if low <= value <= high else (value - low) % modulus + low
        number = float(value)
        if number != number:
            return 0
        return low if number <= low else high if number >= high else int(number)

    return cast


def _int_divide(a: int, b: int) -> int:
    return 0 if b == 0 else a // b


def _int_modulo(a: int, b: int) -> int:
    return 0 if b == 0 else a % b


def _float_divide(a: Any, b: Any) -> Any:
    return np.divide(a, b)


def _float_modulo(a: Any, b: Any) -> Any:
    """`a - b*floor(a/b)`, exactly: the C remainder moved to the sign of the divisor."""
    remainder = np.fmod(a, b)
    return remainder + b if remainder != 0 and (remainder < 0) != (b < 0) else remainder


def _float_min(a: Any, b: Any) -> Any:
    return np.minimum(a, b)


def _float_max(a: Any, b: Any) -> Any:
    return np.maximum(a, b)


def _libm(name: str) -> Callable[..., float]:
    """A function of the C library that Python's `math` lacks."""
    library = ctypes.CDLL(ctypes.util.find_library("m") or None)
    function = getattr(library, name)
    function.restype = ctypes.c_double

    def call(*arguments: float) -> float:
        return function(*(ctypes.c_double(argument) for argument in arguments))

    return call


def _special(name: str) -> Callable[..., float]:
    """A function that only SciPy has, imported when it is first called."""

    def call(*arguments: float) -> float:
        from scipy import special  # noqa: PLC0415  (optional: only rare functions need it)

        return float(getattr(special, name)(*arguments))

    return call


def _polygamma(order: float, x: float) -> float:
    """By the zeta function of Hurwitz, which is asked for positive numbers only: elsewhere SciPy sums all the way to them."""
    from scipy import special  # noqa: PLC0415  (optional: only rare functions need it)

    if order == 0:
        return float(special.psi(x))
    if not (order > 0 and order == math.floor(order)) or math.isnan(x) or x == -math.inf:
        return math.nan
    s, sign = order + 1, 1.0 if order % 2 else -1.0
    if x > 0:
        zeta = float(special.zeta(s, x))
    else:
        y = x - math.floor(x)
        zeta = math.inf
        if y:
            zeta = float(special.zeta(s, y) + sign * (special.zeta(s, math.ceil(x) - x) - special.zeta(s, 1 - x)))
    return sign * float(special.gamma(s)) * zeta


def _ufunc(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: function(*(np.float64(argument) for argument in arguments))


def _power(base: float, exponent: float) -> float:
    """As in C: NumPy takes roots for some exponents, and the root of -inf or -0 is another number."""
    base, exponent = float(base), float(exponent)
    if exponent % 2 != 1 and (base == -math.inf or base == 0):
        base = abs(base)
    return np.power(np.float64(base), np.float64(exponent))


def _norm(*arguments: float) -> float:
    return math.hypot(*arguments)


def _reciprocal(value: float) -> float:
    return float(np.divide(1.0, value))


def _round_half_away(value: float) -> float:
    if not math.isfinite(value) or abs(value) >= 2.0**52:
        return value
    whole = math.floor(abs(value))
    return math.copysign(whole + (abs(value) - whole >= 0.5), value)


def _sin_pi(value: float) -> float:
    if not math.isfinite(value):
        return math.nan
    rest = math.fmod(value, 2.0)
    return math.copysign(0.0, value) if rest == math.trunc(rest) else math.sin(math.pi * _fold(rest))


def _fold(rest: float) -> float:
    """The same sine, argument within half a unit of 0."""
    if rest > 0.5:
        return 1.0 - rest if rest <= 1.5 else rest - 2.0
    if rest < -0.5:
        return -1.0 - rest if rest >= -1.5 else rest + 2.0
    return rest


def _cos_pi(value: float) -> float:
    if not math.isfinite(value):
        return math.nan
    rest = math.fmod(abs(value), 2.0)
    return 0.0 if rest in (0.5, 1.5) else math.sin(math.pi * _fold(rest + 0.5 if rest < 1.5 else rest - 1.5))


def _sigmoid(value: float) -> float:
    return float(1.0 / (1.0 + np.exp(np.float64(-value))))


def _fma(a: float, b: float, c: float) -> float:
    """Exact for `float32` operands; for `float64` one extra rounding can occur."""
    return float(np.longdouble(a) * np.longdouble(b) + np.longdouble(c))


_EXACT = frozenset(
    {
        "abs",
        "sign",
        "popcount",
        "ceil",
        "floor",
        "round",
        "rounded",
        "trunc",
        "isnan",
        "isinf",
        "isfinite",
        "fma",
        "relu",
        "nextafter",
    }
)
"""Functions whose arguments keep their own type."""


def _abs(value: Any) -> Any:
    return abs(value)


def _sign(value: Any) -> Any:
    if isinstance(value, int):
        return (value > 0) - (value < 0)
    return value if value != value else np.sign(value)


def _whole(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, int) else function(float(value))


def _relu(value: Any) -> Any:
    return np.maximum(value, 0) if not isinstance(value, int) else max(value, 0)


def _nextafter(a: Any, b: Any) -> Any:
    return np.nextafter(a, b)


SAME_NAME = (
    "cos", "cosh", "sin", "sinh", "tan", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt",
    "fmax", "fmin", "copysign", "fmod", "fabs", "hypot",
)  # fmt: skip
"""Functions that NumPy has by the same name."""
_ARC = ("acos", "acosh", "asin", "asinh", "atan", "atanh")


def _libm_later(name: str) -> Callable[..., float]:
    """A function of the C library, looked up when it is first called."""
    return lambda *arguments: _libm(name)(*arguments)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _ufunc(getattr(np, name)) for name in SAME_NAME},
    **{name: _ufunc(getattr(np, "arc" + name[1:])) for name in _ARC},
    "atan2": _ufunc(np.arctan2),
    "pow": _power,
    "fdivide": _ufunc(np.divide),
    "cospi": _cos_pi,
    "sinpi": _sin_pi,
    "exp10": lambda x: float(np.power(10.0, np.float64(x))),
    "rsqrt": lambda x: _reciprocal(float(np.sqrt(np.float64(x)))),
    "rcbrt": lambda x: _reciprocal(float(np.cbrt(x))),
    "erf": math.erf,
    "erfc": math.erfc,
    "erfcx": _special("erfcx"),
    "erfinv": _special("erfinv"),
    "erfcinv": _special("erfcinv"),
    "normcdf": lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0)),
    "normcdfinv": _special("ndtri"),
    **{name: _libm_later(name) for name in ("logb", "lgamma", "tgamma", "j0", "j1", "y0", "y1", "remainder")},
    "digamma": _special("psi"),
    "polygamma": _polygamma,
    "cyl_bessel_i0": _special("i0"),
    "cyl_bessel_i1": _special("i1"),
    "ceil": _whole(lambda x: float(np.ceil(x))),
    "floor": _whole(lambda x: float(np.floor(x))),
    "round": _whole(_round_half_away),
    "rounded": lambda value: value,
    "trunc": _whole(lambda x: float(np.trunc(x))),
    "sigmoid": _sigmoid,
    "relu": _relu,
    "isnan": lambda x: bool(np.isnan(x)),
    "isinf": lambda x: bool(np.isinf(x)),
    "isfinite": lambda x: bool(np.isfinite(x)),
    "abs": _abs,
    "sign": _sign,
    "popcount": lambda x: bin(x).count("1"),
    "fdim": lambda a, b: a if a != a else b if b != b else (a - b if a > b else 0.0),
    "nextafter": _nextafter,
    "rhypot": lambda a, b: _reciprocal(math.hypot(a, b)),
    "fma": _fma,
    "norm3d": _norm,
    "norm4d": _norm,
    "rnorm3d": lambda *x: _reciprocal(_norm(*x)),
    "rnorm4d": lambda *x: _reciprocal(_norm(*x)),
}
"""The mathematical functions of the language, computed in double precision and rounded by the caller."""


def _intrinsic(name: str, attributes: dict[str, int | str], *operands: tuple[np.ndarray, tuple[int, ...]]) -> None:
    INTRINSICS[name](attributes, *operands)


_RUNTIME: dict[str, Any] = {
    "view": _view,
    "where": _where,
    "load": _load,
    "store": _store,
    "allocate": _allocate,
    "functions": FUNCTIONS,
    "intrinsic": _intrinsic,
    "of_bits": bits.value_of,
    "random_word": random_numbers.word,
    "int_divide": _int_divide,
    "int_modulo": _int_modulo,
    "float_divide": _float_divide,
    "float_modulo": _float_modulo,
    "int_min": min,
    "int_max": max,
    "float_min": _float_min,
    "float_max": _float_max,
    "cast_bool": lambda value: bool(value != 0),
    "cast_float16": np.float16,
    "cast_float32": np.float32,
    "cast_float64": np.float64,
    "cast_bfloat16": _round_bfloat16,
    **{f"cast_{dtype.value}": _integer_cast(dtype) for dtype in DType if dtype.is_integer},
}
