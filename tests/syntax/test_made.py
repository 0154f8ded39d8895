"""Arrays that slices write: after all fixes, drawn programs of NumPy compute what NumPy does."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import tc_jupyter as tc

BEGIN = ["Y = np.zeros(N)", "Y = np.zeros_like(X)", "Y = X.copy()", "Y = np.full(N, 3.0)", "Y = 2 * X"]
BEGIN_2 = ["Y = np.zeros((N, M))", "Y = np.ones_like(X)", "Y = X.copy()", "Y = X - X[0]", "Y = X + X[:, 0:1]"]


def statement(rng):
    a, b = rng.randint(1, 2), rng.randint(1, 2)
    forms = [
        f"Y[{a}:] = X[:-{a}]",
        f"Y[:-{a}] = X[{a}:]",
        f"Y[{a}:-{b}] = X[{a + b}:] - X[:-{a + b}]",
        f"Y[{a}:-{b}] += {a}",
        f"Y[{a}:] *= 2",
        f"Y[{a}] = {b}",
        f"Y[-{a}] = {b}",
        f"Y[::{a + 1}] = {b}",
        f"Y[1::{a + 1}] -= {b}",
        "Y[::-1] = X",
        "Y[...] = X + 1",
    ]
    return rng.choice(forms)


def statement_2(rng):
    a, b = rng.randint(1, 2), rng.randint(1, 2)
    forms = [
        f"Y[{a}] = X[{b}]",
        f"Y[-{a}] = {b}",
        f"Y[:, {a}] = {b}",
        f"Y[:, -{a}] = X[:, 0]",
        f"Y[{a}:, :-{b}] = X[:-{a}, {b}:]",
        f"Y[{a}:-{b}, 1:-1] = X[{a + b}:, 1:-1] - X[:-{a + b}, 1:-1]",
        f"Y[..., {a}] = X[:, {b}]",
        f"Y[{a}, ::-1] = X[0]",
        f"Y[{a}:] += {b}",
        f"Y[:, ::2] = {b}",
    ]
    return rng.choice(forms)


TERMS = [
    *("X", "X[0]", "X[-1]", "X[:, 0:1]", "X[:, ::-1]", "X[1:2, ::-1]", "X[...]", "X[..., 0:1]", "X[0:1]", "X[:, :]"),
    *("w", "w[::-1]", "w[None, :]", "exp(w)", "b[:, None]", "b[::-1, None]", "2"),
]


def after_all_fixes(text):
    for _ in range(40):
        errors = [item for item in tc.analyze(text).diagnostics if item.is_error]
        if not errors:
            return text
        fix = next((item.fix for item in errors if item.fix is not None), None)
        assert fix is not None, f"{text}\n{[item.message for item in errors]}"
        text = fix.applied(text)
    raise AssertionError(f"fixes without end: {text}")


def compared(header, lines, values, **others):
    names = {"np": np, "exp": np.exp, "X": values, "N": values.shape[0], "M": values.shape[-1], **others}
    exec("\n".join(lines), names)  # a program of NumPy, drawn above
    text = after_all_fixes(f"{header} {{ {'  '.join(lines)} }}")
    found = tc.compile(text, target="interpreter", allow=["TC234", "TC322", "TC325"]).f(values, *others.values())
    np.testing.assert_allclose(found, names["Y"], rtol=1e-5, err_msg=f"{lines}\n{text}")


@pytest.mark.parametrize("seed", range(30))
def test_drawn_programs_on_vectors(seed):
    rng = Random(seed)
    lines = [rng.choice(BEGIN), *(statement(rng) for _ in range(rng.randint(1, 3)))]
    compared("def f(float(N) X) -> (Y)", lines, np.arange(1, 9, dtype=np.float32) ** 2)


@pytest.mark.parametrize("seed", range(30))
def test_drawn_programs_on_matrices(seed):
    rng = Random(seed)
    lines = [rng.choice(BEGIN_2), *(statement_2(rng) for _ in range(rng.randint(1, 3)))]
    compared("def f(float(N, M) X) -> (Y)", lines, np.arange(1, 43, dtype=np.float32).reshape(6, 7) ** 2)


@pytest.mark.parametrize("seed", range(30))
def test_drawn_expressions(seed):
    rng = Random(seed)
    terms = [rng.choice(TERMS[:-1]), *(rng.choice(TERMS) for _ in range(rng.randint(1, 2)))]
    line = terms[0] + "".join(f" {rng.choice('+-*')} {term}" for term in terms[1:])
    others = {"w": np.arange(7, dtype=np.float32) - 3, "b": np.arange(6, dtype=np.float32)}
    values = np.arange(1, 43, dtype=np.float32).reshape(6, 7)
    compared("def f(float(N, M) X, float(M) w, float(N) b) -> (Y)", [f"Y = {line}"], values, **others)
