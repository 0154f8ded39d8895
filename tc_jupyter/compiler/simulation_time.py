"""How long a simulated launch will take, before it begins: a count over its loops, times what the simulator was measured to need.

The simulator executes an instruction for a group of blocks at once, so what counts is how often one thread goes around its loops.
As in compiled code, an expression is computed once for the loop variables that it depends on.

Worked example: in `for k in 0:K: for i in 0:8: for j in 0:8: C[i, j] += A[k, i] * B[k, j]`, with `C` in registers, a thread loads
`8 * K` elements of `A` and as many of `B`, and multiplies and adds `64 * K` times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from tc_jupyter.codegen.cuda.launch import GRID_AXES, THREAD_AXES
from tc_jupyter.loops import (
    Allocate,
    Barrier,
    Block,
    Check,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    expressions,
    simplify_expr,
)
from tc_jupyter.program import Call, Cast, Const, Expr, IndexVar, Read, Size, int64, rewrite, walk
from tc_jupyter.program.integers import index_names
from tc_jupyter.simulator import group_count, group_lanes

Triple = tuple[int, int, int]

INSTRUCTION = 1.2e-5
"""Seconds of an instruction, for any number of threads."""
THREAD = 6e-9
"""Seconds of an instruction for each thread."""
ACCESS = 6e-8
"""Seconds of an access to memory for each thread: it is compared with the array and with all other accesses."""
FUNCTION = 30
"""Instructions of a mathematical function."""
FRAGMENT = 1 / 128
"""Instructions for an element of a matrix in the registers of a warp."""
# The note at the end says what these five are compared with.


@dataclass(frozen=True, slots=True)
class Work:
    """What one thread executes: instructions, and those among them that access memory."""

    instructions: float = 0.0
    accesses: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.instructions + other.instructions, self.accesses + other.accesses)

    def __mul__(self, times: float) -> Work:
        return Work(self.instructions * times, self.accesses * times)


@dataclass(frozen=True, slots=True)
class _Around:
    """What is known where a statement stands.

    Attributes:
        values: of sizes, and of loop variables in their first iteration.
        times: iterations of each loop of the thread around it.
        scopes: where the elements of each buffer are.
    """

    values: Mapping[str, Expr]
    times: Mapping[str, int]
    scopes: Mapping[str, str]

    @property
    def all_times(self) -> int:
        return math.prod(self.times.values())


def simulation_seconds(kernel: Kernel, sizes: Mapping[str, int], grid: Triple, block: Triple) -> float:
    """About how long the simulation of a launch takes.

    Args:
        sizes: values of the sizes, and of the scalars in index computations.
    """
    if min(grid) <= 0:
        return 0.0
    work = work_of(kernel, sizes)
    lanes = group_lanes(grid, block)
    group = work.instructions * (INSTRUCTION + lanes * THREAD) + work.accesses * lanes * ACCESS
    return group * group_count(grid, block, work.accesses)


def work_of(kernel: Kernel, sizes: Mapping[str, int]) -> Work:
    """What one thread of the first block executes."""
    values = {name: int64(size) for name, size in sizes.items()}
    return _block(kernel.body, _Around(values, {}, {buffer.name: buffer.scope for buffer in kernel.buffers}))


def _block(block: Block, around: _Around) -> Work:
    return sum((_statement(stmt, around) for stmt in block.body), Work())


def _statement(stmt: Stmt, around: _Around) -> Work:
    match stmt:
        case For():
            return _loop(stmt, around)
        case If():
            then = _block(stmt.then, around)
            other = Work() if stmt.otherwise is None else _block(stmt.otherwise, around)
            return _expressions(stmt, around) + max(then, other, key=lambda work: work.instructions)
        case Allocate():
            scopes = {**around.scopes, stmt.buffer.name: stmt.buffer.scope}
            return _block(stmt.body, _Around(around.values, around.times, scopes))
        case Check():
            return _expressions(stmt, around) + _block(stmt.body, around)
        case Block():
            return _block(stmt, around)
        case Store():
            return _store(stmt, around)
        case Intrinsic() | Barrier():
            return Work(1) * around.all_times
    assert_never(stmt)


def _loop(loop: For, around: _Around) -> Work:
    first = _number(loop.min, around.values)
    values = {**around.values, loop.var: int64(first or 0)}
    if loop.kind in (*GRID_AXES, *THREAD_AXES):
        return _block(loop.body, _Around(values, around.times, around.scopes))
    times = {**around.times, loop.var: max(0, _number(loop.extent, around.values) or 0)}
    return _block(loop.body, _Around(values, times, around.scopes))


def _store(store: Store, around: _Around) -> Work:
    reads = {node.tensor for node in walk(store.value) if isinstance(node, Read)}
    if "fragment" in {around.scopes.get(name) for name in (store.buffer, *reads)}:
        return Work(FRAGMENT) * around.all_times
    combined = Work(0 if store.reduce is None else 1)
    return _expressions(store, around) + (combined + _access(around.scopes[store.buffer])) * around.all_times


def _expressions(stmt: Stmt, around: _Around) -> Work:
    nodes = (node for expr in expressions(stmt) for node in walk(expr))
    return sum((_node(node, around) * _times(node, around) for node in nodes), Work())


def _times(node: Expr, around: _Around) -> int:
    """How often an expression has another value: the iterations of the loops that it depends on."""
    names = index_names(node)
    return math.prod(around.times.get(name, 1) for name in names)


def _node(node: Expr, around: _Around) -> Work:
    match node:
        case Const() | Size() | IndexVar() | Cast():
            return Work()
        case Read():
            return _access(around.scopes.get(node.tensor, "register"))
        case Call():
            return Work(FUNCTION)
        case _:
            return Work(1)


def _access(scope: str) -> Work:
    return Work(1, 1) if scope in ("argument", "global", "shared") else Work()


def _number(expr: Expr, values: Mapping[str, Expr]) -> int | None:
    """The value of an index expression; `None` where it depends on data."""

    def known(node: Expr) -> Expr | None:
        match node:
            case IndexVar() | Size():
                return values.get(node.name)
            case Read(indices=()):
                return values.get(node.tensor)
            case _:
                return None

    found = simplify_expr(rewrite(expr, known))
    return int(found.value) if isinstance(found, Const) else None


def in_words(seconds: float) -> str:
    """A long time for people: `45 s`, `12 minutes`, `3 hours`, `40 days`."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} s"


# What the estimates are worth, 2026-11-23, one processor of a shared x86-64 machine, NumPy 2.4: estimated over measured seconds.
# An instruction takes 3 us (multiply and add) to 16 us with 256 threads and 30 to 45 us with 4096, a matrix step more than 130 us;
# an access takes 25 to 400 ns, the most where each touches a page of a large array for the first time.
#
#   matrix product 256, 1024; 64 x 3000 x 64; 512 x 10000 x 512      0.4/0.5   6.4/3.6   2.9/2.7   30/26
#   float16 product 1024, 4096                                       2.7/2.3   5.4/2.6
#   axpy of 1 and 20 million                                         0.3/0.2   1.0/3.9
#   sum of sin(x * k) for 10000 k, 1000 and 20000 results            6.6/2.7   15/15
#   sum of x * k for 1000000 k, 100 results                          56/14
#   convolution, stencil, softmax, sums, transpose, gathered rows    1.8 to 4.1 times the measured 0.2 to 1.5 s
