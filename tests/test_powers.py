"""A def applied again and again: `V = f^n(U)`, against calls in a loop."""

import signal
import time
import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import parts
from tc_jupyter.codegen.llvm.time_tiles import time_tiled
from tests.tc_programs import drawn_powers, judge

JACOBI = """def jacobi(float(N, M) U) -> (V) {
    V(i, j) = 0.25*(U(wrap(i+1), j) + U(wrap(i-1), j) + U(i, wrap(j+1)) + U(i, wrap(j-1))) where i in 0:N, j in 0:M
}
def solve(float(N, M) U, int32 steps) -> (V) { V = jacobi^steps(U) }"""


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_powers_are_calls_in_a_loop(target):
    module = tc.compile(JACOBI, target=target)
    u = np.random.default_rng(0).standard_normal((5, 18)).astype(np.float32)
    for steps in (0, 1, 6):
        np.testing.assert_allclose(module.solve(u, steps), module.jacobi.iterate(steps)(u), rtol=1e-6, atol=1e-6)
    u = np.random.default_rng(1).standard_normal((4, 83)).astype(np.float32)  # rows with parts of their own at the ends
    np.testing.assert_allclose(module.solve(u, 5), module.jacobi.iterate(5)(u), rtol=1e-6, atol=1e-6)
    with pytest.raises(tc.CallError, match="`jacobi` cannot be applied -2 times"):
        module.solve(u, -2)
    assert module.solve(np.zeros((0, 3), np.float32), 4).shape == (0, 3)


COMPLEX = """def turn(complex64(N) Z, float(N) P) -> (Y, Q) { Y(i) = Z(N-1-i) * P(i) + Z(i) * Z(i)   Q(i) = abs(Z(i)) - P(i) }
def turned(complex64(N) Z, float(N) P, int32 n) -> (Y, Q) { Y, Q = turn^n(complex64(0, 1) * Z, P) }
def orbit(complex128 z, complex128 c) -> (w) { w = z*z + c }
def number(complex128 z, complex128 c) -> (w) { w = orbit^5(z, c) }"""


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("target", ["interpreter", "cpu", "simulator"])
def test_powers_of_defs_of_complex_numbers(target, steps):
    """A number is a pair along a dimension more, which a step reads both parts of."""
    module = tc.compile(COMPLEX, target="cuda" if target == "simulator" else target)
    random = np.random.default_rng(0)
    z = (random.standard_normal(5) + 1j * random.standard_normal(5)).astype(np.complex64) / 2
    p = random.random(5, np.float32)
    y, q = 1j * z, p
    for _ in range(steps):
        y, q = y[::-1] * q + y * y, np.abs(y) - q
    f = module.turned
    found = f.simulate(z, p, steps).outputs if target == "simulator" else f(z, p, steps)
    np.testing.assert_allclose(found[0], y, rtol=1e-4)
    np.testing.assert_allclose(found[1], q, rtol=1e-4, atol=1e-6)
    if target != "simulator":
        w = 0.5j
        for _ in range(5):
            w = w * w + (0.1 + 0.2j)
        assert module.number(0.5j, 0.1 + 0.2j) == pytest.approx(w)


TILED = """def step(float(N, M) U, float(N, M) P) -> (A, B) {
    A(i, j) = 0.3*U(wrap(i + 1), j) + 0.3*(U(i - 2, j) else 0.5) + 0.2*P(i, wrap(j - 1)) where i in 0:N, j in 0:M
    B(i, j) = 0.5*A(max(i - 1, 0), j) + 0.4*P(min(i + 1, N - 1), j) where i in 0:N, j in 0:M
}
def far(float(N, M) U, float(N, M) P) -> (A, B) { A(i, j) = 0.5*U(N - 1 - i, j) + P(i, j)  B(i, j) = 0.9*P(i, j) }
def tiled(float(N, M) U, float(N, M) P, int32 n) -> (A, B) { A, B = step^n(U, P) }
def rows(float(N, M) U, float(N, M) P, int32 n) -> (A, B) { A, B = far^n(U, P) }"""


