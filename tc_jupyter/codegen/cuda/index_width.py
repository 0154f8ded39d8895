"""Whether a call may use the variant of a kernel with `int` indices.

Every index expression, loop bound, byte offset and launch extent is bounded by interval arithmetic at the sizes of
the call. The answer is cached per sizes by the launcher.

Worked example: `A[i * N + j]` over 50,000 x 50,000 `float32` has byte offsets up to 10^10: 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from tc_jupyter.loops import Allocate, Block, Buffer, For, Kernel, expressions, sub_blocks
from tc_jupyter.program import Binary, Call, Cast, Const, Expr, IndexVar, Read, Select, Size, Unary, children

from .expressions import is_index

LIMIT = (1 << 31) - (1 << 16)
"""One beyond the largest intermediate value: a striding loop may step beyond its end by the number of threads."""

Interval = tuple[int, int]


def fits_int32(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether all index arithmetic of the kernel stays below 2^31 at these sizes, byte offsets included.

    Args:
        sizes: the kernel's sizes and the strides (`A.stride.0`, in elements) of strided buffers.
    """
    names = {name: (value, value) for name, value in sizes.items()}
    return all(_buffer_fits(buffer, sizes, names) for buffer in kernel.buffers) and _block_fits(kernel.body, names)


def _buffer_fits(buffer: Buffer, sizes: Mapping[str, int], names: dict[str, Interval]) -> bool:
    extents = [_interval(extent, names) for extent in buffer.shape]
    if any(extent is None for extent in extents):
        return False
    span = 1
    for k, extent in enumerate(extents):
        assert extent is not None
        if buffer.strided:
            span += max(0, extent[1] - 1) * abs(sizes[f"{buffer.name}.stride.{k}"])
        else:
            span *= max(1, extent[1] + (buffer.pad if k == len(extents) - 1 else 0))
    return span * buffer.dtype.bytes < LIMIT


def _block_fits(block: Block, names: dict[str, Interval]) -> bool:
    for stmt in block.body:
        inner = names
        if not all(_expr_fits(expr, names) for expr in expressions(stmt)):
            return False
        if isinstance(stmt, Allocate) and not _buffer_fits(stmt.buffer, {}, names):
            return False
        if isinstance(stmt, For):
            low, extent = _interval(stmt.min, names), _interval(stmt.extent, names)
            if low is not None and extent is not None:
                last = max(low[1] + extent[1] - 1, low[0])
                if last + 1 >= LIMIT:
                    return False
                inner = names | {stmt.var: (low[0], last)}
        if not all(_block_fits(sub, inner) for sub in sub_blocks(stmt)):
            return False
    return True


def _expr_fits(expr: Expr, names: dict[str, Interval]) -> bool:
    """Every maximal index expression inside has an interval."""
    if is_index(expr) and not isinstance(expr, Const):
        return _interval(expr, names) is not None and all(_expr_fits(child, names) for child in children(expr))
    return all(_expr_fits(child, names) for child in children(expr))


def _interval(expr: Expr, names: dict[str, Interval]) -> Interval | None:
    """Smallest and largest value of an index expression; `None` if an intermediate value may not fit or is not
    known.
    """
    found = _evaluate(expr, names)
    return found if found is not None and found[0] > -LIMIT and found[1] < LIMIT else None


def _evaluate(expr: Expr, names: dict[str, Interval]) -> Interval | None:
    match expr:
        case Const():
            return int(expr.value), int(expr.value)
        case Size() | IndexVar():
            return names.get(expr.name)
        case Unary():
            inner = _interval(expr.operand, names)
            return None if inner is None else (-inner[1], -inner[0])
        case Binary():
            return _combine(expr.op, _interval(expr.left, names), _interval(expr.right, names))
        case Select():
            return _hull(_interval(expr.then, names), _interval(expr.otherwise, names))
        case Call("abs"):
            inner = _interval(expr.arguments[0], names)
            return None if inner is None else (0, max(abs(inner[0]), abs(inner[1])))
        case Call():
            total = _interval(expr.arguments[0], names)
            for argument in expr.arguments[1:]:
                total = _combine(expr.function, total, _interval(argument, names))
            return total
        case Read() | Cast():
            return None
    assert_never(expr)


def _hull(left: Interval | None, right: Interval | None) -> Interval | None:
    return None if left is None or right is None else (min(left[0], right[0]), max(left[1], right[1]))


def _combine(op: str, left: Interval | None, right: Interval | None) -> Interval | None:
    if left is None or right is None:
        return None
    (a, b), (c, d) = left, right
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case "min":
            return min(a, c), min(b, d)
        case "max":
            return max(a, c), max(b, d)
        case "/" | "//":
            return (a // d, b // c) if c > 0 and a >= 0 else (-max(abs(a), abs(b)) - 1, max(abs(a), abs(b)) + 1)
        case "%":
            return (0, max(d - 1, 0)) if c >= 0 else (min(c, 0), max(d, 0))
        case _:
            return None
