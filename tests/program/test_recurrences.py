"""The form of a value in an earlier one has the same values, at integers; what has no such form is not said to have one."""

import operator
from random import Random

import pytest

from tc_jupyter.program import Binary, Const, DType, Read, Select, Unary, recurrence_of

INT, BOOL = DType.INT64, DType.BOOL
OWN, X, A, C = (Read(name, (), kind) for name, kind in (("own", INT), ("x", INT), ("a", INT), ("c", BOOL)))
APPLY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "min": min, "max": max}


def number(value):
    return Const(value, INT)


def evaluated(expr, values):
    match expr:
        case Read():
            return values[expr.tensor]
        case Const():
            return expr.value
        case Unary():
            return -evaluated(expr.operand, values)
        case Select():
            return evaluated(expr.then if evaluated(expr.condition, values) else expr.otherwise, values)
        case Binary():
            return APPLY[expr.op](evaluated(expr.left, values), evaluated(expr.right, values))


def drawn(random, depth):
    if not depth or random.random() < 0.15:
        return random.choice((OWN, OWN, X, A, number(random.randint(-3, 3))))
    kind = random.random()
    if kind < 0.12:
        return Unary("-", drawn(random, depth - 1), INT)
    left, right = (drawn(random, depth - 1) for _ in "lr")
    if kind < 0.25:
        return Select(C, left, right, INT)
    return Binary(random.choice("+++--**") if kind < 0.8 else random.choice(("min", "max")), left, right, INT)


def test_a_form_has_the_values_of_what_it_is_the_form_of():
    found = 0
    for seed in range(3500):
        random = Random(seed)
        value = drawn(random, 3)
        form = recurrence_of(value, OWN)
        for _ in range(4 if form is not None else 0):
            values = {name: random.randint(-5, 5) for name in ("own", "x", "a")} | {"c": random.random() < 0.5}
            factor = 1 if form.factor is None else evaluated(form.factor, values)
            shift = 0 if form.shift is None else evaluated(form.shift, values)
            made = APPLY[form.operator](factor * values["own"] + shift, evaluated(form.x, values))
            assert made == evaluated(value, values), value
        found += form is not None
    assert found > 1000


@pytest.mark.parametrize(
    "value",
    [
        X,
        Binary("*", OWN, OWN, INT),
        Binary("max", OWN, OWN, INT),
        Binary("*", Binary("max", OWN, X, INT), A, INT),
        Select(Binary("<", OWN, X, BOOL), X, A, INT),
    ],
)
def test_what_has_another_form_has_none(value):
    assert recurrence_of(value, OWN) is None
