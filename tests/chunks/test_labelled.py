"""Arrays of xarray in calls: names, coordinates and attributes of what comes back."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

xr = pytest.importorskip("xarray")

TEXT = """
def smooth(float(H, W) X) -> (Y) { Y(i, j) = X(i - 1, j) + X(i, j) + X(i + 1, j) }
def shift(float(N) X) -> (Y) { Y(i) = X(i + 1) }
def mean(float(H, W) X) -> (m) { m(j) +=! X(i, j)  m(j) = m(j) / H }
def product(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }
def weighted(float(T, N) X, float(N) W) -> (S, Y) { Y(t, n) = X(t, n) * W(n)  S(t) +=! Y(t, n) }
def turned(float(H, W) X) -> (Y) { Y(j, i) = X(i, j) }
def every(float(N) X) -> (Y) { Y(i) = X(2*i) }
def pairs(float(N) A, float(N) B) -> (P) { P(i, j) = A(i) * B(j) }
def padded(float(N) X) -> (Y) { Y(i) = X(i) else 0 where i in 0:N + 1 }
"""


@pytest.fixture(scope="module")
def module():
    return tc.compile(TEXT, target="interpreter", allow=("TC321", "TC322", "TC329"))


@pytest.fixture
def field():
    values = np.arange(30, dtype=np.float32).reshape(6, 5)
    return xr.DataArray(
        values,
        dims=("y", "x"),
        coords={
            "y": np.arange(6) * 10,
            "x": list("abcde"),
            "height": ("y", np.arange(6) / 2),
            "both": (("y", "x"), values * 2),
            "when": 7,
        },
        attrs={"units": "m"},
        name="t",
    )


def test_a_window_drops_coordinates_at_both_ends(module, field):
    Y = module.smooth(field)
    assert Y.dims == ("y", "x")
    assert Y.name == "Y"
    assert Y.attrs == {"units": "m"}
    np.testing.assert_array_equal(Y.y, [10, 20, 30, 40])
    np.testing.assert_array_equal(Y.x, list("abcde"))
    np.testing.assert_array_equal(Y.height, [0.5, 1, 1.5, 2])
    np.testing.assert_array_equal(Y.both, field.both[1:5])
    assert Y.when == 7
    np.testing.assert_array_equal(Y.values, module.smooth(field.values))
    assert Y.sel(y=20, x="b") == field.sel(x="b")[1:4].sum()


def test_reductions_and_several_results(module, field):
    m = module.mean(field)
    assert m.dims == ("x",)
    assert set(m.coords) == {"x", "when"}
    weights = xr.DataArray(np.ones(5, np.float32), dims="x", coords={"x": list("abcde")})
    S, Y = module.weighted(field, weights)
    assert (S.dims, Y.dims) == (("y",), ("y", "x"))
    np.testing.assert_array_equal(S.y, field.y)


def test_indices_that_are_moved(module, field):
    column = field[:, 0]
    np.testing.assert_array_equal(module.shift(column).y, field.y)
    assert "y" not in module.every(column).coords
    assert "y" not in module.padded(column).coords
    assert module.padded(column).dims == ("y",)
    turned = module.turned(field)
    assert turned.dims == ("x", "y")
    np.testing.assert_array_equal(turned.both.transpose("y", "x"), field.both)


def test_names_are_asked_for_where_they_are_needed(module, field):
    A = field.drop_vars(list(field.coords))
    C = module.product(A, A.T.rename(x="x", y="z"))
    assert C.dims == ("y", "z")
    with pytest.raises(tc.CallError, match=r"TC672.*two dimensions of `P`"):
        module.pairs(A[:, 0], A[:, 1])
    P = module.pairs(A[:, 0], A[:, 1], dims={"j": "other"})
    assert P.dims == ("y", "other")
    with pytest.raises(tc.CallError, match=r"TC672.*no statement has an index `q`"):
        module.smooth(field, dims={"q": "y"})
    with pytest.raises(tc.CallError, match=r"TC672.*`B` has no dimension `x`"):
        module.product(A, A.T.rename(x="z"), dims={"k": "x"})


def test_dims_put_dimensions_in_order(module, field):
    Y = module.smooth(field.T, dims={"i": "y", "j": "x"})
    assert Y.dims == ("y", "x")
    np.testing.assert_array_equal(Y, module.smooth(field))


def test_coordinates_that_differ(module, field):
    weights = xr.DataArray(np.ones(5, np.float32), dims="x", coords={"x": list("abcdf")})
    with pytest.raises(tc.CallError, match=r"TC672.*coordinates of `x`"):
        module.weighted(field, weights)


def test_arrays_in_chunks(module, field):
    pytest.importorskip("dask.array")
    lazy = module.smooth(X=field.chunk(y=2))
    assert lazy.chunks == ((1, 2, 1), (5,))  # the edges are those of `X`
    xr.testing.assert_identical(lazy.compute(), module.smooth(field))
    assert module.smooth.chunked(field.chunk(y=2)).tasks == 3


def test_arrays_that_do_not_fit(module, field):
    with pytest.raises(tc.CallError, match="TC608"):
        module.smooth(field[0])
    with pytest.raises(tc.CallError, match="TC607"):
        module.smooth(field.astype(int))


def test_a_dataset_is_no_array(module):
    with pytest.raises(tc.CallError, match=r"`X` is an array `.*`; a `Dataset` came"):
        module.shift(xr.Dataset({"data": ("x", np.ones(4, np.float32))}))
    with pytest.raises(tc.CallError, match=r"help: pass one of its arrays: `ds\['data'\]`"):
        module.shift(xr.Dataset({"data": ("x", np.ones(4, np.float32))}))


def test_names_of_dimensions_stand_in_a_dictionary(module):
    for wrong in (3, "x", ["x"]):
        with pytest.raises(tc.CallError, match=r"TC672.*`dims=` is .*\n(.*\n)*help: it has a name for each index"):
            module.shift(xr.DataArray(np.ones(4, np.float32), dims="x"), dims=wrong)
