"""Derivatives of all defs of the cases, the pages and the suites, and of random ones: backwards against forwards and differences."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler import analyze
from tc_jupyter.compiler.derivatives import derived_text
from tests.gradient.checks import agrees, called, derived, judge
from tests.gradient.defs import Given, defs_of, has_gradient, in_doubles, looked_at, programs
from tests.gradient.sac_calls import called_in_doubles, calls
from tests.tc_programs import drawn, drawn_blocks, drawn_left_sides, drawn_orders, drawn_points, drawn_powers

from tc_jupyter.gradient import vjp  # isort: skip

FIRST, QUICK, MANY = 500_000, 1, 40
INTEGERS = re.compile(r"\bu?int\d+(?=\()")
KINDS = (drawn, drawn_left_sides, drawn_orders, drawn_points, drawn_blocks, drawn_powers)
EMPTY = frozenset(
    {
        "tc/where: Ranges that are empty for all sizes: f",  # results without elements
        "tc/literals: Literals beyond their type: f",  # its values are infinite
        "loops: A matrix is factorised 2: cholesky(D([[4, 2, 2], [2, 5, 3], [2, 3, 6]]))",  # drawn ones have roots of negative numbers
        "docs/gallery: Distances: a product of all pairs: distances",  # the slope of a root of 0, where both points are one
    }
)
"""Defs of which no number is known."""


PROGRAMS = programs()
TITLES = [title for title, _ in PROGRAMS]
TWICE = [each for each in PROGRAMS if not each[0].startswith(("suite gpu", "suite plain"))][::3]
CALLS = list(calls())


@pytest.mark.some(30, ci=2)
@pytest.mark.parametrize(("title", "text"), PROGRAMS, ids=TITLES)
def test_derivatives_of_all_defs(title, text):
    assert looked_at(in_doubles(text)).ok or not looked_at(text).ok
    for given in defs_of(title, in_doubles(text)):
        assert judge(given) or str(given) in EMPTY, str(given)


@pytest.mark.some(6)
@pytest.mark.parametrize(("title", "text", "call"), CALLS, ids=[f"{title}: {call}" for title, _, call in CALLS])
def test_derivatives_of_sac_functions(title, text, call):
    given = called_in_doubles(title, text, call)
    results = called(given.forward, given.arguments)
    assert agrees(given, given.forward, given.arguments, results) or f"{title}: {call}" in EMPTY


@pytest.mark.some(14, ci=2)
@pytest.mark.parametrize(("title", "text"), TWICE, ids=[title for title, _ in TWICE])
def test_derivatives_of_derivatives(title, text):
    for given in defs_of(title, in_doubles(text)):
        text, _ = derived(given, vjp)
        analysis = looked_at(text)
        assert judge(Given(str(given), next(iter(analysis.functions)), text, analysis)) or str(given) in EMPTY


@pytest.mark.some(6)
@pytest.mark.parametrize(("title", "text"), PROGRAMS[::3], ids=TITLES[::3])
def test_defs_of_all_types_have_derivatives(title, text):
    for given in defs_of(title, text):
        for kind in ("vjp", "jvp"):
            made = derived_text(given.program, given.ranges, kind)
            found = analyze(made)
            assert found.ok, f"{found.render()}\n{made}"


def test_most_programs_have_derivatives():
    assert sum(1 for title, text in PROGRAMS[::10] for _ in defs_of(title, text)) > 15


def with_floats(text):
    """The text in doubles; where no parameter is a float, each array of integers is one of doubles."""
    head, arrow, rest = in_doubles(text).partition(") ->")
    return (head if "double" in head else INTEGERS.sub("double", head)) + arrow + rest


def judged(seeds):
    """How many random defs were judged."""
    count = 0
    for seed in seeds:
        text = with_floats(KINDS[seed % len(KINDS)](seed)[0])
        analysis = looked_at(text)
        if not analysis.ok or not has_gradient(analysis.functions["f"].program):
            continue
        try:
            count += judge(Given(f"seed {seed}", "f", text, analysis), tries=6)
        except AssertionError as problem:
            if "TC508" not in str(problem):  # the derived text is longer than what the analysis looks at
                raise
    return count


@pytest.mark.parametrize("part", range(3))
def test_derivatives_of_random_defs(part):
    judged(range(FIRST + part * QUICK, FIRST + (part + 1) * QUICK))


def test_an_infinite_slope_that_a_condition_keeps_out_is_no_fault():
    """Forwards 0 times infinity is NaN, as in other libraries; backwards the condition has 0, which differences confirm."""
    text = "def f(double(N) A) -> (Y) { T(i) = 2 <= 1 ? A(i) : 0  Y(i) = sqrt(abs(T(i))) + A(i) }"
    (given,) = defs_of("steep", text)
    assert judge(given)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_derivatives_of_many_random_defs(part):
    start = FIRST + 1000 + part * MANY
    assert judged(range(start, start + MANY)) >= MANY // 16


# what Python and cells ask


TEXT = """
def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }
def softmax(float(N, D) X) -> (Y) {
    M(n) max=! X(n, d)
    E(n, d) = exp(X(n, d) - M(n))
    S(n) +=! E(n, d)
    Y(n, d) = E(n, d) / S(n)
}
"""


@pytest.fixture(scope="module")
def module():
    return tc.compile(TEXT)


def test_a_derivative_is_a_function(module):
    g = module.conv.vjp()
    assert g is module.conv.vjp()
    assert g.text.startswith(
        "def conv_vjp(float(N) X, float(K) W, float(N + 1 - K) dY) -> (float(N) dX, float(K) dW) {"
    )
    x, w, dy = np.arange(6, dtype=np.float32), np.float32([1, 2]), np.ones(5, np.float32)
    dx, dw = g(x, w, dy)
    assert dx.tolist() == [1, 3, 3, 3, 3, 2]
    assert dw.tolist() == [10, 15]
    assert "dX" in g.source("loops")
    assert g.schedule().stages
    assert module.conv.vjp("W")(x, w, dy).tolist() == [10, 15]
    y, ty = module.conv.jvp(("X",))(x, w, np.ones(6, np.float32))
    assert y.tolist() == [2, 5, 8, 11, 14]
    assert ty.tolist() == [3] * 5


def test_windows_side_by_side_read_each_element_once():
    """`c*i + k` with `c` values of `k` is solved by quotient and remainder; a sum for each element is one per remainder."""
    pool = tc.compile("def f(float(N) X) -> (Y) { Y(i, k) = X(3*i + k - 1) where k in 1:4 }", allow="TC321").f
    assert "dX(i) = i / 3 < N / 3 ? dY(i / 3, i % 3 + 1) : 0.0" in pool.vjp().text
    patches = tc.compile("def f(float(N) X, float(O, 16) W) -> (Y) { Y(o, i) +=! X(16*i + k) * W(o, k) }").f
    assert "dX(i) +=! i / 16 < N / 16 ? dY(o, i / 16) * W(o, wrap(i)) : 0.0" in patches.vjp().text
    strided = tc.compile("def f(float(N) X, float(O, 2) W) -> (Y) { Y(o, i) +=! X(2*i + k) * W(o, k) }").f
    assert "dX_1(i) +=! dY(o, i) * W(o, 1)" in strided.vjp().text


def test_sums_stand_before_what_is_added_to_them():
    f = tc.compile(
        "def f(float(N, M) X) -> (Y, Z) { S(i) +=! X(i, j)  Y(i, j) = X(i, j) * S(i)  Z(i) = S(i) * S(i) }"
    ).f
    assert [line.split("=")[0] for line in f.vjp().text.splitlines() if line.strip().startswith("dS")] == [
        "    dS(i) +",
        "    dS(i) +",
    ]


def test_what_is_saved_is_a_parameter(module):
    g = module.softmax.vjp(save=("Y", "S", "E", "M"))
    assert [name for name in g.__signature__.parameters][:6] == ["X", "Y", "S", "E", "M", "dY"]
    assert "exp" not in g.text
    assert "exp" in module.softmax.vjp().text


def test_names_that_are_none(module):
    with pytest.raises(ValueError, match="wrt: 'Q' is no parameter of floats; there are X, W"):
        module.conv.vjp("Q")
    with pytest.raises(ValueError, match="save: 'Q' is no result or temporary; there are Y"):
        module.conv.vjp(save="Q")
    for wrong in (3, [3], [["X"]], b"X"):
        with pytest.raises(tc.CallError, match=r"TC606.*wrt: .* is no parameter of floats"):
            module.conv.jvp(wrong)


def test_nothing_to_derive():
    f = tc.compile("def f(int32(N) X) -> (Y) { Y(i) = 0.5 * X(i) }").f
    with pytest.raises(tc.CompileError, match="no parameter is a float"):
        f.vjp()


COMPLEX = """
def inside(float(N) A, float(N) B) -> (Y) { Z(i) = complex64(A(i), B(i))  Y(i) = abs(Z(i) * Z(i)) }
def given(complex64(N) Z, float(N) X) -> (Y) { Y(i) = abs(Z(i)) * X(i) }
def made(float(N) X, complex64(N) W) -> (Z) { Z(i) = complex64(X(i), 1) * W(i) }
"""


def test_the_derivative_by_a_complex_number_has_that_by_its_parts():
    """As PyTorch has it: the parts of the derivative are the derivatives by the parts."""
    module = tc.compile(COMPLEX)
    a, b, ones = np.float32([3, 1]), np.float32([4, 0]), np.ones(2, np.float32)
    assert [each.tolist() for each in module.inside.vjp()(a, b, ones)] == [[6, 2], [8, 0]]
    z = np.complex64([3 + 4j, 2j])
    dz, dx = module.given.vjp()(z, a, ones)
    assert np.allclose(dz, a * z / abs(z))
    assert np.allclose(dx, abs(z))
    w, dy = np.complex64([1j, 2]), np.complex64([1 + 1j, 2 - 3j])
    dx, dw = module.made.vjp()(a, w, dy)
    assert np.allclose(dx, (dy * w.conj()).real)
    assert np.allclose(dw, dy * (a - 1j))
    assert np.allclose(module.made.jvp()(a, w, ones, w)[1], w + (a + 1j) * w)


OWN = """
def gauss(float(N) X) -> (Y) { Y(i) = X(i)*X(i)  Y(i) = sin((Y(i-1) else 0.3)*Y(i)) + (Y(i+1) else 0.5)*Y(i) along i }
def factor(float(N) X) -> (Y) { Y(i) = X(i)  Y(i) *= (Y(i-1) else 0.7)*(Y(i+1) else 2) along i }
def square(float(N) X) -> (Y) { Y(i) = X(i)  Y(i) *= Y(i) }
def larger(float(N) X) -> (Y) { Y(i) = X(i)  Y(i) max= 2*Y(i) - X(i)*X(i) }
def scaled(float(N) X) -> (Y) { Y(i) = X(i)  Y(i) max= 0.9*(Y(i-1) else 0) along i }
def empty(float(M) A, float(M, 3) B) -> (Y) { Y(i) +=! (j < i ? B(max(i-1, 0), j) : A(k)) * 2 where i in 0:M, j in 0:3, k in M:M }
def rows(float(N, M) X, float(3, K) W) -> (Y) { Y(n, i) +=! X(n, i + k) * W(n, k) where n in 0:3 }
def partly(float(N) X, int32 s) -> (Y) { T(i) = X(i)*X(i)  T(i) = 3 where i in 0:N + s, X(i) > 0.5, i < N  Y(i) = T(i) }
def checked(float(N) X, float(N) C, float(K) W) -> (Y) { Y(i) +=! (C(i) > 0.5 ? X(i - k) : 0) * W(k) where i in 3:N, k in 0:4 }
def solved(float(N, N) L, float(N) B) -> (X) { X(i) +=! k < i ? -L(i, k) * X(k) : B(i) where k in 0:i+1 along i }
def strided(float(M) X) -> (Y) { Y(k, j) = (X(2*k + j) else 0.5) + (Y(k-1, j) else 0) where k in 0:3, j in 0:M along k }
def late(float(N) X, int64 s) -> (Y) { Y(i) = X(i - s + 3) + 0.5*X(i - s + 3)*(Y(i-1) else 1) along i }
def falling(float(N) B, int64 s) -> (T) { T(j) = B(j) > 1 ? (T(j + 2) else 0)*B(j) : B(j) where j in min(s, N):N along -j }
def few(float(N) X, float(N) W) -> (Y) { T(i) = W(i) > 0 ? X(2*i)*W(i) : 0 where i in 0:N  Y(i) = T(i)*W(i) where i in 0:N/2 }
def factors(float(N) X, float(N) W) -> (Y) { T(i) *=! X(j)*W(i) where i in 0:N, j in i:i + 2, W(i) > 0  Y(i) = T(i/2) where i in 0:N }
def largest(float(N) X, float(N) W) -> (Y) { T(i) max=! W(k) > 0 ? X(k - i) : W(i) where k in 0:N, i in 0:N  Y max=! T(min(i, 0)) where i in 0:N }
def none(float(N) W, float(M) X) -> (Y) { T(i) min=! exp(X(k)) * i where i in M:M, k in 0:M, W(i) > 0.2  Y(i) = X(i)*X(i) + (T(i) else 0) where i in 0:M }
def nowhere(float(N) X, float(N, 3) W) -> (Y) { Y(j) max= X(min(k*k, N - 1))*W(min(k*i, N - 1), j) where k in 0:N, i in N:N, j in 0:3  Y(j) max= X(i)*W(i, j) }
def cleared(float(N) X) -> (Y) { Y(2*i) = X(i)  Y(2*i + 1) = -X(i)  Y(i) = 0 where Y(i) < 0 }
"""
IN_ORDER = """
def both2(float(N) X) -> (Y) { Y(i) = X(i)*X(i)  Y(i) = (Y(i-1) else 1)*X(i) + (i > 0 ? Y(i/2) : 0)*0.3 + (i > 2 ? Y(2*(i-1)-i) : X(i)) along i }
def mirrored2(float(N, M) X) -> (Y) { Y(i, j) = X(i, j)*X(i,j)  Y(i,j) = 0.5*Y(N - 1 - i, M - 1 - j)*X(i,j) + 0.3*Y(N - 1 - i, j) along -i, j }
def narrow(half(N) X) -> (half(N) Y) { Y(i) = X(i) Y(i) += 0.5*(Y(i-1) else 1)*X(k) where k in 0:2 along i }
def kept(float(N) X, int32(N) Id) -> (float(N) Y) { Y(i) = X(i)*X(i) T(i) = X(i)*X(i)  T(Id(i)) = exp(X(i)) where Id(i) > 0, unique  Y(i) = T(i)*T(i)  T(i) = 0 where i in 0:N }
reduce far(float a, float b) = hypot(a, b) from 0 with x -> abs(x)
reduce cmul(float a, float b, float c, float d) = (a*c - b*d, a*d + b*c) from (1, 0)
reduce moments(float m, float s, float c, float m2, float s2, float c2) =
    (c + c2 == 0 ? 0 : (m*c + m2*c2)/(c + c2), c + c2 == 0 ? 0 : s + s2 + (m - m2)*(m - m2)*c*c2/(c + c2), c + c2) from (0, 0, 0) with x -> (x, 0, 1)
