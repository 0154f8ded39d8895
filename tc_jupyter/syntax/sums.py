"""Sums of sizes with whole factors, for the ends of ranges that fixes write.

Worked example: `summed` of the tokens of `2*N - 1` is `{"N": 2, "": -1}`, and `text` of that is `2*N - 1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .tokens import Token

Sum = Mapping[str, int]
"""The factor of each size; that of `""` is the number."""


def summed(tokens: Sequence[Token]) -> Sum | None:
    """The sum that tokens are; `None` for anything else."""
    found, sign, rest = dict[str, int](), 1, [token.text for token in tokens]
    if rest[:1] == ["-"]:
        sign, rest = -1, rest[1:]
    while rest:
        before, factor, name = rest, sign, ""
        if rest[0].isdigit():
            factor, rest = sign * int(rest[0]), rest[1:]
            if rest[:1] == ["*"] and rest[1:] and not rest[1].isdigit():
                rest = rest[1:]
            elif rest[:1] not in ([], ["+"], ["-"]):
                return None
        if rest[:1] and rest[0].isidentifier():
            name, rest = rest[0], rest[1:]
            if rest[:1] and rest[0].startswith(".") and rest[0][1:].isdigit():
                name, rest = name + rest[0], rest[1:]
        elif rest == before:
            return None
        found[name] = found.get(name, 0) + factor
        if rest[:1] not in ([], ["+"], ["-"]) or len(rest) == 1:
            return None
        sign, rest = (-1 if rest[:1] == ["-"] else 1), rest[1:]
    return found or None


def less(one: Sum, other: Sum) -> Sum:
    """The difference of two sums."""
    names = dict.fromkeys((*one, *other))
    return {name: factor for name in names if (factor := one.get(name, 0) - other.get(name, 0))}


def divided(one: Sum, number: int) -> str:
    """The text of a sum that is divided by a number, rounded up."""
    if all(factor % number == 0 for name, factor in one.items() if name):
        return text({name: -(-factor // number) for name, factor in one.items()})
    more = text(less(one, {"": 1 - number}))
    return f"({more}) / {number}" if " " in more else f"{more} / {number}"


def text(one: Sum) -> str:
    """A sum as it is written, what is added first."""
    written = ""
    for name, factor in sorted(one.items(), key=lambda item: (item[0] == "", item[1] < 0)):
        size = str(abs(factor)) if not name else name if abs(factor) == 1 else f"{abs(factor)}*{name}"
        written += (f" {'-' if factor < 0 else '+'} " if written else "-" if factor < 0 else "") + size
    return written or "0"
