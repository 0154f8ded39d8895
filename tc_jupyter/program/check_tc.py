"""Tree of a `%%tc` cell -> programs: names, ranks, types, reductions, `where` clauses, calls of other defs.

Worked example: `def mv(float(R,C) A, float(C) B) -> (o) { o(i) +=! A(i,j) * B(j) }` gives one `Program` with the statement `o`,
operator `+`, output index `i` and reduction index `j`. With `=` instead of `+=!` the def is also in `broken`, and TC204 is told.
"""

from __future__ import annotations

import itertools
import keyword
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Label, SourceText, Span, codes, edit_distance
from tc_jupyter.diagnostics.work import TooMuchWork, spend, too_much
from tc_jupyter.syntax import LETTERS, REDUCTIONS, SCALAR_TYPES, expression_text, in_order, is_own, library_names, tree

from . import complexes, constants, extremes, logsums, orders, updates
from .accumulations import WrittenOut
from .blocks import groups, without_blocks
from .calls_in_blocks import inline_in_steps
from .complexes import as_pairs
from .elements import Elements
from .expr import Binary, Const, DType, Expr, IndexVar, Read, Size, int64, walk
from .extents import difference, linear, solutions, sum_of
from .functions import OF_COMPLEX, TC_FUNCTIONS
from .inline import Inlined, Passed, cannot_be_called, inline_call
from .integers import all_of, sizes_of
from .iterations import index_state, inline_iteration, no_iteration, state_help
from .left_sides import decided_by_data, largest
from .nested_calls import NestedCalls, values_of
from .program import ArgumentType, CallSite, Equality, Index, Program, Reducer, Statement, Tensor
from .reducers import Unfit, combined, common_type, in_parts, lifted, reducer_of
from .scope import Scope, Suggestions, TensorInfo, words_of
from .steps import Steps
from .tc_expressions import (
    RECURRENCE_HELP,
    ExpressionChecker,
    LetInfo,
    StatementNames,
    is_power_of_def,
    letters,
    refuse_power,
)
from .typing import (
    TYPE_NAMES,
    Typed,
    changes_where_stored,
    common,
    convert,
    fits,
    settle,
    unify,
    weak_float,
    weak_integer,
    without_idle_casts,
)
from .whole_arrays import indexed

_MOST_ORDERED = 6
"""Arguments of a call whose other orders are tried."""
BOOL, INT32, INT64 = DType.BOOL, DType.INT32, DType.INT64
MAX_STATEMENTS = 1000
"""Statements of one def, those of inlined calls included."""
MAX_TENSORS = 500
"""Tensors of one def, those of inlined calls included."""

_LOGICAL_OPERATORS = {"any": "max", "all": "min"}
"""Operators on truth values, which are numbers for them."""
_REPEATED_WHERE = "one range for each index"
_ONE_NAMESPACE = "sizes, tensors, lets, defs and indices share one namespace: give one of the two another name"


@dataclass(frozen=True, slots=True)
class Checked:
    """The meaning of a cell.

    Attributes:
        programs: defs by name, in text order. A def with errors is here too when parts of it have a meaning, so that what is
            known of it can be shown; such a program may lack statements and results.
        diagnostics: what is wrong with the meaning, in source order; the parser's messages are not repeated.
        broken: names of defs with errors, also of syntax, and of defs that call them.
    """

    programs: Mapping[str, Program]
    diagnostics: tuple[Diagnostic, ...]
    broken: frozenset[str]


class Open(Protocol):
    """A function of an earlier cell whose program depends on the types of the arguments."""

    def program_for(self, arguments: Sequence[ArgumentType]) -> Program | tuple[Diagnostic, ...]:
        """The program for arguments of these types, or why there is none."""
        ...


Callee = Program | Open
"""What a def may call besides the defs of its own cell."""


def check_tc(unit: tree.Unit, source: SourceText, known: Mapping[str, Callee] | None = None) -> Checked:
    """Check a parsed cell. Never raises for a mistake in the text.

    Args:
        unit: the tree, with `Broken` statements where the text could not be read.
        known: programs of earlier cells, of either language, that defs of this cell may call, or what has them per argument types.
    """
    checker = _UnitChecker(unit, source, known or {})
    checker.run()
    programs = {
        item.name.name: checker.programs[item.name.name] for item in unit.defs if item.name.name in checker.programs
    }
    return Checked(programs, in_order(checker.diagnostics), frozenset(checker.broken))


def python_name(name: str) -> str:
    """The Python name under which a def is bound: the name itself, or with an underscore where Python needs one (TC237)."""
    if name[:1].isdigit():
        return "_" + name
    return name + "_" if keyword.iskeyword(name) else name


