"""What a `%%sac` function must know of its arguments: nothing, the rank, the shape, or the value (levels N, D, S, F).

Demands are found on the tree, before any rank is known. They decide which arguments a call must look at, and whether all elements
of a comprehension have one shape: then the shape of a body demands no value of an index.

Worked example: `shape({ [i] -> take([2], x[i]) })` demands level S of `x`; `take(v, x)` demands F of `v` even for its shape.

Source: the paper, section 6 (binding scope analysis).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from tc_jupyter.diagnostics import Span
from tc_jupyter.syntax.sac_tree import (
    Apply,
    ArrayLiteral,
    Assign,
    Binary,
    BrokenAssign,
    Conditional,
    Dot,
    Generator,
    If,
    Loop,
    Pattern,
    SacExpression,
    SacFunction,
    SacType,
    Selection,
    SetExpr,
    Statement,
    TripleDot,
    Unary,
    Unpack,
    WithLoop,
    assigned_names,
    generator_bounds,
    sac_expressions,
    sac_walk,
    statement_expressions,
)
from tc_jupyter.syntax.tree import Name, Number

from .sac_primitives import ARITIES, DEMANDS, LEVELS, primitive

N, D, S, F = range(4)
Demand = dict[str, int]


@dataclass(frozen=True, slots=True)
class Offence:
    """A body whose shape needs the value of an index: where, which index, and the function that needs it."""

    span: Span
    index: str
    culprit: SacExpression


class Demands:
    """Demands of expressions and functions of one cell; every function is analysed once per level."""

    def __init__(self, functions: Mapping[str, tuple[SacFunction, ...]]) -> None:
        self.functions = functions
        self._known: dict[tuple[int, int], Demand] = {}
        self._found: dict[
            tuple[int, int], tuple[SacExpression, Demand]
        ] = {}  # keeps the node, so that its id stays its own

    def function(self, function: SacFunction, level: int) -> Demand:
        """The level needed of each parameter for `level` of the results."""
        if (id(function), level) not in self._known:
            for each in self._callees_first(function):
                for wanted in (D, S, F):
                    self._known.setdefault((id(each), wanted), self._needs(each, wanted))
        return self._known[id(function), level]

    def levels(self, function: SacFunction) -> dict[str, str]:
        """The level (`N`, `D`, `S`, `F`) that a call needs of each parameter."""
        return {name: LEVELS[level] for name, level in self.function(function, F).items()}

    def _needs(self, function: SacFunction, level: int) -> Demand:
        """The demands of one function from those of the functions that it calls."""
        pairs = zip(function.types, function.results, strict=False)  # of other numbers something is said
        found = _merged(self.expression(result, N if _is_told(type_, level) else level) for type_, result in pairs)
        found = self.before(function.body, found)
        return {p.name.name: found.get(p.name.name, N) for p in function.params}

    def _callees_first(self, function: SacFunction) -> list[SacFunction]:
        """The functions that a function may call, itself last. A loop, not a recursion: chains of calls may be long."""
        order: list[SacFunction] = []
        todo: list[tuple[SacFunction, bool]] = [(function, False)]
        seen: set[int] = set()
        while todo:
            current, done = todo.pop()
            if done:
                order.append(current)
            elif id(current) not in seen and (id(current), F) not in self._known:
                seen.add(id(current))
                todo.append((current, True))
                todo += [(callee, False) for callee in self._callees(current)]
        return order

    def _callees(self, function: SacFunction) -> list[SacFunction]:
        found: list[SacFunction] = []
        for root in sac_expressions(function):
            for node in sac_walk(root):
                if isinstance(node, Apply):
                    found += self._overloads(node.function.name, len(node.arguments))
                elif isinstance(node, Binary):
                    found += self._overloads(node.op, 2)
        return found

    def before(self, statements: Sequence[Statement], after: Demand) -> Demand:
        """What is needed before statements, when `after` is needed behind them."""
        found = dict(after)
        for statement in reversed(statements):
            match statement:
                case Assign():
                    level = found.pop(statement.name.name, N)
                    found = _merged((found, self.expression(statement.value, level)))
                case Unpack():
                    level = max([found.pop(name.name, N) for name in statement.names])
                    found = _merged((found, self.expression(statement.value, level)))
                case If():
                    level = max([found.get(name.name, N) for name in assigned_names((statement,))], default=N)
                    condition = self.expression(statement.condition, F if level == F else N)
                    branches = (self.before(branch, found) for branch in (statement.then, statement.otherwise))
                    found = _merged((condition, *branches))
                case Loop():
                    found = self._before_loop(statement, found)
                case BrokenAssign():
                    continue
        return found

    def _before_loop(self, loop: Loop, after: Demand) -> Demand:
        """A loop needs what its rounds need; they are walked until nothing is added."""
        needed = any(after.get(name.name, N) for name in assigned_names((loop,)))
        found = _merged((after, self.expression(loop.condition, F if needed else N)))
        while True:
            more = _merged((found, self.before((*loop.body, *loop.step), found)))
            if more == found:
                return self.before(loop.start, found)
            found = more

    def expression(self, node: SacExpression, level: int) -> Demand:
        """The level needed of each free name for `level` of an expression."""
        if level == N:
            return {}
        if not isinstance(node, SetExpr | WithLoop):
            return self._expression(node, level)
        key = (id(node), level)
        if key not in self._found:  # arrays inside are asked for their values and for bounds: once is enough
            self._found[key] = (node, self._expression(node, level))
        return self._found[key][1]

    def _expression(self, node: SacExpression, level: int) -> Demand:
        match node:
            case Name():
                return {node.name: level}
            case Number():
                return {}
            case Unary():
                return self.expression(node.operand, level)
            case Binary(op="++"):
                return self._by_table("++", (node.left, node.right), level)
            case Binary():
                return self._operator(node, level)
            case Conditional():
                condition = self.expression(node.condition, F if level == F else N)
                return _merged((condition, self.expression(node.then, level), self.expression(node.otherwise, level)))
            case ArrayLiteral():
                return _merged(self.expression(element, level) for element in node.elements)
            case Selection():
                return self._selection(node, level)
            case SetExpr():
                return self._comprehension(node, level)
            case WithLoop():
                return self._with_loop(node, level)
            case Apply():
                return self._apply(node, level)
        assert_never(node)

    def _operator(self, node: Binary[SacExpression], level: int) -> Demand:
        own = [self._call(function, (node.left, node.right), level) for function in self._overloads(node.op, 2)]
        return _merged((self.expression(node.left, level), self.expression(node.right, level), *own))

    def _by_table(self, name: str, arguments: Sequence[SacExpression], level: int) -> Demand:
        needs = DEMANDS[name][F - level]
        if name in ARITIES:  # counts first, the array last
            needs = needs[0] * (len(arguments) - 1) + needs[-1]
        return _merged(self.expression(a, LEVELS.index(need)) for a, need in zip(arguments, needs, strict=False))

    def _selection(self, node: Selection, level: int) -> Demand:
        indices = [index for index in node.indices if not isinstance(index, Dot | TripleDot)]
        if level == F:
            return _merged((self.expression(node.array, F), *(self.expression(index, F) for index in indices)))
        found = [self.expression(node.array, level)]
        if len(node.indices) == 1:
            found += [self.expression(index, S) for index in indices]
        return _merged(found)

    def _apply(self, node: Apply[SacExpression], level: int) -> Demand:
        name = node.function.name
        own = self._overloads(name, len(node.arguments))
        if own:
            return _merged(self._call(function, node.arguments, level) for function in own)
        word = primitive(name) or name
        if word in DEMANDS and self.functions.get(name) != ():
            return self._by_table(word, node.arguments, level)
        return _merged(self.expression(argument, level) for argument in node.arguments)

    def _overloads(self, name: str, count: int) -> list[SacFunction]:
        return [f for f in self.functions.get(name, ()) if len(f.params) == count]

    def _call(self, function: SacFunction, arguments: Sequence[SacExpression], level: int) -> Demand:
        needs = self._known.get((id(function), level), {})  # a recursive call adds nothing to what the other calls need
        pairs = zip(function.params, arguments, strict=True)
        return _merged(self.expression(argument, needs.get(param.name.name, N)) for param, argument in pairs)

    def _comprehension(self, node: SetExpr, level: int) -> Demand:
        clauses = node.partitions if level == F else node.partitions[-1:]
        found: list[Demand] = []
        for clause in clauses:
            names = {name.name for name in clause.pattern.bound}
            inner = [self.expression(clause.body, level)]
            if clause.generator is None or clause.generator.upper is None:
                inner += [self.expression(array, S if level > D else D) for array in _selected_with(clause.body, names)]
            found.append(_without(_merged(inner), names))
            found.append(self._bounds(clause.generator, level, clause.pattern))
        return _merged(found)

    def _bounds(self, generator: Generator | None, level: int, pattern: Pattern | None) -> Demand:
        if generator is None:
            return {}
        bounds = generator_bounds(generator)
        needed = level if level == F else F if level == S else S
        if level == D and pattern is not None and not pattern.vector:
            return {}
        if level == S and generator.upper is not None and not isinstance(generator.upper, Dot):
            bounds = (generator.upper,)
        return _merged(self.expression(bound, needed) for bound in bounds)

    def _with_loop(self, node: WithLoop, level: int) -> Demand:
        found: list[Demand] = []
        if node.operator == "genarray":
            found.append(self.expression(node.arguments[0], F if level >= S else S))
            found += [self.expression(argument, level) for argument in node.arguments[1:]]
        else:
            found += [self.expression(argument, level) for argument in node.arguments]
        needs_body = level == F or (node.operator == "genarray" and len(node.arguments) == 1)
        for generator in node.generators if needs_body else ():
            names = {name.name for name in generator.pattern.bound}
            inner = self.before(generator.assigns, self.expression(generator.body, level))
            found.append(_without(inner, names))
            if level == F:
                found.append(self._bounds(generator.generator, F, None))
        return _merged(found)

    # Homogeneity

    def offences(self, node: SacExpression) -> list[Offence]:
        """Bodies in an expression of a function that was analysed whose shape needs the value of one of their indices."""
        found: list[Offence] = []
        for inner in sac_walk(node):
            match inner:
                case SetExpr():
                    for clause in inner.partitions:
                        found += self._offence(clause.body, clause.pattern, ())
                case WithLoop():
                    for generator in inner.generators:
                        found += self._offence(generator.body, generator.pattern, generator.assigns)
                case _:
                    continue
        return found

    def _offence(self, body: SacExpression, pattern: Pattern, assigns: Sequence[Statement]) -> list[Offence]:
        needs = self.before(assigns, self.expression(body, S))
        for name in pattern.bound:
            if needs.get(name.name, N) == F:
                culprit = self._culprit([*statement_expressions(assigns), body], name.name)
                return [Offence(body.span, name.name, culprit)]
        return []

    def _culprit(self, nodes: Sequence[SacExpression], name: str) -> SacExpression:
        """The innermost call whose shape needs the value of a name."""
        best: SacExpression = nodes[-1]
        for node in nodes:
            for inner in sac_walk(node):
                if isinstance(inner, Apply | SetExpr | WithLoop) and self.expression(inner, S).get(name, N) == F:
                    best = inner
        return best


def demands(function: SacFunction, functions: Mapping[str, tuple[SacFunction, ...]]) -> dict[str, str]:
    """The level (`N`, `D`, `S`, `F`) that a call needs of each parameter."""
    return Demands(functions).levels(function)


def _selected_with(body: SacExpression, names: set[str]) -> list[SacExpression]:
    """Arrays that are selected from with one of `names` in the index: their shapes bound the name."""
    found: list[SacExpression] = []
    for node in sac_walk(body):
        if isinstance(node, Selection):
            indices: list[SacExpression] = [i for i in node.indices if not isinstance(i, Dot | TripleDot)]
            array = node.array
        elif (
            isinstance(node, Apply)
            and (primitive(node.function.name) or node.function.name) == "sel"
            and len(node.arguments) == 2
        ):
            indices, array = [node.arguments[0]], node.arguments[1]
        else:
            continue
        if any(isinstance(inner, Name) and inner.name in names for index in indices for inner in sac_walk(index)):
            found.append(array)
    return found


def _is_told(type_: SacType | None, level: int) -> bool:
    """Whether the type of a result says its rank, or its shape, by itself."""
    if type_ is None or isinstance(type_.shape, str):
        return False
    return level == D or (level == S and None not in type_.shape)


def _merged(parts: Iterable[Demand]) -> Demand:
    found: Demand = {}
    for part in parts:
        for name, level in part.items():
            found[name] = max(found.get(name, N), level)
    return found


def _without(part: Demand, names: set[str]) -> Demand:
    return {name: level for name, level in part.items() if name not in names}
