"""Sums whose results lie side by side in what is read: column sums, gathered rows, partial results of other kernels.

    for rows, columns:                  # blockIdx
      for parts p, columns:             # threadIdx.y, threadIdx.x
        O.rf.cache[4] = 0               # registers: a vector of results
        for l.outer: O.rf.cache[...] += T(I(8*l.outer + p), ...)
        O.rf[p][...] = O.rf.cache[...]  # shared memory
      O.cache[4] = sum over p of O.rf[p][...]
      O(...) = O.cache[...]             # the statement, or the pointwise statement that uses it

How many threads share a sum, and whether blocks have parts of it, says `shared_sums`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from tc_jupyter.program import IndexVar
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, constant_extent
from tc_jupyter.schedule.target import VECTOR_BYTES, WARP, Target
from tc_jupyter.schedule.templates.contraction import epilogue_of
from tc_jupyter.schedule.templates.stages import added, copied_out, fused
from tc_jupyter.schedule.templates.streaming import steps_along

from . import shared_sums
from .limits import fits_shared


@dataclass(frozen=True, slots=True)
class Block:
    """Threads along the columns, threads that share a sum, rows of results, and results of a thread."""

    columns: int
    parts: int
    rows: int
    lanes: int


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule of a sum beside others, or `None`: for other statements, and where a thread per result is as good."""
    stage = schedule.graph.stage(name)
    if not is_sum(stage) or not stage.statement.output_indices:
        return None
    if _shares(schedule, stage, target, sizes) == shared_sums.Shares(1, None) and lanes_of(schedule, stage) == 1:
        return None
    return summed(schedule, name, epilogue_of(schedule, name), target, sizes)


def summed(schedule: Schedule, name: str, user: str | None, target: Target, sizes: Mapping[str, int]) -> Schedule:
    """The sum `name`, written by itself or by the pointwise statement `user`.

    Raises:
        CompileError: a rule of schedules forbids a step.
    """
    stage = schedule.graph.stage(name)
    index, lanes = shared_index(stage, sizes), lanes_of(schedule, stage)
    share = _shares(schedule, stage, target, sizes)
    if share.length is None:
        return combined(schedule, name, user, index, block_of(stage, share.threads, lanes, target, sizes))
    schedule, part = shared_sums.in_parts(schedule, name, index, share.length)
    block = block_of(schedule.graph.stage(part), share.threads, lanes, target, sizes)
    schedule = combined(schedule, part, None, f"{index}.inner", block)
    return summed(schedule, name, user, target, sizes)


