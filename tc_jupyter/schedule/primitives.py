"""The schedule primitives: each a function `StageGraph -> StageGraph` that leaves its argument unchanged.

A schedule never changes ranges, shapes or results; it changes loop order, storage, and how often a value is computed. Every
primitive refuses an illegal use with a diagnostic (TC4xx, `CompileError`). Names and meaning follow Halide and TVM.

`stage` and `axis` are the same everywhere; `help.py`, which makes the documentation of the methods of `Schedule` of these
docstrings, says what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from inspect import signature
from itertools import product, takewhile
from math import prod
from operator import index as whole_number
from typing import Any

from tc_jupyter.diagnostics import Code, CompileError, Diagnostic, codes, render, shown_line, shown_value
from tc_jupyter.program import (
    Binary,
    Cast,
    Const,
    DType,
    Expr,
    Factored,
    Index,
    IndexVar,
    Read,
    Select,
    Statement,
    Tensor,
    Unary,
    children,
    factors_of,
    identity_of,
    int64,
    keeps,
    keeps_values,
    places,
    rewrite,
    summed_first,
    walk,
    without_factors,
)
from tc_jupyter.program.integers import index_names
from tc_jupyter.program.typing import cast
from tc_jupyter.ranges import Box, SizeExpr, constant, from_expr, nonnegative, step_of, to_expr, to_python

from .grid import grid_problem
from .infer_bound import infer_symbolic, limited
from .inline import inject_inline, runs_before_launch, with_written
from .intrinsics import match_intrinsic, root_of, step_problem
from .legality import Problem, check_with, order_problem
from .lineage import ceil_div, default_domain, leaf_domain, lineage
from .orders import changed_order, refused
from .partial_tiles import tail_problem
from .placement import (
    attach_points,
    attach_problem,
    attached_family,
    final_users,
    graph_problem,
    inlined_family,
    readers_outside,
    shared_depth,
)
from .reindexing import operand, reads_by_data, value_of
from .rolling import window_problem
from .running import in_block, running_of
from .sized import with_sizes
from .stage import (
    ANNOTATIONS,
    GPU_AXES,
    SCOPES,
    TAILS,
    Attach,
    Fuse,
    IterVar,
    Relation,
    Skew,
    Split,
    Stage,
    StageGraph,
    Storage,
    Tensorize,
    children_of,
    constant_extent,
    fresh_name,
    parents_of,
    taken_names,
)
from .subscripts import is_inside
from .time_tiles import MOST_STEPS, time_tiled
from .zeros import adds_zeros, is_copy

LARGEST_STEP = 2**40
"""Largest product of the factors of splits of splits, in iterations: positions are 64-bit numbers, sizes times it among them."""

MOST_TERMS = 8
"""Terms that are written out: coordinates of a point, colours of a pixel, a short window."""
MOST_OF_TYPE = 1 << 16
"""Iterations up to which the largest number of a scalar's type is a constant length: all of `uint16`."""
MOST_READERS = 3
"""Readers outside of a loop that the help of a refusal moves."""

# --- loops of one stage ----------------------------------------------------------------------------------------------


def split(
    graph: StageGraph,
    stage: str,
    axis: str,
    factor: int | None = None,
    nparts: int | None = None,
    tail: str | None = None,
) -> StageGraph:
    """Split a loop into an outer and an inner loop of `factor` iterations; the last tile may be a partial one.

    Rewrite:
        for i in 0:n                 S(i)
        ->
        for i.outer in 0:ceil(n/f)
          for i.inner in 0:min(f, n - f*i.outer)
            S(f*i.outer + i.inner)

    Example:
        def f(float(N) X) -> (C) { C(i) = 2 * X(i) }

        for C[i] in 0:N
          C(i) = 2 * X(i)

        .split("C", "i", 4)

        for C[i.outer] in 0:(N + 3)//4
          for C[i.inner] in 0:min(N - 4*C[i.outer], 4)
            C(i) = 2 * X(i)

    Args:
        factor: iterations of the inner loop; larger than the extent is legal (one short loop).
        nparts: instead of `factor`: number of iterations of the outer loop; the factor is `ceil(n/nparts)`.
        tail: what happens with a partial last tile. `"short"`: its loop is shorter. `"guard"`: all tiles are full, with a
            condition around each point. `"shift"`: it begins earlier and is full, if the loop is as long as a tile; some results
            are computed twice. `"mask"`: the lanes of the vectorised inner loop that are beyond the end do nothing, which in any
            other loop is a condition. By default the loop is shorter, or what the engine finds faster; the values are the same.

    Raises:
        CompileError: TC403 (no such loop), TC405 (a factor below 1, or splits of splits of more than
            2^40 iterations), TC410 (the loop is parallel, a vector or the like already, or part of a tensorized step), TC414 (no
            such tail, or one that these loops cannot have).

    Source: TVM, "InferBound Pass", IterVarRelation Split; Halide, `TailStrategy`.
    """
    old = find_stage(graph, stage)
    _leaf(graph, old, axis)
    _free(graph, old, axis, "split")
    factor, nparts = (_as_integer(each) for each in (factor, nparts))
    number = factor if nparts is None else nparts
    most = LARGEST_STEP // _step(old, axis)
    integer = isinstance(number, int) and not isinstance(number, bool)
    if (factor is None) == (nparts is None) or number is None or not integer or not 1 <= number <= most:
        given = f"`{shown_value(factor)}`"
        if nparts is not None:
            given = f"`factor={shown_value(factor)}`, `nparts={shown_value(nparts)}`"
        message = f"`{stage}[{axis}]` cannot be split by {given}"
        if number is None:
            message = f"nothing says into what `{stage}[{axis}]` is split"
        help = "give one of `factor` and `nparts`, an integer of 1 or more"
        too_large = integer and number is not None and number > most
        raise refuse(graph, codes.BAD_FACTOR, old, message, f"{help}, at most {most}" if too_large else help)
    if tail not in (None, *TAILS):
        message = f"`{shown_value(tail)}` is no tail of `{stage}[{axis}]`"
        raise refuse(graph, codes.BAD_TAIL, old, message, f"one of {', '.join(TAILS)}")
    relation = Split(axis, f"{axis}.outer", f"{axis}.inner", factor, nparts, tail)
    new = graph
    for each in _around_steps(graph, old, (axis,)) or (old,):
        leaves = _replace_leaves(each, axis, (relation.outer, relation.inner))
        new = new.replace_stage(replace(each, relations=(*each.relations, relation), leaves=leaves))
    return new if tail is None else _keeps_tails(graph, new)


def fuse(graph: StageGraph, stage: str, outer: str, inner: str) -> StageGraph:
    """Make one loop of two neighbours.

    Rewrite:
        for i in 0:n
          for j in 0:m               S(i, j)
        ->
        for i.j.fused in 0:n*m       S(i.j.fused // m, i.j.fused % m)

    Example:
        def f(float(N,M) X) -> (C) { C(i,j) = 2 * X(i,j) }

        for C[i] in 0:N
          for C[j] in 0:M
            C(i,j) = 2 * X(i,j)

        .fuse("C", "i", "j")

        for C[i.j.fused] in 0:N*M
          C(i,j) = 2 * X(i,j)

    Args:
        outer: a loop of the stage.
        inner: the loop directly inside of it.

    Raises:
        CompileError: TC403 (no such loop), TC404 (not neighbours in this order), TC406 (an output with a reduction axis),
            TC410 (a loop is parallel, a vector or the like already).

    Source: TVM, "InferBound Pass", IterVarRelation Fuse.
    """
    old = _neighbours(graph, stage, outer, inner, "fuse")
    if old.kind(outer) != old.kind(inner):
        message = f"`{outer}` is an {old.kind(outer)} axis and `{inner}` a {old.kind(inner)} axis of `{stage}`"
        raise refuse(graph, codes.MIXED_FUSE, old, message, "fuse two output axes or two reduction axes")
    relation = Fuse(outer, inner, f"{outer}.{inner}.fused")
    leaves = tuple(relation.fused if leaf == outer else leaf for leaf in old.leaves if leaf != inner)
    return graph.replace_stage(replace(old, relations=(*old.relations, relation), leaves=leaves))


def skew(graph: StageGraph, stage: str, outer: str, inner: str, factor: int = 1) -> StageGraph:
    """Go through two neighbouring loops by wavefronts, on each of which `factor*outer + inner` is the same.

    Rewrite:
        for i in 0:n
          for j in 0:m               S(i, j)
        ->
        for w in 0:f*(n - 1) + m
          for i in max(0, ceil((w - m + 1)/f)):min(n, w//f + 1)
            S(i, w - f*i)

    The inner one of the new loops counts from the first `i` of its front. Where no point of a front reads another one, it may be
    parallel or a vector.

    Example:
        def f(float(N,M) X) -> (C) { C(i,j) = (C(i-1,j) else 0) + (C(i,j-1) else 0) + X(i,j) along i, j }

        for C[i] in 0:N
          for C[j] in 0:M
            C(i,j) = (C(i-1,j) else 0) + (C(i,j-1) else 0) + X(i,j) along i, j

        .skew("C", "i", "j")
        .parallel("C", "i.place")

        for C[i.j.front] in 0:N + M - 1
          for C[i.place] in 0:min(C[i.j.front] + 1, N) - max(C[i.j.front] - M, -1) - 1   # parallel
            C(i,j) = (C(i-1,j) else 0) + (C(i,j-1) else 0) + X(i,j) along i, j

    Args:
        outer: a loop of the stage.
        inner: the loop directly inside of it.
        factor: how many inner iterations the front moves for one outer iteration: 2 where `(i, j)` reads `(i-1, j+1)`.

    Raises:
        CompileError: TC403 (no such loop over outputs), TC404 (not neighbours in this order), TC405 (a factor
            below 1, or one that is too large), TC407 (the stage has an order that fronts do not keep), TC410 (a loop is parallel, a
            vector or the like already).

    Source: Wolfe, "Loop skewing: the wavefront method revisited", 1986.
    """
    old = _neighbours(graph, stage, outer, inner, "skew")
    reduced = next((axis for axis in (outer, inner) if old.kind(axis) == "reduction"), None)
    if reduced is not None:
        leaves = ", ".join(f"`{leaf}`" for leaf in old.leaves if old.kind(leaf) == "output")
        message = f"`{reduced}` is not an output axis of `{stage}`"
        raise refuse(graph, codes.UNKNOWN_AXIS, old, message, f"its output axes are {leaves or 'none'}")
    given: Any = _as_integer(factor)
    most = LARGEST_STEP // max(_step(old, axis) for axis in (outer, inner))
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        message, help = (
            f"`{stage}[{outer}]` cannot be skewed by `{shown_value(factor)}`",
            "give an integer of 1 or more",
        )
        too_large = isinstance(given, int) and given > most
        raise refuse(graph, codes.BAD_FACTOR, old, message, f"{help}, at most {most}" if too_large else help)
    relation = Skew(outer, inner, given, f"{outer}.{inner}.front", f"{outer}.place")
    names = {outer: relation.front, inner: relation.place}
    leaves = tuple(names.get(leaf, leaf) for leaf in old.leaves)
    return graph.replace_stage(replace(old, relations=(*old.relations, relation), leaves=leaves))


def _neighbours(graph: StageGraph, stage: str, outer: str, inner: str, action: str) -> Stage:
    """The stage, if two of its loops are free and stand one inside of the other.

    Raises:
        CompileError: TC403, TC404, TC410, as `fuse`.
    """
    old = find_stage(graph, stage)
    for axis in (outer, inner):
        _leaf(graph, old, axis)
        _free(graph, old, axis, action)
    if old.leaves.index(inner) != old.leaves.index(outer) + 1:
        message = f"`{outer}` and `{inner}` are not neighbours in the loops of `{stage}`"
        order = ", ".join(old.leaves)
        raise refuse(graph, codes.FUSE_NOT_ADJACENT, old, message, f"the order is {order}; `reorder` first")
    return old


def reorder(graph: StageGraph, stage: str, *axes: str) -> StageGraph:
    """Permute the named loops in the places that they occupy.

    Rewrite (`reorder("C", "j", "i")`):
        for i
          for j    S(i, j)
        ->
        for j
          for i    S(i, j)

    Legal for every stage without others in its loops: its points are independent or combined by an associative, commutative
    operator. Floating sums may round differently.

    Example:
        def f(float(N,M) X) -> (C) { C(i,j) = 2 * X(i,j) }

        for C[i] in 0:N
          for C[j] in 0:M
            C(i,j) = 2 * X(i,j)

        .reorder("C", "j", "i")

        for C[j] in 0:M
          for C[i] in 0:N
            C(i,j) = 2 * X(i,j)

    Args:
        axes: names of loops in their new order; those that are not named stay where they are.

    Raises:
        CompileError: TC403 (no such loop, or one is named twice), TC401 (a reader of a stage that is computed in one of the
            loops would leave it).
    """
    old = find_stage(graph, stage)
    for axis in axes:
        _leaf(graph, old, axis)
    if len(set(axes)) != len(axes):
        raise refuse(
            graph, codes.UNKNOWN_AXIS, old, f"an axis of `{stage}` is named twice in `reorder`", "name each once"
        )
    together = _around_steps(graph, old, axes)
    if together:
        for each in together:
            graph = graph.replace_stage(replace(each, leaves=_permuted(each, axes)))
        return graph
    leaves = _permuted(old, axes)
    depth = shared_depth(graph, old)
    if leaves[:depth] != old.leaves[:depth]:
        message = f"the outer {depth} loops of `{stage}` are shared with another stage"
        raise refuse(graph, codes.BAD_ATTACH, old, message, "reorder first, then `compute_with`")
    new = _keeps_steps(graph, graph.replace_stage(replace(old, leaves=leaves)), old, "reorder first, then tensorize")
    return _valid(graph, new, old) if any(graph.attached(stage)) else new


