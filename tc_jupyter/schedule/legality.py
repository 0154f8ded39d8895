"""Whether sharing loops keeps the order of statements: every element made before it is read; a witness where it is not.

Attaching a producer (`compute_at`) is right by construction: each visit computes all elements that it reads. What must be checked
is sharing loops without recomputation (`compute_with`): statements then run turn about, one iteration of the shared loops after
the other. For every pair of accesses to one element of which one writes, the set

    { (a, b) : both touch the element, the one that was first in the text runs in a later iteration of the shared loops }

must be empty, for all sizes. It is built with integer sets; a point of it with small numbers is the witness. Where the set library
does not answer, a plain comparison of the subscripts may still prove the order; otherwise the schedule is refused.

Worked example: `T(i) = X(i)` and `O(i) = T(i) + T(i+1) + T(i+2)` in one loop over `i`: O at 0 reads T(1), which
iteration 1 writes. Witness: `N = 3`, reader at `(0)`, writer at `(1)`.

Source: Feautrier, "Dataflow analysis of array and scalar references", IJPP 1991, on one shared nest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np

from tc_jupyter.diagnostics import Code, codes
from tc_jupyter.program import IndexVar, Read
from tc_jupyter.ranges import (
    IntegerSet,
    Scope,
    SizeExpr,
    Unknown,
    constant,
    from_expr,
    index,
    interval,
    nonnegative,
)

from .exact_sets import Alternative, ExactSets, axis_values, root_dim
from .extents import loop_extent
from .infer_bound import SymbolicBounds, infer_symbolic, is_computed, scope_of, variable, view_shift
from .inline import inject_inline, without_inlined
from .lineage import Lineage, default_domain, lineage, steps_to
from .stage import Attach, Fuse, Stage, StageGraph
from .visits import Enumeration, TooManyPoints, evaluate, reached_reads


@dataclass(frozen=True, slots=True)
class Witness:
    """Two points in the wrong order: at `sizes`, `second` at `there` runs in an earlier iteration than `first` at `here`.

    Attributes:
        first, second: stages in the order of the text.
        here, there: values of their indices (roots).
        kind: `reads`: `second` reads what `first` makes; `overwrites`: `second` writes what `first` reads or writes; `outside`:
            `second` reads it where the storage of `first` does not exist (`here` is empty, and `there` for the caller).
    """

    sizes: dict[str, int]
    tensor: str
    element: tuple[int, ...]
    first: str
    here: tuple[int, ...]
    second: str
    there: tuple[int, ...]
    kind: str

    def text(self) -> str:
        """One sentence with the numbers."""
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        element = f"{self.tensor}({', '.join(map(str, self.element))})" if self.element else self.tensor
        at = f"with {sizes}, " if sizes else ""
        here, there = (f"({', '.join(map(str, point))})" for point in (self.here, self.there))
        if self.kind == "outside" and not self.there:
            return f"{at}{self.second} reads {element} when its loops have ended"
        if self.kind == "outside":
            return f"{at}`{self.second}` at {there} reads {element} outside that loop"
        if self.kind == "reads":
            return f"{at}`{self.second}` at {there} reads {element}, which `{self.first}` makes later, at {here}"
        return f"{at}`{self.second}` at {there} overwrites {element}, which `{self.first}` uses later, at {here}"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an order is refused: code, message with the witness, and what would be legal."""

    code: Code
    message: str
    help: str
    witness: Witness | None = None


# --- compute_with ----------------------------------------------------------------------------------------------------


def check_with(graph: StageGraph, late: Stage, early: Stage, axis: str) -> Problem | None:
    """Why `late` cannot share the loops of `early` down to `axis`; `None` if it can."""
    depth = early.leaves.index(axis) + 1
    problem = _cannot_share(graph, late, early, depth)
    if problem is not None:
        return problem
    shared = graph.replace_stage(replace(late, attach=Attach("with", early.name, axis)))
    different = _different_loops(late, early, depth)
    if different is not None and not _same_kinds(late, early, depth):
        return different
    return order_problem(shared, late.name) or different


