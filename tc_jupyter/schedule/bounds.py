"""The bounds map: what every axis runs over, what every stage must compute, and what TVM's rules would have computed.

Worked example: `C(i,j) = B(i,j) * 3` over 4 x 4, `i, j` fused and split by 4, B attached at the outer loop.
`bounds.stage("B")` has 4 visits of 4 elements; TVM falls back to the whole of B, 16 elements per visit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from tc_jupyter.diagnostics import Diagnostic, codes, shown_line
from tc_jupyter.ranges import Extremum, SizeExpr, constant, infer_ranges, make_bind, preconditions, to_python

from .exact_sets import ExactNeed, ExactSets
from .extents import loop_extent
from .infer_bound import (
    Request,
    StageBounds,
    SymbolicBounds,
    extent_between,
    infer_symbolic,
    pass_down,
    variable,
)
from .inline import inject_inline
from .notes import counted, exact_with_numbers, not_rolling
from .primitives import refuse
from .rolling import Window, window_of, window_problem
from .sized import names_of, required_sizes, sized_graph
from .stage import Fuse, Relation, Skew, Split, Stage, StageGraph, children_of, parents_of
from .visits import LIMIT, Enumeration, Need, TooManyPoints, distinct_rows

Counted = TypeVar("Counted")


@dataclass(frozen=True, slots=True)
class Range:
    """`min <= axis < min + extent`; integers when all sizes are given, else expressions of sizes and outer loops."""

    min: int | SizeExpr
    extent: int | SizeExpr

    def __str__(self) -> str:
        low, extent = constant(0) + self.min, constant(0) + self.extent
        if extent.is_constant and extent.offset < 0:
            return "empty"
        return f"[{shown(low)}, {shown(extent_between(-low, extent - 1))})"


def shown(value: SizeExpr | int) -> str:
    """An expression as one writes loop bounds: `min(4, N - 4*C[o])` and not `-max(4*C[o] - N, -4)`."""
    if isinstance(value, int):
        return str(value)
    terms = value.ordered()
    if len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][1] == -1 and isinstance(terms[0][0][0], Extremum):
        atom = terms[0][0][0]
        inner = ", ".join(shown(value.offset - argument) for argument in atom.arguments)
        return f"{'min' if atom.kind == 'max' else 'max'}({inner})"
    return to_python(value)


@dataclass(frozen=True, slots=True)
class StageNeed:
    """What one stage must compute, in numbers.

    Attributes:
        stage: its name.
        visits: how often its place is reached.
        elements_per_visit: exact number of elements needed, one per visit.
        hull_per_visit: elements of the smallest box around them.
        tvm_per_visit: elements that TVM's intervals give.
        computed_per_visit: elements that the generated loops compute.
        distinct: different elements that are needed at all.
        exact: at every visit nothing is computed that is not needed.
        region: box that the generated loops run over, as text per dimension.
        element_bytes: size of an element.
        held: elements of the largest box of any visit, those included that `storage(pad=...)` adds to its rows.
    """

    stage: str
    visits: int
    elements_per_visit: tuple[int, ...]
    hull_per_visit: tuple[int, ...]
    tvm_per_visit: tuple[int, ...]
    computed_per_visit: tuple[int, ...]
    distinct: int
    exact: bool
    region: tuple[str, ...]
    element_bytes: int
    held: int

    @property
    def elements(self) -> int:
        """Exact total over all visits."""
        return sum(self.elements_per_visit)

    @property
    def hull(self) -> int:
        """Total of the boxes over all visits."""
        return sum(self.hull_per_visit)

    @property
    def tvm(self) -> int:
        """Total of TVM's boxes over all visits."""
        return sum(self.tvm_per_visit)

    @property
    def computed(self) -> int:
        """Total that the generated loops compute."""
        return sum(self.computed_per_visit)

    @property
    def memory(self) -> int:
        """Bytes held at a time: the largest box of any visit."""
        return self.held * self.element_bytes

    @property
    def tvm_memory(self) -> int:
        """Bytes that TVM's boxes hold at a time."""
        return max(self.tvm_per_visit, default=0) * self.element_bytes


class AxisRanges(Mapping[str, Range]):
    """The ranges of the axes of one stage, by axis name."""

    def __init__(self, ranges: dict[str, Range]) -> None:
        self._ranges = ranges

    def __getitem__(self, axis: str) -> Range:
        return self._ranges[axis]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)


