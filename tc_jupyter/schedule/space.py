"""Which schedule a program gets: the steps and the templates that are tried, in order, on a CPU and on a GPU.

A template is an ordinary sequence of primitives for one stage, so a user can print it (`Schedule.to_python`), change it and apply
it again. `default_schedule` takes the steps of `ALL`, then those of `CPU` or of `GPU`. A step is for the schedule as a whole, or
gives each stage the first template of a list that takes it.

Worked example: of `T(i) = exp(X(i)); s +=! T(i)` on a CPU, "where read" computes `T` inside of `s`; `DATA_AND_PRODUCTS` has nothing
for `s`, and of `ON_CPU` "reduction" takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Program
from tc_jupyter.ranges import Fact, Facts, Ranges, facts_of

from . import tuning
from .inline import without_inlined
from .schedule import Schedule, schedule_of
from .stage import StageGraph
from .target import Target
from .templates import (
    contraction,
    folds,
    general,
    gpu,
    inlining,
    normal_form,
    ordered,
    partitions,
    pixels,
    prologues,
    ragged,
    reduction,
    residues,
    rows,
    scatter,
    sharing,
    streaming,
    transposing,
    windows,
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known of sizes on a GPU: what is typical, and what no call exceeds."""

    typical: Mapping[str, int]
    most: Mapping[str, int]


K = TypeVar("K")
Template: TypeAlias = Callable[[Schedule, str, Target, K], Schedule | None]
Step: TypeAlias = Callable[[Schedule, Target, K], Schedule]
Templates: TypeAlias = tuple[tuple[str, str, Template[K]], ...]
Steps: TypeAlias = tuple[tuple[str, str, Step[K]], ...]


def default_schedule(
    program: Program,
    ranges: Ranges,
    target: Target,
    sizes: Mapping[str, Fact | int] | None = None,
    most: Mapping[str, int] | None = None,
) -> Schedule:
    """The schedule that is used when nobody gives one: legal for every program and all sizes, fast for the common classes.

    Args:
        target: the device; `interpreter` keeps every stage at root with its indices as loops, around ranges those that give them.
        sizes: what is known of them, to choose tiles; the schedule is right for all others.
        most: sizes that no call exceeds (`row_class`); the schedule may be for such calls only.
    """
    schedule = schedule_of(program, ranges)
    if target.kind not in ("cpu", "cuda"):
        return _for_interpreter(schedule)
    facts = facts_of(sizes or {})
    schedule = _taken(ALL, schedule, target, facts)
    written = Schedule(without_inlined(schedule.graph))
    if target.kind == "cpu":
        found = _taken(CPU, written, target, facts)
    else:
        typical = {name: tuning.UNKNOWN_SIZE if fact.most is None else fact.most for name, fact in facts.items()}
        found = _taken(GPU, written, target, Sizes(typical, most or {}))
    return schedule.followed_by(found.steps) if schedule.steps else found


def _for_interpreter(schedule: Schedule) -> Schedule:
    for name in schedule.stages:
        if _has_no_order(schedule.graph, name):
            schedule = ragged.rows_outside(schedule, name)
    return schedule


def _taken(steps: Steps[K], schedule: Schedule, target: Target, known: K) -> Schedule:
    for _, _, step in steps:
        schedule = step(schedule, target, known)
    return schedule


def _each(
    templates: Templates[K],
    takes: Callable[[StageGraph, str], bool],
    in_turn: Callable[[tuple[str, ...]], Iterable[str]] = iter,
) -> Step[K]:
    """The step that gives every stage that it `takes` the first of some templates that fits, if one does."""

    def step(schedule: Schedule, target: Target, known: K) -> Schedule:
        for name in in_turn(schedule.stages):
            if takes(schedule.graph, name):
                found = (template(schedule, name, target, known) for _, _, template in templates)
                schedule = next((each for each in found if each is not None), schedule)
        return schedule

    return step


def _is_ordered(graph: StageGraph, name: str) -> bool:
    return ordered.is_ordered(graph.stage(name))


def _has_no_order(graph: StageGraph, name: str) -> bool:
    return not _is_ordered(graph, name)


def _is_free(graph: StageGraph, name: str) -> bool:
    return graph.is_free(name) and not _is_ordered(graph, name)


def _is_at_root(graph: StageGraph, name: str) -> bool:
    """Whether a stage is as it was written, but for others that run in its loops, and is not of `DATA_AND_PRODUCTS`."""
    stage = graph.stage(name)
    plain = stage.attach.kind == "root" and not stage.relations and not stage.annotations
    return plain and not _has_loops_of_its_own(graph, name)


def _has_loops_of_its_own(graph: StageGraph, name: str) -> bool:
    """Whether elements say where points without an order go, or which there are: templates for other loops know nothing of that."""
    statement = graph.stage(name).statement
    points = scatter.placed(statement) or ragged.ended_by_data(statement) or ragged.range_of_results(statement)
    return bool(points) and not _is_ordered(graph, name)


def _in_pieces(schedule: Schedule, target: Target, facts: Facts) -> Schedule:
    apart = {name for name in schedule.stages if _has_loops_of_its_own(schedule.graph, name)}
    return rows.fuse_pieces(schedule, target, facts, apart)


