"""What several templates do with stages and their loops: copies, and many loops as one.

Worked example: `schedule, copy = added(schedule, schedule.cache_read("A", "C"))` is the schedule with a copy of `A`, and its name.
"""

from __future__ import annotations

from tc_jupyter.schedule.schedule import Schedule


def added(before: Schedule, after: Schedule) -> tuple[Schedule, str]:
    """A schedule with the name of the stage that one step has added."""
    (name,) = set(after.stages) - set(before.stages)
    return after, name


def copied_out(schedule: Schedule, name: str, user: str | None) -> tuple[Schedule, str, str, dict[str, str]]:
    """A schedule, the stage that writes results to memory, and the one that adds them up: `name` itself for a pointwise `user`
    of its results, else a new stage before it; also the indices of the former by those of `name`.
    """
    own = [index.name for index in schedule.graph.stage(name).statement.output_indices]
    cache, copy = name, user or name
    if user is None:
        schedule, cache = added(schedule, schedule.cache_write(name))
    theirs = [index.name for index in schedule.graph.stage(copy).statement.output_indices]
    return schedule, copy, cache, dict(zip(own, theirs, strict=True))


def fused(schedule: Schedule, name: str, leaves: list[str]) -> tuple[Schedule, list[str]]:
    """Neighbouring loops as one; none stay none."""
    while len(leaves) > 1:
        schedule = schedule.fuse(name, leaves[0], leaves[1])
        leaves = [f"{leaves[0]}.{leaves[1]}.fused", *leaves[2:]]
    return schedule, leaves
