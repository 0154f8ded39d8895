"""`uniform` and `normal`: the generator is Philox4x32-10, and every engine gives the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tc_jupyter as tc
from tc_jupyter.program.random_numbers import philox
from tests.c_compiler import needs_compiler
from tests.codegen.test_c import run

KNOWN = (
    "00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    "ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd",
    "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1",
)
"""Counter, key and words, of the file `kat_vectors` of Random123."""
PROGRAM = """def f(uint64 s, int64(N) I) -> (A, B, C, Z) {
    A(i) = uniform(s, I(i), i, 3, -1)
    B(i) = uniform(7, i) where i in 0:N
    C(i) = normal(s, I(i))
    Z(i) = normal(s, i, 2) where i in 0:N
}"""
SEED = 0xFEDCBA9876543210


@pytest.mark.parametrize("line", KNOWN)
def test_known_words(line: str) -> None:
    numbers = [int(text, 16) for text in line.split()]
    assert [int(word) for word in philox(*numbers[4:6], *numbers[:4])] == numbers[6:]


def indices() -> np.ndarray:
    return np.array([0, 1, -1, 2**32, 2**32 + 1, 12345678901234, *range(5, 40)], np.int64)


def expected(numbers: np.ndarray) -> list[np.ndarray]:
    """By the definition, in `double`."""
    n = len(numbers)
    low, high = SEED & 0xFFFFFFFF, SEED >> 32
    counters = numbers.astype(np.uint64) & np.uint64(0xFFFFFFFF)
    at = np.arange(n)
    a = philox(low, high, counters, at, np.full(n, 3), np.full(n, 2**32 - 1))[0]
    b = philox(7, 0, at, 0 * at, 0 * at, 0 * at)[0]
    c, z = philox(low, high, counters, 0 * at, 0 * at, 0 * at), philox(low, high, at, 0 * at + 2, 0 * at, 0 * at)

    def normal(words: tuple) -> np.ndarray:
        first, second = (words[k] >> np.uint64(8) for k in (0, 1))
        size = np.sqrt(-2 * np.log((first + np.uint64(1)) * 2.0**-24))
        return (size * np.cos(2 * np.pi * second * 2.0**-24)).astype(np.float32)

    return [(word >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24) for word in (a, b)] + [
        normal(c),
        normal(z),
    ]


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator", pytest.param("c", marks=needs_compiler)])
def test_the_same_bits_everywhere(engine: str) -> None:
    numbers = indices()
    if engine == "c":
        text = PROGRAM.replace("uint64 s", "uint64(1) S").replace("(s,", "(S(0),")
        found = [mine for mine, _ in run(text, {"S": np.array([SEED], np.uint64), "I": numbers}, {"N": len(numbers)})]
    elif engine == "simulator":
        found = tc.compile(PROGRAM).f.simulate(SEED, numbers).outputs
    else:
        found = tc.compile(PROGRAM, target=engine).f(SEED, numbers)
    wanted = expected(numbers)
    for one, other in zip(found[:2], wanted[:2], strict=True):
        assert one.dtype == np.float32
        np.testing.assert_array_equal(one, other)
    for one, other in zip(found[2:], wanted[2:], strict=True):
        np.testing.assert_allclose(one, other, rtol=2.5e-7, atol=1e-7)


def test_the_distributions() -> None:
    module = tc.compile(
        "def f(int32 n) -> (U, Z) { U(i) = uniform(1, i) where i in 0:n  Z(i) = normal(1, i) where i in 0:n }"
    )
    uniform, normal = module.f(100_000)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert stats.kstest(uniform, "uniform").pvalue > 0.01
    assert stats.kstest(normal, "norm").pvalue > 0.01
