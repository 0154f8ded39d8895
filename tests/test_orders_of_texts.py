"""Recurrences on real data, beside what people use for them: the letters of the project's own pages, as numbers, signals and words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tc_jupyter as tc
from tests.test_blocks import LSTM, RNN
from tests.test_orders import best_path, edit_distance

ROOT = Path(tc.__file__).parent.parent
LETTERS = np.frombuffer((Path(tc.__file__).parent / "docs" / "language.md").read_bytes(), np.uint8)


def test_running_sums_of_letters_are_those_of_numpy():
    f = tc.compile(
        """def cumsum(double(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }
        def counts(bool(L, N) X) -> (Y) { Y(l, i) = (Y(l, i-1) else 0) + int32(X(l, i)) along i }
        def rows(float(L, N) X) -> (Y) { Y(l, i) = (Y(l-1, i) else 0) + X(l, i) along l }"""
    )
    np.testing.assert_array_equal(f.cumsum(LETTERS.astype(np.float64)), np.cumsum(LETTERS, dtype=np.float64))
    which = np.arange(97, 123, dtype=np.uint8)[:, None] == LETTERS
    np.testing.assert_array_equal(f.counts(which), np.cumsum(which, axis=1))
    lines = LETTERS[: LETTERS.size // 80 * 80].reshape(-1, 80).astype(np.float32)
    np.testing.assert_array_equal(f.rows(lines), np.cumsum(lines, axis=0))


@pytest.mark.parametrize("cutoff", [0.01, 0.1, 0.4])
def test_a_low_pass_of_letters_is_that_of_scipy(cutoff):
    signal = pytest.importorskip("scipy.signal")
    f = tc.compile(
        """def low(double(N) X, double(3) b, double(3) a) -> (Y) {
            F(i) +=! (X(i - k) else 0) * b(k) where i in 0:X.0
            Y(i) = F(i) - a(1)*(Y(i-1) else 0) - a(2)*(Y(i-2) else 0) along i
        }"""
    ).low
    b, a = signal.butter(2, cutoff)
    x = LETTERS.astype(np.float64)
    np.testing.assert_allclose(f(x, b, a), signal.lfilter(b, a, x), rtol=1e-9)


def test_the_distance_of_two_pages_is_that_of_the_textbook():
    f = tc.compile(
        """def edit(uint8(M) A, uint8(N) B) -> (int32(M + 1, N + 1) D) {
            D(i, j) = i == 0 ? int32(j) : j == 0 ? int32(i)
                : min(D(i-1, j) + 1, D(i, j-1) + 1, D(i-1, j-1) + int32(A(i-1) != B(j-1)))
                where i in 0:M + 1, j in 0:N + 1 along i, j
        }"""
    ).edit
    license_, readme = (np.frombuffer((ROOT / name).read_bytes(), np.uint8) for name in ("LICENSE", "README.md"))
    for size in (100, 777):
        a, b = license_[:size], readme[: size + 55]
        assert f(a, b)[-1, -1] == edit_distance(a.tolist(), b.tolist())
    long = f(license_, readme)
    assert long[-1, -1] == f(readme, license_)[-1, -1]
    assert abs(license_.size - readme.size) <= long[-1, -1] <= max(license_.size, readme.size)


def test_vowels_and_consonants_are_found_on_the_path_of_viterbi():
    """Two hidden states that tell letters of words from all other signs; the chances are counted in the page itself."""
    f = tc.compile(
        """def path(float(S, S) A, float(T, S) E) -> (V, P) {
            along t in 0:T {
                V(t, s) max=! (t > 0 ? V(t-1, r) + A(r, s) : 0) + E(t, s) where r in 0:S
                P(t, s) argmax=! (t > 0 ? V(t-1, r) : 0) + A(r, s)
            }
        }"""
    ).path
    page = LETTERS[:5000]
    kinds = np.isin(page, np.frombuffer(b"aeiouAEIOU", np.uint8)).astype(int)
    follows, shown = np.ones((2, 2)), np.ones((2, 256))
    np.add.at(follows, (kinds[:-1], kinds[1:]), 1)
    np.add.at(shown, (kinds, page), 1)
    chances = np.log(follows / follows.sum(1, keepdims=True)).astype(np.float32)
    seen = np.log(shown / shown.sum(1, keepdims=True)).astype(np.float32)[:, page].T.copy()
    scores, before = f(chances, seen)
    wanted_scores, wanted_before = best_path(chances, seen)
    np.testing.assert_array_equal(scores, wanted_scores)
    np.testing.assert_array_equal(before, wanted_before)
    states = [int(scores[-1].argmax())]
    for step in before[:0:-1]:
        states.append(int(step[states[-1]]))
    assert (np.array(states[::-1]) == kinds).all()


@pytest.fixture(name="steps")
def _steps():
    """200 steps of 16 lines: each letter is 128 numbers, of which one is 1."""
    lines = LETTERS[: 200 * 16].reshape(16, 200).T
    return (lines[..., None] == np.arange(128, dtype=np.uint8)).astype(np.float32)


def test_a_recurrent_net_that_reads_a_page_is_that_of_torch(steps):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    net = torch.nn.RNN(128, 32, bias=False)
    wanted, _ = net(torch.from_numpy(steps))
    weights = [each.detach().numpy() for each in net.parameters()]
    h = tc.compile(RNN).rnn(steps, *weights, np.zeros((16, 32), np.float32))
    np.testing.assert_allclose(h, wanted.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_cells_that_read_a_page_are_those_of_torch(steps):
    torch = pytest.importorskip("torch")
    torch.manual_seed(2)
    net = torch.nn.LSTM(128, 32)
    wanted, (_, last) = net(torch.from_numpy(steps))
    w, u, b, second = (each.detach().numpy() for each in net.parameters())
    h, c = tc.compile(LSTM).lstm(steps, w.reshape(4, 32, 128), u.reshape(4, 32, 32), (b + second).reshape(4, 32))
    np.testing.assert_allclose(h, wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c[-1], last[0].detach().numpy(), rtol=1e-4, atol=1e-5)
