"""Statements that work row by row (softmax, normalisation): one kernel, a block or a warp per row.

    for i               # blockIdx.x
      m = max over the threads of A(i, j)
      s = sum over the threads of exp(A(i, j) - m)
      for j             # threadIdx.x
        O(i, j) = exp(A(i, j) - m) / s

What all threads of a row know (`m`, `s`) is in a register of each. Rows whose length is known to be bounded stay in registers
(`kept_rows.py`); elements of longer ones are read again, from the nearest cache.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import IndexVar
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import WARP, Target
from tc_jupyter.schedule.templates.stages import fused

from . import kept_rows, pointwise
from .reduction import (
    across_threads,
    bind_rows,
    in_one_loop,
    lanes_of,
    lies_across,
    lies_in_a_row,
    reads_in_a_row,
    shares_of,
)
from .side_by_side import is_sum


def default(
    schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int], most: Mapping[str, int]
) -> Schedule | None:
    """Attach the reductions over rows that only `name` and each other need; `None` if there are none.

    Args:
        most: sizes that no call exceeds.
    """
    user = schedule.graph.stage(name)
    if user.statement.operator != "=":
        return None
    members = _members(schedule, user)
    if not members:
        return None
    depth = len(schedule.graph.stage(members[0]).statement.output_indices)
    outputs = [index.name for index in user.statement.output_indices]
    kept = kept_rows.kept_of(schedule, name, members, most)
    if kept is not None:
        try:
            return _kept(schedule, name, members, outputs[:depth], kept)
        except CompileError:
            pass
    shares = [shares_of(schedule.graph.stage(member), target, sizes) for member in members if _sums(schedule, member)]
    if any(share.length is not None for share in shares):
        return None  # several blocks share a row
    return _scheduled(schedule, name, members, outputs[:depth], outputs[depth:], max(share.threads for share in shares))


def _sums(schedule: Schedule, member: str) -> bool:
    return is_sum(schedule.graph.stage(member))


def _members(schedule: Schedule, user: Stage) -> list[str]:
    """Temporaries with one value per row that are read for the present row only, in program order."""
    graph = inject_inline(schedule.graph)
    user = graph.stage(user.name)
    outputs = [index.name for index in user.statement.output_indices]
    found: list[str] = []
    depth: int | None = None
    for stage in reversed(graph.stages[: graph.position(user.name)]):
        rank = len(stage.statement.output_indices)
        users = graph.consumers(stage.name)
        fits = depth is None or rank == depth
        inside = bool(users) and all(each.name == user.name or each.name in found for each in users)
        plain = stage.attach.kind == "root" and not stage.relations and not stage.annotations
        if not (fits and inside and plain and 0 < rank <= len(outputs)) or stage.name in graph.outputs:
            continue
        if len(graph.stages_on(stage.target)) != 1 or not all(_same_row(stage, each, rank) for each in users):
            continue
        if is_sum(stage) and (
            lies_across(stage) or not reads_in_a_row(stage, stage.statement.reduction_indices[-1].name)
        ):
            continue
        if not is_sum(stage) and stage.statement.reduction_indices:
            continue
        found.append(stage.name)
        depth = rank
    return found[::-1] if any(_sums(schedule, name) for name in found) else []


def _same_row(stage: Stage, user: Stage, rank: int) -> bool:
    """Whether every read of the stage by `user` is at the first indices of the user's own result."""
    row = tuple(index.name for index in user.statement.output_indices[:rank])
    reads = [read for read in user.statement.reads() if read.tensor == stage.target]
    ranges = [root.dom for root in stage.roots if root.kind == "output"]
    theirs = [root.dom for root in user.roots if root.kind == "output"][:rank]
    return ranges == theirs and all(
        tuple(i.name if isinstance(i, IndexVar) else "" for i in read.indices) == row for read in reads
    )


def _scheduled(
    schedule: Schedule, name: str, members: list[str], rows: list[str], columns: list[str], threads: int
) -> Schedule:
    for member in members:
        if _sums(schedule, member):
            lanes = lanes_of(schedule.graph.stage(member))
            schedule, index = in_one_loop(schedule, member)
            schedule = across_threads(schedule, member, index, threads, lanes)
    if columns:
        user = schedule.graph.stage(name)
        lanes, last = pointwise.lanes_of(schedule, user, columns[-1]), columns[-1]
        if lies_in_a_row(schedule, user, columns):
            schedule, (last,) = fused(schedule, name, columns)
        schedule = schedule.split(name, last, threads * lanes)
        thread = f"{last}.inner"
        if lanes > 1:
            schedule = schedule.split(name, thread, lanes).vectorize(name, f"{thread}.inner")
            thread = f"{thread}.outer"
        schedule = schedule.bind(name, thread, "threadIdx.x")
    return _attached(bind_rows(schedule, name, rows, threads), name, members, threads)


def _kept(schedule: Schedule, name: str, members: list[str], rows: list[str], kept: kept_rows.Kept) -> Schedule:
    schedule = kept_rows.scheduled(schedule, name, members, kept)
    schedule = _attached(bind_rows(schedule, name, rows, kept.threads), name, members, kept.threads)
    return kept_rows.attached(schedule, name, _row(schedule, name, kept.threads), kept)


def _row(schedule: Schedule, name: str, threads: int) -> str:
    """The loop inside which one row is computed: over blocks, or over the warps of a block."""
    axis = "blockIdx.x" if threads > WARP else "threadIdx.y"
    return next(leaf for leaf, kind in schedule.graph.stage(name).annotations if kind == axis)


def _attached(schedule: Schedule, name: str, members: list[str], threads: int) -> Schedule:
    """The reductions inside the loop over rows; each thread holds their results."""
    place = _row(schedule, name, threads)
    for member in reversed(members):
        schedule = schedule.compute_at(member, name, place).storage(member, "local")
    return schedule
