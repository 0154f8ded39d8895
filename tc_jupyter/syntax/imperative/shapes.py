"""The dimensions and extents of arrays, as the elements that are read and written say them.

Worked example: `A[row * K + k]` with `row < M` and `k < K` is `A(row, k)` of an array with the extents `M` and `K`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from tc_jupyter.syntax.tree import Apply, Expression, Extent, Name, mapped, walk

from .kinds import is_function
from .leaves import Flat, Head
from .parser import Beyond
from .polynomials import (
    Bounds,
    Polynomial,
    constant,
    digits,
    expression,
    extremes,
    is_positive,
    largest,
    names_of,
    plus,
    polynomial,
    quotient,
    replaced,
    strides,
)
from .steps import Step
from .tree import Function

_RANKS = "`{}` has {} indices in one place, and {} in another one"


@dataclass(frozen=True, slots=True)
class _Place:
    """An element: its subscripts, and the step that has it."""

    subscripts: tuple[Expression, ...]
    step: Step

    def term(self, dimension: int) -> Polynomial | None:
        """A subscript as a polynomial."""
        return polynomial(self.subscripts[dimension])


def reads(step: Step) -> Iterator[Apply[Expression]]:
    """The elements of arrays that a step reads, those in its subscripts among them."""
    for part in step.read:
        yield from (node for node in walk(part) if isinstance(node, Apply) and not is_function(node.function.name))


def with_shapes(steps: list[Step], function: Function, found: Flat) -> dict[str, tuple[Polynomial, ...]]:
    """The extents of all arrays; a row whose elements are counted as those of a matrix becomes one, in the steps, too."""
    places, mentioned = _places(steps), _mentioned(steps, found)
    stated = {each.name for each in function.parameters if each.extents}
    fixed = dict[str, tuple[Polynomial, ...]]()
    for name, each in places.items():
        ranks = sorted({len(place.subscripts) for place in each})
        if len(ranks) > 1:
            raise Beyond(_RANKS.format(name, *ranks[:2]))
        is_open = name not in stated and f"{name}.0" not in mentioned
        if ranks == [1] and is_open and (inner := _dimensions(each)) is not None:
            _split(steps, name, inner[0])
            fixed[name] = inner[1]
    places, new, rows = _places(steps), _new(steps), _rows(steps)
    shapes = {
        name: _extents(name, each, fixed.get(name, ()), mentioned, name in new, rows) for name, each in places.items()
    }
    shapes |= _stated(function, found, shapes)
    return _of_one_size(steps, shapes, {each.name for each in function.parameters} - new)


def _of_one_size(
    steps: list[Step], shapes: dict[str, tuple[Polynomial, ...]], given: set[str]
) -> dict[str, tuple[Polynomial, ...]]:
    """The extents, where an array that begins in the function is as large as what its index reads: `i < Y.shape[0]` and `X[i]`."""
    stated = {f"{name}.{k}": each for name, shape in shapes.items() for k, each in enumerate(shape)}
    same = {own: each for own, each in stated.items() if each != {(own,): 1}}
    for step in steps:
        for node in reads(step):
            for each, extent in zip(node.arguments, shapes.get(node.function.name, ()), strict=False):
                own = step.ranges.get(each.name) if isinstance(each, Name) else None
                size = None if own is None or own.last is None else plus(own.last, constant(1))
                names = [] if size is None or size == extent else [*names_of(size)]
                if (
                    len(names) == 1
                    and size == {(names[0],): 1}
                    and names[0].rpartition(".")[0] in shapes.keys() - given
                ):
                    same.setdefault(names[0], extent)
    for name, extent in same.items():
        for step in steps:
            for index, each in step.ranges.items():
                if each.last is not None and name in names_of(each.last):
                    last = replaced(each.last, name, extent)
                    upper = each.upper if last is None else expression(plus(last, constant(1)))
                    step.ranges[index] = replace(each, upper=upper, last=last)
        shapes = {
            array: tuple(replaced(each, name, extent) or each for each in shape) for array, shape in shapes.items()
        }
    return shapes


def _places(steps: list[Step]) -> dict[str, list[_Place]]:
    found = dict[str, list[_Place]]()
    for step in steps:
        for node in reads(step):
            found.setdefault(node.function.name, []).append(_Place(node.arguments, step))
        if step.assign.subscripts:
            found.setdefault(step.assign.target, []).append(_Place(step.assign.subscripts, step))
    return found


def _mentioned(steps: list[Step], found: Flat) -> set[str]:
    parts = (part for step in steps for part in step.read)
    declared = (extent for each in found.declared.values() for extent in each.extents)
    nodes = (node for part in (*parts, *declared, *found.results) for node in walk(part) if isinstance(node, Extent))
    return {f"{node.tensor.name}.{node.dimension}" for node in nodes}


def _dimensions(places: list[_Place]) -> tuple[list[Polynomial], tuple[Polynomial, ...]] | None:
    """The steps of the dimensions of a row, and the extents of all but the first one; `None` where it is no matrix."""
    terms = [place.term(0) for place in places]
    known = [each for each in terms if each is not None]
    indices = {name for place in places for name in place.step.ranges}
    steps = strides(known, indices) if len(known) == len(terms) else None
    if steps is None:
        return None
    inner = [quotient(one, other) for one, other in pairwise(steps)]
    extents = [each for each in inner if each is not None]
    if len(extents) < len(inner):
        return None
    for place, each in zip(places, known, strict=True):
        found = digits(each, steps, indices)
        if not all(
            _is_inside(digit, extent, place.step.bounds) for digit, extent in zip(found[1:], extents, strict=True)
        ):
            return None
    return steps, tuple(extents)


def _is_inside(digit: Polynomial, extent: Polynomial, bounds: Bounds) -> bool:
    ends = extremes(digit, bounds)
    if not digit:
        return True  # the first one, which is there if any is
    return ends is not None and is_positive(ends[0]) and is_positive(plus(plus(extent, constant(1), -1), ends[1], -1))


def _split(steps: list[Step], name: str, sizes: list[Polynomial]) -> None:
    """Write the elements of a row as those of a matrix."""
    for step in steps:
        indices = {*step.ranges}

        def split(subscripts: tuple[Expression, ...], indices: set[str] = indices) -> tuple[Expression, ...]:
            return tuple(map(expression, digits(polynomial(subscripts[0]) or {}, sizes, indices)))

        def change(node: Expression) -> Expression:
            node = mapped(node, change)
            is_own = isinstance(node, Apply) and node.function.name == name
            return replace(node, arguments=split(node.arguments)) if isinstance(node, Apply) and is_own else node

        assign = step.assign
        subscripts = split(assign.subscripts) if assign.target == name else tuple(map(change, assign.subscripts))
        step.assign = replace(assign, subscripts=subscripts, value=change(assign.value))
        step.filters = tuple(map(change, step.filters))


def _extents(
    name: str,
    places: list[_Place],
    inner: tuple[Polynomial, ...],
    mentioned: set[str],
    is_new: bool,
    rows: Mapping[Head, str],
) -> tuple[Polynomial, ...]:
    rank = len(places[0].subscripts)
    outer = [
        _extent(f"{name}.{k}", [(place.term(k), place.step) for place in places], mentioned, is_new, rows)
        for k in range(rank)
    ]
    return (*outer[: rank - len(inner)], *inner)


def _extent(
    own: str,
    places: list[tuple[Polynomial | None, Step]],
    mentioned: set[str],
    is_new: bool,
    rows: Mapping[Head, str],
) -> Polynomial:
    """How many elements a dimension has at least, where that is one size; else it has a size of its own.

    Args:
        is_new: the array begins in the function, which gives all its elements: they may be any number.
        rows: loops whose ends elements say.
    """
    itself: Polynomial = {(own,): 1}
    if own in mentioned:
        return itself
    if None not in (found := {_of_rows(terms, step, rows) for terms, step in places}) and len(found) == 1:
        return {(found.pop() or own,): 1}
    ends = list[Polynomial]()
    for terms, step in places:
        found = None if terms is None else extremes(terms, step.bounds)
        if found is None or names_of(found[1]) & {*step.ranges}:
            return itself
        ends.append(plus(found[1], constant(1)))
        is_new = is_new and not found[0]
    most = largest([each for each in ends if names_of(each)] or ends)
    if most is None or any(name.startswith("(") for name in names_of(most)):
        return itself
    sizes = [names for names in most if names]
    rest = most.get((), 0)
    if is_new or not sizes:
        return most if is_new or rest > 0 else itself
    if len(sizes) > 1 or len(sizes[0]) > 1 or most[sizes[0]] != 1:
        return itself
    return {sizes[0]: 1} if rest < 0 else most


def _rows(steps: list[Step]) -> dict[Head, str]:
    """The loops whose ends elements say, each with an array that its index subscripts: all of these are of one size."""
    found = dict[Head, str]()
    for step in steps:
        heads = {head.index: head for head in step.heads if step.ranges[head.index].last is None}
        for node in reads(step):
            for k, each in enumerate(node.arguments):
                if isinstance(each, Name) and each.name in heads:
                    found.setdefault(heads[each.name], f"{node.function.name}.{k}")
    return found


def _of_rows(terms: Polynomial | None, step: Step, rows: Mapping[Head, str]) -> str | None:
    """The size that arrays have together which the index of such a loop subscripts."""
    return next((rows[head] for head in step.heads if head in rows and terms == {(head.index,): 1}), None)


def _new(steps: list[Step]) -> set[str]:
    """The arrays that nothing reads before a statement has assigned them."""
    found, known = set[str](), set[str]()
    for step in steps:
        known |= {node.function.name for node in reads(step)}
        if step.assign.target not in known and step.assign.operator == "=" and not step.filters:
            found.add(step.assign.target)
        known.add(step.assign.target)
    return found


def _stated(
    function: Function, found: Flat, shapes: Mapping[str, tuple[Polynomial, ...]]
) -> dict[str, tuple[Polynomial, ...]]:
    """The extents that declarations state."""
    given = {each.name: each.extents for each in function.parameters if each.extents}
    given |= {each.name: each.extents for each in found.declared.values() if each.extents}
    stated = dict[str, tuple[Polynomial, ...]]()
    for name, extents in given.items():
        own = shapes.get(name, ())
        terms = [None if each is None else polynomial(each) for each in extents]
        if own and len(own) != len(terms):
            raise Beyond(_RANKS.format(name, len(terms), len(own)))
        pairs = zip(terms, own or terms, strict=True)
        stated[name] = tuple(term if term is not None else other or {} for term, other in pairs)
    for name, each in found.declared.items():
        if each.like:
            own = tuple({(f"{each.like}.{k}",): 1} for k in range(len(shapes.get(name, ()))))
            stated[name] = shapes.get(each.like, own)
            stated.setdefault(each.like, stated[name])
    return stated