def _shares(schedule: Schedule, stage: Stage, target: Target, sizes: Mapping[str, int]) -> shared_sums.Shares:
    steps = shared_sums.extents(stage, "reduction", sizes)[shared_index(stage, sizes)]
    results, lanes = shared_sums.results_of(stage, sizes), lanes_of(schedule, stage)
    *_, columns = shared_sums.extents(stage, "output", sizes).values()
    side = columns / -(-columns // (WARP * lanes))
    around = shared_sums.steps_of(stage, sizes) // steps
    sums = shared_sums.Sums(results, steps, shared_sums.bytes_of_step(stage), around, lanes, side)
    return shared_sums.shares(sums, target, lambda count: count <= WARP)


def is_sum(stage: Stage) -> bool:
    """Whether partial results of a stage can be combined: its operator has an identity."""
    statement = stage.statement
    return bool(statement.reduction_indices) and statement.combine is None and statement.operator != "="


def shared_index(stage: Stage, sizes: Mapping[str, int]) -> str:
    """The longest reduction index, the outermost of those that are as long."""
    lengths = shared_sums.extents(stage, "reduction", sizes)
    return max(lengths, key=lambda index: lengths[index])


def lanes_of(schedule: Schedule, stage: Stage) -> int:
    """Results of a thread: a vector of the widest type, if every read along the last index is one in a row that begins with it."""
    last, program = stage.statement.output_indices[-1].name, schedule.graph.program
    reads = [read for read in stage.statement.reads() if read.indices]
    plain = all(
        step == 0 or read.indices[-1] == IndexVar(last)
        for read, (step, _) in zip(reads, steps_along(stage, last), strict=True)
    )
    if not plain or any(step not in (0, 1) or others for step, others in steps_along(stage, last)):
        return 1
    widest = max(program.tensor(stage.target).dtype.compute.bytes, shared_sums.bytes_of_step(stage))
    fixed = constant_extent(stage, last)
    return 1 if fixed is not None and fixed % (VECTOR_BYTES // widest) else max(1, VECTOR_BYTES // widest)


def block_of(stage: Stage, parts: int, lanes: int, target: Target, sizes: Mapping[str, int]) -> Block:
    """As many threads along the columns as there are, up to a warp, and rows, as long as there are blocks for the whole device."""
    *rows, columns = shared_sums.extents(stage, "output", sizes).values()
    wide = 1
    while wide < WARP and wide * lanes < columns:
        wide *= 2
    others = prod(rows)
    while wide > tuning.LINE_THREADS and others * -(-columns // (wide * lanes)) < target.multiprocessors:
        wide //= 2
    high = 1
    blocks = others * -(-columns // (wide * lanes))
    while (
        rows
        and wide * parts * high < tuning.THREADS
        and high < min(8, rows[-1])
        and blocks >= 2 * high * target.multiprocessors
    ):
        high *= 2
    return Block(wide, parts, high, lanes)


def combined(schedule: Schedule, name: str, user: str | None, index: str, block: Block) -> Schedule:
    """The sum `name`, of which the threads of a block share the loop over `index`, written by itself or by `user`.

    Raises:
        CompileError: a rule of schedules forbids a step.
    """
    if block.parts > 1:
        found = _shared(schedule, name, user, index, block)
        # what is known of the parts of a fused loop may be too little for an array
        return found if fits_shared(found) else combined(schedule, name, user, index, replace(block, parts=1))
    return _alone(schedule, name, user, block)[0]


def _alone(schedule: Schedule, name: str, user: str | None, block: Block) -> tuple[Schedule, str, str]:
    """A thread for each vector of results; also the stage that writes them, and the innermost loop over blocks."""
    schedule, copy, total, theirs = copied_out(schedule, name, user)
    schedule, place, thread = _result(schedule, copy, [*theirs.values()], block)
    return _registers(schedule.compute_at(total, copy, thread), total, [*theirs], block), copy, place


def _shared(schedule: Schedule, name: str, user: str | None, index: str, block: Block) -> Schedule:
    """Threads that have parts of the sums, which others find in shared memory."""
    names = [index.name for index in schedule.graph.stage(name).statement.output_indices]
    schedule = schedule.split(name, index, block.parts)
    schedule, part = added(schedule, schedule.rfactor(name, f"{index}.inner"))
    index = f"{index}.inner"
    schedule, copy, place = _alone(schedule, name, user, block)
    schedule, own = added(schedule, schedule.cache_write(part))
    schedule = schedule.compute_at(part, copy, place).storage(part, "shared")
    schedule, thread = _parts(schedule, part, index, names, block)
    return _registers(schedule.compute_at(own, part, thread), own, [index, *names], block)


def _result(schedule: Schedule, copy: str, names: list[str], block: Block) -> tuple[Schedule, str, str]:
    """Blocks and threads over the results; also the innermost loop over blocks, and over threads."""
    *outer, last = names
    row = ""
    if outer and block.rows > 1:
        row = outer.pop()
        schedule = schedule.split(copy, row, block.rows)
        outer.append(f"{row}.outer")
    schedule = schedule.split(copy, last, block.columns * block.lanes)
    schedule, thread, lane = _vector(schedule, copy, f"{last}.inner", block)
    threads = [*([f"{row}.inner"] if row else []), thread]
    schedule = schedule.reorder(copy, *outer, f"{last}.outer", *threads, *lane)
    schedule, first = fused(schedule, copy, outer[:-1])
    outer = [*first, *outer[-1:]]
    axes = dict(zip(reversed(outer), ("blockIdx.x", "blockIdx.z"), strict=False))
    axes |= {f"{last}.outer": "blockIdx.y" if outer else "blockIdx.x"}
    axes |= zip(threads, ("threadIdx.z", "threadIdx.x") if row else ("threadIdx.x",), strict=True)
    for leaf, axis in axes.items():
        schedule = schedule.bind(copy, leaf, axis)
    return schedule, f"{last}.outer", thread


def _parts(schedule: Schedule, part: str, index: str, names: list[str], block: Block) -> tuple[Schedule, str]:
    """The threads that have parts; also the innermost loop over them."""
    *outer, last = names
    schedule, thread, lane = _vector(schedule, part, last, block)
    schedule = schedule.reorder(part, index, *outer, thread, *lane)
    schedule = schedule.bind(part, index, "threadIdx.y").bind(part, thread, "threadIdx.x")
    return schedule.bind(part, outer[-1], "threadIdx.z") if outer and block.rows > 1 else schedule, thread


def _vector(schedule: Schedule, stage: str, leaf: str, block: Block) -> tuple[Schedule, str, tuple[str, ...]]:
    """A loop as one over threads and one over the lanes of a vector."""
    if block.lanes == 1:
        return schedule, leaf, ()
    schedule = schedule.split(stage, leaf, block.lanes)
    return schedule.vectorize(stage, f"{leaf}.inner"), f"{leaf}.outer", (f"{leaf}.inner",)


def _registers(schedule: Schedule, stage: str, names: list[str], block: Block) -> Schedule:
    """A vector of sums of one thread."""
    reductions = [leaf for leaf in schedule.leaves(stage) if leaf not in names]
    schedule = schedule.reorder(stage, *names[:-1], *reductions, names[-1])
    if block.lanes > 1:
        schedule = schedule.split(stage, names[-1], block.lanes).vectorize(stage, f"{names[-1]}.inner")
    return schedule.storage(stage, "local")
