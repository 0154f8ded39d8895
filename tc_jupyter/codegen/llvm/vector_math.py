"""The functions of the language on scalars and vectors.

Four sources, in this order: one instruction or a short formula; straight-line code (`known.py`) for any number of lanes;
the C library, one lane at a time, in `double`; SciPy, where the C library lacks the function. The last two are external symbols
that the loader resolves (`EXTERNAL`), so that generated code can be kept on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tc_jupyter.program import DType, bits, random_numbers
from tc_jupyter.schedule import Target

from . import arith, polygamma
from .builder import Builder, Value, constant, mangle
from .elementary import exp
from .error_functions import scaled_in_halves
from .known import KNOWN, Known
from .lanes import Lanes
from .powers import of_halves


@dataclass(frozen=True, slots=True)
class External:
    """A function of `double` that a library supplies.

    Attributes:
        library: `c`, or `scipy` (`scipy.special.cython_special`).
        name: its name there.
        arguments: how many.
    """

    library: str
    name: str
    arguments: int = 1


_C1 = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh", "exp", "exp2", "expm1", "log",
    "log2", "log10", "log1p", "logb", "cbrt", "erf", "erfc", "lgamma", "tgamma", "j0", "j1", "y0", "y1",
)  # fmt: skip
_C2 = ("atan2", "fdim", "fmod", "hypot", "nextafter", "pow", "remainder")
_SCIPY = {
    "erfcx": "erfcx",
    "erfinv": "erfinv",
    "erfcinv": "erfcinv",
    "normcdfinv": "ndtri",
    "cyl_bessel_i0": "i0",
    "cyl_bessel_i1": "i1",
    "digamma": "psi",
}

EXTERNAL: dict[str, External] = {
    **{f"tc.{name}": External("c", name) for name in _C1},
    **{f"tc.{name}": External("c", name, 2) for name in _C2},
    **{f"tc.{name}": External("scipy", symbol) for name, symbol in _SCIPY.items()},
    "tc.nextafterf": External("c", "nextafterf", 2),
}
"""Symbols that generated code may mention."""

Emit = Callable[[Builder, tuple[Value, ...], Target], Value]


def emit_call(b: Builder, function: str, arguments: tuple[Value, ...], dtype: DType, target: Target) -> Value:
    """Print a call of a function of the language.

    Args:
        arguments: operands of one type; lanes may differ and are made equal.
        dtype: type of the result; `bool` for the `is...` tests.
    """
    arguments = arith.same_lanes(b, *arguments)
    if not arguments[0].dtype.is_float:
        return _integer(b, function, arguments, dtype, target)
    if function in KNOWN:
        return _known(b, function, KNOWN[function], arguments, target)
    if function in _FORMULAS:
        return _FORMULAS[function](b, arguments, target)
    if function in ("min", "max"):
        result = arguments[0]
        for other in arguments[1:]:
            result = arith.binary(b, function, result, other)
        return result
    return library_call(b, function, arguments)


def emit_power(b: Builder, base: Value, exponent: float, target: Target) -> Value:
    """Print `pow` with an exponent that is known."""
    if base.dtype.is_float and (power := of_halves(Lanes(b, base), exponent)) is not None:
        return power.v
    return emit_call(b, "pow", (base, constant(exponent, base.dtype, base.lanes)), base.dtype, target)


def _integer(b: Builder, function: str, arguments: tuple[Value, ...], dtype: DType, target: Target) -> Value:
    """Functions that keep integers; any other sees `float32`."""
    x = arguments[0]
    if function in bits.OPERATORS:
        return arith.of_bits(b, bits.OPERATORS[function], x, arguments[1])
    if function in random_numbers.WORDS:
        return arith.random_word(b, random_numbers.WORDS[function], arguments)
    zero = constant(0, x.dtype, x.lanes)
    if function in ("ceil", "floor", "round", "rounded", "trunc"):
        return x
    if function == "abs":
        return x if not x.dtype.is_signed else arith.select(b, arith.compare(b, "<", x, zero), arith.negate(b, x), x)
    if function == "relu":
        return arith.binary(b, "max", x, zero)
    if function == "popcount":
        return arith.cast(b, arith.intrinsic(b, "ctpop", x), dtype, True)
    if function == "sign":
        one = constant(1, x.dtype, x.lanes)
        positive = arith.select(b, arith.compare(b, ">", x, zero), one, zero)
        if not x.dtype.is_signed:
            return positive
        return arith.select(b, arith.compare(b, "<", x, zero), constant(-1, x.dtype, x.lanes), positive)
    if function in ("isnan", "isinf", "isfinite"):
        return constant(function == "isfinite", DType.BOOL, x.lanes)
    wide = dtype if dtype.is_float else DType.FLOAT32
    return emit_call(b, function, tuple(arith.cast(b, a, wide, True) for a in arguments), dtype, target)


def is_inline(function: str) -> bool:
    """Whether a function is straight-line code for any number of lanes, or nearly so."""
    return function in KNOWN or function in _FORMULAS


def float_remainder(b: Builder, left: Value, right: Value, target: Target) -> Value:
    """`a - b*floor(a/b)` without rounding in between: the remainder of C, moved to the sign of the divisor."""
    left, right = arith.same_lanes(b, left, right)
    rest = emit_call(b, "fmod", (left, right), left.dtype, target)
    zero = constant(0.0, rest.dtype, rest.lanes)
    signs = logical_xor(b, arith.compare(b, "<", rest, zero), arith.compare(b, "<", right, zero))
    wrong = arith.logical(b, "and", signs, arith.compare(b, "!=", rest, zero))
    moved = b.op(f"fadd {rest.typed}, {right.text}", rest.dtype, rest.lanes, "moved")
    return arith.select(b, wrong, moved, rest)


def logical_xor(b: Builder, left: Value, right: Value) -> Value:
    """Whether exactly one of two is true."""
    return arith.logical(b, "xor", left, right)


def _known(b: Builder, function: str, known: Known, arguments: tuple[Value, ...], target: Target) -> Value:
    """A function with straight-line code, or, where the processor cannot run it, of the C library."""
    double = arguments[0].dtype is DType.FLOAT64
    fused = known.fused_double if double else known.fused_single
    if fused and not target.fma:
        return _normcdf(b, arguments, target) if function == "normcdf" else library_call(b, function, arguments)
    operands = tuple(Value(a.text, DType.FLOAT64 if double else DType.FLOAT32, a.lanes) for a in arguments)
    emit, limit = (known.double, known.limit_double) if double else (known.single, known.limit_single)
    if limit == math.inf:
        return emit(*(Lanes(b, x) for x in operands)).v
    return _bounded(b, function, operands, known, limit, emit)


def _bounded(
    b: Builder, function: str, arguments: tuple[Value, ...], known: Known, limit: float, emit: Callable[..., Lanes]
) -> Value:
    """The straight-line code, unless some lane is too large for its reduction."""
    large = known.measure(*(Lanes(b, x) for x in arguments)).test(">", limit)
    if large.lanes > 1:
        some = b.call(f"llvm.vector.reduce.or.{mangle(large.type)}", (large,), Value("", DType.BOOL), "some")
        assert isinstance(some, Value)
        large = some
    far, near, end = b.name("far"), b.name("near"), b.name("end")
    b.branch_if(large, far, near)
    b.label(far)
    slow = library_call(b, function, arguments)
    slow_block = b.block
    b.branch(end)
    b.label(near)
    fast = emit(*(Lanes(b, x) for x in arguments)).v
    b.branch(end)
    b.label(end)
    return b.phi(slow, slow_block, fast, near, function)


# --- libraries -------------------------------------------------------------------------------------------------------


def library_call(b: Builder, function: str, arguments: tuple[Value, ...]) -> Value:
    """Call an external function of `double`, one lane after the other."""
    dtype, lanes = arguments[0].dtype, arguments[0].lanes
    symbol, wide = f"tc.{function}", DType.FLOAT64
    if function == "polygamma":
        polygamma.declare(b)
    if function == "nextafter" and dtype is not DType.FLOAT64:
        symbol, wide = "tc.nextafterf", DType.FLOAT32
    operands = tuple(arith.cast(b, argument, wide, True) for argument in arguments)
    if lanes == 1:
        result = scalar_call(b, symbol, operands, wide)
    else:
        result = _lane_by_lane(b, symbol, operands, wide)
    return arith.cast(b, result, dtype, True)


def scalar_call(b: Builder, symbol: str, operands: tuple[Value, ...], dtype: DType) -> Value:
    """One call; SciPy's functions take one more integer, which says whether Python overrides are looked up."""
    kind = operands[0].type
    if symbol == polygamma.SYMBOL:
        return b.op(f"call double @{symbol}({', '.join(each.typed for each in operands)})", dtype, 1, "polygamma")
    external = EXTERNAL[symbol]
    kinds = ", ".join([kind] * len(operands) + (["i32"] if external.library == "scipy" else []))
    values = ", ".join([operand.typed for operand in operands] + (["i32 0"] if external.library == "scipy" else []))
    b.declare(symbol, f"declare {kind} @{symbol}({kinds}) nounwind willreturn memory(none)")
    return b.op(f"call {kind} @{symbol}({values})", dtype, 1, symbol[3:])