def tile(
    graph: StageGraph, stage: str, x: str, y: str, x_factor: int, y_factor: int, tail: str | None = None
) -> StageGraph:
    """Split two loops and put the inner ones inside: `x.outer, y.outer, x.inner, y.inner`.

    Rewrite:
        for i, for j  ->  for i.outer, for j.outer, for i.inner, for j.inner

    Example:
        def f(float(N,M) X) -> (C) { C(i,j) = 2 * X(i,j) }

        for C[i] in 0:N
          for C[j] in 0:M
            C(i,j) = 2 * X(i,j)

        .tile("C", "i", "j", 8, 16)

        for C[i.outer] in 0:(N + 7)//8
          for C[j.outer] in 0:(M + 15)//16
            for C[i.inner] in 0:min(N - 8*C[i.outer], 8)
              for C[j.inner] in 0:min(M - 16*C[j.outer], 16)
                C(i,j) = 2 * X(i,j)

    Args:
        x: the loop whose tiles are the outermost ones.
        y: the loop whose tiles are inside of them.
        x_factor: iterations of `x` in a tile.
        y_factor: iterations of `y` in a tile.
        tail: what happens with partial tiles of both loops, as in `split`.

    Raises:
        CompileError: TC403 (no such loop), TC405 (a factor below 1), TC410 (a loop is parallel, a vector or the like
            already), TC401 (a reader of a stage that is computed in one of the loops would leave it), TC414 (as in `split`).
    """
    for axis in (x, y):  # before the first split, whose loops the user has not written
        _leaf(graph, find_stage(graph, stage), axis)
    graph = split(split(graph, stage, x, x_factor, tail=tail), stage, y, y_factor, tail=tail)
    return reorder(graph, stage, f"{x}.outer", f"{y}.outer", f"{x}.inner", f"{y}.inner")


def annotate(graph: StageGraph, stage: str, axis: str, annotation: str) -> StageGraph:
    """Say how a loop runs: `parallel`, `vectorize`, `unroll`, or a GPU axis. Bounds do not change.

    What each may be, and what refuses it, stands in `parallel`, `vectorize`, `unroll` and `bind`, which are this.

    Example:
        def f(float(N,M) X) -> (C) { C(i,j) = 2 * X(i,j) }

        for C[i] in 0:N
          for C[j] in 0:M
            C(i,j) = 2 * X(i,j)

        .split("C", "j", 8)
        .parallel("C", "i")
        .vectorize("C", "j.inner")

        for C[i] in 0:N   # parallel
          for C[j.outer] in 0:(M + 7)//8
            for C[j.inner] in 0:min(M - 8*C[j.outer], 8)   # vectorize
              C(i,j) = 2 * X(i,j)

    Raises:
        CompileError: TC403, TC410, as these.
    """
    old = find_stage(graph, stage)
    _leaf(graph, old, axis)
    problem = _annotation_problem(old, axis, annotation)
    if problem is not None:
        message = f"`{stage}[{axis}]` cannot take `{annotation}`: {problem[0]}"
        raise refuse(graph, codes.BAD_ANNOTATION, old, message, problem[1])
    new = graph.replace_stage(replace(old, annotations=(*old.annotations, (axis, annotation))))
    return _keeps_steps(graph, new, old, "annotate another loop")


def parallel(graph: StageGraph, stage: str, axis: str) -> StageGraph:
    """Run the iterations of an output loop on the CPU's threads, in no fixed order.

    Example:
        def f(float(N) X) -> (C) { C(i) = 2 * X(i) }

        for C[i] in 0:N
          C(i) = 2 * X(i)

        .parallel("C", "i")

        for C[i] in 0:N   # parallel
          C(i) = 2 * X(i)

    Raises:
        CompileError: TC403 (no such loop), TC410 (its iterations are combined, or it is parallel, a vector or the like
            already), TC407 (its iterations have an order).
    """
    return annotate(graph, stage, axis, "parallel")


def vectorize(graph: StageGraph, stage: str, axis: str) -> StageGraph:
    """Run the iterations of a loop, whose length a number limits, as the lanes of vectors.

    Example:
        def f(float(N) X) -> (C) { C(i) = 2 * X(i) }

        for C[i] in 0:N
          C(i) = 2 * X(i)

        .split("C", "i", 8)
        .vectorize("C", "i.inner")

        for C[i.outer] in 0:(N + 7)//8
          for C[i.inner] in 0:min(N - 8*C[i.outer], 8)   # vectorize
            C(i) = 2 * X(i)

    Raises:
        CompileError: TC403 (no such loop), TC410 (no number limits its length: `split` it first; or it is parallel, a vector
            or the like already), TC407 (its iterations have an order).
    """
    return annotate(graph, stage, axis, "vectorize")


def unroll(graph: StageGraph, stage: str, axis: str) -> StageGraph:
    """Write the iterations of a loop, whose length a number limits, one after the other.

    Example:
        def f(float(N) X) -> (C) { C(i) = X(i) + X(i+1) where i in 0:4 }

        for C[i] in 0:4
          C(i) = X(i) + X(i+1) where i in 0:4

        .unroll("C", "i")

        for C[i] in 0:4   # unroll
          C(i) = X(i) + X(i+1) where i in 0:4

    Raises:
        CompileError: TC403 (no such loop), TC410 (no number limits its length: `split` it first; or it is parallel, a vector
            or the like already).
    """
    return annotate(graph, stage, axis, "unroll")


def bind(graph: StageGraph, stage: str, axis: str, thread: str) -> StageGraph:
    """Run the iterations of a loop on the blocks or threads of a GPU launch.

    A reduction loop may be bound to `threadIdx.x` if it is the only one and innermost (as `rfactor` leaves it): the threads then
    have one value each, and all of them get the combined one.

    Example:
        def f(float(N) X) -> (C) { C(i) = 2 * X(i) }

        for C[i] in 0:N
          C(i) = 2 * X(i)

        .split("C", "i", 256)
        .bind("C", "i.outer", "blockIdx.x")
        .bind("C", "i.inner", "threadIdx.x")

        for C[i.outer] in 0:(N + 255)//256   # blockIdx.x
          for C[i.inner] in 0:256   # threadIdx.x
            C(i) = 2 * X(i)

    Args:
        thread: `blockIdx.x`, `blockIdx.y`, `blockIdx.z`, `threadIdx.x`, `threadIdx.y` or `threadIdx.z`; each once in a stage.

    Raises:
        CompileError: TC403 (no such loop), TC410 (its iterations are combined, the loop or `thread` has been taken already,
            or there is no such `thread`), TC401 (the axes of blocks and threads stand where they cannot run), TC407 (its iterations
            have an order).
    """
    return annotate(graph, stage, axis, thread)


def tensorize(graph: StageGraph, stage: str, axes: tuple[str, ...], intrinsic: str) -> StageGraph:
    """Replace the innermost loops `axes` by one intrinsic, for instance a 16x8x16 matrix step.

    Example:
        def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }

        for C[i] in 0:M
          for C[j] in 0:N
            for C[k] in 0:K
              C(i,j) +=! A(i,k) * B(k,j)

        .tile("C", "i", "j", 6, 16)
        .reorder("C", "i.outer", "j.outer", "k", "i.inner", "j.inner")
        .tensorize("C", ("i.inner", "j.inner"), "fma_6x16_f32")

        for C[i.outer] in 0:(M + 5)//6
          for C[j.outer] in 0:(N + 15)//16
            for C[k] in 0:K
              C(i,j) +=! A(i,k) * B(k,j)   # fma_6x16_f32 over i.inner, j.inner

    Args:
        axes: the innermost loops, outermost first.
        intrinsic: the name of the step, as in `"fma_6x16_f32"`.

    Raises:
        CompileError: TC403 (no such loop), TC410 (they are not the innermost loops, or lengths, types or the operator do not
            match).
    """
    old = find_stage(graph, stage)
    given: Any = axes
    if not isinstance(given, tuple):
        leaves = ", ".join(f"`{leaf}`" for leaf in old.leaves)
        message = f"`{axes}` is no tuple of loops of `{stage}`"
        raise refuse(
            graph, codes.UNKNOWN_AXIS, old, message, f"name its innermost loops; its loops are {leaves or 'none'}"
        )
    for axis in axes:
        _leaf(graph, old, axis)
    if old.attach.kind == "inline":
        problem: str | None = "it is inlined and has no loops"
    elif old.tensorize is not None:
        problem = f"it is `{old.tensorize.intrinsic}` already"
    else:
        plain = inject_inline(graph)
        problem = match_intrinsic(plain, plain.stage(stage), axes, intrinsic)
    if problem is not None:
        message = f"`{stage}` has no `{intrinsic}` step over {', '.join(f'`{axis}`' for axis in axes)}: {problem}"
        raise refuse(graph, codes.BAD_ANNOTATION, old, message, "split the axes to the extents of the intrinsic first")
    return graph.replace_stage(replace(old, tensorize=Tensorize(axes, intrinsic)))


# --- where a stage runs ----------------------------------------------------------------------------------------------


def compute_at(graph: StageGraph, stage: str, consumer: str, axis: str) -> StageGraph:
    """Run a producer inside a loop of its consumer: each visit computes the elements that the rest of that loop body reads.

    Rewrite (`compute_at("B", "C", "i")`):
        for i: for j: B(i, j)
        for i: for j: C(i, j) reads B(i, j)
        ->
        for i
          for j: B(i, j)             # one row
          for j: C(i, j)

    All stages on the producer's tensor move together. Values do not change; elements that several visits need are computed
    several times (TC408).

    Example:
        def f(float(N,M) X) -> (C) { B(i,j) = 2 * X(i,j)  C(i,j) = B(i,j) + B(i,j+1) }

        for B[i] in 0:N
          for B[j] in 0:M
            B(i,j) = 2 * X(i,j)
        for C[i] in 0:N
          for C[j] in 0:M - 1
            C(i,j) = B(i,j) + B(i,j+1)

        .compute_at("B", "C", "i")

        for C[i] in 0:N
          allocate B [C[i], C[i] + 1) x [0, M)   # local
          for B[j] in 0:M
            B(i,j) = 2 * X(i,j)
          for C[j] in 0:M - 1
            C(i,j) = B(i,j) + B(i,j+1)

    Args:
        consumer: the stage that reads what `stage` computes.
        axis: the loop of the consumer that it moves into.

    Raises:
        CompileError: TC403 (no such loop), TC401 (the stage writes a result, or another stage reads it outside of that
            loop; the message names the read and the loops that would do).

    Source: TVM, "InferBound Pass", InferBound with compute_at; Halide, `compute_at`.
    """
    producer, user = find_stage(graph, stage), find_stage(graph, consumer)
    if user.attach.kind == "inline" and producer.attach.kind != "inline":
        raise _no_loops(graph, user, axis, _instead_of_inlined(graph, producer, user, axis))
    _leaf(graph, user, axis)
    problem = attach_problem(graph, producer, user, axis)
    if problem is not None:
        message = f"`{stage}` cannot be computed at `{consumer}[{axis}]`: {problem.message}"
        first = _readers_first(graph, producer, user, axis)
        raise refuse(graph, problem.code, producer, message, f"{first}; {problem.help}" if first else problem.help)
    return _valid(graph, attached_family(graph, producer, Attach("at", consumer, axis)), producer)


def _instead_of_inlined(graph: StageGraph, producer: Stage, consumer: Stage, axis: str) -> str:
    """Where a stage may be computed if not at a loop of an inlined one: there when it is no more, or where that is computed."""
    legal, ways = attach_points(graph, producer), list[str]()
    alone = compute_root(graph, consumer.name)
    user = alone.stage(consumer.name)
    if axis in user.leaves and attach_problem(alone, alone.stage(producer.name), user, axis) is None:
        ways.append(f'`compute_root("{consumer.name}")` first')
    if "`" in legal:
        ways.append("name a loop of a stage that it is computed in")
    return "; ".join(filter(None, (", or ".join(ways), f"legal: {legal}")))


def _readers_first(graph: StageGraph, producer: Stage, consumer: Stage, axis: str) -> str:
    """What to do with the readers of a stage outside of a loop, so that it may be computed there; empty if nothing helps."""
    found = [_moved_first(graph, producer, consumer, axis, inlined=inlined) for inlined in (True, False)]
    ways = dict.fromkeys(each for each in found if each)
    return ", or ".join(f"{way} first" for way in ways)


def _moved_first(graph: StageGraph, producer: Stage, consumer: Stage, axis: str, *, inlined: bool) -> str:
    """Steps for the readers outside of a loop, of which each is inlined, or moved into the loop, where both would do."""
    steps: list[str] = []
    outside = list(readers_outside(graph, producer, (consumer.name, axis)))
    for reader in reversed(
        outside[:MOST_READERS]
    ):  # the last one first: the loops of those before are inside of its own
        if reader.name in (consumer.name, producer.name):
            continue
        for inline in (inlined, not inlined):
            # a refusal would look for the readers of this reader, and so on
            if (
                not inline
                and attach_problem(graph, graph.stage(reader.name), graph.stage(consumer.name), axis) is not None
            ):
                continue
            try:
                changed = (
                    compute_inline(graph, reader.name)
                    if inline
                    else compute_at(graph, reader.name, consumer.name, axis)
                )
            except CompileError:
                continue
            graph = changed
            place = "" if inline else f', "{consumer.name}", "{axis}"'
            steps.append(f'`compute_{"inline" if inline else "at"}("{reader.name}"{place})`')
            break
    if not steps or attach_problem(graph, graph.stage(producer.name), graph.stage(consumer.name), axis) is not None:
        return ""
    return " and ".join(steps)