@pytest.mark.some(3)
@pytest.mark.parametrize("cache", [2000, 8000, 30_000])
def test_steps_are_done_several_at_a_time_where_arrays_leave_the_caches(monkeypatch, tmp_path, cache):
    """The caches are made small; what reads rows that are far away is done step by step."""
    found = []

    def small(kernel, loop, phases, target):
        found.append(time_tiled(kernel, loop, phases, replace(target, llc_bytes=0, l2_bytes=cache)))
        return found[-1]

    monkeypatch.setattr(parts, "time_tiled", small)
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path))
    module = tc.compile(TILED, target="cpu", allow=["TC321", "TC322"])
    random = np.random.default_rng(0)
    for shape in [(0, 3), (1, 1), (3, 2), (300, 5), (701, 17), (1500, 2), (400, 81)]:
        u, p = random.random(shape, np.float32), random.random(shape, np.float32)
        for steps in (0, 1, 2, 15, 16, 17, 33):
            a, b = u, p
            for _ in range(steps):
                a, b = module.step(a, b)
            for mine, theirs in zip(module.tiled(u, p, steps), (a, b), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6, err_msg=f"{shape}, {steps} steps")
    assert any(each is not None for each in found)
    found.clear()
    assert "group" not in module.rows.source("passes")
    assert found
    assert not any(found)


def test_two_steps_are_in_memory():
    loops = tc.compile(JACOBI, target="cpu").solve.source("loops")
    assert "jacobi.V[2, N, M]" in loops


def test_rows_of_a_step_have_parts_in_which_no_subscript_wraps():
    passes = tc.compile(JACOBI, target="cpu").solve.source("passes")
    assert "-- row borders" in passes
    rows = [line for line in passes.splitlines() if "* j.outer + 1] =" in line]
    assert rows
    assert not any("% M" in line for line in rows)


def test_two_steps_of_each_loop_are_in_memory():
    """Of an inner loop, whose last step is read in the next round."""
    text = """double[.] f(double[.] a, int n, int m) {
        for (k = 0; k < n; k++) { for (j = 0; j < m; j++) { a = reverse(a) + 1d; } a = a * 2d; }
        return a;
    }"""
    f = tc.compile(text, language="sac", target="cpu").f
    a = np.arange(5.0)
    np.testing.assert_array_equal(f(a, np.int32(2), np.int32(2)), 4 * a + 12)
    assert "[2, 2, a_0]" in f.source("loops", a, np.int32(2), np.int32(2))


def test_on_a_gpu_the_threads_of_a_block_take_the_steps():
    f = tc.compile(JACOBI).solve
    u = np.random.default_rng(1).standard_normal((4, 9)).astype(np.float32)
    simulated = f.simulate(u, 3)
    assert not simulated.findings
    np.testing.assert_allclose(simulated.outputs[0], tc.compile(JACOBI, target="interpreter").solve(u, 3), atol=1e-6)


@pytest.mark.parametrize(
    "inside",
    [
        "S(i) = 1.0 where exists T(i)",
        "S(i) = 1.0 where i in 0:T.0",
        "S(i) = float(T.0) where i in 0:N",
        "s +=! 1.0*k where k in 0:T.0 S(i) = s where i in 0:N",
    ],
)
def test_ranges_and_extents_of_what_steps_make(inside):
    text = f"def f(float(N) U) -> (V) {{ T(i) = U(i)*2 {inside} V(i) = T(i) + S(i) }} def g(float(N) U) -> (W) {{ W = f^3(U) }}"
    module = tc.compile(text, target="interpreter")
    u = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(module.g(u), module.f(module.f(module.f(u))))


def test_drawn_powers():
    found = [judge(*drawn_powers(seed)) for seed in range(5)]
    assert sum(each.startswith("computed") for each in found) >= 3


@pytest.mark.slow
def test_drawn_powers_many():
    found = [judge(*drawn_powers(seed)) for seed in range(100, 130)]
    assert sum(each.startswith("computed") for each in found) >= 20


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer that sends a signal")
def test_a_long_loop_ends_soon_after_an_interrupt():
    f = tc.compile(JACOBI, target="cpu").solve
    u = np.zeros((64, 64), np.float32)
    f(u, 2)
    due = [0.0]

    def arm():
        due[0] = time.perf_counter() + 0.2
        # again after a while: Python drops what is raised while a callback of its collector runs
        signal.setitimer(signal.ITIMER_REAL, 0.2, 3)

    def interrupt(number, frame):
        if not any(
            Path(each.filename).match("tc_jupyter/runtime/threads.py") for each in traceback.extract_stack(frame)
        ):
            arm()  # the loop has not begun
            return
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        arm()
        with pytest.raises(KeyboardInterrupt):
            f(u, 1 << 30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - due[0] < 5  # 10 to 25 ms where nobody else computes