reduce ap(float a, float b) = a + b + a*b from 0
def ragged(float(N, N) X) -> (L) { L(n) far=! X(n, m) where n in 0:N, m in 0:n }
def triangle(float(N, N) X) -> (A, S) { A, S, C moments=! X(n, m) * X(n, m) where n in 0:N, m in n:N }
def filtered(float(N, M) X) -> (L) { L(n) ap=! X(n, m) where X(n, m) > 0.5 }
def groups(float(N) X, uint8(N) K) -> (A, C) { A(K(n)), C(K(n)) cmul=! (X(n), X(n)*X(n)) }
def diagonal(float(N, N) X, float(N) W) -> (L) { L(2*i) ap=! X(i, j) * W(j)  L(2*i + 1) ap=! W(j) - W(i) where i in 0:N, j in 0:N }
def twice(float(N, M) X, float(N, K) Z) -> (Y) { Y(i) ap=! X(i, j)*X(i, j)  W(i) = Y(i)*Y(i)  Y(i) ap=! Z(i, j)*W(i) }
def versions(float(T, N) X, float(N) W) -> (Y) {
    along t in 0:T {
        s(i) = X(t, i) + (Y(t-1, i) else 0.5)
        s(i) = 2*s(i) where i in 0:1
        s(i) += W(i) * s(i)
        Y(t, i) = s(i) * W(i)
    }
}
def combos(float(T, N) X, float(N, N) A) -> (Y) {
    along t in 0:T {
        p(i) *=! (t > 0 ? Y(t-1, j) : 1) * 0.5 + A(i, j)
        m(i) min=! A(i, j) - p(j)
        m(i) max= X(t, i)
        Y(t, i) = m(i) + p(i) * X(t, i)
    }
}
def started(float(N) u, float(N) W) -> (float(9, N) U) {
    U(0, i) = u(i)  U(1, i) = u(i) * W(i)
    along t in 2:9 {
        L(i) = U(t-1, wrap(i+1)) - U(t-2, i) where i in 0:N
        U(t, i) = U(t-1, i) + W(i)*L(i) + U(0, i)
    }
}
def boundary(float(T) l, float(N) u) -> (float(T+1, N+2) U) {
    U(t, i) = 0 where t in 0:T+1, i in 0:N+2
    U(0, i + 1) = u(i)
    U(t + 1, 0) = l(t)
    along t in 1:T+1 {
        q(i) = U(t-1, i-1) * U(t-1, i+1) where i in 1:N+1
        U(t, i) = U(t-1, i) + 0.3*q(i)
    }
}
def halves(float(N) u, int32 T) -> (V) {
    along t in 0:T {
        h(i) = (t > 0 ? V(t-1, 2*i) : u(i)) where i in 0:N/2
        g(i) = (t > 0 ? (V(t-1, i/2) else 0) : 1.5*u(i)) where i in 0:N
        V(t, i) = g(i) * (i % 2 == 0 ? h(i/2) : 1) where i in 0:N - N % 2
    }
}
def scattered(float(T, N) X, int32(N) Id) -> (V) {
    along -t in 0:T {
        h(i) = 0 where i in 0:N
        h(Id(i)) += (t + 1 < T ? V(t+1, i) : X(t, i)) * X(t, i)
        V(t, i) = h(i) + X(t, i)
    }
}
def looked(float(T, N) X, int32(N) Id) -> (V) {
    along t in 0:T {
        h(i) = (V(t-1, Id(i)) else 1) where i in 0:N
        V(t, i) = sin(h(i)) * X(t, i)
    }
}
def nested(float(M, N) S, float gap) -> (D) {
    along i in 0:M { along j in 0:N {
        up = (D(i-1, j) else -1) * gap
        left = (D(i, j-1) else -1) - gap
        cross = (i > 0 && j > 0 ? D(i-1, j-1) : 0) + S(i, j)
        D(i, j) = max(up, left, cross) + up*left
    } }
}
def inner(float(T, N) X) -> (Y) {
    along t in 0:T {
        s(i) = (s(i-1) else 0) + X(t, i) * (t > 0 ? Y(t-1, wrap(i+1)) : 1) along i
        Y(t, i) = s(i) * X(t, i) + (Y(t, i-1) else 0.25) along i
    }
}
def outer(float(T, N) X) -> (Y, Z) {
    along t in 0:T {
        q(i) = (Y(i, t-1) else 0.5) * X(t, i)
        Y(i, t) = q(i) * q(wrap(i + 1)) where i in 0:N
        Z(t) +=! Y(i, t)
    }
}
def past(float(T) X) -> (Y) {
    along t in 0:T {
        s +=! X(j) * (j < t ? Y(j) : 1) where j in 0:t + 1
        Y(t) = s * X(t) + (t > 0 ? Y(0) : 0)
    }
}
def step(float(N) U, float(N) W) -> (V) { M max=! U(i)  V(i) = U(i)*W(i)/M }
def again(float(N) U, float(N) W, int32 n) -> (Z) { V = step^n(U, W)  Z(i) = V(i)*V(i) }
def ahead(float(N, M) A) -> (T) { T(k, j) = A(k + 2, j)*A(k + 2, j) where k in -2:N-2, j in 0:M }
def moved(float(N, M) A) -> (R) {
    R = ahead(A)
    R(i, j) = R(i, j) > 1 ? R(i, j)*R(i, j) : 0.5*R(i, j)*(i + 1)
    along t in 1:N {
        s(j) = R(t-1, j) * A(t, j)
        R(t, j) = R(t, j) + 0.5*s(j)
    }
}
def halfs(float(T, N) X) -> (float(T, N) Y) {
    along t in 0:T {
        s(i) = half((Y(t-1, i) else 0) + X(t, i))
        Y(t, i) = s(i) * X(t, i)
    }
}
"""
OF_OWN, OF_ORDER = analyze(in_doubles(OWN)), analyze(in_doubles(IN_ORDER))


@pytest.mark.some(4)
@pytest.mark.parametrize("name", OF_OWN.functions)
def test_statements_that_read_their_target(name):
    judge_twice(Given("own", name, in_doubles(OWN), OF_OWN))


@pytest.mark.some(12)
@pytest.mark.parametrize("name", [name for name, each in OF_ORDER.functions.items() if not each.program.reducer])
def test_reducers_blocks_and_powers(name):
    judge_twice(Given("in order", name, in_doubles(IN_ORDER), OF_ORDER))


def judge_twice(given):
    """The derivative, and that of the derivative."""
    assert judge(given)
    text, _ = derived(given, vjp)
    analysis = analyze(text)
    assert judge(Given(str(given), next(iter(analysis.functions)), text, analysis))


REPORTED = """
def of10(float(N, M) A) -> (R) { P +=! A(i, k) - A(i-1, k)  Q +=! A(i, k) - A(i, k+1)  R = P + Q }
def of30(float(M, I, B) A, float(I, N, B) X) -> (S) { Y(m, n, b) +=! A(m, i, b) * X(i, n, b)  S +=! Y(m, n, b) }
def of70(float(J, J) W, float(J, 4) K) -> (F) {
    F(m) min=! W(j, m) * (u == 3 ? 1 : -1) * (K(j, u) - K(m, u)) * (K(j, u) - K(m, u))
}
def of85(float(N, M) X) -> (R) {
    R +=! sqrt((X(i, j) - X(i+1, j))*(X(i, j) - X(i+1, j)) + (X(i, j) - X(i, j+1))*(X(i, j) - X(i, j+1)))
}
def of90(float(N, M) X) -> (R) { R(i, j) = v + X(i, j) where v = X(i+2, j) - 2*X(i+1, j) }
def of136(float(N) X, float(K) W) -> (float(N + K) Y) { Y(i + k) +=! X(i) * W(k) }
def of153(float(N, M, C, B) X, float(N, M, 2, 2, C, D) W) -> (Y) {
    Y(s, t, d, b) +=! X(s + i, t + j, c, b) * W(s + i, t + j, i, j, c, d)
}
def of154(float(K, N) X, float(K, M) Y) -> (R) {
    H(i, j) max=! abs(X(k, i) - Y(k, j))
    R(i, j) +=! exp(2*(abs(X(k, i) - Y(k, j)) - H(i, j)))
    R(i, j) += log(2*H(i, j))
}
"""
OF_REPORTED = analyze(in_doubles(REPORTED))


@pytest.mark.some(4)
@pytest.mark.parametrize("name", OF_REPORTED.functions)
def test_programs_that_others_reported_to_have_wrong_derivatives(name):
    """Issues of these numbers at github.com/mcabbott/Tullio.jl: wrong, slow, or without a derivative there."""
    assert judge(Given("reported", name, in_doubles(REPORTED), OF_REPORTED))


OF_NOTHING = """
reduce far(double a, double b) = hypot(a, b) from 0 with x -> abs(x)
def last(double(N) X, double(M) W) -> (Y) { Y(m) = W(m) * (N > 0 ? X(N - 1) * X(0) : 1) + (X(N - 1) else 2) }
def fold(double(N) X, double(M) W) -> (Y) { A far=! X(n)  Y(m) = W(m) + A }
def bins(double(N) X, double(M) W) -> (double(M) Y) { Y(n % M) far=! X(n)  Y(m) += W(m) }
def most(double(N) X, double(M) W) -> (Y) { Y(m) max=! W(m) * X(n)  Y(m) = max(Y(m), W(m)) }
def rows(double(N) X, double(M) W) -> (Y) {
    along t in 0:N { S +=! Z(j) * X(t) where j in 0:t  Z(t) = X(t) + S }
    Y(m) = W(m) + (N > 0 ? Z(0) : 0)
}
def start(double(N, M) X, double(M) W) -> (Y) {
    H(t, m) = (t > 0 ? H(t - 1, 0) + H(t - 1, M - 1) : W(m)) * X(t, m) along t
    Y(m) = W(m) + (H(N - 1, m) else 0)
}
"""


@pytest.mark.parametrize("name", re.findall(r"def (\w+)", OF_NOTHING))
def test_derivatives_of_nothing(name):
    """Where a size is 0, the other parameter has the derivative that differences give."""
    f, w, dy = tc.compile(OF_NOTHING, target="cpu")[name], np.float64([1.5, -2]), np.float64([3, 4])
    x = np.zeros((0, 2) if name == "start" else 0)
    dx, dw = f.vjp()(x, w, dy)
    slope = (f(x, w + 1e-6) - f(x, w - 1e-6)) / 2e-6
    assert dx.shape == x.shape
    np.testing.assert_allclose(dw, dy * slope, rtol=1e-6)


def test_an_extreme_of_no_points_has_no_derivative():
    """The condition leaves all points of the second row out."""
    text = "def most(double(M) X, double(N, M) W) -> (Y) { Y(i) max=! X(j) where W(i, j) > 0 }"
    x, w = np.float64([3, 2, 1]), np.float64([[1, 2, 3], [-1, -1, -1], [-1, 1, 1]])
    dx, dw = tc.compile(text, target="cpu").most.vjp()(x, w, np.float64([4, 5, 6]))
    assert dx.tolist() == [4, 6, 0]
    assert not dw.any()


SHARED = """def rows(double(N, M) X) -> (Y) { Y(n) max=! X(n, m) }
def square(double(N, M) X) -> (s) { s min=! X(n, m) * X(n, m) }
def windows(double(N, M) X) -> (Y) { Y(n, i) max=! X(n, 2*i + k) where k in 0:3 }
def onto(double(N, M) X) -> (Y) { Y(n) = 1 where n in 0:N  Y(n) max= X(n, m) }
def chosen(double(N, M) X) -> (Y) { Y(n) max=! X(n, m) where m % 2 == 1 }"""


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_points_that_attain_an_extreme_share_its_derivative(target):
    """With `split`, as PyTorch's `amax`; the content before the statement takes all if it attains the value."""
    torch = pytest.importorskip("torch")
    module = tc.compile(SHARED, target=target)
    x = np.random.default_rng(2).integers(-1, 3, (4, 7)).astype(float)
    given = torch.tensor(x, requires_grad=True)
    peers = {
        "rows": torch.amax(given, 1), "square": torch.amin(given * given, (0, 1)), "chosen": torch.amax(given[:, 1::2], 1),
        "windows": torch.amax(given.unfold(1, 3, 2), 2),
        "onto": torch.where(torch.amax(given, 1) > 1, torch.amax(given, 1), 1.0),
    }  # fmt: skip
    for name, result in peers.items():
        dy = np.random.default_rng(3).standard_normal(result.shape)
        (expected,) = torch.autograd.grad(result, given, torch.tensor(dy), retain_graph=True)
        found = module[name].vjp(ties="split")(x, dy)
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)
        direction = np.random.default_rng(4).standard_normal(x.shape)
        _, tangent = module[name].jvp(ties="split")(x, direction)
        assert np.vdot(tangent, dy) == pytest.approx(np.vdot(found, direction), rel=1e-12), name
    with pytest.raises(ValueError, match='ties is "first" or "split", not \'last\''):
        module.rows.vjp(ties="last")