def compute_root(graph: StageGraph, stage: str) -> StageGraph:
    """Run a stage outside all loops of others: its default place.

    Example:
        def f(float(N) X) -> (C) { B(i) = 2 * X(i)  C(i) = B(i) + 1 }

        for B[i] in 0:N
          B(i) = 2 * X(i)
        for C[i] in 0:N
          C(i) = B(i) + 1

        .compute_at("B", "C", "i")
        .compute_root("B")

        for B[i] in 0:N
          B(i) = 2 * X(i)
        for C[i] in 0:N
          C(i) = B(i) + 1

    Raises:
        CompileError: TC411 (no such stage).
    """
    old = find_stage(graph, stage)
    return _valid(graph, attached_family(graph, old, Attach()), old)


def compute_inline(graph: StageGraph, stage: str) -> StageGraph:
    """Put the producer's expression in the place of every read of it.

    Rewrite:
        for i: T(i) = f(X(i))
        for i: O(i) = T(i) + T(i+1)
        ->
        for i: O(i) = f(X(i)) + f(X(i+1))

    Example:
        def f(float(N) X) -> (C) { B(i) = 2 * X(i)  C(i) = B(i) + B(i+1) }

        for B[i] in 0:N
          B(i) = 2 * X(i)
        for C[i] in 0:N - 1
          C(i) = B(i) + B(i+1)

        .compute_inline("B")

        for C[i] in 0:N - 1
          C(i) = B(i) + B(i+1)   # `B` inlined

    Raises:
        CompileError: TC401 (a reduction, an output, a stage with later statements on its tensor, a received tensor, or one whose
            elements are subscripts or conditions of reads).
    """
    old = find_stage(graph, stage)
    family = graph.stages_on(old.target)
    users = graph.consumers(family[0].name)
    problem = None
    if stage in graph.outputs:
        problem = "it is a result"
    elif any(_looks_at_points(graph, each) or _decides_reads(graph, each) for each in family):
        problem = "where it reads depends on data, which is checked per statement"
    elif old.statement.needs_points:
        problem = "where it is stored it is checked that there is a position"
    elif any(tensor.view_of == old.target for tensor in graph.program.tensors):
        problem = f"`{old.target}` is received by a caller as a tensor of its own"
    elif inside := next((each for member in family for each in graph.attached(member.name) if not _shares(each)), None):
        problem = f"`{inside.name}` is computed in its loops"
    elif users and (old.statement.operator != "=" or old.statement.reduction_indices):
        problem = "it is a reduction"
    elif users and keeps(old.statement):
        problem = "it writes some elements only"
    elif users and len(family) > 1:
        problem = f"`{old.target}` is written by several statements"
    elif reader := next((user for user in users if _decides_reads(graph, user, old.target)), None):
        problem = f"its elements decide what `{reader.name}` reads, which is checked with the stored ones"
    if problem is not None:
        raise refuse(graph, codes.BAD_ATTACH, old, f"`{stage}` cannot be inlined: {problem}", "use `compute_at`")
    return _valid(graph, inlined_family(graph, old), old)


def _shares(stage: Stage) -> bool:
    """Whether a statement shares the loops of the first one of its block."""
    return stage.attach.kind == "with" and bool(stage.statement.block)


def _decides_reads(graph: StageGraph, user: Stage, tensor: str | None = None) -> bool:
    """Whether elements of a tensor, or of any, are subscripts of the user, or conditions of reads that need not be inside."""

    def decided(expr: Expr) -> bool:
        reads = [node for node in walk(expr) if isinstance(node, Read) and node.indices]
        return any(tensor in (None, graph.storage_name(read.tensor)) for read in reads)

    def leaves(*exprs: Expr) -> bool:
        reads = (node for expr in exprs for node in walk(expr) if isinstance(node, Read) and node.indices)
        return any(
            graph.storage_name(read.tensor) != tensor and not is_inside(graph.boxes, user, read) for read in reads
        )

    if any(decided(place) for _, place in places(user.statement)):
        return True  # so is where its points go
    for node in walk(user.statement.value):
        match node:
            case Read():
                found = any(map(decided, node.indices))
            case Select():
                found = decided(node.condition) and leaves(node.then, node.otherwise)
            case Binary(op="&&" | "||"):
                found = decided(node.left) and leaves(node.right)
            case _:
                found = False
        if found:
            return True
    return False


def compute_with(graph: StageGraph, stage: str, other: str, axis: str) -> StageGraph:
    """Run two stages in one loop nest down to `axis` of `other`: one shared loop, no recomputation.

    Rewrite (`compute_with("S", "M", "i")`):
        for i: M(i)
        for i: S(i)
        ->
        for i
          M(i)
          S(i)

    The leaves of `stage` down to the same depth must have the same ranges; each producer must still run before its consumers
    (proved with integer sets).

    Example:
        def f(float(N) X) -> (M, S) { M(i) = 2 * X(i)  S(i) = M(i) + 1 }

        for M[i] in 0:N
          M(i) = 2 * X(i)
        for S[i] in 0:N
          S(i) = M(i) + 1

        .compute_with("S", "M", "i")

        for M[i] in 0:N
          M(i) = 2 * X(i)
          S(i) = M(i) + 1

    Args:
        other: the stage whose loops are shared.
        axis: the innermost shared loop, by its name in `other`.

    Raises:
        CompileError: TC403 (no such loop), TC401 (loops differ, or the stage is in another one's loops
            already), TC407 (a dependence would run backwards, with a witness, or this cannot be excluded).
    """
    late, early = find_stage(graph, stage), find_stage(graph, other)
    _leaf(graph, early, axis)
    problem = check_with(graph, late, early, axis)
    if problem is not None:
        raise refuse(graph, problem.code, late, problem.message, problem.help)
    shared = graph.replace_stage(replace(late, attach=Attach("with", other, axis)))
    placed = graph_problem(shared)
    if placed is not None:
        name, found = placed
        raise refuse(graph, found.code, late, f"`{name}` cannot run there: {found.message}", "`compute_root` it")
    return shared


def storage(
    graph: StageGraph,
    stage: str,
    scope: str | None = None,
    layout: tuple[tuple[int, int], ...] | None = None,
    padded: bool | None = None,
    pad: int | None = None,
    swizzle: tuple[int, int] | None = None,
    double: int | None = None,
    whole: bool | None = None,
    rolling: bool | None = None,
    clamped: tuple[str, ...] | None = None,
    masked: bool | None = None,
) -> StageGraph:
    """Choose where the elements of a stage live and in which order. What is not given stays as it is.

    Example:
        def f(float(N,M) X) -> (C) { B(i,j) = 2 * X(i,j)  C(i,j) = B(i,j) + B(i,j+1) }

        for B[i] in 0:N
          for B[j] in 0:M
            B(i,j) = 2 * X(i,j)
        for C[i] in 0:N
          for C[j] in 0:M - 1
            C(i,j) = B(i,j) + B(i,j+1)

        .compute_at("B", "C", "i")
        .storage("B", "register")

        for C[i] in 0:N
          allocate B [C[i], C[i] + 1) x [0, M)   # register
          for B[j] in 0:M
            B(i,j) = 2 * X(i,j)
          for C[j] in 0:M - 1
            C(i,j) = B(i,j) + B(i,j+1)

    Args:
        scope: `auto` (`global` at root, `local` at an attach point), `global` (one copy, which all blocks and tasks see; a stage
            at root that says so computes all of it, whatever is read), `shared` (one copy per GPU block), `local` (per task or
            thread), `register`, `threads` (one array spread over the threads of a block: the first entry of `layout` is the tile
            that runs over `threadIdx.x`).
        layout: order of dimensions in memory with tiles: entry `(dimension, tile)`; tile 0 is the rest of the dimension, a
            positive tile its innermost part. `((1, 0), (0, 0), (1, 16))` stores `[j//16][i][j%16]`. Of several tiles of a
            dimension the last is the innermost: `((1, 32), (1, 0), (1, 4))` is `[j//4%32][j//128][j%4]`. `None`: row-major.
        padded: compute whole tiles: loops over the stage's innermost tiles run to the factor, not to the true end. Only legal
            when everything it reads stays inside padded storage and surplus elements are never read as results. A padded copy
            in shared memory is filled with zeros where there is nothing to copy.
        clamped: outputs of a padded stage that alone are padded: beyond their ends the last element is computed again from what it
            is computed from, so nothing need exist there.
        masked: a padded stage may read beyond the last element of a row, where it finds zeros: positions there are tested.
        whole: a padded sum of products runs over whole tiles of its reductions too: all it reads there are zeros.
        pad: extra elements at the end of each innermost row; zeros in a copy on a CPU, as is the rest of its last tile.
        swizzle: `(shift, mask)`: 16-byte chunk `c` of row `r` of shared memory is stored at chunk `c ^ ((r >> shift) & mask)`.
        double: number of copies, for a pipeline that fills the next while the present one is read.
        rolling: keep what the next visit of the loop needs again, and compute only what is new.

    Raises:
        CompileError: TC410 (the scope does not fit the attach point, a malformed layout, a result stored elsewhere, `rolling`
            where no window can be kept).
    """
    old = find_stage(graph, stage)
    if old.attach.kind == "inline":
        help = f'`compute_root("{stage}")` or `compute_at` first'
        raise refuse(graph, codes.BAD_ANNOTATION, old, f"`{stage}` is inlined and has no storage", help)
    changes: dict[str, Any] = {"scope": scope, "layout": layout, "padded": padded, "pad": pad}
    changes |= {
        "swizzle": swizzle,
        "double": double,
        "whole": whole,
        "rolling": rolling,
        "clamped": clamped,
        "masked": masked,
    }
    new = replace(old.storage, **{key: value for key, value in changes.items() if value is not None})
    problem = _storage_problem(graph, old, new)
    if problem is not None:
        raise refuse(graph, codes.BAD_ANNOTATION, old, f"`{stage}` cannot be stored so: {problem[0]}", problem[1])
    changed = graph
    for each in graph.stages_on(old.target):
        changed = changed.replace_stage(replace(each, storage=new))
    reason = window_problem(infer_symbolic(inject_inline(changed)), stage) if rolling else None
    if reason is not None:
        help = "leave out `rolling`: every visit computes all that it needs"
        raise refuse(graph, codes.BAD_ANNOTATION, old, f"`{stage}` cannot keep a window: {reason}", help)
    return _keeps_steps(graph, changed, old, "tensorize last")


# --- new stages ------------------------------------------------------------------------------------------------------


def at_most(graph: StageGraph, size: str, most: int) -> StageGraph:
    """Promise that no call has a larger `size`: storage and loops over it have constant lengths. A larger call is refused.

    Example:
        def f(float(M,N) X) -> (O) { s(i) +=! X(i,j)  O(i,j) = X(i,j) / s(i) }

        for s[i] in 0:M
          for s[j] in 0:N
            s(i) +=! X(i,j)
        for O[i] in 0:M
          for O[j] in 0:N
            O(i,j) = X(i,j) / s(i)

        .at_most("N", 1024)

        for s[i] in 0:M
          for s[j] in 0:N
            s(i) +=! X(i,j)
        for O[i] in 0:M
          for O[j] in 0:N
            O(i,j) = X(i,j) / s(i)

    Args:
        size: the name of a size.
        most: the largest number that it has in a call.

    Raises:
        CompileError: TC411 (there is no such size), TC405 (no positive integer).
    """
    if size not in graph.base.sizes:
        names = ", ".join(f"`{name}`" for name in graph.base.sizes)
        message = f"`{graph.program.name}` has no size `{size}`"
        raise refuse(graph, codes.FOREIGN_SCHEDULE, None, message, f"its sizes are {names}" if names else None)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse(graph, codes.BAD_FACTOR, None, f"the largest `{size}` is `{most}`", "give a positive integer")
    known = dict(graph.most)
    known[size] = min(most, known.get(size, most))
    limits = tuple(known.items())
    return replace(with_sizes(graph, limited(limits)), most=limits)


