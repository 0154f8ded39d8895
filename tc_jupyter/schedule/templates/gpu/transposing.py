"""Copies that turn axes around: a tile of 32 x 32 in shared memory, read along one axis and written along the other.

Rows of the tile are 33 elements apart, so that its columns lie in different banks.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.program import IndexVar
from tc_jupyter.ranges import from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import WARP, Target
from tc_jupyter.schedule.templates.form import Form, formed
from tc_jupyter.schedule.templates.stages import added, fused

from .limits import fits_shared


def default(schedule: Schedule, name: str, target: Target, sizes: Mapping[str, int]) -> Schedule | None:
    """Tiles over the last output index and the index that a read has last; `None` if no read turns them around."""
    del target, sizes
    stage = schedule.graph.stage(name)
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    if stage.statement.operator != "=" or len(outputs) < 2:
        return None
    turned = {
        read.tensor: axis for read in stage.statement.reads() if (axis := _turned(stage, read.indices)) is not None
    }
    several = [read.tensor for read in stage.statement.reads() if read.tensor in turned]
    if len(set(turned.values())) != 1 or len(several) != len(turned):
        return None
    found = _tiles(schedule, name, next(iter(turned.values())), outputs, list(turned))
    return found if fits_shared(found) else None


def _turned(stage: Stage, subscripts: tuple[object, ...]) -> str | None:
    """The index along which a read is contiguous, if that is another than the last output index, which it uses too."""
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    if not subscripts or not all(isinstance(index, IndexVar) for index in subscripts):
        return None
    moves = [from_expr(index) for index in subscripts if isinstance(index, IndexVar)]
    if step_of(moves[-1], outputs[-1]) != 0 or all(step_of(move, outputs[-1]) == 0 for move in moves):
        return None
    return next((index for index in outputs[:-1] if step_of(moves[-1], index) == 1), None)


def _tiles(schedule: Schedule, name: str, row: str, outputs: list[str], tensors: list[str]) -> Schedule:
    last = outputs[-1]
    rest = [leaf for leaf in outputs if leaf not in (row, last)]
    schedule = schedule.reorder(name, *rest, row, last)
    schedule, rest = fused(schedule, name, rest)
    bound = dict.fromkeys(rest, "blockIdx.z") | {f"{row}.outer": "blockIdx.x", f"{last}.outer": "blockIdx.y"}
    bound |= {f"{row}.inner.inner": "threadIdx.y", f"{last}.inner": "threadIdx.x"}
    splits = {row: WARP, last: WARP, f"{row}.inner": tuning.WARPS}
    schedule = formed(schedule, name, Form(splits, order=(f"{row}.inner.outer",), bound=bound))
    for tensor in tensors:
        schedule = _tile_of(schedule, tensor, name, f"{last}.outer", row, last)
    return schedule


def _tile_of(schedule: Schedule, tensor: str, name: str, place: str, row: str, last: str) -> Schedule:
    schedule, copy = added(schedule, schedule.cache_read(tensor, name))
    schedule = schedule.compute_at(copy, name, place).storage(copy, "shared", padded=True, pad=1)
    schedule = schedule.split(copy, row, WARP).split(copy, last, tuning.WARPS)
    outer = [leaf for leaf in schedule.leaves(copy) if leaf not in (f"{row}.inner", f"{last}.inner", f"{last}.outer")]
    schedule = schedule.reorder(copy, *outer, f"{last}.outer", f"{last}.inner", f"{row}.inner")
    return schedule.bind(copy, f"{last}.inner", "threadIdx.y").bind(copy, f"{row}.inner", "threadIdx.x")
