"""Calls: functions of the cell, built-in functions by name, programs that were handed over.

Worked example: a call of a function of the cell is its body with the arguments in place of the parameters.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Edit, Fix, Span, codes
from tc_jupyter.diagnostics.work import spend
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_printer import type_text
from tc_jupyter.syntax.sac_tree import (
    Apply,
    Assign,
    BrokenAssign,
    If,
    Loop,
    SacExpression,
    SacFunction,
    SacType,
    Statement,
    Unpack,
    assigned_names,
    statement_expressions,
)
from tc_jupyter.syntax.tree import Name

from .expr import COMPARISONS, Const, DType, Expr, IndexVar, Read, Size, int64
from .functions import FUNCTIONS
from .inline import cannot_be_called
from .integers import index_names
from .program import Program
from .sac_emit import NotSolvable, negate, with_call
from .sac_helpers import Uses, accepts, assigned_first, closeness, count_uses, several
from .sac_inline import inline_program
from .sac_primitives import ARITY, CASTS, arities, is_builtin, no_function_help, primitive, usage
from .sac_signature import ArgumentType, Cell, Signature, fits_shape
from .sac_sizes import ZERO, constant, same
from .sac_sizes import value as number_of
from .sac_values import Value, alone, compute, kind_text, narrows, storage, weight
from .sac_with_loops import WithLoops
from .sac_work import (
    DEEPEST_CALLS,
    HEAVY,
    MOST_CALLS,
    MOST_KEPT,
    MOST_REPEATED,
    MOST_STEPS,
    MOST_WEIGHT,
    Context,
    Env,
    Refused,
)

STEPS_PER_EXPRESSION = 10  # to look for a name in it


class Block:
    """Statements, with what is evaluated behind them, and where each name is read: found once, however often it is asked."""

    def __init__(self, statements: Sequence[Statement], behind: Sequence[SacExpression]) -> None:
        self.statements = statements
        self.behind = behind
        self._places: dict[str, list[int]] = {}
        self._counts: dict[str, list[Uses]] = {}  # of all reads up to that place
        for place, statement in enumerate(statements):
            self._add(place, statement_expressions((statement,)))
        self._add(len(statements), behind)

    def _add(self, place: int, expressions: Sequence[SacExpression]) -> None:
        spend(STEPS_PER_EXPRESSION * len(expressions))
        for name, found in count_uses(expressions).items():
            counts = self._counts.setdefault(name, [Uses()])
            self._places.setdefault(name, []).append(place)
            counts.append(counts[-1] + found)

    def uses(self, name: str, start: int) -> Uses:
        """The reads of a name by the statements from `start` on, and behind them."""
        counts = self._counts.get(name)
        return counts[-1] - counts[bisect_left(self._places[name], start)] if counts else Uses()


@dataclass(frozen=True, slots=True)
class Later:
    """What follows a statement: blocks, each from one of its statements on."""

    parts: tuple[tuple[Block, int], ...]

    def after(self, block: Block, start: int = 0) -> Later:
        """What follows where the statements of a block come first."""
        return Later(((block, start), *self.parts))

    def uses(self, name: str, *, called: bool = False) -> int:
        """How often a variable is read; see `Uses`."""
        found = sum((block.uses(name, start) for block, start in self.parts), Uses())
        return found.called if called else found.reads

    def needs(self, name: str) -> bool:
        """Whether a variable may be read before it is assigned again."""
        if not self.uses(name):
            return False
        block, start = self.parts[0]
        return assigned_first(block.statements[start:], name) is not True


class Calls(WithLoops):
    """Calls of functions."""

    def __init__(self, cell: Cell, signature: Signature) -> None:
        super().__init__(cell, signature)
        self.blocks: dict[tuple[int, int], Block] = {}  # by the identities of what they keep

    def declared(self, found: Value, type_: SacType, span: Span, what: str, note: str = "") -> Value:
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
                help=f"its shape is {self.shape_text(found.shape)}{note}",
            )
        if not isinstance(type_.shape, str):
            for axis, (wanted, extent) in enumerate(zip(type_.shape, found.shape, strict=True)):
                if wanted is not None:
                    never = number_of(extent) is not None and not (self.numbers and self.signature.arguments)
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
        self.assigned(function.body, function.results, env, context)
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

    def block(self, statements: Sequence[Statement], behind: Sequence[SacExpression] = ()) -> Block:
        """Statements with the places where names are read."""
        key = (id(statements), id(behind))
        if key not in self.blocks:
            self.blocks[key] = Block(statements, behind)
        return self.blocks[key]

    def assigned(
        self, statements: Sequence[Statement], behind: Sequence[SacExpression], env: Env, context: Context
    ) -> None:
        """The statements before some expressions."""
        self.assignments(self.block(statements, behind), Later(()), env, context)

    def assignments(self, block: Block, rest: Later, env: Env, context: Context) -> None:
        """Statements in order; a wrong one leaves its names without a value. `rest` is what uses them behind all."""
        for position, statement in enumerate(block.statements):
            later = rest.after(block, position + 1)
            try:
                self.statement(statement, later, env, context)
            except Refused:
                env |= dict.fromkeys((name.name for name in assigned_names((statement,))), None)
            except NotSolvable:
                self._not_solvable(statement.span)
                env |= dict.fromkeys((name.name for name in assigned_names((statement,))), None)

    def statement(self, statement: Statement, later: Later, env: Env, context: Context) -> None:
        """One statement."""
        match statement:
            case Assign():
                found = self.expr(statement.value, env, context)
                env[statement.name.name] = self.kept(statement.name.name, found, later, context)
            case Unpack():
                for name, found in zip(statement.names, self.received(statement, env, context), strict=True):
                    env[name.name] = self.kept(name.name, found, later, context)
            case If():
                self.choice(statement, later, env, context)
            case Loop():
                self.loop(statement, later, env, context)
            case BrokenAssign():
                env |= dict.fromkeys(statement.names, None)

    def received(self, statement: Unpack, env: Env, context: Context) -> tuple[Value, ...]:
        """The results of a call, one for each name."""
        found = self.apply(statement.value, env, context)
        if len(found) != len(statement.names):
            name = statement.value.function.name
            self.refuse(
                codes.ARGUMENT_COUNT,
                statement.span,
                f"`{name}` has {several(len(found), 'result')}, and {several(len(statement.names), 'name')} stand on the left",
                help=f"write {several(len(found), 'name')} on the left",
            )
        return found

    def choice(self, node: If, later: Later, env: Env, context: Context) -> None:
        """`if`: one branch where the condition is known; else both, and an element-wise choice for what is used behind it."""
        test = self.condition(node.condition, env, context)
        if isinstance(test, Const):
            branch = node.then if test.value else node.otherwise
            return self.assignments(self.block(branch), later, env, context)
        self.choices += 1
        then, otherwise = dict(env), dict(env)
        with self.where(test):
            self.assignments(self.block(node.then), later, then, context.where(test))
        with self.where(negate(test)):
            self.assignments(self.block(node.otherwise), later, otherwise, context.where(negate(test)))
        for name in dict.fromkeys(each.name for each in assigned_names((node,))):
            if name not in then or name not in otherwise:
                env.pop(name, None)  # known on one way only; whoever uses it is told
                continue
            left, right = then[name], otherwise[name]
            if left is None or right is None or not later.uses(name):
                env[name] = None
                continue
            found = self.either(test, left, right, node.head, context)
            env[name] = self.kept(name, found, later, context)
        return None

    @abstractmethod
    def loop(self, node: Loop, later: Later, env: Env, context: Context) -> None:
        """See `Loops`."""

    def kept(self, name: str, found: Value, later: Later, context: Context) -> Value:
        """The value of a variable: stored where computing it again at each use would be dear."""
        self.homes.setdefault(id(found), (found, context, name))  # a second name changes nothing
        if found.items is not None and found.rank:
            most = MOST_WEIGHT + len(found.items)
            dear = sum(weight(item, most + 1) for item in found.items) > most
            if not dear or not later.uses(name):
                return found
            return as_numbers(found) or self.stored(found, context)
        if found.expr is None:
            return found
        if found.rank == 0 and weight(found.expr) < self.most_kept(found, context):
            return found
        heavy = weight(found.expr)
        spend(3 * heavy)
        uses = later.uses(name, called=with_call(found.expr))
        if (uses > 1 and heavy >= HEAVY) or (uses and heavy >= 300):
            return self.stored(found, context)
        return found

    def most_kept(self, found: Value, context: Context) -> int:
        """How heavy an element may be that is computed again at each use: the less, the more work there is already.

        A chain of choices grows with every link that uses the one before more than once.
        """
        if self.out.made < MOST_STEPS // 8:
            return MOST_KEPT
        return MOST_REPEATED if self.needed(found, context) else HEAVY  # an array is stored, or a number

    def own_function(self, name: str, operands: Sequence[Value]) -> SacFunction | None:
        """The most specific definition of the cell that takes these values."""
        fitting = [f for f in self.cell.functions.get(name, ()) if not f.broken and len(f.params) == len(operands)]
        fitting = [f for f in fitting if all(accepts(p, o) for p, o in zip(f.params, operands, strict=True))]
        return max(
            fitting, key=lambda f: sum(closeness(p, o) for p, o in zip(f.params, operands, strict=True)), default=None
        )

    def call(self, function: SacFunction, operands: Sequence[Value], span: Span, context: Context) -> Value:
        """A call of a function of the cell that stands for one value."""
        return self.one_result(self.results_of(function, operands, span, context), function.name.name, span)

    def one_result(self, found: tuple[Value, ...], name: str, span: Span) -> Value:
        """The only result of a call."""
        if len(found) != 1:
            names = ", ".join("abcdefgh"[: len(found)])
            self.refuse(
                codes.ARGUMENT_COUNT,
                span,
                f"`{name}` has {len(found)} results and stands where one is needed",
                help=f"receive them in a statement of their own: `{names} = {name}(..);`",
            )
        return found[0]

    def results_of(
        self, function: SacFunction, operands: Sequence[Value], span: Span, context: Context
    ) -> tuple[Value, ...]:
        """The results of a call of a function of the cell: its body in place of the call."""
        if function in self.stack:
            self.refuse(
                codes.RECURSIVE_CALL, span, f"`{function.name.name}` calls itself", help="use a comprehension or a fold"
            )
        if len(self.stack) > DEEPEST_CALLS:
            help = "let one function call several others instead of each the next one"
            self.refuse(codes.DEVICE_LIMIT, span, f"calls are nested more than {DEEPEST_CALLS} deep", help=help)
        self.calls += 1
        if self.calls > MOST_CALLS:
            help = "give results that are used several times a name"
            self.refuse(
                codes.DEVICE_LIMIT, span, f"more than {MOST_CALLS} calls are made inside this function", help=help
            )
        env: Env = {}
        for param, operand in zip(function.params, operands, strict=True):
            assert param.type is not None
            bound = self.declared(operand, param.type, span, f"argument `{param.name.name}` of `{function.name.name}`")
            if bound is not operand:
                _, home, name = self.homes.get(id(operand), (operand, context, param.name.name))
                self.homes[id(bound)] = (bound, home, name)
            env[param.name.name] = self.kept(
                param.name.name,
                bound,
                Later(((self.block(function.body, function.results), 0),)),
                context,
            )
        results: list[Value] = []
        for type_, found in zip(function.types, self.body(function, env, context), strict=True):
            if found is None or type_ is None:
                raise Refused
            results.append(self.declared(found, type_, span, f"the result of `{function.name.name}`"))
        return tuple(results)

    def apply(self, node: Apply[SacExpression], env: Env, context: Context) -> tuple[Value, ...]:
        """A call by name: functions of the cell first, then of other cells, then the built-in ones."""
        name = node.function.name
        operands = self.operands(node, env, context)
        user = self.own_function(name, operands)
        if user is not None:
            return self.results_of(user, operands, node.span, context)
        if name in self.cell.known and name not in self.cell.functions:
            other = self.known_program(name, operands)
            if not is_builtin(name) or takes_operands(other, operands):
                return self.known_call(other, node, operands, context)
        known = self.builtin(node, operands, context)
        if known is not None:
            return (known,)
        if name in self.cell.functions:
            self.no_overload(node, operands)
        candidates = [*self.cell.functions, *FUNCTIONS, *ARITY, *self.cell.known]
        self.refuse(
            codes.UNKNOWN_NAME,
            node.function.span,
            f"`{name}` is not a function",
            help=no_function_help(name, candidates),
        )

    def builtin(self, node: Apply[SacExpression], operands: list[Value], context: Context) -> Value | None:
        """A call of a built-in function, or `None` if the name is none of them."""
        name = node.function.name
        if name in BASES or name in CASTS:
            self.count(node, (1,))
            return self.cast(operands[0], DType(BASES.get(name) or CASTS[name]), node.span)
        word = primitive(name) or name
        operator = word in ("+", "-", "*", "/", "%", "&&", "||", "++", "!", "neg") or word in COMPARISONS
        if word == "mod" or (operator and primitive(name) is not None):
            self.count(node, arities(word))
            return self.operate(word, operands, node, context)
        if word in CASTS:
            self.count(node, (1,))
            return self.cast(operands[0], DType(CASTS[word]), node.span)
        if word in ARITY and word.isidentifier():
            self.count(node, arities(word))
            return self.structural(word, operands, node, context)
        return self.mathematical(word, operands, node, context) if word in FUNCTIONS else None

    def operands(self, node: Apply[SacExpression], env: Env, context: Context) -> list[Value]:
        """The arguments of a call; of those of `shape` and `dim` no element is read."""
        name = primitive(node.function.name) or node.function.name
        looks = name in ("shape", "dim") and node.function.name not in self.cell.defined
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
        help, fix = f"it is defined for {wanted}", None
        array = node.arguments[0] if len(operands) == 1 and operands[0].rank else None
        meant = self.own_function(node.function.name, [replace(operand, shape=()) for operand in operands])
        if meant is not None and len(meant.types) == 1 and isinstance(array, Name) and array.name != "iv":
            text = f"{{ iv -> {node.function.name}({array.name}[iv]) }}"
            help, fix = f"{help}; of each element it is `{text}`", Fix(f"write `{text}`", (Edit(node.span, text),))
        self.refuse(
            codes.DECLARED_TYPE,
            node.span,
            f"no definition of `{node.function.name}` takes ({given})",
            help=help,
            fix=fix,
        )

    def count(self, node: Apply[SacExpression], wanted: tuple[int, ...]) -> None:
        """Refuse a wrong number of arguments."""
        if len(node.arguments) not in wanted:
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{node.function.name}` takes {' or '.join(map(str, wanted))} arguments, {len(node.arguments)} are given",
                help=usage(node.function.name),
            )

    def known_program(self, name: str, operands: list[Value]) -> object:
        """What a function of another cell is for these arguments: its program, or the messages why there is none."""
        other = self.cell.known[name]
        if isinstance(other, Program):
            return other
        types = tuple(ArgumentType(alone(operand.kind), operand.rank) for operand in operands)
        wanted = getattr(other, "program_for", None)
        return wanted(types) if wanted is not None else getattr(other, "program", None)

    def known_call(
        self, other: object, node: Apply[SacExpression], operands: list[Value], context: Context
    ) -> tuple[Value, ...]:
        """A call of a function of another cell: its statements in place of the call."""
        if isinstance(other, tuple):
            first = _first_message(other)
            self.refuse(
                codes.DECLARED_TYPE,
                node.span,
                cannot_be_called(node.function.name, first),
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

    def inlined(
        self, program: Program, node: Apply[SacExpression], operands: list[Value], context: Context
    ) -> tuple[Value, ...]:
        """A program in place of a call of it: its results."""
        name = node.function.name
        if len(program.parameters) != len(operands):
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{name}` takes {several(len(program.parameters), 'argument')}, {len(operands)} are given",
                help=f"its parameters are {', '.join(f'`{each}`' for each in program.parameters)}",
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
            if _is_other_type(operand, tensor.dtype):
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
        found: list[Value] = []
        for result in inline_program(self.out, program, arguments, scalars, sizes, lifted, node.span):
            tensor = self.out.temps[result]
            shape = tuple(self.out.extent(result, axis) or ZERO for axis in range(len(lifted), tensor.rank))
            before = tuple(IndexVar(index) for index in lifted)
            found.append(self.reading(result, tensor.dtype, shape, node.span, before))
        return tuple(found)

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
        if index_names(extent):  # its statements are computed for all indices at once
            index = min(index_names(extent)).partition("'")[0]
            self.refuse(
                codes.INHOMOGENEOUS,
                span,
                f"the shape of argument `{parameter}` of `{name}` depends on the value of index `{index}`",
                help=f"a function of another cell needs one shape for all indices: define `{name}` in this cell",
            )
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


def as_numbers(found: Value) -> Value | None:
    """A small array whose elements are known, as they are once they are stored: wrapped as their type does; else `None`."""
    numbers = [constant(item) for item in found.items or ()]
    if None in numbers:
        return None
    dtype = compute(found.kind)
    return replace(found, items=tuple(Const(number, dtype) for number in numbers if number is not None))


def takes_operands(other: object, operands: Sequence[Value]) -> bool:
    """Whether a function of another cell can mean this call; a function with mistakes of its own can, and says so."""
    if isinstance(other, Program):
        tensors = [other.tensor(parameter) for parameter in other.parameters]
        return len(tensors) == len(operands) and all(
            operand.rank == tensor.rank and not _is_other_type(operand, tensor.dtype)
            for tensor, operand in zip(tensors, operands, strict=True)
        )
    first = _first_message(other)
    return first is not None and first.code not in (codes.CALL_ARGUMENTS, codes.DECLARED_TYPE)


def _first_message(found: object) -> Diagnostic | None:
    return next((d for d in found if isinstance(d, Diagnostic)), None) if isinstance(found, tuple) else None


def _is_other_type(operand: Value, dtype: DType) -> bool:
    return narrows(operand.kind, dtype) or (isinstance(operand.kind, DType) and operand.kind is not dtype)
