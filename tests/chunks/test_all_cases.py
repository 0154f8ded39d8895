"""Every def of the literate cases and pages, called with arrays in random chunks."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest

import tc_jupyter as tc
from tests import tc_programs, test_sac_cases
from tests.literate import DOCS, read_cases

from .chunkings import arguments_for, judge

dask_array = pytest.importorskip("dask.array")

CASES = DOCS.parents[1] / "tests" / "cases" / "tc"
PARTS = 8


def outcomes(part):
    """What became of the calls of every eighth case."""
    paths = sorted([*DOCS.glob("*.md"), *CASES.glob("*.md")])
    cases = [case for path in paths for case in read_cases(path) if case.language == "tc" and case.steps is None]
    for number, case in list(enumerate(cases))[part::PARTS]:
        if not case.analysis.ok:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = tc.compile(case.program, target="interpreter")
        except tc.CompileError:  # calls what is not there, as a case may
            continue
        for function in module.values():
            program = function.program
            if program.reducer is not None:
                continue
            sizes = {size: 4 + (7 * place + number) % 4 for place, size in enumerate(program.sizes)}
            values = arguments_for(program, sizes, number)
            if any(isinstance(each, np.ndarray) and each.ndim for each in values):
                yield judge(function, values, number)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_def_of_the_cases(part):
    found = Counter(outcomes(part))
    assert found["equal"] >= 10
    assert found["close"] >= 1


def sac_outcomes(cases):
    for number, case in cases:
        text, line = case.values
        call = line.rpartition(" -> ")[0]
        name, _, arguments = call.partition("(")
        values = eval(f"({arguments[:-1]},)" if arguments != ")" else "()", dict(test_sac_cases.HELPERS))
        if not any(isinstance(each, np.ndarray) and each.ndim for each in values):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function = tc.compile(text, language="sac", target="interpreter")[name]
                function(*values)
        except (tc.CompileError, tc.CallError):
            continue
        try:
            yield judge(function, values, number)
        except AssertionError as problem:
            if "decides what" not in str(problem):  # elements of an argument, which are not computed yet
                raise
            yield "decides"


@pytest.mark.slow
def test_calls_of_the_sac_cases():
    """Some of them, one with a border in six dimensions; all of them take two minutes."""
    cases = list(enumerate(test_sac_cases.cases()))
    high = [each for each in cases if each[1].values[1].startswith("rotated(R(1, 2, 1, 2, 1, 2)")]
    assert len(high) == 1
    assert Counter(sac_outcomes([*cases[3::40], *high]))["equal"] >= 6


DRAWN = {
    "plain": tc_programs.drawn,
    "left sides": tc_programs.drawn_left_sides,
    "points": tc_programs.drawn_points,
    "orders": tc_programs.drawn_orders,
    "complex": tc_programs.drawn_complex,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind in DRAWN for seed in range(3)] + [("points", 1063), ("orders", 5012)]
)
def test_drawn_programs(kind, seed):
    """Random programs; the last ones hand on a computed number, and ask isl for what it has no formula for."""
    text = DRAWN[kind](seed)[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = tc.compile(text, target="interpreter")
    except tc.CompileError:
        return
    for function in module.values():
        if function.program.reducer is None:
            sizes = {size: (3, 6, 4, 7)[(place + seed) % 4] for place, size in enumerate(function.program.sizes)}
            judge(function, arguments_for(function.program, sizes, seed), seed)


@pytest.mark.parametrize("edges", [(4, 1), (1, 3, 1), (5,)])
def test_a_diagonal_is_written_where_it_is_in_the_whole_array(edges):
    f = tc.compile("def f(float(N) A) -> (D) { D(i, j) = 0 where i in 0:N, j in 0:N  D(i, i) = A(i) }").f
    a = np.arange(1, 6, dtype=np.float32)
    np.testing.assert_array_equal(f(dask_array.from_array(a, chunks=(edges,))).compute(), np.diag(a))
