"""What goes to fixed places of short dimensions is one value for each element, and no sum over them."""

import pytest

import tc_jupyter as tc
from tests.gradient.checks import judge
from tests.gradient.defs import defs_of, in_doubles

POWERS = """def f(complex64(N) c) -> (z3) {
    z1(i) = c(i)*c(i) + c(i)
    z2(i) = z1(i)*z1(i) + c(i)
    z3(i) = z2(i)*z2(i) + c(i)
}"""
DETERMINANT = """def f(double(N, 2, 2) A) -> (d) { d(n) = A(n, 0, 0)*A(n, 1, 1) - A(n, 0, 1)*A(n, 1, 0) }"""
OVERLAP = """def f(double(N, 2) A, double(M, 2) B) -> (O) {
    O(i, j) = max(min(A(i, 1), B(j, 1)) - max(A(i, 0), B(j, 0)), 0) * A(i, 1)
}"""
SHIFTED = """def f(double(N, -1:2) X) -> (Y) { Y(i) = X(i, -1)*X(i, 1) + X(i, -1)/X(i + 1, 1) where i in 0:N - 1 }"""
ALONE = "def f(double(3) W, double(N) X) -> (Y) { Y(i) = W(0) + W(1)*X(i) + W(2)*X(i)*X(i) }"
MIXED = "def f(double(N, 3) X) -> (Y, Z) { Y(i) = X(i, 0)*X(i, 2)  Z(i, k) = X(i, k)*X(i, 1) }"
CHOSEN = (
    "def f(double(N, 3) X) -> (Y) { Y(i, k) = k == 1 ? X(i, 0)*X(i, 1) : X(i, k)*X(i, 2) where i in 0:N, k in 0:3 }"
)
IN_ORDER = """def f(double(N, 2) X) -> (double(N, 2) S) {
    along i in 0:N {
        P(k) = (S(i-1, k) else 1) where k in 0:2
        S(i, k) = k == 0 ? P(0)*X(i, 0) - P(1)*X(i, 1) : P(0)*X(i, 1) + P(1)*X(i, 0) where k in 0:2
    }
}"""
TEXTS = {
    "complex": POWERS,
    "determinant": DETERMINANT,
    "overlap": OVERLAP,
    "places from -1 on": SHIFTED,
    "one array of places": ALONE,
    "beside an index": MIXED,
    "chosen by an index": CHOSEN,
    "in order": IN_ORDER,
}


def statements(text):
    """The lines that are statements of their own, without the signature."""
    return [line.strip() for line in text.splitlines() if "(" in line and "=" in line and not line.startswith("def")]


@pytest.mark.parametrize("text", [POWERS, DETERMINANT, CHOSEN], ids=["complex", "determinant", "chosen"])
def test_nothing_is_summed_where_each_place_has_one_point(text):
    assert "+=" not in tc.compile(text, target="interpreter").f.vjp().text


def test_a_derivative_by_places_is_one_statement():
    found = statements(tc.compile(DETERMINANT, target="interpreter").f.vjp().text)
    assert [line.partition("(")[0] for line in found] == ["dA"]


def test_sums_for_places_are_arrays_of_their_own():
    found = statements(tc.compile(OVERLAP, target="interpreter").f.vjp().text)
    sums = [line.partition(" ")[0] for line in found if "+=" in line]
    assert sorted(sums) == ["dA_0(i)", "dA_1(i)", "dB_0(j)", "dB_1(j)"]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_derivatives_at_places_are_those_of_differences(text):
    (given,) = defs_of("places", in_doubles(text))
    assert judge(given)
