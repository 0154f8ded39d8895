"""Ranges -> schedule and bounds: in which loops a program runs, and what every loop and stage must cover.

Comes in: a `Program` with its `Ranges`, and a `Target`. Goes out: a `Schedule` (stages, loops, attachment) and its `Bounds`.
A schedule never changes ranges, shapes or results. No loops exist here; `loops.lower` makes them.
"""

from .bounds import Bounds, Range, StageNeed, infer_bound
from .exact_sets import ExactNeed, ExactSets, Piece
from .extents import decided_at, loop_extent, open_constraints
from .infer_bound import StageBounds, SymbolicBounds, infer_symbolic, scope_of, variable, view_shift
from .intrinsics import STEPS, MatrixStep, Tile, first_reduction, operands, root_of, total_dimensions
from .lineage import on_front
from .moves import candidates, mutate
from .orders import steps_kept, waiting_loop
from .padding import proved_copied, proved_inside, with_safe_padding
from .phases import StagePhases, phases
from .rolling import Window, window_of
from .schedule import Schedule, Step, schedule_of, steps_from_data, steps_to_data
from .size_classes import SizeClasses, row_class
from .sized import required_sizes
from .space import default_schedule
from .stage import (
    GPU_AXES,
    GRID_AXES,
    THREAD_AXES,
    Attach,
    Fuse,
    IterVar,
    Relation,
    Skew,
    Split,
    Stage,
    StageGraph,
    Storage,
    constant_extent,
    stage_graph,
)
from .store import ScheduleStore, StoreKey
from .target import INTERPRETER, STATIC_SHARED_BYTES, Target
from .zeros import is_copy

__all__ = [
    "GPU_AXES",
    "GRID_AXES",
    "INTERPRETER",
    "STATIC_SHARED_BYTES",
    "STEPS",
    "THREAD_AXES",
    "Attach",
    "Bounds",
    "ExactNeed",
    "ExactSets",
    "Fuse",
    "IterVar",
    "MatrixStep",
    "Piece",
    "Range",
    "Relation",
    "Schedule",
    "ScheduleStore",
    "SizeClasses",
    "Skew",
    "Split",
    "Stage",
    "StageBounds",
    "StageGraph",
    "StageNeed",
    "StagePhases",
    "Step",
    "Storage",
    "StoreKey",
    "SymbolicBounds",
    "Target",
    "Tile",
    "Window",
    "candidates",
    "constant_extent",
    "decided_at",
    "default_schedule",
    "first_reduction",
    "infer_bound",
    "infer_symbolic",
    "is_copy",
    "loop_extent",
    "mutate",
    "on_front",
    "open_constraints",
    "operands",
    "phases",
    "proved_copied",
    "proved_inside",
    "required_sizes",
    "root_of",
    "row_class",
    "schedule_of",
    "scope_of",
    "stage_graph",
    "steps_from_data",
    "steps_kept",
    "steps_to_data",
    "total_dimensions",
    "variable",
    "view_shift",
    "waiting_loop",
    "window_of",
    "with_safe_padding",
]
