"""Whether a new order of statements still makes every element before it is read; a witness when it does not.

Attaching a producer (`compute_at`) is right by construction: each visit computes all elements that it reads. What must be checked
is sharing loops without recomputation (`compute_with`): two statements then run turn about, one iteration of the shared loops after
the other.

Worked example (`schedule.md` 8): `T(i) = X(i)` and `O(i) = T(i) + T(i+1)` in one loop over `i`: O(0) reads T(1), which iteration 1
writes. Witness: reader at `i = 0`, writer at `i = 1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from tc_jupyter.diagnostics import Code, codes
from tc_jupyter.program import Expr, IndexVar, Read, walk
from tc_jupyter.ranges import SizeExpr, constant, from_expr, interval, nonnegative

from .infer_bound import scope_of, variable, view_shift
from .lineage import default_domain, lineage
from .stage import Stage, StageGraph
from .visits import TooManyPoints, evaluate


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an order is refused: code, message with the witness, and what would be legal."""

    code: Code
    message: str
    help: str


@dataclass(frozen=True, slots=True)
class Witness:
    """Two iterations in the wrong order: at `sizes`, `reader` runs at `reading` before `writer` at `writing` has made `element`."""

    sizes: dict[str, int]
    tensor: str
    element: tuple[int, ...]
    reader: str
    reading: tuple[int, ...]
    writer: str
    writing: tuple[int, ...]

    def text(self) -> str:
        """One sentence with the numbers."""
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        element = f"{self.tensor}({', '.join(map(str, self.element))})"
        at = f"with {sizes}, " if sizes else ""
        return f"{at}`{self.reader}` at {self.reading} reads {element}, which `{self.writer}` makes at {self.writing}"


def check_with(graph: StageGraph, late: Stage, early: Stage, axis: str) -> Problem | None:
    """Why `late` cannot share the loops of `early` down to `axis`; `None` if it can."""
    if late.attach.kind != "root" or early.attach.kind not in ("root", "with") or late.name == early.name:
        return Problem(
            codes.BAD_ATTACH,
            f"`{late.name}` cannot share loops with `{early.name}`: one is attached already",
            "share loops of two stages at root",
        )
    names = [stage.name for stage in graph.stages]
    if names.index(late.name) < names.index(early.name):
        return Problem(
            codes.BAD_ATTACH,
            f"`{late.name}` runs before `{early.name}`",
            f'`compute_with("{early.name}", "{late.name}", ...)`',
        )
    depth = early.leaves.index(axis) + 1
    shared_early, shared_late = early.leaves[:depth], late.leaves[:depth]
    if any(kind == "reduction" for kind in map(early.kind, shared_early)):
        return _refused(graph, late, early, depth, "a reduction is complete only after its loop")
    if any(kind == "reduction" for kind in map(late.kind, shared_late)) or len(shared_late) < depth:
        return Problem(
            codes.BAD_ATTACH,
            f"`{late.name}` has no {depth} output loops to share",
            "reorder its output loops to the outside",
        )
    ours, theirs = _lineage(late), _lineage(early)
    for mine, yours in zip(shared_late, shared_early, strict=True):
        same = ours.extents[mine] == theirs.extents[yours] and late.annotation(mine) == early.annotation(yours)
        if not same:
            message = f"the loops `{early.name}[{yours}]` and `{late.name}[{mine}]` differ"
            return Problem(codes.BAD_ATTACH, message, "give both the same range, splits and annotations")
    between = graph.stages[names.index(early.name) : names.index(late.name)]
    target = graph.storage_name(late.target)
    for other in between[1:]:
        if target == graph.storage_name(other.target) or target in graph.reads(other):
            message = f"`{other.name}` uses `{late.target}` before `{late.name}` writes it"
            return Problem(codes.ILLEGAL_ORDER, message, f"share loops with `{other.name}`")
    for writer in between:
        for problem in _dependences(graph, writer, late, early, depth):
            return problem
    return None


def _lineage(stage: Stage):  # noqa: ANN202
    return lineage(stage, default_domain(stage), lambda leaf: variable(stage.name, leaf))


