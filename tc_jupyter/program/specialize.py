"""A `%%sac` function and the ranks and types of one call -> an ordinary `Program`; sizes stay symbols.

The function is walked once with arrays that are not computed yet (`Value`). Every comprehension becomes boxes with one scalar
expression each; reductions and arrays that are worth storing become statements. What can only be told with the numbers of a call
is kept as a `Check`.

Worked example: `float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }` for a matrix becomes a program with the sizes `A_0, A_1`
and the statement `result(i0, i1) = A(i0, i1) + 1 where i0 in 0:A_0, i1 in 0:A_1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import NoReturn, assert_never

from tc_jupyter.diagnostics import NO_SPAN, Code, Diagnostic, Fix, Label, SourceText, Span, codes, nearest
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_printer import type_text
from tc_jupyter.syntax.sac_tree import (
    Apply,
    ArrayLiteral,
    Assign,
    BrokenAssign,
    Conditional,
    Dot,
    Generator,
    PartitionClause,
    Pattern,
    SacExpression,
    SacFunction,
    SacParam,
    SacType,
    Selection,
    SetExpr,
    TripleDot,
    WithGenerator,
    WithLoop,
    sac_children,
)
from tc_jupyter.syntax.sac_tree import (
    Binary as BinaryNode,
)
from tc_jupyter.syntax.sac_tree import (
    Unary as UnaryNode,
)
from tc_jupyter.syntax.tree import Name, Number

from .expr import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    int64,
    walk,
)
from .functions import FUNCTIONS
from .program import Equality, Program, Tensor
from .sac_bounds import Constraint, fill_pending, is_empty, open_names, pending, solve_round, subtract
from .sac_emit import (
    FOLD_LEFT,
    FOLD_RIGHT,
    Draft,
    Emitter,
    NotSolvable,
    Temp,
    identity,
    negate,
    rename_reads,
    with_call,
    zero,
)
from .sac_inline import inline_program
from .sac_primitives import ARITY, CASTS, primitive
from .sac_ranks import Rank, index_lengths
from .sac_sizes import (
    ONE,
    ZERO,
    Interval,
    absolute,
    add,
    ends,
    evaluate,
    fold,
    index_names,
    is_nonnegative,
    is_zero,
    maximum,
    minimum,
    same,
    sub,
    substitute,
)
from .sac_sizes import (
    value as number_of,
)
from .sac_values import (
    Kind,
    Piece,
    Value,
    Weak,
    alone,
    arithmetic,
    compute,
    convert,
    is_float,
    is_integer,
    item_at,
    kind_text,
    narrows,
    promote,
    reads_of,
    rename_axes,
    scalar,
    storage,
    to_index,
    vector,
    weight,
)

_MOST_PIECES = 64  # boxes of one comprehension while sizes are symbols; beyond it the numbers are asked for
_MOST_PIECES_WITH_NUMBERS = 2048
_MOST_ITEMS = 64  # arrays up to this many elements are handled element by element
_MOST_VALUES = 65536
_DEEPEST_CALLS = 40
_HEAVY = 24  # expression nodes; a variable that is used again is stored from here on
_MOST_RANK = 32


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """What one call tells of an argument: element type, rank, and, if asked for, the extents."""

    dtype: DType
    rank: int
    extents: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """What one call tells: types of all arguments, and the elements (row-major) of those whose values are demanded for shapes.

    `values` pairs the position of an argument with its elements; the extents of such an argument must be given.
    """

    arguments: tuple[ArgumentType, ...]
    values: tuple[tuple[int, tuple[int | float | bool, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on sizes and scalar arguments that a call must fulfil, with the message that says so."""

    code: Code
    condition: Expr
    message: str
    shown: tuple[tuple[str, Expr], ...]
    span: Span
    help: str | None = None


@dataclass(frozen=True, slots=True)
class ResultInfo:
    """A result of the function: the tensor of the program that holds it, its type and rank; rank 0 is a scalar."""

    tensor: str
    dtype: DType
    rank: int
    declared: str


