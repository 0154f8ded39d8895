"""Whether the statements of a loop may each run over all turns before the next one does.

They may where no turn needs what another one has computed: two elements of a tensor are then one only within a turn. What a turn
adds to a number, and later statements of the turn read, is a tensor that is computed `along` the index of the loop.

Worked example: in `for i: { s += x[i]; y[i] = s; }` the number `s` becomes `s(i) = (s(i - 1) else 0) + x(i) along i`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

from tc_jupyter.syntax.tree import (
    Apply,
    Binary,
    Bordered,
    Conditional,
    Expression,
    Name,
    Number,
    mapped,
    walk,
)

from .kinds import values_in
from .leaves import Head
from .parser import Ordered, number, put
from .polynomials import expression, factor_of, names_of, plus, polynomial
from .shapes import reads
from .steps import CARRIED, LAST, TWICE, Step, combined


@dataclass(frozen=True, slots=True)
class _Access:
    """An element that a step reads or writes; `operator` is that of a combination, `=` of an assignment, nothing of a read."""

    step: Step
    name: str
    subscripts: tuple[Expression, ...]
    operator: str = ""


def in_any_order(steps: list[Step], scanned: Container[str]) -> None:
    """Raise `Ordered` where a turn of a loop needs another one, and is no recurrence; of a recurrence, say the order.

    Args:
        scanned: tensors of which each turn reads what the turn before has left.
    """
    for step in steps:
        if step.assign.operator == "=" and not all(_has_own(each, step) for each in step.assign.subscripts):
            raise Ordered(TWICE.format(step.assign.target))
    found = [each for step in steps for each in _accesses(step, {each.assign.target for each in steps})]
    for one, other in combinations_with_replacement(found, 2):
        if one.name != other.name or not (one.operator or other.operator) or _are_apart(one, other):
            continue
        if one.name in scanned:
            continue
        if one.operator and one.operator == other.operator != "=":
            continue  # combined in any order
        if one is other and one.operator == "=":
            raise Ordered((TWICE if one.subscripts else LAST).format(one.name))
        order = _order(one, other)
        if order is None:
            raise Ordered(CARRIED.format(one.name))
        one.step.along = tuple(head for head in one.step.heads if head is order or head in one.step.along)


def _accesses(step: Step, written: set[str]) -> Iterator[_Access]:
    yield _Access(step, step.assign.target, step.assign.subscripts, step.assign.operator)
    if step.assign.place:
        yield _Access(step, step.assign.place[0], step.assign.subscripts, step.assign.operator)
    for node in reads(step):
        if node.function.name in written:
            yield _Access(step, node.function.name, node.arguments)
    nodes = (node for part in step.read for node in walk(part) if isinstance(node, Name))
    yield from (_Access(step, node.name, ()) for node in nodes if node.name in written)


def _has_own(subscript: Expression, step: Step) -> bool:
    """Whether each value of an index has an element of its own: one index stands there, at most with a number as its factor."""
    terms = polynomial(subscript)
    own = set[str]() if terms is None else names_of(terms) & {*step.ranges}
    factors = [] if terms is None else [factor_of(terms, name) for name in own]
    return terms is not None and len(own) < 2 and all(each is not None and {*each} == {()} for each in factors)


def _common(one: Step, other: Step) -> list[Head]:
    pairs = zip(one.heads, other.heads, strict=False)
    count = next(
        (k for k, (head, another) in enumerate(pairs) if head is not another), min(len(one.heads), len(other.heads))
    )
    return [*one.heads[:count]]


def _are_apart(one: _Access, other: _Access) -> bool:
    """Whether two elements are the same in no two turns of the loops around both."""
    waiting = {head.index for head in _common(one.step, other.step)}
    inner = {*one.step.ranges, *other.step.ranges} - waiting
    known = set[str]()
    pairs = [
        (polynomial(left), polynomial(right)) for left, right in zip(one.subscripts, other.subscripts, strict=False)
    ]
    for _ in range(len(pairs)):
        for left, right in pairs:
            if left is None or right is None or plus(left, right, -1):
                continue
            unknown = (names_of(left) & (waiting | inner)) - known
            if len(unknown) == 1 and factor_of(left, *unknown) and unknown <= waiting:
                known |= unknown
    return waiting <= known


def _order(one: _Access, other: _Access) -> Head | None:
    """The loop in whose order a step reads elements that its turns before have written; `None` where there is none."""
    step, operators = one.step, {one.operator, other.operator}
    if one.step is not other.step or operators != {"", "="}:
        return None
    write, read = (one, other) if one.operator else (other, one)
    shifted, found = list[Head](), set[str]()
    for left, right in zip(write.subscripts, read.subscripts, strict=False):
        terms, others = polynomial(left), polynomial(right)
        difference = None if terms is None or others is None else plus(terms, others, -1)
        if difference is None or terms is None or names_of(difference):
            return None
        own = names_of(terms) & {*step.ranges}
        if len(own) == 1:
            found |= own
        if difference:
            head = next((each for each in step.heads if {each.index} == own), None)
            if head is None or difference[()] * head.step < 0 or left != Name(head.index):
                return None
            shifted.append(head)
    is_one = len(shifted) == 1 and abs(shifted[0].step) == 1 and found == {*step.ranges}
    return shifted[0] if is_one else None


# --- what a loop adds up and reads ------------------------------------------------------------------------------------


def with_scans(steps: list[Step]) -> tuple[list[Step], dict[str, Expression]]:
    """The steps with tensors in the place of numbers that each turn changes and reads, and what these are behind the loops."""
    found = dict[str, Expression]()
    for name in dict.fromkeys(step.assign.target for step in steps):
        own = [step for step in steps if step.assign.target == name]
        if len(own) == 2 and own[0].assign.operator == "=" and not own[0].filters:
            first, scanned = own[0].assign.value, _with_scan(steps, *own)
            found |= {name: _last(own[1], first)} if scanned is not None else {}
            steps = scanned or steps
    return steps, found


def _with_scan(steps: list[Step], begin: Step, update: Step) -> list[Step] | None:
    """The same for one number; `None` where it is none that a loop changes and reads."""
    count, name = len(begin.heads), begin.assign.target
    inside, users = update.heads, [step for step in steps if step is not update and name in values_in(step.read)]
    is_plain = len(inside) == count + 1 and inside[:count] == begin.heads and update.assign.operator in _CHANGES
    reads_itself = name in values_in((*update.read,))
    if not is_plain or not (users or reads_itself) or any(step.heads[: count + 1] != inside for step in users):
        return None
    if {step.assign.target for step in users} & values_in(update.read) or abs(inside[-1].step) != 1:
        return None
    head, own_range = inside[-1], update.ranges[inside[-1].index]
    if head.step > 0 and (polynomial(head.lower) != {} or own_range.first != {}):
        return None
    place, index, first = steps.index(update), Name(head.index), begin.assign.value
    after = Binary("-" if head.step > 0 else "+", index, number("1"))
    former = Bordered(
        Apply(Name(name), (*begin.assign.subscripts, after)), first, bracketed=not isinstance(first, Name | Number)
    )
    own = Apply(Name(name), (*begin.assign.subscripts, index))
    for step in users:
        _replace_reads(step, name, own if steps.index(step) > place else former)
    _replace_reads(update, name, former)
    assign = update.assign
    value = assign.value if assign.operator == "=" else combined(assign.operator, former, assign.value)
    for condition in update.filters:
        value = Conditional(condition, value, former)
    update.assign, update.filters = replace(assign, subscripts=own.arguments, operator="=", value=value), ()
    update.along = (head,) if any(isinstance(node, Bordered) for node in walk(value)) else ()
    rest = [step for step in steps if step is not begin and step is not update]
    at = min((rest.index(step) for step in users), default=place - 1)
    return [*rest[:at], update, *rest[at:]]


def _last(update: Step, first: Expression) -> Expression:
    """What the last turn of the loop leaves, or what was there before if there is no turn."""
    assign, head = update.assign, update.heads[-1]
    own = update.ranges[head.index]
    last = own.lower if head.step < 0 else Binary("-", own.upper, number("1"))
    terms = polynomial(last)
    place = last if terms is None else expression(terms)
    read = Apply(Name(assign.target), (*assign.subscripts[:-1], place))
    return Bordered(read, first, bracketed=not isinstance(first, Name | Number))


_CHANGES = frozenset({"=", "+", "*", "max", "min"})


def _replace_reads(step: Step, name: str, value: Expression) -> None:
    def change(node: Expression) -> Expression:
        if isinstance(node, Apply) and node.function.name == name:
            return value
        return mapped(node, change)

    values = {name: value}
    step.assign = replace(step.assign, value=put(change(step.assign.value), values))
    step.filters = tuple(put(change(each), values) for each in step.filters)
