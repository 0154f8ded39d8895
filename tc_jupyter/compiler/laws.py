"""Whether a reducer may combine in any order and in parts: tried on random operands where it is defined.

Points are combined in parts, and parts with each other. So `f(f(a, b), c)` must be `f(a, f(b, c))`, `f(a, b)` must be `f(b, a)`,
and `f(a, e)` must be `a` for the identity `e`: TC247 shows operands for which it is not. Operands are what values become (`with`),
and what some of them are together; the identity, infinite numbers and NaN are always among them.

Floats are compared with the tolerance of their type. Where an operand is infinite, a result without a value agrees with every
other, and an operand with a NaN is unknown as a whole: the mean of numbers one of which is infinite need not be the same number in
every order.

Worked example: `reduce mean(float a, float b) = (a + b)/2 from 0` is not associative: 0, 0 and 1 are 0.5, or 0.25.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Span, codes
from tc_jupyter.program import (
    FOLD_LEFT,
    FOLD_RIGHT,
    Call,
    Const,
    DType,
    Expr,
    Program,
    Read,
    Reducer,
    component_of,
    int64,
    lifted,
    walk,
)

from .on_arrays import ON_ARRAYS, Array, OnArrays, numpy_type

TRIPLES = 1000
FEWEST = 32
"""Triples that are always tried; of long functions not more, for a cell is looked at while it is written."""
WORK = 20_000_000
"""Operations on numbers that all triples may take; one of a function that takes no arrays counts as `SLOW`."""
SLOW = 50
TOLERANCE = {DType.FLOAT16: 1e-2, DType.BFLOAT16: 5e-2, DType.FLOAT32: 1e-4, DType.FLOAT64: 1e-9}
"""By how much results may differ, relative to the largest number among them and their operands."""

State = Sequence[Array]
"""Components of many operands."""


def broken_law(program: Program) -> Diagnostic | None:
    """TC247 for the program of a reducer; `None` where it keeps all laws."""
    assert program.reducer is not None
    with np.errstate(all="ignore"):
        values = program.statements[0].value.span | program.statements[-1].value.span
        return _Laws(program.reducer).broken(values)


def without_broken_folds(program: Program) -> Program:
    """The program with folds one after the other where their function and what they begin with keep not all laws.

    `fold(f, neutral)` of `%%sac` says that they do; a cell where they do not is no mistake, but its folds are not taken apart.
    """
    folds = [each for each in program.statements if each.combine is not None and not each.initialize]
    wrong = {each.name for each in folds if each.identity is not None and not _keeps_laws(each.combine, each.identity)}
    if not wrong:
        return program
    kept = (replace(each, identity=None) if each.name in wrong else each for each in program.statements)
    return replace(program, statements=tuple(kept))


@lru_cache(maxsize=256)
def _keeps_laws(combine: Expr | None, identity: Expr) -> bool:
    if combine is None or not isinstance(identity, Const):
        return False
    found = Reducer("fold", (identity.dtype,), (combine,), (identity,))
    try:
        with np.errstate(all="ignore"):
            return _Laws(found).broken(NO_SPAN) is None
    except KeyError:  # of something else than its operands
        return False


class _Laws:
    def __init__(self, reducer: Reducer) -> None:
        self.reducer = reducer
        nodes = [node for value in reducer.combine for node in walk(value)]
        slow = sum(isinstance(node, Call) and node.function not in ON_ARRAYS for node in nodes)
        self.count = max(FEWEST, min(TRIPLES, WORK // (8 * (len(nodes) + SLOW * slow))))
        self.random = np.random.default_rng(0)

    def broken(self, values: Span) -> Diagnostic | None:
        """What is wrong with it; `values`: the place of what it combines."""
        identity = [self.shaped(np.full(self.count, each.value), each.dtype) for each in self.reducer.identity]
        a, b, c = (self.operands(number, identity) for number in range(3))
        f = self.combined
        ab, ba = f(a, b), f(b, a)
        name = self.reducer.name
        start = self.reducer.identity[0].span | self.reducer.identity[-1].span
        tried = (
            (values, (a, b), ab, ba, "{n}(a, b)", "{n}(b, a)"),
            (start, (identity,), f(identity, identity), identity, "{n}(e, e)", "e"),
            (values, (a, b, c), f(ab, c), f(a, f(b, c)), "{n}({n}(a, b), c)", "{n}(a, {n}(b, c))"),
            (start, (a,), f(a, identity), a, "{n}(a, e)", "a"),
        )
        for span, operands, left, right, first, second in tried:
            place = self.difference(operands, left, right, identity)
            if place is not None:
                texts = first.format(n=name), second.format(n=name)
                return self.told(span, operands, (left, right), texts, place)
        return None

    def told(
        self, span: Span, operands: Sequence[State], results: tuple[State, State], texts: tuple[str, str], place: int
    ) -> Diagnostic:
        """What is said about a place at which a law is broken."""
        of_identity = texts[1] in ("a", "e")
        names = ["e"] if texts[1] == "e" else list("abc")
        shown = [f"{name} = {_shown(each, place)}" for name, each in zip(names, operands, strict=False)]
        if texts[1] == "a":
            shown.append("e = " + _text([each.value for each in self.reducer.identity]))
        left, right = (_shown(each, place) for each in results)
        what = "what stands behind `from` changes something" if of_identity else "the order of what it combines matters"
        message = f"`{self.reducer.name}`: {what}: `{texts[0]}` is {left}"
        message += f", not {right}" if of_identity else f" and `{texts[1]}` is {right}"
        label = "for " + ", ".join(shown)
        help = "values are combined in any order, and in parts that begin with the identity"
        return Diagnostic(codes.BROKEN_LAW, span, message, label, help=help)

    def shaped(self, values: Array, dtype: DType) -> Array:
        return values.astype(numpy_type(dtype)).reshape(1, 1, -1)

    def combined(self, left: State, right: State) -> State:
        """What pairs of operands are together."""
        reads = {node for value in self.reducer.combine for node in walk(value) if isinstance(node, Read)}
        numbers = OnArrays()
        numbers.known = {read: _component({FOLD_LEFT: left, FOLD_RIGHT: right}[read.tensor], read) for read in reads}
        found = [numbers.of(value) for value in self.reducer.combine]
        return [self.spread(each, dtype) for each, dtype in zip(found, self.reducer.types, strict=True)]

    def spread(self, values: Array, dtype: DType) -> Array:
        return np.broadcast_to(values, (1, 1, self.count)).astype(numpy_type(dtype))

    def operands(self, number: int, identity: State) -> State:
        """Values as operands, the first ones of small numbers; some together with another one; the identity and its like."""
        found = self.lifted(number)
        other = self.combined(found, self.lifted(number + 3))
        together = np.arange(self.count) % 4 == 3
        found = [np.where(together, two, one) for one, two in zip(found, other, strict=True)]
        alone = np.arange(self.count) % 8 == (0, 1, 5)[number]
        return [np.where(alone, same, one) for one, same in zip(found, identity, strict=True)]

    def lifted(self, number: int) -> State:
        names = self.reducer.given or tuple(map(str, range(len(self.reducer.types))))
        types = self.reducer.types[: len(names)]
        drawn = [self.shaped(self.drawn(dtype, number + 7 * k), dtype) for k, dtype in enumerate(types)]
        if not self.reducer.lifted:
            return drawn
        values = [Read(name, (int64(0),), dtype.compute) for name, dtype in zip(names, types, strict=True)]
        numbers = OnArrays()
        numbers.known = {read: each for read, each in zip(values, drawn, strict=True)}
        found = [numbers.of(each) for each in lifted(self.reducer, values)]
        return [self.spread(each, dtype) for each, dtype in zip(found, self.reducer.types, strict=True)]

    def drawn(self, dtype: DType, number: int) -> Array:
        """Numbers of a type: small whole ones first, then of all sizes, with those that are special."""
        count, random = self.count, self.random
        small = random.integers(0, 4, count)
        if dtype is DType.BOOL:
            return small > 1
        if dtype.is_float:
            numbers = random.integers(-999, 999, count, endpoint=True) / 10.0 ** random.integers(0, 5, count)
            special = np.array([np.inf, -np.inf, np.nan, 0.0])[random.integers(0, 4, count)]
        else:
            low, high = dtype.limits
            numbers = random.integers(max(low, -100), min(high, 100), count, endpoint=True)
            special = np.array([low, high, 0, 1], numpy_type(dtype))[random.integers(0, 4, count)]
        place = np.arange(count)
        numbers = np.where(place < count // 8, small.astype(numbers.dtype), numbers)
        return np.where((place > count // 8) & (place % 16 == (2 + number) % 16), special, numbers)

    def difference(self, operands: Sequence[State], left: State, right: State, identity: State) -> int | None:
        """The first place at which two results differ."""
        same, unknown = np.ones((1, 1, self.count), np.bool_), [np.zeros_like(left[0], np.bool_)] * 2
        for k, dtype in enumerate(self.reducer.types):
            one, two = left[k], right[k]
            if not dtype.is_float:
                same &= one == two
                continue
            numbers = [one, two, *(each[k] for each in operands)]
            scale = np.max(np.abs([np.where(np.isfinite(each), each, 0) for each in numbers]), axis=0)
            same &= (one == two) | (np.isnan(one) & np.isnan(two)) | (np.abs(one - two) <= TOLERANCE[dtype] * scale)
            unknown = [before | np.isnan(each) for before, each in zip(unknown, (one, two), strict=True)]
        infinite = np.zeros_like(same)
        for state in operands:
            own = np.all([each == start for each, start in zip(state, identity, strict=True)], axis=0)
            infinite |= ~own & np.any([np.isinf(each) for each in state], axis=0)
        same |= (unknown[0] & unknown[1]) | (infinite & (unknown[0] | unknown[1]))
        places = np.flatnonzero(~same)
        return int(places[0]) if places.size else None


def _component(state: State, read: Read) -> Array:
    return state[component_of(read)]


def _shown(state: State, place: int) -> str:
    return _text([each[0, 0, place].item() for each in state])


def _text(values: Sequence[object]) -> str:
    texts = [f"{each:.7g}" if isinstance(each, float) else str(each).lower() for each in values]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


__all__ = ["broken_law"]
