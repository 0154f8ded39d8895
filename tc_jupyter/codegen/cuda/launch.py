"""Which loops become blocks and threads, and the launch shape that covers them.

All loops bound to one axis share one launch extent: the largest of theirs. A loop that may be shorter is guarded, a
loop that may be longer strides. In the variant with `int` indices a grid that exceeds the device's limits is excluded
by `fits_int32`; in the other variant loops over the grid always stride.

Worked example: `for b in 0:(N + 255) // 256  # blockIdx.x` around `for t in 0:256  # threadIdx.x` is the grid
`((N + 255) // 256, 1, 1)` with blocks of `(256, 1, 1)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tc_jupyter.loops import Block, For, If, Kernel, Stmt, Store, sub_blocks
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Size, int64, walk
from tc_jupyter.schedule import GRID_AXES, THREAD_AXES

GRID_LIMITS = {"blockIdx.x": (1 << 31) - 1, "blockIdx.y": 65535, "blockIdx.z": 65535}
THREAD_LIMITS = {"threadIdx.x": 1024, "threadIdx.y": 1024, "threadIdx.z": 64}

Range = tuple[int | None, int | None]
"""Smallest and largest value of an expression, as far as they are constants."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the launch.

    Attributes:
        extent: number of blocks or threads: constant for threads; over sizes and scalars for blocks.
        fixed: the constant extent of a thread axis or of a grid axis whose loops have no other one.
    """

    name: str
    extent: Expr
    fixed: int | None


def axes_of(kernel: Kernel, max_threads: int, multiprocessors: int) -> dict[str, Axis]:
    """The axes that the kernel's loops use, with launch extents."""
    loops: dict[str, list[tuple[For, dict[str, Range]]]] = {}
    for loop, ranges in _gpu_loops(kernel.body, ranges_of(kernel)):
        loops.setdefault(loop.kind, []).append((loop, ranges))
    few = few_blocks(multiprocessors)
    axes = {name: _grid_axis(name, loops[name], kernel, few) for name in GRID_AXES if name in loops}
    return axes | _thread_axes({name: loops[name] for name in THREAD_AXES if name in loops}, max_threads)


def ranges_of(kernel: Kernel) -> dict[str, Range]:
    """What is known of the sizes of a kernel."""
    return {name: (0, most) for name, most in kernel.most}


def _gpu_loops(block: Block, ranges: dict[str, Range]) -> Iterator[tuple[For, dict[str, Range]]]:
    for stmt in block.body:
        inner = ranges
        if isinstance(stmt, For):
            if stmt.kind in GRID_AXES or stmt.kind in THREAD_AXES:
                yield stmt, ranges
            inner = ranges | {stmt.var: loop_range(stmt, ranges)}
        for sub in sub_blocks(stmt):
            yield from _gpu_loops(sub, inner)


def loop_range(loop: For, ranges: dict[str, Range]) -> Range:
    """Smallest and largest value of a loop variable while its body runs."""
    low, high = bounds(loop.min, ranges)
    extent = bounds(loop.extent, ranges)[1]
    return low, None if high is None or extent is None else high + extent - 1


def bounds(expr: Expr, ranges: dict[str, Range]) -> Range:
    """Constant bounds of an index expression; `min(8, anything)` has an upper one."""
    match expr:
        case Const():
            return int(expr.value), int(expr.value)
        case IndexVar() | Size():
            return ranges.get(expr.name, (None, None))
        case Binary():
            return _binary_bounds(expr.op, bounds(expr.left, ranges), bounds(expr.right, ranges))
        case _:
            return None, None


