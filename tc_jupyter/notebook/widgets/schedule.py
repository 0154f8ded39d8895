# ruff: noqa: E501  (an element of a picture is one line)
"""The schedule explorer: stages as a graph, the loop nest with its bounds, what every visit must compute, edits with undo.

Every picture is of stored values: `Schedule.bounds` for loops and boxes, its enumeration for the exact elements of a visit, TVM's
rules for the over-approximation beside them. A refused edit changes nothing and shows the message with its witness.

Worked example: in `ScheduleView(f)`, `apply({"primitive": "split", "stage": "C", "axis": "i", "factor": 16, "apply": True})` adds
`.split('C', 'i', factor=16)`; `apply({"undo": True})` takes it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.function import Function, OpenRanks
from tc_jupyter.notebook.card import term
from tc_jupyter.ranges import from_expr, to_python
from tc_jupyter.schedule import (
    GPU_AXES,
    Bounds,
    Schedule,
    Skew,
    StageNeed,
    required_sizes,
    schedule_of,
    variable,
)
from tc_jupyter.schedule.phases import phases
from tc_jupyter.schedule.stage import children_of
from tc_jupyter.schedule.visits import Enumeration, Need, TooManyPoints, distinct_rows

from .axes import hypergraph_svg, refused_witness, witness_points_svg
from .execution import Execution, execution, execution_html, points_of
from .picture import (
    ACCENT,
    BAD,
    LINE,
    LISTING,
    MUTED,
    Content,
    Control,
    Picture,
    action,
    as_integer,
    code,
    folded,
    marked,
    one_line,
    table,
    words,
)
from .sizes import SizeNames, example_sizes, read_sizes, size_names
from .svg import LEADING, in_rows, letters, short, svg, wide

ON_AXIS = ("split", "parallel", "vectorize", "unroll", "bind", "rfactor")
TWO_AXES = ("fuse", "skew", "reorder", "tile")
ON_STAGE = ("compute_root", "compute_inline", "cache_write")
WITH_OTHER = ("compute_at", "compute_with", "cache_read")
PRIMITIVES = ("split", "fuse", "skew", "reorder", "tile", "time_tile", *ON_AXIS[1:], *WITH_OTHER, *ON_STAGE)
_HIGHEST = {"time_tile": 4096}
"""Factors of primitives that a slider goes up to; 64 for others."""
_MOST_STAGES = 12
_MOST_CELLS = 2_500
_LONGEST = 20_000
_MOST_ORDERED = 20_000
"""Points of a statement whose order is drawn."""

Ints = NDArray[np.int64]


class ScheduleView(Picture):
    """A schedule with its history.

    Attributes:
        history: all schedules since the start; `present` is the one that is shown.
    """

    name = "schedule"
    title = "schedule"

    def __init__(self, function: Function, schedule: Schedule | None = None, **sizes: int) -> None:
        """`schedule`: where to begin; the function's own, untransformed by default."""
        super().__init__(function)
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = {}
        self.history: list[Schedule] = []
        self.present = 0
        self.values: dict[str, Any] = {"primitive": "split", "factor": 4, "steps": 4, "thread": "threadIdx.x"}
        self.stage = self.axis = ""
        self.visit = self.time = self.message = 0
        self.refused: CompileError | None = None
        self.generated = False
        try:
            found = function.analysis
        except OpenRanks as problem:
            self.problem = str(problem)
            return
        self.known = size_names(found)
        self.sizes = example_sizes(self.known, sizes)
        if schedule is not None:
            function.with_schedule(schedule)  # which refuses what is none of it
        self.history = [schedule or function.schedule()]
        self._settle()

    @property
    def schedule(self) -> Schedule:
        """What is shown."""
        return self.history[self.present]

    # values ----------------------------------------------------------------------------------------------------------------------

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Sizes, what is chosen, and edits: `apply`, `undo`, `redo`, `default`, `plain`."""
        del dragging
        if self.known is None:
            return
        self.sizes, self.problem = read_sizes(self.known, self.sizes, values)
        self.refused = None
        if values.get("stage") in self.schedule.stages and values["stage"] != self.stage:
            self.stage, self.axis, self.visit, self.time = str(values["stage"]), "", 0, 0
        self.axis = str(values.get("axis", self.axis))
        if {"primitive", "axis", "stage"} & values.keys():
            self.values["second"] = None  # what is usual for the new choice
        chosen = ("primitive", "factor", "steps", "thread", "other", "second")
        self.values |= {k: v for k, v in values.items() if k in chosen}
        self.generated = bool(values.get("generated", self.generated))
        visit, time = as_integer(values.get("visit")), as_integer(values.get("time"))
        self.visit = self.visit if visit is None else max(0, visit)
        self.time = self.time if time is None else max(0, time)
        message = as_integer(values.get("message"))
        self.message = self.message if message is None else max(0, message)
        self._settle()
        if values.get("apply"):
            self._edit()
        if values.get("undo") and self.present > 0:
            self.present -= 1
        if values.get("redo") and self.present + 1 < len(self.history):
            self.present += 1
        if values.get("plain"):
            self._push(schedule_of(self.known.found.program, self.known.found.ranges))
        if values.get("default"):
            self._push(self.function.default_schedule(**self.sizes))
        self._settle()

    def _push(self, schedule: Schedule) -> None:
        self.history = [*self.history[: self.present + 1], schedule]
        self.present = len(self.history) - 1

    def _settle(self) -> None:
        """Choices that exist in the present schedule."""
        stages = self.schedule.stages
        if self.stage not in stages and stages:
            self.stage = stages[-1]
        leaves = self.schedule.leaves(self.stage) if stages else ()
        if self.axis not in leaves:
            self.axis = leaves[0] if leaves else ""
        if self.values.get("primitive") not in PRIMITIVES:
            self.values["primitive"] = "split"
        others = self._others()
        if self.values.get("other") not in others:
            self.values["other"] = others[-1] if others else ""
        seconds = self._seconds()
        if self.values.get("second") not in seconds:
            self.values["second"] = self._usual_second(seconds)

    def _usual_second(self, seconds: tuple[str, ...]) -> str:
        """Of another stage the innermost loop; of the same one the loop inside of the chosen one, or around it."""
        if self.values["primitive"] in ("compute_at", "compute_with") or not seconds:
            return seconds[-1] if seconds else ""
        return seconds[min(self.schedule.leaves(self.stage).index(self.axis), len(seconds) - 1)]

    def _others(self) -> tuple[str, ...]:
        """Stages (for `cache_read`: tensors) that an edit may name besides."""
        if self.values["primitive"] == "cache_read":
            return tuple(
                dict.fromkeys(
                    read.tensor for read in self.schedule.graph.stage(self.stage).statement.reads() if read.indices
                )
            )
        return tuple(name for name in self.schedule.stages if name != self.stage)

    def _seconds(self) -> tuple[str, ...]:
        """Loops that an edit may name besides: of the other stage, or of the same one."""
        if self.values["primitive"] in ("compute_at", "compute_with"):
            return self.schedule.leaves(self.values["other"]) if self.values["other"] else ()
        return tuple(leaf for leaf in self.schedule.leaves(self.stage) if leaf != self.axis) if self.stage else ()

    def _edit(self) -> None:
        """Apply the chosen primitive; a refusal is kept to be shown."""
        try:
            self._push(self._edited())
        except CompileError as problem:
            self.refused = problem
        except (ValueError, KeyError, TypeError) as problem:
            self.problem = one_line(problem)

    def _edited(self) -> Schedule:
        s, stage, axis, v = self.schedule, self.stage, self.axis, self.values
        factor = as_integer(v.get("factor"))
        match v["primitive"]:
            case "split":
                return s.split(stage, axis, factor=factor)
            case "tile":
                return s.tile(stage, axis, v["second"], factor or 0, factor or 0)
            case "skew":
                return s.skew(stage, axis, v["second"], factor or 0)
            case "time_tile":
                return s.time_tile(stage, as_integer(v.get("steps")) or 0, factor or 0)
            case "fuse":
                return s.fuse(stage, axis, v["second"])
            case "reorder":
                leaves = s.leaves(stage)
                pair = sorted([axis, v["second"]], key=leaves.index)
                return s.reorder(stage, *reversed(pair))
            case "bind":
                return s.bind(stage, axis, str(v.get("thread")))
            case "compute_at":
                return s.compute_at(stage, v["other"], v["second"])
            case "compute_with":
                return s.compute_with(stage, v["other"], v["second"])
            case "cache_read":
                return s.cache_read(v["other"], stage)
            case "rfactor" | "parallel" | "vectorize" | "unroll":
                return getattr(s, v["primitive"])(stage, axis)
            case _:
                return getattr(s, v["primitive"])(stage)

    # content ---------------------------------------------------------------------------------------------------------------------

    def bounds(self) -> Bounds:
        """The bounds at the present sizes.

        Raises:
            CompileError: the sizes do not fit.
        """
        assert self.known is not None
        needed = required_sizes(self.schedule.graph)
        return self.schedule.bounds(**{name: self.sizes[name] for name in needed if name in self.sizes})

    def content(self, live: bool = False) -> Content:
        """Graph, loop nest, needs, region of the chosen stage, code of the schedule."""
        if self.known is None or not self.schedule.stages:
            said = self.problem or "this def has no statement"
            return Content(words(said), text=said)
        controls = self._controls() if live else ()
        parts = [words(self.problem, "✗", BAD)] if self.problem else []
        if self.refused is not None:
            parts.append(refusal(self.refused) + self._witness())
        python = self.schedule.to_python(self.function.__name__)
        try:
            bounds = self.bounds()
            loops = bounds.loops()
        except CompileError as problem:
            parts.append(words(one_line(problem), "✗", BAD))
            return Content("".join(parts), self.known.controls(self.sizes), {"python": python}, text=python)
        refused = self.known.refusal(self.sizes)
        parts += [words(refused, "✗", BAD)] if refused else []
        needs = self._needs(bounds)
        parts += [self._graph(live), self._nest(bounds, live), self._counts(bounds, needs)]
        data: dict[str, Any] = {"python": python, "visits": 0, "visit": self.visit}
        if isinstance(needs, str):
            parts.append(words(f"no exact counts at these sizes: {needs}; formulas stay"))
        else:
            need = bounds.needs[self.stage]
            data["visits"] = len(need.visits)
            parts.append(self._region(bounds, need, live))
            made = self._execution(bounds)
            if made is not None:
                data["times"], data["time"] = made.steps, min(self.time, max(0, made.steps - 1))
                play = (
                    '<button type="button" data-play="time" data-key="play.time">play</button>'
                    if live and made.steps > 1
                    else ""
                )
                all_needed = self.stage not in needs or needs[self.stage].exact
                which = "" if all_needed else " at the points that are needed"
                parts.append(
                    f"<div><b>order of {code(self.stage)}</b>{which} {play}</div>{execution_html(made, data['time'])}"
                )
                if live and made.steps > 1:
                    controls = (*controls, Control("time", "size", "step", data["time"], high=made.steps - 1))
            if len(need.visits) > 1 and live:
                at = min(self.visit, len(need.visits) - 1)
                controls = (*controls, Control("visit", "size", "visit", at, high=len(need.visits) - 1))
        parts.append(self._axes(bounds))
        parts.append(self._phases(bounds, live))
        parts.append(self._python(python, live))
        if live and self.generated:
            parts.append(self._generated())
        unused = (
            ""
            if self.schedule.steps
            else f"  # plain loops; calls run those of `{self.function.__name__}.default_schedule()`"
        )
        return Content(
            "".join(parts),
            controls,
            data,
            text="\n\n".join(filter(None, (refused, self._example() + loops, f"as Python: {python}{unused}"))),
        )

    def _example(self) -> str:
        """A line that says for which sizes the loops are shown."""
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        return f"loops, for the example of {sizes}:\n" if sizes else ""

    def _controls(self) -> tuple[Control, ...]:
        assert self.known is not None
        v = self.values
        primitive = v["primitive"]
        stages = tuple((name, name) for name in self.schedule.stages)
        leaves = tuple((leaf, leaf) for leaf in self.schedule.leaves(self.stage))
        controls = [*self.known.controls(self.sizes)]
        controls.append(Control("primitive", "choice", "edit", primitive, tuple((p, p) for p in PRIMITIVES)))
        controls.append(Control("stage", "choice", "stage", self.stage, stages))
        if primitive in ON_AXIS + TWO_AXES:
            controls.append(Control("axis", "choice", "loop", self.axis, leaves))
        if primitive in WITH_OTHER:
            label = "tensor" if primitive == "cache_read" else "inside" if primitive == "compute_at" else "with"
            controls.append(Control("other", "choice", label, v["other"], tuple((o, o) for o in self._others())))
        if primitive in TWO_AXES or primitive in ("compute_at", "compute_with"):
            label = "at loop" if primitive.startswith("compute") else "and loop"
            controls.append(Control("second", "choice", label, v["second"], tuple((o, o) for o in self._seconds())))
        if primitive == "time_tile":
            controls.append(Control("steps", "size", "steps", v["steps"], low=1, high=64))
        if primitive in ("split", "skew", "tile", "time_tile"):
            label, high = "tile" if primitive == "time_tile" else "factor", _HIGHEST.get(primitive, 64)
            controls.append(Control("factor", "size", label, v["factor"], low=1, high=high))
        if primitive == "bind":
            controls.append(Control("thread", "choice", "to", v["thread"], tuple((t, t) for t in GPU_AXES)))
        controls.append(Control("apply", "button", "apply"))
        controls.append(Control("undo", "button", "undo", disabled=self.present == 0))
        controls.append(Control("redo", "button", "redo", disabled=self.present + 1 >= len(self.history)))
        controls.append(Control("plain", "button", "start again"))
        controls.append(Control("default", "button", "default schedule"))
        controls.append(Control("generated", "check", "generated loops", self.generated))
        return tuple(controls)

    def _needs(self, bounds: Bounds) -> dict[str, StageNeed] | str:
        try:
            return {name: bounds.stage(name) for name in list(bounds)[:_MOST_STAGES]}
        except (TooManyPoints, CompileError, KeyError) as problem:
            return one_line(problem)

    def _graph(self, live: bool) -> str:
        names = self.schedule.stages
        return stage_graph_svg(self.schedule) + (
            "<div>"
            + " ".join(action({"stage": n}, n, live, n == self.stage, f"stage.{n}") for n in names[:_MOST_STAGES])
            + ("" if len(names) <= _MOST_STAGES else f" and {len(names) - _MOST_STAGES} more stages")
            + "</div>"
            if live
            else ""
        )

    def _nest(self, bounds: Bounds, live: bool) -> str:
        lines: list[str] = []
        for line in bounds.loops().split("\n")[:200]:
            head, _, rest = line.lstrip().partition("[")
            stage, axis = head.removeprefix("for "), rest.partition("]")[0]
            known = live and line.lstrip().startswith("for ") and stage in self.schedule.stages
            if known:
                pad = line[: len(line) - len(line.lstrip())]
                pressed = (stage, axis) == (self.stage, self.axis)
                lines.append(
                    f"{escape(pad)}{action({'stage': stage, 'axis': axis}, line.lstrip(), live, pressed, f'{stage}[{axis}]')}"
                )
            else:
                lines.append(escape(line))
        style = LISTING
        return f'<pre data-loops="" style="{style};margin:6px 0;overflow:auto">{chr(10).join(lines)}</pre>'

    def _counts(self, bounds: Bounds, needs: dict[str, StageNeed] | str) -> str:
        if isinstance(needs, str):
            rows = [[code(name), code(" x ".join(bounds.region(name)))] for name in list(bounds)[:_MOST_STAGES]]
            return table(["stage", "region per visit"], rows, "regions")
        rows: list[list[str]] = []
        for name, need in needs.items():
            different = len(distinct_rows(bounds.needs[name].elements))
            again = need.elements - different
            held = (
                max(need.hull_per_visit, default=0)
                * bounds.graph.program.tensor(bounds.symbolic[name].stage.target).dtype.bytes
                if name in bounds.symbolic and _declared(bounds, name)
                else 0
            )
            rows.append(
                [code(name), str(need.visits), str(need.elements), str(need.hull), str(need.tvm), str(sum(need.computed_per_visit)),
                 f"{held} B" if held else "-", str(again) if again else "0", "✓ exact" if need.exact else "computes more than needed"]
            )  # fmt: skip
        head = ["stage", "visits", "exact", "hull", "TVM", "computed", "memory held", "needed again", "result"]
        return table(head, rows, "elements that every stage must compute, over all visits")

    def _region(self, bounds: Bounds, need: Need, live: bool) -> str:
        if not len(need.visits):
            return words("this stage has no visit at these sizes", "∅")
        at = min(self.visit, len(need.visits) - 1)
        picture = region_of(bounds, self.stage, need, at)
        play = (
            action({"visit": 0}, "play from the first visit", live, key="play").replace(
                "<button ", '<button data-play="visit" '
            )
            if live and len(need.visits) > 1
            else ""
        )
        loops = ", ".join(
            f"{s}[{leaf}] = {v}" for (s, leaf), v in zip(need.path, need.visits[at].tolist(), strict=True)
        )
        said = f"visit {at + 1} of {len(need.visits)}" + (f": {loops}" if loops else "")
        return f"<div><b>region of {code(self.stage)}</b>, {escape(said)} {play}</div>{picture}"

    def _execution(self, bounds: Bounds) -> Execution | None:
        """The order of the chosen stage, if it can be enumerated in a moment."""
        try:
            return execution(bounds, self.stage) if points_of(bounds, self.stage) <= _MOST_ORDERED else None
        except (TooManyPoints, CompileError, KeyError, TypeError, ValueError):
            return None

    def _witness(self) -> str:
        """The points that the refused edit is about, in the iteration spaces of their statements."""
        v, graph = self.values, self.schedule.graph
        found = refused_witness(graph, str(v["primitive"]), self.stage, str(v["other"]), str(v["second"]))
        return "" if found is None else witness_points_svg(graph, found)

    def _axes(self, bounds: Bounds) -> str:
        found = bounds.symbolic.get(self.stage)
        if found is None:
            return ""
        stage, tvm = found.stage, bounds.tvm[self.stage]
        relations = {child: escape(text) for children, text in map(_relation, stage.relations) for child in children}
        rows = [
            [code(axis), stage.kind(axis), "leaf" if axis in stage.leaves else "", code(str(span)), relations.get(axis, "root"),
             escape(stage.annotation(axis) or "")]
            for axis, span in bounds[self.stage].items()
        ]  # fmt: skip
        head = ["axis", "kind", "", "range", "made by", "annotation"]
        boxes = "".join(
            f"<div>dimension {n}: hull {code(text)}, TVM {code(_box_text(bounds, tvm.box[n]))}</div>"
            for n, text in enumerate(bounds.region(self.stage))
        )
        path = " → ".join(f"{s}[{leaf}]" for s, leaf in bounds.symbolic.graph.attach_path(self.stage)) or "root"
        return folded(
            f"axes of {self.stage} (hyper-graph of its loops)",
            hypergraph_svg(bounds, self.stage)
            + table(head, rows, f"axes of {self.stage}")
            + boxes
            + f"<div>attach path: {code(path)}</div>",
        )

    def _phases(self, bounds: Bounds, live: bool) -> str:
        """The four phases of InferBound for the chosen stage: every message, one of them current."""
        title = f"the four phases of InferBound for {self.stage}"
        try:
            lines = phases(bounds, self.stage).text()[:_LONGEST].split("\n")
        except (CompileError, TooManyPoints) as problem:
            return folded(title, words(one_line(problem)))
        at = min(self.message, len(lines) - 1)
        style = LISTING
        shown = [
            f'<b aria-current="step">▸ {escape(line)}</b>' if live and n == at else f"  {escape(line)}"
            for n, line in enumerate(lines)
        ]
        steps = (("first", 0), ("back", at - 1), ("next", at + 1))
        buttons = (
            " ".join(action({"message": max(0, n)}, word, live, key=f"message.{word}") for word, n in steps)
            if live
            else ""
        )
        inner = f'<pre data-phases="{len(lines)}" style="{style};margin:2px 0;overflow:auto;max-height:24em">{chr(10).join(shown)}</pre>'
        return folded(title, (f"<div>message {at + 1} of {len(lines)} {buttons}</div>" if live else "") + inner)

    def _python(self, python: str, live: bool) -> str:
        style = LISTING
        copy = '<button type="button" data-copy="python">copy as Python</button>' if live else ""
        shown = f'<pre data-python="" style="{style};margin:2px 0;overflow:auto">{escape(python)}</pre>'
        used = marked(f"`{self.function.__name__}.with_schedule(...)` makes a function of it")
        return f'<div><b>as Python</b> {copy}</div>{shown}<div style="{MUTED}">{used}</div>'

    def _generated(self) -> str:
        try:
            text = self.function.with_schedule(self.schedule).source("loops")[:_LONGEST]
        except (CompileError, ValueError, RuntimeError) as problem:
            return words(f"no loops: {one_line(problem)}", "✗", BAD)
        style = LISTING
        return folded(
            "generated loops",
            f'<pre style="{style};margin:2px 0;overflow:auto;max-height:28em">{escape(text)}</pre>',
            True,
        )


def _declared(bounds: Bounds, name: str) -> bool:
    target = bounds.symbolic[name].stage.target
    return any(tensor.name == target for tensor in bounds.graph.program.tensors)


def _box_text(bounds: Bounds, ends: tuple[Any, Any]) -> str:
    from tc_jupyter.ranges import constant  # noqa: PLC0415

    known = {name: constant(number) for name, number in bounds.sizes.items()}
    low, extent = (end.substitute(known) for end in ends)
    return "empty" if extent.is_constant and extent.offset < 0 else f"[{to_python(low)}, {to_python(low + extent)})"


def _relation(relation: Any) -> tuple[tuple[str, ...], str]:
    if hasattr(relation, "parent"):
        by = f"factor {relation.factor}" if relation.factor is not None else f"{relation.nparts} parts"
        by += f", tail {relation.tail}" if relation.tail else ""
        return (relation.outer, relation.inner), f"split of {relation.parent}, {by}"
    both = f"{relation.outer} and {relation.inner}"
    return children_of(relation), both + (f" skewed by {relation.factor}" if isinstance(relation, Skew) else " fused")


def refusal(problem: CompileError) -> str:
    """The message of a refused edit with its witness (labels) and cure."""
    parts: list[str] = []
    for d in problem.diagnostics:
        said = f"refused ({d.code.number}): {d.message}"
        more = [d.label, *(label.text for label in d.labels)]
        parts.append(words(said, "✗", BAD) + "".join(f"<div>{marked(text)}</div>" for text in more if text))
        parts.append(f"<div>help: {marked(d.help)}</div>" if d.help else "")
    return f'<div data-refused="" role="alert">{"".join(parts)}</div>'


def stage_graph_svg(schedule: Schedule) -> str:
    """Stages from left to right in program order, an arc for each read, a dashed arc for each attachment."""
    names = schedule.stages[:_MOST_STAGES]
    graph = schedule.graph
    shown = {name: f"{number} {short(name, 12)}" for number, name in enumerate(names, 1)}
    width = max([96.0, *(wide(each) + 16 for each in shown.values())])
    parts: list[str] = []
    middle = {name: 12 + n * (width + 34) + width / 2 for n, name in enumerate(names)}
    arcs = [
        abs(middle[user.name] - middle[name])
        for name in names
        for user in graph.consumers(graph.stages_on(graph.stage(name).target)[0].name)
        if user.name in middle and user.name != name
    ]
    attached = any(graph.stage(name).attach.kind != "root" for name in names)
    y = 24 + max(min(44.0, across / 3) for across in arcs) / 2 if arcs else 18.0
    edges: list[str] = []
    below: list[tuple[float, str]] = []
    for name in names:
        stage = graph.stage(name)
        for user in graph.consumers(graph.stages_on(stage.target)[0].name):
            if user.name in middle and user.name != name:
                edges.append(f"{name} → {user.name}")
                a, b = middle[name], middle[user.name]
                parts.append(f'<path d="M{b - 4:.0f} {y - 22}L{b:.0f} {y - 15}L{b + 4:.0f} {y - 22}z"/>')
                parts.append(
                    f'<path d="M{a:.0f} {y - 14}Q{(a + b) / 2:.0f} {y - 14 - min(44, abs(b - a) / 3):.0f} {b:.0f} {y - 15}" fill="none" stroke="currentColor"/>'
                )
        if stage.attach.kind != "root" and stage.attach.stage in middle:
            a, b = middle[name], middle[stage.attach.stage]
            parts.append(f'<path d="M{b - 4:.0f} {y + 22}L{b:.0f} {y + 15}L{b + 4:.0f} {y + 22}z"/>')
            edges.append(f"{name} runs {stage.attach.kind} {stage.attach.stage}[{stage.attach.axis}]")
            parts.append(
                f'<path d="M{a:.0f} {y + 14}Q{(a + b) / 2:.0f} {y + 46} {b:.0f} {y + 15}" fill="none" stroke="{ACCENT}" stroke-dasharray="4 3"/>'
            )
            below.append(((a + b) / 2, f"{stage.attach.kind} {stage.attach.axis}"))
    placed = in_rows(below)
    parts += [letters(x, y + 44 + row * LEADING, said, "middle") for x, row, said in placed]
    high = y + (54 if attached else 20) + LEADING * max([0, *(row for _, row, _ in placed)])
    for name in names:
        out = name in graph.outputs
        x = middle[name] - width / 2
        parts.append(
            f'<rect x="{x:.0f}" y="{y - 14:.0f}" width="{width}" height="28" rx="4" fill="{ACCENT}" fill-opacity=".12" stroke="currentColor" stroke-width="{2 if out else 1}"/>'
        )
        parts.append(letters(middle[name], y + 4, shown[name], "middle"))
    total = max([24 + len(names) * (width + 34), *(x + wide(said) / 2 for x, _, said in placed)])
    label = f"stages {', '.join(names)}; {'; '.join(edges) or 'no stage reads another'}"
    return svg(total, high, "".join(parts), label, {"stages": len(names)})


def tvm_box(bounds: Bounds, stage: str, need: Need, visit: int) -> list[tuple[int, int]]:
    """Lower and upper end per dimension that TVM's rules give for one visit."""
    engine = Enumeration(bounds.symbolic, bounds.sizes)
    loops = {variable(*loop): need.visits[visit : visit + 1, column] for column, loop in enumerate(need.path)}
    ends: list[tuple[int, int]] = []
    for low, extent in bounds.tvm[stage].box:
        start = int(engine.number(low, loops, 1)[0])
        ends.append((start, start + max(0, int(engine.number(extent, loops, 1)[0]))))
    return ends


