"""Calls with complex numbers: arrays of every layout and library, numbers, `out=`, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

TEXT = """
def mul(complex64(N) A, complex64(N) B) -> (C) { C(i) = A(i) * B(i) }
def div(complex64(N) A, complex64(N) B) -> (C) { C(i) = A(i) / B(i) }
def functions(complex128(N) A) -> (E, S, Q, C, R, I) {
    E(i) = exp(A(i)) S(i) = sqrt(A(i)) Q(i) = abs(A(i)) C(i) = conj(A(i)) R(i) = re(A(i)) I(i) = im(A(i))
}
def dot(complex64(N) A, complex64(N) B) -> (C) { C +=! A(i) * conj(B(i)) }
def product(complex64(M, K) A, complex64(K, N) B, complex64 z) -> (C) { C(i, j) +=! A(i, k) * B(k, j) * z }
def mixed(complex64(N) A, double(N) B, int32(N) K) -> (C, D) { C(i) = A(i) * B(i) + K(i) - 1.5 D(i) = A(i) == 2 ? 1 : 2 * A(i) }
def own(complex64(N) A, float(N) B) -> (C) { C(i) = A(i) + 1 C(i) = C(i) * C(i) / A(i) C(i) *= A(i) C(i) *= B(i) }
def bins(complex64(N) A, int32(N) P) -> (complex64(8) C) { C(P(i)) +=! A(i) }
def borders(complex64(N) A) -> (C) { C(i) = (A(i - 1) else 0) + A(clamp(i + 1)) + A(wrap(i - 2)) where i in 0:N }
def scale(complex64(N) A, complex64 s) -> (C) { C(i) = A(i) * s }
def by_sum(complex64(N) A) -> (complex64(N) D) { S +=! A(i) D = scale(A, S) }
def summed(complex64(M, K) A, complex64(K, N) B) -> (C) { C(i, j) += A(i, k) * B(k, j) }
"""
RANDOM = np.random.default_rng(0)


def numbers(*shape, dtype=np.complex64):
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(dtype)


@pytest.fixture(scope="module", params=["interpreter", "cpu"])
def module(request):
    return tc.compile(TEXT, target=request.param, allow="TC232")


def agree(found, expected):
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def test_values(module):
    for n in (37, 16, 16, 16, 1, 0):  # again: a call by its recipe, and by the native entry point
        A, B = numbers(n), numbers(n)
        agree(module.mul(A, B), A * B)
        agree(module.div(A, B), A / B)
        agree(module.dot(A, B), np.vdot(B, A))
        W = numbers(n, dtype=np.complex128)
        for found, expected in zip(
            module.functions(W), (np.exp(W), np.sqrt(W), abs(W), W.conj(), W.real, W.imag), strict=True
        ):
            agree(found, expected)
        D, K = RANDOM.normal(size=n), RANDOM.integers(0, 9, n).astype(np.int32)
        agree(module.mixed(A, D, K)[0], A * D + K - 1.5)
        agree(module.own(A, D.astype(np.float32)), ((A + 1) ** 2 * D).astype(np.complex64))
        agree(module.by_sum(A), A * A.sum())
        P, expected = RANDOM.integers(0, 8, n).astype(np.int32), np.zeros(8, np.complex64)
        np.add.at(expected, P, A)
        agree(module.bins(A, P), expected)
    A = numbers(9)
    agree(module.borders(A), np.r_[0, A[:-1]].astype(A.dtype) + np.r_[A[1:], A[-1:]] + np.roll(A, 2))


@pytest.mark.some(2)
def test_products_of_matrices(module):
    for m, k, n in ((5, 7, 6), (33, 17, 40), (1, 1, 1)):
        A, B = numbers(m, k), numbers(k, n)
        agree(module.product(A, B, 2 - 1j), (A @ B * (2 - 1j)).astype(np.complex64))
        agree(module.summed(A, B), A @ B)
        out = numbers(m, n)
        agree(module.summed(A, B, out=out.copy()), out + A @ B)
        agree(module.product(A[::-1], np.asfortranarray(B), 1), A[::-1] @ B)


def test_layouts(module):
    A, B = numbers(30), numbers(30)
    wide = np.zeros(60, np.complex64)
    for target in (wide[::2], wide[:30][::-1], np.empty(30, np.complex64)):
        for _ in range(3):
            assert module.mul(A, B, out=target) is target
            agree(target, A * B)
    agree(module.mul(A[::3], B[::-3]), A[::3] * B[::-3])
    agree(module.mul(A.astype(">c8"), B), A * B)
    agree(module.mul(np.broadcast_to(A[:1], 30), B), A[0] * B)
    block = np.zeros(30 * 8 + 1, np.uint8)[1:].view(np.complex64)
    block[...] = A
    agree(module.mul(block, B), A * B)
    here = A.copy()
    module.mul(here, B, out=here)
    agree(here, A * B)
    with pytest.raises(tc.CallError, match="TC611"):
        module.mul(A, B, out=np.lib.stride_tricks.as_strided(A.copy(), (30,), (4,)))


@pytest.mark.parametrize(
    "z", [2, 1.5, True, 2 - 1j, np.float32(2), np.complex64(1j), np.array(1j, np.complex64), np.array(2.0)]
)
def test_numbers(module, z):
    A, B = numbers(3, 4), numbers(4, 2)
    agree(module.product(A, B, z), (A @ B * complex(z)).astype(np.complex64))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("mul", (numbers(3).real, numbers(3)), "TC607.*type complex64; an array of float32 came"),
        ("mul", (numbers(3), numbers(3, dtype=np.complex128)), "TC607.*type complex64; an array of complex128 came"),
        ("mul", (numbers(3), [1j]), "TC607.*`complex64.N. B`; a Python list came"),
        ("mul", (numbers(3, 2), numbers(3)), r"TC608.*1 dimension; an array of shape \(3, 2\) came"),
        ("mul", (numbers(3), numbers(5)), "TC605.*size `N` is 3 in `A` .dimension 0. and 5"),
        ("scale", (numbers(3), "1"), "TC607.*number of type complex64; a `str` came"),
        ("scale", (numbers(3), 1e300j), "TC607.*number of type complex64; 1e.300 is too large"),
        ("mixed", (numbers(3), numbers(3), np.ones(3, np.int32)), "TC607.*type float64; an array of complex64 came"),
    ],
)
def test_what_does_not_fit(module, name, arguments, message):
    with pytest.raises(tc.CallError, match=message):
        module[name](*arguments)


def test_torch(module):
    torch = pytest.importorskip("torch")
    A, B = numbers(20), numbers(20)
    for _ in range(3):
        for a, expected in ((torch.from_numpy(A), A), (torch.from_numpy(A).conj(), A.conj())):
            found = module.mul(a, torch.from_numpy(B))
            assert isinstance(found, torch.Tensor)
            agree(found.numpy(), expected * B)
        out = torch.empty(40, dtype=torch.complex64)[::2]
        assert module.mul(torch.from_numpy(A), torch.from_numpy(B), out=out) is out
        agree(out.numpy(), A * B)
        agree(module.scale(torch.from_numpy(A), 2j).numpy(), (2j * A).astype(np.complex64))


def test_quotients_and_roots_do_not_overflow(module):
    large = np.array([1e30 + 1e30j, 1e-30j, 3e38], np.complex64)
    agree(module.div(large, large), np.ones(3, np.complex64))
    found = module.div(np.array([1 + 2j], np.complex64), np.zeros(1, np.complex64))
    assert np.isinf(found.real).all()
    assert np.isinf(found.imag).all()
    root = module.functions(np.array([-1, complex(-1, -0.0), 1e300 + 1e300j, 0]))[1]
    np.testing.assert_allclose(root, np.sqrt(np.array([-1, complex(-1, -0.0), 1e300 + 1e300j, 0])))


def test_what_is_known(module):
    mul, A, B = module.mul, numbers(8), numbers(8)
    assert mul.signature == "mul(complex64(N) A, complex64(N) B) -> (complex64(N) C)"
    assert mul.shapes(N=5) == {"C": (5,)}
    assert mul.cost(N=5).flops == 30
    judge = mul.judge(A, B)
    assert judge(A * B, mul(A, B))
    assert not judge(A * B * 1.001, A * B)
    assert tc.analyze(TEXT, allow="TC232").to_json()["functions"][0]["outputs"][0] == {
        "name": "C", "dtype": "complex64", "shape": ["N"], "origin": ["0"],
    }  # fmt: skip


def test_results_of_the_simulator():
    pytest.importorskip("cuda")
    module = tc.compile(TEXT, allow="TC232")
    A, B = numbers(40), numbers(40)
    for name, arguments, expected in (
        ("mul", (A, B), A * B),
        ("product", (numbers(9, 5), numbers(5, 11), 1j), None),
        ("bins", (A, (np.arange(40) % 8).astype(np.int32)), A.reshape(5, 8).sum(0)),
        ("own", (A, A.real.copy()), None),
    ):
        run = module[name].simulate(*arguments)
        assert not run.findings
        agree(run.outputs[0], module[name](*arguments) if expected is None else expected)
