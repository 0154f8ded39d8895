"""Classes of sizes: what a class says holds of every size in it, and which sizes share one."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tc_jupyter as tc
from tc_jupyter.ranges import Fact
from tc_jupyter.runtime.cpu import cpu_target
from tc_jupyter.schedule import SizeClasses, default_schedule, row_class
from tests.ranges.test_facts import holds
from tests.running import program_of

SIZES = [*range(1, 300), 4095, 4096, 4160, 10**6]
CELLS = {
    "product": "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "turned": "def f(float(M,N) A) -> (B) { B(j,i) = A(i,j) }",
    "window": "def f(float(M,N) X, float(O,L) F) -> (Y) { Y(o,m,n) +=! X(m,n+l) * F(o,l) }",
    "rows": "def f(float(M,N) X) -> (s) { s(m) +=! X(m,n) }",
    "chosen": "def f(float(M) X, int32(M) I) -> (H) { H(I(m)) +=! X(m) where I(m) in 0:N }",
}

SOFTMAX = "def f(float(M,N) A) -> (O) { m(i) max=! A(i,j)  e(i,j) = exp(A(i,j) - m(i))  s(i) +=! e(i,j)  O(i,j) = e(i,j) / s(i) }"


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("cell", CELLS)
def test_what_a_class_says_holds_of_the_sizes_in_it(cell, kind):
    analysis = tc.analyze(CELLS[cell])
    (found,) = analysis.functions.values()
    for value in SIZES:
        sizes = dict.fromkeys(found.program.sizes, value)
        constants, facts = SizeClasses(found.program, found.ranges, kind)(sizes)
        assert all(value == sizes[name] for name, value in constants)
        assert all(holds(fact, sizes[name]) for name, fact in facts)


def test_classes_of_sizes():
    """Sizes of a sum with few results are told apart up to a factor of two, others up to 64 only."""
    found = program_of(CELLS["product"])
    assert found is not None
    assert dict(SizeClasses(*found, "cuda")({"M": 128, "N": 100, "K": 2000})[1]) == {
        "M": Fact(65, 128),
        "N": Fact(65, 128),
        "K": Fact(1025, 2048),
    }
    large = [SizeClasses(*found, "cuda")({"M": m, "N": 4000, "K": k}) for m, k in ((4096, 100), (9999, 4097))]
    assert large[0] == large[1]
    assert "K" not in dict(large[0][1])


@pytest.mark.parametrize(
    "length, most", [(1, 31), (32, 32), (33, 63), (36, 64), (1000, 1024), (1001, 1023), (32768, 32768), (32772, None)]
)
def test_classes_of_rows(length, most):
    """Calls share code up to a power of two, those with rows of whole vectors apart from others."""
    found = program_of(SOFTMAX)
    assert found is not None
    assert dict(row_class(*found, {"M": 5, "N": length})) == ({} if most is None else {"N": most})
    once = program_of(CELLS["rows"])
    assert once is not None
    assert row_class(*once, {"M": 5, "N": length}) == ()


@pytest.mark.parametrize(
    ("points", "parts"), [(0, 1), (31_999, 1), (32_000, 2), (127_999, 4), (128_000, 8), (256_000, 16), (10**9, 16)]
)
def test_each_part_of_a_scatter_has_sixteen_points_for_each_element(points, parts):
    """Rows of their own for 16 parts of 20 points each took twice the time of one loop."""
    sizes = {"E": points, "N": 1000, "D": 32}
    f = tc.compile(
        "def f(int32(E) I, float(E,D) X, float(N) Z) -> (float(N,D) Y) { Y(I(e),d) +=! X(e,d) }", target="cpu"
    ).f
    _, facts = SizeClasses(f.program, f.analysis.ranges)(sizes)
    assert dict(facts)["N"].parts == parts
    shared = [step for step in f.default_schedule(**sizes).steps if step.name == "rfactor"]
    assert bool(shared) == (parts > 1)
    if shared:
        assert f".split('Y', 'e', nparts={parts})" in f.default_schedule(**sizes).to_python()


@pytest.mark.parametrize(("length", "owned"), [(4, False), (64, False), (65, True), (1000, True)])
def test_threads_own_long_rows_of_a_scatter_with_few_points(length, owned):
    """Looking at every point took a thread longer than adding short rows."""
    f = tc.compile(
        "def f(int32(E) I, float(E,D) X, float(N) Z) -> (float(N,D) Y) { Y(I(e),d) +=! X(e,d) }", target="cpu"
    ).f
    ranges = f.analysis.ranges
    constants, facts = SizeClasses(f.program, ranges)({"E": 4000, "N": 1000, "D": length})
    found = default_schedule(f.program, ranges, replace(cpu_target(), threads=4), {**dict(constants), **dict(facts)})
    assert (found.graph.stage("Y").annotation("at.outer") == "parallel") is owned
