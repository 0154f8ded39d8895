"""Loops: written out round by round, or as statements in order where sizes and scalar arguments say how many rounds there are.

In a loop that counts, every variable that goes from round to round becomes a tensor with the round as a dimension, of which two are
kept in memory. What needs nothing of the rounds before is computed for all of them at once, before the loop.

Worked example: `s = a; for (k = 0; k < n; k++) { s = s * a + k; }` makes the statement
`s(k, i) = (k > 0 ? s(k - 1, i) : a(i)) * a(i) + k where k in 0:n`, in order, and `s` is `n > 0 ? s(n - 1, i) : a(i)` from there on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce

from tc_jupyter.diagnostics import NO_SPAN, codes
from tc_jupyter.diagnostics.work import WORK
from tc_jupyter.syntax.sac_tree import Loop, assigned_names, inner_statements

from .expr import Binary, Const, DType, Expr, IndexVar, Select
from .integers import index_names
from .program import Statement
from .sac_calls import Later
from .sac_emit import Draft, mentioned, negate, zero
from .sac_helpers import read
from .sac_nests import (
    Counted,
    Inner,
    Nest,
    Nests,
    NotInOrder,
    Part,
    Straight,
    at_first,
    carried_over,
    counting,
    straights,
)
from .sac_sizes import ONE, ZERO, fold, is_nonnegative, same, sub
from .sac_sizes import value as number_of
from .sac_values import Kind, Value, Weak, compute, is_integer, kind_text, promote, storage, weight
from .sac_work import HEAVY, MOST_ROUNDS, MOST_STEPS, Context, Env, Trial

WRITTEN_OUT = 16
"""Statements that all rounds of a loop may become, those of the loops inside of it, too.

