"""Which template a statement gets on a GPU.

Products come first, then statements that work row by row, stencils, reductions and everything else, each with its templates.
`general` takes what no template fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.target import Target
from tc_jupyter.schedule.templates import general, ordered, windows

from . import folds, pointwise, product, reduction, rows, scatter, stencils, tensor_cores, thin, transposing

Sizes = Mapping[str, int]
Template = Callable[[Schedule, str, Target, Sizes], Schedule | None]


def for_gpu(schedule: Schedule, target: Target, sizes: Sizes, most: Sizes) -> Schedule:
    """The default schedule of a program on a GPU; `most`: sizes that no call exceeds."""
    schedule = ordered.in_blocks(windows.copied(schedule, product.is_product))
    for name in schedule.stages:
        schedule = ordered.default(schedule, name, target, {}) or schedule
    in_order = {name for name in schedule.stages if ordered.is_ordered(schedule.graph.stage(name))}
    for name in (name for name in schedule.stages if name not in in_order):
        schedule = _tried(scatter.default, schedule, name, target, sizes) or schedule
    for name in schedule.stages:
        if schedule.graph.is_free(name) and name not in in_order:
            schedule = _product(schedule, name, target, sizes) or schedule
    for name in reversed(schedule.stages):
        if schedule.graph.is_free(name) and name not in in_order:
            schedule = _tried(partial(rows.default, most=most), schedule, name, target, sizes) or schedule
    for name in schedule.stages:
        if schedule.graph.is_free(name) and name not in in_order:
            schedule = _at_root(schedule, name, target, sizes)
    return schedule


def _product(schedule: Schedule, name: str, target: Target, sizes: Sizes) -> Schedule | None:
    """A product's schedule; `None` for what is no product."""
    schedule = product.with_names(schedule, name)
    templates: tuple[Template, ...] = (tensor_cores.default, thin.default, product.default)
    found = (_tried(template, schedule, name, target, sizes) for template in templates)
    return next((each for each in found if each is not None), None)


def _tried(template: Template, schedule: Schedule, name: str, target: Target, sizes: Sizes) -> Schedule | None:
    """A template's schedule; `None` where a rule of schedules forbids a step of it."""
    try:
        return template(schedule, name, target, sizes)
    except CompileError:
        return None


def _at_root(schedule: Schedule, name: str, target: Target, sizes: Sizes) -> Schedule:
    templates: tuple[Template, ...] = (
        folds.default,
        stencils.default,
        reduction.default,
        transposing.default,
        pointwise.default,
    )
    for template in templates:
        found = _tried(template, schedule, name, target, sizes)
        if found is not None:
            return found
    return general.default(schedule, name, target)
