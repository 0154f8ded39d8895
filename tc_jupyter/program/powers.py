"""`x^n` for an integer `n`, as products where these are few, else as a call of `pow`.

Worked example: `x^3` is `(x * x) * x`, `x^-2` of a float is `1 / (x * x)`, and `x^20` of a float is `pow(x, 20)`.
"""

from __future__ import annotations

from tc_jupyter.diagnostics import Span

from .expr import Binary, Call, Const, Expr, walk

MOST_COPIES = 64
"""Nodes of what is multiplied by itself, which is written several times."""
MOST_FACTORS = 8
"""Factors of a power of a float; one of an integer has no other form."""
_MOST_BITS = 1 << 12
"""Of a power of literals, which is computed at once."""


def product(base: Expr, exponent: int) -> Expr:
    """A value to a positive power, by squaring: each part is an expression that stands twice, and is computed once."""
    if exponent == 1:
        return base
    half = product(base, exponent // 2)
    square = Binary("*", half, half, base.dtype, base.span)
    return square if exponent % 2 == 0 else Binary("*", square, base, base.dtype, base.span)


def float_power(base: Expr, exponent: int, span: Span) -> Expr:
    """A float to a whole power; to the power 0 it is 1, that of NaN too: the base is read all the same."""
    one = Const(1.0, base.dtype, span)
    if 0 < abs(exponent) <= MOST_FACTORS and is_small(base):
        power = product(base, abs(exponent))
    else:
        power = Call("pow", (base, Const(float(abs(exponent)), base.dtype, span)), base.dtype, span)
    return power if exponent >= 0 else Binary("/", one, power, base.dtype, span)


def is_small(base: Expr) -> bool:
    """Whether what is raised may stand several times."""
    return sum(1 for _ in walk(base)) <= MOST_COPIES


def literal_power(base: int, exponent: int) -> int | None:
    """A power of two literals, the second one not negative; `None` if it is far beyond every type."""
    is_large = abs(base) > 1 and exponent * abs(base).bit_length() > _MOST_BITS
    return None if is_large else base ** min(exponent, _MOST_BITS + exponent % 2)
