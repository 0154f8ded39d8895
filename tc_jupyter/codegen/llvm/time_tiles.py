"""Steps of a block that read a few rows around the one they write are done several at a time, while the rows are in the cache.

Rows are cut into chunks. Of each chunk, threads first take what several steps can make from the chunk alone, which is fewer rows in
every step; then what is missing around the edges between chunks, where the last row is beside the first one. Inside of a chunk some
rows are taken through all of these steps, then the next ones. No row is computed twice, and storage stays as it is.

Worked example, where a step reads one row to either side and `a`, `b` are the ends of a chunk:

    for t in 0:T                       for g in groups of steps
      for i in 0:N (parallel)            for chunks (parallel)
        V[t % 2, i] = ...                  for waves w, for t in the group, s = 0, 1, ...
                                ->           for i in max(a + s, a + w*rows - s) : min(b - s, a + (w + 1)*rows - s) : ...
                                         for edges e (parallel)
                                           for t in the group, s = 0, 1, ...
                                             for i in e - s : e + s, modulo N : ...

What a row of a later step replaces is not needed any more, since steps grow by as many rows as any of them reads to either side, in
either direction of time. Source: Strzodka et al., "Cache accurate time skewing in iterative stencil computations", 2011; Grosser et
al., "Split tiling for GPUs", 2013.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tc_jupyter.loops import Block, Buffer, For, If, Kernel, Stmt, Store, walk_statements
from tc_jupyter.loops.ir import expressions
from tc_jupyter.program import Binary, DType, Expr, IndexVar, Read, Select, int64, walk
from tc_jupyter.program.integers import ceil_div, index_names, maximum, minimum, plus, times
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.target import Target

from .polynomial import constant_value

_ZERO, _ONE = int64(0), int64(1)


@dataclass(frozen=True, slots=True)
class Tiled:
    """A loop over groups of steps.

    Attributes:
        worthwhile: whether the arrays leave the last cache and have rows enough.
        loop: over groups; its body is two phases that threads share.
    """

    worthwhile: Expr
    loop: For


@dataclass(frozen=True, slots=True)
class _Member:
    """A loop over rows, of one statement of a step, and how far from its row elements are read and written."""

    loop: For
    stores: frozenset[str]
    reach: tuple[tuple[str, int], ...]


def time_tiled(kernel: Kernel, loop: For, phases: Sequence[Stmt], target: Target) -> Tiled | None:
    """The loop over steps in groups; `None` where a step reads more than a few rows around the one that it writes."""
    rows = [stmt for stmt in phases if isinstance(stmt, For) and stmt.kind == "parallel" and stmt.min == _ZERO]
    if not rows or len(rows) < len(phases) or any(each.extent != rows[0].extent for each in rows):
        return None
    buffers = _row_dimensions(kernel, rows)
    members = [_member(each, buffers) for each in rows] if buffers else []
    found = [each for each in members if each is not None]
    if not found or len(found) < len(members):
        return None
    starts, slope = _slopes(found)
    sizes = [_others(kernel_buffer, dimension) for kernel_buffer, dimension in buffers.values()]
    row = sizes[0]
    for each in sizes[1:]:
        row = plus(row, each)
    return _groups(loop, found, starts, slope, maximum(_ONE, row), target)


def _row_dimensions(kernel: Kernel, rows: Sequence[For]) -> dict[str, tuple[Buffer, int]]:
    """The buffers that a step writes, with the dimension of the rows; empty where there is none, or one that is not the same."""
    known = {buffer.name: buffer for buffer in kernel.buffers}
    found: dict[str, tuple[Buffer, int]] = {}
    for row in rows:
        for stmt in walk_statements(row.body):
            if not isinstance(stmt, For | If | Store | Block):
                return {}  # memory of its own, checks and intrinsics
            if isinstance(stmt, Store):
                places = [n for n, at in enumerate(stmt.indices) if row.var in index_names(at)]
                buffer = known.get(stmt.buffer)
                if buffer is None or len(places) != 1 or stmt.indices[places[0]] != IndexVar(row.var):
                    return {}
                planes = constant_value(buffer.shape[0])
                if places[0] == 0 or planes is None or planes > tuning.FEW or buffer.shape[places[0]] != row.extent:
                    return {}
                if found.setdefault(stmt.buffer, (buffer, places[0])) != (buffer, places[0]):
                    return {}
    return found


def _member(row: For, buffers: dict[str, tuple[Buffer, int]]) -> _Member | None:
    reach: dict[str, int] = {}
    stores: set[str] = set()
    for stmt in walk_statements(row.body):
        if isinstance(stmt, Store):
            stores.add(stmt.buffer)
            reach.setdefault(stmt.buffer, 0)
        for read in _reads(stmt):
            if read.tensor in buffers:
                far = _reach(read.indices[buffers[read.tensor][1]], row.var, row.extent)
                if far is None:
                    return None
                reach[read.tensor] = max(reach.get(read.tensor, 0), -far[0], far[1])
    return _Member(row, frozenset(stores), tuple(reach.items()))


def _reads(stmt: Stmt) -> Iterator[Read]:
    return (node for node in chain.from_iterable(map(walk, expressions(stmt))) if isinstance(node, Read))


def _reach(at: Expr, row: str, count: Expr) -> tuple[int, int] | None:
    """How far a subscript is from a row in `0:count`, at least and at most, where the last row is beside the first one."""
    if at == IndexVar(row):
        return 0, 0
    if not isinstance(at, Binary):
        return None
    inner, number = _reach(at.left, row, count), constant_value(at.right)
    if inner is None:
        return None
    low, high = inner
    if at.op == "%" and at.right == count:
        return inner
    if at.op == "min" and (end := _behind(at.right, count)) is not None:
        return min(low, end + 1), high
    if number is None:
        return None
    match at.op:
        case "+":
            return low + number, high + number
        case "-":
            return low - number, high - number
        case "max":
            return low, max(high, number)
        case _:
            return None


def _behind(end: Expr, count: Expr) -> int | None:
    """What is added to the number of rows."""
    if end == count:
        return 0
    if (
        isinstance(end, Binary)
        and end.op in "+-"
        and end.left == count
        and (k := constant_value(end.right)) is not None
    ):
        return k if end.op == "+" else -k
    return None


def _slopes(members: Sequence[_Member]) -> tuple[list[int], int]:
    """By how many rows each statement of a step is behind the first one, and each step behind the step before."""
    starts: list[int] = []
    for number, member in enumerate(members):
        starts.append(
            max([starts[k] + far for k, early in enumerate(members[:number]) for far in _between(early, member)] or [0])
        )
    pairs = [
        abs(starts[k] - starts[m]) + far
        for k, writer in enumerate(members)
        for m, user in enumerate(members)
        for far in _between(writer, user)
    ]
    return starts, max(1, *pairs)


def _between(one: _Member, other: _Member) -> list[int]:
    """How far apart the rows are that two statements have in common, one of which writes them."""
    return [far for name, far in other.reach if name in one.stores] + [
        far for name, far in one.reach if name in other.stores
    ]


def _others(buffer: Buffer, dimension: int) -> Expr:
    """The bytes of a row of a buffer, in all steps that are in memory."""
    size: Expr = int64(buffer.dtype.bytes)
    for number, extent in enumerate(buffer.shape):
        size = size if number == dimension else times(size, extent)
    return size


def _groups(
    loop: For, members: Sequence[_Member], starts: Sequence[int], slope: int, row: Expr, target: Target
) -> Tiled:
    count, last = members[0].loop.extent, int64(max(starts))
    # All of the second cache. 16 steps of 4096 x 4096 `float`, one thread, three runs on a busy machine, took 0.47 to 0.59 of calls
    # (`wrap`) and 0.39 to 0.55 (`clamp`); with half of it 0.58 to 0.71 and 0.51 to 0.54.
    fitting = _op("//", int64(target.l2_bytes), row)
    together = maximum(
        _ONE,
        minimum(int64(tuning.STEPS_TOGETHER), _op("//", _op("-", _op("//", fitting, int64(2)), last), int64(slope))),
    )
    missing = plus(times(together, int64(slope)), last)
    height = maximum(_ONE, _op("-", fitting, missing))
    chunks = maximum(_ONE, minimum(int64(tuning.SHARES), _op("//", count, times(int64(tuning.ONCE_IN), missing))))
    total = maximum(_ZERO, loop.extent)
    groups = maximum(_ONE, ceil_div(total, together))  # of as many steps each, but for one

    def begun(group: Expr) -> Expr:
        return _op("//", times(group, total), groups)

    number = IndexVar(f"{loop.var}.group")
    first = begun(number)
    steps = replace(loop, min=plus(loop.min, first), extent=_op("-", begun(plus(number, _ONE)), first))
    taken = _op("-", IndexVar(loop.var), steps.min)
    behind = [plus(times(taken, int64(slope)), int64(start)) for start in starts]
    rows = members[0].loop.var
    chunk, wave, side = (IndexVar(f"{rows}.{name}") for name in ("chunk", "wave", "side"))

    def edge(place: Expr) -> Expr:
        return _op("//", times(place, count), chunks)

    begin, end = edge(chunk), edge(plus(chunk, _ONE))
    inside: list[Stmt] = []
    for member, off in zip(members, behind, strict=True):
        here = plus(begin, times(wave, height))
        low = maximum(plus(begin, off), _op("-", here, off))
        high = minimum(_op("-", end, off), _op("-", plus(here, height), off))
        inside.append(_rows(member, low, _op("-", high, low)))
    waves = For(wave.name, _ZERO, ceil_div(_op("-", end, begin), height), Block((_steps(steps, inside),)))
    around: list[Stmt] = []
    for member, off in zip(members, behind, strict=True):
        upper = Select(_test("==", chunk, _ZERO), count, begin, DType.INT64)
        low = Select(_test("==", side, _ZERO), _op("-", upper, off), begin, DType.INT64)
        around.append(For(side.name, _ZERO, int64(2), Block((_rows(member, low, off),))))
    phases = (
        For(chunk.name, _ZERO, chunks, Block((waves,)), "parallel"),
        For(chunk.name, _ZERO, chunks, Block((_steps(steps, around),)), "parallel"),
    )
    tests = (
        _test(">", times(count, row), int64(target.llc_bytes)),
        _test(">=", together, int64(2)),
        _test(">=", count, times(int64(tuning.ONCE_IN), missing)),
    )
    worthwhile = _op("&&", _op("&&", tests[0], tests[1], DType.BOOL), tests[2], DType.BOOL)
    return Tiled(worthwhile, replace(loop, var=number.name, min=_ZERO, extent=groups, body=Block(phases)))


def _rows(member: _Member, low: Expr, length: Expr) -> For:
    return replace(member.loop, min=low, extent=length, kind="serial")


def _steps(steps: For, body: Sequence[Stmt]) -> For:
    return replace(steps, body=Block(tuple(body)))


def _op(op: str, left: Expr, right: Expr, dtype: DType = DType.INT64) -> Expr:
    return Binary(op, left, right, dtype)


def _test(op: str, left: Expr, right: Expr) -> Expr:
    return Binary(op, left, right, DType.BOOL)


__all__ = ["Tiled", "time_tiled"]
