"""The search space that a tuner walks: candidates to start from, and small changes of a schedule.

Every candidate is made by primitives, which refuse what is illegal, so it computes what the program says for all sizes. Templates
are varied by asking them for a device with other limits (fewer registers give smaller tiles); plain loops are varied by the factors
and tails of their splits, by their order, and by where producers run.

Worked example: for `T(i,j) = 2*X(i,j)  O(i,j) = T(i,j) + T(i,j+1)` the candidates hold the default schedule, tiles of several sizes
on `O`, and `T` at root, inlined, or computed at every loop of `O`.

Source: Zheng et al., "Ansor: generating high-performance tensor programs for deep learning", OSDI 2020 (sketches, then mutation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Program
from tc_jupyter.ranges import Fact, Ranges

from .legality import default_lineage
from .primitives import constant_extent
from .schedule import Schedule, Step, schedule_of
from .space import default_schedule
from .stage import GPU_AXES, TAILS, THREAD_AXES, Stage
from .target import Target

MOST = 128
"""Candidates that are listed at most."""
TILES = (4, 8, 16, 32, 64, 128)
ATTEMPTS = 32
"""Random changes that `mutate` tries before it gives up."""


def candidates(
    program: Program,
    ranges: Ranges,
    target: Target,
    sizes: Mapping[str, Fact | int] | None = None,
    most: int = MOST,
    largest: Mapping[str, int] | None = None,
) -> tuple[Schedule, ...]:
    """Schedules to compare, all legal; the default schedule is the first, and no two have the same steps.

    Args:
        sizes: what is known of them, to choose tiles; every candidate is right for all others.
        most: number of candidates at most.
        largest: sizes that no call exceeds.
    """
    return tuple(islice(_distinct(_all(program, ranges, target, sizes or {}, largest or {}), target), most))


def mutate(schedule: Schedule, random: Random, target: Target | None = None) -> Schedule:
    """A legal schedule one change away: another factor, tail, order, annotation or place of a producer.

    Args:
        target: its limits are kept; `None` for none.

    Returns:
        `schedule` itself if none of the changes tried is legal.
    """
    for _ in range(ATTEMPTS):
        move = random.choice(_MOVES)
        try:
            changed = move(schedule, random)
        except CompileError:
            continue
        if changed.steps != schedule.steps and (target is None or fits(changed, target)):
            return changed
    return schedule


def fits(schedule: Schedule, target: Target) -> bool:
    """Whether the threads of a block of every kernel are at most those of the device, and constant in number."""
    if target.kind != "cuda":
        return all(kind not in GPU_AXES for stage in schedule.graph.stages for _, kind in stage.annotations)
    for stage in schedule.graph.stages:
        threads = 1
        for leaf, kind in stage.annotations:
            if kind in THREAD_AXES:
                extent = constant_extent(stage, leaf)
                if extent is None:
                    return False
                threads *= extent
        if threads > target.max_threads:
            return False
    return True


# --- candidates ------------------------------------------------------------------------------------------------------


def _all(
    program: Program, ranges: Ranges, target: Target, sizes: Mapping[str, Fact | int], largest: Mapping[str, int]
) -> Iterator[Schedule]:
    first = default_schedule(program, ranges, target, sizes, largest)
    yield first
    if target.kind == "interpreter":
        return
    for other in _limits(target):
        yield default_schedule(program, ranges, other, sizes, largest)
    yield from _places(first)
    for factor in TILES:
        yield from _refactored(first, factor)
    for tail in TAILS:
        yield _with_tails(first, tail)
    if target.kind == "cpu":
        plain = schedule_of(program, ranges)
        for placed in (plain, *_places(plain)):
            yield from _tiled(placed)


def _limits(target: Target) -> Iterator[Target]:
    """The device with less of one thing: what templates choose tiles by."""
    if target.kind == "cuda":
        for threads in (64, 128, 256, 512):
            yield replace(target, max_threads=threads)
        for share in (2, 4):
            yield replace(target, shared_bytes=target.shared_bytes // share)
            yield replace(target, multiprocessors=max(1, target.multiprocessors // share))
        return
    for registers in (8, 12, 16, 20, 24, 28):
        if registers < target.vector_registers:
            yield replace(target, vector_registers=registers)
    for bits in (128, 256):
        if bits < target.vector_bits:
            yield replace(target, vector_bits=bits)
    for threads in (1, 2 * target.threads, 4 * target.threads):
        yield replace(target, threads=threads)


def _places(schedule: Schedule) -> Iterator[Schedule]:
    """Every place of every producer that is a stage of the text without loops of its own making."""
    graph = schedule.graph
    for stage in graph.stages:
        if stage.name in graph.outputs or stage.relations or graph.stages_on(stage.target)[0].name != stage.name:
            continue
        yield from _legal(
            [lambda name=stage.name: schedule.compute_inline(name), lambda name=stage.name: schedule.compute_root(name)]
        )
        for user in graph.consumers(stage.name):
            for leaf in user.leaves:
                yield from _legal(
                    [lambda name=stage.name, user=user.name, leaf=leaf: schedule.compute_at(name, user, leaf)]
                )


def _tiled(schedule: Schedule) -> Iterator[Schedule]:
    """Square tiles of the two last output loops of every stage at root, vectors inside, tasks outside."""
    for factor in TILES:
        tiled = schedule
        for stage in schedule.graph.stages:
            if stage.attach.kind == "root" and not any(True for _ in schedule.graph.attached(stage.name)):
                found = _legal([lambda before=tiled, name=stage.name, factor=factor: _tile(before, name, factor)])
                tiled = next(found, tiled)
        yield tiled


def _tile(schedule: Schedule, name: str, factor: int) -> Schedule:
    stage = schedule.graph.stage(name)
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    if not outputs:
        return schedule
    inner = [leaf for leaf in stage.leaves if stage.kind(leaf) == "reduction"]
    *outer, last = outputs
    steps = schedule.split(name, last, factor)
    order = [*outer, f"{last}.outer", *inner, f"{last}.inner"]
    if outer:
        row = outer[-1]
        steps = steps.split(name, row, factor)
        order = [*outer[:-1], f"{row}.outer", f"{last}.outer", f"{row}.inner", *inner, f"{last}.inner"]
    steps = steps.reorder(name, *order).parallel(name, order[0])
    return steps.vectorize(name, f"{last}.inner") if order[0] != f"{last}.inner" else steps


def _refactored(schedule: Schedule, factor: int) -> Iterator[Schedule]:
    """One split with another factor."""
    for place in _free_splits(schedule):
        yield from _legal([lambda place=place: _with_keyword(schedule, place, "factor", factor)])


def _with_tails(schedule: Schedule, tail: str) -> Schedule:
    """The same of all partial tiles, where it is not refused."""
    for place in _free_splits(schedule):
        stage, axis = schedule.steps[place].arguments[:2]
        if axis in default_lineage(schedule.graph.stage(stage)).tails:
            schedule = next(_legal([lambda now=schedule, at=place: _with_keyword(now, at, "tail", tail)]), schedule)
    return schedule


def _legal(makers: Iterable[Callable[[], Schedule]]) -> Iterator[Schedule]:
    """What primitives do not refuse."""
    for make in makers:
        try:
            yield make()
        except CompileError:
            continue


def _distinct(found: Iterator[Schedule], target: Target) -> Iterator[Schedule]:
    seen: set[tuple[Step, ...]] = set()
    for number, schedule in enumerate(found):
        if schedule.steps not in seen and (number == 0 or fits(schedule, target)):
            seen.add(schedule.steps)
            yield schedule


# --- changes ---------------------------------------------------------------------------------------------------------


def _free_splits(schedule: Schedule) -> list[int]:
    """Steps that split by a factor which nothing else repeats: padded and packed storage is made for the factors that it has."""
    fixed = {
        stage.name
        for stage in schedule.graph.stages
        if stage.storage.padded or stage.storage.layout or stage.storage.pad or stage.tensorize is not None
    }
    bound = fixed | {user.name for name in fixed for user in schedule.graph.consumers(name)}
    bound |= {stage.attach.stage for stage in schedule.graph.stages if stage.name in fixed}
    return [
        number
        for number, step in enumerate(schedule.steps)
        if step.name == "split" and _factor(step) is not None and step.arguments[0] not in bound
    ]


def _factor(step: Step) -> int | None:
    return dict(step.keywords).get("factor")


def _with_keyword(schedule: Schedule, place: int, name: str, value: Any) -> Schedule:
    steps = list(schedule.steps)
    keywords = {**dict(steps[place].keywords), name: value}
    steps[place] = replace(
        steps[place], keywords=tuple((key, each) for key, each in keywords.items() if each is not None)
    )
    return _replayed(schedule, tuple(steps))


def _replayed(schedule: Schedule, steps: tuple[Step, ...]) -> Schedule:
    """The default stages of the same program with other steps."""
    return replace(schedule, steps=steps).replay(schedule.start())


def _change_factor(schedule: Schedule, random: Random) -> Schedule:
    places = _free_splits(schedule)
    if not places:
        return schedule
    place = random.choice(places)
    now = _factor(schedule.steps[place]) or 1
    return _with_keyword(schedule, place, "factor", max(1, random.choice((now // 2, now * 2, random.choice(TILES)))))


def _change_tail(schedule: Schedule, random: Random) -> Schedule:
    places = _free_splits(schedule)
    return _with_keyword(schedule, random.choice(places), "tail", random.choice((None, *TAILS))) if places else schedule


def _change_order(schedule: Schedule, random: Random) -> Schedule:
    stage = _plain_stage(schedule, random)
    if stage is None or len(stage.leaves) < 2:
        return schedule
    at = random.randrange(len(stage.leaves) - 1)
    return schedule.reorder(stage.name, stage.leaves[at + 1], stage.leaves[at])


def _change_place(schedule: Schedule, random: Random) -> Schedule:
    choices = list(_places(schedule))
    return random.choice(choices) if choices else schedule


def _split_loop(schedule: Schedule, random: Random) -> Schedule:
    stage = _plain_stage(schedule, random)
    if stage is None or not stage.leaves:
        return schedule
    return schedule.split(stage.name, random.choice(stage.leaves), random.choice(TILES))


def _add_annotation(schedule: Schedule, random: Random) -> Schedule:
    stage = _plain_stage(schedule, random)
    if stage is None or not stage.leaves:
        return schedule
    last = stage.leaves[-1]
    if random.random() < 0.5:
        return schedule.vectorize(stage.name, last)
    return schedule.unroll(stage.name, last)


def _drop_step(schedule: Schedule, random: Random) -> Schedule:
    """Without one of its last annotations or placements; a step that others need is refused by them."""
    places = [n for n, step in enumerate(schedule.steps) if step.name in ("vectorize", "unroll", "compute_at")]
    if not places:
        return schedule
    place = random.choice(places)
    return _replayed(schedule, (*schedule.steps[:place], *schedule.steps[place + 1 :]))


def _plain_stage(schedule: Schedule, random: Random) -> Stage | None:
    """A stage whose storage is made for no particular loops."""
    plain = [
        stage
        for stage in schedule.graph.stages
        if not stage.storage.padded and stage.storage.layout is None and stage.tensorize is None
    ]
    return random.choice(plain) if plain else None


_MOVES: tuple[Callable[[Schedule, Random], Schedule], ...] = (
    _change_factor,
    _change_tail,
    _change_order,
    _change_place,
    _split_loop,
    _add_annotation,
    _drop_step,
)

__all__ = ["candidates", "fits", "mutate"]
