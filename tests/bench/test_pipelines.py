"""Programs of Halide in the headers of workloads: both schedules compute the def, on the caller's arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tc_jupyter.bench import cpu, workloads
from tc_jupyter.bench.pipelines import pipeline_calls
from tc_jupyter.compiler.peers import installed
from tc_jupyter.function import compile

SCALED = """def scaled(X, f):
    Y, (i, j) = hl.Func(), map(hl.Var, "ij")
    Y[j, i] = f * X[j, i] + i
    yield Y
    Y.parallel(i).vectorize(j, min(16, M))
"""
SUMS = """def sums(X):
    Y, i, r = hl.Func(), hl.Var("i"), hl.RDom([(0, M)])
    Y[i] = hl.Tuple((hl.sum(X[r, i]), hl.maximum(X[r, i])))
    yield Y
    Y.parallel(i)
"""
ROWS = ["Halide", "Halide (auto)"]


def test_both_schedules_compute_in_place_and_read_what_the_caller_has_now():
    pytest.importorskip("halide")
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    calls = pipeline_calls(SCALED, {"X": x, "f": 3.0}, {"N": 5, "M": 7}, x, 1)
    assert list(calls) == ROWS
    for number, call in enumerate(calls.values()):
        x[2, 1] = 100 + number
        result = call()
        np.testing.assert_array_equal(result, 3 * x + np.arange(5)[:, None])
        assert call() is result


def test_one_func_has_several_results():
    pytest.importorskip("halide")
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    for call in pipeline_calls(SUMS, {"X": x}, {"N": 5, "M": 7}, (x.sum(1), x.max(1)), 2).values():
        for found, expected in zip(call(), (x.sum(1), x.max(1)), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_what_was_found_and_leaves_its_buffers_is_no_candidate():
    hl = pytest.importorskip("halide")
    x = np.zeros(4, np.float32)
    beyond = SUMS.replace("X[r, i]", "X[r, i + 1]")
    calls = pipeline_calls(beyond, {"X": x[:, None]}, {"N": 4, "M": 1}, (x, x), 1)
    assert list(calls) == ROWS[:1]
    with pytest.raises(hl.HalideError, match="beyond the max"):
        calls["Halide"]()


def test_the_two_are_candidates_where_the_package_is_installed():
    lines = "".join(
        f"# halide: {line}\n" for line in SCALED.replace("(X, f)", "(X)").replace("f * ", "3 * ").splitlines()
    )
    workload = workloads.parse_workload(
        f"# name: a\n# sizes: N=4 M=3\n# numpy: 3*X + np.arange(4)[:, None]\n{lines}"
        "def scaled(float(N,M) X) -> (Y) { Y(i,j) = 3*X(i,j) + i }"
    )
    sizes = workload.sizes[0]
    function = compile(workload.text, target="interpreter").scaled
    arrays = workloads.make_data(workload, function, sizes)
    result = function(*arrays.values())
    calls, agrees = cpu._candidates(workload, arrays, sizes, result, compiled=False)
    assert list(calls) == ["numpy", *ROWS * installed("halide")]
    assert all(agrees.values())
    twice = 2 * result
    assert not any(cpu._candidates(workload, arrays, sizes, twice, compiled=False)[1].values())
