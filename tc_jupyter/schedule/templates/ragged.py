"""Reductions with ranges that elements end, as rows of a sparse matrix (`k in Ptr(i):Ptr(i + 1)`), on a CPU.

The loop over such a range stands inside those over what says where it ends, so that it has its own ends (`loops.points`). Where
nothing else moves inside of it, it is the vector. Otherwise the elements of a row are summed together, some vectors at a time. The
range may also be one of results, as in the derivative of such a sum: then the loop over rows is outside, and each has its results.

Measured times are in `docs/measurements.md`, 'How fast are ragged sums and triangles?'.
"""

from __future__ import annotations

from collections.abc import Mapping

from tc_jupyter.program import Binary, Expr, IndexVar, Read, Statement, conditions_of, walk
from tc_jupyter.program.integers import index_names, reads_elements
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import Target

from .form import Form, formed
from .stages import copied_out
from .streaming import is_mostly_streaming, lanes_of

KINDS = "output", "reduction"


def limits_of(statement: Statement, kind: str = "reduction") -> dict[str, list[Expr]]:
    """What the conditions under which a point of a schedule's statement takes part compare its indices with.

    Args:
        kind: of these indices, `reduction` or `output`.
    """
    found: dict[str, list[Expr]] = {}
    if statement.operator == "fold":
        return found
    names = {index.name for index in statement.indices if index.kind == kind}
    for condition in conditions_of(statement):
        if not isinstance(condition, Binary) or condition.op not in ("<", "<=", ">", ">="):
            continue
        for here, other in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(here, IndexVar) and here.name in names and here.name not in index_names(other):
                found.setdefault(here.name, []).append(other)
    return found


def ended_by_data(statement: Statement) -> tuple[str, ...]:
    """The reduction indices whose ranges elements end at each point of other indices."""
    return tuple(name for name, limits in limits_of(statement).items() if any(map(_moves_with_data, limits)))


def range_of_results(statement: Statement) -> str | None:
    """The output index that elements at each point of reduction indices give a range."""
    points = {index.name for index in statement.reduction_indices}
    for name, limits in limits_of(statement, "output").items():
        if len(limits) > 1 and all(_moves_with_data(limit) and index_names(limit) <= points for limit in limits):
            return name
    return None


def ends_loops(statement: Statement) -> bool:
    """Whether all conditions under which a point takes part compare a reduction index with other indices: no element decides."""
    conditions = () if statement.operator in ("=", "fold") else conditions_of(statement)
    limits = [limit for each in limits_of(statement).values() for limit in each]
    plain = not any(map(reads_elements, limits))
    return bool(conditions) and len(limits) == len(conditions) and plain


def _moves_with_data(limit: Expr) -> bool:
    return any(isinstance(node, Read) and index_names(node) for node in walk(limit))


def default(schedule: Schedule, name: str, target: Target, _: object) -> Schedule | None:
    """The schedule of such a reduction; `None` for other statements."""
    stage = schedule.graph.stage(name)
    ragged = ended_by_data(stage.statement)
    if not schedule.graph.is_free(name):
        return None
    if not ragged:
        found = range_of_results(stage.statement)
        return None if found is None else _results_in_ranges(schedule, stage, found, target)
    limits = limits_of(stage.statement)
    deciding = {each for index in ragged for limit in limits[index] for each in index_names(limit)}
    outputs = [index.name for index in stage.statement.output_indices]
    rows = [each for each in outputs if each in deciding]
    along = [each for each in outputs if each not in deciding]
    inner = [index.name for index in stage.statement.reduction_indices]
    inner.sort(key=lambda each: (each in ragged, each not in deciding))
    if not rows:
        return None
    if along and (stage.statement.initialize or stage.statement.accumulate):
        return _rows_at_once(schedule, name, rows, along, inner, target)
    return formed(schedule, name, Form(tasks=outputs[:1], order=(*outputs, *inner)))


def rows_outside(schedule: Schedule, name: str) -> Schedule:
    """Plain loops, but those over what gives ranges around these."""
    statement = schedule.graph.stage(name).statement
    if not schedule.graph.is_free(name):
        return schedule
    limits = {each: limits_of(statement)[each] for each in ended_by_data(statement)}
    found = range_of_results(statement)
    limits |= {} if found is None else {found: limits_of(statement, "output")[found]}
    return schedule.reorder(name, *_inside(statement, limits)) if limits else schedule


def _inside(statement: Statement, limits: Mapping[str, list[Expr]]) -> list[str]:
    """The indices as they are written, but each behind those that its limits depend on."""
    left, order = [index.name for index in statement.indices], list[str]()
    around = {each: frozenset[str]().union(*map(index_names, found)) for each, found in limits.items()}
    while left:
        chosen = next((each for each in left if not around.get(each, frozenset()) & {*left}), left[0])
        left.remove(chosen)
        order.append(chosen)
    return order


def _deciding(statement: Statement, ranged: str) -> frozenset[str]:
    """The reduction indices that give an index of the results its ranges."""
    return frozenset[str]().union(*map(index_names, limits_of(statement, "output")[ranged]))


def _results_in_ranges(schedule: Schedule, stage: Stage, ranged: str, target: Target) -> Schedule:
    """The loops over what gives the ranges outside, in tasks of their own where nothing else is one.

    Measured with AVX-512, one thread: the derivative of 20,000 rows of 10 elements by these 9.5 s where every element
    looked for its row, and 0.3 ms since.
    """
    name, statement = stage.name, stage.statement
    deciding = _deciding(statement, ranged)
    outputs, sums = ([index.name for index in stage.statement.indices if index.kind == kind] for kind in KINDS)
    outer, rows = outputs[: outputs.index(ranged)], outputs[outputs.index(ranged) + 1 :]
    points, inner = ([each for each in sums if (each in deciding) == chosen] for chosen in (True, False))
    along = next(iter([*inner[-1:], *rows[-1:]]), None)
    if not outer and target.threads > 1:
        schedule = schedule.split(name, ranged, nparts=target.threads)
        outer, ranged = [f"{ranged}.outer"], f"{ranged}.inner"
    order = [*outer, *points, ranged, *rows, *inner]
    if along is not None and is_mostly_streaming(stage, along):
        schedule = schedule.split(name, along, lanes_of(schedule, stage, target))
        order = [each for each in order if each != along] + [f"{along}.outer", f"{along}.inner"]
        schedule = schedule.vectorize(name, f"{along}.inner")
    schedule = schedule.reorder(name, *order)
    return schedule.parallel(name, *outer) if outer else schedule


def _rows_at_once(
    schedule: Schedule, name: str, rows: list[str], along: list[str], inner: list[str], target: Target
) -> Schedule:
    """Some vectors along the last index are kept in registers while the reduction runs."""
    schedule, copy, cache, theirs = copied_out(schedule, name, None)
    *others, last = [theirs[each] for each in (*rows, *along)]
    lanes = tuning.ABREAST * lanes_of(schedule, schedule.graph.stage(cache), target)
    form = Form({last: lanes}, others[:1], (*others, f"{last}.outer"), vector=f"{last}.inner")
    schedule = formed(schedule, copy, form).compute_at(cache, copy, f"{last}.outer").storage(cache, "local")
    *around, last = (*rows, *along)
    return formed(schedule, cache, Form({last: lanes}, (), (*around, f"{last}.outer", *inner), vector=f"{last}.inner"))


__all__ = ["default", "ended_by_data", "ends_loops", "limits_of", "range_of_results", "rows_outside"]
