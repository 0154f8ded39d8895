"""The phases as values: the cases that apply, by TVM's rules and ours, and the thread axes that storage relaxes."""

import json

import pytest

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.schedule import phases
from tests.running import default
from tests.schedule.test_bounds import CHAIN, COMMON, DISJOINT, EXAMPLES, FUSED, fused

PRODUCT = "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"


def tiled(scope, loop="k.outer"):
    schedule = default(PRODUCT).tile("C", "i", "j", 32, 32).split("C", "k", 8)
    schedule = schedule.reorder("C", "i.outer", "j.outer", "i.inner", "j.inner", "k.outer", "k.inner")
    schedule = schedule.bind("C", "i.outer", "blockIdx.y").bind("C", "j.outer", "blockIdx.x")
    schedule = schedule.bind("C", "i.inner", "threadIdx.y").bind("C", "j.inner", "threadIdx.x")
    return schedule.cache_read("A", "C").compute_at("A.cache", "C", loop).storage("A.cache", scope)


def test_the_order_of_the_pass_is_consumers_first():
    bounds = default(CHAIN).bounds()
    found = [phases(bounds, name) for name in "EDC"]
    assert [(p.stage, p.order, p.rule) for p in found] == [
        ("E", 0, "output"),
        ("D", 1, "requests"),
        ("C", 2, "requests"),
    ]


def test_phase_1_has_its_three_cases():
    schedule = default("def f(float(N) X) -> (Y) { T(i) = X(i)  Y(i,j) = T(i) where j in 0:1 }").split("Y", "i", 4)
    (consumer,) = phases(schedule.compute_at("T", "Y", "i.outer").bounds(), "T").consumers
    assert [(row.axis, row.case) for row in consumer.leaves] == [
        ("i.outer", "on the path"),
        ("i.inner", "relaxed"),
        ("j", "point"),
    ]


def test_phase_2_shows_the_fallback_of_tvm():
    (consumer,) = phases(fused(default(FUSED), 4).bounds(), "B").consumers
    split, rows, columns = consumer.relations
    assert (split.relation, split.case, split.tvm_case) == ("split", "affine", "affine")
    assert (rows.axis, rows.case, rows.tvm_case, rows.tvm_set) == ("i", "rows", "fallback", "[0, 4)")
    assert (columns.axis, columns.case, columns.tvm_case) == ("j", "columns", "fallback")


def test_phase_4_unites_the_requests_of_each_dimension():
    found = phases(default(DISJOINT).bounds(), "T")
    assert [row.requests for row in found.gather] == [("[0, 2)", "[2, 4)")] * 2
    assert [row.range for row in found.gather] == ["[0, 4)"] * 2


def test_the_relax_set_is_named():
    (consumer,) = phases(default(CHAIN).compute_at("D", "E", "j").bounds(), "C").consumers
    assert consumer.relaxed == ("E[j]", "E[i]")


def test_pass_down_has_exact_tails_beside_whole_factors():
    found = phases(default(COMMON).split("D", "j", 12).bounds(), "D")
    inner = next(row for row in found.down if row.axis == "j.inner")
    assert (inner.range, inner.tvm_range) == ("[0, min(16 - 12*D[j.outer], 12))", "[0, 12)")


@pytest.mark.parametrize("name", EXAMPLES)
def test_everything_is_json(name):
    text, change, *_ = EXAMPLES[name]
    schedule = change(default(text))
    for found in (phases(schedule.bounds(), stage) for stage in schedule.stages):
        assert json.loads(json.dumps(found.to_json()))["stage"] == found.stage
        assert found.text().startswith(f"{found.stage}: number {found.order}")


def test_the_phases_end_in_the_bounds():
    for name in EXAMPLES:
        text, change, stage, *_ = EXAMPLES[name]
        bounds = change(default(text)).bounds()
        found = phases(bounds, stage)
        outputs = [
            row for row in found.gather if row.root in {r.name for r in bounds.graph_of(stage).stage(stage).roots}
        ]
        assert tuple(row.range for row in outputs) == bounds.region(stage)


def test_an_unknown_stage_is_refused():
    with pytest.raises(CompileError, match="TC411"):
        phases(default(COMMON).bounds(), "Q")


# --- thread axes -----------------------------------------------------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("scope", "elements", "path"),
    [
        ("shared", 32 * 8, ("C[i.outer]", "C[j.outer]", "C[k.outer]")),
        ("local", 8, ("C[i.outer]", "C[j.outer]", "C[i.inner]", "C[j.inner]", "C[k.outer]")),
        ("register", 8, ("C[i.outer]", "C[j.outer]", "C[i.inner]", "C[j.inner]", "C[k.outer]")),
    ],
)
def test_scope_decides_which_thread_axes_are_relaxed(scope, elements, path):
    bounds = tiled(scope).bounds(M=64, K=16, N=64)
    need = bounds.stage("A.cache")
    assert set(need.elements_per_visit) == set(need.computed_per_visit) == set(need.tvm_per_visit) == {elements}
    assert bounds.need("A.cache").path == path
    assert bounds.need("A.cache").exact


def test_shared_storage_says_why_a_loop_is_relaxed():
    (consumer,) = phases(tiled("shared").bounds(), "A.cache").consumers
    rows = {row.axis: row for row in consumer.leaves}
    assert (rows["i.inner"].case, rows["i.outer"].case) == ("relaxed", "on the path")
    assert rows["i.inner"].why == "`shared` storage is read by all of threadIdx.y"


def test_a_tile_at_the_edge_has_its_tail():
    bounds = tiled("shared").bounds(M=40, K=12, N=32)
    assert bounds.stage("A.cache").elements_per_visit == (32 * 8, 32 * 4, 8 * 8, 8 * 4)
