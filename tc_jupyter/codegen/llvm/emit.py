"""Loop IR -> LLVM IR: loops become blocks, vectorised loops become vectors, parallel loops become tasks.

Comes in: a `Kernel` and a CPU `Target`. Goes out: `KernelSource` with LLVM text. The kernel is rewritten first, by the passes that
`PASSES` lists, in files of their own; then one walk prints scalar and vector code alike (`module.py`, and the chain of classes
that `state.py` lists).

Worked example: `C[i, j] += A[i, k] * B[k, j]` in `for j in 0:32 (vectorize)` is two loads, a broadcast and a fused multiply-add of
`<32 x float>`, which is two registers of AVX-512 or eight of NEON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tc_jupyter.codegen.source import KernelSource
from tc_jupyter.diagnostics import NO_SPAN, CompileError, Diagnostic, SourceText, render
from tc_jupyter.diagnostics.codes import DEVICE_LIMIT
from tc_jupyter.loops import Allocate, Block, Buffer, Kernel, Store, expand, walk_statements
from tc_jupyter.loops.show import show_kernel
from tc_jupyter.program import Expr, int64
from tc_jupyter.schedule import Target

from .accumulators import accumulate
from .carried import carried
from .collapse import collapse, collapse_reductions
from .early_ends import early_ends
from .first_places import first_places
from .full_tiles import full_tiles, without_short
from .fusion import fuse_reductions
from .half_tiles import half_tiles
from .line_starts import LineStart, from_line_start
from .module import Module
from .multiples import whole_tiles
from .narrow import narrow
from .overlap import overlap
from .packed_tails import Scope, packed, written
from .parts import parts
from .peeling import peel
from .polynomial import constant_value
from .remainder import one_by_one
from .row_tiles import row_tiles
from .split_rows_at_borders import split_rows
from .split_tiles_at_borders import apart
from .steps import native_steps
from .strips import Flat, find, flat_dimensions, join, operation_lanes, row_ends, strip
from .tasks import Tasks, tasks
from .transpose import blocked, is_turned, under_masks
from .whole_pixels import whole_pixels


def emit_llvm(kernel: Kernel, target: Target, exclusive: frozenset[str] = frozenset()) -> KernelSource:
    """Return the LLVM IR of one kernel.

    Args:
        target: a CPU; `features` and `vector_bits` decide about masks, conversions and the width of strip-mined loops.
        exclusive: temporaries of the whole program that no other kernel writes.

    Returns:
        `launch.grid[0]` is the number of tasks, negative if no thread is worth waking. `workspace` holds at most one buffer of
        bytes with scope `local`: the launcher gives every thread that many (a multiple of 64), 64-byte aligned, one after the
        other.

    Raises:
        CompileError: TC503, an expression is nested too deeply.
    """
    try:
        return _emit(kernel, target, exclusive)
    except RecursionError:
        message = f"the expressions of `{kernel.name}` are nested too deeply to generate code"
        diagnostic = Diagnostic(DEVICE_LIMIT, NO_SPAN, message, help="split the statement with a temporary")
        source = SourceText("")
        raise CompileError((diagnostic,), source, render((diagnostic,), source)) from None


@dataclass(frozen=True, slots=True)
class Work:
    """A kernel on its way to text.

    Attributes:
        kernel: as it was before `tasks`; after that `plan.body` is what changes.
        exclusive: as for `emit_llvm`.
        start: where tasks begin, if not at their first point.
        width: how many tasks of parts are done at one time.
    """

    kernel: Kernel
    target: Target
    exclusive: frozenset[str]
    plan: Tasks | None = None
    start: LineStart | None = None
    width: Expr = field(default_factory=lambda: int64(1))

    @property
    def body(self) -> Block:
        """What is computed: by the kernel, then by one of its tasks."""
        return self.kernel.body if self.plan is None else self.plan.body

    @property
    def tasks(self) -> Tasks:
        """The tasks, which are known."""
        assert self.plan is not None
        return self.plan

    @property
    def flat(self) -> Flat:
        """See `flat_dimensions`."""
        own = tuple(stmt.buffer for stmt in walk_statements(self.kernel.body) if isinstance(stmt, Allocate))
        return flat_dimensions((*self.kernel.buffers, *own))

    @property
    def inputs(self) -> dict[str, Buffer]:
        """The buffers of the kernel."""
        return {buffer.name: buffer for buffer in self.kernel.buffers}

    @property
    def buffers(self) -> dict[str, Buffer]:
        """Those, and what stands between the parallel loops."""
        return self.inputs | {buffer.name: buffer for buffer in self.tasks.allocations}

    def having(self, body: Block) -> Work:
        """With another body."""
        if self.plan is None:
            return replace(self, kernel=replace(self.kernel, body=body))
        return replace(self, plan=replace(self.plan, body=body))


Pass: TypeAlias = Callable[[Work], Work]


def _on_kernel(change: Callable[[Kernel], Kernel]) -> Pass:
    return lambda work: replace(work, kernel=change(work.kernel))


def _on_body(change: Callable[[Block], Block]) -> Pass:
    return lambda work: work.having(change(work.body))


def _tasks(work: Work) -> Work:
    flat = work.flat
    plan = tasks(work.kernel, lambda loop: operation_lanes(loop, flat, work.target))
    return replace(work, plan=replace(plan, width=work.width))


def _parts(work: Work) -> Work:
    flat = work.flat
    kernel, width = parts(work.kernel, lambda loop: operation_lanes(loop, flat, work.target), work.target)
    return replace(work, kernel=kernel, width=width)


def _carried(work: Work) -> Work:
    if not work.kernel.ordered:
        return work
    return work.having(carried(work.body, work.buffers, work.tasks.loops, work.target))


def _line_starts(work: Work) -> Work:
    plan, start = from_line_start(work.tasks, work.inputs, work.target)
    return replace(work, plan=plan, start=start)


def _packed(work: Work) -> Work:
    plan = work.tasks
    lengths = {loop.var: loop.extent for loop in plan.loops if constant_value(loop.min) == 0}
    scope = Scope(work.buffers, work.flat, lengths, written(plan.body), work.exclusive, work.target)
    return work.having(packed(plan.body, scope))


def _accumulate(work: Work) -> Work:
    return work.having(accumulate(work.body, {name: buffer.scope for name, buffer in work.buffers.items()}))


def _half_tiles(work: Work) -> Work:
    return work.having(half_tiles(work.body, dict(work.kernel.facts), work.target))


def _only_read(work: Work) -> dict[str, Buffer]:
    written = {stmt.buffer for stmt in walk_statements(work.body) if isinstance(stmt, Store)}
    return {name: buffer for name, buffer in work.inputs.items() if name not in written}


def _tile_borders(work: Work) -> Work:
    """But for loops that `transpose` cuts, which it does not if points have an order."""
    own = {stmt.buffer.name: stmt.buffer for stmt in walk_statements(work.body) if isinstance(stmt, Allocate)}
    buffers = work.inputs | own
    cut = not work.kernel.ordered
    return work.having(apart(work.body, _only_read(work), lambda stmt: cut and is_turned(stmt, buffers, work.target)))


def _allocations(work: Work) -> Work:
    body = work.body
    for buffer in reversed(work.tasks.allocations):
        body = Block((Allocate(buffer, body),))
    return work.having(body)


PASSES: tuple[tuple[str, str, Pass], ...] = (
    ("whole tiles", "a size that is a multiple of a tile leaves no partial one", _on_kernel(whole_tiles)),
    (
        "native steps",
        "matrix steps are instructions of the processor, or the loops that they stand for",
        lambda work: replace(work, kernel=expand(work.kernel, native_steps(work.kernel, work.target))),
    ),
    ("one by one", "the last rows of those that are reduced together are reduced one by one", _on_body(one_by_one)),
    ("fuse reductions", "two loops that reduce over the same input read it once", _on_body(fuse_reductions)),
    (
        "collapse reductions",
        "a sum over rows that lie one behind the other is over all their elements",
        _on_kernel(collapse_reductions),
    ),
    (
        "find strips",
        "vectorised loops of any length are loops over vectors",
        lambda work: work.having(find(work.body, work.flat)),
    ),
    ("narrow", "positions are found in 32 bits where these are enough", _on_body(narrow)),
    (
        "first places",
        "the first place that has an extreme is looked for where the extreme was found",
        _on_body(first_places),
    ),
    ("early ends", "whether one value is true, or all are, is looked for until it is known", _on_body(early_ends)),
    (
        "join",
        "rows that lie one behind the other have vectors across their ends",
        lambda work: work.having(join(work.body, row_ends(work.kernel.buffers))),
    ),
    (
        "row borders",
        "a row whose condition changes along it is one loop for each part in which it does not",
        lambda work: work.having(split_rows(work.body, work.kernel.ordered)),
    ),
    (
        "collapse",
        "loops over rows that lie one behind the other are one over all their elements",
        lambda work: replace(work, kernel=collapse(work.kernel, work.target)),
    ),
    (
        "strip",
        "strips are as wide as operations allow, and have a rest",
        lambda work: work.having(strip(work.body, work.target)),
    ),
    ("parts", "a long serial loop around everything is done in parts, the rounds of which threads share", _parts),
    ("tasks", "the parallel loops around everything become the number of a task", _tasks),
    ("line starts", "the tasks of a long stream begin where a cache line of the result does", _line_starts),
    ("pack", "copies into columns of tiles have one version, also for a tile that is not full", _packed),
    (
        "overlap",
        "the last tile begins inside the one before it where results may be computed twice",
        lambda work: work.having(overlap(work.body, work.target.free_masks)),
    ),
    (
        "row tiles",
        "every row of a tile of rows is one stream",
        lambda work: work.having(row_tiles(work.body, work.buffers, work.target)),
    ),
    ("carry", "what the next iterations of a loop with an order need stays in registers", _carried),
    ("accumulate", "sums over serial loops are kept in registers", _accumulate),
    ("peel", "a loop over vectors has full ones, and the last one stands behind it", _on_body(peel)),
    (
        "without short",
        "branches for less than a tile are marked: they have no version for full tiles",
        _on_body(without_short),
    ),
    (
        "whole pixels",
        "residues of a row that are written out have a version where their vectors are equally long",
        _on_body(whole_pixels),
    ),
    (
        "masks",
        "loops that turn what a task has collected are marked: they have one version where masks are free",
        lambda work: work.having(under_masks(work.body, work.buffers, work.target)),
    ),
    (
        "full tiles",
        "where all loops have their full extent, nothing is tested",
        lambda work: work.having(full_tiles(work.body, frozenset(loop.var for loop in work.tasks.loops))),
    ),
    ("half tiles", "the last columns of a product are half a tile where these are enough", _half_tiles),
    ("tile borders", "a tile that meets no border has a version without any", _tile_borders),
    (
        "transpose",
        "what is read across rows is loaded along them and turned in registers",
        lambda work: work.having(blocked(work.body, work.inputs, work.target)),
    ),
    ("allocations", "what stood between the parallel loops is of each task", _allocations),
)
"""The rewrites of a kernel, in order: a name, what it is for, and the function."""
INDEPENDENT = frozenset(
    (
        "one by one", "fuse reductions", "collapse reductions", "join", "collapse", "line starts", "overlap",
        "row tiles", "half tiles", "transpose",
    )
)  # fmt: skip
"""Those that take the points of serial loops in another order, or some of them twice: a kernel with an order is left as it is."""


def _passes(kernel: Kernel) -> Iterator[tuple[str, str, Pass]]:
    return (each for each in PASSES if not (kernel.ordered and each[0] in INDEPENDENT))


def _emit(kernel: Kernel, target: Target, exclusive: frozenset[str]) -> KernelSource:
    """From the kernel as it was lowered to text."""
    work = Work(kernel, target, exclusive)
    for _, _, change in _passes(kernel):
        work = change(work)
    return Module(work.kernel, target, work.tasks, work.start).source()


def show_passes(kernel: Kernel, target: Target, exclusive: frozenset[str] = frozenset()) -> str:
    """The loops as they are lowered, and after each pass that changes them."""
    work = Work(kernel, target, exclusive)
    parts = [f"-- lowered\n{show_kernel(kernel)}"]
    for name, why, change in _passes(kernel):
        before, work = work.body, change(work)
        if work.body != before:
            parts.append(f"-- {name}: {why}\n{show_kernel(replace(work.kernel, body=work.body))}")
    return "\n\n".join(parts)
