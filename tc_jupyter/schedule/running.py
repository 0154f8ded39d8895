"""Running sums, products and extremes in blocks: their totals first, what is before each block, then all blocks at one time.

    for b: sums(b) = x(b*F) + ... + x(b*F + F - 1)
    for b: before(b) = b == 0 ? start : before(b-1) + sums(b-1)        (along b)
    for b
      for i in the block: Y(i) = (i is the first one ? before(b) : Y(i-1)) + x(i)        (along i)

Source: Blelloch, "Prefix sums and their applications", 1990.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tc_jupyter.program import (
    Binary,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Recurrence,
    Select,
    Unary,
    conjuncts,
    identity_of,
    int64,
    recurrence_of,
    rewrite,
    walk,
)
from tc_jupyter.ranges import Scope, SizeExpr, constant, from_expr, to_expr

from .infer_bound import scope_of
from .orders import moving
from .stage import IterVar, Stage, StageGraph


@dataclass(frozen=True, slots=True)
class Running:
    """`Y(i) = (i is the first one ? start : Y(i-1)) op x(i)` along one index.

    `Y(i) = i is the first one ? y : Y(i-1) op x(i)` is that of `i is the first one ? y : x(i)`, which begins with nothing.

    Attributes:
        axis: that index; `step` is 1 or -1.
        own: the element that is read, `carried` what stands for it with its choice if there is one, `x` the other operand.
    """

    axis: IterVar
    step: int
    operator: str
    carried: Expr
    own: Read
    start: Expr
    x: Expr

    @property
    def extent(self) -> SizeExpr:
        """How many elements there are along the index."""
        return self.axis.extent

    def at(self, count: SizeExpr) -> SizeExpr:
        """The index after so many steps."""
        low, high = self.axis.dom
        return low + count if self.step > 0 else high - 1 - count

    def steps(self) -> SizeExpr:
        """How many steps are before an index."""
        low, high = self.axis.dom
        here = from_expr(IndexVar(self.axis.name))
        return here - low if self.step > 0 else high - 1 - here


def running_of(graph: StageGraph, stage: Stage) -> Running | None:
    """The running operation of a stage; `None` for any other statement, or where data decide what is read."""
    dtype, scope = graph.program.tensor(stage.target).dtype, scope_of(graph)
    statement = stage.statement
    if statement.operator != "=" or len(statement.order) != 1 or statement.left or statement.name != statement.target:
        return None
    ((name, step),) = statement.order
    reads, value = dict.fromkeys(statement.self_reads), statement.value
    if moving(stage) != frozenset((name,)) or len(reads) != 1 or dtype is not dtype.compute:
        return None
    (own,) = reads
    place = [item.name for item in statement.output_indices].index(name)
    back = from_expr(own.indices[place], scope) - from_expr(IndexVar(name))
    data = any(
        isinstance(node, Read) and any(isinstance(part, Read) for index in node.indices for part in walk(index))
        for node in walk(value)
    )
    if back != constant(-step) or data:
        return None
    axis = stage.root(name)
    for carried in (node for node in walk(value) if isinstance(node, Select) and node.then == own):
        if _is_number(carried.otherwise):
            form = recurrence_of(value, carried)
            if form is not None and _is_running(form, own) and _is_behind_first(carried.condition, axis, step, scope):
                return Running(axis, step, form.operator, carried, own, carried.otherwise, form.x)
    return _first_apart(value, own, axis, step, scope)


def _first_apart(value: Expr, own: Read, axis: IterVar, step: int, scope: Scope) -> Running | None:
    """A choice between the first value and a running operation."""
    if not isinstance(value, Select):
        return None
    is_first = _is_first(value.condition, axis, step, scope)
    if not is_first and not _is_behind_first(value.condition, axis, step, scope):
        return None
    first, later = (value.then, value.otherwise) if is_first else (value.otherwise, value.then)
    form = recurrence_of(later, own)
    if form is None or not _is_running(form, own) or any(node == own for node in walk(first)):
        return None
    x = replace(value, otherwise=form.x) if is_first else replace(value, then=form.x)
    return Running(axis, step, form.operator, own, own, identity_of(form.operator, value.dtype), x)


def _is_number(value: Expr) -> bool:
    return isinstance(value.operand if isinstance(value, Unary) else value, Const)


def _is_running(form: Recurrence, own: Read) -> bool:
    """Whether an operation has neither a factor nor a shift, and nothing else of an earlier element."""
    return form.factor is None and form.shift is None and not any(node == own for node in walk(form.x))


def _is_first(condition: Expr, axis: IterVar, step: int, scope: Scope) -> bool:
    """Whether a condition says that there is no element before: `i == 0`."""
    if not isinstance(condition, Binary) or condition.op != "==" or not condition.left.dtype.is_integer:
        return False
    low, high = axis.dom
    e = from_expr(condition.left, scope) - from_expr(condition.right, scope)
    count = from_expr(IndexVar(axis.name)) - low if step > 0 else high - 1 - from_expr(IndexVar(axis.name))
    return e in (count, -count)


def _is_behind_first(condition: Expr, axis: IterVar, step: int, scope: Scope) -> bool:
    """Whether a condition says that there is an element before: `0 <= i - 1 && i - 1 < N`, or `i > 0`."""
    low, high = axis.dom
    here = from_expr(IndexVar(axis.name))
    count = here - low if step > 0 else high - 1 - here
    others = (
        (high - here, high - 1 - here, high + 1 - here) if step > 0 else (here - low, here - low + 1, here - low - 1)
    )
    found = [_above(part, scope) for part in conjuncts(condition)]
    if any(each is None for each in found):
        return False
    first = [e for e in found if e == count - 1]
    return bool(first) and all(e == count - 1 or e in others for e in found)


def _above(test: Expr, scope: Scope) -> SizeExpr | None:
    """A comparison of integers as `e >= 0`."""
    if not isinstance(test, Binary) or not test.left.dtype.is_integer or any(isinstance(n, Cast) for n in walk(test)):
        return None
    e = from_expr(test.left, scope) - from_expr(test.right, scope)
    return {"<": -e - 1, "<=": -e, ">": e - 1, ">=": e}.get(test.op)


def in_block(found: Running, factor: int, before: str, sums: str, others: tuple[str, ...]) -> tuple[Expr, Expr, Expr]:
    """The values of the sums of blocks, of what is before a block, and of the statement itself; block and place are `b` and `r`."""
    block, place = IndexVar("b"), IndexVar("r")
    count = from_expr(block) * factor + from_expr(place)
    at = to_expr(found.at(count))
    x = rewrite(found.x, lambda e: at if isinstance(e, IndexVar) and e.name == found.axis.name else None)
    rest = tuple(IndexVar(name) for name in others)
    dtype = found.carried.dtype
    last = Binary("-", block, int64(1), DType.INT64)
    chained = Binary(found.operator, Read(before, (last, *rest), dtype), Read(sums, (last, *rest), dtype), dtype)
    is_first = Binary("==", block, int64(0), DType.BOOL)
    so_far = Select(is_first, found.start, chained, dtype)
    steps = found.steps()
    number, inside = (Binary(op, to_expr(steps), int64(factor), DType.INT64) for op in ("//", "%"))
    starts = Binary("==", inside, int64(0), DType.BOOL)
    carried = Select(starts, Read(before, (number, *rest), dtype), found.own, dtype)
    return x, so_far, Binary(found.operator, carried, found.x, dtype)


__all__ = ["Running", "in_block", "running_of"]
