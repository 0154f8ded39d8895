"""Left sides whose subscripts are expressions: one statement with `=` writes no element twice, and every element has one that does.

Worked example: `Y(2*i) = A(i)` with `0 <= i < N` writes no element twice, since `2*i = 2*j` only where `i = j`; together with
`Y(2*i + 1) = B(i)` it writes all of `0 <= at < 2*N`. For `Y(i/2) = A(i)` the points `i = 0` and `i = 1` share `Y(0)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeGuard

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes
from tc_jupyter.program import Cast, DType, Expr, Program, Statement, decided_by_data
from tc_jupyter.program.integers import index_names

from .accesses import as_written, write_access
from .certain import leaves_out
from .convert import to_condition
from .display import element_text, to_python
from .inference import IndexRange, Ranges
from .sets import Answer, IntegerSet, Unknown
from .size_expr import Condition, SizeExpr, has_data, index, minimum, nonnegative

SMALL = (1, 2, 3, 4)
"""Sizes at which two points with one element are looked for."""
MOST_POINTS = 1 << 9
"""Of a statement at one choice of sizes, while they are looked for."""
MOST_CHOICES = 1 << 6
"""Of sizes."""


def left_side_messages(program: Program, ranges: Ranges) -> list[Diagnostic]:
    """TC221 and TC222, as far as they follow from the text; one of them for a left side."""
    found: list[Diagnostic] = []
    for statement in program.statements:
        if not ranges.is_complete(statement.name) or statement.operator != "=":
            continue
        if leaves_out(ranges, statement) and not _is_filled(program, ranges, statement):
            found.append(_left_as_it_was(program, ranges, statement))
        if statement.computed and not statement.unique and not is_injective(ranges, statement):
            found.append(_written_twice(program, ranges, statement))
    told = {each.span for each in found}
    unwritten = (_unwritten(program, ranges, tensor.name) for tensor in program.tensors)
    return [*found, *(each for each in unwritten if each is not None and each.span not in told)]


def subscripts_of(ranges: Ranges, statement: Statement) -> tuple[SizeExpr, ...]:
    """The subscripts of the left side."""
    return write_access(statement, ranges.index_scope(statement)).index


# --- once ------------------------------------------------------------------------------------------------------------


def is_injective(ranges: Ranges, statement: Statement) -> bool:
    """Whether it is proved that no two points of a statement have the same left side."""
    if any(map(decided_by_data, statement.left)):
        return False
    points, subscripts = ranges.points(statement.name), subscripts_of(ranges, statement)
    extents = {r.index: r.extent for r in points}
    known: set[str] = set()
    more = True
    while more:
        more = False
        for e in subscripts:
            if (names := _determined(e, extents, known)) and not names <= known:
                known |= names
                more = True
    guard = write_access(statement, ranges.index_scope(statement)).condition
    return known >= extents.keys() or _is_injective_set(points, subscripts, guard)


def _determined(e: SizeExpr, extents: Mapping[str, SizeExpr], known: set[str]) -> set[str]:
    """The indices that a value fixes when others are known: those of a number with digits, as `b*S + i` with `0 <= i < S`."""
    weights: list[tuple[str, SizeExpr]] = []
    for name in sorted(e.indices & extents.keys() - known):
        split = e.linear_in(name)
        if split is None or split[0].indices:
            return set()
        weights.append((name, split[0] if nonnegative(split[0]) else -split[0]))
    while weights:
        first = next(
            (n for n, (_, w) in enumerate(weights) if nonnegative(w - 1 - _span(_without(weights, n), extents))), None
        )
        if first is None:
            return set()
        weights.pop(first)
    return set(e.indices & extents.keys())


def _without(weights: Sequence[tuple[str, SizeExpr]], number: int) -> list[tuple[str, SizeExpr]]:
    return [each for n, each in enumerate(weights) if n != number]


def _span(weights: Sequence[tuple[str, SizeExpr]], extents: Mapping[str, SizeExpr]) -> SizeExpr:
    """The largest difference of two values of a sum of indices with weights."""
    total = SizeExpr({}, 0)
    for name, weight in weights:
        total = total + weight * (extents[name] - 1)
    return total


def _is_injective_set(points: Sequence[IndexRange], subscripts: Sequence[SizeExpr], guard: Condition) -> bool:
    """The same by exact sets: two points with the same subscripts at which a condition holds, of which one index differs."""
    other = {r.index: index(f"{r.index}'") for r in points}
    dims = [*other, *(f"{name}'" for name in other)]
    inside = list(_inside(points, None)) + list(_inside(points, other))
    equal = [e - e.substitute(other) for e in subscripts]
    alternatives = guard.alternatives()[0]
    both = [[*one, *(e.substitute(other) for e in two)] for one in alternatives for two in alternatives]
    try:
        for r, held in product(points, both):
            apart = index(r.index) - other[r.index] - 1
            if IntegerSet.build(dims, [*inside, *held, apart], equal, True).is_empty() is not Answer.YES:
                return False
    except Unknown:
        return False
    return True


def _inside(points: Sequence[IndexRange], names: Mapping[str, SizeExpr] | None) -> Iterator[SizeExpr]:
    for r in points:
        if r.lower is None or r.upper is None:
            continue
        here = index(r.index) if names is None else names[r.index]
        yield here - r.lower
        yield r.upper - 1 - here


def _written_twice(program: Program, ranges: Ranges, statement: Statement) -> Diagnostic:
    """TC221, with two points where some are found at small sizes."""
    left, target = statement.left_span, statement.target
    fix = _unique_fix(program, statement)
    if (mask := next((each for each in statement.left if _is_mask(each)), None)) is not None:
        written = program.source.slice(mask.operand.span)
        message = f"`=` writes elements 0 and 1 of `{target}` only: `{written}` is true or false"
        help_text = f"a mask leaves points out, as in `{target}(i) = value where {written}`; others need a value before"
        return Diagnostic(codes.NOT_INJECTIVE, left, message, "", (), help_text, _mask_fix(program, statement, mask))
    if any(map(decided_by_data, statement.left)):
        message = f"`=` may write an element of `{target}` twice: elements of tensors say which"
        help_text = (
            "combine the values, as with `+=!`, or say that no two are the same with `where unique`; each call looks"
        )
        return Diagnostic(codes.NOT_INJECTIVE, left, message, "", (), help_text, fix)
    found = None if statement.conditions else _two_points(ranges, statement)
    help_text = "combine the values, as with `+=!`, or take another left side"
    if found is None:
        message = (
            f"`=` may write an element of `{target}` twice: it is not proved that all points have elements of their own"
        )
        return Diagnostic(
            codes.NOT_INJECTIVE, left, message, "", (), f"{help_text}; `where unique` leaves it to the call", fix
        )
    first, second, element, sizes = found
    at = f" at {sizes}" if sizes else ""
    message = f"`=` writes `{element}` twice{at}: for {first} and for {second}"
    return Diagnostic(codes.NOT_INJECTIVE, left, message, "", (), help_text)


def _is_mask(subscript: Expr) -> TypeGuard[Cast]:
    return isinstance(subscript, Cast) and subscript.operand.dtype is DType.BOOL


def _mask_fix(program: Program, statement: Statement, mask: Cast) -> Fix | None:
    """`Y(i) = X(i) where m(i)` for `Y(m(i)) = X(i)`."""
    names, place, source = index_names(mask), mask.operand.span, program.source
    text = source.slice(statement.span)
    if len(names) != 1 or "#" in text or not text:
        return None
    clause = f"{', ' if ' where ' in text else ' where '}{source.slice(place)}"
    end = Span(statement.span.end, statement.span.end)
    return Fix("leave points out", (Edit(place, next(iter(names))), Edit(end, clause)))


def _unique_fix(program: Program, statement: Statement) -> Fix | None:
    text = program.source.slice(statement.span)
    if "#" in text or not text:
        return None
    words = ", unique" if " where " in text else " where unique"
    return Fix("say that all are different", (Edit(Span(statement.span.end, statement.span.end), words),))


def _two_points(ranges: Ranges, statement: Statement) -> tuple[str, str, str, str] | None:
    """Two points with one element, that element and the sizes, as text; `None` if none are found at small sizes."""
    points, subscripts = ranges.points(statement.name), subscripts_of(ranges, statement)
    ends = [end for r in points for end in (r.lower, r.upper) if end is not None]
    names = sorted({name for e in (*ends, *subscripts) for name in e.names - e.indices})
    choices = product(SMALL, repeat=len(names)) if len(SMALL) ** len(names) <= MOST_CHOICES else [(3,) * len(names)]
    for numbers in choices:
        values = dict(zip(names, numbers, strict=True))
        seen: dict[tuple[int, ...], dict[str, int]] = {}
        for point in _points(points, values):
            here = tuple(e.evaluate({**values, **point}) for e in subscripts)
            if here in seen:
                rank = ranges.program.tensor(statement.target).written_rank
                shown = element_text(statement.target, map(str, here[:rank]), ranges.scope.brackets)
                return _at(seen[here]), _at(point), shown, ", ".join(f"`{k} = {v}`" for k, v in values.items())
            seen[here] = point
    return None


def _at(point: Mapping[str, int]) -> str:
    return "`" + ", ".join(f"{name} = {value}" for name, value in point.items()) + "`"


def _points(points: Sequence[IndexRange], values: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The first points at these sizes."""
    ends = [
        (r.lower.evaluate(values), r.upper.evaluate(values))
        for r in points
        if r.lower is not None and r.upper is not None
    ]
    for number, place in enumerate(product(*(range(*each) for each in ends))):
        if number == MOST_POINTS:
            return
        yield {r.index: at for r, at in zip(points, place, strict=True)}


