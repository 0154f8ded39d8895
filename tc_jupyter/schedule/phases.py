"""InferBound step by step: what each phase does for one stage, as values that a person can follow and a view can draw.

For every consumer C of a stage P, phase 1 gives each leaf of C a set, phase 2 carries the sets from leaves to roots, one relation
after the other, phase 3 turns them into requests on P's tensor; phase 4 unites the requests of all consumers, and the ranges of P's
roots go down to its leaves. TVM's rules and ours stand side by side in every row.

Worked example: B of `C(i,j) = B(i,j) * 3`, `i, j` fused and split by 4. Phase 1: `i.j.fused.outer` is on the
path, `i.j.fused.inner` is relaxed. Phase 2: the split gives `[4*o, 4*o + 4)`; then TVM falls back to the whole rows and columns
(`fallback`), ours is row `o`. Phase 4: `[o, o + 1) x [0, 4)` against `[0, 4) x [0, 4)`.

Source: TVM, "InferBound Pass", phases 1 to 4 and PassDownDomain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tc_jupyter.diagnostics import codes
from tc_jupyter.ranges import from_expr, to_python

from .bounds import Bounds, Range
from .infer_bound import (
    AxisStep,
    Interval,
    Request,
    StageBounds,
    extent_between,
    pass_down,
    pass_up_steps,
    path_points,
    requests_of,
    variable,
)
from .primitives import refuse
from .stage import Fuse, Skew, Split, Stage, children_of, parents_of


@dataclass(frozen=True, slots=True)
class LeafRow:
    """Phase 1: one leaf of a consumer.

    Attributes:
        range: what the loop runs over.
        case: `point` (extent 1), `on the path` (it encloses the producer), `relaxed` (all its values).
        set: the resulting set.
        why: for a relaxed leaf on the attach path, which storage asks for it; else empty.
    """

    axis: str
    range: str
    case: str
    set: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class RelationRow:
    """Phase 2: one axis that a relation carries a set to.

    Attributes:
        relation: `split` or `fuse`.
        children: the axes that it comes from.
        axis: the axis that it goes to.
        case, set: rule that applied and result; see `AxisStep`.
        tvm_case, tvm_set: the same by TVM's rules.
        exact: our set holds nothing else.
    """

    relation: str
    children: tuple[str, ...]
    axis: str
    case: str
    set: str
    tvm_case: str
    tvm_set: str
    exact: bool


@dataclass(frozen=True, slots=True)
class RequestRow:
    """Phase 3: what one read asks of the tensor, per dimension; `all` where data decide."""

    read: str
    box: tuple[str, ...]
    tvm_box: tuple[str, ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class ConsumerPhases:
    """Phases 1 to 3 for one consumer.

    Attributes:
        relaxed: loops around the consumer that are not around the producer, which are relaxed (TVM: relax set).
    """

    consumer: str
    leaves: tuple[LeafRow, ...]
    relations: tuple[RelationRow, ...]
    roots: tuple[RelationRow, ...]
    requests: tuple[RequestRow, ...]
    relaxed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GatherRow:
    """Phase 4: one dimension: the requests, their union, the root that it becomes."""

    root: str
    requests: tuple[str, ...]
    range: str
    tvm_range: str


@dataclass(frozen=True, slots=True)
class DownRow:
    """Pass down: one axis of the stage: its range, and the one of TVM's rules (inner loops have the whole factor)."""

    axis: str
    rule: str
    range: str
    tvm_range: str


