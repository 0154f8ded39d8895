"""Reductions in which elements say where each point goes: histograms, sums of segments, on a CPU.

The loops over points stand outside, and the equality between the index of the target and what elements say leaves one element for
each of them (`loops.points`). Threads share the points where there are many of them for each element: parts of the points have
elements of their own, which are combined in order afterwards. How many parts there are depends on sizes only, so results are the
same for any number of threads. Where there are few points for each element, but long rows of them, every thread owns a range of
the rows and passes all points; single elements and short rows are left to one thread, which would wait for memory as long as
several that look at every point.

Measured on one processor with AVX-512, 10^6 points, one thread: 256 bins of `uint8` 0.30 ms in one loop and 0.31 in parts of 8192
points (`np.bincount` 1.1), equal values 0.30; ranges of bins of two owners 11 ms, since every second jump is guessed wrong.
10^4 points for 1000 rows of 4 `float`, on two threads: 94 us with two owners, 17 with one; for rows of 32 55 and 44, of 128 147
and 148.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from tc_jupyter.program import Statement, keeps, places
from tc_jupyter.program.integers import index_names, reads_elements
from tc_jupyter.ranges import MANY, Facts, IndexRange, fact_of, from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, constant_extent
from tc_jupyter.schedule.target import LINE_BYTES, Target

from .contraction import PIXEL
from .ragged import ended_by_data
from .stages import added
from .streaming import is_streaming, lanes_of


def placed(statement: Statement) -> tuple[str, ...]:
    """The output indices that points decide: those of `at` and `b` in `X(i) == at && i + j == b ? v : 0`."""
    return tuple(dict.fromkeys(name for name, _ in places(statement)))


def placed_by_data(statement: Statement) -> bool:
    """Whether elements decide where points go."""
    return any(reads_elements(place) for _, place in places(statement))


def asked(statement: Statement) -> list[str]:
    """The output indices in whose rows points decide for themselves: `b` of `Y(b, I(b, n)) +=! X(b, n)`, in order."""
    names = frozenset[str]().union(*(index_names(place) for _, place in places(statement)))
    return [index.name for index in statement.output_indices if index.name in names]


def default(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    """The schedule of such a reduction; `None` for other statements.

    Args:
        facts: of the sizes of a call.
    """
    stage = schedule.graph.stage(name)
    chosen = placed(stage.statement)
    if not chosen or not schedule.graph.is_free(name):
        return None
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    ragged = ended_by_data(stage.statement)
    points = sorted((index.name for index in stage.statement.reduction_indices), key=lambda each: each in ragged)
    apart = asked(stage.statement)
    rows = [output for output in outputs if output not in (*chosen, *apart)]
    if keeps(stage.statement):
        return _spread(schedule, stage, points, chosen, outputs, target)
    if apart:
        return _apart(schedule, stage, points, chosen, rows, target)
    schedule = schedule.reorder(name, *points, *chosen, *rows)
    if not placed_by_data(stage.statement) and not ragged:
        return _gathered(schedule, stage, points, outputs)
    elements = elements_of(stage)
    initialized = stage.statement.initialize or stage.statement.accumulate
    if initialized and elements is not None and 0 < elements <= tuning.CACHED:
        length = max(tuning.PART, _power(tuning.ONCE_IN * elements))
        schedule = schedule.split(name, points[0], length if len(points) == 1 else max(1, length >> 6))
        return _in_parts(schedule, name, points, chosen, rows, target)
    sizes = {size for root in stage.roots if root.name in chosen for size in root.extent.names}
    number = min((facts[size].parts if size in facts else 1 for size in sizes), default=1)
    if initialized and elements is None and number > 1:
        schedule = schedule.split(name, points[0], nparts=number)
        return _in_parts(schedule, name, points, chosen, rows, target)
    long = _row_bytes(schedule, stage, rows, facts) > 4 * LINE_BYTES
    return _owned(schedule, name, points, chosen, rows, target) if long else _along_rows(schedule, name, rows, target)


def _row_bytes(schedule: Schedule, stage: Stage, rows: list[str], facts: Facts) -> int:
    """How long the rows are that points go to, as far as is known; sizes of which nothing is known count as large."""
    lengths = [fact_of(root.extent, facts) for root in stage.roots if root.name in rows]
    elements = prod(MANY if each is None else each.typical for each in lengths)
    return elements * schedule.graph.program.tensor(stage.target).dtype.bytes if rows else 0


def _spread(
    schedule: Schedule, stage: Stage, points: list[str], chosen: tuple[str, ...], outputs: list[str], target: Target
) -> Schedule:
    """Points that all go to elements of their own: vectors along what is stored row by row, behind it or in turns.

    In `Y(c, 2*x + b) = X(c, b, x)` vectors along `x` are mixed where they are written (`codegen.llvm.stores`). Measured with
    AVX-512 (Zen 5), one thread, an image of 16 x 128 x 128: with vectors along `c` 590 us, along nothing 85, along `x` 10.
    """
    name, last, apart = stage.name, max(map(outputs.index, chosen)), asked(stage.statement)
    rows = [each for each in outputs[last + 1 :] if each not in apart]
    around = [each for each in outputs if each not in (*chosen, *rows)]
    inner, turns = (None, None) if rows else _in_turns(stage, outputs[last], points, target)
    points = [each for each in points if each not in (inner, turns)]
    if turns is not None:
        schedule = schedule.split(name, f"{inner}", lanes_of(schedule, stage, target))
        schedule = schedule.unroll(name, turns).vectorize(name, f"{inner}.inner")
        points += [f"{inner}.outer", turns, f"{inner}.inner"]
    elif inner is not None:
        points.append(inner)
    schedule = schedule.reorder(name, *around, *points, *chosen, *rows)
    schedule = schedule.parallel(name, *around, points[0])
    return _along_rows(schedule, name, rows, target)


def _apart(
    schedule: Schedule, stage: Stage, points: list[str], chosen: tuple[str, ...], rows: list[str], target: Target
) -> Schedule:
    """Points that decide in each row for themselves: rows before the elements are tasks, those behind them are inside.

    Measured with AVX-512, one thread, where every element looked for its points and since: 9 planes of 128 x 256 that
    elements move 134 and 1.1 ms; rows of 32 of 16 x 200 points to 64 places 0.16 and 0.007 ms.
    """
    name, outputs = stage.name, [index.name for index in stage.statement.output_indices]
    first = min(map(outputs.index, chosen))
    outer, inner = [], []
    for each in asked(stage.statement):
        (outer if outputs.index(each) < first else inner).append(each)
    if not outer and target.threads > 1:
        schedule = schedule.split(name, inner[0], nparts=target.threads)
        outer, inner = [f"{inner[0]}.outer"], [f"{inner[0]}.inner", *inner[1:]]
    schedule = schedule.reorder(name, *outer, *points, *inner, *chosen, *rows)
    return _along_rows(schedule.parallel(name, *outer) if outer else schedule, name, rows, target)


def _in_turns(stage: Stage, last: str, points: list[str], target: Target) -> tuple[str | None, str | None]:
    """The index whose points lie behind each other in the last dimension, and none; or one of vectors, whose points lie `n` apart,
    and the one with `n` values, whose points are written in turns.
    """
    place = from_expr(dict(places(stage.statement))[last])
    weights = {point: step_of(place, point) for point in points}
    unit = next((point for point in reversed(points) if weights[point] == 1), None)
    if unit is None:
        return None, None
    length = constant_extent(stage, unit)
    vector = next((point for point in points if weights[point] == length), None)
    if length not in PIXEL or vector is None or not target.free_masks or not is_streaming(stage, vector):
        return unit, None
    return vector, unit


def parts_of_points(
    statement: Statement, indices: Iterable[IndexRange], sizes: Mapping[str, int]
) -> tuple[set[str], int]:
    """The sizes of a target, and in how many parts its points are best taken at these sizes of a call.

    Each part has elements of its own, or rows, which are set and combined: it has 16 points for each of them.
    """
    elements, points, names = 1, 1, set[str]()
    placed = {index.name for index, _ in statement.computed}
    for each in indices:
        if each.lower is None or each.upper is None or not each.extent.names <= sizes.keys():
            return set(), 1
        if each.kind == "output" and each.index not in placed:
            continue
        length = each.extent.evaluate(sizes)
        if each.kind == "output":
            elements, names = elements * length, names | each.extent.names
        else:
            points *= length
    most = points // max(1, elements * tuning.ONCE_IN)
    return names, min(tuning.PARTS, 1 << max(0, most.bit_length() - 1))


def elements_of(stage: Stage) -> int | None:
    """How many elements the target has, where that is a number."""
    extents = [root.extent for root in stage.roots if root.kind == "output"]
    return prod(extent.constant for extent in extents) if all(extent.is_constant for extent in extents) else None


def _power(number: int) -> int:
    """The next power of two."""
    return 1 << max(0, number - 1).bit_length()


def _in_parts(
    schedule: Schedule,
    name: str,
    points: list[str],
    placed: tuple[str, ...],
    rows: list[str],
    target: Target,
) -> Schedule:
    """The parts of the outermost loop over points, each with elements of its own; then all parts in order."""
    first, elements = points[0], [*placed, *rows]
    outer = f"{first}.outer"
    schedule, parts = added(schedule, schedule.rfactor(name, outer))
    inside = [f"{first}.inner", *points[1:]]
    number = elements_of(schedule.graph.stage(name))
    if number is not None and not rows and 2 * number <= tuning.MOST_COPIED:
        schedule = _in_copies(
            schedule, parts, outer, inside, elements, min(tuning.COPIES, tuning.MOST_COPIED // number), target
        )
    else:
        schedule = schedule.reorder(parts, outer, *inside, *elements)
        schedule = _along_rows(schedule, parts, rows, target)
    return _combined(schedule.parallel(parts, outer), name, outer, elements, target)


def _in_copies(
    schedule: Schedule, parts: str, outer: str, points: list[str], elements: list[str], copies: int, target: Target
) -> Schedule:
    """Neighbours of a part add to elements of their own: what is added to one element again and again does not wait for itself."""
    last = points[-1]
    schedule, own = added(schedule, schedule.split(parts, last, copies).rfactor(parts, f"{last}.inner"))
    schedule = schedule.reorder(own, outer, *points[:-1], f"{last}.outer", f"{last}.inner", *elements)
    schedule = schedule.unroll(own, f"{last}.inner")
    schedule = schedule.reorder(parts, outer, f"{last}.inner", *elements)
    return _along_rows(schedule.compute_at(own, parts, outer), parts, elements, target)


def _combined(schedule: Schedule, name: str, part: str, elements: list[str], target: Target) -> Schedule:
    """The parts of each row in order, rows shared by threads; of single elements, those of some lines of memory are a row."""
    *outer, last = elements
    if not outer:
        schedule = schedule.split(name, last, tuning.BLOCK)
        outer, last = [f"{last}.outer"], f"{last}.inner"
    schedule = schedule.reorder(name, *outer, part, last)
    schedule = schedule.parallel(name, *outer)
    return _along_rows(schedule, name, [last], target)


def _along_rows(schedule: Schedule, name: str, rows: list[str], target: Target) -> Schedule:
    """Vectors along what is stored row by row."""
    if not rows:
        return schedule
    last = rows[-1]
    schedule = schedule.split(name, last, lanes_of(schedule, schedule.graph.stage(name), target))
    return schedule.vectorize(name, f"{last}.inner")


def _gathered(schedule: Schedule, stage: Stage, points: list[str], outputs: list[str]) -> Schedule:
    """Where indices say which element a point goes to: each element looks for its points if one of the indices follows from it."""
    if not finds_points(stage.statement, points[-1]):
        return schedule
    return schedule.reorder(stage.name, *outputs, *points).parallel(stage.name, outputs[0])


def finds_points(statement: Statement, point: str) -> bool:
    """Whether the value of an index follows from the places of its points."""
    splits = [from_expr(place).linear_in(point) for _, place in places(statement)]
    weights = [split[0] for split in splits if split is not None]
    return len(weights) == len(splits) and any(abs(each.offset) == 1 for each in weights if each.is_constant)


def _owned(
    schedule: Schedule, name: str, points: list[str], placed: tuple[str, ...], rows: list[str], target: Target
) -> Schedule:
    """A range of the target for each thread, which passes all points; each element still gets its points in order."""
    if target.threads < 2:
        return _along_rows(schedule, name, rows, target)
    first, *others = placed
    schedule = schedule.split(name, first, nparts=target.threads)
    schedule = schedule.reorder(name, f"{first}.outer", *points, f"{first}.inner", *others, *rows)
    return _along_rows(schedule.parallel(name, f"{first}.outer"), name, rows, target)


__all__ = ["asked", "default", "elements_of", "parts_of_points", "placed", "placed_by_data"]