@pytest.mark.slow
def test_no_def_is_refused():
    """Every def of the cases, the pages and the suites with a float among parameters and results has both derivatives, which compile."""
    found = [given for title, text in PROGRAMS for given in defs_of(title, text)]
    refused = dict[str, str]()
    for given in found:
        for kind in ("vjp", "jvp"):
            try:
                looked = analyze(derived_text(given.program, given.ranges, kind))
            except tc.CompileError as problem:
                refused[f"{given}.{kind}"] = str(problem)
                continue
            if not looked.ok:
                refused[f"{given}.{kind}"] = looked.render()
    assert not refused
    assert len(found) + len(CALLS) >= 750  # the list itself is whole


def test_a_cell_calls_derivatives(module):
    text = "def step(float(N) X, float(K) W, float(M) dY) -> (V) { dX, dW = conv.vjp(X, W, dY)  V(k) = W(k) - dW(k) }"
    x, w, dy = np.arange(6, dtype=np.float32), np.float32([1, 2]), np.ones(5, np.float32)
    for step in (tc.compile(text, known=dict(module)).step, tc.compile(TEXT + text).step):
        assert step(x, w, dy).tolist() == [-9, -13]
    assert tc.compile(text, known=dict(module)).step.callees == {"conv": module.conv}


@pytest.mark.some(3)
@pytest.mark.parametrize("times", [5, 9, 5000])
def test_many_derivatives_of_one_def_end(times):
    """Each is several times as long as the one before."""
    def_ = "def f(float(N) X) -> (Y) { Y(i) = " + " * ".join(f"sin(exp({k}*X(i)))" for k in range(30)) + " }"
    found = tc.analyze(f"{def_} def g(float(N) X) -> (Y) {{ Y = f{'.vjp' * times}(X, X) }}")
    assert {item.code.number for item in found.diagnostics} <= {"TC250", "TC201"}
    assert found.diagnostics


