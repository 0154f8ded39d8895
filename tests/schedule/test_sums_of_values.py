"""Sums of a few values of each element: how many results are added up together."""

from __future__ import annotations

import pytest

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
