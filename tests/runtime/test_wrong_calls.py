"""Calls as newcomers make them, and what the message says to do."""

import re

import numpy as np
import pytest

import tc_jupyter as tc

A, B = np.ones((3, 4), np.float32), np.ones(4, np.float32)
READ_ONLY = np.broadcast_to(np.float32(0), (3,))


@pytest.fixture(scope="module")
def module():
    return tc.compile("""
        def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }
        def scale(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }
        def two(float(N) X) -> (Y, Z) { Y(i) = X(i)  Z(i) = 2 * X(i) }
    """)


CALLS = {
    "exchanged": (lambda m: m.mv(B, A), "TC608", "`A` and `B` fit if they are exchanged"),
    "exchanged with a number": (lambda m: m.scale(2.0, B), "TC608", "`X` and `a` fit if they are exchanged"),
    "transposed": (lambda m: m.mv(A.T, B), "TC605", "the sizes fit if `A` is transposed: pass its `.T`"),
    "not transposed": (lambda m: m.mv(A, np.ones(5, np.float32)), "TC605", None),
    "a column": (lambda m: m.mv(A, B[:, None]), "TC608", "pass `x[:, 0]`, of shape (4,), or"),
    "two results": (lambda m: m.mv(A, m.two(B)), "TC607", "pass one of its arrays: a def with several results"),
    "a generator": (lambda m: m.mv(A, iter(range(4))), "TC607", "pass `np.array(list(x), dtype=np.float32)`"),
    "out of another type": (
        lambda m: m.mv(A, B, out=np.ones(3)),
        "TC610",
        "pass `np.empty((3,), dtype=np.float32)`, or",
    ),
    "out of another shape": (
        lambda m: m.mv(A, B, out=np.ones(4, np.float32)),
        "TC610",
        "pass `np.empty((3,), dtype=np",
    ),
    "out that is read-only": (lambda m: m.mv(A, B, out=READ_ONLY), "TC610", "leave `out=` away"),
}


@pytest.mark.parametrize("case", CALLS)
def test_what_to_do(module, case):
    call, code, help = CALLS[case]
    with pytest.raises(tc.CallError) as caught:
        call(module)
    said = caught.value.diagnostic
    assert said.code.number == code
    assert said.help is None if help is None else said.help.startswith(help)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((np.ones(3, np.float32),), "3 came; an array to write into is given by name, as `out=`"),
        ((3, 4), "4 came; sizes follow from the arrays"),
        (("x",), "3 came"),
    ],
)
def test_too_many(module, more, words):
    with pytest.raises(tc.CallError, match=f"takes 2 arguments, {re.escape(words)}\n"):
        module.mv(A, B, *more)


def test_tables(module):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(tc.CallError, match=r"pass `\.to_numpy\(dtype=np\.float32\)`"):
        module.mv(pandas.DataFrame(A), B)


def test_tensors_without_values(module):
    torch = pytest.importorskip("torch")
    with pytest.raises(tc.CallError, match="help: pass one with values: those on `meta` have none"):
        module.mv(torch.ones(3, 4, device="meta"), torch.ones(4))
