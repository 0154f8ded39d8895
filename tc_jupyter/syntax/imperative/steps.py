"""Leaves with the ranges of their indices: numbers of inner loops become tensors, conditions become ends of ranges.

Worked example: `s += x(i, k)` in loops over `i` and `k`, where `s` is set anew for each `i`, is `s(i) += x(i, k)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tc_jupyter.syntax.printer import expression_text
from tc_jupyter.syntax.tree import Apply, Binary, Expression, Extent, Name, mapped, names_in, walk

from .kinds import Kinds, is_function, is_integer, values_in
from .leaves import ALONE, Flat, Head, Leaf
from .parser import POINTERS, WHILE, Beyond, put
from .polynomials import (
    Bounds,
    Polynomial,
    constant,
    expression,
    extremes,
    factor_of,
    is_positive,
    names_of,
    plus,
    polynomial,
)
from .tree import Assign, Parameter

CARRIED = "each turn needs `{}` of another turn: that is a recurrence, as in `y(i) = (y(i - 1) else 0) + x(i) along i`"
UNSET = "`{}` is read where no statement has written it"
LAST = "`{}` is one number, which a loop leaves as it was in its last turn: write a tensor, or combine the values"
TWICE = "two turns of a loop may write one element of `{}`: a statement gives each element one value, or combines all"
_ENDLESS = "nothing says how far `{}` runs: a condition does, as in `if (i < N)`"


@dataclass(frozen=True, slots=True)
class Range:
    """The values of an index: as they are written, and the first and last one where these are polynomials.

    Attributes:
        step: other than 1 where it takes some of the values only; a negative one counts from the last one on.
    """

    lower: Expression
    upper: Expression
    first: Polynomial | None
    last: Polynomial | None
    step: int = 1


@dataclass(slots=True)
class Step:
    """A leaf on its way to a statement.

    Attributes:
        ranges: of its indices, outer ones first.
        filters: conditions that are no ranges.
        along: loops in whose order its points are taken.
        fresh: whether what it combines into begins here.
        lets: names of values.
    """

    assign: Assign
    heads: tuple[Head, ...]
    ranges: dict[str, Range]
    filters: tuple[Expression, ...] = ()
    along: tuple[Head, ...] = ()
    fresh: bool = False
    lets: dict[str, Expression] = field(default_factory=dict[str, Expression])

    @property
    def bounds(self) -> Bounds:
        """The first and the last value of each index, as far as they are known."""
        return {
            name: (each.first, each.last)
            for name, each in self.ranges.items()
            if each.first is not None and each.last is not None
        }

    @property
    def read(self) -> tuple[Expression, ...]:
        """All that it evaluates."""
        ends = (end for each in self.ranges.values() for end in (each.lower, each.upper))
        return (self.assign.value, *self.assign.subscripts, *self.filters, *self.lets.values(), *ends)


# --- numbers of inner loops -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Version:
    """A number from where it is set on, in the loops around that place."""

    name: str
    leaf: int
    heads: tuple[Head, ...]
    conditions: tuple[Expression, ...]

    def holds_at(self, leaf: Leaf) -> bool:
        """Whether a leaf stands in the same turn of all these loops."""
        count = len(self.heads)
        return leaf.heads[:count] == self.heads and leaf.conditions[: len(self.conditions)] == self.conditions


def with_numbers(found: Flat, parameters: Mapping[str, Parameter]) -> list[Leaf]:
    """Leaves in which a number that is set in a loop is a tensor with the index of that loop."""
    leaves, kinds = found.leaves, found.kinds
    numbers = {each.assign.target for each in leaves if not each.assign.subscripts}
    numbers |= {each.assign.place[0] for each in leaves if each.assign.place}
    taken = {name for each in leaves for name in names_in(_parts(each))} | {*parameters} | numbers
    if changed := numbers & {*parameters}:
        raise Beyond(f"the parameter `{min(changed)}` is a number, which stays what it is")
    known = {*parameters, *numbers, *found.declared} | {each.assign.target for each in leaves}
    known |= names_in(extent for each in parameters.values() for extent in each.extents if extent is not None)
    if _arrays(leaves) & _numbers(leaves):
        raise Beyond(POINTERS)
    now, made, uses = dict[str, _Version](), list[Leaf](), list[tuple[int, str]]()
    for place, leaf in enumerate(leaves):
        _is_known(_parts(leaf), known | {head.index for head in leaf.heads})
        read = numbers & names_in(_parts(leaf))
        for name in read:
            if name not in now or not now[name].holds_at(leaf):
                raise Beyond((LAST if name in now else UNSET).format(name))
        for name in {leaf.assign.target, *(leaf.assign.place or ())[:1]} & numbers:
            old = now.get(name)
            begins = leaf.assign.operator == "=" or (old is None and name == leaf.assign.target and leaf.assign.place)
            sets = begins and name not in read
            users = [leaves[k] for k, each in uses if each == name and old is not None and k > old.leaf]
            is_inner = old is None or (len(leaf.heads) > len(old.heads) and not _is_carried(old, leaf, users))
            if sets and (old is None or not old.holds_at(leaf) or is_inner):
                own = name if old is None else next(each for k in range(2, 99) if (each := f"{name}{k}") not in taken)
                taken.add(own)
                kinds.name(own, name)
                around = now[leaf.assign.place[0]] if leaf.assign.place and leaf.assign.place[0] in now else leaf
                now[name] = _Version(own, place, around.heads, around.conditions)
            elif old is None or not old.holds_at(leaf):
                raise Beyond((UNSET if old is None else LAST).format(name))
        uses += [(place, name) for name in read]
        made.append(_with_versions(leaf, now))
    _is_known(found.results, known)
    ends = numbers & names_in(found.results)
    if last := [name for name in ends if name not in now or now[name].heads or now[name].conditions]:
        raise Beyond((LAST if last[0] in now else UNSET).format(last[0]))
    found.results = tuple(put(each, {name: Name(now[name].name) for name in ends}) for each in found.results)
    return made


def _arrays(leaves: list[Leaf]) -> set[str]:
    """The names with subscripts."""
    nodes = (node for leaf in leaves for part in _parts(leaf) for node in walk(part) if isinstance(node, Apply))
    found = {node.function.name for node in nodes if not is_function(node.function.name)}
    return found | {leaf.assign.target for leaf in leaves if leaf.assign.subscripts}


def _numbers(leaves: list[Leaf]) -> set[str]:
    """The names without subscripts, indices among them."""
    nodes = (node for leaf in leaves for part in _parts(leaf) for node in walk(part) if isinstance(node, Name))
    found = {node.name for node in nodes} | {head.index for leaf in leaves for head in leaf.heads}
    return found | {leaf.assign.target for leaf in leaves if not leaf.assign.subscripts}


def _is_known(nodes: Iterable[Expression], known: set[str]) -> None:
    """Raise `Beyond` for a name that is neither a parameter nor anything that is set."""
    for node in (each for part in nodes for each in walk(part)):
        name = node.name if isinstance(node, Name) else node.function.name if isinstance(node, Apply) else ""
        name = node.tensor.name if isinstance(node, Extent) else name
        if name and name not in known and not (isinstance(node, Apply) and is_function(name)):
            raise Beyond(ALONE if "." in name else UNSET.format(name))


def _parts(leaf: Leaf) -> tuple[Expression, ...]:
    ends = (end for head in leaf.heads for end in (head.lower, head.upper) if end is not None)
    return (leaf.assign.value, *leaf.assign.subscripts, *leaf.conditions, *ends)


def _is_carried(old: _Version, leaf: Leaf, users: list[Leaf]) -> bool:
    """Whether a number is read in a loop before it is set there: it comes from the turn before."""
    count = len(old.heads)
    return any(each.heads[count : count + 1] == leaf.heads[count : count + 1] != () for each in users)


def _with_versions(leaf: Leaf, now: Mapping[str, _Version]) -> Leaf:
    values = {name: _element(each) for name, each in now.items()}

    def change(node: Expression) -> Expression:
        return values.get(node.name, node) if isinstance(node, Name) else mapped(node, change)

    assign = leaf.assign
    own = now.get(assign.target) if not assign.subscripts else None
    place = assign.place and (now[assign.place[0]].name, assign.place[1])
    subscripts = tuple(map(change, assign.subscripts)) if own is None else tuple(Name(head.index) for head in own.heads)
    assign = replace(
        assign,
        target=assign.target if own is None else own.name,
        subscripts=subscripts,
        value=change(assign.value),
        place=place,
    )
    return replace(leaf, assign=assign, conditions=tuple(map(change, leaf.conditions)))


def _element(version: _Version) -> Expression:
    indices = tuple(Name(head.index) for head in version.heads)
    return Apply(Name(version.name), indices) if indices else Name(version.name)


# --- ranges -----------------------------------------------------------------------------------------------------------


def steps_of(leaves: list[Leaf], kinds: Kinds) -> list[Step]:
    """The leaves with the ranges of their indices."""
    steps = [_Ranges(leaf, leaves, kinds).step() for leaf in leaves]
    computed = {step.assign.target for step in steps}
    for step in steps:
        if values_in(end for each in step.ranges.values() for end in (each.lower, each.upper)) & computed:
            raise Beyond(WHILE)
    return steps


@dataclass(frozen=True, slots=True)
class _End:
    value: Expression
    terms: Polynomial | None


class _Ranges:
    def __init__(self, leaf: Leaf, leaves: list[Leaf], kinds: Kinds) -> None:
        self.leaf, self.leaves, self.kinds = leaf, leaves, kinds
        self.order = [head.index for head in leaf.heads]

    def step(self) -> Step:
        """The step of the leaf."""
        lower = {head.index: [self.end(head.lower)] for head in self.leaf.heads}
        upper = {head.index: [self.end(head.upper)] if head.upper is not None else [] for head in self.leaf.heads}
        filters = list[Expression]()
        for condition in self.leaf.conditions:
            found = self.bound(condition)
            if found is None:
                filters.append(condition)
            else:
                index, is_upper, end = found
                (upper if is_upper else lower)[index].append(end)
        ranges = dict[str, Range]()
        for head in self.leaf.heads:
            upper[head.index] = upper[head.index] or [self.of_array(head.index)]
            known = {k: (v.first, v.last) for k, v in ranges.items() if v.first is not None and v.last is not None}
            first, last = _chosen(lower[head.index], "max", known), _chosen(upper[head.index], "min", known)
            terms = None if last.terms is None else plus(last.terms, constant(1), -1)
            step = head.step if abs(head.step) > 1 else 1
            ranges[head.index] = Range(first.value, last.value, first.terms, terms, step)
        ranges = _fixed(ranges, self.leaf.assign, filters)
        return Step(_with_itself(self.leaf.assign), self.leaf.heads, ranges, tuple(filters))

    def end(self, value: Expression) -> _End:
        """An end of a range; what is no polynomial and has no index is a number by itself."""
        terms = polynomial(value)
        if terms is None and not names_in((value,)) & {*self.order}:
            reads = any(isinstance(each, Apply) and not is_function(each.function.name) for each in walk(value))
            terms = None if reads else {(f"({expression_text(self.kinds.written(value))})",): 1}
        return _End(expression(terms) if terms is not None else value, terms)

    def bound(self, condition: Expression) -> tuple[str, bool, _End] | None:
        """The index whose range a condition ends, whether that is its upper end, and the end."""
        match condition:
            case Binary("<" | "<=", small, large) | Binary(">" | ">=", large, small):
                one, other = self.end(small).terms, self.end(large).terms
            case _:
                return None
        if one is None or other is None or not is_integer(self.kinds.wider(small, large)):
            return None
        rest = plus(other, one, -1)  # `rest >= 0` is the condition
        rest = plus(rest, constant(1), -1) if condition.op in ("<", ">") else rest
        index = next((name for name in reversed(self.order) if name in names_of(rest)), None)
        factor = None if index is None else factor_of(rest, index)
        if any(head.index == index and abs(head.step) > 1 for head in self.leaf.heads):
            return None
        if index is None or factor not in ({(): 1}, {(): -1}):
            return None
        others = {names: value for names, value in rest.items() if index not in names}
        if factor == {(): 1}:
            terms = plus({}, others, -1)
            return index, False, _End(expression(terms), terms)
        terms = plus(others, constant(1))
        return index, True, _End(expression(terms), terms)

    def of_array(self, index: str) -> _End:
        """The extent of an array that an index of threads subscripts, where no condition says how far it runs."""
        reads = (
            node for leaf in self.leaves for part in _parts(leaf) for node in walk(part) if isinstance(node, Apply)
        )
        found = (
            (node.function.name, k) for node in reads for k, each in enumerate(node.arguments) if each == Name(index)
        )
        written = (
            (leaf.assign.target, k)
            for leaf in self.leaves
            for k, each in enumerate(leaf.assign.subscripts)
            if each == Name(index)
        )
        named = next((each for each in (*found, *written) if not is_function(each[0])), None)
        if named is None:
            raise Beyond(_ENDLESS.format(index))
        return self.end(Extent(Name(named[0]), named[1]))


def _with_itself(assign: Assign) -> Assign:
    """`x[i] += x[i - 1]` as `x[i] = x[i] + x[i - 1]`."""
    if assign.operator not in ("+", "*", "max", "min") or assign.target not in values_in((assign.value,)):
        return assign
    own = Apply(Name(assign.target), assign.subscripts) if assign.subscripts else Name(assign.target)
    return replace(assign, operator="=", value=combined(assign.operator, own, assign.value))


def combined(operator: str, one: Expression, other: Expression) -> Expression:
    """Two values as one."""
    return Apply(Name(operator), (one, other)) if operator in ("max", "min") else Binary(operator, one, other)


def _fixed(ranges: dict[str, Range], assign: Assign, filters: list[Expression]) -> dict[str, Range]:
    """The ranges, with fixed ends for the indices of the target: where one depends on another index, a condition says so."""
    for index in [name for name in ranges if name in names_in(assign.subscripts)]:
        own = ranges[index]
        if not names_in((own.lower, own.upper)) & {*ranges}:
            continue
        outer = {
            k: (v.first, v.last) for k, v in ranges.items() if k != index and v.first is not None and v.last is not None
        }
        first = None if own.first is None else extremes(own.first, outer)
        last = None if own.last is None else extremes(own.last, outer)
        if first is None or last is None or own.step != 1 or names_of(plus(first[0], last[1])) & {*ranges}:
            raise Beyond(
                f"the range of `{index}` depends on another index: give each element a value, under a condition"
            )
        upper = plus(last[1], constant(1))
        filters += [] if polynomial(own.lower) == first[0] else [Binary(">=", Name(index), own.lower)]
        filters += [] if polynomial(own.upper) == upper else [Binary("<", Name(index), own.upper)]
        ranges[index] = Range(expression(first[0]), expression(upper), first[0], last[1])
    return ranges


def _chosen(ends: list[_End], function: str, bounds: Bounds) -> _End:
    """The end that decides; where that is not known, the largest or smallest of all."""
    sign = 1 if function == "max" else -1
    for end in ends:
        if all(other is end or _exceeds(end, other, sign, bounds) for other in ends):
            return end
    return _End(Apply(Name(function), tuple(each.value for each in ends)), ends[0].terms)


def _exceeds(one: _End, other: _End, sign: int, bounds: Bounds) -> bool:
    if one.terms is None or other.terms is None:
        return False
    found = extremes(plus({}, plus(one.terms, other.terms, -1), sign), bounds)
    return found is not None and is_positive(found[0])
