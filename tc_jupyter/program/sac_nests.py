"""Loops inside of loops that count: which statements are done at which places of a nest whose loops have an index each.

A round of the outer loop has a place for the statements between the inner loops, and one for each of their rounds.

Worked example: in a round of `for (k = 0; k < n; k++) { s = 0d; for (j = 0; j < m; j++) { s += c[j]; } t *= s; }` place 0 does
`s = 0d`, the places 1 to `m` do the rounds of `j`, whose value is the place less 1, and place `m + 1` does `t *= s`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tc_jupyter.diagnostics import codes
from tc_jupyter.syntax.sac_tree import Assign, If, Loop, SacExpression, Statement, assigned_names, sac_walk
from tc_jupyter.syntax.tree import Binary as BinaryNode
from tc_jupyter.syntax.tree import Name

from .expr import Binary, Const, DType, Expr, IndexVar, int64
from .integers import index_names
from .sac_calls import Block, Calls, Later
from .sac_emit import negate
from .sac_helpers import read
from .sac_sizes import ONE, ZERO, add, ends, floordiv, fold, is_nonnegative, maximum, mul, sub, substitute
from .sac_sizes import value as number_of
from .sac_values import Kind, Value, Weak, convert, is_integer, scalar, storage, to_index
from .sac_work import Context, Env

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Counted:
    """A loop that counts.

    Attributes:
        variable, kind: what it counts with; an exact integer where literals begin it.
        first, by, count: its value in the first round, what each round adds, and how many rounds there are.
    """

    variable: str
    kind: Kind
    first: Expr
    by: int
    count: Expr

    def at(self, place: Expr) -> Value:
        """The variable in a round, or behind all."""
        found = add(self.first, mul(int64(self.by), place))
        return scalar(convert(found, Weak.INT, self.kind), self.kind)


class NotInOrder(Exception):
    """Why the rounds of a loop cannot be statements in order."""


@dataclass(frozen=True, slots=True)
class Straight:
    """Statements without a loop of the nest.

    Attributes:
        fixed: variables that count the loops around, and others that sizes decide.
        tests: the variables that say whether the statements are done, with the values that they need.
        made: what they assign, of which types and shapes are known.
    """

    block: Block
    fixed: Mapping[str, Value]
    tests: tuple[tuple[str, bool], ...] = ()
    made: Mapping[str, Value] = field(default_factory=dict[str, Value])


@dataclass(frozen=True, slots=True)
class Inner:
    """A loop inside of one of the nest: its variable, the index of its rounds, how many there are, and at most."""

    variable: str
    index: str
    count: Expr
    most: Expr
    parts: tuple[Straight | Inner, ...]


Part = Straight | Inner


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop with the loops inside of it.

    Attributes:
        steps, extents: its indices, outermost first, and how many places there are of each.
        moves: what is done where; the first whose conditions hold is done, and elsewhere nothing is.
    """

    steps: tuple[str, ...]
    extents: tuple[Expr, ...]
    moves: tuple[tuple[Straight, tuple[Expr, ...]], ...]


