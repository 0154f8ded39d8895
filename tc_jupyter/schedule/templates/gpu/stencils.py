"""Stencils and filters with constant windows: a tile with its halo in shared memory, what a thread needs again in registers.

    for i.outer, j.outer                    # blockIdx: 32 rows, 64 columns
      X.cache = tile of X and its halo      # shared memory, zeros beyond the edge
      barrier
      for threads: 4 rows of a column each
        X.cache.cache = what they read      # registers
        Y = ...

In three dimensions blocks walk along the slowest index and keep planes: a ring of them in shared memory, a column of them in the
registers of every thread. A step of the walk reads one new plane and has one barrier.

    for i.outer, j.outer, k.outer           # blockIdx
      for i.inner                           # the walk
        X.cache = the next plane of X       # `storage(rolling=True)`
        barrier
        X.cache.cache = the next elements   # `storage(rolling=True)`
        Y = ...

A temporary that is read at several places is computed in the tile instead of being copied there.

Source: P. Micikevicius, "3D finite difference computation on GPUs using CUDA".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tc_jupyter.program import IndexVar, Read, walk
from tc_jupyter.ranges import SizeExpr, constant, from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import SECTOR_BYTES, WARP, Target
from tc_jupyter.schedule.templates.form import Form, formed
from tc_jupyter.schedule.templates.stages import added, fused

from .limits import fits_shared
from .product import extent_of


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows of a thread, columns of a thread where blocks do not walk, planes of a walk."""

    rows: int
    columns: int
    planes: int

    def extent(self, roles: Roles, index: str) -> int:
        """Elements of a tile along an index of the result."""
        if index == roles.column:
            return WARP * (1 if roles.walk else self.columns)
        return {roles.row: tuning.WARPS * self.rows, roles.walk: self.planes}.get(index, 1)


TILES = (Tile(4, 2, 32), Tile(2, 2, 16), Tile(1, 1, 8))


@dataclass(frozen=True, slots=True)
class Reuse:
    """A tensor that is read at several places.

    Attributes:
        consumer: the stage that reads it: the stencil, or a temporary that is written into it.
        indices: per dimension the index of the result that moves it, if one does.
        points: the places, as distances per dimension.
        computed: it is a temporary on single elements.
    """

    tensor: str
    consumer: str
    indices: tuple[str | None, ...]
    points: frozenset[tuple[int, ...]]
    bytes: int
    computed: bool

    def halo(self, index: str) -> int:
        """By how much what a tile reads is longer than the tile."""
        found = [at for at, each in enumerate(self.indices) if each == index]
        ends = [{point[at] for point in self.points} for at in found]
        return max((max(each) - min(each) for each in ends), default=0)


@dataclass(frozen=True, slots=True)
class Roles:
    """The column (last index), the row (shared by neighbouring rows of threads), the index along which blocks walk, if any."""

    walk: str | None
    row: str
    column: str


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """Tiles with halos for what is read at several rows; `None` where that does not pay or no tile fits."""
    del target
    stage = schedule.graph.stage(name)
    outputs = [index.name for index in stage.statement.output_indices]
    if len(outputs) < 2 or stage.statement.combine is not None:
        return None
    found = [each for each in _reuses(schedule, stage) if each.indices[-1] == outputs[-1]]
    roles = _roles(found, outputs)
    found = [] if roles is None else [each for each in found if _pays(each, roles, TILES[0])]
    roles = _roles(found, outputs)
    if roles is None:
        return None
    light = [
        tile for tile in TILES if all(_kept(each, roles, tile) <= tuning.STENCIL_REGISTERS for each in found)
    ] or TILES
    for tile in [each for each in light if _blocks(stage, roles, each, sizes) >= tuning.STENCIL_BLOCKS] or light[-1:]:
        made = _scheduled(schedule, name, found, roles, tile)
        if fits_shared(made):
            return made
    return None


