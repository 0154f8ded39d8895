"""Every name of a text: where it stands, what it is, and which other places mean the same thing.

Comes in: a tree. Goes out: `Names`. Works on trees with mistakes: in a part that could not be read, the words are looked up in the
scope around it.

Worked example: in `def f(float(N) X) -> (Y) { Y(i) = X(i) }` the name at the second `i` is an index whose places are both `i`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tc_jupyter.diagnostics import SourceText, Span
from tc_jupyter.program import TC_FUNCTIONS
from tc_jupyter.program.sac_primitives import is_builtin
from tc_jupyter.syntax import KEYWORDS, SCALAR_TYPES, is_own, sac_tree, tree
from tc_jupyter.syntax.sac_parser import BASES, RESERVED

Key: TypeAlias = tuple[str | int, ...]
"""Two places with the same key mean the same thing."""

_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Place:
    """One name in the text.

    Attributes:
        kind: `index`, `tensor`, `size`, `scalar`, `let`, `function`, `def`, `type` or `unknown`.
        key: what it means; places with equal keys mean the same.
        introduces: the name is made known here.
        owner: number of the def it stands in.
        statement: the statement (of a `%%sac` function: the comprehension part) it stands in.
    """

    name: str
    span: Span
    kind: str
    key: Key
    introduces: bool = False
    owner: int = 0
    statement: Span | None = None

    @property
    def is_shared(self) -> bool:
        """Whether it means the same in all defs of the text: a def or a constant of the text."""
        return self.key[0] in ("def", "constant")


@dataclass(frozen=True, slots=True)
class Names:
    """All places, in text order."""

    places: tuple[Place, ...]

    def at(self, offset: int) -> Place | None:
        """The name at an offset; at the end of a name it is that name."""
        position = bisect_right(self.places, offset, key=lambda place: place.span.start) - 1
        if position < 0 or self.places[position].span.end < offset:
            return None
        return self.places[position]

    def same(self, place: Place) -> tuple[Place, ...]:
        """All places that mean the same, in text order."""
        return tuple(other for other in self.places if other.key == place.key)

    def origin(self, place: Place) -> Place:
        """Where the name is introduced; else its first place."""
        places = self.same(place)
        return next((other for other in places if other.introduces), places[0])

    def of(self, owner: int) -> Iterator[Place]:
        """The names of one def."""
        return (place for place in self.places if place.owner == owner)


def _sorted(places: list[Place]) -> Names:
    """Text order; a place that is told twice counts once."""
    unique = {place.span: place for place in reversed(places)}
    return Names(tuple(sorted(unique.values(), key=lambda place: place.span)))


def words(source: SourceText, span: Span, comments: Collection[Span]) -> Iterator[tree.Name]:
    """The words of a part of the text, comments left out."""
    inside = [comment for comment in comments if comment.start < span.end and comment.end > span.start]
    for found in _WORD.finditer(source.text, span.start, span.end):
        if not any(comment.start <= found.start() < comment.end for comment in inside):
            yield tree.Name(found.group(), Span(found.start(), found.end()))


# %%tc ----------------------------------------------------------------------------------------------------------------------------


def tc_names(parsed: tree.Parsed, source: SourceText, known: Collection[str] = ()) -> Names:
    """The names of a `%%tc` cell.

    Args:
        known: functions of other cells.
    """
    defs = frozenset(item.name.name for item in parsed.unit.defs)
    constants = {item.name.name: "tensor" if item.type.dimensions else "scalar" for item in parsed.unit.constants}
    places = [
        Place(each.name.name, each.name.span, constants[each.name.name], ("constant", each.name.name), True, 0, None)
        for each in parsed.unit.constants
        if parsed.unit.defs
    ]
    for number, item in enumerate(parsed.unit.defs):
        places += _TcDef(item, number, defs, frozenset(known), source, parsed.comments, constants).places
    return _sorted(places)


class _TcDef:
    """The names of one def."""

    def __init__(
        self,
        item: tree.Def,
        number: int,
        defs: frozenset[str],
        known: frozenset[str],
        source: SourceText,
        comments: Collection[Span],
        constants: dict[str, str],
    ) -> None:
        self.number = number
        self.callable = defs | known
        self.source, self.comments = source, comments
        self.places: list[Place] = []
        own = _tc_kinds(item)
        self.constants = constants.keys() - own.keys()  # those of the cell
        self.kinds = constants | own
        self.statement: Span | None = None
        self.blocks: tuple[tree.Block, ...] = ()
        self.told_blocks = set[int]()
        self.add(item.name, "def", ("def", item.name.name), introduces=True)
        for param in item.params:
            self.signature_name(param.name, param.type, introduces=True)
        if item.reducer is not None:
            self.of_reducer(item, item.reducer)
            return
        for result in item.results:
            self.signature_name(result.name, result.type)
        for statement in item.statements:
            self.statement = statement.span
            self.of_statement(statement)

    def of_reducer(self, item: tree.Def, reducer: tree.Reducer) -> None:
        """The names in the values of a reducer; its results have none in the text."""
        self.statement = item.span
        for statement in item.statements:
            if isinstance(statement, tree.Comprehension):
                self.expression(statement.value, frozenset())
        given = frozenset(name.name for name in reducer.given)
        for name in reducer.given:
            self.add(name, "let", self.local(name), introduces=True)
        for value in reducer.lifted:
            self.expression(value, given)

    def add(self, name: tree.Name, kind: str, key: Key, introduces: bool = False) -> None:
        if name.name:
            self.places.append(Place(name.name, name.span, kind, key, introduces, self.number, self.statement))

    def own(self, name: tree.Name, introduces: bool = False) -> None:
        """A size, tensor or scalar of the def."""
        key: Key = ("constant", name.name) if name.name in self.constants else ("of", self.number, name.name)
        self.add(name, self.kinds.get(name.name, "tensor"), key, introduces)

    def signature_name(self, name: tree.Name, type_: tree.TypeName | None, introduces: bool = False) -> None:
        for dimension in type_.dimensions if type_ else ():
            for end in tree.ends(dimension):
                self.expression(end, frozenset())
        self.own(name, introduces)

    def of_statement(self, statement: tree.TcStatement) -> None:
        match statement:
            case tree.Comprehension():
                self.comprehension(statement)
            case tree.CallStatement():
                for target in statement.targets:
                    self.own(target, introduces=True)
                self.call(statement.callee)
                for part in statement.read:
                    self.expression(part, frozenset())
            case tree.Constant():
                self.own(statement.name, introduces=True)
            case tree.Broken():
                self.broken(statement)

    def comprehension(self, statement: tree.Comprehension) -> None:
        self.blocks = statement.blocks
        lets = frozenset(clause.name.name for clause in statement.clauses if isinstance(clause, tree.Let))
        for target, indices in statement.targets:
            self.own(target, introduces=True)
            for index in indices or ():
                self.expression(index, lets)
        if is_own(statement.operator):
            start, name = statement.operator_span.start, statement.operator.removesuffix("=!")
            self.call(tree.Name(name, Span(start, start + len(name))))
        for value in statement.rest:
            self.expression(value, lets)
        if self.is_call(statement):
            assert isinstance(statement.value, tree.Apply)
            self.call(statement.value.function)
            for argument in statement.value.arguments:
                self.expression(argument, lets)
        else:
            self.expression(statement.value, lets)
        if statement.at is not None:
            self.expression(statement.at, lets)
        for clause in statement.clauses:
            self.clause(clause, lets)
        for each in statement.along:
            self.word(each.index, lets)
        for block in statement.blocks:
            if block.number not in self.told_blocks:
                self.told_blocks.add(block.number)
                self.word(block.index, lets)
                self.expression(block.lower, lets)
                self.expression(block.upper, lets)

    def clause(self, clause: tree.Clause, lets: frozenset[str]) -> None:
        match clause:
            case tree.Where():
                self.word(clause.index, lets)
                self.expression(clause.lower, lets)
                self.expression(clause.upper, lets)
            case tree.Let():
                self.add(clause.name, "let", self.local(clause.name), introduces=True)
                self.expression(clause.value, lets)
            case tree.Exists():
                self.expression(clause.value, lets)
            case tree.Filter():
                self.expression(clause.condition, lets)
            case tree.Unique():
                pass

    def is_call(self, statement: tree.Comprehension) -> bool:
        """Whether `Y = g(X)` calls a def."""
        value = statement.value
        if statement.indices is not None or not isinstance(value, tree.Apply):
            return False
        name = value.function.name.partition(".")[0]
        return name in self.callable and value.function.name not in TC_FUNCTIONS

    def call(self, name: tree.Name) -> None:
        if "." in name.name:  # the derivative of a def, `conv.vjp`: the place is that of `conv`
            base = name.name.partition(".")[0]
            name = tree.Name(base, Span(name.span.start, name.span.start + len(base)))
        kind = "def" if name.name in self.callable else "unknown"
        self.add(name, kind, ("def", name.name))

    def expression(self, node: tree.Expression, lets: frozenset[str]) -> None:
        for part in tree.walk(node):
            match part:
                case tree.Name():
                    self.word(part, lets)
                case tree.Extent():
                    self.own(part.tensor)
                case tree.Apply():
                    self.applied(part.function, lets)
                case _:
                    pass

    def local(self, name: tree.Name) -> Key:
        assert self.statement is not None
        block = next((each for each in reversed(self.blocks) if each.index.name == name.name), None)
        if block is not None:
            return "in", self.number, block.span.start, name.name
        return "in", self.number, self.statement.start, name.name

    def word(self, name: tree.Name, lets: frozenset[str]) -> None:
        """A bare name: a let, a size, a tensor or scalar, a def before `^`, else an index."""
        if name.name in lets:
            self.add(name, "let", self.local(name))
        elif name.name in self.kinds:
            self.own(name)
        elif name.name in self.callable:
            self.call(name)
        else:
            self.add(name, "index", self.local(name))

    def applied(self, name: tree.Name, lets: frozenset[str]) -> None:
        """A name before `(`, or how often a def is applied: `6` in `f^6(x)`."""
        if name.name[:1].isdigit() and name.name not in self.kinds:
            return
        if name.name in SCALAR_TYPES:
            self.add(name, "type", ("type", name.name))
        elif name.name in lets or name.name in self.kinds:
            self.word(name, lets)
        elif name.name in TC_FUNCTIONS:
            self.add(name, "function", ("function", name.name))
        else:
            self.call(name)

    def broken(self, statement: tree.Broken) -> None:
        """A statement without a tree: names of the def are certain, other words count as indices."""
        for name in words(self.source, statement.span, self.comments):
            followed = self.source.text[name.span.end : name.span.end + 40].lstrip().startswith("(")
            if name.name in KEYWORDS and name.name not in TC_FUNCTIONS:
                continue
            if name.name in self.kinds:
                self.own(name, introduces=name.name in statement.targets)
            elif followed and (name.name in TC_FUNCTIONS or name.name in self.callable):
                self.applied(name, frozenset())
            elif not followed:
                self.word(name, frozenset())


def _tc_kinds(item: tree.Def) -> dict[str, str]:
    """Names of the whole def: sizes, tensors, scalars."""
    kinds: dict[str, str] = {}
    for declared in (*item.results, *item.params):
        kinds |= dict.fromkeys((name.name for name in tree.names_of(declared.type)), "size")
    for result in item.results:
        kinds[result.name.name] = "tensor"
    for statement in item.statements:
        kinds.update(dict.fromkeys(targets_of(statement), "tensor"))
    for param in item.params:
        scalar = param.type is not None and not param.type.dimensions
        kinds[param.name.name] = "scalar" if scalar else "tensor"
    return kinds


def targets_of(statement: tree.TcStatement) -> tuple[str, ...]:
    """The names that a statement writes."""
    match statement:
        case tree.Comprehension():
            return (statement.target.name,)
        case tree.CallStatement():
            return tuple(target.name for target in statement.targets)
        case tree.Constant():
            return (statement.name.name,)
        case tree.Broken():
            return statement.targets


# %%sac ---------------------------------------------------------------------------------------------------------------------------

Scope: TypeAlias = dict[str, tuple[str, Key]]
"""Names in scope: kind and key."""


def sac_names(parsed: sac_tree.SacParsed, source: SourceText, known: Collection[str] = ()) -> Names:
    """The names of a `%%sac` cell; variables of a function are `tensor` or `scalar`."""
    functions = frozenset(function.name.name for function in parsed.unit.functions) | frozenset(known)
    places: list[Place] = []
    for number, function in enumerate(parsed.unit.functions):
        places += _SacFunction(function, number, functions, source, parsed.comments).places
    return _sorted(places)


class _SacFunction:
    """The names of one function."""

    def __init__(
        self,
        function: sac_tree.SacFunction,
        number: int,
        functions: frozenset[str],
        source: SourceText,
        comments: Collection[Span],
    ) -> None:
        self.number, self.functions = number, functions
        self.source, self.comments = source, comments
        self.places: list[Place] = []
        self.statement: Span | None = None
        self.part: int | None = None  # where the part of a with-loop begins whose statements are read
        if function.name.name.isidentifier():
            self.add(function.name, "def", ("def", function.name.name), introduces=True)
        scope: Scope = {}
        for param in function.params:
            scalar = param.type is not None and param.type.shape == ()
            self.bind(param.name, scope, "scalar" if scalar else "tensor")
        self.statements(function.body, scope)
        for result in function.results:
            self.statement = result.span
            self.expression(result, scope)

    def add(self, name: tree.Name, kind: str, key: Key, introduces: bool = False) -> None:
        if name.name:
            self.places.append(Place(name.name, name.span, kind, key, introduces, self.number, self.statement))

    def bind(self, name: tree.Name, scope: Scope, kind: str) -> None:
        """A variable of the function; a second assignment keeps what it is."""
        scope.setdefault(name.name, (kind, ("of", self.number, name.name)))
        self.add(name, *scope[name.name], introduces=True)

    def statements(self, statements: Iterable[sac_tree.Statement], scope: Scope) -> None:
        for statement in statements:
            self.statement = statement.span
            match statement:
                case sac_tree.Assign():
                    self.expression(statement.value, scope)
                    self.assigned(statement.name, scope)
                case sac_tree.Unpack():
                    self.expression(statement.value, scope)
                    for name in statement.names:
                        self.assigned(name, scope)
                case sac_tree.If():
                    self.expression(statement.condition, scope)
                    self.statements((*statement.then, *statement.otherwise), scope)
                case sac_tree.Loop():
                    self.statements(statement.start, scope)
                    self.expression(statement.condition, scope)
                    self.statements((*statement.step, *statement.body), scope)
                case sac_tree.BrokenAssign():
                    for name in statement.names:
                        scope.setdefault(name, ("tensor", ("of", self.number, name)))
                    for word in words(self.source, statement.span, self.comments):
                        self.word(word, scope)

    def assigned(self, name: tree.Name, scope: Scope) -> None:
        """A variable that a statement gives a value to: of the function, or of the with-loop part around it."""
        if self.part is None:
            self.bind(name, scope, "tensor")
            return
        scope[name.name] = ("let", ("in", self.number, self.part, name.name))
        self.add(name, *scope[name.name], introduces=True)

    def word(self, name: tree.Name, scope: Scope) -> None:
        if name.name in scope:
            self.add(name, *scope[name.name])
        else:
            self.applied(name)

    def applied(self, name: tree.Name) -> None:
        """A name that is no variable."""
        if name.name in BASES:
            self.add(name, "type", ("type", name.name))
        elif name.name in self.functions:
            self.add(name, "def", ("def", name.name))
        elif is_builtin(name.name):
            self.add(name, "function", ("function", name.name))
        elif name.name not in RESERVED:
            self.add(name, "unknown", ("unknown", name.name))

    def expression(self, node: sac_tree.SacExpression, scope: Scope) -> None:
        match node:
            case tree.Name():
                self.word(node, scope)
            case sac_tree.SetExpr():
                for partition in node.partitions:
                    self.partition(partition, scope)
            case sac_tree.WithLoop():
                self.with_loop(node, scope)
            case _:
                if isinstance(node, sac_tree.Apply):
                    self.applied(node.function)
                for child in sac_tree.sac_children(node):
                    self.expression(child, scope)

    def partition(self, partition: sac_tree.PartitionClause, scope: Scope) -> None:
        outer, self.statement = self.statement, partition.span
        inner = self.pattern(partition.pattern, scope)
        self.expression(partition.body, inner)
        if partition.generator is not None:
            self.generator(partition.generator, partition.pattern, inner, scope)
        self.statement = outer

    def pattern(self, pattern: sac_tree.Pattern, scope: Scope) -> Scope:
        """The scope with the names of a pattern."""
        assert self.statement is not None
        inner = dict(scope)
        for name in pattern.bound:
            inner[name.name] = ("index", ("in", self.number, self.statement.start, name.name))
            self.add(name, *inner[name.name], introduces=True)
        return inner

    def generator(self, generator: sac_tree.Generator, pattern: sac_tree.Pattern, inner: Scope, scope: Scope) -> None:
        """Bounds see the scope outside; the words between them repeat the pattern."""
        bounds: list[Span] = []
        for bound in sac_tree.generator_bounds(generator):
            bounds.append(bound.span)
            self.expression(bound, scope)
        own = {name.name for name in pattern.bound}
        for name in words(self.source, generator.span, self.comments):
            if name.name in own and not any(span.start <= name.span.start < span.end for span in bounds):
                self.word(name, inner)

    def with_loop(self, loop: sac_tree.WithLoop, scope: Scope) -> None:
        for generator in loop.generators:
            outer, self.statement = self.statement, generator.span
            inner = self.pattern(generator.pattern, scope)
            self.generator(generator.generator, generator.pattern, inner, scope)
            around, self.part = self.part, generator.span.start
            self.statements(generator.assigns, inner)
            self.part, self.statement = around, generator.span
            self.expression(generator.body, inner)
            self.statement = outer
        for argument in loop.arguments:
            self.expression(argument, scope)
        if loop.function is not None and loop.function.name.isidentifier():
            self.applied(loop.function)
