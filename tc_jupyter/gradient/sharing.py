"""Steps whose long values name what stands in them several times: else a derivative would go to it by way of each place.

Worked example: `Y(i) = g(exp(X(i)), exp(X(i)))` is `V(i) = exp(X(i))  Y(i) = g(V(i), V(i))`, in which `X` gets one part of a
derivative instead of two. Complex functions have dozens of such places, one inside the other: a quotient names its divisor eight
times. Short values stay as they are: what is written by hand is read again in the derivative.

Backwards, a divisor of several active elements is named, too: `O(i, j) = I(i, j) / (P(i) + Q(j))` gives `dP` and `dQ` a sum of what
the divisor gets, which is divided once. So is the operand of a function that takes long.

A part becomes a temporary only where no subscript leaves its array at any point. What stands behind conditions in all places is 0
where they do not hold: of `i != j ? 1 / D(i, j) : 0` the quotient has no derivative at `i == j`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import TypeAlias

from tc_jupyter.program import (
    Binary,
    Call,
    Const,
    Expr,
    IndexVar,
    Read,
    Select,
    children,
    conjuncts,
    negated,
    rebuild,
    walk,
)
from tc_jupyter.program.integers import has_read, index_names
from tc_jupyter.ranges import constant, nonnegative

from .arithmetic import guarded
from .partials import CHEAP_SLOPES, SLOPES_OF_VALUES, depends
from .steps import Array, Bounds, Step, Steps, root, version

LONG = 150
"""Nodes of a value from which on its parts are named."""
WORTH = 6
"""Nodes of a part: fewer are as short as its name."""


def shared(about: Steps, active: Container[str] = ()) -> Steps:
    """The steps with temporaries for what long values have several times.

    Args:
        active: tensors whose derivatives a slope is to be found for once, if it takes long.
    """

    def rewritten(step: Step, arrays: Mapping[str, Array]) -> Iterator[Step]:
        steep = _steep(step.value, active) if active and is_plain(step) else frozenset[Expr]()
        return _named(step, arrays, steep) if steep or _is_long(step) else iter((step,))

    return with_temporaries(about, rewritten)


def with_temporaries(about: Steps, rewritten: Callable[[Step, Mapping[str, Array]], Iterator[Step]]) -> Steps:
    """The steps, each after those of the temporaries that it reads.

    Args:
        rewritten: these steps for one, by the arrays that there are.
    """
    arrays, last, steps = dict(about.arrays), dict(about.last), list[Step]()
    for step in about.steps:
        for part in rewritten(step, arrays):
            name = root(part.target)
            if name not in arrays:
                arrays[name] = Array(name, part.value.dtype, tuple(point.bounds for point in part.points))
                last[name] = 1
            steps.append(part)
    return about if len(steps) == len(about.steps) else replace(about, arrays=arrays, last=last, steps=tuple(steps))


def temporary(step: Step, value: Expr, taken: Container[str]) -> tuple[Step, Read]:
    """The step that computes a part of the value of another step, and what that reads instead."""
    points = tuple(point for point in step.points if point.name in index_names(value))
    stem = root(step.target)
    name = next(each for k in count(1) if (each := f"{stem}.v{k}") not in taken)
    left = tuple(IndexVar(point.name) for point in points)
    made = Step(version(name, 1), "=", False, points, left, value, span=step.span)
    return made, Read(version(name, 1), left, value.dtype)


def is_plain(step: Step) -> bool:
    """Whether a step computes each point by itself, or a sum of them."""
    return not (step.order or step.block or step.conditions) and step.operator in ("=", "+")


def _is_long(step: Step) -> bool:
    return is_plain(step) and sum(1 for _ in walk(step.value)) >= LONG


def _steep(value: Expr, active: Container[str]) -> frozenset[Expr]:
    """The operands of several active elements whose slope is a division, or a function that the value does not tell."""

    def several(operand: Expr) -> bool:
        reads = {node for node in walk(operand) if isinstance(node, Read) and root(node.tensor) in active}
        return len(reads) > 1 and depends(operand, lambda read: root(read.tensor) in active)

    found = set[Expr]()
    for node in walk(value):
        match node:
            case Binary(op="/", right=right, dtype=dtype) if dtype.is_float:
                found.add(right)
            case Call(function=name, arguments=arguments) if node is not value or name not in SLOPES_OF_VALUES:
                found.update(arguments if name not in CHEAP_SLOPES else ())
            case _:
                pass
    return frozenset(each for each in found if several(each))


def _named(step: Step, arrays: Mapping[str, Array], steep: Container[Expr]) -> Iterator[Step]:
    """The steps of temporaries, and the step that reads them."""
    known, uses, long = guards(step.value), _uses(step.value), _is_long(step)
    taken = {*arrays}
    names: dict[Expr, Expr] = {}
    made: list[Step] = []

    def visit(node: Expr) -> Expr:
        found = names.get(node)
        if found is not None:
            return found
        below = children(node)
        new = rebuild(node, tuple([visit(child) for child in below])) if below else node
        again = long and uses[node] > 1 and sum(1 for _ in walk(node)) >= WORTH
        worth = (again or node in steep) and may_have_a_name(node, step, arrays)
        if worth and (tests := told_by(node, known[node])) is not None:
            part, new = temporary(step, guarded(tuple(map(visit, tests)), new), taken)
            taken.add(root(part.target))
            made.append(part)
        names[node] = new
        return new

    value = visit(step.value)
    yield from made
    yield replace(step, value=value)


def _uses(expr: Expr) -> Counter[Expr]:
    """In how many places of different nodes each node stands."""
    uses: Counter[Expr] = Counter()
    waiting, seen = [expr], {expr}
    while waiting:
        for child in children(waiting.pop()):
            uses[child] += 1
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return uses


Guards: TypeAlias = tuple[Expr, ...]


def guards(expr: Expr) -> dict[Expr, Guards]:
    """Of each part of a value, the conditions behind which it stands wherever it does; elsewhere nobody needs it."""
    left, waiting = _uses(expr), [expr]
    found: dict[Expr, Guards] = {expr: ()}
    while waiting:
        node = waiting.pop()
        for child, tests in _inside(node):
            behind = (*found[node], *(each for each in tests if each not in found[node]))
            before = found.get(child)
            found[child] = behind if before is None else tuple(each for each in before if each in behind)
            left[child] -= 1
            if not left[child]:
                waiting.append(child)
    return found


def told_by(node: Expr, tests: Guards) -> Guards | None:
    """Those conditions that decide whether a part is computed at an element of it; `None` if they have other indices.

    At some values of other indices it is computed, if they alone decide. Of `i != j` and `X(i) > 0`, both decide about
    `X(i) * Y(j)`, and about `X(i)` one cannot say.
    """
    own = index_names(node)
    tests = tuple(each for each in tests if has_read(each) or not index_names(each) or index_names(each) & own)
    return tests if all(index_names(each) <= own for each in tests) else None


def _inside(node: Expr) -> Iterator[tuple[Expr, Guards]]:
    """The operands, each with the conditions under which a choice computes it."""
    match node:
        case Binary(op="&&" | "||" as op, left=left, right=right):
            yield left, ()
            yield right, conjuncts(left if op == "&&" else negated(left))
        case Select(condition=condition, then=then, otherwise=otherwise):
            yield condition, ()
            yield then, conjuncts(condition)
            yield otherwise, conjuncts(negated(condition))
        case _:
            yield from ((child, ()) for child in children(node))


def may_have_a_name(node: Expr, step: Step, arrays: Mapping[str, Array]) -> bool:
    """Whether a part is a float as large as another array, whose subscripts stay inside."""
    reads = [each for each in walk(node) if isinstance(each, Read)]
    if not node.dtype.is_float or isinstance(node, Read) or not reads:
        return False
    names, ranges = index_names(node), {point.name: point.bounds for point in step.points}
    indices = [{at.name for at in read.indices if isinstance(at, IndexVar)} for read in reads]
    small = names <= set(step.indices or ()) or any(names <= each for each in indices)  # as large as another array
    fixed = not any(end.indices for name in names for end in ranges[name])
    return small and fixed and all(_has_element(read, ranges, arrays) for read in reads)


def _has_element(read: Read, ranges: Mapping[str, Bounds], arrays: Mapping[str, Array]) -> bool:
    """Whether a subscript that is an index or a number is always one of the array."""
    box = arrays[root(read.tensor)].box
    for at, (first, end) in zip(read.indices, box, strict=True):
        if isinstance(at, IndexVar):
            low, high = ranges[at.name]
        elif isinstance(at, Const):
            low, high = constant(int(at.value)), constant(int(at.value) + 1)
        else:
            return False
        if not (nonnegative(low - first) and nonnegative(end - high)):
            return False
    return True