@dataclass(frozen=True, slots=True)
class StagePhases:
    """All phases for one stage.

    Attributes:
        order: its place in the order of the pass, consumers first, from 0.
        path: the loops around it, innermost first.
        rule: `output`, `everything` (nobody reads it, others share its loops, it is written again after a read) or `requests`.
        need: the exact set as text, or why there is none.
        exact: the exact set is known.
    """

    stage: str
    order: int
    path: tuple[str, ...]
    rule: str
    consumers: tuple[ConsumerPhases, ...]
    gather: tuple[GatherRow, ...]
    down: tuple[DownRow, ...]
    need: str
    exact: bool

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data with the names of the attributes."""
        return asdict(self)

    def text(self) -> str:
        """The phases for readers, one line per row."""
        return "\n".join(_lines(self))


def phases(bounds: Bounds, stage: str) -> StagePhases:
    """How the bounds of one stage come about.

    Raises:
        CompileError: TC411 for an unknown stage.
    """
    if stage not in bounds.sized:
        names = ", ".join(f"`{name}`" for name in bounds)
        raise refuse(
            bounds.graph, codes.FOREIGN_SCHEDULE, None, f"there is no stage `{stage}`", f"the stages are {names}"
        )
    return _Phases(bounds, bounds.sized.graph.stage(stage)).run()


@dataclass(frozen=True, slots=True)
class _Phases:
    """Collects the phases of one stage."""

    bounds: Bounds
    stage: Stage

    def run(self) -> StagePhases:
        graph, name = self.bounds.sized.graph, self.stage.name
        names = [stage.name for stage in reversed(graph.stages)]
        asked = not graph.computes_all(name)
        users = graph.consumers(graph.stages_on(self.stage.target)[0].name) if asked else ()
        need = self.bounds.need(name)
        path = tuple(f"{owner}[{leaf}]" for owner, leaf in graph.attach_path(name))
        return StagePhases(
            name,
            names.index(name),
            path,
            "output" if name in graph.outputs else "requests" if users else "everything",
            tuple(self._consumer(user) for user in users),
            self._gather(),
            self._down(),
            str(need.mapping.here()) if need.exact and need.mapping is not None else need.reason,
            need.exact,
        )

    # --- phases 1 to 3 -----------------------------------------------------------------------------------------------

    def _consumer(self, user: Stage) -> ConsumerPhases:
        graph = self.bounds.sized.graph
        path = frozenset(variable(*loop) for loop in path_points(graph, self.stage))
        ours = pass_up_steps(user, self.bounds.sized[user.name], path, tvm=False)
        theirs = pass_up_steps(user, self.bounds.tvm[user.name], path, tvm=True)
        relaxed = [
            f"{owner}[{leaf}]" for owner, leaf in graph.attach_path(user.name) if variable(owner, leaf) not in path
        ]
        roots = {root.name for root in user.roots}
        rows: list[RelationRow] = []
        for relation in reversed(user.relations):
            children, kind = children_of(relation), type(relation).__name__.lower()
            for axis in parents_of(relation):
                rows.append(self._relation(kind, children, axis, ours[axis], theirs[axis]))
        tops = [self._relation("root", (), root.name, ours[root.name], theirs[root.name]) for root in user.roots]
        return ConsumerPhases(
            user.name,
            tuple(self._leaf(user, leaf, path) for leaf in user.leaves),
            tuple(rows),
            tuple(row for row in tops if row.axis in roots),
            self._requests(user),
            tuple(relaxed),
        )

    def _leaf(self, user: Stage, leaf: str, path: frozenset[str]) -> LeafRow:
        span = self.bounds[user.name][leaf]
        name = variable(user.name, leaf)
        # as it was attached, also where it runs before the launch
        written = self.bounds.graph
        around = name in {variable(*loop) for loop in written.attach_path(self.stage.name)}
        if span.extent == 1:
            return LeafRow(leaf, str(span), "point", str(span))
        if name in path:
            return LeafRow(leaf, str(span), "on the path", name)
        why = f"`{written.scope(self.stage)}` storage is read by all of {user.annotation(leaf)}" if around else ""
        return LeafRow(leaf, str(span), "relaxed", str(span), why)

    def _relation(
        self, kind: str, children: tuple[str, ...], axis: str, ours: AxisStep, theirs: AxisStep
    ) -> RelationRow:
        return RelationRow(
            kind, children, axis, ours.case, self._set(ours.ends), theirs.case, self._set(theirs.ends), ours.exact
        )

    def _requests(self, user: Stage) -> tuple[RequestRow, ...]:
        ours = requests_of(self.bounds.sized, self.stage, user)
        theirs = requests_of(self.bounds.tvm, self.stage, user)
        return tuple(
            RequestRow(_read_text(mine), self._box(mine), self._box(yours), mine.exact)
            for mine, yours in zip(ours, theirs, strict=True)
        )

    def _box(self, request: Request) -> tuple[str, ...]:
        return tuple("all" if ends is None else self._set(ends) for ends in request.box)

    # --- phase 4 and pass down ---------------------------------------------------------------------------------------

    def _gather(self) -> tuple[GatherRow, ...]:
        ours, theirs = self.bounds.sized[self.stage.name], self.bounds.tvm[self.stage.name]
        rows: list[GatherRow] = []
        outputs = [root.name for root in self.stage.roots if root.kind == "output"]
        for place, root in enumerate(outputs):
            asked = tuple(self._box(request)[place] for request in ours.requests)
            rows.append(GatherRow(root, asked, self._root(ours, root), self._root(theirs, root)))
        for root in self.stage.roots:
            if root.kind == "reduction":
                rows.append(GatherRow(root.name, (), self._root(ours, root.name), self._root(theirs, root.name)))
        return tuple(rows)

    def _root(self, bounds: StageBounds, root: str) -> str:
        low, extent = bounds.domain[root]
        return str(self._range(low, low + extent - 1))

    def _down(self) -> tuple[DownRow, ...]:
        theirs, found = self.bounds.tvm_axes(self.stage.name), self.bounds.sized[self.stage.name]
        exact = pass_down(found.stage, found.lineage)
        rules = {root.name: "root" for root in self.stage.roots}
        for relation in self.stage.relations:
            match relation:
                case Split():
                    rules[relation.outer] = f"ceil(extent of {relation.parent} / factor)"
                    rules[relation.inner] = "min(factor, what is left)"
                case Fuse():
                    rules[relation.fused] = f"extent of {relation.outer} * extent of {relation.inner}"
                case Skew():
                    last = f"{relation.factor} * last of {relation.outer}"
                    rules[relation.front] = f"{last} + extent of {relation.inner}"
                    rules[relation.place] = f"values of {relation.outer} on {relation.front}"
        rows: list[DownRow] = []
        for axis in self.stage.axes:
            low, extent = found.domain[axis] if axis in found.domain else exact[axis]
            rows.append(DownRow(axis, rules[axis], str(self._range(low, low + extent - 1)), str(theirs[axis])))
        return tuple(rows)

    # --- text --------------------------------------------------------------------------------------------------------

    def _set(self, ends: Interval) -> str:
        return str(self._range(*ends))

    def _range(self, low: Any, high: Any) -> Range:
        return Range(self.bounds.at_sizes(low), self.bounds.at_sizes(extent_between(low, high)))


def _read_text(request: Request) -> str:
    """The read as it stands in the statement's text: its tensor and subscripts."""
    subscripts = ", ".join(to_python(from_expr(subscript)) for subscript in request.read.indices)
    return f"{request.read.tensor}({subscripts})"