def test_a_power_that_is_written_out_has_a_derivative_as_short_as_itself():
    part = "(1 / (X(i)*X(i) + 2))"
    f = tc.compile(f"def f(double(N) X) -> (Y) {{ Y(i) = {' * '.join([part] * 9)} }}").f
    assert len(f.vjp().text) < 12 * len(f.text)
    x = np.array([0.5, -1.5])
    assert np.allclose(f.vjp()(x, np.ones(2)), -18 * x / (x * x + 2) ** 10, rtol=1e-12)


def test_long_sums_have_few_levels():
    terms = " + ".join(f"{k}.5 * X(i) * X(i)" for k in range(40))
    f = tc.compile(f"def f(float(N) X) -> (Y) {{ Y(i) = {terms} }}").f
    x, ones = np.ones(3, np.float32), np.ones(3, np.float32)
    assert f.vjp()(x, ones).tolist() == [2 * sum(k + 0.5 for k in range(40))] * 3


RULES = """
def f(float(N) X) -> (Y) { Y(i) = X(i) * X(i) }
def right(float(N) X, float(N) dY) -> (dX) { dX(i) = 2 * X(i) * dY(i) }
def wrong(float(N) X, float(N) dY) -> (dX) { dX(i) = X(i) * dY(i) }
"""


