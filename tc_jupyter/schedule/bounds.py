"""The bounds map: what every axis runs over, what every stage must compute, and what TVM's rules would have computed.

Worked example (`schedule.md`, Ex. 6): `C(i,j) = B(i,j) * 3` over 4 x 4, `i, j` fused and split by 4, B attached at the outer loop.
`bounds.stage("B")` has 4 visits of 4 elements; TVM falls back to the whole of B, 16 elements per visit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tc_jupyter.diagnostics import codes
from tc_jupyter.ranges import Extremum, SizeExpr, constant, to_python

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
from .primitives import refuse
from .stage import Stage, StageGraph
from .visits import Enumeration, Need, TooManyPoints


@dataclass(frozen=True, slots=True)
class Range:
    """`min <= axis < min + extent`; integers when all sizes are given, else expressions of sizes and outer loops."""

    min: int | SizeExpr
    extent: int | SizeExpr

    def __str__(self) -> str:
        low, extent = constant(0) + self.min, constant(0) + self.extent
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
        computed_per_visit: elements of the box that the generated loops run over.
        exact: at every visit nothing is computed that is not needed.
        region: box that the generated loops run over, as text per dimension.
    """

    stage: str
    visits: int
    elements_per_visit: tuple[int, ...]
    hull_per_visit: tuple[int, ...]
    tvm_per_visit: tuple[int, ...]
    computed_per_visit: tuple[int, ...]
    exact: bool
    region: tuple[str, ...]

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