def _lines(found: StagePhases) -> list[str]:
    lines = [f"{found.stage}: number {found.order} of the pass, {found.rule}"]
    if found.path:
        lines.append(f"  attach path: {', '.join(found.path)}")
    for consumer in found.consumers:
        lines.append(f"  consumer {consumer.consumer}")
        lines += [f"    phase 1  {row.axis} in {row.range}: {row.case}, {row.set}" for row in consumer.leaves]
        for row in consumer.relations:
            lines.append(
                f"    phase 2  {row.relation} {', '.join(row.children)} -> {row.axis}: {row.set} ({row.case}); "
                f"TVM {row.tvm_set} ({row.tvm_case})"
            )
        for loop in consumer.relaxed:
            lines.append(f"    phase 2  {loop} is relaxed: it is not around {found.stage}")
        for row in consumer.requests:
            lines.append(f"    phase 3  {row.read}: {' x '.join(row.box)}; TVM {' x '.join(row.tvm_box)}")
    lines += [f"  phase 4  {row.root}: {row.range}; TVM {row.tvm_range}" for row in found.gather]
    lines += [f"  pass down  {row.axis}: {row.range}; TVM {row.tvm_range}" for row in found.down]
    lines.append(f"  exact  {found.need}" if found.exact else f"  not exact: {found.need}")
    return lines


__all__ = [
    "ConsumerPhases",
    "DownRow",
    "GatherRow",
    "LeafRow",
    "RelationRow",
    "RequestRow",
    "StagePhases",
    "phases",
]
