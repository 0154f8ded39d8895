"""A def applied to what it returns, again and again."""

import signal

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import jit, threads
from tc_jupyter.runtime.alternating import Alternating

CELL = """
def jacobi(float(N, M) U) -> (V) {
    V(i, j) = 0.25*(U(wrap(i+1), j) + U(wrap(i-1), j) + U(i, wrap(j+1)) + U(i, wrap(j-1))) where i in 0:N, j in 0:M
}
def wave(float(N) U, float(N) P, float c) -> (A, B) {
    A(i) = 2*U(i) - P(i) + c*(U(wrap(i+1)) - 2*U(i) + U(wrap(i-1))) where i in 0:N
    B(i) = U(i)
}
def newton(double x) -> (y, done) { y = 0.5*(x + 2/x)  done = abs(y*y - 2) < 1e-12 }
def shorter(float(N) X) -> (Y) { Y(i) = X(i) + X(i+1) }
def wider(float(N) X) -> (double(N) Y) { Y(i) = X(i) }
def more(float(N) X) -> (Y, Z) { Y(i) = X(i)  Z(i) = X(i) }
def added(float(N) X) -> (Y) { Y(i) += X(i) }
"""


@pytest.fixture(scope="module")
def cell():
    return tc.compile(CELL, allow=["TC232", "TC321"])


def again(f, n, *args):
    for _ in range(n):
        args = (f(*args), *args[1:])
    return args[0]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10])
def test_steps_are_calls_one_after_the_other(cell, n):
    u = np.random.default_rng(0).random((7, 9), dtype=np.float32)
    given = u.copy()
    found = cell.jacobi.iterate(n)(u)
    np.testing.assert_array_equal(found, again(cell.jacobi, n, u))
    np.testing.assert_array_equal(u, given)
    assert found is not u
    assert not np.shares_memory(found, u)


@pytest.mark.parametrize("options", [{}, {"keep": 7}, {"until": "done", "every": 9}])
def test_little_work_is_a_native_loop(monkeypatch, options):
    """The loop has the bits of calls; it begins in an even or in an odd step, and ends where something is looked at."""
    text = (
        CELL
        + """def last(float(N) U, float c) -> (V, done) {
        V(i) = U(i) * 0.75 + c * U(N - 1 - i) + 1   most max=! V(i)   done = most > 3.9
    }
    def alone(float(N) U, float c) -> (V) { V(i) = U(i) * 0.75 + c * U(N - 1 - i) + 1 }"""
    )
    module = tc.compile(text, allow=["TC232", "TC321"])
    f = module.last if "until" in options else module.alone
    u = np.random.default_rng(3).random(33, dtype=np.float32)
    taken, run = [], Alternating.run
    monkeypatch.setattr(Alternating, "run", lambda loop, steps, odd: (taken.append(steps), run(loop, steps, odd))[1])
    for n in (9, 50, 51):
        states, count = [u], 0
        while count < n:
            states.append(module.alone(states[-1], 0.01))
            count += 1
            if "until" in options and (count % 9 == 0 or count == n) and states[-1].max() > 3.9:
                break
        found = f.iterate(n, **options)(u, 0.01)
        if "until" in options:
            assert found[1] == count
            found = found[0]
        np.testing.assert_array_equal(found, np.stack(states[::7]) if "keep" in options else states[-1])
    assert not jit.available() or sum(taken) > 30


def test_two_states_take_turns(cell):
    random = np.random.default_rng(1)
    u, p = random.random(12, dtype=np.float32), random.random(12, dtype=np.float32)
    a, b = cell.wave.iterate(6)(u, p, 0.1)
    for _ in range(6):
        u, p = cell.wave(u, p, 0.1)
    np.testing.assert_array_equal(a, u)
    np.testing.assert_array_equal(b, p)


def test_a_result_says_when_it_is_enough(cell):
    y, steps = cell.newton.iterate(100, until="done")(1.0)
    assert 3 < steps < 10
    assert abs(y - 2**0.5) < 1e-12
    assert cell.newton.iterate(100, until="done", every=50)(1.0)[1] == 50
    assert cell.newton.iterate(2, until="done")(1.0)[1] == 2


