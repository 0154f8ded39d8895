"""Arrays of Dask in calls: every chunk equals that part of the whole, and no halo is smaller than said."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

import tc_jupyter as tc

from .chunkings import arguments_for, as_tuple, drawn_chunks, judge

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

TEXT = """
def blur(float(H, W) X) -> (Y) {
    T(i, j) = X(i, j) + X(i, j + 1) + X(i, j + 2)
    Y(i, j) = T(i, j) + T(i + 1, j) + T(i + 2, j)
}
def edges(float(H, W) X) -> (Y) {
    Y(i, j) = (X(i - 1, j) else 0) + X(clamp(i + 2), j) + X(i, wrap(j - 1)) + X(i, wrap(j + 3)) where i in 0:H, j in 0:W
}
def mirror(float(H, W) X) -> (Y) { Y(i, j) = X(reflect(i - 1), symmetric(j + 1)) where i in 0:H, j in 0:W }
def product(float(M, K) A, float(K, N) B) -> (C) { C(i, j) = 0  C(i, j) += A(i, k) * B(k, j) }
def turned(float(M, N) A) -> (B) { B(j, i) = A(M - 1 - i, j) }
def softmax(float(N, D) X) -> (Y) {
    M(n) max=! X(n, d)
    E(n, d) = exp(X(n, d) - M(n))
    S(n) +=! E(n, d)
    Y(n, d) = E(n, d) / S(n)
}
def centred(float(N, M) X) -> (Y, mean) {
    mean +=! X(n, m)
    mean = mean / (N * M)
    Y(n, m) = X(n, m) - mean
}
def best(float(N, K) X) -> (V, P) { V(n), P(n) argmax=! X(n, k) }
def first(uint8(N) X) -> (P) { P argmax=! X(i) where X(i) < 200 }
def steps_of(float(T, N) X) -> (c, h) {
    along t in 0:T {
        A(n) = X(t, n) + (h(t - 1, n) else 0)
        c(t, n) = A(n) + (c(t - 1, n) else 0)
        h(t, n) = c(t, n) * 0.5
    }
}
def look(float(V, D) Table, int32(T) Id) -> (Y) { Y(t, d) = Table(Id(t), d) }
def histogram(uint8(N) X) -> (H) { H(X(i)) +=! 1 }
def running(float(N, M) X) -> (Y) { Y(i, j) = (Y(i - 1, j) else 0) + X(i, j) along i }
def triangle(float(N, N) L, float(N, M) B) -> (C) { C(i, j) +=! L(i, k) * B(k, j) where k in 0:i + 1 }
def behind(float(N, M) A, float(L, M) B) -> (float(N + L, M) Y) { Y(i, j) = A(i, j)  Y(N + i, j) = B(i, j) }
def joined(float(N) A, float(M) B) -> (Y) { Y(i) = i < N ? A(i) : B(i - N) where i in 0:N + M }
def longer(float(N) X) -> (Y) { Y(i) = X(i / 2) where i in 0:2*N }
def shorter(float(N) X) -> (Y) { Y(i) = X(2*i) + X(2*i + 1) }
def steps(float(N, M) X) -> (Y, Z) { Y(i, j) = X(i, j) + X(i + 1, j)  Z(i, j) = Y(i, j) * Y(i + 1, j) }
def pairs(complex64(N, M) X, complex64 s) -> (Y) { Y(i, j) = s * X(i, j) * conj(X(i + 1, j)) }
def halves(half(N, M) X) -> (S) { S(i) +=! X(i, j) }
def whether(bool(N, M) X) -> (A, B) { A(i) any=! X(i, j)  B all=! X(i, j) }
def bytes(int8(N) X, int8 s) -> (Y) { Y(i) = s * X(i) + X(i + 1) }
def places(float(N, M) X, int32 n) -> (Y) { Y(i, j) = X(i, j) * (i + n) + j }
def scaled(float(N) X, float s) -> (Y) { Y(i) = s * X(i) }
def boxed(float(-1:N + 1) X) -> (Y) { Y(i) = X(i - 1) + X(i) + X(i + 1) where i in 0:N }
def many(float(N, M) X) -> (S) { S(i) lse=! X(i, j) }
def noisy(float(N, M) X) -> (Y) { Y(i, j) = X(i, j) + uniform(3, i, j) }
reduce together(float a, float b) = hypot(a, b) from 0 with x -> abs(x)
def lengths(float(N, M) X) -> (L) { L(n) together=! X(n, m) }
def called(float(N, M) X) -> (Z) { B = blur(X)  Z(i, j) = B(i, j) - X(i + 1, j + 1) }
"""


@pytest.fixture(scope="module")
def module():
    return tc.compile(TEXT, target="interpreter", allow=("TC321", "TC322", "TC323", "TC325", "TC327"))


NAMES = [name for name in tc.compile(TEXT, target="interpreter", allow=("TC321", "TC322", "TC323", "TC325", "TC327"))]
NAMES.remove("together")


@pytest.mark.some(3)
@pytest.mark.parametrize("name", NAMES)
def test_chunks_equal_the_whole(module, name):
    f = module[name]
    sizes = {size: 4 + (3 * place) % 4 for place, size in enumerate(f.program.sizes)}
    assert judge(f, arguments_for(f.program, sizes, 0), 2) in ("equal", "close")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_chunks_equal_the_whole_on_the_processor(name):
    f = tc.compile(TEXT, target="cpu", allow=("TC321", "TC322", "TC323", "TC325", "TC327"))[name]
    for seed in range(2):
        sizes = {size: (5, 11, 19, 3)[(place + seed) % 4] for place, size in enumerate(f.program.sizes)}
        judge(f, arguments_for(f.program, sizes, seed), seed)


@pytest.mark.parametrize("name", ["edges", "product", "softmax", "centred", "whether"])
def test_sizes_of_zero(module, name):
    f = module[name]
    for empty in f.program.sizes:
        sizes = {size: 0 if size == empty else 3 for size in f.program.sizes}
        judge(f, arguments_for(f.program, sizes, 1), 1)


def moved(chunks, by):
    """Chunks with one end moved."""
    return tuple(extent + (by if place == 0 else -by if place == 1 else 0) for place, extent in enumerate(chunks))


@pytest.mark.parametrize(
    ("name", "halo"),
    [
        ("blur", "0+2, 0+2"),
        ("edges", "1+2, 1+3"),
        ("turned", "0, 0"),
        ("steps", "0+1, 0"),
        ("boxed", "1+1"),
        ("shorter", "0"),
    ],
)
def test_the_halo_of_a_window(module, name, halo):
    f = module[name]
    values = arguments_for(f.program, dict.fromkeys(f.program.sizes, 24), 0)
    given = [da.from_array(each, chunks=8) for each in values]
    plan = f.chunked(*given)
    assert next(iter(plan.halo.values())).text == halo
    assert plan.tasks == sum(len(layer.chunks) for layer in plan.layers)


@pytest.mark.parametrize("name", ["blur", "edges", "steps", "boxed", "called", "turned", "pairs"])
def test_no_halo_can_be_smaller(module, name):
    """Every region is shrunk by one element at each end, and every one of these tasks refuses."""
    f = module[name]
    values = arguments_for(f.program, dict.fromkeys(f.program.sizes, 12), 0)
    given = [da.from_array(each, chunks=4) if np.ndim(each) else each for each in values]
    plan = f.chunked(*given)
    numbers = [each for each in values if not np.ndim(each)]
    for layer in plan.layers:
        kernel = plan.kernel(layer)
        for chunk in layer.chunks[:: max(1, len(layer.chunks) // 3)]:
            regions = [chunk.regions[source] for source in layer.part.sources]
            arrays = [
                np.zeros([b - a for a, b in plan.written(s, r)], plan.dtype(s))
                for s, r in zip(layer.part.sources, regions, strict=True)
            ]
            kernel(plan.numbers(chunk), arrays, numbers)
            for which, array in enumerate(arrays):
                for dimension in range(array.ndim):
                    axis = layer.part.axis((layer.part.sources[which], dimension))
                    for at_begin in (True, False):
                        smaller = np.delete(array, 0 if at_begin else -1, dimension)
                        changed = [smaller if n == which else each for n, each in enumerate(arrays)]
                        with pytest.raises(tc.CallError, match="TC60"):
                            kernel(plan.numbers(chunk), changed, numbers)
                        if axis is None or not axis.moves or array.shape[dimension] == 1:
                            continue
                        told = plan.numbers(chunk) | {axis.count: array.shape[dimension] - 1}
                        told[axis.first] = told.get(axis.first, 0) + at_begin
                        with pytest.raises(tc.CallError, match="TC60"):
                            kernel(told, changed, numbers)


def test_one_task_per_chunk(module):
    X = da.zeros((64, 64), chunks=8, dtype=np.float32)
    plan = module.blur.chunked(X)
    assert plan.tasks == 64
    assert len(dict(module.blur(X).__dask_graph__())) == 128
    assert plan.redundant < 0.2
    assert "64 tasks" in repr(plan)
    assert plan.chunks["Y"] == ((8,) * 7 + (6,),) * 2
    assert "one task per chunk" in plan.why[0]


def test_what_is_computed_too_often_is_made_once(module):
    X = da.zeros((64, 64), chunks=(2, 64), dtype=np.float32)
    plan = module.blur.chunked(X)
    assert [layer.part.results for layer in plan.layers] == [("T",), ("Y",)]
    assert plan.redundant == 0


def test_names_are_the_same_for_the_same_call(module):
    X = da.from_array(np.ones((8, 8), np.float32), chunks=4)
    again = tc.compile(TEXT, target="interpreter", allow=("TC321", "TC322", "TC323", "TC325", "TC327"))
    assert module.blur(X).name == again.blur(X).name
    assert module.blur(X).name != module.blur(X.rechunk(2)).name
    assert module.scaled(X[0], 1.0).name != module.scaled(X[0], 2.0).name


def test_culling_keeps_what_a_part_needs(module):
    X = da.from_array(np.random.default_rng(0).random((40, 40), np.float32), chunks=8)
    part = module.blur(X)[:3, :3]
    (optimized,) = dask.optimize(part)
    assert len(dict(optimized.__dask_graph__())) < 10
    np.testing.assert_array_equal(part.compute(), module.blur(X.compute())[:3, :3])


def test_numbers_may_be_lazy_and_integers_may_not(module):
    X = da.from_array(np.arange(6, dtype=np.float32), chunks=4)
    np.testing.assert_array_equal(module.scaled(X, X.max()).compute(), 5 * np.arange(6))
    with pytest.raises(tc.CallError, match=r"TC670.*`n` takes part"):
        module.places(da.zeros((4, 4), dtype=np.float32), da.asarray(np.int32(1)))


def test_steps_of_a_lazy_array(module):
    f = tc.compile(
        "def heat(float(N) U) -> (V) { V(i) = U(wrap(i - 1)) + U(clamp(i + 1)) where i in 0:N }", target="interpreter"
    ).heat
    U = np.arange(12, dtype=np.float32)
    lazy = f.iterate(3)(da.from_array(U, chunks=5))
    np.testing.assert_array_equal(lazy.compute(), f.iterate(3)(U))


def test_a_roll_reads_one_chunk_or_two():
    f = tc.compile(
        "def roll(float(N) X, int32 s) -> (Y) { Y(i) = X(wrap(i - s)) where i in 0:N }", target="interpreter"
    ).roll
    x = np.arange(40, dtype=np.float32)
    X = da.from_array(x, chunks=7)
    for by in (0, 1, 20, 39, -3, 1000):
        np.testing.assert_array_equal(f(X, by).compute(), np.roll(x, by))
    pieces = [
        len(plan.pieces("X", chunk.regions["X"])) for plan in [f.chunked(X, 3)] for chunk in plan.layers[0].chunks
    ]
    assert max(pieces) <= 2


def test_gradients_of_lazy_arrays(module):
    f = tc.compile(
        "def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }", target="interpreter", allow="TC322"
    ).conv
    x, w, dy = (np.random.default_rng(0).random(n, np.float32) for n in (20, 3, 18))
    found = f.vjp()(da.from_array(x, chunks=6), w, da.from_array(dy, chunks=7))
    for one, other in zip(found, f.vjp()(x, w, dy), strict=True):
        np.testing.assert_allclose(one.compute(), other, rtol=1e-5)


def test_a_def_that_is_applied_n_times_travels():
    f = tc.compile(
        "def halved(float(N) U) -> (V) { V(i) = U(i) / 2 }  def some(float(N) U, int32 n) -> (W) { W = halved^n(U) }",
        target="interpreter",
    ).some
    U = np.ones(6, np.float32)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(U, 3), U / 8)
    np.testing.assert_array_equal(f(da.from_array(U, chunks=4), 3).compute(), U / 8)


def test_unknown_chunks(module):
    X = da.from_array(np.arange(6, dtype=np.float32), chunks=4)
    some = X[X > 1]
    with pytest.raises(tc.CallError, match=r"TC616(.|\n)*compute_chunk_sizes"):
        module.scaled(some, 1.0)
    np.testing.assert_array_equal(module.scaled(some.compute_chunk_sizes(), 1.0).compute(), [2, 3, 4, 5])


def test_conditions_on_sizes_are_looked_at_before_any_task(module):
    X = da.from_array(np.ones((5, 4), np.float32), chunks=2)
    with pytest.raises(tc.CallError, match="TC605"):
        module.product(X, X)
    with pytest.raises(tc.CallError, match="TC607"):
        module.blur(X.astype(np.float64))
    with pytest.raises(tc.CallError, match="TC608"):
        module.blur(X[0])
    with pytest.raises(tc.CallError, match="TC60"):
        module.blur(X[:1])
    with pytest.raises(tc.CallError, match="TC670"):
        module.blur(X, out=np.zeros((3, 2), np.float32))


def test_conditions_on_data_are_looked_at_in_tasks(module):
    table = da.from_array(np.ones((5, 4), np.float32), chunks=2)
    bad = da.from_array(np.array([0, 1, 5], np.int32), chunks=2)
    lazy = module.look(table, bad)
    with pytest.raises(tc.CallError, match="TC604") as found:
        lazy.compute(scheduler="synchronous")
    assert "_count" not in str(found.value)  # nobody has written such a size
    first, cure = (found.value.diagnostic.help or "").split("; ")
    assert first == "first at t = 0 of a chunk"
    assert cure == "correct the data, or write `(Table(Id(t), d) else 0)`"


def test_an_order_over_a_range_that_a_number_begins():
    text = "def f(float(N) A, int64 s) -> (T) { T(i) = A(i) + (T(i + 1) else 1) where i in min(s, N):N along -i }"
    f, A = tc.compile(text, target="interpreter").f, np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(f(da.from_array(A, chunks=2), 1).compute(), f(A, 1))


def test_too_much_in_one_task(module):
    huge = da.zeros((1 << 22, 1 << 10), chunks=(1 << 12, 1 << 10), dtype=np.float32)
    with pytest.raises(tc.CallError, match=r"TC671.*`Table`"):
        module.look(huge, da.zeros(8, chunks=4, dtype=np.int32))


def test_kernels_travel_as_text(module):
    X = da.from_array(np.ones((8, 8), np.float32), chunks=4)
    plan = module.blur.chunked(X)
    kernel = plan.kernel(plan.layers[0])
    sent = pickle.dumps(kernel)
    assert len(sent) < 4000
    assert pickle.loads(sent).definition() is kernel.definition()


SAC = """
float[*] smooth(float[*] a) { return { [i, ...] -> (a[i] + a[i + 1]) / 2f | [i] < [shape(a)[0] - 1] }; }
float[.] tail(float[.] a, int n) { return { [i] -> a[i + n] | [i] < [shape(a)[0] - n] }; }
float[*] add(float[*] a, float[*] b) { return a + b; }
float[.] first(int[.] n, float[.] a) { return take(n, a); }
float total(float[*] a) { return sum(a); }
"""


def test_functions_whose_ranks_a_call_tells():
    module = tc.compile(SAC, language="sac", target="interpreter", allow=("TC322",))
    draw = np.random.default_rng(3)
    field, row = draw.random((13, 9), np.float32), draw.random(20, np.float32)
    X, V = da.from_array(field, chunks=(4, 5)), da.from_array(row, chunks=6)
    for function, lazy_ones, whole in (
        (module.smooth, (X,), (field,)),
        (module.smooth, (V,), (row,)),
        (module.tail, (V, 3), (row, 3)),
        (module.add, (X, field), (field, field)),
        (module.first, (np.array([3], np.int32), V), (np.array([3], np.int32), row)),
    ):
        np.testing.assert_array_equal(function(*lazy_ones).compute(), function(*whole))
    assert module.smooth.chunked(X).halo["a"].text == "0+1, 0"
    np.testing.assert_allclose(module.total(X).compute(), field.sum(), rtol=1e-5)
    kernel = (plan := module.smooth.chunked(X)).kernel(plan.layers[0])
    assert pickle.loads(pickle.dumps(kernel)).definition() is kernel.definition()
    for function, arguments, message in (
        (module.add, (X, X[:3]), "TC654.*one is 13, the other is 3"),
        (module.tail, (V, 21), "TC655"),
        (module.tail, (X, 1), "TC651"),
        (module.tail, (V, da.from_array(np.array([3], np.int32))[0]), "TC670.*`n` decides what `tail` computes"),
        (module.first, (da.from_array(np.array([3], np.int32)), V), "TC670"),
        (module.smooth, (V[V > 0.5],), "TC616"),
    ):
        with pytest.raises(tc.CallError, match=message):
            function(*arguments)


def test_a_schedule_of_a_function_whose_ranks_a_call_tells_travels():
    module = tc.compile(SAC, language="sac", target="interpreter", allow=("TC322",))
    field = np.random.default_rng(3).random((13, 9), np.float32)
    module.smooth(field)
    scheduled = pickle.loads(pickle.dumps(module.smooth.with_schedule(module.smooth.schedule())))
    np.testing.assert_array_equal(scheduled(field), module.smooth(field))
    np.testing.assert_array_equal(scheduled(da.from_array(field, chunks=4)).compute(), module.smooth(field))


def test_random_chunks_are_what_they_should_be():
    drawn = [drawn_chunks(random.Random(seed), 7) for seed in range(40)]
    assert all(sum(each) == 7 for each in drawn)
    assert (1,) * 7 in drawn
    assert (7,) in drawn
    assert any(0 in each for each in drawn)
    assert len(as_tuple(drawn)) == 1


def test_a_tensor_of_pytorch_beside_chunks():
    torch = pytest.importorskip("torch")
    f = tc.compile("def f(float(N) X, float(M) Z) -> (O) { O(i,j) = X(i) * Z(j) }", target="cpu").f
    found = f(da.ones(4, dtype=np.float32, chunks=2), torch.arange(3.0))
    np.testing.assert_array_equal(found.compute(), np.tile(np.arange(3), (4, 1)))
