"""Laws on random programs: every engine computes what the loop interpreter computes, and nobody leaves an array."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tc_jupyter as tc
from tests.strategies import arguments, programs, sizes

CHECKS = list(HealthCheck)
GUARD = 64  # elements before and after every argument that must stay as they are


def guarded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A copy of `array` inside a larger poisoned block, and the block."""
    flat = np.full(array.size + 2 * GUARD, 99).astype(array.dtype)
    inner = flat[GUARD : GUARD + array.size].reshape(array.shape)
    inner[...] = array
    return inner, flat


def compare(text: str, numbers: dict[str, int], seed: int) -> None:
    analysis = tc.analyze(text)
    assume(analysis.ok)
    program = analysis.functions["f"].program
    arrays = arguments(program, seed, numbers)
    slow = tc.compile(text, target="interpreter")["f"]
    fast = tc.compile(text, target="cpu")["f"]
    blocks = {name: guarded(array) for name, array in arrays.items()}
    try:
        expected = slow(*arrays.values())
    except tc.CallError as error:
        code = error.diagnostic.code
        with pytest.raises(tc.CallError) as caught:
            fast(*(inner for inner, _ in blocks.values()))
        assert caught.value.diagnostic.code == code
        return
    found = fast(*(inner for inner, _ in blocks.values()))
    for name, (inner, flat) in blocks.items():
        np.testing.assert_array_equal(inner, arrays[name])
        assert (flat[:GUARD] == np.array(99).astype(flat.dtype)).all()
        assert (flat[flat.size - GUARD :] == np.array(99).astype(flat.dtype)).all()

    def as_tuple(value):
        return value if isinstance(value, tuple) else (value,)

    for mine, theirs in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        tolerance = {2: 5e-3, 4: 1e-4, 8: 1e-9}[mine.dtype.itemsize] if mine.dtype.kind == "f" else 0
        np.testing.assert_allclose(
            mine.astype("float64"),
            theirs.astype("float64"),
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"{text}\n{numbers}",
        )


@settings(max_examples=300, deadline=None, suppress_health_check=CHECKS)
@given(programs(), sizes(), st.integers(0, 1000))
def test_cpu_engine_computes_what_the_interpreter_computes(text, numbers, seed):
    compare(text, numbers, seed)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=CHECKS)
@given(programs(), sizes(), st.integers(0, 1000))
def test_cpu_engine_computes_what_the_interpreter_computes_many(text, numbers, seed):
    compare(text, numbers, seed)
