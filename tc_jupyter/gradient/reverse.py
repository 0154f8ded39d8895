"""`f.vjp`: from the derivatives of the results to those of the parameters, by the statements in reverse order.

Worked example: of `Y(i) = sin(X(i))` it is `dX(i) = dY(i) * cos(X(i))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from tc_jupyter.program import (
    Binary,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Unary,
    int64,
    rewrite,
    variables,
    walk,
)
from tc_jupyter.program.integers import all_of
from tc_jupyter.ranges import nonnegative, to_expr

from . import borders
from .arithmetic import cast, compared, either, number, plus, shifted, times
from .draft import Derived, Draft, at_elements
from .extremes import Found, Ties, at_left, factor_of, found, product_of
from .fewer_indices import with_fewer_indices
from .invariance import active_tensors
from .partials import MOST_TERMS, Part, Underivable, depends, parts
from .places import by_number, by_place, decided, places_of
from .residues import Residue, Stride, residues, stride_of
from .sharing import shared
from .steps import Array, Point, Step, Steps, circles, refuse, root, version
from .transpose import Term, transposed, without_idle

SHORT = 8
"""Values of an index over which a sum costs no more than a scatter."""


@dataclass
class _Pending:
    """What is known of a derivative: arrays that are added as they are, and terms.

    Attributes:
        wide: by the kinds of their borders, what goes to elements beyond the ends.
    """

    bases: list[str] = field(default_factory=list[str])
    terms: list[Term] = field(default_factory=list[Term])
    wide: dict[tuple[str, ...], list[tuple[Step, borders.Wide]]] = field(
        default_factory=dict[tuple[str, ...], list[tuple[Step, borders.Wide]]]
    )


@dataclass
class _Plan:
    """What a statement gives to what it reads.

    Attributes:
        where: the point with the extreme value, which alone gets something.
        before: gives the content before the statement its derivative.
    """

    parts: list[Part]
    before: Callable[[], None]
    where: Found | None = None


def vjp(about: Steps, name: str, wrt: Sequence[str], saved: Sequence[str] = (), ties: Ties = "first") -> Derived:
    """The def of the derivatives by some parameters.

    Args:
        wrt: the parameters, each a float.
        saved: results and temporaries whose last version is a parameter, not computed again.
        ties: which of the points that attain an extreme value get its derivative.

    Raises:
        CompileError: TC250, a function without a derivative, or an order that cannot be turned around.
    """
    active = active_tensors(about, wrt)
    return _Reverse(shared(with_fewer_indices(about, active), active), wrt, saved, ties).run(name)


class _Reverse:
    def __init__(self, about: Steps, wrt: Sequence[str], saved: Sequence[str], ties: Ties) -> None:
        self.about, self.wrt, self.saved = about, tuple(wrt), tuple(saved)
        self.ties: Ties = ties
        self.draft = Draft(about, frozenset(saved))
        self.active = active_tensors(about, wrt)
        self.pending: dict[str, _Pending] = {}
        self.whole: dict[str, str] = {}  # by version: its derivative, when it is complete
        self.inner: dict[
            str, list[tuple[Step, Part]]
        ] = {}  # what statements in order give to what they themselves made

    def run(self, name: str) -> Derived:
        draft, program = self.draft, self.about.program
        own = draft.name(name)
        cotangents = tuple(
            self.cotangent(result) for result in program.results if program.tensor(result).dtype.is_float
        )
        for circle in reversed(circles(self.about.steps)):
            self.circle(circle)
        results = tuple(map(self.result, self.wrt))
        steps = tuple(draft.steps)
        forward = draft.needed(steps)
        return Derived(
            own, self.about, forward, steps, cotangents, results, draft.arrays, self.saved, {}, draft.spelling
        )

    def cotangent(self, result: str) -> str:
        """The parameter for a result, which has its box."""
        name, shift = self.about.results[result]
        array = self.about.arrays[name]
        box = tuple((low - far, high - far) for (low, high), far in zip(array.box, shift, strict=True))
        own = self.draft.array(f"d{result}", array.dtype, box, array.pairs)
        if name in self.active and all(far == 0 for far in shift):
            self.of(name).bases.append(own)
        elif name in self.active:
            points, left = self.draft.indices_of(array.box)
            self.of(name).terms.append(Term(points, left, (), self.element(own, shifted(left, shift, "-"))))
        return own

    def of(self, name: str) -> _Pending:
        """What is known of the derivative of a tensor."""
        return self.pending.setdefault(name, _Pending())

    def element(self, name: str, at: Sequence[Expr]) -> Expr:
        """An element of a derivative, in the type in which one computes."""
        dtype = self.draft.arrays[name].dtype
        return cast(Read(name, tuple(at), dtype), dtype.compute)

    # one statement, or those of a block

    def circle(self, circle: Sequence[Step]) -> None:
        """Give what statements read its share of the derivatives of what they wrote.

        In order, a derivative is complete when all are that come before it the other way round.
        """
        steps = [step for step in circle if root(step.target) in self.active]
        names = dict.fromkeys(root(step.target) for step in steps)
        if not self.pending.keys() & names:
            return
        given = {name: self.written(name) for name in names if name in self.pending}
        turned = circle[0].block or any(step.order and step.reads_itself for step in steps)
        self.inner = {step.target: [] for step in steps} if turned else {}
        for step in steps:
            name = root(step.target)
            array = self.about.arrays[name]
            self.whole[step.target] = (
                self.draft.array(f"d{name}", array.dtype.compute, array.box) if turned else given[name]
            )
        plans = [self.plan(step) for step in steps]
        for step, plan in zip(steps, plans, strict=True):
            for part in plan.parts:
                if part.read.tensor in self.inner:
                    self.inner[part.read.tensor].append((step, part))
        left = self.turn(steps, plans, given) if turned else plans
        for plan in left:
            plan.before()
        for step, plan in zip(steps, plans, strict=True):
            for part in plan.parts:
                if part.read.tensor not in self.inner:
                    for own in decided(step, part) if plan.where is None else [(step, part)]:
                        self.share(*own, plan.where)
                elif circle[0].block:
                    self.share_outside(step, part, next(each for each in steps if each.target == part.read.tensor))

    def plan(self, step: Step) -> _Plan:
        """What a statement gives to what it reads, and what the content before it gets."""
        whole = self.whole[step.target]
        bar = self.element(whole, step.left)
        try:
            match step.operator:
                case "=" | "+":
                    return _Plan(self.parts(step, bar), lambda: self.before(step, whole))
                case "min" | "max":
                    return self.extreme(step, whole, bar)
                case "*":
                    return self.product(step, whole, bar)
                case _:
                    raise AssertionError(step.operator)
        except Underivable as problem:
            raise refuse(self.about.program, f"`{problem}` has no derivative in the language", step.span) from None

    def written(self, name: str) -> str:
        """The array of the derivative of a tensor, which is complete now: one that is there as it stands, or the sum."""
        pending = self.at_places(name, self.folded(self.about.arrays[name], self.pending.pop(name)))
        if len(pending.bases) == 1 and not pending.terms:
            return pending.bases[0]
        return self.summed(name, pending)

    def summed(self, name: str, pending: _Pending) -> str:
        """A new array with what is known of the derivative of a tensor."""
        array = self.about.arrays[name]
        own = self.draft.array(f"d{name}", array.dtype.compute, array.box)
        self.emit(own, pending, declared=False)
        return own

    def is_wide(
        self,
        step: Step,
        part: Part,
        array: Array,
        pending: _Pending,
        term: Term,
        plain: Sequence[int] = (),
        where: Found | None = None,
    ) -> bool:
        """Whether a longer array can have what a read beyond the ends gives, with less work than its term; that is noted then."""
        wide = borders.widened(step, part, array, self.about.size)
        if wide is None:
            return False
        own, whole = borders.from_zero(wide.part, array, wide.box)
        found = transposed(step, own, whole, self.about.size, self.draft.index, plain)
        in_steps = not plain and where is None and stride_of(step, own, whole, self.about.size) is not None
        shorter = not term.is_gather or len(found.reduced) < len(term.reduced)
        if is_one_point(where, step, found) or not shorter or not (in_steps or found.is_gather):
            return False
        pending.wide.setdefault(wide.kinds, []).append((step, wide))
        return True

    def folded(self, array: Array, pending: _Pending, plain: Sequence[int] = ()) -> _Pending:
        """The same with what goes beyond the ends as sums in arrays of their own, and from there to the elements."""
        terms = [*pending.terms]
        for kinds, members in pending.wide.items():
            box = borders.around([each.box for _, each in members])
            parts = [(step, *borders.from_zero(each.part, array, box)) for step, each in members]
            own = self.draft.array(f"d{array.name}_wide", array.dtype.compute, parts[0][2].box)
            self.emit(own, _Pending([], [self.term(*each, plain) for each in parts]), declared=False)
            _, left = self.draft.indices_of(box)
            names = [as_index(at).name for at in left]
            terms += borders.folded(Read(own, left, array.dtype.compute), kinds, box, array, names)
        return _Pending(pending.bases, terms)

    def at_places(self, name: str, pending: _Pending) -> _Pending:
        """The same with what goes to fixed places of short dimensions as values for each element; sums are arrays of their own."""
        array, others = self.about.arrays[name], list[Term]()
        groups: dict[tuple[int, ...], dict[tuple[int, ...], list[Term]]] = {}
        for term in pending.terms:
            found = places_of(term, array)
            if found is None:
                others.append(term)
            else:
                groups.setdefault(tuple(found), {}).setdefault(tuple(found.values()), []).append(term)
        for dimensions, places in groups.items():
            points, left = self.draft.indices_of(array.box)
            values = {
                place: self.at_place(array, left, dict(zip(dimensions, place, strict=True)), terms)
                for place, terms in places.items()
            }
            for turn in range(max(map(len, values.values()))):
                each = {place: some[turn] for place, some in values.items() if turn < len(some)}
                others.append(Term(points, left, (), by_place(left, array.box, dimensions, each)))
        return _Pending(pending.bases, others)

    def at_place(
        self, array: Array, left: tuple[Expr, ...], place: Mapping[int, int], terms: Sequence[Term]
    ) -> list[Expr]:
        """What the elements of one place get, in sums of some terms."""
        dimensions = [dimension for dimension in range(len(left)) if dimension not in place]
        terms = [replace(term, left=tuple(term.left[each] for each in dimensions)) for term in terms]
        sums = [term for term in terms if term.reduced]
        whole: list[str | Term] = [term for term in terms if not term.reduced]
        if sums:
            box = tuple(array.box[each] for each in dimensions)
            wish = "_".join([f"d{array.name}", *map(str, place.values())])
            own = self.draft.array(wish, array.dtype.compute, box)
            self.emit(own, _Pending([], sums), declared=False)
            whole.append(own)
        at = tuple(left[each] for each in dimensions)
        return [self.combined(some, at) for some in in_parts(whole)]

    def parts(self, step: Step, bar: Expr, first: tuple[Expr, ...] = ()) -> list[Part]:
        """What each read of the value gets."""
        return [self.whole_part(step, part, first) for part in parts(step.value, bar, self.is_active)]

    # statements in order

    def turn(self, steps: Sequence[Step], plans: Sequence[_Plan], given: Mapping[str, str]) -> list[_Plan]:
        """Complete the derivatives of what statements in order make; answers the plans for the content before all of them."""
        for step in steps:
            if self.is_beyond(step):  # elements that other statements made
                whole, base = self.whole[step.target], given.get(root(step.target))
                zero = number(0, self.draft.arrays[whole].dtype.compute)
                self.draft.steps.append(self.draft.fill(whole, zero) if base is None else self.draft.copy(whole, base))
        bases = {name: [base] for name, base in given.items()}
        left: list[_Plan] = []
        for place, (step, plan) in reversed(list(enumerate(zip(steps, plans, strict=True)))):
            name, start = root(step.target), len(self.draft.steps)
            self.complete(step, bases.get(name, []))
            if any(root(each.target) == name for each in steps[:place]):
                plan.before()
                bases[name] = self.pending.pop(name, _Pending()).bases
            else:
                left.append(plan)
            self.draft.steps[start:] = [self.draft.in_turns(each, step, -1) for each in self.draft.steps[start:]]
        return left

    def complete(self, step: Step, bases: Sequence[str]) -> None:
        """The derivative of a version that is made in order: from outside, and from the points that read it."""
        name, whole, order = root(step.target), self.whole[step.target], step.order[len(step.turns) :]
        own, others, wide = list[Term](), list[Term](), _Pending()
        array = self.in_turn(step)
        for reader, part in self.inner[step.target]:
            same = order and reader is step and self.is_same_turn(step, part.read)
            term = self.turned(reader, part, step, array)
            if not (step.block and not order and self.is_wide(reader, part, array, wide, term, step.places)):
                (own if same else others).append(term)
        others += self.folded(array, wide, step.places).terms
        if not order:
            self.emit(whole, _Pending([*bases], others), declared=False, in_turns=True)
            return
        if others or len(bases) > 1:
            bases = [self.summed(name, _Pending([*bases], others))]
        if all(term.is_gather and term.reduced == own[0].reduced for term in own):
            self.against_the_order(step, whole, bases[0] if bases else None, own)
            return
        if step.block:
            raise refuse(self.about.program, "it reads what it made in a way that cannot be turned around", step.span)
        start, alone = len(self.draft.steps), step.in_turns_alone()
        self.emit(whole, _Pending([*bases], own), declared=False, in_turns=True)
        self.draft.steps[start:] = [self.draft.in_turns(each, alone, -1) for each in self.draft.steps[start:]]

    def is_same_turn(self, step: Step, read: Read) -> bool:
        """Whether an element that is read is of the same turn of the block."""
        size = self.about.size
        pairs = zip(step.places, step.turns, strict=True)
        return all(size(read.indices[place]) == size(IndexVar(name)) for place, (name, _) in pairs)

    def is_beyond(self, step: Step) -> bool:
        """Whether the target has elements of other turns than those of the block."""
        box = self.about.arrays[root(step.target)].box
        return any(box[place] != step.range_of(name) for place, (name, _) in zip(step.places, step.turns, strict=True))

    def in_turn(self, writer: Step) -> Array:
        """What a statement in order has made, in the turns of its block alone."""
        array = self.about.arrays[root(writer.target)]
        box = list(array.box)
        for place, (name, _) in zip(writer.places, writer.turns, strict=True):
            box[place] = writer.range_of(name)
        return replace(array, box=tuple(box))

    def turned(self, reader: Step, part: Part, writer: Step, array: Array) -> Term:
        """What a read adds to the derivative of what a statement in order has made."""
        found = None
        if stride_of(reader, part, array, self.about.size) is not None:
            found = self.inlined(reader, part, array)
        places = writer.places or writer.in_turns_alone().places
        return found or transposed(reader, part, array, self.about.size, self.draft.index, places)

    def share_outside(self, step: Step, part: Part, writer: Step) -> None:
        """What a read of a block adds to elements that were there before the block."""
        name = root(part.read.tensor)
        array, tests = self.about.arrays[name], list[Expr]()
        for place, (index, _) in zip(writer.places, writer.turns, strict=True):
            (low, high), (first, end), at = writer.range_of(index), array.box[place], part.read.indices[place]
            tests += [] if nonnegative(first - low) else [compared("<", at, to_expr(low))]
            tests += [] if nonnegative(high - end) else [compared(">=", at, to_expr(high))]
        if tests:
            part = replace(part, conditions=(*part.conditions, either(tests)))
            self.of(name).terms.append(transposed(step, part, array, self.about.size, self.draft.index))

    def against_the_order(self, step: Step, own: str, incoming: str | None, terms: Sequence[Term]) -> None:
        """The derivative of what an ordered step made: from outside, and from the points that read it, last ones first."""
        array = self.draft.arrays[own]
        points, left = (terms[0].points, terms[0].left) if terms else self.draft.indices_of(array.box)
        total: Expr = number(0, array.dtype.compute)
        for term in terms:
            total = plus(total, renamed_left(term, left, self.draft.index).guarded)
        names = {old.name: new.name for old, new in zip(map(as_index, step.left), map(as_index, left), strict=True)}
        order = tuple((names[name], -way) for name, way in step.order)
        summed = bool(terms and terms[0].reduced)
        if summed and incoming is not None:
            self.draft.steps.append(self.draft.copy(own, incoming))
        if summed:
            self.draft.steps.append(Step(own, "+", incoming is None, points, left, total, order=order))
            return
        total = total if incoming is None else plus(self.element(incoming, left), total)
        self.draft.steps.append(Step(own, "=", False, points, left, total, order=order if terms else ()))

    def whole_part(self, step: Step, part: Part, first: tuple[Expr, ...]) -> Part:
        """A part with all its conditions, and with what the step has stored in place of what it computed."""
        inside = tuple(self.stored_bound(step, each) for each in part.conditions)
        return Part(part.read, (*step.conditions, *first, *inside), self.stored(step, part.value))

    def is_active(self, read: Read) -> bool:
        """Whether a derivative goes to what is read; none goes to an array that never has an element."""
        name = root(read.tensor)
        box = self.about.arrays[name].box if name in self.about.arrays else ()
        return name in self.active and not any(low == high for low, high in box)

    def share(self, step: Step, part: Part, where: Found | None) -> None:
        """What one read gets."""
        name = root(part.read.tensor)
        array = self.about.arrays[name]
        term = self.term(step, part, array)
        if self.is_wide(step, part, array, self.of(name), term, where=where):
            return
        if is_one_point(where, step, term):
            at, own = at_point(step, part, where)
            term = transposed(at, own, array, self.about.size, self.draft.index)
        self.of(name).terms.append(term)

    def term(self, step: Step, part: Part, array: Array, plain: Sequence[int] = ()) -> Term:
        """What a read adds to an array; reads with a step by way of each residue, in an array of its own if it is a sum."""
        stride = None if plain else stride_of(step, part, array, self.about.size)
        if stride is None:
            return transposed(step, part, array, self.about.size, self.draft.index, plain)
        inlined = self.inlined(step, part, array)
        if inlined is not None:
            return inlined
        points, left = self.draft.indices_of(array.box)
        found = residues(stride, step, part, array, self.about.size, self.draft.index)
        inside = divided(left, stride)
        values = [
            number(0, array.dtype.compute) if each.part is None else self.of_residue(each, array, inside)
            for each in reversed(found)
        ]
        return Term(points, left, (), by_residue(left, stride, values[::-1]))

    def inlined(self, step: Step, part: Part, array: Array) -> Term | None:
        """The same where each residue reads one element and nothing is summed, without arrays for residues."""
        term = transposed(step, part, array, self.about.size, self.draft.index)
        if term.is_gather and not term.reduced:
            return term
        stride = stride_of(step, part, array, self.about.size)
        if stride is None:
            return None
        points, left = self.draft.indices_of(array.box)
        inside, values = divided(left, stride), list[Expr]()
        for each in residues(stride, step, part, array, self.about.size, self.draft.index, alike=True):
            own = None if each.part is None else self.inlined(each.step, each.part, replace(array, box=each.box))
            if each.part is not None and own is None:
                return None
            values.append(number(0, array.dtype.compute) if own is None else put(own, inside))
        return Term(points, left, (), by_residue(left, stride, values))

    def of_residue(self, residue: Residue, array: Array, at: tuple[Expr, ...]) -> Expr:
        """The derivative of the elements of one residue, at their number."""
        assert residue.part is not None
        name = f"{array.name}_{residue.place}"
        own = self.draft.array(f"d{name}", array.dtype.compute, residue.box)
        part = self.term(residue.step, residue.part, replace(array, name=name, box=residue.box))
        self.emit(own, _Pending([], [part]), declared=False)
        return self.element(own, at)

    def stored(self, step: Step, value: Expr) -> Expr:
        """The value with what the step has stored in place of what it computed."""
        name = root(step.target)
        array = self.about.arrays[name]
        if step.operator != "=" or array.dtype.compute is not array.dtype or len(list(walk(step.value))) < 3:
            return value
        found = Read(step.target, step.left, array.dtype)
        return rewrite(value, lambda node: found if node == step.value else None)

    def stored_bound(self, step: Step, test: Expr) -> Expr:
        """What `max(v, a)` says of `v`, asked of the value that the step has stored: `v > a` is `max(v, a) > a`."""
        value = step.value
        match test, value:
            case Unary(op="!", operand=Binary(op="<=" | ">=" as op, left=own, right=bound)), Binary(op="max" | "min"):
                plain = isinstance(bound, Const) and (value.op == "max") is (op == "<=")
                if plain and {value.left, value.right} == {own, bound}:
                    return Unary("!", compared(op, self.stored(step, value), bound), DType.BOOL)
            case _:
                pass
        return test

    def before(self, step: Step, whole: str) -> None:
        """What the content before the statement gets: the derivative, without what the statement replaced."""
        name, _, count = step.target.partition("@")
        if int(count) == 1:
            return
        if step.operator != "=" and not step.fresh:
            self.of(name).bases.append(whole)
        elif not step.is_whole(self.about.arrays[name]):
            zero = number(0, self.draft.arrays[whole].dtype.compute)
            if step.operator == "=":
                points, _ = without_idle(step.points, (*step.left, *step.conditions), zero)
                value, conditions = zero, step.conditions
                if conditions and replace(step, conditions=()).is_whole(self.about.arrays[name]):
                    value = Select(all_of(conditions), zero, self.element(whole, step.left), zero.dtype)
                    conditions = ()
                self.masked(step, whole, tuple(points), step.left, value, step.unique, conditions)
            else:
                points, left = at_elements(step, self.about.arrays[name], self.draft.index)
                self.masked(step, whole, points, left, zero)

    def masked(
        self,
        step: Step,
        whole: str,
        points: tuple[Point, ...],
        left: tuple[Expr, ...],
        value: Expr,
        unique: bool = False,
        conditions: tuple[Expr, ...] = (),
    ) -> None:
        """A derivative with other values at the elements that a statement writes."""
        name = root(step.target)
        array = self.draft.arrays[whole]
        kept = self.draft.array(f"d{name}", array.dtype.compute, array.box)
        changed = Step(kept, "=", False, points, left, value, unique, conditions=conditions)
        if not changed.is_whole(array):
            every, at = self.draft.indices_of(array.box)
            self.draft.steps.append(Step(kept, "=", False, every, at, self.element(whole, at)))
        self.draft.steps.append(changed)
        self.of(name).bases.append(kept)

    def old(self, step: Step, left: Sequence[Expr]) -> Expr:
        """The content before the statement."""
        name, _, count = step.target.partition("@")
        dtype = self.about.arrays[name].dtype
        return cast(Read(version(name, int(count) - 1), tuple(left), dtype), dtype.compute)

    def extreme(self, step: Step, whole: str, bar: Expr) -> _Plan:
        """The points that attain the extreme value get the derivative, or the content before, if that does."""
        array = self.about.arrays[root(step.target)]
        if step.fresh and not depends(step.value, self.is_active):
            return _Plan([], lambda: self.before(step, whole))
        where = found(step, array, self.draft.array, self.ties)
        self.draft.steps += where.steps
        bar = where.share(bar)
        if step.fresh:
            return _Plan(self.parts(step, bar, where.here), lambda: self.before(step, whole), where)
        worse = "<" if step.operator == "max" else ">"
        wins = compared(worse, self.old(step, step.left), where.best)

        def before() -> None:
            points, left = at_elements(step, array, self.draft.index)
            loses = compared(worse, self.old(step, left), at_left(step, where.best, left))
            zero = number(0, array.dtype.compute)
            self.masked(step, whole, points, left, Select(loses, zero, self.element(whole, left), zero.dtype))

        return _Plan(self.parts(step, bar, (*where.here, wins)), before, where)

    def product(self, step: Step, whole: str, bar: Expr) -> _Plan:
        """Each factor gets the product of the others."""
        array = self.about.arrays[root(step.target)]
        factors = product_of(step, array, self.draft.array)
        self.draft.steps += factors.steps
        others = factor_of(step.value, factors)
        if step.fresh:
            return _Plan(self.parts(step, times(bar, others)), lambda: self.before(step, whole))

        def before() -> None:
            points, left = at_elements(step, array, self.draft.index)
            zero = number(0, step.value.dtype)
            none = compared("==", replace(factors.zeros, indices=left), number(0, DType.INT32))
            product = Select(none, replace(factors.rest, indices=left), zero, zero.dtype)
            self.masked(step, whole, points, left, times(self.element(whole, left), product))

        return _Plan(self.parts(step, times(times(bar, self.old(step, step.left)), others)), before)

    # the results

    def result(self, name: str) -> str:
        """The derivative by a parameter."""
        array = self.about.arrays[name]
        own = self.draft.array(f"d{name}", array.dtype, array.box, array.pairs)
        pending = self.at_places(name, self.folded(array, self.pending.pop(name, _Pending())))
        if array.dtype.compute is array.dtype:
            self.emit(own, pending, declared=True)
            return own
        if self.is_one(pending):
            points, left = self.draft.indices_of(array.box)
            value = self.combined(pending, left)
            self.draft.steps.append(Step(own, "=", False, points, left, value))
            return own
        wide = self.draft.array(f"{own}_sum", array.dtype.compute, array.box)
        self.emit(wide, pending, declared=False)
        points, left = self.draft.indices_of(array.box)
        self.draft.steps.append(Step(own, "=", False, points, left, Read(wide, left, array.dtype.compute)))
        return own

    def is_one(self, pending: _Pending) -> bool:
        """Whether a derivative is one expression for each element."""
        few = len(pending.terms) + len(pending.bases) <= MOST_TERMS
        return few and all(term.is_gather and not term.reduced for term in pending.terms)

    def combined(self, pending: _Pending, left: tuple[Expr, ...]) -> Expr:
        """The sum of what is one expression for each element."""
        dtype = self.dtype_of(pending)
        total: Expr = number(0, dtype)
        for base in pending.bases:
            total = plus(total, self.element(base, left))
        for term in pending.terms:
            total = plus(total, renamed_left(term, left, self.draft.index).guarded)
        return total

    def dtype_of(self, pending: _Pending) -> DType:
        values = [term.value.dtype for term in pending.terms]
        return (
            values[0]
            if values
            else self.draft.arrays[pending.bases[0]].dtype.compute
            if pending.bases
            else DType.FLOAT32
        )

    def emit(self, own: str, pending: _Pending, declared: bool, in_turns: bool = False) -> None:
        """The statements that write a derivative: sums over the same indices in one of them; zero is said once.

        Sums come first: they do not wait for what is known of each element, and schedules add that when the sum is complete. In
        turns of a block they come last.
        """
        array = self.draft.arrays[own]
        dtype = array.dtype.compute
        plain = [term for term in pending.terms if term.is_gather and not term.reduced]
        sums = [term for term in pending.terms if term.is_gather and term.reduced]
        scattered = [term for term in pending.terms if not term.is_gather]
        steps: list[Step] = []
        parts = (self.sums(own, sums, dtype), self.plain(own, array, [*pending.bases, *plain]))
        for each in (*parts[1], *parts[0]) if in_turns else (*parts[0], *parts[1]):
            steps.append(replace(each, operator="+", fresh=False) if steps else each)
        for term in scattered:
            fresh = not steps and declared and not any(map(is_constant, term.left))
            if not steps and not fresh:
                steps.append(self.draft.fill(own, number(0, dtype)))
            added = Step(own, "+", fresh, term.points, term.left, term.value, conditions=term.conditions)
            steps.append(added)
        if not steps:
            steps.append(self.draft.fill(own, number(0, dtype)))
        self.draft.steps += steps

    def sums(self, own: str, terms: Sequence[Term], dtype: DType) -> list[Step]:
        """Statements that begin a derivative with sums."""
        steps: list[Step] = []
        for group in grouped(terms):
            first = group[0]
            total: Expr = number(0, dtype)
            for term in group:
                total = plus(total, renamed_left(term, first.left, self.draft.index).guarded)
            steps.append(Step(own, "+", True, first.points, first.left, total))
        return steps

    def plain(self, own: str, array: Array, whole: Sequence[str | Term]) -> list[Step]:
        """Statements that begin a derivative with what is known of each element."""
        steps: list[Step] = []
        for some in in_parts(whole):
            points, left = self.names_of(array, some.terms)
            steps.append(Step(own, "=", False, points, left, self.combined(some, left)))
        return steps

    def names_of(self, array: Array, plain: Sequence[Term]) -> tuple[tuple[Point, ...], tuple[Expr, ...]]:
        """Names for the elements of a derivative: those of its first term."""
        if not plain:
            return self.draft.indices_of(array.box)
        return plain[0].points, plain[0].left


def divided(left: tuple[Expr, ...], stride: Stride) -> tuple[Expr, ...]:
    """The number of an element among those of its residue."""
    inside = list(left)
    inside[stride.dimension] = Binary("//", left[stride.dimension], int64(stride.step), DType.INT64)
    return tuple(inside)


def by_residue(left: tuple[Expr, ...], stride: Stride, values: Sequence[Expr]) -> Expr:
    """The value that belongs to the residue of an element."""
    return by_number(Binary("%", left[stride.dimension], int64(stride.step), DType.INT64), 0, values)


def in_parts(whole: Sequence[str | Term]) -> Iterator[_Pending]:
    """What is known of each element of a derivative, in sums of some terms."""
    for start in range(0, len(whole), MOST_TERMS):
        some = whole[start : start + MOST_TERMS]
        yield _Pending(
            [each for each in some if isinstance(each, str)], [each for each in some if isinstance(each, Term)]
        )


def put(term: Term, left: Sequence[Expr]) -> Expr:
    """The value of a term at an element."""
    own = {old.name: new for old, new in zip(map(as_index, term.left), left, strict=True)}
    return rewrite(term.guarded, variables(own))


def is_short(point: Point) -> bool:
    """Whether an index has few values, whatever the sizes."""
    extent = point.upper - point.lower
    return extent.is_constant and extent.offset <= SHORT


def as_index(at: Expr) -> IndexVar:
    """A subscript that is an index."""
    assert isinstance(at, IndexVar)
    return at


def is_constant(at: Expr) -> bool:
    """Whether a subscript is the same for all points."""
    return not any(isinstance(node, IndexVar) for node in walk(at))


def grouped(sums: Sequence[Term]) -> list[list[Term]]:
    """Terms that are summed over the same indices, together."""
    groups: dict[tuple[Point, ...], list[Term]] = {}
    for term in sums:
        groups.setdefault(tuple(sorted(term.reduced, key=lambda point: point.name)), []).append(term)
    return [
        group[start : start + MOST_TERMS] for group in groups.values() for start in range(0, len(group), MOST_TERMS)
    ]


def renamed_left(term: Term, left: Sequence[Expr], fresh: Callable[[], str]) -> Term:
    """A gather with other names on its left side."""
    names = {
        old.name: new.name
        for old, new in zip(term.left, left, strict=True)
        if isinstance(old, IndexVar) and isinstance(new, IndexVar) and old.name != new.name
    }
    if not names:
        return term
    free = {point.name for point in term.reduced} & set(names.values())
    for name in sorted(free):
        names[name] = fresh()
    return term.renamed(names)


def is_one_point(where: Found | None, step: Step, term: Term) -> TypeGuard[Found]:
    """Whether the point with the extreme value gives all there is, and looking for it costs less than a sum over all points."""
    if where is None or not where.here or where.ties is not None:
        return False
    plain = step.indices is not None  # else the left side does not say which element a point belongs to
    return plain and not (term.is_gather and all(map(is_short, term.reduced)))


def at_point(step: Step, part: Part, where: Found) -> tuple[Step, Part]:
    """The step and a read of it at the point with the extreme value alone."""
    rule = variables(where.points)
    points = tuple(point for point in step.points if point.name not in where.points)
    found = len(step.conditions) + 1  # those of the step, and that this is the point
    conditions = (*where.known, *(rewrite(each, rule) for each in part.conditions[found:]))
    read = rewrite(part.read, rule)
    assert isinstance(read, Read)
    return replace(step, points=points), Part(read, conditions, rewrite(part.value, rule))