def _cannot_share(graph: StageGraph, late: Stage, early: Stage, depth: int) -> Problem | None:
    if late.attach.kind != "root" or early.attach.kind not in ("root", "with") or late.name == early.name:
        message = f"`{late.name}` cannot share loops with `{early.name}`: one is attached already"
        return Problem(codes.BAD_ATTACH, message, "share loops of two stages at root")
    if graph.position(late.name) < graph.position(early.name):
        help = f'`compute_with("{early.name}", "{late.name}", ...)`'
        return Problem(codes.BAD_ATTACH, f"`{late.name}` runs before `{early.name}`", help)
    if early.attach.kind == "with" and depth <= _depth(graph, early):
        message = f"`{early.name}[{early.leaves[depth - 1]}]` is a loop of `{early.attach.stage}`"
        return Problem(codes.BAD_ATTACH, message, f"share loops with `{early.attach.stage}`")
    used = [other for other in graph.attached(late.name) if late.leaves.index(other.attach.axis) < depth]
    if used:
        message = f"`{used[0].name}` runs inside `{late.name}[{used[0].attach.axis}]`, which would be shared"
        return Problem(codes.BAD_ATTACH, message, f"attach `{used[0].name}` to `{early.name}` afterwards")
    if len(late.leaves) < depth or any(late.kind(leaf) == "reduction" for leaf in late.leaves[:depth]):
        message = f"`{late.name}` has no {depth} output loops to share"
        return Problem(codes.BAD_ATTACH, message, "reorder its output loops to the outside")
    return None


def _same_kinds(late: Stage, early: Stage, depth: int) -> bool:
    """Whether iterations correspond one to one as far as both loops go: only lengths differ."""
    ours, theirs = (_structure(stage, depth) for stage in (late, early))
    return ours == theirs


def _structure(stage: Stage, depth: int) -> list[object]:
    made = {axis: relation for relation in stage.relations for axis in (getattr(relation, "inner", ""),)}
    return [(getattr(made.get(leaf), "factor", None), stage.annotation(leaf)) for leaf in stage.leaves[:depth]]


def _different_loops(late: Stage, early: Stage, depth: int) -> Problem | None:
    """Why the shared loops are not the same: lengths, tails or annotations."""
    ours, theirs = default_lineage(late), default_lineage(early)
    rename: dict[str, SizeExpr] = {}
    for number, (mine, yours) in enumerate(zip(late.leaves[:depth], early.leaves[:depth], strict=True)):
        here = loop_extent(late, ours, mine, frozenset(late.leaves[:number])).substitute(rename)
        there = loop_extent(early, theirs, yours, frozenset(early.leaves[:number]))
        if here != there or late.annotation(mine) != early.annotation(yours):
            message = f"the loops `{early.name}[{yours}]` and `{late.name}[{mine}]` differ"
            return Problem(codes.BAD_ATTACH, message, "give both the same range, splits and annotations")
        rename[variable(late.name, mine)] = theirs.leaf(yours)
    return None


def default_lineage(stage: Stage) -> Lineage:
    """The axes of a stage that computes everything."""
    return lineage(stage, default_domain(stage), lambda leaf: variable(stage.name, leaf))


# --- compute_at ------------------------------------------------------------------------------------------------------


def outside_read(graph: StageGraph, producer: Stage, user: Stage) -> Witness | None:
    """A point at which `user` reads an element of `producer`: what a place inside some other loop cannot serve.

    Looks at sizes from 1 to `SMALL` and at the first points of each that somebody needs; `None` if none of them reads.
    """
    if producer.attach.kind == "inline":
        graph = graph.replace_stage(replace(producer, attach=Attach()))
    graph = _flat(inject_inline(graph))
    if user.name not in {stage.name for stage in graph.stages}:
        return None
    user, symbolic = graph.stage(user.name), infer_symbolic(graph)
    for size in range(1, SMALL + 1):
        sizes = _numbers(graph, size)
        for point in _needed_points(symbolic, user, sizes):
            element = _read_at(graph, producer, user, point, sizes)
            if element is not None:
                there = tuple(point.values())
                return Witness(sizes, producer.target, element, producer.name, (), user.name, there, "outside")
    return None


