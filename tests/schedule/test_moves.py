"""The search space: every candidate and every mutation computes what the default schedule computes."""

from random import Random

import numpy as np
import pytest

from tc_jupyter.schedule import INTERPRETER, Target, candidates, mutate, schedule_of
from tc_jupyter.schedule.moves import fits
from tests.running import program_of, run
from tests.strategies import arguments

CPU = Target("cpu", vector_bits=256, vector_registers=16, threads=2)
GPU = Target("cuda", arch="sm_90")
PROGRAMS = {
    "stencil": "def f(float(N,M) X) -> (O) { T(i,j) = 2*X(i,j)  O(i,j) = T(i,j) + T(i,j+1) }",
    "product": "def f(float(N,K) A, float(K,M) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "softmax": "def f(float(N,M) X) -> (Y) { e(i,j) = exp(X(i,j))  s(i) +=! e(i,j)  Y(i,j) = e(i,j) / s(i) }",
    "sum": "def f(float(N) X) -> (S) { S +=! X(i) }",
    "rows": "def f(float(N,M) X) -> (Y) { Y(i,j) = (Y(i,j-1) else 0) + X(i,j) along j }",
    "corners": "def f(float(N,M) X) -> (Y) { Y(i,j) = 0.5*(Y(i-1,j+1) else 0) + 0.5*(Y(i,j-1) else 0) + X(i,j) along i, j }",
}
NUMBERS = {"N": 9, "M": 7, "K": 5}


def results(schedule, program, ranges):
    return run(schedule, arguments(program, 3, NUMBERS), NUMBERS)


def agree(schedule, program, ranges, expected):
    for name, values in results(schedule, program, ranges).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-4, atol=1e-4, err_msg=schedule.to_python())


@pytest.mark.some(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_candidates_for_a_cpu_compute_the_same(name):
    program, ranges = program_of(PROGRAMS[name])
    expected = results(schedule_of(program, ranges), program, ranges)
    found = candidates(program, ranges, CPU, {"N": 512, "M": 512, "K": 512}, most=60)
    assert len(found) >= {"sum": 4, "rows": 2, "corners": 1}.get(name, 8)
    assert len({schedule.steps for schedule in found}) == len(found)
    for schedule in found[:: 1 + len(found) // 25]:
        agree(schedule, program, ranges, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_candidates_for_a_gpu_keep_its_limits(name):
    program, ranges = program_of(PROGRAMS[name])
    found = candidates(program, ranges, GPU)
    assert found
    assert all(fits(schedule, GPU) for schedule in found)


def test_the_interpreter_has_one_candidate():
    program, ranges = program_of(PROGRAMS["product"])
    (only,) = candidates(program, ranges, INTERPRETER)
    assert only.steps == ()


def test_places_of_producers_are_candidates():
    program, ranges = program_of(PROGRAMS["stencil"])
    names = {step.name for schedule in candidates(program, ranges, CPU) for step in schedule.steps}
    assert {"compute_at", "compute_inline", "split", "reorder", "vectorize", "parallel"} <= names


@pytest.mark.some(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_mutations_compute_the_same(name):
    program, ranges = program_of(PROGRAMS[name])
    start = candidates(program, ranges, CPU, most=1)[0]
    expected = results(schedule_of(program, ranges), program, ranges)
    random = Random(5)
    schedule, changed = start, 0
    for _ in range(12):
        new = mutate(schedule, random, CPU)
        changed += new.steps != schedule.steps
        schedule = new
        agree(schedule, program, ranges, expected)
    assert changed >= 3


def test_a_mutation_never_binds_too_many_threads():
    program, ranges = program_of(PROGRAMS["stencil"])
    small = Target("cuda", arch="sm_90", max_threads=64)
    schedule = schedule_of(program, ranges).split("O", "j", 64).bind("O", "j.inner", "threadIdx.x")
    assert fits(schedule, small)
    assert not fits(schedule_of(program, ranges).split("O", "j", 128).bind("O", "j.inner", "threadIdx.x"), small)
    assert not fits(schedule_of(program, ranges).bind("O", "j", "threadIdx.x"), small)
    random = Random(1)
    for _ in range(20):
        schedule = mutate(schedule, random, small)
        assert fits(schedule, small)