def cache_read(
    graph: StageGraph,
    tensor: str,
    consumer: str,
    *others: str,
    widen: bool | str = False,
    reindex: bool = False,
    value: bool = False,
    only: int | None = None,
    order: tuple[int, ...] | None = None,
) -> tuple[StageGraph, str]:
    """Add a stage that copies `tensor` for the stages that read it; it has loops of its own and moves like any stage.

    Rewrite:
        for i: C(i) = f(A(i))
        ->
        for d: A.cache(d) = A(d)
        for i: C(i) = f(A.cache(i))

    Example:
        def f(float(N) X) -> (C) { C(i) = 2 * X(i) }

        for C[i] in 0:N
          C(i) = 2 * X(i)

        .cache_read("X", "C")

        for X.cache[i] in 0:N
          X.cache(i) = X(i)
        for C[i] in 0:N
          C(i) = 2 * X(i)

    Args:
        tensor: an argument, or a tensor that another stage writes.
        consumer: the stage that reads the copy instead.
        others: more stages that read the same copy.
        widen: store the elements in the type that the consumer converts them to, so that each is converted once; or in this type
            (`"int16"`), which holds all their values, and which the consumer converts to its own without a loss.
        reindex: let the copy be what the consumer reads, as a function of sums of its indices: remainders, limits and conditions
            in its subscripts are resolved in the copy, and it reads `A.cache(i + k)`. For one consumer, which has no moves yet.
        value: let the copy hold what the consumer computes from the element alone, `exp(A(i, k))` or `A(i, k) / S(i)`: the largest
            expression around the access that has no other indices. For one consumer, which has no moves yet.
        only: of different accesses of one consumer to the tensor, the number of the one that reads the copy: 0 is the first one.
        order: the dimensions of the tensor in the order of the copy: with `(1, 0)`, `A.cache(c, i)` is `A(i, c)`.

    Returns:
        The new graph and the name of the new stage (`A.cache`, `A.cache#2`, ...).

    Raises:
        CompileError: TC401 (a consumer does not read the tensor, or it changes between two of them; what it reads is no function
            of sums of its indices; nothing is computed from it alone; there is no such access).
    """
    chosen = [name for name, given in (("reindex", reindex), ("value", value), ("only", only is not None)) if given]
    reordered = order is not None
    if chosen and (others or widen or reordered or (chosen[1:] and reindex)):
        if others or widen or reordered:
            message, help = (
                f"`{chosen[0]}` is for one consumer, and keeps the type and the order of dimensions",
                "leave out the other consumers, `widen` and `order`",
            )
        else:
            message, help = f"`reindex` does not go with `{chosen[1]}`", f"leave out `{chosen[1]}`"
        raise refuse(graph, codes.BAD_ATTACH, None, message, help)
    graph = with_written(graph, (consumer, *others))
    if reindex or value:
        return _cache_operand(graph, tensor, consumer, only or 0, value)
    users = sorted(
        (find_stage(graph, name) for name in (consumer, *others)), key=lambda each: graph.position(each.name)
    )
    user = users[0]
    for each in users:
        _reads_a_copy(graph, tensor, each)
    reads = _chosen_reads(graph, tensor, user, only)
    writers = [each.name for each in graph.stages_on(tensor)]
    if any(graph.position(user.name) < graph.position(name) < graph.position(users[-1].name) for name in writers):
        message = f"`{tensor}` changes between `{user.name}` and `{users[-1].name}`"
        raise refuse(graph, codes.BAD_ATTACH, user, message, "give each a copy of its own")
    source = graph.program.tensor(tensor)
    name = _fresh(graph, f"{tensor}.cache")
    wide = _wide_type(graph, user, tensor, widen)
    places = _order_of_copy(graph, user, order, source.rank)
    box = Box(tuple(graph.boxes[tensor].bounds[place] for place in places))
    inside = _copy_indices(reads[0], source.rank, graph)
    names = tuple(inside[place] for place in places)
    read = Read(tensor, tuple(map(IndexVar, inside)), source.dtype)
    text = f"{name}({', '.join(names)}) = {tensor}({', '.join(inside)})"
    copy = _copy(name, names, box, cast(read, wide or source.dtype.compute), text, user)
    dtype = wide or source.dtype
    cached = Tensor(name, dtype, source.rank, "temporary")

    def redirect(expr: Expr) -> Expr | None:
        if isinstance(expr, Read) and expr.tensor == tensor and (only is None or expr == reads[0]):
            return replace(expr, tensor=name, dtype=dtype, indices=tuple(expr.indices[place] for place in places))
        if isinstance(expr, Cast) and isinstance(expr.operand, Read) and expr.operand.tensor == name:
            return cast(expr.operand, expr.dtype)
        return None

    for each in users:
        moved = rewrite(each.statement.value, redirect)
        graph = graph.replace_stage(replace(each, statement=replace(each.statement, value=moved)))
    stage = _default_stage(copy, box, ())
    producers = graph.stages_on(tensor)
    if producers and producers[-1].attach.kind == "at":
        stage = replace(stage, attach=producers[-1].attach)
    return _valid(graph, _insert(graph, _before_loops(graph, users, writers), stage, cached, box), user), name


def _order_of_copy(graph: StageGraph, user: Stage, order: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """The dimensions of a tensor in the order of a copy.

    Raises:
        CompileError: TC401 (a dimension is missing).
    """
    usual = tuple(range(rank))
    places = tuple(map(_as_integer, order)) if isinstance(order, tuple) else usual if order is None else ()
    if any(type(each) is not int for each in places) or tuple(sorted(places)) != usual or (rank and not places):
        message = f"`order` has to name each of the {rank} dimensions once, and `{shown_value(order)}` does not"
        raise refuse(graph, codes.BAD_ATTACH, user, message, f"such as `{usual[::-1]}`")
    return places


def _before_loops(graph: StageGraph, users: Sequence[Stage], writers: Sequence[str]) -> str:
    """The stage that a copy for some others stands before: the first of them, or the one whose loops it shares."""
    first = min((each.name for each in users), key=graph.position)
    shared = min((graph.runs_in(each.name) for each in users), key=graph.position)
    early = all(graph.position(name) < graph.position(shared) for name in writers)
    return shared if early and graph.position(shared) < graph.position(first) else first


def _wide_type(graph: StageGraph, user: Stage, tensor: str, widen: bool | str) -> DType | None:
    """The type of a copy that is another one than that of the tensor, or `None`.

    Raises:
        CompileError: TC401 (the type does not hold all elements, or all are not converted to a type that holds it).
    """
    if not widen:
        return None
    converted, own = _converted_type(user.statement.value, tensor), graph.program.tensor(tensor).dtype
    if widen is True:
        return converted
    named = next((each for each in DType if each.value == widen and each.is_integer), None)
    if named is None or not keeps_values(named, own) or converted is None or not keeps_values(converted, named):
        message = f"`{user.name}` cannot read `{tensor}` as `{widen}`"
        help = f"an integer type between `{own.value}` and `{(converted or own).value}`"
        raise refuse(graph, codes.BAD_ATTACH, user, message, help)
    return named


def _chosen_reads(graph: StageGraph, tensor: str, user: Stage, only: int | None) -> list[Read]:
    """The different accesses of a stage to a tensor, or one of them.

    Raises:
        CompileError: TC401 (there is no such access).
    """
    reads = list(dict.fromkeys(read for read in user.statement.reads() if read.tensor == tensor))
    if only is None:
        return reads
    only = _as_integer(only)
    if type(only) is not int or not 0 <= only < len(reads):
        message = f"`{user.name}` has no access number {shown_value(only)} to `{tensor}`"
        raise refuse(
            graph, codes.BAD_ATTACH, user, message, f"`only` is less than {len(reads)}, and 0 for the first access"
        )
    return [reads[only]]


def _cache_operand(graph: StageGraph, tensor: str, consumer: str, only: int, value: bool) -> tuple[StageGraph, str]:
    """`cache_read` of what one consumer reads, or computes from it, as a function of sums of its indices."""
    user = find_stage(graph, consumer)
    _reads_a_copy(graph, tensor, user)
    if not graph.is_free(consumer):
        message = f"`{consumer}` is attached or has moves already"
        raise refuse(graph, codes.BAD_ATTACH, user, message, "call `cache_read` first")
    (read,) = _chosen_reads(graph, tensor, user, only)
    found = value_of(user, read, graph.boxes) if value else operand(user, tensor, graph.boxes[tensor])
    if found is None and value:
        message = f"`{consumer}` computes nothing from an element of `{tensor}` alone that is a function of sums of its indices"
        raise refuse(graph, codes.BAD_ATTACH, user, message, "`cache_read` without `value`")
    if found is None:
        message = f"what `{consumer}` reads from `{tensor}` is no function of sums of its indices that have no index in common"
        raise refuse(graph, codes.BAD_ATTACH, user, message, "`cache_read` without `reindex`")
    name = _fresh(graph, f"{tensor}.cache")
    box = Box(found.bounds)
    names = _copy_indices(Read(name, found.subscripts, DType.INT64), len(box.bounds), graph)
    element = found.value(names)
    dtype = graph.program.tensor(tensor).dtype if isinstance(element, Read) else element.dtype
    what = f"value with `{tensor}`" if value else f"`{tensor}` as it is read"
    text = f"{name}({', '.join(names)}): {what} in `{shown_line(user.statement.text)}`"
    copy = _copy(name, names, box, cast(element, dtype.compute), text, user)
    read = Read(name, found.subscripts, dtype)
    moved = rewrite(user.statement.value, lambda node: read if node == found.place else None)
    graph = graph.replace_stage(replace(user, statement=replace(user.statement, value=moved)))
    cached = Tensor(name, dtype, len(box.bounds), "temporary")
    return _valid(graph, _insert(graph, user.name, _default_stage(copy, box, ()), cached, box), user), name


def _reads_a_copy(graph: StageGraph, tensor: str, user: Stage) -> None:
    """Refuse a stage that cannot read a copy of `tensor`.

    Raises:
        CompileError: TC401.
    """
    if not any(read.tensor == tensor and read.indices for read in user.statement.reads()):
        message = f"`{user.name}` does not read a tensor `{tensor}`"
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(read.tensor for read in user.statement.reads()))
        raise refuse(graph, codes.BAD_ATTACH, user, message, f"it reads {names}" if names else "it reads nothing")
    if tensor == user.target:
        message = f"`{user.name}` updates `{tensor}` in place"
        raise refuse(graph, codes.BAD_ATTACH, user, message, "use `cache_write`")


def separate(graph: StageGraph, stage: str) -> tuple[StageGraph, str]:
    """Let a statement whose elements the next one on its tensor replaces, all of them, write a tensor of its own.

    Rewrite:
        for i: Y(i) = f(X(i))
        for i: Y(i) = g(Y(i))
        ->
        for i: Y.before(i) = f(X(i))
        for i: Y(i) = g(Y.before(i))

    The new tensor is a temporary, whose stage may be inlined, or moved into a loop of its readers.

    Example:
        def f(float(N) X) -> (Y) { Y(i) = 2 * X(i)  Y(i) = Y(i) + 1 }

        for Y[i] in 0:N
          Y(i) = 2 * X(i)
        for Y#2[i] in 0:N
          Y(i) = Y(i) + 1

        .separate("Y")
        .compute_inline("Y")

        for Y#2[i] in 0:N
          Y(i) = Y(i) + 1   # `Y` inlined

    Returns:
        The new graph and the name of the new tensor (`Y.before`).

    Raises:
        CompileError: TC401 (it is not the first stage on its tensor, the next one does not replace every element, one of them is
            moved already, or elements decide what is read).
    """
    old = find_stage(graph, stage)
    family = graph.stages_on(old.target)
    problem = _separate_problem(graph, old, family)
    if problem is not None:
        raise refuse(
            graph, codes.BAD_ATTACH, old, f"`{stage}` gets no tensor of its own: {problem}", "use another tensor"
        )
    tensor, name = graph.program.tensor(old.target), _fresh(graph, f"{old.target}.before")

    def earlier(expr: Expr) -> Expr | None:
        return replace(expr, tensor=name) if isinstance(expr, Read) and expr.tensor == tensor.name else None

    last = graph.position(family[1].name)
    stages = list(graph.stages)
    stages[graph.position(stage)] = replace(old, statement=replace(old.statement, target=name))
    for number in range(graph.position(stage) + 1, last + 1):
        statement = stages[number].statement
        stages[number] = replace(stages[number], statement=replace(statement, value=rewrite(statement.value, earlier)))
    own = Tensor(name, tensor.dtype, tensor.rank, "temporary")
    program = replace(graph.program, tensors=(*graph.program.tensors, own))
    new = replace(graph, program=program, boxes={**graph.boxes, name: graph.boxes[tensor.name]})
    return _valid(graph, new.with_stages(tuple(stages)), old), name


def _separate_problem(graph: StageGraph, stage: Stage, family: Sequence[Stage]) -> str | None:
    """Why a stage cannot write a tensor of its own."""
    tensor = stage.target
    if family[0] is not stage or len(family) < 2 or graph.program.tensor(tensor).kind == "input":
        return f"no later statement replaces what it writes to `{tensor}`"
    if stage.statement.combine is not None or _onto_present(stage.statement):
        return f"it combines with what `{tensor}` holds"
    if keeps(stage.statement):
        return "it writes some elements only"
    following = family[1]
    whole = [root.dom for root in following.roots] == list(graph.boxes[tensor].bounds)
    if following.statement.operator != "=" or following.statement.reduction_indices or not whole:
        return f"`{following.name}` does not replace every element of `{tensor}`"
    if any(each.view_of == tensor for each in graph.program.tensors):
        return f"`{tensor}` is received by a caller as a tensor of its own"
    users = [each for each in graph.stages if graph.position(each.name) <= graph.position(following.name)]
    users = [each for each in users if tensor in graph.reads(each)]
    if any(not graph.is_free(each.name) for each in (stage, following, *users)):
        return "it, or who reads it, is moved already"
    if any(_decides_reads(graph, each, tensor) for each in users):
        return f"elements of `{tensor}` decide what is read, which is checked with them"
    return None


def expand(graph: StageGraph, stage: str) -> StageGraph:
    """Write a sum of few terms out, or one value that is combined with nothing or with what is there, as a plain statement.

    Rewrite:
        for i, k: S(i) += f(i, k)
        ->
        for i: S(i) = 0 + f(i, 0) + f(i, 1) + f(i, 2)

    The terms are added in the order of the indices. Such a stage may be inlined. An update is an assignment then:

        for i: Y(i) += f(i)
        ->
        for i: Y(i) = Y(i) + f(i)

    Example:
        def f(float(N) X) -> (Y) { Y(i) +=! X(k) * X(i) where k in 0:2 }

        for Y[i] in 0:N
          for Y[k] in 0:2
            Y(i) +=! X(k) * X(i) where k in 0:2

        .expand("Y")

        for Y[i] in 0:N
          Y(i) +=! X(k) * X(i) where k in 0:2

    Raises:
        CompileError: TC401 (the stage has moves already, is no sum with an operator, not all lengths are known, there are more than
            8 terms, or elements decide what is read, or whether).
    """
    old = find_stage(graph, stage)
    terms = terms_of(graph, old)
    if not terms:
        message = f"`{stage}` is no sum of at most {MOST_TERMS} terms that is as it was written"
        raise refuse(graph, codes.BAD_ATTACH, old, message, "it is for sums over indices whose ranges are numbers")
    statement, dtype = old.statement, terms[0].dtype
    value: Expr = identity_of(statement.operator, dtype)
    if not statement.initialize:
        value = Read(old.target, tuple(IndexVar(index.name) for index in statement.output_indices), dtype)
    for term in terms:
        value = Binary(statement.operator, value, term, term.dtype)
    roots = tuple(root for root in old.roots if root.kind == "output")
    plain = replace(
        statement, indices=statement.output_indices, value=value, operator="=", initialize=False, accumulate=False
    )
    new = Stage(plain, roots, leaves=tuple(root.name for root in roots), evaluates=old.evaluates)
    return _valid(graph, graph.replace_stage(new), old)


