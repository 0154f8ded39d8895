"""Expressions of one `%%tc` statement: names resolved, lets put in, every node typed.

A part with a mistake becomes `None`, about which the parts around it stay silent.

Worked example: in a statement of `def f(float(N) X) -> (Y)`, `X(i) * 2` becomes
`Binary("*", Read("X", (IndexVar("i"),), FLOAT32), Const(2.0, FLOAT32), FLOAT32)`, and `i` is an index of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import assert_never

from tc_jupyter.diagnostics import Edit, Fix, Label, Span, codes
from tc_jupyter.syntax import ALLOCATING, JOINING, LETTERS, filled, is_open, library_names, tree

from . import bits, combining, complexes, orders, random_numbers, updates
from .accumulations import WrittenOut, written_out
from .beyond_ends import box_of, inside, placed
from .expr import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Border,
    Call,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    children,
    rebuild,
    walk,
)
from .functions import BORDERS, RANDOM, TC_FUNCTIONS, Function
from .powers import MOST_FACTORS, float_power, is_small, literal_power, product
from .scope import Scope, TensorInfo
from .typing import (
    TYPE_NAMES,
    Typed,
    as_index,
    cast,
    common,
    comparison,
    convert,
    explicit_cast,
    is_nan,
    mixes_signs,
    number_literal,
    settle,
    unify,
    weak_float,
    weak_integer,
)

MAX_NODES = 20_000
"""Nodes of one statement after its lets are put in."""
MAX_DEPTH = 160
"""Nested operators of one statement after its lets are put in; the stages that follow recurse over expressions."""

BOOL, INT32, INT64, FLOAT32 = DType.BOOL, DType.INT32, DType.INT64, DType.FLOAT32
_BOUND_FUNCTIONS = frozenset({"min", "max", "abs"})
_SHORT = 3
"""Letters of a name, each of which may be meant."""
_SIZES = "NMKLPQ"
"""Sizes of an example."""
_LATER_SPELLINGS = {
    "pad": library_names.INSTEAD["pad"].help,
    "sort": "no statement sorts: pass `numpy.sort(X)`",
    "argsort": "no statement sorts: pass `numpy.argsort(X)`",
    "topk": "no statement sorts: pass `numpy.sort(X)[..., -k:]`; the largest element alone is `V(n) max=! X(n, m)`",
}
RECURRENCE_HELP = (
    "statements are independent points, unless `along` says in which order they are taken: "
    "`Y(i) = (i > 0 ? Y(i-1) : 0) + X(i) along i` is a running sum"
)


@dataclass(slots=True)
class LetInfo:
    """A let: its value (`None` after a mistake) and how large that is."""

    value: Typed | None
    span: Span
    nodes: int
    depth: int
    used: bool = False


@dataclass
class StatementNames:
    """Names that belong to one statement.

    Attributes:
        target: the tensor that the statement writes.
        statement: what was written.
        left: left-side indices.
        indices: how often each index name was written, and its first place.
        mistaken: bare names about which a message was given.
        whole: tensors that stand without indices where an element is meant, with the places.
        foreign: a function of another language was found, whose message says how the whole statement is written.
        settles: only the type of the statement is asked for, and one of two integers without a type has none.
        update: what a statement is that was written `Z(i) ^= e`.
    """

    target: str
    statement: tree.Comprehension
    left: tuple[str, ...] = ()
    lets: dict[str, LetInfo] = field(default_factory=dict[str, LetInfo])
    indices: dict[str, Span] = field(default_factory=dict[str, Span])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    mistaken: set[str] = field(default_factory=set[str])
    mentioned: set[str] = field(default_factory=set[str])
    whole: list[tuple[TensorInfo, Span]] = field(default_factory=list[tuple[TensorInfo, Span]])
    foreign: bool = False
    settles: bool = False
    update: updates.Update | None = None

    @cached_property
    def placed(self) -> frozenset[str]:
        """Names that an index may have: those in subscripts, on the left, and those that have a range."""
        node = self.statement
        clauses = [part for clause in node.clauses for part in tree.parts(clause)]
        reads = (each for value in (node.value, *node.rest, *clauses) for each in tree.walk(value))
        called = TC_FUNCTIONS.keys() | TYPE_NAMES.keys()
        found = [each.arguments for each in reads if isinstance(each, tree.Apply) and each.function.name not in called]
        found += [indices or () for _, indices in node.targets]
        ranges = {clause.index.name for clause in node.clauses if isinstance(clause, tree.Where)}
        return tree.names_in(part for each in found for part in each) | ranges


def is_power_of_def(scope: Scope, node: tree.Binary[tree.Expression], own: Container[str] = ()) -> bool:
    """Whether this is a power of a def: a name that nothing has is that of one, if a number of times and arguments follow.

    Args:
        own: names of the statement.
    """
    name = node.left.name if node.op == "^" and isinstance(node.left, tree.Name) else ""
    if not name or name in own or name in scope.tensors or name in scope.sizes:
        return False
    return name in scope.callable_names or (name not in TC_FUNCTIONS and _applies(scope, node.right))


def _applies(scope: Scope, node: tree.Expression) -> bool:
    """Whether `n(X)` is a number, and arrays or numbers."""
    if not isinstance(node, tree.Apply):
        return False
    count = node.function.name
    number = scope.tensors.get(count)
    if not (count.isdigit() or count in scope.sizes or (number is not None and number.rank == 0)):
        return False
    arrays = (scope.tensors.get(each.name) for each in node.arguments if isinstance(each, tree.Name))
    return any(each is not None for each in arrays)


def refuse_power(scope: Scope, node: tree.Binary[tree.Expression]) -> None:
    """Report `f^n(X)` for a def `f` inside of an expression."""
    assert isinstance(node.left, tree.Name)
    name = node.left.name
    if name not in scope.callable_names:
        scope.unknown_def(name, node.left.span)
        return
    help = f"write a statement before this one, as in `V = {name}^n(X)`, and read `V` here"
    scope.report(codes.UNSUPPORTED, node.span, f"a power of the def `{name}` is a statement of its own", help=help)


class ExpressionChecker:
    """Types the expressions of one statement."""

    def __init__(self, scope: Scope, names: StatementNames) -> None:
        self.scope = scope
        self.names = names
        self.nodes = 0
        self.level = 0
        self.deepest = 0
        self.in_bound = False
        self.in_end = False  # of a range that differs from point to point
        self.bound_is, self.bound_help = "the bound of a range", _BOUND_HELP
        self.too_large = False
        self.mixed = set[Span]()  # `a & b` of a condition and a number
        self.between = set[Span]()  # `a | b` that stands between two comparisons

    # entry points

    def value(self, node: tree.Expression) -> Typed | None:
        """The typed form of an expression; may be weak."""
        self.nodes += 1
        self.level += 1
        self.deepest = max(self.deepest, self.level)
        try:
            return self._dispatch(node)
        finally:
            self.level -= 1

    def let(self, node: tree.Let) -> None:
        """Make a let known to the expressions after it."""
        before, self.nodes = self.nodes, 0
        outer, self.deepest = self.deepest, 0
        indices = dict(self.names.indices)
        value = self.value(node.value)
        self.names.indices = indices  # an index belongs to the statement when the let is used
        self.names.lets[node.name.name] = LetInfo(value, node.name.span, self.nodes, self.deepest)
        self.nodes, self.deepest = before, outer

    def bound(self, node: tree.Expression) -> Expr | None:
        """A bound of a range: an `int64` expression over sizes and integer scalars."""
        self.in_bound = True
        typed = self.value(node)
        self.in_bound = False
        return self._whole_number(node, typed)

    def moving_bound(self, node: tree.Expression) -> Expr | None:
        """A bound of a range of a reduction index, which other indices and elements may decide."""
        self.in_end = True
        typed = self.value(node)
        self.in_end = False
        return self._whole_number(node, typed)

    def moves(self, node: tree.Expression) -> bool:
        """Whether a bound differs from point to point: it has an index in it, or reads an element."""
        for item in tree.walk(node):
            if isinstance(item, tree.Apply) and item.function.name in self.scope.tensors:
                return True
            if not isinstance(item, tree.Name):
                continue
            if item.name in self.names.lets:
                value = self.names.lets[item.name].value
                parts = walk(value.expr) if value is not None else ()
                if any(isinstance(part, IndexVar) or (isinstance(part, Read) and part.indices) for part in parts):
                    return True
            elif item.name in self.names.left or item.name in self.names.indices:
                return True
        return False

    def _whole_number(self, node: tree.Expression, typed: Typed | None) -> Expr | None:
        """The number that an end is; `None` after a message."""
        if typed is None:
            return None
        if not typed.dtype.is_integer or typed.weak == "float":
            kind = "`bool`" if typed.dtype is BOOL else f"`{typed.dtype.value}`"
            self.scope.report(
                codes.WHERE_NOT_SIZE, node.span, f"{self.bound_is} is an integer, not {kind}", help=self.bound_help
            )
            return None
        return as_index(settle(typed).expr)

    # one method per kind of node

    def _dispatch(self, node: tree.Expression) -> Typed | None:
        match node:
            case tree.Name():
                return self._name(node)
            case tree.Number():
                return number_literal(node.text, node.value, node.type, node.span)
            case tree.Unary():
                return self._unary(node)
            case tree.Binary():
                return self._binary(node)
            case tree.Conditional():
                return self._conditional(node)
            case tree.Apply():
                return self._apply(node)
            case tree.Bordered():
                return self._bordered(node)
            case tree.Extent():
                return self._extent(node)
        assert_never(node)

    def _name(self, node: tree.Name) -> Typed | None:
        name, scope = node.name, self.scope
        self.names.mentioned.add(name)
        if name in self.names.lets:
            return self._let_value(node, self.names.lets[name])
        if name in self.names.left and not self.in_bound:
            return self._index(node)
        if name in scope.sizes or name in scope.result_sizes:
            return self._size(node)
        if name in scope.tensors:
            return self._scalar(node, scope.tensors[name])
        if any(isinstance(each, tree.Let) and each.name.name == name for each in self.names.statement.clauses):
            return self._mistaken(node, codes.UNKNOWN_NAME, f"`{name}` is defined by itself, so it has no value")
        if self.in_bound:
            return self._unknown_in_bound(node)
        if name in self.names.indices:
            return self._index(node)
        if scope.unwritten(name):
            return self._unwritten(name, node.span)
        if name in scope.defs:
            labels = (Label(scope.defs[name], "the def"),)
            return self._mistaken(node, codes.SHADOWING, f"an index cannot have the name of the def `{name}`", labels)
        if name[0].isdigit():
            return self.digit_name(node)
        if name in library_names.NOTHING:
            help = "every element has a value; `isnan(x)` says whether it is NaN, and no index stands for a new axis"
            return self._mistaken(node, codes.UNKNOWN_NAME, f"there is no `{name}`", (), help)
        if name in ("True", "False"):
            help, fix = scope.did_you_mean(name, node.span, ())
            return self._mistaken(node, codes.UNKNOWN_NAME, f"unknown name `{name}`", (), help, fix)
        if self.in_end:
            return self._unknown_in_bound(node)
        return None if self._is_near_a_number(node) else self._index(node)

    def _is_near_a_number(self, node: tree.Name) -> bool:
        """Tell of a name that can be no index, since it stands in no subscript, and that is nearly the name of a number."""
        name, scope = node.name, self.scope
        if name in self.names.mistaken:
            return True
        if self.names.settles or name in self.names.placed:
            return False
        numbers = {each for each, info in scope.tensors.items() if info.rank == 0 and info.written}
        close = scope.suggestions.nearest(name, sorted({*numbers, *scope.sizes, *self.names.lets}))
        if close is None:
            return False
        if close in scope.tensors:
            scope.tensors[close].read = True
        help, fix = f"did you mean `{close}`?", Fix(f"replace it by `{close}`", self._uses_as(node, close))
        if self._is_own_number(name):
            help, fix = scope.as_parameter(name)
        self._mistaken(node, codes.UNKNOWN_NAME, f"there is no `{name}`", (), help, fix)
        return True

    def _is_own_number(self, name: str) -> bool:
        """Whether a name ends a range whose index is spelled alike, as in `kh in 0:kH`, or which is read elsewhere, too.

        A slip of the pen does not repeat, but for capitals and within longer words.
        """
        scope, node = self.scope, self.names.statement
        given = (*scope.sizes, *scope.tensors)
        if any(name.lower() == each.lower() for each in given) or self._is_slip(name, given):
            return False
        ranges = [each for each in node.clauses if isinstance(each, tree.Where)]
        own = [each for each in ranges if name in tree.names_in((each.lower, each.upper))]
        others = [each for each in node.clauses if each not in own]
        read = [node.value, *node.rest, *(part for each in others for part in tree.parts(each))]
        return any(each.index.name.lower() == name.lower() for each in own) or (
            bool(own) and (len(own) > 1 or name in tree.names_in(read))
        )

    def _is_slip(self, name: str, given: Iterable[str]) -> bool:
        """Whether a longer word is nearly another one, but for a letter at an end, which tells `size_w` from `size_h`."""
        close = self.scope.suggestions.nearest(name, given) if len(name) > _SHORT else None
        return close is not None and close[:-1] != name[:-1] and close[1:] != name[1:]

    def _uses_as(self, name: tree.Name, other: str) -> tuple[Edit, ...]:
        """Edits that write another name wherever the statement has this one."""
        statement = self.names.statement
        every = [statement.value, *statement.rest, *(part for each in statement.clauses for part in tree.parts(each))]
        nodes = (node for part in every for node in tree.walk(part))
        uses = {node.span for node in nodes if isinstance(node, tree.Name) and node.name == name.name}
        return tuple(Edit(span, other) for span in sorted({name.span, *uses}))

    def _mistaken(
        self,
        node: tree.Name,
        code: codes.Code,
        message: str,
        labels: tuple[Label, ...] = (),
        help: str | None = None,
        fix: Fix | None = None,
    ) -> None:
        """Report a name once per statement."""
        if node.name not in self.names.mistaken:
            self.names.mistaken.add(node.name)
            self.scope.report(code, node.span, message, "", labels, help, fix)

    def _index(self, node: tree.Name) -> Typed:
        names = self.names
        names.indices.setdefault(node.name, node.span)
        names.counts[node.name] = names.counts.get(node.name, 0) + 1
        return Typed(IndexVar(node.name, node.span), INT64)

    def digit_name(self, node: tree.Name) -> None:
        """Say that `2i` is no variable."""
        digits = len(node.name) - len(node.name.lstrip("0123456789"))
        number, rest = node.name[:digits], node.name[digits:]
        if rest in ("f", "F"):
            fix = Fix(f"write `{number}.f`", (Edit(node.span, f"{number}.f"),))
            help = "a `float32` literal has a point: `7.f`"
        elif rest in ("i", "j", "I", "J") and rest not in self.names.indices and self._has_complex():
            fix = Fix(f"write `complex64(0, {number})`", (Edit(node.span, f"complex64(0, {number})"),))
            help = "an imaginary number is made of its parts"
        else:
            fix = Fix(f"write `{number}*{rest}`", (Edit(node.span, f"{number}*{rest}"),))
            help = "a product is written with `*`"
        self._mistaken(node, codes.DIGIT_NAME, f"`{node.name}` starts with a digit and is no variable", (), help, fix)

    def _has_complex(self) -> bool:
        """Whether the def has complex numbers."""
        return any(info.dtype is not None and info.dtype.is_complex for info in self.scope.tensors.values())

    def _let_value(self, node: tree.Name, let: LetInfo) -> Typed | None:
        let.used = True
        self.nodes += let.nodes
        self.deepest = max(self.deepest, self.level + let.depth)
        if self.nodes > MAX_NODES or self.deepest > MAX_DEPTH:
            return self._report_size(node.span)
        if let.value is None:
            return None
        if self.in_bound:
            return self._let_in_bound(node, let.value)
        for item in walk(let.value.expr):
            if isinstance(item, IndexVar):
                self.names.indices.setdefault(item.name, item.span)
        return let.value

    def _report_size(self, span: Span) -> None:
        """Say once that a statement is too large."""
        if not self.too_large:
            self.too_large = True
            message = "the statement is too large after its lets are put in and its powers are written out"
            help = f"the limits are {MAX_NODES} nodes and {MAX_DEPTH} levels; write a temporary instead"
            self.scope.report(codes.DEVICE_LIMIT, span, message, help=help)

    def _let_in_bound(self, node: tree.Name, value: Typed) -> Typed | None:
        for item in walk(value.expr):
            if isinstance(item, IndexVar):
                labels = (Label(item.span, f"`{item.name}` is an index"),)
                help = "guard the expression with `? :` instead"
                self.scope.report(
                    codes.WHERE_INDEX, node.span, f"{self.bound_is} uses the index `{item.name}`", "", labels, help
                )
                return None
            if isinstance(item, Read) and (item.indices or not self.scope.tensors[item.tensor].is_input):
                labels = (Label(item.span, "read here"),)
                self.scope.report(
                    codes.WHERE_NOT_SIZE,
                    node.span,
                    f"{self.bound_is} reads `{item.tensor}`",
                    "",
                    labels,
                    self._element_help(),
                )
                return None
        return value

    def _element_help(self) -> str:
        """What to write in the place of an element in a bound."""
        return _ELEMENT_HELP if self.bound_help is _BOUND_HELP else self.bound_help

    def _size(self, node: tree.Name) -> Typed | None:
        expr = self.scope.size(node.name, node.span)
        if expr is not None:
            return Typed(expr, INT64)
        tensor = self.scope.result_sizes[node.name][0]
        message = f"`{node.name}` is the extent of `{tensor}`, which no statement has written yet"
        self.scope.report(codes.READ_BEFORE_WRITE, node.span, message)
        return None

    def _scalar(self, node: tree.Name, info: TensorInfo) -> Typed | None:
        """A bare name of a tensor: an element only for rank 0."""
        info.read = True
        if not info.written:
            return self._unwritten(node.name, node.span)
        if info.rank is None or info.dtype is None:
            return None
        if info.rank and not self.in_bound:
            self.names.whole.append((info, node.span))
            return None
        if info.rank:
            labels = (Label(info.span, f"{info.rank} {_plural('dimension', info.rank)}"),)
            message = f"the tensor `{node.name}` has no indices here"
            self.scope.report(codes.WHERE_NOT_SIZE, node.span, message, "", labels, self.bound_help)
            return None
        return self._element(info, (), node.span)

    def _unknown_in_bound(self, node: tree.Name) -> None:
        name, scope = node.name, self.scope
        if name[0].isdigit():
            return self.digit_name(node)
        if name in self.names.indices or name in self.names.left:
            help = "an index of the left side has the same ends at all points; guard the expression with `? :` instead"
            return self._mistaken(node, codes.WHERE_INDEX, f"{self.bound_is} uses the index `{name}`", (), help)
        if self._is_own_number(name):
            help, fix = scope.as_parameter(name)
        else:
            candidates = [*scope.sizes, *scope.result_sizes, *self.names.lets, *scope.tensors]
            help, fix = scope.did_you_mean(name, node.span, candidates)
            fix = fix and Fix(fix.title, self._uses_as(node, fix.edits[0].text))
        return self._mistaken(
            node, codes.WHERE_UNKNOWN, f"unknown name `{name}` in {self.bound_is}", (), help or self.bound_help, fix
        )

    def _element(self, info: TensorInfo, indices: tuple[Expr, ...], span: Span) -> Typed | None:
        """A read, cast to the type of arithmetic."""
        assert info.dtype is not None
        if info.literal is not None:
            return replace(info.literal, expr=replace(info.literal.expr, span=span))
        if self.in_bound and (indices or not info.is_input or not info.dtype.is_integer):
            what = (
                f"reads `{info.name}`"
                if indices or not info.is_input
                else f"uses `{info.name}`, which is `{info.dtype.value}`"
            )
            self.scope.report(codes.WHERE_NOT_SIZE, span, f"{self.bound_is} {what}", help=self.bound_help)
            return None
        if info.dtype.is_complex:
            return Typed(complexes.element(info.name, indices, info.dtype, span), info.dtype)
        read = Read(info.name, indices, info.dtype, span)
        return Typed(cast(read, info.dtype.compute), info.dtype)

    @property
    def written_out(self) -> WrittenOut | None:
        """The accumulation that the statement writes out, as `Y(i) = Y(i) + X(i, j)` does; `None` if it combines nothing."""
        statement, tensors, left = self.names.statement, self.scope.tensors, self.names.left
        found = written_out(statement, self.scope.source)
        calls = (
            item for rest in (found.rest if found else ()) for item in tree.walk(rest) if isinstance(item, tree.Apply)
        )
        reads = (item for call in calls if call.function.name in tensors for item in tree.walk(call))
        places = (
            item for each in statement.indices or () if not isinstance(each, tree.Name) for item in tree.walk(each)
        )
        names = (each for each in (*reads, *places) if isinstance(each, tree.Name) and each.name not in tensors)
        combined = any(self._is_index(each) and each.name not in left for each in names)
        return found if combined else None

    def _unwritten(self, name: str, span: Span, at: Sequence[tree.Expression] = ()) -> None:
        own = name == self.names.target
        if own and self.written_out is not None:
            return  # about which there is one message
        if own and at and [item.name if isinstance(item, tree.Name) else "" for item in at] != list(self.names.left):
            message = f"the statement reads its own target `{name}` at other indices than it writes"
            fix = orders.added(self.names.statement, self.names.left)
            self.scope.report(codes.RECURRENCE, span, message, help=RECURRENCE_HELP, fix=fix)
            return
        message = f"`{name}` is read before it is written"
        help = (
            "its first statement cannot read it; accumulate with `+=`"
            if own
            else "move the statement that writes it up"
        )
        if not own and (order := self.names.statement.along):
            help += f", or make both step by step: `along {order[0].index.name} in 0:... {{ ... }}` holds several statements"
        self.scope.report(codes.READ_BEFORE_WRITE, span, message, help=help)

    def _extent(self, node: tree.Extent) -> Typed | None:
        name, scope = node.tensor.name, self.scope
        self.names.mentioned.add(name)
        info = scope.tensors.get(name)
        if info is None:
            if scope.unwritten(name):
                scope.report(codes.NO_SUCH_DIMENSION, node.span, f"no statement has written `{name}` yet")
                return None
            taken = scope.taken(name)
            message = f"`{name}` is {taken[0]}, not a tensor" if taken else f"there is no tensor `{name}`"
            help, fix = scope.did_you_mean(name, node.tensor.span, scope.tensors)
            scope.report(codes.NO_SUCH_DIMENSION, node.span, message, help=help, fix=fix)
            return None
        info.read = True
        if not info.written:
            scope.report(codes.NO_SUCH_DIMENSION, node.span, f"no statement has written `{name}` yet")
            return None
        if info.rank is None or info.dtype is None:
            return None
        if node.dimension >= info.rank:
            message = f"`{name}` has {info.rank} {_plural('dimension', info.rank)}, counted from 0"
            last = f"`{name}.{info.rank - 1}`"
            help = f"the extent of its last dimension is {last}" if info.rank else "a number has no extent"
            labels = (Label(info.span, "declared here"),)
            scope.report(codes.NO_SUCH_DIMENSION, node.span, message, labels=labels, help=help)
            return None
        dim = info.dims[node.dimension]
        return Typed(replace(dim, span=node.span), INT64)

    def _unary(self, node: tree.Unary[tree.Expression]) -> Typed | None:
        operand = self.value(node.operand)
        if operand is None:
            return None
        if node.op == "!":
            if self.in_bound:
                return self._not_in_bound("`!`", node.span)
            typed = self._truth(operand, node.operand, node.span)
            return typed and Typed(Unary("!", typed.expr, BOOL, node.span), BOOL)
        if node.op == "~":
            return self._inverted(node, operand)
        if operand.weak == "int":
            return weak_integer(-operand.exact, node.span)
        if operand.weak:
            return Typed(Unary("-", operand.expr, FLOAT32, node.span), FLOAT32, "float")
        if operand.dtype is BOOL:
            operand = convert(operand, INT32)
        if operand.dtype.is_complex:
            return Typed(complexes.negative(operand.expr, node.span), operand.dtype)
        return Typed(Unary("-", operand.expr, operand.expr.dtype, node.span), operand.dtype)

    def _inverted(self, node: tree.Unary[tree.Expression], operand: Typed) -> Typed | None:
        """`~x` of an integer."""
        if operand.weak == "int":
            return weak_integer(~operand.exact, node.span)
        if operand.dtype is BOOL:
            help = "`~` turns the bits of an integer around"
            fix = Fix("write `!`", (Edit(Span(node.span.start, node.span.start + 1), "!"),))
            self.scope.report(codes.TYPE_MISMATCH, node.span, "a truth value is negated with `!`", help=help, fix=fix)
            return None
        if operand.dtype.part.is_float:
            return self._not_an_integer("`~`", node.operand, operand)
        return Typed(bits.inverted(operand.expr, node.span), operand.dtype)

    def _not_an_integer(
        self, operator: str, node: tree.Expression, typed: Typed, joining: tree.Binary[tree.Expression] | None = None
    ) -> None:
        """Tell of an operand that has to be an integer; `joining`: the other one is a condition."""
        kind = settle(typed).dtype.value
        help, fix = "cast it, as in `int32(x)`" + ", which cuts off the fraction" * typed.dtype.is_float, None
        if joining is not None and joining.op in JOINING:
            help, fix = f"conditions are joined with `{JOINING[joining.op]}`", self._joining(joining)
        message = f"{operator} takes integers, not `{kind}`"
        self.scope.report(codes.TYPE_MISMATCH, node.span, message, f"this is `{kind}`", help=help, fix=fix)

    def _joining(self, node: tree.Binary[tree.Expression]) -> Fix:
        """`&&` instead of `&`."""
        plain = JOINING[node.op]
        return Fix(f"write `{plain}`", (Edit(node.op_span, plain),))

    def _truth(self, typed: Typed, node: tree.Expression, negated: Span | None = None) -> Typed | None:
        """An operand that must be `bool`; `negated`: the place of `!x`, where it is that."""
        if typed.dtype is BOOL:
            return typed
        kind = settle(typed).dtype.value
        text = self._bracketed(node)
        fix = Fix("test whether it is not 0", (Edit(node.span, f"{text} != 0"),))
        if negated is not None:
            fix = self._without_bang(negated) or Fix(
                "test whether it is 0", (Edit(negated, self._outer(f"({text} == 0)")),)
            )
        self.scope.report(
            codes.TYPE_MISMATCH, node.span, f"a condition is `bool`, not `{kind}`", f"this is `{kind}`", fix=fix
        )
        return None

    def _without_bang(self, negated: Span) -> Fix | None:
        """The operator that is meant where a `!` behind it negates a number: `+=!` for `+= !`, `=` for `=!`."""
        statement = self.names.statement
        operator, place = statement.operator, statement.operator_span
        is_update = operator != "=" and not operator.endswith("!")
        if statement.value.span != negated or not (is_update or place.end == negated.start):
            return None
        written = self.scope.source.slice(place)  # `argmax=!`, where the operator is the `max=!` that it stands for
        plain = operator + "!" if is_update else written if operator.endswith("!") else operator
        return Fix(f"write `{plain}`", (Edit(Span(place.start, negated.start + 1), plain),))

    def _binary(self, node: tree.Binary[tree.Expression]) -> Typed | None:
        if is_power_of_def(self.scope, node, {*self.names.lets, *self.names.left, *self.names.indices}):
            refuse_power(self.scope, node)
            return None
        if self._is_power_of_nothing(node):
            assert isinstance(node.left, tree.Name)
            return self.scope.unknown_def(node.left.name, node.left.span)
        if node.op in COMPARISONS and (name := self._named_nan(node)) is not None:
            self._mention([each for each in (node.left, node.right) if each is not name])
            help, fix = self._nan_test(node, name)
            return self._mistaken(name, codes.UNKNOWN_NAME, f"there is no `{name.name}`", (), help, fix)
        if (near := _between(node)) is not None:
            self.between.add(near.span)
        left, right = self.value(node.left), self.value(node.right)
        if node.op in LOGICAL:
            return self._logical(node, node.op, left, right)
        if left is None or right is None:
            return None
        if node is self.names.statement.value and updates.is_update(self.names.statement) and not self.names.update:
            return self._updated(node, left, right)
        if node.op == "^":
            return self._power(node, left, right)
        if node.op in bits.FUNCTIONS:
            return self._bits(node, left, right)
        self._quotients((node.left, left), (node.right, right))
        if node.op in COMPARISONS:
            self._levels(node, left, right)
            self._tighter(node)
            self._with_nan(node, left, right)
            return self._comparison(node, left, right)
        if node.op == "/" and left.dtype is BOOL and right.dtype.is_integer and not self.in_bound:
            self._truth_quotient(node)
        return self._arithmetic(node.op, left, right, node.span)

    def _is_power_of_nothing(self, node: tree.Binary[tree.Expression]) -> bool:
        """Whether this is `g^3(...)` for a name that nothing has, and that stands in no subscript."""
        count = node.right.function.name if isinstance(node.right, tree.Apply) else ""
        if node.op != "^" or not isinstance(node.left, tree.Name) or not count.isdigit():
            return False
        name, names = node.left.name, self.names
        known = name in names.placed or name in names.lets or name in names.indices or name in TC_FUNCTIONS
        return not known and self.scope.taken(name) is None and not self.scope.unwritten(name)

    def _updated(self, node: tree.Binary[tree.Expression], left: Typed, right: Typed) -> Typed | None:
        """`Z(i) ^= e` and the like, by the types of `Z` and `e`."""
        statement, is_fraction = self.names.statement, next(_integer_quotients(node.right), None) is not None
        found = updates.meant(statement, self.scope.source, (left, right), is_fraction)
        if len(self.names.left) < len(statement.indices or ()):
            words = (
                item.name
                for index in statement.indices or ()
                for item in tree.walk(index)
                if isinstance(item, tree.Name)
            )
            indices = [word for word in dict.fromkeys(words) if self.scope.taken(word) is None]
            found = updates.at_places(statement, self.scope.source, found, indices)
        self.names.update = found
        return None if found.node is None or found.whole else self.value(found.node)

    def _logical(
        self, node: tree.Binary[tree.Expression], op: str, left: Typed | None, right: Typed | None
    ) -> Typed | None:
        """`&&` or `||`, also where it is written `&` or `|`."""
        if self.in_bound:
            return self._not_in_bound(f"`{node.op}`", node.op_span)
        left = left and self._truth(left, node.left)
        right = right and self._truth(right, node.right)
        if left is None or right is None:
            return None
        return Typed(Binary(op, left.expr, right.expr, BOOL, node.span), BOOL)

    def _power(self, node: tree.Binary[tree.Expression], base: Typed, exponent: Typed) -> Typed | None:
        """`x^n`."""
        if exponent.weak == "float" or not exponent.dtype.is_integer:
            return self._no_exponent(node, base, exponent)
        self._root(node, base.dtype)
        number = exponent.exact if exponent.weak else None
        if number is None and isinstance(exponent.expr, Const):
            number = int(exponent.expr.value)
        if base.dtype is BOOL:
            base = convert(base, INT32)
        if base.dtype.is_complex and number is not None:
            return self._bounded(Typed(complexes.power(base.expr, number, node.span), base.dtype))
        if base.dtype.is_complex:
            message = "the exponent of a complex number is a literal"
            return self.scope.report(codes.TYPE_MISMATCH, node.right.span, message)
        if not base.dtype.is_float and base.weak != "float":
            return self._integer_power(node, base, number)
        if number is not None and base.weak:
            return Typed(float_power(base.expr, number, node.span), FLOAT32, "float")
        base, dtype = settle(base), settle(base).dtype
        if number is not None and self._copies(base.expr, min(abs(number), MOST_FACTORS)):
            return Typed(float_power(base.expr, number, node.span), dtype)
        if number is not None:
            return self._report_size(node.span)
        arguments = base.expr, convert(exponent, dtype).expr
        return Typed(Call("pow", arguments, dtype.compute, node.span), dtype)

    def _root(self, node: tree.Binary[tree.Expression], dtype: DType) -> None:
        """Warn of `x^(1/2)`, where `1/2` is 0."""
        quotient = next(_integer_quotients(node.right), None)
        if quotient is None:
            return
        source, whole = self.scope.source, quotient is node.right
        one, two = source.slice(quotient.left.span), source.slice(quotient.right.span)
        base = source.slice(node.left.span)
        base, is_square = base[1:-1] if _enclosed(base) else base, (one, two) == ("1", "2")
        text = f"sqrt({base})" if is_square else f"pow({base}, {one}.0/{two})"
        is_known = whole and one.removeprefix("-").isdigit() and (is_square or not dtype.is_complex)
        message = f"`{one}/{two}` is a quotient of integers, which is rounded down"
        help = "a root is `sqrt(x)`, and `pow(x, y)` takes any exponent"
        fix = Fix(f"write `{text}`", (Edit(node.span, text),)) if is_known and len(text) < 200 else None
        self.scope.report(codes.INTEGER_QUOTIENT, quotient.span, message, help=help, fix=fix)

    def _no_exponent(self, node: tree.Binary[tree.Expression], base: Typed, exponent: Typed) -> None:
        source = self.scope.source
        kind = settle(exponent).dtype.value
        text = f"pow({source.slice(node.left.span)}, {source.slice(node.right.span)})"
        is_euler = isinstance(node.left, tree.Name) and node.left.name == "e" and self.scope.taken("e") is None
        if is_euler and "e" not in self.names.left and "e" not in self.names.lets:
            text = f"exp({source.slice(node.right.span)})"
        fix = Fix(f"write `{text}`", (Edit(node.span, text),)) if len(text) < 200 and exponent.dtype.is_float else None
        message, help = f"the exponent of `^` is an integer, not `{kind}`", None
        if base.dtype.is_complex:
            fix, help = None, f"a root is `sqrt(z)`; `pow` is for real numbers, not for `{base.dtype.value}`"
        self.scope.report(codes.TYPE_MISMATCH, node.right.span, message, f"this is `{kind}`", help=help, fix=fix)

    def _integer_power(self, node: tree.Binary[tree.Expression], base: Typed, number: int | None) -> Typed | None:
        text = self.scope.source.slice(node.left.span)
        if number is None:
            help = f"write `pow(double({text}), ...)`" + ", or `1 << n` for `2^n`" * (base.exact == 2)
            both = f"({text} ^^ {self.scope.source.slice(node.right.span)})"
            fix = None if base.weak else Fix(f"write `{both}`", (Edit(node.span, both),))
            help = help if base.weak else f"exclusive or is `{both}`; for a power, {help}"
            message = "the exponent of an integer is a literal"
            self.scope.report(codes.TYPE_MISMATCH, node.right.span, message, help=help, fix=fix)
            return None
        if number < 0:
            fix = Fix("make it a float", (Edit(node.left.span, f"float({text})"),))
            message = f"an integer to the power {number} is no integer"
            self.scope.report(codes.NARROWING, node.span, message, fix=fix)
            return None
        self._mask(node, base)
        if base.weak:
            power = literal_power(base.exact, number)
            if power is not None:
                return weak_integer(power, node.span)
            self.scope.report(codes.DEVICE_LIMIT, node.span, "the power has more than 4096 bits")
            return None
        if number == 0:  # what is raised is read all the same
            zero, one = (Const(value, base.dtype, node.span) for value in (0, 1))
            nothing = Binary("*", base.expr, zero, base.dtype, node.span)
            return Typed(Binary("+", nothing, one, base.dtype, node.span), base.dtype)
        if not self._copies(base.expr, number):
            self._report_size(node.span)
            return None
        return Typed(product(base.expr, number), base.dtype)

    def _mask(self, node: tree.Binary[tree.Expression], base: Typed) -> None:
        """Warn of `X(i) ^ 0xFF` and `X(i) ^ 1`, which look like an exclusive or."""
        source = self.scope.source
        left, right = source.slice(node.left.span), source.slice(node.right.span)
        exponent = right.strip("( )")
        if not left or not (exponent == "1" or exponent[:2].lower() in ("0x", "0b")) or base.weak:
            return
        text = f"({left} ^^ {right})"
        fix = Fix(f"write `{text}`", (Edit(node.span, text),)) if len(text) < 200 else None
        message = f"`^` is the power, and `{exponent}` an exponent"
        help = f"exclusive or is `{left} ^^ {exponent}`"
        operator = source.text.find("^", node.left.span.end, node.right.span.start)
        if operator < 0:
            return  # `**` is a power
        place = Span(operator, operator + 1)
        self.scope.report(codes.POWER_OF_BITS, place, message, help=help, fix=fix)

    def _copies(self, expr: Expr, number: int) -> bool:
        """Count what a product of copies takes; false if the statement becomes too large."""
        self.nodes += min(abs(number), MAX_NODES) * sum(1 for _ in walk(expr))
        return self.nodes <= MAX_NODES

    def _bits(self, node: tree.Binary[tree.Expression], left: Typed, right: Typed) -> Typed | None:
        """`x & 3`, `x << n`, and `a & b` of truth values."""
        if left.dtype is right.dtype is BOOL and node.op not in bits.SHIFTS:
            op = {"&": "&&", "|": "||"}.get(node.op)
            if op is not None:
                return self._logical(node, op, left, right)
            return Typed(Binary("!=", left.expr, right.expr, BOOL, node.span), BOOL)
        if node.op in bits.SHIFTS and left.dtype.is_float and right.dtype.is_integer:
            self._shifted_float(node, left)
            return None
        for each, typed, other in ((node.left, left, right), (node.right, right, left)):
            if typed.dtype.part.is_float:
                joins = other.dtype is BOOL or node.span in self.between
                return self._not_an_integer(f"`{node.op}`", each, typed, node if joins else None)
        if BOOL in (left.dtype, right.dtype) and node.op in JOINING:
            self.mixed.add(node.span)
        if node.op in bits.SHIFTS and right.weak and right.exact < 0:
            other = bits.SHIFTS[node.op == "<<"]
            help = f"`x {other} {-right.exact}` goes the other way"
            self.scope.report(codes.NARROWING, node.right.span, "a number of bits is not negative", help=help)
            return None
        if left.weak and right.weak:
            return weak_integer(bits.value_of(node.op, left.exact, right.exact, _MOST_BITS), node.span)
        self._check_signs(left, right, node.span)
        left, right, dtype = unify(left, right, bool_is_int=True)
        expr = bits.combined(node.op, convert(left, dtype).expr, convert(right, dtype).expr, node.span)
        if self.in_bound and isinstance(expr, Call):
            return self._not_in_bound(f"`{node.op}` of these operands", node.op_span)
        return Typed(expr, dtype)

    def _shifted_float(self, node: tree.Binary[tree.Expression], value: Typed) -> None:
        """Tell of `x << n` for a float, which is times a power of 2."""
        sign, kind = "*" if node.op == "<<" else "/", settle(value).dtype.value
        text = f"{self._bracketed(node.left)} {sign} exp2({self.scope.source.slice(node.right.span)})"
        fix = Fix(f"write `{text}`", (Edit(node.span, text),)) if len(text) < 200 else None
        message, help = f"`{node.op}` takes integers, not `{kind}`", f"a float is shifted as `x {sign} exp2(n)`"
        self.scope.report(codes.TYPE_MISMATCH, node.left.span, message, f"this is `{kind}`", help=help, fix=fix)

    def _levels(self, node: tree.Binary[tree.Expression], *operands: Typed) -> None:
        """Warn of `a == b < c`, where the truth value of `b < c` is compared: in other languages comparisons have one level."""
        if node.op not in ("==", "!="):
            return
        inner = [each for each in (node.left, node.right) if _is_open_relation(each)]
        if not inner:
            return
        source, other = self.scope.source, node.right if inner[0] is node.left else node.left
        inside = inner[0]
        assert isinstance(inside, tree.Binary)
        if (bits_between := _between(node)) is not None:
            self._report_tighter(bits_between, inside.op)
            return
        near = inside.left if inside is node.right else inside.right  # the operand that both comparisons have
        if all(each.dtype is BOOL for each in operands):
            fix = Fix("put it in parentheses", tuple(edit for each in inner for edit in _parentheses(each)))
        else:
            first, last = (other, near) if inside is node.right else (near, other)
            equal = f"{source.slice(first.span)} {node.op} {source.slice(last.span)}"
            relation = source.slice(inside.span)
            text = f"{equal} && {relation}" if inside is node.right else f"{relation} && {equal}"
            fix = Fix(f"write `{text}`", (Edit(node.span, self._joined(text)),)) if len(text) < 200 else None
        message = (
            f"`{source.slice(inside.span)}` is compared first, and its truth value with `{source.slice(other.span)}`"
        )
        help = f"`{inside.op}` binds tighter than `{node.op}`: put parentheses, or join two comparisons with `&&`"
        self.scope.report(codes.COMPARISON_LEVELS, node.op_span, message, help=help, fix=fix)

    def _tighter(self, node: tree.Binary[tree.Expression]) -> None:
        """Warn of `a & b > 0` for a condition `a`, where `a & b` is compared."""
        for each in (node.left, node.right):
            if isinstance(each, tree.Binary) and each.span in self.mixed and is_open(each):
                self._report_tighter(each, node.op)

    def _report_tighter(self, node: tree.Binary[tree.Expression], comparison: str) -> None:
        message = f"`{self._short_text(node.span)}` is compared: `{node.op}` binds tighter than `{comparison}`"
        help = f"conditions are joined with `{JOINING[node.op]}`"
        self.scope.report(codes.BITS_COMPARED, node.op_span, message, help=help, fix=self._joining(node))

    def _named_nan(self, node: tree.Binary[tree.Expression]) -> tree.Name | None:
        """The operand of a comparison that is `nan` in another language, where the statement gives its name no meaning."""
        for each in (node.left, node.right):
            if isinstance(each, tree.Name) and library_names.CONSTANTS.get(each.name) == "nan":
                names = self.names
                known = each.name in names.lets or each.name in names.left or each.name in names.placed
                return None if known or self.scope.taken(each.name) is not None else each
        return None

    def _with_nan(self, node: tree.Binary[tree.Expression], *operands: Typed) -> None:
        """Warn of a comparison with `nan`, which says the same about every value."""
        for each, value in zip((node.left, node.right), operands, strict=True):
            if is_nan(value):
                truth = "always" if node.op == "!=" else "never"
                why = "equal to nothing" if node.op in ("==", "!=") else "neither less nor greater"
                message = f"`{self._short_text(node.span)}` is {truth} true: NaN is {why}"
                help, fix = self._nan_test(node, each)
                self.scope.report(codes.NAN_COMPARED, node.op_span, message, help=help, fix=fix)
                return

    def _nan_test(self, node: tree.Binary[tree.Expression], nan: tree.Expression) -> tuple[str, Fix | None]:
        """Help and fix for a comparison with NaN."""
        other = node.left if nan is node.right else node.right
        text = f"{'!' * (node.op == '!=')}isnan({self.scope.source.slice(other.span)})"
        fix = Fix(f"write `{text}`", (Edit(node.span, text),)) if node.op in ("==", "!=") and len(text) < 200 else None
        return "`isnan(x)` says whether `x` is NaN", fix

    def _joined(self, text: str) -> str:
        return text if self.level <= 2 else f"({text})"

    def _quotients(self, *operands: tuple[tree.Expression, Typed]) -> None:
        """Warn of `1/2` among integers that meet a float: it is 0."""
        floats = [value for _, value in operands if value.dtype.is_float or value.dtype.is_complex]
        if not 0 < len(floats) < len(operands):
            return
        wide = next((value.dtype.part for value in floats if not value.weak), FLOAT32)
        for node, value in operands:
            for quotient in _integer_quotients(node) if value.dtype.is_integer else ():
                self._quotient(quotient, wide)

    def _quotient(self, node: tree.Binary[tree.Expression], dtype: DType) -> None:
        source = self.scope.source
        digits, rest = source.slice(node.left.span), source.slice(Span(node.left.span.end, node.right.span.end))
        exact = isinstance(node.right, tree.Number)
        one = f"{digits}.0" if exact or dtype.bits <= 32 else f"{dtype.value}({digits})"
        number = node.left.operand if isinstance(node.left, tree.Unary) else node.left
        plain = isinstance(number, tree.Number) and number.text.isdigit()
        fix = Fix(f"write `{one}`", (Edit(node.left.span, one),)) if plain else None
        message = f"`{digits}{rest}` is a quotient of integers, which is rounded down"
        help = f"a fraction has a float, as in `{one}{rest}`" if plain else None
        self.scope.report(codes.INTEGER_QUOTIENT, node.span, message, help=help, fix=fix)

    def _truth_quotient(self, node: tree.Binary[tree.Expression]) -> None:
        """Warn of `(X(i) == 1) / n`, which is 0 but for `n` of 1 and -1."""
        span = node.left.span
        bracketed = self.scope.source.slice(span)[:1] == "("
        opening, closing = Span(span.start, span.start), Span(span.end, span.end)
        edits = (Edit(opening, "float"),) if bracketed else (Edit(opening, "float("), Edit(closing, ")"))
        message = f"`{self._short_text(node.span)}` divides a truth value by an integer, which is rounded down"
        fix = Fix("make it a float", edits)
        self.scope.report(codes.INTEGER_QUOTIENT, node.span, message, help="a fraction has a float", fix=fix)

    def _not_in_bound(self, what: str, span: Span) -> None:
        self.scope.report(codes.WHERE_NOT_SIZE, span, f"{what} cannot stand in {self.bound_is}", help=self.bound_help)

    def _comparison(self, node: tree.Binary[tree.Expression], left: Typed, right: Typed) -> Typed | None:
        if left.dtype.is_complex or right.dtype.is_complex:
            if node.op not in ("==", "!="):
                return self._no_order(node.op, node.op_span)
            first, second, _ = self._complex_operands(left, right)
            return self._bounded(Typed(complexes.equal(node.op, first, second, node.span), BOOL))
        left, right, dtype = unify(left, right, bool_is_int=False)
        return Typed(comparison(node.op, left, right, dtype, node.span), BOOL)

    def _check_signs(self, left: Typed, right: Typed, span: Span) -> None:
        if not left.weak and not right.weak and mixes_signs(left.dtype, right.dtype):
            signed = left.dtype if left.dtype.is_signed else right.dtype
            message = f"`uint64` meets `{signed.value}`: both become `int64`, which does not hold all values"
            self.scope.report(codes.MIXED_SIGN, span, message, help="cast one operand, as in `int64(x)` or `uint64(x)`")

    def _no_order(self, operator: str, span: Span) -> None:
        message = f"complex numbers have no order: `{operator}` is not for them"
        self.scope.report(codes.TYPE_MISMATCH, span, message, help=complexes.TAKE_A_REAL)

    def _complex_operands(self, left: Typed, right: Typed) -> tuple[Expr, Expr, DType]:
        """Operands with parts of one type, and the type of the result; a real one stays real."""
        left, right, dtype = unify(left, right, bool_is_int=True)
        first, second = (convert(each, dtype if each.dtype.is_complex else dtype.part).expr for each in (left, right))
        return first, second, dtype

    def _bounded(self, typed: Typed) -> Typed | None:
        """A value that may have become too large by having its operands several times."""
        if not complexes.is_too_large(typed.expr):
            return typed
        if not self.too_large:
            self.too_large = True
            message = "the real and the imaginary part of this value are too long"
            help = "a product has each part of its operands twice: give a part of it to a temporary"
            self.scope.report(codes.DEVICE_LIMIT, typed.span, message, help=help)
        return None

    def _arithmetic(self, op: str, left: Typed, right: Typed, span: Span) -> Typed | None:
        if left.dtype.is_complex or right.dtype.is_complex:
            if op not in ("+", "-", "*", "/"):
                return self._no_order(op, span)
            first, second, dtype = self._complex_operands(left, right)
            return self._bounded(Typed(complexes.arithmetic(op, first, second, span), dtype))
        if left.weak and right.weak:
            if left.weak == right.weak == "int":
                return weak_integer(_fold(op, left.exact, right.exact), span)
            return Typed(Binary(op, weak_float(left).expr, weak_float(right).expr, FLOAT32, span), FLOAT32, "float")
        self._check_signs(left, right, span)
        left, right, dtype = unify(left, right, bool_is_int=op not in ("min", "max"))
        left, right = convert(left, dtype), convert(right, dtype)
        if op == "/" and dtype.is_integer:
            op = "//"
        return Typed(Binary(op, left.expr, right.expr, dtype.compute, span), dtype)

    def _conditional(self, node: tree.Conditional[tree.Expression]) -> Typed | None:
        condition, then, otherwise = self.value(node.condition), self.value(node.then), self.value(node.otherwise)
        condition = condition and self._truth(condition, node.condition)
        if condition is None or then is None or otherwise is None:
            return None
        self._quotients((node.then, then), (node.otherwise, otherwise))
        return self._either(condition.expr, then, otherwise, node.span)

    def _either(self, condition: Expr, then: Typed, otherwise: Typed, span: Span) -> Typed | None:
        """One of two values."""
        if self.names.settles and then.weak == otherwise.weak == "int":
            return then
        if then.weak and otherwise.weak and "float" in (then.weak, otherwise.weak):
            expr = Select(condition, weak_float(then).expr, weak_float(otherwise).expr, FLOAT32, span)
            return Typed(expr, FLOAT32, "float")
        self._check_signs(then, otherwise, span)
        then, otherwise, dtype = unify(then, otherwise, bool_is_int=False)
        then, otherwise = convert(then, dtype), convert(otherwise, dtype)
        if dtype.is_complex:
            return self._bounded(Typed(complexes.chosen(condition, then.expr, otherwise.expr, span), dtype))
        return Typed(Select(condition, then.expr, otherwise.expr, dtype.compute, span), dtype)

    # what stands before `(`

    def _apply(self, node: tree.Apply[tree.Expression]) -> Typed | None:
        name = node.function.name
        self.names.mentioned.add(name)
        if name in TYPE_NAMES:
            return self._cast(node, TYPE_NAMES[name])
        if name in self.scope.tensors:
            return self._read(node, self.scope.tensors[name])
        if (
            name in self.names.lets
            or name in self.names.left
            or name in self.scope.sizes
            or name in self.scope.result_sizes
        ):
            return self._not_a_tensor(node)
        if name in BORDERS:
            return self._border_elsewhere(node)
        if name in RANDOM:
            self._two_meanings(node.function)
            return self._random(node, RANDOM[name])
        if name in TC_FUNCTIONS:
            self._two_meanings(node.function)
            return self._function(node, TC_FUNCTIONS[name])
        values = list[Typed | None]()
        if name in library_names.POINTERS:
            self.names.mentioned |= {item.name for item in tree.walk(node) if isinstance(item, tree.Name)}
        else:
            values = self._mention(node.arguments)
        self._unknown(node, values)
        return None

    def _two_meanings(self, function: tree.Name) -> None:
        """Tell of a function of the language when a def or a function of an earlier cell has its name."""
        name, scope = function.name, self.scope
        if name not in scope.callable_names or name in self.names.mistaken:
            return
        self.names.mistaken.add(name)
        if name not in scope.defs:  # which has a message of its own
            message = f"`{name}` is a function of the language, and one of an earlier cell has the same name"
            help = f"give the other one another name; {TC_FUNCTIONS[name].described}"
            scope.report(codes.DUPLICATE_NAME, function.span, message, help=help)

    def _mention(self, arguments: Sequence[tree.Expression]) -> list[Typed | None]:
        """Check arguments of what is no such function; of whole arrays it would be a def, or an operator."""
        values = list[Typed | None]()
        for argument in arguments:
            if isinstance(argument, tree.Name) and argument.name in self.scope.tensors:
                self.scope.tensors[argument.name].read = True
                values.append(None)
            else:
                values.append(self.value(argument))
        return values

    def _not_a_tensor(self, node: tree.Apply[tree.Expression]) -> None:
        name = node.function.name
        taken = self.scope.taken(name)
        what = "a let" if name in self.names.lets else taken[0] if taken else "an index"
        for argument in node.arguments:
            self.value(argument)
        if name in self.names.lets:
            self.names.lets[name].used = True
        self.scope.report(
            codes.RANK_MISMATCH,
            node.span,
            f"`{name}` is {what} and has no elements",
            help="only tensors are read with `(...)`",
        )

    def _unknown(self, node: tree.Apply[tree.Expression], values: Sequence[Typed | None]) -> None:
        name, scope, span = node.function.name, self.scope, node.function.span
        if name in self.names.mistaken:
            return
        self.names.mistaken.add(name)
        if scope.unwritten(name):
            self._unwritten(name, node.span)
        elif name in scope.callable_names:
            help = f"write a statement `T = {name}(...)` before this one and read `T` here"
            if self.names.left and any(isinstance(each, tree.Apply) for each in node.arguments):
                first = self.names.left[0]
                help = f"a def is called in a statement of its own, with whole arrays: write what it computes for each `{first}`"
            message, fix = (
                f"the def `{name}` is called inside an expression",
                scope.whole_arguments(node, gives_number=True),
            )
            if fix is not None:
                message, help = f"`{name}` takes whole arrays, and elements are passed", None
            scope.report(codes.UNSUPPORTED, span, message, help=help, fix=fix)
        elif name in _LATER_SPELLINGS:
            help, fix = self._instead(node, values)
            message = f"`{name}` is not part of this version"
            scope.report(codes.UNSUPPORTED, span, message, help=help if fix else _LATER_SPELLINGS[name], fix=fix)
        elif name[0].isdigit():
            self.names.mistaken.discard(name)
            self.digit_name(node.function)
        else:
            help, fix = self._instead(node, values)
            is_method = "." in name and help is not None
            if not is_method and (
                help is None or scope.suggestions.nearest(name, [*scope.tensors, *scope.callable_names])
            ):
                help, fix = scope.did_you_mean(name, span, scope.readable(len(node.arguments)))
            help = help or self._declared(node)
            if not self.names.left:  # perhaps a def, of tensors that are no indices
                self.names.mistaken |= {each.name for each in node.arguments if isinstance(each, tree.Name)}
            scope.report(codes.UNKNOWN_NAME, span, f"there is no tensor, function or def `{name}`", help=help, fix=fix)

    def _declared(self, node: tree.Apply[tree.Expression]) -> str:
        """How what nobody knows is declared: an array, if its arguments are positions, or a def."""
        name, count = node.function.name, len(node.arguments)
        indices = [
            each for each in node.arguments if isinstance(each, tree.Name) and each.name not in self.scope.tensors
        ]
        if len(indices) == count <= len(_SIZES):
            return f"if it is an array, make it a parameter, as in `float({', '.join(_SIZES[:count])}) {name}`"
        return f"if it is a function, write it as a def before this one: `def {name}(float(N) x) -> (y) {{ ... }}`"

    def _instead(
        self, node: tree.Apply[tree.Expression], values: Sequence[Typed | None]
    ) -> tuple[str | None, Fix | None]:
        """Help and fix for a function that other libraries have."""
        name, source = node.function.name, self.scope.source
        name = method if library_names.reducing(method := name.rpartition(".")[2]) is not None else name  # `X.max()`
        self.names.foreign |= library_names.reducing(name) is not None or name in library_names.INSTEAD
        if (found := self._truths_joined(node, [_kind(each) for each in values])) is not None:
            return found
        if (word := library_names.reducing(name)) is not None:
            return library_names.REDUCING[word], self._reduction(node, word, values)
        if name not in library_names.INSTEAD:
            name = library_names.plain_name(name, library_names.INSTEAD) or name
        kinds = [_kind(each) for each in values]
        instead = library_names.instead_of(name, kinds)
        if instead is None:
            return None, None
        if name == "outer" and (word := self._of_pairs(node)) is not None:
            return self._pairs(node, word)
        fix = (
            self._product(node)
            or self._reduction(node, name, values)
            or self._running(node)
            or self._over_bits(node, values)
        )
        if fix is not None:
            return instead.help, fix
        plain = [source.slice(argument.span) for argument in node.arguments]
        bracketed = [self._bracketed(argument) for argument in node.arguments]
        for place, kind in enumerate(kinds[: instead.truths]):
            if kind in ("number", "float"):
                bracketed[place] = f"({bracketed[place]} != 0)"
        text = instead.text(plain, bracketed)
        if name == "len" and len(plain) == 1 and self._is_tensor(node.arguments[0]):
            text = f"{plain[0]}.0"
        if name == "load":
            text = self._element_at(node.arguments)
        if (filled := self._filled(node)) is not None:
            return instead.help, filled
        if text is None:
            return instead.help, None
        text = self._outer(text)
        others = [] if library_names.depends_on_types(name) else self._same_calls(node)
        edits = [Edit(node.span, text), *(edit for each in others if (edit := self._plain_edit(each, instead)))]
        return instead.help, Fix(f"write `{text}`", tuple(edits))

    def _filled(self, node: tree.Apply[tree.Expression]) -> Fix | None:
        """`Y(i, j) = 0.0 where i in 0:N, j in 0:M` for `Y = zeros(N, M)` and the like."""
        statement, source = self.names.statement, self.scope.source
        word, is_like = node.function.name.removesuffix("_like"), node.function.name.endswith("_like")
        arguments = list(node.arguments)
        number = source.slice(arguments.pop().span) if word == "full" and len(arguments) > 1 else ALLOCATING.get(word)
        names = [item.name for each in arguments for item in tree.walk(each) if isinstance(item, tree.Name)]
        sizes = [source.slice(each.span) for each in arguments]
        known = all(name in self.scope.sizes or self._is_integer_scalar(name) for name in names)
        if is_like and len(arguments) == 1 and (info := self.scope.tensors.get(sizes[0])) is not None:
            sizes, known = [f"{sizes[0]}.{k}" for k in range(info.rank or 0)], True
            is_float = info.dtype is None or info.dtype.is_float
            number = number if word == "full" or is_float else number and number.removesuffix(".0")
        free = [each for each in LETTERS if self.scope.taken(each) is None]
        whole = statement.operator == "=" and statement.indices is None and statement.value.span == node.span
        if not number or not sizes or not known or not whole or statement.clauses or len(free) < len(sizes):
            return None
        (at, value), end = filled(sizes, free, number), statement.target.span.end
        return Fix("write a statement", (Edit(Span(end, end), at), Edit(node.span, value)))

    def _is_integer_scalar(self, name: str) -> bool:
        info = self.scope.tensors.get(name)
        return (
            info is not None and info.is_input and info.rank == 0 and info.dtype is not None and info.dtype.is_integer
        )

    def _truths_joined(self, node: tree.Apply[tree.Expression], kinds: Sequence[str]) -> tuple[str, Fix] | None:
        """`a && b` for `all(a, b)`; `None` if this is something else."""
        operator = {"all": "&&", "any": "||"}.get(node.function.name)
        if operator is None or len(kinds) < 2 or set(kinds) != {"truth"}:
            return None
        text = self._outer(f"({f' {operator} '.join(map(self._bracketed, node.arguments))})")
        return f"truth values are joined by `{operator}`", Fix(f"write `{text}`", (Edit(node.span, text),))

    def _same_calls(self, node: tree.Apply[tree.Expression]) -> list[tree.Apply[tree.Expression]]:
        """Other calls of the same function in a statement, none of them inside of another one."""
        statement = self.names.statement
        values = [statement.value, *(each.value for each in statement.clauses if isinstance(each, tree.Let))]
        found, end = list[tree.Apply[tree.Expression]](), 0
        calls = [each for value in values for each in tree.walk(value) if isinstance(each, tree.Apply)]
        for each in sorted(calls, key=lambda each: each.span.start):
            if each.function.name == node.function.name and each.span.start >= end:
                found.append(each)
                end = each.span.end
        return [each for each in found if each.span.end <= node.span.start or each.span.start >= node.span.end]

    def _plain_edit(self, node: tree.Apply[tree.Expression], instead: library_names.Instead) -> Edit | None:
        """The expression in the place of another call of a function whose call has such a fix."""
        arguments, source = node.arguments, self.scope.source
        plain = [source.slice(argument.span) for argument in arguments]
        text = instead.text(plain, [self._bracketed(argument) for argument in arguments])
        if node.function.name == "len" and len(plain) == 1 and self._is_tensor(arguments[0]):
            text = f"{plain[0]}.0"
        return None if text is None else Edit(node.span, text)

    def _element_at(self, arguments: Sequence[tree.Expression]) -> str | None:
        """`X(i)` for the address `X + i`."""
        if not arguments or not isinstance(arguments[0], tree.Binary) or arguments[0].op != "+":
            return None
        left, right = arguments[0].left, arguments[0].right
        info = self.scope.tensors.get(left.name) if isinstance(left, tree.Name) else None
        return f"{info.name}({self.scope.source.slice(right.span)})" if info is not None and info.rank == 1 else None

    def _reduction(
        self, node: tree.Apply[tree.Expression], word: str, values: Sequence[Typed | None] = ()
    ) -> Fix | None:
        """`Y(i) +=! X(i, j)` instead of `Y(i) = sum(X(i, j))`, and the like where a function is one statement, or two."""
        statement, scope, source = self.names.statement, self.scope, self.scope.source
        used = tree.names_in(item for item in node.arguments if not self._is_index(item))
        arguments = [item for item in node.arguments if not (self._is_index(item) and tree.names_in([item]) <= used)]
        axes = [item for item in arguments[1:] if isinstance(item, tree.Number)]  # an index: `sum(j, X(i, j))`
        if word == "norm" and [axis.value for axis in axes] == [2]:
            arguments, axes = arguments[:1], []  # the square root of the sum of squares
        if len(arguments) != 1 + len(axes) or combining.is_nested(statement, node):
            return None
        argument, dtype = arguments[0], values[0].dtype if values and values[0] is not None else None
        whole = statement.operator == "=" and statement.value.span == node.span
        if isinstance(argument, tree.Name):
            info = scope.tensors.get(argument.name)
            used = {*self.names.left, *self.names.lets, *self.names.indices}
            free = [each for each in "ijklmn" if scope.taken(each) is None and each not in used]
            found = None if info is None or axes or (whole and statement.indices) else combining.of_tensor(info, free)
        else:
            text, known = (
                source.slice(argument.span),
                {*self.names.left, *self.names.lets, *scope.sizes, *scope.tensors},
            )
            if isinstance(argument, tree.Apply) and (missing := self._missing_indices(argument)):
                text = f"{text[:-1]}, {', '.join(each.name for each in missing)})"
                argument = replace(argument, arguments=(*argument.arguments, *missing))
                dtype = scope.tensors[argument.function.name].dtype
            if not axes and statement.operator == "=" and (fix := self._of_arrays(node, word, argument)) is not None:
                return fix
            bracketed = text if isinstance(argument, tree.Apply) else self._bracketed(argument)
            left, tensors = self.names.left, scope.tensors
            found = combining.of_elements(argument, text, bracketed, known, left, dtype, tensors)
        if found is None:
            return None
        if whole:
            return combining.whole(word, statement, node, found, source)
        return combining.apart(word, statement, node, found, source)

    def along_axis(self, names: Container[str]) -> tuple[str, Fix | None] | None:
        """The cure of `max(X(i, j), j)`, where an index that is combined over stands as an axis does; `None` without one."""
        call = next(combining.along_axes(self.names.statement, names), None)
        return call and (library_names.REDUCING[call.function.name], self._reduction(call, call.function.name))

    def _of_arrays(self, node: tree.Apply[tree.Expression], word: str, argument: tree.Expression) -> Fix | None:
        """`s +=! X(i)^2` instead of `s = sum(X^2)`, where arrays have no indices at all."""
        statement, scope, source = self.names.statement, self.scope, self.scope.source
        names = [each for each in tree.walk(argument) if isinstance(each, tree.Name) and each.name in scope.tensors]
        arrays = [each for each in names if scope.tensors[each.name].rank]
        dims = {tuple(scope.tensors[each.name].dims) for each in arrays}
        calls = [each for each in tree.walk(argument) if isinstance(each, tree.Apply)]
        elementwise = all(each.function.name in TC_FUNCTIONS for each in calls)
        whole = statement.indices is None and statement.value.span == node.span and not statement.clauses
        free = [each for each in "ijklmn" if scope.taken(each) is None and each not in self.names.indices]
        if word not in library_names.OPERATORS or len(dims) != 1 or not whole or not elementwise or statement.along:
            return None
        rank = len(next(iter(dims)))
        if not rank or rank > len(free):
            return None
        at, start, end = f"({', '.join(free[:rank])})", Span(node.span.start, argument.span.start), node.span.end
        edits = [Edit(statement.operator_span, library_names.OPERATORS[word]), Edit(start, "")]
        edits += [Edit(Span(each.span.end, each.span.end), at) for each in arrays]
        edits.append(Edit(Span(argument.span.end, end), ""))
        enclosed = (
            source.slice(Span(start.start, start.end)).count("(") == 1
        )  # else brackets of the argument would be lost
        return Fix(f"replace `=` by `{library_names.OPERATORS[word]}`", tuple(edits)) if enclosed else None

    def _product(self, node: tree.Apply[tree.Expression]) -> Fix | None:
        """`C(i, j) +=! A(i, k) * B(k, j)` instead of `C = matmul(A, B)`."""
        statement, names = self.names.statement, [each.name for each in node.arguments if isinstance(each, tree.Name)]
        infos = [info for name in names if (info := self.scope.tensors.get(name)) is not None]
        subscripts = library_names.subscripts_of(node.function.name, [info.rank or 0 for info in infos])
        whole = statement.indices is None and statement.operator == "=" and statement.value.span == node.span
        if subscripts is None or not whole or len(infos) != len(node.arguments) or statement.clauses:
            return None
        free = library_names.with_free_letters(subscripts, lambda letter: self.scope.taken(letter) is not None)
        text = free and library_names.einsum(free, names, statement.target.name)
        place = Span(statement.target.span.start, node.span.end)
        return Fix(f"write `{text}`", (Edit(place, text),)) if text else None

    def _of_pairs(self, node: tree.Apply[tree.Expression]) -> str | None:
        """The function before `.outer`, as `subtract` in `np.subtract.outer(v, w)`; `None` where it is a product."""
        words = re.split(r"\s*\.\s*", self.scope.source.slice(node.function.span))
        word = words[-2] if len(words) > 1 else "numpy"
        return None if word in library_names.MODULES or word == "linalg" else word

    def _pairs(self, node: tree.Apply[tree.Expression], word: str) -> tuple[str, Fix | None]:
        """Help and fix for `Y = np.subtract.outer(v, w)`, which is `Y(i, j) = v(i) - w(j)`."""
        statement, names = self.names.statement, [each.name for each in node.arguments if isinstance(each, tree.Name)]
        infos = [info for name in names if (info := self.scope.tensors.get(name)) is not None]
        kinds = [_kind_of(each.dtype) for each in infos]
        text = library_names.of_pair(word, kinds, TC_FUNCTIONS)
        help = f"write both indices, as in `C(i, j) = {(text or f'{word}({{0}}, {{1}})').format('A(i)', 'B(j)')}`"
        whole = statement.indices is None and statement.operator == "=" and statement.value.span == node.span
        if text is None or not whole or len(infos) != 2 or len(node.arguments) != 2 or statement.clauses:
            return help, None
        ranks = [info.rank or 0 for info in infos]
        free = [each for each in LETTERS if self.scope.taken(each) is None][: sum(ranks)]
        if not all(ranks) or len(free) < sum(ranks):
            return help, None
        parts = free[: ranks[0]], free[ranks[0] :]
        reads = [f"{name}({', '.join(part)})" for name, part in zip(names, parts, strict=True)]
        text = f"{statement.target.name}({', '.join(free)}) = {text.format(*reads)}"
        place = Span(statement.target.span.start, node.span.end)
        return help, Fix(f"write `{text}`", (Edit(place, text),))

    def _over_bits(self, node: tree.Apply[tree.Expression], values: Sequence[Typed | None]) -> Fix | None:
        """`Y(i) +=! X(i) >> b & 1 where b in 0:32` instead of `Y(i) = popcount(X(i))`."""
        template, statement = library_names.OF_BITS.get(node.function.name), self.names.statement
        whole = statement.operator == "=" and statement.value.span == node.span
        value = values[0] if len(values) == 1 else None
        if template is None or not whole or value is None or not value.dtype.is_integer or statement.along:
            return None
        names = {item.name for item in tree.walk(node) if isinstance(item, tree.Name)} | self.names.lets.keys()
        bit = next(
            (each for each in ("b", "bit", "bits") if each not in names and self.scope.taken(each) is None), None
        )
        if bit is None or not names <= {*self.names.left, *self.names.lets, *self.scope.sizes, *self.scope.tensors}:
            return None
        count = f"uint64({bit})" if value.dtype is DType.UINT64 else bit
        end, clause = statement.span.end, f"{bit} in 0:{value.dtype.bits}"
        edits = (
            Edit(statement.operator_span, "+=!"),
            Edit(node.span, template.format(self._bracketed(node.arguments[0]), count)),
        )
        where = Edit(Span(end, end), f"{', ' if statement.clauses else ' where '}{clause}")
        return Fix("count bits", (*edits, where))

    def _running(self, node: tree.Apply[tree.Expression]) -> Fix | None:
        """`Y(i) = (Y(i - 1) else 0) + X(i) along i` instead of `Y(i) = cumsum(X(i))`, and of the like with whole arrays."""
        running, statement, scope = library_names.RUNNING.get(node.function.name), self.names.statement, self.scope
        if running is None or statement.operator != "=" or statement.value.span != node.span or not node.arguments:
            return None
        argument = node.arguments[0]
        info = scope.tensors.get(argument.name) if isinstance(argument, tree.Name) else None
        left, rank = self.names.left, info and info.rank
        if statement.indices is None:
            free = [each for each in "ijklmn" if scope.taken(each) is None and each not in self.names.lets]
            left = tuple(free[: rank or 0])
        place = orders.place_of_axis(node.arguments[1:], len(left))
        fits = len(left) == len(statement.indices or left) == (rank or len(left))
        known = {*left, *self.names.lets, *scope.sizes, *scope.tensors}
        names = {item.name for item in tree.walk(argument) if isinstance(item, tree.Name)}
        if place is None or not fits or statement.along or not names <= known:
            return None
        at = f"({', '.join(left)})"
        text, target = scope.source.slice(argument.span) + at * bool(rank), statement.target
        is_open = not rank and self._bracketed(argument) != text
        of_elements = {item.function.name for item in tree.walk(argument) if isinstance(item, tree.Apply)}
        read = [scope.tensors[name].dtype for name in (names | of_elements) & scope.tensors.keys()]
        if (
            running.start is not None
            and read
            and all(each is not None and each.is_integer and each.bits < 32 for each in read)
        ):  # it would wrap (TC235)
            text, is_open = f"int32({text})", False
        edits = [Edit(node.span, running.text(target.name, left, place, text, is_open))]
        if statement.indices is None:
            edits.append(Edit(Span(target.span.end, target.span.end), at))
        return Fix("go on from the element before", tuple(edits))

    def _is_index(self, node: tree.Expression) -> bool:
        return isinstance(node, tree.Name) and self.scope.taken(node.name) is None and node.name not in self.names.lets

    def _bracketed(self, node: tree.Expression) -> str:
        """The text of an operand, in brackets where operators beside it could take it apart."""
        text = self.scope.source.slice(node.span)
        simple = isinstance(node, tree.Name | tree.Number | tree.Apply | tree.Extent) or _enclosed(text)
        return text if simple else f"({text})"

    def _outer(self, text: str) -> str:
        """A bracketed text without its brackets where it is the whole right side."""
        return text[1:-1] if self.level == 1 and text.startswith("(") else text

    def _cast(self, node: tree.Apply[tree.Expression], dtype: DType) -> Typed | None:
        values = [self.value(argument) for argument in node.arguments]
        if dtype.is_complex and len(values) == 2:
            return self._of_parts(node, values, dtype)
        if len(values) != 1:
            message = f"the cast `{node.function.name}(x)` takes 1 argument, not {len(values)}"
            self.scope.report(codes.ARGUMENT_COUNT, node.span, message)
            return None
        if values[0] is None:
            return None
        if self.in_bound and not dtype.is_integer:
            return self._not_in_bound(f"the cast to `{dtype.value}`", node.span)
        if dtype.is_complex:
            return convert(values[0], dtype)
        if values[0].dtype.is_complex:
            return self._no_real(node.arguments[0], values[0], f"`{node.function.name}(x)` takes")
        return explicit_cast(values[0], dtype, node.span)

    def _of_parts(
        self, node: tree.Apply[tree.Expression], values: Sequence[Typed | None], dtype: DType
    ) -> Typed | None:
        """`complex64(re, im)`."""
        if self.in_bound:
            return self._not_in_bound(f"the cast to `{dtype.value}`", node.span)
        real: list[Expr] = []
        for argument, value in zip(node.arguments, values, strict=True):
            if value is not None and value.dtype.is_complex:
                return self._no_real(argument, value, f"a part of `{dtype.value}(re, im)` is")
            real += [] if value is None else [convert(value, dtype.part).expr]
        return Typed(complexes.paired(real[0], real[1], node.span), dtype) if len(real) == 2 else None

    def _no_real(self, node: tree.Expression, value: Typed, wants: str) -> None:
        """TC212: a complex number where a real one is needed."""
        message = f"{wants} a real number, not `{value.dtype.value}`"
        label = f"this is `{value.dtype.value}`"
        self.scope.report(codes.TYPE_MISMATCH, node.span, message, label, help=complexes.TAKE_A_REAL)

    def _border_elsewhere(self, node: tree.Apply[tree.Expression]) -> Typed | None:
        """`clamp(x, low, high)` is a value; everything else that stands around a subscript stands there alone."""
        name = node.function.name
        if name == "clamp" and len(node.arguments) == 3:
            known = [value for argument in node.arguments if (value := self.value(argument)) is not None]
            if len(known) < 3:
                return None
            self._quotients(*zip(node.arguments, known, strict=True))
            low = self._arithmetic("max", known[0], known[1], node.span)
            return low and self._arithmetic("min", low, known[2], node.span)
        self._mention(node.arguments)
        help = f"it is written as in `X({name}(i - 1))`"
        message = f"`{name}` stands around the whole subscript of a read"
        if name == "clamp":
            help += ", and `clamp(x, low, high)` limits a value"
        fix, arguments = None, node.arguments
        if self._has_extent(node):
            message = f"`{name}` takes the subscript alone: the extent is that of the tensor"
            place = Span(arguments[0].span.end, arguments[-1].span.end)
            fix = Fix("leave the extent out", (Edit(place, ""),))
        self.scope.report(codes.ARGUMENT_COUNT, node.span, message, help=help, fix=fix)
        return None

    def _has_extent(self, node: tree.Apply[tree.Expression]) -> bool:
        """Whether a whole subscript of a tensor is `reflect(e, N)` or `reflect(e, 0, N - 1)`, where `N` is the extent there."""
        statement, source = self.names.statement, self.scope.source
        values = (statement.value, *(each.value for each in statement.clauses if isinstance(each, tree.Let)))
        calls = (item for value in values for item in tree.walk(value) if isinstance(item, tree.Apply))
        places = ((call, k) for call in calls for k, at in enumerate(call.arguments) if at is node)
        call, k = next(places, (node, 0))
        info = self.scope.tensors.get(call.function.name)
        at_zero = info is not None and all(isinstance(each, Const) and each.value == 0 for each in info.starts)
        if info is None or not at_zero or k >= len(info.dims):
            return False
        dim, given = info.dims[k], ["".join(source.slice(each.span).split()) for each in node.arguments[1:]]
        extents = [f"{info.name}.{k}", *([dim.name] if isinstance(dim, Size) else [])]
        return any(given in ([extent], ["0", f"{extent}-1"]) for extent in extents)

    def _bordered(self, node: tree.Bordered[tree.Expression]) -> Typed | None:
        """`X(i - 1) else 0`, as a choice."""
        name = node.read.function.name
        info = self.scope.tensors.get(name)
        value, otherwise = self.value(node.read), self.value(node.otherwise)
        if self.in_bound:
            return None  # the read has a message
        if info is None or not info.rank:
            if value is not None:
                message = f"`else` stands behind an element of a tensor, and `{name}(...)` is none"
                help = "`X(i - 1) else 0` is 0 where `X` has no such element; a choice is `condition ? value : other`"
                self.scope.report(codes.TYPE_MISMATCH, node.read.span, message, help=help)
            return None
        last = node.otherwise
        is_read = not isinstance(last, tree.Apply) or last.function.name in self.scope.tensors
        if not node.bracketed and not is_read and otherwise is not None:
            text = self.scope.source.slice(last.span)
            fix = Fix("put it in parentheses", (Edit(last.span, f"({text})"),))
            message = f"`{text}` behind `else` needs parentheses"
            help = "behind `else` stands a number, a name, a read, or anything in parentheses"
            self.scope.report(codes.SYNTAX_ERROR, last.span, message, help=help, fix=fix)
            return None
        if value is None or otherwise is None:
            return None
        read = next((item for item in walk(value.expr) if isinstance(item, Read)), None)
        if read is None:  # a literal, whose tensor is told of when its type is known
            return self._either(Const(True, BOOL), value, otherwise, node.span)
        around = read.border or Border("", frozenset())
        left = [dimension for dimension in range(info.rank) if dimension not in around.nonempty]
        text = self._short_text(node.read.span | node.otherwise.span)
        border = replace(around, text=text, dimensions=frozenset(range(info.rank)), window=True)
        value = replace(value, expr=_with_border(value.expr, border))
        self._quotients((node.read, value), (node.otherwise, otherwise))
        self._check_signs(value, otherwise, node.span)
        value, otherwise, dtype = unify(value, otherwise, bool_is_int=False)
        then, other = convert(value, dtype).expr, convert(otherwise, dtype).expr
        if not left:  # something stands around every subscript: it is never outside
            return Typed(then, dtype)
        test = inside([read.indices[number] for number in left], [box_of(info, number) for number in left])
        if dtype.is_complex:
            return Typed(complexes.chosen(test, then, other, node.span), dtype)
        return Typed(Select(test, then, other, dtype.compute, node.span), dtype)

    def _short_text(self, span: Span) -> str:
        """The text of an expression in one line."""
        return " ".join(self.scope.source.slice(span).split())

    def _read(self, node: tree.Apply[tree.Expression], info: TensorInfo) -> Typed | None:
        info.read = True
        if self.in_bound and node.arguments:
            message = f"{self.bound_is} reads `{info.name}`"
            self.scope.report(codes.WHERE_NOT_SIZE, node.span, message, help=self._element_help())
            return None
        if info.rank == 0 and len(node.arguments) == 1 and not isinstance(node.arguments[0], tree.Name | tree.Number):
            self._factor(node, info)
            return None
        fits = info.rank == len(node.arguments) and len(info.dims) == info.rank
        written: list[Expr] = []
        indices = [
            self._placed(argument, info, dimension, written) if fits else self._subscript(self._inside(argument))
            for dimension, argument in enumerate(node.arguments)
        ]
        if not info.written:
            return self._unwritten(info.name, node.span, node.arguments)
        if info.rank is None or info.dtype is None:
            return None
        if len(indices) != info.rank:
            self._wrong_rank(node, info)
            return None
        if any(index is None for index in indices):
            return None
        found = self._element(info, tuple(index for index in indices if index is not None), node.span)
        dims = frozenset(k for k, argument in enumerate(node.arguments) if self._border(argument) is not None)
        if found is None or not dims or info.literal is not None:
            return found
        border = Border(self._short_text(node.span), dims, dims, tuple(written))
        return replace(found, expr=_with_border(found.expr, border))

    def _inside(self, node: tree.Expression) -> tree.Expression:
        """The subscript in `wrap(i + k)`, or itself."""
        border = self._border(node)
        return node if border is None else border.arguments[0]

    def _border(self, node: tree.Expression) -> tree.Apply[tree.Expression] | None:
        """`wrap(i + k)` as a subscript."""
        is_border = isinstance(node, tree.Apply) and node.function.name in BORDERS and len(node.arguments) == 1
        return node if isinstance(node, tree.Apply) and is_border else None

    def _placed(self, node: tree.Expression, info: TensorInfo, dimension: int, written: list[Expr]) -> Expr | None:
        """A subscript, with what stands around it for places beyond the ends; `written` gets it without that."""
        border = self._border(node)
        if border is None:
            return self._subscript(node)
        self._two_meanings(border.function)
        subscript = self._subscript(border.arguments[0])
        written += [] if subscript is None else [subscript]
        return subscript and placed(border.function.name, subscript, box_of(info, dimension))

    def _factor(self, node: tree.Apply[tree.Expression], info: TensorInfo) -> None:
        """`a(X(i) - 1)` of a scalar, which is a product in formulas."""
        self.value(node.arguments[0])
        end, labels = node.function.span.end, (Label(info.span, "declared here"),)
        fix, help = Fix("multiply", (Edit(Span(end, end), " * "),)), "a product is written with `*`"
        self.scope.report(
            codes.RANK_MISMATCH, node.span, f"`{info.name}` is a scalar", labels=labels, help=help, fix=fix
        )

    def _wrong_rank(self, node: tree.Apply[tree.Expression], info: TensorInfo) -> None:
        if self._is_row(node):
            return  # the function that combines it is unknown, and its message has the indices
        rank, given = info.rank or 0, len(node.arguments)
        be = "is" if given == 1 else "are"
        message = (
            f"`{info.name}` has {rank} {_plural('dimension', rank)}, but {given} {_plural('index', given)} {be} given"
        )
        given = [
            item.name
            for item in node.arguments
            if isinstance(item, tree.Name) and item.name not in library_names.NOTHING
        ]
        shown = given if len(given) == rank else letters(rank)
        help = f"give one index per dimension, as in `{info.name}({', '.join(shown)})`"
        if rank == 0:
            help = f"`{info.name}` is a scalar: write `{info.name}`"
        labels = (Label(info.span, "declared here"),)
        self.scope.report(codes.RANK_MISMATCH, node.span, message, labels=labels, help=help)

    def _is_row(self, node: tree.Apply[tree.Expression]) -> bool:
        """Whether a row `X(i)` is all that a function combines which is none here, as in `sum(X(i))`."""
        calls = (each for each in tree.walk(self.names.statement.value) if isinstance(each, tree.Apply))
        known = {*(TC_FUNCTIONS.keys() - {"min", "max"}), *self.scope.tensors, *self.scope.callable_names}
        return self._missing_indices(node) != () and any(
            len(each.arguments) == 1
            and each.arguments[0] is node
            and combining.combines(each.function.name)
            and each.function.name not in known
            for each in calls
        )

    def _missing_indices(self, node: tree.Expression) -> tuple[tree.Name, ...]:
        """Names for the indices that a row `X(i)` of a tensor lacks."""
        info = self.scope.tensors.get(node.function.name) if isinstance(node, tree.Apply) else None
        if not isinstance(node, tree.Apply) or info is None or not 0 < len(node.arguments) < (info.rank or 0):
            return ()
        used = {*self.names.left, *self.names.lets, *self.names.indices}
        free = [each for each in "jklmn" if self.scope.taken(each) is None and each not in used]
        missing = free[: (info.rank or 0) - len(node.arguments)]
        end = Span(node.span.end, node.span.end)
        return (
            tuple(tree.Name(each, end) for each in missing) if len(missing) + len(node.arguments) == info.rank else ()
        )

    def left_subscript(self, node: tree.Expression) -> Expr | None:
        """A subscript of the left side that is no index; `false` and `true` are 0 and 1 there."""
        return self._subscript(node, truth=True)

    def _subscript(self, node: tree.Expression, truth: bool = False) -> Expr | None:
        """An index expression, in exact 64-bit arithmetic."""
        typed = self.value(node)
        if typed is None:
            return None
        typed = settle(typed)
        if typed.dtype.is_complex:
            return self._no_real(node, typed, "an index is")
        if typed.dtype is BOOL and truth:
            return cast(typed.expr, INT64)
        if typed.dtype is BOOL:
            text = self._short_text(node.span)
            help = (
                f"a statement keeps all elements: choose their values, as in `{text} ? x : 0`, or leave points out of a sum with "
                f"`where {text}`; positions are found in Python, `numpy.flatnonzero(mask)`, and passed as an `int64(K)`"
            )
            self.scope.report(
                codes.TYPE_MISMATCH, node.span, "an index is an integer, not `bool`", "this is `bool`", help=help
            )
            return None
        if typed.dtype.is_float:
            self._float_index(node, typed)
        elif isinstance(typed.expr, Const) and not INT64.limits[0] <= typed.expr.value <= INT64.limits[1]:
            self.scope.report(codes.TOO_LARGE, node.span, "the index is beyond 2^63 - 1")
            return None
        return as_index(typed.expr)

    def _float_index(self, node: tree.Expression, typed: Typed) -> None:
        text = self.scope.source.slice(node.span)
        edits = tuple(
            Edit(place.span, f"int32({self.scope.source.slice(place.span)})") for place in _floating_leaves(node, self)
        )
        if not edits:
            edits = (Edit(node.span, f"int32({text})"),)
        fix = Fix("convert it to an integer", edits)
        message = f"the index is `{typed.dtype.value}`; it is truncated toward zero"
        self.scope.report(codes.FLOAT_INDEX, node.span, message, "a floating index", fix=fix)

    def _function(self, node: tree.Apply[tree.Expression], function: Function) -> Typed | None:
        count = len(node.arguments)
        if count < function.arity if function.variadic else count != function.arity:
            values = self._mention(node.arguments)
            least = "at least " if function.variadic else ""
            message = (
                f"`{function.name}` takes {least}{function.arity} {_plural('argument', function.arity)}, not {count}"
            )
            help = function.described
            known = count == 1 and function.name in library_names.REDUCING
            self.names.foreign |= known
            fix = self._reduction(node, function.name, values) if known else None
            if known and (fix or self._is_tensor(node.arguments[0])):
                help = library_names.REDUCING[function.name]
            self.scope.report(codes.ARGUMENT_COUNT, node.span, message, help=help, fix=fix)
            return None
        values = [self.value(argument) for argument in node.arguments]
        if self.in_bound and function.name not in _BOUND_FUNCTIONS:
            return self._not_in_bound(f"`{function.name}`", node.span)
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        of_floats = [(node, Typed(Const(0.0, FLOAT32), FLOAT32, "float"))] if function.kind == "float" else []
        self._quotients(*zip(node.arguments, known, strict=True), *of_floats)
        return self._call(node, function, known)

    def _random(self, node: tree.Apply[tree.Expression], function: Function) -> Typed | None:
        """`uniform(seed, i, ...)` and `normal(seed, i, ...)`."""
        values = [self.value(argument) for argument in node.arguments]
        if self.in_bound:
            return self._not_in_bound(f"`{function.name}`", node.span)
        if not function.arity <= len(values) <= 1 + random_numbers.MOST_COUNTERS:
            message = f"`{function.name}` takes a seed and one to four integers, not {len(values)} arguments"
            self.scope.report(codes.ARGUMENT_COUNT, node.span, message, help=f"as in `{function.name}(7, i, j)`")
            return None
        found: list[Expr] = []
        for argument, value in zip(node.arguments, values, strict=True):
            if value is not None and (value.dtype.part.is_float or value.dtype is BOOL):
                self._not_an_integer(f"`{function.name}`", argument, value)
            elif value is not None:
                exact = Const(value.exact, INT64, value.span)  # of any size: its last bits are taken
                found.append(exact if value.weak else value.expr)
        if len(found) < len(values):
            return None
        make = random_numbers.uniform if function.name == "uniform" else random_numbers.normal
        return Typed(make(found[0], found[1:], node.span), FLOAT32)

    def _is_tensor(self, node: tree.Expression) -> bool:
        """Whether this is a tensor of several elements, or one of its elements."""
        name = node.function if isinstance(node, tree.Apply) else node
        info = self.scope.tensors.get(name.name) if isinstance(name, tree.Name) else None
        return info is not None and info.rank != 0

    def _call(self, node: tree.Apply[tree.Expression], function: Function, values: list[Typed]) -> Typed | None:
        span = node.span
        if function.variadic:
            found: Typed | None = values[0]
            for value in values[1:]:
                found = found and self._arithmetic(function.name, found, value, span)
            return found
        if any(value.dtype.is_complex for value in values):
            return self._of_complex(node, function, values)
        if function.kind == "complex":
            return _of_real(function.name, values[0], span)
        if function.kind == "bits":
            return self._counted(node, function, settle(values[0]))
        if function.kind == "numeric":
            return _numeric(function.name, values[0], span)
        if function.kind == "rounding" and not values[0].dtype.is_float:
            return convert(values[0], INT32) if values[0].dtype is BOOL else values[0]
        if function.kind == "test":
            dtype = _float_type(values)
            return Typed(Call(function.name, (convert(settle(values[0]), dtype).expr,), BOOL, span), BOOL)
        if all(value.weak for value in values):
            arguments = tuple(weak_float(value).expr for value in values)
            return Typed(Call(function.name, arguments, FLOAT32, span), FLOAT32, "float")
        dtype = _float_type(values)
        arguments = tuple(convert(value, dtype).expr for value in values)
        if function.name == "pow" and (power := _small_power(*arguments)) is not None:
            return Typed(power, dtype)
        return Typed(Call(function.name, arguments, dtype.compute, span), dtype)

    def _counted(self, node: tree.Apply[tree.Expression], function: Function, value: Typed) -> Typed | None:
        """`popcount` of an integer."""
        if value.dtype.is_float:
            return self._not_an_integer(f"`{function.name}`", node.arguments[0], value)
        operand = convert(value, INT32) if value.dtype is BOOL else value
        return Typed(bits.counted(operand.expr, node.span), INT32)

    def _of_complex(self, node: tree.Apply[tree.Expression], function: Function, values: list[Typed]) -> Typed | None:
        """A function of a complex number."""
        found = None if len(values) > 1 else complexes.called(function.name, values[0].expr, node.span)
        if found is None:
            known = ", ".join(f"`{name}`" for name in complexes.FUNCTIONS)
            message = f"`{function.name}` is a function of real numbers"
            self.scope.report(codes.TYPE_MISMATCH, node.span, message, help=f"those of complex numbers are {known}")
            return None
        return self._bounded(Typed(found, found.dtype))


def _of_real(name: str, value: Typed, span: Span) -> Typed:
    """`re`, `im` and `conj` of a real number."""
    if value.dtype is BOOL:
        value = convert(value, INT32)
    if name != "im":
        return value
    return weak_integer(0, span) if value.weak else Typed(Const(0, value.expr.dtype, span), value.dtype)


def _with_border(value: Expr, border: Border) -> Expr:
    """What an element of a tensor is computed from, with the border of its reads."""
    if isinstance(value, Read):
        return replace(value, border=border)
    return rebuild(value, tuple([_with_border(each, border) for each in children(value)]))


_MOST_BITS = 1 << 10
"""Of a shift of literals."""


def _small_power(base: Expr, exponent: Expr) -> Expr | None:
    """`pow` with the exponent 2, 3 or 4 as a product, which is a multiplication or two, at most 1.5 units in the last place off;
    sums of such products are computed in tiles.
    """
    if not isinstance(exponent, Const) or exponent.value not in (2, 3, 4) or not is_small(base):
        return None
    return product(base, int(exponent.value))


_ELEMENT_HELP = (
    "elements decide how far a sum runs, not how large a result is: pass the number as a parameter, as in `int32 m`, "
    "or choose within a range that is known, as in `i < m ? x : 0`"
)
_BOUND_HELP = (
    "a bound is made of integers, sizes, integer scalars and `T.k` with `+ - * / %`, `min`, `max`, `abs` and `? :`"
)


def _fold(op: str, left: int, right: int) -> int:
    """Arithmetic of weak integers; division by zero gives 0, as everywhere."""
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left // right if right else 0
        case "%":
            return left % right if right else 0
        case "min":
            return min(left, right)
        case _:
            return max(left, right)


def _kind(value: Typed | None) -> str:
    """What an argument is, for a function that depends on it; empty where that is not known."""
    return _kind_of(None if value is None else value.dtype)


def _kind_of(dtype: DType | None) -> str:
    if dtype is None:
        return ""
    return "truth" if dtype is BOOL else "float" if dtype.part.is_float else "number"


def _numeric(name: str, value: Typed, span: Span) -> Typed:
    """`abs` and `sign`."""
    if value.weak == "int":
        number = abs(value.exact) if name == "abs" else (value.exact > 0) - (value.exact < 0)
        return weak_integer(number, span)
    if value.dtype is BOOL:
        value = convert(value, INT32)
    return Typed(Call(name, (value.expr,), value.expr.dtype, span), value.dtype, value.weak)


def _float_type(values: list[Typed]) -> DType:
    """The widest floating type of arguments; integers count as `float32`, weak ones not at all."""
    found: DType | None = None
    for value in values:
        if value.weak:
            continue
        dtype = value.dtype if value.dtype.is_float else FLOAT32
        found = dtype if found is None else common(found, dtype)
    return found or FLOAT32


def _floating_leaves(node: tree.Expression, checker: ExpressionChecker) -> list[tree.Expression]:
    """Reads of floating tensors under `min` and `max`: what to convert in a clamped index."""
    if not isinstance(node, tree.Apply):
        return []
    if node.function.name in ("min", "max"):
        return [leaf for argument in node.arguments for leaf in _floating_leaves(argument, checker)]
    info = checker.scope.tensors.get(node.function.name)
    return [node] if info is not None and info.dtype is not None and info.dtype.is_float else []


def _integer_quotients(node: tree.Expression) -> Iterator[tree.Binary[tree.Expression]]:
    """Quotients with a literal above that does not divide, among the operands of integer arithmetic."""
    if isinstance(node, tree.Unary):
        yield from _integer_quotients(node.operand)
    elif isinstance(node, tree.Binary):
        left, right = (each.operand if isinstance(each, tree.Unary) else each for each in (node.left, node.right))
        if node.op == "/" and isinstance(left, tree.Number) and left.value and not _divides(right, left):
            yield node
        yield from _integer_quotients(node.left)
        yield from _integer_quotients(node.right)


def _divides(divisor: tree.Expression, number: tree.Number) -> bool:
    """Whether a literal divides a number; nothing is said of 0."""
    return isinstance(divisor, tree.Number) and not (divisor.value and number.value % divisor.value)


def _between(node: tree.Binary[tree.Expression]) -> tree.Binary[tree.Expression] | None:
    """The `a | b` of `x != a | b > y` or `x > a | b == y`, which was meant to join two comparisons."""
    inside = next((each for each in (node.left, node.right) if _is_open_relation(each)), None)
    if node.op not in ("==", "!=") or not isinstance(inside, tree.Binary):
        return None
    near = inside.left if inside is node.right else inside.right
    return near if isinstance(near, tree.Binary) and near.op in JOINING and is_open(near) else None


def _is_open_relation(node: tree.Expression) -> bool:
    """Whether this is `a < b` without parentheses."""
    return isinstance(node, tree.Binary) and node.op in ("<", "<=", ">", ">=") and is_open(node)


def _parentheses(node: tree.Expression) -> tuple[Edit, Edit]:
    return Edit(Span(node.span.start, node.span.start), "("), Edit(Span(node.span.end, node.span.end), ")")


def _enclosed(text: str) -> bool:
    """Whether one pair of brackets encloses a text."""
    depths = list(accumulate((char == "(") - (char == ")") for char in text))
    return text.startswith("(") and 0 not in depths[:-1]


def _plural(word: str, count: int) -> str:
    if count == 1:
        return word
    return "indices" if word == "index" else word + "s"


def letters(count: int) -> list[str]:
    """Names of indices for examples."""
    return ["i", "j", "k", "l"][:count] if count <= 4 else [f"i{n}" for n in range(count)]
