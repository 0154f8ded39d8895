"""What was written in a `%%sac` cell: one node per construct, sugar kept, a span on every node.

Names, numbers, operators and calls are those of `tree.py`; the other nodes are what only a SaC expression may hold.

Worked example: `{ [i, .] -> a[i] | [i] < [5] }` is `SetExpr((PartitionClause(Pattern((Name("i"), Dot())),
Selection(Name("a"), (Name("i"),)), Generator(None, ..., ArrayLiteral((Number("5", 5),)))),))`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Span

from .tree import Apply, Binary, Conditional, Name, Number, Unary, Use


@dataclass(frozen=True, slots=True)
class Dot:
    """`.`: an axis without a name (pattern), an axis that is kept (selection), the extreme legal index (bound)."""

    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class TripleDot:
    """`...`: zero or more axes without a name."""

    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Selection:
    """`a[i, j]`, `a[iv]`, `a[., j]`."""

    array: SacExpression
    indices: tuple[SacExpression | Dot | TripleDot, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class ArrayLiteral:
    """`[a, b, c]`; `[]` has shape `[0]`."""

    elements: tuple[SacExpression, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Pattern:
    """`iv` (`items` is a single name and `vector` is true), `[i, ., j, ...]`, or `iv = [i, j]` with `iv` as `whole`."""

    items: tuple[Name | Dot | TripleDot, ...]
    vector: bool
    span: Span = field(default=NO_SPAN, compare=False)
    whole: Name | None = None

    @property
    def names(self) -> tuple[Name, ...]:
        """The named items, in order."""
        return tuple(item for item in self.items if isinstance(item, Name))

    @property
    def bound(self) -> tuple[Name, ...]:
        """Every name that the pattern gives a meaning to: the named items and that of the whole vector."""
        return self.names if self.whole is None else (self.whole, *self.names)


@dataclass(frozen=True, slots=True)
class Generator:
    """`lower <= pattern < upper step s width w`; a missing part is `None`, `.` is a `Dot`.

    `lower_relation` and `upper_relation` are `<=` or `<`; other relations than `<=`, `<` stand only in with-loops.
    """

    lower: SacExpression | Dot | None
    upper: SacExpression | Dot | None
    lower_relation: str = "<="
    upper_relation: str = "<"
    span: Span = field(default=NO_SPAN, compare=False)
    step: SacExpression | None = None
    width: SacExpression | None = None


@dataclass(frozen=True, slots=True)
class PartitionClause:
    """`pattern -> body | generator`."""

    pattern: Pattern
    body: SacExpression
    generator: Generator | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class SetExpr:
    """A comprehension `{ p1 -> e1 | g1; p2 -> e2 }`."""

    partitions: tuple[PartitionClause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    """`name = value;`; of `name += e;` and `name++;` the value is `name + e`, and `operator` what was written."""

    name: Name
    value: SacExpression
    span: Span = field(default=NO_SPAN, compare=False)
    operator: str = "="


@dataclass(frozen=True, slots=True)
class Unpack:
    """`a, b = f(x);`: the results of a call, in order."""

    names: tuple[Name, ...]
    value: Apply[SacExpression]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    """`if (condition) { .. } else { .. }`; `span` covers all of it, `head` the condition in its brackets."""

    condition: SacExpression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    head: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """`for (start; condition; step) { body }`, `while (condition) { body }` or `do { body } while (condition);`, as `word` says."""

    word: str
    start: tuple[Assign, ...]
    condition: SacExpression
    step: tuple[Assign, ...]
    body: tuple[Statement, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    head: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class WithGenerator:
    """`(lower <= iv < upper) { statements } : body;` of a with-loop."""

    pattern: Pattern
    generator: Generator
    assigns: tuple[Statement, ...]
    body: SacExpression
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class WithLoop:
    """`with { generators } : operator(arguments)`.

    Attributes:
        operator: `genarray` (frame, optional default), `modarray` (array) or `fold` (neutral element).
        function: the name or operator that `fold` combines with.
    """

    generators: tuple[WithGenerator, ...]
    operator: str
    function: Name | None
    arguments: tuple[SacExpression, ...]
    span: Span = field(default=NO_SPAN, compare=False)


SacExpression: TypeAlias = (
    Name
    | Number
    | Unary["SacExpression"]
    | Binary["SacExpression"]
    | Conditional["SacExpression"]
    | Apply["SacExpression"]
    | Selection
    | ArrayLiteral
    | SetExpr
    | WithLoop
)


@dataclass(frozen=True, slots=True)
class SacType:
    """`float[*]`.

    Attributes:
        base: as written (`double`, `int`, `float32`).
        shape: `()` for a scalar, `"*"`, `"+"`, or one entry per axis: an integer or `None` for `.`.
        written: the text of a type that uses a `typedef`; else empty.
    """

    base: str
    shape: tuple[int | None, ...] | str = ()
    span: Span = field(default=NO_SPAN, compare=False)
    written: str = field(default="", compare=False)

    @property
    def rank(self) -> int | None:
        """The rank, if the type fixes it."""
        return None if isinstance(self.shape, str) else len(self.shape)


@dataclass(frozen=True, slots=True)
class SacParam:
    """`float[*] A`; `type` is `None` where the text is wrong (a message was given)."""

    type: SacType | None
    name: Name
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class BrokenAssign:
    """A statement that could not be read: what the `names` are that it may assign stays unknown, and nothing is said about them."""

    names: tuple[str, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Statement: TypeAlias = Assign | Unpack | If | Loop | BrokenAssign


@dataclass(frozen=True, slots=True)
class SacTypedef:
    """`typedef int[3] vec;`: `vec` is another way to write the type."""

    name: Name
    type: SacType
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class SacImport:
    """`use Array: all;` of a module whose functions every cell knows; `text` is the line with single blanks."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class SacFunction:
    """A function; `name` may be an operator. `broken` is set when a part of it could not be read."""

    types: tuple[SacType | None, ...]
    name: Name
    params: tuple[SacParam, ...]
    body: tuple[Statement, ...]
    results: tuple[SacExpression, ...]
    broken: bool = False
    span: Span = field(default=NO_SPAN, compare=False)
    signature_span: Span = field(default=NO_SPAN, compare=False)
    return_span: Span = field(default=NO_SPAN, compare=False)
    inline: bool = False  # was written before it; every call is inlined