@dataclass(frozen=True)
class Bounds(Mapping[str, AxisRanges]):
    """Bounds of all stages of a schedule.

    `bounds["C"]["i.outer"]` is a `Range`, `bounds.stage("B")` the numbers of a stage. `exact` says whether every box is known to
    hold nothing that is not needed.

    Attributes:
        graph: the graph as scheduled, inlined stages included.
        symbolic: the boxes that loops are generated from, and the requests behind them.
        tvm: the same with TVM's interval rules.
        sizes: the given sizes; empty for symbolic bounds.
    """

    graph: StageGraph
    symbolic: SymbolicBounds
    tvm: SymbolicBounds
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, stage: str) -> AxisRanges:
        found = self.symbolic[stage]
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

    def _number(self, value: SizeExpr) -> int | SizeExpr:
        known = {name: constant(number) for name, number in self.sizes.items()}
        value = value.substitute(known) if known else value
        return value.constant if value.is_constant else value

    @property
    def exact(self) -> bool:
        """Whether no stage computes an element that is not needed."""
        if self.sizes:
            return all(self.stage(name).exact for name in self)
        return all(self.symbolic[name].exact for name in self)

    @cached_property
    def needs(self) -> Mapping[str, Need]:
        """Per stage the exact elements of every visit.

        Raises:
            CompileError: TC411 without sizes.
            TooManyPoints: the space is too large to enumerate.
        """
        self._require_sizes()
        return Enumeration(self.symbolic, self.sizes).run()

    def stage(self, name: str) -> StageNeed:
        """The numbers of one stage.

        Raises:
            CompileError: TC411 for an unknown stage, or without sizes.
        """
        self._require_sizes()
        if name not in self.symbolic.stages:
            names = ", ".join(f"`{stage}`" for stage in self)
            raise refuse(
                self.graph, codes.FOREIGN_SCHEDULE, None, f"there is no stage `{name}`", f"the stages are {names}"
            )
        need = self.needs[name]
        exact, hull = need.per_visit(), need.hull_per_visit()
        tvm = self._boxes_per_visit(self.tvm[name], need)
        computed = self._boxes_per_visit(self.symbolic[name], need)
        return StageNeed(name, len(need.visits), exact, hull, tvm, computed, exact == computed, self.region(name))

    def region(self, name: str) -> tuple[str, ...]:
        """The box that the loops of a stage run over, one half-open interval per dimension, as text."""
        box = self.symbolic[name].box
        return tuple(str(Range(self._number(low), self._number(extent))) for low, extent in box)

    def _boxes_per_visit(self, bounds: StageBounds, need: Need) -> tuple[int, ...]:
        """Number of elements of a symbolic box at every visit."""
        engine = Enumeration(self.symbolic, self.sizes)
        count = len(need.visits)
        loops = {variable(*loop): need.visits[:, column] for column, loop in enumerate(need.path)}
        total = [1] * count
        for _, extent in bounds.box:
            values = engine.number(extent, loops, count)
            total = [t * max(0, int(v)) for t, v in zip(total, values, strict=True)]
        return tuple(total)

    def _require_sizes(self) -> None:
        missing = [name for name in self.graph.program.sizes if name not in self.sizes]
        if missing:
            message = f"exact counts need a value for {', '.join(f'`{name}`' for name in missing)}"
            hint = ", ".join(f"{name}=64" for name in self.graph.program.sizes)
            raise refuse(self.graph, codes.FOREIGN_SCHEDULE, None, message, f"`schedule.bounds({hint})`")

    def loops(self, keep_trivial: bool = False) -> str:
        """The loop nest with these bounds, as text.

        Args:
            keep_trivial: show loops of one iteration as well.
        """
        lines: list[str] = []
        for stage in self.symbolic.graph.stages:
            if stage.attach.kind == "root":
                self._nest(stage, 0, keep_trivial, lines)
        return "\n".join(lines)

    def _nest(self, stage: Stage, depth: int, keep: bool, lines: list[str]) -> None:
        graph, ranges = self.symbolic.graph, self[stage.name]
        shared = 0
        if stage.attach.kind == "with":
            other = graph.stage(stage.attach.stage)
            shared = other.leaves.index(stage.attach.axis) + 1
        after: list[tuple[Stage, int]] = []
        for leaf in stage.leaves[shared:]:
            span = ranges[leaf]
            if keep or span.extent != 1:
                note = stage.annotation(leaf)
                end = span.extent if isinstance(span.extent, int) else shown(span.extent)
                lines.append("  " * depth + f"for {stage.name}[{leaf}] in 0:{end}" + (f"   # {note}" if note else ""))
                depth += 1
            for each in graph.stages:
                if each.attach.kind == "at" and (each.attach.stage, each.attach.axis) == (stage.name, leaf):
                    if graph.stages_on(each.target)[0].name == each.name:
                        box = " x ".join(self.region(each.name))
                        scope = "local" if each.storage.scope == "global" else each.storage.scope
                        lines.append("  " * depth + f"allocate {each.target} {box}   # {scope}")
                    self._nest(each, depth, keep, lines)
                if each.attach.kind == "with" and (each.attach.stage, each.attach.axis) == (stage.name, leaf):
                    after.append((each, depth))
        lines.append("  " * depth + stage.statement.text)
        for each, at in after:
            self._nest(each, at, keep, lines)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data: axes, boxes, attach paths, requests; counts when all sizes are given."""
        stages: list[dict[str, Any]] = []
        for name in self:
            found = self.symbolic[name]
            entry: dict[str, Any] = {
                "name": name,
                "attach": {
                    "kind": found.stage.attach.kind,
                    "stage": found.stage.attach.stage,
                    "axis": found.stage.attach.axis,
                },
                "path": [list(loop) for loop in self.symbolic.graph.attach_path(name)],
                "axes": [
                    {
                        "name": axis,
                        "kind": found.stage.kind(axis),
                        "leaf": axis in found.stage.leaves,
                        "annotation": found.stage.annotation(axis),
                        "min": str(_text(span.min)),
                        "extent": str(_text(span.extent)),
                    }
                    for axis, span in self[name].items()
                ],
                "region": list(self.region(name)),
                "requests": [self._request(request) for request in found.requests],
                "exact": found.exact,
            }
            if self.sizes or not self.graph.program.sizes:
                entry |= self._counts(name)
            stages.append(entry)
        return {"schema": "tc-jupyter/bounds/1", "sizes": dict(self.sizes), "stages": stages}

    def _counts(self, name: str) -> dict[str, Any]:
        try:
            need = self.stage(name)
        except TooManyPoints as problem:
            return {"counts": None, "because": str(problem)}
        return {
            "counts": {"visits": need.visits, "exact": need.elements, "hull": need.hull, "tvm": need.tvm},
            "exact": need.exact,
        }

    def _request(self, request: Request) -> dict[str, Any]:
        box = [
            None if ends is None else str(Range(self._number(ends[0]), self._number(ends[1] + 1 - ends[0])))
            for ends in request.box
        ]
        return {"consumer": request.consumer, "box": box, "exact": request.exact}


def _text(value: int | SizeExpr) -> str:
    return str(value) if isinstance(value, int) else shown(value)


def infer_bound(graph: StageGraph, sizes: Mapping[str, Any] | None = None) -> Bounds:
    """Infer the bounds of all stages.

    Args:
        sizes: values of all sizes, for numbers; none for expressions.

    Raises:
        CompileError: TC411 when some but not all sizes are given, one is unknown, or one is negative.

    Source: TVM, "InferBound Pass"; `schedule.md` 3.
    """
    given = dict(sizes or {})
    known = set(graph.program.sizes)
    unknown = [name for name in given if name not in known]
    missing = [name for name in graph.program.sizes if name not in given] if given else []
    negative = [
        name for name, value in given.items() if isinstance(value, bool) or not isinstance(value, int) or value < 0
    ]
    for names, what in (
        (unknown, "is no size of this def"),
        (missing, "is not given"),
        (negative, "is no size: not an integer of 0 or more"),
    ):
        if names:
            message = f"`{names[0]}` {what}"
            sizes_text = ", ".join(f"`{name}`" for name in graph.program.sizes) or "none"
            raise refuse(graph, codes.FOREIGN_SCHEDULE, None, message, f"the sizes are {sizes_text}")
    plain = inject_inline(graph)
    return Bounds(graph, infer_symbolic(plain), infer_symbolic(plain, tvm=True), given)


__all__ = ["AxisRanges", "Bounds", "Range", "StageNeed", "infer_bound", "shown"]
