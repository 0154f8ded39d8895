"""Sizes of a picture: which there are, small ones for which the conditions hold, and numbers for everything that depends on them.

Worked example: for `conv(float(N) B, float(K) W)`, `example_sizes` gives `{"N": 8, "K": 5}` or the first such pair that fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from tc_jupyter.compiler import FunctionAnalysis
from tc_jupyter.compiler.cost import cost_of
from tc_jupyter.diagnostics import Diagnostic
from tc_jupyter.ranges.at_call import Bind, make_bind

from .picture import Control, as_integer, refused_number

LARGEST = 10**9
_TRIED = (8, 5, 3, 12, 2, 1)
_FEWER = (6, 3, 1)
_MOST_TRIES = 500
_MOST_DOUBLED = 24
_LONGEST, _LARGEST_BYTES = 3e8, 64e6
"""Operations and bytes of a call that is measured by default: milliseconds, and more than caches hold."""


@dataclass(frozen=True, slots=True)
class SizeNames:
    """Names that take part in ranges: sizes, and scalars that bounds use."""

    found: FunctionAnalysis
    bind: Bind
    names: tuple[str, ...]

    def problem(self, sizes: Mapping[str, int]) -> Diagnostic | None:
        """What a call with these sizes would refuse."""
        answer = self.bind(dict(sizes), True)
        return answer if isinstance(answer, Diagnostic) else None

    def refusal(self, sizes: Mapping[str, int]) -> str:
        """What a call with these sizes would say instead of computing, as a sentence; nothing where it would compute."""
        problem = self.problem(sizes)
        return (
            "" if problem is None else f"a call with these sizes is refused ({problem.code.number}): {problem.message}"
        )

    def all_numbers(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes and the extents of computed tensors (`T.0`) that follow."""
        known = dict(sizes)
        ranges = self.found.ranges
        for name, value in {**ranges.sizes, **self.found.conditions.definitions}.items():
            if name not in known:
                known[name] = value.evaluate(known)
        return known

    def ends(self, name: str, present: int = 0) -> tuple[int, int]:
        """The least and the largest number that a control may send for a name; Python may have given one further out."""
        program, most = self.found.program, max(LARGEST, abs(present))
        low, high = (0, most) if name in program.sizes else program.tensor(name).dtype.limits
        return max(low, -most), min(high, most)

    def controls(self, sizes: Mapping[str, int]) -> tuple[Control, ...]:
        """One slider per name."""
        high = 32 if len(self.names) <= 3 else 16
        found: list[Control] = []
        for name in self.names:
            size, most = sizes[name], self.ends(name, sizes[name])[1]
            found.append(Control(f"size:{name}", "size", name, size, high=min(most, max(high, size * 2))))
        return tuple(found)


def size_names(found: FunctionAnalysis) -> SizeNames:
    """The names of a def."""
    bind = make_bind(found.program, found.ranges, found.conditions)
    return SizeNames(found, bind, tuple(dict.fromkeys([*found.program.sizes, *bind.names])))


def example_sizes(known: SizeNames, given: Mapping[str, int] | None = None) -> dict[str, int]:
    """Small sizes for which the conditions hold and ranges have two values or more, as far as trying finds some."""
    fixed = {name: value for name, value in (given or {}).items() if name in known.names}
    open_names = [name for name in known.names if name not in fixed]
    tried = _TRIED if len(open_names) <= 3 else _FEWER
    first = {name: fixed.get(name, tried[0]) for name in known.names}
    fallback: dict[str, int] | None = None
    for count, values in enumerate(product(tried, repeat=len(open_names))):
        if count >= _MOST_TRIES:
            break
        sizes = first | dict(zip(open_names, values, strict=True))
        shortest = _shortest(known, sizes) if known.problem(sizes) is None else 0
        if shortest > 1:
            return sizes
        fallback = sizes if fallback is None and shortest == 1 else fallback
    return fallback or first


def realistic_sizes(known: SizeNames, given: Mapping[str, int] | None = None) -> dict[str, int]:
    """Sizes worth a measurement: the small ones, doubled together as long as the conditions hold and a call stays short."""
    fixed = {name: value for name, value in (given or {}).items() if name in known.names}
    found = example_sizes(known, given)
    cost = cost_of(known.found.program, known.found.ranges)
    for _ in range(_MOST_DOUBLED):
        larger = {
            name: value if name in fixed else min(2 * value, known.ends(name)[1]) for name, value in found.items()
        }
        if larger == found or known.problem(larger) is not None:
            return found
        try:
            counts = cost.at(known.all_numbers(larger))
        except (KeyError, ValueError, ArithmeticError):
            return found
        if counts.flops is None or counts.bytes is None or counts.flops > _LONGEST or counts.bytes > _LARGEST_BYTES:
            return found
        found = larger
    return found


def _shortest(known: SizeNames, sizes: Mapping[str, int]) -> int:
    """The smallest extent of an index; 0 where one is not known."""
    numbers = known.all_numbers(sizes)
    ends = [(r.lower, r.upper) for found in known.found.ranges.indices.values() for r in found]
    known_ends = [(low, high) for low, high in ends if low is not None and high is not None]
    if len(known_ends) < len(ends):
        return 0
    return min((high.evaluate(numbers) - low.evaluate(numbers) for low, high in known_ends), default=2)


def read_sizes(known: SizeNames, present: Mapping[str, int], values: Mapping[str, Any]) -> tuple[dict[str, int], str]:
    """New sizes from controls, and what is wrong with what was typed; wrong values change nothing."""
    sizes, wrong = dict(present), ""
    for name in known.names:
        if f"size:{name}" not in values:
            continue
        number = as_integer(values[f"size:{name}"])
        lowest, highest = known.ends(name, present[name])
        if number is None or not lowest <= number <= highest:
            wrong = refused_number(f"`{name}`", lowest, highest, values[f"size:{name}"])
        else:
            sizes[name] = number
    return sizes, wrong
