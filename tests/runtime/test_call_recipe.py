"""Calls that follow a recipe: same answers as the general path, any names, and back to it whenever something is unusual."""

from __future__ import annotations

import math
from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tc_jupyter as tc
from tc_jupyter.compiler.definition import Definition
from tc_jupyter.runtime import threads
from tc_jupyter.runtime.memory import POOL

pytest.importorskip("llvmlite")

CELL = """
def names(float(empty, _) run, float(_, __a0) general, int32 d, float addressof) -> (min_, r0) {
    min_(i, j) +=! run(i, k) * general(k, j)
    r0(i, j) = min_(i, j) * d + addressof
}
def flags(bool(N) X, bool b, uint8 n, double x) -> (Y) { Y(i) = X(i) && b ? x + n : 0.0 }
def fixed(float(N, 3) X, float(3) W) -> (Y) { Y(i) +=! X(i, k) * W(k) }
def no_array(int32 k) -> (Y) { Y(i) = i where i in 0:k }
def window(float(I) B, float(J) C, float(K) D) -> (A) { A(i) +=! B(i) * C(i + j) * D(j) }
def temporary(float(N) X) -> (Y) { T(i) = exp(X(i))  s +=! T(i)  Y(i) = T(i) / s }
def look(float(V) T, int16(N, 2) min_I) -> (Y) { Y(i) +=! T(min_I(i, k) + 1) }
def twice(float(V) T, int32(N) I, int32(M) J) -> (Y) { Y(i) = T(I(J(i))) }
def large(float(N) X) -> (Y) { Y(i) = X(i) + 1 }
def halves(float(N) X, float(D) W) -> (Y) { Y(i) = i < D ? X(i + D) * W(i) : X(i - D) where i in 0:2*D }
"""


@pytest.fixture(scope="module")
def module():
    return tc.compile(CELL, target="cpu", allow=["TC322"])