def _looks_at_points(graph: StageGraph, stage: Stage) -> bool:
    """Whether each point has to look at an access, with all of its indices: at where it goes, or a read that is not inside whatever
    they are.
    """
    if stage.evaluates not in graph.at_points:
        return False
    reads = (read for read in stage.statement.reads() if read.indices)
    is_placed = bool(graph.base.statement(stage.evaluates).computed)
    return is_placed or not all(is_inside(graph.boxes, stage, read) for read in reads)


def is_plain(graph: StageGraph, stage: Stage) -> bool:
    """Whether a stage is as it was written, computes in the type of its results, and leaves no access to its points to check."""
    statement, dtype = stage.statement, graph.program.tensor(stage.target).dtype
    return (
        graph.is_free(stage.name)
        and statement.operator != "fold"
        and not (
            statement.exists
            or statement.filters
            or statement.order
            or statement.computed
            or stage.positions
            or stage.limits
        )
        and statement.value.dtype is dtype.compute is dtype
        and not any(read.tensor == stage.target for read in statement.reads())
        and not _looks_at_points(graph, stage)
    )


def terms_of(graph: StageGraph, stage: Stage) -> tuple[Expr, ...]:
    """The terms of a sum over few points, in order, or the only value of another reduction; none where `expand` refuses."""
    statement = stage.statement
    updates = not statement.reduction_indices  # each element once
    if not (statement.initialize or updates) or statement.operator == "=" or not is_plain(graph, stage):
        return ()
    if reads_by_data(statement.value):
        return ()
    ends = [root.dom for root in stage.roots if root.kind != "output"]
    if not all(low.is_constant and high.is_constant for low, high in ends) or (ends and statement.operator != "+"):
        return ()
    if not 0 < prod(high.constant - low.constant for low, high in ends) <= MOST_TERMS:
        return ()
    names = [root.name for root in stage.roots if root.kind != "output"]
    places = product(*(range(low.constant, high.constant) for low, high in ends))

    def at(numbers: Mapping[str, int]) -> Expr:
        def number(node: Expr) -> Expr | None:
            return int64(numbers[node.name]) if isinstance(node, IndexVar) and node.name in numbers else None

        return rewrite(statement.value, number)

    return tuple(at(dict(zip(names, place, strict=True))) for place in places)


def cache_write(graph: StageGraph, stage: str, factors: bool = False) -> tuple[StageGraph, str]:
    """Let the statement compute into a new stage; `stage` becomes the copy of it into the tensor.

    Rewrite:
        for i, k: C(i) += f(i, k)
        ->
        for i, k: C.cache(i) += f(i, k)
        for i: C(i) = C.cache(i)

    The new stage starts with default loops, of a statement of a block inside of a step; `stage` keeps its output loops. The
    element type of the new stage is the type that the sum is computed in, so a 16-bit result is rounded once.

    Example:
        def f(float(N,K) X) -> (C) { C(i) +=! X(i,k) }

        for C[i] in 0:N
          for C[k] in 0:K
            C(i) +=! X(i,k)

        .cache_write("C")

        for C.cache[i] in 0:N
          for C.cache[k] in 0:K
            C(i) +=! X(i,k)
        for C[i] in 0:N
          C(i) = C.cache(i)

    Args:
        factors: finite numbers that multiply or divide all terms of a sum of floats are left to the copy, which rounds differently:
            `C(i) +=! X(i,k) / float(K)` is `C(i) = C.cache(i) / float(K)`.

    Returns:
        The new graph and the name of the new stage (`C.cache`).

    Raises:
        CompileError: TC401 (the stage is in another one's loops already, updates its tensor in place, or is no sum with such
            `factors`).
    """
    old = find_stage(graph, stage)
    statement = old.statement
    shares = bool(statement.block)  # the loops of its block, and nothing else
    inside = [each for each in graph.attached(stage) if not _shares(each)]
    if old.attach.kind not in (("root", "with") if shares else ("root",)) or inside:
        raise refuse(graph, codes.BAD_ATTACH, old, f"`{stage}` is attached already", "call `cache_write` first")
    _not_tensorized(graph, old, "cache_write")
    if statement.combine is not None:
        raise refuse(graph, codes.BAD_ATTACH, old, f"`{stage}` folds onto its present content", "use another tensor")
    if any(read.tensor == statement.target for read in statement.reads()):
        raise refuse(graph, codes.BAD_ATTACH, old, f"`{stage}` updates its own tensor in place", "use another tensor")
    name = _fresh(graph, f"{stage}.cache")
    target = graph.program.tensor(statement.target)
    terms, numbers = factors_out(graph, old) if factors else (statement.value, ())
    if factors and not numbers:
        message = f"no finite number multiplies or divides all terms of `{stage}`, as a sum of floats"
        raise refuse(graph, codes.BAD_ATTACH, old, message, "leave out `factors`")
    first = statement.operator != "="
    inner = replace(
        statement, name=name, target=name, value=terms, initialize=first, accumulate=False, order=(), block=""
    )
    outputs = statement.output_indices
    value: Expr = Read(name, tuple(IndexVar(index.name) for index in outputs), target.dtype.compute)
    for op, number in numbers:
        value = Binary(op, value, number, value.dtype)
    copy = replace(
        statement,
        indices=outputs,
        value=value,
        operator=statement.operator if _onto_present(statement) else "=",
        initialize=False,
        exists=(),
        text=_copy_text(statement, name) + "".join(f" {op} {_number_text(number)}" for op, number in numbers),
    )
    box = Box(tuple(root.dom for root in old.roots if root.kind == "output"))
    kept = _keep_output(old)
    roots = tuple(root for root in old.roots if root.kind == "output")
    graph = graph.replace_stage(replace(kept, statement=copy, roots=roots, evaluates="", positions=(), limits=()))
    computed = Stage(
        inner,
        old.roots,
        leaves=tuple(root.name for root in old.roots),
        attach=Attach("at", stage, old.leaves[shared_depth(graph, old) - 1]) if shares else Attach(),
        limits=old.limits,
        evaluates=old.evaluates,
        positions=old.positions,
    )
    cached = Tensor(name, target.dtype.compute, target.rank, "temporary")
    return _valid(graph, _insert(graph, stage, computed, cached, box), old), name


def factor(graph: StageGraph, stage: str, axis: str) -> tuple[StageGraph, str]:
    """Sum the factors of a sum of products that have one index in a new stage, before the others multiply them.

    What other statements compute again for all results along an index is made in the new stage once; `axis` is any other index.

    Rewrite:
        for i, l, j, k: E(i,l) += A(i,j) * B(j,k) * C(k,l)
        ->
        for i, k, j: E.part(i,k) += A(i,j) * B(j,k)
        for i, l, k: E(i,l) += E.part(i,k) * C(k,l)

    It rounds differently. What is infinite may become another infinite number, or NaN.

    Example:
        def f(float(N,M) A, float(M) b, float(N) c) -> (S) { S(i) +=! A(i,j) * b(j) * c(k) }

        for S[i] in 0:N
          for S[j] in 0:M
            for S[k] in 0:N
              S(i) +=! A(i,j) * b(j) * c(k)

        .factor("S", "j")

        for S.part[i] in 0:N
          for S.part[j] in 0:M
            S.part(i): factors with `j` in `S(i) +=! A(i,j) * b(j) * c(k)`
        for S[i] in 0:N
          for S[k] in 0:N
            S(i) +=! A(i,j) * b(j) * c(k)

    Args:
        axis: the index whose factors are summed first.

    Returns:
        The new graph and the name of the new stage (`E.part`).

    Raises:
        CompileError: TC401 (the stage has moves already, is no sum of products, or every factor has the index or those beside it).
    """
    old = find_stage(graph, stage)
    two = factored(graph, old, axis)
    if two is None:
        message = f"`{stage}` has no factors with `{axis}` that could be summed before the others"
        raise refuse(
            graph, codes.BAD_ATTACH, old, message, "it is for sums of products such as `A(i,j) * B(j,k) * C(k,l)`"
        )
    name, statement, roots = _fresh(graph, f"{stage}.part"), old.statement, {root.name: root for root in old.roots}
    read = Read(name, tuple(IndexVar(index) for index in two.kept), statement.value.dtype)
    kept = tuple(replace(roots[index], kind="output") for index in two.kept)
    part = replace(
        statement,
        name=name,
        target=name,
        indices=tuple(
            _given(root.name, root.dom, root.kind) for root in (*kept, *(roots[index] for index in two.over))
        ),
        operator=statement.operator if two.over else "=",
        value=two.first.value(statement.operator),
        initialize=bool(two.over),
        accumulate=False,
        text=f"{name}{_subscripts(kept)}: factors with `{axis}` in `{shown_line(statement.text)}`",
    )
    rest = replace(
        statement,
        indices=tuple(index for index in statement.indices if index.name not in two.over),
        value=replace(two.others, factors=(read, *two.others.factors)).value(statement.operator),
    )
    if not rest.reduction_indices and not _onto_present(rest):
        rest = replace(rest, operator="=", initialize=False)
    stays = tuple(root for root in old.roots if root.name not in two.over)
    graph = graph.replace_stage(replace(old, statement=rest, roots=stays, leaves=tuple(root.name for root in stays)))
    box = Box(tuple(root.dom for root in kept))
    summed = _default_stage(part, box, tuple(roots[index] for index in two.over))
    tensor = Tensor(name, statement.value.dtype, len(kept), "temporary")
    return _valid(graph, _insert(graph, stage, summed, tensor, box), old), name


def factored(graph: StageGraph, stage: Stage, axis: str) -> Factored | None:
    """The two sums that `factor` makes of one; `None` where it refuses."""
    domains = [root.dom for root in stage.roots]
    if stage.statement.block or not is_plain(graph, stage) or any(low.indices | high.indices for low, high in domains):
        return None
    outputs, reductions = (
        [root.name for root in stage.roots if (root.kind == "output") is output] for output in (True, False)
    )
    two = summed_first(stage.statement.value, stage.statement.operator, outputs, reductions, axis)
    if two is None:
        return None
    where = {place for _, place in places(stage.statement)}  # these tests leave out no point
    guarded = any(not where & {*children(test)} for test in two.others.tests)
    more = (*two.first.tests, *two.first.factors) if guarded else ()  # what is computed at points where it was not
    if not all(nonnegative(high - low - 1) for low, high in domains):
        more = (stage.statement.value,)
    reads = (node for each in more for node in walk(each) if isinstance(node, Read) and node.indices)
    return two if all(is_inside(graph.boxes, stage, read) for read in reads) else None


def factors_out(graph: StageGraph, stage: Stage) -> tuple[Expr, tuple[tuple[str, Expr], ...]]:
    """The terms of a sum without finite numbers that all of them are multiplied or divided by, and those numbers."""
    statement = stage.statement
    target = graph.program.tensor(statement.target).dtype
    if statement.operator != "+" or target.compute is not target or not statement.reduction_indices:
        return statement.value, ()
    return without_factors(statement.value, graph.program.sizes)


def rebias(graph: StageGraph, stage: str, tensor: str) -> tuple[StageGraph, str]:
    """Let a sum of products of bytes read those of one factor with the other sign, 128 more or less, and put the results right.

    Rewrite:
        for i, j, k: C.cache(i,j) += int32(A(i,k)) * int32(B(k,j))
        for i, j: C(i,j) = C.cache(i,j)
        ->
        for k, j: B.cache(k,j) = uint8(B(k,j)) + 128
        for i, k: A.sum(i) += int32(A(i,k))
        for i, j, k: C.cache(i,j) += int32(A(i,k)) * int32(B.cache(k,j))
        for i, j: C(i,j) = C.cache(i,j) - 128 * A.sum(i)

    Instructions that add four products of bytes multiply unsigned by signed ones. The results are the same, as additions of 32 bits
    wrap around.

    Example:
        def f(int8(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! int32(A(i,k)) * int32(B(k,j)) }

        for C[i] in 0:M
          for C[j] in 0:N
            for C[k] in 0:K
              C(i,j) +=! int32(A(i,k)) * int32(B(k,j))

        .cache_write("C")
        .rebias("C.cache", "B")

        for B.cache[k] in 0:K
          for B.cache[j] in 0:N
            B.cache(k, j) = B(k, j) + 128
        for A.sum[i] in 0:M
          for A.sum[k] in 0:K
            A.sum(i) +=! A(i,k)
        for C.cache[i] in 0:M
          for C.cache[j] in 0:N
            for C.cache[k] in 0:K
              C(i,j) +=! int32(A(i,k)) * int32(B(k,j))
        for C[i] in 0:M
          for C[j] in 0:N
            C(i, j) = C.cache(i, j) - 128 * A.sum(i)

    Args:
        tensor: the factor whose bytes are read with the other sign.

    Returns:
        The new graph and the name of the copy (`B.cache`).

    Raises:
        CompileError: TC401 (the stage has moves already, writes a result, or is no such sum; `cache_write`
            it first).

    Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018,
    section 2.3 (zero points are taken out of the sum).
    """
    user = find_stage(graph, stage)
    statement = user.statement
    reads = factors_of(statement.value, DType.INT32)
    mine = [read for read in reads if read.tensor == tensor]
    others = [read for read in reads if read.tensor != tensor]
    if len(mine) != 1 or len(others) != 1 or not _can_rebias(graph, user, mine[0], others[0]):
        message = f"`{stage}` is no sum of products of a byte of `{tensor}` and another number, in `int32`"
        raise refuse(graph, codes.BAD_ATTACH, user, message, "it is for `int8` and `uint8`, after `cache_write`")
    read, other = mine[0], others[0]
    signed = read.dtype is DType.INT8
    flipped, more = (DType.UINT8, 128) if signed else (DType.INT8, -128)
    name, box = _fresh(graph, f"{tensor}.cache"), graph.boxes[tensor]
    names = _copy_indices(read, len(box.bounds), graph)
    element = Cast(Read(tensor, tuple(IndexVar(index) for index in names), read.dtype), flipped)
    place = ", ".join(names)
    text = f"{name}({place}) = {tensor}({place}) {'+' if signed else '-'} 128"
    copy = _copy(name, names, box, Binary("+", element, Const(more, flipped), flipped), text, user)
    moved = rewrite(statement.value, lambda node: replace(read, tensor=name, dtype=flipped) if node == read else None)
    changed = graph.replace_stage(replace(user, statement=replace(statement, value=moved)))
    cached = Tensor(name, flipped, len(box.bounds), "temporary")
    changed = _insert(changed, stage, _default_stage(copy, box, ()), cached, box)
    return _valid(graph, _with_sums(changed, user, other, more), user), name


