"""Calls: functions of the cell, built-in functions by name, programs that were handed over.

Worked example: a call of a function of the cell is its body with the arguments in place of the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Span, codes
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_printer import type_text
from tc_jupyter.syntax.sac_tree import Apply, Assign, BrokenAssign, SacExpression, SacFunction, SacType

from .expr import COMPARISONS, DType, Expr, IndexVar, Read, Size, int64
from .functions import FUNCTIONS
from .program import Program
from .sac_emit import NotSolvable, with_call
from .sac_helpers import accepts, closeness, count_uses, several
from .sac_inline import inline_program
from .sac_primitives import ARITY, CASTS, no_function_help, primitive, usage
from .sac_signature import ArgumentType, fits_shape
from .sac_sizes import ZERO, same
from .sac_sizes import value as number_of
from .sac_values import Value, alone, kind_text, narrows, storage, weight
from .sac_with_loops import WithLoops
from .sac_work import DEEPEST_CALLS, HEAVY, MOST_CALLS, Context, Env, Refused


class Calls(WithLoops):
    """Calls of functions."""

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
        if not fits_shape(type_, found.rank, None):
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
                        help=f"declare `.` for axis {axis}, or pass an array of this extent",
                    )
        return self.converted(found, dtype)

    def body(self, function: SacFunction, env: Env, context: Context) -> tuple[Value | None, ...]:
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
            except Refused:
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

    def assignments(self, assigns: Sequence[Assign], rest: Sequence[SacExpression], env: Env, context: Context) -> None:
        """Assignments in order; a wrong one leaves its name without a value."""
        for position, assign in enumerate(assigns):
            try:
                found = self.expr(assign.value, env, context)
                later = [*(a.value for a in assigns[position + 1 :]), *rest]
                env[assign.name.name] = self.kept(assign.name.name, found, later, context)
            except Refused:
                env[assign.name.name] = None
            except NotSolvable:
                self._not_solvable(assign.span)
                env[assign.name.name] = None

    def kept(self, name: str, found: Value, later: Sequence[SacExpression], context: Context) -> Value:
        """The value of a variable: stored where computing it again at each use would be dear."""
        self.homes[id(found)] = (found, context)
        if found.expr is None or (found.rank == 0 and weight(found.expr) < 200):
            return found
        called = with_call(found.expr)
        uses = sum(count_uses(node, name, called) for node in later)
        heavy = weight(found.expr)
        if (uses > 1 and heavy >= HEAVY) or (uses and heavy >= 300):
            return self.stored(found, context, name)
        return found

    def own_function(self, name: str, operands: Sequence[Value]) -> SacFunction | None:
        """The most specific definition of the cell that takes these values."""
        fitting = [f for f in self.cell.functions.get(name, ()) if not f.broken and len(f.params) == len(operands)]
        fitting = [f for f in fitting if all(accepts(p, o) for p, o in zip(f.params, operands, strict=True))]
        return max(
            fitting, key=lambda f: sum(closeness(p, o) for p, o in zip(f.params, operands, strict=True)), default=None
        )

    def call(self, function: SacFunction, operands: Sequence[Value], span: Span, context: Context) -> Value:
        """A call of a function of the cell: its body in place of the call."""
        if function in self.stack or len(self.stack) > DEEPEST_CALLS:
            self.refuse(
                codes.RECURSIVE_CALL, span, f"`{function.name.name}` calls itself", help="use a comprehension or a fold"
            )
        self.calls += 1
        if self.calls > MOST_CALLS:
            help = "give results that are used several times a name"
            self.refuse(
                codes.DEVICE_LIMIT, span, f"more than {MOST_CALLS} calls are made inside this function", help=help
            )
        if len(function.results) != 1:
            self.refuse(
                codes.ARGUMENT_COUNT,
                span,
                f"`{function.name.name}` has {len(function.results)} results and stands where one is needed",
                help="write a function for each result",
            )
        env: Env = {}
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
            raise Refused
        return self.declared(found, function.types[0], span, f"the result of `{function.name.name}`")

    def apply(self, node: Apply[SacExpression], env: Env, context: Context) -> Value:
        """A call by name: the cell's own functions first, then the built-in ones, then functions that were handed over."""
        name = node.function.name
        operands = self.operands(node, env, context)
        user = self.own_function(name, operands)
        if user is not None:
            return self.call(user, operands, node.span, context)
        if name in BASES or name in CASTS:
            self.count(node, 1)
            return self.cast(operands[0], DType(BASES.get(name) or CASTS[name]), node.span)
        word = primitive(name) or name
        operator = word in ("+", "-", "*", "/", "%", "&&", "||", "++", "!", "neg") or word in COMPARISONS
        if operator and primitive(name) is not None:
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
        candidates = [*self.cell.functions, *FUNCTIONS, *ARITY, *self.cell.known]
        self.refuse(
            codes.UNKNOWN_NAME,
            node.function.span,
            f"`{name}` is not a function",
            help=no_function_help(name, candidates),
        )

    def operands(self, node: Apply[SacExpression], env: Env, context: Context) -> list[Value]:
        """The arguments of a call; of those of `shape` and `dim` no element is read."""
        name = primitive(node.function.name) or node.function.name
        looks = name in ("shape", "dim") and node.function.name not in self.cell.functions
        self.shapes_only += looks
        try:
            return [self.expr(argument, env, context) for argument in node.arguments]
        finally:
            self.shapes_only -= looks

    def no_overload(self, node: Apply[SacExpression], operands: list[Value]) -> NoReturn:
        """Say that no definition takes these values."""
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

    def count(self, node: Apply[SacExpression], wanted: int) -> None:
        """Refuse a wrong number of arguments."""
        if len(node.arguments) != wanted:
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{node.function.name}` takes {several(wanted, 'argument')}, {len(node.arguments)} are given",
                help=usage(node.function.name),
            )

    def known_call(self, node: Apply[SacExpression], operands: list[Value], context: Context) -> Value:
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
                help=(first.help if first else None) or "pass arrays of the ranks and types that it is written for",
            )
        if not isinstance(other, Program):
            self.refuse(
                codes.UNKNOWN_NAME,
                node.function.span,
                f"`{node.function.name}` is not a function that can be called here",
                help="functions of `%%tc` and `%%sac` cells can",
            )
        return self.inlined(other, node, operands, context)

    def inlined(self, program: Program, node: Apply[SacExpression], operands: list[Value], context: Context) -> Value:
        """A program in place of a call of it."""
        name = node.function.name
        if len(program.parameters) != len(operands):
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{name}` takes {several(len(program.parameters), 'argument')}, {len(operands)} are given",
                help=f"its parameters are {', '.join(f'`{each}`' for each in program.parameters)}",
            )
        if len(program.results) != 1:
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{name}` has {len(program.results)} results and stands where one is needed",
                help="call a function with one result",
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
                    help=f"call it for each subarray: `{{ iv -> {name}(a[iv]) }}`"
                    if operand.rank > tensor.rank
                    else None,
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

    def _lifted(self, operands: Sequence[Value], context: Context) -> tuple[str, ...]:
        """The enclosing indices that arguments depend on: they become leading dimensions of everything in the callee."""
        names: set[str] = set()
        for operand in operands:
            names |= set(self.needed(operand, context))
        found = tuple(name for name in context.indices if name in names)
        return found

    def handed_over(self, operand: Value, context: Context, lifted: tuple[str, ...]) -> str:
        """The tensor that holds an argument; with leading dimensions `lifted`."""
        if not lifted and isinstance(operand.expr, Read) and self._is_all_of(operand):
            return operand.expr.tensor
        shape = tuple(self._hull(self.bound(extent, NO_SPAN)) for extent in operand.shape)
        box = (*((ZERO, self._interval(name)[1]) for name in lifted), *((ZERO, extent) for extent in shape))
        name = self.out.new_temp("t", storage(operand.kind), box)
        self.write(name, operand, context, lifted, NO_SPAN, name)
        return name

    def _is_all_of(self, operand: Value) -> bool:
        """Whether a value is a whole tensor of the program as it stands."""
        assert isinstance(operand.expr, Read)
        if operand.expr.indices != tuple(IndexVar(axis) for axis in operand.axes):
            return False
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
            help=f"pass an array with the extent that `{name}` declares",
        )