def _dependences(graph: StageGraph, writer: Stage, late: Stage, early: Stage, depth: int) -> list[Problem]:
    """Problems of flow from `writer`, one of the stages that the shared loop passes over, to `late`."""
    storage = graph.storage_name(writer.target)
    reads = [read for read in late.statement.reads() if graph.storage_name(read.tensor) == storage]
    if not reads and graph.storage_name(late.target) != storage:
        return []
    inside = writer.name == early.name or (writer.attach.kind == "with" and writer.attach.stage == early.name)
    if not inside:
        message = f"`{late.name}` reads `{writer.target}`, which is made after the loops of `{early.name}`"
        return [Problem(codes.ILLEGAL_ORDER, message, "share the loops of the last producer")]
    if all(_same_point(graph, writer, late, read, depth) for read in reads):
        return []
    witness = find_witness(graph, writer, late, depth)
    if witness is None and _never_later(graph, writer, late, reads, depth):
        return []
    said = witness.text() if witness is not None else "it cannot be excluded that an element is read before it is made"
    return [
        Problem(
            codes.ILLEGAL_ORDER,
            f"`{late.name}` cannot share loops with `{early.name}`: {said}",
            "share fewer loops, or `compute_at`",
        )
    ]


def _refused(graph: StageGraph, late: Stage, early: Stage, depth: int, reason: str) -> Problem:
    witness = find_witness(graph, early, late, depth)
    said = witness.text() if witness is not None else reason
    return Problem(
        codes.ILLEGAL_ORDER, f"`{late.name}` cannot share loops with `{early.name}`: {said}", "share output loops only"
    )


def _same_point(graph: StageGraph, writer: Stage, reader: Stage, read: Read, depth: int) -> bool:
    """Whether what the reader reads is made in the same iteration of the shared loops, whatever the sizes."""
    ours, theirs = _lineage(reader), _lineage(writer)
    rename = {
        variable(writer.name, there): ours.leaf(here)
        for there, here in zip(writer.leaves[:depth], reader.leaves[:depth], strict=True)
    }
    shared = set(writer.leaves[:depth])
    scope = scope_of(graph)
    shift = view_shift(graph, read.tensor)
    for root, subscript, by in zip((r for r in writer.roots if r.kind == "output"), read.indices, shift, strict=True):
        made = theirs.values[root.name]
        used = {leaf for leaf in writer.leaves if variable(writer.name, leaf) in made.indices}
        if not used & shared:
            continue
        if not used <= shared or any(isinstance(node, Read) and node.indices for node in walk(subscript)):
            return _tile_of_same_loops(writer, reader, root.name, subscript, shared)
        wanted = from_expr(subscript, scope).substitute(dict(ours.values)) + by
        if made.substitute(rename) != wanted:
            return False
    return True


def _tile_of_same_loops(writer: Stage, reader: Stage, root: str, subscript: Expr, shared: set[str]) -> bool:
    """A plain index with the same splits on both sides stays inside the same tile."""
    if not isinstance(subscript, IndexVar):
        return False
    mine = [relation for relation in reader.relations if _mentions(relation, subscript.name)]
    yours = [relation for relation in writer.relations if _mentions(relation, root)]
    renamed = [str(relation).replace(f"'{root}", f"'{subscript.name}") for relation in yours]
    return bool(shared) and [str(relation) for relation in mine] == renamed


def _mentions(relation: object, root: str) -> bool:
    return f"'{root}'" in str(relation) or f"'{root}." in str(relation)


