"""Where a buffer is at run time: its address and its strides.

Comes in: a buffer and the extents that it has here. Goes out: `Storage`, by which every load and store finds its element, and sizes
of memory as expressions.

Worked example: contiguous storage of the shape `[N, M, 4]` has the strides `4*M, 4, 1` and `4*N*M` elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tc_jupyter.loops import Buffer
from tc_jupyter.program import Binary, DType, Expr, int64
from tc_jupyter.program.integers import plus, times

from .polynomial import Polynomial, multiply, polynomial


@dataclass(frozen=True, slots=True)
class Storage:
    """A buffer at run time.

    Attributes:
        pointer: address of element 0.
        strides: elements per step of each dimension.
        level: loop depth from which on the pointer is known.
        lanes: more than 1 for private storage of a vectorised loop: every element is a vector of one value per lane.
        private: memory of the task, where inactive lanes may be read.
    """

    buffer: Buffer
    pointer: str
    strides: tuple[Polynomial, ...]
    level: int = 0
    lanes: int = 1
    private: bool = False


def row_major(shape: Sequence[Expr]) -> tuple[Polynomial, ...]:
    """Strides of contiguous storage."""
    strides: list[Polynomial] = []
    pitch = Polynomial((((), 1),))
    for extent in reversed(shape):
        strides.append(pitch)
        pitch = multiply(pitch, polynomial(extent))
    return tuple(reversed(strides))


def element_count(shape: Sequence[Expr]) -> Expr:
    """The product of all extents."""
    total: Expr = int64(1)
    for extent in shape:
        total = times(total, extent)
    return total


def rounded_up(count: Expr, unit: int) -> Expr:
    """The next multiple of `unit`."""
    return times(Binary("//", plus(count, int64(unit - 1)), int64(unit), DType.INT64), int64(unit))
