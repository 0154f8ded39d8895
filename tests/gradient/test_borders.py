"""Borders that move places inside: the derivative is one of their reads without a border, and only ends are put elsewhere."""

import math

import numpy as np
import pytest

import tc_jupyter as tc
from tests.gradient.checks import judge
from tests.gradient.defs import defs_of

KINDS = ("clamp", "reflect", "symmetric", "wrap")
TEXTS = {
    "window": "def f(double(N) X, double(K) W) -> (Y) { Y(i) +=! X(BORDER(i + k - 1)) * W(k) where i in 0:N }",
    "stencil": """def f(double(N, M) X) -> (Y) {
        Y(i, j) = X(BORDER(i-1), j) * X(BORDER(i+1), BORDER(j+2)) + X(i, BORDER(j-1)) where i in 0:N, j in 0:M
    }""",
    "on data": """def f(double(N, M) X, double(N, M) u) -> (Y) {
        Y(i, j) = u(i, j) > 1 ? u(i, j) * X(BORDER(i-1), j) : X(BORDER(i+1), BORDER(j-1))
    }""",
    "steps": "def f(double(N) X) -> (Y) { Y(i) +=! X(BORDER(2*i + k)) * X(BORDER(2*i - k)) where i in 0:N, k in 0:3 }",
    "far beyond": "def f(double(N) X) -> (Y) { Y(i) = X(BORDER(i - 4)) * X(BORDER(7 - i)) where i in 0:2*N + 9 }",
    "from -2 on": "def f(double(-2:N) X) -> (Y) { Y(i) = X(BORDER(i - 1)) * X(BORDER(i + 3)) where i in -2:N }",
    "computed": """def f(double(N) X) -> (Z) {
        Y(i) = X(i) * X(i) where i in 0:N
        Z(i) = Y(BORDER(i + 1)) * Y(BORDER(i - 1)) where i in 0:N
    }""",
    "maxima": "def f(double(N) X) -> (Y) { Y(i) max=! X(BORDER(i + k - 1)) where i in 0:N, k in 0:3 }",
    "in a block": """def f(double(N) X, double(N) u) -> (U) {
        along t in 0:3 { U(t, i) = (U(t-1, i) else u(i)) * X(BORDER(i + 1)) where i in 0:N }
    }""",
    "steps in time": """def f(double(N) u, double c) -> (double(4, N) U) {
        along t in 0:4 {
            L(i) = t > 0 ? U(t-1, BORDER(i + 1)) - 2*U(t-1, i) + U(t-1, BORDER(i - 1)) : 0 where i in 0:N
            U(t, i) = (U(t-1, i) else u(i)) + c * L(i) * (t > 1 ? U(t-2, BORDER(i + 2)) : 1)
        }
    }""",
    "a plate in time": """def f(double(N, M) u, double c) -> (double(3, N, M) U) {
        along t in 0:3 {
            U(t, i, j) = (U(t-1, i, j) else u(i, j)) + (t > 0 ? c * U(t-1, BORDER(i + 1), BORDER(j - 1)) * U(t-1, i, j) : 0)
                where i in 0:N, j in 0:M
        }
    }""",
    "mixed": "def f(double(N, M) X) -> (Y) { Y(i, j) = X(BORDER(i-1), clamp(j+1)) * (X(i+1, j) else 2) where i in 0:N, j in 0:M }",
    "short range": "def f(double(N) X) -> (Y) { Y(a) = X(max(a, 0)) * X(max(a - 1, 0)) where a in 0:3 }",
    "one end": "def f(double(N) X) -> (Y) { Y(i) = X(max(i - 2, 0)) * X(min(i + 1, N - 1)) where i in 0:N }",
}
CASES = [(name, kind) for name in TEXTS for kind in KINDS if kind == "clamp" or "BORDER" in TEXTS[name]]


@pytest.mark.some(3, ci=3)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_derivatives_of_borders(name, kind):
    (given,) = defs_of("borders", TEXTS[name].replace("BORDER", kind))
    assert judge(given)


@pytest.mark.some(3, ci=4)
@pytest.mark.parametrize("kind", ["clamp", "reflect", "symmetric"])
@pytest.mark.parametrize("name", ["stencil", "on data", "computed", "one end"])
def test_only_the_ends_are_put_elsewhere(name, kind):
    """Each other statement has the points of the array, and no sum."""
    derived = tc.compile(TEXTS[name].replace("BORDER", kind), target="interpreter").f.vjp()
    sizes = dict.fromkeys(derived.program.sizes, 64)
    for statement in derived.program.statements:
        indices = derived.analysis.ranges.indices[statement.name]
        points = math.prod(each.extent.evaluate(sizes) for each in indices if not each.index.startswith("at"))
        rank = derived.program.tensor(statement.target).rank
        assert points <= (8 * 64 ** (rank - 1) if statement.computed else 70**rank), derived.text


def test_a_condition_makes_no_sum_over_all_places():
    """What a subscript cannot be solved for is put where it belongs, though it counts under a condition alone."""
    derived = tc.compile(
        "def f(double(N) X, double(M) u) -> (Y) { Y(i) = u(i) > 1 ? X((i * i) % N) : u(i) }", target="interpreter"
    ).f.vjp(wrt=("X",))
    assert "==" not in derived.text


NO_POINTS = {
    "no weights": "def f(double(N) X, double(K) W) -> (Y) { Y(i) +=! X(BORDER(i + k)) * W(k) where i in 0:N }",
    "both": "def f(double(K, N) X) -> (s) { s +=! X(clamp(i - j), BORDER(j + i)) where i in 0:K, j in 0:N }",
    "backwards": "def f(double(N) X) -> (Y) { Y(i) +=! X(BORDER(i - j)) * X(j) where i in 0:N + 1, j in 0:N, j <= i }",
}


@pytest.mark.some(5, ci=5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NO_POINTS)
@pytest.mark.parametrize("none", ["N", "K", "NK"])
def test_sizes_of_zero(name, kind, none):
    """What a def takes its derivative takes: no range ends before it begins."""
    f = tc.compile(NO_POINTS[name].replace("BORDER", kind), target="interpreter").f
    sizes = {size: 0 if size in none else 3 for size in "NK"}
    shapes = {"no weights": ("N", "K"), "both": ("KN",), "backwards": ("N",)}[name]
    arguments = [np.ones([sizes[size] for size in shape]) for shape in shapes]
    found = f.vjp()(*arguments, np.ones_like(f(*arguments)))
    for given, gradient in zip(arguments, found if isinstance(found, tuple) else (found,), strict=True):
        assert gradient.shape == given.shape
        assert gradient.any() == ("K" not in f.program.sizes and none == "K")


@pytest.mark.parametrize("kind", ["clamp", "reflect", "symmetric"])
def test_steps_in_time_look_for_no_point(kind):
    derived = tc.compile(TEXTS["a plate in time"].replace("BORDER", kind), target="interpreter").f.vjp()
    assert "==" not in derived.text