def _around_others(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    return None if not any(schedule.graph.attached(name)) else general.default(schedule, name, target, facts)


def _few_values(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    stage = schedule.graph.stage(name)
    plain = pixels.fills_no_vector(stage) and not streaming.is_streaming(stage, stage.leaves[-1])
    return general.default(schedule, name, target, facts) if plain else None


ALL: Steps[Facts] = (
    ("normal form", "sums are spelled as templates of a CPU know them", normal_form.normalized),
    ("parts", "factors of a sum of products are summed first where that is less work", normal_form.in_parts),
    (
        "where read",
        "temporaries that cost less than memory are computed where they are read",
        inlining.computed_where_read,
    ),
)
"""What is computed, before loops are chosen: a name, why, and the function."""
DATA_AND_PRODUCTS: Templates[Facts] = (
    ("scatter", "elements say where each point goes: the loops over points stand outside", scatter.default),
    ("ragged", "elements end a range: its loop stands inside those over what ends it", ragged.default),
    ("sums of values", "elements of two to four values are summed, with vectors over elements", pixels.summed),
    ("contraction", "products and convolutions keep a tile of the result in registers", contraction.default),
)
"""The loops of these are as they are, and others may move into them."""
ON_CPU: Templates[Facts] = (
    ("ordered", "points with an order stay in it; tasks and vectors run over other indices", ordered.default),
    ("around others", "statements run inside of the loops, which stay plain", _around_others),
    ("folds", "a function that somebody has written combines several streams, as a vector", folds.default),
    ("reduction", "sums to one number are made in parts, those of rows some rows at a time", reduction.default),
    ("pixels", "elements of two to four values have vectors over elements", pixels.default),
    ("few values", "a vector along two to four values that are read elsewhere would be empty", _few_values),
    ("transposing", "axes are turned around in tiles, so that lines of cache are used whole", transposing.default),
    ("residues", "quotients by a small number are plain in a loop for each residue", residues.default),
    ("streaming", "what is read in a row has vectors along it, and tasks over the others", streaming.default),
    ("general", "everything else has tasks over its outer loops", general.default),
)
"""What a stage gets that has no loops yet."""
CPU: Steps[Facts] = (
    ("prologues", "values that a reduction would compute again are computed before it", prologues.computed_once),
    ("windows", "operands are copied where windows wrap around or go beyond a border", windows.copied),
    ("planes", "operands with a few values in each element are copied value by value", pixels.in_planes),
    ("data and products", "loops that others may move into come first", _each(DATA_AND_PRODUCTS, _has_no_order)),
    ("rows", "temporaries are made in the row loop of the last that reads them", rows.fuse_rows),
    ("pieces", "statements on the elements of rows share a loop over pieces of a row", _in_pieces),
    ("on a CPU", "what has no loops yet gets them", _each(ON_CPU, _is_at_root)),
    ("blocks", "large temporaries are made for a block of rows in the task that reads it", rows.fuse_blocks),
    ("boxes", "boxes of one tensor with the same rows share the loops over them", partitions.fuse_boxes),
    ("shared rows", "statements that read the same rows share the loops over them", sharing.share_rows),
)
"""From a schedule without loops to one for a CPU: a name, why, and the function."""


def _tried(template: Callable[[Schedule, str, Target, Mapping[str, int]], Schedule | None]) -> Template[Sizes]:
    """A template, which takes no stage where a rule of schedules forbids a step of it."""

    def tried(schedule: Schedule, name: str, target: Target, sizes: Sizes) -> Schedule | None:
        try:
            return template(schedule, name, target, sizes.typical)
        except CompileError:
            return None

    return tried


def _product(template: Callable[[Schedule, str, Target, Mapping[str, int]], Schedule | None]) -> Template[Sizes]:
    """One for a product, also of a tensor with itself."""
    return _tried(lambda schedule, name, *known: template(gpu.product.with_names(schedule, name), name, *known))


def _rows(schedule: Schedule, name: str, target: Target, sizes: Sizes) -> Schedule | None:
    return _tried(partial(gpu.rows.default, most=sizes.most))(schedule, name, target, sizes)


ORDERED: Templates[Sizes] = (
    ("ordered", "points stay in their order", lambda each, name, target, _: ordered.default(each, name, target, {})),
)
SCATTERED: Templates[Sizes] = (
    ("scatter", "elements say where each point goes: threads have results of their own", _tried(gpu.scatter.default)),
)
PRODUCTS: Templates[Sizes] = (
    ("tensor cores", "products of small types are done by matrix steps", _product(gpu.tensor_cores.default)),
    ("thin", "a product with few rows or columns has a warp for each long row", _product(gpu.thin.default)),
    ("product", "others have tiles in shared memory and in registers", _product(gpu.product.default)),
)
ROWS: Templates[Sizes] = (("rows", "what works row by row is one kernel with all that it needs of a row", _rows),)
ON_GPU: Templates[Sizes] = (
    ("folds", "the threads of a warp share the rows of a block", _tried(gpu.folds.default)),
    ("stencils", "a tile that is read at several rows is in shared memory", _tried(gpu.stencils.default)),
    ("reduction", "the threads of a block share a sum, or many blocks do", _tried(gpu.reduction.default)),
    ("transposing", "axes are turned around in tiles in shared memory", _tried(gpu.transposing.default)),
    ("pointwise", "threads have vectors where memory is read in a row", _tried(gpu.pointwise.default)),
    ("general", "everything else has blocks and threads over its outer loops", general.default),
)
GPU: Steps[Sizes] = (
    (
        "windows",
        "operands of products are copied where windows wrap around or go beyond a border",
        lambda schedule, *_: windows.copied(schedule, pays=gpu.product.is_product),
    ),
    ("running", "running sums are made in blocks that run at one time", ordered.in_blocks),
    ("ordered", "points with an order", _each(ORDERED, _is_ordered)),
    ("scattered", "points whose place is data", _each(SCATTERED, _has_no_order)),
    ("products", "operands are read often enough for tiles", _each(PRODUCTS, _is_free)),
    ("rows", "the last statement on a row takes those before it into its kernel", _each(ROWS, _is_free, reversed)),
    ("on a GPU", "what has no loops yet gets them", _each(ON_GPU, _is_free)),
)
"""From a schedule without loops to one for a GPU: a name, why, and the function."""
