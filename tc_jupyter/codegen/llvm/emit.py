"""Loop IR -> LLVM IR: loops become blocks, vectorised loops become vectors, parallel loops become tasks.

Comes in: a `Kernel` and a CPU `Target`. Goes out: `KernelSource` with LLVM text. The kernel is rewritten first, one pass after the
other, each in a file of its own; then one walk prints scalar and vector code alike (`module.py`, and the chain of classes that
`state.py` lists).

Worked example: `C[i, j] += A[i, k] * B[k, j]` in `for j in 0:32 (vectorize)` is two loads, a broadcast and a fused multiply-add of
`<32 x float>`, which is two registers of AVX-512 or eight of NEON.
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.codegen.source import KernelSource
from tc_jupyter.diagnostics import NO_SPAN, CompileError, Diagnostic, SourceText, render
from tc_jupyter.diagnostics.codes import DEVICE_LIMIT
from tc_jupyter.loops import Allocate, Block, Kernel, expand, walk_statements
from tc_jupyter.schedule import Target

from .collapse import collapse, collapse_reductions
from .fusion import fuse_reductions
from .half_tiles import half_tiles
from .line_starts import from_line_start
from .module import Module
from .multiples import whole_tiles
from .narrow import narrow
from .overlap import overlap
from .packing import Scope, packed, written
from .partition import partition
from .peeling import peel
from .polynomial import constant_value
from .prepare import accumulate, full_tiles, tasks, without_short
from .remainder import one_by_one
from .row_tiles import row_tiles
from .steps import native_steps
from .strips import find, flat_dimensions, join, operation_lanes, row_ends, strip
from .transpose import blocked, under_masks


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


def _emit(kernel: Kernel, target: Target, exclusive: frozenset[str]) -> KernelSource:
    """From the kernel as it was lowered to text."""
    kernel = expand(whole_tiles(kernel), native_steps(kernel, target))
    kernel = collapse_reductions(replace(kernel, body=fuse_reductions(one_by_one(kernel.body))))
    own = tuple(stmt.buffer for stmt in walk_statements(kernel.body) if isinstance(stmt, Allocate))
    flat = flat_dimensions((*kernel.buffers, *own))
    kernel = replace(kernel, body=join(narrow(find(kernel.body, flat)), row_ends(kernel.buffers)))
    kernel = replace(kernel, body=partition(kernel.body))
    kernel = collapse(kernel, target)
    flat = flat_dimensions((*kernel.buffers, *own))
    kernel = replace(kernel, body=strip(kernel.body, target))
    plan = tasks(kernel, lambda loop: operation_lanes(loop, flat, target))
    plan, start = from_line_start(plan, {buffer.name: buffer for buffer in kernel.buffers}, target)
    scopes = {buffer.name: buffer.scope for buffer in kernel.buffers}
    scopes |= {buffer.name: buffer.scope for buffer in plan.allocations}
    bound = frozenset(loop.var for loop in plan.loops)
    inputs = {buffer.name: buffer for buffer in kernel.buffers}
    buffers = {buffer.name: buffer for buffer in (*kernel.buffers, *plan.allocations)}
    lengths = {loop.var: loop.extent for loop in plan.loops if constant_value(loop.min) == 0}
    body = packed(plan.body, Scope(buffers, flat, lengths, written(plan.body), exclusive, target))
    body = row_tiles(overlap(body, target.free_masks), buffers, target)
    body = under_masks(without_short(peel(accumulate(body, scopes))), buffers, target)
    limits = {name: (least, largest) for name, least, largest in kernel.within}
    body = blocked(half_tiles(full_tiles(body, bound), limits, target), inputs, target)
    for buffer in reversed(plan.allocations):
        body = Block((Allocate(buffer, body),))
    return Module(kernel, target, replace(plan, body=body), start).source()
