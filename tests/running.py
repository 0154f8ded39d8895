"""Runs scheduled programs on the loop interpreter, without the calling layer: what the schedule and loop tests share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.loops import lower, simplify, verify
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import check_tc
from tc_jupyter.ranges import infer_ranges
from tc_jupyter.runtime.cpu import cpu_target, other_target
from tc_jupyter.schedule import Schedule, Target, infer_symbolic, schedule_of
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.visits import evaluate
from tc_jupyter.syntax import parse_tc


def program_of(text: str):
    """Program and ranges of the one def of `text`, or `None` if it has errors."""
    source = SourceText(text)
    parsed = parse_tc(source)
    checked = check_tc(parsed.unit, source)
    if any(d.is_error for d in (*parsed.diagnostics, *checked.diagnostics)):
        return None
    program = next(iter(checked.programs.values()))
    ranges = infer_ranges(program)
    return None if any(d.is_error for d in ranges.diagnostics) else (program, ranges)


def cpu_with(isa: str | None = None, threads: int = 2) -> Target:
    """This machine with so many threads, and no larger vectors than those of `avx512`, `avx2` or `baseline`."""
    whole = cpu_target()
    gone: tuple[str, ...] = () if isa in (None, "avx512") else ("avx512", "avx10", "evex")
    if isa == "baseline":
        gone += ("avx", "fma", "f16c", "sse3", "ssse3", "sse4", "xop", "vaes", "vpclmul", "gfni", "bmi", "amx")
    kept = frozenset(name for name in whole.features if not name.startswith(gone)) if gone else whole.features
    return replace(whole if kept == whole.features else other_target(whole, kept), threads=threads)


def default(text: str) -> Schedule:
    """The untransformed schedule of a def that has no errors."""
    found = program_of(text)
    assert found is not None
    return schedule_of(*found)


def kernels_of(schedule: Schedule, sizes: Mapping[str, int] | None = None):
    """The verified kernels of a schedule; with a size of 0 every stage computes all its elements, as in a call."""
    whole = sizes is not None and any(sizes[name] == 0 for name in schedule.graph.program.sizes)
    return [verify(simplify(kernel)) for kernel in lower(infer_symbolic(inject_inline(schedule.graph), whole=whole))]


def number(expr, sizes, scalars=None) -> int:
    return int(evaluate(expr, {}, {**sizes, **(scalars or {})}, 1)[0])


def run(schedule: Schedule, arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """All results of one execution on the interpreter; outputs start as NaN or a marker."""
    graph = schedule.graph
    held = {name: array for name, array in arrays.items()}
    identities = {"+": 0, "*": 1}
    for kernel in kernels_of(schedule, sizes):
        for buffer in kernel.buffers:
            if buffer.name not in held:
                shape = tuple(max(0, number(extent, sizes)) for extent in buffer.shape)
                held[buffer.name] = _poisoned(shape, buffer.dtype.value)
                stages = graph.stages_on(buffer.name)
                first = stages[0].statement
                if first.operator != "=" and not first.initialize and first.combine is None:
                    held[buffer.name][...] = _identity(first.operator, buffer.dtype.value, identities)
        scalars = {name: held[name].item() for name, _ in kernel.scalars}
        failed = interpret(kernel, {b.name: held[b.name] for b in kernel.buffers}, sizes, scalars)
        assert failed is None
    return {name: held[graph.storage_name(name)] for name in graph.program.results}


def _poisoned(shape, dtype: str) -> np.ndarray:
    if dtype.startswith("float"):
        return np.full(shape, np.nan, dtype)
    return np.full(shape, 77 if dtype != "bool" else True, dtype)


def _identity(operator: str, dtype: str, known):
    if operator in known:
        return known[operator]
    if dtype.startswith("float"):
        return np.inf if operator == "min" else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if operator == "min" else limits.min


def in_bounds(program, ranges, sizes: dict[str, int]) -> bool:
    """Whether all loops have an extent of 0 or more and every unguarded access is inside its tensor for these sizes."""
    boxes = {
        name: [(lo.evaluate(sizes), hi.evaluate(sizes)) for lo, hi in box.bounds] for name, box in ranges.boxes.items()
    }
    for statement in program.statements:
        for index in ranges.indices[statement.name]:
            if index.upper.evaluate(sizes) < index.lower.evaluate(sizes):
                return False
    from itertools import product

    from tc_jupyter.program import Read
    from tc_jupyter.schedule.visits import reached

    for statement in program.statements:
        spans = [range(i.lower.evaluate(sizes), i.upper.evaluate(sizes)) for i in ranges.indices[statement.name]]
        names = [i.index for i in ranges.indices[statement.name]]
        rows = list(product(*spans))
        points = np.array(rows, np.int64).reshape(len(rows), len(names))
        if len(points) > 50_000:
            return False
        roots = {name: points[:, k] for k, name in enumerate(names)}
        extents = {f"{t}.{k}": hi - lo for t, b in boxes.items() for k, (lo, hi) in enumerate(b)}
        known = {**sizes, **extents}
        targets = zip(statement.output_indices, boxes[statement.target], strict=True)
        for index, (lo, hi) in targets:
            if len(points) and not ((roots[index.name] >= lo) & (roots[index.name] < hi)).all():
                return False
        for read in statement.reads():
            if not read.indices:
                continue
            if any(isinstance(n, Read) for i in read.indices for n in _walk(i)):
                return False
            live = reached(statement.value, read, roots, known, len(points))
            for subscript, (lo, hi) in zip(read.indices, boxes[read.tensor], strict=True):
                values = evaluate(subscript, roots, known, len(points))
                if (live & ((values < lo) | (values >= hi))).any():
                    return False
    return True


def _walk(expr):
    from tc_jupyter.program import walk

    return walk(expr)
