"""Which elements of every tensor a chunk needs: bounds inference with the chunk as the consumer, on numbers.

Statements are visited from back to front, as in `schedule.infer_bound`: the ranges of the indices of a statement follow from
what is asked of its target, the interval of every subscript is what it asks of what it reads.

Worked example: `T(i) = X(i) + X(i + 1)`, `Y(i) = T(i) + T(i + 1)`; for `8 <= i < 12` of `Y`, `T` is needed from 8 up to 13, and
`X` from 8 up to 14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tc_jupyter.program import Expr, IndexVar, Read, Statement, walk
from tc_jupyter.ranges import Scope, SizeExpr, constant, decided, from_expr, interval

from .flat import Flat
from .part import Place, turned_subscript

Span = tuple[int, int]
"""From the first number up to the last one, which is not included."""
Region = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """A read of a statement.

    Attributes:
        inner: of subscripts that go around their dimension, `e % N`, what goes around: `e`.
    """

    tensor: str
    subscripts: tuple[SizeExpr, ...]
    read: Read
    inner: tuple[SizeExpr | None, ...]


@dataclass
class Regions:
    """A def at the sizes of a call.

    Attributes:
        numbers: sizes and integer scalars.
        boxes, points: of tensors and of the indices of statements.
    """

    flat: Flat
    numbers: Mapping[str, int]
    boxes: dict[str, Region] = field(default_factory=dict[str, Region])
    points: dict[str, dict[str, Span]] = field(default_factory=dict[str, dict[str, Span]])
    _accesses: dict[str, tuple[Access, ...]] = field(default_factory=dict[str, tuple[Access, ...]])
    _ends: dict[str, dict[str, tuple[SizeExpr, SizeExpr]]] = field(
        default_factory=dict[str, dict[str, tuple[SizeExpr, SizeExpr]]]
    )
    _found: dict[tuple[SizeExpr, tuple[Span, ...]], Span | None] = field(
        default_factory=dict[tuple[SizeExpr, tuple[Span, ...]], Span | None]
    )

    def __post_init__(self) -> None:
        numbers = self.numbers
        self.boxes = {
            name: tuple((low.evaluate(numbers), high.evaluate(numbers)) for low, high in bounds)
            for name, bounds in self.flat.boxes.items()
        }
        self.points = {
            name: {index: (low.evaluate(numbers), high.evaluate(numbers)) for index, (low, high) in found.items()}
            for name, found in self.flat.points.items()
        }
        program = self.flat.program
        known = {name: constant(value) for name, value in numbers.items()}
        scope = Scope({name: known[name] for name in program.sizes}, {n: known[n] for n in program.integer_scalars})
        for statement in program.statements:
            self._accesses[statement.name] = tuple(self._accesses_of(statement, scope))
            self._ends[statement.name] = {
                each.name: (from_expr(each.ends[0], scope), from_expr(each.ends[1], scope))
                for each in statement.indices
                if each.ends is not None
            }

    @property
    def is_empty(self) -> bool:
        """Whether a tensor has no element, or a statement no point."""
        spans = [span for region in self.boxes.values() for span in region]
        spans += [span for found in self.points.values() for span in found.values()]
        return any(high <= low for low, high in spans)

    def _accesses_of(self, statement: Statement, scope: Scope) -> Iterator[Access]:
        reads = [*statement.reads(), *(node for expr in statement.exists for node in _reads(expr))]
        for read in dict.fromkeys(reads):
            if read.tensor in self.boxes and read.indices:
                inner = (turned_subscript(self.flat, read, place) for place in range(len(read.indices)))
                turned = tuple(None if each is None else from_expr(each, scope) for each in inner)
                yield Access(read.tensor, tuple(from_expr(at, scope) for at in read.indices), read, turned)

    def range_of(self, place: Place) -> Span:
        """The whole range of a dimension or of an index."""
        name, which = place
        return self.boxes[name][which] if isinstance(which, int) else self.points[name][which]

    def accesses(self, statement: str) -> tuple[Access, ...]:
        """The reads of a statement, those of conditions and of subscripts included."""
        return self._accesses[statement]

    def indices(self, statement: Statement, given: Mapping[str, Span]) -> dict[str, Span]:
        """The ranges of all indices, some of which are given."""
        found = {**self.points[statement.name], **given}
        for name, (lower, upper) in self._ends[statement.name].items():
            least, most = found[name]
            low, high = self.interval(lower, found), self.interval(upper, found)
            least = least if low is None else max(least, low[0])
            found[name] = (least, max(least, most if high is None else min(most, high[1] - 1)))
        return found

    def interval(self, subscript: SizeExpr, indices: Mapping[str, Span]) -> Span | None:
        """The values of a subscript; `None` where data decide."""
        names = sorted(subscript.indices)
        key = subscript, tuple(indices[name] for name in names)
        if key not in self._found:
            box = {name: (constant(low), constant(high - 1)) for name, (low, high) in zip(names, key[1], strict=True)}
            ends = interval(decided(subscript, box), box)
            low, high = ends.lower, ends.upper
            known = low is not None and high is not None and low.is_constant and high.is_constant
            self._found[key] = (low.offset, high.offset + 1) if known and low is not None and high is not None else None
        return self._found[key]

    def asked(
        self, access: Access, indices: Mapping[str, Span], turned: frozenset[tuple[str, int]] = frozenset()
    ) -> Region | None:
        """What a read asks of its tensor while the indices run over their ranges; `None` if that is nothing.

        Args:
            turned: dimensions that go on beyond their ends.
        """
        region: list[Span] = []
        for place, (subscript, (least, most)) in enumerate(
            zip(access.subscripts, self.boxes[access.tensor], strict=True)
        ):
            inner = access.inner[place]
            if inner is not None and (access.tensor, place) in turned:
                around = self.interval(inner, indices)
                region.append((least, most) if around is None else around)
                continue
            low, high = self.interval(subscript, indices) or (least, most)
            low, high = max(low, least), min(high, most)
            if high <= low:
                return None
            region.append((low, high))
        return tuple(region)


@dataclass(frozen=True, slots=True)
class Needs:
    """What one chunk of a part needs.

    Attributes:
        regions: of every tensor of the part.
        points: how many points each statement has.
    """

    regions: Mapping[str, Region]
    points: Mapping[str, int]


def needs(
    about: Regions,
    statements: Sequence[Statement],
    results: Mapping[str, Region],
    cuts: Mapping[tuple[str, str], Span],
    fixed: frozenset[tuple[str, int]],
    sources: Iterable[str],
    turned: frozenset[tuple[str, int]] = frozenset(),
) -> Needs:
    """The regions of all tensors of a part for one chunk.

    Args:
        results: what is wanted.
        cuts: the ranges of reduction indices that are cut.
        fixed: dimensions that are never cut.
        sources: tensors that are not computed here.
        turned: dimensions of them that go on beyond their ends.
    """
    found = dict(results)
    points: dict[str, int] = {}
    for statement in reversed(statements):
        target = statement.target
        found[target] = _whole(about, fixed, target, found.get(target) or _smallest(about.boxes[target]))
        given = {index: span for (name, index), span in cuts.items() if name == statement.name}
        computed = {index.name for index, _ in statement.computed}
        for dimension, index in enumerate(statement.output_indices):
            (low, high), (least, most) = found[target][dimension], about.points[statement.name][index.name]
            if index.name not in computed:
                given[index.name] = (max(low, least), min(high, most))
        indices = about.indices(statement, given)
        points[statement.name] = 1
        for name, (low, high) in indices.items():
            if name not in computed:
                points[statement.name] *= max(0, high - low)
        if not points[statement.name]:
            continue
        for access in about.accesses(statement.name):
            region = about.asked(access, indices, turned)
            if region is not None and access.tensor != target:
                found[access.tensor] = _hull(found.get(access.tensor), region)
    for source in sources:
        found[source] = _whole(about, fixed, source, found.get(source) or _smallest(about.boxes[source]))
    return Needs(found, points)


def _hull(one: Region | None, other: Region) -> Region:
    if one is None:
        return other
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))


def _smallest(box: Region) -> Region:
    """One element: no array of a part is empty, since code relies on sizes of 1 and more."""
    return tuple((low, min(low + 1, high)) for low, high in box)


def _whole(about: Regions, fixed: frozenset[tuple[str, int]], tensor: str, region: Region) -> Region:
    box = about.boxes[tensor]
    return tuple(box[dimension] if (tensor, dimension) in fixed else span for dimension, span in enumerate(region))


def _reads(expr: Expr) -> Iterator[Read]:
    return (node for node in walk(expr) if isinstance(node, Read))


def plain_index(access: Access, dimension: int) -> str | None:
    """The index that a subscript is, if it is one alone."""
    at = access.read.indices[dimension]
    return at.name if isinstance(at, IndexVar) else None
