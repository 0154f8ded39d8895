"""Structured loops: what runs, in which order, on which storage.

Scalar expressions are those of `program/expr.py`. In a kernel a `Read` names a `Buffer` and its indices are 0-based storage
positions (the origin is already subtracted); an `IndexVar` names a loop variable; a `Size` names a run-time parameter of the
kernel.

Laws (`verify.py` checks them):

* every loop variable is bound once per path, every buffer is an argument or allocated around its uses;
* index expressions, loop bounds and sizes have type `int64`; conditions are `bool`; a stored value has `Buffer.dtype.compute`
  or `Buffer.dtype` (the store rounds to the latter);
* points of a loop whose kind is not `serial` or `unroll` are independent, or their stores are reductions into private storage.

Worked example: `o(i) +=! A(i,j) * B(j)` on its default schedule is

    for i in 0:R            # parallel
      o[i] = 0
      for j in 0:C
        o[i] = o[i] + A[i, j] * B[j]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from tc_jupyter.diagnostics import NO_SPAN, Span
from tc_jupyter.program import DType, Expr, Read, walk
from tc_jupyter.ranges import Fact


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage of a kernel.

    Attributes:
        name: unique in the kernel; the user's tensor where it is one.
        shape: extents, integer expressions over sizes (for an allocation also over enclosing loop variables), in elements.
        scope: `argument` (passed in), `global` (temporary memory of the whole kernel), `shared` (one per GPU block),
            `local` (one per task or GPU thread), `register` (as `local`; every index is constant after unrolling and vectorising),
            `threads` (registers of the threads that the first `threads` dimensions run over), `fragment` (a matrix in the
            registers of a warp, in the layout of tensor cores; the conventions stand in `codegen/cuda/primitives.py`).
        role: for arguments: `input`, `output` (written; never read before), `inout` (read and written).
        strided: for arguments: whether the caller may pass any strides (in elements, as run-time parameters named
            `<name>.stride.<k>`); if not, it is row-major and contiguous. Allocations are always row-major.
        align: alignment of element 0 in bytes that code may rely on.
        pad: extra elements at the end of each innermost row (bank conflicts); part of the pitch, not of the shape.
        swizzle: `(shift, mask)` of `schedule.primitives.storage`.
        threads: number of leading dimensions whose elements lie in different threads (`threads`) or warps (`fragment`).
        stages: copies of a shared buffer that a pipeline may use, to fill the next ones while the present one is read.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    scope: str = "argument"
    role: str = "input"
    strided: bool = False
    align: int = 0
    pad: int = 0
    swizzle: tuple[int, int] | None = None
    threads: int = 0
    stages: int = 1


@dataclass(frozen=True, slots=True)
class For:
    """`for var in min : min + extent`; nothing runs when `extent <= 0`.

    Attributes:
        kind: `serial`, `parallel` (CPU tasks), `vectorize`, `unroll`, or a GPU axis: `blockIdx.x`, `threadIdx.y`, ...
            A GPU axis is a loop whose iterations are the blocks or threads of the launch. `fragment.row` (16) directly around
            `fragment.column` (8): the elements of a tile of a fragment, each in the thread that holds it.
        axis: name of the schedule's axis (`i.outer`), for comments and views.
        chunk: for `parallel`: iterations per task, 0 = chosen by the engine.
        tail: what a schedule says of partial tiles (`schedule.primitives.split`); the engine chooses if it is empty.
    """

    var: str
    min: Expr
    extent: Expr
    body: Block
    kind: str = "serial"
    axis: str = ""
    chunk: int = 0
    tail: str = ""


@dataclass(frozen=True, slots=True)
class If:
    """`if condition: then else: otherwise`."""

    condition: Expr
    then: Block
    otherwise: Block | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """`buffer[indices] = value`, or, with `reduce`, `buffer[indices] = combine(buffer[indices], value)`.

    Attributes:
        reduce: `None`, `+`, `*`, `min` or `max`; a floating `+` or `*` may be reassociated (vector accumulators, FMA).
        atomic: other threads may combine into the same element at the same time.
        streaming: the value is not read again soon; a non-temporal store is worth while.
    """

    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    reduce: str | None = None
    atomic: bool = False
    streaming: bool = False
    statement: str = ""
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Allocate:
    """Storage that exists while `body` runs."""

    buffer: Buffer
    body: Block


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of the scope (`block`, `warp`) have done what stands before. On the CPU: nothing."""

    scope: str = "block"


