"""Small functions that several layers of the specialiser share.

Worked example: `expr_text` of `N - 1` is `"N - 1"`; `read` of a 16-bit float is converted to `float32` at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from tc_jupyter.diagnostics import NO_SPAN, Span
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_tree import (
    If,
    Loop,
    SacExpression,
    SacParam,
    SetExpr,
    Statement,
    WithLoop,
    own_names,
    sac_children,
    statement_expressions,
)
from tc_jupyter.syntax.tree import Name

from .expr import Binary, Call, Cast, Const, DType, Expr, IndexVar, Read, Select, Size, Unary
from .program import Statement as ProgramStatement
from .sac_bounds import fill_pending
from .sac_emit import Draft, identity
from .sac_ranks import Rank
from .sac_signature import fits_shape, specificity
from .sac_sizes import ZERO, Interval, fold, maximum, minimum, same
from .sac_sizes import value as number_of
from .sac_values import Value, alone, narrows, reads_of


def read(tensor: str, indices: tuple[Expr, ...], dtype: DType, span: Span = NO_SPAN) -> Expr:
    """An element of a tensor in the type that arithmetic uses."""
    node = Read(tensor, indices, dtype, span)
    return node if dtype.compute is dtype else Cast(node, dtype.compute, span)


def negative(expr: Expr) -> Expr:
    """`-expr`; of a literal it is one, too."""
    if isinstance(expr, Const) and (expr.dtype.is_float or expr.dtype.limits[0] <= -expr.value <= expr.dtype.limits[1]):
        return replace(expr, value=-expr.value)
    return fold(Unary("-", expr, expr.dtype))


def is_literal(expr: Expr | None) -> TypeGuard[Const]:
    """Whether a number stands in the text: what is computed of numbers has no place there."""
    return isinstance(expr, Const) and expr.span != NO_SPAN


def still_wide(found: Expr, operands: Iterable[Expr], span: Span) -> Expr:
    """What is computed of a literal beyond `int` counts as one, too: as `a * 3000000000`, so `a * (3000000000 + 1)` is a `long`."""
    wide = any(is_literal(e) and e.dtype is DType.INT64 and not -(1 << 31) <= e.value < 1 << 31 for e in operands)
    return replace(found, span=span) if wide and isinstance(found, Const) else found


def is_zero_like(content: Expr, operator: str) -> bool:
    """Whether a neutral element is the identity of the operator itself."""
    return isinstance(content, Const) and content == identity(operator, content.dtype)


def chained(op: str, items: list[Expr]) -> Expr:
    """Items combined from left to right."""
    result = items[0]
    for item in items[1:]:
        result = fold(Binary(op, result, item, item.dtype))
    return result


def item_or_single(items: tuple[Expr, ...] | None, single: Expr | None, k: int) -> Expr:
    """Item `k`, or the only one."""
    if items is not None:
        return items[k]
    assert single is not None
    return single


def component_names(name: str, length: int) -> list[str]:
    """What the components of an index vector are called: `iv0` and `iv1`, and the only one of it as the vector, `iv`."""
    return [name] if length == 1 else [f"{name}{k}" for k in range(length)]


@dataclass(frozen=True, slots=True)
class Uses:
    """How often a variable is read, and how often where its value calls functions: inside two loops a read counts as two."""

    reads: int = 0
    called: int = 0

    def __add__(self, other: Uses) -> Uses:
        return Uses(self.reads + other.reads, self.called + other.called)

    def __sub__(self, other: Uses) -> Uses:
        return Uses(self.reads - other.reads, self.called - other.called)


def count_uses(nodes: Iterable[SacExpression]) -> dict[str, Uses]:
    """How often each name is read."""
    found: dict[str, Uses] = {}
    stack = [(node, 0) for node in nodes]
    while stack:
        current, loops = stack.pop()
        if isinstance(current, Name):
            found[current.name] = found.get(current.name, Uses()) + Uses(1, 2 if loops > 1 else 1)
        inner = loops + isinstance(current, SetExpr | WithLoop)
        stack += [(child, inner) for child in sac_children(current)]
    return found


def assigned_first(statements: Iterable[Statement], name: str) -> bool | None:
    """Whether statements assign a variable before any of them reads it; `None` where they do neither for sure."""
    for statement in statements:
        match statement:
            case If():
                ways = [assigned_first(each, name) for each in (statement.then, statement.otherwise)]
                found = None if None in ways and False not in ways else all(ways)
                found = False if name in count_uses((statement.condition,)) else found
            case Loop():
                found = assigned_first(statement.start, name)
                inside = False if name in count_uses((statement.condition,)) else assigned_first(statement.body, name)
                found = False if found is None and inside is False else found
            case _:
                read = name in count_uses(statement_expressions((statement,)))
                found = False if read else True if name in {each.name for each in own_names(statement)} else None
        if found is not None:
            return found
    return None


def rank_of(found: Value) -> Rank:
    """What the search for index lengths needs of a value."""
    return Rank(found.rank, number_of(found.shape[0]) if found.rank == 1 else None)


def accepts(param: SacParam, operand: Value) -> bool:
    """Whether a parameter takes a value as it is."""
    type_ = param.type
    if type_ is None:
        return False
    dtype = DType(BASES[type_.base])
    if operand.kind is not dtype and (
        isinstance(operand.kind, DType) or narrows(operand.kind, dtype) or dtype is DType.BOOL
    ):
        return False
    return fits_shape(type_, operand.rank, tuple(number_of(e) for e in operand.shape))


def closeness(param: SacParam, operand: Value) -> int:
    """How well a parameter fits: shape first, then the type that a weak value would have alone."""
    type_ = param.type
    assert type_ is not None
    return 2 * specificity(type_) + (DType(BASES[type_.base]) is alone(operand.kind))


def located(expr: Expr, span: Span) -> Expr:
    """A read with the place of its selection."""
    return replace(expr, span=span) if isinstance(expr, Read) else expr


def several(count: int, word: str, many: str | None = None) -> str:
    """`1 axis`, `2 axes`."""
    return f"{count} {word if count == 1 else many or word + 's'}"


def with_bounds_filled(found: Value, solved: Mapping[str, Expr]) -> Value:
    """A value with solved bounds in place of open ones."""
    if not solved:
        return found
    done: dict[str, Expr] = {}
    for name, limit in solved.items():
        done[name] = fill_pending(limit, done)
    pieces = found.pieces
    if pieces is not None:
        pieces = tuple(
            replace(
                p,
                expr=fill_pending(p.expr, done),
                box=tuple((fill_pending(a, done), fill_pending(b, done)) for a, b in p.box),
            )
            for p in pieces
        )
    return replace(
        found,
        shape=tuple(fill_pending(extent, done) for extent in found.shape),
        expr=None if found.expr is None else fill_pending(found.expr, done),
        items=None if found.items is None else tuple(fill_pending(item, done) for item in found.items),
        pieces=pieces,
    )


def filled_draft(draft: Draft | ProgramStatement, done: Mapping[str, Expr]) -> Draft | ProgramStatement:
    """A draft, or a statement of a function of another cell, with solved bounds in place of open ones."""
    if isinstance(draft, ProgramStatement):
        indices = (
            replace(index, where=(fill_pending(index.where[0], done), fill_pending(index.where[1], done)))
            if index.where
            else index
            for index in draft.indices
        )
        exists = tuple(fill_pending(expr, done) for expr in draft.exists)
        return replace(draft, indices=tuple(indices), value=fill_pending(draft.value, done), exists=exists)

    def ranges(group: tuple[tuple[str, Interval], ...]) -> tuple[tuple[str, Interval], ...]:
        return tuple((name, (fill_pending(low, done), fill_pending(high, done))) for name, (low, high) in group)

    return replace(
        draft, outputs=ranges(draft.outputs), reductions=ranges(draft.reductions), value=fill_pending(draft.value, done)
    )


def covers(box: tuple[Interval, ...], whole: tuple[Interval, ...]) -> bool:
    """Whether two boxes are equal."""
    return all(same(a[0], b[0]) and same(a[1], b[1]) for a, b in zip(box, whole, strict=True))


def ordered_box(box: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """The same box with `lower <= upper` on every axis, for all sizes."""
    return tuple((low, maximum((high, low))) for low, high in box)


def clipped_box(box: tuple[Interval, ...], shape: Sequence[Expr]) -> tuple[Interval, ...]:
    """The part of a box inside an array, ordered as by `ordered_box`; a call checks that nothing is left out."""
    found: list[Interval] = []
    for (low, high), extent in zip(box, shape, strict=True):
        low = maximum((low, ZERO))
        found.append((low, maximum((minimum((high, extent)), low))))
    return tuple(found)


def is_whole(piece: Interval, part: Interval) -> bool:
    """Whether two intervals are equal."""
    return same(piece[0], part[0]) and same(piece[1], part[1])


def intersected(left: Interval, right: Interval) -> Interval:
    """The common part of two intervals; empty where they have none."""
    low = minimum((maximum((left[0], right[0])), left[1]))
    return low, maximum((minimum((left[1], right[1])), low))


def known_operator(expr: Expr, left: Expr, right: Expr) -> str | None:
    """The built-in operator that a combining expression is."""
    if (
        isinstance(expr, Binary)
        and {expr.left, expr.right} == {left, right}
        and expr.op in ("+", "*", "min", "max", "&&", "||")
    ):
        return {"&&": "min", "||": "max"}.get(expr.op, expr.op)
    if isinstance(expr, Select) and isinstance(expr.condition, Binary) and expr.dtype.is_integer:
        test = expr.condition
        if {expr.then, expr.otherwise} == {left, right} and {test.left, test.right} == {left, right}:
            smaller = test.op in ("<", "<=")
            if test.op in ("<", "<=", ">", ">="):
                return "min" if smaller == (test.left == expr.then) else "max"
    return None


def expr_text(expr: Expr) -> str:
    """An integer expression over sizes as Python text."""

    def text(node: Expr, level: int) -> str:
        """The source text of a place, on one line."""
        match node:
            case Const():
                return str(int(node.value)) if level < 3 or node.value >= 0 else f"({int(node.value)})"
            case Size():
                return node.name
            case IndexVar():
                return node.name.partition("'")[0]
            case Read():
                return (
                    node.tensor if not node.indices else f"{node.tensor}[{', '.join(text(i, 0) for i in node.indices)}]"
                )
            case Cast():
                return text(node.operand, level)
            case Unary():
                return f"-{text(node.operand, 3)}"
            case Binary() if node.op in ("min", "max"):
                return f"{node.op}({text(node.left, 0)}, {text(node.right, 0)})"
            case Binary():
                own = 1 if node.op in ("+", "-") else 2 if node.op in ("*", "//", "%") else 0
                inner = f"{text(node.left, own)} {node.op} {text(node.right, own + 1)}"
                return f"({inner})" if level > own else inner
            case Select():
                return f"({text(node.then, 1)} if {text(node.condition, 0)} else {text(node.otherwise, 1)})"
            case Call():
                return f"{node.function}({', '.join(text(a, 0) for a in node.arguments)})"

    return text(expr, 0)


def memory_order(names: Sequence[str], expr: Expr | None) -> tuple[int, ...]:
    """In which order a temporary stores its dimensions: that of the array it is made from, so that both are read in a row.

    The array is the one read with the most of `names` as plain indices; the dimensions it has not come first.
    """
    best: list[str] = []
    for node in reads_of(expr) if expr is not None else ():
        plain = [index.name for index in node.indices if isinstance(index, IndexVar) and index.name in names]
        if len(plain) > len(best) and len(set(plain)) == len(plain):
            best = plain
    rest = [place for place, name in enumerate(names) if name not in best]
    return (*rest, *(names.index(name) for name in best))
