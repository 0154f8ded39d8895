"""What is read beyond the ends of an array: all modes of `np.pad`, sizes 1 to 5, offsets up to three extents, on all engines."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc

MODES = {"clamp": "edge", "wrap": "wrap", "reflect": "reflect", "symmetric": "symmetric"}
ENGINES = ["cpu", "interpreter"]


def read(mode: str, subscript: str) -> str:
    return f"X({subscript}) else 7" if mode == "constant" else f"X({mode}({subscript}))"


def padded(array: np.ndarray, width: object, mode: str) -> np.ndarray:
    return (
        np.pad(array, width, "constant", constant_values=7) if mode == "constant" else np.pad(array, width, MODES[mode])
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("mode", ["constant", *MODES])
def test_one_dimension(mode, target):
    f = tc.compile(
        f"def f(float(N) X, int32 p) -> (Y) {{ Y(i) = {read(mode, 'i - p')} where i in 0:N + 2*p }}", target=target
    ).f
    for n in range(1, 6):
        x = np.arange(1, n + 1, dtype=np.float32)
        for p in range(3 * n + 1):
            np.testing.assert_array_equal(f(x, p), padded(x, p, mode), err_msg=f"{n} {p}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["constant", *MODES])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_constant_offsets(mode, n):
    """The offsets stand in the text, so that other code is made of them."""
    x = np.arange(1, n + 1, dtype=np.float32)
    for p in (1, n, 2 * n + 1, 3 * n):
        f = tc.compile(f"def f(float(N) X) -> (Y) {{ Y(i) = {read(mode, f'i - {p}')} where i in 0:N + {2 * p} }}").f
        for _ in range(3):
            np.testing.assert_array_equal(f(x), padded(x, p, mode), err_msg=f"{n} {p}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ENGINES)
def test_two_dimensions_with_two_modes(target):
    text = """
    def f(float(N, M) X) -> (Y) { Y(i, j) = X(reflect(i - 3), wrap(j - 2)) where i in 0:N + 6, j in 0:M + 4 }
    def g(float(N, M) X) -> (Y) { Y(i, j) = X(symmetric(i - 3), j - 2) else -1 where i in 0:N + 6, j in 0:M + 4 }
    def h(float(N, M) X) -> (Y) { Y(i, j) = X(i - 1, j - 1) else X(i, j) else 0.5 where i in 0:N + 2, j in 0:M + 2 }
    """
    module = tc.compile(text, target=target)
    for n in range(1, 6):
        for m in range(1, 6):
            x = np.arange(n * m, dtype=np.float32).reshape(n, m)
            wanted = np.pad(np.pad(x, ((3, 3), (0, 0)), "reflect"), ((0, 0), (2, 2)), "wrap")
            np.testing.assert_array_equal(module.f(x), wanted)
            wanted = np.pad(np.pad(x, ((3, 3), (0, 0)), "symmetric"), ((0, 0), (2, 2)), constant_values=-1)
            np.testing.assert_array_equal(module.g(x), wanted)
            wanted = np.full((n + 2, m + 2), 0.5, np.float32)
            wanted[:n, :m] = x
            wanted[1:-1, 1:-1] = x
            np.testing.assert_array_equal(module.h(x), wanted)


BOXES = """
def box(float(-2:N) X) -> (A, B, C, D, E) {
    A(i) = X(clamp(i)) where i in -7:N + 5
    B(i) = X(wrap(i)) where i in -7:N + 5
    C(i) = X(reflect(i)) where i in -7:N + 5
    D(i) = X(symmetric(i)) where i in -7:N + 5
    E(i) = X(i) else 7 where i in -7:N + 5
}
def computed(float(N) X) -> (A, B) {
    D(i) = X(i) - X(i - 1)
    A(i) = D(i) else 7 where i in 0:N + 1
    B(i) = D(reflect(i)) where i in 0:N + 1
}
def rows(float(N) X) -> (Y) { D(i) = X(i) - X(i - 1)  Y = ends(D) }
def ends(float(N) X) -> (Y) { Y(i) = (X(i - 1) else 0) + (X(i + 1) else 0) where i in 0:N }
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ENGINES)
def test_arrays_that_do_not_start_at_zero(target):
    module = tc.compile(BOXES, target=target)
    x = np.arange(1, 6, dtype=np.float32) ** 2
    for found, mode in zip(module.box(x), (*MODES, "constant"), strict=True):
        np.testing.assert_array_equal(found, padded(x, 5, mode))
    d = np.diff(x)
    a, b = module.computed(x)
    np.testing.assert_array_equal(a, np.pad(d, 1, constant_values=7))
    np.testing.assert_array_equal(b, np.pad(d, 1, "reflect"))
    np.testing.assert_array_equal(module.rows(x), np.pad(d, 1)[:-2] + np.pad(d, 1)[2:])


