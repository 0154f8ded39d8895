"""A serial loop around everything of a kernel with an order becomes tasks that are done in this order.

Little work is cut into parts of some milliseconds, which one thread does, so that an interrupt is seen between two of them. Where
the statements of a step are much work by themselves, each is a round of tasks: threads wait for each other between two rounds.

Worked example, where a round is worth 8 tasks:

    for t in 0:T                  for g in 0:T*2*8 (8 tasks at a time)
      for i in 0:N (parallel)       t, phase, part = g // 16, g // 8 % 2, g % 8
        A[t, i] = ...         ->    if phase == 0: for i in part*ceil(N/8) : ... { A[t, i] = ... }
      for j in 0:N (parallel)       if phase == 1: for j in part*ceil(N/8) : ... { B[t, j] = ... }
        B[t, j] = ...
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.loops import Allocate, Block, For, If, Kernel, Stmt, walk_statements
from tc_jupyter.loops.rewrite import block_with_expressions, with_blocks, with_body
from tc_jupyter.program import Binary, Cast, DType, Expr, IndexVar, Read, Select, Size, int64, rewrite
from tc_jupyter.program.integers import ceil_div, index_names, maximum, minimum, plus, times
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.target import Target

from .polynomial import constant_value
from .tasks import PARTS, Lanes, is_local, with_values, work_of
from .time_tiles import Tiled, time_tiled

_ZERO, _ONE = int64(0), int64(1)


def parts(kernel: Kernel, lanes: Lanes, target: Target) -> tuple[Kernel, Expr]:
    """Cut the loop around everything of a kernel with an order into tasks, if it is serial; and how many are done at one time.

    Where arrays leave the caches, the tasks are those of several steps (`time_tiles`).
    """
    loop = _outermost(kernel.body)
    if loop is not None and kernel.ordered:
        kernel, loop = _over_sizes(kernel, loop)
    if not kernel.ordered or loop is None or is_local(loop):
        return kernel, _ONE
    own = {each.buffer.name: each.buffer.scope for each in walk_statements(loop.body) if isinstance(each, Allocate)}
    work = (
        maximum(_ONE, work_of(loop.body, with_values({}, loop), lanes, own)) if constant_value(loop.min) == 0 else _ONE
    )
    if index_names(work):
        work = _ONE
    phases = () if constant_value(work) is not None else _phases(loop.body)
    width = _width(work, len(phases)) if phases else _ONE
    outer = _tasks(loop, phases or (loop.body,), width, work)
    tiled = time_tiled(kernel, loop, phases, target) if phases else None
    if tiled is not None:
        outer, width = _either(tiled, outer, width)
    return replace(kernel, body=with_body(kernel.body, (outer,))), width


def _either(tiled: Tiled, plain: For, width: Expr) -> tuple[For, Expr]:
    """The tasks of groups of steps, where they are worth while, or those of single steps; and how many are done at one time."""
    rounds, which = int64(tuning.SHARES), tiled.worthwhile
    groups = replace(_tasks(tiled.loop, _phases(tiled.loop.body), rounds, _ONE), var=plain.var)
    body = block_with_expressions(
        groups.body, lambda node: IndexVar(plain.var) if node == _number(tiled.loop) else None
    )
    extent = Select(which, groups.extent, plain.extent, DType.INT64)
    both = replace(plain, extent=extent, body=Block((If(which, body, plain.body),)))
    return both, Select(which, rounds, width, DType.INT64)


def _number(loop: For) -> IndexVar:
    """The number of a task."""
    return IndexVar(f"{loop.var}.part")


def _phases(block: Block) -> tuple[Stmt, ...]:
    """The statements of a step, if some of them are loops that threads may share."""
    found: list[Stmt] = []
    for stmt in block.body:
        if isinstance(stmt, Allocate):
            return ()  # what stands in it is of one thread
        found += _phases(stmt) or (stmt,) if isinstance(stmt, Block) else (stmt,)
    return tuple(found) if any(isinstance(stmt, For) and stmt.kind == "parallel" for stmt in found) else ()


def _width(work: Expr, phases: int) -> Expr:
    """How many tasks a round has: 1 where all statements of a step are little work."""
    few = Binary("<", work, int64(phases * tuning.ROUND), DType.BOOL)
    return Select(few, _ONE, int64(tuning.SHARES), DType.INT64)


def _tasks(loop: For, phases: tuple[Stmt, ...], width: Expr, work: Expr) -> For:
    """Some iterations at a time, each time one task; where several are done together, one iteration is a round of each phase."""
    number, length = _number(loop), _length(work)
    if width == _ONE:
        tasks, place, body = _ONE, number, Block(tuple(map(_serial, phases)))
    else:
        alone, count = Binary("==", width, _ONE, DType.BOOL), int64(len(phases))
        length = Select(alone, length, _ONE, DType.INT64)
        tasks = Select(alone, _ONE, times(width, count), DType.INT64)
        place = _over(number, tasks)
        part = Binary("%", number, width, DType.INT64)
        phase = Binary("%", _over(number, width), count, DType.INT64)
        body = Block(tuple(_of_round(stmt, k, phase, alone, part, width, len(phases)) for k, stmt in enumerate(phases)))
    start = times(place, length)
    rest = Binary("-", loop.extent, start, DType.INT64)
    inner = replace(loop, min=plus(loop.min, start), extent=minimum(length, rest), body=body)
    total = times(ceil_div(maximum(_ZERO, loop.extent), length), tasks)
    return For(number.name, _ZERO, total, Block((inner,)), "parallel", PARTS, chunk=1)


def _length(work: Expr) -> Expr:
    """How many iterations one task does, if it does all of their work."""
    length = maximum(_ONE, _over(int64(tuning.INTERRUPTED), work))
    known = constant_value(length)
    return length if known is None else int64(known)


def _of_round(stmt: Stmt, place: int, phase: Expr, alone: Expr, part: Expr, width: Expr, phases: int) -> Stmt:
    """What a task does of a statement: a part of its loop, or all of it in the first task, if this is its round."""
    if isinstance(stmt, For) and stmt.kind == "parallel":
        length = ceil_div(stmt.extent, width)
        first = times(part, length)
        extent = minimum(length, Binary("-", stmt.extent, first, DType.INT64))
        made: Stmt = _serial(replace(stmt, min=plus(stmt.min, first), extent=extent))
    else:
        made = If(Binary("==", part, _ZERO, DType.BOOL), Block((_serial(stmt),)))
    mine = Binary("||", alone, Binary("==", phase, int64(place), DType.BOOL), DType.BOOL)
    return made if phases == 1 else If(mine, Block((made,)))


def _serial(stmt: Stmt) -> Stmt:
    """Without loops that threads share."""
    stmt = with_blocks(stmt, lambda block: with_body(block, map(_serial, block.body)))
    return replace(stmt, kind="serial") if isinstance(stmt, For) and stmt.kind == "parallel" else stmt


def _over(left: Expr, right: Expr) -> Expr:
    return Binary("//", left, right, DType.INT64)


def _over_sizes(kernel: Kernel, loop: For) -> tuple[Kernel, For]:
    """The loop with integer scalars in its ends as sizes, of which the number of tasks is made."""
    scalars = {name for name, dtype in kernel.scalars if dtype.is_integer}
    found: dict[str, None] = {}

    def rule(node: Expr) -> Expr | None:
        if isinstance(node, Read) and not node.indices and node.tensor in scalars:
            found[node.tensor] = None
            return Size(node.tensor)
        return node.operand if isinstance(node, Cast) and isinstance(node.operand, Size) else None

    loop = replace(loop, min=rewrite(loop.min, rule), extent=rewrite(loop.extent, rule))
    return replace(kernel, sizes=tuple(dict.fromkeys((*kernel.sizes, *found)))), loop


def _outermost(block: Block) -> For | None:
    """The serial loop that is all of a block."""
    while len(block.body) == 1 and isinstance(block.body[0], Block):
        block = block.body[0]
    stmt = block.body[0] if len(block.body) == 1 else None
    return stmt if isinstance(stmt, For) and stmt.kind == "serial" else None


__all__ = ["parts"]
