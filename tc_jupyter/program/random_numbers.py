"""`uniform(seed, e, ...)` and `normal(seed, e, ...)`: numbers that look random, each a function of its arguments alone.

The generator is Philox4x32-10: of a key (the seed) and a counter of four words it makes four words. It multiplies integers, so that
every engine gives the same bits, in any order of the points.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.

Worked example: `uniform(7, i)` is the first word of the counter `(i, 0, 0, 0)` under the key `(7, 0)`, without its last 8 bits,
divided by 2^24.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tc_jupyter.diagnostics import Span

from .expr import Binary, Call, Cast, Const, DType, Expr

WORDS = {"philox0": 0, "philox1": 1}
"""Functions of six `uint32`, the key first, by the word that they give."""
MOST_COUNTERS = 4
ROUNDS = 10
FACTORS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
"""What is added to the two words of the key from round to round."""


def philox(k0: Any, k1: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> tuple[Any, Any, Any, Any]:
    """The four words, of numbers or of arrays of them."""
    key = [np.asarray(k, np.uint64) for k in (k0, k1)]
    counter = [np.asarray(c, np.uint64) for c in (c0, c1, c2, c3)]
    low, by = np.uint64(0xFFFFFFFF), np.uint64(32)
    for number in range(ROUNDS):
        first, second = counter[0] * np.uint64(FACTORS[0]), counter[2] * np.uint64(FACTORS[1])
        k = [(key[n] + np.uint64(number * STEPS[n])) & low for n in (0, 1)]
        counter = [(second >> by) ^ counter[1] ^ k[0], second & low, (first >> by) ^ counter[3] ^ k[1], first & low]
    return counter[0], counter[1], counter[2], counter[3]


def word(function: str, *arguments: Any) -> Any:
    """The word that one of `WORDS` gives."""
    return philox(*arguments)[WORDS[function]]


def uniform(seed: Expr, counters: Sequence[Expr], span: Span) -> Expr:
    """A `float32` from 0 up to 1, 1 excluded."""
    return _fraction("philox0", seed, counters, 0, DType.FLOAT32, span)


def normal(seed: Expr, counters: Sequence[Expr], span: Span) -> Expr:
    """A `float32` of the standard normal distribution, by Box and Muller in `double`, so that rounding is all that differs."""
    wide = DType.FLOAT64
    size = _fraction("philox0", seed, counters, 1, wide, span)  # from above 0 to 1
    turn = _fraction("philox1", seed, counters, 0, wide, span)
    square = Binary("*", Const(-2.0, wide, span), Call("log", (size,), wide, span), wide, span)
    angle = Call("cospi", (Binary("*", Const(2.0, wide, span), turn, wide, span),), wide, span)
    product = Binary("*", Call("sqrt", (square,), wide, span), angle, wide, span)
    return Cast(product, DType.FLOAT32, span)


def _fraction(function: str, seed: Expr, counters: Sequence[Expr], more: int, dtype: DType, span: Span) -> Expr:
    """`((word >> 8) + more) * 2^-24`."""
    number, wide = DType.UINT32, DType.UINT64
    high = Binary("//", _as(seed, wide), Const(1 << 32, wide, span), wide, span)
    words = [_as(seed, number), _as(high, number), *(_as(each, number) for each in counters)]
    words += [Const(0, number, span)] * (2 + MOST_COUNTERS - len(words))
    found: Expr = Binary("//", Call(function, tuple(words), number, span), Const(256, number, span), number, span)
    if more:
        found = Binary("+", found, Const(more, number, span), number, span)
    return Binary("*", Cast(found, dtype, span), Const(2.0**-24, dtype, span), dtype, span)


def _as(expr: Expr, dtype: DType) -> Expr:
    """An integer in another type; bits that it does not have are left out."""
    if isinstance(expr, Const):
        return Const(int(expr.value) % (1 << dtype.bits), dtype, expr.span)
    return expr if expr.dtype is dtype else Cast(expr, dtype, expr.span)