def _binary_bounds(op: str, left: Range, right: Range) -> Range:
    (a, b), (c, d) = left, right
    match op:
        case "+":
            return _apply(lambda x, y: x + y, a, c), _apply(lambda x, y: x + y, b, d)
        case "-":
            return _apply(lambda x, y: x - y, a, d), _apply(lambda x, y: x - y, b, c)
        case "min":
            return _apply(min, a, c), min((x for x in (b, d) if x is not None), default=None)
        case "max":
            return max((x for x in (a, c) if x is not None), default=None), _apply(max, b, d)
        case "*" if a is not None and c is not None and a >= 0 and c >= 0:
            return a * c, _apply(lambda x, y: x * y, b, d)
        case "//" | "/" if c is not None and c == d and c > 0:
            return None if a is None else a // c, None if b is None else b // c
        case "%" if c is not None and c == d and c > 0:
            return 0, c - 1
        case _:
            return None, None


def _apply(function: Callable[[int, int], int], x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else function(x, y)


def few_blocks(multiprocessors: int) -> int:
    """Blocks of a launch that does not know how many iterations there are: more would begin for nothing, fewer fill no device."""
    return 8 * multiprocessors


def before_launch(expr: Expr, kernel: Kernel) -> bool:
    """Whether sizes and integer scalars give the value of an expression, so that the launcher can evaluate it."""
    numbers = {name for name, dtype in kernel.scalars if dtype.is_integer}
    reads = {node.tensor for node in walk(expr) if isinstance(node, Read)}
    return reads <= numbers and not any(isinstance(node, IndexVar) for node in walk(expr))


def _grid_axis(name: str, loops: list[tuple[For, dict[str, Range]]], kernel: Kernel, few: int) -> Axis:
    """The largest extent over sizes and scalars; an extent that depends on other loops is replaced by its bound, or by a few
    blocks that stride: blocks that have nothing to do take time, too.
    """
    extents: list[Expr] = []
    for loop, ranges in loops:
        low, upper = bounds(loop.extent, ranges)
        extent = loop.extent
        if low is not None and low == upper:
            extent = int64(max(low, 0))
        elif not before_launch(loop.extent, kernel):
            extent = int64(few if upper is None else min(max(upper, 0), few))
        if extent not in extents:
            extents.append(extent)
    total = extents[0]
    for extent in extents[1:]:
        total = Binary("max", total, extent, DType.INT64)
    known = [int(extent.value) for extent in extents if isinstance(extent, Const)]
    fixed = max(known) if len(known) == len(extents) else None
    if fixed is not None and fixed <= GRID_LIMITS[name]:
        return Axis(name, int64(fixed), fixed)
    if fixed is not None:
        return Axis(name, int64(GRID_LIMITS[name]), GRID_LIMITS[name])
    return Axis(name, total, None)


def _thread_axes(loops: dict[str, list[tuple[For, dict[str, Range]]]], max_threads: int) -> dict[str, Axis]:
    """Constant extents whose product is at most `max_threads`; the largest are halved until it is."""
    wanted: dict[str, int | None] = {}
    for name, found in loops.items():
        uppers = [bounds(loop.extent, ranges)[1] for loop, ranges in found]
        known = [max(upper, 1) for upper in uppers if upper is not None]
        wanted[name] = max(known) if len(known) == len(uppers) else None
    product = 1
    for extent in wanted.values():
        product *= extent or 1
    chosen = {
        name: min(extent or max(1, 256 // min(product, 256)), THREAD_LIMITS[name], max_threads)
        for name, extent in wanted.items()
    }
    while _product(chosen) > max_threads:
        largest = max(chosen, key=lambda name: chosen[name])
        chosen[largest] = (chosen[largest] + 1) // 2
    return {name: Axis(name, int64(extent), extent) for name, extent in chosen.items()}


def _product(extents: dict[str, int]) -> int:
    total = 1
    for extent in extents.values():
        total *= extent
    return total


def needs_one(block: Block, axis: str) -> bool:
    """Whether something is stored outside every loop of a grid axis, so that at least one block must run."""
    return any(_stores_outside(stmt, axis) for stmt in block.body)


def _stores_outside(stmt: Stmt, axis: str) -> bool:
    match stmt:
        case For(kind=kind) if kind == axis:
            return False
        case Store():
            return True
        case If() | _:
            return any(needs_one(sub, axis) for sub in sub_blocks(stmt))
