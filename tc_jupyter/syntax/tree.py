"""What was written: one node per construct, sugar kept, a span on every node.

Spans do not count in comparisons, so two trees are equal when they say the same.

Worked example: `o(i) +=! A(i,j)` is `Comprehension(Name("o"), (Name("i"),), "+=!", Apply(Name("A"), (Name("i"), Name("j"))))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar, assert_never

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name: of a tensor, scalar, size, let, index, function or def."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A literal.

    Attributes:
        text: as written (`0x1F`, `7.f`, `true`, `inf`); it is what the value is made from, once, in its final type.
        value: an `int`, a `bool`, or the nearest Python float.
        type: the type that a suffix or `true`/`false` gives; `None` for a weak literal.
    """

    text: str
    value: int | float | bool
    type: str | None = None
    span: Span = field(default=NO_SPAN, compare=False)


E = TypeVar("E", covariant=True)
"""What an expression of the language is: the nodes below stand in `%%tc` and in `%%sac`."""


@dataclass(frozen=True, slots=True)
class Unary(Generic[E]):
    """`-` or `!`."""

    op: str
    operand: E
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Binary(Generic[E]):
    """An operator with two operands (`++` of `%%sac` included); `op_span` is the place of the operator alone."""

    op: str
    left: E
    right: E
    span: Span = field(default=NO_SPAN, compare=False)
    op_span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Conditional(Generic[E]):
    """`condition ? then : otherwise`."""

    condition: E
    then: E
    otherwise: E
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Apply(Generic[E]):
    """`f(a, b)`: a function, a cast (`function` is a type name), `min` or `max`; in `%%tc` also a read of a tensor."""

    function: Name
    arguments: tuple[E, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Bordered(Generic[E]):
    """`X(i - 1) else 0`: the element, or what stands behind `else` (in brackets, if `bracketed`) where a subscript is outside."""

    read: Apply[E]
    otherwise: E
    span: Span = field(default=NO_SPAN, compare=False)
    bracketed: bool = False


@dataclass(frozen=True, slots=True)
class Extent:
    """`T.k`: the extent of dimension `k` of `T`."""

    tensor: Name
    dimension: int
    span: Span = field(default=NO_SPAN, compare=False)


Expression: TypeAlias = (
    Name
    | Number
    | Unary["Expression"]
    | Binary["Expression"]
    | Conditional["Expression"]
    | Apply["Expression"]
    | Bordered["Expression"]
    | Extent
)


@dataclass(frozen=True, slots=True)
class DimensionBox:
    """`lower:upper` as a dimension: indices from `lower` on, `upper` excluded."""

    lower: Expression
    upper: Expression
    span: Span = field(default=NO_SPAN, compare=False)


Dimension: TypeAlias = Expression | DimensionBox


@dataclass(frozen=True, slots=True)
class TypeName:
    """`float(N, 2*D, 1:M)`: a scalar type with dimensions. `float` and `float()` have none. `scalar` is as written (`half`)."""

    scalar: str
    dimensions: tuple[Dimension, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter; `type` is `None` where the text is wrong (a message was given)."""

    type: TypeName | None
    name: Name
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a def; usually its type is left open."""

    name: Name
    type: TypeName | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Where:
    """`index in lower:upper`, upper excluded; `index = [lower, upper[` is the same."""

    index: Name
    lower: Expression
    upper: Expression
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Let:
    """`name = value`, for one statement."""

    name: Name
    value: Expression
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """`exists value`: the reads in `value` take part in inference; it is never evaluated."""

    value: Expression
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition as a clause, `X(i) > 0`: points where it does not hold are left out."""

    condition: Expression
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Unique:
    """`unique`: no two points of the statement have the same left side."""

    span: Span = field(default=NO_SPAN, compare=False)


Clause: TypeAlias = Where | Let | Exists | Unique | Filter


Target: TypeAlias = tuple[Name, tuple[Expression, ...] | None]


@dataclass(frozen=True, slots=True)
class Direction:
    """`i` or `-i` behind `along`: the points are taken in this order of an index, upwards or (`step` -1) downwards."""

    index: Name
    step: int = 1
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """`along -t in lower:upper { ... }`: the statements inside are done for one number `t` after the other.

    Attributes:
        number: counts the blocks of a def: two of them may have the same head.
        span: of the head.
    """

    index: Name
    step: int
    lower: Expression
    upper: Expression
    number: int = 0
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`target(indices) operator value where clauses`; `indices` is `None` when there are no parentheses.

    `H = layer(X)` has this form too: the checker decides whether it is a call of a def.
    `matched` is the accepted and ignored `<=> library(...)`. `argmin` and `argmax` may have `at`, what a position is.
    `along` says in which order the points are taken, outermost index first; without it they are independent.

    Attributes:
        before: the other targets, which stand before it, with their indices: `V(n)` of `V(n), P(n) argmax=! X(n, m)`.
        rest: the other values of a reducer, which stand behind it: `Y(n, m)` of `A(n), B(n) r=! (X(n, m), Y(n, m))`.
        blocks: the blocks around it, outermost first.
        called: the value is a call of a def at every step of a block; made of `Z = cell(P)` by the checker.
    """

    target: Name
    indices: tuple[Expression, ...] | None
    operator: str
    value: Expression
    clauses: tuple[Clause, ...] = ()
    matched: Apply[Expression] | None = None
    span: Span = field(default=NO_SPAN, compare=False)
    operator_span: Span = field(default=NO_SPAN, compare=False)
    at: Expression | None = None
    along: tuple[Direction, ...] = ()
    before: tuple[Target, ...] = ()
    rest: tuple[Expression, ...] = ()
    blocks: tuple[Block, ...] = ()
    called: bool = False

    @property
    def targets(self) -> tuple[Target, ...]:
        """All targets with their indices, in text order."""
        return (*self.before, (self.target, self.indices))


@dataclass(frozen=True, slots=True)
class CallStatement:
    """`P, Q = split(X)`: a call of a def with several results; `P, Q = step^n(X, Y)` with a `count`."""

    targets: tuple[Name, ...]
    callee: Name
    arguments: tuple[Expression, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    count: Name | None = None

    @property
    def read(self) -> tuple[Expression, ...]:
        """What it reads, the name of a count among it."""
        return (*self.arguments, self.count) if self.count and self.count.name.isidentifier() else self.arguments


@dataclass(frozen=True, slots=True)
class Broken:
    """A statement that could not be read. Messages were given; what it would define stays unknown.

    Attributes:
        targets: names it would define.
        names: all names in it; they count as used.
        text: as written.
    """

    targets: tuple[str, ...]
    names: frozenset[str]
    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Listed:
    """`[1, 2, 3]`: the values of a constant along one dimension."""

    items: tuple[Expression | Listed, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """`const float(3) C = [1, 2, 1]`, in a body or outside of all defs."""

    name: Name
    type: TypeName
    values: Expression | Listed
    span: Span = field(default=NO_SPAN, compare=False)


TcStatement: TypeAlias = Comprehension | CallStatement | Constant | Broken


@dataclass(frozen=True, slots=True)
class Reducer:
    """What `reduce` says beside the function itself: `from identity with given -> (lifted)`."""

    identity: tuple[Expression, ...]
    given: tuple[Name, ...] = ()
    lifted: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Def:
    """One def. `broken` is set when a part of it could not be read; `span` ends after the closing brace.

    A `reduce` is the def of a function of numbers, which says what it is as a reducer: `r(float a, float b) = a + b from 0` has the
    parameters `a` and `b`, the result `a_` and the statement `a_ = a + b`.
    """

    name: Name
    params: tuple[Param, ...]
    results: tuple[Result, ...]
    statements: tuple[TcStatement, ...]
    broken: bool = False
    span: Span = field(default=NO_SPAN, compare=False)
    signature_span: Span = field(default=NO_SPAN, compare=False)
    reducer: Reducer | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """`use "kernels.tc"`: the defs of another file may be called.

    Attributes:
        path: what stands between the quotes.
        place: of the path, with its quotes.
        regular: it is written as the language has it; else it was understood, and a message says how it is written.
    """

    path: str
    span: Span = field(default=NO_SPAN, compare=False)
    place: Span = field(default=NO_SPAN, compare=False)
    regular: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Unit:
    """A cell; its constants, and what it uses, stand before and between the defs."""

    defs: tuple[Def, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    constants: tuple[Constant, ...] = ()
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text after parsing: all defs that could be told apart, and what is wrong, in source order.

    Attributes:
        allow: code and place (a statement or a whole def) of every `# allow TC323` comment.
        comments: the places of all comments, for tools that keep them.
    """

    unit: Unit
    diagnostics: tuple[Diagnostic, ...] = ()
    allow: tuple[tuple[str, Span], ...] = ()
    comments: tuple[Span, ...] = ()


def children(node: Expression) -> tuple[Expression, ...]:
    """The direct operands, left to right."""
    match node:
        case Name() | Number() | Extent():
            return ()
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Conditional():
            return (node.condition, node.then, node.otherwise)
        case Apply():
            return node.arguments
        case Bordered():
            return (node.read, node.otherwise)
    assert_never(node)


def mapped(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The node with other operands: what `change` makes of each."""
    match node:
        case Name() | Number() | Extent():
            return node
        case Unary():
            return replace(node, operand=change(node.operand))
        case Binary():
            return replace(node, left=change(node.left), right=change(node.right))
        case Conditional():
            condition, then, otherwise = map(change, children(node))
            return replace(node, condition=condition, then=then, otherwise=otherwise)
        case Apply():
            return replace(node, arguments=tuple(map(change, node.arguments)))
        case Bordered():
            read = change(node.read)
            return replace(node, read=read if isinstance(read, Apply) else node.read, otherwise=change(node.otherwise))
    assert_never(node)


def parts(clause: Clause) -> tuple[Expression, ...]:
    """The expressions of a clause."""
    match clause:
        case Where():
            return (clause.lower, clause.upper)
        case Let() | Exists():
            return (clause.value,)
        case Filter():
            return (clause.condition,)
        case Unique():
            return ()
    assert_never(clause)


def mapped_clause(clause: Clause, change: Callable[[Expression], Expression]) -> Clause:
    """The clause with other expressions: what `change` makes of each."""
    match clause:
        case Where():
            return replace(clause, lower=change(clause.lower), upper=change(clause.upper))
        case Let() | Exists():
            return replace(clause, value=change(clause.value))
        case Filter():
            return replace(clause, condition=change(clause.condition))
        case Unique():
            return clause
    assert_never(clause)


def ends(dimension: Dimension) -> tuple[Expression, ...]:
    """The expressions of a dimension: its extent, or both ends of its box."""
    return (dimension.lower, dimension.upper) if isinstance(dimension, DimensionBox) else (dimension,)


def names_of(type_: TypeName | None) -> Iterator[Name]:
    """The names in the dimensions of a type, in text order; functions are not among them."""
    for dimension in type_.dimensions if type_ else ():
        for end in ends(dimension):
            yield from (node for node in walk(end) if isinstance(node, Name))


def walk(node: Expression) -> Iterator[Expression]:
    """All nodes of an expression, parents before children, left to right; never recurses."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


def names_in(parts: Iterable[Expression]) -> frozenset[str]:
    """All names in expressions, those before brackets and before `.k` among them."""
    found: set[str] = set()
    for node in (node for part in parts for node in walk(part)):
        match node:
            case Name():
                found.add(node.name)
            case Apply():
                found.add(node.function.name)
            case Extent():
                found.add(node.tensor.name)
            case _:
                pass
    return frozenset(found)


JOINING = {"&": "&&", "|": "||"}
"""Operators on bits that join two truth values, and what joins conditions."""


def is_open(node: Binary[Expression]) -> bool:
    """Whether no parentheses stand around an operator, which its span would cover."""
    return node.span == Span(node.left.span.start, node.right.span.end)


FOLDED = ("min", "max")
"""Functions of any number of arguments, which are an operator between each two: n of them are n - 1 levels."""


def depth(node: Expression) -> int:
    """The number of nodes on the longest path, operators between arguments included; never recurses."""
    deepest, stack = 0, [(node, 1)]
    while stack:
        current, level = stack.pop()
        if isinstance(current, Apply) and current.function.name in FOLDED:
            level += max(0, len(current.arguments) - 2)
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in children(current))
    return deepest


def ordered_lets(clauses: Iterable[Clause]) -> tuple[Let, ...]:
    """The lets of a statement, each behind those that it mentions, else as they are written; never recurses.

    Of lets that mention each other in a circle, one stands before another one that it mentions.
    """
    lets = [each for each in clauses if isinstance(each, Let)]
    named = {each.name.name: each for each in reversed(lets)}
    found, opened = dict[int, Let](), set[int]()
    stack = lets[::-1]
    while stack:
        let = stack[-1]
        mentioned = [] if id(let) in opened else [named[name] for name in sorted(names_in((let.value,)) & named.keys())]
        opened.add(id(let))
        if before := [each for each in mentioned if id(each) not in opened]:
            stack.extend(sorted(before, key=lambda each: -each.span.start))
        else:
            found.setdefault(id(let), stack.pop())
    return tuple(found.values())
