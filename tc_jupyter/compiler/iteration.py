"""A def applied again and again to what it returns: two buffers per state, in turns.

The results of a def are its next first arguments; the other arguments stay. The arrays that are given are never written to, and
after the first two steps no memory is allocated.

Worked example: `jacobi.iterate(3)(U)` is `jacobi(jacobi(jacobi(U)))`: step 1 reads `U` and makes A, step 2 reads A and makes B, and
step 3 reads B and writes into A.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from tc_jupyter.diagnostics import Diagnostic, codes
from tc_jupyter.diagnostics.values import shown_value
from tc_jupyter.program import DType, index_state, state_help
from tc_jupyter.ranges import to_python
from tc_jupyter.runtime.alternating import Alternating
from tc_jupyter.runtime.arguments import call_error

from .function_analysis import FunctionAnalysis

Step = Callable[..., Any]
"""`f(*arguments, out=None)`."""
Alternate = Callable[[Sequence[Any], Sequence[Any]], Alternating | None]
FIRST_CALLS = 8
"""Steps that are calls from Python at most, before it is clear whether a native loop takes the others."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which results of a def are states.

    Attributes:
        results: how many results the def has.
        states: the places of those that are the next arguments.
        until: the place of the result that says whether it is enough, or `None`.
        reuses: a call may write into the arrays of an earlier step.
    """

    results: int
    states: tuple[int, ...]
    until: int | None
    reuses: bool


def rule_of(found: FunctionAnalysis, until: str | None) -> Rule:
    """Which results of a def are states, if it can be applied to what it returns.

    Raises:
        CallError: TC226, an argument and the result that comes in its place differ.
        ValueError: `until` is no result that is one truth value.
    """
    program = found.program
    names = program.results
    if until is not None and until not in names:
        raise ValueError(f"until={until!r}: `{program.name}` has no such result; its results are {', '.join(names)}")
    if until is not None and (program.tensor(until).rank or program.tensor(until).dtype is not DType.BOOL):
        raise ValueError(f"until={until!r}: expected a result that is one truth value, as in `done any=! X(i) > 1`")
    states = tuple(place for place, name in enumerate(names) if name != until)
    reason = _difference(found, [names[place] for place in states])
    if reason:
        message = f"`{program.name}` cannot be applied to what it returns: {reason}"
        help = state_help(index_state(program, program.parameters, [names[place] for place in states]))
        raise call_error(Diagnostic(codes.STATE, program.span, message, help=help), program.source)
    written = {statement.target for statement in program.statements if statement.accumulate and statement.initialize}
    place = None if until is None else names.index(until)
    return Rule(len(names), states, place, not written & set(names))


def _difference(found: FunctionAnalysis, states: Sequence[str]) -> str:
    """How the first parameters and the results differ; empty if they do not."""
    program = found.program
    if not states:
        return "it returns no state"
    if len(states) > len(program.parameters):
        return f"it has {len(program.parameters)} parameters and {len(states)} states"
    for name, state in zip(program.parameters, states, strict=False):
        given, made = _type(found, name), _type(found, state)
        if given != made:
            return f"`{name}` is `{given}`, and `{state}`, which comes in its place, is `{made}`"
    return ""


def _type(found: FunctionAnalysis, name: str) -> str:
    tensor, box = found.program.tensor(name), found.ranges.boxes.get(name)
    shape = ", ".join(["?"] * tensor.rank if box is None else [to_python(extent) for extent in box.shape])
    return f"{tensor.dtype.value}({shape})" if tensor.rank else tensor.dtype.value


@dataclass(frozen=True, slots=True)
class Iteration:
    """What `f.iterate(n)` gives: call it with the arguments of `f`.

    Attributes:
        step: the function.
        alternating: gives its native loop over steps, for the arguments and results of two calls in turns.
        rule: gives the rule of the function as it is now: what it calls may have been defined again.
        steps: how often it is applied.
        every: after how many steps it is asked whether they are enough.
        keep: every how many steps a state is kept; 0: only the last one.
    """

    step: Step
    alternating: Alternate
    rule: Callable[[], Rule]
    steps: int
    every: int
    keep: int

    def __call__(self, *args: Any) -> Any:
        """The states after all steps; behind them, with `until=`, the number of steps that were taken.

        With `keep=` each state has one more dimension, the first one: it begins with the arguments.
        """
        rule = self.rule()
        places, rest = rule.states, args[len(rule.states) :]
        states: Sequence[Any] = args[: len(places)]
        kept = [[_copy(each)] for each in states] if self.keep else []
        made, spare, first = tuple[Any, ...](), tuple[Any, ...](), tuple[Any, ...]()
        loop: Alternating | None = None
        count = 0
        # arrays of Dask are made when they are computed, so there is nothing to write into
        reuses = rule.reuses and not any(hasattr(each, "__dask_graph__") for each in args)
        while count < self.steps:
            ahead = self._stop(count, rule) - count
            if loop is None and reuses and spare and ahead > 1 and count <= FIRST_CALLS:
                before = [spare[place] for place in places]
                loop, first = self.alternating((*states, *rest, *spare), (*before, *rest, *made)), made
            if loop is not None:
                loop.run(ahead, made is not first)
                made, spare = (spare, made) if ahead % 2 else (made, spare)
                count += ahead
            else:
                out = (spare if rule.results > 1 else spare[0]) if spare and reuses else None
                found = self.step(*states, *rest) if out is None else self.step(*states, *rest, out=out)
                spare, made = made, tuple(found) if rule.results > 1 else (found,)
                count += 1
            states = [made[place] for place in places]
            if self.keep and count % self.keep == 0:
                for each, state in zip(kept, states, strict=True):
                    each.append(_copy(state))
            asked = rule.until is not None and (count % self.every == 0 or count == self.steps)
            if asked and bool(made[rule.until or 0]):
                break
        final = [_stacked(each) for each in kept] if self.keep else states if made else [_copy(each) for each in states]
        if rule.until is not None:
            return (*final, count)
        return final[0] if len(final) == 1 else tuple(final)

    def _stop(self, count: int, rule: Rule) -> int:
        """After how many steps something is looked at next."""
        looks = (self.every if rule.until is not None else 0, self.keep)
        return min([self.steps, *(count - count % each + each for each in looks if each)])


def iteration(
    step: Step, alternating: Alternate, rule: Callable[[], Rule], steps: Any, every: Any, keep: Any
) -> Iteration:
    """An iteration, of counts that make sense.

    Raises:
        TypeError: a count is no integer.
        ValueError: `every` or `keep` is not positive.
    """
    numbers = {"n": steps, "every": every, "keep": 0 if keep is None else keep}
    for name, value in numbers.items():
        if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
            raise TypeError(f"{name}={shown_value(value)}: expected an integer")
    for name, value in (("every", every), ("keep", 1 if keep is None else keep)):
        if index(value) < 1:
            raise ValueError(f"{name}={shown_value(value)}: expected a positive integer")
    return Iteration(step, alternating, rule, index(steps), index(every), index(numbers["keep"]))


def negative_steps(found: FunctionAnalysis, steps: int) -> Diagnostic:
    """TC618."""
    program = found.program
    message = f"`{program.name}` cannot be applied {steps} times"
    return Diagnostic(codes.NEGATIVE_STEPS, program.span, message, help="0 steps give the arguments back")


def _copy(state: Any) -> Any:
    """An array of its own; a number as an array of 0 dimensions."""
    for name in ("clone", "copy"):
        if hasattr(state, name):
            return getattr(state, name)()
    return np.array(state)


def _stacked(states: list[Any]) -> Any:
    """One array of NumPy with one more dimension; a list of other arrays."""
    return np.stack(states) if all(isinstance(each, np.ndarray) for each in states) else states


__all__ = ["Iteration", "Rule", "iteration", "negative_steps", "rule_of"]
