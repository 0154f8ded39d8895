"""Work that is shared while a `%%sac` function is specialised: messages, conditions, names of indices and sizes.

The specialiser is one class in layers, each in a file of its own: work, elements, selections, builtins, boxes, comprehensions,
with-loops, calls, nests, loops, specialise. A layer uses the ones before it; what it needs of later ones is declared in `Work`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, replace
from typing import NoReturn

from tc_jupyter.diagnostics import NO_SPAN, Code, Diagnostic, Fix, Label, Span, codes
from tc_jupyter.syntax.sac_tree import Conditional, SacExpression, SacFunction, Statement

from .expr import Binary, Const, DType, Expr, IndexVar, Size
from .integers import index_names, sizes_of
from .program import Equality
from .sac_bounds import Constraint, slack
from .sac_emit import Emitter, negate
from .sac_helpers import expr_text, read
from .sac_signature import Cell, Check, Signature, SolvedPartition
from .sac_sizes import ONE, ZERO, Interval, ends, fold, is_nonnegative, same, sub
from .sac_sizes import value as number_of
from .sac_values import Kind, Piece, Value

MOST_PIECES = 64  # boxes of one comprehension while sizes are symbols; beyond it the numbers are asked for
MOST_PIECES_WITH_NUMBERS = 2048
MOST_ITEMS = 64  # arrays up to this many elements are handled element by element
MOST_VALUES = 65536
MOST_COMBINED = 1024  # known elements that are combined at once, without a statement
DEEPEST_CALLS = 40
MOST_CALLS = 2000
MOST_ROUNDS = 256  # of all loops of a function: every round is written out
MOST_WEIGHT = 400  # expression nodes of the elements of a small array that are kept as expressions
HEAVY = 24  # expression nodes; a variable that is used again is stored from here on
MOST_KEPT = 200  # expression nodes; a scalar variable is computed again at each use below it
MOST_REPEATED = 60  # expression nodes; larger operands that a formula uses twice are stored first
MOST_RANK = 32
MOST_STEPS = 2_000_000  # of the stages behind; as `diagnostics.work` counts them
Env = dict[str, "Value | None"]  # `None`: a message about this name was given


class Refused(Exception):
    """The expression is wrong; its message was given."""


class NeedMore(Exception):
    """The numbers of the call are needed."""

    def __init__(self, *, extents: bool = False, values: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.extents = extents
        self.values = values


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression is evaluated: enclosing indices from the outside in, and what is known to hold there."""

    indices: tuple[str, ...] = ()
    guards: tuple[Expr, ...] = ()

    def within(self, names: Iterable[str]) -> Context:
        """The same context inside further indices."""
        return replace(self, indices=(*self.indices, *names))

    def where(self, condition: Expr) -> Context:
        """The same context where a condition holds."""
        return replace(self, guards=(*self.guards, condition))