def test_a_derivative_of_the_user():
    module = tc.compile(RULES)
    x, dy = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    assert module.f.with_vjp(module.right).vjp() is not module.f.vjp()
    with pytest.raises(ValueError, match="`wrong` gives another `dX` than the derivative of `f`; pass check=False"):
        module.f.with_vjp(module.wrong)
    with pytest.raises(ValueError, match="with_vjp: `f` takes"):
        module.f.with_vjp(module.f)
    own = module.f.with_vjp(module.wrong, check=False)
    assert own.vjp()(x, dy).tolist() == [0, 1, 2, 3]
    assert pickle.loads(pickle.dumps(own)).vjp()(x, dy).tolist() == [0, 1, 2, 3]
    caller = tc.compile("def g(float(N) X, float(N) dY) -> (D) { D = f.vjp(X, dY) }", known={"f": own}).g
    assert caller(x, dy).tolist() == [0, 1, 2, 3]
    torch = pytest.importorskip("torch")
    t = torch.arange(4.0, requires_grad=True)
    own(t).sum().backward()
    assert t.grad.tolist() == [0, 1, 2, 3]


def test_a_derivative_of_the_user_keeps_what_calls_of_the_other_language_must_fulfil():
    """Calls lost their checks, and chunks did not find the function."""
    f = tc.compile("double[*] f(double[*] a, double[*] b) { return a * b; }", language="sac").f
    x = np.arange(4.0)
    f(x, x)
    own = f.with_vjp(f.vjp())
    with pytest.raises(tc.CallError, match="TC654"):
        own(x, x[:3])
    chunks = pytest.importorskip("dask.array").from_array(x, chunks=2)
    assert own(chunks, chunks).compute().tolist() == [0, 1, 4, 9]


