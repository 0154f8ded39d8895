"""Tree of a `%%sac` cell -> checked functions: everything that can be said before a call.

Names, calls, patterns and demands are checked for every function. Where all ranks are declared the function is specialised at once,
so that bounds, shapes and partitions are checked too; elsewhere this waits for the first call.

Worked example: `int[.] f(int[.] v) { return { [i] -> take([i], v) | [i] < [3] }; }` is refused: the shape of the body needs the
value of `i` (TC252).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from tc_jupyter.diagnostics import Code, Diagnostic, Edit, Fix, Label, SourceText, Span, codes, nearest
from tc_jupyter.diagnostics.work import allowed, in_turn
from tc_jupyter.syntax import library_names, tree
from tc_jupyter.syntax.sac_foreign import along_axis, closed, free_indices, has_one_subscript
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_printer import sac_to_text, signature_text, type_text
from tc_jupyter.syntax.sac_tree import (
    Apply,
    ArrayLiteral,
    Assign,
    BrokenAssign,
    Generator,
    If,
    Loop,
    SacExpression,
    SacFunction,
    SacUnit,
    Selection,
    SetExpr,
    Statement,
    TripleDot,
    Unpack,
    WithLoop,
    assigned_names,
    generator_bounds,
    sac_children,
    sac_expressions,
    sac_walk,
)
from tc_jupyter.syntax.tree import Name, Number

from .expr import Binary, DType
from .functions import FUNCTIONS
from .program import Equality, Program
from .sac_bounds import slack
from .sac_demands import Demands
from .sac_helpers import several
from .sac_primitives import ARITY, CASTS, arities, builtin_names, is_builtin, no_function_help, primitive, usage
from .sac_signature import ArgumentType, Cell, Check, Signature, Specialized, select_overload
from .sac_sizes import ZERO, minimum
from .sac_work import DEEPEST_CALLS
from .specialize import STEPS, specialize

OF_ALL = frozenset({"sum", "prod", "minval", "maxval", "all", "any"})
"""Functions that combine all elements."""

Elements = Callable[[int], tuple[int | float | bool, ...]]
"""Gives the elements (row-major) of the argument at a position; asked only where a shape needs them."""


@dataclass(frozen=True, slots=True)
class CheckedFunction:
    """One definition of a function.

    Attributes:
        demands: level needed of each parameter: `N` nothing, `D` rank, `S` shape, `F` value.
        specialized: the function for its declared ranks, where all of them are declared; else `None`.
    """

    function: SacFunction
    cell: Cell
    demands: Mapping[str, str]
    specialized: Specialized | None = None

    @property
    def name(self) -> str:
        """The name, which may be an operator."""
        return self.function.name.name

    @property
    def signature(self) -> str:
        """`float[*] increment(float[*] A)`."""
        return signature_text(self.function)

    @property
    def program(self) -> Program | None:
        """The program for the declared ranks; `None` where a rank is open, where numbers are needed, or after an error."""
        return self.specialized.program if self.specialized else None

    @property
    def declared(self) -> tuple[ArgumentType, ...] | None:
        """Types and ranks of the parameters; `None` where one is open."""
        return _declared(self.function)

    @property
    def rank_is_open(self) -> bool:
        """Whether a parameter accepts several ranks."""
        return self.declared is None

    def program_for(self, arguments: Sequence[ArgumentType]) -> Program | tuple[Diagnostic, ...]:
        """The program for arguments of these types, sizes as symbols; for callers in another language."""
        found = specialize(self.cell, self.function, Signature(tuple(arguments)))
        return found.diagnostics if found.program is None else _with_conditions(found.program, found.checks)


def _declared(function: SacFunction) -> tuple[ArgumentType, ...] | None:
    arguments: list[ArgumentType] = []
    for param in function.params:
        if param.type is None or param.type.rank is None:
            return None
        arguments.append(ArgumentType(DType(BASES[param.type.base]), param.type.rank))
    return tuple(arguments)


def _with_conditions(program: Program, checks: Sequence[Check]) -> Program:
    """The program with what a call must fulfil as part of it, so that a caller inherits it: `e >= 0` as `min(e, 0) = 0`."""
    rooms = [
        (check, slack(check.condition))
        for check in checks
        if not (isinstance(check.condition, Binary) and check.condition.op == "==")  # these are equalities already
    ]
    added = tuple(
        Equality(minimum((room, ZERO)), ZERO, "call", check.message, check.span)
        for check, room in rooms
        if room is not None
    )
    return replace(program, equalities=(*program.equalities, *added))


@dataclass(frozen=True, slots=True)
class CheckedSac:
    """A checked cell: definitions by name, in text order, and all messages in source order."""

    functions: Mapping[str, tuple[CheckedFunction, ...]]
    diagnostics: tuple[Diagnostic, ...]
    source: SourceText

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(diagnostic.is_error for diagnostic in self.diagnostics)


@dataclass(frozen=True, slots=True)
class SacCall:
    """A call that was matched with a definition: what to run, and the signature that says for which calls it holds."""

    function: CheckedFunction | None
    signature: Signature
    specialized: Specialized | None
    diagnostics: tuple[Diagnostic, ...] = ()


def check_sac(unit: SacUnit, source: SourceText, known: Mapping[str, object] | None = None) -> CheckedSac:
    """Check a cell.

    Args:
        known: functions of earlier cells, of either language, by name: a `Program`, or something with
            `program_for(argument types)`.

    Returns:
        All definitions with what is known of them, and every message. Never raises for a mistake of the user.
    """
    groups: dict[str, list[SacFunction]] = {}
    for function in unit.functions:
        groups.setdefault(function.name.name, []).append(function)
    cell = Cell({name: tuple(group) for name, group in groups.items()}, source, dict(known or {}))
    checker = _Checker(cell)
    functions: dict[str, tuple[CheckedFunction, ...]] = dict.fromkeys(groups, ())
    for function, limit in in_turn(unit.functions):
        with limit:
            functions[function.name.name] += (checker.function(function),)
    checker.repeated()
    diagnostics = tuple(sorted(checker.diagnostics, key=lambda d: (d.span.start, d.span.end, d.code.number)))
    return CheckedSac(functions, diagnostics, source)


def bind_call(
    functions: Sequence[CheckedFunction],
    arguments: Sequence[ArgumentType],
    elements: Elements,
    *,
    fixed: bool = False,
    scalars: bool = False,
) -> SacCall:
    """Choose the definition for a call and specialise it.

    Args:
        functions: all definitions of one name.
        arguments: types of the arguments, with their extents.
        elements: gives the elements of an argument whose value decides a shape.
        fixed: put the extents into the signature although the ranks would do.
        scalars: put the integer scalars into it too.

    Returns:
        The definition with its specialisation, and the signature: another call with the same signature (extents are only in
        it when they matter: empty axes, partitions that can be ordered only with numbers, demanded values) may reuse it.
    """
    with allowed(STEPS):
        return _bound_call(functions, arguments, elements, fixed, scalars)


def _bound_call(
    functions: Sequence[CheckedFunction],
    arguments: Sequence[ArgumentType],
    elements: Elements,
    fixed: bool,
    scalars: bool,
) -> SacCall:
    chosen = select_overload([f.function for f in functions], arguments)
    function = next((f for f in functions if f.function is chosen), None)
    bare = Signature(tuple(ArgumentType(a.dtype, a.rank) for a in arguments))
    if function is None:
        return SacCall(None, bare, None, (_no_overload(functions, arguments),))
    empty = any(
        0 in (argument.extents or ()) for argument in arguments
    )  # symbols stand for sizes of at least 1 later on
    signature = Signature(tuple(arguments)) if fixed or scalars or empty else bare
    if scalars:
        places = [at for at, argument in enumerate(arguments) if argument.rank == 0 and argument.dtype.is_integer]
        signature = replace(signature, values=tuple((at, elements(at)) for at in places))
    found = specialize(function.cell, function.function, signature)
    for _ in range(3):
        if not found.needs_extents and not found.needs_values:
            break
        signature = Signature(tuple(arguments), tuple((at, elements(at)) for at in found.needs_values))
        found = specialize(function.cell, function.function, signature)
    return SacCall(function, signature, found, found.diagnostics)


def _no_overload(functions: Sequence[CheckedFunction], arguments: Sequence[ArgumentType]) -> Diagnostic:
    function = functions[0].function
    name = function.name.name
    counts = {len(f.function.params) for f in functions}
    if len(arguments) not in counts:
        wanted = " or ".join(str(count) for count in sorted(counts))
        message = f"`{name}` takes {wanted} argument{'' if wanted == '1' else 's'}, {len(arguments)} were given"
        return Diagnostic(codes.CALL_ARGUMENTS, function.signature_span, message, help=f"`{functions[0].signature}`")
    if len(functions) == 1:
        for param, argument in zip(function.params, arguments, strict=True):
            if param.type is not None and select_overload([_single(function, param.name.name)], [argument]) is None:
                message = f"argument `{param.name.name}` is declared `{type_text(param.type)}` and received {_given(argument)}"
                return Diagnostic(
                    codes.DECLARED_TYPE, param.span, message, help=_type_help(BASES[param.type.base], argument)
                )
    given = ", ".join(_given(argument) for argument in arguments)
    options = "; ".join(f"`{f.signature}`" for f in functions)
    return Diagnostic(
        codes.DECLARED_TYPE,
        function.signature_span,
        f"no definition of `{name}` takes {given}",
        help=f"it is defined as {options}",
    )


def _single(function: SacFunction, name: str) -> SacFunction:
    param = next(p for p in function.params if p.name.name == name)
    return SacFunction((), function.name, (param,), (), ())


def _given(argument: ArgumentType) -> str:
    words = {DType.INT32: "int", DType.INT64: "long", DType.FLOAT32: "float", DType.FLOAT64: "double"}
    word = words.get(argument.dtype, argument.dtype.value)
    if argument.rank == 0:
        return f"a scalar `{word}`"
    return (
        f"`{word}` of shape {list(argument.extents)}"
        if argument.extents is not None
        else f"`{word}` of rank {argument.rank}"
    )


def _type_help(base: str, argument: ArgumentType) -> str | None:
    return (
        f"convert it with `.astype({base!r})`"
        if argument.dtype.value != base
        else "pass an array of the declared shape"
    )


class _Checker:
    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.diagnostics: list[Diagnostic] = []
        self.said: set[Diagnostic] = set()
        self.demands = Demands(cell.defined)
        self.partly: set[str] = set()  # names that have a value on some ways only
        self.unread: set[str] = set()  # names whose value was refused
        self.depths, self.recursive, self.deepest = self._calls()

    def say(
        self,
        code: Code,
        span: Span,
        message: str,
        *,
        help: str | None = None,
        labels: tuple[Label, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        self.keep(Diagnostic(code, span, message, labels=labels, help=help, fix=fix))

    def keep(self, new: Diagnostic) -> None:
        """Add a message, once."""
        if new not in self.said:
            self.said.add(new)
            self.diagnostics.append(new)

    def function(self, function: SacFunction) -> CheckedFunction:
        """Check one definition."""
        before = len(self.diagnostics)
        self.parameters(function)
        self.names(function)
        wrong = function.broken or any(d.is_error for d in self.diagnostics[before:])
        recursive = id(function) in self.recursive
        if recursive:
            self.say(
                codes.RECURSIVE_CALL,
                function.name.span,
                f"`{function.name.name}` calls itself, directly or through others",
                help="use a comprehension or a fold",
            )
        deep = self.depths.get(id(function), 0) > DEEPEST_CALLS
        if id(function) in self.deepest:
            self.say(
                codes.DEVICE_LIMIT,
                function.name.span,
                f"below `{function.name.name}` calls are nested {self.depths[id(function)]} deep; the limit is {DEEPEST_CALLS}",
                help="let one function call several others instead of each the next one",
            )
        found = self.demands.levels(function) if not recursive else {}
        if not function.broken and not recursive:
            self.homogeneous(function)
        wrong = wrong or recursive or deep or any(d.is_error for d in self.diagnostics[before:])
        specialized = None if wrong else self.specialized(function)
        return CheckedFunction(function, self.cell, found, specialized)

    def specialized(self, function: SacFunction) -> Specialized | None:
        """The function for its declared ranks, if all are declared."""
        arguments = _declared(function)
        if arguments is None:
            return None
        found = specialize(self.cell, function, Signature(arguments))
        for diagnostic in found.diagnostics:
            self.keep(diagnostic)
        return found

    def parameters(self, function: SacFunction) -> None:
        seen: dict[str, Span] = {}
        for param in function.params:
            name = param.name.name
            if name in seen:
                self.say(
                    codes.DUPLICATE_NAME,
                    param.name.span,
                    f"two parameters are called `{name}`",
                    help="rename one",
                    labels=(Label(seen[name], "the first"),),
                )
            seen.setdefault(name, param.name.span)

    def repeated(self) -> None:
        """Two definitions that differ in nothing a call could tell."""
        for name, group in self.cell.functions.items():
            seen: dict[tuple[str, ...], SacFunction] = {}
            for function in group:
                key = tuple(type_text(p.type) if p.type else "" for p in function.params)
                if key in seen:
                    self.say(
                        codes.DUPLICATE_NAME,
                        function.name.span,
                        f"`{name}` is defined twice for the same types",
                        help="rename one, or give it other parameter types",
                        labels=(Label(seen[key].name.span, "the first"),),
                    )
                seen.setdefault(key, function)

    def names(self, function: SacFunction) -> None:
        """Every name and every call in the text of a function."""
        scope = {param.name.name for param in function.params}
        used: set[str] = set()
        self.partly = set()
        self.unread = set()
        before = len(self.diagnostics)
        self.statements(function.body, scope, used)
        for result in function.results:
            self.expression(result, self.element(result, scope), used)
        if function.broken or any(each.is_error for each in self.diagnostics[before:]):
            return  # who mends that may use them
        for name, span in {each.name: each.span for each in assigned_names(function.body)}.items():
            if name not in used:
                self.say(codes.UNUSED, span, f"`{name}` is never used", help="remove it; it is not computed")

    def statements(self, statements: Sequence[Statement], scope: set[str], used: set[str]) -> None:
        """The names in statements; adds to the scope what is known behind them whatever the conditions are."""
        for statement in statements:
            match statement:
                case Assign():
                    self.expression(statement.value, self.element(statement.value, scope), used)
                    scope.add(statement.name.name)
                case Unpack():
                    self.expression(statement.value, scope, used)
                    self.received(statement)
                    scope |= {name.name for name in statement.names}
                case If():
                    self.expression(statement.condition, scope, used)
                    then, otherwise = set(scope), set(scope)
                    self.statements(statement.then, then, used)
                    self.statements(statement.otherwise, otherwise, used)
                    self.partly |= then ^ otherwise
                    scope |= then & otherwise
                case Loop():
                    self.statements(statement.start, scope, used)
                    inside = scope if statement.word == "do" else set(scope)
                    if statement.word != "do":
                        self.expression(statement.condition, scope, used)
                    self.statements((*statement.body, *statement.step), inside, used)
                    self.expression(statement.condition, inside, used)
                    self.partly |= inside - scope
                case BrokenAssign():
                    self.unread |= set(statement.names)
                    scope.update(statement.names)
                    used.update(statement.names)

    def received(self, statement: Unpack) -> None:
        """Whether the only definition that a call can mean has as many results as names receive them."""
        name = statement.value.function.name
        counts = {
            len(f.types) for f in self.cell.functions.get(name, ()) if len(f.params) == len(statement.value.arguments)
        }
        if name not in self.cell.defined and (name in BASES or is_builtin(name)):
            counts = {1}
        given = len(statement.names)
        if counts and given not in counts:
            text = f"`{name}` has {several(min(counts), 'result')}, and {several(given, 'name')} receive{'s' * (given == 1)} them"
            self.say(
                codes.ARGUMENT_COUNT, statement.span, text, help=f"write {several(min(counts), 'name')} on the left"
            )

    def expression(self, node: SacExpression, scope: set[str], used: set[str]) -> None:
        match node:
            case Name():
                used.add(node.name)
                if node.name not in scope:
                    self.unknown(node, scope)
            case SetExpr():
                for clause in node.partitions:
                    self.bounds(clause.generator, scope, used)
                    self.expression(clause.body, scope | {name.name for name in clause.pattern.bound}, used)
            case WithLoop():
                self.with_loop(node, scope, used)
            case tree.Binary(op="==" | "!=" | "<" | "<=" | ">" | ">="):
                for child in self.without_nan(node, scope):
                    self.expression(child, scope, used)
            case tree.Binary(op="*"):
                self.rounded_quotients(node.left, node.right)
                for child in (node.left, node.right):
                    self.expression(child, scope, used)
            case Apply():
                if node.function.name == "pow":
                    self.rounded_quotients(*node.arguments)
                self.call(node, scope)
                scope = self.summed(node, scope)
                function = self.passed_function(node, scope)
                for argument in node.arguments:
                    if argument is not function:
                        self.expression(argument, scope, used)
            case Selection():
                self.selection(node)
                for child in sac_children(node):
                    self.expression(child, scope, used)
            case ArrayLiteral():
                self.literal(node)
                for child in node.elements:
                    self.expression(child, scope, used)
            case _:
                for child in sac_children(node):
                    self.expression(child, scope, used)

    def summed(self, node: Apply[SacExpression], scope: set[str]) -> set[str]:
        """Tell of `sum(a[i, j])`, whose indices nothing names; the scope with them."""
        word = primitive(node.function.name) or node.function.name
        if len(node.arguments) != 1 or word not in OF_ALL or isinstance(node.arguments[0], SetExpr):
            return scope
        if node.function.span.start > node.arguments[0].span.start:
            return scope  # `a[i].sum()`, which is told as such
        start = self.cell.source.text.index("(", node.function.span.end) + 1
        return self.without_pattern(
            node.arguments[0], Span(start, node.span.end - 1), scope, f"{word}({{ [i] -> 2 * a[i] }})"
        )

    def element(self, node: SacExpression, scope: set[str]) -> set[str]:
        """Tell of a value `2 * a[i]`, whose indices nothing names; the scope with them."""
        place = closed(self.cell.source, node.span)
        return self.without_pattern(node, place, scope, "{ [i] -> 2 * a[i] }", whole=True)

    def without_pattern(
        self, node: SacExpression, place: Span, scope: set[str], example: str, whole: bool = False
    ) -> set[str]:
        """Tell of the indices of a value that nothing names; `whole`: the value has one element for each of them."""
        found = free_indices(node, scope | self.unread)
        names = [name for name in found if nearest(name, sorted(scope)) is None and name not in self.partly]
        if whole and any(isinstance(each, Apply) and each.function.name in OF_ALL for each in sac_walk(node)):
            return scope
        if not names:
            return scope
        edits = (
            Edit(Span(place.start, place.start), f"{{ [{', '.join(names)}] -> "),
            Edit(Span(place.end, place.end), " }"),
        )
        fix = Fix("name the indices", edits) if not whole or has_one_subscript(node, names) else None
        first = next(each for each in sac_walk(node) if isinstance(each, Name) and each.name in names)
        help = f"indices are named before `->`, as in `{example}`; they run as far as what they index"
        self.say(codes.UNKNOWN_NAME, first.span, f"`{first.name}` is not known", help=help, fix=fix)
        return scope | set(names)

    def without_nan(self, node: tree.Binary[SacExpression], scope: set[str]) -> list[SacExpression]:
        """The operands of a comparison; tell of one that is NaN, which says the same about every value."""
        for nan, other in ((node.right, node.left), (node.left, node.right)):
            number = nan.operand if isinstance(nan, tree.Unary) else nan
            named = (
                isinstance(number, Name)
                and number.name not in scope
                and library_names.CONSTANTS.get(number.name) == "nan"
            )
            if not named and not (isinstance(number, Number) and number.text == "nan"):
                continue
            truth, equal = "always" if node.op == "!=" else "never", node.op in ("==", "!=")
            text = f"{'!' * (node.op == '!=')}isnan({sac_to_text(other)})"
            fix = Fix(f"write `{text}`", (Edit(node.span, text),)) if equal and len(text) < 200 else None
            why = "equal to nothing" if equal else "neither less nor greater"
            message = f"`{sac_to_text(node)}` is {truth} true: NaN is {why}"
            help = "`isnan(x)` says whether `x` is NaN"
            if named and isinstance(number, Name):
                self.say(codes.UNKNOWN_NAME, nan.span, f"`{number.name}` is not known", help=help, fix=fix)
            else:
                self.say(codes.NAN_COMPARED, node.op_span, message, help=help, fix=fix)
            return [other]
        return [node.left, node.right]

    def rounded_quotients(self, *operands: SacExpression) -> None:
        """Warn of `1/2` as a factor or an exponent: it is 0."""
        for node in operands:
            if not (isinstance(node, tree.Binary) and node.op == "/"):
                continue
            left, right = node.left, node.right
            if not (
                isinstance(left, Number) and isinstance(right, Number) and left.text.isdigit() and right.text.isdigit()
            ):
                continue
            if int(right.text) and int(left.text) % int(right.text):
                message = f"`{sac_to_text(node)}` is a quotient of integers, which is rounded"
                help = f"a fraction has a float, as in `{left.text}.0 / {right.text}`"
                fix = Fix(f"write `{left.text}.0`", (Edit(left.span, f"{left.text}.0"),))
                self.say(codes.INTEGER_QUOTIENT, node.span, message, help=help, fix=fix)

    def unknown(self, node: Name, scope: set[str]) -> None:
        if node.name in self.unread:
            return
        number = library_names.CONSTANTS.get(node.name)
        if number is not None:
            fix = Fix(f"write `{number}`", (Edit(node.span, number),))
            self.say(
                codes.UNKNOWN_NAME, node.span, f"`{node.name}` is not known", help="numbers are written out", fix=fix
            )
            return
        near = nearest(node.name, sorted(scope))
        help, fix = f"did you mean `{near}`?" if near else known_names(scope), None
        if node.name in library_names.NOTHING:
            help = "there is no value for nothing; a float that stands for a missing one is `nan`"
        elif (truth := node.name.lower()) in ("true", "false"):
            help, fix = "truth values are `true` and `false`", Fix(f"write `{truth}`", (Edit(node.span, truth),))
        if is_builtin(node.name) or node.name in self.cell.defined:
            help = f"`{node.name}` is a function: call it with `{node.name}(..)`"
        if node.name in self.partly:
            help = f"it has a value on some ways only: assign `{node.name}` before the `if` or the loop, or in both branches"
        self.say(codes.UNKNOWN_NAME, node.span, f"`{node.name}` is not known", help=help, fix=fix)

    def bounds(self, generator: Generator | None, scope: set[str], used: set[str]) -> None:
        for bound in generator_bounds(generator):
            self.expression(bound, scope, used)

    def with_loop(self, node: WithLoop, scope: set[str], used: set[str]) -> None:
        for generator in node.generators:
            self.bounds(generator.generator, scope, used)
            inner = scope | {name.name for name in generator.pattern.bound}
            self.statements(generator.assigns, inner, used)
            self.expression(generator.body, inner, used)
        for argument in node.arguments:
            self.expression(argument, scope, used)

    def selection(self, node: Selection) -> None:
        triples = [index for index in node.indices if isinstance(index, TripleDot)]
        if len(triples) > 1:
            self.say(
                codes.TRIPLE_DOTS,
                triples[1].span,
                "a selection has more than one `...`",
                help="use `.` for each further axis",
            )

    def literal(self, node: ArrayLiteral) -> None:
        lengths = {
            len(e.elements) if isinstance(e, ArrayLiteral) else -1
            for e in node.elements
            if isinstance(e, ArrayLiteral) or _is_number(e)
        }
        if len(lengths) > 1:
            self.say(
                codes.RAGGED_LITERAL,
                node.span,
                "the rows of an array literal differ in shape",
                help="all elements need one shape",
            )

    def call(self, node: Apply[SacExpression], scope: set[str]) -> None:
        name = node.function.name
        own = self.cell.functions.get(name, ())
        if own and not is_builtin(name):
            counts = sorted({len(f.params) for f in own})
            if len(node.arguments) not in counts:
                wanted = " or ".join(map(str, counts))
                self.say(
                    codes.ARGUMENT_COUNT,
                    node.span,
                    f"`{name}` takes {wanted} argument{'' if counts == [1] else 's'}, {len(node.arguments)} are given",
                    help=f"`{signature_text(own[0])}`",
                )
            return
        if own or name in self.cell.known or name in self.unread:
            return
        if name in BASES or is_builtin(name):
            self.count(node)
            return
        candidates = [*self.cell.functions, *self.cell.known, *builtin_names()]
        help, fix = no_function_help(name, candidates), None
        plain = name.rpartition("::")[2]
        number = (library_names.OF_MODULES | library_names.CONSTANTS).get(plain)
        renamed = library_names.RENAMED.get(plain)
        if number is not None and not node.arguments:
            help, fix = "numbers are written out", Fix(f"write `{number}`", (Edit(node.span, number),))
        elif renamed is not None and is_builtin(renamed):
            fix = Fix(f"write `{renamed}`", (Edit(node.function.span, renamed),))
            help = f"`{renamed}` is what it is called here"
        elif self.passed_function(node, scope) is not None:
            fix = self.applied(node)
        elif name == "modarray" and len(node.arguments) == 3:
            array, place, element = map(sac_to_text, node.arguments)
            names = chain(("iv", "jv"), (f"iv{n}" for n in count(2)))
            free = next(each for each in names if each not in scope)
            text = f"with {{ ({place} <= {free} <= {place}) : {element}; }} : modarray({array})"
            fix = Fix("give the whole array", (Edit(node.span, text),))
        if name in scope and node.arguments:
            text = f"{name}[{', '.join(map(sac_to_text, node.arguments))}]"
            help, fix = "elements are selected with square brackets", Fix(f"write `{text}`", (Edit(node.span, text),))
        self.say(codes.UNKNOWN_NAME, node.function.span, f"`{name}` is not a function", help=help, fix=fix)

    def passed_function(self, node: Apply[SacExpression], scope: set[str]) -> Name | None:
        """The function that a call of an unknown function has as its first argument, as in `map(abs, a)`."""
        first = node.arguments[0] if node.arguments else None
        known = node.function.name in self.cell.defined or is_builtin(node.function.name)
        if not isinstance(first, Name) or first.name in scope or known:
            return None
        return first if is_builtin(first.name) or first.name in self.cell.defined else None

    def applied(self, node: Apply[SacExpression]) -> Fix | None:
        """The fix for `map(abs, a)`: `abs(a)`, or, with a function of the cell, `{ iv -> f(a[iv]) }`."""
        function, *arguments = map(sac_to_text, node.arguments)
        if node.function.name not in ("map", "vmap", "apply") or len(arguments) != 1:
            return None
        plain = isinstance(node.arguments[1], Name)
        if function in self.cell.defined and not plain:
            return None
        text = (
            f"{{ iv -> {function}({arguments[0]}[iv]) }}"
            if function in self.cell.defined
            else f"{function}({arguments[0]})"
        )
        return Fix(f"write `{text}`", (Edit(node.span, text),)) if len(text) < 200 else None

    def count(self, node: Apply[SacExpression]) -> None:
        word = primitive(node.function.name) or node.function.name
        given = len(node.arguments)
        if word in FUNCTIONS and word not in ARITY:
            function = FUNCTIONS[word]
            if given != function.arity and not (function.variadic and given >= function.arity):
                wanted = several(function.arity, "argument") + (" or more" if function.variadic else "")
                help, fix = f"`{function.signature}`", None
                if word in ("min", "max") and given == 1:
                    help = f"the elements of one array are compared by `{word}val(a)`"
                    fix = Fix(f"write `{word}val`", (Edit(node.function.span, f"{word}val"),))
                message = f"`{word}` takes {wanted}, {given} {'is' if given == 1 else 'are'} given"
                self.say(codes.ARGUMENT_COUNT, node.span, message, help=help, fix=fix)
            return
        wanted = (1,) if word in BASES or word in CASTS else arities(word)
        if given not in wanted:
            help = along_axis(word, sac_to_text(node.arguments[0]), node.arguments[1:]) if given == 2 else None
            self.say(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{node.function.name}` takes {' or '.join(map(str, wanted[:-1]))}{' or ' * (len(wanted) > 1)}"
                f"{several(wanted[-1], 'argument')}, {given} are given",
                help=help or usage(node.function.name),
            )

    def homogeneous(self, function: SacFunction) -> None:
        for node in sac_expressions(function):
            for offence in self.demands.offences(node):
                text = sac_to_text(offence.culprit)
                text = text if len(text) <= 60 else text[:57] + "..."
                self.say(
                    codes.INHOMOGENEOUS,
                    offence.span,
                    f"the shape of the body depends on the value of index `{offence.index}`",
                    help=f"all elements have one shape, and the shape of `{text}` needs the value of `{offence.index}` (level F)",
                )

    def _calls(self) -> tuple[dict[int, int], set[int], set[int]]:
        """How deep calls are nested below each definition, which certainly call themselves, and the deepest that nobody calls.

        Only calls are counted that certainly mean one definition. A loop, not a recursion: chains of calls may be long.
        """
        every = [function for group in self.cell.functions.values() for function in group]
        callees = {id(f): {id(callee) for node in _nodes(f) for callee in self._certain(node)} for f in every}
        callers: dict[int, list[int]] = {id(f): [] for f in every}
        for caller, called in callees.items():
            for callee in called:
                callers[callee].append(caller)
        open_calls = {key: len(called) for key, called in callees.items()}
        depths: dict[int, int] = {}
        ready = [key for key, count in open_calls.items() if not count]
        while ready:
            key = ready.pop()
            depths[key] = 1 + max((depths[callee] for callee in callees[key]), default=-1)
            for caller in callers[key]:
                open_calls[caller] -= 1
                if not open_calls[caller]:
                    ready.append(caller)
        rest = {key: called - depths.keys() for key, called in callees.items() if key not in depths}
        deep = {key for key, depth in depths.items() if depth > DEEPEST_CALLS}
        return (
            depths,
            {key for key in rest if _reaches(key, rest)},
            {key for key in deep if not deep & set(callers[key])},
        )

    def _certain(self, node: SacExpression) -> list[SacFunction]:
        """The definition that a call certainly means: the only one of its name, which is no built-in function."""
        if not isinstance(node, Apply) or is_builtin(node.function.name):
            return []
        own = self.cell.functions.get(node.function.name, ())
        return [own[0]] if len(own) == 1 else []


def known_names(scope: Collection[str]) -> str:
    """What helps for a name that nobody knows."""
    if not scope:
        return "no names are known here"
    listed = sorted(scope)
    return f"known here: {', '.join(f'`{name}`' for name in listed[:8])}{' ..' if len(listed) > 8 else ''}"


def _reaches(start: int, edges: Mapping[int, Collection[int]]) -> bool:
    """Whether a walk along the edges comes back to its start."""
    todo, seen = list(edges[start]), set[int]()
    while todo:
        current = todo.pop()
        if current == start:
            return True
        if current not in seen:
            seen.add(current)
            todo += edges[current]
    return False


def _nodes(function: SacFunction) -> list[SacExpression]:
    return [node for root in sac_expressions(function) for node in sac_walk(root)]


def _is_number(node: SacExpression) -> bool:
    return isinstance(node, Number)


__all__ = [
    "ArgumentType",
    "Check",
    "CheckedFunction",
    "CheckedSac",
    "SacCall",
    "Signature",
    "Specialized",
    "bind_call",
    "check_sac",
]