@dataclass(frozen=True, slots=True)
class Check:
    """A subscript that is checked at each point (kind POINTWISE).

    If `condition` is false the first failing position is recorded (`number` of the check and the values of `values`) in the
    kernel's error record, and the guarded store is skipped; nothing is read out of bounds.
    """

    condition: Expr
    number: int
    values: tuple[Expr, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A named operation on tiles of buffers, for instance a 16x8x16 matrix step or an asynchronous copy.

    `name` is known to the code generators and to the interpreter; `operands` are element positions (buffer, indices) of the
    tiles' first elements; `attributes` are constants.
    """

    name: str
    operands: tuple[Read, ...]
    attributes: tuple[tuple[str, int | str], ...] = ()
    statement: str = ""
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in order. `comment` is shown above them in generated text."""

    body: tuple[Stmt, ...]
    comment: str = ""


SPARE = "spare columns: nobody needs results of these"
"""Comment of a block that sets them to zero, since whole tiles are computed with and other numbers may be slow."""

Stmt: TypeAlias = For | If | Store | Allocate | Barrier | Check | Intrinsic | Block


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch.

    Attributes:
        name: a C identifier, unique in the def.
        buffers: arguments in order.
        sizes: names of `int64` run-time parameters used in the body, in order (sizes, then scalars of index computations).
        scalars: rank-0 arguments passed by value: (name, dtype); a `Read(name, ())` in the body.
        body: the loops.
        statements: names of the statements it computes.
        checks: number of `Check` nodes; if not 0 the kernel takes an error record.
        comment: lines shown at the top of generated text (def, ranges).
        facts: what the class of the call, or its launcher, knows of sizes (or strides, `A.stride.0`).
        most: sizes that no call exceeds: (name, number); the launcher refuses a larger one.
        unguarded: what is read behind a condition on data alone is there where that does not hold, too.
        ordered: points of a statement have an order: loops of different kinds are not exchanged, joined or cut apart.
        min_blocks: blocks that should fit into a GPU's multiprocessor at once; limits registers. 0 = the compiler's choice.
    """

    name: str
    buffers: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    scalars: tuple[tuple[str, DType], ...]
    body: Block
    statements: tuple[str, ...] = ()
    checks: int = 0
    comment: tuple[str, ...] = ()
    facts: tuple[tuple[str, Fact], ...] = ()
    most: tuple[tuple[str, int], ...] = ()
    unguarded: bool = False
    ordered: bool = False
    min_blocks: int = 0


def sub_blocks(stmt: Stmt) -> tuple[Block, ...]:
    """The blocks directly inside a statement."""
    match stmt:
        case For() | Allocate() | Check():
            return (stmt.body,)
        case If():
            return (stmt.then,) if stmt.otherwise is None else (stmt.then, stmt.otherwise)
        case Block():
            return (stmt,)
        case Store() | Barrier() | Intrinsic():
            return ()
    assert_never(stmt)


def walk_statements(block: Block) -> Iterator[Stmt]:
    """All statements inside, outer ones first."""
    stack = [*reversed(block.body)]
    while stack:
        stmt = stack.pop()
        yield stmt
        for inner in reversed(sub_blocks(stmt)):
            stack.extend(reversed(inner.body))


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions directly in a statement, without those of inner blocks."""
    match stmt:
        case For():
            return (stmt.min, stmt.extent)
        case If():
            return (stmt.condition,)
        case Store():
            return (*stmt.indices, stmt.value)
        case Allocate():
            return stmt.buffer.shape
        case Check():
            return (stmt.condition, *stmt.values)
        case Intrinsic():
            return stmt.operands
        case Barrier() | Block():
            return ()
    assert_never(stmt)


def accesses(stmt: Stmt) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """Buffers that a statement itself reads or writes, with the indices."""
    if isinstance(stmt, Store):
        yield stmt.buffer, stmt.indices
    for expr in expressions(stmt):
        yield from ((node.tensor, node.indices) for node in walk(expr) if isinstance(node, Read))
