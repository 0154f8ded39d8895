"""Which schedule a program gets, and where a tuner searches.

`default_schedule` looks at every statement (`classify`) and asks the template of its class; a template is an ordinary sequence of
primitives, so a user can print it (`Schedule.to_python`), change it and apply it again.
"""

from __future__ import annotations

from tc_jupyter.program import Program
from tc_jupyter.ranges import Ranges

from .schedule import Schedule, schedule_of
from .target import Target
from .templates import general


def default_schedule(program: Program, ranges: Ranges, target: Target) -> Schedule:
    """The schedule that is used when nobody gives one: legal for every program, fast for the common classes.

    Args:
        target: the device; `interpreter` keeps every stage at root with its indices as loops.
    """
    schedule = schedule_of(program, ranges)
    if target.kind == "interpreter":
        return schedule
    for name in schedule.stages:
        schedule = general.default(schedule, name, target)
    return schedule