def _lane_by_lane(b: Builder, symbol: str, operands: tuple[Value, ...], dtype: DType) -> Value:
    """A loop over the lanes, which pass through the stack."""
    lanes, kind = operands[0].lanes, operands[0].type
    element = kind[1:-1].split(" x ")[1]
    slots = [b.slot(kind, 1, 64, "lanes") for _ in operands]
    for slot, operand in zip(slots, operands, strict=True):
        b.line(f"store {operand.typed}, ptr {slot}, align 64")
    body, end, before = b.name("lane"), b.name("lane.end"), b.block
    lane, after = "%" + b.name("lane.k"), "%" + b.name("lane.next")
    b.branch(body)
    b.label(body)
    b.line(f"{lane} = phi i64 [ 0, %{before} ], [ {after}, %{body} ]")
    scalars: list[Value] = []
    for slot in slots:
        where = b.raw(f"getelementptr inbounds {element}, ptr {slot}, i64 {lane}", "at")
        scalars.append(b.op(f"load {element}, ptr {where}", dtype, 1, "x"))
    result = scalar_call(b, symbol, tuple(scalars), dtype)
    where = b.raw(f"getelementptr inbounds {element}, ptr {slots[0]}, i64 {lane}", "at")
    b.line(f"store {result.typed}, ptr {where}")
    b.line(f"{after} = add i64 {lane}, 1")
    more = b.op(f"icmp ult i64 {after}, {lanes}", DType.BOOL, 1, "more")
    b.branch_if(more, body, end)
    b.label(end)
    return b.op(f"load {kind}, ptr {slots[0]}, align 64", dtype, lanes, "all")