class Nests(Calls):
    """Loops that count, and what is inside of them."""

    def counted(self, node: Loop, env: Env, context: Context, around: Sequence[str] = ()) -> Counted | None:
        """How a loop counts; `None` where it does something else, or where more than sizes and scalar arguments say how far.

        The indices of loops of the nest `around` it may say so, too.
        """
        if node.word != "for" or len(node.step) != 1 or not isinstance(node.condition, BinaryNode):
            return None
        step, condition = node.step[0], node.condition
        name, changed = step.name.name, {each.name for each in assigned_names(node.body)}
        ends_of_it = [
            (condition.op, condition.left, condition.right),
            (_MIRRORED.get(condition.op), condition.right, condition.left),
        ]
        end = next(((op, far) for op, own, far in ends_of_it if op in _MIRRORED and _is(own, name)), None)
        begin = env.get(name)
        if end is None or begin is None or name in changed or _names(end[1]) & (changed | {name}):
            return None
        if not isinstance(step.value, BinaryNode) or step.value.op not in ("+", "-") or not _is(step.value.left, name):
            return None
        by, far = self.expr(step.value.right, env, context), self.expr(end[1], env, context)
        if any(each.rank or not is_integer(each.kind) or each.kind is DType.UINT64 for each in (begin, by, far)):
            return None
        parts = [to_index(self.element(each, (), context), each.kind) for each in (begin, by, far)]
        number = number_of(parts[1])
        if number is None:
            return None
        number = number if step.value.op == "+" else -number
        first, last = parts[0], parts[2]
        room = sub(last, first) if number > 0 else sub(first, last)
        room = add(room, ONE) if "=" in end[0] else room
        if number == 0 or (number > 0) != (end[0] in ("<", "<=")):
            self.refuse_endless(node, name, number, env, context)
            return Counted(name, begin.kind, first, number, ZERO)
        count = maximum((ZERO, floordiv(add(room, int64(abs(number) - 1)), int64(abs(number)))))
        some = Binary("<", ZERO, count, DType.BOOL)  # whether there is a round is asked, too
        moving = (index_names(some) | index_names(first)) - {*around}
        if moving or not self.is_bound(some) or not self.is_bound(first):
            return None
        if by.kind not in (Weak.INT, begin.kind):
            return None
        return Counted(name, begin.kind, first, number, count)

    def refuse_endless(self, node: Loop, name: str, by: int, env: Env, context: Context) -> None:
        """TC643 for a loop that does not end where it begins, for its variable goes another way."""
        test = self.condition(node.condition, env, context)
        way = "stays what it is" if by == 0 else f"goes {'up' if by > 0 else 'down'} by {abs(by)} in each round"
        message = (
            f"a loop that begins does not end: `{name}` {way}, and it goes on while `{self.text(node.condition.span)}`"
        )
        help = f"write `{name}++` to count up, `{name}--` to count down"
        self.require(negate(test), codes.ENDLESS_LOOP, node.head, message, (), help)

    # what a round consists of ------------------------------------------------------------------------------------------------

    def parts(
        self,
        statements: Sequence[Statement],
        fixed: dict[str, Value],
        tests: tuple[tuple[str, bool], ...],
        later: Later,
        env: Env,
        context: Context,
    ) -> list[Part]:
        """Statements as parts of a round; `env` and `fixed` are then as they are behind it."""
        found: list[Part] = []
        run: list[Statement] = []

        def done(*more: Statement) -> None:
            run.extend(more)
            self.assignments(self.block(more), later, env, context)

        def flush() -> None:
            if run:
                names = {each.name for each in assigned_names(run)}
                made = {name: value for name in names if (value := env.get(name)) is not None}
                found.append(Straight(self.block(tuple(run)), dict(fixed), tests, made))
                self.fix(run, fixed, env)
                run.clear()

        for statement in statements:
            loop = self.inner(statement, later, env, context) if isinstance(statement, Loop) else None
            if loop is not None and isinstance(statement, Loop):
                done(*(each for each in statement.start if each.name.name != loop.variable))
                flush()
                found.append(self.inner_parts(loop, statement, fixed, tests, later, env, context))
                continue
            ways = self.ways(statement, fixed, tests, later, env, context) if isinstance(statement, If) else None
            if ways is not None and isinstance(statement, If):
                test, parts = ways
                done(Assign(Name(test, statement.head), statement.condition, statement.head))
                flush()
                found += parts
                self.hide(assigned_names((statement,)), fixed, env, context)
                continue
            done(statement)
        flush()
        return found

    def inner(self, node: Loop, later: Later, env: Env, context: Context) -> Counted | None:
        """How a loop inside of a nest counts, if it is not written out: where its rounds are not known, or no little work."""
        local = dict(env)
        self.assignments(self.block(node.start), Later(()).after(self.block((), (node.condition,))), local, context)
        around = [name for name in context.indices if name in self.out.rounds]
        found = self.counted(node, local, context, around)
        if found is None or number_of(found.count) is None:
            return found
        return None if self.is_little(node, later, local, context) else found

    @abstractmethod
    def is_little(self, node: Loop, later: Later, env: Env, context: Context) -> bool:
        """Whether the rounds of a loop may be written out: they are few, and little work."""

    def inner_parts(
        self,
        loop: Counted,
        node: Loop,
        fixed: dict[str, Value],
        tests: tuple[tuple[str, bool], ...],
        later: Later,
        env: Env,
        context: Context,
    ) -> Inner:
        """The parts of the rounds of an inner loop, whose variable then is what it is behind it."""
        reached = ends(loop.count, self.out.box)
        if reached is None:
            raise NotInOrder(f"how often the loop over `{loop.variable}` runs has no largest value")
        most = reached[1]
        index = self.out.fresh(loop.variable, (ZERO, most))
        self.out.rounds.add(index)
        changed = assigned_names(node.body)
        self.hide(changed, fixed, env, context)
        local = env | {loop.variable: loop.at(IndexVar(index))}
        own = fixed | {loop.variable: loop.at(IndexVar(index))}
        parts = self.parts(node.body, own, tests, later, local, context.within((index,)))
        for name in {each.name for each in changed} & env.keys():
            env[name] = local[name]
        self.hide(changed, fixed, env, context)
        env[loop.variable] = fixed[loop.variable] = loop.at(loop.count)
        return Inner(loop.variable, index, loop.count, most, tuple(parts))

    def ways(
        self,
        node: If,
        fixed: dict[str, Value],
        tests: tuple[tuple[str, bool], ...],
        later: Later,
        env: Env,
        context: Context,
    ) -> tuple[str, list[Part]] | None:
        """The parts of both branches, if a loop of the nest is in one of them, and a variable for the condition; else `None`."""
        if not any(isinstance(each, Loop) for each in (*node.then, *node.otherwise)):
            return None
        if isinstance(self.condition(node.condition, env, context), Const):
            return None
        test, found = self.out.fresh("test"), list[Part]()
        for statements, wanted in ((node.then, True), (node.otherwise, False)):
            local = dict(env)
            found += self.parts(statements, dict(fixed), (*tests, (test, wanted)), later, local, context)
            for name in {each.name for each in assigned_names(statements)}:
                if local.get(name) is not None:
                    env.setdefault(name, local[name])
        return (test, found) if any(isinstance(each, Inner) for each in found) else None

    def fix(self, run: Sequence[Statement], fixed: dict[str, Value], env: Env) -> None:
        """Remember the variables that sizes decide, and forget those that mean something else now."""
        for name in {each.name for each in assigned_names(run)}:
            found = env.get(name)
            fixed.pop(name, None)
            if found is None or found.expr is None or found.rank or not is_integer(found.kind):
                continue
            if self.is_bound(found.expr):
                fixed[name] = found

    def hide(self, names: Sequence[Name], fixed: dict[str, Value], env: Env, context: Context) -> None:
        """Variables whose values are not known: of an inner loop, or of an `if` around one."""
        for name in {each.name for each in names}:
            fixed.pop(name, None)
            found = env.get(name)
            if found is None:
                continue
            shape = tuple(self.bound(extent, names[0].span) for extent in found.shape)
            if any(map(index_names, shape)):
                raise NotInOrder(f"`{name}` has another shape in every round")
            axes = self.axes(shape)
            tensor = self.out.new_temp(name, storage(found.kind), None, len(shape))
            element = read(tensor, tuple(map(IndexVar, axes)), storage(found.kind))
            env[name] = Value(found.kind, shape, axes, element)

    # where it is done ----------------------------------------------------------------------------------------------------------

    def nest(self, step: str, count: Expr, parts: Sequence[Part]) -> Nest:
        """The places of all parts of the rounds that an index counts."""
        levels = _levels(parts)
        steps = (step, *(self.out.fresh(name) for name in levels))
        extents: list[Expr] = [count, *([ONE] * len(levels))]
        moves = self.located(parts, 1, (), {}, steps, extents) if levels else [(part, ()) for part in straights(parts)]
        for name, extent in zip(steps[1:], extents[1:], strict=True):
            self.out.box[name] = ZERO, extent
            self.out.rounds.add(name)
        kept = tuple((part, tuple(each for each in tests if not self.holds_always(each))) for part, tests in moves)
        return Nest(steps, tuple(extents), kept)

    def located(
        self,
        parts: Sequence[Part],
        level: int,
        tests: tuple[Expr, ...],
        known: Mapping[str, Expr],
        steps: Sequence[str],
        extents: list[Expr],
    ) -> list[tuple[Straight, tuple[Expr, ...]]]:
        """Parts with the conditions that say where each of them is done; `extents` grow to what they need."""
        found: list[tuple[Straight, tuple[Expr, ...]]] = []
        first: Expr = ZERO
        deeper = tuple(Binary("==", IndexVar(each), ZERO, DType.BOOL) for each in steps[level + 1 :])
        for part in parts:
            place = sub(IndexVar(steps[level]), first)
            if isinstance(part, Straight):
                here = Binary("==", IndexVar(steps[level]), first, DType.BOOL)
                found.append((_at(part, known), (*tests, here, *deeper)))
                first = add(first, ONE)
                continue
            own = {**known, part.index: place}
            inside = (*tests, _not_below(place, ZERO), _not_below(sub(substitute(part.count, known), ONE), place))
            if len(part.parts) == 1 and isinstance(part.parts[0], Straight):
                found.append((_at(part.parts[0], own), (*inside, *deeper)))
            elif part.parts:
                found += self.located(part.parts, level + 1, inside, own, steps, extents)
            first = add(first, part.most)
        extents[level] = maximum((extents[level], first))
        return found

    def holds_always(self, test: Expr) -> bool:
        """Whether a place is always at least another one."""
        return isinstance(test, Binary) and test.op == "<=" and is_nonnegative(sub(test.right, test.left), self.out.box)