def test_states_are_kept_for_an_animation(cell):
    u = np.random.default_rng(2).random((4, 4), dtype=np.float32)
    kept = cell.jacobi.iterate(7, keep=3)(u)
    assert kept.shape == (3, 4, 4)
    for number, steps in enumerate((0, 3, 6)):
        np.testing.assert_array_equal(kept[number], again(cell.jacobi, steps, u))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shorter", r"`X` is `float32\(N\)`, and `Y`, which comes in its place, is `float32\(N - 1\)`"),
        ("wider", r"`Y`, which comes in its place, is `float64\(N\)`"),
        ("more", "1 parameters and 2 states"),
    ],
)
def test_what_returns_another_state_is_refused(cell, name, said):
    with pytest.raises(tc.CallError, match=f"TC226(?s:.*){said}"):
        cell[name].iterate(2)


def test_counts_that_make_no_sense(cell):
    with pytest.raises(tc.CallError, match="TC618"):
        cell.jacobi.iterate(-1)
    for wrong in ("3", 2.0, True):
        with pytest.raises(TypeError, match="expected an integer"):
            cell.jacobi.iterate(wrong)
    with pytest.raises(ValueError, match="positive"):
        cell.jacobi.iterate(3, keep=0)
    with pytest.raises(ValueError, match="no such result"):
        cell.jacobi.iterate(3, until="done")
    with pytest.raises(ValueError, match="one truth value"):
        cell.wave.iterate(3, until="A")


def test_what_adds_to_its_results_begins_with_zeros_at_every_step(cell):
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(cell.added.iterate(5)(x), x)


def test_tensors_of_torch_stay_what_they_are(cell):
    torch = pytest.importorskip("torch")
    u = torch.rand(5, 6)
    found = cell.jacobi.iterate(4)(u)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), again(cell.jacobi, 4, u.numpy()))


STEPS = """
def gray(int32(N, M) U, int32(N, M) V) -> (A, B) {
    R(i, j) = U(i, j)*V(i, j)
    A(i, j) = U(i, j) + 3*U(wrap(i+1), j) - R(i, j) where i in 0:N, j in 0:M
    B(i, j) = V(i, j) + V(i, wrap(j-1)) + R(i, j) where i in 0:N, j in 0:M
}
def steps(int32(N, M) U, int32(N, M) V, int32 n) -> (A, B) { A, B = gray^n(U, V) }
"""


@pytest.fixture(scope="module")
def two_threads():
    before = threads.get_threads()
    tc.set_threads(2)
    yield
    tc.set_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("shape", [(3, 5), (300, 700), (2, 100_000)])
def test_threads_share_the_steps_of_a_loop_in_a_cell(shape):
    cell = tc.compile(STEPS, allow=["TC321"])
    random = np.random.default_rng(0)
    u, v = (random.integers(-9, 9, shape).astype(np.int32) for _ in "uv")
    for n in (0, 1, 6):
        for found, expected in zip(cell.steps(u, v, n), cell.gray.iterate(n)(u, v), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer that sends a signal")
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("shape", [(9, 9), (300, 700)])
def test_steps_end_when_python_is_interrupted(cell, shape):
    """Those of a native loop, and those that threads share."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    u = np.zeros(shape, np.int32)
    steps = tc.compile(STEPS, allow=["TC321"]).steps
    again = cell.jacobi.iterate(10**12)
    steps(u, u, 1)
    for run in (lambda: steps(u, u, 10**6 if shape[0] > 9 else 10**9), lambda: again(u.astype(np.float32))):
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            # again after a while: Python drops what is raised while a callback of its collector runs, as hypothesis has one
            signal.setitimer(signal.ITIMER_REAL, 0.05, 3)
            with pytest.raises(KeyboardInterrupt):
                run()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(steps(u, u, 2)[0], u)
