"""Where whole tiles may be computed at the edge of a result: every read must stay inside what is allocated.

`storage(padded=True)` is a wish. A padded stage computes elements that nobody needs, from operands that must exist: packed panels
are rounded up to whole tiles, copied rows are longer than the tensor. Where that is not proved for every read, the stage keeps its
tail.

Worked example: `C.cache` computes columns `32*o .. 32*o + 31` from panels `B.cache[j // 32][k][j % 32]` of `ceil(N/32)` panels; the
last column read is `32*(ceil(N/32) - 1) + 31`, the last one allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from tc_jupyter.program import Read
from tc_jupyter.ranges import (
    Extremum,
    FloorDiv,
    Mod,
    SizeExpr,
    constant,
    floor_div,
    from_expr,
    interval,
    nonnegative,
    of_atom,
)

from .extents import loop_extent
from .infer_bound import (
    SymbolicBounds,
    gaps_of,
    infer_symbolic,
    is_computed,
    scope_of,
    variable,
    view_shift,
)
from .lineage import bounded
from .stage import Fuse, Stage
from .zeros import adds_zeros


def with_safe_padding(bounds: SymbolicBounds, checked: frozenset[str] = frozenset()) -> SymbolicBounds:
    """The bounds with only such stages padded whose reads are proved to stay inside.

    Args:
        checked: statements whose subscripts are checked at each point; a check at a point that nobody needs could fail.
    """
    padded = [stage for stage in bounds.graph.stages if stage.storage.padded]
    unsafe = [stage for stage in padded if stage.evaluates in checked or not is_safe(bounds, stage)]
    # copies that a sum reads beyond its end may have been changed since it was allowed to
    unsafe += [stage for stage in padded if stage.storage.whole and not adds_zeros(bounds.graph, stage)]
    if not unsafe:
        return bounds
    graph = bounds.graph
    for stage in unsafe:
        graph = graph.replace_stage(replace(stage, storage=replace(stage.storage, padded=False, whole=False)))
    return with_safe_padding(infer_symbolic(graph), checked)


def is_safe(bounds: SymbolicBounds, stage: Stage) -> bool:
    """Whether every read of a padded stage stays inside what is allocated for its tensor.

    A copy into shared memory tests each position and fills up with zeros, a masked stage tests the ends of rows; clamped outputs
    read the last element again.
    """
    return (
        stage.storage.scope == "shared"
        or bool(stage.storage.clamped)
        or all(_inside(bounds, stage, read) for read in stage.statement.reads() if read.indices)
    )


def _inside(bounds: SymbolicBounds, stage: Stage, read: Read) -> bool:
    loops, gaps = _loops_around(bounds, stage), _gaps(bounds, stage, read)
    tested = stage.storage.masked and _has_rows(bounds, read.tensor)
    for number, (local, length) in enumerate(_positions(bounds, stage, read), 1):
        if local is None or not _starts(bounds, (local, *(local - gap for gap in gaps)), loops):
            return False
        highs = (local, *(local + gap for gap in gaps))
        if not (tested and number == len(read.indices)) and not _ends(bounds, highs, length, loops):
            return False
    return True


def _gaps(bounds: SymbolicBounds, stage: Stage, read: Read) -> list[SizeExpr]:
    """What is not negative wherever a read is made: more than a position and this, or less than it without this, it is not."""
    alike = [set(each.conditions) for each in bounds.reads_of(stage) if each.read == read]
    values = dict(bounds[stage.name].lineage.values)
    return [gap.substitute(values) for gap in gaps_of(bounds.graph, tuple(set.intersection(*alike)))]


def _ends(bounds: SymbolicBounds, highs: Iterable[SizeExpr], length: SizeExpr, loops: list[tuple[str, str]]) -> bool:
    """Whether one of the values that a position is at most is proved to be before the end."""
    whole, *parts = parts_of(length)
    return all(
        any(nonnegative(-high) for each in highs for high in _uppers(bounds, each + 1 - part, loops))
        for part in parts or (whole,)
    )


def _has_rows(bounds: SymbolicBounds, tensor: str) -> bool:
    """Whether the last dimension of a tensor is the last one in memory: no layout packs it."""
    return all(each.storage.layout is None for each in bounds.graph.stages_on(tensor))


def _starts(bounds: SymbolicBounds, lows: Iterable[SizeExpr], loops: list[tuple[str, str]]) -> bool:
    """Whether one of the values that a position is at least is never negative while whole tiles are computed."""
    return any(_is_at_least_zero(bounds, low, loops) for low in lows)


def _is_at_least_zero(bounds: SymbolicBounds, local: SizeExpr, loops: list[tuple[str, str]]) -> bool:
    low: SizeExpr | None = local
    for name, leaf in loops:
        if low is None:
            return False
        if variable(name, leaf) in low.indices:
            last = bounds[name].lineage.extents[leaf] - 1
            low = interval(low, {variable(name, leaf): (constant(0), last)}).lower
    return low is not None and nonnegative(low)


def proved_inside(bounds: SymbolicBounds, stage: Stage, read: Read) -> tuple[tuple[bool, bool], ...]:
    """Per dimension, whether it is proved that a stage reads nothing before the first element, and nothing beyond the last one."""
    return _proved(bounds, stage, _positions(bounds, stage, read), _gaps(bounds, stage, read))


def proved_copied(bounds: SymbolicBounds, stage: Stage) -> tuple[tuple[bool, bool], ...]:
    """Per dimension, whether it is proved that a copy computes nothing before the first element of what it copies, and nothing
    beyond the last one.
    """
    values, box = bounds[stage.name].lineage.values, bounds.graph.boxes[stage.target].bounds
    indices = stage.statement.output_indices
    places = [(values[i.name] - low, high - low) for i, (low, high) in zip(indices, box, strict=True)]
    return _proved(bounds, stage, places)


def _proved(
    bounds: SymbolicBounds,
    stage: Stage,
    places: Iterable[tuple[SizeExpr | None, SizeExpr]],
    gaps: Iterable[SizeExpr] = (),
) -> tuple[tuple[bool, bool], ...]:
    """Per position and number of elements, whether the position is never negative, and never behind the last element."""
    axes, known = _fused_axes(bounds, stage), tuple(gaps)
    loops = [*axes, *_loops_around(bounds, stage)]

    def in_axes(local: SizeExpr) -> SizeExpr:
        for (name, axis), value in axes.items():
            extent = bounds[name].lineage.extents[axis]
            local += (bounded(variable(name, axis), extent) - of_atom(value)) * local.terms.get((value,), 0)
        return local

    found: list[tuple[bool, bool]] = []
    for local, length in places:
        if local is None:
            found.append((False, False))
            continue
        lows = [in_axes(each) for each in (local, *(local - gap for gap in known))]
        highs = [in_axes(each) for each in (local, *(local + gap for gap in known))]
        found.append((_starts(bounds, lows, loops), _ends(bounds, highs, length, loops)))
    return tuple(found)


def _fused_axes(bounds: SymbolicBounds, stage: Stage) -> dict[tuple[str, str], FloorDiv | Mod]:
    """The axes that fused loops around a stage consist of, and what they are in terms of these: from 0 to their extent, though the
    length that divides the fused loop looks as if it could be negative.
    """
    found: dict[tuple[str, str], FloorDiv | Mod] = {}
    for name in dict.fromkeys(name for name, _ in bounds.graph.attach_path(stage.name)):
        related = bounds[name].lineage
        for relation in bounds.graph.stage(name).relations:
            for axis in (relation.outer, relation.inner) if isinstance(relation, Fuse) else ():
                value = related.values[axis]
                if any(value.indices & test.indices for test, _ in related.constraints):
                    continue
                match list(value.terms.items()):
                    case [((FloorDiv() | Mod() as atom,), 1)]:
                        found[name, axis] = atom
                    case _:
                        pass
    return found


def _loops_around(bounds: SymbolicBounds, stage: Stage) -> list[tuple[str, str]]:
    """The loops of a stage and those around it, innermost first."""
    return [(stage.name, leaf) for leaf in reversed(stage.leaves)] + list(bounds.graph.attach_path(stage.name))


def _positions(bounds: SymbolicBounds, stage: Stage, read: Read) -> Iterator[tuple[SizeExpr | None, SizeExpr]]:
    """Per dimension the storage position that is read, `None` where data decides, and the number of elements."""
    graph = bounds.graph
    values = dict(bounds[stage.name].lineage.values)
    shift = view_shift(graph, read.tensor)
    places = _allocated(bounds, graph.storage_name(read.tensor))
    for subscript, by, (base, length) in zip(read.indices, shift, places, strict=True):
        by_data = is_computed(graph, subscript)
        yield None if by_data else from_expr(subscript, scope_of(graph)).substitute(values) + by - base, length


def _allocated(bounds: SymbolicBounds, tensor: str) -> list[tuple[SizeExpr, SizeExpr]]:
    """First logical index and number of elements per dimension that storage exists for."""
    graph = bounds.graph
    owners = graph.stages_on(tensor)
    if not owners or owners[0].name in graph.outputs:
        box = graph.boxes[tensor]
        return list(zip(box.origin, box.shape, strict=True))
    storage = owners[0].storage
    places: list[tuple[SizeExpr, SizeExpr]] = []
    dimensions = bounds[owners[0].name].box
    for number, (low, extent) in enumerate(dimensions):
        most = extent.limits[1]
        length = constant(most) if most is not None and owners[0].attach.kind == "at" else extent
        tile = prod(size for d, size in storage.layout or () if d == number and size)
        length = floor_div(length + tile - 1, tile) * tile
        last = storage.layout is None and number == len(dimensions) - 1
        places.append((low, length + storage.pad if last else length))
    return places


def _uppers(bounds: SymbolicBounds, high: SizeExpr, loops: list[tuple[str, str]]) -> Iterator[SizeExpr]:
    """Upper bounds of a value over loops, innermost first; the end of a loop that is a minimum gives one bound per part."""
    if not loops:
        yield high
        return
    (name, leaf), rest = loops[0], loops[1:]
    here = variable(name, leaf)
    if here not in high.indices:
        yield from _uppers(bounds, high, rest)
        return
    stage, related = bounds.graph.stage(name), bounds[name].lineage
    split = high.linear_in(here) if leaf in stage.leaves else None
    if split is not None and nonnegative(split[0]):
        weight, start = split
        around = frozenset(stage.leaves[: stage.leaves.index(leaf)])
        for extent in parts_of(loop_extent(stage, related, leaf, around)):
            yield from _uppers(bounds, start + weight * (extent - 1), rest)
        return
    found = interval(high, {here: (constant(0), related.extents[leaf] - 1)}).upper
    if found is not None:
        yield from _uppers(bounds, found, rest)


def parts_of(extent: SizeExpr) -> tuple[SizeExpr, ...]:
    """Values that an extent is at most: itself and, of a minimum, its arguments."""
    terms = extent.ordered()
    if len(terms) == 1 and len(terms[0][0]) == 1 and abs(terms[0][1]) == 1:
        (atom,), sign = terms[0]
        if isinstance(atom, Extremum) and (atom.kind == "min") == (sign > 0):
            return (extent, *(argument * sign + extent.offset for argument in atom.arguments))
    return (extent,)
