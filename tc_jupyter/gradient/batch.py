"""A def for many arguments at once: one more index in front of every array that varies, as `jax.vmap` and `torch.vmap` want it.

Worked example: of `Y(i) = X(i) * W(i)`, with an `X` for each call and one `W`, it is `Y(j, i) = X(j, i) * W(i)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc_jupyter.program import Expr, IndexVar, Read, rewrite
from tc_jupyter.ranges import Datum, constant, size

from .draft import Derived, Draft
from .steps import Point, Step, Steps, refuse, root, version


def batched(about: Steps, name: str, along: Sequence[str]) -> Derived:
    """The def whose parameters of these names, and results that depend on them, have one more dimension in front.

    Raises:
        CompileError: TC250, a range or a size depends on such a parameter.
    """
    many = varying(about, along)
    _check(about, many)
    draft = Draft(about)
    own, count, at = draft.name(name), size(draft.name("B")), draft.index()
    bounds = (constant(0), count)
    arrays = {
        each: replace(array, box=(bounds, *array.box)) if each in many else array
        for each, array in about.arrays.items()
    }
    steps = tuple(_step(step, many, Point(at, *bounds)) for step in about.steps)
    about = draft.about = replace(about, arrays=arrays, steps=steps)
    draft.arrays |= arrays
    called = dict[str, str]()
    for result, (found, shift) in about.results.items():
        far = (*[constant(0)] * (found in many), *shift)
        source = version(found, about.last[found]) if found in about.last else found
        if draft.is_direct(result):
            called[source] = result
            draft.arrays[result] = replace(arrays[found], name=result)
        else:
            draft.moved(result, source, arrays[found], far)
    moved, given = tuple(draft.steps), about.program.results
    forward = draft.needed(moved, called)
    derived = Derived(own, about, forward, moved, (), given, draft.arrays, (), called, draft.spelling)
    return replace(derived, count=count, many=many)


def varying(about: Steps, along: Sequence[str]) -> frozenset[str]:
    """The tensors that depend on some parameters, those included."""
    many = frozenset(along)
    while True:
        more = many | {root(step.target) for step in about.steps if _reads(step, many)}
        if more == many:
            return many
        many = more


def _reads(step: Step, many: frozenset[str]) -> bool:
    return any(root(read.tensor) in many for read in step.reads())


def _check(about: Steps, many: frozenset[str]) -> None:
    """Refuse ranges and extents that would differ from call to call."""
    program = about.program
    if any(name in program.integer_scalars for name in many):
        raise refuse(program, "a number on which sizes may depend differs from call to call")
    ends = [end for step in about.steps for point in step.points for end in point.bounds]
    ends += [end for array in about.arrays.values() for bounds in array.box for end in bounds]
    if any(isinstance(atom, Datum) and atom.tensor in many for end in ends for atom in end.atoms()):
        raise refuse(program, "a range depends on elements that differ from call to call")


def _step(step: Step, many: frozenset[str], point: Point) -> Step:
    """A statement with the index in front of what varies."""
    if root(step.target) not in many:
        return step
    at = IndexVar(point.name)

    def rule(node: Expr) -> Expr | None:
        if not isinstance(node, Read) or root(node.tensor) not in many:
            return None
        return replace(node, indices=(at, *node.indices))

    left, conditions = ((rewrite(each, rule) for each in part) for part in (step.left, step.conditions))
    value = rewrite(step.value, rule)
    return replace(step, points=(point, *step.points), left=(at, *left), value=value, conditions=tuple(conditions))