@dataclass(frozen=True, slots=True)
class Specialized:
    """A function for the ranks and types of one call.

    Attributes:
        program: `None` when there are errors or when more must be known (`needs_...`).
        diagnostics: errors, warnings and notes.
        checks: what a call must fulfil; `verify` does it.
        needs_extents: the extents of all arguments must be part of the signature.
        needs_values: positions of the arguments whose elements must be part of the signature.
    """

    program: Program | None
    diagnostics: tuple[Diagnostic, ...] = ()
    checks: tuple[Check, ...] = ()
    results: tuple[ResultInfo, ...] = ()
    needs_extents: bool = False
    needs_values: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is a program."""
        return self.program is not None

    def verify(
        self, sizes: Mapping[str, int], scalars: Mapping[str, int | float | bool] | None = None
    ) -> Diagnostic | None:
        """The first condition that these sizes and scalar arguments break, with its numbers, or nothing."""
        for check in self.checks:
            if not evaluate(check.condition, sizes, scalars or {}):
                shown = ", ".join(f"{label} is {_shown(expr, sizes, scalars or {})}" for label, expr in check.shown)
                message = f"{check.message}: {shown}" if shown else check.message
                return Diagnostic(check.code, check.span, message, help=check.help)
        return None


def _shown(expr: Expr, sizes: Mapping[str, int], scalars: Mapping[str, int | float | bool]) -> str:
    return str(evaluate(expr, sizes, scalars))


@dataclass(frozen=True, slots=True)
class Cell:
    """The functions that a text may call: its own by name (overloads in text order), and programs handed over by name.

    `known` maps a name to something with `program_for(arguments) -> Program | tuple[Diagnostic, ...]`, or to a `Program`.
    """

    functions: Mapping[str, tuple[SacFunction, ...]]
    source: SourceText
    known: Mapping[str, object] = field(default_factory=dict[str, object])


def specialize(cell: Cell, function: SacFunction, signature: Signature) -> Specialized:
    """Specialise `function` to a signature.

    Returns:
        The program with its checks, or the errors, or what else must be in the signature. Never raises for a mistake of the
        user. Sizes stay symbols unless the signature gives extents.
    """
    worker = _Specializer(cell, signature)
    try:
        return worker.run(function)
    except _NeedMore as need:
        return Specialized(None, tuple(worker.diagnostics), needs_extents=need.extents, needs_values=need.values)


@dataclass(frozen=True, slots=True)
class SolvedPartition:
    """What specialisation found for a partition: bounds of the named indices, shape of the body, whether the bounds were inferred."""

    bounds: tuple[Interval, ...]
    body_shape: tuple[Expr, ...]
    inferred: bool

    @property
    def body_rank(self) -> int:
        """The number of axes of the body."""
        return len(self.body_shape)


def solved_partitions(cell: Cell, function: SacFunction, signature: Signature) -> dict[Span, SolvedPartition]:
    """For every partition of a function, by its place in the text, what a call with this signature makes of it."""
    worker = _Specializer(cell, signature)
    try:
        worker.run(function)
    except _NeedMore:
        return {}
    return worker.solved


def select_overload(functions: Sequence[SacFunction], arguments: Sequence[ArgumentType]) -> SacFunction | None:
    """The most specific definition that takes these arguments, or `None`."""
    fitting = [
        f
        for f in functions
        if len(f.params) == len(arguments) and all(_takes(p, a) for p, a in zip(f.params, arguments, strict=True))
    ]
    return max(fitting, key=lambda f: sum(_specificity(p.type) for p in f.params), default=None)


def _takes(param: SacParam, argument: ArgumentType) -> bool:
    type_ = param.type
    if type_ is None or DType(BASES[type_.base]) is not argument.dtype:
        return False
    return _fits_shape(type_, argument.rank, argument.extents)


def _fits_shape(type_: SacType, rank: int, extents: Sequence[int | None] | None) -> bool:
    if type_.shape == "*":
        return True
    if type_.shape == "+":
        return rank >= 1
    if len(type_.shape) != rank:
        return False
    wanted = zip(type_.shape, extents or type_.shape, strict=True)
    return all(a is None or b is None or a == b for a, b in wanted)


def _specificity(type_: SacType | None) -> int:
    if type_ is None or type_.shape == "*":
        return 0
    if type_.shape == "+":
        return 1
    return 4 if isinstance(type_.shape, tuple) and type_.shape and None not in type_.shape else 3


class _Refused(Exception):
    """The expression is wrong; its message was given."""


class _NeedMore(Exception):
    """The numbers of the call are needed."""

    def __init__(self, *, extents: bool = False, values: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.extents = extents
        self.values = values


@dataclass(frozen=True, slots=True)
class _Context:
    """Where an expression is evaluated: enclosing indices from the outside in, and what is known to hold there."""

    indices: tuple[str, ...] = ()
    guards: tuple[Expr, ...] = ()

    def within(self, names: Iterable[str]) -> _Context:
        return replace(self, indices=(*self.indices, *names))

    def where(self, condition: Expr) -> _Context:
        return replace(self, guards=(*self.guards, condition))


@dataclass(frozen=True, slots=True)
class _Part:
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


_Env = dict[str, "Value | None"]  # `None`: a message about this name was given


class _Specializer:
    def __init__(self, cell: Cell, signature: Signature) -> None:
        self.cell = cell
        self.signature = signature
        self.out = Emitter(cell.source)
        self.diagnostics: list[Diagnostic] = []
        self.checks: list[Check] = []
        self.constraints: list[Constraint] = []
        self.open: dict[str, str] = {}  # open index -> name as written
        self.stack: list[SacFunction] = []
        self.stored_values: dict[tuple[int, tuple[Expr, ...]], tuple[Value, Value]] = {}
        self.homes: dict[int, tuple[Value, _Context]] = {}
        self.input_positions: dict[str, int] = {}
        self.sizes: list[str] = []
        self.solved: dict[Span, SolvedPartition] = {}
        self.numbers = bool(signature.arguments) and all(a.extents is not None for a in signature.arguments)

    # Messages

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
        new = Diagnostic(code, span, message, label, labels, help, fix)
        if new not in self.diagnostics and len(self.diagnostics) < 100:
            self.diagnostics.append(new)

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
        self.say(code, span, message, help=help, labels=labels, fix=fix)
        raise _Refused

    def text(self, span: Span) -> str:
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
        """Demand a condition: refused if it never holds, checked at the call if it is not known."""
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
        known = any(name.startswith("?") for name in _size_names(left) | _size_names(right))
        if difference is not None and not known:
            self.require(Const(False, DType.BOOL), code, span, message, shown, help)
        condition = Binary("==", left, right, DType.BOOL)
        self.require(condition, code, span, message, shown, help)
        self.out.equalities.append(Equality(left, right, "call", message, span))

    def show(self, expr: Expr) -> str:
        """An integer expression as Python text."""
        return expr_text(expr)

    def shape_text(self, shape: Sequence[Expr]) -> str:
        return f"[{', '.join(self.show(extent) for extent in shape)}]"

    # The function

    def run(self, function: SacFunction) -> Specialized:
        if len(function.params) != len(self.signature.arguments):
            count = len(function.params)
            self.say(
                codes.CALL_ARGUMENTS,
                function.name.span,
                f"`{function.name.name}` takes {count} arguments, {len(self.signature.arguments)} were given",
            )
            return Specialized(None, tuple(self.diagnostics))
        values = dict(self.signature.values)
        env: _Env = {}
        for position, (param, argument) in enumerate(zip(function.params, self.signature.arguments, strict=True)):
            env[param.name.name] = self.parameter(position, param, argument, values.get(position))
        inputs = tuple(param.name.name for param in function.params)
        results: tuple[ResultInfo, ...] = ()
        if not self._has_errors():
            results = self.results(function, env)
        if self._has_errors():
            return Specialized(None, self._ordered())
        program = self.out.finish(
            function.name.name, tuple(self.sizes), inputs, tuple(r.tensor for r in results), function.span
        )
        return Specialized(program, self._ordered(), tuple(self.checks), results)

    def _has_errors(self) -> bool:
        return any(diagnostic.is_error for diagnostic in self.diagnostics)

    def _ordered(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self.diagnostics, key=lambda d: (d.span.start, d.span.end, d.code.number)))

    def parameter(
        self, position: int, param: SacParam, argument: ArgumentType, elements: tuple[int | float | bool, ...] | None
    ) -> Value:
        """The value of a parameter; declares its tensor and sizes."""
        name, type_ = param.name.name, param.type
        assert type_ is not None
        fixed = type_.shape if not isinstance(type_.shape, str) else ()
        if not _takes(param, argument):
            given = (
                f"`{kind_text(argument.dtype)}` of rank {argument.rank}"
                if argument.extents is None
                else f"`{kind_text(argument.dtype)}` of shape {list(argument.extents)}"
            )
            self.say(
                codes.DECLARED_TYPE,
                param.span,
                f"argument `{name}` is declared `{type_text(type_)}` and received {given}",
            )
        dims: list[Expr] = []
        for axis in range(argument.rank):
            known = fixed[axis] if axis < len(fixed) else None
            known = argument.extents[axis] if argument.extents is not None else known
            dims.append(int64(known) if known is not None else self.size(f"{name}_{axis}"))
        kind = argument.dtype
        self.input_positions[name] = position
        self.out.inputs[name] = Tensor(name, kind, argument.rank, "input", tuple(dims), span=param.span)
        if elements is not None:
            return Value(kind, tuple(dims), items=tuple(Const(e, compute(kind)) for e in elements))
        return self.reading(name, kind, tuple(dims), param.name.span)

    def size(self, wanted: str) -> Size:
        name = wanted
        taken = {*self.sizes, *(param.name for param in self.out.inputs.values())}
        taken |= {
            param.name.name for overloads in self.cell.functions.values() for f in overloads for param in f.params
        }
        while name in taken:
            name += "_"
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

    def results(self, function: SacFunction, env: _Env) -> tuple[ResultInfo, ...]:
        context = _Context()
        values = self.body(function, env, context)
        infos: list[ResultInfo] = []
        names = self._result_names(function)
        for position, (type_, found) in enumerate(zip(function.types, values, strict=True)):
            if found is None:
                continue
            try:
                infos.append(self.result(function, position, type_, found, names[position], context))
            except _Refused:
                continue
            except NotSolvable:
                self._not_solvable(function.results[position].span)
        return tuple(infos)

    def _result_names(self, function: SacFunction) -> list[str]:
        names: list[str] = []
        for position, node in enumerate(function.results):
            name = (
                node.name if isinstance(node, Name) else "result" if len(function.results) == 1 else f"result{position}"
            )
            while name in self.out.inputs or name in names:
                name = f"{name}_out"
            names.append(name)
        for name in names:
            self.out.temps[name] = Temp(name, DType.BOOL, None)  # reserves the name
        return names

    def result(
        self, function: SacFunction, position: int, type_: SacType | None, found: Value, name: str, context: _Context
    ) -> ResultInfo:
        assert type_ is not None
        span = function.results[position].span
        found = self.declared(
            found,
            type_,
            span,
            f"result {position} of `{function.name.name}`"
            if len(function.types) > 1
            else f"the result of `{function.name.name}`",
        )
        dtype = DType(BASES[type_.base])
        shape = tuple(self.bound(extent, span) for extent in found.shape)
        self.out.temps[name] = Temp(name, dtype, tuple((ZERO, extent) for extent in shape), "output")
        self.write(name, found, context, (), span, self.text(span))
        return ResultInfo(name, dtype, len(shape), type_text(type_))

    def declared(self, found: Value, type_: SacType, span: Span, what: str) -> Value:
        """`found` in its declared type; refuses what can never fit."""
        dtype = DType(BASES[type_.base])
        if narrows(found.kind, dtype):
            cast = {DType.INT32: "toi", DType.FLOAT32: "tof", DType.FLOAT64: "tod"}.get(dtype, type_.base)
            self.refuse(
                codes.NARROWING,
                span,
                f"{what} is `{kind_text(found.kind)}` and declared `{type_.base}`, which may lose precision",
                help=f"write `{cast}(..)`",
            )
        if not _fits_shape(type_, found.rank, None):
            self.refuse(
                codes.SAC_RESULT_TYPE,
                span,
                f"{what} has rank {found.rank} and is declared `{type_text(type_)}`",
                help=f"its shape is {self.shape_text(found.shape)}",
            )
        if not isinstance(type_.shape, str):
            for axis, (wanted, extent) in enumerate(zip(type_.shape, found.shape, strict=True)):
                if wanted is not None:
                    never = number_of(extent) is not None and not self.numbers
                    code = codes.SAC_RESULT_TYPE if never else codes.DECLARED_TYPE
                    self.require_equal(
                        extent,
                        int64(wanted),
                        code,
                        span,
                        f"{what} is declared `{type_text(type_)}`",
                        ((f"axis {axis}", extent),),
                    )
        return self.converted(found, dtype)

    def body(self, function: SacFunction, env: _Env, context: _Context) -> tuple[Value | None, ...]:
        """The results of a function whose parameters are in `env`; `None` where a message was given."""
        self.stack.append(function)
        self.assignments([a for a in function.body if isinstance(a, Assign)], function.results, env, context)
        for broken in function.body:
            if isinstance(broken, BrokenAssign) and broken.name:
                env[broken.name] = None
        found: list[Value | None] = []
        for node in function.results:
            try:
                found.append(self.expr(node, env, context))
            except _Refused:
                found.append(None)
            except NotSolvable:
                self._not_solvable(node.span)
                found.append(None)
        self.stack.pop()
        return tuple(found)

    def _not_solvable(self, span: Span) -> None:
        self.say(
            codes.INHOMOGENEOUS,
            span,
            "the bounds of a comprehension depend on an index in a way that has no largest value",
            help="limit the bound with `min(bound, shape(a)[0])`",
        )

    def assignments(
        self, assigns: Sequence[Assign], rest: Sequence[SacExpression], env: _Env, context: _Context
    ) -> None:
        for position, assign in enumerate(assigns):
            try:
                found = self.expr(assign.value, env, context)
                later = [*(a.value for a in assigns[position + 1 :]), *rest]
                env[assign.name.name] = self.kept(assign.name.name, found, later, context)
            except _Refused:
                env[assign.name.name] = None
            except NotSolvable:
                self._not_solvable(assign.span)
                env[assign.name.name] = None

    def kept(self, name: str, found: Value, later: Sequence[SacExpression], context: _Context) -> Value:
        """The value of a variable: stored where computing it again at each use would be dear."""
        self.homes[id(found)] = (found, context)
        if found.expr is None or (found.rank == 0 and weight(found.expr) < 200):
            return found
        called = with_call(found.expr)
        uses = sum(_uses(node, name, called) for node in later)
        heavy = weight(found.expr)
        if (uses > 1 and heavy >= _HEAVY) or (uses and heavy >= 300):
            return self.stored(found, context, name)
        return found

    # Expressions

    def expr(self, node: SacExpression, env: _Env, context: _Context) -> Value:
        match node:
            case Name():
                return self.name(node, env)
            case Number():
                return self.number(node)
            case UnaryNode():
                operand = self.expr(node.operand, env, context)
                return self.operate("neg" if node.op == "-" else node.op, [operand], node, context)
            case BinaryNode():
                return self.binary(node, env, context)
            case Conditional():
                return self.conditional(node, env, context)
            case Selection():
                return self.selection(node, env, context)
            case ArrayLiteral():
                return self.literal(node, env, context)
            case Apply():
                return self.apply(node, env, context)
            case SetExpr():
                return self.comprehension(node, env, context)
            case WithLoop():
                return self.with_loop(node, env, context)
        assert_never(node)

    def binary(self, node: BinaryNode, env: _Env, context: _Context) -> Value:
        left = self.expr(node.left, env, context)
        if node.op in ("&&", "||") and left.rank == 0 and left.expr is not None and left.kind is DType.BOOL:
            inner = context.where(left.expr if node.op == "&&" else negate(left.expr))
            return self.operate(node.op, [left, self.expr(node.right, env, inner)], node, context)
        return self.operate(node.op, [left, self.expr(node.right, env, context)], node, context)

    def name(self, node: Name, env: _Env) -> Value:
        if node.name not in env:
            near = nearest(node.name, env)
            self.refuse(
                codes.UNKNOWN_NAME,
                node.span,
                f"`{node.name}` is not known",
                help=f"did you mean `{near}`?" if near else None,
            )
        found = env[node.name]
        if found is None:
            raise _Refused
        return found

    def number(self, node: Number) -> Value:
        if node.type is not None:
            dtype = DType(node.type)
            return scalar(Const(node.value, dtype, node.span), dtype)
        if isinstance(node.value, float):
            return scalar(Const(node.value, DType.FLOAT64, node.span), Weak.FLOAT)
        if node.value >= 1 << 63:
            return scalar(Const(node.value, DType.UINT64, node.span), DType.UINT64)
        return scalar(Const(node.value, DType.INT64, node.span), Weak.INT)

    def conditional(self, node: Conditional, env: _Env, context: _Context) -> Value:
        condition = self.scalar_of(self.expr(node.condition, env, context), node.condition, context)
        if condition.kind is not DType.BOOL:
            self.refuse(
                codes.TYPE_MISMATCH,
                node.condition.span,
                f"the condition is `{kind_text(condition.kind)}`, not `bool`",
                help="compare, for example `x != 0`",
            )
        test = condition.expr
        assert test is not None
        if isinstance(test, Const):
            return self.expr(node.then if test.value else node.otherwise, env, context)
        then = self.expr(node.then, env, context.where(test))
        otherwise = self.expr(node.otherwise, env, context.where(negate(test)))
        kind = promote(then.kind, otherwise.kind)
        if then.rank != otherwise.rank:
            self.refuse(
                codes.SHAPE_MISMATCH,
                node.span,
                f"the branches have ranks {then.rank} and {otherwise.rank}",
                help="both branches need one shape",
            )
        then, otherwise = self.converted(then, kind), self.converted(otherwise, kind)
        return self.elementwise(
            [then, otherwise],
            kind,
            lambda e: fold(Select(test, e[0], e[1], e[0].dtype)),
            node.span,
            context,
            extend=False,
        )

    def scalar_of(self, found: Value, node: SacExpression, context: _Context) -> Value:
        """`found`, which must have rank 0."""
        if found.rank:
            self.refuse(
                codes.SHAPE_MISMATCH,
                node.span,
                f"a scalar is needed here, and this has shape {self.shape_text(found.shape)}",
            )
        return found if found.expr is not None else scalar(self.element(found, (), context), found.kind)

    def literal(self, node: ArrayLiteral, env: _Env, context: _Context) -> Value:
        if not node.elements:
            return Value(Weak.INT, (ZERO,), items=())
        rows = [self.expr(element, env, context) for element in node.elements]
        first = rows[0]
        kind = first.kind
        for element, row in zip(node.elements[1:], rows[1:], strict=True):
            kind = promote(kind, row.kind) if kind is not row.kind else kind
            if row.rank != first.rank or any(
                number_of(sub(a, b)) not in (0, None) for a, b in zip(row.shape, first.shape, strict=True)
            ):
                self.refuse(
                    codes.RAGGED_LITERAL,
                    element.span,
                    f"the elements of an array literal have shapes {self.shape_text(first.shape)} and {self.shape_text(row.shape)}",
                    help="all elements need one shape",
                )
            for a, b in zip(row.shape, first.shape, strict=True):
                self.require_equal(
                    a,
                    b,
                    codes.RAGGED_LITERAL,
                    element.span,
                    "the elements of an array literal differ in shape",
                    (("this extent", a), ("the first one", b)),
                )
        rows = [self.converted(row, kind) for row in rows]
        shape = (int64(len(rows)), *first.shape)
        extents = first.extents
        if (
            extents is not None
            and prod(extents) * len(rows) <= max(_MOST_ITEMS, len(rows))
            and prod(extents) <= _MOST_ITEMS
        ):
            return Value(kind, shape, items=tuple(item for row in rows for item in self.items(row, context)))
        axes = self.axes(shape)
        inner = tuple(IndexVar(axis) for axis in axes[1:])
        pieces = tuple(
            Piece(
                axes,
                ((int64(k), int64(k + 1)), *((ZERO, extent) for extent in first.shape)),
                self.element(row, inner, context),
                k,
                node.span,
            )
            for k, row in enumerate(rows)
        )
        return Value(kind, shape, pieces=pieces)

    def items(self, found: Value, context: _Context) -> tuple[Expr, ...]:
        """All elements of a small array, row-major."""
        if found.items is not None:
            return found.items
        extents = found.extents
        assert extents is not None
        positions: list[tuple[Expr, ...]] = [()]
        for extent in extents:
            positions = [(*position, int64(k)) for position in positions for k in range(extent)]
        return tuple(self.element(found, position, context) for position in positions)

    def components(self, found: Value, span: Span, context: _Context, what: str) -> tuple[Expr, ...]:
        """The components of an integer vector, exact in 64 bits."""
        if found.rank != 1:
            self.refuse(
                codes.SHAPE_MISMATCH, span, f"{what} must be a vector, and has shape {self.shape_text(found.shape)}"
            )
        if not is_integer(found.kind):
            self.refuse(
                codes.TYPE_MISMATCH,
                span,
                f"{what} must be integers, and is `{kind_text(found.kind)}`",
                help="cast with `toi(..)`",
            )
        length = number_of(found.shape[0])
        if length is None:
            if self.numbers:
                self.refuse(
                    codes.WHERE_NOT_SIZE,
                    span,
                    f"the length of {what} depends on computed data",
                    help="pass it as an argument",
                )
            raise _NeedMore(extents=True)
        if length > _MOST_VALUES:
            self.refuse(codes.DEVICE_LIMIT, span, f"{what} has {length} components")
        whole = replace(found, shape=(int64(length),))
        return tuple(to_index(item, found.kind) for item in self.items(whole, context))

    def index_of(self, found: Value, node: SacExpression, context: _Context) -> Expr:
        """A scalar integer as an index expression."""
        found = self.scalar_of(found, node, context)
        if not is_integer(found.kind):
            self.refuse(
                codes.TYPE_MISMATCH,
                node.span,
                f"an index must be an integer, and this is `{kind_text(found.kind)}`",
                help="cast with `toi(..)`",
            )
        assert found.expr is not None
        return to_index(found.expr, found.kind)

    def bound(self, expr: Expr, span: Span) -> Expr:
        """`expr` as the bound of a range: over sizes and scalar arguments only, or a request for the numbers."""
        wanted: set[int] = set()
        todo, seen = [expr], set[str]()
        while todo:
            for node in reads_of(todo.pop()):
                if node.tensor in self.out.inputs:
                    if self.out.inputs[node.tensor].rank:
                        wanted.add(self.input_positions[node.tensor])
                elif node.tensor not in seen:
                    seen.add(node.tensor)
                    todo += [draft.value for draft in self.out.drafts if draft.target == node.tensor]
        if seen:  # computed data: everything it is made from, scalars too
            wanted |= {
                self.input_positions[r.tensor]
                for e in self._all_values(seen)
                for r in reads_of(e)
                if r.tensor in self.input_positions
            }
        if not wanted and not seen:
            return expr
        known = {position for position, _ in self.signature.values}
        if wanted and not wanted <= known:
            raise _NeedMore(extents=True, values=tuple(sorted(wanted | known)))
        self.refuse(
            codes.WHERE_NOT_SIZE,
            span,
            "a shape depends on data that the function computes",
            help="pass the shape as an argument",
        )

    def _all_values(self, tensors: set[str]) -> list[Expr]:
        return [draft.value for draft in self.out.drafts if draft.target in tensors]

    def converted(self, found: Value, kind: Kind) -> Value:
        """The same elements in another type."""
        if found.kind is kind:
            return found
        change: Callable[[Expr], Expr] = lambda e: convert(e, found.kind, kind)  # noqa: E731
        return self.mapped(found, kind, change)

    def mapped(self, found: Value, kind: Kind, change: Callable[[Expr], Expr]) -> Value:
        """`change` applied to every element."""
        if found.items is not None:
            return replace(found, kind=kind, items=tuple(change(item) for item in found.items))
        if found.pieces is not None:
            return replace(found, kind=kind, pieces=tuple(replace(p, expr=change(p.expr)) for p in found.pieces))
        assert found.expr is not None
        return replace(found, kind=kind, expr=change(found.expr))

    def elementwise(
        self,
        operands: list[Value],
        kind: Kind,
        make: Callable[[list[Expr]], Expr],
        span: Span,
        context: _Context,
        *,
        extend: bool = True,
    ) -> Value:
        """`make` of the elements at equal positions; scalars are extended."""
        arrays = [operand for operand in operands if operand.rank] if extend else operands
        shape = self.common_shape(arrays, span) if arrays else ()
        if all(operand.rank == 0 for operand in operands):
            return scalar(make([self.element(operand, (), context) for operand in operands]), kind)
        small = [operand for operand in arrays if operand.items is not None]
        extents = tuple(number_of(extent) for extent in shape)
        if (
            small
            and None not in extents
            and prod(n for n in extents if n is not None) <= max(_MOST_ITEMS, len(small[0].items or ()))
        ):
            lists = [
                self.items(replace(o, shape=shape) if o.rank else o, context) if o.rank else None for o in operands
            ]
            count = prod(n for n in extents if n is not None)
            scalars = [None if o.rank else self.element(o, (), context) for o in operands]
            items = tuple(make([_item(lists[j], scalars[j], k) for j in range(len(operands))]) for k in range(count))
            return Value(kind, shape, items=items)
        split = [operand for operand in arrays if operand.pieces is not None]
        if len(split) == 1 and split[0].pieces is not None:
            pieces = tuple(self._piecewise(piece, operands, split[0], make, context) for piece in split[0].pieces)
            return Value(kind, shape, pieces=pieces)
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes)
        return Value(kind, shape, axes, make([self.element(o, at if o.rank else (), context) for o in operands]))

    def _piecewise(
        self, piece: Piece, operands: list[Value], split: Value, make: Callable[[list[Expr]], Expr], context: _Context
    ) -> Piece:
        at = tuple(IndexVar(axis) for axis in piece.axes)
        elements = [piece.expr if o is split else self.element(o, at if o.rank else (), context) for o in operands]
        return replace(piece, expr=make(elements))

    def common_shape(self, arrays: Sequence[Value], span: Span) -> tuple[Expr, ...]:
        first = arrays[0]
        shape = list(first.shape)
        for other in arrays[1:]:
            if other.rank != first.rank:
                self.refuse(
                    codes.SHAPE_MISMATCH,
                    span,
                    f"the operands have shapes {self.shape_text(first.shape)} and {self.shape_text(other.shape)}",
                    help="shapes must be equal, or one operand a scalar; a comprehension says which axes belong together",
                )
            for axis, (a, b) in enumerate(zip(shape, other.shape, strict=True)):
                self.require_equal(
                    a,
                    b,
                    codes.SHAPE_MISMATCH,
                    span,
                    f"the operands differ in the extent of axis {axis}",
                    (("one", a), ("the other", b)),
                )
                if number_of(a) is None and number_of(b) is not None:
                    shape[axis] = b
        return tuple(shape)

    # Elements and storage

    def element(self, found: Value, indices: tuple[Expr, ...], context: _Context) -> Expr:
        """The element at `indices` as an expression; an index that may leave the array leads to storing it, so that it is checked."""
        extents = found.extents
        if extents is not None and 0 in extents and found.expr is None:
            return zero(compute(found.kind))
        if found.items is not None and extents is not None:
            for index, extent in zip(indices, extents, strict=True):
                at = number_of(index)
                if at is not None and not 0 <= at < extent:
                    self.refuse(
                        codes.SELECTION_OUT_OF_BOUNDS, NO_SPAN, f"index {at} leaves an axis of {extent} elements"
                    )
            if all(self.inside(index, int64(extent)) for index, extent in zip(indices, extents, strict=True)):
                return item_at(found.items, extents, indices)
            found = self.stored(found, context)
        elif found.pieces is not None or not self._safe(found, indices):
            found = self.stored(found, context)
        assert found.expr is not None
        return substitute(found.expr, dict(zip(found.axes, indices, strict=True)))

    def _safe(self, found: Value, indices: tuple[Expr, ...]) -> bool:
        return all(
            self.inside(index, extent) or self._checks_itself(found, axis)
            for axis, (index, extent) in enumerate(zip(indices, found.shape, strict=True))
        )

    def inside(self, index: Expr, extent: Expr) -> bool:
        """Whether `0 <= index < extent` certainly holds, or will be made to hold by the bound of an open index."""
        if isinstance(index, IndexVar) and index.name in self.open:
            return True
        return is_nonnegative(index, self.out.box) and is_nonnegative(sub(sub(extent, ONE), index), self.out.box)

    def _checks_itself(self, found: Value, axis: int) -> bool:
        """Whether an element read of equal extent, made for every element, already checks this axis."""
        index = IndexVar(found.axes[axis])
        for node in _unconditional(found.expr):
            if isinstance(node, Read):
                for dimension, subscript in enumerate(node.indices):
                    extent = self.out.extent(node.tensor, dimension)
                    if subscript == index and extent is not None and same(extent, found.shape[axis]):
                        return True
        return False

    def stored(self, found: Value, context: _Context, hint: str = "t") -> Value:
        """The value as elements of a temporary."""
        home = self.homes.get(id(found))
        context = home[1] if home else context
        key = (id(found), context.guards)
        if key in self.stored_values:
            return self.stored_values[key][1]
        outer = self.needed(found, context)
        dtype = storage(found.kind)
        shape = tuple(self._hull(self.bound(extent, NO_SPAN)) for extent in found.shape)
        box = (*(self._interval(name) for name in outer), *((ZERO, extent) for extent in shape))
        name = self.out.new_temp(hint, dtype, box)
        self.write(name, found, context, outer, NO_SPAN, hint)
        result = replace(
            self.reading(name, dtype, found.shape, before=tuple(IndexVar(n) for n in outer)), kind=found.kind
        )
        self.stored_values[key] = (found, result)
        return result

    def _interval(self, name: str) -> Interval:
        low, high = self.out.box[name]
        first, last = ends(low, self.out.box), ends(sub(high, ONE), self.out.box)
        if first is None or last is None:
            raise NotSolvable(name)
        return (low, high) if not index_names(low) | index_names(high) else (first[0], add(last[1], ONE))

    def _hull(self, extent: Expr) -> Expr:
        found = ends(extent, self.out.box) if index_names(extent) else (extent, extent)
        if found is None:
            raise NotSolvable("")
        return found[1]

    def needed(self, found: Value, context: _Context) -> tuple[str, ...]:
        """The enclosing indices that a value depends on, from the outside in."""
        exprs: list[Expr] = [*found.shape, *(found.items or ()), *context.guards]
        if found.expr is not None:
            exprs.append(found.expr)
        for piece in found.pieces or ():
            exprs += [piece.expr, *(bound for interval in piece.box for bound in interval)]
        return self.closed_over(exprs, context)

    def closed_over(self, exprs: Iterable[Expr], context: _Context) -> tuple[str, ...]:
        names = {name for expr in exprs for name in index_names(expr)}
        for name in reversed(context.indices):  # a range may use indices further out
            if name in names:
                names |= index_names(self.out.box[name][0]) | index_names(self.out.box[name][1])
        return tuple(name for name in context.indices if name in names)

    def write(
        self, target: str, found: Value, context: _Context, outer: tuple[str, ...], span: Span, text: str
    ) -> None:
        """Statements that store all elements of `found` in `target`; its leading dimensions are the indices `outer`."""
        dtype = self.out.temps[target].dtype
        left = tuple((name, self.out.box[name]) for name in outer)
        away = tuple(name for name in context.indices if name not in outer)
        for piece in self.as_pieces(found, context):
            ranges = tuple(zip(piece.axes, piece.box, strict=True))
            several = found.pieces is not None
            self.out.add(
                Draft(
                    target,
                    (*left, *((name, (self.bound(a, span), self.bound(b, span))) for name, (a, b) in ranges)),
                    convert(piece.expr, found.kind, dtype),
                    number=piece.number if several else None,
                    text=piece.text or text,
                    span=piece.span if several else span,
                    context=away,
                ),
                context.guards,
                zero(dtype.compute),
            )

    def as_pieces(self, found: Value, context: _Context) -> tuple[Piece, ...]:
        """The boxes of a value; a single one where it has only one expression."""
        whole = tuple((ZERO, extent) for extent in found.shape)
        if found.pieces == ():  # an array that is empty for all sizes: one statement says so
            return (Piece(self.axes(found.shape), whole, zero(compute(found.kind))),)
        if found.pieces is not None:
            return found.pieces
        if found.items is not None:
            extents = found.extents
            assert extents is not None
            axes = self.axes(found.shape)
            if not found.items:
                return (Piece(axes, whole, zero(compute(found.kind))),)
            at = tuple(IndexVar(axis) for axis in axes)
            return (Piece(axes, whole, item_at(found.items, extents, at)),)
        assert found.expr is not None
        return (Piece(found.axes, whole, found.expr),)

    # Operators and functions

    def operate(self, op: str, operands: list[Value], node: SacExpression, context: _Context) -> Value:
        """A built-in operator or elementwise function, or the cell's own definition of it."""
        user = self.own_function("-" if op == "neg" else op, operands)
        if user is not None:
            return self.call(user, operands, node.span, context)
        if op == "++":
            return self.joined(operands[0], operands[1], node.span, context)
        if op in ("&&", "||", "!"):
            return self.logical(op, operands, node, context)
        if op == "neg":
            kind = arithmetic(operands[0].kind)
            operand = self.converted(operands[0], kind)
            return self.elementwise([operand], kind, lambda e: negative(e[0]), node.span, context)
        common = promote(operands[0].kind, operands[1].kind)
        if op in COMPARISONS:
            if common is DType.BOOL and op not in ("==", "!="):
                common = DType.INT32
            left, right = (self.converted(o, common) for o in operands)
            return self.elementwise(
                [left, right],
                DType.BOOL,
                lambda e: fold(Binary(op, e[0], e[1], DType.BOOL, node.span)),
                node.span,
                context,
            )
        common = self.wide_enough(arithmetic(common), operands)
        left, right = (self.converted(o, common) for o in operands)
        word = "//" if op == "/" and is_integer(common) else op
        return self.elementwise(
            [left, right],
            common,
            lambda e: fold(Binary(word, e[0], e[1], compute(common), node.span)),
            node.span,
            context,
        )

    def wide_enough(self, kind: Kind, operands: list[Value]) -> Kind:
        """`kind`, or a wider one where a literal does not fit (`language.md`, literals)."""
        if not isinstance(kind, DType) or not kind.is_integer:
            return kind
        for operand in operands:
            number = operand.expr if operand.kind is Weak.INT else None
            if isinstance(number, Const) and not kind.limits[0] <= int(number.value) <= kind.limits[1]:
                literal = DType.INT32 if -(1 << 31) <= int(number.value) < 1 << 31 else DType.INT64
                promoted = promote(kind, literal)
                kind = promoted if isinstance(promoted, DType) else kind
        return kind

    def logical(self, op: str, operands: list[Value], node: SacExpression, context: _Context) -> Value:
        for operand in operands:
            if operand.kind is not DType.BOOL:
                self.refuse(
                    codes.TYPE_MISMATCH,
                    node.span,
                    f"`{op}` takes `bool`, and an operand is `{kind_text(operand.kind)}`",
                    help="compare, for example `x != 0`",
                )
        if op == "!":
            return self.elementwise(operands, DType.BOOL, lambda e: negate(e[0]), node.span, context)
        return self.elementwise(
            operands, DType.BOOL, lambda e: fold(Binary(op, e[0], e[1], DType.BOOL, node.span)), node.span, context
        )

    def own_function(self, name: str, operands: Sequence[Value]) -> SacFunction | None:
        """The most specific definition of the cell that takes these values."""
        fitting = [f for f in self.cell.functions.get(name, ()) if not f.broken and len(f.params) == len(operands)]
        fitting = [f for f in fitting if all(_accepts(p, o) for p, o in zip(f.params, operands, strict=True))]
        return max(
            fitting, key=lambda f: sum(_closeness(p, o) for p, o in zip(f.params, operands, strict=True)), default=None
        )

    def call(self, function: SacFunction, operands: Sequence[Value], span: Span, context: _Context) -> Value:
        """A call of a function of the cell: its body in place of the call."""
        if function in self.stack or len(self.stack) > _DEEPEST_CALLS:
            self.refuse(
                codes.RECURSIVE_CALL, span, f"`{function.name.name}` calls itself", help="use a comprehension or a fold"
            )
        if len(function.results) != 1:
            self.refuse(
                codes.ARGUMENT_COUNT,
                span,
                f"`{function.name.name}` has {len(function.results)} results and stands where one is needed",
            )
        env: _Env = {}
        for param, operand in zip(function.params, operands, strict=True):
            assert param.type is not None
            bound = self.declared(operand, param.type, span, f"argument `{param.name.name}` of `{function.name.name}`")
            if bound is not operand:
                home = self.homes.get(id(operand))
                self.homes[id(bound)] = (bound, home[1] if home else context)
            env[param.name.name] = self.kept(
                param.name.name,
                bound,
                [*(a.value for a in function.body if isinstance(a, Assign)), *function.results],
                context,
            )
        (found,) = self.body(function, env, context)
        if found is None or function.types[0] is None:
            raise _Refused
        return self.declared(found, function.types[0], span, f"the result of `{function.name.name}`")

    def apply(self, node: Apply, env: _Env, context: _Context) -> Value:
        name = node.function.name
        operands = [self.expr(argument, env, context) for argument in node.arguments]
        user = self.own_function(name, operands)
        if user is not None:
            return self.call(user, operands, node.span, context)
        if name in BASES or name in CASTS:
            self.count(node, 1)
            return self.cast(operands[0], DType(BASES.get(name) or CASTS[name]), node.span)
        word = primitive(name) or name
        if word in ("+", "-", "*", "/", "%", "&&", "||", "++", "!", "neg") or word in COMPARISONS:
            if primitive(name) is not None:
                self.count(node, ARITY[word])
                return self.operate(word, operands, node, context)
        if word in CASTS:
            self.count(node, 1)
            return self.cast(operands[0], DType(CASTS[word]), node.span)
        if word in ARITY and word.isidentifier():
            self.count(node, ARITY[word])
            return self.structural(word, operands, node, context)
        if word in FUNCTIONS:
            return self.mathematical(word, operands, node, context)
        if name in self.cell.functions:
            self.no_overload(node, operands)
        if name in self.cell.known:
            return self.known_call(node, operands, context)
        near = nearest(name, [*self.cell.functions, *FUNCTIONS, *ARITY, *self.cell.known])
        self.refuse(
            codes.UNKNOWN_NAME,
            node.function.span,
            f"`{name}` is not a function",
            help=f"did you mean `{near}`?" if near else None,
        )

    def no_overload(self, node: Apply, operands: list[Value]) -> NoReturn:
        given = ", ".join(f"{kind_text(o.kind)}{self.shape_text(o.shape) if o.rank else ''}" for o in operands)
        overloads = self.cell.functions[node.function.name]
        wanted = " or ".join(
            f"({', '.join(type_text(p.type) if p.type else '?' for p in f.params)})" for f in overloads
        )
        self.refuse(
            codes.DECLARED_TYPE,
            node.span,
            f"no definition of `{node.function.name}` takes ({given})",
            help=f"it is defined for {wanted}",
        )

    def count(self, node: Apply, wanted: int) -> None:
        if len(node.arguments) != wanted:
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{node.function.name}` takes {wanted} argument{'s' if wanted > 1 else ''}, {len(node.arguments)} are given",
            )

    def cast(self, found: Value, dtype: DType, span: Span) -> Value:
        source = found.kind

        def change(expr: Expr) -> Expr:
            if dtype is DType.BOOL and source is not DType.BOOL:
                return fold(Binary("!=", expr, zero(expr.dtype), DType.BOOL, span))
            return convert(expr, source, dtype)

        return self.mapped(found, dtype, change)

    def mathematical(self, word: str, operands: list[Value], node: Apply, context: _Context) -> Value:
        function = FUNCTIONS[word]
        if len(operands) != function.arity and not (function.variadic and len(operands) >= function.arity):
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{word}` takes {function.arity} arguments{' or more' if function.variadic else ''}, {len(operands)} are given",
                help=f"`{function.signature}`",
            )
        kind = operands[0].kind
        for operand in operands[1:]:
            kind = promote(kind, operand.kind)
        if word in ("min", "max"):
            kind = self.wide_enough(kind, operands)
            values = [self.converted(o, kind) for o in operands]
            return self.elementwise(values, kind, lambda e: _chain(word, e), node.span, context)
        if function.kind in ("numeric", "rounding") and not is_float(kind):
            kind = arithmetic(kind)
            if function.kind == "rounding":
                return self.converted(operands[0], kind)
        elif not is_float(kind):
            kind = Weak.FLOAT if kind is Weak.INT else DType.FLOAT32
        values = [self.converted(o, kind) for o in operands]
        if function.kind == "test":
            return self.elementwise(
                values, DType.BOOL, lambda e: Call(word, tuple(e), DType.BOOL, node.span), node.span, context
            )
        if word == "abs" and kind is Weak.INT:
            return self.elementwise(values, kind, lambda e: absolute(e[0]), node.span, context)
        return self.elementwise(
            values, kind, lambda e: Call(word, tuple(e), compute(kind), node.span), node.span, context
        )

    def structural(self, word: str, operands: list[Value], node: Apply, context: _Context) -> Value:
        """The functions that make or look at shapes."""
        first = operands[0]
        match word:
            case "shape":
                return vector(first.shape)
            case "dim":
                return scalar(int64(first.rank), Weak.INT)
            case "sel":
                return self.selected(operands[1], self.components_or_scalar(first, node, context), node, context)
            case "take" | "drop":
                return self.taken(word, first, operands[1], node, context)
            case "sum" | "prod" | "minval" | "maxval":
                return self.reduced(word, first, node, context)
            case "reverse":
                return self.reversed(first, node, context)
            case "transpose":
                return self.transposed(first, context)
            case _:
                frame = self.components(first, node.arguments[0].span, context, "the frame of `genarray`")
                return self.filled(frame, operands[1], node, context)

    def components_or_scalar(self, found: Value, node: Apply, context: _Context) -> tuple[Expr, ...]:
        if found.rank == 0:
            return (self.index_of(found, node.arguments[0], context),)
        return self.components(found, node.arguments[0].span, context, "the index")

    def filled(self, frame: tuple[Expr, ...], element: Value, node: SacExpression, context: _Context) -> Value:
        """`genarray(frame, element)`."""
        self.check_frame(frame, node.span)
        shape = (*(self.bound(extent, node.span) for extent in frame), *element.shape)
        self.check_rank(len(shape), node.span)
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes[len(frame) :])
        return Value(element.kind, shape, axes, self.element(element, at, context))

    def check_frame(self, frame: Sequence[Expr], span: Span) -> None:
        for axis, extent in enumerate(frame):
            if not is_nonnegative(extent, self.out.box):
                condition = fold(Binary(">=", extent, ZERO, DType.BOOL))
                self.require(
                    condition,
                    codes.NEGATIVE_SHAPE,
                    span,
                    f"axis {axis} of the result would have a negative extent",
                    ((f"extent {axis}", extent),),
                )

    def check_rank(self, rank: int, span: Span) -> None:
        if rank > _MOST_RANK:
            self.refuse(
                codes.DEVICE_LIMIT,
                span,
                f"an array of rank {rank} is too large; at most {_MOST_RANK} axes are possible",
            )

    def taken(self, word: str, counts: Value, found: Value, node: Apply, context: _Context) -> Value:
        """`take(v, a)` and `drop(v, a)`; a scalar counts as a vector of one component."""
        if counts.rank == 0:
            amounts = (self.index_of(counts, node.arguments[0], context),)
        else:
            amounts = self.components(counts, node.arguments[0].span, context, f"the first argument of `{word}`")
        if len(amounts) > found.rank:
            self.refuse(
                codes.RANK_MISMATCH, node.span, f"`{word}` has {len(amounts)} counts for an array of rank {found.rank}"
            )
        shape = list(found.shape)
        offsets: list[Expr] = [ZERO] * found.rank
        for axis, amount in enumerate(amounts):
            amount, extent = self.bound(amount, node.span), found.shape[axis]
            size = absolute(amount)
            if word == "take":
                condition = fold(Binary("<=", size, extent, DType.BOOL))
                self.require(
                    condition,
                    codes.SELECTION_OUT_OF_BOUNDS,
                    node.span,
                    f"`take` wants more elements than axis {axis} has",
                    (("wanted", size), ("present", extent)),
                )
                shape[axis] = size
                offsets[axis] = self.either_sign(amount, ZERO, sub(extent, size))
            else:
                shape[axis] = maximum((sub(extent, size), ZERO))
                offsets[axis] = self.either_sign(amount, size, ZERO)
        axes = self.axes(shape)
        at = tuple(add(IndexVar(axis), offset) for axis, offset in zip(axes, offsets, strict=True))
        extents = tuple(number_of(extent) for extent in shape)
        if found.items is not None and None not in extents:
            positions: list[tuple[Expr, ...]] = [()]
            for extent, offset in zip(extents, offsets, strict=True):
                positions = [(*p, add(offset, int64(k))) for p in positions for k in range(extent or 0)]
            return Value(found.kind, tuple(shape), items=tuple(self.element(found, p, context) for p in positions))
        if found.pieces is not None:
            found = self.stored(found, context)
        assert found.expr is not None or found.items is not None
        if found.expr is None:
            return Value(found.kind, tuple(shape), axes, self.element(found, at, context))
        return Value(found.kind, tuple(shape), axes, substitute(found.expr, dict(zip(found.axes, at, strict=True))))

    def either_sign(self, amount: Expr, positive: Expr, negative_: Expr) -> Expr:
        return fold(Select(fold(Binary("<", amount, ZERO, DType.BOOL)), negative_, positive, DType.INT64))

    def joined(self, left: Value, right: Value, span: Span, context: _Context) -> Value:
        """`left ++ right` along the first axis."""
        if left.rank == 0 or left.rank != right.rank:
            self.refuse(
                codes.SHAPE_MISMATCH,
                span,
                f"`++` joins arrays of equal rank, at least 1, and these have ranks {left.rank} and {right.rank}",
                help="write `[x]` for a vector of one element",
            )
        for axis in range(1, left.rank):
            self.require_equal(
                left.shape[axis],
                right.shape[axis],
                codes.SHAPE_MISMATCH,
                span,
                f"the operands of `++` differ in the extent of axis {axis}",
                (("left", left.shape[axis]), ("right", right.shape[axis])),
            )
        kind = promote(left.kind, right.kind) if left.kind is not right.kind else left.kind
        for empty, other in ((left, right), (right, left)):
            if empty.items == () and isinstance(empty.kind, Weak):
                kind = other.kind
        left, right = self.converted(left, kind), self.converted(right, kind)
        shape = (add(left.shape[0], right.shape[0]), *left.shape[1:])
        if left.items is not None and right.items is not None:
            return Value(kind, shape, items=left.items + right.items)
        axes = self.axes(shape)
        pieces: list[Piece] = []
        for found, offset in ((left, ZERO), (right, left.shape[0])):
            for piece in self.as_pieces(found, context):
                pieces.append(self._shifted(piece, axes, offset, len(pieces), span))
        pieces = [piece for piece in pieces if not any(same(low, high) for low, high in piece.box)]
        return Value(kind, shape, pieces=tuple(pieces))

    def _shifted(self, piece: Piece, axes: tuple[str, ...], offset: Expr, number: int, span: Span) -> Piece:
        mapping: dict[str, Expr] = {old: IndexVar(new) for old, new in zip(piece.axes, axes, strict=True)}
        mapping[piece.axes[0]] = sub(IndexVar(axes[0]), offset)
        (low, high), *rest = piece.box
        box = ((add(low, offset), add(high, offset)), *rest)
        return Piece(axes, box, substitute(piece.expr, mapping), number, span, self.text(span))

    def reversed(self, found: Value, node: Apply, context: _Context) -> Value:
        if found.rank == 0:
            return found
        if found.items is not None:
            stride = len(found.items) // max(number_of(found.shape[0]) or 1, 1)
            rows = [found.items[k : k + stride] for k in range(0, len(found.items), max(stride, 1))]
            return replace(found, items=tuple(item for row in reversed(rows) for item in row))
        last = sub(found.shape[0], ONE)
        if found.pieces is not None:
            pieces = tuple(
                replace(
                    piece,
                    box=((sub(found.shape[0], piece.box[0][1]), sub(found.shape[0], piece.box[0][0])), *piece.box[1:]),
                    expr=substitute(piece.expr, {piece.axes[0]: sub(last, IndexVar(piece.axes[0]))}),
                )
                for piece in found.pieces
            )
            return replace(found, pieces=pieces)
        assert found.expr is not None
        axes = self.axes(found.shape)
        at = (sub(last, IndexVar(axes[0])), *(IndexVar(axis) for axis in axes[1:]))
        return replace(found, axes=axes, expr=substitute(found.expr, dict(zip(found.axes, at, strict=True))))

    def transposed(self, found: Value, context: _Context) -> Value:
        shape = tuple(reversed(found.shape))
        if found.rank < 2:
            return found
        if found.pieces is not None:
            pieces = tuple(replace(p, axes=p.axes[::-1], box=p.box[::-1]) for p in found.pieces)
            return replace(found, shape=shape, pieces=pieces)
        if found.items is not None:
            axes = self.axes(shape)
            at = tuple(IndexVar(axis) for axis in reversed(axes))
            flat = Value(found.kind, shape, axes, self.element(found, at, context))
            return replace(flat, items=self.items(flat, context), axes=(), expr=None)
        return replace(found, shape=shape, axes=found.axes[::-1])

    # Selection

    def selection(self, node: Selection, env: _Env, context: _Context) -> Value:
        array = self.expr(node.array, env, context)
        if isinstance(node.array, Name) and node.array.name in self.out.inputs and array.expr is not None:
            array = replace(array, expr=_located(array.expr, node.span))
        if any(isinstance(i, Dot | TripleDot) for i in node.indices):
            return self.kept_axes(node, array, env, context)
        indices = [(i, self.expr(i, env, context)) for i in node.indices if not isinstance(i, Dot | TripleDot)]
        if len(indices) == 1 and indices[0][1].rank == 1:
            found = self.components(indices[0][1], indices[0][0].span, context, "the index")
        else:
            found = tuple(self.component(written, index, context) for written, index in indices)
        return self.selected(array, found, node, context)

    def component(self, written: SacExpression, index: Value, context: _Context) -> Expr:
        if index.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                written.span,
                f"a component of an index is a scalar, and this has shape {self.shape_text(index.shape)}",
                help="a single vector is the whole index: `a[u ++ v]`",
            )
        return self.index_of(index, written, context)

    def selected(self, array: Value, indices: tuple[Expr, ...], node: SacExpression, context: _Context) -> Value:
        """The subarray at `indices`; every component says how far its indices may run."""
        if len(indices) > array.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                node.span,
                f"{len(indices)} indices select from an array of rank {array.rank}",
                help=f"its shape is {self.shape_text(array.shape)}",
            )
        for index, extent in zip(indices, array.shape, strict=False):
            self.constraints.append(Constraint(index, extent, context.guards, node.span))
            self.check_constant_index(index, extent, array.shape[len(indices) :], node.span, context)
        shape = array.shape[len(indices) :]
        numbers = tuple(number_of(index) for index in indices)
        if array.items is not None and None not in numbers and array.extents is not None:
            stride = prod(array.extents[len(indices) :])
            start = 0
            for number, extent in zip(numbers, array.extents, strict=False):
                start = start * extent + (number or 0)
            items = array.items[start * stride : (start + 1) * stride]
            return Value(array.kind, shape, items=items) if shape else scalar(items[0], array.kind)
        axes = self.axes(shape)
        return Value(
            array.kind, shape, axes, self.element(array, (*indices, *(IndexVar(axis) for axis in axes)), context)
        )

    def check_constant_index(
        self, index: Expr, extent: Expr, rest: Sequence[Expr], span: Span, context: _Context
    ) -> None:
        """Refuse an index that leaves the axis whatever the sizes; where nothing may be selected (empty loops) nothing is said."""
        at, size = number_of(index), number_of(extent)
        if at is None or (at >= 0 and (size is None or at < size)):
            return
        loops = [sub(*reversed(self.out.box[name])) for name in context.indices]
        if all(is_nonnegative(sub(count, ONE)) for count in (*loops, *rest)):
            self.refuse(
                codes.SELECTION_OUT_OF_BOUNDS,
                span,
                f"index {at} leaves an axis of {self.show(extent)} elements",
                help="indices start at 0",
            )

    def kept_axes(self, node: Selection, array: Value, env: _Env, context: _Context) -> Value:
        """`a[., j]`: the dotted axes stay, the others are fixed."""
        triples = [i for i in node.indices if isinstance(i, TripleDot)]
        if len(triples) > 1:
            self.refuse(
                codes.TRIPLE_DOTS,
                triples[1].span,
                "a selection has more than one `...`",
                help="use `.` for each further axis",
            )
        fixed = len(node.indices) - len(triples)
        if fixed > array.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                node.span,
                f"{fixed} indices select from an array of rank {array.rank}",
                help=f"its shape is {self.shape_text(array.shape)}",
            )
        at: list[Expr] = []
        shape: list[Expr] = []
        axes: list[str] = []

        def keep() -> None:
            extent = array.shape[len(at)]
            axes.append(self.out.fresh(f"i{len(axes)}", (ZERO, extent)))
            shape.append(extent)
            at.append(IndexVar(axes[-1]))

        for index in node.indices:
            if isinstance(index, Dot):
                keep()
            elif isinstance(index, TripleDot):
                for _ in range(array.rank - fixed):
                    keep()
            else:
                component = self.component(index, self.expr(index, env, context), context)
                extent = array.shape[len(at)]
                self.constraints.append(Constraint(component, extent, context.guards, node.span))
                others = [e for k, e in enumerate(array.shape) if k != len(at)]
                self.check_constant_index(component, extent, others, node.span, context)
                at.append(component)
        while len(at) < array.rank:
            keep()
        return Value(array.kind, tuple(shape), tuple(axes), self.element(array, tuple(at), context))

    # Reductions

    def reduced(self, word: str, found: Value, node: Apply, context: _Context) -> Value:
        """`sum`, `prod`, `minval`, `maxval` of all elements."""
        operator = {"sum": "+", "prod": "*", "minval": "min", "maxval": "max"}[word]
        kind = arithmetic(found.kind) if operator in "+*" else found.kind
        found = self.converted(found, kind)
        if found.items is not None and (
            len(found.items) <= _MOST_ITEMS or all(isinstance(i, Const) for i in found.items)
        ):
            return self._reduced_items(operator, found, kind)
        if found.rank == 0:
            return found
        pieces = self.as_pieces(found, context)
        start = identity(operator, compute(kind))
        return self.combined(operator, pieces, found.rank, kind, start, None, node, context, word)

    def _reduced_items(self, operator: str, found: Value, kind: Kind) -> Value:
        items = found.items or ()
        if not items:
            limits = storage(alone(kind)) if kind is Weak.INT else compute(kind)
            number = identity(operator, limits)
            return scalar(replace(number, dtype=compute(kind)), kind)
        return scalar(_chain(operator, list(items)), kind)

    def combined(
        self,
        operator: str,
        pieces: Sequence[Piece],
        count: int,
        kind: Kind,
        neutral: Expr,
        combine: Expr | None,
        node: SacExpression,
        context: _Context,
        hint: str,
        shape: tuple[Expr, ...] = (),
    ) -> Value:
        """Reduce the first `count` axes of all pieces; the other axes (`shape`) stay. `neutral` is the content before."""
        exprs: list[Expr] = [neutral, *shape, *context.guards]
        for piece in pieces:
            exprs += [piece.expr, *(bound for interval in piece.box for bound in interval)]
        outer = self.closed_over(exprs, context)
        dtype = storage(kind)
        box = (
            *(self._interval(name) for name in outer),
            *((ZERO, self._hull(self.bound(e, node.span))) for e in shape),
        )
        name = self.out.new_temp(hint, dtype, box)
        left = tuple((index, self.out.box[index]) for index in outer)
        away = tuple(index for index in context.indices if index not in outer)
        identical = combine is None and neutral == identity(operator, dtype.compute)
        if not identical or len(pieces) != 1:
            axes = self.axes(shape)
            self.out.add(
                Draft(
                    name,
                    (*left, *((a, (ZERO, e)) for a, e in zip(axes, shape, strict=True))),
                    neutral,
                    text=self.text(node.span),
                    span=node.span,
                ),
                (),
                neutral,
            )
        for piece in pieces:
            ranges = tuple(
                (axis, (self.bound(a, node.span), self.bound(b, node.span)))
                for axis, (a, b) in zip(piece.axes, piece.box, strict=True)
            )
            first = identical and len(pieces) == 1
            draft = Draft(
                name,
                (*left, *ranges[count:]),
                convert(piece.expr, kind, dtype),
                operator=operator,
                initialize=first,
                accumulate=not first,
                reductions=ranges[:count],
                combine=combine,
                text=self.text(node.span),
                span=node.span,
                context=away,
            )
            empty = identity(operator, dtype.compute) if combine is None else neutral
            self.out.add(draft, context.guards, empty)
        return replace(self.reading(name, dtype, shape, before=tuple(IndexVar(n) for n in outer)), kind=kind)

    # Comprehensions

    def comprehension(self, node: SetExpr, env: _Env, context: _Context) -> Value:
        last_number = len(node.partitions) - 1
        last = self.partition(node.partitions[-1], last_number, None, env, context)
        shape = tuple(high for _, high in last.box)
        self.check_frame([shape[axis] for axis in last.named], node.partitions[-1].span)
        parts: list[_Part] = []
        refused = False
        for number, clause in enumerate(node.partitions[:-1]):
            try:
                parts.append(self.partition(clause, number, shape, env, context))
            except _Refused:
                refused = True
        if refused:
            raise _Refused
        parts.append(last)
        if number_lower := [axis for axis in last.named if not is_zero(last.box[axis][0])]:
            for axis in number_lower:
                self.check_lower(last.box[axis][0], axis, last.span)
        return self.assembled(parts, shape, None, node, context)

    def partition(
        self, clause: PartitionClause, number: int, result: tuple[Expr, ...] | None, env: _Env, context: _Context
    ) -> _Part:
        """One partition; `result` is the shape of the comprehension, or `None` for the last partition, which determines it."""
        pattern, generator = clause.pattern, clause.generator
        lower = self.generator_bound(generator.lower if generator else None, env, context)
        upper = self.generator_bound(generator.upper if generator else None, env, context)
        if result is None and generator is not None and isinstance(generator.upper, Dot):
            self.refuse(
                codes.DOT_IN_LAST,
                generator.upper.span,
                "`.` cannot be the upper bound of the last partition",
                help="the last partition gives the shape of the result: write its extents, for example `shape(A)`",
            )
        length = self.index_length(clause, lower, upper, result, env, context)
        names = (
            [f"{_stem(pattern.names[0].name)}{k}" for k in range(length)]
            if pattern.vector
            else [n.name for n in pattern.names]
        )
        for bound, written in ((lower, generator and generator.lower), (upper, generator and generator.upper)):
            if bound is not None and len(bound) != length and written is not None:
                self.refuse(
                    codes.BOUND_LENGTH,
                    written.span,
                    f"the bound has {len(bound)} components and the index {length}",
                    help=f"give {length} components",
                )
        lows = lower if lower is not None else (ZERO,) * length
        return self.open_partition(clause, number, result, env, context, names, tuple(lows), upper)

    def open_partition(
        self,
        clause: PartitionClause,
        number: int,
        result: tuple[Expr, ...] | None,
        env: _Env,
        context: _Context,
        names: list[str],
        lows: tuple[Expr, ...],
        upper: tuple[Expr, ...] | None,
    ) -> _Part:
        generator = clause.generator
        dotted = generator is not None and isinstance(generator.upper, Dot)
        places = self.places(clause.pattern, len(names), len(result), clause.span) if result is not None else None
        if upper is None and dotted and result is not None and places is not None:
            upper = tuple(result[place] for place in places)
        indices: list[str] = []
        for k, name in enumerate(names):
            index = self.out.fresh(name)
            self.out.box[index] = (lows[k], upper[k] if upper is not None else pending(index))
            indices.append(index)
        inner = self.bind_indices(clause.pattern, indices, env)
        drafts_from, constraints_from = len(self.out.drafts), len(self.constraints)
        outer_open = list(self.open)
        if upper is None:
            self.open |= dict(zip(indices, names, strict=True))
        try:
            body = self.expr(clause.body, inner, context.within(indices))
        except _Refused:
            self.open = {name: word for name, word in self.open.items() if name in outer_open}
            raise
        if upper is None:
            body = self.close(clause, indices, body, result, places, constraints_from, drafts_from, outer_open)
        highs = tuple(self.out.box[index][1] for index in indices)
        inferred = generator is None or (generator.upper is None and generator.lower is None)
        self.solved[clause.span] = SolvedPartition(tuple(zip(lows, highs, strict=True)), body.shape, inferred)
        self.check_body_shape(clause, body, indices)
        return self.placed(clause, number, result, tuple(indices), lows, highs, body, drafts_from, context)

    def bind_indices(self, pattern: Pattern, indices: Sequence[str], env: _Env) -> _Env:
        inner = dict(env)
        variables = tuple(IndexVar(index) for index in indices)
        if pattern.vector:
            inner[pattern.names[0].name] = vector(variables)
        else:
            inner |= {
                name.name: scalar(variable, Weak.INT) for name, variable in zip(pattern.names, variables, strict=True)
            }
        return inner

    def generator_bound(
        self, bound: SacExpression | Dot | None, env: _Env, context: _Context
    ) -> tuple[Expr, ...] | None:
        """The components of a bound; a scalar is one component; `.` and a missing bound are `None`."""
        if bound is None or isinstance(bound, Dot):
            return None
        found = self.expr(bound, env, context)
        if found.rank == 0:
            return (self.bound(self.index_of(found, bound, context), bound.span),)
        return tuple(self.bound(c, bound.span) for c in self.components(found, bound.span, context, "a bound"))

    def index_length(
        self,
        clause: PartitionClause,
        lower: tuple[Expr, ...] | None,
        upper: tuple[Expr, ...] | None,
        result: tuple[Expr, ...] | None,
        env: _Env,
        context: _Context,
    ) -> int:
        """How many components the index has; of a vector name without bounds the longest legal length."""
        if not clause.pattern.vector:
            return len(clause.pattern.names)
        for bound in (lower, upper):
            if bound is not None:
                return len(bound)
        name = clause.pattern.names[0].name
        ranks = {key: _rank_of(found) for key, found in env.items() if found is not None}
        lengths = index_lengths(clause.body, name, ranks, self.cell.functions)
        if lengths:
            return min(lengths) if result is None else min(min(lengths), len(result))
        if result is None:
            self.no_bound(clause, [name])
        return self.frame_length(clause, name, len(result), env, context)

    def frame_length(self, clause: PartitionClause, name: str, rank: int, env: _Env, context: _Context) -> int:
        """The length of an index vector that nothing limits: what the body leaves of the result's axes."""
        marks = len(self.out.drafts), len(self.constraints), len(self.diagnostics), len(self.checks)
        indices = [self.out.fresh(name, (ZERO, pending(f"{name}{k}"))) for k in range(rank)]
        try:
            body = self.expr(clause.body, self.bind_indices(clause.pattern, indices, env), context.within(indices))
        finally:
            del self.out.drafts[marks[0] :], self.constraints[marks[1] :], self.checks[marks[3] :]
        return max(rank - body.rank, 0)

    def no_bound(self, clause: PartitionClause, names: Sequence[str]) -> NoReturn:
        words = " and ".join(f"`{name}`" for name in names)
        pattern = clause.pattern
        variables = pattern.names[0].name if pattern.vector else f"[{', '.join(n.name for n in pattern.names)}]"
        example = "shape(A)" if pattern.vector else f"[{', '.join('..' for _ in pattern.names)}]"
        self.refuse(
            codes.NO_BOUND,
            clause.pattern.span,
            f"no upper bound is given for {words}, and no selection tells one",
            help=f"write `| {variables} < {example}`; the last partition gives the shape of the result",
        )

    def places(self, pattern: Pattern, length: int, rank: int, span: Span) -> tuple[int, ...] | None:
        """At which axes of a result of `rank` axes the named indices stand."""
        if pattern.vector:
            return tuple(range(length)) if length <= rank else None
        fixed = sum(not isinstance(item, TripleDot) for item in pattern.items)
        if fixed > rank:
            self.refuse(
                codes.PATTERN_RANK,
                span,
                f"the pattern has {fixed} axes and the result {rank}",
                help="all partitions make one array; its rank is that of the last partition",
            )
        spare = rank - fixed
        found: list[int] = []
        place = 0
        for item in pattern.items:
            if isinstance(item, TripleDot):
                place += spare
            else:
                if isinstance(item, Name):
                    found.append(place)
                place += 1
        return tuple(found)

    def close(
        self,
        clause: PartitionClause,
        indices: list[str],
        body: Value,
        result: tuple[Expr, ...] | None,
        places: tuple[int, ...] | None,
        constraints_from: int,
        drafts_from: int,
        outer_open: list[str],
    ) -> Value:
        """Find the upper bounds of open indices; what stays open waits for the enclosing comprehension."""
        guarded = False
        solved: dict[str, Expr] = {}
        while True:
            mine = [name for name in self.open if name not in outer_open]
            everyone = [*mine, *outer_open]
            if not mine:
                break
            found = solve_round(
                everyone, self.constraints[constraints_from:], self._known_box(everyone), use_guarded=guarded
            )
            found = {name: limit for name, limit in found.items() if name in mine}
            if not found and not guarded and not outer_open:
                guarded = True
                continue
            if not found:
                break
            for name, limit in found.items():
                del self.open[name]
                solved[name] = limit
            self.settle(solved, constraints_from, drafts_from)
            guarded = False
            if outer_open:
                break  # one round only: the enclosing comprehension goes on with all names together
        unsolved = [name for name in indices if name in self.open]
        if unsolved and self._waits(unsolved, outer_open, constraints_from):
            return _filled(body, solved)
        if unsolved and result is None:
            names = [
                self.open[name] if not clause.pattern.vector else clause.pattern.names[0].name for name in unsolved
            ]
            for name in indices:
                self.open.pop(name, None)
            self.no_bound(clause, list(dict.fromkeys(names)))
        if unsolved and result is not None and places is not None:
            for name, place in zip(indices, places, strict=True):
                self.open.pop(name, None)
                solved[name] = result[place]
            self.settle(solved, constraints_from, drafts_from)
        return _filled(body, solved)

    def _waits(self, unsolved: list[str], outer_open: list[str], constraints_from: int) -> bool:
        """Whether a selection links an unsolved name with an open one further out."""
        if not outer_open:
            return False
        for constraint in self.constraints[constraints_from:]:
            names = open_names(constraint.index, self.open)
            if names & set(unsolved) and names & set(outer_open):
                return True
        return False

    def _known_box(self, open_: Iterable[str]) -> dict[str, Interval]:
        excluded = set(open_)
        return {name: interval for name, interval in self.out.box.items() if name not in excluded}

    def settle(self, solved: Mapping[str, Expr], constraints_from: int, drafts_from: int) -> None:
        """Put solved bounds in place of the sizes that stood for them."""
        done: dict[str, Expr] = {}
        for name, limit in solved.items():
            done[name] = fill_pending(limit, done)
        for name, interval in list(self.out.box.items()):
            self.out.box[name] = (fill_pending(interval[0], done), fill_pending(interval[1], done))
        for at in range(constraints_from, len(self.constraints)):
            old = self.constraints[at]
            self.constraints[at] = replace(
                old, extent=fill_pending(old.extent, done), index=fill_pending(old.index, done)
            )
        for at in range(drafts_from, len(self.out.drafts)):
            old_draft = self.out.drafts[at]
            if isinstance(old_draft, Draft):
                self.out.drafts[at] = _filled_draft(old_draft, done)
        for name, temp in list(self.out.temps.items()):
            if temp.box is not None:
                box = tuple((fill_pending(low, done), fill_pending(high, done)) for low, high in temp.box)
                self.out.temps[name] = replace(temp, box=box)
        self.checks = [
            replace(
                c,
                condition=fill_pending(c.condition, done),
                shown=tuple((label, fill_pending(e, done)) for label, e in c.shown),
            )
            for c in self.checks
        ]
        self.out.equalities = [
            replace(e, left=fill_pending(e.left, done), right=fill_pending(e.right, done)) for e in self.out.equalities
        ]
        for key, (source, kept) in list(self.stored_values.items()):
            self.stored_values[key] = (source, _filled(kept, done))

    def check_body_shape(self, clause: PartitionClause, body: Value, indices: Sequence[str]) -> None:
        for extent in body.shape:
            names = index_names(extent) & set(indices)
            if names:
                word = sorted(names)[0].partition("'")[0]
                self.refuse(
                    codes.INHOMOGENEOUS,
                    clause.body.span,
                    f"the shape of the body depends on the value of index `{word}`",
                    help="all elements of an array have one shape",
                )

    def placed(
        self,
        clause: PartitionClause,
        number: int,
        result: tuple[Expr, ...] | None,
        indices: tuple[str, ...],
        lows: tuple[Expr, ...],
        highs: tuple[Expr, ...],
        body: Value,
        drafts_from: int,
        context: _Context,
    ) -> _Part:
        """The partition over all axes of the result: named indices and body axes in the order of the pattern."""
        layout = self.layout(clause.pattern, len(indices), body, clause.span)
        self.check_rank(len(layout), clause.span)
        if result is not None and len(layout) != len(result):
            self.refuse(
                codes.PATTERN_RANK,
                clause.span,
                f"this partition makes an array of rank {len(layout)} and the last one of rank {len(result)}",
                help=f"the body has shape {self.shape_text(body.shape)}, the result {self.shape_text(result)}",
            )
        body_axes = self.axes(body.shape, "t")
        axes = tuple(indices[k] if named else body_axes[k] for named, k in layout)
        box = tuple((lows[k], highs[k]) if named else (ZERO, body.shape[k]) for named, k in layout)
        named = tuple(place for place, (is_named, _) in enumerate(layout) if is_named)
        if result is not None:
            self.check_fit(clause, result, box, named)
        inner = context.within(indices)
        bodies: list[Piece] = []
        for piece in self.body_pieces(body, body_axes, inner):
            ranges = dict(zip(piece.axes, piece.box, strict=True))
            full = tuple(ranges.get(axis, interval) for axis, interval in zip(axes, box, strict=True))
            bodies.append(Piece(axes, full, piece.expr, number, clause.span, self.text(clause.span)))
        drafts = (drafts_from, len(self.out.drafts))
        return _Part(number, axes, box, named, tuple(bodies), body.kind, drafts, clause.span, self.text(clause.span))

    def body_pieces(self, body: Value, axes: tuple[str, ...], context: _Context) -> list[Piece]:
        if body.pieces is not None:
            return [rename_axes(piece, dict(zip(piece.axes, axes, strict=True))) for piece in body.pieces]
        at = tuple(IndexVar(axis) for axis in axes)
        whole = tuple((ZERO, extent) for extent in body.shape)
        return [Piece(axes, whole, self.element(body, at, context))]

    def layout(self, pattern: Pattern, length: int, body: Value, span: Span) -> list[tuple[bool, int]]:
        """For each axis of the result: (whether the pattern names it, number of the index or of the body axis)."""
        if pattern.vector:
            return [*((True, k) for k in range(length)), *((False, k) for k in range(body.rank))]
        dots = sum(isinstance(item, Dot) for item in pattern.items)
        if dots > body.rank:
            self.refuse(
                codes.PATTERN_RANK,
                pattern.span,
                f"the pattern has {dots} dots and the body {body.rank} axes",
                help=f"the body has shape {self.shape_text(body.shape)}; each `.` stands for one of its axes",
            )
        spare = body.rank - dots
        found: list[tuple[bool, int]] = []
        index, axis = 0, 0
        for item in pattern.items:
            if isinstance(item, Name):
                found.append((True, index))
                index += 1
                continue
            steps = spare if isinstance(item, TripleDot) else 1
            found += [(False, axis + k) for k in range(steps)]
            axis += steps
        return found + [(False, k) for k in range(axis, body.rank)]

    def check_fit(
        self, clause: PartitionClause, result: tuple[Expr, ...], box: tuple[Interval, ...], named: tuple[int, ...]
    ) -> None:
        """A partition must stay inside the result, and its body must have the shape of the other bodies."""
        for place, ((low, high), extent) in enumerate(zip(box, result, strict=True)):
            if place not in named:
                self.require_equal(
                    high,
                    extent,
                    codes.SHAPE_MISMATCH,
                    clause.body.span,
                    f"the bodies of the partitions differ in the extent of axis {place} of the result",
                    (("this one", high), ("the result", extent)),
                )
                continue
            self.check_lower(low, place, clause.span)
            if is_nonnegative(sub(extent, high), self.out.box):
                continue
            condition: Expr = fold(Binary("<=", high, extent, DType.BOOL))
            for first, last in box:
                condition = fold(Binary("||", condition, fold(Binary(">=", first, last, DType.BOOL)), DType.BOOL))
            if index_names(condition):
                continue  # a bound that depends on an outer index: cut to the result below
            self.require(
                condition,
                codes.PARTITION_TOO_LARGE,
                clause.span,
                f"the partition leaves the result on axis {place}",
                (("its upper bound", high), ("the extent of the result", extent)),
                help="limit its upper bound",
            )

    def check_lower(self, low: Expr, place: int, span: Span) -> None:
        if not is_nonnegative(low, self.out.box) and not index_names(low):
            condition = fold(Binary(">=", low, ZERO, DType.BOOL))
            self.require(
                condition,
                codes.PARTITION_TOO_LARGE,
                span,
                f"the partition leaves the result on axis {place}",
                (("its lower bound", low),),
                help="indices of a result start at 0",
            )

    # Disjoint boxes

    def assembled(
        self, parts: list[_Part], shape: tuple[Expr, ...], filler: Value | None, node: SacExpression, context: _Context
    ) -> Value:
        """One array of all partitions: the first that covers a position gives its element; `filler` (zeros) fills the rest."""
        kind = parts[-1].kind if filler is None else filler.kind
        for part in parts:
            kind = promote(kind, part.kind) if part.kind is not kind else kind
        if any(
            index_names(bound)
            for part in parts
            for piece in part.bodies
            for interval in piece.box
            for bound in interval
        ):
            return self.chosen(parts, shape, filler, kind, context)
        whole = tuple((ZERO, extent) for extent in shape)
        if len(parts) == 1 and len(parts[0].bodies) == 1 and _covers(parts[0].bodies[0].box, whole):
            piece = parts[0].bodies[0]
            return Value(kind, shape, piece.axes, convert(piece.expr, parts[0].kind, kind))
        limit = _MOST_PIECES_WITH_NUMBERS if self.numbers else _MOST_PIECES
        pieces: list[Piece] = []
        cuts: list[tuple[Interval, ...]] = []
        for part in parts:
            domain = self.domain(_ordered_box(part.box), cuts, limit, node.span)
            cuts.append(_ordered_box(part.box))
            if not domain and not is_empty(part.box):
                self.say(
                    codes.DEAD_PARTITION,
                    part.span,
                    "the partition is hidden by earlier ones",
                    help="the first partition that covers a position wins: put it before them",
                )
            pieces += self.pieces_of(part, domain, kind)
        holes = self.domain(whole, cuts, limit, node.span)
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes)
        rest = zero(compute(kind)) if filler is None else convert(self.element(filler, at, context), filler.kind, kind)
        pieces += [Piece(axes, hole, rest, -1, node.span, "zeros" if filler is None else "default") for hole in holes]
        if holes and filler is None:
            words = "; ".join(
                " x ".join(f"[{self.show(low)}, {self.show(high)})" for low, high in hole) for hole in holes[:4]
            )
            self.say(
                codes.UNCOVERED,
                node.span,
                f"positions that no partition covers are filled with zeros: {words}{' ..' if len(holes) > 4 else ''}",
            )
        return Value(kind, shape, pieces=tuple(pieces))

    def domain(
        self, box: tuple[Interval, ...], cuts: list[tuple[Interval, ...]], limit: int, span: Span
    ) -> list[tuple[Interval, ...]]:
        boxes: list[tuple[Interval, ...]] = [] if any(same(low, high) for low, high in box) else [box]
        for cut in cuts:
            remaining = subtract(boxes, cut, limit)
            if remaining is None and not self.numbers:
                raise _NeedMore(extents=True)
            if remaining is None:
                self.refuse(
                    codes.DEVICE_LIMIT,
                    span,
                    f"the partitions cut the result into more than {limit} boxes",
                    help="use fewer partitions",
                )
            boxes = remaining
        return boxes

    def pieces_of(self, part: _Part, domain: list[tuple[Interval, ...]], kind: Kind) -> list[Piece]:
        """The bodies of a partition over its domain; temporaries inside are computed for each box of their own."""
        names = {part.axes[place] for place in part.named}
        begin, end = part.drafts
        found: list[Piece] = []
        whole = len(domain) == 1 and domain[0] == part.box
        for box in domain:
            renamed: dict[str, str] = {}
            if not whole and any(
                isinstance(d, Draft) and names & {n for n, _ in d.outputs} for d in self.out.drafts[begin:end]
            ):
                ranges = {part.axes[place]: box[place] for place in part.named}
                copies, renamed = self.out.clone(begin, end, ranges, names)
                self.out.drafts += copies
            for piece in part.bodies:
                inside = tuple(
                    a if _is_whole(b, c) else _intersect(a, b) for a, b, c in zip(box, piece.box, part.box, strict=True)
                )
                if any(same(low, high) for low, high in inside):
                    continue
                expr = convert(rename_reads(piece.expr, renamed), part.kind, kind)
                found.append(replace(piece, box=inside, expr=expr))
        return found

    def chosen(
        self, parts: list[_Part], shape: tuple[Expr, ...], filler: Value | None, kind: Kind, context: _Context
    ) -> Value:
        """Partitions whose bounds depend on an outer index: the partition is chosen element by element."""
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes)
        expr = zero(compute(kind)) if filler is None else convert(self.element(filler, at, context), filler.kind, kind)
        for part in reversed(parts):
            for piece in reversed(part.bodies):
                condition: Expr = Const(True, DType.BOOL)
                for index, (low, high) in zip(at, piece.box, strict=True):
                    for test in (Binary("<=", low, index, DType.BOOL), Binary("<", index, high, DType.BOOL)):
                        if not self._always(test):
                            condition = fold(Binary("&&", condition, test, DType.BOOL))
                then = substitute(convert(piece.expr, part.kind, kind), dict(zip(piece.axes, at, strict=True)))
                expr = fold(Select(condition, then, expr, then.dtype))
        return Value(kind, shape, axes, expr)

    def _always(self, test: Binary) -> bool:
        slack = sub(test.right, test.left) if test.op == "<=" else sub(sub(test.right, test.left), ONE)
        return is_nonnegative(slack, self.out.box)

    # With-loops

    def with_loop(self, node: WithLoop, env: _Env, context: _Context) -> Value:
        match node.operator:
            case "genarray":
                return self.genarray(node, env, context)
            case "modarray":
                return self.modarray(node, env, context)
            case _:
                return self.fold(node, env, context)

    def genarray(self, node: WithLoop, env: _Env, context: _Context) -> Value:
        written = node.arguments[0]
        shape_value = self.expr(written, env, context)
        if shape_value.rank == 0:
            frame = (self.index_of(shape_value, written, context),)
        else:
            frame = self.components(shape_value, written.span, context, "the frame of `genarray`")
        frame = tuple(self.bound(extent, written.span) for extent in frame)
        self.check_frame(frame, written.span)
        default = self.expr(node.arguments[1], env, context) if len(node.arguments) > 1 else None
        if not node.generators and default is None:
            default = scalar(ZERO, Weak.INT)
        parts = self.with_parts(node, frame, default.shape if default is not None else None, env, context)
        inner = default.shape if default is not None else tuple(high for _, high in parts[0].box[len(frame) :])
        shape = (*frame, *inner)
        self.check_rank(len(shape), node.span)
        if default is None:
            filler = Value(parts[0].kind, shape, self.axes(shape), zero(compute(parts[0].kind)))
        else:
            filler = self.filled(frame, default, node, context)
        return self.assembled(parts, shape, filler, node, context) if parts else filler

    def modarray(self, node: WithLoop, env: _Env, context: _Context) -> Value:
        array = self.expr(node.arguments[0], env, context)
        if not node.generators:
            return array
        length = self.with_length(node.generators[0], array.rank, env, context)
        if length > array.rank:
            self.refuse(
                codes.BOUND_LENGTH,
                node.generators[0].generator.span,
                f"the bounds have {length} components and the array rank {array.rank}",
            )
        parts = self.with_parts(node, array.shape[:length], array.shape[length:], env, context)
        return self.assembled(parts, array.shape, array, node, context)

    def with_length(self, generator: WithGenerator, default: int, env: _Env, context: _Context) -> int:
        if not generator.pattern.vector:
            return len(generator.pattern.names)
        for bound in (generator.generator.lower, generator.generator.upper):
            found = self.generator_bound(bound, env, context)
            if found is not None:
                return len(found)
        return default

    def with_parts(
        self,
        node: WithLoop,
        frame: tuple[Expr, ...] | None,
        inner: tuple[Expr, ...] | None,
        env: _Env,
        context: _Context,
    ) -> list[_Part]:
        parts: list[_Part] = []
        refused = False
        for number, generator in enumerate(node.generators):
            try:
                part = self.with_part(generator, number, frame, inner, env, context)
                inner = inner if inner is not None else tuple(high for _, high in part.box[len(part.named) :])
                parts.append(part)
            except _Refused:
                refused = True
        if refused:
            raise _Refused
        return parts

    def with_part(
        self,
        generator: WithGenerator,
        number: int,
        frame: tuple[Expr, ...] | None,
        inner: tuple[Expr, ...] | None,
        env: _Env,
        context: _Context,
    ) -> _Part:
        bounds = generator.generator
        lows, highs = self.with_bounds(bounds, frame, env, context)
        pattern = generator.pattern
        length = len(lows) if frame is None else len(frame)
        if not pattern.vector and len(pattern.names) != length:
            self.refuse(
                codes.BOUND_LENGTH,
                pattern.span,
                f"the generator names {len(pattern.names)} indices and its array has {length} axes here",
            )
        for bound, written in ((lows, bounds.lower), (highs, bounds.upper)):
            if len(bound) != length and written is not None:
                self.refuse(
                    codes.BOUND_LENGTH,
                    written.span,
                    f"the bound has {len(bound)} components and the index {length}",
                    help=f"give {length} components",
                )
        names = (
            [f"{_stem(pattern.names[0].name)}{k}" for k in range(length)]
            if pattern.vector
            else [n.name for n in pattern.names]
        )
        indices = tuple(
            self.out.fresh(name, interval) for name, interval in zip(names, zip(lows, highs, strict=True), strict=True)
        )
        local = self.bind_indices(pattern, indices, env)
        drafts_from = len(self.out.drafts)
        within = context.within(indices)
        self.assignments(generator.assigns, (generator.body,), local, within)
        body = self.expr(generator.body, local, within)
        clause = PartitionClause(pattern, generator.body, bounds, generator.span)
        self.check_body_shape(clause, body, indices)
        if inner is not None and len(inner) != body.rank:
            self.refuse(
                codes.SHAPE_MISMATCH,
                generator.body.span,
                f"the body has shape {self.shape_text(body.shape)}, the other elements {self.shape_text(inner)}",
                help="the bodies of all generators and the default element need one shape",
            )
        flat = replace(clause, pattern=Pattern((Name("_"),), True))
        result = None if frame is None else (*frame, *(inner if inner is not None else body.shape))
        return self.placed(flat, number, result, indices, lows, highs, body, drafts_from, context)

    def with_bounds(
        self, bounds: Generator, frame: tuple[Expr, ...] | None, env: _Env, context: _Context
    ) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Both bounds in the form `lower <= iv < upper`; `.` needs a frame."""
        if frame is None:
            for bound in (bounds.lower, bounds.upper):
                if isinstance(bound, Dot):
                    self.refuse(
                        codes.DOT_IN_LAST,
                        bound.span,
                        "`.` is not allowed with `fold`",
                        help="a fold has no shape that it could stand for: write the bound",
                    )
        lows = self.generator_bound(bounds.lower, env, context)
        highs = self.generator_bound(bounds.upper, env, context)
        shape = frame or ()
        if lows is None:
            lows = (ZERO,) * len(shape)
        elif bounds.lower_relation == "<":
            lows = tuple(add(low, ONE) for low in lows)
        if isinstance(bounds.lower, Dot) and bounds.lower_relation == "<":
            lows = (ONE,) * len(shape)
        if highs is None:
            highs = shape
        elif bounds.upper_relation == "<=":
            highs = tuple(add(high, ONE) for high in highs)
        return lows, highs

    def fold(self, node: WithLoop, env: _Env, context: _Context) -> Value:
        neutral = self.expr(node.arguments[0], env, context)
        parts = self.with_parts(node, None, neutral.shape, env, context)
        if not parts:
            return neutral
        kind = neutral.kind
        for part in parts:
            kind = promote(kind, part.kind) if part.kind is not kind else kind
        counts = {len(part.named) for part in parts}
        if len(counts) > 1:
            self.refuse(
                codes.BOUND_LENGTH,
                node.span,
                "the generators of a fold have indices of different lengths",
                help="give all bounds one length",
            )
        (count,) = counts
        operator, kind, combine = self.fold_operator(node, kind, context)
        start = self.converted(neutral, kind)
        pieces: list[Piece] = []
        cuts: list[tuple[Interval, ...]] = []
        for part in parts:
            dependent = any(index_names(bound) for interval in part.box for bound in interval)
            if dependent and len(parts) > 1:
                self.refuse(
                    codes.INHOMOGENEOUS,
                    node.span,
                    "several generators of a fold have bounds that depend on an outer index",
                    help="use one fold per generator",
                )
            domain = [part.box] if dependent else self.domain(_ordered_box(part.box), cuts, _MOST_PIECES, node.span)
            cuts.append(_ordered_box(part.box))
            pieces += (
                self.pieces_of(part, domain, kind)
                if not dependent
                else [replace(p, expr=convert(p.expr, part.kind, kind)) for p in part.bodies]
            )
        if not start.rank:
            return self.combined(
                operator, pieces, count, kind, self.element(start, (), context), combine, node, context, "fold"
            )
        stored = self.stored(start, context)
        axes = self.axes(start.shape)
        content = self.element(stored, tuple(IndexVar(a) for a in axes), context)
        return self._fold_arrays(operator, pieces, count, kind, content, axes, combine, node, context, start.shape)

    def _fold_arrays(
        self,
        operator: str,
        pieces: list[Piece],
        count: int,
        kind: Kind,
        content: Expr,
        axes: tuple[str, ...],
        combine: Expr | None,
        node: WithLoop,
        context: _Context,
        shape: tuple[Expr, ...],
    ) -> Value:
        """A fold of arrays: element by element, the neutral array first."""
        if is_zero_like(content, operator):
            return self.combined(
                operator, pieces, count, kind, identity(operator, compute(kind)), combine, node, context, "fold", shape
            )
        first = Piece((self.out.fresh("z", (ZERO, ONE)), *axes), ((ZERO, ONE), *((ZERO, e) for e in shape)), content)
        if combine is None:
            widened = [replace(p, axes=p.axes) for p in pieces]
            one = replace(
                first,
                axes=(*(self.out.fresh("z", (ZERO, ONE)) for _ in range(count)), *axes),
                box=(*((ZERO, ONE) for _ in range(count)), *((ZERO, e) for e in shape)),
            )
            return self.combined(
                operator,
                [one, *widened],
                count,
                kind,
                identity(operator, compute(kind)),
                None,
                node,
                context,
                "fold",
                shape,
            )
        self.refuse(
            codes.SHAPE_MISMATCH,
            node.arguments[0].span,
            "a fold with a function of the cell combines scalars",
            help="fold each element: put the fold inside a comprehension",
        )

    def fold_operator(self, node: WithLoop, kind: Kind, context: _Context) -> tuple[str, Kind, Expr | None]:
        """The reduction operator, the type in which it combines, and the combining expression of other functions."""
        assert node.function is not None
        name = node.function.name
        if name in ("&&", "||"):
            if kind is not DType.BOOL:
                self.refuse(
                    codes.TYPE_MISMATCH,
                    node.span,
                    f"`fold({name}, ..)` combines `bool`, and this is `{kind_text(kind)}`",
                )
            return ("min" if name == "&&" else "max"), kind, None
        strong = kind if name in ("min", "max") else arithmetic(kind)
        left, right = (
            scalar(Read(FOLD_LEFT, (), compute(strong)), strong),
            scalar(Read(FOLD_RIGHT, (), compute(strong)), strong),
        )
        user = self.own_function(name, [left, right])
        if user is None and name in ("+", "*", "min", "max"):
            return name, strong, None
        if user is None:
            if name in self.cell.functions:
                self.refuse(
                    codes.DECLARED_TYPE,
                    node.function.span,
                    f"no definition of `{name}` takes two scalars of type `{kind_text(kind)}`",
                )
            near = nearest(name, self.cell.functions)
            self.refuse(
                codes.UNKNOWN_NAME,
                node.function.span,
                f"`{name}` cannot be folded with: it is none of `+ * min max && ||` and no function of the cell",
                help=f"did you mean `{near}`?" if near else None,
            )
        return self.user_fold(user, strong, node, context)

    def user_fold(
        self, user: SacFunction, kind: Kind, node: WithLoop, context: _Context
    ) -> tuple[str, Kind, Expr | None]:
        assert node.function is not None
        type_ = user.types[0]
        kind = DType(BASES[type_.base]) if type_ is not None else kind
        left, right = Read(FOLD_LEFT, (), compute(kind)), Read(FOLD_RIGHT, (), compute(kind))
        before = len(self.out.drafts)
        found = self.call(user, [scalar(left, kind), scalar(right, kind)], node.function.span, _Context())
        if found.rank or found.kind is not kind or found.expr is None or len(self.out.drafts) != before:
            self.refuse(
                codes.DECLARED_TYPE,
                node.function.span,
                f"`{user.name.name}` must take two scalars and return one of the same type",
                help="its body may not contain comprehensions",
            )
        known = _known_operator(found.expr, left, right)
        return (known, kind, None) if known else ("fold", kind, found.expr)

    # Other programs

    def known_call(self, node: Apply, operands: list[Value], context: _Context) -> Value:
        """A call of a function that was handed over: its statements in place of the call."""
        other = self.cell.known[node.function.name]
        kinds = [alone(operand.kind) for operand in operands]
        if not isinstance(other, Program):
            types = tuple(ArgumentType(kind, operand.rank) for kind, operand in zip(kinds, operands, strict=True))
            wanted = getattr(other, "program_for", None)
            other = wanted(types) if wanted is not None else getattr(other, "program", None)
        if isinstance(other, tuple):
            first = next((d for d in other if isinstance(d, Diagnostic)), None)
            self.refuse(
                codes.DECLARED_TYPE,
                node.span,
                f"`{node.function.name}` cannot be called with these arguments"
                + (f": {first.message}" if first else ""),
            )
        if not isinstance(other, Program):
            self.refuse(
                codes.UNKNOWN_NAME,
                node.function.span,
                f"`{node.function.name}` is not a function that can be called here",
            )
        return self.inlined(other, node, operands, context)

    def inlined(self, program: Program, node: Apply, operands: list[Value], context: _Context) -> Value:
        name = node.function.name
        if len(program.parameters) != len(operands):
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{name}` takes {len(program.parameters)} arguments, {len(operands)} are given",
            )
        if len(program.results) != 1:
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{name}` has {len(program.results)} results and stands where one is needed",
            )
        arguments: dict[str, str] = {}
        scalars: dict[str, Expr] = {}
        sizes: dict[str, Expr] = {}
        lifted = self._lifted(operands, context)
        for parameter, operand, written in zip(program.parameters, operands, node.arguments, strict=True):
            tensor = program.tensor(parameter)
            if operand.rank != tensor.rank:
                self.refuse(
                    codes.ARGUMENT_RANK,
                    written.span,
                    f"argument `{parameter}` of `{name}` has rank {tensor.rank}, and this has rank {operand.rank}",
                )
            if narrows(operand.kind, tensor.dtype) or (
                isinstance(operand.kind, DType) and operand.kind is not tensor.dtype
            ):
                self.refuse(
                    codes.ARGUMENT_TYPE,
                    written.span,
                    f"argument `{parameter}` of `{name}` is `{kind_text(tensor.dtype)}`, and this is `{kind_text(operand.kind)}`",
                    help=f"cast with `{kind_text(tensor.dtype)}(..)`",
                )
            operand = self.converted(operand, tensor.dtype)
            if not operand.rank and not lifted:
                scalars[parameter] = self.element(operand, (), context)
            else:
                arguments[parameter] = self.handed_over(operand, context, lifted)
            for dim, extent in zip(tensor.dims or (), operand.shape, strict=True):
                self._unify(dim, extent, sizes, written.span, name, parameter)
        result = inline_program(self.out, program, arguments, scalars, sizes, lifted, node.span)
        tensor = self.out.temps[result]
        shape = tuple(Size(f"{result}.{k + len(lifted)}") for k in range(tensor.rank - len(lifted)))
        return self.reading(result, tensor.dtype, shape, node.span, tuple(IndexVar(index) for index in lifted))

    def _lifted(self, operands: Sequence[Value], context: _Context) -> tuple[str, ...]:
        """The enclosing indices that arguments depend on: they become leading dimensions of everything in the callee."""
        names: set[str] = set()
        for operand in operands:
            names |= set(self.needed(operand, context))
        found = tuple(name for name in context.indices if name in names)
        return found

    def handed_over(self, operand: Value, context: _Context, lifted: tuple[str, ...]) -> str:
        """The tensor that holds an argument; with leading dimensions `lifted`."""
        if not lifted and isinstance(operand.expr, Read) and operand.expr.tensor in (*self.out.inputs, *self.out.temps):
            if operand.expr.indices == tuple(IndexVar(axis) for axis in operand.axes) and self._is_all_of(operand):
                return operand.expr.tensor
        shape = tuple(self._hull(self.bound(extent, NO_SPAN)) for extent in operand.shape)
        box = (*((ZERO, self._interval(name)[1]) for name in lifted), *((ZERO, extent) for extent in shape))
        name = self.out.new_temp("t", storage(operand.kind), box)
        self.write(name, operand, context, lifted, NO_SPAN, name)
        return name

    def _is_all_of(self, operand: Value) -> bool:
        assert isinstance(operand.expr, Read)
        extents = [self.out.extent(operand.expr.tensor, d) for d in range(operand.rank)]
        return all(e is not None and same(e, s) for e, s in zip(extents, operand.shape, strict=True))

    def _unify(self, dim: Expr, extent: Expr, sizes: dict[str, Expr], span: Span, name: str, parameter: str) -> None:
        if isinstance(dim, Size) and dim.name not in sizes:
            sizes[dim.name] = extent
            return
        wanted = sizes[dim.name] if isinstance(dim, Size) else dim
        self.require_equal(
            extent,
            wanted,
            codes.SIZE_CONFLICT,
            span,
            f"argument `{parameter}` of `{name}` has another extent than `{name}` declares",
            (("this", extent), ("declared", wanted)),
        )


# Small helpers


def read(tensor: str, indices: tuple[Expr, ...], dtype: DType, span: Span = NO_SPAN) -> Expr:
    """An element of a tensor in the type that arithmetic uses."""
    node = Read(tensor, indices, dtype, span)
    return node if dtype.compute is dtype else Cast(node, dtype.compute, span)


def negative(expr: Expr) -> Expr:
    """`-expr`."""
    if isinstance(expr, Const) and (expr.dtype.is_float or expr.dtype.is_signed):
        return replace(expr, value=-expr.value)
    return fold(Unary("-", expr, expr.dtype))


def is_zero_like(content: Expr, operator: str) -> bool:
    """Whether a neutral element is the identity of the operator itself."""
    return isinstance(content, Const) and content == identity(operator, content.dtype)


def _chain(op: str, items: list[Expr]) -> Expr:
    result = items[0]
    for item in items[1:]:
        result = fold(Binary(op, result, item, item.dtype))
    return result


def _item(items: tuple[Expr, ...] | None, single: Expr | None, k: int) -> Expr:
    if items is not None:
        return items[k]
    assert single is not None
    return single


def _stem(name: str) -> str:
    """`iv` -> `i`: components of an index vector are called `i0`, `i1`."""
    return name[:-1] if len(name) > 1 and name.endswith("v") else name


def _uses(node: SacExpression, name: str, called: bool) -> int:
    """How often a variable is read; inside two loops a use counts as many when its value calls functions."""
    total, stack = 0, [(node, 0)]
    while stack:
        current, loops = stack.pop()
        if isinstance(current, Name) and current.name == name:
            total += 2 if called and loops > 1 else 1
        inner = loops + isinstance(current, SetExpr | WithLoop)
        stack += [(child, inner) for child in sac_children(current)]
    return total


def _rank_of(found: Value) -> Rank:
    return Rank(found.rank, number_of(found.shape[0]) if found.rank == 1 else None)


def _accepts(param: SacParam, operand: Value) -> bool:
    type_ = param.type
    if type_ is None:
        return False
    dtype = DType(BASES[type_.base])
    if operand.kind is not dtype and (
        isinstance(operand.kind, DType) or narrows(operand.kind, dtype) or dtype is DType.BOOL
    ):
        return False
    return _fits_shape(type_, operand.rank, tuple(number_of(e) for e in operand.shape))


def _closeness(param: SacParam, operand: Value) -> int:
    """How well a parameter fits: shape first, then the type that a weak value would have alone."""
    type_ = param.type
    assert type_ is not None
    return 2 * _specificity(type_) + (DType(BASES[type_.base]) is alone(operand.kind))


def _located(expr: Expr, span: Span) -> Expr:
    return replace(expr, span=span) if isinstance(expr, Read) else expr


def _unconditional(expr: Expr | None) -> Iterable[Expr]:
    """Nodes that are evaluated whenever `expr` is."""
    stack = [expr] if expr is not None else []
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Select():
                stack.append(node.condition)
            case Binary() if node.op in LOGICAL:
                stack.append(node.left)
            case Binary():
                stack += [node.left, node.right]
            case Unary() | Cast():
                stack.append(node.operand)
            case Call():
                stack += node.arguments
            case Read():
                stack += node.indices
            case Const() | Size() | IndexVar():
                pass


def _size_names(expr: Expr) -> set[str]:
    return {node.name for node in walk(expr) if isinstance(node, Size)}


def _filled(found: Value, solved: Mapping[str, Expr]) -> Value:
    if not solved:
        return found
    done: dict[str, Expr] = {}
    for name, limit in solved.items():
        done[name] = fill_pending(limit, done)
    pieces = found.pieces
    if pieces is not None:
        pieces = tuple(
            replace(
                p,
                expr=fill_pending(p.expr, done),
                box=tuple((fill_pending(a, done), fill_pending(b, done)) for a, b in p.box),
            )
            for p in pieces
        )
    return replace(
        found,
        shape=tuple(fill_pending(extent, done) for extent in found.shape),
        expr=None if found.expr is None else fill_pending(found.expr, done),
        items=None if found.items is None else tuple(fill_pending(item, done) for item in found.items),
        pieces=pieces,
    )


def _filled_draft(draft: Draft, done: Mapping[str, Expr]) -> Draft:
    def ranges(group: tuple[tuple[str, Interval], ...]) -> tuple[tuple[str, Interval], ...]:
        return tuple((name, (fill_pending(low, done), fill_pending(high, done))) for name, (low, high) in group)

    return replace(
        draft, outputs=ranges(draft.outputs), reductions=ranges(draft.reductions), value=fill_pending(draft.value, done)
    )


def _covers(box: tuple[Interval, ...], whole: tuple[Interval, ...]) -> bool:
    return all(same(a[0], b[0]) and same(a[1], b[1]) for a, b in zip(box, whole, strict=True))


def _ordered_box(box: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """The same box with `lower <= upper` on every axis, for all sizes."""
    return tuple((low, maximum((high, low))) for low, high in box)


def _is_whole(piece: Interval, part: Interval) -> bool:
    return same(piece[0], part[0]) and same(piece[1], part[1])


def _intersect(left: Interval, right: Interval) -> Interval:
    low = minimum((maximum((left[0], right[0])), left[1]))
    return low, maximum((minimum((left[1], right[1])), low))


def _known_operator(expr: Expr, left: Expr, right: Expr) -> str | None:
    """The built-in operator that a combining expression is."""
    if (
        isinstance(expr, Binary)
        and {expr.left, expr.right} == {left, right}
        and expr.op in ("+", "*", "min", "max", "&&", "||")
    ):
        return {"&&": "min", "||": "max"}.get(expr.op, expr.op)
    if isinstance(expr, Select) and isinstance(expr.condition, Binary) and expr.dtype.is_integer:
        test = expr.condition
        if {expr.then, expr.otherwise} == {left, right} and {test.left, test.right} == {left, right}:
            smaller = test.op in ("<", "<=")
            if test.op in ("<", "<=", ">", ">="):
                return "min" if smaller == (test.left == expr.then) else "max"
    return None


def expr_text(expr: Expr) -> str:
    """An integer expression over sizes as Python text."""

    def text(node: Expr, level: int) -> str:
        match node:
            case Const():
                return str(int(node.value)) if level < 3 or node.value >= 0 else f"({int(node.value)})"
            case Size():
                return node.name
            case IndexVar():
                return node.name.partition("'")[0]
            case Read():
                return (
                    node.tensor if not node.indices else f"{node.tensor}[{', '.join(text(i, 0) for i in node.indices)}]"
                )
            case Cast():
                return text(node.operand, level)
            case Unary():
                return f"-{text(node.operand, 3)}"
            case Binary() if node.op in ("min", "max"):
                return f"{node.op}({text(node.left, 0)}, {text(node.right, 0)})"
            case Binary():
                own = 1 if node.op in ("+", "-") else 2 if node.op in ("*", "//", "%") else 0
                inner = f"{text(node.left, own)} {node.op} {text(node.right, own + 1)}"
                return f"({inner})" if level > own else inner
            case Select():
                return f"({text(node.then, 1)} if {text(node.condition, 0)} else {text(node.otherwise, 1)})"
            case Call():
                return f"{node.function}({', '.join(text(a, 0) for a in node.arguments)})"

    return text(expr, 0)
