"""What a recorded call keeps: the def with more results, and derivatives that take them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler import analyze
from tc_jupyter.compiler.derivatives import remembering
from tests.gradient.checks import called, compiled, derived, draws, floats_of
from tests.gradient.defs import defs_of, in_doubles, programs

from tc_jupyter.gradient import vjp  # isort: skip

PROGRAMS = programs()
TITLES = [title for title, _ in PROGRAMS]


def halves(text):
    """The texts of the call that keeps more, and of its derivatives."""
    (found,) = analyze(text).functions.values()
    made = remembering(found.program, found.ranges, floats_of(found.program, found.program.parameters))
    return None if made is None else [" ".join(each.text.split()) for each in made]


def test_sums_are_kept_and_what_follows_from_smaller_ones_is_not():
    call, back = halves("""def softmax(float(N, D) X) -> (Y) {
        M(n) max=! X(n, d)
        E(n, d) = exp(X(n, d) - M(n))
        S(n) +=! E(n, d)
        Y(n, d) = E(n, d) / S(n)
    }""")
    assert "-> (float(N, D) Y, float(N) M, float(N) S)" in call
    assert "float(N, D) Y, float(N) M, float(N) S, float(N, D) dY )" in back
    assert "max=!" not in back
    assert " S(n) +=!" not in back
    assert "E(n, d) = exp(X(n, d) - M(n))" in back


def test_what_follows_from_a_sum_of_its_size_is_kept_instead():
    call, back = halves("""def two(float(N, I) X, float(O, I) W, float(Q, O) V) -> (Y) {
        A(n, o) +=! X(n, i) * W(o, i)
        P(n, o) = max(A(n, o), 0)
        Y(n, q) +=! P(n, o) * V(q, o)
    }""")
    assert "(float(N, Q) Y, float(N, O) P)" in call
    assert "A(n, o) +=!" not in back


def test_positions_are_kept():
    call, back = halves("def best(float(N, K) X) -> (Y) { Y(n) max=! X(n, k) }")
    assert "(float(N) Y, int64(N) Y_at)" in call
    assert "==" in back
    assert " X(" not in back.partition("->")[2]


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N, K) A, float(K, M) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }",
        "def f(float(N) X) -> (Y) { T(i) = X(i) * X(i)  Y(i) = T(i) * T(i) }",
    ],
)
def test_there_may_be_nothing_to_keep(text):
    assert halves(text) is None


@pytest.mark.some(30, ci=2)
@pytest.mark.parametrize(("title", "text"), PROGRAMS, ids=TITLES)
def test_results_and_derivatives_are_the_same(title, text):
    for given in defs_of(title, in_doubles(text)):
        agree(given)


def agree(given):
    program = given.program
    found = remembering(program, given.ranges, floats_of(program, program.parameters))
    if found is None:
        return
    call, back = (next(iter(compiled(each.text, given.engine).values())) for each in found)
    forward, (_, whole) = compiled(given.text, given.engine)[given.name], derived(given, vjp)
    for _, arguments in itertools.islice(draws(program, 0), 6):
        try:
            results = called(forward, arguments)
        except tc.CallError:
            continue
        several = call(*arguments)
        for expected, one in zip(results, map(np.asarray, several), strict=False):
            close(one, expected)
        kinds = [program.tensor(name).element for name in program.results]
        cotangents = [
            np.random.default_rng(0).uniform(-1, 1, each.shape).astype(kind.value)
            for each, kind in zip(results, kinds, strict=True)
            if kind.is_float or kind.is_complex
        ]
        taken = [arguments[program.parameters.index(name)] for name in found[1].takes]
        saved = [several[program.results.index(name)] for name in found[1].saved]
        wanted = called(whole, [*arguments, *cotangents])
        given_back = called(back, [*taken, *saved, *several[len(results) :], *cotangents])
        for expected, one in zip(wanted, given_back, strict=True):
            close(one, expected)
        return


def close(found, expected):
    """Equal up to rounding: the CPU engine may sum in another order."""
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13 * largest)
