"""Which reads of an expression are evaluated: against a walk from every read to the top, and on parts that stand in many places."""

from random import Random

import numpy as np
import pytest

from tc_jupyter.program import Binary, Const, DType, IndexVar, Read, Select, Unary, children, int64, walk
from tc_jupyter.schedule.visits import evaluate, reached, reached_reads

POINTS = {"i": np.repeat(np.arange(4), 4), "j": np.tile(np.arange(4), 4)}


def reading(tensor, *names):
    return Read(tensor, tuple(map(IndexVar, names)), DType.FLOAT32)


def drawn(random, depth, parts):
    """A value with conditions on indices and on data; parts that were drawn before stand in it again."""
    if depth == 0:
        return reading(random.choice("XYZ"), random.choice("ij"))
    if parts and random.random() < 0.3:
        return random.choice(parts)
    left, right = drawn(random, depth - 1, parts), drawn(random, depth - 1, parts)
    index, number = IndexVar(random.choice("ij")), int64(random.randrange(4))
    test = Binary(random.choice(("<", ">=", "==")), index, number, DType.BOOL)
    if random.random() < 0.4:  # the right one is evaluated, or not
        data = Binary("<", right, Const(0.0, DType.FLOAT32), DType.BOOL)
        test = Binary(random.choice(("&&", "||")), test, data, DType.BOOL)
    made = (Select(test, left, right, DType.FLOAT32), Binary("+", left, right, DType.FLOAT32))
    found = random.choice((made[0], made[0], made[1], Unary("-", made[0], DType.FLOAT32)))
    parts.append(found)
    return found


def evaluated_at(expr, point):
    """The reads that are evaluated at one point, by going through the expression as a tree."""
    columns = {name: np.array([value]) for name, value in point.items()}

    def holds(condition):
        known = not any(isinstance(node, Read) or node.dtype.is_float for node in walk(condition))
        return bool(evaluate(condition, columns, {}, 1)[0]) if known else None

    def visit(node):
        if isinstance(node, Read):
            yield node
        match node:
            case Select():
                chosen = holds(node.condition)
                inside = [node.condition, *([node.then] if chosen is not False else [])]
                inside += [node.otherwise] if chosen is not True else []
            case Binary(op="&&" | "||"):
                inside = [node.left, *([node.right] if holds(node.left) in (node.op == "&&", None) else [])]
            case _:
                inside = children(node)
        for each in inside:
            yield from visit(each)

    return set(visit(expr))


@pytest.mark.parametrize("seed", range(20))
def test_reads_are_evaluated_where_conditions_on_indices_let_them(seed):
    expr = drawn(Random(seed), 4, [])
    found = reached_reads(expr, POINTS, {}, 16)
    for number, (i, j) in enumerate(zip(POINTS["i"], POINTS["j"], strict=True)):
        assert {read for read, where in found.items() if where[number]} == evaluated_at(expr, {"i": i, "j": j})
    for read, where in found.items():
        each = [reached(expr, node, POINTS, {}, 16) for node in walk(expr) if node == read]
        np.testing.assert_array_equal(np.logical_or.reduce(each), where)


def test_a_part_that_stands_in_many_places_is_looked_at_once():
    """The first call of a derivative of complex numbers took minutes: each of its reads went through all of an expression."""
    part = Select(Binary("<", IndexVar("i"), int64(2), DType.BOOL), reading("X", "i"), reading("Y", "j"), DType.FLOAT32)
    for _ in range(200):  # 2 ** 200 places
        part = Binary("*", part, part, DType.FLOAT32)
    found = reached_reads(part, POINTS, {}, 16)
    np.testing.assert_array_equal(found[reading("X", "i")], POINTS["i"] < 2)
    np.testing.assert_array_equal(found[reading("Y", "j")], POINTS["i"] >= 2)