@dataclass(frozen=True, slots=True)
class Trial:
    """How much there may be at most while a loop is written out: statements, their steps, and how much must be left of `WORK`."""

    drafts: int
    made: int
    left: int


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a comprehension: its box over all result axes, and its body as boxes over the same axes."""

    number: int
    axes: tuple[str, ...]
    box: tuple[Interval, ...]
    named: tuple[int, ...]  # positions of the result axes that the pattern names
    bodies: tuple[Piece, ...]  # the body: one piece over the whole box, or several over parts of the unnamed axes
    kind: Kind
    drafts: tuple[int, int]
    span: Span
    text: str
    grid: Expr | None = None  # with a `step`: where in its box it has positions


def copied(value: object) -> object:
    """What is changed in place, once more; else the same."""
    match value:
        case list() | dict() | set():
            return copy(value)  # pyright: ignore[reportUnknownVariableType]
        case Emitter():
            new = copy(value)
            vars(new).update({name: copied(each) for name, each in vars(value).items()})
            return new
        case _:
            return value


class Work(ABC):
    """Messages, conditions of a call, names; the base of all layers of the specialiser."""

    def __init__(self, cell: Cell, signature: Signature) -> None:
        self.cell = cell
        self.signature = signature
        self.out = Emitter(cell.source)
        self.diagnostics: list[Diagnostic] = []
        self.checks: list[Check] = []
        self.constraints: list[Constraint] = []
        self.assumed: list[Expr] = []  # conditions on sizes and scalar arguments, of the branches around
        self.shapes_only = 0  # how many `shape` or `dim` are around: nothing there is read
        self.open: dict[str, str] = {}  # open index -> name as written
        self.stack: list[SacFunction] = []
        self.calls = 0
        self.rounds = 0
        self.choices = 0
        self.in_turns = False  # inside of a loop whose rounds are done in order
        self.trial: Trial | None = None  # of the loop that is being written out to see whether it is little
        self.stored_values: dict[tuple[int, tuple[Expr, ...]], tuple[Value, Value]] = {}
        self.homes: dict[int, tuple[Value, Context, str]] = {}  # where variables got their values, and their names
        self.input_positions: dict[str, int] = {}
        self.sizes: list[str] = []
        self.used_names = {p.name.name for overloads in cell.functions.values() for f in overloads for p in f.params}
        self.solved: dict[Span, SolvedPartition] = {}
        self.bottom = 0  # calls of Python that are open where it starts
        self.numbers = all(a.extents is not None for a in signature.arguments)

    def say(
        self,
        code: Code,
        span: Span,
        message: str,
        *,
        label: str = "",
        labels: tuple[Label, ...] = (),
        help: str | None = None,
        fix: Fix | None = None,
    ) -> None:
        """Add a message, once."""
        new = Diagnostic(code, span, message, label, labels, help, fix)
        if new not in self.diagnostics and len(self.diagnostics) < 100:
            self.diagnostics.append(new)

    def saved(self) -> dict[str, object]:
        """All that there is, so that a trial can be undone."""
        return {name: copied(value) for name, value in vars(self).items()}

    def restore(self, saved: dict[str, object]) -> None:
        """Undo what was done since then."""
        vars(self).update(saved)

    def refuse(
        self,
        code: Code,
        span: Span,
        message: str,
        *,
        help: str | None = None,
        labels: tuple[Label, ...] = (),
        fix: Fix | None = None,
    ) -> NoReturn:
        """Add a message and give up the expression."""
        self.say(code, span, message, help=help, labels=labels, fix=fix)
        raise Refused

    def text(self, span: Span) -> str:
        """The source text of a place, on one line."""
        return " ".join(self.cell.source.slice(span).split())

    def require(
        self,
        condition: Expr,
        code: Code,
        span: Span,
        message: str,
        shown: tuple[tuple[str, Expr], ...],
        help: str | None = None,
    ) -> None:
        """Demand a condition: refused if it never holds, checked at the call if it is not known.

        Where an enclosing condition on sizes and scalar arguments does not hold, nothing is evaluated and nothing demanded.
        """
        if not isinstance(condition, Const) or not condition.value:
            for assumed in self.assumed:
                condition = fold(Binary("||", negate(assumed), condition, DType.BOOL))
        if index_names(condition):
            condition, shown = self._for_all(condition), self._largest(shown)
        if isinstance(condition, Const):
            if not condition.value:
                numbers = ", ".join(f"{label} is {self.show(expr)}" for label, expr in shown)
                self.refuse(code, span, f"{message}: {numbers}" if numbers else message, help=help)
            return
        names = index_names(condition)
        if names:
            index = sorted(names)[0].partition("'")[0]
            self.refuse(
                codes.INHOMOGENEOUS, span, f"{message}, and this depends on the value of index `{index}`", help=help
            )
        self.checks.append(Check(code, condition, message, shown, span, help))

    def _for_all(self, condition: Expr) -> Expr:
        """The condition for all values of the indices in it; as it is where this is not known. Empty loops demand nothing."""
        room = slack(condition)
        reached = None if room is None else ends(room, self.out.box)
        if reached is None or index_names(reached[0]):
            return condition
        result = fold(Binary(">=", reached[0], ZERO, DType.BOOL))
        for low, high in (self.out.box[name] for name in sorted(index_names(condition))):
            if not is_nonnegative(sub(sub(high, low), ONE)):
                result = fold(Binary("||", result, fold(Binary(">=", low, high, DType.BOOL)), DType.BOOL))
        return result

    def _largest(self, shown: tuple[tuple[str, Expr], ...]) -> tuple[tuple[str, Expr], ...]:
        """What a message shows, with the largest value of what depends on an index."""
        reached = [(label, expr, ends(expr, self.out.box)) for label, expr in shown]
        return tuple(
            (f"{label} at most", found[1]) if found is not None and index_names(expr) else (label, expr)
            for label, expr, found in reached
        )

    def require_equal(
        self,
        left: Expr,
        right: Expr,
        code: Code,
        span: Span,
        message: str,
        shown: tuple[tuple[str, Expr], ...],
        help: str | None = None,
    ) -> None:
        """Demand that two extents are equal."""
        if same(left, right):
            return
        difference = number_of(sub(left, right))
        known = any(name.startswith("?") for name in sizes_of(left) | sizes_of(right))
        if difference is not None and not known:
            return self.require(Const(False, DType.BOOL), code, span, message, shown, help)
        condition = Binary("==", left, right, DType.BOOL)
        self.require(condition, code, span, message, shown, help)
        if not self.assumed:
            self.out.equalities.append(Equality(left, right, "call", message, span))

    def show(self, expr: Expr) -> str:
        """An integer expression as Python text."""
        return expr_text(expr)

    def shape_text(self, shape: Sequence[Expr]) -> str:
        """A shape as text."""
        return f"[{', '.join(self.show(extent) for extent in shape)}]"

    def size(self, wanted: str) -> Size:
        """A new size of the program."""
        name = wanted
        while name in self.used_names:
            name += "_"
        self.used_names.add(name)
        self.sizes.append(name)
        return Size(name)

    def reading(
        self, tensor: str, dtype: DType, shape: tuple[Expr, ...], span: Span = NO_SPAN, before: tuple[Expr, ...] = ()
    ) -> Value:
        """The elements of a tensor; `before` are fixed leading indices."""
        axes = self.axes(shape)
        return Value(dtype, shape, axes, read(tensor, (*before, *(IndexVar(axis) for axis in axes)), dtype, span))

    def axes(self, shape: Sequence[Expr], base: str = "i") -> tuple[str, ...]:
        """Fresh index names that run over `shape`."""
        return tuple(self.out.fresh(f"{base}{k}", (ZERO, extent)) for k, extent in enumerate(shape))

    # What later layers do

    @abstractmethod
    def assigned(
        self, statements: Sequence[Statement], behind: Sequence[SacExpression], env: Env, context: Context
    ) -> None:
        """See `Calls`."""

    @abstractmethod
    def condition(
        self, node: SacExpression, env: Env, context: Context, choice: Conditional[SacExpression] | None = None
    ) -> Expr:
        """See `_Specializer`."""

    @abstractmethod
    def either(self, test: Expr, then: Value, otherwise: Value, span: Span, context: Context) -> Value:
        """See `_Specializer`."""

    @abstractmethod
    def where(self, test: Expr) -> AbstractContextManager[None]:
        """See `_Specializer`."""

    @abstractmethod
    def call(self, function: SacFunction, operands: Sequence[Value], span: Span, context: Context) -> Value:
        """A call of a function of the cell: its body in place of the call."""

    @abstractmethod
    def expr(self, node: SacExpression, env: Env, context: Context) -> Value:
        """See `_Specializer`."""

    @abstractmethod
    def own_function(self, name: str, operands: Sequence[Value]) -> SacFunction | None:
        """The most specific definition of the cell that takes these values."""
