"""Expressions on arrays of numbers, with NumPy: floats in double precision, integers in their own type.

Worked example: `OnArrays().of(Binary("+", Const(1, INT32), Const(2, INT32), INT32))` is an array that holds 3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from tc_jupyter.loops.interpret import FUNCTIONS, SAME_NAME
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

Array = npt.NDArray[Any]

OPERATION, FUNCTION, STORED = 2.0, 4.0, 1.0
"""Units by which an operation, a function and a store in 16 bits may be disturbed; a multiple of what comes of it is allowed."""
EXACT = frozenset({
    "abs", "fabs", "relu", "floor", "ceil", "trunc", "round", "rounded", "fmax", "fmin", "min", "max", "copysign", "fmod",
    "remainder", "sign", "logb", "isnan", "isinf", "isfinite",
})  # fmt: skip
_SAME = (
    *SAME_NAME,
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "fdivide", "relu", "nextafter"),
)
ON_ARRAYS: dict[str, Callable[..., Array]] = {
    **{name: FUNCTIONS[name] for name in _SAME},
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rounded": np.positive,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "pow": np.power,
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "fma": lambda a, b, c: a * b + c,
}
"""Functions of `FUNCTIONS` that take arrays; the others are called for one element after another."""
OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "&&": np.logical_and,
    "||": np.logical_or,
}


class OnArrays:
    """Evaluates expressions; who knows what stands for reads, sizes and indices puts that into `known`, or says it in `leaf`."""

    def __init__(self) -> None:
        self.known: dict[Expr, Array] = {}

    def leaf(self, expr: Size | IndexVar | Read) -> Array:
        """The values of what is no operation."""
        raise KeyError(expr)

    def rounded(self, values: Array, dtype: DType, units: float, exact: bool = True) -> Array:
        """The values after a rounding by so many units; `exact`: those that need none stay as they are."""
        del dtype, units, exact
        return values

    def keeps(self, expr: Binary) -> bool:
        """Whether an operation is rounded elsewhere."""
        del expr
        return False

    def of(self, expr: Expr) -> Array:
        """The values of an expression."""
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = self._evaluated(expr)
        return found

    def _evaluated(self, expr: Expr) -> Array:
        match expr:
            case Const():
                return self.rounded(np.full((1, 1, 1), expr.value, numpy_type(expr.dtype)), expr.dtype, 1.0)
            case Size() | IndexVar() | Read():
                return self.leaf(expr)
            case Unary():
                return np.logical_not(self.of(expr.operand)) if expr.op == "!" else np.negative(self.of(expr.operand))
            case Cast():
                return self._cast(self.of(expr.operand), expr.operand.dtype, expr.dtype)
            case Select():
                return np.where(self.of(expr.condition), self.of(expr.then), self.of(expr.otherwise))
            case Binary():
                return self._binary(expr)
            case Call():
                return self._call(expr)
        assert_never(expr)

    def _binary(self, expr: Binary) -> Array:
        left, right = self.of(expr.left), self.of(expr.right)
        divides = expr.op == "/" and expr.dtype.is_float
        operator = np.true_divide if divides else OPERATORS["//" if expr.op == "/" else expr.op]
        result = operator(left, right)
        if expr.op not in "+-*/" or self.keeps(expr):
            return result
        return self.rounded(result, expr.dtype, OPERATION, exact=not divides)

    def _call(self, expr: Call) -> Array:
        arguments = [self.of(each) for each in expr.arguments]
        name = expr.function
        if name in random_numbers.WORDS:
            return random_numbers.word(name, *arguments).astype(np.int64)
        if name in bits.OPERATORS:
            return bits.on_arrays(name, *arguments)
        if name == "popcount":
            return bits.counts(*arguments)
        if name in ("min", "max"):
            return reduce(OPERATORS[name], arguments)
        if name in EXACT and not expr.arguments[0].dtype.is_float and name not in ("abs", "sign", "relu"):
            return arguments[0]
        function = ON_ARRAYS.get(name)
        if function is None:
            shape = np.broadcast_shapes(*(each.shape for each in arguments))
            function = np.frompyfunc(FUNCTIONS[name], len(arguments), 1)
            result = np.asarray(function(*arguments), np.float64).reshape(shape)
        else:
            result = function(*arguments)
        return result if name in EXACT else self.rounded(result, expr.dtype, FUNCTION, exact=False)

    def _cast(self, value: Array, source: DType, target: DType) -> Array:
        if target.is_float:
            units = STORED if target.compute is not target else 1.0
            return self.rounded(value.astype(np.float64), target, units)
        if target is DType.BOOL:
            return value != 0
        if not source.is_float:
            return value.astype(numpy_type(target))
        low, high = target.limits
        whole = np.trunc(np.where(np.isnan(value), 0.0, value))
        # the limits of 64 bits are no doubles: they are put in afterwards
        within = (whole > low) & (whole < high)
        limits = np.where(whole > 0, high, low).astype(numpy_type(target))
        return np.where(within, np.where(within, whole, 0).astype(numpy_type(target)), limits)


def numpy_type(dtype: DType) -> type[Any]:
    """The type of an array that holds such values."""
    return np.float64 if dtype.is_float else np.dtype(dtype.value).type


__all__ = ["FUNCTION", "ON_ARRAYS", "OPERATION", "OPERATORS", "STORED", "Array", "OnArrays", "numpy_type"]
