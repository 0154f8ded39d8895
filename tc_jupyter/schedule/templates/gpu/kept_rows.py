"""Rows that stay on chip: each thread keeps its part of a row in registers, so that global memory is read once.

    for i                               # blockIdx.x; a warp or a block per row
      A.cache(j) = A(i, j)              # registers of the thread that j belongs to: lanes of a vector, then threads
      m = max over the threads of A.cache(j)
      s = sum over the threads of exp(A.cache(j) - m)
      for j                             # threadIdx.x
        O(i, j) = exp(A.cache(j) - m) / s

The number of registers is a constant, so the length of a row must be at most one: calls are grouped by it (`row_class`), and
longer rows are read again for every statement (`rows.py`).

Source: T. Dao, "QuACK: getting memory-bound kernels to speed-of-light".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tc_jupyter.program import IndexVar, Read
from tc_jupyter.ranges import SizeExpr
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.infer_bound import limited
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import REGISTER_BYTES
from tc_jupyter.schedule.templates.stages import added

from . import pointwise


@dataclass(frozen=True, slots=True)
class Kept:
    """Which tensors stay on chip, and how a row is spread.

    Attributes:
        tensors: each has one row per row of the result, of `length` elements.
        threads, lanes: element `j` belongs to thread `j // lanes % threads`.
        most: the promise on sizes that makes the length bounded.
    """

    tensors: tuple[str, ...]
    threads: int
    lanes: int
    most: tuple[tuple[str, int], ...]


def kept_of(schedule: Schedule, name: str, members: list[str], most: Mapping[str, int]) -> Kept | None:
    """What a block can keep while it computes `members` and their user; `None` if rows may be too long or are read once only."""
    graph = inject_inline(schedule.graph)
    user = graph.stage(name)
    depth = len(graph.stage(members[0]).statement.output_indices)
    stages = [user, *map(graph.stage, members)]
    columns = [_column(stage, depth) for stage in stages]
    lengths = {stage.root(column).dom for stage, column in zip(stages, columns, strict=True) if column}
    if not columns[0] or len(lengths) != 1:
        return None
    counts: dict[str, int] = {}
    for stage, column in zip(stages, columns, strict=True):
        for tensor in dict.fromkeys(r.tensor for r in stage.statement.reads() if _is_row(stage, r, depth, column)):
            counts[tensor] = counts.get(tensor, 0) + 1
    tensors = tuple(tensor for tensor, count in counts.items() if count > 1)
    ((low, high),) = lengths
    extent = high - low
    sizes = {size: number for size, number in most.items() if size in extent.names}
    longest = extent.substitute(limited(tuple(sizes.items()))).limits[1]
    if not tensors or longest is None or low != 0:
        return None
    return _spread(schedule, user, tensors, columns[0], longest, extent, tuple(sizes.items()))


def _column(stage: Stage, depth: int) -> str:
    """The one index that runs along a row; empty if there is none or are several."""
    names = [index.name for index in stage.statement.output_indices[depth:]]
    names += [index.name for index in stage.statement.reduction_indices]
    return names[0] if len(names) == 1 else ""


def _is_row(stage: Stage, read: Read, depth: int, column: str) -> bool:
    """Whether a read is the element of the present row in the present column."""
    rows = [index.name for index in stage.statement.output_indices[:depth]]
    return bool(column) and [i.name if isinstance(i, IndexVar) else "" for i in read.indices] == [*rows, column]


def _spread(
    schedule: Schedule,
    user: Stage,
    tensors: tuple[str, ...],
    column: str,
    longest: int,
    extent: SizeExpr,
    most: tuple[tuple[str, int], ...],
) -> Kept | None:
    """As few threads as have enough registers; vectors where rows are long enough and end with a whole one."""
    sizes = [schedule.graph.program.tensor(tensor).dtype.bytes for tensor in tensors]
    widest = pointwise.lanes_of(schedule, user, column)
    for threads in tuning.BLOCKS:
        lanes = widest
        while lanes > 1 and (longest % lanes or threads * lanes > longest):
            lanes //= 2
        parts = -(-longest // (threads * lanes)) * lanes
        enough = not extent.is_constant or threads * lanes <= longest
        if enough and parts * sum(max(REGISTER_BYTES, size) for size in sizes) <= tuning.KEPT_BYTES:
            return Kept(tensors, threads, lanes, most)
    return None


def scheduled(schedule: Schedule, name: str, members: list[str], kept: Kept) -> Schedule:
    """The reductions over a row among `members`, the user's columns, and a copy of each tensor, which `attached` puts in place.

    Raises:
        CompileError: a rule of schedules forbids a step.
    """
    for size, number in kept.most:
        schedule = schedule.at_most(size, number)
    for tensor in kept.tensors:
        readers = [
            each.name for each in schedule.graph.stages if any(r.tensor == tensor for r in each.statement.reads())
        ]
        narrow = schedule.graph.program.tensor(tensor).dtype.bytes < REGISTER_BYTES
        schedule = schedule.cache_read(tensor, *readers, widen=narrow)
    for member in members:
        statement = schedule.graph.stage(member).statement
        if statement.reduction_indices:
            schedule = _reduction(schedule, member, statement.reduction_indices[-1].name, kept)
    return _columns(schedule, name, kept)


def _columns(schedule: Schedule, stage: str, kept: Kept) -> Schedule:
    """The innermost loop runs along a row: parts one after the other, threads, and lanes as a vector."""
    index = schedule.leaves(stage)[-1]
    schedule, thread = _split(schedule, stage, index, kept)
    schedule = schedule.unroll(stage, f"{index}.outer").bind(stage, thread, "threadIdx.x")
    return schedule.vectorize(stage, f"{index}.inner.inner") if kept.lanes > 1 else schedule


def _split(schedule: Schedule, stage: str, index: str, kept: Kept) -> tuple[Schedule, str]:
    """Split the loop along a row into parts, threads and lanes, in this order; also the loop over threads."""
    schedule, thread = schedule.split(stage, index, kept.threads * kept.lanes), f"{index}.inner"
    return (schedule.split(stage, thread, kept.lanes), f"{thread}.outer") if kept.lanes > 1 else (schedule, thread)


def _reduction(schedule: Schedule, name: str, index: str, kept: Kept) -> Schedule:
    """Partial results of the threads of a row, combined by all of them."""
    schedule, thread = _split(schedule, name, index, kept)
    schedule, partial = added(schedule, schedule.rfactor(name, thread))
    rows = [leaf for leaf in schedule.leaves(name) if leaf != thread]
    schedule = schedule.reorder(name, *rows, thread).bind(name, thread, "threadIdx.x")
    schedule = schedule.compute_at(partial, name, thread).storage(partial, "local")
    along = [leaf for leaf in (f"{index}.outer", f"{index}.inner.inner") if leaf in schedule.leaves(partial)]
    rest = [leaf for leaf in schedule.leaves(partial) if leaf not in along]
    schedule = schedule.reorder(partial, *rest, *along)
    schedule = schedule.unroll(partial, *along)
    return schedule


def attached(schedule: Schedule, name: str, place: str, kept: Kept) -> Schedule:
    """The copies in the registers of the threads, at the loop over rows."""
    for tensor in kept.tensors:
        copy = next(each for each in schedule.stages if each.startswith(f"{tensor}.cache"))
        rank = schedule.graph.program.tensor(copy).rank
        spread = ((rank - 1, kept.threads), *((d, 0) for d in range(rank)))
        spread = (*spread, (rank - 1, kept.lanes)) if kept.lanes > 1 else spread
        schedule = schedule.compute_at(copy, name, place).storage(copy, "threads", layout=spread)
        schedule = _columns(schedule, copy, kept)
    return schedule
