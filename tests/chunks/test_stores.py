"""Arrays of zarr: read, computed and written chunk by chunk."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.chunks import stores

zarr = pytest.importorskip("zarr")

ALLOW = ("TC321", "TC322", "TC323")
TEXT = """
def blur(float(H, W) X) -> (Y) { Y(i, j) = (X(i - 1, j) else 0) + X(i, wrap(j + 1)) + X(i, j) where i in 0:H, j in 0:W }
def shift(float(H, W) X, float s) -> (Y) { Y(i, j) = X(i, j) - s * X(i + 1, j) }
def product(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }
def softmax(float(N, D) X) -> (Y) {
    M(n) max=! X(n, d)
    E(n, d) = exp(X(n, d) - M(n))
    S(n) +=! E(n, d)
    Y(n, d) = E(n, d) / S(n)
}
def both(float(N) X) -> (S, Y) { S +=! X(i)  Y(i) = X(i) + X(clamp(i + 1)) where i in 0:N }
def around(float(H, W) X) -> (Y) { Y(i, j) = X(i, wrap(j - 2)) * X(i, wrap(j + 3)) where i in 0:H, j in 0:W }
def diagonal(float(N, M) X) -> (D) { D(i, j) = 0 where i in 0:N, j in 0:N  D(i, i) += X(i, k) }
def centred(float(N) X) -> (Y) { m +=! X(i)  m = m / N  Y(i) = X(i) - m }
def look(float(N) X, int32(M) I) -> (Y) { Y(i) = X(I(i)) }
"""


@pytest.fixture(scope="module")
def module():
    return tc.compile(TEXT, target="interpreter", allow=ALLOW)


def stored(path, values, chunks):
    made = zarr.create_array(str(path), shape=values.shape, dtype=values.dtype, chunks=chunks)
    made[...] = values
    return str(path)


def numbers(*shape):
    return np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_window(module, tmp_path, threads):
    X = numbers(13, 10)
    source = stored(tmp_path / "in.zarr", X, (4, 3))
    made = tc.zarr(module.blur, source, out=tmp_path / "out.zarr", threads=threads)
    np.testing.assert_array_equal(made[...], module.blur(X))
    assert made.chunks == (4, 3)
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "out.zarr"), mode="r")[...], module.blur(X))


def test_a_function_whose_ranks_a_call_tells(tmp_path):
    text = "float[*] smooth(float[*] a) { return { [i, ...] -> (a[i] + a[i + 1]) / 2f | [i] < [shape(a)[0] - 1] }; }"
    smooth = tc.compile(text, language="sac", target="interpreter").smooth
    x = np.random.default_rng(0).random((20, 6), np.float32)
    stored(tmp_path / "in.zarr", x, (8, 6))
    np.testing.assert_array_equal(tc.zarr(smooth, tmp_path / "in.zarr", out=tmp_path / "out.zarr")[...], smooth(x))
    with pytest.raises(tc.CallError, match="TC673"):
        tc.zarr(smooth, tmp_path / "none.zarr", out=tmp_path / "other.zarr")


def test_arrays_and_numbers_beside_stores(module, tmp_path):
    X = numbers(12, 6)
    source = stored(tmp_path / "in.zarr", X, (5, 6))
    made = tc.zarr(module.shift, X=source, s=0.5, out=tmp_path / "a.zarr")
    np.testing.assert_array_equal(made[...], module.shift(X, 0.5))
    B = numbers(6, 4)
    made = tc.zarr(module.product, zarr.open_array(source, mode="r"), B, out=tmp_path / "b.zarr", threads=2)
    np.testing.assert_array_equal(made[...], module.product(X, B))


def test_layers_and_several_results(module, tmp_path):
    X = numbers(9, 8)
    made = tc.zarr(module.softmax, stored(tmp_path / "in.zarr", X, (4, 3)), out=tmp_path / "a.zarr")
    np.testing.assert_allclose(made[...], module.softmax(X), rtol=1e-5)
    x = numbers(11)
    S, Y = tc.zarr(module.both, stored(tmp_path / "x.zarr", x, (4,)), out=(tmp_path / "S.zarr", tmp_path / "Y.zarr"))
    np.testing.assert_array_equal(S[...], x.sum())
    np.testing.assert_array_equal(Y[...], module.both(x)[1])


def test_the_chunks_of_a_store_that_is_there(module, tmp_path):
    X = numbers(13, 10)
    out = zarr.create_array(str(tmp_path / "out.zarr"), shape=(13, 10), dtype="f4", chunks=(5, 10))
    tc.zarr(module.blur, stored(tmp_path / "in.zarr", X, (4, 3)), out=out)
    np.testing.assert_array_equal(out[...], module.blur(X))


@pytest.mark.parametrize(("chunks", "most"), [((4, 16), 16), ((8, 2), 96)])
def test_bands_are_decoded_once_and_half_of_a_grid_twice(module, tmp_path, monkeypatch, chunks, most):
    X = numbers(64, 16)
    sources = []
    make = stores._Run.source
    monkeypatch.setattr(stores._Run, "source", lambda *a: sources.append(make(*a)) or sources[-1])
    made = tc.zarr(module.blur, stored(tmp_path / "in.zarr", X, chunks), out=tmp_path / "out.zarr", threads=1)
    np.testing.assert_array_equal(made[...], module.blur(X))
    (source,) = sources
    assert source.decoded <= most
    assert source.kept == 0


@pytest.mark.slow
@pytest.mark.parametrize(("chunks", "more"), [((128, 1024), 0), ((256, 256), 3)])
def test_memory_follows_from_the_chunks_and_not_from_the_array(tmp_path, chunks, more):
    """At most two chunks beside those of the threads; what zarr itself holds to read and write a small chunk comes on top."""
    blur = tc.compile(TEXT, target="cpu", allow=ALLOW).blur
    stored(tmp_path / "in.zarr", np.zeros((2048, 1024), np.float32), chunks)
    tc.zarr(blur, tmp_path / "in.zarr", out=tmp_path / "first.zarr", threads=2)  # makes the code
    tracemalloc.start()
    try:
        tc.zarr(blur, tmp_path / "in.zarr", out=tmp_path / "out.zarr", threads=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    rows, columns = chunks
    assert peak < (2 + 2 + more) * 4 * ((rows + 2) * (columns + 2) + rows * columns)


def test_two_pieces_of_one_chunk(module, tmp_path):
    X = numbers(4, 8)
    made = tc.zarr(module.around, stored(tmp_path / "in.zarr", X, (4, 6)), out=tmp_path / "out.zarr", threads=1)
    np.testing.assert_array_equal(made[...], module.around(X))


@pytest.mark.parametrize("chunks", [(3, 3), (2, 7), (7, 2)])
def test_a_diagonal_is_written_in_the_chunks_of_its_store(module, tmp_path, chunks):
    X = numbers(7, 5)
    out = zarr.create_array(str(tmp_path / "out.zarr"), shape=(7, 7), dtype="f4", chunks=chunks)
    made = tc.zarr(module.diagonal, stored(tmp_path / "in.zarr", X, (4, 5)), out=out)
    np.testing.assert_array_equal(made[...], np.diag(X.sum(1)))


def test_a_number_that_is_made_on_the_way(module, tmp_path):
    X = numbers(8)
    made = tc.zarr(module.centred, stored(tmp_path / "in.zarr", X, (4,)), out=tmp_path / "out.zarr")
    np.testing.assert_array_equal(made[...], module.centred(X))


def test_what_is_refused(module, tmp_path):
    X = numbers(6, 6)
    source = stored(tmp_path / "in.zarr", X, (3, 3))
    with pytest.raises(tc.CallError, match=r"TC673.*no array of zarr"):
        tc.zarr(module.blur, tmp_path / "missing.zarr", out=tmp_path / "out.zarr")
    with pytest.raises(tc.CallError, match=r"TC673.*read and written"):
        tc.zarr(module.blur, source, out=source)
    with pytest.raises(tc.CallError, match=r"TC673.*2 stores"):
        tc.zarr(module.blur, source, out=("a", "b"))
    with pytest.raises(tc.CallError, match=r"TC673.*with shape"):
        tc.zarr(module.shift, source, 1.0, out=stored(tmp_path / "other.zarr", X, (3, 3)))
    with pytest.raises(tc.CallError, match="TC607"):
        tc.zarr(module.blur, stored(tmp_path / "ints.zarr", X.astype("i4"), (3, 3)), out=tmp_path / "out.zarr")


def test_a_call_that_fails_leaves_no_store(module, tmp_path):
    x, indices = numbers(8), np.array([0, 1, 9, 2], np.int32)
    with pytest.raises(tc.CallError, match="TC604"):
        tc.zarr(
            module.look,
            stored(tmp_path / "x.zarr", x, (4,)),
            stored(tmp_path / "i.zarr", indices, (2,)),
            out=tmp_path / "o.zarr",
        )
    assert not (tmp_path / "o.zarr").exists()
