"""Every def of the literate cases and pages, called with arrays in random chunks."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest

import tc_jupyter as tc
from tests.literate import DOCS, read_cases

from .chunkings import arguments_for, judge

pytest.importorskip("dask.array")

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
