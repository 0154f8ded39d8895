"""Puts inlined producers into their consumers, and stages where they run on a launch, before bounds are inferred.

A stage with `global` storage inside loops over blocks, threads or tasks must be complete when any of them reads it, and blocks do
not wait for each other. All loops around it are relaxed then, so it is computed once, before the launch: at root.

What one thread makes for its own iteration of a loop that is bound to the same thread axis again runs in that loop: thread `t` runs
iteration `t` of both, so it needs what that iteration reads, and nothing of what the other threads read.

Worked example: `T(i) = 2*X(i)` inlined into `O(i) = T(i) + T(i+1)` leaves `O(i) = 2*X(i) + 2*X(i+1)`.

Source: Halide, `inline`; TVM, `InjectInline`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tc_jupyter.program import Binary, Cast, DType, Expr, IndexVar, Read, Size, rewrite
from tc_jupyter.program.integers import sizes_of
from tc_jupyter.ranges import constant, to_expr

from .infer_bound import path_points, relaxed_axes, view_shift
from .stage import THREAD_AXES, Attach, Stage, StageGraph
from .subscripts import shortened


def inject_inline(graph: StageGraph) -> StageGraph:
    """The graph without inlined stages: every read of one is replaced by its expression at the read's indices.

    What runs before the launch (`runs_before_launch`) is at root, what a thread makes for itself in the loop that reads it.
    """
    early = [stage.name for stage in graph.stages if runs_before_launch(graph, stage)]
    graph = without_inlined(graph)
    for name in early:
        graph = graph.replace_stage(replace(graph.stage(name), attach=Attach()))
    for stage in reversed(graph.stages):
        place = _same_thread(graph, graph.stage(stage.name))
        if place is not None:
            graph = graph.replace_stage(replace(graph.stage(stage.name), attach=Attach("at", *place)))
    return graph


def _same_thread(graph: StageGraph, stage: Stage) -> tuple[str, str] | None:
    """The loop of its only reader that is bound to the thread axis of a loop around a stage, if the stage may run in it.

    One thread sees its storage, and one statement writes it and each tensor that it reads.
    """
    around = {graph.stage(owner).annotation(leaf) for owner, leaf in graph.attach_path(stage.name)}
    threads = around & set(THREAD_AXES)
    if stage.attach.kind != "at" or not threads or set(relaxed_axes(graph, stage)) & threads:
        return None
    written = (stage.target, *graph.reads(stage))
    users = graph.consumers(stage.name)
    shares = any(each.attach.kind == "with" for each in (*users, *graph.attached(stage.name)))
    if len(users) != 1 or shares or any(len(graph.stages_on(tensor)) > 1 for tensor in written):
        return None
    (user,) = users
    inside = (stage.attach.stage, stage.attach.axis) in graph.attach_path(user.name)
    leaves = [leaf for leaf in user.leaves if user.kind(leaf) == "output" and user.annotation(leaf) in threads]
    return (user.name, leaves[-1]) if inside and leaves else None


def without_inlined(graph: StageGraph) -> StageGraph:
    """The graph with the expressions of inlined stages in the place of their reads; every other stage is where it was."""
    for stage in graph.stages:
        if stage.attach.kind == "inline":
            graph = _remove(graph, graph.stage(stage.name))
    return graph


def with_written(graph: StageGraph, names: Sequence[str]) -> StageGraph:
    """The graph with the expressions of inlined statements written into some stages for good; copies stay names of their own."""
    plain = graph
    for stage in graph.stages:
        if stage.attach.kind == "inline" and stage.evaluates:
            plain = _remove(plain, plain.stage(stage.name))
    known = {stage.name for stage in plain.stages}
    for name in names:
        if name in known:
            graph = graph.replace_stage(plain.stage(name))
    return graph


def expressions_inlined(graph: StageGraph, exprs: Sequence[Expr]) -> tuple[Expr, ...]:
    """Expressions beside the statements, such as checked conditions, with those of inlined stages in the place of reads."""
    found = tuple(exprs)
    for stage in graph.stages:
        if stage.attach.kind == "inline":
            inlined = graph.stage(stage.name)
            rule = _substitution(graph, inlined)
            found = tuple(rewrite(expr, rule) for expr in found)
            graph = _remove(graph, inlined)
    return found


def runs_before_launch(graph: StageGraph, stage: Stage) -> bool:
    """Whether a stage is attached inside loops over blocks, threads or tasks that all see its storage."""
    return (
        stage.attach.kind == "at"
        and graph.scope(stage) == "global"
        and len(path_points(graph, stage)) < len(graph.attach_path(stage.name))
    )


def _extents(graph: StageGraph, storage: str) -> dict[str, Expr]:
    bounds = graph.boxes[storage].bounds
    extents = {f"{storage}.{k}": to_expr(high - low) for k, (low, high) in enumerate(bounds)}
    return extents | {f"{storage}.first{k}": to_expr(low) for k, (low, _) in enumerate(bounds)}


def _substitution(graph: StageGraph, inlined: Stage) -> Callable[[Expr], Expr | None]:
    """What stands for reads of an inlined stage, and for the extents of its tensor."""
    storage = graph.storage_name(inlined.target)
    extents = _extents(graph, storage)

    def substitute(expr: Expr) -> Expr | None:
        if isinstance(expr, Size) and expr.name in extents:
            return extents[expr.name]
        if isinstance(expr, Read) and graph.storage_name(expr.tensor) == storage:
            return _value_at(graph, inlined, expr)
        return None

    return substitute


def _remove(graph: StageGraph, inlined: Stage) -> StageGraph:
    storage = graph.storage_name(inlined.target)
    extents, substitute = _extents(graph, storage), _substitution(graph, inlined)
    stages: list[Stage] = []
    for stage in graph.stages:
        if storage in graph.reads(stage) or sizes_of(stage.statement.value) & extents.keys():
            value = rewrite(stage.statement.value, substitute)
            stages.append(shortened(graph, replace(stage, statement=replace(stage.statement, value=value))))
        else:
            stages.append(stage)
    return graph.with_stages(tuple(stage for stage in stages if stage.name != inlined.name))


def _value_at(graph: StageGraph, inlined: Stage, read: Read) -> Expr:
    """The producer's expression at the indices of one read, rounded to the tensor's type as a stored value would be."""
    shift = view_shift(graph, read.tensor)
    values: dict[str, Expr] = {}
    for index, subscript, by in zip(inlined.statement.output_indices, read.indices, shift, strict=True):
        moved = subscript if by == constant(0) else Binary("+", subscript, to_expr(by), DType.INT64)
        values[index.name] = moved
    value = rewrite(inlined.statement.value, lambda expr: values.get(expr.name) if isinstance(expr, IndexVar) else None)
    return value if value.dtype is read.dtype else Cast(value, read.dtype)
