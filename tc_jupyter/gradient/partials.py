"""The derivative of a value by what it reads, and by each argument of a function.

Worked example: in `sin(X(i)) * W(i)` the factor of `X(i)` is `cos(X(i)) * W(i)`, and that of `W(i)` is `sin(X(i))`.

Derivatives where there is none: `abs` has 0 at 0; of two equal operands of `min` and `max` a constant one wins, else each has half;
a NaN operand takes all. Conditions, indices and integers have none. So does PyTorch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import assert_never

from tc_jupyter.diagnostics.work import spend
from tc_jupyter.program import (
    FUNCTIONS,
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
    negated,
)

from .arithmetic import called, cast, compared, guarded, is_number, minus, negative, number, over, plus, times

Active = Callable[[Read], bool]
STEPS_PER_NODE = 8
MOST_TERMS = 16
"""Of one sum: the text of a long one would have too many levels."""
_ROOT_PI, _LN2, _LN10 = math.sqrt(math.pi), math.log(2), math.log(10)
_ROOT_2PI = math.sqrt(2 * math.pi)


@dataclass(frozen=True, slots=True)
class Part:
    """What one read adds: under conditions, in the order in which they are evaluated, a value."""

    read: Read
    conditions: tuple[Expr, ...]
    value: Expr


class Underivable(Exception):
    """A function without a derivative in the language."""


def parts(value: Expr, bar: Expr, active: Active) -> list[Part]:
    """What each active read of a value gets of the derivative `bar` of the value; equal reads once, or in sums of some terms."""
    found: dict[tuple[Read, tuple[Expr, ...]], list[Expr]] = {}
    for part in _parts(value, bar, (), active):
        found.setdefault((part.read, part.conditions), []).append(part.value)
    sums = (
        Part(read, conditions, reduce(plus, values[start : start + MOST_TERMS]))
        for (read, conditions), values in found.items()
        for start in range(0, len(values), MOST_TERMS)
    )
    return [part for part in sums if not is_number(part.value, 0)]


def depends(expr: Expr, active: Active) -> bool:
    """Whether a value changes with an active read."""
    match expr:
        case Const() | Size() | IndexVar():
            return False
        case Read():
            return active(expr)
        case Unary() | Cast():
            return expr.dtype.is_float and depends(expr.operand, active)
        case Binary():
            return expr.dtype.is_float and (depends(expr.left, active) or depends(expr.right, active))
        case Select():
            return expr.dtype.is_float and (depends(expr.then, active) or depends(expr.otherwise, active))
        case Call():
            return expr.dtype.is_float and any(depends(argument, active) for argument in expr.arguments)
    assert_never(expr)


def _parts(expr: Expr, bar: Expr, conditions: tuple[Expr, ...], active: Active) -> Iterator[Part]:
    spend(STEPS_PER_NODE)
    if is_number(bar, 0) or not depends(expr, active):
        return
    match expr:
        case Const() | Size() | IndexVar():
            return
        case Read():
            yield Part(expr, conditions, bar)
        case Cast():
            yield from _parts(expr.operand, cast(bar, expr.operand.dtype.compute), conditions, active)
        case Select():
            yield from _parts(expr.then, bar, (*conditions, expr.condition), active)
            yield from _parts(expr.otherwise, bar, (*conditions, negated(expr.condition)), active)
        case Unary() | Binary() | Call():
            for operand, tests, factor in factors(expr, active):
                yield from _parts(operand, factor(bar), (*conditions, *tests), active)
        case _:
            assert_never(expr)


def tangent(expr: Expr, of: Callable[[Read], Expr | None], active: Active) -> Expr:
    """The derivative of a value along those of its reads, which `of` names."""
    spend(STEPS_PER_NODE)
    zero = number(0, expr.dtype.compute)
    if not depends(expr, active):
        return zero
    match expr:
        case Const() | Size() | IndexVar():
            return zero
        case Read():
            found = of(expr)
            return zero if found is None else found
        case Cast():
            return cast(tangent(expr.operand, of, active), expr.dtype.compute)
        case Select():
            then, otherwise = tangent(expr.then, of, active), tangent(expr.otherwise, of, active)
            return Select(expr.condition, then, otherwise, expr.dtype)
        case Unary() | Binary() | Call():
            total: Expr = zero
            for operand, tests, factor in factors(expr, active):
                total = plus(total, guarded(tests, factor(tangent(operand, of, active))))
            return total
    assert_never(expr)


Factor = tuple[Expr, tuple[Expr, ...], Callable[[Expr], Expr]]
"""An operand, the conditions under which it counts, and what it makes of the derivative of the whole."""


def factors(expr: Unary | Binary | Call, active: Active) -> Iterator[Factor]:
    """The operands that a derivative goes into."""
    match expr:
        case Unary():
            yield expr.operand, (), negative
        case Binary():
            yield from _of_operator(expr, active)
        case Call():
            yield from _of_call(expr, active)
        case _:
            assert_never(expr)


def _of_operator(expr: Binary, active: Active) -> Iterator[Factor]:
    left, right = expr.left, expr.right
    match expr.op:
        case "+":
            yield left, (), _same
            yield right, (), _same
        case "-":
            yield left, (), _same
            yield right, (), negative
        case "*":
            yield from _of_product(expr, active)
        case "/":
            yield left, (), lambda bar: over(bar, right)
            yield right, (), lambda bar: negative(times(over(bar, right), expr))
        case "%":
            yield left, (), _same
            yield right, (), lambda bar: negative(times(bar, called("floor", over(left, right))))
        case "min" | "max":
            yield from _of_extreme(expr.op, left, right, (), active)
        case _:
            return


def _of_product(expr: Binary, active: Active) -> Iterator[Factor]:
    """The operands; equal ones of a chain at once, as in `s*s*s`: a derivative is written out for each place that it goes to."""
    counts = Counter(_operands_of_product(expr))
    if all(count == 1 or not depends(own, active) for own, count in counts.items()):
        yield expr.left, (), lambda bar: times(bar, expr.right)
        yield expr.right, (), lambda bar: times(bar, expr.left)
        return
    for own, count in counts.items():
        others = [each for each, places in counts.items() for _ in range(places - (each is own))]
        yield own, (), partial(_of_equal_operands, number(count, own.dtype), others)


def _of_equal_operands(count: Expr, others: list[Expr], bar: Expr) -> Expr:
    return times(count, reduce(times, others, bar))


def _operands_of_product(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Binary) and expr.op == "*":
        yield from _operands_of_product(expr.left)
        yield from _operands_of_product(expr.right)
    else:
        yield expr


def _of_extreme(op: str, left: Expr, right: Expr, needs: tuple[Expr, ...], active: Active) -> Iterator[Factor]:
    """`max(a, b)`: `a` counts unless it is smaller, with half the weight where both are equal; nothing is smaller than NaN."""
    worse = "<" if op == "max" else ">"
    shared = depends(left, active) and depends(right, active)
    for own, other in ((left, right), (right, left)):
        if shared:
            loses = Unary("!", compared(worse, own, other), DType.BOOL)
            half = number(0.5, own.dtype)
            weight = Select(compared("==", own, other), half, number(1, own.dtype), own.dtype)
            yield own, (*needs, loses), lambda bar, weight=weight: times(bar, weight)
        else:
            loses = Unary("!", compared(f"{worse}=", own, other), DType.BOOL)
            yield own, (*needs, loses), _same


def _same(bar: Expr) -> Expr:
    return bar


def _of_call(expr: Call, active: Active) -> Iterator[Factor]:
    name, arguments = expr.function, expr.arguments
    if name in _ONE:
        slope = _ONE[name](arguments[0], expr)
        yield arguments[0], (), lambda bar: times(bar, slope)
    elif name in ("rounded", "nextafter"):
        yield arguments[0], (), _same
    elif name in _STEPS:
        return
    elif name == "relu":
        zero = number(0, expr.dtype)
        yield arguments[0], (Unary("!", compared("<=", arguments[0], zero), DType.BOOL),), _same
    elif name in ("fmin", "fmax"):
        a, b = arguments
        for own, other in ((a, b), (b, a)):
            known = Unary("!", called_test("isnan", own), DType.BOOL)
            yield from (each for each in _of_extreme(name[1:], own, other, (known,), active) if each[0] is own)
    elif name == "fdim":
        a, b = arguments
        above = Unary("!", compared("<=", a, b), DType.BOOL)
        yield a, (above,), _same
        yield b, (above,), negative
    elif name in _MANY:
        for argument, slope in zip(arguments, _MANY[name](expr, *arguments), strict=True):
            if slope is not None:
                yield argument, (), lambda bar, slope=slope: times(bar, slope)
    else:
        raise Underivable(name)


def called_test(function: str, x: Expr) -> Expr:
    """`isnan(x)` and the like."""
    return Call(function, (x,), DType.BOOL)


_STEPS = frozenset({"sign", "ceil", "floor", "round", "trunc", "logb", "isnan", "isinf", "isfinite", "popcount"})
"""Functions that are constant between jumps."""


CHEAP_SLOPES = _STEPS | {"abs", "fabs", "copysign", "fdim", "fma", "fmax", "fmin", "nextafter", "relu", "rounded"}
"""Functions whose derivative is a choice of numbers, or of what is there."""
SLOPES_OF_VALUES = frozenset({"exp", "exp2", "exp10", "tanh", "tan", "sigmoid"})
"""Functions whose derivative follows from the value by products."""


def _scaled(value: float, x: Expr) -> Expr:
    return times(number(value, x.dtype), x)


def _square(x: Expr) -> Expr:
    return times(x, x)


def _one(x: Expr) -> Expr:
    return number(1, x.dtype)


def _j1_slope(x: Expr, y: Expr, zero: str, sign: int) -> Expr:
    """`j0(x) - j1(x)/x`, which is 1/2 at 0."""
    quotient = Select(compared("==", x, number(0, x.dtype)), number(0.5, x.dtype), over(y, x), x.dtype)
    return minus(called(zero, x), quotient) if sign else called(zero, x)


def _digamma(x: Expr) -> Expr:
    """The derivative of `lgamma`, where the language has it."""
    if "digamma" not in FUNCTIONS:
        raise Underivable("lgamma")
    return called("digamma", x)


_ONE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "acos": lambda x, y: negative(called("rsqrt", minus(_one(x), _square(x)))),
    "acosh": lambda x, y: called("rsqrt", minus(_square(x), _one(x))),
    "asin": lambda x, y: called("rsqrt", minus(_one(x), _square(x))),
    "asinh": lambda x, y: called("rsqrt", plus(_square(x), _one(x))),
    "atan": lambda x, y: over(_one(x), plus(_square(x), _one(x))),
    "atanh": lambda x, y: over(_one(x), minus(_one(x), _square(x))),
    "cos": lambda x, y: negative(called("sin", x)),
    "cosh": lambda x, y: called("sinh", x),
    "cospi": lambda x, y: _scaled(-math.pi, called("sinpi", x)),
    "sin": lambda x, y: called("cos", x),
    "sinh": lambda x, y: called("cosh", x),
    "sinpi": lambda x, y: _scaled(math.pi, called("cospi", x)),
    "tan": lambda x, y: plus(_one(x), _square(y)),
    "tanh": lambda x, y: minus(_one(x), _square(y)),
    "exp": lambda x, y: y,
    "exp2": lambda x, y: _scaled(_LN2, y),
    "exp10": lambda x, y: _scaled(_LN10, y),
    "expm1": lambda x, y: called("exp", x),
    "log": lambda x, y: over(_one(x), x),
    "log2": lambda x, y: over(number(1 / _LN2, x.dtype), x),
    "log10": lambda x, y: over(number(1 / _LN10, x.dtype), x),
    "log1p": lambda x, y: over(_one(x), plus(x, _one(x))),
    "sqrt": lambda x, y: over(number(0.5, x.dtype), y),
    "rsqrt": lambda x, y: over(_scaled(-0.5, y), x),
    "cbrt": lambda x, y: over(number(1 / 3, x.dtype), _square(y)),
    "rcbrt": lambda x, y: over(_scaled(-1 / 3, y), x),
    "erf": lambda x, y: _scaled(2 / _ROOT_PI, called("exp", negative(_square(x)))),
    "erfc": lambda x, y: _scaled(-2 / _ROOT_PI, called("exp", negative(_square(x)))),
    "erfcx": lambda x, y: minus(_scaled(2, times(x, y)), number(2 / _ROOT_PI, x.dtype)),
    "erfinv": lambda x, y: _scaled(_ROOT_PI / 2, called("exp", _square(y))),
    "erfcinv": lambda x, y: _scaled(-_ROOT_PI / 2, called("exp", _square(y))),
    "normcdf": lambda x, y: _scaled(1 / _ROOT_2PI, called("exp", _scaled(-0.5, _square(x)))),
    "normcdfinv": lambda x, y: _scaled(_ROOT_2PI, called("exp", _scaled(0.5, _square(y)))),
    "lgamma": lambda x, y: _digamma(x),
    "digamma": lambda x, y: called("polygamma", _one(x), x),
    "tgamma": lambda x, y: times(y, _digamma(x)),
    "j0": lambda x, y: negative(called("j1", x)),
    "j1": lambda x, y: _j1_slope(x, y, "j0", 1),
    "y0": lambda x, y: negative(called("y1", x)),
    "y1": lambda x, y: minus(called("y0", x), over(y, x)),
    "cyl_bessel_i0": lambda x, y: called("cyl_bessel_i1", x),
    "cyl_bessel_i1": lambda x, y: _j1_slope(x, y, "cyl_bessel_i0", 1),
    "fabs": lambda x, y: called("sign", x),
    "abs": lambda x, y: called("sign", x),
    "sigmoid": lambda x, y: times(y, minus(_one(x), y)),
}
"""The derivative of functions of one argument: of the argument and the value."""


def _of_pow(y: Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """`b * a^(b - 1)`, which is 0 for a power of 0, and `a^b * log(a)`, which is 0 at 0 for powers from 0 on."""
    zero = number(0, a.dtype)
    less = minus(b, _one(b)) if not isinstance(b, Const) else number(b.value - 1, b.dtype)
    by_base: Expr = times(b, called("pow", a, less))
    if isinstance(b, Const):
        by_base = {0.0: zero, 1.0: _one(a), 2.0: _scaled(2, a)}.get(float(b.value), by_base)
    else:
        by_base = Select(compared("==", b, zero), zero, by_base, a.dtype)
    flat = Binary("&&", compared("==", a, zero), compared(">=", b, zero), DType.BOOL)
    return by_base, Select(flat, zero, times(y, called("log", a)), a.dtype)


def _of_norm(y: Expr, *arguments: Expr) -> tuple[Expr, ...]:
    """`x / norm`, and 0 at the origin."""
    zero = number(0, y.dtype)
    return tuple(Select(compared("==", y, zero), zero, over(x, y), y.dtype) for x in arguments)


def _of_reciprocal_norm(y: Expr, *arguments: Expr) -> tuple[Expr, ...]:
    return tuple(negative(times(x, times(y, _square(y)))) for x in arguments)


def _of_angle(y: Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    del y
    square = plus(_square(a), _square(b))
    return over(b, square), negative(over(a, square))


_MANY: dict[str, Callable[..., tuple[Expr | None, ...]]] = {
    "atan2": _of_angle,
    "copysign": lambda y, a, b: (times(called("sign", a), called("copysign", _one(b), b)), None),
    "fdivide": lambda y, a, b: (over(_one(b), b), negative(over(y, b))),
    "fmod": lambda y, a, b: (_one(a), negative(called("trunc", over(a, b)))),
    "remainder": lambda y, a, b: (_one(a), over(minus(y, a), b)),
    "hypot": _of_norm,
    "rhypot": _of_reciprocal_norm,
    "norm3d": _of_norm,
    "norm4d": _of_norm,
    "rnorm3d": _of_reciprocal_norm,
    "rnorm4d": _of_reciprocal_norm,
    "polygamma": lambda y, a, b: (None, called("polygamma", plus(a, _one(a)), b)),
    "pow": _of_pow,
    "fma": lambda y, a, b, c: (b, a, _one(c)),
}
"""The derivative by each argument, `None` for none: of the value and the arguments."""
