"""How a def is taken apart: which tensors are made chunk by chunk, which statements each chunk computes, and where chunks end.

Chunks of results follow those of what they are made of. One task computes all statements of a chunk. A reduction along a
dimension that is cut is computed in parts, which a tree of tasks combines; what many chunks need more than once is made on its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import prod

from tc_jupyter.program import Const, IndexVar, Statement, identity_of, walk

from .combine import COMBINE
from .flat import Flat
from .part import Axis, Part, Place, named
from .regions import Access, Needs, Region, Regions, Span, needs, plain_index
from .ties import Ties

Grid = tuple[tuple[int, ...], ...]
"""Where chunks begin, per dimension; the last number is the end."""

Contraction = tuple[Statement, dict[str, tuple[int, ...]]]
"""A reduction that is computed in parts, and where those begin along each of its indices that is cut."""

REDUNDANT = 1.2
"""How many times as much as the whole def the parts may compute before a temporary is made on its own."""


def spans_of(edges: Iterable[int]) -> list[Span]:
    """The chunks of a dimension."""
    return list(pairwise(edges))


@dataclass(frozen=True)
class Chunk:
    """One task of a layer.

    Attributes:
        place: which chunk of the result, by dimension, and behind that which part of each reduction that is cut.
        regions: of the results and of what comes in.
        numbers: what the part is told, by name.
    """

    place: tuple[int, ...]
    regions: Mapping[str, Region]
    numbers: Mapping[str, int]


@dataclass(frozen=True)
class Layer:
    """Tensors that one kernel makes, chunk by chunk.

    Attributes:
        grid: of the results.
        cut: of the reductions that are computed in parts.
        operator: that combines the parts.
    """

    part: Part
    grid: Grid
    cut: tuple[tuple[int, ...], ...]
    operator: str
    chunks: tuple[Chunk, ...]
    why: str

    @property
    def tasks(self) -> int:
        """How many tasks compute it, those that combine parts among them."""
        parts = prod(len(edges) - 1 for edges in self.cut)
        results = len(self.chunks) // parts
        split = results * (len(self.part.results) + 1 if len(self.part.results) > 1 else 1)
        return split if parts == 1 else len(self.chunks) + results * combinations(parts)


FAN_IN = 8


def combinations(parts: int) -> int:
    """How many tasks make one of so many parts."""
    count = 0
    while parts > 1:
        parts = -(-parts // FAN_IN)
        count += parts
    return count


def layers_of(about: Regions, grids: dict[str, Grid], whole: bool = False) -> tuple[tuple[Layer, ...], float]:
    """The layers of a def, in the order in which they are made, and how much is computed more than once.

    Args:
        grids: of the parameters; those of all other tensors are added.
        whole: nothing is cut.
    """
    taking = _Taking(about, grids, whole)
    return taking.run(), max(0.0, taking.redundant)


@dataclass
class _Taking:
    about: Regions
    grids: dict[str, Grid]
    whole: bool
    fixed: frozenset[tuple[str, int]] = frozenset()
    contracted: dict[str, Contraction] = field(default_factory=dict[str, Contraction])
    last: dict[str, int] = field(default_factory=dict[str, int])
    points: dict[tuple[str, ...], list[Mapping[str, int]]] = field(
        default_factory=dict[tuple[str, ...], list[Mapping[str, int]]]
    )
    redundant: float = 0.0
    apart: bool = False  # groups of results would wait for each other

    @property
    def flat(self) -> Flat:
        return self.about.flat

    def run(self) -> tuple[Layer, ...]:
        program = self.flat.program
        if self.whole:
            return (self.entire(),)
        self.fixed = frozenset(_fixed(self.flat))
        self.last = {each.target: place for place, each in enumerate(program.statements)}
        for tensor in self.flat.computed:
            self.grids[tensor] = self.allowed(tensor, self.grids.get(tensor) or self.grid_of(tensor))
            cut = self.contraction(tensor)
            if cut is not None:
                self.contracted[tensor] = cut
        made = {*program.results, *self.contracted}
        while True:
            groups = self.ordered(list(self.together(made)), made)
            layers = tuple(self.layer(targets, made) for targets in groups)
            worst = self.worst(layers, made)
            if worst is None:
                return layers
            made.add(worst)

    def entire(self) -> Layer:
        """One task that calls the def with whole arrays."""
        program, boxes = self.flat.program, self.about.boxes
        self.grids |= {name: boxes[name] for name in self.flat.computed}
        sources = tuple(name for name in program.parameters if program.tensor(name).written_rank)
        part = Part(tuple(each.name for each in program.statements), sources, program.results, entire=True)
        grid = boxes[program.results[0]]
        chunk = Chunk((0,) * len(grid), {name: boxes[name] for name in (*sources, *program.results)}, {})
        return Layer(part, grid, (), "", (chunk,), "nothing is cut: one task")

    # where chunks end

    def grid_of(self, tensor: str) -> Grid:
        box = self.about.boxes[tensor]
        return tuple(self.edges(tensor, dimension, span) for dimension, span in enumerate(box))

    def allowed(self, tensor: str, grid: Grid) -> Grid:
        """The grid with dimensions that are never cut in one piece."""
        box = self.about.boxes[tensor]
        return tuple(box[place] if (tensor, place) in self.fixed else edges for place, edges in enumerate(grid))

    def edges(self, tensor: str, dimension: int, span: Span) -> tuple[int, ...]:
        """Where the chunks of a dimension end: where those of what is read there do."""
        if (tensor, dimension) in self.fixed:
            return span
        best: tuple[tuple[bool, int], tuple[int, ...]] | None = None
        for statement in self.flat.family(tensor):
            index = statement.output_indices[dimension].name
            for access in self.about.accesses(statement.name):
                for place, subscript in enumerate(access.subscripts):
                    source = self.grids.get(access.tensor)
                    if source is None or len(source[place]) <= 2 or index not in subscript.indices:
                        continue
                    found = self.carried(statement, index, access, place, span)
                    weight = plain_index(access, place) is not None, prod(len(each) for each in source)
                    if len(found) > 2 and (best is None or weight > best[0]):
                        best = weight, found
        return span if best is None else best[1]

    def carried(self, statement: Statement, index: str, access: Access, place: int, span: Span) -> tuple[int, ...]:
        """The edges of a dimension that is read, as edges of an index."""
        first, end = self.about.points[statement.name][index]
        rest = {name: (low, low + 1) for name, (low, _) in self.about.points[statement.name].items()}

        inner = access.inner[place]  # what goes around an array passes its edges again
        subscript = access.subscripts[place] if inner is None else inner

        def at(value: int) -> int:
            found = self.about.interval(subscript, {**rest, index: (value, value + 1)})
            return 0 if found is None else found[0]

        edges = list(self.grids[access.tensor][place][1:-1])
        if inner is not None:
            low, high = self.about.boxes[access.tensor][place]
            edges = [edge + turn for turn in (low - high, 0, high - low) for edge in (low, *edges)]
        rising = at(end - 1) >= at(first)
        found = {_least(lambda value, edge=edge: (at(value) >= edge) == rising, first, end) for edge in edges}
        return (span[0], *sorted(each for each in found if span[0] < each < span[1]), span[1])

    # reductions in parts

    def contraction(self, tensor: str) -> Contraction | None:
        """The indices along which a sum is computed in parts, with their edges."""
        *others, statement = self.flat.family(tensor)
        filled = len(others) == 1 and self.fills(others[0], statement)
        plain = statement.operator in COMBINE and (statement.initialize or filled)
        needs_more = statement.needs_points and (statement.filters or any(each.ends for each in statement.indices))
        other = statement.order or statement.part or (others and not filled)
        if other or not plain or needs_more:
            return None
        cuts: dict[str, tuple[int, ...]] = {}
        for index in statement.reduction_indices:
            if index.ends is not None:
                continue
            low, high = self.about.points[statement.name][index.name]
            for access in self.about.accesses(statement.name):
                for place in range(len(access.subscripts)):
                    source = self.grids.get(access.tensor)
                    if source is None or plain_index(access, place) != index.name:
                        continue
                    edges = (low, *(edge for edge in source[place] if low < edge < high), high)
                    if len(edges) > max(2, len(cuts.get(index.name, ()))):
                        cuts[index.name] = edges
        return (statement, cuts) if cuts else None

    def fills(self, first: Statement, second: Statement) -> bool:
        """Whether a statement only writes what the next one begins with: `C(i, j) = 0` before `C(i, j) += ...`."""
        value = first.value
        if first.operator != "=" or not isinstance(value, Const) or second.operator not in COMBINE or second.computed:
            return False
        whole = all(
            self.about.points[each.name][index.name] == span
            for each in (first, second)
            for index, span in zip(each.output_indices, self.about.boxes[first.target], strict=True)
        )
        return whole and not first.filters and value == identity_of(second.operator, value.dtype)

    # who computes what

    def together(self, made: set[str]) -> Iterator[tuple[str, ...]]:
        """The tensors that are made on their own, those in one group that one kernel can make."""
        order = [each for each in self.flat.computed if each in made]
        order.sort(key=lambda name: self.last[name])
        groups: list[list[str]] = []
        for tensor in order:
            group = next((each for each in groups if self.joins(tensor, each, made)), None)
            if group is None:
                groups.append([tensor])
            else:
                group.append(tensor)
        return (tuple(each) for each in groups)

    def ordered(self, groups: list[tuple[str, ...]], made: set[str]) -> list[tuple[str, ...]]:
        """The groups in an order in which all that one needs is made before."""
        waiting, order, ready = list(groups), list[tuple[str, ...]](), set(self.flat.program.parameters)
        while waiting:
            group = next((each for each in waiting if {*self.slice(each, made)[1]} <= ready), None)
            if group is None:
                self.apart = True
                return self.ordered(list(self.together(made)), made)
            waiting.remove(group)
            order.append(group)
            ready |= set(group)
        return order

    def joins(self, tensor: str, group: list[str], made: set[str]) -> bool:
        """Whether a tensor may be made together with others: chunks alike, and what it needs of them is in its own chunk."""
        results = self.flat.program.results
        if self.apart or any(each in self.contracted or each not in results for each in (*group, tensor)):
            return False
        if any(self.grids[each] != self.grids[tensor] for each in group):
            return False
        alone, _ = self.slice((tensor,), made)
        _, sources = self.slice((*group, tensor), made)
        behind = {name for name in sources if name in made and self.depends(name, set(group), made)}
        if behind:
            return False
        shared = {each.target for each in alone} | set(self.slice((tensor,), made)[1])
        if not shared & {name for each in group for name in self.everything_of(each, made)}:
            return False
        part = self.part((*group, tensor), made)
        return all(
            found.regions[each] == region
            for _, wanted, cuts in self.asked(part)
            for found in [self.needs(part, wanted, cuts)]
            for each, region in wanted.items()
        )

    def everything_of(self, tensor: str, made: set[str]) -> set[str]:
        statements, sources = self.slice((tensor,), made)
        return {*sources, *(each.target for each in statements)}

    def depends(self, tensor: str, on: set[str], made: set[str]) -> bool:
        """Whether a tensor is made of others, also by way of what is made between."""
        waiting, seen = [tensor], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen or name not in made:
                continue
            seen.add(name)
            found = self.everything_of(name, made) - {name}
            if found & on:
                return True
            waiting += found
        return False

    def slice(self, targets: tuple[str, ...], made: set[str]) -> tuple[list[Statement], list[str]]:
        """The statements that make tensors, and the tensors that come in.

        A tensor that is changed after it was read comes in as it was then: its statements are computed again.
        """
        own = set(targets)
        program = self.flat.program
        numbers = {name for name in program.parameters if not program.tensor(name).written_rank}
        while True:
            wanted, statements, sources = set(own), list[Statement](), set[str]()
            for place, statement in reversed(list(enumerate(self.flat.program.statements))):
                if statement.target not in wanted:
                    continue
                statements.insert(0, statement)
                for access in self.about.accesses(statement.name):
                    name = access.tensor
                    if name in numbers:
                        continue
                    if name in self.last and (name in own or name not in made or self.last[name] >= place):
                        wanted.add(name)
                    else:
                        sources.add(name)
                for read in statement.reads():  # numbers that were computed
                    name = read.tensor
                    if name in self.last and not read.indices:
                        (wanted if name in own or name not in made or self.last[name] >= place else sources).add(name)
            combined = {each.target: each.name for each, _ in self.cut_of(targets)}
            statements = [each for each in statements if combined.get(each.target, each.name) == each.name]
            again = sources & wanted
            if not again:
                order = {each.name: place for place, each in enumerate(self.flat.program.tensors)}
                return statements, sorted(sources, key=order.__getitem__)
            own |= again

    def part(self, targets: tuple[str, ...], made: set[str]) -> Part:
        """The part that makes some tensors, with every dimension that is cut an axis of its own."""
        statements, sources = self.slice(targets, made)
        cuts = tuple((each.name, index) for each, found in self.cut_of(targets) for index in found)
        places: list[Place] = [(name, index) for name, index in cuts]
        tensors = dict.fromkeys((*sources, *(each.target for each in statements)))
        places += [
            (name, dimension)
            for name in tensors
            for dimension in range(len(self.about.boxes[name]))
            if (name, dimension) not in self.fixed
        ]
        axes = tuple(Axis(named(place), (place,)) for place in places)
        turned = {
            (access.tensor, dimension)
            for each in statements
            for access in self.about.accesses(each.name)
            for dimension, inner in enumerate(access.inner)
            if inner is not None and access.tensor in sources and (access.tensor, dimension) not in self.fixed
        }
        part = Part(tuple(each.name for each in statements), tuple(sources), targets, cuts, axes, tuple(sorted(turned)))
        return replace(part, turned=tuple(each for each in part.turned if self.goes_around(part, *each)))

    def goes_around(self, part: Part, tensor: str, dimension: int) -> bool:
        """Whether no chunk needs as much as the whole dimension, beyond whose ends it goes."""
        low, high = self.about.boxes[tensor][dimension]
        length = high - low
        regions = (self.needs(part, wanted, cuts).regions[tensor][dimension] for _, wanted, cuts in self.asked(part))
        return all(b - a < length and low - length <= a and b <= high + length for a, b in regions)

    def cut_of(self, targets: tuple[str, ...]) -> list[Contraction]:
        return [self.contracted[each] for each in targets if each in self.contracted]

    # the tasks

    def asked(self, part: Part) -> Iterator[tuple[tuple[int, ...], dict[str, Region], dict[tuple[str, str], Span]]]:
        """Place, regions of the results and parts of reductions of every task."""
        grid = self.grids[part.results[0]]
        edges = [each for _, found in self.cut_of(part.results) for each in found.values()]
        pieces = [list(enumerate(spans_of(each))) for each in (*grid, *edges)]
        for chosen in product(*pieces):
            place = tuple(number for number, _ in chosen)
            region = tuple(span for _, span in chosen[: len(grid)])
            cuts = dict(zip(part.cuts, (span for _, span in chosen[len(grid) :]), strict=True))
            yield place, dict.fromkeys(part.results, region), cuts

    def needs(self, part: Part, wanted: dict[str, Region], cuts: dict[tuple[str, str], Span]) -> Needs:
        statements = [self.flat.program.statement(name) for name in part.statements]
        return needs(self.about, statements, wanted, cuts, self.fixed, part.sources, frozenset(part.turned))

    def layer(self, targets: tuple[str, ...], made: set[str]) -> Layer:
        part = self.part(targets, made)
        found = [(place, self.needs(part, wanted, cuts), cuts) for place, wanted, cuts in self.asked(part)]
        spans = [
            {
                axis.places[0]: each.regions[axis.places[0][0]][axis.places[0][1]]
                if isinstance(axis.places[0][1], int)
                else cuts[(axis.places[0][0], axis.places[0][1])]
                for axis in part.axes
            }
            for _, each, cuts in found
        ]
        part = self.tied(part, spans)
        chunks = tuple(
            Chunk(place, {name: each.regions[name] for name in (*part.sources, *part.results)}, self.told(part, known))
            for (place, each, _), known in zip(found, spans, strict=True)
        )
        cut = tuple(each for _, found in self.cut_of(targets) for each in found.values())
        operator = self.cut_of(targets)[0][0].operator if cut else ""
        self.points[targets] = [each.points for _, each, _ in found]
        return Layer(part, self.grids[targets[0]], cut, operator, chunks, self.why(part, targets))

    def why(self, part: Part, targets: tuple[str, ...]) -> str:
        """In one line, why this is a layer."""
        if part.cuts:
            names = ", ".join(index for _, index in part.cuts)
            return f"`{names}` runs along a dimension that is cut: parts, which are then combined"
        if not any(name in self.flat.program.results for name in targets):
            return "several chunks need the same elements: they are made once"
        return "one task per chunk" if len(part.axes) else "nothing is cut: one task"

    def told(self, part: Part, spans: Mapping[Place, Span]) -> dict[str, int]:
        numbers: dict[str, int] = {}
        for axis in part.axes:
            low, high = spans[axis.places[0]]
            numbers[axis.count] = high - low
            if axis.moves:
                begin, end = self.about.range_of(axis.places[0])
                numbers[axis.first] = low - begin + 1 + (end - begin if axis.places[0] in part.turned else 0)
        return numbers

    # dimensions that go together

    def tied(self, part: Part, spans: list[dict[Place, Span]]) -> Part:
        """The part with one axis for dimensions that have the same numbers in every chunk because the same index runs over them.

        Worked example: in a product of matrices, the rows of `A` and of `C`. Their first number is not told: the kernel is then the
        one of the whole def at other sizes.
        """
        ties = Ties(self.about, part)
        groups = [group for group in ties.groups() if all(len({known[each] for each in group}) == 1 for known in spans)]
        joined = {place: group for group in groups for place in group}
        axes: dict[tuple[Place, ...], Axis] = {}
        for axis in part.axes:
            places = joined.get(axis.places[0], axis.places)
            moves = places not in groups or ties.moves(places)
            axes.setdefault(places, Axis(named(places[0]), places, moves))
        return replace(part, axes=tuple(axes.values()))

    # what is computed more than once

    def worst(self, layers: tuple[Layer, ...], made: set[str]) -> str | None:
        """The temporary that is computed again most, if everything together is computed again too often."""
        once: dict[str, int] = {}
        again: dict[str, int] = {}
        for statement in self.flat.program.statements:
            weight = sum(1 for _ in walk(statement.value))
            once[statement.name] = weight * prod(max(0, b - a) for a, b in self.about.points[statement.name].values())
        for layer in layers:
            for name in layer.part.statements:
                weight = sum(1 for _ in walk(self.flat.program.statement(name).value))
                again[name] = again.get(name, 0) + weight * sum(each[name] for each in self.points[layer.part.results])
        self.redundant = sum(again.values()) / max(1, sum(once.values())) - 1
        if sum(again.values()) <= REDUNDANT * sum(once.values()):
            return None
        excess = {
            tensor: sum(again.get(each.name, 0) - once[each.name] for each in self.flat.family(tensor))
            for tensor in self.flat.computed
            if tensor not in made
        }
        worst = max(excess, key=excess.__getitem__, default=None)
        return worst if worst is not None and excess[worst] > 0 else None


def _least(holds: Callable[[int], bool], first: int, end: int) -> int:
    """The first number for which something holds that then holds for all larger ones."""
    while first < end:
        middle = (first + end) // 2
        if holds(middle):
            end = middle
        else:
            first = middle + 1
    return first


def _fixed(flat: Flat) -> Iterator[tuple[str, int]]:
    """Dimensions that are never cut: data or an order decides where elements are made, or the text does not have them."""
    for tensor in flat.program.tensors:
        yield from ((tensor.name, place) for place in range(tensor.written_rank, tensor.rank))
    for statement in flat.program.statements:
        computed = {index.name for index, _ in statement.computed}
        ordered = {name for name, _ in statement.order} | {statement.part}
        others = {
            place
            for read in statement.reads()
            if read.tensor == statement.target
            for place, (at, index) in enumerate(zip(read.indices, statement.output_indices, strict=True))
            if not (isinstance(at, IndexVar) and at.name == index.name)
        }
        for place, index in enumerate(statement.output_indices):
            if index.name in computed | ordered or place in others:
                yield statement.target, place
