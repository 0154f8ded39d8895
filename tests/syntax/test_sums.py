"""Sums of sizes: what is written has the value of what was read."""

from __future__ import annotations

import pytest

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.syntax.sums import divided, less, summed, text
from tc_jupyter.syntax.tokens import tokenize

SUMS = ["N", "-3", "2*N - 1", "N + M - N", "X.0 - 2", "4 - M", "0", "2*M + 5", "-N + 3*M"]


def read(written: str):
    return summed(tokenize(SourceText(written)).tokens)


def value(written: str) -> int:
    return eval(written.replace("X.0", "5").replace("/", "//"), {"N": 7, "M": 4})


@pytest.mark.parametrize("one", SUMS)
@pytest.mark.parametrize("other", SUMS)
def test_sums_have_the_value_of_their_text(one, other):
    first, second = read(one), read(other)
    assert first is not None
    assert second is not None
    assert value(text(first)) == value(one)
    assert value(text(less(first, second))) == value(one) - value(other)
    for number in (1, 2, 3):
        assert value(divided(less(first, second), number)) == -(-(value(one) - value(other)) // number)


@pytest.mark.parametrize("written", ["", "N N", "2 N", "N +", "f(N)", "N / 2", "- - N", "2 * 3", "1.5", "N *"])
def test_other_expressions_are_no_sums(written):
    assert read(written) is None
