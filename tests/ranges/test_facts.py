"""Facts of sizes: what a class of calls says holds of every size in it, and of expressions of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.ranges import Fact, exactly, fact_of, facts_of, size
from tc_jupyter.schedule import size_class

N, K = size("N"), size("K")
SIZES = [*range(1, 300), 4095, 4096, 4160, 10**6]
CELLS = {
    "product": "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "turned": "def f(float(M,N) A) -> (B) { B(j,i) = A(i,j) }",
    "window": "def f(float(M,N) X, float(O,L) F) -> (Y) { Y(o,m,n) +=! X(m,n+l) * F(o,l) }",
    "rows": "def f(float(M,N) X) -> (s) { s(m) +=! X(m,n) }",
    "chosen": "def f(float(M) X, int32(M) I) -> (H) { H(I(m)) +=! X(m) where I(m) in 0:N }",
}


def holds(fact: Fact, value: int) -> bool:
    return fact.least <= value and (fact.most is None or value <= fact.most) and value % fact.multiple == 0


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("cell", CELLS)
def test_what_a_class_says_holds_of_the_sizes_in_it(cell, kind):
    analysis = tc.analyze(CELLS[cell])
    (found,) = analysis.functions.values()
    for value in SIZES:
        sizes = dict.fromkeys(found.program.sizes, value)
        constants, facts = size_class(found.program, found.ranges, sizes, kind)
        assert all(value == sizes[name] for name, value in constants)
        assert all(holds(fact, sizes[name]) for name, fact in facts)


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
