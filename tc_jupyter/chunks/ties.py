"""Which dimensions and indices of a part run over the same numbers, because one index runs over all of them.

Worked example: in `C(i, j) +=! A(i, k) * B(k, j)` the rows of `C` and of `A` go together, and so do the columns of `A` and the
rows of `B`.
"""

from __future__ import annotations

from tc_jupyter.program import Expr, IndexVar, Read, Statement, walk

from .part import Part, Place
from .regions import Regions, plain_index


class Ties:
    """Which dimensions and indices of a part run over the same numbers."""

    def __init__(self, about: Regions, part: Part) -> None:
        self.about, self.part = about, part
        self.places = {place for axis in part.axes for place in axis.places}
        self.parent: dict[Place, Place] = {}
        self.statements = [about.flat.program.statement(name) for name in part.statements]
        self._run()

    def root(self, place: Place) -> Place:
        """One place for all that go together with this one."""
        while (above := self.parent.get(place, place)) != place:
            place = above
        return place

    def join(self, one: Place, other: Place) -> None:
        """Let two places go together."""
        self.parent[self.root(one)] = self.root(other)

    def of_index(self, statement: Statement, name: str) -> Place | None:
        """What an index runs over: a dimension of the target, or a cut of its own; `None` if that is not all of it."""
        for dimension, index in enumerate(statement.output_indices):
            if index.name == name:
                place = statement.target, dimension
                whole = self.about.range_of(place) == self.about.points[statement.name][name]
                return place if place in self.places and whole else None
        return (statement.name, name) if (statement.name, name) in self.places else None

    def _run(self) -> None:
        asked: dict[Place, list[Place | None]] = {}
        for statement in self.statements:
            for access in self.about.accesses(statement.name):
                for dimension in range(len(access.subscripts)):
                    place: Place = access.tensor, dimension
                    name = plain_index(access, dimension)
                    asked.setdefault(place, []).append(None if name is None else self.of_index(statement, name))
        changed = True
        while changed:  # reads of one dimension tie only if all of them are by indices that are tied themselves
            changed = False
            for place, users in asked.items():
                known = [each for each in users if each is not None]
                if place not in self.places or len(known) < len(users) or not known:
                    continue
                roots = {self.root(each) for each in known}
                same = all(self.about.range_of(each) == self.about.range_of(place) for each in known)
                if len(roots) == 1 and same and self.root(place) not in roots:
                    self.join(place, known[0])
                    changed = True

    def groups(self) -> list[tuple[Place, ...]]:
        """The places that go together, in the order of the axes."""
        found: dict[Place, list[Place]] = {}
        for axis in self.part.axes:
            for place in axis.places:
                found.setdefault(self.root(place), []).append(place)
        return [tuple(each) for each in found.values()]

    def moves(self, places: tuple[Place, ...]) -> bool:
        """Whether the first number of a group matters: an index of it is used otherwise than alone, in a dimension of the group."""
        group = set(places)
        for statement in self.statements:
            names = {
                index.name
                for dimension, index in enumerate(statement.output_indices)
                if (statement.target, dimension) in group
            }
            names |= {index.name for index in statement.reduction_indices if (statement.name, index.name) in group}
            if any(self.of_index(statement, name) not in group for name in names):
                return True
            if not self._reads_alone(statement, group) or self._used_otherwise(statement, names, group):
                return True
        return False

    def _reads_alone(self, statement: Statement, group: set[Place]) -> bool:
        """Whether each subscript in a dimension of the group is an index of the group."""
        for access in self.about.accesses(statement.name):
            for dimension in range(len(access.subscripts)):
                name = plain_index(access, dimension)
                if (access.tensor, dimension) in group and (
                    name is None or self.of_index(statement, name) not in group
                ):
                    return False
        return True

    def _used_otherwise(self, statement: Statement, names: set[str], group: set[Place]) -> bool:
        ends = [end for index in statement.indices for end in index.ends or ()]
        exprs: list[Expr] = [statement.value, *statement.left, *statement.filters, *statement.exists, *ends]
        used = sum(isinstance(node, IndexVar) and node.name in names for expr in exprs for node in walk(expr))
        plain = 0
        for expr in exprs:
            for node in walk(expr):
                if isinstance(node, Read):
                    plain += sum(
                        isinstance(at, IndexVar) and at.name in names and (node.tensor, dimension) in group
                        for dimension, at in enumerate(node.indices)
                    )
        own = sum(
            isinstance(at, IndexVar) and at.name in names and (statement.target, dimension) in group
            for dimension, at in enumerate(statement.left)
        )
        return used != plain + own