def floats(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def recipes(function):
    """What is remembered of calls that came twice."""
    return [found for found in function._definition._recipes[False].values() if found is not None]


def test_names_of_the_user_do_not_collide(module):
    a, b = floats(4, 3), floats(3, 5)
    for _ in range(3):
        first, second = module.names(a, b, 2, 0.5)
        np.testing.assert_allclose(first, a @ b, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(second, 2 * (a @ b) + 0.5, rtol=1e-4, atol=1e-5)
    assert len(recipes(module.names)) == 1


def test_scalars_of_every_kind(module):
    x = np.array([True, False])
    for _ in range(2):
        np.testing.assert_array_equal(module.flags(x, True, 255, 0.25), [255.25, 0])
        np.testing.assert_array_equal(module.flags(x, np.bool_(True), np.int16(1), 1), [2, 0])
        for bad in [(x, 1, 1, 1.0), (x, True, 256, 1.0), (x, True, -1, 1.0), (x, True, 1.5, 1.0), (x, True, 1, "1")]:
            with pytest.raises(tc.CallError, match="TC607"):
                module.flags(*bad)


def test_numbers_of_numpy_take_the_short_way(module, writing, monkeypatch):
    x, out = floats(5), np.zeros(5, np.float32)
    flags = np.array([True, False])
    for _ in range(2):
        writing.scaled(x, np.float64(3))
        writing.scaled(x, 3, out=out)
        module.flags(flags, True, 2, 0.5)
    for wrong in (np.timedelta64(3, "ns"), np.datetime64("2020"), np.complex64(1), np.str_("3")):
        with pytest.raises(tc.CallError, match="TC607") as told:
            writing.scaled(x, wrong)
        assert repr(wrong) in str(told.value) or type(wrong).__name__ in str(told.value)
    np.testing.assert_array_equal(writing.scaled(x, np.longdouble(3)), 3 * x)
    with pytest.raises(tc.CallError, match="too large"):
        writing.scaled(x, np.longdouble("1e4000"))
    assert np.isinf(writing.scaled(x, np.longdouble("inf"))).all()
    monkeypatch.setattr(Definition, "call", None)
    for number in (np.float32(3), np.int8(3), np.float16(3)):
        out.fill(0)
        writing.scaled(x, number, out=out)
        np.testing.assert_array_equal(out, 3 * x)
        found = writing.scaled(x, number)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, 3 * x)
    np.testing.assert_array_equal(module.flags(flags, np.bool_(True), np.uint8(2), np.float32(0.5)), [2.5, 0])


def test_arrays_of_one_number_are_read_each_time(module):
    x = np.array([True, False])
    for value in (2, 3, 4, 5):
        found = module.flags(x, np.array(True), np.array(value, np.int16), np.array(0.5))
        np.testing.assert_array_equal(found, [value + 0.5, 0])


def test_constant_dimensions_and_sizes(module):
    x, w = floats(4, 3), floats(3)
    for _ in range(2):
        np.testing.assert_allclose(module.fixed(x, w), x @ w, rtol=1e-5, atol=1e-6)
        with pytest.raises(tc.CallError, match="TC605"):
            module.fixed(floats(4, 2), floats(2))
        np.testing.assert_array_equal(module.no_array(4), [0, 1, 2, 3])
        assert module.no_array(0).shape == (0,)
        with pytest.raises(tc.CallError, match="TC602"):
            module.no_array(-1)


def test_conditions_are_explained_by_the_general_path(module):
    b, c, d = floats(3), floats(6), floats(2)
    for _ in range(3):
        expected = [sum(b[i] * c[i + j] * d[j] for j in range(2)) for i in range(3)]
        np.testing.assert_allclose(module.window(b, c, d), expected, rtol=1e-4, atol=1e-5)
        with pytest.raises(tc.CallError, match="TC601"):
            module.window(b, floats(2), d)
        assert module.window(floats(0), c, d).shape == (0,)


def test_regions_of_sizes_are_tested_by_the_short_way(module):
    """A condition under a guard is a region of sizes, found once; it takes no search at the call."""
    x, w = floats(8), floats(4)
    for _ in range(3):
        np.testing.assert_allclose(module.halves(x, w), np.concatenate([x[4:] * w, x[:4]]))
        np.testing.assert_allclose(module.halves(x, w[:2]), np.concatenate([x[2:4] * w[:2], x[:2]]))
        with pytest.raises(tc.CallError, match="TC601"):
            module.halves(x, floats(5))
    assert len(recipes(module.halves)) == 2


def test_index_values_are_scanned(module):
    table, indices = floats(7), np.array([[0, 5], [-1, 3]], np.int16)
    for _ in range(3):
        np.testing.assert_allclose(module.look(table, indices), table[indices + 1].sum(1), rtol=1e-5)
    assert len(recipes(module.look)) == 1
    for wrong in (-2, 6):
        bad = indices.copy()
        bad[1, 0] = wrong
        with pytest.raises(tc.CallError, match=rf"TC604.*index {wrong + 1} "):
            module.look(table, bad)
    with pytest.raises(tc.CallError, match="TC60"):
        module.look(np.zeros(0, np.float32), indices)


def test_index_values_behind_index_values_take_the_general_path(module):
    table, first, second = floats(5), np.array([4, 0, 2], np.int32), np.array([1, 2], np.int32)
    for _ in range(2):
        np.testing.assert_array_equal(module.twice(table, first, second), table[first[second]])
    with pytest.raises(tc.CallError, match="TC604"):
        module.twice(table, first, np.array([3], np.int32))


def test_temporaries(module):
    x = floats(1000)
    for _ in range(3):
        np.testing.assert_allclose(module.temporary(x), np.exp(x) / np.exp(x).sum(), rtol=1e-4)


def test_strides_and_flags_choose_the_variant(module):
    x = floats(64)
    for other in (x, x[::2], x[::-1], x.astype(">f4"), x[:0], np.broadcast_to(x[:1], (9,))):
        for _ in range(2):
            np.testing.assert_array_equal(module.large(other), np.asarray(other, np.float32) + 1)
    read_only = x.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(module.large(read_only), x + 1)


def test_large_results_come_from_the_pool(module):
    x = floats(1 << 18)
    for _ in range(4):  # the general way, the short one, a plan of the native one, and that
        module.large(x)
    before = POOL.lent
    first = module.large(x)
    assert POOL.lent == before + 1
    where = first.__array_interface__["data"][0]
    np.testing.assert_array_equal(first, x + 1)
    del first
    again = module.large(x)
    assert again.__array_interface__["data"][0] == where


def test_subclasses_and_other_libraries_take_the_general_path(module, tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(5,))
    mapped[:] = 2
    for _ in range(2):
        np.testing.assert_array_equal(module.large(mapped), [3] * 5)
    torch = pytest.importorskip("torch")
    assert module.large(torch.ones(3)).tolist() == [2, 2, 2]


def test_wrong_counts(module):
    for args in ((), (floats(2), floats(2))):
        with pytest.raises(tc.CallError, match="TC606"):
            module.large(*args)


def test_results_that_no_memory_holds(module):
    with pytest.raises(tc.CallError, match="TC612"):
        module.large(np.broadcast_to(np.float32(1), (1 << 45,)))
    with pytest.raises(tc.CallError, match="TC612"):
        module.large(np.broadcast_to(np.float32(1), (1 << 44,)))


# out= ----------------------------------------------------------------------------------------------------------------------------

OUT = """
def add(float(N) X, float(N) Y) -> (Z) { Z(i) = X(i) + Y(i) }
def matmul(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }
def layer(float(M,K) A, float(K,N) B) -> (C) { C(i,j) += A(i,k) * B(k,j) }
def two(float(M,N) X) -> (s, T) { s(i) +=! X(i,j)  T(j,i) = X(i,j) }
def both(float(N) X) -> (P, Q) { P(i) += X(i)  Q(i) = X(i) * X(i) }
def total(float(N) X) -> (s) { s += X(i) }
def window(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) }
def moved(float(N) X) -> (Y) { Y(i) = X(i-1) * 2 where i in 1:N }
def scaled(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }
def twice(float(N) X) -> (Y) { Y(i) = X(i) * 2 }
def called(float(N) X) -> (Z) { Z = twice(X) }
def look(float(N) T, int32(M) I) -> (Y) { Y(i) = T(I(i)) }
"""

SHAPES = {
    "add": (["N", "N"], ["N"]),
    "matmul": (["MK", "KN"], ["MN"]),
    "layer": (["MK", "KN"], ["MN"]),
    "two": (["MN"], ["M", "NM"]),
    "both": (["N"], ["N", "N"]),
    "total": (["N"], [""]),
    "window": (["N", "K"], ["W"]),
    "moved": (["N"], ["L"]),
    "scaled": (["N", None], ["N"]),
    "called": (["N"], ["N"]),
    "look": (["N", "iM"], ["M"]),
}
"""Extents of arguments and results, a letter each; `i`: `int32`; `None`: a number."""


@pytest.fixture(scope="module")
def writing():
    return tc.compile(OUT, target="cpu", allow=["TC232", "TC321", "TC322", "TC323"])


@dataclass(frozen=True)
class Place:
    """An array in a common memory: where it starts, in bytes, and how it lies there."""

    start: int
    layout: str = "rows"
    kind: str = "float32"
    writable: bool = True

    def array(self, memory, shape):
        item = np.dtype(self.kind).itemsize
        strides = [item * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        start = self.start
        match self.layout:
            case "columns":
                strides = [item * math.prod(shape[:axis]) for axis in range(len(shape))]
            case "gaps":
                strides = [2 * stride for stride in strides]
            case "backwards":
                start += sum(stride * max(extent - 1, 0) for stride, extent in zip(strides, shape, strict=True))
                strides = [-stride for stride in strides]
            case "repeated":
                strides = [0 for _ in shape]
            case _:
                pass
        array = np.ndarray(shape, self.kind, memory, start, strides)
        array.flags.writeable = self.writable
        return array


PLACE = 4096
"""Bytes between arrays that share nothing."""


def call_at(function, name, sizes, places, wrap):
    """Calls with fresh memory; returns what it says, the memory after it, and whether `out` came back."""
    memory = (np.arange(PLACE * len(places) // 4) % 5).astype(np.float32)
    inputs, results = SHAPES[name]
    arrays = []
    for letters, place in zip([*inputs, *results], places, strict=True):
        if letters is None:
            arrays.append(2.0)
            continue
        array = place.array(memory, tuple(sizes[letter] for letter in letters.removeprefix("i")))
        if letters.startswith("i") and place.kind == "float32":
            array = np.arange(array.size, dtype=np.int32).reshape(array.shape) % 3
        arrays.append(array)
    given = tuple(arrays[len(inputs) :])
    out = given[0] if len(given) == 1 and not wrap else wrap(given) if wrap else given
    try:
        back = function(arrays[: len(inputs)], out)
    except tc.CallError as problem:
        return str(problem), memory.tobytes(), None
    return "", memory.tobytes(), back is out


def agree(module, name, sizes, places, wrap=None):
    """The short way and the general one do the same; returns what they say."""
    function = module[name]
    numbers = dict(sizes, W=max(sizes["N"] - sizes["K"] + 1, 0), L=max(sizes["N"] - 1, 0))
    general = call_at(function._definition.general_into, name, numbers, places, wrap)
    for _ in range(3):
        found = call_at(lambda args, out: function(*args, out=out), name, numbers, places, wrap)
        assert found == general
    return general[0]


def apart(name):
    inputs, results = SHAPES[name]
    return [Place(PLACE * k) for k in range(len(inputs) + len(results))]


SIZES = {"M": 3, "K": 4, "N": 5}


@pytest.mark.parametrize("name", SHAPES)
def test_out_takes_the_short_way(writing, monkeypatch, name):
    places = apart(name)
    assert agree(writing, name, SIZES, places) == ""
    assert agree(writing, name, SIZES, places, list) == ""
    strided = [Place(place.start, "gaps") for place in places]
    assert agree(writing, name, SIZES, strided) == ""
    function = writing[name]

    def refuse(*_):
        raise AssertionError("the general path")

    numbers = dict(SIZES, W=2, L=4)
    expected = [call_at(function._definition.general_into, name, numbers, each, None) for each in (places, strided)]
    monkeypatch.setattr(Definition, "call", refuse)
    found = [
        call_at(lambda args, out: function(*args, out=out), name, numbers, each, None) for each in (places, strided)
    ]
    assert found == expected
    inputs = [
        np.ones([SIZES[k] for k in letters.removeprefix("i")], np.float32) if letters else 2.0
        for letters in SHAPES[name][0]
    ]
    named = dict(zip(function._definition.names, inputs, strict=True))
    if name != "look":
        results = [np.zeros([numbers[k] for k in letters], np.float32) for letters in SHAPES[name][1]]
        assert function(**named, out=results) is results


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "float64"}, "TC610"),
        ({"kind": ">f4"}, ""),
        ({"writable": False}, "TC610"),
        ({"start": 2}, ""),
        ({"layout": "columns"}, ""),
        ({"layout": "backwards"}, ""),
        ({"layout": "repeated"}, "TC611"),
    ],
)
def test_unusual_arrays_in_out(writing, name, change, said):
    places = apart(name)
    last = len(places) - 1
    places[last] = Place(**{**change, "start": PLACE * last + change.get("start", 0)})
    if name == "total" and change.get("layout") == "repeated":
        said = ""  # one element
    message = agree(writing, name, SIZES, places)
    assert message.startswith(f"error[{said}]") if said else message == ""


