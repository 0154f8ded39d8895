"""`f.jvp`: from the derivatives of the parameters to those of the results, statement by statement.

Worked example: of `Y(i) = sin(X(i))` it is `tY(i) = tX(i) * cos(X(i))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc_jupyter.program import DType, Expr, Read, Select, walk
from tc_jupyter.ranges import SizeExpr

from .arithmetic import cast, compared, guarded, is_number, number, times
from .draft import Derived, Draft, at_elements
from .extremes import Ties, at_left, factor_of, found, product_of
from .invariance import active_tensors
from .partials import Underivable, tangent
from .sharing import shared
from .steps import Array, Bounds, Step, Steps, circles, refuse, root, version
from .transpose import without_idle


def jvp(
    about: Steps,
    name: str,
    wrt: Sequence[str],
    saved: Sequence[str] = (),
    alone: bool = False,
    ties: Ties = "first",
) -> Derived:
    """The def of the results and their derivatives along those of some parameters; `alone`: of the derivatives."""
    return _Forward(shared(about), wrt, saved, alone, ties).run(name)


class _Forward:
    def __init__(self, about: Steps, wrt: Sequence[str], saved: Sequence[str], alone: bool, ties: Ties) -> None:
        self.about, self.wrt, self.saved, self.alone = about, tuple(wrt), tuple(saved), alone
        self.ties: Ties = ties
        self.draft = Draft(about, frozenset(saved))
        self.active = active_tensors(about, wrt)
        self.tangents: dict[str, str] = {}
        self.was: dict[str, str] = {}  # derivatives of versions that a statement reads and changes in two steps
        self.made: list[Step] = []  # the derivatives of what a statement, or those of a block, make

    def run(self, name: str) -> Derived:
        draft, about = self.draft, self.about
        own = draft.name(name)
        for each in self.wrt:
            array = about.arrays[each]
            self.tangents[each] = draft.array(f"t{each}", array.dtype, array.box, array.pairs)
        direct = {result: self.draft.is_direct(result) for result in about.program.results}
        for result in about.program.results:
            at = about.results[result][0]
            if direct[result] and at in self.active:
                array = about.arrays[at]
                self.tangents[at] = draft.array(f"t{result}", array.dtype, array.box, array.pairs)
        for circle in circles(about.steps):
            steps = [step for step in circle if root(step.target) in self.active]
            for step in steps:  # those of a block read what others make in turns before
                self.tangent_of(root(step.target))
            for step in steps:
                self.step(step)
            draft.steps += self.made
            self.made = []
        results = [each for result in about.program.results for each in self.result(result, direct[result])]
        steps = tuple(draft.steps)
        given = tuple(self.tangents[each] for each in self.wrt)
        forward = draft.needed(steps, draft.called)
        return Derived(
            own, about, forward, steps, given, tuple(results), draft.arrays, self.saved, draft.called, draft.spelling
        )

    # the results

    def result(self, result: str, direct: bool) -> list[str]:
        """The result, and its derivative if it is a float."""
        name, shift = self.about.results[result]
        array = self.about.arrays[name]
        own = [] if self.alone else [self.draft.itself(result)]
        if not array.dtype.is_float:
            return own
        found = self.tangents.get(name)
        if found is None:
            found = self.draft.array(f"t{result}", array.dtype, self.box_of(array, shift), array.pairs)
            self.draft.steps.append(self.draft.fill(found, number(0, array.dtype.compute)))
        elif not direct:
            found = self.draft.moved(self.draft.name(f"t{result}"), found, array, shift)
        return [*own, found]

    def box_of(self, array: Array, shift: Sequence[SizeExpr]) -> tuple[Bounds, ...]:
        return tuple((low - far, high - far) for (low, high), far in zip(array.box, shift, strict=True))

    # one statement

    def tangent_of(self, name: str) -> str:
        """The array of the derivative of a tensor that is written."""
        if name not in self.tangents:
            array = self.about.arrays[name]
            self.tangents[name] = self.draft.array(f"t{name}", array.dtype, array.box)
        return self.tangents[name]

    def read(self, read: Read) -> Expr | None:
        """The derivative of what is read."""
        own = self.was.get(read.tensor) or self.tangents.get(root(read.tensor))
        return None if own is None else Read(own, read.indices, read.dtype)

    def step(self, step: Step) -> None:
        """The derivative of what a statement writes."""
        own = self.tangent_of(root(step.target))
        self.keep_old(step, own)
        try:
            value = tangent(step.value, self.read, lambda read: root(read.tensor) in self.active)
        except Underivable as problem:
            raise refuse(self.about.program, f"`{problem}` has no derivative in the language", step.span) from None
        match step.operator:
            case "=":
                self.put(step, self.kept(step, own, "=", False, value))
            case "+":
                if step.fresh or not is_number(value, 0):
                    self.put(step, self.kept(step, own, "+", step.fresh, value))
            case "min" | "max":
                self.extreme(step, own, value)
            case "*":
                self.product(step, own, value)
            case _:
                raise AssertionError(step.operator)

    def keep_old(self, step: Step, own: str) -> None:
        """A copy of the derivative, where the statement reads it after a part of the change."""
        name, _, count = step.target.partition("@")
        before = version(name, int(count) - 1)
        if step.operator in ("=", "+") or step.fresh:
            return
        if all(not isinstance(node, Read) or node.tensor != before for node in walk(step.value)):
            return
        array = self.draft.arrays[own]
        self.was[before] = self.draft.array(f"{own}_old", array.dtype, array.box)
        self.put(step, self.draft.copy(self.was[before], own))

    def put(self, step: Step, made: Step) -> None:
        """A statement of the derivative, in the turns of the block of the one that it is for."""
        self.made.append(self.draft.in_turns(made, step, 1))

    def kept(self, step: Step, own: str, operator: str, fresh: bool, value: Expr) -> Step:
        used = (*step.left, *step.conditions)
        points, counted = without_idle(step.points, used, value)
        value = counted if operator == "+" else value
        found = replace(step, target=own, operator=operator, fresh=fresh, points=tuple(points), value=value)
        return found if found.reads_itself else replace(found, order=())

    def old(self, step: Step, left: Sequence[Expr]) -> Expr:
        """The content before the statement."""
        name, _, count = step.target.partition("@")
        dtype = self.about.arrays[name].dtype
        return cast(Read(version(name, int(count) - 1), tuple(left), dtype), dtype.compute)

    def present(self, own: str, left: Sequence[Expr]) -> Expr:
        """The derivative as it is before the statement."""
        dtype = self.draft.arrays[own].dtype
        return cast(Read(own, tuple(left), dtype), dtype.compute)

    def extreme(self, step: Step, own: str, value: Expr) -> None:
        """The derivative at the first point that attains the extreme value, or the mean of those at all of them."""
        array = self.about.arrays[root(step.target)]
        where = found(step, array, self.draft.array, self.ties)
        self.draft.steps += where.steps
        value, conditions = where.share(value), list(where.here)
        if not step.fresh:
            worse = "<" if step.operator == "max" else ">"
            points, left = at_elements(step, array, self.draft.index)
            best = at_left(step, where.best, left)
            loses = compared(worse, self.old(step, left), best)
            zero = number(0, value.dtype)
            masked = Select(loses, zero, self.present(own, left), zero.dtype)
            self.put(step, Step(own, "=", False, points, left, masked))
            conditions.append(compared(worse, self.old(step, step.left), where.best))
        self.put(step, self.kept(step, own, "+", step.fresh, guarded(conditions, value)))

    def product(self, step: Step, own: str, value: Expr) -> None:
        """The sum over the factors of the derivative of one times the others."""
        array = self.about.arrays[root(step.target)]
        factors = product_of(step, array, self.draft.array)
        self.draft.steps += factors.steps
        value = times(value, factor_of(step.value, factors))
        if not step.fresh:
            points, left = at_elements(step, array, self.draft.index)
            zero = number(0, value.dtype)
            none = compared("==", replace(factors.zeros, indices=left), number(0, DType.INT32))
            whole = Select(none, replace(factors.rest, indices=left), zero, zero.dtype)
            self.put(step, Step(own, "=", False, points, left, times(self.present(own, left), whole)))
            value = times(value, self.old(step, step.left))
        self.put(step, self.kept(step, own, "+", step.fresh, value))
