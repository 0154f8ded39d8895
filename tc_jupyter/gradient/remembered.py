"""What a call that is recorded keeps for its derivatives, so that they do not compute it again.

Comes in: the def of the derivatives, which computes all it needs. Goes out: the def itself with more results, and the derivatives
that take these. Sums, extreme values and their positions are kept, and what is computed from sums as large as itself; the rest is
computed again.

Worked example: of `M(n) max=! X(n, d)`, `E(n, d) = exp(X(n, d) - M(n))` and `S(n) +=! E(n, d)` the sums `M` and `S` are kept, and
`E`, which is larger than `M`, is computed again. Of `A(n, o) +=! X(n, i) * W(o, i)` and `P(n, o) = max(A(n, o), 0)` it is `P`.
"""

from __future__ import annotations

from dataclasses import replace

from .draft import Derived, Draft
from .steps import Step, root, version


def remembered(whole: Derived, name: str) -> tuple[Derived, Derived] | None:
    """The def with more results, under a name, and its derivatives that take them; `None` where they would take no more.

    Args:
        whole: the derivatives of a def, for which nothing is saved.
    """
    found = _Halves(whole)
    return (found.call(name), found.back()) if found.kept else None


class _Halves:
    def __init__(self, whole: Derived) -> None:
        self.whole, self.about = whole, whole.about
        self.draft = Draft(self.about)
        self.late = self.after_the_call()
        early = [step for step in whole.steps if step.target not in self.late]
        self.made: dict[str, list[Step]] = {}
        for step in (*self.about.steps, *early):
            self.made.setdefault(step.target, []).append(step)
        self.results = {
            version(root, self.about.last[root]): result
            for result in self.about.program.results
            if self.draft.is_direct(result)
            for root in [self.about.results[result][0]]
        }
        self.sums = self.nearest_sums()
        self.kept: list[str] = []
        seen = set[str]()
        for step in whole.steps:
            for each in sorted(self.needs(step) if step.target in self.late else ()):
                self.choose(each, seen)
        self.kept.sort(key=list(self.made).index)

    def after_the_call(self) -> set[str]:
        """What is computed from the derivatives of the results."""
        late, size = set(self.whole.parameters), -1
        while size < len(late):
            size = len(late)
            blocks = {step.block for step in self.whole.steps if step.block and step.target in late}
            for step in self.whole.steps:
                if step.block in blocks or any(read.tensor in late for read in step.reads()):
                    late.add(step.target)
        return late

    def nearest_sums(self) -> dict[str, frozenset[str]]:
        """What each array that is computed before follows from element by element, of what is no such array."""
        found: dict[str, frozenset[str]] = {}
        for target, steps in self.made.items():
            if target in self.results:
                continue
            plain = all(step.operator == "=" and not step.order for step in steps)
            before = (found.get(each, frozenset()) for step in steps for each in self.needs(step))
            found[target] = frozenset[str]().union(*before) if plain else frozenset({target})
        return found

    def choose(self, name: str, seen: set[str]) -> None:
        """Keep an array that the derivatives read, or the smaller ones that it follows from."""
        sums = self.sums.get(name, frozenset[str]())
        if name in seen or not sums:
            return
        seen.add(name)
        if self.is_whole(name) and not all(self.rank(each) < self.rank(name) for each in sums):
            self.kept.append(name)
            return
        for step in self.made[name]:
            for each in sorted(self.needs(step)):
                self.choose(each, seen)

    def needs(self, step: Step) -> set[str]:
        """What a step reads or goes on with."""
        own = root(step.target) == step.target  # an array of the derivatives has no versions
        return {read.tensor for read in step.reads()} if own else self.draft.needs(step)

    def rank(self, name: str) -> int:
        return len(self.whole.arrays[root(name)].box)

    def is_whole(self, name: str) -> bool:
        """Whether an array is there when the call ends, and no result."""
        own = root(name)
        last = own == name or name == version(own, self.about.last[own])
        return last and own not in self.about.program.results

    def closed(self, wanted: set[str], left_out: set[str]) -> tuple[Step, ...]:
        """The steps of the derivatives that make some arrays, without those of others."""
        for step in reversed(self.whole.steps):
            if step.target in wanted and step.target not in left_out:
                wanted |= self.needs(step)
        return tuple(step for step in self.whole.steps if step.target in wanted and step.target not in left_out)

    @property
    def temporaries(self) -> tuple[str, ...]:
        """What is kept of the arrays of the def."""
        return tuple(root(each) for each in self.kept if each != root(each))

    @property
    def others(self) -> tuple[str, ...]:
        """What is kept of those that the derivatives need beside."""
        return tuple(each for each in self.kept if each == root(each))

    def call(self, name: str) -> Derived:
        """The def with more results."""
        draft = Draft(self.about)
        draft.arrays |= self.whole.arrays
        draft.taken |= self.whole.arrays.keys()
        own = draft.name(name)
        draft.steps += self.closed(set(self.others), set())
        results = tuple(map(draft.itself, self.about.program.results))
        steps = tuple(draft.steps)
        forward = draft.needed(steps, {*draft.called, *self.kept})
        given = (*results, *self.temporaries, *self.others)
        return Derived(own, self.about, forward, steps, (), given, draft.arrays, (), draft.called, draft.spelling)

    def back(self) -> Derived:
        """The derivatives."""
        steps = self.closed({*self.whole.results}, set(self.others))
        needed = Draft(self.about, frozenset(self.temporaries)).needed(steps)
        own = [self.results[step.target] for step in needed if step.target in self.results]
        saved = (*(each for each in self.about.program.results if each in own), *self.temporaries)
        forward = Draft(self.about, frozenset(saved)).needed(steps)
        parameters = (*self.others, *self.whole.parameters)
        return replace(self.whole, forward=forward, steps=steps, parameters=parameters, saved=saved, lean=True)
