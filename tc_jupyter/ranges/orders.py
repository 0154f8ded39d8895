"""Whether every element that a statement reads of its own target is made before it is read, for all sizes.

For a read `e(v)` at the point `v` of a first statement, the set

    { (v, w) : w is the point that makes the element `e(v)`, and not before `v` in the declared order }

must be empty. A later statement may also read what an earlier one has left there; then only points that differ in indices without
an order are in each other's way. A point of the set with small numbers is the witness.

In a block the point `w` may be one of another statement: it is before `v` where its step is, or where the steps are the same and
its statement stands before that of `v`.

Worked example: `Y(i) = (i < N - 1 ? Y(i+1) : 0) + X(i) along i` has the point `i = 0`, which reads `Y(1)`, at `N = 2`.

Source: Feautrier, "Dataflow analysis of array and scalar references", IJPP 1991, on one statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Edit, Fix, Span, codes
from tc_jupyter.program import (
    Expr,
    IndexVar,
    Program,
    Read,
    Recurrence,
    Select,
    Statement,
    order_clause,
    recurrence_of,
    rewrite,
    walk,
)

from .accesses import Access, as_written
from .convert import from_expr
from .display import element_text
from .inference import IndexRange, Ranges
from .sets import IntegerSet, Unknown
from .size_expr import SizeExpr, has_data, index

Order = tuple[tuple[str, int], ...]
_Pair = tuple[list[SizeExpr], list[SizeExpr]]
"""What is at least 0, and what is 0, for pairs of points: indices of the second one have a `'`."""
_Pairs = Callable[[Statement, Mapping[str, SizeExpr]], Iterator[_Pair]]
BY_DATA = "data decide which element of the same turn it is"
MOST_TRIED = 16
"""Orders that are tried in the place of a wrong one."""
_CLAUSE = re.compile(r"\balong\s+-?\s*\w+(?:\s*,\s*-?\s*\w+)*")


@dataclass(frozen=True, slots=True)
class WrongOrder:
    """A read that is not before its element is made: the numbers of a witness, or why there is no answer.

    `writer` is the statement of a block that makes the element, if it is another one.
    """

    access: Access
    found: Mapping[str, int]
    reason: str = ""
    writer: Statement | None = None


def order_messages(program: Program, ranges: Ranges) -> list[Diagnostic]:
    """TC260 and TC249, for all statements with an order."""
    found: list[Diagnostic] = []
    for statement in program.statements:
        if statement.order and statement.operator == "=" and not statement.left:
            found += _rounded_in_parts(program, statement)
        if statement.order and ranges.is_complete(statement.name):
            wrong = wrong_order(ranges, statement, statement.order) or wrong_in_block(program, ranges, statement)
            found += [] if wrong is None else [_message(program, ranges, statement, wrong)]
    return found


def wrong_order(ranges: Ranges, statement: Statement, order: Order) -> WrongOrder | None:
    """A read of an element that is not made before it, or of which this is not known; `None` if there is none for any sizes."""
    for access in ranges.accesses[statement.name]:
        if access.tensor != statement.target or access.exists or _turn_has_data(statement, access, order):
            continue  # a turn that data decide has a message of its own
        if _is_before(statement, access, order):
            continue
        if any(map(has_data, access.index)):
            return WrongOrder(access, {}, BY_DATA)
        try:
            found = _violation(ranges, statement, access, statement.name == statement.target, order)
        except Unknown as unknown:
            return WrongOrder(access, {}, unknown.reason or "the set library does not answer")
        if found is not None:
            return WrongOrder(access, found)
    return None


def wrong_in_block(program: Program, ranges: Ranges, statement: Statement) -> WrongOrder | None:
    """A read of an element that another statement of the block makes later, or of which this is not known."""
    members = [each for each in program.statements if statement.block and each.block == statement.block]
    place = next((k for k, each in enumerate(members) if each is statement), 0)
    early = {each.target for each in program.statements[: program.statements.index(statement)]}
    for access in ranges.accesses[statement.name]:
        if access.exists:
            continue
        earlier = set[tuple[tuple[str, ...], bool]]()  # what holds for a writer holds for others with the same indices
        for number, writer in enumerate(members):
            if writer is statement or writer.target != access.tensor or not ranges.is_complete(writer.name):
                continue
            late = number > place and access.tensor not in early
            outputs = tuple(item.name for item in writer.output_indices)
            if (outputs, late) in earlier or _turn_has_data(writer, access, statement.steps):
                continue
            if _is_earlier(statement, access, outputs, late):
                earlier.add((outputs, late))
                continue
            if any(map(has_data, access.index)):
                return WrongOrder(access, {}, BY_DATA, writer)
            try:
                found = _smallest(ranges, statement, access, writer, partial(_not_earlier, statement.steps, late))
            except Unknown as unknown:
                return WrongOrder(access, {}, unknown.reason or "the set library does not answer", writer)
            if found is not None:
                return WrongOrder(access, found, "", writer)
    return None


def _turn_has_data(writer: Statement, access: Access, order: Order) -> bool:
    """Whether data decide in which turn an element is made that a statement reads."""
    names = {name for name, _ in order}
    pairs = zip(writer.output_indices, access.index, strict=False)
    return any(has_data(at) for item, at in pairs if item.name in names)


def _is_earlier(statement: Statement, access: Access, outputs: Sequence[str], late: bool) -> bool:
    """Whether distances alone say that another statement, which writes at `outputs`, makes an element before it is read."""
    for name, way in statement.steps:
        by = (access.index[outputs.index(name)] - index_of(statement, name)) * way
        if not by.is_constant or by.offset > 0:
            return False
        if by.offset:
            return True
    return not late


def reads_what_it_made(ranges: Ranges, statement: Statement) -> bool:
    """Whether each element of its target that a statement reads at a distance that varies is one that it has made."""
    for access in ranges.accesses[statement.name]:
        if access.tensor != statement.target:
            continue
        offsets = _offsets(statement, access)
        if next((offsets[name] for name, _ in statement.order if offsets[name] != 0), 0) is not None:
            continue
        if access.exists or any(map(has_data, access.index)):
            return False
        try:
            if _violation(ranges, statement, access, True, statement.order) is not None:
                return False
        except Unknown:
            return False
    return True


def _offsets(statement: Statement, access: Access) -> dict[str, int | None]:
    """How far from the index of its dimension each subscript is, where that is one number; parts of complex numbers have none."""
    outputs = statement.output_indices
    steps = {item.name: e - index_of(statement, item.name) for item, e in zip(outputs, access.index, strict=False)}
    return {name: step.offset if step.is_constant else None for name, step in steps.items()}


def index_of(statement: Statement, name: str) -> SizeExpr:
    """The index variable of a statement, as `Ranges.index_scope` has it."""
    return index(name, [item.name for item in statement.indices].index(name))


def _is_before(statement: Statement, access: Access, order: Order) -> bool:
    """Whether offsets alone say that the element is made before: the first that is not 0 is against the direction."""
    offsets = _offsets(statement, access)
    for name, step in order:
        by = offsets[name]
        if by is None or by * step > 0:
            return False
        if by:
            return True
    plain = statement.operator == "=" or not (statement.reduction_indices or statement.initialize)
    return statement.name != statement.target and plain and all(by == 0 for by in offsets.values())


def _violation(
    ranges: Ranges, statement: Statement, access: Access, first: bool, order: Order
) -> Mapping[str, int] | None:
    """The smallest pair of points in the wrong order, with sizes; raises `Unknown`. Before a `first` one there is nothing."""
    wrong = partial(_not_earlier, order, True) if first else partial(_in_the_way, order)
    return _smallest(ranges, statement, access, statement, wrong)


def _smallest(
    ranges: Ranges, statement: Statement, access: Access, writer: Statement, wrong_pairs: _Pairs
) -> Mapping[str, int] | None:
    """The smallest wrong pair of a point and one of `writer` that makes what it reads, with sizes; raises `Unknown`."""
    here = ranges.indices[statement.name]
    outputs = [item.name for item in writer.output_indices]
    there = {name: index(f"{name}'", len(here) + place) for place, name in enumerate(outputs)}
    dims = (*(r.index for r in here), *(f"{name}'" for name in outputs))
    inside = [*_inside(statement, here, {}), *_inside(writer, ranges.indices[writer.name], there)]
    same = [there[name] - e for name, e in zip(outputs, access.index, strict=False)]
    alternatives, _ = access.condition.alternatives()
    for wrong, equal in wrong_pairs(statement, there):
        for alternative in alternatives:
            points = IntegerSet.build(dims, [*inside, *alternative, *wrong], [*same, *equal], True)
            found = points.smallest()
            if found is not None:
                return found
    return None


def _inside(statement: Statement, ranges: Sequence[IndexRange], there: Mapping[str, SizeExpr]) -> Iterator[SizeExpr]:
    for r in ranges:
        if r.lower is None or r.upper is None or (there and r.index not in there):
            continue
        value = there.get(r.index) or index_of(statement, r.index)
        yield value - r.lower
        yield r.upper - 1 - value


def _not_earlier(order: Order, late: bool, statement: Statement, there: Mapping[str, SizeExpr]) -> Iterator[_Pair]:
    """The pairs whose second point comes later in an order; where the order says nothing, it does if it is `late`."""
    steps = [(there[name] - index_of(statement, name)) * step for name, step in order]
    for place, step in enumerate(steps):
        yield [step - 1], steps[:place]
    if late:
        yield [], steps


def _in_the_way(order: Order, statement: Statement, there: Mapping[str, SizeExpr]) -> Iterator[_Pair]:
    """The pairs of a later statement, which may read what is there, that no order keeps apart."""
    steps = [(there[name] - index_of(statement, name)) * step for name, step in order]
    for name in there.keys() - {name for name, _ in order}:
        apart = there[name] - index_of(statement, name)
        yield [apart - 1], steps
        yield [-apart - 1], steps
    if statement.operator != "=" and (statement.reduction_indices or statement.initialize):
        yield [], [there[name] - index_of(statement, name) for name in there]


def goes_over_lanes(program: Program, statement: Statement) -> Recurrence | None:
    """The form of a recurrence whose neighbours in memory are made together, from lane to lane of a vector; `None` for others."""
    dtype, outputs = program.tensor(statement.target).dtype, statement.output_indices
    step, way = statement.order[-1]
    row = [IndexVar(index.name) for index in outputs[:-1]]
    reads = list(dict.fromkeys(read for read in statement.self_reads if list(read.indices[:-1]) == row))
    own = [read for read in reads if from_expr(read.indices[-1]) == from_expr(IndexVar(step)) - way]
    if step != outputs[-1].name or len(own) != 1 or dtype.bits < 32 or dtype is not dtype.compute:
        return None

    def inside(node: Expr) -> Expr | None:
        """What is computed away from the borders."""
        if isinstance(node, Select) and not any(isinstance(part, Read) for part in walk(node.condition)):
            sides = (node.then, node.otherwise)
            return next((side for side in sides if any(part == own[0] for part in walk(side))), None)
        return None

    return recurrence_of(rewrite(statement.value, inside), own[0])


# --- messages ------------------------------------------------------------------------------------------------------------


def _message(program: Program, ranges: Ranges, statement: Statement, wrong: WrongOrder) -> Diagnostic:
    read = element_text(wrong.access.tensor, map(as_written, wrong.access.index), "()")
    along = order_clause(statement.order)
    if wrong.reason:
        message = f"it is not certain that `{read}` is made before it is read, `{along}`: {wrong.reason}"
    else:
        message = f"`{read}` is not made before it is read, `{along}`: {_witness(program, statement, wrong)}"
    if statement.block:
        help_text = "a step reads what earlier steps made, and what earlier statements of the same step did"
        return Diagnostic(codes.WRONG_ORDER, wrong.access.span, message, "", (), help_text)
    other = _other_order(ranges, statement)
    help_text = "every element that a statement reads of its target has to come before, in the order behind `along`"
    if other is not None:
        help_text = f"with `{order_clause(other)}`, it is made before it is read"
    fix = None if other is None else _replaced(program, statement, order_clause(other))
    return Diagnostic(codes.WRONG_ORDER, wrong.access.span, message, "", (), help_text, fix)


def _rounded_in_parts(program: Program, statement: Statement) -> Iterator[Diagnostic]:
    """TC249, where a recurrence of floats is taken in parts."""
    form = goes_over_lanes(program, statement) if program.tensor(statement.target).dtype.is_float else None
    if form is None or statement.span == NO_SPAN or (form.operator in ("min", "max") and form.shift is None):
        return
    what = {"+": "sums", "*": "products"}.get(form.operator, "sums of the shifts")
    order = f"its {what} are rounded in another order than one by one"
    message = f"`{statement.target}` is computed several elements at a time: {order}"
    help = "the sums of `+=!` are, too; integers are not rounded; compute in `double` where the last digits matter"
    yield Diagnostic(codes.ROUNDED_IN_PARTS, statement.span, message, help=help)


def _witness(program: Program, statement: Statement, wrong: WrongOrder) -> str:
    """One sentence with the numbers: "at `N = 3`, `Y(1)` reads `Y(2)`, which comes later"."""
    found = wrong.found
    names = [item.name for item in statement.output_indices]
    writer = wrong.writer or statement
    made = [item.name for item in writer.output_indices]
    here, there = [found[name] for name in names], [found[f"{name}'"] for name in made]
    sizes = ", ".join(f"{name} = {found[name]}" for name in program.sizes if name in found)
    own, other = (
        element_text(each.target, map(str, values[: program.tensor(each.target).written_rank]), "()")
        for each, values in ((statement, here), (writer, there))
    )
    at = f"at `{sizes}`, " if sizes else ""
    if writer is not statement:
        return f"{at}`{own}` reads `{other}`, which comes later"
    if here == there:
        return f"{at}`{own}` reads itself"
    ordered = [name for name, _ in statement.order]
    if all(a == b for name, a, b in zip(names, here, there, strict=True) if name in ordered):
        free = ", ".join(f"`{name}`" for name in names if name not in ordered)
        return f"{at}`{own}` reads `{other}`, and {free} {'has' if free.count('`') == 2 else 'have'} no order"
    return f"{at}`{own}` reads `{other}`, which comes later"


def _other_order(ranges: Ranges, statement: Statement) -> Order | None:
    """An order of few indices in which the statement is right."""
    names = [item.name for item in statement.output_indices]
    tried = (
        tuple(zip(chosen, steps, strict=True))
        for count in range(1, len(names) + 1)
        for chosen in permutations(names, count)
        for steps in product((1, -1), repeat=count)
    )
    candidates = (order for _, order in zip(range(MOST_TRIED), tried, strict=False) if order != statement.order)
    return next((order for order in candidates if wrong_order(ranges, statement, order) is None), None)


def _replaced(program: Program, statement: Statement, text: str) -> Fix | None:
    """Write another order; `None` where the statement is not in the text as it stands, as in a call."""
    start = statement.span.start
    found = list(_CLAUSE.finditer(statement.text))
    if not found or program.source.slice(statement.span) != statement.text:
        return None
    span = Span(start + found[-1].start(), start + found[-1].end())
    return Fix(f"write `{text}`", (Edit(span, text),))


__all__ = ["WrongOrder", "goes_over_lanes", "order_messages", "wrong_order"]
