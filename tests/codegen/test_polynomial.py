"""What is known of the length of a loop where it stands."""

from __future__ import annotations

import pytest
from llvm_kernels import add, least, mul, op, size, var

from tc_jupyter.codegen.llvm.polynomial import has_iterations
from tc_jupyter.program import int64

N = size("N")
i, j = var("i"), var("j")
LINES = op("//", add(N, 15), int64(16))


def rest(*done):
    """What tiles of 16 leave of N."""
    left = N
    for each in done:
        left = op("-", left, each)
    return least(left, 16)


def panel(most):
    """What tiles of 16 leave of at most `-most` elements of a panel of N."""
    beyond = op("max", op("-", mul(int64(64), i), N), int64(most))
    return least(op("-", op("-", int64(0), mul(int64(16), j)), beyond), 16)


@pytest.mark.parametrize(
    ("length", "loops", "runs"),
    [
        (rest(mul(int64(16), j)), {"j": LINES}, True),
        (rest(mul(int64(16), j)), {"j": add(LINES, 1)}, False),
        (rest(mul(int64(16), j), mul(int64(64), i)), {"j": least(op("-", LINES, mul(int64(4), i)), 4)}, True),
        (rest(mul(int64(16), j), mul(int64(64), i)), {"j": least(op("-", LINES, mul(int64(3), i)), 4)}, False),
        (rest(mul(int64(8), j), mul(int64(64), i)), {"j": least(op("-", LINES, mul(int64(4), i)), 4)}, False),
        (rest(mul(int64(16), j), mul(int64(64), i)), {"j": int64(4)}, False),
        (panel(-64), {"j": op("//", least(add(op("-", N, mul(int64(64), i)), 15), 79), int64(16))}, True),
        (panel(-64), {"j": op("//", least(add(op("-", N, mul(int64(64), i)), 15), 80), int64(16))}, False),
        (panel(-48), {"j": op("//", least(add(op("-", N, mul(int64(64), i)), 15), 79), int64(16))}, False),
    ],
)
def test_the_last_of_nested_tiles_has_iterations(length, loops, runs):
    assert has_iterations(length, loops) is runs