@dataclass(frozen=True, repr=False)
class Bounds(Mapping[str, AxisRanges]):
    """Bounds of all stages of a schedule.

    `bounds["C"]["i.outer"]` is a `Range`, `bounds.stage("B")` the numbers of a stage. `exact` says whether every box is known to
    hold nothing that is not needed.

    Attributes:
        graph: the graph as scheduled, inlined stages included.
        symbolic: the boxes that loops are generated from, and the requests behind them.
        sized: the same at the given sizes; `symbolic` itself if there are none.
        tvm: as `sized` with TVM's interval rules.
        sizes: the given sizes; empty for symbolic bounds.
    """

    graph: StageGraph
    symbolic: SymbolicBounds
    sized: SymbolicBounds
    tvm: SymbolicBounds
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, stage: str) -> AxisRanges:
        return self._axes(self.sized[stage])

    def tvm_axes(self, stage: str) -> AxisRanges:
        """The ranges that TVM's rules give: inner loops of splits always have the whole factor."""
        found = self.tvm[stage]
        low = {name: ends[0] for name, ends in found.domain.items()}
        return AxisRanges(
            {
                axis: Range(self._number(low.get(axis, constant(0))), self._number(found.lineage.extents[axis]))
                for axis in found.stage.axes
            }
        )

    def _axes(self, found: StageBounds) -> AxisRanges:
        ranges: dict[str, Range] = {}
        down = pass_down(found.stage, found.lineage)
        leaves = found.stage.leaves
        for axis in found.stage.axes:
            low, extent = found.domain[axis] if axis in found.domain else down[axis]
            if axis in leaves and axis not in found.domain:
                extent = loop_extent(found.stage, found.lineage, axis, frozenset(leaves[: leaves.index(axis)]))
            ranges[axis] = Range(self._number(low), self._number(extent))
        return AxisRanges(ranges)

    def __iter__(self) -> Iterator[str]:
        return iter(stage.name for stage in self.symbolic.graph.stages)

    def __len__(self) -> int:
        return len(self.symbolic.graph.stages)

    @cached_property
    def _single(self) -> dict[str, SizeExpr]:
        """Loops of one iteration: their variable is 0."""
        return {
            variable(name, leaf): constant(0)
            for name, found in self.sized.items()
            for leaf in found.stage.leaves
            if found.lineage.extents[leaf] == constant(1)
        }

    def at_sizes(self, value: SizeExpr) -> int | SizeExpr:
        """An expression of the bounds at the given sizes; an integer where no loop is left in it."""
        return self._number(value)

    @cached_property
    def _known(self) -> dict[str, SizeExpr]:
        """Sizes, and loops of one iteration, as numbers."""
        return {name: constant(number) for name, number in self.sizes.items()} | self._single

    def _number(self, value: SizeExpr) -> int | SizeExpr:
        value = value.substitute(self._known) if self._known else value
        return value.constant if value.is_constant else value

    @property
    def exact(self) -> bool:
        """Whether no stage is known to compute an element that is not needed."""
        if self.sizes:
            return all(self._is_exact_here(name) for name in self)
        return all(self._is_exact(name) for name in self)

    def _is_exact_here(self, name: str) -> bool:
        """At the given sizes, if its elements can be counted; else for all sizes."""
        with suppress(TooManyPoints):
            return self._stage(name).exact
        return self._is_exact(name)

    def _is_exact(self, name: str) -> bool:
        """For all sizes: the box holds only what is needed, or the loops test what is."""
        sets = self._generated
        return self.symbolic[name].exact or sets.is_box(name) or sets.guard(name) is not None

    @cached_property
    def sets(self) -> ExactSets:
        """The exact needs as integer sets; at the given sizes, else for all sizes."""
        return ExactSets(self.sized)

    @cached_property
    def _generated(self) -> ExactSets:
        """The sets that loops are generated from."""
        return ExactSets(self.symbolic) if self.sizes else self.sets

    def need(self, stage: str) -> ExactNeed:
        """What a stage must compute as a map from visits to elements, for all sizes where no sizes are given.

        Returns:
            `mapping` is an `IntegerMap` from the loops around the stage (`path`) to elements in logical coordinates. Where the
            exact set is no integer set, or the set library is absent, `exact` is False, `reason` says why, and `mapping` is the
            box of the loops, or `None` if that is none either.

        Raises:
            CompileError: TC411 for an unknown stage.

        Source: the formula of `infer_bound`, need(P).
        """
        self._require_stage(stage)
        return self.sets.need(stage)

    @cached_property
    def needs(self) -> Mapping[str, Need]:
        """Per stage the exact elements of every visit.

        Raises:
            CompileError: TC411 without sizes, TC412 where they cannot be counted.
        """
        return {name: self._counted(name, self._need_of) for name in self}

    @cached_property
    def _enumeration(self) -> Enumeration:
        return Enumeration(self.sized, self.sizes)

    def _need_of(self, name: str) -> Need:
        if self._open_names:
            raise TooManyPoints(f"data decide `{self._open_names[0]}`")
        return self._enumeration.need(name)

    @cached_property
    def _open_names(self) -> tuple[str, ...]:
        """What ranges depend on that is no size: extreme values of a tensor."""
        return tuple(sorted(names_of(self.sized.graph) - set(self.sizes)))

    def _counted(self, name: str, count: Callable[[str], Counted]) -> Counted:
        """What `count` says of a stage, or a diagnostic where it cannot be counted."""
        self._require_sizes()
        self._require_stage(name)
        try:
            return count(name)
        except TooManyPoints as problem:
            message = f"the elements of `{name}` cannot be counted: {problem}"
            help = f"count at smaller sizes, at most {LIMIT} points; `bounds()` without sizes has expressions"
            stage = self.sized.graph.stage(name)
            raise refuse(self.graph, codes.NOT_COUNTED, stage, message, help) from None

    def stage(self, name: str) -> StageNeed:
        """The numbers of one stage.

        Raises:
            CompileError: TC411 for an unknown stage, or without sizes, TC412 where they cannot be counted.
        """
        return self._counted(name, self._stage)

    @cached_property
    def _stages(self) -> dict[str, StageNeed]:
        """The numbers of stages that somebody has asked for."""
        return {}

    def _stage(self, name: str) -> StageNeed:
        if name not in self._stages:
            self._stages[name] = self._numbers_of(name)
        return self._stages[name]

    def _numbers_of(self, name: str) -> StageNeed:
        need = self._need_of(name)
        exact, hull = need.per_visit(), need.hull_per_visit()
        tvm = self._boxes_per_visit(self.tvm[name], need)
        found = self.symbolic[name]
        tested = self._generated.guard(name) is not None
        boxes = exact if tested else self._computed_per_visit(need, found.box)
        computed = boxes if tested else self._new_per_visit(need, name, boxes)
        distinct = len(distinct_rows(need.elements))
        nbytes = max(1, self.graph_of(name).program.tensor(found.stage.target).dtype.bits // 8)
        same = exact == boxes
        storage = self.graph_of(name).stage(name).storage
        held = max(need.hull_per_visit(storage.pad) if storage.layout is None else hull, default=0)
        return StageNeed(
            name, len(need.visits), exact, hull, tvm, computed, distinct, same, self.region(name), nbytes, held
        )

    def graph_of(self, name: str) -> StageGraph:
        """The graph whose stages the bounds describe: inlined ones have been substituted."""
        self._require_stage(name)
        return self.sized.graph

    def _require_stage(self, name: str) -> None:
        if name in self.symbolic:
            return
        names = ", ".join(f"`{stage}`" for stage in self)
        inlined = any(stage.name == name for stage in self.graph.stages)
        message = f"`{name}` is inlined" if inlined else f"there is no stage `{name}`"
        raise refuse(self.graph, codes.FOREIGN_SCHEDULE, None, message, f"the stages are {names}")

    def region(self, name: str) -> tuple[str, ...]:
        """The box that the loops of a stage run over, one half-open interval per dimension, as text."""
        return self._region(self.sized[name])

    def _region(self, bounds: StageBounds) -> tuple[str, ...]:
        return tuple(str(Range(self._number(low), self._number(extent))) for low, extent in bounds.box)

    def _boxes_per_visit(self, bounds: StageBounds, need: Need) -> tuple[int, ...]:
        """Number of elements of a symbolic box at every visit."""
        return Enumeration(self.sized, self.sizes).box_counts(need.path, bounds.box, need.visits)

    def _computed_per_visit(self, need: Need, box: Sequence[tuple[SizeExpr, SizeExpr]]) -> tuple[int, ...]:
        """What loops over a box run over: the box, at visits that are reached."""
        engine = Enumeration(self.symbolic, self.sizes)
        counts = engine.box_counts(need.path, box, need.visits)
        reached = engine.reached(need.path, need.visits)
        return tuple(count if here else 0 for count, here in zip(counts, reached, strict=True))

    def _new_per_visit(self, need: Need, name: str, boxes: tuple[int, ...]) -> tuple[int, ...]:
        """What loops over a box compute where a window keeps elements: all of them at its first place, later what is new."""
        window = self._window(name)
        if window is None:
            return boxes
        box = list(self.symbolic[name].box)
        low, extent = box[window.dimension]
        box[window.dimension] = (low, extent - window.kept)
        later = self._computed_per_visit(need, box)
        moved = need.visits[:, need.path.index((window.consumer, window.leaf))] > 0
        return tuple(new if more else count for new, count, more in zip(later, boxes, moved.tolist(), strict=True))

    def _window(self, name: str) -> Window | None:
        """What a stage keeps from visit to visit, if it does."""
        found = window_of(self.symbolic, self.symbolic.graph.stage(name))
        tested = found is not None and self._generated.guard(name) is not None
        return None if tested else found

    @property
    def has_numbers(self) -> bool:
        """Whether counts are available: every size is given, or there is none."""
        return all(name in self.sizes for name in required_sizes(self.graph))

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Notes about what is computed needlessly (TC402), again (TC408), known only with numbers (TC409), or not kept (TC413)."""
        found: list[Diagnostic] = []
        for name in self:
            need, span = self.need(name), self.graph_of(name).stage(name).statement.span
            if need.needs_numbers and not self.sizes:
                found.append(exact_with_numbers(name, need.reason, self.graph.program.sizes, span))
            if self.graph_of(name).stage(name).storage.rolling and self._window(name) is None:
                reason = window_problem(self.symbolic, name) or "its loops test which elements are needed"
                found.append(not_rolling(name, reason, span))
            if self.has_numbers and self._window(name) is None:  # which computes each element once
                with suppress(TooManyPoints):
                    has = self._stage(name)
                    found += counted(name, span, has.hull, has.elements, has.computed, has.distinct)
        return tuple(found)

    def table(self) -> str:
        """One line per stage: visits, elements by TVM's rules, of the boxes, needed and computed, bytes held, region.

        Numbers per visit stand in parentheses, each different one once, in order of first occurrence. Without sizes only whether
        the region is exact, and the region.
        """
        if not self.has_numbers:
            rows = [("stage", "exact", "region")]
            rows += [(name, "yes" if self._is_exact(name) else "no", " x ".join(self.region(name))) for name in self]
            return _aligned(rows)
        rows = [("stage", "visits", "TVM", "hull", "exact", "computed", "bytes", "region")]
        rows += [self._row(name) for name in self]
        return _aligned(rows)

    def _row(self, name: str) -> tuple[str, ...]:
        region = " x ".join(self.region(name)) or "()"
        try:
            need = self._stage(name)
        except TooManyPoints as problem:
            return name, "?", "?", "?", str(problem), "?", "?", region
        counts = (need.tvm_per_visit, need.hull_per_visit, need.elements_per_visit, need.computed_per_visit)
        return name, str(need.visits), *map(_counts_text, counts), str(need.memory), region

    @cached_property
    def refused(self) -> Diagnostic | None:
        """What a call with these sizes says instead of computing."""
        if not self.sizes:
            return None
        program = self.graph.base
        ranges = infer_ranges(program)
        try:
            found = make_bind(program, ranges, preconditions(program, ranges))(self.sizes)
        except (KeyError, ValueError):  # a size that no bound needs is not given, or a range is known only to a call
            return None
        return found if isinstance(found, Diagnostic) else None

    def __str__(self) -> str:
        problem = self.refused
        said = (
            ""
            if problem is None
            else f"a call with these sizes is refused ({problem.code.number}): {problem.message}\n\n"
        )
        return f"{said}{self.loops()}\n\n{self.table()}"

    __repr__ = __str__

    def _require_sizes(self) -> None:
        needed = required_sizes(self.graph)
        missing = [name for name in needed if name not in self.sizes]
        if missing:
            message = f"exact counts need a value for {', '.join(f'`{name}`' for name in missing)}"
            hint = ", ".join(f"{name}=64" for name in needed)
            raise refuse(self.graph, codes.FOREIGN_SCHEDULE, None, message, f"`schedule.bounds({hint})`")

    def loops(self, keep_trivial: bool = False) -> str:
        """The loop nest with these bounds, as text.

        Args:
            keep_trivial: show loops of one iteration as well.
        """
        lines: list[str] = []
        for stage in self.sized.graph.stages:
            if stage.attach.kind == "root":
                self._nest(stage, 0, keep_trivial, lines)
        return "\n".join(lines)

    def _nest(self, stage: Stage, depth: int, keep: bool, lines: list[str]) -> None:
        graph, ranges = self.sized.graph, self[stage.name]
        shared = 0
        if stage.attach.kind == "with":
            other = graph.stage(stage.attach.stage)
            shared = other.leaves.index(stage.attach.axis) + 1
        after: list[tuple[Stage, int]] = []
        step = stage.tensorize
        for leaf in stage.leaves[shared : len(stage.leaves) - (len(step.axes) if step else 0)]:
            span = ranges[leaf]
            if keep or span.extent != 1:
                note = ", ".join(filter(None, (stage.annotation(leaf), (said := stage.tail(leaf)) and f"tail {said}")))
                end = max(0, span.extent) if isinstance(span.extent, int) else shown(span.extent)
                lines.append("  " * depth + f"for {stage.name}[{leaf}] in 0:{end}" + (f"   # {note}" if note else ""))
                depth += 1
            for each in graph.stages:
                if each.attach.kind == "at" and (each.attach.stage, each.attach.axis) == (stage.name, leaf):
                    if graph.stages_on(each.target)[0].name == each.name:
                        box = " x ".join(self.region(each.name))
                        rolling = "" if self._window(each.name) is None else ", rolling"
                        lines.append("  " * depth + f"allocate {each.target} {box}   # {graph.scope(each)}{rolling}")
                    self._nest(each, depth, keep, lines)
                if each.attach.kind == "with" and (each.attach.stage, each.attach.axis) == (stage.name, leaf):
                    after.append((each, depth))
        tested = self._generated.guard(stage.name) is not None
        notes = ["only elements that are needed"] if tested else []
        if step is not None:
            notes.append(f"{step.intrinsic} over {', '.join(step.axes)}")
        notes += [f"`{each.name}` inlined" for each in self._inlined_into(stage.name)]
        lines.append("  " * depth + shown_line(stage.statement.text) + (f"   # {', '.join(notes)}" if notes else ""))
        for each, at in after:
            self._nest(each, at, keep, lines)

    def _inlined_into(self, name: str) -> tuple[Stage, ...]:
        """The inlined stages that a stage reads, also through others."""
        found: dict[str, Stage] = {}
        for stage in reversed(self.graph.stages):
            users = {user.name for user in self.graph.consumers(stage.name)}
            if stage.attach.kind == "inline" and users & {name, *found}:
                found[stage.name] = stage
        return tuple(reversed(found.values()))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data, schema `tc-jupyter/bounds/1`.

        Per stage: attachment and attach path, every axis with its range and the one of TVM's rules, the region by both, the
        requests of the consumers, the exact set as text, and with all sizes the counts (visits, elements by TVM's rules, of the
        boxes, needed and computed, in total and per visit, bytes held by both).
        """
        stages = [self._stage_json(name) for name in self]
        return {
            "schema": "tc-jupyter/bounds/1",
            "sizes": dict(self.sizes),
            "exact": self.exact if not self.sizes else all(stage["exact"] for stage in stages),
            "stages": stages,
            "loops": self.loops(),
            "diagnostics": [
                {"code": note.code.number, "name": note.code.name, "message": note.message, "help": note.help}
                for note in self.diagnostics
            ],
        }

    def _stage_json(self, name: str) -> dict[str, Any]:
        found, attach = self.sized[name], self.sized[name].stage.attach
        need = self.need(name)
        entry: dict[str, Any] = {
            "name": name,
            "target": found.stage.target,
            "statement": shown_line(found.stage.statement.text),
            "output": name in self.sized.graph.outputs,
            "attach": {"kind": attach.kind, "stage": attach.stage, "axis": attach.axis},
            "path": [list(loop) for loop in self.sized.graph.attach_path(name)],
            "scope": self.sized.graph.scope(found.stage),
            "intrinsic": found.stage.tensorize.intrinsic if found.stage.tensorize else None,
            "axes": self._axes_json(name),
            "relations": [_relation_json(relation) for relation in found.stage.relations],
            "region": list(self.region(name)),
            "tvm_region": list(self._region(self.tvm[name])),
            "requests": [self._request(request) for request in found.requests],
            "tvm_requests": [self._request(request) for request in self.tvm[name].requests],
            "need": {
                "exact": need.exact,
                "reason": need.reason,
                "path": list(need.path),
                "set": None if need.mapping is None else str(need.mapping.here()),
            },
            "exact": self._is_exact(name),
        }
        return entry | self._counts(name) if self.has_numbers else entry

    def _axes_json(self, name: str) -> list[dict[str, Any]]:
        stage, tvm = self.sized[name].stage, self.tvm_axes(name)
        return [
            {
                "name": axis,
                "kind": stage.kind(axis),
                "leaf": axis in stage.leaves,
                "annotation": stage.annotation(axis),
                "min": _text(span.min),
                "extent": _text(span.extent),
                "tvm_min": _text(tvm[axis].min),
                "tvm_extent": _text(tvm[axis].extent),
            }
            for axis, span in self[name].items()
        ]

    def _counts(self, name: str) -> dict[str, Any]:
        try:
            need = self._stage(name)
        except TooManyPoints as problem:
            return {"counts": None, "because": str(problem)}
        totals = {"exact": need.elements, "hull": need.hull, "tvm": need.tvm, "computed": need.computed}
        per_visit = {
            "exact": need.elements_per_visit,
            "hull": need.hull_per_visit,
            "tvm": need.tvm_per_visit,
            "computed": need.computed_per_visit,
        }
        return {
            "counts": {"visits": need.visits, **totals, "distinct": need.distinct},
            "per_visit": {key: list(values[:MOST_VISITS]) for key, values in per_visit.items()},
            "memory": {"bytes": need.memory, "tvm_bytes": need.tvm_memory},
            "exact": need.exact,
        }

    def _request(self, request: Request) -> dict[str, Any]:
        box = [
            None if ends is None else str(Range(self._number(ends[0]), self._number(ends[1] + 1 - ends[0])))
            for ends in request.box
        ]
        return {"consumer": request.consumer, "tensor": request.read.tensor, "box": box, "exact": request.exact}


MOST_VISITS = 4096
"""Visits whose counts `to_json` lists."""


def _relation_json(relation: Relation) -> dict[str, Any]:
    match relation:
        case Split():
            kind = {"kind": "split", "factor": relation.factor, "nparts": relation.nparts}
            kind |= {} if relation.tail is None else {"tail": relation.tail}
        case Fuse():
            kind = {"kind": "fuse"}
        case Skew():
            kind = {"kind": "skew", "factor": relation.factor}
    return kind | {"parents": list(parents_of(relation)), "children": list(children_of(relation))}


def _text(value: int | SizeExpr) -> str:
    return str(value) if isinstance(value, int) else shown(value)


def _counts_text(per_visit: tuple[int, ...]) -> str:
    """`80 (16)`: the total, and each different count of a visit."""
    if len(per_visit) == 1:
        return str(per_visit[0])
    different = list(dict.fromkeys(per_visit))
    shown = ", ".join(map(str, different[:6])) + (", ..." if len(different) > 6 else "")
    return f"{sum(per_visit)} ({shown})"


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def infer_bound(graph: StageGraph, sizes: Mapping[str, Any] | None = None) -> Bounds:
    """Infer the bounds of all stages.

    Args:
        sizes: values of all sizes, and of the integer scalars that ranges and subscripts depend on, for numbers; none for
            expressions.

    Raises:
        CompileError: TC614, some but not all sizes are given; TC411, one is unknown, or is no size.

    Source: TVM, "InferBound Pass".
    """
    given = dict(sizes or {})
    known = (*graph.program.sizes, *graph.base.integer_scalars)
    unknown = [name for name in given if name not in known]
    missing = [name for name in required_sizes(graph) if name not in given] if given else []
    help = "the sizes are " + (", ".join(f"`{name}`" for name in known) or "none")
    wrong = ((unknown, codes.FOREIGN_SCHEDULE, "is no size of this def"), (missing, codes.SIZE_MISSING, "is not given"))
    for names, code, what in wrong:
        if names:
            raise refuse(graph, code, None, f"`{names[0]}` {what}", help)
    try:
        given = graph.base.numbers(given)
    except (TypeError, ValueError) as wrong:
        raise refuse(graph, codes.FOREIGN_SCHEDULE, None, str(wrong), help) from None
    plain = inject_inline(graph)
    symbolic = infer_symbolic(plain)
    numbers = sized_graph(plain, given)
    sized = infer_symbolic(numbers) if given else symbolic
    return Bounds(graph, symbolic, sized, infer_symbolic(numbers, tvm=True), given)


__all__ = ["AxisRanges", "Bounds", "Range", "StageNeed", "infer_bound", "shown"]