Measured with the CPU engine: 15 steps of heat in a plane, 75 statements, took 3.6 s to compile and 44 ms, in order 0.5 s and 22 ms;
20 products of matrices 3.1 s, in order 0.5 s. Rounds of scalars become few statements, and 40 rounds of `y = (y + x / y) / 2` in a
comprehension take an eighth of the time if they are written out.
"""
STEPS_WRITTEN_OUT = 300_000
"""Steps of `diagnostics.work` that all rounds of a loop may take: 26 rounds of a sum of 8 rotated matrices, in half a second."""
MOST_TRIES = 4
"""How often the types and dimensions of what goes from round to round are guessed."""


class TooLong(Exception):
    """The rounds of a loop are more than is written out."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A variable that goes from round to round.

    Attributes:
        tensor: has what each round makes of it.
        first, value: the variable before the first round, and before any round.
        outer: the enclosing indices, its first dimensions.
    """

    name: str
    tensor: str
    first: Value
    value: Value
    outer: tuple[str, ...]

    def at(self, rounds: Sequence[Expr]) -> Expr:
        """Its element, at the axes of the value before, behind a round."""
        indices = (*map(IndexVar, self.outer), *rounds, *map(IndexVar, self.first.axes))
        return read(self.tensor, indices, storage(self.first.kind))


class Loops(Nests):
    """Loops of statements."""

    def loop(self, node: Loop, later: Later, env: Env, context: Context) -> None:
        """A loop: written out where its rounds are few and little; in order where that is possible; else written out."""
        again = later.after(self.block((*node.body, *node.step), (node.condition,))).after(
            self.block((), (node.condition,))
        )
        self.assignments(self.block(node.start), again, env, context)
        counted = self.counted(node, env, context)
        rounds = None if counted is None else number_of(counted.count)
        if rounds == 0:
            return None
        if self.in_turns and rounds is not None and self.rounds + rounds > MOST_ROUNDS:
            raise NotInOrder(f"a loop with {rounds} rounds stands in it")
        if counted is None or self.in_turns or self.trial is not None:
            return self.written_out(node, later, env, context)
        if rounds is not None and self.tried(node, later, env, context):
            return None
        before = self.saved()
        try:
            return self.in_order(node, counted, later, env, context)
        except NotInOrder as problem:
            self.restore(before)
            return self.written_out(node, later, env, context, str(problem))

    def tried(self, node: Loop, later: Later, env: Env, context: Context) -> bool:
        """Write a loop out, and say whether its rounds are few and little; else everything is as before."""
        before, begin = self.saved(), dict(env)
        made, steps = self.out.made, WORK.left
        self.trial = Trial(
            len(self.out.drafts) + WRITTEN_OUT,
            made + min(MOST_STEPS // 4, (MOST_STEPS - made) // 2),
            steps - min(STEPS_WRITTEN_OUT, steps // 2),
        )
        try:
            self.written_out(node, later, env, context)
        except TooLong:
            self.restore(before)
            env.clear()
            env |= begin
            return False
        finally:
            self.trial = None
        return True

    def is_little(self, node: Loop, later: Later, env: Env, context: Context) -> bool:
        """See `Nests`."""
        before = self.saved()
        try:
            return self.tried(node, later, dict(env), context)
        except NotInOrder:
            return False
        finally:
            self.restore(before)

    def written_out(self, node: Loop, later: Later, env: Env, context: Context, reason: str = "") -> None:
        """The rounds one after the other.

        Args:
            reason: why they are not statements in order, if that was tried.

        Raises:
            TooLong: this is tried, and they are more than is written out.
        """
        inside = self.block((*node.body, *node.step), (node.condition,))
        known = node.word == "do"
        while known or self.goes_on(node, env, context):
            known = False
            self.rounds += 1
            if self.trial is not None and self.is_beyond(self.trial, node, later, env):
                raise TooLong
            if self.rounds > MOST_ROUNDS:
                help = "write a comprehension, or `with { (lower <= iv < upper) : e; } : fold(+, 0)`"
                self.refuse(
                    codes.DEVICE_LIMIT,
                    node.head,
                    f"the loops of this function run more than {MOST_ROUNDS} times",
                    help=f"{reason}; {help}" if reason else help,
                )
            self.assignments(inside, later.after(inside), env, context)

    def is_beyond(self, trial: Trial, node: Loop, later: Later, env: Env) -> bool:
        """Whether what was written out is more than it may be; numbers that sizes decide may be shapes behind the loop."""
        if self.rounds > MOST_ROUNDS or self.out.made > trial.made or WORK.left < trial.left:
            return True
        if len(self.out.drafts) <= trial.drafts:
            return False
        names = {each.name for each in assigned_names(node.body)}
        return not any(later.uses(name) and self.is_decided(env.get(name)) for name in names)

    def is_decided(self, found: Value | None) -> bool:
        """Whether sizes and scalar arguments decide a number, or all elements of a small array."""
        if found is None or not is_integer(found.kind):
            return False
        items = (found.expr,) if found.rank == 0 and found.expr is not None else found.items or ()
        return len(items) > 0 and all(map(self.is_bound, items))

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

    # in order ------------------------------------------------------------------------------------------------------------------

    def in_order(self, node: Loop, loop: Counted, later: Later, env: Env, context: Context) -> None:
        """The rounds as statements in order.

        Raises:
            NotInOrder: a variable has another shape or type in every round, or the rounds need their numbers.
        """
        changed = dict.fromkeys(each.name for each in assigned_names(node.body) if each.name != loop.variable)
        inside = self.block((*node.body, *node.step), (node.condition,))
        step = self.out.fresh(loop.variable, (ZERO, loop.count))
        self.out.rounds.add(step)
        firsts = {name: found for name in changed if (found := env.get(name)) is not None}
        parts, own = self.parts_of(node, loop, step, firsts, later.after(inside), env, context)
        inner = counting(parts)
        lost = next((name for name in changed if (name not in env or name in inner) and later.needs(name)), None)
        if lost is not None:
            raise NotInOrder(f"`{lost}` has no value where there is no round")
        firsts = {name: found for name, found in (firsts | own).items() if name not in inner}
        kinds: dict[str, Kind] = {name: found.kind for name, found in firsts.items()}
        outer = self.outer(firsts.values(), (), context)
        for _ in range(MOST_TRIES):
            before, begin = self.saved(), len(self.out.drafts)
            nest = self.nest(step, loop.count, parts)
            carried = [self.carried(name, found, kinds[name], outer, nest, context) for name, found in firsts.items()]
            within = context.within(nest.steps)
            made = self.one_round(nest.moves, carried, later.after(inside), env, within)
            wanted = {name: _common(name, kinds[name], found.kind) for name, found in made.items()}
            around = self.outer((*firsts.values(), *made.values()), outer, context)
            if wanted == kinds and around == outer:
                break
            self.restore(before)
            kinds, outer = wanted, around
        else:
            raise NotInOrder("its variables have other types in every round")
        self.compare_first(parts, carried, later.after(inside), env, within)
        for each in carried:
            self.write(each.tensor, made[each.name], within, (*outer, *nest.steps), node.body[0].span, each.name)
        self.mark_turns(begin, {each.tensor for each in carried}, nest.steps)
        self.rounds += 1
        for name in changed:
            if name not in firsts and name in env:
                env[name] = None
        for each in carried:
            if each.name not in own:
                env[each.name] = self.kept(each.name, self.last(each, nest), later, context)
        env[loop.variable] = loop.at(loop.count)

    def parts_of(
        self,
        node: Loop,
        loop: Counted,
        step: str,
        firsts: Mapping[str, Value],
        later: Later,
        env: Env,
        context: Context,
    ) -> tuple[Sequence[Part], dict[str, Value]]:
        """The parts of a round, and the variables that only go from part to part, with zeros in place of values before."""
        fixed = {loop.variable: loop.at(IndexVar(step))}
        if not any(isinstance(each, Loop) for each in inner_statements(node.body)):
            return [Straight(self.block((*node.body, *node.step), (node.condition,)), fixed)], {}
        before, said = self.saved(), len(self.diagnostics)
        local = env | fixed
        self.in_turns = True
        self.hide([each for each in assigned_names(node.body) if each.name in firsts], {}, local, context)
        parts = self.parts(node.body, dict(fixed), (), later, local, context.within((step,)))
        self.refuse_wrong(said)
        made = {name: value for part in reversed([*straights(parts)]) for name, value in part.made.items()}
        found = {name: made[name] for name in carried_over(parts) if name not in firsts}
        self.restore(before)
        if not any(isinstance(part, Inner) for part in parts):
            return [Straight(self.block((*node.body, *node.step), (node.condition,)), fixed)], {}
        return parts, {name: self.zeros(name, value) for name, value in sorted(found.items())}

    def zeros(self, name: str, like: Value) -> Value:
        """Zeros in the shape of a variable that has no value before the first round."""
        if any(map(index_names, like.shape)):
            raise NotInOrder(f"`{name}` has another shape in every round")
        content = zero(compute(like.kind))
        return Value(like.kind, like.shape, self.axes(like.shape), content)

    def outer(self, values: Iterable[Value], known: Sequence[str], context: Context) -> tuple[str, ...]:
        """The enclosing indices that what goes from round to round depends on."""
        names = {name for found in values for name in self.needed(found, context)} | set(known)
        return tuple(name for name in context.indices if name in names)

    def carried(
        self, name: str, found: Value, kind: Kind, outer: tuple[str, ...], nest: Nest, context: Context
    ) -> Carried:
        """A variable as a tensor with the rounds behind the enclosing indices."""
        first = self.converted(found, kind)
        if weight(first.expr) >= HEAVY if first.expr is not None else first.items is None:
            first = self.stored(first, context)
        axes = self.axes(first.shape)
        element = self.element(first, tuple(map(IndexVar, axes)), context)
        shape = tuple(self.bound(extent, NO_SPAN) for extent in first.shape)
        rounds = (self.out.box[each] for each in nest.steps)
        box = (*map(self._interval, outer), *rounds, *((ZERO, extent) for extent in shape))
        tensor = self.out.new_temp(name, storage(kind), box)
        behind = Carried(name, tensor, Value(kind, shape, axes, element), first, outer)
        value = element
        for level, step in enumerate(nest.steps):  # the round before is the last one of the round before around it
            test = Binary(">", IndexVar(step), ZERO, DType.BOOL)
            around = (*map(IndexVar, nest.steps[:level]), sub(IndexVar(step), ONE))
            ends_inside = tuple(sub(extent, ONE) for extent in nest.extents[level + 1 :])
            value = Select(test, behind.at((*around, *ends_inside)), value, element.dtype)
        return replace(behind, value=Value(kind, shape, axes, value))

    def one_round(
        self,
        moves: Sequence[tuple[Straight, tuple[Expr, ...]]],
        carried: Sequence[Carried],
        later: Later,
        env: Env,
        context: Context,
    ) -> dict[str, Value]:
        """The values of the variables behind a round, whose values before it are given."""
        start: Env = env | {each.name: each.value for each in carried}
        said, ends_of_moves = len(self.diagnostics), list[tuple[Expr | None, Env]]()
        self.in_turns = True
        try:
            for part, places in moves:
                local: Env = {**start, **part.fixed}
                test = self.condition_of(part, places, start)
                with nullcontext() if test is None else self.where(test):
                    self.assignments(part.block, later, local, context if test is None else context.where(test))
                ends_of_moves.append((test, local))
        finally:
            self.in_turns = False
        self.refuse_wrong(said)
        made: dict[str, Value] = {}
        for each in carried:
            found = each.value
            for test, local in reversed(ends_of_moves):
                value = local.get(each.name) or each.value  # nobody reads it where a choice left none
                self.compare_shapes(each, value)
                if value is not each.value:
                    found = value if test is None else self.either(test, value, found, NO_SPAN, context)
            made[each.name] = found
        return made

    def condition_of(self, part: Straight, places: Sequence[Expr], env: Env) -> Expr | None:
        """When a part of a round is done; `None`: always."""
        tests = list(places)
        for name, wanted in part.tests:
            value = env[name]
            assert value is not None
            assert value.expr is not None
            tests.append(value.expr if wanted else negate(value.expr))
        return reduce(lambda a, b: fold(Binary("&&", a, b, DType.BOOL)), tests) if tests else None

    def refuse_wrong(self, said: int) -> None:
        """Raise `NotInOrder` if a mistake was told since so many messages."""
        wrong = next((each for each in self.diagnostics[said:] if each.is_error), None)
        if wrong is not None:
            raise NotInOrder(f"its rounds cannot be done in order: {wrong.message}")

    def compare_shapes(self, each: Carried, found: Value) -> None:
        """Raise `NotInOrder` if a variable has another shape behind a round."""
        shape = each.value.shape
        if found.rank != len(shape) or not all(map(same, found.shape, shape)):
            shapes = f"{self.shape_text(shape)} before a round and {self.shape_text(found.shape)} behind it"
            raise NotInOrder(f"`{each.name}` has the shape {shapes}")

    def compare_first(
        self, parts: Sequence[Part], carried: Sequence[Carried], later: Later, env: Env, context: Context
    ) -> None:
        """Refuse literals that begin a variable and mean something else in the first round, as 3 in `s = s / 2 + a[i]`."""
        kinds = {each.name: each.value.kind for each in carried}
        changed = [each.name for each in carried if (found := env.get(each.name)) and found.kind is not each.value.kind]
        if not changed and len(parts) == 1 and isinstance(parts[0], Straight):
            return
        trials: list[object] = []
        for typed in (False, True):
            before, begin = self.saved(), len(self.out.drafts)
            local: Env = dict(env)
            for part in (None, *straights(parts)):
                if part is not None:
                    local |= at_first(part).fixed
                    self.assignments(part.block, later, local, context)
                for name, kind in kinds.items() if typed else ():
                    if (found := local.get(name)) is not None:
                        local[name] = self.converted(found, kind)
            values = [self.converted(found, kind) for name, kind in kinds.items() if (found := local.get(name))]
            trials.append((values, self.out.drafts[begin:]))
            self.restore(before)
        if trials[0] != trials[1]:
            name = next(iter((*changed, *kinds)))
            raise NotInOrder(f"`{name}` begins with a literal, which has another type in the first round than later")

    def mark_turns(self, first: int, states: set[str], steps: tuple[str, ...]) -> None:
        """Say of the statements from the first on that they are done in turns, round by round, where what goes on leads to them."""
        moving, members = set(states), list[Draft]()
        others: list[Draft | Statement] = []
        names, number = ",".join(each.partition("'")[0] for each in steps), steps[0].partition("'")[2]
        for draft in self.out.drafts[first:]:
            if draft.target not in states and not mentioned(draft) & moving:
                others.append(draft)
                continue
            if not isinstance(draft, Draft) or draft.block or {*steps} - {name for name, _ in draft.outputs}:
                raise NotInOrder("what its rounds change goes to a function of another cell")
            moving.add(draft.target)
            members.append(replace(draft, order=tuple((step, 1) for step in steps), block=f"{names}'{number}"))
        self.out.drafts[first:] = [*others, *members]

    def last(self, each: Carried, nest: Nest) -> Value:
        """A variable behind the loop."""
        first = each.first.expr
        assert first is not None
        final = each.at(tuple(sub(extent, ONE) for extent in nest.extents))
        for extent in nest.extents:
            if not is_nonnegative(sub(extent, ONE)):
                test = fold(Binary(">", extent, ZERO, DType.BOOL))
                final = fold(Select(test, final, first, first.dtype))
        return replace(each.first, expr=final)


def _common(name: str, before: Kind, behind: Kind) -> Kind:
    """The type of a variable in all rounds: a literal that begins it takes that of the rounds."""
    if before is behind:
        return before
    if not isinstance(before, Weak) or promote(before, behind) is not behind:
        raise NotInOrder(f"`{name}` is `{kind_text(before)}` before a round and `{kind_text(behind)}` behind it")
    return behind