def _request_ends(bounds: Bounds, stage: str, need: Need, visit: int) -> list[tuple[str, list[tuple[int, int]]]]:
    """What every read asks of the stage in one visit (phase 3): its text, and lower and upper end per dimension."""
    engine = Enumeration(bounds.symbolic, bounds.sizes)
    loops = {variable(*loop): need.visits[visit : visit + 1, column] for column, loop in enumerate(need.path)}
    found: list[tuple[str, list[tuple[int, int]]]] = []
    for request in bounds.symbolic[stage].requests[:6]:
        ends: list[tuple[int, int]] = []
        try:
            for interval in request.box:
                if interval is None:
                    raise KeyError(stage)
                low, high = (int(engine.number(end, loops, 1)[0]) for end in interval)
                ends.append((low, high + 1))
        except (KeyError, ValueError, ArithmeticError):
            continue
        subscripts = ", ".join(to_python(from_expr(each)) for each in request.read.indices)
        found.append((f"{request.read.tensor}({subscripts})", ends))
    return found if len(found) > 1 else []


def region_of(bounds: Bounds, stage: str, need: Need, visit: int) -> str:
    """Exact elements of a visit filled, their hull outlined, TVM's box dashed; the last two dimensions."""
    mine = need.elements[need.visit_of == visit]
    if not need.elements.shape[1]:
        return words("a single number")
    if not len(mine):
        return words("this visit needs nothing", "∅")
    box = tvm_box(bounds, stage, need, visit)
    lows = need.elements.min(axis=0)
    highs = need.elements.max(axis=0) + 1
    flat = _last_two(mine)
    whole = [_last_two_ends(list(zip(lows.tolist(), highs.tolist(), strict=True))), _last_two_ends(box)]
    (y0, y1), (x0, x1) = ((min(w[d][0] for w in whole), max(w[d][1] for w in whole)) for d in (0, 1))
    step = min(16.0, 440 / max(x1 - x0, 1), 240 / max(y1 - y0, 1))
    exact = distinct_rows(flat)
    cells = "".join(
        f"M{(c - x0) * step:.1f} {(r - y0) * step:.1f}h{step:.1f}v{step:.1f}h{-step:.1f}z"
        for r, c in exact[:_MOST_CELLS].tolist()
    )
    hull = (flat.min(axis=0), flat.max(axis=0) + 1)
    hull_cells = int(np.prod(hull[1] - hull[0]))
    tvm = _last_two_ends(box)

    def outline(top: float, bottom: float, left: float, right: float, look: str) -> str:
        return f'<rect x="{(left - x0) * step:.1f}" y="{(top - y0) * step:.1f}" width="{(right - left) * step:.1f}" height="{(bottom - top) * step:.1f}" fill="none" {look}/>'

    width, height = (x1 - x0) * step + 4, (y1 - y0) * step + 4
    hull_count = int(np.prod(mine.max(axis=0) - mine.min(axis=0) + 1))
    tvm_count = int(np.prod([max(0, b - a) for a, b in box]))
    label = f"{len(mine)} elements needed, {hull_count} in their hull, {tvm_count} by TVM's rules"
    gaps: list[tuple[int, int]] = []
    if hull_cells <= _MOST_CELLS:
        needed = {(r, c) for r, c in exact.tolist()}
        (top, left), (bottom, right) = (end.tolist() for end in hull)
        gaps = [(r, c) for r in range(top, bottom) for c in range(left, right) if (r, c) not in needed]
    shaded = "".join(f"M{(c - x0) * step:.1f} {(r - y0 + 1) * step:.1f}l{step:.1f} {-step:.1f}" for r, c in gaps)
    inner = outline(y0, y1, x0, x1, f'stroke="{LINE}"')
    inner += f'<path data-gaps="{len(gaps)}" d="{shaded}" stroke="currentColor" opacity=".7"/>'
    asked = _request_ends(bounds, stage, need, visit)
    for text, ends in asked:
        top, side = _last_two_ends(ends)
        look = f'data-request="{escape(text)}" stroke="currentColor" stroke-dasharray="1 2"'
        inner += outline(top[0] + 0.12, top[1] - 0.12, side[0] + 0.12, side[1] - 0.12, look)
    inner += f'<path data-exact="{len(mine)}" d="{cells}" fill="{ACCENT}" fill-opacity=".55" stroke="{LINE}"/>'
    inner += outline(
        tvm[0][0],
        tvm[0][1],
        tvm[1][0],
        tvm[1][1],
        'data-tvm="" stroke="currentColor" stroke-width="1.5" stroke-dasharray="5 3"',
    )
    inner += outline(
        float(hull[0][0]),
        float(hull[1][0]),
        float(hull[0][1]),
        float(hull[1][1]),
        'data-hull="" stroke="currentColor" stroke-width="2"',
    )
    shade = f"; hatched: in the hull and not needed ({len(gaps)})" if gaps else ""
    dotted = f"; dotted: requests of {escape(', '.join(text for text, _ in asked))}" if asked else ""
    note = " (last two dimensions)" if need.elements.shape[1] > 2 else ""
    cut = f"; {_MOST_CELLS} cells are drawn" if len(exact) > _MOST_CELLS else ""
    return (
        f"{svg(width, height, inner, label, corner=-2)}<div>filled: needed exactly ({len(mine)}); solid: {term('hull')} ({hull_count}); "
        f"dashed: {term('TVM')} ({tvm_count}){shade}{dotted}{note}{cut}</div>"
    )


def _last_two(elements: Ints) -> Ints:
    if elements.shape[1] == 1:
        return np.concatenate([np.zeros_like(elements), elements], axis=1)
    return elements[:, -2:]


def _last_two_ends(ends: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(0, 1), ends[0]] if len(ends) == 1 else ends[-2:]
