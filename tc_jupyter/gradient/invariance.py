"""Extreme values that are read and do not matter: the maximum that a softmax subtracts and that cancels out.

What depends on an extreme value `M` is followed through the steps in two forms: `c*M + rest`, and `exp(c*M) * rest`, where the rest
does not change with `M`. Where the results do not change either, no derivative goes through `M`.

Worked example: for `E(n, d) = exp(X(n, d) - M(n))`, `S(n) +=! E(n, d)`, `Y(n, d) = E(n, d) / S(n)` the powers of `exp(M(n))` are
-1, -1 and 0, and `Y` does not change with `M`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tc_jupyter.program import Binary, Call, Cast, Const, Expr, IndexVar, Read, Select, Unary, walk

from .partials import depends
from .steps import Step, Steps, root


@dataclass(frozen=True, slots=True)
class Form:
    """How a value depends on an extreme value: `weight*M(at) + rest`, or `exp(weight*M(at)) * rest`."""

    power: bool
    weight: float
    at: tuple[Expr, ...]


Found = Form | None
"""The form of a value; `None` if it does not depend on the extreme value."""


class _Unknown(Exception):
    """A value that depends on the extreme value in another way."""


def unneeded(about: Steps) -> frozenset[str]:
    """The tensors with extreme values on which no result depends."""
    steps: dict[str, list[Step]] = {}
    for step in about.steps:
        steps.setdefault(root(step.target), []).append(step)
    extremes = [name for name, each in steps.items() if len(each) == 1 and each[0].fresh and _is_extreme(each[0])]
    shown = {name for name, _ in about.results.values()}
    return frozenset(name for name in extremes if name not in shown and _cancels(about, name, shown))


def _is_extreme(step: Step) -> bool:
    return step.operator in ("min", "max") and step.indices is not None and not step.order


def _cancels(about: Steps, name: str, shown: set[str]) -> bool:
    """Whether no result depends on a tensor, whose content is written once."""
    rank = len(about.arrays[name].box)
    forms: dict[str, Found] = {name: Form(False, 1.0, tuple(map(IndexVar, map(str, range(rank)))))}
    written = set[str]()
    try:
        for step in about.steps:
            target = root(step.target)
            if target == name:
                continue
            found = _of_step(step, forms)
            if target in written and forms.get(target) != found:
                return False
            written.add(target)
            forms[target] = found
    except _Unknown:
        return False
    return all(forms.get(each) is None for each in shown)


def _of_step(step: Step, forms: dict[str, Found]) -> Found:
    """The form of what a step writes, its subscripts as places in those of the target."""
    for expr in (*step.left, *step.conditions):
        _independent(expr, forms)
    found = _of(step.value, forms)
    if found is None:
        return None
    if step.indices is None or step.order or (not step.fresh and step.operator != "="):
        raise _Unknown
    places = {name: place for place, name in enumerate(step.indices)}
    if not all(isinstance(each, IndexVar) and each.name in places for each in found.at):
        raise _Unknown
    if step.operator == "*" or (step.operator == "+" and not found.power):
        raise _Unknown
    return replace(found, at=tuple(IndexVar(str(places[each.name])) for each in found.at if isinstance(each, IndexVar)))


def _independent(expr: Expr, forms: dict[str, Found]) -> None:
    if any(isinstance(node, Read) and forms.get(root(node.tensor)) is not None for node in walk(expr)):
        raise _Unknown


def _of(expr: Expr, forms: dict[str, Found]) -> Found:
    match expr:
        case Read():
            for each in expr.indices:
                _independent(each, forms)
            found = forms.get(root(expr.tensor))
            if found is None:
                return None
            at = tuple(expr.indices[int(each.name)] for each in found.at if isinstance(each, IndexVar))
            return replace(found, at=at)
        case Cast() if expr.dtype.is_float:
            return _of(expr.operand, forms)
        case Unary(op="-"):
            found = _of(expr.operand, forms)
            return found if found is None or found.power else _form(False, -found.weight, found.at)
        case Binary(op="+" | "-" | "*" | "/"):
            return _of_operator(expr.op, _of(expr.left, forms), _of(expr.right, forms))
        case Select(condition=Call(function="isinf" | "isnan")):  # what is infinite has no derivative
            return _of(expr.otherwise, forms)
        case Select():
            _independent(expr.condition, forms)
            return _either(expr, _of(expr.then, forms), _of(expr.otherwise, forms))
        case Call(function="exp" | "log", arguments=(argument,)):
            found, power = _of(argument, forms), expr.function == "log"
            if found is not None and found.power is not power:
                raise _Unknown
            return None if found is None else replace(found, power=not power)
        case _:
            _independent(expr, forms)
            return None


def _form(power: bool, weight: float, at: tuple[Expr, ...]) -> Found:
    return Form(power, weight, at) if weight else None


def _of_operator(op: str, left: Found, right: Found) -> Found:
    sign = -1.0 if op in "-/" else 1.0
    if left is None and right is None:
        return None
    a, b = left or right, right or left
    assert a is not None
    assert b is not None
    if a.power is not b.power or a.at != b.at:
        raise _Unknown
    own, other = (0.0 if each is None else each.weight for each in (left, right))
    if a.power is (op in "*/"):
        return _form(a.power, own + sign * other, a.at)
    if a.power and left is not None and left == right:  # the sum of two values with one factor
        return left
    raise _Unknown


def _either(expr: Select, then: Found, otherwise: Found) -> Found:
    """The form of both branches; zero has every factor."""
    if then == otherwise:
        return then
    for found, other in ((then, expr.otherwise), (otherwise, expr.then)):
        if found is not None and found.power and isinstance(other, Const) and other.value == 0:
            return found
    raise _Unknown


# what a derivative goes through


def active_tensors(about: Steps, wrt: Iterable[str]) -> frozenset[str]:
    """The tensors that change with some parameters, and that results depend on: a derivative goes through them."""
    active, idle = frozenset(wrt), unneeded(about)
    while True:
        more = active | {root(step.target) for step in about.steps if _is_active(step, about, active)} - idle
        if more == active:
            return active
        active = more


def _is_active(step: Step, about: Steps, active: frozenset[str]) -> bool:
    is_float = about.arrays[root(step.target)].dtype.is_float
    return is_float and depends(step.value, lambda read: root(read.tensor) in active)
