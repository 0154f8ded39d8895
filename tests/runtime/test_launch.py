"""Numbers of a launch, in steps."""

from __future__ import annotations

from hypothesis import strategies as st

from tc_jupyter.program import Binary, Cast, Const, DType, Expr, Select, Size, Unary, int64
from tc_jupyter.runtime.launch import follow, followed, steps_of
from tests.strategies import drawn

SIZES = ("N", "M.stride", "lambda")


def number(expr: Expr, sizes: tuple[int, ...]) -> int:
    return follow(steps_of(expr, SIZES), sizes)


def value(expr: Expr, sizes: tuple[int, ...]) -> int:
    match expr:
        case Const():
            return int(expr.value)
        case Size():
            return sizes[SIZES.index(expr.name)]
        case Cast():
            return value(expr.operand, sizes)
        case Unary():
            return -value(expr.operand, sizes)
        case Select():
            return value(expr.then if value(expr.condition, sizes) else expr.otherwise, sizes)
        case Binary():
            left, right = value(expr.left, sizes), value(expr.right, sizes)
            return {
                "+": lambda: left + right,
                "-": lambda: left - right,
                "*": lambda: left * right,
                "/": lambda: left // right if right else 0,
                "//": lambda: left // right if right else 0,
                "%": lambda: left % right if right else 0,
                "min": lambda: min(left, right),
                "max": lambda: max(left, right),
                "<": lambda: left < right,
                "&&": lambda: bool(left and right),
            }[expr.op]()
    raise TypeError(expr)


def combined(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "min", "max"])
    binary = st.builds(lambda op, a, b: Binary(op, a, b, DType.INT64), operators, inner, inner)
    test = st.builds(lambda a, b: Binary("<", a, b, DType.BOOL), inner, inner)
    both = st.builds(lambda a, b: Binary("&&", a, b, DType.BOOL), test, test)
    choice = st.builds(lambda c, a, b: Select(c, a, b, DType.INT64), test | both, inner, inner)
    return (
        binary
        | choice
        | st.builds(lambda a: Unary("-", a, DType.INT64), inner)
        | st.builds(lambda a: Cast(a, DType.INT64), inner)
    )


LEAVES = st.builds(Size, st.sampled_from(SIZES)) | st.integers(-9, 9).map(int64)


@drawn(50, 200, st.recursive(LEAVES, combined, max_leaves=25), st.tuples(*[st.integers(0, 40)] * 3))
def test_steps_to_a_number(expr, sizes):
    assert number(expr, sizes) == value(expr, sizes)
    assert followed(steps_of(expr, SIZES), len(SIZES))(*sizes) == value(expr, sizes)


def test_what_occurs_again_is_computed_once():
    double: Expr = Size("N")
    for _ in range(60):
        double = Binary("+", double, double, DType.INT64)
    steps = len(steps_of(double, SIZES))
    assert steps == 61
    assert number(double, (3, 0, 0)) == 3 << 60