def test_a_derivative_cannot_call_itself():
    found = tc.analyze("def f(float(N) X) -> (Y) { Y = f.vjp(X, X) }")
    assert [item.message for item in found.diagnostics] == ["`f` calls itself"]


def test_the_derivative_of_a_function_of_every_rank_is_called(tmp_path: Path):
    (tmp_path / "w.sac").write_text("double[*] square(double[*] a) { return { iv -> a[iv] * a[iv] }; }")
    text = """use "w.sac"
        def one(double(N) X, double(N) dY) -> (dX) { dX = square.vjp(X, dY) }
        def two(double(N, M) X, double(N, M) D) -> (Y, dY) { Y, dY = square.jvp(X, D) }
        def again(double(N) X, double(N) dY, double(N) dZ) -> (dX, U) { dX, U = square.vjp.vjp(X, dY, dZ) }"""
    module = tc.compile(text, file=tmp_path / "x.tc")
    X, A, one = np.arange(3.0), np.arange(6.0).reshape(2, 3), np.ones(3)
    np.testing.assert_array_equal(module.one(X, one), 2 * X)
    np.testing.assert_array_equal(module.two(A, A), (A**2, 2 * A**2))
    np.testing.assert_array_equal(module.again(X, one, one), (2 * one, 2 * X))
    few = 'use "w.sac"\ndef f(double(N) X) -> (dX) { dX = square.vjp(X) }'
    with pytest.raises(tc.CompileError, match=r"TC651.*it takes 2: a, dresult") as found:
        tc.compile(few, file=tmp_path / "x.tc")
    assert len(found.value.diagnostics) == 1


@pytest.mark.parametrize("border", ["wrap", "symmetric", "reflect", "clamp"])
@pytest.mark.parametrize("extent", ["N", "0"])
def test_arrays_without_elements_have_derivatives(border, extent):
    text = f"""def f(float({extent}) X, float(M) Z) -> (Y) {{ Y(i) = X({border}(i + 1)) * Z(i) }}
        def g(float({extent}) X) -> (Y) {{ Y(i) = X({border}(i + 1)) where i in 0:0 }}"""
    module, none = tc.compile(text, allow=("TC326",)), np.zeros(0, np.float32)
    assert [each.shape for each in module.f.vjp()(none, none, none)] == [(0,), (0,)]
    assert module.g.vjp()(none, none).shape == (0,)
