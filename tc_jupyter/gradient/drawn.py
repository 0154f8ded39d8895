"""Numbers that look random, in the words of the language again: `uniform(seed, i)`, of which a program has the computation.

Comes in: an expression. Goes out: name, seed and counters of the function that makes this expression, if there is one.

Worked example: `float(philox0(uint32(s), ...) / 256) * 2^-24` is `uniform(s, i)` if that makes exactly this expression.
"""

from __future__ import annotations

from tc_jupyter.diagnostics import NO_SPAN
from tc_jupyter.program import Binary, Call, Cast, Const, DType, Expr, walk
from tc_jupyter.program.random_numbers import WORDS, normal, uniform

Drawn = tuple[str, Expr, tuple[Expr, ...]]


def drawn(expr: Expr) -> Drawn | None:
    """The function that makes an expression, with its seed and counters."""
    match expr:
        case Binary(op="*", left=Cast(operand=Binary(op="//")), right=Const()) if expr.dtype is DType.FLOAT32:
            made = uniform
        case Cast(operand=Binary(op="*", left=Call(function="sqrt"), right=Call(function="cospi"))):
            made = normal
        case _:
            return None
    word = next((node for node in walk(expr) if isinstance(node, Call) and node.function in WORDS), None)
    if word is None:
        return None
    seed, counters = _seed(word), _counters(word)
    return (made.__name__, seed, counters) if made(seed, counters, NO_SPAN) == expr else None


def _seed(word: Call) -> Expr:
    """The seed: a number stands whole in the second word of the key."""
    high = word.arguments[1]
    if isinstance(word.arguments[0], Const) and isinstance(high, Cast) and isinstance(high.operand, Binary):
        return high.operand.left
    return _plain(word.arguments[0])


def _counters(word: Call) -> tuple[Expr, ...]:
    """The counters without the zeros behind them, one at least."""
    found = [_plain(each) for each in word.arguments[2:]]
    while len(found) > 1 and isinstance(found[-1], Const) and found[-1].value == 0:
        found.pop()
    return tuple(found)


def _plain(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Cast) else expr
