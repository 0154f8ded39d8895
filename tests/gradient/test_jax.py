"""JAX traces calls as it does its own."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

import tc_jupyter as tc

jax = pytest.importorskip("jax")
jnp = jax.numpy

TEXT = """
def softmax(double(N, D) X) -> (Y) {
    M(n) max=! X(n, d)
    E(n, d) = exp(X(n, d) - M(n))
    S(n) +=! E(n, d)
    Y(n, d) = E(n, d) / S(n)
}
def conv(double(N) X, double(K) W, double s) -> (Y, Z) { Y(i) +=! X(i + k) * W(k) * s  Z(k) = int32(W(k)) }
def look(double(V, D) T, int32(N) Id) -> (Y) { Y(n, d) = T(Id(n), d) * T(Id(n), d) }
def first(double(N) X, int32 k) -> (Y) { Y(i) = X(i) * k where i in 0:k }
def rows(double(E) X, int32(R + 1) P) -> (Y) { Y(r) +=! X(e) where e in P(r):P(r+1) }
def hard(double(N) X) -> (Y) { Y(i) = round(X(i)) }
def through(double(N) X, double(N) dY) -> (dX) { dX(i) = dY(i) }
def several(double(N) X) -> (Y) { Y += X(i) * X(i) }
def narrow(bfloat16(N) X) -> (Y) { Y(i) = bfloat16(X(i) * X(i)) }
def plain(float(N) X) -> (Y) { Y(i) argmax=! X(j) where i in 0:2 }
def complex_(complex64(N) X) -> (Y) { Y(i) = X(i) * X(i) }
"""


@pytest.fixture(scope="module")
def module():
    return tc.compile(TEXT, target="cpu", allow=("TC234", "TC332", "TC232", "TC322", "TC323"))


@pytest.fixture(autouse=True)
def wide():
    old = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", old)


def numbers(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).uniform(0.3, 1.3, shape))


def theirs(x):
    return jax.nn.softmax(x, axis=1)


def weighted(f):
    return lambda x: (f(x) * jnp.arange(4.0)).sum()


def test_some_transforms(module):
    x, many = numbers(3, 4), numbers(2, 3, 4, seed=1)
    np.testing.assert_allclose(
        jax.jit(jax.grad(weighted(module.softmax)))(x), jax.grad(weighted(theirs))(x), atol=1e-14
    )
    np.testing.assert_allclose(jax.vmap(module.softmax)(many), jax.vmap(theirs)(many), rtol=1e-12)


@pytest.mark.parametrize("type_, narrow, came", [("int64", "int32", "int32"), ("double", "float", "float32")])
def test_an_array_of_32_bits_where_jax_has_no_others(type_, narrow, came):
    # `.astype("int64")`, the cure elsewhere, gives 32 bits there
    f = tc.compile(f"def f({type_}(N) X) -> (Y) {{ Y(i) = X(i) * 2 }}").f
    jax.config.update("jax_enable_x64", False)
    x = jnp.arange(3).astype(came)
    for call in (f, jax.jit(f)):
        with pytest.raises(tc.CallError, match="TC607") as said:
            call(x)
        assert "jax_enable_x64" in (said.value.diagnostic.help or "")
        assert f"declare `{narrow}`" in (said.value.diagnostic.help or "")
    jax.config.update("jax_enable_x64", True)
    assert jax.jit(f)(jnp.arange(3).astype(type_)).tolist() == [0, 2, 4]


@pytest.mark.slow
def test_transforms_of_jax(module):
    f, x, many = module.softmax, numbers(3, 4), numbers(2, 3, 4, seed=1)
    pairs = [
        (jax.jit(f)(x), theirs(x)),
        (jax.jvp(f, (x,), (many[0],))[1], jax.jvp(theirs, (x,), (many[0],))[1]),
        (jax.jit(jax.grad(weighted(f)))(x), jax.grad(weighted(theirs))(x)),
        (jax.jacfwd(f)(x), jax.jacfwd(theirs)(x)),
        (jax.jacrev(f)(x), jax.jacfwd(theirs)(x)),
        (jax.hessian(weighted(f))(x), jax.hessian(weighted(theirs))(x)),
        (jax.vmap(f, in_axes=1)(many), jax.vmap(theirs, in_axes=1)(many)),
        (jax.vmap(jax.grad(weighted(f)))(many), jax.vmap(jax.grad(weighted(theirs)))(many)),
        (
            jax.grad(lambda x: jax.vmap(f)(x)[..., 1].sum())(many),
            jax.grad(lambda x: jax.vmap(theirs)(x)[..., 1].sum())(many),
        ),
    ]
    for number, (ours, other) in enumerate(pairs):
        np.testing.assert_allclose(ours, other, rtol=1e-12, atol=1e-14, err_msg=str(number))


@pytest.mark.slow
def test_gradients_are_differences(module):
    from jax.test_util import check_grads

    check_grads(module.softmax, (numbers(2, 3),), order=2)
    x, w, s = numbers(5), numbers(2, seed=1), numbers(seed=2)
    check_grads(lambda x, w, s: module.conv(x, w, s)[0], (x, w, s), order=2)
    check_grads(lambda t: module.look(t, jnp.asarray([0, 2, 2], jnp.int32)), (numbers(3, 2),), order=2)


def test_a_call_is_transposed_where_it_is_linear(module):
    x, w = numbers(5), jnp.asarray([1.0, 2.0])
    (found,) = jax.linear_transpose(lambda x: module.conv(x, w, 1.5)[0], x)(jnp.ones(4))
    assert found.tolist() == [1.5, 4.5, 4.5, 4.5, 3.0]
    with pytest.raises(TypeError, match="`softmax` is not linear"):
        jax.linear_transpose(module.softmax, numbers(2, 3))(numbers(2, 3))


def test_numbers_and_sizes(module):
    x = numbers(4)
    assert jax.jit(lambda x: module.first(x, 2))(x).shape == (2,)
    assert jax.jit(module.first, static_argnums=1)(x, 3).shape == (3,)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="`k` of `first` says how large a result is"):
        jax.jit(module.first)(x, 2)
    with pytest.raises(tc.CallError, match=r"TC608.*`X` has 2 dimensions"):
        jax.jit(module.softmax)(x)
    with pytest.raises(tc.CallError, match="TC606"):
        jax.jit(module.softmax)(x, x)
    with pytest.raises((ValueError, RuntimeError), match="TC604"):
        jax.block_until_ready(jax.jit(module.look)(numbers(3, 2), jnp.asarray([0, 7], jnp.int32)))


def test_types_and_empty_arrays(module):
    ids = jnp.zeros((0,), jnp.int32)
    assert jax.jit(module.look)(numbers(3, 2), ids).shape == (0, 2)
    half = jnp.full(3, 1.5, jnp.bfloat16)
    assert jax.jit(module.narrow)(half).tolist() == [2.25] * 3
    assert jax.grad(lambda x: module.narrow(x).sum())(half).dtype == jnp.bfloat16
    assert jax.jit(module.several)(numbers(3)) == pytest.approx(float((numbers(3) ** 2).sum()))
    assert jax.jit(module.complex_)(jnp.asarray([1j], jnp.complex64)).tolist() == [-1]
    jax.config.update("jax_enable_x64", False)
    found = jax.jit(module.plain)(jnp.asarray([1, 3, 2], jnp.float32))
    assert found.tolist() == [1, 1]
    assert found.dtype == jnp.int32


def test_the_derivative_by_a_complex_number_is_that_of_jax(module):
    z = jnp.asarray([1 + 2j, 3 - 1j], jnp.complex64)
    ours, theirs = (jax.grad(lambda z, f=f: jnp.abs(f(z) + 1).sum())(z) for f in (module.complex_, jnp.square))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_the_derivative_by_a_complex_number_without_dimensions():
    f = tc.compile("def f(complex128(N) Z, complex128 a) -> (Y) { Y(i) = Z(i) * a * a }", target="cpu").f
    z, a = jnp.arange(4) + 1j, 2 + 1j
    found = jax.grad(lambda a: jnp.sum(jnp.real(f(z, a))))(a)
    np.testing.assert_allclose(found, jax.grad(lambda a: jnp.sum(jnp.real(z * a * a)))(a))


def test_many_calls_with_rows_of_their_own(module):
    """Ranges that differ from call to call have no common index: one call after the other."""
    x, ends = numbers(2, 4), jnp.asarray([[0, 1, 4], [0, 3, 4]], jnp.int32)
    found = jax.vmap(module.rows)(x, ends)
    for one, x_, ends_ in zip(found, x, ends, strict=True):
        np.testing.assert_allclose(one, module.rows(x_, ends_))
    assert jax.vmap(module.rows, in_axes=(0, None))(x, ends[0]).shape == (2, 2)
    assert jax.vmap(module.complex_)(jnp.ones((2, 3), jnp.complex64)).shape == (2, 3)


def test_a_derivative_of_the_user(module):
    f = module.hard.with_vjp(module.through, check=False)
    assert jax.grad(lambda x: f(x).sum())(numbers(3)).tolist() == [1, 1, 1]
    assert jax.grad(lambda x: module.hard(x).sum())(numbers(3)).tolist() == [0, 0, 0]


def test_code_outlives_the_function():
    f = tc.compile("def gone(double(N) X) -> (Y) { Y(i) = X(i) * 3 }", target="cpu").gone
    made = jax.jit(lambda x, f=f: f(x))
    x = numbers(3)
    made(x)
    del f
    gc.collect()
    np.testing.assert_allclose(made(x), x * 3)


def test_elsewhere_than_on_a_cpu(module):
    """What XLA cannot call as C code is called back."""
    from tc_jupyter.runtime import jax_op

    f, x = module.softmax.definition(), numbers(2, 3)
    site = jax_op.Site(f, (0,))
    (found,) = jax.jit(lambda x: jax_op._called_back(x, site=site))(x)
    np.testing.assert_allclose(found, theirs(x))


def test_eager_calls_give_arrays_of_jax(module):
    x = numbers(3, 4)
    for found in (module.softmax(x) for _ in range(4)):
        assert isinstance(found, jax.Array)
        np.testing.assert_allclose(found, theirs(x))


def test_nobody_loads_jax_who_has_no_arrays_of_it():
    code = """
import sys, numpy as np, tc_jupyter as tc
tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) }").f(np.ones(3, np.float32))
assert "jax" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True)
