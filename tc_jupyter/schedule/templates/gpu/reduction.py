"""Reductions: the threads of a block share the reduction loop of a result, or many blocks do.

    for k.inner < 256   # threadIdx.x
      S.rf = 0
      for k.outer: S.rf += f(256*k.outer + k.inner)
    S = sum of S.rf over the threads       # shuffles

A reduction to one number, or along columns, is split into chunks first: a kernel makes a partial result per chunk, a second one
combines them. The chunks do not depend on the device, so results are reproducible.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.ranges import from_expr
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import Target
from tc_jupyter.schedule.templates.streaming import added, step_of

from . import pointwise

THREADS = 256
CHUNK = THREADS * 32
"""Elements of a partial result: 32 loads per thread."""
COLUMN_CHUNK = 256
"""Rows of a partial result of column sums."""
WARP = 32
WARP_ROWS = 8
SHORT = 256
"""Rows of up to so many elements are reduced by one warp each."""


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule of a reduction at root; `None` for other statements and for reductions that are not read in a row."""
    del target
    stage = schedule.graph.stage(name)
    if not is_reduction(stage) or any(root.kind == "output" and root.name in _moving(stage) for root in stage.roots):
        return _columns(schedule, name) if is_reduction(stage) else None
    inner = stage.statement.reduction_indices[-1].name
    if not stage.statement.output_indices:
        return _to_one(schedule, name)
    if not reads_in_a_row(stage, inner):
        return None
    threads = threads_of(stage, sizes)
    schedule = across_threads(schedule, name, inner, threads)
    return bind_rows(schedule, name, [root.name for root in stage.roots if root.kind == "output"], threads)


def is_reduction(stage: Stage) -> bool:
    """Whether threads may share the reduction: its operator has an identity."""
    statement = stage.statement
    return bool(statement.reduction_indices) and statement.combine is None and statement.operator != "="


def reads_in_a_row(stage: Stage, index: str) -> bool:
    """Whether some read is contiguous along `index`."""
    reads = [read for read in stage.statement.reads() if read.indices]
    return any(step_of(from_expr(read.indices[-1]), index) == 1 for read in reads)


def _moving(stage: Stage) -> set[str]:
    """Indices along which some read is contiguous."""
    names = [root.name for root in stage.roots]
    return {name for name in names if reads_in_a_row(stage, name)}


def threads_of(stage: Stage, sizes: Mapping[str, int]) -> int:
    """Threads that share a row: a warp if it is known to be short, else a block."""
    root = stage.root(stage.statement.reduction_indices[-1].name)
    extent = root.dom[1] - root.dom[0]
    try:
        length = extent.evaluate(dict(sizes))
    except KeyError:
        return THREADS
    return WARP if length <= SHORT else THREADS


def _shareable(length: int) -> int:
    """The most threads that can share so many elements: a multiple of 32, or a power of two below."""
    return length // 32 * 32 if length >= 32 else 1 << max(0, length.bit_length() - 1)


def across_threads(schedule: Schedule, name: str, index: str, threads: int) -> Schedule:
    """`threads` threads with partial results of the loop over `index`; every `threads`-th element is one thread's.

    Raises:
        CompileError: TC410, the loop is too short to be shared.
    """
    stage = schedule.graph.stage(name)
    length = stage.root(index).dom[1] - stage.root(index).dom[0]
    if length.is_constant:
        threads = min(threads, _shareable(length.constant))
    others = [root.name for root in stage.roots if root.kind == "reduction" and root.name != index]
    before = schedule.split(name, index, threads)
    schedule = before.rfactor(name, f"{index}.inner")
    partial = added(before, schedule)
    outputs = [leaf for leaf in schedule.leaves(name) if leaf != f"{index}.inner"]
    schedule = schedule.reorder(name, *outputs, f"{index}.inner")
    schedule = schedule.bind(name, f"{index}.inner", "threadIdx.x").compute_at(partial, name, f"{index}.inner")
    rest = [leaf for leaf in schedule.leaves(partial) if leaf not in (*others, f"{index}.outer")]
    return schedule.reorder(partial, *rest, *others, f"{index}.outer").storage(partial, "local")


def bind_rows(schedule: Schedule, name: str, rows: list[str], threads: int) -> Schedule:
    """One row per block, or eight rows of a warp each; loops over rows become one, the innermost of warps excepted.

    A row of a warp has the last row index in parts of eight: what is known of a part of a fused loop is too little for registers.
    """
    outer, row = (rows, "") if threads > WARP else (rows[:-1], rows[-1])
    while len(outer) > 1:
        schedule = schedule.fuse(name, outer[0], outer[1])
        outer = [f"{outer[0]}.{outer[1]}.fused", *outer[2:]]
    for leaf in outer:
        schedule = schedule.bind(name, leaf, "blockIdx.y" if row else "blockIdx.x")
    if not row:
        return schedule
    schedule = schedule.split(name, row, WARP_ROWS).bind(name, f"{row}.outer", "blockIdx.x")
    return schedule.bind(name, f"{row}.inner", "threadIdx.y")


def _to_one(schedule: Schedule, name: str) -> Schedule:
    """Partial results of chunks by blocks, combined by one block."""
    reductions = [index.name for index in schedule.graph.stage(name).statement.reduction_indices]
    first = reductions[0]
    if len(reductions) == 1:
        schedule = schedule.split(name, first, CHUNK)
        leaf, inner = f"{first}.outer", f"{first}.inner"
    else:
        leaf, inner = first, reductions[-1]
    before, schedule = schedule, schedule.rfactor(name, leaf)
    partial = added(before, schedule)
    schedule = across_threads(schedule, partial, inner, THREADS).bind(partial, leaf, "blockIdx.x")
    return across_threads(schedule, name, leaf, THREADS)


def _columns(schedule: Schedule, name: str) -> Schedule | None:
    """Sums over rows of a matrix that is read once: partial results of chunks of rows, threads along the columns."""
    stage = schedule.graph.stage(name)
    outputs = {root.name for root in stage.roots if root.kind == "output"}
    reads = [read for read in stage.statement.reads() if len(read.indices) >= len(stage.roots)]
    if len(stage.statement.reduction_indices) != 1 or not reads or not outputs:
        return None
    index = stage.statement.reduction_indices[0].name
    if stage.root(index).dom[1].is_constant:
        return None
    before = schedule.split(name, index, COLUMN_CHUNK)
    schedule = before.rfactor(name, f"{index}.outer")
    partial = added(before, schedule)
    target = Target("cuda")
    schedule = pointwise.default(schedule, partial, target, {}) or schedule
    return pointwise.default(schedule, name, target, {})
