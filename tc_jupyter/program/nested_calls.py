"""`Z = scale(smooth(X), 2 * b)`: calls of defs inside expressions, and arguments that are expressions, as statements before.

Worked example: of a def `scale(float(N) X, float a)` and a def `smooth` with the result `Y` it becomes
`Z.smooth = smooth(X)`, `Z.scale.a = 2 * b`, `Z = scale(Z.smooth, Z.scale.a)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from tc_jupyter.syntax import tree

from .program import Program


@dataclass(slots=True)
class NestedCalls:
    """What a statement needs before it.

    Attributes:
        target: the tensor that the statement writes, after which the others are named.
        callee: the program behind the name of a def; `None` for other names, and while it depends on the arguments.
        is_open: whether a name is that of a function whose program depends on the arguments, as those of `%%sac` do.
        is_whole: whether a name is an array or a number of the def, and no index.
        fresh: a name for a tensor that is like the given one.
        number: notes an expression of sizes and literals under a name, for a parameter that is an integer; says whether it is one.
        statements: those that were found, in order.
    """

    target: str
    callee: Callable[[str], Program | None]
    is_open: Callable[[str], bool]
    is_whole: Callable[[str], bool]
    fresh: Callable[[str], str]
    number: Callable[[str, tree.Expression], bool]
    statements: list[tree.Comprehension] = field(default_factory=list[tree.Comprehension])

    def called(self, call: tree.Apply[tree.Expression]) -> tree.Apply[tree.Expression]:
        """A call whose arguments are names, except where an index stands in one."""
        name = call.function.name
        program = self.callee(name)
        parameters = program.parameters if program is not None else ()
        arguments: list[tree.Expression] = []
        for place, argument in enumerate(call.arguments):
            if isinstance(argument, tree.Name) or not self._without_index(argument):
                arguments.append(argument)
                continue
            formal = program.tensor(parameters[place]) if program is not None and place < len(parameters) else None
            like = self.fresh(f"{self.target}.{name}.{formal.name if formal else 'argument'}")
            whole = formal.rank == 0 and formal.element.is_integer if formal is not None else self.is_open(name)
            if whole and self.number(like, argument):
                arguments.append(tree.Name(like, argument.span))
                continue
            argument = _literal(argument, formal.element.value) if formal is not None else argument
            arguments.append(self._stored(self.inside(argument, whole=True), like))
        return replace(call, arguments=tuple(arguments))

    def inside(self, node: tree.Expression, *, whole: bool) -> tree.Expression:
        """An expression without calls of defs; beside indices (not `whole`) only calls that give a number are taken out."""
        if isinstance(node, tree.Apply) and (program := self.callee(node.function.name)) is not None:
            like = f"{self.target}.{node.function.name}"
            fits = len(program.results) == 1 and all(map(self._without_index, node.arguments))
            if fits and (whole or program.tensor(program.results[0]).written_rank == 0):
                return self._stored(self.called(node), self.fresh(like))
            return node
        if isinstance(node, tree.Apply) and whole and self.is_open(node.function.name):
            if not all(map(self._without_index, node.arguments)):
                return node
            return self._stored(self.called(node), self.fresh(f"{self.target}.{node.function.name}"))
        return tree.mapped(node, partial(self.inside, whole=whole))

    def _without_index(self, node: tree.Expression) -> bool:
        names = (each.name for each in tree.walk(node) if isinstance(each, tree.Name))
        return all(map(self.is_whole, names))

    def _stored(self, value: tree.Expression, name: str) -> tree.Expression:
        """The name of a tensor that a statement before this one fills."""
        if isinstance(value, tree.Name):
            return value
        target = tree.Name(name, value.span)
        self.statements.append(tree.Comprehension(target, None, "=", value, span=value.span, operator_span=value.span))
        return target


def _literal(node: tree.Expression, dtype: str) -> tree.Expression:
    """A number as one of the parameter's type, if that is a float."""
    number = node.operand if isinstance(node, tree.Unary) else node
    if not isinstance(number, tree.Number) or number.type is not None or "float" not in dtype:
        return node
    return tree.Apply(tree.Name(dtype, node.span), (node,), node.span)


def values_of(node: tree.TcStatement) -> tuple[tree.Expression, ...]:
    """The expressions of a statement in which calls of defs may stand: its value, lets and conditions, or its arguments."""
    match node:
        case tree.Comprehension():
            clauses = (each for each in node.clauses if isinstance(each, tree.Let | tree.Filter))
            return (node.value, *(part for each in clauses for part in tree.parts(each)))
        case tree.CallStatement():
            return node.arguments
        case _:
            return ()
