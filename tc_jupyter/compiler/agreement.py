"""Whether two results of a def agree: up to what the roundings of the def leave open, and otherwise exactly.

Comes in: a program with its ranges, the sizes and the arguments of a call. Goes out: a `Judge` of its results. Elements that differ
by no more than the last rounding agree. Of the others, those that differ most and some more are evaluated (`spread`), and may
differ by a multiple of what they move by when the roundings of the def are other ones. Integers and `bool` that differ must lie
where these roundings lead.

Worked example: `s +=! x(i) * y(i)` over 4096 elements of size 1, in `float32`. If all products have one sign, `s` is 4096 and moves
by about `200 * 4096 / 2**24`; if they cancel and `s` is 64, by about `27000 / 2**24`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tc_jupyter.program import DType, Program
from tc_jupyter.ranges import Ranges
from tc_jupyter.runtime.arrays import ArgumentProblem, host_array
from tc_jupyter.runtime.pairs import in_floats

from .spread import LEAST, UNIT, Moved, Spread, TooMuch

Array = npt.NDArray[Any]

TIMES = 2.0
"""By so many times its spread two results may differ."""
DECISION = 6
"""Where conditions decide, integers have a few values; where they have more, they are numbers that were rounded."""
ROUNDINGS = 32
"""Last roundings that two results may have besides."""
NO_NUMBERS = "OSUMm"
"""Kinds of arrays with other elements: objects, texts and times."""
FIRST = 16
"""So many elements are looked at first, then twice as many, and so on."""
MOST = 1 << 12
"""So many at most that differ most, differ most relative to their size, or are drawn at random."""
WORK = 1 << 22
"""Operations on elements that a judgement may take; it takes some hundredths of a second."""
PATIENCE = 384
"""As many times more it takes before it goes without: a second or two."""
MANY, OPERATIONS = 1 << 14, 32
"""Roundings that are allowed where a def is not known: of a long sum, and of the other operations."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Says whether two results of a call agree: arrays of any library, or tuples of them.

    Attributes:
        arguments: of the call, as they were given; their elements stay as they are while there is a judge.
        tf32: products of `float32` may be rounded before.
    """

    program: Program
    ranges: Ranges
    sizes: Mapping[str, int]
    arguments: Sequence[Any]
    tf32: bool = False
    kept: list[Spread] = field(default_factory=list["Spread"], compare=False, repr=False)

    def __call__(self, expected: Any, found: Any) -> bool:
        """Whether they agree."""
        return close(expected, found, self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out what was evaluated."""
        return Judge, (self.program, self.ranges, self.sizes, self.arguments, self.tf32)

    def dtype(self, number: int) -> DType:
        """The type of a result."""
        return self.program.tensor(self.program.results[number]).dtype

    def accepts(self, number: int, pair: _Floats | _Whole) -> bool:
        """Whether the elements of one result agree."""
        work = float(WORK)
        for looked, part in enumerate(_parts(pair)):
            try:
                moved = self._spread().of(self.program.results[number], part, work if looked else PATIENCE * work)
            except TooMuch:
                return looked > 0 or pair.usual()
            if not pair.led_to(part, moved).all():
                return False
            work = max(0.0, min(work, self._spread().budget.left))
        return True

    def _spread(self) -> Spread:
        if not self.kept:
            given = zip(self.program.parameters, self.arguments, strict=True)
            arrays = {name: _argument(value, self.program.tensor(name).dtype) for name, value in given}
            self.kept.append(Spread(self.program, self.ranges, self.sizes, arrays, self.tf32))
        return self.kept[0]


def close(expected: Any, found: Any, judge: Judge | None = None) -> bool:
    """Whether two results agree: arrays of any library, or tuples of them; without a judge their type decides."""
    if not isinstance(expected, tuple):
        return _close(0, expected, found, judge)
    several = cast("tuple[Any, ...]", expected)
    if not isinstance(found, (tuple, list)) or len(cast("Sequence[Any]", found)) != len(several):
        return False
    pairs = zip(several, cast("Sequence[Any]", found), strict=True)
    return all(_close(number, *pair, judge) for number, pair in enumerate(pairs))


def _close(number: int, expected: Any, found: Any, judge: Judge | None) -> bool:
    try:
        given = [np.asarray(host_array(value)) for value in (expected, found)]
        first, second = map(in_floats, given)
        # a complex number is no pair of floats
        if (
            first.shape != second.shape
            or given[0].ndim != given[1].ndim
            or any(each.dtype.kind in NO_NUMBERS for each in given)
        ):
            return False
        dtype = judge.dtype(number) if judge else DType(first.dtype.name)
        if not dtype.is_float and _is_rounded(first, second):
            return False
        pair = _Floats(dtype, first, second) if dtype.is_float else _Whole(first, second)
    except (ArgumentProblem, TypeError, ValueError):
        return False
    return pair.usual() if judge is None else judge.accepts(number, pair)


