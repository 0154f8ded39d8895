"""What a step of a block leaves to the next one, where it is written as a variable of a loop: `h = 0.9*h + X(t)`.

Worked example: in `along t in 0:T { h = 0.9*h + X(t) }` the statement reads what the step before left, so the fix writes
`h(t) = 0.9*(h(t - 1) else 0) + X(t)`. Of `h += X(t)` it makes `h(t) = (h(t - 1) else 0) + X(t)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tc_jupyter.diagnostics import Edit, Fix, Span
from tc_jupyter.syntax import expression_text, tree

from .orders import STARTS, continued, in_brackets

_ACCUMULATING = ("+=", "*=", "min=", "max=")


class Carried:
    """What the statements of a block, of which every step has the tensors anew, do with their names; each is looked at once."""

    def __init__(self, statements: Sequence[tree.Comprehension]) -> None:
        self.statements = statements
        self.reads = [_read_names(each) for each in statements]
        self.written = [_written(each) for each in statements]
        self.first: dict[str, int] = {}
        self.sources: dict[str, set[str]] = {}
        for place, (reads, written) in enumerate(zip(self.reads, self.written, strict=True)):
            for name in written:
                self.first.setdefault(name, place)
                self.sources.setdefault(name, set()).update(reads)

    def is_carried(self, name: str) -> bool:
        """Whether a tensor is read for what the step before left.

        It is where a statement reads it before one writes it, and what it reads leads to what is written.
        """
        first = self.first[name]
        # a statement with an order of its own reads what it just made
        last = first if self.statements[first].along else first + 1
        readers = [place for place in range(last) if name in self.reads[place]]
        if not readers:
            return False
        needed = _closure(self.reads[first], self.sources)
        return any(place == first or needed & self.written[place] for place in readers)

    def is_accumulated(self, name: str) -> bool:
        """Whether the first statement that writes a tensor accumulates onto what was there."""
        return self.statements[self.first[name]].operator in _ACCUMULATING


def with_step_fix(
    carried: Carried,
    name: str,
    before: Iterable[tree.TcStatement],
    after: Iterable[tree.TcStatement],
) -> Fix | None:
    """Give a tensor the step as its first index wherever the def names it; `None` where that does not say all.

    A statement before the block gives what the first step begins with, and statements behind the block read what the last one left.
    """
    block = carried.statements[0].blocks[-1]
    around = [*before], [*after]
    mentioned = [[each for each in part if name in names_of(each)] for part in around]
    plain = [[each for each in part if isinstance(each, tree.Comprehension) and not each.blocks] for part in mentioned]
    if plain != mentioned or len(plain[0]) > 1:
        return None
    first = plain[0][0] if plain[0] else None
    found = _Rewriting(carried, block, name, first).edits(plain[1])
    return None if found is None else Fix(f"write it with the index `{block.index.name}`", tuple(found))


class _Rewriting:
    """The edits that give `name` the step as its first index; `start`: the statement that gives what the first step begins with."""

    def __init__(
        self,
        statements: Carried,
        block: tree.Block,
        name: str,
        start: tree.Comprehension | None,
    ) -> None:
        self.statements, self.name, self.start = statements, name, start
        self.step = block.index.name
        self.before = f"{self.step} {'-' if block.step > 0 else '+'} 1"
        self.last = _last(block)
        self.first = statements.first[name]
        self.carried = statements.is_carried(name)

    def edits(self, after: Sequence[tree.Comprehension]) -> list[Edit] | None:
        if any(self.name in _written(each) for each in after):
            return None
        inside = self.statements
        named = [place for place, names in enumerate(inside.reads) if self.name in names | inside.written[place]]
        parts = [self.statement(inside.statements[place], place) for place in named]
        parts += [self.reads(part, self.last) for each in after for part in _values(each)]
        if self.start is not None:
            continues = self.carried or inside.is_accumulated(self.name)
            parts.append([Edit(self.start.span, "")] if continues and _is_start(self.start) else None)
        return _joined(parts)

    def statement(self, node: tree.Comprehension, place: int) -> list[Edit] | None:
        if node.called and self.name in {*_read_names(node), *_written(node)}:
            return None  # a def is called with all of it, or gives all of it
        at = self.before if self.carried and place <= self.first else self.step
        return _joined([*(self.reads(part, at) for part in _values(node)), self.targets(node, place)])

    def begins(self, at: Sequence[tree.Expression], otherwise: str) -> str:
        """What the first step has in place of an element that the step before left."""
        if self.start is None:
            return otherwise
        names = [each.name for each in self.start.indices or () if isinstance(each, tree.Name)]
        value = _renamed(self.start.value, dict(zip(names, at, strict=False)))
        simple = isinstance(value, tree.Name | tree.Number | tree.Apply | tree.Extent)
        return expression_text(value) if simple else f"({expression_text(value)})"

    def targets(self, statement: tree.Comprehension, place: int) -> list[Edit] | None:
        """The step in front of the indices of the targets; what accumulates at first continues with what the step before left."""
        found: list[Edit] = []
        for target, indices in statement.targets:
            if target.name == self.name:
                found += _inserted(target, indices, self.step)
        if place != self.first or statement.operator not in (*_ACCUMULATING, *(each + "!" for each in _ACCUMULATING)):
            return found
        more = self.continued(statement)
        if statement.operator.endswith("!"):  # which combines what one step has, where there is more than one value
            return [*found, *(more or ())]
        return None if more is None else [*found, *more]

    def continued(self, statement: tree.Comprehension) -> list[Edit] | None:
        """`h(t) = (h(t - 1) else 0) + X(t)` of `h += X(t)`."""
        operator, value = statement.operator.removesuffix("!"), statement.value
        simple = len(statement.targets) == 1 and not statement.rest and self.name not in tree.names_in([value])
        own = {self.step, *(each.name for each in statement.indices or () if isinstance(each, tree.Name))}
        reads = (node for node in tree.walk(value) if isinstance(node, tree.Apply))
        if not simple or any(not tree.names_in(read.arguments) <= own for read in reads):
            return None
        at = ", ".join((self.before, *map(expression_text, statement.indices or ())))
        begin = self.begins(statement.indices or (), STARTS.get(operator) or in_brackets(value))
        return continued(statement, f"{self.name}({at}) else {begin}")

    def reads(self, node: tree.Expression, at: str) -> list[Edit] | None:
        """The step `at` in front of the subscripts; the first step of all has nothing of the step before it."""
        former = at == self.before
        match node:
            case tree.Extent() if node.tensor.name == self.name:
                return None  # its dimensions have other numbers then
            case tree.Name() if node.name == self.name:
                read = f"{self.name}({at})"
                return [Edit(node.span, f"({read} else {self.begins((), '0')})" if former else read)]
            case tree.Bordered() if node.read.function.name == self.name:
                return _joined([self.inside(node.read, at), self.reads(node.otherwise, at)])
            case tree.Apply() if node.function.name == self.name:
                return _joined([self.inside(node, at), self.around(node) if former else []])
            case _:
                return _joined(self.reads(each, at) for each in tree.children(node))

    def inside(self, read: tree.Apply[tree.Expression], at: str) -> list[Edit] | None:
        first = _inserted(read.function, read.arguments, at)
        return _joined([first, *(self.reads(each, at) for each in read.arguments)])

    def around(self, read: tree.Apply[tree.Expression]) -> list[Edit] | None:
        """`else 0` behind a read, in brackets, which may be there already."""
        otherwise = f" else {self.begins(read.arguments, '0')}"
        start, end = read.span.start, read.span.end
        match read.function.span.start - start:
            case 0:
                return [Edit(Span(start, start), "("), Edit(Span(end, end), otherwise + ")")]
            case 1:
                return [Edit(Span(end - 1, end - 1), otherwise)]
            case _:
                return None


def _is_start(node: tree.Comprehension) -> bool:
    """Whether a statement gives every element a value by itself, as `h(i) = h0(i)` does."""
    names = {each.name for each in node.indices or () if isinstance(each, tree.Name)}
    plain = node.operator == "=" and not node.clauses and not node.along and len(node.targets) == 1
    return plain and len(names) == len(node.indices or ()) and node.target.name not in _read_names(node)


def _renamed(node: tree.Expression, names: Mapping[str, tree.Expression]) -> tree.Expression:
    if isinstance(node, tree.Name):
        return names.get(node.name, node)
    return tree.mapped(node, lambda each: _renamed(each, names))


def _last(block: tree.Block) -> str:
    """The last step."""
    if block.step < 0:
        return expression_text(block.lower)
    if isinstance(block.upper, tree.Number):
        return str(int(block.upper.value) - 1)
    end = expression_text(block.upper)
    return f"({end}) - 1" if isinstance(block.upper, tree.Conditional) else f"{end} - 1"


def _inserted(name: tree.Name, indices: Sequence[tree.Expression] | None, step: str) -> list[Edit]:
    if not indices:
        brackets = 0 if indices is None else 2
        return [Edit(Span(name.span.end, name.span.end + brackets), f"({step})")]
    place = indices[0].span.start
    return [Edit(Span(place, place), f"{step}, ")]


def _joined(found: Iterable[list[Edit] | None]) -> list[Edit] | None:
    parts = list(found)
    known = [each for each in parts if each is not None]
    return [edit for each in known for edit in each] if len(known) == len(parts) else None


def names_of(node: tree.TcStatement) -> frozenset[str] | set[str]:
    """All names in a statement."""
    match node:
        case tree.Broken():
            return node.names
        case tree.CallStatement():
            return {each.name for each in node.targets} | tree.names_in(node.read)
        case tree.Constant():
            return {node.name.name}
        case tree.Comprehension():
            return tree.names_in(parts_of(node)) | _written(node)


def parts_of(node: tree.Comprehension) -> tuple[tree.Expression, ...]:
    """All expressions of a statement."""
    left = (index for _, indices in node.targets for index in indices or ())
    clauses = (part for clause in node.clauses for part in tree.parts(clause))
    return (*left, node.value, *node.rest, *(() if node.at is None else (node.at,)), *clauses)


def _values(node: tree.Comprehension) -> Iterator[tree.Expression]:
    """The expressions of a statement but for indices on the left by themselves."""
    left = {id(index) for _, indices in node.targets for index in indices or () if isinstance(index, tree.Name)}
    return (each for each in parts_of(node) if id(each) not in left)


def _read_names(node: tree.Comprehension) -> frozenset[str]:
    return tree.names_in(_values(node))


def _written(node: tree.Comprehension) -> set[str]:
    return {target.name for target, _ in node.targets}


def _closure(names: Iterable[str], sources: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += sources.get(name, ())
    return found


__all__ = ["Carried", "names_of", "parts_of", "with_step_fix"]
