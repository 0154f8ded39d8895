"""In which order the points of a statement are taken, as it is written: offsets of self reads, and the clause that fits them.

Worked example: `Y(i) = (i > 0 ? Y(i-1) : 0) + X(i)` reads `Y` one before where it writes, so `along i` makes it a running sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from tc_jupyter.diagnostics import Edit, Fix, Span
from tc_jupyter.syntax import expression_text, tree

Order = tuple[tuple[str, int], ...]
"""Indices, outermost first, each with 1 for upwards and -1 for downwards."""

STARTS = {"+=": "0", "*=": "1"}
"""What an accumulation begins with."""


def self_reads(node: tree.Comprehension) -> list[tree.Apply[tree.Expression]]:
    """The elements of its own target that a statement reads, in its value and its lets."""
    values = [node.value, *(clause.value for clause in node.clauses if isinstance(clause, tree.Let | tree.Exists))]
    nodes = (item for value in values for item in tree.walk(value))
    return [item for item in nodes if isinstance(item, tree.Apply) and item.function.name == node.target.name]


def offset(written: str, subscript: tree.Expression) -> int | None:
    """How far from an index a subscript is: -1 for `i - 1`; `None` for anything else than an index and a number."""
    match subscript:
        case tree.Name():
            return 0 if subscript.name == written else None
        case tree.Binary(op="+" | "-", left=tree.Name() as name, right=tree.Number(value=int() as number)):
            return None if name.name != written else number if subscript.op == "+" else -number
        case _:
            return None


def fitting(node: tree.Comprehension, left: Sequence[str]) -> Order:
    """An order in which every element that a statement reads of its target is made before; empty where offsets do not say it."""
    reads = [read.arguments for read in self_reads(node)]
    if any(len(read) != len(left) for read in reads):
        return ()
    offsets = [[offset(name, at) for name, at in zip(left, read, strict=True)] for read in reads]
    waiting, order = [each for each in offsets if any(each)], list[tuple[str, int]]()
    while waiting:
        found = next(
            (
                (number, step)
                for number in range(len(left))
                for step in (1, -1)
                if all(each[number] is not None and each[number] * step <= 0 for each in waiting)  # type: ignore[operator]
                and any(each[number] for each in waiting)
            ),
            None,
        )
        if found is None:
            return ()
        order.append((left[found[0]], found[1]))
        waiting = [each for each in waiting if not each[found[0]]]
    return tuple(order)


def order_clause(order: Order) -> str:
    """The text of an order: `along i, -j`."""
    return "along " + ", ".join(("-" if step < 0 else "") + name for name, step in order)


def added(node: tree.Comprehension, left: Sequence[str]) -> Fix | None:
    """Say the order in which a statement that reads its own target has to be taken, where the offsets leave one."""
    order = fitting(node, left)
    if not order or node.along:
        return None
    return Fix(f"write `{order_clause(order)}`", (Edit(Span(node.span.end, node.span.end), f" {order_clause(order)}"),))


def behind(node: tree.Comprehension, left: Sequence[str], extents: Sequence[str | None]) -> list[str]:
    """The range in which every element is there that a statement reads of its target: `i in 1:N` for `Y(i - 1)`.

    Nothing where a condition or a border says what is read, or where a range is given.
    """
    if node.clauses or any(isinstance(item, tree.Conditional | tree.Bordered) for item in tree.walk(node.value)):
        return []
    places, ranges = {name: number for number, name in enumerate(left)}, list[str]()
    for name, _ in fitting(node, left):
        number, extent = places[name], extents[places[name]]
        offsets = [offset(name, read.arguments[number]) for read in self_reads(node)]
        if extent is None or None in offsets:
            return []
        far = [each for each in offsets if each is not None]
        first, last = max(0, -min(far)), max(0, *far)
        ranges.append(f"{name} in {first}:{extent}{f' - {last}' if last else ''}")
    return ranges


def running(node: tree.Comprehension, direction: tree.Direction, is_float: bool) -> Fix | None:
    """Read the element before, for an accumulation that reads nothing of its target: `Y(i) = (Y(i - 1) else 0) + X(i)`.

    `None` where a statement has other operators than those of numbers.
    """
    operator = node.operator.removesuffix("!")
    starts = {**STARTS, **(_FLOAT_STARTS if is_float else {})}
    if operator not in (*STARTS, *_FLOAT_STARTS) or len(node.targets) != 1 or node.rest:
        return None
    name = direction.index.name
    before = f"{name} {'-' if direction.step > 0 else '+'} 1"
    texts = [expression_text(index) for index in node.indices or ()]
    at = ", ".join(before if text == name else text for text in texts)
    edits = continued(node, f"{node.target.name}({at}) else {starts.get(operator) or in_brackets(node.value)}")
    return Fix("go on from the element before", tuple(edits))


def place_of_axis(axes: Sequence[tree.Expression], rank: int) -> int | None:
    """Which index of the left side an axis is: the only one, or the one of a literal; `None` where that is open."""
    match axes:
        case []:
            return 0 if rank == 1 else None
        case [tree.Number(value=int() as axis)]:
            pass
        case [tree.Unary(op="-", operand=tree.Number(value=int() as number))]:
            axis = -number
        case _:
            return None
    return axis % rank if -rank <= axis < rank else None


_FLOAT_STARTS = {"min=": "inf", "max=": "-inf"}


def continued(node: tree.Comprehension, former: str) -> list[Edit]:
    """The edits that make an accumulation an assignment which combines its value with `former`."""
    operator, value = node.operator.removesuffix("!"), node.value
    if operator in STARTS:
        brackets = operator == "*=" or _is_loose(value)
        opening, closing = f"({former}) {operator[0]} " + "(" * brackets, ")" * brackets
    else:
        opening, closing = f"{operator[:-1]}({former}, ", ")"
    start, end = value.span.start, value.span.end
    edits = [Edit(node.operator_span, "="), Edit(Span(start, start), opening)]
    return [*edits, *([Edit(Span(end, end), closing)] if closing else [])]


def in_brackets(node: tree.Expression) -> str:
    """A value as it stands behind `else`."""
    text = expression_text(node)
    return f"({text})" if isinstance(node, tree.Conditional | tree.Binary | tree.Unary) else text


def _is_loose(node: tree.Expression) -> bool:
    """Whether an operator binds less than `+`."""
    return isinstance(node, tree.Conditional) or (isinstance(node, tree.Binary) and node.op not in "+-*/%^")


__all__ = [
    "STARTS",
    "Order",
    "added",
    "continued",
    "fitting",
    "in_brackets",
    "offset",
    "order_clause",
    "place_of_axis",
    "running",
    "self_reads",
]
