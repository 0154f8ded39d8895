"""Sums of a few values of each element: how many results are added up together."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler import analyze
from tc_jupyter.schedule import Target, default_schedule
from tc_jupyter.schedule.stage import Split

AVX2 = Target("cpu", features=frozenset({"avx2", "fma"}), vector_bits=256, vector_registers=16, fma=True)
AVX512 = Target("cpu", features=frozenset({"avx512f", "avx512vl", "avx512bw"}), vector_bits=512, vector_registers=32)


VALUE = "dY(b, o, n) * X(b, i, n + k)"


@pytest.mark.parametrize(
    ("target", "values", "together"), [(AVX512, 2, 8), (AVX512, 3, 8), (AVX512, 4, 4), (AVX2, 2, 4), (AVX2, 3, 4)]
)
def test_as_many_as_there_are_registers_for(target: Target, values: int, together: int) -> None:
    """The derivative of a convolution by its filter."""
    text = f"def f(float(B, O, N) dY, float(B, I, M) X) -> (dF) {{ dF(o, i, k) +=! {VALUE} where k in 0:{values} }}"
    (found,) = analyze(text).functions.values()
    relations = default_schedule(found.program, found.ranges, target).graph.stage("dF").relations
    assert [each.factor for each in relations if isinstance(each, Split) and each.parent == "o"] == [together]


DISTANCE = "((P(i,0)-P(j,0))*(P(i,0)-P(j,0)) + (P(i,1)-P(j,1))*(P(i,1)-P(j,1)))"


@pytest.mark.parametrize(
    ("parameters", "value", "vectors"),
    [
        ("float(N,2) P, float(N,2) A", f"A(i,c) * (P(j,c) - P(i,c)) / (1 + {DISTANCE})", True),
        ("float(N,2) P, float(N,2) A", f"i != j ? A(j,c) / (1 + {DISTANCE}) : 0", True),
        ("float(N,N,3) X, float(N) W", "X(i,j,c) * W(j)", True),
        ("float(N,N,3) X, float(N,3) W", "X(i,j,c) * W(j,c)", False),  # rows of neighbours
    ],
)
def test_vectors_run_over_points_where_something_does_not_depend_on_their_coordinates(parameters, value, vectors):
    """Distances were computed again for each coordinate."""
    text = f"def f({parameters}) -> (E) {{ E(i) +=! {value} }}"
    fast, slow = (tc.compile(text, target=target).f for target in ("cpu", "interpreter"))
    for points in (1, 7, 17, 37):
        shapes = [
            tuple(points if size == "N" else int(size) for size in each.split(","))
            for each in re.findall(r"\((.*?)\)", parameters)
        ]
        arrays = [np.random.default_rng(points).uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
        np.testing.assert_allclose(fast(*arrays), slow(*arrays), rtol=1e-4, atol=1e-5)
    stage = fast.default_schedule(N=1000).graph.stage("E")
    assert ("vectorize" in map(stage.annotation, stage.leaves) and stage.annotation("c") == "unroll") is vectors
