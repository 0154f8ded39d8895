"""Long streams begin where a cache line of their result does.

Only whole lines are written past the caches (`stores.py`). Arrays of NumPy begin 16 bytes behind the start of a page, so an array
that is given as `out=` has no vector that begins with a line, and was written into the caches.

Worked example: of `Y(i) = 2*X(i)` with `Y` at the address 16 mod 64, the first task computes the 12 elements before the first line,
and then all tasks share the others, in vectors that are whole lines: they get pointers to `X(12)` and `Y(12)`, and the number of
elements that are left.

So a kernel must be one loop over vectors that reads and writes single elements and the elements at its own position only.

Measured on an AMD EPYC processor (Zen 4), arrays of 64 MB, into one of NumPy, on one thread and two, over the time without: copy
0.73 and 0.76, of bytes 0.73 and 0.74, `exp` 0.80 and 0.74, `float16` to `float32` 0.80 and 0.87. That is what a new result takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tc_jupyter.loops import Block, Buffer, For, Store, walk_statements
from tc_jupyter.loops.ir import accesses
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Size, int64, rewrite
from tc_jupyter.program.integers import ceil_div, has_read, maximum, minimum, times
from tc_jupyter.schedule import Target

from .limits import upper_limit
from .polynomial import mentions
from .strips import is_stream, one_loop
from .tasks import Tasks

POINTS = "points.left"
"""The size that stands for the number of points that are left; no size of a program has such a name."""


@dataclass(frozen=True, slots=True)
class LineStart:
    """How the tasks of a kernel begin at the start of a line.

    Attributes:
        result: the buffer whose lines count.
        moved: the buffers of which a task gets a pointer to a later element.
        points: how many there are in all; `lanes`: those of a vector.
    """

    result: Buffer
    moved: frozenset[str]
    points: Expr
    lanes: int


def from_line_start(plan: Tasks, buffers: Mapping[str, Buffer], target: Target) -> tuple[Tasks, LineStart | None]:
    """Let the tasks of a kernel begin at the start of a line.

    Args:
        buffers: those of the kernel, by name.

    Returns:
        The tasks over `POINTS` points, and where they begin; the tasks as they were and `None` where they may not begin elsewhere.
    """
    inner = plan.body.body[0] if len(plan.body.body) == 1 else None
    if not target.arch.startswith("x86_64") or len(plan.loops) != 1 or plan.allocations or not isinstance(inner, For):
        return plan, None
    (outer,) = plan.loops
    whole = one_loop(replace(outer, kind="serial", body=Block((inner,))))
    lanes = upper_limit(inner.extent)
    found = None if whole is None or lanes is None else _line_start(whole, lanes, buffers)
    if found is None or lanes is None:
        return plan, None
    done = times(IndexVar(outer.var), int64(lanes))
    rest = minimum(int64(lanes), Binary("-", Size(POINTS), done, DType.INT64))
    body = replace(plan.body, body=(replace(inner, extent=rest),))
    outer = replace(outer, extent=ceil_div(Size(POINTS), int64(lanes)))
    return replace(plan, loops=(outer,), total=maximum(int64(0), outer.extent), body=body), found


def _line_start(loop: For, lanes: int, buffers: Mapping[str, Buffer]) -> LineStart | None:
    """What moves with the only loop of a kernel; `None` if anything depends on its position otherwise."""
    if not is_stream(loop) or has_read(loop.extent):
        return None
    here = (IndexVar(loop.var),)
    moved: set[str] = set()
    fixed: set[str] = set()
    results: list[str] = []

    def element(expr: Expr) -> Expr | None:
        return Const(0, expr.dtype) if isinstance(expr, Read) and expr.indices == here else None

    for stmt in walk_statements(loop.body):
        if isinstance(stmt, Block):
            continue
        if not isinstance(stmt, Store) or stmt.indices != here or mentions(rewrite(stmt.value, element), loop.var):
            return None
        for name, indices in accesses(stmt):
            (moved if indices == here else fixed).add(name)
        if stmt.streaming:
            results.append(stmt.buffer)
    known = [buffers.get(name) for name in moved]
    if moved & fixed or not results or any(b is None or b.strided or b.pad or len(b.shape) != 1 for b in known):
        return None
    return LineStart(buffers[results[0]], frozenset(moved), loop.extent, lanes)
