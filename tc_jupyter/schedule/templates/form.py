"""The loops of one stage as data, and the one function that makes them with primitives: a template says what it wants.

Worked example: with `Form({"i": 8, "j": 32}, ("i.outer",), ("k", "j.outer"), ("i.inner",), "j.inner")` the loops of a product are
`i.outer` (tasks), `k`, `j.outer`, `i.inner` (written out), `j.inner` (a vector).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tc_jupyter.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Form:
    """The loops of a stage, outermost first: bound ones, tasks, others, unrolled ones, the vector. All others stay where they are.

    Attributes:
        splits: loops that are taken apart, in this order, with the length of the inner one.
        tasks: loops that threads share; outside of `order`, or named in it.
        order: the loops inside.
        unrolled: loops that are written out; inside of `order`, or named in it.
        vector: the innermost loop.
        bound: loops over the blocks and threads of a GPU, as tasks.
    """

    splits: Mapping[str, int] = field(default_factory=dict[str, int])
    tasks: Sequence[str] = ()
    order: Sequence[str] = ()
    unrolled: Sequence[str] = ()
    vector: str | None = None
    bound: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def nest(self) -> tuple[str, ...]:
        """All loops that it names, outermost first."""
        outer, inner = (*self.bound, *self.tasks), (*self.unrolled, *([] if self.vector is None else [self.vector]))
        outer, inner = ([each for each in some if each not in self.order] for some in (outer, inner))
        return (*outer, *self.order, *inner)


def formed(schedule: Schedule, name: str, form: Form) -> Schedule:
    """The schedule in which the stage `name` has these loops.

    Raises:
        CompileError: a rule of schedules forbids it.
    """
    for axis, factor in form.splits.items():
        schedule = schedule.split(name, axis, factor)
    nest = form.nest
    if tuple(leaf for leaf in schedule.leaves(name) if leaf in nest) != nest:
        schedule = schedule.reorder(name, *nest)
    for leaf, axis in form.bound.items():
        schedule = schedule.bind(name, leaf, axis)
    schedule = schedule.parallel(name, *form.tasks).unroll(name, *form.unrolled)
    return schedule if form.vector is None else schedule.vectorize(name, form.vector)
