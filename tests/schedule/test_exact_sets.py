"""Exact needs as integer sets: the worked examples, random schedules against enumeration, and what is no integer set."""

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.ranges import sets
from tc_jupyter.schedule import schedule_of
from tests.running import default, in_bounds, kernels_of, program_of, run
from tests.schedule.test_bounds import COMMON, DISJOINT, EXAMPLES, FUSED, fused
from tests.strategies import arguments, drawn, programs, random_schedule, sizes

STENCIL = "def f(float(N,M) X) -> (Y) { T(i,j) = 2*X(i,j)  Y(i,j) = T(i,j) + T(i,j+1) }"
STRIDED = "def f(float(N) X) -> (Y) { T(i) = exp(X(i))  Y(i) = T(2*i) + T(2*i+4) }"
GATHERED = "def f(int32(N) I, float(M) X) -> (Y) { T(i) = X(i)  Y(i) = T(I(i)) where i in 0:N }"


def pairs(need):
    """Rows (visit, element) of an enumerated need."""
    visits = need.visits[need.visit_of] if len(need.visits) else np.zeros((0, len(need.path)), int)
    return {(*map(int, v), *map(int, e)) for v, e in zip(visits, need.elements, strict=True)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_sets_of_the_worked_examples_are_those_of_the_enumeration(name):
    text, change, stage, *_ = EXAMPLES[name]
    bounds = change(default(text)).bounds()
    found = bounds.need(stage)
    assert found.exact
    assert set(found.mapping.wrapped().points()) == pairs(bounds.needs[stage])


def test_a_set_with_symbolic_sizes():
    bounds = default(STENCIL).split("Y", "i", 4).compute_at("T", "Y", "i.outer").bounds()
    need = bounds.need("T")
    assert need.exact
    assert need.path == ("Y[i.outer]",)
    assert need.mapping.image({"N": 6, "M": 3, "Y[i.outer]": 1}).points() == [(i, j) for i in (4, 5) for j in (0, 1, 2)]
    assert need.mapping.image({"N": 6, "M": 1, "Y[i.outer]": 1}).points() == []


VIEWED = """
def g(int64(N) D) -> (T) { T(k) = D(k) where k in 1:N }
def f(int64(N) X) -> (Y) { R = g(X)  R(i) += 1  Y(j) = R(min(R.0 - 1, 2*j)) where j in 0:7 }
"""


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_result_of_a_def_counts_from_its_own_first_element(target):
    """A later statement on it was left out at elements that are needed: they were those of the callee's tensor, which begins at 1."""
    f = tc.compile(VIEWED, target=target).f
    assert f(np.array([2, 1, 3])).tolist() == [2, 4, 4, 4, 4, 4, 4]
    assert f(np.arange(20)).tolist() == [2, 4, 6, 8, 10, 12, 14]
    bounds = f.schedule().bounds(N=9)
    for stage in ("g.T", "R#2"):
        assert set(bounds.need(stage).mapping.wrapped().points()) == pairs(bounds.needs[stage])
    assert pairs(bounds.needs["R#2"]) == {(0,), (2,), (4,), (6,), (7,)}


def test_a_fused_axis_of_symbolic_length_needs_numbers():
    schedule = default(STENCIL).fuse("Y", "i", "j").split("Y", "i.j.fused", 4)
    schedule = schedule.compute_at("T", "Y", "i.j.fused.outer")
    need = schedule.bounds().need("T")
    assert not need.exact
    assert need.needs_numbers
    assert "`j` of `Y` is fused" in need.reason
    (note,) = schedule.bounds().diagnostics
    assert note.code.number == "TC409"
    numbers = schedule.bounds(N=5, M=7)
    assert numbers.need("T").exact
    assert numbers.need("T").mapping.wrapped().count() == numbers.stage("T").elements


def test_where_data_decide_the_set_is_a_box():
    need = default(GATHERED).bounds().need("T")
    assert not need.exact
    assert not need.needs_numbers
    assert need.reason == "where `Y` reads depends on data"
    assert need.mapping.image({"N": 2, "M": 3}).points() == [(0,), (1,), (2,)]


def test_without_the_set_library_there_is_only_the_box(monkeypatch):
    monkeypatch.setattr(sets, "_library", lambda: None)
    bounds = fused(default(FUSED), 3).bounds()
    need = bounds.need("B")
    assert (need.mapping, need.exact, need.reason) == (None, False, "the set library is not installed")
    assert bounds.stage("B").computed == 26
    assert not bounds.exact


def test_an_unknown_stage_is_refused():
    with pytest.raises(CompileError, match="TC411"):
        default(COMMON).bounds().need("Q")


def test_notes_have_both_counts():
    (note,) = fused(default(FUSED), 3).bounds().diagnostics
    assert (note.code.number, note.message) == ("TC402", "the boxes of `B` have 26 elements, 16 are needed")
    text, change, *_ = EXAMPLES["Ex. 4 at dj"]
    (note,) = change(default(text)).bounds().diagnostics
    assert note.code.number == "TC408"
    assert "320 elements, 80 different ones: each 4 times" in note.message
    assert default(COMMON).bounds().diagnostics == ()


# --- loops over exact sets -------------------------------------------------------------------------------------------


def test_only_needed_elements_are_computed():
    bounds = default(DISJOINT).bounds()
    assert bounds.stage("T").computed == 8
    assert bounds.exact
    kernel = kernels_of(default(DISJOINT))[0]
    held = np.full((4, 4), -1)
    from tc_jupyter.loops.interpret import interpret

    interpret(kernel, {"T": held}, {}, {})
    assert (held >= 0).sum() == 8


def test_a_stride_is_tested_and_a_halo_is_not():
    strided = default(STRIDED).compute_at("T", "Y", "i")
    assert strided.bounds(N=20).stage("T").computed_per_visit == (2,) * 8
    halo = default(STENCIL).split("Y", "i", 4).compute_at("T", "Y", "i.outer").bounds()
    assert "# only" not in halo.loops()
    assert "# only" in strided.bounds().loops()


@pytest.mark.parametrize("text", [STRIDED, DISJOINT])
def test_values_stay_right(text):
    schedule = default(text)
    arrays = {"X": np.arange(20, dtype="float32") / 20} if "X" in text else {}
    numbers = {"N": 20}
    plain = run(schedule, arrays, numbers)
    for loop in ("i",) if text == STRIDED else ():
        changed = run(schedule.compute_at("T", "Y", loop), arrays, numbers)
        np.testing.assert_array_equal(changed["Y"], plain["Y"])
    for name, values in plain.items():
        assert np.isfinite(values.astype("float64")).all(), name
        assert not (values == 77).any(), name


@drawn(35, 100, programs(dtypes=("int32",)), st.data(), sizes())
def test_sets_are_what_the_enumeration_finds(text, data, numbers):
    found = program_of(text)
    assume(found is not None)
    program, ranges = found
    assume(in_bounds(program, ranges, numbers))
    schedule = random_schedule(data, schedule_of(program, ranges), steps=4)
    given_sizes = {name: numbers[name] for name in program.sizes}
    general, sized = schedule.bounds(), schedule.bounds(**given_sizes)
    for name in sized:
        expected = pairs(sized.needs[name])
        for bounds in (general, sized):
            need = bounds.need(name)
            if need.exact:
                points = set(need.mapping.wrapped().points({**numbers, **given_sizes}))
                assert points == expected, (text, schedule.to_python(), name, numbers)


@drawn(30, 80, programs(dtypes=("int32",), chain=True), st.data(), sizes())
def test_loops_over_sets_compute_the_same(text, data, numbers):
    found = program_of(text)
    assume(found is not None)
    program, ranges = found
    assume(in_bounds(program, ranges, numbers))
    base = schedule_of(program, ranges)
    arrays = arguments(program, 1, numbers)
    expected = run(base, arrays, numbers)
    changed = random_schedule(data, base, steps=4)
    for name, values in run(changed, arrays, numbers).items():
        np.testing.assert_array_equal(values, expected[name], err_msg=f"{text}\n{changed.to_python()}\n{numbers}")


@drawn(40, 120, programs(dtypes=("int32",)), st.data(), sizes())
def test_exact_is_at_most_the_box_and_that_at_most_tvms(text, data, numbers):
    found = program_of(text)
    assume(found is not None)
    program, ranges = found
    assume(in_bounds(program, ranges, numbers))
    schedule = random_schedule(data, schedule_of(program, ranges), steps=5)
    bounds = schedule.bounds(**{name: numbers[name] for name in program.sizes})
    for name in bounds:
        need = bounds.stage(name)
        rows = zip(
            need.elements_per_visit, need.hull_per_visit, need.tvm_per_visit, need.computed_per_visit, strict=True
        )
        for exact, hull, tvm, computed in rows:
            assert exact <= hull <= tvm, (text, schedule.to_python(), name, numbers)
            assert exact <= computed <= tvm, (text, schedule.to_python(), name, numbers)