class _Floats:
    """Elements of two results, as doubles. NaN and infinities stand at the same places, but where a rounding decides about them."""

    def __init__(self, dtype: DType, first: Array, second: Array) -> None:
        self.dtype, self.first, self.second = (
            dtype,
            *(np.asarray(each, np.float64).reshape(-1) for each in (first, second)),
        )
        self.apart, self.unequal = _apart(self.first, self.second)
        self.open = np.flatnonzero(self.unequal | (self.apart > _last(self.first, dtype)))

    def led_to(self, part: Array, moved: Moved) -> Array:
        """Whether roundings may have led to both."""
        first, second = self.first[part], self.second[part]
        spread = _steady(moved.spread, np.maximum(_size(first), _size(second)))
        allowed = _last(first, self.dtype) + np.maximum(TIMES * spread, moved.reach)
        return moved.unsure | (~self.unequal[part] & (self.apart[part] <= allowed))

    def usual(self) -> bool:
        """Whether they agree where nothing is known but their type: they may be long sums of terms as large as the largest."""
        size, dtype = _size(self.first), self.dtype
        # what is stored in fewer bits than it is computed in may have been so before, too
        own = UNIT[dtype] if dtype.compute is not dtype else 0.0
        relative = UNIT[dtype.compute] * (OPERATIONS + MANY) + 4 * own
        allowed = (relative + 4 * UNIT[dtype]) * size + relative * float(np.max(size, initial=0.0)) + LEAST[dtype]
        return not self.unequal.any() and bool(np.all(self.apart <= allowed))


class _Whole:
    """Elements of two results that are integers or `bool`."""

    def __init__(self, first: Array, second: Array) -> None:
        self.first, self.second = first.reshape(-1), second.reshape(-1)
        self.unequal = self.first != self.second
        self.apart = np.abs(self.first.astype(np.float64) - self.second.astype(np.float64))
        self.open = np.flatnonzero(self.unequal)

    def led_to(self, part: Array, moved: Moved) -> Array:
        """Whether roundings may have led to both: each lies among the samples or, where these differ as floats do, is near them."""
        far = np.where(moved.different > DECISION, TIMES * moved.spread, 0.0)

        def reached(found: Array) -> Array:
            near = (far > 0) & (np.abs(found.astype(np.float64) - moved.middle) <= far)
            return near | ((found >= moved.low) & (found <= moved.high))

        return reached(self.first[part]) & reached(self.second[part])

    def usual(self) -> bool:
        """Whether they agree where nothing is known about the def."""
        return not self.open.size


def _is_rounded(first: Array, second: Array) -> bool:
    """Whether an integer of 64 bits is near a float that it does not equal: NumPy rounds it to compare them."""
    same = first == second
    for whole, other in ((first, second), (second, first)):
        if whole.dtype.kind in "iu" and other.dtype.kind == "f":
            inside = same & (other < float(np.iinfo(whole.dtype).max) + 1)
            exact = np.where(inside, other, 0).astype(whole.dtype) == whole
            return bool((same & ~(inside & exact)).any())
    return False


def _apart(first: Array, second: Array) -> tuple[Array, Array]:
    """By how much elements differ, and where one of them is no number and the other is not the same."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(first - second)
    odd = ~np.isfinite(apart)
    if not odd.any():
        return apart, odd
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    return np.where(odd, 0.0, apart), odd & ~same


def _last(first: Array, dtype: DType) -> Array:
    """What the last roundings of two results leave open."""
    of_storing = 2 * UNIT[dtype] if dtype.compute is not dtype else 0.0
    size = _size(first)
    return (of_storing + ROUNDINGS * UNIT[dtype.compute]) * size + 2 * LEAST[dtype]


def _steady(spread: Array, size: Array) -> Array:
    """The spread of elements of this size, but none that is small by accident."""
    some = size > 0
    usually = float(np.median(spread[some] / size[some])) if some.any() else 0.0
    return np.maximum(spread, np.minimum(usually * size, np.median(spread)))


def _size(array: Array) -> Array:
    """Absolute values of the numbers among the elements."""
    return np.where(np.isfinite(array), np.abs(array), 0.0)


def _parts(pair: _Floats | _Whole) -> Iterator[Array]:
    """Places in the order in which they are worth a look: by difference, by relative difference and at random, in turns."""
    places = pair.open
    if not places.size:
        return
    random = np.random.default_rng(0)
    far = np.where(pair.unequal[places], np.inf, pair.apart[places])
    own = np.abs(pair.first[places].astype(np.float64))
    relative = far / np.where(np.isfinite(own) & (own > 0), own, LEAST[DType.FLOAT32])
    yield places[np.unique([np.argmax(far), np.argmax(relative), *random.integers(0, places.size, FIRST - 2)])]
    mixed = random.permutation(places.size) if places.size <= MOST else random.integers(0, places.size, MOST)
    turns = np.stack([_largest(far), _largest(relative), mixed], 1).reshape(-1)
    _, once = np.unique(turns, return_index=True)
    order, begin, count = places[turns[np.sort(once)]], 0, 2 * FIRST
    while begin < order.size:
        yield order[begin : begin + count]
        begin, count = begin + count, 2 * count


def _largest(values: Array) -> Array:
    """Places of the largest values, `MOST` of them at most, the largest first."""
    found = np.argpartition(-values, MOST)[:MOST] if values.size > MOST else np.arange(values.size)
    return found[np.argsort(-values[found])]


def _argument(value: Any, dtype: DType) -> Array:
    """The elements of an argument; a number has the type of its parameter."""
    array = in_floats(np.asarray(host_array(value) if getattr(value, "ndim", 0) else value))
    return array if array.ndim else array.astype(dtype.value if dtype.compute is dtype else "float32")
