"""What to pass in the place of an array that has another number of dimensions.

Comes in: the dimensions of a parameter, sizes that other arguments tell, and the shape of an array `x`. Goes out: help for TC608.

Worked example: for `float(T, P) X`, `x` of shape `(100,)` may be one row, `x[None]`, or one column, `x[:, None]`. Where `P` is 1 in
another argument, it is the column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]
Dims: TypeAlias = Sequence[str | int | None]
"""Per dimension a size, a number, or `None` for what is not known."""

_SHOWN = 3
"""So many ways are named."""
_MOST = 100
"""So many are looked at: an array of 64 dimensions has 4 thousand million for 8."""


def rank_help(dims: Dims, sizes: Mapping[str, int], shape: Shape) -> str:
    """What to pass in the place of an array `x` of this shape.

    Args:
        sizes: what other arguments tell.
    """
    wanted = tuple(sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in dims)
    told = [f"`{name}` is {sizes[name]}" for name in dict.fromkeys(dims) if isinstance(name, str) and name in sizes]
    ways = [way for way in _ways(len(dims), shape) if _fits(way[1], wanted)]
    if all_kept := [way for way in ways if math.prod(way[1]) == math.prod(shape)]:
        ways = all_kept  # no element is left out
    elif (folded := _folded(wanted, shape)) is not None:
        ways = [*ways[:1], *ways[1:][-1:], folded]
    change = ", or change the dimensions in the signature"
    change += f"; {' and '.join(told)} elsewhere" if told else ""
    if not ways:
        extents = ", ".join("..." if dim is None else str(dim) for dim in wanted) + ("," if len(dims) == 1 else "")
        return f"pass an array of shape ({extents}){change}"
    shown = ways if len(ways) <= _SHOWN else [*ways[: _SHOWN - 1], ways[-1]]
    listed = ", or ".join(f"`{text}`, of shape {found}" for text, found in shown)
    return f"pass {listed}{change}"


def _ways(rank: int, shape: Shape) -> Iterator[tuple[str, Shape]]:
    """New dimensions of 1, or the first element along some dimensions: the subscript of `x`, and the shape of the result."""
    most = max(rank, len(shape))
    if math.comb(most, min(rank, len(shape))) > _MOST:
        return
    for kept in reversed(list(combinations(range(most), min(rank, len(shape))))):
        parts = [":" if axis in kept else "None" if rank > len(shape) else "0" for axis in range(most)]
        extents = iter(shape)
        found = tuple(next(extents) if axis in kept else 1 for axis in range(rank))
        if rank < len(shape):
            if any(not shape[axis] for axis in range(most) if axis not in kept):
                continue  # there is no first element
            found = tuple(shape[axis] for axis in kept)
        yield f"x[{_subscript(parts)}]", found


def _subscript(parts: Sequence[str]) -> str:
    """`None`, `:, None`, `..., None`: without the `:` at the end, and of several at the front `...`."""
    last = max(number for number, part in enumerate(parts) if part != ":")
    first = next(number for number, part in enumerate(parts) if part != ":")
    if first > 1 and last == len(parts) - 1:
        return ", ".join(["...", *parts[first:]])
    return ", ".join(parts[: last + 1])


def _fits(found: Shape, wanted: Dims) -> bool:
    """Whether these extents are those that are wanted, and equal where one size stands twice."""
    seen: dict[str, int] = {}
    return all(
        dim is None or (seen.setdefault(dim, extent) if isinstance(dim, str) else dim) == extent
        for dim, extent in zip(wanted, found, strict=True)
    )


def _folded(wanted: Dims, shape: Shape) -> tuple[str, Shape] | None:
    """The same elements in other rows: behind the first one, unknown dimensions are the last ones of the array."""
    rest = [shape[axis - len(wanted)] if len(wanted) - axis <= len(shape) else None for axis in range(len(wanted))]
    given = [dim if isinstance(dim, int) else own for dim, own in zip(wanted, rest, strict=True)][1:]
    known = [extent for extent in given if extent]
    if len(known) < len(given) or not math.prod(shape) or math.prod(shape) % math.prod(known):
        return None
    found = (math.prod(shape) // math.prod(known), *known)
    return (f"x.reshape({', '.join(map(str, (-1, *known)))})", found) if _fits(found, wanted) else None
