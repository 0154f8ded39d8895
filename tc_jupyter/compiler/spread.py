"""By how much elements of a result move when every rounding of a def is another one.

A def is evaluated in double precision at some elements of its results: once as it stands, and a few times with every operation
disturbed by a random error of the size of its rounding. What an element moves by is its spread. Whatever magnifies an error or lets
it cancel does so here, without a rule of its own: `sqrt` near 0, `log` near 1, `1/s` of a sum that cancels, the mean of a variance.

Comes in: a program, its ranges, the sizes and arguments of a call. Goes out: `Moved`, elements by their position in a result. Only
what they need is evaluated, and no more than a given amount of work.

Worked example: `v +=! (X(i) - m) * (X(i) - m)` moves by the square of the error of `m`, since the products with it cancel; the same
variance as `q - m*m` moves by twice the error of `m`, times `m`.

Source: Vignes, "A stochastic arithmetic for reliable scientific computation" (random roundings); Higham, "Accuracy and Stability of
Numerical Algorithms", sections 4.2 and 2.8 (errors of sums, and that they are usually as those of random roundings).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod

import numpy as np

from tc_jupyter.program import (
    FOLD_LEFT,
    FOLD_RIGHT,
    Binary,
    Call,
    DType,
    Expr,
    IndexVar,
    Program,
    Read,
    Size,
    Statement,
    at_part,
    children,
    component_of,
    keeps,
    walk,
    with_condition,
)
from tc_jupyter.ranges import Ranges
from tc_jupyter.ranges.interval import Box
from tc_jupyter.runtime.kernel import root_of

from .on_arrays import ON_ARRAYS, OPERATION, STORED, Array, OnArrays, numpy_type

UNIT = {DType.FLOAT16: 2.0**-11, DType.BFLOAT16: 2.0**-8, DType.FLOAT32: 2.0**-24, DType.FLOAT64: 2.0**-53}
"""Largest relative error of one rounding."""
TF32 = 2.0**-11
LEAST = {DType.FLOAT16: 2.0**-25, DType.BFLOAT16: 2.0**-126, DType.FLOAT32: 2.0**-126, DType.FLOAT64: 2.0**-1022}
"""What may become 0: numbers of 32 and 64 bits that are not normal, and half the smallest `float16`."""
SAMPLES = 16
"""Of two, one is disturbed in the opposite direction of the other: one direction alone may move nothing, as in `max(x, 0)`."""
LANE = 1 << 14
"""Longer sums are kept in several partial sums, or combined pairwise."""
CHUNK = 1 << 16
"""Elements that are evaluated at a time."""
SLOW, KEPT = 50, 80
"""As many operations take as long as a function that is called for one element after another, and as a value that is kept."""
TURN = 1 << 16
"""As many operations take as long as making the elements of one turn of a recurrence, however few they are."""
FULL = 1 << 27
"""Where a sum, or a largest or smallest term, takes more operations than this, only some of its terms are disturbed."""
LARGEST, OTHERS = 256, 64
"""Those are one of so many, the largest ones, and one of so many others, at random; each of these stands for those left out."""
_LEVELS = np.concatenate([np.linspace(-2, -0.5, 128), np.linspace(0.5, 2, 128)])
"""Random errors: of sizes that differ little, so that few samples are accidents, and large: some results move only then."""
ORDERS = 3.0
"""Units by which another order of some additions may disturb them, of the root of the squares of what is added."""
_PICKED: dict[str, Callable[[Array], Array]] = {"+": np.abs, "max": np.positive, "min": np.negative}
"""Reductions of which some terms tell enough, and what is large for those that tell most."""
_COMBINED: dict[str, np.ufunc] = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}


class Budget:
    """As many operations on an element as may still be done."""

    def __init__(self) -> None:
        self.left = 0.0

    def pay(self, work: float) -> None:
        """Take work from it.

        Raises:
            TooMuch: there is not as much.
        """
        self.left -= work
        if self.left < 0:
            raise TooMuch


class TooMuch(Exception):
    """The elements need more work than is allowed, or something that cannot be evaluated here."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Elements of a result.

    Attributes:
        spread: the root of the mean square of what every element moves by; samples that are no numbers are left out.
        reach: by how much the sample moved that moved most: a condition that few roundings change shows here.
        middle, low, high: the sample that is not disturbed, the smallest and the largest one.
        different: how many samples have a value of their own.
        unsure: whether some of the samples are numbers and others are not.
    """

    spread: Array
    reach: Array
    middle: Array
    low: Array
    high: Array
    different: Array
    unsure: Array

    @staticmethod
    def of(samples: Array) -> Moved:
        """What samples say, the first of which is not disturbed."""
        doubles = samples.astype(np.float64)
        usual = np.isfinite(doubles)
        both = usual[1:] & usual[0]
        deviations = np.where(both, doubles[1:] - doubles[0], 0.0)
        spread = np.sqrt((deviations * deviations).sum(0) / np.maximum(1, np.count_nonzero(both, axis=0)))
        reach = np.abs(deviations).max(0, initial=0.0)
        unsure = np.asarray(usual.any(0) & ~usual.all(0))
        in_order = np.sort(samples, axis=0)
        different = 1 + np.count_nonzero(in_order[1:] != in_order[:-1], axis=0)
        return Moved(spread, reach, doubles[0], in_order[0], in_order[-1], different, unsure)


class _Written:
    """Elements of a tensor after one of its statements, of those that were asked for."""

    def __init__(self, size: int) -> None:
        self.slots = np.zeros(size, np.int32)  # 0: not evaluated
        self.values: Array = np.zeros((1, 0))
        self.exact: Array = np.zeros((1, 0))
        self.count = 0

    def missing(self, positions: Array) -> Array:
        """Those of the positions that were not evaluated, each once, in order."""
        new = positions[self.slots[positions] == 0]
        if (new[1:] > new[:-1]).all():
            return new
        if new.size * 4 < self.slots.size:
            return np.unique(new)
        asked = np.zeros(self.slots.size, np.bool_)
        asked[new] = True
        return np.flatnonzero(asked)

    def at(self, places: Array, exact: bool = False) -> Array:
        """What is kept at these places, of the same samples if there are several."""
        values = self.exact if exact else self.values
        if places.shape[0] == 1:
            return values[:, places[0]]
        sample = np.arange(places.shape[0])[:, None, None] if values.shape[0] > 1 else 0
        return values[sample, places]

    def add(self, positions: Array, stored: Array, unrounded: Array) -> None:
        """Keep what was evaluated: all samples of every position."""
        total = self.count + positions.size
        self.values = _grown(self.values, self.count, total, stored)
        self.exact = self.values if stored is unrounded else _grown(self.exact, self.count, total, unrounded)
        self.slots[positions] = np.arange(self.count + 1, total + 1)
        self.count = total


def _grown(kept: Array, count: int, total: int, new: Array) -> Array:
    """An array with room for `total` elements of every sample, and the new ones at its end."""
    samples = max(kept.shape[0], new.shape[0])
    if total > kept.shape[1] or samples > kept.shape[0]:
        larger = np.empty((samples, max(total, 2 * count)), new.dtype)
        larger[:, :count] = kept[:, :count]
        kept = larger
    kept[:, count:total] = new
    return kept


class Spread:
    """Evaluates elements of a def. Every array has the axes sample, reduction, output; a sample axis of 1 is exact."""

    def __init__(
        self,
        program: Program,
        ranges: Ranges,
        sizes: Mapping[str, int],
        arrays: Mapping[str, Array],
        tf32: bool = False,
        budget: Budget | None = None,
        samples: int = SAMPLES,
    ) -> None:
        self.program = replace(program, statements=tuple(map(with_condition, program.statements)))
        self.ranges, self.sizes, self.tf32, self.samples = ranges, sizes, tf32, samples
        self.arrays = {name: np.ascontiguousarray(array).reshape(-1) for name, array in arrays.items()}
        self.written: dict[int, _Written] = {}
        self.random = np.random.default_rng(0)
        self.budget = budget or Budget()
        self.writers: dict[str, list[int]] = {}
        for number, statement in enumerate(program.statements):
            self.writers.setdefault(root_of(program, statement.target), []).append(number)

    def of(self, name: str, positions: Array, work: float) -> Moved:
        """How elements of a result move.

        Args:
            positions: of the elements in row-major order.
            work: as many operations on one element of one sample, at most.

        Raises:
            TooMuch: this is not enough; what was evaluated so far is kept.
        """
        self.budget.left = work
        with np.errstate(all="ignore"):
            return Moved.of(
                self.content(name, len(self.program.statements), positions[None, None, :], exact=True)[:, 0]
            )

    # --- tensors

    def box(self, name: str) -> list[tuple[int, int]]:
        """Lower and upper end of every dimension of a tensor."""
        box: Box = self.ranges.boxes[name]
        return [(low.evaluate(self.sizes), high.evaluate(self.sizes)) for low, high in box.bounds]

    def content(self, name: str, before: int, positions: Array, exact: bool = False) -> Array:
        """Elements of a tensor as they are before a statement; `exact`: not rounded to the type that they are stored in."""
        root = root_of(self.program, name)
        writers = [number for number in self.writers.get(root, ()) if number < before]
        if not writers:
            array = self.arrays.get(root)
            if array is None or not array.size:
                return np.zeros(positions.shape, np.float64 if self.program.tensor(root).dtype.is_float else np.int64)
            found = array[np.clip(positions, 0, array.size - 1)]
            return found if found.dtype.kind in "iub" else found.astype(np.float64)
        written = self.written.get(writers[-1])
        if written is None:
            size = prod(max(0, high - low) for low, high in self.box(root))
            written = self.written[writers[-1]] = _Written(size)
        if not written.slots.size:
            return np.zeros(positions.shape)
        positions = np.clip(positions, 0, written.slots.size - 1)
        missing = written.missing(positions.reshape(-1))
        if missing.size:
            self._evaluate(writers[-1], missing, written)
        return written.at(written.slots[positions] - 1, exact)

    def _evaluate(self, number: int, positions: Array, written: _Written) -> None:
        """What the statement leaves at these positions, a part at a time."""
        statement = self.program.statements[number]
        if keeps(statement) and statement.reduction_indices:
            raise TooMuch  # every element would look for its point
        if statement.block:
            raise TooMuch  # its statements need each other
        count = prod(high - low for low, high in self.reduced(statement))
        turns = self._turns(statement, positions, written) if statement.order else [positions]
        size = sum(turn.size for turn in turns)
        some = self._of_some_terms(number, count * size)
        self.budget.pay((_Point(self, number, some).cost * max(1, count) + self.kept) * size + TURN * (len(turns) - 1))
        step = max(1, CHUNK // max(1, min(LANE, count)))
        for turn in turns:
            for first in range(0, turn.size, step):
                part = turn[first : first + step]
                written.add(part, *_Point(self, number, some).left_at(part))

    def _turns(self, statement: Statement, positions: Array, written: _Written) -> list[Array]:
        """The positions that a statement which reads its own elements makes in turns, so that these are there: of whole rows, or
        of all elements where rows need each other.
        """
        box, ordered = self.box(statement.target), dict(statement.order)
        ends = [self.range(statement, index.name) for index in statement.output_indices]
        asked = np.unravel_index(positions, [high - low for low, high in box])
        places = list(enumerate(statement.output_indices))
        apart = all(
            read.indices[place] == IndexVar(index.name)
            for read in statement.self_reads
            for place, index in places
            if index.name not in ordered
        )
        axes = [
            np.unique(asked[place]) if apart and index.name not in ordered else np.arange(*ends[place]) - box[place][0]
            for place, index in places
        ]
        self.budget.pay(prod(map(len, axes)))
        every = np.ravel_multi_index(np.ix_(*axes), [high - low for low, high in box]).reshape(-1)
        every = np.union1d(every, positions)
        every = every[written.slots[every] == 0]
        where = np.unravel_index(every, [high - low for low, high in box])
        names = [index.name for index in statement.output_indices]
        turns = np.zeros(every.size, np.int64)
        for name, way in ordered.items():
            low, high = box[names.index(name)]
            at = where[names.index(name)]
            turns = turns * (high - low) + (at if way > 0 else high - low - 1 - at)
        every = every[np.argsort(turns, kind="stable")]
        return np.split(every, np.flatnonzero(np.diff(np.sort(turns))) + 1)

    def made(self, number: int, positions: Array) -> Array:
        """Elements of what a statement makes in turns: those that are made, and the others as they were before."""
        before, written = self.content(self.program.statements[number].target, number, positions), self.written[number]
        slots = written.slots[np.clip(positions, 0, written.slots.size - 1)]
        if not written.count:
            return before
        values = written.at(np.maximum(slots, 1) - 1)
        return np.where(slots > 0, values, before)

    def _of_some_terms(self, number: int, terms: int) -> bool:
        """Whether only some terms of a reduction are disturbed, since all of them would take too long."""
        point = _Point(self, number)
        computed = sum(name not in self.arrays for name in point.statement.tensors_read)
        return point.picks and (point.cost + computed * self.kept) * terms > FULL

    @property
    def kept(self) -> float:
        """What it costs to keep an element."""
        return KEPT * (self.samples + 1)

    @cached_property
    def plain(self) -> Spread:
        """The same with nothing disturbed."""
        return Spread(self.program, self.ranges, self.sizes, self.arrays, self.tf32, self.budget, samples=0)

    def range(self, statement: Statement, index: str) -> tuple[int, int]:
        """The range of an index."""
        found = self.ranges.range(statement.name, index)
        if found.lower is None or found.upper is None:
            raise TooMuch
        return found.lower.evaluate(self.sizes), found.upper.evaluate(self.sizes)

    def reduced(self, statement: Statement) -> list[tuple[int, int]]:
        """The ranges of the reduction indices."""
        own = [self.range(statement, index.name) for index in statement.reduction_indices]
        return [(low, max(low, high)) for low, high in own]

    # --- what a statement needs

    def disturbed(self, values: Array, relative: float, absolute: Array | float = 0.0) -> Array:
        """All samples of values that have these errors; the first one stays as it is."""
        if not self.samples:
            return values
        result = np.empty((self.samples + 1, *values.shape[1:]))
        half = self.samples // 2
        noise = _LEVELS[self.random.integers(0, _LEVELS.size, (half, *values.shape[1:]), np.uint8)]
        result[:] = values
        size = np.abs(values[:1]) * relative + absolute
        noise *= np.where(np.isfinite(size), size, 0.0)
        result[1 : half + 1] += noise
        result[half + 1 :] -= noise
        return result

    def rounded(self, values: Array, dtype: DType, units: float, exact: bool = True) -> Array:
        """Values after a rounding; `exact`: it changes none that are exact and have few enough bits."""
        if not dtype.is_float or not self.samples:
            return values
        if values.shape[0] > 1 or not exact:
            return self.disturbed(values, units * UNIT[dtype])
        stays = _fits(values, dtype)
        return (
            values
            if stays.all()
            else self.disturbed(values, 0.0, np.where(stays, 0.0, np.abs(values) * units * UNIT[dtype]))
        )


@dataclass(frozen=True, slots=True)
class _Sum:
    """What is known of sums of terms that are not disturbed.

    Attributes:
        total: all samples of every sum.
        size, squares: sums of the absolute values of the terms, and of their squares.
        whole: whether all terms are whole numbers, and no sample differs.
        tried: the sum in one accumulator of `float32`, one term after the other; only a try tells what many equal terms do there.
    """

    total: Array
    size: Array
    squares: Array
    whole: bool
    tried: Array

    @staticmethod
    def of(before: _Sum | None, terms: Array) -> _Sum:
        """Sums over the second axis, and of what is before."""
        first = terms[0]
        total, size = terms.sum(1, keepdims=True), np.abs(first).sum(0)
        squares = np.einsum("rp,rp->p", first, first)
        whole = terms.shape[0] == 1 and bool(_whole(first).all())
        if before is None:
            return _Sum(total, size, squares, whole, np.add.accumulate(first, axis=0, dtype=np.float32)[-1])
        tried = np.add.accumulate(np.concatenate([before.tried[None], first]), axis=0, dtype=np.float32)[-1]
        return _Sum(before.total + total, before.size + size, before.squares + squares, before.whole and whole, tried)

    def is_exact(self, unit: float) -> bool:
        """Whether no order of the sum rounds anything."""
        return self.whole and bool((self.size * unit < 1).all())


class _Point(OnArrays):
    """Evaluates one statement at some elements of its target; `some`: with errors in some of the terms only."""

    def __init__(self, spread: Spread, number: int, some: bool = False) -> None:
        self.spread, self.number, self.some = spread, number, some
        self.statement = spread.program.statements[number]
        self.dtype = spread.program.tensor(self.statement.target).dtype
        super().__init__()
        self.indices: dict[str, Array] = {}
        self.sums = self.statement.operator == "+" and self.dtype.is_float and bool(self.statement.reduction_indices)
        self.cost, self.picks = self._cost()
        self.chains = {top: terms for top, terms in _chains(self.statement.value) if not self.keeps(top)}

    def _cost(self) -> tuple[float, bool]:
        """Operations on an element that a term takes, those on its samples counted each, and whether less of them can do."""
        value = self.statement.value
        nodes = list(walk(value))
        rare = sum(isinstance(node, Call) and node.function not in ON_ARRAYS for node in nodes)
        computed = [
            node for node in nodes if node.dtype.is_float and isinstance(node, Binary | Call) and not self.keeps(node)
        ]
        given = all(name in self.spread.arrays for name in self.statement.tensors_read)
        plain = float(len(nodes) + SLOW * rare)
        if given and not computed:
            return plain, False
        picks = self.dtype.is_float and self.statement.operator in _PICKED and bool(self.statement.reduction_indices)
        each = 1 / LARGEST + 1 / OTHERS if self.some else 1.0
        return plain * (self.some + each * (self.spread.samples + 1)), picks

    def keeps(self, expr: Expr) -> bool:
        """Whether the rounding of this operation is one of the terms of a sum, and part of what the sum is disturbed by."""
        return self.sums and expr is self.statement.value

    def left_at(self, positions: Array) -> tuple[Array, Array]:
        """What the statement leaves there, as it is stored and before it is rounded to that."""
        statement, spread = self.statement, self.spread
        box = spread.box(statement.target)
        where = np.unravel_index(positions, [high - low for low, high in box]) if box else ()
        inside = np.ones(positions.size, np.bool_)
        for index, (low, _), offset in zip(statement.output_indices, box, where, strict=True):
            value = offset + low
            first, last = spread.range(statement, index.name)
            inside &= (value >= first) & (value < last)
            self.indices[index.name] = value[None, None, :]
        if inside.all():
            return self._stored(positions)
        before = spread.content(statement.target, self.number, positions[None, None, :])[:, 0]
        if not inside.any():
            return before, before
        self.indices = {name: value[:, :, inside] for name, value in self.indices.items()}
        parts = self._stored(positions[inside])
        merged = [np.broadcast_to(before, (max(len(before), len(part)), positions.size)).copy() for part in parts]
        for all_of_them, part in zip(merged, parts, strict=True):
            all_of_them[:, inside] = part
        return merged[0], merged[1]

    def _stored(self, positions: Array) -> tuple[Array, Array]:
        value = self._combined(positions)[:, 0]
        if not self.dtype.is_float:
            value = value.astype(numpy_type(self.dtype))
        if self.dtype.compute is self.dtype:
            return value, value
        return self.spread.rounded(value, self.dtype, STORED), value

    def _combined(self, positions: Array) -> Array:
        """The value of every element, combined over the reduction indices and with what was there before."""
        statement, spread = self.statement, self.spread
        own = spread.reduced(statement)
        count = prod(high - low for low, high in own)
        if statement.operator == "fold":
            return self._folded(positions, count, own)
        if not own:
            total = self._value(np.arange(1), positions.size, own)
        elif not count:
            total = self._nothing(positions.size)
        elif self.some:
            total = self._of_some(positions.size, count, own)
        else:
            parts = (self._value(numbers, positions.size, own) for numbers in _lanes(count))
            total = self._summed(parts, count) if self.sums else self._reduced(parts, count)
        if not statement.accumulate:
            return total
        root = root_of(spread.program, statement.target)
        if spread.writers[root][0] == self.number:
            return self._two(self._nothing(positions.size), total)
        before = spread.content(statement.target, self.number, positions[None, None, :])
        return self._two(before, total)

    def _value(self, terms: Array, points: int, own: Sequence[tuple[int, int]]) -> Array:
        """The right side at some values of the reduction indices, as array of all of these and all points."""
        numbers = np.unravel_index(terms, [high - low for low, high in own]) if own else ()
        for index, number, (low, _) in zip(self.statement.reduction_indices, numbers, own, strict=True):
            self.indices[index.name] = (number + low)[None, :, None]
        self.known = {}
        value = self.of(self.statement.value)
        return np.broadcast_to(value, (value.shape[0], terms.size, points))

    def _of_some(self, points: int, count: int, own: Sequence[tuple[int, int]]) -> Array:
        """A sum or an extreme of all terms, and what it moves by as some of them say.

        One of the others stands for as many: too much for errors that do not depend on each other, but these are little beside the
        errors of the additions of a sum as long.
        """
        plain = _Point(self.spread.plain, self.number)
        plain.indices = dict(self.indices)
        sums: _Sum | None = None
        found: list[Array] = []
        for numbers in _lanes(count):
            terms = plain._value(numbers, points, own)
            picked, weights = self._picked(terms[0])
            some = self._value(numbers[picked], points, own)
            if self.sums:
                sums = _Sum.of(sums, terms)
                some = (some - some[:1]) * weights[:, None]
            found.append(
                some.sum(1, keepdims=True)
                if self.sums
                else _COMBINED[self.statement.operator].reduce(some, 1, keepdims=True)
            )
        if sums is None:
            return reduce(_COMBINED[self.statement.operator], found)
        return self._with_errors(sums, count, sums.total + sum(found))

    def _picked(self, terms: Array) -> tuple[Array, Array]:
        """The largest terms of every point, or the smallest ones if those are looked for, some others, and what each stands for."""
        keys = _PICKED[self.statement.operator](terms)
        keys = np.where(np.isnan(keys), np.inf, keys)
        count = len(terms)
        largest = np.unique(np.argpartition(-keys, count // LARGEST, axis=0)[: count // LARGEST + 1])
        others = np.delete(np.arange(count), largest)
        some = self.spread.random.permutation(others)[: others.size // OTHERS + 1]
        weights = np.repeat([1.0, others.size / max(1, some.size)], [largest.size, some.size])
        return np.concatenate([largest, some]), weights

    def _nothing(self, points: int) -> Array:
        """What a reduction over an empty range gives, and what one starts from that nothing was written before."""
        dtype = self.dtype
        low, high = (-np.inf, np.inf) if dtype.is_float else dtype.limits
        value = {"+": 0, "*": 1, "min": high, "max": low}[self.statement.operator]
        return np.full((1, 1, points), value, numpy_type(dtype.compute))

    def _two(self, left: Array, right: Array) -> Array:
        operator = self.statement.operator
        result = _COMBINED[operator](left, right)
        return self.spread.rounded(result, self.dtype.compute, 1.0) if operator in "+*" else result

    def _folded(self, positions: Array, count: int, own: Sequence[tuple[int, int]]) -> Array:
        """What a fold leaves: all components of its state are combined, and those at the positions are the answer."""
        statement, part = self.statement, self.statement.part
        if count > LANE or statement.combine is None:
            raise TooMuch
        here = self.indices.get(part)
        components = range(self.spread.range(statement, part)[1] if part else 1)
        totals: list[Array] = []
        values: list[Array] = []
        for k in components:
            if part:
                self.indices[part] = np.full((1, 1, 1), k, np.int64)
            nothing = np.zeros((1, 0, positions.size))
            values.append(self._value(np.arange(count), positions.size, own) if count else nothing)
            if statement.initialize and statement.identity is not None:
                self.known = {}
                totals.append(self.of(statement.identity))
            else:
                totals.append(self.spread.content(statement.target, self.number, positions[None, None, :]))
        functions = [at_part(statement.combine, part, k) if part else statement.combine for k in components]
        for point in range(count):
            sides = {FOLD_LEFT: totals, FOLD_RIGHT: [each[:, point : point + 1] for each in values]}
            reads = {node for function in functions for node in walk(function) if isinstance(node, Read)}
            self.known = {read: sides[read.tensor][component_of(read)] for read in reads if read.tensor in sides}
            totals = [self.of(function) for function in functions]
        if here is None:
            return totals[0]
        self.indices[part] = here
        shape = (max(len(each) for each in totals), 1, positions.size)
        return np.choose(np.broadcast_to(here, shape), [np.broadcast_to(each, shape) for each in totals])

    def _reduced(self, parts: Iterator[Array], count: int) -> Array:
        """The terms combined: whole numbers, a product, or the largest or smallest one."""
        combined = _COMBINED[self.statement.operator]
        result: Array = reduce(
            combined, (combined.reduce(terms, axis=1, keepdims=True, dtype=terms.dtype) for terms in parts)
        )
        if self.statement.operator != "*":
            return result
        return self.spread.rounded(result, self.dtype.compute, OPERATION * count**0.5, exact=count == 1)

    def _summed(self, parts: Iterator[Array], count: int) -> Array:
        """A sum: roundings in all directions, those that lean to one side, and the cancellation of the terms."""
        sums = _Sum.of(None, next(parts))
        for terms in parts:
            sums = _Sum.of(sums, terms)
        return self._with_errors(sums, count, sums.total)

    def _with_errors(self, sums: _Sum, count: int, total: Array) -> Array:
        unit = UNIT[self.dtype.compute]
        if sums.is_exact(unit) and bool((total == sums.total).all()):
            return sums.total
        own, squares = np.abs(sums.total[0, 0]), np.sqrt(sums.squares)
        error = unit * ((count**0.5 / 2) * (own + squares) + min(count, LANE) / 32 * own + OPERATION * sums.size)
        if self.dtype.compute is DType.FLOAT32:
            error = error + 2 * np.abs(sums.tried - sums.total[0, 0])
        if self.spread.tf32 and self.dtype is DType.FLOAT32:
            error = error + 2 * TF32 * (own + squares)
        return self.spread.disturbed(total, 0.0, error)

    # --- expressions

    def _binary(self, expr: Binary) -> Array:
        """As written; the last addition of several also has the errors of other orders, whose sums on the way may be larger."""
        result = super()._binary(expr)
        terms = self.chains.get(expr)
        if terms is None or len(result) == 1:  # nothing is rounded
            return result
        squares = sum(self.of(term)[:1] ** 2 for term in terms)
        return self.spread.disturbed(result, 0.0, ORDERS * UNIT[expr.dtype.compute] * np.sqrt(squares))

    def leaf(self, expr: Size | IndexVar | Read) -> Array:
        match expr:
            case Size():
                return np.full((1, 1, 1), self.spread.sizes[expr.name], np.int64)
            case IndexVar():
                return self.indices[expr.name]
            case Read() if expr in self.statement.self_reads:
                return self.spread.made(self.number, self._positions(expr))
            case Read():
                return self.spread.content(expr.tensor, self.number, self._positions(expr))

    def rounded(self, values: Array, dtype: DType, units: float, exact: bool = True) -> Array:
        return self.spread.rounded(values, dtype, units, exact)

    def _positions(self, read: Read) -> Array:
        """Positions of the elements in row-major order; those outside, which a condition leaves out, are some others."""
        result: Array = np.zeros((1, 1, 1), np.int64)
        for subscript, (low, high) in zip(read.indices, self.spread.box(read.tensor), strict=True):
            result = result * (high - low) + (self.of(subscript).astype(np.int64) - low)
        return result


def _chains(value: Expr) -> Iterator[tuple[Binary, tuple[Expr, ...]]]:
    """The last additions of three or more floats, and these: `(a + b) - c` of `((a + b) - c) * d`."""
    waiting = [value]
    while waiting:
        expr = waiting.pop()
        terms = tuple(_terms(expr))
        if isinstance(expr, Binary) and len(terms) > 2:
            yield expr, terms
        waiting += terms if terms != (expr,) else children(expr)


def _terms(expr: Expr) -> Iterator[Expr]:
    """What is added or subtracted; an expression is its only term where it is neither."""
    if isinstance(expr, Binary) and expr.op in ("+", "-") and expr.dtype.is_float:
        yield from _terms(expr.left)
        yield from _terms(expr.right)
    else:
        yield expr


def _lanes(count: int) -> Iterator[Array]:
    """The numbers of terms that are summed at a time."""
    return (np.arange(first, min(count, first + LANE)) for first in range(0, count, LANE))


def _whole(values: Array) -> Array:
    return values == np.rint(values)


def _fits(values: Array, dtype: DType) -> Array:
    """Whether numbers are unchanged by rounding; of doubles, which were rounded already, only whole numbers are sure to be."""
    if dtype is DType.FLOAT64:
        return _whole(values) & (np.abs(values) < 1 / UNIT[dtype])
    mantissa, _ = np.frexp(values)
    return _whole(mantissa / UNIT[dtype]) | ~np.isfinite(values)
