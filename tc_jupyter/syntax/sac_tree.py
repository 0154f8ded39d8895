"""What was written in a `%%sac` cell: one node per construct, sugar kept, a span on every node.

Names, numbers, operators and calls are those of `tree.py`; the other nodes are what only a SaC expression may hold.

Worked example: `{ [i, .] -> a[i] | [i] < [5] }` is `SetExpr((PartitionClause(Pattern((Name("i"), Dot())),
Selection(Name("a"), (Name("i"),)), Generator(None, ..., ArrayLiteral((Number("5", 5),)))),))`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Span

from .tree import Apply, Binary, Conditional, Name, Number, Unary


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
    """`iv` (`items` is a single name and `vector` is true) or `[i, ., j, ...]`."""

    items: tuple[Name | Dot | TripleDot, ...]
    vector: bool
    span: Span = field(default=NO_SPAN, compare=False)

    @property
    def names(self) -> tuple[Name, ...]:
        """The named items, in order."""
        return tuple(item for item in self.items if isinstance(item, Name))


@dataclass(frozen=True, slots=True)
class Generator:
    """`lower <= pattern < upper`; a missing bound is `None`, `.` is a `Dot`.

    `lower_relation` and `upper_relation` are `<=` or `<`; other relations than `<=`, `<` stand only in with-loops.
    """

    lower: SacExpression | Dot | None
    upper: SacExpression | Dot | None
    lower_relation: str = "<="
    upper_relation: str = "<"
    span: Span = field(default=NO_SPAN, compare=False)


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
    """`name = value;`."""

    name: Name
    value: SacExpression
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class WithGenerator:
    """`(lower <= iv < upper) { assignments } : body;` of a with-loop."""

    pattern: Pattern
    generator: Generator
    assigns: tuple[Assign, ...]
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
    """

    base: str
    shape: tuple[int | None, ...] | str = ()
    span: Span = field(default=NO_SPAN, compare=False)

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
    """An assignment that could not be read: what `name` (if any) is stays unknown, and nothing is said about it."""

    name: str | None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class SacFunction:
    """A function; `name` may be an operator. `broken` is set when a part of it could not be read."""

    types: tuple[SacType | None, ...]
    name: Name
    params: tuple[SacParam, ...]
    body: tuple[Assign | BrokenAssign, ...]
    results: tuple[SacExpression, ...]
    broken: bool = False
    span: Span = field(default=NO_SPAN, compare=False)
    signature_span: Span = field(default=NO_SPAN, compare=False)
    return_span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class SacUnit:
    """A cell."""

    functions: tuple[SacFunction, ...]
    span: Span = field(default=NO_SPAN, compare=False)


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
                found.extend(assign.value for assign in part.assigns)
                found.append(part.body)
            return (*found, *node.arguments)
    assert_never(node)


def _bounds(generator: Generator | None) -> tuple[SacExpression, ...]:
    if generator is None:
        return ()
    return tuple(b for b in (generator.lower, generator.upper) if b is not None and not isinstance(b, Dot))


def sac_walk(node: SacExpression) -> Iterator[SacExpression]:
    """All nodes, parents before children; never recurses."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(sac_children(current)))