def _can_rebias(graph: StageGraph, user: Stage, read: Read, other: Read) -> bool:
    """Whether the results of a sum of products, with another value for one factor, can be put right by sums of the other one."""
    statement = user.statement
    plain = [index.name for index in other.indices if isinstance(index, IndexVar)]
    return (
        read.dtype in (DType.INT8, DType.UINT8)
        and statement.operator == "+"
        and statement.initialize
        and graph.is_free(user.name)
        and user.name not in graph.outputs
        and len(graph.stages_on(user.target)) == 1
        and not (statement.exists or user.limits or user.positions)
        and len(plain) == len(other.indices) == len(set(plain))
        and {index.name for index in statement.reduction_indices} <= set(plain)
        and all(_reads_in_the_open(each.statement.value, user.target, graph) for each in graph.consumers(user.name))
    )


def _reads_in_the_open(value: Expr, tensor: str, graph: StageGraph) -> bool:
    """Whether a value reads a tensor by its own name and in no subscript: checks of subscripts would see other numbers."""
    reads = [node for node in walk(value) if isinstance(node, Read)]
    inside = [node for read in reads for index in read.indices for node in walk(index) if isinstance(node, Read)]
    mine = graph.storage_name(tensor)
    return all(read.tensor == tensor for read in reads if graph.storage_name(read.tensor) == mine) and not any(
        graph.storage_name(read.tensor) == mine for read in inside
    )


def _with_sums(graph: StageGraph, user: Stage, other: Read, more: int) -> StageGraph:
    """With a stage of the sums of a factor, times `more` taken away wherever the results of `user` are read."""
    statement = user.statement
    sums = _fresh(graph, f"{other.tensor}.sum")
    kept = tuple(index for index in statement.indices if IndexVar(index.name) in other.indices)
    rows = [number for number, index in enumerate(statement.output_indices) if index in kept]
    place = ", ".join(index.name for index in kept if index.kind == "output")
    inside = ",".join(index.name for index in other.indices if isinstance(index, IndexVar))
    total = replace(
        statement,
        name=sums,
        target=sums,
        indices=kept,
        value=Cast(other, DType.INT32),
        text=f"{sums}({place}) +=! {other.tensor}({inside})",
    )
    roots = tuple(root for root in user.roots if any(root.name == index.name for index in kept))
    stage = Stage(total, roots, leaves=tuple(root.name for root in roots))
    box = Box(tuple(root.dom for root in roots if root.kind == "output"))
    graph = _insert(graph, user.name, stage, Tensor(sums, DType.INT32, len(rows), "temporary"), box)

    def right(node: Expr) -> Expr | None:
        if not (isinstance(node, Read) and node.tensor == user.target):
            return None
        part = Read(sums, tuple(node.indices[number] for number in rows), DType.INT32)
        away = Binary("*", Const(more, DType.INT32), part, DType.INT32)
        return Binary("-", node, away, DType.INT32)

    for each in graph.consumers(user.name):
        value, text = rewrite(each.statement.value, right), each.statement.text
        if is_copy(each.statement):
            text = f"{text} {'-' if more > 0 else '+'} 128 * {sums}({place})"
        graph = graph.replace_stage(replace(each, statement=replace(each.statement, value=value, text=text)))
    return graph


def rfactor(graph: StageGraph, stage: str, axis: str) -> tuple[StageGraph, str]:
    """Compute partial results along one reduction loop, and combine them in `stage`.

    Rewrite (after `split("S", "k", 4)`; `rfactor("S", "k.inner")`):
        for k.outer, k.inner: S += X(4*k.outer + k.inner)
        ->
        for k.inner, k.outer: S.rf(k.inner) += X(4*k.outer + k.inner)
        for k.inner: S += S.rf(k.inner)

    The loop becomes the first dimension of the new tensor. Where the split has a tail, the loops of the new stage end there. The
    new stage keeps the other reduction loops in their order, with splits and how they run; `stage` keeps its output loops.

    Example:
        def f(float(K) X) -> (S) { S +=! X(k) }

        for S[k] in 0:K
          S +=! X(k)

        .split("S", "k", 4)
        .rfactor("S", "k.inner")

        for S.rf[k.inner] in 0:4
          for S.rf[k.outer] in 0:(K + 3)//4
            S.rf: partial results of `S +=! X(k)`
        for S[k.inner] in 0:4
          S +=! S.rf(k.inner)

    Args:
        axis: a loop of the reduction.

    Returns:
        The new graph and the name of the new stage (`S.rf`).

    Raises:
        CompileError: TC403 (no such loop of the reduction), TC401 (the stage is in another one's loops already), TC410 (the
            loop is parallel, a vector or the like already).

    Source: TVM, `Schedule.rfactor`; Suriana et al., "Parallel associative reductions in Halide", CGO 2017.
    """
    old = find_stage(graph, stage)
    _leaf(graph, old, axis)
    if old.kind(axis) != "reduction":
        leaves = ", ".join(f"`{leaf}`" for leaf in old.leaves if old.kind(leaf) == "reduction")
        message = f"`{axis}` is not a reduction axis of `{stage}`"
        raise refuse(graph, codes.UNKNOWN_AXIS, old, message, f"its reduction axes are {leaves or 'none'}")
    if old.attach.kind != "root" or any(True for _ in graph.attached(stage)):
        raise refuse(graph, codes.BAD_ATTACH, old, f"`{stage}` is attached already", "call `rfactor` first")
    _not_tensorized(graph, old, "rfactor")
    _free(graph, old, axis, "rfactor")
    statement = old.statement
    if statement.operator == "=":
        message = f"`{axis}` is not a reduction axis of `{stage}`: its points give elements, which nothing combines"
        raise refuse(graph, codes.UNKNOWN_AXIS, old, message, "`rfactor` is for sums, extremes and the like")
    if statement.combine is not None and statement.identity is None:
        message = f"the function that `{stage}` folds with has no identity"
        raise refuse(graph, codes.BAD_ATTACH, old, message, "reduce with `+ * min max`")
    domain = leaf_domain(old, axis)
    name = _fresh(graph, f"{stage}.rf")
    target = graph.program.tensor(statement.target)

    def substitute(expr: Expr) -> Expr | None:
        return domain.values.get(expr.name) if isinstance(expr, IndexVar) else None

    value = rewrite(statement.value, substitute)
    factored = domain.index(axis)
    outputs = tuple(root for root in old.roots if root.kind == "output")
    rest = tuple(root for root in domain.roots if root.name != factored.name)
    partial = Statement(
        name,
        name,
        (
            _given(factored.name, factored.dom),
            *(index for index in statement.output_indices),
            *(_given(root.name, root.dom, "reduction") for root in rest),
        ),
        statement.operator if rest else "=",
        bool(rest),
        False,
        value,
        statement.exists,
        text=f"{name}: partial results of `{shown_line(_as_written(graph, old).text)}`",
        span=statement.span,
        combine=statement.combine if rest else None,
        identity=statement.identity if rest else None,
        part=statement.part if rest else "",
    )
    read = Read(
        name, tuple(IndexVar(n) for n in (factored.name, *(root.name for root in outputs))), target.dtype.compute
    )
    combine = replace(
        statement,
        indices=(*statement.output_indices, _given(factored.name, factored.dom, "reduction")),
        value=read,
        exists=(),
        text=f"{statement.target}{_subscripts(outputs)} {_sign(statement)} {name}{_subscripts((factored, *outputs))}",
    )
    limits = (*domain.limits, *((_substituted(value, domain.values), limit) for value, limit in old.limits))
    # a partial result that combines nothing is the start value, but one that a limit leaves out, whatever is left to reduce, is not
    # written at all
    reduced = {root.name for root in rest}
    written = tuple((value, limit) for value, limit in limits if not value.indices & reduced)
    combined = replace(
        _keep_output(old),
        statement=combine,
        roots=(*outputs, replace(factored, kind="reduction")),
        evaluates="",
        positions=(),
        limits=written,
    )
    combined = replace(combined, leaves=(*combined.leaves, factored.name))
    box = Box((factored.dom, *(root.dom for root in outputs)))
    moved = dict(domain.values) | {name: rewrite(expr, substitute) for name, expr in old.positions}
    new = Stage(
        partial,
        (replace(factored, kind="output"), *outputs, *rest),
        limits=limits,
        evaluates=old.evaluates,
        positions=tuple(moved.items()),
    )
    new = _with_reductions(new, old, axis, domain.family)
    cached = Tensor(name, target.dtype.compute, len(box.bounds), "temporary")
    return _valid(graph, _insert(graph.replace_stage(combined), stage, new, cached, box), old), name


def prefix(graph: StageGraph, stage: str, factor: int) -> tuple[StageGraph, str]:
    """Take a running sum, product, minimum or maximum in blocks, which are independent then.

    Floating sums may round differently.

    Example:
        def f(float(N) X) -> (C) { C(i) = (C(i-1) else 0) + X(i) along i }

        for C[i] in 0:N
          C(i) = (C(i-1) else 0) + X(i) along i

        .prefix("C", 1024)

        for C.sums[b] in 0:(N + 1023)//1024 - 1
          for C.sums[r] in 0:1024
            C.sums: blocks of `C(i) = (C(i-1) else 0) + X(i) along i`
        for C.before[b] in 0:(N + 1023)//1024
          C.before: before blocks of `C(i) = (C(i-1) else 0) + X(i) along i`
        for C[i] in 0:N
          C(i) = (C(i-1) else 0) + X(i) along i

    Args:
        factor: elements of a block.

    Returns:
        The new graph and the name of the stage of the sums of the blocks (`C.sums`); `C.before` follows it.

    Raises:
        CompileError: TC405 (no factor), TC401 (no running operation, or it is moved already).
    """
    old = find_stage(graph, stage)
    given: Any = _as_integer(factor)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise refuse(graph, codes.BAD_FACTOR, old, f"blocks of {given!r} elements", "a positive integer")
    factor = given
    target = graph.program.tensor(old.target)
    found = running_of(graph, old) if graph.is_free(stage) else None
    if found is None:
        message = f"`{stage}` is no running sum, product or extreme of one index, or its loops are moved already"
        raise refuse(graph, codes.BAD_ATTACH, old, message, "`Y(i) = (Y(i-1) else 0) + X(i) along i` is one")
    sums, before = _fresh(graph, f"{stage}.sums"), _fresh(graph, f"{stage}.before")
    others = tuple(root for root in old.roots if root.name != found.axis.name)
    values = in_block(found, factor, before, sums, tuple(root.name for root in others))
    block = IterVar("b", "output", (constant(0), ceil_div(found.extent, factor)))
    place = IterVar("r", "reduction", (constant(0), constant(factor)))
    count = from_expr(IndexVar("b")) * factor + from_expr(IndexVar("r"))
    dtype, names = target.dtype, tuple(_given(root.name, root.dom) for root in (block, *others))
    text, span = old.statement.text, old.statement.span
    made = (
        Statement(sums, sums, (*names, _given("r", place.dom, "reduction")), found.operator, True, False, values[0],
                  text=f"{sums}: blocks of `{text}`", span=span),
        Statement(before, before, names, "=", False, False, values[1], text=f"{before}: before blocks of `{text}`", span=span,
                  order=(("b", 1),)),
    )  # fmt: skip
    roots = (block, *others)
    stages = (
        Stage(
            made[0],
            (*roots, place),
            leaves=tuple(root.name for root in (*roots, place)),
            limits=((count, found.extent),),
        ),
        Stage(made[1], roots, leaves=tuple(root.name for root in roots)),
    )
    graph = graph.replace_stage(replace(old, statement=replace(old.statement, value=values[2])))
    box = Box(tuple(root.dom for root in roots))
    for new in stages:
        tensor = Tensor(new.name, dtype, len(roots), "temporary")
        graph = _insert(graph, stage, new, tensor, box)
    return _valid(graph, graph, old), sums