@dataclass(frozen=True, slots=True)
class SacUnit:
    """A cell: its functions, and its lines of other kinds (in text order, as the functions are)."""

    functions: tuple[SacFunction, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    lines: tuple[SacTypedef | SacImport, ...] = ()
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class SacParsed:
    """A text after parsing: all functions that could be told apart, and what is wrong, in source order.

    Attributes:
        allow: code and place of every `// allow TC355` comment.
        comments: the places of all comments.
    """

    unit: SacUnit
    diagnostics: tuple[Diagnostic, ...] = ()
    allow: tuple[tuple[str, Span], ...] = ()
    comments: tuple[Span, ...] = ()


def sac_children(node: SacExpression) -> tuple[SacExpression, ...]:
    """The direct sub-expressions, left to right; those of generators and inner assignments included."""
    match node:
        case Name() | Number():
            return ()
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Conditional():
            return (node.condition, node.then, node.otherwise)
        case Apply():
            return node.arguments
        case Selection():
            return (node.array, *(i for i in node.indices if not isinstance(i, Dot | TripleDot)))
        case ArrayLiteral():
            return node.elements
        case SetExpr():
            found: list[SacExpression] = []
            for partition in node.partitions:
                found.extend(_bounds(partition.generator))
                found.append(partition.body)
            return tuple(found)
        case WithLoop():
            found = []
            for part in node.generators:
                found.extend(_bounds(part.generator))
                found.extend(statement_expressions(part.assigns))
                found.append(part.body)
            return (*found, *node.arguments)
    assert_never(node)


def _bounds(generator: Generator | None) -> tuple[SacExpression, ...]:
    if generator is None:
        return ()
    parts = (generator.lower, generator.upper, generator.step, generator.width)
    return tuple(part for part in parts if part is not None and not isinstance(part, Dot))


def generator_bounds(generator: Generator | None) -> tuple[SacExpression, ...]:
    """The expressions of a generator, left to right."""
    return _bounds(generator)


def inner_statements(statements: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those inside of others behind them, in text order; never recurses."""
    stack = list(reversed(list(statements)))
    while stack:
        current = stack.pop()
        yield current
        match current:
            case If():
                stack.extend(reversed((*current.then, *current.otherwise)))
            case Loop():
                stack.extend(reversed((*current.start, *current.body, *current.step)))
            case Assign() | Unpack() | BrokenAssign():
                pass


def statement_expressions(statements: Iterable[Statement]) -> tuple[SacExpression, ...]:
    """The expressions of statements and of those inside of them."""
    found: list[SacExpression] = []
    for statement in inner_statements(statements):
        match statement:
            case Assign() | Unpack():
                found.append(statement.value)
            case If() | Loop():
                found.append(statement.condition)
            case BrokenAssign():
                pass
    return tuple(found)


def assigned_names(statements: Iterable[Statement]) -> tuple[Name, ...]:
    """The names that statements give a value to, at their places; of a statement that could not be read without a place."""
    return tuple(name for statement in inner_statements(statements) for name in own_names(statement))


def own_names(statement: Statement) -> tuple[Name, ...]:
    """As `assigned_names`, without the statements inside of this one."""
    match statement:
        case Assign():
            return (statement.name,)
        case Unpack():
            return statement.names
        case BrokenAssign():
            return tuple(map(Name, statement.names))
        case If() | Loop():
            return ()


def sac_expressions(function: SacFunction) -> tuple[SacExpression, ...]:
    """All expressions of a function, in text order."""
    return (*statement_expressions(function.body), *function.results)


def sac_walk(node: SacExpression) -> Iterator[SacExpression]:
    """All nodes, parents before children; never recurses."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(sac_children(current)))
