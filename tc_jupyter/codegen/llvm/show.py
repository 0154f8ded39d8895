"""Expressions and statements as short text, for the comments of generated code."""

from __future__ import annotations

from typing import assert_never

from tc_jupyter.loops import For, Store
from tc_jupyter.program import Binary, Call, Cast, Const, Expr, IndexVar, Read, Select, Size, Unary, bits

from .polynomial import constant_value

_LEVEL = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "//": 6,
    "%": 6,
}


def show(expr: Expr, level: int = 0) -> str:
    """The expression in the notation of the language; casts are left out."""
    match expr:
        case Const():
            return str(expr.value)
        case Size() | IndexVar():
            return expr.name
        case Read():
            return expr.tensor + (f"[{', '.join(show(index) for index in expr.indices)}]" if expr.indices else "")
        case Unary():
            return expr.op + show(expr.operand, 7)
        case Cast():
            return show(expr.operand, level)
        case Call(function=function, arguments=(left, right)) if function in bits.OPERATORS:
            return f"({show(left, 7)} {bits.OPERATORS[function]} {show(right, 7)})"
        case Call():
            return f"{expr.function}({', '.join(show(argument) for argument in expr.arguments)})"
        case Select():
            text = f"{show(expr.condition, 1)} ? {show(expr.then, 1)} : {show(expr.otherwise)}"
            return f"({text})" if level else text
        case Binary() if expr.op in ("min", "max"):
            return f"{expr.op}({show(expr.left)}, {show(expr.right)})"
        case Binary():
            own = _LEVEL[expr.op]
            text = f"{show(expr.left, own)} {expr.op} {show(expr.right, own + 1)}"
            return f"({text})" if own < level else text
    assert_never(expr)


def show_store(store: Store) -> str:
    """`C[i, j] += A[i, k] * B[k, j]`."""
    target = show(Read(store.buffer, store.indices, store.value.dtype))
    operator = "=" if store.reduce is None else f"{store.reduce}="
    return f"{target} {operator} {show(store.value)}"


def heading(stmt: For) -> str:
    """`for i in 0:N`."""
    low = constant_value(stmt.min)
    end = show(stmt.extent) if low == 0 else f"{show(stmt.min)} + {show(stmt.extent)}"
    return f"for {stmt.var} in {show(stmt.min)}:{end}"