@pytest.mark.parametrize("name", SHAPES)
def test_an_argument_in_out(writing, name):
    """It is read at the written position only in some functions; `look` reads elements of the first argument anywhere."""
    places = apart(name)
    places[-1] = Place(0)
    message = agree(writing, name, SIZES, places)
    assert message.startswith("error[TC611]") == (name not in ("add", "scaled", "called"))
    places[-1] = Place(4)
    assert agree(writing, name, SIZES, places).startswith("error[TC611]")


WRONG = {
    "more": lambda given: (*given, given[0]),
    "fewer": lambda given: given[:-1],
    "none": lambda given: [None] * len(given),
    "no array": lambda given: dict(enumerate(given)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_things_in_out(writing, name, wrong):
    assert agree(writing, name, SIZES, apart(name), WRONG[wrong]).startswith("error[TC6")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("empty", ["M", "K", "N", "MKN"])
def test_out_without_elements(writing, name, empty):
    agree(writing, name, {k: 0 if k in empty else n for k, n in SIZES.items()}, apart(name))


def test_wrong_shapes_in_out(writing):
    x = floats(5)
    out = np.empty(5, np.float32)
    for _ in range(4):
        assert writing.add(x, x, out=out) is out
    for shape in [(4,), (6,), (), (5, 1), (1, 5), (0,)]:
        for _ in range(3):
            with pytest.raises(tc.CallError, match="TC610"):
                writing.add(x, x, out=np.empty(shape, np.float32))
    for wrong in [(x,), (x, x, x), (x, x[:4]), (x, x.astype("f8"))]:
        with pytest.raises(tc.CallError, match="TC60"):
            writing.add(*wrong, out=out)
    with pytest.raises(tc.CallError, match="TC606"):
        writing.add(x, out=(x, out))


def test_in_place_the_short_way(writing, monkeypatch):
    x = floats(300)
    expected = 8 * x
    for _ in range(2):
        writing.scaled(x, 2.0, out=x)
    monkeypatch.setattr(Definition, "call", None)
    writing.scaled(x, 2.0, out=x)
    np.testing.assert_array_equal(x, expected)


def places(draw, count):
    """Places of arrays, many of which overlap."""
    starts = st.sampled_from([0, 4, 8, 12, 20, 40, 2, *(PLACE * k for k in range(count))])
    layouts = st.sampled_from(["rows", "rows", "rows", "columns", "gaps", "backwards", "repeated"])
    kinds = st.sampled_from(["float32"] * 9 + ["float64", ">f4", "int32", "bool"])
    usual = st.booleans()
    return [
        Place(PLACE * k)
        if draw(usual)
        else Place(draw(starts), draw(layouts), draw(kinds), draw(st.integers(0, 9)) > 0)
        for k in range(count)
    ]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_out_by_the_short_way_and_by_the_general_one(writing, data):
    name = data.draw(st.sampled_from(sorted(SHAPES)))
    sizes = {letter: data.draw(st.sampled_from([1, 2, 3, 5, 0])) for letter in SIZES}
    count = len(apart(name))
    agree(writing, name, sizes, apart(name))
    agree(writing, name, sizes, places(data.draw, count))


def test_tensors_of_pytorch_take_the_short_way(writing, monkeypatch):
    torch = pytest.importorskip("torch")
    a, b, out = torch.randint(-9, 9, (3, 4)).float(), torch.randint(-9, 9, (4, 5)).float(), torch.zeros(3, 5)
    for _ in range(3):
        writing.matmul(a, b)
        writing.matmul(a.T.contiguous().T, b)
        writing.matmul(a, b.numpy(), out=out)
        writing.both(a[0])
        with torch.no_grad():
            writing.matmul(torch.nn.Parameter(a), b)
    monkeypatch.setattr(Definition, "call", None)
    assert torch.allclose(writing.matmul(a, b), a @ b)
    assert torch.allclose(writing.matmul(a.T.contiguous().T, b.numpy()), a @ b)
    out.zero_()
    assert writing.matmul(a.numpy(), b, out=out) is out
    assert torch.allclose(out, a @ b)
    assert [type(each) for each in writing.both(a[0])] == [torch.Tensor] * 2
    with torch.no_grad():
        found = writing.matmul(torch.nn.Parameter(a), b)
    assert type(found) is torch.Tensor
    assert torch.allclose(found, a @ b)


def test_tensors_of_bfloat16_take_the_short_way(monkeypatch):
    torch = pytest.importorskip("torch")
    f = tc.compile("def f(bfloat16(N) X, float(N) W) -> (Y, Z) { Y(i) = 2 * X(i)  Z(i) = W(i) * X(i) }", target="cpu").f
    x, w, y, z = torch.randn(9).bfloat16(), torch.randn(9), torch.zeros(9).bfloat16(), torch.zeros(9)
    for _ in range(3):
        f(x, w)
        f(x, w, out=(y, z))
    monkeypatch.setattr(Definition, "call", None)
    for found in (f(x, w), (y, z)):
        assert [each.dtype for each in found] == [torch.bfloat16, torch.float32]
        assert torch.equal(found[0], 2 * x)
        assert torch.equal(found[1], w * x)
    strided = torch.randn(18).bfloat16()[::2]
    monkeypatch.undo()
    assert torch.equal(f(strided, w)[0], 2 * strided)


def test_tensors_of_pytorch_are_refused_in_their_own_words(writing):
    torch = pytest.importorskip("torch")
    a, b = torch.randint(-9, 9, (3, 4)).float(), torch.randint(-9, 9, (4, 5)).float()
    for _ in range(3):
        writing.matmul(a, b)
    for wrong, words in [
        ((a.double(), b), r"pass `.to\(torch.float32\)`"),
        ((a, b[:3]), "TC605"),
        ((a[0], b), "TC608"),
        ((a.to_sparse(), b), "TC609"),
    ]:
        with pytest.raises(tc.CallError, match=words):
            writing.matmul(*wrong)
    assert writing.matmul(a.requires_grad_(), b).requires_grad
    out = torch.zeros(3, 5, requires_grad=True)
    with pytest.raises(tc.CallError, match="a tensor that requires a gradient"), torch.no_grad():
        writing.matmul(a, b, out=out)


@pytest.mark.parametrize("short", [False, True])
def test_the_number_of_threads_may_change_between_a_workspace_and_its_kernel(monkeypatch, short):
    """Another thread of Python may call `set_threads` at any time."""
    asked: list[int | None] = []
    real_run, before = threads.Pool.run, threads.get_threads()

    def count() -> int:
        threads.set_threads(8)  # as soon as somebody has read the number
        return 2

    def run(pool, function, args, tasks, thread_count=None, brief=False):
        asked.append(thread_count)
        return real_run(pool, function, args, tasks, thread_count, brief)

    monkeypatch.setattr(threads, "get_threads", count)
    text = "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
    f = tc.compile(text, target="cpu").f
    a, b = np.ones((300, 300), np.float32), np.ones((300, 300), np.float32)
    assert "workspace" in f.source("llvm", a, b)
    monkeypatch.setattr(threads.Pool, "run", run)
    try:
        for _ in range(1 + short):
            asked.clear()
            assert (f(a, b) == 300).all()
        assert 2 in asked
        assert all(number in (None, 2) for number in asked)
    finally:
        threads.set_threads(before)
