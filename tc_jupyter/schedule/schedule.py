"""The value users hold: a stage graph, the steps that made it, one short method per primitive.

Worked example:

    s = f.schedule().split("C", "i", factor=16).vectorize("C", "j")
    print(s.to_python())        # the same steps as code
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from tc_jupyter.diagnostics import CompileError, codes
from tc_jupyter.program import Program
from tc_jupyter.ranges import Ranges, without_zeros

from . import primitives
from .bounds import Bounds, infer_bound
from .help import documented
from .stage import Stage, StageGraph, stage_graph
from .subscripts import shortened


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a primitive: name, positional and keyword arguments."""

    name: str
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()

    def to_python(self) -> str:
        """The call as code."""
        shown = [repr(argument) for argument in self.arguments]
        shown += [f"{key}={value!r}" for key, value in self.keywords]
        return f".{self.name}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class Schedule:
    """In which loops a program runs. Immutable: every method returns a new schedule.

    Attributes:
        graph: stages, loops, attachment.
        steps: the primitives applied so far, in order.
        origin: the stages before the first step; `None` if there is none yet.
    """

    graph: StageGraph
    steps: tuple[Step, ...] = field(default=())
    origin: StageGraph | None = None

    def __repr__(self) -> str:
        name = self.graph.program.name
        default = f"\n(calls run `{name}.default_schedule()`, which may be another, unless `with_schedule` gives one)"
        return f"schedule of {name}: {self.said_steps}\n{self.loops()}{'' if self.steps else default}"

    @property
    def said_steps(self) -> str:
        """`2 steps`."""
        if not self.steps:
            return "no step, the loops of the text"
        return f"{len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"

    def loops(self) -> str:
        """Where each stage runs and its loops, from the outside, a line for each: `  C: i.outer parallel, i.inner, j`."""
        return "\n".join(f"  {_stage_line(stage)}" for stage in self.graph.stages)

    def start(self) -> StageGraph:
        """The stages before the first step."""
        return self.origin or self.graph

    # --- loops -------------------------------------------------------------------------------------------------------

    @documented
    def split(
        self,
        stage: str,
        axis: str,
        factor: int | None = None,
        nparts: int | None = None,
        tail: str | None = None,
    ) -> Schedule:
        given: dict[str, Any] = {"factor": factor, "nparts": nparts, "tail": tail}
        return self._do("split", stage, axis, **{key: value for key, value in given.items() if value is not None})

    @documented
    def fuse(self, stage: str, outer: str, inner: str) -> Schedule:
        return self._do("fuse", stage, outer, inner)

    @documented
    def skew(self, stage: str, outer: str, inner: str, factor: int = 1) -> Schedule:
        return self._do("skew", stage, outer, inner, factor)

    @documented
    def reorder(self, stage: str, *axes: str) -> Schedule:
        return self._do("reorder", stage, *axes)

    @documented
    def tile(self, stage: str, x: str, y: str, x_factor: int, y_factor: int, tail: str | None = None) -> Schedule:
        return self._do("tile", stage, x, y, x_factor, y_factor, **({} if tail is None else {"tail": tail}))

    @documented
    def parallel(self, stage: str, *axes: str) -> Schedule:
        return self._each("parallel", stage, axes)

    @documented
    def vectorize(self, stage: str, axis: str) -> Schedule:
        return self._do("vectorize", stage, axis)

    @documented
    def unroll(self, stage: str, *axes: str) -> Schedule:
        return self._each("unroll", stage, axes)

    @documented
    def bind(self, stage: str, axis: str, thread: str) -> Schedule:
        return self._do("bind", stage, axis, thread)

    @documented
    def tensorize(self, stage: str, axes: tuple[str, ...], intrinsic: str) -> Schedule:
        return self._do("tensorize", stage, tuple(axes) if isinstance(axes, list) else axes, intrinsic)

    # --- where a stage runs ------------------------------------------------------------------------------------------

    @documented
    def compute_at(self, stage: str, consumer: str, axis: str) -> Schedule:
        return self._do("compute_at", stage, consumer, axis)

    @documented
    def compute_root(self, stage: str) -> Schedule:
        return self._do("compute_root", stage)

    @documented
    def compute_inline(self, stage: str) -> Schedule:
        return self._do("compute_inline", stage)

    @documented
    def compute_with(self, stage: str, other: str, axis: str) -> Schedule:
        return self._do("compute_with", stage, other, axis)

    @documented
    def storage(self, stage: str, scope: str | None = None, **options: Any) -> Schedule:
        return self._do("storage", stage, scope, **options)

    # --- new stages --------------------------------------------------------------------------------------------------

    @documented
    def at_most(self, size: str, most: int) -> Schedule:
        return self._do("at_most", size, most)

    @documented
    def cache_read(
        self,
        tensor: str,
        consumer: str,
        *others: str,
        widen: bool | str = False,
        reindex: bool = False,
        value: bool = False,
        only: int | None = None,
        order: tuple[int, ...] | None = None,
    ) -> Schedule:
        order = tuple(order) if isinstance(order, list) else order
        options = {"widen": widen, "reindex": reindex, "value": value, "only": only, "order": order}
        given: dict[str, Any] = {
            key: option for key, option in options.items() if option is not None and option is not False
        }
        return self._do("cache_read", tensor, consumer, *others, **given)

    @documented
    def expand(self, stage: str) -> Schedule:
        return self._do("expand", stage)

    @documented
    def factor(self, stage: str, axis: str) -> Schedule:
        return self._do("factor", stage, axis)

    @documented
    def separate(self, stage: str) -> Schedule:
        return self._do("separate", stage)

    @documented
    def cache_write(self, stage: str, factors: bool = False) -> Schedule:
        return self._do("cache_write", stage, **({} if factors is False else {"factors": factors}))

    @documented
    def rebias(self, stage: str, tensor: str) -> Schedule:
        return self._do("rebias", stage, tensor)

    @documented
    def prefix(self, stage: str, factor: int) -> Schedule:
        return self._do("prefix", stage, factor)

    @documented
    def time_tile(self, stage: str, steps: int, tile: int | tuple[int, ...]) -> Schedule:
        return self._do("time_tile", stage, steps, tuple(tile) if isinstance(tile, list) else tile)

    @documented
    def rfactor(self, stage: str, axis: str) -> Schedule:
        return self._do("rfactor", stage, axis)

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages in program order."""
        return tuple(stage.name for stage in self.graph.stages)

    def leaves(self, stage: str) -> tuple[str, ...]:
        """Names of the loops of a stage, outermost first."""
        return primitives.find_stage(self.graph, stage).leaves

    def bounds(self, **sizes: int) -> Bounds:
        """What every axis runs over and what every stage must compute.

        Args:
            sizes: values of all sizes, for numbers; none for expressions.

        Raises:
            CompileError: TC614, some but not all sizes are given; TC411, one is unknown, or is no size.
        """
        return infer_bound(self.graph, sizes)

    def check_program(self, program: Program) -> None:
        """Refuse to schedule another program than the one this schedule was made for.

        Raises:
            CompileError: TC411.
        """
        if self.graph.base == program:
            return
        mine, other = self.graph.base, program
        said = f"`{mine.name}`, not of `{other.name}`" if mine.name != other.name else f"another `{mine.name}`"
        stages = ", ".join(f"`{statement.name}`" for statement in other.statements)
        start = primitives.find_stage(self.graph, self.stages[0]) if self.stages else None
        help = f"start from its own `schedule()`; its stages are {stages or 'none'}"
        raise primitives.refuse(self.graph, codes.FOREIGN_SCHEDULE, start, f"this schedule is one of {said}", help)

    def to_python(self, name: str = "f") -> str:
        """The steps as code: `f.schedule().split(...)...`."""
        lines = [f"{name}.schedule()", *(f"    {step.to_python()}" for step in self.steps)]
        return lines[0] if len(lines) == 1 else "(" + "\n".join(lines) + "\n)"

    def replay(self, graph: StageGraph) -> Schedule:
        """The same steps on another default graph (other dtypes, other machine)."""
        return Schedule(graph).followed_by(self.steps)

    def followed_by(self, steps: Iterable[Step]) -> Schedule:
        """The schedule after more steps."""
        taken = tuple(steps)

        def after(schedule: Schedule) -> Schedule:
            for step in taken:
                schedule = schedule._do(step.name, *step.arguments, **dict(step.keywords))
            return schedule

        return self.together(after) if taken else self

    def together(self, change: Callable[[Schedule], Schedule]) -> Schedule:
        """The schedule after some steps, of which only the last graph is looked at; if it breaks a rule, every step is.

        What one step may do takes time for all stages, so that many steps of long programs took most of their compilation.

        Raises:
            CompileError: as the steps one by one.
        """
        with suppress(CompileError):
            made = change(replace(self, graph=replace(self.graph, unchecked=True)))
            graph = replace(made.graph, unchecked=self.graph.unchecked)
            if graph.unchecked or primitives.is_legal(self.graph, graph):
                return replace(made, graph=graph, origin=self.start())
        return change(self)

    def _each(self, primitive: str, stage: str, axes: Iterable[str]) -> Schedule:
        """One step for every loop."""
        primitives.check_kinds(self.graph, primitive, (stage,), {})
        primitives.find_stage(self.graph, stage)
        made = self
        for axis in axes:
            made = made._do(primitive, stage, axis)
        return made

    def _do(self, name: str, *arguments: Any, **keywords: Any) -> Schedule:
        primitive: Callable[..., Any] = getattr(primitives, name)
        primitives.check_kinds(self.graph, name, arguments, keywords)
        primitives.check_taken(self.graph, name, tuple(each for each in arguments if isinstance(each, str)))
        result = primitive(self.graph, *arguments, **keywords)
        graph = result[0] if isinstance(result, tuple) else result
        primitives.check_grid(self.graph, graph)
        primitives.check_order(self.graph, graph)
        primitives.check_tails(self.graph, graph)
        step = Step(name, arguments, tuple(keywords.items()))
        return replace(self, graph=graph, steps=(*self.steps, step), origin=self.start())


def _stage_line(stage: Stage) -> str:
    """`A.cache at C, k.outer: i, k.inner vectorize`; what is said of the tail of a split stands behind its inner loop."""
    attach = stage.attach
    where = "" if attach.kind == "root" else f" {attach.kind}"
    where += f" {attach.stage}, {attach.axis}" if attach.stage else ""
    tails = {leaf: f"tail={said}" for leaf in stage.leaves if (said := stage.tail(leaf))}
    loops = ", ".join(" ".join(filter(None, (x, stage.annotation(x), tails.get(x)))) for x in stage.leaves)
    return f"{stage.name}{where}: {loops or 'no loop'}"


def schedule_of(program: Program, ranges: Ranges, zeros: bool = False) -> Schedule:
    """The schedule in which nothing is transformed: every stage at root, its loops are its indices.

    Args:
        zeros: it serves sizes of 0, too; otherwise ends of ranges are what they are for sizes of 1 and more.
    """
    if zeros:
        return Schedule(stage_graph(program, ranges))
    graph = stage_graph(program, ranges.changed(without_zeros))
    return Schedule(graph.with_stages(tuple([shortened(graph, stage) for stage in graph.stages])))


def steps_from_data(data: list[list[Any]]) -> tuple[Step, ...]:
    """Steps from their JSON form; see `steps_to_data`."""
    return tuple(
        Step(name, tuple(_frozen(a) for a in arguments), tuple((k, _frozen(v)) for k, v in keywords))
        for name, arguments, keywords in data
    )


def steps_to_data(steps: tuple[Step, ...]) -> list[list[Any]]:
    """Steps as JSON-ready lists, for the store."""
    return [[step.name, list(step.arguments), [list(pair) for pair in step.keywords]] for step in steps]


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


__all__ = ["Schedule", "Step", "schedule_of", "steps_from_data", "steps_to_data"]