def _never_later(graph: StageGraph, writer: Stage, reader: Stage, reads: list[Read], depth: int) -> bool:
    """Whether every element read is made in an earlier iteration of the single shared loop, for all sizes."""
    if depth != 1:
        return False
    ours, theirs = _lineage(reader), _lineage(writer)
    leaf_here, leaf_there = reader.leaves[0], writer.leaves[0]
    outputs = [root for root in writer.roots if root.kind == "output"]
    position = next((k for k, root in enumerate(outputs) if root.name == leaf_there), None)
    if position is None:
        return False
    box = {root.name: (root.dom[0], root.dom[1] - 1) for root in reader.roots if root.name != leaf_here}
    for read in reads:
        latest = interval(from_expr(read.indices[position], scope_of(graph)), box).upper
        if latest is None:
            return False
        here = latest.substitute({leaf_here: ours.values[leaf_here]})
        start = theirs.values[leaf_there].substitute({variable(writer.name, leaf_there): ours.leaf(leaf_here)})
        if not nonnegative(start - here):
            return False
    return True


def find_witness(graph: StageGraph, writer: Stage, reader: Stage, depth: int, limit: int = 4) -> Witness | None:
    """The first pair of iterations in the wrong order for sizes from 1 to `limit`, smallest sizes first; `None` if there is none.

    Both statements run inside `depth` shared loops; a read is in the wrong order when the last write of its element happens in a
    later iteration of the shared loops (or, for a reduction loop among them, after it).
    """
    names = graph.program.sizes
    for values in sorted(product(range(1, limit + 1), repeat=len(names)), key=sum):
        sizes = dict(zip(names, values, strict=True))
        try:
            witness = _witness_at(graph, writer, reader, depth, sizes)
        except (TooManyPoints, KeyError, ZeroDivisionError):
            return None
        if witness is not None:
            return witness
    return None


def _points(stage: Stage, sizes: dict[str, int]) -> list[dict[str, int]]:
    """The leaf values of a stage in order of execution, with the roots."""
    related = _lineage(stage)
    domain = default_domain(stage)

    def number(value: SizeExpr, known: dict[str, int]) -> int:
        return value.evaluate({**sizes, **known})

    extents = [max(0, number(related.extents[leaf], {})) for leaf in stage.leaves]
    total = 1
    for extent in extents:
        total *= extent
    if total > 20_000:
        raise TooManyPoints(stage.name)
    found: list[dict[str, int]] = []
    for leaves in product(*(range(extent) for extent in extents)):
        known = {variable(stage.name, leaf): value for leaf, value in zip(stage.leaves, leaves, strict=True)}
        if all(number(value, known) < number(limit, {}) for value, limit in related.constraints):
            roots = {root: number(related.values[root], known) for root in domain}
            found.append({**known, **roots})
    return found


def _witness_at(graph: StageGraph, writer: Stage, reader: Stage, depth: int, sizes: dict[str, int]) -> Witness | None:
    storage = graph.storage_name(writer.target)
    outputs = [root.name for root in writer.roots if root.kind == "output"]
    made: dict[tuple[int, ...], tuple[int, ...]] = {}
    for point in _points(writer, sizes):
        when = tuple(point[variable(writer.name, leaf)] for leaf in writer.leaves[:depth])
        element = tuple(point[name] for name in outputs)
        made[element] = max(made.get(element, when), when)
    extents = {name: value.evaluate(sizes) for name, value in scope_of(graph).sizes.items()}
    for point in _points(reader, sizes):
        when = tuple(point[variable(reader.name, leaf)] for leaf in reader.leaves[:depth])
        roots = {root.name: point[root.name] for root in reader.roots}
        for read in reader.statement.reads():
            if graph.storage_name(read.tensor) != storage:
                continue
            element = _element(graph, read, roots, {**sizes, **extents})
            if made.get(element, when) > when:
                return Witness(
                    sizes, writer.target, element, reader.name, tuple(roots.values()), writer.name, made[element]
                )
    return None


def _element(graph: StageGraph, read: Read, roots: dict[str, int], sizes: dict[str, int]) -> tuple[int, ...]:
    columns = {name: np.array([value]) for name, value in roots.items()}
    shift = view_shift(graph, read.tensor)
    if any(isinstance(node, Read) and node.indices for index in read.indices for node in walk(index)):
        raise TooManyPoints(read.tensor)
    return tuple(
        int(evaluate(index, columns, sizes, 1)[0]) + (by - constant(0)).evaluate(sizes)
        for index, by in zip(read.indices, shift, strict=True)
    )
