"""Weakened copies of the templates' CUDA text are noticed; `python -m tests.gpu.mutants` prints all of them."""

from __future__ import annotations

import pytest

from tc_jupyter.runtime import nvrtc
from tests.gpu.cases import CASES
from tests.gpu.mutants import harmless, mutants, variants

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

LOST = ("barrier", "wait", "wait for one group less", "commit", "start value")


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["product", "half product", "transpose", "total"])
def test_lost_barriers_waits_and_start_values(name):
    """Without one of them the simulator has a finding, or the result is wrong."""
    (variant,) = variants(name, CASES[name].sizes[-1:] if name == "total" else CASES[name].sizes[:1])
    lost = [(place, mutant) for place, mutant in variant.mutants() if mutant.kind in LOST]
    assert lost
    assert [mutant for place, mutant in lost if not variant.caught(place, mutant.text)] == []


@pytest.mark.slow
@pytest.mark.parametrize("number, name", list(enumerate(CASES)))
def test_some_weakened_copies_of_every_template(number, name):
    """One of each; other templates show other kinds."""
    variant = variants(name)[0]
    every = variant.mutants()
    place, mutant = every[(number * 7) % len(every)]
    reason = harmless(mutant, variant.sources[place].text)
    assert variant.caught(place, mutant.text) or reason, mutant.now


def test_what_is_weakened():
    """One copy per barrier, wait, part of a condition, loop, factor of a subscript, start value."""
    text = """extern "C" __global__ void f(float* O, int N) {
    float s[4];
    s[0] = 0.0f;
    for (int k = 0; k < N; k++) {
        tc_cp_async_wait<1>();
        __syncthreads();
        if (k < N && N > 3) {
            O[4 * k + N * 2] = s[0];
        }
    }
}
"""
    kinds = [mutant.kind for mutant in mutants(text)]
    assert sorted(kinds) == sorted(
        ["start value", "end", "wait", "wait for one group less", "barrier", "guard", "guard", "stride", "stride"]
    )
