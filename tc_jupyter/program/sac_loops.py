"""Loops: written out round by round, or as statements in order where sizes and scalar arguments say how many rounds there are.

In a loop that counts, every variable that goes from round to round becomes a tensor with the round as a dimension, of which two are
kept in memory. What needs nothing of the rounds before is computed for all of them at once, before the loop.

Worked example: `s = a; for (k = 0; k < n; k++) { s = s * a + k; }` makes the statement
`s(k, i) = (k > 0 ? s(k - 1, i) : a(i)) * a(i) + k where k in 0:n`, in order, and `s` is `n > 0 ? s(n - 1, i) : a(i)` from there on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import NO_SPAN, codes
from tc_jupyter.syntax.sac_tree import Loop, SacExpression, assigned_names, sac_walk
from tc_jupyter.syntax.tree import Binary as BinaryNode
from tc_jupyter.syntax.tree import Name

from .expr import Binary, Const, DType, Expr, IndexVar, Select, int64
from .integers import index_names
from .program import Statement
from .sac_calls import Block, Calls, Later
from .sac_emit import Draft, mentioned, negate
from .sac_helpers import read
from .sac_sizes import ONE, ZERO, add, floordiv, fold, is_nonnegative, maximum, mul, same, sub, substitute
from .sac_sizes import value as number_of
from .sac_values import Kind, Value, Weak, convert, is_integer, kind_text, promote, scalar, storage, to_index, weight
from .sac_work import HEAVY, MOST_ROUNDS, Context, Env

MOST_TRIES = 4
"""How often the types and dimensions of what goes from round to round are guessed."""
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
class Carried:
    """A variable that goes from round to round.

    Attributes:
        tensor: has what each round makes of it.
        first, value: the variable before the first round, and before any round.
        made: its element of the round before that of the index `step`.
    """

    name: str
    tensor: str
    first: Value
    value: Value
    made: Expr


class Loops(Calls):
    """Loops of statements."""

    def loop(self, node: Loop, later: Later, env: Env, context: Context) -> None:
        """A loop: in order where that is possible and its rounds are not known, or many; else one round after the other."""
        inside = self.block((*node.body, *node.step), (node.condition,))
        again = later.after(inside).after(self.block((), (node.condition,)))
        self.assignments(self.block(node.start), again, env, context)
        reason = ""
        counted = self.counted(node, env, context)
        rounds = None if counted is None else number_of(counted.count)
        if rounds == 0:
            return None
        if self.in_turns and rounds is not None and self.rounds + rounds > MOST_ROUNDS:
            raise NotInOrder(f"a loop with {rounds} rounds stands in it")
        if counted is not None and not self.in_turns and (rounds is None or self.rounds + rounds > MOST_ROUNDS):
            before = self.saved()
            try:
                return self.in_order(counted, inside, later, env, context)
            except NotInOrder as problem:
                reason = str(problem)
                self.restore(before)
        known = node.word == "do"
        while known or self.goes_on(node, env, context):
            known = False
            self.rounds += 1
            if self.rounds > MOST_ROUNDS:
                help = "write a comprehension, or `with { (lower <= iv < upper) : e; } : fold(+, 0)`"
                self.refuse(
                    codes.DEVICE_LIMIT,
                    node.head,
                    f"the loops of this function run more than {MOST_ROUNDS} times",
                    help=f"{reason}; {help}" if reason else help,
                )
            self.assignments(inside, later.after(inside), env, context)
        return None

    def goes_on(self, node: Loop, env: Env, context: Context) -> bool:
        """Whether another round follows."""
        test = self.condition(node.condition, env, context)
        if not isinstance(test, Const):
            self.demand(test)
            if self.in_turns:
                message = f"how often the `{node.word}` inside of them runs differs from round to round"
                raise NotInOrder(f"its rounds cannot be done in order: {message}")
            self.refuse(
                codes.UNKNOWN_ROUNDS,
                node.head,
                f"how often this `{node.word}` runs depends on computed values",
                help="let constants, arguments and shapes decide it: count to the most rounds, and choose inside with `if`",
            )
        return bool(test.value)

    def counted(self, node: Loop, env: Env, context: Context) -> Counted | None:
        """How a loop counts; `None` where it does something else, or where more than sizes and scalar arguments say how far."""
        if node.word != "for" or len(node.step) != 1 or not isinstance(node.condition, BinaryNode):
            return None
        step, condition = node.step[0], node.condition
        name, changed = step.name.name, {each.name for each in assigned_names(node.body)}
        ends = [
            (condition.op, condition.left, condition.right),
            (_MIRRORED.get(condition.op), condition.right, condition.left),
        ]
        end = next(((op, far) for op, own, far in ends if op in _MIRRORED and _is(own, name)), None)
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
        if index_names(some) or index_names(first) or not self.is_bound(some) or not self.is_bound(first):
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

    # in order ------------------------------------------------------------------------------------------------------------------

    def in_order(self, loop: Counted, inside: Block, later: Later, env: Env, context: Context) -> None:
        """The rounds as statements in order.

        Raises:
            NotInOrder: a variable has another shape or type in every round, or the rounds need their numbers.
        """
        changed = dict.fromkeys(each.name for each in assigned_names(inside.statements) if each.name != loop.variable)
        names = [name for name in changed if env.get(name) is not None]
        lost = next((name for name in changed if name not in env and later.uses(name)), None)
        if lost is not None:
            raise NotInOrder(f"`{lost}` has no value where there is no round")
        firsts = {name: found for name in names if (found := env[name]) is not None}
        kinds: dict[str, Kind] = {name: found.kind for name, found in firsts.items()}
        outer = self.outer(firsts.values(), (), context)
        for _ in range(MOST_TRIES):
            before, begin = self.saved(), len(self.out.drafts)
            step = self.out.fresh(loop.variable, (ZERO, loop.count))
            self.out.rounds.add(step)
            carried = [self.carried(name, found, kinds[name], outer, step, context) for name, found in firsts.items()]
            made = self.one_round(loop, IndexVar(step), carried, inside, later, env, context.within((step,)))
            wanted = {name: _common(name, kinds[name], found.kind) for name, found in made.items()}
            around = self.outer((*firsts.values(), *made.values()), outer, context)
            if wanted == kinds and around == outer:
                break
            self.restore(before)
            kinds, outer = wanted, around
        else:
            raise NotInOrder("its variables have other types in every round")
        self.compare_first(loop, carried, inside, later, env, context)
        for each in carried:
            within = context.within((step,))
            self.write(each.tensor, made[each.name], within, (*outer, step), inside.statements[0].span, each.name)
        self.mark_turns(begin, {each.tensor for each in carried}, step)
        self.rounds += 1
        for name in changed:
            if name not in names and name in env:
                env[name] = None
        for each in carried:
            env[each.name] = self.kept(each.name, self.last(each, step, loop.count), later, context)
        env[loop.variable] = loop.at(loop.count)

    def outer(self, values: Iterable[Value], known: Sequence[str], context: Context) -> tuple[str, ...]:
        """The enclosing indices that what goes from round to round depends on."""
        names = {name for found in values for name in self.needed(found, context)} | set(known)
        return tuple(name for name in context.indices if name in names)

    def carried(
        self, name: str, found: Value, kind: Kind, outer: tuple[str, ...], step: str, context: Context
    ) -> Carried:
        """A variable as a tensor with the round behind the enclosing indices."""
        first = self.converted(found, kind)
        if weight(first.expr) >= HEAVY if first.expr is not None else first.items is None:
            first = self.stored(first, context)
        axes = self.axes(first.shape)
        element = self.element(first, tuple(map(IndexVar, axes)), context)
        shape = tuple(self.bound(extent, NO_SPAN) for extent in first.shape)
        box = (*map(self._interval, outer), self.out.box[step], *((ZERO, extent) for extent in shape))
        tensor = self.out.new_temp(name, storage(kind), box)
        before = (*map(IndexVar, outer), sub(IndexVar(step), ONE), *map(IndexVar, axes))
        made = read(tensor, before, storage(kind))
        test = Binary(">", IndexVar(step), ZERO, DType.BOOL)
        value = Value(kind, shape, axes, Select(test, made, element, element.dtype))
        return Carried(name, tensor, Value(kind, shape, axes, element), value, made)

    def one_round(
        self,
        loop: Counted,
        place: Expr,
        carried: Sequence[Carried],
        inside: Block,
        later: Later,
        env: Env,
        context: Context,
    ) -> dict[str, Value]:
        """The values of the variables behind a round, whose values before it are given."""
        local = env | {each.name: each.value for each in carried} | {loop.variable: loop.at(place)}
        said = len(self.diagnostics)
        self.in_turns = True
        try:
            self.assignments(inside, later.after(inside), local, context)
        finally:
            self.in_turns = False
        wrong = next((each for each in self.diagnostics[said:] if each.is_error), None)
        if wrong is not None:
            raise NotInOrder(f"its rounds cannot be done in order: {wrong.message}")
        made: dict[str, Value] = {}
        for each in carried:
            found = local[each.name] or each.value  # nobody reads it where a choice left none
            shape = each.value.shape
            if found.rank != len(shape) or not all(map(same, found.shape, shape)):
                shapes = f"{self.shape_text(shape)} before a round and {self.shape_text(found.shape)} behind it"
                raise NotInOrder(f"`{each.name}` has the shape {shapes}")
            made[each.name] = found
        return made

    def compare_first(
        self, loop: Counted, carried: Sequence[Carried], inside: Block, later: Later, env: Env, context: Context
    ) -> None:
        """Refuse literals that begin a variable and mean something else in the first round, as 3 in `s = s / 2 + a[i]`."""
        changed = [each.name for each in carried if (found := env[each.name]) and found.kind is not each.value.kind]
        if not changed:
            return
        trials: list[object] = []
        for given in (env, env | {each.name: each.first for each in carried}):
            before, begin = self.saved(), len(self.out.drafts)
            starts = [replace(each, value=start) for each in carried if (start := given[each.name]) is not None]
            made = self.one_round(loop, ZERO, starts, inside, later, env, context)
            values = [self.converted(made[each.name], each.value.kind) for each in carried]
            trials.append((values, self.out.drafts[begin:]))
            self.restore(before)
        if trials[0] != trials[1]:
            raise NotInOrder(
                f"`{changed[0]}` begins with a literal, which has another type in the first round than later"
            )

    def mark_turns(self, first: int, states: set[str], step: str) -> None:
        """Say of the statements from the first on that they are done in turns, round by round, where what goes on leads to them."""
        moving, members = set(states), list[Draft]()
        others: list[Draft | Statement] = []
        for draft in self.out.drafts[first:]:
            if draft.target not in states and not mentioned(draft) & moving:
                others.append(draft)
                continue
            if not isinstance(draft, Draft) or draft.block or step not in {name for name, _ in draft.outputs}:
                raise NotInOrder("what its rounds change goes to a function of another cell")
            moving.add(draft.target)
            members.append(replace(draft, order=((step, 1),), block=step))
        self.out.drafts[first:] = [*others, *members]

    def last(self, each: Carried, step: str, count: Expr) -> Value:
        """A variable behind the loop."""
        first = each.first.expr
        assert first is not None
        final = substitute(each.made, {step: count})
        if not is_nonnegative(sub(count, ONE)):
            test = fold(Binary(">", count, ZERO, DType.BOOL))
            final = fold(Select(test, final, first, first.dtype))
        return replace(each.first, expr=final)


def _is(node: SacExpression, name: str) -> bool:
    return isinstance(node, Name) and node.name == name


def _names(node: SacExpression) -> set[str]:
    return {each.name for each in sac_walk(node) if isinstance(each, Name)}


def _common(name: str, before: Kind, behind: Kind) -> Kind:
    """The type of a variable in all rounds: a literal that begins it takes that of the rounds."""
    if before is behind:
        return before
    if not isinstance(before, Weak) or promote(before, behind) is not behind:
        raise NotInOrder(f"`{name}` is `{kind_text(before)}` before a round and `{kind_text(behind)}` behind it")
    return behind
