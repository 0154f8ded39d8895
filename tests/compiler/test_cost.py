"""Operations and bytes of a def."""

from __future__ import annotations

import pytest

from tc_jupyter.compiler import analyze
from tc_jupyter.compiler.cost import cost_of, per_point


def cost(text):
    (found,) = analyze(text).functions.values()
    return cost_of(found.program, found.ranges)


@pytest.mark.parametrize(
    ("text", "sizes", "flops", "read", "written"),
    [
        (
            "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
            {"M": 2, "K": 3, "N": 4},
            48,
            4 * 18,
            4 * 8,
        ),
        ("def f(double(N) X) -> (Y) { Y(i) = X(i) }", {"N": 5}, 0, 40, 40),
        ("def f(float(N) X) -> (Y) { Y(i) = tanh(X(i) * 2 + 1) }", {"N": 5}, 15, 20, 20),
        ("def f(float(N) X, float a) -> (s) { s +=! X(i) * a }", {"N": 5}, 10, 20, 4),
        (
            "def f(float(V,D) W, int32(N) T) -> (E) { E(n,d) = W(T(n), d) }",
            {"V": 100, "D": 2, "N": 3},
            0,
            4 * 6 + 12,
            24,
        ),
        ("def f(float(V,D) W, int32(N) T) -> (E) { E(n,d) = W(T(n), d) }", {"V": 2, "D": 2, "N": 9}, 0, 4 * 4 + 36, 72),
        ("def f(float(N) X) -> (Y) { T(i) = X(i) * X(i)  Y(i) = T(i) + X(i) }", {"N": 4}, 8, 16, 16),
        ("def f(float(N) X) -> (Y) { Y(i) = X(i) > 0 ? X(i) * 2 + 1 : -X(i) }", {"N": 3}, 6, 12, 12),
        ("def f(float(N) X) -> (Y) { Y(i) = X(2*i + 1) where i in 0:3 }", {"N": 9}, 0, 36, 12),
        ("def f(float(N) X) -> (Y) { Y(i) = i + 1 < N ? X(i + 1) + 1 : 0 where i in 0:N }", {"N": 5}, 5, 20, 20),
    ],
)
def test_costs(text, sizes, flops, read, written):
    counts = cost(text).at(sizes)
    assert (counts.flops, counts.bytes_read, counts.bytes_written) == (flops, read, written)
    assert counts.bytes == read + written
    assert counts.intensity == flops / (read + written)


def test_index_arithmetic_is_free():
    (found,) = analyze("def f(float(N) X) -> (Y) { Y(i) = X(i*2 + 1) where i in 0:1 }").functions.values()
    assert per_point(found.program.statements[0]) == 0
