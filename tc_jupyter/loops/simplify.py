"""Rewrite rules on loops and index expressions; values never change.

Worked example: `for i.outer in 0:1: for i.inner in 0:4: A[4*i.outer + i.inner]` becomes `for i.inner in 0:4: A[i.inner]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from tc_jupyter.program import Binary, Cast, Const, DType, Expr, IndexVar, Select, Unary, int64, rewrite
from tc_jupyter.schedule import GPU_AXES

from .ir import Allocate, Barrier, Block, Check, For, If, Intrinsic, Kernel, Stmt, Store

Rule = Callable[[Expr], Expr | None]


def simplify(kernel: Kernel) -> Kernel:
    """Fold constants, drop loops of one iteration, conditions that are known, and blocks of blocks."""
    return replace(kernel, body=_block(kernel.body, {}))


def simplify_expr(expr: Expr) -> Expr:
    """Apply `RULES` bottom-up."""
    return rewrite(expr, first_rule)


def first_rule(expr: Expr) -> Expr | None:
    """What the first of `RULES` makes of an expression whose operands are simplified."""
    for rule in RULES:
        new = rule(expr)
        if new is not None:
            return new
    return None


# --- expressions -----------------------------------------------------------------------------------------------------


def _fold_integers(expr: Expr) -> Expr | None:
    """Two integer constants -> the result."""
    if not (isinstance(expr, Binary) and isinstance(expr.left, Const) and isinstance(expr.right, Const)):
        return None
    if expr.left.dtype is not DType.INT64:
        return None
    a, b = int(expr.left.value), int(expr.right.value)
    if expr.op in _COMPARE:
        return Const(_COMPARE[expr.op](a, b), DType.BOOL)
    if expr.op in ("//", "%") and b == 0:
        return None
    return int64(_ARITHMETIC[expr.op](a, b)) if expr.op in _ARITHMETIC else None


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": min,
    "max": max,
}


def _is(expr: Expr, value: int) -> bool:
    return isinstance(expr, Const) and expr.dtype is DType.INT64 and expr.value == value


def _neutral(expr: Expr) -> Expr | None:
    """X + 0 -> x, x - 0 -> x, 1 * x -> x, x // 1 -> x, x % 1 -> 0, 0 * x -> 0 (integers only)."""
    if not isinstance(expr, Binary) or expr.dtype is not DType.INT64:
        return None
    left, right = expr.left, expr.right
    match expr.op:
        case "+":
            return right if _is(left, 0) else left if _is(right, 0) else None
        case "-":
            return left if _is(right, 0) else None
        case "*":
            if _is(left, 0) or _is(right, 0):
                return int64(0)
            return right if _is(left, 1) else left if _is(right, 1) else None
        case "//":
            return left if _is(right, 1) else None
        case "%":
            return int64(0) if _is(right, 1) else None
        case "min" | "max":
            return left if left == right else None
        case _:
            return None


def _known_condition(expr: Expr) -> Expr | None:
    """True && x -> x, false || x -> x, !true -> false, true ? a : b -> a."""
    if isinstance(expr, Select) and isinstance(expr.condition, Const):
        return expr.then if expr.condition.value else expr.otherwise
    if isinstance(expr, Unary) and expr.op == "!" and isinstance(expr.operand, Const):
        return Const(not expr.operand.value, DType.BOOL)
    if isinstance(expr, Binary) and expr.op in ("&&", "||") and isinstance(expr.left, Const):
        return expr.right if bool(expr.left.value) == (expr.op == "&&") else expr.left
    return None


def _same_type(expr: Expr) -> Expr | None:
    """A cast to the type that the operand has -> the operand."""
    return expr.operand if isinstance(expr, Cast) and expr.operand.dtype is expr.dtype else None


RULES: tuple[Rule, ...] = (_fold_integers, _neutral, _known_condition, _same_type)


# --- loops -----------------------------------------------------------------------------------------------------------


def _block(block: Block, known: dict[str, Expr]) -> Block:
    body: list[Stmt] = []
    for stmt in block.body:
        new = _statement(stmt, known)
        if isinstance(new, Block) and not new.comment:
            body.extend(new.body)
        elif not isinstance(new, Block) or new.body:
            body.append(new)
    if len(body) == 1 and isinstance(body[0], Block) and not block.comment:
        return body[0]
    return Block(tuple(body), block.comment)


def _statement(stmt: Stmt, known: dict[str, Expr]) -> Stmt:
    def expr(value: Expr) -> Expr:
        return simplify_expr(rewrite(value, lambda e: known.get(e.name) if isinstance(e, IndexVar) else None))

    match stmt:
        case For():
            return _loop(stmt, expr(stmt.min), expr(stmt.extent), known)
        case If():
            condition = expr(stmt.condition)
            if isinstance(condition, Const):
                chosen = stmt.then if condition.value else stmt.otherwise
                return Block(()) if chosen is None else _block(chosen, known)
            otherwise = None if stmt.otherwise is None else _block(stmt.otherwise, known)
            return If(condition, _block(stmt.then, known), otherwise)
        case Store():
            return replace(stmt, indices=tuple(expr(i) for i in stmt.indices), value=expr(stmt.value))
        case Allocate():
            shape = tuple(expr(extent) for extent in stmt.buffer.shape)
            return Allocate(replace(stmt.buffer, shape=shape), _block(stmt.body, known))
        case Check():
            values = tuple(expr(value) for value in stmt.values)
            return replace(stmt, condition=expr(stmt.condition), values=values, body=_block(stmt.body, known))
        case Intrinsic():
            operands = tuple(replace(op, indices=tuple(expr(i) for i in op.indices)) for op in stmt.operands)
            return replace(stmt, operands=operands)
        case Block():
            return _block(stmt, known)
        case Barrier():
            return stmt
    assert_never(stmt)


def _loop(loop: For, low: Expr, extent: Expr, known: dict[str, Expr]) -> Stmt:
    """A loop without iterations disappears; one with a single iteration becomes its body, unless the launch needs it."""
    if isinstance(extent, Const) and int(extent.value) <= 0:
        return Block(())
    if _is(extent, 1) and loop.kind not in GPU_AXES:
        return _block(loop.body, {**known, loop.var: low})
    inner = {name: value for name, value in known.items() if name != loop.var}
    body = _block(loop.body, inner)
    if body is loop.body and low is loop.min and extent is loop.extent:
        return loop
    return replace(loop, min=low, extent=extent, body=body)