def carried_over(parts: Sequence[Part]) -> list[str]:
    """The variables of a round that one part of it leaves to another one."""
    every = list(straights(parts))
    making = [(part, name) for part in every for name in part.made]
    tests = [name for part in every for name, _ in part.tests]
    left = [
        name
        for part, name in making
        if any(part is not other and name not in other.fixed and other.block.uses(name, 0).reads for other in every)
    ]
    return list(dict.fromkeys((*tests, *left)))


def counting(parts: Sequence[Part]) -> set[str]:
    """The variables of the loops inside."""
    inner = [part for part in parts if isinstance(part, Inner)]
    return {part.variable for part in inner} | {name for part in inner for name in counting(part.parts)}


def straights(parts: Sequence[Part]) -> Iterator[Straight]:
    """The statements of all loops of a nest."""
    for part in parts:
        if isinstance(part, Straight):
            yield part
        else:
            yield from straights(part.parts)


def at_first(part: Straight) -> Straight:
    """Statements in the first rounds of all loops."""
    names = {name for value in part.fixed.values() if value.expr is not None for name in index_names(value.expr)}
    return _at(part, dict.fromkeys(names, ZERO))


def _levels(parts: Sequence[Part]) -> list[str]:
    """What the loops inside of a round count with, of each depth the first one."""
    inner = [part for part in parts if isinstance(part, Inner)]
    if not inner:
        return []
    deepest = max((_levels(part.parts) for part in inner), key=len)
    return [inner[0].index.partition("'")[0], *deepest]


def _at(part: Straight, known: Mapping[str, Expr]) -> Straight:
    """Statements where the indices of loops are known."""
    fixed = {
        name: value if value.expr is None else replace(value, expr=substitute(value.expr, known))
        for name, value in part.fixed.items()
    }
    return replace(part, fixed=fixed)


def _not_below(high: Expr, low: Expr) -> Expr:
    return fold(Binary("<=", low, high, DType.BOOL))


def _is(node: SacExpression, name: str) -> bool:
    return isinstance(node, Name) and node.name == name


def _names(node: SacExpression) -> set[str]:
    return {each.name for each in sac_walk(node) if isinstance(each, Name)}
