"""What storage keeps from one visit to the next: a window that moves along a loop, of which each visit computes only what is new.

It is granted to a stage that is computed at a serial loop if exactly one dimension of its box moves with that loop, evenly,
upwards and by less than the window is long, and nothing that it reads changes in the loop. `storage(rolling=True)` is refused
elsewhere, with the reason. Where a later step of the schedule takes it away, every visit computes all of its box: the same values
with more work (TC413).

Worked example: `C(i) = B(i) + B(i+1) + B(i+2)` with `B` computed at `i` asks for `[i, i + 3)`: a window of 3 that moves by 1. The
first visit computes three elements, every later one `B(i+2)`.

Source: Halide, sliding windows and storage folding (`store_at`, `fold_storage`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tc_jupyter.ranges import Extremum, SizeExpr, of_atom

from .exact_sets import ExactSets
from .infer_bound import SymbolicBounds, variable
from .stage import Stage, children_of

SCOPES = ("shared", "local", "register")


@dataclass(frozen=True, slots=True)
class Window:
    """A moving window.

    Attributes:
        dimension: the one that moves.
        axis: the loop of the stage along it.
        consumer, leaf: the loop that moves it.
        loop: that loop's variable, from 0.
        step: elements by which it moves per iteration.
        length: elements of it.
        room: elements that are stored. In shared memory the new ones have places of their own, so that threads may still read the
            window before.
    """

    dimension: int
    axis: str
    consumer: str
    leaf: str
    loop: SizeExpr
    step: int
    length: int
    room: int

    @property
    def kept(self) -> int:
        """Elements that a visit finds where the one before it has left them."""
        return self.length - self.step


def window_of(bounds: SymbolicBounds, stage: Stage) -> Window | None:
    """The window of a stage that asks for one; `None` where it is not granted."""
    if not stage.storage.rolling:
        return None
    found = _window(bounds, stage)
    return None if isinstance(found, str) else found


def window_problem(bounds: SymbolicBounds, name: str) -> str | None:
    """Why a stage keeps no window, as a clause; `None` if it keeps one."""
    found = _window(bounds, bounds[name].stage)
    if isinstance(found, str):
        return found
    tested = ExactSets(bounds).guard(name) is not None
    return "only some elements of its boxes are needed, and its loops test which" if tested else None


def _window(bounds: SymbolicBounds, stage: Stage) -> Window | str:
    """The window of a stage, or why there is none."""
    graph, storage = bounds.graph, stage.storage
    if stage.attach.kind != "at":
        return "it is not computed inside a loop of its reader"
    if graph.scope(stage) not in SCOPES:
        return f"its storage is `{graph.scope(stage)}`, not one of {', '.join(SCOPES)}"
    if stage.statement.operator != "=" or len(graph.stages_on(stage.target)) > 1:
        return "its elements are written more than once"
    if storage.layout or storage.double > 1:
        return "its storage has a layout or several copies"
    consumer, leaf = graph.stage(stage.attach.stage), stage.attach.axis
    inside = [
        *(each for each in graph.attached(consumer.name) if each.attach.kind == "with"),
        *graph.attached(stage.name),
    ]
    if inside:
        return f"`{inside[0].name}` runs in the same loops, and would run at other visits"
    if consumer.annotation(leaf) is not None:
        return f"`{consumer.name}[{leaf}]` is `{consumer.annotation(leaf)}`, and its iterations do not run one after the other"
    if graph.storage_name(consumer.target) in graph.reads(stage):
        return f"it reads `{consumer.target}`, which changes in the loop"
    return _moving(bounds, stage, consumer, leaf)


def _moving(bounds: SymbolicBounds, stage: Stage, consumer: Stage, leaf: str) -> Window | str:
    name, place = variable(consumer.name, leaf), f"`{consumer.name}[{leaf}]`"
    outputs = [root.name for root in stage.roots if root.kind == "output"]
    derived = {child for relation in stage.relations for child in children_of(relation)}
    box = bounds[stage.name].box
    moved = [number for number, (low, extent) in enumerate(box) if name in (low - extent).indices | low.indices]
    if len(moved) != 1:
        return f"{'no dimension' if not moved else 'more than one dimension'} of its box moves along {place}"
    (dimension,) = moved
    (low, extent), axis = box[dimension], outputs[dimension]
    loop = bounds[consumer.name].lineage.leaf(leaf)
    steps = _steps(low, name)
    if steps == {0}:
        return f"it begins at the same element at every visit along {place}"
    if steps and max(steps) <= 0:
        return f"it moves backwards along {place}"
    if len(steps) != 1:
        return f"it is not known to move evenly along {place}"
    (step,) = steps
    length = _length(low, extent, name)
    if length is None:
        alike = name not in extent.indices
        known = "a number that is known before the call" if alike else "known to be the same number at every visit"
        return f"its length along {place} is not {known}"
    if step >= length:
        return f"it moves by {step} along {place} and is {length} long, so no visit needs an element again"
    if bounds[stage.name].domain[axis] != box[dimension]:
        return f"its loop `{axis}` does not run over the window alone"
    if axis not in stage.leaves or axis in derived or stage.annotation(axis) is not None:
        return f"its loop `{axis}` is split, fused or annotated"
    room = length + (step if bounds.graph.scope(stage) == "shared" else 0)
    return Window(dimension, axis, consumer.name, leaf, loop, step, length, room)


def _steps(low: SizeExpr, loop: str) -> set[int]:
    """By how much a window may move per iteration: several numbers where its begin is one of several values; none if unknown."""
    line = low.linear_in(loop)
    if line is not None:
        return {line[0].constant} if line[0].is_constant else set()
    values = [parts for parts in _extrema(low) if any(loop in part.indices for part in parts)]
    found = [_steps(part, loop) for part in values[0]] if values else [set[int]()]
    return set[int]().union(*found) if all(found) else set()


def _length(low: SizeExpr, extent: SizeExpr, loop: str) -> int | None:
    """The elements of a window; it may be cut at an end that does not move."""
    for parts in ((extent,), *_extrema(extent, "min")):
        constants = [part.constant for part in parts if part.is_constant]
        others = (part for part in parts if not part.is_constant)
        if len(constants) == 1 and all(_stays(low + part, loop) for part in others):
            return constants[0]
    return None


def _stays(end: SizeExpr, loop: str) -> bool:
    """Whether a value is the same at every visit, also where that is seen only inside of a `min` or `max`."""
    if loop not in end.indices:
        return True
    parts = next(_extrema(end), ())
    return bool(parts) and all(_stays(part, loop) for part in parts)


def _extrema(value: SizeExpr, kind: str = "") -> Iterator[tuple[SizeExpr, ...]]:
    """Of what a value is the smallest or largest: for each `min` or `max` in it, its arguments with the rest of the value added."""
    for (atom, *others), factor in value.ordered():
        if isinstance(atom, Extremum) and not others and abs(factor) == 1:
            rest = value - of_atom(atom) * factor
            if not kind or (atom.kind == kind) == (factor > 0):
                yield tuple(argument * factor + rest for argument in atom.arguments)


__all__ = ["Window", "window_of", "window_problem"]