class _UnitChecker:
    """Checks defs when they are needed, so that a def may call one that stands later."""

    def __init__(self, unit: tree.Unit, source: SourceText, known: Mapping[str, Callee]) -> None:
        self.source = source
        self.known = known
        self.diagnostics: list[Diagnostic] = []
        self.suggestions = Suggestions()
        self.programs: dict[str, Program] = {}
        self.broken: set[str] = set()
        self.open: list[str] = []
        self.done: set[str] = set()
        self.defs: dict[str, tree.Def] = {}
        self.order: list[tree.Def] = []
        for item in unit.defs:
            name = item.name.name
            if name and name in self.defs:
                self.repeated(item, self.defs[name])
            elif name:
                self.defs[name] = item
                self.order.append(item)
        self.constants: dict[str, tree.Constant] = {}
        for constant in unit.constants:
            name = constant.name.name
            if name in self.constants or name in self.defs:
                other = self.constants.get(name) or self.defs[name]
                labels = (Label(other.name.span, "first here"),)
                message = f"`{name}` has two meanings in this cell"
                self.diagnostics.append(Diagnostic(codes.DUPLICATE_NAME, constant.name.span, message, "", labels))
            self.constants.setdefault(name, constant)
            constants.values_of(constant, TYPE_NAMES[constant.type.scalar], self.report)
        self.def_spans = {name: item.name.span for name, item in self.defs.items()}
        self.callable_names = frozenset(self.defs) | frozenset(known)

    def ranks_of(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The ranks of the parameters and results of a def that is checked already, or of an earlier cell."""
        found = self.programs.get(name) or self.known.get(name)
        if not isinstance(found, Program):
            return None
        parameters, results = (
            [found.tensor(each).written_rank for each in names] for names in (found.parameters, found.results)
        )
        return tuple(parameters), tuple(results)

    @cached_property
    def free_name(self) -> str:
        """A name for a new tensor that stands nowhere in the cell, for later statements must not mean it."""
        words = words_of(self.source.text)
        return next(name for name in ("T", *(f"T{number}" for number in range(1, len(words) + 2))) if name not in words)

    def report(self, code: codes.Code, span: Span, message: str) -> None:
        self.diagnostics.append(Diagnostic(code, span, message))

    def repeated(self, item: tree.Def, first: tree.Def) -> None:
        labels = (Label(first.name.span, "first def"),)
        message = f"two defs are called `{item.name.name}`"
        self.diagnostics.append(Diagnostic(codes.DUPLICATE_NAME, item.name.span, message, "second def", labels))
        self.broken.add(item.name.name)

    def run(self) -> None:
        """Check every def after those it calls. A loop, not a recursion: chains of calls may be long."""
        for item in self.order:
            self.open = [item.name.name]
            pending = [self.callees(item)]
            while pending:
                name = next((name for name in pending[-1] if name not in self.done and name not in self.open), None)
                if name is not None:
                    self.open.append(name)
                    pending.append(self.callees(self.defs[name]))
                    continue
                if self.open[-1] not in self.done:
                    self.check(self.open[-1])
                self.open.pop()
                pending.pop()

    def callees(self, item: tree.Def) -> Iterator[str]:
        """Defs of this cell that a def may call."""
        for statement in item.statements:
            if isinstance(statement, tree.CallStatement) and (name := self.def_of(statement.callee.name)):
                yield name
            if isinstance(statement, tree.Comprehension) and is_own(statement.operator):
                name = statement.operator.removesuffix("=!")
                if name in self.defs:
                    yield name
            for node in (node for value in values_of(statement) for node in tree.walk(value)):
                match node:
                    case tree.Apply(tree.Name(name)) | tree.Binary("^", tree.Name(name)) if own := self.def_of(name):
                        yield own
                    case _:
                        pass

    def def_of(self, name: str) -> str | None:
        """The def of this cell that has a name, or whose derivative it would be that could not be made, as in `f.vjp`."""
        base = name if name in self.known else name.partition(".")[0]
        return base if base in self.defs else None

    def check(self, name: str) -> None:
        """Check one def whose callees are done; once more where literals take their types from later statements."""
        asked = self.suggestions.left
        checker = _DefChecker(self, self.defs[name])
        self.programs[name] = checker.check()
        if checker.adopted:
            self.suggestions.left = asked
            checker = _DefChecker(self, self.defs[name], checker.adopted)
            self.programs[name] = checker.check()
        self.diagnostics += checker.scope.diagnostics
        if checker.failed or self.defs[name].broken:
            self.broken.add(name)
        if self.defs[name].reducer is not None and not self.defs[name].broken:
            self.define(self.defs[name], self.defs[name].reducer)
        self.done.add(name)

    def define(self, item: tree.Def, written: tree.Reducer | None) -> None:
        """Add what a `reduce` says of its identity and its values to the program of its function."""
        assert written is not None
        results, types = item.results, [param.type for param in item.params]
        values = [each.value for each in item.statements if isinstance(each, tree.Comprehension)]
        parts_of_text = (
            (values, [param.name.name for param in item.params]),
            (written.identity, []),
            (written.lifted, [name.name for name in written.given]),
        )
        if any([self.unknown_words(item, *each) for each in parts_of_text]) or self.calls_in(item, parts_of_text):
            return
        if len(written.given) > len(results) or len({name.name for name in written.given}) < len(written.given):
            message = "`with` has a name for each value, at most one for each component"
            self.wrong(item, written.given[-1].span, message)
            return
        params = tuple(tree.Param(type_, name, name.span) for name, type_ in zip(written.given, types, strict=False))
        parts = [self.part(item, (), written.identity)]
        parts += [self.part(item, params, written.lifted)] if written.lifted else []
        known = [each for each in parts if each is not None]
        if len(known) < len(parts) or item.name.name in self.broken:
            self.broken.add(item.name.name)
            return
        found = reducer_of(self.programs[item.name.name], known[0], known[1] if known[1:] else None)
        if isinstance(found, Unfit):
            texts = {"value": values, "identity": written.identity, "lifted": written.lifted}
            self.wrong(item, texts[found.part][found.number].span, found.message)
        elif item.name.name in REDUCTIONS:
            self.wrong(item, item.name.span, f"`{item.name.name}=!` is an operator of the language")
        else:
            self.programs[item.name.name] = replace(self.programs[item.name.name], reducer=found)

    def unknown_words(self, item: tree.Def, values: Sequence[tree.Expression], known: Sequence[str]) -> bool:
        """Whether values of a `reduce` have names that stand for nothing there, after a message about each."""
        words = (each for value in values for each in tree.walk(value) if isinstance(each, tree.Name))
        unknown = {each.name: each for each in words if each.name not in known}
        for name, word in unknown.items():
            near = self.suggestions.nearest(name, known)
            help = (
                "an identity is made of numbers"
                if not known
                else f"known are {_listed([f'`{each}`' for each in known])}"
            )
            fix = Fix(f"replace it by `{near}`", (Edit(word.span, near),)) if near else None
            message = f"`{name}` stands for nothing here"
            self.diagnostics.append(Diagnostic(codes.UNKNOWN_NAME, word.span, message, help=help, fix=fix))
            self.programs[item.name.name] = replace(self.programs[item.name.name], statements=())
            self.broken.add(item.name.name)
        return bool(unknown)

    def calls_in(self, item: tree.Def, parts: Iterable[tuple[Sequence[tree.Expression], Sequence[str]]]) -> bool:
        """Whether a part of a `reduce` calls a def, after a message about the first such call."""
        nodes = (node for values, _ in parts for value in values for node in tree.walk(value))
        names = self.callable_names - (TC_FUNCTIONS.keys() - self.defs.keys())
        calls = (each for each in nodes if isinstance(each, tree.Apply) and each.function.name in names)
        first = next(calls, None)
        if first is not None and item.name.name not in self.broken:
            self.wrong(item, first.span, "a reducer is made of its operands and of numbers: it calls no def")
        return first is not None

    def wrong(self, item: tree.Def, span: Span, message: str) -> None:
        self.diagnostics.append(Diagnostic(codes.BAD_REDUCER, span, message))
        self.broken.add(item.name.name)

    def part(
        self, item: tree.Def, params: tuple[tree.Param, ...], values: tuple[tree.Expression, ...]
    ) -> Program | None:
        """The program of a part of a `reduce`, which has the same results; `None` after a message."""
        statements = tuple(
            tree.Comprehension(result.name, None, "=", value, span=value.span, operator_span=value.span)
            for result, value in zip(item.results, values, strict=True)
        )
        function = tree.Def(tree.Name("", item.name.span), params, item.results, statements, span=item.span)
        checker = _DefChecker(self, function)
        program = checker.check()
        self.diagnostics += [each for each in checker.scope.diagnostics if each.code is not codes.UNUSED]
        return None if checker.failed else program

    def reducer(self, node: tree.Comprehension, scope: Scope) -> Reducer | None:
        """The reducer of a statement; `None` after a message, or where it has one itself."""
        name = node.operator.removesuffix("=!")
        if name in self.defs:
            return None if name in self.broken else self.programs[name].reducer
        known = self.known.get(name)
        found = known if isinstance(known, Program) or known is None else known.program_for(())
        if isinstance(found, Program) and found.reducer is not None:
            return found.reducer
        why = next((f": {item.message}" for item in found if item.is_error), "") if isinstance(found, tuple) else ""
        scope.report(codes.UNKNOWN_NAME, node.operator_span, f"`{name}` is no reducer{why}")
        return None


_DIMENSION_HELP = (
    "a dimension is made of integers, sizes and integer scalars with `+ - * / %`, `min`, `max`, `abs` and `? :`"
)


@dataclass(slots=True)
class _Draft:
    """A program while it grows."""

    tensors: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    statements: list[Statement] = field(default_factory=list[Statement])
    equalities: list[Equality] = field(default_factory=list[Equality])
    calls: list[CallSite] = field(default_factory=list[CallSite])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def copy(self) -> _Draft:
        """The same parts, to go on with in another way."""
        lists = list(self.statements), list(self.equalities), list(self.calls)
        return _Draft(dict(self.tensors), *lists, dict(self.counts))

    def name_of(self, target: str) -> str:
        """The name of the next statement on `target`."""
        self.counts[target] = number = self.counts.get(target, 0) + 1
        return target if number == 1 else f"{target}#{number}"


class _DefChecker:
    """Checks one def.

    Attributes:
        adopted: the types of tensors whose first statement writes a literal. What is made while they are still asked for
            (`types` is `None`) reads the literals themselves and is thrown away.
    """

    def __init__(self, unit: _UnitChecker, node: tree.Def, types: Mapping[str, DType] | None = None) -> None:
        self.unit = unit
        self.scope = Scope(unit.source, [], unit.def_spans, unit.callable_names, unit.suggestions)
        self.scope.ranks_of = unit.ranks_of
        if node.params:
            self.scope.behind = Span(node.params[-1].span.end, node.params[-1].span.end)
        callees = (
            unit.callable_names - (TC_FUNCTIONS.keys() - unit.defs.keys()) - {each.name.name for each in node.params}
        )
        self.nested = set[str]()  # tensors for calls inside expressions
        self.numbers = dict[str, tree.Expression]()  # arguments that are made of sizes
        self.node = node  # its parameters are asked for
        self.node = node = without_blocks(node, self.scope.diagnostics, callees, partial(self.taken_out, node, callees))
        self.groups = groups(node.statements)
        self.prepared = set[int]()
        self.draft = _Draft()
        self.declared: dict[str, tuple[DType, tuple[Expr, ...]] | None] = {}
        self.starts: dict[str, tuple[Expr | None, ...]] = {}  # declared first indices of results
        self.beside: dict[str, tuple[str, ...]] = {}  # the targets of one statement, which have the same indices
        self.result_spans: dict[str, Span] = {}
        self.renamed: dict[Span, Fix] = {}  # of results that are parameters, by the operator that changes them first
        self.prefixes: dict[str, int] = {}
        self.mentioned: set[str] = set()
        self.types = types
        self.adopted: dict[str, DType] = {}
        self.times_written = Counter(name for statement in node.statements for name in _targets(statement))
        comprehensions = [each for each in node.statements if isinstance(each, tree.Comprehension)]
        for names in map(_targets, comprehensions):
            self.beside |= {name: tuple(names) for name in names} if len(names) > 1 else {}
        self.first_on = {each.target.name: each for each in reversed(comprehensions)}
        broken = (each.targets for each in node.statements if isinstance(each, tree.Broken))
        self.broken_targets = frozenset(target for targets in broken for target in targets)
        self.told = set[str]()  # numbers that are meant as elements, after a message
        self.silent = False  # something unknown happened about which a message was given elsewhere

    @property
    def failed(self) -> bool:
        """Whether the def has an error."""
        return self.silent or any(item.is_error for item in self.scope.diagnostics)

    @cached_property
    def elements(self) -> Elements:
        """Which numbers are meant as elements; asked for only where one may be."""
        return Elements(self.node.statements, {result.name.name for result in self.node.results}, self.unit.source)

    def check(self) -> Program:
        """The program, as far as it has a meaning."""
        self.def_name()
        self.parameters()
        self.results()
        self.constants()
        for statement in self.node.statements:
            self.scope.later |= dict.fromkeys(_targets(statement))
        for statement in self.node.statements:
            if not self.within_limits(statement) or self.too_many(statement.span):
                break
        else:
            if self.node.reducer is None:
                self.unwritten_results()
        if not self.failed and not self.node.broken:
            self.unused()
        return self.program()

    def within_limits(self, statement: tree.TcStatement) -> bool:
        """Check a statement; where the calls of the text have become too many copies of statements, say so."""
        try:
            self.statement(statement)
        except TooMuchWork as problem:
            what = "a call is a copy of what it calls, and those of this cell are too many"
            help = (
                "call fewer defs here: put some of them into other cells, or let Python call them one after the other"
            )
            self.scope.diagnostics.append(too_much(problem, statement.span, what, help))
            return False
        return True

    def too_many(self, span: Span) -> bool:
        """Whether the def has grown beyond the limits, which keep a short text from making endless programs."""
        counts = (
            ("statements", len(self.draft.statements), MAX_STATEMENTS),
            ("tensors", len(self.scope.tensors), MAX_TENSORS),
        )
        counts += (("tensors", len(self.draft.tensors), MAX_TENSORS),)
        for what, count, limit in counts:
            if count > limit:
                message = f"the def has more than {limit} {what}, those of inlined calls included"
                self.scope.report(
                    codes.DEVICE_LIMIT, span, message, help="split it into several defs that Python calls"
                )
                return True
        return False

    @property
    def typed_results(self) -> frozenset[str]:
        """Results whose type is declared."""
        return frozenset(name for name, declared in self.declared.items() if declared is not None)

    def program(self) -> Program:
        """What is known of the def."""
        draft, scope = self.draft, self.scope
        parameters = tuple(name for name, info in scope.tensors.items() if info.is_input and name in draft.tensors)
        results = tuple(name for name in self.declared if name in draft.tensors and name not in parameters)
        return Program(
            self.node.name.name,
            "tc",
            tuple(scope.sizes),
            parameters,
            results,
            tuple(draft.tensors.values()),
            tuple(draft.statements),
            tuple(draft.equalities),
            tuple(draft.calls),
            (),
            self.unit.source,
            self.node.span,
        )

    # the signature

    def def_name(self) -> None:
        name = self.node.name
        self.is_function(name, "def")
        bound = python_name(name.name)
        if bound != name.name:
            message = f"`{name.name}` is no Python name; the def is bound as `{bound}`"
            self.scope.report(codes.RENAMED_DEF, name.span, message)

    def parameters(self) -> None:
        for param in self.node.params:
            self.sizes_of(param)
        for param in self.node.params:
            self.parameter(param)
        if all(param.type is not None for param in self.node.params) and not self.failed:
            self.unsolved_sizes()

    def sizes_of(self, param: tree.Param) -> None:
        """Every name in a dimension is a size, but for integer scalars of the signature."""
        for name in tree.names_of(param.type):
            if name.name not in self.scope.sizes and name.name not in self.scalars and not name.name[0].isdigit():
                self.size_name(name)
                self.scope.sizes[name.name] = name.span

    @cached_property
    def scalars(self) -> dict[str, TensorInfo]:
        """The numbers of the signature that dimensions may use."""
        found = (param for param in self.node.params if param.type is not None and not param.type.dimensions)
        typed = {param.name.name: (TYPE_NAMES[param.type.scalar], param.name.span) for param in found if param.type}
        return {
            name: TensorInfo(name, dtype, 0, (), "parameter", span, written=True)
            for name, (dtype, span) in typed.items()
            if dtype.is_integer
        }

    def size_name(self, name: tree.Name) -> None:
        self.python_word(name, "a size")
        if name.name in self.scope.defs:
            self.shadows(name, "a size", ("a def", self.scope.defs[name.name]))

    def python_word(self, name: tree.Name, what: str) -> None:
        if keyword.iskeyword(name.name):
            fix = Fix(f"rename it to `{name.name}_`", (Edit(name.span, name.name + "_"),))
            message = f"{what} cannot be called `{name.name}`: bounds are printed as Python"
            self.scope.report(codes.RESERVED_WORD, name.span, message, help="every use has to be renamed", fix=fix)

    def parameter(self, param: tree.Param) -> None:
        name, scope = param.name.name, self.scope
        if name in scope.tensors:
            labels = (Label(scope.tensors[name].span, "first parameter"),)
            scope.report(
                codes.DUPLICATE_NAME, param.name.span, f"two parameters are called `{name}`", "second parameter", labels
            )
            return
        self.new_tensor(param.name, "parameter")
        if param.type is None:
            scope.tensors[name] = TensorInfo(
                name, None, None, (), "parameter", param.name.span, written=True, read=True
            )
            return
        dtype = TYPE_NAMES[param.type.scalar]
        found = [self.dimension(dim) for dim in param.type.dimensions]
        if not found and dtype.is_integer:
            self.python_word(param.name, "an integer scalar")
        dims = tuple(extent for each in found if each is not None for extent in each[1:])
        if len(dims) < len(found):
            self.unknown_tensor(name, param.name.span)
            scope.tensors[name].kind = "parameter"
            return
        starts = tuple(each[0] for each in found if each is not None)
        ends = (_sum(start, extent) for start, extent in zip(starts, dims, strict=True))
        box = tuple(zip(starts, ends, strict=True)) if any(start != int64(0) for start in starts) else None
        read = name in self.scalars and self.scalars[name].read
        scope.tensors[name] = TensorInfo(
            name, dtype, len(dims), dims, "parameter", param.name.span, True, read, starts=starts
        )
        self.draft.tensors[name] = as_pairs(Tensor(name, dtype, len(dims), "input", dims, box, span=param.name.span))

    def dimension(self, dim: tree.Dimension) -> tuple[Expr, Expr] | None:
        """The first index and the extent of a dimension; `None` after a message."""
        lower, upper = (dim.lower, dim.upper) if isinstance(dim, tree.DimensionBox) else (None, dim)
        start, end = int64(0) if lower is None else self.end(lower), self.end(upper)
        if start is None or end is None:
            return None
        extent = replace(difference(end, start), span=dim.span)
        if isinstance(extent, Const) and not 0 <= extent.value <= INT64.limits[1]:
            code, message = (
                (codes.TOO_LARGE, "the extent is beyond 2^63 - 1")
                if extent.value > 0
                else (codes.NEGATIVE_RANGE, f"the extent is `{extent.value}`, and no array has such a dimension")
            )
            self.scope.report(code, dim.span, message)
            return None
        return start, extent

    def end(self, node: tree.Expression, what: str = "a dimension", help: str = _DIMENSION_HELP) -> Expr | None:
        """The extent of a dimension, or an end of its box, or what else is made of sizes; `None` after a message."""
        if isinstance(node, tree.Name) and node.name in self.scope.sizes:
            return Size(node.name, node.span)
        if isinstance(node, tree.Number) and type(node.value) is int:
            return Const(node.value, INT64, node.span)
        target = tree.Name("", node.span)
        names = StatementNames("", tree.Comprehension(target, None, "=", node, span=node.span))
        checker = ExpressionChecker(self.scope, names)
        checker.bound_is, checker.bound_help = what, help
        hidden = {name: info for name, info in self.scalars.items() if name not in self.scope.tensors}
        self.scope.tensors |= hidden
        found = checker.bound(node)
        for name in hidden:
            del self.scope.tensors[name]
        self.mentioned |= names.mentioned & self.scalars.keys()
        return found

    def unsolved_sizes(self) -> None:
        """TC316: sizes that stand only where they cannot be found from an extent."""
        tensors = tuple(self.draft.tensors.values())
        missing = solutions(tensors)[1]
        for tensor in tensors:
            for dim in tensor.dims or ():
                here = [name for name in missing if name in sizes_of(dim)]
                if not here:
                    continue
                text, names = self.unit.source.slice(dim.span), _listed([f"`{name}`" for name in here])
                message = f"{names} cannot be found from `{text}`"
                help = f"name `{here[-1]}` as a dimension of another parameter, or pass it, as `int64 {here[-1]}`"
                self.scope.report(codes.UNSOLVED_SIZE, dim.span, message, help=help)
                missing = tuple(name for name in missing if name not in here)

    def new_tensor(self, name: tree.Name, what: str) -> None:
        """Rules for the name of a tensor."""
        if not self.is_function(name, what) and (taken := self.scope.taken(name.name)) is not None:
            self.shadows(name, f"a {what}", taken)

    def is_function(self, name: tree.Name, what: str) -> bool:
        """Whether a def or a tensor has the name of a function, after a message: one of the two would hide the other."""
        function = None if name.name in OF_COMPLEX and what != "def" else TC_FUNCTIONS.get(name.name)
        if function is not None:
            message = f"a {what} cannot have the name of the function `{name.name}`"
            words = re.findall(r"\w+", self.unit.source.slice(self.node.span))  # in other defs it is the function
            alone = what == "def" and words.count(name.name) == 1 and f"{name.name}_" not in words
            fix = Fix(f"rename it to `{name.name}_`", (Edit(name.span, f"{name.name}_"),)) if alone else None
            self.scope.report(codes.DUPLICATE_NAME, name.span, message, help=function.described, fix=fix)
        return function is not None

    def shadows(self, name: tree.Name, what: str, taken: tuple[str, Span], help: str = _ONE_NAMESPACE) -> None:
        labels = (Label(taken[1], f"{taken[0]} here"),)
        message = f"{what} cannot be called `{name.name}`: that is {taken[0]}"
        self.scope.report(codes.SHADOWING, name.span, message, "", labels, help)

    def results(self) -> None:
        if not self.node.results and not self.node.broken:
            message = f"`{self.node.name.name}` has no result"
            self.scope.report(
                codes.RESULT_NOT_WRITTEN, self.node.name.span, message, help="name the results after `->`"
            )
        for result in self.node.results:
            self.result(result)

    def result(self, result: tree.Result) -> None:
        name, scope = result.name.name, self.scope
        if name in self.declared:
            labels = (Label(self.result_spans[name], "first result"),)
            scope.report(
                codes.DUPLICATE_NAME, result.name.span, f"two results are called `{name}`", "second result", labels
            )
            return
        if name in scope.tensors:
            indices = ", ".join("ijkl"[: scope.tensors[name].rank or 0])
            copy = f"{name}({indices})" if indices else name
            message = f"the result `{name}` is a parameter"
            help = f"parameters are read-only: write a copy, as in `{copy.replace(name, name + '2', 1)} = {copy}`"
            fix = self.without_parameter(name) or self.renamed_result(result.name)
            first = self.first_on.get(name)
            if fix is not None and first is not None and updates.is_update(first) and updates.is_in_place(first):
                self.renamed[first.operator_span] = fix  # a part of what is told of that statement
            else:
                scope.report(codes.RESULT_NOT_WRITTEN, result.name.span, message, help=help, fix=fix)
            self.declared[name] = None
            self.result_spans[name] = result.name.span
            return
        self.new_tensor(result.name, "result")
        self.declared[name] = None
        self.result_spans[name] = self.scope.results[name] = result.name.span
        if result.type is not None:
            found = [self.result_dimension(name, k, dim) for k, dim in enumerate(result.type.dimensions)]
            dims = tuple(each[1] for each in found if each is not None)
            if len(dims) == len(found):
                self.declared[name] = TYPE_NAMES[result.type.scalar], dims
                self.starts[name] = tuple(each[0] for each in found if each is not None)

    def without_parameter(self, name: str) -> Fix | None:
        """Leave out a parameter that is only written, as what a function of C gives is."""
        params, statements = self.node.params, self.node.statements
        written = [each for each in statements if isinstance(each, tree.Comprehension) and each.target.name == name]
        number = next(k for k, param in enumerate(params) if param.name.name == name)
        others = {end for k, param in enumerate(params) if k != number for end in _sizes_of(param)}
        reads = any(_places(each, name) for each in statements if isinstance(each, tree.Comprehension))
        begins = written and (written[0].operator == "=" or written[0].operator.endswith("!"))
        plain = all(isinstance(each, tree.Comprehension) for each in statements)
        if not begins or reads or not plain or not _sizes_of(params[number]) <= others or len(params) < 2:
            return None
        place = params[number].span
        if number + 1 < len(params):
            place = Span(place.start, params[number + 1].span.start)
        else:
            place = Span(params[number - 1].span.end, place.end)
        return Fix("make it a result only", (Edit(place, ""),))

    def renamed_result(self, result: tree.Name) -> Fix | None:
        """Give a result that is a parameter another name, where it is written and read afterwards."""
        name, source = result.name, self.unit.source
        if source.slice(result.span) != name:
            return None  # a message says that it has to stand there
        words = words_of(source.text)
        new = next(each for each in (f"{name}{number}" for number in range(2, len(words) + 3)) if each not in words)
        edits = [Edit(result.span, new)]
        written = False
        for statement in self.node.statements:
            if not isinstance(statement, tree.Comprehension):
                return None
            writes, operator = statement.target.name == name, statement.operator
            update = updates.is_update(statement)
            accumulates = (operator != "=" and not operator.endswith("!")) or (
                update and not updates.is_in_place(statement)
            )
            if (
                writes
                and not written
                and statement.indices is None
                and not update
                and accumulates
                and self.scope.tensors[name].rank
            ):
                edits += [Edit(statement.target.span, new), *updates.combined(statement, source)]
            elif writes and not written and accumulates:
                left = source.slice(Span(statement.target.span.end, statement.operator_span.start)).rstrip()
                if not updates.is_in_place(statement):
                    left = f"({', '.join(letters(self.scope.tensors[name].rank or 0))})"
                edits.append(Edit(statement.target.span, f"{new}{left} = {name}{left}  {new}"))
            elif writes:
                edits.append(Edit(statement.target.span, new))
            if written:
                edits += [Edit(place, new) for place in _places(statement, name) if place.end > place.start]
            written = written or writes
        return Fix(f"call the result `{new}`", tuple(edits)) if written else None

    def result_dimension(self, tensor: str, number: int, dim: tree.Dimension) -> tuple[Expr | None, Expr] | None:
        """The first index, if it is declared, and the extent. A size name that occurs nowhere else names the extent of the first
        result that has it, or the end of its box.
        """
        box, scope = isinstance(dim, tree.DimensionBox), self.scope
        end = dim.upper if isinstance(dim, tree.DimensionBox) else dim
        if isinstance(end, tree.Name):
            scope.used_sizes.add(end.name)
        if (
            not isinstance(end, tree.Name)
            or end.name in scope.sizes.keys() | self.scalars.keys()
            or end.name[0].isdigit()
        ):
            if not box and (name := self.new_size(end)) is not None:
                return self.solved_dimension(tensor, number, end, name)
            found = self.dimension(dim)
            return found and (found[0] if box else None, found[1])
        start = self.end(dim.lower) if isinstance(dim, tree.DimensionBox) else None
        first = scope.result_sizes.get(end.name)
        if first is not None and not box and end.name not in scope.result_starts:
            found = scope.found_size(end.name, Size(f"{first[0]}.{first[1]}", end.span))
            return None, replace(found, span=end.span)
        if first is not None:
            self.scope.report(codes.DUPLICATE_NAME, end.span, f"`{end.name}` names the end of another result already")
            return None
        self.size_name(end)
        if end.name in scope.tensors:
            self.shadows(end, "a size", ("a parameter", scope.tensors[end.name].span))
        scope.result_sizes[end.name] = tensor, number, end.span
        if not box:
            return None, Size(end.name, end.span)
        if start is None:
            return None
        scope.result_starts[end.name] = start
        return start, Size(f"{tensor}.{number}", end.span)

    def new_size(self, dim: tree.Expression) -> tree.Name | None:
        """The one name in an expression that no parameter and no other result has: `M` in `2*M`."""
        names = {item.name: item for item in tree.walk(dim) if isinstance(item, tree.Name)}
        known = (
            self.scope.sizes.keys() | self.scalars.keys() | self.scope.result_sizes.keys() | self.scope.tensors.keys()
        )
        new = [item for name, item in names.items() if name not in known and not name[0].isdigit()]
        return new[0] if len(new) == 1 else None

    def solved_dimension(
        self, tensor: str, number: int, dim: tree.Expression, name: tree.Name
    ) -> tuple[None, Expr] | None:
        """The extent `2*M` of a result, from which `M` is found; `None` after a message."""
        scope, word = self.scope, name.name
        scope.sizes[word] = name.span
        found = self.dimension(dim)
        del scope.sizes[word]
        if found is None:
            return None
        parts = linear(found[1], word)
        if parts is None or parts[0] == int64(0):
            message = f"`{word}` cannot be found from `{scope.source.slice(dim.span)}`"
            help = (
                f"a size that no parameter has stands alone, as in `float({word}) {tensor}`, or in a sum or a multiple"
            )
            scope.report(codes.UNSOLVED_SIZE, dim.span, message, help=help)
            return None
        self.size_name(name)
        scope.used_sizes.add(word)
        scope.result_sizes[word], scope.result_parts[word] = (tensor, number, name.span), parts
        factor, rest = parts
        value = scope.found_size(word, Size(f"{tensor}.{number}", name.span))
        extent = value if factor == int64(1) else Binary("*", factor, value, INT64)
        return None, replace(sum_of(extent, rest), span=dim.span)

    # statements

    def statement(self, node: tree.TcStatement) -> None:
        match node:
            case tree.Broken():
                self.mentioned |= node.names
                for name in node.targets:
                    self.unknown_tensor(name, node.span)
                for name in node.names & self.scope.tensors.keys():
                    self.scope.tensors[name].read = True
            case tree.CallStatement():
                applied = tree.Apply(node.callee, node.arguments, node.span)
                self.call_with(node.targets, applied, node.span, node.count)
            case tree.Constant():
                self.constant(node)
            case tree.Comprehension() if node.called:
                self.know_block(node)
                self.call_at_steps(node)
            case tree.Comprehension() if updates.is_update(node) and not self.is_written(node.target.name):
                self.begin(node)
            case tree.Comprehension():
                if (power := self.iteration(node)) is not None:
                    self.single_call(node, *power)
                    return
                if self.is_call(node):
                    assert isinstance(node.value, tree.Apply)
                    self.single_call(node, node.value)
                    return
                called = self.called_in(values_of(node))
                if self.has_no_program(called):
                    self.unknown_tensor(node.target.name, node.span)
                    return
                before, node = self.nested_calls(node) if called else ([], node)
                for each in before:
                    self.statement(each)
                if node.operator in extremes.OPERATORS or node.operator == logsums.OPERATOR:
                    self.on_plain_operators(node)
                elif is_own(node.operator):
                    self.with_reducer(node)
                elif (product := self.complex_product(node)) is not None:
                    self.through_product(node, product)
                else:
                    self.one_target(node)
                    self.know_block(node)
                    _StatementChecker(self, self.with_indices(node)).check()

    def is_written(self, name: str) -> bool:
        """Whether a tensor is a parameter, or a statement before the present one wrote it."""
        info = self.scope.tensors.get(name)
        return info is not None and info.written and not info.ahead

    def begin(self, node: tree.Comprehension) -> None:
        """`Z(i) ^= e` where nothing has written `Z`: a message, and the statement that is meant, if there is one."""
        assert isinstance(node.value, tree.Binary)
        value = self.value_of(replace(node, value=node.value.right))
        is_float = value is not None and (value.dtype.is_float or value.weak == "float")
        told, meant = updates.unwritten(node, self.unit.source, is_float)
        self.scope.diagnostics.append(told)
        if meant is None:
            self.unknown_tensor(node.target.name, node.span)
        else:
            self.statement(replace(node, value=meant))

    def know_block(self, node: tree.Comprehension) -> None:
        """Before the first statement of a block, find the types of what statements read that later ones make."""
        number = node.blocks[0].number if node.blocks else -1
        if number < 0 or number in self.prepared:
            return
        self.prepared.add(number)
        made: dict[str, TensorInfo] = {}
        for each in self.groups[number]:
            results = self.results_of(each)
            for (target, indices), given in zip(each.targets, results or (None,) * len(each.targets), strict=True):
                name, span = target.name, target.span
                if name in self.scope.tensors or name in made:
                    continue
                kind = "result" if name in self.declared else "temporary"
                if kind == "temporary":
                    self.new_tensor(target, "temporary")
                rank = len(indices or ()) + (given.written_rank if given is not None else 0)
                dims = tuple(Size(f"{name}.{k}", span) for k in range(rank))
                dtype = given.element if given is not None else None
                info = TensorInfo(name, dtype, rank, dims, kind, span, written=True, ahead=True)
                (made if given is None else self.scope.tensors)[name] = info
        self.scope.tensors |= made
        statements = [each for each in self.groups[number] if not each.called]
        for known, dtype in types_of_block(self, statements, made).items():
            made[known].dtype, made[known].literal = dtype, None

    def results_of(self, node: tree.Comprehension) -> tuple[Tensor, ...]:
        """What a call at every step gives, as the callee has it; nothing where the number of targets is another one."""
        program = self.program_called(node.value.function.name) if isinstance(node.value, tree.Apply) else None
        if not node.called or program is None or len(program.results) != len(node.targets):
            return ()
        return tuple(map(program.tensor, program.results))

    def taken_out(
        self, node: tree.Def, callees: Container[str], statement: tree.Comprehension
    ) -> Sequence[tree.Comprehension]:
        """A statement inside of a block, and before it those for the calls of defs in it."""
        names = {each.name.name for each in node.params} | {name for each in node.statements for name in _targets(each)}
        dims = (dim for each in node.params if each.type is not None for dim in each.type.dimensions)
        sizes = tree.names_in(end for dim in dims for end in tree.ends(dim))
        called = {each.name for each in self.called_in(values_of(statement)) if each.name in callees} - names
        if not called:
            return (statement,)
        nested = NestedCalls(
            statement.target.name,
            lambda name: self.program_called(name) if name in called else None,
            lambda name: False,
            (names | sizes).__contains__,
            self.fresh_tensor,
            partial(self.number, sizes=set(sizes)),
        )
        value, plain = statement.value, statement.indices is None and statement.operator == "="
        if plain and isinstance(value, tree.Apply) and nested.callee(value.function.name) is not None:
            value = nested.called(value)
            if all(isinstance(each, tree.Name) for each in value.arguments):
                self.refuse_clauses(statement)
                statement = replace(statement, clauses=(), along=(), called=True)
        else:
            value = nested.inside(value, whole=False)
        before = [
            replace(
                each,
                blocks=statement.blocks,
                called=isinstance(each.value, tree.Apply) and each.value.function.name in called,
            )
            for each in nested.statements
        ]
        return (*before, replace(statement, value=value))

    def call_at_steps(self, node: tree.Comprehension) -> None:
        """A call of a def at every step of a block."""
        call, span, targets = node.value, node.span, tuple(target for target, _ in node.targets)
        assert isinstance(call, tree.Apply)
        found = [self.plane(each) if isinstance(each, tree.Apply) else self.named(each) for each in call.arguments]
        program = self.callee(call.function, found, span)
        ranges = [each for each in node.clauses if isinstance(each, tree.Where)]
        ends = [(self.end(each.lower), self.end(each.upper)) for each in ranges]
        steps = tuple(
            Index(each.index.name, "output", (lower, upper), each.span)
            for each, (lower, upper) in zip(ranges, ends, strict=True)
            if lower is not None and upper is not None
        )
        passed = [each for each in found if each is not None]
        names = tuple(tree.Name(each.name, each.span) for each in passed)
        for each in targets:
            if (info := self.scope.tensors.get(each.name)) is not None and info.ahead:
                del self.scope.tensors[each.name]
        fits = (
            program is not None
            and (len(passed), len(steps)) == (len(found), len(ends))
            and self.counts_fit(program, targets, names, span)
            and self.arguments_fit(program, passed)
        )
        if program is None or not all([fits, *(self.new_target(each, targets[:k]) for k, each in enumerate(targets))]):
            for each in targets:
                self.unknown_tensor(each.name, span)
            return
        order = tuple((each.index.name, each.step) for each in node.along) if node.blocks else ()
        received = tuple(each.name for each in targets)
        behind = tuple(name for name in self.ahead(node) if name not in received)
        planes = {
            name: each.name
            for name, each, written in zip(program.parameters, passed, call.arguments, strict=True)
            if isinstance(written, tree.Apply)
        }
        loop = Steps(steps, set(), order, block_name(node), behind)
        copy = inline_in_steps(
            program, [each.stored for each in passed], planes, loop, self.new_prefix(program.name), received, span
        )
        self.note_call(program, call.function.name, passed, targets, copy, span)
        self.received_at_steps(targets, copy, loop.block)

    def received_at_steps(self, targets: tuple[tree.Name, ...], copy: Inlined, block: str) -> None:
        """The parts of a copy, whose results are the targets; what does not move stands before the block."""
        draft = self.draft
        place = next(
            (k for k, each in enumerate(draft.statements) if block and each.block == block), len(draft.statements)
        )
        still = [each for each in copy.statements if block and not each.block]
        draft.statements[place:place] = still
        draft.calls = [
            replace(each, position=each.position + len(still)) if each.position > place else each
            for each in draft.calls
        ]
        draft.statements += [each for each in copy.statements if each.block or not block]
        draft.tensors |= {each.name: each for each in copy.tensors}
        draft.equalities += copy.equalities
        for target, result in zip(targets, copy.results, strict=True):
            name, span, rank = target.name, target.span, result.written_rank
            draft.tensors[name] = replace(result, span=span)
            draft.counts.setdefault(name, 1)
            dims = tuple(Size(f"{name}.{k}", span) for k in range(rank))
            self.scope.tensors[name] = TensorInfo(name, result.element, rank, dims, "temporary", span, written=True)

    def new_prefix(self, name: str) -> str:
        """What the names of one more copy of a def begin with."""
        number = self.prefixes[name] = self.prefixes.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"

    def plane(self, node: tree.Apply[tree.Expression]) -> Passed | None:
        """What a step has of a tensor, as an argument."""
        passed = self.passed(node.function)
        if passed is None:
            return None
        dims = passed.dims[len(node.arguments) :]
        scalar = None if dims or passed.dtype.is_complex else Read(passed.name, (), passed.dtype, passed.span)
        return replace(passed, dims=dims, scalar=scalar, computed=True)

    def named(self, node: tree.Expression) -> Passed | None:
        """An argument that is the same at every step."""
        return self.passed(node) if isinstance(node, tree.Name) else None

    def ahead(self, node: tree.Comprehension) -> tuple[str, ...]:
        """The targets of a statement and of later ones of its block, but for those that earlier statements make, too."""
        members = [each for block in node.blocks[:1] for each in self.groups[block.number]]
        place = next((k for k, each in enumerate(members) if each.span == node.span), 0)
        known = {info.name for info in self.scope.tensors.values() if info.written and not info.ahead}
        early = known - {node.target.name}
        names = (name for each in members[place:] for name in _targets(each))
        return tuple(dict.fromkeys(name for name in names if name not in early))

    def value_of(self, node: tree.Comprehension) -> Typed | None:
        """The value of a statement with its type, as far as one can say; no message is given."""
        tensors = self.scope.tensors
        read = {info.name for info in tensors.values() if info.read}
        other = _StatementChecker(self, node)
        other.names.settles = True

        def checked() -> Typed | None:
            other.left()
            other.lets()
            return other.expressions.value(node.value)

        value = self.scope.silently(checked)
        for info in tensors.values():
            info.read = info.name in read
        if value is None:
            return None
        found = value if value.weak else settle(value)
        counts = found.dtype is BOOL and other.operator in ("+", "*")
        return replace(found, dtype=INT32) if counts else found

    # positions of extreme values

    def constant(self, node: tree.Constant) -> None:
        """A constant of the body, or of the cell: a number, or a tensor that a statement of its own fills."""
        name, dtype = node.name.name, TYPE_NAMES[node.type.scalar]
        count = len(self.scope.diagnostics)
        self.new_tensor(node.name, "constant")
        made = constants.values_of(node, dtype, self.scope.report) if len(self.scope.diagnostics) == count else None
        if made is None:
            self.unknown_tensor(name, node.name.span)
            return
        rank = len(node.type.dimensions)
        dims = tuple(Const(extent, INT64, node.type.span) for extent in made.shape[:rank])
        info = TensorInfo(name, dtype, rank, dims, "constant", node.name.span, written=True)
        self.scope.tensors[name] = info
        if not rank:
            of = dtype.part if dtype.is_complex else dtype.compute
            numbers = [Const(value, of, node.span) for value in made.values]
            info.literal = Typed(
                complexes.paired(numbers[0], numbers[1], node.span) if dtype.is_complex else numbers[0], dtype
            )
            return
        self.draft.tensors[name] = as_pairs(Tensor(name, dtype, rank, "temporary", span=node.name.span))
        text = self.unit.source.slice(node.span)
        self.draft.statements.append(constants.statement(self.draft.name_of(name), made, dtype, node, text))

    def constants(self) -> None:
        """Those of the cell that the def mentions."""
        if not self.unit.constants:
            return
        words = words_of(self.unit.source.slice(self.node.span))
        for name, node in self.unit.constants.items():
            if name in words:
                self.constant(node)
                self.scope.tensors[name].read = True  # no statement of this def

    def with_indices(self, node: tree.Comprehension) -> tree.Comprehension:
        """A statement on whole arrays with the indices that are meant; the arrays have one box."""
        scope = self.scope
        taken = [*scope.tensors, *scope.sizes, *scope.result_sizes, *scope.results, *scope.later]
        found = indexed(node, scope.tensors, taken)
        if found is None:
            return node
        if (product := _product_of(node, scope)) is not None:
            message = (
                "whole arrays are multiplied element by element, which needs equal shapes: each call compares them"
            )
            fix = Fix(f"write `{product}`", (Edit(Span(node.target.span.start, node.value.span.end), product),))
            help = f"a product of matrices is `{product}`"
            scope.report(codes.CHECKED_AT_CALL, node.value.span, message, help=help, fix=fix)
        target = self.scope.tensors.get(node.target.name)
        written = [node.target] if target is not None and target.written else []
        known = [each for each in (*found.arrays, *written) if self.scope.tensors[each.name].has_dims]
        if not known:
            return found.node
        first, *others = known
        one = self.scope.tensors[first.name]
        for name in others:
            other = self.scope.tensors[name.name]
            reason = f"`{first.name}` and `{name.name}` are combined element by element"
            pairs = [*zip(one.dims, other.dims, strict=True)]
            pairs += zip(one.starts, other.starts, strict=False)  # of parameters: those of others are not known yet
            self.draft.equalities += [Equality(*pair, "call", reason, name.span) for pair in pairs if name != first]
        if not written and others:  # arrays of one shape may still begin at different indices
            reason = f"the arrays of `{node.target.name}` have one box"
            ends = [Size(f"{node.target.name}.{k}", node.target.span) for k in range(len(one.dims))]
            pairs = zip(ends, one.dims, strict=True)
            self.draft.equalities += [Equality(*pair, "call", reason, first.span) for pair in pairs]
        return found.node

    def one_target(self, node: tree.Comprehension) -> None:
        """Only reducers and the operators of positions write several tensors."""
        if node.before:
            target = node.before[0][0]
            help = "`argmax=!` and `argmin=!` alone have two, as in `V(n), P(n) argmax=! X(n, m)`"
            self.scope.report(codes.SYNTAX_ERROR, target.span, "a statement writes one tensor", help=help)
            for each, _ in node.before:
                self.unknown_tensor(each.name, each.span)

    def order_span(self, node: tree.Comprehension) -> Span | None:
        """The place of `along` and the indices behind it, with the space before."""
        first, last = node.along[0].span, node.along[-1].span
        before = self.scope.source.text[: first.start].rstrip()
        start = len(before.removesuffix("along").rstrip())
        return Span(start, last.end) if before.endswith("along") else None

    def without_order(self, node: tree.Comprehension) -> tuple[str, Fix | None]:
        """What helps where the points of an operator on plain ones are in an order: `along t` behind it, or around it."""
        own = {target.name for target, _ in node.targets} & tree.names_in((node.value,))
        is_position = node.operator in extremes.OPERATORS
        if not is_position and (own or node.blocks):
            parts = "`M max=! e`, `Z +=! exp(e - M)` and `L = M + log(Z)`"
            block = f"`along {node.along[0].index.name} in .. {{ .. }}`"
            return f"of what is carried along it is {parts}, with their indices, in a block {block}", None
        if node.blocks:
            value = node.operator.removeprefix("arg")
            return (
                f"write the value with `{value}` in the block, and the position with `{node.operator}` behind the block",
                None,
            )
        if own:
            beyond = "> (M(t-1) else -inf)" if "max" in node.operator else "< (M(t-1) else inf)"
            carried = f"`P(t) = X(t) {beyond} ? t : (P(t-1) else 0)`"
            return f"a position that is carried along is a statement of its own, as in {carried}", None
        fix = None
        in_any = not is_position or all(each.step > 0 for each in node.along)
        if not node.blocks and in_any and (written := self.order_span(node)):
            fix = Fix("leave `along` out", (Edit(written, ""),))
        why = "of equal values it gives the first one" if is_position else "it is the same in every order"
        return f"{why}: leave `along` out", fix

    def on_plain_operators(self, node: tree.Comprehension) -> None:
        """`P(n) argmax=! X(n, m)` and `L(n) lse=! X(n, m)`, as statements on plain operators."""
        if node.along:
            message = f"the points of `{node.operator}` have no order"
            help, fix = self.without_order(node)
            place = node.operator_span if node.blocks else node.along[0].span
            self.scope.report(codes.UNSUPPORTED, place, message, help=help, fix=fix)
            for target, _ in node.targets:
                self.unknown_tensor(target.name, target.span)
            return
        told = {(item.code, item.span) for item in self.scope.diagnostics}
        count = len(self.scope.diagnostics)
        find = self.positions_found if node.operator in extremes.OPERATORS else self.logarithm_found
        if not find(node):
            self.unknown_tensor(node.target.name, node.target.span)
            for each, _ in node.before:
                self.unknown_tensor(each.name, each.span)
        self.once(count, told)

    def once(self, count: int, told: set[tuple[codes.Code, Span]]) -> None:
        """Keep one message of those that statements with common parts have, from number `count` on, and none that was told."""
        for item in self.scope.diagnostics[count:]:
            if (item.code, item.span) in told or item.code is codes.PLAIN_UPDATE:
                self.scope.diagnostics.remove(item)
            told.add((item.code, item.span))

    # reducers of one's own

    def with_reducer(self, node: tree.Comprehension) -> None:
        """`A(n), S(n), C(n) moments=! X(n, m)` as a fold; of several components over a state, which other statements read."""
        if node.along:
            help = "what is carried along is a statement of its own, as in `Y(i) = Y(i-1) + X(i) along i`"
            message = f"the points of `{node.operator}` have no order"
            self.scope.report(codes.UNSUPPORTED, node.along[0].span, message, help=help)
            for target, _ in node.targets:
                self.unknown_tensor(target.name, target.span)
            return
        told = {(item.code, item.span) for item in self.scope.diagnostics}
        count = len(self.scope.diagnostics)
        reducer = self.unit.reducer(node, self.scope)
        if reducer is None:
            self.silent = True
        elif self.components_fit(node, reducer):
            if self.is_direct(node, reducer):
                _StatementChecker(self, node, reducer).check()
                return
            if self.through_state(node, reducer):
                self.once(count, told)
                return
        for each, _ in node.targets:
            self.unknown_tensor(each.name, each.span)
        self.once(count, told)

    def components_fit(self, node: tree.Comprehension, reducer: Reducer) -> bool:
        """TC248: as many targets as components, at the same indices, and as many values as the reducer takes."""
        count, values = len(reducer.types), len(reducer.given) or len(reducer.types)
        given, name = len(node.targets), reducer.name
        if given != count:
            targets = ", ".join("ABCDEFGH"[k : k + 1] + "(n)" for k in range(count)) if count <= 8 else "..."
            help = f"write one tensor for each, as in `{targets} {node.operator} ...`"
            here = f"{'is' if given == 1 else 'are'} {given} target{'s' * (given != 1)}"
            message = f"`{name}` has {count} component{'s' * (count != 1)}, and here {here}"
            self.scope.report(codes.BAD_REDUCER, node.target.span, message, help=help)
        elif len(node.rest) + 1 != values:
            here = f"{len(node.rest) + 1} {'are' if node.rest else 'is'} here"
            message = f"`{name}` takes {values} value{'s' * (values != 1)}, and {here}"
            shown = ", ".join(reducer.given) or ", ".join("xyzuvwpq"[:values])
            help = f"write them in brackets: `({shown})`" if values > 1 else "write one value"
            self.scope.report(codes.BAD_REDUCER, node.value.span, message, help=help)
        elif len({target.name for target, _ in node.targets}) < count:
            message = "two components have one target"
            self.scope.report(codes.DUPLICATE_NAME, node.target.span, message, help="give each one a tensor of its own")
        elif (other := next((each for each, places in node.before if places != node.indices), None)) is not None:
            message = f"`{other.name}` and `{node.target.name}` are written at different indices"
            self.scope.report(codes.BAD_REDUCER, other.span, message, help="all components have the same indices")
        elif count > 1 and common_type(reducer.types) is None:
            shown = _listed([f"`{each.value}`" for each in dict.fromkeys(reducer.types)])
            message = f"no type holds components of {shown} without loss"
            help = "use `int32` or `double` in the reducer"
            self.scope.report(codes.BAD_REDUCER, node.operator_span, message, help=help)
        else:
            return True
        return False

    def is_direct(self, node: tree.Comprehension, reducer: Reducer) -> bool:
        """Whether the fold may combine into its target: one component, in the type of the target."""
        if len(reducer.types) != 1:
            return False
        (own,) = reducer.types
        return own is (self.type_of_target(node.target.name) or own)

    def type_of_target(self, name: str) -> DType | None:
        """The type of a tensor that is written, if a statement before or the signature tells it."""
        info, declared = self.scope.tensors.get(name), self.declared.get(name)
        return info.dtype if info is not None and info.dtype is not None else declared[0] if declared else None

    def through_state(self, node: tree.Comprehension, reducer: Reducer) -> bool:
        """Whether the statements of a fold over a state have a meaning."""
        several, dtype = len(reducer.types) > 1, common_type(reducer.types)
        found = self.state_of(node, reducer)
        if found is None:
            return False
        state, fold = found
        for k, (target, left) in enumerate(node.targets):
            number = (tree.Number(str(k), k, None, state.span),) if several else ()
            at = self.elements_of(fold, replace(node, indices=left))
            read: tree.Expression = extremes.element(state, (*number, *(at or ())), node.value.span)
            if reducer.types[k] is not dtype:
                kind = tree.Name(reducer.types[k].value, state.span)
                read = tree.Apply(kind, (read,), node.value.span)
            if self.checked(_read_out(node, "=", target, at, read), named=target.name) is None:
                return False
        return True

    def state_of(self, node: tree.Comprehension, reducer: Reducer) -> tuple[tree.Name, Statement] | None:
        """The state that a fold combines into, components along a first dimension, and the fold; `None` after a message."""
        place, several = node.target.span, len(reducer.types) > 1
        part = tree.Name(f"{reducer.name}.part", place)
        state = tree.Name(f"{node.target.name}.{reducer.name}", place)
        indices = (part, *(node.indices or ())) if several else node.indices
        fold = replace(node, target=state, indices=indices, before=())
        found = self.checked(fold, reducer, part.name if several else "", node.target.name)
        return None if found is None else (state, found)

    def complex_product(self, node: tree.Comprehension) -> Reducer | None:
        """What multiplies the complex numbers of `Y(n) *=! Z(n, m)`; `None` for other statements."""
        if node.operator not in ("*=", "*=!") or node.along:
            return None
        name = node.target.name
        value, info, declared = self.value_of(node), self.scope.tensors.get(name), self.declared.get(name)
        kinds = value and value.dtype, info and info.dtype, declared and declared[0]
        kind = next((each for each in kinds if each is not None and each.is_complex), None)
        if kind is None or value is None:
            return None
        left = {index.name for index in node.indices or () if isinstance(index, tree.Name)}
        clauses = (part for clause in node.clauses for part in tree.parts(clause))
        names = {
            item.name for part in (node.value, *clauses) for item in tree.walk(part) if isinstance(item, tree.Name)
        }
        names -= {clause.name.name for clause in node.clauses if isinstance(clause, tree.Let)} | left
        plain = len(left) == len(node.indices or ()) and all(self.scope.taken(each) for each in names)
        if plain and node.operator == "*=":
            return None  # each element by one number
        own = value.dtype.part if value.dtype.is_complex else value.dtype
        return complexes.product(own if own.is_float else kind.part)

    def through_product(self, node: tree.Comprehension, reducer: Reducer) -> None:
        """A product of complex numbers: as a fold of pairs, and what the target has is made of the pairs."""
        told = {(item.code, item.span) for item in self.scope.diagnostics}
        count = len(self.scope.diagnostics)
        made, found = self.state_of(node, reducer), None
        if made is not None:
            state, fold = made
            at = self.elements_of(fold, node)
            numbers = [tree.Number(str(k), k, None, state.span) for k in (0, 1)]
            parts = tuple(extremes.element(state, (number, *(at or ())), node.value.span) for number in numbers)
            kind = tree.Name(reducer.types[0].of_pairs.value, state.span)
            whole: tree.Expression = tree.Apply(kind, parts, node.value.span)
            operator = "=" if node.operator == "*=!" else "*="
            found = self.checked(_read_out(node, operator, node.target, at, whole), named=node.target.name)
        if found is None:
            self.unknown_tensor(node.target.name, node.target.span)
        self.once(count, told)

    def positions_found(self, node: tree.Comprehension) -> bool:
        """Whether the statements have a meaning."""
        kind, place = extremes.OPERATORS[node.operator], node.target.span
        extreme = node.before[0][0] if node.before else tree.Name(f"{node.target.name}.{kind}", place)
        if len(node.before) > 1:
            self.one_target(replace(node, before=node.before[1:]))
            return False
        if node.before and not self.same_indices(node, node.before[0][1]):
            return False
        if extreme.name == node.target.name:
            help = "the value and its position are two tensors, as in `V(n), P(n) argmax=! X(n, m)`"
            message = f"`{extreme.name}` cannot be both the value and its position"
            self.scope.report(codes.POSITION, node.target.span, message, help=help)
            return False
        draft, tensors = self.draft.copy(), dict(self.scope.tensors)
        named = extreme.name if node.before else node.target.name
        found = self.checked(extremes.value_statement(node, extreme, node.value), named=named)
        if found is None:
            return False
        reduced = [index.name for index in found.reduction_indices]
        at = self.place_of(node, reduced)
        if at is None:
            return False
        value = node.value
        if not extremes.is_exact(found.value) and found.conditions:
            message = "this value may differ in its last bit when it is computed twice, and conditions leave points out"
            help = "store it in a statement of its own first, as in `Z(n, m) = ...`, and look through `Z(n, m)`"
            self.scope.report(codes.UNSUPPORTED, node.value.span, message, help=help)
            return False
        if not extremes.is_exact(found.value):
            self.draft, self.scope.tensors = draft, tensors
            stored, value = extremes.stored_value(node, f"{node.target.name}.value", reduced)
            if self.checked(stored) is None:
                return False
            node = replace(node, clauses=tuple(each for each in node.clauses if not isinstance(each, tree.Exists)))
            found = self.checked(extremes.value_statement(node, extreme, value), named=named)
            if found is None:
                return False
        dtype = self.draft.tensors[extreme.name].dtype
        if value is node.value and changes_where_stored(found.value, dtype):
            value = extremes.as_stored(value, dtype)
        count = len(self.scope.diagnostics)
        position, first = extremes.position_statement(node, value, extreme, at, dtype.is_float), node.target
        if found.conditions or found.left:  # an element may have no point
            first = tree.Name(f"{node.target.name}.first", place)
        found = self.checked(replace(position, target=first), named=node.target.name)
        told = any(item.is_error for item in self.scope.diagnostics[count:])
        if found is not None and found.value.dtype.is_float and not told:
            message = f"a position is an integer, and this is `{found.value.dtype.value}`"
            self.scope.report(codes.POSITION, at.span, message, help="write an integer expression of the indices")
            return False
        if found is not None and first is not node.target:
            node = replace(node, indices=self.elements_of(found, node))
            return self.checked(extremes.copied(node, first), named=node.target.name) is not None
        return found is not None

    def logarithm_found(self, node: tree.Comprehension) -> bool:
        """Whether the statements of a logarithm of a sum have a meaning."""
        self.one_target(node)
        most, total = (tree.Name(f"{node.target.name}.{part}", node.target.span) for part in ("max", "sum"))
        if self.checked(logsums.largest(node, most), named=node.target.name) is None:
            return False
        dtype = self.draft.tensors[most.name].dtype
        if not dtype.is_float:
            text = self.scope.source.slice(node.value.span)
            fix = Fix(f"write `float({text})`", (Edit(node.value.span, f"float({text})"),)) if len(text) < 200 else None
            message = f"`{node.operator}` takes powers of floats, and this is `{dtype.value}`"
            self.scope.report(codes.TYPE_MISMATCH, node.value.span, message, fix=fix)
            return False
        own = max(dtype, self.type_of_target(node.target.name) or dtype, key=lambda each: each.bits)
        found = self.checked(logsums.sum_of_powers(node, total, most, own.compute), named=node.target.name)
        if found is None:
            return False
        node = replace(node, indices=self.elements_of(found, node))
        return self.checked(logsums.logarithm(node, total, most, own.compute, own), named=node.target.name) is not None

    def elements_of(self, statement: Statement, node: tree.Comprehension) -> tuple[tree.Expression, ...] | None:
        """The indices of all elements of a target whose left side may hold expressions."""
        if node.indices is None:
            return None
        names = [index.name for index in statement.output_indices]
        names = names[len(names) - len(node.indices) :]  # behind the parts of a complex number
        return tuple(tree.Name(name, index.span) for index, name in zip(node.indices, names, strict=True))

    def checked(
        self, node: tree.Comprehension, reducer: Reducer | None = None, part: str = "", named: str = ""
    ) -> Statement | None:
        """The statement that a tree means; `None` after a message."""
        count = len(self.draft.statements)
        _StatementChecker(self, node, reducer, part, named).check()
        return self.draft.statements[-1] if len(self.draft.statements) > count else None

    def same_indices(self, node: tree.Comprehension, indices: tuple[tree.Expression, ...] | None) -> bool:
        """Whether both targets of a statement have the same indices."""
        same = (node.indices or ()) == (indices or ())
        if not same:
            message = f"`{node.before[0][0].name}` and `{node.target.name}` are written at different indices"
            help = "the value and its position have the same indices, as in `V(n), P(n) argmax=! X(n, m)`"
            self.scope.report(codes.POSITION, node.target.span, message, help=help)
        return same

    def place_of(self, node: tree.Comprehension, reduced: Sequence[str]) -> tree.Expression | None:
        """What the position is: the expression behind `at`, or the one index that is looked through; `None` after a message."""
        if not reduced:
            message = f"`{node.operator}` looks through nothing: all indices are on the left"
            help = "an index that stands only on the right is looked through, as `m` in `P(n) argmax=! X(n, m)`"
            self.scope.report(codes.POSITION, node.operator_span, message, help=help)
            return None
        if node.at is not None:
            return node.at
        if len(reduced) == 1:
            return tree.Name(reduced[0], node.value.span)
        shown = _listed([f"`{name}`" for name in reduced])
        text = extremes.row_major(reduced, node.value, node.clauses)
        place = Span(node.value.span.end, node.value.span.end)
        fix = Fix(f"write `at {text}`", (Edit(place, f" at {text}"),)) if text else None
        message = f"a position is one number, and the statement looks through {shown}"
        help = "say what the number is behind `at`, as in `P(n) argmax=! X(n, h, w) at h*X.2 + w`"
        self.scope.report(codes.POSITION, node.operator_span, message, help=help, fix=fix)
        return None

    def unknown_tensor(self, name: str, span: Span) -> None:
        """A tensor about which nothing is known, because its statement has a mistake."""
        self.silent = True
        if name not in self.scope.tensors:
            kind = "result" if name in self.declared else "temporary"
            self.scope.tensors[name] = TensorInfo(name, None, None, (), kind, span, written=True, read=True)

    # calls of defs

    def is_call(self, node: tree.Comprehension) -> bool:
        """Whether `s = g(X)` calls a def."""
        value = node.value
        if node.indices is not None or node.operator != "=" or not isinstance(value, tree.Apply):
            return False
        name = value.function.name
        if name in self.unit.defs:
            return name not in self.scope.tensors
        return name in self.unit.known and name not in self.scope.tensors and name not in TC_FUNCTIONS

    def iteration(self, node: tree.Comprehension) -> tuple[tree.Apply[tree.Expression], tree.Name] | None:
        """The call of a def and how often it is applied, if a statement is `V = f^n(U)`."""
        value = node.value
        if node.indices is not None or node.operator != "=" or not isinstance(value, tree.Binary) or value.op != "^":
            return None
        function, power = value.left, value.right
        if not isinstance(function, tree.Name) or not isinstance(power, tree.Apply):
            return None
        return (replace(power, function=function), power.function) if is_power_of_def(self.scope, value) else None

    def called_in(self, values: Iterable[tree.Expression]) -> list[tree.Name]:
        """The names before brackets and powers that are those of defs of this cell or of functions of earlier ones."""
        nodes = [each for value in values for each in tree.walk(value)]
        named = [each.function for each in nodes if isinstance(each, tree.Apply)]
        named += [each.left for each in nodes if isinstance(each, tree.Binary) and is_power_of_def(self.scope, each)]
        names = [each for each in named if isinstance(each, tree.Name)]
        return [each for each in names if each.name in self.unit.callable_names or self.unit.def_of(each.name)]

    def has_no_program(self, called: Iterable[tree.Name]) -> bool:
        """Whether one of these defs calls this one, which a message says, or has mistakes, which have messages."""
        unit, scope = self.unit, self.scope
        found = ((each, unit.def_of(each.name)) for each in called if each.name not in scope.tensors)
        own = [(each, name) for each, name in found if name is not None]
        waiting = next((each for each, name in own if name not in unit.done), None)
        if waiting is not None:
            self.recursive(waiting)
            return True
        broken = any(name in unit.broken and name not in TC_FUNCTIONS for _, name in own)
        self.silent |= broken
        return broken

    def nested_calls(self, node: tree.Comprehension) -> tuple[list[tree.Comprehension], tree.Comprehension]:
        """The statements that calls of defs inside a value are, and the statement without them."""
        nested = self.nested_in(node.target)
        value = nested.inside(node.value, whole=node.indices is None and node.operator == "=")
        clauses = tuple(
            tree.mapped_clause(each, partial(nested.inside, whole=False))
            if isinstance(each, tree.Let | tree.Filter)
            else each
            for each in node.clauses
        )
        return nested.statements, replace(node, value=value, clauses=clauses)

    def nested_in(self, target: tree.Name) -> NestedCalls:
        calls = self.program_called, self.is_open_call
        return NestedCalls(target.name, *calls, self.is_whole, self.fresh_tensor, self.number)

    def is_open_call(self, name: str) -> bool:
        """Whether this is a function of an earlier cell or of a file whose program depends on the arguments of a call."""
        known = self.unit.known.get(name)
        is_own = name in self.scope.tensors or name in TC_FUNCTIONS or name in self.unit.defs
        return not is_own and known is not None and not isinstance(known, Program) and self.program_called(name) is None

    def program_called(self, name: str) -> Program | None:
        """The program behind the name of a def; `None` for other names, and while its types are not known."""
        known = self.unit.known.get(name)
        if name in self.scope.tensors or (name in TC_FUNCTIONS and name not in self.unit.defs):
            return None
        if name in self.unit.defs:
            return self.unit.programs[name] if name in self.unit.done - self.unit.broken else None
        found = known if isinstance(known, Program) or known is None else known.program_for(())
        return found if isinstance(found, Program) else None

    def is_whole(self, name: str) -> bool:
        """Whether a name is an array or a number of this def, and so no index."""
        return name in self.scope.tensors or name in self.scope.sizes or name in self.scope.result_sizes

    def fresh_tensor(self, like: str) -> str:
        """A name for a tensor that no statement names; a dot stands in it."""
        names = (like if number == 1 else f"{like}{number}" for number in itertools.count(1))
        found = next(name for name in names if name not in self.scope.tensors and name not in self.nested)
        self.nested.add(found)
        return found

    def number(self, name: str, node: tree.Expression, sizes: Collection[str] = ()) -> bool:
        """Whether an argument is a number of sizes, integers of the signature and literals; it gets the name.

        Args:
            sizes: names of sizes beside those that are known already.
        """
        known = {*self.scope.sizes, *self.scalars, *sizes}
        for each in tree.walk(node):
            is_size = isinstance(each, tree.Extent) or (isinstance(each, tree.Name) and each.name in known)
            is_literal = isinstance(each, tree.Number) and type(each.value) is int and each.type is None
            if not (is_size or is_literal or isinstance(each, (tree.Unary, tree.Binary))):
                return False
        self.numbers[name] = node
        return True

    def single_call(
        self, node: tree.Comprehension, value: tree.Apply[tree.Expression], count: tree.Name | None = None
    ) -> None:
        self.refuse_clauses(node)
        self.call_with((node.target,), value, node.span, count)

    def refuse_clauses(self, node: tree.Comprehension) -> None:
        """Report the clauses and the order of a call of a def, which has no points of its own."""
        for parts, word, what in (node.clauses, "where", "ranges are"), (node.along, "along", "orders are"):
            if parts:
                message, help = f"a call of a def has no `{word}`", f"{what} given inside the def"
                self.scope.report(codes.SYNTAX_ERROR, parts[0].span, message, help=help)

    def call_with(
        self, targets: tuple[tree.Name, ...], applied: tree.Apply[tree.Expression], span: Span, count: tree.Name | None
    ) -> None:
        """A call whose arguments may be expressions, which become statements before it."""
        names = self.argument_names(targets[0], applied)
        if names is not None:
            self.call(targets, applied.function, names, span, count)
            return
        for target in targets:
            self.unknown_tensor(target.name, span)

    def argument_names(self, target: tree.Name, applied: tree.Apply[tree.Expression]) -> tuple[tree.Name, ...] | None:
        """The names of the arguments; `None` after a message."""
        if self.has_no_program(self.called_in(applied.arguments)):
            return None
        nested = self.nested_in(target)
        names: list[tree.Name] = []
        for argument in nested.called(applied).arguments:
            if not isinstance(argument, tree.Name):
                if (power := self.power_in(argument)) is not None:
                    refuse_power(self.scope, power)
                    return None
                if (unknown := self.unknown_in(argument)) is not None:
                    self.passed(unknown)
                    return None
                written = self.scope.source.slice(argument.span)
                message = f"a def is called with whole arrays and numbers; `{written}` has an index"
                name = applied.function.name
                help = f"pass the array, and read elements of what `{name}` gives in a statement behind it"
                fix = self.scope.whole_arguments(applied)
                self.scope.report(codes.SYNTAX_ERROR, argument.span, message, help=None if fix else help, fix=fix)
                return None
            names.append(argument)
        for each in nested.statements:
            self.statement(each)
        return tuple(names)

    def power_in(self, argument: tree.Expression) -> tree.Binary[tree.Expression] | None:
        """The first power of a def in an expression."""
        nodes = (each for each in tree.walk(argument) if isinstance(each, tree.Binary))
        return next((each for each in nodes if is_power_of_def(self.scope, each)), None)

    def unknown_in(self, argument: tree.Expression) -> tree.Name | None:
        """The first name of an expression that nothing has, and that is no index of a read in it."""
        if isinstance(argument, tree.Apply) and argument.function.name in self.scope.tensors:
            return None
        if isinstance(argument, tree.Name):
            return None if self.is_whole(argument.name) else argument
        found = map(self.unknown_in, tree.children(argument))
        return next((each for each in found if each is not None), None)

    def call(
        self,
        targets: tuple[tree.Name, ...],
        callee: tree.Name,
        arguments: tuple[tree.Name, ...],
        span: Span,
        count: tree.Name | None = None,
    ) -> None:
        """Inline a call, or `count` of them in a row, or say why it cannot be; its targets exist afterwards in any case."""
        self.mentioned |= {name.name for name in arguments}
        passed = [self.passed(argument) for argument in arguments]
        program = self.callee(callee, passed, span)
        fresh = [self.new_target(target, targets[:i]) for i, target in enumerate(targets)]
        if program is not None and self.counts_fit(program, targets, arguments, span) and all(fresh):
            found = [item for item in passed if item is not None]
            fits = len(found) == len(passed) and self.arguments_fit(program, found)
            number = None if count is None or not fits else self.steps(program, count)
            if fits and (count is None or number is not None):
                self.inline(program, callee.name, found, targets, span, number)
        for target in targets:
            if target.name not in self.scope.tensors:
                self.unknown_tensor(target.name, span)

    def steps(self, program: Program, count: tree.Name) -> Expr | None:
        """How often a def is applied; `None` after a message."""
        reason = no_iteration(program)
        if reason:
            message = f"`{program.name}` cannot be applied to what it returns: {reason}"
            index = index_state(program, program.parameters, program.results)
            help, callee = state_help(index), self.unit.defs.get(program.name)
            if any(each.block for each in program.statements):
                help = f"in Python `{program.name}.iterate(n)` applies it"
            fix = None if index is None or callee is None else self.cast_values(callee, *index)
            self.scope.report(codes.STATE, count.span, message, help=help, fix=fix)
            return None
        if count.name.isdigit():
            return int64(int(count.name))
        self.mentioned.add(count.name)
        return self.end(
            count,
            "the number of steps",
            "a number of steps is a size, an integer scalar of the signature, or a literal",
        )

    def callee(self, name: tree.Name, passed: Sequence[Passed | None], span: Span) -> Program | None:
        """The program that is called; `None` after a message."""
        unit, scope = self.unit, self.scope
        own = unit.def_of(name.name)
        if own is not None and own not in unit.done:
            self.recursive(name)
            return None
        if own in unit.broken:
            self.silent = True
            return None
        if name.name in unit.defs:
            return unit.programs[name.name]
        if name.name in TC_FUNCTIONS:
            message = f"the function `{name.name}` has one result"
            scope.report(codes.ARGUMENT_COUNT, name.span, message, help=TC_FUNCTIONS[name.name].document)
            return None
        if name.name in unit.known:
            known = unit.known[name.name]
            return known if isinstance(known, Program) else self.specialized(name.name, known, passed, span)
        scope.unknown_def(name.name, name.span)
        return None

    def specialized(self, name: str, known: Open, passed: Sequence[Passed | None], span: Span) -> Program | None:
        """The program of an open function for these arguments; `None` after a message. A size fits `int64` and `int32`."""
        arguments = [item for item in passed if item is not None]
        if len(arguments) < len(passed):
            return None  # the argument has a message of its own
        if (pairs := next((item for item in arguments if item.dtype.is_complex), None)) is not None:
            help = "pass its real and its imaginary part, from `re(z)` and `im(z)`"
            message = f"`{name}` is no function of complex numbers"
            self.scope.report(codes.TYPE_MISMATCH, pairs.span, message, help=help)
            return None
        types = [ArgumentType(item.dtype, len(item.dims)) for item in arguments]
        found = known.program_for(types)
        if not isinstance(found, Program) and any(item.is_size for item in arguments):
            narrow = [
                replace(type_, dtype=DType.INT32) if item.is_size else type_
                for type_, item in zip(types, arguments, strict=True)
            ]
            found = known.program_for(narrow)
        if isinstance(found, Program):
            return found
        error = next((item for item in found if item.is_error), None)
        help = error.help if error else "the shape of its result depends on the numbers of a call: call it from Python"
        self.scope.report(codes.DECLARED_TYPE, span, cannot_be_called(name, error), help=help)
        return None

    def recursive(self, name: tree.Name) -> None:
        own = self.unit.def_of(name.name)
        assert own is not None
        cycle = [f"`{each}`" for each in (*self.unit.open[self.unit.open.index(own) :], own)]
        message = f"{cycle[0]} calls itself" if len(cycle) == 2 else f"defs call each other: {' -> '.join(cycle)}"
        self.scope.report(codes.RECURSIVE_CALL, name.span, message)

    def passed(self, name: tree.Name) -> Passed | None:
        """An argument; `None` if it is unknown, after a message."""
        scope, word = self.scope, name.name
        if word in self.numbers:
            number = self.end(self.numbers[word])
            return None if number is None else Passed(word, INT64, (), False, number, name.span)
        if word in scope.sizes or word in scope.result_sizes:
            value = scope.size(word, name.span)
            return None if value is None else Passed(word, INT64, (), False, value, name.span)
        info = scope.tensors.get(word)
        if info is None:
            written = word in self.declared
            help, fix = scope.did_you_mean(word, name.span, scope.tensors)
            code = codes.READ_BEFORE_WRITE if written else codes.UNKNOWN_NAME
            message = f"`{word}` is read before it is written" if written else f"there is no tensor `{word}`"
            scope.report(code, name.span, message, help=None if written else help, fix=None if written else fix)
            return None
        info.read = True
        if info.dtype is None or info.rank is None:
            self.silent = True
            return None
        if not info.written:
            scope.report(codes.READ_BEFORE_WRITE, name.span, f"`{word}` is read before it is written")
            return None
        scalar = Read(word, (), info.dtype, name.span) if info.rank == 0 and not info.dtype.is_complex else None
        return Passed(word, info.dtype, info.dims, not info.is_input, scalar, name.span)

    def new_target(self, target: tree.Name, earlier: tuple[tree.Name, ...]) -> bool:
        """Whether a target of a call is new."""
        scope, name = self.scope, target.name
        if any(other.name == name for other in earlier):
            scope.report(codes.DUPLICATE_NAME, target.span, f"two targets are called `{name}`")
            return False
        info = scope.tensors.get(name)
        if info is not None and info.is_input:
            labels = (Label(info.span, "the parameter"),)
            scope.report(codes.INPUT_ASSIGNED, target.span, f"the parameter `{name}` is read-only", "", labels)
            return False
        if info is not None:
            labels = (Label(info.span, "written here"),)
            help = "a def makes a new tensor; give it another name"
            scope.report(codes.SHADOWING, target.span, f"`{name}` exists already", "", labels, help)
            return False
        count = len(scope.diagnostics)
        if name not in self.declared:
            self.new_tensor(target, "temporary")
        return len(scope.diagnostics) == count

    def counts_fit(
        self, program: Program, targets: tuple[tree.Name, ...], arguments: tuple[tree.Name, ...], span: Span
    ) -> bool:
        wanted, given = len(program.parameters), len(arguments)
        shown = f"{program.name}({', '.join(program.parameters)}) -> ({', '.join(program.results)})"
        if wanted != given:
            message = f"`{program.name}` takes {wanted} argument{'s' * (wanted != 1)}, not {given}"
            self.scope.report(codes.ARGUMENT_COUNT, span, message, help=f"its signature is `{shown}`")
            return False
        if len(program.results) != len(targets):
            count = len(program.results)
            received = f"{len(targets)} {'is' if len(targets) == 1 else 'are'} received"
            message = f"`{program.name}` has {count} result{'s' * (count != 1)}, but {received}"
            self.scope.report(codes.ARGUMENT_COUNT, span, message, help=f"its signature is `{shown}`")
            return False
        return True

    def arguments_fit(self, program: Program, passed: list[Passed]) -> bool:
        """Ranks and element types; sizes are compared when the call is inlined."""
        count = len(self.scope.diagnostics)
        spend(len(program.statements))
        in_bounds = _bound_scalars(program)
        if (other := self.other_order(program, passed)) is not None:
            self.scope.diagnostics.append(other)
            return False
        for name, argument in zip(program.parameters, passed, strict=True):
            formal, own = program.tensor(name), f"`{name}` of `{program.name}`"
            written = self.scope.source.slice(argument.span)
            rank, dtype = formal.written_rank, formal.element
            if rank != len(argument.dims):
                dimensions = f"{rank} dimension{'s' * (rank != 1)}"
                message = f"{own} has {dimensions}, but `{written}` has {len(argument.dims)}"
                help = f"its signature is `{program.name}({', '.join(program.parameters)}) -> ({', '.join(program.results)})`"
                self.scope.report(codes.RANK_MISMATCH, argument.span, message, help=help)
            elif dtype is not argument.dtype and not (argument.is_size and dtype.is_integer):
                message = f"{own} is `{dtype.value}`, but `{written}` is `{argument.dtype.value}`"
                help = f"convert it, as in `{dtype.value}({written})`"
                if argument.dtype.is_complex and not dtype.is_complex:
                    help = complexes.TAKE_A_REAL
                fix = self.cast_where_written(argument.name, dtype) if dtype.is_integer else None
                if fix is not None:
                    help = f"an index as a value is `int64`: make it `{dtype.value}` where it is computed"
                elif dtype.is_integer:
                    fix = self.convert_position(argument.name, dtype, argument.span)
                elif dtype.is_float and not argument.dtype.is_complex:
                    fix = Fix(f"write `{dtype.value}({written})`", (Edit(argument.span, f"{dtype.value}({written})"),))
                self.scope.report(codes.TYPE_MISMATCH, argument.span, message, help=help, fix=fix)
            elif isinstance(argument.scalar, Const) and not dtype.limits[0] <= argument.scalar.value <= dtype.limits[1]:
                message = f"{own} is `{dtype.value}`, which does not hold {argument.scalar.value}"
                self.scope.report(codes.TYPE_MISMATCH, argument.span, message)
            elif argument.computed and name in in_bounds:
                message = f"`{program.name}` uses `{name}` in the bound of a range, so it cannot be computed"
                self.scope.report(
                    codes.WHERE_NOT_SIZE,
                    argument.span,
                    message,
                    help="pass an integer scalar of the signature or a size",
                )
        return len(self.scope.diagnostics) == count

    def other_order(self, program: Program, passed: list[Passed]) -> Diagnostic | None:
        """What to say of arguments that fit in one other order, by their dimensions and types; `None` if they do not."""

        def fits(name: str, argument: Passed) -> bool:
            formal = program.tensor(name)
            is_same = formal.element is argument.dtype or (argument.is_size and formal.element.is_integer)
            return formal.written_rank == len(argument.dims) and is_same

        def fit(order: Sequence[Passed]) -> bool:
            return all(map(fits, program.parameters, order))

        wrong = [each for name, each in zip(program.parameters, passed, strict=True) if not fits(name, each)]
        if len(wrong) < 2 or len(passed) > _MOST_ORDERED:
            return None
        orders = [each for each in itertools.permutations(passed) if fit(each)]
        if len(orders) != 1:
            return None
        texts = [self.scope.source.slice(each.span) for each in orders[0]]
        edits = tuple(
            Edit(each.span, text)
            for each, text in zip(passed, texts, strict=True)
            if self.scope.source.slice(each.span) != text
        )
        shown = f"{program.name}({', '.join(texts)})"
        message = f"the arguments of `{program.name}` fit in another order"
        help = f"its signature is `{program.name}({', '.join(program.parameters)}) -> ({', '.join(program.results)})`"
        return Diagnostic(codes.RANK_MISMATCH, wrong[0].span, message, help=help, fix=Fix(f"write `{shown}`", edits))

    def cast_where_written(self, name: str, dtype: DType) -> Fix | None:
        """Cast the values of what computed an `int64` tensor: statements of this def, or of the called one in this cell."""
        tensor = self.draft.tensors.get(name)
        if tensor is None or tensor.dtype is not INT64 or tensor.kind == "input":
            return None
        node, own = self.node, name
        for site in self.draft.calls:
            if name in site.targets and site.callee in self.unit.defs:
                node = self.unit.defs[site.callee]
                own = node.results[site.targets.index(name)].name.name
        return self.cast_values(node, own, dtype)

    def cast_values(self, node: tree.Def, own: str, dtype: DType) -> Fix | None:
        """Cast what the statements of a def on a tensor compute, if a cast there changes nothing else."""
        values = [
            each.value for each in node.statements if isinstance(each, tree.Comprehension) and each.target.name == own
        ]
        declared = any(result.name.name == own and result.type is not None for result in node.results)
        calls = any(isinstance(each, tree.Apply) and each.function.name in self.unit.callable_names for each in values)
        positions = any(  # their values are compared, and a cast would change which is the largest
            isinstance(each, tree.Comprehension) and each.target.name == own and each.operator in extremes.OPERATORS
            for each in node.statements
        )
        if not values or declared or calls or positions:
            return None
        ends = [(span.start, f"{dtype.value}(") for span in (value.span for value in values)]
        ends += [(value.span.end, ")") for value in values]
        shown = f"`{own}` of `{node.name.name}`"
        if own in self.nested:  # an argument, whose name nobody wrote
            shown = f"`{self.unit.source.slice(values[0].span)}`"
        return Fix(
            f"cast {shown} to `{dtype.value}`",
            tuple(Edit(Span(place, place), text) for place, text in sorted(ends)),
        )

    def convert_position(self, name: str, dtype: DType, span: Span) -> Fix | None:
        """Before a call, a statement that converts what `argmin=!` or `argmax=!` of this def gave; the call gets that."""
        found = (each for each in self.node.statements if isinstance(each, tree.Comprehension))
        found = (each for each in found if each.target.name == name and each.operator in extremes.OPERATORS)
        source, first = self.scope.source, next(found, None)
        call = next((each.span for each in self.node.statements if each.span.start <= span.start < each.span.end), None)
        new = f"{name}_{dtype.value}"
        if first is None or call is None or source.slice(span) != name or new in source.text:
            return None
        at = f"({', '.join(source.slice(each.span) for each in first.indices)})" if first.indices else ""
        edits = Edit(Span(call.start, call.start), f"{new}{at} = {dtype.value}({name}{at})  "), Edit(span, new)
        return Fix(f"convert `{name}` before", edits)

    def inline(
        self,
        program: Program,
        written: str,
        passed: list[Passed],
        targets: tuple[tree.Name, ...],
        span: Span,
        count: Expr | None = None,
    ) -> None:
        draft, name = self.draft, program.name
        prefix = self.new_prefix(name)
        stored = [each.stored for each in passed]
        copy = (
            inline_call(program, stored, prefix, span)
            if count is None
            else inline_iteration(program, stored, count, prefix, span)
        )
        self.note_call(program, written, passed, targets, copy, span)
        draft.tensors |= {tensor.name: tensor for tensor in copy.tensors}
        draft.statements += copy.statements
        draft.equalities += copy.equalities
        for target, result in zip(targets, copy.results, strict=True):
            self.receive(target, result)

    def note_call(
        self,
        program: Program,
        written: str,
        passed: Sequence[Passed],
        targets: tuple[tree.Name, ...],
        copy: Inlined,
        span: Span,
    ) -> None:
        """Note a call before its statements are added, and report the sizes that cannot be equal."""
        for position, message in copy.contradictions:
            self.scope.report(codes.SIZE_MISMATCH, passed[position].span, message)
        arguments, received = tuple(item.name for item in passed), tuple(target.name for target in targets)
        called = written if "." in written else program.name  # `conv.vjp`, whose program has a name of its own
        self.draft.calls.append(CallSite(called, arguments, received, len(self.draft.statements), span))

    def receive(self, target: tree.Name, result: Tensor) -> None:
        """A result of a call becomes a tensor of the caller."""
        name = target.name
        kind = "result" if name in self.declared else "temporary"
        wanted = self.declared.get(name)
        declared: tuple[Expr, ...] | None = None
        if wanted is not None:
            dtype, declared = wanted
            if dtype is not result.element or len(declared) != result.written_rank:
                message = f"`{name}` is declared `{dtype.value}` with {len(declared)} dimensions"
                help = f"the call gives `{result.element.value}` with {result.written_rank} dimensions"
                self.scope.report(codes.RESULT_TYPE, target.span, message, help=help)
                declared = None
        dtype, rank = result.element, result.written_rank
        dims = tuple(Size(f"{name}.{k}", target.span) for k in range(rank))
        self.scope.tensors[name] = TensorInfo(name, dtype, rank, dims, kind, target.span, written=True)
        program_kind = "output" if kind == "result" else "temporary"
        self.draft.tensors[name] = as_pairs(
            Tensor(
                name,
                dtype,
                rank,
                program_kind,
                declared=declared,
                starts=None if declared is None else self.declared_starts(name),
                view_of=result.name,
                span=target.span,
            )
        )
        self.draft.counts.setdefault(name, 1)
        self.declare_equalities(name, declared, target.span)

    def declared_starts(self, name: str) -> tuple[Expr | None, ...] | None:
        """The declared first indices of a result; `None` where none is."""
        starts = self.starts.get(name, ())
        return starts if any(start is not None for start in starts) else None

    def declare_equalities(self, name: str, declared: tuple[Expr, ...] | None, span: Span) -> None:
        """Declared extents must be the inferred ones; a name that occurs nowhere else is no condition."""
        for k, dim in enumerate(declared or ()):
            if isinstance(dim, Size) and self.scope.result_sizes.get(dim.name, ("", -1))[:2] == (name, k):
                continue
            shown = self.unit.source.slice(dim.span) if dim.span.end else "otherwise"
            reason = f"`{name}` dimension {k} is declared `{shown}`"
            self.draft.equalities.append(Equality(Size(f"{name}.{k}", span), dim, "declared", reason, dim.span))

    # after the statements

    def unwritten_results(self) -> None:
        if any(isinstance(item, tree.Broken) and not item.targets for item in self.node.statements):
            return  # it may have been meant to write any of them
        for name in self.declared:
            if name in self.scope.tensors:
                continue
            temporaries = [info for info in self.scope.tensors.values() if info.kind == "temporary"]
            close = self.scope.suggestions.nearest(name, [info.name for info in temporaries])
            unread = [info.name for info in temporaries if not info.read]
            close = close or (unread[0] if len(unread) == 1 else None)
            span = self.result_spans.get(name, self.node.name.span)
            help = f"did you mean `{close}`?" if close else f"write it, as in `{name}(i) = ...`"
            fix = Fix(f"replace it by `{close}`", (Edit(span, close),)) if close else None
            self.scope.report(
                codes.RESULT_NOT_WRITTEN, span, f"no statement writes the result `{name}`", help=help, fix=fix
            )

    def unused(self) -> None:
        for name, info in self.scope.tensors.items():
            if info.read or info.kind == "result" or name in self.mentioned or self.comes_with_another(name):
                continue
            if info.is_input and self.gives_a_size(name, info):
                continue
            what = "statement" if info.kind == "temporary" else "parameter"
            self.scope.report(
                codes.UNUSED, info.span, f"the {info.kind} `{name}` is never used", help=f"remove the {what}, or use it"
            )

    def comes_with_another(self, name: str) -> bool:
        """Whether a statement with a reducer writes a tensor together with one that is used."""
        groups = (
            each for each in self.node.statements if isinstance(each, tree.Comprehension) and is_own(each.operator)
        )
        names = {target.name for each in groups if name in _targets(each) for target, _ in each.targets}
        known = (self.scope.tensors[each] for each in names - {name} if each in self.scope.tensors)
        return any(info.read or info.kind == "result" for info in known)

    def gives_a_size(self, name: str, info: TensorInfo) -> bool:
        """Whether a parameter that is never read is the first to bring a size that is used."""
        sizes = (node for dim in info.dims for node in walk(dim) if isinstance(node, Size))
        return any(
            size.name in self.scope.used_sizes and self.scope.sizes.get(size.name) == size.span for size in sizes
        )


def block_name(node: tree.Comprehension) -> str:
    """The steps of the block around a statement and its number; nothing outside of blocks."""
    steps = ",".join(block.index.name for block in node.blocks)
    return f"{steps}#{node.blocks[0].number}" if node.blocks else ""


def types_of_block(
    owner: _DefChecker, statements: Sequence[tree.Comprehension], made: Mapping[str, TensorInfo]
) -> dict[str, DType]:
    """The types of what a block makes: the declared ones, else the common types of the values without what it reads of itself."""
    stated = {name: found[0] for name in made if (found := owner.declared.get(name)) is not None}
    known, whole = _types_from(owner, statements, made, stated, weak_integer(1, owner.node.span))
    if not whole:
        truths, whole = _types_from(owner, statements, made, stated, Typed(Const(False, BOOL), BOOL))
        known = truths if whole else {name: each for name, each in known.items() if not each.weak}
    return {name: known[name].dtype if name in known else DType.FLOAT32 for name in made}


def _types_from(
    owner: _DefChecker,
    statements: Sequence[tree.Comprehension],
    made: Mapping[str, TensorInfo],
    stated: Mapping[str, DType],
    start: Typed,
) -> tuple[dict[str, Typed], bool]:
    """Values of the types of what a block makes, where what is not known yet is `start`; and whether no statement was wrong."""
    known = {name: Typed(Const(0, dtype), dtype) for name, dtype in stated.items()}
    whole = True

    def know(name: str) -> None:
        info, held = made[name], known.get(name, start)
        one = weak_integer(1, info.span)  # of literals only the type counts
        info.dtype = held.dtype
        info.literal = None if not held.weak else weak_float(one) if held.weak == "float" else one

    for name in made:
        know(name)
    for _ in range(len(statements) + 1):  # as far as a type can go against the order of the statements
        before = {name: each.dtype for name, each in known.items()}
        whole = True
        for each in statements:
            name = each.target.name
            if name not in made:
                continue
            value, held = owner.value_of(each), known.get(name)
            whole = whole and value is not None
            wider = value is not None and (held is None or held.weak or fits(held.dtype, value.dtype))
            if value is not None and wider and name not in stated:
                known[name] = value
                know(name)
        if before == {name: each.dtype for name, each in known.items()}:
            break
    return known, whole


def _product_of(node: tree.Comprehension, scope: Scope) -> str | None:
    """The product of matrices that `C = A * B` is in MATLAB and Julia, if the sizes say so; `None` for another statement."""
    value = node.value
    if node.operator != "=" or node.indices is not None or node.clauses or node.along or node.blocks:
        return None
    if not isinstance(value, tree.Binary) or value.op != "*":
        return None
    names = [each.name for each in (value.left, value.right) if isinstance(each, tree.Name)]
    infos = [scope.tensors[name] for name in names if name in scope.tensors and scope.tensors[name].dims]
    if len(infos) < 2 or infos[0].dims[-1] != infos[1].dims[0] or infos[0].dims == infos[1].dims:
        return None
    subscripts = library_names.subscripts_of("matmul", [len(info.dims) for info in infos])
    free = subscripts and library_names.with_free_letters(subscripts, lambda letter: scope.taken(letter) is not None)
    return library_names.einsum(free, names, node.target.name) if free else None


def _sizes_of(param: tree.Param) -> set[str]:
    """The names in the dimensions of a parameter."""
    dimensions = param.type.dimensions if param.type is not None else ()
    return {
        part.name
        for each in dimensions
        for end in tree.ends(each)
        for part in tree.walk(end)
        if isinstance(part, tree.Name)
    }


def _places(statement: tree.Comprehension, name: str) -> list[Span]:
    """Where a statement reads a tensor."""
    values = [statement.value, *(part for clause in statement.clauses for part in tree.parts(clause))]
    found: list[Span] = []
    for item in (item for value in values for item in tree.walk(value)):
        read = item.function if isinstance(item, tree.Apply) else item
        if isinstance(read, tree.Name) and read.name == name:
            found.append(read.span)
    return found


def _writes_number(statement: tree.Comprehension) -> bool:
    """Whether a statement writes a literal."""
    value = statement.value
    number = value.operand if isinstance(value, tree.Unary) and value.op == "-" else value
    return statement.operator == "=" and isinstance(number, tree.Number)


def _targets(statement: tree.TcStatement) -> list[str]:
    """Names of tensors that a statement writes."""
    match statement:
        case tree.Broken():
            return list(statement.targets)
        case tree.CallStatement():
            return [target.name for target in statement.targets]
        case tree.Constant():
            return [statement.name.name]
        case tree.Comprehension():
            return [target.name for target, _ in reversed(statement.targets)]


def _bound_scalars(program: Program) -> frozenset[str]:
    """Integer scalars that a program uses in bounds of ranges, or in dimensions."""
    dims = (dim for name in program.parameters for dim in program.tensor(name).dims or ())
    found = {item.tensor for dim in dims for item in walk(dim) if isinstance(item, Read)}
    for statement in program.statements:
        for index in statement.indices:
            for bound in index.where or ():
                found |= {item.tensor for item in walk(bound) if isinstance(item, Read)}
    return frozenset(found)


def _read_out(
    node: tree.Comprehension,
    operator: str,
    target: tree.Name,
    at: tuple[tree.Expression, ...] | None,
    value: tree.Expression,
) -> tree.Comprehension:
    """The statement that reads the result of a fold out of its state."""
    out = replace(node, target=target, indices=at, operator=operator, value=value)
    return replace(out, before=(), rest=(), clauses=(), matched=None)


class _StatementChecker:
    """Checks `T(i, j) op expression where ...`.

    Args:
        reducer: of a fold; `part` is the index of its state over several components, and `named` the target that it is for.
    """

    def __init__(
        self,
        owner: _DefChecker,
        node: tree.Comprehension,
        reducer: Reducer | None = None,
        part: str = "",
        named: str = "",
    ) -> None:
        self.owner = owner
        self.reducer, self.part, self.named = reducer, part, named or node.target.name
        self.is_derived = bool(named)  # from another statement of the text, whose left side it completes
        self.scope = owner.scope
        self.node = node
        self.names = StatementNames(node.target.name, node)
        self.expressions = ExpressionChecker(owner.scope, self.names)
        written = node.operator.rstrip("!").removesuffix("=") or "="
        self.operator = "fold" if reducer is not None else _LOGICAL_OPERATORS.get(written, written)
        self.initialize = node.operator.endswith("!")
        self.left_nodes: dict[
            int, tree.Expression
        ] = {}  # by dimension, subscripts of the left side that are no indices
        self.computed: dict[int, Expr | None] = {}
        self.first = True  # nothing has written the target before
        self.is_told = False  # that arrays have no indices
        self.is_left_known = True  # that no index on the left is misspelt as `2i`
        self.order: orders.Order = ()
        self.carried: DType | None = None  # the type of what a statement reads of the target that it makes
        self.filters: tuple[Expr, ...] = ()
        self.moving: dict[str, tuple[Expr, Expr]] = {}  # ends of ranges that differ from point to point

    def check(self) -> None:
        """Report what is wrong; add the statement to the draft if it has a meaning."""
        count = len(self.scope.diagnostics)
        target = self.target()
        self.left()
        self.order = self.directions()
        self.know_target()
        self.lets()
        self.computed = {k: self.expressions.left_subscript(index) for k, index in self.left_nodes.items()}
        values = [self.expressions.value(each) for each in (self.node.value, *self.node.rest)]
        if self.names.update is not None:
            self.update(self.names.update)
        value = values[0] if self.reducer is None else self.of_reducer(values, self.reducer)
        exists = [self.exists(clause) for clause in self.node.clauses if isinstance(clause, tree.Exists)]
        if self.part:  # each is a value at one component only, and all of them say where the points are
            exists += [None if each is None else settle(each).expr for each in values]
        filters = [self.filter(clause) for clause in self.node.clauses if isinstance(clause, tree.Filter)]
        bounds = self.ranges()
        self.whole_arrays(count)
        self.owner.mentioned |= self.names.mentioned
        self.unused_lets()
        if self.node.matched is not None:
            self.matched(self.node.matched)
        if self.node.operator.removesuffix("=!") in _LOGICAL_OPERATORS:
            self.of_truth(value)
        whole = not any(item.is_error for item in self.scope.diagnostics[count:])
        known = None not in self.computed.values()
        if value is None or not target or not whole or not known or None in exists or None in filters:
            is_known = not self.names.foreign and not self.names.whole and self.node.target.name not in self.owner.told
            if target and self.operator == "=" and is_known and known and self.is_left_known:
                self.operator_fits(self.written_indices(), False, False)
            self.forget_target()
            self.owner.unknown_tensor(self.node.target.name, self.node.target.span)
            self.written()
            return
        self.filters = tuple(item for item in filters if item is not None)
        known_exists = [part for item in exists if item is not None for part in complexes.parts(item)]
        self.finish(value, tuple(item for item in known_exists if item is not None), bounds)

    def update(self, update: updates.Update) -> None:
        """Tell of `Z(i) ^= e` and the like. That a result `Z` is a parameter is told with the first such statement."""
        renamed, info = self.owner.renamed.get(self.node.operator_span), self.scope.tensors[self.node.target.name]
        told = updates.told(self.node, self.scope.source, update, renamed.edits if renamed else ())
        if info.is_input and info.name in self.owner.declared and renamed is None:
            told = replace(told, fix=None)  # the fix of the first such statement comes before it
        if renamed is not None:
            told = replace(told, help=f"{told.help}; `{info.name}` is a parameter, which is read-only")
        self.scope.diagnostics.append(told)

    def of_reducer(self, values: Sequence[Typed | None], reducer: Reducer) -> Typed | None:
        """The components of a point, in the type of the state."""
        known = [each for each in values if each is not None]
        if len(known) < len(values):
            return None
        if len(known) < len(reducer.types) and not reducer.lifted:  # of complex numbers
            known = [
                Typed(part, reducer.types[0])
                for part in complexes.both(convert(known[0], reducer.types[0].of_pairs).expr)
            ]
        nodes = (self.node.value, *self.node.rest)
        for node, value, dtype in zip(nodes, known, reducer.types, strict=False):
            self.narrows(value, settle(value).dtype, dtype, node.span, f"`{reducer.name}`, which combines")
        taken = [convert(value, dtype).expr for value, dtype in zip(known, reducer.types, strict=False)]
        parts = lifted(reducer, taken)
        dtype = common_type(reducer.types) if self.part else reducer.types[0]
        assert dtype is not None
        return Typed(in_parts(parts, dtype.compute, self.part) if self.part else parts[0], dtype)

    def of_truth(self, value: Typed | None) -> None:
        """`any=!` and `all=!` combine truth values."""
        if value is None or value.dtype is BOOL:
            return
        self.no_truth(self.node.value, value, f"`{self.node.operator}` combines truth values")

    def no_truth(self, node: tree.Expression, value: Typed, wanted: str) -> None:
        """TC212: a number stands where a truth value is meant."""
        place, text = node.span, self.scope.source.slice(node.span)
        simple = isinstance(node, tree.Name | tree.Apply | tree.Number)
        compared = f"{text} != 0" if simple else f"({text}) != 0"
        fix = Fix(f"write `{compared}`", (Edit(place, compared),)) if len(text) < 200 else None
        message = f"{wanted}, and this is `{settle(value).dtype.value}`"
        self.scope.report(codes.TYPE_MISMATCH, place, message, help="compare it, as in `X(i) != 0`", fix=fix)

    def whole_arrays(self, count: int) -> None:
        """Tell of all tensors without indices at once; `count`: messages before this statement."""
        node, scope, whole = self.node, self.scope, self.names.whole
        if not whole or self.has_call() or self.is_told:
            return
        names = list(dict.fromkeys(info.name for info, _ in whole))
        infos = {info.name: info for info, _ in whole}
        labels = tuple(
            Label(infos[name].span, f"{infos[name].rank} dimension{'s' * (infos[name].rank != 1)}") for name in names
        )
        (first, place), ranks = whole[0], {info.rank for info, _ in whole}
        rank = first.rank or 0
        written = [
            index for index in node.indices or () if index.span != node.target.span
        ]  # no text shows the step of a block
        in_block = len(written) != len(node.indices or ())
        steps = {index.name for index in node.indices or () if isinstance(index, tree.Name)}
        letters_left = [each for each in "ijklmnpqrs" if scope.taken(each) is None and each not in steps]
        free = letters_left[:rank]
        left = [index.name for index in written if isinstance(index, tree.Name)]
        used = left if len(left) == len(written) == rank else free
        stated = self.owner.declared.get(node.target.name)
        is_one = node.operator.endswith("!") and not (stated and stated[1])  # it combines all elements
        fix = None
        fits = len(scope.diagnostics) == count and (not in_block or all(info.is_input for info, _ in whole))
        ranged = {each.index.name for each in node.clauses if isinstance(each, tree.Where) and _holds(each.span, whole)}
        at = {info.name: self.indices_by_size(info, ranged) for info, _ in whole}
        if fits and written and all(at.values()):
            edits = [Edit(Span(span.end, span.end), f"({', '.join(at[info.name])})") for info, span in whole]
            fix = Fix("read elements", tuple(edits))
        elif fits and len(ranks) == 1 and len(used) == rank and (used is left or not written):
            text = f"({', '.join(used)})"
            edits = [Edit(Span(span.end, span.end), text) for _, span in whole]
            edits += [] if used is left or is_one else [Edit(Span(node.target.span.end, node.target.span.end), text)]
            fix = Fix("read elements", tuple(edits))
        elif fits and not written and not in_block and (spread := _repeated(infos.values(), letters_left)) is not None:
            edits = [Edit(Span(span.end, span.end), spread[info.name]) for info, span in whole]
            text = max(spread.values(), key=len)
            edits += [] if is_one else [Edit(Span(node.target.span.end, node.target.span.end), text)]
            fix = Fix("read elements", tuple(edits))
        what = "tensor" if len(names) == 1 else "tensors"
        message = f"the {what} {_listed([f'`{name}`' for name in names])} {'has' if len(names) == 1 else 'have'} no indices here"
        help = f"read an element, as in `{first.name}({', '.join(at[first.name] or letters(rank))})`"
        if (product := _product_of(node, scope)) is not None:
            fix, help = None, f"a product of a matrix and a vector is `{product}`; {help}, which combines elements"
        if in_block:
            help = "inside of a block, expressions have their indices, as in `Q(i, j) = 2*P(i, j)`"
        scope.report(codes.RANK_MISMATCH, place, message, "", labels, help, fix)

    def indices_by_size(self, info: TensorInfo, ranged: Collection[str]) -> list[str]:
        """For each dimension an index over one of the same size in the statement, or in another one with its left side.

        An index of `ranged` has a range that is made of the element.
        """
        known: list[tuple[Expr, str]] = []
        alike = (each for each in self.owner.node.statements if isinstance(each, tree.Comprehension))
        values = [each.value for each in alike if (each.target, each.indices) == (self.node.target, self.node.indices)]
        for node in (node for value in values for node in tree.walk(value)):
            other = self.scope.tensors.get(node.function.name) if isinstance(node, tree.Apply) else None
            if other is not None and isinstance(node, tree.Apply):
                pairs = zip(other.dims, node.arguments, strict=False)
                names = ((dim, at.name) for dim, at in pairs if isinstance(at, tree.Name))
                known += [(dim, name) for dim, name in names if self.is_index(name) and name not in ranged]
        found: list[str] = []
        for dim in info.dims:
            fitting = (name for size, name in known if size == dim and name not in found)
            found += [name for name in fitting][:1]
        return found if len(found) == info.rank else []

    def is_index(self, name: str) -> bool:
        """Whether a name is an index of this statement."""
        return name in self.names.indices or name in self.names.left

    def has_call(self) -> bool:
        """Whether a statement on whole arrays has a call of a def, which was told of: without it, arrays would be right."""
        if self.node.indices is not None or self.node.operator != "=":
            return False
        called = tree.names_in((self.node.value,)) & self.scope.callable_names
        return any(name not in self.scope.tensors and name not in TC_FUNCTIONS for name in called)

    def written_indices(self) -> dict[str, Span]:
        """Indices in subscripts of a value that has a mistake, and not on the left."""
        found: dict[str, Span] = {}
        for item in tree.walk(self.node.value):
            if not isinstance(item, tree.Apply) or not self.may_be_read(item):
                continue
            inside = (
                part.name for argument in item.arguments for part in tree.walk(argument) if isinstance(part, tree.Name)
            )
            found |= {name: self.names.indices[name] for name in inside if name in self.names.indices}
        return {name: span for name, span in found.items() if name not in {*self.names.left, *self.names.mistaken}}

    def may_be_read(self, node: tree.Apply[tree.Expression]) -> bool:
        """Whether `T(...)` reads a tensor with the right number of indices, or is something unknown."""
        name = node.function.name
        info = self.scope.tensors.get(name)
        if info is None:
            return name not in TC_FUNCTIONS and name not in TYPE_NAMES
        return info.rank == len(node.arguments)

    # the left side

    def target(self) -> bool:
        """Whether the target is a tensor that may be written."""
        scope, target = self.scope, self.node.target
        info = scope.tensors.get(target.name)
        if info is not None and info.kind == "constant":
            labels = (Label(info.span, "the constant"),)
            scope.report(codes.INPUT_ASSIGNED, target.span, f"the constant `{target.name}` is read-only", "", labels)
            return False
        if info is not None and info.is_input and target.name in self.owner.declared:
            self.owner.silent = True
            self.is_told = self.combines_whole and bool(info.rank)
            return False  # the result has a message
        if info is not None and info.is_input:
            labels = (Label(info.span, "the parameter"),)
            help = "parameters are read-only; give the result a new name"
            scope.report(
                codes.INPUT_ASSIGNED, target.span, f"the parameter `{target.name}` is read-only", "", labels, help
            )
            return False
        if info is None:
            count = len(scope.diagnostics)
            if target.name not in self.owner.declared:
                self.owner.new_tensor(target, "temporary")
            wrong = len(scope.diagnostics) > count
            kind = "result" if target.name in self.owner.declared else "temporary"
            rank = self.rank
            scope.tensors[target.name] = TensorInfo(target.name, None, rank, (), kind, target.span)
            return not wrong
        given = len(self.node.indices or ())
        if info.rank is not None and info.rank != given and info.dtype is not None:
            labels = (Label(info.span, "first written here"),)
            written = f"{given} {'is' if given == 1 else 'are'} written"
            message = f"`{target.name}` has {info.rank} dimension{'s' * (info.rank != 1)}, but {written}"
            help, fix = self.with_indices()
            if self.combines_whole:
                help, fix = "whole arrays are combined by `=`", self.whole_fix()
                self.is_told = True
            scope.report(codes.RANK_MISMATCH, target.span, message, "", labels, help, fix)
            if help is not None and not self.is_told:
                info.dtype = info.rank = None  # later statements have the same mistake
            return False
        return True

    @property
    def combines_whole(self) -> bool:
        """Whether this is `Y += X` without indices, which is meant element by element."""
        return self.node.indices is None and self.node.operator != "=" and not self.initialize and self.reducer is None

    def whole_fix(self) -> Fix:
        """`Y = Y + X` for `Y += X`."""
        return Fix("use `=`", tuple(updates.combined(self.node, self.scope.source)))

    def with_indices(self) -> tuple[str | None, Fix | None]:
        """Help and fix where the first statement on the target is `Y = 0`, and this one has indices."""
        first = self.owner.first_on.get(self.node.target.name)
        if first is None or first.indices is not None or not _writes_number(first):
            return None, None
        indices = self.node.indices or ()
        names = [
            index.name for index in indices if isinstance(index, tree.Name) and self.scope.taken(index.name) is None
        ]
        has_ranges = any(isinstance(clause, tree.Where) for clause in self.node.clauses)  # which may be those of a part
        is_plain = len({*names}) == len(indices) and not has_ranges
        at = f"({', '.join(names if is_plain else letters(len(indices)))})"
        help, end = (
            f"its first statement writes a number: all elements are `{first.target.name}{at}`",
            first.target.span.end,
        )
        if not is_plain:
            return f"{help}, with their ranges behind `where`", None
        return help, Fix(f"write `{first.target.name}{at}`", (Edit(Span(end, end), at),))

    def written(self) -> None:
        """After this statement the target exists, whatever is known of it."""
        info = self.scope.tensors.get(self.node.target.name)
        if info is not None:
            info.written = True

    def left(self) -> None:
        names: list[str] = []
        lets = {clause.name.name for clause in self.node.clauses if isinstance(clause, tree.Let)}
        for number, index in enumerate(self.node.indices or ()):
            own = isinstance(index, tree.Name) and index.name not in {*names, *lets} and not self.is_number(index)
            if not isinstance(index, tree.Name) or not own or self.is_part(number, index):
                self.left_nodes[number] = index
            elif self.left_name(index):
                names.append(index.name)
                self.names.counts[index.name] = 1
        self.names.left = tuple(names)

    def is_number(self, name: tree.Name) -> bool:
        """Whether a name on the left side is that of an integer, and so of one element."""
        info = self.scope.tensors.get(name.name)
        return info is not None and info.rank == 0 and info.dtype is not None and info.dtype.is_integer and info.written

    def is_part(self, number: int, index: tree.Name) -> bool:
        """Whether a first statement may write a part of a dimension: its extent is stated, and a later one goes on there.

        Worked example: `Y(i) = A(i)` of `-> (float(N + M) Y) { Y(i) = A(i)  Y(N + j) = B(j) }`.
        """
        if self.is_derived:
            return False
        target, extent = self.node.target.name, self.stated(number)
        info = self.scope.tensors.get(target)
        if info is None or info.written or extent is None or self.owner.declared_starts(target) is not None:
            return False
        whole = f"0:{self.scope.source.slice(extent.span)}".replace(" ", "")
        ranges = [each for each in self.node.clauses if isinstance(each, tree.Where) and each.index.name == index.name]
        if not ranges and not self.stands_elsewhere(number, index):
            return False
        if any(f"{self.text(each.lower)}:{self.text(each.upper)}".replace(" ", "") == whole for each in ranges):
            return False
        statements = (each for each in self.owner.node.statements if isinstance(each, tree.Comprehension))
        others = ((each.indices or ())[number : number + 1] for each in statements if each.target.name == target)
        return any(not isinstance(each, tree.Name) and self.has_free_names(each) for (each,) in filter(None, others))

    def stands_elsewhere(self, number: int, index: tree.Name) -> bool:
        """Whether a name on the left side also stands in another subscript there, in the value or in a clause."""
        node = self.node
        clauses = (part for clause in node.clauses for part in tree.parts(clause))
        others = (each for place, each in enumerate(node.indices or ()) if place != number)
        nodes = (item for part in (node.value, *node.rest, *clauses, *others) for item in tree.walk(part))
        return any(isinstance(item, tree.Name) and item.name == index.name for item in nodes)

    def text(self, node: tree.Expression) -> str:
        return self.scope.source.slice(node.span)

    def has_free_names(self, node: tree.Expression) -> bool:
        """Whether an expression has names that are neither sizes nor tensors, and so indices."""
        names = {part.name for part in tree.walk(node) if isinstance(part, tree.Name)}
        return any(self.scope.taken(name) is None for name in names)

    @property
    def rank(self) -> int:
        """The number of subscripts on the left side."""
        return len(self.node.indices or ())

    def left_name(self, index: tree.Name) -> bool:
        """Whether a left-side index has a name that is free."""
        if index.name[0].isdigit():
            self.expressions.digit_name(index)
            self.is_left_known = False
            return False
        taken = self.scope.taken(index.name)
        given = index.span == self.node.target.span  # no text shows it, so that the name of a def is none of its names
        if taken is not None and not (given and index.name in self.scope.defs):
            info = self.scope.tensors.get(index.name)
            help = f"elements are chosen with `where`, as in `{self.node.target.name}(i) = 0 where {index.name}(i)`"
            self.owner.shadows(
                index, "an index", taken, help if info is not None and info.dtype is BOOL else _ONE_NAMESPACE
            )
            self.names.mistaken.add(index.name)
            return False
        return True

    @property
    def subscripts(self) -> tuple[Expr, ...]:
        """The subscripts of the left side that are no indices."""
        return tuple(expr for expr in self.computed.values() if expr is not None)

    def left_side(self) -> tuple[tuple[str, ...], tuple[Expr, ...]]:
        """The output index of each dimension, and its subscript; one that is no index gives its dimension an index of its own."""
        free = self.free_names("at")
        plain, names, subscripts = iter(self.names.left), list[str](), list[Expr]()
        for number, span in enumerate(self.left_spans()):
            computed = self.computed.get(number)
            names.append(next(plain) if computed is None else next(free))
            subscripts.append(IndexVar(names[-1], span) if computed is None else computed)
        return tuple(names), tuple(subscripts)

    def left_place(self) -> Span:
        """The place of the left side."""
        start = self.node.span.start
        return Span(start, start + len(self.scope.source.slice(Span(start, self.node.operator_span.start)).rstrip()))

    def left_spans(self) -> tuple[Span, ...]:
        return tuple(index.span for index in self.node.indices or ())

    def extents(self, first: bool, dtype: DType) -> dict[str, tuple[Expr, Expr]] | None:
        """The range of the index that each computed dimension has, where it is stated or data would have to decide; else it is
        left to inference, or known from an earlier statement. `None` after a message.
        """
        found: dict[str, tuple[Expr, Expr]] = {}
        names, subscripts = self.left_side()
        for number in self.computed if first else ():
            stated = self.stated(number)
            subscript = subscripts[number]
            if stated is None and decided_by_data(subscript):
                last = largest(subscript)
                stated = None if last is None else Binary("+", last, Const(1, INT64), INT64)
                if stated is None:
                    self.how_many(number, dtype)
                    return None
            if stated is not None:
                starts, place = self.owner.starts.get(self.named, ()), number - bool(self.part)
                start = starts[place] if place < len(starts) else None
                found[names[number]] = (Const(0, INT64), stated) if start is None else (start, sum_of(start, stated))
        return found

    def stated(self, number: int) -> Expr | None:
        """The extent of a dimension as the result list states it, of the target or of one beside it, which has the same indices."""
        names = (self.named, *self.owner.beside.get(self.named, ()))
        found = (self.stated_of(name, number - bool(self.part)) for name in names)
        return next((each for each in found if each is not None), None)

    def stated_of(self, name: str, number: int) -> Expr | None:
        """The extent of a dimension of a target as the result list states it."""
        declared = self.owner.declared.get(name)
        if declared is None or number >= len(declared[1]):
            return None
        dim = declared[1][number]
        owner = self.scope.result_sizes.get(dim.name) if isinstance(dim, Size) else None
        own = f"{name}.{number}" in sizes_of(dim)
        return None if own or (owner is not None and owner[:2] == (name, number)) else dim

    def how_many(self, number: int, dtype: DType) -> None:
        """TC315: values of data would decide how large the target is."""
        name, index, rank = self.named, self.left_nodes[number], self.rank - bool(self.part)
        text = expression_text(index)
        result = next((each for each in self.owner.node.results if each.name.name == name), None)
        fix = None
        if result is not None and result.type is None and rank == 1:
            fix = Fix("state 256 bins", (Edit(result.span, f"{dtype.value}(256) {name}"),))
        dims = ", ".join("256" if k == number - bool(self.part) else "..." for k in range(rank))
        named = f"{dtype.value}({dims}) {name}"
        first = f"state it in the result list, as in `-> ({named})`"
        if result is None and self.owner.node.results:
            results = self.owner.node.results
            listed = ", ".join([named, *(self.scope.source.slice(each.span) for each in results)])
            first = f"make `{name}` a result that says it, `-> ({listed})`"
        help = f"{first}, or limit the values, as in `{text} % 256`; a subscript of `uint8`, `uint16` or `bool` needs neither"
        message = f"how many bins? the values of `{text}` would decide how large `{name}` is"
        self.scope.report(codes.HOW_MANY_BINS, index.span, message, help=help, fix=fix)

    # the order of the points

    def directions(self) -> orders.Order:
        """The indices behind `along`; only plain ones of the left side have an order."""
        found: dict[str, int] = {}
        for each in self.node.along:
            name = each.index.name
            if name in self.names.left and name not in found:
                found[name] = each.step
            elif not any(item.span.start == each.span.start for item in self.scope.diagnostics):
                self.no_direction(each, name in found)
        return tuple(found.items())

    def no_direction(self, node: tree.Direction, repeated: bool) -> None:
        name, left = node.index.name, self.names.left
        used = {item.name for item in tree.walk(self.node.value) if isinstance(item, tree.Name)}
        help = "`along` names the indices of the left side whose elements are made one after the other, as in `along i, -j`"
        message, fix = f"`{name}` is no index of the left side", None
        if repeated:
            message = f"`{name}` is named twice"
        elif written := self.subscript_with(name):
            message = f"`{name}` does not stand alone on the left side, but in `{written}`"
            help = f"name the element itself, as in `{self.node.target.name}({name}) = ... {self.node.target.name}({name}-1) ...`"
        elif name in used and self.scope.taken(name) is None:
            message = f"`{name}` is combined over, in any order: it is no index of the left side"
        elif left:
            help, fix = self.scope.did_you_mean(name, node.index.span, left)
        self.scope.report(codes.ORDER_INDEX, node.span, message, help=help, fix=fix)

    def subscript_with(self, name: str) -> str:
        """The first subscript of the left side that computes with an index, as it is written; nothing if there is none."""
        places = (each for each in self.node.indices or () if not isinstance(each, tree.Name))
        found = (each for each in places if any(isinstance(n, tree.Name) and n.name == name for n in tree.walk(each)))
        return next((self.scope.source.slice(each.span) for each in found), "")

    def know_target(self) -> None:
        """A statement with an order may read what it has made so far, whose type is that of all else, or the declared one."""
        info = self.scope.tensors.get(self.node.target.name)
        self.first = info is None or not info.written or info.ahead
        if info is not None and info.ahead:
            info.ahead, self.carried = False, info.dtype
            return
        if info is None or not self.first or not self.node.along or info.is_input:
            return
        declared = self.owner.declared.get(info.name)
        info.dims = tuple(Size(f"{info.name}.{k}", self.node.target.span) for k in range(self.rank))
        info.rank, info.written = self.rank, True
        self.carried = declared[0] if declared is not None else self.type_without(info)
        info.dtype, info.literal = self.carried, None

    def type_without(self, info: TensorInfo) -> DType:
        """The common type of a value without what it reads of its own target, which this type then holds."""
        number = weak_integer(1, self.node.span)
        tried = [self.tried(info, number, INT32, settles) for settles in (True, False)]
        for dtype in (each for each in (*tried, BOOL) if each is not None):
            own = self.tried(info, None, dtype)
            if own is not None and fits(own, dtype):
                return dtype
        return next((each for each in reversed(tried) if each is not None), DType.FLOAT32)

    def tried(self, info: TensorInfo, literal: Typed | None, dtype: DType, settles: bool = False) -> DType | None:
        """The type of the value if what it reads of its target were this; `None` where it has a mistake then."""
        info.literal, info.dtype, read = literal, dtype, info.read
        other = _StatementChecker(self.owner, self.node)
        other.names.left, other.names.settles = self.names.left, settles

        def checked() -> Typed | None:
            other.lets()
            return other.expressions.value(self.node.value)

        value = self.scope.silently(checked)
        info.read = read
        if value is None:
            return None
        own = settle(value).dtype
        return INT32 if own is BOOL and self.operator in ("+", "*") else own

    def forget_target(self) -> None:
        """Of a target whose first statement has a mistake nothing is known."""
        if self.carried is not None:
            self.scope.tensors[self.node.target.name].dtype = None

    # clauses

    def lets(self) -> None:
        for let in tree.ordered_lets(self.node.clauses):
            if self.let_name(let.name):
                self.expressions.let(let)
            else:
                self.expressions.value(let.value)

    def let_name(self, name: tree.Name) -> bool:
        lets = self.names.lets
        if name.name in lets:
            labels = (Label(lets[name.name].span, "first let"),)
            self.scope.report(
                codes.DUPLICATE_NAME, name.span, f"two lets are called `{name.name}`", "second let", labels
            )
            return False
        if name.name[0].isdigit():
            self.scope.report(codes.DIGIT_NAME, name.span, f"`{name.name}` starts with a digit and is no variable")
            return False
        taken = self.scope.taken(name.name)
        if name.name in self.names.left:
            taken = "an index", self.left_span(name.name)
        if taken is not None:
            self.owner.shadows(name, "a let", taken)
        return taken is None

    def left_span(self, name: str) -> Span:
        spans = (index.span for index in self.node.indices or () if isinstance(index, tree.Name) and index.name == name)
        return next(spans, self.node.target.span)

    def exists(self, clause: tree.Exists) -> Expr | None:
        typed = self.expressions.value(clause.value)
        return None if typed is None else settle(typed).expr

    def filter(self, clause: tree.Filter) -> Expr | None:
        """A condition as a clause."""
        typed = self.expressions.value(clause.condition)
        if typed is not None and typed.dtype is not BOOL:
            if not self.is_range_of_several(clause):
                self.no_truth(clause.condition, typed, "a condition is a truth value")
            return None
        return None if typed is None else settle(typed).expr

    def is_range_of_several(self, clause: tree.Filter) -> bool:
        """Whether a range behind an index is meant for it, too, as in `i, j in 0:3`; after a message."""
        index, clauses = clause.condition, self.node.clauses
        behind = clauses[next(n for n, each in enumerate(clauses) if each is clause) + 1 :]
        where = next((each for each in behind if not isinstance(each, tree.Filter)), None)
        between = behind[: behind.index(where)] if where in behind else ()
        alone = all(isinstance(each, tree.Filter) and isinstance(each.condition, tree.Name) for each in between)
        if (
            not isinstance(index, tree.Name)
            or not isinstance(where, tree.Where)
            or not alone
            or where.index.name == index.name
        ):
            return False
        if index.name not in self.names.indices:
            return False
        text = self.scope.source.slice(Span(where.index.span.end, where.span.end))
        edit = Edit(Span(index.span.end, index.span.end), text)
        message = f"the range of `{index.name}` is missing"
        help = f"each index has a range of its own: `{index.name}{text}, {where.index.name}{text}`"
        self.scope.report(
            codes.RANGE_BRACKETS, index.span, message, help=help, fix=Fix(f"write `{index.name}{text}`", (edit,))
        )
        return True

    def unused_lets(self) -> None:
        for name, let in self.names.lets.items():
            if not let.used and name not in self.names.mistaken:
                self.scope.report(
                    codes.UNUSED, let.span, f"the let `{name}` is never used", help="remove it, or use it"
                )
                self.unknown_in(let)

    def unknown_in(self, let: LetInfo) -> None:
        """A name that only a let without use has, and in no subscript, is no index: it is nothing."""
        nodes = tuple(walk(let.value.expr)) if let.value is not None else ()
        known = {*self.names.left, *self.names.indices, *self.names.mistaken}
        places = (place for read in nodes if isinstance(read, Read) for place in read.indices)
        known |= {item.name for place in places for item in walk(place) if isinstance(item, IndexVar)}
        for item in nodes:
            if isinstance(item, IndexVar) and item.name not in known | self.names.mistaken:
                self.names.mistaken.add(item.name)
                near = (*self.names.left, *self.names.indices, *self.scope.sizes)
                help, fix = self.scope.did_you_mean(item.name, item.span, near)
                self.scope.report(codes.UNKNOWN_NAME, item.span, f"unknown name `{item.name}`", help=help, fix=fix)

    def ranges(self) -> dict[str, tuple[Expr, Expr]]:
        """The ranges of `where`, by index."""
        found: dict[str, tuple[Expr, Expr]] = {}
        seen: dict[str, Span] = {}
        for clause in self.node.clauses:
            if not isinstance(clause, tree.Where):
                continue
            name = clause.index.name
            moves = name not in self.names.left and any(map(self.expressions.moves, (clause.lower, clause.upper)))
            bound = self.expressions.moving_bound if moves else self.expressions.bound
            lower, upper = bound(clause.lower), bound(clause.upper)
            if name in seen:
                labels = (Label(seen[name], "first range"),)
                self.scope.report(
                    codes.WHERE_TWICE,
                    clause.index.span,
                    f"`{name}` has two ranges",
                    "second range",
                    labels,
                    _REPEATED_WHERE,
                )
            elif name not in self.names.left and name not in self.names.indices:
                self.no_index(clause.index)
            elif lower is not None and upper is not None and moves:
                self.moving[name] = lower, upper
            elif lower is not None and upper is not None:
                found[name] = lower, upper
            seen.setdefault(name, clause.span)
        self.in_a_circle()
        return found

    def in_a_circle(self) -> None:
        """TC305, where the ends of a range depend on its own index, also through other ranges."""
        used = {
            name: {each.name for end in ends for each in walk(end) if isinstance(each, IndexVar)}
            for name, ends in self.moving.items()
        }
        free = set[str]()
        while more := {name for name in used.keys() - free if not used[name] & (used.keys() - free)}:
            free |= more
        for clause in self.node.clauses:
            if isinstance(clause, tree.Where) and clause.index.name in used.keys() - free:
                name = clause.index.name
                way = "itself" if name in used[name] else "an index whose range depends on it"
                message = f"the range of `{name}` depends on {way}"
                self.scope.report(codes.WHERE_INDEX, clause.span, message)

    def no_index(self, name: tree.Name) -> None:
        taken = self.scope.taken(name.name)
        if name.name in self.names.lets:
            taken = "a let", self.names.lets[name.name].span
        if taken is not None:
            labels = (Label(taken[1], f"{taken[0]} here"),)
            self.scope.report(
                codes.WHERE_UNUSED, name.span, f"a range is given for `{name.name}`, which is {taken[0]}", "", labels
            )
            return
        if self.expressions.too_large:
            return  # what was not put in may have it
        help, fix = self.scope.did_you_mean(name.name, name.span, [*self.names.left, *self.names.indices])
        self.scope.report(
            codes.WHERE_UNUSED, name.span, f"`{name.name}` is not an index of this statement", help=help, fix=fix
        )

    def matched(self, node: tree.Apply[tree.Expression]) -> None:
        fix = Fix("remove it", (Edit(node.span, ""),))
        self.scope.report(codes.MATCH_IGNORED, node.span, f"`<=> {node.function.name}(...)` has no effect", fix=fix)

    # the whole

    def finish(self, value: Typed, exists: tuple[Expr, ...], bounds: dict[str, tuple[Expr, Expr]]) -> None:
        name, left = self.node.target.name, self.names.left
        info = self.scope.tensors[name]
        first = self.first
        reduction = self.reduction_indices(value, exists)
        inside = self.in_subscripts((value.expr, *exists, *self.subscripts, *self.conditions)) | bounds.keys()
        inside |= self.moving.keys()
        unknown = name in self.owner.broken_targets and not inside >= set(left)  # a range is in what could not be read
        if unknown or self.is_element(reduction):
            info.dtype = info.rank = None
            self.written()
            return
        if self.is_complex(value):
            product = self.complex_product(value, reduction, first)
            if product is None:
                self.owner.unknown_tensor(name, self.node.target.span)
                self.written()
                return
            value = product
            if self.order and complexes.mixes_own_parts(value.expr, name, left):
                message = "along an index, a complex element that is made of both parts of what it was, is not part of this version"
                help = f"read what it was from another tensor, as in `Z(i) = {name}(i)`"
                self.scope.report(codes.UNSUPPORTED, self.node.target.span, message, help=help)
                self.owner.unknown_tensor(name, self.node.target.span)
                self.written()
                return
        typos = self.likely_typos()
        alone = (
            self.names.indices.keys() - inside
        )  # TC302 says what they may be: `n` for a size `N`, a parameter that is missing
        if reduction.keys() <= inside and len({*self.names.left} - inside) == len(reduction):
            alone |= reduction.keys()  # TC302 says that these may be meant for those on the left
        told = self.idle_order(value, reduction, first)
        if not told and (self.operator != "=" or not reduction.keys() - typos <= alone):
            self.operator_fits(reduction, first, info.kind == "result")
        slips = any(item.code is codes.LIKELY_TYPO for item in self.said())
        if reduction and self.operator == "+" and not slips and not self.conditions:
            self.repeated_terms(reduction)
        self.own_reads(value, exists, reduction)
        dtype = self.element_type(value, info, first)
        if dtype is None:
            self.owner.unknown_tensor(name, self.node.target.span)
            self.written()
            return
        combined = self.operator if reduction else self.runs_on(value)
        if combined in ("+", "*") and dtype.is_integer and dtype.bits < 32:
            message = f"the {'sum' if combined == '+' else 'product'} is computed in `{dtype.value}` and wraps"
            self.scope.report(
                codes.NARROW_SUM, self.node.operator_span, message, help="use a wider type, as in `int32(x)`"
            )
        if first:
            bounds |= self.stated_bounds(bounds, inside)
        accumulate = self.operator != "=" and not self.initialize and (not first or info.kind == "result")
        extents = self.extents(first, dtype)
        if extents is None:
            self.owner.unknown_tensor(name, self.node.target.span)
            self.written()
            return
        names, subscripts = self.left_side()
        ranges = {**bounds, **extents}
        if self.part and self.reducer is not None:
            ranges[self.part] = int64(0), int64(len(self.reducer.types))
        indices = tuple(
            Index(item, "output", ranges.get(item), span) for item, span in zip(names, self.left_spans(), strict=True)
        )
        summed = tuple(
            Index(item, "reduction", bounds.get(item), span, self.moving.get(item)) for item, span in reduction.items()
        )
        expr, filters = convert(value, dtype).expr, self.filters
        if dtype.is_complex:
            part, outputs = next(self.free_names("part")), indices
            apart = self.operator == "+" and not self.computed and not self.order  # an order is that of one statement
            if apart and complexes.is_of_matrices(expr, names) and summed:
                expr = self.summed_apart(expr, outputs, summed, exists, dtype)
                summed, exists, filters = (), (), ()
                self.operator = "=" if self.initialize else "+"
            expr = complexes.by_part(self.value_apart(expr, outputs, exists, dtype), part)
            indices, subscripts = (*outputs, complexes.part_index(part)), (*subscripts, IndexVar(part))
        indices += summed
        statement = Statement(
            self.owner.draft.name_of(name),
            name,
            indices,
            self.operator,
            self.operator != "=" and (self.initialize or first),
            accumulate,
            without_idle_casts(expr),
            exists,
            self.scope.source.slice(self.node.span),
            self.node.span,
            left=subscripts if self.computed else (),
            unique=any(isinstance(clause, tree.Unique) for clause in self.node.clauses),
            left_span=self.left_place(),
            needs_points=self.node.at is not None,
            order=self.order if self.node.blocks or self.is_self_read(value) else (),
            **self.folding(dtype),
            filters=filters,
            block=block_name(self.node),
            ahead=self.owner.ahead(self.node),
        )
        self.owner.draft.statements.append(statement)
        self.written()

    def free_names(self, word: str) -> Iterator[str]:
        """Names for indices that stand nowhere in the cell: a word, or the word with a number."""
        words = words_of(self.scope.source.text)
        names = (f"{word}{number}" if number > 1 else word for number in itertools.count(1))
        return (name for name in names if name not in words)

    def complex_product(self, value: Typed, reduction: dict[str, Span], first: bool) -> Typed | None:
        """The value of a statement on complex numbers: `Y(i) *= Z(i)` is read as `Y(i) = Y(i) * Z(i)`. `None` after a message."""
        node, place = self.node, self.node.operator_span
        if self.operator in ("min", "max"):
            message = f"complex numbers have no order: `{node.operator}` is not for them"
            self.scope.report(codes.TYPE_MISMATCH, place, message, help=complexes.TAKE_A_REAL)
            return None
        if self.operator != "*":
            return value
        if reduction or first or self.initialize or self.computed:
            written = bool(reduction or self.initialize)
            message = "a product of complex numbers along an index" if written else "a product onto what a caller gives"
            help = "begin with a statement of its own" if written else f"give `{node.target.name}` a value first"
            self.scope.report(codes.UNSUPPORTED, place, f"{message} is not part of this version", help=help)
            return None
        info, other = self.scope.tensors[node.target.name], settle(value)
        if info.literal is not None:
            self.adopt(value, other.dtype, info, info.literal)
        own = info.dtype
        if own is None or not own.is_complex:
            return value
        told = len(self.scope.diagnostics)
        self.narrows(value, other.dtype, own)
        if len(self.scope.diagnostics) > told:
            return None
        self.operator = "="
        sides = Typed(self.own_element(node.target.name, self.names.left, own), own), other
        dtype = common(own, other.dtype)
        exprs = [convert(each, dtype if each.dtype.is_complex else dtype.part).expr for each in sides]
        return Typed(complexes.arithmetic("*", exprs[0], exprs[1], node.value.span), dtype)

    def own_element(self, tensor: str, indices: Sequence[str], dtype: DType) -> Expr:
        """The element of a tensor of complex numbers at indices of the statement."""
        return complexes.element(tensor, [IndexVar(name) for name in indices], dtype, self.node.target.span)

    def summed_apart(
        self, value: Expr, outputs: tuple[Index, ...], summed: tuple[Index, ...], exists: tuple[Expr, ...], dtype: DType
    ) -> Expr:
        """A sum whose real and imaginary part are temporaries, each with a statement of its own."""
        draft, node, names = self.owner.draft, self.node, [index.name for index in outputs]
        text, reads = self.scope.source.slice(node.span), list[Expr]()
        for part, expr in zip(("re", "im"), complexes.both(value), strict=True):
            name = f"{self.next_name()}.{part}"
            draft.tensors[name] = Tensor(name, dtype.part, self.rank, "temporary", span=node.target.span)
            own = draft.name_of(name), name, (*outputs, *summed), "+", True, False, without_idle_casts(expr)
            draft.statements.append(Statement(*own, exists, text, node.span, filters=self.filters))
            reads.append(Read(name, tuple(map(IndexVar, names)), dtype.part, node.target.span))
        return complexes.paired(reads[0], reads[1], node.value.span)

    def next_name(self) -> str:
        """The name that the statement will have."""
        target = self.node.target.name
        number = self.owner.draft.counts.get(target, 0) + 1
        return target if number == 1 else f"{target}#{number}"

    def value_apart(self, value: Expr, indices: tuple[Index, ...], exists: tuple[Expr, ...], dtype: DType) -> Expr:
        """A complex value, by way of a temporary where it needs both parts of the element that it replaces."""
        draft, node = self.owner.draft, self.node
        if not complexes.mixes_own_parts(value, node.target.name, [index.name for index in indices]):
            return value
        name = f"{self.next_name()}.value"
        draft.tensors[name] = as_pairs(Tensor(name, dtype, self.rank, "temporary", span=node.target.span))
        part = next(self.free_names("part"))
        if self.filters:  # the temporary has all elements, and those of points that are left out are not used
            test = all_of(self.filters)
            value = complexes.chosen(test, value, Const(0.0, dtype.part), node.value.span)
        whole = complexes.by_part(value, part)
        text = self.scope.source.slice(node.span)
        found = (*indices, complexes.part_index(part))
        draft.statements.append(
            Statement(draft.name_of(name), name, found, "=", False, False, whole, exists, text, node.span)
        )
        return self.own_element(name, [index.name for index in indices], dtype)

    def is_complex(self, value: Typed) -> bool:
        """Whether the statement is one on complex numbers."""
        name = self.node.target.name
        declared = self.owner.declared.get(name)
        kinds = settle(value).dtype, self.scope.tensors[name].dtype, declared and declared[0]
        return any(kind is not None and kind.is_complex for kind in kinds)

    def folding(self, dtype: DType) -> dict[str, Any]:
        """What a fold has beside other statements, in the type of the target."""
        if self.reducer is None:
            return {}
        state, parts = dtype.compute, self.reducer.identity
        identity = in_parts(parts, state, self.part) if self.part else Const(parts[0].value, state)
        return {"combine": combined(self.reducer, state, self.part), "identity": identity, "part": self.part}

    def stated_bounds(
        self, given: Mapping[str, tuple[Expr, Expr]], inside: frozenset[str] | set[str]
    ) -> dict[str, tuple[Expr, Expr]]:
        """The ranges of left-side indices without a range whose dimension is declared with a known end: as a box, or
        where the indices stand nowhere else.
        """
        left = self.left_side()[0][bool(self.part) :]
        declared, starts = self.owner.declared.get(self.named), self.owner.starts.get(self.named, ())
        if declared is None or len(declared[1]) != len(left):
            return {}
        return {
            index: (start or int64(0), _sum(start or int64(0), extent))
            for index, start, extent in zip(left, starts or [None] * len(left), declared[1], strict=True)
            if index in self.names.left
            and index not in given
            and (start is not None or index not in inside)
            and not any("." in size for size in sizes_of(extent))
        }

    def is_element(self, reduction: dict[str, Span]) -> bool:
        """Whether `a = X(i) * 2` is read where `i` is an index, after a message about it."""
        node, owner, name = self.node, self.owner, self.node.target.name
        if self.operator != "=" or node.indices is not None or not reduction or name in owner.declared:
            return False
        fix = owner.elements.one_for_each(node, tuple(reduction))
        if fix is None:
            return False
        shown = _listed([f"`{index}`" for index in reduction])
        message = f"`{name}` is one number, but its value differs with {shown}"
        owner.told = owner.elements.meant
        help = f"a part of an expression has a name with `where {name} = ...`; a tensor is written with its indices"
        labels = tuple(Label(span, f"`{index}` is not on the left") for index, span in reduction.items())
        self.scope.report(codes.REDUCTION_MISSING, node.operator_span, message, "", labels, help, fix)
        return True

    def said(self) -> list[Diagnostic]:
        """The messages about this statement so far."""
        return [item for item in self.scope.diagnostics if item.span.start >= self.node.span.start]

    def repeated_terms(self, reduction: dict[str, Span]) -> None:
        """Say that a term without a reduction index of another term is added once for each of its values."""
        node, source = self.node, self.scope.source
        terms = _terms(node.value)
        has = [self.indices_of(term) & reduction.keys() for _, term in terms]
        every = frozenset[str]().union(*has)
        over = [sorted(every - each) for each in has]
        if len(terms) < 2 or not any(over) or all(over):
            return
        number = next(number for number, missing in enumerate(over) if missing)
        span = terms[number][1].span
        text, missing = source.slice(span), _listed([f"`{name}`" for name in over[number]])
        message = f"`{text}` is added once for every value of {missing}"
        left = source.slice(Span(node.span.start, node.operator_span.start)).rstrip()
        alone = [term for term, missing in zip(terms, over, strict=True) if missing]
        rest = [term for term, missing in zip(terms, over, strict=True) if not missing]
        help, fix = None, None
        ranged = all(self.has_left_indices(part) for part in (rest, alone))
        if ranged and not node.clauses and node.matched is None and "#" not in source.slice(node.span):
            first, second = self.sum_of(rest), self.sum_of(alone)
            written = f"{left} {node.operator} {first}", f"{left} += {second}"
            help = f"to add it once, write two statements: `{written[0]}`, then `{written[1]}`"
            fix = Fix("add it once", (Edit(node.span, "  ".join(written)),))
        self.scope.report(codes.REPEATED_TERM, span, message, help=help, fix=fix)

    def has_left_indices(self, terms: Sequence[tuple[str, tree.Expression]]) -> bool:
        """Whether a statement of these terms alone finds the ranges of all left-side indices."""
        return set(self.names.left) <= frozenset[str]().union(*(self.indices_of(term) for _, term in terms))

    def sum_of(self, terms: Sequence[tuple[str, tree.Expression]]) -> str:
        texts = [(sign, self.scope.source.slice(term.span)) for sign, term in terms]
        start = texts[0][1] if texts[0][0] == "+" else f"-{texts[0][1]}"
        return start + "".join(f" {sign} {text}" for sign, text in texts[1:])

    def indices_of(self, node: tree.Expression) -> frozenset[str]:
        """The indices that an expression has, those of its lets included."""
        names = {item.name for item in tree.walk(node) if isinstance(item, tree.Name)}
        lets = [self.names.lets[name] for name in names if name in self.names.lets]
        inside = (item for let in lets if let.value is not None for item in walk(let.value.expr))
        return frozenset(names | {item.name for item in inside if isinstance(item, IndexVar)})

    def reduction_indices(self, value: Typed, exists: tuple[Expr, ...]) -> dict[str, Span]:
        """Indices that are not on the left, in order of first occurrence."""
        found: dict[str, Span] = {}
        for expr in (*self.subscripts, settle(value).expr, *exists, *self.conditions):
            for item in walk(expr):
                if isinstance(item, IndexVar) and item.name not in self.names.left:
                    found.setdefault(item.name, item.span)
        return found

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """What says which points there are, beside the ranges that are the same everywhere."""
        return (*(end for ends in self.moving.values() for end in ends), *self.filters)

    def in_subscripts(self, exprs: Sequence[Expr]) -> frozenset[str]:
        """Indices that index something."""
        reads = (item for expr in exprs for item in walk(expr) if isinstance(item, Read))
        return frozenset(
            index.name for read in reads for e in read.indices for index in walk(e) if isinstance(index, IndexVar)
        )

    def operator_fits(self, reduction: dict[str, Span], first: bool, is_result: bool) -> None:
        node, scope = self.node, self.scope
        place = node.operator_span
        placed = {item.name for each in self.subscripts for item in walk(each) if isinstance(item, IndexVar)}
        written = self.expressions.written_out
        if self.operator == "=" and written is None:
            reduction = {name: span for name, span in reduction.items() if name not in placed}
        if self.operator == "=" and reduction:
            shown = _listed([f"`{name}`" for name in reduction])
            labels = tuple(
                Label(span, f"`{name}` {'is not' if name not in placed else 'has no dimension of its own'} on the left")
                for name, span in reduction.items()
            )
            fix = Fix("replace `=` by `+=!`", (Edit(place, "+=!"),))
            message = f"`=` does not combine the values over {shown}"
            help = None
            if written is not None:
                help, fix = self.as_operator(written)
            elif node.target.name in tree.names_in([node.value]):
                fix = None  # `+=!` would read its own target, too
            elif (axis := self.expressions.along_axis(reduction)) is not None:
                help, fix = axis
            elif (extreme := self.extreme_meant(reduction)) is not None:
                help, fix = extreme
            elif self.filters and not self.names.left:  # one element may be meant, as the last one that fulfils them
                fix, help = None, "`+=!` adds the values that fulfil the condition, `max=!` takes the largest one"
            elif node.indices is None and self.owner.elements.is_read_beside(node, tuple(reduction)):
                fix, help = None, "`+=!` adds all values; one value for each index is a tensor, as in `t(i) = X(i)`"
            scope.report(codes.REDUCTION_MISSING, place, message, "", labels, help, fix)
        elif self.initialize and not reduction and not self.computed and not self.filters:
            fix = Fix("replace it by `=`", (Edit(place, "="),)) if self.reducer is None else None
            message = f"`{node.operator}` has nothing to combine: all indices are on the left"
            scope.report(codes.PLAIN_UPDATE, place, message, fix=fix)
        elif self.operator != "=" and not self.initialize and first and not scope.told(codes.ACCUMULATE_UNSET, place):
            fix = Fix(f"replace it by `{node.operator}!`", (Edit(place, node.operator + "!"),))
            other = ", or pass an array with `out=`" if is_result else ""
            message = f"`{node.operator}` accumulates onto `{node.target.name}`, which nothing has written"
            scope.report(
                codes.ACCUMULATE_UNSET,
                place,
                message,
                help=f"it starts from the identity: say so with `{node.operator}!`{other}",
                fix=fix,
            )

    def extreme_meant(self, reduction: Collection[str]) -> tuple[str, Fix | None] | None:
        """`Y(i) = max(X(i, j), 0)` takes the largest value over `j`, or 0: a sum of maxima is never what it says."""
        match self.node.value:
            case tree.Apply(tree.Name("max" | "min" as name), [_, _, *_]):
                which = "largest" if name == "max" else "smallest"
                over = _listed([f"`{index}`" for index in reduction])
                help = f"`{name}` compares its arguments at one point; `{name}=!` takes the {which} value over {over}"
                return help, Fix(f"replace `=` by `{name}=!`", (Edit(self.node.operator_span, f"{name}=!"),))
            case _:
                return self.extreme_inside(reduction)

    def extreme_inside(self, reduction: Collection[str]) -> tuple[str, Fix | None] | None:
        """`Y(i) = 1 + max(X(i, j), 0)`, where `j` stands in `max` alone: the extreme is a statement of its own."""
        node, indices = self.node, {*reduction}
        calls = [
            each
            for each in tree.walk(node.value)
            if isinstance(each, tree.Apply) and each.function.name in ("max", "min") and len(each.arguments) > 1
        ]
        for call in calls:
            inside = [each.name for each in tree.walk(call) if isinstance(each, tree.Name) and each.name in indices]
            everywhere = [
                each for each in tree.walk(node.value) if isinstance(each, tree.Name) and each.name in indices
            ]
            if not inside or len(inside) < len(everywhere):
                continue
            name = call.function.name
            over = _listed([f"`{index}`" for index in reduction])
            help = f"`{name}` compares its arguments at one point; `{name}=!` in a statement of its own takes one over {over}"
            if node.indices is None or node.clauses or node.along or node.blocks or node.before:
                return help, None
            left = self.scope.source.slice(Span(node.target.span.end, node.operator_span.start)).rstrip()
            own = next(self.free_names(f"{node.target.name}_{name}"))
            edits = (
                Edit(Span(node.span.start, node.span.start), f"{own}{left} {name}=! {expression_text(call)}  "),
                Edit(call.span, f"{own}{left}"),
            )
            return help, Fix(f"take it with `{name}=!` first", edits)
        return None

    def as_operator(self, written: WrittenOut) -> tuple[str, Fix | None]:
        """How an accumulation is said that is written out."""
        operator = written.operator + "!" * self.first
        if operator in ("any=", "all="):
            return f"`{operator}!` combines into a tensor of its own, which a later statement reads", None
        help = f"an operator accumulates, as in `Y(i) {operator} X(i, j)`"
        return help, Fix(f"accumulate with `{operator}`", (Edit(self.node.operator_span, operator), *written.value))

    def idle_order(self, value: Typed, reduction: dict[str, Span], first: bool) -> bool:
        """Say that an order changes nothing, where no element is made of others; whether this says all about the operator.

        An operator that has nothing else to combine was meant to go on from the element before: a running sum.
        """
        node, scope = self.node, self.scope
        written = [each for each in node.along if node.span.start <= each.span.start < node.span.end]
        matters = bool(orders.self_reads(node)) or self.is_self_read(value) or bool(self.computed)
        if not written or node.blocks or self.is_derived or matters or (self.operator == "=" and reduction):
            return False
        name, place = node.target.name, Span(written[0].span.start, written[-1].span.end)
        message = f"`along {scope.source.slice(place)}` changes nothing: the statement reads no element of `{name}`"
        alone = not reduction and not self.filters and not self.moving
        accumulates = self.operator != "=" and (self.initialize or first)
        runs = alone and accumulates and len(written) == 1
        fix = orders.running(node, written[0], settle(value).dtype.is_float) if runs else None
        if fix is not None:
            code = codes.PLAIN_UPDATE if self.initialize else codes.ACCUMULATE_UNSET
            help = "what is carried along is read: each element is made of the one before it and of a value"
            scope.report(code, node.operator_span, message, help=help, fix=fix)
            return True
        clause = self.owner.order_span(node)
        fix = Fix("leave `along` out", (Edit(clause, ""),)) if clause is not None else None
        scope.report(codes.PLAIN_UPDATE, place, message, fix=fix)
        return self.initialize and not reduction

    def likely_typos(self) -> set[str]:
        """Report indices that are probably other names, and return those that stand for a left one which nothing else reads."""
        names, found = self.names, set[str]()
        for name, span in names.indices.items():
            if names.counts.get(name, 0) != 1 or name in names.left:
                continue
            others = [other for other in (*names.left, *names.indices) if other != name]
            often = [other for other in others if other in names.left or names.counts.get(other, 0) > 1]
            close = next((other for other in often if _resembles(name, other, cases=True)), None)
            tensors = (
                other for other in (*names.mentioned, *names.lets) if other != name and other not in names.indices
            )
            close = close or next((other for other in sorted(tensors) if _resembles(name, other, cases=False)), None)
            if close is not None:
                fix = Fix(f"replace it by `{close}`", (Edit(span, close),))
                message = f"the index `{name}` occurs once and resembles `{close}`"
                self.scope.report(codes.LIKELY_TYPO, span, message, help=f"did you mean `{close}`?", fix=fix)
                if close in names.left and names.counts.get(close) == 1:
                    found.add(name)
        return found

    def own_reads(self, value: Typed, exists: tuple[Expr, ...], reduction: dict[str, Span]) -> None:
        """A statement may read its own target only at its own position, and not while it combines."""
        own = tuple(self.names.left)
        held = (*exists, *self.subscripts, *self.conditions)
        exprs = held if self.node.along and not self.computed else (value.expr, *held)
        self.reads_on_data(value)
        told = False
        for expr in exprs if self.expressions.written_out is None else held:
            for item in walk(expr):
                if not isinstance(item, Read) or item.tensor != self.node.target.name:
                    continue
                at = tuple(index.name if isinstance(index, IndexVar) else "" for index in item.indices[: self.rank])
                if at == own and not reduction and not self.initialize and not self.computed:
                    continue
                if self.computed:
                    message = f"the statement reads `{item.tensor}`, of which it writes elements at computed subscripts"
                    named = ", ".join(LETTERS[: self.rank])
                    copy = f"`T({named}) = {item.tensor}({named})`"
                    help, fix = f"read a copy: {copy} before it, and `T` in the value", None
                else:
                    why = "at other indices than it writes" if at != own else "while it combines values into it"
                    message = f"the statement reads its own target `{item.tensor}` {why}"
                    help, fix = self.behind_what_is_there()
                self.scope.report(codes.RECURRENCE, item.span, message, help=help, fix=None if told else fix)
                told = True

    def behind_what_is_there(self) -> tuple[str, Fix | None]:
        """How a statement goes on from elements that an earlier one wrote: `along i where i in 1:N`."""
        named = self.names.left
        fix = orders.added(self.node, named)
        extents = [self.extent_text(number) for number in range(len(named))]
        ranges = orders.behind(self.node, named, extents)
        stated = self.statable(extents)
        if fix is None or not (ranges or stated):
            return RECURRENCE_HELP, fix
        text = f"{fix.edits[0].text} where {', '.join(ranges)}" if ranges else fix.edits[0].text
        edits = [Edit(fix.edits[0].span, text)]
        if stated is not None:
            edits.append(stated)
        what = (
            "" if stated is None else f"say how large it is in the result list, `-> ({stated.text}{self.named})`, and "
        )
        begin = ", and where they begin" if ranges else ""
        help = f"{what}write the order in which points are taken{begin}: `{text.strip()}`"
        return help, Fix(f"write `{text.strip()}`", tuple(edits))

    def extent_text(self, number: int) -> str | None:
        """The extent of a dimension of the target, as the result list states it or as an input has it; `None` where it is open."""
        declared, name = self.owner.declared.get(self.named), self.names.left[number]
        if not _begins_at_zero(self.owner.starts.get(self.named, ())):
            return None
        if declared is not None:
            return _plain_extent(declared[1][number]) if number < len(declared[1]) else None
        reads = [item for item in tree.walk(self.node.value) if isinstance(item, tree.Apply)]
        found = {
            _plain_extent(info.dims[k])
            for read in reads
            if (info := self.scope.tensors.get(read.function.name)) is not None
            and info.is_input
            and _begins_at_zero(info.starts)
            and len(info.dims) == len(read.arguments)
            for k, item in enumerate(read.arguments)
            if isinstance(item, tree.Name) and item.name == name
        }
        return found.pop() if len(found) == 1 else None

    def statable(self, extents: list[str | None]) -> Edit | None:
        """State how large a result is whose first statement writes single elements."""
        first = next(each for each in _comprehensions(self.owner.node.statements) if each.target.name == self.named)
        result = next((each for each in self.owner.node.results if each.name.name == self.named), None)
        is_part = any(isinstance(index, tree.Number) for index in first.indices or ())
        info = self.scope.tensors.get(self.named)
        if not is_part or result is None or result.type is not None or info is None or info.dtype is None:
            return None
        place, kind = Span(result.name.span.start, result.name.span.start), info.dtype.value
        kind = {"float32": "float", "int32": "int", "float64": "double"}.get(kind, kind)
        return Edit(place, f"{kind}({', '.join(each or '' for each in extents)}) ") if None not in extents else None

    def runs_on(self, value: Typed) -> str:
        """The operator of a running sum or product, `Y(i) = (Y(i-1) else 0) + X(i) along i`; empty for another statement."""
        if not self.order or self.operator != "=" or not isinstance(value.expr, Binary):
            return ""
        own = [
            any(isinstance(item, Read) and item.tensor == self.named for item in walk(side))
            for side in (value.expr.left, value.expr.right)
        ]
        return value.expr.op if any(own) and not all(own) else ""

    def is_self_read(self, value: Typed) -> bool:
        """Whether a value has elements of the target in it."""
        nodes = walk(value.expr)
        return any(isinstance(item, Read) and item.tensor == self.node.target.name for item in nodes)

    def reads_on_data(self, value: Typed) -> None:
        """TC224: of which turn an element is that a statement reads of its own target, must be known without data."""
        if not self.order:
            return
        made = {self.node.target.name, *self.owner.ahead(self.node)}
        reads = [item for item in walk(value.expr) if isinstance(item, Read) and item.tensor in made]
        turns = {name: self.turns_of(name) for name in {item.tensor for item in reads}}
        for item in reads:
            ordered = [at for place, at in enumerate(item.indices) if place in turns[item.tensor]]
            data = [part for index in ordered for part in walk(index) if isinstance(part, Read) and part.indices]
            if data:
                message = f"`{data[0].tensor}` decides which element of `{item.tensor}` is read"
                help = "whether it is made before is known where subscripts are made of indices, sizes and numbers"
                self.scope.report(codes.DATA_ORDER, item.span, message, help=help)

    def turns_of(self, tensor: str) -> set[int]:
        """The dimensions of what is made in order along which that goes."""
        names = {name for name, _ in self.order}
        written = [self.names.left] if tensor == self.node.target.name else []
        for block in self.node.blocks[:1]:
            names = names if written else {each.index.name for each in self.node.blocks}
            targets = [pair for each in self.owner.groups[block.number] for pair in each.targets]
            left = next((indices or () for name, indices in targets if name.name == tensor), ())
            written.append(tuple(index.name if isinstance(index, tree.Name) else "" for index in left))
        return {place for place, name in enumerate(written[0] if written else ()) if name in names}

    def element_type(self, value: Typed, info: TensorInfo, first: bool) -> DType | None:
        """The element type of the target; the first statement fixes it."""
        name, node = self.node.target.name, self.node
        own = settle(value).dtype
        if own is BOOL and self.operator in ("+", "*"):
            own = INT32
        if not first:
            if info.literal is not None:
                self.adopt(value, own, info, info.literal)
            if info.dtype is not None:
                self.narrows(value, own, info.dtype)
            return info.dtype
        declared = self.owner.declared.get(name)
        if value.weak and declared is None:
            own = self.literal_type(value, own, info)
        dims: tuple[Expr, ...] | None = None
        dtype = own
        if declared is None and self.carried is not None:
            dtype = self.carried
            self.narrows(value, own, dtype)
        if declared is not None:
            dtype, dims = declared
            self.narrows(value, own, dtype)
            if len(dims) != self.rank:
                message = f"`{name}` is declared with {len(dims)} dimension{'s' * (len(dims) != 1)}, but written with {self.rank}"
                help, fix = "state its sizes, or write only its name: the statements say what it is", None
                result = next((each for each in self.owner.node.results if each.name.name == name), None)
                if not dims and own is dtype and result is not None:
                    fix = Fix(f"write only `{name}`", (Edit(result.span, name),))
                whole = node.indices is None and _writes_number(node)
                if whole:
                    at, end = f"({', '.join(letters(len(dims)))})", node.target.span.end
                    help, fix = f"all elements are `{name}{at}`", Fix("write indices", (Edit(Span(end, end), at),))
                labels = (Label(self.owner.result_spans[name], "declared here"),)
                self.scope.report(codes.RESULT_TYPE, node.target.span, message, "", labels, help, fix)
                dims = None
                if whole:
                    return None  # so that nothing is told of statements with indices
        rank = self.rank
        info.dtype, info.rank = dtype, rank
        info.dims = tuple(Size(f"{name}.{k}", node.target.span) for k in range(rank))
        kind = "output" if info.kind == "result" else "temporary"
        starts = None if dims is None else self.owner.declared_starts(name)
        self.owner.draft.tensors[name] = as_pairs(
            Tensor(name, dtype, rank, kind, declared=dims, starts=starts, span=node.target.span)
        )
        self.owner.declare_equalities(name, dims, node.target.span)
        return dtype

    def literal_type(self, value: Typed, own: DType, info: TensorInfo) -> DType:
        """The type of a target whose first statement writes a literal: that of the next statement on it, if there is one."""
        owner, name = self.owner, self.node.target.name
        if owner.types is not None:
            return owner.types.get(name, own)
        if owner.times_written[name] > 1:
            info.literal, owner.adopted[name] = value, own
        return own

    def adopt(self, value: Typed, own: DType, info: TensorInfo, literal: Typed) -> None:
        """Give a target that holds a literal the type in which the literal meets this value; a literal waits for the next one."""
        if value.weak:
            info.literal = value if value.weak == "float" else literal
        else:
            info.literal = None
        info.dtype = unify(literal, value if value.weak else Typed(value.expr, own), bool_is_int=False)[2]
        self.owner.adopted[self.node.target.name] = info.dtype

    def narrows(
        self, value: Typed, own: DType, dtype: DType, span: Span | None = None, into: str | None = None
    ) -> None:
        """TC206 where a value does not fit into the type of the target, or of what else it goes into."""
        if value.weak == "int":
            fine = dtype.part.is_float or (dtype.is_integer and fits_literal(value.exact, dtype))
        elif value.weak:
            fine = dtype.part.is_float
        else:
            fine = fits(own, dtype)
        if fine:
            return
        span = span or self.node.value.span
        text = self.scope.source.slice(span)
        fix = Fix(f"cast it to `{dtype.value}`", (Edit(span, f"{dtype.value}({text})"),)) if len(text) < 200 else None
        into = into or f"`{self.node.target.name}`, which is"
        message = f"`{own.value}` does not fit into {into} `{dtype.value}`, without loss"
        help = None
        if dtype.is_integer and into.startswith(f"`{self.node.target.name}`, which") and self.is_open():
            divides = own.is_integer and self.divides_itself()
            kind = DType.FLOAT64 if divides else own
            if own.is_float:
                help = "its first statement made it an integer; write a float there, as in `0.0`"
            if divides:
                help = "a quotient of integers is rounded down; one of floats is not"
            first = self.first_as(kind) if own.is_float or divides else None
            fix = first or fix
        if own.is_complex and not dtype.is_complex:
            help, fix = complexes.TAKE_A_REAL, None
        if self.node.at is not None:
            help = f"a position is `int64`: declare `{self.node.target.name}` so"
            fix = self.first_as(own) if self.is_open() else None
        self.scope.report(codes.NARROWING, span, message, f"this is `{own.value}`", help=help, fix=fix)

    def is_open(self) -> bool:
        """Whether no declaration says of which type the target is."""
        return self.node.target.name not in self.owner.typed_results

    def divides_itself(self) -> bool:
        """Whether the value has a quotient of an element of the target, as a mean has."""
        quotients = (each for each in tree.walk(self.node.value) if isinstance(each, tree.Binary) and each.op == "/")
        divided = (each.left.function if isinstance(each.left, tree.Apply) else each.left for each in quotients)
        return any(isinstance(each, tree.Name) and each.name == self.node.target.name for each in divided)

    def first_as(self, dtype: DType) -> Fix | None:
        """Give the target another type in its first statement, where this is another one."""
        name = self.node.target.name
        first = self.owner.first_on.get(name)
        if first is None or first is self.node or len(first.targets) != 1:
            return None
        if first.operator.rstrip("!") not in ("=", "+=", "*=", "min=", "max="):
            return None
        text = self.scope.source.slice(first.value.span)
        edit = Edit(first.value.span, f"{dtype.value}({text})")
        if isinstance(first.value, tree.Apply) and first.value.function.name in SCALAR_TYPES:
            edit = Edit(first.value.function.span, dtype.value)
        return Fix(f"make `{name}` a `{dtype.value}`", (edit,)) if len(text) < 200 else None


def _repeated(infos: Iterable[TensorInfo], letters: Sequence[str]) -> dict[str, str] | None:
    """The indices of tensors of different ranks, by their sizes, where those of the largest rank have all sizes once.

    Worked example: of `float(N, M) A` and `float(M) b` they are `(i, j)` and `(j)`.
    """
    known = list(infos)
    widest = max(known, key=lambda info: info.rank or 0)
    at = dict(zip(widest.dims, letters, strict=False))
    if len(at) < len(widest.dims) or not all(dim in at for info in known for dim in info.dims):
        return None
    return {info.name: f"({', '.join(at[dim] for dim in info.dims)})" for info in known if info.rank}


def _sum(start: Expr, extent: Expr) -> Expr:
    """The end of a box: what was written where `extent` is `end - start`."""
    if isinstance(extent, Binary) and extent.op == "-" and extent.right == start:
        return extent.left
    return sum_of(start, extent)


def fits_literal(value: int, dtype: DType) -> bool:
    """Whether an integer literal is a value of an integer type."""
    low, high = dtype.limits
    return low <= value <= high


def _terms(node: tree.Expression, sign: str = "+") -> list[tuple[str, tree.Expression]]:
    """The terms of a sum, with their signs; a sum in parentheses is one term."""
    if isinstance(node, tree.Binary) and node.op in ("+", "-") and node.span.start == node.left.span.start:
        return [*_terms(node.left), (node.op, node.right)]
    return [(sign, node)]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _resembles(name: str, other: str, cases: bool) -> bool:
    """Equal but for case, or a slip apart in at least three letters; names that differ as those of a family do are no slip."""
    if name.lower() == other.lower():
        return cases
    if min(len(name), len(other)) < 3 or edit_distance(name, other, 1) > 1:
        return False
    return name.rstrip("0123456789") != other.rstrip("0123456789") and not _is_family(name, other)


def _is_family(name: str, other: str) -> bool:
    """Whether one letter tells two names apart that are made alike: `r_h` and `r_w`, `posx` and `posy`, `irow` and `jrow`."""
    if len(name) != len(other):
        return False
    differ = [k for k, pair in enumerate(zip(name, other, strict=True)) if pair[0] != pair[1]]
    if len(differ) != 1:
        return False
    (k,) = differ
    return (k == 0 or name[k - 1] == "_" or k == len(name) - 1) and (k in (0, len(name) - 1) or name[k + 1] == "_")


__all__ = ["Checked", "check_tc", "python_name"]


def _comprehensions(statements: Sequence[tree.TcStatement]) -> Iterator[tree.Comprehension]:
    """The statements that say what an element is."""
    for each in statements:
        if isinstance(each, tree.Comprehension):
            yield each


def _begins_at_zero(starts: Sequence[Expr | None]) -> bool:
    """Whether the first indices of a tensor, as far as they are stated, are 0."""
    return all(start is None or (isinstance(start, Const) and start.value == 0) for start in starts)


def _holds(span: Span, places: Iterable[tuple[TensorInfo, Span]]) -> bool:
    """Whether one of the places is inside of `span`."""
    return any(span.start <= place.start and place.end <= span.end for _, place in places)


def _plain_extent(extent: Expr) -> str | None:
    """An extent that is one size or number."""
    return extent.name if isinstance(extent, Size) else str(extent.value) if isinstance(extent, Const) else None
