"""Facts of sizes: what they say of expressions holds of every value."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.program import Binary, DType, Size
from tc_jupyter.ranges import Fact, exactly, fact_of, facts_of, from_expr, size, value_at

N, K = size("N"), size("K")
INT = DType.INT64


def holds(fact: Fact, value: int) -> bool:
    return fact.least <= value and (fact.most is None or value <= fact.most) and value % fact.multiple == 0


@pytest.mark.parametrize("expr", [N, N + 3, N - 2, 2 * N + K, N - K, 4 * N + 2 * K], ids=repr)
def test_facts_of_a_sum_are_those_of_its_values(expr):
    facts = {"N": Fact(20, 28, 4), "K": Fact(3, 9)}
    found = fact_of(expr, facts)
    values = [expr.evaluate({"N": n, "K": k}) for n, k in product(facts["N"].values, facts["K"].values)]
    assert found is not None
    assert (found.least, found.most) == (min(values), max(values))
    assert all(holds(found, value) for value in values)


def test_other_expressions_and_what_is_not_known():
    facts = facts_of({"N": 31, "K": Fact(17, 31)})
    assert facts["N"] == exactly(31)
    assert fact_of((N - 3) // 2, facts) == exactly(14)
    assert fact_of(K // 2, facts) == Fact(1, 15)
    assert fact_of(N + size("M"), facts) is None
    assert fact_of(K + N - 1, {"N": exactly(8), "K": Fact(257)}) == Fact(264)
    assert (Fact(257).typical, Fact(320, multiple=64).typical, Fact(40, 56, 8).values) == (4095, 4096, range(40, 57, 8))


def test_a_divisor_may_be_0_for_typical_sizes():
    source = (
        "def f(float(N,P) A, float(P) b, float(M) B, float(K) C) -> (O) { O(i) +=! A(i,j)*b(j) where i in 0:N/(M-K) }"
    )
    shapes = ((300, 300), 300, 70, 69)
    found = tc.compile(source, allow=["TC322"]).f(*(np.ones(shape, np.float32) for shape in shapes))
    np.testing.assert_array_equal(found, np.full(300, 300, np.float32))


def test_divisors_at_numbers_that_sizes_count_as():
    assert value_at((N - K) // 2, {"N": 9, "K": 4}) == 2
    assert (
        value_at(from_expr(Binary("//", Size("N"), Binary("-", Size("N"), Size("K"), INT), INT)), {"N": 4, "K": 4})
        is None
    )
    assert value_at(N - K, {"N": 4}) is None
