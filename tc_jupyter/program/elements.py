"""What was meant by a number whose value has an index: one value for each index, as in loops of other languages.

Worked example: in `a = X(i) * 2  Y(i) = a + 1` the name `a` is read only beside `i`, so the fix makes it a let:
`Y(i) = a + 1 where a = X(i) * 2`. Read by several statements it becomes a tensor, `a(i) = X(i) * 2`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tc_jupyter.diagnostics import Edit, Fix, SourceText, Span
from tc_jupyter.syntax import tree

_DECLARED = re.compile(r"[A-Za-z_]\w*[ \t]+$")


class Elements:
    """The statements of a def by the names that they read, and the numbers that are meant as elements.

    Attributes:
        meant: numbers that a fix makes elements.
        longer: first offsets of statements to which a fix adds a let; a second one would overlap it.
    """

    def __init__(self, statements: Sequence[tree.TcStatement], results: set[str], source: SourceText) -> None:
        self.statements, self.results, self.source = statements, results, source
        self.meant = set[str]()
        self.longer = set[int]()
        self.reading: dict[str, list[int]] = {}
        self.places = {id(statement): place for place, statement in enumerate(statements)}
        self.names = [_names(statement) for statement in statements]
        self.written = Counter(name for statement in statements for name in _targets(statement))
        for place, names in enumerate(self.names):
            for name in names:
                self.reading.setdefault(name, []).append(place)

    def one_for_each(self, node: tree.Comprehension, indices: Sequence[str]) -> Fix | None:
        """The fix for `a = X(i) * 2`, whose value has these indices; `None` where no later statement reads an element of it."""
        group = [node]  # grows: what is computed from an element, and read as one, is an element
        found = set[int]()
        readers: dict[int, tree.Comprehension] = {}
        for member in group:
            for place in self.reading.get(member.target.name, ()):
                reader = self.statements[place]
                if not isinstance(reader, tree.Comprehension) or place <= self.places[id(member)]:
                    return None
                if place in found:
                    continue
                found.add(place)
                if self.is_number(reader) and reader.target.name not in self.meant:
                    group.append(reader)
                else:
                    readers[place] = reader
        if any(self.written[member.target.name] != 1 for member in group):
            return None
        beside = [
            self.names[place]
            for place, reader in readers.items()
            if reader.target.name not in self.meant and not reader.operator.endswith("!")
        ]
        shared = [index for index in indices if all(index in names for names in beside)]
        names = {member.target.name for member in group}
        every = [*readers.values(), *group]
        if not readers or not shared or any(_is_bound(reader, names) for reader in every):
            return None
        read = [item for reader in every for item in _elements(reader, names)]
        if read:
            return self.as_read(group, every, read, indices)
        self.meant |= names
        one = next(iter(readers.values()))
        if len(readers) == len(group) == 1 and len(shared) == len(indices) and self.may_move(node, one):
            return self.as_let(node, one)
        text = f"({', '.join(shared)})"
        edits = [Edit(member.target.span, member.target.name + text) for member in group]
        edits += [Edit(node.operator_span, "+=!")] if len(shared) < len(indices) else []
        read_at = [place for reader in every for place in _bare(reader, names)]
        edits += [Edit(place, self.source.slice(place) + text) for place in read_at]
        return Fix(f"write `{node.target.name}{text}`", tuple(edits))

    def is_read_beside(self, node: tree.Comprehension, indices: Sequence[str]) -> bool:
        """Whether a later statement reads the number that a statement writes, and has an index that its value has."""
        later = (place for place in self.reading.get(node.target.name, ()) if place > self.places[id(node)])
        return any(not self.names[place].isdisjoint(indices) for place in later)

    def is_number(self, node: tree.Comprehension) -> bool:
        """Whether a statement writes a number that is no result."""
        return node.indices is None and node.operator == "=" and node.target.name not in self.results

    def as_read(
        self,
        group: list[tree.Comprehension],
        readers: list[tree.Comprehension],
        read: list[tree.Apply[tree.Expression]],
        indices: Sequence[str],
    ) -> Fix | None:
        """`a(i) = X(i)`, where it is read as `a(i)` already."""
        target = group[0].target
        plain = [[item.name for item in each.arguments if isinstance(item, tree.Name)] for each in read]
        first = next((names for names in plain if sorted(names) == sorted(indices)), None)
        bare = any(_bare(reader, {target.name}) for reader in readers)
        if first is None or bare or len(group) > 1 or any(len(each.arguments) != len(indices) for each in read):
            return None
        self.meant.add(target.name)
        text = f"({', '.join(first)})"
        return Fix(f"write `{target.name}{text}`", (Edit(Span(target.span.end, target.span.end), text),))

    def may_move(self, node: tree.Comprehension, reader: tree.Comprehension) -> bool:
        """Whether a statement means the same as a let of its only reader, and no fix of another one is beside it."""
        start, end = self.places[id(node)], self.places[id(reader)]
        between = self.statements[start + 1 : end]
        written = {name for each in between for name in _targets(each)}
        before = self.source.text[max(0, node.span.start - 40) : node.span.start]
        text = self.source.slice(Span(node.span.start, reader.span.end))
        declared = "#" in text or _DECLARED.search(before) is not None
        alone = reader.span.start not in self.longer and not written & self.names[start]
        if reader.clauses:  # those that the fix of a loop writes are not in the text
            first = Span(reader.value.span.end, reader.clauses[0].span.start)
            alone = alone and "where" in self.source.slice(first)
        return alone and not declared and not node.clauses and node.matched is None and len(between) < 20

    def as_let(self, node: tree.Comprehension, reader: tree.Comprehension) -> Fix:
        """`Y(i) = a + 1 where a = X(i) * 2`."""
        self.longer.add(reader.span.start)
        text = f"{node.target.name} = {self.source.slice(node.value.span)}"
        after = self.statements[self.places[id(node)] + 1].span.start
        place = reader.clauses[0].span.start if reader.clauses else reader.span.end
        written = f"{text}, " if reader.clauses else f" where {text}"
        edits = Edit(Span(node.span.start, after), ""), Edit(Span(place, place), written)
        return Fix(f"write `where {text}`", edits)


def _targets(node: tree.TcStatement) -> Sequence[str]:
    match node:
        case tree.Broken():
            return node.targets
        case tree.CallStatement():
            return [target.name for target in node.targets]
        case tree.Constant():
            return [node.name.name]
        case tree.Comprehension():
            return [node.target.name]


def _names(node: tree.TcStatement) -> frozenset[str]:
    """The names that a statement has, but for its targets."""
    match node:
        case tree.Broken():
            return node.names - set(node.targets)
        case tree.CallStatement():
            return tree.names_in(node.read)
        case tree.Constant():
            return frozenset()
        case tree.Comprehension():
            return tree.names_in((*_parts(node), *_places(node)))


def _parts(node: tree.Comprehension) -> list[tree.Expression]:
    clauses = (clause for clause in node.clauses if not isinstance(clause, tree.Where))
    return [node.value, *(part for clause in clauses for part in tree.parts(clause))]


def _places(node: tree.Comprehension) -> list[tree.Expression]:
    """The bounds of ranges, and the indices of the target."""
    ranges = [clause for clause in node.clauses if isinstance(clause, tree.Where)]
    return [*(each.lower for each in ranges), *(each.upper for each in ranges), *(node.indices or ())]


def _is_bound(node: tree.Comprehension, names: set[str]) -> bool:
    items = (item for part in _places(node) for item in tree.walk(part))
    return any(isinstance(item, tree.Name) and item.name in names for item in items)


def _bare(node: tree.Comprehension, names: set[str]) -> list[Span]:
    items = (item for part in _parts(node) for item in tree.walk(part))
    return [item.span for item in items if isinstance(item, tree.Name) and item.name in names]


def _elements(node: tree.Comprehension, names: set[str]) -> list[tree.Apply[tree.Expression]]:
    items = (item for part in _parts(node) for item in tree.walk(part))
    return [item for item in items if isinstance(item, tree.Apply) and item.function.name in names]
