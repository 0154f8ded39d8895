"""Ranks without values: level D of `%%sac`, used to find how long an index vector without bounds is.

Every expression is walked with ranks only. A vector that is as long as the index vector (`iv`, `iv + 1`, `iv ++ [k]`) keeps
that relation; where it selects from an array of known rank, the rank limits the length.

Worked example: in `{ iv -> a[iv] + b[iv ++ [0]] }` with `a` of rank 2 and `b` of rank 4 the limits are 2 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from tc_jupyter.diagnostics.work import spend
from tc_jupyter.syntax.sac_tree import (
    Apply,
    ArrayLiteral,
    Assign,
    Binary,
    BrokenAssign,
    Conditional,
    Dot,
    If,
    Loop,
    PartitionClause,
    Pattern,
    SacExpression,
    SacFunction,
    Selection,
    SetExpr,
    Statement,
    TripleDot,
    Unary,
    Unpack,
    WithLoop,
    assigned_names,
    sac_walk,
)
from tc_jupyter.syntax.tree import Name, Number

from .sac_primitives import primitive


@dataclass(frozen=True, slots=True)
class Rank:
    """What is known of an array: its rank; of a vector its length, or its length minus that of the index vector."""

    rank: int | None = None
    length: int | None = None
    beyond: int | None = None


_Key: TypeAlias = tuple[int, tuple[Rank, ...]]

_DEEPEST = 120  # levels of expressions, through calls

UNKNOWN = Rank()
SCALAR = Rank(0)


def index_lengths(
    body: SacExpression, index: str, env: Mapping[str, Rank], functions: Mapping[str, tuple[SacFunction, ...]]
) -> list[int]:
    """The longest legal length of index vector `index` for each selection in `body` that tells one."""
    return _lengths(body, index, env, functions, {})


def _lengths(
    body: SacExpression,
    index: str,
    env: Mapping[str, Rank],
    functions: Mapping[str, tuple[SacFunction, ...]],
    memo: dict[_Key, Rank],
) -> list[int]:
    probe = _Probe(functions, memo)
    probe.rank(body, {**env, index: Rank(1, None, 0)})
    return [length for length in probe.lengths if length >= 0]


class _Probe:
    def __init__(self, functions: Mapping[str, tuple[SacFunction, ...]], memo: dict[_Key, Rank]) -> None:
        self.functions = functions
        self.memo = memo
        self.lengths: list[int] = []
        self.depth = 0
        self.level = 0

    def rank(self, node: SacExpression, env: Mapping[str, Rank]) -> Rank:
        """The rank of an expression; unknown where more levels are around it than can be walked."""
        spend(5)
        self.level += 1
        found = self._rank(node, env) if self.level <= _DEEPEST else UNKNOWN
        self.level -= 1
        return found

    def _rank(self, node: SacExpression, env: Mapping[str, Rank]) -> Rank:
        match node:
            case Name():
                return env.get(node.name, UNKNOWN)
            case Number():
                return SCALAR
            case Unary():
                return self.rank(node.operand, env)
            case Binary(op="++"):
                return self._joined(self.rank(node.left, env), self.rank(node.right, env))
            case Binary():
                return _wider(self.rank(node.left, env), self.rank(node.right, env))
            case Conditional():
                self.rank(node.condition, env)
                then, otherwise = self.rank(node.then, env), self.rank(node.otherwise, env)
                return then if then.rank is not None else otherwise
            case ArrayLiteral():
                inner = [self.rank(element, env) for element in node.elements]
                first = inner[0].rank if inner else 0
                return Rank(None if first is None else first + 1, len(inner))
            case Selection():
                return self._selection(node, env)
            case SetExpr():
                return [self._partition(partition, env) for partition in node.partitions][-1]
            case WithLoop():
                return self._with_loop(node, env)
            case Apply():
                return self._apply(node, env)
        assert_never(node)

    def _joined(self, left: Rank, right: Rank) -> Rank:
        rank = left.rank if left.rank is not None else right.rank
        if left.length is not None and right.length is not None:
            return Rank(rank, left.length + right.length)
        for one, other in ((left, right), (right, left)):
            if one.beyond is not None and other.length is not None:
                return Rank(rank, None, one.beyond + other.length)
        return Rank(rank)

    def _selected(self, array: Rank, index: Rank) -> Rank:
        if array.rank is None:
            return UNKNOWN
        if index.rank == 0:
            return Rank(array.rank - 1)
        if index.beyond is not None:
            self.lengths.append(array.rank - index.beyond)
            return UNKNOWN
        return UNKNOWN if index.length is None else Rank(array.rank - index.length)

    def _selection(self, node: Selection, env: Mapping[str, Rank]) -> Rank:
        array = self.rank(node.array, env)
        indices = [self.rank(i, env) for i in node.indices if not isinstance(i, Dot | TripleDot)]
        if len(node.indices) == 1 and indices:
            return self._selected(array, indices[0])
        return UNKNOWN if array.rank is None else Rank(array.rank - len(indices))

    def _partition(self, partition: PartitionClause, env: Mapping[str, Rank]) -> Rank:
        """The rank of a partition; looked up when the ranks of all its free names are those of an earlier visit.

        A partition inside an index that is probed with two lengths is visited twice, so that nesting would double the work.
        """
        bound = {name.name for name in partition.pattern.bound}
        free = sorted({n.name for n in sac_walk(partition.body) if isinstance(n, Name)} - bound)
        key = (id(partition), tuple(env.get(name, UNKNOWN) for name in free))
        unprobed = all(rank.beyond is None for rank in key[1])
        if key in self.memo and unprobed:
            return self.memo[key]
        found = self._partition_rank(partition, env)
        if unprobed:  # a visit that tells a length of an enclosing index is made again
            self.memo[key] = found
        return found

    def _partition_rank(self, partition: PartitionClause, env: Mapping[str, Rank]) -> Rank:
        inner = dict(env)
        length: int | None = len(partition.pattern.names)
        generator = partition.generator
        bounds = (
            []
            if generator is None
            else [b for b in (generator.lower, generator.upper) if b is not None and not isinstance(b, Dot)]
        )
        ranks = [self.rank(bound, env) for bound in bounds]
        if partition.pattern.vector:
            length = next((1 if r.rank == 0 else r.length for r in ranks), None)
            name = partition.pattern.names[0].name
            if length is None and not any(r.beyond is not None for r in ranks):
                found = _lengths(partition.body, name, env, self.functions, self.memo)
                length = min(found) if found else None
            inner[name] = Rank(1, length)
        else:
            inner |= _named(partition.pattern)
        body = self.rank(partition.body, inner)
        return UNKNOWN if body.rank is None or length is None else Rank(body.rank + length)

    def _with_loop(self, node: WithLoop, env: Mapping[str, Rank]) -> Rank:
        arguments = [self.rank(argument, env) for argument in node.arguments]
        for generator in node.generators:
            inner = dict(env)
            bounds = [
                b
                for b in (generator.generator.lower, generator.generator.upper)
                if b is not None and not isinstance(b, Dot)
            ]
            ranks = [self.rank(bound, env) for bound in bounds]
            if generator.pattern.vector:
                inner[generator.pattern.names[0].name] = Rank(1, next((r.length for r in ranks), None))
            else:
                inner |= _named(generator.pattern)
            self.statements(generator.assigns, inner)
            self.rank(generator.body, inner)
        if node.operator == "modarray":
            return Rank(arguments[0].rank)
        if (
            node.operator == "genarray"
            and len(arguments) == 2
            and arguments[0].length is not None
            and arguments[1].rank is not None
        ):
            return Rank(arguments[0].length + arguments[1].rank)
        return UNKNOWN if node.operator == "genarray" else Rank(arguments[0].rank)

    def _apply(self, node: Apply[SacExpression], env: Mapping[str, Rank]) -> Rank:
        arguments = [self.rank(argument, env) for argument in node.arguments]
        name = node.function.name
        if name in self.functions:
            return self._call(self.functions[name], arguments)
        name = primitive(name) or name
        first = arguments[0] if arguments else UNKNOWN
        if name == "shape":
            return Rank(1, first.rank)
        if name in ("dim", "sum", "prod", "minval", "maxval", "all", "any"):
            return SCALAR
        if name == "iota":
            return Rank(1)
        if name == "reshape":
            return Rank(first.length)
        if name in ("tile", "rotate", "shift") and arguments:
            return Rank(arguments[-1].rank)
        if name == "sel" and len(arguments) == 2:
            return self._selected(arguments[1], first)
        if name in ("take", "drop") and len(arguments) == 2:
            return Rank(arguments[1].rank)
        if name == "++" and len(arguments) == 2:
            return self._joined(first, arguments[1])
        if name == "genarray" and len(arguments) == 2:
            other = arguments[1].rank
            return UNKNOWN if first.length is None or other is None else Rank(first.length + other)
        result = first
        for argument in arguments[1:]:
            result = _wider(result, argument)
        return result

    def _call(self, overloads: tuple[SacFunction, ...], arguments: list[Rank]) -> Rank:
        fitting = [f for f in overloads if _fits(f, arguments)]
        if len(fitting) != 1 or self.depth >= 8:
            return UNKNOWN
        self.depth += 1
        env = {param.name.name: rank for param, rank in zip(fitting[0].params, arguments, strict=True)}
        self.statements(fitting[0].body, env)
        ranks = [self.rank(result, env) for result in fitting[0].results]
        self.depth -= 1
        return ranks[0] if len(ranks) == 1 else UNKNOWN

    def statements(self, statements: Sequence[Statement], env: dict[str, Rank]) -> None:
        """What the variables have behind statements; unknown where two ways differ."""
        for statement in statements:
            match statement:
                case Assign():
                    env[statement.name.name] = self.rank(statement.value, env)
                case Unpack():
                    self.rank(statement.value, env)
                    env |= {name.name: UNKNOWN for name in statement.names}
                case If():
                    self.rank(statement.condition, env)
                    then, otherwise = dict(env), dict(env)
                    self.statements(statement.then, then)
                    self.statements(statement.otherwise, otherwise)
                    env |= {name: _either(then.get(name), otherwise.get(name)) for name in (*then, *otherwise)}
                case Loop():
                    self.statements(statement.start, env)
                    inside = {
                        **env,
                        **{name.name: UNKNOWN for name in assigned_names((*statement.body, *statement.step))},
                    }
                    self.rank(statement.condition, inside)
                    self.statements((*statement.body, *statement.step), inside)
                    env |= {name: _either(env.get(name), rank) for name, rank in inside.items()}
                case BrokenAssign():
                    for name in statement.names:
                        env.pop(name, None)


def _either(left: Rank | None, right: Rank | None) -> Rank:
    """What is known of a variable that has its value from one of two ways."""
    if left is None or right is None or left.rank != right.rank:
        return UNKNOWN
    return left if left == right else Rank(left.rank)


def _named(pattern: Pattern) -> dict[str, Rank]:
    """The names of a pattern `[i, j]`, and of `iv = [i, j]`."""
    found = {name.name: SCALAR for name in pattern.names}
    return found if pattern.whole is None else {**found, pattern.whole.name: Rank(1, len(pattern.names))}


def _fits(function: SacFunction, arguments: list[Rank]) -> bool:
    if len(function.params) != len(arguments):
        return False
    for param, argument in zip(function.params, arguments, strict=True):
        if param.type is None or argument.rank is None:
            continue
        if param.type.rank is not None and param.type.rank != argument.rank:
            return False
        if param.type.shape == "+" and argument.rank == 0:
            return False
    return True


def _wider(left: Rank, right: Rank) -> Rank:
    """The operand that is no scalar."""
    if left.rank == 0:
        return right
    if right.rank == 0 or left.rank is not None:
        return left
    return right if right.rank is not None else UNKNOWN