WINDOWS = """
def conv(float(N) X, float(K) W, int32 s, int32 d, int32 p) -> (Y) { Y(i) +=! (X(s*i + d*k - p) else 0) * W(k) }
def same(float(N) X, float(3) W) -> (Y) { Y(i) +=! (X(i + k - 1) else 0) * W(k) }
def image(float(B, C, H, W) X, float(O, C, KH, KW) F) -> (Y) {
    Y(b, o, i, j) +=! (X(b, c, 2*i + k - 1, 2*j + l - 1) else 0) * F(o, c, k, l)
}
"""


@pytest.mark.filterwarnings("ignore")
def test_padded_convolutions():
    module = tc.compile(WINDOWS)
    for n in range(1, 9):
        x = np.arange(1, n + 1, dtype=np.float32)
        for k, s, d, p in [(3, 1, 1, 1), (3, 2, 1, 1), (2, 2, 1, 0), (3, 1, 2, 2), (1, 3, 1, 2)]:
            w = np.arange(1, k + 1, dtype=np.float32)
            long = np.pad(x, p)
            count = (n + 2 * p - d * (k - 1) - 1) // s + 1
            if count < 0:
                with pytest.raises(tc.CallError):
                    module.conv(x, w, s, d, p)
                continue
            wanted = [sum(long[s * i + d * j] * w[j] for j in range(k)) for i in range(count)]
            np.testing.assert_allclose(module.conv(x, w, s, d, p), np.array(wanted, np.float32))
    x, f = np.random.rand(2, 3, 8, 9).astype(np.float32), np.random.rand(4, 3, 3, 3).astype(np.float32)
    long = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(long, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_allclose(module.image(x, f), np.einsum("bcijkl,ockl->boij", views, f), rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("s", "d", "p"), [(0, 1, 1), (-1, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_steps_dilations_and_paddings_that_cannot_be(s, d, p):
    with pytest.raises(tc.CallError) as caught:
        tc.compile(WINDOWS).conv(np.ones(9, np.float32), np.ones(3, np.float32), s, d, p)
    assert caught.value.diagnostic.code.number in ("TC601", "TC603")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("mode", list(MODES))
def test_nothing_to_read(mode, target):
    text = f"""
    def f(float(N) X, int32 n) -> (Y) {{ Y(i) = X({mode}(i - 1)) where i in 0:n }}
    def g(float(N) X, int32 n) -> (Y) {{ Y(i) = i < N ? X({mode}(i - 1)) : 5 where i in 0:n }}
    def h(float(N - 1) X, int32 n) -> (Y) {{ Y(i) = X({mode}(i - 1)) where i in 0:n }}
    """
    module, nothing = tc.compile(text, target=target), np.zeros(0, np.float32)
    for name in ("f", "h"):
        for _ in range(2):
            assert module[name](nothing, 0).shape == (0,)
            with pytest.raises(tc.CallError) as caught:
                module[name](nothing, 3)
            assert caught.value.diagnostic.code.number == "TC603"
            assert f"X({mode}(i - 1))" in caught.value.diagnostic.message
    np.testing.assert_array_equal(module.g(nothing, 3), [5, 5, 5])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ENGINES)
def test_places_from_data_are_not_scanned(target):
    text = "def f(float(N, M) X, int32(T) I) -> (Y, Z) { Y(t, j) = X(I(t), j) else -1 where j in 0:M  Z(t, j) = X(wrap(I(t)), j) }"
    f = tc.compile(text, target=target).f
    assert not f.preconditions or all(item.status == "proved" for item in f.preconditions)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    index = np.array([-1, 0, 3, 4, 2**31 - 1, -(2**31)], np.int32)
    y, z = f(x, index)
    inside = (index >= 0) & (index < 4)
    np.testing.assert_array_equal(y, np.where(inside[:, None], x[np.clip(index, 0, 3)], -1))
    np.testing.assert_array_equal(z, x[index % 4])


@pytest.mark.filterwarnings("ignore")
def test_values_between_limits():
    text = "def f(float(N) X, int32(N) I) -> (A, B) { A(i) = clamp(X(i), -1, 2.5)  B(i) = clamp(I(i), 3, 5) }"
    x, i = np.linspace(-4, 4, 9, dtype=np.float32), np.arange(9, dtype=np.int32)
    a, b = tc.compile(text).f(x, i)
    np.testing.assert_array_equal(a, np.clip(x, -1, 2.5))
    np.testing.assert_array_equal(b, np.clip(i, 3, 5))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["constant", *MODES])
def test_simulated(mode):
    """CUDA kernels under the simulator, without findings."""
    text = f"""
    def f(float(N, M) X, float(3) W) -> (Y) {{ Y(i, j) +=! ({read(mode, "i + k - 1").replace(") else", ", j) else")}) * W(k)
        where i in 0:N, j in 0:M }}
    """
    text = text if mode == "constant" else text.replace(f"X({mode}(i + k - 1))", f"X({mode}(i + k - 1), j)")
    x, w = np.random.rand(20, 33).astype(np.float32), np.array([1, 2, 4], np.float32)
    run = tc.compile(text).f.simulate(x, w)
    assert not run.findings
    long = padded(x, ((1, 1), (0, 0)), mode)
    np.testing.assert_allclose(run.outputs[0], long[:-2] + 2 * long[1:-1] + 4 * long[2:], rtol=1e-5)
