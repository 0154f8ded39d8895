"""PyTorch records calls as it does its own."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tc_jupyter as tc

torch = pytest.importorskip("torch")

TEXT = """
def softmax(double(N, D) X) -> (Y) {
    M(n) max=! X(n, d)
    E(n, d) = exp(X(n, d) - M(n))
    S(n) +=! E(n, d)
    Y(n, d) = E(n, d) / S(n)
}
def conv(double(B, C, H) X, double(O, C, K) W, double s) -> (Y, Z) {
    Y(b, o, h) +=! (X(b, c, 2*h + k - 1) else 0) * W(o, c, k) * s
    Z(k) = int32(W(0, 0, k))
}
def pool(double(N) X) -> (Y) { Y(i) max=! X(2*i + k) where k in 0:2 }
def look(double(V, D) T, int32(N) Id) -> (Y) { Y(n, d) = T(Id(n), d) * T(Id(n), d) }
def layer(float(B, I) X, float(O, I) W, float(O) b) -> (Y) {
    Z(n, o) +=! X(n, i) * W(o, i)
    Y(n, o) = max(Z(n, o) + b(o), 0)
}
def turned(complex128(N, K) A, complex128(K) W, complex128 s) -> (Z, Y) { Z(i) +=! A(i, k) * W(k) * s  Y(k) = abs(W(k)) }
def half_sum(half(N, K) X) -> (Y) { Y(n) +=! X(n, k) * X(n, k) }
def count(int32(N) X) -> (Y) { Y +=! X(i) }
"""
double = torch.double


@pytest.fixture(scope="module")
def module():
    return tc.compile(TEXT, allow=("TC332",))


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error", tc.DiagnosticWarning)
        yield


def leaf(*shape, dtype=double, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, dtype=dtype, generator=generator).add_(0.3).requires_grad_()


def cases(module):
    """Functions of tensors, with arguments."""
    yield lambda x: module.softmax(x), (leaf(3, 4),)
    yield lambda x, w, s: module.conv(x, w, s)[0], (leaf(1, 2, 5), leaf(2, 2, 3, seed=1), leaf(seed=2))
    yield lambda x, w: module.conv(x, w, 1.5)[0], (leaf(1, 2, 5), leaf(2, 2, 3, seed=1))
    yield lambda x: module.pool(x), (leaf(6),)
    yield lambda a, w, s: module.turned(a, w, s)[0], tuple(leaf(*n, dtype=torch.cdouble) for n in ((1, 2), (2,), ()))
    yield lambda t: module.look(t, torch.tensor([0, 2, 2], dtype=torch.int32)), (leaf(3, 2),)


@pytest.mark.some(3)
@pytest.mark.parametrize("number", range(6))
def test_gradients_and_those_of_gradients(module, number):
    function, arguments = list(cases(module))[number]
    assert torch.autograd.gradcheck(function, arguments, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, arguments)


def test_both_directions_of_one_call_have_their_own_numbers():
    """Backwards `X` is not needed, so that the number has another place there."""
    f = tc.compile("def f(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }", target="cpu").f
    X = torch.ones(3, requires_grad=True)
    with torch.autograd.forward_ad.dual_level():
        Y = f(torch.autograd.forward_ad.make_dual(X, torch.full((3,), 2.0)), 3.0)
        assert torch.autograd.forward_ad.unpack_dual(Y).tangent.tolist() == [6, 6, 6]
        Y.sum().backward()
    assert X.grad.tolist() == [3, 3, 3]


def test_training_reaches_the_same_loss(module):
    def layer(x, w, b):
        return torch.relu(x @ w.T + b)

    losses = []
    for function in (module.layer, layer):
        torch.manual_seed(3)
        x, wanted = torch.randn(16, 5), torch.rand(16, 3)
        w, b = torch.nn.Parameter(torch.randn(3, 5)), torch.nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.SGD([w, b], lr=0.05)
        for _ in range(30):
            optimizer.zero_grad()
            loss = (function(x, w, b) - wanted).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_cotangents_of_every_layout(module):
    x = leaf(3, 4)
    y = module.softmax(x)
    for grad in (torch.ones(1, dtype=double).expand(3, 4), torch.rand(4, 3, dtype=double).T):
        (found,) = torch.autograd.grad(y, x, grad, retain_graph=True)
        (expected,) = torch.autograd.grad(torch.softmax(x, 1), x, grad)
        torch.testing.assert_close(found, expected)


def test_only_what_is_asked_for(module):
    x, w = leaf(1, 2, 5).detach(), leaf(2, 2, 3)
    y, z = module.conv(x, w, 1.0)
    assert y.requires_grad
    assert not z.requires_grad
    y.sum().backward()
    assert x.grad is None
    assert w.grad.shape == w.shape
    with torch.no_grad():
        assert not module.softmax(leaf(3, 4)).requires_grad


def test_elements_of_16_bits(module):
    x = (torch.arange(12.0) / 8).reshape(3, 4).half().requires_grad_()
    module.half_sum(x).sum().backward()
    assert x.grad.dtype == torch.float16
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_a_saved_tensor_that_changes_is_an_error(module):
    x = leaf(3, 4)
    y = module.softmax(x)
    with torch.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_writing_into_a_saved_tensor_is_an_error(module):
    inside = leaf(3, 4)
    x = inside * 1.0
    y = (x * x).sum()
    module.softmax(inside.detach(), out=x.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_transforms_of_functions(module):
    x = leaf(3, 4).detach()
    found = torch.func.grad(lambda x: module.softmax(x).pow(2).sum())(x)
    torch.testing.assert_close(found, torch.func.grad(lambda x: torch.softmax(x, 1).pow(2).sum())(x))
    rows = torch.func.vmap(lambda row: module.softmax(row[None])[0])(x)
    torch.testing.assert_close(rows, torch.softmax(x, 1))
    found = torch.func.jvp(module.softmax, (x,), (x,))[1]
    torch.testing.assert_close(found, torch.func.jvp(lambda x: torch.softmax(x, 1), (x,), (x,))[1])


def test_no_calls_at_all():
    """`vmap` over nothing has the shapes and the types of some calls, and no element decides."""
    several = tc.compile(
        "def best(float(N, M) X, int32(N) I) -> (V, P) { V(n), P(n) argmax=! X(I(n), m) }", allow=("TC323",)
    ).best
    x, many = leaf(0, 3, 4, dtype=torch.float32), torch.zeros((0, 3), dtype=torch.int32)
    values, places = torch.func.vmap(several)(x, many)
    assert (values.shape, places.shape, places.dtype) == ((0, 3), (0, 3), torch.int64)
    values.sum().backward()
    assert x.grad.shape == x.shape
    inner = torch.func.vmap(torch.func.vmap(several, in_dims=(0, None)), in_dims=(0, None))
    assert inner(torch.ones(2, 0, 3, 4), torch.full((3,), 7, dtype=torch.int32))[0].shape == (2, 0, 3)
    with pytest.raises(tc.CallError, match="TC605"):
        torch.func.vmap(several)(x, many[:, :2])


def test_arrays_of_two_libraries(module):
    x = leaf(6)
    assert module.layer(np.ones((2, 3), np.float32), torch.ones(4, 3), np.zeros(4, np.float32)).shape == (2, 4)
    w = torch.ones(4, 3, requires_grad=True)
    y = module.layer(torch.ones(2, 3), w, torch.zeros(4))
    y.sum().backward()
    assert w.grad.tolist() == [[2.0] * 3] * 4
    del x


def test_out_and_gradients_are_announced(module):
    x = leaf(3, 4)
    with pytest.warns(tc.DiagnosticWarning, match="TC613"):
        module.softmax(x, out=torch.zeros(3, 4, dtype=double))


# inside `torch.compile`


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_the_whole_graph_is_traced(module, backend):
    def model(x, w):
        y, _ = module.conv(x, w, 2.0)
        return module.softmax(y[0]).sin().sum()

    traced = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    for size in (5, 7, 8):
        found, expected = [leaf(1, 2, size), leaf(2, 2, 3)], [leaf(1, 2, size), leaf(2, 2, 3)]
        one, other = traced(*found), model(*expected)
        torch.testing.assert_close(one, other)
        one.backward()
        other.backward()
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.slow
def test_the_operator_is_what_torch_wants(module):
    from tc_jupyter.runtime import torch_op

    x, w = leaf(1, 2, 5), leaf(2, 2, 3)
    key = module.conv.definition().key
    torch.library.opcheck(torch_op.call, ([x, w], f"{key}:ttf", [], [2.0]))


@pytest.mark.slow
def test_an_exported_program_calls_defs(module):
    class Model(torch.nn.Module):
        def forward(self, x):
            return module.softmax(x) + 1

    x = leaf(3, 4).detach()
    program = torch.export.export(Model(), (x,))
    torch.testing.assert_close(program.module()(x), torch.softmax(x, 1) + 1)


AGAIN = """
import sys, torch, tc_jupyter as tc
texts = ["def f(float(N) X, float(N) W) -> (Y) { Y(i) = sin(X(i))*W(i) }", "def g(float(N) X, float(N) W) -> (Y) { Y(i) = W(i) - X(i) }"]
order = [0, 1] if sys.argv[1] == "first" else [1, 0]
cell = tc.compile(" ".join(texts[each] for each in order), target="cpu")
graph = torch.compile(lambda x, w: cell.f(x, w).sum() + 2 * cell.g(x, w).sum(), fullgraph=True, dynamic=True)
x, w = (torch.rand(7, requires_grad=True) for _ in range(2))
graph(x, w).backward()
torch.testing.assert_close(x.grad, torch.cos(x) * w - 2)
torch.testing.assert_close(w.grad, torch.sin(x) + 2)
"""


@pytest.mark.slow
def test_another_process_takes_the_graph_from_the_disk(tmp_path):
    """It has not derived the defs, and has made them in another order."""
    script = tmp_path / "again.py"
    script.write_text(AGAIN)
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "graphs")}
    for run in ("first", "first", "second"):
        done = subprocess.run([sys.executable, script, run], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
    assert any((tmp_path / "graphs").rglob("*"))