# --- every one -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """What the statements on a tensor write before another one reads it.

    Attributes:
        proved: all of it. example: an element that none of them writes, as text; neither is known where the call has to look.
        statements: those on it that do not need what is there.
    """

    proved: bool
    example: str | None
    statements: tuple[Statement, ...]


def written_by(program: Program, ranges: Ranges, tensor: str) -> Written | None:
    """Whether all elements of a tensor are written; `None` where its first statement says so by itself."""
    if not any(each.computed for each in program.statements if each.target == tensor):
        return None
    before: list[Statement] = []
    order = ""  # of the statement, or block, that goes on from what is written before it
    for statement in program.statements:
        own, reads = statement.target == tensor, tensor in statement.tensors_read
        goes_on = statement.is_made(tensor) or (statement.block != "" and _makes(program, statement.block, tensor))
        if order and (statement.block or statement.name) != order:
            break
        if own and not (before and (statement.accumulate or (reads and not goes_on))):
            before.append(statement)
        elif not own and before and reads and not goes_on:
            break
        if before and reads and goes_on:
            order = statement.block or statement.name
    return _written(program, ranges, tensor, before)


def _makes(program: Program, block: str, tensor: str) -> bool:
    return any(each.block == block and each.target == tensor for each in program.statements)


def _written(program: Program, ranges: Ranges, tensor: str, statements: Sequence[Statement]) -> Written | None:
    """The same of some statements; those that leave points out write only what is written already."""
    if not all(ranges.is_complete(each.name) for each in statements):
        return None
    before = [each for each in statements if each.operator != "=" or not leaves_out(ranges, each)]
    if not before or before[0].operator != "=" or not before[0].computed or tensor not in ranges.boxes:
        return None
    known = [each for each in before if not any(map(decided_by_data, each.left))]
    try:
        left_out = _left_out(ranges, tensor, known)
        if left_out.is_empty() is Answer.YES:
            return Written(True, None, tuple(before))
        if len(known) == len(before) and not left_out.has_opaque and (sample := left_out.smallest()) is not None:
            where = [str(sample[f"at{k}"]) for k in range(program.tensor(tensor).written_rank)]
            sizes = ", ".join(f"`{name} = {sample[name]}`" for name in sorted(sample) if not name.startswith("at"))
            element = element_text(tensor, where, ranges.scope.brackets)
            return Written(False, f"`{element}`" + (f" at {sizes}" if sizes else ""), tuple(before))
    except Unknown:
        pass
    return Written(any(_is_dense(ranges, each) for each in known), None, tuple(before))


def _left_out(ranges: Ranges, tensor: str, statements: Sequence[Statement]) -> IntegerSet:
    """The elements that none of some statements writes, as the points `at0`, `at1`, ..."""
    box = ranges.boxes[tensor]
    elements = [f"at{k}" for k in range(len(box.bounds))]
    ends = zip(elements, box.bounds, strict=True)
    inside = [side for name, (low, high) in ends for side in (index(name) - low, high - 1 - index(name))]
    # together first: what is written side by side is one piece then, and quickly taken away
    written: IntegerSet | None = None
    for statement in statements:
        points = ranges.points(statement.name)
        own = {r.index: index(f"{r.index}'") for r in points}
        equal = [
            index(name) - e.substitute(own) for name, e in zip(elements, subscripts_of(ranges, statement), strict=True)
        ]
        dims = [*elements, *(f"{name}'" for name in own)]
        points_and_elements = IntegerSet.build(dims, list(_inside(points, own)), equal, True)
        image = points_and_elements.project_out([f"{name}'" for name in own])
        written = image if written is None else written.union(image)
    every = IntegerSet.build(elements, inside, (), True)
    return every if written is None else every.subtract(written)


def _is_filled(program: Program, ranges: Ranges, statement: Statement) -> bool:
    """Whether what a statement leaves as it was has values: those of a call, or of earlier statements."""
    if program.tensor(statement.target).view_of is not None:
        return True
    number = program.statements.index(statement)
    before = [each for each in program.statements[:number] if each.target == statement.target]
    found = _written(program, ranges, statement.target, before)
    if found is not None:
        return found.proved
    return any(each.operator != "=" or not leaves_out(ranges, each) for each in before)


def _left_as_it_was(program: Program, ranges: Ranges, statement: Statement) -> Diagnostic:
    """TC222: a condition leaves out elements that nothing has written."""
    target, box = statement.target, ranges.boxes.get(statement.target)
    first = next(each for each in program.statements if each.target == target) is statement
    which = "them" if first else "all of them"
    message = f"the condition may leave elements of `{target}` out, and no statement before it writes {which}"
    filled = "" if box is None else f", as with {value_first(ranges, target, box.bounds)}"
    help_text = f"give all of them a value first{filled}; a choice is written `condition ? value : other`"
    place = statement.conditions[-1].span
    place = place if place.end else statement.left_span
    return Diagnostic(
        codes.UNWRITTEN_ELEMENT, place, message, "", (), help_text, _range_fix(program, ranges, statement)
    )


def _range_fix(program: Program, ranges: Ranges, statement: Statement) -> Fix | None:
    """The range that is meant by one condition that compares an index with sizes: `i < N - 1`."""
    scope = ranges.index_scope(statement)
    if len(statement.conditions) != 1 or not statement.filters:
        return None
    (alternatives, complete), (condition,) = to_condition(statement.filters[0], scope).alternatives(), statement.filters
    names = {name for each in alternatives for e in each for name in e.indices}
    if len(alternatives) != 1 or len(alternatives[0]) != 1 or not complete or len(names) != 1 or not condition.span.end:
        return None
    (name,), e = names, alternatives[0][0]
    r, split = ranges.range(statement.name, name), e.linear_in(name)
    if split is None or not split[0].is_constant or abs(split[0].offset) != 1 or r.lower is None or r.upper is None:
        return None
    if r.kind != "output" or r.source == "where" or has_data(e):
        return None
    ends = (r.lower, split[1] + 1) if split[0].offset == -1 else (-split[1], r.upper)
    text = f"{name} in {as_written(ends[0])}:{as_written(ends[1])}"
    return Fix(f"write the range `{text}`", (Edit(condition.span, text),))


def _is_dense(ranges: Ranges, statement: Statement) -> bool:
    """Whether one statement writes its whole box: each subscript has indices of its own, and takes every value once."""
    points = {r.index: r.extent for r in ranges.points(statement.name)}
    seen: set[str] = set()
    box = ranges.boxes[statement.target]
    for e, (low, high) in zip(subscripts_of(ranges, statement), box.bounds, strict=True):
        names = e.indices & points.keys()
        if has_data(e) or names & seen or not _determined(e, points, set()) >= names:
            return False
        seen |= names
        count = SizeExpr({}, 1)
        for name in names:
            count = count * points[name]
        if count != high - low:
            return False
    return True


def value_first(ranges: Ranges, tensor: str, bounds: Sequence[tuple[SizeExpr, SizeExpr]]) -> str:
    """The statement that gives all elements between some bounds a value: `Y(i) = 0 where i in 0:2*N`."""
    if not bounds:
        return f"`{tensor} = 0`"
    names = "ijklmnopqrstuvwxyz"
    ends = zip(names, bounds, strict=False)
    where = ", ".join(f"{name} in {to_python(low)}:{to_python(high)}" for name, (low, high) in ends)
    start = element_text(tensor, names[: len(bounds)], ranges.scope.brackets)
    return f"`{start} = 0 where {where}`"


def _unwritten(program: Program, ranges: Ranges, tensor: str) -> Diagnostic | None:
    """TC222 where it follows from the text."""
    found = written_by(program, ranges, tensor)
    if found is None or found.example is None:
        return None
    first = found.statements[0]
    message = f"no statement writes {found.example}"
    bounds = ranges.boxes[tensor].bounds[: program.tensor(tensor).written_rank]
    if program.tensor(tensor).box is None:  # where nothing says where it begins, it begins at 0
        bounds = tuple((minimum(low, SizeExpr({}, 0)), high) for low, high in bounds)
    help_text = f"give all of them a value first, as with {value_first(ranges, tensor, bounds)}"
    return Diagnostic(codes.UNWRITTEN_ELEMENT, first.left_span, message, "", (), help_text)


__all__ = [
    "Written",
    "is_injective",
    "left_side_messages",
    "subscripts_of",
    "written_by",
]