def time_tile(graph: StageGraph, stage: str, steps: int, tile: int | tuple[int, ...]) -> tuple[StageGraph, str]:
    """Take several steps of a block, as those of `f^n`, at a time: tile by tile, so that what is between them stays in a cache.

    Rewrite (`time_tile("V", 2, 64)`):
        for t in 0:n
          for i: V(t, i) = f(V(t-1, i-1), V(t-1, i+1))
        ->
        for t in 0:ceil(n/2)
          for i.outer
            for i around the tile: V.step1(t, i) = f(V(t-1, i-1), V(t-1, i+1))
            for i.inner: V(t, i) = f(V.step1(t, i-1), V.step1(t, i+1))

    Each step before the last one becomes a stage at the loops over tiles, whose region is grown by what the later ones read; its
    elements that two tiles need are computed twice, which `bounds` shows. Every element is computed from the same ones in the same
    way: results have the same bits, but where a CPU rounds a product and a sum together in one place and not in another.

    Example:
        def f(float(M,N) X) -> (Y) { along t in 0:M { S(t,i) = (S(t-1,wrap(i+1)) else 0) / 2 + X(t,i) }  Y(i) = S(M-1,i) }

        for S[t] in 0:M
          for S[i] in 0:N
            S(t,i) = (S(t-1,wrap(i+1)) else 0) / 2 + X(t,i)
        for Y[i] in 0:N
          Y(i) = S(M-1,i)

        .time_tile("S", 3, 64)

        for S[t] in 0:(M + 2)//3
          for S[i.outer] in 0:(N + 63)//64
            allocate S.step1 [S[t], S[t] + 1) x [64*S[i.outer], min(64*S[i.outer] + 66, N + 2))   # local
            for S.step1[i] in 0:min(N - 64*S[i.outer] + 2, 66)
              S.step1: step 1 of 3, S(t,i) = (S(t-1,wrap(i+1)) else 0) / 2 + X(t,i)
            allocate S.step2 [S[t], S[t] + 1) x [64*S[i.outer], min(64*S[i.outer] + 65, N + 1))   # local
            for S.step2[i] in 0:min(N - 64*S[i.outer] + 1, 65)
              S.step2: step 2 of 3, S(t,i) = (S(t-1,wrap(i+1)) else 0) / 2 + X(t,i)
            for S[i.inner] in 0:min(N - 64*S[i.outer], 64)
              S(t,i) = (S(t-1,wrap(i+1)) else 0) / 2 + X(t,i)
        for Y[i] in 0:N
          Y(i) = S(M-1,i)

    Args:
        steps: how many are taken together.
        tile: iterations of a tile along each loop inside of the steps, a number or several; 0 leaves a loop whole.

    Returns:
        The new graph and the name of the stage of the first step (`V.step1`).

    Raises:
        CompileError: TC405 (no positive integer, or more than 64 steps), TC401 (no statement of a block, its loops are moved
            already, steps other than the last one are needed outside, or a range changes with the step), TC407 (data decide what is
            read, a step reads others than the one before, or its points have an order).
    """
    old = find_stage(graph, stage)
    factors = tuple(map(_as_integer, tile)) if isinstance(tile, tuple | list) else (_as_integer(tile),)
    count: Any = _as_integer(steps)
    for given, least, most in ((count, 1, MOST_STEPS), *((each, 0, LARGEST_STEP) for each in factors)):
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
            what = f"`{shown_value(given)}` steps of `{stage}` cannot be taken together"
            message = what if least else f"a tile of `{stage}` cannot have `{shown_value(given)}` iterations"
            raise refuse(graph, codes.BAD_FACTOR, old, message, f"an integer from {least} to {most}")
    taken = taken_names(graph)
    found = time_tiled(graph, old, count, factors)
    if isinstance(found, Problem):
        raise refuse(graph, found.code, old, f"`{stage}` takes its steps one by one: {found.message}", found.help)
    first = next(
        (each.name for each in found.stages if each.name not in taken and each.evaluates == old.evaluates), stage
    )
    return _valid(graph, found, old), first


def _with_reductions(new: Stage, old: Stage, axis: str, family: frozenset[str]) -> Stage:
    """A stage of partial results with the reduction loops of the old one; those of `family` are indices of their own."""
    reductions = tuple(leaf for leaf in old.leaves if old.kind(leaf) == "reduction" and leaf != axis)
    relations = tuple(
        relation
        for relation in old.relations
        if old.kind(parents_of(relation)[0]) == "reduction" and parents_of(relation)[0] not in family
    )
    outputs = tuple(root.name for root in new.roots if root.kind == "output" and root.name != new.statement.part)
    annotations = tuple((leaf, kind) for leaf, kind in old.annotations if leaf in reductions)
    return replace(new, relations=relations, leaves=(*outputs, *reductions), annotations=annotations)


def _onto_present(statement: Statement) -> bool:
    """Whether the values are combined with what the tensor holds before."""
    return statement.accumulate and not statement.initialize


def _copy_text(statement: Statement, source: str) -> str:
    where = f"({', '.join(index.name for index in statement.output_indices)})" if statement.output_indices else ""
    sign = f"{statement.operator}=" if _onto_present(statement) else "="
    return f"{statement.target}{where} {sign} {source}{where}"


def _number_text(number: Expr) -> str:
    match number:
        case Const(value=value):
            return f"{value:g}" if isinstance(value, float) else str(value)
        case Unary(operand=operand):
            return f"-{_number_text(operand)}"
        case Cast(operand=operand) if operand.dtype.is_float:
            return _number_text(operand)
        case Cast(operand=operand, dtype=dtype):
            return f"{dtype.value}({to_python(from_expr(operand))})"
        case _:
            return "..."


def _subscripts(axes: Sequence[IterVar]) -> str:
    return f"({', '.join(axis.name for axis in axes)})" if axes else ""


def _sign(statement: Statement) -> str:
    return f"{statement.operator}={'!' if statement.initialize else ''}"


def _substituted(value: SizeExpr, positions: Mapping[str, Expr]) -> SizeExpr:
    return value.substitute({name: from_expr(expr) for name, expr in positions.items()})


# --- rules -----------------------------------------------------------------------------------------------------------


def _keeps_steps(old: StageGraph, new: StageGraph, stage: Stage, help: str) -> StageGraph:
    """The new graph, if all tensorized loops still are the intrinsics that they stand for."""
    problem = step_problem(new)
    if problem is not None:
        message = f"`{problem[0]}` is tensorized: {problem[1]}"
        raise refuse(old, codes.BAD_ANNOTATION, stage, message, help)
    return new


def _order_problem(graph: StageGraph) -> Problem | None:
    """Why shared loops run something too early; `None` if nothing does, or no loops are shared."""
    shares = any(stage.attach.kind == "with" for stage in graph.stages)
    return order_problem(graph) if shares else None


def _valid(old: StageGraph, new: StageGraph, stage: Stage) -> StageGraph:
    """The new graph, if everything in it runs in a legal order."""
    if new.unchecked:
        return new
    problem = graph_problem(new)
    if problem is None:
        order = _order_problem(new)
        if order is not None:
            raise refuse(old, order.code, stage, order.message, order.help)
        return new
    name, found = problem
    known = [each for each in old.stages if each.name == name]
    points = attach_points(old, known[0]) if known else "root"
    raise refuse(old, found.code, stage, f"`{name}` cannot run there: {found.message}", f"legal: {points}")


def is_legal(old: StageGraph, new: StageGraph) -> bool:
    """Whether what some steps made of a graph keeps all rules that each step by itself is asked for."""
    if graph_problem(new) is not None or _order_problem(new) is not None:
        return False
    if tail_problem(new) is not None:
        return False
    return grid_problem(new) is None and _early_problem(new) is None and changed_order(old, new) is None


def check_grid(old: StageGraph, new: StageGraph) -> None:
    """Refuse nests in which GPU axes stand where they cannot run; see `grid.grid_problem`.

    Raises:
        CompileError: TC401.
    """
    problem = None if new.unchecked else grid_problem(new) or _early_problem(new)
    if problem is not None:
        name, reason, help = problem
        known = next((stage for stage in old.stages if stage.name == name), None)
        raise refuse(old, codes.BAD_ATTACH, known, f"`{name}` cannot run there: {reason}", help)


@cache
def _kinds(primitive: str) -> tuple[tuple[str, str], ...]:
    """The parameters of a primitive behind the graph, and what each is annotated with; `*names` is for all others."""
    parameters = [*signature(globals()[primitive]).parameters.values()][1:]
    return tuple(
        (("*" if each.kind is each.VAR_POSITIONAL else "") + each.name, each.annotation) for each in parameters
    )