# --- formulas --------------------------------------------------------------------------------------------------------


def _single(name: str) -> Emit:
    """An intrinsic with the same name or another."""
    return lambda b, a, t: arith.intrinsic(b, name, *a)


def _of_lanes(formula: Callable[[Lanes], Lanes | Value]) -> Emit:
    """A formula of one argument."""

    def emit(b: Builder, a: tuple[Value, ...], t: Target) -> Value:
        found = formula(Lanes(b, a[0]))
        return found.v if isinstance(found, Lanes) else found

    return emit


def _sign(x: Lanes) -> Lanes:
    """1 or -1; zeros are 0, and NaN stays."""
    return x.number(1.0).sign_of(x).where(abs(x).test(">", 0.0), x.where(x.test("!=", x), 0.0))


def _rounded(b: Builder, a: tuple[Value, ...], t: Target) -> Value:
    """Nothing is combined across the fence: a product in front of it is rounded."""
    return arith.intrinsic(b, "arithmetic.fence", a[0])


def _reciprocal(of: str) -> Emit:
    """`1 / f(...)`."""

    def emit(b: Builder, a: tuple[Value, ...], t: Target) -> Value:
        return arith.binary(b, "/", constant(1.0, a[0].dtype, a[0].lanes), emit_call(b, of, a, a[0].dtype, t))

    return emit


