"""What storage keeps from one visit to the next: a window that moves along a loop, of which each visit computes only what is new.

`storage(rolling=True)` is a wish, as `padded` is. It is granted to a stage that is computed at a serial loop if exactly one
dimension of its box moves with that loop, evenly and by less than the window is long, and nothing that it reads changes in the
loop. Elsewhere every visit computes all of its box: the same values with more work.

Worked example: `C(i) = B(i) + B(i+1) + B(i+2)` with `B` computed at `i` asks for `[i, i + 3)`: a window of 3 that moves by 1. The
first visit computes three elements, every later one `B(i+2)`.

Source: Halide, sliding windows and storage folding (`store_at`, `fold_storage`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.ranges import SizeExpr, constant

from .infer_bound import SymbolicBounds, variable
from .padding import parts_of
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
    graph, storage = bounds.graph, stage.storage
    if not storage.rolling or stage.attach.kind != "at" or graph.scope(stage) not in SCOPES:
        return None
    consumer, leaf = graph.stage(stage.attach.stage), stage.attach.axis
    plain = stage.statement.operator == "=" and not storage.layout and storage.double == 1
    beside = [each for each in graph.attached(consumer.name) if each.attach.kind == "with"]
    if not plain or beside or any(graph.attached(stage.name)) or len(graph.stages_on(stage.target)) > 1:
        return None
    if consumer.annotation(leaf) is not None or graph.storage_name(consumer.target) in graph.reads(stage):
        return None
    return _moving(bounds, stage, consumer, leaf)


def _moving(bounds: SymbolicBounds, stage: Stage, consumer: Stage, leaf: str) -> Window | None:
    name = variable(consumer.name, leaf)
    outputs = [root.name for root in stage.roots if root.kind == "output"]
    derived = {child for relation in stage.relations for child in children_of(relation)}
    box = bounds[stage.name].box
    moved = [number for number, (low, extent) in enumerate(box) if name in (low - extent).indices | low.indices]
    if len(moved) != 1:
        return None
    (dimension,) = moved
    (low, extent), axis = box[dimension], outputs[dimension]
    loop = bounds[consumer.name].lineage.leaf(leaf)
    step = low.substitute({name: constant(1)}) - low.substitute({name: constant(0)})
    length = _length(low, extent, name)
    if length is None or not (step.is_constant and 0 < step.constant < length):
        return None
    even = low == low.substitute({name: constant(0)}) + loop * step
    whole = bounds[stage.name].domain[axis] == box[dimension]
    if not (even and whole) or axis not in stage.leaves or axis in derived or stage.annotation(axis) is not None:
        return None
    room = length + (step.constant if bounds.graph.scope(stage) == "shared" else 0)
    return Window(dimension, axis, consumer.name, leaf, loop, step.constant, length, room)


def _length(low: SizeExpr, extent: SizeExpr, loop: str) -> int | None:
    """The elements of a window; it may be cut at an end that does not move."""
    parts = parts_of(extent)
    parts = parts[1:] or parts
    constants = [part.constant for part in parts if part.is_constant]
    moving = any(loop in (low + part).indices for part in parts if not part.is_constant)
    return constants[0] if len(constants) == 1 and not moving else None


__all__ = ["Window", "window_of"]
