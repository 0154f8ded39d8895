"""Refused schedules have a witness that a brute-force order check confirms, and none of them was legal; accepted ones are right."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.diagnostics import CompileError, codes
from tc_jupyter.program import Read, walk
from tc_jupyter.ranges import sets
from tc_jupyter.schedule import schedule_of
from tc_jupyter.schedule.infer_bound import scope_of, variable, view_shift
from tc_jupyter.schedule.legality import check_with, default_lineage, outside_read
from tc_jupyter.schedule.visits import evaluate, reached
from tests.running import default, in_bounds, program_of, run
from tests.strategies import arguments, drawn

MOST = 5
"""Sizes of the brute-force check."""


def points(stage, sizes):
    """The points of a stage that computes everything: values of its leaves, in order, with the roots."""
    related = default_lineage(stage)
    extents = [max(0, related.extents[leaf].evaluate(sizes)) for leaf in stage.leaves]
    for leaves in product(*map(range, extents)):
        known = {**sizes, **{variable(stage.name, leaf): v for leaf, v in zip(stage.leaves, leaves, strict=True)}}
        if all(value.evaluate(known) < limit.evaluate(known) for value, limit in related.constraints):
            yield leaves, {root.name: related.values[root.name].evaluate(known) for root in stage.roots}


def accesses(graph, stage, roots, sizes):
    """(tensor, element, writes) of one point."""
    known = {**sizes, **{name: value.evaluate(sizes) for name, value in scope_of(graph).sizes.items()}}
    columns = {name: np.array([value]) for name, value in roots.items()}
    shift = view_shift(graph, stage.target)
    own = [
        roots[r.name] + by.evaluate(sizes)
        for r, by in zip((r for r in stage.roots if r.kind == "output"), shift, strict=True)
    ]
    yield graph.storage_name(stage.target), tuple(own), True
    for read in stage.statement.reads():
        if graph.program.tensor(read.tensor).kind == "input":
            continue
        if any(isinstance(n, Read) and n.indices for index in read.indices for n in walk(index)):
            continue
        if reached(stage.statement.value, read, columns, known, 1)[0]:
            shift = view_shift(graph, read.tensor)
            element = [
                int(evaluate(i, columns, known, 1)[0]) + by.evaluate(sizes)
                for i, by in zip(read.indices, shift, strict=True)
            ]
            yield graph.storage_name(read.tensor), tuple(element), False


def wrong_order(graph, early, late, depth, sizes):
    """The first pair of conflicting points that would run in the wrong order, by enumeration; `None` if there is none."""
    before = {}
    for leaves, roots in points(early, sizes):
        for tensor, element, writes in accesses(graph, early, roots, sizes):
            before.setdefault((tensor, element), []).append((leaves[:depth], writes, tuple(roots.values())))
    for leaves, roots in points(late, sizes):
        for tensor, element, writes in accesses(graph, late, roots, sizes):
            for when, wrote, here in before.get((tensor, element), ()):
                if (writes or wrote) and when > leaves[:depth]:
                    return tensor, element, here, tuple(roots.values())
    return None


SHIFTS = ("i", "max(i-1,0)", "max(i-2,0)", "min(i+1,N-1)", "N-1-i", "i/2", "0", "i%2", "min(2*i,N-1)")


@st.composite
def pairs(draw):
    """Two or three statements over the same box, the later ones reading the first at shifted places."""
    rank = draw(st.integers(1, 2))
    left = ",".join("ij"[:rank])
    where = ", ".join(f"{index} in 0:N" for index in "ij"[:rank])

    def subscript():
        return ", ".join(draw(st.sampled_from(SHIFTS)).replace("i", draw(st.sampled_from("ij"[:rank]))).replace("mjn", "min")
                         for _ in range(rank))  # fmt: skip

    lines = [f"T({left}) = X({left})"]
    if draw(st.integers(0, 3)) == 0:
        lines = [f"T({left}) +=! X({left}) * Z(k) where {where}, k in 0:N"]
    middle = draw(st.booleans())
    if middle:
        lines.append(f"S({left}) = {draw(st.sampled_from(('X', 'T')))}({subscript()}) + 1 where {where}")
    reads = [f"T({subscript()})"] + ([f"S({subscript()})"] if middle and draw(st.booleans()) else [])
    value = " + ".join(reads)
    if draw(st.integers(0, 3)) == 0:
        value = f"(i > 0 ? {value} : 0)"
    lines.append(f"O({left}) = {value} where {where}")
    if draw(st.integers(0, 5)) == 0:
        lines.append(f"T({left}) += 1")
    results = "O, T" if lines[-1].startswith("T") or draw(st.booleans()) else "O"
    body = "\n    ".join(lines)
    return f"def f(int32({','.join('N' * rank)}) X, int32(N) Z) -> ({results}) {{\n    {body}\n}}"


def shaped(data, schedule):
    """The same random loops on all stages: sharing needs equal loops."""
    stages = schedule.stages
    rank = len([r for r in schedule.graph.stage(stages[0]).roots if r.kind == "output"])
    change = data.draw(st.integers(0, 4))
    for stage in stages:
        if change == 1:
            schedule = schedule.split(stage, "i", 2)
        if change == 2 and rank == 2:
            schedule = schedule.reorder(stage, "j", "i")
        if change == 3 and rank == 2:
            schedule = schedule.fuse(stage, "i", "j")
        if change == 4 and rank == 2:
            schedule = schedule.tile(stage, "i", "j", 2, 3)
    return schedule


MEASURED = Counter()


@settings(max_examples=150, deadline=None, derandomize=True, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))  # fmt: skip
@given(pairs(), st.data())
def check_one(text, data):
    found = program_of(text)
    assume(found is not None)
    program, ranges = found
    schedule = shaped(data, schedule_of(program, ranges))
    graph = schedule.graph
    early, late = data.draw(st.sampled_from([(a, b) for a in graph.stages for b in graph.stages if a.name != b.name]))
    axis = data.draw(st.sampled_from(early.leaves))
    depth = early.leaves.index(axis) + 1
    problem = check_with(graph, late, early, axis)
    if problem is not None and problem.code is codes.BAD_ATTACH:
        MEASURED["other loops"] += 1
        return
    adjacent = graph.position(late.name) == graph.position(early.name) + 1
    wrong = [wrong_order(graph, early, late, depth, {"N": n}) for n in range(1, MOST + 1)]
    if problem is None:
        MEASURED["accepted"] += 1
        assert not any(wrong), (text, schedule.to_python(), early.name, late.name, axis, wrong)
        shared = schedule.compute_with(late.name, early.name, axis)
        for n in (1, 2, 5):
            numbers = {"N": n}
            assume(in_bounds(program, ranges, numbers))
            arrays = arguments(program, n, numbers)
            expected = run(schedule_of(program, ranges), arrays, numbers)
            for name, values in run(shared, arrays, numbers).items():
                np.testing.assert_array_equal(values, expected[name], err_msg=f"{text}\n{shared.to_python()}")
    elif problem.witness is not None:
        MEASURED["refused with a witness"] += 1
        witness = problem.witness
        one, two = graph.stage(witness.first), graph.stage(witness.second)
        confirmed = wrong_order(graph, one, two, depth, witness.sizes)
        assert confirmed is not None, (text, schedule.to_python(), witness.text())
        assert touches(graph, one, witness.here, witness)
        assert touches(graph, two, witness.there, witness)
    else:
        MEASURED["refused for another stage in between"] += 1
        assert not adjacent
        if not any(wrong) and not jumps(graph, early, late):
            MEASURED["refused and legal"] += 1


def touches(graph, stage, point, witness):
    roots = {root.name: value for root, value in zip(stage.roots, point, strict=True)}
    return any((t, e) == (witness.tensor, witness.element) for t, e, _ in accesses(graph, stage, roots, witness.sizes))


def jumps(graph, early, late):
    """Whether a stage in between has a conflict with `late` at some size."""
    between = graph.stages[graph.position(early.name) + 1 : graph.position(late.name)]
    for other in between:
        for n in range(1, MOST + 1):
            mine = {a[:2]: a[2] for _, r in points(late, {"N": n}) for a in accesses(graph, late, r, {"N": n})}
            for _, roots in points(other, {"N": n}):
                for tensor, element, writes in accesses(graph, other, roots, {"N": n}):
                    if (tensor, element) in mine and (writes or mine[tensor, element]):
                        return True
    return False


def test_refusals_have_witnesses_and_none_was_legal():
    """States the share: of all refusals for the order of statements, none was legal at sizes 1 to 5."""
    MEASURED.clear()
    check_one()
    refused = MEASURED["refused with a witness"] + MEASURED["refused for another stage in between"]
    assert refused >= 20, MEASURED
    assert MEASURED["accepted"] >= 20, MEASURED
    assert MEASURED["refused and legal"] / refused == 0.0, MEASURED


@drawn(15, 60, pairs(), st.data())
def test_a_place_that_does_not_serve_a_consumer_is_refused_with_one_of_its_reads(text, data):
    found = program_of(text)
    assume(found is not None)
    schedule = schedule_of(*found)
    graph = schedule.graph
    producer, consumer = (data.draw(st.sampled_from(graph.stages)) for _ in range(2))
    users = {user.name for user in graph.consumers(graph.stages_on(producer.target)[0].name)} - {consumer.name}
    family = {stage.name for stage in graph.stages_on(producer.target)}
    assume(users and producer.name not in graph.outputs and consumer.name not in family)
    refused = refusal(schedule.compute_at, producer.name, consumer.name, data.draw(st.sampled_from(consumer.leaves)))
    assert refused.code.number == "TC401"
    user = next(stage for stage in graph.stages if stage.name in users)
    witness = outside_read(graph, producer, user)
    assert witness.text() in refused.message
    assert touches(graph, user, witness.there, witness)


# --- single cases ----------------------------------------------------------------------------------------------------

CHAIN = "def f(float(N) X) -> (L) {{ E(i) = X(i)  P(i,j) = E({}) * X(j) where i in 0:N  L(i,j) = P(i,j) + 1 }}"


def refusal(change, *arguments):
    with pytest.raises(CompileError) as caught:
        change(*arguments)
    return caught.value.diagnostics[0]


def test_the_witness_of_a_stencil_has_the_smallest_sizes():
    schedule = default("def f(float(N) X) -> (O) { T(i) = X(i)  O(i) = T(i) + T(i+1) + T(i+2) }")
    found = refusal(schedule.compute_with, "O", "T", "i")
    assert found.code.number == "TC407"
    assert "with N = 3, `O` at (0) reads T(1), which `T` makes later, at (1)" in found.message


def test_the_order_inside_shared_loops_is_checked_for_attached_producers():
    ahead = default(CHAIN.format("min(i+1,N-1)")).compute_at("P", "L", "j")
    found = refusal(ahead.compute_with, "L", "E", "i")
    assert "`P` at (0, 0) reads E(1), which `E` makes later, at (1)" in found.message
    behind = default(CHAIN.format("max(i-1,0)")).compute_at("P", "L", "j").compute_with("L", "E", "i")
    x = np.arange(4, dtype="float32")
    np.testing.assert_allclose(
        run(behind, {"X": x}, {"N": 4})["L"], x[[0, 0, 1, 2]][:, None] * x[None, :] + 1, rtol=1e-6
    )


def test_a_shared_loop_belongs_to_one_stage():
    schedule = default(CHAIN.format("max(i-1,0)")).compute_at("P", "L", "i")
    assert "`P` runs inside `L[i]`, which would be shared" in refusal(schedule.compute_with, "L", "E", "i").message
    schedule = default(CHAIN.format("max(i-1,0)")).compute_at("P", "L", "j").compute_with("L", "E", "i")
    assert "it is a loop of `E`, which `L` shares" in refusal(schedule.compute_at, "P", "L", "i").message


def test_an_independent_stage_may_share_a_reduction_loop():
    text = "def f(float(N,K) A) -> (C, D) { C(i) +=! A(i,k)  D(i,k) = A(i,k) * 2 }"
    schedule = default(text).compute_with("D", "C", "k")
    a = np.arange(6, dtype="float32").reshape(2, 3)
    found = run(schedule, {"A": a}, {"N": 2, "K": 3})
    np.testing.assert_allclose(found["C"], a.sum(1))
    np.testing.assert_allclose(found["D"], 2 * a)


THROUGH = """def f(float(N,N) X, float(N,N) Y) -> (A, E) {
    A(j,i) = X(j,i) * Y(j,i)
    L(l,j) +=! X(l,i) * Y(i,j)
    P(l,j) = L(l,j) + 1
    E(m,l) = P(m,l) * X(m,l)
}"""


def test_who_reads_an_inlined_stage_reads_what_that_reads():
    """`E` reads `L` through `P`: it must not run in the loops of `A`, before the loops of `L`."""
    schedule = default(THROUGH).compute_inline("P")
    assert (
        "`E` reads `L`, which is made after the loops of `A`" in refusal(schedule.compute_with, "E", "A", "j").message
    )
    x, y = np.random.default_rng(1).integers(-3, 4, (2, 5, 5)).astype("float32")
    for target in ("cpu", "interpreter"):
        a, e = tc.compile(THROUGH, target=target).f(x, y)
        np.testing.assert_array_equal(a, x * y)
        np.testing.assert_array_equal(e, (x @ y + 1) * x)


def test_siblings_run_from_the_inside_out():
    text = "def f(float(N,N) X) -> (A, B, C) { A(i,j) = X(i,j)  B(i,j) = A(i,j)  C(i,j) = B(i,j) }"
    schedule = default(text).compute_with("B", "A", "i")
    assert refusal(schedule.compute_with, "C", "A", "j").code.number == "TC407"
    default(text).compute_with("B", "A", "j").compute_with("C", "A", "i")


def test_tails_must_agree_to_share():
    text = "def f(float(N) X) -> (A, B) { A(i) = X(i)  B(p,q) = X(p) where p in 0:(N+3)/4, q in 0:4 }"
    schedule = default(text).split("A", "i", 4)
    assert "differ" in refusal(schedule.compute_with, "B", "A", "i.inner").message


def test_where_data_decide_an_order_cannot_be_proved():
    schedule = default("def f(int32(N) I, float(N) X) -> (O) { T(i) = X(i)  O(i) = T(I(i)) }")
    found = refusal(schedule.compute_with, "O", "T", "i")
    assert found.code.number == "TC407"
    assert "(where `O` reads depends on data)" in found.message or "makes later" in found.message


def test_without_the_set_library_plain_orders_are_still_proved(monkeypatch):
    monkeypatch.setattr(sets, "_library", lambda: None)
    same = "def f(float(N,M) X) -> (O) { T(i,j) = X(i,j)  O(i,j) = T(i,j) + T(i,0) }"
    default(same).compute_with("O", "T", "i")
    other = "def f(float(N) X) -> (O) { T(i) = X(i)  O(i) = T(N-1-i) }"
    found = refusal(default(other).compute_with, "O", "T", "i")
    assert (found.code.number, "not installed" in found.message) == ("TC407", True)


def test_a_reorder_keeps_readers_in_the_loop_of_what_they_read():
    """`T` is made in `O[i]`, `U` in `O[j]` reads it: `j` cannot go outside `i`."""
    text = "def f(float(N,M) X) -> (O) { T(i,j) = X(i,j) + 1  U(i,j) = 2 * T(i,j)  O(i,j) = U(i,j) + 3 }"
    schedule = default(text).compute_at("U", "O", "j").compute_at("T", "O", "i")
    with pytest.raises(CompileError, match="`T` cannot run there") as error:
        schedule.reorder("O", "j", "i")
    assert error.value.diagnostics[0].code is codes.BAD_ATTACH


@pytest.mark.parametrize("body", [
    "Z(i) = T(i)  Y(j) = T(j) + T(0) where j in 0:abs(s)",
    "Z(j) = T(j) where j in 0:N  Y(j) +=! T(min(max(j + k, 0), T.0 - 1)) where j in 0:s, k in 0:N",
])  # fmt: skip
def test_an_extent_may_depend_on_an_integer_scalar(body):
    """A read outside the loop is looked for at small numbers of sizes and scalars."""
    schedule = default(f"def f(float(N) X, int32 s) -> (Y, Z) {{ T(j) = X(j)  {body} }}")
    with pytest.raises(CompileError, match=r"with N = 1, s = 1, `Z` at \(0\) reads T\(0\) outside that loop"):
        schedule.compute_at("T", "Y", "j")