def _flat(graph: StageGraph) -> StageGraph:
    """The graph with all stages at root: which points exist does not depend on where they run."""
    return graph.with_stages(tuple(replace(stage, attach=Attach()) for stage in graph.stages))


def _needed_points(symbolic: SymbolicBounds, stage: Stage, sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    """The first points of a stage whose result somebody reads; all of the first where that is not known."""
    outputs = [root.name for root in stage.roots if root.kind == "output"]
    try:
        needed = {tuple(map(int, row)) for row in Enumeration(symbolic, sizes).need(stage.name).elements}
    except (TooManyPoints, KeyError, ZeroDivisionError):
        needed = None
    for point in _first_points(stage, sizes):
        if needed is None or tuple(point[name] for name in outputs) in needed:
            yield point


def _read_at(
    graph: StageGraph, producer: Stage, user: Stage, point: dict[str, int], sizes: dict[str, int]
) -> tuple[int, ...] | None:
    """An element of the producer's tensor that a point of `user` reads, if it reads one."""
    storage = graph.storage_name(producer.target)
    known = {**sizes, **{name: value.evaluate(sizes) for name, value in scope_of(graph).sizes.items()}}
    columns = {name: np.array([value], np.int64) for name, value in point.items()}
    for read, evaluated in reached_reads(user.statement.value, columns, known, 1).items():
        if graph.storage_name(read.tensor) != storage or any(is_computed(graph, at) for at in read.indices):
            continue
        if evaluated[0]:
            shift = (by.evaluate(sizes) for by in view_shift(graph, read.tensor))
            values = (int(evaluate(subscript, columns, known, 1)[0]) for subscript in read.indices)
            return tuple(value + by for value, by in zip(values, shift, strict=True))
    return None


def result_read(graph: StageGraph, producer: Stage) -> Witness | None:
    """An element of a result, which the caller reads when all loops have ended."""
    for size in range(1, SMALL + 1):
        sizes = _numbers(graph, size)
        for point in _first_points(producer, sizes):
            shift = (by.evaluate(sizes) for by in view_shift(graph, producer.target))
            outputs = [point[root.name] for root in producer.roots if root.kind == "output"]
            element = tuple(value + by for value, by in zip(outputs, shift, strict=True))
            return Witness(sizes, producer.target, element, producer.name, (), "the caller", (), "outside")
    return None


def find_conflict(graph: StageGraph, first: Stage, second: Stage) -> Witness | None:
    """An element that `first` reads and `second`, after it in the text, writes; `None` if there is none for any sizes.

    Raises:
        Unknown: the set library is absent or does not answer.
    """
    flat = _flat(graph)
    first, second, sets = flat.stage(first.name), flat.stage(second.name), _exact_sets(flat)
    for read in first.statement.reads():
        tensor = graph.storage_name(read.tensor)
        if tensor == graph.storage_name(second.target):
            witness = find_witness(sets, first, second, _Conflict(tensor, read, None), 0, strict=False)
            if witness is not None:
                return witness
    return None


SMALL = 5
FIRST_POINTS = 256


def _numbers(graph: StageGraph, number: int) -> dict[str, int]:
    """One number for all sizes and integer scalars, on which extents may depend."""
    program = graph.program
    scalars = (program.tensor(name) for name in program.parameters)
    names = (tensor.name for tensor in scalars if tensor.rank == 0 and tensor.dtype.is_integer)
    return dict.fromkeys((*program.sizes, *names), number)


def _first_points(stage: Stage, sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    """The first points of a stage at given sizes, by root; limits of `rfactor` are left to other sizes."""
    try:
        ends = [(root.dom[0].evaluate(sizes), root.dom[1].evaluate(sizes)) for root in stage.roots]
    except (KeyError, ZeroDivisionError):
        return
    few = (range(low, min(high, low + FIRST_POINTS)) for low, high in ends)  # `product` would store all of a long range
    for values in islice(product(*few), FIRST_POINTS):
        yield {root.name: value for root, value in zip(stage.roots, values, strict=True)}


# --- the order of a nest ---------------------------------------------------------------------------------------------


def order_problem(graph: StageGraph, only: str | None = None) -> Problem | None:
    """Why some nest with shared loops does not keep the order of the text; `None` if all do.

    Args:
        only: look only at the stages in the block of this stage.
    """
    waiting = [late for late in graph.stages if late.attach.kind == "with" and only in (None, late.name)]
    shared = [late for late in waiting if not late.statement.block]  # those of a block are in the order that was proved
    if not shared:
        return None
    plain = without_inlined(graph)  # who reads an inlined stage reads what that reads
    sets = _exact_sets(plain)
    for late in shared:
        for problem in _problems(plain, sets, plain.stage(late.name)):
            return problem
    return None


def _exact_sets(graph: StageGraph) -> ExactSets:
    """What the stages of a graph compute, found where it is asked for."""
    return ExactSets(infer_symbolic(inject_inline(graph)))


def _problems(graph: StageGraph, sets: ExactSets, late: Stage) -> Iterator[Problem]:
    """Problems of the stages in the block of `late` with stages that came before them in the text."""
    root = graph.runs_in(late.name)
    first = graph.position(root)
    for second in graph.stages:
        if _block(graph, second) != late.name:
            continue
        for other in graph.stages[first : graph.position(second.name)]:
            if _block(graph, other) == late.name:
                continue
            if graph.runs_in(other.name) != root:
                problem = _jumped(graph, other, second, root)
            else:
                problem = _checked(graph, sets, other, second)
            if problem is not None:
                yield problem


def _block(graph: StageGraph, stage: Stage) -> str:
    """The stage at root or with shared loops in whose own loops a stage runs."""
    while stage.attach.kind == "at":
        stage = graph.stage(stage.attach.stage)
    return stage.name


def _depth(graph: StageGraph, stage: Stage) -> int:
    """How many loops a stage shares with the one that it is attached to."""
    return graph.stage(stage.attach.stage).leaves.index(stage.attach.axis) + 1


def _jumped(graph: StageGraph, other: Stage, second: Stage, root: str) -> Problem | None:
    """`second` now runs before `other`, a stage of another nest: they must not touch the same tensor."""
    made, used = graph.storage_name(second.target), set(graph.reads(second))
    target = graph.storage_name(other.target)
    if target in used:
        message = f"`{second.name}` reads `{other.target}`, which is made after the loops of `{root}`"
        return Problem(codes.ILLEGAL_ORDER, message, "share the loops of the last producer")
    if (made == target and not _write_elsewhere(other, second)) or made in graph.reads(other):
        message = f"`{other.name}` uses `{second.target}` before `{second.name}` writes it"
        return Problem(codes.ILLEGAL_ORDER, message, f"share loops with `{other.name}`")
    return None


def _checked(graph: StageGraph, sets: ExactSets, first: Stage, second: Stage) -> Problem | None:
    """The order of two stages in different blocks of one nest."""
    depth, strict = _common(graph, first, second)
    for pair in _conflicts(graph, first, second):
        problem = _pair_problem(graph, sets, first, second, pair, depth, strict)
        if problem is not None:
            return problem
    return None


def _common(graph: StageGraph, first: Stage, second: Stage) -> tuple[int, bool]:
    """Number of loops that two blocks share, and whether the first block runs first in an iteration of these."""
    chains: list[list[Stage]] = []
    for stage in (first, second):
        chain = [graph.stage(_block(graph, stage))]
        while chain[-1].attach.kind == "with":
            chain.append(graph.stage(chain[-1].attach.stage))
        chains.append(chain)
    ours, theirs = chains
    names = [stage.name for stage in theirs]
    at = next(number for number, stage in enumerate(ours) if stage.name in names)
    there = names.index(ours[at].name)
    mine = _depth(graph, ours[at - 1]) if at else None
    yours = _depth(graph, theirs[there - 1]) if there else None
    if mine is None:
        assert yours is not None
        return yours, True
    # of two stages that share loops of a third, the one that shares more runs inside, hence first
    return (mine, False) if yours is None else (min(mine, yours), mine >= yours)


@dataclass(frozen=True, slots=True)
class _Conflict:
    """Accesses of two stages to one tensor: a read, or `None` for the write of the stage."""

    tensor: str
    first: Read | None
    second: Read | None


def _conflicts(graph: StageGraph, first: Stage, second: Stage) -> Iterator[_Conflict]:
    """Pairs of accesses of which at least one writes; storage made per visit belongs to its block."""
    made = graph.storage_name(first.target) if first.attach.kind in ("root", "with") else None
    written = graph.storage_name(second.target) if second.attach.kind in ("root", "with") else None
    if made is not None:
        for read in second.statement.reads():
            if graph.storage_name(read.tensor) == made:
                yield _Conflict(made, None, read)
    if written is not None:
        if written == made and not _write_elsewhere(first, second):
            yield _Conflict(written, None, None)
        for read in first.statement.reads():
            if graph.storage_name(read.tensor) == written:
                yield _Conflict(written, read, None)


def _write_elsewhere(first: Stage, second: Stage) -> bool:
    """Whether two stages on one tensor certainly write different elements: their boxes are apart along a dimension."""
    if first.target != second.target:
        return False
    ours, theirs = ([root.dom for root in stage.roots if root.kind == "output"] for stage in (first, second))
    return any(nonnegative(a[0] - b[1]) or nonnegative(b[0] - a[1]) for a, b in zip(ours, theirs, strict=True))


def _pair_problem(
    graph: StageGraph, sets: ExactSets, first: Stage, second: Stage, pair: _Conflict, depth: int, strict: bool
) -> Problem | None:
    message = f"`{second.name}` cannot share loops with `{first.name}`"
    help = "share fewer loops, or `compute_at`"
    try:
        witness = find_witness(sets, first, second, pair, depth, strict)
    except Unknown as unknown:
        if strict and _is_plain(graph, first, second, pair, depth):
            return None
        said = f"it cannot be excluded that an element is read before it is made ({unknown.reason})"
        return Problem(codes.ILLEGAL_ORDER, f"{message}: {said}", help)
    if witness is None:
        return None
    return Problem(codes.ILLEGAL_ORDER, f"{message}: {witness.text()}", help, witness)


# --- integer sets ----------------------------------------------------------------------------------------------------


def find_witness(
    sets: ExactSets, first: Stage, second: Stage, pair: _Conflict, depth: int, strict: bool
) -> Witness | None:
    """Two points in the wrong order, with the smallest sizes; `None` if there are none for any sizes.

    Raises:
        Unknown: the set library is absent or does not answer, or a fused axis has a symbolic inner extent.
    """
    ours, theirs = _points(sets, first, "1 "), _points(sets, second, "2 ")
    dims = (*ours.dims, *theirs.dims)
    touched = zip(_element(sets, first, pair.first, "1 "), _element(sets, second, pair.second, "2 "), strict=True)
    same = [a - b for a, b in touched if a is not None and b is not None]
    here, there = _vector(sets, first, depth, "1 "), _vector(sets, second, depth, "2 ")
    if len(here) != len(there):
        raise Unknown("the shared loops are fused in different ways")
    both = _beside(ours, dims, 0).intersect(_beside(theirs, dims, len(ours.dims)))
    for early in _reached(sets, first, pair.first, "1 "):
        for late in _reached(sets, second, pair.second, "2 "):
            for order, equal in _later(here, there, strict):
                wrong = both.constrain([*early, *late, *order], [*same, *equal])
                found = _limited_sizes(wrong).smallest()
                if found is not None:
                    return _witness(sets, first, second, pair, found)
    return None


def _limited_sizes(wrong: IntegerSet) -> IntegerSet:
    """With the limits of sizes and scalars, which a witness must respect."""
    limits: list[SizeExpr] = []
    for name, e in wrong.symbols.items():
        low, high = e.limits
        symbol = wrong.symbols[name]
        limits += [symbol - low] if low is not None else []
        limits += [high - symbol] if high is not None else []
    return wrong.constrain(limits) if limits else wrong


def _points(sets: ExactSets, stage: Stage, mark: str) -> IntegerSet:
    """The points of a stage; dimensions are marked to tell two stages apart."""
    points = sets.points(stage)
    return points.rename({name: mark + name for name in points.dims})


def _marked(stage: Stage, mark: str) -> dict[str, SizeExpr]:
    return {root.name: index(mark + root_dim(stage, root.name)) for root in stage.roots}


def _element(sets: ExactSets, stage: Stage, read: Read | None, mark: str) -> list[SizeExpr | None]:
    """The element of an access, in coordinates of the storage; `None` where data decide."""
    own = _marked(stage, mark)
    if read is None:
        shift = view_shift(sets.graph, stage.target)
        outputs = [root for root in stage.roots if root.kind == "output"]
        return [own[root.name] + by for root, by in zip(outputs, shift, strict=True)]
    scope = Scope(sizes=scope_of(sets.graph).sizes, indices=own)
    shift = view_shift(sets.graph, read.tensor)
    return [
        None if is_computed(sets.graph, subscript) else from_expr(subscript, scope) + by
        for subscript, by in zip(read.indices, shift, strict=True)
    ]


def _reached(sets: ExactSets, stage: Stage, read: Read | None, mark: str) -> tuple[Alternative, ...]:
    if read is None:
        return ((),)
    return sets.reached(stage, read, mark)


def _vector(sets: ExactSets, stage: Stage, depth: int, mark: str) -> list[SizeExpr]:
    """The iteration of the shared loops at a point of a stage.

    A fused loop is the pair of its parts: their order is its order, also where its inner extent is a size.
    """
    block = sets.graph.stage(_block(sets.graph, stage))
    shared = block.leaves[:depth]
    if block.name != stage.name:
        return [index(mark + variable(block.name, leaf)) for leaf in shared]
    related = default_lineage(block)
    parts = [part for leaf in shared for part in parts_of_loop(block, related, leaf)]
    domain = default_domain(block)
    starts = {name: steps_to(block, domain, name, value) for name, value in _marked(block, mark).items()}
    found = axis_values(block, related, starts, frozenset(parts))
    return [found[part] for part in parts]


def parts_of_loop(stage: Stage, related: Lineage, axis: str) -> list[str]:
    """A loop, or the two that are fused to one whose inner extent is a size, and so on: their order is its order."""
    for relation in stage.relations:
        if isinstance(relation, Fuse) and relation.fused == axis and not related.extents[relation.inner].is_constant:
            return [*parts_of_loop(stage, related, relation.outer), *parts_of_loop(stage, related, relation.inner)]
    return [axis]


def _beside(points: IntegerSet, dims: tuple[str, ...], at: int) -> IntegerSet:
    """The points as a part of the dimensions `dims`, from `at` on; the others are free."""
    return points.embedded(dims, at)


def _later(
    here: list[SizeExpr], there: list[SizeExpr], strict: bool
) -> Iterator[tuple[list[SizeExpr], list[SizeExpr]]]:
    """`here` is lexicographically after `there` (or equal, if not `strict`), as an OR of constraints and equalities."""
    for place, (a, b) in enumerate(zip(here, there, strict=True)):
        yield [a - b - 1], [x - y for x, y in zip(here[:place], there[:place], strict=True)]
    if not strict:
        yield [], [x - y for x, y in zip(here, there, strict=True)]


def _witness(sets: ExactSets, first: Stage, second: Stage, pair: _Conflict, found: dict[str, int]) -> Witness:
    graph = sets.graph
    sizes = {name: found.get(name, 1) for name in graph.program.sizes}
    here, there = (
        tuple(found[mark + root_dim(stage, root.name)] for root in stage.roots)
        for stage, mark in ((first, "1 "), (second, "2 "))
    )
    ends = zip(_element(sets, first, pair.first, "1 "), _element(sets, second, pair.second, "2 "), strict=True)
    known = {**sizes, **found}
    element = tuple((a if a is not None else b or constant(0)).evaluate(known) for a, b in ends)
    kind = "reads" if pair.second is not None else "overwrites"
    return Witness(sizes, pair.tensor, element, first.name, here, second.name, there, kind)


# --- without integer sets --------------------------------------------------------------------------------------------


def _is_plain(graph: StageGraph, first: Stage, second: Stage, pair: _Conflict, depth: int) -> bool:
    """Whether a comparison of subscripts shows that every element read is made in the same or an earlier iteration."""
    if pair.first is not None or pair.second is None or "at" in (first.attach.kind, second.attach.kind):
        return False
    return _same_point(graph, first, second, pair.second, depth) or _never_later(
        graph, first, second, pair.second, depth
    )


def _same_point(graph: StageGraph, writer: Stage, reader: Stage, read: Read, depth: int) -> bool:
    """Whether what the reader reads is made in the same iteration of the shared loops, whatever the sizes."""
    ours, theirs = default_lineage(reader), default_lineage(writer)
    rename = {
        variable(writer.name, there): ours.leaf(here)
        for there, here in zip(writer.leaves[:depth], reader.leaves[:depth], strict=True)
    }
    shared = set(writer.leaves[:depth])
    if any(writer.kind(leaf) == "reduction" for leaf in shared):
        return False
    scope = scope_of(graph)
    shift = view_shift(graph, read.tensor)
    fixed: set[str] = set()
    for root, subscript, by in zip((r for r in writer.roots if r.kind == "output"), read.indices, shift, strict=True):
        made = theirs.values[root.name]
        used = {leaf for leaf in writer.leaves if variable(writer.name, leaf) in made.indices}
        if not used & shared:
            continue
        if not used <= shared or is_computed(graph, subscript):
            if not _tile_of_same_loops(writer, reader, root.name, subscript):
                return False
        elif made.substitute(rename) != from_expr(subscript, scope).substitute(dict(ours.values)) + by:
            return False
        fixed |= used
    return shared <= fixed


def _tile_of_same_loops(writer: Stage, reader: Stage, root: str, subscript: object) -> bool:
    """A plain index with the same splits on both sides stays inside the same tile."""
    if not isinstance(subscript, IndexVar):
        return False
    mine = [str(relation) for relation in reader.relations if _mentions(relation, subscript.name)]
    yours = [str(relation) for relation in writer.relations if _mentions(relation, root)]
    return mine == [relation.replace(f"'{root}", f"'{subscript.name}") for relation in yours]


def _mentions(relation: object, root: str) -> bool:
    return f"'{root}'" in str(relation) or f"'{root}." in str(relation)


def _never_later(graph: StageGraph, writer: Stage, reader: Stage, read: Read, depth: int) -> bool:
    """Whether the element is made in an earlier iteration of the single shared loop, for all sizes."""
    if depth != 1:
        return False
    ours, theirs = default_lineage(reader), default_lineage(writer)
    leaf_here, leaf_there = reader.leaves[0], writer.leaves[0]
    outputs = [root for root in writer.roots if root.kind == "output"]
    position = next((k for k, root in enumerate(outputs) if root.name == leaf_there), None)
    if position is None or is_computed(graph, read.indices[position]):
        return False
    box = {root.name: (root.dom[0], root.dom[1] - 1) for root in reader.roots if root.name != leaf_here}
    latest = interval(from_expr(read.indices[position], scope_of(graph)), box).upper
    if latest is None or leaf_here not in ours.values:
        return False
    here = latest.substitute({leaf_here: ours.values[leaf_here]})
    start = theirs.values[leaf_there].substitute({variable(writer.name, leaf_there): ours.leaf(leaf_here)})
    return nonnegative(start - here)


__all__ = [
    "Problem",
    "Witness",
    "check_with",
    "default_lineage",
    "find_conflict",
    "find_witness",
    "order_problem",
    "outside_read",
    "parts_of_loop",
    "result_read",
]
