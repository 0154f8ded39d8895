"""The comparisons with a loop's variable that every point of the loop asks before anything else.

Comes in: a loop. Goes out: what is asked first at each of its points, in order, as far as nothing that the loop does changes it.
`loops.interpret` asks it once, where the loop begins, and visits the points where it holds alone. That is its own, small rule: the
interpreter is a witness for `loops.points`, which moves conditions for the code generators.

Worked example: `for k in 0:Z: Y[i] += P[i] <= k && k < P[i + 1] && V[k] > 0 ? V[k] : 0` asks `k >= P[i]`, then `k < P[i + 1]`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, Unary, conjuncts, points_of, walk
from tc_jupyter.program.expr import TURNED
from tc_jupyter.program.integers import index_names, reads_elements

from .ir import Block, Check, For, If, Intrinsic, Stmt, Store, walk_statements

ENDS = ("<", "<=", ">", ">=", "==")


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison of the loop's variable with `value`, or a condition `value` without that variable if `op` is empty."""

    op: str
    value: Expr


def asked_first(loop: For) -> tuple[Asked, ...]:
    """What every point of a loop asks before anything else, up to the last comparison with the loop's variable."""
    statements = list(walk_statements(loop.body))
    inner = {stmt.var for stmt in statements if isinstance(stmt, For)}
    changed = {stmt.buffer for stmt in statements if isinstance(stmt, Store)}
    changed |= {read.tensor for stmt in statements if isinstance(stmt, Intrinsic) for read in stmt.operands}
    found: list[Asked] = []
    for condition in _leading(loop.body):
        asked = _asked(condition, loop.var)
        if asked is None or inner & index_names(condition) or _reads(condition, changed):
            break
        found.append(asked)
    while found and not found[-1].op:
        found.pop()
    return tuple(found)


def _leading(stmt: Stmt) -> tuple[Expr, ...]:
    """The conditions without which a statement does nothing, in the order in which they are asked, the first ones of them."""
    match stmt:
        case Block(body=(only,)):
            return _leading(only)
        case If(otherwise=None):
            return (*conjuncts(stmt.condition), *_leading(stmt.then))
        case For() if not reads_elements(stmt.min) and not reads_elements(stmt.extent):
            return _leading(stmt.body)
        case Store(reduce=str(operator)):
            return points_of(stmt.value, operator)[0]
        case Check():
            return _common(_premises(stmt.condition), _leading(stmt.body))
        case _:
            return ()


def _premises(condition: Expr) -> tuple[Expr, ...]:
    """`!a || (!b || c)` as `a` and `b`: where one of them does not hold, a check passes."""
    match condition:
        case Binary(op="||", left=Unary(op="!", operand=premise), right=right):
            return (*conjuncts(premise), *_premises(right))
        case _:
            return ()


def _common(left: tuple[Expr, ...], right: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """What two lists have in common from the beginning on."""
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    return left[:same]


def _asked(condition: Expr, var: str) -> Asked | None:
    if var not in index_names(condition):
        return Asked("", condition)
    if not isinstance(condition, Binary) or condition.op not in ENDS or condition.left.dtype is not DType.INT64:
        return None
    for op, side, other in (
        (condition.op, condition.left, condition.right),
        (TURNED[condition.op], condition.right, condition.left),
    ):
        if side == IndexVar(var) and var not in index_names(other):
            return Asked(op, other)
    return None


def _reads(expr: Expr, tensors: set[str]) -> bool:
    return any(isinstance(node, Read) and node.tensor in tensors for node in walk(expr))


__all__ = ["Asked", "asked_first"]
