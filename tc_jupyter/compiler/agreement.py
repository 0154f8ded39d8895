"""Whether two results of a def agree: integers exactly, floats up to the rounding that the order of the arithmetic leaves open.

Comes in: a program with its ranges, the sizes of a call, and how large the elements of its arguments are. Goes out: an `Allowance`
per result, which judges elements. It grows with the number of terms that were summed and with the size of these terms, which
cancellation does not make smaller.

Worked example: `s +=! x(i) * y(i)` over 4096 elements of up to 4, in `float32` (unit `2**-24`): where the sum is 100, another order
may give a result that is `(32 + 4096) * 100 / 2**24` away if all products have one sign, and `(32 + 64) * 4096*16 / 2**24` if they
cancel; both are allowed.

Source: Higham, "Accuracy and Stability of Numerical Algorithms", sections 3.1 and 4.2 (bounds of sums, and their usual size).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, prod, sqrt
from typing import Any, cast

import numpy as np

from tc_jupyter.program import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Program,
    Read,
    Select,
    Size,
    Statement,
    Unary,
    walk,
)
from tc_jupyter.ranges import Ranges
from tc_jupyter.runtime.arrays import ArgumentProblem, host_array
from tc_jupyter.runtime.kernel import root_of

UNIT = {DType.FLOAT16: 2.0**-11, DType.BFLOAT16: 2.0**-8, DType.FLOAT32: 2.0**-24, DType.FLOAT64: 2.0**-53}
"""Largest relative error of one rounding."""
TF32 = 2.0**-11
LEAST = {DType.FLOAT16: 2.0**-14, DType.BFLOAT16: 2.0**-126, DType.FLOAT32: 2.0**-126, DType.FLOAT64: 2.0**-1022}
"""The smallest normal number; smaller ones may become 0."""
OPERATIONS = 32
"""Roundings of a statement besides those of its sum: of functions, products, and of arguments that functions magnify."""
MANY, LANES = 1 << 14, 64
"""Sums of more terms are kept in so many partial sums at least, or combined pairwise."""
MOST = 100.0
"""As much as functions that magnify errors are expected to; beyond it, few of their values are in range."""
_MAGNIFYING = frozenset(["exp", "exp2", "exp10", "expm1", "pow", "sinh", "cosh", "sin", "cos", "tan"])
_BOUNDED = frozenset(["sin", "cos", "sinpi", "cospi", "tanh", "erf", "sigmoid", "normcdf", "sign"])
_SAME = frozenset(
    [
        "abs",
        "fabs",
        "relu",
        "rounded",
        "round",
        "floor",
        "ceil",
        "trunc",
        "fmax",
        "fmin",
        "copysign",
        "fmod",
        "remainder",
    ]
)


@dataclass(frozen=True, slots=True)
class Allowance:
    """By how much an element of one result may differ.

    Attributes:
        unit: relative error of one rounding of the accumulators.
        rounded: relative error of the result as it is stored.
        stored: the same of what is stored on the way in fewer bits than it is computed in; 0 if nothing is.
        terms: roundings that may all go in one direction.
        steps: the same where they go in all directions, as those of terms that cancel do.
        size: of the terms that are added up on the way; 0 if nothing cancels, `inf` if it is not known.
        kept: the same of those terms that were made of what was stored on the way.
        least: of what may become 0.
    """

    unit: float
    rounded: float
    stored: float
    terms: float
    steps: float
    size: float = inf
    kept: float = inf
    least: float = 0.0

    def accepts(self, expected: Any, found: Any) -> bool:
        """Whether the elements of two arrays of one shape agree; NaN and infinities must stand at the same places."""
        first, second = np.asarray(expected, np.float64), np.asarray(found, np.float64)
        usual = np.isfinite(first) & np.isfinite(second)
        if not np.array_equal(first[~usual], second[~usual], equal_nan=True):
            return False
        first, second = first[usual], second[usual]
        # where terms cancel, those that are not known are as large as the largest result
        largest = float(np.max(np.abs(first), initial=0.0)) if self.size else 0.0
        relative = self.unit * (OPERATIONS + self.terms) + 4 * self.stored
        size, kept = (each if isfinite(each) else 0.0 for each in (self.size, self.kept))
        spread = self.unit * (OPERATIONS + self.steps) * size + self.stored * kept
        absolute = max(relative * largest, spread) + 2 * self.least
        return bool(np.all(np.abs(first - second) <= (relative + 4 * self.rounded) * np.abs(first) + absolute))


def _narrowed(dtype: DType) -> float:
    """Relative error of storing what is computed in more bits than this type has."""
    return UNIT[dtype] if dtype.is_float and dtype.compute is not dtype else 0.0


def usual(dtype: DType) -> Allowance:
    """What is allowed where nothing is known but the element type."""
    return Allowance(UNIT[dtype.compute], UNIT[dtype], _narrowed(dtype), MANY, sqrt(MANY), inf, inf, LEAST[dtype])


def allowances(
    program: Program, ranges: Ranges, sizes: Mapping[str, int], arguments: Mapping[str, float], tf32: bool = False
) -> tuple[Allowance, ...]:
    """One per result.

    Args:
        sizes: of sizes, integer scalars and computed extents, by name.
        arguments: the absolute value of the largest element of every parameter.
        tf32: products of `float32` may be rounded before.
    """
    sums = _Sums(program, ranges, sizes, arguments, tf32)
    for statement in program.statements:
        sums.add(statement)
    return tuple(sums.of(name) for name in program.results)


def largest(value: Any) -> float:
    """The absolute value of the largest element of an argument, infinities left out."""
    array = np.asarray(host_array(value) if getattr(value, "ndim", 0) else value)
    array = array[
        (..., *[slice(None) if stride else slice(1) for stride in array.strides])
    ]  # what is repeated counts once
    if array.dtype.kind not in "fiub":
        array = array.astype(np.float32)
    if array.dtype.kind != "f":
        return float(max(abs(int(array.max())), abs(int(array.min())))) if array.size else 0.0
    numbers = np.abs(array[np.isfinite(array)])
    return float(numbers.max()) if numbers.size else 0.0


def close(expected: Any, found: Any, allowed: Sequence[Allowance] = ()) -> bool:
    """Whether two results agree: arrays of any library, or tuples of them; `allowed` is for the results in order."""
    if isinstance(expected, tuple):
        several = cast("tuple[Any, ...]", expected)
        if not isinstance(found, (tuple, list)) or len(cast("Sequence[Any]", found)) != len(several):
            return False
        each = [allowed[k : k + 1] for k in range(len(several))]
        return all(map(close, several, cast("Sequence[Any]", found), each))
    try:
        first, second = (np.asarray(host_array(value)) for value in (expected, found))
        if first.shape != second.shape:
            return False
        if first.dtype.kind in "iub":
            return bool(np.array_equal(first, second))
        return (allowed[0] if allowed else usual(DType(first.dtype.name))).accepts(first, second)
    except (ArgumentProblem, TypeError, ValueError):
        return False


class _Sums:
    """What is known of the tensors that were written, by their storage."""

    def __init__(
        self,
        program: Program,
        ranges: Ranges,
        sizes: Mapping[str, int],
        arguments: Mapping[str, float],
        tf32: bool,
    ) -> None:
        self.program, self.ranges, self.sizes, self.tf32 = program, ranges, sizes, tf32
        self.known: dict[str, Allowance] = {}
        self.sized: dict[str, float] = dict(arguments)
        self.indices: dict[str, float] = {}

    def of(self, name: str) -> Allowance:
        """The allowance of a result."""
        dtype = self.program.tensor(name).dtype
        found = self.known.get(root_of(self.program, name))
        if found is None or not dtype.is_float:
            return Allowance(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        return replace(found, least=LEAST[dtype])

    def add(self, statement: Statement) -> None:
        """Learn from one statement."""
        numbers = {
            r.index: (r.lower.evaluate(self.sizes), r.upper.evaluate(self.sizes))
            for r in self.ranges.indices[statement.name]
            if r.lower is not None and r.upper is not None
        }
        self.indices = {name: float(max(abs(low), abs(high - 1))) for name, (low, high) in numbers.items()}
        own = [numbers[r.name] for r in statement.reduction_indices if r.name in numbers]
        count = prod(max(0, high - low) for low, high in own)
        root = root_of(self.program, statement.target)
        dtype = self.program.tensor(statement.target).dtype
        size = self._combined(statement, self.size(statement.value), count)
        if root in self.sized:
            size = _updated(statement.operator, self.sized[root], size)
        self.sized[root] = _of_type(size, dtype)
        if dtype.is_float:
            self.known[root] = self._allowance(statement, dtype, count, size, self.known.get(root))

    def _allowance(
        self, statement: Statement, dtype: DType, count: int, size: float, before: Allowance | None
    ) -> Allowance:
        adds = statement.operator in ("+", "*", "fold")
        terms = float(count) if adds else 0.0
        terms = max(min(terms, MANY), terms / LANES)
        read = [self.known.get(root_of(self.program, name)) for name in self._computed(statement)]
        earlier = [each for each in (*read, before) if each is not None]
        unit = UNIT[dtype.compute]
        if self.tf32 and dtype is DType.FLOAT32 and statement.operator == "+":
            unit, terms = max(unit, TF32), min(terms, 1.0)
        by = self._magnified(statement.value)
        cancels = statement.operator == "+" or any(
            isinstance(node, Binary) and node.op in "+-" and node.dtype.is_float for node in walk(statement.value)
        )
        casts = (_narrowed(node.dtype) for node in walk(statement.value) if isinstance(node, Cast))
        stored = max(
            [
                0.0,
                *casts,
                *(each.stored for each in earlier),
                *(each.rounded for each in earlier if each.rounded > each.unit),
            ]
        )
        return Allowance(
            max([unit, *(each.unit for each in earlier)]),
            UNIT[dtype],
            stored,
            terms + OPERATIONS + by * max((each.terms for each in earlier), default=1.0),
            sqrt(terms) + OPERATIONS + by * max((each.steps for each in earlier), default=1.0),
            size if cancels or any(each.size for each in earlier) else 0.0,
            size if stored and (cancels or any(each.kept for each in earlier)) else 0.0,
        )

    def _computed(self, statement: Statement) -> tuple[str, ...]:
        return tuple(name for name in statement.tensors_read() if name not in self.program.parameters)

    def _combined(self, statement: Statement, size: float, count: int) -> float:
        """The size of what is combined from `count` values."""
        match statement.operator:
            case "+":
                return size * max(1, count) if size else 0.0
            case "*":
                return size if size <= 1 or count <= 1 else inf
            case "fold":
                return inf
            case _:
                return size

    def size(self, expr: Expr) -> float:
        """How large a value may be, in absolute value; `inf` where its operands do not tell."""
        return _of_type(self._exact_size(expr), expr.dtype, _may_be_negative(expr))

    def _exact_size(self, expr: Expr) -> float:
        """The same of a number that no type limits."""
        match expr:
            case Const():
                return abs(float(expr.value))
            case Size():
                return float(abs(self.sizes[expr.name])) if expr.name in self.sizes else inf
            case IndexVar():
                return self.indices.get(expr.name, inf)
            case Read():
                return self.sized.get(root_of(self.program, expr.tensor), inf)
            case Unary() | Cast():
                return self.size(expr.operand)
            case Select():
                return max(self.size(expr.then), self.size(expr.otherwise))
            case Binary() if expr.op in COMPARISONS or expr.op in LOGICAL:
                return 1.0
            case Binary():
                return self._binary(expr, self.size(expr.left), self.size(expr.right))
            case Call():
                if expr.function in _BOUNDED:
                    return 1.0
                if expr.function in _SAME:
                    return max(1.0, *(self.size(each) for each in expr.arguments))
                if expr.function == "sqrt":
                    return sqrt(self.size(expr.arguments[0]))
                return inf
            case _:
                return inf

    def _binary(self, expr: Binary, left: float, right: float) -> float:
        match expr.op:
            case "+" | "-":
                return left + right
            case "*":
                return left * right if left and right else 0.0
            case "/" | "//":
                divisor = self._number(expr.right)
                return left / abs(divisor) if divisor else inf
            case "%":
                return right
            case _:
                return max(left, right)

    def _number(self, expr: Expr) -> float | None:
        """The value of an expression over sizes, if it is a plain one."""
        match expr:
            case Const():
                return float(expr.value)
            case Size():
                return self.sizes.get(expr.name)
            case Cast():
                return self._number(expr.operand)
            case Binary(op="+" | "-" | "*"):
                left, right = self._number(expr.left), self._number(expr.right)
                if left is None or right is None:
                    return None
                return left * right if expr.op == "*" else left + right if expr.op == "+" else left - right
            case _:
                return None

    def _magnified(self, expr: Expr) -> float:
        """By how much functions magnify the relative errors of their arguments: `exp(x)` by `x`, `pow(x, y)` by `y`."""
        calls = (node for node in walk(expr) if isinstance(node, Call) and node.function in _MAGNIFYING)
        return max((min(max(1.0, self.size(call.arguments[-1])), MOST) for call in calls), default=1.0)


def _updated(operator: str, before: float, size: float) -> float:
    """The size of elements that a later statement combines with others."""
    match operator:
        case "+":
            return before + size
        case "*":
            return before * size if before and size else 0.0
        case _:
            return max(before, size)


def _of_type(size: float, dtype: DType, may_be_negative: bool = False) -> float:
    """An integer that may leave its type wraps around, and is then as large as the type has them."""
    if not dtype.is_integer:
        return size
    low, high = dtype.limits
    leaves = size > high or (low == 0 and may_be_negative)
    return float(max(-low, high)) if leaves else size


def _may_be_negative(expr: Expr) -> bool:
    """Whether the number before it wraps may be below 0, where the parts have the type that they have."""
    match expr:
        case Cast():
            return expr.operand.dtype.is_signed or expr.operand.dtype.is_float
        case Unary() | Binary():
            return expr.op == "-"
        case _:
            return False