def _blocks(stage: Stage, roles: Roles, tile: Tile, sizes: Mapping[str, int]) -> int:
    """Blocks of a launch; of an index of unknown size as many as keep a device busy."""
    extents = {index.name: extent_of(stage, index.name, sizes) for index in stage.statement.output_indices}
    return prod(
        tuning.STENCIL_BLOCKS if e is None else -(-e // tile.extent(roles, index)) for index, e in extents.items()
    )


# --- what is read again ----------------------------------------------------------------------------------------------


def _reuses(schedule: Schedule, stage: Stage) -> Iterator[Reuse]:
    """The tensors that a stage reads at several places, with distances that are the same everywhere."""
    graph = schedule.graph
    outputs = {index.name: index.name for index in stage.statement.output_indices}
    for consumer, names in _readers(schedule, stage, outputs):
        reads: dict[str, list[Read]] = {}
        for read in consumer.statement.reads():
            if read.indices:
                reads.setdefault(read.tensor, []).append(read)
        for tensor, places in reads.items():
            found = _points(consumer, places, names)
            if (
                found is None
                or len(found[1]) < 2
                or any(isinstance(n, Read) for r in places for i in r.indices for n in walk(i))
            ):
                continue
            inline = [each for each in graph.stages_on(tensor) if each.attach.kind == "inline"]
            yield Reuse(tensor, consumer.name, *found, graph.program.tensor(tensor).dtype.bytes, bool(inline))


def _readers(schedule: Schedule, stage: Stage, names: Mapping[str, str]) -> Iterator[tuple[Stage, Mapping[str, str]]]:
    """The stage and the temporaries that it reads at the present element only; their indices as indices of the result."""
    yield stage, names
    reads = [read for read in stage.statement.reads() if read.indices]
    for inner in (each for each in schedule.graph.stages if each.attach.kind == "inline"):
        places = {read.indices for read in reads if read.tensor == inner.target}
        plain = [[names.get(i.name) for i in place if isinstance(i, IndexVar)] for place in places]
        own = [index.name for index in inner.statement.output_indices]
        if len(plain) == 1 and len(plain[0]) == len(own) and None not in plain[0]:
            yield from _readers(schedule, inner, {a: b for a, b in zip(own, plain[0], strict=True) if b is not None})


def _points(
    stage: Stage, reads: Sequence[Read], names: Mapping[str, str]
) -> tuple[tuple[str | None, ...], frozenset[tuple[int, ...]]] | None:
    """Per dimension the index of the result that moves the reads, and all places relative to the first read."""
    windows = {root.name: root.dom for root in stage.roots if root.kind == "reduction"}
    if not all(low.is_constant and high.is_constant for low, high in windows.values()):
        return None
    ranges = [range(low.constant, high.constant) for low, high in windows.values()]
    if len(reads) * prod(map(len, ranges)) > tuning.STENCIL_POINTS:
        return None
    moved: set[tuple[str | None, ...]] = set()
    origin: list[SizeExpr] | None = None
    points: set[tuple[int, ...]] = set()
    for read in reads:
        subscripts = [from_expr(index) for index in read.indices]
        found = [_mover(subscript, names) for subscript in subscripts]
        moved.add(tuple(names.get(each) for each in found if each != ""))
        rests = [s.substitute({each: constant(0)}) if each else s for s, each in zip(subscripts, found, strict=True)]
        for values in product(*ranges):
            here = {name: constant(value) for name, value in zip(windows, values, strict=True)}
            place = [rest.substitute(here) for rest in rests]
            origin = origin or place
            distances = [a - b for a, b in zip(place, origin, strict=True)]
            if not all(distance.is_constant for distance in distances):
                return None
            points.add(tuple(distance.constant for distance in distances))
    (indices,) = moved if len(moved) == 1 else ((),)
    proper = len(indices) == len(reads[0].indices) and len({*indices} - {None}) == sum(
        each is not None for each in indices
    )
    return (indices, frozenset(points)) if proper else None


def _mover(subscript: SizeExpr, names: Mapping[str, str]) -> str:
    """The index that moves a subscript by one; `-` if none does, empty if one moves it otherwise, or several do."""
    steps = {name: step_of(subscript, name) for name in names}
    moving = [name for name, step in steps.items() if step != 0]
    if not moving:
        return "-"
    return moving[0] if len(moving) == 1 and steps[moving[0]] == 1 else ""


# --- what pays -------------------------------------------------------------------------------------------------------


def _roles(found: Sequence[Reuse], outputs: Sequence[str]) -> Roles | None:
    shifted = [index for index in outputs[:-1] if any(each.halo(index) for each in found)]
    if not 1 <= len(shifted) <= 2:
        return None
    return Roles(shifted[0] if len(shifted) == 2 else None, shifted[-1], outputs[-1])


def _pays(reuse: Reuse, roles: Roles, tile: Tile) -> bool:
    """Whether the sectors of a tile are clearly fewer than those that its warps would ask for, per row of a warp."""
    rows = {point[:-1] for point in reuse.points}
    row = WARP * reuse.bytes / SECTOR_BYTES
    plain = len(rows) * (row + (reuse.halo(roles.column) > 0))
    tiled = row
    for index in (roles.walk, roles.row, roles.column):
        if index is not None:
            tiled *= 1 + reuse.halo(index) / tile.extent(roles, index)
    return plain >= tuning.STENCIL_PAYS * tiled


def _kept(reuse: Reuse, roles: Roles, tile: Tile) -> int:
    """Registers of 32 bits that a thread needs to read every element of shared memory once; 0 if none is read twice, or the
    tile is computed, of which only a part may exist.
    """
    planes: dict[tuple[int, ...], int] = {}
    walk = reuse.indices.index(roles.walk) if roles.walk in reuse.indices else None
    row = reuse.indices.index(roles.row) if roles.row in reuse.indices else None
    last = max(point[walk] for point in reuse.points) if walk is not None else 0
    for point in reuse.points:
        for step in range(tile.rows):
            cell = [distance + step * (at == row) for at, distance in enumerate(point)]
            plane = 0 if walk is None else cell.pop(walk)
            planes[tuple(cell)] = min(plane, planes.get(tuple(cell), plane))
    again = not reuse.computed and len(planes) < len(reuse.points) * tile.rows
    return sum(last - plane + 1 for plane in planes.values()) * max(1, reuse.bytes // 4) if again else 0


# --- the schedule ----------------------------------------------------------------------------------------------------


def _scheduled(schedule: Schedule, name: str, found: Sequence[Reuse], roles: Roles, tile: Tile) -> Schedule:
    schedule = _result(schedule, name, roles, tile)
    if roles.walk is None:
        place, inside = (
            f"{roles.column}.outer",
            f"{roles.column}.inner.outer" if tile.columns > 1 else f"{roles.column}.inner",
        )
    else:
        place = inside = f"{roles.walk}.inner"
    for reuse in found:
        if reuse.computed:
            schedule = _computed(schedule, reuse, name, place, roles)
            continue
        schedule, copy = added(schedule, schedule.cache_read(reuse.tensor, reuse.consumer))
        schedule = schedule.compute_at(copy, name, place)
        schedule = schedule.storage(copy, "shared", padded=True, **_rolling(roles))
        schedule = _shared_by_threads(schedule, copy, reuse, roles)
        if 0 < _kept(reuse, roles, tile) <= tuning.STENCIL_REGISTERS:
            schedule = _in_registers(schedule, copy, reuse, name, inside, roles, tile)
    return schedule


def _rolling(roles: Roles) -> dict[str, bool]:
    return {"rolling": True} if roles.walk is not None else {}


def _result(schedule: Schedule, name: str, roles: Roles, tile: Tile) -> Schedule:
    """Blocks and threads; the rows of a thread are neighbours, its columns a warp apart."""
    walk, row, column = roles.walk, roles.row, roles.column
    stage = schedule.graph.stage(name)
    reductions = [leaf for leaf in stage.leaves if stage.kind(leaf) == "reduction"]
    blocks = [leaf for leaf in stage.leaves if leaf not in (walk, row, column, *reductions)]
    rows, columns = f"{row}.inner.outer", f"{column}.inner"
    schedule = schedule.split(name, row, tile.extent(roles, row)).split(name, f"{row}.inner", tile.rows)
    schedule = schedule.split(name, column, tile.extent(roles, column))
    inner = [f"{row}.inner.inner"]
    if walk is not None:
        schedule = schedule.split(name, walk, tile.planes)
        blocks, inner = [*blocks, f"{walk}.outer"], [f"{walk}.inner", *inner]
    elif tile.columns > 1:
        schedule = schedule.split(name, columns, WARP).unroll(name, f"{columns}.outer")
        columns, inner = f"{columns}.inner", [f"{columns}.outer", *inner]
    schedule = schedule.reorder(name, *blocks, f"{row}.outer", f"{column}.outer", rows, columns, *inner, *reductions)
    schedule, blocks = fused(schedule, name, blocks)
    bound = dict.fromkeys(blocks, "blockIdx.z") | {f"{row}.outer": "blockIdx.y", f"{column}.outer": "blockIdx.x"}
    bound |= {rows: "threadIdx.y", columns: "threadIdx.x"}
    return formed(schedule, name, Form(unrolled=(inner[-1], *reductions), bound=bound))


def _shared_by_threads(schedule: Schedule, copy: str, reuse: Reuse, roles: Roles) -> Schedule:
    """All threads copy the elements of a plane, one after the other."""
    pairs = list(zip(schedule.leaves(copy), reuse.indices, strict=True))
    leaves = [leaf for leaf, index in pairs if index in (roles.row, roles.column, None)]
    schedule = schedule.reorder(copy, *(leaf for leaf, _ in pairs if leaf not in leaves), *leaves)
    schedule, (leaf,) = fused(schedule, copy, leaves)
    schedule = schedule.split(copy, leaf, tuning.THREADS).split(copy, f"{leaf}.inner", WARP)
    schedule = schedule.bind(copy, f"{leaf}.inner.outer", "threadIdx.y")
    return schedule.bind(copy, f"{leaf}.inner.inner", "threadIdx.x")


def _in_registers(
    schedule: Schedule, tensor: str, reuse: Reuse, name: str, place: str, roles: Roles, tile: Tile
) -> Schedule:
    """A thread's own copy of what its rows read."""
    schedule, copy = added(schedule, schedule.cache_read(tensor, reuse.consumer))
    schedule = schedule.compute_at(copy, name, place).storage(copy, "register", padded=True, **_rolling(roles))
    for leaf, index in zip(schedule.leaves(copy), reuse.indices, strict=True):
        if index is not None and index != roles.walk:
            extent = (tile.rows if index == roles.row else 1) + reuse.halo(index)
            schedule = schedule.split(copy, leaf, extent).unroll(copy, f"{leaf}.inner")
    return schedule


def _computed(schedule: Schedule, reuse: Reuse, name: str, place: str, roles: Roles) -> Schedule:
    """A temporary in shared memory: its elements are computed by all threads."""
    temporary = next(each.name for each in schedule.graph.stages_on(reuse.tensor))
    schedule = schedule.compute_at(temporary, name, place).storage(temporary, "shared", **_rolling(roles))
    leaves = dict(zip(reuse.indices, schedule.leaves(temporary), strict=True))
    threads: list[str] = []
    for index, axis, count in ((roles.row, "threadIdx.y", tuning.WARPS), (roles.column, "threadIdx.x", WARP)):
        if index in leaves:
            schedule = schedule.split(temporary, leaves[index], count)
            schedule = schedule.bind(temporary, f"{leaves[index]}.inner", axis)
            threads.append(f"{leaves[index]}.inner")
    rest = [leaf for leaf in schedule.leaves(temporary) if leaf not in threads]
    return schedule.reorder(temporary, *rest, *threads)


# Notes
#
# * Counted on `compute_80`, 4 rows per thread, 7 points in three dimensions: 28 reads of shared memory per plane without
#   registers (the compiler does not see through the conditions around the rows), 14 with them; 39 and 56 registers.
