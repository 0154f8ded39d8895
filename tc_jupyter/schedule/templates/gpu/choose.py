"""Which template a statement gets on a GPU.

Statements on single elements are written into their users first; then products, statements that work row by row, stencils,
reductions and everything else take their templates. `general` takes what no template fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import walk
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Attach
from tc_jupyter.schedule.target import Target
from tc_jupyter.schedule.templates import general, windows

from . import pointwise, product, reduction, rows, stencils, tensor_cores, thin, transposing

MOST_INLINED = 64
"""Nodes that inlining may add to an expression: computing again is cheaper than memory up to about here."""

Sizes = Mapping[str, int]
Template = Callable[[Schedule, str, Target, Sizes], Schedule | None]


def for_gpu(schedule: Schedule, target: Target, sizes: Sizes, most: Sizes) -> Schedule:
    """The default schedule of a program on a GPU; `most`: sizes that no call exceeds."""
    schedule = _inlined(windows.copied(schedule, product.is_product))
    for name in schedule.stages:
        if schedule.graph.is_free(name):
            schedule = _product(schedule, name, target, sizes) or schedule
    for name in reversed(schedule.stages):
        if schedule.graph.is_free(name):
            schedule = _tried(partial(rows.default, most=most), schedule, name, target, sizes) or schedule
    for name in schedule.stages:
        if schedule.graph.is_free(name):
            schedule = _at_root(schedule, name, target, sizes)
    return schedule


def _product(schedule: Schedule, name: str, target: Target, sizes: Sizes) -> Schedule | None:
    """A product's schedule, of parts of its sum where that is long and the result small; `None` for what is no product."""
    schedule = product.with_names(schedule, name)
    found = _tried(tensor_cores.default, schedule, name, target, sizes)
    if found is not None:
        return found
    found = _tried(thin.default, schedule, name, target, sizes)
    if found is not None:
        return found
    parts = _split_long(schedule, name, sizes)
    if parts is not None:
        whole, partial = parts
        found = _tried(product.default, whole, partial, target, sizes)
        if found is not None:
            return _tried(pointwise.default, found, name, target, sizes) or found
    return _tried(product.default, schedule, name, target, sizes)


def _split_long(schedule: Schedule, name: str, sizes: Sizes) -> tuple[Schedule, str] | None:
    try:
        return product.split_long(schedule, name, sizes)
    except CompileError:
        return None


def _tried(template: Template, schedule: Schedule, name: str, target: Target, sizes: Sizes) -> Schedule | None:
    """A template's schedule; `None` where a rule of schedules forbids a step of it."""
    try:
        return template(schedule, name, target, sizes)
    except CompileError:
        return None


def _at_root(schedule: Schedule, name: str, target: Target, sizes: Sizes) -> Schedule:
    templates: tuple[Template, ...] = (stencils.default, reduction.default, transposing.default, pointwise.default)
    for template in templates:
        found = _tried(template, schedule, name, target, sizes)
        if found is not None:
            return found
    return general.default(schedule, name, target)


def _inlined(schedule: Schedule) -> Schedule:
    """Temporaries on single elements are put in the place of their reads, but not into products, which read tiles."""
    graph = schedule.graph  # with what was inlined so far written into its users
    for name in schedule.stages:
        stage = graph.stage(name)
        users = graph.consumers(name)
        if (
            name in schedule.graph.outputs
            or not users
            or any(product.is_product(schedule, user.name) for user in users)
        ):
            continue
        nodes = sum(1 for _ in walk(stage.statement.value))
        reads = sum(
            graph.storage_name(read.tensor) == stage.target for user in users for read in user.statement.reads()
        )
        if nodes * reads <= MOST_INLINED:
            try:
                schedule = schedule.compute_inline(name)
            except CompileError:
                continue
            graph = inject_inline(graph.replace_stage(replace(stage, attach=Attach("inline"))))
    return schedule
