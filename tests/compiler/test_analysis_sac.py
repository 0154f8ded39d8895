"""What is known of a `%%sac` cell before a call, and calls from the public interface."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

CELL = """
float[*] increment(float[*] A) { return { iv -> A[iv] + 1 }; }
float[.,.] turn(float[.,.] A) { return { [i,j] -> A[j,i] }; }
"""


def floats(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def test_declared_ranks_are_analysed_and_open_ones_listed():
    analysis = tc.analyze(CELL, "sac")
    assert analysis.ok
    assert set(analysis.open_functions) == {"increment", "turn"}
    assert set(analysis.functions) == {"turn"}
    assert analysis.open_functions["increment"][0].signature == "float[*] increment(float[*] A)"


def test_elements_are_written_as_in_the_cell():
    text = "float[.] g(float[.,.] b, int[.] c, int[.] d) { return { [i] -> b[[c[i], d[i] + c[i]]] | [i] < shape(c) }; }"
    module = tc.compile(text, "sac")
    f = module.g
    found = [item.text for item in f.preconditions]
    assert "b[c[i], c[i] + d[i]] stays inside b" in found
    messages = " ".join(str(item) for item in module.analysis.diagnostics)
    assert "`b[c[i], c[i] + d[i]]` reads where the values of `c` say" in messages
    assert "c(i)" not in messages
    with pytest.raises(tc.CallError, match=r"`b\[c\[i\], c\[i\] \+ d\[i\]\]` leaves `b`"):
        f(floats(2, 2), np.array([0, 1], np.int32), np.array([0, 1], np.int32))


def test_mistakes_are_diagnostics():
    analysis = tc.analyze(
        "float[*] f(float[*] A) { return B; }\nfloat[*] g(float[*] A) { return { iv -> A[jv] }; }", "sac"
    )
    assert not analysis.ok
    assert len(analysis.diagnostics) >= 2
    assert tc.analyze("}{", "sac").diagnostics


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_compiled_and_called(target):
    module = tc.compile(CELL, "sac", target=target)
    assert list(module) == ["increment", "turn"]
    for shape in [(4,), (2, 3), (2, 3, 2)]:
        np.testing.assert_array_equal(module.increment(floats(*shape)), floats(*shape) + 1)
    np.testing.assert_array_equal(module.turn(floats(2, 3)), floats(2, 3).T)
    with pytest.raises(tc.CallError, match="TC651"):
        module.turn(floats(3))


def test_each_language_calls_the_other():
    tc_cell = tc.compile("def twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }")
    sac_cell = tc.compile(
        "float[.] four(float[.] A) { return twice(twice(A)); }", "sac", known={"twice": tc_cell.twice}
    )
    np.testing.assert_array_equal(sac_cell.four(floats(5)), 4 * floats(5))


def test_unknown_languages_are_refused():
    with pytest.raises(ValueError):
        tc.analyze("", "apl")


@pytest.mark.parametrize(
    "body, told",
    [
        ("{ [i] -> a[i] | [i] < shape(a) - shape(a) }", True),
        ("{ [i] -> a[i] + i | [i] < [0] }", True),
        ("drop(shape(a), a)", True),
        ("[]", False),
        ("genarray([0], 1)", False),
        ("[] ++ a", False),
        ("{ [i] -> a[i] | [2] <= [i] < [2]; iv -> a[iv] }", False),
        ("{ iv -> a[iv] }", False),
    ],
)
def test_a_result_that_is_empty_for_all_sizes_is_told(body, told):
    """It was told in `%%tc` only (TC326)."""
    analysis = tc.analyze(f"int[.] f(int[.] a) {{ return {body}; }}", "sac")
    assert ("TC326" in {each.code.number for each in analysis.diagnostics}) == told
