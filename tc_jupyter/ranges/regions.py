"""What a statement reads over a box of its indices, and what a tile of a result needs of every input.

Worked example: for `Y(h) +=! X(2*h + k) * K(k)` and the tile `h0 <= h < h1` the region of `X` is `[2*h0, 2*h1 + KH - 2)`.

Source: TVM, "InferBound Pass", phase 3 (propagation to the inputs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tc_jupyter.program import Program, Statement

from .accesses import Access
from .data import is_plain
from .inference import Ranges
from .interval import Box, interval
from .size_expr import ZERO, SizeExpr, has_data, maximum, minimum


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a tensor. `exact` is False when the box is only a hull of the elements."""

    box: Box
    exact: bool


def region(ranges: Ranges, statement: Statement, tensor: str, box: Box) -> Region:
    """Return the elements of `tensor` that `statement` reads while its indices run over `box`.

    Args:
        ranges: gives the boxes of tensors; a data-dependent or guarded subscript is cut with them.
        box: one half-open interval per index of `statement`, in elements; ends may contain any names.

    Returns:
        One interval per dimension of `tensor`, in logical coordinates (the origin is not subtracted).

    Raises:
        KeyError: `statement` does not read `tensor`.
    """
    names = [index.name for index in statement.indices]
    ends = {name: (lower, upper - 1) for name, (lower, upper) in zip(names, box.bounds, strict=True)}
    found = [_read(ranges, access, ends) for access in ranges.accesses[statement.name] if access.tensor == tensor]
    if not found:
        raise KeyError(tensor)
    result = found[0]
    for other in found[1:]:
        result = hull(result, other)
    return result


def _read(ranges: Ranges, access: Access, ends: Mapping[str, tuple[SizeExpr, SizeExpr]]) -> Region:
    """The region of one access."""
    whole = ranges.boxes.get(access.tensor)
    bounds: list[tuple[SizeExpr, SizeExpr]] = []
    exact = not access.guards
    seen: set[str] = set()
    for dimension, e in enumerate(access.index):
        span = interval(e, ends)
        if has_data(e) or span.lower is None or span.upper is None:
            if whole is None:
                raise KeyError(access.tensor)
            bounds.append(whole.bounds[dimension])
            exact = False
            continue
        low, high = span.lower, span.upper + 1
        if access.guards and whole is not None:
            low, high = maximum(low, whole.bounds[dimension][0]), minimum(high, whole.bounds[dimension][1])
        bounds.append((low, high))
        exact = exact and span.exact and (is_plain(e) or _is_window(e, ends)) and not e.indices & seen
        seen |= e.indices
    return Region(Box(tuple(bounds)), exact)


def _is_window(e: SizeExpr, ends: Mapping[str, tuple[SizeExpr, SizeExpr]]) -> bool:
    """Whether a sum of indices with weights 1 and -1 takes every value in between, because each range has no gaps."""
    for mono, c in e.terms.items():
        moving = SizeExpr({mono: c}, 0).indices & ends.keys()
        if moving and (len(mono) != 1 or c not in (1, -1) or mono[0].key[1:2] != ("index",)):
            return False
    return True


def hull(a: Region, b: Region) -> Region:
    """The smallest box around two regions; exact where one contains the other."""
    if a.box == b.box:
        return Region(a.box, a.exact or b.exact)
    pairs = zip(a.box.bounds, b.box.bounds, strict=True)
    box = Box(
        tuple((minimum(low, other_low), maximum(high, other_high)) for (low, high), (other_low, other_high) in pairs)
    )
    return Region(box, (a.exact and box == a.box) or (b.exact and box == b.box) or _adjacent(a, b, box))


def _adjacent(a: Region, b: Region, box: Box) -> bool:
    """Whether two exact regions of equal extent differ by 1 in one dimension, so that the hull has no gap."""
    if not (a.exact and b.exact):
        return False
    different = [d for d, (x, y) in enumerate(zip(a.box.bounds, b.box.bounds, strict=True)) if x != y]
    if len(different) != 1:
        return False
    (low, high), (other_low, other_high) = a.box.bounds[different[0]], b.box.bounds[different[0]]
    step = other_low - low
    return step.is_constant and abs(step.offset) == 1 and other_high - high == step and len(box.bounds) > 0


def input_region(program: Program, ranges: Ranges, output: str, tile: Box) -> Mapping[str, Region]:
    """What a tile of a result needs of every tensor, backwards through the statements.

    Args:
        output: a computed tensor.
        tile: one half-open interval per dimension of it, in logical coordinates, inside its box.

    Returns:
        A region for `output` and for every tensor that is read, directly or through others.

    Raises:
        KeyError: `output` is no tensor of the program.
        ValueError: a range on the way is unknown.
    """
    program.tensor(output)
    needed: dict[str, Region] = {}
    _need(program, ranges, needed, output, Region(tile, True))
    for statement in reversed(program.statements):
        wanted = needed.get(statement.target)
        if wanted is None:
            continue
        box = _statement_box(ranges, statement, wanted.box)
        for tensor in dict.fromkeys(access.tensor for access in ranges.accesses[statement.name]):
            read = region(ranges, statement, tensor, box)
            _need(program, ranges, needed, tensor, Region(read.box, read.exact and wanted.exact))
    return needed


def _statement_box(ranges: Ranges, statement: Statement, wanted: Box) -> Box:
    """The wanted part of the target, cut with the ranges of a statement that covers less; reductions run over their ranges."""
    own = ranges.statement_box(statement.name).bounds
    whole = ranges.boxes[statement.target].bounds
    bounds: list[tuple[SizeExpr, SizeExpr]] = []
    for dimension, (low, high) in enumerate(own):
        if dimension >= len(wanted.bounds):
            bounds.append((low, high))
        elif (low, high) == whole[dimension]:
            bounds.append(wanted.bounds[dimension])
        else:
            start, end = wanted.bounds[dimension]
            bounds.append((maximum(start, low), minimum(end, high)))
    return Box(tuple(bounds))


def _need(program: Program, ranges: Ranges, needed: dict[str, Region], tensor: str, more: Region) -> None:
    needed[tensor] = hull(needed[tensor], more) if tensor in needed else more
    base = program.tensor(tensor).view_of
    if base is not None:
        origin = ranges.boxes[base].origin if base in ranges.boxes else (ZERO,) * len(more.box.bounds)
        own = ranges.boxes[tensor].origin if tensor in ranges.boxes else (ZERO,) * len(more.box.bounds)
        moves = [there - here for there, here in zip(origin, own, strict=True)]
        moved = Box(tuple((low + move, high + move) for (low, high), move in zip(more.box.bounds, moves, strict=True)))
        _need(program, ranges, needed, base, Region(moved, more.exact))
