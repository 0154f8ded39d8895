"""What intrinsics mean, on NumPy arrays: one function per operation, called with the attributes and `(array, position)` pairs.

The names and the conventions of operands are those of `codegen/cuda/primitives.py`; a step on vectors (`fma_...`, `dot_...`) works
on tiles in memory, and says in `total`, `left` and `right` along which dimension each of its axes moves an operand
(`row=0 column=1`). A `bfloat16` array is given as its bits.

Worked example: `mma_m16n8k16_f16` on a 16 x 8 array of zeros and operands of ones makes every element 16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

NDArray = np.ndarray[Any, Any]
Operand = tuple[NDArray, tuple[int, ...]]
Attributes = Mapping[str, int | str]


def _window(operand: Operand, rows: int, columns: int) -> NDArray:
    """The tile that begins at a position, in the last two dimensions."""
    array, position = operand
    *outer, row, column = position
    tile: NDArray = array[(*outer, slice(row, row + rows), slice(column, column + columns))]
    if tile.shape != (rows, columns):
        raise IndexError(f"a tile of {rows} x {columns} at {position} of a buffer of shape {array.shape}")
    return tile


def _same(values: NDArray) -> NDArray:
    return values


def _from_bfloat16(bits: NDArray) -> NDArray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _to_tf32(values: NDArray) -> NDArray:
    """Ten bits of mantissa, nearest, ties away from zero."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def _matrix_step(depth: int, convert: Callable[[NDArray], NDArray]) -> Callable[..., None]:
    def step(attributes: Attributes, total: Operand, left: Operand, right: Operand) -> None:
        c = _window(total, 16, 8)
        a, b = convert(_window(left, 16, depth)), convert(_window(right, depth, 8))
        c += (a.astype(np.float64) @ b.astype(np.float64)).astype(c.dtype)

    return step


def _tiles(
    attributes: Attributes, key: str, operand: Operand, axes: tuple[str, str], sizes: Mapping[str, int]
) -> NDArray:
    """An operand of a step in memory as a matrix; the attribute says along which dimension each axis of the step moves it."""
    array, position = operand
    places = {name: int(place) for name, place in (pair.split("=") for pair in str(attributes[key]).split())}
    where: list[Any] = list(position)
    for axis, place in places.items():
        where[place] = slice(position[place], position[place] + sizes[axis])
    part: NDArray = array[tuple(where)]
    order = sorted(places, key=lambda axis: places[axis])
    wanted = [axis for axis in axes if axis in places]
    if part.shape != tuple(sizes[axis] for axis in order):
        raise IndexError(f"a tile at {position} of a buffer of shape {array.shape}")
    part = part.transpose([order.index(axis) for axis in wanted])
    return part if len(wanted) == 2 else part.reshape([sizes[axis] if axis in places else 1 for axis in axes])


def _vector_step(
    rows: int, columns: int, depth: int, convert: Callable[[NDArray], NDArray] = _same
) -> Callable[..., None]:
    sizes = {"row": rows, "column": columns, "reduction": depth}

    def step(attributes: Attributes, total: Operand, left: Operand, right: Operand) -> None:
        c = _tiles(attributes, "total", total, ("row", "column"), sizes)
        a = _tiles(attributes, "left", left, ("row", "reduction"), sizes)
        b = _tiles(attributes, "right", right, ("reduction", "column"), sizes)
        wide = np.int64 if c.dtype.kind == "i" else np.float64
        c += (convert(a).astype(wide) @ convert(b).astype(wide)).astype(c.dtype)

    return step


def _load(attributes: Attributes, fragment: Operand, source: Operand) -> None:
    rows, columns = int(attributes["rows"]), int(attributes["columns"])
    _window(fragment, rows, columns)[...] = _window(source, rows, columns)


def _load_transposed(attributes: Attributes, fragment: Operand, source: Operand) -> None:
    rows, columns = int(attributes["rows"]), int(attributes["columns"])
    _window(fragment, rows, columns)[...] = _window(source, columns, rows).T


def _row(operand: Operand, nbytes: int) -> NDArray:
    """The elements along the last dimension that fill so many bytes."""
    array, position = operand
    count = nbytes // array.dtype.itemsize
    part: NDArray = array[(*position[:-1], slice(position[-1], position[-1] + count))]
    if part.shape != (count,):
        raise IndexError(f"{count} elements at {position} of a buffer of shape {array.shape}")
    return part


def _copy(attributes: Attributes, target: Operand, source: Operand) -> None:
    nbytes = int(attributes["bytes"])
    _row(target, nbytes)[...] = _row(source, nbytes)


def _zero(attributes: Attributes, target: Operand) -> None:
    _row(target, int(attributes["bytes"]))[...] = 0


def _nothing(attributes: Attributes) -> None:
    """Copies have landed already."""


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "*": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def _reduce(attributes: Attributes, result: Operand, terms: Operand) -> None:
    array, position = terms
    axis, threads = int(attributes["axis"]), int(attributes["threads"])
    values: NDArray = array[(*position[:axis], slice(position[axis], position[axis] + threads), *position[axis + 1 :])]
    target, where = result
    target[where] = reduce(_COMBINE[str(attributes["op"])], list(values))


INTRINSICS: dict[str, Callable[..., None]] = {
    "mma_m16n8k16_f16": _matrix_step(16, _same),
    "mma_m16n8k16_bf16": _matrix_step(16, _from_bfloat16),
    "mma_m16n8k8_tf32": _matrix_step(8, _to_tf32),
    "mma_m16n8k32_s8": _matrix_step(32, _same),
    "fma_6x16_f32": _vector_step(6, 16, 1),
    "fma_14x32_f32": _vector_step(14, 32, 1),
    "fma_6x8_f64": _vector_step(6, 8, 1),
    "fma_14x16_f64": _vector_step(14, 16, 1),
    "dot_4x16x4_u8s8": _vector_step(4, 16, 4),
    "dot_1x16x4_u8s8": _vector_step(1, 16, 4),
    "dot_1x16x4_s8u8": _vector_step(1, 16, 4),
    "dot_1x16x2_s16": _vector_step(1, 16, 2),
    "dot_1x8x2_s16": _vector_step(1, 8, 2),
    "dot_1x16x2_bf16": _vector_step(1, 16, 2, _from_bfloat16),
    "ldmatrix": _load,
    "ldmatrix_trans": _load_transposed,
    "cp_async": _copy,
    "cp_async_zero": _zero,
    "cp_async_commit": _nothing,
    "cp_async_wait": _nothing,
    "reduce_threads": _reduce,
}
"""Meaning by name."""
