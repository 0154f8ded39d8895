"""Which schedule a program gets, and where a tuner searches.

`default_schedule` looks at every statement and asks the template of its class; a template is an ordinary sequence of
primitives, so a user can print it (`Schedule.to_python`), change it and apply it again.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.program import Program
from tc_jupyter.ranges import Ranges

from .schedule import Schedule, schedule_of
from .target import Target
from .templates import contraction, general, reduction, rows, streaming

Sized = tuple[str, int]


def default_schedule(
    program: Program, ranges: Ranges, target: Target, sizes: Mapping[str, int] | None = None
) -> Schedule:
    """The schedule that is used when nobody gives one: legal for every program and all sizes, fast for the common classes.

    Args:
        target: the device; `interpreter` keeps every stage at root with its indices as loops.
        sizes: typical sizes, to choose tiles; the schedule is right for all others.
    """
    schedule = schedule_of(program, ranges)
    match target.kind:
        case "cpu":
            return _for_cpu(schedule, target, sizes or {})
        case "cuda":
            for name in schedule.stages:
                schedule = general.default(schedule, name, target)
            return schedule
        case _:
            return schedule


def _for_cpu(schedule: Schedule, target: Target, sizes: Mapping[str, int]) -> Schedule:
    names = schedule.stages
    for name in names:
        found = contraction.default(schedule, name, target, sizes)
        schedule = schedule if found is None else found
    schedule = rows.fuse_rows(schedule)
    for name in names:
        stage = schedule.graph.stage(name)
        if stage.attach.kind == "root" and not stage.relations and not stage.annotations:
            schedule = _root_on_cpu(schedule, name, target)
    return schedule


def _root_on_cpu(schedule: Schedule, name: str, target: Target) -> Schedule:
    """The first template that takes the statement; stages inside others keep their plain loops."""
    if any(True for _ in schedule.graph.attached(name)):
        return general.default(schedule, name, target)
    for template in (reduction.default, streaming.default):
        found = template(schedule, name, target)
        if found is not None:
            return found
    return general.default(schedule, name, target)


SMALL = 8
"""Sizes up to this one, of loops that are combined over, are constants of the code: windows, small factors."""


def size_class(
    program: Program, ranges: Ranges, sizes: Mapping[str, int]
) -> tuple[tuple[Sized, ...], tuple[Sized, ...]]:
    """What code for a call may assume of its sizes: constants, and typical values to choose tiles by.

    Calls of one class share their code. Small extents of reductions are constants; other sizes of programs with reductions are
    known up to a factor of two, and whether they are multiples of 64. Programs without reductions have one class.

    Returns:
        Names with values that the code is made for, and names with typical values.
    """
    reduced: set[str] = set()
    for found in ranges.indices.values():
        for index in found:
            if index.kind == "reduction" and index.lower is not None and index.upper is not None:
                reduced |= (index.upper - index.lower).names
    if not reduced:
        return (), ()
    known = [(name, sizes[name]) for name in program.sizes if name in sizes]
    constants = tuple((name, value) for name, value in known if name in reduced and 1 <= value <= SMALL)
    fixed = {name for name, _ in constants}
    return constants, tuple((name, _typical(value)) for name, value in known if name not in fixed)


def _typical(value: int) -> int:
    """A value of the same class: the next power of two, less one if `value` is large and no multiple of 64."""
    power = 1 << max(0, value - 1).bit_length()
    return power if value <= 64 or value % 64 == 0 else power - 1
