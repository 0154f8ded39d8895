"""A `%%sac` function and the ranks and types of one call -> an ordinary `Program`; sizes stay symbols.

The function is walked once with arrays that are not computed yet (`Value`). Every comprehension becomes boxes with one scalar
expression each; reductions and arrays that are worth storing become statements. What can only be told with the numbers of a call
is kept as a `Check`.

Worked example: `float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }` for a matrix becomes a program with the sizes `A_0, A_1`
and the statement `result(i0, i1) = A(i0, i1) + 1 where i0 in 0:A_0, i1 in 0:A_1`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from math import prod
from sys import _getframe as frame_at  # pyright: ignore[reportPrivateUsage]
from typing import assert_never

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes, nearest
from tc_jupyter.diagnostics.work import TooMuchWork, allowed, spend, too_much
from tc_jupyter.syntax.sac_foreign import closed
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_printer import signature_text, type_text
from tc_jupyter.syntax.sac_tree import (
    Apply,
    ArrayLiteral,
    Conditional,
    SacExpression,
    SacFunction,
    SacParam,
    SacType,
    Selection,
    SetExpr,
    WithLoop,
    sac_walk,
)
from tc_jupyter.syntax.sac_tree import Binary as BinaryNode
from tc_jupyter.syntax.sac_tree import Unary as UnaryNode
from tc_jupyter.syntax.tree import Name, Number

from .expr import Const, DType, Expr, IndexVar, Select, int64
from .program import Tensor
from .sac_emit import NotSolvable, Temp, negate
from .sac_helpers import several
from .sac_loops import Loops
from .sac_signature import (
    ArgumentType,
    Cell,
    ResultInfo,
    Signature,
    SolvedPartition,
    Specialized,
    select_overload,
    takes,
)
from .sac_sizes import ZERO, constant, fold, is_decidable, sub
from .sac_sizes import value as number_of
from .sac_values import Piece, Value, Weak, compute, kind_text, scalar
from .sac_work import MOST_ITEMS, MOST_STEPS, Context, Env, NeedMore, Refused

STEPS = 1_500_000
"""Of all that is tried for one call. While a cell is analysed there are fewer: what the cell has left for it."""
STEPS_PER_EXPRESSION = 100
MANY = 8  # loops, choices or calls: from here on they are what a function is made of
DEEPEST_FRAMES = 600
"""Open calls of Python below the start; the rest of its limit is left for who calls and for formulas."""


def specialize(cell: Cell, function: SacFunction, signature: Signature) -> Specialized:
    """Specialise `function` to a signature.

    Returns:
        The program with its checks, or the errors, or what else must be in the signature. Never raises for a mistake of the
        user. Sizes stay symbols unless the signature gives extents.
    """
    worker = _Specializer(cell, signature)
    try:
        return _bounded(worker, function)
    except NeedMore as need:
        return Specialized(None, tuple(worker.diagnostics), needs_extents=need.extents, needs_values=need.values)


def _bounded(worker: _Specializer, function: SacFunction) -> Specialized:
    """What the worker makes of a function; a message where that would be too much work."""
    try:
        with allowed(STEPS, reserve=0):
            return worker.run(function)
    except TooMuchWork as problem:
        said = problem
    except RecursionError:
        said = TooMuchWork(TOO_DEEP)
    message = too_much(said, function.name.span, f"`{function.name.name}` is left out", worker.lighter())
    return Specialized(None, (*worker.diagnostics, message))


TOO_DEEP = "expressions and calls are nested too deeply"


def solved_partitions(cell: Cell, function: SacFunction, signature: Signature) -> dict[Span, SolvedPartition]:
    """For every partition of a function, by its place in the text, what a call with this signature makes of it."""
    worker = _Specializer(cell, signature)
    try:
        _bounded(worker, function)
    except NeedMore:
        return {}
    return worker.solved


def _depth() -> int:
    """How many calls of Python are open."""
    frame, count = frame_at(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def _note_of_vector(node: SacExpression) -> str:
    """What helps where the bare name of a pattern was taken for a number: `{ i -> i | i < n }`."""
    if not isinstance(node, SetExpr):
        return ""
    names = [part.pattern.names[0].name for part in node.partitions if part.pattern.vector]
    used = {each.name for part in node.partitions for each in sac_walk(part.body) if isinstance(each, Name)}
    name = next((each for each in names if each in used), None)
    return f"; `{name} -> ..` names the index vector, `[{name}] -> ..` its component" if name else ""


class _Specializer(Loops):
    """All layers: the walk over expressions, parameters and results."""

    def run(self, function: SacFunction) -> Specialized:
        """The specialised function."""
        self.bottom = _depth()
        if len(function.params) != len(self.signature.arguments):
            count = len(function.params)
            self.say(
                codes.CALL_ARGUMENTS,
                function.name.span,
                f"`{function.name.name}` takes {several(count, 'argument')}, {len(self.signature.arguments)} were given",
                help=f"`{signature_text(function)}`",
            )
            return Specialized(None, tuple(self.diagnostics))
        values = dict(self.signature.values)
        env: Env = {}
        for position, (param, argument) in enumerate(zip(function.params, self.signature.arguments, strict=True)):
            try:
                env[param.name.name] = self.parameter(position, param, argument, values.get(position))
            except Refused:
                continue
        inputs = tuple(param.name.name for param in function.params)
        results: tuple[ResultInfo, ...] = ()
        if not self._has_errors():
            results = self.results(function, env)
            for span, at, extent in self.out.outside(tuple(r.tensor for r in results)):
                self.outside(at, extent, span)
            self.check_weight(function)
        if self._has_errors():
            return Specialized(None, self._ordered())
        program = self.out.finish(
            function.name.name, tuple(self.sizes), inputs, tuple(r.tensor for r in results), function.span
        )
        return Specialized(program, self._ordered(), tuple(self.checks), results)

    def check_weight(self, function: SacFunction) -> None:
        """Refuse a function of so many statements and operations that the later stages would take seconds for it."""
        steps = self.out.steps()
        if steps > MOST_STEPS:
            self.say(
                codes.DEVICE_LIMIT,
                function.name.span,
                f"`{function.name.name}` becomes {several(len(self.out.drafts), 'statement')}, {steps / MOST_STEPS:.1f} times "
                "the work that a function may be",
                help=self.lighter(),
            )

    def lighter(self) -> str:
        """What to write in place of the construct that a function has most of."""
        counts = {"rounds": self.rounds, "choices": self.choices, "calls": self.calls}
        most = max(counts, key=lambda word: counts[word])
        if counts[most] < MANY:
            return "split it into functions that Python calls one after the other"
        match most:
            case "rounds":
                return (
                    f"its loops run {self.rounds} times and are written out: let them run fewer times, "
                    "or write comprehensions and folds in their place"
                )
            case "choices":
                return (
                    f"both ways of {self.choices} `if`s are computed, as no call decides their conditions: write those that are "
                    "alike as one fold over an array of what differs, or split the function into several that Python calls"
                )
            case _:
                return (
                    f"the bodies of {self.calls} calls stand in their places: give results that are used several times a name, "
                    "or call fewer functions"
                )

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
        if not takes(param, argument):
            given = (
                f"`{kind_text(argument.dtype)}` of rank {argument.rank}"
                if argument.extents is None
                else f"`{kind_text(argument.dtype)}` of shape {list(argument.extents)}"
            )
            self.say(
                codes.DECLARED_TYPE,
                param.span,
                f"argument `{name}` is declared `{type_text(type_)}` and received {given}",
                help="pass an array of the declared type",
            )
        self.check_rank(argument.rank, param.span)
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

    def results(self, function: SacFunction, env: Env) -> tuple[ResultInfo, ...]:
        """The results of the function, written to their tensors."""
        context = Context()
        names = self._result_names(function)
        values = self.body(function, env, context)
        infos: list[ResultInfo] = []
        for position, (type_, found) in enumerate(zip(function.types, values, strict=True)):
            if found is None:
                continue
            try:
                infos.append(self.result(function, position, type_, found, names[position], context))
            except Refused:
                continue
            except NotSolvable:
                self._not_solvable(function.results[position].span)
        return tuple(infos)

    def _result_names(self, function: SacFunction) -> list[str]:
        names: dict[str, None] = {}
        again: Counter[str] = Counter()  # how many were made of each that was taken
        for position, node in enumerate(function.results):
            base = (
                node.name if isinstance(node, Name) else "result" if len(function.results) == 1 else f"result{position}"
            )
            name = base
            while name in self.out.inputs or name in names:
                again[base] += 1
                name = f"{base}_out{again[base] if again[base] > 1 else ''}"
            names[name] = None
        for name in names:
            self.out.temps[name] = Temp(name, DType.BOOL, None)  # reserves the name
        return list(names)

    def result(
        self, function: SacFunction, position: int, type_: SacType | None, found: Value, name: str, context: Context
    ) -> ResultInfo:
        """One result."""
        assert type_ is not None
        span = function.results[position].span
        found = self.declared(
            found,
            type_,
            span,
            f"result {position} of `{function.name.name}`"
            if len(function.types) > 1
            else f"the result of `{function.name.name}`",
            _note_of_vector(function.results[position]),
        )
        dtype = DType(BASES[type_.base])
        shape = tuple(self.bound(extent, span) for extent in found.shape)
        self.out.temps[name] = Temp(name, dtype, tuple((ZERO, extent) for extent in shape), "output")
        self.write(name, found, context, (), span, self.text(span))
        return ResultInfo(name, dtype, len(shape), type_text(type_))

    def expr(self, node: SacExpression, env: Env, context: Context) -> Value:
        """The value of an expression."""
        spend(STEPS_PER_EXPRESSION)
        if _depth() - self.bottom > DEEPEST_FRAMES:
            raise TooMuchWork(TOO_DEEP)
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
                return self.one_result(self.apply(node, env, context), node.function.name, node.span)
            case SetExpr():
                return self.comprehension(node, env, context)
            case WithLoop():
                return self.with_loop(node, env, context)
        assert_never(node)

    def binary(self, node: BinaryNode[SacExpression], env: Env, context: Context) -> Value:
        """An operator with two operands; `&&` and `||` guard their right one."""
        left = self.expr(node.left, env, context)
        if node.op in ("&&", "||") and left.rank == 0 and left.expr is not None and left.kind is DType.BOOL:
            right = self.branch(node.right, left.expr if node.op == "&&" else negate(left.expr), env, context)
            return self.operate(node.op, [left, right], node, context)
        return self.operate(node.op, [left, self.expr(node.right, env, context)], node, context)

    def name(self, node: Name, env: Env) -> Value:
        """A variable."""
        if node.name not in env:
            near = nearest(node.name, env)
            self.refuse(
                codes.UNKNOWN_NAME,
                node.span,
                f"`{node.name}` is not known",
                help=f"did you mean `{near}`?" if near else "assign it first",
            )
        found = env[node.name]
        if found is None:
            raise Refused
        return found

    def number(self, node: Number) -> Value:
        """A literal."""
        if node.type is not None:
            dtype = DType(node.type)
            return scalar(Const(node.value, dtype, node.span), dtype)
        if isinstance(node.value, float):
            return scalar(Const(node.value, DType.FLOAT64, node.span), Weak.FLOAT)
        if node.value >= 1 << 63:
            return scalar(Const(node.value, DType.UINT64, node.span), DType.UINT64)
        return scalar(Const(node.value, DType.INT64, node.span), Weak.INT)

    @contextmanager
    def where(self, test: Expr) -> Generator[None]:
        """What is demanded inside is demanded only where `test` holds, if a call can decide it."""
        known = is_decidable(test, self.out.inputs)
        if known:
            self.assumed.append(test)
        try:
            yield
        finally:
            if known:
                self.assumed.pop()

    def branch(self, node: SacExpression, test: Expr, env: Env, context: Context) -> Value:
        """An expression that is evaluated only where `test` holds."""
        with self.where(test):
            return self.expr(node, env, context.where(test))

    def condition(
        self, node: SacExpression, env: Env, context: Context, choice: Conditional[SacExpression] | None = None
    ) -> Expr:
        """A scalar truth value; `choice` is the `c ? a : b` whose condition it is."""
        condition = self.scalar_of(self.expr(node, env, context), node, context, *self.chosen_by_element(choice))
        if condition.kind is not DType.BOOL:
            place = closed(self.cell.source, node.span)
            number = self.text(place)
            text = f"({number}) != 0" if re.search("[?&|=<>]", number) else f"{number} != 0"
            message = f"the condition is `{kind_text(condition.kind)}`, not `bool`"
            fix = Fix(f"write `{text}`", (Edit(place, text),))
            self.refuse(codes.TYPE_MISMATCH, node.span, message, fix=fix)
        assert condition.expr is not None
        known = constant(condition.expr)
        return condition.expr if known is None else Const(bool(known), DType.BOOL)

    def chosen_by_element(self, choice: Conditional[SacExpression] | None) -> tuple[str | None, Fix | None]:
        """Help and fix where the condition of `c ? a : b` is an array."""
        if choice is None:
            return None, None
        parts = (choice.condition, choice.then, choice.otherwise)
        places = [closed(self.cell.source, part.span) for part in parts]
        text = f"where({', '.join(self.text(place) for place in places)})"
        fix = Fix(f"write `{text}`", (Edit(places[0] | places[2], text),)) if len(text) < 200 else None
        return "`c ? a : b` chooses one of two; element by element `where(mask, a, b)` does", fix

    def conditional(self, node: Conditional[SacExpression], env: Env, context: Context) -> Value:
        """`c ? a : b`; only one branch where `c` is known."""
        test = self.condition(node.condition, env, context, node)
        if isinstance(test, Const):
            return self.expr(node.then if test.value else node.otherwise, env, context)
        then = self.branch(node.then, test, env, context)
        otherwise = self.branch(node.otherwise, negate(test), env, context)
        return self.either(test, then, otherwise, node.span, context)

    def either(self, test: Expr, then: Value, otherwise: Value, span: Span, context: Context) -> Value:
        """`then` where `test` holds, else `otherwise`: both need one shape."""
        kind = self.common_kind((then, otherwise))
        if then.rank != otherwise.rank:
            self.refuse(
                codes.SHAPE_MISMATCH,
                span,
                f"the branches have ranks {then.rank} and {otherwise.rank}",
                help="both branches need one shape",
            )
        then, otherwise = self.converted(then, kind), self.converted(otherwise, kind)
        return self.elementwise(
            [then, otherwise],
            kind,
            lambda e: fold(Select(test, e[0], e[1], e[0].dtype)),
            span,
            context,
            extend=False,
        )

    def literal(self, node: ArrayLiteral, env: Env, context: Context) -> Value:
        """An array literal."""
        if not node.elements:
            return Value(Weak.INT, (ZERO,), items=())
        rows = [self.expr(element, env, context) for element in node.elements]
        first = rows[0]
        kind = self.common_kind(rows)
        for element, row in zip(node.elements[1:], rows[1:], strict=True):
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
                    help="all elements need one shape",
                )
        rows = [self.converted(row, kind) for row in rows]
        shape = (int64(len(rows)), *first.shape)
        extents = first.extents
        if (
            extents is not None
            and prod(extents) * len(rows) <= max(MOST_ITEMS, len(rows))
            and prod(extents) <= MOST_ITEMS
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


__all__ = ["ArgumentType", "Signature", "Specialized", "select_overload", "solved_partitions", "specialize"]
