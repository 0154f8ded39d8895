"""A position that wraps around, stops or turns back at a border, away from the border: it moves evenly there.

Worked example: `(j + 1) % N` is `j + 1` where `0 <= j + 1` and `j + 1 < N`; `max(j - 1, 0)` is `j - 1` where `0 <= j - 1`, and so
is `j > 0 ? j - 1 : 0`. So whatever is read beyond the ends of an array, and however it was written, in the interior it is the plain
read.
"""

from __future__ import annotations

from dataclasses import dataclass

from .size_expr import Atom, Choice, Condition, Extremum, Mod, Name, SizeExpr, constant, of_atom


@dataclass(frozen=True, slots=True)
class Interior:
    """What a position is in the interior.

    Attributes:
        value: linear in the index.
        conditions: all of them are 0 or more in the interior, and linear in the index; none for a position that has no border.
    """

    value: SizeExpr
    conditions: tuple[SizeExpr, ...] = ()


def interior(position: SizeExpr, index: str) -> Interior | None:
    """The interior along an index; `None` for what is linear nowhere."""
    conditions: list[SizeExpr] = []
    value = _linear(position, index, conditions)
    moved = None if value is None else step_of(value, index)
    if value is None or moved is None or any(step_of(each, index) is None for each in conditions):
        return None
    return Interior(value, tightest(conditions))


def tightest(conditions: list[SizeExpr]) -> tuple[SizeExpr, ...]:
    """Conditions without those that follow from another one, which differs from them by a number."""
    found: dict[SizeExpr, SizeExpr] = {}
    for each in conditions:
        moving = each - each.offset
        if moving not in found or each.offset < found[moving].offset:
            found[moving] = each
    return tuple(each for each in found.values() if each.limits[0] is None or each.limits[0] < 0)


def _linear(position: SizeExpr, index: str, conditions: list[SizeExpr]) -> SizeExpr | None:
    """A position with every atom that moves as it is in the interior."""
    total = constant(position.offset)
    for mono, factor in position.terms.items():
        moving = [atom for atom in mono if index in of_atom(atom).indices]
        if not moving or all(isinstance(atom, Name) for atom in moving):
            total = total + SizeExpr({mono: factor}, 0)
            continue
        inside = _atom(moving[0], index, conditions) if len(mono) == 1 else None
        if inside is None:
            return None
        total = total + inside * factor
    return total


def _atom(atom: Atom, index: str, conditions: list[SizeExpr]) -> SizeExpr | None:
    match atom:
        case Mod(numerator=numerator, divisor=divisor) if index not in divisor.indices:
            value = _linear(numerator, index, conditions)
            if value is not None:
                conditions += [value, divisor - 1 - value]
            return value
        case Extremum(kind=kind, arguments=arguments):
            values = [_linear(each, index, conditions) for each in arguments]
            found = [each for each in values if each is not None]
            if len(found) < len(values):
                return None
            weights = {each: step_of(each, index) or 0 for each in found}
            chosen = max(found, key=lambda each: (weights[each] != 0, weights[each]))
            above = 1 if kind == "min" else -1
            conditions += [(each - chosen) * above for each in found if each is not chosen]
            return chosen
        case Choice():
            return _chosen(atom, index, conditions)
        case _:
            return None


def _chosen(choice: Choice, index: str, conditions: list[SizeExpr]) -> SizeExpr | None:
    """The position that moves as an index does, or moves at all: the other one is at a border."""
    tests = _all_of(choice.condition)
    ways = [(choice.then, tests)]
    if len(tests) == 1:
        ways.append((choice.otherwise, [-tests[0] - 1]))
    found: list[tuple[int, SizeExpr, list[SizeExpr]]] = []
    for position, own in ways if tests else ():
        value = _linear(position, index, own)
        if value is not None and (step := step_of(value, index)):
            found.append((abs(step - 1), value, own))
    if not found:
        return None
    _, value, own = min(found, key=lambda each: each[0])
    conditions += own
    return value


def _all_of(condition: Condition) -> list[SizeExpr]:
    """What is 0 or more exactly where a condition holds; nothing if it is another one."""
    if condition.op == ">=":
        return [condition.arguments[0]]
    parts = list(map(_all_of, condition.parts)) if condition.op == "and" else []
    return [each for part in parts for each in part] if all(parts) else []


def step_of(value: SizeExpr, index: str) -> int | None:
    """By how much a value, as a subscript, grows per step of `index`, if that is the same everywhere."""
    split = value.linear_in(index)
    return split[0].constant if split is not None and split[0].is_constant else None