def check_kinds(graph: StageGraph, primitive: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Refuse a name that is no text, and a flag that is neither `True` nor `False`.

    Raises:
        CompileError: TC411.
    """
    kinds = dict(_kinds(primitive))
    names = [*takewhile(lambda name: not name.startswith("*"), kinds)]
    others = [name for name in kinds if name.startswith("*")] * len(arguments)
    for name, value in (*zip((*names, *others), arguments, strict=False), *options.items()):
        match kinds.get(name):
            case "str" if not isinstance(value, str):
                wanted = "a name"
            case "str | None" if not isinstance(value, str | None):
                wanted = "a name"
            case "bool" | "bool | None" if not isinstance(value, bool | None):
                wanted = "`True` or `False`"
            case "bool | str" if not isinstance(value, bool | str):
                wanted = "`True`, `False` or the name of a type"
            case _:
                continue
        if "stage" in kinds and name != "stage":
            find_stage(graph, arguments[0])  # else what is meant as a loop stands in the place of the stage
        message = f"`{shown_value(value)}` is no `{name.removeprefix('*')}` of `{primitive}`"
        raise refuse(graph, codes.FOREIGN_SCHEDULE, None, message, f"give {wanted}")


def check_taken(graph: StageGraph, primitive: str, names: tuple[str, ...]) -> None:
    """Refuse what a stage with an order cannot be made of; see `orders.refused`.

    Raises:
        CompileError: TC407.
    """
    found = refused(graph, primitive, names)
    if found is not None:
        stage, reason = found
        message = f"`{primitive}` does not take `{stage.name}`, whose points have an order: {reason}"
        raise refuse(graph, codes.ILLEGAL_ORDER, stage, message, "split and reorder its loops, or leave it as it is")


def check_order(old: StageGraph, new: StageGraph) -> None:
    """Refuse loops that do not keep the order of a stage; see `orders.order_problem_of`.

    Raises:
        CompileError: TC407.
    """
    found = None if new.unchecked else changed_order(old, new)
    if found is not None:
        stage, problem = found
        raise refuse(old, problem.code, stage, problem.message, problem.help)


def check_tails(old: StageGraph, new: StageGraph) -> None:
    """Refuse loops that cannot do what is said of their partial tiles; see `partial_tiles.tail_problem`.

    Raises:
        CompileError: TC414.
    """
    if not new.unchecked:
        _keeps_tails(old, new)


def _keeps_tails(old: StageGraph, new: StageGraph) -> StageGraph:
    """The new graph, if its loops can do what is said of partial tiles."""
    found = tail_problem(new)
    if found is not None:
        stage, message, help = found
        raise refuse(old, codes.BAD_TAIL, stage, message, help)
    return new


def _early_problem(graph: StageGraph) -> tuple[str, str, str] | None:
    """Why what all blocks see cannot be computed before they start; `None` if it can."""
    early = [stage for stage in graph.stages if runs_before_launch(graph, stage)]
    if not early:
        return None
    plain = inject_inline(graph)
    help = '`storage(..., "local")`, or `compute_root` what it reads'
    for stage in (plain.stage(stage.name) for stage in early):
        root = graph.runs_in(stage.name)
        if plain.position(root) < plain.position(stage.name):
            return stage.name, f"all blocks see its global storage, and the loops of `{root}` start before it", help
        for tensor in plain.reads(stage):
            late = next((each for each in plain.stages_on(tensor) if each.attach.kind == "at"), None)
            if late is not None and late.name != stage.name and plain.runs_in(late.name) != stage.name:
                reason = f"all blocks see its global storage, and it reads `{tensor}`, which is computed inside a block"
                return stage.name, reason, help
    problem = graph_problem(plain)
    return None if problem is None else (problem[0], problem[1].message, help)


def _annotation_problem(stage: Stage, axis: str, annotation: str) -> tuple[str, str] | None:
    if annotation not in ANNOTATIONS:
        return "no such annotation", f"one of {', '.join(ANNOTATIONS)}"
    present = stage.annotation(axis)
    if present is not None:
        return f"it is `{present}` already", "choose another loop"
    combines = stage.kind(axis) == "reduction" and not keeps(stage.statement)  # whose points have elements of their own
    if combines and (annotation == "parallel" or annotation in GPU_AXES):
        if annotation != "threadIdx.x":
            return "its iterations are combined, they are not independent", _parts_first(stage, axis)
        problem = _cross_thread_problem(stage, axis)
        if problem is not None:
            return problem
    if annotation == "vectorize" and combines and _may_meet(stage, axis):
        return "points in its lanes may go to one element", "vectorize a loop over rows, or no loop"
    if annotation in ("vectorize", "unroll") and _longest(stage, axis) is None:
        inner = f'`.split("{stage.name}", "{axis}", 8).{annotation}("{stage.name}", "{axis}.inner")`'
        reason = "no number says how long it is at most"
        if stage.attach.kind == "at":
            reason = f"how long it is follows from what the loops of `{stage.attach.stage}` need, and no number is given for it"
        return reason, f"split it by a number: {inner}"
    if annotation in GPU_AXES:
        for leaf, kind in stage.annotations:
            if kind == annotation:
                return f"`{leaf}` is bound to it already", "bind each axis once in a stage"
    return None


def _may_meet(stage: Stage, axis: str) -> bool:
    """Whether two points of a loop may say that they belong to one element, which lanes of a vector cannot change together."""
    root = root_of(stage, axis)
    points = {index.name for index in stage.statement.reduction_indices} if root is None else {root}
    moved = [place for _, place in places(stage.statement) if index_names(place) & points]
    return bool(moved) and (root is None or not any(step_of(from_expr(place), root) for place in moved))


def _parts_first(stage: Stage, axis: str) -> str:
    parts = f'`.split("{stage.name}", "{axis}", 64).rfactor("{stage.name}", "{axis}.outer")`'
    return f"make parts with results of their own first: {parts}"


def _longest(stage: Stage, axis: str) -> int | None:
    """The most iterations of an axis, if that is a constant: where a scalar ends it, all that its type holds, if they are few."""
    fixed = constant_extent(stage, axis)
    if fixed is not None:
        return fixed
    most = lineage(stage, default_domain(stage), str).extents[axis].limits[1]
    return most if most is not None and most <= MOST_OF_TYPE else None


def _cross_thread_problem(stage: Stage, axis: str) -> tuple[str, str] | None:
    """Why the threads of a block cannot combine the iterations of a reduction leaf: one value each, by one operation."""
    reductions = [leaf for leaf in stage.leaves if stage.kind(leaf) == "reduction"]
    if reductions != [axis] or stage.leaves[-1] != axis or stage.statement.combine is not None:
        return "threads combine one value each, along the only and innermost reduction loop", _parts_first(stage, axis)
    threads = constant_extent(stage, axis)
    if threads is None or threads > 1024 or (threads % 32 if threads > 32 else threads & (threads - 1)):
        return "threads combine a power of two of values up to 32, or a multiple of 32", "split by such a number first"
    return None


def _storage_problem(graph: StageGraph, stage: Stage, new: Storage) -> tuple[str, str] | None:
    if new.scope not in SCOPES:
        return f"`{new.scope}` is no scope", f"one of {', '.join(SCOPES)}"
    problem = _option_problem(new)
    if problem is not None:
        return problem
    if stage.name in graph.outputs and new != Storage():
        return "it writes a result, whose layout belongs to the caller", "use `cache_write`"
    if new.layout is not None:
        rank = graph.program.tensor(stage.target).rank
        whole = sorted(dimension for dimension, tile_size in new.layout if tile_size == 0)
        if whole != list(range(rank)) or any(d >= rank for d, _ in new.layout):
            return "the layout does not name every dimension once as a whole", "entries are (dimension, tile or 0)"
        looked_at = (
            each.statement for each in graph.stages if each.statement.left or reads_by_data(each.statement.value)
        )
        if any(stage.target in each.tensors_that_decide for each in looked_at):
            return (
                "its elements say where others are, and are looked at in the order of its dimensions",
                "leave out `layout`",
            )
    if new.pad and new.scope != "shared" and any(tile for _, tile in new.layout or ()):
        return "a row of tiles has no room behind it", "leave out `pad` or `layout`"
    if new.scope in ("shared", "threads", "fragment") and stage.attach.kind == "root":
        kept = "a fragment" if new.scope == "fragment" else "shared memory"
        return f"{kept} exists inside a block only", "`compute_at` a loop of the consumer first"
    if new.scope == "threads" and (not new.layout or not new.layout[0][1]):
        return (
            "nothing says which element belongs to which thread",
            "the first entry of `layout` is the tile of the threads",
        )
    if new.scope == "shared" and new.padded and not is_copy(stage.statement):
        return "only a copy can be filled with zeros beyond its end", "use `cache_read`"
    outputs = {index.name for index in stage.statement.output_indices}
    if new.clamped and not (new.padded and outputs.issuperset(new.clamped) and new.scope != "shared"):
        return f"`{new.clamped}` are no outputs that are padded", "name indices of the left side, with `padded=True`"
    if new.whole and not (new.padded and adds_zeros(graph, stage)):
        return (
            "what it adds beyond the end of a reduction need not be zero",
            "give all its reads padded copies in shared memory, or copies whose layout has tiles along the reduction",
        )
    return None


def _option_problem(new: Storage) -> tuple[str, str] | None:
    """An option of `storage` that is no value of its kind."""

    def is_count(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_STEP

    def are_pairs(value: object) -> bool:
        return isinstance(value, tuple) and all(
            isinstance(pair, tuple) and len(pair) == 2 and all(map(is_count, pair)) for pair in value
        )

    if new.layout is not None and not are_pairs(new.layout):
        return f"`{shown_value(new.layout)}` is no layout", "a layout is a tuple of pairs (dimension, tile or 0)"
    if not is_count(new.pad):
        return f"`pad` is `{shown_value(new.pad)}`", "give a number of elements, 0 or more"
    if not is_count(new.double) or new.double == 0:
        return f"`double` is `{shown_value(new.double)}`", "give a number of copies, 1 or more"
    if new.swizzle is not None and not are_pairs((new.swizzle,)):
        return (
            f"`{shown_value(new.swizzle)}` is no swizzle",
            "a swizzle is a pair (shift, mask) of numbers of 0 or more",
        )
    clamped: Any = new.clamped
    if not isinstance(clamped, tuple) or not all(isinstance(each, str) for each in tuple[Any, ...](clamped)):
        return f"`{shown_value(new.clamped)}` is no `clamped`", 'name indices of the left side, as in `("i",)`'
    return None


# --- helpers ---------------------------------------------------------------------------------------------------------


def refuse(graph: StageGraph, code: Code, stage: Stage | None, message: str, help: str | None = None) -> CompileError:
    """The exception of a refused primitive: one diagnostic at the stage's statement."""
    source = graph.program.source
    span = stage.statement.span if stage is not None else graph.program.span
    diagnostic = Diagnostic(code, span, message, help=help)
    return CompileError((diagnostic,), source, render((diagnostic,), source))


def find_stage(graph: StageGraph, name: str) -> Stage:
    """The stage of that name; an unknown one is TC411 with the list of stages."""
    try:
        return graph.stage(name)
    except KeyError:
        names = ", ".join(f"`{stage.name}`" for stage in graph.stages)
        message = f"`{graph.program.name}` has no stage `{name}`"
        help = f"its stages are {names}"
        if owner := next((stage for stage in graph.stages if name in stage.leaves), None):
            help = f"`{name}` is a loop of `{owner.name}`, and the stage comes first, then the loop; {help}"
        raise refuse(graph, codes.FOREIGN_SCHEDULE, None, message, help) from None


def _leaf(graph: StageGraph, stage: Stage, axis: str) -> None:
    if stage.attach.kind == "inline":
        readers = ", ".join(f"`{each.name}`" for each in final_users(graph, stage.name))
        raise _no_loops(graph, stage, axis, f'`compute_root("{stage.name}")` first, or change the loops of {readers}')
    if axis not in stage.leaves:
        state = "has been split or fused" if axis in stage.axes else "does not exist"
        message = f"`{axis}` is no loop of `{stage.name}`: it {state}"
        leaves = ", ".join(f"`{leaf}`" for leaf in stage.leaves)
        raise refuse(graph, codes.UNKNOWN_AXIS, stage, message, f"its loops are {leaves or 'none'}")


def _no_loops(graph: StageGraph, stage: Stage, axis: str, help: str) -> CompileError:
    message = f"`{axis}` is no loop of `{stage.name}`, which is inlined and has none"
    return refuse(graph, codes.UNKNOWN_AXIS, stage, message, help)


def _permuted(stage: Stage, axes: tuple[str, ...]) -> tuple[str, ...]:
    """The leaves with the named ones in this order, in the places that they occupy."""
    places = iter(axes)
    return tuple(next(places) if leaf in axes else leaf for leaf in stage.leaves)


def _around_steps(graph: StageGraph, stage: Stage, axes: tuple[str, ...]) -> tuple[Stage, ...]:
    """All statements of a block, if the loops that one primitive changes are those around the steps of the first one.

    Iterations of these loops have nothing to do with each other (`stage.independent_in_blocks`), so parts of them may stand inside.
    """
    shared = stage.leaves[: shared_depth(graph, stage)]
    steps = [leaf for leaf in shared if leaf in {name for name, _ in stage.statement.steps}]
    if not stage.statement.block or stage.attach.kind != "root" or not {*axes} & ({*shared} - {*steps}):
        return ()
    members = tuple(each for each in graph.stages if each.statement.block == stage.statement.block)
    kept = [leaf for leaf in _permuted(stage, axes) if leaf in steps] == steps
    return members if kept and all({*axes} <= {*each.leaves} for each in members) else ()


def _free(graph: StageGraph, stage: Stage, axis: str, action: str) -> None:
    """A leaf that is annotated, tensorized or an attach point must stay a leaf."""
    if stage.leaves.index(axis) < shared_depth(graph, stage) and not _around_steps(graph, stage, (axis,)):
        message = f"cannot {action} `{stage.name}[{axis}]`: it is shared with another stage"
        raise refuse(graph, codes.BAD_ATTACH, stage, message, f"{action} first, then `compute_with`")
    annotation = stage.annotation(axis)
    if annotation is not None:
        message = f"cannot {action} `{stage.name}[{axis}]`: it is `{annotation}`"
        raise refuse(graph, codes.BAD_ANNOTATION, stage, message, f"{action} first, then annotate")
    if stage.tensorize is not None and axis in stage.tensorize.axes:
        message = f"cannot {action} `{stage.name}[{axis}]`: it is part of `{stage.tensorize.intrinsic}`"
        raise refuse(graph, codes.BAD_ANNOTATION, stage, message, f"{action} first, then tensorize")
    for other in graph.attached(stage.name):
        if other.attach.axis == axis:
            message = f"cannot {action} `{stage.name}[{axis}]`: `{other.name}` is attached there"
            raise refuse(graph, codes.BAD_ATTACH, stage, message, f"{action} first, then `compute_at`")


def _as_integer(value: Any) -> Any:
    """A NumPy integer as one of Python; anything else as it is."""
    try:
        return value if isinstance(value, bool) else whole_number(value)
    except TypeError:
        return value


def _not_tensorized(graph: StageGraph, stage: Stage, action: str) -> None:
    """A stage whose value moves to a new stage keeps its loops for the copy only."""
    if stage.tensorize is not None:
        message = f"`{stage.name}` is tensorized: its loops are `{stage.tensorize.intrinsic}`"
        raise refuse(graph, codes.BAD_ANNOTATION, stage, message, f"`{action}` first, then tensorize")


def _step(stage: Stage, axis: str) -> int:
    """The product of the factors of all relations that an axis comes from."""
    above, step = {axis}, 1
    for relation in reversed(stage.relations):
        if above & set(children_of(relation)):
            above |= set(parents_of(relation))
            step *= _step_of(relation)
    return step


def _step_of(relation: Relation) -> int:
    match relation:
        case Split():
            return relation.factor or relation.nparts or 1
        case Fuse():
            return 1
        case Skew():
            return relation.factor


def _replace_leaves(stage: Stage, axis: str, new: tuple[str, ...]) -> tuple[str, ...]:
    at = stage.leaves.index(axis)
    return (*stage.leaves[:at], *new, *stage.leaves[at + 1 :])


def _fresh(graph: StageGraph, name: str) -> str:
    return fresh_name(name, taken_names(graph))


def _as_written(graph: StageGraph, stage: Stage) -> Statement:
    """The statement of the program that a stage evaluates, also where it makes partial results of partial results."""
    return graph.base.statement(stage.evaluates) if stage.evaluates else stage.statement


def _given(name: str, bounds: tuple[SizeExpr, SizeExpr], kind: str = "output") -> Index:
    return Index(name, kind, (to_expr(bounds[0]), to_expr(bounds[1])))


def _converted_type(value: Expr, tensor: str) -> DType | None:
    """The one type that every read of a tensor is converted to, or `None`."""
    reads = sum(isinstance(node, Read) and node.tensor == tensor for node in walk(value))
    casts = [
        n for n in walk(value) if isinstance(n, Cast) and isinstance(n.operand, Read) and n.operand.tensor == tensor
    ]
    types = {cast.dtype for cast in casts}
    return types.pop() if len(types) == 1 and len(casts) == reads else None


def _copy_indices(read: Read, rank: int, graph: StageGraph) -> tuple[str, ...]:
    """Index names for a copy: those of the read where they are plain and distinct, else `d0`, `d1`, ..."""
    plain = [index.name if isinstance(index, IndexVar) else "" for index in read.indices]
    taken = set(graph.program.sizes) | {tensor.name for tensor in graph.program.tensors}
    fresh = (
        name for n in range(2 * rank + len(taken) + len(plain)) if (name := f"d{n}") not in taken and name not in plain
    )
    return tuple(name if name and plain.count(name) == 1 and name not in taken else next(fresh) for name in plain)


def _copy(name: str, names: Sequence[str], box: Box, value: Expr, text: str, user: Stage) -> Statement:
    """`name(names) = value` over a box, for a stage that reads it."""
    indices = tuple(_given(index, bounds) for index, bounds in zip(names, box.bounds, strict=True))
    return Statement(name, name, indices, "=", False, False, value, text=text, span=user.statement.span)


def _default_stage(statement: Statement, box: Box, reductions: tuple[IterVar, ...]) -> Stage:
    outputs = tuple(
        IterVar(index.name, "output", bounds)
        for index, bounds in zip(statement.output_indices, box.bounds, strict=True)
    )
    roots = (*outputs, *reductions)
    return Stage(statement, roots, leaves=tuple(root.name for root in roots))


def _keep_output(stage: Stage) -> Stage:
    """The stage without its reduction loops; output loops, their relations and annotations stay."""
    relations = tuple(
        relation
        for relation in stage.relations
        if stage.kind(relation.parent if isinstance(relation, Split) else relation.outer) == "output"
    )
    leaves = tuple(leaf for leaf in stage.leaves if stage.kind(leaf) == "output")
    annotations = tuple((leaf, kind) for leaf, kind in stage.annotations if leaf in leaves)
    return replace(stage, relations=relations, leaves=leaves, annotations=annotations)


def _insert(graph: StageGraph, before: str, stage: Stage, tensor: Tensor, box: Box) -> StageGraph:
    """Put a new stage and its tensor directly before another stage."""
    at = next(i for i, each in enumerate(graph.stages) if each.name == before)
    stages = (*graph.stages[:at], stage, *graph.stages[at:])
    program = replace(graph.program, tensors=(*graph.program.tensors, tensor))
    return replace(graph, program=program, boxes={**graph.boxes, tensor.name: box}).with_stages(stages)


__all__ = [
    "annotate",
    "at_most",
    "attach_points",
    "attach_problem",
    "bind",
    "cache_read",
    "cache_write",
    "compute_at",
    "compute_inline",
    "compute_root",
    "compute_with",
    "factor",
    "find_stage",
    "fuse",
    "parallel",
    "prefix",
    "rebias",
    "refuse",
    "reorder",
    "rfactor",
    "separate",
    "skew",
    "split",
    "storage",
    "tensorize",
    "tile",
    "time_tile",
    "unroll",
    "vectorize",
]