def _norm(b: Builder, a: tuple[Value, ...], t: Target) -> Value:
    result = a[0]
    for other in a[1:]:
        result = emit_call(b, "hypot", (result, other), result.dtype, t)
    return result


def _reduce_pi(x: Lanes) -> Lanes:
    """`x` moved by a multiple of 2 into [-1, 1], exactly."""
    return x - (x * 0.5).whole() * 2.0


def _times_pi_sine(rest: Lanes, t: Target) -> Lanes:
    """`sin(pi * rest)` for `rest` within half a unit of 0."""
    angle = rest.to(DType.FLOAT64) * math.pi
    return Lanes(rest.b, emit_call(rest.b, "sin", (angle.v,), DType.FLOAT64, t)).to(rest.v.dtype)


def _sin_pi(b: Builder, a: tuple[Value, ...], t: Target) -> Value:
    x = Lanes(b, a[0])
    rest = _reduce_pi(x)
    size = abs(rest)
    near = (x.number(1.0) - size).where(size.test(">", 0.5), size)
    return _times_pi_sine(near, t).sign_of(x.where(near.test("==", 0.0), rest)).v


def _cos_pi(b: Builder, a: tuple[Value, ...], t: Target) -> Value:
    x = Lanes(b, a[0])
    return _times_pi_sine(x.number(0.5) - abs(_reduce_pi(x)), t).v


def _normcdf(b: Builder, a: tuple[Value, ...], t: Target) -> Value:
    """Half of `erfc(y + d)` for the scaled argument `y` and what its rounding lost: `erfc(y) - 2/sqrt(pi) exp(-y^2) d`."""
    y, lost = scaled_in_halves(Lanes(b, a[0]).clamp(-40.0, 40.0))
    tail = Lanes(b, library_call(b, "erfc", (y.v,)))
    slope = exp(-(y * y)) * (2 / math.sqrt(math.pi))
    return ((tail - slope * lost) * 0.5).v


_FORMULAS: dict[str, Emit] = {
    **{name: _single(name) for name in ("ceil", "floor", "round", "trunc", "sqrt", "copysign", "fma")},
    "abs": _single("fabs"),
    "fabs": _single("fabs"),
    "fmax": _single("maxnum"),
    "fmin": _single("minnum"),
    "fdivide": lambda b, a, t: arith.binary(b, "/", a[0], a[1]),
    "isnan": _of_lanes(lambda x: x.test("!=", x)),
    "isinf": _of_lanes(lambda x: abs(x).test("==", math.inf)),
    "isfinite": _of_lanes(lambda x: abs(x).test("<", math.inf)),
    "sign": _of_lanes(_sign),
    "relu": _of_lanes(lambda x: x.number(0.0).where(x.test("<", 0.0), x)),
    "rounded": _rounded,
    "rsqrt": _reciprocal("sqrt"),
    "rcbrt": _reciprocal("cbrt"),
    "rhypot": _reciprocal("hypot"),
    "norm3d": _norm,
    "norm4d": _norm,
    "rnorm3d": _reciprocal("norm3d"),
    "rnorm4d": _reciprocal("norm4d"),
    "sinpi": _sin_pi,
    "cospi": _cos_pi,
}
