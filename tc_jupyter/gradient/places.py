"""Fixed places of short dimensions: what goes to `dA(i, 0)`, `dA(i, 1)` and so on as one value for each element.

Worked example: what `A(n, 0)` and `A(n, 1)` get of an `N x 2` array is `dA(n, k) = k == 0 ? u(n) : v(n)`. Of complex numbers, whose
parts are two such places, a statement has one of its values where `part == 0`: `decided` takes each of them for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tc_jupyter.program import (
    COMPARISONS,
    Binary,
    Const,
    Expr,
    IndexVar,
    Read,
    Select,
    conjuncts,
    int64,
    rewrite,
    variables,
)

from .arithmetic import compared, number
from .partials import Part
from .steps import Array, Bounds, Step
from .transpose import Term

MOST = 16
"""Places that are told apart; each is a case of a choice."""
FEW = 4
"""Values of an index that are taken one by one."""


def length_of(bounds: Bounds) -> int | None:
    """How many values a range has, where it begins and ends at numbers."""
    low, high = bounds
    return high.offset - low.offset if low.is_constant and high.is_constant else None


def places_of(term: Term, array: Array) -> dict[int, int] | None:
    """By dimension, the fixed places that a term goes to, where these are few and its other subscripts are indices."""
    fixed = {dimension: int(at.value) for dimension, at in enumerate(term.left) if isinstance(at, Const)}
    names = [at.name for at in term.left if isinstance(at, IndexVar)]
    count = 1
    for dimension in fixed:
        length = length_of(array.box[dimension])
        if length is None or length < 1:
            return None
        count *= length
    return fixed if fixed and count <= MOST and len(set(names)) + len(fixed) == len(term.left) else None


def by_place(
    left: Sequence[Expr], box: Sequence[Bounds], dimensions: Sequence[int], values: Mapping[tuple[int, ...], Expr]
) -> Expr:
    """The value that belongs to the place of an element, 0 where there is none."""
    if not dimensions:
        return values[()]
    dimension, *others = dimensions
    (low, high), zero = box[dimension], number(0, next(iter(values.values())).dtype)
    cases = list[Expr]()
    for place in range(low.offset, high.offset):
        inside = {key[1:]: value for key, value in values.items() if key[0] == place}
        cases.append(by_place(left, box, others, inside) if inside else zero)
    return by_number(left[dimension], low.offset, cases)


def by_number(at: Expr, first: int, values: Sequence[Expr]) -> Expr:
    """The value that belongs to a number, which counts them from `first` on."""
    *others, total = values
    for place, value in reversed(list(enumerate(others, first))):
        if value != total:
            total = Select(compared("==", at, int64(place)), value, total, value.dtype)
    return total


def decided(step: Step, part: Part) -> Iterator[tuple[Step, Part]]:
    """A step and its part for each of the few values of a short index that conditions leave, if these compare it with numbers."""
    for point in step.points:
        tests = [test for each in part.conditions for test in conjuncts(each) if _compares(test, point.name)]
        length = length_of(point.bounds)
        if not tests or length is None or length > MOST:
            continue
        first = point.lower.offset
        put = [variables({point.name: int64(k)}) for k in range(first, first + length)]
        left = [k for k, rule in enumerate(put, first) if all(_holds(rewrite(test, rule)) for test in tests)]
        if len(left) <= FEW:
            for value in left:
                yield from decided(*_at(step, part, point.name, value))
            return
    yield step, part


def _at(step: Step, part: Part, name: str, value: int) -> tuple[Step, Part]:
    """A step and its part at one value of an index."""

    def put(expr: Expr) -> Expr:
        return rewrite(expr, rule)

    def rule(node: Expr) -> Expr | None:
        match node:
            case IndexVar() if node.name == name:
                return int64(value)
            case Select() if (holds := _holds(node.condition)) is not None:
                return node.then if holds else node.otherwise
            case _:
                return None

    read = put(part.read)
    assert isinstance(read, Read)
    tests = [put(test) for each in part.conditions for test in conjuncts(each)]
    conditions = tuple(test for test in tests if _holds(test) is None)
    points = tuple(point for point in step.points if point.name != name)
    left = tuple(map(put, step.left))
    return replace(step, points=points, left=left), Part(read, conditions, put(part.value))


def _compares(test: Expr, name: str) -> bool:
    """Whether a condition compares an index with a number."""
    match test:
        case Binary(left=IndexVar(name=own), right=Const()) | Binary(left=Const(), right=IndexVar(name=own)):
            return own == name and test.op in COMPARISONS
        case _:
            return False


def _holds(test: Expr) -> bool | None:
    """Whether a comparison of numbers holds; `None` for other conditions."""
    match test:
        case Binary(op=op, left=Const(value=a), right=Const(value=b)) if op in COMPARISONS:
            return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]
        case _:
            return None
