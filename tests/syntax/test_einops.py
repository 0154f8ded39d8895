"""Calls of einops as statements: drawn patterns mean what reshaping and transposing mean."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import tc_jupyter as tc


def drawn(rng, letters):
    """Axes in dimensions, of one or several axes each."""
    found = [[]]
    for letter in letters:
        if found[-1] and rng.random() < 0.5:
            found.append([])
        found[-1].append(letter)
    return found


def text_of(groups):
    return " ".join(group[0] if len(group) == 1 else f"({' '.join(group)})" for group in groups)


def fixed(text):
    (found,) = (item for item in tc.analyze(text).diagnostics if item.is_error)
    assert found.fix is not None, text
    return found.fix.applied(text)


def called(text, values):
    return np.asarray(tc.compile(fixed(text), target="interpreter").f(values))


@pytest.mark.parametrize("seed", range(12))
def test_what_is_split_moved_and_joined(seed):
    rng = Random(seed)
    letters = list("abcde"[: rng.randint(2, 5)])
    sizes = {letter: rng.randint(1, 3) for letter in letters}
    before = drawn(rng, letters)
    moved = rng.sample(letters, len(letters))
    after = drawn(rng, moved)
    given = [letter for group in before for letter in group[1:]]  # the first of each dimension follows
    shape = [int(np.prod([sizes[letter] for letter in group])) for group in before]
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    split = values.reshape([sizes[letter] for letter in letters])
    made = [int(np.prod([sizes[letter] for letter in group])) for group in after]
    wanted = split.transpose([letters.index(letter) for letter in moved]).reshape(made)
    extents = ", ".join(f"N{k}" for k in range(len(shape)))
    words = "".join(f", {letter}={sizes[letter]}" for letter in given)
    text = f"def f(float({extents}) X) -> (Y) {{ Y = rearrange(X, '{text_of(before)} -> {text_of(after)}'{words}) }}"
    np.testing.assert_array_equal(called(text, values), wanted)


@pytest.mark.parametrize(("word", "function"), [("sum", np.sum), ("mean", np.mean), ("max", np.max), ("prod", np.prod)])
def test_what_is_reduced(word, function):
    values = np.random.default_rng(1).random((4, 6)).astype(np.float32)
    text = f"def f(float(N, M) X) -> (Y) {{ Y = reduce(X, '(h p) (w q) -> h w', '{word}', p=2, q=3) }}"
    wanted = function(values.reshape(2, 2, 2, 3), axis=(1, 3))
    np.testing.assert_allclose(called(text, values), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("h w -> h w r", lambda x: np.repeat(x[..., None], 3, -1)),
        ("h w -> h (w r)", lambda x: np.repeat(x, 3, 1)),
        ("h w -> (r h) w", lambda x: np.tile(x, (3, 1))),
        ("... -> r 1 (...)", lambda x: np.repeat(x.reshape(1, 1, -1), 3, 0)),
    ],
)
def test_what_is_repeated(pattern, wanted):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    text = f"def f(float(N, M) X) -> (Y) {{ Y = repeat(X, '{pattern}', r=3) }}"
    np.testing.assert_array_equal(called(text, values), wanted(values))


@pytest.mark.parametrize(
    "call",
    [
        "rearrange(X, 'h w -> h')",
        "rearrange(X, 'h w -> h w w')",
        "rearrange(X, 'h w c -> h w c')",
        "rearrange(X, '(h p) w -> h p w')",
        "reduce(X, 'h w -> h', 'median')",
        "repeat(X, 'h w -> h w r')",
        "2 * rearrange(X, 'h w -> w h')",
        "rearrange(2 * X, 'h w -> w h')",
        "rearrange(X, 'h w -> w h', h=X.shape[0])",
    ],
)
def test_other_calls_have_one_message_without_a_fix(call):
    found = [item for item in tc.analyze(f"def f(float(N, M) X) -> (Y) {{ Y = {call} }}").diagnostics if item.is_error]
    assert [(item.message, item.fix) for item in found] == [("the language has no text in quotes", None)]
