"""What a code generator returns: text, entry point, launch shape, and the way back to the lines of the cell."""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.loops import Buffer
from tc_jupyter.program import DType, Expr


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is started.

    Attributes:
        grid, block: extents of `blockIdx` and `threadIdx` (x, y, z) as integer expressions over the kernel's sizes (CUDA);
            for the CPU `grid[0]` is the number of tasks of the entry point, negative if no thread is worth waking, plus
            `n*IN_ORDER` if they are to be done in order, `n` at one time.
        shared: bytes of dynamic shared memory.
    """

    grid: tuple[Expr, Expr, Expr]
    block: tuple[Expr, Expr, Expr]
    shared: int = 0


IN_ORDER = 1 << 40
"""What a number of tasks is larger by that are to be done one after the other; a multiple of it, where so many go together."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of the entry point, in order.

    Attributes:
        kind: `buffer` (address of storage element 0), `stride` (of dimension `dimension` of `name`, in elements, `int64`),
            `size` (`int64`), `scalar` (value of type `dtype`), `workspace` (address of temporary memory), `errors` (address of
            the error record of checks).
    """

    kind: str
    name: str
    dtype: DType | None = None
    dimension: int = 0


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Generated text of one kernel.

    Attributes:
        language: `cuda` or `llvm`.
        text: the whole compilation unit; where kernels are equal but for names, that of the first of them.
        entry: name of the function to launch.
        arguments: parameters in order.
        buffers: the kernel's buffers (dtype, shape, scope, alignment needs).
        workspace: temporary buffers that the launcher allocates, in order (global scope).
        line_map: pairs (line of `text` from 0, statement name).
        index_bits: width of index arithmetic, 32 or 64.
        twin_of: the kernel that `text` was printed for, if it is another one, with other names for the same things.
    """

    language: str
    text: str
    entry: str
    arguments: tuple[Argument, ...]
    launch: Launch
    buffers: tuple[Buffer, ...] = ()
    workspace: tuple[Buffer, ...] = ()
    line_map: tuple[tuple[int, str], ...] = ()
    index_bits: int = 64
    twin_of: str = ""
